// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * seqrun.c - runs, and what becomes of LIDs that nobody sees any more
 *
 * Whoever takes tokens out of sight notes their rows at the run (hawk_run_dirty()), no
 * matter who else may see them.  hawk_seq_reap() finds out: what no node of the run
 * covers is dead, and cannot come to life again, because a row is only ever shown by
 * one who shows it already or gets it handed out.  So LIDs are freed without the lock.
 * Those of pinned or leased blocks wait.
 *
 *	FREE --take--> OPEN --last node gone--> ENDING --no range, no LID--> FREE
 *
 * LIDs can be put under an OPEN run only; hawk_run_join() sees to it that none is left
 * behind in a FREE one.
 *
 * Rows are handed out in order.  When all that was noted has been freed, the run is cut
 * behind its last live row and goes on from there.
 */
#include "seqpriv.h"

#define REAP_VISITS	256	/* segments passed before the lock is let go */
#define WAKE_RUNS	256	/* runs looked at again before that */

/* ---- ranges ---- */

static void range_del(struct hawk_run *r, u32 i)
{
	r->range[i] = r->range[--r->n];
}

static u32 range_gap(const struct hawk_range *a, const struct hawk_range *b)
{
	if (a->end < b->row)
		return b->row - a->end;
	return b->end < a->row ? a->row - b->end : 0;
}

static void range_join(struct hawk_range *a, const struct hawk_range *b)
{
	a->row = a->row < b->row ? a->row : b->row;
	a->end = a->end > b->end ? a->end : b->end;
}

/* The range of the kind of @with nearest to it, other than itself, or HAWK_NONE. */
static u32 range_nearest(const struct hawk_run *r, const struct hawk_range *with)
{
	u32 i, best = HAWK_NONE;

	for (i = 0; i < r->n; i++)
		if (&r->range[i] != with && r->range[i].busy == with->busy &&
		    (best == HAWK_NONE || range_gap(&r->range[i], with) <
					  range_gap(&r->range[best], with)))
			best = i;
	return best;
}

/*
 * Note rows.  When there is no room for one more range, two of a kind become one with
 * all that lies between: the look that follows passes over live rows.
 */
static void range_add(struct hawk_run *r, u32 row, u32 end, bool busy)
{
	struct hawk_range new = { .row = row, .end = end, .busy = busy };
	u32 i = range_nearest(r, &new);

	while (i != HAWK_NONE && (!range_gap(&r->range[i], &new))) {
		range_join(&new, &r->range[i]);
		range_del(r, i);
		i = range_nearest(r, &new);
	}
	if (r->n == HAWK_RUN_RANGES) {
		if (i != HAWK_NONE) {
			range_join(&r->range[i], &new);
			return;
		}
		i = range_nearest(r, &r->range[0]);	/* all are of the other kind */
		range_join(&r->range[0], &r->range[i]);
		range_del(r, i);
	}
	r->range[r->n++] = new;
}

/* ---- life of a run ---- */

/* An open run without rows that @handle gets its rows from, 0: nobody; there is one. */
struct hawk_run *hawk_run_take(struct hawk_space *s, u32 handle)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_run *r = &q->run[q->free_run];

	hawk_assert(q->free_run != HAWK_NONE);
	q->free_run = r->shown;
	r->shown = HAWK_NONE;
	r->seq = handle;
	r->top = 0;
	hawk_store(&r->base, HAWK_NONE);
	hawk_store(&r->end, 0);
	r->swept = false;
	return r;
}

/* LIDs may be put in the first @rows rows from now on. */
void hawk_run_give(struct hawk_space *s, struct hawk_run *r, u32 rows)
{
	hawk_assert_held(&s->seqs->lock);
	r->rows = rows;
	r->top = r->top > rows ? r->top : rows;
	hawk_store(&r->limit, rows);
}

/* Rows of these tokens may have lost their last viewer. */
void hawk_run_dirty(struct hawk_space *s, struct hawk_run *r, u32 tok, u32 len)
{
	u32 bt = s->block_tokens;

	range_add(r, tok / bt, (tok + len - 1) / bt + 1, false);
}

