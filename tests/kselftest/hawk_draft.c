// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_draft.c - draft rings: whose they are, how they end, and that a client can
 * scribble over its own without harm to anything else
 *
 * HAWK_DRAFT_N rounds of scribbling (default 400), seed HAWK_DRAFT_SEED (printed).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "hawk_fixture.h"

#define SLOTS		40u		/* becomes 48: three rows */
#define RING_BYTES	(4096ull + 3 * ROW_BLOCKS * BLOCK)
#define ROW_BLOCKS	2u		/* of space_args(): layers * head groups */

static unsigned long env_number(const char *name, unsigned long def)
{
	const char *v = getenv(name);

	return v ? strtoul(v, NULL, 0) : def;
}

static int draft_open(int fd, uint32_t slots, struct hawk_draft_open *o)
{
	*o = (struct hawk_draft_open){
		.size = sizeof(*o), .seq = HAWK_DRAFT_NO_SEQ, .slots = slots,
	};
	return dev_call(fd, HAWK_IOC_DRAFT_OPEN, o);
}

static int draft_close(int fd, uint32_t id, uint64_t *head)
{
	struct hawk_draft_close c = { .size = sizeof(c), .id = id };
	int ret = dev_call(fd, HAWK_IOC_DRAFT_CLOSE, &c);

	if (head)
		*head = c.head;
	return ret;
}

static uint8_t *draft_map(int fd, const struct hawk_draft_open *o)
{
	return map_area(fd, o->offset, o->bytes, PROT_READ | PROT_WRITE);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return !*p && !memcmp(p, p + 1, n - 1);
}

static int attach_fd(int fd, int other)
{
	struct hawk_space_attach at = {
		.size = sizeof(at), .flags = HAWK_ATTACH_FD, .fd = other,
	};

	return dev_call(fd, HAWK_IOC_SPACE_ATTACH, &at);
}

static void write_byte(void *p)
{
	*(volatile uint8_t *)p = 1;
}

TEST_F(hawk, made_mapped_closed)
{
	struct hawk_draft_open o;
	struct hawk_draft *d;
	uint64_t head = 1;
	uint8_t *p;

	ASSERT_EQ(0, draft_open(self->fd, SLOTS, &o));
	EXPECT_EQ(48, o.slots);
	EXPECT_EQ(ROW_BLOCKS, o.row_blocks);
	EXPECT_EQ(RING_BYTES, o.bytes);
	EXPECT_EQ(HAWK_MMAP_DRAFT(o.id), o.offset);
	p = draft_map(self->fd, &o);
	ASSERT_NE(NULL, p);
	d = (struct hawk_draft *)p;
	EXPECT_EQ(0, d->head);
	EXPECT_EQ(0, d->tail);
	EXPECT_EQ(48, d->slots);
	EXPECT_TRUE(is_zero(p + sizeof(*d), o.bytes - sizeof(*d)));
	fill(p + HAWK_DRAFT_SLOTS_AT, o.bytes - HAWK_DRAFT_SLOTS_AT, 3);
	EXPECT_TRUE(filled(p + HAWK_DRAFT_SLOTS_AT, o.bytes - HAWK_DRAFT_SLOTS_AT, 3));
	d->head = 12345;
	EXPECT_EQ(-EBUSY, draft_close(self->fd, o.id, NULL));
	munmap(p, o.bytes);
	EXPECT_EQ(0, draft_close(self->fd, o.id, &head));
	EXPECT_EQ(12345, head);
	EXPECT_EQ(-ENOENT, draft_close(self->fd, o.id, NULL));
	EXPECT_EQ(NULL, draft_map(self->fd, &o));
	EXPECT_EQ(ENXIO, errno);
}

