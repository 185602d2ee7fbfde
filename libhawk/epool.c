// SPDX-License-Identifier: MIT
/*
 * epool.c - persistent flash of the embedded backend
 *
 * kmod/core/pool.h tells what the host of a pool has to do and when; this is that host.
 *
 * Headers are written in group commits: COMMIT_NS after the first block was written to
 * flash the keeper has what comes before it written too, collects the pages of headers
 * that have changed, flushes the file and writes them.  A space that ends commits for itself.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "epool.h"

#define COMMIT_NS	500000000ull
#define COMMIT_PAGES	256u		/* pages of headers of one flush */
#define AT_ONCE		64u		/* ancestors written at a time */
#define LOAD_BYTES	(1u << 20)	/* of records read at a time */

static void count(u64 *counter, u64 n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void epool_failed(struct etier *t, bool write, const char *what, int err)
{
	flash_failed(t, write, err);
	if (!__atomic_fetch_add(&t->pool->failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "hawk: flash %s: %s: %s; blocks written since then may be "
			"misses after a restart\n", t->pool->path, what, strerror(-err));
}

/* ---- opening and closing ---- */

static void pool_free(struct epool *p)
{
	pthread_mutex_destroy(&p->record_lock);
	free((void *)p->path);
	free(p->buf);
	free(p->page);
	free(p);
}

static struct epool *pool_new(const char *path)
{
	struct epool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->record_lock, NULL);
	p->path = strdup(path);
	p->buf = aligned_alloc(HAWK_POOL_PAGE, COMMIT_PAGES * HAWK_POOL_PAGE);
	p->page = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	if (p->path && p->buf && p->page)
		return p;
	pool_free(p);
	return NULL;
}

static int refuse(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
		return hawk_fail(err, "flash %s: no pool; make one with hawkctl flash format", path);
	case -EPROTONOSUPPORT:
		return hawk_fail(err, "flash %s: a pool of another version of Hawk; make it anew with hawkctl flash format", path);
	case -EILSEQ:
	case -EUCLEAN:
		return hawk_fail(err, "flash %s: a pool with both superblocks damaged; "
				 "see hawkctl flash check", path);
	default:
		return hawk_fail(err, "flash %s: reading its superblocks", path);
	}
}

/**
 * epool_check_none() - may a file be overwritten?
 *
 * Return: 0: there is no pool; -EEXIST: there is one; others: it cannot be read.
 */
int epool_check_none(int fd, const char *path)
{
	struct hawk_super s[2];
	int err[2], ret;

	poolfile_supers(fd, s, err);
	ret = hawk_super_choose(err, s);
	if (ret == -ENOENT)
		return 0;
	if (ret >= 0 || ret == -EPROTONOSUPPORT || ret == -EILSEQ || ret == -EUCLEAN)
		return hawk_fail(-EEXIST, "flash %s: it is a pool with blocks that are kept: open "
				 "it with persist=1, or remove it", path);
	return hawk_fail(ret, "flash %s: it cannot be told whether it is a pool", path);
}

/**
 * epool_open() - use the pool of a flash tier that is being added
 * @t: its fd is open and locked; data_off and bytes are set here
 *
 * From here on its numbers of use, and with them epochs, are this handle's.
 */
int epool_open(struct etier *t, const char *path)
{
	struct hawk_super s[2];
	int err[2], ret;
	u64 have;

	poolfile_supers(t->fd, s, err);
	ret = hawk_super_choose(err, s);
	if (ret < 0)
		return refuse(path, ret);
	if (err[0] || err[1])
		fprintf(stderr, "hawk: flash %s: superblock %d is damaged and written anew\n", path,
			!!err[1]);
	t->pool = pool_new(path);
	if (!t->pool)
		return hawk_fail(-ENOMEM, "flash %s: opening its pool", path);
	t->pool->super = s[ret];
	t->pool->torn = !s[ret].clean;
	t->pool->sparse = poolfile_sparse(t->fd, s[ret].bytes);
	ret = poolfile_size(t->fd, &have);
	if (!ret && have < t->pool->super.bytes)
		ret = -ENOSPC;
	if (ret) {
		hawk_fail(ret, "flash %s: the pool has %llu bytes, the file %llu", path,
			  (unsigned long long)t->pool->super.bytes, (unsigned long long)have);
		goto err_free;
	}
	if (t->pool->super.seq == HAWK_SEQ_MAX) {
		ret = hawk_fail(-EOVERFLOW, "flash %s: this pool has been used as often as can be: "
				"format it anew", path);
		goto err_free;
	}
	t->pool->super.seq++;
	t->pool->super.clean = false;
	ret = poolfile_write_supers(t->fd, &t->pool->super);
	if (ret) {
		hawk_fail(ret, "flash %s: writing its superblocks", path);
		goto err_free;
	}
	t->data_off = t->pool->super.data_off;
	t->bytes = (u64)t->pool->super.chunks * HAWK_CHUNK_BYTES;
	return 0;

err_free:
	pool_free(t->pool);
	t->pool = NULL;
	return ret;
}

