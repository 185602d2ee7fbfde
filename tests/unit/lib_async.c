// SPDX-License-Identifier: MIT
/*
 * lib_async.c - batches that complete through the ring
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libfixture.h"

#define MIB	(1ull << 20)
#define N	64u

static void items_by_key(struct hawk_item *it, uint32_t from, uint32_t n)
{
	uint32_t i;

	memset(it, 0, n * sizeof(*it));
	for (i = 0; i < n; i++) {
		it[i].flags = HAWK_ITEM_BY_KEY;
		fx_key(&it[i], from + i, 1);
	}
}

/* Waits for the descriptor and takes what is there. */
static unsigned int reap(struct fx *f, struct hawk_cqe *cqe, unsigned int n)
{
	struct pollfd p = { .fd = hawk_ring_fd(f->kv), .events = POLLIN };
	int got;

	assert_int_equal(poll(&p, 1, 30000), 1);
	got = hawk_reap(f->kv, cqe, n);
	assert_true(got >= 0);
	return (unsigned int)got;
}

/* All completions of one batch of @n items, stored by index; its items with status 0. */
static unsigned int reap_batch(struct fx *f, struct hawk_cqe *item, unsigned int n,
			       uint64_t user_data)
{
	struct hawk_cqe cqe[16];
	unsigned int got, i, items = 0;

	for (;;) {
		got = reap(f, cqe, 16);
		for (i = 0; i < got; i++) {
			assert_int_equal(cqe[i].user_data, user_data);
			if (cqe[i].flags & HAWK_CQE_BATCH) {
				assert_int_equal(items, n);
				assert_int_equal(i, got - 1);
				return cqe[i].index;
			}
			assert_int_equal(cqe[i].flags, HAWK_CQE_ITEM);
			assert_true(cqe[i].index < n);
			item[cqe[i].index] = cqe[i];
			items++;
		}
	}
}

static void unpin_all(struct fx *f, const struct hawk_cqe *cqe, unsigned int n)
{
	struct hawk_item it;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (cqe[i].status)
			continue;
		it = (struct hawk_item) { .lid = cqe[i].lid, .vt = cqe[i].vt };
		assert_int_equal(hawk_unpin(f->kv, &it, 1), 1);
	}
}

static void get_async(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC, .user_data = 0x1234567890ull };
	struct hawk_item it[N + 1];
	struct hawk_cqe cqe[N + 1];
	struct pollfd p = { .events = POLLIN };
	eventfd_t signals, sum;
	struct fx f;
	uint32_t i;
	int efd;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 3 * FX_CHUNK_FRAMES, 1);
	efd = eventfd(0, EFD_CLOEXEC);
	assert_ok(hawk_ring_open(f.kv, 2 * N, efd));
	p.fd = hawk_ring_fd(f.kv);
	items_by_key(it, 0, N);
	items_by_key(it + N, 4000, 1);		/* not there */
	assert_int_equal(hawk_get(f.kv, it, N + 1, &o, NULL), 0);
	memset(it, 0, sizeof(it));		/* the items are the caller's again */
	assert_int_equal(reap_batch(&f, cqe, N + 1, o.user_data), N);
	for (i = 0; i < N; i++) {
		assert_int_equal(cqe[i].status, 0);
		assert_int_equal(cqe[i].lid, fx_lid(i));
		assert_true(fx_is(hawk_addr(f.kv, cqe[i].vt), i, 1));
	}
	assert_int_equal(cqe[N].status, -ENOENT);
	assert_int_equal(cqe[N].vt, 0);
	for (sum = 0; sum < N + 2; sum += signals)	/* one per completion */
		assert_int_equal(eventfd_read(efd, &signals), 0);
	assert_int_equal(sum, N + 2);
	assert_int_equal(hawk_reap(f.kv, cqe, 1), 0);
	unpin_all(&f, cqe, N);
	/* nothing more to take, nothing to poll; the last signal may come late */
	while (poll(&p, 1, 0))
		assert_int_equal(hawk_reap(f.kv, cqe, 1), 0);
	close(efd);
	fx_close(&f);
}

/* Completions of PREFIX come in order, and nothing behind the gap is pinned. */
static void prefix_async(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC | HAWK_BATCH_PREFIX, .user_data = 7 };
	struct hawk_item it[10];
	struct hawk_cqe cqe[10];
	struct hawk_stats st;
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 2 * FX_CHUNK_FRAMES, 1);
	assert_ok(hawk_ring_open(f.kv, 16, -1));
	items_by_key(it, 0, 10);
	fx_key(&it[6], 0, 99);
	assert_int_equal(hawk_get(f.kv, it, 10, &o, NULL), 0);
	assert_int_equal(reap_batch(&f, cqe, 10, 7), 6);
	for (i = 0; i < 10; i++)
		assert_int_equal(cqe[i].status, i < 6 ? 0 : i == 6 ? -ENOENT : -ECANCELED);
	assert_ok(hawk_kv_stats(f.kv, &st));
	assert_int_equal(st.pinned, 6);
	fx_close(&f);
}

