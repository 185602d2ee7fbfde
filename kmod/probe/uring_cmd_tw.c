// SPDX-License-Identifier: GPL-2.0
/* 6.19 gave the end of an io_uring command the type of all task work. */
#include <linux/fs.h>
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#endif

#ifndef CONFIG_IO_URING
#error this kernel has no io_uring
#endif

static void hawk_probe_end(struct io_tw_req req, io_tw_token_t tw)
{
	io_uring_cmd_done(io_uring_cmd_from_tw(req), 0, IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);
}

void hawk_probe(struct io_uring_cmd *cmd);
void hawk_probe(struct io_uring_cmd *cmd)
{
	io_uring_cmd_complete_in_task(cmd, hawk_probe_end);
}
