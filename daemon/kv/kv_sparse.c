// SPDX-License-Identifier: MIT
/*
 * kv_sparse.c - sequences whose tokens attend to some blocks only (exec.h)
 *
 * What is chosen must follow from the history alone, so which blocks have centroids
 * at a step must not matter.  A block gets its centroids when it is full: after the
 * step that filled it, or in kv_seq_open() if it was there already.  The executor may
 * leave out a block only if the part that is seen of it ends before the window.  It
 * may end there because a drop cut it; the block then goes on for less than
 * block_tokens more tokens, that need not be computed yet.  So with a window of
 * block_tokens - 1 tokens more than a step has rows of the sequence, every block that
 * may be left out was full before the step, however the sequence is cut into steps.
 *
 * The first layer of a token's keys and values depends on the token alone, the others
 * on what it attended to.  So sparse attention is part of the history, as operations
 * are, from the first token on that it may change: keys tell of it from there.
 */
#include "kv/kv_priv.h"

const struct exec_sparse *kv_seq_sparse(const struct kv_seq *s)
{
	return s->sparse.window ? &s->sparse : NULL;
}

uint32_t kv_seq_step_rows(const struct kv *kv, const struct kv_seq *s)
{
	return s->sparse.window ? s->sparse.window - (kv->block_tokens - 1) : UINT32_MAX;
}

/*
 * Of a sequence that nothing was done to, token i may choose from the blocks that
 * begin behind the sinks and end before the window, (i + 1 - window) / block_tokens
 * without those of the sinks.  They must be more than are chosen.  Cuts make blocks
 * of parts of blocks: from the first operation on this does not hold.
 */
uint32_t kv_sparse_from(const struct exec_sparse *sparse, uint32_t block_tokens,
			const struct hist_op *ops, uint32_t n_ops)
{
	const uint64_t bt = block_tokens, sinks = (sparse->sinks + bt - 1) / bt;
	uint64_t from = (sinks + sparse->blocks + 1) * bt + sparse->window - 1;

	if (n_ops && ops[0].at < from)
		from = ops[0].at;
	return from < UINT32_MAX ? from : UINT32_MAX;
}

void kv_sparse_add_key_op(const struct kv *kv, struct kv_seq *s)
{
	struct hawk_key_op op = {
		.kind = HAWK_KEY_SPARSE,
		.start = s->sparse.sinks,
		.end = s->sparse.window,
		.shift = (int32_t)s->sparse.blocks,
	};
	uint32_t i;

	if (!s->sparse.window)
		return;
	op.at = kv_sparse_from(&s->sparse, kv->block_tokens, s->op, s->n_ops);
	for (i = s->n_key_ops++; i && s->key_op[i - 1].at > op.at; i--)
		s->key_op[i] = s->key_op[i - 1];
	s->key_op[i] = op;
}

/* Blocks that are not needed have no memory, and no segment passes through them. */
void kv_sparse_advance(struct kv *kv, struct kv_seq *s, uint32_t n_valid)
{
	uint32_t full = n_valid / kv->block_tokens, i;

	if (!s->sparse.window)
		return;
	for (i = s->n_centroids; i < full; i++) {
		void *to = s->centroid_mem + i * kv->centroid_bytes;

		if (s->addr[i] && !exec_centroid_make(kv->exec, s->addr[i], to))
			s->centroid[i] = to;
	}
	if (full > s->n_centroids)
		s->n_centroids = full;
}
