//! TCP segments: parsing and emitting headers. Parsing checks structure only; `input` decides what is acceptable.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          Source Port          |       Destination Port        |
//! +-------------------------------+-------------------------------+
//! |                        Sequence Number                        |
//! +---------------------------------------------------------------+
//! |                    Acknowledgment Number                      |
//! +-------+-------+---------------+-------------------------------+
//! | Offset| Rsrvd | CEUAPRSF      |            Window             |
//! +-------+-------+---------------+-------------------------------+
//! |           Checksum            |         Urgent Pointer        |
//! +-------------------------------+-------------------------------+
//! |                    Options (0 to 40 octets)                   |
//! +---------------------------------------------------------------+
//! ```
//! RFC 9293 3.1; CWR and ECE from RFC 3168.

use core::fmt;
use core::ops::BitOr;

use super::flow::Flow;
use super::{Range, Seq};

/// Octets of a header without options.
pub const HEADER_MIN: usize = 20;
/// Octets of the longest header.
pub const HEADER_MAX: usize = 60;

mod field {
    pub const OFFSET: usize = 12;
    pub const CHECKSUM: usize = 16;
}

mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

// Whether the crate is built with the mechanism; the option is neither read nor written without it.
const SACK: bool = cfg!(feature = "sack");
const TIMESTAMPS: bool = cfg!(feature = "timestamps");
const WINDOW_SCALE: bool = cfg!(feature = "window-scale");

/// The eight flags of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The empty set of flags.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(1);
    /// Synchronise sequence numbers: opens a connection.
    pub const SYN: Flags = Flags(1 << 1);
    /// Reset: the connection does not exist, or ends at once.
    pub const RST: Flags = Flags(1 << 2);
    /// Push: the data should reach the receiving application at once.
    pub const PSH: Flags = Flags(1 << 3);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(1 << 4);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(1 << 5);
    /// ECN-Echo: a packet arrived with a congestion mark (RFC 3168).
    pub const ECE: Flags = Flags(1 << 6);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Flags = Flags(1 << 7);

    /// The flags with these bits, FIN the lowest.
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    /// The bits, FIN the lowest.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags without `flags`.
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    /// As tcpdump prints them: `S`, `S.`, `P.`, `F.`, `R`, `.`, with `E` and `W` for ECE and CWR.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::ACK, "."),
        ] {
            if self.has(flag) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// The timestamps option (RFC 7323 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the receiver's own clock, echoed; valid only with ACK.
    pub echo: u32,
}

/// Up to four SACK blocks in the order of the option (RFC 2018 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Range; SackBlocks::MAX],
    count: u8,
}

impl SackBlocks {
    /// Blocks that fit into 40 octets of options.
    pub const MAX: usize = 4;

    /// Appends a block; a fifth is omitted.
    #[inline(never)]
    pub fn push(&mut self, block: Range) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count = self.count.wrapping_add(1);
        }
    }

    /// The blocks, in the order in which they were added or received.
    pub fn as_slice(&self) -> &[Range] {
        self.blocks
            .get(..usize::from(self.count))
            .unwrap_or_default()
    }
}

/// The options of a segment. Unknown options are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size in octets (RFC 9293 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, at most 14 (RFC 7323 2.3: larger values count as 14).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 2).
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323 3).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, the first perhaps a D-SACK (RFC 2883).
    pub sack: SackBlocks,
}

impl Options {
    /// Parses the option area of a header. Stops at the first option with an invalid length and keeps those before it.
    pub fn parse(area: &[u8]) -> Options {
        let mut options = Options::default();
        options.take_all(area);
        options
    }

