// SPDX-License-Identifier: MIT
/*
 * lib_slices.c - spaces of tensor-parallel ranks: each keeps its own head groups
 *
 * All ranks are told the same LIDs and talk to nobody.
 */
#include "libfixture.h"

#define MIB	(1ull << 20)
#define RANKS	8u
#define ROWS	64u		/* rows that a head picks */

static struct hawk_kv *open_rank(struct fx *f, uint32_t rank, uint32_t ranks, uint32_t heads)
{
	struct hawk_kv_params p = fx_params(f);
	struct hawk_kv *kv;

	p.head_groups = heads;
	p.tp_rank = rank;
	p.tp_degree = ranks;
	p.quota[f->dram].max_bytes = 4 * MIB;
	assert_ok(hawk_kv_create(f->h, &p, &kv));
	return kv;
}

/* ALLOC and PUT: the item's status. */
static int keep(struct hawk_kv *kv, uint64_t lid)
{
	struct hawk_item it = { .lid = lid };

	if (hawk_alloc(kv, &it, 1, NULL) != 1)
		return it.status;
	assert_int_equal(hawk_put(kv, &it, 1, NULL), 1);
	return 0;
}

static uint64_t lid(uint32_t head, uint32_t row)
{
	return HAWK_LID(1, 0, head, row * FX_TOKENS);
}

static void refusals(void **state)
{
	struct hawk_kv_params p;
	struct hawk_kv *kv;
	struct fx f;

	(void)state;
	fx_open(&f, 8 * MIB, 0);
	p = fx_params(&f);
	p.head_groups = 8;
	p.tp_degree = 3;	/* does not divide */
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	p.tp_degree = 4;
	p.tp_rank = 4;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	p.tp_degree = 0;
	p.tp_rank = 1;
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	p.tp_degree = 16;	/* more ranks than head groups */
	assert_int_equal(hawk_kv_create(f.h, &p, &kv), -EINVAL);
	fx_close(&f);
}

/* Rank 1 of 4 with 8 head groups keeps 2 and 3; what is another's is not there. */
static void another_ranks_blocks(void **state)
{
	struct hawk_draft_params draft = { .slots = 2 * FX_TOKENS, .planes = 1, .token_bytes = 16 };
	struct hawk_space_info info;
	struct hawk_drafts *d;
	struct hawk_item it;
	struct hawk_kv *kv;
	struct fx f;
	uint32_t h;

	(void)state;
	fx_open(&f, 8 * MIB, 0);
	kv = open_rank(&f, 1, 4, 8);
	assert_ok(hawk_kv_info(kv, &info));
	assert_int_equal(info.tp_rank, 1);
	assert_int_equal(info.tp_degree, 4);
	assert_int_equal(info.seqs | info.segs | info.token_bytes | info.planes, 0);
	/* drafts are of its own head groups, too */
	assert_ok(hawk_draft_open(kv, &draft, &d));
	assert_int_equal((uint8_t *)hawk_draft_block(d, 1, 0) - (uint8_t *)hawk_draft_block(d, 0, 0),
			 info.layers * 2 * info.block_bytes);
	hawk_draft_close(d);
	for (h = 0; h < 8; h++) {
		bool own = h == 2 || h == 3;

		assert_int_equal(keep(kv, lid(h, 0)), own ? 0 : -EREMOTE);
		assert_int_equal(!hawk_translate(kv, lid(h, 0)), !own);
		assert_int_equal(!hawk_translate_slow(kv, lid(h, 0)), !own);
		it = (struct hawk_item) { .lid = lid(h, 0) };
		assert_int_equal(hawk_pin(kv, &it, 1), own);
		assert_int_equal(it.status, own ? 0 : -ENOENT);
		it = (struct hawk_item) { .lid = lid(h, 0) };
		assert_int_equal(hawk_unpin(kv, &it, 1), own);
		it = (struct hawk_item) { .lid = lid(h, 0) };
		assert_int_equal(hawk_free(kv, &it, 1), own);
		assert_int_equal(it.status, own ? 0 : -ENOENT);
	}
	assert_int_equal(keep(kv, lid(2, 1)), 0);
	for (h = 0; h < 8; h++) {
		bool own = h == 2 || h == 3;

		it = (struct hawk_item) { .lid = lid(2, 1), .arg = lid(h, 5) };
		assert_int_equal(hawk_fork(kv, &it, 1), own);
		assert_int_equal(it.status, own ? 0 : -EREMOTE);
	}
	assert_int_equal(keep(kv, lid(8, 0)), -EINVAL);		/* no such head group */
	hawk_kv_close(kv);
	fx_close(&f);
}

/*
 * Each head group picks 64 rows, 50 of them the same: of what all pick 68.4 % is
 * duplicate, as in dhisparse.md (68.2 %).  Row @i of head @h.
 */
static uint32_t picked(uint32_t h, uint32_t i)
{
	return i < 50 ? i * 7 : 1000 + h * 100 + i;
}

static uint64_t bytes_of(struct hawk_kv *kv)
{
	struct hawk_stats st;

	assert_ok(hawk_kv_stats(kv, &st));
	return st.blocks * FX_BLOCK;
}

/*
 * What ranks need without slices: a row that any head picks is a row of the table that
 * all share, so each rank keeps its part of every row.
 */
static uint64_t bytes_of_union(struct fx *f, uint32_t rank)
{
	struct hawk_kv *kv = open_rank(f, rank, RANKS, RANKS);
	uint32_t h, i;
	uint64_t bytes;
	int ret;

	for (h = 0; h < RANKS; h++)
		for (i = 0; i < ROWS; i++) {
			ret = keep(kv, lid(rank, picked(h, i)));
			assert_true(!ret || ret == -EEXIST);
		}
	bytes = bytes_of(kv);
	hawk_kv_close(kv);
	return bytes;
}

static void memory_per_rank(void **state)
{
	uint64_t sliced, all;
	uint32_t rank, h, i;
	struct hawk_kv *kv;
	struct fx f;

	(void)state;
	fx_open(&f, 64 * MIB, 0);
	for (rank = 0; rank < RANKS; rank++) {
		kv = open_rank(&f, rank, RANKS, RANKS);
		for (h = 0; h < RANKS; h++)	/* every rank is told all */
			for (i = 0; i < ROWS; i++)
				assert_int_equal(keep(kv, lid(h, picked(h, i))),
						 h == rank ? 0 : -EREMOTE);
		sliced = bytes_of(kv);
		hawk_kv_close(kv);
		all = bytes_of_union(&f, rank);
		assert_int_equal(sliced, ROWS * (uint64_t)FX_BLOCK);
		assert_true(sliced * 1000 <= all * 430);	/* at least 57 % less */
	}
	print_message("# rank of %u: %llu KiB, union: %llu KiB: %.1f %% less\n", RANKS,
		      (unsigned long long)sliced >> 10, (unsigned long long)all >> 10,
		      100 - 100.0 * (double)sliced / (double)all);
	fx_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(another_ranks_blocks),
		cmocka_unit_test(memory_per_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
