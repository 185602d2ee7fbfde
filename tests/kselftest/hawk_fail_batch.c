// SPDX-License-Identifier: GPL-2.0
/*
 * hawk_fail_batch.c - failures of memory in batches, synchronous and not
 */
#define _GNU_SOURCE
#include <liburing.h>
#include <poll.h>

#include "hawk_sweep.h"

/* ---- batches ---- */

/* 0 in place of an error that says that there is nothing (left) to take back. */
static int or_gone(int ret)
{
	return ret == -ENOENT || ret == -ESTALE ? 0 : ret;
}

static int unpin(env *e, uint32_t n)
{
	return lid_call(e->fd, HAWK_IOC_UNPIN, LID(n));
}

/* Enough of them that the items are no small allocation. */
#define ALLOCS	80u

static int alloc_many(env *e, unsigned long cmd)
{
	struct hawk_item it[ALLOCS];
	struct hawk_batch b;
	uint32_t i;
	int ret;

	for (i = 0; i < ALLOCS; i++)
		it[i] = (struct hawk_item){ .lid = LID(NEW + i) };
	ret = batch(e->fd, cmd, 0, it, ALLOCS, &b);
	for (i = 0; !ret && i < ALLOCS; i++)
		ret = cmd == HAWK_IOC_UNPIN ? or_gone(it[i].status) : it[i].status;
	return ret;
}

static int alloc(env *e)
{
	int ret = alloc_many(e, HAWK_IOC_ALLOC);

	/* Some items may be done and one not: give all back for the next attempt. */
	if (ret && ret != -EFAULT)
		alloc_many(e, HAWK_IOC_UNPIN);
	return ret;
}

static int alloc_undo(env *e)
{
	return alloc_many(e, HAWK_IOC_UNPIN);
}

SWEEP(alloc, .call = alloc, .undo = alloc_undo)

static int alloc_one(env *e)
{
	return lid_call(e->fd, HAWK_IOC_ALLOC, LID(NEW));
}

static int put_one(env *e)
{
	struct hawk_item it = { .lid = LID(NEW) };

	set_key(&it, NEW);
	return one(e->fd, HAWK_IOC_PUT, 0, &it);
}

static int new_undo(env *e)
{
	int ret = or_gone(unpin(e, NEW));

	return ret ?: or_gone(lid_call(e->fd, HAWK_IOC_FREE, LID(NEW)));
}

SWEEP(put, .prepare = alloc_one, .call = put_one, .undo = new_undo)

static int lookup(env *e)
{
	struct hawk_item it = key_item(1);

	return one(e->fd, HAWK_IOC_LOOKUP, 0, &it);
}

SWEEP(lookup, .call = lookup)

/* Reading the clock may be a system call of its own. */
static int lease_prepare(env *e)
{
	e->lease_ends = now_ns() + 1000000000;
	return 0;
}

static int lookup_lease(env *e)
{
	struct hawk_item it = key_item(1);
	struct hawk_batch b = {
		.size = sizeof(b), .flags = HAWK_BATCH_LEASE, .count = 1,
		.items = (uintptr_t)&it, .tier = HAWK_TIER_ANY,
		.deadline_ns = e->lease_ends,
	};
	int ret = dev_call(e->fd, HAWK_IOC_LOOKUP, &b);

	e->lease = ret ? 0 : b.lease;
	return ret ?: it.status;
}

static int lease_release(env *e)
{
	struct hawk_lease_release rel = { .size = sizeof(rel), .lease = e->lease };

	return dev_call(e->fd, HAWK_IOC_LEASE_RELEASE, &rel);
}

/* It may also have come to its end meanwhile. */
static int lease_undo(env *e)
{
	int ret = e->lease ? or_gone(lease_release(e)) : 0;

	e->lease = 0;
	return ret;
}

SWEEP(lookup_lease, .prepare = lease_prepare, .call = lookup_lease, .undo = lease_undo)

/* Far enough away that it does not end by itself. */
static int leased_prepare(env *e)
{
	e->lease_ends = 0;
	return lookup_lease(e);
}

