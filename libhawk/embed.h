/* SPDX-License-Identifier: MIT */
/*
 * embed.h - the embedded backend: the engine in this process
 *
 * Objects
 *	embed    a handle: engine, tiers, spaces, threads
 *	etier    a tier: a memfd mapped as a whole, a flash file, or memory of a GPU
 *	espace   a space of the engine with its memory; lives as long as a handle
 *	         has it or, if named, as its name is registered
 *	ekv      a handle on a space, with its pins, leases and ring
 *
 * Locks, in the order in which they may be taken
 *	the drain (drain_begin()) > embed.admin > etier.lock
 *	embed.lease_lock, pin shards > the engine's
 *	embed.admin, etier.lock > etier.commit_lock
 *	etier.lock > epool.record_lock, a leaf
 *	embed.admin > scan.lock, a leaf (escan.c)
 *	embed.wait_lock, embed.job_lock, embed.io_lock, embed.keeper_lock, ekv.ring_lock,
 *	embed.stray_lock: leaves; eio.lock: the engine's are taken under it
 * None but the drain is held while blocks are moved; embed_share.c tells who may
 * wait for that.
 *
 * Threads: the caller's own does the I/O of its batches.  The keeper ends leases,
 * writes cold blocks ahead, shares chunks out and commits headers of persistent flash (keeper.c); movers run asynchronous batches
 * (async.c).
 */
#ifndef HAWK_EMBED_H
#define HAWK_EMBED_H

#include <liburing.h>
#include <pthread.h>

#include "../kmod/core/core.h"
#include "../kmod/core/draft.h"
#include "../kmod/core/gather.h"
#include "../kmod/core/pace.h"
#include "../kmod/core/health.h"
#include "../kmod/core/pool.h"
#include "../kmod/core/promote.h"
#include "priv.h"

#define EMBED_PLAN_MAX	1024	/* moves of a plan, all in flight together */
#define EMBED_MOVERS	2	/* threads for asynchronous batches */
#define EMBED_PIN_SHARDS 16
#define EMBED_STAT_SHARDS 8
#define KEEPER_PATIENCE_NS	1000000000ull	/* it has other things to do than wait for a drive */

/* ---- tiers (embed_tier.c) ---- */

struct espace;

struct ework;
struct gpu;

/* Which window has a chunk mapped. */
struct chunk_user {
	struct espace *sp;
	u32 slot;
};

struct etier {
	struct embed *e;	/* NULL: it is no tier yet */
	u32 kind;		/* enum hawk_tier_kind, 0: no such tier */
	int node;
	int fd;			/* memfd or flash file */
	u8 *base;		/* the whole tier, host kind */
	struct gpu *gpu;	/* its memory, user kind, else NULL (gpu.h) */
	bool dropped;		/* lost, and no space has a part in it; @lock */
	u64 bytes;		/* whole chunks */
	u64 data_off;		/* bytes in the file before the first chunk */
	struct epool *pool;	/* persistent flash, or NULL */
	u64 read_bytes;		/* atomic */
	u64 write_bytes;	/* atomic */
	u64 io_errors;		/* atomic */
	char *name;		/* path of a flash file, for messages */
	struct ework *work;	/* threads that read and write it, or NULL; embed.io_lock */
	u32 out;		/* requests under way; atomic */
	u64 out_since;		/* when one ended, or the first began, ns; atomic */
	pthread_mutex_t lock;	/* guards user, the windows' slots, cleaning */
	pthread_mutex_t commit_lock;	/* headers are collected and written by one thread; the
					 * pool does not go meanwhile
					 */
	struct chunk_user *user;
};

/* ---- spaces (embed_space.c) ---- */

/*
 * A space's window on a host tier: frame f is at base + f * block_bytes.  On a GPU's it has
 * frames only.
 */
struct ewindow {
	u8 *base;
	u64 len;
	u32 frames;
	u32 nslots;
	u32 *chunk;		/* mapped chunk by slot, HAWK_NONE; etier.lock to write */
};

/* Histograms of some threads (estats.c); atomic. */
struct estat_shard {
	struct hawk_hist op[HAWK_STATS_OPS];
	struct hawk_hist gather;
} __attribute__((aligned(64)));

