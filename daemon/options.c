// SPDX-License-Identifier: MIT
/* options.c - the command line of hawkd */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <hawk/hawk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/spec.h"

static const char usage[] =
	"Usage: hawkd --model FILE [OPTION]...\n"
	"Serve a GGUF model with an OpenAI-compatible API; its KV cache lives in Hawk.\n"
	"\n"
	"Model\n"
	"  --model FILE            GGUF model (llama architecture; F32, F16, BF16, Q8_0)\n"
	"  --alias NAME            name of the model in the API (default: file name)\n"
	"  --ctx N                 tokens of a sequence at most (default: the model's)\n"
	"  --threads N             threads that compute (default: one per CPU)\n"
	"  --pin                   pin these threads to CPUs\n"
	"  --isa NAME              avx512, avx2 or c (default: the best of this CPU)\n"
	"\n"
	"KV memory\n"
	"  --kv URL                dev:/dev/hawk, or\n"
	"                          embed:?dram=64M&flash=FILE&flash_size=1G\n"
	"                          (default: $HAWK_URL, else the device if it is there,\n"
	"                          else embed: with 256 MiB of DRAM)\n"
	"  --block-tokens N        tokens of a block (default 16)\n"
	"  --kv-dtype TYPE         f16 or f32 (default f16)\n"
	"  --no-cache              reuse nothing across requests, for comparison\n"
	"  --reload WHEN           take cached blocks from flash: cheaper (default: if that\n"
	"                          is quicker than to compute them) or always\n"
	"\n"
	"Scheduling\n"
	"  --max-seqs N            sequences that run at once (default 16)\n"
	"  --batch-tokens N        tokens of one step (default 256); more than --max-seqs\n"
	"  --chunk N               tokens of one prompt in a step (default 128)\n"
	"  --queue N               requests that may wait (default 256)\n"
	"  --speculate N           tokens guessed ahead by prompt lookup, for requests that\n"
	"                          do not say (default 0: none)\n"
	"  --no-sparse             refuse requests for sparse attention: saves 512 tokens of\n"
	"                          computing at start\n"
	"  --default-max-tokens N  for chat requests that name none (default 512)\n"
	"\n"
	"Service\n"
	"  --listen WHERE          ADDRESS:PORT or unix:PATH (default 127.0.0.1:8080;\n"
	"                          port 0: chosen by the system and logged)\n"
	"  --api-key-file FILE     accept only the API keys in FILE, one per line\n"
	"  --max-body MIB          size of a request body, MiB (default 8)\n"
	"  --drain SECONDS         time for running requests on SIGTERM (default 30)\n"
	"  --json                  log JSON lines instead of text\n"
	"  --help, --version\n"
	"\n"
	"SIGTERM and SIGINT end the service: no new requests, running ones finish.\n"
	"See hawkd(8).\n";

enum {
	OPT_MODEL = 256,
	OPT_ALIAS,
	OPT_CTX,
	OPT_THREADS,
	OPT_PIN,
	OPT_ISA,
	OPT_KV,
	OPT_BLOCK,
	OPT_DTYPE,
	OPT_NO_CACHE,
	OPT_RELOAD,
	OPT_SEQS,
	OPT_BATCH,
	OPT_CHUNK,
	OPT_QUEUE,
	OPT_DEFAULT_MAX,
	OPT_SPECULATE,
	OPT_NO_SPARSE,
	OPT_LISTEN,
	OPT_KEYS,
	OPT_BODY,
	OPT_DRAIN,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION
};

