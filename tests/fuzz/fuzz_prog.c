// SPDX-License-Identifier: MIT
/*
 * fuzz_prog.c - programs are made up, changed and printed
 *
 * Most of what a call is made of names something that is likely to exist (a LID
 * of a small pool, a tier, a shared name); a part is garbage.  What an argument
 * means is told by the kinds of its ioctl number.  Calls that only succeed one
 * after the other come as scenes, which mutation then takes apart.
 */
#include <string.h>

#include <linux/hawk.h>

#include "hawk_fuzz.h"

uint64_t rnd(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint32_t below(uint64_t *state, uint32_t n)
{
	return rnd(state) % n;
}

static bool one_in(uint64_t *state, uint32_t n)
{
	return !below(state, n);
}

/* Kinds of arguments. */
enum kind {
	K_NONE, K_TIER, K_LID, K_KEY, K_COUNT, K_BATCH_FLAGS, K_ITEM_FLAGS, K_NAME, K_DEADLINE,
	K_SHAPE, K_QUOTA, K_ENTRIES, K_EVENTFD, K_BYTES, K_PATH, K_TIER_KIND, K_NODE, K_LEASE,
	K_BIT, K_SLOT, K_ANY,
};

#define NR(_cmd)	[_IOC_NR(_cmd)]
#define BATCH_KINDS	{ K_BATCH_FLAGS, K_COUNT, K_LID, K_KEY, K_TIER, K_ITEM_FLAGS }

static const uint8_t kinds[FUZZ_NR_MAX][FUZZ_ARGS] = {
	NR(HAWK_IOC_TIER_ADD) = { K_TIER_KIND, K_NODE, K_BYTES, K_PATH, K_BIT, K_ANY },
	NR(HAWK_IOC_TIER_REMOVE) = { K_TIER, K_BIT },
	NR(HAWK_IOC_TIER_INFO) = { K_TIER },
	NR(HAWK_IOC_TIER_ADMIT) = { K_TIER, K_BIT, K_COUNT, K_BYTES, K_DEADLINE, K_BYTES },
	NR(HAWK_IOC_SPACE_CREATE) = { K_SHAPE, K_NAME, K_QUOTA, K_QUOTA, K_BIT, K_ANY },
	NR(HAWK_IOC_SPACE_ATTACH) = { K_NAME, K_BIT, K_SLOT },
	NR(HAWK_IOC_SPACE_SET) = { K_NAME, K_COUNT, K_ANY, K_DEADLINE },
	NR(HAWK_IOC_PIN_QUERY) = { K_COUNT, K_LID, K_BIT },
	NR(HAWK_IOC_CANCEL) = { K_BIT, K_LID },
	NR(HAWK_IOC_EXPORT) = { K_ITEM_FLAGS, K_COUNT, K_LID, K_SLOT },
	NR(HAWK_IOC_EXPORT_REVOKE) = { K_LEASE, K_DEADLINE },
	NR(HAWK_IOC_FRAME_INFO) = { K_TIER, K_LID },
	NR(HAWK_IOC_DRAFT_OPEN) = { K_BIT, K_SLOT, K_COUNT },
	NR(HAWK_IOC_DRAFT_CLOSE) = { K_SLOT },
	NR(HAWK_IOC_GATHER) = { K_ITEM_FLAGS, K_COUNT, K_LID, K_COUNT, K_BIT, K_DEADLINE },
	NR(HAWK_IOC_SEQ) = { K_LID, K_COUNT, K_LID, K_SLOT, K_COUNT, K_ITEM_FLAGS },
	NR(HAWK_IOC_SEQ_MAP) = { K_NONE, K_COUNT, K_LID },
	NR(HAWK_IOC_ELASTIC) = { K_BIT, K_BIT, K_COUNT, K_COUNT, K_COUNT, K_COUNT },
	NR(HAWK_IOC_ESTIMATE) = { K_BIT, K_COUNT, K_LID, K_COUNT, K_ITEM_FLAGS, K_ANY },
	NR(HAWK_IOC_PHASE) = { K_BIT, K_DEADLINE },
	NR(HAWK_IOC_SPACE_DESTROY) = { K_NAME },
	NR(HAWK_IOC_RING_SETUP) = { K_ENTRIES, K_EVENTFD },
	NR(HAWK_IOC_ALLOC) = BATCH_KINDS,
	NR(HAWK_IOC_PUT) = BATCH_KINDS,
	NR(HAWK_IOC_LOOKUP) = BATCH_KINDS,
	NR(HAWK_IOC_PIN) = BATCH_KINDS,
	NR(HAWK_IOC_UNPIN) = BATCH_KINDS,
	NR(HAWK_IOC_GET) = BATCH_KINDS,
	NR(HAWK_IOC_RELOAD) = BATCH_KINDS,
	NR(HAWK_IOC_FORK) = BATCH_KINDS,
	NR(HAWK_IOC_UNSHARE) = BATCH_KINDS,
	NR(HAWK_IOC_FREE) = BATCH_KINDS,
	NR(HAWK_IOC_TRANSLATE) = BATCH_KINDS,
	NR(HAWK_IOC_LEASE_RELEASE) = { K_LEASE },
};

/* Numbers at which things change. */
static uint64_t edge_value(uint64_t *state)
{
	static const uint64_t v[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 63, 64, 127, 128, 255, 256, 511, 512, 4095, 4096,
		4097, 65535, 65536, 1ull << 20, 2ull << 20, (2ull << 20) - 1, 1ull << 31,
		0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 43, 1ull << 44, 1ull << 62,
		1ull << 63, ~0ull >> 1, ~0ull, ~0ull - 1, ~0ull - 4095,
	};

	return one_in(state, 8) ? rnd(state) : v[below(state, sizeof(v) / sizeof(v[0]))];
}

static uint64_t flag_bits(uint64_t *state, uint32_t bits)
{
	uint64_t v = 0;

	if (one_in(state, 32))
		return edge_value(state);
	while (one_in(state, 2))
		v |= 1u << below(state, bits);
	return v;
}

static uint64_t arg_new(uint64_t *state, enum kind kind)
{
	if (one_in(state, 24))
		return edge_value(state);
	switch (kind) {
	case K_TIER: return one_in(state, 2) ? HAWK_TIER_ANY : below(state, 9);
	case K_LID: return below(state, 96);
	case K_KEY: return below(state, 96);
	case K_COUNT: return one_in(state, 8) ? 1 + below(state, 96) : 1 + below(state, 8);
	case K_BATCH_FLAGS: return flag_bits(state, 8);
	case K_ITEM_FLAGS: return one_in(state, 2) ? below(state, 2) : below(state, 8);
	case K_NAME: return below(state, 4);
	case K_DEADLINE: return below(state, 3);
	case K_SHAPE: return below(state, 16);
	case K_QUOTA: return below(state, 8);
	case K_ENTRIES: return one_in(state, 8) ? below(state, 200) : 1ull << below(state, 12);
	case K_EVENTFD: return below(state, 4);
	case K_BYTES: return (1ull + below(state, 2)) << 21;
	case K_PATH: return below(state, 8);
	case K_TIER_KIND:
		return one_in(state, 3) ? HAWK_TIER_DMABUF :
					  1 + below(state, 2 + one_in(state, 8) * 4);
	case K_NODE: return below(state, 3) - 1;
	case K_LEASE: return 1 + below(state, 8);
	case K_BIT: return one_in(state, 8);
	case K_SLOT: return below(state, FUZZ_SLOTS);
	case K_ANY: return one_in(state, 4) ? edge_value(state) : 0;
	default: return 0;
	}
}

#define NR_LAST	_IOC_NR(HAWK_IOC_PHASE)

/* Numbers that exist, and now and then one that does not. */
static uint8_t nr_new(uint64_t *state)
{
	uint32_t nr;

	if (one_in(state, 64))
		return below(state, FUZZ_NR_MAX);
	if (!one_in(state, 3))
		return _IOC_NR(HAWK_IOC_ALLOC) + below(state, NR_LAST - _IOC_NR(HAWK_IOC_ALLOC) + 1);
	do {
		nr = below(state, _IOC_NR(HAWK_IOC_ALLOC));
	} while (nr > 3 && nr < 8);
	return nr;
}

static uint8_t ptr_new(uint64_t *state)
{
	return one_in(state, 16) ? below(state, PTR_COUNT) : PTR_GOOD;
}

static enum fuzz_op op_new(uint64_t *state)
{
	static const uint8_t likely[] = {
		OP_OPEN, OP_OPEN, OP_CLOSE, OP_DUP, OP_SEND, OP_RECV, OP_MMAP, OP_MMAP, OP_MMAP,
		OP_MUNMAP, OP_TOUCH, OP_TOUCH, OP_POLL, OP_FILE,
	};

	if (one_in(state, 512))
		return OP_FORK;
	return one_in(state, 4) ? likely[below(state, sizeof(likely))] : OP_IOCTL;
}

/* Tiers come and go by few: most calls should find some. */
static bool nr_wanted(uint64_t *state, uint8_t nr, bool admin)
{
	bool tiers = nr == _IOC_NR(HAWK_IOC_TIER_ADD) || nr == _IOC_NR(HAWK_IOC_TIER_REMOVE);

	return !tiers || (admin ? one_in(state, 2) : one_in(state, 8));
}

static void call_new(struct fuzz_call *c, uint64_t *state, bool admin)
{
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->op = op_new(state);
	c->slot = one_in(state, 3) ? below(state, FUZZ_SLOTS) : 0;
	if (c->op != OP_IOCTL) {
		c->nr = below(state, 16);
		for (i = 0; i < FUZZ_ARGS; i++)
			c->a[i] = one_in(state, 6) ? edge_value(state) : below(state, 8);
		return;
	}
	do {
		c->nr = nr_new(state);
	} while (!nr_wanted(state, c->nr, admin));
	c->ptr = ptr_new(state);
	c->items = ptr_new(state);
	c->size = one_in(state, 24) ? 1 + below(state, 15) : 0;
	for (i = 0; i < FUZZ_ARGS; i++)
		c->a[i] = arg_new(state, kinds[c->nr][i]);
	if (one_in(state, 16)) {
		c->raw_at = 4 * below(state, 64);
		c->raw_bytes = one_in(state, 2) ? 4 : 8;
		c->raw = edge_value(state);
	}
}

/* A step of a scene: a call of the batch kind for the scene's blocks. */
struct scene_call {
	unsigned long cmd;
	uint32_t flags;
	uint32_t item_flags;	/* 1 by key, 2 with key */
};

#define SCENE_CALLS	6

#define S(_cmd, _flags, _item_flags)	{ HAWK_IOC_##_cmd, _flags, _item_flags }
#define ASYNC	HAWK_BATCH_ASYNC

static const struct scene_call scenes[][SCENE_CALLS] = {
	{ S(ALLOC, 0, 0), S(PUT, 0, 2), S(GET, 0, 1), S(UNPIN, 0, 0) },
	{ S(ALLOC, 0, 0), S(PUT, HAWK_BATCH_KEEP_PIN, 0), S(UNPIN, 0, 0) },
	{ S(ALLOC, 0, 2), S(PUT, 0, 2), S(FORK, 0, 0), S(PIN, 0, 0), S(UNSHARE, 0, 0),
	  S(PUT, 0, 0) },
	{ S(LOOKUP, HAWK_BATCH_LEASE, 1), S(LEASE_RELEASE, 0, 0), S(FREE, 0, 1) },
	{ S(RELOAD, ASYNC, 1), S(GET, ASYNC, 0), S(UNPIN, 0, 0) },
	{ S(ALLOC, 0, 0), S(PUT, 0, 2), S(EXPORT, HAWK_EXPORT_REVOCABLE, 0), S(GET, 0, 1),
	  S(EXPORT_REVOKE, 1, 0), S(UNSHARE, 0, 0) },
	{ S(ALLOC, 0, 0), S(PUT, 0, 2), S(GATHER, 0, 0), S(FREE, 0, 0), S(GATHER, ASYNC, 0),
	  S(CANCEL, 1, 0) },
	{ S(ALLOC, 0, 0), S(PUT, 0, 2), S(ESTIMATE, 0, 1), S(RELOAD, HAWK_BATCH_URGENT, 1),
	  S(GATHER, HAWK_BATCH_URGENT | ASYNC, 0), S(PHASE, HAWK_PHASE_PREFILL, 0) },
	{ S(FREE, 0, 0), S(ALLOC, HAWK_BATCH_NOWAIT, 0), S(PUT, 0, 2),
	  S(GET, HAWK_BATCH_PREFIX, 1), S(TRANSLATE, 0, 0) },
};

/* Return: calls written at @c, @room at most. */
static uint32_t scene_new(struct fuzz_call *c, uint32_t room, uint64_t *state)
{
	const struct scene_call *s = scenes[below(state, sizeof(scenes) / sizeof(scenes[0]))];
	uint64_t count = one_in(state, 4) ? 32 + below(state, 33) : 1 + below(state, 8);
	uint64_t lid = below(state, 96), slot = one_in(state, 4) ? below(state, FUZZ_SLOTS) : 0;
	uint32_t n;

	for (n = 0; n < room && n < SCENE_CALLS && s[n].cmd; n++) {
		c[n] = (struct fuzz_call){
			.op = OP_IOCTL, .slot = slot, .nr = _IOC_NR(s[n].cmd),
			.a = { s[n].flags, count, lid, lid, HAWK_TIER_ANY, s[n].item_flags },
		};
		if (s[n].cmd == HAWK_IOC_LEASE_RELEASE)
			c[n].a[0] = 1;
		if (s[n].cmd == HAWK_IOC_GATHER)
			c[n].a[4] = c[n].a[5] = 0;
	}
	return n;
}

void prog_new(struct fuzz_prog *p, uint64_t *state, bool admin)
{
	uint32_t i;

	memset(p, 0, sizeof(*p));
	/* A space of its own takes longer to make than all the calls together. */
	p->start = one_in(state, 8) ? START_EMPTY : one_in(state, 4) ? START_OWN : START_SHARED;
	p->n = 8 + below(state, FUZZ_CALLS_MAX - 7);
	for (i = 0; i < p->n; i++) {
		if (one_in(state, 6))
			i += scene_new(&p->call[i], p->n - i, state) - 1;
		else
			call_new(&p->call[i], state, admin);
	}
}

static void call_mutate(struct fuzz_call *c, uint64_t *state)
{
	uint32_t i = below(state, FUZZ_ARGS);

	switch (below(state, 6)) {
	case 0:
		c->ptr = below(state, PTR_COUNT);
		break;
	case 1:
		c->items = below(state, PTR_COUNT);
		break;
	case 2:
		c->slot = below(state, FUZZ_SLOTS);
		break;
	case 3:
		c->raw_at = 4 * below(state, 64);
		c->raw_bytes = one_in(state, 3) ? 0 : one_in(state, 2) ? 4 : 8;
		c->raw = edge_value(state);
		break;
	default:
		c->a[i] = c->op == OP_IOCTL ? arg_new(state, kinds[c->nr % FUZZ_NR_MAX][i]) :
					      edge_value(state);
	}
}

/* One to four changes; @other gives calls away. */
void prog_mutate(struct fuzz_prog *p, uint64_t *state, bool admin, const struct fuzz_prog *other)
{
	uint32_t changes = 1 + below(state, 4), i;

	while (changes--) {
		i = below(state, p->n);
		switch (below(state, 8)) {
		case 0:
			if (p->n == FUZZ_CALLS_MAX)
				break;
			memmove(&p->call[i + 1], &p->call[i], (p->n - i) * sizeof(p->call[0]));
			call_new(&p->call[i], state, admin);
			p->n++;
			break;
		case 1:
			if (p->n == 1)
				break;
			p->n--;
			memmove(&p->call[i], &p->call[i + 1], (p->n - i) * sizeof(p->call[0]));
			break;
		case 2:
			call_new(&p->call[i], state, admin);
			break;
		case 3:
			p->call[i] = other->call[below(state, other->n)];
			break;
		case 4:
			scene_new(&p->call[i], p->n - i, state);
			break;
		default:
			call_mutate(&p->call[i], state);
		}
	}
}

void prog_print(FILE *to, const struct fuzz_prog *p)
{
	uint32_t i, k;

	fprintf(to, "start %u\n", p->start);
	for (i = 0; i < p->n; i++) {
		const struct fuzz_call *c = &p->call[i];

		fprintf(to, "  op %u slot %u nr %#x ptr %u items %u size %u raw %#llx at %u/%u args",
			c->op, c->slot, c->nr, c->ptr, c->items, c->size,
			(unsigned long long)c->raw, c->raw_at, c->raw_bytes);
		for (k = 0; k < FUZZ_ARGS; k++)
			fprintf(to, " %#llx", (unsigned long long)c->a[k]);
		fputc('\n', to);
	}
}
