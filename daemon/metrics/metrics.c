// SPDX-License-Identifier: MIT
/* metrics.c - see metrics.h */
#include "metrics/metrics.h"

#include "clock.h"

/* Upper bounds of the histogram buckets, in microseconds. */
static const uint32_t bucket_us[METRICS_BUCKETS] = {
	500,	1000,	2500,	 5000,	  10000,   25000,    50000,    100000,
	250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000,
};

struct counter_desc {
	const char *name;
	const char *label; /* without braces, or NULL */
	const char *help;  /* of the first counter of a name */
};

/* Counters of one name are adjacent. */
static const struct counter_desc counter_desc[M_COUNTERS] = {
	[M_REQ_OK] = { "hawkd_requests_total", "outcome=\"ok\"", "Sequences by how they ended." },
	[M_REQ_CANCELLED] = { "hawkd_requests_total", "outcome=\"cancelled\"", NULL },
	[M_REQ_FAILED] = { "hawkd_requests_total", "outcome=\"failed\"", NULL },
	[M_REQ_REJECTED] = { "hawkd_requests_total", "outcome=\"rejected\"", NULL },
	[M_PROMPT_DRAM] = { "hawkd_prompt_tokens_total", "source=\"dram\"",
			    "Prompt tokens of admitted sequences by where their KV came from." },
	[M_PROMPT_FLASH] = { "hawkd_prompt_tokens_total", "source=\"flash\"", NULL },
	[M_PROMPT_SKIPPED] = { "hawkd_prompt_tokens_total", "source=\"skipped\"", NULL },
	[M_PROMPT_RECOMPUTED] = { "hawkd_prompt_tokens_total", "source=\"recomputed\"", NULL },
	[M_DROPPED] = { "hawkd_dropped_tokens_total", NULL,
			"Prompt tokens of admitted sequences that were dropped from the cache." },
	[M_SHIFTED] = { "hawkd_shifted_tokens_total", NULL,
			"Prompt tokens of admitted sequences whose keys are read shifted." },
	[M_TOKENS_OUT] = { "hawkd_generated_tokens_total", NULL, "Tokens generated." },
	[M_STEPS] = { "hawkd_steps_total", NULL, "Executor steps." },
	[M_ROWS] = { "hawkd_step_tokens_total", NULL,
		     "Tokens computed in executor steps, prefill and decode." },
	[M_SPEC_ROUNDS] = { "hawkd_spec_rounds_total", NULL,
			    "Steps of a sequence with guessed tokens." },
	[M_SPEC_DRAFTED] = { "hawkd_spec_tokens_total", "kind=\"drafted\"",
			     "Tokens guessed by speculation, and of these the right ones." },
	[M_SPEC_ACCEPTED] = { "hawkd_spec_tokens_total", "kind=\"accepted\"", NULL },
	[M_SPARSE_STEPS] = { "hawkd_sparse_steps_total", NULL,
			     "Steps in which a sparse sequence chose tokens." },
	[M_SPARSE_VISIBLE] = { "hawkd_sparse_blocks_total", "kind=\"visible\"",
			       "Blocks that sparse sequences saw in such steps, and of these those read." },
	[M_SPARSE_READ] = { "hawkd_sparse_blocks_total", "kind=\"read\"", NULL },
	[M_HTTP_2XX] = { "hawkd_http_responses_total", "class=\"2xx\"",
			 "HTTP responses by status class." },
	[M_HTTP_4XX] = { "hawkd_http_responses_total", "class=\"4xx\"", NULL },
	[M_HTTP_5XX] = { "hawkd_http_responses_total", "class=\"5xx\"", NULL },
};

static const struct {
	const char *name;
	const char *help;
} hist_desc[H_COUNT] = {
	[H_QUEUE] = { "hawkd_queue_seconds", "Arrival of a request to its admission." },
	[H_TTFT] = { "hawkd_ttft_seconds", "Arrival of a request to its first token." },
	[H_TPOT] = { "hawkd_tpot_seconds", "Mean gap between the tokens of a request." },
	[H_ITL] = { "hawkd_itl_seconds", "Each gap between two tokens of a request." },
	[H_STEP] = { "hawkd_step_seconds", "One executor step." },
	[H_RELOAD] = { "hawkd_reload_seconds",
		       "Reload of a request's cached KV of which some was on flash." },
	[H_RELOAD_ESTIMATE] = { "hawkd_reload_estimate_seconds",
				"What the KV device expected these reloads to take, had all come." },
	[H_CANCEL] = { "hawkd_cancel_seconds", "Cancellation to release of its KV." },
};

void metrics_observe(struct metrics *m, enum metrics_hist h, uint64_t ns)
{
	unsigned int i = 0;

	while (i < METRICS_BUCKETS && ns > bucket_us[i] * 1000ull)
		i++;
	atomic_fetch_add_explicit(&m->hist[h].bucket[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->hist[h].sum_ns, ns, memory_order_relaxed);
}

void metrics_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_print_hist(struct metrics *m, unsigned int h, FILE *f)
{
	const char *name = hist_desc[h].name;
	uint64_t sum, n = 0;
	unsigned int i;

	metrics_head(f, name, "histogram", hist_desc[h].help);
	for (i = 0; i < METRICS_BUCKETS; i++) {
		n += atomic_load_explicit(&m->hist[h].bucket[i], memory_order_relaxed);
		fprintf(f, "%s_bucket{le=\"%g\"} %llu\n", name, bucket_us[i] / 1e6,
			(unsigned long long)n);
	}
	n += atomic_load_explicit(&m->hist[h].bucket[i], memory_order_relaxed);
	sum = atomic_load_explicit(&m->hist[h].sum_ns, memory_order_relaxed);
	fprintf(f, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9f\n%s_count %llu\n", name,
		(unsigned long long)n, name, (double)sum / NS_PER_SEC, name, (unsigned long long)n);
}

void metrics_print(struct metrics *m, FILE *f)
{
	unsigned int i;

	for (i = 0; i < M_COUNTERS; i++) {
		const struct counter_desc *d = &counter_desc[i];

		if (d->help)
			metrics_head(f, d->name, "counter", d->help);
		fprintf(f, "%s%s%s%s %llu\n", d->name, d->label ? "{" : "",
			d->label ? d->label : "", d->label ? "}" : "",
			(unsigned long long)metrics_read(m, i));
	}
	for (i = 0; i < H_COUNT; i++)
		metrics_print_hist(m, i, f);
}
