/* SPDX-License-Identifier: MIT */
/*
 * libfixture.h - a device with a DRAM and a flash tier, and blocks whose bytes can
 * be told
 *
 * The tests run on the embedded backend, or on the kernel's when $HAWK_URL says
 * "dev:...": then the tiers are added to that device and removed again.  The flash
 * file lies in a folder of its own under $HAWK_TEST_DIR or /tmp.
 */
#ifndef LIBFIXTURE_H
#define LIBFIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <hawk/hawk.h>

#define FX_BLOCK	16384u		/* bytes of a block */
#define FX_TOKENS	16u		/* tokens of a block */
#define FX_LAYERS	4u
#define FX_CHUNK_FRAMES	(HAWK_CHUNK_BYTES / FX_BLOCK)

struct fx {
	struct hawk *h;
	struct hawk_kv *kv;
	bool dev;		/* kernel backend */
	unsigned int dram;	/* tier id */
	unsigned int flash;	/* tier id, if there is flash */
	bool has_flash;
	char dir[256];
	char file[300];		/* the flash file */
};

/* A device with @dram and @flash bytes (0: no flash) and a space on all of both. */
void fx_open(struct fx *f, uint64_t dram, uint64_t flash);
void fx_open_buckets(struct fx *f, uint64_t dram, uint64_t flash, uint32_t buckets);
void fx_close(struct fx *f);

/* Parameters of fx_open()'s space: one bucket, so that eviction is strictly by age. */
struct hawk_kv_params fx_params(const struct fx *f);

/* An empty folder for a test's files, and its end. */
void fx_dir_make(char *dir, size_t len);
void fx_dir_remove(const char *dir);

/* LID, key and bytes of block number @n; @salt tells spaces and versions apart. */
uint64_t fx_lid(uint32_t n);
void fx_key(struct hawk_item *it, uint32_t n, uint32_t salt);
void fx_fill(void *block, uint32_t n, uint32_t salt);
bool fx_is(const void *block, uint32_t n, uint32_t salt);

/* Allocates, fills and puts blocks @from .. @from + @count - 1 with their keys. */
void fx_put(struct hawk_kv *kv, uint32_t from, uint32_t count, uint32_t salt);

/* Gets one block by key, compares its bytes and unpins it; the get's item status. */
int fx_get(struct hawk_kv *kv, uint32_t n, uint32_t salt);

uint64_t fx_now(void);

#define assert_ok(call)							\
	do {								\
		int ok_ret_ = (call);					\
		if (ok_ret_ < 0)					\
			fail_msg("%s: %d: %s", #call, ok_ret_, hawk_strerror_last()); \
	} while (0)

#endif /* LIBFIXTURE_H */
