// SPDX-License-Identifier: MIT
/*
 * log_replay.c - what a drive may hold when its power fails, made from a log of what was
 * written to it: log_replay LOG DRIVE_BYTES POINTS SEED SPACE...
 *
 * First the order of the writes, entry by entry (poolimage.h).  Then POINTS times: up to an
 * entry of the log drawn by lot, what was flushed is on the drive, and of what was written
 * since then something, by one of the ways below.  The embedded backend opens that pool, gets
 * every block of every SPACE by key, and each has the bytes that hawk-flash(5) says, whatever
 * the lot: those of the youngest header if they are whole, else it is a miss.
 *
 * The log has marks, text that was written at MARK_OFF: "hawk-mark SPACE": what SPACE has
 * now is durable and stays as it is until the next mark, so all of it is to be found.
 * Points before the first one are not looked at.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "poolimage.h"
#include "versions.h"

#define MARK_OFF	(48u << 20)
#define MARK		"hawk-mark "
#define SECTOR		512u
#define SPACES_MAX	4u

/* Of the writes since the last flush: */
enum way { ALL, NONE, BY_WRITE, BY_SECTOR, HEADERS_ONLY, PAYLOAD_ONLY, WAYS };

static const char * const way_name[WAYS] = {
	"all", "none", "some", "some sectors", "those before the payload", "the payload",
};

struct replay {
	struct wlog log;
	u64 bytes;
	u8 *durable;
	u8 *image;			/* shared with the file that is opened as a pool */
	char url[128];
	struct hawk_super super;
	u64 rng;
	u32 spaces;
	char **space;
	u8 *now;			/* what readers of the drive saw at the last mark */
	size_t marked;			/* its entry */
	char promised[64];		/* space of the last mark */
	struct poolimage_block promise[POOLIMAGE_KEYS];	/* what it had then */
	struct poolimage_block want[SPACES_MAX][POOLIMAGE_KEYS];
	s64 best[SPACES_MAX][POOLIMAGE_KEYS];	/* youngest version that was durable */
	u64 served, torn, kept;
};

static u32 below(struct replay *r, u32 n)
{
	r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)((r->rng >> 33) % n);
}

/* ---- images ---- */

static void put_sectors(u8 *image, const struct wentry *w, u64 off, u64 bytes)
{
	if (w->data)
		memcpy(image + w->off + off, w->data + off, bytes);
	else
		memset(image + w->off + off, 0, bytes);
}

static void put_some(struct replay *r, const struct wentry *w, enum way way)
{
	bool payload = w->off >= r->super.data_off;
	u64 off;

	if (w->fua || way == ALL || (way == BY_WRITE && below(r, 2)) ||
	    (way == HEADERS_ONLY && !payload) || (way == PAYLOAD_ONLY && payload))
		put_sectors(r->image, w, 0, w->bytes);
	else if (way == BY_SECTOR)
		for (off = 0; off < w->bytes; off += SECTOR)
			if (below(r, 2))
				put_sectors(r->image, w, off, SECTOR);
}

static bool is_mark(const struct wentry *w)
{
	return w->off == MARK_OFF && w->data && !memcmp(w->data, MARK, strlen(MARK));
}

/* Entry @at is a mark. */
static int mark_read(struct replay *r, size_t at)
{
	for (; r->marked < at; r->marked++)
		put_sectors(r->now, &r->log.entry[r->marked], 0, r->log.entry[r->marked].bytes);
	sscanf((const char *)r->log.entry[at].data + strlen(MARK), "%63s", r->promised);
	if (poolimage_super(r->now, &r->super))
		return -1;
	return poolimage_find(r->now, &r->super, r->promised, r->promise);
}

/* ---- a point ---- */

static int complain(struct replay *r, size_t at, enum way way, const char *space, u32 n,
		    const char *what)
{
	printf("entry %zu of %zu, of what was not flushed %s: space %s, block %u: %s\n", at,
	       r->log.n, way_name[way], space, n, what);
	return -1;
}

/* What is to be found, and the youngest that was durable. */
static int read_image(struct replay *r, size_t at, enum way way, u32 space)
{
	struct poolimage_block durable[POOLIMAGE_KEYS];
	const char *name = r->space[space];
	s64 *best = r->best[space];
	u32 n;

	if (poolimage_find(r->image, &r->super, name, r->want[space]) ||
	    poolimage_find(r->durable, &r->super, name, durable))
		return complain(r, at, way, name, 0, "the bytes of another have its CRC");
	for (n = 0; n < POOLIMAGE_KEYS; n++)
		if (durable[n].version > best[n])
			best[n] = durable[n].version;
	return 0;
}

static int look(struct replay *r, size_t at, enum way way, u32 space, struct hawk_kv *kv)
{
	const struct poolimage_block *want = r->want[space];
	const char *name = r->space[space];
	bool promised = !strcmp(name, r->promised);
	s64 got;
	u32 n;

	for (n = 0; n < POOLIMAGE_KEYS; n++) {
		got = versions_get(kv, name, n);
		if (got < 0)
			return complain(r, at, way, name, n, "bytes that nobody put under its key");
		if (got != want[n].version)
			return complain(r, at, way, name, n, got ? "not what the pool says" :
					"is there, and was not served");
		if (got && got < r->best[space][n])
			return complain(r, at, way, name, n, "older than what was durable");
		if (promised && got != r->promise[n].version)
			return complain(r, at, way, name, n, "was durable, and is lost");
		r->served += !!got;
		r->kept += promised && got;
		r->torn += want[n].gen && !got;
	}
	return 0;
}

