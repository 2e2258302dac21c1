//! pcapng captures for Wireshark: one interface for each node and standard, nanosecond timestamps, and the reason of each
//! loss in the packet's comment.
//!
//! A frame appears once for its transmitter (outbound) and once for each receiver that got it or lost it (inbound). The
//! timestamp is when the outcome was known, which keeps the file in order of time; the radiotap header's TSFT is when
//! the first bit left or arrived. Damaged frames carry a wrong check sequence.
//!
//! Format: pcapng (draft-ietf-opsawg-pcapng), `if_tsresol` 9; link type 127 (radiotap) for 802.11, 283 (802.15.4 TAP,
//! after the "IEEE 802.15.4 TAP Link Type Specification") for 802.15.4, whose interfaces stand in the file from the
//! first such frame on.

use std::io::{self, Write};

use chappe_core::Rate;
use chappe_wire::fcs;
use chappe_wire::radiotap::{Flags, LEN_MAX, Radiotap, Tuned};

use crate::{AirTime, Heard, Loss, Power, Recorder, Sent};

/// Which losses a capture contains, besides sent and received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// No losses are written.
    None,
    /// Frames that a receiver was locked on to, and frames that it missed although they were strong enough.
    Heard,
    /// All losses, including signals that were too weak: most of the file.
    All,
}

/// A recorder that writes a pcapng file.
///
/// The first error of the writer ends the capture; [`Pcapng::finish`] returns it. 802.11 frames on channels that
/// 802.11b does not have are counted and omitted.
#[derive(Debug)]
pub struct Pcapng<W: Write> {
    writer: W,
    losses: Losses,
    error: Option<io::Error>,
    skipped: u64,
    block: Vec<u8>,
    nodes: usize,
    /// Whether the 802.15.4 interfaces stand in the file.
    tapped: bool,
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const RADIOTAP: u16 = 127;
const TAP: u16 = 283;

impl<W: Write> Pcapng<W> {
    /// Begins a file for `nodes` nodes, named `n0`, `n1`...
    pub fn new(writer: W, nodes: usize, losses: Losses) -> Pcapng<W> {
        let mut capture = Pcapng {
            writer,
            losses,
            error: None,
            skipped: 0,
            block: Vec::with_capacity(4096),
            nodes,
            tapped: false,
        };
        capture.begin(SECTION);
        capture.word(0x1a2b_3c4d);
        capture.half(1);
        capture.half(0);
        capture.block.extend_from_slice(&u64::MAX.to_le_bytes());
        capture.option(4, b"chappe-sim");
        capture.end();
        capture.interfaces(RADIOTAP);
        capture
    }

    /// One interface of a link type for each node.
    fn interfaces(&mut self, link_type: u16) {
        for node in 0..self.nodes {
            self.begin(INTERFACE);
            self.half(link_type);
            self.half(0);
            self.word(0);
            self.option(2, format!("n{node}").as_bytes());
            self.option(9, &[9]);
            self.end();
        }
    }

