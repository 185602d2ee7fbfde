/* SPDX-License-Identifier: MIT */
/*
 * prefill.h - that prompts are being computed, and how quickly
 *
 * The step thread writes; the rate may be read by any thread.
 */
#ifndef HAWKD_PREFILL_H
#define HAWKD_PREFILL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kv;

/**
 * struct prefill - what is known of the computing of prompts
 * @tokens, @ns: computed and how long that took; both fade
 * @rate: tokens per second, 0: not known yet
 * @until_ns: the KV device has been told that it runs until then; 0: it does not
 */
struct prefill {
	uint64_t tokens;
	uint64_t ns;
	_Atomic uint32_t rate;
	uint64_t until_ns;
};

/** prefill_runs() - a step with prompt tokens begins; tells the device when that is news */
void prefill_runs(struct prefill *p, struct kv *kv, uint64_t now_ns);

/** prefill_ends() - no prompt is left; tells the device */
void prefill_ends(struct prefill *p, struct kv *kv);

/**
 * prefill_learn() - a step had prompt tokens
 * @tokens: how many; only steps with a whole chunk tell how quick prefill is
 * @ns: time that it took
 */
void prefill_learn(struct prefill *p, uint32_t tokens, uint64_t ns);

/** prefill_rate() - tokens per second, 0: not known yet */
static inline uint32_t prefill_rate(const struct prefill *p)
{
	return atomic_load_explicit(&p->rate, memory_order_relaxed);
}

#endif