struct espace {
	struct embed *e;
	struct espace *next;	/* embed.spaces; embed.admin */
	u32 refs;		/* handles and the name; embed.admin */
	u32 walkers;		/* others who work on it; embed.admin */
	bool ending;		/* walkers shall leave; atomic */
	bool named;		/* registered under its name; embed.admin */
	bool untidy;		/* sequences have given something up; atomic */
	u32 starved;		/* tiers in which it wants a chunk, a bit mask; atomic */
	u32 strays;		/* contexts left that work for it; embed.stray_lock */
	u64 claimed[HAWK_TIERS_MAX];	/* when one was last taken for it; the drain */
	u64 refused;		/* embed.pass in which it could give none; the drain */
	u32 claims;		/* chunks taken for it so far; atomic */
	struct hawk_space *space;
	struct hawk_space_create geo;	/* as created */
	u32 frames_per_chunk;
	u64 vtlb_bytes;
	struct hawk_vtlb_entry *vtlb;
	struct ewindow win[HAWK_TIERS_MAX];
	struct estat_shard *count;	/* EMBED_STAT_SHARDS */
};

/* ---- pins (pins.c) ---- */

struct epin {
	struct hawk_ref ref;
	u32 count;		/* 0: free entry */
};

struct pin_shard {
	struct hawk_lock lock;	/* guards the shard; the engine is called under it */
	u32 used;
	u32 size;		/* entries, a power of two, or 0 */
	struct epin *pin;
};

/* ---- leases (lease.c) ---- */

struct elease {
	struct elease *prev, *next;	/* by expiry */
	struct ekv *kv;
	u64 id;
	u64 expires;			/* CLOCK_MONOTONIC, ns */
	u32 n;
	struct hawk_ref ref[];
};

/* ---- handles on spaces ---- */

struct ekv {
	struct hawk_kv base;
	struct espace *sp;
	u64 id;				/* owns the sequences that it makes */
	struct pin_shard pins[EMBED_PIN_SHARDS];
	struct hawk_lock ring_lock;	/* guards ring_reserved and the ring's tail */
	u32 ring_reserved;		/* entries promised to batches under way */
	u64 ring_bytes;
	int user_efd;			/* -1: none */
	u32 jobs;			/* asynchronous batches; embed.job_lock */
	u32 drafts;			/* draft rings; atomic */
};

/* ---- the device ---- */

struct embed {
	struct hawk base;
	struct hawk_engine *engine;
	u32 writeback;			/* per 1024, 0: off */
	bool compact;			/* sequences are compacted */
	u64 kv_id;			/* of the latest handle; embed.admin */
	pthread_mutex_t admin;		/* serialises making and ending tiers and spaces */
	u64 pass;			/* searches for who can give a chunk; the drain */
	struct etier tier[HAWK_TIERS_MAX];
	struct espace *spaces;
	pthread_cond_t walked;		/* a walker has left a space, or it is gone; embed.admin */

	pthread_mutex_t wait_lock;	/* with wait_cond: sleeping for moves (wait.c) */
	pthread_cond_t wait_cond;
	u32 moved;			/* atomic: moves completed so far */
	u32 planners;			/* atomic: threads that plan or move */
	u32 waiters;			/* atomic: of these in moved_wait() */
	u32 asleep;			/* of these asleep since @moved is @asleep_at; wait_lock */
	u32 asleep_at;			/* wait_lock */
	bool draining;			/* one chunk is emptied at a time; wait_lock */
	bool drain_share;		/* the keeper was sent away by that; wait_lock */
	pthread_cond_t drain_cond;	/* it is over; wait_lock */

	pthread_mutex_t io_lock;	/* guards io_free, etier.work */
	struct eio *io_free;

	pthread_mutex_t stray_lock;	/* guards the stray members */
	pthread_cond_t stray_cond;	/* a context that was left is over */
	struct eio *strays;		/* left, and not yet seen by the thread */
	u32 nstrays;			/* left and not over; atomic to read */
	int stray_fd;			/* wakes the thread */
	bool stray_run;
	bool stray_stop;
	pthread_t stray;