    /// Ends the file and returns the writer, or the first error that occurred.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| self.writer),
        }
    }

    /// Frames that were omitted because radiotap cannot state their channel.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // The length, once it is known.
        self.word(0);
    }

    fn word(&mut self, word: u32) {
        self.block.extend_from_slice(&word.to_le_bytes());
    }

    fn half(&mut self, half: u16) {
        self.block.extend_from_slice(&half.to_le_bytes());
    }

    fn pad(&mut self) {
        let padded = self.block.len().next_multiple_of(4);
        self.block.resize(padded, 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.half(code);
        self.half(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// Closes options and block, and writes it out.
    fn end(&mut self) {
        self.option(0, &[]);
        let len = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.word(len);
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.block).err();
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        if packet.mode.rate == Rate::Oqpsk250 {
            return self.tap(packet);
        }
        let Some(tuned) = Tuned::at_2_4_ghz(packet.channel, packet.mode.rate) else {
            self.skipped += 1;
            return;
        };
        let mut radiotap = Radiotap::of_mode(packet.mode);
        radiotap.tsft = Some(packet.started.nanos() / 1000);
        radiotap.channel = Some(tuned);
        radiotap.signal = packet
            .power
            .map(|power| libm::round(power.to_dbm().0).clamp(-128.0, 127.0) as i8);
        let mut flags = radiotap.flags.unwrap_or_default().with(Flags::FCS);
        let mut check = fcs::of(packet.psdu);
        if packet.damaged {
            flags = flags.with(Flags::BAD_FCS);
            check = check.map(|octet| !octet);
        }
        radiotap.flags = Some(flags);
        let mut header = [0; LEN_MAX];
        let Ok(header_len) = radiotap.emit(&mut header) else {
            self.skipped += 1;
            return;
        };
        self.enhanced(packet, packet.node, &header[..header_len], &check);
    }

    /// An 802.15.4 frame behind its TAP header.
    fn tap(&mut self, packet: &Packet<'_>) {
        if !std::mem::replace(&mut self.tapped, true) {
            self.interfaces(TAP);
        }
        let mut check = crc16(packet.psdu);
        if packet.damaged {
            check = !check;
        }
        let mut header = vec![0, 0, 0, 0];
        let mut field = |kind: u16, value: &[u8]| {
            header.extend_from_slice(&kind.to_le_bytes());
            header.extend_from_slice(&(value.len() as u16).to_le_bytes());
            header.extend_from_slice(value);
            header.resize(header.len().next_multiple_of(4), 0);
        };
        // FCS of 16 bits; received power; channel and page 0; when the first bit left or arrived.
        field(0, &[1]);
        if let Some(power) = packet.power {
            field(1, &(power.to_dbm().0 as f32).to_le_bytes());
        }
        field(3, &[packet.channel, 0, 0]);
        field(5, &packet.started.nanos().to_le_bytes());
        let len = (header.len() as u16).to_le_bytes();
        header[2..4].copy_from_slice(&len);
        // An interface has one link type, so 802.15.4 has its own after those of 802.11.
        let interface = self.nodes + packet.node;
        self.enhanced(packet, interface, &header, &check.to_le_bytes());
    }

    /// Writes an enhanced packet block.
    fn enhanced(&mut self, packet: &Packet<'_>, interface: usize, header: &[u8], check: &[u8]) {
        self.begin(PACKET);
        self.word(interface as u32);
        self.word((packet.at.nanos() >> 32) as u32);
        self.word(packet.at.nanos() as u32);
        let len = (header.len() + packet.psdu.len() + check.len()) as u32;
        self.word(len);
        self.word(len);
        self.block.extend_from_slice(header);
        self.block.extend_from_slice(packet.psdu);
        self.block.extend_from_slice(check);
        self.pad();
        // Direction: 1 inbound, 2 outbound.
        self.option(
            2,
            &if packet.comment.is_empty() { 2u32 } else { 1 }.to_le_bytes(),
        );
        if !packet.comment.is_empty() {
            self.option(1, packet.comment.as_bytes());
        }
        self.end();
    }
}

/// The check sequence of 802.15.4: generator 0x1021, bits reflected, from zero, sent low octet first
/// (IEEE 802.15.4-2006, 7.2.1.9).
fn crc16(psdu: &[u8]) -> u16 {
    psdu.iter().fold(0, |start, &octet| {
        (0..8).fold(start ^ u16::from(octet), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x8408 } else { 0 }
        })
    })
}

struct Packet<'a> {
    at: AirTime,
    started: AirTime,
    node: usize,
    channel: u8,
    mode: chappe_core::Mode,
    psdu: &'a [u8],
    power: Option<Power>,
    damaged: bool,
    comment: String,
}

impl<W: Write> Recorder for Pcapng<W> {
    const NODES: bool = false;

    fn sent(&mut self, frame: &Sent<'_>) {
        self.packet(&Packet {
            at: frame.at,
            started: frame.at,
            node: frame.node,
            channel: frame.channel,
            mode: frame.mode,
            psdu: frame.psdu,
            power: None,
            damaged: false,
            comment: String::new(),
        });
    }

    fn heard(&mut self, frame: &Heard<'_>) {
        let wanted = match (frame.outcome, self.losses) {
            (Ok(()), _) | (_, Losses::All) => true,
            (Err(_), Losses::None) | (Err(Loss::TooWeak), Losses::Heard) => false,
            (Err(_), Losses::Heard) => true,
        };
        if !wanted {
            return;
        }
        let from = format!("from n{}, frame {}", frame.from, frame.number);
        self.packet(&Packet {
            at: frame.at,
            started: frame.started,
            node: frame.node,
            channel: frame.channel,
            mode: frame.mode,
            psdu: frame.psdu,
            power: Some(frame.power),
            damaged: frame.outcome.is_err(),
            comment: match frame.outcome {
                Ok(()) => format!("{from}: received"),
                Err(why) => format!("{from}: lost: {}", why.sentence()),
            },
        });
    }
}
