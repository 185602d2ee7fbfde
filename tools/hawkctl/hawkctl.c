// SPDX-License-Identifier: MIT
/* hawkctl.c - look at a Hawk device, add and remove tiers */
#include <errno.h>
#include <getopt.h>
#include <hawk/hawk.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "flash.h"
#include "print.h"

static const char usage[] =
	"Usage: hawkctl [--kv URL] [--json] COMMAND\n"
	"Look at a Hawk device and its host, add and remove memory, make pools on flash.\n"
	"\n"
	"Commands\n"
	"  info                      version, limits and features\n"
	"  tier list                 all tiers\n"
	"  tier add-host SIZE        add host memory; prints the tier's id\n"
	"  tier add-blk PATH         add a block device or a file; prints the tier's id\n"
	"  tier del ID               remove a tier that no space uses\n"
	"  tier reopen ID            take back a removal by force that failed\n"
	"  stats NAME                counters and times of a named space\n"
	"  flash format PATH         make a device or file a pool, whose blocks outlive the device\n"
	"  flash check PATH          what is in a pool, and is it whole?\n"
	"  flash dump PATH           all spaces and blocks of a pool\n"
	"  flash wear PATH           what its drive is rated for, and what was written so far\n"
	"  doctor                    which way bytes take between devices, and what to mend\n"
	"\n"
	"Options\n"
	"  --kv URL      device (default: $HAWK_URL, else dev:/dev/hawk)\n"
	"  --node N      NUMA node of host memory (default: the caller's)\n"
	"  --size SIZE   part of a block device or file to use (default: all)\n"
	"  --pool        tier add-blk: PATH is a pool\n"
	"  --bytes SIZE  flash format: of the pool (default: all of the device or file)\n"
	"  --slot-bytes SIZE  flash format: smallest block kept, 4K to 64K (default: 16K)\n"
	"  --dwpd N      flash format: writes per day of all its bytes that it is rated for\n"
	"  --endurance SIZE  flash format: bytes per day that it is rated for, instead of --dwpd\n"
	"  --sparse      flash format: do not reserve the room of a file\n"
	"  --data        flash check, dump: read the blocks too\n"
	"  --force       tier del: also if spaces use it, moving or dropping their blocks;\n"
	"                flash format: whatever is there; check, dump: also if it is in use\n"
	"  --root DIR    doctor: look at the /sys, /proc and /boot in this folder\n"
	"  --json        print JSON\n"
	"  --help, --version\n"
	"\n"
	"SIZE is in bytes or with K, M, G, T for powers of 1024. A tier consists of whole\n"
	"chunks of 2 MiB. Adding and removing needs CAP_SYS_ADMIN. See hawkctl(8).\n";

struct ctl {
	struct hawk *dev;
	const char *url;
	int node;
	uint64_t size;
	bool force;
	bool json;
	bool pool;
	const char *root;
	struct flash_opts flash;
};

static int fail(const char *what)
{
	fprintf(stderr, "hawkctl: %s: %s\n", what, hawk_strerror_last());
	return 1;
}

static int parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGT";
	unsigned long long v;
	const char *u;
	char *end;
	int shift = 0;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end && (u = strchr(units, *end))) {
		shift = 10 * (u - units + 1);
		end++;
	}
	if (errno || end == s || *end || s[0] == '-' || v == 0 || v > UINT64_MAX >> shift) {
		fprintf(stderr, "hawkctl: \"%s\" is not a size such as 64M\n", s);
		return -EINVAL;
	}
	*out = (uint64_t)v << shift;
	return 0;
}

static int cmd_info(struct ctl *c)
{
	struct hawk_query q = { .size = sizeof(q) };

	if (hawk_device_query(c->dev, &q))
		return fail("cannot query the device");
	print_query(&q, hawk_backend(c->dev), c->json);
	return 0;
}

