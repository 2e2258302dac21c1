//! The octets that all frames of this crate have in common: the first holds version and type, the second the source.

/// The version in the high four bits of the first octet.
pub(crate) const VERSION: u8 = 1;
/// Place of version and type.
pub(crate) const TYPE: usize = 0;
/// Place of the source of the group; probes have none.
pub(crate) const SOURCE: usize = 1;

/// Why a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its own fields say.
    Short,
    /// Another version or an unknown type.
    Type(u8),
    /// A data frame with an empty code vector or without payload.
    Empty,
}

/// The source of the group that a frame belongs to, without further checks; `None` for probes and for other octets.
/// For applications that run a separate [`Node`](crate::Node) for each group.
pub fn group_of(sdu: &[u8]) -> Option<u16> {
    let first = *sdu.get(TYPE)?;
    let source = u16::from(*sdu.get(SOURCE)?);
    (first >> 4 == VERSION && first & 15 != 3).then_some(source)
}

/// The octet that names a node. [`Links`](crate::Links) has at most 256 nodes, so nothing is cut off.
pub(crate) fn octet(node: u16) -> u8 {
    node as u8
}

pub(crate) fn octet_at(bytes: &[u8], place: usize) -> u8 {
    bytes.get(place).copied().unwrap_or(0)
}

pub(crate) fn big_endian(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u32::from(byte))
}
