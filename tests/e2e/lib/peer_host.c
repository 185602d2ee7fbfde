// SPDX-License-Identifier: MIT
/*
 * peer_host.c - a host with a NIC and a connection (peer_host.h)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_host.h"

#define BOOT_TRIES	60	/* to connect to a host that is still booting: seconds each */

static const uint8_t key[32] = "of prefill and decode";

void die(const char *what)
{
	printf("not ok %s: %s\n", what, hawk_strerror_last());
	exit(1);
}

void want(int got, int wanted, const char *what)
{
	if (got == wanted)
		return;
	printf("not ok %s: %d, %d was wanted: %s\n", what, got, wanted, hawk_strerror_last());
	exit(1);
}

void host_open(struct host *h, const char *address, uint64_t bytes)
{
	const struct hawk_net_params p = { .key = key, .key_bytes = sizeof(key) };
	struct hawk_mem_params m = { .bytes = bytes, .dmabuf = -1 };
	char url[64];

	*h = (struct host){ .tries = 1 };
	snprintf(url, sizeof(url), "rdma:%s", address);
	if (posix_memalign(&m.addr, 4096, bytes) || hawk_net_open(url, &p, &h->ep) ||
	    hawk_mem_add(h->ep, &m, &h->mem))
		die(url);
	h->bytes = m.addr;
	memset(h->bytes, 0, bytes);
}

void host_close(struct host *h)
{
	hawk_peer_close(h->p);
	hawk_mem_del(h->mem);
	hawk_net_close(h->ep);
	free(h->bytes);
}

void meet(struct host *h, const char *address, const char *port)
{
	snprintf(h->where, sizeof(h->where), "%s:%s", address, port);
	again(h);
}

void again(struct host *h)
{
	int ret, boot = BOOT_TRIES;

	do
		ret = hawk_peer_connect(h->ep, h->where, WAIT, &h->p);
	while ((ret == -EPIPE && h->tries-- > 1) ||
	       ((ret == -EHOSTUNREACH || ret == -ETIME) && boot-- > 0));
	want(ret, 0, "connect");
}

void mend(struct host *h, int ret, const char *what)
{
	/* soft RoCE takes some packets that come again for wrong ones: -EIO */
	if ((ret != -EPIPE && ret != -EIO) || h->tries-- <= 1)
		die(what);
	printf("# %s: another connection\n", hawk_strerror_last());
	hawk_peer_close(h->p);
	again(h);
}

void tell(struct host *h, const char *note)
{
	want(hawk_peer_tell(h->p, note, (uint32_t)strlen(note) + 1, WAIT), 0, note);
}

void ask(struct host *h, const char *note, char answer[HAWK_NOTE_MAX])
{
	tell(h, note);
	if (hawk_peer_hear(h->p, answer, WAIT) < 0)
		die(note);
}

void serve(struct host *h, const char *address, const char *port,
	   int (*obey)(struct host *h, const char *note, char answer[HAWK_NOTE_MAX]))
{
	char note[HAWK_NOTE_MAX + 1], answer[HAWK_NOTE_MAX], at[64];
	int n, ret;

	snprintf(at, sizeof(at), "%s:%s", address, port);
	want(hawk_net_listen(h->ep, at), 0, "listen");
	for (;;) {
		ret = hawk_peer_accept(h->ep, -1, &h->p);
		if (ret) {
			fprintf(stderr, "%s\n", hawk_strerror_last());
			continue;
		}
		do {
			n = hawk_peer_hear(h->p, note, -1);
			note[n > 0 ? n : 0] = 0;
			strcpy(answer, "done");
			ret = n < 0 ? n : obey(h, note, answer);
			if (!ret)
				ret = hawk_peer_tell(h->p, answer, (uint32_t)strlen(answer) + 1, WAIT);
		} while (!ret);
		fprintf(stderr, "%s\n", hawk_strerror_last());
		hawk_peer_close(h->p);
	}
}

int lose_packets(void)
{
	return system("/sbin/tc qdisc replace dev eth0 root netem delay 1ms reorder 5% loss 1%");
}
