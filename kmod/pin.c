// SPDX-License-Identifier: GPL-2.0
/*
 * pin.c - which blocks a file has pinned
 *
 * The engine counts the pins of a block; here each file keeps its own share, so
 * that it can give up no more than it took and leaves nothing when it dies.
 * An entry of hawk_file.pins is the block's generation and this file's count.
 * As long as the count is not zero the block lives, so its generation stays.
 *
 * The first pin of a block charges it to RLIMIT_MEMLOCK, the last one's end gives
 * that back (memlock.c).
 *
 * A pin is given up with the engine's call made under the xa_lock: else two
 * threads of a process could give up the same pin twice, and the second one
 * would be somebody else's.
 */
#include "export.h"

#define HAWK_PIN_COUNT_BITS	30
#define HAWK_PIN_COUNT_MAX	((1ul << HAWK_PIN_COUNT_BITS) - 1)

static void *hawk_pin_entry(u32 gen, unsigned long count)
{
	return count ? xa_mk_value((unsigned long)gen << HAWK_PIN_COUNT_BITS | count) : NULL;
}

static u32 hawk_pin_gen(void *entry)
{
	return xa_to_value(entry) >> HAWK_PIN_COUNT_BITS;
}

static unsigned long hawk_pin_count(void *entry)
{
	return entry ? xa_to_value(entry) & HAWK_PIN_COUNT_MAX : 0;
}

/* As hawk_pin_add(); @charged: one block has been charged for it already. */
static int hawk_pin_note(struct hawk_file *f, struct hawk_ref ref, unsigned long limit,
			 bool charged)
{
	void *old = xa_load(&f->pins, ref.block), *cur;
	int ret;

	for (;;) {
		ret = -EOVERFLOW;
		if (hawk_pin_count(old) == HAWK_PIN_COUNT_MAX)
			break;
		ret = old || charged ? 0 : hawk_memlock_charge(f, 1, limit);
		if (ret)
			break;
		charged |= !old;
		cur = xa_cmpxchg(&f->pins, ref.block, old,
				 hawk_pin_entry(ref.gen, hawk_pin_count(old) + 1),
				 GFP_KERNEL);
		if (cur == old) {
			hawk_memlock_uncharge(f, charged && old);
			return 0;
		}
		ret = xa_err(cur);
		if (ret)
			break;
		old = cur;
	}
	hawk_memlock_uncharge(f, charged);
	hawk_block_unpin(f->as->space, ref);
	return ret;
}

/**
 * hawk_pin_add() - write down a pin that the engine has just given to this file
 * @f: the file
 * @ref: the block
 * @limit: RLIMIT_MEMLOCK of the caller, pages
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM or -EOVERFLOW, the pin has been given back then.
 */
int hawk_pin_add(struct hawk_file *f, struct hawk_ref ref, unsigned long limit)
{
	return hawk_pin_note(f, ref, limit, false);
}

/* The file's count of pins of @ref. */
static unsigned long hawk_pin_held(struct hawk_file *f, struct hawk_ref ref)
{
	void *entry = xa_load(&f->pins, ref.block);

	return entry && hawk_pin_gen(entry) == ref.gen ? hawk_pin_count(entry) : 0;
}

/* Has this file a pin on the block of @lid? */
bool hawk_pin_has(struct hawk_file *f, u64 lid)
{
	struct hawk_ref ref;
	u64 vt;

	return !hawk_block_ref(f->as->space, lid, &vt, &ref) && hawk_pin_held(f, ref);
}

/* Replaces or erases an entry, which needs no memory. */
static void hawk_pin_set(struct hawk_file *f, struct hawk_ref ref, unsigned long held)
{
	lockdep_assert_held(&f->pins.xa_lock);
	__xa_store(&f->pins, ref.block, hawk_pin_entry(ref.gen, held), 0);
}

/* One pin less of @held. */
static void hawk_pin_forget(struct hawk_file *f, struct hawk_ref ref, unsigned long held)
{
	hawk_pin_set(f, ref, held - 1);
	hawk_memlock_uncharge(f, held == 1);
}

/**
 * hawk_pin_put() - PUT: publish a block that this file fills
 * @f: the file
 * @lid: the block's LID
 * @key: its key or NULL
 * @hints: hints to be noted before, or 0
 * @parent: as hawk_block_hint() wants it
 * @keep: keep the pin of ALLOC
 * @now: time, nanoseconds
 *
 * Return: as hawk_block_put(); -ESTALE: this file has no pin on the block.
 */
int hawk_pin_put(struct hawk_file *f, u64 lid, const u8 *key, u32 hints, const u8 *parent,
		 bool keep, u64 now)
{
	struct hawk_space *s = f->as->space;
	struct hawk_ref ref;
	unsigned long held;
	u64 vt;
	int ret;

	xa_lock(&f->pins);
	ret = hawk_block_ref(s, lid, &vt, &ref);
	if (ret)
		goto out;
	held = hawk_pin_held(f, ref);
	if (!held) {
		ret = -ESTALE;
		goto out;
	}
	ret = hawk_block_hint(s, lid, hints, parent) ?: hawk_block_put(s, lid, key, keep, now);
	if (!keep && (!ret || ret == -EEXIST))
		hawk_pin_forget(f, ref, held);
out:
	xa_unlock(&f->pins);
	return ret;
}

