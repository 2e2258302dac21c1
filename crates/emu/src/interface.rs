//! What both ends of a host's interface agree on.

/// The name of the interface in every host's namespace.
pub const INTERFACE: &str = "radio0";

/// The largest MTU of an interface, in octets: the largest 802.11 payload, rounded up.
pub(crate) const MTU_MAX: usize = 2400;