/* The records that are whole and ours; one that is not makes its chunk free. */
static void load_records(struct hawk_engine *e, u32 tier, const struct hawk_super *s, u32 first,
			 u32 n, const u8 *p)
{
	struct hawk_record r;
	u32 i;

	for (i = 0; i < n && first + i < s->chunks; i++)
		if (!hawk_record_decode(p + (size_t)i * HAWK_RECORD_BYTES, hawk_pool_id(s),
					first + i, &r))
			hawk_pool_load(e, tier, &r);
}

/* Some of @n records cannot be read: all others can.  Costs the chunks of those pages. */
static void load_pages(struct hawk_engine *e, u32 tier, struct etier *t, u32 first, u32 n, u8 *p)
{
	const struct hawk_super *s = &t->pool->super;
	u32 c, bad = 0;
	int ret, err = 0;

	for (c = first; c < first + n && c < s->chunks; c += HAWK_PAGE_RECORDS) {
		ret = poolfile_read(t->fd, hawk_record_off(s, c), p, HAWK_POOL_PAGE);
		if (!ret) {
			load_records(e, tier, s, c, HAWK_PAGE_RECORDS, p);
			continue;
		}
		hawk_pool_unread(e, tier, c, HAWK_PAGE_RECORDS);
		err = ret;
		bad++;
	}
	count(&t->io_errors, bad);
	if (bad)
		fprintf(stderr, "hawk: flash %s: whose %u chunks are cannot be read: %s; their blocks "
			"are misses\n", t->pool->path, bad * HAWK_PAGE_RECORDS, strerror(-err));
}

/**
 * epool_load() - tell the engine what chunks are kept for whom
 * @id: the tier of @t in the engine
 */
int epool_load(struct embed *e, u32 id, struct etier *t)
{
	const struct hawk_super *s = &t->pool->super;
	u32 c, per = LOAD_BYTES / HAWK_RECORD_BYTES;
	int ret = hawk_pool_open(e->engine, id, s, now_ns());
	u8 *buf;
	u64 n;

	if (ret)
		return ret;
	buf = aligned_alloc(HAWK_POOL_PAGE, LOAD_BYTES);
	if (!buf)
		return -ENOMEM;
	for (c = 0; c < s->chunks; c += per) {
		n = s->header_off - hawk_record_off(s, c);
		n = n < LOAD_BYTES ? n : LOAD_BYTES;
		if (!poolfile_read(t->fd, hawk_record_off(s, c), buf, n))
			load_records(e->engine, id, s, c, per, buf);
		else
			load_pages(e->engine, id, t, c, per, buf);
	}
	free(buf);
	hawk_pool_loaded(e->engine, id);
	return 0;
}

/* epool_close() - no space uses it any more */
void epool_close(struct etier *t)
{
	struct hawk_super *s = &t->pool->super;
	int ret = fdatasync(t->fd) ? -errno : 0;

	s->written += hawk_load(&t->write_bytes) + hawk_load(&t->pool->header_bytes);
	s->clean = !hawk_load(&t->pool->failed);
	if (!ret)
		ret = poolfile_write_supers(t->fd, s);
	if (ret)
		epool_failed(t, true, "closing the pool", ret);
	pthread_mutex_lock(&t->commit_lock);
	pool_free(t->pool);
	t->pool = NULL;
	pthread_mutex_unlock(&t->commit_lock);
}

