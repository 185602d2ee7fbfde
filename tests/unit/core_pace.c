// SPDX-License-Identifier: MIT
/*
 * core_pace.c - paced delivery on a virtual clock, with a model of drives, DRAM and link
 *
 * Each step of the clock the drives serve their queues, first come first served, and each
 * delivery's thread goes on with its copy; what passes the link is noted by step.  A
 * delivery asks again when it was told to.
 */
#include <pthread.h>

#include "core_host.h"
#include "../../kmod/core/pace.h"

#define STEP		10000u			/* ns */
#define STEPS_MAX	200000u			/* two seconds */
#define WINDOW_STEPS	(HAWK_PACE_WINDOW_NS / STEP)
#define UNIT		65536u
#define READ		(16u * UNIT)		/* of a transfer from flash, at most */
#define MIB		(1ull << 20)
#define QUEUE		8192

/* bytes per step of 10^6 bytes per second */
#define PER_STEP(mb)	((u64)(mb) * STEP / 1000)

struct model_read {
	u32 who;
	u32 bytes;
	u32 left;
};

struct model_drive {
	u64 mb;			/* bandwidth */
	struct model_read q[QUEUE];
	u32 head, n;
	u64 credit;		/* of a step, not used up */
};

struct model_delivery {
	struct hawk_delivery d;
	u32 tier;
	u64 start;		/* step */
	u64 flash, dram;	/* bytes to be taken */
	u64 flash_open, dram_open;
	u64 ask[HAWK_PACE_KINDS];	/* time when to ask again */
	u64 copy, copy_left;	/* bytes being copied */
	u64 flash_end, dram_end;	/* ns */
	u64 got;		/* bytes that came */
	bool begun, gone;
	struct hawk_pace_load load;
};

struct model {
	struct hawk_pace p;
	struct hawk_pace_counts counts;
	struct model_drive drive[2];
	u64 dram_mb;
	struct model_delivery del[16];
	u32 n;
	u64 step;
	u64 link[STEPS_MAX];	/* bytes that passed in each step */
};

static u64 base = 5000000000ull;

static u64 now_of(const struct model *m)
{
	return base + m->step * STEP;
}

static struct model *model_new(u64 flash_mb, u64 dram_mb, u32 link_mb)
{
	struct model *m = calloc(1, sizeof(*m));
	struct hawk_pace_tune t;

	assert_non_null(m);
	hawk_pace_init(&m->p);
	hawk_pace_tuned(&m->p, &t, NULL);
	t.link_mb_per_s = link_mb;
	assert_int_equal(hawk_pace_tune(&m->p, &t), 0);
	m->drive[0].mb = flash_mb;
	m->drive[1].mb = flash_mb;
	m->dram_mb = dram_mb;
	return m;
}

static void model_free(struct model *m)
{
	hawk_pace_fini(&m->p);
	free(m);
}

static struct model_delivery *model_add(struct model *m, u64 dram, u64 flash, u32 tier, u64 start)
{
	struct model_delivery *d = &m->del[m->n++];

	memset(d, 0, sizeof(*d));
	d->tier = tier;
	d->start = start;
	d->flash = flash;
	d->flash_open = flash;
	d->dram = dram;
	d->dram_open = dram;
	d->load = (struct hawk_pace_load){ .dram = dram, .link = true };
	d->load.flash[tier] = flash;
	return d;
}

static bool done(const struct model_delivery *d)
{
	return d->begun && (d->gone || (!d->flash_open && !d->dram_open));
}

static void end(struct model *m, struct model_delivery *d)
{
	hawk_pace_end(&m->p, &d->d, now_of(m));
	d->gone = true;
}

/* Takes what it may of flash; all of it is in the drive's queue then. */
static void ask_flash(struct model *m, struct model_delivery *d)
{
	struct model_drive *dr = &m->drive[d->tier];
	u64 got, wait;

	while (d->flash && now_of(m) >= d->ask[HAWK_PACE_FLASH]) {
		got = hawk_pace_take(&m->p, &d->d, HAWK_PACE_FLASH, d->tier, UNIT,
				     d->flash < READ ? d->flash : READ, now_of(m), &wait);
		if (!got) {
			d->ask[HAWK_PACE_FLASH] = now_of(m) + wait;
			return;
		}
		assert_true(got % UNIT == 0 && got <= READ && dr->n < QUEUE);
		dr->q[(dr->head + dr->n++) % QUEUE] = (struct model_read){
			.who = (u32)(d - m->del), .bytes = (u32)got, .left = (u32)got };
		d->flash -= got;
	}
}

/* When in this step is @credit left of what @mb does in it? */
static u64 within(const struct model *m, u64 credit, u64 mb)
{
	return now_of(m) + STEP - credit * STEP / PER_STEP(mb);
}

