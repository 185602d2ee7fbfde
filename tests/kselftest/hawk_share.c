// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_share.c - spaces in several hands: passed by descriptor, through fork(),
 * named ones that are changed, idle, or looked at by other users
 */
#define _GNU_SOURCE
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "hawk_named.h"

#define NAME	"test-share"
#define PATIENCE_NS	60000000000ull	/* for what comes by itself */

static int attach_fd(int fd, int other)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = other,
	};

	return dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at);
}

static int send_fd(int sock, int fd)
{
	char c = 0, control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -1;
}

static int recv_fd(int sock)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* What a child exits with; it was given the fixture and a socket. */
static int child_result(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		_exit(100);
}

/* ---- passing a descriptor ---- */

TEST_F(hawk, attach_fd_rejects)
{
	struct hawk_space_attach ok = {
		.size = sizeof(ok), .flags = HAWK_ATTACH_FD, .fd = self->fd,
	}, at;
	int fd = dev_open(O_RDWR), efd = eventfd(0, 0), bare = dev_open(O_RDWR);
	int wo = dev_open(O_WRONLY);

	at = ok, at.name[0] = 'x';
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at));
	at = ok, at.flags = 0;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at)) TH_LOG("fd without flag");
	strcpy((char *)at.name, NAME);
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at)) TH_LOG("fd beside a name");
	at.fd = 0;
	EXPECT_EQ(-ENOENT, dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at));
	EXPECT_EQ(-EBADF, attach_fd(fd, -1));
	EXPECT_EQ(-EBADF, attach_fd(fd, 1000));
	EXPECT_EQ(-EBADF, attach_fd(fd, efd));
	EXPECT_EQ(-ENXIO, attach_fd(fd, bare));
	EXPECT_EQ(-ENXIO, attach_fd(fd, fd));
	EXPECT_EQ(-EBUSY, attach_fd(self->fd, self->fd));
	ASSERT_EQ(0, attach_fd(wo, self->fd));
	EXPECT_EQ(-EACCES, attach_fd(fd, wo)) TH_LOG("it could not read");
	EXPECT_EQ(0, attach_fd(fd, self->fd)) TH_LOG("the failed ones left nothing");
	EXPECT_EQ(-EBUSY, attach_fd(fd, self->fd));
	close(wo);
	close(bare);
	close(efd);
	close(fd);
}

/* A private space lives until the last file that has it, each with pins of its own. */
TEST_F(hawk, attach_by_received_fd)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, put_block(self->fd, self->host, 7));
	ASSERT_EQ(0, lid_call(self->fd, HAWK_IOC_PIN, LID(7)));
	pid = fork();
	if (!pid) {
		int passed, own = dev_open(O_RDWR);

		close(self->fd);
		passed = recv_fd(sock[1]);
		if (attach_fd(own, passed))
			_exit(1);
		close(passed);
		if (lid_call(own, HAWK_IOC_UNPIN, LID(7)) != -ESTALE)
			_exit(2);	/* that pin is another file's */
		if (!has_block(own, self->host, 7) || put_block(own, self->host, 8))
			_exit(3);
		if (send_fd(sock[1], own))
			_exit(4);
		_exit(0);
	}
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	fd = recv_fd(sock[0]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, child_result(pid));
	EXPECT_EQ(1, stat_pinned(self->fd)) TH_LOG("one block, pinned by two files");
	EXPECT_EQ(-EBUSY, lid_call(self->fd, HAWK_IOC_FREE, LID(7)));
	/* the creator's file goes, the space stays with the other */
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	EXPECT_EQ(1, stat_pinned(fd)) TH_LOG("the child's, in the file that it sent");
	EXPECT_TRUE(has_block(fd, self->host, 8));
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_INFO, &info));
	EXPECT_EQ(HOST_BLOCKS, info.frames[self->host]);
	self->fd = fd;
	self->win = map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
	close(sock[0]);
	close(sock[1]);
}

/* The passed descriptor itself is the same file: same pins, whoever uses it. */
TEST_F(hawk, passed_fd_is_the_same_file)
{
	int sock[2];
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, put_block(self->fd, self->host, 1));
	pid = fork();
	if (!pid) {
		int fd;

		close(self->fd);
		fd = recv_fd(sock[1]);
		_exit(has_block(fd, self->host, 1) ? 0 : 1);
	}
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	EXPECT_EQ(0, child_result(pid));
	EXPECT_EQ(1, stat_pinned(self->fd)) TH_LOG("the child is dead, the file is not");
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_UNPIN, LID(1)));
	EXPECT_EQ(-ESTALE, lid_call(self->fd, HAWK_IOC_UNPIN, LID(1)));
	close(sock[0]);
	close(sock[1]);
}

