// SPDX-License-Identifier: MIT
/*
 * npu_fw.c - the NPU's firmware (firmware-models/npu): what it computes, and a driver that
 * has gone mad
 *
 * HAWK_NPU_FUZZ and HAWK_NPU_SEED choose how many hostile commands, and which.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../firmware-models/npu/npu.h"

#define MIB		(1ull << 20)
#define BYTES		(4 * MIB)
#define RAM		(1 * MIB)
#define RAM_AT		0x100000000ull
#define MEM		HAWK_NPU_MEM_OFF

static struct npu n;

/* On the heap, so that a sanitizer sees what leads beyond it. */
static int setup(void **state)
{
	int i;

	(void)state;
	n = (struct npu){ .bytes = BYTES, .nram = 1, .features = HAWK_NPU_FEAT_DMA };
	n.mem = calloc(1, BYTES);
	n.ram[0] = (struct npu_ram){ .addr = RAM_AT, .bytes = RAM, .p = calloc(1, RAM) };
	n.shared = calloc(1, sizeof(*n.shared) + (BYTES - MEM) / NPU_PAGE);
	for (i = 0; i < (int)HAWK_NPU_VECTORS; i++)
		n.irq[i] = eventfd(0, EFD_NONBLOCK);
	*npu_board(&n) = (struct hawk_npu_board){ .magic = HAWK_NPU_MAGIC, .boot = 7 };
	npu_fw_start(&n);
	npu_drv(&n)->boot = 7;
	return 0;
}

static int teardown(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < (int)HAWK_NPU_VECTORS; i++)
		close(n.irq[i]);
	free(n.shared);
	free(n.ram[0].p);
	free(n.mem);
	return 0;
}

/* Submits a command as a driver does, and takes its completion. */
static struct hawk_npu_cqe run(struct hawk_npu_sqe cmd)
{
	uint32_t tail = npu_drv(&n)->sq_tail, head = npu_drv(&n)->cq_head;
	struct hawk_npu_cqe done;

	cmd.seq = tail + 1;
	cmd.boot = 7;
	memcpy(n.mem + HAWK_NPU_SQ_OFF + tail % HAWK_NPU_SLOTS * sizeof(cmd), &cmd, sizeof(cmd));
	npu_drv(&n)->sq_tail = tail + 1;
	assert_int_equal(npu_fw_step(&n), NPU_FW_MORE);
	assert_int_equal(npu_fw_step(&n), NPU_FW_IDLE);
	assert_int_equal(npu_fw(&n)->cq_tail, head + 1);
	memcpy(&done, n.mem + HAWK_NPU_CQ_OFF + head % HAWK_NPU_SLOTS * sizeof(done), sizeof(done));
	npu_drv(&n)->cq_head = head + 1;
	assert_int_equal(done.seq, cmd.seq);
	assert_int_equal(done.slot, cmd.slot);
	return done;
}

static struct hawk_npu_seg *list_of(uint32_t slot)
{
	return (struct hawk_npu_seg *)(n.mem + HAWK_NPU_LIST_OFF + slot * HAWK_NPU_LIST_BYTES);
}

static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	while (len--)
		*p++ = rand_r(&seed);
}

/* ---- moves ---- */

static void moves(void **state)
{
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_WRITE, .addr = MEM + 100, .len = 5000,
				    .nlist = 2, .slot = 3 };

	(void)state;
	fill(n.ram[0].p, RAM, 1);
	list_of(3)[0] = (struct hawk_npu_seg){ .addr = RAM_AT + 8192, .len = 4096 };
	list_of(3)[1] = (struct hawk_npu_seg){ .addr = RAM_AT + 77, .len = 904 };
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
	assert_memory_equal(n.mem + MEM + 100, n.ram[0].p + 8192, 4096);
	assert_memory_equal(n.mem + MEM + 100 + 4096, n.ram[0].p + 77, 904);
	cmd.op = HAWK_NPU_OP_READ;
	list_of(3)[0].addr = RAM_AT + 65536;
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
	assert_memory_equal(n.ram[0].p + 65536, n.mem + MEM + 100, 4096);
	cmd = (struct hawk_npu_sqe){ .op = HAWK_NPU_OP_COPY, .addr = MEM + 100,
				     .addr2 = MEM + 4000, .len = 5000 };
	fill(n.ram[0].p, 5000, 2);
	memcpy(n.mem + MEM + 100, n.ram[0].p, 5000);
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
	assert_memory_equal(n.mem + MEM + 4000, n.ram[0].p, 5000);
}

