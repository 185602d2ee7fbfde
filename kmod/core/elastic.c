// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * elastic.c - how much of each sequence stays in host tiers
 *
 * With alpha, the share that memory has room for, a sequence of S tokens keeps
 * C = base + floor(alpha * (S - base)) of them, base being its first tokens (sinks) and
 * its last ones (window).  The rest goes to flash in the background, coldest first, and
 * comes back when there is room, latest first.  Memory is what the space owns or could
 * own now; what others have is not counted on, but a space that evicts for that is
 * starved (grow.c), so that it gets its share.
 *
 * Alpha.  The formula is taken of the memory in use, which alpha itself changes.  So:
 *
 *  - it changes at most once per cycle, a walk over all sequences, after which the
 *    last change has had its effect;
 *  - not at all while the formula is within a dead band of 1/32 around it;
 *  - by at most a step, which is halved when the direction changes, and doubled, up to
 *    1/16, after four changes in the same direction.
 *
 * Halving ends any swing: with memory in use that follows alpha k times as steeply, a
 * step d moves the distance to the formula by d (1 + k), which lies inside the band
 * sooner or later.
 *
 * Sinks and window.  Their blocks carry a hold, set when they are made (new tokens are
 * the window) and by the walk; one of three bits, so that it lasts through the next
 * cycle and then ends unless it was renewed: a block may be the window of one sequence
 * and the middle of another.  Who makes room passes over held blocks, as long as any
 * bucket has others among its coldest.
 *
 * So who appends more than memory holds before the walk comes round holds all of it.
 * Therefore sinks and window of the sequence that a run belongs to are known without the
 * walk, by where the run begins in its history and where it ends now (hawk_block_base());
 * they are passed over as long as there are other held blocks.  Then they are taken like
 * others, so that nobody waits for memory that is held.
 *
 * The walk takes no lock from one row to the next, so what it knows may be old: that
 * costs at most an eviction or a reload too many.
 */
#include "seqpriv.h"

#define ALPHA_ONE	65536u
#define ALPHA_BAND	(ALPHA_ONE / 32)
#define STEP_MAX	(ALPHA_ONE / 16)
#define STEP_MIN	(ALPHA_ONE / 1024)
#define STEP_SAME	4
#define WALK_ROWS	16	/* rows fetched at a time */
#define WALK_LIDS	4096	/* LIDs looked at per call, about */

/* ---- arithmetic ---- */

u32 hawk_elastic_alpha(u32 alloc, u32 cap, u32 reserved, u32 min)
{
	u32 alpha, usable = cap > reserved ? cap - reserved : 0;

	if (alloc >= usable)
		return min;
	alpha = div_u64((u64)(usable - alloc) << 16, usable);
	return alpha > min ? alpha : min;
}

u32 hawk_elastic_resident(const struct hawk_elastic_params *p, u32 alpha, u32 tokens)
{
	u64 base = (u64)p->sinks + p->window;

	return tokens <= base ? tokens : base + ((u64)alpha * (tokens - base) >> 16);
}

void hawk_elastic_settle(struct hawk_elastic_state *el, u32 target)
{
	u32 gap = target > el->alpha ? target - el->alpha : el->alpha - target;
	s8 dir = target > el->alpha ? 1 : -1;

	el->target = target;
	if (gap <= ALPHA_BAND)
		return;
	if (el->dir && dir != el->dir) {
		el->step = el->step / 2 > STEP_MIN ? el->step / 2 : STEP_MIN;
		el->same = 0;
	} else if (++el->same == STEP_SAME) {
		el->step = el->step * 2 < STEP_MAX ? el->step * 2 : STEP_MAX;
		el->same = 0;
	}
	el->dir = dir;
	gap = gap < el->step ? gap : el->step;
	el->alpha += dir > 0 ? gap : -gap;
}

void hawk_elastic_init(struct hawk_elastic_state *el)
{
	el->alpha = ALPHA_ONE;
	el->target = ALPHA_ONE;
	el->step = STEP_MAX;
	el->p.reserved = ALPHA_ONE / 20;	/* 4 GiB of 80 */
	el->p.alpha_min = (ALPHA_ONE * 15 + 50) / 100;
	el->p.sinks = 64;
	el->p.window = 1024;
}

