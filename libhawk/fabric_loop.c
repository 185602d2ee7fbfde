// SPDX-License-Identifier: MIT
/*
 * fabric_loop.c - a network within the process
 *
 * A request is carried out when it is posted, by the thread that posts it, after the checks
 * that a NIC makes: keys, bounds, rights, slots.  With a lag, a NIC's delay is played, too:
 * writes and reads wait for polls of who posted them, or for a message that he sends after.  One
 * lock guards all of it, one condition tells everybody that something has happened.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric_loop.h"

#define REGS	1024u		/* registrations in the process */
#define WINDOWS	512u		/* windows of a connection */
#define ENTRIES	16u
#define REQUEST	65536u

/**
 * struct fab - an endpoint
 * @name: it listens there, empty: it does not
 * @next: list of all that listen
 * @waiting: connections that are to be accepted, the oldest first
 * @depth: completions of a connection
 */
struct fab {
	char name[64];
	struct fab *next;
	struct fab_conn *waiting;
	unsigned int depth;
};

/**
 * struct loop_window - a window
 * @addr: first byte
 * @bytes: how many
 * @rkey: its key
 * @flags: HAWK_GRANT_*; 0: free
 */
struct loop_window {
	uint64_t addr;
	uint64_t bytes;
	uint32_t rkey;
	uint32_t flags;
};

/* A request that is carried out later. */
struct late {
	struct fab_wr wr;
	struct fab_sge sge[ENTRIES];
};

/**
 * struct fab_conn - one end of a connection
 * @f: its endpoint
 * @other: the other end, NULL: not yet, or no longer
 * @accepted: there has been another end
 * @next: the next one that waits to be accepted
 * @reg: slots
 * @slot: those that are posted, the oldest first
 * @slots: how many
 * @wc: completions that nobody has seen, from @head on, @wcs of them, in a ring of @f->depth
 * @broken: no more requests
 * @hold: polls that see nothing
 * @late: requests that are still to be carried out, from @late_head on, @lates of them, in a
 *	ring of @f->depth
 * @window: what the other end may use
 */
struct fab_conn {
	struct fab *f;
	struct fab_conn *other;
	bool accepted;
	struct fab_conn *next;
	struct fab_reg *reg;
	uint8_t slot[FAB_SLOTS];
	unsigned int slots;
	struct fab_wc *wc;
	unsigned int head;
	unsigned int wcs;
	bool broken;
	unsigned int hold;
	struct late *late;
	unsigned int late_head;
	unsigned int lates;
	struct loop_window window[WINDOWS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards everything here */
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fab *listening;
static struct fab_reg *regs[REGS];
static uint32_t next_rkey;
static struct loop_faults faults;
static uint64_t requests;
static uint64_t writes;

static void set_up(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

void hawk_loop_faults(const struct loop_faults *f)
{
	pthread_mutex_lock(&lock);
	faults = f ? *f : (struct loop_faults){ 0 };
	requests = 0;
	writes = 0;
	pthread_mutex_unlock(&lock);
}

uint64_t hawk_loop_requests(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = requests;
	pthread_mutex_unlock(&lock);
	return n;
}

/* Sleeps until something changes; false: it is @deadline. */
static bool sleep_until(uint64_t deadline)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u),
	};

	if (deadline == UINT64_MAX)
		return !pthread_cond_wait(&changed, &lock);
	return pthread_cond_timedwait(&changed, &lock, &ts) != ETIMEDOUT;
}

static int loop_open(const char *where, unsigned int depth, struct fab **fp)
{
	struct fab *f;

	pthread_once(&once, set_up);
	if (*where)
		return hawk_fail(-EINVAL, "net: \"loop:%s\": nothing follows \"loop:\"", where);
	f = calloc(1, sizeof(*f));
	if (!f)
		return hawk_fail(-ENOMEM, "net: an endpoint");
	f->depth = depth + 2 * FAB_SLOTS;
	*fp = f;
	return 0;
}

static void loop_close(struct fab *f)
{
	struct fab **at;

	pthread_mutex_lock(&lock);
	for (at = &listening; *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			break;
		}
	for (; f->waiting; f->waiting = f->waiting->next)
		f->waiting->broken = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	free(f);
}

static void loop_info(const struct fab *f, struct hawk_net_info *info)
{
	(void)f;
	*info = (struct hawk_net_info){
		.device = "loop", .flags = HAWK_NET_WINDOWS, .mtu = REQUEST, .entries = ENTRIES,
		.request_bytes = REQUEST,
	};
}