SWEEP(lease_release, .prepare = leased_prepare, .call = lease_release, .undo = lease_undo)

static int pin(env *e)
{
	return lid_call(e->fd, HAWK_IOC_PIN, LID(1));
}

static int unpin_one(env *e)
{
	return unpin(e, 1);
}

static int pin_undo(env *e)
{
	return or_gone(unpin(e, 1));
}

SWEEP(pin, .call = pin, .undo = pin_undo)
SWEEP(unpin, .prepare = pin, .call = unpin_one, .undo = pin_undo)

static int get(env *e)
{
	struct hawk_item it = key_item(1);

	return one(e->fd, HAWK_IOC_GET, 0, &it);
}

SWEEP(get, .call = get, .undo = pin_undo)

static int fork_one(env *e)
{
	struct hawk_item it = { .lid = LID(1), .arg = LID(NEW) };

	return one(e->fd, HAWK_IOC_FORK, 0, &it);
}

SWEEP(fork, .call = fork_one, .undo = new_undo)

static int shared_prepare(env *e)
{
	return fork_one(e) ?: lid_call(e->fd, HAWK_IOC_PIN, LID(NEW));
}

static int unshare_new(env *e)
{
	return lid_call(e->fd, HAWK_IOC_UNSHARE, LID(NEW));
}

SWEEP(unshare, .prepare = shared_prepare, .call = unshare_new, .undo = new_undo)

static int free_one(env *e)
{
	return lid_call(e->fd, HAWK_IOC_FREE, LID(NEW));
}

SWEEP(free, .prepare = fork_one, .call = free_one, .undo = new_undo)

static int pin_query(env *e)
{
	uint64_t lids[2] = { LID(1), LID(2) };
	struct hawk_pin_query q = {
		.size = sizeof(q), .count = 2, .lids = (uintptr_t)lids,
	};

	return dev_call(e->fd, HAWK_IOC_PIN_QUERY, &q);
}

SWEEP(pin_query, .call = pin_query)

static int translate(env *e)
{
	return lid_call(e->fd, HAWK_IOC_TRANSLATE, LID(1));
}

SWEEP(translate, .call = translate)

/* ---- exports ---- */

static int export_two(env *e)
{
	struct hawk_item it[2] = { { .lid = LID(1) }, { .lid = LID(2) } };
	struct hawk_export ex = {
		.size = sizeof(ex), .flags = HAWK_EXPORT_REVOCABLE, .count = 2,
		.items = (uintptr_t)it,
	};
	int ret = dev_call(e->fd, HAWK_IOC_EXPORT, &ex);

	e->other = ret ? -1 : ex.fd;
	e->export_id = ret ? 0 : ex.export_id;
	return ret;
}

/* Also descriptors that were made, but whose number could not be told. */
static int export_undo(env *e)
{
	int last = e->efd > e->fd ? e->efd : e->fd;

	e->other = -1;
	return close_range(last + 1, ~0u, 0) ? -errno : 0;
}

SWEEP(export, .call = export_two, .undo = export_undo)

static int export_revoke(env *e)
{
	struct hawk_export_revoke re = { .size = sizeof(re), .export_id = e->export_id };

	return dev_call(e->fd, HAWK_IOC_EXPORT_REVOKE, &re);
}

SWEEP(export_revoke, .prepare = export_two, .call = export_revoke, .undo = export_undo)

static int export_map(env *e)
{
	void *p = mmap(MAP_PLACE, 2 * BLOCK, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
		       e->other, 0);

	if (p == MAP_FAILED)
		return -errno;
	e->map = p;
	return 0;
}

static int export_touch(env *e)
{
	(void)*e->map;
	return 0;
}

static int export_map_undo(env *e)
{
	if (e->map)
		munmap((void *)e->map, 2 * BLOCK);
	e->map = NULL;
	return export_undo(e);
}

static int export_mapped(env *e)
{
	return export_two(e) ?: export_map(e);
}

