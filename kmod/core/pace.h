/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * pace.h - how fast bytes are brought to an accelerator, and when they will be there
 *
 * A *delivery* brings blocks from DRAM and flash through a link, such as a gather, or from
 * flash into memory.  For each transfer, or piece of one, its host asks hawk_pace_take(),
 * starts what it got, and says hawk_pace_done() when it has ended:
 *
 *	hawk_pace_begin(p, d, &load, counts, now)
 *	got = hawk_pace_take(p, d, HAWK_PACE_FLASH, tier, unit, want, now, &wait)
 *	got = hawk_pace_take(p, d, HAWK_PACE_DRAM, 0, unit, want, now, &wait)
 *		0: sleep for @wait ns at most, or until a transfer has ended, and ask again
 *	hawk_pace_done(p, d, kind, tier, bytes, now)	for all that was taken
 *	hawk_pace_end(p, d, now)			at any point
 *
 * Flash is to be asked for first: it gets all it wants unless the link is the bottleneck, or
 * somebody is urgent.  pace.c and pacefirst.c tell how it is shared out.
 */
#ifndef HAWK_CORE_PACE_H
#define HAWK_CORE_PACE_H

#include "fixed.h"
#include "lid.h"

struct hawk_engine;
struct hawk_space;

#define HAWK_PACE_WINDOW_NS	10000000u	/* the link's cap holds in every window so long */
#define HAWK_PACE_WAIT_NS	250000u		/* nobody is told to wait for less, ns */
#define HAWK_PACE_SLOT_SHIFT	17		/* what ended is kept in slots of 2^17 ns */
#define HAWK_PACE_SLOTS		78		/* of these that a window may touch, and one more */
#define HAWK_PACE_QUANTUM_MIN	65536u
#define HAWK_PACE_QUANTUM_MAX	(1u << 30)
#define HAWK_PACE_MB_MAX	100000000u	/* of a bandwidth, 10^6 bytes per second */

enum hawk_pace_kind {
	HAWK_PACE_FLASH,	/* read from a flash tier */
	HAWK_PACE_DRAM,		/* copied from a host tier */
	HAWK_PACE_KINDS,
};

/**
 * struct hawk_pace_tune - what the operator may set
 * @on: false: nobody waits, bandwidths are measured all the same
 * @epsilon_permille: how much faster than flash DRAM may be, 0..1000
 * @link_mb_per_s: bandwidth of the link, 10^6 bytes per second; 0: no cap
 * @cap_percent: of it that all deliveries together may use, 1..100
 * @quantum_bytes: that a delivery gets before it is the next one's turn, but no more than a
 *	64th of the window; HAWK_PACE_QUANTUM_MIN..HAWK_PACE_QUANTUM_MAX
 * @dram_mb_per_s: bandwidth of DRAM, 0: as measured
 * @flash_mb_per_s: bandwidth of flash tiers, likewise
 */
struct hawk_pace_tune {
	bool on;
	u32 epsilon_permille;
	u32 link_mb_per_s;
	u32 cap_percent;
	u32 quantum_bytes;
	u32 dram_mb_per_s;
	u32 flash_mb_per_s[HAWK_TIERS_MAX];
};

/**
 * struct hawk_pace_load - what a delivery has to bring
 * @dram: bytes from host tiers
 * @flash: bytes from each flash tier
 * @deadline: time when all shall be there, ns; 0: none
 * @link: it goes through the link, so that the cap counts
 * @urgent: before those that are not, on the link and on the drives
 */
struct hawk_pace_load {
	u64 dram;
	u64 flash[HAWK_TIERS_MAX];
	u64 deadline;
	bool link;
	bool urgent;
};

/**
 * struct hawk_pace_counts - what pacing has done to some deliveries; written under the
 *	pace's lock, read without it
 * @waits: times that one was told to wait
 * @wait_ns: nanoseconds that they did
 * @link_waits: of @waits those for the cap of the link
 * @late: deliveries that ended after their deadline
 * @refused: that did not begin because they would have
 */
