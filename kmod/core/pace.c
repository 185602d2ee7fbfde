// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * pace.c - paced delivery: DRAM no faster than flash, all together no more than the link
 *
 * DRAM against flash.  A delivery with N_s bytes of flash and N_d of DRAM left takes DRAM
 * from a bucket that fills with
 *
 *	R = min(B_dram, N_d / N_s * B_flash * (1 + epsilon))
 *
 * B_flash is how fast its own reads have ended lately; before any has, its part of what the
 * drives can do together.  Because what is *left* counts, and not what there was in the
 * beginning, an error of B_flash corrects itself and both streams end together.  If
 * nothing at all is known of the drive, DRAM keeps to the share of flash that has come.
 *
 * The link.  In any HAWK_PACE_WINDOW_NS no more than `window` bytes may arrive.  Bytes are
 * charged when they are shared out, and stay charged until a window after they have ended:
 * so whatever arrives in a window was charged at its end, and `charged` + `ended` is never
 * more than `window`.  So that a window is not used up in its first moment, room also comes
 * no faster than the rate, but for an eighth of the window.  Reads that wait in the drive's queue hold room that others could
 * use, so those of all deliveries together hold an eighth of the window at most.  While
 * the link is a delivery's bottleneck its flash may be only a little ahead of its DRAM, or
 * DRAM would be left over.
 *
 * Those who wait for room get it in turn: deficit round robin, so that each has its share
 * in bytes however large its units are.  Room is shared out when somebody asks, also to
 * those that sleep: they find it when they wake.  Urgent deliveries come first, the one
 * with the nearest deadline before the others, but of each eight quanta one goes to those
 * that are not urgent, so nobody starves.  One that would miss its deadline in its turn
 * becomes urgent by itself.  Urgent ones also have the drives first: pacefirst.c.
 */
#include "priv.h"

#define FOLD_NS		2000000u	/* of busy time are one sample */
#define SHORT_NS	1000000u	/* less than that is latency, not bandwidth */
#define FADE_SHIFT	22		/* sums fade by 1/8 every 2^22 ns of busy time */
#define BURST_NS	2000000u	/* of tokens are kept */
#define BLIND_NS	1000000u	/* to wait for what nobody can tell */
#define STEPS		256		/* grants of one sharing out */
#define LOOK		64		/* urgent ones that are compared */
#define FIRST_RUN	7		/* quanta for urgent ones, then one for others */
#define CREDIT_SHIFT	3		/* an eighth of the window may pass at once */
#define AHEAD_SHIFT	4		/* a 16th of the window is shared out to one who sleeps */
#define LEAD_SHIFT	5		/* flash is ahead of DRAM by 1/32 of it at most */