	pthread_mutex_t lease_lock;	/* guards the leases */
	struct elease *lease_first, *lease_last;
	u64 lease_id;

	pthread_t keeper;
	pthread_mutex_t keeper_lock;	/* guards the keeper_ members */
	pthread_cond_t keeper_cond;
	bool keeper_stop;
	bool keeper_poked;		/* look at the leases again */
	bool keeper_write;		/* blocks were put: look for cold ones; atomic to read */
	bool keeper_share;		/* a space is starved */
	bool keeper_tidy;		/* a space is untidy */
	bool keeper_commit;		/* blocks went to persistent flash; atomic to read */

	pthread_mutex_t job_lock;	/* guards the jobs */
	pthread_cond_t job_cond;	/* work for movers */
	pthread_cond_t job_done;
	struct ejob *job_first, *job_last;
	struct ejob *job_busy;		/* those that movers have */
	bool job_stop;
	u32 nmovers;
	pthread_t mover[EMBED_MOVERS];
};

static inline struct embed *to_embed(struct hawk *h)
{
	return (struct embed *)h;
}

static inline struct ekv *to_ekv(struct hawk_kv *kv)
{
	return (struct ekv *)kv;
}

/* embed_tier.c */
int embed_flash_prepare(const char *path, u64 bytes, bool persist);
int embed_tier_add(struct hawk *h, struct hawk_tier_add *a);
int embed_tier_del(struct hawk *h, unsigned int tier, unsigned int flags);
int embed_tier_info(struct hawk *h, struct hawk_tier_info *info);
int embed_tier_admit(struct hawk *h, struct hawk_tier_admit *a);
void embed_tier_free(struct etier *t);
bool embed_clean(struct embed *e);

/* embed_gpu.c */
int egpu_open(struct etier *t, const struct hawk_tier_add *a);
void egpu_register(struct etier *t);
int egpu_lost(struct espace *sp, u32 tier);
bool egpu_tier_lost(struct embed *e, u32 tier);
u64 egpu_lost_all(struct embed *e, u64 now);
bool egpu_space(const struct espace *sp);
int embed_device(struct hawk *h, unsigned int tier, struct hawk_device *d);
int embed_device_dmabuf(struct hawk *h, unsigned int tier);
int embed_frame_info(struct hawk_kv *kv, struct hawk_frame_info *info);
int embed_block_copy(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *mem, uint32_t bytes,
		     bool in);

/* huge.c */
void *huge_map(u64 bytes, int prot, int flags, int fd);
void huge_chunk(u8 *chunk);

/* window.c */
int window_open(struct espace *sp, u32 tier);
void window_close(struct espace *sp, u32 tier);
int window_map(struct espace *sp, u32 tier, u32 frame);
void window_forget(struct etier *t, u32 tier, u32 chunk);

/* embed_space.c */
int embed_kv_create(struct hawk *h, struct hawk_space_create *c, struct hawk_kv **kv);
int embed_kv_attach(struct hawk *h, const struct hawk_space_attach *a, struct hawk_kv **kv);
int embed_kv_set(struct hawk *h, const struct hawk_space_set *s);
int embed_kv_destroy(struct hawk *h, const struct hawk_space_destroy *d);
int embed_kv_fd(struct hawk_kv *kv);
void embed_kv_close(struct hawk_kv *kv);
int embed_kv_info(struct hawk_kv *kv, struct hawk_space_info *info);
int embed_kv_stats(struct hawk_kv *kv, struct hawk_stats *st);
struct espace *espace_next(struct embed *e, struct espace *sp);
int espace_unname(struct embed *e, const u8 *name, bool forget);
bool espace_grew(struct espace *sp, int ret);

/* estats.c */
void estats_batch(struct espace *sp, unsigned int op, const struct hawk_batch *b, u64 start);
void estats_gather(struct espace *sp, const struct hawk_gather_set *set, u64 start);
int embed_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page);

/* embed_share.c */
void share_note(struct espace *sp);
void share_all(struct embed *e);
u32 share_count(struct espace *sp);
bool share_now(struct espace *sp, u32 seen);
int share_repay(struct espace *sp);
int embed_tier_empty(struct embed *e, u32 tier);
int embed_tier_dropped(struct embed *e, u32 tier);
int embed_tier_reopen(struct embed *e, u32 tier);

