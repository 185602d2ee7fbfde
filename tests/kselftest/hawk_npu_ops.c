// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_npu_ops.c - /dev/hawk_npuN: what an NPU computes on a client's blocks, and on no others
 */
#define _GNU_SOURCE
#include <math.h>

#include "kselftest_harness.h"
#include "../../uapi/hawk_npu.h"
#include "hawk_npu.h"

#define HEADS		4u
#define KV_HEADS	2u
#define DIM		32u
#define TOK		32u	/* tokens of a block */
#define KV_BYTES	(KV_HEADS * TOK * DIM * 2)
#define KV_BLOCKS	3u
#define VISIBLE		(TOK * (KV_BLOCKS - 1) + 9)

static int npu_open(void)
{
	return open("/dev/hawk_npu0", O_RDWR | O_CLOEXEC);
}

static uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u, bit;

	while (len--)
		for (crc ^= *p++, bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	return ~crc;
}

static uint8_t *frame_of(int fd, uint8_t *win, uint32_t n)
{
	struct hawk_item it = { .lid = LID(n) };

	return one(fd, HAWK_IOC_TRANSLATE, 0, &it) ? NULL : frame_at(win, it.vt, BLOCK);
}

TEST_F(npu, info)
{
	struct hawk_npu_info info = { .size = sizeof(info) };
	int npu = npu_open();

	ASSERT_EQ(0, dev_call(npu, HAWK_NPU_IOC_INFO, &info));
	EXPECT_EQ(HAWK_NPU_ABI_VERSION, info.abi_version);
	EXPECT_EQ(self->tier, info.tier);
	EXPECT_EQ(14 * MIB, info.mem_bytes);
	EXPECT_TRUE(info.flags & HAWK_NPU_INFO_READY);
	EXPECT_TRUE(info.flags & HAWK_NPU_INFO_DMA);
	close(npu);
}

TEST_F(npu, checksum)
{
	uint64_t lids[] = { LID(2), LID(0), LID(1) };
	uint32_t sums[3] = { 0 }, i;
	struct hawk_npu_checksum c = {
		.size = sizeof(c), .fd = self->fd, .count = 3, .lids = (uintptr_t)lids,
		.sums = (uintptr_t)sums,
	};
	static const uint32_t order[] = { 2, 0, 1 };
	uint8_t want[BLOCK];
	int npu = npu_open();

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 3));
	ASSERT_EQ(0, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	for (i = 0; i < 3; i++) {
		fill(want, BLOCK, order[i]);
		EXPECT_EQ(crc32c(want, BLOCK), sums[i]) TH_LOG("block %u", order[i]);
	}
	EXPECT_EQ(0, stat_pinned(self->fd)) TH_LOG("nothing stays pinned");
	close(npu);
}

/* ---- whose blocks ---- */