TEST_F(hawk, read_only_fd_gives_no_more)
{
	int ro = dev_open(O_RDONLY), fd = dev_open(O_RDWR), again = dev_open(O_RDWR);

	ASSERT_EQ(0, put_block(self->fd, self->host, 1));
	ASSERT_EQ(0, attach_fd(ro, self->fd));
	ASSERT_EQ(0, attach_fd(fd, ro));
	ASSERT_EQ(0, attach_fd(again, fd));
	EXPECT_EQ(-EACCES, lid_call(fd, HAWK_IOC_ALLOC, LID(2)));
	EXPECT_EQ(-EACCES, lid_call(fd, HAWK_IOC_FREE, LID(1)));
	EXPECT_EQ(-EACCES, lid_call(again, HAWK_IOC_FREE, LID(1)));
	EXPECT_EQ(NULL, map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES,
				 PROT_READ | PROT_WRITE));
	EXPECT_TRUE(has_block(fd, self->host, 1));
	close(again);
	close(fd);
	close(ro);
}

/* The descriptor is the permission: mode and user do not matter any more. */
TEST_F(hawk, fd_beats_mode)
{
	int sock[2], fd = dev_open(O_RDWR), own = dev_open(O_RDWR);
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, named_create(fd, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, put_block(fd, self->host, 3));
	pid = fork();
	if (!pid) {
		int passed;

		close(fd);
		become(NOBODY, NOBODY);
		if (space_attach(own, NAME) != -ENOENT)
			_exit(1);
		passed = recv_fd(sock[1]);
		if (attach_fd(own, passed))
			_exit(2);
		_exit(has_block(own, self->host, 3) ? 0 : 3);
	}
	ASSERT_EQ(0, send_fd(sock[0], fd));
	EXPECT_EQ(0, child_result(pid));
	EXPECT_EQ(0, space_destroy(fd, NAME));
	close(own);
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

/* ---- fork ---- */

/* A client forks and is killed; its child goes on with the file. */
TEST_F(hawk, child_goes_on_when_parent_dies)
{
	int out[2], go[2];
	char got = 'x', c = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(0, pipe(go));
	pid = fork();
	if (!pid) {
		int fd = dev_open(O_RDWR);
		uint8_t *win;

		if (named_create(fd, self->host, NAME, 0600, 0) || space_destroy(fd, NAME) ||
		    put_block(fd, self->host, 5) || lid_call(fd, HAWK_IOC_PIN, LID(5)))
			_exit(1);
		win = map_area(fd, HAWK_MMAP_TIER(self->host), HOST_BYTES, PROT_READ);
		if (fork())
			pause();	/* until it is killed */
		close(go[1]);
		if (write(out[1], "r", 1) != 1 || read(go[0], &c, 1))
			_exit(1);
		/* now orphaned; the file, its space and its pin are there */
		c = stat_pinned(fd) != 1 ? '1' : !has_block(fd, self->host, 5) ? '2' :
		    put_block(fd, self->host, 6) ? '3' : msync(win, 4096, 0) == 0 ? '4' : 'k';
		_exit(write(out[1], &c, 1) != 1);
	}
	close(go[0]);
	ASSERT_EQ(1, read(out[0], &got, 1));
	ASSERT_EQ('r', got);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_result(pid));
	close(go[1]);
	ASSERT_EQ(1, read(out[0], &got, 1));
	EXPECT_EQ('k', got);
	close(out[0]);
	close(out[1]);
	/* The tier is free when the orphan has gone. */
	while (tier_free_bytes(self->ctl, self->host) != HOST_BYTES)
		poll(NULL, 0, 10);
}

/* ---- changing named spaces ---- */

static int space_set(int fd, uint32_t mask, uint32_t mode, uint64_t idle_ns)
{
	struct hawk_space_set set = {
		.size = sizeof(set), .mask = mask, .mode = mode, .idle_ns = idle_ns,
		.name = NAME,
	};

	return dev_call(fd, HAWK_IOC_SPACE_SET, &set);
}

