// SPDX-License-Identifier: MIT
/*
 * dev.c - the kernel backend: ioctls on /dev/hawk
 *
 * The handle has one file for device calls; each space has a file of its own,
 * because a file holds at most one space, and its end is the end of the pins and
 * leases taken through it.  The memory of a space is mapped once, when it is
 * bound: the vTLB read-only, a window per host tier, the ring when it is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "priv.h"

struct dev {
	struct hawk base;
	int fd;
	char path[HAWK_PATH_MAX];
};

struct dev_kv {
	struct hawk_kv base;
	int fd;
	uint64_t vtlb_bytes;
	uint64_t ring_bytes;
	const struct hawk_stats_page *stats;	/* NULL until somebody asks; atomic */
};

#define STATS_BYTES	((sizeof(struct hawk_stats_page) + 4095) & ~4095ul)

static struct dev *to_dev(struct hawk *h)
{
	return (struct dev *)h;
}

static struct dev_kv *to_dev_kv(struct hawk_kv *kv)
{
	return (struct dev_kv *)kv;
}

static int call(int fd, unsigned long cmd, void *arg, const char *what)
{
	if (!ioctl(fd, cmd, arg))
		return 0;
	return hawk_fail(-errno, "%s", what);
}

/* ---- device ---- */

static void dev_close(struct hawk *h)
{
	close(to_dev(h)->fd);
	free(to_dev(h));
}

static int dev_query(struct hawk *h, struct hawk_query *q)
{
	return call(to_dev(h)->fd, HAWK_IOC_QUERY, q, "asking the device for its limits");
}

static int dev_tier_add(struct hawk *h, struct hawk_tier_add *a)
{
	return call(to_dev(h)->fd, HAWK_IOC_TIER_ADD, a, "adding a tier");
}

static int dev_tier_del(struct hawk *h, unsigned int tier, unsigned int flags)
{
	struct hawk_tier_remove r = { .size = sizeof(r), .flags = flags, .tier = tier };

	return call(to_dev(h)->fd, HAWK_IOC_TIER_REMOVE, &r, "removing a tier");
}

static int dev_tier_info(struct hawk *h, struct hawk_tier_info *info)
{
	return call(to_dev(h)->fd, HAWK_IOC_TIER_INFO, info, "asking for a tier");
}

static int dev_tier_admit(struct hawk *h, struct hawk_tier_admit *a)
{
	return call(to_dev(h)->fd, HAWK_IOC_TIER_ADMIT, a, "the write budget of a tier");
}

/* ---- spaces ---- */

static void dev_kv_close(struct hawk_kv *kv)
{
	struct dev_kv *d = to_dev_kv(kv);
	unsigned int t;

	if (kv->ring)
		munmap(kv->ring, d->ring_bytes);
	if (d->stats)
		munmap((void *)d->stats, STATS_BYTES);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (kv->window[t])
			munmap(kv->window[t], (size_t)kv->frames[t] * kv->block_bytes);
	if (kv->vtlb)
		munmap((void *)kv->vtlb, d->vtlb_bytes);
	close(d->fd);
	free(d);
}

/* Who may only read the space maps it for reading. */
static void *map_window(const struct dev_kv *d, unsigned int tier, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd,
		       HAWK_MMAP_TIER(tier));

	if (p == MAP_FAILED && errno == EACCES)
		p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, d->fd, HAWK_MMAP_TIER(tier));
	return p;
}

static int map_windows(struct hawk *h, struct dev_kv *d, const struct hawk_space_info *info)
{
	struct hawk_kv *kv = &d->base;
	struct hawk_tier_info ti;
	unsigned int t;
	void *p;
	int ret;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!info->frames[t])
			continue;
		ret = hawk_tier_stat(h, t, &ti);
		if (ret)
			return ret;
		if (ti.kind == HAWK_TIER_BLK || ti.kind == HAWK_TIER_DMABUF)
			continue;
		p = map_window(d, t, (size_t)info->frames[t] * kv->block_bytes);
		if (p == MAP_FAILED)
			return hawk_fail(-errno, "mapping the window of tier %u", t);
		kv->window[t] = p;
		kv->frames[t] = info->frames[t];
	}
	return 0;
}

static int map_space(struct hawk *h, struct dev_kv *d)
{
	struct hawk_space_info info;
	void *p;
	int ret;

	ret = hawk_kv_info(&d->base, &info);
	if (ret)
		return ret;
	d->base.block_bytes = info.block_bytes;
	d->base.block_tokens = info.block_tokens;
	d->base.layers = info.layers;
	hawk_kv_heads(&d->base, info.head_groups, info.tp_rank, info.tp_degree);
	d->base.vtlb_lines = info.vtlb_bytes / (HAWK_VT_WAYS * sizeof(struct hawk_vtlb_entry));
	p = mmap(NULL, info.vtlb_bytes, PROT_READ, MAP_SHARED, d->fd, HAWK_MMAP_VTLB);
	if (p == MAP_FAILED)
		return hawk_fail(-errno, "mapping the vTLB");
	d->base.vtlb = p;
	d->vtlb_bytes = info.vtlb_bytes;
	return map_windows(h, d, &info);
}