static void queue_del(struct hawk_seqs *q, struct hawk_run *r)
{
	if (r->queue == HAWK_RUN_IDLE)
		return;
	if (r->prev == HAWK_NONE)
		q->queue[r->queue] = r->next;
	else
		q->run[r->prev].next = r->next;
	if (r->next != HAWK_NONE)
		q->run[r->next].prev = r->prev;
	r->queue = HAWK_RUN_IDLE;
}

static void queue_add(struct hawk_seqs *q, struct hawk_run *r, u32 queue)
{
	r->queue = queue;
	r->prev = HAWK_NONE;
	r->next = q->queue[queue];
	if (r->next != HAWK_NONE)
		q->run[r->next].prev = r - q->run;
	q->queue[queue] = r - q->run;
}

/* Those that have waited: what was busy of them may not be any more. */
static u32 queue_again(const struct hawk_seqs *q)
{
	return HAWK_RUN_WAIT + HAWK_RUN_WAIT_TOO - q->wait;
}

static void requeue(struct hawk_seqs *q, struct hawk_run *r)
{
	u32 i, queue = r->n ? q->wait : HAWK_RUN_IDLE;

	for (i = 0; i < r->n; i++) {
		r->range[i].busy &= r->queue != queue_again(q);
		if (!r->range[i].busy)
			queue = HAWK_RUN_DEAD;
	}
	if (queue != r->queue) {
		queue_del(q, r);
		if (queue != HAWK_RUN_IDLE)
			queue_add(q, r, queue);
	}
	hawk_store(&q->waiting, q->reaping || q->queue[q->wait] != HAWK_NONE);
	hawk_store(&q->dead, q->queue[HAWK_RUN_DEAD] != HAWK_NONE ||
			     q->queue[queue_again(q)] != HAWK_NONE);
}

/* Nobody sees anything of the run: no more rows. */
static void run_close(struct hawk_space *s, struct hawk_run *r)
{
	struct hawk_seq *owner = r->seq ? hawk_seq_find(s, r->seq) : NULL;

	hawk_store(&r->limit, 0);
	r->seq = 0;
	if (owner)
		owner->run = HAWK_NONE;
}

/* Nothing is left to look at: cut the run, or end it. */
static void run_clean(struct hawk_space *s, struct hawk_run *r)
{
	struct hawk_seqs *q = s->seqs;
	u32 end = hawk_run_end(q, r);

	if (r->kept)
		return;
	if (end) {
		hawk_run_give(s, r, (end - 1) / q->block_tokens + 1);
	} else if (!hawk_cas64(&r->lids, 0, 0)) {	/* orders it, see hawk_run_join() */
		/* out of place, put there too late, or in flight */
		range_add(r, 0, r->top, r->swept);
		r->swept = true;
	} else {
		r->rows = 0;
		r->shown = q->free_run;
		q->free_run = r - q->run;
	}
}

/* To be called when a node has left the run, or a range was noted or done. */
void hawk_run_settle(struct hawk_space *s, struct hawk_run *r)
{
	hawk_assert_held(&s->seqs->lock);
	if (hawk_run_empty(r) && !r->kept && r->limit)
		run_close(s, r);
	if (!r->n && !r->reapers)
		run_clean(s, r);
	requeue(s->seqs, r);
}

/* One LID more or less exists. */
void hawk_run_count(struct hawk_space *s, u64 lid, int n)
{
	struct hawk_run *r = &s->seqs->run[hawk_lid_seq(lid) - s->run_base];
	u64 lids;

	do {
		lids = hawk_load(&r->lids);
	} while (!hawk_cas64(&r->lids, lids, lids + n));
	if (lids + n == 0)
		hawk_store(&s->seqs->again, 1);
}

/*
 * Somebody is about to put a block under a LID of a run.  It counts as one from before
 * the look at the limit on: so either it sees that the run ends, or the run sees it
 * and is not free before it has been looked at once more.
 */
