/* SPDX-License-Identifier: MIT */
#ifndef HAWK_SIM_DUMP_H
#define HAWK_SIM_DUMP_H

#include <stdio.h>

#include "sim.h"

/** sim_dump() - print a space: what it owns, and each block */
void sim_dump(FILE *out, u32 space);

#endif /* HAWK_SIM_DUMP_H */
