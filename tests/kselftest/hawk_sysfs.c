// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_sysfs.c - attributes: their values, what they accept, what is told of them
 *
 * HAWK_TEST_ABI is the folder Documentation/ABI/testing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "hawk_tiers.h"

#define SYSFS		"/sys/class/misc/hawk"
#define DEBUGFS		"/sys/kernel/debug/hawk"

/* Reads one attribute; 0 if it is exactly one line, which comes without its end. */
static int attr_read(int tier, const char *name, char *buf, size_t len)
{
	char path[256];
	ssize_t n;
	int fd;

	if (tier < 0)
		snprintf(path, sizeof(path), SYSFS "/%s", name);
	else
		snprintf(path, sizeof(path), SYSFS "/tier%d/%s", tier, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 2 || memchr(buf, '\n', n) != buf + n - 1)
		return -EPROTO;
	buf[n - 1] = 0;
	return 0;
}

/* An attribute that is a number in decimal; INT64_MIN if it is not. */
static int64_t attr_number(int tier, const char *name)
{
	char buf[64], again[64];
	int64_t val;

	if (attr_read(tier, name, buf, sizeof(buf)))
		return INT64_MIN;
	val = strtoll(buf, NULL, 10);
	snprintf(again, sizeof(again), "%" PRId64, val);
	return strcmp(buf, again) ? INT64_MIN : val;
}

static int attr_write(int tier, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), SYSFS "/tier%d/%s", tier, name);
	return write_file(path, text);
}

TEST_F(tiers, abi_version)
{
	struct hawk_query q = { .size = sizeof(q) };

	ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_QUERY, &q));
	EXPECT_EQ(q.abi_version, attr_number(-1, "abi_version"));
	EXPECT_EQ(HAWK_ABI_VERSION, q.abi_version);
}

/* Every attribute of a tier says what HAWK_IOC_TIER_INFO says. */
TEST_F(tiers, values)
{
	const uint32_t tier[] = { self->host, self->blk };
	int fd = evicting_space(self->host, self->blk, "test-sysfs");
	struct hawk_tier_info info;
	uint32_t i, t;
	char kind[64];

	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_RELOAD, LID(0)));
	for (i = 0; i < 2; i++) {
		t = tier[i];
		info = (struct hawk_tier_info){ .size = sizeof(info), .tier = t };
		ASSERT_EQ(0, dev_call(self->ctl, HAWK_IOC_TIER_INFO, &info));
		ASSERT_EQ(0, attr_read(t, "kind", kind, sizeof(kind)));
		EXPECT_STREQ(info.kind == HAWK_TIER_HOST ? "host" : "blk", kind);
		EXPECT_EQ(info.node, attr_number(t, "node"));
		EXPECT_EQ(info.bytes, attr_number(t, "bytes"));
		EXPECT_EQ(info.free_bytes, attr_number(t, "free_bytes"));
		EXPECT_EQ(info.quarantine_bytes, attr_number(t, "quarantine_bytes"));
		EXPECT_EQ(info.read_bytes, attr_number(t, "read_bytes"));
		EXPECT_EQ(info.write_bytes, attr_number(t, "write_bytes"));
		EXPECT_EQ(info.io_errors, attr_number(t, "io_errors"));
		EXPECT_EQ(info.reclaimed_bytes, attr_number(t, "reclaimed_bytes"));
		EXPECT_EQ(0, attr_number(t, "writeback_permille"));
		EXPECT_GE(attr_number(t, "submit_cpu_ns"), info.submit_cpu_ns);
		EXPECT_GE(attr_number(t, "complete_cpu_ns"), info.complete_cpu_ns);
		EXPECT_GE(attr_number(t, "checksum_cpu_ns"), info.checksum_cpu_ns);
		EXPECT_EQ(info.copy_cpu_ns, attr_number(t, "copy_cpu_ns"));
	}
	/* and flash has counted: one reload, an eviction of each block too many */
	EXPECT_EQ(FLASH_BYTES, info.bytes);
	EXPECT_LT(info.free_bytes, info.bytes);
	EXPECT_EQ(BLOCK, info.read_bytes);
	EXPECT_GE(info.write_bytes, (NBLOCKS - HOST_BLOCKS) * BLOCK);
	/* which took the CPU some time; memory is given nothing to read or write */
	EXPECT_LT(0, info.submit_cpu_ns);
	EXPECT_LT(0, info.complete_cpu_ns);
	EXPECT_LT(0, info.checksum_cpu_ns);
	EXPECT_EQ(0, attr_number(self->blk, "copy_cpu_ns"));
	EXPECT_EQ(0, attr_number(self->host, "submit_cpu_ns"));
	EXPECT_EQ(0, attr_number(self->host, "copy_cpu_ns"));
	close(fd);
}

