// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqcheck.c - every invariant of the sequences of a space, verified (see check.c)
 *
 * That each LID of a run is under a row which somebody shows, or which is noted, is the
 * clients' to keep: one that puts a block where its sequence has just been freed wastes
 * a block.  Tests verify it (tests/unit/core_seq_host.c).
 */
#include "seqpriv.h"

#define FAIL(text)				\
	do {					\
		*why = (text);			\
		return -EUCLEAN;		\
	} while (0)

static int check_seqs(struct hawk_seqs *q, const char **why)
{
	u32 i, nr, n = 0, owned = 0, chained = 0, refs = 0;
	const struct hawk_seq *sq;

	for (i = 0; i < q->max; i++) {
		sq = &q->seq[i];
		if ((sq->handle & 0xffff) != i || !(sq->handle >> 16) ||
		    sq->handle >> 16 == 0xffff)
			FAIL("handle of a sequence broken");
		if (sq->list == HAWK_NONE)
			continue;
		n++;
		refs++;
		owned += !!sq->owner;
		if (sq->list >= q->max || !q->list[sq->list].refs)
			FAIL("sequence without a list");
		if (sq->run != HAWK_NONE && q->run[sq->run].seq != sq->handle)
			FAIL("sequence's run does not know it");
	}
	for (i = 0; i < q->max; i++)
		refs -= q->list[i].refs;
	if (refs)
		FAIL("sequences of lists miscounted");
	for (nr = q->free_seq; nr != HAWK_NONE; nr = q->seq[nr].next)
		if (q->seq[nr].list != HAWK_NONE || ++n > q->max)
			FAIL("free sequences broken");
	if (n != q->max)
		FAIL("sequences lost");
	for (i = 0; i < HAWK_OWNER_CHAINS; i++)
		for (nr = q->owner[i]; nr != HAWK_NONE; nr = q->seq[nr].next)
			if (q->seq[nr].list == HAWK_NONE || !q->seq[nr].owner ||
			    ++chained > q->max)
				FAIL("owner's sequences broken");
	if (chained != owned)
		FAIL("owner's sequences miscounted");
	return 0;
}

static int check_node(struct hawk_space *s, const struct hawk_node *n, u32 list,
		      const char **why)
{
	struct hawk_seqs *q = s->seqs;
	const struct hawk_seg *g = &n->seg;
	s64 at = (s64)g->pos - g->shift;

	if (n->list != list)
		FAIL("segment of another list");
	if (g->run < s->run_base || g->run > HAWK_LID_SEQ_MAX)
		FAIL("segment of no run");
	if (!g->len || ((u64)g->tok + g->len - 1) / q->block_tokens >= hawk_node_run(s, n)->limit)
		FAIL("segment outside the rows of its run");
	if (at < 0 || at + g->len > 1ll << 31)
		FAIL("position out of range");
	return 0;
}

static int check_list(struct hawk_space *s, u32 nr, u32 *used, const char **why)
{
	struct hawk_seqs *q = s->seqs;
	const struct hawk_list *l = &q->list[nr];
	u32 i, n = 0, prev = HAWK_NONE;
	const struct hawk_node *node;
	u64 at = 0;
	int ret;

	if (l->refs > 1 && (l->hidden || l->hold != HAWK_NONE))
		FAIL("hidden or held tokens are shared");
	for (i = l->head; i != HAWK_NONE; prev = i, i = node->next) {
		node = &q->node[i];
		if (++n > q->nnodes || node->prev != prev)
			FAIL("list of segments broken");
		ret = check_node(s, node, nr, why);
		if (ret)
			return ret;
		if (node->seg.first < at)
			FAIL("segments overlap");
		at = (u64)node->seg.first + node->seg.len;
	}
	if (n != l->n || n > HAWK_SEQ_SEGS_MAX || l->tail != prev)
		FAIL("segments miscounted");
	if (at > (u64)l->len + l->hidden)
		FAIL("segment behind the end");
	*used += n;
	if (l->hold == HAWK_NONE)
		return 0;
	++*used;
	return check_node(s, &q->node[l->hold], nr, why);
}