struct hawk_pace_counts {
	u64 waits;
	u64 wait_ns;
	u64 link_waits;
	u64 late;
	u64 refused;
};

/*
 * A bandwidth, from what ended while something was under way: both sums fade with the
 * busy time, so what the drive did in the last tenths of a second counts.
 */
struct hawk_meter {
	u64 rate;		/* bytes per ns, Q32.32; 0: not known yet */
	u64 bytes;		/* fading */
	u64 ns;			/* busy time, fading alike */
	u64 new_bytes;		/* not in @bytes yet */
	u64 new_ns;
	u64 since;		/* busy time is counted up to here */
	u64 out;		/* bytes under way */
	bool held;		/* by the link, since the last sample: that is too low */
};

/* Links of a ring of deliveries. */
struct hawk_pace_link {
	struct hawk_pace_link *prev, *next;
};

/*
 * A delivery; the host keeps it from hawk_pace_begin() to hawk_pace_end() and looks at
 * nothing in it.  Guarded by hawk_pace.lock.
 */
struct hawk_delivery {
	struct hawk_pace_link wait;	/* for room on the link; prev NULL: it does not */
	struct hawk_pace_load load;
	struct hawk_pace_counts *counts;
	u64 left[HAWK_PACE_KINDS];	/* not taken yet; flash: of all tiers */
	u64 left_tier[HAWK_TIERS_MAX];	/* of flash by tier */
	u64 open[HAWK_PACE_KINDS];	/* not ended yet, @left among them */
	u64 open_tier[HAWK_TIERS_MAX];
	u64 flash;			/* bytes from all flash tiers */
	u64 charge[HAWK_PACE_KINDS];	/* bytes of the link's window that it holds */
	u64 want[HAWK_PACE_KINDS];	/* it could use, and has not got */
	u64 unit[HAWK_PACE_KINDS];
	u64 room[HAWK_PACE_KINDS];	/* of @charge: shared out to it, not taken yet */
	u64 refused_at[HAWK_PACE_KINDS];	/* since when it waits, ns; 0: it does not */
	u64 deficit;			/* that it may still have this turn */
	u64 tokens;			/* bytes of DRAM that it may take */
	u64 token_at;			/* @tokens counts up to here, ns */
	u64 capped_at;			/* when the link last held its DRAM up, ns; 0: never */
	struct hawk_meter flash_rate;	/* of its own reads */
	bool turn;			/* it has had its quantum for this turn */
	bool first;			/* on the ring of the urgent ones */
	bool ahead;			/* others leave the drives to it */
};

/* The deliveries of a device, and what is known of its bandwidths. */
struct hawk_pace {
	struct hawk_lock lock;	/* guards all below */
	struct hawk_pace_tune tune;
	u64 now;		/* latest time told, ns */
	u64 window;		/* bytes that may pass the link per HAWK_PACE_WINDOW_NS; 0: no cap */
	u64 quantum;		/* of a turn, bytes */
	u64 rate;		/* the same in bytes per ns, Q32.32 */
	s64 credit;		/* bytes that may pass now, as far as the rate goes; or debt */
	u64 credit_at;		/* @credit counts up to here, ns */
	u64 charged;		/* of @window: taken or shared out, and not ended */
	u64 flash_charged;	/* of @charged from flash */
	u64 ended;		/* sum of @slot */
	u64 slot[HAWK_PACE_SLOTS];	/* bytes that ended, by time */
	u64 slot_at;		/* number of the latest slot, since time 0 */
	u64 left_tier[HAWK_TIERS_MAX];	/* of all deliveries: bytes that have not ended */
	u64 left_dram;
	u64 left_link;
	u32 active;		/* deliveries */
	u32 nwaiting;		/* of these on @turn */
	u64 first_run;		/* bytes that urgent ones got while others wait */
	u64 first_at[HAWK_TIERS_MAX];	/* when somebody urgent read from there last, ns; 0: never */
	u64 first_tier[HAWK_TIERS_MAX];	/* of @left_tier what urgent ones wait for */
	u64 first_share[HAWK_TIERS_MAX];	/* of these what has ended, for others to follow */
	struct hawk_meter dram;
	struct hawk_meter tier[HAWK_TIERS_MAX];
	struct hawk_pace_link turn;	/* those that wait, the next one first */
	struct hawk_pace_link first;	/* urgent ones that do */
};

