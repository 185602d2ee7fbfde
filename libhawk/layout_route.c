// SPDX-License-Identifier: MIT
/*
 * layout_route.c - the ways from one layout to another: their plans, their cost, the best
 *
 * Time is taken to be linear in bytes, requests, entries and pieces, as hawk_costs_nic() and
 * hawk_costs_cpu() measure it.  A CPU and the link work at the same time once the first
 * staging frame is full, so the slower one counts, and of the other one frame.
 */
#include <errno.h>
#include <string.h>

#include "layout.h"

static const char *const way_names[HAWK_WAYS] = {
	[HAWK_WAY_ENTRIES] = "entries", [HAWK_WAY_KEYS] = "keys", [HAWK_WAY_SENDER] = "sender",
	[HAWK_WAY_RECEIVER] = "receiver", [HAWK_WAY_BIRTH] = "birth",
};

/* ---- plans ---- */

static void narrow(uint32_t *first, uint32_t *n, uint32_t other_first, uint32_t other_n)
{
	uint64_t end = (uint64_t)*first + *n, other_end = (uint64_t)other_first + other_n;

	if (other_first > *first)
		*first = other_first;
	if (other_end < end)
		end = other_end;
	*n = end > *first ? (uint32_t)(end - *first) : 0;
}

/* Of @l, what is moved, packed: blocks one behind the other. */
int hawk_layout_stage(const struct hawk_layout *l, const struct hawk_layout *other,
		      const struct hawk_range *r, struct hawk_layout *stage)
{
	uint64_t end = (uint64_t)r->token_first + r->tokens;

	*stage = *l;
	memset(stage->stride, 0, sizeof(stage->stride));
	narrow(&stage->layer_first, &stage->layers, other->layer_first, other->layers);
	if (r->layers)
		narrow(&stage->layer_first, &stage->layers, r->layer_first, r->layers);
	narrow(&stage->plane_first, &stage->planes, other->plane_first, other->planes);
	narrow(&stage->head_first, &stage->heads, other->head_first, other->heads);
	if (!stage->layers || !stage->planes || !stage->heads)
		return hawk_fail(-ENOENT, "layout: the two sides have no layer, plane or head in common");
	if (!r->tokens)
		return hawk_fail(-EINVAL, "layout: a range of 0 tokens");
	stage->block_first = r->token_first / l->block_tokens;
	stage->blocks = (uint32_t)((end - 1) / l->block_tokens - stage->block_first + 1);
	return hawk_layout_init(stage);
}

static bool same_blocks(const struct hawk_layout *a, const struct hawk_layout *b)
{
	return hawk_layout_tag(a) == hawk_layout_tag(b) && a->block_tokens == b->block_tokens;
}

static int open_staged(const struct hawk_layout *src, const struct hawk_layout *dst,
		       const struct hawk_range *r, struct hawk_route *rt)
{
	struct hawk_range padded = *r;
	bool sender = rt->way == HAWK_WAY_SENDER;
	int ret;

	padded.flags |= HAWK_RANGE_PADDED;
	ret = hawk_layout_stage(sender ? dst : src, sender ? src : dst, r, &rt->stage);
	if (ret)
		return ret;
	ret = hawk_layout_plan_open(src, &rt->stage, r, sender ? &rt->before : &rt->wire);
	if (!ret)
		ret = hawk_layout_plan_open(&rt->stage, dst, &padded,
					    sender ? &rt->wire : &rt->after);
	if (ret)
		hawk_route_close(rt);
	return ret;
}

int hawk_route_open(const struct hawk_layout *src, const struct hawk_layout *dst,
		    const struct hawk_range *r, unsigned int way, struct hawk_route *rt)
{
	*rt = (struct hawk_route){ .way = way };
	switch (way) {
	case HAWK_WAY_SENDER:
	case HAWK_WAY_RECEIVER:
		return open_staged(src, dst, r, rt);
	case HAWK_WAY_BIRTH:
		if (!same_blocks(src, dst))
			return hawk_fail(-EOPNOTSUPP, "layout: the source was not born in the layout that is wanted");
		/* fall through */
	case HAWK_WAY_ENTRIES:
	case HAWK_WAY_KEYS:
		return hawk_layout_plan_open(src, dst, r, &rt->wire);
	default:
		return hawk_fail(-EINVAL, "layout: there is no way %u", way);
	}
}

void hawk_route_close(struct hawk_route *rt)
{
	hawk_layout_plan_close(rt->before);
	hawk_layout_plan_close(rt->wire);
	hawk_layout_plan_close(rt->after);
	rt->before = NULL;
	rt->wire = NULL;
	rt->after = NULL;
}

/* ---- cost ---- */

