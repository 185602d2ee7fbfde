// SPDX-License-Identifier: MIT
/*
 * core_state.c - every transition of a block, and every refusal
 *
 * The table is written here a second time, from what the states mean; the engine's
 * must be the same, and every event that it does not have is refused.  Then each
 * transition is made to happen through the calls of core.h alone: the engine counts
 * them (HAWK_COUNT_EVENTS), and one that was never taken fails.  At last every call is
 * made in every state, and those that the state forbids are refused without an event.
 */
#include "core_host.h"
#include "../../kmod/core/priv.h"

#define LID(n)	HAWK_LID(3, 0, 0, (n) * 16)

static const struct transition {
	u8 from, ev, to;
} legal[] = {
	{ HAWK_BLOCK_FREE, HAWK_EV_ALLOC, HAWK_BLOCK_FILLING },
	{ HAWK_BLOCK_FREE, HAWK_EV_RESTORE, HAWK_BLOCK_FLASH },
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

u64 hawk_event_count[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
u64 hawk_visit_count;

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
	u64 before[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];	/* counts at the last look */
	struct hawk_super super;
	struct hawk_record record;
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
	assert_true(hawk_event_count[from][ev] > w->before[from][ev]);
	w->before[from][ev] = hawk_event_count[from][ev];
	/* what nothing refers to is buried at once */
	if (find(from, ev)->to != HAWK_BLOCK_DYING || now_in(w) == HAWK_BLOCK_DYING)
		assert_int_equal(now_in(w), find(from, ev)->to);
	else
		assert_int_equal(now_in(w), HAWK_BLOCK_FREE);
	host_check(w->s);
}

static const struct hawk_identity owner = {
	.name = "walk", .block_bytes = 1 << 20, .block_tokens = 16, .layers = 1, .head_groups = 1,
};

/* What a pool of two chunks says of the second one. */
static struct hawk_super pool_open(struct walk *w, u32 tier, struct hawk_record *r)
{
	struct hawk_super s = { .slot_bytes = 65536, .bytes = 3 * HAWK_CHUNK_BYTES + HAWK_POOL_PAGE,
				.seq = 1 };
	u8 p[HAWK_RECORD_BYTES];

	*r = (struct hawk_record){ .epoch = 7, .chunk = 1, .kept = true, .owner = owner };
	assert_int_equal(hawk_super_layout(&s), 0);
	hawk_record_encode(r, hawk_pool_id(&s), p);
	assert_int_equal(hawk_record_decode(p, hawk_pool_id(&s), 1, r), 0);
	assert_int_equal(hawk_pool_open(w->h.e, tier, &s, 1), 0);
	assert_int_equal(hawk_pool_load(w->h.e, tier, r), 0);
	hawk_pool_loaded(w->h.e, tier);
	return s;
}

/* One bucket, two host frames, four flash frames. */
static void walk_init(struct walk *w)
{
	struct hawk_space_params p = {
		.block_bytes = 1 << 20, .block_tokens = 16, .max_blocks = 8, .buckets = 1,
		.identity = &owner,
	};

	memset(w, 0, sizeof(*w));
	memset(hawk_event_count, 0, sizeof(hawk_event_count));
	asserts = 0;
	host_init(&w->h, 3);
	p.quota_max[host_tier(&w->h, HAWK_TIER_HOST, 1)] = 1;
	p.quota_max[host_tier(&w->h, HAWK_TIER_BLK, 2)] = 2;
	w->super = pool_open(w, 1, &w->record);
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

/* A block that was there before its space. */
static void walk_restore(struct walk *w)
{
	struct hawk_header h = {
		.epoch = 7, .gen = 8, .space = w->record.space, .bytes = 1 << 20, .key = { 1 },
	};
	u8 headers[2 * HAWK_HEADER_BYTES] = { 0 };
	struct hawk_ref ref;
	u64 lid, vt;

	hawk_header_encode(&h, hawk_pool_id(&w->super), headers);
	assert_int_equal(hawk_pool_next_orphan(w->s, 1, HAWK_NONE), 1);
	assert_int_equal(hawk_space_adopt(w->s, 1, &w->record, headers, ++w->now), 0);
	assert_int_equal(hawk_block_find(w->s, h.key, false, ++w->now, &lid, &vt, &ref), 0);
	w->nr = ref.block;
	went(w, HAWK_BLOCK_FREE, HAWK_EV_RESTORE);
	pin(w, lid, -EAGAIN);
	assert_int_equal(hawk_block_put(w->s, lid, NULL, false, ++w->now), -EINVAL);
	assert_int_equal(hawk_block_free(w->s, lid), 0);
	went(w, HAWK_BLOCK_FLASH, HAWK_EV_END);
}

static void walk_end(struct walk *w)
{
	assert_int_equal(asserts, 0);
	host_space_end(&w->h, w->s);
	host_fini(&w->h);
}

static const char * const events[HAWK_BLOCK_EVENTS] = {
	[HAWK_EV_ALLOC] = "alloc", [HAWK_EV_RESTORE] = "restore", [HAWK_EV_PUT] = "put", [HAWK_EV_REWRITE] = "rewrite",
	[HAWK_EV_EVICT] = "evict", [HAWK_EV_EVICT_CLEAN] = "clean",
	[HAWK_EV_WRITTEN] = "written", [HAWK_EV_KEPT] = "kept", [HAWK_EV_RELOAD] = "reload",
	[HAWK_EV_LOADED] = "loaded", [HAWK_EV_CANCELED] = "canceled", [HAWK_EV_END] = "end",
	[HAWK_EV_BURY] = "bury",
};

/* How often each transition was taken; "-" is refused. */
static void print_matrix(void)
{
	u32 from, ev;

	fprintf(stderr, "# %-9s", "");
	for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
		fprintf(stderr, " %8s", events[ev]);
	for (from = 0; from < HAWK_BLOCK_STATES; from++) {
		fprintf(stderr, "\n# %-9s", hawk_state_name(from));
		for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
			if (find(from, ev))
				fprintf(stderr, " %8llu",
					(unsigned long long)hawk_event_count[from][ev]);
			else
				fprintf(stderr, " %8s", "-");
	}
	fprintf(stderr, "\n");
}

static void every_transition(void **state)
{
	u32 i, taken = 0;
	struct walk w;

	(void)state;
	walk_init(&w);
	walk_restore(&w);
	walk_filling(&w);
	walk_ready(&w);
	walk_evicting(&w);
	walk_flash(&w);
	walk_reloading(&w);
	print_matrix();
	for (i = 0; i < ARRAY_SIZE(legal); i++) {
		if (!hawk_event_count[legal[i].from][legal[i].ev])
			fail_msg("%s in %s was never taken", events[legal[i].ev],
				 hawk_state_name(legal[i].from));
		taken++;
	}
	fprintf(stderr, "# %u of %zu transitions taken through the calls of core.h\n", taken,
		ARRAY_SIZE(legal));
	walk_end(&w);
}

/* ---- every call in every state ---- */

#define TAKEN	1	/* the state allows it: not called here */

static int call_alloc(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return alloc(w, LID(1), NULL);
}

static int call_put(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return hawk_block_put(w->s, LID(1), NULL, false, ++w->now);
}

static int call_pin(struct walk *w, struct hawk_ref ref)
{
	u64 vt;

	return hawk_block_pin(w->s, LID(1), ++w->now, &vt, &ref);
}

static int call_unpin(struct walk *w, struct hawk_ref ref)
{
	return hawk_block_unpin(w->s, ref);
}

static int call_repin(struct walk *w, struct hawk_ref ref)
{
	return hawk_block_repin(w->s, ref);
}

static int call_unshare(struct walk *w, struct hawk_ref ref)
{
	u64 vt;

	return hawk_block_unshare(w->s, LID(1), ++w->now, NULL, &vt, &ref);
}

static int call_reload(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return hawk_block_reload(w->s, LID(1), HAWK_TIER_ANY, ++w->now, NULL);
}

static int call_fork_from(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return hawk_block_fork(w->s, LID(1), LID(7));
}

static int call_fork_to(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return hawk_block_fork(w->s, LID(2), LID(1));
}

static int call_free(struct walk *w, struct hawk_ref ref)
{
	(void)ref;
	return hawk_block_free(w->s, LID(1));
}

/* What each call says of LID 1 in each state, when nobody but a filler has it pinned. */
struct refusal {
	const char *name;
	int (*call)(struct walk *w, struct hawk_ref ref);
	int want[HAWK_BLOCK_STATES];
};

/*	      FREE     FILLING  READY    EVICTING FLASH    RELOADING DYING */
static const struct refusal refusals[] = {
	{ "alloc", call_alloc,
	    { TAKEN,   -EEXIST, -EEXIST, -EEXIST, -EEXIST, -EEXIST,  -EAGAIN } },
	{ "put", call_put,
	    { -ENOENT, TAKEN,   -EINVAL, -EINVAL, -EINVAL, -EINVAL,  -ENOENT } },
	{ "pin", call_pin,
	    { -ENOENT, -EAGAIN, TAKEN,   TAKEN,   -EAGAIN, -EAGAIN,  -ENOENT } },
	{ "unpin", call_unpin,
	    { -ESTALE, TAKEN,   -ESTALE, -ESTALE, -ESTALE, -ESTALE,  -ESTALE } },
	{ "repin", call_repin,
	    { -ESTALE, TAKEN,   -ESTALE, -ESTALE, -ESTALE, -ESTALE,  -ESTALE } },
	{ "unshare", call_unshare,
	    { -ENOENT, -EAGAIN, -ESTALE, -ESTALE, -ESTALE, -ESTALE,  -ENOENT } },
	{ "reload", call_reload,
	    { -ENOENT, 0,       0,       0,       -EAGAIN, -EINPROGRESS, -ENOENT } },
	{ "fork from", call_fork_from,
	    { -ENOENT, -EAGAIN, TAKEN,   TAKEN,   TAKEN,   TAKEN,    -ENOENT } },
	{ "fork to", call_fork_to,
	    { TAKEN,   -EEXIST, -EEXIST, -EEXIST, -EEXIST, -EEXIST,  -EAGAIN } },
	{ "free", call_free,
	    { -ENOENT, -EBUSY,  TAKEN,   TAKEN,   TAKEN,   TAKEN,    -ENOENT } },
};

/* LID 1 in this state, LID 2 READY. */
static void reach(struct walk *w, u32 state)
{
	switch (state) {
	case HAWK_BLOCK_FILLING:
		fill(w, LID(2));
		assert_int_equal(alloc(w, LID(1), NULL), 0);
		watch(w, LID(1));
		break;
	case HAWK_BLOCK_FREE:
	case HAWK_BLOCK_READY:
		fill(w, LID(2));
		fill(w, LID(1));
		if (state == HAWK_BLOCK_FREE)
			assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
		break;
	case HAWK_BLOCK_EVICTING:
	case HAWK_BLOCK_DYING:
		start_evicting(w);
		if (state == HAWK_BLOCK_DYING)
			assert_int_equal(hawk_block_free(w->s, LID(1)), 0);
		break;
	case HAWK_BLOCK_FLASH:
		to_flash(w);
		break;
	case HAWK_BLOCK_RELOADING:
		start_reloading(w);
		break;
	}
	assert_int_equal(now_in(w), state);
}

static void refuses(struct walk *w, u32 state, const struct refusal *r, struct hawk_ref ref)
{
	int ret;

	memcpy(w->before, hawk_event_count, sizeof(w->before));
	ret = r->call(w, ref);
	if (ret != r->want[state])
		fail_msg("%s in %s: %d, not %d", r->name, hawk_state_name(state), ret,
			 r->want[state]);
	assert_int_equal(now_in(w), state);
	assert_memory_equal(w->before, hawk_event_count, sizeof(w->before));
	host_check(w->s);
}

static void every_refusal(void **state)
{
	struct hawk_ref ref;
	struct walk w;
	u32 st, i, made = 0;

	(void)state;
	for (st = 0; st < HAWK_BLOCK_STATES; st++) {
		walk_init(&w);
		reach(&w, st);
		ref = (struct hawk_ref){ w.nr, w.s->block[w.nr].gen };
		for (i = 0; i < ARRAY_SIZE(refusals); i++)
			if (refusals[i].want[st] != TAKEN) {
				refuses(&w, st, &refusals[i], ref);
				made++;
			}
		for (i = 0; i < w.h.plan.n; i++)
			hawk_move_complete(&w.h.plan.move[i]);
		w.h.plan.n = 0;
		if (st == HAWK_BLOCK_FILLING)
			assert_int_equal(hawk_block_put(w.s, LID(1), NULL, false, 1), 0);
		walk_end(&w);
	}
	fprintf(stderr, "# %u refusals by %zu calls\n", made, ARRAY_SIZE(refusals));
}

/* A block is at its translation in each state that has one, and nowhere else. */
static void found_by_place(void **state)
{
	struct hawk_ref ref, at;
	struct walk w;
	u64 vt, old;

	(void)state;
	walk_init(&w);
	start_evicting(&w);
	assert_int_equal(hawk_block_ref(w.s, LID(1), &old, &ref), 0);
	assert_int_equal(hawk_block_at(w.s, old, &at), 0);
	assert_memory_equal(&at, &ref, sizeof(at));
	/* on flash it is there, and not where it was */
	complete(&w, 0);
	assert_int_equal(hawk_block_ref(w.s, LID(1), &vt, &ref), 0);
	assert_int_equal(hawk_block_at(w.s, vt, &at), 0);
	assert_memory_equal(&at, &ref, sizeof(at));
	assert_int_equal(hawk_block_at(w.s, old, &at), -ESTALE);
	/* the frame has another block: the generation tells */
	fill(&w, LID(3));
	assert_int_equal(hawk_block_at(w.s, old, &at), -ESTALE);
	assert_int_equal(hawk_block_free(w.s, LID(1)), 0);
	assert_int_equal(hawk_block_at(w.s, vt, &at), -ESTALE);
	/* places that cannot be */
	assert_int_equal(hawk_block_at(w.s, hawk_vt(HAWK_TIERS_MAX, 0, 0), &at), -ESTALE);
	assert_int_equal(hawk_block_at(w.s, hawk_vt(0, 0, HAWK_NONE), &at), -ESTALE);
	walk_end(&w);
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
	assert_int_equal(hawk_block_repin(w.s, ref), 0);
	assert_int_equal(w.s->block[w.nr].pins, 2);
	w.s->block[w.nr].pins = HAWK_PINS_MAX;
	pin(&w, LID(1), -EOVERFLOW);
	assert_int_equal(hawk_block_repin(w.s, ref), -EOVERFLOW);
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
		cmocka_unit_test(every_refusal),
		cmocka_unit_test(found_by_place),
		cmocka_unit_test(pins_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
