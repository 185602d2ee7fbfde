// SPDX-License-Identifier: GPL-2.0
/* 6.8 dropped the count of eventfd_signal(). */
#include <linux/eventfd.h>

void hawk_probe(struct eventfd_ctx *ctx);
void hawk_probe(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx);
}
