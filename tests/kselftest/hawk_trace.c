// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_trace.c - tracepoints: each event comes, with the right fields, and is told of
 *
 * The trace is taken in an instance of its own, so that nobody else's tracing
 * is disturbed.  HAWK_TEST_ABI is the folder Documentation/ABI/testing.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "hawk_tiers.h"

#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/hawk-kselftest"
#define NAME		"test-trace"

/* The next line of event @name at or after *@pos; its fields, or NULL. */
static const char *next_event(const char **pos, const char *name)
{
	char tag[64];
	const char *p;

	snprintf(tag, sizeof(tag), " %s: ", name);
	p = strstr(*pos, tag);
	if (!p)
		return NULL;
	p += strlen(tag);
	*pos = p;
	return p - 1;	/* the blank before the first field */
}

/* Has the line the field @field, "name=value"? */
static bool has_field(const char *line, const char *field)
{
	size_t len = strlen(field);
	const char *p, *end = line + strcspn(line, "\n");

	for (p = line; (p = strstr(p, field)) && p < end; p += len)
		if (p[-1] == ' ' && strchr(" \n", p[len]))
			return true;
	return false;
}

/* Events @name that have all of the fields, which a blank separates; the last one. */
static uint32_t events(const char *trace, const char *name, const char **last,
		       const char *fmt, ...)
{
	char want[256], fields[256], *field, *save;
	const char *p;
	uint32_t n = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	while ((p = next_event(&trace, name))) {
		strcpy(fields, want);
		for (field = strtok_r(fields, " ", &save); field; field = strtok_r(NULL, " ", &save))
			if (!has_field(p, field))
				break;
		if (field)
			continue;
		n++;
		if (last)
			*last = p;
	}
	return n;
}

/* A number of an event; ~0: it has no such field. */
static unsigned long long number(const char *line, const char *name)
{
	char tag[32];
	const char *p, *end = line + strcspn(line, "\n");

	snprintf(tag, sizeof(tag), " %s=", name);
	p = strstr(line, tag);
	return p && p < end ? strtoull(p + strlen(tag), NULL, 0) : ~0ull;
}

struct move_event {
	unsigned long long space, src_off, dst_off, latency;
	unsigned int block, gen, src, dst;
	int ret;
	char kind[16];
};

/* Events @name of moves of @kind between two tiers; the last one is in *@e. */
static uint32_t move_events(const char *trace, const char *name, unsigned long long space,
			    const char *kind, uint32_t src, uint32_t dst, struct move_event *e)
{
	struct move_event ev;
	uint32_t n = 0;
	const char *p;

	while ((p = next_event(&trace, name))) {
		if (sscanf(p, " space=%llu %15s block=%u gen=%u tier%u+%llu -> tier%u+%llu "
			   "latency=%llu ret=%d", &ev.space, ev.kind, &ev.block, &ev.gen, &ev.src,
			   &ev.src_off, &ev.dst, &ev.dst_off, &ev.latency, &ev.ret) != 10)
			continue;
		if (ev.space != space || strcmp(ev.kind, kind) || ev.src != src || ev.dst != dst ||
		    ev.src_off % BLOCK || ev.dst_off % BLOCK || ev.ret)
			continue;
		*e = ev;
		n++;
	}
	return n;
}

/*
 * Does to block 0, which is on flash, and to block 1 what has events; block 2 is in
 * both tiers then.
 */
static int work(int fd)
{
	struct hawk_item by = key_item(0), it = { .lid = LID(0) };
	struct hawk_item fork = { .lid = LID(0), .arg = LID(3000) };
	int ret;

	ret = one(fd, HAWK_IOC_LOOKUP, 0, &by) ?: one(fd, HAWK_IOC_GET, 0, &it) ?:
	      one(fd, HAWK_IOC_UNPIN, 0, &it);
	it.vt = 0;
	return ret ?: one(fd, HAWK_IOC_PIN, 0, &it) ?: one(fd, HAWK_IOC_FORK, 0, &fork) ?:
	       lid_call(fd, HAWK_IOC_UNSHARE, LID(0)) ?: lid_call(fd, HAWK_IOC_UNPIN, LID(0)) ?:
	       lid_call(fd, HAWK_IOC_FREE, LID(3000)) ?:
	       lid_call(fd, HAWK_IOC_RELOAD, LID(1)) ?: lid_call(fd, HAWK_IOC_FREE, LID(1)) ?:
	       lid_call(fd, HAWK_IOC_RELOAD, LID(2));
}

