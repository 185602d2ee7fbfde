// SPDX-License-Identifier: GPL-2.0
/*
 * pool_scan.c - a space that is being made finds its blocks in pools
 *
 * The space hides (hawk_as.finding): no walk meets it and nobody attaches it, so its maker
 * reads without hawk_device.lock, for as long as it takes.  He may be killed, and a tier
 * that has to go ends the scan (hawk_as.find_stop); either way what has been adopted stays
 * kept, as when a space ends.
 *
 * The maker is one of several readers, the others are workers that he waits for; where there
 * is little to read he does it alone.  Each has HAWK_SCAN_READS reads in flight, each of the
 * headers of neighbouring chunks and of their records, and takes the next chunks that nobody
 * has taken yet.  He looks at his reads in the order in which he started them and fills each
 * buffer again as soon as its headers are blocks.
 */
#include "pool.h"
#include "pool_file.h"

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#define HAWK_SCAN_READERS	4u
#define HAWK_SCAN_READS		8u
#define HAWK_SCAN_BYTES		(256u << 10)	/* headers of one read */
#define HAWK_SCAN_HEADERS	(HAWK_SCAN_BYTES / HAWK_POOL_PAGE)	/* pages of them */
#define HAWK_SCAN_RECORDS	(HAWK_SCAN_HEADERS / HAWK_PAGE_RECORDS + 1)
#define HAWK_SCAN_PAGES		(HAWK_SCAN_HEADERS + HAWK_SCAN_RECORDS)
#define HAWK_SCAN_TELL_NS	(2 * NSEC_PER_SEC)

struct hawk_scan_read;

/**
 * struct hawk_scan_part - headers or records on their way
 * @iocb: the transfer
 * @read: of which it is a part
 * @bytes: of it
 * @res: what came of it
 */
struct hawk_scan_part {
	struct kiocb iocb;
	struct hawk_scan_read *read;
	u32 bytes;
	long res;
};

/**
 * struct hawk_scan_read - headers and records of neighbouring chunks
 * @headers: of the chunks
 * @records: the pages that their records are in
 * @mem: HAWK_SCAN_PAGES pages, headers first
 * @bv: the pages of @mem
 * @at: index of the first chunk in hawk_scan.chunk
 * @n: chunks; 0: not in use
 * @left: parts that have not ended, and one while they are started
 * @done: they have
 */
struct hawk_scan_read {
	struct hawk_scan_part headers;
	struct hawk_scan_part records;
	u8 *mem;
	struct bio_vec bv[HAWK_SCAN_PAGES];
	u32 at;
	u32 n;
	atomic_t left;
	struct completion done;
};

/**
 * struct hawk_scan - a space looks for its blocks in one pool
 * @as: the space
 * @m: the tier
 * @chunk: orphans that may be the space's, rising
 * @n: so many
 * @lock: guards all below
 * @next: index of the first one that nobody reads yet
 * @left: those counted in hawk_pool_file.scan_left and not looked at yet
 * @told: when progress was last told
 * @stop: why no more are read, or 0
 */
struct hawk_scan {
	struct hawk_as *as;
	struct hawk_mem *m;
	u32 *chunk;
	u32 n;
	spinlock_t lock;
	u32 next;
	u32 left;
	u64 told;
	int stop;
};

/**
 * struct hawk_scan_reader - one of those who read
 * @work: has a worker do it
 * @sc: the scan
 * @mem: of all reads
 * @read: the reads
 */
struct hawk_scan_reader {
	struct work_struct work;
	struct hawk_scan *sc;
	u8 *mem;
	struct hawk_scan_read read[HAWK_SCAN_READS];
};

static u32 hawk_scan_chunk_bytes(const struct hawk_scan *sc)
{
	return hawk_pool_slots(&sc->m->pool->super) * HAWK_HEADER_BYTES;
}

/* ---- reading ---- */

static void hawk_scan_part_end(struct hawk_scan_read *r)
{
	if (atomic_dec_and_test(&r->left))
		complete(&r->done);
}

static void hawk_scan_end(struct kiocb *iocb, long ret)
{
	struct hawk_scan_part *p = container_of(iocb, struct hawk_scan_part, iocb);

	p->res = ret;
	hawk_scan_part_end(p->read);
}

static void hawk_scan_part_start(struct hawk_scan *sc, struct hawk_scan_read *r,
				 struct hawk_scan_part *p, const struct bio_vec *bv, u64 off,
				 u32 bytes)
{
	struct iov_iter iter;
	ssize_t ret;

	p->read = r;
	p->bytes = bytes;
	atomic_inc(&r->left);
	iov_iter_bvec(&iter, ITER_DEST, bv, bytes / HAWK_POOL_PAGE, bytes);
	init_sync_kiocb(&p->iocb, sc->m->file);
	p->iocb.ki_pos = off;
	p->iocb.ki_complete = hawk_scan_end;
	ret = sc->m->file->f_op->read_iter(&p->iocb, &iter);
	if (ret != -EIOCBQUEUED)
		hawk_scan_end(&p->iocb, ret);
}

