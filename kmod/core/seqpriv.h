/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * seqpriv.h - sequences: what the files of the engine that have them share
 *
 *	sequence  ->  list of segments  ->  runs
 *
 * A sequence shows a list.  FORK lets a second sequence show the same list, so it costs
 * nothing; a shared list is copied when one of them changes.  Hidden tokens lie behind
 * the visible ones in the same list, which is not shared then.
 *
 * A run is one LID sequence number, from the top of the range.  Its rows (the blocks of
 * all layers and head groups for block_tokens tokens) are handed out from 0 on.  Each
 * segment of any list is in a tree of its run (seqtree.c): so what a row has to do with
 * anybody can be found out without asking every sequence.
 *
 * All of it is guarded by hawk_seqs.lock, except what is told otherwise.
 */
#ifndef HAWK_CORE_SEQPRIV_H
#define HAWK_CORE_SEQPRIV_H

#include "elastic.h"
#include "priv.h"
#include "seq.h"

#define HAWK_RUN_RANGES		8	/* stretches of rows to be looked at */
#define HAWK_OWNER_CHAINS	256	/* a power of two */

struct hawk_node {
	struct hawk_seg seg;
	u32 list;
	u32 prev;		/* in the list, by history */
	u32 next;		/* likewise; links free nodes */
	/* tree of the run */
	u32 up;
	u32 left;
	u32 right;
	u32 end;		/* last token and one, the greatest of all below */
	bool held;		/* hawk_list.hold; which tree */
};

/*
 * @hold is a node that is in a tree of its run but not in the list: tokens whose
 * block is being copied by the client (cow_* of APPEND), kept until the next operation
 * on the sequence.
 */
struct hawk_list {
	u32 refs;		/* sequences that show it; 0: free */
	u32 len;		/* history, hidden tokens not counted */
	u32 hidden;
	u32 n;			/* nodes */
	u32 head;		/* links free lists */
	u32 tail;
	u32 hold;		/* or HAWK_NONE; its @first is that of the new tokens */
	u32 held_run;		/* where the held tokens are said to lie now */
	u32 held_tok;		/* likewise, first of the row */
	u32 gen;		/* changes with everything that it shows */
	u32 shape;		/* changes with everything but appends */
};

/*
 * A handle is 16 bits index, 16 bits generation, the latter never 0 or 0xffff.  @draft is
 * memory that a client writes: it is read once for each use and believed as a number only.
 */
struct hawk_seq {
	u64 owner;
	const __u64 *draft;	/* head of its draft ring, or NULL */
	u64 drafted;		/* of it, tokens that have been looked at; never goes back */
	u32 handle;
	u32 list;		/* HAWK_NONE: free */
	u32 run;		/* where its new rows come from, or HAWK_NONE */
	u32 prev;		/* chain of its owner */
	u32 next;		/* likewise; links free sequences */
};

enum hawk_run_queue {
	HAWK_RUN_IDLE,		/* no range */
	HAWK_RUN_DEAD,		/* has ranges to look at */
	HAWK_RUN_WAIT,		/* only ranges that were busy; two queues, see hawk_seqs.wait */
	HAWK_RUN_WAIT_TOO,
	HAWK_RUN_QUEUES,
};

/* Rows that may have lost their last viewer.  Ranges may overlap and contain live rows. */
struct hawk_range {
	u32 row;
	u32 end;
	bool busy;		/* pinned, leased or being read when looked at last */
};

/*
 * A run is free (rows 0), open (limit == rows) or, without a segment, ending (limit 0):
 * then what is left of its LIDs goes, and nothing may be put there any more.
 */
struct hawk_run {
	u64 lids;		/* LIDs that exist or are being put; atomic, no lock */
	u32 limit;		/* rows that LIDs may be put in; read without the lock */
	u32 rows;		/* handed out */
	u32 top;		/* the most that @rows has been */
	u32 base;		/* of its owner's history, token 0, HAWK_NONE: unknown; no lock */
	u32 end;		/* where what its owner shows ends, 0: unknown; no lock */
	u32 shown;		/* tree of nodes of lists; links free runs */
	u32 held;		/* tree of nodes that are held */
	u32 seq;		/* handle of the sequence that gets rows here, 0: none */
	u32 reapers;		/* threads that free LIDs of it now */
	u32 prev;		/* queue */
	u32 next;
	u8 queue;		/* enum hawk_run_queue */
	bool kept;		/* compaction fills it */
	bool swept;		/* its end: looked at once for LIDs out of place */
	u8 n;
	struct hawk_range range[HAWK_RUN_RANGES];
};

