/* SPDX-License-Identifier: MIT */
#ifndef HAWKD_LISTEN_H
#define HAWKD_LISTEN_H

#include <stddef.h>

/**
 * listen_open() - make a listening socket
 * @spec: "ADDRESS:PORT", "[IPv6]:PORT" or "unix:PATH"
 * @url: out, where it listens, with the real port
 * @err: on failure, one line naming the cause
 * Return: the descriptor or a negative errno.
 */
int listen_open(const char *spec, char *url, size_t url_len, char *err, size_t err_len);

#endif
