// SPDX-License-Identifier: MIT
/*
 * doctor_find.c - devices and what the host can, by sysfs and /proc
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define NVIDIA		0x10de
#define CLASS_DISPLAY	0x03
#define IVSHMEM		0x1af41110	/* vendor and device of an NPU: hawk_npu.ko */
#define ACCELERATOR	0x12		/* PCI class */

const char *doc_kind_name(enum doc_kind kind)
{
	static const char *const name[DOC_KINDS] = { "host", "tier", "gpu", "npu", "rdma" };

	return name[kind];
}

static void copy_text(char *to, size_t len, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < len && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
	to[i] = 0;
}

static struct doc_device *add(struct doctor *d, enum doc_kind kind, const char *name)
{
	struct doc_device *v;

	if (d->devs == DOC_DEVICES) {
		d->devs_left++;
		return NULL;
	}
	v = &d->dev[d->devs++];
	memset(v, 0, sizeof(*v));
	v->kind = kind;
	copy_text(v->name, sizeof(v->name), name);
	return v;
}

/* ---- the PCI tree ---- */

static bool is_pci(const char *s, size_t len)
{
	static const char form[] = "xxxx:xx:xx.x";
	size_t i;

	if (len != sizeof(form) - 1)
		return false;
	for (i = 0; i < len; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)s[i]) : s[i] != form[i])
			return false;
	return true;
}

/* "pci0000:00" */
static bool is_bridge(const char *s, size_t len)
{
	return len > 3 && len < 16 && !strncmp(s, "pci", 3) &&
	       strspn(s + 3, "0123456789abcdef:") >= len - 3;
}

/* "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/..." -> what of it is PCI */
static void pci_place(const char *link, char *to, size_t len)
{
	char real[PATH_MAX];
	const char *p;
	size_t n, at = 0;

	to[0] = 0;
	if (!realpath(link, real))
		return;
	p = strstr(real, "/devices/pci");
	for (p = p ? p + strlen("/devices/") : ""; *p; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		if ((!is_bridge(p, n) && !is_pci(p, n)) || at + n + 2 > len)
			break;
		if (at)
			to[at++] = '/';
		memcpy(to + at, p, n);
		at += n;
		to[at] = 0;
	}
}

/* The name that a link ends in, a driver's say. */
static void link_name(const char *link, char *to, size_t len)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	const char *slash;

	to[0] = 0;
	if (n <= 0)
		return;
	target[n] = 0;
	slash = strrchr(target, '/');
	copy_text(to, len, slash ? slash + 1 : target);
}

static void pci_device(void *arg, const char *name)
{
	uint64_t vendor, device, class;
	struct doctor *d = arg;
	char path[PATH_MAX];
	struct doc_device *v;
	enum doc_kind kind;

	if (!is_pci(name, strlen(name)) ||
	    !doc_path(d, path, "/sys/bus/pci/devices/%s/vendor", name) ||
	    !doc_number(path, &vendor) ||
	    !doc_path(d, path, "/sys/bus/pci/devices/%s/device", name) ||
	    !doc_number(path, &device) ||
	    !doc_path(d, path, "/sys/bus/pci/devices/%s/class", name) ||
	    !doc_number(path, &class))
		return;
	if (vendor == NVIDIA && class >> 16 == CLASS_DISPLAY)
		kind = DOC_GPU;
	else if ((vendor << 16 | device) == IVSHMEM || class >> 16 == ACCELERATOR)
		kind = DOC_NPU;
	else
		return;
	v = add(d, kind, name);
	if (!v)
		return;
	if (doc_path(d, path, "/sys/bus/pci/devices/%s/driver", name))
		link_name(path, v->what, sizeof(v->what));
	if (doc_path(d, path, "/sys/bus/pci/devices/%s", name))
		pci_place(path, v->pci, sizeof(v->pci));
}

/* ---- RDMA ---- */

struct gids {
	struct doctor *d;
	struct doc_device *v;
	const char *name;
};

static void gid(void *arg, const char *nr)
{
	struct gids *g = arg;
	char path[PATH_MAX], text[DOC_TEXT];

	if (doc_path(g->d, path, "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%s", g->name, nr) &&
	    doc_text(path, text, sizeof(text)) && !strcmp(text, "RoCE v2"))
		g->v->roce2 = true;
	if (!g->v->netdev[0] &&
	    doc_path(g->d, path, "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%s", g->name, nr))
		doc_text(path, g->v->netdev, sizeof(g->v->netdev));
}

static void find_netdev(struct doctor *d, struct doc_device *v)
{
	char path[PATH_MAX], text[DOC_TEXT];

	if (strchr(v->netdev, '/'))
		v->netdev[0] = 0;
	if (!v->netdev[0])
		return;
	if (doc_path(d, path, "/sys/class/net/%s/mtu", v->netdev))
		doc_number(path, &v->mtu);
	if (doc_path(d, path, "/sys/class/net/%s/operstate", v->netdev) &&
	    doc_text(path, text, sizeof(text)))
		v->up = strcmp(text, "down") && strcmp(text, "lowerlayerdown");
}

static void rdma_device(void *arg, const char *name)
{
	struct doctor *d = arg;
	struct doc_device *v = add(d, DOC_RDMA, name);
	struct gids g = { d, v, name };
	char path[PATH_MAX], text[DOC_TEXT];

	if (!v)
		return;
	if (doc_path(d, path, "/sys/class/infiniband/%s/ports/1/link_layer", name))
		doc_text(path, v->what, sizeof(v->what));
	v->ethernet = !strcmp(v->what, "Ethernet");
	if (doc_path(d, path, "/sys/class/infiniband/%s/device", name)) {
		v->soft = !doc_exists(path);
		pci_place(path, v->pci, sizeof(v->pci));
	}
	/* rxe and siw say on which interface they are */
	if (doc_path(d, path, "/sys/class/infiniband/%s/parent", name) &&
	    doc_text(path, text, sizeof(text)))
		copy_text(v->netdev, sizeof(v->netdev), text);
	if (doc_path(d, path, "/sys/class/infiniband/%s/ports/1/gid_attrs/types", name))
		doc_list(path, gid, &g);
	find_netdev(d, v);
}