bool hawk_run_join(struct hawk_space *s, u64 lid)
{
	const struct hawk_run *r = &s->seqs->run[hawk_lid_seq(lid) - s->run_base];

	hawk_run_count(s, lid, 1);
	if (hawk_lid_tok(lid) / s->block_tokens < hawk_load(&r->limit))
		return true;
	hawk_run_count(s, lid, -1);
	return false;
}

/* It is done, or was not. */
void hawk_run_part(struct hawk_space *s, u64 lid)
{
	const struct hawk_run *r = &s->seqs->run[hawk_lid_seq(lid) - s->run_base];

	hawk_run_count(s, lid, -1);
	if (!hawk_load(&r->limit))	/* it may be about to wait for this one */
		hawk_store(&s->seqs->again, 1);
}

/* ---- reaping ---- */

/* Dead rows of a run. */
struct stretch {
	struct hawk_run *run;
	u32 row;
	u32 end;
	u32 busy_row;		/* out: those that could not be freed */
	u32 busy_end;
};

static u32 row_lids(const struct hawk_space *s)
{
	return s->seqs->layers * s->seqs->heads;
}

/*
 * Go on from @row over rows that are shown, and from there to the next that is.
 * Return: false: too many segments, go on from @row later; true: @row is dead, or @end.
 */
static bool dead_rows(const struct hawk_seqs *q, const struct hawk_run *r, u32 *row, u32 *end)
{
	const struct hawk_node *n;
	u32 visits = 0;

	while (*row < *end && (n = hawk_run_rows_node(q, r, *row, *row + 1))) {
		if (visits++ == REAP_VISITS)
			return false;
		*row = hawk_seg_row_end(q, &n->seg);
	}
	while (*row < *end && (n = hawk_run_rows_node(q, r, *row, *end)))
		*end = n->seg.tok / q->block_tokens;
	return true;
}

/* Take dead rows out of the ranges of a run.  Return: false: none this time. */
static bool stretch_take(struct hawk_space *s, struct stretch *st, u32 rows)
{
	struct hawk_run *r = st->run;
	struct hawk_range *range;
	u32 i = 0;

	if (!hawk_load(&r->lids))
		r->n = 0;
	while (i < r->n && r->range[i].busy)
		i++;
	if (i == r->n)
		return false;
	range = &r->range[i];
	st->row = range->row;
	st->end = range->end;
	if (!dead_rows(s->seqs, r, &st->row, &st->end) || st->row >= st->end)
		st->end = st->row;
	else if ((u64)(st->end - st->row) * row_lids(s) <= s->max_maps &&
		 st->end - st->row > rows)
		st->end = st->row + rows;
	range->row = st->end;
	if (range->row >= range->end)
		range_del(r, i);
	return st->row < st->end;
}

static void lid_reap(struct hawk_space *s, struct stretch *st, u64 lid, u32 *freed)
{
	u32 row = hawk_lid_tok(lid) / s->block_tokens;
	bool ended = false;

	if (hawk_lid_free(s, lid, &ended) == -EBUSY) {
		st->busy_row = st->busy_row < row ? st->busy_row : row;
		st->busy_end = st->busy_end > row + 1 ? st->busy_end : row + 1;
	}
	*freed += ended;
}

/* More LIDs could be there than the space has: look at those that it has. */
static void reap_all_maps(struct hawk_space *s, struct stretch *st, u32 *freed)
{
	u32 run = s->run_base + hawk_run_nr(s, st->run), i, row;
	u64 lid;

	for (i = 0; i < s->max_maps && hawk_load(&st->run->lids); i++) {
		lid = hawk_load(&s->map[i].lid);
		row = hawk_lid_tok(lid) / s->block_tokens;
		if (hawk_lid_seq(lid) == run && row >= st->row && row < st->end)
			lid_reap(s, st, lid, freed);
		if (i % 4096 == 0)
			hawk_relax();
	}
}

