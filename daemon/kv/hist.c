// SPDX-License-Identifier: MIT
/* hist.c - see hist.h */
#include "kv/hist.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int hist_compare(const void *pa, const void *pb)
{
	const struct hist_op *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

void hist_sort(struct hist_op *ops, uint32_t n)
{
	if (n > 1)
		qsort(ops, n, sizeof(*ops), hist_compare);
}

static int hist_fail(char err[HIST_ERR_LEN], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int hist_fail(char err[HIST_ERR_LEN], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, HIST_ERR_LEN, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int hist_check_one(const struct hist_op *o, uint32_t n_prompt, char err[HIST_ERR_LEN])
{
	if (o->start >= o->end)
		return hist_fail(err, "span [%u, %u) is empty or ends before it starts", o->start,
				 o->end);
	if (o->end >= n_prompt)
		return hist_fail(
			err,
			"span [%u, %u) goes beyond what can be dropped: the prompt has %u tokens and its last one is needed",
			o->start, o->end, n_prompt);
	if (o->at < o->end)
		return hist_fail(
			err, "span [%u, %u) cannot be dropped at token %u, which is before its end",
			o->start, o->end, o->at);
	if (o->at >= n_prompt)
		return hist_fail(
			err,
			"span [%u, %u) is dropped at token %u, but the prompt has %u tokens: at most %u",
			o->start, o->end, o->at, n_prompt, n_prompt - 1);
	return 0;
}

int hist_check(const struct hist_op *ops, uint32_t n, uint32_t n_prompt, char err[HIST_ERR_LEN])
{
	uint32_t i, k, dropped = 0;
	int ret;

	if (n > HIST_OPS_MAX)
		return hist_fail(err, "%u spans, at most %u", n, HIST_OPS_MAX);
	for (i = 0; i < n; i++) {
		const struct hist_op *a = &ops[i];

		ret = hist_check_one(a, n_prompt, err);
		if (ret)
			return ret;
		for (k = 0; k < i; k++)
			if (a->start < ops[k].end && ops[k].start < a->end)
				return hist_fail(err, "spans [%u, %u) and [%u, %u) overlap",
						 ops[k].start, ops[k].end, a->start, a->end);
		dropped += a->end - a->start;
		/* all dropped so far lie before @at */
		if (dropped == a->at)
			return hist_fail(
				err,
				"nothing would be left to see for token %u: all before it is dropped",
				a->at);
	}
	return 0;
}

uint32_t hist_in_effect(const struct hist_op *ops, uint32_t n, uint32_t i)
{
	uint32_t k = 0;

	while (k < n && ops[k].at <= i)
		k++;
	return k;
}

uint32_t hist_dropped(const struct hist_op *ops, uint32_t n)
{
	uint32_t i, sum = 0;

	for (i = 0; i < n; i++)
		sum += ops[i].end - ops[i].start;
	return sum;
}

uint32_t hist_moved(const struct hist_op *ops, uint32_t n)
{
	uint32_t i, sum = 0;

	for (i = 0; i < n; i++)
		if (ops[i].repos)
			sum += ops[i].end - ops[i].start;
	return sum;
}

/* Spans do not overlap, so what they hide adds up. */
bool hist_hides(const struct hist_op *ops, uint32_t n, uint32_t first, uint32_t len)
{
	uint32_t i, hidden = 0;

	for (i = 0; i < n; i++) {
		uint32_t from = ops[i].start > first ? ops[i].start : first;
		uint32_t to = ops[i].end < first + len ? ops[i].end : first + len;

		if (from < to)
			hidden += to - from;
	}
	return hidden == len;
}

/* The end of the span that hides token @i, or 0. */
static uint32_t hist_hidden_to(const struct hist_op *ops, uint32_t n, uint32_t i)
{
	uint32_t k;

	for (k = 0; k < n; k++)
		if (ops[k].start <= i && i < ops[k].end)
			return ops[k].end;
	return 0;
}

/*
 * A token moves with every gap before it that was closed after it was computed.
 * @next: lowered to where that sum, or being visible, changes.
 */
static int32_t hist_shift(const struct hist_op *ops, uint32_t n, uint32_t i, uint32_t *next)
{
	int32_t shift = 0;
	uint32_t k;

	for (k = 0; k < n; k++) {
		const struct hist_op *o = &ops[k];

		if (o->start > i && o->start < *next)
			*next = o->start;
		if (o->at > i && o->at < *next)
			*next = o->at;
		if (o->repos && o->end <= i && i < o->at)
			shift += o->end - o->start;
	}
	return shift;
}

uint32_t hist_segs(const struct hist_op *ops, uint32_t n, uint32_t end, struct hist_seg *seg)
{
	uint32_t i = 0, count = 0;

	while (i < end) {
		uint32_t next = hist_hidden_to(ops, n, i);
		struct hist_seg *last = count ? &seg[count - 1] : NULL;
		int32_t shift;

		if (next) {
			i = next;
			continue;
		}
		next = end;
		shift = hist_shift(ops, n, i, &next);
		if (last && last->first + last->len == i && last->shift == shift)
			last->len += next - i;
		else
			seg[count++] = (struct hist_seg){ i, next - i, shift };
		i = next;
	}
	return count;
}

uint32_t hist_shifted(const struct hist_op *ops, uint32_t n, uint32_t end)
{
	struct hist_seg seg[HIST_SEGS(HIST_OPS_MAX)];
	uint32_t i, sum = 0, n_segs = hist_segs(ops, n, end, seg);

	for (i = 0; i < n_segs; i++)
		if (seg[i].shift)
			sum += seg[i].len;
	return sum;
}

uint32_t hist_positions(const struct hist_op *ops, uint32_t n, uint32_t n_total)
{
	uint32_t i, most = 0, moved = 0;

	for (i = 0; i < n; i++) {
		if (ops[i].at - moved > most)
			most = ops[i].at - moved;
		if (ops[i].repos)
			moved += ops[i].end - ops[i].start;
	}
	return n_total - moved > most ? n_total - moved : most;
}

uint32_t hist_key_ops(const struct hist_op *ops, uint32_t n, struct hawk_key_op *out)
{
	uint32_t i, count = 0;

	for (i = 0; i < n; i++) {
		const struct hist_op *o = &ops[i];

		out[count++] = (struct hawk_key_op){
			.kind = HAWK_KEY_DROP,
			.at = o->at,
			.start = o->start,
			.end = o->end,
		};
		if (o->repos)
			out[count++] = (struct hawk_key_op){
				.kind = HAWK_KEY_REPOS,
				.at = o->at,
				.start = o->end,
				.end = o->at,
				.shift = o->end - o->start,
			};
	}
	return count;
}