/* One thread copies a unit after the other. */
static void copy(struct model *m, struct model_delivery *d)
{
	u64 credit = PER_STEP(m->dram_mb), n, wait;
	u64 now = now_of(m);

	while (credit) {
		if (!d->copy_left) {
			if (!d->dram || now < d->ask[HAWK_PACE_DRAM])
				return;
			n = hawk_pace_take(&m->p, &d->d, HAWK_PACE_DRAM, 0, UNIT,
					   d->dram < 4 * UNIT ? d->dram : 4 * UNIT, now, &wait);
			if (!n) {
				assert_true(wait >= HAWK_PACE_WAIT_NS);
				d->ask[HAWK_PACE_DRAM] = now + wait;
				return;
			}
			d->copy = n;
			d->copy_left = n;
			d->dram -= n;
		}
		n = d->copy_left < credit ? d->copy_left : credit;
		credit -= n;
		d->copy_left -= n;
		m->link[m->step] += n;
		if (d->copy_left)
			continue;
		now = within(m, credit, m->dram_mb);
		hawk_pace_done(&m->p, &d->d, HAWK_PACE_DRAM, 0, d->copy, now);
		d->dram_open -= d->copy;
		d->got += d->copy;
		d->dram_end = now_of(m);
	}
}

static void serve(struct model *m, u32 tier)
{
	struct model_drive *dr = &m->drive[tier];
	struct model_delivery *d;
	struct model_read *r;
	u64 credit = PER_STEP(dr->mb), n;

	while (dr->n && credit) {
		r = &dr->q[dr->head];
		d = &m->del[r->who];
		n = r->left < credit ? r->left : credit;
		credit -= n;
		r->left -= (u32)n;
		m->link[m->step] += n;
		if (r->left)
			continue;
		if (!d->gone) {
			hawk_pace_done(&m->p, &d->d, HAWK_PACE_FLASH, tier, r->bytes,
				       within(m, credit, dr->mb));
			d->flash_open -= r->bytes;
			d->got += r->bytes;
			d->flash_end = now_of(m);
		}
		dr->head = (dr->head + 1) % QUEUE;
		dr->n--;
	}
}

static void one_step(struct model *m)
{
	struct model_delivery *d;

	for (d = m->del; d < m->del + m->n; d++) {
		if (!d->begun && m->step >= d->start) {
			hawk_pace_begin(&m->p, &d->d, &d->load, &m->counts, now_of(m));
			d->begun = true;
		}
		if (!d->begun || d->gone)
			continue;
		ask_flash(m, d);
		copy(m, d);
		if (done(d))
			end(m, d);
	}
	serve(m, 0);
	serve(m, 1);
	m->step++;
	assert_true(m->step < STEPS_MAX);
}

static void run_all(struct model *m)
{
	u32 i = 0;

	while (i < m->n) {
		one_step(m);
		while (i < m->n && done(&m->del[i]) && m->del[i].gone)
			i++;
	}
}

/* The device has been in use: its bandwidths are known. */
static void warm(struct model *m)
{
	model_add(m, 64 * MIB, 64 * MIB, 0, m->step);
	run_all(m);
	model_add(m, 0, 64 * MIB, 1, m->step);
	run_all(m);
	m->step += 2 * WINDOW_STEPS;
	m->n = 0;
	memset(&m->counts, 0, sizeof(m->counts));
}

static u64 worst_window(const struct model *m)
{
	u64 sum = 0, worst = 0, i;

	for (i = 0; i < m->step; i++) {
		sum += m->link[i];
		if (i >= WINDOW_STEPS)
			sum -= m->link[i - WINDOW_STEPS];
		worst = sum > worst ? sum : worst;
	}
	return worst;
}

/* ---- both streams end together ---- */

static void together_one(u32 dram, u32 flash, u64 flash_mb, u32 link_mb)
{
	struct model *m = model_new(flash_mb, 12000, link_mb);
	struct model_delivery *d;
	u64 f, s, t0;

	warm(m);
	t0 = m->step * STEP + base;
	d = model_add(m, dram * MIB, flash * MIB, 0, m->step);
	run_all(m);
	f = d->flash_end - t0;
	s = d->dram_end - t0;
	if (f * 100 < s * 95 || s * 100 < f * 95)
		fail_msg("%u MiB of DRAM end after %llu us, %u MiB of flash at %llu MB/s after %llu us, link %u",
			 dram, (unsigned long long)s / 1000, flash, (unsigned long long)flash_mb,
			 (unsigned long long)f / 1000, link_mb);
	/* and no later than the slower of drive and link lets them */
	t0 = flash * MIB * 1000 / flash_mb;
	if (link_mb && t0 < (dram + flash) * MIB * 1000 * 10 / (7 * link_mb))
		t0 = (dram + flash) * MIB * 1000 * 10 / (7 * link_mb);
	if ((f > s ? f : s) > t0 * 6 / 5 + 3000000)
		fail_msg("%u + %u MiB take %llu us, %llu would do", dram, flash,
			 (unsigned long long)(f > s ? f : s) / 1000, (unsigned long long)t0 / 1000);
	model_free(m);
}