/*
 * epool_torn() - may blocks have other bytes than their headers say, and the drive be whole?
 *
 * So it is after an end that was not clean: slots have been used again whose headers have not
 * been written yet.
 */
bool epool_torn(const struct etier *t)
{
	return t->pool && t->pool->torn;
}

u64 epool_header_bytes(const struct etier *t)
{
	return t->pool ? hawk_load(&t->pool->header_bytes) : 0;
}

/* A flush; what is being written meanwhile needs another one. */
static int file_flush(struct etier *t)
{
	__atomic_store_n(&t->pool->unflushed, false, __ATOMIC_SEQ_CST);
	return fdatasync(t->fd) ? -errno : 0;
}

static void wrote(struct etier *t)
{
	__atomic_store_n(&t->pool->unflushed, true, __ATOMIC_SEQ_CST);
}

/**
 * epool_sync() - what has been written of headers and records is durable
 *
 * So that what was freed stays so.  The caller sees to it that the tier stays.
 */
void epool_sync(struct etier *t)
{
	int ret = 0;

	if (__atomic_load_n(&t->pool->unflushed, __ATOMIC_SEQ_CST))
		ret = file_flush(t);
	if (ret)
		epool_failed(t, true, "flushing", ret);
}

/* ---- records ---- */

static int write_record(struct etier *t, const struct hawk_record *r, int flags)
{
	struct epool *p = t->pool;
	u64 off = hawk_record_off(&p->super, r->chunk), page = off & ~(u64)(HAWK_POOL_PAGE - 1);
	int ret;

	pthread_mutex_lock(&p->record_lock);
	ret = poolfile_read(t->fd, page, p->page, HAWK_POOL_PAGE);
	if (!ret) {
		hawk_record_encode(r, hawk_pool_id(&p->super), p->page + (off - page));
		ret = poolfile_write(t->fd, page, p->page, HAWK_POOL_PAGE, flags);
		if (!flags)
			wrote(t);
	}
	pthread_mutex_unlock(&p->record_lock);
	if (ret)
		epool_failed(t, true, "writing whose a chunk is", ret);
	else
		count(&p->header_bytes, HAWK_POOL_PAGE);
	return ret;
}

/**
 * epool_grant() - a space grows by a chunk
 * Return: whether it may use it: its record is durable.
 */
bool epool_grant(struct espace *sp, const struct hawk_grant *g)
{
	struct hawk_record r;

	return !hawk_grant_record(sp->space, g, &r) ||
	       !write_record(&sp->e->tier[g->tier], &r, RWF_DSYNC);
}

/* epool_release() - a chunk has left its space: say so, and let the drive forget it */
void epool_release(struct embed *e, u32 tier, u32 chunk)
{
	struct etier *t = &e->tier[tier];
	struct hawk_record r = { .chunk = chunk };

	if (hawk_pool_chunk_kept(e->engine, tier, chunk))
		write_record(t, &r, 0);
	poolfile_discard(t->fd, t->data_off + (u64)chunk * HAWK_CHUNK_BYTES, HAWK_CHUNK_BYTES,
			 t->pool->sparse);
}

/* ---- commits ---- */

/*
 * Blocks before those on flash; the caller is a planner.
 * @last: the space ends, else it stops when that is wanted
 */
static void write_ancestors(struct espace *sp, bool last)
{
	struct hawk_move move[AT_ONCE];
	struct hawk_plan plan = { .max = AT_ONCE, .move = move };
	u32 cursor = 0;
	int ret;

	do {
		ret = hawk_keep_ancestors(sp->space, &cursor, now_ns(), &plan);
		plan_run(sp, &plan, last ? 0 : now_ns() + KEEPER_PATIENCE_NS);
	} while ((last || !hawk_load(&sp->ending)) && (espace_grew(sp, ret) || ret >= 0));
}

