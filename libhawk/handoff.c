// SPDX-License-Identifier: MIT
/*
 * handoff.c - a sequence passes from one process to another on the same device; no bytes move
 *
 * Two processes that have the same space open see the same blocks at the same LIDs.  What has
 * to change hands is who keeps the sequence alive: a sequence ends with the file that made
 * it.  So the taker forks it, which makes a second sequence of his own with the same blocks,
 * and says so; then the giver ends his.
 *
 *	giver				taker
 *	SPACE + descriptor	->	attaches
 *				<-	ANSWER
 *	OFFER seq, len		->	forks seq
 *				<-	ANSWER		and it is his
 *	ends his own
 *
 * Whoever dies, at any point, one of them has the sequence, or nobody is left who wants it:
 * the giver keeps his until the answer is there, and the kernel ends what a dead one had.
 *
 * Messages have the same size and go through a UNIX socket, so byte order is the machine's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "priv.h"

#define MAGIC	0x6b776168u	/* "hawk" */

enum kind { SPACE = 1, OFFER, ANSWER };

/**
 * struct message - what goes through the socket
 * @magic: MAGIC
 * @kind: enum kind
 * @id: number of an offer, the answer's is the same: a late answer is not taken for another
 * @seq: OFFER: the giver's sequence
 * @len: OFFER: its tokens, hidden ones not counted
 * @status: ANSWER: 0 or a negative errno
 * @reserved: 0
 */
struct message {
	uint32_t magic;
	uint32_t kind;
	uint64_t id;
	uint32_t seq;
	uint32_t len;
	int32_t status;
	uint32_t reserved;
};

static int send_message(int sock, const struct message *m, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { .iov_base = (void *)m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;
	ssize_t n;

	if (fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == sizeof(*m))
		return 0;
	if (n < 0 && errno != EPIPE && errno != ECONNRESET)
		return hawk_fail(-errno, "hand-off: sending to the peer");
	return hawk_fail(-EPIPE, "hand-off: the peer is gone");
}

/*
 * The descriptor that came with a message, or -1.  More than one are closed: the kernel
 * hands over as many as there is room for, and alignment makes room for two.
 */
static int take_fd(struct msghdr *msg)
{
	struct cmsghdr *h;
	int fd = -1, got;
	size_t i, n;

	for (h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(got);
		for (i = 0; i < n; i++) {
			memcpy(&got, CMSG_DATA(h) + i * sizeof(got), sizeof(got));
			if (n == 1 && fd < 0)
				fd = got;
			else
				close(got);
		}
	}
	return fd;
}

/* @fd: out, a descriptor that came with it, or -1. */
static int receive_message(int sock, struct message *m, int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(*fd))];
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return hawk_fail(-ETIME, "hand-off: the peer has said nothing for as long as the socket waits");
	if (n < 0 && errno != ECONNRESET)
		return hawk_fail(-errno, "hand-off: hearing from the peer");
	if (n <= 0)
		return hawk_fail(-EPIPE, "hand-off: the peer is gone");
	*fd = take_fd(&msg);
	if (n == sizeof(*m) && m->magic == MAGIC && !m->reserved)
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return hawk_fail(-EPROTO, "hand-off: what came is no message of libhawk's");
}

/* The message of one kind that must come now; a descriptor only where one is wanted. */
static int expect(int sock, enum kind kind, struct message *m, int *fd)
{
	int got, ret = receive_message(sock, m, &got);

	if (ret)
		return ret;
	if (m->kind == (uint32_t)kind && (fd || got < 0)) {
		if (fd)
			*fd = got;
		return 0;
	}
	if (got >= 0)
		close(got);
	return hawk_fail(-EPROTO, "hand-off: message %u, %u was expected", m->kind, kind);
}

