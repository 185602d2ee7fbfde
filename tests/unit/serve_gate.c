// SPDX-License-Identifier: MIT
/*
 * serve_gate.c - when speculation is a gain (daemon/sched/gate.c): Equation 6 and
 * the gate, on steps whose times are made up
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sched/gate.h"

#define STEP_NS 1000000u /* a step without drafts */

/* To the digits that the vectors have. */
static void near(double got, double want, double digit)
{
	if (got < want - digit / 2 || got > want + digit / 2)
		fail_msg("%g is not %g", got, want);
}

/* 5 drafts at a twentieth of a step each; 5 drafts of 4 ms beside a step of 33.6 ms. */
static void test_equation_6(void **state)
{
	static const struct {
		double a, tokens, speedup;
	} v[] = { { 0.9, 4.69, 3.7 }, { 0.7, 2.94, 2.4 }, { 0.5, 1.97, 1.6 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		near(gate_expected(v[i].a, 5), v[i].tokens, 0.01);
		near(gate_speedup(v[i].a, 5, 20), v[i].speedup, 0.1);
	}
	near(gate_speedup(0.9, 5, 20), 3.748, 0.001);
	near(gate_expected(0.78, 5), 3.52, 0.01);
	near(53.6 / gate_expected(0.78, 5), 15.2, 0.1);
	near(gate_speedup(0.78, 5, 33.6 / 4) * 53.6 / 33.6, gate_expected(0.78, 5), 0.01);
	near(gate_expected(0, 5), 1, 1e-12);
	near(gate_expected(1, 5), 6, 1e-12);
	near(gate_expected(1 - 1e-9, 5), 6, 1e-4);
	near(gate_expected(0.9, 0), 1, 1e-12);
}

static void test_how_many(void **state)
{
	uint32_t k, best, a;

	(void)state;
	assert_int_equal(gate_best(0.1, 4, 16), 1);
	assert_int_equal(gate_best(1, 4, 16), 16);
	assert_int_equal(gate_best(0.99, 1e9, 16), 16);
	for (a = 1; a < 10; a++) {
		best = gate_best(a / 10.0, 10, 16);
		for (k = 1; k <= 16; k++)
			assert_true(gate_speedup(a / 10.0, k, 10) <=
				    gate_speedup(a / 10.0, best, 10));
	}
}

/* A machine and a text: a draft is right with probability @a, costs 1/@c of a step. */
struct world {
	struct gate g;
	double a, c;
	uint64_t rng;
	uint32_t steps, drafted;
};

static double uniform(struct world *w)
{
	w->rng ^= w->rng >> 12;
	w->rng ^= w->rng << 25;
	w->rng ^= w->rng >> 27;
	return (double)(w->rng * 2685821657736338717ull >> 11) * 0x1p-53;
}

static void run(struct world *w, uint32_t n_seqs, uint32_t steps)
{
	w->steps = steps;
	w->drafted = 0;
	while (steps--) {
		struct gate_step s = { .n_seqs = n_seqs, .tokens = n_seqs };
		uint32_t k = gate_drafts(&w->g, n_seqs, 8), i, j;

		for (i = 0; i < n_seqs && k; i++) {
			for (j = 0; j < k && uniform(w) < w->a; j++)
				s.accepted++;
			s.tried += j + (j < k);
			s.tokens += j;
		}
		s.drafted = k * n_seqs;
		s.ns = STEP_NS * (1 + k / w->c);
		w->drafted += k > 0;
		gate_learn(&w->g, &s);
	}
}

static void test_on_and_off(void **state)
{
	struct world w = { .a = 0.8, .c = 20, .rng = 1 };

	(void)state;
	assert_false(gate_is_on(&w.g, 1));
	run(&w, 1, 200);
	assert_true(gate_is_on(&w.g, 1));
	run(&w, 1, 320);
	assert_int_equal(w.drafted, 310); /* all but those that probe */
	w.a = 0.05; /* another text */
	w.c = 3;
	run(&w, 1, 200);
	assert_false(gate_is_on(&w.g, 1));
	run(&w, 1, 320);
	assert_int_equal(w.drafted, 10);
	w.a = 0.9; /* and back: the probes find out */
	w.c = 20;
	run(&w, 1, 2000);
	assert_true(gate_is_on(&w.g, 1));
}

/* With many sequences a drafted token costs more: each batch size is its own case. */
static void test_batch_sizes(void **state)
{
	struct world w = { .a = 0.6, .rng = 2 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 50; i++) {
		w.c = 20;
		run(&w, 1, 16);
		w.c = 0.8;
		run(&w, 64, 16);
	}
	assert_true(gate_is_on(&w.g, 1));
	assert_false(gate_is_on(&w.g, 64));
	assert_false(gate_is_on(&w.g, 16)); /* nothing is known of it */
}

/* A gain of 2 % neither switches on nor off. */
static void test_hysteresis(void **state)
{
	struct gate_step plain = { .n_seqs = 1, .tokens = 1000, .ns = STEP_NS };
	struct gate_step spec = { .n_seqs = 1, .drafted = 4, .tried = 4, .accepted = 2,
				  .ns = STEP_NS };
	struct gate g = { 0 };
	uint32_t i, round;
	bool was = false;

	(void)state;
	for (round = 0; round < 2; round++) {
		spec.tokens = 1020;
		for (i = 0; i < 500; i++) {
			gate_learn(&g, &plain);
			gate_learn(&g, &spec);
			assert_int_equal(gate_is_on(&g, 1), was);
		}
		spec.tokens = was ? 990 : 1060;
		for (i = 0; i < 500; i++)
			gate_learn(&g, &spec);
		assert_int_equal(gate_is_on(&g, 1), !was);
		was = !was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equation_6), cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_on_and_off), cmocka_unit_test(test_batch_sizes),
		cmocka_unit_test(test_hysteresis),
	};

	return cmocka_run_group_tests_name("serve_gate", tests, NULL, NULL);
}
