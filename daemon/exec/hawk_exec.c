// SPDX-License-Identifier: MIT
/*
 * hawk-exec - run a model on a prompt without a server, greedily, with KV
 * blocks from malloc(). For debugging the executor and measuring its speed.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/exec.h"
#include "exec/sample.h"
#include "tok/tok.h"

struct options {
	const char *model;
	const char *prompt;
	uint32_t n;	/* tokens to generate */
	uint32_t chunk; /* prompt tokens per step */
	bool json;
	bool special;
	bool ignore_eog;
	struct exec_config exec;
};

struct session {
	struct options opt;
	struct model *model;
	struct tok *tok;
	struct exec *exec;
	void **blocks;
	struct exec_seg seg; /* the whole sequence */
	uint32_t n_blocks;
	int32_t *ids; /* prompt, then what is generated */
	size_t n_prompt, n_ids;
	double prefill_s, decode_s;
};

static const char help[] =
	"Usage: hawk-exec MODEL [OPTION]...\n"
	"Generate text greedily from a GGUF model, without a server.\n"
	"\n"
	"  -p, --prompt TEXT     text to continue (default: empty)\n"
	"  -n, --tokens N        tokens to generate (default: 64)\n"
	"  -t, --threads N       threads; 0 = one per CPU (default: 0)\n"
	"  -c, --chunk N         prompt tokens per step, 1 to 4096 (default: 64)\n"
	"  -b, --block-tokens N  tokens per KV block, 1 to 1024 (default: 16)\n"
	"      --kv f16|f32      element type of keys and values (default: f16)\n"
	"      --isa NAME        avx512, avx2 or c (default: $HAWK_ISA, or the best)\n"
	"      --special         let the prompt contain control tokens\n"
	"      --ignore-eog      do not stop at an end-of-generation token\n"
	"      --pin             bind threads to CPUs\n"
	"      --json            print one JSON object\n"
	"  -h, --help            print this text\n"
	"\n"
	"Speeds are in tokens per second. Exit status: 0 done, 1 failed, 2 bad usage.\n";

enum { OPT_KV = 256, OPT_ISA, OPT_SPECIAL, OPT_EOG, OPT_PIN, OPT_JSON };

