// SPDX-License-Identifier: MIT
/*
 * log.c - one line per event on stderr. A line is written with one call, so
 * lines of several threads do not mix.
 */
#include "log.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool log_json;

static const char *const level_name[] = { "info", "warn", "error" };

void log_init(bool json)
{
	log_json = json;
	setvbuf(stderr, NULL, _IOLBF, 4096);
}

static void log_line_json(const char *ts, enum log_level level, const char *msg)
{
	json_t *o = json_pack("{s:s, s:s, s:s%}", "ts", ts, "level", level_name[level], "msg", msg,
			      strlen(msg));
	char *line = o ? json_dumps(o, JSON_COMPACT) : NULL;

	fprintf(stderr, "%s\n", line ? line : "{\"level\":\"error\",\"msg\":\"log failed\"}");
	free(line);
	json_decref(o);
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	struct timespec now;
	char ts[32], stamp[48], msg[1024];
	struct tm tm;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(ts, sizeof(ts), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(stamp, sizeof(stamp), "%s.%03ldZ", ts, now.tv_nsec / 1000000);

	if (log_json)
		log_line_json(stamp, level, msg);
	else
		fprintf(stderr, "%s hawkd %s: %s\n", stamp, level_name[level], msg);
}