/* Pages that are neighbours are one write. */
static void write_pages(struct espace *sp, u32 tier, const struct hawk_keep_page *page, u32 n)
{
	struct etier *t = &sp->e->tier[tier];
	u32 i, k;
	int ret;

	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && page[k].off == page[k - 1].off + HAWK_POOL_PAGE; k++)
			;
		ret = poolfile_write(t->fd, page[i].off, t->pool->buf + (u64)i * HAWK_POOL_PAGE,
				     (u64)(k - i) * HAWK_POOL_PAGE, 0);
		wrote(t);
		if (!ret) {
			count(&t->pool->header_bytes, (u64)(k - i) * HAWK_POOL_PAGE);
			continue;
		}
		epool_failed(t, true, "writing headers", ret);
		for (; i < k; i++)
			hawk_keep_again(sp->space, tier, page[i].nr);
	}
}

/* Headers of blocks that cannot be made durable are not written. */
static bool flush(struct espace *sp, u32 tier, const struct hawk_keep_page *page, u32 n)
{
	struct etier *t = &sp->e->tier[tier];
	int ret = file_flush(t);
	u32 i;

	if (!ret)
		return true;
	epool_failed(t, true, "flushing", ret);
	for (i = 0; i < n; i++)
		hawk_keep_again(sp->space, tier, page[i].nr);
	return false;
}

/* This use has given half of its numbers: what follows has those of the next one. */
static void renumber(struct embed *e, u32 tier)
{
	struct etier *t = &e->tier[tier];
	struct hawk_super *s = &t->pool->super;
	int ret;

	if (!hawk_pool_worn(e->engine, tier) || s->seq == HAWK_SEQ_MAX)
		return;
	s->seq++;
	ret = poolfile_write_supers(t->fd, s);
	if (ret)
		epool_failed(t, true, "writing its superblocks", ret);
	else
		hawk_pool_renew(e->engine, tier, s);
}

static void commit_tier(struct espace *sp, u32 tier)
{
	struct etier *t = &sp->e->tier[tier];
	struct hawk_keep_page page[COMMIT_PAGES];
	u32 cursor = 0, n = COMMIT_PAGES;

	pthread_mutex_lock(&t->commit_lock);
	/* the space may have had to leave, and the tier have gone, or be another */
	if (t->pool)
		renumber(sp->e, tier);
	while (t->pool && n == COMMIT_PAGES) {
		n = hawk_keep_collect(sp->space, tier, &cursor, t->pool->buf, page, COMMIT_PAGES);
		if (n && !flush(sp, tier, page, n))
			break;
		write_pages(sp, tier, page, n);
	}
	if (t->pool)
		epool_sync(t);
	pthread_mutex_unlock(&t->commit_lock);
}

/* epool_commit() - all headers of a space that have changed */
void epool_commit(struct espace *sp)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (hawk_keep_due(sp->space, t))
			commit_tier(sp, t);
}

/* epool_end() - the space ends and nobody uses it any more: what it keeps is durable */
void epool_end(struct espace *sp)
{
	struct embed *e = sp->e;
	u32 t;

	planner_enter(e);
	if (hawk_keep_lacks(sp->space))
		write_ancestors(sp, true);
	planner_leave(e);
	epool_commit(sp);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!hawk_space_kept(sp->space, t))
			continue;
		pthread_mutex_lock(&e->tier[t].commit_lock);
		if (e->tier[t].pool)
			epool_sync(&e->tier[t]);
		pthread_mutex_unlock(&e->tier[t].commit_lock);
	}
}

/**
 * epool_step() - the keeper: is it time for a commit?
 * @at: when the next one is due, 0: not known to be
 *
 * Return: when to call again, 0: when blocks have been written.
 */
u64 epool_step(struct embed *e, u64 at, u64 now)
{
	struct espace *sp = NULL;

	if (!at)
		return __atomic_load_n(&e->keeper_commit, __ATOMIC_RELAXED) ? now + COMMIT_NS : 0;
	if (now < at)
		return at;
	__atomic_store_n(&e->keeper_commit, false, __ATOMIC_SEQ_CST);
	planner_enter(e);
	while ((sp = espace_next(e, sp))) {
		/* a record that could not be written is no reason never to grow there again */
		hawk_space_unstick(sp->space);
		if (hawk_keep_lacks(sp->space))
			write_ancestors(sp, false);
		epool_commit(sp);
	}
	planner_leave(e);
	return 0;
}
