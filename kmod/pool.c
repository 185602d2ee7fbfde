// SPDX-License-Identifier: GPL-2.0
/*
 * pool.c - persistent flash: blocks of named spaces outlive the device
 *
 * core/pool.h tells what the host of a pool has to do and when, core/flashfmt.h what is
 * where; this is that host, with pool_scan.c.  All reads and writes here are O_DIRECT, one
 * at a time, and waited for.
 *
 * Headers are written in group commits by a work of each pool, so that a drive that stalls
 * delays its own only: HAWK_COMMIT_MS after a block was written to it, the pages of headers
 * that have changed are collected, the file is flushed and they are written.  What comes before
 * blocks in any pool is written by a work of the device.  A space that ends commits for itself.
 */
#include "pool.h"
#include "move.h"
#include "pool_file.h"

#include <linux/blkdev.h>
#include <linux/falloc.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#define HAWK_COMMIT_MS		500	/* headers wait for so long */
#define HAWK_COMMIT_PAGES	256u	/* pages of headers of one flush */

/* ---- reading and writing ---- */

static int hawk_pool_buf_init(struct hawk_pool_buf *b, u32 pages)
{
	b->pages = pages;
	/* the caller is told -ENOMEM, the log need not be */
	b->mem = __vmalloc((size_t)pages * HAWK_POOL_PAGE,
			   GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	b->bv = kvmalloc_array(pages, sizeof(*b->bv), GFP_KERNEL | __GFP_NOWARN);
	return b->mem && b->bv ? 0 : -ENOMEM;
}

static void hawk_pool_buf_free(struct hawk_pool_buf *b)
{
	vfree(b->mem);
	kvfree(b->bv);
}

/*
 * A transfer or flush of a pool in use is watched as those of blocks are: one that stalls
 * makes the drive fail, and nobody grows there while it does.
 */
static bool hawk_pool_watch(struct hawk_mem *m)
{
	bool watched = m->pool && READ_ONCE(m->pool->started);

	if (watched)
		hawk_health_begin(m);
	return watched;
}

/* @n pages between the buffer, from page @at on, and offset @off of the file. */
static int hawk_pool_rw(struct hawk_mem *m, struct hawk_pool_buf *b, u32 at, u64 off, u32 n,
			bool write, int flags)
{
	bool watched, reg = S_ISREG(file_inode(m->file)->i_mode);
	struct iov_iter iter;
	struct kiocb iocb;
	ssize_t ret;
	u32 i;

	lockdep_assert_held(&b->lock);
	for (i = 0; i < n; i++)
		b->bv[i] = (struct bio_vec){
			.bv_page = vmalloc_to_page(b->mem + (size_t)(at + i) * HAWK_POOL_PAGE),
			.bv_len = HAWK_POOL_PAGE,
		};
	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, b->bv, n,
		      (size_t)n * HAWK_POOL_PAGE);
	init_sync_kiocb(&iocb, m->file);
	iocb.ki_pos = off;
	iocb.ki_flags |= flags;
	watched = hawk_pool_watch(m);
	if (write) {
		iocb.ki_flags |= IOCB_WRITE;
		if (reg)
			file_start_write(m->file);
		ret = m->file->f_op->write_iter(&iocb, &iter);
		if (reg)
			file_end_write(m->file);
	} else {
		ret = m->file->f_op->read_iter(&iocb, &iter);
	}
	if (watched)
		hawk_health_end(m);
	if (ret == (ssize_t)n * HAWK_POOL_PAGE)
		return 0;
	return ret < 0 ? ret : -EIO;
}

static int hawk_pool_flush(struct hawk_mem *m)
{
	bool watched = hawk_pool_watch(m);
	int ret;

	WRITE_ONCE(m->pool->unflushed, false);
	ret = vfs_fsync(m->file, 1);
	if (watched)
		hawk_health_end(m);
	return ret;
}

/* A page of the pool could not be read or written. */
void hawk_pool_failed(struct hawk_mem *m, bool write, u64 off, int ret)
{
	WRITE_ONCE(m->pool->failed, true);
	hawk_io_failed(m, write, HAWK_POOL_PAGE, off, ret);
}

/* ---- superblocks ---- */

static int hawk_pool_read_super(struct hawk_mem *m, u64 off, struct hawk_super *s)
{
	struct hawk_pool_buf *b = &m->pool->record;
	int ret = hawk_pool_rw(m, b, 0, off, 1, false, 0);

	return ret ?: hawk_super_decode(b->mem, s);
}