/* A file of a space without a part in the NPU, or no file, or names of nothing. */
TEST_F(npu, only_its_own_blocks)
{
	struct hawk_space_create sc = space_args(64);
	uint64_t lid = LID(0);
	uint32_t sum, host;
	struct hawk_npu_checksum c = {
		.size = sizeof(c), .fd = self->fd, .count = 1, .lids = (uintptr_t)&lid,
		.sums = (uintptr_t)&sum,
	};
	struct hawk_npu_transform t = {
		.size = sizeof(t), .from = LID(0), .to = LID(0), .heads = 1, .rows = 16,
		.dim = 16, .elem = 2, .to_layout = HAWK_NPU_LAYOUT_TILES,
	};
	int npu = npu_open(), other = dev_open(O_RDWR), reader;
	struct hawk_item it = { .lid = LID(0) };

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, host_add(self->ctl, 2 * MIB, &host));
	sc.quota[host].max_bytes = 2 * MIB;
	c.fd = npu;
	EXPECT_EQ(-EBADF, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	c.fd = other;
	EXPECT_EQ(-ENXIO, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	ASSERT_EQ(0, dev_call(other, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-ENOENT, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	ASSERT_EQ(0, one(other, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-EXDEV, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c)) TH_LOG("it is in host memory");
	c.fd = self->fd;
	lid = LID(1);
	EXPECT_EQ(-ENOENT, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	lid = LID(0);
	EXPECT_EQ(0, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	reader = dev_open(O_RDONLY);
	ASSERT_EQ(0, dev_call(reader, HAWK_IOC_SPACE_ATTACH, &(struct hawk_space_attach){
			.size = sizeof(struct hawk_space_attach), .flags = HAWK_ATTACH_FD,
			.fd = self->fd }));
	c.fd = t.fd = reader;
	EXPECT_EQ(0, dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c));
	EXPECT_EQ(-EACCES, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t));
	close(reader);
	close(other);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, host));
	close(npu);
}

/* A shape that leads out of the blocks would reach another tenant's. */
TEST_F(npu, within_its_blocks)
{
	static const struct hawk_npu_transform good = {
		.size = sizeof(good), .from = LID(0), .to = LID(1), .heads = 2, .rows = 16,
		.dim = 32, .elem = 2, .to_layout = HAWK_NPU_LAYOUT_TILES,
	};
	struct hawk_npu_transform t[8];
	int npu = npu_open(), i;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	for (i = 0; i < 8; i++) {
		t[i] = good;
		t[i].fd = self->fd;
	}
	t[0].from_off = BLOCK - 2048 + 2;
	t[1].to_off = BLOCK - 2048 + 2;
	t[2].to_off = ~0u;
	t[3].rows = ~0u;
	t[4].heads = BLOCK / 1024 + 1;
	t[5].dim = 65536;
	t[6].elem = 3;
	t[7].to_layout = 3;
	for (i = 0; i < 8; i++)
		EXPECT_EQ(-EINVAL, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t[i])) TH_LOG("%d", i);
	t[0].from_off = BLOCK - 2048;
	EXPECT_EQ(0, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t[0]));
	t[0].reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t[0]));
	t[0].reserved = 0;
	t[0].size--;
	EXPECT_EQ(-EINVAL, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t[0]));
	EXPECT_EQ(-ENOTTY, dev_call(npu, _IO(HAWK_NPU_IOC_MAGIC, 0xc9), &t[0]));
	close(npu);
}

/* ---- layouts and attention ---- */

static uint64_t tile_at(uint32_t t, uint32_t d)
{
	return ((t / 16 * (DIM / 16) + d / 16) * 256 + t % 16 * 16 + d % 16) * 2;
}

/* Small numbers that 16 bits hold exactly: eighths from -2 to 2. */
static float number(uint32_t *seed, uint16_t *half)
{
	int32_t eighths;
	uint32_t exp, mag;

	*seed = *seed * 1664525 + 1013904223;
	eighths = (int32_t)(*seed >> 20) % 17 - 8;
	*half = 0;
	if (eighths) {
		mag = eighths < 0 ? -eighths : eighths;
		exp = 31 - __builtin_clz(mag);
		*half = (eighths < 0 ? 0x8000 : 0) | (exp + 15 - 3) << 10 |
			((mag << (10 - exp)) & 0x3ff);
	}
	return eighths / 8.0f;
}

static float q[HEADS][DIM], k[KV_HEADS][TOK * KV_BLOCKS][DIM], v[KV_HEADS][TOK * KV_BLOCKS][DIM];

/* Block @b as prefill leaves it: keys, then values, heads of rows. */
static void make_rows(uint8_t *frame, uint32_t b, uint32_t *seed)
{
	uint32_t h, t, d;
	uint16_t half;

	for (h = 0; h < KV_HEADS; h++)
		for (t = 0; t < TOK; t++)
			for (d = 0; d < DIM; d++) {
				uint32_t at = ((h * TOK + t) * DIM + d) * 2;

				k[h][b * TOK + t][d] = number(seed, &half);
				memcpy(frame + at, &half, 2);
				v[h][b * TOK + t][d] = number(seed, &half);
				memcpy(frame + KV_BYTES + at, &half, 2);
			}
}

static void reference(uint32_t head, float scale, double *out)
{
	uint32_t kv = head / (HEADS / KV_HEADS), t, d;
	double sum = 0;

	memset(out, 0, DIM * sizeof(*out));
	for (t = 0; t < VISIBLE; t++) {
		double w = 0;

		for (d = 0; d < DIM; d++)
			w += (double)q[head][d] * k[kv][t][d];
		w = exp(w * scale);
		sum += w;
		for (d = 0; d < DIM; d++)
			out[d] += w * v[kv][t][d];
	}
	for (d = 0; d < DIM; d++)
		out[d] /= sum;
}

