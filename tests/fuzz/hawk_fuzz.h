/* SPDX-License-Identifier: MIT */
/*
 * hawk_fuzz.h - what the files of the ioctl fuzzer share
 *
 * A program is a short list of calls on a handful of file and mapping slots that
 * are empty when it begins.  It says all that its calls are made of, so running
 * it again makes the same calls; what else is in the device may differ.
 */
#ifndef HAWK_FUZZ_H
#define HAWK_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define FUZZ_CALLS_MAX	64u		/* calls of a program */
#define FUZZ_SLOTS	6u		/* files, and as many mappings */
#define FUZZ_ARGS	6u
#define FUZZ_NR_MAX	64u		/* ioctl numbers that are tried */
#define FUZZ_CORPUS	1024u		/* programs kept */
#define FUZZ_EDGES	(1u << 18)	/* pairs of places, hashed; also results of calls */
#define FUZZ_TEXT	(1u << 21)	/* bytes of the module's code that are told apart */

enum fuzz_op {
	OP_IOCTL,	/* most of all */
	OP_OPEN,
	OP_CLOSE,
	OP_DUP,
	OP_SEND,	/* the file to another worker */
	OP_RECV,
	OP_MMAP,
	OP_MUNMAP,
	OP_TOUCH,
	OP_POLL,
	OP_FORK,	/* a child with all files and mappings, gone at once */
	OP_FILE,	/* read(), write(), lseek(), fcntl(); attributes in sysfs and debugfs */
	OP_COUNT,
};

/* How a pointer that the kernel is given lies. */
enum fuzz_ptr {
	PTR_GOOD,
	PTR_EDGE,	/* what it points to ends where memory ends */
	PTR_CUT,	/* memory ends in the middle of it */
	PTR_ODD,	/* not aligned */
	PTR_RDONLY,
	PTR_NULL,
	PTR_KERNEL,
	PTR_MAPPED,	/* in a mapping of the device */
	PTR_COUNT,
};

/**
 * struct fuzz_call - a call
 * @op: enum fuzz_op
 * @slot: file or mapping
 * @nr: OP_IOCTL: number of the command; others: which variant
 * @ptr: enum fuzz_ptr of the argument
 * @items: enum fuzz_ptr of what the argument points to
 * @size: the size that the structure claims: 0 its own, else a wrong one
 * @raw_at: where @raw is written over the structure, bytes
 * @raw_bytes: of @raw that are written, 0 for none
 * @raw: see above
 * @a: what the call is made of, by its number
 */
struct fuzz_call {
	uint8_t op;
	uint8_t slot;
	uint8_t nr;
	uint8_t ptr;
	uint8_t items;
	uint8_t size;
	uint8_t raw_at;
	uint8_t raw_bytes;
	uint64_t raw;
	uint64_t a[FUZZ_ARGS];
};

/**
 * struct fuzz_prog - a program
 * @start: what slot 0 has at the beginning (enum fuzz_start)
 * @n: calls
 * @call: the calls
 */
struct fuzz_prog {
	uint32_t start;
	uint32_t n;
	struct fuzz_call call[FUZZ_CALLS_MAX];
};

enum fuzz_start {
	START_EMPTY,	/* nothing */
	START_SHARED,	/* a named space that all workers use */
	START_OWN,	/* a space of its own over DRAM and flash, and a ring */
	START_COUNT,
};

/**
 * struct fuzz_shared - what all workers share
 * @lock: guards @corpus and @ncorpus
 * @ncorpus: programs in @corpus
 * @corpus: programs that reached something new
 * @calls: made so far
 * @progs: run so far
 * @limit: calls to be made
 * @ok: successful calls by ioctl number
 * @tried: all of them by ioctl number
 * @edge: seen pairs of places and results of calls
 * @pc: seen places, byte offset from the module's start
 */
struct fuzz_shared {
	int lock;
	uint32_t ncorpus;
	struct fuzz_prog corpus[FUZZ_CORPUS];
	uint64_t calls;
	uint64_t progs;
	uint64_t limit;
	uint64_t ok[FUZZ_NR_MAX];
	uint64_t tried[FUZZ_NR_MAX];
	uint8_t edge[FUZZ_EDGES];
	uint8_t pc[FUZZ_TEXT];
};

/* The lab's memory, as the workers find it. */
struct fuzz_setup {
	const char *flash;	/* a file on a file system with O_DIRECT */
	const char *dir;
	int buf;		/* a dma-buf, -1: this kernel gives none */
	bool admin;		/* tiers may be added and removed */
};

/**
 * struct fuzz_world - what a running program has
 * @setup: the lab's memory
 * @fd: files by slot, or -1
 * @map: mappings by slot; @at is NULL where there is none
 * @tiers: those that existed when it began, bit t for tier t
 */
struct fuzz_world {
	const struct fuzz_setup *setup;
	int fd[FUZZ_SLOTS];
	struct {
		uint8_t *at;
		size_t bytes;
	} map[FUZZ_SLOTS];
	uint32_t tiers;
};

extern struct fuzz_world world;

struct hawk_space_create;

/* fuzz_prog.c */
uint64_t rnd(uint64_t *state);
uint32_t below(uint64_t *state, uint32_t n);
void prog_new(struct fuzz_prog *p, uint64_t *state, bool admin);
void prog_mutate(struct fuzz_prog *p, uint64_t *state, bool admin, const struct fuzz_prog *other);
void prog_print(FILE *to, const struct fuzz_prog *p);

/* fuzz_exec.c */
void exec_init(const struct fuzz_setup *setup, int to_peer, int from_peer);
bool exec_prog(const struct fuzz_prog *p, struct fuzz_shared *sh, FILE *trace);
uint64_t place_items(const struct fuzz_call *c, const void *from, size_t n);
int fuzz_call(int fd, unsigned long cmd, void *arg);

/* fuzz_build.c */
size_t build_struct(void *buf, const struct fuzz_call *c);
void build_tame(void *buf, const struct fuzz_call *c);
size_t build_space_create(struct hawk_space_create *s, const struct fuzz_call *c);
void build_name(uint8_t *name, uint64_t n);

/* fuzz_cov.c */
bool cov_open(void);
void cov_start(void);
bool cov_stop(struct fuzz_shared *sh);
bool cov_result(struct fuzz_shared *sh, uint32_t nr, int ret);
bool cov_find_module(void);
void cov_report(const struct fuzz_shared *sh, uint32_t instrumented);

#endif /* HAWK_FUZZ_H */
