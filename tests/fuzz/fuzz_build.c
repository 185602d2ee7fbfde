// SPDX-License-Identifier: MIT
/*
 * fuzz_build.c - the structure that an ioctl is given
 *
 * Memory that would take long to get (huge tiers, huge spaces) is the one thing
 * that programs do not get, because the machine is small.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/hawk.h>

#include "hawk_fuzz.h"

#define CHUNK	((uint64_t)HAWK_CHUNK_BYTES)

/* LIDs of a small pool, some of a token in the middle of a block; else as it is. */
static uint64_t fuzz_lid(uint64_t n)
{
	if (n >= 256)
		return n;
	return HAWK_LID(1 + n / 48, n / 24 % 2, 0, n % 24 * 16 + (n % 5 ? 0 : 3));
}

void build_name(uint8_t *name, uint64_t n)
{
	if (n < 256)
		snprintf((char *)name, HAWK_NAME_MAX, "fuzz%u", (unsigned int)n);
	else
		memset(name, n & 0xff, HAWK_NAME_MAX);
}

static const char *path_of(uint64_t n)
{
	static char buf[512];

	switch (n) {
	case 0:
	case 1: return world.setup->flash;
	case 2:
	case 3:
		snprintf(buf, sizeof(buf), "%s/fuzz-more", world.setup->dir);
		return buf;
	case 4: return world.setup->dir;
	case 5: return "/dev/null";
	case 6: return "/proc/self/mem";
	default: return "nowhere";
	}
}

static size_t build_tier_add(struct hawk_tier_add *s, const struct fuzz_call *c)
{
	const char *path = path_of(c->a[3]);

	s->kind = c->a[0];
	s->node = c->a[1];
	s->bytes = c->a[2];
	if (s->kind == HAWK_TIER_DMABUF) {
		s->node = -1;
		s->fd = c->a[4] ? (int)c->a[5] : world.setup->buf;
		return sizeof(*s);
	}
	if (s->kind != HAWK_TIER_HOST) {
		s->node = -1;
		s->path_len = strlen(path) + (c->a[4] ? 0 : 1);
		s->path = place_items(c, path, strlen(path) + 1);
		s->flags = c->a[5] & HAWK_TIER_PERSIST;
		if (c->a[5] & 2)
			s->bytes = 0;	/* as a pool wants it */
	}
	return sizeof(*s);
}

static size_t build_tier_admit(struct hawk_tier_admit *s, const struct fuzz_call *c)
{
	s->tier = c->a[0];
	s->flags = c->a[1];
	s->mode = c->a[2] % 6;
	s->budget_bytes = c->a[3];
	s->period_ns = c->a[4] * 1000000;
	s->rated_bytes = c->a[5];
	return sizeof(*s);
}

size_t build_space_create(struct hawk_space_create *s, const struct fuzz_call *c)
{
	static const uint32_t bytes[] = { 16384, 4096, 65536, HAWK_CHUNK_BYTES };
	uint32_t t;

	s->block_bytes = bytes[c->a[0] & 3];
	s->max_blocks = 16u << (c->a[0] >> 1 & 6);
	s->block_tokens = 16;
	s->layers = 2;
	s->head_groups = 1;
	if (c->a[0] & 8) {
		s->flags = HAWK_SPACE_SHIFT;
		s->seqs = 8;
		s->segs = c->a[0] & 4 ? 40 : 0;
		s->planes = 2;
		s->token_bytes = s->block_bytes / 32;
	}
	s->buckets = c->a[0] & 16 ? 0 : 2;
	if (c->a[4]) {
		s->flags |= HAWK_SPACE_NAMED;
		s->mode = c->a[5] ? c->a[5] : 0666;
		build_name(s->name, c->a[1]);
	}
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(world.tiers & 1u << t))
			continue;
		s->quota[t].max_bytes = c->a[2] * CHUNK;
		s->quota[t].min_bytes = c->a[3] == 7 ? CHUNK : 0;
	}
	return sizeof(*s);
}