SWEEP(export_map, .prepare = export_two, .call = export_map, .undo = export_map_undo)
SWEEP(export_fault, .prepare = export_mapped, .call = export_touch, .undo = export_map_undo)

static int frame_prepare(env *e)
{
	struct hawk_item it = { .lid = LID(1) };
	int ret = one(e->fd, HAWK_IOC_TRANSLATE, 0, &it);

	e->frame = HAWK_VT_FRAME(it.vt);
	return ret;
}

static int frame_info(env *e)
{
	struct hawk_frame_info fi = { .size = sizeof(fi), .tier = e->host, .frame = e->frame };

	return dev_call(e->fd, HAWK_IOC_FRAME_INFO, &fi);
}

SWEEP(frame_info, .prepare = frame_prepare, .call = frame_info)

/* ---- gathers ---- */

#define GATHER_ROWS	4u

/*
 * The buffers of all: transfers that end late find them.  Two asynchronous gathers may be
 * under way, and a drive that reads into one buffer twice is what DMA-API debug warns of.
 */
static uint8_t gather_buf[2][GATHER_ROWS * BLOCK] __attribute__((aligned(4096)));

/* Two lists that have a row in common: the call's error, or the first of a row. */
static int gather_call(env *e, uint32_t first, uint32_t flags, struct hawk_gather *g)
{
	static const uint32_t counts[2] = { 2, 2 };
	static unsigned int turn;
	uint64_t lids[GATHER_ROWS] = { LID(first), LID(first + 1), LID(first), LID(first + 2) };
	uint32_t remap[GATHER_ROWS];
	int32_t status[GATHER_ROWS];
	uint32_t i;
	int ret;

	*g = (struct hawk_gather){
		.size = sizeof(*g), .flags = flags, .lists = 2, .rows = GATHER_ROWS,
		.counts = (uintptr_t)counts, .lids = (uintptr_t)lids,
		.remap = (uintptr_t)remap, .status = (uintptr_t)status,
		.buf = (uintptr_t)gather_buf[turn++ % 2], .buf_bytes = sizeof(gather_buf[0]),
		.user_data = flags ? ++e->batch : 0,
	};
	ret = dev_call(e->fd, HAWK_IOC_GATHER, g);
	for (i = 0; !ret && !flags && i < GATHER_ROWS; i++)
		ret = status[i];
	return ret;
}

static int gather(env *e)
{
	struct hawk_gather g;

	return gather_call(e, 1, 0, &g) ?: g.unique == 3 ? 0 : -EINVAL;
}

SWEEP(gather, .call = gather)

/* ---- no memory to write a pin or a lease down ---- */

/* Of which the file's arrays are made */
#define NODES		"radix_tree_node"
#define NEEDS_NODES()								\
	do {									\
		if (!fault_has_cache(NODES))					\
			SKIP(return, "not booted with slub_debug=A," NODES);	\
	} while (0)

TEST_F(nth, nothing_to_write_down_in)
{
	struct look before, after;

	NEEDS_NODES();
	ASSERT_EQ(0, make_space(self, FEW));
	before = look_at(self, false);
	ASSERT_TRUE(fault_cache(true));
	EXPECT_EQ(-ENOMEM, alloc_one(self));
	EXPECT_EQ(-ENOMEM, pin(self));
	EXPECT_EQ(-ENOMEM, get(self));
	lease_prepare(self);
	EXPECT_EQ(-ENOMEM, lookup_lease(self));
	ASSERT_TRUE(fault_cache(false));
	after = look_at(self, false);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(after)));
	EXPECT_EQ(-ENOENT, lid_call(self->fd, HAWK_IOC_UNPIN, LID(NEW)));
	EXPECT_EQ(-ESTALE, unpin(self, 1));
	/* Neither pinned nor leased */
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(1)));
}

