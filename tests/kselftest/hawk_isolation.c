// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_isolation.c - a tenant learns nothing of another
 *
 * The first tenant marks all that is its own: bytes of blocks, keys, LIDs.  It
 * frees its blocks, ends, is killed, or has them evicted; then the second one, an
 * ordinary user in a space of its own, looks through every byte that it can reach,
 * tries the first one's names for things, and measures how long a refusal takes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "hawk_tiers.h"

#define MARK		0x5ec2e75ec2e75ec2ull	/* in every word of the first tenant's bytes */
#define SEQ		0xabcdeu		/* the sequence of its LIDs */
#define OTHER_UID	1002

static uint64_t host_bytes = HOST_BYTES;	/* of the host tier that is looked at */

#define N_BLOCKS	((uint32_t)(host_bytes / BLOCK) + 32u)	/* some are on flash */

static uint64_t mark_lid(uint32_t n)
{
	return HAWK_LID(SEQ, 0, 0, n * TOKENS);
}

static void mark_key(struct hawk_item *it, uint32_t n)
{
	uint64_t k[4] = { MARK, MARK, MARK, MARK ^ n };

	memcpy(it->key, k, sizeof(k));
}

/* Is this word one that only the first tenant knows? */
static bool marked(uint64_t w)
{
	return (w & ~0xffffull) == (MARK & ~0xffffull) || w >> HAWK_LID_SEQ_SHIFT == SEQ;
}

static int make_space(uint32_t host, uint32_t blk, uint32_t flags, const char *name)
{
	struct hawk_space_create sc = space_args(1024);
	int fd = dev_open(O_RDWR);

	sc.quota[host].max_bytes = host_bytes;
	sc.quota[blk].max_bytes = FLASH_BYTES;
	sc.flags = flags;
	if (flags & HAWK_SPACE_NAMED) {
		sc.mode = 0600;
		strcpy((char *)sc.name, name);
	}
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Marked blocks, in batches; the first ones end up on flash. */
static int put_marked(int fd, uint32_t host)
{
	uint8_t *win = map_area(fd, HAWK_MMAP_TIER(host), host_bytes, PROT_READ | PROT_WRITE);
	struct hawk_item it[STEP];
	struct hawk_batch b;
	uint32_t i, k, w;

	for (i = 0; i < N_BLOCKS; i += STEP) {
		for (k = 0; k < STEP; k++)
			it[k] = (struct hawk_item){ .lid = mark_lid(i + k) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, STEP, &b) || b.done != STEP)
			return -1;
		for (k = 0; k < STEP; k++) {
			uint64_t *p = (uint64_t *)frame_at(win, it[k].vt, BLOCK);

			for (w = 0; w < BLOCK / sizeof(*p); w++)
				p[w] = MARK ^ (w & 0xffff);
			mark_key(&it[k], i + k);
		}
		if (batch(fd, HAWK_IOC_PUT, 0, it, STEP, &b) || b.done != STEP)
			return -2;
	}
	munmap(win, host_bytes);
	return 0;
}

static void free_marked(int fd)
{
	uint32_t i;

	for (i = 0; i < N_BLOCKS; i++)
		lid_call(fd, HAWK_IOC_FREE, mark_lid(i));
}

/* ---- all that a tenant can reach ---- */

static sigjmp_buf no_page;

static void on_sigbus(int sig)
{
	siglongjmp(no_page, 1);
}

/* Marked words in a mapping; pages that are not there count in @holes. */
static uint64_t scan(const void *map, size_t len, uint32_t *holes)
{
	static uint64_t found;
	static size_t off;
	const uint64_t *p;
	size_t i;

	found = 0;
	for (off = 0; off < len; off += 4096) {
		if (sigsetjmp(no_page, 1)) {
			++*holes;
			continue;
		}
		p = (const uint64_t *)((const char *)map + off);
		for (i = 0; i < 512; i++)
			found += marked(p[i]);
	}
	return found;
}

static uint64_t scan_area(int fd, uint64_t area, size_t len)
{
	uint32_t holes = 0;
	void *map = map_area(fd, area, len, PROT_READ);
	uint64_t found;

	if (!map)
		return 0;
	found = scan(map, len, &holes);
	munmap(map, len);
	return found;
}