static void both_end_together(void **state)
{
	static const u32 mix[][2] = { { 64, 64 }, { 256, 64 }, { 512, 64 }, { 64, 256 },
				      { 16, 256 }, { 300, 100 } };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(mix); i++) {
		together_one(mix[i][0], mix[i][1], 1500, 0);
		together_one(mix[i][0], mix[i][1], 600, 0);
		together_one(mix[i][0], mix[i][1], 1500, 25000);
		together_one(mix[i][0], mix[i][1], 1500, 3000);	/* the link is what is slow */
	}
}

/* A drive whose bytes wait for a busy link is not a slow one. */
static void link_is_not_the_drive(void **state)
{
	struct model *m = model_new(1500, 12000, 3000);
	struct hawk_pace_load load = { .dram = 512 * MIB, .flash[0] = 64 * MIB, .link = true };
	struct hawk_pace_measured is;
	struct hawk_pace_tune t;
	struct hawk_delivery d;
	u64 left = 64 * MIB, now, got, dram, wait;

	(void)state;
	warm(m);
	now = now_of(m);
	hawk_pace_begin(&m->p, &d, &load, &m->counts, now);
	while (left && now < now_of(m) + 10000000000ull) {
		got = hawk_pace_take(&m->p, &d, HAWK_PACE_FLASH, 0, UNIT, left, now, &wait);
		dram = hawk_pace_take(&m->p, &d, HAWK_PACE_DRAM, 0, UNIT, 512 * MIB, now, &wait);
		now += got ? got * 1000 / 150 : wait;	/* a tenth of what the drive can do */
		left -= got;
		if (dram)
			hawk_pace_done(&m->p, &d, HAWK_PACE_DRAM, 0, dram, now);
		if (got)
			hawk_pace_done(&m->p, &d, HAWK_PACE_FLASH, 0, got, now);
	}
	assert_int_equal(left, 0);
	hawk_pace_end(&m->p, &d, now);
	hawk_pace_tuned(&m->p, &t, &is);
	if (is.flash_mb_per_s[0] < 1300)
		fail_msg("%u MB/s of 1500", is.flash_mb_per_s[0]);
	model_free(m);
}

/* Nothing is known: the first delivery of a device does not rush ahead either. */
static void first_delivery(void **state)
{
	struct model *m = model_new(1500, 12000, 0);
	struct model_delivery *d = model_add(m, 128 * MIB, 128 * MIB, 0, 0);

	(void)state;
	run_all(m);
	assert_true((d->dram_end - base) * 100 >= (d->flash_end - base) * 90);
	assert_true((d->dram_end - base) * 100 <= (d->flash_end - base) * 110);
	model_free(m);
}

static void no_flash_no_pacing(void **state)
{
	struct model *m = model_new(1500, 12000, 0);
	struct model_delivery *d;

	(void)state;
	warm(m);
	d = model_add(m, 128 * MIB, 0, 0, m->step);
	run_all(m);
	assert_true(d->dram_end - base <= (m->step + 2) * STEP);
	assert_int_equal(m->counts.waits, 0);
	model_free(m);
}

/* ---- the link ---- */

static void cap_holds(void **state)
{
	struct model *m;
	u64 most = 0, sum;
	u32 link, i;

	(void)state;
	for (link = 1000; link <= 16000; link *= 2) {
		m = model_new(2500, 12000, link);
		warm(m);
		for (i = 0; i < 4; i++)
			model_add(m, (20 + 30 * i) * MIB, (70 - 15 * i) * MIB, i % 2,
				  m->step + 100 * i);
		sum = m->step;
		run_all(m);
		most = worst_window(m);
		if (most > m->p.window)
			fail_msg("%llu bytes in 10 ms, %llu are allowed, link of %u MB/s",
				 (unsigned long long)most, (unsigned long long)m->p.window, link);
		assert_true(m->p.window == (u64)link * 7000);
		/* and what is allowed is used: 80 % of it where the link is the bottleneck */
		sum = (m->step - sum) * STEP;
		if (link <= 4000 && 4 * MIB * 107 * 10 / 8 * 1000 / (link * 7 / 10) < sum)
			fail_msg("the link of %u MB/s is not used: %llu us", link,
				 (unsigned long long)sum / 1000);
		model_free(m);
	}
}