static void refused(void **state)
{
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_WRITE, .addr = MEM, .len = 4096, .nlist = 1 };

	(void)state;
	list_of(0)[0] = (struct hawk_npu_seg){ .addr = RAM_AT + RAM - 4095, .len = 4096 };
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_HOST);
	list_of(0)[0].addr = RAM_AT;
	list_of(0)[0].len = 4095;
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
	list_of(0)[0].len = 4096;
	cmd.addr = MEM - 1;
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
	cmd.addr = BYTES - 4095;
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
	cmd.addr = ~0ull - 100;
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
	cmd = (struct hawk_npu_sqe){ .op = 99 };
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_OP);
	cmd.op = HAWK_NPU_OP_FAULT;
	cmd.arg[0] = HAWK_NPU_FAULT_CRASH;
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_OP);
}

static void checksums(void **state)
{
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_CRC32C, .addr = MEM, .len = 9 };

	(void)state;
	memcpy(n.mem + MEM, "123456789", 9);
	assert_int_equal(run(cmd).result, 0xe3069283);
}

/* What is damaged cannot be read until all of the page has been overwritten. */
static void damage(void **state)
{
	struct hawk_npu_sqe sum = { .op = HAWK_NPU_OP_CRC32C, .addr = MEM + 3 * NPU_PAGE + 9, .len = 1 };
	struct hawk_npu_sqe zero = { .op = HAWK_NPU_OP_FILL, .addr = MEM + 3 * NPU_PAGE, .len = 4000 };

	(void)state;
	npu_damage(&n, MEM + 3 * NPU_PAGE + 5);
	assert_int_equal(run(sum).status, HAWK_NPU_ERR_ECC);
	assert_int_equal(run(zero).status, HAWK_NPU_OK);
	assert_int_equal(run(sum).status, HAWK_NPU_ERR_ECC);
	zero.len = NPU_PAGE;
	assert_int_equal(run(zero).status, HAWK_NPU_OK);
	assert_int_equal(run(sum).status, HAWK_NPU_OK);
	assert_int_equal(n.shared->damaged, 0);
}

/* ---- layouts ---- */

/* Where byte @b of element (r, d) of matrix @h lies: the formulas, nothing clever. */
static uint64_t where(const struct hawk_npu_shape *s, uint32_t layout, uint32_t h, uint32_t r,
		      uint32_t d)
{
	uint64_t rows = layout == HAWK_NPU_ROWS ? s->rows : (s->rows + 15) / 16 * 16;
	uint64_t base = (uint64_t)h * rows * s->dim * s->elem, w = 32 / s->elem;

	if (layout == HAWK_NPU_ROWS)
		return base + ((uint64_t)r * s->dim + d) * s->elem;
	if (layout == HAWK_NPU_TILES)
		return base + ((r / 16 * (s->dim / 16) + d / 16) * 256 + r % 16 * 16 + d % 16) *
			      (uint64_t)s->elem;
	return base + (d / w * rows * w + (uint64_t)r * w + d % w) * s->elem;
}

