// SPDX-License-Identifier: MIT
/*
 * peer_grant.c - grants: what of our memory a peer may use, and what of his we may
 *
 * A grant is a key of the NIC for some bytes and one connection where the NIC has memory
 * windows of type 2, else a registration of these bytes.  The memory's own registration
 * gives the other side nothing.  Requests of ours are checked against what we know of the
 * peer's grants, so that the NIC over there only has to refuse what is meant ill, or late.
 */
#include <errno.h>
#include <string.h>

#include "peer.h"

static struct grant_out *out_find(struct hawk_peer *p, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < HAWK_GRANTS_MAX; i++)
		if (p->out[i].id == id)
			return &p->out[i];
	return NULL;
}

static int check_grant(const struct hawk_mem *mem, const struct hawk_peer *p, uint64_t off,
		       const struct hawk_grant *g)
{
	if (mem->net != p->net)
		return hawk_fail(-EINVAL, "grant: the memory is another endpoint's");
	if (!g->flags || g->flags & ~(HAWK_GRANT_READ | HAWK_GRANT_WRITE))
		return hawk_fail(-EINVAL, "grant: flags %#x", g->flags);
	if (mem->reg.how == HAWK_MEM_BOUNCED)
		return hawk_fail(-EOPNOTSUPP, "grant: no NIC reaches the memory (HAWK_MEM_BOUNCE)");
	if (!g->bytes || off > mem->reg.p.bytes || g->bytes > mem->reg.p.bytes - off)
		return hawk_fail(-ERANGE, "grant: %llu bytes from %llu on, of %llu",
				 (unsigned long long)g->bytes, (unsigned long long)off,
				 (unsigned long long)mem->reg.p.bytes);
	return 0;
}

/*
 * Binds @w, or ends it if @mem is NULL, with nothing else under way: soft RoCE binds a window
 * once more when it repeats a lost request that was posted before, and that is an error.
 */
static int window(struct hawk_peer *p, struct hawk_mem *mem, uint32_t flags, struct fab_window *w,
		  uint64_t deadline)
{
	int ret = p->posted ? peer_drain(p, p->posted - 1, deadline) : 0;

	if (ret)
		return ret;
	ret = mem ? p->net->ops->grant(p->c, &mem->reg, flags, w, p->posted) :
		    p->net->ops->revoke(p->c, w, p->posted);
	if (ret)
		return ret < 0 ? ret : 0;
	p->slot_of[p->posted % p->net->depth] = FAB_SLOTS;
	p->posted++;
	p->tail = true;
	p->st.requests++;
	return peer_drain(p, p->posted - 1, deadline);
}

/* The other side was not told of it: its memory is to be free of it nevertheless. */
static void take_back(struct hawk_peer *p, struct grant_out *o)
{
	if (window(p, NULL, 0, &o->w, hawk_peer_deadline(PEER_HELLO_MS))) {
		peer_break(p, -EIO, "a grant could not be taken back: the connection is ended");
		return;
	}
	p->net->ops->forget(p->c, &o->w);
	o->id = 0;
}

int peer_grant(struct hawk_peer *p, struct hawk_mem *mem, uint64_t off, struct hawk_grant *g,
	       uint64_t deadline)
{
	struct grant_out *o = out_find(p, 0);
	struct peer_grant_msg m;
	int ret = peer_dead(p);

	if (ret)
		return ret;
	if (!o)
		return hawk_fail(-ENOSPC, "grant: the peer has %u already", HAWK_GRANTS_MAX);
	o->w = (struct fab_window){ .addr = mem->reg.base + off, .bytes = g->bytes };
	g->id = p->next_id++;
	o->id = g->id;		/* from here it ends with the connection */
	ret = window(p, mem, g->flags, &o->w, deadline);
	if (ret && !p->st.broken)
		p->net->ops->forget(p->c, &o->w);
	if (ret) {
		o->id = 0;
		return ret;
	}
	m = (struct peer_grant_msg){
		.addr = o->w.addr, .bytes = g->bytes, .tag = g->tag, .id = g->id,
		.rkey = o->w.rkey, .flags = g->flags,
	};
	ret = peer_send(p, MSG_GRANT, &m, sizeof(m), deadline);
	if (ret && !p->st.broken)
		take_back(p, o);
	return ret;
}

