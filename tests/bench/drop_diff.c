// SPDX-License-Identifier: MIT
/*
 * drop_diff.c - how much dropping tokens from the cache changes what a model says
 *
 *	drop_diff MODEL TEXT...
 *
 * The texts are cut into windows of WINDOW tokens.  In each, tokens [START, END) are
 * taken away before token AT is computed, in four ways:
 *
 *	fresh	the prompt is read again without them: what the others are compared with
 *	closed	dropped, and the gap closed (hawkd's default)
 *	open	dropped, the rest keep their positions
 *	none	nothing is dropped
 *
 * and the rest of the window is predicted, token by token.  "fresh" and "closed"
 * differ because tokens between END and AT had seen the dropped ones when they were
 * computed.  Printed: how often the likeliest next token is that of "fresh", the
 * Kullback-Leibler divergence of the prediction from it, and the perplexity.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "exec/exec.h"
#include "kv/hist.h"
#include "tok/tok.h"

#define WINDOW	1024u
#define START	128u
#define END	384u
#define AT	768u
#define TESTED	(WINDOW - AT)	/* tokens predicted in a window */
#define TOKENS	16u		/* per block */
#define ROWS	TESTED		/* of a step */

enum way { FRESH, CLOSED, OPEN, NONE, WAYS };

static const char *const way_name[WAYS] = { "fresh", "closed", "open", "none" };

/**
 * struct diff - everything there is
 * @block: KV memory of one window
 * @p: log probabilities of FRESH's predictions, TESTED times the vocabulary
 * @agree, @kl, @nats: sums over @n predictions, by way
 */
struct diff {
	struct model *m;
	struct tok *tok;
	struct exec *e;
	void *block[WINDOW / TOKENS];
	float *p;
	uint64_t n, agree[WAYS];
	double kl[WAYS], nats[WAYS];
};

static void diff_open(struct diff *d, const char *path)
{
	struct exec_config cfg = { .max_rows = ROWS, .block_tokens = TOKENS };
	char err[GGUF_ERR_LEN];
	uint32_t i;

	if (model_load(path, &d->m, err) ||
	    tok_create(d->m->gguf, d->m->cfg.n_vocab, &d->tok, err) ||
	    exec_create(d->m, &cfg, &d->e, err))
		bench_die("%s", err);
	if (d->m->cfg.n_ctx < WINDOW)
		bench_die("%s has a context of %u tokens, %u are needed", path, d->m->cfg.n_ctx,
			  WINDOW);
	for (i = 0; i < WINDOW / TOKENS; i++)
		d->block[i] = calloc(1, exec_kv_block_bytes(&d->m->cfg, TOKENS, cfg.kv_type));
	d->p = calloc((size_t)TESTED * d->m->cfg.n_vocab, sizeof(*d->p));
	if (!d->p || !d->block[WINDOW / TOKENS - 1])
		bench_die("no memory");
}

/* Compute tokens [@from, @to) of a history, the first @n operations being in effect. */
static void compute(struct diff *d, const int32_t *ids, uint32_t from, uint32_t to,
		    const struct hist_op *op, uint32_t n, bool want)
{
	struct hist_seg hs[HIST_SEGS(1)];
	struct exec_seg seg[HIST_SEGS(1)];
	struct exec_row row[ROWS];
	uint32_t i, k, n_segs = hist_segs(op, n, to, hs);

	for (i = 0; i < n_segs; i++)
		seg[i] = (struct exec_seg) {
			.blocks = d->block,
			.tok = hs[i].first,
			.len = hs[i].len,
			.shift = hs[i].shift,
		};
	for (; from < to; from += k) {
		k = to - from < ROWS ? to - from : ROWS;
		for (i = 0; i < k; i++)
			row[i] = (struct exec_row){
				.token = ids[from + i],
				.pos = from + i - hist_moved(op, n),
				.at = from + i - hist_dropped(op, n),
				.segs = seg,
				.n_segs = n_segs,
				.want_logits = want,
			};
		if (exec_step(d->e, row, k))
			bench_die("%s", exec_step_error(d->e));
	}
}