TEST_F(tiers, writeback_permille)
{
	static const char *const bad[] = {
		"1025", "-1", "4294967296", "18446744073709551616", "x", "1 2", "1x", "\n", "0x",
	};
	unsigned int i;

	EXPECT_EQ(0, attr_number(self->host, "writeback_permille"));
	EXPECT_EQ(0, attr_write(self->host, "writeback_permille", "1024\n"));
	EXPECT_EQ(1024, attr_number(self->host, "writeback_permille"));
	EXPECT_EQ(0, attr_write(self->host, "writeback_permille", "100"));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret = attr_write(self->host, "writeback_permille", bad[i]);

		EXPECT_TRUE(ret == -EINVAL || ret == -ERANGE) TH_LOG("'%s': %d", bad[i], ret);
		EXPECT_EQ(100, attr_number(self->host, "writeback_permille"));
	}
	EXPECT_EQ(0, attr_write(self->host, "writeback_permille", "0"));
	EXPECT_EQ(0, attr_number(self->host, "writeback_permille"));
	/* flash has nothing to write ahead */
	EXPECT_EQ(0, attr_write(self->blk, "writeback_permille", "0"));
	EXPECT_EQ(-EINVAL, attr_write(self->blk, "writeback_permille", "1"));
	EXPECT_EQ(0, attr_number(self->blk, "writeback_permille"));
}

static bool told(const char *doc, const char *path)
{
	char line[1024];

	snprintf(line, sizeof(line), "What:\t\t%s\n", path);
	return strstr(doc, line);
}