/* ehealth.c */
void flash_failed(struct etier *t, bool write, s32 err);
void flash_works(struct etier *t, bool write, u64 bytes);
void flash_out(struct etier *t);
void flash_back(struct etier *t);
void flash_watch(struct embed *e);

/* epool.c */
int epool_check_none(int fd, const char *path);
int epool_open(struct etier *t, const char *path);
int epool_load(struct embed *e, u32 id, struct etier *t);
void epool_close(struct etier *t);
u64 epool_header_bytes(const struct etier *t);
bool epool_grant(struct espace *sp, const struct hawk_grant *g);
void epool_release(struct embed *e, u32 tier, u32 chunk);
void epool_sync(struct etier *t);
bool epool_torn(const struct etier *t);
void epool_commit(struct espace *sp);
void epool_end(struct espace *sp);
u64 epool_step(struct embed *e, u64 at, u64 now);

/* escan.c */
int epool_find(struct espace *sp);

/* pins.c */
int pins_add(struct ekv *kv, struct hawk_ref ref);
int pins_put(struct ekv *kv, u64 lid, const u8 *key, u32 hints, const u8 *parent, bool keep,
	     u64 now);
int pins_drop(struct ekv *kv, u64 lid, u64 vt);
int embed_pin_query(struct hawk_kv *kv, struct hawk_pin_query *q);
int pins_unshare(struct ekv *kv, u64 lid, u64 now, struct hawk_plan *plan, u64 *vt);
void pins_drop_all(struct ekv *kv);

/* lease.c */
struct elease *lease_new(struct ekv *kv, u32 max);
u64 lease_start(struct elease *l, u64 expires);
void lease_cancel(struct elease *l);
int embed_lease_end(struct hawk_kv *kv, uint64_t id);
void leases_drop(struct ekv *kv);
u64 leases_expire(struct embed *e, u64 now);

/* embed_seq.c */
int embed_seq(struct hawk_kv *kv, struct hawk_seq_batch *b);
int embed_seq_map(struct hawk_kv *kv, struct hawk_seq_map *map);
void seqs_reap(struct espace *sp, u32 *frames);
void seqs_waiting(struct espace *sp);
void seqs_end(struct ekv *kv);

/* embed_compact.c */
void tidy_all(struct embed *e);

/* embed_elastic.c */
int embed_elastic(struct hawk_kv *kv, struct hawk_elastic *arg);
u64 elastic_all(struct embed *e, u64 now);

/* embed_pace.c */
int epace_tune(struct embed *e, const struct hawk_url *u);
bool epace_in_time(struct espace *sp, struct hawk_pace_load *load, u32 flags, u64 deadline);
int embed_estimate(struct hawk_kv *kv, struct hawk_estimate *est);
int embed_phase(struct hawk_kv *kv, struct hawk_phase *ph);
void promote_note(struct espace *sp);
u64 promote_all(struct embed *e);

/* embed.c */
int ethread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

/* wait.c */
u64 now_ns(void);
int wait_init(struct embed *e);
void wait_fini(struct embed *e);
void planner_enter(struct embed *e);
void planner_leave(struct embed *e);
u32 moved_count(struct embed *e);
void moved_note(struct embed *e);
int moved_wait(struct embed *e, u32 seen, u64 deadline);
void drain_begin(struct embed *e);
void drain_end(struct embed *e);
bool drain_try(struct embed *e, bool keeper);
void drain_leave(struct embed *e);

/* eio.c, move.c */
struct eio;

/* Where the bytes of a transfer are in memory and on flash. */
struct eio_place {
	struct etier *t;
	u8 *mem;
	u64 off;
	u32 bytes;
	bool write;
};

/*
 * Transfers of one kind: where one is, and what its end means (@res: 0 or -errno).
 * @over: NULL: its caller waits until all have ended; else he may leave before that, and it
 * is called, by whatever thread, when nothing refers to the kind any more.  @lent: the
 * memory is not the kind's own: what comes when he has left ends as canceled.
 */
