# SPDX-License-Identifier: MIT
#
# hawkctl and the demo.

HAWKCTL_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/hawkctl/*.c))
$(HAWKCTL_OBJS): CFLAGS_COMMON += -D_GNU_SOURCE

$(BUILD)/bin/hawkctl: $(HAWKCTL_OBJS) $(BUILD)/lib/libhawk.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -ljansson -luring -lblkid -lz

SIM_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/hawk-sim/*.c))
$(SIM_OBJS): CFLAGS_COMMON += -D_GNU_SOURCE $(COUNTED_CFLAGS)

$(BUILD)/bin/hawk-sim: $(SIM_OBJS) $(COUNTED_CORE_OBJS) $(BUILD)/obj/libhawk/crc32c.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -ljansson -lm

# tests/e2e/hawk-sim.t runs the one under ASan too; it has one thread only
tests: $(if $(findstring thread,$(SAN)),,$(BUILD)/bin/hawk-sim)

## make sim-long	10^8 simulated events of the engine
.PHONY: sim-long
sim-long:
	@tools/setup/install-deps build
	@$(MAKE) --no-print-directory $(BUILD)/bin/hawk-sim
	@$(BUILD)/bin/hawk-sim --torture --seed 1000 --events 100000000 --expect-all
CHECK_LONG += sim-long

PROGS	 += $(BUILD)/bin/hawkctl $(BUILD)/bin/hawk-sim
MANPAGES += tools/hawkctl/hawkctl.8 tools/hawkctl/hawk-flash.5 tools/hawk-sim/hawk-sim.1 tools/lab/hawk-lab.1

.PHONY: install install-hawkctl
install: install-hawkctl
install-hawkctl: $(BUILD)/bin/hawkctl
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/share/man/man5
	install -m 755 $< $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 tools/hawkctl/hawkctl.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	install -m 644 tools/hawkctl/hawk-flash.5 $(DESTDIR)$(PREFIX)/share/man/man5/

## make demo	the main job on the embedded backend, checked token by token
.PHONY: demo
demo:
	@tools/setup/install-deps build demo
	@$(MAKE) --no-print-directory all
	@tools/demo/demo.py --out $(BUILD)/demo.json

## make lab-demo	the same in a virtual machine, over /dev/hawk and an NVMe drive
.PHONY: lab-demo
lab-demo:
	@tools/setup/install-deps build demo module lab
	@$(MAKE) --no-print-directory all
	@tools/demo/lab-demo $(BUILD)/lab-demo
