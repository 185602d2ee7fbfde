// SPDX-License-Identifier: MIT
/*
 * abi.c - sizes and offsets of every structure of uapi/hawk.h
 *
 * The numbers are the ABI: they may be added to and never changed.  The compiler
 * checks them, also with -m32, where they must be the same (kmod/build.mk); a
 * 32-bit C library is not needed for that.
 */
#include <stddef.h>
#ifdef __LP64__
#include <stdio.h>
#endif

#include <linux/hawk.h>

#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), "size of struct " #type)
#define AT(type, member, bytes) \
	_Static_assert(offsetof(struct type, member) == (bytes), \
		       "offset of " #type "." #member)

SIZE(hawk_vtlb_entry, 16);
AT(hawk_vtlb_entry, lid, 0);
AT(hawk_vtlb_entry, val, 8);

SIZE(hawk_query, 40);
AT(hawk_query, abi_version, 8);
AT(hawk_query, batch_max, 12);
AT(hawk_query, features, 16);
AT(hawk_query, tiers, 24);
AT(hawk_query, tiers_max, 28);
AT(hawk_query, chunk_bytes, 32);
AT(hawk_query, frame_align, 36);

SIZE(hawk_tier_add, 40);
AT(hawk_tier_add, kind, 8);
AT(hawk_tier_add, node, 12);
AT(hawk_tier_add, bytes, 16);
AT(hawk_tier_add, path, 24);
AT(hawk_tier_add, path_len, 32);
AT(hawk_tier_add, tier, 36);

SIZE(hawk_tier_remove, 16);
AT(hawk_tier_remove, tier, 8);
AT(hawk_tier_remove, reserved, 12);

SIZE(hawk_tier_info, 80);
AT(hawk_tier_info, tier, 8);
AT(hawk_tier_info, kind, 12);
AT(hawk_tier_info, node, 16);
AT(hawk_tier_info, bytes, 24);
AT(hawk_tier_info, free_bytes, 32);
AT(hawk_tier_info, quarantine_bytes, 40);
AT(hawk_tier_info, read_bytes, 48);
AT(hawk_tier_info, write_bytes, 56);
AT(hawk_tier_info, io_errors, 64);
AT(hawk_tier_info, reclaimed_bytes, 72);

SIZE(hawk_quota, 16);

SIZE(hawk_space_create, 264);
AT(hawk_space_create, block_bytes, 8);
AT(hawk_space_create, block_tokens, 12);
AT(hawk_space_create, layers, 16);
AT(hawk_space_create, head_groups, 20);
AT(hawk_space_create, layout, 24);
AT(hawk_space_create, dtype, 28);
AT(hawk_space_create, model_id, 32);
AT(hawk_space_create, max_blocks, 40);
AT(hawk_space_create, buckets, 44);
AT(hawk_space_create, mode, 48);
AT(hawk_space_create, reserved, 52);
AT(hawk_space_create, vtlb_bytes, 56);
AT(hawk_space_create, quota, 64);
AT(hawk_space_create, name, 192);
AT(hawk_space_create, idle_ns, 256);

SIZE(hawk_space_attach, 80);
AT(hawk_space_attach, name, 8);
AT(hawk_space_attach, fd, 72);
AT(hawk_space_attach, reserved, 76);
SIZE(hawk_space_destroy, 72);
AT(hawk_space_destroy, name, 8);

SIZE(hawk_space_set, 88);
AT(hawk_space_set, mask, 8);
AT(hawk_space_set, mode, 12);
AT(hawk_space_set, idle_ns, 16);
AT(hawk_space_set, name, 24);

SIZE(hawk_space_info, 152);
AT(hawk_space_info, block_bytes, 8);
AT(hawk_space_info, model_id, 32);
AT(hawk_space_info, max_blocks, 40);
AT(hawk_space_info, buckets, 44);
AT(hawk_space_info, vtlb_bytes, 48);
AT(hawk_space_info, frames, 56);
AT(hawk_space_info, name, 88);

SIZE(hawk_item, 64);
AT(hawk_item, lid, 0);
AT(hawk_item, vt, 8);
AT(hawk_item, arg, 16);
AT(hawk_item, status, 24);
AT(hawk_item, flags, 28);
AT(hawk_item, key, 32);

SIZE(hawk_batch, 56);
AT(hawk_batch, count, 8);
AT(hawk_batch, done, 12);
AT(hawk_batch, items, 16);
AT(hawk_batch, deadline_ns, 24);
AT(hawk_batch, user_data, 32);
AT(hawk_batch, lease, 40);
AT(hawk_batch, prefix, 48);
AT(hawk_batch, tier, 52);

SIZE(hawk_lease_release, 16);
AT(hawk_lease_release, lease, 8);

SIZE(hawk_export, 48);
AT(hawk_export, count, 8);
AT(hawk_export, fd, 12);
AT(hawk_export, items, 16);
AT(hawk_export, export_id, 24);
AT(hawk_export, bytes, 32);
AT(hawk_export, tier, 40);
AT(hawk_export, reserved, 44);
SIZE(hawk_export_revoke, 24);
AT(hawk_export_revoke, export_id, 8);
AT(hawk_export_revoke, deadline_ns, 16);
SIZE(hawk_frame_info, 32);
AT(hawk_frame_info, tier, 8);
AT(hawk_frame_info, frame, 12);
AT(hawk_frame_info, offset, 16);
AT(hawk_frame_info, frames, 24);
AT(hawk_frame_info, reserved, 28);

SIZE(hawk_cqe, 40);
AT(hawk_cqe, lid, 8);
AT(hawk_cqe, vt, 16);
AT(hawk_cqe, index, 24);
AT(hawk_cqe, status, 28);
AT(hawk_cqe, flags, 32);

SIZE(hawk_ring, 128);
AT(hawk_ring, head, 0);
AT(hawk_ring, tail, 64);
AT(hawk_ring, mask, 68);
AT(hawk_ring, cqe, 128);

SIZE(hawk_ring_setup, 24);
AT(hawk_ring_setup, entries, 8);
AT(hawk_ring_setup, eventfd, 12);
AT(hawk_ring_setup, ring_bytes, 16);

SIZE(hawk_cancel, 24);
AT(hawk_cancel, user_data, 8);
AT(hawk_cancel, batches, 16);
AT(hawk_cancel, reserved, 20);

SIZE(hawk_uring_cmd, 16);
AT(hawk_uring_cmd, batch, 0);
AT(hawk_uring_cmd, reserved, 8);

SIZE(hawk_pin_query, 48);
AT(hawk_pin_query, count, 8);
AT(hawk_pin_query, reserved, 12);
AT(hawk_pin_query, lids, 16);
AT(hawk_pin_query, need_bytes, 24);
AT(hawk_pin_query, used_bytes, 32);
AT(hawk_pin_query, limit_bytes, 40);

SIZE(hawk_stats, 184);
AT(hawk_stats, blocks, 8);
AT(hawk_stats, allocs, 40);
AT(hawk_stats, evict_clean, 80);
AT(hawk_stats, reloads, 112);
AT(hawk_stats, quota, 144);
AT(hawk_stats, chunks, 152);

SIZE(hawk_hist, 384);
AT(hawk_hist, items, 8);
AT(hawk_hist, failed, 16);
AT(hawk_hist, ns, 24);
AT(hawk_hist, bucket, 32);

SIZE(hawk_stats_page, 12864);
AT(hawk_stats_page, version, 4);
AT(hawk_stats_page, seq, 8);
AT(hawk_stats_page, period_ms, 12);
AT(hawk_stats_page, time_ns, 16);
AT(hawk_stats_page, op, 64);
AT(hawk_stats_page, read, 6208);
AT(hawk_stats_page, write, 9280);
AT(hawk_stats_page, stats, 12352);
_Static_assert(sizeof(struct hawk_stats) <= HAWK_STATS_ROOM, "the stats page has no more room");
_Static_assert(HAWK_STATS_OP(HAWK_IOC_TRANSLATE) < HAWK_STATS_OPS, "a call without a place");

_Static_assert(HAWK_IOC_QUERY == 0xef00, "ioctl numbers carry no size");
_Static_assert(HAWK_IOC_TRANSLATE == 0xef1a, "last batch call");
_Static_assert(HAWK_MMAP_TIER(HAWK_TIERS_MAX) <= 1ull << 44, "reachable by mmap2()");

#ifdef __LP64__
int main(void)
{
	printf("TAP version 13\n1..1\nok 1 - sizes and offsets of the ABI, 32 and 64 bit\n");
	return 0;
}
#endif
