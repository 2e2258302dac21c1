//! Conversion between Ethernet frames of an interface and SDUs on the air.
//!
//! ```text
//! interface   to (6)  from (6)  type (2)   payload
//! air         addresses in the MAC's header   LLC and SNAP with the type (8)   payload
//! ```
//!
//! A frame may have a priority tag: an 802.1Q tag of VLAN 0 (IEEE 802.1Q-2018, 9.6). An 802.11 frame has its own field for the priority, so
//! the tag is removed. A tag of another VLAN goes over the air as a part of the payload.
//!
//! A type below 0x600 is a length (IEEE 802.3-2018, 3.2.6). Such a payload already begins with LLC and goes over the air
//! unchanged. All other frames get the header of RFC 1042, so a capture looks like one of a real ad hoc network.

use chappe_core::{Address, Class};
use chappe_sys::{class_of, packet};
use chappe_wire::llc::{self, EtherType};

/// Octets of an Ethernet header.
pub(crate) const HEADER: usize = 14;

/// Octets that a frame on the air needs beyond the interface's MTU.
pub(crate) const ON_AIR: usize = llc::LEN;

/// Octets of a priority tag, behind the addresses.
pub(crate) const TAG: usize = 4;

/// Smallest value of the field that is a type and not a length.
const FIRST_TYPE: u16 = 0x600;

/// A parsed Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub to: Address,
    pub from: Address,
    kind: u16,
    payload: &'a [u8],
    /// The user priority of a tag.
    tag: Option<u8>,
}

impl<'a> Frame<'a> {
    /// `None` if the frame is shorter than its header or its length field.
    pub(crate) fn parse(frame: &'a [u8]) -> Option<Frame<'a>> {
        let (to, rest) = frame.split_first_chunk::<6>()?;
        let (from, rest) = rest.split_first_chunk::<6>()?;
        let (kind, payload) = rest.split_first_chunk::<2>()?;
        let (tag, (kind, payload)) = match priority_tag(kind, payload) {
            Some((priority, rest)) => (Some(priority), rest.split_first_chunk::<2>()?),
            None => (None, (kind, payload)),
        };
        let kind = u16::from_be_bytes(*kind);
        // Padding may follow a payload that has a length.
        let payload = match kind < FIRST_TYPE {
            true => payload.get(..usize::from(kind))?,
            false => payload,
        };
        Some(Frame {
            to: Address::from_eui48(*to),
            from: Address::from_eui48(*from),
            kind,
            payload,
            tag,
        })
    }

    /// Octets of the frame without a tag, as [`Self::emit`] writes it.
    pub(crate) fn len(&self) -> usize {
        HEADER + self.payload.len()
    }

    /// Writes the frame without a tag to the front of `frame`; `None` if it does not fit.
    pub(crate) fn emit(&self, frame: &mut [u8]) -> Option<usize> {
        let frame = frame.get_mut(..self.len())?;
        frame[..6].copy_from_slice(&self.to.to_eui48());
        frame[6..12].copy_from_slice(&self.from.to_eui48());
        frame[12..HEADER].copy_from_slice(&self.kind.to_be_bytes());
        frame[HEADER..].copy_from_slice(self.payload);
        Some(frame.len())
    }

    /// The class of the access category that sends the frame, whose tag may have been removed with this priority.
    ///
    /// The user priority is the tag's or, as in Linux (`cfg80211_classify8021d`, net/wireless/util.c), the upper three bits of IP's
    /// traffic class; 0 of anything else.
    pub(crate) fn class(&self, removed: Option<u8>) -> Class {
        let tag = removed.or(self.tag);
        class_of(tag.or_else(|| self.precedence()).unwrap_or(0))
    }

    /// The upper three bits of the traffic class of an IP packet.
    fn precedence(&self) -> Option<u8> {
        match (EtherType(self.kind), self.payload) {
            (EtherType::IPV4, [_, class, ..]) => Some(class >> 5),
            // Four bits of version, then eight of traffic class.
            (EtherType::IPV6, [first, ..]) => Some(first >> 1 & 7),
            _ => None,
        }
    }

    /// Writes the SDU to the front of `sdu`; `None` if it does not fit.
    pub(crate) fn to_air(self, sdu: &mut [u8]) -> Option<usize> {
        let header = match self.kind < FIRST_TYPE {
            true => 0,
            false => llc::emit(EtherType(self.kind), sdu).ok()?,
        };
        let len = header + self.payload.len();
        sdu.get_mut(header..len)?.copy_from_slice(self.payload);
        Some(len)
    }
}

/// The user priority of a tag of VLAN 0 that begins with the type `kind`, and what follows the tag.
fn priority_tag<'a>(kind: &[u8; 2], payload: &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (control, rest) = payload.split_first_chunk::<2>()?;
    let control = u16::from_be_bytes(*control);
    // Three bits of priority, one that may be dropped, twelve of the VLAN.
    (*kind == packet::VLAN.to_be_bytes() && control & 0xfff == 0)
        .then_some(((control >> 13) as u8, rest))
}

/// Writes the Ethernet frame for an SDU from the air; `None` if it does not fit.
pub(crate) fn from_air(to: Address, from: Address, sdu: &[u8], frame: &mut [u8]) -> Option<usize> {
    let (kind, payload) = match llc::parse(sdu) {
        Ok((kind, payload)) if kind.0 >= FIRST_TYPE => (kind.0, payload),
        _ => (u16::try_from(sdu.len()).ok()?, sdu),
    };
    if kind < FIRST_TYPE && payload.len() != usize::from(kind) || payload.len() > 0xffff {
        return None;
    }
    let arrived = Frame {
        to,
        from,
        kind,
        payload,
        tag: None,
    };
    arrived.emit(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn across(frame: &[u8]) -> Option<Vec<u8>> {
        let parsed = Frame::parse(frame)?;
        let (mut sdu, mut out) = ([0; 2400], [0; 2400]);
        let len = parsed.to_air(&mut sdu)?;
        let len = from_air(parsed.to, parsed.from, &sdu[..len], &mut out)?;
        Some(out[..len].to_vec())
    }

    /// Every type crosses unchanged, and so does an 802.3 frame, without its padding.
    #[test]
    fn frames_round_trip_over_the_air() {
        let head = [[0xff; 6], [2, 0, 0, 0, 0, 1]].concat();
        for kind in [0x600u16, 0x800, 0x806, 0x86dd, 0x88b5, 0xffff] {
            let frame = [&head[..], &kind.to_be_bytes(), &[7; 60]].concat();
            assert_eq!(across(&frame), Some(frame));
        }
        let spanning_tree = [&head[..], &[0, 3], &[0x42, 0x42, 3]].concat();
        let padded = [&spanning_tree[..], &[0; 43]].concat();
        assert_eq!(across(&padded), Some(spanning_tree));
    }

    /// Goal: no octets from either side panic. Method: noise of all lengths, with and without an LLC header.
    #[test]
    fn noise_never_panics() {
        let mut stream = Seed(3).stream(Purpose::Trial(0));
        let mut out = [0; 64];
        for len in (0..80).cycle().take(20_000) {
            let mut noise = vec![0; len];
            stream.fill(&mut noise);
            across(&noise);
            if let Some(first) = noise.first_chunk_mut::<6>() {
                *first = [0xaa, 0xaa, 3, 0, 0, 0];
            }
            from_air(Address::BROADCAST, Address::node(1), &noise, &mut out);
        }
    }
}
