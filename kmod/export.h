/* SPDX-License-Identifier: GPL-2.0 */
/*
 * export.h - an exported dma-buf, as export.c and dmabuf.c share it
 *
 *	                          revoke: importers told, processes' mappings taken
 *	LIVE ---------------------------------------> REVOKED (no new user)
 *	  |                                              | last user gone, fences
 *	  | last reference to the dma-buf                | signalled (end_work)
 *	  +----------------------> ENDED <---------------+
 *	                           unpinned, out of the space's table, space put
 *
 * A user is whoever may touch the memory without asking again: an sg table or a
 * kernel mapping.  Mappings of processes are no users, they are zapped, during which
 * the revoker is one.
 *
 * Order of locks: dma_resv (which an importer may hold when it calls us, and which
 * is held when importers are told) > hawk_dmabuf.lock.  Under dma_resv nothing else
 * of hawk.ko is taken, so an importer may unmap from within move_notify.
 */
#ifndef HAWK_EXPORT_H
#define HAWK_EXPORT_H

#include "hawk.h"

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>

/**
 * struct hawk_dmabuf - blocks exported as one dma-buf
 * @ref: the dma-buf; a revoker; @end_work
 * @resv: the dma-buf's reservation; guards @buf, @maps and the setting of @revoked
 * @lock: guards @revoked, @users and @ending
 * @revoked: no new user
 * @ending: somebody is unpinning, or has
 * @users: sg tables, kernel mappings, revokers that zap
 * @ended: unpinned
 * @wait: for @ended
 * @end_work: unpins when the last user has gone
 * @buf: the dma-buf, NULL once its last reference is gone
 * @inode: the dma-buf's, referenced; its mapping has the mappings of processes
 * @maps: sg tables, &struct hawk_dmabuf_map
 * @as: the space, referenced until the end
 * @user: whose RLIMIT_MEMLOCK account pays for the blocks, referenced; NULL: nobody's
 * @owner: the file that made it, only compared; NULL when that is closed.  Guarded
 *	by the xa_lock of hawk_as.exports
 * @id: in hawk_as.exports, 0 if it is not there yet
 * @tier: of the blocks
 * @revocable: HAWK_EXPORT_REVOCABLE
 * @read_only: importers may only read
 * @bytes: size of the dma-buf
 * @npages: its pages
 * @pages: in the dma-buf's order, one reference each until the end
 * @gone: the page that a kernel mapping made after the revocation leads to, or NULL;
 *	guarded by what the kernel serialises such mappings with
 * @n: blocks
 * @refs: the blocks, pinned until the end, by rising number
 */
struct hawk_dmabuf {
	struct kref ref;
	struct dma_resv resv;
	spinlock_t lock;
	bool revoked;
	bool ending;
	u32 users;
	bool ended;
	wait_queue_head_t wait;
	struct work_struct end_work;
	struct dma_buf *buf;
	struct inode *inode;
	struct list_head maps;
	struct hawk_as *as;
	struct user_struct *user;
	const struct hawk_file *owner;
	u32 id;
	u32 tier;
	bool revocable;
	bool read_only;
	u64 bytes;
	u32 npages;
	struct page **pages;
	struct page *gone;
	u32 n;
	struct hawk_ref *refs;
};

int hawk_dmabuf_get_user(struct hawk_dmabuf *x);
void hawk_dmabuf_put_user(struct hawk_dmabuf *x);
void hawk_dmabuf_released(struct hawk_dmabuf *x);

extern const struct dma_buf_ops hawk_dmabuf_ops;

/* A mapping's offset in a window (window.c): its tier, and the bytes from frame 0 on. */
#define HAWK_MMAP_TIER_ID(offset)	((u32)(((offset) - HAWK_MMAP_TIER(0)) >> 40))
#define HAWK_MMAP_TIER_OFFSET(offset)	((offset) & ((1ull << 40) - 1))

bool hawk_vma_is_window(const struct vm_area_struct *vma);
int hawk_pin_frame(struct hawk_file *f, u32 tier, u32 frame, u64 *vt, struct hawk_ref *ref);
struct dma_buf *hawk_export_frames(struct hawk_file *f, u32 tier, u32 frame, u32 n,
				   bool read_only);

#endif /* HAWK_EXPORT_H */
