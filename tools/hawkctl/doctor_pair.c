// SPDX-License-Identifier: MIT
/*
 * doctor_pair.c - the way that bytes take between two devices
 *
 * It says what libhawk and hawk.ko do with what is there; where they ask a driver, this looks
 * at what the driver would say.
 */
#include <stdio.h>
#include <string.h>

#include "doctor.h"

/* ---- peer to peer ---- */

/* Steps from the root that two places have in common, and how many each has. */
static unsigned int common(const char *a, const char *b)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		n += a[i] == '/';
	if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/'))
		n++;
	return n;
}

/*
 * doc_near() - how near two PCI devices are
 *
 * "pci0000:00/0000:00:01.0/0000:01:00.0/...": the host bridge, a root port, the upstream
 * port of a switch, ...  A switch in common is two steps below the bridge.
 */
enum doc_near doc_near(const struct doc_device *a, const struct doc_device *b)
{
	unsigned int n;

	if (!a->pci[0] || !b->pci[0])
		return DOC_NOWHERE;
	n = common(a->pci, b->pci);
	return n > 2 ? DOC_SWITCH : n ? DOC_ROOT : DOC_ACROSS;
}

/**
 * doc_p2p() - may one device reach the memory of the other past the CPU's memory?
 * @why: why, or why not
 */
bool doc_p2p(const struct doctor *d, const struct doc_device *a, const struct doc_device *b,
	     char *why, size_t len)
{
	static const char *const where[] = {
		"not both are PCI devices", "they are below different host bridges",
		"they are below one host bridge", "a switch connects them",
	};
	enum doc_near near = doc_near(a, b);

	if (d->p2pdma != DOC_YES)
		snprintf(why, len, "the kernel %s CONFIG_PCI_P2PDMA", d->p2pdma == DOC_NO ?
			 "lacks" : "may lack");
	else if (near == DOC_ROOT && d->translates)
		snprintf(why, len, "%s, but the IOMMU translates", where[near]);
	else
		snprintf(why, len, "%s", where[near]);
	return d->p2pdma == DOC_YES &&
	       (near == DOC_SWITCH || (near == DOC_ROOT && !d->translates));
}

/* ---- ways ---- */

static struct doc_way way(const char *way, const char *why)
{
	struct doc_way w = { .way = way };

	snprintf(w.why, sizeof(w.why), "%s", why);
	return w;
}

static struct doc_way host_tier(const struct doc_device *tier)
{
	if (!strcmp(tier->what, "blk"))
		return way("direct I/O", "the drive reads and writes the pages of host tiers");
	if (!strcmp(tier->what, "dmabuf"))
		return way("CPU copy", "the buffer's exporter lets the CPU map it");
	if (!strcmp(tier->what, "bar"))
		return way("mapping", "the BAR is mapped into the process, write-combining");
	return way("mapping", "its pages are mapped into the process");
}

static struct doc_way host_gpu(const struct doctor *d)
{
	if (!d->nvidia)
		return way("none", "the GPU's driver is not loaded");
	return way("copy engine", "through pinned host memory, libcuda.so.1");
}

static struct doc_way host_npu(const struct doc_device *npu)
{
	if (!npu->what[0])
		return way("none", "no driver is bound to it");
	if (strcmp(npu->what, "hawk_npu"))
		return way("none", "another driver than hawk_npu has it");
	return way("mapping", "its BAR is a tier, mapped write-combining");
}

/* Memory of the host that a NIC registers; @tier: blocks with pages. */
static struct doc_way rdma_memory(const struct doctor *d, const struct doc_device *nic, bool tier)
{
	struct doc_way w = way("registration", "of the mapping, pages pinned");

	if (tier && d->hawk_peer && d->memory_peers)
		w = way("peer client", "hawk_peer pins blocks of the mapping");
	else if (tier && !nic->soft)
		w = way("dma-buf", "an export of blocks, registered without pinning pages twice");
	if (nic->soft) {
		size_t n = strlen(w.why);

		snprintf(w.why + n, sizeof(w.why) - n, "; the CPU sends, %s is no hardware", nic->name);
	}
	return w;
}

