// SPDX-License-Identifier: MIT
/*
 * fuzz_exec.c - a program is run: its calls are made
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/hawk.h>

#include "hawk_fuzz.h"

#define PAGE		4096u
#define ARENA		(80u * PAGE)	/* HAWK_BATCH_MAX items and more */
#define CHUNK		((uint64_t)HAWK_CHUNK_BYTES)
#define KERNEL_ADDRESS	0xffff888000001000ull

/* Memory that ends at a known place, once writable and once not. */
struct arena {
	uint8_t *rw;
	uint8_t *ro;
};

struct fuzz_world world;

static struct arena args, items;
static int to_peer, from_peer;
static sigjmp_buf fault_exit;
static volatile sig_atomic_t fault_expected;

int fuzz_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static void on_fault(int sig)
{
	if (!fault_expected)
		_exit(100 + sig);
	siglongjmp(fault_exit, 1);
}

static void arena_init(struct arena *a)
{
	int fd = memfd_create("arena", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, ARENA))
		_exit(99);
	a->rw = mmap(NULL, ARENA + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	a->ro = mmap(NULL, ARENA, PROT_READ, MAP_SHARED, fd, 0);
	if (a->rw == MAP_FAILED || a->ro == MAP_FAILED ||
	    mmap(a->rw, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != a->rw)
		_exit(99);
	close(fd);
}

void exec_init(const struct fuzz_setup *s, int to, int from)
{
	struct sigaction sa = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	uint32_t i;

	world.setup = s;
	to_peer = to;
	from_peer = from;
	arena_init(&args);
	arena_init(&items);
	for (i = 0; i < FUZZ_SLOTS; i++)
		world.fd[i] = -1;
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Copies as far as the memory lets it. */
static void copy_to(uint8_t *to, const void *from, size_t n)
{
	fault_expected = 1;
	if (!sigsetjmp(fault_exit, 0))
		memcpy(to, from, n);
	fault_expected = 0;
}

/* Puts @n bytes where a pointer of this kind leads. Return: the pointer. */
static uint64_t place(struct arena *a, uint8_t ptr, uint32_t slot, const void *from, size_t n)
{
	uint8_t *at = a->rw;

	switch (ptr) {
	case PTR_EDGE: at = a->rw + ARENA - n; break;
	case PTR_CUT: at = a->rw + ARENA - n / 2; break;
	case PTR_ODD: at = a->rw + 1; break;
	case PTR_NULL: return 0;
	case PTR_KERNEL: return KERNEL_ADDRESS;
	case PTR_MAPPED:
		if (world.map[slot].at && n <= world.map[slot].bytes)
			at = world.map[slot].at;
	}
	copy_to(at, from, n);
	return (uintptr_t)(ptr == PTR_RDONLY ? a->ro : at);
}

/* What the argument points to. */
uint64_t place_items(const struct fuzz_call *c, const void *from, size_t n)
{
	return place(&items, c->items, c->slot, from, n);
}

/* ---- calls ---- */

static uint32_t claimed_size(const struct fuzz_call *c, uint32_t own)
{
	switch (c->size) {
	case 0: return own;
	case 1: return 0;
	case 2: return 4;
	case 3: return own - 4;
	case 4:
	case 5: return own + 8;
	case 6: return PAGE;
	case 7: return PAGE + 1;
	case 8: return ~0u;
	default: return c->a[5];
	}
}

static void slot_set(uint32_t slot, int fd)
{
	if (world.fd[slot] >= 0)
		close(world.fd[slot]);
	world.fd[slot] = fd;
}

/* The dma-buf in slot 1 or above; the calls after it may map it, or take it for /dev/hawk. */
static void export_keep(const struct fuzz_call *c, uint64_t at)
{
	struct hawk_export ex;

	ex.fd = -1;
	copy_to((uint8_t *)&ex, (void *)(uintptr_t)at, sizeof(ex));
	slot_set(1 + c->a[3] % (FUZZ_SLOTS - 1), ex.fd);
}

static int run_ioctl(const struct fuzz_call *c, struct fuzz_shared *sh)
{
	static uint64_t buf[2 * PAGE / sizeof(uint64_t)];
	unsigned long cmd = _IO(HAWK_IOC_MAGIC, c->nr);
	uint32_t own, size;
	uint64_t at;
	int fd = world.fd[c->slot] >= 0 ? world.fd[c->slot] : world.fd[0], ret;

	memset(buf, 0, sizeof(buf));
	own = build_struct(buf, c);
	size = claimed_size(c, own);
	memcpy((uint8_t *)buf + c->raw_at, &c->raw, c->raw_bytes);
	if (!c->raw_bytes || c->raw_at)
		*(uint32_t *)buf = size;
	if (c->size == 5)
		((uint8_t *)buf)[own] = 1;
	if (c->size == 15)
		cmd |= 0x40080000;
	build_tame(buf, c);
	at = place(&args, c->ptr, c->slot, buf, size < own || size > PAGE + 1 ? own : size);
	ret = ioctl(fd, cmd, at) ? -errno : 0;
	if (!ret && cmd == HAWK_IOC_EXPORT)
		export_keep(c, at);
	__atomic_add_fetch(&sh->tried[c->nr], 1, __ATOMIC_RELAXED);
	if (!ret)
		__atomic_add_fetch(&sh->ok[c->nr], 1, __ATOMIC_RELAXED);
	return ret;
}

/* ---- files and mappings ---- */

static int run_open(const struct fuzz_call *c)
{
	static const int mode[] = { O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK };

	slot_set(c->slot, open("/dev/hawk", mode[c->nr % 6] | O_CLOEXEC));
	return world.fd[c->slot] < 0 ? -errno : 0;
}

static int run_send(const struct fuzz_call *c)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);

	if (world.fd[c->slot] < 0)
		return -EBADF;
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &world.fd[c->slot], sizeof(int));
	return sendmsg(to_peer, &m, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int run_recv(const struct fuzz_call *c)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *cm;
	int fd;

	if (recvmsg(from_peer, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	cm = CMSG_FIRSTHDR(&m);
	if (!cm || cm->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	slot_set(c->slot, fd);
	return 0;
}

static void map_drop(uint32_t slot)
{
	if (world.map[slot].at)
		munmap(world.map[slot].at, world.map[slot].bytes);
	world.map[slot].at = NULL;
}

static int run_mmap(const struct fuzz_call *c)
{
	static const int prot[] = { PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
				    PROT_READ | PROT_WRITE | PROT_EXEC };
	/* the space's, draft rings, windows of tiers */
	uint64_t area = c->a[0] < 4 ? c->a[0] + 1 : c->a[0] < 8 ? c->a[0] + 4 : c->a[0];
	uint64_t off = (area << 40) + c->a[2] * PAGE;
	size_t bytes = c->a[1] == 7 ? CHUNK : (c->a[1] % 1024 + 1) * PAGE;
	int fd = world.fd[c->slot] >= 0 ? world.fd[c->slot] : world.fd[0];
	void *p;

	map_drop(c->slot);
	p = mmap(NULL, bytes, prot[c->nr & 3], c->nr >= 12 ? MAP_PRIVATE : MAP_SHARED, fd, off);
	if (p == MAP_FAILED)
		return -errno;
	world.map[c->slot].at = p;
	world.map[c->slot].bytes = bytes;
	return 0;
}

static int run_munmap(const struct fuzz_call *c)
{
	static const int advice[] = { MADV_DONTNEED, MADV_REMOVE, MADV_COLD, MADV_PAGEOUT,
				      MADV_HUGEPAGE, MADV_DOFORK, MADV_POPULATE_READ,
				      MADV_POPULATE_WRITE };
	uint8_t *at = world.map[c->slot].at;
	size_t bytes = world.map[c->slot].bytes;

	if (!at)
		return -ENOENT;
	switch (c->nr & 7) {
	case 0:
		if (bytes == PAGE || munmap(at, PAGE))
			return -EINVAL;
		world.map[c->slot].at += PAGE;
		world.map[c->slot].bytes -= PAGE;
		return 0;
	case 1: return mprotect(at, bytes, c->a[0] & 7) ? -errno : 0;
	case 2:
	case 3: return madvise(at, bytes, advice[c->a[0] & 7]) ? -errno : 0;
	case 4: return mremap(at, bytes, bytes + PAGE, 0) == MAP_FAILED ? -errno : 0;
	case 5: return mlock(at, bytes) ? -errno : 0;
	default: map_drop(c->slot); return 0;
	}
}

static int run_touch(const struct fuzz_call *c)
{
	volatile uint64_t *p;
	int ret = 0;

	if (!world.map[c->slot].at)
		return -ENOENT;
	p = (void *)(world.map[c->slot].at +
		     (c->a[0] * PAGE + c->a[1] * 8) % world.map[c->slot].bytes);
	fault_expected = 1;
	if (sigsetjmp(fault_exit, 0))
		ret = -EFAULT;
	else if (c->nr & 1)
		*p = c->a[2];
	else
		(void)*p;
	fault_expected = 0;
	return ret;
}

/* Attributes of a tier, and the list of spaces with the engine's check of each. */
static int run_attribute(const struct fuzz_call *c)
{
	static const char * const name[] = { "kind", "node", "bytes", "free_bytes",
					     "quarantine_bytes", "read_bytes", "io_errors",
					     "writeback_permille" };
	char path[128], buf[4096];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/class/misc/hawk/tier%u/%s",
		 (unsigned int)c->a[0] % HAWK_TIERS_MAX, name[c->a[1] % 8]);
	fd = open(c->nr & 1 ? path : "/sys/kernel/debug/hawk/spaces",
		  (c->a[2] & 1 ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = c->a[2] & 1 ? dprintf(fd, "%d", (int)c->a[3]) : read(fd, buf, sizeof(buf));
	close(fd);
	return ret < 0 ? -errno : 0;
}

static int run_file(const struct fuzz_call *c)
{
	int fd = world.fd[c->slot];
	char buf[64] = "";
	struct stat st;
	int ret;

	if (c->nr & 8)
		return run_attribute(c);

	switch (c->nr & 7) {
	case 0: ret = read(fd, buf, sizeof(buf)); break;
	case 1: ret = write(fd, buf, sizeof(buf)); break;
	case 2: ret = lseek(fd, c->a[0], SEEK_SET) < 0 ? -1 : 0; break;
	case 3: ret = fcntl(fd, F_SETFL, c->a[0] & 1 ? O_NONBLOCK : 0); break;
	case 4: ret = fsync(fd); break;
	case 5: ret = ftruncate(fd, c->a[0]); break;
	case 6: ret = fstat(fd, &st); break;
	default: ret = fallocate(fd, 0, 0, PAGE);
	}
	return ret < 0 ? -errno : 0;
}

static int run_fork(const struct fuzz_call *c)
{
	struct hawk_stats st = { .size = sizeof(st) };
	pid_t pid = fork();

	if (!pid) {
		run_touch(c);
		fuzz_call(world.fd[0], HAWK_IOC_STATS, &st);
		_exit(0);
	}
	return pid < 0 || waitpid(pid, NULL, 0) != pid ? -errno : 0;
}

static int run_call(const struct fuzz_call *c, struct fuzz_shared *sh)
{
	struct pollfd p = { .fd = world.fd[c->slot], .events = POLLIN };

	switch (c->op) {
	case OP_IOCTL: return run_ioctl(c, sh);
	case OP_OPEN: return run_open(c);
	case OP_CLOSE: slot_set(c->slot, -1); return 0;
	case OP_DUP: slot_set(c->slot, dup(world.fd[c->a[0] % FUZZ_SLOTS])); return 0;
	case OP_SEND: return run_send(c);
	case OP_RECV: return run_recv(c);
	case OP_MMAP: return run_mmap(c);
	case OP_MUNMAP: return run_munmap(c);
	case OP_TOUCH: return run_touch(c);
	case OP_POLL: return poll(&p, 1, 0);
	case OP_FORK: return run_fork(c);
	default: return run_file(c);
	}
}

/* ---- the beginning ---- */

/* At least one tier of each kind, for calls to find: the programs remove them too. */
static void want_tiers(void)
{
	bool have[HAWK_TIER_BLK + 1] = { false };
	struct hawk_tier_add add = { .size = sizeof(add), .node = -1 };
	struct hawk_tier_info info;
	uint32_t t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		info = (struct hawk_tier_info){ .size = sizeof(info), .tier = t };
		if (world.tiers & 1u << t && !fuzz_call(world.fd[0], HAWK_IOC_TIER_INFO, &info) &&
		    info.kind <= HAWK_TIER_BLK)
			have[info.kind] = true;
	}
	add.kind = HAWK_TIER_HOST;
	add.bytes = 4 * CHUNK;
	if (!have[HAWK_TIER_HOST])
		fuzz_call(world.fd[0], HAWK_IOC_TIER_ADD, &add);
	add.kind = HAWK_TIER_BLK;
	add.bytes = 0;
	add.path = (uintptr_t)world.setup->flash;
	add.path_len = strlen(world.setup->flash) + 1;
	if (!have[HAWK_TIER_BLK])
		fuzz_call(world.fd[0], HAWK_IOC_TIER_ADD, &add);
}

static void begin(uint32_t start)
{
	/* 32 blocks in a chunk and one chunk of each tier: fewer than there are LIDs */
	static const struct fuzz_call shape = { .a = { 2 | 8, 0, 1, 0, 1 } };
	struct hawk_space_create sc = { .size = sizeof(sc) };
	struct hawk_space_attach at = { .size = sizeof(at) };
	struct hawk_ring_setup rs = { .size = sizeof(rs), .entries = 64, .eventfd = -1 };
	struct hawk_query q = { .size = sizeof(q) };
	static uint32_t turn;

	slot_set(0, open("/dev/hawk", O_RDWR | O_CLOEXEC));
	world.tiers = fuzz_call(world.fd[0], HAWK_IOC_QUERY, &q) ? 0 : q.tiers;
	if (world.setup->admin && !(turn++ % 16))
		want_tiers();
	if (start == START_EMPTY)
		return;
	build_space_create(&sc, &shape);
	if (start == START_OWN) {
		sc.flags = 0;
		sc.mode = 0;
		memset(sc.name, 0, sizeof(sc.name));
	} else {
		build_name(at.name, 0);
		if (!fuzz_call(world.fd[0], HAWK_IOC_SPACE_ATTACH, &at))
			return;
	}
	fuzz_call(world.fd[0], HAWK_IOC_SPACE_CREATE, &sc);
	if (start == START_OWN)
		fuzz_call(world.fd[0], HAWK_IOC_RING_SETUP, &rs);
}

/**
 * exec_prog() - run a program from an empty state
 * @p: the program
 * @sh: its calls are counted here; what is new is marked
 * @trace: tell every call and its result, or NULL
 *
 * Return: whether a call gave a result that it had not given before.
 */
bool exec_prog(const struct fuzz_prog *p, struct fuzz_shared *sh, FILE *trace)
{
	bool fresh = false;
	uint32_t i;
	int ret;

	begin(p->start);
	for (i = 0; i < p->n; i++) {
		ret = run_call(&p->call[i], sh);
		if (p->call[i].op == OP_IOCTL)
			fresh |= cov_result(sh, p->call[i].nr, ret);
		if (trace)
			fprintf(trace, "  call %u: %d\n", i, ret);
	}
	__atomic_add_fetch(&sh->calls, p->n, __ATOMIC_RELAXED);
	for (i = 0; i < FUZZ_SLOTS; i++) {
		slot_set(i, -1);
		map_drop(i);
	}
	return fresh;
}
