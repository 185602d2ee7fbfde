// SPDX-License-Identifier: MIT
/*
 * npu_do.c - a prefill host and a host with an NPU (tests/e2e/npu-peer-vm.t)
 *
 *	npu_do serve ADDRESS PORT		the NPU's host, which does what notes say
 *	npu_do CASE ADDRESS HOST PORT		the prefill host; prints "ok ..." lines
 *
 * Prefill has KV in blocks of a host tier, row-major, or in tiles if they are to be born so.
 * They go by libhawk's transport to blocks in the NPU's memory, a tier of kind bar, where they
 * arrive in tiles of 16 x 16; the NPU attends to each layer when it has arrived.  What comes
 * back is compared with attention to the rows, and the NPU's checksum of every block with that
 * of its tiles.
 *
 * Cases: ways, harm, crash, lossy, quit.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "../../../uapi/hawk_npu.h"
#include "crc32c.h"
#include "npu_kv.h"
#include "peer_host.h"

#define TAG	1u
#define LID(b)	HAWK_LID(1, 0, 0, (b) * BLOCK_TOKENS)

/* What the NPU's host grants: queries in, outputs and checksums out. */
struct room {
	uint16_t query[LAYERS][HEADS * DIM];
	float out[LAYERS][HEADS * DIM];
	uint32_t sum[BLOCKS];
};

/**
 * struct pool - blocks of a sequence in one tier
 * @hawk: /dev/hawk
 * @kv: a space with nothing but them
 * @frames: frames in the window
 * @base: frame 0
 * @table: the frame of each block
 */
struct pool {
	struct hawk *hawk;
	struct hawk_kv *kv;
	uint32_t frames;
	uint8_t *base;
	uint32_t table[BLOCKS];
};

static uint8_t *block_at(const struct pool *p, uint32_t b)
{
	return p->base + (size_t)p->table[b] * BLOCK_BYTES;
}

static struct hawk_layout layout(unsigned int form, uint32_t blocks)
{
	struct hawk_layout l = {
		.elem_bytes = 2, .dim = DIM, .heads_all = KV_HEADS, .layers_all = LAYERS,
		.block_tokens = BLOCK_TOKENS, .blocks = blocks,
	};

	want(hawk_layout_form(&l, form | HAWK_FORM_CROSS_LAYER), 0, "layout");
	want(l.bytes == (uint64_t)blocks * BLOCK_BYTES, 1, "bytes of the layout");
	return l;
}

/* A space with room for the blocks, and no more than a chunk above, in @tier. */
static void pool_open(struct pool *p, unsigned int tier)
{
	struct hawk_kv_params kp = {
		.block_bytes = BLOCK_BYTES, .block_tokens = BLOCK_TOKENS, .layers = 1,
		.head_groups = 1, .max_blocks = 4 * BLOCKS, .buckets = 1,
	};
	struct hawk_space_info info;

	kp.quota[tier].max_bytes = (BLOCKS * BLOCK_BYTES + HAWK_CHUNK_BYTES - 1) /
				   HAWK_CHUNK_BYTES * HAWK_CHUNK_BYTES;
	want(hawk_kv_create(p->hawk, &kp, &p->kv), 0, "a space");
	want(hawk_kv_info(p->kv, &info), 0, "its window");
	p->frames = info.frames[tier];
}

/* The blocks are made in another order than that of their tokens. */
static void pool_fill(struct pool *p)
{
	struct hawk_item it[BLOCKS] = { 0 };
	uint32_t i;

	for (i = 0; i < BLOCKS; i++)
		it[i].lid = LID(i * 7 % BLOCKS);
	want(hawk_alloc(p->kv, it, BLOCKS, NULL), BLOCKS, "blocks");
	for (i = 0; i < BLOCKS; i++)
		p->table[i * 7 % BLOCKS] = HAWK_VT_FRAME(it[i].vt);
	p->base = (uint8_t *)hawk_addr(p->kv, it[0].vt) - (size_t)p->table[0] * BLOCK_BYTES;
}

/* ---- the NPU's host ---- */

static struct pool npu_pool;
static struct hawk_mem *npu_mem;
static int npu;		/* /dev/hawk_npu0 */

