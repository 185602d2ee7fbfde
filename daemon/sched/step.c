// SPDX-License-Identifier: MIT
/*
 * step.c - the step thread: owns the running sequences
 *
 * One iteration: take admitted sequences; drop cancelled ones; build the rows
 * (decode first, with guessed tokens where speculation is a gain, then prompt chunks
 * in order of admission under the token budget); run the executor; sample, publish
 * full blocks, end what is done.
 * Nothing is allocated here.
 */
#include "sched/sched_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "log.h"

static uint32_t req_n_out(const struct req *r)
{
	return atomic_load_explicit(&r->n_out, memory_order_relaxed);
}

static bool req_decoding(const struct req *r)
{
	return r->pos >= r->n_prompt;
}

/* Operations could not be done: see kv_seq_view(). */
static void step_fail_view(struct sched *s, struct req *r)
{
	char text[KV_ERR_LEN];
	int error = r->kv.error;

	snprintf(text, sizeof(text), "the KV device could not drop tokens of the sequence: %s",
		 strerror(-error));
	kv_seq_close(s->cfg.kv, &r->kv);
	sched_fail(s, r, error, text);
}

/* Return: false when the scheduler stops and nothing runs. */
static bool step_take_admitted(struct sched *s, bool *stop)
{
	struct req *r;

	pthread_mutex_lock(&s->lock);
	while (s->n_seq == 0 && !s->admitted.head && !(s->stop && s->live == 0))
		pthread_cond_wait(&s->step_cv, &s->lock);
	while ((r = sched_pop(&s->admitted)))
		s->seq[s->n_seq++] = r;
	*stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return s->n_seq > 0;
}

static void step_drop_cancelled(struct sched *s, bool stop)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n_seq; i++) {
		struct req *r = s->seq[i];

		if (atomic_load_explicit(&r->cancel, memory_order_relaxed)) {
			kv_seq_close(s->cfg.kv, &r->kv);
			sched_end_cancelled(s, r);
		} else if (r->kv.error) {
			step_fail_view(s, r);
		} else if (stop) {
			kv_seq_close(s->cfg.kv, &r->kv);
			sched_fail(s, r, -ESHUTDOWN, "the server is shutting down");
		} else {
			s->seq[n++] = r;
		}
	}
	s->n_seq = n;
}

/*
 * Add the next tokens of a sequence, at most @n; only the last one may need logits.
 * Rows that see different things are not of one step, and a window bounds a step.
 * Return: rows added.
 */
static uint32_t step_add_rows(struct sched *s, struct req *r, uint32_t first, uint32_t n)
{
	uint32_t i, have = r->n_prompt + req_n_out(r);
	uint32_t until = kv_seq_view(s->cfg.kv, &r->kv, r->pos);
	uint32_t most = kv_seq_step_rows(s->cfg.kv, &r->kv);

	if (n > until - r->pos)
		n = until - r->pos;
	if (n > most)
		n = most;
	r->row = first;
	r->n_rows = n;
	for (i = 0; i < n; i++)
		s->rows[first + i] = (struct exec_row){
			.token = r->tokens[r->pos + i],
			.pos = r->pos + i - r->kv.moved,
			.at = r->pos + i - r->kv.hidden,
			.segs = r->kv.seg,
			.n_segs = r->kv.n_segs,
			.sparse = kv_seq_sparse(&r->kv),
			.read = r->pos + i + 1 == have ? r->kv.read : NULL,
			.want_logits = r->pos + i + 1 == have,
		};
	return n;
}

/* Tokens that a sequence may guess now. The last token generated needs no KV. */
static uint32_t step_guess_max(const struct sched *s, const struct req *r)
{
	uint32_t max = r->max_tokens - req_n_out(r) - 1;

	if (!r->spec.ring)
		return 0;
	if (max > kv_seq_step_rows(s->cfg.kv, &r->kv) - 1)
		max = kv_seq_step_rows(s->cfg.kv, &r->kv) - 1;
	if (max > r->spec.p.tokens)
		max = r->spec.p.tokens;
	if (r->spec.p.gate && max > s->spec.gated)
		max = s->spec.gated;
	return max < s->spec.spare ? max : s->spec.spare;
}

