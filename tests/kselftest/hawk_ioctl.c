// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_ioctl.c - every call: it works, and each wrong input once with its errno
 *
 * What is the same for all calls is in hawk_abi.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "hawk_fixture.h"

/* ---- device and tiers ---- */

TEST_F(hawk, query)
{
	struct {
		struct hawk_query q;
		uint64_t later_version;
	} big = { .q = { .size = sizeof(big) } };

	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_QUERY, &big.q));
	EXPECT_EQ(sizeof(big), big.q.size);
	EXPECT_EQ(HAWK_ABI_VERSION, big.q.abi_version);
	EXPECT_EQ(HAWK_BATCH_MAX, big.q.batch_max);
	EXPECT_TRUE(big.q.features & HAWK_FEAT_TIER_HOST);
	EXPECT_TRUE(big.q.tiers & 1u << self->host);
	EXPECT_EQ(HAWK_TIERS_MAX, big.q.tiers_max);
	EXPECT_EQ(HAWK_CHUNK_BYTES, big.q.chunk_bytes);
	EXPECT_EQ(HAWK_FRAME_ALIGN, big.q.frame_align);
}

TEST_F(hawk, tier_info)
{
	struct hawk_tier_info info = { .size = sizeof(info), .tier = self->host };

	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(HAWK_TIER_HOST, info.kind);
	EXPECT_GE(info.node, 0);
	EXPECT_EQ(HOST_BYTES, info.bytes);
	EXPECT_EQ(HOST_BYTES, info.free_bytes);
	EXPECT_EQ(0, info.quarantine_bytes);
	info.reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
	info.reserved = 0;
	info.tier = HAWK_TIERS_MAX;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
	info.tier = HAWK_TIERS_MAX - 1;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_TIER_INFO, &info));
}

TEST_F(hawk, tier_add_host_rejects)
{
	struct hawk_tier_add ok = {
		.size = sizeof(ok), .kind = HAWK_TIER_HOST, .node = -1, .bytes = 2 * MIB,
	}, add;

	add = ok, add.kind = 99;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.node = 1 << 20;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.node = -2;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.bytes = 2 * MIB - 1;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path_len = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.flags = HAWK_TIER_PERSIST;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.flags = 1u << 1;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.bytes = 1ull << 50;
	EXPECT_EQ(-ENOMEM, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
}

TEST_F(hawk, tier_ids_run_out)
{
	uint32_t tier[HAWK_TIERS_MAX], n;
	int ret = 0;

	for (n = 0; n < HAWK_TIERS_MAX; n++) {
		ret = host_add(self->ctl, 2 * MIB, &tier[n]);
		if (ret)
			break;
	}
	EXPECT_EQ(-ENOSPC, ret);
	while (n)
		EXPECT_EQ(0, tier_remove(self->ctl, tier[--n]));
}

TEST_F(hawk, tier_remove_rejects)
{
	struct hawk_tier_remove rm = { .size = sizeof(rm), .tier = self->host, .reserved = 1 };

	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->ctl, HAWK_IOC_TIER_REMOVE, &rm));
	EXPECT_EQ(-ENOENT, tier_remove(self->ctl, HAWK_TIERS_MAX));
	EXPECT_EQ(-ENOENT, tier_remove(self->ctl, HAWK_TIERS_MAX - 1));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
}

TEST_F(hawk, tier_add_file)
{
	struct hawk_tier_info info = { .size = sizeof(info) };
	uint32_t tier;
	char *path;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("tier", 5 * MIB);
	ASSERT_NE(NULL, path);
	ASSERT_EQ(0, blk_add(self->ctl, path, 0, &tier));
	info.tier = tier;
	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &info));
	EXPECT_EQ(HAWK_TIER_BLK, info.kind);
	EXPECT_EQ(-1, info.node);
	EXPECT_EQ(4 * MIB, info.bytes);
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	EXPECT_EQ(-ENOSPC, blk_add(self->ctl, path, 6 * MIB, &tier));
	EXPECT_EQ(-EINVAL, blk_add(self->ctl, path, 1, &tier));
	ASSERT_EQ(0, truncate(path, MIB));
	EXPECT_EQ(-ENOSPC, blk_add(self->ctl, path, 0, &tier));
	unlink(path);
	EXPECT_EQ(-ENOENT, blk_add(self->ctl, path, 0, &tier));
	free(path);
	EXPECT_EQ(-ENOTBLK, blk_add(self->ctl, "/dev/null", 0, &tier));
	EXPECT_EQ(-ENOTBLK, blk_add(self->ctl, test_dir(), 0, &tier));
}