static unsigned int npu_wait(void)
{
	struct hawk_npu_info info = { .size = sizeof(info) };
	const struct timespec moment = { .tv_nsec = 10000000 };

	npu = open("/dev/hawk_npu0", O_RDWR | O_CLOEXEC);
	if (npu < 0)
		die("/dev/hawk_npu0");
	while (!ioctl(npu, HAWK_NPU_IOC_INFO, &info) && !(info.flags & HAWK_NPU_INFO_READY))
		nanosleep(&moment, NULL);
	return info.tier;
}

/* Memory of a BAR: tried as what a NIC reaches first, so the cause is seen. */
static void npu_register(struct host *h, struct hawk_mem_params *m)
{
	struct hawk_mem_info info;
	int ret;

	m->flags = HAWK_MEM_DEVICE;
	ret = hawk_mem_add(h->ep, m, &npu_mem);
	printf("# a NIC to the BAR: %d %s\n", ret, ret ? hawk_strerror_last() : "");
	if (!ret)
		hawk_mem_del(npu_mem);
	m->flags |= HAWK_MEM_BOUNCE;
	want(hawk_mem_add(h->ep, m, &npu_mem), 0, "memory of the BAR");
	hawk_mem_info(npu_mem, &info);
	want(info.how, HAWK_MEM_BOUNCED, "memory of the BAR");
}

static void npu_host_open(struct host *h, const char *address)
{
	struct hawk_mem_params m = { .dmabuf = -1 };
	unsigned int tier = npu_wait();
	struct hawk_tier_info info;

	host_open(h, address, sizeof(struct room));
	want(hawk_open("dev:", &npu_pool.hawk), 0, "/dev/hawk");
	want(hawk_tier_stat(npu_pool.hawk, tier, &info), 0, "the tier");
	want((int)info.kind, HAWK_TIER_BAR, "the tier's kind");
	pool_open(&npu_pool, tier);
	pool_fill(&npu_pool);
	m.addr = npu_pool.base;
	m.bytes = (uint64_t)npu_pool.frames * BLOCK_BYTES;
	npu_register(h, &m);
}

/* The NPU attends to a layer of all blocks, which may still be filled with others. */
static int attend(const struct host *h, uint32_t layer)
{
	struct room *room = (struct room *)h->bytes;
	const float scale = SCALE;
	uint64_t lids[BLOCKS];
	struct hawk_npu_attention a = {
		.size = sizeof(a), .fd = hawk_kv_fd(npu_pool.kv), .count = BLOCKS,
		.lids = (uintptr_t)lids, .query = (uintptr_t)room->query[layer],
		.out = (uintptr_t)room->out[layer], .heads = HEADS, .kv_heads = KV_HEADS, .dim = DIM,
		.block_tokens = BLOCK_TOKENS, .tokens = TOKENS, .k_off = layer * LAYER_BYTES,
		.v_off = layer * LAYER_BYTES + PLANE_BYTES,
	};
	uint32_t b;

	memcpy(&a.scale, &scale, sizeof(scale));
	for (b = 0; b < BLOCKS; b++)
		lids[b] = LID(b);
	return ioctl(npu, HAWK_NPU_IOC_ATTENTION, &a) ? -errno : 0;
}

static int checksum(const struct host *h)
{
	struct room *room = (struct room *)h->bytes;
	uint64_t lids[BLOCKS];
	struct hawk_npu_checksum c = {
		.size = sizeof(c), .fd = hawk_kv_fd(npu_pool.kv), .count = BLOCKS,
		.lids = (uintptr_t)lids, .sums = (uintptr_t)room->sum,
	};
	uint32_t b;

	for (b = 0; b < BLOCKS; b++)
		lids[b] = LID(b);
	return ioctl(npu, HAWK_NPU_IOC_CHECKSUM, &c) ? -errno : 0;
}

/* What must be noticed: the first and the last block in each other's place, or a tile of
 * values with its rows as columns, in layer 1. */
static void harm(const char *how)
{
	static uint8_t tmp[BLOCK_BYTES];
	uint16_t *tile = (uint16_t *)(block_at(&npu_pool, 2) + LAYER_BYTES + PLANE_BYTES), t;
	uint32_t i, j;

	if (!strcmp(how, "swapped")) {
		memcpy(tmp, block_at(&npu_pool, 0), BLOCK_BYTES);
		memcpy(block_at(&npu_pool, 0), block_at(&npu_pool, BLOCKS - 1), BLOCK_BYTES);
		memcpy(block_at(&npu_pool, BLOCKS - 1), tmp, BLOCK_BYTES);
	}
	for (i = 0; !strcmp(how, "transposed") && i < 16; i++)
		for (j = 0; j < i; j++) {
			t = tile[i * 16 + j];
			tile[i * 16 + j] = tile[j * 16 + i];
			tile[j * 16 + i] = t;
		}
	__sync_synchronize();
}