static void layout_pair(struct hawk_npu_shape s, unsigned int seed)
{
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_TRANSFORM, .addr = MEM,
				    .addr2 = MEM + MIB };
	uint32_t h, r, d;

	cmd.len = (uint64_t)s.heads * ((s.rows + 15) / 16 * 16) * s.dim * s.elem;
	memcpy(cmd.arg, &s, sizeof(s));
	fill(n.mem + MEM, cmd.len, seed);
	memset(n.mem + MEM + MIB, 0xee, cmd.len);
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
	for (h = 0; h < s.heads; h++)
		for (r = 0; r < s.rows; r++)
			for (d = 0; d < s.dim; d++)
				assert_memory_equal(n.mem + MEM + where(&s, s.from, h, r, d),
						    n.mem + MEM + MIB + where(&s, s.to, h, r, d),
						    s.elem);
	for (h = 0; s.to != HAWK_NPU_ROWS && h < s.heads; h++)
		for (r = s.rows; r % 16; r++)
			for (d = 0; d < s.dim * s.elem; d++)
				assert_int_equal(0, n.mem[MEM + MIB +
						 where(&s, s.to, h, r, d / s.elem) + d % s.elem]);
}

static void layouts(void **state)
{
	static const uint16_t elems[] = { 1, 2, 4 };
	unsigned int seed = 5, i;

	(void)state;
	for (i = 0; i < 200; i++) {
		struct hawk_npu_shape s = {
			.rows = 1 + rand_r(&seed) % 50, .heads = 1 + rand_r(&seed) % 4,
			.dim = 32 * (1 + rand_r(&seed) % 4), .elem = elems[rand_r(&seed) % 3],
			.from = rand_r(&seed) % 3, .to = rand_r(&seed) % 3,
		};

		layout_pair(s, i);
	}
}

static void layouts_refused(void **state)
{
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_TRANSFORM, .addr = MEM, .addr2 = MEM + MIB,
				    .len = 16 * 16 * 2 };
	struct hawk_npu_shape good = { .rows = 16, .heads = 1, .dim = 16, .elem = 2,
				       .to = HAWK_NPU_TILES }, s[6];
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++)
		s[i] = good;
	s[0].dim = 24;
	s[1].elem = 3;
	s[2].to = 3;
	s[3].rows = 17;
	s[4].heads = 2;
	s[5].rows = 0;
	for (i = 0; i < 6; i++) {
		memcpy(cmd.arg, &s[i], sizeof(s[i]));
		assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
	}
	memcpy(cmd.arg, &good, sizeof(good));
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
}

/* ---- attention ---- */

/* The 16-bit float nearest to a number of modest size. */
static uint16_t to_half(float f)
{
	int exp;
	float frac = frexpf(fabsf(f), &exp);
	uint32_t bits = lrintf(frac * 2048);	/* 1024 .. 2048 */

	if (f == 0 || exp < -13)
		return 0;
	return (f < 0 ? 0x8000 : 0) + ((exp + 14) << 10) + (bits - 1024);
}

static float from_half(uint16_t h)
{
	if (!h)
		return 0;
	return (h & 0x8000 ? -1 : 1) * ldexpf(1024 + (h & 0x3ff), (h >> 10 & 0x1f) - 25);
}

static float random_half(unsigned int *seed, uint16_t *h)
{
	*h = to_half((rand_r(seed) % 4001 - 2000) / 1000.0f);
	return from_half(*h);
}

#define HEADS		8u
#define KV_HEADS	2u
#define DIM		64u
#define TOKENS		32u	/* of a block */
#define BLOCKS		5u
#define VISIBLE		(TOKENS * (BLOCKS - 1) + 7)
#define KV_BYTES	(KV_HEADS * TOKENS * DIM * 2)
#define SLOT		5u

static float q[HEADS][DIM], k[KV_HEADS][TOKENS * BLOCKS][DIM], v[KV_HEADS][TOKENS * BLOCKS][DIM];