/*
 * ALLOC pins, so of one more than there are frames one finds every frame pinned;
 * which one depends on the moves.
 */
static int refused_alloc(int fd, struct hawk_item *refused)
{
	struct hawk_item *all = calloc(HOST_BLOCKS + 1, sizeof(*all));
	uint32_t i;
	int ret;

	for (i = 0; i <= HOST_BLOCKS; i++)
		all[i].lid = LID(2000 + i);
	ret = batch(fd, HAWK_IOC_ALLOC, 0, all, HOST_BLOCKS + 1, NULL);
	for (i = 0; i <= HOST_BLOCKS; i++)
		if (all[i].status)
			*refused = all[i];
	free(all);
	return ret;
}

/* Six rows of two lists: blocks 3 and 4 are on flash, 2 in both tiers, 1 is gone. */
static int gather(int fd, struct hawk_gather *g)
{
	uint64_t lid[] = { LID(3), LID(4), LID(2), LID(3), LID(1), LID(2) };
	uint32_t count[] = { 3, 3 }, remap[6];
	int32_t status[6];

	*g = (struct hawk_gather){
		.size = sizeof(*g), .lists = 2, .rows = 6, .counts = (uintptr_t)count,
		.lids = (uintptr_t)lid, .remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf = g->buf, .buf_bytes = 6 * BLOCK,
	};
	return dev_call(fd, HAWK_IOC_GATHER, g);
}