static int pool_add(int fd, const char *path, uint64_t bytes)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .kind = HAWK_TIER_BLK, .node = -1, .bytes = bytes,
		.path = (uintptr_t)path, .path_len = strlen(path) + 1, .flags = HAWK_TIER_PERSIST,
	};

	return dev_call(fd, HAWK_IOC_TIER_ADD, &add);
}

/* What is no pool is not used as one; tests/e2e/flash-vm.t has those that are. */
TEST_F(hawk, tier_add_no_pool)
{
	uint32_t tier;
	char *path;
	int fd;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("nopool", 8 * MIB);
	ASSERT_NE(NULL, path);
	EXPECT_EQ(-ENOENT, pool_add(self->ctl, path, 0));
	EXPECT_EQ(-EINVAL, pool_add(self->ctl, path, 4 * MIB));
	ASSERT_EQ(0, truncate(path, 4096));
	EXPECT_EQ(-ENOENT, pool_add(self->ctl, path, 0));
	/* it was one, and both superblocks are damaged: nobody may overwrite it by chance */
	ASSERT_EQ(0, truncate(path, 8 * MIB));
	fd = open(path, O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(8, pwrite(fd, "HAWKPOOL", 8, 0));
	close(fd);
	EXPECT_EQ(-EILSEQ, pool_add(self->ctl, path, 0));
	EXPECT_EQ(-EEXIST, blk_add(self->ctl, path, 0, &tier));
	unlink(path);
	free(path);
}

/* What fills plain flash may look like a pool: nobody takes it for one. */
TEST_F(hawk, tier_add_forged_pool)
{
	struct stat st;
	uint32_t tier;
	char *path;
	int fd;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("forged", 4 * MIB);
	ASSERT_NE(NULL, path);
	ASSERT_EQ(0, blk_add(self->ctl, path, 0, &tier));
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	ASSERT_EQ(0, stat(path, &st));
	EXPECT_EQ(4 * MIB + 4096, st.st_size);	/* all that was payload still is */
	fd = open(path, O_WRONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(8, pwrite(fd, "HAWKPOOL", 8, 0));
	EXPECT_EQ(0, blk_add(self->ctl, path, 0, &tier));
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	EXPECT_EQ(-ENOENT, pool_add(self->ctl, path, 0));
	ASSERT_EQ(0, ftruncate(fd, 4 * MIB));
	EXPECT_EQ(-EEXIST, blk_add(self->ctl, path, 0, &tier));
	close(fd);
	unlink(path);
	free(path);
}

/* A process may have the embedded backend use the file, or hawkctl may look at it. */
TEST_F(hawk, tier_add_locked_file)
{
	uint32_t tier;
	char *path;
	int fd;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("locked", 4 * MIB);
	ASSERT_NE(NULL, path);
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, flock(fd, LOCK_SH));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, path, 0, &tier));
	EXPECT_EQ(-EBUSY, pool_add(self->ctl, path, 0));
	ASSERT_EQ(0, flock(fd, LOCK_UN));
	ASSERT_EQ(0, blk_add(self->ctl, path, 0, &tier));
	EXPECT_EQ(-1, flock(fd, LOCK_EX | LOCK_NB));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	EXPECT_EQ(0, flock(fd, LOCK_EX | LOCK_NB));
	close(fd);
	unlink(path);
	free(path);
}

/* Two tiers on one file would overwrite each other, whatever names it has. */
TEST_F(hawk, tier_add_file_twice)
{
	uint32_t tier, second;
	char *path, *hard, *soft;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("twice", 4 * MIB);
	ASSERT_NE(NULL, path);
	ASSERT_LT(0, asprintf(&hard, "%s.hard", path));
	ASSERT_LT(0, asprintf(&soft, "%s.soft", path));
	ASSERT_EQ(0, link(path, hard));
	ASSERT_EQ(0, symlink(path, soft));
	ASSERT_EQ(0, blk_add(self->ctl, path, 0, &tier));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, path, 0, &second));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, path, 2 * MIB, &second));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, hard, 0, &second));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, soft, 0, &second));
	/* the refused ones left nothing: the file is free again */
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	ASSERT_EQ(0, blk_add(self->ctl, hard, 0, &tier));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, path, 0, &second));
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	unlink(soft);
	unlink(hard);
	unlink(path);
	free(soft);
	free(hard);
	free(path);
}

