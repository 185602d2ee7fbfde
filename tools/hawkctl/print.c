// SPDX-License-Identifier: MIT
/* print.c - see print.h */
#include "print.h"

#include <hawk/hawk.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	__u64 bit;
	const char *name;
} features[] = {
	{ HAWK_FEAT_TIER_HOST, "tier-host" }, { HAWK_FEAT_TIER_BLK, "tier-blk" },
	{ HAWK_FEAT_LEASE, "lease" },	      { HAWK_FEAT_ASYNC, "async" },
	{ HAWK_FEAT_NAMED, "named-spaces" },  { HAWK_FEAT_CRC, "crc" },
	{ HAWK_FEAT_RECLAIM, "reclaim" },     { HAWK_FEAT_TIER_FORCE, "tier-force" },
	{ HAWK_FEAT_TIER_REOPEN, "tier-reopen" },
	{ HAWK_FEAT_HINT, "hint" },	      { HAWK_FEAT_ADMIT, "admit" },
	{ HAWK_FEAT_ATTACH_FD, "attach-fd" }, { HAWK_FEAT_MEMLOCK, "memlock" },
	{ HAWK_FEAT_IDLE, "idle" },	      { HAWK_FEAT_CANCEL, "cancel" },
	{ HAWK_FEAT_URING_CMD, "uring-cmd" },
	{ HAWK_FEAT_EXPORT, "export" },	      { HAWK_FEAT_TIER_MODEL, "tier-model" },
	{ HAWK_FEAT_STATS_PAGE, "stats-page" }, { HAWK_FEAT_DRAFT, "draft" },
	{ HAWK_FEAT_GATHER, "gather" },	      { HAWK_FEAT_SLICE, "slice" },
	{ HAWK_FEAT_TIER_DMABUF, "tier-dmabuf" }, { HAWK_FEAT_TIER_BAR, "tier-bar" },
	{ HAWK_FEAT_PERSIST, "persist" },
	{ HAWK_FEAT_PACE, "pace" },	      { HAWK_FEAT_PROMOTE, "promote" },
	{ HAWK_FEAT_HEALTH, "health" },
	{ HAWK_FEAT_TIER_USER, "tier_user" },
	{ HAWK_FEAT_SEQ, "sequences" },	      { HAWK_FEAT_ELASTIC, "elastic" },
};

#define N_FEATURES (sizeof(features) / sizeof(features[0]))

static const struct {
	const char *name;
	size_t off;
} stats[] = {
	{ "blocks", offsetof(struct hawk_stats, blocks) },
	{ "resident_blocks", offsetof(struct hawk_stats, resident) },
	{ "flash_blocks", offsetof(struct hawk_stats, flash) },
	{ "pinned_blocks", offsetof(struct hawk_stats, pinned) },
	{ "allocs", offsetof(struct hawk_stats, allocs) },
	{ "puts", offsetof(struct hawk_stats, puts) },
	{ "hits", offsetof(struct hawk_stats, hits) },
	{ "misses", offsetof(struct hawk_stats, misses) },
	{ "inflight", offsetof(struct hawk_stats, inflight) },
	{ "evict_clean", offsetof(struct hawk_stats, evict_clean) },
	{ "evict_write", offsetof(struct hawk_stats, evict_write) },
	{ "evict_drop", offsetof(struct hawk_stats, evict_drop) },
	{ "flash_drop", offsetof(struct hawk_stats, flash_drop) },
	{ "reloads", offsetof(struct hawk_stats, reloads) },
	{ "reload_errors", offsetof(struct hawk_stats, reload_errors) },
	{ "steals", offsetof(struct hawk_stats, steals) },
	{ "nospace", offsetof(struct hawk_stats, nospace) },
	{ "quota", offsetof(struct hawk_stats, quota) },
	{ "refused_score", offsetof(struct hawk_stats, refused_score) },
	{ "refused_budget", offsetof(struct hawk_stats, refused_budget) },
	{ "refused_parent", offsetof(struct hawk_stats, refused_parent) },
	{ "refused_rule", offsetof(struct hawk_stats, refused_rule) },
	{ "refused_full", offsetof(struct hawk_stats, refused_full) },
	{ "flash_read", offsetof(struct hawk_stats, flash_read) },
	{ "flash_unread", offsetof(struct hawk_stats, flash_unread) },
	{ "paced_waits", offsetof(struct hawk_stats, paced_waits) },
	{ "paced_wait_ns", offsetof(struct hawk_stats, paced_wait_ns) },
	{ "link_waits", offsetof(struct hawk_stats, link_waits) },
	{ "late", offsetof(struct hawk_stats, late) },
	{ "refused_late", offsetof(struct hawk_stats, refused_late) },
	{ "promoted", offsetof(struct hawk_stats, promoted) },
	{ "promote_canceled", offsetof(struct hawk_stats, promote_canceled) },
	{ "recovered", offsetof(struct hawk_stats, recovered) },
	{ "recover_corrupt", offsetof(struct hawk_stats, recover_corrupt) },
	{ "recover_stale", offsetof(struct hawk_stats, recover_stale) },
	{ "recover_no_parent", offsetof(struct hawk_stats, recover_no_parent) },
	{ "recover_no_room", offsetof(struct hawk_stats, recover_no_room) },
};

