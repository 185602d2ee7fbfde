/* SPDX-License-Identifier: MIT */
/*
 * exec.h - run a model on the CPU with caller-owned KV memory.
 *
 * The caller owns all KV memory, in blocks. One block holds the keys and
 * values of block_tokens consecutive tokens of one sequence for all layers:
 *
 *	[layer][K, V][kv_head][token][head_dim]		f16 or f32
 *
 * so a (layer, K or V, kv_head) plane is contiguous and blocks are position
 * independent: keys are stored already rotated for their position.
 * The executor keeps no copy of any key or value.
 *
 * What a sequence sees is a list of segments: runs of tokens that may begin and
 * end within blocks and share blocks with others. A token's place in that list,
 * all segments one behind the other, is its visible index. It is not the
 * rotary position: after a drop the two differ. The keys of a segment may be
 * read as if they stood elsewhere (shift).
 *
 * Batch invariance: the logits of a row, and the K/V it writes, are bitwise
 * the same whatever other rows share the step, however a prompt is cut into
 * steps, whatever the number of threads, and whether its prefix was computed
 * now or earlier. Neither does it matter where the visible tokens lie, in
 * which blocks and at which slots, or how the list is cut into segments. They
 * do depend on the instruction set, on block_tokens and on the KV type, which
 * are fixed when the executor is created.
 */
#ifndef HAWK_EXEC_H
#define HAWK_EXEC_H

#include "model/model.h"

#define EXEC_MAX_THREADS      256u
#define EXEC_MAX_ROWS	      4096u
#define EXEC_MAX_BLOCK_TOKENS 1024u

/* KV element type. f16 halves the memory. */
enum exec_kv_type { EXEC_KV_F16, EXEC_KV_F32 };

/**
 * struct exec_config - what exec_create() needs to know
 * @n_threads: threads that compute, the caller of exec_step() included;
 *             0 means one per CPU this process may run on
 * @max_rows: most rows in one step, 1..EXEC_MAX_ROWS
 * @max_logits: most rows of one step that want logits, 1..max_rows; each costs
 *              n_vocab * 4 bytes of memory; 0 means max_rows
 * @block_tokens: tokens per KV block, 1..EXEC_MAX_BLOCK_TOKENS
 * @kv_type: element type of K and V
 * @sparse_blocks: most blocks that a sparse row may choose from; each costs
 *                 some 50 bytes per thread, and exec_create() runs 512 tokens.
 *                 0: no sparse rows, no centroids
 * @isa: "avx512", "avx2", "c", or NULL for $HAWK_ISA, or else the best one
 *       this CPU has
 * @pin: pin worker threads to CPUs, one each
 */
struct exec_config {
	uint32_t n_threads;
	uint32_t max_rows;
	uint32_t max_logits;
	uint32_t block_tokens;
	enum exec_kv_type kv_type;
	uint32_t sparse_blocks;
	const char *isa;
	bool pin;
};

/**
 * struct exec_seg - tokens that lie side by side
 * @blocks: addresses of KV blocks; [0] holds slots 0..block_tokens - 1. Those
 *          of the tokens in use must be valid, writable where the step's own
 *          rows land, aligned to 4 bytes (64 is fastest).
 * @tok: slot of the first token: token j is at slot tok + j, in
 *       blocks[slot / block_tokens]
 * @len: tokens, at least 1
 * @shift: keys are read as at position p - shift, p being the position they
 *         were stored with; the blocks are not changed, values do not depend
 *         on positions. Rows cannot land in a segment whose shift is not 0.
 * @centroids: by block as @blocks, see exec_centroid_make(); for sparse rows. A
 *             block without one (NULL) is always read. NULL: none has one
 */
struct exec_seg {
	void *const *blocks;
	uint32_t tok;
	uint32_t len;
	int32_t shift;
	const void *const *centroids;
};

/**
 * exec_seg_blocks() - blocks that a segment passes through
 * @block_tokens: as the executor was created with
 */
static inline uint32_t exec_seg_blocks(const struct exec_seg *seg, uint32_t block_tokens)
{
	return (seg->tok + seg->len - 1) / block_tokens - seg->tok / block_tokens + 1;
}

#define EXEC_SPARSE_SINKS  64u
#define EXEC_SPARSE_WINDOW 1024u

