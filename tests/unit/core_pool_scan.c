// SPDX-License-Identifier: MIT
/*
 * core_pool_scan.c - several threads adopt the chunks of a pool
 *
 * The headers are made by lot: keys that several slots have, each in a version of its own,
 * parents that are not there, flipped bytes, torn pages, headers of former times.  What four
 * threads find of them, in any order, is what one thread finds that goes from the first chunk
 * to the last.  TSan watches (make SAN=thread).
 */
#include <pthread.h>

#include "core_host.h"
#include "../../kmod/core/priv.h"

#define CHUNKS		24u
#define BLOCK		16384u
#define PER		(HAWK_CHUNK_BYTES / BLOCK)
#define SLOTS		(CHUNKS * PER)
#define KEYS		2200u
#define THREADS		4u
#define ROUNDS		6u
#define CHUNK_BYTES	(PER * HAWK_HEADER_BYTES)
#define NOWHERE		(~0ull)

/* A pool as it is found. */
struct image {
	struct hawk_super super;
	struct hawk_identity id;
	struct hawk_record rec[CHUNKS];
	u8 header[CHUNKS * CHUNK_BYTES] __attribute__((aligned(8)));
	u32 order[CHUNKS];	/* in which threads take them */
	u64 seed;
};

/* A run on it. */
struct run {
	struct hawk_engine *e;
	struct hawk_space *s;
	struct hawk_vtlb_entry *vtlb;
	const struct image *im;
	u32 tier;
	u32 next;		/* in image.order; atomic */
	struct hawk_recovery found;
	u64 place[KEYS];	/* where the block of each key lies */
	u64 gen[KEYS];
	u64 page[SLOTS / HAWK_PAGE_HEADERS];	/* to be written anew, rising */
	u32 npages;
};

static void key_of(u32 n, u8 *key)
{
	u64 state = n, word;
	u32 i;

	for (i = 0; i < HAWK_KEY_BYTES; i += sizeof(word)) {
		word = host_rand(&state);
		memcpy(key + i, &word, sizeof(word));
	}
}

/* ---- an image ---- */

static void shuffle(u32 *p, u32 n, u64 *rng)
{
	u32 i, k, was;

	for (i = 0; i < n; i++)
		p[i] = i;
	for (i = n; i > 1; i--) {
		k = host_below(rng, i);
		was = p[i - 1];
		p[i - 1] = p[k];
		p[k] = was;
	}
}

static void slot_make(struct image *im, u32 at, u64 gen, u64 *rng)
{
	u8 *p = im->header + (size_t)at * HAWK_HEADER_BYTES;
	struct hawk_record *r = &im->rec[at / PER];
	struct hawk_header h = {
		.bytes = BLOCK, .space = r->space, .epoch = r->epoch, .gen = gen,
		.slot = (u16)(at % PER),
	};
	u32 key = host_below(rng, 4) ? at % KEYS : host_below(rng, KEYS);
	u32 lot = host_below(rng, 100);

	key_of(key, h.key);
	h.crc = (u32)gen;
	if (key % 16) {
		h.hints = HAWK_BH_PARENT;
		key_of(key - 1, h.parent);
	}
	h.epoch -= lot < 3;	/* of a former time */
	h.gen = lot == 3 ? ~0ull : gen;	/* of the future */
	h.slot ^= lot == 4;
	if (lot < 5 || lot >= 10)	/* else it is empty */
		hawk_header_encode(&h, hawk_pool_id(&im->super), p);
	if (!host_below(rng, 20))
		p[host_below(rng, HAWK_HEADER_BYTES)] ^= 1u << host_below(rng, 8);
}

/* Sectors that are of another page, and whole pages of nothing that was written. */
static void regions_damage(struct image *im, u64 *rng)
{
	u32 i, k;

	for (i = 0; i < sizeof(im->header); i += 512)
		if (!host_below(rng, 40))
			memcpy(im->header + i, im->header + host_below(rng, sizeof(im->header) / 512) *
			       512u, 512);
	for (i = 0; i < sizeof(im->header); i += HAWK_POOL_PAGE)
		if (!host_below(rng, 15))
			for (k = 0; k < HAWK_POOL_PAGE; k++)
				im->header[i + k] = (u8)host_rand(rng);
}