#define N_STATS (sizeof(stats) / sizeof(stats[0]))

void print_uuid(char *to, const unsigned char *uuid)
{
	int i, n = 0;

	for (i = 0; i < 16; i++)
		n += sprintf(to + n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			     uuid[i]);
}

void print_json(json_t *o)
{
	char *text = json_dumps(o, JSON_INDENT(2));

	json_decref(o);
	if (text)
		puts(text);
	free(text);
}

static const char *kind_name(__u32 kind)
{
	static const char * const name[] = {
		[HAWK_TIER_HOST] = "host",
		[HAWK_TIER_BLK] = "blk",
		[HAWK_TIER_DMABUF] = "dmabuf",
		[HAWK_TIER_MODEL] = "model",
		[HAWK_TIER_USER] = "user",
		[HAWK_TIER_BAR] = "bar",
	};

	return kind && kind < sizeof(name) / sizeof(name[0]) ? name[kind] : "?";
}

void print_query(const struct hawk_query *q, const char *backend, bool json)
{
	json_t *o, *f;
	size_t i;

	if (!json) {
		printf("backend      %s\nABI version  %u\nbatch items  %u\nchunk        %u bytes\nblock unit   %u bytes\ntiers        %d of %u\nfeatures    ",
		       backend, q->abi_version, q->batch_max, q->chunk_bytes, q->frame_align,
		       __builtin_popcount(q->tiers), q->tiers_max);
		for (i = 0; i < N_FEATURES; i++)
			if (q->features & features[i].bit)
				printf(" %s", features[i].name);
		putchar('\n');
		return;
	}
	f = json_array();
	for (i = 0; i < N_FEATURES; i++)
		if (q->features & features[i].bit)
			json_array_append_new(f, json_string(features[i].name));
	o = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "backend", backend, "abi_version",
		      (int)q->abi_version, "batch_max", (int)q->batch_max, "chunk_bytes",
		      (int)q->chunk_bytes, "frame_align_bytes", (int)q->frame_align, "tiers",
		      __builtin_popcount(q->tiers), "tiers_max", (int)q->tiers_max, "features", f);
	print_json(o);
}

static const char *health_name(unsigned int health)
{
	static const char *const name[] = { "ok", "failing", "lost" };

	return health < 3 ? name[health] : "unknown";
}

static json_t *tier_json(const struct hawk_tier_info *t)
{
	return json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:i, s:I, s:I, "
			 "s:I, s:I}",
			 "tier", (int)t->tier,
			 "kind", kind_name(t->kind), "node", (int)t->node, "bytes",
			 (json_int_t)t->bytes, "free_bytes", (json_int_t)t->free_bytes,
			 "quarantine_bytes", (json_int_t)t->quarantine_bytes, "read_bytes",
			 (json_int_t)t->read_bytes, "write_bytes", (json_int_t)t->write_bytes,
			 "io_errors", (json_int_t)t->io_errors, "orphan_bytes",
			 (json_int_t)t->orphan_bytes, "header_bytes", (json_int_t)t->header_bytes,
			 "health", health_name(t->health), "out", (int)t->out, "submit_cpu_ns",
			 (json_int_t)t->submit_cpu_ns, "complete_cpu_ns",
			 (json_int_t)t->complete_cpu_ns, "checksum_cpu_ns",
			 (json_int_t)t->checksum_cpu_ns, "copy_cpu_ns",
			 (json_int_t)t->copy_cpu_ns);
}

void print_tiers(const struct hawk_tier_info *ti, unsigned int n, bool json)
{
	json_t *a;
	unsigned int i;

	if (json) {
		a = json_array();
		for (i = 0; i < n; i++)
			json_array_append_new(a, tier_json(&ti[i]));
		print_json(a);
		return;
	}
	if (n == 0)
		printf("no tiers\n");
	else
		printf("tier kind node   size_MiB   free_MiB   read_MiB  write_MiB  errors health\n");
	for (i = 0; i < n; i++)
		printf("%4u %-4s %4d %10.1f %10.1f %10.1f %10.1f %7llu %s\n", ti[i].tier,
		       kind_name(ti[i].kind), ti[i].node, ti[i].bytes / 1048576.0,
		       ti[i].free_bytes / 1048576.0, ti[i].read_bytes / 1048576.0,
		       ti[i].write_bytes / 1048576.0, (unsigned long long)ti[i].io_errors,
		       health_name(ti[i].health));
}