/* A sequence comes, to blocks with other bytes; each layer is used when it is there. */
static int take_sequence(struct host *h, const char *how, char *answer)
{
	const struct hawk_layout l = layout(HAWK_FORM_TILE16, npu_pool.frames);
	const struct hawk_recv_params p = {
		.mem = npu_mem, .layout = &l, .tag = TAG, .table = npu_pool.table,
		.table_count = BLOCKS,
	};
	struct hawk_recv_info info = { .layers = 0 };
	struct hawk_recv *r;
	uint32_t b, i;
	int ret;

	for (b = 0; b < BLOCKS; b++)
		memset(block_at(&npu_pool, b), 0x3c, BLOCK_BYTES);
	memset(h->bytes + offsetof(struct room, out), 0, sizeof(struct room) -
	       offsetof(struct room, out));
	ret = hawk_recv_open(h->p, &p, WAIT, &r);
	if (ret == -ECANCELED) {
		strcpy(answer, "canceled");
		return 0;
	}
	if (ret)
		return ret;
	hawk_recv_info(r, &info);
	for (i = 0; i < LAYERS && !ret; i++) {
		if (i < info.range.layers)
			ret = hawk_recv_wait(r, i + 1, 4 * WAIT);
		if (!ret && !i && !strcmp(how, "crash"))
			raise(SIGKILL);
		if (!ret && i == LAYERS - 1)
			harm(how);
		if (!ret)
			ret = attend(h, i);
	}
	for (i = 0; i < LAYERS && !ret && !strcmp(how, "swapped"); i++)
		ret = attend(h, i);
	if (!ret && !strcmp(how, "transposed"))
		ret = attend(h, 1);
	if (!ret)
		ret = checksum(h);
	if (!ret)
		ret = hawk_recv_ack(r, WAIT);
	hawk_recv_close(r);
	return ret;
}

static int obey(struct host *h, const char *note, char answer[HAWK_NOTE_MAX])
{
	struct hawk_grant g = {
		.bytes = sizeof(struct room), .tag = TAG,
		.flags = HAWK_GRANT_READ | HAWK_GRANT_WRITE,
	};

	if (!strcmp(note, "grant"))
		return hawk_peer_grant(h->p, h->mem, 0, &g, WAIT);
	if (!strncmp(note, "recv ", 5))
		return take_sequence(h, note + 5, answer);
	if (!strcmp(note, "lossy") && lose_packets())
		strcpy(answer, "no netem");
	if (!strcmp(note, "quit"))
		exit(0);
	return 0;
}

/* ---- the prefill host ---- */

static struct pool pool;
static struct hawk_mem *pool_mem;

static void prefill_open(struct host *h, const char *address)
{
	struct hawk_mem_params m = { .dmabuf = -1 };
	unsigned int tier;

	host_open(h, address, sizeof(struct room));
	want(hawk_open("dev:", &pool.hawk), 0, "/dev/hawk");
	want(hawk_tier_add_host(pool.hawk, -1, 16u << 20, &tier), 0, "a host tier");
	pool_open(&pool, tier);
	pool_fill(&pool);
	m.addr = pool.base;
	m.bytes = (uint64_t)pool.frames * BLOCK_BYTES;
	want(hawk_mem_add(h->ep, &m, &pool_mem), 0, "memory of the blocks");
	kv_make(1);
}

static void prefill_close(struct host *h)
{
	hawk_mem_del(pool_mem);
	hawk_kv_close(pool.kv);
	hawk_close(pool.hawk);
	host_close(h);
}

static int move_room(struct host *h, uint64_t off, uint64_t bytes, bool get)
{
	struct hawk_xfer x = { .mem = h->mem, .off = off, .bytes = bytes, .far_off = off };
	char answer[HAWK_NOTE_MAX];
	struct hawk_grant g;
	int ret = hawk_peer_tell(h->p, "grant", 6, WAIT);

	if (!ret)
		ret = hawk_peer_granted(h->p, TAG, WAIT, &g);
	if (!ret)
		ret = hawk_peer_hear(h->p, answer, WAIT);
	if (ret < 0)
		return ret;
	x.grant = g.id;
	return get ? hawk_peer_get(h->p, &x, 1, WAIT) : hawk_peer_put(h->p, &x, 1, WAIT);
}

