// SPDX-License-Identifier: MIT
/* status.c - models, health and metrics */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_priv.h"

static json_t *model_object(const struct http *h)
{
	return json_pack("{s:s, s:s, s:i, s:s, s:i}", "id", h->cfg.model_name, "object", "model",
			 "created", 0, "owned_by", "hawkd", "context_length",
			 (int)h->cfg.env.n_ctx);
}

enum MHD_Result status_models(struct call *c)
{
	return http_reply_json(
		c, 200, json_pack("{s:s, s:[o]}", "object", "list", "data", model_object(c->h)));
}

enum MHD_Result status_model(struct call *c)
{
	const char *name = c->url + strlen("/v1/models/");
	struct api_error e;

	if (!strcmp(name, c->h->cfg.model_name))
		return http_reply_json(c, 200, model_object(c->h));
	api_fail(&e, 404, "model_not_found", "model",
		 "the model '%.100s' does not exist; this server has '%s'", name,
		 c->h->cfg.model_name);
	return http_reply_error(c, &e);
}

/*
 * Alive: the process answers.  Ready: it would take a request now, that is, it
 * does not drain, the queue has room, and not all KV blocks are pinned.
 * "/health?ready" answers 503 when not ready.
 */
enum MHD_Result status_health(struct call *c)
{
	struct sched_stat ss;
	struct kv_stat ks;
	bool ready, ask;
	json_t *o;

	sched_get_stat(c->h->cfg.sched, &ss);
	if (kv_get_stat(c->h->cfg.kv, &ks))
		memset(&ks, 0, sizeof(ks));
	ready = !ss.draining && ss.queued < ss.queue_max && ks.space.pinned < ks.capacity_blocks;
	ask = MHD_lookup_connection_value_n(c->conn, MHD_GET_ARGUMENT_KIND, "ready",
					    strlen("ready"), NULL, NULL) == MHD_YES;
	o = json_pack("{s:s, s:b, s:s, s:i, s:i, s:{s:s, s:I, s:I, s:I, s:I}}", "status", "ok",
		      "ready", ready, "model", c->h->cfg.model_name, "running_sequences",
		      (int)ss.running, "queued_requests", (int)ss.queued, "kv", "backend",
		      kv_backend(c->h->cfg.kv), "block_tokens", (json_int_t)ks.block_tokens,
		      "block_bytes", (json_int_t)ks.block_bytes, "capacity_blocks",
		      (json_int_t)ks.capacity_blocks, "pinned_blocks", (json_int_t)ks.space.pinned);
	return http_reply_json(c, ask && !ready ? 503 : 200, o);
}

static void print_value(FILE *f, const char *name, const char *type, uint64_t v, const char *help)
{
	metrics_head(f, name, type, help);
	fprintf(f, "%s %llu\n", name, (unsigned long long)v);
}

static void print_kv(const struct kv_stat *ks, FILE *f)
{
	const struct hawk_stats *s = &ks->space;

	metrics_head(f, "hawkd_kv_blocks", "gauge", "KV blocks by where they are now.");
	fprintf(f, "hawkd_kv_blocks{where=\"all\"} %llu\n", (unsigned long long)s->blocks);
	fprintf(f, "hawkd_kv_blocks{where=\"dram\"} %llu\n", (unsigned long long)s->resident);
	fprintf(f, "hawkd_kv_blocks{where=\"flash\"} %llu\n", (unsigned long long)s->flash);
	print_value(f, "hawkd_kv_pinned_blocks", "gauge", s->pinned,
		    "KV blocks that running sequences hold.");
	print_value(f, "hawkd_kv_capacity_blocks", "gauge", ks->capacity_blocks,
		    "KV blocks that the host tiers hold.");
	print_value(f, "hawkd_kv_block_bytes", "gauge", ks->block_bytes, "Bytes of a KV block.");
	metrics_head(f, "hawkd_kv_lookups_total", "counter", "Keys looked up by result.");
	fprintf(f, "hawkd_kv_lookups_total{result=\"hit\"} %llu\n", (unsigned long long)s->hits);
	fprintf(f, "hawkd_kv_lookups_total{result=\"miss\"} %llu\n", (unsigned long long)s->misses);
	metrics_head(
		f, "hawkd_kv_evicted_blocks_total", "counter",
		"Blocks that left a host tier: clean (copy on flash already), written, dropped.");
	fprintf(f, "hawkd_kv_evicted_blocks_total{how=\"clean\"} %llu\n",
		(unsigned long long)s->evict_clean);
	fprintf(f, "hawkd_kv_evicted_blocks_total{how=\"written\"} %llu\n",
		(unsigned long long)s->evict_write);
	fprintf(f, "hawkd_kv_evicted_blocks_total{how=\"dropped\"} %llu\n",
		(unsigned long long)s->evict_drop);
	print_value(f, "hawkd_kv_flash_dropped_blocks_total", "counter", s->flash_drop,
		    "Blocks dropped from flash.");
	print_value(f, "hawkd_kv_reloaded_blocks_total", "counter", s->reloads,
		    "Blocks reloaded from flash.");
	print_value(f, "hawkd_kv_reload_errors_total", "counter", s->reload_errors,
		    "Reloads that failed; their blocks are gone.");
	print_value(f, "hawkd_kv_refused_blocks_total", "counter", s->nospace + s->quota,
		    "Allocations refused for want of room.");
}

