// SPDX-License-Identifier: MIT
/* ngram.c - see ngram.h */
#include "sched/ngram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ngram_init(struct ngram *g, uint32_t n, uint32_t n_total)
{
	uint32_t entries = 16;

	while (entries < n_total && entries < 1u << 30)
		entries *= 2;
	*g = (struct ngram){ .n = n, .mask = entries - 1 };
	g->last = calloc(entries, sizeof(*g->last));
	return g->last ? 0 : -ENOMEM;
}

void ngram_free(struct ngram *g)
{
	free(g->last);
	g->last = NULL;
}

/* Entry of the run of tokens that ends before @end. */
static uint32_t *ngram_at(const struct ngram *g, const int32_t *hist, uint32_t end)
{
	uint64_t h = 0;
	uint32_t i;

	for (i = end - g->n; i < end; i++)
		h = (h ^ (uint32_t)hist[i]) * 0x9e3779b97f4a7c15u;
	return &g->last[h >> 32 & g->mask];
}

/* All but the run that is looked for, which ends with the history. */
void ngram_learn(struct ngram *g, const int32_t *hist, uint32_t n_hist)
{
	if (g->done < g->n)
		g->done = g->n;
	for (; g->done < n_hist; g->done++)
		*ngram_at(g, hist, g->done) = g->done;
}

uint32_t ngram_draft(struct ngram *g, const int32_t *hist, uint32_t n_hist, int32_t *out,
		     uint32_t max)
{
	uint32_t from, i;

	if (n_hist <= g->n)
		return 0;
	ngram_learn(g, hist, n_hist);
	from = *ngram_at(g, hist, n_hist);
	if (!from || memcmp(hist + from - g->n, hist + n_hist - g->n, g->n * sizeof(*hist)))
		return 0;
	for (i = 0; i < max; i++)
		out[i] = from + i < n_hist ? hist[from + i] : out[from + i - n_hist];
	return max;
}
