// SPDX-License-Identifier: MIT
/*
 * embed_gpu.c - tiers of the embedded backend in memory of a GPU
 *
 * To the engine such a tier is a host tier, as blocks are used in it.  It has no window:
 * its users find a pinned block by the offset of its frame.  move.c has its moves.
 *
 * When the GPU fails, who notices tells the engine that the tier is lost: no block comes
 * there any more.  The keeper then takes the chunks from the spaces.  Blocks that are on
 * flash too stay there; writing others there fails, since they cannot be read, and so they
 * are dropped.  Those that are pinned go when their pins have, so he looks again.
 */
#include "embed.h"
#include "gpu.h"

#define AGAIN_NS	100000000ull	/* looks for pins that have gone */

static void lost(void *arg)
{
	struct etier *t = arg;

	hawk_tier_lost(t->e->engine, (u32)(t - t->e->tier));
	keeper_kick(t->e, false);
}

int egpu_open(struct etier *t, const struct hawk_tier_add *a)
{
	t->fd = -1;
	t->node = -1;
	t->bytes = a->bytes;
	return gpu_open((const char *)(uintptr_t)a->path, &t->bytes, &t->gpu);
}

/* egpu_register() - it is a tier now, known to the engine */
void egpu_register(struct etier *t)
{
	gpu_on_loss(t->gpu, lost, t);
}

/* egpu_lost() - why blocks in @tier are no more, or 0 */
int egpu_lost(struct espace *sp, u32 tier)
{
	struct gpu *g = sp->e->tier[tier].gpu;

	return g ? gpu_lost(g) : 0;
}

/* egpu_space() - may blocks of the space lie in memory of a GPU? */
bool egpu_space(const struct espace *sp)
{
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++)
		if (sp->win[t].frames && !sp->win[t].base)
			return true;
	return false;
}

/* egpu_tier_lost() - has its GPU failed? */
bool egpu_tier_lost(struct embed *e, u32 tier)
{
	struct etier *t = tier < HAWK_TIERS_MAX ? &e->tier[tier] : NULL;
	bool yes = false;

	if (t) {
		pthread_mutex_lock(&t->lock);
		yes = t->gpu && gpu_lost(t->gpu);
		pthread_mutex_unlock(&t->lock);
	}
	return yes;
}

static bool to_drop(struct etier *t)
{
	bool yes;

	pthread_mutex_lock(&t->lock);
	yes = t->gpu && gpu_lost(t->gpu) && !t->dropped;
	pthread_mutex_unlock(&t->lock);
	return yes;
}

/**
 * egpu_lost_all() - the keeper: spaces leave tiers that are lost
 * Return: when to look again, 0: there is no reason to.
 */
u64 egpu_lost_all(struct embed *e, u64 now)
{
	u64 next = 0;
	u32 t;

	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!to_drop(&e->tier[t]))
			continue;
		if (embed_tier_dropped(e, t)) {
			next = now + AGAIN_NS;
			continue;
		}
		pthread_mutex_lock(&e->tier[t].lock);
		e->tier[t].dropped = true;
		pthread_mutex_unlock(&e->tier[t].lock);
	}
	return next;
}

/* ---- calls ---- */

/* The GPU of a tier, with e->admin held, or NULL and why. */
static struct gpu *gpu_of(struct embed *e, unsigned int tier, int *ret)
{
	struct gpu *g = tier < HAWK_TIERS_MAX ? e->tier[tier].gpu : NULL;

	*ret = 0;
	if (tier >= HAWK_TIERS_MAX || !e->tier[tier].kind)
		*ret = hawk_fail(-ENOENT, "no tier %u", tier);
	else if (!g)
		*ret = hawk_fail(-EOPNOTSUPP, "tier %u is no memory of a GPU", tier);
	return g;
}

int embed_device(struct hawk *h, unsigned int tier, struct hawk_device *d)
{
	struct embed *e = to_embed(h);
	struct gpu *g;
	int ret;

	pthread_mutex_lock(&e->admin);
	g = gpu_of(e, tier, &ret);
	if (!ret)
		gpu_describe(g, d);
	pthread_mutex_unlock(&e->admin);
	return ret;
}

int embed_device_dmabuf(struct hawk *h, unsigned int tier)
{
	struct embed *e = to_embed(h);
	struct gpu *g;
	int ret;

	pthread_mutex_lock(&e->admin);
	g = gpu_of(e, tier, &ret);
	if (!ret)
		ret = gpu_dmabuf(g);
	pthread_mutex_unlock(&e->admin);
	return ret;
}

/* Where a frame of the space lies in its tier; the space keeps the tier. */
static u64 place(struct espace *sp, u32 tier, u32 frame)
{
	if (tier >= HAWK_TIERS_MAX || !sp->e->tier[tier].gpu || frame >= sp->win[tier].frames)
		return ~0ull;
	return hawk_frame_off(sp->space, tier, frame);
}

int embed_frame_info(struct hawk_kv *kv, struct hawk_frame_info *info)
{
	struct espace *sp = to_ekv(kv)->sp;
	u32 rest = sp->frames_per_chunk - info->frame % sp->frames_per_chunk, n;

	if (info->tier >= HAWK_TIERS_MAX || !sp->e->tier[info->tier].gpu)
		return hawk_fail(-EOPNOTSUPP, "tier %u is no memory of a GPU", info->tier);
	info->offset = place(sp, info->tier, info->frame);
	if (info->offset == ~0ull)
		return hawk_fail(-ENOENT, "the space owns no frame %u in tier %u", info->frame,
				 info->tier);
	for (n = rest; info->frame + n < sp->win[info->tier].frames; n += sp->frames_per_chunk)
		if (place(sp, info->tier, info->frame + n) !=
		    info->offset + (u64)n * sp->geo.block_bytes)
			break;
	info->frames = n;
	return 0;
}

int embed_block_copy(struct hawk_kv *kv, uint64_t vt, uint32_t off, void *mem, uint32_t bytes,
		     bool in)
{
	struct espace *sp = to_ekv(kv)->sp;
	u32 tier = HAWK_VT_TIER(vt);
	u64 at = place(sp, tier, HAWK_VT_FRAME(vt));
	struct gpu *g;
	int ret;

	if (at == ~0ull)
		return hawk_fail(-EINVAL, "copying a block: it is in no memory");
	g = sp->e->tier[tier].gpu;
	ret = in ? gpu_write(g, at + off, mem, bytes) : gpu_read(g, at + off, mem, bytes);
	return ret ? hawk_fail(ret, "tier %u: its GPU", tier) : 0;
}
