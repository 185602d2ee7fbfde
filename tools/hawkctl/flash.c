// SPDX-License-Identifier: MIT
/*
 * flash.c - hawkctl flash check and dump: read a pool
 *
 * Both go over the records, the headers of kept chunks and, if wanted, the payloads.
 * Nothing is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../libhawk/crc32c.h"
#include "../../libhawk/poolfile.h"
#include "flash.h"
#include "print.h"

/* What was found so far. */
struct tally {
	uint64_t kept, free, bad_records;
	uint64_t blocks, empty, stale, bad_headers;
	uint64_t good_data, bad_data;
	uint64_t block_bytes;
};

struct pool {
	const char *path;
	int fd;
	int err[2];
	struct hawk_super copy[2];
	struct hawk_super s;		/* the one that counts */
	struct tally n;
	u8 *records, *headers, *data;	/* a page; those of a chunk; a chunk */
	bool want_data;
	/* each kept chunk, then each block of it, then its end; any may be NULL */
	void (*chunk)(struct pool *p, const struct hawk_record *r);
	void (*block)(struct pool *p, const struct hawk_header *h, int data);
	void (*chunk_end)(struct pool *p);
	json_t *json;			/* the chunk that is being printed */
	bool first;
};

static int fail(const char *path, const char *what, int err)
{
	fprintf(stderr, "hawkctl: %s: %s: %s\n", path, what, strerror(-err));
	return 1;
}

static u32 header_bytes(const struct pool *p)
{
	return hawk_pool_slots(&p->s) * HAWK_HEADER_BYTES;
}

static void pool_close(struct pool *p)
{
	free(p->records);
	free(p->headers);
	free(p->data);
	close(p->fd);
}

/* Who uses a file has it locked, a device opened exclusively. */
static bool in_use(const char *path, int fd)
{
	struct stat st;
	int own;

	if (flock(fd, LOCK_SH | LOCK_NB))
		return true;
	if (fstat(fd, &st) || !S_ISBLK(st.st_mode))
		return false;
	own = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (own < 0)
		return errno == EBUSY;
	close(own);
	return false;
}

/* Return: exit status. */
static int pool_open(struct pool *p, const char *path, const struct flash_opts *o)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->path = path;
	p->want_data = o->data;
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0)
		return fail(path, "cannot open it", -errno);
	if (!o->force && in_use(path, p->fd)) {
		fprintf(stderr, "hawkctl: %s: a Hawk device uses it; --force reads it all the same\n",
			path);
		close(p->fd);
		return 1;
	}
	poolfile_supers(p->fd, p->copy, p->err);
	ret = hawk_super_choose(p->err, p->copy);
	if (ret < 0) {
		fail(path, ret == -ENOENT ? "no pool" : "no superblock that can be used", ret);
		close(p->fd);
		return 1;
	}
	p->s = p->copy[ret];
	p->records = aligned_alloc(HAWK_POOL_PAGE, HAWK_POOL_PAGE);
	p->headers = aligned_alloc(HAWK_POOL_PAGE, header_bytes(p));
	p->data = aligned_alloc(HAWK_POOL_PAGE, HAWK_CHUNK_BYTES);
	if (p->records && p->headers && p->data)
		return 0;
	pool_close(p);
	return fail(path, "reading it", -ENOMEM);
}

/* Return: 0: not looked at; 1: its bytes are right; -1: they are not. */
static int data_ok(struct pool *p, const struct hawk_record *r, const struct hawk_header *h)
{
	u64 off = p->s.data_off + (u64)r->chunk * HAWK_CHUNK_BYTES + (u64)h->slot * h->bytes;
	bool ok;

	if (!p->want_data)
		return 0;
	ok = (u64)(h->slot + 1) * h->bytes <= HAWK_CHUNK_BYTES &&
	     !poolfile_read(p->fd, off, p->data, h->bytes) &&
	     hawk_crc32c(p->data, h->bytes) == h->crc;
	p->n.good_data += ok;
	p->n.bad_data += !ok;
	return ok ? 1 : -1;
}

