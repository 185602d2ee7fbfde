// SPDX-License-Identifier: GPL-2.0
/*
 * pool_scan.c - a space that is being made finds its blocks in pools
 *
 * The space hides (hawk_as.finding): no walk meets it and nobody attaches it, so its maker
 * reads without hawk_device.lock, for as long as it takes.  He may be killed, and a tier
 * that has to go ends the scan (hawk_as.find_stop); either way what has been adopted stays
 * kept, as when a space ends.
 *
 * HAWK_SCAN_READS reads are in flight, each of the headers of neighbouring chunks; they are
 * taken in the order in which they were started, each buffer is filled again as soon as its
 * headers are blocks.
 */
#include "pool.h"
#include "pool_file.h"

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#define HAWK_SCAN_READS		8u
#define HAWK_SCAN_BYTES		(256u << 10)	/* of one read */
#define HAWK_SCAN_PAGES		(HAWK_SCAN_BYTES / HAWK_POOL_PAGE)
#define HAWK_SCAN_TELL_NS	(2 * NSEC_PER_SEC)

/**
 * struct hawk_scan_read - headers of neighbouring chunks on their way
 * @iocb: the read
 * @mem: HAWK_SCAN_BYTES
 * @bv: its pages
 * @at: index of the first chunk in hawk_scan.chunk
 * @n: chunks; 0: not in use
 * @res: what came of it
 * @done: it has ended
 */
struct hawk_scan_read {
	struct kiocb iocb;
	u8 *mem;
	struct bio_vec bv[HAWK_SCAN_PAGES];
	u32 at;
	u32 n;
	long res;
	struct completion done;
};

/**
 * struct hawk_scan - a space looks for its blocks in one pool
 * @as: the space
 * @m: the tier
 * @chunk: orphans that may be the space's, rising
 * @n: so many
 * @next: index of the first one that is not read yet
 * @left: those counted in hawk_pool_file.scan_left and not looked at yet
 * @page_nr: page of records that is in @page, or HAWK_NONE
 * @page: memory for one page
 * @told: when progress was last told
 * @mem: of all reads, and @page
 * @read: the reads
 */
struct hawk_scan {
	struct hawk_as *as;
	struct hawk_mem *m;
	u32 *chunk;
	u32 n;
	u32 next;
	u32 left;
	u32 page_nr;
	u8 *page;
	u64 told;
	u8 *mem;
	struct hawk_scan_read read[HAWK_SCAN_READS];
};

static u32 hawk_scan_chunk_bytes(const struct hawk_scan *sc)
{
	return hawk_pool_slots(&sc->m->pool->super) * HAWK_HEADER_BYTES;
}

/* ---- reading ---- */

static void hawk_scan_end(struct kiocb *iocb, long ret)
{
	struct hawk_scan_read *r = container_of(iocb, struct hawk_scan_read, iocb);

	r->res = ret;
	complete(&r->done);
}

/* Start to read the next chunks, if there are any. */
static void hawk_scan_start(struct hawk_scan *sc, struct hawk_scan_read *r)
{
	u32 size = hawk_scan_chunk_bytes(sc), most = HAWK_SCAN_BYTES / size;
	struct iov_iter iter;
	ssize_t ret;

	r->at = sc->next;
	for (r->n = 0; sc->next < sc->n && r->n < most &&
	     sc->chunk[sc->next] == sc->chunk[r->at] + r->n; r->n++)
		sc->next++;
	if (!r->n)
		return;
	reinit_completion(&r->done);
	iov_iter_bvec(&iter, ITER_DEST, r->bv, r->n * size / HAWK_POOL_PAGE, (size_t)r->n * size);
	init_sync_kiocb(&r->iocb, sc->m->file);
	r->iocb.ki_pos = hawk_header_off(&sc->m->pool->super, sc->chunk[r->at]);
	r->iocb.ki_complete = hawk_scan_end;
	ret = sc->m->file->f_op->read_iter(&r->iocb, &iter);
	if (ret != -EIOCBQUEUED)
		hawk_scan_end(&r->iocb, ret);
}

