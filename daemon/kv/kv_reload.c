// SPDX-License-Identifier: MIT
/*
 * kv_reload.c - reload or recompute: what of a cached prefix is worth reading from flash
 *
 * The device is asked, before it reads anything, how long bringing the blocks would take
 * beside all it has to do already, and up to which block that is quicker than to compute
 * them.  What is behind stays on flash.  The reload then has as long as computing would
 * have taken: if it is late, the rest is computed, so that the wait is about twice the
 * shorter of the two at worst, and a drive that stalls hangs nobody.
 *
 * The device knows its drives by what they bring.  One that was slow for a while would never
 * be asked again, so every KV_TRIAL_EVERYth reload that seems too slow is tried.
 */
#include "kv/kv_priv.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "log.h"

static bool any_on_flash(const struct kv *kv, uint32_t n)
{
	return memchr(kv->from_flash, 1, n);
}

/* Time to compute @n blocks, or as long as may be waited for them. */
static uint64_t compute_ns(const struct kv *kv, const struct kv_seq *s, uint32_t n)
{
	uint64_t ns;

	if (!s->reload.tokens_per_s)
		return KV_DEADLINE_NS;
	ns = (uint64_t)n * kv->block_tokens * NS_PER_SEC / s->reload.tokens_per_s;
	if (ns < KV_RELOAD_MIN_NS)
		return KV_RELOAD_MIN_NS;
	return ns < KV_DEADLINE_NS ? ns : KV_DEADLINE_NS;
}

static void count_choice(struct kv *kv, enum kv_choice choice)
{
	kv_count(&kv->reload[choice], 1);
}

/* Ask the device. Return: how many of @n blocks to bring. */
static uint32_t choose(struct kv *kv, struct kv_seq *s, uint32_t n)
{
	struct hawk_estimate e = { .tokens_per_s = s->reload.tokens_per_s };
	uint32_t i;

	if (!(kv->features & HAWK_FEAT_PACE) || hawk_estimate(kv->space, kv->items, n, &e)) {
		count_choice(kv, KV_RELOAD);
		return n;
	}
	s->reload.estimate_ns += e.reload_ns;
	if (kv->reload_always || e.split >= n || e.split >= e.prefix) {
		kv->slow = 0;
		count_choice(kv, KV_RELOAD);
		return n;
	}
	if (++kv->slow % KV_TRIAL_EVERY == 0) {
		count_choice(kv, KV_TRIAL);
		return n;
	}
	for (i = e.split; i < n; i++)
		kv_count(&kv->left_tokens, kv->from_flash[i] ? kv->block_tokens : 0);
	count_choice(kv, KV_RECOMPUTE);
	return e.split;
}

uint32_t kv_reload_plan(struct kv *kv, struct kv_seq *s, uint32_t n, struct hawk_opts *get)
{
	uint64_t wait = KV_DEADLINE_NS;

	get->flags = HAWK_BATCH_PREFIX;
	if (any_on_flash(kv, n)) {
		n = choose(kv, s, n);
		if (!kv->reload_always)
			wait = compute_ns(kv, s, n);
		if (s->reload.urgent && kv->features & HAWK_FEAT_PACE)
			get->flags |= HAWK_BATCH_URGENT;
	}
	get->deadline_ns = clock_now_ns() + wait;
	return n;
}

void kv_reload_done(struct kv *kv, struct kv_seq *s, uint32_t n, uint64_t since, int status)
{
	if (any_on_flash(kv, n)) {
		s->reload.ns += clock_now_ns() - since;
		s->reload.batches++;
	}
	if (!status || status == -ENOSPC || status == -EDQUOT)
		return;
	if (status == -ETIME) {
		kv_count(&kv->reload_late, 1);
		log_warn(
			"a cached prefix did not come from flash in %llu ms, recomputing what is missing; is the drive slow or stalled? (hawkctl tier list; hawkd_kv_reload* in /metrics)",
			(unsigned long long)((clock_now_ns() - since) / NS_PER_MSEC));
		return;
	}
	kv_count(&kv->reload_failed, 1);
	log_warn("a cached KV block could not be read back (%s), recomputing from there",
		 strerror(-status));
}

void kv_phase(struct kv *kv, uint64_t until_ns)
{
	if (!(kv->features & HAWK_FEAT_PROMOTE))
		return;
	if (hawk_phase(kv->space, until_ns) < 0)
		log_err("cannot tell the KV device that prefill %s: %s",
			until_ns ? "runs" : "has ended", hawk_strerror_last());
	else if (until_ns)
		kv_count(&kv->phases, 1);
}