TEST_F(hawk, space_set_rejects)
{
	struct hawk_space_create sc = space_args(64);
	struct hawk_space_set set = { .size = sizeof(set), .mask = HAWK_SPACE_SET_IDLE };
	int fd = dev_open(O_RDWR), other = dev_open(O_RDWR);

	sc.idle_ns = 1;
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc)) TH_LOG("a private space");
	EXPECT_EQ(-EINVAL, named_create(fd, self->host, NAME, 0600, 1ull << 63));
	EXPECT_EQ(-ENOENT, space_set(fd, HAWK_SPACE_SET_MODE, 0600, 0));
	ASSERT_EQ(0, named_create(fd, self->host, NAME, 0644, 0));
	EXPECT_EQ(-EINVAL, space_set(fd, 0, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, space_set(fd, 1u << 2, 0, 0));
	EXPECT_EQ(-EINVAL, space_set(fd, HAWK_SPACE_SET_IDLE, 0600, 0));
	EXPECT_EQ(-EINVAL, space_set(fd, HAWK_SPACE_SET_MODE, 0, 1));
	EXPECT_EQ(-EINVAL, space_set(fd, HAWK_SPACE_SET_MODE, 01000, 0));
	EXPECT_EQ(-EINVAL, space_set(fd, HAWK_SPACE_SET_MODE, 0700, 0));
	EXPECT_EQ(-EINVAL, space_set(fd, HAWK_SPACE_SET_IDLE, 0, 1ull << 63));
	EXPECT_EQ(-EINVAL, dev_call(fd, HAWK_IOC_SPACE_SET, &set)) TH_LOG("no name");
	ASSERT_EQ(0, setegid(NOBODY));
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(-EPERM, space_set(other, HAWK_SPACE_SET_MODE, 0666, 0));
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, setegid(0));
	EXPECT_EQ(0, space_set(fd, HAWK_SPACE_SET_MODE, 0600, 0));
	ASSERT_EQ(0, setegid(NOBODY));
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(-ENOENT, space_set(other, HAWK_SPACE_SET_MODE, 0666, 0)) TH_LOG("not to know");
	EXPECT_EQ(-ENOENT, space_attach(other, NAME));
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, setegid(0));
	EXPECT_EQ(0, space_destroy(fd, NAME));
	close(other);
	close(fd);
}

/* Owners need no privilege; a mode counts for later attaches. */
TEST_F(hawk, owner_sets_mode)
{
	int fd = dev_open(O_RDWR), early = dev_open(O_RDWR), late = dev_open(O_RDWR);

	ASSERT_EQ(0, setegid(NOBODY));
	ASSERT_EQ(0, seteuid(NOBODY));
	ASSERT_EQ(0, named_create(fd, self->host, NAME, 0600, 0));
	ASSERT_EQ(0, space_attach(early, NAME));
	ASSERT_EQ(0, space_set(fd, HAWK_SPACE_SET_MODE, 0400, 0));
	ASSERT_EQ(0, space_attach(late, NAME));
	EXPECT_EQ(0, lid_call(early, HAWK_IOC_ALLOC, LID(1)));
	EXPECT_EQ(-EACCES, lid_call(late, HAWK_IOC_ALLOC, LID(2)));
	EXPECT_EQ(0, space_destroy(late, NAME)) TH_LOG("the owner, on any file");
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, setegid(0));
	close(late);
	close(early);
	close(fd);
}

/* ---- idle time ---- */

/* Waits until the name is gone; false if it stays.  An attach would begin anew. */
static bool goes(int ctl)
{
	uint64_t end = now_ns() + PATIENCE_NS;
	int ret;

	do {
		ret = space_set(ctl, HAWK_SPACE_SET_MODE, 0600, 0);
		if (ret)
			return ret == -ENOENT;
		poll(NULL, 0, 5);
	} while (now_ns() < end);
	return false;
}

TEST_F(hawk, idle_space_ends)
{
	uint64_t idle = 50000000, left;
	int fd = dev_open(O_RDWR);

	ASSERT_EQ(0, named_create(fd, self->host, NAME, 0600, idle));
	ASSERT_EQ(0, put_block(fd, self->host, 1));
	left = now_ns();
	close(fd);
	EXPECT_TRUE(goes(self->ctl));
	EXPECT_GE(now_ns(), left + idle) TH_LOG("not before its time");
	while (tier_free_bytes(self->ctl, self->host) != HOST_BYTES)
		poll(NULL, 0, 10);
}

TEST_F(hawk, attached_space_is_not_idle)
{
	int a = dev_open(O_RDWR), b, i;

	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 1));
	for (i = 0; i < 100; i++) {
		b = dev_open(O_RDWR);
		ASSERT_EQ(0, space_attach(b, NAME)) TH_LOG("%d", i);
		close(b);
	}
	close(a);
	EXPECT_TRUE(goes(self->ctl));
}