static struct image *image_make(u64 seed)
{
	static u32 gen[SLOTS];
	struct image *im = calloc(1, sizeof(*im));
	struct hawk_space_create c = {
		.block_bytes = BLOCK, .block_tokens = 16, .layers = 1, .head_groups = 1,
		.name = "scan",
	};
	u64 rng = seed;
	u32 i;

	assert_non_null(im);
	im->seed = seed;
	im->super.bytes = (CHUNKS + 2ull) * HAWK_CHUNK_BYTES;
	im->super.slot_bytes = BLOCK;
	im->super.seq = 3;
	memset(im->super.uuid, 0x5a, sizeof(im->super.uuid));
	assert_int_equal(hawk_super_layout(&im->super), 0);
	assert_true(im->super.chunks >= CHUNKS);
	hawk_identity_of(&c, 0, &im->id);
	for (i = 0; i < CHUNKS; i++)
		im->rec[i] = (struct hawk_record) {
			.kept = true, .chunk = i, .epoch = 100 + i, .owner = im->id,
			.space = hawk_identity_hash(&im->id),
		};
	shuffle(gen, SLOTS, &rng);
	for (i = 0; i < SLOTS; i++)
		slot_make(im, i, 1000 + gen[i], &rng);
	regions_damage(im, &rng);
	shuffle(im->order, CHUNKS, &rng);
	return im;
}

/* ---- a run ---- */

static void run_begin(struct run *r, const struct image *im, u32 max_blocks)
{
	struct hawk_identity id = im->id;
	struct hawk_space_params p = {
		.block_bytes = BLOCK, .block_tokens = 16, .max_blocks = max_blocks,
		.buckets = 8, .layers = 1, .head_groups = 1, .identity = &id,
	};
	u32 i, dram;

	memset(r, 0, sizeof(*r));
	r->im = im;
	r->e = hawk_engine_create();
	assert_non_null(r->e);
	assert_int_equal(hawk_tier_add(r->e, HAWK_TIER_HOST, 2, &dram), 0);
	assert_int_equal(hawk_tier_add(r->e, HAWK_TIER_BLK, im->super.chunks, &r->tier), 0);
	assert_int_equal(hawk_pool_open(r->e, r->tier, &im->super, 1), 0);
	for (i = 0; i < CHUNKS; i++)
		assert_int_equal(hawk_pool_load(r->e, r->tier, &im->rec[i]), 0);
	hawk_pool_loaded(r->e, r->tier);
	p.quota_max[dram] = 2;
	p.quota_max[r->tier] = im->super.chunks;
	r->vtlb = hawk_table_alloc(1, hawk_vtlb_bytes(max_blocks));
	assert_non_null(r->vtlb);
	p.vtlb = r->vtlb;
	assert_int_equal(hawk_space_create(r->e, &p, &r->s), 0);
}

static void run_end(struct run *r, u32 max_blocks)
{
	u32 i;

	hawk_keep_forget(r->s);
	hawk_space_destroy(r->s);
	hawk_table_free(r->vtlb, 1, hawk_vtlb_bytes(max_blocks));
	for (i = 0; i < r->im->super.chunks; i++)
		hawk_tier_clean(r->e, r->tier, i);
	hawk_engine_destroy(r->e);
}

static int chunk_adopt(struct run *r, u32 c)
{
	return hawk_space_adopt(r->s, r->tier, &r->im->rec[c],
				r->im->header + (size_t)c * CHUNK_BYTES, 7);
}

static void *adopter(void *arg)
{
	struct run *r = arg;
	u32 i;

	while ((i = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED)) < CHUNKS)
		chunk_adopt(r, r->im->order[i]);
	return NULL;
}