static uint32_t best_of(const float *v, uint32_t n)
{
	uint32_t i, best = 0;

	for (i = 1; i < n; i++)
		if (v[i] > v[best])
			best = i;
	return best;
}

/* Predictions of the last step against those of FRESH. */
static void compare(struct diff *d, const int32_t *next, enum way way)
{
	uint32_t n_vocab = d->m->cfg.n_vocab, i, k;

	for (i = 0; i + 1 < TESTED; i++) {
		const float *logits = exec_logits(d->e, i);
		float *p = d->p + (size_t)i * n_vocab;
		double top = logits[best_of(logits, n_vocab)], sum = 0;

		for (k = 0; k < n_vocab; k++)
			sum += exp(logits[k] - top);
		sum = log(sum) + top;
		if (way == FRESH)
			for (k = 0; k < n_vocab; k++)
				p[k] = logits[k] - sum;
		for (k = 0; way != FRESH && k < n_vocab; k++)
			d->kl[way] += exp(p[k]) * (p[k] - (logits[k] - sum));
		d->agree[way] += best_of(p, n_vocab) == best_of(logits, n_vocab);
		d->nats[way] -= logits[next[i]] - sum;
	}
}

static void window(struct diff *d, const int32_t *ids)
{
	struct hist_op op = { .at = AT, .start = START, .end = END };
	int32_t cut[WINDOW];
	enum way way;

	memcpy(cut, ids, START * sizeof(*ids));
	memcpy(cut + START, ids + END, (WINDOW - END) * sizeof(*ids));
	for (way = FRESH; way < WAYS; way++) {
		uint32_t gone = way == FRESH ? END - START : 0;
		const int32_t *t = way == FRESH ? cut : ids;

		op.repos = way == CLOSED;
		compute(d, t, 0, AT - gone, &op, 0, false);
		compute(d, t, AT - gone, WINDOW - gone, &op, way == CLOSED || way == OPEN, true);
		compare(d, ids + AT + 1, way);
	}
	d->n += TESTED - 1;
}

static char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(TOK_MAX_TEXT);

	if (!f || !text)
		bench_die("cannot read %s", path);
	*len = fread(text, 1, TOK_MAX_TEXT, f);
	fclose(f);
	return text;
}

static uint32_t file(struct diff *d, const char *path)
{
	size_t len, n, at;
	int32_t *ids;
	char *text = read_file(path, &len);

	if (tok_encode(d->tok, text, len, TOK_ADD_SPECIAL, &ids, &n))
		bench_die("cannot tokenise %s", path);
	for (at = 0; at + WINDOW <= n; at += WINDOW)
		window(d, ids + at);
	free(ids);
	free(text);
	return at / WINDOW;
}

int main(int argc, char **argv)
{
	static struct diff d;
	uint32_t windows = 0;
	enum way way;
	int i;

	if (argc < 3)
		bench_die("usage: drop_diff MODEL TEXT...");
	diff_open(&d, argv[1]);
	for (i = 2; i < argc; i++)
		windows += file(&d, argv[i]);
	if (!windows)
		bench_die("no text has %u tokens", WINDOW);
	printf("%u windows of %u tokens; [%u, %u) taken away at %u; %llu predictions\n", windows,
	       WINDOW, START, END, AT, (unsigned long long)d.n);
	printf("%-8s %18s %14s %12s\n", "", "same next token", "KL, nats", "perplexity");
	for (way = FRESH; way < WAYS; way++)
		printf("%-8s %16.2f %% %14.6f %12.4f\n", way_name[way], 100.0 * d.agree[way] / d.n,
		       d.kl[way] / d.n, exp(d.nats[way] / d.n));
	exec_destroy(d.e);
	return 0;
}
