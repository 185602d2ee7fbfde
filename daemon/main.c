// SPDX-License-Identifier: MIT
/*
 * main.c - hawkd: start in order of dependence, serve until a signal, drain,
 * stop in reverse order
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "http/http.h"
#include "log.h"
#include "options.h"

/* Everything that lives as long as the process. */
struct daemon {
	struct options opt;
	struct model *model;
	struct tok *tok;
	struct exec *exec;
	struct kv *kv;
	struct metrics metrics;
	struct sched *sched;
	struct auth auth;
	struct http *http;
	char name[128];
	uint32_t n_ctx;
};

/* "dir/story.gguf" serves as "story". */
static void pick_name(struct daemon *d)
{
	const char *base = strrchr(d->opt.model, '/');
	size_t len;

	base = d->opt.alias ? d->opt.alias : base ? base + 1 : d->opt.model;
	snprintf(d->name, sizeof(d->name), "%s", base);
	len = strlen(d->name);
	if (!d->opt.alias && len > 5 && !strcmp(d->name + len - 5, ".gguf"))
		d->name[len - 5] = '\0';
}

static int start_model(struct daemon *d)
{
	char err[GGUF_ERR_LEN];
	int ret;

	ret = model_load(d->opt.model, &d->model, err);
	if (!ret)
		ret = tok_create(d->model->gguf, d->model->cfg.n_vocab, &d->tok, err);
	if (ret) {
		log_err("cannot load %s: %s", d->opt.model, err);
		return ret;
	}
	d->n_ctx = d->opt.ctx ? d->opt.ctx : d->model->cfg.n_ctx;
	if (d->n_ctx > d->model->cfg.n_ctx) {
		log_err("--ctx %u is more than the %u tokens the model was trained for", d->n_ctx,
			d->model->cfg.n_ctx);
		return -EINVAL;
	}
	pick_name(d);
	return 0;
}

/* Rows of a step that may be guesses: each costs memory for its logits. */
static uint32_t spec_rows(const struct daemon *d)
{
	uint32_t most = d->opt.batch_tokens - d->opt.max_seqs;

	return most < SPEC_ROWS ? most : SPEC_ROWS;
}

/*
 * Blocks that a sparse row may see. Visible tokens, drafts included, have positions of
 * their own, at most n_ctx; each segment may add a part of a block at both ends.
 */
static uint32_t sparse_blocks(const struct daemon *d)
{
	uint32_t segs = HIST_SEGS(HIST_OPS_MAX) + 1;

	return d->opt.no_sparse ? 0 : d->n_ctx / d->opt.block_tokens + 2 * segs;
}

static int start_exec(struct daemon *d)
{
	struct exec_config cfg = {
		.n_threads = d->opt.threads,
		.max_rows = d->opt.batch_tokens,
		.max_logits = d->opt.max_seqs + spec_rows(d),
		.block_tokens = d->opt.block_tokens,
		.kv_type = d->opt.kv_type,
		.sparse_blocks = sparse_blocks(d),
		.isa = d->opt.isa,
		.pin = d->opt.pin,
	};
	char err[GGUF_ERR_LEN];
	int ret;

	ret = exec_create(d->model, &cfg, &d->exec, err);
	if (ret)
		log_err("%s", err);
	return ret;
}

/* What the bits of a block depend on besides its tokens: see exec.h. */
static int start_kv(struct daemon *d)
{
	char layout[64], err[KV_ERR_LEN];
	struct kv_config cfg = {
		.url = d->opt.kv_url,
		.block_payload =
			exec_kv_block_bytes(&d->model->cfg, d->opt.block_tokens, d->opt.kv_type),
		.block_tokens = d->opt.block_tokens,
		.planes = exec_kv_planes(&d->model->cfg),
		.model = d->model->id,
		.dtype_name = d->opt.kv_type == EXEC_KV_F16 ? "f16" : "f32",
		.layout = layout,
		.dtype = d->opt.kv_type,
		.max_seqs = d->opt.max_seqs,
		.no_cache = d->opt.no_cache,
		.reload_always = d->opt.reload_always,
		.exec = d->exec,
	};
	int ret;

	snprintf(layout, sizeof(layout), "hawkd layer,kv,head,token,dim isa %s",
		 exec_isa_name(d->exec));
	ret = kv_open(&cfg, &d->kv, err);
	if (ret)
		log_err("%s", err);
	return ret;
}

