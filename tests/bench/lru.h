/* SPDX-License-Identifier: MIT */
/*
 * lru.h - the peer: one mutex around a hash table and one LRU list
 *
 * What a KV cache manager does without bucketing.  All memory is taken at the
 * start; entries are linked by number, an entry's number is its frame.
 */
#ifndef HAWK_BENCH_LRU_H
#define HAWK_BENCH_LRU_H

#include <stdbool.h>
#include <stdint.h>

struct lru;

/** lru_create() - an empty cache of @frames frames */
struct lru *lru_create(uint32_t frames);
void lru_destroy(struct lru *l);

/**
 * lru_alloc() - a frame for a new block, that of the coldest one if none is free
 * @frame: out; pinned (not on the LRU list) until lru_put()
 * Return: false if @id is there already or everything is pinned.
 */
bool lru_alloc(struct lru *l, uint64_t id, uint32_t *frame);

/** lru_put() - a block is complete: it becomes the warmest; false: no such block */
bool lru_put(struct lru *l, uint64_t id);

/** lru_touch() - find a block and make it the warmest; false: no such block */
bool lru_touch(struct lru *l, uint64_t id);

#endif /* HAWK_BENCH_LRU_H */