struct hawk_seqs {
	struct hawk_lock lock;
	u32 max;		/* sequences, also lists; runs: twice as many */
	u32 nnodes;
	u32 layers;
	u32 heads;		/* head groups that it keeps, from @head_first on */
	u32 head_first;
	u32 block_tokens;
	u32 row_max;		/* rows of a run */
	bool shift;
	u32 gen;		/* last one given to a list */
	u32 free_seq;
	u32 free_list;
	u32 free_node;
	u32 nfree;		/* nodes */
	u32 free_run;
	u32 queue[HAWK_RUN_QUEUES];
	u32 wait;		/* queue of those that wait; the other: to be looked at again */
	u32 reaping;		/* threads that free LIDs now */
	u8 dead;		/* there are ranges to look at; read without the lock */
	u8 waiting;		/* a row is or may become busy; read without the lock */
	u8 again;		/* a pin, lease or read has ended since; no lock */
	u32 wakes;		/* times that those that wait were looked at once more */
	struct hawk_elastic_state *elastic;
	u32 pick;		/* where the search for compaction goes on */
	struct hawk_seq *seq;
	struct hawk_list *list;
	struct hawk_node *node;
	struct hawk_run *run;
	u32 owner[HAWK_OWNER_CHAINS];
};

static inline u32 hawk_run_nr(const struct hawk_space *s, const struct hawk_run *r)
{
	return r - s->seqs->run;
}

static inline struct hawk_run *hawk_node_run(struct hawk_space *s, const struct hawk_node *n)
{
	return &s->seqs->run[n->seg.run - s->run_base];
}

/* The sequence of a handle, NULL: there is none. */
static inline struct hawk_seq *hawk_seq_of(const struct hawk_space *s, u32 handle)
{
	const struct hawk_seqs *q = s->seqs;
	u32 i = handle & 0xffff;
	struct hawk_seq *sq;

	if (i >= q->max)
		return NULL;
	sq = &q->seq[hawk_nospec(i, q->max)];
	return sq->handle == handle && sq->list != HAWK_NONE ? sq : NULL;
}

static inline bool hawk_run_empty(const struct hawk_run *r)
{
	return r->shown == HAWK_NONE && r->held == HAWK_NONE;
}

/* Tests bound how many nodes of trees are looked at with the lock held. */
#ifdef HAWK_COUNT_EVENTS
extern u64 hawk_visit_count;
#define hawk_visit_counted(q)	(hawk_visit_count++)
#else
#define hawk_visit_counted(q)	do { } while (0)
#endif

static inline u32 hawk_seg_end(const struct hawk_seg *g)
{
	return g->first + g->len;
}

/* Rows of a segment: from row @tok / block_tokens up to, not including, this one. */
static inline u32 hawk_seg_row_end(const struct hawk_seqs *q, const struct hawk_seg *g)
{
	return (g->tok + g->len - 1) / q->block_tokens + 1;
}

/* seqlist.c */
struct hawk_list *hawk_list_new(struct hawk_space *s);
struct hawk_list *hawk_list_copy(struct hawk_space *s, const struct hawk_list *from, u32 end);
void hawk_list_put(struct hawk_space *s, struct hawk_list *l);
void hawk_list_cut(struct hawk_space *s, struct hawk_list *l, u32 start, u32 end);
void hawk_list_add(struct hawk_space *s, struct hawk_list *l, const struct hawk_seg *seg);
void hawk_list_merge(struct hawk_space *s, struct hawk_list *l, u32 start, u32 end);
void hawk_list_unhold(struct hawk_space *s, struct hawk_list *l);
u32 hawk_list_count(const struct hawk_space *s, const struct hawk_list *l, u32 start, u32 end);
bool hawk_list_joins(const struct hawk_space *s, const struct hawk_list *l,
		     const struct hawk_seg *seg);
struct hawk_node *hawk_list_split(struct hawk_space *s, struct hawk_node *n, u32 at);
void hawk_list_hold(struct hawk_space *s, struct hawk_list *l, const struct hawk_seg *seg);
bool hawk_seg_clip(const struct hawk_seg *g, u32 start, u32 end, struct hawk_seg *out);
void hawk_node_move(struct hawk_space *s, struct hawk_node *n, u32 run, u32 tok);