TEST_F(hawk, idle_time_can_be_set)
{
	int a = dev_open(O_RDWR);

	/* never, then at once */
	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 0));
	close(a);
	a = dev_open(O_RDWR);
	ASSERT_EQ(0, space_attach(a, NAME)) TH_LOG("no idle time: it stays");
	close(a);
	EXPECT_EQ(0, space_set(self->ctl, HAWK_SPACE_SET_IDLE, 0, 1));
	EXPECT_TRUE(goes(self->ctl));
	/* an hour, then destroyed while its time runs */
	a = dev_open(O_RDWR);
	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 3600000000000ull));
	close(a);
	EXPECT_EQ(0, space_destroy(self->ctl, NAME));
	/* an hour, then none */
	a = dev_open(O_RDWR);
	ASSERT_EQ(0, named_create(a, self->host, NAME, 0600, 3600000000000ull));
	close(a);
	EXPECT_EQ(0, space_set(self->ctl, HAWK_SPACE_SET_IDLE, 0, 0));
	EXPECT_EQ(0, space_destroy(self->ctl, NAME));
}

struct racer {
	pthread_t thread;
	uint32_t host;
	unsigned int seed;
	int wrong;
};

/* Makes, attaches and destroys the one name at random; its idle time is 1 ns. */
static void *race(void *arg)
{
	struct racer *r = arg;
	int i, fd, ret;

	for (i = 0; i < 400 && !r->wrong; i++) {
		fd = dev_open(O_RDWR);
		switch (rand_r(&r->seed) % 4) {
		case 0:
			ret = named_create(fd, r->host, NAME, 0600, 1);
			r->wrong = ret == -EEXIST ? 0 : ret;
			break;
		case 1:
			ret = space_destroy(fd, NAME);
			r->wrong = ret == -ENOENT ? 0 : ret;
			break;
		default:
			ret = space_attach(fd, NAME);
			r->wrong = ret == -ENOENT ? 0 : ret;
			if (!ret && stats_of(fd).blocks)
				r->wrong = 1;
		}
		close(fd);
	}
	return NULL;
}

TEST_F(hawk, idle_races_with_attach_and_destroy)
{
	struct racer r[4];
	int i;

	for (i = 0; i < 4; i++) {
		r[i] = (struct racer){ .host = self->host, .seed = 77 + i };
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, race, &r[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_EQ(0, r[i].wrong) TH_LOG("racer %d", i);
	}
	EXPECT_TRUE(goes(self->ctl)) TH_LOG("the last one ends too");
}

/* ---- users and groups ---- */

/* May such a process attach?  The device is opened by root. */
static int may_attach(uid_t uid, gid_t gid, gid_t extra, bool new_user_ns)
{
	int fd = dev_open(O_RDWR), ret;
	pid_t pid = fork();

	if (!pid) {
		if (setgroups(extra != (gid_t)-1, &extra) || setresgid(gid, gid, gid) ||
		    setresuid(uid, uid, uid))
			_exit(100);
		if (new_user_ns) {
			char map[64];
			int mfd;

			/* or its files in /proc are root's */
			if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
				_exit(101);
			snprintf(map, sizeof(map), "0 %u 1", uid);
			mfd = open("/proc/self/uid_map", O_WRONLY);
			if (mfd < 0 || write(mfd, map, strlen(map)) < 0)
				_exit(102);
			close(mfd);
			if (getuid())
				_exit(103);
		}
		_exit(space_attach(fd, NAME) == 0);
	}
	ret = child_result(pid);
	close(fd);
	return ret;
}

TEST_F(hawk, groups_and_user_namespaces)
{
	int fd = dev_open(O_RDWR);

	/* a space of user 1000, group 2000 */
	ASSERT_EQ(0, setegid(2000));
	ASSERT_EQ(0, seteuid(1000));
	ASSERT_EQ(0, named_create(fd, self->host, NAME, 0640, 0));
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, setegid(0));
	EXPECT_EQ(1, may_attach(1000, 1, -1, false)) TH_LOG("its owner");
	EXPECT_EQ(1, may_attach(1001, 2000, -1, false)) TH_LOG("its group");
	EXPECT_EQ(1, may_attach(1001, 1, 2000, false)) TH_LOG("a supplementary group");
	EXPECT_EQ(0, may_attach(1001, 1, 2001, false)) TH_LOG("another");
	EXPECT_EQ(1, may_attach(0, 0, -1, false)) TH_LOG("CAP_DAC_OVERRIDE");
	/* root of a user namespace is who it is outside */
	EXPECT_EQ(1, may_attach(1000, 1, -1, true)) TH_LOG("its owner in a namespace");
	EXPECT_EQ(0, may_attach(1001, 1, -1, true)) TH_LOG("somebody else in a namespace");
	EXPECT_EQ(0, space_destroy(self->ctl, NAME));
	close(fd);
}

TEST_HARNESS_MAIN
