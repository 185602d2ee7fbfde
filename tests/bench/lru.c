// SPDX-License-Identifier: MIT
/*
 * lru.c - the peer: one mutex around a hash table and one LRU list
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "lru.h"

#define NONE	0xffffffffu

struct entry {
	uint64_t id;
	uint32_t hash_next;
	uint32_t prev;		/* warmer */
	uint32_t next;		/* colder; also links the free list */
	uint32_t listed;
};

struct lru {
	pthread_mutex_t lock;	/* guards all below */
	struct entry *entry;
	uint32_t *head;		/* hash chains */
	uint32_t mask;		/* chains - 1: at least two chains per frame */
	uint32_t free, mru, lru;
};

static uint32_t *chain(struct lru *l, uint64_t id)
{
	id ^= id >> 33;
	id *= 0xff51afd7ed558ccdull;
	id ^= id >> 33;
	return &l->head[id & l->mask];
}

static uint32_t find(struct lru *l, uint64_t id)
{
	uint32_t e;

	for (e = *chain(l, id); e != NONE; e = l->entry[e].hash_next)
		if (l->entry[e].id == id)
			break;
	return e;
}

static void list_add(struct lru *l, uint32_t e)
{
	l->entry[e].prev = NONE;
	l->entry[e].next = l->mru;
	if (l->mru != NONE)
		l->entry[l->mru].prev = e;
	else
		l->lru = e;
	l->mru = e;
	l->entry[e].listed = 1;
}

static void list_del(struct lru *l, uint32_t e)
{
	struct entry *x = &l->entry[e];

	if (x->prev != NONE)
		l->entry[x->prev].next = x->next;
	else
		l->mru = x->next;
	if (x->next != NONE)
		l->entry[x->next].prev = x->prev;
	else
		l->lru = x->prev;
	x->listed = 0;
}

static uint32_t evict(struct lru *l)
{
	uint32_t e = l->lru, *p;

	if (e == NONE)
		return NONE;
	list_del(l, e);
	for (p = chain(l, l->entry[e].id); *p != e; p = &l->entry[*p].hash_next)
		;
	*p = l->entry[e].hash_next;
	return e;
}

struct lru *lru_create(uint32_t frames)
{
	struct lru *l = calloc(1, sizeof(*l));
	uint32_t i, chains = 2;

	if (!l)
		bench_die("no memory");
	while (chains < 2 * frames)
		chains <<= 1;
	pthread_mutex_init(&l->lock, NULL);
	l->entry = bench_table((uint64_t)frames * sizeof(*l->entry));
	l->head = bench_table((uint64_t)chains * sizeof(*l->head));
	l->mask = chains - 1;
	l->mru = NONE;
	l->lru = NONE;
	for (i = 0; i < chains; i++)
		l->head[i] = NONE;
	for (i = 0; i < frames; i++)
		l->entry[i].next = i + 1 < frames ? i + 1 : NONE;
	return l;
}

void lru_destroy(struct lru *l)
{
	free(l->entry);
	free(l->head);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

bool lru_alloc(struct lru *l, uint64_t id, uint32_t *frame)
{
	uint32_t e = NONE, *head;

	pthread_mutex_lock(&l->lock);
	if (find(l, id) != NONE)
		goto out_unlock;
	e = l->free;
	if (e != NONE)
		l->free = l->entry[e].next;
	else
		e = evict(l);
	if (e == NONE)
		goto out_unlock;
	head = chain(l, id);
	l->entry[e].id = id;
	l->entry[e].hash_next = *head;
	*head = e;
	*frame = e;
out_unlock:
	pthread_mutex_unlock(&l->lock);
	return e != NONE;
}

static bool warm(struct lru *l, uint64_t id)
{
	uint32_t e;

	pthread_mutex_lock(&l->lock);
	e = find(l, id);
	if (e != NONE) {
		if (l->entry[e].listed)
			list_del(l, e);
		list_add(l, e);
	}
	pthread_mutex_unlock(&l->lock);
	return e != NONE;
}

bool lru_put(struct lru *l, uint64_t id)
{
	return warm(l, id);
}

bool lru_touch(struct lru *l, uint64_t id)
{
	return warm(l, id);
}
