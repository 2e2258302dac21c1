//! A datagram of the host that is being sent, fragment by fragment.

use chappe_core::Address;
use chappe_wire::Malformed;
use chappe_wire::ipv6::{self, Header};
use chappe_wire::sixlowpan::frag::{self, Fragment};
use chappe_wire::sixlowpan::iphc::{self, Known, Lengths, Reach};
use chappe_wire::sixlowpan::tcphc;

use super::Headers;

/// The longest compressed headers: 2 + 1 + 4 + 1 + 1 + 32 octets, and 7 of UDP or those of a short TCP header, which has at
/// most 14 octets beside its options.
const HEADERS_MAX: usize = 41 + tcphc::TCP_MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<const MTU: usize> {
    packet: [u8; MTU],
    /// Octets of the datagram; zero if the place is free.
    pub len: usize,
    pub next: Address,
    pub reach: Reach,
    tag: u16,
    /// Numbers the datagrams, to find the oldest.
    pub number: u32,
    /// Octets handed to the link so far.
    sent: usize,
    /// Frames whose outcome is not known.
    pub out: u8,
}

impl<const MTU: usize> Outgoing<MTU> {
    pub const EMPTY: Self = Outgoing {
        packet: [0; MTU],
        len: 0,
        next: Address::BROADCAST,
        reach: Reach::Link,
        tag: 0,
        number: 0,
        sent: 0,
        out: 0,
    };

    pub fn is_free(&self) -> bool {
        self.len == 0
    }

    pub fn room(&mut self) -> &mut [u8] {
        &mut self.packet
    }

    pub fn packet(&self) -> &[u8] {
        self.packet.get(..self.len).unwrap_or_default()
    }

    pub fn begin(&mut self, len: usize, next: Address, reach: Reach, tag: u16) {
        (self.len, self.next, self.reach, self.tag) = (len.min(MTU), next, reach, tag);
        (self.sent, self.out) = (0, 0);
    }

    /// Whether a fragment is left to send.
    pub fn has_more(&self) -> bool {
        self.sent < self.len
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Writes the next frame to `sdu` and returns its length.
    pub fn frame(
        &mut self,
        known: &Known<'_>,
        frame_max: usize,
        headers: &mut impl Headers,
        sdu: &mut [u8],
    ) -> Result<usize, Malformed> {
        let frame_max = frame_max.min(sdu.len());
        match self.sent {
            0 => self.first(known, frame_max, headers, sdu),
            _ => self.further(frame_max, sdu),
        }
    }

    fn fragment(&self, offset: usize) -> Fragment {
        Fragment {
            size: self.len as u16,
            tag: self.tag,
            offset: (offset / 8) as u8,
        }
    }

    fn first(
        &mut self,
        known: &Known<'_>,
        frame_max: usize,
        upper: &mut impl Headers,
        sdu: &mut [u8],
    ) -> Result<usize, Malformed> {
        let mut headers = [0; HEADERS_MAX];
        let lengths = self.compress(known, upper, &mut headers)?;
        let payload = self.len.saturating_sub(lengths.expanded);
        let whole = lengths.compressed + payload <= frame_max;
        let at = match whole {
            true => 0,
            false => self.fragment(0).emit(sdu)?,
        };
        let room = frame_max
            .checked_sub(at + lengths.compressed)
            .ok_or(Malformed::Illegal)?;
        // A fragment ends at a multiple of 8 octets of the uncompressed datagram (RFC 4944 5.3).
        let end = match whole {
            true => self.len,
            false => (lengths.expanded + room) & !7,
        };
        let part = self
            .packet
            .get(lengths.expanded..end)
            .ok_or(Malformed::Illegal)?;
        let headers = headers.get(..lengths.compressed).unwrap_or_default();
        let total = at + headers.len() + part.len();
        let places = sdu.get_mut(at..total).ok_or(Malformed::Illegal)?;
        let (front, back) = places.split_at_mut(headers.len());
        front.copy_from_slice(headers);
        back.copy_from_slice(part);
        self.sent = end;
        Ok(total)
    }

    /// Compresses all headers of the packet.
    fn compress(
        &self,
        known: &Known<'_>,
        upper: &mut impl Headers,
        out: &mut [u8],
    ) -> Result<Lengths, Malformed> {
        let packet = self.packet();
        let mut nhc = [0; tcphc::TCP_MAX];
        let Some(above) = upper.compress(packet, &mut nhc) else {
            return iphc::compress(packet, known, self.reach, out);
        };
        let at = iphc::compress_before(&Header::parse(packet)?, known, self.reach, out)?;
        let end = at + above.compressed;
        let nhc = nhc.get(..above.compressed).unwrap_or_default();
        out.get_mut(at..end)
            .ok_or(Malformed::Illegal)?
            .copy_from_slice(nhc);
        Ok(Lengths {
            compressed: end,
            expanded: ipv6::HEADER_LEN + above.expanded,
        })
    }

    //= tcplp 6.1: a segment of several frames, cut below IP
    fn further(&mut self, frame_max: usize, sdu: &mut [u8]) -> Result<usize, Malformed> {
        let at = self.fragment(self.sent).emit(sdu)?;
        let room = frame_max
            .checked_sub(frag::FURTHER_LEN)
            .ok_or(Malformed::Illegal)?;
        let left = self.len - self.sent;
        let len = if left <= room { left } else { room & !7 };
        let part = self.packet.get(self.sent..self.sent + len);
        let part = part.filter(|part| !part.is_empty());
        let part = part.ok_or(Malformed::Illegal)?;
        sdu.get_mut(at..at + len)
            .ok_or(Malformed::Illegal)?
            .copy_from_slice(part);
        self.sent += len;
        Ok(at + len)
    }
}
