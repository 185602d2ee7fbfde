// SPDX-License-Identifier: GPL-2.0
/* 6.3 moved file locks out of fs.h. */
#if __has_include(<linux/filelock.h>)
#include <linux/filelock.h>
#endif

void hawk_probe(struct file_lock *fl);
void hawk_probe(struct file_lock *fl)
{
	locks_init_lock(fl);
}
