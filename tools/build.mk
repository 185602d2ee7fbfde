# SPDX-License-Identifier: MIT
#
# hawkctl and the demo.

HAWKCTL_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/hawkctl/*.c))
$(HAWKCTL_OBJS): CFLAGS_COMMON += -D_GNU_SOURCE

$(BUILD)/bin/hawkctl: $(HAWKCTL_OBJS) $(BUILD)/lib/libhawk.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	@$(CC) $(CFLAGS) $(LDFLAGS_COMMON) $(LDFLAGS) -o $@ $^ -ljansson -luring

PROGS	 += $(BUILD)/bin/hawkctl
MANPAGES += tools/hawkctl/hawkctl.8 tools/lab/hawk-lab.1

.PHONY: install install-hawkctl
install: install-hawkctl
install-hawkctl: $(BUILD)/bin/hawkctl
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 755 $< $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 tools/hawkctl/hawkctl.8 $(DESTDIR)$(PREFIX)/share/man/man8/

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
