//! Compressed TCP headers: the difference from a header that both ends of the mesh remember.
//!
//! There is no standard for this: RFC 6282 does not cover TCP, RFC 7400's dictionary saves little, and ROHC (RFC 6846) is
//! too large for a mote. This format takes two ideas from ROHC. A field is sent as its low bits, which the receiver
//! completes to the value nearest to a remembered one. A checksum over the reconstructed header shows whether the
//! remembered one was right. The format is this project's own and uses an unassigned part of the LOWPAN_NHC number space:
//! both ends must be configured to use it.
//!
//! Both ends remember an [`Anchor`]: one header that was sent whole. Every field is coded against the anchor and not
//! against the previous header, so a lost, repeated or reordered segment does not affect the others. Two bits number the
//! anchors. Each header also names the anchor that its sender holds for the other direction, so that an anchor is used
//! only once the peer is known to have it.
//!
//! ```text
//!  octet 0   0 | R | gen | held | flow      R: a whole TCP header follows, the new anchor `gen`
//!                1    2     2      2  bits  held: the anchor that the sender has for the other direction, 0 for none
//!  octet 1   S | A | W | TT | O | P | F     which of the following are there, and PSH
//!            S: sequence number, 2 octets      A: acknowledgement number, 2      W: window, 2
//!            TT: 01 timestamps, 2 octets each; 10 timestamps, 4 each             O: other options, length and octets
//!            F: flags other than ACK and PSH
//!  then these in this order, CRC-8 of the TCP header that they stand for, and its checksum
//! ```
//!
//! A data segment of a bulk transfer with timestamps takes 11 octets instead of 32, its acknowledgement as many.

use super::iphc::Lengths;
use crate::{Malformed, Reader, Writer};

/// Octets of a TCP header without options (RFC 9293, 3.1).
const TCP_MIN: usize = 20;
/// Octets of the longest.
pub const TCP_MAX: usize = 60;
/// No-operation twice, kind, length: what stands before the timestamps in nearly every segment (RFC 7323, appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

mod flag {
    pub const FIN: u8 = 1;
    pub const PSH: u8 = 1 << 3;
    pub const ACK: u8 = 1 << 4;
    pub const ECE: u8 = 1 << 6;
    pub const CWR: u8 = 1 << 7;
}

mod bit {
    pub const SEQ: u8 = 1 << 7;
    pub const ACK: u8 = 1 << 6;
    pub const WINDOW: u8 = 1 << 5;
    pub const TIMES: u8 = 3 << 3;
    pub const TIMES_SHORT: u8 = 1 << 3;
    pub const TIMES_LONG: u8 = 2 << 3;
    pub const OPTIONS: u8 = 1 << 2;
    pub const PSH: u8 = 1 << 1;
    pub const FLAGS: u8 = 1;
}

/// The first octet of a compressed TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// A whole TCP header follows, which is the anchor from now on.
    pub whole: bool,
    /// The anchor's number, 1 to 3.
    pub generation: u8,
    /// The newest anchor that the sender holds for the other direction; 0 for none.
    pub held: u8,
    /// The flow between these two addresses, 0 to 3.
    pub flow: u8,
}

/// Flows between two addresses that can be told apart.
pub const FLOWS: u8 = 4;
/// The highest number of an anchor.
pub const GENERATIONS: u8 = 3;

impl Lead {
    /// Reads the octet. [`Malformed::Unsupported`] if it is none of this format, [`Malformed::Illegal`] if its anchor
    /// has no number.
    pub fn parse(bytes: &[u8]) -> Result<Lead, Malformed> {
        let octet = Reader::new(bytes).octet()?;
        if octet & 0x80 != 0 {
            return Err(Malformed::Unsupported);
        }
        let lead = Lead {
            whole: octet & 0x40 != 0,
            generation: octet >> 4 & 3,
            held: octet >> 2 & 3,
            flow: octet & 3,
        };
        match lead.generation {
            0 => Err(Malformed::Illegal),
            _ => Ok(lead),
        }
    }

    /// The octet that encodes this.
    pub fn octet(&self) -> u8 {
        let whole = if self.whole { 0x40 } else { 0 };
        whole | (self.generation & 3) << 4 | (self.held & 3) << 2 | self.flow & 3
    }
}

/// The fields of a TCP header against which later ones are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// The port of the segment's sender.
    pub source_port: u16,
    /// The port of the segment's receiver.
    pub destination_port: u16,
    /// The sequence number (SEG.SEQ).
    pub seq: u32,
    /// The acknowledgement number (SEG.ACK).
    pub ack: u32,
    /// The window field, not scaled.
    pub window: u16,
    /// TSval and TSecr; zero without the option.
    pub times: [u32; 2],
}

