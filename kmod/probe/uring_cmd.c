// SPDX-License-Identifier: GPL-2.0
/* io_uring commands whose end runs in task context and is told the ring's state (6.3, stable). */
#include <linux/fs.h>
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

#ifndef CONFIG_IO_URING
#error this kernel has no io_uring
#endif

static void hawk_probe_end(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
}

int hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags);
int hawk_probe(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_complete_in_task(cmd, hawk_probe_end);
	return -EIOCBQUEUED;
}

const struct file_operations hawk_probe_fops = {
	.uring_cmd = hawk_probe,
};
