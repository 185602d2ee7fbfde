/* SPDX-License-Identifier: MIT */
/* options.h - the command line of hawkd */
#ifndef HAWKD_OPTIONS_H
#define HAWKD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/exec.h"

struct options {
	const char *model;
	const char *kv_url; /* NULL: libhawk's default */
	const char *listen;
	const char *alias; /* NULL: the model file's name without .gguf */
	const char *api_key_file;
	const char *isa;
	uint32_t threads; /* 0: one per CPU */
	uint32_t max_seqs;
	uint32_t ctx; /* tokens, 0: the model's */
	uint32_t batch_tokens;
	uint32_t chunk;
	uint32_t queue;
	uint32_t block_tokens;
	uint32_t default_max_tokens;
	uint32_t speculate; /* tokens guessed for requests that do not say */
	uint32_t drain_s;
	size_t max_body; /* bytes */
	enum exec_kv_type kv_type;
	bool pin;
	bool no_cache;
	bool no_sparse;
	bool reload_always;
	bool json;
};

/**
 * options_parse() - read the command line; errors and help are printed
 * Return: 0 go on; 1 done (--help, --version); -EINVAL.
 */
int options_parse(int argc, char **argv, struct options *o);

#endif
