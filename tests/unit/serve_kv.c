// SPDX-License-Identifier: MIT
/*
 * serve_kv.c - the KV memory of sequences (daemon/kv) on the embedded backend:
 * prefix reuse, rollback, tenants, spill and reload, a damaged flash file.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"
#include "serve_kv.h"

#define DRAM_BLOCKS 32u	/* one chunk */

static char flash_path[] = "build/serve_kv.XXXXXX";

struct env {
	struct kv *kv;
	uint8_t root[KV_KEY_BYTES];
	int32_t tok[4096];
	struct hist_op op[4];
	uint32_t n_ops;
	char err[KV_ERR_LEN];
};

static void fill_tokens(struct env *e, int32_t seed, uint32_t n)
{
	kv_fixture_tokens(e->tok, seed, n);
}

/* @flash: options of the flash file, NULL: no flash */
static void env_open(struct env *e, const char *flash, bool no_cache)
{
	char url[128];

	snprintf(url, sizeof(url),
		 flash ? "embed:?dram=2M&flash=%s&flash_size=16M%s" : "embed:?dram=2M", flash_path,
		 flash);
	kv_fixture_open(&e->kv, (struct kv_config){ .url = url, .no_cache = no_cache }, e->root);
}

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	env_open(e, NULL, false);
	*state = e;
	return 0;
}

static int setup_flash(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	env_open(e, "", false);
	*state = e;
	return 0;
}

/*
 * Nothing is written to the file but by our own calls.  What is written ahead would go
 * past the page cache at the same time as the test writes through it: then some of it
 * comes after the damage, and fsync(2) tells of the collision.
 */
static int setup_flash_quiet(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	env_open(e, "&writeback=0", false);
	*state = e;
	return 0;
}

static int setup_no_cache(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	env_open(e, NULL, true);
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

static uint64_t pinned(struct env *e)
{
	struct kv_stat st;

	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	return st.space.pinned;
}

static int try_open(struct env *e, struct kv_seq *s, uint32_t n_prompt, uint32_t n_total)
{
	struct kv_need need = {
		.tokens = e->tok,
		.n_prompt = n_prompt,
		.n_total = n_total,
		.ops = e->op,
		.n_ops = e->n_ops,
		.root = e->root,
	};

	return kv_seq_open(e->kv, s, &need, e->err);
}

static void open_ok(struct env *e, struct kv_seq *s, uint32_t n_prompt, uint32_t n_total)
{
	if (try_open(e, s, n_prompt, n_total))
		fail_msg("kv_seq_open: %s", e->err);
}

/* Every block holds its first token everywhere, so that a wrong block shows. */
static void write_blocks(struct env *e, struct kv_seq *s, uint32_t from, uint32_t n_tokens)
{
	uint32_t i, k;

	for (i = from; i < n_tokens / B; i++)
		for (k = 0; k < PAYLOAD / 4; k++)
			((int32_t *)s->addr[i])[k] = e->tok[i * B];
}

static void check_blocks(struct env *e, const struct kv_seq *s, uint32_t n_tokens)
{
	uint32_t i, k;

	for (i = 0; i < n_tokens / B; i++)
		for (k = 0; k < PAYLOAD / 4; k++)
			assert_int_equal(((int32_t *)s->addr[i])[k], e->tok[i * B]);
}

/* Run a whole sequence whose prompt is the first @n tokens. */
static void run_seq(struct env *e, uint32_t n, uint32_t *dram, uint32_t *flash)
{
	struct kv_seq s;

	open_ok(e, &s, n, n);
	check_blocks(e, &s, kv_seq_cached(e->kv, &s));
	*dram = s.tokens_dram;
	*flash = s.tokens_flash;
	write_blocks(e, &s, s.n_shared, n);
	kv_seq_commit(e->kv, &s, e->tok, n);
	kv_seq_close(e->kv, &s);
	assert_int_equal(pinned(e), 0);
}

static void test_reuse(void **state)
{
	struct env *e = *state;
	uint32_t dram, flash;

	fill_tokens(e, 1, 200);
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 0);
	run_seq(e, 200, &dram, &flash); /* 100 / 16 whole blocks are there */
	assert_int_equal(dram, 96);
	run_seq(e, 200, &dram, &flash);
	assert_int_equal(dram, 192);
	assert_int_equal(flash, 0);
}