static struct doc_way gpu_rdma(const struct doctor *d, const struct doc_device *gpu,
			       const struct doc_device *nic)
{
	struct doc_way w = { .way = "host memory" };

	if (!d->nvidia)
		return way("none", "the GPU's driver is not loaded");
	if (nic->soft)
		return way("host memory", "a NIC in software reaches no memory of a GPU");
	if (d->nvidia_open && doc_p2p(d, gpu, nic, w.why, sizeof(w.why)))
		w.way = "dma-buf";
	else if (d->peermem && doc_near(gpu, nic) != DOC_ACROSS)
		w = way("nvidia-peermem", "the module is loaded");
	else if (d->peermem)
		w = way("host memory", "nvidia-peermem is loaded, but they are below different host bridges");
	else if (!d->nvidia_open)
		w = way("host memory", "the driver's kernel modules are not the open ones, and nvidia-peermem is not loaded");
	return w;
}

static struct doc_way npu_rdma(const struct doc_device *npu)
{
	if (strcmp(npu->what, "hawk_npu"))
		return way("none", "hawk_npu is not bound to it");
	return way("host memory", "a BAR has no pages that a NIC could register, and hawk_npu exports none");
}

static struct doc_way accelerators(const struct doctor *d, const struct doc_device *a,
				   const struct doc_device *b)
{
	if (a->kind == DOC_GPU && b->kind == DOC_GPU)
		return d->nvidia ? way("driver", "CUDA chooses NVLink, PCIe or host memory") :
				   way("none", "the GPU's driver is not loaded");
	if ((a->kind == DOC_GPU && !d->nvidia) || (a->kind == DOC_NPU && strcmp(a->what, "hawk_npu")) ||
	    (b->kind == DOC_NPU && strcmp(b->what, "hawk_npu")))
		return way("none", "a driver is missing");
	return way("host memory", "a block is copied out of one and into the other");
}

static struct doc_way tier_tier(const struct doc_device *a, const struct doc_device *b)
{
	bool fa = !strcmp(a->what, "blk"), fb = !strcmp(b->what, "blk");

	if (fa && fb)
		return way("host memory", "blocks go from flash to flash by way of a host tier");
	if (fa != fb)
		return way(strcmp((fa ? b : a)->what, "host") ? "bounce pages" : "direct I/O",
			   "evictions and reloads");
	return way("CPU copy", "when a shared block is written to");
}

/* Blocks in a tier of the device, and something else. */
static struct doc_way tier_other(const struct doctor *d, const struct doc_device *tier,
				 const struct doc_device *b)
{
	bool bar = !strcmp(tier->what, "bar");

	if (b->kind == DOC_TIER)
		return tier_tier(tier, b);
	if (bar && b->kind == DOC_NPU)
		return way("local", "the tier is the BAR of an NPU");
	if (b->kind != DOC_RDMA)
		return way("host memory", "the block is mapped, then as from host memory");
	if (!strcmp(tier->what, "blk"))
		return way("host memory", "blocks on flash are reloaded first");
	if (bar)
		return way("host memory", "a BAR has no pages that a NIC could register");
	return rdma_memory(d, b, true);
}

/**
 * doc_way() - the way between two devices
 * @a: the one of the lower kind
 * @b: the other one
 */
struct doc_way doc_way(const struct doctor *d, const struct doc_device *a,
		       const struct doc_device *b)
{
	if (a->kind == DOC_HOST)
		return b->kind == DOC_TIER ? host_tier(b) : b->kind == DOC_GPU ? host_gpu(d) :
		       b->kind == DOC_NPU ? host_npu(b) : rdma_memory(d, b, false);
	if (a->kind == DOC_TIER)
		return tier_other(d, a, b);
	if (b->kind != DOC_RDMA)
		return accelerators(d, a, b);
	if (a->kind == DOC_RDMA)
		return way("host memory", "a block received by one is sent by the other");
	return a->kind == DOC_GPU ? gpu_rdma(d, a, b) : npu_rdma(a);
}
