// SPDX-License-Identifier: MIT
/*
 * error.c - the cause of a thread's last failure, in words
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "priv.h"

static __thread char last_error[512];

/* Notes the cause of @err (negative errno) and returns @err. */
int hawk_fail(int err, const char *fmt, ...)
{
	const char *what = strerrordesc_np(-err);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(last_error))
		snprintf(last_error + n, sizeof(last_error) - n, ": %s",
			 what ? what : "unknown error");
	return err;
}

/* Notes a cause as hawk_strerror_last() told it, here or to another thread; returns @err. */
int hawk_fail_as(int err, const char *why)
{
	snprintf(last_error, sizeof(last_error), "%s", why);
	return err;
}

void hawk_fail_clear(void)
{
	last_error[0] = 0;
}

const char *hawk_strerror_last(void)
{
	return last_error[0] ? last_error : "no failure so far";
}
