/* SPDX-License-Identifier: MIT */
/*
 * sim.h - a simulated world around the engine, one thread, one source of chance
 *
 * A world has tiers whose bytes are tokens, spaces, clients that run short scripts on
 * them, and devices that carry out moves late, out of order and not always well.  One
 * event is one step of one of them: mostly one call of kmod/core/core.h.  What happens
 * next is drawn from the seed alone, so a seed is a run.
 */
#ifndef HAWK_SIM_H
#define HAWK_SIM_H

#include "../../kmod/core/gather.h"
#include "tally.h"

#define SIM_SPACES	4	/* at one time, at most */
#define SIM_CLIENTS	10
#define SIM_LIDS	40	/* LIDs in use per space */
#define SIM_KEYS	16
#define SIM_OBJS	(SIM_LIDS + 1)
#define SIM_HOLDS	4	/* pins, and leases, of a client */
#define SIM_MOVES	64	/* moves in flight */
#define SIM_PLAN	8	/* moves of a plan */
#define SIM_CHUNKS	8	/* chunks of a tier at most */
#define SIM_GRANTS	4	/* chunks on their way to spaces */
#define SIM_SEQS	8	/* sequences of a space */
#define SIM_TOKENS	80	/* of a sequence */
#define SIM_GATHERS	4	/* under way */
#define SIM_ROWS	12	/* of a gather */
#define SIM_RUN		4	/* blocks of a transfer at most */
#define SIM_ALIASES	256	/* LIDs known to name a copy of another's block */
#define SIM_TRACE	64	/* events remembered */

/*
 * Bytes: a chunk is SIM_CELLS cells, a block some of them.  Cell number k of a block
 * with tag T holds T + k, so that halves that do not belong together are seen.  A tag
 * is life of the space : 24 | serial : 32 | 0 : 8.
 */
#define SIM_GRAIN	(256u << 10)	/* bytes of two cells, the smallest block */
#define SIM_CELLS	(2 * (HAWK_CHUNK_BYTES / SIM_GRAIN))
#define SIM_TORN	1ull		/* what cells_read() says of a mixture */
#define SIM_TAG(life, serial)	((u64)(life) << 40 | (u64)(serial) << 8)
#define SIM_TAG_LIFE(tag)	((u32)((tag) >> 40))

struct sim_tier {
	bool present;
	u32 leaving;	/* steps since it began to be taken away; 0: it stays */
	u32 kind;
	u32 chunks;
	u64 trial_at;	/* failing: no write before that, ns */
	u64 cell[SIM_CHUNKS * SIM_CELLS];
	u32 had[SIM_CHUNKS];	/* life of the last space that wrote to the chunk */
};

/* A block as the model sees it. */
struct sim_obj {
	u64 tag;	/* its content; 0: not in use */
	u64 was;	/* content that a writer found in its private copy */
	u64 vt;		/* where it is while it is pinned */
	struct hawk_ref ref;
	u32 version;	/* differs whenever it is another block, or other content */
	u8 lids;
	u8 pins;	/* of clients */
	u8 copies;	/* moves that copy from or to it: each has a pin */
	u8 leases;
	u8 gathers;	/* that read it in memory: each has a pin */
	u8 reads;	/* gathers that read its copy on flash */
	bool filling;
	bool lost;	/* it could not be read back: nothing holds it any more */
	bool waived;	/* a forced drain may drop it though it is leased */
	bool told;	/* the engine told that it forgot it */
	int key;		/* number of its key, -1: none */
};

struct sim_token {
	s64 pos;
	bool visible;
};

struct sim_seq {
	u32 handle;	/* 0: there is none */
	u32 owner;
	u32 len;
	struct sim_token tok[SIM_TOKENS];
};

struct sim_seq_pin {
	bool held;
	struct hawk_ref ref;
	u64 vt;
	u64 tag;
};

struct sim_alias {
	u64 lid;
	u64 tag;
};

/* With sequences (p.seqs) it has nothing but these: id to obj are of no use then. */
struct sim_space {
	struct hawk_space *s;	/* NULL: not there */
	struct hawk_space_params p;
	u32 life;
	bool doomed;	/* its clients are gone, it ends when its moves have */
	bool newborn;	/* others have its minimum: it has no clients yet */
	u32 patience;	/* looks until it is given up */
	u32 nmoves;	/* in flight */
	u32 ngrants;	/* chunks on their way to it */
	u32 ngathers;	/* that have not ended */
	u32 nreads;	/* blocks on flash that these read */
	bool hungry;	/* a call said -ENOBUFS and it has not been grown since */
	u32 vain;	/* times that there was nothing to grow though it was asked for */
	u64 vanished;	/* blocks that the engine dropped */
	u64 id[SIM_LIDS];	/* the LIDs */
	int lid[SIM_LIDS];	/* index of its obj, -1: free */
	int key[SIM_KEYS];
	struct sim_obj obj[SIM_OBJS];
	struct sim_seq seq[SIM_SEQS];
	struct sim_seq_pin seq_pin[SIM_CLIENTS];
	u32 naliases;
	struct sim_alias alias[SIM_ALIASES];
};

