// SPDX-License-Identifier: MIT
/* prefill.c - see prefill.h */
#include "sched/prefill.h"

#include "clock.h"
#include "kv/kv.h"

#define PHASE_NS NS_PER_SEC	/* what the device is told at a time: a dead hawkd ends it */
#define FADE_NS	 NS_PER_SEC	/* what was computed before so much time counts half */

void prefill_runs(struct prefill *p, struct kv *kv, uint64_t now_ns)
{
	if (now_ns + PHASE_NS / 2 < p->until_ns)
		return;
	p->until_ns = now_ns + PHASE_NS;
	kv_phase(kv, p->until_ns);
}

void prefill_ends(struct prefill *p, struct kv *kv)
{
	if (!p->until_ns)
		return;
	p->until_ns = 0;
	kv_phase(kv, 0);
}

void prefill_learn(struct prefill *p, uint32_t tokens, uint64_t ns)
{
	uint64_t rate;

	p->tokens += tokens;
	p->ns += ns;
	rate = p->tokens * NS_PER_SEC / (p->ns ? p->ns : 1);
	atomic_store_explicit(&p->rate, rate < UINT32_MAX ? rate : UINT32_MAX,
			      memory_order_relaxed);
	if (p->ns > FADE_NS) {
		p->tokens /= 2;
		p->ns /= 2;
	}
}