/* The copy is there, but nobody can be told that it is pinned: it goes. */
TEST_F(nth, unshare_without_memory)
{
	NEEDS_NODES();
	ASSERT_EQ(0, make_space(self, FEW));
	ASSERT_EQ(0, shared_prepare(self));
	ASSERT_TRUE(fault_cache(true));
	EXPECT_EQ(-ENOMEM, unshare_new(self));
	ASSERT_TRUE(fault_cache(false));
	EXPECT_EQ(-ENOENT, unpin(self, NEW));
	EXPECT_EQ(0, lid_call(self->fd, HAWK_IOC_FREE, LID(1)));
	EXPECT_EQ(0, stat_pinned(self->fd));
	EXPECT_EQ(FEW - 1, stats_of(self->fd).blocks);
}

/* ---- blocks on flash ---- */

/* The next block that is on flash only; those that failures have cost are made anew. */
static int flash_prepare(env *e)
{
	uint32_t tries;
	int ret;

	for (tries = 0; tries < 2 * e->blocks; tries++) {
		e->at = (e->at + 1) % e->blocks;
		ret = lid_call(e->fd, HAWK_IOC_PIN, LID(e->at));
		if (ret == -EAGAIN)
			return 0;
		if (ret == -ENOENT)
			ret = make_blocks(e->fd, e->at, e->at + 1);
		else if (!ret)
			ret = unpin(e, e->at);
		if (ret)
			return ret;
	}
	return -ENOENT;
}

static int flash_call(env *e, unsigned long cmd)
{
	struct hawk_item it = key_item(e->at);

	return one(e->fd, cmd, 0, &it);
}

static int get_flash(env *e)
{
	return flash_call(e, HAWK_IOC_GET);
}

static int flash_undo(env *e)
{
	return or_gone(unpin(e, e->at));
}

SWEEP(get_flash, .prepare = flash_prepare, .call = get_flash, .undo = flash_undo,
      .blocks = MANY, .moves = true)

static int reload_flash(env *e)
{
	return flash_call(e, HAWK_IOC_RELOAD);
}

SWEEP(reload_flash, .prepare = flash_prepare, .call = reload_flash, .blocks = MANY,
      .moves = true)

static int alloc_evict(env *e)
{
	return alloc_one(e);
}

/* Published, so that the next one has to evict again. */
static int alloc_evict_undo(env *e)
{
	return new_undo(e) ?: make_blocks(e->fd, e->at, e->at + 1);
}

/* The space is full of blocks that are on flash no more: the next one must write. */
static int dirty_prepare(env *e)
{
	e->at = (e->at + 1) % e->blocks;
	return or_gone(lid_call(e->fd, HAWK_IOC_FREE, LID(e->at)));
}

SWEEP(alloc_evict, .prepare = dirty_prepare, .call = alloc_evict, .undo = alloc_evict_undo,
      .blocks = MANY, .moves = true)

/* ---- asynchronous batches ---- */

static int submit(env *e, unsigned long cmd, uint32_t n)
{
	struct hawk_item it = key_item(n);
	struct hawk_batch b = {
		.size = sizeof(b), .flags = HAWK_BATCH_ASYNC, .count = 1,
		.items = (uintptr_t)&it, .user_data = ++e->batch, .tier = HAWK_TIER_ANY,
	};

	return dev_call(e->fd, cmd, &b);
}

/* Takes the entries that are there; what they pinned is given back. */
static int reap(env *e, uint32_t block, bool *complete)
{
	uint32_t head = e->ring->head;
	struct hawk_cqe cqe;
	int ret = 0;

	while (!ret && __atomic_load_n(&e->ring->tail, __ATOMIC_ACQUIRE) != head) {
		cqe = e->ring->cqe[head & e->ring->mask];
		__atomic_store_n(&e->ring->head, ++head, __ATOMIC_RELEASE);
		*complete |= cqe.flags == HAWK_CQE_BATCH && cqe.user_data == e->batch;
		if (cqe.flags == HAWK_CQE_ITEM && !cqe.status)
			ret = or_gone(unpin(e, block));
	}
	return ret;
}

/*
 * Until the latest batch that was accepted is complete, and no other is under way: those
 * whose call failed when all but its result was done may end before it or after it.
 */