/* Marked words in what a call answers. */
static uint64_t scan_call(int fd, unsigned long cmd, uint32_t size, uint32_t word2)
{
	uint64_t buf[512] = { 0 }, found = 0;
	uint32_t i;

	((uint32_t *)buf)[0] = size;
	((uint32_t *)buf)[2] = word2;
	if (dev_call(fd, cmd, buf))
		return 0;
	for (i = 0; i < sizeof(buf) / sizeof(buf[0]); i++)
		found += marked(buf[i]);
	return found;
}

/* Marked words in the files of a folder, at any alignment, as bytes or as hex digits. */
static uint64_t scan_folder(const char *path)
{
	char file[512], text[65536], hex[20];
	struct dirent *de;
	uint64_t found = 0, w;
	DIR *d = opendir(path);
	size_t n, i;
	FILE *f;

	if (!d)
		return 0;
	snprintf(hex, sizeof(hex), "%llx", (unsigned long long)(MARK >> 16));
	while ((de = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", path, de->d_name);
		if (de->d_type == DT_DIR && de->d_name[0] != '.')
			found += scan_folder(file);
		if (de->d_type != DT_REG)
			continue;
		f = fopen(file, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = 0;
		found += strstr(text, hex) != NULL;
		for (i = 0; i + 8 <= n; i++) {
			memcpy(&w, text + i, 8);
			found += (w & ~0xffffull) == (MARK & ~0xffffull);
		}
	}
	closedir(d);
	return found;
}

/* Every byte that the second tenant can reach: 0, or where there was a mark. */
static int look_everywhere(int fd, uint32_t host, uint32_t blk)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 64, .eventfd = -1 };
	struct sigaction sa = { .sa_handler = on_sigbus };

	sigaction(SIGBUS, &sa, NULL);
	if (dev_call(fd, HAWK_IOC_SPACE_INFO, &info))
		return 1;
	if (scan_area(fd, HAWK_MMAP_TIER(host), (size_t)info.frames[host] * BLOCK))
		return 2;
	if (map_area(fd, HAWK_MMAP_TIER(blk), 4096, PROT_READ))
		return 3;	/* flash has no window */
	if (scan_area(fd, HAWK_MMAP_VTLB, info.vtlb_bytes))
		return 4;
	if (dev_call(fd, HAWK_IOC_RING_SETUP, &rs) && errno != EBUSY)
		return 5;
	if (scan_area(fd, HAWK_MMAP_RING, rs.ring_bytes ? rs.ring_bytes : 4096))
		return 6;
	if (scan_call(fd, HAWK_IOC_QUERY, sizeof(struct hawk_query), 0) ||
	    scan_call(fd, HAWK_IOC_SPACE_INFO, sizeof(struct hawk_space_info), 0) ||
	    scan_call(fd, HAWK_IOC_STATS, sizeof(struct hawk_stats), 0) ||
	    scan_call(fd, HAWK_IOC_TIER_INFO, sizeof(struct hawk_tier_info), host) ||
	    scan_call(fd, HAWK_IOC_TIER_INFO, sizeof(struct hawk_tier_info), blk))
		return 7;
	if (scan_folder("/sys/class/misc/hawk/"))
		return 8;
	if (!access("/sys/kernel/debug/hawk/spaces", R_OK) ||
	    !access("/sys/kernel/tracing/events/hawk", R_OK))
		return 9;
	return 0;
}

/* Fills its space with blocks that it does not write, and looks at what is there. */
static int fill_and_look(int fd, uint32_t host, uint32_t blk)
{
	struct hawk_stats st = stats_of(fd);
	struct hawk_item it[STEP];
	struct hawk_batch b;
	uint32_t i, k;
	int ret;

	if (st.blocks || st.hits || st.misses || st.allocs || st.evict_write || st.reloads)
		return 20;	/* somebody else's counts */
	ret = look_everywhere(fd, host, blk);
	if (ret)
		return ret;
	for (i = 0; i < host_bytes / BLOCK; i += STEP) {
		for (k = 0; k < STEP; k++)
			it[k] = (struct hawk_item){ .lid = LID(i + k) };
		if (batch(fd, HAWK_IOC_ALLOC, 0, it, STEP, &b))
			return 21;
		if (b.done != STEP)
			break;	/* the first tenant still owns the rest */
		if (batch(fd, HAWK_IOC_PUT, HAWK_BATCH_KEEP_PIN, it, STEP, &b))
			return 22;
	}
	return i ? look_everywhere(fd, host, blk) : 23;
}

