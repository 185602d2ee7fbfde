// SPDX-License-Identifier: GPL-2.0
/*
 * stream.c - streams, events and copies of the model's GPUs
 *
 * A stream is a thread with a queue.  Copies of a kind share one engine of the GPU, which
 * takes latency_us and the bytes over its bandwidth for each.  An error of a copy is that of
 * the context from then on: whoever waits, or asks for anything, gets it.
 *
 * Locks: a stream's or an event's first, then the model's.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

struct op {
	struct op *next;
	enum { COPY, FILL, RECORD } what;
	enum engine engine;
	CUdeviceptr dst, src;	/* device addresses, or */
	void *to;		/* host ones */
	const void *from;
	uint64_t bytes;
	unsigned char byte;
	CUevent event;
};

struct CUevent_st {
	pthread_mutex_t lock;	/* guards @recorded, @reached */
	pthread_cond_t cond;
	uint64_t recorded, reached;
	int dev;
};

struct CUstream_st {
	pthread_mutex_t lock;	/* guards the queue and @end */
	pthread_cond_t cond;	/* there is work, or all is done */
	struct op *first, **last;
	uint64_t left;		/* not done */
	bool end;
	int dev;
	pthread_t thread;
};

static pthread_mutex_t engine_lock[DEVICES_MAX][ENGINES] = {
	[0 ... DEVICES_MAX - 1] = { [0 ... ENGINES - 1] = PTHREAD_MUTEX_INITIALIZER },
};

/* ---- what a copy does ---- */

static CUresult fault(uint64_t offset, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&model.lock);
	if (model.ecc != ~0ull && model.ecc >= offset && model.ecc - offset < bytes)
		r = CUDA_ERROR_ECC_UNCORRECTABLE;
	else if (model.fail && model.copies >= model.after)
		r = (CUresult)model.fail;
	model.copies++;
	pthread_mutex_unlock(&model.lock);
	return r;
}

static void take_time(const struct op *op, int dev)
{
	uint64_t ns, mb_s;
	struct timespec ts;

	pthread_mutex_lock(&model.lock);
	while (model.hold)
		pthread_cond_wait(&model.cond, &model.lock);
	mb_s = model.mb_s[op->engine];
	ns = model.latency_us * 1000 + (mb_s ? op->bytes * 1000 / mb_s : 0);
	pthread_mutex_unlock(&model.lock);
	if (!ns)
		return;
	ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	pthread_mutex_lock(&engine_lock[dev][op->engine]);
	nanosleep(&ts, NULL);
	pthread_mutex_unlock(&engine_lock[dev][op->engine]);
}

static CUresult copy(const struct op *op, int dev)
{
	const uint8_t *from = op->from;
	uint8_t *to = op->to;
	uint64_t offset = 0;
	CUresult r;
	int owner;

	take_time(op, dev);
	if (op->what == COPY && !from)
		from = memory_at(op->src, op->bytes, &owner, &offset);
	r = from || op->what == FILL ? fault(offset, op->bytes) : CUDA_ERROR_ILLEGAL_ADDRESS;
	if (!to)
		to = memory_at(op->dst, op->bytes, &owner, &offset);
	if (!to)
		r = CUDA_ERROR_ILLEGAL_ADDRESS;
	if (r == CUDA_SUCCESS && op->what == FILL)
		memset(to, op->byte, op->bytes);
	else if (r == CUDA_SUCCESS)
		memmove(to, from, op->bytes);
	return r;
}

static void count(const struct op *op, bool begins)
{
	pthread_mutex_lock(&model.lock);
	if (begins) {
		model.flying += op->bytes;
		if (model.flying > model.flying_max)
			model.flying_max = model.flying;
	} else {
		model.flying -= op->bytes;
		model.bytes[op->engine] += op->bytes;
	}
	pthread_mutex_unlock(&model.lock);
}

static void reach(CUevent e)
{
	pthread_mutex_lock(&e->lock);
	e->reached++;
	pthread_cond_broadcast(&e->cond);
	pthread_mutex_unlock(&e->lock);
}

