/* SPDX-License-Identifier: MIT */
/* flash.h - hawkctl flash: pools on a device or file, without a Hawk device */
#ifndef HAWKCTL_FLASH_H
#define HAWKCTL_FLASH_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct flash_opts - options of the flash commands
 * @bytes: of the pool, 0: all of the device or file
 * @slot_bytes: smallest block kept, 0: the default
 * @dwpd_milli: rated drive writes per day / 1000, 0: not told
 * @endurance: rated bytes per day, 0: not told
 * @sparse: do not reserve the room of a file
 * @force: overwrite what is there; look at a pool that is in use
 * @data: check payloads too
 * @json: print JSON
 */
struct flash_opts {
	uint64_t bytes;
	uint64_t slot_bytes;
	uint64_t dwpd_milli;
	uint64_t endurance;
	bool sparse;
	bool force;
	bool data;
	bool json;
};

/* Return: exit status. */
int flash_format(const char *path, const struct flash_opts *o);
int flash_check(const char *path, const struct flash_opts *o);
int flash_dump(const char *path, const struct flash_opts *o);
int flash_wear(const char *path, const struct flash_opts *o);

#endif
