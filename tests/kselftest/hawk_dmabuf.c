// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_dmabuf.c - blocks exported as dma-bufs: importers, revoking, death
 *
 * The importer is hawk_importer.ko, a driver that reaches the bytes by their DMA
 * addresses.  It takes all three parts: a fixed mapping, a dynamic one, a dynamic
 * one that does not let go when it is told.
 *
 *	HAWK_DMABUF_N		clients killed (200)
 *	HAWK_DMABUF_SEED	of what they do and when they die (printed)
 */
#define _GNU_SOURCE
#include <linux/dma-buf.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "hawk_blocks.h"
#include "hawk_fixture.h"
#include "hawk_models.h"

#define SOON		(50 * 1000000ull)	/* a wait that is expected to be in vain, ns */
#define LONG		(20 * 1000000000ull)	/* one that is not */

static const uint32_t importers[] = { 0, HAWK_IMP_DYNAMIC, HAWK_IMP_DYNAMIC | HAWK_IMP_HOLD };
#define N_IMPORTERS	(sizeof(importers) / sizeof(importers[0]))

/* The whole tier full of READY blocks, whatever their bytes: 0 or -1. */
static int fill_tier(int fd)
{
	struct hawk_item it[HOST_BLOCKS] = { 0 };
	struct hawk_batch b;
	uint32_t i;

	for (i = 0; i < HOST_BLOCKS; i++)
		it[i].lid = LID(i);
	if (batch(fd, HAWK_IOC_ALLOC, 0, it, HOST_BLOCKS, &b) || b.done != HOST_BLOCKS)
		return -1;
	for (i = 0; i < HOST_BLOCKS; i++)
		it[i].vt = 0;
	return batch(fd, HAWK_IOC_PUT, 0, it, HOST_BLOCKS, &b) || b.done != HOST_BLOCKS ? -1 : 0;
}

/* Until nothing is pinned; the harness ends a test in which that never comes. */
static void wait_unpinned(int fd)
{
	while (stat_pinned(fd))
		poll(NULL, 0, 5);
}

static bool imp_sees(int imp, uint64_t offset, uint32_t seed, uint32_t flags)
{
	uint8_t buf[BLOCK];

	return !imp_rw(imp, offset, buf, BLOCK, flags) && filled(buf, BLOCK, seed);
}

/* ---- what is refused ---- */

TEST_F(hawk, rejects)
{
	struct hawk_item it[3] = { { .lid = LID(0) }, { .lid = LID(77) }, { .lid = LID(1) } };
	struct hawk_export ok = { .size = sizeof(ok), .count = 1, .items = (uintptr_t)it }, x;
	struct hawk_frame_info fi = { .size = sizeof(fi), .tier = self->host };

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	x = ok, x.count = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	x = ok, x.count = HAWK_BATCH_MAX + 1;
	EXPECT_EQ(-E2BIG, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	x = ok, x.items = 0;
	EXPECT_EQ(-EFAULT, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	x = ok, it[0].flags = HAWK_ITEM_BY_KEY;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	x = ok, it[0].flags = 0, it[0].arg = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	x = ok, it[0].arg = 0, it[0].key[31] = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	it[0].key[31] = 0;
	/* all or nothing, and the items tell which */
	x = ok, x.count = 3;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	EXPECT_EQ(0, it[0].status);
	EXPECT_EQ(-ENOENT, it[1].status);
	EXPECT_EQ(-ECANCELED, it[2].status);
	EXPECT_EQ(0, stat_pinned(self->fd));

	EXPECT_EQ(-ENOENT, export_revoke(self->fd, 0, 0));
	EXPECT_EQ(-ENOENT, export_revoke(self->fd, 1, 0));
	EXPECT_EQ(-ENOENT, export_revoke(self->fd, 1ull << 40, 0));
	EXPECT_EQ(-EINVAL, export_revoke(self->fd, 1, 1ull << 63));
	fi.frame = HOST_BLOCKS;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
	fi.frame = 0;
	fi.tier = HAWK_TIERS_MAX;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
	fi.tier = self->host ? 0 : 1;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &fi));
}

