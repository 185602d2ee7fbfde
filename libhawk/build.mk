# SPDX-License-Identifier: MIT
#
# libhawk: the engine, the public calls and the two backends, as a static and a
# shared library; its man pages, its pkg-config file, its tests.

LIBHAWK_SRCS	:= $(wildcard libhawk/*.c) $(wildcard kmod/core/*.c)
LIBHAWK_OBJS	:= $(LIBHAWK_SRCS:%.c=$(BUILD)/obj/%.o)
LIBHAWK_A	:= $(BUILD)/lib/libhawk.a
LIBHAWK_SO	:= $(BUILD)/lib/libhawk.so.0
LIBHAWK_LDLIBS	:= -luring -lsodium
LIBHAWK_MAN	:= $(wildcard libhawk/man/*.3)

LIBS	 += $(LIBHAWK_A) $(LIBHAWK_SO)
MANPAGES += $(LIBHAWK_MAN)

$(LIBHAWK_OBJS): CFLAGS_COMMON += -fvisibility=hidden

$(LIBHAWK_A): $(LIBHAWK_OBJS)
	@mkdir -p $(@D)
	@echo "  AR      $@"
	@rm -f $@
	@$(AR) rcs $@ $^

$(LIBHAWK_SO): $(LIBHAWK_OBJS) libhawk/libhawk.map
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) -shared $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -Wl,-soname,libhawk.so.0 \
		-Wl,--version-script=libhawk/libhawk.map -o $@ $(LIBHAWK_OBJS) $(LIBHAWK_LDLIBS)
	@ln -sf libhawk.so.0 $(@D)/libhawk.so

# Depends on PREFIX, which may change from call to call
.PHONY: libhawk-pc
$(BUILD)/lib/libhawk.pc: libhawk-pc libhawk/libhawk.pc.in
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
		libhawk/libhawk.pc.in >$@

# A page has a link for each further name in its NAME section
LIBHAWK_MANDIR	:= $(DESTDIR)$(PREFIX)/share/man/man3
MAN_NAMES	:= sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([a-z_]*\).*/\1/p'

## make install	library, headers, man pages under $(DESTDIR)$(PREFIX)
.PHONY: install install-libhawk
install: install-libhawk
install-libhawk: $(LIBHAWK_A) $(LIBHAWK_SO) $(BUILD)/lib/libhawk.pc
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,lib/pkgconfig include/hawk include/linux) \
		$(LIBHAWK_MANDIR)
	install -m 644 $(LIBHAWK_A) $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(LIBHAWK_SO) $(DESTDIR)$(PREFIX)/lib/
	ln -sf libhawk.so.0 $(DESTDIR)$(PREFIX)/lib/libhawk.so
	install -m 644 $(BUILD)/lib/libhawk.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	install -m 644 $(wildcard libhawk/include/hawk/*.h) $(DESTDIR)$(PREFIX)/include/hawk/
	install -m 644 uapi/hawk.h $(DESTDIR)$(PREFIX)/include/linux/
	install -m 644 $(LIBHAWK_MAN) $(LIBHAWK_MANDIR)/
	@for page in $(LIBHAWK_MAN); do \
		for name in $$($(MAN_NAMES) $$page); do \
			test -e $(LIBHAWK_MANDIR)/$$name.3 || \
				ln -s $${page##*/} $(LIBHAWK_MANDIR)/$$name.3; \
		done; \
	done

# Unit tests: tests/unit/lib_NAME.c with the fixture they share
LIBHAWK_TESTS	   := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/lib_*.c))
LIBHAWK_TEST_OBJS := $(BUILD)/obj/tests/unit/libfixture.o
$(BUILD)/obj/tests/unit/lib%.o: CFLAGS_COMMON += -D_GNU_SOURCE -Ilibhawk

$(LIBHAWK_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(LIBHAWK_TEST_OBJS) $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBHAWK_LDLIBS)

