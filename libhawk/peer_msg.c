// SPDX-License-Identifier: MIT
/*
 * peer_msg.c - messages between peers: sealed, opened, checked
 *
 * Everything that comes from the network is checked here before anybody looks at it:
 * lengths, the code, the number.  What a body says is checked by who handles it.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "peer_session.h"

/* Bytes of each body; 0: whatever it is */
static const uint16_t body_bytes[MSG_TYPES] = {
	[MSG_CHALLENGE] = sizeof(struct peer_challenge),
	[MSG_HELLO] = sizeof(struct peer_hello),
	[MSG_REFUSE] = sizeof(struct peer_refuse),
	[MSG_GRANT] = sizeof(struct peer_grant_msg),
	[MSG_REVOKE] = sizeof(struct peer_revoke_msg),
	[MSG_OFFER] = sizeof(struct peer_offer), [MSG_ACCEPT] = sizeof(struct peer_accept),
	[MSG_BEGIN] = sizeof(struct peer_begin), [MSG_READY] = sizeof(struct peer_ready),
	[MSG_UNIT] = sizeof(struct peer_unit), [MSG_ACK] = sizeof(struct peer_ack),
};

/* The connection's key: of the shared one and all that was said in the open. */
void peer_session_key(struct hawk_peer *p, const struct peer_challenge *ch,
		      const struct peer_hello *h)
{
	static const uint8_t label[] = "hawk peer session 1";
	crypto_auth_hmacsha256_state s;

	crypto_auth_hmacsha256_init(&s, p->net->key, p->net->key_bytes);
	crypto_auth_hmacsha256_update(&s, label, sizeof(label));
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)ch, sizeof(*ch));
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)h, sizeof(*h));
	crypto_auth_hmacsha256_final(&s, p->session);
	sodium_memzero(&s, sizeof(s));
}

static void code(const struct hawk_peer *p, bool from_server, const struct peer_head *h,
		 const void *body, uint8_t tag[PEER_TAG])
{
	uint8_t mac[crypto_auth_hmacsha256_BYTES], side = from_server;
	struct peer_head plain = *h;
	crypto_auth_hmacsha256_state s;

	memset(plain.tag, 0, sizeof(plain.tag));
	crypto_auth_hmacsha256_init(&s, p->session, sizeof(p->session));
	crypto_auth_hmacsha256_update(&s, &side, 1);
	crypto_auth_hmacsha256_update(&s, (const uint8_t *)&plain, sizeof(plain));
	crypto_auth_hmacsha256_update(&s, body, h->len);
	crypto_auth_hmacsha256_final(&s, mac);
	memcpy(tag, mac, PEER_TAG);
}

static bool open_type(unsigned int type)
{
	return type == MSG_CHALLENGE || type == MSG_REFUSE;
}

/* Fills in the rest of @h, whose type and length are set. */
void peer_msg_seal(struct hawk_peer *p, struct peer_head *h, const void *body)
{
	h->magic = PEER_MAGIC;
	h->version = p->st.version;
	h->reserved = 0;
	h->seq = p->seq_out++;
	memset(h->tag, 0, sizeof(h->tag));
	if (!open_type(h->type))
		code(p, p->server, h, body, h->tag);
}

/* Is the message in @len bytes at @h one that the other side has sent now? */
int peer_msg_open(struct hawk_peer *p, const struct peer_head *h, uint32_t len)
{
	uint8_t tag[PEER_TAG];

	if (len < sizeof(*h) || len > FAB_MSG || h->magic != PEER_MAGIC)
		return peer_break(p, -EPROTO, "what came is no message of libhawk's, or of the other byte order");
	if (h->len != len - sizeof(*h) || h->reserved || !h->type || h->type >= MSG_TYPES ||
	    (body_bytes[h->type] && h->len != body_bytes[h->type]))
		return peer_break(p, -EPROTO, "message of type %u with %u bytes is none",
				  h->type, len);
	if (h->seq != p->seq_in)
		return peer_break(p, -EPROTO, "message %llu, %llu was expected",
				  (unsigned long long)h->seq, (unsigned long long)p->seq_in);
	p->seq_in++;
	if (open_type(h->type))
		return 0;
	if (h->version != p->st.version)
		return peer_break(p, -EPROTO, "message of version %u, %u was agreed on", h->version,
				  p->st.version);
	code(p, !p->server, h, h + 1, tag);
	if (sodium_memcmp(tag, h->tag, sizeof(tag)))
		return -EACCES;		/* who called knows what that means */
	return 0;
}