static const struct option longopts[] = {
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "alias", required_argument, NULL, OPT_ALIAS },
	{ "ctx", required_argument, NULL, OPT_CTX },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "pin", no_argument, NULL, OPT_PIN },
	{ "isa", required_argument, NULL, OPT_ISA },
	{ "kv", required_argument, NULL, OPT_KV },
	{ "block-tokens", required_argument, NULL, OPT_BLOCK },
	{ "kv-dtype", required_argument, NULL, OPT_DTYPE },
	{ "no-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "reload", required_argument, NULL, OPT_RELOAD },
	{ "max-seqs", required_argument, NULL, OPT_SEQS },
	{ "batch-tokens", required_argument, NULL, OPT_BATCH },
	{ "chunk", required_argument, NULL, OPT_CHUNK },
	{ "queue", required_argument, NULL, OPT_QUEUE },
	{ "default-max-tokens", required_argument, NULL, OPT_DEFAULT_MAX },
	{ "speculate", required_argument, NULL, OPT_SPECULATE },
	{ "no-sparse", no_argument, NULL, OPT_NO_SPARSE },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "api-key-file", required_argument, NULL, OPT_KEYS },
	{ "max-body", required_argument, NULL, OPT_BODY },
	{ "drain", required_argument, NULL, OPT_DRAIN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

static int parse_u32(const char *name, const char *s, uint32_t min, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno || end == s || *end || s[0] == '-' || v < min || v > max) {
		fprintf(stderr, "hawkd: --%s: \"%s\" is not a number from %u to %u\n", name, s, min,
			max);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

static int parse_dtype(const char *s, enum exec_kv_type *out)
{
	if (!strcmp(s, "f16"))
		*out = EXEC_KV_F16;
	else if (!strcmp(s, "f32"))
		*out = EXEC_KV_F32;
	else {
		fprintf(stderr, "hawkd: --kv-dtype: \"%s\" is not f16 or f32\n", s);
		return -EINVAL;
	}
	return 0;
}

static int parse_reload(const char *s, bool *always)
{
	*always = !strcmp(s, "always");
	if (!*always && strcmp(s, "cheaper")) {
		fprintf(stderr, "hawkd: --reload: \"%s\" is not cheaper or always\n", s);
		return -EINVAL;
	}
	return 0;
}

static int parse_number(struct options *o, int opt, const char *name, const char *arg)
{
	uint32_t mib;
	int ret;

	switch (opt) {
	case OPT_CTX: return parse_u32(name, arg, 2, MODEL_MAX_CTX, &o->ctx);
	case OPT_THREADS: return parse_u32(name, arg, 1, EXEC_MAX_THREADS, &o->threads);
	case OPT_BLOCK: return parse_u32(name, arg, 1, EXEC_MAX_BLOCK_TOKENS, &o->block_tokens);
	case OPT_SEQS: return parse_u32(name, arg, 1, EXEC_MAX_ROWS - 1, &o->max_seqs);
	case OPT_BATCH: return parse_u32(name, arg, 2, EXEC_MAX_ROWS, &o->batch_tokens);
	case OPT_CHUNK: return parse_u32(name, arg, 1, EXEC_MAX_ROWS, &o->chunk);
	case OPT_QUEUE: return parse_u32(name, arg, 1, 1u << 20, &o->queue);
	case OPT_DEFAULT_MAX: return parse_u32(name, arg, 1, MODEL_MAX_CTX, &o->default_max_tokens);
	case OPT_SPECULATE: return parse_u32(name, arg, 0, SPEC_TOKENS_MAX, &o->speculate);
	case OPT_DRAIN: return parse_u32(name, arg, 0, 3600, &o->drain_s);
	case OPT_BODY:
		ret = parse_u32(name, arg, 1, 1024, &mib);
		o->max_body = (size_t)mib << 20;
		return ret;
	}
	return -EINVAL;
}

static int parse_one(struct options *o, int opt, const char *name, const char *arg)
{
	switch (opt) {
	case OPT_MODEL: o->model = arg; break;
	case OPT_ALIAS: o->alias = arg; break;
	case OPT_ISA: o->isa = arg; break;
	case OPT_KV: o->kv_url = arg; break;
	case OPT_LISTEN: o->listen = arg; break;
	case OPT_KEYS: o->api_key_file = arg; break;
	case OPT_PIN: o->pin = true; break;
	case OPT_NO_CACHE: o->no_cache = true; break;
	case OPT_NO_SPARSE: o->no_sparse = true; break;
	case OPT_JSON: o->json = true; break;
	case OPT_RELOAD: return parse_reload(arg, &o->reload_always);
	case OPT_DTYPE: return parse_dtype(arg, &o->kv_type);
	default: return parse_number(o, opt, name, arg);
	}
	return 0;
}

static int check_options(const struct options *o)
{
	if (!o->model) {
		fprintf(stderr, "hawkd: --model FILE is needed; see hawkd --help\n");
		return -EINVAL;
	}
	if (o->batch_tokens <= o->max_seqs) {
		fprintf(stderr,
			"hawkd: --batch-tokens %u must be more than --max-seqs %u, or prompts would never run\n",
			o->batch_tokens, o->max_seqs);
		return -EINVAL;
	}
	return 0;
}

int options_parse(int argc, char **argv, struct options *o)
{
	int opt, index;

	*o = (struct options){
		.listen = "127.0.0.1:8080",
		.max_seqs = 16,
		.batch_tokens = 256,
		.chunk = 128,
		.queue = 256,
		.block_tokens = 16,
		.default_max_tokens = 512,
		.drain_s = 30,
		.max_body = 8u << 20,
		.kv_type = EXEC_KV_F16,
	};
	while ((opt = getopt_long(argc, argv, "", longopts, &index)) != -1) {
		if (opt == OPT_HELP) {
			fputs(usage, stdout);
			return 1;
		}
		if (opt == OPT_VERSION) {
			printf("hawkd %s\n", hawk_version());
			return 1;
		}
		if (opt == '?' || parse_one(o, opt, longopts[index].name, optarg))
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "hawkd: unexpected argument \"%s\"; see hawkd --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return check_options(o);
}