/* The last prompt token is never taken from the cache: its logits are needed. */
static void test_last_token(void **state)
{
	struct env *e = *state;
	uint32_t dram, flash;

	fill_tokens(e, 2, 64);
	run_seq(e, 64, &dram, &flash);
	run_seq(e, 64, &dram, &flash);
	assert_int_equal(dram, 48);
	run_seq(e, 63, &dram, &flash);
	assert_int_equal(dram, 48);
}

/* A block is shared only when all tokens before it are the same. */
static void test_chain(void **state)
{
	struct env *e = *state;
	uint32_t dram, flash;

	fill_tokens(e, 3, 100);
	run_seq(e, 100, &dram, &flash);
	e->tok[20]++;
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 16);
	e->tok[0]++;
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 0);
}

static void test_tenants(void **state)
{
	struct env *e = *state;
	uint32_t dram, flash;

	fill_tokens(e, 4, 100);
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(kv_root(e->kv, "other", 5, e->root), 0);
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 0);
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 96);
}

/* Two sequences compute the same prompt at once: the second one's copy goes away. */
static void test_duplicate(void **state)
{
	struct env *e = *state;
	struct kv_seq a, b;
	struct kv_stat st;

	fill_tokens(e, 5, 64);
	open_ok(e, &a, 64, 64);
	open_ok(e, &b, 64, 64);
	write_blocks(e, &a, 0, 64);
	write_blocks(e, &b, 0, 64);
	kv_seq_commit(e->kv, &a, e->tok, 64);
	kv_seq_commit(e->kv, &b, e->tok, 64);
	check_blocks(e, &b, 64);
	kv_seq_close(e->kv, &a);
	kv_seq_close(e->kv, &b);
	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	assert_int_equal(st.space.blocks, 4);
	assert_int_equal(st.space.pinned, 0);
}

/* Blocks that were not filled leave nothing behind. */
static void test_unfilled(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	struct kv_stat st;

	fill_tokens(e, 6, 64);
	open_ok(e, &s, 40, 300);
	write_blocks(e, &s, 0, 40);
	kv_seq_commit(e->kv, &s, e->tok, 40);
	kv_seq_close(e->kv, &s);
	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	assert_int_equal(st.space.blocks, 2);
}

/* All or nothing: a sequence that does not fit holds nothing. */
static void test_rollback(void **state)
{
	struct env *e = *state;
	struct kv_seq a, b;

	fill_tokens(e, 7, 512);
	open_ok(e, &a, 100, 20 * B);
	assert_int_equal(pinned(e), 20);
	assert_int_equal(try_open(e, &b, 100, 20 * B), -ENOSPC);
	assert_int_equal(pinned(e), 20);
	kv_seq_close(e->kv, &a);
	open_ok(e, &b, 100, 20 * B);
	kv_seq_close(e->kv, &b);
	assert_int_equal(try_open(e, &b, 100, (DRAM_BLOCKS + 1) * B), -E2BIG);
	assert_int_equal(pinned(e), 0);
}

/* A full house can be used to the last block. */
static void test_capacity(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t i, dram, flash;

	for (i = 0; i < 10; i++) {
		fill_tokens(e, 20 + i, 100);
		run_seq(e, 100, &dram, &flash);
	}
	assert_int_equal(kv_capacity_blocks(e->kv), DRAM_BLOCKS);
	open_ok(e, &s, 16, DRAM_BLOCKS * B);
	kv_seq_close(e->kv, &s);
}

static void test_no_cache(void **state)
{
	struct env *e = *state;
	struct kv_stat st;
	uint32_t dram, flash;

	fill_tokens(e, 8, 100);
	run_seq(e, 100, &dram, &flash);
	run_seq(e, 100, &dram, &flash);
	assert_int_equal(dram, 0);
	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	assert_int_equal(st.space.blocks, 0);
}

