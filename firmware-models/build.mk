# SPDX-License-Identifier: GPL-2.0
#
# The models are built with hawk.ko, whose symbols they use.

## models	hawk_*.ko of firmware-models for both lab kernels, in build/kmod-KERNEL
.PHONY: models
models: modules
