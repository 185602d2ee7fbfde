// SPDX-License-Identifier: MIT
/*
 * run.c - what happens next, and what to print when something is wrong
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump.h"

struct sim sim;
static struct sim_run run_now;

/* ---- notes ---- */

void sim_note(const char *what, int client, int space, int lid, int arg, int ret, u64 vt)
{
	struct sim_trace *t = &sim.trace[sim.notes++ % SIM_TRACE];
	u64 word = (u64)(u32)ret << 32 | (u32)(u8)client << 24 | (u32)(u8)space << 16 |
		   (u32)(u8)lid << 8 | (u8)what[0];

	*t = (struct sim_trace){ sim.event, vt, what, ret, client, space, lid, arg };
	sim.digest = hawk_mix(sim.digest ^ word);
	sim.digest = hawk_mix(sim.digest ^ vt ^ (u64)(u32)arg << 20 ^ sim.event);
}

static void trace_print(FILE *out)
{
	u64 i, first = sim.notes > SIM_TRACE ? sim.notes - SIM_TRACE : 0;

	fprintf(out, "      event what         client space  lid  arg  result value\n");
	for (i = first; i < sim.notes; i++) {
		const struct sim_trace *t = &sim.trace[i % SIM_TRACE];

		fprintf(out, "%11llu %-12s %6d %5d %4d %4d %7d %#llx\n",
			(unsigned long long)t->event, t->what, t->client, t->space, t->lid,
			t->arg, t->ret, (unsigned long long)t->vt);
	}
}

void sim_fail(const char *file, int line, const char *fmt, ...)
{
	const char *name = strrchr(file, '/');
	va_list ap;
	u32 i;

	fflush(stdout);
	trace_print(stderr);
	for (i = 0; i < SIM_SPACES; i++)
		if (sim.touched[i])
			sim_dump(stderr, i);
	fprintf(stderr, "hawk-sim: seed %llu, event %llu: %s:%d: ",
		(unsigned long long)run_now.seed, (unsigned long long)sim.event,
		name ? name + 1 : file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nhawk-sim: again: hawk-sim --torture --seed %llu --spaces %u "
		"--check %llu --stop-at %llu --trace\n", (unsigned long long)run_now.seed,
		run_now.spaces, (unsigned long long)run_now.check,
		(unsigned long long)sim.event);
	fflush(stderr);
	_exit(1);
}

/* ---- events ---- */

static void weather_draw(void)
{
	static const u32 failing[] = { 0, 0, 5, 50, 300, 900 };
	static const u32 device[] = { 1, 10, 40, 40, 100 };
	struct sim_weather *w = &sim.weather;

	w->fail_permille = failing[sim_below(ARRAY_SIZE(failing))];
	w->stuck_permille = sim_below(3) ? 0 : sim_below(100);
	w->sick_tier = sim_below(2) ? sim_below(HAWK_TIERS_MAX) : HAWK_NONE;
	w->stalled_tier = sim_below(4) ? HAWK_NONE : sim_below(HAWK_TIERS_MAX);
	w->eager_permille = sim_below(1001);
	w->no_plan_permille = sim_below(4) ? 50 : 500;
	w->nomem_permille = sim_below(4) ? 0 : 100;
	w->grow_fail_permille = sim_below(3) ? 0 : 500;
	w->reclaim_permille = sim_below(2) ? 100 : 1000;
	w->lease = sim_below(4) ? 5 : 100;
	w->device = device[sim_below(ARRAY_SIZE(device))];
	w->clean = 1 + sim_below(4);
	w->keep = sim_below(4);
	w->death = sim_below(4) ? 1 : 4;
	w->world = 1 + sim_below(2);
	w->pressure = 1 + sim_below(6);
	sim.weather_until = sim.event + 500 + sim_below(8000);
	w->health = !sim_below(3);
	world_mend(w->health ? sim_below(HAWK_TIERS_MAX) : HAWK_TIERS_MAX);
}

/* Weights of 4000; what is left is a step of a client. */
static void event_run(void)
{
	const struct sim_weather *w = &sim.weather;
	u32 pick = sim_below(4000);

	if (pick < 20 * w->device) {
		if (device_step())
			return;
	} else if ((pick -= 20 * w->device) < 20 * w->clean) {
		if (world_clean())
			return;
	} else if ((pick -= 20 * w->clean) < 20 * w->keep) {
		world_keep();
		return;
	} else if ((pick -= 20 * w->keep) < 4 * w->death) {
		client_release(&sim.client[sim_below(SIM_CLIENTS)], true);
		return;
	} else if ((pick -= 4 * w->death) < 8 * w->world) {
		world_step();
		return;
	} else if ((pick -= 8 * w->world) < 40 * w->pressure) {
		if (world_pressure())
			return;
	} else if ((pick -= 40 * w->pressure) < 60) {
		if (world_grown())
			return;
	} else if (lease_expire()) {
		return;
	}
	client_step(&sim.client[sim_below(SIM_CLIENTS)]);
}

static void check_all(bool touched)
{
	u32 i;

	for (i = 0; i < SIM_SPACES; i++)
		if (sim.space[i].s && (!touched || sim.touched[i]))
			model_check(&sim.space[i]);
	world_check();
	tally.checks++;
}

u64 sim_run(const struct sim_run *run)
{
	u64 last = run->stop_at && run->stop_at < run->events ? run->stop_at : run->events;
	u32 i;

	run_now = *run;
	memset(&sim, 0, sizeof(sim));
	sim.seed = run->seed;
	sim.rng = run->seed;
	sim.spaces = run->spaces;
	world_begin();
	weather_draw();
	for (sim.event = 1; sim.event <= last; sim.event++) {
		/* a second now and then: a failing drive is due for a trial */
		sim.now += sim.weather.health && !sim_below(200) ? 1000000000 : sim_below(2000);
		if (sim.event >= sim.weather_until)
			weather_draw();
		event_run();
		if (sim.event % run->check == 0)
			check_all(run->check == 1);
		memset(sim.touched, 0, sizeof(sim.touched));
	}
	sim.event = last;
	check_all(false);
	if (run->trace) {
		trace_print(stdout);
		for (i = 0; i < SIM_SPACES; i++)
			sim_dump(stdout, i);
	}
	if (last == run->events)
		world_end();
	tally.events += last;
	tally.seeds++;
	return sim.digest;
}
