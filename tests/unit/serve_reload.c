// SPDX-License-Identifier: MIT
/*
 * serve_reload.c - what hawkd reads back from flash and what it computes instead
 * (daemon/kv/kv_reload.c), a drive that stalls, and what it says about prefill
 * (daemon/sched/prefill.c), on the embedded backend.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "kv/kv_priv.h"
#include "sched/prefill.h"
#include "fd_of.h"
#include "serve_kv.h"

#define BLOCKS	 12u	/* of a prompt that are cached */
#define PROMPT	 (BLOCKS * B + 8)
#define FAST	 UINT32_MAX /* tokens per second: no drive keeps up with that */
#define SLOW	 1u

static char flash_path[] = "/tmp/serve_reload.XXXXXX";

struct env {
	struct kv *kv;
	uint8_t root[KV_KEY_BYTES];
	int32_t tok[PROMPT];
	uint32_t cached; /* tokens that the last run_seq() did not compute */
	char err[KV_ERR_LEN];
};

static void fill_tokens(struct env *e, int32_t seed)
{
	kv_fixture_tokens(e->tok, seed, PROMPT);
}

static void open_seq(struct env *e, struct kv_seq *s, uint32_t rate)
{
	struct kv_need need = {
		.tokens = e->tok,
		.n_prompt = PROMPT,
		.n_total = PROMPT,
		.root = e->root,
		.tokens_per_s = rate,
		.urgent = true,
	};

	if (kv_seq_open(e->kv, s, &need, e->err))
		fail_msg("kv_seq_open: %s", e->err);
}

/* A whole sequence: what is cached is checked, the rest written. Return: tokens from flash. */
static uint32_t run_seq(struct env *e, int32_t seed, uint32_t rate)
{
	struct kv_seq s;
	uint32_t i, flash;

	fill_tokens(e, seed);
	open_seq(e, &s, rate);
	for (i = 0; i < BLOCKS; i++) {
		int32_t *block = s.addr[i];

		if (i < s.n_shared)
			assert_int_equal(block[PAYLOAD / 4 - 1], e->tok[i * B]);
		block[PAYLOAD / 4 - 1] = e->tok[i * B];
	}
	flash = s.tokens_flash;
	e->cached = kv_seq_cached(e->kv, &s);
	assert_true(!flash == !s.reload.batches);
	kv_seq_commit(e->kv, &s, e->tok, PROMPT);
	kv_seq_close(e->kv, &s);
	return flash;
}

/*
 * Prompts 1 to 8 do not fit into memory together: the first ones are on flash, all of them or
 * most, as what is evicted depends on what has been written ahead.
 */
static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));
	struct kv_config cfg = { .reload_always = *state };
	char url[128];
	int32_t i;

	snprintf(url, sizeof(url), "embed:?dram=2M&flash=%s&flash_size=16M", flash_path);
	cfg.url = url;
	kv_fixture_open(&e->kv, cfg, e->root);
	for (i = 1; i <= 8; i++)
		assert_int_equal(run_seq(e, i, 0), 0);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	kv_close(e->kv);
	free(e);
	return 0;
}

static struct kv_stat stat_of(struct env *e)
{
	struct kv_stat st;

	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	return st;
}

/* Nothing is known of the drive or of the model: all that is there comes. */
static void test_unknown(void **state)
{
	struct env *e = *state;
	struct kv_stat st;

	assert_true(run_seq(e, 1, FAST) > 0);
	assert_int_equal(e->cached, BLOCKS * B);
	assert_true(run_seq(e, 2, 0) > 0);
	assert_int_equal(e->cached, BLOCKS * B);
	st = stat_of(e);
	assert_int_equal(st.reload[KV_RELOAD], 2);
	assert_int_equal(st.reload[KV_RECOMPUTE] + st.reload[KV_TRIAL], 0);
}

/* The drive has been measured: whoever computes faster than it reads leaves it alone. */
static void test_choice(void **state)
{
	struct env *e = *state;
	struct kv_stat st;
	uint64_t reloads, left;

	run_seq(e, 1, FAST);
	reloads = stat_of(e).space.reloads;
	assert_int_equal(run_seq(e, 2, FAST), 0);
	st = stat_of(e);
	assert_int_equal(st.reload[KV_RECOMPUTE], 1);
	left = st.left_tokens;
	assert_true(left > 0);
	assert_int_equal(st.space.reloads, reloads);
	assert_true(run_seq(e, 3, SLOW) > 0);
	assert_int_equal(e->cached, BLOCKS * B);
	st = stat_of(e);
	assert_int_equal(st.reload[KV_RELOAD], 2);
	assert_int_equal(st.left_tokens, left);
	assert_int_equal(st.reload_late, 0);
}

/* What is in memory is taken, however quick computing is; the rest stays on flash. */
static void test_split(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t i;

	run_seq(e, 1, SLOW);
	fill_tokens(e, 2);
	for (i = BLOCKS / 2 * B; i < PROMPT; i++)
		e->tok[i]++; /* another prompt that begins like the second */
	open_seq(e, &s, SLOW);
	assert_int_equal(s.n_shared, BLOCKS / 2);
	kv_seq_close(e->kv, &s);
	fill_tokens(e, 2);
	open_seq(e, &s, FAST);
	assert_true(s.tokens_dram >= BLOCKS / 2 * B);
	assert_int_equal(s.tokens_flash, 0);
	kv_seq_close(e->kv, &s);
	assert_true(stat_of(e).left_tokens > 0);
	assert_int_equal(stat_of(e).space.pinned, 0);
}

