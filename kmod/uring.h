/* SPDX-License-Identifier: GPL-2.0 */
/*
 * uring.h - io_uring commands as the newest kernel has them, also on older ones
 *
 * HAVE_* come from the compile probes, as for compat.h.  Without HAWK_URING the
 * kernel has no io_uring, or one whose commands cannot end in task context.
 */
#ifndef HAWK_URING_H
#define HAWK_URING_H

#include "hawk-probes.h"

#if defined(HAVE_URING_CMD) || defined(HAVE_URING_CMD_TW)
#define HAWK_URING

/* A header of its own since 6.8; drop when 6.8 is the oldest kernel. */
#ifdef HAVE_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* The whole entry is there since 6.5; drop when 6.5 is the oldest kernel. */
static inline const void *hawk_uring_sqe_cmd(const struct io_uring_cmd *cmd)
{
#ifdef HAVE_URING_CMD_SQE
	return cmd->sqe->cmd;
#else
	return cmd->cmd;
#endif
}

/* One result since 6.18; drop when 6.18 is the oldest kernel. */
#ifdef HAVE_URING_CMD_DONE_RES2
#define io_uring_cmd_done(cmd, ret, issue_flags)	io_uring_cmd_done(cmd, ret, 0, issue_flags)
#endif

/* Since 6.7; drop when 6.7 is the oldest kernel. */
#ifndef HAVE_URING_CMD_CANCEL
#define IO_URING_F_CANCEL	0
static inline void io_uring_cmd_mark_cancelable(struct io_uring_cmd *cmd,
						unsigned int issue_flags)
{
}
#endif

/* The type of all task work since 6.19; drop when 6.19 is the oldest kernel. */
#ifdef HAVE_URING_CMD_TW
#define HAWK_URING_TASK_WORK(_fn, _end)						\
	static void _fn(struct io_tw_req req, io_tw_token_t tw)			\
	{									\
		_end(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
	}
#else
#define HAWK_URING_TASK_WORK(_fn, _end)						\
	static void _fn(struct io_uring_cmd *cmd, unsigned int issue_flags)	\
	{									\
		_end(cmd, issue_flags);						\
	}
#endif

int hawk_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif /* HAVE_URING_CMD || HAVE_URING_CMD_TW */

#endif /* HAWK_URING_H */
