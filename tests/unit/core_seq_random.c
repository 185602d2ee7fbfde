// SPDX-License-Identifier: MIT
/*
 * core_seq_random.c - random operations on sequences against a plain reference
 *
 * The reference keeps a sequence as an array of its history: for each token its id, the
 * position that its key is read at, and whether it is visible.  After each operation the
 * map of what was changed must give exactly that, followed to the bytes of each block;
 * and of blocks exactly those must exist that somebody sees, or has hidden, or copies
 * from at the moment, or has pinned.  Operations that must fail do, and what fails for
 * lack of segments changes nothing.
 *
 *	HAWK_SEED=n	the seed; printed, so that a failure can be repeated
 *	HAWK_OPS=n	operations (100000, a tenth of that under a sanitizer)
 */
#include "core_seq_host.h"

#define SEQS		20
#define SEGS		120	/* for all of them: they run out at times */
#define LEN		150	/* tokens of a sequence */
#define HIDDEN		12
#define PINS		4
#define ROWS		4096	/* of the set of rows; a power of two */
#define SWEEP		64	/* operations between looks at all sequences */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPS_DEFAULT	10000
#else
#define OPS_DEFAULT	100000
#endif

struct token {
	s64 pos;
	u16 id;
	bool visible;
};

struct ref {
	u32 handle;		/* 0: there is none */
	u32 len;
	u32 hidden;
	u32 gen;
	struct token tok[LEN + HIDDEN];
	u32 room_run[HIDDEN];	/* where the hidden ones lie, which no map tells */
	u32 room_tok[HIDDEN];
	u32 copy_run;		/* row that is copied from until the next operation */
	u32 copy_tok;
	u32 copy_len;		/* 0: none */
};

static struct {
	struct seqs x;
	struct ref seq[SEQS];
	struct hawk_ref pin[PINS];
	u64 pin_lid[PINS];	/* 0: none */
	u64 row[ROWS];		/* set of run << 32 | row, plus 1 */
	u64 rng, seed, op;
	u64 done[16], refused, nospace;
	struct hawk_compact compact;
	struct hawk_seg src[LEN];
	bool compacting;
	u64 compacted, stale;
} t;