TEST_F(hawk, tier_add_file_rejects)
{
	char path[] = "/dev/null";
	struct hawk_tier_add ok = {
		.size = sizeof(ok), .kind = HAWK_TIER_BLK, .node = -1,
		.path = (uintptr_t)path, .path_len = sizeof(path),
	}, add;

	add = ok, add.node = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path_len = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path_len = HAWK_PATH_MAX + 1;
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	add = ok, add.path_len--;	/* the NUL is missing */
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
	path[4] = 0;			/* it comes too early */
	EXPECT_EQ(-EINVAL, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &ok));
	add = ok, add.path = 8;
	EXPECT_EQ(-EFAULT, dev_call(self->ctl, HAWK_IOC_TIER_ADD, &add));
}

TEST_F(hawk, tier_add_read_only_fs)
{
	uint32_t tier;
	char *path;

	if (!test_dir())
		SKIP(return, "HAWK_TEST_DIR is not set");
	path = temp_file("ro", 2 * MIB);
	ASSERT_NE(NULL, path);
	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	ASSERT_EQ(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_EQ(0, mount(test_dir(), test_dir(), NULL, MS_BIND, NULL));
	ASSERT_EQ(0, mount(NULL, test_dir(), NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
	EXPECT_EQ(-EROFS, blk_add(self->ctl, path, 0, &tier));
	ASSERT_EQ(0, umount(test_dir()));
	unlink(path);
	free(path);
}

TEST_F(hawk, tier_add_device_in_use)
{
	uint32_t tier, second;

	if (!test_blkdev())
		SKIP(return, "HAWK_TEST_BLKDEV is not set");
	ASSERT_EQ(0, blk_add(self->ctl, test_blkdev(), 0, &tier));
	EXPECT_EQ(-EBUSY, blk_add(self->ctl, test_blkdev(), 0, &second));
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	if (getenv("HAWK_TEST_MOUNTED"))
		EXPECT_EQ(-EBUSY, blk_add(self->ctl, getenv("HAWK_TEST_MOUNTED"), 0, &tier));
}

/* ---- spaces ---- */

#define EXPECT_CREATE(err, change) do {						\
		struct hawk_space_create sc = space_args(64);			\
										\
		sc.quota[self->host].max_bytes = 2 * MIB;			\
		change;								\
		EXPECT_EQ(err, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))	\
			TH_LOG("with %s", #change);				\
	} while (0)

TEST_F(hawk, space_create_rejects)
{
	int fd = dev_open(O_RDWR);

	EXPECT_CREATE(-EOPNOTSUPP, sc.reserved = 1);
	EXPECT_CREATE(-EINVAL, sc.block_bytes = 0);
	EXPECT_CREATE(-EINVAL, sc.block_bytes = 4095);
	EXPECT_CREATE(-EINVAL, sc.block_bytes = HAWK_CHUNK_BYTES + 4096);
	EXPECT_CREATE(-EINVAL, sc.block_tokens = 0);
	EXPECT_CREATE(-EINVAL, sc.block_tokens = 65537);
	EXPECT_CREATE(-EINVAL, sc.layers = 0);
	EXPECT_CREATE(-EINVAL, sc.layers = 257);
	EXPECT_CREATE(-EINVAL, sc.head_groups = 0);
	EXPECT_CREATE(-EINVAL, sc.head_groups = 17);
	EXPECT_CREATE(-EINVAL, sc.max_blocks = 0);
	EXPECT_CREATE(-EINVAL, sc.max_blocks = HAWK_BLOCKS_MAX + 1);
	EXPECT_CREATE(-EINVAL, sc.buckets = 3);
	EXPECT_CREATE(-EINVAL, sc.buckets = 1024);
	EXPECT_CREATE(-EINVAL, sc.mode = 0600);
	EXPECT_CREATE(-EINVAL, sc.name[0] = 'x');
	EXPECT_CREATE(-EINVAL, sc.flags = HAWK_SPACE_NAMED);
	EXPECT_CREATE(-EINVAL, (sc.flags = HAWK_SPACE_NAMED, sc.name[0] = '/'));
	EXPECT_CREATE(-EINVAL, (sc.flags = HAWK_SPACE_NAMED, sc.name[0] = '\n'));
	EXPECT_CREATE(-EINVAL, (sc.flags = HAWK_SPACE_NAMED,
				memset(sc.name, 'x', HAWK_NAME_MAX)));
	EXPECT_CREATE(-EINVAL, (sc.flags = HAWK_SPACE_NAMED, sc.name[0] = 'x',
				sc.name[HAWK_NAME_MAX - 1] = 'x'));
	EXPECT_CREATE(-EINVAL, (sc.flags = HAWK_SPACE_NAMED, sc.name[0] = 'x',
				sc.mode = 0700));
	EXPECT_CREATE(-EINVAL, sc.quota[self->host].min_bytes = 4 * MIB);
	EXPECT_CREATE(-ENOENT, sc.quota[HAWK_TIERS_MAX - 1].max_bytes = 2 * MIB);
	EXPECT_CREATE(-ENOSPC, (sc.max_blocks = 4096,
				sc.quota[self->host].min_bytes = 16 * MIB,
				sc.quota[self->host].max_bytes = 16 * MIB));
	close(fd);
}

/* A table larger than the machine is the caller's error and nobody else's. */
TEST_F(hawk, space_too_large)
{
	int fd = dev_open(O_RDWR);

	EXPECT_CREATE(-ENOMEM, sc.max_blocks = HAWK_BLOCKS_MAX);
	close(fd);
}

TEST_F(hawk, space_bind_once)
{
	struct hawk_space_create sc = space_args(64);

	EXPECT_EQ(-EBUSY, dev_call(self->fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-EBUSY, space_attach(self->fd, "any"));
}

TEST_F(hawk, space_info)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	struct hawk_space_create sc = space_args(64);
	int fd = dev_open(O_RDWR);

	ASSERT_EQ(0, dev_call(self->fd, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_EQ(1, info.buckets);
	EXPECT_EQ(BLOCK, info.block_bytes);
	EXPECT_EQ(TOKENS, info.block_tokens);
	EXPECT_EQ(2, info.layers);
	EXPECT_EQ(4 * HOST_BLOCKS, info.max_blocks);
	EXPECT_EQ(HOST_BLOCKS, info.frames[self->host]);
	EXPECT_GE(info.vtlb_bytes, 4 * HOST_BLOCKS * sizeof(struct hawk_vtlb_entry));
	EXPECT_EQ(0, info.name[0]);
	/* what was left to the device is told as it is */
	sc.buckets = 0;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_EQ(64, info.buckets);
	close(fd);
}

TEST_F(hawk, space_names)
{
	struct hawk_space_create sc = space_args(64);
	int a = dev_open(O_RDWR), b = dev_open(O_RDWR);

	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, "test-names");
	sc.quota[self->host].max_bytes = 2 * MIB;
	EXPECT_EQ(-ENOENT, space_attach(b, "test-names"));
	ASSERT_EQ(0, dev_call(a, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-EEXIST, dev_call(b, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-EINVAL, space_attach(b, ""));
	EXPECT_EQ(0, space_attach(b, "test-names"));
	EXPECT_EQ(0, space_destroy(b, "test-names"));
	EXPECT_EQ(-ENOENT, space_destroy(b, "test-names"));
	EXPECT_EQ(-EINVAL, space_destroy(b, ""));
	close(a);
	close(b);
}

/* ---- batches ---- */

TEST_F(hawk, batch_rejects)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_batch ok = {
		.size = sizeof(ok), .count = 1, .items = (uintptr_t)&it, .tier = HAWK_TIER_ANY,
	}, b;
	unsigned long cmd;

	for (cmd = HAWK_IOC_ALLOC; cmd <= HAWK_IOC_TRANSLATE; cmd++) {
		b = ok, b.count = 0;
		EXPECT_EQ(-EINVAL, dev_call(self->fd, cmd, &b));
		b = ok, b.count = HAWK_BATCH_MAX + 1;
		EXPECT_EQ(-E2BIG, dev_call(self->fd, cmd, &b));
		b = ok, b.items = 0;
		EXPECT_EQ(-EFAULT, dev_call(self->fd, cmd, &b));
		b = ok, b.tier = HAWK_TIERS_MAX;
		EXPECT_EQ(-EINVAL, dev_call(self->fd, cmd, &b));
		b = ok, b.deadline_ns = ~0ull;
		EXPECT_EQ(-EINVAL, dev_call(self->fd, cmd, &b));
		b = ok, b.flags = 1u << 30;
		EXPECT_EQ(-EOPNOTSUPP, dev_call(self->fd, cmd, &b));
	}
	b = ok, b.tier = HAWK_TIERS_MAX - 1;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_ALLOC, &b));
	b = ok, b.deadline_ns = now_ns();
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_PIN, &b));
	b = ok, b.flags = HAWK_BATCH_ASYNC;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->fd, HAWK_IOC_ALLOC, &b));
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_GET, &b)) TH_LOG("no ring");
	b = ok, b.flags = HAWK_BATCH_LEASE, b.deadline_ns = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_LOOKUP, &b)) TH_LOG("past");
	b.deadline_ns = now_ns() + 2 * HAWK_LEASE_MAX_NS;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_LOOKUP, &b)) TH_LOG("far");
}

