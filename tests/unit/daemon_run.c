// SPDX-License-Identifier: MIT
#include "daemon_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/sample.h"

const struct run_how run_hows[RUN_HOWS] = {
#ifdef __SANITIZE_THREAD__
	{ NULL, EXEC_KV_F16, 2, 64 },
#else
	{ "c", EXEC_KV_F16, 1, 64 },	 { "c", EXEC_KV_F32, 1, 1 },
	{ "avx2", EXEC_KV_F16, 2, 64 },	 { "avx2", EXEC_KV_F32, 1, 7 },
	{ "avx512", EXEC_KV_F16, 2, 3 }, { "avx512", EXEC_KV_F32, 1, 64 },
#endif
};

bool run_open(struct run *r, const char *path, const struct run_how *how)
{
	const struct exec_config cfg = {
		.n_threads = how->threads,
		.max_rows = RUN_CHUNK,
		.max_logits = 1,
		.block_tokens = RUN_BT,
		.kv_type = how->kv,
		.isa = how->isa,
	};
	char err[GGUF_ERR_LEN];
	uint32_t i;
	int ret;

	memset(r, 0, sizeof(*r));
	if (model_load(path, &r->m, err) || tok_create(r->m->gguf, r->m->cfg.n_vocab, &r->t, err))
		fail_msg("%s", err);
	ret = exec_create(r->m, &cfg, &r->e, err);
	if (ret && ret != -EOPNOTSUPP)
		fail_msg("%s", err);
	r->n_blocks = r->m->cfg.n_ctx / RUN_BT;
	if (r->n_blocks > RUN_MAX_TOKENS / RUN_BT)
		r->n_blocks = RUN_MAX_TOKENS / RUN_BT;
	for (i = 0; i < r->n_blocks; i++) {
		r->blocks[i] = malloc(exec_kv_block_bytes(&r->m->cfg, RUN_BT, how->kv));
		assert_non_null(r->blocks[i]);
	}
	r->seg = (struct exec_seg){ .blocks = r->blocks, .len = r->n_blocks * RUN_BT };
	return !ret;
}

void run_close(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->n_blocks; i++)
		free(r->blocks[i]);
	exec_destroy(r->e);
	tok_destroy(r->t);
	model_free(r->m);
}

static const float *step(struct run *r, const int32_t *ids, size_t from, size_t n)
{
	struct exec_row rows[RUN_CHUNK];
	size_t i;

	for (i = 0; i < n; i++)
		rows[i] = (struct exec_row){
			.token = ids[from + i],
			.pos = from + i,
			.at = from + i,
			.segs = &r->seg,
			.n_segs = 1,
			.want_logits = i + 1 == n,
		};
	assert_int_equal(exec_step(r->e, rows, n), 0);
	return exec_logits(r->e, n - 1);
}

size_t run_generate(struct run *r, int32_t *ids, size_t n, size_t more, uint32_t chunk)
{
	const float *logits = NULL;
	size_t i, c, end = n + more;

	assert_true(end <= (size_t)r->n_blocks * RUN_BT);
	for (i = 0; i < n; i += c) {
		c = n - i < chunk ? n - i : chunk;
		logits = step(r, ids, i, c);
	}
	for (;;) {
		ids[n++] = sample_greedy(logits, r->m->cfg.n_vocab);
		if (n == end || tok_is_eog(r->t, ids[n - 1]))
			return n;
		logits = step(r, ids, n - 1, 1);
	}
}

char *run_decode(const struct run *r, const int32_t *ids, size_t n, bool at_start)
{
	char *text = calloc(n + 1, tok_stream_max(r->t));
	struct tok_stream s;
	size_t i, len = 0;

	assert_non_null(text);
	tok_stream_init(r->t, &s, at_start);
	for (i = 0; i < n; i++)
		len += tok_stream_push(r->t, &s, ids[i], false, text + len);
	tok_stream_flush(r->t, &s, text + len);
	return text;
}