    #[inline(never)]
    fn take_all(&mut self, mut area: &[u8]) {
        // Ends: a kind without a length octet takes one octet, and `get(2..len)` refuses lengths below 2.
        while let [first, rest @ ..] = area {
            match *first {
                kind::END => break,
                kind::NOP => area = rest,
                kind => {
                    let Some(len) = rest.first().map(|&len| usize::from(len)) else {
                        break;
                    };
                    let (Some(value), Some(next)) = (area.get(2..len), area.get(len..)) else {
                        break;
                    };
                    self.take(kind, value);
                    area = next;
                }
            }
        }
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) if WINDOW_SCALE => {
                self.window_scale = Some(shift.min(14))
            }
            (kind::SACK_PERMITTED, []) if SACK => self.sack_permitted = true,
            (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) if TIMESTAMPS => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: u32::from_be_bytes([e, f, g, h]),
                });
            }
            (kind::SACK, blocks) if SACK && blocks.len() % 8 == 0 => {
                for block in blocks.chunks_exact(8) {
                    if let &[a, b, c, d, e, f, g, h] = block {
                        let start = Seq::new(u32::from_be_bytes([a, b, c, d]));
                        let end = Seq::new(u32::from_be_bytes([e, f, g, h]));
                        self.sack.push(Range::new(start, end));
                    }
                }
            }
            _ => {}
        }
    }

    /// Octets that these options take in a header, padding included: a multiple of 4.
    pub fn len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let timestamps = if TIMESTAMPS && self.timestamps.is_some() {
            12
        } else {
            0
        };
        let permitted = match (SACK && self.sack_permitted, timestamps) {
            (true, 0) => 4,
            _ => 0,
        };
        let scale = if WINDOW_SCALE && self.window_scale.is_some() {
            4
        } else {
            0
        };
        let sack = match self.sack.as_slice().len() {
            0 => 0,
            _ if !SACK => 0,
            count => 4 + 8 * count,
        };
        mss + timestamps + permitted + scale + sack
    }

    /// Whether no option is present.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options, padded by leading no-operations so that 32-bit fields are aligned (RFC 7323 appendix A).
    fn emit(&self, words: &mut Words<'_>) {
        if let Some(mss) = self.mss {
            words.put(word(kind::MSS, 4, 0, 0) | u32::from(mss));
        }
        if TIMESTAMPS && let Some(timestamps) = self.timestamps {
            words.put(match self.sack_permitted {
                true => word(kind::SACK_PERMITTED, 2, kind::TIMESTAMPS, 10),
                false => word(kind::NOP, kind::NOP, kind::TIMESTAMPS, 10),
            });
            words.put(timestamps.value);
            words.put(timestamps.echo);
        } else if self.sack_permitted && SACK {
            words.put(word(kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2));
        }
        if WINDOW_SCALE && let Some(shift) = self.window_scale {
            words.put(word(kind::NOP, kind::WINDOW_SCALE, 3, shift));
        }
        let blocks = self.sack.as_slice();
        if SACK && !blocks.is_empty() {
            let len = 2 + 8 * blocks.len();
            words.put(word(kind::NOP, kind::NOP, kind::SACK, len as u8));
            for block in blocks {
                words.put(block.start.bits());
                words.put(block.end.bits());
            }
        }
    }
}

const fn word(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

/// Writes a header word by word; words that do not fit are omitted.
struct Words<'a> {
    area: &'a mut [[u8; 4]],
    len: usize,
}

impl Words<'_> {
    fn put(&mut self, word: u32) {
        if let Some(place) = self.area.get_mut(self.len) {
            *place = word.to_be_bytes();
            self.len = self.len.wrapping_add(1);
        }
    }
}

/// Why octets are not a valid TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer than 20 octets.
    Truncated,
    /// The data offset is below 5 words or beyond the end.
    Offset,
    /// The checksum does not match.
    Checksum,
    /// A port is zero, which no connection can have (RFC 6335 6).
    Port,
}