/* As an ordinary user on a file that is open already; does not return. */
static void second_tenant(uint32_t host, uint32_t blk, int (*fn)(int, uint32_t, uint32_t))
{
	int fd = make_space(host, blk, 0, NULL);

	if (setgroups(0, NULL) || setresgid(OTHER_UID, OTHER_UID, OTHER_UID) ||
	    setresuid(OTHER_UID, OTHER_UID, OTHER_UID))
		_exit(100);
	_exit(fd < 0 ? 101 : fn(fd, host, blk));
}

static int run_second(uint32_t host, uint32_t blk, int (*fn)(int, uint32_t, uint32_t))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		second_tenant(host, blk, fn);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The scanner sees marks where there are some: the first tenant's own. */
TEST_F(tiers, scanner_sees_what_is_there)
{
	int a = make_space(self->host, self->blk, 0, NULL);
	struct hawk_space_info info = { .size = sizeof(info) };
	struct sigaction sa = { .sa_handler = on_sigbus };

	ASSERT_EQ(0, sigaction(SIGBUS, &sa, NULL));
	ASSERT_EQ(0, put_marked(a, self->host));
	ASSERT_EQ(0, dev_call(a, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_EQ(HOST_BYTES / 8, scan_area(a, HAWK_MMAP_TIER(self->host), HOST_BYTES));
	EXPECT_LE(N_BLOCKS / 2, scan_area(a, HAWK_MMAP_VTLB, info.vtlb_bytes));
	close(a);
}

/* Memory of who has ended. */
TEST_F(tiers, bytes_of_who_has_ended)
{
	int a = make_space(self->host, self->blk, 0, NULL), status;
	pid_t pid;

	ASSERT_EQ(0, put_marked(a, self->host));
	close(a);
	EXPECT_EQ(0, run_second(self->host, self->blk, fill_and_look)) TH_LOG("closed");
	pid = fork();
	if (!pid) {
		a = make_space(self->host, self->blk, 0, NULL);
		if (a < 0 || put_marked(a, self->host))
			_exit(1);
		raise(SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, run_second(self->host, self->blk, fill_and_look)) TH_LOG("killed");
	a = make_space(self->host, self->blk, HAWK_SPACE_NAMED, "test-isolation");
	ASSERT_EQ(0, put_marked(a, self->host));
	close(a);
	ASSERT_EQ(0, space_destroy(self->ctl, "test-isolation"));
	EXPECT_EQ(0, run_second(self->host, self->blk, fill_and_look)) TH_LOG("destroyed");
}

/*
 * Memory of who lives on: chunks are taken from it while its blocks are in them, and
 * when it has freed them.
 */
TEST_F(tiers, bytes_of_who_lives)
{
	uint32_t tier;
	int a;

	host_bytes = 4 * HAWK_CHUNK_BYTES;
	ASSERT_EQ(0, host_add(self->ctl, host_bytes, &tier));
	a = make_space(tier, self->blk, 0, NULL);
	ASSERT_EQ(0, put_marked(a, tier));
	ASSERT_EQ(4, stats_of(a).chunks[tier]);
	EXPECT_EQ(0, run_second(tier, self->blk, fill_and_look)) TH_LOG("evicted");
	EXPECT_EQ(2, stats_of(a).chunks[tier]);

	/* once more, and then its blocks are freed where they are */
	free_marked(a);
	while (tier_free_bytes(self->ctl, tier) != 2 * HAWK_CHUNK_BYTES)
		usleep(10000);
	ASSERT_EQ(0, put_marked(a, tier));
	ASSERT_EQ(4, stats_of(a).chunks[tier]);
	free_marked(a);
	EXPECT_EQ(0, run_second(tier, self->blk, fill_and_look)) TH_LOG("freed");
	close(a);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, tier));
}

/* ---- guessing ---- */

static uint64_t lease_of_first;

/* Every name that the first tenant has for its things, tried by the second. */
static int guess(int fd, uint32_t host, uint32_t blk)
{
	static const unsigned long by_key[] = {
		HAWK_IOC_LOOKUP, HAWK_IOC_GET, HAWK_IOC_RELOAD, HAWK_IOC_FREE,
	};
	static const unsigned long by_lid[] = {
		HAWK_IOC_PUT, HAWK_IOC_PIN, HAWK_IOC_UNPIN, HAWK_IOC_GET, HAWK_IOC_RELOAD,
		HAWK_IOC_FORK, HAWK_IOC_UNSHARE, HAWK_IOC_FREE, HAWK_IOC_TRANSLATE,
	};
	struct hawk_lease_release rel = { .size = sizeof(rel) };
	struct hawk_cancel c = { .size = sizeof(c), .flags = HAWK_CANCEL_ALL };
	struct hawk_item it;
	uint32_t i, k, gen;

	for (i = 0; i < N_BLOCKS; i++) {
		for (k = 0; k < sizeof(by_key) / sizeof(by_key[0]); k++) {
			it = (struct hawk_item){ .flags = HAWK_ITEM_BY_KEY };
			mark_key(&it, i);
			if (one(fd, by_key[k], 0, &it) != -ENOENT || it.vt || it.lid)
				return 1;
		}
		for (k = 0; k < sizeof(by_lid) / sizeof(by_lid[0]); k++) {
			it = (struct hawk_item){
				.lid = mark_lid(i),
				.arg = by_lid[k] == HAWK_IOC_FORK ? LID(1) : 0,
			};
			if (one(fd, by_lid[k], 0, &it) != -ENOENT || it.vt)
				return 2;
		}
		for (gen = 0; gen < 4; gen++) {
			it = (struct hawk_item){
				.vt = HAWK_VT_VALID | (uint64_t)host << 56 |
				      (uint64_t)gen << 32 | i,
			};
			if (one(fd, HAWK_IOC_UNPIN, 0, &it) != -ESTALE)
				return 3;
		}
	}
	for (i = 1; i < 64; i++) {
		rel.lease = i == 63 ? lease_of_first : i;
		if (dev_call(fd, HAWK_IOC_LEASE_RELEASE, &rel) != -ENOENT)
			return 4;
	}
	if (dev_call(fd, HAWK_IOC_CANCEL, &c) != -ENOENT)
		return 5;
	return 0;
}

TEST_F(tiers, guessed_names_are_unknown)
{
	int a = make_space(self->host, self->blk, 0, NULL);
	struct hawk_stats before, after;
	struct hawk_item it = { .flags = HAWK_ITEM_BY_KEY };
	struct hawk_batch b;

	ASSERT_EQ(0, put_marked(a, self->host));
	ASSERT_EQ(0, lid_call(a, HAWK_IOC_GET, mark_lid(0)));
	mark_key(&it, 1);
	ASSERT_EQ(0, batch(a, HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, &it, 1, &b));
	ASSERT_NE(0, b.lease);
	lease_of_first = b.lease;
	before = stats_of(a);
	EXPECT_EQ(0, run_second(self->host, self->blk, guess));
	after = stats_of(a);
	EXPECT_EQ(before.hits, after.hits);
	EXPECT_EQ(before.misses, after.misses);
	EXPECT_EQ(before.pinned, after.pinned);
	EXPECT_EQ(before.blocks, after.blocks);
	EXPECT_EQ(-EBUSY, lid_call(a, HAWK_IOC_FREE, mark_lid(1))) TH_LOG("still leased");
	close(a);
}

static int guess_name(int fd, uint32_t host, uint32_t blk)
{
	struct hawk_space_set set = {
		.size = sizeof(set), .mask = HAWK_SPACE_SET_MODE, .mode = 0666,
	};
	static const char * const name[] = { "test-isolation", "no-such-space" };
	int i;

	for (i = 0; i < 2; i++) {
		strcpy((char *)set.name, name[i]);
		if (dev_call(fd, HAWK_IOC_SPACE_SET, &set) != -ENOENT ||
		    space_destroy(fd, name[i]) != -ENOENT)
			return 1;
		if (space_attach(fd, name[i]) != -EBUSY)
			return 2;	/* as for any name, since it has a space */
	}
	return 0;
}

TEST_F(tiers, names_of_others_are_unknown)
{
	int a = make_space(self->host, self->blk, HAWK_SPACE_NAMED, "test-isolation");

	ASSERT_GE(a, 0);
	EXPECT_EQ(0, run_second(self->host, self->blk, guess_name));
	EXPECT_EQ(0, space_destroy(a, "test-isolation"));
	close(a);
}

/* ---- time ---- */

#define SAMPLES		1500u		/* of each kind */
#define PER_SAMPLE	32u		/* items of a batch, all of one kind */
#define SUSPICIOUS	6.0		/* standard deviations */

struct sample {
	uint64_t ns;
	bool first;
};

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* How far apart are two kinds of samples: the rank sum's distance, in deviations. */
static double rank_distance(struct sample *s, uint32_t n)
{
	double sum = 0, each = n / 2.0, mean = each * (n + 1) / 2, var = each * each * (n + 1) / 12;
	double sd = var, rank;
	uint32_t i, k, t;

	qsort(s, n, sizeof(*s), by_time);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && s[k].ns == s[i].ns; k++)
			;
		rank = (i + 1 + k) / 2.0;
		for (t = i; t < k; t++)
			sum += s[t].first ? rank : 0;
	}
	for (i = 0; i < 60; i++)	/* its square root */
		sd = (sd + var / sd) / 2;
	return sum > mean ? (sum - mean) / sd : (mean - sum) / sd;
}