/* One that does what it should, in *@g, and one whose buffer is not there. */
static int gathers(int fd, struct hawk_gather *g)
{
	void *buf = mmap(NULL, 6 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct hawk_gather bad;
	int ret;

	g->buf = (uintptr_t)buf;
	ret = gather(fd, g);
	munmap(buf, 6 * BLOCK);
	bad.buf = g->buf;
	return ret ?: gather(fd, &bad) == -EFAULT ? 0 : -1;
}

static char *read_trace(void)
{
	size_t room = 8 << 20, n;
	char *buf = malloc(room);
	FILE *f = fopen(INSTANCE "/trace", "r");

	if (!f || !buf)
		return NULL;
	n = fread(buf, 1, room - 1, f);
	fclose(f);
	buf[n] = 0;
	return buf;
}

/* The number of the space called @name; 0: no such event with our geometry. */
static unsigned long long space_event(const char *trace, const char *event, const char *name)
{
	const char *p;

	if (events(trace, event, &p, "name=%s block_bytes=%u", name, BLOCK) != 1)
		return 0;
	return number(p, "space");
}

static bool trace_start(const char *enable)
{
	char path[256];

	if (access(TRACEFS "/events/hawk", F_OK))
		return false;
	rmdir(INSTANCE);	/* of a test that was killed */
	if (mkdir(INSTANCE, 0700))
		return false;
	snprintf(path, sizeof(path), INSTANCE "/events/hawk/%s", enable);
	return !write_file(path, "1");
}

static int trace_stop(void)
{
	return write_file(INSTANCE "/events/hawk/enable", "0") ?: rmdir(INSTANCE);
}

static void check_calls(struct __test_metadata *_metadata, const char *trace,
			unsigned long long space)
{
	static const char calls[][16] = {
		"hawk_alloc", "hawk_put", "hawk_lookup", "hawk_get", "hawk_pin", "hawk_unpin",
		"hawk_unshare",
	};
	const char *p;
	uint32_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		EXPECT_LE(1, events(trace, calls[i], &p, "space=%llu lid=%#llx pid=%d ret=0",
				    space, LID(0), getpid()))
			TH_LOG("no %s", calls[i]);
	ASSERT_EQ(1, events(trace, "hawk_get", &p, "space=%llu lid=%#llx ret=0", space, LID(0)));
	EXPECT_LT(HAWK_VT_FRAME(number(p, "vt")), HOST_BLOCKS);
	EXPECT_EQ(1, events(trace, "hawk_fork", NULL, "space=%llu lid=%#llx new_lid=%#llx pid=%d ret=0",
			    space, LID(0), LID(3000), getpid()));
	EXPECT_EQ(1, events(trace, "hawk_reload", NULL, "space=%llu lid=%#llx ret=0", space,
			    LID(1)));
	EXPECT_EQ(1, events(trace, "hawk_free", NULL, "space=%llu lid=%#llx ret=0", space, LID(1)));

	i = events(trace, "hawk_batch_begin", NULL, "space=%llu", space);
	EXPECT_EQ(i, events(trace, "hawk_batch_end", NULL, "space=%llu", space));
	EXPECT_EQ(NBLOCKS / STEP + 1, events(trace, "hawk_batch_begin", NULL,
					     "space=%llu op=alloc done=0 latency=0", space));
	EXPECT_EQ(NBLOCKS / STEP, events(trace, "hawk_batch_end", &p,
					 "space=%llu op=alloc items=%u done=%u flags=0x0 async=0 pid=%d",
					 space, STEP, STEP, getpid()));
	EXPECT_LT(0, number(p, "latency"));
	EXPECT_EQ(1, events(trace, "hawk_batch_end", NULL, "space=%llu op=alloc items=%u done=%u",
			    space, HOST_BLOCKS + 1, HOST_BLOCKS));
}

static void check_gathers(struct __test_metadata *_metadata, const char *trace,
			  unsigned long long space, const struct hawk_gather *g)
{
	uint32_t transfers = 0, i;
	const char *p;

	for (i = 0; i < HAWK_TIERS_MAX; i++)
		transfers += g->tier[i].transfers;
	EXPECT_EQ(3, g->unique);
	EXPECT_EQ(5, g->done);
	ASSERT_EQ(1, events(trace, "hawk_gather", &p,
			    "space=%llu lists=2 rows=6 unique=3 transfers=%u bytes=%u pid=%d async=0 ret=0",
			    space, transfers, 3 * BLOCK, getpid()));
	EXPECT_LT(0, number(p, "latency"));
	EXPECT_GT(60000000000ull, number(p, "latency"));
	EXPECT_EQ(1, events(trace, "hawk_gather", NULL,
			    "space=%llu lists=2 rows=6 unique=3 bytes=0 pid=%d ret=%d", space,
			    getpid(), -EFAULT));
}

/* Evictions and admissions agree with each other and with the counters. */
static void check_evictions(struct __test_metadata *_metadata, const char *trace,
			    unsigned long long space, uint32_t host, uint32_t blk,
			    const struct hawk_stats *st)
{
	const struct {
		const char *how, *reason;
		uint64_t n;
	} want[] = {
		{ "write", "room", st->evict_write }, { "clean", "copy", st->evict_clean },
		{ "drop", "full", st->evict_drop },
	};
	const char *p;
	uint32_t i, all = 0;

	EXPECT_GE(st->evict_write, NBLOCKS - HOST_BLOCKS);
	EXPECT_GT(st->evict_clean, 0);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		EXPECT_EQ(want[i].n, events(trace, "hawk_evict", &p,
					    "space=%llu how=%s tier=%u state=ready by_space=%llu by_pid=%d",
					    space, want[i].how, host, space, getpid()))
			TH_LOG("%s", want[i].how);
		EXPECT_EQ(want[i].n, events(trace, "hawk_admit", NULL,
					    "space=%llu decision=%s reason=%s tier=%u to=%d bytes=%u",
					    space, want[i].how, want[i].reason, host,
					    strcmp(want[i].how, "drop") ? (int)blk : -1, BLOCK))
			TH_LOG("%s", want[i].how);
		all += want[i].n;
	}
	EXPECT_EQ(all + st->flash_drop, events(trace, "hawk_evict", &p, "space=%llu", space));
	EXPECT_LT(0, number(p, "age"));
	EXPECT_GT(60000000000ull, number(p, "age"));
	EXPECT_EQ(all, events(trace, "hawk_admit", NULL, "space=%llu", space));
}

static void check_moves(struct __test_metadata *_metadata, const char *trace,
			unsigned long long space, uint32_t host, uint32_t blk, uint32_t writes)
{
	struct move_event m;

	EXPECT_EQ(writes, move_events(trace, "hawk_move_start", space, "write", host, blk, &m));
	EXPECT_EQ(0, m.latency);
	EXPECT_EQ(writes, move_events(trace, "hawk_move_done", space, "write", host, blk, &m));
	EXPECT_GT(m.latency, 0);
	EXPECT_EQ(3, move_events(trace, "hawk_move_start", space, "read", blk, host, &m));
	EXPECT_EQ(3, move_events(trace, "hawk_move_done", space, "read", blk, host, &m));
	EXPECT_GT(m.latency, 0);
	EXPECT_LT(m.src_off, FLASH_BYTES);
	EXPECT_LT(m.dst_off, HOST_BYTES);
	EXPECT_EQ(1, move_events(trace, "hawk_move_done", space, "copy", host, host, &m));
}