static int drain(env *e, uint32_t block)
{
	struct hawk_cancel ca = { .size = sizeof(ca), .flags = HAWK_CANCEL_ALL };
	struct pollfd p = { .fd = e->fd, .events = POLLIN };
	bool complete = false, idle = false;
	int ret = 0;

	while (!complete && !ret) {
		ret = reap(e, block, &complete);
		if (!ret && !complete)
			ret = poll(&p, 1, 60000) == 1 ? 0 : -ETIME;
	}
	while (!idle && !ret) {
		idle = dev_call(e->fd, HAWK_IOC_CANCEL, &ca) == -ENOENT;
		ret = reap(e, block, &complete);
	}
	return ret;
}

static int get_async(env *e)
{
	return submit(e, HAWK_IOC_GET, 1);
}

/* After a failure too: one more batch, and all before it. */
static int async_undo(env *e)
{
	return submit(e, HAWK_IOC_GET, 1) ?: drain(e, 1);
}

SWEEP(get_async, .call = get_async, .undo = async_undo, .moves = true)

static int reload_async(env *e)
{
	return submit(e, HAWK_IOC_RELOAD, e->at);
}

static int reload_async_undo(env *e)
{
	return submit(e, HAWK_IOC_GET, e->at) ?: drain(e, e->at);
}

SWEEP(reload_async, .prepare = flash_prepare, .call = reload_async, .undo = reload_async_undo,
      .blocks = MANY, .moves = true)

/* Blocks that are on flash only, or are evicted as soon as others are made. */
static int gather_flash(env *e)
{
	struct hawk_gather g;

	return gather_call(e, 0, 0, &g);
}

SWEEP(gather_flash, .call = gather_flash, .blocks = MANY)

static int gather_async(env *e)
{
	struct hawk_gather g;

	return gather_call(e, 0, HAWK_BATCH_ASYNC, &g);
}

/* After a failure too: one more, and all before it.  Nothing is pinned by them. */
static int gather_async_undo(env *e)
{
	return gather_async(e) ?: drain(e, NEW);
}

SWEEP(gather_async, .call = gather_async, .undo = gather_async_undo, .blocks = MANY)

/* Nothing is under way: what is swept is that nothing is found. */
static int cancel(env *e)
{
	struct hawk_cancel ca = { .size = sizeof(ca), .flags = HAWK_CANCEL_ALL };

	return or_gone(dev_call(e->fd, HAWK_IOC_CANCEL, &ca));
}

SWEEP(cancel, .call = cancel)

static int uring_begin(env *e)
{
	static struct io_uring ring;

	e->uring = &ring;
	return io_uring_queue_init(4, &ring, 0);
}

static int uring_end(env *e)
{
	io_uring_queue_exit(e->uring);
	return pin_undo(e);
}

/* A failed submission may leave its entry in the queue: it takes another queue. */
static int get_uring(env *e)
{
	struct hawk_item it = key_item(1);
	struct hawk_batch b = {
		.size = sizeof(b), .count = 1, .items = (uintptr_t)&it, .tier = HAWK_TIER_ANY,
	};
	struct hawk_uring_cmd uc = { .batch = (uintptr_t)&b };
	struct io_uring_sqe *sqe = io_uring_get_sqe(e->uring);
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		abort();	/* the queue is empty */
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = e->fd;
	sqe->cmd_op = HAWK_IOC_GET;
	memcpy(sqe->cmd, &uc, sizeof(uc));
	ret = io_uring_submit_and_wait(e->uring, 1);
	if (ret != 1 || io_uring_peek_cqe(e->uring, &cqe)) {
		io_uring_queue_exit(e->uring);
		return uring_begin(e) ?: ret < 0 ? ret : -EAGAIN;
	}
	ret = cqe->res ?: it.status;
	io_uring_cqe_seen(e->uring, cqe);
	return ret;
}

SWEEP(get_uring, .prepare = uring_begin, .call = get_uring, .undo = uring_end, .again = true)

static int poll_now(env *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -errno : 0;
}

SWEEP(poll, .call = poll_now)

TEST_HARNESS_MAIN