/**
 * struct hawk_pace_measured - what is known of bandwidths
 * @dram_mb_per_s: of copying from DRAM, 10^6 bytes per second; 0: not known
 * @flash_mb_per_s: of reading, by tier, likewise
 * @link_window_bytes: that may pass the link in HAWK_PACE_WINDOW_NS, 0: no cap
 * @deliveries: under way
 */
struct hawk_pace_measured {
	u32 dram_mb_per_s;
	u32 flash_mb_per_s[HAWK_TIERS_MAX];
	u64 link_window_bytes;
	u32 deliveries;
};

/**
 * hawk_engine_pace() - the deliveries of a device
 * @e: the engine
 *
 * Return: ready for use, tuned as hawk_pace_init() does.
 */
struct hawk_pace *hawk_engine_pace(struct hawk_engine *e);

/**
 * hawk_pace_init() - begin
 * @p: the pace; nothing is measured, epsilon 50 permille, no link, a cap of 70 percent,
 *	quantum 1 MiB, on
 */
void hawk_pace_init(struct hawk_pace *p);

/**
 * hawk_pace_fini() - end
 * @p: no delivery is under way
 */
void hawk_pace_fini(struct hawk_pace *p);

/**
 * hawk_pace_tune() - set what the operator may
 * @p: the pace
 * @t: all of it; comes into force at once, for those under way too
 *
 * Return: 0, or -EINVAL: a value is out of range, nothing has changed.
 */
int hawk_pace_tune(struct hawk_pace *p, const struct hawk_pace_tune *t);

/**
 * hawk_pace_tuned() - what is in force
 * @p: the pace
 * @t: out
 * @m: out, measured bandwidths; or NULL
 */
void hawk_pace_tuned(struct hawk_pace *p, struct hawk_pace_tune *t,
		     struct hawk_pace_measured *m);

/**
 * hawk_pace_new_tier() - another drive has this tier id from now on
 * @p: the pace
 * @tier: its id
 *
 * What was measured of the one before, and set for it, is forgotten.  Who reads the tuning,
 * changes and sets it must not do so meanwhile.
 */
void hawk_pace_new_tier(struct hawk_pace *p, u32 tier);

/**
 * hawk_pace_begin() - a delivery begins
 * @p: the pace
 * @d: the delivery, need not be initialised
 * @load: what it brings; is copied
 * @counts: where to count what happens to it, such as its space's; or NULL
 * @now: monotonic time, ns
 */
void hawk_pace_begin(struct hawk_pace *p, struct hawk_delivery *d,
		     const struct hawk_pace_load *load, struct hawk_pace_counts *counts, u64 now);

/**
 * hawk_pace_take() - how much may be transferred now
 * @p: the pace
 * @d: a delivery that has begun
 * @kind: enum hawk_pace_kind
 * @tier: the flash tier; ignored for HAWK_PACE_DRAM
 * @unit: what is got is a multiple of it, bytes, more than 0
 * @want: bytes that could be transferred, a multiple of @unit and no more than is left of
 *	what was announced: what is beyond is not granted
 * @now: monotonic time, ns
 * @wait_ns: out, with 0: when to ask again, ns from now, HAWK_PACE_WAIT_NS or more
 *
 * What is got is to be started at once, and to be told hawk_pace_done().  A @unit larger
 * than the link's window passes alone.  Bounded work; never sleeps.
 * Return: bytes, @want at most; 0: none now.
 */