/* No descriptor left, or no way to tell the caller: nothing is exported. */
TEST_F(hawk, undone_if_the_answer_is_lost)
{
	struct rlimit old, none;
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_export *ro = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), x;
	int fd;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, export_blocks(self->fd, 0, 1, 0, &x));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
	EXPECT_EQ(0, stat_pinned(self->fd));

	fd = dup(self->fd);	/* the next free descriptor: it must be free again */
	close(fd);
	*ro = (struct hawk_export){ .size = sizeof(*ro), .count = 1, .items = (uintptr_t)&it };
	ASSERT_EQ(0, mprotect(ro, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_call(self->fd, HAWK_IOC_EXPORT, ro));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(-1, fcntl(fd, F_GETFD));
	munmap(ro, 4096);
}

/* ---- the bytes ---- */

TEST_F(hawk, frame_info)
{
	struct hawk_frame_info a = { .size = sizeof(a), .tier = self->host }, b = a;
	uint32_t per_chunk = HAWK_CHUNK_BYTES / BLOCK;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &a));
	b.frame = 3;
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_FRAME_INFO, &b));
	EXPECT_EQ(0, a.offset % HAWK_CHUNK_BYTES);
	EXPECT_EQ(per_chunk, a.frames);
	EXPECT_EQ(a.offset + 3 * BLOCK, b.offset);
	EXPECT_EQ(per_chunk - 3, b.frames);
	EXPECT_LE(b.offset + BLOCK, HOST_BYTES);
}

TEST_F(hawk, importers_see_the_bytes)
{
	struct hawk_item it[3] = { { .lid = LID(5) }, { .lid = LID(1) }, { .lid = LID(3) } };
	struct hawk_export x = { .size = sizeof(x), .count = 3, .items = (uintptr_t)it };
	uint8_t buf[BLOCK], *map;
	unsigned int i;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 8));
	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_EXPORT, &x));
	EXPECT_EQ(self->host, x.tier);
	EXPECT_EQ(3 * BLOCK, x.bytes);
	EXPECT_EQ(x.bytes, lseek(x.fd, 0, SEEK_END));
	EXPECT_EQ(FD_CLOEXEC, fcntl(x.fd, F_GETFD));
	EXPECT_EQ(3, stat_pinned(self->fd));
	map = map_area(x.fd, 0, x.bytes, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, map);
	EXPECT_TRUE(filled(map, BLOCK, 5));
	EXPECT_TRUE(filled(map + BLOCK, BLOCK, 1));
	EXPECT_TRUE(filled(map + 2 * BLOCK, BLOCK, 3));

	for (i = 0; i < N_IMPORTERS; i++) {
		int imp = imp_attach(x.fd, importers[i]);

		ASSERT_GE(imp, 0);
		EXPECT_EQ(-ENXIO, imp_rw(imp, 0, buf, BLOCK, 0)) TH_LOG("not mapped");
		EXPECT_TRUE(imp_sees(imp, BLOCK, 1, HAWK_IMP_RW_VMAP));
		ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
		EXPECT_TRUE(imp_sees(imp, 0, 5, 0));
		EXPECT_TRUE(imp_sees(imp, 2 * BLOCK, 3, 0));
		/* what the device writes is in the block, and in the process's mapping */
		fill(buf, BLOCK, 100 + i);
		ASSERT_EQ(0, imp_rw(imp, BLOCK, buf, BLOCK, HAWK_IMP_RW_WRITE));
		EXPECT_TRUE(filled(frame_at(self->win, it[1].vt, BLOCK), BLOCK, 100 + i));
		EXPECT_TRUE(filled(map + BLOCK, BLOCK, 100 + i));
		fill(frame_at(self->win, it[1].vt, BLOCK), BLOCK, 1);
		EXPECT_EQ(-EINVAL, imp_rw(imp, x.bytes - 8, buf, 16, 0)) TH_LOG("behind the end");
		if (importers[i] & HAWK_IMP_DYNAMIC)
			EXPECT_EQ(0, imp_call(imp, HAWK_IMP_IOC_PIN, 0));
		close(imp);
	}
	munmap(map, x.bytes);
	close(x.fd);
	EXPECT_EQ(0, stat_pinned(self->fd));
}