/* Nothing happens any more in a context that is dead. */
static void perform(const struct op *op, int dev)
{
	CUresult r = model_dead(dev);

	if (op->what == RECORD) {
		reach(op->event);
		return;
	}
	if (r == CUDA_SUCCESS) {
		r = copy(op, dev);
		if (r != CUDA_SUCCESS)
			model_kill(dev, r);
	}
	count(op, false);
}

/* ---- streams ---- */

static void *work(void *arg)
{
	CUstream s = arg;
	struct op *op;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->first && !s->end)
			pthread_cond_wait(&s->cond, &s->lock);
		op = s->first;
		if (!op)
			break;
		s->first = op->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		perform(op, s->dev);
		free(op);
		pthread_mutex_lock(&s->lock);
		s->left--;
		pthread_cond_broadcast(&s->cond);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static CUresult queue(CUstream s, const struct op *op)
{
	CUresult r = model_dead(model_device());
	struct op *new;

	if (r != CUDA_SUCCESS)
		return r;
	if (!s || s->dev != model_device())
		return CUDA_ERROR_INVALID_HANDLE;
	new = malloc(sizeof(*new));
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*new = *op;
	new->next = NULL;
	if (op->what != RECORD)
		count(op, true);
	pthread_mutex_lock(&s->lock);
	*s->last = new;
	s->last = &new->next;
	s->left++;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	return CUDA_SUCCESS;
}

static void count_streams(int n)
{
	pthread_mutex_lock(&model.lock);
	model.streams += (uint64_t)n;
	pthread_mutex_unlock(&model.lock);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	CUresult r = model_dead(model_device());
	CUstream s;

	if (r != CUDA_SUCCESS || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->dev = model_device();
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	if (pthread_create(&s->thread, NULL, work, s)) {
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	count_streams(1);
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s)
{
	pthread_mutex_lock(&s->lock);
	s->end = true;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cond);
	count_streams(-1);
	free(s);
	return model_dead(model_device());
}

CUresult cuStreamSynchronize(CUstream s)
{
	pthread_mutex_lock(&s->lock);
	while (s->left)
		pthread_cond_wait(&s->cond, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return model_dead(s->dev);
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	CUevent e = calloc(1, sizeof(*e));

	(void)flags;
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->cond, NULL);
	e->dev = model_device();
	*event = e;
	return model_dead(e->dev);
}

CUresult cuEventDestroy_v2(CUevent e)
{
	CUresult r = model_dead(e->dev);

	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->cond);
	free(e);
	return r;
}

CUresult cuEventRecord(CUevent e, CUstream stream)
{
	struct op op = { .what = RECORD, .event = e };

	pthread_mutex_lock(&e->lock);
	e->recorded++;
	pthread_mutex_unlock(&e->lock);
	return queue(stream, &op);
}

CUresult cuEventSynchronize(CUevent e)
{
	CUresult r = model_dead(e->dev);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&e->lock);
	while (e->reached < e->recorded)
		pthread_cond_wait(&e->cond, &e->lock);
	pthread_mutex_unlock(&e->lock);
	return model_dead(e->dev);
}

/* ---- copies ---- */

static void note_pageable(const void *p, size_t bytes)
{
	bool pinned = memory_pinned(p, bytes);

	pthread_mutex_lock(&model.lock);
	model.pageable += !pinned;
	pthread_mutex_unlock(&model.lock);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	struct op op = { .engine = TO_DEVICE, .dst = dst, .from = src, .bytes = bytes };

	note_pageable(src, bytes);
	return queue(stream, &op);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct op op = { .engine = TO_HOST, .to = dst, .src = src, .bytes = bytes };

	note_pageable(dst, bytes);
	return queue(stream, &op);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct op op = { .engine = WITHIN, .dst = dst, .src = src, .bytes = bytes };

	return queue(stream, &op);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char byte, size_t n, CUstream stream)
{
	struct op op = { .what = FILL, .engine = WITHIN, .dst = dst, .byte = byte, .bytes = n };

	return queue(stream, &op);
}