static const struct option long_options[] = {
	{ "prompt", required_argument, NULL, 'p' },
	{ "tokens", required_argument, NULL, 'n' },
	{ "threads", required_argument, NULL, 't' },
	{ "chunk", required_argument, NULL, 'c' },
	{ "block-tokens", required_argument, NULL, 'b' },
	{ "kv", required_argument, NULL, OPT_KV },
	{ "isa", required_argument, NULL, OPT_ISA },
	{ "special", no_argument, NULL, OPT_SPECIAL },
	{ "ignore-eog", no_argument, NULL, OPT_EOG },
	{ "pin", no_argument, NULL, OPT_PIN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int bad_usage(const char *what, const char *value)
{
	fprintf(stderr, "hawk-exec: %s: '%s'; try hawk-exec --help\n", what, value);
	return 2;
}

static bool parse_u32(const char *s, uint32_t *v)
{
	char *end;
	unsigned long x;

	errno = 0;
	x = strtoul(s, &end, 10);
	if (errno || end == s || *end || *s == '-' || x > INT32_MAX)
		return false;
	*v = x;
	return true;
}

/* Returns 0, or the exit status plus one. */
static int parse_option(struct options *o, int c)
{
	uint32_t *number = c == 'n' ? &o->n :
			   c == 't' ? &o->exec.n_threads :
			   c == 'c' ? &o->chunk :
			   c == 'b' ? &o->exec.block_tokens :
				      NULL;

	if (number)
		return parse_u32(optarg, number) ? 0 : bad_usage("not a whole number", optarg) + 1;
	switch (c) {
	case 'p': o->prompt = optarg; return 0;
	case OPT_KV:
		if (strcmp(optarg, "f16") && strcmp(optarg, "f32"))
			return bad_usage("not a KV type", optarg) + 1;
		o->exec.kv_type = optarg[1] == '1' ? EXEC_KV_F16 : EXEC_KV_F32;
		return 0;
	case OPT_ISA: o->exec.isa = optarg; return 0;
	case OPT_SPECIAL: o->special = true; return 0;
	case OPT_EOG: o->ignore_eog = true; return 0;
	case OPT_PIN: o->exec.pin = true; return 0;
	case OPT_JSON: o->json = true; return 0;
	case 'h': fputs(help, stdout); return 1;
	}
	return 3;
}

static int parse_args(struct options *o, int argc, char **argv)
{
	int c, ret;

	*o = (struct options){ .prompt = "", .n = 64, .chunk = 64 };
	o->exec.block_tokens = 16;
	o->exec.kv_type = EXEC_KV_F16;
	while ((c = getopt_long(argc, argv, "p:n:t:c:b:h", long_options, NULL)) != -1) {
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind + 1 != argc)
		return bad_usage("need exactly one model file",
				 optind < argc ? argv[optind + 1] : "") +
		       1;
	o->model = argv[optind];
	return 0;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* The prompt as ids; at least BOS, so that there is something to start from. */
static int encode_prompt(struct session *s, char *err)
{
	const unsigned int flags = TOK_ADD_SPECIAL | (s->opt.special ? TOK_PARSE_SPECIAL : 0);
	int32_t *ids, *grown;
	size_t n;
	int ret;

	ret = tok_encode(s->tok, s->opt.prompt, strlen(s->opt.prompt), flags, &ids, &n);
	if (ret)
		return gguf_fail(err, ret, "cannot encode the prompt: %s", strerror(-ret));
	if (!n && tok_bos(s->tok) >= 0)
		ids[n++] = tok_bos(s->tok);
	s->ids = ids;
	if (!n)
		return gguf_fail(
			err, -EINVAL,
			"the prompt is empty and the model has no BOS token: give --prompt");
	if (n + s->opt.n > s->model->cfg.n_ctx)
		return gguf_fail(
			err, -EINVAL,
			"%zu prompt tokens and %u to generate exceed the model's context of %u", n,
			s->opt.n, s->model->cfg.n_ctx);
	grown = realloc(ids, (n + s->opt.n) * sizeof(*ids));
	if (!grown)
		return gguf_fail(err, -ENOMEM, "no memory");
	s->ids = grown;
	s->n_prompt = s->n_ids = n;
	return 0;
}

static int alloc_blocks(struct session *s, char *err)
{
	const uint32_t bt = s->opt.exec.block_tokens;
	size_t bytes = exec_kv_block_bytes(&s->model->cfg, bt, s->opt.exec.kv_type);
	uint32_t i;

	s->n_blocks = (s->n_prompt + s->opt.n + bt - 1) / bt;
	s->blocks = calloc(s->n_blocks, sizeof(*s->blocks));
	for (i = 0; s->blocks && i < s->n_blocks; i++) {
		s->blocks[i] = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
		if (!s->blocks[i])
			break;
	}
	if (!s->blocks || i < s->n_blocks)
		return gguf_fail(err, -ENOMEM, "no memory for the KV blocks");
	s->seg = (struct exec_seg){ .blocks = s->blocks, .len = s->n_blocks * bt };
	return 0;
}

static int open_session(struct session *s, char *err)
{
	int ret;

	ret = model_load(s->opt.model, &s->model, err);
	if (!ret)
		ret = tok_create(s->model->gguf, s->model->cfg.n_vocab, &s->tok, err);
	if (!ret) {
		s->opt.exec.max_rows = s->opt.chunk;
		s->opt.exec.max_logits = 1;
		ret = exec_create(s->model, &s->opt.exec, &s->exec, err);
	}
	if (!ret)
		ret = encode_prompt(s, err);
	if (!ret)
		ret = alloc_blocks(s, err);
	return ret;
}

static void close_session(struct session *s)
{
	uint32_t i;

	for (i = 0; s->blocks && i < s->n_blocks; i++)
		free(s->blocks[i]);
	free(s->blocks);
	free(s->ids);
	exec_destroy(s->exec);
	tok_destroy(s->tok);
	model_free(s->model);
}

/* Compute ids [begin, end); logits of the last one. */
static const float *step(struct session *s, struct exec_row *rows, size_t begin, size_t end)
{
	size_t i;

	for (i = begin; i < end; i++)
		rows[i - begin] = (struct exec_row){
			.token = s->ids[i],
			.pos = i,
			.at = i,
			.segs = &s->seg,
			.n_segs = 1,
			.want_logits = i + 1 == s->n_ids,
		};
	if (exec_step(s->exec, rows, end - begin))
		return NULL;
	return exec_logits(s->exec, end - begin - 1);
}

static int generate(struct session *s, char *err)
{
	struct exec_row *rows = calloc(s->opt.chunk, sizeof(*rows));
	const float *logits = NULL;
	double start = now_s();
	size_t i, n, done;
	int32_t id;

	if (!rows)
		return gguf_fail(err, -ENOMEM, "no memory");
	for (i = 0; i < s->n_prompt; i += n) {
		n = s->n_prompt - i < s->opt.chunk ? s->n_prompt - i : s->opt.chunk;
		logits = step(s, rows, i, i + n);
	}
	s->prefill_s = now_s() - start;
	start = now_s();
	for (done = 0; logits && done < s->opt.n; done++) {
		id = sample_greedy(logits, s->model->cfg.n_vocab);
		if (tok_is_eog(s->tok, id) && !s->opt.ignore_eog)
			break;
		s->ids[s->n_ids++] = id;
		if (done + 1 < s->opt.n)
			logits = step(s, rows, s->n_ids - 1, s->n_ids);
	}
	s->decode_s = now_s() - start;
	free(rows);
	return logits ? 0 : gguf_fail(err, -EINVAL, "a step failed: %s", exec_step_error(s->exec));
}

static char *decode_text(const struct session *s)
{
	struct tok_stream st;
	char *text = malloc((s->n_ids + 1) * tok_stream_max(s->tok));
	size_t i, n = 0;

	if (!text)
		return NULL;
	tok_stream_init(s->tok, &st, true);
	for (i = 0; i < s->n_ids; i++)
		n += tok_stream_push(s->tok, &st, s->ids[i], false, text + n);
	tok_stream_flush(s->tok, &st, text + n);
	return text;
}

static void report_json(const struct session *s, const char *text, double prefill, double decode)
{
	json_t *ids = json_array(), *root;
	size_t i;

	for (i = 0; i < s->n_ids; i++)
		json_array_append_new(ids, json_integer(s->ids[i]));
	root = json_pack("{s:s, s:s, s:i, s:i, s:o, s:s, s:f, s:f}", "model", s->model->name, "isa",
			 exec_isa_name(s->exec), "threads", (int)exec_thread_count(s->exec),
			 "prompt_tokens", (int)s->n_prompt, "ids", ids, "text", text,
			 "prefill_tokens_per_s", prefill, "decode_tokens_per_s", decode);
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

static int report(const struct session *s, char *err)
{
	size_t made = s->n_ids - s->n_prompt, i;
	double prefill = s->n_prompt / s->prefill_s;
	/* the first new token comes out of the prefill */
	double decode = made > 1 ? (made - 1) / s->decode_s : 0;
	char *text = decode_text(s);

	if (!text)
		return gguf_fail(err, -ENOMEM, "no memory");
	if (s->opt.json) {
		report_json(s, text, prefill, decode);
	} else {
		printf("ids:");
		for (i = 0; i < s->n_ids; i++)
			printf(" %d", s->ids[i]);
		printf("\ntext: %s\n", text);
		printf("prefill: %zu tokens, %.1f tokens/s\n", s->n_prompt, prefill);
		printf("decode: %zu tokens, %.1f tokens/s (%s, %u threads)\n", made, decode,
		       exec_isa_name(s->exec), exec_thread_count(s->exec));
	}
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	struct session s = { 0 };
	char err[GGUF_ERR_LEN];
	int ret;

	ret = parse_args(&s.opt, argc, argv);
	if (ret)
		return ret - 1;
	ret = open_session(&s, err);
	if (!ret)
		ret = generate(&s, err);
	if (!ret)
		ret = report(&s, err);
	if (ret)
		fprintf(stderr, "hawk-exec: %s\n", err);
	close_session(&s);
	return ret ? 1 : 0;
}