static u64 add(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? HAWK_FX_MAX : sum;
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 most(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Whole units of @bytes. */
static u64 whole(u64 bytes, u64 unit)
{
	u64 n;

	if (!(unit & (unit - 1)))
		return bytes & ~(unit - 1);
	if (unit >> 32)
		return bytes >= unit ? unit : 0;
	n = div_u64(bytes, (u32)unit);
	return n * unit;
}

/* ---- bandwidths ---- */

static void meter_start(struct hawk_meter *m, u64 bytes, u64 now)
{
	if (!m->out)
		m->since = now;
	m->out += bytes;
}

/* A device that waits for the link is no slower than it was. */
static bool meter_misled(const struct hawk_meter *m)
{
	return m->held && m->rate && hawk_fx_ratio(m->new_bytes, m->new_ns) < m->rate;
}

static void meter_fold(struct hawk_meter *m)
{
	u64 steps = m->new_ns >> FADE_SHIFT;
	u64 left = m->new_ns;

	if (meter_misled(m))
		goto out;
	/* what does not fill a step fades in proportion */
	for (steps = steps < 64 ? steps : 64; steps; steps--) {
		m->bytes -= m->bytes >> 3;
		m->ns -= m->ns >> 3;
	}
	left &= (1u << FADE_SHIFT) - 1;
	m->bytes -= hawk_fx_mul(m->bytes, left << (32 - FADE_SHIFT - 3));
	m->ns -= hawk_fx_mul(m->ns, left << (32 - FADE_SHIFT - 3));
	m->bytes += m->new_bytes;
	m->ns += m->new_ns;
	m->rate = hawk_fx_ratio(m->bytes, m->ns);
	m->rate = m->rate ? m->rate : 1;
out:
	m->new_bytes = 0;
	m->new_ns = 0;
	m->held = false;
}

/* A busy period has ended before it was a sample: alone, a read is slow. */
static void meter_idle(struct hawk_meter *m)
{
	if (!m->rate || m->new_ns >= SHORT_NS || hawk_fx_ratio(m->new_bytes, m->new_ns) > m->rate)
		meter_fold(m);
	m->new_bytes = 0;
	m->new_ns = 0;
}

/* @bytes are under way no more; @good: they have come. */
static void meter_done(struct hawk_meter *m, u64 bytes, bool good, u64 now)
{
	m->out -= least(bytes, m->out);
	if (now > m->since) {
		/* what did not come tells nothing, but that others were under way meanwhile */
		m->new_ns += good || m->out ? now - m->since : 0;
		m->since = now;
	}
	if (good)
		m->new_bytes += bytes;
	if (!m->new_ns)
		return;
	if (m->new_ns >= FOLD_NS && m->new_bytes)
		meter_fold(m);
	else if (!m->out && m->new_bytes)
		meter_idle(m);
}

/* 10^6 bytes per second as bytes per ns, and back */
static u64 rate_of(u32 mb)
{
	return div_u64((u64)mb << 32, 1000);
}

static u32 mb_of(u64 rate)
{
	u64 mb = hawk_fx_mul(rate, 1000);

	return mb < HAWK_PACE_MB_MAX ? mb : HAWK_PACE_MB_MAX;
}

u64 hawk_pace_tier_rate(const struct hawk_pace *p, u32 tier)
{
	u32 mb = p->tune.flash_mb_per_s[tier];

	return mb ? rate_of(mb) : p->tier[tier].rate;
}

static u64 dram_rate(const struct hawk_pace *p)
{
	return p->tune.dram_mb_per_s ? rate_of(p->tune.dram_mb_per_s) : p->dram.rate;
}

/* Nanoseconds for @bytes; nothing if the rate is not known. */
static u64 ns_for(u64 bytes, u64 rate)
{
	return rate && bytes ? hawk_fx_ratio(bytes, rate) : 0;
}

/* ---- time ---- */

static u64 *slot_of(struct hawk_pace *p, u64 at)
{
	return &p->slot[at - div_u64(at, HAWK_PACE_SLOTS) * HAWK_PACE_SLOTS];
}

/* What the rate of the link allows from now on. */
static void add_credit(struct hawk_pace *p)
{
	u64 max = p->window >> CREDIT_SHIFT, more = hawk_fx_mul(p->rate, p->now - p->credit_at);

	if (more < 1024 && more < max)
		return;	/* or much would be lost by rounding */
	p->credit_at = p->now;
	if (more >= max || p->credit + (s64)more >= (s64)max)
		p->credit = max;
	else
		p->credit += more;
}

/* Threads read the clock before they have the lock, so it may seem to go back. */
static u64 at_time(struct hawk_pace *p, u64 now)
{
	u64 at, *slot;

	p->now = most(p->now, now);
	add_credit(p);
	at = p->now >> HAWK_PACE_SLOT_SHIFT;
	if (at - p->slot_at >= HAWK_PACE_SLOTS) {
		memset(p->slot, 0, sizeof(p->slot));
		p->ended = 0;
		p->slot_at = at;
	}
	while (p->slot_at < at) {
		slot = slot_of(p, ++p->slot_at);
		p->ended -= *slot;
		*slot = 0;
	}
	return p->now;
}

/* ---- the link ---- */

static bool has_cap(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	return p->tune.on && p->window && d->load.link;
}

static u64 window_room(const struct hawk_pace *p)
{
	u64 used = add(p->charged, p->ended);

	return used < p->window ? p->window - used : 0;
}

/* When there will be room for @bytes, as far as is known. */
static u64 window_wait(struct hawk_pace *p, u64 bytes)
{
	u64 room = window_room(p), first, when;
	u32 i;

	if (room >= bytes && p->credit <= 0)
		return ns_for(1 - p->credit, p->rate);
	if (p->slot_at < HAWK_PACE_SLOTS)
		return BLIND_NS;
	first = p->slot_at - HAWK_PACE_SLOTS + 1;
	for (i = 0; i < HAWK_PACE_SLOTS && room < bytes; i++)
		room += *slot_of(p, first + i);
	if (room < bytes || !i)
		return BLIND_NS;
	when = (p->slot_at + i) << HAWK_PACE_SLOT_SHIFT;	/* slot first + i - 1 goes */
	return when > p->now ? when - p->now : 0;
}

static struct hawk_delivery *entry(struct hawk_pace_link *l)
{
	return (struct hawk_delivery *)((u8 *)l - offsetof(struct hawk_delivery, wait));
}

static bool empty(const struct hawk_pace_link *ring)
{
	return ring->next == ring;
}

static void link_del(struct hawk_pace *p, struct hawk_delivery *d)
{
	if (!d->wait.prev)
		return;
	d->wait.prev->next = d->wait.next;
	d->wait.next->prev = d->wait.prev;
	d->wait.prev = NULL;
	p->nwaiting -= !d->first;
	d->turn = false;
	d->deficit = 0;
}

static void link_add(struct hawk_pace *p, struct hawk_delivery *d, bool first)
{
	struct hawk_pace_link *ring = first ? &p->first : &p->turn;

	d->first = first;
	d->wait.prev = ring->prev;
	d->wait.next = ring;
	ring->prev->next = &d->wait;
	ring->prev = &d->wait;
	p->nwaiting += !first;
}

/* It would be late if it had to wait for all others each time. */
static bool is_urgent(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	u64 bytes = add(d->open[HAWK_PACE_DRAM], d->open[HAWK_PACE_FLASH]), ns;

	if (d->load.urgent)
		return true;
	if (!d->load.deadline)
		return false;
	ns = ns_for(bytes, p->rate);
	if (check_mul_overflow(ns, (u64)p->active, &ns))
		return true;
	return add(p->now, ns) > d->load.deadline;
}

/* Most that reads of all deliveries may hold of the window. */
static u64 flash_room(const struct hawk_pace *p, u64 unit)
{
	u64 max = p->window >> 3;

	if (!p->flash_charged)
		max = most(max, unit);
	return p->flash_charged < max ? max - p->flash_charged : 0;
}

/*
 * Least that lets @d begin one unit more: what it holds already was perhaps meant for
 * smaller ones.
 */
static u64 to_unit(const struct hawk_delivery *d, u32 k)
{
	return d->unit[k] - (d->room[k] - whole(d->room[k], d->unit[k]));
}

/* Share @room bytes at most out to @d.  Return: how much it got. */
static u64 give(struct hawk_pace *p, struct hawk_delivery *d, u64 room, u64 most_bytes)
{
	u64 sum = 0, n, unit;
	u32 k;

	for (k = 0; k < HAWK_PACE_KINDS; k++) {
		if (!d->want[k])
			continue;
		unit = to_unit(d, k);
		n = least(least(room, most_bytes), d->want[k]);
		/* what is left of it is gone into debt for */
		n = p->credit > 0 ? least(n, most(p->credit, unit)) : 0;
		if (k == HAWK_PACE_FLASH)
			n = least(n, flash_room(p, unit));
		/* larger than the window: alone */
		if (n < unit && p->charged == d->room[0] + d->room[1] && !p->ended &&
		    most_bytes >= unit && p->credit > 0)
			n = unit;
		n = n < unit ? 0 : unit + whole(n - unit, d->unit[k]);
		d->want[k] -= n;
		d->room[k] += n;
		d->charge[k] += n;
		p->charged += n;
		p->credit -= n;
		p->flash_charged += k == HAWK_PACE_FLASH ? n : 0;
		room -= least(n, room);
		most_bytes -= n;
		sum += n;
	}
	if (!d->want[HAWK_PACE_FLASH] && !d->want[HAWK_PACE_DRAM])
		link_del(p, d);
	return sum;
}

/* The urgent one whose deadline is the nearest; those without one come last. */
static struct hawk_delivery *most_urgent(struct hawk_pace *p)
{
	struct hawk_delivery *best = NULL, *d;
	struct hawk_pace_link *l;
	u32 n = 0;

	for (l = p->first.next; l != &p->first && n++ < LOOK; l = l->next) {
		d = entry(l);
		if (!best || d->load.deadline - 1 < best->load.deadline - 1)
			best = d;
	}
	return best;
}

static bool others_due(const struct hawk_pace *p)
{
	return p->nwaiting && p->first_run >= FIRST_RUN * p->quantum;
}

/* Its deficit is less than any unit it wants. */
static bool spent(const struct hawk_delivery *d)
{
	u32 k;

	for (k = 0; k < HAWK_PACE_KINDS; k++)
		if (d->want[k] && d->deficit >= to_unit(d, k))
			return false;
	return true;
}

/* It is room on the link that it lacks: not its deficit, nor what reads may hold. */
static bool link_full(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	u32 k;

	for (k = 0; k < HAWK_PACE_KINDS; k++)
		if (d->want[k] && d->deficit >= to_unit(d, k) &&
		    (k == HAWK_PACE_DRAM || flash_room(p, to_unit(d, k)) >= to_unit(d, k)))
			return true;
	return false;
}

/* One step of the round.  Return: false: who is next has to wait for room. */
static bool share_turn(struct hawk_pace *p, u32 *idle)
{
	struct hawk_delivery *d = entry(p->turn.next);
	u64 got, room = window_room(p);

	if (!d->turn) {
		d->deficit = add(d->deficit, p->quantum);
		d->turn = true;
	}
	got = give(p, d, room, d->deficit);
	if (got)
		p->first_run = 0;
	if (!d->wait.prev) {
		*idle = 0;
		return true;	/* it has what it wanted */
	}
	d->deficit -= got;
	*idle = got ? 0 : *idle + 1;
	if (link_full(p, d))
		return false;
	/* the next one's turn; what it may still have it keeps */
	d->turn = spent(d) ? false : d->turn;
	d->wait.prev->next = d->wait.next;
	d->wait.next->prev = d->wait.prev;
	p->nwaiting--;
	link_add(p, d, false);
	return true;
}

/* Room for the most urgent one.  Return: 0: it got some; 1: others may have it; -1: none. */
static int share_first(struct hawk_pace *p)
{
	struct hawk_delivery *d = most_urgent(p);
	u64 got = give(p, d, window_room(p), HAWK_FX_MAX);

	p->first_run = p->nwaiting ? p->first_run + got : 0;
	if (got)
		return 0;
	/* flash may be held up by what reads may hold: then DRAM of others is not */
	return d->want[HAWK_PACE_DRAM] ? -1 : 1;
}

/* Share the room of the window out. */
static void share_out(struct hawk_pace *p)
{
	u32 step, idle = 0;
	int ret;

	for (step = 0; step < STEPS; step++) {
		ret = !empty(&p->first) && !others_due(p) ? share_first(p) : 1;
		if (!ret)
			continue;
		if (ret < 0 || empty(&p->turn) || idle > 34 * (p->nwaiting + 1) ||
		    !share_turn(p, &idle))
			return;
	}
}

/*
 * What @d got of the @ask bytes that it could use now.  It may use up to @more soon: what
 * comes free while it sleeps, and a little longer, is shared out to it too.
 */
static u64 link_take(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u64 unit, u64 ask,
		     u64 more, u64 *wait_ns)
{
	bool urgent = is_urgent(p, d);
	u64 got, want = most(ask, whole(least(more, p->window >> AHEAD_SHIFT), unit));

	d->want[kind] = want > d->room[kind] ? want - d->room[kind] : 0;
	d->unit[kind] = unit;
	if (d->wait.prev && d->first != urgent)
		link_del(p, d);
	if (d->want[kind] && !d->wait.prev)
		link_add(p, d, urgent);
	share_out(p);
	got = whole(least(ask, d->room[kind]), unit);
	d->room[kind] -= got;
	if (kind == HAWK_PACE_DRAM && got < ask)
		d->capped_at = p->now;
	if (!got)
		*wait_ns = window_wait(p, unit);
	return got;
}

/* ---- DRAM against flash ---- */

/* How fast its reads end, before any has: its part of what is to be read. */
static u64 shared_rate(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	u64 ns = 0;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (d->open_tier[t]) {
			if (!hawk_pace_tier_rate(p, t))
				return 0;
			ns = most(ns, ns_for(p->left_tier[t], hawk_pace_tier_rate(p, t)));
		}
	return ns ? hawk_fx_ratio(d->open[HAWK_PACE_FLASH], ns) : 0;
}

/* Bytes of DRAM that flash allows now. */
static u64 dram_allowed(struct hawk_pace *p, struct hawk_delivery *d, u64 unit, u64 *wait_ns)
{
	u64 flash = d->open[HAWK_PACE_FLASH], left = d->left[HAWK_PACE_DRAM], rate, cap, out;

	if (!flash || !left)
		return HAWK_FX_MAX;
	rate = d->flash_rate.rate ? d->flash_rate.rate : shared_rate(p, d);
	if (!rate) {
		/* as much of it as has come from flash, and a little more */
		cap = hawk_fx_mul(hawk_fx_ratio(d->flash - flash, d->flash), d->load.dram);
		cap = add(cap, most(d->load.dram >> LEAD_SHIFT, unit));
		out = d->load.dram - left;
		*wait_ns = BLIND_NS;
		return cap > out ? cap - out : 0;
	}
	rate = hawk_fx_mul(rate, hawk_fx_ratio(1000 + p->tune.epsilon_permille, 1000));
	rate = hawk_fx_mul(rate, hawk_fx_ratio(left, flash));
	if (dram_rate(p))
		rate = least(rate, dram_rate(p));
	rate = rate ? rate : 1;
	d->tokens = add(d->tokens, hawk_fx_mul(rate, p->now - d->token_at));
	d->tokens = least(d->tokens, most(hawk_fx_mul(rate, BURST_NS), unit));
	d->token_at = p->now;
	*wait_ns = d->tokens < unit ? add(ns_for(unit - d->tokens, rate), 1) : 0;
	return d->tokens;
}

/* The link is its bottleneck, as DRAM that it held up lately shows. */
static bool capped(const struct hawk_pace *p, const struct hawk_delivery *d)
{
	return d->left[HAWK_PACE_DRAM] && d->capped_at &&
	       p->now - d->capped_at <= 2 * HAWK_PACE_WINDOW_NS;
}

/* Bytes of flash that may be asked for while the link is the bottleneck. */
static u64 flash_allowed(const struct hawk_pace *p, const struct hawk_delivery *d, u64 unit)
{
	u64 done = d->load.dram - d->left[HAWK_PACE_DRAM], got = d->flash - d->left[HAWK_PACE_FLASH];
	u64 max;

	if (!capped(p, d))
		return HAWK_FX_MAX;
	max = hawk_fx_mul(hawk_fx_ratio(done, d->load.dram), d->flash);
	max = add(max, most(d->flash >> LEAD_SHIFT, unit));
	return max > got ? max - got : 0;
}

/* Bytes of flash that the link and those who are urgent leave. */
static u64 drive_allowed(struct hawk_pace *p, struct hawk_delivery *d, u32 tier, u64 unit,
			 u64 *wait_ns)
{
	u64 first;

	hawk_first_look(p, d);
	first = hawk_first_allowed(p, d, tier, unit);
	if (first < unit)
		*wait_ns = BLIND_NS;
	return least(flash_allowed(p, d, unit), first);
}

/* It is not the link alone that it waits for. */
static bool held_back(const struct hawk_delivery *d, u32 kind)
{
	return kind == HAWK_PACE_DRAM ? d->open[HAWK_PACE_FLASH] : d->capped_at;
}

/* ---- the calls ---- */

/* A thread that waits has been told so once; how long it did is known when it gets something. */
static void note_wait(struct hawk_delivery *d, u32 kind, u64 got, bool link, u64 now)
{
	struct hawk_pace_counts *c = d->counts;

	if (!got) {
		if (c && !d->refused_at[kind]) {
			hawk_store(&c->waits, c->waits + 1);
			if (link)
				hawk_store(&c->link_waits, c->link_waits + 1);
		}
		d->refused_at[kind] = d->refused_at[kind] ? d->refused_at[kind] : now;
		return;
	}
	if (c && d->refused_at[kind])
		hawk_store(&c->wait_ns, c->wait_ns + (now - d->refused_at[kind]));
	d->refused_at[kind] = 0;
}

static struct hawk_meter *meter_of(struct hawk_pace *p, u32 kind, u32 tier)
{
	return kind == HAWK_PACE_DRAM ? &p->dram : &p->tier[tier];
}

/*
 * @d got @got of @ask that it could use, of @left: does it want more than the link takes?
 * Copies that keep to the pace of flash do not, nor reads that have enough before them in
 * the drives' queues, or wait for others there.
 */
static bool is_link_short(const struct hawk_pace *p, const struct hawk_delivery *d, u32 kind,
			  u64 unit, u64 left, u64 ask, u64 got)
{
	if (got < ask)
		return kind == HAWK_PACE_DRAM || flash_room(p, unit) >= unit;
	return kind == HAWK_PACE_FLASH && ask < left && capped(p, d);
}

/* Whatever is under way may wait for the link, too. */
static void link_short(struct hawk_pace *p)
{
	u32 t;

	p->dram.held = true;
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		p->tier[t].held = true;
}

static void take(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 got)
{
	d->left[kind] -= got;
	if (kind == HAWK_PACE_DRAM) {
		d->tokens -= least(got, d->tokens);
	} else {
		d->left_tier[tier] -= got;
		hawk_first_took(p, d, tier, got);
		meter_start(&d->flash_rate, got, p->now);
	}
	meter_start(meter_of(p, kind, tier), got, p->now);
}

u64 hawk_pace_take(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 unit,
		   u64 want, u64 now, u64 *wait_ns)
{
	u64 ask, got, left, most_left;

	hawk_assert(unit && tier < HAWK_TIERS_MAX && kind < HAWK_PACE_KINDS);
	*wait_ns = 0;
	hawk_lock(&p->lock);
	now = at_time(p, now);
	most_left = kind == HAWK_PACE_DRAM ? d->left[kind] : d->left_tier[tier];
	left = least(want, most_left);
	ask = left;
	if (p->tune.on) {
		if (kind == HAWK_PACE_DRAM)
			ask = least(ask, dram_allowed(p, d, unit, wait_ns));
		else
			ask = least(ask, drive_allowed(p, d, tier, unit, wait_ns));
		/* what it holds of the link it must be able to use, or all might wait */
		ask = most(ask, least(left, d->room[kind]));
	}
	got = whole(ask, unit);
	if (got && has_cap(p, d))
		got = link_take(p, d, kind, unit, got, held_back(d, kind) ? got : most_left, wait_ns);
	if (has_cap(p, d) && is_link_short(p, d, kind, unit, whole(left, unit), whole(ask, unit), got))
		link_short(p);
	if (left)
		note_wait(d, kind, got, whole(ask, unit), now);
	if (got)
		take(p, d, kind, tier, got);
	hawk_unlock(&p->lock);
	*wait_ns = got ? 0 : most(*wait_ns, HAWK_PACE_WAIT_NS);
	return got;
}

/* @bytes of @d will not be waited for any more; @ended: they have come. */
static void open_less(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 bytes,
		      bool ended)
{
	if (kind == HAWK_PACE_DRAM) {
		p->left_dram -= bytes;
	} else {
		d->open_tier[tier] -= bytes;
		hawk_first_less(p, d, tier, bytes, ended);
		hawk_store(&p->left_tier[tier], p->left_tier[tier] - bytes);
	}
	d->open[kind] -= bytes;
	if (d->load.link)
		p->left_link -= bytes;
}

static void uncharge(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u64 bytes, bool ended)
{
	bytes = least(bytes, d->charge[kind] - d->room[kind]);
	d->charge[kind] -= bytes;
	p->charged -= bytes;
	if (kind == HAWK_PACE_FLASH)
		p->flash_charged -= bytes;
	if (!ended)
		return;
	*slot_of(p, p->slot_at) += bytes;
	p->ended += bytes;
}

void hawk_pace_done(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 bytes,
		    u64 now)
{
	hawk_lock(&p->lock);
	now = at_time(p, now);
	hawk_assert(bytes <= d->open[kind] - d->left[kind]);
	open_less(p, d, kind, tier, bytes, true);
	uncharge(p, d, kind, bytes, true);
	meter_done(meter_of(p, kind, tier), bytes, true, now);
	if (kind == HAWK_PACE_FLASH)
		meter_done(&d->flash_rate, bytes, true, now);
	hawk_unlock(&p->lock);
}

/* Of what was shared out to it and not taken, @bytes. */
static void give_back(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u64 bytes)
{
	p->charged -= bytes;
	p->credit += bytes;
	p->flash_charged -= kind == HAWK_PACE_FLASH ? bytes : 0;
	d->charge[kind] -= bytes;
	d->room[kind] -= bytes;
}

/* Less is left of it: it neither keeps nor waits for more. */
static void want_less(struct hawk_pace *p, struct hawk_delivery *d, u32 kind)
{
	if (d->room[kind] > d->left[kind])
		give_back(p, d, kind, d->room[kind] - d->left[kind]);
	d->want[kind] = least(d->want[kind], d->left[kind] - d->room[kind]);
	if (d->want[kind] && d->want[kind] < to_unit(d, kind))
		d->want[kind] = 0;
	if (!d->want[HAWK_PACE_FLASH] && !d->want[HAWK_PACE_DRAM])
		link_del(p, d);
}

void hawk_pace_skip(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 bytes,
		    bool taken, u64 now)
{
	hawk_lock(&p->lock);
	now = at_time(p, now);
	if (taken) {
		hawk_assert(bytes <= d->open[kind] - d->left[kind]);
		uncharge(p, d, kind, bytes, false);
		meter_done(meter_of(p, kind, tier), bytes, false, now);
		if (kind == HAWK_PACE_FLASH)
			meter_done(&d->flash_rate, bytes, false, now);
	} else {
		hawk_assert(bytes <= d->left[kind]);
		d->left[kind] -= bytes;
		if (kind == HAWK_PACE_FLASH)
			d->left_tier[tier] -= bytes;
		want_less(p, d, kind);
	}
	open_less(p, d, kind, tier, bytes, false);
	share_out(p);
	hawk_unlock(&p->lock);
}

void hawk_pace_begin(struct hawk_pace *p, struct hawk_delivery *d,
		     const struct hawk_pace_load *load, struct hawk_pace_counts *counts, u64 now)
{
	u32 t;

	memset(d, 0, sizeof(*d));
	d->load = *load;
	d->counts = counts;
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		d->left_tier[t] = load->flash[t];
		d->open_tier[t] = load->flash[t];
		d->flash += load->flash[t];
	}
	d->left[HAWK_PACE_DRAM] = load->dram;
	d->left[HAWK_PACE_FLASH] = d->flash;
	d->open[HAWK_PACE_DRAM] = load->dram;
	d->open[HAWK_PACE_FLASH] = d->flash;
	hawk_lock(&p->lock);
	d->token_at = at_time(p, now);
	for (t = 0; t < HAWK_TIERS_MAX; t++)
		hawk_store(&p->left_tier[t], p->left_tier[t] + load->flash[t]);
	p->left_dram += load->dram;
	if (load->link)
		p->left_link += load->dram + d->flash;
	p->active++;
	if (d->flash)
		hawk_first_look(p, d);
	hawk_unlock(&p->lock);
}


/* What it has under way ends unseen: it may still pass the link. */
static void end_open(struct hawk_pace *p, struct hawk_delivery *d, u64 now)
{
	u64 out;
	u32 k, t;

	for (k = 0; k < HAWK_PACE_KINDS; k++)
		give_back(p, d, k, d->room[k]);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		out = d->open_tier[t] - d->left_tier[t];
		if (out) {
			uncharge(p, d, HAWK_PACE_FLASH, out, true);
			meter_done(&p->tier[t], out, false, now);
		}
		open_less(p, d, HAWK_PACE_FLASH, t, d->open_tier[t], false);
	}
	out = d->open[HAWK_PACE_DRAM] - d->left[HAWK_PACE_DRAM];
	if (out) {
		uncharge(p, d, HAWK_PACE_DRAM, out, true);
		meter_done(&p->dram, out, false, now);
	}
	open_less(p, d, HAWK_PACE_DRAM, 0, d->open[HAWK_PACE_DRAM], false);
	hawk_assert(!d->charge[HAWK_PACE_DRAM] && !d->charge[HAWK_PACE_FLASH]);
}

