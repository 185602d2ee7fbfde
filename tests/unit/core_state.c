// SPDX-License-Identifier: MIT
/*
 * core_state.c - every transition of a block, and every refusal
 *
 * The table is written here a second time, from what the states mean; the engine's
 * must be the same.  Then each transition is made to happen through the calls of
 * core.h, and every call that a state forbids is seen to be refused.
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(3, 0, 0, (n) * 16)

static const struct transition {
	u8 from, ev, to;
} legal[] = {
	{ HAWK_BLOCK_FREE, HAWK_EV_ALLOC, HAWK_BLOCK_FILLING },
	{ HAWK_BLOCK_FILLING, HAWK_EV_PUT, HAWK_BLOCK_READY },
	{ HAWK_BLOCK_FILLING, HAWK_EV_END, HAWK_BLOCK_DYING },
	{ HAWK_BLOCK_READY, HAWK_EV_REWRITE, HAWK_BLOCK_FILLING },
	{ HAWK_BLOCK_READY, HAWK_EV_EVICT, HAWK_BLOCK_EVICTING },
	{ HAWK_BLOCK_READY, HAWK_EV_EVICT_CLEAN, HAWK_BLOCK_FLASH },
	{ HAWK_BLOCK_READY, HAWK_EV_END, HAWK_BLOCK_DYING },
	{ HAWK_BLOCK_EVICTING, HAWK_EV_WRITTEN, HAWK_BLOCK_FLASH },
	{ HAWK_BLOCK_EVICTING, HAWK_EV_KEPT, HAWK_BLOCK_READY },
	{ HAWK_BLOCK_EVICTING, HAWK_EV_END, HAWK_BLOCK_DYING },
	{ HAWK_BLOCK_FLASH, HAWK_EV_RELOAD, HAWK_BLOCK_RELOADING },
	{ HAWK_BLOCK_FLASH, HAWK_EV_END, HAWK_BLOCK_DYING },
	{ HAWK_BLOCK_RELOADING, HAWK_EV_LOADED, HAWK_BLOCK_READY },
	{ HAWK_BLOCK_RELOADING, HAWK_EV_CANCELED, HAWK_BLOCK_FLASH },
	{ HAWK_BLOCK_RELOADING, HAWK_EV_END, HAWK_BLOCK_DYING },
	{ HAWK_BLOCK_DYING, HAWK_EV_BURY, HAWK_BLOCK_FREE },
};

static const struct transition *find(u32 from, u32 ev)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(legal); i++)
		if (legal[i].from == from && legal[i].ev == ev)
			return &legal[i];
	return NULL;
}

/* The engine's assertion is caught (ld --wrap) to see that it is raised. */
static u32 asserts;

void __wrap_hawk_assert_fail(const char *cond, const char *file, int line);
void __wrap_hawk_assert_fail(const char *cond, const char *file, int line)
{
	(void)cond;
	(void)file;
	(void)line;
	asserts++;
}

static void table_is_this_one(void **state)
{
	u32 from, ev;

	(void)state;
	for (from = 0; from < HAWK_BLOCK_STATES; from++)
		for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++) {
			const struct transition *tr = find(from, ev);
			struct hawk_block blk = { .state = from };

			assert_int_equal(hawk_block_event_ok(from, ev), !!tr);
			asserts = 0;
			hawk_block_event(&blk, ev);
			assert_int_equal(asserts, !tr);
			assert_int_equal(blk.state, tr ? tr->to : from);
		}
	asserts = 0;
}

static void states_have_names(void **state)
{
	u32 i, j;

	(void)state;
	for (i = 0; i < HAWK_BLOCK_STATES; i++)
		for (j = 0; j < i; j++)
			assert_string_not_equal(hawk_state_name(i), hawk_state_name(j));
	assert_string_equal(hawk_state_name(HAWK_BLOCK_STATES), "?");
}

/* ---- through the calls ---- */

struct walk {
	struct host h;
	struct hawk_space *s;
	bool seen[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
	u32 nr;		/* block under observation */
	u64 now;
};

static u32 now_in(struct walk *w)
{
	return w->s->block[w->nr].state;
}

/* The block under observation has just gone through @ev. */
static void went(struct walk *w, u32 from, u32 ev)
{
	assert_non_null(find(from, ev));
	/* what nothing refers to is buried at once */
	if (find(from, ev)->to != HAWK_BLOCK_DYING || now_in(w) == HAWK_BLOCK_DYING)
		assert_int_equal(now_in(w), find(from, ev)->to);
	else
		assert_int_equal(now_in(w), HAWK_BLOCK_FREE);
	w->seen[from][ev] = true;
	host_check(w->s);
}

/* One bucket, two host frames, four flash frames. */
static void walk_init(struct walk *w)
{
	struct hawk_space_params p = {
		.block_bytes = 1 << 20, .block_tokens = 16, .max_blocks = 8, .buckets = 1,
	};

	memset(w, 0, sizeof(*w));
	host_init(&w->h, 3);
	p.quota_max[host_tier(&w->h, HAWK_TIER_HOST, 1)] = 1;
	p.quota_max[host_tier(&w->h, HAWK_TIER_BLK, 2)] = 2;
	w->s = host_space(&w->h, &p);
}

static void watch(struct walk *w, u64 lid)
{
	struct hawk_ref ref;
	u64 vt;

	assert_int_equal(hawk_block_ref(w->s, lid, &vt, &ref), 0);
	w->nr = ref.block;
}

static struct hawk_ref pin(struct walk *w, u64 lid, int want)
{
	struct hawk_ref ref = { 0 };
	u64 vt;