/* A unit larger than the window passes alone; a reload to memory passes no link. */
static void odd_sizes(void **state)
{
	struct model *m = model_new(2500, 12000, 2);	/* 14 kB in 10 ms */
	struct model_delivery *a, *b;

	(void)state;
	a = model_add(m, 2 * UNIT, 2 * UNIT, 0, 0);
	b = model_add(m, 0, 64 * MIB, 1, 0);
	b->load.link = false;
	run_all(m);
	assert_int_equal(a->got, 4 * UNIT);
	assert_true(b->flash_end - base < 40000000);
	model_free(m);
}

/*
 * A host that begins whole runs of neighbours asks for units of ever other sizes: what was
 * shared out to it for smaller ones must not be in the way of a larger one.
 */
static void sizes_one(u64 rng, u32 link_mb, bool dram)
{
	struct hawk_pace_tune t;
	struct hawk_pace_load load = { .link = true };
	u64 now = base, end, wait, left[HAWK_PACE_KINDS], unit[] = { 0, UNIT }, got, want;
	struct hawk_delivery d;
	struct hawk_pace p;
	u32 k;

	hawk_pace_init(&p);
	hawk_pace_tuned(&p, &t, NULL);
	t.link_mb_per_s = link_mb;
	assert_int_equal(hawk_pace_tune(&p, &t), 0);
	load.flash[0] = 32 * p.window / UNIT * UNIT;
	load.dram = dram ? load.flash[0] : 0;
	left[HAWK_PACE_FLASH] = load.flash[0];
	left[HAWK_PACE_DRAM] = load.dram;
	/* this host wastes half of the time: it waits for one kind while the other could go on */
	end = now + 4 * 32 * (1 + dram) * (u64)HAWK_PACE_WINDOW_NS;
	hawk_pace_begin(&p, &d, &load, NULL, now);
	while (left[0] + left[1]) {
		k = !left[HAWK_PACE_FLASH] || (left[HAWK_PACE_DRAM] && host_below(&rng, 2));
		/* a run that could not begin is asked for again */
		if (!unit[HAWK_PACE_FLASH])
			unit[HAWK_PACE_FLASH] = (1 + host_below(&rng, p.window / 16 / UNIT)) * UNIT;
		if (unit[k] > left[k])
			unit[k] = left[k];
		want = k == HAWK_PACE_FLASH || left[k] < 4 * UNIT ? unit[k] : 4 * UNIT;
		got = hawk_pace_take(&p, &d, k, 0, unit[k], want, now, &wait);
		now += got ? 1000 : wait;
		if (now > end)
			fail_msg("link %u: %llu of flash, %llu of DRAM left, units of %llu", link_mb,
				 (unsigned long long)left[0], (unsigned long long)left[1],
				 (unsigned long long)unit[0]);
		if (!got)
			continue;
		hawk_pace_done(&p, &d, k, 0, got, now);
		left[k] -= got;
		unit[HAWK_PACE_FLASH] = k == HAWK_PACE_FLASH ? 0 : unit[HAWK_PACE_FLASH];
	}
	hawk_pace_end(&p, &d, now);
	hawk_pace_fini(&p);
}

static void units_of_all_sizes(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 80; i++)
		sizes_one(i + 1, 200 + 150 * i, i % 2);
}

/* ---- in turn ---- */

static void fair_in_bytes(void **state)
{
	struct model *m = model_new(2500, 12000, 2000);
	u64 least = ~0ull, most = 0;
	u32 i;

	(void)state;
	warm(m);
	for (i = 0; i < 6; i++)
		model_add(m, 400 * MIB, 0, 0, m->step);
	for (i = 0; i < 30 * WINDOW_STEPS; i++)
		one_step(m);
	for (i = 0; i < 6; i++) {
		least = m->del[i].got < least ? m->del[i].got : least;
		most = m->del[i].got > most ? m->del[i].got : most;
	}
	if (most - least > 3 * MIB)
		fail_msg("%llu and %llu bytes", (unsigned long long)least, (unsigned long long)most);
	assert_true(least > 50 * MIB);
	for (i = 0; i < 6; i++)
		end(m, &m->del[i]);
	model_free(m);
}