TEST_F(hawk, open_rejects)
{
	struct hawk_draft_open ok = {
		.size = sizeof(ok), .seq = HAWK_DRAFT_NO_SEQ, .slots = 1,
	}, o;
	struct hawk_space_create sc = space_args(64);
	int fd = dev_open(O_RDONLY);

	o = ok, o.slots = 0;
	EXPECT_EQ(-EINVAL, dev_call(self->fd, HAWK_IOC_DRAFT_OPEN, &o));
	o = ok, o.slots = ~0u;
	EXPECT_EQ(-E2BIG, dev_call(self->fd, HAWK_IOC_DRAFT_OPEN, &o));
	o = ok, o.slots = TOKENS * (HAWK_DRAFT_BYTES_MAX / (ROW_BLOCKS * BLOCK));
	EXPECT_EQ(-E2BIG, dev_call(self->fd, HAWK_IOC_DRAFT_OPEN, &o));
	o = ok, o.seq = 0x10000;
	EXPECT_EQ(-EOPNOTSUPP, dev_call(self->fd, HAWK_IOC_DRAFT_OPEN, &o)) TH_LOG("no sequences");
	EXPECT_EQ(-ENOENT, draft_close(self->fd, 0, NULL)) TH_LOG("nothing is left");
	EXPECT_EQ(-ENOENT, draft_close(self->fd, ~0u, NULL));
	o = ok;
	EXPECT_EQ(-ENXIO, dev_call(fd, HAWK_IOC_DRAFT_OPEN, &o));
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	EXPECT_EQ(-EACCES, dev_call(fd, HAWK_IOC_DRAFT_OPEN, &o));
	close(fd);
}

