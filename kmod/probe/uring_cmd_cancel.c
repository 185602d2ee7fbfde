// SPDX-License-Identifier: GPL-2.0
/* 6.7 lets io_uring cancel a command that its driver has marked. */
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

bool hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags);
bool hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	return issue_flags & IO_URING_F_CANCEL;
}