/* A device fills blocks that are not published yet. */
TEST_F(hawk, device_fills_a_block)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_export x;
	uint8_t buf[BLOCK];
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, 0, &x));
	imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	fill(buf, BLOCK, 9);
	ASSERT_EQ(0, imp_rw(imp, 0, buf, BLOCK, HAWK_IMP_RW_WRITE));
	close(imp);
	close(x.fd);
	it.vt = 0;
	set_key(&it, 9);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	it = key_item(9);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &it));
	EXPECT_TRUE(filled(frame_at(self->win, it.vt, BLOCK), BLOCK, 9));
}

static int sync_cpu(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	return dev_call(fd, DMA_BUF_IOCTL_SYNC, &sync);
}

TEST_F(hawk, read_only)
{
	struct hawk_export x;
	uint8_t buf[BLOCK];
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, HAWK_EXPORT_READ_ONLY, &x));
	EXPECT_EQ(NULL, map_area(x.fd, 0, BLOCK, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, sync_cpu(x.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(0, sync_cpu(x.fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ));
	EXPECT_EQ(-EACCES, sync_cpu(x.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC);
	ASSERT_GE(imp, 0);
	EXPECT_EQ(-EACCES, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_READ));
	EXPECT_TRUE(imp_sees(imp, 0, 0, 0));
	EXPECT_TRUE(imp_sees(imp, 0, 0, HAWK_IMP_RW_VMAP));
	EXPECT_EQ(-EACCES, imp_rw(imp, 0, buf, 8, HAWK_IMP_RW_WRITE));
	close(imp);
	EXPECT_EQ(-EACCES, imp_attach(x.fd, 0)) TH_LOG("a fixed mapping is both ways");
	close(x.fd);
}

TEST_F(hawk, read_only_file_exports_read_only)
{
	struct hawk_space_create sc = space_args(64);
	int owner = dev_open(O_RDWR), fd = dev_open(O_RDONLY);
	struct hawk_export x;
	uint8_t *win;

	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, "test-export-ro");
	sc.quota[self->host].max_bytes = 2 * MIB;
	ASSERT_EQ(0, dev_call(owner, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, space_attach(fd, "test-export-ro"));
	ASSERT_EQ(0, space_destroy(owner, "test-export-ro"));
	win = map_area(owner, HAWK_MMAP_TIER(self->host), 2 * MIB, PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, make_blocks(owner, win, 0, 1));
	ASSERT_EQ(0, export_blocks(fd, 0, 1, 0, &x));
	EXPECT_EQ(NULL, map_area(x.fd, 0, BLOCK, PROT_READ | PROT_WRITE));
	close(x.fd);
	/* another's export is not its to revoke */
	ASSERT_EQ(0, export_blocks(owner, 0, 1, HAWK_EXPORT_REVOCABLE, &x));
	EXPECT_EQ(-EACCES, export_revoke(fd, x.export_id, 0));
	EXPECT_EQ(0, export_revoke(owner, x.export_id, LONG));
	close(x.fd);
	munmap(win, 2 * MIB);
	close(fd);
	close(owner);
}

/* ---- plain exports stay ---- */

TEST_F(hawk, plain_export_is_not_taken_back)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_export x;

	ASSERT_EQ(0, fill_tier(self->fd));
	ASSERT_EQ(0, export_blocks(self->fd, 0, HOST_BLOCKS, 0, &x));
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_UNSHARE, LID(0)));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(-EOPNOTSUPP, export_revoke(self->fd, x.export_id, 0));
	it.lid = LID(HOST_BLOCKS);
	EXPECT_EQ(-EDQUOT, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	close(x.fd);
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-ENOENT, export_revoke(self->fd, x.export_id, 0));
}