static int start_sched(struct daemon *d)
{
	struct sched_config cfg = {
		.max_seqs = d->opt.max_seqs,
		.batch_tokens = d->opt.batch_tokens,
		.chunk = d->opt.chunk,
		.queue_max = d->opt.queue,
		.spec_rows = spec_rows(d),
		.exec = d->exec,
		.tok = d->tok,
		.kv = d->kv,
		.metrics = &d->metrics,
	};
	int ret;

	ret = sched_create(&cfg, &d->sched);
	if (ret)
		log_err("cannot start the scheduler: %s", strerror(-ret));
	return ret;
}

static int start_http(struct daemon *d)
{
	struct http_config cfg = {
		.listen = d->opt.listen,
		.model_name = d->name,
		.max_body = d->opt.max_body,
		.env = {
			.tok = d->tok,
			.n_ctx = d->n_ctx,
			.default_max_tokens = d->opt.default_max_tokens,
			.speculate = d->opt.speculate,
			.block_tokens = d->opt.block_tokens,
			.sparse = !d->opt.no_sparse,
		},
		.sched = d->sched,
		.kv = d->kv,
		.metrics = &d->metrics,
	};
	char err[HTTP_ERR_LEN] = "out of memory";
	int ret = 0;

	if (d->opt.api_key_file)
		ret = auth_load(&d->auth, d->opt.api_key_file, err, sizeof(err));
	cfg.auth = d->auth;
	if (!ret)
		ret = http_start(&cfg, &d->http, err);
	if (ret)
		log_err("%s", err);
	return ret;
}

static int start(struct daemon *d)
{
	int ret;

	ret = start_model(d);
	if (!ret)
		ret = start_exec(d);
	if (!ret)
		ret = start_kv(d);
	if (!ret)
		ret = start_sched(d);
	if (!ret)
		ret = start_http(d);
	return ret;
}

static void stop(struct daemon *d)
{
	if (d->sched)
		sched_stop(d->sched);
	if (d->http)
		http_stop(d->http);
	sched_destroy(d->sched);
	auth_free(&d->auth);
	kv_close(d->kv);
	exec_destroy(d->exec);
	tok_destroy(d->tok);
	model_free(d->model);
}

static void announce(const struct daemon *d)
{
	uint64_t blocks = kv_capacity_blocks(d->kv);

	log_info("model %s: %.1f million weights, context %u tokens, %s kernels, %u threads",
		 d->name, d->model->n_params / 1e6, d->n_ctx, exec_isa_name(d->exec),
		 exec_thread_count(d->exec));
	log_info("KV memory (%s): %llu blocks of %u bytes in DRAM, %llu tokens%s",
		 kv_backend(d->kv), (unsigned long long)blocks, kv_block_bytes(d->kv),
		 (unsigned long long)blocks * d->opt.block_tokens,
		 d->opt.no_cache ? ", nothing is reused (--no-cache)" : "");
	log_info("listening on %s", http_url(d->http));
}

static void serve(struct daemon *d, const sigset_t *signals)
{
	uint64_t deadline_ns;
	int sig;

	announce(d);
	sigwait(signals, &sig);
	log_info("%s: finishing running requests, at most %u s", strsignal(sig), d->opt.drain_s);
	deadline_ns = clock_now_ns() + d->opt.drain_s * NS_PER_SEC;
	http_quiesce(d->http);
	if (!sched_drain(d->sched, deadline_ns))
		log_warn("requests still running after %u s are cancelled", d->opt.drain_s);
	http_drain(d->http, deadline_ns);
}

int main(int argc, char **argv)
{
	struct daemon d = { 0 };
	sigset_t signals;
	int ret;

	ret = options_parse(argc, argv, &d.opt);
	if (ret)
		return ret < 0 ? 2 : 0;
	log_init(d.opt.json);

	/* Blocked before any thread starts, taken by sigwait() only. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);

	ret = start(&d);
	if (!ret)
		serve(&d, &signals);
	stop(&d);
	if (!ret)
		log_info("stopped");
	return ret ? 1 : 0;
}
