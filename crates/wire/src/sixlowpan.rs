//! IPv6 over 802.15.4 (6LoWPAN): dispatch, fragments, the mesh header, and header compression.
//!
//! | first octet | what | module |
//! |---|---|---|
//! | `00xxxxxx` | not 6LoWPAN | |
//! | `01000001` | an uncompressed IPv6 packet | |
//! | `011xxxxx` | compressed headers (RFC 6282) | [`iphc`] |
//! | `10xxxxxx` | mesh header (RFC 4944, 5.2) | [`mesh`] |
//! | `11000xxx`, `11100xxx` | first and further fragments (RFC 4944, 5.3) | [`frag`] |
//!
//! Behind compressed headers of IPv6, those of TCP may be compressed too: [`tcphc`], this project's own.
//!
//! Compression knows contexts in both directions and keeps the traffic class, so congestion marks (ECN) survive. Not
//! supported: HC1 and HC2 (RFC 4944, superseded), broadcast header, extension headers in compressed form, elided
//! UDP checksums, RFC 8138, RFC 7400, RFC 8931.

mod address;
pub mod frag;
pub mod iphc;
pub mod mesh;
pub mod tcphc;

pub use address::{Context, Ends};

/// The kind of a payload, by its first octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// IPv6 follows behind this octet.
    Ipv6,
    /// Compressed headers begin with this octet.
    Iphc,
    /// A mesh header begins with this octet.
    Mesh,
    /// The header of a first fragment begins with this octet.
    First,
    /// The header of a further fragment begins with this octet.
    Further,
    /// A dispatch value that is not supported.
    Unknown(u8),
}

/// The octet before an IPv6 packet that is not compressed.
pub const IPV6: u8 = 0x41;

impl Dispatch {
    /// Of a payload; an empty one is unknown.
    pub fn of(payload: &[u8]) -> Dispatch {
        match payload.first().copied().unwrap_or_default() {
            IPV6 => Dispatch::Ipv6,
            0x60..=0x7f => Dispatch::Iphc,
            0x80..=0xbf => Dispatch::Mesh,
            0xc0..=0xc7 => Dispatch::First,
            0xe0..=0xe7 => Dispatch::Further,
            other => Dispatch::Unknown(other),
        }
    }
}