TEST_F(hawk, item_rejects)
{
	static const struct {
		unsigned long cmd;
		bool key, arg;
	} op[] = {
		{ HAWK_IOC_ALLOC }, { HAWK_IOC_PUT }, { HAWK_IOC_LOOKUP, .key = true },
		{ HAWK_IOC_PIN }, { HAWK_IOC_UNPIN }, { HAWK_IOC_GET, .key = true },
		{ HAWK_IOC_RELOAD, .key = true }, { HAWK_IOC_FORK, .arg = true },
		{ HAWK_IOC_UNSHARE }, { HAWK_IOC_FREE, .key = true }, { HAWK_IOC_TRANSLATE },
	};
	struct hawk_item it;
	unsigned int i;

	for (i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
		it = (struct hawk_item){ .lid = LID(0), .flags = 1u << 15 };
		EXPECT_EQ(-EOPNOTSUPP, one(self->fd, op[i].cmd, 0, &it)) TH_LOG("%u", i);
		it = key_item(1);
		it.arg = op[i].arg ? LID(1) : 0;
		EXPECT_EQ(op[i].key ? -ENOENT : -EOPNOTSUPP, one(self->fd, op[i].cmd, 0, &it))
			TH_LOG("by key: %u", i);
		if (op[i].key) {
			it = (struct hawk_item){ .flags = HAWK_ITEM_BY_KEY };
			EXPECT_EQ(-EINVAL, one(self->fd, op[i].cmd, 0, &it))
				TH_LOG("no key: %u", i);
		}
		if (!op[i].arg) {
			it = (struct hawk_item){ .lid = LID(0), .arg = 1 };
			EXPECT_EQ(-EINVAL, one(self->fd, op[i].cmd, 0, &it))
				TH_LOG("arg: %u", i);
		}
	}
}

