// SPDX-License-Identifier: MIT
/*
 * lib_handoff.c - a sequence passes to another process: the same blocks in the same frames,
 * its bytes, and whoever dies
 *
 * The peer is a process with a handle of its own on the kernel's device ($HAWK_URL), and a
 * thread on the same handle of an embedded one.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)
#define TOKENS	(8 * FX_TOKENS + 5)
#define HEADS	2u
#define BLOCKS	(9 * FX_LAYERS * HEADS)

/* What the taker expects: known before the peer is started, so it has it, too. */
struct context {
	struct fx f;
	uint32_t seq;
	struct hawk_seg seg;
	uint64_t lid[BLOCKS];
	uint64_t vt[BLOCKS];
	int sock[2];		/* giver, taker */
};

static struct hawk_stats stats(struct hawk_kv *kv)
{
	struct hawk_stats st = { 0 };

	assert_ok(hawk_kv_stats(kv, &st));
	return st;
}

static void settles_at(struct hawk_kv *kv, uint64_t blocks)
{
	while (stats(kv).blocks != blocks)
		sched_yield();
}

static void build(struct context *c)
{
	struct hawk_item it[BLOCKS + FX_LAYERS * HEADS];
	struct hawk_append a = { .len = TOKENS, .it = it, .max = BLOCKS + FX_LAYERS * HEADS };
	uint32_t i;

	assert_ok(hawk_seq_new(c->f.kv, 0, &c->seq));
	a.seq = c->seq;
	assert_int_equal(hawk_seq_append(c->f.kv, &a), BLOCKS);
	for (i = 0; i < BLOCKS; i++) {
		fx_fill(hawk_addr(c->f.kv, it[i].vt), i, 3);
		c->lid[i] = it[i].lid;
		c->vt[i] = it[i].vt;
	}
	assert_int_equal(hawk_put(c->f.kv, it, BLOCKS, NULL), BLOCKS);
	assert_int_equal(hawk_seq_segs(c->f.kv, c->seq, &c->seg, 1, NULL), 1);
}

static void open_all(struct context *c)
{
	struct hawk_kv_params p;

	memset(c, 0, sizeof(*c));
	fx_open(&c->f, 8 * MIB, 0);
	hawk_kv_close(c->f.kv);
	p = fx_params(&c->f);
	p.seqs = 16;
	assert_ok(hawk_kv_create(c->f.h, &p, &c->f.kv));
	build(c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, c->sock), 0);
}

static void close_all(struct context *c)
{
	if (c->sock[0] >= 0)
		close(c->sock[0]);
	if (c->sock[1] >= 0)
		close(c->sock[1]);
	fx_close(&c->f);
}

/* Is the sequence what was given: the same segment, blocks in the same frames, its bytes? */
static int look(struct hawk_kv *kv, const struct context *c, uint32_t seq)
{
	struct hawk_item it[BLOCKS] = { 0 };
	struct hawk_seg seg;
	uint32_t i;

	if (hawk_seq_segs(kv, seq, &seg, 1, NULL) != 1 || memcmp(&seg, &c->seg, sizeof(seg)))
		return 10;
	for (i = 0; i < BLOCKS; i++)
		it[i].lid = c->lid[i];
	if (hawk_get(kv, it, BLOCKS, NULL, NULL) != BLOCKS)
		return 11;
	for (i = 0; i < BLOCKS; i++) {
		if (HAWK_VT_FRAME(it[i].vt) != HAWK_VT_FRAME(c->vt[i]))
			return 12;
		if (!fx_is(hawk_addr(kv, it[i].vt), i, 3))
			return 13;
	}
	return hawk_unpin(kv, it, BLOCKS) == BLOCKS ? 0 : 14;
}

/* ---- the peer ---- */

typedef int (*peer_fn)(struct hawk_kv *kv, const struct context *c);

struct peer {
	const struct context *c;
	peer_fn fn;
	pthread_t thread;
	pid_t pid;
	int ret;
};

static void *peer_thread(void *arg)
{
	struct peer *p = arg;

	p->ret = p->fn(p->c->f.kv, p->c);
	return NULL;
}

/* With a device and a space of its own; the parent's handles are not for it. */
static int peer_process(const struct context *c, peer_fn fn)
{
	struct hawk_kv *kv;
	struct hawk *h;
	int ret;

	close(c->sock[0]);
	if (hawk_open(getenv("HAWK_URL"), &h))
		return 1;
	if (hawk_kv_take(h, c->sock[1], &kv))
		return 2;
	ret = fn(kv, c);
	hawk_kv_close(kv);
	hawk_close(h);
	return ret;
}