# Drives that stall
$(BUILD)/tests/lib_drives: LDFLAGS_COMMON += -Wl,--wrap=preadv,--wrap=io_uring_queue_init

# Layouts drawn by lot
$(filter $(BUILD)/tests/lib_layout_% $(BUILD)/tests/lib_peer_session,$(LIBHAWK_TESTS)): $(BUILD)/obj/tests/unit/layout_gen.o
$(BUILD)/obj/tests/unit/layout_gen.o: CFLAGS_COMMON += -D_GNU_SOURCE -Ilibhawk

TESTS_UNIT += $(LIBHAWK_TESTS)

## make layout-long	10^6 pairs of layouts drawn by lot, and 10^5 by every way (LAYOUT_PAIRS=N)
LAYOUT_PAIRS ?= 1000000
CHECK_LONG += layout-long
.PHONY: layout-long
layout-long: $(BUILD)/tests/lib_layout_random $(BUILD)/tests/lib_layout_ways
	@HAWK_OPS=$(LAYOUT_PAIRS) $(PROVE) $(BUILD)/tests/lib_layout_random
	@HAWK_OPS=$$(($(LAYOUT_PAIRS) / 10)) $(PROVE) $(BUILD)/tests/lib_layout_ways

# What tests/e2e/translate-nosyscall.t watches
$(BUILD)/tests/translate_loop $(BUILD)/tests/draft_loop: \
		$(BUILD)/tests/%: $(BUILD)/obj/tests/e2e/lib/%.o $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ $(LIBHAWK_LDLIBS)

# What the scripts of tools/bpf look at (tests/e2e/bpf-vm.t)
$(BUILD)/tests/bpf_work: $(BUILD)/obj/tests/e2e/lib/bpf_work.o $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ $(LIBHAWK_LDLIBS)

# What tests/e2e/hawkctl-flash.t fills pools with; what tests/e2e/powerlog-vm.t makes of them
$(BUILD)/tests/log_replay: $(patsubst %,$(BUILD)/obj/tests/e2e/lib/%.o,poolimage writelog)
$(BUILD)/tests/pool_fill $(BUILD)/tests/log_replay: \
		$(BUILD)/tests/%: $(BUILD)/obj/tests/e2e/lib/%.o \
				  $(BUILD)/obj/tests/e2e/lib/versions.o $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBHAWK_A) \
		$(LIBHAWK_LDLIBS)

$(BUILD)/tests/drives_do: $(BUILD)/obj/tests/e2e/lib/drives_do.o $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ $(LIBHAWK_LDLIBS)

# The two hosts of tests/e2e/peer-vm.t, those of npu-peer-vm.t
$(patsubst %,$(BUILD)/obj/tests/e2e/lib/%.o,peer_host peer_do npu_do): CFLAGS_COMMON += -Ilibhawk
$(BUILD)/tests/npu_do: $(BUILD)/obj/tests/e2e/lib/npu_kv.o
$(BUILD)/tests/peer_do $(BUILD)/tests/npu_do: \
		$(BUILD)/tests/%: $(BUILD)/obj/tests/e2e/lib/%.o \
				  $(BUILD)/obj/tests/e2e/lib/peer_host.o $(LIBHAWK_A)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBHAWK_A) \
		$(LIBHAWK_LDLIBS) -lm

## make peer-long	two virtual machines: a network that loses packets, a host that dies, an NPU
CHECK_LONG += peer-long
.PHONY: peer-long
peer-long:
	@tools/setup/install-deps build module lab test
	@$(MAKE) --no-print-directory all tests module-6.1
	@HAWK_PEER_PAIR=1 $(PROVE) tests/e2e/peer-vm.t tests/e2e/npu-peer-vm.t

tests: $(patsubst %,$(BUILD)/tests/%,peer_do npu_do pool_fill log_replay drives_do translate_loop draft_loop bpf_work)
