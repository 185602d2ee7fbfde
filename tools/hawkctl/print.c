// SPDX-License-Identifier: MIT
/* print.c - see print.h */
#include "print.h"

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
};

#define N_STATS (sizeof(stats) / sizeof(stats[0]))

static void print_json(json_t *o)
{
	char *text = json_dumps(o, JSON_INDENT(2));

	json_decref(o);
	if (text)
		puts(text);
	free(text);
}

static const char *kind_name(__u32 kind)
{
	return kind == HAWK_TIER_HOST ? "host" : kind == HAWK_TIER_BLK ? "blk" : "?";
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

static json_t *tier_json(const struct hawk_tier_info *t)
{
	return json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "tier", (int)t->tier,
			 "kind", kind_name(t->kind), "node", (int)t->node, "bytes",
			 (json_int_t)t->bytes, "free_bytes", (json_int_t)t->free_bytes,
			 "quarantine_bytes", (json_int_t)t->quarantine_bytes, "read_bytes",
			 (json_int_t)t->read_bytes, "write_bytes", (json_int_t)t->write_bytes,
			 "io_errors", (json_int_t)t->io_errors);
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
		printf("tier kind node   size_MiB   free_MiB   read_MiB  write_MiB  errors\n");
	for (i = 0; i < n; i++)
		printf("%4u %-4s %4d %10.1f %10.1f %10.1f %10.1f %7llu\n", ti[i].tier,
		       kind_name(ti[i].kind), ti[i].node, ti[i].bytes / 1048576.0,
		       ti[i].free_bytes / 1048576.0, ti[i].read_bytes / 1048576.0,
		       ti[i].write_bytes / 1048576.0, (unsigned long long)ti[i].io_errors);
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

void print_stats(const char *name, const struct hawk_space_info *info, const struct hawk_stats *st,
		 bool json)
{
	json_t *o;
	size_t i;

	if (!json) {
		printf("%-16s %s\n%-16s %u\n%-16s %u\n", "space", name, "block_bytes",
		       info->block_bytes, "block_tokens", info->block_tokens);
		for (i = 0; i < N_STATS; i++)
			printf("%-16s %llu\n", stats[i].name,
			       (unsigned long long)stat_value(st, stats[i].off));
		return;
	}
	o = json_pack("{s:s, s:i, s:i}", "space", name, "block_bytes", (int)info->block_bytes,
		      "block_tokens", (int)info->block_tokens);
	for (i = 0; i < N_STATS; i++)
		json_object_set_new(o, stats[i].name,
				    json_integer((json_int_t)stat_value(st, stats[i].off)));
	print_json(o);
}