/* Play a sequence whose operations come into effect on the way, as the scheduler does. */
static void run_drops(struct env *e, uint32_t n, struct kv_seq *seen)
{
	struct kv_seq s;
	uint32_t pos, until;

	open_ok(e, &s, n, n);
	*seen = s;
	write_blocks(e, &s, s.n_shared, n);
	for (pos = kv_seq_cached(e->kv, &s); pos < n; pos = until < n ? until : n) {
		until = kv_seq_view(e->kv, &s, pos);
		kv_seq_commit(e->kv, &s, e->tok, until < n ? until : n);
	}
	seen->n_blocks = pinned(e); /* what is left at the end */
	kv_seq_close(e->kv, &s);
	assert_int_equal(pinned(e), 0);
}

static void set_op(struct env *e, uint32_t start, uint32_t end, uint32_t at)
{
	e->op[e->n_ops++] = (struct hist_op){
		.at = at, .start = start, .end = end, .repos = true,
	};
	hist_sort(e->op, e->n_ops);
	if (hist_check(e->op, e->n_ops, 4096, e->err))
		fail_msg("%s", e->err);
}

/* Dropped blocks are not needed, the block with token @at is not shared any more. */
static void test_drop(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t dram, flash;

	fill_tokens(e, 9, 400);
	run_seq(e, 200, &dram, &flash); /* 12 blocks */
	set_op(e, 30, 96, 200);		/* blocks 2 to 5, and a bit of 1 */
	open_ok(e, &s, 220, 220);
	assert_int_equal(s.n_shared, 12);
	assert_int_equal(s.tokens_dram, 12 * B); /* token 192 is still to see them */
	kv_seq_close(e->kv, &s);

	run_drops(e, 240, &s);
	assert_int_equal(s.tokens_dram, 12 * B);
	assert_int_equal(s.tokens_skipped, 0);
	assert_int_equal(s.n_blocks, 15 - 4); /* the four went when they were dropped */

	open_ok(e, &s, 260, 260);
	assert_int_equal(s.n_shared, 15);
	assert_int_equal(s.tokens_dram, 11 * B);
	assert_int_equal(s.tokens_skipped, 4 * B);
	assert_null(s.addr[2]);
	assert_null(s.addr[5]);
	assert_non_null(s.addr[1]);
	assert_non_null(s.addr[6]);
	assert_int_equal(pinned(e), 17 - 4);
	assert_int_equal(kv_seq_view(e->kv, &s, kv_seq_cached(e->kv, &s)), UINT32_MAX);
	assert_int_equal(s.hidden, 66);
	assert_int_equal(s.moved, 66);
	assert_int_equal(s.n_segs, 3);
	kv_seq_close(e->kv, &s);
}

/* The same tokens with another history are other blocks, from the block with @at on. */
static void test_histories(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t dram, flash, i;

	fill_tokens(e, 10, 400);
	set_op(e, 16, 64, 100);
	run_drops(e, 200, &s);
	assert_int_equal(s.tokens_dram, 0);
	for (i = 0; i < 4; i++) {
		e->n_ops = 0;
		if (i == 1)
			set_op(e, 16, 64, 101);
		if (i == 2)
			set_op(e, 16, 65, 100);
		if (i == 3) {
			set_op(e, 16, 64, 100);
			e->op[0].repos = false;
		}
		run_drops(e, 200, &s);
		assert_int_equal(s.tokens_dram, 6 * B); /* up to token 96 all is alike */
		assert_int_equal(s.n_shared, 6);
	}
	e->n_ops = 0;
	run_seq(e, 200, &dram, &flash);
	assert_int_equal(dram, 12 * B);
}

/* What is missing may need blocks that are dropped later on. */
static void test_drop_missing(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t dram, flash;

	fill_tokens(e, 11, 400);
	run_seq(e, 100, &dram, &flash); /* 6 blocks */
	set_op(e, 16, 64, 150);
	open_ok(e, &s, 200, 200);
	assert_int_equal(s.n_shared, 6); /* tokens 96 to 149 see [16, 64) */
	assert_int_equal(s.tokens_skipped, 0);
	assert_non_null(s.addr[1]);
	kv_seq_close(e->kv, &s);
	assert_int_equal(pinned(e), 0);
}