void hawk_pace_end(struct hawk_pace *p, struct hawk_delivery *d, u64 now)
{
	hawk_lock(&p->lock);
	now = at_time(p, now);
	link_del(p, d);
	end_open(p, d, now);
	p->active--;
	if (d->counts && d->load.deadline && now > d->load.deadline)
		hawk_store(&d->counts->late, d->counts->late + 1);
	share_out(p);
	hawk_unlock(&p->lock);
}

/* ---- how long ---- */

u64 hawk_pace_estimate(struct hawk_pace *p, const struct hawk_pace_load *load, u64 now)
{
	u64 ns = 0, sum = load->dram;
	u32 t;

	hawk_lock(&p->lock);
	at_time(p, now);
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		sum = add(sum, load->flash[t]);
		if (load->flash[t])
			ns = most(ns, ns_for(add(p->left_tier[t], load->flash[t]), hawk_pace_tier_rate(p, t)));
	}
	if (load->dram)
		ns = most(ns, ns_for(add(p->left_dram, load->dram), dram_rate(p)));
	if (load->link && p->tune.on)
		ns = most(ns, ns_for(add(p->left_link, sum), p->rate));
	hawk_unlock(&p->lock);
	return ns;
}

bool hawk_pace_in_time(struct hawk_pace *p, const struct hawk_pace_load *load,
		       struct hawk_pace_counts *counts, u64 now)
{
	bool ok = add(now, hawk_pace_estimate(p, load, now)) <= load->deadline;

