/* SPDX-License-Identifier: GPL-2.0 */
/*
 * peer_mem.h - clients of RDMA stacks that register memory of other drivers
 *
 * NVIDIA's (Mellanox') RDMA stack and those derived from it have this interface; the
 * kernel's own has dma-bufs instead.  Their header is <rdma/peer_mem.h>; this one says the
 * same in other words, so that a kernel without it can be built for.  Layout and names are
 * theirs.
 *
 * The stack asks each client in turn whether an address that is to be registered is its
 * own (@acquire), and if so, in this order, for one registration:
 *
 *	acquire -> get_pages -> dma_map -> ... -> dma_unmap -> put_pages -> release
 *
 * What fails ends what was before it.  When a client wants its memory back it calls the
 * function that it was given at registration with the core_context of get_pages; the stack
 * stops the NIC and calls dma_unmap and put_pages before that returns, and @release when
 * the registration's owner ends it.  core_context is a number that the stack looks up: a call
 * that comes after the end does nothing.
 */
#ifndef HAWK_PEER_MEM_H
#define HAWK_PEER_MEM_H

#include <linux/device.h>
#include <linux/errno.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16

/**
 * struct peer_memory_client - what a client does
 * @name: of the client
 * @version: of the client
 * @acquire: 1: the addresses are this client's, and @client_context is set; 0: they are
 *	not. @peer_mem_private_data and @peer_mem_name are NULL
 * @get_pages: have the memory stay; 0 or a negative errno. @force is of no use,
 *	@sg_head not yet
 * @dma_map: fill @sg_head with DMA addresses for @dma_device, @nmap entries in all; the
 *	table's memory is the client's. 0 or a negative errno
 * @dma_unmap: the device does not use them any more
 * @put_pages: the memory need not stay
 * @get_page_size: bytes that are contiguous at least, after @get_pages
 * @release: the registration has ended
 * @get_context_private_data: not used by this client
 * @put_context_private_data: likewise
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		       char *peer_mem_name, void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context, u64 core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context, struct device *dma_device,
		       int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
};

/* Takes a registration back: 0, or a negative errno. May sleep. */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/**
 * ib_register_peer_memory_client() - become a client
 * @client: what it does
 * @invalidate_callback: out, for taking registrations back
 *
 * Return: a handle, or NULL. May sleep.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate_callback);

/**
 * ib_unregister_peer_memory_client() - be none any more
 * @reg_handle: what the registration gave
 *
 * All registrations have ended, or it waits for that. May sleep.
 */
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* HAWK_PEER_MEM_H */