/* ---- parameters ---- */

/* Frames of host tiers: those that it has or could have now, and those in use. */
static void space_use(struct hawk_space *s, u32 *cap, u32 *alloc)
{
	u64 frames = 0, used = 0;
	u32 t, i;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(hawk_load(&s->host_tiers) & (1u << t)))
			continue;
		frames += (u64)hawk_window_reach(s, t) * s->frames_per_chunk;
	}
	for (i = 0; i < s->nbuckets; i++) {
		hawk_lock(&s->bucket[i].lock);
		used += s->bucket[i].count[HAWK_N_RESIDENT];
		hawk_unlock(&s->bucket[i].lock);
	}
	*cap = frames < HAWK_NONE ? frames : HAWK_NONE;
	*alloc = used < HAWK_NONE ? used : HAWK_NONE;
}

int hawk_space_elastic_set(struct hawk_space *s, const struct hawk_elastic_params *p)
{
	struct hawk_seqs *q = s->seqs;

	if (!q)
		return -EOPNOTSUPP;
	if (p->reserved >= ALPHA_ONE || p->alpha_min > ALPHA_ONE)
		return -EINVAL;
	hawk_lock(&q->lock);
	q->elastic->p = *p;
	q->elastic->alpha = ALPHA_ONE;
	hawk_store(&s->sinks, p->sinks);
	hawk_store(&s->window, p->window);
	hawk_store(&s->hold, p->on ? 1u << q->elastic->cycle : 0);
	hawk_unlock(&q->lock);
	return 0;
}

int hawk_space_elastic_get(struct hawk_space *s, struct hawk_elastic_params *p,
		     struct hawk_elastic_info *info)
{
	struct hawk_seqs *q = s->seqs;

	if (!q)
		return -EOPNOTSUPP;
	hawk_lock(&q->lock);
	*p = q->elastic->p;
	info->alpha = q->elastic->alpha;
	info->target = q->elastic->target;
	info->evicted = hawk_load(&q->elastic->evicted);
	info->reloaded = hawk_load(&q->elastic->reloaded);
	info->cycles = hawk_load(&q->elastic->cycles);
	hawk_unlock(&q->lock);
	space_use(s, &info->cap, &info->used);
	return 0;
}

static int elastic_arg_set(struct hawk_space *s, const struct hawk_elastic *arg)
{
	struct hawk_elastic_params p = {
		.on = arg->on, .reserved = arg->keep_free, .alpha_min = arg->alpha_min,
		.sinks = arg->sinks, .window = arg->window,
	};

	return arg->on > 1 ? -EINVAL : hawk_space_elastic_set(s, &p);
}

int hawk_space_elastic(struct hawk_space *s, struct hawk_elastic *arg)
{
	struct hawk_elastic_params p;
	struct hawk_elastic_info info;
	int ret = 0;

	if (!s->seqs || arg->reserved)
		return -EOPNOTSUPP;
	if (arg->flags & HAWK_ELASTIC_SET)
		ret = elastic_arg_set(s, arg);
	if (!ret)
		ret = hawk_space_elastic_get(s, &p, &info);
	if (ret)
		return ret;
	arg->on = p.on;
	arg->keep_free = p.reserved;
	arg->alpha_min = p.alpha_min;
	arg->sinks = p.sinks;
	arg->window = p.window;
	arg->alpha = info.alpha;
	arg->target = info.target;
	arg->cap_bytes = (u64)info.cap * s->block_bytes;
	arg->used_bytes = (u64)info.used * s->block_bytes;
	arg->evicted = info.evicted;
	arg->reloaded = info.reloaded;
	arg->cycles = info.cycles;
	return 0;
}

#define BASE_LIDS	4	/* of a block that are looked at */