static int cmd_tier_list(struct ctl *c)
{
	struct hawk_query q = { .size = sizeof(q) };
	struct hawk_tier_info ti[HAWK_TIERS_MAX];
	unsigned int t, n = 0;

	if (hawk_device_query(c->dev, &q))
		return fail("cannot query the device");
	for (t = 0; t < HAWK_TIERS_MAX; t++) {
		if (!(q.tiers & (1u << t)))
			continue;
		memset(&ti[n], 0, sizeof(ti[n]));
		if (hawk_tier_stat(c->dev, t, &ti[n]))
			return fail("cannot read a tier");
		ti[n++].tier = t;
	}
	print_tiers(ti, n, c->json);
	return 0;
}

static int cmd_add_host(struct ctl *c, const char *size)
{
	unsigned int tier;
	uint64_t bytes;

	if (parse_size(size, &bytes))
		return 2;
	if (hawk_tier_add_host(c->dev, c->node, bytes, &tier))
		return fail("cannot add host memory");
	print_tier_id(tier, c->json);
	return 0;
}

static int cmd_add_blk(struct ctl *c, const char *path)
{
	unsigned int tier;

	if (c->pool ? hawk_tier_add_pool(c->dev, path, &tier) :
		      hawk_tier_add_blk(c->dev, path, c->size, &tier))
		return fail(path);
	print_tier_id(tier, c->json);
	return 0;
}

static int parse_tier(const char *id, unsigned long *t)
{
	char *end;

	*t = strtoul(id, &end, 10);
	if (end != id && !*end && *t < HAWK_TIERS_MAX)
		return 0;
	fprintf(stderr, "hawkctl: \"%s\" is not a tier id from 0 to %u\n", id,
		HAWK_TIERS_MAX - 1);
	return -EINVAL;
}

static int cmd_tier_reopen(struct ctl *c, const char *id)
{
	unsigned long t;

	if (parse_tier(id, &t))
		return 2;
	return hawk_tier_reopen(c->dev, t) ? fail("cannot reopen the tier") : 0;
}

static int cmd_tier_del(struct ctl *c, const char *id)
{
	unsigned long t;

	if (parse_tier(id, &t))
		return 2;
	if (c->force ? hawk_tier_del_force(c->dev, t) : hawk_tier_del(c->dev, t))
		return fail("cannot remove the tier");
	return 0;
}

static int cmd_stats(struct ctl *c, const char *name)
{
	struct hawk_space_info info = { .size = sizeof(info) };
	struct hawk_stats_page page;
	struct hawk_kv *kv;
	int ret = 0;

	if (hawk_kv_attach(c->dev, name, &kv))
		return fail(name);
	if (hawk_kv_info(kv, &info) || hawk_kv_stats_page(kv, &page))
		ret = fail("cannot read the space");
	else
		print_stats(name, &info, &page, c->json);
	hawk_kv_close(kv);
	return ret;
}

static int run(struct ctl *c, int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "info"))
		return cmd_info(c);
	if (argc == 2 && !strcmp(argv[0], "stats"))
		return cmd_stats(c, argv[1]);
	if (argc == 2 && !strcmp(argv[0], "tier") && !strcmp(argv[1], "list"))
		return cmd_tier_list(c);
	if (argc == 3 && !strcmp(argv[0], "tier")) {
		if (!strcmp(argv[1], "add-host"))
			return cmd_add_host(c, argv[2]);
		if (!strcmp(argv[1], "add-blk"))
			return cmd_add_blk(c, argv[2]);
		if (!strcmp(argv[1], "del"))
			return cmd_tier_del(c, argv[2]);
		if (!strcmp(argv[1], "reopen"))
			return cmd_tier_reopen(c, argv[2]);
	}
	fprintf(stderr, "hawkctl: unknown command; see hawkctl --help\n");
	return 2;
}