static size_t build_ring(struct hawk_ring_setup *s, const struct fuzz_call *c)
{
	static int efd = -1;

	if (efd < 0)
		efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->entries = c->a[0];
	s->eventfd = c->a[1] == 0 ? efd : c->a[1] == 1 ? -1 : c->a[1] == 2 ? 0 : (int)c->a[1];
	return sizeof(*s);
}

static size_t build_attach(struct hawk_space_attach *s, const struct fuzz_call *c)
{
	if (c->a[1]) {
		s->flags = HAWK_ATTACH_FD;
		s->fd = c->a[2] < FUZZ_SLOTS ? world.fd[c->a[2]] : (int)c->a[2];
	} else {
		build_name(s->name, c->a[0]);
	}
	return sizeof(*s);
}

static size_t build_space_set(struct hawk_space_set *s, const struct fuzz_call *c)
{
	build_name(s->name, c->a[0]);
	s->mask = c->a[1] & 3;
	s->mode = c->a[1] & HAWK_SPACE_SET_MODE ? 0666 ^ (c->a[2] & 0222) : 0;
	/* None, a moment, long */
	s->idle_ns = c->a[1] & HAWK_SPACE_SET_IDLE ? c->a[3] * c->a[3] * 1000000 : 0;
	return sizeof(*s);
}

static size_t build_pin_query(struct hawk_pin_query *s, const struct fuzz_call *c)
{
	static uint64_t lids[HAWK_BATCH_MAX];
	uint32_t n = c->a[0] < HAWK_BATCH_MAX ? c->a[0] : HAWK_BATCH_MAX, i;

	for (i = 0; i < n; i++)
		lids[i] = fuzz_lid(c->a[1] + i);
	s->count = c->a[0];
	if (!c->a[2])
		s->lids = place_items(c, lids, n * sizeof(lids[0]));
	return sizeof(*s);
}

static struct hawk_item item_of(const struct fuzz_call *c, uint32_t i)
{
	struct hawk_item it = { .lid = fuzz_lid(c->a[2] + i) };
	uint64_t key = c->a[3] + i;

	if (c->a[5] & 1)
		it.flags = HAWK_ITEM_BY_KEY;
	if (c->a[5] & 3 || c->nr == _IOC_NR(HAWK_IOC_LOOKUP)) {
		memset(it.key, 0xa5, sizeof(it.key));
		memcpy(it.key, &key, sizeof(key));
	}
	if (c->nr == _IOC_NR(HAWK_IOC_FORK))
		it.arg = fuzz_lid(c->a[2] + c->a[3] + i);
	if (c->a[5] & 4) {
		/* By where the block lies, or by where it does not */
		it.lid = c->nr == _IOC_NR(HAWK_IOC_UNPIN) ? 0 : it.lid;
		it.vt = c->raw_bytes ? c->raw : HAWK_VT_VALID | (c->a[3] + i);
		it.arg ^= c->raw & 3;
		it.status = -1;
	}
	return it;
}

static size_t build_batch(struct hawk_batch *s, const struct fuzz_call *c)
{
	static struct hawk_item list[HAWK_BATCH_MAX + 1];
	uint32_t n = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX + 1, i;
	struct timespec ts;

	for (i = 0; i < n; i++)
		list[i] = item_of(c, i);
	s->flags = c->a[0];
	s->count = c->a[1];
	s->user_data = c->a[2];
	s->tier = c->a[4];
	s->items = place_items(c, list, n * sizeof(list[0]));
	if (c->a[5] & 16) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		s->deadline_ns = c->a[5] & 8 ? 1 : ts.tv_sec * 1000000000ull + ts.tv_nsec + 1000000;
	}
	return sizeof(*s);
}

/*
 * The dma-buf takes a slot, where calls find that it is no file of the device, and
 * mmap() that it is.
 */
static size_t build_export(struct hawk_export *s, const struct fuzz_call *c)
{
	static struct hawk_item list[HAWK_BATCH_MAX + 1];
	uint32_t n = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX + 1, i;

	memset(list, 0, n * sizeof(list[0]));
	for (i = 0; i < n; i++)
		list[i].lid = fuzz_lid(c->a[2] + i);
	s->flags = c->a[0];
	s->count = c->a[1];
	s->items = place_items(c, list, n * sizeof(list[0]));
	return sizeof(*s);
}

