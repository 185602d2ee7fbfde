/* SPDX-License-Identifier: MIT */
/*
 * space.h - devices and spaces for the programs that use libhawk
 */
#ifndef HAWK_BENCH_SPACE_H
#define HAWK_BENCH_SPACE_H

#include <hawk/hawk.h>
#include <stdbool.h>

#define SPACE_TOKENS	16u		/* tokens of a block */
#define SPACE_MIB	(1ull << 20)

/**
 * struct bench_space - an open device and a space on it
 * @h: device
 * @kv: space
 * @tier: tiers added to a kernel device, to be removed: host, then flash
 * @n_tiers: of these
 */
struct bench_space {
	struct hawk *h;
	struct hawk_kv *kv;
	unsigned int tier[2];
	unsigned int n_tiers;
};

/**
 * space_open() - open a device and give a kernel device the tiers it needs
 * @url: libhawk URL; an embedded device has its tiers from there
 * @dram: bytes of a host tier to add to a kernel device
 * @blk: block device or file to add to a kernel device, or NULL; @flash bytes of it
 */
void space_open(struct bench_space *s, const char *url, uint64_t dram, const char *blk,
		uint64_t flash);

/** space_create() - a space of all tiers; @name: NULL for a private one */
void space_create(struct bench_space *s, uint32_t block_bytes, uint32_t max_blocks,
		  const char *name);

/** space_is_dev() - is it the kernel's device? */
bool space_is_dev(const struct bench_space *s);

/** space_lid() - LID of block number @n: sequences of 256 blocks */
static inline uint64_t space_lid(uint32_t n)
{
	return HAWK_LID(1 + n / 256, 0, 0, n % 256 * SPACE_TOKENS);
}

/** space_key() - key of block number @n */
void space_key(uint32_t n, uint8_t key[HAWK_KEY_BYTES]);

/**
 * space_fill() - make blocks 0..@n-1 and publish them under LID and key
 * @bytes: bytes to write of each: 64-bit words that hold the block's number plus the
 *	word's index; 0 leaves the memory of an embedded device untouched
 */
void space_fill(struct bench_space *s, uint32_t n, uint32_t bytes);

/** space_block_sum() - bench_sum() of block @n as space_fill() wrote it */
uint64_t space_block_sum(uint32_t n, uint32_t block_bytes);

/** space_close() - close all; tiers that were added go */
void space_close(struct bench_space *s);

#endif /* HAWK_BENCH_SPACE_H */
