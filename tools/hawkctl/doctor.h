/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - hawkctl doctor: which way bytes take between two devices, and what to mend
 *
 *	doctor_read.c	files below a root, whatever they are
 *	doctor_find.c	devices and what the host can
 *	doctor_pair.c	the way of each pair
 *	doctor_fix.c	what could be better
 *	doctor.c	all of that, printed
 */
#ifndef HAWKCTL_DOCTOR_H
#define HAWKCTL_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOC_DEVICES	64	/* more are counted, and told */
#define DOC_FINDINGS	(3 * DOC_DEVICES + 16)	/* as many as there can be */
#define DOC_TEXT	64	/* bytes of a value that is shown */

enum doc_kind { DOC_HOST, DOC_TIER, DOC_GPU, DOC_NPU, DOC_RDMA, DOC_KINDS };

/* What is not known is not taken for no. */
enum doc_know { DOC_UNKNOWN, DOC_NO, DOC_YES };

/**
 * struct doc_device - one end of a way
 * @kind: what it is
 * @name: as its driver calls it, or its PCI address
 * @what: kind of a tier, driver of a PCI device, link of a NIC; empty if there is none
 * @pci: where it is in the PCI tree: addresses from the root down, '/' between, or empty
 * @netdev: a NIC's network interface, or empty
 * @mtu: of @netdev, bytes
 * @up: @netdev is
 * @ethernet: RDMA over Ethernet
 * @soft: no hardware: the CPU copies
 * @roce2: it has a RoCE v2 GID
 */
struct doc_device {
	enum doc_kind kind;
	char name[DOC_TEXT];
	char what[DOC_TEXT];
	char pci[256];
	char netdev[DOC_TEXT];
	uint64_t mtu;
	bool up;
	bool ethernet;
	bool soft;
	bool roce2;
};

/**
 * struct doc_finding - something to mend
 * @subject: device or part of the host
 * @problem: what is wrong
 * @fix: what to do
 */
struct doc_finding {
	char subject[DOC_TEXT];
	char problem[192];
	char fix[192];
};

/**
 * struct doctor - what has been found
 * @root: all paths are below it
 * @release: of the kernel
 * @p2pdma, @move_notify, @device_private: CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY,
 *	CONFIG_DEVICE_PRIVATE
 * @config: the kernel's configuration was found
 * @iommu: there is one
 * @translates: it gives devices addresses of their own
 * @memlock: RLIMIT_MEMLOCK, bytes, UINT64_MAX: unlimited
 * @memlock_known: it could be read
 * @module: hawk.ko is loaded
 * @peermem: nvidia-peermem is loaded
 * @memory_peers: the RDMA stack has ib_register_peer_memory_client()
 * @hawk_peer: and our client is there
 * @nvidia: the GPUs' driver is loaded
 * @nvidia_open: and its kernel modules are the open ones, which have dma-bufs
 * @thp: transparent huge pages, as the kernel says
 * @shmem_thp: likewise in memfds
 */
struct doctor {
	const char *root;
	char release[DOC_TEXT];
	bool config;
	enum doc_know p2pdma, move_notify, device_private;
	bool iommu, translates;
	uint64_t memlock;
	bool memlock_known;
	bool module, peermem, memory_peers, hawk_peer, nvidia, nvidia_open;
	char thp[DOC_TEXT], shmem_thp[DOC_TEXT];
	struct doc_device dev[DOC_DEVICES];
	size_t devs, devs_left;
	struct doc_finding finding[DOC_FINDINGS];
	size_t findings;
};

/* doctor_read.c */
bool doc_path(const struct doctor *d, char to[PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool doc_exists(const char *path);
bool doc_text(const char *path, char *to, size_t len);
bool doc_number(const char *path, uint64_t *v);
bool doc_lines(const char *path, bool (*line)(void *arg, const char *text), void *arg);
int doc_list(const char *path, void (*entry)(void *arg, const char *name), void *arg);

/* doctor_find.c */
void doc_find(struct doctor *d);
const char *doc_kind_name(enum doc_kind kind);

/* doctor_pair.c */

/**
 * struct doc_way - how bytes go between two devices
 * @way: in a word
 * @why: that one
 */
struct doc_way {
	const char *way;
	char why[192];
};

/* How near two PCI devices are to each other. */
enum doc_near { DOC_NOWHERE, DOC_ACROSS, DOC_ROOT, DOC_SWITCH };

enum doc_near doc_near(const struct doc_device *a, const struct doc_device *b);
bool doc_p2p(const struct doctor *d, const struct doc_device *a, const struct doc_device *b,
	     char *why, size_t len);
struct doc_way doc_way(const struct doctor *d, const struct doc_device *a,
		       const struct doc_device *b);

/* doctor_fix.c */
void doc_fix(struct doctor *d);

/* doctor.c; return: exit status */
int doctor(const char *root, bool json);

#endif