/**
 * hawk_pin_drop() - UNPIN
 * @f: the file
 * @lid: the block's LID, or 0: find it by @vt
 * @vt: translation that the caller knows, or 0
 *
 * A pinned block stays where it is, so its holder finds it by @vt whatever others
 * do with its LIDs.
 *
 * Return: 0; -ENOENT; -ESTALE: @vt is not the block's any more, or this file has
 * no pin on it.
 */
int hawk_pin_drop(struct hawk_file *f, u64 lid, u64 vt)
{
	struct hawk_space *s = f->as->space;
	struct hawk_ref ref;
	unsigned long held;
	u64 now_vt = vt;
	int ret;

	xa_lock(&f->pins);
	if (lid || !vt)
		ret = hawk_block_ref(s, lid, &now_vt, &ref);
	else
		ret = hawk_block_at(s, vt, &ref);
	if (ret)
		goto out;
	held = hawk_pin_held(f, ref);
	if (!held || (vt && vt != now_vt)) {
		ret = -ESTALE;
		goto out;
	}
	ret = hawk_block_unpin(s, ref);
	if (!ret)
		hawk_pin_forget(f, ref, held);
out:
	xa_unlock(&f->pins);
	return ret;
}

/**
 * hawk_pin_unshare() - UNSHARE: move this file's pin to a private block
 * @f: the file
 * @lid: a LID of the block
 * @now: time, nanoseconds
 * @limit: RLIMIT_MEMLOCK of the caller, pages
 * @plan: for the copy, and for what makes room
 * @vt: out, the translation
 *
 * The pin takes its charge along, unless this file has others on the old block.
 *
 * Return: as hawk_block_unshare(), also -ENOBUFS, with no lock held; -ESTALE: this
 * file has no pin on @lid; -ENOMEM: at the limit; or without memory to note the pin,
 * which is lost then and with it the new, still empty block.
 */
int hawk_pin_unshare(struct hawk_file *f, u64 lid, u64 now, unsigned long limit,
		     struct hawk_plan *plan, u64 *vt)
{
	struct hawk_space *s = f->as->space;
	struct hawk_ref old, ref;
	unsigned long held;
	int ret;

	xa_lock(&f->pins);
	ret = hawk_block_ref(s, lid, vt, &old);
	if (ret)
		goto err_unlock;
	held = hawk_pin_held(f, old);
	ret = !held ? -ESTALE : held > 1 ? hawk_memlock_charge(f, 1, limit) : 0;
	if (ret)
		goto err_unlock;
	ref = old;
	ret = hawk_block_unshare(s, lid, now, plan, vt, &ref);
	if (ret || (ref.block == old.block && ref.gen == old.gen))
		goto err_uncharge;
	hawk_pin_set(f, old, held - 1);
	xa_unlock(&f->pins);
	return hawk_pin_note(f, ref, limit, true);

err_uncharge:
	hawk_memlock_uncharge(f, held > 1);
err_unlock:
	xa_unlock(&f->pins);
	return ret;
}

/**
 * hawk_pin_extra() - a pin that is not written down as the file's: the caller's own
 * @f: the file
 * @lid: the block's LID
 * @now: time, nanoseconds
 * @vt: out, the translation
 * @ref: out, for hawk_block_unpin()
 *
 * A block that this file has pinned may be FILLING.
 * Return: as hawk_block_pin().
 */
int hawk_pin_extra(struct hawk_file *f, u64 lid, u64 now, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_space *s = f->as->space;
	int ret;

	xa_lock(&f->pins);
	ret = hawk_block_ref(s, lid, vt, ref);
	if (!ret)
		ret = hawk_pin_held(f, *ref) ? hawk_block_repin(s, *ref) :
					       hawk_block_pin(s, lid, now, vt, ref);
	xa_unlock(&f->pins);
	return ret;
}

/**
 * hawk_pin_frame() - as hawk_pin_extra(), of the block in a frame
 * @f: the file
 * @tier: tier id
 * @frame: frame number in the space
 * @vt: out, the translation
 * @ref: out, for hawk_block_unpin()
 *
 * Return: 0; -EFAULT: there is no block that this file has pinned; -EOVERFLOW.
 */
int hawk_pin_frame(struct hawk_file *f, u32 tier, u32 frame, u64 *vt, struct hawk_ref *ref)
{
	struct hawk_space *s = f->as->space;
	int ret;

	xa_lock(&f->pins);
	ret = hawk_block_in(s, tier, frame, vt, ref);
	if (!ret)
		ret = hawk_pin_held(f, *ref) ? hawk_block_repin(s, *ref) : -ESTALE;
	xa_unlock(&f->pins);
	return ret == -ESTALE ? -EFAULT : ret;
}

/* The file is at its end: nobody else uses it. */
void hawk_pin_drop_all(struct hawk_file *f)
{
	unsigned long block, n, blocks = 0;
	void *entry;

	xa_for_each(&f->pins, block, entry) {
		struct hawk_ref ref = { .block = block, .gen = hawk_pin_gen(entry) };

		for (n = hawk_pin_count(entry); n; n--) {
			hawk_block_unpin(f->as->space, ref);
			cond_resched();
		}
		blocks++;
	}
	hawk_memlock_uncharge(f, blocks);
}
