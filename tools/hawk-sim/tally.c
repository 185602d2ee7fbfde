// SPDX-License-Identifier: MIT
/*
 * tally.c - counting, adding up and printing what was met
 */
#include <jansson.h>
#include <stdio.h>

#include "tally.h"

struct sim_tally tally;

u64 hawk_event_count[HAWK_BLOCK_STATES][HAWK_BLOCK_EVENTS];
u64 hawk_visit_count;

static const struct {
	const char *name;
	const char *text;
} situations[SITUATIONS] = {
#define X(name, text) { #name, text },
	SIM_SITUATIONS(X)
#undef X
};

static const char * const calls[CALLS] = {
#define X(name) #name,
	SIM_CALLS(X)
#undef X
};

static const char * const events[HAWK_BLOCK_EVENTS] = {
	[HAWK_EV_ALLOC] = "alloc", [HAWK_EV_RESTORE] = "restore", [HAWK_EV_PUT] = "put",
	[HAWK_EV_REWRITE] = "rewrite",
	[HAWK_EV_EVICT] = "evict", [HAWK_EV_EVICT_CLEAN] = "evict_clean",
	[HAWK_EV_WRITTEN] = "written", [HAWK_EV_KEPT] = "kept", [HAWK_EV_RELOAD] = "reload",
	[HAWK_EV_LOADED] = "loaded", [HAWK_EV_CANCELED] = "canceled", [HAWK_EV_END] = "end",
	[HAWK_EV_BURY] = "bury",
};

/* Results are few: each has a slot, what is not listed shares the last. */
static const struct {
	int ret;
	const char *name;
} results[TALLY_RESULTS] = {
	{ 0, "ok" }, { -EAGAIN, "EAGAIN" }, { -EINPROGRESS, "EINPROGRESS" },
	{ -ENOENT, "ENOENT" }, { -EEXIST, "EEXIST" }, { -EBUSY, "EBUSY" },
	{ -ENOSPC, "ENOSPC" }, { -EDQUOT, "EDQUOT" }, { -ENOBUFS, "ENOBUFS" },
	{ -EINVAL, "EINVAL" }, { -ESTALE, "ESTALE" }, { -ENOMEM, "ENOMEM" }, { -EIO, "EIO" },
	{ -EILSEQ, "EILSEQ" }, { -ECANCELED, "ECANCELED" }, { 1, "other" },
};

u32 tally_slot(int ret)
{
	u32 i;

	for (i = 0; i < TALLY_RESULTS - 1 && results[i].ret != ret; i++)
		;
	return i;
}

void tally_take_transitions(void)
{
	memcpy(tally.transition, hawk_event_count, sizeof(hawk_event_count));
}

/* All members are u64. */
void tally_add(struct sim_tally *sum, const struct sim_tally *t)
{
	u64 *to = (u64 *)sum;
	const u64 *from = (const u64 *)t;
	size_t i;

	for (i = 0; i < sizeof(*t) / sizeof(u64); i++)
		to[i] += from[i];
}

static u32 transitions_missing(const struct sim_tally *t)
{
	u32 st, ev, n = 0;

	/* nothing of a simulated world is there before it begins: none is restored */
	for (st = 0; st < HAWK_BLOCK_STATES; st++)
		for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
			n += ev != HAWK_EV_RESTORE && hawk_block_event_ok(st, ev) &&
			     !t->transition[st][ev];
	return n;
}

u32 tally_missing(const struct sim_tally *t)
{
	u32 i, n = transitions_missing(t);

	for (i = 0; i < SITUATIONS; i++)
		n += !t->situation[i];
	return n;
}

static void print_transitions(const struct sim_tally *t)
{
	u32 st, ev;

	printf("\ntransitions taken; - is refused (asserted)\n%-10s", "");
	for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
		printf(" %11s", events[ev]);
	for (st = 0; st < HAWK_BLOCK_STATES; st++) {
		printf("\n%-10s", hawk_state_name(st));
		for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
			if (hawk_block_event_ok(st, ev))
				printf(" %11llu", (unsigned long long)t->transition[st][ev]);
			else
				printf(" %11s", "-");
	}
	printf("\n");
}

static void print_calls(const struct sim_tally *t)
{
	u32 c, r;

	printf("\ncalls and what they answered\n");
	for (c = 0; c < CALLS; c++) {
		printf("%-14s", calls[c]);
		for (r = 0; r < TALLY_RESULTS; r++)
			if (t->call[c][r])
				printf(" %s %llu", results[r].name,
				       (unsigned long long)t->call[c][r]);
		printf("\n");
	}
}

void tally_print(const struct sim_tally *t)
{
	u32 i;

	printf("situations met\n");
	for (i = 0; i < SITUATIONS; i++)
		printf("%12llu  %-16s %s\n", (unsigned long long)t->situation[i],
		       situations[i].name, situations[i].text);
	print_transitions(t);
	print_calls(t);
	if (tally_missing(t))
		printf("\n%u situations or transitions were never met\n", tally_missing(t));
}

static json_t *json_transitions(const struct sim_tally *t)
{
	json_t *all = json_object(), *row;
	u32 st, ev;

	for (st = 0; st < HAWK_BLOCK_STATES; st++) {
		row = json_object();
		for (ev = 0; ev < HAWK_BLOCK_EVENTS; ev++)
			if (hawk_block_event_ok(st, ev))
				json_object_set_new(row, events[ev],
						    json_integer(t->transition[st][ev]));
		json_object_set_new(all, hawk_state_name(st), row);
	}
	return all;
}

json_t *tally_json(const struct sim_tally *t)
{
	json_t *all = json_object(), *met = json_object(), *made = json_object(), *row;
	u32 i, r;

	for (i = 0; i < SITUATIONS; i++)
		json_object_set_new(met, situations[i].name, json_integer(t->situation[i]));
	for (i = 0; i < CALLS; i++) {
		row = json_object();
		for (r = 0; r < TALLY_RESULTS; r++)
			if (t->call[i][r])
				json_object_set_new(row, results[r].name,
						    json_integer(t->call[i][r]));
		json_object_set_new(made, calls[i], row);
	}
	json_object_set_new(all, "events", json_integer(t->events));
	json_object_set_new(all, "checks", json_integer(t->checks));
	json_object_set_new(all, "seeds", json_integer(t->seeds));
	json_object_set_new(all, "missing", json_integer(tally_missing(t)));
	json_object_set_new(all, "situations", met);
	json_object_set_new(all, "transitions", json_transitions(t));
	json_object_set_new(all, "calls", made);
	return all;
}
