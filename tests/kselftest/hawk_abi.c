// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_abi.c - the rules that hold for every call of uapi/hawk.h, for each of them
 *
 * One table: a new call is one line in it.  A call that the header or the kernel
 * has and the table lacks fails the test.  What each call does with its own
 * members is tested elsewhere (hawk_ioctl.c).
 */
#define _GNU_SOURCE
#include <linux/ioctl.h>

#include "hawk_fixture.h"

#define ADMIN		(1u << 0)	/* needs CAP_SYS_ADMIN */
#define SPACE		(1u << 1)	/* needs a space */
#define WRITE		(1u << 2)	/* a batch that changes the space */
#define RESERVED_MAX	4

/**
 * struct call - a call and what it is to obey
 * @name: for messages
 * @cmd: its command
 * @min_size: the structure's first version, bytes
 * @size: the structure as this test was built, bytes
 * @flags: flags that it knows
 * @needs: ADMIN, SPACE, WRITE
 * @reserved: offsets of 32-bit members that must be 0; the list ends with 0
 */
struct call {
	char name[32];
	unsigned int cmd;
	uint32_t min_size;
	uint32_t size;
	uint32_t flags;
	uint32_t needs;
	uint32_t reserved[RESERVED_MAX];
};

#define END(type, member)						\
	(offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define ROW(name, cmd, type, last, flags, needs, ...)			\
	{ name, cmd, END(type, last), sizeof(struct type), flags, needs, { __VA_ARGS__ } }
#define CALL(cmd, ...)	ROW(#cmd, cmd, __VA_ARGS__)
#define BATCH(cmd, flags, needs)					\
	ROW(#cmd, cmd, hawk_batch, tier, flags, SPACE | (needs))
#define AT(type, member)	offsetof(struct type, member)

/* command, structure, last member of its first version, flags, needs, reserved members */
static const struct call calls[] = {
	CALL(HAWK_IOC_QUERY, hawk_query, frame_align, 0, 0),
	CALL(HAWK_IOC_TIER_ADD, hawk_tier_add, tier, HAWK_TIER_PERSIST, ADMIN,
	     AT(hawk_tier_add, reserved)),
	CALL(HAWK_IOC_TIER_REMOVE, hawk_tier_remove, reserved,
	     HAWK_TIER_FORCE | HAWK_TIER_REOPEN, ADMIN, AT(hawk_tier_remove, reserved)),
	CALL(HAWK_IOC_TIER_INFO, hawk_tier_info, io_errors, 0, 0, AT(hawk_tier_info, reserved)),
	CALL(HAWK_IOC_SPACE_CREATE, hawk_space_create, name,
	     HAWK_SPACE_NAMED | HAWK_SPACE_SHIFT, 0, AT(hawk_space_create, reserved)),
	CALL(HAWK_IOC_SPACE_ATTACH, hawk_space_attach, name, HAWK_ATTACH_FD, 0,
	     AT(hawk_space_attach, reserved)),
	CALL(HAWK_IOC_SPACE_DESTROY, hawk_space_destroy, name, 0, 0),
	CALL(HAWK_IOC_SPACE_INFO, hawk_space_info, name, 0, SPACE),
	CALL(HAWK_IOC_RING_SETUP, hawk_ring_setup, ring_bytes, 0, 0),
	CALL(HAWK_IOC_STATS, hawk_stats, chunks, 0, SPACE),
	CALL(HAWK_IOC_LEASE_RELEASE, hawk_lease_release, lease, 0, SPACE),
	CALL(HAWK_IOC_SPACE_SET, hawk_space_set, name, 0, 0),
	CALL(HAWK_IOC_PIN_QUERY, hawk_pin_query, limit_bytes, 0, SPACE,
	     AT(hawk_pin_query, reserved)),
	CALL(HAWK_IOC_CANCEL, hawk_cancel, reserved, HAWK_CANCEL_ALL, SPACE,
	     AT(hawk_cancel, reserved)),
	CALL(HAWK_IOC_EXPORT, hawk_export, reserved,
	     HAWK_EXPORT_REVOCABLE | HAWK_EXPORT_READ_ONLY, SPACE, AT(hawk_export, reserved)),
	CALL(HAWK_IOC_EXPORT_REVOKE, hawk_export_revoke, deadline_ns, 0, SPACE),
	CALL(HAWK_IOC_FRAME_INFO, hawk_frame_info, reserved, 0, SPACE,
	     AT(hawk_frame_info, reserved)),
	CALL(HAWK_IOC_DRAFT_OPEN, hawk_draft_open, bytes, 0, SPACE),
	CALL(HAWK_IOC_DRAFT_CLOSE, hawk_draft_close, head, 0, SPACE,
	     AT(hawk_draft_close, reserved)),
	CALL(HAWK_IOC_GATHER, hawk_gather, tier,
	     HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME, SPACE,
	     AT(hawk_gather, reserved)),
	CALL(HAWK_IOC_SEQ, hawk_seq_batch, ops, 0, SPACE),
	CALL(HAWK_IOC_SEQ_MAP, hawk_seq_map, gen, 0, SPACE),
	CALL(HAWK_IOC_ELASTIC, hawk_elastic, cycles, HAWK_ELASTIC_SET, SPACE,
	     AT(hawk_elastic, reserved)),
	CALL(HAWK_IOC_TIER_ADMIT, hawk_tier_admit, reserved, HAWK_ADMIT_SET, 0,
	     AT(hawk_tier_admit, reserved), AT(hawk_tier_admit, reserved) + 4),
	CALL(HAWK_IOC_ESTIMATE, hawk_estimate, split_ns, HAWK_ESTIMATE_GATHER, SPACE,
	     AT(hawk_estimate, reserved), AT(hawk_estimate, reserved) + 4),
	CALL(HAWK_IOC_PHASE, hawk_phase, reserved, HAWK_PHASE_PREFILL, SPACE,
	     AT(hawk_phase, reserved)),
	BATCH(HAWK_IOC_ALLOC, HAWK_BATCH_NOWAIT, WRITE),
	BATCH(HAWK_IOC_PUT, HAWK_BATCH_KEEP_PIN, WRITE),
	BATCH(HAWK_IOC_LOOKUP, HAWK_BATCH_LEASE, 0),
	BATCH(HAWK_IOC_PIN, 0, 0),
	BATCH(HAWK_IOC_UNPIN, 0, 0),
	BATCH(HAWK_IOC_GET, HAWK_BATCH_ASYNC | HAWK_BATCH_NOWAIT | HAWK_BATCH_PREFIX |
	      HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME, 0),
	BATCH(HAWK_IOC_RELOAD, HAWK_BATCH_ASYNC | HAWK_BATCH_URGENT | HAWK_BATCH_IN_TIME, 0),
	BATCH(HAWK_IOC_FORK, 0, WRITE),
	BATCH(HAWK_IOC_UNSHARE, 0, WRITE),
	BATCH(HAWK_IOC_FREE, 0, WRITE),
	BATCH(HAWK_IOC_TRANSLATE, 0, 0),
};

#define N_CALLS		(sizeof(calls) / sizeof(calls[0]))
#define for_each_call(c) for ((c) = calls; (c) < calls + N_CALLS; (c)++)

/* Commands of the header, as the build found them there */
static const struct {
	char name[32];
	unsigned int cmd;
} header[] = {
#define HEADER_CALL(name)	{ #name, name },
#include "hawk_calls.h"
};

/* Room for any structure and a tail, as 32-bit words */
#define WORDS		2048u

static const struct call *find(unsigned int cmd)
{
	const struct call *c;

	for_each_call(c)
		if (c->cmd == cmd)
			return c;
	return NULL;
}

/* Calls with a structure that is all zero but for its size and one word. */
static int call_word(int fd, const struct call *c, uint32_t size, uint32_t offset, uint32_t word)
{
	uint32_t buf[WORDS] = { 0 };

	buf[offset / 4] = word;
	buf[0] = size;
	return dev_call(fd, c->cmd, buf);
}

#define CHECK(want, got)	EXPECT_EQ(want, got) TH_LOG("%s", c->name)

TEST(table_has_every_call_of_the_header)
{
	unsigned int i;

	EXPECT_EQ(N_CALLS, sizeof(header) / sizeof(header[0]));
	for (i = 0; i < sizeof(header) / sizeof(header[0]); i++)
		EXPECT_NE(NULL, find(header[i].cmd)) TH_LOG("%s is not tested", header[i].name);
}

TEST_F(hawk, no_other_command_is_known)
{
	uint32_t buf[WORDS] = { 4096 };
	unsigned int nr;

	for (nr = 0; nr < 256; nr++) {
		if (find(_IO(HAWK_IOC_MAGIC, nr)))
			continue;
		EXPECT_EQ(-ENOTTY, dev_call(self->fd, _IO(HAWK_IOC_MAGIC, nr), buf))
			TH_LOG("the kernel knows %#x, which is not tested", nr);
	}
}

TEST_F(hawk, direction_and_size_are_no_part_of_a_command)
{
	const struct call *c;
	uint32_t buf[WORDS];

	for_each_call(c) {
		unsigned int nr = _IOC_NR(c->cmd);

		memset(buf, 0, sizeof(buf));
		buf[0] = c->size;
		buf[1] = 1u << 31;	/* were the command known: EOPNOTSUPP */
		CHECK(-ENOTTY, dev_call(self->fd, _IOC(_IOC_READ, HAWK_IOC_MAGIC, nr, 0), buf));
		CHECK(-ENOTTY, dev_call(self->fd, _IOC(_IOC_WRITE, HAWK_IOC_MAGIC, nr, 0), buf));
		CHECK(-ENOTTY, dev_call(self->fd, _IOC(0, HAWK_IOC_MAGIC, nr, c->size), buf));
		CHECK(-ENOTTY, dev_call(self->fd, _IOC(_IOC_READ | _IOC_WRITE, HAWK_IOC_MAGIC, nr,
						       c->size), buf));
		CHECK(-ENOTTY, dev_call(self->fd, _IO(HAWK_IOC_MAGIC + 1, nr), buf));
		CHECK(-ENOTTY, dev_call(self->fd, _IO(HAWK_IOC_MAGIC - 1, nr), buf));
	}
}

TEST_F(hawk, sizes)
{
	const struct call *c;

	for_each_call(c) {
		CHECK(-EINVAL, call_word(self->fd, c, 0, 0, 0));
		CHECK(-EINVAL, call_word(self->fd, c, 4, 0, 0));
		CHECK(-EINVAL, call_word(self->fd, c, c->min_size - 1, 0, 0));
		CHECK(-E2BIG, call_word(self->fd, c, 4097, 0, 0));
		CHECK(-E2BIG, call_word(self->fd, c, ~0u, 0, 0));
		/* What a later version of the structure brings, and what it does not */
		CHECK(-E2BIG, call_word(self->fd, c, c->size + 8, c->size, 1));
		CHECK(-E2BIG, call_word(self->fd, c, 4096, 4092, 1u << 31));
		CHECK(-EOPNOTSUPP, call_word(self->fd, c, c->size + 8, 4, 1u << 31));
		CHECK(-EOPNOTSUPP, call_word(self->fd, c, 4096, 4, 1u << 31));
		CHECK(-EOPNOTSUPP, call_word(self->fd, c, c->min_size, 4, 1u << 31));
	}
}

TEST_F(hawk, unknown_flags)
{
	const struct call *c;
	unsigned int bit;

	for_each_call(c)
		for (bit = 0; bit < 32; bit++)
			if (!(c->flags & 1u << bit))
				EXPECT_EQ(-EOPNOTSUPP, call_word(self->fd, c, c->size, 4, 1u << bit))
					TH_LOG("%s: flag %u", c->name, bit);
}

TEST_F(hawk, reserved_members)
{
	const struct call *c;
	unsigned int i;

	for_each_call(c) {
		for (i = 0; i < RESERVED_MAX && c->reserved[i]; i++) {
			CHECK(-EOPNOTSUPP, call_word(self->fd, c, c->size, c->reserved[i], 1));
			CHECK(-EOPNOTSUPP, call_word(self->fd, c, c->size, c->reserved[i],
						     1u << 31));
		}
	}
}

TEST_F(hawk, pointers)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct call *c;

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, mprotect(page + 4096, 4096, PROT_NONE));
	for_each_call(c) {
		uint32_t *tail = (uint32_t *)(page + 4096 - 8);

		CHECK(-EFAULT, dev_call(self->fd, c->cmd, NULL));
		CHECK(-EFAULT, dev_call(self->fd, c->cmd, (void *)-4096l));
		CHECK(-EFAULT, dev_call(self->fd, c->cmd, page + 4096));
		tail[0] = c->size;	/* the rest is not there */
		tail[1] = 0;
		CHECK(-EFAULT, dev_call(self->fd, c->cmd, tail));
	}
	munmap(page, 8192);
}