/* A pin or a lease of a client. */
struct sim_hold {
	int obj;			/* -1: none */
	u32 version;
	struct hawk_ref ref;
	u64 deadline;		/* of a lease, ns */
};

struct sim_script;

struct sim_client {
	int space;		/* -1: none */
	u8 pc;			/* instruction of the script */
	u16 tries;		/* that the instruction was tried in vain */
	const struct sim_script *script;	/* NULL: takes the next one */
	u8 lid;
	u8 other;		/* second LID: fork */
	int key;			/* -1: none */
	struct hawk_vtlb_entry *entry;	/* optimistic reader: what it saw */
	u64 vt;
	u64 seen;
	u32 version;
	struct sim_hold pin[SIM_HOLDS];
	struct sim_hold lease[SIM_HOLDS];
	struct sim_gather *gather;	/* that it waits for, NULL: none */
};

/* A block of a gather, and its place in the buffer. */
struct sim_place {
	u32 version;	/* of the block when the gather was opened */
	u32 block;	/* its number */
	u64 tag;
	bool flash;
	bool lost;	/* its block could not be read back meanwhile, and may have ended */
	bool done;
	s32 status;	/* once done */
	u8 halves;	/* bit mask: copied */
	u64 half[2];	/* for the checksum */
	u64 cell[SIM_CELLS];
};

/* Places that are neighbours in their tier. */
struct sim_transfer {
	u32 at;
	u32 n;
	u32 again;		/* place that is read once more, HAWK_NONE: none yet */
	s32 fate;
	u64 not_before;		/* event: it is stuck until then */
};

/* A gather; its client may be gone. */
struct sim_gather {
	bool used;
	bool async;		/* its rows are compared at once */
	u8 space;
	u32 ntransfers;		/* not ended */
	struct sim_client *client;	/* NULL: nobody waits for it */
	struct hawk_gather_set set;
	u64 lid[SIM_ROWS];
	s32 want[SIM_ROWS];	/* status of the row, if it is decided at once */
	u32 version[SIM_ROWS];	/* of its block, 0: none */
	u32 remap[SIM_ROWS];
	s32 status[SIM_ROWS];
	struct hawk_gather_key key[SIM_ROWS];
	struct hawk_gather_block blk[SIM_ROWS];
	struct sim_place place[SIM_ROWS];
	struct sim_transfer transfer[SIM_ROWS];
};

/* A move in flight: bytes travel in two halves, each at a moment of its own. */
struct sim_move {
	struct hawk_move m;
	u64 not_before;		/* event: it is stuck until then */
	u32 serial;
	u8 space;
	u8 halves;		/* bit mask: copied */
	s32 fate;		/* what it will end with */
	u64 half[2];		/* what was read, for the checksum */
};

/* A chunk on its way to a space. */
struct sim_grant {
	struct hawk_grant g;
	u8 space;
};

/* A chunk that is being taken from a space. */
struct sim_drain {
	bool active;
	bool force;	/* it has to go, leases or not */
	u32 slot;
	u32 looks;
	u32 claim;	/* life of the space that gets it, 0: none */
};

/* How the world behaves for a while. */
struct sim_weather {
	u32 fail_permille;	/* moves that end badly */
	u32 stuck_permille;
	u32 sick_tier;		/* most moves of this one end badly, HAWK_NONE: of none */
	bool health;		/* the host tells how transfers end */
	u32 stalled_tier;	/* moves of this one do not end, as long as it lasts; likewise */
	u32 eager_permille;	/* halves that travel at once */
	u32 no_plan_permille;	/* calls that may not start I/O */
	u32 nomem_permille;	/* tables that cannot be allocated */
	u32 grow_fail_permille;	/* chunks without memory */
	u32 reclaim_permille;	/* chunks that the host wants back */
	u32 device;		/* weights of what happens next */
	u32 clean;
	u32 keep;
	u32 lease;	/* weight of clients that only take leases */
	u32 death;
	u32 world;
	u32 pressure;
};

struct sim_trace {
	u64 event;
	u64 vt;
	const char *what;
	s32 ret;
	int client;
	int space;
	int lid;
	int arg;
};