/* A drive that was found slow is tried again by and by. */
static void test_trial(void **state)
{
	struct env *e = *state;
	uint32_t i, brought = 0;
	struct kv_seq s;

	run_seq(e, 1, SLOW);
	fill_tokens(e, 2);
	for (i = 1; i <= KV_TRIAL_EVERY && !brought; i++) {
		open_seq(e, &s, FAST);
		brought = s.tokens_flash;
		kv_seq_close(e->kv, &s);
	}
	assert_int_equal(i - 1, KV_TRIAL_EVERY);
	assert_true(brought > 0);
	assert_int_equal(stat_of(e).reload[KV_TRIAL], 1);
	assert_int_equal(stat_of(e).reload[KV_RECOMPUTE], KV_TRIAL_EVERY - 1);
}

/* --reload always */
static void test_always(void **state)
{
	struct env *e = *state;

	run_seq(e, 1, FAST);
	assert_true(run_seq(e, 2, FAST) > 0);
	assert_int_equal(e->cached, BLOCKS * B);
	assert_int_equal(stat_of(e).reload[KV_RELOAD], 2);
}

/*
 * The drive stalls - its descriptor is that of an empty pipe - and does not come back before
 * the sequence runs: it is computed.  When it comes back it is used again.
 */
static void test_stall(void **state)
{
	struct env *e = *state;
	int fd = fd_of(flash_path), real = dup(fd), pipefd[2];
	static char junk[BLOCKS * PAYLOAD];
	struct kv_stat st;
	struct kv_seq s;

	run_seq(e, 1, 0);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	fill_tokens(e, 3);
	assert_int_equal(dup2(pipefd[0], fd), fd);
	open_seq(e, &s, SLOW * 1000); /* computing takes 0.2 s: so long it may wait */
	assert_int_equal(s.tokens_flash, 0);
	assert_int_equal(s.reload.batches, 1);
	assert_true(s.reload.ns < KV_DEADLINE_NS);
	st = stat_of(e);
	assert_int_equal(st.reload_late, 1);
	assert_int_equal(st.reload_failed, 0);
	kv_seq_close(e->kv, &s);

	assert_int_equal(dup2(real, fd), fd);
	fcntl(pipefd[1], F_SETPIPE_SZ, sizeof(junk));
	assert_int_equal(write(pipefd[1], junk, sizeof(junk)), sizeof(junk));
	close(pipefd[1]); /* what it still waits for is not there */
	do {
		sched_yield();
		st = stat_of(e);
	} while (st.tier[1].out);
	assert_true(run_seq(e, 5, SLOW) > 0);
	assert_int_equal(e->cached, BLOCKS * B);
	assert_int_equal(stat_of(e).reload_late, 1);
	close(pipefd[0]);
	close(real);
}

/* A gather reads a block of prompt 1 past any frame: it waits to be promoted. */
static void gather_first(struct env *e)
{
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	void *buf = aligned_alloc(HAWK_FRAME_ALIGN, PAYLOAD);
	uint32_t count = 1, remap;
	uint64_t lid;
	int32_t status;
	struct hawk_gather_lists l = { .lists = 1, .count = &count, .remap = &remap,
				       .status = &status, .buf = buf, .buf_bytes = PAYLOAD };

	fill_tokens(e, 1);
	hawk_key_next(e->root, NULL, e->tok, B, NULL, 0, it.key);
	assert_int_equal(hawk_lookup(e->kv->space, &it, 1, NULL, NULL), 1);
	assert_false(it.vt & HAWK_VT_VALID && e->kv->host_tiers & 1u << HAWK_VT_TIER(it.vt));
	lid = it.lid;
	l.lid = &lid;
	assert_int_equal(hawk_gather(e->kv->space, &l, NULL, NULL), 1);
	free(buf);
}

/* It is while prefill runs, and not before. */
static void test_phase(void **state)
{
	struct prefill p = { 0 };
	struct env *e = *state;
	uint64_t now = clock_now_ns();

	gather_first(e);
	prefill_ends(&p, e->kv); /* it has not begun: nothing is said */
	assert_int_equal(stat_of(e).phases, 0);
	assert_int_equal(stat_of(e).space.promoted, 0);
	prefill_runs(&p, e->kv, now);
	prefill_runs(&p, e->kv, now + NS_PER_SEC / 4); /* no news */
	assert_int_equal(stat_of(e).phases, 1);
	while (!stat_of(e).space.promoted)
		sched_yield();
	prefill_runs(&p, e->kv, now + 3 * NS_PER_SEC / 4);
	assert_int_equal(stat_of(e).phases, 2);
	prefill_ends(&p, e->kv);
	assert_int_equal(p.until_ns, 0);
	assert_int_equal(hawk_phase(e->kv->space, 0), 0);
}

static void test_rate(void **state)
{
	struct prefill p = { 0 };
	int i;

	(void)state;
	assert_int_equal(prefill_rate(&p), 0);
	prefill_learn(&p, 128, NS_PER_SEC / 10);
	assert_int_equal(prefill_rate(&p), 1280);
	for (i = 0; i < 100; i++)
		prefill_learn(&p, 1000, NS_PER_SEC / 2);
	assert_in_range(prefill_rate(&p), 1990, 2010);
	prefill_learn(&p, UINT32_MAX, 0);
	assert_int_equal(prefill_rate(&p) > 2010, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_split, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trial, setup, teardown),
		cmocka_unit_test_prestate_setup_teardown(test_always, setup, teardown, "always"),
		cmocka_unit_test_setup_teardown(test_stall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_phase, setup, teardown),
		cmocka_unit_test(test_rate),
	};
	int fd = mkstemp(flash_path), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(flash_path);
	return ret;
}
