/* SPDX-License-Identifier: MIT */
/*
 * exec.h - run a llama model on the CPU with caller-owned KV memory.
 *
 * The caller owns all KV memory, in blocks. One block holds the keys and
 * values of block_tokens consecutive tokens of one sequence for all layers:
 *
 *	[layer][K, V][kv_head][token][head_dim]		f16 or f32
 *
 * so a (layer, K or V, kv_head) plane is contiguous and blocks are position
 * independent: keys are stored already rotated for their absolute position.
 * The executor keeps no copy of any key or value.
 *
 * Batch invariance: the logits of a row, and the K/V it writes, are bitwise
 * the same whatever other rows share the step, however a prompt is cut into
 * steps, whatever the number of threads, and whether its prefix was computed
 * now or earlier. They do depend on the instruction set, on block_tokens and
 * on the KV type, which are fixed when the executor is created.
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
	const char *isa;
	bool pin;
};

/**
 * struct exec_row - one token to compute
 * @token: id, 0 <= token < n_vocab
 * @pos: absolute position in its sequence, from 0
 * @blocks: addresses of the sequence's KV blocks, in order; entry pos /
 *          block_tokens and all before it must be valid, writable where the
 *          step's own rows land, aligned to 4 bytes (64 is fastest). Rows of
 *          one sequence pass the same pointer.
 * @want_logits: compute logits for this row
 *
 * The rows of one sequence in a step are adjacent, with consecutive positions.
 * K/V of all earlier positions must be in the blocks already or be written by
 * earlier rows of the same step. No two rows may write the same place.
 */
struct exec_row {
	int32_t token;
	uint32_t pos;
	void *const *blocks;
	bool want_logits;
};

struct exec;

/** exec_kv_block_bytes() - bytes of one KV block */
size_t exec_kv_block_bytes(const struct model_config *cfg, uint32_t block_tokens,
			   enum exec_kv_type type);

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
 * Return: 0; -EINVAL no rows, a token or position out of range, a NULL block;
 * -E2BIG more rows or logits than configured. Nothing was written on failure.
 */
int exec_step(struct exec *e, const struct exec_row *rows, uint32_t n_rows);

/**
 * exec_logits() - logits of a row of the last step
 * @row: index into the rows of the last exec_step()
 *
 * Return: n_vocab floats, valid until the next step; NULL when the row did not
 * ask for them.
 */
const float *exec_logits(const struct exec *e, uint32_t row);

/** exec_isa_name() - "avx512", "avx2" or "c" */
const char *exec_isa_name(const struct exec *e);

/** exec_thread_count() - threads that compute */
uint32_t exec_thread_count(const struct exec *e);

#endif