TEST_F(hawk, plain_export_outlives_its_file)
{
	struct hawk_export x;
	uint8_t *map;
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 4));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 4, 0, &x));
	imp = imp_attach(x.fd, 0);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	map = map_area(x.fd, 0, x.bytes, PROT_READ);
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	close(x.fd);
	EXPECT_TRUE(filled(map + 3 * BLOCK, BLOCK, 3));
	EXPECT_TRUE(imp_sees(imp, 2 * BLOCK, 2, 0));
	munmap(map, x.bytes);
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host)) TH_LOG("the importer has it");
	close(imp);
	self->fd = dev_open(O_RDWR);
}

/* ---- revocable ones give way ---- */

/* A driver that maps it for the CPU and does not ask first: no byte of the space, no splat. */
TEST_F(hawk, mapping_what_is_gone)
{
	uint8_t buf[BLOCK], zero[BLOCK] = { 0 };
	struct hawk_export x;
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 2, HAWK_EXPORT_REVOCABLE, &x));
	imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC);
	ASSERT_GE(imp, 0);
	EXPECT_TRUE(imp_sees(imp, BLOCK, 1, HAWK_IMP_RW_VMAP | HAWK_IMP_RW_BARE));
	EXPECT_EQ(0, export_revoke(self->fd, x.export_id, LONG));
	EXPECT_EQ(-ENODEV, imp_rw(imp, BLOCK, buf, BLOCK, HAWK_IMP_RW_VMAP));
	fill(buf, BLOCK, 7);
	EXPECT_EQ(0, imp_rw(imp, BLOCK, buf, BLOCK,
			    HAWK_IMP_RW_VMAP | HAWK_IMP_RW_BARE | HAWK_IMP_RW_WRITE));
	EXPECT_EQ(0, imp_rw(imp, BLOCK, buf, BLOCK, HAWK_IMP_RW_VMAP | HAWK_IMP_RW_BARE));
	EXPECT_EQ(0, memcmp(buf, zero, BLOCK));
	EXPECT_EQ(0, stat_pinned(self->fd));
	close(imp);
	close(x.fd);
}

TEST_F(hawk, processes_lose_their_mapping)
{
	struct iovec iov = { .iov_len = 4096 };
	struct hawk_export x;
	uint8_t *map;
	int p[2];

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 2, HAWK_EXPORT_REVOCABLE, &x));
	map = map_area(x.fd, 0, x.bytes, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, map);
	EXPECT_EQ(0, touch(map));
	iov.iov_base = map;
	ASSERT_EQ(0, pipe(p));
	EXPECT_EQ(-1, vmsplice(p[1], &iov, 1, 0)) TH_LOG("a pinned page would outlast it");
	close(p[0]);
	close(p[1]);
	EXPECT_EQ(0, export_revoke(self->fd, x.export_id, LONG));
	EXPECT_EQ(SIGBUS, touch(map)) TH_LOG("a page that was mapped");
	EXPECT_EQ(SIGBUS, touch(map + BLOCK)) TH_LOG("one that was not");
	EXPECT_EQ(NULL, map_area(x.fd, 0, x.bytes, PROT_READ));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-ENODEV, sync_cpu(x.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(-ENOENT, export_revoke(self->fd, x.export_id, 0));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	munmap(map, x.bytes);
	close(x.fd);
}

/* One that lets go is waited for; one that does not keeps its bytes until it does. */
TEST_F(hawk, revoke_under_each_importer)
{
	struct hawk_export x;
	unsigned int i;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	for (i = 0; i < N_IMPORTERS; i++) {
		bool lets_go = importers[i] == HAWK_IMP_DYNAMIC;
		int imp;

		ASSERT_EQ(0, make_blocks(self->fd, self->win, i, 1));
		ASSERT_EQ(0, export_blocks(self->fd, i, 1, HAWK_EXPORT_REVOCABLE, &x));
		imp = imp_attach(x.fd, importers[i]);
		ASSERT_GE(imp, 0);
		ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
		ASSERT_EQ(lets_go ? 0 : -EBUSY,
			  export_revoke(self->fd, x.export_id, lets_go ? LONG : SOON))
			TH_LOG("importer %u", i);
		EXPECT_EQ(!!(importers[i] & HAWK_IMP_DYNAMIC), imp_info(imp).notifies);
		EXPECT_EQ(!lets_go, imp_info(imp).mapped);
		EXPECT_EQ(lets_go ? 0 : 1, stat_pinned(self->fd));
		if (lets_go) {
			EXPECT_EQ(-ENODEV, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
			EXPECT_EQ(-ENODEV, imp_call(imp, HAWK_IMP_IOC_PIN, 0));
		} else {
			EXPECT_TRUE(imp_sees(imp, 0, i, 0)) TH_LOG("its bytes are its own");
			EXPECT_EQ(-EBUSY, export_revoke(self->fd, x.export_id, SOON));
		}
		EXPECT_EQ(-ENODEV, imp_attach(x.fd, importers[i]));
		close(imp);
		wait_unpinned(self->fd);
		close(x.fd);
		EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(i)));
	}
}

