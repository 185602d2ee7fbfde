/* SPDX-License-Identifier: MIT */
/* print.h - what hawkctl prints, as text for people or as JSON */
#ifndef HAWKCTL_PRINT_H
#define HAWKCTL_PRINT_H

#include <jansson.h>
#include <linux/hawk.h>
#include <stdbool.h>

/* Prints and frees it. */
void print_json(json_t *o);
/* @to: room for 37 bytes */
void print_uuid(char *to, const unsigned char *uuid);
void print_query(const struct hawk_query *q, const char *backend, bool json);
void print_tiers(const struct hawk_tier_info *ti, unsigned int n, bool json);
void print_tier_id(unsigned int tier, bool json);
void print_stats(const char *name, const struct hawk_space_info *info,
		 const struct hawk_stats_page *page, bool json);

#endif