TEST_F(hawk, hints)
{
	static const uint32_t bad[] = {
		HAWK_ITEM_PARENT | HAWK_ITEM_ROOT, HAWK_ITEM_TRANSIENT | HAWK_ITEM_PERSIST,
	};
	uint8_t parent[HAWK_KEY_BYTES] = { 7 };
	struct hawk_item it;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		it = (struct hawk_item){ .lid = LID(0), .flags = bad[i] };
		it.arg = bad[i] & HAWK_ITEM_PARENT ? (uintptr_t)parent : 0;
		EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_ALLOC, 0, &it)) TH_LOG("%u", i);
		it.status = 0;
		EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_PUT, 0, &it)) TH_LOG("%u", i);
	}
	it = (struct hawk_item){ .lid = LID(0), .flags = HAWK_ITEM_PARENT };
	EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	it.arg = 8;	/* where there is no memory */
	EXPECT_EQ(-EFAULT, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	it.flags |= HAWK_ITEM_TAIL | HAWK_ITEM_TURN(65535);
	it.arg = (uintptr_t)parent;
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	it.flags = HAWK_ITEM_ROOT | HAWK_ITEM_PERSIST | HAWK_ITEM_TURN(1);
	it.arg = 0;
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	it = (struct hawk_item){ .lid = LID(0), .flags = HAWK_ITEM_TAIL };
	EXPECT_EQ(-EOPNOTSUPP, one(self->fd, HAWK_IOC_GET, 0, &it));
}

