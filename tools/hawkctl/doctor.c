// SPDX-License-Identifier: MIT
/* doctor.c - hawkctl doctor: what was found, printed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "print.h"

static const char *know(enum doc_know k)
{
	static const char *const name[] = { "unknown", "no", "yes" };

	return name[k];
}

static const char *iommu(const struct doctor *d)
{
	return !d->iommu ? "none" : d->translates ? "translates" : "passthrough";
}

static const char *peer_memory(const struct doctor *d)
{
	if (!d->memory_peers)
		return d->peermem ? "nvidia-peermem" : "no";
	return d->hawk_peer ? "hawk_peer" : "yes";
}

static json_t *memlock_json(const struct doctor *d)
{
	if (!d->memlock_known)
		return json_null();
	return d->memlock == UINT64_MAX ? json_string("unlimited") :
					  json_integer((json_int_t)d->memlock);
}

static json_t *host_json(const struct doctor *d)
{
	return json_pack("{s:s,s:b,s:s,s:s,s:s,s:s,s:o,s:s,s:s,s:s,s:b,s:b}",
			 "release", d->release, "module", d->module,
			 "pci_p2pdma", know(d->p2pdma), "dmabuf_move_notify", know(d->move_notify),
			 "device_private", know(d->device_private), "iommu", iommu(d),
			 "memlock_bytes", memlock_json(d), "huge_pages", d->thp,
			 "huge_pages_shmem", d->shmem_thp, "peer_memory", peer_memory(d),
			 "nvidia_open", d->nvidia_open, "nvidia", d->nvidia);
}

static json_t *device_json(const struct doc_device *v)
{
	json_t *o = json_pack("{s:s,s:s,s:s,s:s}", "kind", doc_kind_name(v->kind), "name", v->name,
			      "what", v->what, "pci", v->pci);

	if (v->kind == DOC_RDMA)
		json_object_update_new(o, json_pack("{s:s,s:I,s:b,s:b,s:b}", "netdev", v->netdev,
						    "mtu", (json_int_t)v->mtu, "up", v->up,
						    "roce_v2", v->roce2, "soft", v->soft));
	return o;
}

static void print_all_json(const struct doctor *d)
{
	json_t *o = json_object(), *devs = json_array(), *pairs = json_array();
	json_t *findings = json_array();
	struct doc_way w;
	size_t i, k;

	for (i = 0; i < d->devs; i++)
		json_array_append_new(devs, device_json(&d->dev[i]));
	for (i = 0; i < d->devs; i++)
		for (k = i + 1; k < d->devs; k++) {
			w = doc_way(d, &d->dev[i], &d->dev[k]);
			json_array_append_new(pairs, json_pack("{s:[ss],s:s,s:s}", "between",
							       d->dev[i].name, d->dev[k].name,
							       "way", w.way, "why", w.why));
		}
	for (i = 0; i < d->findings; i++)
		json_array_append_new(findings, json_pack("{s:s,s:s,s:s}", "subject",
							  d->finding[i].subject, "problem",
							  d->finding[i].problem, "fix",
							  d->finding[i].fix));
	json_object_set_new(o, "host", host_json(d));
	json_object_set_new(o, "devices", devs);
	json_object_set_new(o, "ways", pairs);
	json_object_set_new(o, "findings", findings);
	print_json(o);
}

static void print_host(const struct doctor *d)
{
	printf("kernel       %s, PCI P2PDMA %s, dma-buf move notify %s, device-private memory %s\n",
	       d->release[0] ? d->release : "unknown", know(d->p2pdma), know(d->move_notify),
	       know(d->device_private));
	printf("hawk.ko      %s\nIOMMU        %s\n", d->module ? "loaded" : "not loaded", iommu(d));
	if (!d->memlock_known)
		printf("memlock      unknown\n");
	else if (d->memlock == UINT64_MAX)
		printf("memlock      unlimited\n");
	else
		printf("memlock      %llu KiB\n", (unsigned long long)d->memlock >> 10);
	printf("huge pages   %s, shared memory %s\npeer memory  %s\n",
	       d->thp[0] ? d->thp : "unknown", d->shmem_thp[0] ? d->shmem_thp : "unknown",
	       peer_memory(d));
}

static void print_device(const struct doc_device *v)
{
	const char *at = strrchr(v->pci, '/');

	printf("  %-5s %-16s %s", doc_kind_name(v->kind), v->name, v->what);
	if (at && strcmp(at + 1, v->name))
		printf(" at %s", at + 1);
	if (v->netdev[0])
		printf(" on %s, MTU %llu%s%s", v->netdev, (unsigned long long)v->mtu,
		       v->up ? "" : ", down", v->roce2 ? ", RoCE v2" : "");
	printf("%s\n", v->soft ? ", in software" : "");
}

static void print_text(const struct doctor *d)
{
	struct doc_way w;
	size_t i, k;

	print_host(d);
	printf("\ndevices\n");
	for (i = 0; i < d->devs; i++)
		print_device(&d->dev[i]);
	if (d->devs > 1)
		printf("\nways\n");
	for (i = 0; i < d->devs; i++)
		for (k = i + 1; k < d->devs; k++) {
			w = doc_way(d, &d->dev[i], &d->dev[k]);
			printf("  %s - %s: %s: %s\n", d->dev[i].name, d->dev[k].name, w.way, w.why);
		}
	printf("\n%s\n", d->findings ? "to mend" : "nothing to mend");
	for (i = 0; i < d->findings; i++)
		printf("  %s: %s\n      %s\n", d->finding[i].subject, d->finding[i].problem,
		       d->finding[i].fix);
}

/**
 * doctor() - the command
 * @root: folder in the place of /, or ""
 *
 * Return: exit status: 0 nothing to mend, 1 something, 3 no memory.
 */
int doctor(const char *root, bool json)
{
	struct doctor *d = calloc(1, sizeof(*d));
	int ret;

	if (!d) {
		fprintf(stderr, "hawkctl: no memory\n");
		return 3;
	}
	d->root = root;
	doc_find(d);
	doc_fix(d);
	if (json)
		print_all_json(d);
	else
		print_text(d);
	ret = d->findings ? 1 : 0;
	free(d);
	return ret;
}