static int loop_reg(struct fab *f, struct fab_reg *reg)
{
	uint32_t i;

	(void)f;
	if (!reg->p.addr)
		return hawk_fail(-EOPNOTSUPP, "memory: a dma-buf that is not mapped is nothing for \"loop:\"");
	reg->base = (uintptr_t)reg->p.addr;
	reg->how = HAWK_MEM_DIRECT;
	pthread_mutex_lock(&lock);
	for (i = 1; i < REGS && regs[i]; i++)
		;
	if (i < REGS)
		regs[i] = reg;
	pthread_mutex_unlock(&lock);
	reg->lkey = i;
	return i < REGS ? 0 : hawk_fail(-ENOMEM, "memory: %u registrations", REGS);
}

static void loop_dereg(struct fab *f, struct fab_reg *reg)
{
	(void)f;
	pthread_mutex_lock(&lock);
	regs[reg->lkey] = NULL;
	pthread_mutex_unlock(&lock);
}

/* ---- connecting ---- */

static struct fab *find(const char *name)
{
	struct fab *f;

	for (f = listening; f && strcmp(f->name, name); f = f->next)
		;
	return f;
}

static int loop_listen(struct fab *f, const char *where)
{
	int ret = 0;

	if (!*where || strlen(where) >= sizeof(f->name))
		return hawk_fail(-EINVAL, "net: \"%s\" is no name to listen at", where);
	pthread_mutex_lock(&lock);
	if (f->name[0])
		ret = -EBUSY;
	else if (find(where))
		ret = -EADDRINUSE;
	if (!ret) {
		snprintf(f->name, sizeof(f->name), "%s", where);
		f->next = listening;
		listening = f;
	}
	pthread_mutex_unlock(&lock);
	return ret ? hawk_fail(ret, "net: listening at \"%s\"", where) : 0;
}

static struct fab_conn *conn_new(struct fab *f, const struct fab_ring *ring)
{
	struct fab_conn *c = calloc(1, sizeof(*c));
	unsigned int i;

	if (!c)
		return NULL;
	c->f = f;
	c->reg = ring->reg;
	c->wc = calloc(f->depth, sizeof(*c->wc));
	c->late = calloc(f->depth, sizeof(*c->late));
	if (!c->wc || !c->late) {
		free(c->wc);
		free(c->late);
		free(c);
		return NULL;
	}
	for (i = 0; i < FAB_SLOTS; i++)
		c->slot[c->slots++] = (uint8_t)i;
	return c;
}

static void loop_free(struct fab_conn *c)
{
	free(c->wc);
	free(c->late);
	free(c);
}