static int look_all(struct replay *r, size_t at, enum way way, struct hawk *h)
{
	struct hawk_kv *kv;
	int ret = 0;
	u32 s;

	for (s = 0; !ret && s < r->spaces; s++) {
		if (versions_space(h, r->space[s], &kv))
			return complain(r, at, way, r->space[s], 0, hawk_strerror_last());
		ret = look(r, at, way, s, kv);
		hawk_kv_close(kv);
	}
	return ret;
}

static int point(struct replay *r, size_t at, size_t flushed)
{
	enum way way = (enum way)below(r, WAYS);
	struct hawk *h;
	size_t i;
	u32 s;
	int ret;

	memcpy(r->image, r->durable, r->bytes);
	for (i = flushed; i <= at; i++)
		put_some(r, &r->log.entry[i], way);
	if (poolimage_super(r->image, &r->super))
		return complain(r, at, way, "", 0, "no pool is left");
	for (s = 0; s < r->spaces; s++)
		if (read_image(r, at, way, s))
			return -1;
	if (hawk_open(r->url, &h))
		return complain(r, at, way, "", 0, hawk_strerror_last());
	ret = look_all(r, at, way, h);
	hawk_close(h);
	return ret;
}

/* ---- all of it ---- */

static size_t first_mark(const struct replay *r)
{
	size_t i;

	for (i = 0; i < r->log.n && !is_mark(&r->log.entry[i]); i++)
		;
	return i;
}

/* How many of @points fall on each entry from the first mark on. */
static u32 *draw(struct replay *r, u32 points)
{
	u32 i, *count = calloc(r->log.n + 1, sizeof(*count));
	size_t first = first_mark(r);

	for (i = 0; count && i < points; i++)
		count[first + below(r, (u32)(r->log.n - first))]++;
	return count;
}

static int check_order(struct replay *r)
{
	u8 *image = calloc(1, r->bytes);
	size_t i, first = first_mark(r);
	struct poolorder o;
	int ret = 0;

	for (i = 0; image && i < first; i++)
		put_sectors(image, &r->log.entry[i], 0, r->log.entry[i].bytes);
	if (!image || first == r->log.n || poolorder_init(&o, image, r->bytes)) {
		fprintf(stderr, "log_replay: no mark, or no pool at the first one\n");
		return -1;
	}
	for (; !ret && i < r->log.n; i++)
		if (!poolorder_next(&o, &r->log.entry[i])) {
			printf("entry %zu of %zu: %s\n", i, r->log.n, o.broken);
			ret = -1;
		}
	printf("%zu writes and flushes, %llu headers and %llu records in their order\n",
	       i - first, (unsigned long long)o.headers, (unsigned long long)o.records);
	poolorder_fini(&o);
	free(image);
	return ret;
}

static int replay(struct replay *r, const u32 *count)
{
	size_t at, flushed = 0;
	u32 k;

	for (at = 0; at < r->log.n; at++) {
		const struct wentry *w = &r->log.entry[at];

		for (; w->flush && flushed < at; flushed++)
			put_sectors(r->durable, &r->log.entry[flushed], 0,
				    r->log.entry[flushed].bytes);
		if (is_mark(w) && mark_read(r, at))
			return complain(r, at, ALL, r->promised, 0, "a mark where no pool is");
		for (k = 0; k < count[at]; k++)
			if (point(r, at, flushed))
				return -1;
	}
	return 0;
}

static int prepare(struct replay *r, char **argv)
{
	int fd = memfd_create("drive", MFD_CLOEXEC);
	size_t i;

	r->bytes = strtoull(argv[2], NULL, 0);
	r->rng = strtoull(argv[4], NULL, 0);
	if (wlog_open(&r->log, argv[1]))
		return -1;
	for (i = 0; i < r->log.n; i++)
		if (r->log.entry[i].off > r->bytes ||
		    r->log.entry[i].bytes > r->bytes - r->log.entry[i].off) {
			fprintf(stderr, "log_replay: entry %zu is not on the drive\n", i);
			return -1;
		}
	if (fd < 0 || ftruncate(fd, (off_t)r->bytes)) {
		perror("log_replay: memory for the drive");
		return -1;
	}
	r->durable = calloc(1, r->bytes);
	r->now = calloc(1, r->bytes);
	r->image = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	snprintf(r->url, sizeof(r->url),
		 "embed:?dram=64M&flash=/proc/self/fd/%d&persist=1&writeback=0", fd);
	return r->durable && r->now && r->image != MAP_FAILED ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct replay r = { .spaces = (u32)argc - 5, .space = argv + 5 };
	u32 *count;

	if (argc < 6 || r.spaces > SPACES_MAX)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (prepare(&r, argv) || check_order(&r))
		return 1;
	count = draw(&r, (u32)atoi(argv[3]));
	if (!count || replay(&r, count))
		return 1;
	printf("%s points, seed %s: %llu blocks served, %llu of them durable for certain, "
	       "%llu torn\n", argv[3], argv[4], (unsigned long long)r.served,
	       (unsigned long long)r.kept, (unsigned long long)r.torn);
	if (!r.served) {
		fprintf(stderr, "log_replay: no block was served: that proves nothing\n");
		return 1;
	}
	return 0;
}