/// A TCP header read for compression.
struct Fields<'a> {
    anchor: Anchor,
    flags: u8,
    checksum: [u8; 2],
    timed: bool,
    /// Options other than leading timestamps.
    options: &'a [u8],
    all: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Of the header at the front of `tcp`. Reserved bits and the urgent pointer must be zero: they would be lost.
    fn read(tcp: &'a [u8]) -> Result<Fields<'a>, Malformed> {
        let all = header(tcp)?;
        let mut reader = Reader::new(all);
        let [source_port, destination_port] = [reader.u16()?, reader.u16()?];
        let [seq, ack] = [reader.u32()?, reader.u32()?];
        let [offset, flags] = reader.take()?;
        let window = reader.u16()?;
        let checksum = reader.take()?;
        let urgent = reader.u16()?;
        if offset & 15 != 0 || urgent != 0 {
            return Err(Malformed::Unsupported);
        }
        let options = all.get(TCP_MIN..).unwrap_or_default();
        let times = options.strip_prefix(&TIMESTAMPS).and_then(|rest| {
            let (&[a, b, c, d, e, f, g, h], rest) = rest.split_first_chunk()?;
            let pair = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
            Some((pair, rest))
        });
        let (timed, times, options) = match times {
            Some((times, rest)) => (true, times, rest),
            None => (false, [0; 2], options),
        };
        let anchor = Anchor {
            source_port,
            destination_port,
            seq,
            ack,
            window,
            times,
        };
        Ok(Fields {
            anchor,
            flags,
            checksum,
            timed,
            options,
            all,
        })
    }
}

impl Reader<'_> {
    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }
}

/// The TCP header at the front of `tcp`, options included.
fn header(tcp: &[u8]) -> Result<&[u8], Malformed> {
    let found = tcp.len();
    let truncated = |needed| Malformed::Truncated { needed, found };
    let offset = tcp.get(12).ok_or(truncated(TCP_MIN))?;
    let len = usize::from(offset >> 4) * 4;
    if len < TCP_MIN {
        return Err(Malformed::Illegal);
    }
    tcp.get(..len).ok_or(truncated(len))
}

impl Anchor {
    /// What is remembered of the TCP header at the front of `tcp`, and the header's octets.
    pub fn of(tcp: &[u8]) -> Result<(Anchor, usize), Malformed> {
        let fields = Fields::read(tcp)?;
        Ok((fields.anchor, fields.all.len()))
    }
}

/// Whether a segment's header may be sent in this format at all, whole or short: it acknowledges, and does not open or
/// reset the connection.
pub fn is_suitable(tcp: &[u8]) -> bool {
    let others = !(flag::FIN | flag::PSH | flag::ACK | flag::ECE | flag::CWR);
    Fields::read(tcp).is_ok_and(|fields| fields.flags & (flag::ACK | others) == flag::ACK)
}

/// The low 16 bits of a field, if they suffice to find it again near `anchor`.
fn low(value: u32, anchor: u32) -> Option<[u8; 2]> {
    let distance = value.wrapping_sub(anchor).cast_signed();
    i16::try_from(distance).ok()?;
    Some((value as u16).to_be_bytes())
}

/// The value nearest to `anchor` with these low bits.
fn nearest(low: [u8; 2], anchor: u32) -> u32 {
    let distance = u16::from_be_bytes(low)
        .wrapping_sub(anchor as u16)
        .cast_signed();
    anchor.wrapping_add_signed(i32::from(distance))
}

/// CRC-8 with the polynomial x^8 + x^2 + x + 1, as ROHC has it (RFC 5795, 5.3.1.1).
fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0xff, |crc, &octet| {
        (0..8).fold(crc ^ octet, |crc, _| match crc & 1 {
            1 => crc >> 1 ^ 0xe0,
            _ => crc >> 1,
        })
    })
}

/// Writes the TCP header at the front of `tcp` in short form to the front of `out`. Fails with
/// [`Malformed::Unsupported`] if the header cannot be found again from `anchor`: it has to go whole.
pub fn compress(
    lead: Lead,
    anchor: &Anchor,
    tcp: &[u8],
    out: &mut [u8],
) -> Result<Lengths, Malformed> {
    let fields = Fields::read(tcp)?;
    let now = &fields.anchor;
    let ports =
        (now.source_port, now.destination_port) == (anchor.source_port, anchor.destination_port);
    if lead.whole || !ports || !is_suitable(tcp) {
        return Err(Malformed::Unsupported);
    }
    let mut writer = Writer::new(out);
    writer.put(&[lead.octet(), 0])?;
    let mut present = 0;
    for (bit, value, reference) in [
        (bit::SEQ, now.seq, anchor.seq),
        (bit::ACK, now.ack, anchor.ack),
    ] {
        if value != reference {
            present |= bit;
            writer.put(&low(value, reference).ok_or(Malformed::Unsupported)?)?;
        }
    }
    if now.window != anchor.window {
        present |= bit::WINDOW;
        writer.put(&now.window.to_be_bytes())?;
    }
    if fields.timed {
        present |= put_times(now.times, anchor.times, &mut writer)?;
    }
    if !fields.options.is_empty() {
        present |= bit::OPTIONS;
        writer.put(&[fields.options.len() as u8])?;
        writer.put(fields.options)?;
    }
    if fields.flags & flag::PSH != 0 {
        present |= bit::PSH;
    }
    let others = fields.flags & !(flag::PSH | flag::ACK);
    if others != 0 {
        present |= bit::FLAGS;
        writer.put(&[others])?;
    }
    writer.put(&[crc8(fields.all)])?;
    writer.put(&fields.checksum)?;
    let compressed = writer.at;
    *out.get_mut(1).ok_or(Malformed::Illegal)? = present;
    Ok(Lengths {
        compressed,
        expanded: fields.all.len(),
    })
}

