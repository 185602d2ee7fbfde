// SPDX-License-Identifier: GPL-2.0
/*
 * ops.c - commands that move and sum bytes
 *
 * What a command says is checked here: the driver may be wrong.  What is read from
 * memory that the driver can write is read once.
 */
#include <string.h>

#include "npu.h"

bool npu_in_memory(const struct npu *n, uint64_t addr, uint64_t bytes)
{
	return addr >= HAWK_NPU_MEM_OFF && bytes <= n->bytes && addr <= n->bytes - bytes;
}

/* ---- bytes that are lost ---- */

static uint8_t *bad_page(const struct npu *n, uint64_t addr)
{
	return &n->shared->bad[(addr - HAWK_NPU_MEM_OFF) / NPU_PAGE];
}

bool npu_is_damaged(const struct npu *n, uint64_t addr, uint64_t bytes)
{
	uint64_t at;

	if (!n->shared->damaged)
		return false;
	for (at = addr - addr % NPU_PAGE; at < addr + bytes; at += NPU_PAGE)
		if (*bad_page(n, at))
			return true;
	return false;
}

/* A page is whole again when all of it has been overwritten. */
void npu_written(struct npu *n, uint64_t addr, uint64_t bytes)
{
	uint64_t at = (addr + NPU_PAGE - 1) / NPU_PAGE * NPU_PAGE;

	if (!n->shared->damaged)
		return;
	for (; at + NPU_PAGE <= addr + bytes; at += NPU_PAGE) {
		n->shared->damaged -= *bad_page(n, at);
		*bad_page(n, at) = 0;
	}
}

void npu_damage(struct npu *n, uint64_t addr)
{
	n->shared->damaged += !*bad_page(n, addr);
	*bad_page(n, addr) = 1;
}

/* ---- commands ---- */

/* READ, WRITE: between the memory and pieces of the host's memory. */
uint32_t npu_op_move(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	const struct hawk_npu_seg *list = (const struct hawk_npu_seg *)
		(n->mem + HAWK_NPU_LIST_OFF + cmd->slot * HAWK_NPU_LIST_BYTES);
	uint64_t addr = cmd->addr, left = cmd->len;
	uint32_t i;

	if (!npu_in_memory(n, addr, left) || cmd->nlist > HAWK_NPU_SEGS)
		return HAWK_NPU_ERR_RANGE;
	if (cmd->op == HAWK_NPU_OP_READ && npu_is_damaged(n, addr, left))
		return HAWK_NPU_ERR_ECC;
	for (i = 0; i < cmd->nlist; i++) {
		struct hawk_npu_seg seg;
		uint8_t *host;

		memcpy(&seg, &list[i], sizeof(seg));
		if (seg.len > left)
			return HAWK_NPU_ERR_RANGE;
		host = npu_ram_at(n, seg.addr, seg.len);
		if (!host)
			return HAWK_NPU_ERR_HOST;
		if (cmd->op == HAWK_NPU_OP_READ)
			memcpy(host, n->mem + addr, seg.len);
		else
			memcpy(n->mem + addr, host, seg.len);
		addr += seg.len;
		left -= seg.len;
	}
	if (left)
		return HAWK_NPU_ERR_RANGE;
	if (cmd->op == HAWK_NPU_OP_WRITE)
		npu_written(n, cmd->addr, cmd->len);
	return HAWK_NPU_OK;
}

uint32_t npu_op_copy(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	if (!npu_in_memory(n, cmd->addr, cmd->len) || !npu_in_memory(n, cmd->addr2, cmd->len))
		return HAWK_NPU_ERR_RANGE;
	if (npu_is_damaged(n, cmd->addr, cmd->len))
		return HAWK_NPU_ERR_ECC;
	memmove(n->mem + cmd->addr2, n->mem + cmd->addr, cmd->len);
	npu_written(n, cmd->addr2, cmd->len);
	return HAWK_NPU_OK;
}

uint32_t npu_op_fill(struct npu *n, const struct hawk_npu_sqe *cmd)
{
	if (!npu_in_memory(n, cmd->addr, cmd->len))
		return HAWK_NPU_ERR_RANGE;
	memset(n->mem + cmd->addr, cmd->arg[0], cmd->len);
	npu_written(n, cmd->addr, cmd->len);
	return HAWK_NPU_OK;
}

/* Castagnoli's polynomial, reflected, a bit at a time for the table. */
uint32_t npu_crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	uint32_t i, bit, c;

	for (i = 0; !table[255] && i < 256; i++) {
		for (c = i, bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
		table[i] = c;
	}
	for (crc = ~crc; len; len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

uint32_t npu_op_crc32c(struct npu *n, const struct hawk_npu_sqe *cmd, uint64_t *result)
{
	if (!npu_in_memory(n, cmd->addr, cmd->len))
		return HAWK_NPU_ERR_RANGE;
	if (npu_is_damaged(n, cmd->addr, cmd->len))
		return HAWK_NPU_ERR_ECC;
	*result = npu_crc32c(0, n->mem + cmd->addr, cmd->len);
	return HAWK_NPU_OK;
}