/* The page of records that a chunk's is in. */
static u64 hawk_scan_record_page(const struct hawk_scan *sc, u32 chunk)
{
	return hawk_record_off(&sc->m->pool->super, chunk) & ~(u64)(HAWK_POOL_PAGE - 1);
}

/* Take the next chunks that nobody has, neighbours.  Return: whether there are any. */
static bool hawk_scan_take(struct hawk_scan *sc, struct hawk_scan_read *r)
{
	u32 most = HAWK_SCAN_BYTES / hawk_scan_chunk_bytes(sc);

	spin_lock(&sc->lock);
	r->at = sc->next;
	for (r->n = 0; !sc->stop && sc->next < sc->n && r->n < most &&
	     sc->chunk[sc->next] == sc->chunk[r->at] + r->n; r->n++)
		sc->next++;
	spin_unlock(&sc->lock);
	return r->n;
}

/* Start to read the next chunks, if there are any. */
static void hawk_scan_start(struct hawk_scan *sc, struct hawk_scan_read *r)
{
	u64 page;
	u32 first;

	if (!hawk_scan_take(sc, r))
		return;
	first = sc->chunk[r->at];
	page = hawk_scan_record_page(sc, first);
	reinit_completion(&r->done);
	atomic_set(&r->left, 1);
	hawk_scan_part_start(sc, r, &r->headers, r->bv, hawk_header_off(&sc->m->pool->super, first),
			     r->n * hawk_scan_chunk_bytes(sc));
	hawk_scan_part_start(sc, r, &r->records, r->bv + HAWK_SCAN_HEADERS, page,
			     hawk_scan_record_page(sc, first + r->n - 1) + HAWK_POOL_PAGE - page);
	hawk_scan_part_end(r);
}

/* ---- headers become blocks ---- */

/* Chunks have been looked at.  Now and then that is told. */
static void hawk_scan_left(struct hawk_scan *sc, u32 n)
{
	u64 now = ktime_get_ns();
	bool tell;
	u32 read;

	spin_lock(&sc->lock);
	sc->left -= n;
	read = sc->n - sc->left;
	tell = now - sc->told >= HAWK_SCAN_TELL_NS;
	if (tell)
		sc->told = now;
	spin_unlock(&sc->lock);
	atomic_sub(n, &sc->m->pool->scan_left);
	if (tell)
		pr_info("space %llu of uid %u looks for its blocks in tier %u: %u of %u chunks read\n",
			sc->as->id, from_kuid(&init_user_ns, sc->as->uid), sc->m->id, read, sc->n);
}

static bool hawk_scan_whole(struct hawk_scan *sc, const struct hawk_scan_part *p)
{
	if (p->res == p->bytes)
		return true;
	hawk_pool_failed(sc->m, false, p->iocb.ki_pos, p->res < 0 ? p->res : -EIO);
	return false;
}

/* What cannot be read is not adopted, and stays as it is. */
static void hawk_scan_adopt(struct hawk_scan *sc, struct hawk_scan_read *r)
{
	const struct hawk_super *s = &sc->m->pool->super;
	u32 i, chunk, size = hawk_scan_chunk_bytes(sc), first = sc->chunk[r->at];
	const u8 *records = r->mem + HAWK_SCAN_BYTES;
	struct hawk_record rec;
	bool ok;

	ok = hawk_scan_whole(sc, &r->headers);
	ok = hawk_scan_whole(sc, &r->records) && ok;
	for (i = 0; ok && i < r->n; i++) {
		chunk = first + i;
		if (!hawk_record_decode(records + hawk_record_off(s, chunk) -
					hawk_scan_record_page(sc, first), hawk_pool_id(s), chunk,
					&rec))
			hawk_space_adopt(sc->as->space, sc->m->id, &rec, r->mem + (size_t)i * size,
					 ktime_get_ns());
		cond_resched();
	}
	hawk_scan_left(sc, r->n);
	r->n = 0;
}

/* No more chunks are read if there is a reason; a worker has no signals. */
static void hawk_scan_look(struct hawk_scan *sc)
{
	int why = 0;

	if (READ_ONCE(sc->as->find_stop))
		why = -ENOENT;
	else if (fatal_signal_pending(current))
		why = -EINTR;
	if (!why)
		return;
	spin_lock(&sc->lock);
	sc->stop = sc->stop ?: why;
	spin_unlock(&sc->lock);
}

static void hawk_scan_run(struct hawk_scan_reader *rd)
{
	struct hawk_scan_read *r;
	u32 i, busy = 0;

	for (i = 0; i < HAWK_SCAN_READS || busy; i++) {
		r = &rd->read[i % HAWK_SCAN_READS];
		if (r->n) {
			wait_for_completion(&r->done);
			hawk_scan_adopt(rd->sc, r);
			busy--;
		}
		hawk_scan_look(rd->sc);
		hawk_scan_start(rd->sc, r);
		busy += !!r->n;
	}
}