/* A new file, bound to a space by @cmd, and mapped. */
static int bind_space(struct hawk *h, unsigned long cmd, void *arg, const char *what,
		      struct hawk_kv **kv)
{
	struct dev_kv *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return hawk_fail(-ENOMEM, "%s", what);
	d->base.h = h;
	d->base.ring_fd = -1;
	d->fd = open(to_dev(h)->path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0) {
		ret = hawk_fail(-errno, "opening %s", to_dev(h)->path);
		free(d);
		return ret;
	}
	ret = call(d->fd, cmd, arg, what);
	if (!ret)
		ret = map_space(h, d);
	if (ret) {
		dev_kv_close(&d->base);
		return ret;
	}
	*kv = &d->base;
	return 0;
}

static int dev_kv_create(struct hawk *h, struct hawk_space_create *c, struct hawk_kv **kv)
{
	return bind_space(h, HAWK_IOC_SPACE_CREATE, c, "creating a space", kv);
}

static int dev_kv_attach(struct hawk *h, const struct hawk_space_attach *a, struct hawk_kv **kv)
{
	return bind_space(h, HAWK_IOC_SPACE_ATTACH, (void *)a, "attaching to a space", kv);
}

static int dev_kv_set(struct hawk *h, const struct hawk_space_set *s)
{
	return call(to_dev(h)->fd, HAWK_IOC_SPACE_SET, (void *)s, "changing a space");
}

static int dev_kv_fd(struct hawk_kv *kv)
{
	return to_dev_kv(kv)->fd;
}

static int dev_kv_destroy(struct hawk *h, const struct hawk_space_destroy *d)
{
	return call(to_dev(h)->fd, HAWK_IOC_SPACE_DESTROY, (void *)d, "destroying a space");
}

static int dev_kv_info(struct hawk_kv *kv, struct hawk_space_info *info)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_SPACE_INFO, info, "asking for the space");
}

static int dev_kv_stats(struct hawk_kv *kv, struct hawk_stats *st)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_STATS, st, "asking for statistics");
}

static int dev_kv_stats_page(struct hawk_kv *kv, struct hawk_stats_page *page)
{
	struct dev_kv *d = to_dev_kv(kv);
	const struct hawk_stats_page *p = __atomic_load_n(&d->stats, __ATOMIC_ACQUIRE);
	const struct hawk_stats_page *none = NULL;

	if (!p) {
		p = mmap(NULL, STATS_BYTES, PROT_READ, MAP_SHARED, d->fd, HAWK_MMAP_STATS);
		if (p == MAP_FAILED)
			return hawk_fail(errno == ENXIO || errno == EINVAL ? -EOPNOTSUPP : -errno,
					 "mapping the statistics");
		if (!__atomic_compare_exchange_n(&d->stats, &none, p, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
			munmap((void *)p, STATS_BYTES);	/* another thread was faster */
			p = none;
		}
	}
	hawk_stats_copy(p, p->size, page);
	return 0;
}

static int dev_batch(struct hawk_kv *kv, unsigned int op, struct hawk_batch *b)
{
	return call(to_dev_kv(kv)->fd, op, b, "a batch call");
}

static int dev_gather(struct hawk_kv *kv, struct hawk_gather *g)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_GATHER, g, "gathering blocks");
}

static int dev_lease_end(struct hawk_kv *kv, uint64_t lease)
{
	struct hawk_lease_release r = { .size = sizeof(r), .lease = lease };

	return call(to_dev_kv(kv)->fd, HAWK_IOC_LEASE_RELEASE, &r, "ending a lease");
}

static int dev_ring_open(struct hawk_kv *kv, unsigned int entries, int efd)
{
	struct hawk_ring_setup r = { .size = sizeof(r), .entries = entries, .eventfd = efd };
	struct dev_kv *d = to_dev_kv(kv);
	void *p;
	int ret;

	ret = call(d->fd, HAWK_IOC_RING_SETUP, &r, "making the completion ring");
	if (ret)
		return ret;
	p = mmap(NULL, r.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, HAWK_MMAP_RING);
	if (p == MAP_FAILED)
		return hawk_fail(-errno, "mapping the completion ring");
	d->ring_bytes = r.ring_bytes;
	kv->ring = p;
	kv->ring_fd = d->fd;
	return 0;
}

