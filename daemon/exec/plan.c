// SPDX-License-Identifier: MIT
/*
 * Checks the rows of a step and lays it out: where each row writes, which rows
 * want logits, which attend together.
 *
 * A run is a maximal stretch of adjacent rows of one sequence at consecutive
 * visible indices. Its segments are walked once.
 */
#include "exec/exec_priv.h"

#include <errno.h>
#include <string.h>

/*
 * Multiply-adds per phase above which several threads are worth their
 * barriers.
 */
#define EXEC_PARALLEL_MACS 32768u

/* Does row @r continue the run of the row before it? */
static bool same_run(const struct exec_row *rows, uint32_t r)
{
	return r && rows[r].segs == rows[r - 1].segs && rows[r].n_segs == rows[r - 1].n_segs &&
	       rows[r].at == rows[r - 1].at + 1;
}

static int check_row(struct exec *e, uint32_t r, const struct exec_row *row)
{
	const struct model_config *c = &e->m->cfg;

	if (row->token < 0 || (uint32_t)row->token >= c->n_vocab)
		return gguf_fail(e->err, -EINVAL, "row %u: token %d, the vocabulary has %u", r,
				 row->token, c->n_vocab);
	if (row->pos >= c->n_ctx)
		return gguf_fail(e->err, -EINVAL, "row %u: position %u, the context ends at %u", r,
				 row->pos, c->n_ctx);
	if (!row->segs || !row->n_segs)
		return gguf_fail(e->err, -EINVAL, "row %u: no segments", r);
	return 0;
}

/* Check segment @i of a run, of which the first @n tokens are used. */
static int check_seg(struct exec *e, uint32_t r, uint32_t i, const struct exec_seg *seg, uint64_t n)
{
	const uint32_t bt = e->cfg.block_tokens;
	uint32_t b;

	if (!seg->blocks)
		return gguf_fail(e->err, -EINVAL, "row %u: segment %u has no blocks", r, i);
	if (!seg->len || seg->len > UINT32_MAX - seg->tok)
		return gguf_fail(e->err, -EINVAL, "row %u: segment %u has %u tokens from slot %u",
				 r, i, seg->len, seg->tok);
	for (b = seg->tok / bt; b <= (seg->tok + n - 1) / bt; b++)
		if (!seg->blocks[b])
			return gguf_fail(e->err, -EINVAL,
					 "row %u: block %u of segment %u is missing", r, b, i);
	return 0;
}

/* Check row @i of a run that sees @blocks blocks. */
static int check_sparse(struct exec *e, uint32_t r, uint32_t i, const struct exec_row *row,
			uint64_t blocks)
{
	if (!row->sparse)
		return 0;
	if (!e->cfg.sparse_blocks)
		return gguf_fail(e->err, -EOPNOTSUPP,
				 "row %u is sparse: the executor was made without sparse_blocks",
				 r);
	if (row->sparse->window <= i)
		return gguf_fail(
			e->err, -EINVAL,
			"row %u: a window of %u tokens, the step has %u rows of the sequence", r,
			row->sparse->window, i + 1);
	if (blocks > e->cfg.sparse_blocks)
		return gguf_fail(e->err, -E2BIG, "row %u sees %llu blocks: at most %u if sparse", r,
				 (unsigned long long)blocks, e->cfg.sparse_blocks);
	return 0;
}

/* Rows [r, end) are a run: walk its segments, note where the rows write. */
static int check_run(struct exec *e, const struct exec_row *rows, uint32_t r, uint32_t end)
{
	const uint64_t visible = (uint64_t)rows[r].at + (end - r);
	const uint32_t bt = e->cfg.block_tokens, head = r;
	uint64_t first = 0, blocks = 0, n;
	uint32_t i;
	int ret;

	for (i = 0; i < rows[head].n_segs && first < visible; i++) {
		const struct exec_seg *seg = &rows[head].segs[i];

		n = visible - first < seg->len ? visible - first : seg->len;
		ret = check_seg(e, head, i, seg, n);
		if (ret)
			return ret;
		for (; r < end && rows[r].at < first + n; r++) {
			const uint32_t slot = seg->tok + (rows[r].at - first);

			if (seg->shift)
				return gguf_fail(
					e->err, -EINVAL,
					"row %u: its key would go to segment %u, whose keys are read shifted",
					r, i);
			ret = check_sparse(e, r, r - head, &rows[r],
					   blocks + slot / bt - seg->tok / bt + 1);
			if (ret)
				return ret;
			e->dst[r] = (struct exec_dst){ seg->blocks[slot / bt], slot % bt };
		}
		first += n;
		blocks += exec_seg_blocks(seg, bt);
	}
	if (first < visible)
		return gguf_fail(e->err, -EINVAL,
				 "row %u: visible index %u, the segments hold %llu tokens", r,
				 rows[r].at, (unsigned long long)first);
	return 0;
}

static int check_rows(struct exec *e, const struct exec_row *rows, uint32_t n)
{
	uint32_t r, begin = 0, wanted = 0;
	int ret;

	if (!n)
		return gguf_fail(e->err, -EINVAL, "a step without rows");
	if (n > e->cfg.max_rows)
		return gguf_fail(e->err, -E2BIG, "a step of %u rows: at most %u", n,
				 e->cfg.max_rows);
	for (r = 0; r < n; r++) {
		ret = check_row(e, r, &rows[r]);
		if (ret)
			return ret;
		wanted += rows[r].want_logits;
		if (r + 1 < n && same_run(rows, r + 1))
			continue;
		ret = check_run(e, rows, begin, r + 1);
		if (ret)
			return ret;
		begin = r + 1;
	}
	if (wanted > e->cfg.max_logits)
		return gguf_fail(e->err, -E2BIG, "%u rows of a step want logits: at most %u",
				 wanted, e->cfg.max_logits);
	return 0;
}

int exec_plan(struct exec *e, const struct exec_row *rows, uint32_t n)
{
	struct exec_tile *tile = NULL;
	uint32_t r;
	int ret = check_rows(e, rows, n);

	if (ret)
		return ret;
	e->rows = rows;
	e->n_rows = n;
	e->n_want = 0;
	e->n_tiles = 0;
	for (r = 0; r < n; r++) {
		e->slot[r] = UINT32_MAX;
		if (rows[r].want_logits) {
			e->slot[r] = e->n_want;
			e->want[e->n_want++] = r;
		}
		if (!same_run(rows, r) || tile->n_rows == exec_tile_rows(e) || rows[r].sparse ||
		    rows[r - 1].sparse) {
			tile = &e->tiles[e->n_tiles++];
			*tile = (struct exec_tile){ r, 0 };
		}
		tile->n_rows++;
	}
	memset(e->counters, 0, exec_counter_count(e) * sizeof(*e->counters));
	return 0;
}

bool exec_worth_threads(const struct exec *e)
{
	const struct model_config *c = &e->m->cfg;
	uint64_t macs = e->m->n_params * e->n_rows, span = 0;
	uint32_t r;

	for (r = 0; r < e->n_rows; r++)
		span += e->rows[r].at;
	macs += span * 2 * c->n_head * c->head_dim * c->n_layer;
	return macs / (c->n_layer * PH_COUNT) >= EXEC_PARALLEL_MACS;
}
