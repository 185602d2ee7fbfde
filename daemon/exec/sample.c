// SPDX-License-Identifier: MIT
/* Choosing the next token. */
#include "exec/sample.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct cand {
	float logit;
	float p;
	int32_t id;
};

/* splitmix64: spreads any seed over the generator's state */
static uint64_t seed_next(uint64_t *s)
{
	uint64_t z = *s += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

/* xoshiro256** (Blackman, Vigna) */
static uint64_t rng_next(uint64_t s[4])
{
	uint64_t ret = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return ret;
}

/* uniform in [0, 1) */
static double rng_uniform(uint64_t s[4])
{
	return (double)(rng_next(s) >> 11) * 0x1p-53;
}

int sample_init(struct sampler *s, const struct sample_params *p, uint32_t n_vocab)
{
	uint64_t seed = p->seed;
	int i;

	if (!n_vocab || !(p->temperature >= 0.0f && p->temperature <= 100.0f) ||
	    !(p->top_p > 0.0f && p->top_p <= 1.0f))
		return -EINVAL;
	*s = (struct sampler){ .p = *p, .n_vocab = n_vocab };
	for (i = 0; i < 4; i++)
		s->rng[i] = seed_next(&seed);
	if (p->temperature == 0.0f)
		return 0;
	s->scratch = calloc(2 * (size_t)n_vocab, sizeof(struct cand));
	return s->scratch ? 0 : -ENOMEM;
}

void sample_free(struct sampler *s)
{
	free(s->scratch);
	s->scratch = NULL;
}

int32_t sample_greedy(const float *logits, uint32_t n_vocab)
{
	uint32_t i, best = 0;

	for (i = 1; i < n_vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

/* Does @a come before @b? A total order, so there is one way to sort. */
static bool cand_before(const struct cand *a, const struct cand *b)
{
	return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Merge sorted @c[0, mid) and @c[mid, n) to @out. */
static void cand_merge(const struct cand *c, size_t mid, size_t n, struct cand *out)
{
	size_t a = 0, b = mid, i;

	for (i = 0; i < n; i++)
		out[i] = b == n || (a < mid && cand_before(&c[a], &c[b])) ? c[a++] : c[b++];
}

/* Sort with a second array: qsort(3) would allocate one. Return: where the result is. */
static struct cand *cand_sort(struct cand *c, struct cand *spare, size_t n)
{
	size_t width, i, left;

	for (width = 1; width < n; width *= 2) {
		struct cand *from = c;

		for (i = 0; i < n; i += 2 * width) {
			left = n - i;
			cand_merge(from + i, left < width ? left : width,
				   left < 2 * width ? left : 2 * width, spare + i);
		}
		c = spare;
		spare = from;
	}
	return c;
}

/* Candidates, likeliest first; returns how many pass top-k. */
static uint32_t rank_candidates(struct sampler *s, const float *logits, struct cand **ranked)
{
	struct cand *c = s->scratch;
	uint32_t i, n = 0;

	for (i = 0; i < s->n_vocab; i++)
		if (isfinite(logits[i]))
			c[n++] = (struct cand){ logits[i], 0.0f, i };
	*ranked = cand_sort(c, c + s->n_vocab, n);
	return s->p.top_k && s->p.top_k < n ? s->p.top_k : n;
}

int32_t sample_next(struct sampler *s, const float *logits)
{
	struct cand *c;
	double total = 0, kept = 0, u;
	uint32_t i, n;

	if (s->p.temperature == 0.0f)
		return sample_greedy(logits, s->n_vocab);
	n = rank_candidates(s, logits, &c);
	for (i = 0; i < n; i++) {
		c[i].p = expf((c[i].logit - c[0].logit) / s->p.temperature);
		total += c[i].p;
	}
	for (i = 0; i < n && kept < s->p.top_p * total; i++)
		kept += c[i].p;
	n = i;
	u = rng_uniform(s->rng) * kept;
	for (i = 0; i + 1 < n; i++) {
		u -= c[i].p;
		if (u < 0)
			break;
	}
	/* no finite logit at all: fall back to a valid id */
	return n ? c[i].id : 0;
}

float sample_logprob(const float *logits, uint32_t n_vocab, int32_t id)
{
	float max = logits[sample_greedy(logits, n_vocab)];
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n_vocab; i++)
		sum += exp((double)logits[i] - max);
	return (float)((double)logits[id] - max - log(sum));
}
