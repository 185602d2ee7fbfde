// SPDX-License-Identifier: MIT
/*
 * open.c - handles, tiers and spaces: from the public calls to the backend
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

#define STR(x)		#x
#define VERSION(a, b)	STR(a) "." STR(b)

const char *hawk_version(void)
{
	return VERSION(HAWK_VERSION_MAJOR, HAWK_VERSION_MINOR);
}

static int open_url(const char *url, struct hawk **hp)
{
	struct hawk_url u;
	int ret = hawk_url_parse(url, &u);

	if (ret)
		return ret;
	return u.dev ? hawk_dev_open(u.path, hp) : hawk_embed_open(&u, hp);
}

int hawk_open(const char *url, struct hawk **hp)
{
	const char *env = getenv("HAWK_URL");

	if (!hp)
		return hawk_fail(-EINVAL, "hawk_open: no place for the handle");
	*hp = NULL;
	if (!url && env && *env)
		url = env;
	if (url)
		return open_url(url, hp);
	if (!open_url("dev:", hp))
		return 0;
	hawk_fail_clear();	/* no device is not a failure here */
	return open_url("embed:", hp);
}

void hawk_close(struct hawk *h)
{
	if (h)
		h->ops->close(h);
}

const char *hawk_backend(const struct hawk *h)
{
	return h->ops->name;
}

int hawk_device_query(struct hawk *h, struct hawk_query *q)
{
	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	return h->ops->query(h, q);
}

static int tier_add(struct hawk *h, struct hawk_tier_add *a, unsigned int *tier)
{
	int ret;

	a->size = sizeof(*a);
	ret = h->ops->tier_add(h, a);
	if (!ret && tier)
		*tier = a->tier;
	return ret;
}

int hawk_tier_add_host(struct hawk *h, int node, uint64_t bytes, unsigned int *tier)
{
	struct hawk_tier_add a = { .kind = HAWK_TIER_HOST, .node = node, .bytes = bytes };

	if (node < -1 || bytes < HAWK_CHUNK_BYTES)
		return hawk_fail(-EINVAL, "host tier: node -1 or more and at least %u bytes",
				 HAWK_CHUNK_BYTES);
	return tier_add(h, &a, tier);
}

int hawk_tier_add_blk(struct hawk *h, const char *path, uint64_t bytes, unsigned int *tier)
{
	struct hawk_tier_add a = { .kind = HAWK_TIER_BLK, .node = -1, .bytes = bytes };
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= HAWK_PATH_MAX)
		return hawk_fail(-EINVAL, "block tier: path of 1 to %d bytes", HAWK_PATH_MAX - 1);
	if (bytes && bytes < HAWK_CHUNK_BYTES)
		return hawk_fail(-EINVAL, "block tier %s: at least %u bytes", path,
				 HAWK_CHUNK_BYTES);
	a.path = (uintptr_t)path;
	a.path_len = (uint32_t)len + 1;
	return tier_add(h, &a, tier);
}

int hawk_tier_add_pool(struct hawk *h, const char *path, unsigned int *tier)
{
	struct hawk_tier_add a = {
		.kind = HAWK_TIER_BLK, .node = -1, .flags = HAWK_TIER_PERSIST,
	};
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= HAWK_PATH_MAX)
		return hawk_fail(-EINVAL, "pool: path of 1 to %d bytes", HAWK_PATH_MAX - 1);
	a.path = (uintptr_t)path;
	a.path_len = (uint32_t)len + 1;
	return tier_add(h, &a, tier);
}

int hawk_tier_add_dmabuf(struct hawk *h, int fd, uint64_t bytes, unsigned int *tier)
{
	struct hawk_tier_add a = { .kind = HAWK_TIER_DMABUF, .node = -1, .bytes = bytes, .fd = fd };

	if (fd < 0)
		return hawk_fail(-EBADF, "dma-buf tier: descriptor %d", fd);
	if (bytes && bytes < HAWK_CHUNK_BYTES)
		return hawk_fail(-EINVAL, "dma-buf tier: at least %u bytes", HAWK_CHUNK_BYTES);
	return tier_add(h, &a, tier);
}

int hawk_tier_add_gpu(struct hawk *h, const char *gpu, uint64_t bytes, unsigned int *tier)
{
	struct hawk_tier_add a = { .kind = HAWK_TIER_USER, .node = -1, .bytes = bytes };
	size_t len = gpu ? strlen(gpu) : 0;

	if (!len || len >= HAWK_PATH_MAX || bytes < HAWK_CHUNK_BYTES)
		return hawk_fail(-EINVAL, "GPU tier: cuda:0, say, and at least %u bytes",
				 HAWK_CHUNK_BYTES);
	if (!h->ops->device)
		return hawk_fail(-EOPNOTSUPP, "GPU tier: the kernel's device takes the GPU's dma-buf");
	a.path = (uintptr_t)gpu;
	a.path_len = (uint32_t)len + 1;
	return tier_add(h, &a, tier);
}

int hawk_tier_device(struct hawk *h, unsigned int tier, struct hawk_device *d)
{
	if (!h->ops->device)
		return hawk_fail(-EOPNOTSUPP, "tier %u: the kernel's device has no GPU tiers", tier);
	return h->ops->device(h, tier, d);
}

int hawk_tier_dmabuf(struct hawk *h, unsigned int tier)
{
	if (!h->ops->device_dmabuf)
		return hawk_fail(-EOPNOTSUPP, "tier %u: the kernel's device has no GPU tiers", tier);
	return h->ops->device_dmabuf(h, tier);
}