static void print_reloads(const struct kv_stat *ks, FILE *f)
{
	static const char *const choice[KV_CHOICES] = { "reload", "recompute", "trial" };
	const struct hawk_stats *s = &ks->space;
	unsigned int i;

	metrics_head(f, "hawkd_kv_reload_choices_total", "counter",
		     "Cached prefixes with blocks on flash: all brought (reload), some computed "
		     "instead (recompute), all brought although it seemed slower (trial).");
	for (i = 0; i < KV_CHOICES; i++)
		fprintf(f, "hawkd_kv_reload_choices_total{choice=\"%s\"} %llu\n", choice[i],
			(unsigned long long)ks->reload[i]);
	print_value(f, "hawkd_kv_reloads_late_total", "counter", ks->reload_late,
		    "Reloads that missed their deadline; what was missing was computed.");
	print_value(f, "hawkd_kv_left_tokens_total", "counter", ks->left_tokens,
		    "Prompt tokens on flash that were computed because that is quicker.");
	print_value(f, "hawkd_kv_prefill_phases_total", "counter", ks->phases,
		    "Times that the KV device was told that prefill runs.");
	print_value(f, "hawkd_kv_promoted_blocks_total", "counter", s->promoted,
		    "Blocks copied to a host tier during prefill.");
	print_value(f, "hawkd_kv_promotions_canceled_total", "counter", s->promote_canceled,
		    "Promotions given up for want of room or because others waited.");
	print_value(f, "hawkd_kv_paced_waits_total", "counter", s->paced_waits,
		    "Times that a reload waited for its turn.");
	metrics_head(f, "hawkd_kv_paced_wait_seconds_total", "counter", "How long they did.");
	fprintf(f, "hawkd_kv_paced_wait_seconds_total %.9f\n", s->paced_wait_ns / 1e9);
}

static void print_tiers(const struct kv_stat *ks, FILE *f)
{
	static const struct {
		const char *name;
		const char *type;
		const char *help;
		size_t off;
	} m[] = {
		{ "hawkd_tier_bytes", "gauge", "Capacity of a tier.",
		  offsetof(struct hawk_tier_info, bytes) },
		{ "hawkd_tier_free_bytes", "gauge", "Bytes of a tier that no space owns.",
		  offsetof(struct hawk_tier_info, free_bytes) },
		{ "hawkd_tier_read_bytes_total", "counter", "Bytes read from a tier by reloads.",
		  offsetof(struct hawk_tier_info, read_bytes) },
		{ "hawkd_tier_written_bytes_total", "counter",
		  "Bytes written to a tier by evictions.",
		  offsetof(struct hawk_tier_info, write_bytes) },
		{ "hawkd_tier_io_errors_total", "counter", "Failed or corrupt transfers.",
		  offsetof(struct hawk_tier_info, io_errors) },
	};
	size_t i;
	uint32_t t;

	for (i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		metrics_head(f, m[i].name, m[i].type, m[i].help);
		for (t = 0; t < ks->n_tiers; t++) {
			uint64_t v;

			memcpy(&v, (const char *)&ks->tier[t] + m[i].off, sizeof(v));
			fprintf(f, "%s{tier=\"%u\",kind=\"%s\"} %llu\n", m[i].name,
				ks->tier[t].tier,
				ks->tier[t].kind == HAWK_TIER_HOST ? "dram" :
				ks->tier[t].kind == HAWK_TIER_USER ? "gpu" : "flash",
				(unsigned long long)v);
		}
	}
}

enum MHD_Result status_metrics(struct call *c)
{
	struct sched_stat ss;
	struct kv_stat ks;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	f = open_memstream(&text, &len);
	if (!f)
		return MHD_NO;
	metrics_print(c->h->cfg.metrics, f);
	sched_get_stat(c->h->cfg.sched, &ss);
	print_value(f, "hawkd_running_sequences", "gauge", ss.running,
		    "Sequences admitted or being admitted.");
	print_value(f, "hawkd_queued_requests", "gauge", ss.queued,
		    "Requests that wait for admission.");
	print_value(f, "hawkd_prefill_tokens_per_second", "gauge", ss.prefill_rate,
		    "Rate at which prompts are computed, 0: not known yet.");
	if (kv_get_stat(c->h->cfg.kv, &ks) == 0) {
		print_kv(&ks, f);
		print_reloads(&ks, f);
		print_tiers(&ks, f);
		print_value(f, "hawkd_kv_unreadable_blocks_total", "counter", ks.reload_failed,
			    "Cached prefixes cut short because a block could not be read back.");
	}
	if (fclose(f)) {
		free(text);
		return MHD_NO;
	}
	return http_reply(c, 200, "text/plain; version=0.0.4; charset=utf-8", text, len);
}
