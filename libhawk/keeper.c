// SPDX-License-Identifier: MIT
/*
 * keeper.c - the thread that looks after a device
 *
 * It ends leases when their time has come, and after blocks were put it writes
 * cold ones to flash until embed.writeback of 1024 frames are clean or free, so
 * that making room is mostly a matter of forgetting a frame.  It also takes chunks
 * from spaces that have more for those that have less (embed_share.c), looks after
 * sequences (embed_compact.c, embed_elastic.c), writes the headers of blocks on
 * persistent flash (epool.c), and promotes what was read from flash (embed_pace.c).
 */
#include <time.h>

#include "embed.h"

#define NS		1000000000ull
#define LOOK_AHEAD	8	/* buckets the engine looks at per call */
#define AT_ONCE		64	/* writes in flight: reloads must not queue behind many */

static bool stopping(struct espace *sp)
{
	return __atomic_load_n(&sp->e->keeper_stop, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&sp->ending, __ATOMIC_RELAXED);
}

/* Until the engine has gone round the buckets without finding a block to write. */
static void write_tier(struct espace *sp, u32 tier)
{
	struct embed *e = sp->e;
	struct hawk_move move[AT_ONCE];
	struct hawk_plan plan = { .max = AT_ONCE, .move = move };
	u32 idle = 0;

	planner_enter(e);
	while (idle * LOOK_AHEAD <= hawk_space_buckets(sp->space) && !stopping(sp)) {
		int ret = hawk_space_writeback(sp->space, tier, e->writeback, now_ns(),
					       &plan);

		idle = !ret && !plan.n ? idle + 1 : 0;
		plan_run(sp, &plan, now_ns() + KEEPER_PATIENCE_NS);
		espace_grew(sp, ret);
	}
	planner_leave(e);
}

static void write_ahead(struct embed *e)
{
	struct espace *sp = NULL;
	u32 t;

	while ((sp = espace_next(e, sp)))
		for (t = 0; t < HAWK_TIERS_MAX; t++)
			if (sp->win[t].frames)
				write_tier(sp, t);
}

/* Sleeps until it is poked or @until; the caller holds keeper_lock. */
static void doze(struct embed *e, u64 until)
{
	struct timespec ts = { (time_t)(until / NS), (long)(until % NS) };

	if (e->keeper_stop || e->keeper_poked || e->keeper_write || e->keeper_share ||
	    e->keeper_tidy)
		return;
	if (until)
		pthread_cond_timedwait(&e->keeper_cond, &e->keeper_lock, &ts);
	else
		pthread_cond_wait(&e->keeper_cond, &e->keeper_lock);
}

/* The earlier of two times, of which 0 is never. */
static u64 sooner(u64 a, u64 b)
{
	return a && (!b || a < b) ? a : b;
}

static void *keeper(void *arg)
{
	struct embed *e = arg;
	u64 next_lease, elastic = 0, commit = 0, promote, lost;
	bool write, starved, untidy;

	pthread_mutex_lock(&e->keeper_lock);
	while (!e->keeper_stop) {
		write = e->keeper_write;
		starved = e->keeper_share;
		e->keeper_share = false;
		untidy = e->keeper_tidy;
		e->keeper_tidy = false;
		__atomic_store_n(&e->keeper_write, false, __ATOMIC_RELAXED);
		e->keeper_poked = false;
		pthread_mutex_unlock(&e->keeper_lock);
		if (starved)
			share_all(e);
		if (write)
			write_ahead(e);
		if (untidy)
			tidy_all(e);
		if (now_ns() >= elastic)
			elastic = elastic_all(e, now_ns());
		commit = epool_step(e, commit, now_ns());
		promote = promote_all(e);
		lost = egpu_lost_all(e, now_ns());
		next_lease = leases_expire(e, now_ns());
		pthread_mutex_lock(&e->keeper_lock);
		doze(e, sooner(sooner(sooner(next_lease, elastic), sooner(commit, promote)), lost));
	}
	pthread_mutex_unlock(&e->keeper_lock);
	return NULL;
}

/* Blocks were put (@write), or there is a new lease. */
void keeper_kick(struct embed *e, bool write)
{
	if (write && (!e->writeback || __atomic_load_n(&e->keeper_write, __ATOMIC_RELAXED)))
		return;
	pthread_mutex_lock(&e->keeper_lock);
	if (write)
		__atomic_store_n(&e->keeper_write, true, __ATOMIC_RELAXED);
	else
		e->keeper_poked = true;
	pthread_cond_signal(&e->keeper_cond);
	pthread_mutex_unlock(&e->keeper_lock);
}

/* A space is starved. */
void keeper_kick_share(struct embed *e)
{
	pthread_mutex_lock(&e->keeper_lock);
	e->keeper_share = true;
	pthread_cond_signal(&e->keeper_cond);
	pthread_mutex_unlock(&e->keeper_lock);
}

/* Sequences of a space have given something up, or what they gave up is free now. */
void keeper_kick_tidy(struct embed *e)
{
	pthread_mutex_lock(&e->keeper_lock);
	e->keeper_tidy = true;
	pthread_cond_signal(&e->keeper_cond);
	pthread_mutex_unlock(&e->keeper_lock);
}

/* Headers are to be written: blocks went to persistent flash, or are not there any more. */
void keeper_kick_commit(struct embed *e)
{
	if (__atomic_load_n(&e->keeper_commit, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&e->keeper_lock);
	__atomic_store_n(&e->keeper_commit, true, __ATOMIC_SEQ_CST);
	e->keeper_poked = true;
	pthread_cond_signal(&e->keeper_cond);
	pthread_mutex_unlock(&e->keeper_lock);
}

/* hawk_space_params.due; a bucket may be locked: its lock is taken before keeper_lock */
void keeper_due(void *e)
{
	keeper_kick_commit(e);
}

int keeper_start(struct embed *e)
{
	int ret = ethread_start(&e->keeper, keeper, e);

	return ret ? hawk_fail(ret, "starting the keeper thread") : 0;
}

void keeper_stop(struct embed *e)
{
	pthread_mutex_lock(&e->keeper_lock);
	__atomic_store_n(&e->keeper_stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&e->keeper_cond);
	pthread_mutex_unlock(&e->keeper_lock);
	pthread_join(e->keeper, NULL);
}