/* Both, each durable before the next. */
static int hawk_pool_write_supers(struct hawk_mem *m)
{
	struct hawk_pool_file *p = m->pool;
	int ret = 0;
	u32 i;

	mutex_lock(&p->record.lock);
	hawk_super_encode(&p->super, p->record.mem);
	for (i = 0; !ret && i < 2; i++) {
		ret = hawk_pool_rw(m, &p->record, 0, hawk_super_copy_off(i), 1, true, 0);
		ret = ret ?: hawk_pool_flush(m);
	}
	mutex_unlock(&p->record.lock);
	return ret;
}

/* Is it marked as plain flash?  Return: 0; -ENOENT: it is, there is no pool; others of reading. */
static int hawk_pool_read_mark(struct hawk_mem *m, u64 size)
{
	struct hawk_pool_buf *b = &m->pool->record;
	int ret = hawk_pool_rw(m, b, 0, hawk_plain_off(size), 1, false, 0);

	if (!ret && hawk_plain_marked(b->mem))
		ret = -ENOENT;
	return ret;
}

static int hawk_pool_read_supers(struct hawk_mem *m, u64 size)
{
	struct hawk_pool_file *p = m->pool;
	struct hawk_super s[2];
	int err[2], ret;
	u32 i;

	if (size < HAWK_SUPER_1_OFF + HAWK_POOL_PAGE)
		return -ENOENT;
	mutex_lock(&p->record.lock);
	ret = hawk_pool_read_mark(m, size);
	for (i = 0; i < 2; i++)
		err[i] = ret ?: hawk_pool_read_super(m, hawk_super_copy_off(i), &s[i]);
	mutex_unlock(&p->record.lock);
	if (!err[0] && !err[1] && memcmp(s[0].uuid, s[1].uuid, sizeof(s[0].uuid)))
		err[1] = -EUCLEAN;
	ret = hawk_super_choose(err, s);
	if (ret < 0)
		return ret;
	p->super = s[ret];
	return p->super.bytes <= size ? 0 : -ENOSPC;
}

/* ---- a pool comes and goes ---- */

static void hawk_pool_commit_work(struct work_struct *work);

/* Its headers are written from now on, or not any more: then no work is left. */
static void hawk_pool_set_commits(struct hawk_pool_file *p, bool commits)
{
	spin_lock(&p->kick_lock);
	p->commits = commits;
	spin_unlock(&p->kick_lock);
	if (!commits)
		cancel_delayed_work_sync(&p->commit);
}

/**
 * hawk_pool_file_free() - the end of hawk_mem: no space refers to it any more
 * @m: memory; one without a pool is none of our business
 */
void hawk_pool_file_free(struct hawk_mem *m)
{
	if (!m->pool)
		return;
	hawk_pool_buf_free(&m->pool->headers);
	hawk_pool_buf_free(&m->pool->record);
	kvfree(m->pool->list);
	kfree(m->pool);
	m->pool = NULL;
}

/**
 * hawk_pool_attach() - look for a pool on the file of a flash tier
 * @m: memory that is not published yet, its file open
 * @size: of the file, bytes
 *
 * Sets @m->chunks and @m->data_off if there is one.
 * Return: 0; -ENOENT: there is none; -EILSEQ, -EUCLEAN, -EPROTONOSUPPORT: it cannot be used;
 * -ENOSPC: the file is smaller than the pool; -ENOMEM; others of reading.
 */
int hawk_pool_attach(struct hawk_mem *m, u64 size)
{
	struct inode *inode;
	int ret = -ENOMEM;

	m->pool = kzalloc(sizeof(*m->pool), GFP_KERNEL_ACCOUNT);
	if (!m->pool)
		return -ENOMEM;
	m->pool->m = m;
	spin_lock_init(&m->pool->kick_lock);
	INIT_DELAYED_WORK(&m->pool->commit, hawk_pool_commit_work);
	/* two classes: the one for headers is held when the other is taken */
	mutex_init(&m->pool->headers.lock);
	mutex_init(&m->pool->record.lock);
	m->pool->list = kvmalloc_array(HAWK_COMMIT_PAGES, sizeof(*m->pool->list), GFP_KERNEL);
	if (hawk_pool_buf_init(&m->pool->headers, HAWK_COMMIT_PAGES) ||
	    hawk_pool_buf_init(&m->pool->record, 1) || !m->pool->list)
		goto err_free;
	ret = hawk_pool_read_supers(m, size);
	if (ret)
		goto err_free;
	inode = file_inode(m->file);
	m->pool->sparse = S_ISREG(inode->i_mode) &&
			  inode_get_bytes(inode) < (loff_t)m->pool->super.bytes;
	m->chunks = m->pool->super.chunks;
	m->data_off = m->pool->super.data_off;
	return 0;

err_free:
	hawk_pool_file_free(m);
	return ret;
}