/* A batch is refused rather than its completions lost. */
static void ring_is_full(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC, .user_data = 1 };
	struct hawk_item it[8];
	struct hawk_cqe cqe[8];
	struct fx f;
	uint32_t i;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	fx_put(f.kv, 0, 8, 1);
	assert_ok(hawk_ring_open(f.kv, 8, -1));
	items_by_key(it, 0, 8);
	assert_int_equal(hawk_reload(f.kv, it, 8, &o), -EBUSY);	/* 9 completions */
	assert_int_equal(hawk_reload(f.kv, it, 5, &o), 0);
	assert_int_equal(hawk_reload(f.kv, it, 2, &o), -EBUSY);	/* 2 entries are left */
	o.user_data = 2;
	assert_int_equal(hawk_reload(f.kv, it, 1, &o), 0);
	for (i = 0; i < 8;)
		i += reap(&f, cqe, 8);
	assert_int_equal(i, 8);
	o.user_data = 3;
	for (i = 0; i < 100; i++) {			/* round and round */
		assert_int_equal(hawk_reload(f.kv, it, 7, &o), 0);
		assert_int_equal(reap_batch(&f, cqe, 7, 3), 7);
	}
	fx_close(&f);
}

static void ring_refusals(void **state)
{
	struct hawk_cqe cqe;
	struct fx f;
	int fd;

	(void)state;
	fx_open(&f, 2 * MIB, 0);
	assert_int_equal(hawk_ring_fd(f.kv), -ENXIO);
	assert_int_equal(hawk_reap(f.kv, &cqe, 1), -ENXIO);
	assert_int_equal(hawk_ring_open(f.kv, 0, -1), -EINVAL);
	assert_int_equal(hawk_ring_open(f.kv, 3, -1), -EINVAL);
	assert_int_equal(hawk_ring_open(f.kv, 2 * HAWK_RING_MAX, -1), -EINVAL);
	assert_int_equal(hawk_ring_open(f.kv, 8, -2), -EINVAL);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(hawk_ring_open(f.kv, 8, fd), -EBADF);
	close(fd);
	assert_int_equal(hawk_ring_open(f.kv, 8, fd), -EBADF);
	assert_ok(hawk_ring_open(f.kv, 8, -1));
	assert_int_equal(hawk_ring_open(f.kv, 8, -1), -EBUSY);
	fx_close(&f);
}

/* The end of a handle waits for its batches and takes their pins back. */
static void close_while_busy(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC };
	struct hawk_item it[N];
	struct hawk_kv *kv;
	struct hawk_kv_params p;
	struct hawk_stats st;
	struct fx f;
	uint32_t i, round;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	p = fx_params(&f);
	p.name = "busy";
	p.mode = 0600;
	hawk_kv_close(f.kv);
	assert_ok(hawk_kv_create(f.h, &p, &f.kv));
	fx_put(f.kv, 0, 4 * N, 1);
	for (round = 0; round < 20; round++) {
		assert_ok(hawk_kv_attach(f.h, "busy", &kv));
		assert_ok(hawk_ring_open(kv, 1024, -1));
		for (i = 0; i < 4; i++) {
			items_by_key(it, i * N, N);
			o.user_data = i;
			assert_int_equal(hawk_get(kv, it, N, &o, NULL), 0);
		}
		hawk_kv_close(kv);
		do
			assert_ok(hawk_kv_stats(f.kv, &st));
		while (st.pinned);
	}
	for (i = 0; i < 4 * N; i++)
		assert_int_equal(fx_get(f.kv, i, 1), 0);
	assert_ok(hawk_kv_destroy(f.h, "busy"));
	fx_close(&f);
}

/* Canceled batches still complete, whole; what was not fetched can be fetched. */
static void cancel(void **state)
{
	struct hawk_opts o = { .flags = HAWK_BATCH_ASYNC };
	struct hawk_cqe cqe[N];
	struct hawk_item it[N];
	unsigned int done, i, good, round, canceled = 0;
	int told;
	struct fx f;

	(void)state;
	fx_open(&f, 2 * MIB, 8 * MIB);
	fx_put(f.kv, 0, 4 * N, 1);
	assert_ok(hawk_ring_open(f.kv, 2 * N, -1));
	assert_int_equal(hawk_cancel(f.kv, 1, 0), -ENOENT);
	assert_int_equal(hawk_cancel(f.kv, 0, HAWK_CANCEL_ALL), -ENOENT);
	assert_int_equal(hawk_cancel(f.kv, 1, HAWK_CANCEL_ALL), -EINVAL);
	assert_int_equal(hawk_cancel(f.kv, 0, 1u << 31), -EOPNOTSUPP);
	for (round = 0; round < 200 && !canceled; round++) {
		o.user_data = round + 1;
		items_by_key(it, round % 4 * N, N);
		assert_int_equal(hawk_get(f.kv, it, N, &o, NULL), 0);
		told = hawk_cancel(f.kv, round + 1, 0);
		assert_true(told == 1 || told == -ENOENT);
		done = reap_batch(&f, cqe, N, round + 1);
		for (i = 0, good = 0; i < N; i++) {
			assert_true(cqe[i].status == 0 || cqe[i].status == -ECANCELED);
			good += !cqe[i].status;
			canceled += cqe[i].status == -ECANCELED;
		}
		assert_int_equal(good, done);
		unpin_all(&f, cqe, N);
	}
	assert_true(canceled);
	for (i = 0; i < 4 * N; i++)
		assert_int_equal(fx_get(f.kv, i, 1), 0);
	fx_close(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_async),
		cmocka_unit_test(prefix_async),
		cmocka_unit_test(ring_is_full),
		cmocka_unit_test(ring_refusals),
		cmocka_unit_test(close_while_busy),
		cmocka_unit_test(cancel),
	};

	return cmocka_run_group_tests_name("lib_async", tests, NULL, NULL);
}
