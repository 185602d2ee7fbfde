// SPDX-License-Identifier: GPL-2.0
/* 6.8 moved io_uring commands to a header of their own. */
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#endif

int hawk_probe(const struct io_uring_cmd *cmd);
int hawk_probe(const struct io_uring_cmd *cmd)
{
	return cmd->cmd_op;
}