/* A run is where it belongs by what it holds. */
static int check_run(struct hawk_space *s, const struct hawk_run *r, const char **why)
{
	bool dead = false;
	u32 i;

	for (i = 0; i < r->n; i++) {
		dead |= !r->range[i].busy;
		if (r->range[i].row >= r->range[i].end)
			FAIL("empty range");
	}
	if (r->n && !dead ? r->queue < HAWK_RUN_WAIT :
	    r->queue != (dead ? HAWK_RUN_DEAD : HAWK_RUN_IDLE))
		FAIL("run in the wrong queue");
	if (r->reapers)
		FAIL("run is being reaped");
	if (r->seq && !hawk_seq_of(s, r->seq))
		FAIL("run of no sequence");
	if (r->limit != (!hawk_run_empty(r) || r->kept ? r->rows : 0))
		FAIL("run open without a segment, or closed with one");
	if (hawk_run_empty(r) && !r->kept && !r->n)
		FAIL("run should be free");
	return 0;
}

static int check_tree(struct hawk_space *s, u32 run, u32 root, bool held, u32 *found,
		      const char **why)
{
	const struct hawk_seqs *q = s->seqs;
	const struct hawk_node *n;
	u32 left = q->nnodes;

	if (root != HAWK_NONE && q->node[root].up != HAWK_NONE)
		FAIL("tree of a run broken");
	for (n = hawk_tree_first(q, root, 0, HAWK_NONE); n;
	     n = hawk_tree_next(q, n, 0, HAWK_NONE), ++*found)
		if (!left-- || n->seg.run != s->run_base + run || n->held != held ||
		    !hawk_tree_ok(s, n))
			FAIL("tree of a run broken");
	return 0;
}

static int check_runs(struct hawk_space *s, u32 used, const char **why)
{
	struct hawk_seqs *q = s->seqs;
	u32 i, nr, n = 0, found = 0;
	const struct hawk_run *r;
	u64 lids = 0;
	int ret;

	for (nr = q->free_run; nr != HAWK_NONE; nr = q->run[nr].shown)
		if (q->run[nr].rows || q->run[nr].limit || q->run[nr].lids || q->run[nr].n ||
		    ++n > 2 * q->max)
			FAIL("free runs broken");
	for (i = 0; i < 2 * q->max; i++) {
		r = &q->run[i];
		if (!r->rows)
			continue;
		n++;
		lids += r->lids;
		ret = check_run(s, r, why);
		if (ret)
			return ret;
		ret = check_tree(s, i, r->shown, false, &found, why) ?:
		      check_tree(s, i, r->held, true, &found, why);
		if (ret)
			return ret;
	}
	if (n != 2 * q->max)
		FAIL("runs lost");
	if (found != used)
		FAIL("segment in no tree of its run");
	for (i = 0; i < s->max_blocks; i++) {
		if (s->block[i].state == HAWK_BLOCK_FREE)
			continue;
		for (nr = s->block[i].maps; nr != HAWK_NONE; nr = s->map[nr].alias)
			if (hawk_lid_is_run(s, s->map[nr].lid)) {
				if (!q->run[hawk_lid_seq(s->map[nr].lid) - s->run_base].lids)
					FAIL("LID of a run that has none");
				lids--;
			}
	}
	if (lids)
		FAIL("LIDs of runs miscounted");
	return 0;
}

int hawk_seqs_check(struct hawk_space *s, const char **why)
{
	struct hawk_seqs *q = s->seqs;
	u32 i, nr, used = 0, nfree = 0, lists = 0;
	int ret;

	if (!q)
		return 0;
	ret = check_seqs(q, why);
	for (i = 0; !ret && i < q->max; i++)
		if (q->list[i].refs) {
			lists++;
			ret = check_list(s, i, &used, why);
		}
	if (ret)
		return ret;
	for (nr = q->free_list; nr != HAWK_NONE; nr = q->list[nr].head)
		if (q->list[nr].refs || ++lists > q->max)
			FAIL("free lists broken");
	if (lists != q->max)
		FAIL("lists lost");
	for (nr = q->free_node; nr != HAWK_NONE; nr = q->node[nr].next)
		if (q->node[nr].list != HAWK_NONE || ++nfree > q->nnodes)
			FAIL("free segments broken");
	if (nfree != q->nfree || nfree + used != q->nnodes)
		FAIL("segments lost");
	return check_runs(s, used, why);
}