/* ---- tiers ---- */

static void tier(void *arg, const char *name)
{
	struct doctor *d = arg;
	struct doc_device *v;
	char path[PATH_MAX];

	if (strncmp(name, "tier", 4) || !isdigit((unsigned char)name[4]))
		return;
	v = add(d, DOC_TIER, name);
	if (v && doc_path(d, path, "/sys/class/misc/hawk/%s/kind", name))
		doc_text(path, v->what, sizeof(v->what));
}

/* ---- the kernel and its settings ---- */

static bool config_line(void *arg, const char *text)
{
	struct doctor *d = arg;
	struct { const char *name; enum doc_know *know; } all[] = {
		{ "CONFIG_PCI_P2PDMA", &d->p2pdma },
		{ "CONFIG_DMABUF_MOVE_NOTIFY", &d->move_notify },
		{ "CONFIG_DEVICE_PRIVATE", &d->device_private },
	};
	size_t i, n;

	if (!strncmp(text, "CONFIG_", 7))
		d->config = true;
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		n = strlen(all[i].name);
		if (!strncmp(text, all[i].name, n) && text[n] == '=')
			*all[i].know = text[n + 1] == 'y' || text[n + 1] == 'm' ? DOC_YES : DOC_NO;
	}
	return true;
}

/* What a configuration does not name it does not have. */
static void find_config(struct doctor *d)
{
	enum doc_know *know[] = { &d->p2pdma, &d->move_notify, &d->device_private };
	char path[PATH_MAX];
	size_t i;

	if (doc_path(d, path, "/proc/sys/kernel/osrelease"))
		doc_text(path, d->release, sizeof(d->release));
	if (doc_path(d, path, "/proc/config.gz"))
		doc_lines(path, config_line, d);
	if (!d->config && d->release[0] && !strchr(d->release, '/') &&
	    doc_path(d, path, "/boot/config-%s", d->release))
		doc_lines(path, config_line, d);
	for (i = 0; d->config && i < sizeof(know) / sizeof(*know); i++)
		if (*know[i] == DOC_UNKNOWN)
			*know[i] = DOC_NO;
}

static void iommu_group(void *arg, const char *name)
{
	struct doctor *d = arg;
	char path[PATH_MAX], text[DOC_TEXT];

	d->iommu = true;
	if (doc_path(d, path, "/sys/kernel/iommu_groups/%s/type", name) &&
	    doc_text(path, text, sizeof(text)) && !strncmp(text, "DMA", 3))
		d->translates = true;
}

static bool limit_line(void *arg, const char *text)
{
	static const char name[] = "Max locked memory";
	struct doctor *d = arg;
	char *end;

	if (strncmp(text, name, sizeof(name) - 1))
		return true;
	text += sizeof(name) - 1;
	text += strspn(text, " ");
	d->memlock_known = true;
	d->memlock = UINT64_MAX;
	if (!strncmp(text, "unlimited", 9))
		return false;
	d->memlock = strtoull(text, &end, 10);
	d->memlock_known = end != text;
	return false;
}

static bool open_line(void *arg, const char *text)
{
	struct doctor *d = arg;

	d->nvidia_open |= strstr(text, "Open Kernel Module") != NULL;
	return !d->nvidia_open;
}

static bool present(const struct doctor *d, const char *what)
{
	char path[PATH_MAX];

	return doc_path(d, path, "%s", what) && doc_exists(path);
}

/* "always [madvise] never" -> "madvise" */
static void chosen(const struct doctor *d, const char *what, char *to)
{
	char path[PATH_MAX], text[DOC_TEXT], *p;

	if (!doc_path(d, path, "%s", what) || !doc_text(path, text, sizeof(text)))
		return;
	p = strchr(text, '[');
	if (!p)
		return;
	p[1 + strcspn(p + 1, "]")] = 0;
	copy_text(to, DOC_TEXT, p + 1);
}

static void find_host(struct doctor *d)
{
	char path[PATH_MAX];

	find_config(d);
	if (doc_path(d, path, "/sys/kernel/iommu_groups"))
		doc_list(path, iommu_group, d);
	if (doc_path(d, path, "/proc/self/limits"))
		doc_lines(path, limit_line, d);
	d->nvidia = doc_path(d, path, "/proc/driver/nvidia/version") &&
		    doc_lines(path, open_line, d);
	d->module = present(d, "/sys/module/hawk");
	d->peermem = present(d, "/sys/module/nvidia_peermem");
	d->memory_peers = present(d, "/sys/kernel/mm/memory_peers");
	d->hawk_peer = present(d, "/sys/module/hawk_peer");
	chosen(d, "/sys/kernel/mm/transparent_hugepage/enabled", d->thp);
	chosen(d, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", d->shmem_thp);
}

/* doc_find() - all of it; @d->root is set, the rest is 0 */
void doc_find(struct doctor *d)
{
	char path[PATH_MAX];

	find_host(d);
	add(d, DOC_HOST, "memory");
	if (doc_path(d, path, "/sys/class/misc/hawk"))
		doc_list(path, tier, d);
	if (doc_path(d, path, "/sys/bus/pci/devices"))
		doc_list(path, pci_device, d);
	if (doc_path(d, path, "/sys/class/infiniband"))
		doc_list(path, rdma_device, d);
}