/* DMA that still runs is waited for, also when the mapping is gone. */
TEST_F(hawk, revoke_waits_for_fences)
{
	struct hawk_export x;
	int imp;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, HAWK_EXPORT_REVOCABLE, &x));
	imp = imp_attach(x.fd, HAWK_IMP_DYNAMIC);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_FENCE, 1));
	EXPECT_EQ(-EBUSY, export_revoke(self->fd, x.export_id, SOON));
	EXPECT_EQ(0, imp_info(imp).mapped);
	EXPECT_EQ(1, stat_pinned(self->fd));
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_FENCE, 0));
	wait_unpinned(self->fd);
	close(imp);
	close(x.fd);
}

TEST_F(hawk, free_and_unshare_revoke)
{
	struct hawk_export x, y;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 4));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 3, HAWK_EXPORT_REVOCABLE, &x));
	ASSERT_EQ(0, export_blocks(self->fd, 1, 3, HAWK_EXPORT_REVOCABLE, &y));
	EXPECT_EQ(4, stat_pinned(self->fd));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(2))) TH_LOG("it is in both");
	EXPECT_EQ(0, stat_pinned(self->fd));
	close(x.fd);
	close(y.fd);
	ASSERT_EQ(0, export_blocks(self->fd, 3, 1, HAWK_EXPORT_REVOCABLE, &y));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, HAWK_EXPORT_REVOCABLE, &x));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNSHARE, LID(0)));
	EXPECT_EQ(2, stat_pinned(self->fd)) TH_LOG("the writer's, and that of the other export");
	close(x.fd);
	close(y.fd);
}

TEST_F(hawk, pressure_revokes)
{
	struct hawk_item it = { .lid = LID(HOST_BLOCKS) };
	struct hawk_export x, y;

	ASSERT_EQ(0, fill_tier(self->fd));
	ASSERT_EQ(0, export_blocks(self->fd, 0, HOST_BLOCKS / 2, HAWK_EXPORT_REVOCABLE, &x));
	ASSERT_EQ(0, export_blocks(self->fd, HOST_BLOCKS / 2, HOST_BLOCKS / 2,
				   HAWK_EXPORT_REVOCABLE, &y));
	EXPECT_EQ(-EDQUOT, one(self->fd, HAWK_IOC_ALLOC, HAWK_BATCH_NOWAIT, &it));
	EXPECT_EQ(HOST_BLOCKS, stat_pinned(self->fd)) TH_LOG("without waiting nothing gives way");
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(HOST_BLOCKS / 2 + 1, stat_pinned(self->fd)) TH_LOG("the oldest, and no more");
	EXPECT_EQ(-ENOENT, export_revoke(self->fd, x.export_id, 0));
	EXPECT_EQ(0, export_revoke(self->fd, y.export_id, LONG));
	close(x.fd);
	close(y.fd);
}