TEST_F(hawk, map_rejects)
{
	struct hawk_draft_open o;
	uint8_t *p;

	ASSERT_EQ(0, draft_open(self->fd, 1, &o));
	EXPECT_EQ(NULL, map_area(self->fd, o.offset, o.bytes + 4096, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("too long");
	EXPECT_EQ(NULL, map_area(self->fd, o.offset + o.bytes, 4096, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("behind the end");
	EXPECT_EQ(NULL, map_area(self->fd, o.offset + 4096, o.bytes, PROT_READ));
	EXPECT_EQ(EINVAL, errno) TH_LOG("over the end");
	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_DRAFT(o.id + 1), 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no such ring");
	EXPECT_EQ(NULL, map_area(self->fd, HAWK_MMAP_DRAFT(HAWK_DRAFTS_MAX), 4096, PROT_READ));
	EXPECT_EQ(ENXIO, errno) TH_LOG("no such id");
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self->fd, o.offset));
	EXPECT_EQ(EINVAL, errno) TH_LOG("private");
	p = map_area(self->fd, o.offset + 4096, BLOCK, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p) TH_LOG("a part of it");
	fill(p, BLOCK, 9);
	munmap(p, BLOCK);
	p = draft_map(self->fd, &o);
	ASSERT_NE(NULL, p);
	EXPECT_TRUE(filled(p + 4096, BLOCK, 9));
	EXPECT_EQ(-1, mprotect(p, o.bytes, PROT_READ | PROT_EXEC));
	munmap(p, o.bytes);
	EXPECT_EQ(0, draft_close(self->fd, o.id, NULL));
}

/* A ring is its file's: another file does not reach it, not even on the same space. */
TEST_F(hawk, nobody_else_reaches_it)
{
	struct hawk_space_create sc = space_args(64);
	int other = dev_open(O_RDWR), mate = dev_open(O_RDWR);
	struct hawk_draft_open o;
	uint8_t *p;

	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(other, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, attach_fd(mate, self->fd));
	ASSERT_EQ(0, draft_open(self->fd, SLOTS, &o));
	p = draft_map(self->fd, &o);
	ASSERT_NE(NULL, p);
	fill(p, o.bytes, 5);
	EXPECT_EQ(NULL, draft_map(other, &o));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(NULL, draft_map(mate, &o));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(-ENOENT, draft_close(other, o.id, NULL));
	EXPECT_EQ(-ENOENT, draft_close(mate, o.id, NULL));
	EXPECT_TRUE(filled(p, o.bytes, 5));
	munmap(p, o.bytes);
	close(mate);
	close(other);
	EXPECT_EQ(0, draft_close(self->fd, o.id, NULL));
}

TEST_F(hawk, fork_mremap_munmap)
{
	struct hawk_draft_open o;
	uint8_t *p, *q;

	ASSERT_EQ(0, draft_open(self->fd, SLOTS, &o));
	p = draft_map(self->fd, &o);
	ASSERT_NE(NULL, p);
	fill(p + 4096, BLOCK, 1);
	EXPECT_EQ(SIGSEGV, dies_with(write_byte, p)) TH_LOG("not inherited");
	EXPECT_EQ(MAP_FAILED, mremap(p, o.bytes, o.bytes + 4096, MREMAP_MAYMOVE))
		TH_LOG("may not grow");
	q = mmap(NULL, o.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(q, mremap(p, o.bytes, o.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, q));
	p = q;
	EXPECT_TRUE(filled(p + 4096, BLOCK, 1)) TH_LOG("moved");
	/* a hole in the middle makes two mappings of it, each of which keeps it */
	EXPECT_EQ(0, munmap(p + 8192, 4096));
	EXPECT_EQ(-EBUSY, draft_close(self->fd, o.id, NULL));
	EXPECT_EQ(0, munmap(p, 8192));
	EXPECT_EQ(-EBUSY, draft_close(self->fd, o.id, NULL));
	EXPECT_EQ(0, munmap(p + 12288, o.bytes - 12288));
	EXPECT_EQ(0, draft_close(self->fd, o.id, NULL));
}

/* The mapping keeps the file, and so the ring and the space. */
TEST_F(hawk, close_before_unmap)
{
	struct hawk_draft_open o;
	uint8_t *p;

	ASSERT_EQ(0, draft_open(self->fd, SLOTS, &o));
	p = draft_map(self->fd, &o);
	ASSERT_NE(NULL, p);
	munmap(self->win, HOST_BYTES);
	close(self->fd);
	fill(p, o.bytes, 7);
	EXPECT_TRUE(filled(p, o.bytes, 7));
	EXPECT_EQ(-EBUSY, tier_remove(self->ctl, self->host));
	munmap(p, o.bytes);
	self->fd = dev_open(O_RDWR);
}

/* Whoever gets the memory next, be it the same client, gets it zeroed. */
TEST_F(hawk, memory_is_zeroed)
{
	struct hawk_draft_open o;
	uint32_t i, j;
	uint8_t *p;
	int fd;

	for (i = 0; i < 16; i++) {
		struct hawk_space_create sc = space_args(64);

		fd = dev_open(O_RDWR);
		sc.quota[self->host].max_bytes = HOST_BYTES;
		ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
		for (j = 0; j < 4; j++) {
			ASSERT_EQ(0, draft_open(fd, 256, &o));
			p = draft_map(fd, &o);
			ASSERT_NE(NULL, p);
			EXPECT_TRUE(is_zero(p + sizeof(struct hawk_draft),
					    o.bytes - sizeof(struct hawk_draft)));
			fill(p, o.bytes, i * 4 + j + 1);
			munmap(p, o.bytes);
			if (j % 2)
				EXPECT_EQ(0, draft_close(fd, o.id, NULL));
		}
		close(fd);
	}
}

TEST_F(hawk, so_many_and_no_more)
{
	struct hawk_space_create sc = space_args(64);
	struct hawk_draft_open o;
	uint32_t i;
	int fd = dev_open(O_RDWR);

	sc.block_bytes = 4096;
	sc.layers = 1;
	sc.head_groups = 1;
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc));
	for (i = 0; i < HAWK_DRAFTS_MAX; i++)
		ASSERT_EQ(0, draft_open(fd, 1, &o)) TH_LOG("ring %u", i);
	EXPECT_EQ(-ENOSPC, draft_open(fd, 1, &o));
	EXPECT_EQ(0, draft_close(fd, 17, NULL));
	EXPECT_EQ(0, draft_open(fd, 1, &o));
	EXPECT_EQ(17, o.id);
	close(fd);
}

/* ---- sequences ---- */

#define SEQS	8u
#define NAME	"test-draft"

/* A file with a named space that has sequences, and its window. */
static int seq_space(uint32_t host, uint8_t **win)
{
	struct hawk_space_create sc = space_args(4 * HOST_BLOCKS);
	int fd = dev_open(O_RDWR);

	sc.seqs = SEQS;
	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, NAME);
	sc.quota[host].max_bytes = HOST_BYTES;
	if (dev_call(fd, HAWK_IOC_SPACE_CREATE, &sc))
		return -1;
	*win = map_area(fd, HAWK_MMAP_TIER(host), HOST_BYTES, PROT_READ | PROT_WRITE);
	return *win ? fd : -1;
}