struct sim {
	u64 seed;
	u64 rng;
	u64 event;		/* the present one, from 1 */
	u64 now;		/* ns */
	u64 digest;
	u32 spaces;		/* in use of SIM_SPACES */
	u64 weather_until;
	struct sim_weather weather;
	u32 next_life;
	u32 next_serial;
	u32 next_version;
	u32 next_move;
	u32 nmoves;
	u32 ngrants;
	u32 ntransfers;		/* of all gathers */
	struct hawk_engine *e;
	struct sim_tier tier[HAWK_TIERS_MAX];
	struct sim_space space[SIM_SPACES];
	struct sim_client client[SIM_CLIENTS];
	struct sim_move move[SIM_MOVES];
	struct sim_grant grant[SIM_GRANTS];
	struct sim_gather gather[SIM_GATHERS];
	struct sim_drain drain[SIM_SPACES][HAWK_TIERS_MAX];
	struct hawk_plan plan;
	struct hawk_move plan_move[SIM_PLAN];
	u64 notes;
	struct sim_trace trace[SIM_TRACE];
	bool touched[SIM_SPACES];	/* by the present event */
};

extern struct sim sim;

/* ---- chance: splitmix64 ---- */

static inline u64 sim_rand(void)
{
	u64 x = sim.rng += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline u32 sim_below(u32 n)
{
	return (sim_rand() >> 32) * n >> 32;
}

static inline bool sim_chance(u32 permille)
{
	return sim_below(1000) < permille;
}

/* ---- run.c: events, and what goes wrong ---- */

/**
 * struct sim_run - one run of one seed
 * @seed: of all chance
 * @events: events to run
 * @check: events between two full checks, at least 1
 * @spaces: spaces at one time, 1..SIM_SPACES
 * @stop_at: end after this event, 0: none
 * @trace: print the last events at the end too
 */
struct sim_run {
	u64 seed;
	u64 events;
	u64 check;
	u32 spaces;
	u64 stop_at;
	bool trace;
};

/** sim_run() - run a seed; does not return if a check fails. Return: its digest */
u64 sim_run(const struct sim_run *run);

/** sim_fail() - say what broke, where, and how to see it again; ends the process */
void sim_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#define EXPECT(cond)							\
	do {								\
		if (unlikely(!(cond)))					\
			sim_fail(__FILE__, __LINE__, "%s", #cond);	\
	} while (0)

/** sim_note() - remember what the present event did; part of the digest */
void sim_note(const char *what, int client, int space, int lid, int arg, int ret, u64 vt);

/* ---- bytes.c: tiers, tokens, moves ---- */

static inline u32 cells_per_block(const struct sim_space *sp)
{
	return sp->p.block_bytes / (SIM_GRAIN / 2);
}

u64 *cells_at(struct sim_space *sp, u32 tier, u64 off);
/* Half number @h of a block travels. Return: its part of the checksum. */
u64 cells_half(struct sim_space *sp, u64 *dst, const u64 *src, u32 h);
u32 cells_sum(const u64 half[2]);
u64 *cells_of(struct sim_space *sp, u32 tier, u32 frame);
u64 cells_read(struct sim_space *sp, u64 vt);
bool cells_foreign(struct sim_space *sp, u64 vt);
void cells_write(struct sim_space *sp, u64 vt, u64 tag);

/* An empty plan, sometimes NULL: the caller wants no I/O. */
struct hawk_plan *plan_draw(void);
void plan_submit(struct hawk_plan *plan);
/* One step of a move, or of a transfer of a gather, drawn by lot. Return: whether there was one. */
bool device_step(void);

/* ---- model.c: what each space must say ---- */

/* Any token of the block names it. */
static inline u64 lid_of(const struct sim_space *sp, u32 lid)
{
	return sp->id[lid] + sim_below(sp->p.block_tokens);
}

/* Is it kept where it is? */
static inline bool obj_pinned(const struct sim_obj *o)
{
	return o->pins || o->copies || o->gathers;
}

bool obj_held(const struct sim_obj *o);
int obj_new(struct sim_space *sp, u32 lid, struct hawk_ref ref, u64 vt);
void obj_forget(struct sim_space *sp, int o);
void obj_vanished(struct sim_space *sp, int o);
int obj_of(struct sim_space *sp, struct hawk_ref ref);
int obj_of_version(struct sim_space *sp, u32 version);
void obj_unpinned(struct sim_space *sp, int o);
void model_reset(struct sim_space *sp);
/* Compare a LID, or a key, with the engine. Return: whether it has a block. */
bool model_look(struct sim_space *sp, u32 lid);
bool model_look_key(struct sim_space *sp, int k);
void model_check(struct sim_space *sp);
u32 model_spares(const struct sim_space *sp, u32 res);
/* The engine's account of what becomes of a block: see hawk_note_fn. */
void model_told(void *owner, const struct hawk_note *note);
/* A call that needed room said @ret; @plan is what it was given. */
void model_room(struct sim_space *sp, const struct hawk_plan *plan, int ret);

const u8 *sim_key(int k);

/* ---- client.c, ops.c: clients and the instructions of their scripts ---- */

enum verdict {
	OP_NEXT,	/* go on with the next instruction */
	OP_AGAIN,	/* try this one again later */
	OP_QUIT,	/* the rest makes no sense: let go of everything */
};

typedef enum verdict (*sim_op)(struct sim_client *c, struct sim_space *sp);

enum verdict op_alloc(struct sim_client *c, struct sim_space *sp);
enum verdict op_fill(struct sim_client *c, struct sim_space *sp);
enum verdict op_put(struct sim_client *c, struct sim_space *sp);
enum verdict op_put_keep(struct sim_client *c, struct sim_space *sp);
enum verdict op_find(struct sim_client *c, struct sim_space *sp);
enum verdict op_find_lease(struct sim_client *c, struct sim_space *sp);
enum verdict op_unlease(struct sim_client *c, struct sim_space *sp);
enum verdict op_reload(struct sim_client *c, struct sim_space *sp);
enum verdict op_pin(struct sim_client *c, struct sim_space *sp);
enum verdict op_repin(struct sim_client *c, struct sim_space *sp);
enum verdict op_unpin(struct sim_client *c, struct sim_space *sp);
enum verdict op_read(struct sim_client *c, struct sim_space *sp);
enum verdict op_fork(struct sim_client *c, struct sim_space *sp);
enum verdict op_unshare(struct sim_client *c, struct sim_space *sp);
enum verdict op_copied(struct sim_client *c, struct sim_space *sp);
enum verdict op_free(struct sim_client *c, struct sim_space *sp);
enum verdict op_free_other(struct sim_client *c, struct sim_space *sp);
enum verdict op_key_free(struct sim_client *c, struct sim_space *sp);
enum verdict op_vt_load(struct sim_client *c, struct sim_space *sp);
enum verdict op_vt_read(struct sim_client *c, struct sim_space *sp);
enum verdict op_vt_check(struct sim_client *c, struct sim_space *sp);
enum verdict op_stats(struct sim_client *c, struct sim_space *sp);
enum verdict op_gather(struct sim_client *c, struct sim_space *sp);
enum verdict op_gathered(struct sim_client *c, struct sim_space *sp);

void client_unpin(struct sim_client *c, struct sim_space *sp, struct sim_hold *h);
void client_unlease(struct sim_client *c, struct sim_space *sp, struct sim_hold *h);
/* A client lets go of all that it has; @died: and is replaced by another. */
void client_release(struct sim_client *c, bool died);
void client_step(struct sim_client *c);
/* End a lease whose time is over. Return: whether there was one. */
bool lease_expire(void);

/* ---- gathers.c: blocks are read where they are, in any tier ---- */

/* A step of transfer number @nr of all. Return: whether it can go on. */
bool gather_step(u32 nr);
/* The client does not wait any longer; transfers under way still have to end. */
void gather_leave(struct sim_client *c);
/* Blocks in memory, or on flash, that gathers of a space are reading: they have not ended. */
u32 gather_reads(const struct sim_space *sp, bool flash);
/* A block of sequences has ended because it could not be read back. */
void gather_lost(const struct sim_space *sp, u32 block);

/* ---- seqs.c: clients of sequences ---- */

void seq_step(struct sim_client *c, struct sim_space *sp);
void seq_died(struct sim_client *c, struct sim_space *sp);
void seq_check(struct sim_space *sp);
/* A LID for a gather: mostly one that a sequence shows. */
u64 seq_lid_draw(struct sim_space *sp);
/* Is @tag what was put under the LID, or what its block was copied from? */
bool seq_tag_fits(const struct sim_space *sp, u64 lid, u64 tag);
/* Does a LID of the block lie under a row that nobody sees any more? */
bool seq_block_waits(const struct sim_space *sp, u32 block);
/* What nobody sees any more goes. */
void seq_reap(struct sim_space *sp);

/* ---- world.c: spaces and tiers come and go ---- */

void world_begin(void);
void world_end(void);
void world_step(void);
void world_keep(void);
bool world_clean(void);
void world_check(void);
/* Its clients go, all at once; moves in flight still have to end. */
void space_doom(struct sim_space *sp);
/* The operator says that a drive works; HAWK_TIERS_MAX: all of them do. */
void world_mend(u32 tier);

/* Remove a tier, or see that it is refused. */
void tier_remove(u32 tier);

/* ---- pressure.c: spaces grow and shrink, tiers are taken away ---- */

void space_grow(struct sim_space *sp);
bool world_grown(void);
bool world_pressure(void);
void drain_cancel(struct sim_space *sp, u32 tier);
/* The space whose minimum is being taken back from others, or NULL. */
struct sim_space *newborn(void);
void tier_leave(u32 tier, bool leaving);

/* ---- port.c ---- */

extern u32 sim_nomem_permille;	/* tables that are refused */
u64 sim_tables(void);		/* tables that are allocated */

#endif /* HAWK_SIM_H */