TEST_F_TIMEOUT(tiers, events, 600)
{
	struct hawk_item refused = { .status = 0 };
	unsigned long long space;
	struct hawk_gather g;
	struct hawk_stats st;
	char *trace;
	int fd;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	ASSERT_TRUE(trace_start("enable"));
	fd = evicting_space(self->host, self->blk, NAME);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, work(fd));
	ASSERT_EQ(0, gathers(fd, &g));
	ASSERT_EQ(0, refused_alloc(fd, &refused));
	ASSERT_EQ(-EDQUOT, refused.status);
	st = stats_of(fd);
	close(fd);
	/* the space has ended when its tiers are in no use */
	while (tier_free_bytes(self->ctl, self->host) != HOST_BYTES)
		usleep(10000);
	trace = read_trace();
	ASSERT_NE(NULL, trace);
	EXPECT_EQ(0, trace_stop());
	space = space_event(trace, "hawk_space_create", NAME);
	ASSERT_NE(0, space);
	EXPECT_EQ(space, space_event(trace, "hawk_space_destroy", NAME));
	check_calls(_metadata, trace, space);
	check_gathers(_metadata, trace, space, &g);
	check_evictions(_metadata, trace, space, self->host, self->blk, &st);
	check_moves(_metadata, trace, space, self->host, self->blk, st.evict_write);
	EXPECT_EQ(1, events(trace, "hawk_quota", NULL,
			    "space=%llu lid=%#llx tier=%u reason=quota need=%u use=%llu limit=%llu pid=%d ret=%d",
			    space, (unsigned long long)refused.lid, self->host, BLOCK, HOST_BYTES,
			    HOST_BYTES, getpid(), -EDQUOT));
	free(trace);
}

#define SHARED		4u	/* chunks of the tier that two spaces share */

/* Blocks @from and the @n - 1 behind it; what is cold goes. */
static int fill_blocks(int fd, uint32_t from, uint32_t n)
{
	struct hawk_item it[STEP];
	struct hawk_batch b;
	uint32_t i, k;

	for (i = from; i < from + n; i += STEP) {
		for (k = 0; k < STEP; k++)
			it[k] = (struct hawk_item){ .lid = LID(i + k) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, STEP, &b) || b.done != STEP ||
		    batch(fd, HAWK_IOC_PUT, 0, it, STEP, &b) || b.done != STEP)
			return -1;
	}
	return 0;
}

/* A space that has to give a chunk to another one: its evictions name that one. */
TEST_F_TIMEOUT(tiers, for_another, 600)
{
	const uint32_t per_chunk = HAWK_CHUNK_BYTES / BLOCK;
	struct hawk_space_create sc = space_args(8 * SHARED * per_chunk);
	int rich = dev_open(O_RDWR), poor = dev_open(O_RDWR);
	unsigned long long from, to;
	uint32_t tier, n = 0;
	const char *p;
	char *trace;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	ASSERT_TRUE(trace_start("enable"));
	EXPECT_EQ(0, write_file(INSTANCE "/events/hawk/hawk_lock_wait/enable", "0"));
	ASSERT_EQ(0, host_add(self->ctl, SHARED * HAWK_CHUNK_BYTES, &tier));
	sc.quota[tier].max_bytes = SHARED * HAWK_CHUNK_BYTES;
	ASSERT_EQ(0, dev_call(rich, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, dev_call(poor, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, fill_blocks(poor, 0, per_chunk));
	ASSERT_EQ(0, fill_blocks(rich, 0, SHARED * per_chunk));
	while (stats_of(poor).chunks[tier] < 2) {
		n += STEP;
		ASSERT_EQ(0, fill_blocks(poor, per_chunk + n, STEP));
	}
	trace = read_trace();
	ASSERT_NE(NULL, trace);
	EXPECT_EQ(0, trace_stop());
	ASSERT_EQ(2, events(trace, "hawk_space_create", &p, "block_bytes=%u", BLOCK));
	to = number(p, "space");	/* the later one */
	from = to - 1;
	EXPECT_EQ(per_chunk, events(trace, "hawk_evict", NULL,
				    "space=%llu how=drop tier=%u by_space=%llu by_pid=0", from,
				    tier, to));
	free(trace);
	close(rich);
	close(poor);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, tier));
}

