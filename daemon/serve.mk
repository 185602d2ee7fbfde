# SPDX-License-Identifier: MIT
#
# hawkd itself: HTTP, scheduler, KV memory over libhawk.  build.mk includes it.

HAWKD_SRCS := $(wildcard daemon/*.c daemon/kv/*.c daemon/sched/*.c daemon/http/*.c \
			 daemon/metrics/*.c)
HAWKD_OBJS := $(HAWKD_SRCS:%.c=$(BUILD)/obj/%.o)
HAWKD_LIBS := $(HAWKEXEC_LIB) $(BUILD)/lib/libhawk.a
HAWKD_LDLIBS := -lmicrohttpd -ljansson -luring $(HAWKEXEC_LDLIBS)

$(HAWKD_OBJS): CFLAGS_COMMON += -D_GNU_SOURCE

$(BUILD)/bin/hawkd: $(HAWKD_OBJS) $(HAWKD_LIBS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ $(HAWKD_LDLIBS)

PROGS	 += $(BUILD)/bin/hawkd
MANPAGES += daemon/man/hawkd.8

# Unit tests of the serving half: all of hawkd but its main()
HAWKD_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/serve_*.c))
$(HAWKD_TESTS:$(BUILD)/tests/%=$(BUILD)/obj/tests/unit/%.o): \
	CFLAGS_COMMON += -Idaemon -D_GNU_SOURCE

$(HAWKD_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(HAWKEXEC_TEST_OBJS) \
		$(filter-out $(BUILD)/obj/daemon/main.o,$(HAWKD_OBJS)) $(HAWKD_LIBS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -lcmocka $(HAWKD_LDLIBS)

TESTS_UNIT += $(HAWKD_TESTS)

.PHONY: install install-hawkd
install: install-hawkd
install-hawkd: $(BUILD)/bin/hawkd
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/doc/hawk
	install -m 755 $< $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 daemon/man/hawkd.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	sed 's|@PREFIX@|$(PREFIX)|g' daemon/packaging/hawkd.service.in \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/hawkd.service
	install -m 644 daemon/packaging/hawkd.env $(DESTDIR)$(PREFIX)/share/doc/hawk/
