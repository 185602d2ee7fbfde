// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_leak.c - loses memory on purpose
 *
 * A check for leaks that has found none proves something only if it finds this
 * one.  Nothing refers to the object once the module is loaded, and its name is
 * gone from the backtrace when it is unloaded, as Hawk's own would be.
 */
#include <linux/module.h>
#include <linux/slab.h>

static int __init hawk_leak_init(void)
{
	void *lost = kzalloc(500, GFP_KERNEL);

	if (!lost)
		return -ENOMEM;
	pr_info("hawk_leak: 500 bytes are lost\n");
	return 0;
}

static void __exit hawk_leak_exit(void)
{
}

module_init(hawk_leak_init);
module_exit(hawk_leak_exit);

MODULE_AUTHOR("The Hawk authors");
MODULE_DESCRIPTION("Leaks memory, for a test of the search for leaks");
MODULE_LICENSE("GPL");