static void walk_chunk(struct pool *p, const struct hawk_record *r)
{
	u32 i, n = r->owner.block_bytes ? HAWK_CHUNK_BYTES / r->owner.block_bytes : 0;
	struct hawk_header h;
	int ret, data;

	if (p->chunk)
		p->chunk(p, r);
	if (poolfile_read(p->fd, hawk_header_off(&p->s, r->chunk), p->headers, header_bytes(p))) {
		p->n.bad_headers += n;
		n = 0;
	}
	for (i = 0; i < n && i < hawk_pool_slots(&p->s); i++) {
		ret = hawk_header_decode(p->headers + (size_t)i * HAWK_HEADER_BYTES,
					 hawk_pool_id(&p->s), r, i, &h);
		p->n.empty += ret == -ENOENT;
		p->n.stale += ret == -ESTALE;
		p->n.bad_headers += ret == -EILSEQ;
		if (ret)
			continue;
		p->n.blocks++;
		p->n.block_bytes += h.bytes;
		data = data_ok(p, r, &h);
		if (p->block)
			p->block(p, &h, data);
	}
	if (p->chunk_end)
		p->chunk_end(p);
}

static void walk(struct pool *p)
{
	struct hawk_record r;
	u32 c, at;
	int ret = 0;

	for (c = 0; c < p->s.chunks; c++) {
		at = c % HAWK_PAGE_RECORDS;
		if (!at)
			ret = poolfile_read(p->fd, hawk_record_off(&p->s, c), p->records,
					    HAWK_POOL_PAGE);
		switch (ret ? -EILSEQ : hawk_record_decode(p->records + at * HAWK_RECORD_BYTES,
							   hawk_pool_id(&p->s), c, &r)) {
		case 0:
			if (r.kept) {
				p->n.kept++;
				walk_chunk(p, &r);
				break;
			}
			/* fall through */
		case -ENOENT:
			p->n.free++;
			break;
		default:
			p->n.bad_records++;
		}
	}
}

/* ---- check ---- */

static const char *super_state(int err)
{
	switch (err) {
	case 0: return "good";
	case -ENOENT: return "missing";
	case -EILSEQ: return "damaged";
	case -EUCLEAN: return "inconsistent";
	case -EPROTONOSUPPORT: return "of another version";
	default: return "unreadable";
	}
}

static void check_text(const struct pool *p, const char *uuid)
{
	const struct tally *n = &p->n;

	printf("pool              %s\nsuperblocks       %s, %s\nuse               number %llu, %s\n"
	       "bytes             %llu\nslot_bytes        %u\n", uuid, super_state(p->err[0]),
	       super_state(p->err[1]), (unsigned long long)p->s.seq,
	       p->s.clean ? "ended cleanly" : "in use, or not ended cleanly",
	       (unsigned long long)p->s.bytes, p->s.slot_bytes);
	printf("rated             %.3f drive writes per day\nwritten           %llu bytes\n",
	       p->s.bytes ? (double)p->s.rated / (double)p->s.bytes : 0,
	       (unsigned long long)p->s.written);
	printf("chunks            %llu kept, %llu free, %llu damaged\n"
	       "headers           %llu blocks, %llu empty, %llu of former times, %llu damaged\n"
	       "block bytes       %llu\n", (unsigned long long)n->kept, (unsigned long long)n->free,
	       (unsigned long long)n->bad_records, (unsigned long long)n->blocks,
	       (unsigned long long)n->empty, (unsigned long long)n->stale,
	       (unsigned long long)n->bad_headers, (unsigned long long)n->block_bytes);
	if (p->want_data)
		printf("payloads          %llu good, %llu with other bytes\n",
		       (unsigned long long)n->good_data, (unsigned long long)n->bad_data);
}

static void check_json(const struct pool *p, const char *uuid)
{
	const struct tally *n = &p->n;
	json_t *o = json_pack("{s:s, s:[s, s], s:I, s:b, s:I, s:i, s:I, s:I}", "uuid", uuid,
			      "superblocks", super_state(p->err[0]), super_state(p->err[1]), "use",
			      (json_int_t)p->s.seq, "clean", p->s.clean, "bytes",
			      (json_int_t)p->s.bytes, "slot_bytes", (int)p->s.slot_bytes,
			      "rated_bytes_per_day", (json_int_t)p->s.rated, "written_bytes",
			      (json_int_t)p->s.written);

	json_object_set_new(o, "chunks", json_pack("{s:I, s:I, s:I}", "kept", (json_int_t)n->kept,
						   "free", (json_int_t)n->free, "damaged",
						   (json_int_t)n->bad_records));
	json_object_set_new(o, "headers",
			    json_pack("{s:I, s:I, s:I, s:I}", "blocks", (json_int_t)n->blocks,
				      "empty", (json_int_t)n->empty, "stale",
				      (json_int_t)n->stale, "damaged", (json_int_t)n->bad_headers));
	if (p->want_data)
		json_object_set_new(o, "payloads", json_pack("{s:I, s:I}", "good",
							     (json_int_t)n->good_data, "damaged",
							     (json_int_t)n->bad_data));
	print_json(o);
}

