// SPDX-License-Identifier: MIT
/*
 * stall_reads.c - a drive that stalls, for LD_PRELOAD
 *
 * There is no io_uring, so that libhawk reads with preadv(2); a read waits as long as
 * somebody else holds the file $STALL_FILE locked (flock(2)).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

struct io_uring;
int io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);

int io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	(void)entries;
	(void)ring;
	(void)flags;
	return -EPERM;
}

ssize_t preadv(int fd, const struct iovec *iov, int n, off_t off)
{
	ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "preadv");
	int lock = open(getenv("STALL_FILE"), O_RDONLY | O_CLOEXEC);

	flock(lock, LOCK_SH);
	close(lock);
	return real(fd, iov, n, off);
}