/* Row-major, two passes. */
static void reference(float scale, uint32_t head, double *out)
{
	uint32_t kv = head / (HEADS / KV_HEADS), t, d;
	double score[VISIBLE], max = -INFINITY, sum = 0;

	for (t = 0; t < VISIBLE; t++) {
		for (score[t] = 0, d = 0; d < DIM; d++)
			score[t] += (double)q[head][d] * k[kv][t][d];
		score[t] *= scale;
		max = fmax(max, score[t]);
	}
	memset(out, 0, DIM * sizeof(*out));
	for (t = 0; t < VISIBLE; t++) {
		double w = exp(score[t] - max);

		sum += w;
		for (d = 0; d < DIM; d++)
			out[d] += w * v[kv][t][d];
	}
	for (d = 0; d < DIM; d++)
		out[d] /= sum;
}

/* Random queries, keys and values; blocks in no order, keys before values. */
static void make_kv(const uint64_t *block, unsigned int seed)
{
	uint8_t *scratch = n.mem + HAWK_NPU_SCRATCH_OFF + SLOT * HAWK_NPU_SCRATCH_BYTES;
	struct hawk_npu_shape s = { .rows = TOKENS, .heads = KV_HEADS, .dim = DIM, .elem = 2 };
	uint32_t h, t, d;
	uint16_t half;

	for (h = 0; h < HEADS; h++)
		for (d = 0; d < DIM; d++) {
			q[h][d] = random_half(&seed, &half);
			memcpy(scratch + (h * DIM + d) * 2, &half, 2);
		}
	for (h = 0; h < KV_HEADS; h++)
		for (t = 0; t < TOKENS * BLOCKS; t++)
			for (d = 0; d < DIM; d++) {
				uint64_t at = block[t / TOKENS] +
					      where(&s, HAWK_NPU_TILES, h, t % TOKENS, d);

				k[h][t][d] = random_half(&seed, &half);
				memcpy(n.mem + at, &half, 2);
				v[h][t][d] = random_half(&seed, &half);
				memcpy(n.mem + at + KV_BYTES, &half, 2);
			}
}

static void attention(void **state)
{
	static const uint64_t block[BLOCKS] = { MEM + 5 * KV_BYTES, MEM + 20 * KV_BYTES, MEM,
						MEM + 9 * KV_BYTES, MEM + 2 * KV_BYTES };
	struct hawk_npu_sqe cmd = { .op = HAWK_NPU_OP_ATTEND, .slot = SLOT, .len = 2 * KV_BYTES,
				    .nlist = BLOCKS };
	struct hawk_npu_attend a = { .heads = HEADS, .kv_heads = KV_HEADS, .dim = DIM,
				     .block_tokens = TOKENS, .tokens = VISIBLE, .v_off = KV_BYTES };
	const float scale = 1 / sqrtf(DIM);
	float out[HEADS][DIM];
	double want[DIM], err, norm;
	uint32_t h, d;

	(void)state;
	make_kv(block, 11);
	memcpy(&a.scale, &scale, 4);
	memcpy(cmd.arg, &a, sizeof(a));
	memcpy(list_of(SLOT), block, sizeof(block));
	assert_int_equal(run(cmd).status, HAWK_NPU_OK);
	memcpy(out, n.mem + HAWK_NPU_SCRATCH_OFF + SLOT * HAWK_NPU_SCRATCH_BYTES +
	       HAWK_NPU_SCRATCH_OUT, sizeof(out));
	for (h = 0; h < HEADS; h++) {
		reference(scale, h, want);
		for (err = norm = 0, d = 0; d < DIM; d++) {
			err += pow(out[h][d] - want[d], 2);
			norm += pow(want[d], 2);
		}
		assert_true(norm > 0 && sqrt(err / norm) <= 1e-3);
	}
	a.tokens = TOKENS * (BLOCKS - 1);
	memcpy(cmd.arg, &a, sizeof(a));
	assert_int_equal(run(cmd).status, HAWK_NPU_ERR_RANGE);
}

/* ---- a driver that has gone mad ---- */

