// SPDX-License-Identifier: GPL-2.0
/* 6.9 moved what leases and locks share into struct file_lock_core. */
#include <linux/fs.h>
#if __has_include(<linux/filelock.h>)
#include <linux/filelock.h>
#endif

void hawk_probe(struct file_lock *fl);
void hawk_probe(struct file_lock *fl)
{
	fl->c.flc_flags = FL_FLOCK;
}
