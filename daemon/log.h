/* SPDX-License-Identifier: MIT */
/*
 * log.h - the daemon's log: one line per event on stderr, as text or JSON.
 *
 * The first place that decides that something failed logs it, once. Prompts,
 * generated text and API keys are never logged.
 */
#ifndef HAWKD_LOG_H
#define HAWKD_LOG_H

#include <stdbool.h>

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR };

/** log_init() - choose JSON lines or text; call before any thread starts */
void log_init(bool json);

/** log_msg() - write one line; any thread */
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_info(...) log_msg(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_WARN, __VA_ARGS__)
#define log_err(...)  log_msg(LOG_ERROR, __VA_ARGS__)

#endif
