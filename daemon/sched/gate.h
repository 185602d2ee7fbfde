/* SPDX-License-Identifier: MIT */
/*
 * gate.h - is speculation a gain now, and how much of it?
 *
 * Drafted tokens are rows of a step that may be for nothing.  With few sequences a
 * step has time for them, with many it has not; and how many are accepted depends
 * on the text.  So goodput, tokens handed over per second, is measured with drafts
 * and without at each batch size (a power of two of decoding sequences), and drafts
 * are switched
 *
 *	off  when goodput with them is below that without,
 *	on   when it is GATE_ON times that without or more.
 *
 * In between all stays as it is (hysteresis).  Until both are known steps take
 * turns; later every GATE_PROBE-th is of the other kind, so that both stay true.
 *
 * How many tokens to draft follows from Equation 6: with acceptance a of each token,
 * K drafted give (1 - a^(K+1)) / (1 - a) tokens a round, and a round costs 1 + K/c
 * steps if a drafted token costs 1/c of a step.
 *
 * What is drafted never changes what is generated (spec.h), so clocks may decide.
 */
#ifndef HAWKD_GATE_H
#define HAWKD_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_CLASSES 13u /* 1, 2..3, 4..7, ... sequences, up to EXEC_MAX_ROWS */
#define GATE_PROBE   32u /* a step of the other kind among so many */
#define GATE_SAMPLES 8u	 /* steps of each kind before anything is decided */
#define GATE_ON	     1.05

/** gate_expected() - Equation 6: tokens of a round of @k drafts with acceptance @a */
double gate_expected(double a, uint32_t k);

/** gate_speedup() - the same per step's time, if a drafted token costs 1/@c of a step */
double gate_speedup(double a, uint32_t k, double c);

/** gate_best() - drafts, 1..@max, that give the most */
uint32_t gate_best(double a, double c, uint32_t max);

/**
 * struct gate_mean - a mean that forgets: the latest 1/16 of it is new
 * @v: the mean
 * @n: samples, up to GATE_SAMPLES
 */
struct gate_mean {
	double v;
	uint32_t n;
};

/**
 * struct gate_class - what is known of one batch size
 * @plain, @spec: goodput without and with drafts, tokens per second
 * @plain_s, @spec_s: time of such a step, seconds
 * @drafts: drafted tokens of a step with drafts, per sequence that decodes
 * @steps: decided so far
 * @on: drafts are a gain
 */
struct gate_class {
	struct gate_mean plain;
	struct gate_mean spec;
	struct gate_mean plain_s;
	struct gate_mean spec_s;
	struct gate_mean drafts;
	uint32_t steps;
	bool on;
};

/**
 * struct gate - used by one thread
 * @class: by batch size
 * @accept: acceptance of a drafted token whose predecessors were accepted
 */
struct gate {
	struct gate_class class[GATE_CLASSES];
	struct gate_mean accept;
};

/**
 * struct gate_step - what a step did
 * @n_seqs: sequences that decoded, 1 or more
 * @tokens: handed over
 * @drafted: tokens drafted; 0: a step without
 * @accepted: of these
 * @tried: of these, those whose predecessors were accepted
 * @ns: time that it took
 */
struct gate_step {
	uint32_t n_seqs;
	uint32_t tokens;
	uint32_t drafted;
	uint32_t accepted;
	uint32_t tried;
	uint64_t ns;
};

/**
 * gate_drafts() - how many tokens to draft in the next step
 * @n_seqs: sequences that will decode
 * @max: at most
 * Return: 0: none.
 */
uint32_t gate_drafts(struct gate *g, uint32_t n_seqs, uint32_t max);

/** gate_learn() - a step that did nothing but decode is over */
void gate_learn(struct gate *g, const struct gate_step *s);

/** gate_is_on() - are drafts a gain with so many sequences? */
bool gate_is_on(const struct gate *g, uint32_t n_seqs);

#endif
