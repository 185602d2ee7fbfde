// SPDX-License-Identifier: GPL-2.0
/* Must not compile: no kernel has this function. */
#include <linux/module.h>

int hawk_probe(void);
int hawk_probe(void)
{
	return hawk_no_kernel_has_this();
}