static int put_queries(struct host *h)
{
	struct room *room = (struct room *)h->bytes;
	uint32_t i;

	for (i = 0; i < LAYERS; i++)
		kv_query(i, room->query[i]);
	return move_room(h, 0, sizeof(room->query), false);
}

/* Prefill writes the blocks, tells the other side and offers @layers of them. */
static int offer(struct host *h, unsigned int way, const char *how, uint32_t layers,
		 struct hawk_send **s)
{
	const bool tiles = way == HAWK_WAY_BIRTH;
	const struct hawk_layout l = layout(tiles ? HAWK_FORM_TILE16 : HAWK_FORM_HND, pool.frames);
	const struct hawk_send_params p = {
		.mem = pool_mem, .layout = &l, .table = pool.table, .table_count = BLOCKS,
		.range = { .layers = layers, .tokens = TOKENS }, .tag = TAG, .chunk_layers = 1,
		.way = way, .frame_bytes = 256 << 10,
	};
	char note[32];
	uint32_t b;
	int ret = put_queries(h);

	if (ret)
		return ret;
	for (b = 0; b < BLOCKS; b++)
		kv_block(b, tiles, block_at(&pool, b));
	snprintf(note, sizeof(note), "recv %s", how);
	ret = hawk_peer_tell(h->p, note, (uint32_t)strlen(note) + 1, WAIT);
	return ret ? ret : hawk_send_open(h->p, &p, WAIT, s);
}

/* After the last layer has been announced: its end, and what the NPU has found, to @h->bytes. */
static int finish(struct host *h, struct hawk_send *s)
{
	char answer[HAWK_NOTE_MAX];
	int ret = hawk_send_wait(s, 4 * WAIT);

	if (!ret)
		do
			ret = hawk_send_kept(s);
		while (ret == -EAGAIN);
	hawk_send_close(s);
	if (!ret)
		ret = hawk_peer_hear(h->p, answer, WAIT);
	if (ret < 0)
		return ret;
	memset(h->bytes + offsetof(struct room, out), 0, sizeof(struct room) -
	       offsetof(struct room, out));
	return move_room(h, offsetof(struct room, out), sizeof(struct room) -
			 offsetof(struct room, out), true);
}

static int attempt(struct host *h, unsigned int way, const char *how, uint32_t layers)
{
	struct hawk_send *s;
	uint32_t n;
	int ret = offer(h, way, how, layers, &s);

	for (n = 1; n <= layers && !ret; n++)
		ret = hawk_send_layers(s, n);
	return ret ? ret : finish(h, s);
}

/* Bit by layer that is wrong, and LAYERS + block; prints what is. */
static uint32_t wrong(const struct host *h)
{
	static uint8_t tiles[BLOCK_BYTES];
	const struct room *room = (const struct room *)h->bytes;
	uint32_t i, bits = 0;
	float err, worst = 0;

	for (i = 0; i < LAYERS; i++) {
		err = kv_error(i, room->out[i]);
		if (!(err <= ERROR_MAX)) {
			bits |= 1u << i;
			printf("# layer %u: relative error %g\n", i, (double)err);
		} else if (err > worst) {
			worst = err;
		}
	}
	for (i = 0; i < BLOCKS; i++) {
		kv_block(i, true, tiles);
		if (hawk_crc32c(tiles, BLOCK_BYTES) != room->sum[i])
			bits |= 1u << (LAYERS + i);
	}
	printf("# largest error of a head otherwise %g; blocks with other bytes: %#x\n",
	       (double)worst, bits >> LAYERS);
	return bits;
}

static const char *const way_names[HAWK_WAYS] = {
	"entries, the NIC gathers", "strided keys", "sender, into a staging frame there",
	"receiver, out of a staging frame", "birth, tiles from the start",
};

static void send_whole(struct host *h, unsigned int way)
{
	int ret;

	while ((ret = attempt(h, way, "whole", LAYERS)))
		mend(h, ret, way_names[way]);
	want((int)wrong(h), 0, way_names[way]);
	printf("ok %s: attention in the NPU is that to the rows\n", way_names[way]);
}