/**
 * hawk_pool_mark_plain() - nobody takes this memory's payload for a pool
 * @m: memory without a pool that is not published yet, its file open
 * @size: of the file, bytes
 * @off: where the mark is or comes, hawk_plain_layout()
 *
 * Return: 0 or a negative errno.
 */
int hawk_pool_mark_plain(struct hawk_mem *m, u64 size, u64 off)
{
	struct hawk_pool_buf b = { };
	int ret = hawk_pool_buf_init(&b, 1);

	mutex_init(&b.lock);
	mutex_lock(&b.lock);
	if (!ret && off + HAWK_POOL_PAGE <= size)
		ret = hawk_pool_rw(m, &b, 0, off, 1, false, 0);
	if (!ret && !hawk_plain_marked(b.mem)) {
		hawk_plain_encode(b.mem);
		ret = hawk_pool_rw(m, &b, 0, off, 1, true, IOCB_DSYNC);
	}
	mutex_unlock(&b.lock);
	hawk_pool_buf_free(&b);
	return ret;
}

/* The records of chunks from @chunk on are in the buffer, @pages of them. */
static void hawk_pool_load_pages(struct hawk_mem *m, u32 chunk, u32 pages)
{
	struct hawk_pool_file *p = m->pool;
	u32 i, n = min(pages * HAWK_PAGE_RECORDS, m->chunks - chunk);
	struct hawk_record r;

	lockdep_assert_held(&p->headers.lock);
	for (i = 0; i < n; i++)
		if (!hawk_record_decode(p->headers.mem + (size_t)i * HAWK_RECORD_BYTES,
					hawk_pool_id(&p->super), chunk + i, &r))
			hawk_pool_load(hawk_dev.engine, m->id, &r);
}

/*
 * @pages of the records from chunk @chunk on: what the engine has to know of them.  If they
 * cannot be read at once they are read one by one: a bad page costs its chunks, not the pool.
 * Return: pages that cannot be read.
 */
static u32 hawk_pool_load_some(struct hawk_mem *m, u32 chunk, u32 pages)
{
	struct hawk_pool_file *p = m->pool;
	u64 off = hawk_record_off(&p->super, chunk);
	u32 i, bad = 0;
	int ret;

	mutex_lock(&p->headers.lock);
	ret = hawk_pool_rw(m, &p->headers, 0, off, pages, false, 0);
	if (!ret)
		hawk_pool_load_pages(m, chunk, pages);
	for (i = 0; ret && i < pages; i++, off += HAWK_POOL_PAGE, chunk += HAWK_PAGE_RECORDS) {
		int err = hawk_pool_rw(m, &p->headers, 0, off, 1, false, 0);

		if (!err) {
			hawk_pool_load_pages(m, chunk, 1);
			continue;
		}
		hawk_pool_failed(m, false, off, err);
		hawk_pool_unread(hawk_dev.engine, m->id, chunk, HAWK_PAGE_RECORDS);
		bad++;
	}
	mutex_unlock(&p->headers.lock);
	return bad;
}

/**
 * hawk_pool_start() - use the pool of a tier that the engine has just got
 * @m: its memory, not published yet; one without a pool is none of our business
 *
 * Context: in a call from user space; reads all records.
 * Return: 0; -EINTR: the caller is being killed; -EOVERFLOW: its numbers are used up; others
 * of writing superblocks.
 */
