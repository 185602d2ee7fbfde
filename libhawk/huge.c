// SPDX-License-Identifier: MIT
/*
 * huge.c - chunks of host memory on huge pages
 *
 * A transfer takes hold of every page that it reads into or writes from, and lets go
 * of it at its end.  With small pages that costs as much CPU time as all the rest of the
 * transfer; a huge page is taken hold of once.  Readers of the window save misses in
 * their CPU's address cache.
 *
 * A chunk is as large as a huge page of x86-64.  The kernel gives memfds none unless its
 * administrator turned that on (shmem_enabled), but makes one of a range on request
 * (MADV_COLLAPSE, Linux 6.1), wherever it has the room.  All of this is advice: without
 * it there are small pages.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "embed.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

/**
 * huge_map() - mmap() at a multiple of the chunk size
 * Return: MAP_FAILED if there is no room.
 */
void *huge_map(u64 bytes, int prot, int flags, int fd)
{
	u8 *p = mmap(NULL, bytes + HAWK_CHUNK_BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	u64 skip;
	void *at;

	if (p == MAP_FAILED)
		return MAP_FAILED;
	skip = -(uintptr_t)p % HAWK_CHUNK_BYTES;
	at = mmap(p + skip, bytes, prot, flags | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED) {
		munmap(p, bytes + HAWK_CHUNK_BYTES);
		return MAP_FAILED;
	}
	if (skip)
		munmap(p, skip);
	munmap(p + skip + bytes, HAWK_CHUNK_BYTES - skip);
	return at;
}

/**
 * huge_chunk() - make one huge page of a chunk
 * @chunk: in a shared mapping of huge_map(); it keeps what it holds
 *
 * Takes as long as clearing it.  What is being read or written as it is called keeps its
 * small pages.
 */
void huge_chunk(u8 *chunk)
{
	static int unknown;	/* atomic: the kernel does not do that */

	if (__atomic_load_n(&unknown, __ATOMIC_RELAXED))
		return;
	/* The kernel refuses a range of which it has no page. */
	madvise(chunk, 4096, MADV_POPULATE_READ);
	if (madvise(chunk, HAWK_CHUNK_BYTES, MADV_COLLAPSE) && errno == EINVAL)
		__atomic_store_n(&unknown, 1, __ATOMIC_RELAXED);
}
