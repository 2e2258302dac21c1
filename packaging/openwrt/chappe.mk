# What the recipes of chappe's daemons share, for OpenWrt's build system. It has not met that build system yet.
#
# A recipe sets PKG_NAME, which is also the name of the program and of its files, CHAPPE_TITLE and CHAPPE_DEPENDS, then includes
# this file and calls BuildPackage.
include $(TOPDIR)/rules.mk

PKG_VERSION:=0.1.0
PKG_RELEASE:=1

# The archive that `git archive --prefix=chappe-$(PKG_VERSION)/ HEAD` makes of a checkout, in dl/.
PKG_SOURCE:=chappe-$(PKG_VERSION).tar.gz
PKG_HASH:=skip
PKG_BUILD_DIR:=$(BUILD_DIR)/$(PKG_NAME)/chappe-$(PKG_VERSION)

PKG_LICENSE:=MIT OR Apache-2.0
PKG_BUILD_DEPENDS:=rust/host
PKG_BUILD_PARALLEL:=1

include $(INCLUDE_DIR)/package.mk
include $(TOPDIR)/feeds/packages/lang/rust/rust-package.mk

define Package/$(PKG_NAME)
  SECTION:=net
  CATEGORY:=Network
  TITLE:=$(CHAPPE_TITLE)
  DEPENDS:=$(RUST_ARCH_DEPENDS) $(CHAPPE_DEPENDS)
endef

define Package/$(PKG_NAME)/conffiles
/etc/config/$(PKG_NAME)
/etc/chappe/
endef

# `chappe-link` is `chappe` with the feature `link` alone.
define Build/Compile
	$(call Build/Compile/Cargo,crates/chappe,--no-default-features --features $(PKG_NAME:chappe-%=%))
endef

define Package/$(PKG_NAME)/install
	$(INSTALL_DIR) $(1)/usr/sbin $(1)/etc/init.d $(1)/etc/config $(1)/etc/chappe
	$(INSTALL_BIN) $(PKG_INSTALL_DIR)/bin/chappe $(1)/usr/sbin/$(PKG_NAME)
	$(INSTALL_BIN) ./files/$(PKG_NAME).init $(1)/etc/init.d/$(PKG_NAME)
	$(INSTALL_CONF) ./files/$(PKG_NAME).config $(1)/etc/config/$(PKG_NAME)
endef