/* A space of its own; all blocks that fit in a host tier of @bytes are pinned. */
static int pinned_space(uint32_t host, uint64_t bytes)
{
	struct hawk_space_create sc = space_args(1024);
	int fd = dev_open(O_RDWR);
	uint64_t i;

	sc.quota[host].max_bytes = bytes;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))
		return -1;
	for (i = 0; i < bytes / BLOCK; i++)
		if (lid_call(fd, HAWK_IOC_ALLOC, LID(i)))
			return -1;
	return fd;
}

/* Pins block 0 of @space as nobody, who may lock nothing. */
static int pin_as_nobody(int space)
{
	struct rlimit none = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY };
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = space,
	};
	int fd, ret;

	if (setrlimit(RLIMIT_MEMLOCK, &none) || setresuid(NOBODY, NOBODY, 0))
		return -errno;
	fd = dev_open(O_RDWR);
	if (setresuid(0, 0, 0))
		return -errno;
	ret = dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at) ?: lid_call(fd, HAWK_IOC_PIN, LID(0));
	close(fd);
	return ret;
}

/* Each reason for a refusal but the quota, which the test above meets. */
TEST_F_TIMEOUT(tiers, refusals, 600)
{
	struct hawk_space_create sc = space_args(4), greedy = space_args(64);
	struct hawk_item it = { .lid = LID(0) };
	int other, fd = dev_open(O_RDWR);
	char *trace;
	uint32_t i;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	ASSERT_TRUE(trace_start("hawk_quota/enable"));
	other = pinned_space(self->host, HOST_BYTES);
	ASSERT_GE(other, 0);
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-ENOSPC, lid_call(fd, HAWK_IOC_ALLOC, LID(0)));

	greedy.quota[self->host].min_bytes = HOST_BYTES;
	greedy.quota[self->host].max_bytes = HOST_BYTES;
	close(self->ctl);
	self->ctl = dev_open(O_RDWR);
	EXPECT_EQ(-ENOSPC, dev_call(self->ctl, HAWK_IOC_SPACE_CREATE, &greedy));
	greedy.max_blocks = 4096;	/* or it had no use for so much */
	greedy.quota[self->host].min_bytes = 2 * HOST_BYTES;
	greedy.quota[self->host].max_bytes = 2 * HOST_BYTES;
	EXPECT_EQ(-ENOSPC, dev_call(self->ctl, HAWK_IOC_SPACE_CREATE, &greedy));

	close(other);
	while (lid_call(fd, HAWK_IOC_ALLOC, LID(0)) == -ENOSPC)
		usleep(10000);
	EXPECT_EQ(0, lid_call(fd, HAWK_IOC_PUT, LID(0)));
	for (i = 1; i < 8; i++) {
		it.arg = LID(i);
		EXPECT_EQ(0, one(fd, HAWK_IOC_FORK, 0, &it));
	}
	it.arg = LID(8);
	EXPECT_EQ(-ENOSPC, one(fd, HAWK_IOC_FORK, 0, &it));
	EXPECT_EQ(-ENOMEM, pin_as_nobody(fd));
	close(fd);

	trace = read_trace();
	ASSERT_NE(NULL, trace);
	EXPECT_EQ(0, trace_stop());
	EXPECT_LE(1, events(trace, "hawk_quota", NULL,
			    "lid=%#llx tier=%u reason=tier need=%u use=%llu limit=%llu pid=%d ret=%d",
			    LID(0), self->host, BLOCK, HOST_BYTES, HOST_BYTES, getpid(), -ENOSPC));
	EXPECT_EQ(1, events(trace, "hawk_quota", NULL,
			    "lid=0x0 tier=%u reason=lent need=%llu use=%llu limit=%llu pid=%d ret=%d",
			    self->host, HOST_BYTES, HOST_BYTES, HOST_BYTES, getpid(), -ENOSPC));
	EXPECT_EQ(1, events(trace, "hawk_quota", NULL,
			    "lid=0x0 tier=%u reason=min need=%llu use=0 limit=%llu pid=%d ret=%d",
			    self->host, 2 * HOST_BYTES, HOST_BYTES, getpid(), -ENOSPC));
	EXPECT_EQ(1, events(trace, "hawk_quota", NULL,
			    "lid=%#llx reason=lids need=1 use=8 limit=8 pid=%d ret=%d", LID(0),
			    getpid(), -ENOSPC));
	EXPECT_EQ(1, events(trace, "hawk_quota", NULL,
			    "lid=0x0 reason=memlock need=%u use=0 limit=0 pid=%d ret=%d", BLOCK,
			    getpid(), -ENOMEM));
	free(trace);
}

