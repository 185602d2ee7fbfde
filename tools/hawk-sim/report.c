// SPDX-License-Identifier: MIT
/*
 * report.c - results of replays, as text and JSON
 */
#include <stdio.h>

#include "replay.h"

static double share(u64 part, u64 all)
{
	return all ? 100.0 * part / all : 0;
}

/* Bytes that would be written in a day, if it went on like that. */
static double day_bytes(const struct load *l, const struct result *r)
{
	u64 ns = load_ns(l);

	return ns ? (double)r->writes * r->run.dev.block_bytes * HAWK_DAY_NS / ns : 0;
}

static const char *label(const struct result *r, char *buf, size_t room)
{
	const char *name = policy_name[r->run.policy];

	if (r->run.policy == POLICY_RANDOM)
		snprintf(buf, room, "%s:%.2f", name, r->run.share);
	else if (r->run.budget)
		snprintf(buf, room, "%s/%llu%s", name, (unsigned long long)r->run.budget,
			 r->run.dev.paced ? "+" : "");
	else
		snprintf(buf, room, "%s%s", name, r->run.dev.paced ? "+" : "");
	return buf;
}

void result_head(void)
{
	printf("%-14s %9s %9s %7s %7s %7s %7s %7s %8s %9s %9s %9s\n", "policy", "writes", "unread",
	       "dram %", "flash %", "used %", "TB/day", "DWPD", "peak", "TTFT mean", "p50 s", "p99 s");
}

void result_print(const struct load *l, const struct result *r)
{
	char buf[64];

	printf("%-14s %9llu %9llu %7.2f %7.2f %7.2f %7.2f %7.2f %8llu %9.3f %9.3f %9.3f\n",
	       label(r, buf, sizeof(buf)), (unsigned long long)r->writes,
	       (unsigned long long)r->unread, share(r->dram_hits, r->accesses),
	       share(r->flash_hits, r->accesses),
	       share(r->dram_used + r->flash_used, r->accesses), day_bytes(l, r) / 1e12,
	       day_bytes(l, r) / r->run.dev.drive_bytes,
	       (unsigned long long)r->peak, r->ttft_mean, r->ttft_p50, r->ttft_p99);
}

void result_turns(const struct result *r)
{
	static const char * const name[TURN_ROWS] = { "1", "2", "3 to 15", "others" };
	u32 i;

	printf("  %-8s %9s %7s %7s %7s\n", "turn", "blocks", "dram %", "flash %", "cold %");
	for (i = 0; i < TURN_ROWS; i++) {
		const struct turn_row *t = &r->turn[i];

		if (t->blocks)
			printf("  %-8s %9llu %7.1f %7.1f %7.1f\n", name[i],
			       (unsigned long long)t->blocks, share(t->dram, t->blocks),
			       share(t->flash, t->blocks),
			       share(t->blocks - t->dram - t->flash, t->blocks));
	}
}

json_t *result_json(const struct load *l, const struct result *r)
{
	static const char * const why[5] = { "score", "budget", "parent", "rule", "full" };
	json_t *o = json_object(), *refused = json_object(), *turns = json_array(), *ttft = json_array();
	u32 i;

	json_object_set_new(o, "load", json_string(l->name));
	json_object_set_new(o, "seed", json_integer(l->seed));
	json_object_set_new(o, "policy", json_string(policy_name[r->run.policy]));
	json_object_set_new(o, "share", json_real(r->run.share));
	json_object_set_new(o, "dram_blocks", json_integer(r->run.dram));
	json_object_set_new(o, "flash_blocks", json_integer(r->run.flash));
	json_object_set_new(o, "budget_blocks", json_integer(r->run.budget));
	json_object_set_new(o, "period_s", json_real(r->run.period / 1e9));
	json_object_set_new(o, "accesses", json_integer(r->accesses));
	json_object_set_new(o, "dram_hits", json_integer(r->dram_hits));
	json_object_set_new(o, "flash_hits", json_integer(r->flash_hits));
	json_object_set_new(o, "dram_used", json_integer(r->dram_used));
	json_object_set_new(o, "flash_used", json_integer(r->flash_used));
	json_object_set_new(o, "writes", json_integer(r->writes));
	json_object_set_new(o, "load_s", json_real(load_ns(l) / 1e9));
	json_object_set_new(o, "peak_writes", json_integer(r->peak));
	json_object_set_new(o, "peak_control_writes", json_integer(r->peak_control));
	json_object_set_new(o, "unread", json_integer(r->unread));
	json_object_set_new(o, "write_bytes_per_day", json_real(day_bytes(l, r)));
	json_object_set_new(o, "drive_writes_per_day",
			    json_real(day_bytes(l, r) / r->run.dev.drive_bytes));
	for (i = 0; i < 5; i++)
		json_object_set_new(refused, why[i], json_integer(r->refused[i]));
	json_object_set_new(o, "refused", refused);
	json_object_set_new(o, "paced", json_boolean(r->run.dev.paced));
	json_object_set_new(o, "promoted", json_integer(r->promoted));
	json_object_set_new(o, "recomputed", json_integer(r->recomputed));
	json_object_set_new(o, "skew_p99", json_real(r->skew_p99));
	json_object_set_new(o, "link_window", json_real(r->link_window));
	json_object_set_new(o, "ttft_mean_s", json_real(r->ttft_mean));
	json_object_set_new(o, "ttft_p50_s", json_real(r->ttft_p50));
	json_object_set_new(o, "ttft_p99_s", json_real(r->ttft_p99));
	for (i = 0; r->run.ttft && i <= TTFT_STEPS; i++)
		json_array_append_new(ttft, json_real(r->ttft[i]));
	json_object_set_new(o, "ttft_percentiles_s", ttft);
	for (i = 0; i < TURN_ROWS; i++)
		json_array_append_new(turns, json_pack("{s:I, s:I, s:I}", "blocks",
						       (json_int_t)r->turn[i].blocks, "dram",
						       (json_int_t)r->turn[i].dram, "flash",
						       (json_int_t)r->turn[i].flash));
	json_object_set_new(o, "turns", turns);
	return o;
}
