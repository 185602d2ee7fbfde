// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - the tracepoints themselves
 */
#include "hawk.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