static size_t build_revoke(struct hawk_export_revoke *s, const struct fuzz_call *c)
{
	/* Never without an end: the importer is this very process */
	s->export_id = c->a[0];
	s->deadline_ns = c->a[1] ? c->a[1] : 1;
	return sizeof(*s);
}

/*
 * The buffer is memory of its own: transfers that a deadline leaves behind still write
 * to it.  Or a mapping of the device.
 */
static size_t build_gather(struct hawk_gather *s, const struct fuzz_call *c)
{
	static const size_t room = 4 << 20;
	static uint32_t words[HAWK_BATCH_MAX];
	static uint64_t lids[HAWK_BATCH_MAX];
	uint32_t n = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX, i;
	static const struct fuzz_call good = { .items = PTR_GOOD };
	static void *buf;
	struct timespec ts;

	if (!buf)
		buf = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < n; i++)
		lids[i] = fuzz_lid(c->a[2] + i % (c->a[3] % 64 + 1));
	memset(words, 0, sizeof(words));
	words[0] = n / 3;
	words[1] = n - n / 3;
	s->flags = c->a[0] & ~2u;
	s->lists = c->a[4] ? c->a[3] : 2;
	s->rows = c->a[1];
	s->counts = place_items(c, words, 64 * sizeof(words[0]));
	s->lids = place_items(&good, lids, n * sizeof(lids[0]));
	s->remap = place_items(c->a[4] ? c : &good, words, n * sizeof(words[0]));
	s->status = place_items(&good, words, n * sizeof(words[0]));
	s->buf = (uintptr_t)buf;
	s->buf_bytes = room;
	if (c->items == PTR_MAPPED && world.map[c->slot].bytes) {
		s->buf = (uintptr_t)world.map[c->slot].at;
		s->buf_bytes = world.map[c->slot].bytes;
	}
	s->user_data = c->a[2];
	if (c->a[5]) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		s->deadline_ns = c->a[5] == 1 ? 1 : ts.tv_sec * 1000000000ull + ts.tv_nsec + 100000;
	}
	return sizeof(*s);
}

/* Sequences of the first few numbers in their first lives, or the one before. */
static uint32_t fuzz_seq(uint64_t n)
{
	return n < 256 ? n % 3 ? HAWK_SEQ_LAST : 1u << 16 | n % 8 : n;
}

/* Operations that follow from one another, so that some of them succeed. */
static size_t build_seq(struct hawk_seq_batch *s, const struct fuzz_call *c)
{
	static struct hawk_seq_op list[HAWK_BATCH_MAX + 1];
	uint32_t n = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX + 1, i;

	memset(list, 0, n * sizeof(list[0]));
	for (i = 0; i < n; i++) {
		struct hawk_seq_op *op = &list[i];
		uint32_t x = (uint32_t)(c->a[0] + i * 7 + c->a[3] * i * i);

		op->op = x % 11;
		op->seq = fuzz_seq(c->a[2] + i);
		switch (op->op) {
		case HAWK_SEQ_APPEND:
		case HAWK_SEQ_RESERVE:
			op->pos = x % 97;
			/* fallthrough */
		case HAWK_SEQ_ADVANCE:
		case HAWK_SEQ_TRUNCATE:
			op->len = c->a[4] < 256 ? c->a[4] + i % 40 : c->a[4];
			break;
		case HAWK_SEQ_COMPOSE:
		case HAWK_SEQ_FORK:
			op->src = fuzz_seq(c->a[3] + i);
			if (op->op == HAWK_SEQ_FORK)
				break;
			/* fallthrough */
		case HAWK_SEQ_DROP:
		case HAWK_SEQ_REPOS:
			op->start = x % 20;
			op->end = op->start + c->a[4];
			op->shift = op->op == HAWK_SEQ_DROP ? 0 : (int32_t)(x % 9) - 4;
		}
		if (c->a[5] & 4)
			op->flags = c->a[5];
	}
	s->count = c->a[1];
	s->ops = place_items(c, list, n * sizeof(list[0]));
	return sizeof(*s);
}

