// SPDX-License-Identifier: GPL-2.0
/* 7.1 renamed dma_buf_move_notify(). */
#include <linux/dma-buf.h>

void hawk_probe(struct dma_buf *buf);
void hawk_probe(struct dma_buf *buf)
{
	dma_buf_invalidate_mappings(buf);
}