#define KEYS	1024u

struct hammer {
	int fd;
	uint32_t host;
	bool stop;
};

static bool stopped(struct hammer *h)
{
	return __atomic_load_n(&h->stop, __ATOMIC_RELAXED);
}

/* Look-ups take the buckets' locks, TIER_INFO the device's. */
static void *hammer(void *arg)
{
	struct hawk_tier_info info = { .size = sizeof(info) };
	struct hawk_item *it = calloc(KEYS, sizeof(*it));
	struct hammer *h = arg;
	uint32_t i;

	for (i = 0; i < KEYS; i++)
		it[i] = key_item(i % NBLOCKS);
	while (!stopped(h)) {
		batch(h->fd, HAWK_IOC_LOOKUP, 0, it, KEYS, NULL);
		dev_call(h->fd, HAWK_IOC_TIER_INFO, &info);
	}
	free(it);
	return NULL;
}

/* Holds the device's lock for long: the tables of a large space are made under it. */
static void *make_spaces(void *arg)
{
	struct hawk_space_create sc = space_args(1 << 17);
	struct hammer *h = arg;
	int fd;

	sc.quota[h->host].max_bytes = HOST_BYTES;
	while (!stopped(h)) {
		fd = dev_open(O_RDWR);
		dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc);
		close(fd);
	}
	return NULL;
}

/* Threads at the same locks: the waits of one for the other come to light. */
TEST_F_TIMEOUT(tiers, lock_waits, 600)
{
	pthread_t thread[3];
	struct hammer h = { .host = self->host };
	char *trace = NULL;
	const char *p;
	uint32_t i;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU: nobody waits");
	h.fd = evicting_space(self->host, self->blk, "test-locks");
	ASSERT_GE(h.fd, 0);
	ASSERT_TRUE(trace_start("hawk_lock_wait/enable"));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, i ? hammer : make_spaces, &h));
	do {
		free(trace);
		usleep(100000);
		trace = read_trace();
	} while (!events(trace, "hawk_lock_wait", &p, "lock=bucket pid=%d", getpid()) ||
		 !events(trace, "hawk_lock_wait", &p, "lock=device pid=%d", getpid()));
	__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, trace_stop());
	EXPECT_LT(0, number(p, "wait"));
	EXPECT_NE(NULL, strstr(p, "caller=hawk_")) TH_LOG("%.100s", p);
	free(trace);
	close(h.fd);
}

/* ---- sequences ---- */

#define ROWS	10u	/* of which half of each is dropped */

/* A sequence of ROWS rows of blocks: its number, or 0. */
static uint32_t make_sequence(int fd)
{
	struct hawk_seq_op op[] = {
		{ .op = HAWK_SEQ_NEW },
		{ .op = HAWK_SEQ_APPEND, .seq = HAWK_SEQ_LAST, .len = ROWS * TOKENS },
	};
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 2, .ops = (uintptr_t)op };
	struct hawk_item it;
	uint32_t i;

	if (dev_call(fd, HAWK_IOC_SEQ, &b) || b.done != 2)
		return 0;
	for (i = 0; i < 2 * ROWS; i++) {
		it = (struct hawk_item){ .lid = HAWK_LID(op[1].run, i % 2, 0, i / 2 * TOKENS) };
		if (one(fd, HAWK_IOC_ALLOC, 0, &it))
			return 0;
		it.vt = 0;
		if (one(fd, HAWK_IOC_PUT, 0, &it))
			return 0;
	}
	return op[0].seq;
}