static uint64_t times(uint64_t n, uint64_t ps)
{
	return (uint64_t)((unsigned __int128)n * ps / 1000);
}

static uint64_t bytes_ns(uint64_t bytes, uint64_t mb_per_s)
{
	return (uint64_t)((unsigned __int128)bytes * 1000 / mb_per_s);
}

static uint64_t all_bytes(const struct hawk_layout_plan *plan)
{
	return plan->info.bytes + plan->info.pad_bytes;
}

static uint64_t wire_ns(const struct hawk_layout_plan *wire, const struct hawk_costs *c,
			uint64_t requests)
{
	return bytes_ns(all_bytes(wire), c->link_mb_per_s) + times(requests, c->request_ps);
}

/* The CPU's part and the link's, one frame apart. */
static uint64_t staged_ns(const struct hawk_route *rt, const struct hawk_costs *c, uint64_t writes)
{
	const struct hawk_layout_plan *cpu = rt->before ? rt->before : rt->after;
	uint64_t rate = rt->after && c->far_copy_mb_per_s ? c->far_copy_mb_per_s :
			c->copy_mb_per_s;
	uint64_t piece = rt->after && c->far_piece_ps ? c->far_piece_ps : c->piece_ps;
	uint64_t copy = bytes_ns(all_bytes(cpu), rate) + times(cpu->info.pieces, piece);
	uint64_t link = wire_ns(rt->wire, c, writes);
	uint64_t more = copy > link ? copy : link, less = copy > link ? link : copy;
	uint64_t bytes = all_bytes(rt->wire);

	if (c->frame_bytes && c->frame_bytes < bytes)
		less = (uint64_t)((unsigned __int128)less * c->frame_bytes / bytes);
	return more + less;
}

static void offer(struct hawk_choice *ch, unsigned int way, uint64_t ns)
{
	uint64_t best = ch->possible ? ch->ns[ch->way] : ~0ull;

	ch->ns[way] = ns;
	if (ns < best || (ns == best && way == HAWK_WAY_BIRTH))
		ch->way = way;
	ch->possible |= 1u << way;
}

static int weigh_direct(const struct hawk_layout *src, const struct hawk_layout *dst,
			const struct hawk_range *r, const struct hawk_costs *c,
			struct hawk_choice *ch)
{
	struct hawk_layout_plan *plan;
	uint64_t entries;
	int ret;

	ret = hawk_layout_plan_open(src, dst, r, &plan);
	if (ret)
		return ret;
	ch->bytes = all_bytes(plan);
	ch->pieces = plan->info.pieces;
	entries = hawk_requests_entries(plan);
	if (c->entries) {
		ch->requests = hawk_requests_count(plan, c->entries);
		offer(ch, HAWK_WAY_ENTRIES, wire_ns(plan, c, ch->requests) +
		      times(entries - ch->requests, c->entry_ps));
	}
	if (c->strips) {
		ch->keys = hawk_keys_count(plan, c->strips);
		offer(ch, HAWK_WAY_KEYS, wire_ns(plan, c, ch->keys) + times(ch->keys, c->key_ps));
	}
	if (same_blocks(src, dst)) {
		ch->writes[HAWK_WAY_BIRTH] = hawk_requests_count(plan, 1);
		offer(ch, HAWK_WAY_BIRTH, wire_ns(plan, c, ch->writes[HAWK_WAY_BIRTH]));
	}
	hawk_layout_plan_close(plan);
	return 0;
}

static int weigh_staged(const struct hawk_layout *src, const struct hawk_layout *dst,
			const struct hawk_range *r, const struct hawk_costs *c, unsigned int way,
			struct hawk_choice *ch)
{
	struct hawk_route rt;
	uint64_t writes;
	int ret;

	ret = hawk_route_open(src, dst, r, way, &rt);
	if (ret)
		return ret;
	writes = hawk_requests_count(rt.wire, 1);
	ch->writes[way] = writes;
	offer(ch, way, staged_ns(&rt, c, writes));
	/* had it been born like the staging frame, there would be the writes only */
	if (way == HAWK_WAY_SENDER && c->born && !(ch->possible & 1u << HAWK_WAY_BIRTH)) {
		ch->writes[HAWK_WAY_BIRTH] = writes;
		offer(ch, HAWK_WAY_BIRTH, wire_ns(rt.wire, c, writes));
	}
	hawk_route_close(&rt);
	return 0;
}

int hawk_layout_choose(const struct hawk_layout *src, const struct hawk_layout *dst,
		       const struct hawk_range *r, const struct hawk_costs *c,
		       struct hawk_choice *ch)
{
	int ret;

