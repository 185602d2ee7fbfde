// SPDX-License-Identifier: MIT
/*
 * peer_net.c - endpoints of the transport and the memory that their NIC may use
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer.h"

static const struct {
	const char *scheme;
	const struct fab_ops *ops;
} fabrics[] = {
	{ "rdma:", &hawk_fab_rdma },
	{ "loop:", &hawk_fab_loop },
};

uint64_t hawk_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* When @timeout_ms are over. */
uint64_t hawk_peer_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : hawk_mono_ns() + (uint64_t)timeout_ms * 1000000u;
}

static int check_params(const struct hawk_net_params *p)
{
	if (!p->key || p->key_bytes < HAWK_NET_KEY_MIN || p->key_bytes > HAWK_NET_KEY_MAX)
		return hawk_fail(-EINVAL, "net: a key of %u bytes: %u to %u", p->key_bytes,
				 HAWK_NET_KEY_MIN, HAWK_NET_KEY_MAX);
	if (p->depth && (p->depth < 16 || p->depth > 4096))
		return hawk_fail(-EINVAL, "net: %u requests under way: 16 to 4096, or 0", p->depth);
	return 0;
}

int hawk_net_open(const char *url, const struct hawk_net_params *p, struct hawk_net **netp)
{
	struct hawk_net *net;
	unsigned int i;
	int ret = check_params(p);

	if (ret)
		return ret;
	for (i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++)
		if (!strncmp(url, fabrics[i].scheme, strlen(fabrics[i].scheme)))
			break;
	if (i == sizeof(fabrics) / sizeof(fabrics[0]))
		return hawk_fail(-EINVAL, "net: \"%s\": an endpoint is \"rdma:ADDRESS\" or \"loop:\"",
				 url);
	if (sodium_init() < 0)
		return hawk_fail(-EIO, "net: libsodium finds no random numbers");
	net = calloc(1, sizeof(*net));
	if (!net)
		return hawk_fail(-ENOMEM, "net: an endpoint");
	net->ops = fabrics[i].ops;
	net->depth = p->depth ? p->depth : 256;
	ret = net->ops->open(url + strlen(fabrics[i].scheme), net->depth + 2 * FAB_SLOTS, &net->fab);
	if (ret) {
		free(net);
		return ret;
	}
	net->key_bytes = p->key_bytes;
	memcpy(net->key, p->key, p->key_bytes);
	net->ops->info(net->fab, &net->info);
	if (net->info.entries > FAB_SGE_MAX)
		net->info.entries = FAB_SGE_MAX;
	*netp = net;
	return 0;
}

void hawk_net_close(struct hawk_net *net)
{
	if (!net)
		return;
	net->ops->close(net->fab);
	sodium_memzero(net->key, sizeof(net->key));
	free(net);
}

void hawk_net_info(const struct hawk_net *net, struct hawk_net_info *info)
{
	uint32_t entries = net->info.entries;

	net->ops->info(net->fab, info);
	info->entries = entries;
}

int hawk_net_listen(struct hawk_net *net, const char *where)
{
	return net->ops->listen(net->fab, where);
}

int hawk_mem_add(struct hawk_net *net, const struct hawk_mem_params *p, struct hawk_mem **memp)
{
	struct hawk_mem *mem;
	int ret;

	if (!p->bytes || (!p->addr && p->dmabuf < 0))
		return hawk_fail(-EINVAL, "memory: %llu bytes at %p, dma-buf %d",
				 (unsigned long long)p->bytes, p->addr, p->dmabuf);
	if (p->bytes > UINTPTR_MAX - (uintptr_t)p->addr ||
	    p->dmabuf_off > UINT64_MAX - p->bytes ||
	    p->flags & ~(HAWK_MEM_DEVICE | HAWK_MEM_BOUNCE) ||
	    (p->flags & HAWK_MEM_BOUNCE && !p->addr))
		return hawk_fail(-EINVAL, "memory: %llu bytes from %p on, offset %llu, flags %#x",
				 (unsigned long long)p->bytes, p->addr,
				 (unsigned long long)p->dmabuf_off, p->flags);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return hawk_fail(-ENOMEM, "memory: its registration");
	mem->net = net;
	mem->reg.p = *p;
	if (p->flags & HAWK_MEM_BOUNCE) {
		mem->reg.how = HAWK_MEM_BOUNCED;
		*memp = mem;
		return 0;
	}
	ret = net->ops->reg(net->fab, &mem->reg);
	if (ret) {
		free(mem);
		return ret;
	}
	*memp = mem;
	return 0;
}

int hawk_mem_chunk(struct hawk_net *net, struct hawk_kv *kv, uint64_t vt, struct hawk_mem **mem,
		   uint64_t *off)
{
	uint32_t frames = (uint32_t)(HAWK_CHUNK_BYTES / kv->block_bytes);
	struct hawk_mem_params p = { .bytes = (uint64_t)frames * kv->block_bytes, .dmabuf = -1 };
	uint8_t *block = hawk_addr(kv, vt);

	if (!block)
		return hawk_fail(-EINVAL, "memory: %#llx is no block in a host tier",
				 (unsigned long long)vt);
	*off = (uint64_t)(HAWK_VT_FRAME(vt) % frames) * kv->block_bytes;
	p.addr = block - *off;
	return hawk_mem_add(net, &p, mem);
}

void hawk_mem_del(struct hawk_mem *mem)
{
	if (!mem)
		return;
	if (mem->reg.how != HAWK_MEM_BOUNCED)
		mem->net->ops->dereg(mem->net->fab, &mem->reg);
	free(mem);
}

void hawk_mem_info(const struct hawk_mem *mem, struct hawk_mem_info *info)
{
	*info = (struct hawk_mem_info){ .bytes = mem->reg.p.bytes, .how = mem->reg.how };
	memcpy(info->why, mem->reg.why, sizeof(info->why));
}
