/* SPDX-License-Identifier: GPL-2.0 */
/*
 * window.h - what another module finds out of addresses in mapped windows (namespace HAWK)
 */
#ifndef HAWK_WINDOW_H
#define HAWK_WINDOW_H

#include <linux/types.h>

struct dma_buf;

/**
 * hawk_window_has() - do addresses of the caller lie in one window of /dev/hawk?
 * @addr: first address
 * @size: bytes
 *
 * Context: process; takes the caller's mmap_lock.
 * Return: whether they do.
 */
bool hawk_window_has(unsigned long addr, size_t size);

/**
 * hawk_window_export() - blocks in a window as a dma-buf
 * @addr: first address
 * @size: bytes
 * @write: importers may write
 * @offset: out, byte offset of @addr in the dma-buf
 *
 * As by HAWK_IOC_EXPORT with HAWK_EXPORT_REVOCABLE, of all blocks that the addresses touch.
 * The file that the window is of must have pinned each of them. The dma-buf has pins of its
 * own until it is released or revoked: by the tier's removal, by who needs the room, when
 * the file is closed.
 *
 * Context: process; may sleep.
 * Return: the dma-buf, the caller's to put; -ENXIO: no such window; -EACCES: it may only be
 * read; -EFAULT: a frame with no block that the file has pinned; -E2BIG: more than
 * HAWK_BATCH_MAX blocks; -ENOMEM, also if RLIMIT_MEMLOCK is reached; -EOVERFLOW; -EINTR.
 */
struct dma_buf *hawk_window_export(unsigned long addr, size_t size, bool write, u64 *offset);

#endif /* HAWK_WINDOW_H */