int hawk_pool_start(struct hawk_mem *m)
{
	u32 nr, n, bad = 0, pages = DIV_ROUND_UP(m->chunks, HAWK_PAGE_RECORDS);
	struct hawk_pool_file *p = m->pool;
	int ret;

	if (!p)
		return 0;
	if (p->super.seq == HAWK_SEQ_MAX) {
		pr_err("%pD4: this pool has been used as often as can be: format it anew\n",
		       m->file);
		return -EOVERFLOW;
	}
	p->torn = !p->super.clean;
	p->super.seq++;
	p->super.clean = false;
	ret = hawk_pool_write_supers(m);
	if (ret)
		return ret;
	WRITE_ONCE(p->started, true);
	hawk_pool_set_commits(p, true);
	ret = hawk_pool_open(hawk_dev.engine, m->id, &p->super, ktime_get_ns());
	for (nr = 0; !ret && nr < pages; nr += n) {
		n = min(pages - nr, HAWK_COMMIT_PAGES);
		bad += hawk_pool_load_some(m, nr * HAWK_PAGE_RECORDS, n);
		if (fatal_signal_pending(current))
			ret = -EINTR;
	}
	if (bad)
		pr_warn("%pD4: whose %u chunks are cannot be read: their blocks are misses\n",
			m->file, bad * HAWK_PAGE_RECORDS);
	if (!ret)
		hawk_pool_loaded(hawk_dev.engine, m->id);
	return ret;
}

/**
 * hawk_pool_stop() - the tier goes: its file is about to be closed
 * @m: memory; one without a pool is none of our business
 *
 * A space that had to leave the tier may still be about to commit: it finds that too late.
 */
void hawk_pool_stop(struct hawk_mem *m)
{
	struct hawk_pool_file *p = m->pool;
	int ret;

	if (!p || !p->started)
		return;
	hawk_pool_set_commits(p, false);
	mutex_lock(&p->headers.lock);
	p->super.written += hawk_mem_counted(m).write + atomic64_read(&p->header_bytes);
	p->super.clean = !p->failed;
	ret = READ_ONCE(m->lost) ? 0 : hawk_pool_flush(m) ?: hawk_pool_write_supers(m);
	if (ret)
		pr_err_ratelimited("%pD4: closing the pool failed: %d\n", m->file, ret);
	WRITE_ONCE(p->started, false);
	mutex_unlock(&p->headers.lock);
}

/**
 * hawk_pool_torn() - may blocks have other bytes than their headers say, and the drive be whole?
 * @m: memory of any kind
 *
 * So it is after an end that was not clean: slots have been used again whose headers have not
 * been written yet.
 * Return: whether it may be so.
 */
bool hawk_pool_torn(const struct hawk_mem *m)
{
	return m->pool && READ_ONCE(m->pool->torn);
}

/* Chunks that spaces which are being made have yet to look at. */
u32 hawk_pool_scan_left(const struct hawk_mem *m)
{
	return m->pool ? atomic_read(&m->pool->scan_left) : 0;
}

u64 hawk_pool_header_bytes(const struct hawk_mem *m)
{
	return m->pool ? atomic64_read(&m->pool->header_bytes) : 0;
}

/* ---- records ---- */

static int hawk_pool_write_record(struct hawk_mem *m, const struct hawk_record *r, int flags)
{
	struct hawk_pool_file *p = m->pool;
	u64 off = hawk_record_off(&p->super, r->chunk), at = off % HAWK_POOL_PAGE;
	int ret;

	mutex_lock(&p->record.lock);
	ret = hawk_pool_rw(m, &p->record, 0, off - at, 1, false, 0);
	if (!ret) {
		hawk_record_encode(r, hawk_pool_id(&p->super), p->record.mem + at);
		ret = hawk_pool_rw(m, &p->record, 0, off - at, 1, true, flags);
		if (!(flags & IOCB_DSYNC))
			WRITE_ONCE(p->unflushed, true);
	}
	mutex_unlock(&p->record.lock);
	if (ret)
		hawk_pool_failed(m, true, off - at, ret);
	else
		atomic64_add(HAWK_POOL_PAGE, &p->header_bytes);
	return ret;
}

/**
 * hawk_pool_grant() - note durably whose a chunk is before it is used
 * @as: the space
 * @g: what hawk_space_grow() gave
 *
 * Context: may sleep.
 * Return: 0 or a negative errno: the chunk must not be used.
 */
int hawk_pool_grant(struct hawk_as *as, const struct hawk_grant *g)
{
	struct hawk_record r;

	if (!hawk_grant_record(as->space, g, &r))
		return 0;
	return hawk_pool_write_record(as->mem[g->tier], &r, IOCB_DSYNC);
}