static void hawk_scan_work(struct work_struct *work)
{
	hawk_scan_run(container_of(work, struct hawk_scan_reader, work));
}

/* ---- readers ---- */

static void hawk_scan_reader_free(struct hawk_scan_reader *rd)
{
	if (rd)
		vfree(rd->mem);
	kvfree(rd);
}

static struct hawk_scan_reader *hawk_scan_reader_new(struct hawk_scan *sc)
{
	struct hawk_scan_reader *rd = kvzalloc(sizeof(*rd), GFP_KERNEL_ACCOUNT);
	u32 i, k, bytes = HAWK_SCAN_PAGES * HAWK_POOL_PAGE;

	if (!rd)
		return NULL;
	rd->mem = __vmalloc(HAWK_SCAN_READS * bytes, GFP_KERNEL_ACCOUNT);
	if (!rd->mem) {
		hawk_scan_reader_free(rd);
		return NULL;
	}
	rd->sc = sc;
	INIT_WORK(&rd->work, hawk_scan_work);
	for (i = 0; i < HAWK_SCAN_READS; i++) {
		struct hawk_scan_read *r = &rd->read[i];

		init_completion(&r->done);
		r->mem = rd->mem + i * bytes;
		for (k = 0; k < HAWK_SCAN_PAGES; k++)
			r->bv[k] = (struct bio_vec){
				.bv_page = vmalloc_to_page(r->mem + k * HAWK_POOL_PAGE),
				.bv_len = HAWK_POOL_PAGE,
			};
	}
	return rd;
}

/* As many as there are CPUs, and enough to read for each. */
static u32 hawk_scan_readers(const struct hawk_scan *sc)
{
	u64 bytes = (u64)sc->n * hawk_scan_chunk_bytes(sc);
	u64 n = div_u64(bytes, HAWK_SCAN_READS * HAWK_SCAN_BYTES) + 1;

	return min3(n, (u64)num_online_cpus(), (u64)HAWK_SCAN_READERS);
}

/* Fewer readers than wanted will do, but for the first one. */
static int hawk_scan_all(struct hawk_scan *sc)
{
	struct hawk_scan_reader *rd[HAWK_SCAN_READERS] = { NULL };
	u32 i, n = hawk_scan_readers(sc);

	for (i = 0; i < n; i++)
		rd[i] = hawk_scan_reader_new(sc);
	if (rd[0]) {
		for (i = 1; i < n; i++)
			if (rd[i])
				queue_work(hawk_dev.batch_wq, &rd[i]->work);
		hawk_scan_run(rd[0]);
		/* nothing is left for those that have not begun: the queue is full of batches */
		for (i = 1; i < n; i++)
			if (rd[i])
				cancel_work_sync(&rd[i]->work);
	}
	if (!rd[0])
		sc->stop = -ENOMEM;
	for (i = 0; i < n; i++)
		hawk_scan_reader_free(rd[i]);
	return sc->stop;
}

/* ---- the whole of it ---- */

static int hawk_scan_list(struct hawk_scan *sc)
{
	u32 c = HAWK_NONE, room = hawk_pool_orphans(hawk_dev.engine, sc->m->id);

	sc->chunk = kvcalloc(room + 1, sizeof(*sc->chunk), GFP_KERNEL_ACCOUNT);
	if (!sc->chunk)
		return -ENOMEM;
	while (sc->n < room &&
	       (c = hawk_pool_next_orphan(sc->as->space, sc->m->id, c)) != HAWK_NONE)
		sc->chunk[sc->n++] = c;
	sc->left = sc->n;
	atomic_add(sc->n, &sc->m->pool->scan_left);
	return 0;
}

static int hawk_scan_tier(struct hawk_as *as, struct hawk_mem *m)
{
	struct hawk_scan sc = { .as = as, .m = m, .told = ktime_get_ns() };
	int ret;

	spin_lock_init(&sc.lock);
	ret = hawk_scan_list(&sc);
	if (!ret && sc.n)
		ret = hawk_scan_all(&sc);
	hawk_scan_left(&sc, sc.left);
	kvfree(sc.chunk);
	return ret;
}

/**
 * hawk_pool_find() - what a space that is being made has in pools is its again
 * @as: the space, hiding (hawk_as.finding)
 *
 * Context: in a call of its maker; takes the time of reading its headers.
 * Return: 0; -ENOMEM; -EINTR: he is being killed; -ENOENT: a tier has to go.
 */
int hawk_pool_find(struct hawk_as *as)
{
	struct hawk_recovery r;
	int ret = 0;
	u32 t;

	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++)
		if (hawk_space_kept(as->space, t))
			ret = hawk_scan_tier(as, as->mem[t]);
	ret = ret ?: hawk_space_settle(as->space);
	hawk_space_recovery(as->space, &r);
	if (r.corrupt || r.no_room)
		pr_warn_ratelimited("space %llu of uid %u: %llu blocks found on flash, %llu headers damaged, no room for %llu\n",
				    as->id, from_kuid(&init_user_ns, as->uid), r.blocks, r.corrupt,
				    r.no_room);
	return ret;
}