/// A segment: the fields of its header, and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The port it is sent from; never 0 when parsed.
    pub source_port: u16,
    /// The port it is sent to; never 0 when parsed.
    pub destination_port: u16,
    /// SEG.SEQ: the sequence number of the first octet, or of the SYN.
    pub seq: Seq,
    /// SEG.ACK: the next sequence number expected; valid only with [`Flags::ACK`].
    pub ack: Seq,
    /// The eight control bits.
    pub flags: Flags,
    /// SEG.WND as in the header, not scaled.
    pub window: u16,
    /// The urgent pointer; parsed and not used (RFC 6093 advises against the mechanism).
    pub urgent: u16,
    /// The options that were understood, or are to be sent.
    pub options: Options,
    /// The segment's data, without SYN and FIN.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Parses a segment without checking its checksum.
    #[inline(never)]
    pub fn parse(bytes: &'a [u8]) -> Result<Segment<'a>, Malformed> {
        let (words, _) = bytes.as_chunks::<4>();
        let Some(&[ports, seq, ack, bits, urgent]) = words.first_chunk() else {
            return Err(Malformed::Truncated);
        };
        let ports = u32::from_be_bytes(ports);
        let bits = u32::from_be_bytes(bits);
        let offset = (bits >> 28) as usize * 4;
        let (Some(area), Some(payload)) = (bytes.get(HEADER_MIN..offset), bytes.get(offset..))
        else {
            return Err(Malformed::Offset);
        };
        let (source_port, destination_port) = ((ports >> 16) as u16, ports as u16);
        if source_port == 0 || destination_port == 0 {
            return Err(Malformed::Port);
        }
        let mut segment = Segment {
            source_port,
            destination_port,
            seq: Seq::new(u32::from_be_bytes(seq)),
            ack: Seq::new(u32::from_be_bytes(ack)),
            flags: Flags::from_bits((bits >> 16) as u8),
            window: bits as u16,
            urgent: u32::from_be_bytes(urgent) as u16,
            options: Options::default(),
            payload,
        };
        segment.options.take_all(area);
        Ok(segment)
    }

    /// Parses a segment of `flow`, in either direction, and verifies its checksum.
    pub fn parse_checked(bytes: &'a [u8], flow: &Flow) -> Result<Segment<'a>, Malformed> {
        let mut sum = flow.pseudo_header(bytes.len() as u32);
        sum.add(bytes);
        match (bytes.len() < HEADER_MIN, sum.finish()) {
            (true, _) => Err(Malformed::Truncated),
            (false, 0) => Segment::parse(bytes),
            (false, _) => Err(Malformed::Checksum),
        }
    }

    /// SEG.LEN: the sequence space it occupies, one each for SYN and FIN included.
    pub fn sequence_len(&self) -> u32 {
        let syn = u32::from(self.flags.has(Flags::SYN));
        let fin = u32::from(self.flags.has(Flags::FIN));
        (self.payload.len() as u32).wrapping_add(syn + fin)
    }

    /// Writes the header of a segment on `flow` with a payload in up to two parts, checksum included, and returns
    /// its length. `header` must hold [`HEADER_MAX`] octets, or as many as the options need.
    pub fn emit_header(&self, flow: &Flow, parts: [&[u8]; 2], header: &mut [u8]) -> usize {
        let len = {
            let (area, _) = header.as_chunks_mut::<4>();
            let mut words = Words { area, len: 0 };
            words.put(u32::from(self.source_port) << 16 | u32::from(self.destination_port));
            words.put(self.seq.bits());
            words.put(self.ack.bits());
            words.put(u32::from(self.flags.bits()) << 16 | u32::from(self.window));
            words.put(u32::from(self.urgent));
            self.options.emit(&mut words);
            // At most 60.
            words.len << 2
        };
        // The data offset in words, in the upper four bits: len / 4 << 4.
        put(header, field::OFFSET, [(len << 2) as u8]);
        let payload = parts[0].len().wrapping_add(parts[1].len());
        let mut sum = flow.pseudo_header(len.wrapping_add(payload) as u32);
        sum.add(header.get(..len).unwrap_or_default());
        sum.add(parts[0]);
        sum.add(parts[1]);
        put(header, field::CHECKSUM, sum.finish().to_be_bytes());
        len
    }

    /// Writes header and payload and returns their length, or `None` if `buffer` is too small.
    pub fn emit(&self, flow: &Flow, buffer: &mut [u8]) -> Option<usize> {
        let header = HEADER_MIN + self.options.len();
        let total = header.wrapping_add(self.payload.len());
        buffer.get_mut(header..total)?.copy_from_slice(self.payload);
        self.emit_header(flow, [self.payload, &[]], buffer);
        Some(total)
    }

    /// The reset that answers a segment without a connection (RFC 9293 3.10.7.1); `None` if it is itself a reset.
    pub fn reset(&self) -> Option<Segment<'static>> {
        if self.flags.has(Flags::RST) {
            return None;
        }
        let (seq, ack, flags) = match self.flags.has(Flags::ACK) {
            true => (self.ack, Seq::default(), Flags::RST),
            false => {
                let ack = self.seq + self.sequence_len();
                (Seq::default(), ack, Flags::RST | Flags::ACK)
            }
        };
        Some(Segment {
            source_port: self.destination_port,
            destination_port: self.source_port,
            seq,
            ack,
            flags,
            window: 0,
            urgent: 0,
            options: Options::default(),
            payload: &[],
        })
    }
}

impl fmt::Display for Segment<'_> {
    /// In one line, like tcpdump: `P. 5:10(5) ack 7 win 512`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seq + self.payload.len() as u32;
        write!(
            f,
            "{} {}:{end}({})",
            self.flags,
            self.seq,
            self.payload.len()
        )?;
        if self.flags.has(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)
    }
}

fn put<const N: usize>(bytes: &mut [u8], place: usize, value: [u8; N]) {
    if let Some(target) = bytes.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
        *target = value;
    }
}