/* Advice to the drive or file system; a file that has its room keeps it. */
static void hawk_pool_discard(struct hawk_mem *m, u32 chunk)
{
	struct inode *inode = m->file->f_mapping->host;
	u64 off = m->data_off + ((u64)chunk << HAWK_CHUNK_SHIFT);

	if (m->pool->sparse)
		vfs_fallocate(m->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off,
			      HAWK_CHUNK_BYTES);
	else if (S_ISBLK(inode->i_mode) && bdev_max_discard_sectors(I_BDEV(inode)))
		blkdev_issue_discard(I_BDEV(inode), off >> SECTOR_SHIFT,
				     HAWK_CHUNK_BYTES >> SECTOR_SHIFT, GFP_NOIO);
}

/**
 * hawk_pool_clean() - a chunk has left its owner
 * @m: memory; one without a pool is none of our business
 * @chunk: its number
 *
 * Context: may sleep.
 */
void hawk_pool_clean(struct hawk_mem *m, u32 chunk)
{
	struct hawk_record r = { .chunk = chunk };

	if (!m->pool || READ_ONCE(m->lost))
		return;
	if (hawk_pool_chunk_kept(hawk_dev.engine, m->id, chunk))
		hawk_pool_write_record(m, &r, 0);
	hawk_pool_discard(m, chunk);
}

/**
 * hawk_pool_sync() - what has been written of headers and records is durable
 * @m: memory; one without a pool is none of our business
 *
 * So that what was freed stays so: who needs them before something else uses a flush.
 * Context: may sleep.
 */
void hawk_pool_sync(struct hawk_mem *m)
{
	struct hawk_pool_file *p = m->pool;
	int ret = 0;

	if (!p)
		return;
	mutex_lock(&p->headers.lock);
	if (p->started && !READ_ONCE(m->lost) && READ_ONCE(p->unflushed))
		ret = hawk_pool_flush(m);
	mutex_unlock(&p->headers.lock);
	if (ret)
		hawk_pool_failed(m, true, 0, ret);
}

/* ---- commits ---- */

/* Pages that are neighbours are one write. */
static void hawk_pool_write_pages(struct hawk_as *as, struct hawk_mem *m, u32 n)
{
	struct hawk_pool_file *p = m->pool;
	const struct hawk_keep_page *page = p->list;
	u32 i, k;
	int ret;

	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && page[k].off == page[k - 1].off + HAWK_POOL_PAGE; k++)
			;
		ret = hawk_pool_rw(m, &p->headers, i, page[i].off, k - i, true, 0);
		WRITE_ONCE(p->unflushed, true);
		if (!ret) {
			atomic64_add((u64)(k - i) * HAWK_POOL_PAGE, &p->header_bytes);
			continue;
		}
		hawk_pool_failed(m, true, page[i].off, ret);
		for (; i < k; i++)
			hawk_keep_again(as->space, m->id, page[i].nr);
	}
}

/* This use has given half of its numbers: what follows has those of the next one. */
static void hawk_pool_renumber(struct hawk_mem *m)
{
	struct hawk_pool_file *p = m->pool;
	int ret;

	lockdep_assert_held(&p->headers.lock);
	if (!hawk_pool_worn(hawk_dev.engine, m->id) || p->super.seq == HAWK_SEQ_MAX)
		return;
	p->super.seq++;
	ret = hawk_pool_write_supers(m);
	if (ret)
		hawk_pool_failed(m, true, 0, ret);	/* tried again with the next commit */
	else
		hawk_pool_renew(hawk_dev.engine, m->id, &p->super);
}

static void hawk_pool_commit_tier(struct hawk_as *as, struct hawk_mem *m)
{
	struct hawk_pool_file *p = m->pool;
	u32 cursor = 0, n, i;
	int ret;

	mutex_lock(&p->headers.lock);
	if (p->started && !READ_ONCE(m->lost))
		hawk_pool_renumber(m);
	while (p->started && !READ_ONCE(m->lost)) {
		n = hawk_keep_collect(as->space, m->id, &cursor, p->headers.mem, p->list,
				      HAWK_COMMIT_PAGES);
		ret = n ? hawk_pool_flush(m) : 0;
		if (ret) {
			/* headers of blocks that cannot be made durable are not written */
			hawk_pool_failed(m, true, 0, ret);
			for (i = 0; i < n; i++)
				hawk_keep_again(as->space, m->id, p->list[i].nr);
			break;
		}
		hawk_pool_write_pages(as, m, n);
		if (n < HAWK_COMMIT_PAGES)
			break;
	}
	mutex_unlock(&p->headers.lock);
}