static void indexes(void **state)
{
	uint32_t i;

	(void)state;
	npu_drv(&n)->boot = 6;
	npu_drv(&n)->sq_tail = 1;
	assert_int_equal(npu_fw_step(&n), NPU_FW_IDLE);
	npu_drv(&n)->boot = 7;
	npu_drv(&n)->sq_tail = HAWK_NPU_SLOTS + 1;
	assert_int_equal(npu_fw_step(&n), NPU_FW_MAD);
	/* completions that nobody reads are not overwritten */
	for (i = 0; i < 3 * HAWK_NPU_SLOTS; i++) {
		npu_drv(&n)->sq_tail = npu_fw(&n)->sq_head + 1;
		npu_fw_step(&n);
	}
	assert_int_equal(npu_fw(&n)->cq_tail, HAWK_NPU_SLOTS);
}

static unsigned long env_number(const char *name, unsigned long by_default)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : by_default;
}

/* Numbers near what the firmware believes in, or anything. */
static uint64_t hostile(unsigned int *seed)
{
	static const uint64_t near[] = { 0, 1, 16, 4096, MEM, BYTES, RAM_AT, RAM_AT + RAM, 1ull << 31,
					 1ull << 32, ~0ull, 1ull << 63 };

	if (rand_r(seed) % 8)
		return near[rand_r(seed) % 12] + rand_r(seed) % 65 - 32;
	return (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed) << 2;
}

/* Mostly a number below @most, once in @times anything. */
static uint64_t mostly(unsigned int *seed, unsigned int times, unsigned int most)
{
	return rand_r(seed) % times ? (uint64_t)rand_r(seed) % most : hostile(seed);
}

static void hostile_command(unsigned int *seed)
{
	struct hawk_npu_sqe cmd = {
		.seq = hostile(seed), .boot = rand_r(seed) % 50 ? 7 : hostile(seed),
		.op = rand_r(seed) % 10, .slot = mostly(seed, 20, HAWK_NPU_SLOTS),
		.addr = hostile(seed), .addr2 = hostile(seed), .len = hostile(seed),
		.nlist = mostly(seed, 4, 8),
	};
	uint32_t i, at = npu_fw(&n)->sq_head;

	for (i = 0; i < 6; i++)
		cmd.arg[i] = mostly(seed, 3, 70000);
	for (i = 0; i < 8 && cmd.slot < HAWK_NPU_SLOTS; i++)
		list_of(cmd.slot)[i] = (struct hawk_npu_seg){ .addr = hostile(seed),
							      .len = hostile(seed) };
	memcpy(n.mem + HAWK_NPU_SQ_OFF + at % HAWK_NPU_SLOTS * sizeof(cmd), &cmd, sizeof(cmd));
	npu_drv(&n)->sq_tail = at + 1;
	npu_drv(&n)->cq_head = npu_fw(&n)->cq_tail;
}

/* Whatever it is told, it stays within its memory (a sanitizer looks) and answers. */
static void fuzz(void **state)
{
	unsigned long i, times = env_number("HAWK_NPU_FUZZ", 20000);
	unsigned int seed = env_number("HAWK_NPU_SEED", 1);
	struct hawk_npu_board before = *npu_board(&n);
	unsigned long good = 0;

	(void)state;
	printf("# HAWK_NPU_SEED=%u\n", seed);
	for (i = 0; i < times; i++) {
		hostile_command(&seed);
		assert_int_equal(npu_fw_step(&n), NPU_FW_MORE);
	}
	good = n.shared->commands - n.shared->errors;
	assert_int_equal(n.shared->commands, times);
	assert_true(good > times / 100 && good < times);
	assert_memory_equal(&before, npu_board(&n), sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(moves, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(checksums, setup, teardown),
		cmocka_unit_test_setup_teardown(damage, setup, teardown),
		cmocka_unit_test_setup_teardown(layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(layouts_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(attention, setup, teardown),
		cmocka_unit_test_setup_teardown(indexes, setup, teardown),
		cmocka_unit_test_setup_teardown(fuzz, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