static void adopt_together(struct run *r)
{
	pthread_t thread[THREADS];
	u32 i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, adopter, r), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static int rising(const void *va, const void *vb)
{
	const u64 *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* What a run has come to. */
static void run_look(struct run *r)
{
	static u8 buf[16 * HAWK_POOL_PAGE];
	struct hawk_keep_page page[16];
	u32 i, n, cursor = 0, frame;
	struct hawk_ref ref;
	u8 key[HAWK_KEY_BYTES];
	u64 lid, vt;

	assert_int_equal(hawk_space_settle(r->s), 0);
	hawk_space_recovery(r->s, &r->found);
	host_check(r->s);
	for (i = 0; i < KEYS; i++) {
		key_of(i, key);
		r->place[i] = NOWHERE;
		if (hawk_block_find(r->s, key, false, 8, &lid, &vt, &ref))
			continue;
		frame = HAWK_VT_FRAME(vt);
		r->place[i] = hawk_frame_off(r->s, r->tier, frame);
		r->gen[i] = r->s->win[r->tier].keep->gen[frame];
	}
	do {
		n = hawk_keep_collect(r->s, r->tier, &cursor, buf, page, 16);
		for (i = 0; i < n; i++)
			r->page[r->npages++] = page[i].off;
	} while (n == 16);
	qsort(r->page, r->npages, sizeof(*r->page), rising);
}

/* ---- tests ---- */

static void as_one_finds_them(void **state)
{
	static struct run one, four;
	struct image *im;
	u32 round, i;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		im = image_make(round + 1);
		run_begin(&one, im, SLOTS);
		for (i = 0; i < CHUNKS; i++)
			assert_int_equal(chunk_adopt(&one, i), 0);
		run_look(&one);
		run_begin(&four, im, SLOTS);
		adopt_together(&four);
		run_look(&four);
		print_message("seed %u: %llu blocks, %llu stale, %llu damaged, %llu without parent\n",
			      round + 1, (unsigned long long)one.found.blocks,
			      (unsigned long long)one.found.stale,
			      (unsigned long long)one.found.corrupt,
			      (unsigned long long)one.found.no_parent);
		assert_true(one.found.blocks > KEYS / 2 && one.found.stale && one.found.corrupt);
		assert_true(one.found.no_parent);
		assert_memory_equal(&one.found, &four.found, sizeof(one.found));
		assert_memory_equal(one.place, four.place, sizeof(one.place));
		assert_memory_equal(one.gen, four.gen, sizeof(one.gen));
		assert_int_equal(one.npages, four.npages);
		assert_memory_equal(one.page, four.page, sizeof(one.page));
		run_end(&one, SLOTS);
		run_end(&four, SLOTS);
		free(im);
	}
}

/* The version that a key is found in is the youngest of those that are whole. */
static void youngest_is_found(void **state)
{
	static struct run r;
	static u64 want[KEYS];
	struct image *im = image_make(99);
	struct hawk_header h;
	u8 key[HAWK_KEY_BYTES];
	u32 i, k;

	(void)state;
	memset(want, 0, sizeof(want));
	for (i = 0; i < SLOTS; i++) {
		if (hawk_header_decode(im->header + (size_t)i * HAWK_HEADER_BYTES,
				       hawk_pool_id(&im->super), &im->rec[i / PER], i % PER, &h) ||
		    h.gen == ~0ull)
			continue;
		for (k = 0; k < KEYS; k++) {
			key_of(k, key);
			if (!memcmp(key, h.key, sizeof(key)) && h.gen > want[k])
				want[k] = h.gen;
		}
	}
	run_begin(&r, im, SLOTS);
	adopt_together(&r);
	run_look(&r);
	for (k = 0; k < KEYS; k++)
		assert_int_equal(r.place[k] == NOWHERE ? 0 : r.gen[k], want[k]);
	run_end(&r, SLOTS);
	free(im);
}

/* Threads that take slots from each other's buckets leave none out, and lose none. */
static void no_room_for_all(void **state)
{
	static struct run r;
	struct image *im;
	u32 round, few = PER / 2;	/* of which two chunks may come */

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		im = image_make(200 + round);
		run_begin(&r, im, few);
		adopt_together(&r);
		run_look(&r);
		assert_int_equal(r.found.blocks, few);
		assert_true(r.found.no_room);
		run_end(&r, few);
		free(im);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_one_finds_them),
		cmocka_unit_test(youngest_is_found),
		cmocka_unit_test(no_room_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