int flash_check(const char *path, const struct flash_opts *o)
{
	struct pool p;
	char uuid[37];
	int ret = pool_open(&p, path, o);

	if (ret)
		return ret;
	walk(&p);
	print_uuid(uuid, p.s.uuid);
	if (o->json)
		check_json(&p, uuid);
	else
		check_text(&p, uuid);
	ret = p.err[0] || p.err[1] || p.n.bad_records || p.n.bad_headers || p.n.bad_data;
	pool_close(&p);
	return ret;
}

/* ---- dump ---- */

static void hex(char *to, const u8 *p, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		sprintf(to + 2 * i, "%02x", p[i]);
}

static void chunk_text(struct pool *p, const struct hawk_record *r)
{
	const struct hawk_identity *id = &r->owner;

	(void)p;
	printf("chunk %u space '%.64s' uid %u model %#llx block_bytes %u epoch %llu.%llu\n",
	       r->chunk, (const char *)id->name, id->uid, (unsigned long long)id->model_id,
	       id->block_bytes, (unsigned long long)(r->epoch >> HAWK_EPOCH_SHIFT),
	       (unsigned long long)(r->epoch & ((1ull << HAWK_EPOCH_SHIFT) - 1)));
}

static const char *data_state(int data)
{
	return data > 0 ? "good" : data < 0 ? "damaged" : "not read";
}

static void block_text(struct pool *p, const struct hawk_header *h, int data)
{
	char key[65] = "", parent[65] = "";

	hex(key, h->key, HAWK_KEY_BYTES);
	hex(parent, h->parent, HAWK_KEY_BYTES);
	printf("  slot %u key %s parent %s layer %u head %u tok %u turn %u crc %08x", h->slot, key,
	       h->hints & 1 ? parent : h->hints & 16 ? "root" : "-", h->layer, h->head, h->tok,
	       h->turn, h->crc);
	if (p->want_data)
		printf(" data %s", data_state(data));
	putchar('\n');
}

static void chunk_json(struct pool *p, const struct hawk_record *r)
{
	const struct hawk_identity *id = &r->owner;
	char name[HAWK_NAME_MAX + 1] = "";

	memcpy(name, id->name, HAWK_NAME_MAX);
	p->json = json_pack("{s:i, s:s%, s:i, s:I, s:i, s:i, s:i, s:i, s:I, s:[]}", "chunk",
			    (int)r->chunk, "space", name, strlen(name), "uid", (int)id->uid,
			    "model_id", (json_int_t)id->model_id, "block_bytes",
			    (int)id->block_bytes, "block_tokens", (int)id->block_tokens, "layers",
			    (int)id->layers, "head_groups", (int)id->head_groups, "epoch",
			    (json_int_t)r->epoch, "blocks");
}

static void block_json(struct pool *p, const struct hawk_header *h, int data)
{
	char key[65] = "", parent[65] = "";
	json_t *o;

	hex(key, h->key, HAWK_KEY_BYTES);
	hex(parent, h->parent, HAWK_KEY_BYTES);
	o = json_pack("{s:i, s:s, s:i, s:i, s:I, s:I, s:i, s:i, s:I}", "slot", (int)h->slot, "key",
		      key, "layer", (int)h->layer, "head_group", (int)h->head, "tok",
		      (json_int_t)h->tok, "generation", (json_int_t)h->gen, "hints", (int)h->hints,
		      "turn", (int)h->turn, "crc32c", (json_int_t)h->crc);
	if (h->hints & 1)
		json_object_set_new(o, "parent", json_string(parent));
	if (p->want_data)
		json_object_set_new(o, "data", json_string(data_state(data)));
	json_array_append_new(json_object_get(p->json, "blocks"), o);
}

/* One chunk in memory at a time: a pool may have millions of blocks. */
static void chunk_json_end(struct pool *p)
{
	char *text = p->json ? json_dumps(p->json, JSON_COMPACT) : NULL;

	if (text)
		printf("%s%s", p->first ? "" : ",\n", text);
	p->first = false;
	free(text);
	json_decref(p->json);
	p->json = NULL;
}

int flash_dump(const char *path, const struct flash_opts *o)
{
	struct pool p;
	int ret = pool_open(&p, path, o);

	if (ret)
		return ret;
	p.first = true;
	p.chunk = o->json ? chunk_json : chunk_text;
	p.block = o->json ? block_json : block_text;
	p.chunk_end = o->json ? chunk_json_end : NULL;
	if (o->json)
		printf("[");
	walk(&p);
	if (o->json)
		printf("]\n");
	pool_close(&p);
	return 0;
}
