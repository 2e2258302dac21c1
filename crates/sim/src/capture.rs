//! pcapng captures that Wireshark opens: one interface for each node, nanosecond stamps, and in each packet's
//! comment why it was lost.
//!
//! A frame stands in the file once for its transmitter (outbound) and once for each receiver that got it or lost
//! it (inbound). The time stamp is when the outcome was known, which keeps the file in order of time; the radiotap
//! header's TSFT is when the first bit left or arrived. Frames that were damaged carry a wrong check sequence, as
//! they did on the air.
//!
//! Format: pcapng (draft-ietf-opsawg-pcapng), link type 127 (radiotap), `if_tsresol` 9.

use std::io::{self, Write};

use chappe_core::Rate;
use chappe_wire::fcs;
use chappe_wire::radiotap::{Flags, LEN_MAX, Radiotap, Tuned};

use crate::{AirTime, Heard, Loss, Power, Recorder, Sent};

/// What of a run goes into a capture, beside what was sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// Nothing: only what was received.
    None,
    /// What a receiver had begun to receive, and what it missed although it was strong enough.
    Heard,
    /// Signals that were too weak as well: most of the file.
    All,
}

/// A recorder that writes a pcapng file.
///
/// The first error of the writer ends the capture; [`Pcapng::finish`] returns it. Frames that are not 802.11
/// are counted and left out.
#[derive(Debug)]
pub struct Pcapng<W: Write> {
    writer: W,
    losses: Losses,
    error: Option<io::Error>,
    skipped: u64,
    block: Vec<u8>,
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const RADIOTAP: u16 = 127;

impl<W: Write> Pcapng<W> {
    /// Begins a file for `nodes` nodes, named `n0`, `n1`...
    pub fn new(writer: W, nodes: usize, losses: Losses) -> Pcapng<W> {
        let mut capture = Pcapng {
            writer,
            losses,
            error: None,
            skipped: 0,
            block: Vec::with_capacity(4096),
        };
        capture.begin(SECTION);
        capture.word(0x1a2b_3c4d);
        capture.half(1);
        capture.half(0);
        capture.block.extend_from_slice(&u64::MAX.to_le_bytes());
        capture.option(4, b"chappe-sim");
        capture.end();
        for node in 0..nodes {
            capture.begin(INTERFACE);
            capture.half(RADIOTAP);
            capture.half(0);
            capture.word(0);
            capture.option(2, format!("n{node}").as_bytes());
            capture.option(9, &[9]);
            capture.end();
        }
        capture
    }

    /// Ends the file and returns the writer, or the first error that occurred.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| self.writer),
        }
    }

    /// Frames that were left out because they are not 802.11.
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
        let Some(tuned) =
            Tuned::dot11b(packet.channel).filter(|_| packet.mode.rate != Rate::Oqpsk250)
        else {
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
        self.begin(PACKET);
        self.word(packet.node as u32);
        self.word((packet.at.nanos() >> 32) as u32);
        self.word(packet.at.nanos() as u32);
        let len = (header_len + packet.psdu.len() + check.len()) as u32;
        self.word(len);
        self.word(len);
        self.block.extend_from_slice(&header[..header_len]);
        self.block.extend_from_slice(packet.psdu);
        self.block.extend_from_slice(&check);
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