/* A history may be longer than memory, if what is seen of it is not. */
static void test_drop_capacity(void **state)
{
	struct env *e = *state;
	struct kv_seq s;
	uint32_t n;

	fill_tokens(e, 12, 1000);
	run_drops(e, 30 * B, &s);
	set_op(e, 2 * B, 28 * B, 29 * B);
	run_drops(e, 31 * B, &s);
	for (n = 40; n <= 52; n += 4) {
		run_drops(e, n * B, &s);
		assert_int_equal(s.tokens_skipped, 26 * B);
		assert_int_equal(s.tokens_dram, ((n == 40 ? 31 : n - 4) - 26) * B);
	}
	e->n_ops = 0;
	assert_int_equal(try_open(e, &s, 52 * B, 52 * B), -E2BIG);
}

/* Segments that follow on each other with one shift are the same as one. */
static uint32_t join_segs(const struct kv_seq *s, struct hist_seg *out)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n_segs; i++) {
		struct hist_seg *last = n ? &out[n - 1] : NULL;

		if (last && last->first + last->len == s->seg[i].tok &&
		    last->shift == s->seg[i].shift)
			last->len += s->seg[i].len;
		else
			out[n++] = (struct hist_seg){ s->seg[i].tok, s->seg[i].len,
						      s->seg[i].shift };
	}
	return n;
}

static bool random_ops(struct env *e, uint32_t n_prompt)
{
	uint32_t i;

	e->n_ops = 1 + rand() % 4;
	for (i = 0; i < e->n_ops; i++) {
		struct hist_op *o = &e->op[i];

		o->start = rand() % n_prompt;
		o->end = o->start + 1 + rand() % 40;
		o->at = o->end + (rand() % 2) * (rand() % 60);
		o->repos = rand() % 2;
	}
	hist_sort(e->op, e->n_ops);
	return hist_check(e->op, e->n_ops, n_prompt, e->err) == 0;
}

/* What the engine makes of operations is what hist.c computes from them, in each view. */
static void test_views(void **state)
{
	const uint32_t n_prompt = 250, n_total = 300;
	struct hist_seg got[HIST_SEGS(4)], want[HIST_SEGS(4)];
	struct env *e = *state;
	uint32_t tried, pos, views = 0;
	struct kv_seq s;

	fill_tokens(e, 13, n_total);
	srand(1);
	for (tried = 0; tried < 2000;) {
		if (!random_ops(e, n_prompt))
			continue;
		tried++;
		open_ok(e, &s, n_prompt, n_total);
		for (pos = 0; pos != UINT32_MAX; views++) {
			uint32_t until = kv_seq_view(e->kv, &s, pos), n;

			assert_true(until > pos);
			n = hist_segs(e->op, s.n_view, s.n_blocks * B, want);
			/* the engine has the history up to the next operation */
			if (until != UINT32_MAX)
				n = hist_segs(e->op, s.n_view, until, want);
			assert_int_equal(join_segs(&s, got), n);
			assert_memory_equal(got, want, n * sizeof(want[0]));
			pos = until;
		}
		assert_int_equal(s.n_view, e->n_ops);
		kv_seq_close(e->kv, &s);
	}
	assert_true(views > 3000);
	assert_int_equal(pinned(e), 0);
}

static void test_spill(void **state)
{
	struct env *e = *state;
	uint32_t i, dram, flash;

	for (i = 0; i < 8; i++) {
		fill_tokens(e, 40 + i, 200);
		run_seq(e, 200, &dram, &flash);
		assert_int_equal(dram + flash, 0);
	}
	for (i = 0; i < 8; i++) {
		fill_tokens(e, 40 + i, 200);
		run_seq(e, 200, &dram, &flash);
		assert_int_equal(dram + flash, 192);
		if (i == 0)
			assert_int_equal(flash, 192);
	}
}

