# SPDX-License-Identifier: MIT
#
# Hawk: one Makefile, no recursion.  Each folder says what it adds in its
# build.mk; everything built lands under build/.
#
#	make			library, daemon, tools
#	make demo		the main job on the embedded backend
#	make check		every test, native and in the VM
#	make check-debug	the module on a kernel that looks for errors of its own
#	make check-unit		unit tests; UNIT=core_% some of them
#	make SAN=thread ...	the same under a sanitizer, in a build folder of its own
#	make help		all targets

# SAN=address,undefined or SAN=thread: sanitized, in a build folder of its own
BUILD	:= build$(if $(SAN),/$(if $(findstring thread,$(SAN)),tsan,asan))
VERSION	:= 0.1
CC	?= gcc
PREFIX	?= /usr/local
DESTDIR	?=

CFLAGS	?= -O2 -g
CFLAGS_COMMON := -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wshadow=local -fPIC \
		 -fno-strict-aliasing -pthread -MMD -MP \
		 -I$(BUILD)/include -Ilibhawk/include
LDFLAGS_COMMON := -pthread

ifneq ($(SAN),)
CFLAGS_COMMON += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_COMMON += -fsanitize=$(SAN)
# gcc warns of every fence, because its TSan does not follow them
CFLAGS_COMMON += $(if $(findstring thread,$(SAN)),$(if $(findstring clang,$(CC)),,-Wno-tsan))
endif

PROGS		:=
LIBS		:=
TESTS_UNIT	:=
TESTS_E2E	:=
MANPAGES	:=
CHECK_LONG	:=

.PHONY: all
all:

FRAGMENTS := $(sort $(wildcard kmod/build.mk libhawk/build.mk daemon/build.mk \
			       firmware-models/build.mk tools/build.mk tests/build.mk \
			       tests/*/build.mk))
include $(FRAGMENTS)

all: $(LIBS) $(PROGS)

# <linux/hawk.h> for our own sources, before anything is installed
$(BUILD)/include/linux/hawk.h: uapi/hawk.h
	@mkdir -p $(@D)
	@cp $< $@

# A missing package is named before the compiler stumbles over it.  It is no error
# here: what is needed may have been installed in other ways.
$(BUILD)/.packages: tools/setup/packages.list
	@mkdir -p $(@D)
	@if tools/setup/install-deps --dry-run build; then touch $@; fi

# Any object: build/obj/PATH.o from PATH.c; a fragment may set CFLAGS_<path>.o
$(BUILD)/obj/%.o: %.c | $(BUILD)/.packages $(BUILD)/include/linux/hawk.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CFLAGS_COMMON) $(CFLAGS) $(CFLAGS_$(notdir $*)) -c -o $@ $<

# Every executable that speaks TAP is a test
PROVE := CMOCKA_MESSAGE_OUTPUT=TAP prove --timer --exec tests/unit/tap-exec
TESTS_VM := $(filter %-vm.t %/lab.t %/kselftest.t,$(TESTS_E2E))

# These start no thread, so that there is nothing in them for TSan to find
TESTS_ALONE := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,\
		 $(shell grep -L pthread_create tests/unit/core_*.c tests/unit/lib_layout_*.c))

.PHONY: tests
tests: $(if $(findstring thread,$(SAN)),$(filter-out $(TESTS_ALONE),$(TESTS_UNIT)),$(TESTS_UNIT))

## check-unit	unit tests, UNIT=PATTERN chooses (core_%), SAN=address,undefined or thread
UNIT ?= %
.PHONY: check-unit run-unit
check-unit:
	@tools/setup/install-deps build test
	@$(MAKE) --no-print-directory run-unit
run-unit: $(filter $(UNIT:%=$(BUILD)/tests/%),$(TESTS_UNIT))
	@$(PROVE) $(sort $^)

## check-vm	the module, the library and the daemon over /dev/hawk, in the lab's VM
.PHONY: check-vm
check-vm:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory all tests modules
	@$(PROVE) $(TESTS_VM)

# The longest run first, so that none is left alone at the end
## check	every test, native and in the VM
.PHONY: check
check:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory -j2 all tests modules
	@$(MAKE) --no-print-directory -j2 SAN=address,undefined tests
	@$(MAKE) --no-print-directory -j2 SAN=thread tests
	@$(PROVE) -j2 $(TESTS_VM) $(filter-out $(TESTS_VM),$(TESTS_E2E)) $(TESTS_UNIT) \
		$(TESTS_UNIT:build/%=build/asan/%) \
		$(patsubst build/%,build/tsan/%,$(filter-out $(TESTS_ALONE),$(TESTS_UNIT)))

# Asks for less of what only takes time (HAWK_KILL_N) and for all of the rest.
## check-debug	the module on the debug kernel: sanitizers, lockdep, leaks, failures, fuzzing
.PHONY: check-debug
check-debug:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory $(BUILD)/bin/hawkctl $(BUILD)/tests/pool_fill
	@tools/lab/build-module --kernel debug >/dev/null
	@HAWK_KERNELS=debug HAWK_PANIC_ON_WARN=1 HAWK_KILL_N=$${HAWK_KILL_N:-50} \
		HAWK_VM_TIMEOUT=$${HAWK_VM_TIMEOUT:-3600} \
		$(PROVE) tests/e2e/kselftest.t tests/kselftest/debug.t

# A fragment adds the target of its long proof to CHECK_LONG
## check-long	proofs that take hours: 10^8 simulated events, 10^6 random calls, 10^4 deaths of a writer
.PHONY: check-long
check-long: $(CHECK_LONG)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf $(BUILD)

.PHONY: help
help:
	@grep -hE '^## ' Makefile $(FRAGMENTS) | sed 's/^## \(make \)*//'
