// SPDX-License-Identifier: MIT
/*
 * serve_hist.c - histories (daemon/kv/hist.c) and their keys against a model
 *
 * The model knows nothing of spans, shifts or keys.  It plays a history token by
 * token: for each it looks at each earlier one, asks whether an operation in effect
 * has dropped it and how far it has been moved, and folds what that one had become
 * (its content) and where it is read into a hash.  That is what the bytes of its KV
 * depend on.  Random sessions that share tokens and operations then take turns,
 * a block each, on one index, as hawkd does: a block whose key is there is served
 * from it, and its content must be what this session would have computed.
 *
 *	HAWK_SEED=n	seed
 *	HAWK_OPS=n	turns (1000000, a tenth of that under a sanitizer)
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/hist.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNS_DEFAULT 100000
#else
#define TURNS_DEFAULT 1000000
#endif

#define B	 4u    /* tokens of a block */
#define LEN	 48u   /* tokens of a session */
#define OPS	 4u    /* operations of a session at most */
#define SESSIONS 16u   /* that run at once */
#define INDEX	 4096u /* blocks in the index, a power of two */

static uint64_t rng_state;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint32_t rnd(uint32_t n)
{
	rng_state += 0x9e3779b97f4a7c15ull;
	return mix(rng_state) % n;
}

/* ---- the model ---- */

struct session {
	uint8_t root[HAWK_KEY_BYTES];
	uint32_t tenant;
	int32_t token[LEN];
	struct hist_op op[OPS];
	uint32_t n_ops;
	struct hawk_key_op key_op[2 * OPS];
	uint32_t n_key_ops;
	uint64_t content[LEN]; /* what token i's KV is a function of */
	uint32_t pos[LEN];     /* the position that its key was stored with */
	uint32_t done;	       /* tokens played */
	uint8_t key[HAWK_KEY_BYTES];
};

/* Does token @q see token @i, and at which position? In the words of the interface. */
static bool model_sees(const struct session *s, uint32_t q, uint32_t i, uint32_t *where)
{
	uint32_t k, moved = 0;

	for (k = 0; k < s->n_ops; k++) {
		const struct hist_op *o = &s->op[k];

		if (o->at > q)
			continue; /* not yet */
		if (o->start <= i && i < o->end)
			return false;
		if (o->repos && o->end <= i && i < o->at)
			moved += o->end - o->start;
	}
	*where = s->pos[i] - moved;
	return true;
}

static void model_play(struct session *s, uint32_t q)
{
	uint64_t h = mix(s->token[q] + 1) ^ mix(s->tenant + 77);
	uint32_t i, where, last = UINT32_MAX, k;

	s->pos[q] = q;
	for (k = 0; k < s->n_ops; k++)
		if (s->op[k].at <= q && s->op[k].repos)
			s->pos[q] -= s->op[k].end - s->op[k].start;
	for (i = 0; i < q; i++)
		if (model_sees(s, q, i, &where)) {
			/* order is kept and no two tokens stand at one place */
			if (last != UINT32_MAX && where <= last)
				fail_msg("token %u at position %u, the one before at %u", i, where,
					 last);
			last = where;
			h = mix(h ^ s->content[i]) + mix(where + 1);
		}
	assert_true(last == UINT32_MAX || s->pos[q] > last);
	s->content[q] = mix(h ^ s->pos[q]);
}

/* ---- what is tested: segments and sums say the same as the model ---- */

static void check_view(const struct session *s, uint32_t q)
{
	uint32_t n = hist_in_effect(s->op, s->n_ops, q), i, k, where, seen = 0;
	struct hist_seg seg[HIST_SEGS(OPS)];
	uint32_t n_segs = hist_segs(s->op, n, LEN, seg);

	assert_true(n_segs <= HIST_SEGS(n));
	for (i = 0, k = 0; i <= q; i++) {
		bool sees = i == q || model_sees(s, q, i, &where);

		while (k < n_segs && seg[k].first + seg[k].len <= i)
			k++;
		assert_int_equal(sees, k < n_segs && seg[k].first <= i);
		if (sees && i < q)
			assert_int_equal(where, s->pos[i] - seg[k].shift);
		seen += sees;
	}
	assert_int_equal(seen, q + 1 - hist_dropped(s->op, n));
	assert_int_equal(s->pos[q], q - hist_moved(s->op, n));
	assert_int_equal(seg[n_segs - 1].shift, 0); /* new tokens land there */
	assert_true(seg[n_segs - 1].first <= q);
	for (k = 1; k < n_segs; k++)
		assert_true(seg[k].first > seg[k - 1].first + seg[k - 1].len ||
			    seg[k].shift != seg[k - 1].shift);
	for (i = 0; i + B <= q; i += B) {
		bool hidden = true;

		for (k = i; k < i + B; k++)
			hidden = hidden && !model_sees(s, q, k, &where);
		assert_int_equal(hidden, hist_hides(s->op, n, i, B));
	}
}