TEST_F(hawk, alloc_put_get)
{
	struct hawk_item it = { .lid = LID(3) + 5 };
	uint64_t vt;

	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(LID(3), it.lid);
	EXPECT_TRUE(it.vt & HAWK_VT_VALID);
	EXPECT_EQ(self->host, HAWK_VT_TIER(it.vt));
	vt = it.vt;
	EXPECT_EQ(1, stat_pinned(self->fd));
	EXPECT_EQ(-EEXIST, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-EAGAIN, lid_call(self->fd, HAWK_IOC_PIN, LID(3))) TH_LOG("filling");
	EXPECT_EQ(-EAGAIN, lid_call(self->fd, HAWK_IOC_GET, LID(3)));
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(3)));

	it = (struct hawk_item){ .lid = LID(3) };
	set_key(&it, 3);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(-ESTALE, lid_call(self->fd, HAWK_IOC_PUT, LID(3))) TH_LOG("no pin any more");

	it = key_item(3);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_GET, 0, &it));
	EXPECT_EQ(LID(3), it.lid);
	EXPECT_EQ(vt, it.vt);
	EXPECT_EQ(1, stat_pinned(self->fd));
	it.flags = 0;
	it.vt = vt ^ 1;
	EXPECT_EQ(-ESTALE, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
	it.vt = vt;
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_UNPIN, 0, &it));
	EXPECT_EQ(-ESTALE, lid_call(self->fd, HAWK_IOC_UNPIN, LID(3)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_RELOAD, LID(3)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(3)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(3)));
	EXPECT_EQ(-ENOENT, lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(3)));
}

TEST_F(hawk, missing_blocks)
{
	unsigned long cmd;
	struct hawk_item it;

	for (cmd = HAWK_IOC_PUT; cmd <= HAWK_IOC_TRANSLATE; cmd++) {
		it = (struct hawk_item){ .lid = LID(7) };
		if (cmd == HAWK_IOC_FORK)
			it.arg = LID(8);
		if (cmd == HAWK_IOC_LOOKUP)
			set_key(&it, 7);
		EXPECT_EQ(-ENOENT, one(self->fd, cmd, 0, &it)) TH_LOG("%#lx", cmd);
	}
	it = (struct hawk_item){ .lid = HAWK_LID(0, 0, 0, 16) };
	EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_ALLOC, 0, &it)) TH_LOG("sequence 0");
	it = (struct hawk_item){ .lid = HAWK_LID(1, 2, 0, 0) };
	EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_ALLOC, 0, &it)) TH_LOG("layer 2 of 2");
	it = (struct hawk_item){ .lid = HAWK_LID(1, 0, 1, 0) };
	EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_ALLOC, 0, &it)) TH_LOG("head group 1 of 1");
}

TEST_F(hawk, announced_key)
{
	struct hawk_item it = { .lid = LID(0) }, other = { .lid = LID(1) }, by = key_item(9);

	set_key(&it, 9);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	EXPECT_EQ(-EAGAIN, one(self->fd, HAWK_IOC_LOOKUP, 0, &by));
	EXPECT_EQ(-EAGAIN, one(self->fd, HAWK_IOC_GET, 0, &by));
	set_key(&other, 9);
	EXPECT_EQ(-EEXIST, one(self->fd, HAWK_IOC_ALLOC, 0, &other));
	set_key(&it, 10);
	EXPECT_EQ(-EINVAL, one(self->fd, HAWK_IOC_PUT, 0, &it)) TH_LOG("another key");
	set_key(&it, 9);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_LOOKUP, 0, &by));
	EXPECT_EQ(LID(0), by.lid);

	/* The loser of a race to publish keeps its block, without the key. */
	other = (struct hawk_item){ .lid = LID(1) };
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &other));
	set_key(&other, 9);
	EXPECT_EQ(-EEXIST, one(self->fd, HAWK_IOC_PUT, 0, &other));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_GET, LID(1)));

	by = key_item(9);
	EXPECT_EQ(0, one(self->fd, HAWK_IOC_FREE, 0, &by));
	EXPECT_EQ(-ENOENT, one(self->fd, HAWK_IOC_LOOKUP, 0, &by));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_TRANSLATE, LID(0)));
}