/* Soft RoCE has no strided memory keys: said so, and the connection lives on. */
static void no_keys(struct host *h)
{
	char answer[HAWK_NOTE_MAX];
	struct hawk_send *s;

	want(offer(h, HAWK_WAY_KEYS, "whole", LAYERS, &s), -EOPNOTSUPP, way_names[HAWK_WAY_KEYS]);
	printf("# %s\n", hawk_strerror_last());
	want(hawk_peer_hear(h->p, answer, WAIT) > 0 && !strcmp(answer, "canceled"), 1, "canceled");
	printf("ok %s # SKIP refused with that: soft RoCE has no such keys\n",
	       way_names[HAWK_WAY_KEYS]);
}

static void ways(struct host *h)
{
	send_whole(h, HAWK_WAY_ENTRIES);
	no_keys(h);
	send_whole(h, HAWK_WAY_SENDER);
	send_whole(h, HAWK_WAY_RECEIVER);
	send_whole(h, HAWK_WAY_BIRTH);
}

/* The comparison must notice what is wrong, and where.  Attention does not see the order of
 * full blocks, so the last one, which is not full, is the one that is swapped. */
static void harms(struct host *h)
{
	const uint32_t layers = (1u << LAYERS) - 1, ends = 1u << LAYERS | 1u << (LAYERS + BLOCKS - 1);

	want(attempt(h, HAWK_WAY_SENDER, "swapped", LAYERS), 0, "a swapped block");
	want((int)wrong(h), (int)(layers | ends), "a swapped block");
	printf("ok a swapped block is noticed\n");
	want(attempt(h, HAWK_WAY_SENDER, "transposed", LAYERS), 0, "a transposed tile");
	want((int)wrong(h), 1 << 1 | 1 << (LAYERS + 2), "a transposed tile");
	printf("ok a transposed tile is noticed\n");
	want(attempt(h, HAWK_WAY_SENDER, "missing", LAYERS - 1), 0, "a missing layer");
	want((int)wrong(h), (int)(1u << (LAYERS - 1) | ((1u << BLOCKS) - 1) << LAYERS),
	     "a missing layer");
	printf("ok a missing layer is noticed\n");
}

/* The NPU's host dies when it has a layer; its successor gets the same copy. */
static void crash(struct host *h)
{
	struct hawk_peer *dead = h->p;
	struct hawk_send *s;

	want(offer(h, HAWK_WAY_RECEIVER, "crash", LAYERS, &s), 0, "offering a sequence");
	want(hawk_send_layers(s, LAYERS), 0, "layers");
	want(hawk_send_wait(s, WAIT), -EPIPE, "sending to a host that dies");
	again(h);
	want(put_queries(h), 0, "queries");
	tell(h, "recv whole");
	want(hawk_send_resume(s, h->p, WAIT), 0, "resume");
	hawk_peer_close(dead);
	want(finish(h, s), 0, "sending again");
	want((int)wrong(h), 0, "attention at the successor's");
	printf("ok killed in a transfer: its successor's NPU attends to the same copy\n");
}

static void lossy(struct host *h)
{
	char answer[HAWK_NOTE_MAX];

	h->tries = 10;
	ask(h, "lossy", answer);
	want(strcmp(answer, "done"), 0, "netem over there");
	want(lose_packets(), 0, "netem");
	printf("# from here on 1 %% of the packets are lost, 5 %% reordered\n");
	send_whole(h, HAWK_WAY_ENTRIES);
	send_whole(h, HAWK_WAY_SENDER);
	send_whole(h, HAWK_WAY_RECEIVER);
	send_whole(h, HAWK_WAY_BIRTH);
}

/* Until he has gone: a wire that loses packets may lose the note, if nobody is left to repeat it. */
static void quit(struct host *h)
{
	char answer[HAWK_NOTE_MAX];

	tell(h, "quit");
	hawk_peer_hear(h->p, answer, WAIT);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct host *h);
	} cases[] = {
		{ "ways", ways }, { "harm", harms }, { "crash", crash }, { "lossy", lossy },
		{ "quit", quit },
	};
	struct host h;
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && !strcmp(argv[1], "serve")) {
		npu_host_open(&h, argv[2]);
		serve(&h, argv[2], argv[3], obey);
	}
	for (i = 0; argc == 5 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		prefill_open(&h, argv[2]);
		meet(&h, argv[3], argv[4]);
		cases[i].run(&h);
		prefill_close(&h);
		return 0;
	}
	fprintf(stderr, "usage: npu_do serve ADDRESS PORT | CASE ADDRESS HOST PORT\n");
	return 2;
}
