//! Frame formats of the standards: parsed, emitted, printed.
//!
//! Each format has two layers. The *view* wraps bytes from outside: it checks their length once, reads a field on
//! request, and its accessors cannot panic. The *repr* is a small plain struct of legal values: if it can be built it
//! can be sent. Every format prints itself in one line, as tcpdump does.
//!
//! ```
//! use chappe_core::{Address, Duration};
//! use chappe_wire::dot11::{Frame, NavTime, Repr};
//!
//! let ack = Repr::Ack { receiver: Address::node(1), duration: NavTime::covering(Duration::ZERO) };
//! let mut psdu = [0; 64];
//! let len = ack.emit(&mut psdu).unwrap();
//!
//! let frame = Frame::new(&psdu[..len]).unwrap();
//! assert_eq!(Repr::parse(&frame), Ok(ack));
//! assert_eq!(frame.to_string(), "ACK > n1 nav=0us len=0");
//! ```
//!
//! | module | format | standard |
//! |---|---|---|
//! | [`dot11`] | Data, ACK, RTS, CTS | IEEE 802.11-2020, 9.2 and 9.3 |
//! | [`llc`] | LLC/SNAP encapsulation | IEEE 802-2014, 9 |
//! | [`fcs`] | the 32-bit frame check sequence | IEEE 802.11-2020, 9.2.4.8 |
//! | [`radiotap`] | the radio's information about a captured frame | radiotap.org |
//! | [`dot15d4`] | Data, ACK, commands, with their security header | IEEE 802.15.4-2015, 7 and 9.4 |
//! | [`sixlowpan`] | IPv6 over 802.15.4: fragments, mesh header, compression | RFC 4944, 6282 |
//! | [`host`], [`net`] | the headers of any IPv4 or IPv6 packet, and networks | RFC 791, 8200 |
//! | [`ipv6`], [`udp`], [`icmpv6`], [`checksum`] | the packets that 6LoWPAN carries | RFC 8200, 768, 4443, 1071 |
//!
//! **Architecture invariant:** nothing here keeps state, knows the time or interprets a frame.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

use core::fmt;

pub mod checksum;
pub mod dot11;
pub mod dot15d4;
pub mod fcs;
pub mod host;
pub mod icmpv6;
pub mod ipv6;
pub mod llc;
pub mod net;
pub mod radiotap;
pub mod sixlowpan;
pub mod udp;

/// Why bytes are not a frame of the format, or a buffer cannot hold one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer octets than the format needs.
    Truncated {
        /// Octets needed, as far as was understood.
        needed: usize,
        /// Octets present in the buffer.
        found: usize,
    },
    /// A version number of the format that is not assigned.
    Version(u8),
    /// A well-formed frame of a kind that is not supported here.
    Unsupported,
    /// Fields whose values contradict each other or the standard.
    Illegal,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Truncated { needed, found } => {
                write!(f, "{found} octets where at least {needed} are needed")
            }
            Malformed::Version(version) => write!(f, "unknown version {version}"),
            Malformed::Unsupported => f.write_str("a kind of frame that is not supported"),
            Malformed::Illegal => f.write_str("fields that the standard does not allow"),
        }
    }
}

impl core::error::Error for Malformed {}

/// The first `N` octets, or how many are missing.
fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], Malformed> {
    bytes.first_chunk().ok_or(Malformed::Truncated {
        needed: N,
        found: bytes.len(),
    })
}

/// Reads a format's fields one after the other.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// The next `N` octets, or how many are missing.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let chunk = rest.first_chunk().ok_or(Malformed::Truncated {
            needed: self.at.saturating_add(N),
            found: self.bytes.len(),
        })?;
        self.at += N;
        Ok(*chunk)
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        self.take().map(|[octet]| octet)
    }
}

/// Writes a format's fields one after the other.
#[derive(Debug)]
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    fn new(bytes: &'a mut [u8]) -> Writer<'a> {
        Writer { bytes, at: 0 }
    }

    fn put(&mut self, octets: &[u8]) -> Result<(), Malformed> {
        let end = self.at.saturating_add(octets.len());
        let found = self.bytes.len();
        let place = self.bytes.get_mut(self.at..end);
        let place = place.ok_or(Malformed::Truncated { needed: end, found })?;
        place.copy_from_slice(octets);
        self.at = end;
        Ok(())
    }
}

/// The first `N` octets for writing, or how many are missing.
fn head_mut<const N: usize>(bytes: &mut [u8]) -> Result<&mut [u8; N], Malformed> {
    let found = bytes.len();
    bytes
        .first_chunk_mut()
        .ok_or(Malformed::Truncated { needed: N, found })
}
