// SPDX-License-Identifier: GPL-2.0
/* 6.5 replaced io_uring_cmd.cmd by the whole submission queue entry. */
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

const void *hawk_probe(const struct io_uring_cmd *cmd);
const void *hawk_probe(const struct io_uring_cmd *cmd)
{
	return cmd->sqe->cmd;
}