fn put_times(now: [u32; 2], anchor: [u32; 2], writer: &mut Writer<'_>) -> Result<u8, Malformed> {
    let [value, echo] = now;
    let [near_value, near_echo] = anchor;
    match (low(value, near_value), low(echo, near_echo)) {
        (Some(value), Some(echo)) => {
            writer.put(&value)?;
            writer.put(&echo)?;
            Ok(bit::TIMES_SHORT)
        }
        _ => {
            writer.put(&value.to_be_bytes())?;
            writer.put(&echo.to_be_bytes())?;
            Ok(bit::TIMES_LONG)
        }
    }
}

/// Expands a header in short form at the front of `bytes` to the front of `out`. Fails with [`Malformed::Illegal`] if
/// what comes out is not what was sent: the anchor is a wrong one.
pub fn expand(bytes: &[u8], anchor: &Anchor, out: &mut [u8]) -> Result<Lengths, Malformed> {
    let lead = Lead::parse(bytes)?;
    if lead.whole {
        return Err(Malformed::Unsupported);
    }
    let mut reader = Reader::new(bytes);
    let [_, present] = reader.take()?;
    let field = |reader: &mut Reader<'_>, bit, near| match present & bit != 0 {
        true => reader.take().map(|octets| nearest(octets, near)),
        false => Ok(near),
    };
    let seq = field(&mut reader, bit::SEQ, anchor.seq)?;
    let ack = field(&mut reader, bit::ACK, anchor.ack)?;
    let window = match present & bit::WINDOW != 0 {
        true => reader.u16()?,
        false => anchor.window,
    };
    let times = take_times(present & bit::TIMES, anchor.times, &mut reader)?;
    let options = match present & bit::OPTIONS != 0 {
        true => usize::from(reader.octet()?),
        false => 0,
    };
    let options_at = reader.at;
    let missing = |needed| Malformed::Truncated {
        needed,
        found: bytes.len(),
    };
    let end = options_at + options;
    let options = bytes.get(options_at..end).ok_or(missing(end))?;
    reader.at = end;
    let mut flags = flag::ACK;
    if present & bit::PSH != 0 {
        flags |= flag::PSH;
    }
    if present & bit::FLAGS != 0 {
        flags |= reader.octet()?;
    }
    if flags & !(flag::FIN | flag::PSH | flag::ACK | flag::ECE | flag::CWR) != 0 {
        return Err(Malformed::Illegal);
    }
    let [crc] = reader.take()?;
    let checksum: [u8; 2] = reader.take()?;
    let len = TCP_MIN + times.map_or(0, |_| 12) + options.len();
    if len > TCP_MAX || !len.is_multiple_of(4) {
        return Err(Malformed::Illegal);
    }
    let mut writer = Writer::new(out);
    writer.put(&anchor.source_port.to_be_bytes())?;
    writer.put(&anchor.destination_port.to_be_bytes())?;
    writer.put(&seq.to_be_bytes())?;
    writer.put(&ack.to_be_bytes())?;
    writer.put(&[(len as u8) << 2, flags])?;
    writer.put(&window.to_be_bytes())?;
    writer.put(&checksum)?;
    writer.put(&[0, 0])?;
    if let Some([value, echo]) = times {
        writer.put(&TIMESTAMPS)?;
        writer.put(&value.to_be_bytes())?;
        writer.put(&echo.to_be_bytes())?;
    }
    writer.put(options)?;
    let rebuilt = out.get(..len).ok_or(Malformed::Illegal)?;
    if crc8(rebuilt) != crc {
        return Err(Malformed::Illegal);
    }
    Ok(Lengths {
        compressed: reader.at,
        expanded: len,
    })
}

fn take_times(
    form: u8,
    anchor: [u32; 2],
    reader: &mut Reader<'_>,
) -> Result<Option<[u32; 2]>, Malformed> {
    let [near_value, near_echo] = anchor;
    match form {
        0 => Ok(None),
        bit::TIMES_SHORT => {
            let value = nearest(reader.take()?, near_value);
            Ok(Some([value, nearest(reader.take()?, near_echo)]))
        }
        bit::TIMES_LONG => Ok(Some([reader.u32()?, reader.u32()?])),
        _ => Err(Malformed::Unsupported),
    }
}

#[cfg(test)]
mod tests;