static int await_answer(int sock, uint64_t id, const char *what)
{
	struct message m;
	int ret;

	do
		ret = expect(sock, ANSWER, &m, NULL);
	while (!ret && m.id != id);
	if (ret)
		return ret;
	if (m.status > 0 || m.status < -4095)
		return hawk_fail(-EPROTO, "hand-off: answer %d", m.status);
	return m.status ? hawk_fail(m.status, "hand-off: the peer could not take the %s", what) : 0;
}

static int answer(int sock, uint64_t id, int status)
{
	const struct message m = { .magic = MAGIC, .kind = ANSWER, .id = id, .status = status };

	return send_message(sock, &m, -1);
}

static uint64_t next_id(void)
{
	static atomic_uint_fast64_t ids;

	return ++ids;
}

int hawk_kv_give(struct hawk_kv *kv, int sock)
{
	struct message m = { .magic = MAGIC, .kind = SPACE, .id = next_id() };
	int fd = hawk_kv_fd(kv), ret;

	if (fd < 0)
		return fd;
	ret = send_message(sock, &m, fd);
	return ret ? ret : await_answer(sock, m.id, "space");
}

int hawk_kv_take(struct hawk *h, int sock, struct hawk_kv **kv)
{
	struct message m;
	int fd, ret;

	ret = expect(sock, SPACE, &m, &fd);
	if (ret)
		return ret;
	ret = hawk_kv_attach_fd(h, fd, kv);
	if (fd >= 0)
		close(fd);
	if (ret) {
		answer(sock, m.id, ret);
		return ret;
	}
	ret = answer(sock, m.id, 0);
	if (ret)
		hawk_kv_close(*kv);
	return ret;
}

int hawk_seq_give(struct hawk_kv *kv, int sock, uint32_t seq, uint32_t flags)
{
	struct message m = { .magic = MAGIC, .kind = OFFER, .id = next_id(), .seq = seq };
	struct hawk_seq_map map;
	int ret;

	if (flags & ~HAWK_GIVE_SHARE)
		return hawk_fail(-EINVAL, "hand-off: flags %#x", flags);
	ret = hawk_seq_segs(kv, seq, NULL, 0, &map);
	if (ret < 0 && ret != -E2BIG)
		return ret;
	if (map.hidden)
		return hawk_fail(-EBUSY, "hand-off: sequence %u has %u hidden tokens: somebody is writing it",
				 seq, map.hidden);
	m.len = map.len;
	ret = send_message(sock, &m, -1);
	if (!ret)
		ret = await_answer(sock, m.id, "sequence");
	if (ret || flags & HAWK_GIVE_SHARE)
		return ret;
	ret = hawk_seq_free(kv, seq);
	return ret < 0 ? ret : 0;
}

/* The peer's sequence becomes one of ours. */
static int take(struct hawk_kv *kv, const struct message *m, uint32_t flags, uint32_t *seq)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_FORK, .flags = flags, .src = m->seq };
	int ret = hawk_seq_batch(kv, &op, 1);

	if (ret < 0)
		return ret;
	if (op.status)
		return hawk_fail(op.status, "hand-off: forking sequence %u", m->seq);
	if (op.len != m->len) {
		hawk_seq_free(kv, op.seq);
		return hawk_fail(-ESTALE, "hand-off: sequence %u has %u tokens here, %u at the giver's: not the same space, or it has been changed",
				 m->seq, op.len, m->len);
	}
	*seq = op.seq;
	return 0;
}

int hawk_seq_take(struct hawk_kv *kv, int sock, uint32_t flags, uint32_t *seq)
{
	struct message m;
	int ret;

	if (flags & ~HAWK_SEQ_KEEP)
		return hawk_fail(-EINVAL, "hand-off: flags %#x", flags);
	ret = expect(sock, OFFER, &m, NULL);
	if (ret)
		return ret;
	ret = take(kv, &m, flags, seq);
	/* who does not hear that it is ours keeps or has lost his own: ours it is */
	answer(sock, m.id, ret);
	return ret;
}
