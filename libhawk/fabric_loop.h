/* SPDX-License-Identifier: MIT */
/*
 * fabric_loop.h - faults of the network within a process, for tests
 */
#ifndef HAWK_FABRIC_LOOP_H
#define HAWK_FABRIC_LOOP_H

#include "fabric.h"

/**
 * struct loop_faults - what goes wrong
 * @seed: for @lag
 * @kill: the connection breaks at this request, counted from 1 over all connections; 0: none
 * @lost_ack: that request is carried out nevertheless
 * @flip: the first byte that this write writes is wrong; 0: none
 * @lag: completions come up to so many polls late, and so does the carrying out of writes
 */
struct loop_faults {
	uint64_t seed;
	uint64_t kill;
	bool lost_ack;
	uint64_t flip;
	unsigned int lag;
};

/* From now on; counting begins again.  NULL: none. */
void hawk_loop_faults(const struct loop_faults *f);

/* Requests since then. */
uint64_t hawk_loop_requests(void);

#endif /* HAWK_FABRIC_LOOP_H */