int hawk_peer_grant(struct hawk_peer *p, struct hawk_mem *mem, uint64_t off, struct hawk_grant *g,
		    int timeout_ms)
{
	int ret = check_grant(mem, p, off, g);

	if (ret)
		return ret;
	pthread_mutex_lock(&p->lock);
	ret = peer_grant(p, mem, off, g, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}

int peer_revoke(struct hawk_peer *p, uint32_t id, uint64_t deadline)
{
	const struct peer_revoke_msg m = { .id = id };
	struct grant_out *o = id ? out_find(p, id) : NULL;
	int ret = peer_dead(p);

	if (ret)
		return ret;
	if (!o)
		return hawk_fail(-ENOENT, "grant %u is none of ours", id);
	ret = window(p, NULL, 0, &o->w, deadline);
	if (ret)
		return peer_break(p, ret, "a grant could not be revoked: the connection is ended");
	p->net->ops->forget(p->c, &o->w);
	o->id = 0;
	ret = peer_send(p, MSG_REVOKE, &m, sizeof(m), deadline);
	if (ret == -ETIME)	/* he would use it once more and be cut off, without a cause */
		return peer_break(p, ret, "the peer does not listen and was not told that a grant is over: the connection is ended");
	return ret;
}

int hawk_peer_revoke(struct hawk_peer *p, uint32_t id, int timeout_ms)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = peer_revoke(p, id, hawk_peer_deadline(timeout_ms));
	pthread_mutex_unlock(&p->lock);
	return ret;
}

/* The connection is about to end, and all grants with it. */
void peer_grants_forget(struct hawk_peer *p)
{
	unsigned int i;

	for (i = 0; i < HAWK_GRANTS_MAX; i++) {
		if (p->out[i].id)
			p->net->ops->forget(p->c, &p->out[i].w);
		p->out[i].id = 0;
	}
}

/* ---- the other side's ---- */

struct grant_in *peer_grant_find(struct hawk_peer *p, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < HAWK_GRANTS_MAX; i++)
		if (p->in[i].g.id == id)
			return &p->in[i];
	return NULL;
}

/* A free entry, or one that has been over the longest. */
static struct grant_in *in_room(struct hawk_peer *p)
{
	struct grant_in *g = peer_grant_find(p, 0), *old = NULL;
	unsigned int i;

	for (i = 0; !g && i < HAWK_GRANTS_MAX; i++)
		if (p->in[i].revoked && (!old || p->in[i].g.id < old->g.id))
			old = &p->in[i];
	return g ? g : old;
}

static int granted(struct hawk_peer *p, const struct peer_grant_msg *m)
{
	struct grant_in *in = in_room(p);

	if (!m->id || !m->bytes || m->bytes > UINT64_MAX - m->addr || m->reserved || !m->flags ||
	    m->flags & ~(HAWK_GRANT_READ | HAWK_GRANT_WRITE) || peer_grant_find(p, m->id) || !in)
		return peer_break(p, -EPROTO, "grant %u of the peer's makes no sense", m->id);
	*in = (struct grant_in){
		.g = { .bytes = m->bytes, .tag = m->tag, .id = m->id, .flags = m->flags },
		.addr = m->addr, .rkey = m->rkey,
	};
	return 0;
}

int peer_grant_message(struct hawk_peer *p, const struct peer_head *h)
{
	const struct peer_revoke_msg *m = (const void *)(h + 1);
	struct grant_in *in;

	if (h->type == MSG_GRANT)
		return granted(p, (const void *)(h + 1));
	in = m->id ? peer_grant_find(p, m->id) : NULL;
	if (!in || in->revoked)
		return peer_break(p, -EPROTO, "the peer ends grant %u, which he has not given",
				  m->id);
	in->revoked = true;
	return 0;
}

int hawk_peer_granted(struct hawk_peer *p, uint64_t tag, int timeout_ms, struct hawk_grant *g)
{
	uint64_t deadline = hawk_peer_deadline(timeout_ms);
	unsigned int i;
	int ret = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		for (i = 0; i < HAWK_GRANTS_MAX; i++)
			if (p->in[i].g.id && !p->in[i].revoked && p->in[i].g.tag == tag)
				break;
		if (i < HAWK_GRANTS_MAX || ret)
			break;
		ret = peer_wait(p, deadline);
	}
	if (i < HAWK_GRANTS_MAX) {
		*g = p->in[i].g;
		ret = 0;
	} else if (ret == -ETIME) {
		hawk_fail(ret, "peer: no grant %llu has come", (unsigned long long)tag);
	}
	pthread_mutex_unlock(&p->lock);
	return ret;
}