/**
 * struct exec_sparse - attend to some blocks only
 * @blocks: blocks chosen by their centroids, for each row, layer and KV head by
 *          themselves; those read anyway are not counted
 * @sinks: tokens at the start of what the row sees that are always read
 * @window: last tokens, the row's own included, that are always read; at least
 *          the rows of the sequence in this step, so that it does not matter
 *          how a prompt is cut
 *
 * Blocks are read whole, as far as the segment has them. A block that two
 * segments pass through counts twice. With @blocks large enough for all, the
 * result is that of a dense row, bit for bit.
 */
struct exec_sparse {
	uint32_t blocks;
	uint32_t sinks;
	uint32_t window;
};

/**
 * struct exec_row - one token to compute
 * @token: id, 0 <= token < n_vocab
 * @pos: rotary position, 0 <= pos < n_ctx
 * @at: visible index: its K/V is written there, and it attends to 0..at
 * @segs: what its sequence sees, up to @at at least. Rows of one sequence pass
 *        the same pointer.
 * @n_segs: number of segments
 * @sparse: NULL: attend to everything
 * @read: sparse rows: set to 1 for every block that the row read in any layer
 *        and head, or NULL. Blocks are numbered as the segments pass through
 *        them (exec_seg_blocks()). The caller zeroes; rows may share an array
 *        if they share segments.
 * @want_logits: compute logits for this row
 *
 * The rows of one sequence in a step are adjacent, with consecutive visible
 * indices. K/V of all earlier indices must be in the blocks already or be
 * written by earlier rows of the same step. No two rows may write the same
 * place. A sequence nothing was done to is one segment with tok 0 and shift 0,
 * and its rows have at == pos.
 */
struct exec_row {
	int32_t token;
	uint32_t pos;
	uint32_t at;
	const struct exec_seg *segs;
	uint32_t n_segs;
	const struct exec_sparse *sparse;
	uint8_t *read;
	bool want_logits;
};

struct exec;

/** exec_kv_block_bytes() - bytes of one KV block */
size_t exec_kv_block_bytes(const struct model_config *cfg, uint32_t block_tokens,
			   enum exec_kv_type type);

/** exec_kv_planes() - planes of a block: (layer, K or V, kv_head) */
uint32_t exec_kv_planes(const struct model_config *cfg);

/**
 * exec_create() - allocate all working memory and start the threads
 * @m: the model; must outlive the executor
 * @cfg: copied
 * @out: set on success only
 * @err: on failure, one line naming the cause and what to do
 *
 * Return: 0; -EINVAL a value out of range; -EOPNOTSUPP the CPU lacks the
 * instruction set asked for; -ENOMEM; -EAGAIN no thread could be started.
 */
int exec_create(const struct model *m, const struct exec_config *cfg, struct exec **out,
		char err[GGUF_ERR_LEN]);

/** exec_destroy() - stop the threads and free; NULL is ignored */
void exec_destroy(struct exec *e);

/**
 * exec_step() - compute some rows: write their K/V, produce their logits
 * @rows: see struct exec_row
 * @n_rows: 1..max_rows
 *
 * Allocates nothing. One caller at a time.
 *
 * Return: 0; -EINVAL no rows, a token or position out of range, an empty
 * segment, a NULL block, a visible index beyond the segments or in a shifted
 * one, a window shorter than the step; -E2BIG more rows, logits or blocks of a
 * sparse row than configured; -EOPNOTSUPP sparse rows not configured. exec_step_error() has the
 * cause in words. Nothing was written on failure.
 */
int exec_step(struct exec *e, const struct exec_row *rows, uint32_t n_rows);

/** exec_step_error() - why exec_step() last failed: one line, "" if it never did */
const char *exec_step_error(const struct exec *e);

/**
 * exec_logits() - logits of a row of the last step
 * @row: index into the rows of the last exec_step()
 *
 * Return: n_vocab floats, valid until the next step; NULL when the row did not
 * ask for them.
 */
const float *exec_logits(const struct exec *e, uint32_t row);

/** exec_centroid_bytes() - bytes of a block's centroids; 0 without sparse rows */
size_t exec_centroid_bytes(const struct exec *e);

/**
 * exec_centroid_make() - centroids of a full block
 * @block: all its tokens are written
 * @out: exec_centroid_bytes(); of use only to this executor and to those
 *       created with the same model, configuration and instruction set
 *
 * May run beside exec_step() in another thread.
 *
 * Return: 0; -EOPNOTSUPP sparse rows not configured.
 */
int exec_centroid_make(const struct exec *e, const void *block, void *out);

/** exec_isa_name() - "avx512", "avx2" or "c" */
const char *exec_isa_name(const struct exec *e);

/** exec_thread_count() - threads that compute */
uint32_t exec_thread_count(const struct exec *e);

#endif