/* ---- sessions that often have the same tokens and the same operations ---- */

static void make_ops(struct session *s)
{
	char err[HIST_ERR_LEN];
	uint32_t tries;

	s->n_ops = 0;
	for (tries = rnd(6); tries && s->n_ops < OPS; tries--) {
		struct hist_op *o = &s->op[s->n_ops];
		struct hist_op sorted[OPS];
		uint32_t n = s->n_ops + 1;

		o->start = rnd(6) * 3;
		o->end = o->start + 1 + rnd(3) * 4;
		o->at = o->end + rnd(3) * 5;
		o->repos = rnd(2);
		memcpy(sorted, s->op, n * sizeof(*o));
		hist_sort(sorted, n);
		if (hist_check(sorted, n, LEN, err))
			continue;
		memcpy(s->op, sorted, n * sizeof(*o));
		s->n_ops = n;
	}
	s->n_key_ops = hist_key_ops(s->op, s->n_ops, s->key_op);
}

static void session_start(struct session *s, uint8_t (*root)[HAWK_KEY_BYTES])
{
	uint32_t text = rnd(2), i;

	memset(s, 0, sizeof(*s));
	s->tenant = rnd(8) == 0;
	memcpy(s->root, root[s->tenant], HAWK_KEY_BYTES);
	for (i = 0; i < LEN; i++)
		s->token[i] = text * 100 + i % 7;
	if (rnd(4) == 0)
		s->token[rnd(LEN)]++;
	make_ops(s);
}

/* ---- the index ---- */

struct entry {
	uint8_t key[HAWK_KEY_BYTES];
	uint64_t content[B];
	bool used;
};

struct sim {
	struct entry index[INDEX];
	struct session s[SESSIONS];
	uint8_t root[2][HAWK_KEY_BYTES];
	uint64_t hits, misses, with_ops, done;
};

/* A session plays its next block; the index has it or gets it. */
static void sim_turn(struct sim *m)
{
	struct session *s = &m->s[rnd(SESSIONS)];
	uint32_t i, first = s->done, n_ops = 0;
	struct entry *e;
	size_t slot;

	if (first == LEN) {
		session_start(s, m->root);
		m->done++;
		return;
	}
	for (i = first; i < first + B; i++) {
		model_play(s, i);
		if (rnd(64) == 0)
			check_view(s, i);
	}
	s->done += B;
	while (n_ops < s->n_key_ops && s->key_op[n_ops].at < s->done)
		n_ops++;
	hawk_key_next(s->root, first ? s->key : NULL, s->token + first, B, s->key_op, n_ops,
		      s->key);
	memcpy(&slot, s->key, sizeof(slot));
	e = &m->index[slot & (INDEX - 1)];
	if (e->used && !memcmp(e->key, s->key, HAWK_KEY_BYTES)) {
		m->hits++;
		m->with_ops += n_ops > 0;
		if (memcmp(e->content, s->content + first, sizeof(e->content)))
			fail_msg(
				"a session with %u operations was served the block of tokens %u to %u of another history",
				s->n_ops, first, first + B - 1);
		return;
	}
	m->misses++; /* computed, and put; what was in the slot is forgotten */
	e->used = true;
	memcpy(e->key, s->key, HAWK_KEY_BYTES);
	memcpy(e->content, s->content + first, sizeof(e->content));
}

static void test_interleavings(void **state)
{
	struct hawk_key_params p = { .model = "m", .block_tokens = B };
	uint64_t n = getenv("HAWK_OPS") ? strtoull(getenv("HAWK_OPS"), NULL, 0) : TURNS_DEFAULT, i;
	struct sim *m = calloc(1, sizeof(*m));

	(void)state;
	rng_state = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 1;
	fprintf(stderr, "# HAWK_SEED=%llu HAWK_OPS=%llu\n", (unsigned long long)rng_state,
		(unsigned long long)n);
	for (i = 0; i < 2; i++) {
		p.salt = i ? "b" : "a";
		p.salt_len = 1;
		assert_int_equal(hawk_key_root(&p, m->root[i]), 0);
	}
	for (i = 0; i < SESSIONS; i++)
		session_start(&m->s[i], m->root);
	for (i = 0; i < n; i++)
		sim_turn(m);
	fprintf(stderr,
		"# %llu turns of %llu sessions: %llu blocks computed, %llu served, %llu of them after a drop\n",
		(unsigned long long)n, (unsigned long long)m->done + SESSIONS,
		(unsigned long long)m->misses, (unsigned long long)m->hits,
		(unsigned long long)m->with_ops);
	/* it has been tried, not avoided */
	assert_true(m->hits > n / 10 && m->misses > n / 20 && m->with_ops > n / 50);
	free(m);
}