static int dev_cancel(struct hawk_kv *kv, struct hawk_cancel *c)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_CANCEL, c, "canceling");
}

static int dev_pin_query(struct hawk_kv *kv, struct hawk_pin_query *q)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_PIN_QUERY, q, "asking what pins would cost");
}

static int dev_export_blocks(struct hawk_kv *kv, struct hawk_export *x)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_EXPORT, x, "exporting blocks");
}

static int dev_export_end(struct hawk_kv *kv, struct hawk_export_revoke *r)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_EXPORT_REVOKE, r, "revoking an export");
}

static int dev_frame_info(struct hawk_kv *kv, struct hawk_frame_info *info)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_FRAME_INFO, info, "asking where a frame lies");
}

static int dev_draft_open(struct hawk_kv *kv, struct hawk_draft_open *o, void **mem)
{
	struct hawk_draft_close c = { .size = sizeof(c) };
	int fd = to_dev_kv(kv)->fd, ret;

	ret = call(fd, HAWK_IOC_DRAFT_OPEN, o, "making a draft ring");
	if (ret)
		return ret;
	*mem = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)o->offset);
	if (*mem != MAP_FAILED)
		return 0;
	ret = hawk_fail(-errno, "mapping a draft ring");
	c.id = o->id;
	ioctl(fd, HAWK_IOC_DRAFT_CLOSE, &c);
	return ret;
}

static void dev_draft_close(struct hawk_kv *kv, const struct hawk_draft_open *o, void *mem)
{
	struct hawk_draft_close c = { .size = sizeof(c), .id = o->id };

	munmap(mem, o->bytes);
	ioctl(to_dev_kv(kv)->fd, HAWK_IOC_DRAFT_CLOSE, &c);
}

static int dev_seq(struct hawk_kv *kv, struct hawk_seq_batch *b)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_SEQ, b, "operations on sequences");
}

static int dev_seq_map(struct hawk_kv *kv, struct hawk_seq_map *map)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_SEQ_MAP, map, "asking for a sequence");
}

static int dev_estimate(struct hawk_kv *kv, struct hawk_estimate *e)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_ESTIMATE, e, "an estimate");
}

static int dev_phase(struct hawk_kv *kv, struct hawk_phase *ph)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_PHASE, ph, "the phase of the runtime");
}

static int dev_elastic(struct hawk_kv *kv, struct hawk_elastic *e)
{
	return call(to_dev_kv(kv)->fd, HAWK_IOC_ELASTIC, e, "elastic residency");
}

static const struct hawk_ops dev_ops = {
	.name = "dev",
	.close = dev_close,
	.query = dev_query,
	.tier_add = dev_tier_add,
	.tier_del = dev_tier_del,
	.tier_info = dev_tier_info,
	.tier_admit = dev_tier_admit,
	.kv_create = dev_kv_create,
	.kv_attach = dev_kv_attach,
	.kv_set = dev_kv_set,
	.kv_destroy = dev_kv_destroy,
	.kv_close = dev_kv_close,
	.kv_info = dev_kv_info,
	.kv_stats = dev_kv_stats,
	.kv_stats_page = dev_kv_stats_page,
	.kv_fd = dev_kv_fd,
	.batch = dev_batch,
	.gather = dev_gather,
	.lease_end = dev_lease_end,
	.ring_open = dev_ring_open,
	.cancel = dev_cancel,
	.pin_query = dev_pin_query,
	.export_blocks = dev_export_blocks,
	.export_end = dev_export_end,
	.frame_info = dev_frame_info,
	.draft_open = dev_draft_open,
	.draft_close = dev_draft_close,
	.seq = dev_seq,
	.seq_map = dev_seq_map,
	.elastic = dev_elastic,
	.estimate = dev_estimate,
	.phase = dev_phase,
};

int hawk_dev_open(const char *path, struct hawk **hp)
{
	struct dev *d = calloc(1, sizeof(*d));
	struct hawk_query q;
	int ret;

	if (!d)
		return hawk_fail(-ENOMEM, "opening %s", path);
	d->base.ops = &dev_ops;
	strcpy(d->path, path);
	d->fd = open(path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0) {
		ret = hawk_fail(-errno, "opening %s (is hawk.ko loaded?)", path);
		goto err_free;
	}
	ret = hawk_device_query(&d->base, &q);
	if (ret == -ENOTTY || (!ret && q.abi_version != HAWK_ABI_VERSION)) {
		ret = hawk_fail(-EPROTO, "%s does not speak version %d of the Hawk ABI", path,
				HAWK_ABI_VERSION);
	}
	if (ret)
		goto err_close;
	*hp = &d->base;
	return 0;

err_close:
	close(d->fd);
err_free:
	free(d);
	return ret;
}