/* Sinks or window of the sequence that owns a run?  With its bucket locked. */
bool hawk_block_base(const struct hawk_space *s, const struct hawk_block *blk)
{
	u64 lid, tok, sinks = hawk_load(&s->sinks), window = hawk_load(&s->window);
	const struct hawk_run *r;
	u32 m, n, end;

	for (m = blk->maps, n = 0; m != HAWK_NONE && n < BASE_LIDS; m = s->map[m].alias, n++) {
		lid = s->map[m].lid;
		if (!hawk_lid_is_run(s, lid))
			continue;
		r = &s->seqs->run[hawk_lid_seq(lid) - s->run_base];
		tok = hawk_lid_tok(lid);
		end = hawk_load(&r->end);
		if (hawk_load(&r->base) + tok < sinks ||
		    (end && tok + s->block_tokens + window > end))
			return true;
	}
	return false;
}

bool hawk_space_elastic_on(struct hawk_space *s)
{
	return hawk_load(&s->hold);
}

/* ---- the walk ---- */

enum row_kind { ROW_BASE, ROW_MIDDLE };

struct walk_row {
	u32 run;
	u32 row;
	u32 end;	/* visible tokens up to its end */
	enum row_kind kind;
};

/* The next rows of the sequence from token @el->at on, of those that it shows. */
static u32 rows_fetch(struct hawk_space *s, struct hawk_elastic_state *el, struct walk_row *rows)
{
	struct hawk_seqs *q = s->seqs;
	const struct hawk_seq *sq;
	u32 nr, seen = 0, at, n = 0, left, take;
	struct hawk_seg g;

	hawk_lock(&q->lock);
	sq = hawk_seq_find(s, el->handle);
	nr = sq ? q->list[sq->list].head : HAWK_NONE;
	for (; nr != HAWK_NONE && n < WALK_ROWS; nr = q->node[nr].next, seen += g.len) {
		if (!hawk_seg_clip(&q->node[nr].seg, 0, q->list[sq->list].len, &g))
			break;
		if (seen + g.len <= el->at)
			continue;
		at = el->at > seen ? el->at : seen;
		for (; at < seen + g.len && n < WALK_ROWS; at += take, n++) {
			left = seen + g.len - at;
			take = q->block_tokens - (g.tok + (at - seen)) % q->block_tokens;
			take = take < left ? take : left;
			rows[n].run = g.run;
			rows[n].row = (g.tok + (at - seen)) / q->block_tokens;
			rows[n].end = at + take;
			rows[n].kind = at < el->now.sinks || (u64)at + take + el->now.window >
						       el->tokens ? ROW_BASE : ROW_MIDDLE;
		}
	}
	hawk_unlock(&q->lock);
	return n;
}

/* Begin with the next sequence.  Return: false: that was the last one. */
static bool walk_begin(struct hawk_space *s, struct hawk_elastic_state *el)
{
	struct hawk_seqs *q = s->seqs;
	struct hawk_seq_map map = { .count = 0 };

	hawk_lock(&q->lock);
	while (el->seq < q->max && q->seq[el->seq].list == HAWK_NONE)
		el->seq++;
	el->walking = el->seq < q->max;
	el->now = el->p;
	el->share = el->alpha;
	if (el->walking) {
		el->handle = q->seq[el->seq].handle;
		hawk_list_map(s, &q->list[q->seq[el->seq++].list], &map, NULL);
	} else {
		el->seq = 0;
	}
	hawk_unlock(&q->lock);
	el->tokens = map.visible;
	el->at = 0;
	el->act = false;
	el->base = 0;
	el->resident = 0;
	el->flash = 0;
	memset(el->age, 0, sizeof(el->age));
	return el->walking;
}

static u64 row_lid(const struct hawk_space *s, const struct walk_row *r, u32 i)
{
	u32 heads = s->seqs->heads;

	return HAWK_LID(r->run, i / heads, s->seqs->head_first + i % heads,
			r->row * s->block_tokens);
}

