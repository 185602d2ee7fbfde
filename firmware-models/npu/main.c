// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - the model of an NPU: options, and asking one that runs
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "npu.h"

#define MIB		(1ull << 20)

static const char usage[] =
	"Usage: hawk-npu --size MIB --qemu FD [OPTION]...\n"
	"       hawk-npu --control PATH --ask COMMAND\n"
	"Model of an NPU behind QEMU's ivshmem-doorbell: memory, and a firmware that copies,\n"
	"changes layouts, sums checksums and computes attention. hawk_npu.ko drives it.\n"
	"\n"
	"  --size MIB         memory, a power of two, 4 or more; 2 MiB of it hold no blocks\n"
	"  --qemu FD          a socket whose other end is the device's chardev\n"
	"  --qmp FD           QEMU's monitor, by which the device is pulled\n"
	"  --ram FD:OFFSET:ADDRESS:BYTES\n"
	"                     a part of the virtual machine's memory that the NPU reaches; may be\n"
	"                     given 4 times. Without it the NPU copies nothing from or to the host\n"
	"  --bandwidth MB/S   of a command's bytes (default: no limit)\n"
	"  --latency US       of a command, microseconds (default 0)\n"
	"  --faults           the driver may cause faults (its debugfs)\n"
	"  --control PATH     a socket that takes commands, one a connection\n"
	"  --ask COMMAND      send a command to PATH and print the answer: status (JSON), reset,\n"
	"                     hang, freeze, crash, die, amnesia, ecc OFFSET (in BAR 2)\n"
	"  --json             with --control: the same as --ask status\n"
	"  --help\n";

struct options {
	unsigned long size;
	const char *control;
	const char *ask;
	int qemu;
	int qmp;
};

static int control_socket(const char *path, bool listening)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(at.sun_path)) {
		fprintf(stderr, "hawk-npu: %s: longer than a socket's path may be\n", path);
		return -1;
	}
	strcpy(at.sun_path, path);
	if (listening)
		unlink(path);
	if (fd < 0 || (listening ? bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 8) :
				   connect(fd, (struct sockaddr *)&at, sizeof(at)))) {
		fprintf(stderr, "hawk-npu: %s: %s\n", path, strerror(errno));
		return -1;
	}
	return fd;
}

static int ask(const char *path, const char *command)
{
	int fd = control_socket(path, false);
	char buf[512];
	ssize_t len;

	if (fd < 0)
		return EXIT_FAILURE;
	if (write(fd, command, strlen(command)) < 0)
		return EXIT_FAILURE;
	len = read(fd, buf, sizeof(buf));
	if (len <= 0) {
		fprintf(stderr, "hawk-npu: no answer from %s\n", path);
		return EXIT_FAILURE;
	}
	fwrite(buf, 1, len, stdout);
	return strncmp(buf, "error", 5) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int number(const char *option, const char *text, unsigned long most, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (errno || end == text || *end || *out > most) {
		fprintf(stderr, "hawk-npu: --%s %s: a number up to %lu\n", option, text, most);
		return -1;
	}
	return 0;
}

static const struct option longs[] = {
	{ "size", required_argument, NULL, 's' },    { "qemu", required_argument, NULL, 'q' },
	{ "qmp", required_argument, NULL, 'm' },
	{ "ram", required_argument, NULL, 'r' },     { "bandwidth", required_argument, NULL, 'b' },
	{ "latency", required_argument, NULL, 'l' }, { "faults", no_argument, NULL, 'f' },
	{ "control", required_argument, NULL, 'c' }, { "ask", required_argument, NULL, 'a' },
	{ "json", no_argument, NULL, 'j' },	     { "help", no_argument, NULL, 'h' },
	{ }
};

/* Return: 0; 1: all is said; -1: wrong. */
static int parse(int argc, char **argv, struct npu *n, struct options *o)
{
	unsigned long v = 0;
	int c, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's': ret = number("size", optarg, 1ul << 20, &o->size); break;
		case 'q':
			ret = number("qemu", optarg, 1ul << 20, &v);
			o->qemu = v;
			break;
		case 'm':
			ret = number("qmp", optarg, 1ul << 20, &v);
			o->qmp = v;
			break;
		case 'r': ret = npu_ram_add(n, optarg); break;
		case 'b':
			ret = number("bandwidth", optarg, 1ul << 20, &v);
			n->mb_per_s = v;
			break;
		case 'l':
			ret = number("latency", optarg, 1ul << 24, &v);
			n->latency_us = v;
			break;
		case 'f': n->features |= HAWK_NPU_FEAT_FAULTS; break;
		case 'c': o->control = optarg; break;
		case 'a': o->ask = optarg; break;
		case 'j': o->ask = "status"; break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default: ret = -1;
		}
	}
	if (!ret && (optind < argc || (o->ask ? !o->control : o->qemu < 0 || o->size < 4 ||
							       o->size & (o->size - 1)))) {
		fputs("hawk-npu: see --help\n", stderr);
		ret = -1;
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = { .qemu = -1, .qmp = -1 };
	struct npu n = { 0 };
	int ret = parse(argc, argv, &n, &o), control = -1;

	if (ret)
		return ret < 0 ? 2 : EXIT_SUCCESS;
	if (o.ask)
		return ask(o.control, o.ask);
	if (o.control) {
		control = control_socket(o.control, true);
		if (control < 0)
			return EXIT_FAILURE;
	}
	if (npu_board_init(&n, o.size * MIB))
		return EXIT_FAILURE;
	return npu_board_run(&n, o.qemu, o.qmp, control);
}
