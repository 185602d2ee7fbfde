/* SPDX-License-Identifier: MIT */
/*
 * priv.h - what the files of libhawk share
 *
 * A public call checks its arguments (check.c), fills the structure that the
 * kernel ABI has for it and hands that to the backend's table of operations.
 * So both backends see the same requests, refused for the same reasons.
 */
#ifndef HAWK_PRIV_H
#define HAWK_PRIV_H

#include <stdbool.h>

/* The library is built with hidden visibility; its API is what hawk.h declares. */
#pragma GCC visibility push(default)
#include <hawk/hawk.h>
#pragma GCC visibility pop

/**
 * struct hawk_ops - a backend
 * @name: as hawk_backend() tells
 *
 * Operations return 0 or a negative errno and have set the error text.
 * @tier_del: @flags are those of &struct hawk_tier_remove
 * @kv_attach: by name, or by descriptor with HAWK_ATTACH_FD
 * @export_blocks, @export_end, @frame_info: NULL: not offered
 * @device, @device_dmabuf, @block_copy: NULL: no tier has memory that the CPU cannot reach
 * @draft_open: @mem: out, the ring's memory, of @o->bytes; @draft_close takes it back
 * @batch: @op is HAWK_IOC_ALLOC to HAWK_IOC_TRANSLATE
 */
struct hawk_ops {
	const char *name;
	void (*close)(struct hawk *h);
	int (*query)(struct hawk *h, struct hawk_query *q);
	int (*tier_add)(struct hawk *h, struct hawk_tier_add *a);
	int (*tier_del)(struct hawk *h, unsigned int tier, unsigned int flags);
	int (*tier_info)(struct hawk *h, struct hawk_tier_info *info);
	int (*tier_admit)(struct hawk *h, struct hawk_tier_admit *a);
	int (*kv_create)(struct hawk *h, struct hawk_space_create *c, struct hawk_kv **kv);
	int (*kv_attach)(struct hawk *h, const struct hawk_space_attach *a, struct hawk_kv **kv);
	int (*kv_set)(struct hawk *h, const struct hawk_space_set *s);
	int (*kv_destroy)(struct hawk *h, const struct hawk_space_destroy *d);
	void (*kv_close)(struct hawk_kv *kv);
	int (*kv_info)(struct hawk_kv *kv, struct hawk_space_info *info);
	int (*kv_stats)(struct hawk_kv *kv, struct hawk_stats *st);
	int (*kv_stats_page)(struct hawk_kv *kv, struct hawk_stats_page *page);
	int (*kv_fd)(struct hawk_kv *kv);
	int (*batch)(struct hawk_kv *kv, unsigned int op, struct hawk_batch *b);
	int (*gather)(struct hawk_kv *kv, struct hawk_gather *g);
	int (*lease_end)(struct hawk_kv *kv, uint64_t lease);
	int (*ring_open)(struct hawk_kv *kv, unsigned int entries, int efd);
	int (*cancel)(struct hawk_kv *kv, struct hawk_cancel *c);
	int (*pin_query)(struct hawk_kv *kv, struct hawk_pin_query *q);
	int (*export_blocks)(struct hawk_kv *kv, struct hawk_export *x);
	int (*export_end)(struct hawk_kv *kv, struct hawk_export_revoke *r);
	int (*frame_info)(struct hawk_kv *kv, struct hawk_frame_info *info);
	int (*device)(struct hawk *h, unsigned int tier, struct hawk_device *d);
	int (*device_dmabuf)(struct hawk *h, unsigned int tier);
	int (*block_copy)(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *mem, uint32_t bytes,
			  bool in);
	int (*draft_open)(struct hawk_kv *kv, struct hawk_draft_open *o, void **mem);
	void (*draft_close)(struct hawk_kv *kv, const struct hawk_draft_open *o, void *mem);
	int (*seq)(struct hawk_kv *kv, struct hawk_seq_batch *b);
	int (*seq_map)(struct hawk_kv *kv, struct hawk_seq_map *map);
	int (*elastic)(struct hawk_kv *kv, struct hawk_elastic *e);
	int (*estimate)(struct hawk_kv *kv, struct hawk_estimate *e);
	int (*phase)(struct hawk_kv *kv, struct hawk_phase *ph);
};