#define EXPECT(cond)							\
	do {								\
		if (!(cond))						\
			fail_msg("line %d, op %llu, HAWK_SEED=%llu: %s", __LINE__,	\
				 (unsigned long long)t.op,		\
				 (unsigned long long)t.seed, #cond);	\
	} while (0)

static u32 below(u32 n)
{
	return host_below(&t.rng, n);
}

/* ---- is all as the reference says? ---- */

static void check_map(struct ref *r)
{
	static struct hawk_seg seg[LEN];
	struct hawk_seq_map map = { .seq = r->handle, .count = LEN };
	u32 i, j, visible = 0, at = 0;
	struct token *k;

	EXPECT(!hawk_seq_map(t.x.s, &map, seg));
	EXPECT(map.len == r->len && map.hidden == r->hidden && map.gen == r->gen);
	for (i = 0; i < map.count; i++) {
		EXPECT(seg[i].first >= at && seg[i].len);
		for (j = 0; j < seg[i].len; j++) {
			EXPECT(seg[i].first + j < r->len);
			k = &r->tok[seg[i].first + j];
			EXPECT(k->visible);
			EXPECT((s64)seg[i].pos + j - seg[i].shift == k->pos);
			EXPECT(seqs_id(&t.x, seg[i].run, seg[i].tok + j) == k->id);
		}
		at = seg[i].first + seg[i].len;
		visible += seg[i].len;
	}
	EXPECT(visible == map.visible);
	for (i = 0; i < r->len; i++)
		visible -= r->tok[i].visible;
	EXPECT(!visible);
}

static bool row_find(u32 run, u32 row, bool add)
{
	u64 want = ((u64)run << 32 | row) + 1;
	u32 i = hawk_mix(want) & (ROWS - 1);

	for (; t.row[i]; i = (i + 1) & (ROWS - 1))
		if (t.row[i] == want)
			return true;
	if (add)
		t.row[i] = want;
	return false;
}

static u32 rows_add(u32 run, u32 tok, u32 len)
{
	u32 row, n = 0;

	for (row = tok / SEQ_BT; row <= (tok + len - 1) / SEQ_BT; row++)
		n += !row_find(run, row, true);
	return n;
}

/* LIDs in the set of rows; others may be there only if they are pinned. */
static u32 lids_in_rows(void)
{
	struct hawk_space *s = t.x.s;
	u32 i, m, n = 0;

	for (i = 0; i < s->max_blocks; i++) {
		if (s->block[i].state == HAWK_BLOCK_FREE)
			continue;
		for (m = s->block[i].maps; m != HAWK_NONE; m = s->map[m].alias)
			if (row_find(hawk_lid_seq(s->map[m].lid),
				     hawk_lid_tok(s->map[m].lid) / SEQ_BT, false))
				n++;
			else
				EXPECT(s->block[i].pins);
	}
	return n;
}

static void check_rows(void)
{
	static struct hawk_seg seg[LEN];
	u32 i, k, rows = 0;
	struct ref *r;

	memset(t.row, 0, sizeof(t.row));
	for (i = 0; i < SEQS; i++) {
		struct hawk_seq_map map = { .seq = t.seq[i].handle, .count = LEN };

		r = &t.seq[i];
		if (!r->handle)
			continue;
		EXPECT(!hawk_seq_map(t.x.s, &map, seg));
		for (k = 0; k < map.count; k++)
			rows += rows_add(seg[k].run, seg[k].tok, seg[k].len);
		for (k = 0; k < r->hidden; k++)
			rows += rows_add(r->room_run[k], r->room_tok[k], 1);
		if (r->copy_len)
			rows += rows_add(r->copy_run, r->copy_tok, r->copy_len);
	}
	if (t.compacting)
		rows += rows_add(t.compact.run, 0, t.compact.rows * SEQ_BT);
	EXPECT(lids_in_rows() == rows * SEQ_LIDS);
}

/* ---- pins ---- */

static void unpin(u32 i)
{
	u32 freed = 0;

	if (!t.pin_lid[i])
		return;
	EXPECT(!hawk_block_unpin(t.x.s, t.pin[i]));
	t.pin_lid[i] = 0;
	while (hawk_seq_reap(t.x.s, 1 + below(100), &freed))
		;
}

static void pin(struct ref *r)
{
	struct hawk_seq_map map = { .seq = r->handle, .count = LEN };
	static struct hawk_seg seg[LEN];
	u32 i = below(PINS), k;
	u64 vt;

	unpin(i);
	EXPECT(!hawk_seq_map(t.x.s, &map, seg));
	if (!map.count)
		return;
	k = below(map.count);
	t.pin_lid[i] = hawk_lid_block(HAWK_LID(seg[k].run, below(SEQ_LAYERS), 0,
					       seg[k].tok + below(seg[k].len)), SEQ_BT);
	EXPECT(!hawk_block_pin(t.x.s, t.pin_lid[i], t.x.now, &vt, &t.pin[i]));
}

/* What is to be written must not be pinned by others. */
static void unpin_row(u32 run, u32 tok)
{
	u32 i;

	for (i = 0; i < PINS; i++)
		if (t.pin_lid[i] && hawk_lid_seq(t.pin_lid[i]) == run &&
		    hawk_lid_tok(t.pin_lid[i]) / SEQ_BT == tok / SEQ_BT)
			unpin(i);
}

/* ---- operations ---- */

/* May an operation on @r have been refused for lack of nodes or runs? */
static bool nospace_ok(const struct ref *r, u32 nfree, u32 more)
{
	const struct hawk_seqs *q = t.x.s->seqs;
	const struct hawk_seq *sq = &q->seq[r->handle & 0xffff];

	t.nospace++;
	return nfree < q->list[sq->list].n + more || q->free_run == HAWK_NONE;
}

/* What every operation leaves behind. */
static void done(struct ref *r)
{
	r->gen = t.x.op.gen;
	r->copy_len = t.x.op.cow_len;
	r->copy_run = t.x.op.cow_run;
	r->copy_tok = t.x.op.cow_tok;
	t.done[t.x.op.op]++;
}

/* The last tokens in a block that is copied are in the copy now, in the same slots. */
static void room_moved(struct ref *r)
{
	const struct hawk_seq_op *op = &t.x.op;
	u32 k, end = op->cow_tok + op->cow_len;

	for (k = r->hidden; op->cow_len && k-- > 0;) {
		if (r->room_run[k] != op->cow_run || r->room_tok[k] >= end ||
		    r->room_tok[k] < op->cow_tok)
			return;
		end = r->room_tok[k];
		r->room_run[k] = op->run;
		r->room_tok[k] += op->tok - op->cow_len - op->cow_tok;
	}
}

static void op_append(struct ref *r, bool hide)
{
	u32 room = hide ? HIDDEN - r->hidden : LEN - r->len, len = 1 + below(10), i;
	u32 nfree = t.x.s->seqs->nfree, pos = below(1000), at = r->len + r->hidden;
	struct hawk_seq_op op = { .op = hide ? HAWK_SEQ_RESERVE : HAWK_SEQ_APPEND,
				  .seq = r->handle, .len = len, .pos = pos };
	u16 ids[10];
	int ret;

	if (len > room || at + len > LEN)
		return;
	/* mostly as a decoder does it */
	if (at && below(4) && r->tok[at - 1].pos >= 0 && r->tok[at - 1].pos < 1 << 30)
		pos = r->tok[at - 1].pos + 1;
	op.pos = pos;
	ret = seqs_do(&t.x, op);
	if (!hide && r->hidden) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	if (ret == -ENOSPC) {
		EXPECT(nospace_ok(r, nfree, 3));
		return;
	}
	EXPECT(!ret);
	op = t.x.op;
	unpin_row(op.run, op.tok);
	t.x.op = op;
	room_moved(r);
	for (i = 0; i < len; i++) {
		ids[i] = t.x.ids++ % ID_MAX + 1;
		r->tok[at + i] = (struct token){ pos + i, ids[i], true };
		if (hide) {
			r->room_run[r->hidden + i] = op.run;
			r->room_tok[r->hidden + i] = op.tok + i;
		}
	}
	seqs_rows(&t.x, op.run, op.tok, len, ids, op.cow_len, op.cow_run, op.cow_tok);
	if (hide)
		r->hidden += len;
	else
		r->len += len;
	EXPECT(op.len == r->len);
	done(r);
}

static void hidden_cut(struct ref *r, u32 n)
{
	r->hidden -= n;
	memmove(r->room_run, r->room_run + n, r->hidden * sizeof(*r->room_run));
	memmove(r->room_tok, r->room_tok + n, r->hidden * sizeof(*r->room_tok));
}

static void op_advance(struct ref *r)
{
	u32 n = r->hidden ? below(r->hidden + 2) : !below(4);
	int ret = seqs_advance(&t.x, r->handle, n);

	if (!n || n > r->hidden) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	EXPECT(!ret);
	r->len += n;
	hidden_cut(r, n);
	done(r);
}

/* A range, sometimes a bad one.  Return: whether it is good. */
static bool range(const struct ref *r, u32 *start, u32 *end)
{
	*start = below(r->len + !below(8));
	*end = *start + below(r->len / 3 + 3);
	if (!below(8))
		*start = 0;
	if (*end > r->len && below(8))
		*end = r->len;
	return *start < *end && *end <= r->len;
}

static void op_drop(struct ref *r)
{
	u32 i, start, end, nfree = t.x.s->seqs->nfree;
	bool ok = range(r, &start, &end);
	int ret = seqs_drop(&t.x, r->handle, start, end);

	if (!ok) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	if (ret == -ENOSPC) {
		EXPECT(nospace_ok(r, nfree, 1));
		return;
	}
	EXPECT(!ret);
	for (i = start; i < end; i++)
		r->tok[i].visible = false;
	done(r);
}

static bool shift_fits(const struct ref *r, u32 start, u32 end, s32 shift)
{
	u32 i;

	for (i = start; i < end; i++)
		if (r->tok[i].visible && (r->tok[i].pos - shift < 0 ||
					  r->tok[i].pos - shift >= 1ll << 31))
			return false;
	return true;
}

static s32 any_shift(void)
{
	switch (below(12)) {
	case 0:
		return -0x7fffffff - 1;
	case 1:
		return 0x7fffffff;
	default:
		return (s32)below(200) - 120;
	}
}

static void op_repos(struct ref *r)
{
	u32 i, start, end, nfree = t.x.s->seqs->nfree;
	s32 shift = any_shift();
	bool ok = range(r, &start, &end) && shift_fits(r, start, end, shift);
	int ret = seqs_repos(&t.x, r->handle, start, end, shift);

	if (!ok) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	if (ret == -ENOSPC) {
		EXPECT(nospace_ok(r, nfree, 2));
		return;
	}
	EXPECT(!ret);
	for (i = start; i < end; i++)
		r->tok[i].pos -= shift;
	done(r);
}

static void op_truncate(struct ref *r)
{
	u32 len = below(4) ? r->len - below(r->len < 9 ? r->len + 1 : 9) : below(r->len + 2);
	u32 nfree = t.x.s->seqs->nfree;
	int ret = seqs_truncate(&t.x, r->handle, len);

	if (len > r->len) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	if (ret == -ENOSPC) {
		EXPECT(nospace_ok(r, nfree, 0));
		return;
	}
	EXPECT(!ret);
	r->len = len;
	r->hidden = 0;
	done(r);
}

static void op_compose(struct ref *r, struct ref *src)
{
	u32 i, start, end, at = r->len, nfree = t.x.s->seqs->nfree, more;
	s32 shift = below(3) ? 0 : any_shift();
	bool ok = range(src, &start, &end) && shift_fits(src, start, end, shift) && !r->hidden;
	const struct hawk_seqs *q = t.x.s->seqs;
	int ret;

	if (end > start && end - start > LEN - r->len)
		return;
	more = q->list[q->seq[src->handle & 0xffff].list].n;
	ret = seqs_compose(&t.x, r->handle, src->handle, start, end, shift);
	if (!ok) {
		EXPECT(ret == -EINVAL);
		t.refused++;
		return;
	}
	if (ret == -ENOSPC) {
		EXPECT(nospace_ok(r, nfree, more));
		return;
	}
	EXPECT(!ret);
	for (i = start; i < end; i++) {
		r->tok[at] = src->tok[i];
		r->tok[at++].pos -= shift;
	}
	r->len = at;
	src->copy_len = 0;
	done(r);
}

static struct ref *any(bool live)
{
	u32 i, from = below(SEQS);

	for (i = 0; i < SEQS; i++)
		if (!!t.seq[(from + i) % SEQS].handle == live)
			return &t.seq[(from + i) % SEQS];
	return NULL;
}

static void op_new(void)
{
	struct ref *r = any(false);
	u32 handle = seqs_new(&t.x);

	if (!r) {
		EXPECT(t.x.op.status == -ENOSPC);
		t.refused++;
		return;
	}
	EXPECT(handle);
	memset(r, 0, sizeof(*r));
	r->handle = handle;
	done(r);
}

static void op_fork(struct ref *src)
{
	u32 handle, nfree = t.x.s->seqs->nfree;
	struct ref *r = any(false);

	handle = seqs_fork(&t.x, src->handle);
	if (!r) {
		EXPECT(t.x.op.status == -ENOSPC);
		t.refused++;
		return;
	}
	if (!handle) {
		EXPECT(t.x.op.status == -ENOSPC && src->hidden && nospace_ok(src, nfree, 0));
		return;
	}
	src->copy_len = 0;
	*r = *src;
	r->handle = handle;
	r->hidden = 0;
	done(r);
}

static void op_free(struct ref *r)
{
	u32 old = r->handle;

	EXPECT(!seqs_free(&t.x, old));
	r->handle = 0;
	EXPECT(seqs_free(&t.x, old) == -ENOENT);
	t.done[HAWK_SEQ_FREE]++;
}

/* Start a compaction, or end the one that is under way. */
static void op_compact(void)
{
	struct hawk_seq_map map;
	u32 i, freed = 0;
	int ret;

	if (!t.compacting) {
		t.compact.max = 1 + below(LEN);
		t.compact.src = t.src;
		if (hawk_seq_compact_pick(t.x.s, &t.compact))
			return;
		seqs_compact_copy(&t.x, &t.compact);
		t.compacting = true;
		return;
	}
	ret = hawk_seq_compact_end(t.x.s, &t.compact, below(8));
	t.compacting = false;
	while (hawk_seq_reap(t.x.s, 3, &freed))
		;
	if (ret) {
		EXPECT(ret == -ESTALE);
		t.stale++;
		return;
	}
	t.compacted++;
	for (i = 0; i < SEQS; i++) {
		map = (struct hawk_seq_map){ .seq = t.seq[i].handle };
		if (!map.seq)
			continue;
		hawk_seq_map(t.x.s, &map, NULL);
		t.seq[i].gen = map.gen;
	}
}

static void one_op(void)
{
	struct ref *r = any(true);
	u32 pick = below(100);

	if (!r || pick < 4) {
		op_new();
		return;
	}
	if (pick < 10)
		op_fork(r);
	else if (pick < 14)
		op_free(r);
	else if (pick < 38)
		op_append(r, false);
	else if (pick < 46)
		op_append(r, true);
	else if (pick < 52)
		op_advance(r);
	else if (pick < 64)
		op_drop(r);
	else if (pick < 74)
		op_repos(r);
	else if (pick < 82)
		op_truncate(r);
	else if (pick < 92)
		op_compose(r, below(4) ? any(true) : r);
	else if (pick < 94)
		op_compact();
	else if (pick < 97)
		pin(r);
	else
		unpin(below(PINS));
	if (r->handle)
		check_map(r);
}

static void random_ops(void **state)
{
	u64 n = getenv("HAWK_OPS") ? strtoull(getenv("HAWK_OPS"), NULL, 0) : OPS_DEFAULT;
	u32 i;

	(void)state;
	t.seed = getenv("HAWK_SEED") ? strtoull(getenv("HAWK_SEED"), NULL, 0) : 20261130;
	fprintf(stderr, "# HAWK_SEED=%llu HAWK_OPS=%llu\n", (unsigned long long)t.seed,
		(unsigned long long)n);
	t.rng = t.seed;
	seqs_init(&t.x, SEQS, SEGS, t.seed + 1);
	for (t.op = 0; t.op < n; t.op++) {
		one_op();
		check_rows();
		if (t.op % SWEEP)
			continue;
		seqs_check(&t.x);
		for (i = 0; i < SEQS; i++)
			if (t.seq[i].handle)
				check_map(&t.seq[i]);
	}
	fprintf(stderr, "# %llu refused, %llu without segments, %llu compacted, %llu stale\n",
		(unsigned long long)t.refused, (unsigned long long)t.nospace,
		(unsigned long long)t.compacted, (unsigned long long)t.stale);
	assert_true(t.compacted > n / 2000 && t.stale > n / 4000);
	if (t.compacting)
		op_compact();
	for (i = HAWK_SEQ_NEW; i <= HAWK_SEQ_FREE; i++)
		assert_true(t.done[i] > n / 500);
	for (i = 0; i < PINS; i++)
		unpin(i);
	/* their owner ends: nothing is left */
	while (hawk_seq_end_owner(t.x.s, SEQ_OWNER))
		;
	while (hawk_seq_reap(t.x.s, 1000, &i))
		;
	assert_int_equal(seqs_lids(&t.x), 0);
	seqs_check(&t.x);
	seqs_fini(&t.x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
