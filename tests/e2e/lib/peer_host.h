/* SPDX-License-Identifier: MIT */
/*
 * peer_host.h - a host with a NIC and a connection, as peer_do.c and npu_do.c use it
 *
 * One host serves: it does what notes of the other one say, and answers each.  Whatever goes
 * wrong ends the program with a line "not ok WHAT: WHY".
 */
#ifndef PEER_HOST_H
#define PEER_HOST_H

#include "peer_session.h"

#define WAIT	180000	/* ms: a wire that loses packets carries 50 KB/s on a busy machine */

/**
 * struct host - this side
 * @ep: its endpoint
 * @mem: @bytes, registered
 * @p: the connection
 * @where: the other side, of who connects
 * @tries: connections that a case may take, over a wire that loses packets
 */
struct host {
	struct hawk_net *ep;
	struct hawk_mem *mem;
	uint8_t *bytes;
	struct hawk_peer *p;
	char where[64];
	int tries;
};

void die(const char *what) __attribute__((noreturn));
void want(int got, int wanted, const char *what);

/* An endpoint at @address with @bytes of zeroes. */
void host_open(struct host *h, const char *address, uint64_t bytes);
void host_close(struct host *h);

/* Connects to @address:@port; again, after the connection has gone. */
void meet(struct host *h, const char *address, const char *port);
void again(struct host *h);

/* @ret is what @what has come to: a connection that broke, and there will be another one, or
 * the end. */
void mend(struct host *h, int ret, const char *what);

/* Says @note; ask() waits for the answer. */
void tell(struct host *h, const char *note);
void ask(struct host *h, const char *note, char answer[HAWK_NOTE_MAX]);

/* Serves who connects to @address:@port: @obey does what a note says and puts the answer, "done"
 * if it says nothing else; what it returns ends the connection if it is not 0. */
void serve(struct host *h, const char *address, const char *port,
	   int (*obey)(struct host *h, const char *note, char answer[HAWK_NOTE_MAX]))
	__attribute__((noreturn));

/* This side's wire loses 1 % of the packets and reorders some; not 0: it does not. */
int lose_packets(void);

#endif /* PEER_HOST_H */