static u32 age_bin(u64 now, u64 atime)
{
	u64 age = now > atime ? (now - atime) >> 20 : 0;
	u32 bin = 0;

	while (age > 3) {
		age >>= 1;
		bin += 2;
	}
	bin += age;	/* 2 and 3 go on from where the power of two before ended */
	return bin < HAWK_AGE_BINS ? bin : HAWK_AGE_BINS - 1;
}

/* First pass: one block stands for its row, another layer's in each. */
static void row_count(struct hawk_space *s, struct hawk_elastic_state *el, const struct walk_row *r,
		      u64 now)
{
	struct hawk_block *blk;

	if (r->kind == ROW_BASE) {
		el->base++;
		return;
	}
	blk = hawk_lid_lock(s, row_lid(s, r, r->row % (s->seqs->layers * s->seqs->heads)));
	if (!blk)
		return;
	if (hawk_block_in_host(blk)) {
		el->resident++;
		el->age[age_bin(now, blk->atime)]++;
	} else {
		el->flash++;
	}
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
}

/* How much of the sequence is too much, or too little? */
static void walk_decide(struct hawk_space *s, struct hawk_elastic_state *el)
{
	u32 keep = hawk_elastic_resident(&el->now, el->share, el->tokens), n = 0, want;
	u32 lids = s->seqs->layers * s->seqs->heads, cap, alloc;

	keep = keep / s->block_tokens + !!(keep % s->block_tokens);
	keep = keep > el->base ? keep - el->base : 0;
	el->evict = 0;
	el->reload = 0;
	el->skip = 0;
	/* into free frames: it must not cost others theirs */
	space_use(s, &cap, &alloc);
	el->room = cap > alloc ? (cap - alloc) / 2 : 0;
	if (el->resident > keep + 1) {
		want = el->resident - keep;
		for (el->bin = HAWK_AGE_BINS; el->bin && n < want;)
			n += el->age[--el->bin];
		el->evict = (u64)want * lids;
	} else if (el->resident < keep && el->flash) {
		want = keep - el->resident < el->flash ? keep - el->resident : el->flash;
		el->skip = el->flash - want;
		el->reload = (u64)want * lids;
	}
	el->act = true;
	el->at = 0;
}

static bool may_evict(const struct hawk_elastic_state *el, const struct hawk_block *blk, u64 now)
{
	return el->evict && !blk->hold && blk->state == HAWK_BLOCK_READY && !blk->pins &&
	       age_bin(now, blk->atime) >= el->bin;
}

/* Renew the hold, or let it end; write or give up what is too much. */
static int block_act(struct hawk_space *s, struct hawk_elastic_state *el, struct hawk_block *blk,
		     const struct walk_row *r, u64 now, struct hawk_want *w)
{
	int ret;

	if (r->kind == ROW_BASE) {
		blk->hold |= 1u << el->cycle;
		return 0;
	}
	blk->hold &= ~(1u << (el->cycle + 1) % 3);	/* of the cycle before the last */
	if (!may_evict(el, blk, now))
		return 0;
	if (!hawk_window_has_room(s, blk->htier))
		hawk_window_starve(s, blk->htier);
	if (blk->flags & HAWK_BF_FLASH) {
		hawk_evict_clean(s, blk, w);
	} else {
		ret = hawk_write_start(s, blk, 0, w);
		if (ret)
			return ret == -ENOSPC || ret == -EDQUOT ? 0 : ret;
	}
	el->evict--;
	hawk_store(&el->evicted, el->evicted + 1);
	return 0;
}

/* Back to a free frame, if there is one: it must not cost others theirs. */
static int block_come(struct hawk_space *s, struct hawk_elastic_state *el, struct hawk_block *blk,
		      const struct walk_row *r, u64 now, struct hawk_want *w)
{
	u32 n = w->plan->n;
	int ret;

	if (!el->room || (r->kind == ROW_MIDDLE && (!el->reload || el->skip)))
		return 0;
	ret = hawk_move_in(s, blk, w);
	if (ret == -ENOSPC)
		el->room = 0;
	if (w->plan->n == n)
		return ret == -ENOSPC ? 0 : ret;
	hawk_store(&blk->atime, now);
	el->room--;
	el->reload -= r->kind == ROW_MIDDLE;
	hawk_store(&el->reloaded, el->reloaded + 1);
	return 0;
}