static int seq_do(int fd, struct hawk_seq_op *op)
{
	struct hawk_seq_batch b = { .size = sizeof(b), .count = 1, .ops = (uintptr_t)op };
	int ret = dev_call(fd, HAWK_IOC_SEQ, &b);

	return ret ?: op->status;
}

static uint32_t seq_new(int fd, uint32_t hidden)
{
	struct hawk_seq_op op = { .op = HAWK_SEQ_NEW };

	if (seq_do(fd, &op))
		return 0;
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_RESERVE, .seq = op.seq, .len = hidden };
	return seq_do(fd, &op) ? 0 : op.seq;
}

/* Visible tokens of a sequence, or a negative errno. */
static int64_t seq_len(int fd, uint32_t seq)
{
	struct hawk_seg segs[64];
	struct hawk_seq_map m = {
		.size = sizeof(m), .seq = seq, .count = 64, .segs = (uintptr_t)segs,
	};
	int ret = dev_call(fd, HAWK_IOC_SEQ_MAP, &m);

	return ret ?: (int64_t)m.len;
}

static int seq_draft_open(int fd, uint32_t seq, struct hawk_draft_open *o)
{
	*o = (struct hawk_draft_open){ .size = sizeof(*o), .seq = seq, .slots = SLOTS };
	return dev_call(fd, HAWK_IOC_DRAFT_OPEN, o);
}

/* What head says becomes visible at the next use, of what was reserved and no more. */
TEST_F(hawk, head_of_a_sequence)
{
	struct hawk_draft_open o, again;
	struct hawk_seq_op op;
	struct hawk_draft *d;
	uint8_t *win;
	int fd = seq_space(self->host, &win);
	uint32_t seq;

	ASSERT_GE(fd, 0);
	seq = seq_new(fd, 20);
	ASSERT_NE(0, seq);
	EXPECT_EQ(-ENOENT, seq_draft_open(fd, seq + 1, &o));
	ASSERT_EQ(0, seq_draft_open(fd, seq, &o));
	EXPECT_EQ(-EBUSY, seq_draft_open(fd, seq, &again));
	d = (struct hawk_draft *)draft_map(fd, &o);
	ASSERT_NE(NULL, d);
	EXPECT_EQ(0, seq_len(fd, seq));
	d->head = 5;
	EXPECT_EQ(5, seq_len(fd, seq));
	d->head = 3;
	EXPECT_EQ(5, seq_len(fd, seq)) TH_LOG("head went back");
	d->head = 7;
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_ADVANCE, .seq = seq, .len = 1 };
	EXPECT_EQ(0, seq_do(fd, &op));
	EXPECT_EQ(8, op.len) TH_LOG("and the call's own token");
	d->head = ~0ull;
	EXPECT_EQ(20, seq_len(fd, seq)) TH_LOG("no more than was reserved");
	/* the sequence may end first; a new one has nothing of the ring */
	op = (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = seq };
	EXPECT_EQ(0, seq_do(fd, &op));
	seq = seq_new(fd, 20);
	EXPECT_EQ(0, seq_len(fd, seq));
	munmap(d, o.bytes);
	EXPECT_EQ(0, draft_close(fd, o.id, NULL));
	/* the ring's end is a look at it */
	ASSERT_EQ(0, seq_draft_open(fd, seq, &o));
	d = (struct hawk_draft *)draft_map(fd, &o);
	ASSERT_NE(NULL, d);
	d->head = 9;
	munmap(d, o.bytes);
	EXPECT_EQ(0, draft_close(fd, o.id, NULL));
	EXPECT_EQ(9, seq_len(fd, seq));
	/* and it may end with the file */
	ASSERT_EQ(0, seq_draft_open(fd, seq, &o));
	munmap(win, HOST_BYTES);
	close(fd);
	EXPECT_EQ(0, space_destroy(self->ctl, NAME));
}

