/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hawk_test.h - what the tests of /dev/hawk share
 *
 * Calls give 0 or a negative errno.  Tiers that a test adds are its own; a test
 * that leaves one behind fails, because its removal is checked.
 */
#ifndef HAWK_TEST_H
#define HAWK_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <linux/hawk.h>

#ifndef HAWK_TEST_SHARED	/* the harness is in each program once, with its tests */
#include "kselftest_harness.h"

/*
 * A test that the harness kills leaves its tiers to the next one.  So the limit is for
 * tests that hang, not for slow ones: the debug kernel is emulated, maybe on a busy host.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

/* Runs all tests, or with "-t NAME" those of that name; the harness knows no options. */
static inline int test_main(int argc, char **argv)
{
	const char *only = argc == 3 && !strcmp(argv[1], "-t") ? argv[2] : NULL;
	struct __fixture_metadata *f;
	struct __test_metadata **t;
	unsigned int n = 0;

	if (argc > 1 && !only) {
		fprintf(stderr, "Usage: %s [-t NAME]\n", argv[0]);
		return 2;
	}
	for (f = __fixture_list; f; f = f->next) {
		for (t = &f->tests; *t;) {
			if (only && strcmp((*t)->name, only)) {
				*t = (*t)->next;
				continue;
			}
			t = &(*t)->next;
			n++;
		}
	}
	if (!n) {
		fprintf(stderr, "%s: no test '%s'\n", argv[0], only ? only : "");
		return 2;
	}
	return test_harness_run(argc, argv);
}

#undef TEST_HARNESS_MAIN
#define TEST_HARNESS_MAIN						\
	static void __attribute__((constructor)) __constructor_order_last(void)	\
	{								\
		if (!__constructor_order)				\
			__constructor_order = _CONSTRUCTOR_ORDER_BACKWARD; \
	}								\
	int main(int argc, char **argv)					\
	{								\
		return test_main(argc, argv);				\
	}

#endif

#define MIB			(1ull << 20)
#define BLOCK			16384u		/* bytes of a block, unless told otherwise */
#define TOKENS			16u		/* tokens of a block */
#define NOBODY			65534

/* LID of the n-th block of sequence 1, layer 0. */
#define LID(n)			HAWK_LID(1, 0, 0, (n) * TOKENS)

/* Folder on a file system with O_DIRECT, and a block device; NULL: skip. */
const char *test_dir(void);
const char *test_blkdev(void);
char *abi_doc(const char *name);

int dev_open(int flags);
int dev_call(int fd, unsigned long cmd, void *arg);

int host_add(int fd, uint64_t bytes, uint32_t *tier);
int blk_add(int fd, const char *path, uint64_t bytes, uint32_t *tier);
int tier_remove(int fd, uint32_t tier);
int tier_remove_idle(int fd, uint32_t tier);
uint64_t tier_free_bytes(int fd, uint32_t tier);

struct hawk_space_create space_args(uint32_t max_blocks);
int space_attach(int fd, const char *name);
int space_destroy(int fd, const char *name);

int batch(int fd, unsigned long cmd, uint32_t flags, struct hawk_item *items, uint32_t n,
	  struct hawk_batch *out);
int one(int fd, unsigned long cmd, uint32_t flags, struct hawk_item *item);
int lid_call(int fd, unsigned long cmd, uint64_t lid);
struct hawk_item key_item(uint32_t n);
void set_key(struct hawk_item *it, uint32_t n);
uint64_t stat_pinned(int fd);
struct hawk_stats stats_of(int fd);
int space_check(const char *name, char *line, int size);

void *map_area(int fd, uint64_t offset, size_t len, int prot);
void fill(void *p, size_t len, uint32_t seed);
bool filled(const void *p, size_t len, uint32_t seed);
uint64_t vtlb_bytes(int fd);
uint64_t vtlb_lookup(const struct hawk_vtlb_entry *t, uint64_t bytes, uint64_t lid);
uint8_t *frame_at(void *window, uint64_t vt, uint32_t block_bytes);
char *temp_file(const char *name, uint64_t bytes);
uint64_t now_ns(void);
int dies_with(void (*fn)(void *), void *arg);

int write_file(const char *path, const char *text);
int read_file(const char *path, char *buf, size_t len);
int pace_set(const char *name, const char *value);

#endif /* HAWK_TEST_H */
