// SPDX-License-Identifier: GPL-2.0
/* 6.2 made callers of dma_buf_vmap() hold the reservation lock. */
#include <linux/dma-buf.h>

int hawk_probe(struct dma_buf *buf, struct iosys_map *map);
int hawk_probe(struct dma_buf *buf, struct iosys_map *map)
{
	return dma_buf_vmap_unlocked(buf, map);
}