/* ---- RLIMIT_MEMLOCK ---- */

static uint64_t locked(int fd)
{
	struct hawk_pin_query q = { .size = sizeof(q), .count = 1 };

	return dev_call(fd, HAWK_IOC_PIN_QUERY, &q) ? ~0ull : q.used_bytes;
}

TEST_F(hawk, charged_as_locked_memory)
{
	struct rlimit r = { .rlim_cur = 2 * RING_BYTES, .rlim_max = RLIM_INFINITY };
	struct hawk_draft_open o, last;
	int fd;

	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, 0));
	fd = dev_open(O_RDWR);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, attach_fd(fd, self->fd));
	ASSERT_EQ(0, prlimit(0, RLIMIT_MEMLOCK, &r, NULL));
	EXPECT_EQ(0, locked(fd));
	EXPECT_EQ(0, draft_open(fd, SLOTS, &o));
	EXPECT_EQ(RING_BYTES, locked(fd));
	EXPECT_EQ(0, draft_open(fd, SLOTS, &last));
	EXPECT_EQ(-ENOMEM, draft_open(fd, SLOTS, &last));
	EXPECT_EQ(2 * RING_BYTES, locked(fd));
	EXPECT_EQ(0, draft_close(fd, o.id, NULL));
	EXPECT_EQ(RING_BYTES, locked(fd));
	EXPECT_EQ(0, draft_open(fd, SLOTS, &o));
	close(fd);
	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, 0));
	fd = dev_open(O_RDWR);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_EQ(0, attach_fd(fd, self->fd));
	EXPECT_EQ(0, locked(fd)) TH_LOG("it ends with the file");
	close(fd);
}

/* ---- scribbling ---- */

#define SCRIBBLERS	3u
#define RINGS		4u

struct scribble {
	pthread_t thread[SCRIBBLERS];
	unsigned int seed;
	bool stop;
	int fd;
	uint32_t seq[RINGS];
	struct {
		uint8_t *at;
		uint64_t bytes;
	} ring[RINGS];
};

static void *scribbler(void *arg)
{
	struct scribble *s = arg;
	unsigned int seed = __atomic_add_fetch(&s->seed, 1, __ATOMIC_RELAXED);
	uint64_t *word;
	uint32_t r;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		r = rand_r(&seed) % RINGS;
		word = (uint64_t *)s->ring[r].at;
		/* every other word in the counters, where anybody would look */
		word += rand_r(&seed) % 2 ? rand_r(&seed) % 8 :
					   rand_r(&seed) % (s->ring[r].bytes / 8);
		__atomic_store_n(word, (uint64_t)rand_r(&seed) << 33 | rand_r(&seed),
				 __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Operations on the sequences whose rings are being scribbled over. */
static void use_seq(struct scribble *s, unsigned int *seed)
{
	uint32_t seq = s->seq[rand_r(seed) % RINGS];
	struct hawk_seq_op op = { .op = HAWK_SEQ_RESERVE, .seq = seq, .len = 1 + rand_r(seed) % 40 };

	switch (rand_r(seed) % 4) {
	case 0:
		seq_do(s->fd, &op);
		return;
	case 1:
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_TRUNCATE, .seq = seq,
					   .len = rand_r(seed) % 64 };
		seq_do(s->fd, &op);
		return;
	case 2:
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_FORK, .src = seq };
		if (seq_do(s->fd, &op))
			return;
		op = (struct hawk_seq_op){ .op = HAWK_SEQ_FREE, .seq = op.seq };
		seq_do(s->fd, &op);
		return;
	default:
		if (seq_len(s->fd, seq) < 0)
			kill(getpid(), SIGABRT);
	}
}