/* Rows come in, the NPU makes tiles of them in place, and attends to them. */
TEST_F(npu, attention)
{
	const float scale = 0.25f;
	uint16_t query[HEADS][DIM];
	float out[HEADS][DIM];
	uint64_t lids[KV_BLOCKS];
	struct hawk_npu_transform t = {
		.size = sizeof(t), .fd = self->fd, .heads = 2 * KV_HEADS, .rows = TOK, .dim = DIM,
		.elem = 2, .to_layout = HAWK_NPU_LAYOUT_TILES,
	};
	struct hawk_npu_attention a = {
		.size = sizeof(a), .fd = self->fd, .count = KV_BLOCKS, .lids = (uintptr_t)lids,
		.query = (uintptr_t)query, .out = (uintptr_t)out, .heads = HEADS,
		.kv_heads = KV_HEADS, .dim = DIM, .block_tokens = TOK, .tokens = VISIBLE,
		.v_off = KV_BYTES,
	};
	uint32_t seed = 3, b, h, d;
	double want[DIM];
	int npu = npu_open();

	memcpy(&a.scale, &scale, 4);
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, KV_BLOCKS));
	for (b = 0; b < KV_BLOCKS; b++) {
		uint8_t *frame = frame_of(self->fd, self->win, b);

		lids[b] = t.from = t.to = LID(b);
		make_rows(frame, b, &seed);
		ASSERT_EQ(0, dev_call(npu, HAWK_NPU_IOC_TRANSFORM, &t));
		h = 1;
		for (d = 0; d < DIM; d++) {
			uint16_t half;

			memcpy(&half, frame + KV_BYTES + h * TOK * DIM * 2 + tile_at(17, d), 2);
			EXPECT_EQ(v[h][b * TOK + 17][d] < 0, half >> 15);
		}
	}
	for (h = 0; h < HEADS; h++)
		for (d = 0; d < DIM; d++)
			q[h][d] = number(&seed, &query[h][d]);
	ASSERT_EQ(0, dev_call(npu, HAWK_NPU_IOC_ATTENTION, &a));
	for (h = 0; h < HEADS; h++) {
		double err = 0, norm = 0;

		reference(h, scale, want);
		for (d = 0; d < DIM; d++) {
			err += pow(out[h][d] - want[d], 2);
			norm += pow(want[d], 2);
		}
		EXPECT_LE(sqrt(err / norm), 1e-3) TH_LOG("head %u", h);
	}
	a.tokens = TOK * KV_BLOCKS + 1;
	EXPECT_EQ(-EINVAL, dev_call(npu, HAWK_NPU_IOC_ATTENTION, &a));
	a.tokens = VISIBLE;
	a.v_off = BLOCK - KV_BYTES + 2;
	EXPECT_EQ(-EINVAL, dev_call(npu, HAWK_NPU_IOC_ATTENTION, &a));
	a.v_off = KV_BYTES;
	a.out = 4096;
	EXPECT_EQ(-EFAULT, dev_call(npu, HAWK_NPU_IOC_ATTENTION, &a));
	EXPECT_EQ(0, stat_pinned(self->fd)) TH_LOG("nothing stays pinned");
	close(npu);
}

/* An open file outlives its device. */
TEST_F(npu, file_of_a_pulled_device)
{
	struct hawk_npu_info info = { .size = sizeof(info) };
	uint64_t lid = LID(0);
	uint32_t sum;
	struct hawk_npu_checksum c = {
		.size = sizeof(c), .fd = self->fd, .count = 1, .lids = (uintptr_t)&lid,
		.sums = (uintptr_t)&sum,
	};
	int npu = npu_open(), ret;
	char path[300];

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	snprintf(path, sizeof(path), DRIVER "/%s/remove", npu_device());
	ASSERT_EQ(0, write_file(path, "1"));
	ret = dev_call(npu, HAWK_NPU_IOC_CHECKSUM, &c);
	EXPECT_TRUE(ret == -ENODEV || ret == -ENOENT) TH_LOG("%d", ret);
	EXPECT_EQ(0, dev_call(npu, HAWK_NPU_IOC_INFO, &info));
	EXPECT_FALSE(info.flags & HAWK_NPU_INFO_READY);
	ASSERT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	close(npu);
}

TEST_HARNESS_MAIN
