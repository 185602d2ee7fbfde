# SPDX-License-Identifier: GPL-2.0
#
# Installing the module's side of a host, and its sources for DKMS.  kmod/build.mk
# includes it.

HAWK_DKMS_DIR	= $(DESTDIR)/usr/src/hawk-$(VERSION)
HAWK_DKMS_DEB	= $(BUILD)/hawk-dkms_$(VERSION)_all.deb
# What kbuild reads, the manual and this folder's files; kmod/core has its own licence
HAWK_DKMS_SRCS	= Kbuild COPYING $(wildcard LICENSES/*) $(shell find kmod uapi -name '*.[ch]' -o -name '*.sh' -o -name Kbuild)
PKG		:= kmod/packaging
PKG_SED		= sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@VERSION@|$(VERSION)|g'
HAWK_LIB	= $(DESTDIR)$(PREFIX)/lib
HAWK_SHARE	= $(DESTDIR)$(PREFIX)/share

.PHONY: install install-kmod
install: install-kmod
install-kmod:
	install -d $(addprefix $(HAWK_LIB)/,udev/rules.d sysusers.d modules-load.d hawk \
		systemd/system) $(HAWK_SHARE)/man/man4 $(HAWK_SHARE)/doc/hawk
	install -m 644 $(wildcard kmod/man/*.4) $(HAWK_SHARE)/man/man4/
	install -m 644 $(PKG)/hawk.rules $(HAWK_LIB)/udev/rules.d/60-hawk.rules
	install -m 644 $(PKG)/hawk.sysusers $(HAWK_LIB)/sysusers.d/hawk.conf
	install -m 644 $(PKG)/hawk.modules-load $(HAWK_LIB)/modules-load.d/hawk.conf
	install -m 755 $(PKG)/hawk-tiers $(HAWK_LIB)/hawk/
	$(PKG_SED) $(PKG)/hawk-tiers.service.in >$(HAWK_LIB)/systemd/system/hawk-tiers.service
	install -m 644 $(PKG)/hawk.modprobe $(HAWK_SHARE)/doc/hawk/modprobe.conf
	install -m 644 $(PKG)/tiers.conf $(PKG)/SIGNING.md $(HAWK_SHARE)/doc/hawk/

## install-dkms	the module's sources to /usr/src, where DKMS finds them
.PHONY: install-dkms
install-dkms:
	@for file in $(HAWK_DKMS_SRCS); do \
		install -D -m 644 $$file $(HAWK_DKMS_DIR)/$$file || exit 1; \
	done
	@$(PKG_SED) $(PKG)/dkms.conf.in >$(HAWK_DKMS_DIR)/dkms.conf
	@echo "  DKMS    $(HAWK_DKMS_DIR)"

## dkms-deb	the Debian package hawk-dkms, build/hawk-dkms_VERSION_all.deb
.PHONY: dkms-deb
dkms-deb:
	@rm -rf $(BUILD)/dkms-deb
	@$(MAKE) --no-print-directory install-dkms DESTDIR=$(BUILD)/dkms-deb
	@cd $(BUILD)/dkms-deb && install -d DEBIAN usr/lib/udev/rules.d usr/lib/sysusers.d \
		usr/share/man/man4 usr/share/doc/hawk-dkms
	@install -m 644 $(PKG)/hawk.rules $(BUILD)/dkms-deb/usr/lib/udev/rules.d/60-hawk.rules
	@install -m 644 $(PKG)/hawk.sysusers $(BUILD)/dkms-deb/usr/lib/sysusers.d/hawk.conf
	@for page in hawk hawk_ioctl hawk_npu; do \
		gzip -9nc kmod/man/$$page.4 >$(BUILD)/dkms-deb/usr/share/man/man4/$$page.4.gz; done
	@install -m 644 COPYING $(BUILD)/dkms-deb/usr/share/doc/hawk-dkms/copyright
	@install -m 644 $(PKG)/SIGNING.md $(BUILD)/dkms-deb/usr/share/doc/hawk-dkms/
	@for file in control postinst prerm; do \
		$(PKG_SED) -e '/^# SPDX/d' $(PKG)/deb/$$file.in >$(BUILD)/dkms-deb/DEBIAN/$$file; done
	@chmod 755 $(BUILD)/dkms-deb/DEBIAN/postinst $(BUILD)/dkms-deb/DEBIAN/prerm
	@dpkg-deb --root-owner-group --build $(BUILD)/dkms-deb $(HAWK_DKMS_DEB) >/dev/null
	@echo "  DEB     $(HAWK_DKMS_DEB)"
