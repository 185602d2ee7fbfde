/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - tracepoints, system "hawk"
 *
 * Fields keep their names and meaning.  space is the number of the space since
 * module load, ret 0 or a negative errno, offsets and sizes are in bytes, times
 * in nanoseconds.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hawk

#if !defined(HAWK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HAWK_TRACE_H

#include <linux/tracepoint.h>

#include "core/core.h"

TRACE_DEFINE_ENUM(HAWK_MOVE_WRITE);
TRACE_DEFINE_ENUM(HAWK_MOVE_READ);
TRACE_DEFINE_ENUM(HAWK_MOVE_COPY);

#define hawk_show_move(kind) \
	__print_symbolic(kind, { HAWK_MOVE_WRITE, "write" }, { HAWK_MOVE_READ, "read" }, \
			 { HAWK_MOVE_COPY, "copy" })

/* One item of a batch call, with its final status. */
DECLARE_EVENT_CLASS(hawk_item,
	TP_PROTO(u64 space, u64 lid, u64 vt, int ret),
	TP_ARGS(space, lid, vt, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(u64, vt)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->lid = lid;
		__entry->vt = vt;
		__entry->ret = ret;
	),
	TP_printk("space=%llu lid=%#llx vt=%#llx ret=%d", __entry->space, __entry->lid,
		  __entry->vt, __entry->ret)
);

#define DEFINE_HAWK_ITEM_EVENT(name)				\
	DEFINE_EVENT(hawk_item, name,				\
		TP_PROTO(u64 space, u64 lid, u64 vt, int ret),	\
		TP_ARGS(space, lid, vt, ret))

DEFINE_HAWK_ITEM_EVENT(hawk_alloc);
DEFINE_HAWK_ITEM_EVENT(hawk_put);
DEFINE_HAWK_ITEM_EVENT(hawk_lookup);
DEFINE_HAWK_ITEM_EVENT(hawk_pin);
DEFINE_HAWK_ITEM_EVENT(hawk_unpin);
DEFINE_HAWK_ITEM_EVENT(hawk_get);
DEFINE_HAWK_ITEM_EVENT(hawk_reload);

/* A block found no room: ret is -ENOSPC (tier) or -EDQUOT (quota of the space). */
TRACE_EVENT(hawk_quota,
	TP_PROTO(u64 space, u64 lid, int ret),
	TP_ARGS(space, lid, ret),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, lid)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->lid = lid;
		__entry->ret = ret;
	),
	TP_printk("space=%llu lid=%#llx ret=%d", __entry->space, __entry->lid, __entry->ret)
);

/* A move between tiers.  latency is 0 at its start. */
DECLARE_EVENT_CLASS(hawk_move,
	TP_PROTO(u64 space, const struct hawk_move *mv, u64 latency),
	TP_ARGS(space, mv, latency),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u64, src_off)
		__field(u64, dst_off)
		__field(u64, latency)
		__field(u32, block)
		__field(u32, gen)
		__field(u32, src_tier)
		__field(u32, dst_tier)
		__field(u32, kind)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->src_off = mv->src_off;
		__entry->dst_off = mv->dst_off;
		__entry->latency = latency;
		__entry->block = mv->block;
		__entry->gen = mv->gen;
		__entry->src_tier = mv->src_tier;
		__entry->dst_tier = mv->dst_tier;
		__entry->kind = mv->kind;
		__entry->ret = latency ? mv->result : 0;
	),
	TP_printk("space=%llu %s block=%u gen=%u tier%u+%llu -> tier%u+%llu latency=%llu ret=%d",
		  __entry->space, hawk_show_move(__entry->kind), __entry->block, __entry->gen,
		  __entry->src_tier, __entry->src_off, __entry->dst_tier, __entry->dst_off,
		  __entry->latency, __entry->ret)
);

#define DEFINE_HAWK_MOVE_EVENT(name)						\
	DEFINE_EVENT(hawk_move, name,						\
		TP_PROTO(u64 space, const struct hawk_move *mv, u64 latency),	\
		TP_ARGS(space, mv, latency))

DEFINE_HAWK_MOVE_EVENT(hawk_move_start);
DEFINE_HAWK_MOVE_EVENT(hawk_move_done);
DEFINE_HAWK_MOVE_EVENT(hawk_evict);

/* A space comes or goes. */
DECLARE_EVENT_CLASS(hawk_space,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info),
	TP_STRUCT__entry(
		__field(u64, space)
		__field(u32, block_bytes)
		__field(u32, max_blocks)
		__array(char, name, HAWK_NAME_MAX)
	),
	TP_fast_assign(
		__entry->space = space;
		__entry->block_bytes = info->block_bytes;
		__entry->max_blocks = info->max_blocks;
		memcpy(__entry->name, info->name, HAWK_NAME_MAX);
	),
	TP_printk("space=%llu name=%s block_bytes=%u max_blocks=%u", __entry->space,
		  __entry->name, __entry->block_bytes, __entry->max_blocks)
);

DEFINE_EVENT(hawk_space, hawk_space_create,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info));
DEFINE_EVENT(hawk_space, hawk_space_destroy,
	TP_PROTO(u64 space, const struct hawk_space_info *info),
	TP_ARGS(space, info));

#endif /* HAWK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