TEST_F(hawk, no_space)
{
	const struct call *c;
	int fd = dev_open(O_RDWR);

	ASSERT_GE(fd, 0);
	for_each_call(c)
		if (c->needs & SPACE)
			CHECK(-ENXIO, call_word(fd, c, c->size, 0, 0));
	close(fd);
}

TEST_F(hawk, admin)
{
	const struct call *c;

	ASSERT_EQ(0, seteuid(NOBODY));
	for_each_call(c)
		if (c->needs & ADMIN)
			CHECK(-EPERM, call_word(self->fd, c, c->size, 0, 0));
	ASSERT_EQ(0, seteuid(0));
}

TEST_F(hawk, batch_rules)
{
	const struct call *c;

	for_each_call(c) {
		if (c->cmd < HAWK_IOC_ALLOC || c->cmd > HAWK_IOC_TRANSLATE)
			continue;
		CHECK(-EINVAL, call_word(self->fd, c, c->size, AT(hawk_batch, count), 0));
		CHECK(-E2BIG, call_word(self->fd, c, c->size, AT(hawk_batch, count),
					HAWK_BATCH_MAX + 1));
		CHECK(-EFAULT, call_word(self->fd, c, c->size, AT(hawk_batch, count), 1));
	}
}

TEST_F(hawk, read_only_file)
{
	struct hawk_space_create sc = space_args(16);
	struct hawk_item it = { .lid = LID(0) };
	const struct call *c;
	int owner = dev_open(O_RDWR), fd = dev_open(O_RDONLY);

	sc.flags = HAWK_SPACE_NAMED;
	sc.mode = 0600;
	strcpy((char *)sc.name, "abi");
	ASSERT_EQ(0, dev_call(owner, HAWK_IOC_SPACE_CREATE, &sc));
	ASSERT_EQ(0, space_attach(fd, "abi"));
	for_each_call(c)
		if (c->needs & WRITE)
			CHECK(-EACCES, batch(fd, c->cmd, 0, &it, 1, NULL));
	EXPECT_EQ(0, space_destroy(owner, "abi"));
	close(fd);
	close(owner);
}

TEST_HARNESS_MAIN