/* An importer that does not let go costs the others nothing. */
TEST_F(hawk, pressure_revokes_one_at_a_time)
{
	const uint32_t n = HOST_BLOCKS / 4;
	struct hawk_item it = { .lid = LID(HOST_BLOCKS) };
	struct hawk_export x[4];
	int imp, i;

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	ASSERT_EQ(0, fill_tier(self->fd));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, export_blocks(self->fd, i * n, n, HAWK_EXPORT_REVOCABLE, &x[i]));
	imp = imp_attach(x[0].fd, HAWK_IMP_DYNAMIC | HAWK_IMP_HOLD);
	ASSERT_EQ(0, imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH));
	EXPECT_EQ(-EDQUOT, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(HOST_BLOCKS, stat_pinned(self->fd)) TH_LOG("the first, and no other");
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(3 * n + 1, stat_pinned(self->fd)) TH_LOG("the second, and no other");
	close(imp);
	for (i = 0; i < 4; i++)
		close(x[i].fd);
}

/* One revocable export of all blocks that are in the tier: their number, or an error. */
static int export_resident(int fd, uint32_t host, uint32_t n, struct hawk_export *x)
{
	struct hawk_item it[HOST_BLOCKS] = { 0 };
	uint32_t i, k;

	for (i = k = 0; i < n; i++) {
		it[k].lid = LID(i);
		if (!one(fd, HAWK_IOC_TRANSLATE, 0, &it[k]) && HAWK_VT_TIER(it[k].vt) == host)
			k++;
		it[k] = (struct hawk_item){ 0 };
	}
	for (i = 0; i < k; i++)
		it[i].vt = 0;
	*x = (struct hawk_export){
		.size = sizeof(*x), .flags = HAWK_EXPORT_REVOCABLE, .count = k,
		.items = (uintptr_t)it,
	};
	return dev_call(fd, HAWK_IOC_EXPORT, x) ?: (int)k;
}

/* Who may only read makes room at his own expense, not at that of who may write. */
TEST_F(hawk, reader_takes_only_its_own)
{
	const uint32_t n = 2 * MIB / BLOCK + 1;	/* one has no place in host memory */
	struct hawk_space_create sc = space_args(2 * n);
	int owner = dev_open(O_RDWR), fd = dev_open(O_RDONLY);
	struct hawk_item it = { 0 };
	struct hawk_export x;
	uint32_t i, blk;
	uint8_t *win, *map;
	char *path;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("reader", 4 * MIB);
	ASSERT_EQ(0, blk_add(self->ctl, path, 4 * MIB, &blk));
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, "test-reader");
	sc.quota[self->host].max_bytes = 2 * MIB;
	sc.quota[blk].max_bytes = 4 * MIB;
	ASSERT_EQ(0, dev_call(owner, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, space_attach(fd, "test-reader"));
	ASSERT_EQ(0, space_destroy(owner, "test-reader"));
	win = map_area(owner, HAWK_MMAP_TIER(self->host), 2 * MIB, PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, make_blocks(owner, win, 0, n));

	ASSERT_EQ(n - 1, export_resident(owner, self->host, n, &x));
	map = map_area(x.fd, 0, x.bytes, PROT_READ);
	for (i = 0; i < n; i++) {
		it = (struct hawk_item){ .lid = LID(i) };
		if (!one(owner, HAWK_IOC_TRANSLATE, 0, &it) && HAWK_VT_TIER(it.vt) == blk)
			break;
	}
	ASSERT_LT(i, n);
	it.vt = 0;
	EXPECT_EQ(-EDQUOT, one(fd, HAWK_IOC_GET, 0, &it));
	EXPECT_EQ(-EDQUOT, one(fd, HAWK_IOC_RELOAD, 0, &it));
	EXPECT_EQ(0, touch(map)) TH_LOG("the writer's export was revoked");
	EXPECT_EQ(0, export_revoke(owner, x.export_id, LONG));
	munmap(map, x.bytes);
	close(x.fd);

	ASSERT_EQ(n - 1, export_resident(fd, self->host, n, &x));
	EXPECT_EQ(0, one(fd, HAWK_IOC_GET, 0, &it)) TH_LOG("its own gives way");
	EXPECT_TRUE(filled(frame_at(win, it.vt, BLOCK), BLOCK, i));
	close(x.fd);
	munmap(win, 2 * MIB);
	close(fd);
	close(owner);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, blk));
	unlink(path);
	free(path);
}

