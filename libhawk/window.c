// SPDX-License-Identifier: MIT
/*
 * window.c - a space's view of a host tier
 *
 * Address space for all frames that the space may own is reserved at once, so
 * that frame f is always at base + f * block_bytes.  A chunk of the tier comes
 * into the window when one of its frames is first used.  What is not mapped, or
 * no longer, reads as zeroes: a reader that races with the end of a block must
 * find that its translation has changed, not a signal.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "embed.h"

static u64 slot_bytes(const struct espace *sp)
{
	return (u64)sp->frames_per_chunk * sp->geo.block_bytes;
}

#define ZERO_FLAGS	(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static void drop_user(struct etier *t, const struct espace *sp, u32 chunk)
{
	if (chunk != HAWK_NONE && t->user[chunk].sp == sp)
		t->user[chunk].sp = NULL;
}

int window_open(struct espace *sp, u32 tier)
{
	struct ewindow *w = &sp->win[tier];
	void *p;
	u32 i;

	w->frames = hawk_space_frames(sp->space, tier);
	if (!w->frames || sp->e->tier[tier].gpu)
		return 0;
	w->nslots = (w->frames + sp->frames_per_chunk - 1) / sp->frames_per_chunk;
	w->len = (u64)w->nslots * slot_bytes(sp);
	w->chunk = malloc(w->nslots * sizeof(*w->chunk));
	if (!w->chunk)
		return -ENOMEM;
	for (i = 0; i < w->nslots; i++)
		w->chunk[i] = HAWK_NONE;
	p = huge_map(w->len, PROT_READ, ZERO_FLAGS, -1);
	if (p == MAP_FAILED) {
		free(w->chunk);
		w->chunk = NULL;
		return -ENOMEM;
	}
	w->base = p;
	return 0;
}

void window_close(struct espace *sp, u32 tier)
{
	struct etier *t = &sp->e->tier[tier];
	struct ewindow *w = &sp->win[tier];
	u32 i;

	if (!w->base)
		return;
	pthread_mutex_lock(&t->lock);
	for (i = 0; i < w->nslots; i++)
		drop_user(t, sp, w->chunk[i]);
	munmap(w->base, w->len);
	pthread_mutex_unlock(&t->lock);
	free(w->chunk);
	w->base = NULL;
}

/* Take slot @slot out of the window; the caller holds the tier's lock. */
static void unmap_slot(struct espace *sp, struct ewindow *w, u32 slot)
{
	void *p = mmap(w->base + slot * slot_bytes(sp), slot_bytes(sp), PROT_READ,
		       ZERO_FLAGS | MAP_FIXED, -1, 0);

	hawk_assert(p != MAP_FAILED);	/* else its next owner would be seen here */
	hawk_store(&w->chunk[slot], HAWK_NONE);
}

/**
 * window_forget() - a chunk left its owner: nobody may see it any more
 *
 * The caller holds the tier's lock.
 */
void window_forget(struct etier *t, u32 tier, u32 chunk)
{
	struct chunk_user *u = &t->user[chunk];

	if (!u->sp)
		return;
	unmap_slot(u->sp, &u->sp->win[tier], u->slot);
	u->sp = NULL;
}

static int map_slot(struct espace *sp, u32 tier, u32 slot, u32 chunk)
{
	struct etier *t = &sp->e->tier[tier];
	struct ewindow *w = &sp->win[tier];
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	if (w->chunk[slot] == chunk)
		goto out_unlock;
	if (mmap(w->base + slot * slot_bytes(sp), slot_bytes(sp), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, t->fd,
		 (off_t)chunk * HAWK_CHUNK_BYTES) == MAP_FAILED) {
		ret = -ENOMEM;
		goto out_unlock;	/* the one before may still be there: window_forget() */
	}
	drop_user(t, sp, w->chunk[slot]);
	t->user[chunk].sp = sp;
	t->user[chunk].slot = slot;
	hawk_store_release(&w->chunk[slot], chunk);
	pthread_mutex_unlock(&t->lock);
	huge_chunk(t->base + (u64)chunk * HAWK_CHUNK_BYTES);	/* its owner is here, so it stays */
	return 0;

out_unlock:
	pthread_mutex_unlock(&t->lock);
	return ret;
}

/**
 * window_map() - see to it that @frame, which the space owns, is mapped
 * Return: 0 or -ENOMEM (too many mappings: vm.max_map_count).
 */
int window_map(struct espace *sp, u32 tier, u32 frame)
{
	u64 off = hawk_frame_off(sp->space, tier, frame);
	u32 slot = frame / sp->frames_per_chunk;
	u32 chunk = (u32)(off / HAWK_CHUNK_BYTES);

	hawk_assert(off != ~0ull);
	if (!sp->win[tier].base)
		return 0;	/* a GPU's */
	if (likely(hawk_load_acquire(&sp->win[tier].chunk[slot]) == chunk))
		return 0;
	return map_slot(sp, tier, slot, chunk);
}
