// SPDX-License-Identifier: MIT
/*
 * ering.c - the completion ring of the embedded backend, as the kernel's
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "embed.h"

static bool is_eventfd(int fd)
{
	char link[32], target[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	return strstr(target, "[eventfd]") != NULL;
}

/* Our own reference to the caller's eventfd. */
static int take_efd(int efd, int *dup)
{
	*dup = -1;
	if (efd < 0)
		return 0;
	if (!is_eventfd(efd))
		return hawk_fail(-EBADF, "descriptor %d is no eventfd", efd);
	*dup = fcntl(efd, F_DUPFD_CLOEXEC, 0);
	return *dup < 0 ? hawk_fail(-errno, "keeping the eventfd") : 0;
}

static int ring_make(struct ekv *kv, unsigned int entries, int efd)
{
	struct hawk_ring *r;
	int ret;

	ret = take_efd(efd, &kv->user_efd);
	if (ret)
		return ret;
	kv->base.ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kv->base.ring_fd < 0)
		return hawk_fail(-errno, "an eventfd for completions");
	kv->ring_bytes = hawk_ring_bytes(entries);
	r = mmap(NULL, kv->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (r == MAP_FAILED)
		return hawk_fail(-ENOMEM, "a ring of %u entries", entries);
	r->mask = entries - 1;
	kv->base.ring_efd = true;
	kv->base.ring = r;
	return 0;
}

void embed_ring_close(struct ekv *kv)
{
	if (kv->base.ring)
		munmap(kv->base.ring, kv->ring_bytes);
	if (kv->base.ring_fd >= 0)
		close(kv->base.ring_fd);
	if (kv->user_efd >= 0)
		close(kv->user_efd);
	kv->base.ring = NULL;
	kv->base.ring_fd = -1;
	kv->user_efd = -1;
}

int embed_ring_open(struct hawk_kv *base, unsigned int entries, int efd)
{
	struct ekv *kv = to_ekv(base);
	struct embed *e = kv->sp->e;
	int ret;

	pthread_mutex_lock(&e->admin);
	if (kv->base.ring) {
		ret = hawk_fail(-EBUSY, "this handle has a ring already");
		goto out_unlock;
	}
	ret = movers_start(e);
	if (!ret)
		ret = ring_make(kv, entries, efd);
	if (ret)
		embed_ring_close(kv);
out_unlock:
	pthread_mutex_unlock(&e->admin);
	return ret;
}

/* Promises room for @n completions: 0 or -EBUSY. */
int ering_reserve(struct ekv *kv, u32 n)
{
	struct hawk_ring *r = kv->base.ring;
	u32 used;
	int ret = -EBUSY;

	hawk_lock(&kv->ring_lock);
	used = r->tail - hawk_load_acquire(&r->head) + kv->ring_reserved;
	if (used <= r->mask + 1 && n <= r->mask + 1 - used) {
		kv->ring_reserved += n;
		ret = 0;
	}
	hawk_unlock(&kv->ring_lock);
	return ret;
}

/* Completions that were promised and will not come. */
void ering_unreserve(struct ekv *kv, u32 n)
{
	hawk_lock(&kv->ring_lock);
	kv->ring_reserved -= n;
	hawk_unlock(&kv->ring_lock);
}

static void raise_fd(int fd)
{
	if (fd >= 0)
		eventfd_write(fd, 1);
}

/* One of the promised completions. */
void ering_post(struct ekv *kv, const struct hawk_cqe *cqe)
{
	struct hawk_ring *r = kv->base.ring;

	hawk_lock(&kv->ring_lock);
	r->cqe[r->tail & r->mask] = *cqe;
	hawk_store_release(&r->tail, r->tail + 1);
	kv->ring_reserved--;
	hawk_unlock(&kv->ring_lock);
	raise_fd(kv->base.ring_fd);
	raise_fd(kv->user_efd);
}