	if (!c->link_mb_per_s || !c->copy_mb_per_s)
		return hawk_fail(-EINVAL, "layout: a link of %llu MB/s and a CPU that copies %llu MB/s: measure them first (hawk_costs_nic(), hawk_costs_cpu())",
				 (unsigned long long)c->link_mb_per_s,
				 (unsigned long long)c->copy_mb_per_s);
	if (c->entries > HAWK_ENTRIES_MAX || c->strips > HAWK_ENTRIES_MAX || c->reserved)
		return hawk_fail(-EINVAL, "layout: costs of %u entries and %u strips: at most %u",
				 c->entries, c->strips, HAWK_ENTRIES_MAX);
	*ch = (struct hawk_choice){ 0 };
	ret = weigh_direct(src, dst, r, c, ch);
	if (!ret)
		ret = weigh_staged(src, dst, r, c, HAWK_WAY_SENDER, ch);
	if (!ret)
		ret = weigh_staged(src, dst, r, c, HAWK_WAY_RECEIVER, ch);
	return ret;
}

/* ---- words ---- */

static uint64_t writes_of(const struct hawk_choice *ch, unsigned int way)
{
	return way == HAWK_WAY_ENTRIES ? ch->requests : way == HAWK_WAY_KEYS ? ch->keys :
	       ch->writes[way];
}

static void print_json(const struct hawk_choice *ch, struct hawk_text *t)
{
	unsigned int way, n = 0;

	hawk_text_add(t, "{\"way\": \"%s\", \"bytes\": %llu, \"pieces\": %llu, \"ways\": {",
		      way_names[ch->way], (unsigned long long)ch->bytes,
		      (unsigned long long)ch->pieces);
	for (way = 0; way < HAWK_WAYS; way++)
		if (ch->possible & 1u << way)
			hawk_text_add(t, "%s\"%s\": {\"ns\": %llu, \"requests\": %llu}",
				      n++ ? ", " : "", way_names[way],
				      (unsigned long long)ch->ns[way],
				      (unsigned long long)writes_of(ch, way));
	hawk_text_add(t, "}}");
}

/* What a way costs, and of what. */
static void print_way(const struct hawk_choice *ch, const struct hawk_costs *c, unsigned int way,
		      struct hawk_text *t)
{
	static const char *const impossible[HAWK_WAYS] = {
		[HAWK_WAY_ENTRIES] = "the NIC gathers no entries",
		[HAWK_WAY_KEYS] = "the NIC has no strided keys",
		[HAWK_WAY_BIRTH] = "the source is in another layout",
	};
	bool far = way == HAWK_WAY_RECEIVER;

	hawk_text_add(t, "%c %-8s ", way == ch->way ? '*' : ' ', way_names[way]);
	if (!(ch->possible & 1u << way)) {
		hawk_text_add(t, "not possible: %s\n", impossible[way]);
		return;
	}
	hawk_text_add(t, "%llu us: %llu requests of %llu ns", (unsigned long long)ch->ns[way] / 1000,
		      (unsigned long long)writes_of(ch, way),
		      (unsigned long long)c->request_ps / 1000);
	if (way == HAWK_WAY_ENTRIES)
		hawk_text_add(t, ", %llu pieces, up to %u in one, %llu ps each",
			      (unsigned long long)ch->pieces, c->entries,
			      (unsigned long long)c->entry_ps);
	else if (way == HAWK_WAY_KEYS)
		hawk_text_add(t, ", a key for each, %llu ns",
			      (unsigned long long)c->key_ps / 1000);
	else if (way != HAWK_WAY_BIRTH)
		hawk_text_add(t, ", the CPU copies %llu pieces, %llu MB/s and %llu ps each",
			      (unsigned long long)ch->pieces,
			      (unsigned long long)(far && c->far_copy_mb_per_s ?
						   c->far_copy_mb_per_s : c->copy_mb_per_s),
			      (unsigned long long)(far && c->far_piece_ps ? c->far_piece_ps :
						   c->piece_ps));
	hawk_text_add(t, "\n");
}

int hawk_choice_print(const struct hawk_choice *ch, const struct hawk_costs *c, char *buf,
		      size_t len, unsigned int flags)
{
	struct hawk_text t = { .buf = buf, .len = len };
	unsigned int way;

	if (flags & HAWK_PRINT_JSON) {
		print_json(ch, &t);
		return (int)t.at;
	}
	hawk_text_add(&t, "%llu bytes over a link of %llu MB/s, %llu us: %s is fastest\n",
		      (unsigned long long)ch->bytes, (unsigned long long)c->link_mb_per_s,
		      (unsigned long long)bytes_ns(ch->bytes, c->link_mb_per_s) / 1000,
		      way_names[ch->way]);
	for (way = 0; way < HAWK_WAYS; way++)
		print_way(ch, c, way, &t);
	return (int)t.at;
}