u64 hawk_pace_take(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 unit,
		   u64 want, u64 now, u64 *wait_ns);

/**
 * hawk_pace_done() - something that was taken has been transferred, or failed
 * @p: the pace
 * @d: its delivery
 * @kind: enum hawk_pace_kind
 * @tier: the flash tier
 * @bytes: that were taken
 * @now: when, monotonic time, ns
 */
void hawk_pace_done(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 bytes,
		    u64 now);

/**
 * hawk_pace_skip() - something will not be transferred
 * @p: the pace
 * @d: its delivery
 * @kind: enum hawk_pace_kind
 * @tier: the flash tier
 * @bytes: that were announced, or taken
 * @taken: they were taken and have not begun; they count for no bandwidth
 * @now: monotonic time, ns
 */
void hawk_pace_skip(struct hawk_pace *p, struct hawk_delivery *d, u32 kind, u32 tier, u64 bytes,
		    bool taken, u64 now);

/**
 * hawk_pace_end() - a delivery has ended, or will not go on
 * @p: the pace
 * @d: the delivery; not touched any more, the host may free it
 * @now: monotonic time, ns
 *
 * What it held is given back.  What it has taken and not ended is charged to the link for
 * one window from now on, as if it ended now, and counts for no bandwidth.
 */
void hawk_pace_end(struct hawk_pace *p, struct hawk_delivery *d, u64 now);

/**
 * hawk_pace_estimate() - how long would a delivery take
 * @p: the pace
 * @load: what it would bring; @load->deadline is ignored
 * @now: monotonic time, ns
 *
 * By the bandwidths measured, behind all that is under way.  What is not known counts
 * nothing: the first reload of a device is not refused.
 * Return: nanoseconds from now to its last byte.
 */
u64 hawk_pace_estimate(struct hawk_pace *p, const struct hawk_pace_load *load, u64 now);

/**
 * hawk_pace_in_time() - would it end by its deadline
 * @p: the pace
 * @load: what it would bring, with a deadline
 * @counts: where a refusal is counted, or NULL
 * @now: monotonic time, ns
 *
 * Return: whether hawk_pace_estimate() says so.
 */
bool hawk_pace_in_time(struct hawk_pace *p, const struct hawk_pace_load *load,
		       struct hawk_pace_counts *counts, u64 now);

/**
 * hawk_pace_busy() - do deliveries or reloads wait for a flash tier
 * @p: the pace
 * @tier: the flash tier
 *
 * A hint, without the lock: what is not urgent (promotion) leaves the tier alone then.
 * Return: whether bytes of deliveries are to come from there.
 */
static inline bool hawk_pace_busy(const struct hawk_pace *p, u32 tier)
{
	return hawk_load(&p->left_tier[tier]);
}

/**
 * hawk_space_paced() - where what happens to deliveries of a space is counted
 * @s: the space
 *
 * Return: for hawk_pace_begin(); hawk_space_stats() tells them.
 */
struct hawk_pace_counts *hawk_space_paced(struct hawk_space *s);

/**
 * hawk_space_estimate() - HAWK_IOC_ESTIMATE
 * @s: the space
 * @e: in and out, see there; the host has checked reserved members and @e->count
 * @items: @e->count items; only read
 * @now: monotonic time, ns
 *
 * May sleep.
 * Return: 0; -EINVAL: @e->row; -EOPNOTSUPP: an item has unknown flags.
 */
int hawk_space_estimate(struct hawk_space *s, struct hawk_estimate *e,
			const struct hawk_item *items, u64 now);

/**
 * hawk_space_load() - what bringing some blocks would be
 * @s: the space
 * @items: @n items, by key or LID; only read
 * @n: how many
 * @load: bytes are added; @load->link: those of host tiers too
 *
 * May sleep.
 */
void hawk_space_load(struct hawk_space *s, const struct hawk_item *items, u32 n,
		     struct hawk_pace_load *load);

#endif /* HAWK_CORE_PACE_H */