/* seqtree.c */
void hawk_tree_add(struct hawk_space *s, struct hawk_node *n);
void hawk_tree_del(struct hawk_space *s, struct hawk_node *n);
void hawk_tree_refit(struct hawk_space *s, const struct hawk_node *n);
struct hawk_node *hawk_tree_first(const struct hawk_seqs *q, u32 nr, u32 from, u32 to);
struct hawk_node *hawk_tree_next(const struct hawk_seqs *q, const struct hawk_node *n,
				 u32 from, u32 to);
struct hawk_node *hawk_run_rows_node(const struct hawk_seqs *q, const struct hawk_run *r,
				     u32 row, u32 end);
u32 hawk_run_end(const struct hawk_seqs *q, const struct hawk_run *r);
bool hawk_tree_ok(const struct hawk_space *s, const struct hawk_node *n);

/* seqrun.c */
struct hawk_run *hawk_run_take(struct hawk_space *s, u32 handle);
void hawk_run_give(struct hawk_space *s, struct hawk_run *r, u32 rows);
void hawk_run_dirty(struct hawk_space *s, struct hawk_run *r, u32 tok, u32 len);
void hawk_run_settle(struct hawk_space *s, struct hawk_run *r);
bool hawk_runs_due(const struct hawk_space *s);

/* alloc.c */
int hawk_lid_free(struct hawk_space *s, u64 lid, bool *ended);

/* seqappend.c */
int hawk_seq_extend(struct hawk_space *s, struct hawk_seq *q, struct hawk_seq_op *op);
void hawk_list_take_back(struct hawk_space *s, struct hawk_list *l, u32 len);

/* seq.c */
struct hawk_seq *hawk_seq_find(struct hawk_space *s, u32 handle);
void hawk_list_advance(struct hawk_space *s, struct hawk_list *l, u32 len);
bool hawk_nodes_enough(const struct hawk_space *s, const struct hawk_list *l, u32 more);
struct hawk_list *hawk_seq_own(struct hawk_space *s, struct hawk_seq *q);
int hawk_list_map(struct hawk_space *s, const struct hawk_list *l, struct hawk_seq_map *map,
		  struct hawk_seg *segs);
void hawk_list_changed(struct hawk_space *s, struct hawk_list *l, bool shape);

/* draft.c */
void hawk_seq_fold(struct hawk_space *s, u32 handle);

/* seqcheck.c */
int hawk_seqs_check(struct hawk_space *s, const char **why);

/* ---- elastic residency (elastic.c) ---- */

#define HAWK_AGE_BINS	64	/* of ages: two for each power of two from 2^20 ns on */

/*
 * @p, @alpha and how it changes are guarded by hawk_seqs.lock; the rest is the one
 * caller's of hawk_elastic_step(), which lets others read the last three.
 */
struct hawk_elastic_state {
	struct hawk_elastic_params p;
	struct hawk_elastic_params now;	/* of the walk: @p when it began with the sequence */
	u32 share;		/* likewise @alpha */
	u32 alpha;		/* in force; 16 bits behind the point, like all shares */
	u32 target;		/* what the formula said last */
	u32 step;		/* most that alpha changes at a time */
	u32 same;		/* changes in the same direction, one after the other */
	s8 dir;			/* of the last change */
	u8 cycle;		/* all sequences looked at, modulo 3 */
	bool act;		/* second pass over a sequence */
	bool walking;		/* @handle is being looked at */
	u32 seq;		/* index of the sequence, or where to go on */
	u32 handle;
	u32 tokens;		/* it shows */
	u32 at;			/* of these, that have been passed */
	/* first pass: rows, by a sample of one block each */
	u32 base;		/* of sinks and window */
	u32 resident;		/* others, in a host tier */
	u32 flash;		/* others, on flash only */
	u32 age[HAWK_AGE_BINS];	/* of those resident */
	/* second pass */
	u64 room;		/* blocks that fit into free frames, some left for others */
	u64 evict;		/* blocks to evict */
	u64 reload;		/* blocks to reload */
	u32 bin;		/* of the youngest that are evicted */
	u32 skip;		/* rows on flash to pass over, before those to reload */
	u64 evicted;
	u64 reloaded;
	u64 cycles;
};

void hawk_elastic_init(struct hawk_elastic_state *el);
void hawk_elastic_settle(struct hawk_elastic_state *el, u32 target);

#endif /* HAWK_CORE_SEQPRIV_H */