static void urgent_first(void **state)
{
	struct model *m = model_new(2500, 12000, 2000);
	struct model_delivery *a, *b, *c;
	u32 i;

	(void)state;
	warm(m);
	a = model_add(m, 400 * MIB, 0, 0, m->step);
	b = model_add(m, 100 * MIB, 0, 0, m->step + WINDOW_STEPS);
	b->load.urgent = true;
	c = model_add(m, 100 * MIB, 0, 0, m->step + WINDOW_STEPS);
	c->load.urgent = true;
	c->load.deadline = base + (m->step + 12 * WINDOW_STEPS) * STEP;	/* before b's, which is none */
	for (i = 0; i < 8 * WINDOW_STEPS; i++)
		one_step(m);
	assert_true(c->got > 10 * b->got);
	for (i = 0; i < 6 * WINDOW_STEPS; i++)
		one_step(m);
	assert_int_equal(c->got, 100 * MIB);
	assert_true(b->got > a->got / 2);
	/* but nobody starves */
	assert_true(a->got > 14 * 14 * MIB / 10);
	run_all(m);
	model_free(m);
}

/* A deadline that would be missed in turn is kept by going first. */
static void deadline_first(void **state)
{
	struct model *m = model_new(2500, 12000, 2000);
	struct model_delivery *d;
	u32 i;

	(void)state;
	warm(m);
	for (i = 0; i < 5; i++)
		model_add(m, 200 * MIB, 0, 0, m->step);
	d = model_add(m, 70 * MIB, 0, 0, m->step);
	d->load.deadline = base + (m->step + 12 * WINDOW_STEPS) * STEP;
	run_all(m);
	assert_true(d->dram_end <= d->load.deadline);
	assert_int_equal(m->counts.late, 0);
	model_free(m);
}

/* ---- urgent ones have the drives first ---- */

/* A long read is under way. Return: ns from the start of one of 4 MiB to its end. */
static u64 beside_long(bool before, bool urgent, u64 deadline_steps)
{
	struct model *m = model_new(1000, 12000, 0);
	struct model_delivery *d, *a;
	u64 ns;
	u32 i;

	warm(m);
	if (before) {
		model_add(m, 0, MIB, 0, m->step)->load.urgent = true;
		run_all(m);
	}
	a = model_add(m, 0, 128 * MIB, 0, m->step);
	d = model_add(m, 0, 4 * MIB, 0, m->step + 500);
	d->load.urgent = urgent;
	if (deadline_steps)
		d->load.deadline = base + (d->start + deadline_steps) * STEP;
	for (i = 0; !d->begun || d->flash_open; i++)
		one_step(m);
	ns = d->flash_end - (base + d->start * STEP);
	/* what was taken for the long one is not more than the drive's, nor lost */
	run_all(m);
	assert_int_equal(a->got, 128 * MIB);
	assert_in_range(a->flash_end - (base + a->start * STEP), 134000000, 150000000);
	model_free(m);
	return ns;
}

/*
 * At 10^9 bytes/s 4 MiB take 4.2 ms, behind 10 ms of others' at most and beside an eighth;
 * behind all 128 MiB 134 ms.
 */
static void drive_first(void **state)
{
	(void)state;
	assert_in_range(beside_long(true, true, 0), 4000000, 17000000);
	assert_in_range(beside_long(true, false, 1300), 4000000, 17000000);
	/* nobody has been urgent lately: what is under way is under way */
	assert_true(beside_long(false, true, 0) > 100000000);
}

/* Those who are not urgent do not starve, and another drive is none of its business. */
static void drive_shared(void **state)
{
	struct model *m = model_new(1000, 12000, 0);
	struct model_delivery *u, *a, *b;
	u32 i;

	(void)state;
	warm(m);
	u = model_add(m, 0, 128 * MIB, 0, m->step);
	u->load.urgent = true;
	a = model_add(m, 0, 128 * MIB, 0, m->step + 1);
	b = model_add(m, 0, 32 * MIB, 1, m->step + 1);
	for (i = 0; u->flash_open; i++)
		one_step(m);
	/* begun: in this drive's queue they are behind all that is urgent */
	assert_in_range(128 * MIB - a->flash, 8 * MIB, 128 * MIB / 7);
	assert_int_equal(b->got, 32 * MIB);
	assert_in_range(b->flash_end - (base + b->start * STEP), 32000000, 38000000);
	run_all(m);
	assert_int_equal(a->got, 128 * MIB);
	for (i = 0; i < HAWK_TIERS_MAX; i++)
		assert_true(!m->p.first_tier[i] && !m->p.first_share[i]);
	model_free(m);
}