static size_t build_seq_map(struct hawk_seq_map *s, const struct fuzz_call *c)
{
	static struct hawk_seg segs[HAWK_BATCH_MAX];

	s->seq = 1u << 16 | c->a[2] % 8;
	if (c->a[2] >= 256)
		s->seq = c->a[2];
	s->count = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX;
	s->segs = place_items(c, segs, s->count * sizeof(segs[0]));
	return sizeof(*s);
}

static size_t build_elastic(void *buf, const struct fuzz_call *c)
{
	struct hawk_elastic *s = buf;

	s->flags = c->a[0];
	s->on = c->a[1];
	s->keep_free = c->a[2];
	s->alpha_min = c->a[3];
	s->sinks = c->a[4];
	s->window = c->a[5];
	return sizeof(*s);
}

/* As a scene has them: flags, items, LID, items of a row, flags of items, speed. */
static size_t build_estimate(struct hawk_estimate *s, const struct fuzz_call *c)
{
	static struct hawk_item it[HAWK_BATCH_MAX];
	uint32_t n = c->a[1] < HAWK_BATCH_MAX ? c->a[1] : HAWK_BATCH_MAX, i;

	memset(it, 0, n * sizeof(*it));
	for (i = 0; i < n; i++) {
		it[i].lid = fuzz_lid(c->a[2] + i);
		it[i].flags = c->a[4] & HAWK_ITEM_BY_KEY;
		it[i].key[0] = 1 + i;
	}
	s->flags = c->a[0];
	s->count = c->a[1];
	s->row = c->a[3] % 5;
	s->tokens_per_s = c->a[5];
	s->items = place_items(c, it, n * sizeof(*it));
	return sizeof(*s);
}

static size_t build_phase(struct hawk_phase *s, const struct fuzz_call *c)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	s->flags = c->a[0];
	if (c->a[0] & HAWK_PHASE_PREFILL)
		s->until_ns = ts.tv_sec * 1000000000ull + ts.tv_nsec + c->a[1] * 1000000;
	return sizeof(*s);
}