/* Random keys from @from on, @range of them, looked up or got by @fd. */
static uint64_t time_batch(int fd, unsigned long cmd, uint32_t from, uint32_t range,
			   unsigned int *seed)
{
	struct hawk_item it[PER_SAMPLE];
	uint64_t start;
	uint32_t i;

	for (i = 0; i < PER_SAMPLE; i++)
		it[i] = key_item(from + rand_r(seed) % range);
	start = now_ns();
	batch(fd, cmd, 0, it, PER_SAMPLE, NULL);
	return now_ns() - start;
}

/* Keys from @a and from @b on, in random order, so that all else is alike for both. */
static double compare_times(int fd, unsigned long cmd, uint32_t a, uint32_t b, uint32_t range)
{
	static struct sample s[2 * SAMPLES];
	unsigned int seed = 4711;
	uint32_t i;

	for (i = 0; i < 2 * SAMPLES; i += 2) {
		s[i].first = rand_r(&seed) & 1;
		s[i].ns = time_batch(fd, cmd, s[i].first ? a : b, range, &seed);
		s[i + 1].first = !s[i].first;
		s[i + 1].ns = time_batch(fd, cmd, s[i + 1].first ? a : b, range, &seed);
	}
	return rank_distance(s, 2 * SAMPLES);
}

