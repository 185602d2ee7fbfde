// SPDX-License-Identifier: MIT
/* gate.c - see gate.h */
#include "sched/gate.h"

#include <math.h>

#include "clock.h"

#define MEAN_NEW (1.0 / 16)

double gate_expected(double a, uint32_t k)
{
	return a < 1 ? (1 - pow(a, k + 1)) / (1 - a) : k + 1;
}

double gate_speedup(double a, uint32_t k, double c)
{
	return gate_expected(a, k) / (1 + k / c);
}

uint32_t gate_best(double a, double c, uint32_t max)
{
	uint32_t k, best = 1;

	for (k = 2; k <= max; k++)
		if (gate_speedup(a, k, c) > gate_speedup(a, best, c))
			best = k;
	return best;
}

static void mean_add(struct gate_mean *m, double v)
{
	if (m->n < GATE_SAMPLES)
		m->n++;
	/* the first ones count alike */
	m->v += (v - m->v) * (m->n < GATE_SAMPLES ? 1.0 / m->n : MEAN_NEW);
}

static struct gate_class *gate_class(struct gate *g, uint32_t n_seqs)
{
	uint32_t i = 0;

	while (n_seqs >>= 1)
		i++;
	return &g->class[i < GATE_CLASSES ? i : GATE_CLASSES - 1];
}

static bool class_known(const struct gate_class *c)
{
	return c->plain.n == GATE_SAMPLES && c->spec.n == GATE_SAMPLES;
}

/* What a drafted token costs, in steps: 1/c. */
static double class_c(const struct gate_class *c)
{
	double more = c->spec_s.v - c->plain_s.v;

	return more > 0 ? c->drafts.v * c->plain_s.v / more : HUGE_VAL;
}

uint32_t gate_drafts(struct gate *g, uint32_t n_seqs, uint32_t max)
{
	struct gate_class *c = gate_class(g, n_seqs);
	bool draft = c->on;

	c->steps++;
	if (!class_known(c))
		return c->steps % 2 ? max : 0;
	if (c->steps % GATE_PROBE == 0)
		draft = !draft;
	return draft ? gate_best(g->accept.v, class_c(c), max) : 0;
}

void gate_learn(struct gate *g, const struct gate_step *s)
{
	struct gate_class *c = gate_class(g, s->n_seqs);
	double sec = (double)s->ns / NS_PER_SEC;

	if (!s->ns)
		return;
	mean_add(s->drafted ? &c->spec : &c->plain, s->tokens / sec);
	mean_add(s->drafted ? &c->spec_s : &c->plain_s, sec);
	if (s->drafted) {
		mean_add(&c->drafts, (double)s->drafted / s->n_seqs);
		mean_add(&g->accept, (double)s->accepted / s->tried);
	}
	if (!class_known(c))
		return;
	if (c->spec.v < c->plain.v)
		c->on = false;
	else if (c->spec.v >= GATE_ON * c->plain.v)
		c->on = true;
}

bool gate_is_on(const struct gate *g, uint32_t n_seqs)
{
	return gate_class((struct gate *)g, n_seqs)->on;
}