/* In this process, on the same handle. */
static void peer_here(struct peer *p, struct context *c, peer_fn fn)
{
	*p = (struct peer){ .c = c, .fn = fn };
	assert_int_equal(pthread_create(&p->thread, NULL, peer_thread, p), 0);
}

static void peer_start(struct peer *p, struct context *c, peer_fn fn)
{
	if (!c->f.dev) {
		peer_here(p, c, fn);
		return;
	}
	*p = (struct peer){ .c = c, .fn = fn };
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid)
		_exit(peer_process(c, fn));
	close(c->sock[1]);
	c->sock[1] = -1;
	assert_ok(hawk_kv_give(c->f.kv, c->sock[0]));
}

static int peer_end(struct peer *p)
{
	int status = 0;

	if (!p->pid) {
		pthread_join(p->thread, NULL);
		return p->ret;
	}
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int take_one(struct hawk_kv *kv, const struct context *c)
{
	uint32_t seq;
	int ret;

	if (hawk_seq_take(kv, c->sock[1], 0, &seq))
		return 3;
	ret = look(kv, c, seq);
	return ret ? ret : hawk_seq_free(kv, seq) < 0 ? 4 : 0;
}

/* ---- tests ---- */

static void given(void **state)
{
	struct context c;
	struct peer p;
	struct hawk_stats before, after;

	(void)state;
	open_all(&c);
	before = stats(c.f.kv);
	peer_start(&p, &c, take_one);
	assert_ok(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0));
	assert_int_equal(hawk_seq_segs(c.f.kv, c.seq, NULL, 0, NULL), -ENOENT);
	assert_int_equal(peer_end(&p), 0);
	/* the taker has ended it: nothing is left, and nothing was ever copied */
	settles_at(c.f.kv, 0);
	after = stats(c.f.kv);
	assert_int_equal(after.allocs, before.allocs);
	close_all(&c);
}

static void shared(void **state)
{
	struct context c;
	struct peer p;

	(void)state;
	open_all(&c);
	peer_start(&p, &c, take_one);
	assert_ok(hawk_seq_give(c.f.kv, c.sock[0], c.seq, HAWK_GIVE_SHARE));
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(look(c.f.kv, &c, c.seq), 0);
	assert_int_equal(stats(c.f.kv).blocks, BLOCKS);
	close_all(&c);
}

/* The peer hears the offer and is gone. */
static int hear_and_go(struct hawk_kv *kv, const struct context *c)
{
	char byte;

	(void)kv;
	if (recv(c->sock[1], &byte, 1, MSG_PEEK) != 1)
		return 5;
	return shutdown(c->sock[1], SHUT_RDWR) ? 6 : 0;
}

static void taker_gone(void **state)
{
	struct context c;
	struct peer p;

	(void)state;
	open_all(&c);
	peer_start(&p, &c, hear_and_go);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -EPIPE);
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(look(c.f.kv, &c, c.seq), 0);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -EPIPE);
	close_all(&c);
}

/* Killed with the sequence: the kernel ends it. */
static int take_and_die(struct hawk_kv *kv, const struct context *c)
{
	uint32_t seq;

	if (hawk_seq_take(kv, c->sock[1], 0, &seq))
		return 3;
	raise(SIGKILL);
	return 7;
}

static void taker_killed(void **state)
{
	struct context c;
	struct peer p;

	(void)state;
	open_all(&c);
	if (!c.f.dev) {
		close_all(&c);
		skip();		/* a peer that dies alone is a process */
	}
	peer_start(&p, &c, take_and_die);
	assert_ok(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0));
	assert_int_equal(peer_end(&p), -SIGKILL);
	settles_at(c.f.kv, 0);
	close_all(&c);
}

/* The peer gives back what it has got, and is killed: the sequence is ours. */
static int back_and_die(struct hawk_kv *kv, const struct context *c)
{
	uint32_t seq;

	if (hawk_seq_take(kv, c->sock[1], 0, &seq) || hawk_seq_give(kv, c->sock[1], seq, 0))
		return 3;
	if (c->f.dev)
		raise(SIGKILL);
	return 0;
}

static void there_and_back(void **state)
{
	struct context c;
	struct peer p;
	uint32_t seq;

	(void)state;
	open_all(&c);
	peer_start(&p, &c, back_and_die);
	assert_ok(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0));
	assert_ok(hawk_seq_take(c.f.kv, c.sock[0], 0, &seq));
	assert_int_equal(peer_end(&p), c.f.dev ? -SIGKILL : 0);
	assert_int_equal(look(c.f.kv, &c, seq), 0);
	assert_int_equal(stats(c.f.kv).blocks, BLOCKS);
	close_all(&c);
}