/* Items that can be read but not written back: what was taken for them is given back. */
TEST_F(hawk, results_have_nowhere_to_go)
{
	struct hawk_item *it = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const unsigned long pins[] = { HAWK_IOC_PIN, HAWK_IOC_GET };
	struct hawk_item own = { .lid = LID(0) };
	unsigned int i;

	ASSERT_NE(MAP_FAILED, it);
	set_key(&own, 1);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &own));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, HAWK_BATCH_KEEP_PIN, &own));
	for (i = 0; i < 2; i++) {
		it[0] = it[1] = (struct hawk_item){ .lid = LID(0) };
		ASSERT_EQ(0, mprotect(it, 4096, PROT_READ));
		EXPECT_EQ(-EFAULT, batch(self->fd, pins[i], 0, it, 2, NULL));
		ASSERT_EQ(0, mprotect(it, 4096, PROT_READ | PROT_WRITE));
	}
	it[0] = (struct hawk_item){ .lid = LID(5) };
	it[1] = key_item(1);
	ASSERT_EQ(0, mprotect(it, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, batch(self->fd, HAWK_IOC_ALLOC, 0, it, 1, NULL));
	EXPECT_EQ(-EFAULT, batch(self->fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, it + 1, 1, NULL));
	EXPECT_EQ(1, stats_of(self->fd).blocks) TH_LOG("the new one was given up");
	/* only the first pin is left, and no lease */
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(-ESTALE, lid_call(self->fd, HAWK_IOC_UNPIN, LID(0)));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	munmap(it, 4096);
}

TEST_F(hawk, lease)
{
	struct hawk_item it = { .lid = LID(0) }, by[2] = { key_item(1), key_item(2) };
	struct hawk_lease_release rel = { .size = sizeof(rel) };
	struct hawk_batch b;

	set_key(&it, 1);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, by, 2, &b));
	EXPECT_EQ(1, b.prefix);
	EXPECT_EQ(1, b.done);
	EXPECT_EQ(-ENOENT, by[1].status);
	ASSERT_NE(0, b.lease);
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
	rel.lease = b.lease + 1;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_LEASE_RELEASE, &rel));
	rel.lease = b.lease;
	EXPECT_EQ(0, dev_call(self->fd, HAWK_IOC_LEASE_RELEASE, &rel));
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_LEASE_RELEASE, &rel));
	rel.lease = 1ull << 40;
	EXPECT_EQ(-ENOENT, dev_call(self->fd, HAWK_IOC_LEASE_RELEASE, &rel));

	/* nothing found, no lease */
	by[0] = key_item(5);
	ASSERT_EQ(0, batch(self->fd, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, by, 1, &b));
	EXPECT_EQ(0, b.lease);
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(0)));
}

TEST_F(hawk, ring_setup)
{
	struct hawk_ring_setup ok = { .size = sizeof(ok), .entries = 8, .eventfd = -1 }, rs;
	int fd = dev_open(O_RDWR);

	rs = ok, rs.entries = 0;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	rs = ok, rs.entries = 7;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	rs = ok, rs.entries = 2 * HAWK_RING_MAX;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	rs = ok, rs.eventfd = -2;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	rs = ok, rs.eventfd = 1000;
	EXPECT_EQ(-EBADF, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	rs = ok, rs.eventfd = fd;
	EXPECT_EQ(-EBADF, dev_call(fd, HAWK_IOC_RING_SETUP, &rs));
	EXPECT_EQ(0, dev_call(fd, HAWK_IOC_RING_SETUP, &ok));
	EXPECT_GE(ok.ring_bytes, sizeof(struct hawk_ring) + 8 * sizeof(struct hawk_cqe));
	EXPECT_EQ(-EBUSY, dev_call(fd, HAWK_IOC_RING_SETUP, &ok));
	close(fd);
}

TEST_F(hawk, stats)
{
	struct hawk_item it = { .lid = LID(0) };
	struct hawk_stats st;

	set_key(&it, 1);
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_ALLOC, 0, &it));
	ASSERT_EQ(0, one(self->fd, HAWK_IOC_PUT, 0, &it));
	st = stats_of(self->fd);
	EXPECT_EQ(sizeof(st), st.size);
	EXPECT_EQ(1, st.blocks);
	EXPECT_EQ(1, st.resident);
	EXPECT_EQ(0, st.pinned);
	EXPECT_EQ(1, st.allocs);
	EXPECT_EQ(1, st.puts);
	EXPECT_EQ(1, st.chunks[self->host]);
}

TEST_HARNESS_MAIN