/* Commands that need no device.  Return: exit status, or -1: it is none of them. */
static int run_alone(struct ctl *c, int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "doctor"))
		return doctor(c->root, c->json);
	if (argc != 3 || strcmp(argv[0], "flash"))
		return -1;
	c->flash.force = c->force;
	c->flash.json = c->json;
	if (!strcmp(argv[1], "format"))
		return flash_format(argv[2], &c->flash);
	if (!strcmp(argv[1], "check"))
		return flash_check(argv[2], &c->flash);
	if (!strcmp(argv[1], "dump"))
		return flash_dump(argv[2], &c->flash);
	if (!strcmp(argv[1], "wear"))
		return flash_wear(argv[2], &c->flash);
	return -1;
}

enum {
	OPT_KV = 256, OPT_NODE, OPT_SIZE, OPT_FORCE, OPT_JSON, OPT_HELP, OPT_VERSION, OPT_POOL,
	OPT_BYTES, OPT_SLOT_BYTES, OPT_DWPD, OPT_ENDURANCE, OPT_SPARSE, OPT_DATA,
	OPT_ROOT,
};

static const struct option longopts[] = {
	{ "kv", required_argument, NULL, OPT_KV },
	{ "node", required_argument, NULL, OPT_NODE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "pool", no_argument, NULL, OPT_POOL },
	{ "bytes", required_argument, NULL, OPT_BYTES },
	{ "slot-bytes", required_argument, NULL, OPT_SLOT_BYTES },
	{ "dwpd", required_argument, NULL, OPT_DWPD },
	{ "endurance", required_argument, NULL, OPT_ENDURANCE },
	{ "sparse", no_argument, NULL, OPT_SPARSE },
	{ "data", no_argument, NULL, OPT_DATA },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

static int parse_node(const char *s, int *node)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (end == s || *end || v > 1023) {
		fprintf(stderr, "hawkctl: \"%s\" is not a NUMA node\n", s);
		return -EINVAL;
	}
	*node = v;
	return 0;
}

/* "0.5": drive writes per day, in thousandths. */
static int parse_dwpd(const char *s, uint64_t *milli)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v >= 0.001 && v <= 1000)) {
		fprintf(stderr, "hawkctl: \"%s\" is no number of drive writes per day, such as 1 or 0.3\n",
			s);
		return -EINVAL;
	}
	*milli = (uint64_t)(v * 1000 + 0.5);
	return 0;
}

int main(int argc, char **argv)
{
	struct ctl c = { .node = -1, .url = getenv("HAWK_URL"), .root = "" };
	int opt, ret;

	if (!c.url)
		c.url = "dev:";
	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (opt) {
		case OPT_KV: c.url = optarg; break;
		case OPT_NODE:
			if (parse_node(optarg, &c.node))
				return 2;
			break;
		case OPT_SIZE:
			if (parse_size(optarg, &c.size))
				return 2;
			break;
		case OPT_BYTES:
			if (parse_size(optarg, &c.flash.bytes))
				return 2;
			break;
		case OPT_SLOT_BYTES:
			if (parse_size(optarg, &c.flash.slot_bytes))
				return 2;
			break;
		case OPT_DWPD:
			if (parse_dwpd(optarg, &c.flash.dwpd_milli))
				return 2;
			break;
		case OPT_ENDURANCE:
			if (parse_size(optarg, &c.flash.endurance))
				return 2;
			break;
		case OPT_SPARSE: c.flash.sparse = true; break;
		case OPT_DATA: c.flash.data = true; break;
		case OPT_POOL: c.pool = true; break;
		case OPT_FORCE: c.force = true; break;
		case OPT_ROOT: c.root = optarg; break;
		case OPT_JSON: c.json = true; break;
		case OPT_HELP: fputs(usage, stdout); return 0;
		case OPT_VERSION: printf("hawkctl %s\n", hawk_version()); return 0;
		default: return 2;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return 2;
	}
	ret = run_alone(&c, argc - optind, argv + optind);
	if (ret >= 0)
		return ret;
	if (hawk_open(c.url, &c.dev)) {
		fprintf(stderr, "hawkctl: cannot open %s: %s\n", c.url, hawk_strerror_last());
		return 1;
	}
	ret = run(&c, argc - optind, argv + optind);
	hawk_close(c.dev);
	return ret;
}