/* The next token of a decoding sequence, and guesses behind it. Return: rows added. */
static uint32_t step_add_decode(struct sched *s, struct req *r, uint32_t first)
{
	uint32_t max = step_guess_max(s, r), i;

	/* guesses are to see what the next token sees: all operations are in effect */
	if (kv_seq_view(s->cfg.kv, &r->kv, r->pos) != UINT32_MAX)
		max = 0;
	if (!max || !spec_begin(&r->spec, &r->kv, r->tokens, r->pos, max))
		return step_add_rows(s, r, first, 1);
	r->row = first;
	r->n_rows = r->spec.n + 1;
	for (i = 0; i < r->n_rows; i++)
		s->rows[first + i] = (struct exec_row){
			.token = i ? r->spec.guess[i - 1] : r->tokens[r->pos],
			.pos = r->pos + i - r->kv.moved,
			.at = r->pos + i - r->kv.hidden,
			.segs = r->spec.seg,
			.n_segs = r->spec.n_segs,
			.sparse = kv_seq_sparse(&r->kv),
			.read = r->kv.read,
			.want_logits = true,
		};
	s->spec.spare -= r->spec.n;
	s->spec.fair = s->spec.fair && r->spec.p.gate;
	return r->n_rows;
}

/* Half of what decoding leaves of the budget may be guesses: prompts go on, too. */
static void step_begin_spec(struct sched *s)
{
	uint32_t i, decode = 0, left;
	bool gated = false;

	for (i = 0; i < s->n_seq; i++) {
		decode += req_decoding(s->seq[i]);
		gated = gated || (s->seq[i]->spec.ring && s->seq[i]->spec.p.gate);
	}
	left = (s->cfg.batch_tokens - decode) / 2;
	s->spec = (struct step_spec){
		.spare = left < s->cfg.spec_rows ? left : s->cfg.spec_rows,
		.fair = decode > 0,
		.done.n_seqs = decode,
	};
	if (gated && decode)
		s->spec.gated = gate_drafts(&s->gate, decode, SPEC_TOKENS_MAX);
}

/* Chunked prefill: decode rows first, prompts share what is left. */
static uint32_t step_build(struct sched *s)
{
	uint32_t i, n = 0;

	step_begin_spec(s);
	s->prompt_rows = 0;
	for (i = 0; i < s->n_seq; i++) {
		struct req *r = s->seq[i];

		r->n_rows = 0;
		if (req_decoding(r))
			n += step_add_decode(s, r, n);
	}
	for (i = 0; i < s->n_seq && n < s->cfg.batch_tokens; i++) {
		struct req *r = s->seq[i];
		uint32_t c = r->n_prompt - r->pos;

		if (req_decoding(r))
			continue;
		if (c > s->cfg.chunk)
			c = s->cfg.chunk;
		if (c > s->cfg.batch_tokens - n)
			c = s->cfg.batch_tokens - n;
		c = step_add_rows(s, r, n, c);
		n += c;
		s->prompt_rows += c;
		s->spec.fair = false;
	}
	return n;
}

static void step_observe_token(struct sched *s, struct req *r, uint64_t now)
{
	if (req_n_out(r) == 0) {
		r->first_ns = now;
		metrics_observe(s->cfg.metrics, H_TTFT, now - r->arrival_ns);
	} else {
		metrics_observe(s->cfg.metrics, H_ITL, now - r->last_ns);
	}
	r->last_ns = now;
}

/*
 * Hand the next token of a sequence over.
 * Return: true when the sequence has ended.
 */
static bool step_give(struct sched *s, struct req *r, int32_t token, uint64_t now,
		      enum req_finish *why)
{
	uint32_t n = req_n_out(r);

	step_observe_token(s, r, now);
	*why = REQ_FINISH_STOP;
	if (tok_is_eog(s->cfg.tok, token))
		return true;
	r->tokens[r->n_prompt + n] = token;
	metrics_add(s->cfg.metrics, M_TOKENS_OUT, 1);
	if (r->stops.n)
		text_push(&r->text, token, r->scratch);
	atomic_store_explicit(&r->n_out, n + 1, memory_order_release);
	if (r->text.stopped)
		return true;
	*why = REQ_FINISH_LENGTH;
	if (n + 1 == r->max_tokens)
		return true;
	req_signal(r);
	return false;
}

static void step_count_round(struct sched *s, const struct req *r, uint32_t right)
{
	struct gate_step *d = &s->spec.done;

	d->drafted += r->spec.n;
	d->accepted += right;
	d->tried += right + (right < r->spec.n);
	metrics_add(s->cfg.metrics, M_SPEC_ROUNDS, 1);
	metrics_add(s->cfg.metrics, M_SPEC_DRAFTED, r->spec.n);
	metrics_add(s->cfg.metrics, M_SPEC_ACCEPTED, right);
}

