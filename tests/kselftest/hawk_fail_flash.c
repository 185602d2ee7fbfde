// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_fail_flash.c - failures of memory in calls for flash: what may be written there, pools,
 * promotion, paced gathers
 *
 * hawkctl makes the pool and build/tests/pool_fill its blocks; they lie where this program
 * was built.
 */
#define _GNU_SOURCE
#include <libgen.h>
#include <poll.h>
#include <sys/wait.h>

#include "hawk_sweep.h"

#define POOL_BYTES	"32M"
#define POOL_SPACE	"agents"	/* of pool_fill */
#define POOL_BLOCKS	96u

/* ---- what may be written ---- */

static int admit(env *e)
{
	struct hawk_tier_admit a = {
		.size = sizeof(a), .flags = HAWK_ADMIT_SET, .tier = e->blk,
		.budget_bytes = 1ull << 40, .period_ns = HAWK_DAY_NS,
	};

	return dev_call(e->ctl, HAWK_IOC_TIER_ADMIT, &a) ?:
	       a.budget_bytes == 1ull << 40 ? 0 : -EINVAL;
}

SWEEP(tier_admit, .call = admit)

/* ---- promotion ---- */

static int phase(env *e, uint64_t ns)
{
	struct hawk_phase a = { .size = sizeof(a), .until_ns = ns ? now_ns() + ns : 0 };

	a.flags = ns ? HAWK_PHASE_PREFILL : 0;
	return dev_call(e->fd, HAWK_IOC_PHASE, &a);
}

static int phase_on(env *e)
{
	return phase(e, 1000000000);
}

static int phase_off(env *e)
{
	return phase(e, 0);
}

SWEEP(phase, .call = phase_on, .undo = phase_off)

/* ---- pools ---- */

/* Runs a program of the build. */
static int run(const char *name, const char *args)
{
	char exe[512], cmd[1024];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return -errno;
	exe[n] = 0;
	snprintf(cmd, sizeof(cmd), "%s/../../%s %s >/dev/null", dirname(exe), name, args);
	return system(cmd) ? -EIO : 0;
}

/* A pool with blocks of a space, in the fixture's second file. */
static int pool_make(env *e)
{
	char args[512];
	int ret;

	snprintf(args, sizeof(args), "flash format %s --force --bytes " POOL_BYTES, e->path2);
	ret = run("bin/hawkctl", args);
	snprintf(args, sizeof(args), "'embed:?dram=2M&flash=%s&persist=1' " POOL_SPACE " %u",
		 e->path2, POOL_BLOCKS);
	return ret ?: run("tests/pool_fill", args);
}

static int pool_add(env *e)
{
	struct hawk_tier_add add = {
		.size = sizeof(add), .flags = HAWK_TIER_PERSIST, .kind = HAWK_TIER_BLK,
		.node = -1, .path = (uintptr_t)e->path2, .path_len = strlen(e->path2) + 1,
	};

	return dev_call(e->ctl, HAWK_IOC_TIER_ADD, &add);
}

static int pool_tier(env *e)
{
	return __builtin_ctz(tiers_of(e->ctl) & ~e->tiers);
}

static int pool_remove(env *e)
{
	return tier_remove(e->ctl, pool_tier(e));
}

static int pool_undo(env *e)
{
	return tiers_of(e->ctl) & ~e->tiers ? tier_remove_idle(e->ctl, pool_tier(e)) : 0;
}

static bool made;

static int pool_made(env *e)
{
	int ret = made ? 0 : pool_make(e);

	made = !ret;
	return ret;
}

SWEEP(tier_add_pool, .prepare = pool_made, .call = pool_add, .undo = pool_undo)

static int pool_added(env *e)
{
	return pool_made(e) ?: pool_add(e);
}

SWEEP(tier_remove_pool, .prepare = pool_added, .call = pool_remove, .undo = pool_undo)

/* ---- a space finds its blocks again ---- */

static uint64_t pool_bytes;
static uint32_t pool;

static int find_prepare(env *e)
{
	struct hawk_tier_info info = { .size = sizeof(info) };
	int ret;

	e->other = dev_open(O_RDWR);
	ret = e->other < 0 ? -errno : pool_added(e);
	if (ret)
		return ret;
	info.tier = pool_tier(e);
	ret = dev_call(e->ctl, HAWK_IOC_TIER_INFO, &info);
	pool_bytes = info.bytes;
	pool = info.tier;
	return ret;
}

/* As pool_fill makes it. */
static int find(env *e)
{
	struct hawk_space_create sc = {
		.size = sizeof(sc), .flags = HAWK_SPACE_NAMED, .block_bytes = 65536,
		.block_tokens = 16, .layers = 1, .head_groups = 1, .max_blocks = 512, .model_id = 77,
		.buckets = 1, .mode = 0600,
	};

	strcpy((char *)sc.name, POOL_SPACE);
	sc.quota[pool].max_bytes = pool_bytes;
	return dev_call(e->other, HAWK_IOC_SPACE_CREATE, &sc);
}

/* It goes, its blocks stay where they are: the pool is taken away under it. */
static int find_undo(env *e)
{
	struct hawk_tier_remove rm = {
		.size = sizeof(rm), .flags = HAWK_TIER_FORCE, .tier = pool_tier(e),
	};
	int ret = dev_call(e->ctl, HAWK_IOC_TIER_REMOVE, &rm);

	if (!ret && space_destroy(e->ctl, POOL_SPACE) == -EBUSY)
		ret = -EBUSY;
	close(e->other);
	e->other = -1;
	return ret;
}

SWEEP(pool_space, .prepare = find_prepare, .call = find, .undo = find_undo)

/* ---- a gather that waits for the link ---- */

static uint8_t buf[2 * BLOCK] __attribute__((aligned(4096)));

/* One block of them passes in each 10 ms. */
static int paced_prepare(env *e)
{
	return pace_set("cap_percent", "1") ?: pace_set("link_mb_per_s", "1");
}

static int paced(env *e)
{
	uint64_t lids[2] = { LID(0), LID(e->blocks - 1) };
	uint32_t count = 2, remap[2];
	int32_t status[2];
	struct hawk_gather g = {
		.size = sizeof(g), .lists = 1, .rows = 2, .counts = (uintptr_t)&count,
		.lids = (uintptr_t)lids, .remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf = (uintptr_t)buf, .buf_bytes = sizeof(buf),
	};

	return dev_call(e->fd, HAWK_IOC_GATHER, &g) ?: status[0] ?: status[1];
}

static int paced_undo(env *e)
{
	return pace_set("link_mb_per_s", "0") ?: pace_set("cap_percent", "70");
}

SWEEP(gather_paced, .prepare = paced_prepare, .call = paced, .undo = paced_undo, .blocks = MANY)

TEST_HARNESS_MAIN