/* ---- one of each, by hand ---- */

static void test_segments(void **state)
{
	struct hist_op op[] = { { .at = 50, .start = 30, .end = 40, .repos = true },
				{ .at = 100, .start = 10, .end = 20, .repos = true } };
	struct hist_seg seg[HIST_SEGS(2)];

	(void)state;
	assert_int_equal(hist_segs(op, 0, 120, seg), 1);
	assert_int_equal(hist_segs(op, 1, 120, seg), 3);
	assert_int_equal(seg[1].first, 40);
	assert_int_equal(seg[1].len, 10);
	assert_int_equal(seg[1].shift, 10);
	assert_int_equal(seg[2].first, 50);
	assert_int_equal(seg[2].shift, 0);
	assert_int_equal(hist_segs(op, 2, 120, seg), 5);
	assert_int_equal(seg[1].first, 20);
	assert_int_equal(seg[1].shift, 10);
	assert_int_equal(seg[2].first, 40);
	assert_int_equal(seg[2].shift, 20);
	assert_int_equal(seg[3].first, 50);
	assert_int_equal(seg[3].shift, 10);
	assert_int_equal(seg[4].first, 100);
	assert_int_equal(seg[4].shift, 0);
	assert_int_equal(hist_shifted(op, 2, 110), 10 + 10 + 50);
	/* the highest position is that of token 99, before the second drop */
	assert_int_equal(hist_positions(op, 2, 101), 90);
	assert_int_equal(hist_positions(op, 2, 120), 100);
	/* at the end of the span: as if it had never been, one piece to each side */
	op[0] = (struct hist_op){ .at = 20, .start = 10, .end = 20, .repos = true };
	assert_int_equal(hist_segs(op, 1, 120, seg), 2);
	assert_int_equal(seg[1].first, 20);
	assert_int_equal(seg[1].shift, 0);
}

static void refuse(struct hist_op a, struct hist_op b, const char *why)
{
	struct hist_op op[] = { a, b };
	char err[HIST_ERR_LEN] = "";

	hist_sort(op, 2);
	assert_int_equal(hist_check(op, 2, 100, err), -EINVAL);
	if (!strstr(err, why))
		fail_msg("\"%s\" does not say \"%s\"", err, why);
}

static void test_refused(void **state)
{
	const struct hist_op good = { .at = 60, .start = 40, .end = 50 };
	char err[HIST_ERR_LEN];

	(void)state;
	assert_int_equal(hist_check(&good, 1, 100, err), 0);
	assert_int_equal(hist_check(&good, 1, 61, err), 0);
	assert_int_equal(hist_check(&good, 1, 60, err), -EINVAL);
	refuse(good, (struct hist_op){ .at = 20, .start = 10, .end = 10 }, "empty");
	refuse(good, (struct hist_op){ .at = 20, .start = 12, .end = 10 }, "ends before");
	refuse(good, (struct hist_op){ .at = 99, .start = 90, .end = 100 }, "last one is needed");
	refuse(good, (struct hist_op){ .at = 100, .start = 10, .end = 20 }, "at most 99");
	refuse(good, (struct hist_op){ .at = 19, .start = 10, .end = 20 }, "before its end");
	refuse(good, (struct hist_op){ .at = 50, .start = 30, .end = 41 }, "overlap");
	refuse(good, (struct hist_op){ .at = 99, .start = 49, .end = 60 }, "overlap");
	refuse(good, good, "overlap");
	refuse(good, (struct hist_op){ .at = 10, .start = 0, .end = 10 }, "nothing would be left");
	refuse((struct hist_op){ .at = 60, .start = 40, .end = 60 },
	       (struct hist_op){ .at = 60, .start = 0, .end = 40 }, "nothing would be left");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_interleavings),
	};

	return cmocka_run_group_tests_name("serve_hist", tests, NULL, NULL);
}