struct eio_kind {
	void (*place)(const struct eio_kind *k, void *what, struct eio_place *p);
	void (*done)(const struct eio_kind *k, void *what, s32 res);
	void (*over)(const struct eio_kind *k);
	struct espace *sp;
	bool lent;
};

struct eio *eio_take(struct embed *e);
void eio_queue(struct eio *io, const struct eio_kind *kind, void *what);
void eio_start(struct eio *io);
bool eio_wait(struct eio *io, const struct eio_kind *kind, u64 ns);
int eio_finish(struct eio *io, const struct eio_kind *kind, u64 deadline);
void eio_free_all(struct embed *e);
int plan_run(struct espace *sp, struct hawk_plan *plan, u64 deadline);
int plan_run_batch(struct espace *sp, struct hawk_plan *plan, const struct hawk_batch *b);
void plan_run_idle(struct espace *sp, struct hawk_plan *plan);
void ework_stop(struct ework *w);
void estray_wait(struct espace *sp);
void estray_stop(struct embed *e);
void plan_cancel(struct embed *e, struct hawk_plan *plan);

/* run.c: a batch under way */

/**
 * struct run - what the verbs that move blocks have in common
 * @kv: handle
 * @b: batch
 * @it: its items
 * @plan: moves to be done next
 * @seen: moved_count() before the present pass
 * @claims: share_count() before it
 * @item_done: told each item when its status is final, or NULL
 * @stop: atomic: nobody wants the rest any more; or NULL
 */
struct run {
	struct ekv *kv;
	struct hawk_batch *b;
	struct hawk_item *it;
	struct hawk_plan plan;
	u32 seen;
	u32 claims;
	void (*item_done)(struct run *r, u32 i);
	const bool *stop;
	struct hawk_move move[EMBED_PLAN_MAX];
};

#define RUN_PENDING	1	/* item status while it is not final */

void run_start(struct run *r, struct ekv *kv, struct hawk_batch *b);
void run_end(struct run *r);
void run_pass(struct run *r);
int run_step(struct run *r);
bool run_more(struct run *r);
int run_pin(struct ekv *kv, u64 vt, struct hawk_ref ref);
int item_check(const struct hawk_item *it, u32 flags);
void batch_finish(struct hawk_batch *b);

/* egather.c */
struct egather;
int embed_gather(struct hawk_kv *kv, struct hawk_gather *arg);
void egather_run(struct egather *g, const bool *stop);
void egather_end(struct egather *g);
void egather_abandon(struct egather *g);
u64 egather_user_data(const struct egather *g);

/* verbs.c, get.c, async.c, keeper.c, ering.c */
int embed_batch(struct hawk_kv *kv, unsigned int op, struct hawk_batch *b);
int embed_get(struct ekv *kv, unsigned int op, struct hawk_batch *b,
	      void (*item_done)(struct run *r, u32 i), const bool *stop);
int async_submit(struct ekv *kv, unsigned int op, struct hawk_batch *b);
int async_gather(struct ekv *kv, struct egather *g);
int embed_cancel(struct hawk_kv *kv, struct hawk_cancel *c);
void async_drain(struct ekv *kv);
int movers_start(struct embed *e);
void movers_stop(struct embed *e);
int keeper_start(struct embed *e);
void keeper_stop(struct embed *e);
void keeper_kick(struct embed *e, bool write);
void keeper_kick_share(struct embed *e);
void keeper_kick_tidy(struct embed *e);
void keeper_kick_commit(struct embed *e);
void keeper_due(void *e);
int embed_ring_open(struct hawk_kv *kv, unsigned int entries, int efd);
void embed_ring_close(struct ekv *kv);
int ering_reserve(struct ekv *kv, u32 n);
void ering_unreserve(struct ekv *kv, u32 n);
void ering_post(struct ekv *kv, const struct hawk_cqe *cqe);

/* edraft.c */
int embed_draft_open(struct hawk_kv *kv, struct hawk_draft_open *o, void **mem);
void embed_draft_close(struct hawk_kv *kv, const struct hawk_draft_open *o, void *mem);

#endif /* HAWK_EMBED_H */