static int put_keys(int fd, uint32_t from, uint32_t n)
{
	struct hawk_item it;
	uint32_t i;

	for (i = 0; i < n; i++) {
		it = (struct hawk_item){ .lid = LID(i) };
		if (one(fd, HAWK_IOC_ALLOC, 0, &it))
			return -1;
		set_key(&it, from + i);
		if (one(fd, HAWK_IOC_PUT, 0, &it))
			return -2;
	}
	return 0;
}

/*
 * Looking a key up that exists elsewhere takes as long as one that exists nowhere.
 * That the statistic would tell is shown with keys that exist in the own space.
 */
TEST_F_TIMEOUT(tiers, time_tells_nothing, 600)
{
	static const struct {
		const char *name;
		unsigned long cmd;
	} call[] = { { "LOOKUP", HAWK_IOC_LOOKUP }, { "GET", HAWK_IOC_GET } };
	int a = make_space(self->host, self->blk, 0, NULL), b;
	double foreign[2], own;
	uint32_t second;
	unsigned int i;

	/* each in memory of its own: one chunk is all that the fixture's tier has */
	ASSERT_EQ(0, host_add(self->ctl, HOST_BYTES, &second));
	b = make_space(second, self->blk, 0, NULL);
	ASSERT_EQ(0, put_keys(a, 10000, HOST_BLOCKS / 2));
	/* with an empty index of its own, or the keys that share chains there would differ */
	for (i = 0; i < 2; i++)
		foreign[i] = compare_times(b, call[i].cmd, 10000, 90000, HOST_BLOCKS / 2);
	ASSERT_EQ(0, put_keys(b, 20000, HOST_BLOCKS / 2));
	for (i = 0; i < 2; i++) {
		own = compare_times(b, call[i].cmd, 20000, 90000, HOST_BLOCKS / 2);
		TH_LOG("%s: foreign keys differ by %.1f deviations, own ones by %.1f",
		       call[i].name, foreign[i], own);
		EXPECT_LT(foreign[i], SUSPICIOUS);
		EXPECT_GT(own, SUSPICIOUS) TH_LOG("the measurement is too coarse to tell");
	}
	close(b);
	close(a);
	EXPECT_EQ(0, tier_remove_idle(self->ctl, second));
}

TEST_HARNESS_MAIN