/* The structure of command @c->nr. Return: its own size. */
size_t build_struct(void *buf, const struct fuzz_call *c)
{
	switch (_IO(HAWK_IOC_MAGIC, c->nr)) {
	case HAWK_IOC_QUERY: return sizeof(struct hawk_query);
	case HAWK_IOC_TIER_ADD: return build_tier_add(buf, c);
	case HAWK_IOC_TIER_REMOVE:
		((struct hawk_tier_remove *)buf)->tier = c->a[0];
		((struct hawk_tier_remove *)buf)->flags = c->a[1];
		return sizeof(struct hawk_tier_remove);
	case HAWK_IOC_TIER_INFO:
		((struct hawk_tier_info *)buf)->tier = c->a[0];
		return sizeof(struct hawk_tier_info);
	case HAWK_IOC_TIER_ADMIT: return build_tier_admit(buf, c);
	case HAWK_IOC_SPACE_CREATE: return build_space_create(buf, c);
	case HAWK_IOC_SPACE_ATTACH: return build_attach(buf, c);
	case HAWK_IOC_SPACE_SET: return build_space_set(buf, c);
	case HAWK_IOC_PIN_QUERY: return build_pin_query(buf, c);
	case HAWK_IOC_CANCEL:
		((struct hawk_cancel *)buf)->flags = c->a[0];
		((struct hawk_cancel *)buf)->user_data = c->a[1];
		return sizeof(struct hawk_cancel);
	case HAWK_IOC_SPACE_DESTROY:
		build_name(((struct hawk_space_destroy *)buf)->name, c->a[0]);
		return sizeof(struct hawk_space_destroy);
	case HAWK_IOC_SPACE_INFO: return sizeof(struct hawk_space_info);
	case HAWK_IOC_RING_SETUP: return build_ring(buf, c);
	case HAWK_IOC_STATS: return sizeof(struct hawk_stats);
	case HAWK_IOC_EXPORT: return build_export(buf, c);
	case HAWK_IOC_EXPORT_REVOKE: return build_revoke(buf, c);
	case HAWK_IOC_FRAME_INFO:
		((struct hawk_frame_info *)buf)->tier = c->a[0];
		((struct hawk_frame_info *)buf)->frame = c->a[1];
		return sizeof(struct hawk_frame_info);
	case HAWK_IOC_DRAFT_OPEN:
		((struct hawk_draft_open *)buf)->seq =
			c->a[0] ? 1u << 16 | (uint32_t)c->a[1] % 8 : HAWK_DRAFT_NO_SEQ;
		((struct hawk_draft_open *)buf)->slots = c->a[2];
		return sizeof(struct hawk_draft_open);
	case HAWK_IOC_DRAFT_CLOSE:
		((struct hawk_draft_close *)buf)->id = c->a[0];
		return sizeof(struct hawk_draft_close);
	case HAWK_IOC_GATHER: return build_gather(buf, c);
	case HAWK_IOC_ELASTIC: return build_elastic(buf, c);
	case HAWK_IOC_ESTIMATE: return build_estimate(buf, c);
	case HAWK_IOC_PHASE: return build_phase(buf, c);
	case HAWK_IOC_SEQ: return build_seq(buf, c);
	case HAWK_IOC_SEQ_MAP: return build_seq_map(buf, c);
	case HAWK_IOC_LEASE_RELEASE:
		((struct hawk_lease_release *)buf)->lease = c->a[0];
		return sizeof(struct hawk_lease_release);
	default:
		if (c->nr >= _IOC_NR(HAWK_IOC_ALLOC) && c->nr <= _IOC_NR(HAWK_IOC_TRANSLATE))
			return build_batch(buf, c);
		memcpy(buf, c->a, sizeof(c->a));
		return sizeof(c->a);
	}
}

/*
 * What takes the machine's memory or minutes of its time is made small, and what
 * the kernel would write over this program's own memory is led elsewhere.
 */
void build_tame(void *buf, const struct fuzz_call *c)
{
	struct hawk_space_create *sc = buf;
	struct hawk_tier_add *ta = buf;
	static const struct fuzz_call good = { .items = PTR_GOOD };
	struct hawk_seq_batch *sq = buf;
	struct hawk_seq_map *sm = buf;
	struct hawk_batch *b = buf;
	uint8_t nr = c->nr;

	if (nr >= _IOC_NR(HAWK_IOC_ALLOC) && nr <= _IOC_NR(HAWK_IOC_TRANSLATE) &&
	    c->items == PTR_MAPPED &&
	    (uint64_t)b->count * sizeof(struct hawk_item) > world.map[c->slot].bytes)
		b->items = place_items(&good, NULL, 0);
	if (nr == _IOC_NR(HAWK_IOC_SEQ) && c->items == PTR_MAPPED &&
	    (uint64_t)sq->count * sizeof(struct hawk_seq_op) > world.map[c->slot].bytes)
		sq->ops = place_items(&good, NULL, 0);
	if (nr == _IOC_NR(HAWK_IOC_SEQ_MAP) && c->items == PTR_MAPPED &&
	    (uint64_t)sm->count * sizeof(struct hawk_seg) > world.map[c->slot].bytes)
		sm->segs = place_items(&good, NULL, 0);
	if (nr == _IOC_NR(HAWK_IOC_SPACE_CREATE) && sc->seqs > 64 && sc->seqs <= HAWK_SEQS_MAX)
		sc->seqs &= 63;
	if (nr == _IOC_NR(HAWK_IOC_TIER_ADD) && ta->kind == HAWK_TIER_HOST &&
	    ta->bytes > 8 * CHUNK && ta->bytes < 1ull << 43)
		ta->bytes = CHUNK;
	if (nr == _IOC_NR(HAWK_IOC_SPACE_CREATE) && sc->max_blocks > 4096 &&
	    sc->max_blocks < HAWK_BLOCKS_MAX)
		sc->max_blocks &= 1023;
}