/* First member of each backend's handle. */
struct hawk {
	const struct hawk_ops *ops;
};

/**
 * struct hawk_kv - first member of each backend's space handle
 * @h: its device
 * @vtlb: the mapped vTLB
 * @vtlb_lines: lines of it, a power of two
 * @block_bytes: bytes of a block
 * @block_tokens: tokens of a block
 * @layers: layers of the model
 * @heads: its head groups that the space keeps
 * @head_first: the first one of them
 * @frames: frames of each host tier's window, 0 where there is none
 * @window: the windows of the host tiers
 * @ring: the completion ring or NULL
 * @ring_fd: descriptor to poll, -1 without a ring
 * @ring_efd: @ring_fd is an eventfd that hawk_reap() must lower
 */
struct hawk_kv {
	struct hawk *h;
	const struct hawk_vtlb_entry *vtlb;
	uint64_t vtlb_lines;
	uint32_t block_bytes;
	uint32_t block_tokens;
	uint32_t layers;
	uint32_t heads;
	uint32_t head_first;
	uint32_t frames[HAWK_TIERS_MAX];
	uint8_t *window[HAWK_TIERS_MAX];
	struct hawk_ring *ring;
	int ring_fd;
	bool ring_efd;
};

/* error.c */
int hawk_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int hawk_fail_as(int err, const char *why);
void hawk_fail_clear(void);

/* open.c */
void hawk_kv_heads(struct hawk_kv *kv, uint32_t head_groups, uint32_t rank, uint32_t degree);

/* url.c */

/**
 * struct hawk_url - a parsed URL
 * @dev: kernel backend at @path; else embedded with the sizes below
 * @path: the device, or the flash files, one behind the other
 * @used: bytes of these
 * @dram: bytes of the DRAM tier
 * @drive: the flash files, @drives of them, in @path: copies of this struct are none
 * @flash: bytes of each of these flash tiers
 * @persist: the flash files are pools
 * @budget: bytes per day that may be written to flash, 0: no limit
 * @gpu: the GPU, as hawk_tier_add_gpu() calls it, empty for none
 * @gpu_bytes: of its memory
 * @writeback: clean or free frames kept per 1024, 0 for no background writes
 * @compact: sequences with many partly empty blocks are compacted
 * @pace: deliveries are paced
 * @link_mb: bandwidth of the link to the accelerator, 10^6 bytes per second, 0: no cap
 * @cap: of it that deliveries may use, percent, 0: the default
 */
struct hawk_url {
	bool dev;
	char path[HAWK_PATH_MAX];
	uint32_t used;
	uint64_t dram;
	const char *drive[HAWK_TIERS_MAX - 1];
	uint32_t drives;
	uint64_t flash;
	uint64_t budget;
	char gpu[16];
	uint64_t gpu_bytes;
	bool persist;
	uint32_t writeback;
	bool compact;
	bool pace;
	uint32_t link_mb;
	uint32_t cap;
};

int hawk_url_parse(const char *url, struct hawk_url *u);

/* check.c: refusals that do not depend on the backend */
int hawk_check_space(const struct hawk_space_create *c);
int hawk_check_name(const char *name);
int hawk_check_set(const struct hawk_space_set *s);
int hawk_check_batch(unsigned int op, const struct hawk_batch *b);
int hawk_check_seq(const struct hawk_seq_batch *b);
bool hawk_key_is_zero(const uint8_t *key);

/* stats.c */
void hawk_stats_copy(const struct hawk_stats_page *page, size_t bytes,
		     struct hawk_stats_page *copy);

/* ring.c */
uint64_t hawk_ring_bytes(unsigned int entries);

/* dev.c, embed.c */
int hawk_dev_open(const char *path, struct hawk **hp);
int hawk_embed_open(const struct hawk_url *u, struct hawk **hp);

#endif /* HAWK_PRIV_H */