/* Another space has a sequence of that number, but not that one. */
static int take_elsewhere(struct hawk_kv *kv, const struct context *c)
{
	struct hawk_kv_params p = fx_params(&c->f);
	struct hawk_kv *other;
	uint32_t seq;
	int ret;

	(void)kv;
	p.seqs = 16;
	if (hawk_kv_create(c->f.h, &p, &other))
		return 1;
	ret = hawk_seq_new(other, 0, &seq) || seq != c->seq ? 8 :
	      hawk_seq_take(other, c->sock[1], 0, &seq) == -ESTALE ? 0 : 9;
	hawk_kv_close(other);
	return ret;
}

/* An offer that nobody answers in time, and the answer that comes too late. */
static void late_answer(void **state)
{
	struct timeval soon = { .tv_usec = 1000 }, never = { 0 };
	struct context c;
	struct peer p;
	uint32_t seq;

	(void)state;
	open_all(&c);
	setsockopt(c.sock[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -ETIME);
	assert_ok(hawk_seq_take(c.f.kv, c.sock[1], 0, &seq));
	assert_int_equal(look(c.f.kv, &c, seq), 0);
	setsockopt(c.sock[0], SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
	/* the first answer in the socket is that of the first offer */
	peer_here(&p, &c, take_elsewhere);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -ESTALE);
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(look(c.f.kv, &c, c.seq), 0);
	close_all(&c);
}

static void wrong_space(void **state)
{
	struct context c;
	struct peer p;

	(void)state;
	open_all(&c);
	peer_here(&p, &c, take_elsewhere);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -ESTALE);
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(look(c.f.kv, &c, c.seq), 0);
	close_all(&c);
}

static int send_fds(int sock, const void *bytes, size_t len, const int *fd, size_t n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(*fd))] = { 0 };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof(*fd)),
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(n * sizeof(*fd));
	memcpy(CMSG_DATA(h), fd, n * sizeof(*fd));
	return sendmsg(sock, &msg, 0) == (ssize_t)len ? 0 : -1;
}

static int send_fd(int sock, const void *bytes, size_t len, int fd)
{
	return send_fds(sock, bytes, len, &fd, 1);
}

static int lowest_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Who is no libhawk is refused, and leaves no descriptor behind. */
static void strangers(void **state)
{
	static const uint8_t noise[64] = { 0x68, 0x61, 0x77, 0x6b, 9 };
	static const int more[4] = { 0, 1, 2, 0 };
	struct context c;
	size_t n;
	struct hawk_kv *kv;
	uint32_t seq;
	int fd;

	(void)state;
	open_all(&c);
	fd = lowest_fd();
	assert_int_equal(write(c.sock[0], "hello", 5), 5);
	assert_int_equal(hawk_seq_take(c.f.kv, c.sock[1], 0, &seq), -EPROTO);
	assert_int_equal(send_fd(c.sock[0], noise, 32, 0), 0);
	assert_int_equal(hawk_seq_take(c.f.kv, c.sock[1], 0, &seq), -EPROTO);
	assert_int_equal(send_fd(c.sock[0], noise, 7, 0), 0);
	assert_int_equal(hawk_kv_take(c.f.h, c.sock[1], &kv), -EPROTO);
	for (n = 2; n <= 4; n++) {
		assert_int_equal(send_fds(c.sock[0], noise, 32, more, n), 0);
		assert_int_equal(hawk_kv_take(c.f.h, c.sock[1], &kv), -EPROTO);
	}
	assert_int_equal(write(c.sock[1], "no", 2), 2);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -EPROTO);
	assert_int_equal(lowest_fd(), fd);
	assert_int_equal(look(c.f.kv, &c, c.seq), 0);
	close_all(&c);
}

static void refusals(void **state)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_RESERVE, .len = 3, .pos = TOKENS };
	struct context c;
	uint32_t seq;

	(void)state;
	open_all(&c);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 2), -EINVAL);
	assert_int_equal(hawk_seq_take(c.f.kv, c.sock[1], 2, &seq), -EINVAL);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], 0, 0), -ENOENT);
	op.seq = c.seq;
	assert_int_equal(hawk_seq_batch(c.f.kv, &op, 1), 1);
	assert_int_equal(hawk_seq_give(c.f.kv, c.sock[0], c.seq, 0), -EBUSY);
	if (!c.f.dev)
		assert_int_equal(hawk_kv_give(c.f.kv, c.sock[0]), -EOPNOTSUPP);
	close_all(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given),
		cmocka_unit_test(shared),
		cmocka_unit_test(taker_gone),
		cmocka_unit_test(taker_killed),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(late_answer),
		cmocka_unit_test(wrong_space),
		cmocka_unit_test(strangers),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