/* Each operation has an event, refused ones too, and so has a compaction. */
TEST_F_TIMEOUT(tiers, sequences, 600)
{
	struct hawk_space_create sc = space_args(1024);
	struct hawk_seq_op op[ROWS + 1];
	struct hawk_seq_batch b = { .size = sizeof(b), .count = ROWS + 1, .ops = (uintptr_t)op };
	int fd = dev_open(O_RDWR);
	char *trace = NULL;
	const char *p;
	uint32_t seq, i;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	sc.quota[self->host].max_bytes = HOST_BYTES;
	sc.seqs = 4;
	sc.planes = 1;
	sc.token_bytes = BLOCK / TOKENS;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_TRUE(trace_start("enable"));
	seq = make_sequence(fd);
	ASSERT_NE(0, seq);
	for (i = 0; i < ROWS; i++)
		op[i] = (struct hawk_seq_op){
			.op = HAWK_SEQ_DROP, .seq = seq, .start = i * TOKENS,
			.end = i * TOKENS + TOKENS / 2 + 1,
		};
	op[ROWS] = op[0];
	op[ROWS].end = ROWS * TOKENS + 1;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SEQ, &b));
	EXPECT_EQ(ROWS, b.done);
	do {
		free(trace);
		poll(NULL, 0, 20);
		trace = read_trace();
	} while (!events(trace, "hawk_seq_compact", &p, "seq=%u ret=0", seq));
	EXPECT_LT(0, number(p, "rows"));
	EXPECT_LT(0, number(p, "copies"));
	EXPECT_LT(0, number(p, "frames"));
	EXPECT_EQ(1, events(trace, "hawk_seq", NULL, "op=new seq=%u pid=%d ret=0", seq, getpid()));
	EXPECT_EQ(1, events(trace, "hawk_seq", NULL, "op=append seq=%u len=%u ret=0", seq,
			    ROWS * TOKENS));
	EXPECT_EQ(1, events(trace, "hawk_seq", NULL, "op=drop seq=%u start=%u end=%u frames=0 ret=0",
			    seq, TOKENS, TOKENS + TOKENS / 2 + 1));
	EXPECT_EQ(1, events(trace, "hawk_seq", NULL, "op=drop seq=%u ret=%d", seq, -EINVAL));
	EXPECT_EQ(0, trace_stop());
	free(trace);
	close(fd);
}

/* Fields of an event that its entry, a paragraph of the document, does not name. */
static int untold_fields(const char *event, const char *entry)
{
	const char *end = strstr(entry, "\nWhat:\t\t");
	char line[512], name[64], told[80];
	int n = 0;
	FILE *f;

	/* entries of several events begin with several such lines */
	while (end && !strncmp(entry, "What:", 5) && !memmem(entry, end - entry, "Date:", 5)) {
		entry = end + 1;
		end = strstr(entry, "\nWhat:\t\t");
	}
	snprintf(line, sizeof(line), TRACEFS "/events/hawk/%s/format", event);
	f = fopen(line, "r");
	while (f && fgets(line, sizeof(line), f)) {
		char *p = strstr(line, "field:"), *semi = p ? strchr(p, ';') : NULL;

		if (!p || strstr(line, " common_"))
			continue;
		*semi = 0;
		sscanf(strrchr(p, ' ') + 1, "%63[a-z_]", name);
		snprintf(told, sizeof(told), "\n\t\t%s\t", name);
		p = strstr(entry, told);
		if (p && (!end || p < end))
			continue;
		fprintf(stderr, "# not documented: %s.%s\n", event, name);
		n++;
	}
	if (f)
		fclose(f);
	return f ? n : 1;
}

/* Every event and every field of it is documented, and nothing else is. */
TEST(documented)
{
	const char *doc = abi_doc("tracepoints-hawk"), *p;
	char what[512];
	struct dirent *e;
	int n = 0;
	DIR *d;

	if (access(TRACEFS "/events/hawk", F_OK))
		SKIP(return, "no events/hawk in " TRACEFS " (is tracefs mounted?)");
	if (!doc)
		SKIP(return, "HAWK_TEST_ABI is not set");
	d = opendir(TRACEFS "/events/hawk");
	ASSERT_NE(NULL, d);
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, "hawk_", 5))
			continue;
		snprintf(what, sizeof(what), "What:\t\t" TRACEFS "/events/hawk/%s\n", e->d_name);
		p = strstr(doc, what);
		EXPECT_NE(NULL, p) TH_LOG("%s is not documented", e->d_name);
		EXPECT_EQ(0, p ? untold_fields(e->d_name, p) : 0);
		n++;
	}
	closedir(d);
	for (p = doc; (p = strstr(p, "What:\t\t" TRACEFS "/events/hawk/hawk_")); p++)
		n--;
	EXPECT_EQ(0, n) TH_LOG("%d events are not documented, or documented only", n);
}

TEST_HARNESS_MAIN
