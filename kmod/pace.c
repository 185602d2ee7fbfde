// SPDX-License-Identifier: GPL-2.0
/*
 * pace.c - what bringing blocks takes, and the phase of a runtime
 */
#include "hawk.h"

int hawk_ioc_estimate(struct hawk_file *f, void *data)
{
	const struct hawk_estimate *arg = data;

	if (arg->reserved)
		return -EOPNOTSUPP;
	return -EOPNOTSUPP;	/* HAWK_FEAT_PACE is not offered */
}

int hawk_ioc_phase(struct hawk_file *f, void *data)
{
	const struct hawk_phase *arg = data;

	if (arg->reserved)
		return -EOPNOTSUPP;
	return -EOPNOTSUPP;	/* nor HAWK_FEAT_PROMOTE */
}
