/* SPDX-License-Identifier: MIT */
/*
 * sample.h - choose the next token from logits. Deterministic: the same
 * logits, parameters and seed give the same tokens.
 */
#ifndef HAWK_SAMPLE_H
#define HAWK_SAMPLE_H

#include <stdint.h>

/**
 * struct sample_params - how to choose
 * @temperature: 0 = greedy (smallest id wins a tie); else logits are divided
 *               by it; 0..100
 * @top_p: keep the smallest set of tokens whose probability reaches this,
 *         (0, 1]; 1 keeps all
 * @top_k: keep the k likeliest tokens; 0 keeps all
 * @seed: start of the random sequence
 */
struct sample_params {
	float temperature;
	float top_p;
	uint32_t top_k;
	uint64_t seed;
};

/**
 * struct sampler - state of one sequence's choices
 *
 * Initialise with sample_init(). Plain data but for @scratch.
 */
struct sampler {
	struct sample_params p;
	uint64_t rng[4]; /* xoshiro256** */
	uint32_t n_vocab;
	void *scratch; /* candidates, twice n_vocab entries; NULL if greedy */
};

/**
 * sample_init() - check the parameters and seed the generator
 * Return: 0; -EINVAL a parameter out of range; -ENOMEM.
 */
int sample_init(struct sampler *s, const struct sample_params *p, uint32_t n_vocab);

/** sample_free() - release the scratch memory */
void sample_free(struct sampler *s);

/** sample_greedy() - index of the largest logit; the smallest id wins a tie */
int32_t sample_greedy(const float *logits, uint32_t n_vocab);

/** sample_next() - choose one token; allocates nothing, logits are not modified */
int32_t sample_next(struct sampler *s, const float *logits);

/**
 * sample_logprob() - natural log of the probability of @id under softmax
 * of the raw logits (temperature 1)
 */
float sample_logprob(const float *logits, uint32_t n_vocab, int32_t id);

#endif
