// SPDX-License-Identifier: GPL-2.0
/* Until 6.18 io_uring_cmd_done() took a second result. */
#include <linux/fs.h>
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

void hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags);
void hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, 0, 0, issue_flags);
}
