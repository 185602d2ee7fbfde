// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs.c - /sys/kernel/debug/hawk: what there is, and is it sound; no ABI
 *
 *	spaces	one line per space with its counters and the result of the engine's
 *		check of every invariant, which is only right for a space that
 *		nobody is changing
 *	ops	one line per batch call: calls and items by kind of status, of all
 *		spaces since module load
 *
 * Told in Documentation/ABI/testing/debugfs-hawk.
 */
#include "hawk.h"

#include <linux/debugfs.h>
#include <linux/seq_file.h>

static void hawk_spaces_line(struct seq_file *m, struct hawk_as *as)
{
	struct hawk_stats st = { .size = sizeof(st) };
	char why[128] = "ok";

	hawk_space_stats(as->space, &st);
	hawk_space_check(as->space, why, sizeof(why));
	seq_printf(m, "space %llu name %s block_bytes %u blocks %llu resident %llu flash %llu pinned %llu active %d check %s\n",
		   as->id, as->info.name[0] ? (const char *)as->info.name : "-",
		   as->info.block_bytes, st.blocks, st.resident, st.flash, st.pinned,
		   atomic_read(&as->active), why);
}

static int spaces_show(struct seq_file *m, void *unused)
{
	struct hawk_as *as = NULL;

	while ((as = hawk_as_next(as)))
		hawk_spaces_line(m, as);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(spaces);

static int ops_show(struct seq_file *m, void *unused)
{
	hawk_stats_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ops);

void hawk_debugfs_init(void)
{
	hawk_dev.debugfs = debugfs_create_dir("hawk", NULL);
	debugfs_create_file("spaces", 0400, hawk_dev.debugfs, NULL, &spaces_fops);
	debugfs_create_file("ops", 0400, hawk_dev.debugfs, NULL, &ops_fops);
}

void hawk_debugfs_exit(void)
{
	debugfs_remove_recursive(hawk_dev.debugfs);
}
