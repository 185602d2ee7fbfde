// SPDX-License-Identifier: GPL-2.0
/* Until 6.13 a namespace was a token; then it became a string. */
#include <linux/module.h>

MODULE_IMPORT_NS(DMA_BUF);
