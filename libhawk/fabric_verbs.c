// SPDX-License-Identifier: MIT
/*
 * fabric_verbs.c - librdmacm and libibverbs are loaded when somebody asks for "rdma:"
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "fabric_verbs.h"

#ifdef HAWK_HAVE_VERBS

struct rdma_lib rdma_lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *missing;	/* what there is not; NULL: all is there */

static void load(void)
{
	void *rdma = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
	void *ibv = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	missing = !rdma ? "librdmacm.so.1" : !ibv ? "libibverbs.so.1" : NULL;
#define FIND(lib, f) do {						\
		if (!missing) {						\
			rdma_lib.p_##f = (__typeof__(&f))dlsym(lib, #f); \
			missing = rdma_lib.p_##f ? NULL : #f;		\
		}							\
	} while (0);
#define FIND_RDMA(f) FIND(rdma, f)
#define FIND_IBV(f) FIND(ibv, f)
	RDMA_FUNCTIONS(FIND_RDMA)
	IBV_FUNCTIONS(FIND_IBV)
}

int rdma_lib_load(void)
{
	pthread_once(&once, load);
	if (missing)
		return hawk_fail(-EOPNOTSUPP, "net: no %s: install rdma-core (librdmacm1, ibverbs-providers)",
				 missing);
	return 0;
}

#else

static int no_open(const char *where, unsigned int depth, struct fab **f)
{
	(void)where;
	(void)depth;
	(void)f;
	return hawk_fail(-EOPNOTSUPP, "net: libhawk was built without librdmacm-dev and libibverbs-dev");
}

/* Nothing can be opened, so nothing else is ever called. */
const struct fab_ops hawk_fab_rdma = { .name = "rdma", .open = no_open };

#endif
