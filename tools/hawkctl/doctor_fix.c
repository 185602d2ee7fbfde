// SPDX-License-Identifier: MIT
/*
 * doctor_fix.c - what could be better, and how
 *
 * Only what concerns a device that is there: a host without a NIC needs no GID.
 */
#include <stdio.h>
#include <string.h>

#include "doctor.h"

#define MEMLOCK_MIN	(1ull << 30)	/* less is a few hundred blocks of a large model */
#define ROCE_MTU	4200		/* a RoCE packet of 4096 bytes and its headers */

static void found(struct doctor *d, const char *subject, const char *problem, const char *fix)
{
	struct doc_finding *f = &d->finding[d->findings];

	if (d->findings == DOC_FINDINGS)
		return;		/* it is as many as there can be */
	d->findings++;
	snprintf(f->subject, sizeof(f->subject), "%s", subject);
	snprintf(f->problem, sizeof(f->problem), "%s", problem);
	snprintf(f->fix, sizeof(f->fix), "%s", fix);
}

static size_t count(const struct doctor *d, enum doc_kind kind)
{
	size_t i, n = 0;

	for (i = 0; i < d->devs; i++)
		n += d->dev[i].kind == kind;
	return n;
}

/* Is there a device whose memory a NIC may reach, and a real one? */
static bool peers(const struct doctor *d)
{
	size_t i;

	for (i = 0; i < d->devs; i++)
		if (d->dev[i].kind == DOC_RDMA && !d->dev[i].soft)
			return count(d, DOC_GPU) > 0;
	return false;
}

static void fix_kernel(struct doctor *d)
{
	if (!d->config)
		found(d, "kernel", "its configuration is neither in /proc/config.gz nor in /boot",
		      "install it: what the kernel has is not known");
	if (peers(d) && d->p2pdma == DOC_NO)
		found(d, "kernel", "it lacks CONFIG_PCI_P2PDMA: peers' bytes pass through host memory",
		      "boot a kernel with CONFIG_PCI_P2PDMA=y (and CONFIG_ZONE_DEVICE=y)");
	if (peers(d) && d->move_notify == DOC_NO)
		found(d, "kernel", "it lacks CONFIG_DMABUF_MOVE_NOTIFY: dma-bufs are pinned while they are imported",
		      "boot a kernel with CONFIG_DMABUF_MOVE_NOTIFY=y");
	if (peers(d) && d->translates)
		found(d, "IOMMU", "it translates: peers below one host bridge do not reach each other",
		      "boot with iommu=pt, if the devices are trusted");
}

static void fix_memlock(struct doctor *d)
{
	char problem[128];

	if (!d->memlock_known || d->memlock >= MEMLOCK_MIN)
		return;
	snprintf(problem, sizeof(problem), "RLIMIT_MEMLOCK is %llu KiB: pins of blocks and registrations fail beyond that",
		 (unsigned long long)d->memlock >> 10);
	found(d, "limits", problem,
	      "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK=infinity in the unit");
}

static void fix_huge(struct doctor *d)
{
	if (!strcmp(d->thp, "never"))
		found(d, "huge pages", "transparent huge pages are off: blocks lie on pages of 4 KiB",
		      "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
	if (!d->module && !strcmp(d->shmem_thp, "never"))
		found(d, "huge pages", "the embedded backend's memory cannot be on huge pages",
		      "echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

static void fix_rdma(struct doctor *d, const struct doc_device *v)
{
	char problem[192], fix[192];

	if (!v->ethernet)
		return;
	if (!v->netdev[0]) {
		found(d, v->name, "it is on no network interface that is known here",
		      "rdma link; for soft RoCE: rdma link add rxe0 type rxe netdev IF");
		return;
	}
	if (!v->up) {
		snprintf(problem, sizeof(problem), "its interface %s is down", v->netdev);
		snprintf(fix, sizeof(fix), "ip link set %s up", v->netdev);
		found(d, v->name, problem, fix);
	}
	if (!v->roce2) {
		snprintf(problem, sizeof(problem), "it has no RoCE v2 GID: nothing is routed");
		snprintf(fix, sizeof(fix), "give it an address: ip address add ADDRESS/LENGTH dev %s", v->netdev);
		found(d, v->name, problem, fix);
	}
	if (v->mtu && v->mtu < ROCE_MTU) {
		snprintf(problem, sizeof(problem), "MTU of %s is %llu: RoCE packets are smaller than 4096 bytes",
			 v->netdev, (unsigned long long)v->mtu);
		snprintf(fix, sizeof(fix), "ip link set %s mtu 9000, and so on the switch and the other host",
			 v->netdev);
		found(d, v->name, problem, fix);
	}
}

static void fix_gpu(struct doctor *d, const struct doc_device *v)
{
	if (!d->nvidia)
		found(d, v->name, "the GPU's driver is not loaded", "modprobe nvidia, or install it");
	else if (peers(d) && !d->nvidia_open && !d->peermem)
		found(d, v->name, "no NIC reaches its memory: the driver's modules make no dma-bufs, nvidia-peermem is not loaded",
		      d->memory_peers ? "modprobe nvidia-peermem" :
		      "install the driver's open kernel modules");
}

static void fix_npu(struct doctor *d, const struct doc_device *v)
{
	if (!v->what[0])
		found(d, v->name, "no driver is bound to it", "modprobe hawk_npu");
}

static void fix_peer(struct doctor *d)
{
	if (d->memory_peers && d->module && count(d, DOC_RDMA) && !d->hawk_peer)
		found(d, "RDMA", "the stack has peer memory clients, and hawk's is not loaded",
		      "modprobe hawk_peer");
}

/* doc_fix() - after doc_find() */
void doc_fix(struct doctor *d)
{
	size_t i;

	fix_kernel(d);
	fix_memlock(d);
	fix_huge(d);
	fix_peer(d);
	for (i = 0; i < d->devs; i++) {
		const struct doc_device *v = &d->dev[i];

		if (v->kind == DOC_RDMA)
			fix_rdma(d, v);
		else if (v->kind == DOC_GPU)
			fix_gpu(d, v);
		else if (v->kind == DOC_NPU)
			fix_npu(d, v);
	}
	if (d->devs_left)
		found(d, "devices", "there are more than are looked at", "look at a part: --root");
}