/* Reads that do not come hold nobody up for ever. */
static void stalled_first(void **state)
{
	struct model *m = model_new(1000, 12000, 0);
	struct hawk_pace_load load = { .flash = { MIB }, .urgent = true };
	struct hawk_delivery u, d;
	u64 wait, now;

	(void)state;
	warm(m);
	now = now_of(m);
	hawk_pace_begin(&m->p, &u, &load, NULL, now);
	assert_int_equal(hawk_pace_take(&m->p, &u, HAWK_PACE_FLASH, 0, UNIT, MIB, now, &wait), MIB);
	load.urgent = false;
	hawk_pace_begin(&m->p, &d, &load, NULL, now);
	assert_int_equal(hawk_pace_take(&m->p, &d, HAWK_PACE_FLASH, 0, UNIT, MIB, now, &wait), 0);
	assert_true(wait >= HAWK_PACE_WAIT_NS);
	now += 3000000000ull;
	assert_int_equal(hawk_pace_take(&m->p, &d, HAWK_PACE_FLASH, 0, UNIT, MIB, now, &wait), MIB);
	hawk_pace_end(&m->p, &d, now);
	hawk_pace_end(&m->p, &u, now);
	assert_true(!m->p.first_tier[0] && !m->p.first_share[0] && !m->p.left_tier[0]);
	model_free(m);
}

/* ---- cancellation ---- */

static void cancel_gives_back(void **state)
{
	struct model *m;
	u64 rng = 11;
	u32 round, i, n;

	(void)state;
	for (round = 0; round < 60; round++) {
		m = model_new(2500, 12000, 1000 + 3000 * (round % 3));
		for (i = 0; i < 6; i++) {
			model_add(m, host_below(&rng, 60) * MIB, host_below(&rng, 60) * MIB, i % 2,
				  host_below(&rng, 400));
			m->del[i].load.urgent = host_below(&rng, 2);
		}
		n = host_below(&rng, 6000);
		for (i = 0; i < n; i++) {
			one_step(m);
			if (host_below(&rng, 400))
				continue;
			struct model_delivery *d = &m->del[host_below(&rng, m->n)];

			if (d->begun && !d->gone)
				end(m, d);
		}
		assert_true(m->p.charged + m->p.ended <= m->p.window + 2 * UNIT);
		for (i = 0; i < m->n; i++)
			if (m->del[i].begun && !m->del[i].gone)
				end(m, &m->del[i]);
		assert_true(!m->p.charged && !m->p.flash_charged && !m->p.active &&
			    !m->p.nwaiting && !m->p.left_dram && !m->p.left_link &&
			    !m->p.left_tier[0] && !m->p.left_tier[1]);
		model_free(m);
	}
}

/* What is skipped - its tier was lost - holds no room, and none is kept back for it. */
static void skip_gives_back(void **state)
{
	struct hawk_pace_load load = { .flash = { 64 * UNIT, 4 * UNIT }, .link = true };
	struct model *m = model_new(2500, 12000, 3000);
	struct hawk_delivery d[20];
	u64 now = now_of(m), got, wait;
	u32 i;

	(void)state;
	for (i = 0; i < 20; i++) {
		hawk_pace_begin(&m->p, &d[i], &load, &m->counts, now);
		got = hawk_pace_take(&m->p, &d[i], HAWK_PACE_FLASH, 0, UNIT, UNIT, now, &wait);
		if (got)
			hawk_pace_done(&m->p, &d[i], HAWK_PACE_FLASH, 0, got, now);
		hawk_pace_skip(&m->p, &d[i], HAWK_PACE_FLASH, 0, 64 * UNIT - got, false, now);
		hawk_pace_skip(&m->p, &d[i], HAWK_PACE_FLASH, 1, 4 * UNIT, false, now);
		assert_int_equal(m->p.charged, 0);
		assert_int_equal(m->p.nwaiting, 0);
	}
	for (i = 0; i < 20; i++)
		hawk_pace_end(&m->p, &d[i], now);
	model_free(m);
}

/* Eight threads, with one clock that all of them move. */
static struct hawk_pace shared;
static u64 shared_now = 1;

static void *deliver(void *arg)
{
	u64 rng = (uintptr_t)arg + 1, left[2], now, wait, got;
	struct hawk_pace_counts counts = { 0 };
	struct hawk_pace_load load = { 0 };
	struct hawk_delivery d;
	u32 i, k;

	for (i = 0; i < 300; i++) {
		left[HAWK_PACE_FLASH] = host_below(&rng, 40) * UNIT;
		left[HAWK_PACE_DRAM] = host_below(&rng, 40) * UNIT;
		load.flash[1] = left[HAWK_PACE_FLASH];
		load.dram = left[HAWK_PACE_DRAM];
		load.link = host_below(&rng, 4);
		load.urgent = !host_below(&rng, 4);
		now = __atomic_add_fetch(&shared_now, 1000, __ATOMIC_RELAXED);
		hawk_pace_begin(&shared, &d, &load, &counts, now);
		while (left[0] + left[1]) {
			now = __atomic_add_fetch(&shared_now, 20000, __ATOMIC_RELAXED);
			k = left[0] ? left[1] ? host_below(&rng, 2) : 0 : 1;
			got = hawk_pace_take(&shared, &d, k, 1, UNIT, left[k], now, &wait);
			assert_true(got <= left[k]);
			if (got && host_below(&rng, 8))
				hawk_pace_done(&shared, &d, k, 1, got, now);
			else if (got)
				hawk_pace_skip(&shared, &d, k, 1, got, true, now);
			left[k] -= got;
			if (!host_below(&rng, 200))
				break;
			hawk_pace_busy(&shared, 1);
		}
		hawk_pace_end(&shared, &d, now);
	}
	return NULL;
}