/* Bytes on flash that are not what was written are a miss, never data. */
static void test_damaged_flash(void **state)
{
	struct env *e = *state;
	static char junk[1 << 20];
	struct kv_stat st;
	uint32_t i, dram, flash;
	int fd;

	for (i = 0; i < 8; i++) {
		fill_tokens(e, 60 + i, 200);
		run_seq(e, 200, &dram, &flash);
	}
	memset(junk, 0x5a, sizeof(junk));
	fd = open(flash_path, O_WRONLY);
	assert_true(fd >= 0);
	for (i = 0; i < 16; i++)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), (off_t)i << 20), sizeof(junk));
	assert_int_equal(fsync(fd), 0);
	close(fd);
	fill_tokens(e, 60, 200);
	/*
	 * Each run checks what it was given.  A damaged block is found, and its key
	 * freed, only when a reload reaches it, so the cache is whole again after as
	 * many runs as there are blocks.
	 */
	for (i = 0; i < 13; i++) {
		run_seq(e, 200, &dram, &flash);
		assert_int_equal(flash, 0);
	}
	assert_int_equal(dram, 192);
	assert_int_equal(kv_get_stat(e->kv, &st), 0);
	assert_true(st.reload_failed > 0);
}

/* Sinks 20 are in two blocks, two are chosen: with three more one is left out. */
static void test_sparse_from(void **state)
{
	const struct exec_sparse how = { .blocks = 2, .sinks = 20, .window = 32 };
	const struct exec_sparse all = { .blocks = UINT32_MAX, .sinks = 1, .window = 1 };
	const struct hist_op early = { .at = 30, .start = 1, .end = 2 };
	const struct hist_op late = { .at = 300, .start = 1, .end = 2 };

	(void)state;
	/* blocks at 32, 48 and 64 end at 80, the window begins there */
	assert_int_equal(kv_sparse_from(&how, B, NULL, 0), 80 + 32 - 1);
	assert_int_equal(kv_sparse_from(&how, B, &late, 1), 80 + 32 - 1);
	assert_int_equal(kv_sparse_from(&how, B, &early, 1), 30);
	assert_int_equal(kv_sparse_from(&all, B, NULL, 0), UINT32_MAX);
}

/* Without an executor there are no centroids. */
static void test_sparse_refused(void **state)
{
	const struct exec_sparse how = { .blocks = 2, .sinks = 20, .window = 32 };
	struct env *e = *state;
	struct kv_need need = { .tokens = e->tok, .n_prompt = 40, .n_total = 50, .root = e->root,
				.sparse = &how };
	struct kv_seq s;

	assert_int_equal(kv_seq_open(e->kv, &s, &need, e->err), -EOPNOTSUPP);
	assert_int_equal(pinned(e), 0);
}

static void test_errors(void **state)
{
	struct kv_config cfg = { .block_payload = 3u << 20,
				 .block_tokens = 16,
				 .planes = 1,
				 .model = "x",
				 .dtype_name = "f16",
				 .layout = "any",
				 .url = "embed:?dram=8M" };
	char err[KV_ERR_LEN];
	struct kv *kv;

	(void)state;
	assert_int_equal(kv_open(&cfg, &kv, err), -EINVAL);
	assert_non_null(strstr(err, "--block-tokens"));
	cfg.block_payload = 4096;
	cfg.url = "embed:?dram=8M&flash=/nonexistent/kv&flash_size=8M";
	assert_int_equal(kv_open(&cfg, &kv, err), -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/kv"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tenants, setup, teardown),
		cmocka_unit_test_setup_teardown(test_duplicate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfilled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rollback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_capacity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_cache, setup_no_cache, teardown),
		cmocka_unit_test_setup_teardown(test_views, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_histories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop_capacity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spill, setup_flash, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_flash, setup_flash_quiet,
						teardown),
		cmocka_unit_test(test_sparse_from),
		cmocka_unit_test_setup_teardown(test_sparse_refused, setup, teardown),
		cmocka_unit_test(test_errors),
	};
	int fd, ret;

	log_init(false);
	fd = mkstemp(flash_path);
	if (fd < 0) {
		strcpy(flash_path, "/tmp/serve_kv.XXXXXX");
		fd = mkstemp(flash_path);
	}
	if (fd >= 0)
		close(fd);
	ret = cmocka_run_group_tests_name("serve_kv", tests, NULL, NULL);
	unlink(flash_path);
	return ret;
}