/*
 * Choose tokens of a sequence until one is not what was guessed; without guesses
 * that is the next one.  Rows behind it were for nothing.
 * Return: true when the sequence has ended.
 */
static bool step_sample(struct sched *s, struct req *r, uint64_t now, enum req_finish *why)
{
	uint32_t row = r->row + r->n_rows - 1 - r->spec.n, i;
	bool accepted, ended;

	for (i = 0;; i++) {
		const float *logits = exec_logits(s->cfg.exec, row + i);
		int32_t token;

		accepted = false;
		if (i < r->spec.n)
			token = spec_choose(&r->sampler, logits, r->spec.guess[i], &accepted);
		else
			token = sample_next(&r->sampler, logits);
		s->spec.done.tokens++;
		ended = step_give(s, r, token, now, why);
		if (ended || !accepted)
			break;
	}
	if (r->spec.n) {
		step_count_round(s, r, i + accepted);
		r->n_rows = i + 1;
		spec_end(&r->spec, &r->kv, r->pos, r->n_rows);
	}
	return ended;
}

static void step_count_reads(struct sched *s, struct req *r)
{
	const struct exec_row *last = &s->rows[r->row + r->n_rows - 1];
	struct reads step;

	if (!last->read)
		return;
	step = reads_count(&r->reads, last, kv_block_tokens(s->cfg.kv));
	metrics_add(s->cfg.metrics, M_SPARSE_STEPS, step.steps);
	metrics_add(s->cfg.metrics, M_SPARSE_VISIBLE, step.visible);
	metrics_add(s->cfg.metrics, M_SPARSE_READ, step.read);
}

static void step_finish_rows(struct sched *s, uint64_t now)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n_seq; i++) {
		struct req *r = s->seq[i];
		enum req_finish why;
		bool ended = false;

		if (r->n_rows)
			step_count_reads(s, r);
		if (r->n_rows && r->pos + r->n_rows >= r->n_prompt)
			ended = step_sample(s, r, now, &why);
		r->pos += r->n_rows;
		if (r->n_rows)
			kv_seq_commit(s->cfg.kv, &r->kv, r->tokens, r->pos);
		if (ended) {
			kv_seq_close(s->cfg.kv, &r->kv);
			sched_finish(s, r, why);
		} else {
			s->seq[n++] = r;
		}
	}
	s->n_seq = n;
}

static bool step_any_prompt(const struct sched *s)
{
	uint32_t i;

	for (i = 0; i < s->n_seq; i++)
		if (!req_decoding(s->seq[i]))
			return true;
	return false;
}

/* The executor refuses a step only if we built it wrongly: end its sequences. */
static void step_fail_all(struct sched *s, int error)
{
	uint32_t i;

	log_err("executor refused a step of %u sequences: %s", s->n_seq,
		exec_step_error(s->cfg.exec));
	for (i = 0; i < s->n_seq; i++) {
		kv_seq_close(s->cfg.kv, &s->seq[i]->kv);
		sched_fail(s, s->seq[i], error, "the executor refused the step");
	}
	s->n_seq = 0;
}

void *sched_step_main(void *arg)
{
	struct sched *s = arg;
	bool stop;

	pthread_setname_np(pthread_self(), "hawkd-step");
	while (step_take_admitted(s, &stop)) {
		uint64_t start = clock_now_ns(), end;
		uint32_t n;
		int ret;

		step_drop_cancelled(s, stop);
		n = step_build(s);
		if (n == 0) {	/* all were cancelled, maybe in the middle of a prompt */
			prefill_ends(&s->prefill, s->cfg.kv);
			continue;
		}
		if (s->prompt_rows)
			prefill_runs(&s->prefill, s->cfg.kv, start);
		ret = exec_step(s->cfg.exec, s->rows, n);
		if (ret) {
			step_fail_all(s, ret);
			prefill_ends(&s->prefill, s->cfg.kv);
			continue;
		}
		end = clock_now_ns();
		if (s->prompt_rows >= s->cfg.chunk)
			prefill_learn(&s->prefill, s->prompt_rows, end - start);
		metrics_observe(s->cfg.metrics, H_STEP, end - start);
		metrics_add(s->cfg.metrics, M_STEPS, 1);
		metrics_add(s->cfg.metrics, M_ROWS, n);
		s->spec.done.ns = end - start;
		step_finish_rows(s, end);
		if (!step_any_prompt(s))
			prefill_ends(&s->prefill, s->cfg.kv);
		if (s->spec.fair)
			gate_learn(&s->gate, &s->spec.done);
	}
	return NULL;
}