static void threads(void **state)
{
	struct hawk_pace_tune t;
	pthread_t th[8];
	uintptr_t i;

	(void)state;
	hawk_pace_init(&shared);
	hawk_pace_tuned(&shared, &t, NULL);
	t.link_mb_per_s = 3000;
	assert_int_equal(hawk_pace_tune(&shared, &t), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&th[i], NULL, deliver, (void *)i), 0);
	for (i = 0; i < 20; i++) {
		t.on = i % 3;
		assert_int_equal(hawk_pace_tune(&shared, &t), 0);
	}
	for (i = 0; i < 8; i++)
		pthread_join(th[i], NULL);
	assert_true(!shared.charged && !shared.left_link && !shared.nwaiting && !shared.active);
	hawk_pace_fini(&shared);
}

/* ---- bandwidths ---- */

static void follows_the_drive(void **state)
{
	struct model *m = model_new(2000, 12000, 0);
	struct hawk_pace_measured got;
	struct hawk_pace_tune t;
	u32 i;

	(void)state;
	warm(m);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 1900, 2100);
	assert_in_range(got.dram_mb_per_s, 10000, 14000);
	m->drive[0].mb = 400;
	model_add(m, 0, 400 * MIB, 0, m->step);
	for (i = 0; i < 20000; i++)
		one_step(m);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 380, 420);
	assert_in_range(got.flash_mb_per_s[1], 1900, 2100);
	m->drive[0].mb = 3000;
	run_all(m);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 2500, 3100);
	/* a lone small read tells nothing of its bandwidth */
	m->drive[0].mb = 300;
	for (i = 0; i < 20; i++) {
		model_add(m, 0, 2 * UNIT, 0, m->step);
		run_all(m);
		m->n = 0;
		m->step += 100;
	}
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 2500, 3100);
	model_free(m);
}

/* So it does while DRAM waits for it: that is no sign of a link that is short. */
static void follows_it_when_paced(void **state)
{
	struct model *m = model_new(2000, 12000, 25000);
	struct hawk_pace_measured got;
	struct hawk_pace_tune t;

	(void)state;
	warm(m);
	m->drive[0].mb = 400;
	model_add(m, 400 * MIB, 400 * MIB, 0, m->step);
	run_all(m);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 380, 440);
	model_free(m);
}

/* Within an eighth, on a device that is as it was measured. */
static void estimates(void **state)
{
	static const u32 mix[][3] = { { 0, 128, 0 }, { 128, 128, 0 }, { 512, 64, 0 },
				      { 512, 64, 4000 }, { 128, 0, 2000 }, { 64, 256, 20000 } };
	struct model_delivery *d;
	struct model *m;
	u64 want, got, t0;
	u32 i, busy;

	(void)state;
	for (i = 0; i < 2 * ARRAY_SIZE(mix); i++) {
		const u32 *x = mix[i / 2];

		m = model_new(1500, 12000, x[2]);
		warm(m);
		busy = i % 2;
		if (busy) {
			model_add(m, 0, 64 * MIB, 0, m->step);
			one_step(m);
		}
		d = model_add(m, x[0] * MIB, x[1] * MIB, 0, m->step);
		want = hawk_pace_estimate(&m->p, &d->load, now_of(m));
		t0 = now_of(m);
		run_all(m);
		got = (d->flash_end > d->dram_end ? d->flash_end : d->dram_end) - t0;
		if (want * 100 > got * 112 || want * 100 < got * 88)
			fail_msg("%u + %u MiB, link %u, %s: %llu us expected, %llu us taken", x[0], x[1],
				 x[2], busy ? "busy" : "idle", (unsigned long long)want / 1000,
				 (unsigned long long)got / 1000);
		model_free(m);
	}
}