	if (ok || !counts)
		return ok;
	hawk_lock(&p->lock);
	hawk_store(&counts->refused, counts->refused + 1);
	hawk_unlock(&p->lock);
	return false;
}

/* ---- what the operator sets ---- */

int hawk_pace_tune(struct hawk_pace *p, const struct hawk_pace_tune *t)
{
	u32 i;

	for (i = 0; i < HAWK_TIERS_MAX; i++)
		if (t->flash_mb_per_s[i] > HAWK_PACE_MB_MAX)
			return -EINVAL;
	if (t->epsilon_permille > 1000 || t->link_mb_per_s > HAWK_PACE_MB_MAX ||
	    t->dram_mb_per_s > HAWK_PACE_MB_MAX || !t->cap_percent || t->cap_percent > 100 ||
	    t->quantum_bytes < HAWK_PACE_QUANTUM_MIN || t->quantum_bytes > HAWK_PACE_QUANTUM_MAX)
		return -EINVAL;
	hawk_lock(&p->lock);
	p->tune = *t;
	/* 10^6 bytes per second are 10^4 in a window */
	p->window = (u64)t->link_mb_per_s * 100 * t->cap_percent;
	p->rate = hawk_fx_ratio(p->window, HAWK_PACE_WINDOW_NS);
	p->credit = p->window >> CREDIT_SHIFT;
	p->quantum = t->quantum_bytes;
	if (p->window)
		p->quantum = least(p->quantum, most(p->window >> 6, HAWK_FRAME_ALIGN));
	hawk_unlock(&p->lock);
	return 0;
}

