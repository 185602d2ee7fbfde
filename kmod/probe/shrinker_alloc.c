// SPDX-License-Identifier: GPL-2.0
/* 6.7 lets the kernel allocate shrinkers. */
#include <linux/mm.h>
#include <linux/shrinker.h>

void hawk_probe(void);
void hawk_probe(void)
{
	struct shrinker *s = shrinker_alloc(SHRINKER_NUMA_AWARE, "probe");

	shrinker_register(s);
	shrinker_free(s);
}
