// SPDX-License-Identifier: MIT
/* Choosing the kernels for this CPU. */
#include "exec/kern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>

static bool has_f16c(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_always(void)
{
	return true;
}

/* Best first. */
static const struct {
	const struct kern_ops *ops;
	bool (*usable)(void);
} kern_table[] = {
#ifdef __x86_64__
	{ &kern_ops_avx512, has_avx512 },
	{ &kern_ops_avx2, has_avx2 },
#endif
	{ &kern_ops_c, has_always },
};

int kern_select(const char *isa, const struct kern_ops **ops, char err[GGUF_ERR_LEN])
{
	size_t i;

	if (!isa)
		isa = getenv("HAWK_ISA");
	for (i = 0; i < sizeof(kern_table) / sizeof(kern_table[0]); i++) {
		if (isa && strcmp(isa, kern_table[i].ops->name))
			continue;
		if (kern_table[i].usable()) {
			*ops = kern_table[i].ops;
			return 0;
		}
		if (isa)
			return gguf_fail(err, -EOPNOTSUPP, "this CPU has no %s: unset HAWK_ISA",
					 isa);
	}
	return gguf_fail(err, -EINVAL,
			 "unknown instruction set '%s': HAWK_ISA takes avx512, avx2 or c", isa);
}