static int loop_connect(struct fab *f, const char *where, const struct fab_ring *ring,
			uint64_t deadline, struct fab_conn **cp)
{
	struct fab_conn *c = conn_new(f, ring), **at;
	struct fab *to;
	int ret = 0;

	if (!c)
		return hawk_fail(-ENOMEM, "peer: a connection");
	pthread_mutex_lock(&lock);
	to = find(where);
	if (!to) {
		ret = -EAGAIN;
		goto unlock;
	}
	for (at = &to->waiting; *at; at = &(*at)->next)
		;
	*at = c;
	pthread_cond_broadcast(&changed);
	while (!c->accepted && !c->broken && !ret)
		ret = sleep_until(deadline) ? 0 : -ETIME;
	if (c->accepted)
		ret = 0;
	else if (c->broken)
		ret = -EAGAIN;
	for (at = &to->waiting; ret == -ETIME && *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
unlock:
	pthread_mutex_unlock(&lock);
	if (ret) {
		loop_free(c);
		return ret == -ETIME ? hawk_fail(ret, "peer: \"%s\" does not accept", where) : ret;
	}
	*cp = c;
	return 0;
}

static int loop_accept(struct fab *f, const struct fab_ring *ring, uint64_t deadline,
		       struct fab_conn **cp)
{
	struct fab_conn *c;
	int ret = 0;

	if (!f->name[0])
		return hawk_fail(-EINVAL, "net: it does not listen");
	c = conn_new(f, ring);
	if (!c)
		return hawk_fail(-ENOMEM, "peer: a connection");
	pthread_mutex_lock(&lock);
	while (!f->waiting && !ret)
		ret = sleep_until(deadline) ? 0 : -ETIME;
	if (f->waiting) {
		ret = 0;
		c->other = f->waiting;
		f->waiting = f->waiting->next;
		c->other->other = c;
		c->other->accepted = true;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	if (ret) {
		loop_free(c);
		return hawk_fail(ret, "peer: nobody has connected");
	}
	*cp = c;
	return 0;
}

static void loop_hangup(struct fab_conn *c)
{
	pthread_mutex_lock(&lock);
	if (c->other) {
		c->other->other = NULL;
		c->other->broken = true;
		c->other = NULL;
	}
	c->broken = true;
	c->wcs = 0;
	c->lates = 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* ---- requests ---- */

static void push(struct fab_conn *c, struct fab_wc wc)
{
	if (c->wcs == c->f->depth)
		abort();	/* more than its owner may have under way */
	c->wc[(c->head + c->wcs++) % c->f->depth] = wc;
	pthread_cond_broadcast(&changed);
}

static bool local_ok(const struct fab_wr *wr)
{
	unsigned int i;

	for (i = 0; i < wr->nsge; i++) {
		const struct fab_sge *s = &wr->sge[i];
		const struct fab_reg *r = s->lkey < REGS ? regs[s->lkey] : NULL;

		if (!r || s->addr < r->base || s->addr - r->base > r->p.bytes ||
		    s->len > r->p.bytes - (s->addr - r->base))
			return false;
	}
	return wr->nsge <= ENTRIES;
}

static uint64_t length(const struct fab_wr *wr)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < wr->nsge; i++)
		n += wr->sge[i].len;
	return n;
}

/* Copies between the pieces and @far. */
static void copy(const struct fab_wr *wr, uint8_t *far, bool read)
{
	unsigned int i;

	for (i = 0; i < wr->nsge; far += wr->sge[i++].len) {
		void *near = (void *)(uintptr_t)wr->sge[i].addr;

		memcpy(read ? near : far, read ? far : near, wr->sge[i].len);
	}
}

static int take_slot(struct fab_conn *c, unsigned int *slot)
{
	if (!c->slots)
		return -EIO;
	*slot = c->slot[0];
	memmove(c->slot, c->slot + 1, --c->slots);
	return 0;
}

static int do_send(struct fab_conn *to, const struct fab_wr *wr)
{
	unsigned int slot;

	if (length(wr) > FAB_MSG || take_slot(to, &slot))
		return -EIO;
	copy(wr, (uint8_t *)(uintptr_t)to->reg->base + slot * FAB_MSG, false);
	push(to, (struct fab_wc){ .id = slot, .recv = true, .len = (uint32_t)length(wr) });
	return 0;
}

static bool far_ok(const struct fab_conn *to, const struct fab_wr *wr, uint64_t len)
{
	uint32_t right = wr->op == FAB_READ ? HAWK_GRANT_READ : HAWK_GRANT_WRITE;
	const struct loop_window *w;

	for (w = to->window; w < to->window + WINDOWS; w++)
		if (w->flags & right && w->rkey == wr->rkey)
			return wr->far >= w->addr && wr->far - w->addr <= w->bytes &&
			       len <= w->bytes - (wr->far - w->addr);
	return false;
}

static int do_move(struct fab_conn *to, const struct fab_wr *wr)
{
	uint8_t *far = (uint8_t *)(uintptr_t)wr->far;
	uint64_t len = length(wr);
	unsigned int slot;

	if (len > REQUEST)
		return -EIO;
	if (len && !far_ok(to, wr, len))
		return -EACCES;
	copy(wr, far, wr->op == FAB_READ);
	if (len && wr->op == FAB_WRITE && ++writes == faults.flip)
		*far ^= 1;
	if (!wr->has_imm)
		return 0;
	if (take_slot(to, &slot))
		return -EIO;
	push(to, (struct fab_wc){ .id = slot, .recv = true, .has_imm = true, .imm = wr->imm });
	return 0;
}

static int carry_out(struct fab_conn *c, const struct fab_wr *wr)
{
	bool kill = ++requests == faults.kill;
	int ret;

	if (c->broken)
		return -ECANCELED;
	if (!c->other || (kill && !faults.lost_ack))
		return -EPIPE;
	if (!local_ok(wr))
		return -EIO;
	ret = wr->op == FAB_SEND ? do_send(c->other, wr) : do_move(c->other, wr);
	return kill ? -EPIPE : ret;
}

static void finish(struct fab_conn *c, const struct fab_wr *wr)
{
	int ret = carry_out(c, wr);

	if (ret) {
		c->broken = true;
		if (c->other)
			c->other->broken = true;
	}
	if (ret || wr->signaled)
		push(c, (struct fab_wc){ .id = wr->id, .status = ret });
}

/* Carries out @n of the requests that are late. */
static void catch_up(struct fab_conn *c, unsigned int n)
{
	struct late *l;

	for (; n && c->lates; n--) {
		l = &c->late[c->late_head];
		l->wr.sge = l->sge;
		c->late_head = (c->late_head + 1) % c->f->depth;
		c->lates--;
		finish(c, &l->wr);
	}
}

static int loop_post(struct fab_conn *c, const struct fab_wr *wr)
{
	struct late *l;

	pthread_mutex_lock(&lock);
	if (wr->op == FAB_SEND || !faults.lag || wr->nsge > ENTRIES) {
		catch_up(c, c->lates);
		finish(c, wr);
	} else {
		l = &c->late[(c->late_head + c->lates++) % c->f->depth];
		l->wr = *wr;
		memcpy(l->sge, wr->sge, wr->nsge * sizeof(*wr->sge));
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int loop_post_recv(struct fab_conn *c, unsigned int slot)
{
	pthread_mutex_lock(&lock);
	if (c->slots < FAB_SLOTS)
		c->slot[c->slots++] = (uint8_t)slot;
	pthread_mutex_unlock(&lock);
	return 0;
}

static unsigned int draw(unsigned int n)
{
	faults.seed = faults.seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(faults.seed >> 33) % n;
}

static int loop_poll(struct fab_conn *c, struct fab_wc *wc, int n)
{
	int got = 0;

	pthread_mutex_lock(&lock);
	if (c->lates)
		catch_up(c, faults.lag ? draw(faults.lag + 1) : c->lates);
	if (c->hold) {
		c->hold--;
		n = 0;
	}
	for (; got < n && c->wcs; got++, c->wcs--) {
		wc[got] = c->wc[c->head];
		c->head = (c->head + 1) % c->f->depth;
	}
	if (got && faults.lag)
		c->hold = draw(faults.lag + 1);
	if (!got && !c->hold && !c->wcs && !c->lates && c->broken)
		got = -EPIPE;
	pthread_mutex_unlock(&lock);
	return got;
}

static void loop_wait(struct fab_conn *c, uint64_t deadline)
{
	pthread_mutex_lock(&lock);
	if (!c || (!c->wcs && !c->broken && !c->hold && !c->lates))
		sleep_until(deadline);
	pthread_mutex_unlock(&lock);
}

/* ---- windows ---- */

static int loop_grant(struct fab_conn *c, struct fab_reg *reg, uint32_t flags,
		      struct fab_window *w, uint64_t id)
{
	unsigned int i;

	(void)id;
	(void)reg;
	pthread_mutex_lock(&lock);
	for (i = 0; i < WINDOWS && c->window[i].flags; i++)
		;
	if (i < WINDOWS) {
		w->rkey = ++next_rkey;
		c->window[i] = (struct loop_window){ w->addr, w->bytes, w->rkey, flags };
	}
	pthread_mutex_unlock(&lock);
	return i < WINDOWS ? 1 : hawk_fail(-ENOSPC, "grant: %u windows", WINDOWS);
}

static int loop_revoke(struct fab_conn *c, struct fab_window *w, uint64_t id)
{
	unsigned int i;

	(void)id;
	pthread_mutex_lock(&lock);
	for (i = 0; i < WINDOWS; i++)
		if (c->window[i].flags && c->window[i].rkey == w->rkey)
			c->window[i].flags = 0;
	pthread_mutex_unlock(&lock);
	return 1;
}

static void loop_forget(struct fab_conn *c, struct fab_window *w)
{
	loop_revoke(c, w, 0);
}

const struct fab_ops hawk_fab_loop = {
	.name = "loop",
	.open = loop_open, .close = loop_close, .info = loop_info,
	.reg = loop_reg, .dereg = loop_dereg,
	.listen = loop_listen, .accept = loop_accept, .connect = loop_connect,
	.hangup = loop_hangup, .free = loop_free,
	.post = loop_post, .post_recv = loop_post_recv, .poll = loop_poll, .wait = loop_wait,
	.grant = loop_grant, .revoke = loop_revoke, .forget = loop_forget,
};
