// SPDX-License-Identifier: GPL-2.0
/*
 * slot.c - the device is pulled out of its slot
 *
 * By QEMU's monitor (QMP): the guest is asked to let the device go, and QEMU takes it
 * away when it has.  The driver survives that; QEMU 7.2 may not: it has crashed soon after
 * it let an ivshmem-doorbell go.  So this is for use by hand, and tests remove the device
 * by sysfs.
 */
#include <string.h>
#include <unistd.h>

#include "npu.h"

/* Return: 0 or -1: the monitor is gone. */
int npu_slot_pull(int qmp)
{
	static const char text[] =
		"{\"execute\": \"qmp_capabilities\"}\n"
		"{\"execute\": \"device_del\", \"arguments\": {\"id\": \"npu\"}}\n";

	return write(qmp, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* What the monitor says is not for us; 0 or -1: it is gone. */
int npu_slot_hear(int qmp)
{
	char buf[4096];

	return read(qmp, buf, sizeof(buf)) > 0 ? 0 : -1;
}
