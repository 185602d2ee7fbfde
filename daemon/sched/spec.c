// SPDX-License-Identifier: MIT
/* spec.c - see spec.h */
#include "sched/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A round's rows see the ring's blocks, too. */
_Static_assert(SPEC_TOKENS_MAX + 2 <= KV_READ_MORE, "room in kv_seq.read");

/* The ring's memory as the executor wants it. */
static int spec_rows(struct spec *sp, uint32_t block_tokens)
{
	uint32_t rows = hawk_draft_slots(sp->ring) / block_tokens, i;

	sp->row = calloc(2 * (size_t)rows, sizeof(*sp->row));
	if (!sp->row)
		return -ENOMEM;
	for (i = 0; i < 2 * rows; i++)
		sp->row[i] = hawk_draft_block(sp->ring, i % rows, 0);
	return 0;
}

int spec_open(struct spec *sp, const struct spec_params *p, struct kv *kv, const struct kv_seq *s,
	      uint32_t n_total)
{
	int ret;

	memset(sp, 0, sizeof(*sp));
	sp->p = *p;
	if (!p->tokens)
		return 0;
	ret = kv_draft_open(kv, p->tokens + 1, &sp->ring);
	if (!ret)
		ret = spec_rows(sp, kv_block_tokens(kv));
	if (!ret)
		ret = ngram_init(&sp->ngram, p->ngram, n_total);
	if (ret)
		goto fail;
	sp->seg = calloc(HIST_SEGS(s->n_ops) + 1, sizeof(*sp->seg));
	if (sp->seg)
		return 0;
	ret = -ENOMEM;
fail:
	spec_close(sp);
	return ret;
}

void spec_close(struct spec *sp)
{
	hawk_draft_close(sp->ring);
	ngram_free(&sp->ngram);
	free(sp->row);
	free(sp->seg);
	memset(sp, 0, sizeof(*sp));
}

/* What is seen before token @pos, and behind it the ring from slot @slot on. */
static void spec_set_segs(struct spec *sp, const struct kv_seq *s, uint32_t pos, uint32_t slot)
{
	uint32_t left = pos - s->hidden, i;

	for (i = 0; left; i++) {
		sp->seg[i] = s->seg[i];
		if (sp->seg[i].len > left)
			sp->seg[i].len = left;
		left -= sp->seg[i].len;
	}
	sp->seg[i] = (struct exec_seg){ .blocks = sp->row, .tok = slot, .len = sp->n + 1 };
	sp->n_segs = i + 1;
}

uint32_t spec_begin(struct spec *sp, const struct kv_seq *s, const int32_t *tokens, uint32_t pos,
		    uint32_t max)
{
	uint32_t i;
	int slot;

	sp->n = ngram_draft(&sp->ngram, tokens, pos + 1, sp->guess, max);
	if (!sp->n)
		return 0;
	slot = hawk_draft_slot(sp->ring);
	for (i = 0; i < sp->n; i++)
		hawk_draft_slot(sp->ring);
	spec_set_segs(sp, s, pos, slot);
	return sp->n;
}

int32_t spec_choose(struct sampler *sampler, const float *logits, int32_t guess, bool *accepted)
{
	int32_t token = sample_next(sampler, logits);

	*accepted = token == guess;
	return token;
}

void spec_end(struct spec *sp, const struct kv_seq *s, uint32_t pos, uint32_t keep)
{
	hawk_draft_accept(sp->ring, keep, s->addr, pos);
	sp->n = 0;
}