/* One call or mapping of everything that a client does, beside its own scribbling. */
static void use(struct scribble *s, unsigned int *seed, uint8_t *win)
{
	uint32_t n = rand_r(seed) % 64;
	struct hawk_draft_open o;
	struct hawk_item it = { .lid = LID(n) };
	uint8_t *p;

	switch (rand_r(seed) % 12) {
	case 8:
	case 9:
	case 10:
	case 11:
		use_seq(s, seed);
		return;
	case 0:
		if (draft_open(s->fd, 1 + rand_r(seed) % 64, &o))
			return;
		p = draft_map(s->fd, &o);
		if (p)
			memset(p, rand_r(seed), o.bytes);
		if (p && rand_r(seed) % 2)
			draft_close(s->fd, o.id, NULL);	/* EBUSY */
		if (p)
			munmap(p, o.bytes);
		draft_close(s->fd, o.id, NULL);
		return;
	case 1:
		draft_close(s->fd, rand_r(seed) % (2 * RINGS), NULL);
		return;
	case 2:
		if (!one(s->fd, HAWK_IOC_ALLOC, 0, &it)) {
			fill(frame_at(win, it.vt, BLOCK), BLOCK, n);
			it.vt = 0;
			set_key(&it, n);
			one(s->fd, HAWK_IOC_PUT, 0, &it);
		}
		return;
	case 3:
		one(s->fd, HAWK_IOC_FREE, 0, &it);
		return;
	default:
		it = key_item(n);
		if (one(s->fd, HAWK_IOC_GET, 0, &it))
			return;
		if (!filled(frame_at(win, it.vt, BLOCK), BLOCK, n))
			kill(getpid(), SIGABRT);	/* somebody's bytes got here */
		it.lid = LID(n);
		it.flags = 0;
		one(s->fd, HAWK_IOC_UNPIN, 0, &it);
	}
}

TEST_F_TIMEOUT(hawk, scribbling_harms_nobody, 600)
{
	unsigned long rounds = env_number("HAWK_DRAFT_N", 400), i;
	unsigned int seed = env_number("HAWK_DRAFT_SEED", 20261130);
	struct scribble s = { .seed = seed };
	struct hawk_space_create sc = space_args(64);
	struct hawk_draft_open o, quiet;
	int other = dev_open(O_RDWR);
	char line[256];
	uint8_t *p, *win;
	uint32_t r;

	TH_LOG("seed %u, %lu rounds", seed, rounds);
	/* a neighbour with a ring of its own, whom nothing of it must reach */
	sc.quota[self->host].max_bytes = HOST_BYTES;
	ASSERT_EQ(0, dev_call(other, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, draft_open(other, SLOTS, &quiet));
	p = draft_map(other, &quiet);
	ASSERT_NE(NULL, p);
	fill(p, quiet.bytes, 77);
	s.fd = seq_space(self->host, &win);
	ASSERT_GE(s.fd, 0);
	for (r = 0; r < RINGS; r++) {
		s.seq[r] = seq_new(s.fd, 100);
		ASSERT_EQ(0, seq_draft_open(s.fd, s.seq[r], &o));
		s.ring[r].at = draft_map(s.fd, &o);
		s.ring[r].bytes = o.bytes;
		ASSERT_NE(NULL, s.ring[r].at);
	}
	for (r = 0; r < SCRIBBLERS; r++)
		ASSERT_EQ(0, pthread_create(&s.thread[r], NULL, scribbler, &s));
	for (i = 0; i < rounds; i++)
		use(&s, &seed, win);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	for (r = 0; r < SCRIBBLERS; r++)
		pthread_join(s.thread[r], NULL);
	EXPECT_TRUE(filled(p, quiet.bytes, 77));
	munmap(p, quiet.bytes);
	EXPECT_EQ(0, draft_close(other, quiet.id, NULL));
	close(other);
	for (r = 0; r < RINGS; r++) {
		EXPECT_EQ(-EBUSY, draft_close(s.fd, r, NULL));
		munmap(s.ring[r].at, s.ring[r].bytes);
		EXPECT_EQ(0, draft_close(s.fd, r, NULL)) TH_LOG("whatever its head says");
	}
	EXPECT_EQ(0, stat_pinned(s.fd));
	munmap(win, HOST_BYTES);
	EXPECT_NE(0, space_check(NAME, line, sizeof(line))) TH_LOG("%s", line);
	close(s.fd);
	EXPECT_EQ(0, space_destroy(self->ctl, NAME));
}

TEST_HARNESS_MAIN