static void hawk_pool_commit(struct hawk_as *as)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!hawk_keep_due(as->space, t))
			continue;
		hawk_pool_commit_tier(as, as->mem[t]);
		hawk_pool_sync(as->mem[t]);
	}
}

/**
 * hawk_pool_end() - a space ends: what it keeps is durable
 * @as: the space, which nobody uses any more
 *
 * Context: may sleep.
 */
void hawk_pool_end(struct hawk_as *as)
{
	u32 t;

	hawk_pool_commit(as);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (hawk_space_kept(as->space, t))
			hawk_pool_sync(as->mem[t]);
}

/* What comes before blocks on flash is on its way there; its headers are next time's. */
static void hawk_pool_ancestors(struct hawk_as *as, struct hawk_plan *plan)
{
	u32 cursor = 0;
	int ret;

	do {
		ret = hawk_keep_ancestors(as->space, &cursor, ktime_get_ns(), plan);
		hawk_plan_start(as, NULL, plan, NULL);
		cond_resched();
	} while ((hawk_as_grew(as, ret) || ret >= 0) &&
		 atomic_read(&as->active) <= 4 * HAWK_PLAN_MOVES);
}

static void hawk_pool_kick_ancestors(void)
{
	queue_delayed_work(hawk_dev.own_wq, &hawk_dev.pool_ancestors,
			   msecs_to_jiffies(HAWK_COMMIT_MS));
}

static void hawk_pool_ancestors_work(struct work_struct *work)
{
	struct hawk_plan plan = { .max = HAWK_PLAN_MOVES };
	struct hawk_as *as = NULL;

	plan.move = kmalloc_array(plan.max, sizeof(*plan.move), GFP_KERNEL);
	if (!plan.move) {
		hawk_pool_kick_ancestors();
		return;
	}
	while ((as = hawk_as_next(as))) {
		if (!hawk_keep_lacks(as->space))
			continue;
		hawk_round_begin(as);
		hawk_pool_ancestors(as, &plan);
		hawk_round_end(as);
	}
	kfree(plan.move);
}

static void hawk_pool_kick_commit(struct hawk_pool_file *p)
{
	spin_lock(&p->kick_lock);
	if (p->commits)
		queue_delayed_work(hawk_dev.own_wq, &p->commit, msecs_to_jiffies(HAWK_COMMIT_MS));
	spin_unlock(&p->kick_lock);
}

/* Who ends the pool waits for it, and must not have to wait for the system to sleep. */
static void hawk_pool_commit_work(struct work_struct *work)
{
	struct hawk_pool_file *p = container_of(to_delayed_work(work), struct hawk_pool_file,
						commit);
	struct hawk_as *as = NULL;

	while ((as = hawk_as_next(as))) {
		if (as->mem[p->m->id] != p->m || !hawk_keep_due(as->space, p->m->id))
			continue;
		if (!hawk_round_try(as)) {
			hawk_as_put(as);
			hawk_pool_kick_commit(p);
			return;
		}
		hawk_pool_commit_tier(as, p->m);
		hawk_pool_sync(p->m);
		hawk_round_end(as);
	}
}

/**
 * hawk_pool_kick() - a block has been written to a pool
 * @m: its tier
 *
 * Context: may be called with locks of the engine held.
 */
void hawk_pool_kick(struct hawk_mem *m)
{
	hawk_pool_kick_commit(m->pool);
	hawk_pool_kick_ancestors();
}

/* A header has changed: hawk_space_params.due; a bucket may be locked. */
void hawk_pool_due(void *owner)
{
	struct hawk_as *as = owner;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (as->mem[t] && as->mem[t]->pool)
			hawk_pool_kick(as->mem[t]);
}

void hawk_pool_init(void)
{
	INIT_DELAYED_WORK(&hawk_dev.pool_ancestors, hawk_pool_ancestors_work);
}

void hawk_pool_exit(void)
{
	/* what comes before blocks on flash is written while its space is there */
	flush_delayed_work(&hawk_dev.pool_ancestors);
	cancel_delayed_work_sync(&hawk_dev.pool_ancestors);
}