static void in_time(void **state)
{
	struct model *m = model_new(1000, 12000, 0);
	struct hawk_pace_load load = { .flash = { 100 * MIB } };

	(void)state;
	load.deadline = base + 1;
	assert_true(hawk_pace_in_time(&m->p, &load, &m->counts, base));	/* nothing is known */
	warm(m);
	load.deadline = now_of(m) + 60000000;
	assert_false(hawk_pace_in_time(&m->p, &load, &m->counts, now_of(m)));
	assert_int_equal(m->counts.refused, 1);
	load.deadline = now_of(m) + 160000000;
	assert_true(hawk_pace_in_time(&m->p, &load, &m->counts, now_of(m)));
	assert_int_equal(m->counts.refused, 1);
	load.flash[0] = 1ull << 62;
	load.flash[1] = 1ull << 63;
	load.dram = ~0ull;
	load.link = true;
	load.deadline = ~0ull - 1;
	assert_false(hawk_pace_in_time(&m->p, &load, &m->counts, ~0ull - 10));
	model_free(m);
}

static void tunables(void **state)
{
	struct hawk_pace_tune t, same;
	struct hawk_pace p;
	u32 i;

	(void)state;
	hawk_pace_init(&p);
	hawk_pace_tuned(&p, &t, NULL);
	for (i = 0; i < 8; i++) {
		struct hawk_pace_tune bad = t;

		switch (i) {
		case 0: bad.epsilon_permille = 1001; break;
		case 1: bad.cap_percent = 0; break;
		case 2: bad.cap_percent = 101; break;
		case 3: bad.quantum_bytes = HAWK_PACE_QUANTUM_MIN - 1; break;
		case 4: bad.quantum_bytes = HAWK_PACE_QUANTUM_MAX + 1; break;
		case 5: bad.link_mb_per_s = ~0u; break;
		case 6: bad.dram_mb_per_s = ~0u; break;
		default: bad.flash_mb_per_s[HAWK_TIERS_MAX - 1] = ~0u; break;
		}
		assert_int_equal(hawk_pace_tune(&p, &bad), -EINVAL);
	}
	hawk_pace_tuned(&p, &same, NULL);
	assert_memory_equal(&same, &t, sizeof(t));
	t.link_mb_per_s = HAWK_PACE_MB_MAX;
	t.cap_percent = 100;
	assert_int_equal(hawk_pace_tune(&p, &t), 0);
	assert_true(p.window == 1000000000000ull);
	hawk_pace_fini(&p);
}

/* Another drive under the same id is as little known as the first was. */
static void new_tier(void **state)
{
	struct model *m = model_new(2000, 12000, 0);
	struct hawk_engine *e = hawk_engine_create();
	struct hawk_pace_measured got;
	struct hawk_pace_tune t;
	u32 id, again;

	(void)state;
	warm(m);
	hawk_pace_new_tier(&m->p, 0);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_int_equal(got.flash_mb_per_s[0], 0);
	assert_in_range(got.flash_mb_per_s[1], 1900, 2100);
	m->drive[0].mb = 400;
	model_add(m, 0, 100 * MIB, 0, m->step);
	run_all(m);
	hawk_pace_tuned(&m->p, &t, &got);
	assert_in_range(got.flash_mb_per_s[0], 380, 420);
	model_free(m);
	/* tiers of an engine */
	assert_int_equal(hawk_tier_add(e, HAWK_TIER_BLK, 1, &id), 0);
	hawk_pace_tuned(hawk_engine_pace(e), &t, NULL);
	t.flash_mb_per_s[id] = 123;
	assert_int_equal(hawk_pace_tune(hawk_engine_pace(e), &t), 0);
	assert_int_equal(hawk_tier_remove(e, id), 0);
	assert_int_equal(hawk_tier_add(e, HAWK_TIER_BLK, 1, &again), 0);
	assert_int_equal(again, id);
	hawk_pace_tuned(hawk_engine_pace(e), &t, NULL);
	assert_int_equal(t.flash_mb_per_s[id], 0);
	hawk_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_end_together),
		cmocka_unit_test(link_is_not_the_drive),
		cmocka_unit_test(first_delivery),
		cmocka_unit_test(no_flash_no_pacing),
		cmocka_unit_test(cap_holds),
		cmocka_unit_test(odd_sizes),
		cmocka_unit_test(units_of_all_sizes),
		cmocka_unit_test(fair_in_bytes),
		cmocka_unit_test(urgent_first),
		cmocka_unit_test(deadline_first),
		cmocka_unit_test(drive_first),
		cmocka_unit_test(drive_shared),
		cmocka_unit_test(stalled_first),
		cmocka_unit_test(cancel_gives_back),
		cmocka_unit_test(skip_gives_back),
		cmocka_unit_test(threads),
		cmocka_unit_test(follows_the_drive),
		cmocka_unit_test(follows_it_when_paced),
		cmocka_unit_test(new_tier),
		cmocka_unit_test(estimates),
		cmocka_unit_test(in_time),
		cmocka_unit_test(tunables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