int hawk_tier_del(struct hawk *h, unsigned int tier)
{
	return h->ops->tier_del(h, tier, 0);
}

int hawk_tier_del_force(struct hawk *h, unsigned int tier)
{
	return h->ops->tier_del(h, tier, HAWK_TIER_FORCE);
}

int hawk_tier_reopen(struct hawk *h, unsigned int tier)
{
	return h->ops->tier_del(h, tier, HAWK_TIER_REOPEN);
}

int hawk_tier_stat(struct hawk *h, unsigned int tier, struct hawk_tier_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->tier = tier;
	return h->ops->tier_info(h, info);
}

static int tier_admit(struct hawk *h, unsigned int tier, uint32_t flags, struct hawk_tier_admit *a)
{
	a->size = sizeof(*a);
	a->flags = flags;
	a->tier = tier;
	a->reserved[0] = 0;
	a->reserved[1] = 0;
	return h->ops->tier_admit(h, a);
}

int hawk_tier_admit_set(struct hawk *h, unsigned int tier, struct hawk_tier_admit *a)
{
	return tier_admit(h, tier, HAWK_ADMIT_SET, a);
}

int hawk_tier_admit_get(struct hawk *h, unsigned int tier, struct hawk_tier_admit *a)
{
	return tier_admit(h, tier, 0, a);
}

/* All of every tier that there is now. */
static int quota_all(struct hawk *h, struct hawk_quota *quota)
{
	struct hawk_tier_info info;
	struct hawk_query q;
	unsigned int t;
	int ret;

	ret = hawk_device_query(h, &q);
	for (t = 0; !ret && t < HAWK_TIERS_MAX; t++) {
		if (!(q.tiers & 1u << t))
			continue;
		ret = hawk_tier_stat(h, t, &info);
		quota[t].max_bytes = info.bytes;
	}
	return ret;
}

/* The head groups of which a space keeps blocks: all, or those of a rank. */
void hawk_kv_heads(struct hawk_kv *kv, uint32_t head_groups, uint32_t rank, uint32_t degree)
{
	kv->heads = degree ? head_groups / degree : head_groups;
	kv->head_first = rank * kv->heads;
}

int hawk_kv_create(struct hawk *h, const struct hawk_kv_params *p, struct hawk_kv **kv)
{
	struct hawk_space_create c = {
		.size = sizeof(c),
		.block_bytes = p->block_bytes,
		.block_tokens = p->block_tokens,
		.layers = p->layers,
		.head_groups = p->head_groups,
		.layout = p->layout,
		.dtype = p->dtype,
		.model_id = p->model_id,
		.max_blocks = p->max_blocks,
		.buckets = p->buckets,
		.mode = p->mode,
		.idle_ns = p->idle_ns,
		.tp_rank = p->tp_rank,
		.tp_degree = p->tp_degree,
		.flags = p->shift ? HAWK_SPACE_SHIFT : 0,
		.seqs = p->seqs,
		.segs = p->segs,
		.token_bytes = p->token_bytes,
		.planes = p->planes,
	};
	int ret;

	*kv = NULL;
	if (p->name) {
		ret = hawk_check_name(p->name);
		if (ret)
			return ret;
		c.flags |= HAWK_SPACE_NAMED;
		memcpy(c.name, p->name, strlen(p->name));
	}
	if (p->quota_all) {
		ret = quota_all(h, c.quota);
		if (ret)
			return ret;
	} else {
		memcpy(c.quota, p->quota, sizeof(c.quota));
	}
	ret = hawk_check_space(&c);
	return ret ? ret : h->ops->kv_create(h, &c, kv);
}

int hawk_kv_attach(struct hawk *h, const char *name, struct hawk_kv **kv)
{
	struct hawk_space_attach a = { .size = sizeof(a) };
	int ret = hawk_check_name(name);

	*kv = NULL;
	if (ret)
		return ret;
	memcpy(a.name, name, strlen(name));
	return h->ops->kv_attach(h, &a, kv);
}

int hawk_kv_attach_fd(struct hawk *h, int fd, struct hawk_kv **kv)
{
	struct hawk_space_attach a = { .size = sizeof(a), .flags = HAWK_ATTACH_FD, .fd = fd };

	*kv = NULL;
	if (fd < 0)
		return hawk_fail(-EBADF, "attaching to the space of descriptor %d", fd);
	return h->ops->kv_attach(h, &a, kv);
}

int hawk_kv_fd(struct hawk_kv *kv)
{
	return kv->h->ops->kv_fd(kv);
}

int hawk_kv_set(struct hawk *h, const char *name, uint32_t mask, uint32_t mode,
		uint64_t idle_ns)
{
	struct hawk_space_set s = {
		.size = sizeof(s), .mask = mask, .mode = mode, .idle_ns = idle_ns,
	};
	int ret = hawk_check_name(name);

	if (ret)
		return ret;
	ret = hawk_check_set(&s);
	if (ret)
		return ret;
	memcpy(s.name, name, strlen(name));
	return h->ops->kv_set(h, &s);
}

int hawk_kv_destroy(struct hawk *h, const char *name)
{
	struct hawk_space_destroy d = { .size = sizeof(d) };
	int ret = hawk_check_name(name);

	if (ret)
		return ret;
	memcpy(d.name, name, strlen(name));
	return h->ops->kv_destroy(h, &d);
}

void hawk_kv_close(struct hawk_kv *kv)
{
	if (kv)
		kv->h->ops->kv_close(kv);
}

int hawk_kv_info(struct hawk_kv *kv, struct hawk_space_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return kv->h->ops->kv_info(kv, info);
}
