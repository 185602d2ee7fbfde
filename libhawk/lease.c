// SPDX-License-Identifier: MIT
/*
 * lease.c - leases: a list by expiry, looked at by the keeper
 *
 * Leases mostly last equally long, so a new one goes near the end of the list.
 */
#include <stdlib.h>

#include "embed.h"

/* A lease with room for @max blocks; the caller fills ref and n. */
struct elease *lease_new(struct ekv *kv, u32 max)
{
	struct elease *l = malloc(sizeof(*l) + max * sizeof(l->ref[0]));

	if (!l)
		return NULL;
	l->kv = kv;
	l->n = 0;
	return l;
}

static void release(struct elease *l)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		hawk_block_unlease(l->kv->sp->space, l->ref[i]);
	seqs_waiting(l->kv->sp);
	free(l);
}

/* Instead of lease_start(). */
void lease_cancel(struct elease *l)
{
	release(l);
}

static void unlink_lease(struct embed *e, struct elease *l)
{
	*(l->prev ? &l->prev->next : &e->lease_first) = l->next;
	*(l->next ? &l->next->prev : &e->lease_last) = l->prev;
}

u64 lease_start(struct elease *l, u64 expires)
{
	struct embed *e = l->kv->sp->e;
	struct elease *after;
	u64 id;

	l->expires = expires;
	pthread_mutex_lock(&e->lease_lock);
	id = ++e->lease_id;
	l->id = id;
	for (after = e->lease_last; after && after->expires > expires; after = after->prev)
		;
	l->prev = after;
	l->next = after ? after->next : e->lease_first;
	*(l->prev ? &l->prev->next : &e->lease_first) = l;
	*(l->next ? &l->next->prev : &e->lease_last) = l;
	pthread_mutex_unlock(&e->lease_lock);
	keeper_kick(e, false);
	return id;
}

int embed_lease_end(struct hawk_kv *base, uint64_t id)
{
	struct ekv *kv = to_ekv(base);
	struct embed *e = kv->sp->e;
	struct elease *l;

	pthread_mutex_lock(&e->lease_lock);
	for (l = e->lease_last; l && (l->id != id || l->kv != kv); l = l->prev)
		;
	if (l) {
		unlink_lease(e, l);
		release(l);
	}
	pthread_mutex_unlock(&e->lease_lock);
	if (!l)
		return hawk_fail(-ENOENT, "lease %llu", (unsigned long long)id);
	return 0;
}

/* The handle ends. */
void leases_drop(struct ekv *kv)
{
	struct embed *e = kv->sp->e;
	struct elease *l, *next;

	pthread_mutex_lock(&e->lease_lock);
	for (l = e->lease_first; l; l = next) {
		next = l->next;
		if (l->kv == kv) {
			unlink_lease(e, l);
			release(l);
		}
	}
	pthread_mutex_unlock(&e->lease_lock);
}

/* Ends leases whose time has come; returns when the next one's will, 0: none. */
u64 leases_expire(struct embed *e, u64 now)
{
	struct elease *l;
	u64 next;

	pthread_mutex_lock(&e->lease_lock);
	while ((l = e->lease_first) && l->expires <= now) {
		unlink_lease(e, l);
		release(l);
	}
	next = l ? l->expires : 0;
	pthread_mutex_unlock(&e->lease_lock);
	return next;
}