/* The end of the file is the end of its revocable exports. */
TEST_F(hawk, close_revokes)
{
	struct hawk_export x;
	uint8_t *map, *win;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 1));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, HAWK_EXPORT_REVOCABLE, &x));
	map = map_area(x.fd, 0, BLOCK, PROT_READ);
	win = self->win;
	EXPECT_EQ(0, touch(map));
	munmap(win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(SIGBUS, touch(map));
	EXPECT_EQ(0, tier_remove_idle(self->ctl, self->host)) TH_LOG("the dma-buf is still open");
	munmap(map, BLOCK);
	close(x.fd);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
	self->fd = dev_open(O_RDWR);
}

/* By force a tier goes with what gives way, not with what others were promised. */
TEST_F(hawk, forced_removal)
{
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_FORCE, .tier = self->host,
	};
	struct hawk_export x;
	uint8_t *map;

	ASSERT_EQ(0, make_blocks(self->fd, self->win, 0, 2));
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, 0, &x));
	map = map_area(x.fd, 0, BLOCK, PROT_READ);
	EXPECT_EQ(-EBUSY, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	EXPECT_TRUE(filled(map, BLOCK, 0));
	munmap(map, BLOCK);
	close(x.fd);
	ASSERT_EQ(0, export_blocks(self->fd, 0, 1, HAWK_EXPORT_REVOCABLE, &x));
	map = map_area(x.fd, 0, BLOCK, PROT_READ);
	EXPECT_EQ(0, touch(map));
	EXPECT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	EXPECT_EQ(SIGBUS, touch(map));
	munmap(map, BLOCK);
	close(x.fd);
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &self->host));
}

/* ---- death ---- */

static unsigned int env_number(const char *name, unsigned int otherwise)
{
	const char *val = getenv(name);

	return val ? strtoul(val, NULL, 0) : otherwise;
}

/* Exports, imports, revokes at random until it is killed. */
static void client(uint32_t host, unsigned int seed)
{
	struct hawk_space_create sc = space_args(64);
	int fd = dev_open(O_RDWR);
	uint8_t *win;

	sc.quota[host].max_bytes = 2 * MIB;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))
		_exit(1);
	win = map_area(fd, HAWK_MMAP_TIER(host), 2 * MIB, PROT_READ | PROT_WRITE);
	if (!win || make_blocks(fd, win, 0, 16))
		_exit(2);
	for (;;) {
		uint32_t first = rand_r(&seed) % 8, n = 1 + rand_r(&seed) % 8;
		uint32_t kind = importers[rand_r(&seed) % N_IMPORTERS];
		struct hawk_export x;
		int imp;

		if (export_blocks(fd, first, n, rand_r(&seed) & HAWK_EXPORT_REVOCABLE, &x))
			_exit(3);
		imp = imp_attach(x.fd, kind);
		if (imp < 0 || imp_call(imp, HAWK_IMP_IOC_MAP, HAWK_IMP_BOTH))
			_exit(4);
		if (!imp_sees(imp, 0, first, 0))
			_exit(5);
		if (x.flags & HAWK_EXPORT_REVOCABLE)
			export_revoke(fd, x.export_id, 1);
		close(imp);
		close(x.fd);
	}
}

TEST_F_TIMEOUT(hawk, killed_clients_leave_nothing, 600)
{
	unsigned int seed = env_number("HAWK_DMABUF_SEED", 20261130);
	unsigned int i, rounds = env_number("HAWK_DMABUF_N", 200);

	if (model_load("importer", ""))
		SKIP(return, "no hawk_importer.ko in HAWK_TEST_MODELS");
	TH_LOG("HAWK_DMABUF_SEED=%u", seed);
	for (i = 0; i < rounds; i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			client(self->host, seed + i);
		ASSERT_GT(pid, 0);
		poll(NULL, 0, rand_r(&seed) % 60);	/* what is random is the moment */
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("round %u: client gave up: %d", i,
							WEXITSTATUS(status));
	}
	while (tier_free_bytes(self->ctl, self->host) != HOST_BYTES)
		poll(NULL, 0, 10);
}

TEST_HARNESS_MAIN