/* The record of a chunk as it is on flash; 16 of them are a page, so few are read. */
static int hawk_scan_record(struct hawk_scan *sc, u32 chunk, struct hawk_record *r)
{
	const struct hawk_super *s = &sc->m->pool->super;
	u32 nr = chunk / HAWK_PAGE_RECORDS;
	int ret = 0;

	if (sc->page_nr != nr)
		ret = hawk_pool_read_page(sc->m, s->record_off + (u64)nr * HAWK_POOL_PAGE,
					  sc->page);
	sc->page_nr = ret ? HAWK_NONE : nr;
	return ret ?: hawk_record_decode(sc->page + chunk % HAWK_PAGE_RECORDS * HAWK_RECORD_BYTES,
					 hawk_pool_id(s), chunk, r);
}

/* ---- headers become blocks ---- */

static void hawk_scan_left(struct hawk_scan *sc, u32 n)
{
	sc->left -= n;
	atomic_sub(n, &sc->m->pool->scan_left);
}

static void hawk_scan_tell(struct hawk_scan *sc)
{
	u64 now = ktime_get_ns();

	if (now - sc->told < HAWK_SCAN_TELL_NS)
		return;
	sc->told = now;
	pr_info("space %llu of uid %u looks for its blocks in tier %u: %u of %u chunks read\n",
		sc->as->id, from_kuid(&init_user_ns, sc->as->uid), sc->m->id, sc->n - sc->left,
		sc->n);
}

/* What cannot be read is not adopted, and stays as it is. */
static void hawk_scan_adopt(struct hawk_scan *sc, struct hawk_scan_read *r)
{
	u32 i, size = hawk_scan_chunk_bytes(sc);
	struct hawk_record rec;

	if (r->res != (long)r->n * size)
		hawk_pool_failed(sc->m, false, r->iocb.ki_pos, r->res < 0 ? r->res : -EIO);
	for (i = 0; r->res == (long)r->n * size && i < r->n; i++) {
		if (!hawk_scan_record(sc, sc->chunk[r->at + i], &rec))
			hawk_space_adopt(sc->as->space, sc->m->id, &rec, r->mem + (size_t)i * size,
					 ktime_get_ns());
		cond_resched();
	}
	hawk_scan_left(sc, r->n);
	r->n = 0;
	hawk_scan_tell(sc);
}

/* Return: why no more chunks are read, or 0. */
static int hawk_scan_stop(const struct hawk_scan *sc)
{
	if (READ_ONCE(sc->as->find_stop))
		return -ENOENT;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static int hawk_scan_run(struct hawk_scan *sc)
{
	struct hawk_scan_read *r;
	u32 i, busy = 0;
	int ret = 0;

	for (i = 0; !i || busy || (!ret && sc->next < sc->n); i++) {
		r = &sc->read[i % HAWK_SCAN_READS];
		if (r->n) {
			wait_for_completion(&r->done);
			hawk_scan_adopt(sc, r);
			busy--;
		}
		ret = ret ?: hawk_scan_stop(sc);
		if (!ret)
			hawk_scan_start(sc, r);
		busy += !!r->n;
	}
	return ret;
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

static int hawk_scan_alloc(struct hawk_scan *sc)
{
	u32 i, k;

	sc->mem = __vmalloc(HAWK_SCAN_READS * HAWK_SCAN_BYTES + HAWK_POOL_PAGE,
			    GFP_KERNEL_ACCOUNT);
	if (!sc->mem)
		return -ENOMEM;
	sc->page = sc->mem + HAWK_SCAN_READS * HAWK_SCAN_BYTES;
	for (i = 0; i < HAWK_SCAN_READS; i++) {
		struct hawk_scan_read *r = &sc->read[i];

		init_completion(&r->done);
		r->mem = sc->mem + i * HAWK_SCAN_BYTES;
		for (k = 0; k < HAWK_SCAN_PAGES; k++)
			r->bv[k] = (struct bio_vec){
				.bv_page = vmalloc_to_page(r->mem + k * HAWK_POOL_PAGE),
				.bv_len = HAWK_POOL_PAGE,
			};
	}
	return 0;
}

static int hawk_scan_tier(struct hawk_as *as, struct hawk_mem *m)
{
	struct hawk_scan *sc = kvzalloc(sizeof(*sc), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!sc)
		return -ENOMEM;
	sc->as = as;
	sc->m = m;
	sc->page_nr = HAWK_NONE;
	sc->told = ktime_get_ns();
	ret = hawk_scan_list(sc);
	if (!ret && sc->n)
		ret = hawk_scan_alloc(sc) ?: hawk_scan_run(sc);
	hawk_scan_left(sc, sc->left);
	vfree(sc->mem);
	kvfree(sc->chunk);
	kvfree(sc);
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