void print_tier_id(unsigned int tier, bool json)
{
	if (json)
		print_json(json_pack("{s:i}", "tier", (int)tier));
	else
		printf("%u\n", tier);
}

static __u64 stat_value(const struct hawk_stats *st, size_t off)
{
	__u64 v;

	memcpy(&v, (const char *)st + off, sizeof(v));
	return v;
}

/* Calls in the order of their numbers, HAWK_STATS_OP() */
static const char *const ops[] = {
	"alloc", "put", "lookup", "pin", "unpin", "get", "reload", "fork", "unshare", "free",
	"translate",
};

#define N_OPS (sizeof(ops) / sizeof(ops[0]))

static const char *const dirs[] = { "read", "write" };

static json_t *hist_json(const struct hawk_hist *h, const char *items)
{
	json_t *o, *buckets = json_array();
	unsigned int i, last = 0;

	for (i = 0; i < HAWK_STATS_BUCKETS; i++)
		if (h->bucket[i])
			last = i + 1;
	for (i = 0; i < last; i++)
		json_array_append_new(buckets, json_integer((json_int_t)h->bucket[i]));
	o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "count", (json_int_t)h->count, items,
		      (json_int_t)h->items, "failed", (json_int_t)h->failed, "total_ns",
		      (json_int_t)h->ns, "p50_ns", (json_int_t)hawk_hist_quantile(h, 500), "p99_ns",
		      (json_int_t)hawk_hist_quantile(h, 990), "log2_ns", buckets);
	return o;
}

static void hist_line(const char *name, const struct hawk_hist *h, double items, const char *unit)
{
	printf("%-16s %10llu %12.1f %-5s %8llu %12.1f %12.1f\n", name,
	       (unsigned long long)h->count, items, unit, (unsigned long long)h->failed,
	       hawk_hist_quantile(h, 500) / 1e3, hawk_hist_quantile(h, 990) / 1e3);
}

static void print_hists(const struct hawk_stats_page *p)
{
	const struct hawk_hist *h;
	char name[32];
	unsigned int i, d;

	printf("\n%-16s %10s %12s %-5s %8s %12s %12s\n", "call or move", "count", "amount", "", "failed",
	       "p50_us", "p99_us");
	for (i = 0; i < N_OPS; i++)
		if (p->op[i].count)
			hist_line(ops[i], &p->op[i], (double)p->op[i].items, "items");
	if (p->gather.count)
		hist_line("gather", &p->gather, (double)p->gather.items, "items");
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		for (d = 0; d < 2; d++) {
			h = d ? &p->write[i] : &p->read[i];
			snprintf(name, sizeof(name), "tier%u %s", i, dirs[d]);
			if (h->count)
				hist_line(name, h, h->items / 1048576.0, "MiB");
		}
}

static void add_hists(json_t *o, const struct hawk_stats_page *p)
{
	json_t *calls = json_object(), *moves = json_array(), *m;
	const struct hawk_hist *h;
	unsigned int i, d;

	for (i = 0; i < N_OPS; i++)
		if (p->op[i].count)
			json_object_set_new(calls, ops[i], hist_json(&p->op[i], "items"));
	if (p->gather.count)
		json_object_set_new(calls, "gather", hist_json(&p->gather, "items"));
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		for (d = 0; d < 2; d++) {
			h = d ? &p->write[i] : &p->read[i];
			if (!h->count)
				continue;
			m = hist_json(h, "bytes");
			json_object_set_new(m, "tier", json_integer(i));
			json_object_set_new(m, "direction", json_string(dirs[d]));
			json_array_append_new(moves, m);
		}
	json_object_set_new(o, "calls", calls);
	json_object_set_new(o, "moves", moves);
}

void print_stats(const char *name, const struct hawk_space_info *info,
		 const struct hawk_stats_page *page, bool json)
{
	struct hawk_stats st;
	json_t *o;
	size_t i;

	memcpy(&st, page->stats, sizeof(st));
	if (!json) {
		printf("%-16s %s\n%-16s %u\n%-16s %u\n", "space", name, "block_bytes",
		       info->block_bytes, "block_tokens", info->block_tokens);
		for (i = 0; i < N_STATS; i++)
			printf("%-16s %llu\n", stats[i].name,
			       (unsigned long long)stat_value(&st, stats[i].off));
		print_hists(page);
		return;
	}
	o = json_pack("{s:s, s:i, s:i}", "space", name, "block_bytes", (int)info->block_bytes,
		      "block_tokens", (int)info->block_tokens);
	for (i = 0; i < N_STATS; i++)
		json_object_set_new(o, stats[i].name,
				    json_integer((json_int_t)stat_value(&st, stats[i].off)));
	add_hists(o, page);
	print_json(o);
}
