// SPDX-License-Identifier: MIT
/* listen.c - the listening socket: TCP or UNIX */
#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 128

static int fail_errno(char *err, size_t err_len, const char *what, const char *where)
{
	int ret = -errno;

	snprintf(err, err_len, "cannot %s %s: %s", what, where, strerror(-ret));
	return ret;
}

/* A socket file without a listener is left over from a crash: replace it. */
static void unlink_stale(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (lstat(sa->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 && errno == ECONNREFUSED)
		unlink(sa->sun_path);
	close(fd);
}

static int listen_unix(const char *path, char *url, size_t url_len, char *err, size_t err_len)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) == 0 || strlen(path) >= sizeof(sa.sun_path)) {
		snprintf(err, err_len, "socket path must have 1 to %zu bytes",
			 sizeof(sa.sun_path) - 1);
		return -EINVAL;
	}
	memcpy(sa.sun_path, path, strlen(path));
	unlink_stale(&sa);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_errno(err, err_len, "create a socket for", path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, LISTEN_BACKLOG)) {
		ret = fail_errno(err, err_len, "listen on", path);
		close(fd);
		return ret;
	}
	snprintf(url, url_len, "unix:%s", path);
	return fd;
}

/* Split "HOST:PORT" or "[IPV6]:PORT". */
static int split_host_port(const char *spec, char *host, size_t host_len, const char **port)
{
	const char *colon = strrchr(spec, ':');
	size_t len;

	if (!colon || !colon[1])
		return -EINVAL;
	*port = colon + 1;
	len = colon - spec;
	if (len >= 2 && spec[0] == '[' && spec[len - 1] == ']') {
		spec++;
		len -= 2;
	}
	if (len >= host_len)
		return -EINVAL;
	memcpy(host, spec, len);
	host[len] = '\0';
	return 0;
}

static int bind_tcp(const struct addrinfo *ai)
{
	int one = 1, ret;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, LISTEN_BACKLOG)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static void tcp_url(int fd, char *url, size_t url_len)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&ss, &len) ||
	    getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(url, url_len, "http://?");
	else
		snprintf(url, url_len, ss.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s",
			 host, port);
}

int listen_open(const char *spec, char *url, size_t url_len, char *err, size_t err_len)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *ai;
	const char *port;
	char host[256];
	int ret;

	if (!strncmp(spec, "unix:", 5))
		return listen_unix(spec + 5, url, url_len, err, err_len);
	if (split_host_port(spec, host, sizeof(host), &port)) {
		snprintf(err, err_len, "\"%s\" is not ADDRESS:PORT or unix:PATH", spec);
		return -EINVAL;
	}
	ret = getaddrinfo(host[0] ? host : NULL, port, &hints, &ai);
	if (ret) {
		snprintf(err, err_len, "cannot resolve \"%s\": %s", spec, gai_strerror(ret));
		return -EINVAL;
	}
	ret = bind_tcp(ai);
	freeaddrinfo(ai);
	if (ret < 0) {
		snprintf(err, err_len, "cannot listen on %s: %s", spec, strerror(-ret));
		return ret;
	}
	tcp_url(ret, url, url_len);
	return ret;
}
