// SPDX-License-Identifier: MIT
/* req.c - life of a request */
#include "sched/req.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int req_create(uint32_t n_prompt, uint32_t max_tokens, struct req **out)
{
	struct req *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->tokens = calloc((size_t)n_prompt + max_tokens, sizeof(*r->tokens));
	if (!r->tokens) {
		free(r);
		return -ENOMEM;
	}
	r->n_prompt = n_prompt;
	r->max_tokens = max_tokens;
	r->efd = -1;
	atomic_init(&r->refs, 1);
	*out = r;
	return 0;
}

int req_prepare(struct req *r, const struct tok *tok, const struct sample_params *p)
{
	int ret;

	ret = sample_init(&r->sampler, p, tok_count(tok));
	if (ret || r->stops.n == 0)
		return ret;
	ret = text_init(&r->text, tok, &r->stops, r->at_start);
	if (ret)
		return ret;
	r->scratch = malloc(text_push_max(&r->text));
	return r->scratch ? 0 : -ENOMEM;
}

void req_put(struct req *r)
{
	if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (r->efd >= 0)
		close(r->efd);
	free(r->scratch);
	text_free(&r->text);
	sample_free(&r->sampler);
	free(r->ops);
	free(r->tokens);
	free(r);
}

void req_signal(struct req *r)
{
	uint64_t one = 1;

	/* An eventfd only refuses when its counter is full: a wake-up is pending then. */
	if (write(r->efd, &one, sizeof(one)) < 0)
		return;
}