/* What the document does not tell of in @dir, which is @as there; all of it is printed. */
static int undocumented(const char *doc, const char *dir, const char *as)
{
	/* every device has these */
	static const char *const core[] = { ".", "..", "dev", "power", "subsystem", "uevent", NULL };
	char path[600], name[600];
	struct dirent *e;
	DIR *d = opendir(dir);
	int n = 0, i;

	if (!d)
		return -1;
	while ((e = readdir(d))) {
		for (i = 0; core[i] && strcmp(core[i], e->d_name); i++)
			;
		if (core[i] && (i < 2 || !strcmp(dir, SYSFS)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		snprintf(name, sizeof(name), "%s/%s", as,
			 fnmatch("tier[0-9]", e->d_name, 0) ? e->d_name : "tier<N>");
		if (e->d_type == DT_DIR) {
			n += undocumented(doc, path, name);
		} else if (!told(doc, name)) {
			fprintf(stderr, "# not documented: %s\n", path);
			n++;
		}
	}
	closedir(d);
	return n;
}

/* What is documented exists, in one of the tiers if it is of a tier. */
static int missing(const char *doc, const uint32_t *tier, uint32_t tiers, int *entries)
{
	char path[512];
	const char *p, *n;
	uint32_t i;
	int bad = 0;

	for (p = doc; (p = strstr(p, "What:\t\t")); (*entries)++) {
		int len;

		p += strlen("What:\t\t");
		len = strcspn(p, "\n");
		n = memmem(p, len, "<N>", 3);
		for (i = 0; i < tiers; i++) {
			if (n)
				snprintf(path, sizeof(path), "%.*s%u%.*s", (int)(n - p), p, tier[i],
					 (int)(p + len - n - 3), n + 3);
			else
				snprintf(path, sizeof(path), "%.*s", len, p);
			if (!access(path, F_OK))
				break;
		}
		if (i == tiers) {
			fprintf(stderr, "# only documented: %.*s\n", len, p);
			bad++;
		}
	}
	return bad;
}

/* What exists is documented, and what is documented exists: sysfs and debugfs. */
TEST_F(tiers, documented)
{
	const uint32_t tier[] = { self->host, self->blk };
	const char *doc = abi_doc("sysfs-hawk");
	int n = 0;

	if (!doc)
		SKIP(return, "HAWK_TEST_ABI is not set");
	EXPECT_EQ(0, undocumented(doc, SYSFS, SYSFS));
	if (!access("/sys/module/hawk/parameters", F_OK))
		EXPECT_EQ(0, undocumented(doc, "/sys/module/hawk/parameters",
					  "/sys/module/hawk/parameters"));
	EXPECT_EQ(0, missing(doc, tier, 2, &n));
	EXPECT_GE(n, 11);

	doc = abi_doc("debugfs-hawk");
	ASSERT_NE(NULL, doc);
	if (access(DEBUGFS, F_OK))
		SKIP(return, "no " DEBUGFS " (is debugfs mounted?)");
	n = 0;
	EXPECT_EQ(0, undocumented(doc, DEBUGFS, DEBUGFS));
	EXPECT_EQ(0, missing(doc, tier, 2, &n));
	EXPECT_GE(n, 2);
}

/* A number in column @col, counted from 0, of the line of @op in debugfs "ops". */
static long long ops_number(const char *op, int col)
{
	char line[512], *word, *save;
	long long val = -1;
	FILE *f = fopen(DEBUGFS "/ops", "r");

	while (f && fgets(line, sizeof(line), f)) {
		word = strtok_r(line, " \n", &save);
		if (strcmp(word, op))
			continue;
		while (col-- && word)
			word = strtok_r(NULL, " \n", &save);
		val = word ? strtoll(word, NULL, 10) : -1;
		break;
	}
	if (f)
		fclose(f);
	return val;
}

/* Calls and items by kind of status, of the whole device. */
TEST_F(tiers, debugfs_ops)
{
	enum { CALLS = 1, OK, MISS };
	long long calls = ops_number("lookup", CALLS), ok = ops_number("lookup", OK),
		  miss = ops_number("lookup", MISS);
	struct hawk_item it[2] = { key_item(NBLOCKS - 1), key_item(100000) };
	int fd;

	if (access(DEBUGFS, F_OK))
		SKIP(return, "no " DEBUGFS " (is debugfs mounted?)");
	ASSERT_GE(calls, 0);
	fd = evicting_space(self->host, self->blk, "test-ops");
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, batch(fd, HAWK_IOC_LOOKUP, 0, it, 2, NULL));
	EXPECT_EQ(calls + 1, ops_number("lookup", CALLS));
	EXPECT_EQ(ok + 1, ops_number("lookup", OK));
	EXPECT_EQ(miss + 1, ops_number("lookup", MISS));
	EXPECT_GE(ops_number("gather", CALLS), 0);
	close(fd);
}

/* The folder is there from the tier's start to its end. */
TEST_F(tiers, folder_comes_and_goes)
{
	char path[64];
	uint32_t tier;

	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &tier));
	snprintf(path, sizeof(path), SYSFS "/tier%u", tier);
	EXPECT_EQ(0, access(path, F_OK));
	EXPECT_EQ(0, tier_remove(self->ctl, tier));
	EXPECT_EQ(-1, access(path, F_OK));
}

TEST_HARNESS_MAIN