static void stretch_free(struct hawk_space *s, struct stretch *st, u32 *freed)
{
	struct hawk_seqs *q = s->seqs;
	u64 run = s->run_base + hawk_run_nr(s, st->run);
	u32 row, layer, head;

	st->busy_row = HAWK_NONE;
	st->busy_end = 0;
	if ((u64)(st->end - st->row) * row_lids(s) > s->max_maps) {
		reap_all_maps(s, st, freed);
		return;
	}
	for (row = st->row; row < st->end && hawk_load(&st->run->lids); row++)
		for (layer = 0; layer < q->layers; layer++)
			for (head = 0; head < q->heads; head++)
				lid_reap(s, st, HAWK_LID(run, layer, q->head_first + head,
							 row * q->block_tokens), freed);
}

/*
 * Pins or leases have ended: all that wait now are looked at once more, some at a time.
 * Those that are still busy then wait in the other queue.
 */
static void wake_waiting(struct hawk_seqs *q)
{
	u32 i;

	if (q->queue[queue_again(q)] == HAWK_NONE && hawk_load(&q->again)) {
		hawk_store(&q->again, 0);
		q->wakes++;
		q->wait = queue_again(q);
	}
	for (i = 0; i < WAKE_RUNS && q->queue[queue_again(q)] != HAWK_NONE; i++)
		requeue(q, &q->run[q->queue[queue_again(q)]]);
}

/* May a run become free by reaping alone, also by what others do of it just now? */
bool hawk_runs_due(const struct hawk_space *s)
{
	const struct hawk_seqs *q = s->seqs;

	hawk_assert_held(&q->lock);
	/* single loads: one wide one would be a race with who sets its neighbour @again */
	return hawk_load(&q->dead) || hawk_load(&q->reaping) ||
	       (q->queue[q->wait] != HAWK_NONE && hawk_load(&q->again));
}

bool hawk_seq_dead(const struct hawk_space *s)
{
	return s->seqs && hawk_load(&s->seqs->dead);
}

bool hawk_seq_reaping(const struct hawk_space *s)
{
	return s->seqs && hawk_load(&s->seqs->reaping);
}

bool hawk_seq_due(const struct hawk_space *s)
{
	const struct hawk_seqs *q = s->seqs;

	return q && (hawk_load(&q->dead) || (hawk_load(&q->waiting) && hawk_load(&q->again)));
}

bool hawk_seq_reap(struct hawk_space *s, u32 budget, u32 *freed)
{
	struct hawk_seqs *q = s->seqs;
	u32 rows, done = 0, lids, wakes;
	struct stretch st;

	if (!hawk_seq_due(s))
		return false;
	lids = row_lids(s);
	hawk_lock(&q->lock);
	if (q->queue[HAWK_RUN_DEAD] == HAWK_NONE)
		wake_waiting(q);
	while (q->queue[HAWK_RUN_DEAD] != HAWK_NONE && done < budget) {
		st.run = &q->run[q->queue[HAWK_RUN_DEAD]];
		rows = (budget - done) / lids ?: 1;
		if (!stretch_take(s, &st, rows)) {
			hawk_run_settle(s, st.run);
			done++;
			hawk_unlock(&q->lock);
			hawk_relax();
			hawk_lock(&q->lock);
			continue;
		}
		st.run->reapers++;
		hawk_store(&q->reaping, q->reaping + 1);
		wakes = q->wakes;
		requeue(q, st.run);
		hawk_unlock(&q->lock);
		stretch_free(s, &st, freed);
		hawk_lock(&q->lock);
		st.run->reapers--;
		hawk_store(&q->reaping, q->reaping - 1);
		/* what others woke meanwhile may have been for these: look again */
		if (st.busy_end)
			range_add(st.run, st.busy_row, st.busy_end, wakes == q->wakes);
		st.run->swept &= wakes == q->wakes;
		hawk_run_settle(s, st.run);
		done = (u64)done + (u64)(st.end - st.row) * lids < budget ?
		       done + (st.end - st.row) * lids : budget;
	}
	hawk_unlock(&q->lock);
	return hawk_seq_due(s);
}