	assert_int_equal(hawk_block_pin(w->s, lid, ++w->now, &vt, &ref), want);
	return ref;
}

static int alloc(struct walk *w, u64 lid, struct hawk_plan *plan)
{
	u64 vt;

	return host_block_alloc(w->s, lid, NULL, HAWK_TIER_ANY, ++w->now, plan, &vt);
}

static void fill(struct walk *w, u64 lid)
{
	assert_int_equal(host_fill(&w->h, w->s, lid, NULL, lid, ++w->now), 0);
	watch(w, lid);
}

/* LIDs 1 and 2 fill the host tier; the write of 1 is started and left in flight. */
static void start_evicting(struct walk *w)
{
	fill(w, LID(2));
	fill(w, LID(1));
	assert_int_equal(host_block_reload(w->s, LID(2), 0, ++w->now, NULL), 0);
	assert_int_equal(alloc(w, LID(3), host_plan(&w->h, 1)), -EAGAIN);
	assert_int_equal(w->h.plan.n, 1);
	went(w, HAWK_BLOCK_READY, HAWK_EV_EVICT);
}

static void complete(struct walk *w, int result)
{
	w->h.plan.move[0].result = result;
	hawk_move_complete(&w->h.plan.move[0]);
	w->h.plan.n = 0;
}

static void to_flash(struct walk *w)
{
	start_evicting(w);
	complete(w, 0);
	went(w, HAWK_BLOCK_EVICTING, HAWK_EV_WRITTEN);
}

static void start_reloading(struct walk *w)
{
	to_flash(w);
	assert_int_equal(host_block_reload(w->s, LID(1), 0, ++w->now, host_plan(&w->h, 1)),
			 -EINPROGRESS);
	assert_int_equal(w->h.plan.n, 1);
	went(w, HAWK_BLOCK_FLASH, HAWK_EV_RELOAD);
}

static void clear(struct walk *w)
{
	u32 i;

	host_drain(&w->h);
	for (i = 1; i < 8; i++)
		hawk_block_free(w->s, LID(i));
	host_check(w->s);
}

static void walk_filling(struct walk *w)
{
	struct hawk_ref ref;

	assert_int_equal(alloc(w, LID(1), NULL), 0);
	watch(w, LID(1));
	went(w, HAWK_BLOCK_FREE, HAWK_EV_ALLOC);
	ref = (struct hawk_ref){ w->nr, w->s->block[w->nr].gen };
	/* a block being filled is not forked, pinned or freed */
	pin(w, LID(1), -EAGAIN);
	assert_int_equal(hawk_block_fork(w->s, LID(1), LID(2)), -EAGAIN);
	assert_int_equal(hawk_block_free(w->s, LID(1)), -EBUSY);
	assert_int_equal(alloc(w, LID(1), NULL), -EEXIST);
	assert_int_equal(hawk_block_unpin(w->s, ref), 0);
	went(w, HAWK_BLOCK_FILLING, HAWK_EV_END);
	went(w, HAWK_BLOCK_DYING, HAWK_EV_BURY);

	assert_int_equal(alloc(w, LID(1), NULL), 0);
	watch(w, LID(1));
	assert_int_equal(hawk_block_put(w->s, LID(1), NULL, false, ++w->now), 0);
	went(w, HAWK_BLOCK_FILLING, HAWK_EV_PUT);
	clear(w);
}

static void walk_ready(struct walk *w)
{
	struct hawk_ref ref;
	u64 vt;

	fill(w, LID(1));
	assert_int_equal(hawk_block_put(w->s, LID(1), NULL, false, 1), -EINVAL);
	assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
	went(w, HAWK_BLOCK_READY, HAWK_EV_END);

	fill(w, LID(1));
	ref = pin(w, LID(1), 0);
	assert_int_equal(host_block_unshare(w->s, LID(1), ++w->now, NULL, &vt, &ref), 0);
	went(w, HAWK_BLOCK_READY, HAWK_EV_REWRITE);
	assert_int_equal(host_block_unshare(w->s, LID(1), ++w->now, NULL, &vt, &ref), -EAGAIN);
	assert_int_equal(hawk_block_unpin(w->s, ref), 0);
	went(w, HAWK_BLOCK_FILLING, HAWK_EV_END);
	clear(w);
}

static void walk_evicting(struct walk *w)
{
	struct hawk_ref ref;
	u64 vt;

	/* a pin keeps the frame, and what is being read from it is not rewritten */
	start_evicting(w);
	ref = pin(w, LID(1), 0);
	assert_int_equal(host_block_unshare(w->s, LID(1), ++w->now, NULL, &vt, &ref), -EAGAIN);
	assert_int_equal(hawk_block_put(w->s, LID(1), NULL, false, ++w->now), -EINVAL);
	complete(w, 0);
	went(w, HAWK_BLOCK_EVICTING, HAWK_EV_KEPT);
	assert_int_equal(hawk_block_unpin(w->s, ref), 0);
	clear(w);

	/* not tried: it stays */
	start_evicting(w);
	complete(w, -ECANCELED);
	went(w, HAWK_BLOCK_EVICTING, HAWK_EV_KEPT);
	clear(w);

	/* freed while it is written: gone when the write has ended */
	start_evicting(w);
	assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
	went(w, HAWK_BLOCK_EVICTING, HAWK_EV_END);
	assert_int_equal(now_in(w), HAWK_BLOCK_DYING);
	assert_int_equal(alloc(w, LID(1), NULL), -EAGAIN);
	assert_int_equal(hawk_block_fork(w->s, LID(2), LID(1)), -EAGAIN);
	assert_int_equal(hawk_block_free(w->s, LID(1)), -ENOENT);
	pin(w, LID(1), -ENOENT);
	complete(w, 0);
	went(w, HAWK_BLOCK_DYING, HAWK_EV_BURY);
	clear(w);
}

static void walk_flash(struct walk *w)
{
	/* reloaded, it is clean: the next eviction is at once */
	start_reloading(w);
	complete(w, 0);
	went(w, HAWK_BLOCK_RELOADING, HAWK_EV_LOADED);
	assert_int_equal(host_block_reload(w->s, LID(2), 0, ++w->now, NULL), 0);
	assert_int_equal(alloc(w, LID(3), NULL), 0);
	went(w, HAWK_BLOCK_READY, HAWK_EV_EVICT_CLEAN);
	pin(w, LID(1), -EAGAIN);
	assert_int_equal(hawk_block_put(w->s, LID(1), NULL, false, ++w->now), -EINVAL);
	assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
	went(w, HAWK_BLOCK_FLASH, HAWK_EV_END);
	assert_int_equal(hawk_block_put(w->s, LID(3), NULL, false, ++w->now), 0);
	clear(w);
}

static void walk_reloading(struct walk *w)
{
	start_reloading(w);
	pin(w, LID(1), -EAGAIN);
	assert_int_equal(host_block_reload(w->s, LID(1), 0, ++w->now, NULL), -EINPROGRESS);
	complete(w, -ECANCELED);
	went(w, HAWK_BLOCK_RELOADING, HAWK_EV_CANCELED);
	clear(w);

	/* what cannot be read, or not trusted, is gone */
	start_reloading(w);
	complete(w, -EILSEQ);
	went(w, HAWK_BLOCK_RELOADING, HAWK_EV_END);
	went(w, HAWK_BLOCK_DYING, HAWK_EV_BURY);
	pin(w, LID(1), -ENOENT);
	clear(w);

	start_reloading(w);
	assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
	assert_int_equal(now_in(w), HAWK_BLOCK_DYING);
	went(w, HAWK_BLOCK_RELOADING, HAWK_EV_END);
	complete(w, 0);
	went(w, HAWK_BLOCK_DYING, HAWK_EV_BURY);
	clear(w);
}

static void every_transition(void **state)
{
	struct walk w;
	u32 i;

	(void)state;
	asserts = 0;
	walk_init(&w);
	walk_filling(&w);
	walk_ready(&w);
	walk_evicting(&w);
	walk_flash(&w);
	walk_reloading(&w);
	for (i = 0; i < ARRAY_SIZE(legal); i++)
		if (!w.seen[legal[i].from][legal[i].ev])
			fail_msg("transition %u of the table was not walked", i);
	assert_int_equal(asserts, 0);
	host_space_end(&w.h, w.s);
	host_fini(&w.h);
}

/* Pins are counted in 32 bits, and a client may ask for more. */
static void pins_do_not_wrap(void **state)
{
	struct hawk_ref ref;
	struct walk w;

	(void)state;
	walk_init(&w);
	assert_int_equal(host_fill(&w.h, w.s, LID(1), NULL, 1, ++w.now), 0);
	watch(&w, LID(1));
	ref = pin(&w, LID(1), 0);
	w.s->block[w.nr].pins = HAWK_PINS_MAX;
	pin(&w, LID(1), -EOVERFLOW);
	assert_int_equal(w.s->block[w.nr].pins, HAWK_PINS_MAX);
	w.s->block[w.nr].pins = 1;
	assert_int_equal(hawk_block_unpin(w.s, ref), 0);
	host_check(w.s);
	host_space_end(&w.h, w.s);
	host_fini(&w.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_this_one),
		cmocka_unit_test(states_have_names),
		cmocka_unit_test(every_transition),
		cmocka_unit_test(pins_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