void hawk_pace_tuned(struct hawk_pace *p, struct hawk_pace_tune *t, struct hawk_pace_measured *m)
{
	u32 i;

	hawk_lock(&p->lock);
	*t = p->tune;
	if (m) {
		m->dram_mb_per_s = mb_of(p->dram.rate);
		for (i = 0; i < HAWK_TIERS_MAX; i++)
			m->flash_mb_per_s[i] = mb_of(p->tier[i].rate);
		m->link_window_bytes = p->window;
		m->deliveries = p->active;
	}
	hawk_unlock(&p->lock);
}

void hawk_pace_new_tier(struct hawk_pace *p, u32 tier)
{
	struct hawk_meter *m = &p->tier[tier];

	hawk_lock(&p->lock);
	p->tune.flash_mb_per_s[tier] = 0;
	/* the last bytes of the old one may still be about to be told: they stay counted */
	*m = (struct hawk_meter){ .since = m->since, .out = m->out };
	p->first_at[tier] = 0;
	hawk_unlock(&p->lock);
}

void hawk_pace_init(struct hawk_pace *p)
{
	memset(p, 0, sizeof(*p));
	hawk_lock_init(&p->lock);
	hawk_lock_name(&p->lock, HAWK_LOCK_PACE);
	p->turn.prev = &p->turn;
	p->turn.next = &p->turn;
	p->first.prev = &p->first;
	p->first.next = &p->first;
	p->tune = (struct hawk_pace_tune) {
		.on = true,
		.epsilon_permille = 50,
		.cap_percent = 70,
		.quantum_bytes = 1u << 20,
	};
	p->quantum = p->tune.quantum_bytes;
}

void hawk_pace_fini(struct hawk_pace *p)
{
	hawk_assert(!p->active && !p->charged);
	hawk_lock_fini(&p->lock);
}

struct hawk_pace *hawk_engine_pace(struct hawk_engine *e)
{
	return &e->pace;
}