/* Return: 0; -EAGAIN: the plan is full, or flash grows; -ENOBUFS. */
static int lid_act(struct hawk_space *s, struct hawk_elastic_state *el, const struct walk_row *r,
		   u64 lid, u64 now, struct hawk_plan *plan)
{
	struct hawk_want w = { .plan = plan, .now = now, .ahead = true };
	struct hawk_block *blk;
	u32 home;
	int ret;

	for (;;) {
		blk = hawk_lid_lock(s, lid);
		if (!blk)
			return 0;
		home = blk->home;
		if (blk->state == HAWK_BLOCK_FLASH)
			ret = block_come(s, el, blk, r, now, &w);
		else
			ret = 0;
		ret = ret ?: block_act(s, el, blk, r, now, &w);
		hawk_unlock(&s->bucket[home].lock);
		if (ret != -ENOBUFS)
			return ret;
		ret = hawk_want_fetch(s, &w, home);
		if (ret)
			return ret;
	}
}

/* Second pass.  A row that was left in the middle is begun anew. */
static int row_act(struct hawk_space *s, struct hawk_elastic_state *el, const struct walk_row *r,
		   u64 now, struct hawk_plan *plan)
{
	u32 i, lids = s->seqs->layers * s->seqs->heads;
	struct hawk_block *blk;
	int ret;

	for (i = 0; i < lids; i++) {
		ret = lid_act(s, el, r, row_lid(s, r, i), now, plan);
		if (ret)
			return ret;
	}
	if (!el->skip || r->kind == ROW_BASE)
		return 0;
	blk = hawk_lid_lock(s, row_lid(s, r, r->row % lids));
	if (!blk)
		return 0;
	el->skip -= !hawk_block_in_host(blk);
	hawk_unlock(&hawk_bucket_of(s, blk)->lock);
	return 0;
}

/* All sequences have been looked at: what does the formula say now? */
static void cycle_end(struct hawk_space *s, struct hawk_elastic_state *el)
{
	struct hawk_seqs *q = s->seqs;
	u32 cap, alloc, reserved;

	space_use(s, &cap, &alloc);
	hawk_lock(&q->lock);
	reserved = (u64)cap * el->p.reserved >> 16;
	hawk_elastic_settle(el, hawk_elastic_alpha(alloc, cap, reserved, el->p.alpha_min));
	el->cycle = (el->cycle + 1) % 3;
	hawk_store(&el->cycles, el->cycles + 1);
	if (el->p.on)
		hawk_store(&s->hold, 1u << el->cycle);
	hawk_unlock(&q->lock);
}

int hawk_elastic_step(struct hawk_space *s, u64 now, struct hawk_plan *plan)
{
	struct hawk_elastic_state *el = s->seqs ? s->seqs->elastic : NULL;
	u32 i, n, budget = WALK_LIDS, first = plan->n;
	struct walk_row rows[WALK_ROWS];
	int ret;

	if (!el || !hawk_load(&s->hold))
		return 0;
	while (budget && !hawk_plan_full(plan)) {
		if (!el->walking && !walk_begin(s, el)) {
			cycle_end(s, el);
			break;
		}
		budget--;	/* also sequences without a row are some work */
		n = rows_fetch(s, el, rows);
		for (i = 0; i < n && budget; i++) {
			if (el->act) {
				ret = row_act(s, el, &rows[i], now, plan);
				if (ret)
					return ret == -ENOBUFS ? ret : (int)(plan->n - first);
			} else {
				row_count(s, el, &rows[i], now);
			}
			el->at = rows[i].end;
			n = hawk_plan_full(plan) ? i + 1 : n;
			ret = el->act ? s->seqs->layers * s->seqs->heads : 1;
			budget -= budget < (u32)ret ? budget : (u32)ret;
		}
		if (n)
			continue;
		if (el->act)
			el->walking = false;
		else
			walk_decide(s, el);
	}
	return plan->n - first;
}
