//! KCP, as tunnels use it against loss, and static parity beside it, as kcptun adds it.
//!
//! After the protocol of skywind3000's KCP (`protocol.txt`, `README`, `ikcp.c`): an ARQ over datagrams. Each segment is
//! acknowledged by number and stamp; it is sent again when `resend` later ones have been acknowledged, or when its clock is
//! up, which starts at a round trip (30 ms at least in the quick mode, else 100) and grows by half (else doubles). Everything
//! happens at flushes, `interval` apart. There is no congestion control: every mode that tunnels recommend turns it off, and
//! the window is all that bounds what is under way. [`Rules::Go`] is what kcp-go, on which kcptun runs, makes of it.
//!
//! ```
//! use chappe_core::{Duration, Instant};
//! use chappe_wildnet::baseline::{Kcp, KcpConfig};
//!
//! let config = KcpConfig::fast3();
//! let (mut here, mut there) = (Kcp::new(config)?, Kcp::new(config)?);
//! let (mut now, mut datagram, mut octets) = (Instant::ZERO, [0; 1500], [0; 16]);
//! assert_eq!(here.write(now, b"towers"), 6);
//! now += Duration::from_millis(10); // it leaves with a flush
//! here.handle_timeout(now);
//! while let Some(len) = here.poll(&mut datagram) {
//!     now += Duration::from_millis(10);
//!     there.handle(now, &datagram[..len]);
//! }
//! assert_eq!(there.read(&mut octets), 6);
//! # Ok::<(), chappe_wildnet::baseline::KcpError>(())
//! ```
//!
//! Supported: data, acknowledgements, window probes; a stream without message borders, as kcptun runs it; parity x:y with
//! kcp-go's groups. Not supported: congestion control, fragments, kcptun's encryption, compression and multiplexing.

mod frames;
mod node;
mod parity;
mod receiver;
mod segment;
mod sender;

use chappe_core::{Duration, Instant, Wake};

use crate::header::before;
use frames::Frames;
use parity::{Decoder, Encoder};
use receiver::Receiver;
use segment::{Command, HEADER, Segment};
use sender::{Flush, Sender};

pub use node::KcpNode;

/// Whose rules for repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The original's (`ikcp.c`).
    Original,
    /// kcp-go's (`kcp.go`): one skip is enough in a flush that has nothing new to send; skips count before clocks, start
    /// the clock anew and repeat without limit; clocks grow by steps; a flush follows at once when the window moves.
    Go,
}

/// What decides how an end works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KcpConfig {
    /// Whose rules.
    pub rules: Rules,
    /// Names the conversation; the same at both ends.
    pub conv: u32,
    /// The quick mode: clocks from 30 ms on that grow by half, instead of from 100 ms on that double.
    pub nodelay: bool,
    /// From one flush to the next.
    pub interval: Duration,
    /// Acknowledged later segments after which one is sent again; 0: only when its clock is up.
    pub resend: u32,
    /// Segments under way at most, and segments that the receiver takes ahead of its reader.
    pub send_window: u16,
    /// See `send_window`.
    pub receive_window: u16,
    /// Longest datagram, octets.
    pub mtu: usize,
    /// Parity: y datagrams for each x.
    pub parity: Option<(u8, u8)>,
    /// Datagrams that wait for the way out before more are dropped.
    pub queue: usize,
}

impl KcpConfig {
    /// kcptun's mode of this name, with its windows and datagrams (128 and 512 segments, 1350 octets); KCP's own turbo mode
    /// has the same numbers. Without parity. The queue is a tenth of Linux's usual 1000 (`txqueuelen`).
    pub const fn fast3() -> KcpConfig {
        KcpConfig {
            rules: Rules::Original,
            conv: 1,
            nodelay: true,
            interval: Duration::from_millis(10),
            resend: 2,
            send_window: 128,
            receive_window: 512,
            mtu: 1350,
            parity: None,
            queue: 100,
        }
    }

    /// kcptun's usual mode: patient clocks, and 30 ms between flushes.
    pub const fn fast() -> KcpConfig {
        KcpConfig {
            nodelay: false,
            interval: Duration::from_millis(30),
            ..KcpConfig::fast3()
        }
    }

    /// Longest data of a segment, octets.
    pub const fn segment_max(&self) -> usize {
        let parity = if self.parity.is_some() {
            parity::OVERHEAD
        } else {
            0
        };
        self.mtu.saturating_sub(HEADER + parity)
    }

    fn interval_ms(&self) -> u32 {
        millis(self.interval.nanos())
    }

    /// `IKCP_RTO_NDL` and `IKCP_RTO_MIN`, ms.
    fn rto_min(&self) -> u32 {
        if self.nodelay { 30 } else { 100 }
    }
}

/// What is wrong with a [`KcpConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KcpError {
    /// Datagrams must hold a segment of 64 octets at least, and be at most 65,536 octets long.
    Mtu(usize),
    /// Windows and queue must hold a segment, and the interval be 1 ms to 5 s.
    Empty,
    /// There is no code with so many data and parity datagrams: one of each at least, 255 together at most.
    Parity(u8, u8),
}

impl core::fmt::Display for KcpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            KcpError::Mtu(len) => write!(
                f,
                "datagrams of {len} octets: they must hold a segment of 64 and be at most 65536 long"
            ),
            KcpError::Empty => {
                f.write_str("windows and queue need a place, flushes 1 ms to 5 s between them")
            }
            KcpError::Parity(data, parity) => write!(
                f,
                "no code has {data} data and {parity} parity datagrams: one of each at least, 255 together at most"
            ),
        }
    }
}

impl core::error::Error for KcpError {}

/// What an end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KcpCounters {
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again because their clock was up.
    pub timeouts: u64,
    /// Segments sent again because later ones had been acknowledged.
    pub skipped: u64,
    /// Segments that came and were new, and that had come before or did not fit.
    pub came: u64,
    /// See `came`.
    pub repeats_came: u64,
    /// Datagrams made again from parity.
    pub recovered: u64,
    /// Datagrams sent, parity among them, and their octets.
    pub datagrams: u64,
    /// See `datagrams`.
    pub octets: u64,
    /// Datagrams that found no room in the queue.
    pub dropped: u64,
    /// Datagrams that were none of this conversation.
    pub malformed: u64,
}

/// How long a closed window is waited for before it is asked about, and at most (`IKCP_PROBE_INIT`, `IKCP_PROBE_LIMIT`), ms.
const PROBE_FIRST: u32 = 7_000;
const PROBE_MAX: u32 = 120_000;
const FLUSH: &str = "kcp flush";

/// One end of a conversation.
#[derive(Clone, Debug)]
pub struct Kcp {
    config: KcpConfig,
    sender: Sender,
    receiver: Receiver,
    encoder: Option<Encoder>,
    decoder: Option<Decoder>,
    frames: Frames,
    /// Segments gather here until a datagram is full.
    datagram: alloc::vec::Vec<u8>,
    /// When the next flush is; flushes stand on a grid of the interval.
    flush_at: Instant,
    /// When the peer's closed window is asked about, and after how long next.
    probe: Option<(u32, u32)>,
    /// The window is to be told.
    tell: bool,
    counters: KcpCounters,
}

fn millis(nanos: u64) -> u32 {
    (nanos / 1_000_000) as u32
}

impl Kcp {
    /// An end that has sent nothing.
    pub fn new(config: KcpConfig) -> Result<Kcp, KcpError> {
        let longest = config.segment_max();
        if longest < 64 || config.mtu > 1 << 16 {
            return Err(KcpError::Mtu(config.mtu));
        }
        let windows = config.send_window.min(config.receive_window).min(1 << 14);
        let span = Duration::from_millis(1)..=Duration::from_millis(5_000);
        if windows == 0 || config.queue == 0 || !span.contains(&config.interval) {
            return Err(KcpError::Empty);
        }
        let (encoder, decoder) = match config.parity {
            None => (None, None),
            Some(code) => {
                let wrong = KcpError::Parity(code.0, code.1);
                let fits = code.0.checked_add(code.1).is_some();
                let encoder = Encoder::new(code, config.mtu).filter(|_| fits);
                let decoder = Decoder::new(code, config.mtu).filter(|_| fits);
                (Some(encoder.ok_or(wrong)?), Some(decoder.ok_or(wrong)?))
            }
        };
        Ok(Kcp {
            config,
            sender: Sender::new(&config, longest),
            receiver: Receiver::new(&config, longest),
            encoder,
            decoder,
            frames: Frames::new(config.queue, config.mtu),
            datagram: alloc::vec::Vec::with_capacity(config.mtu),
            flush_at: Instant::ZERO,
            probe: None,
            tell: false,
            counters: KcpCounters::default(),
        })
    }

    /// Adds octets to the stream to the peer; returns how many were taken. They leave at the next flush.
    pub fn write(&mut self, now: Instant, octets: &[u8]) -> usize {
        self.pass_idle(now);
        let longest = self.config.segment_max();
        let mut taken = 0;
        while let Some(rest) = octets.get(taken..).filter(|rest| !rest.is_empty()) {
            match self.sender.write(rest, longest) {
                0 => break,
                more => taken += more,
            }
        }
        taken
    }

    /// Segments that [`write`](Self::write) has room for.
    pub fn room(&self) -> usize {
        self.sender.room()
    }

    /// Reads the stream from the peer, to the front of `octets`; returns how many octets.
    pub fn read(&mut self, octets: &mut [u8]) -> usize {
        let read = self.receiver.read(octets);
        if self.receiver.closed && self.receiver.room() > 0 {
            (self.receiver.closed, self.tell) = (false, true);
        }
        read
    }

    /// A datagram came from the peer. Call [`read`](Self::read) afterwards.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) {
        self.pass_idle(now);
        let Some(mut decoder) = self.decoder.take() else {
            return self.input(now, datagram);
        };
        if !decoder.take(datagram, |carried| self.input(now, carried)) {
            self.counters.malformed += 1;
        }
        self.counters.recovered = decoder.recovered;
        self.decoder = Some(decoder);
    }

    /// The next datagram to send, written to the front of `octets`.
    pub fn poll(&mut self, octets: &mut [u8]) -> Option<usize> {
        self.frames.pop(octets)
    }

    /// Whether [`poll`](Self::poll) has a datagram.
    pub fn has_datagram(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Flushes if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.flush_at {
            self.pass(now);
            self.flush(millis(now.nanos()));
        }
    }

    /// When the next flush is, if it has something to do.
    pub fn poll_timeout(&self) -> Option<Wake> {
        self.is_busy().then_some(Wake {
            at: self.flush_at,
            why: FLUSH,
        })
    }

    /// What it has done so far.
    pub fn counters(&self) -> KcpCounters {
        KcpCounters {
            datagrams: self.frames.taken,
            octets: self.frames.octets,
            dropped: self.frames.dropped,
            ..self.counters
        }
    }

    /// What decides how it works.
    pub fn config(&self) -> &KcpConfig {
        &self.config
    }
}

impl Kcp {
    fn is_busy(&self) -> bool {
        self.sender.is_busy() || self.receiver.owes() || self.tell
    }

    /// The next flush is the first on the grid after `now`.
    fn pass(&mut self, now: Instant) {
        let interval = self.config.interval;
        let missed = now.saturating_since(self.flush_at).nanos() / interval.nanos().max(1);
        self.flush_at += interval * (missed + 1);
    }

    /// Flushes with nothing to do are not waited for; they pass.
    fn pass_idle(&mut self, now: Instant) {
        if now >= self.flush_at && !self.is_busy() {
            self.pass(now);
        }
    }

    fn input(&mut self, now: Instant, datagram: &[u8]) {
        let now = millis(now.nanos());
        let mut newest: Option<(u32, u32)> = None;
        let mut moved = false;
        let mut rest = datagram;
        while !rest.is_empty() {
            let parsed = Segment::parse(rest);
            let Some((segment, more)) = parsed.filter(|(s, _)| s.conv == self.config.conv) else {
                self.counters.malformed += 1;
                break;
            };
            rest = more;
            self.sender.remote_window = segment.window;
            moved |= self.sender.on_una(segment.una);
            match segment.command {
                Command::Ack => {
                    let since = now.wrapping_sub(segment.stamp);
                    if since < u32::MAX / 2 {
                        self.sender.on_rtt(since, &self.config);
                    }
                    self.sender.on_ack(segment.number);
                    if newest.is_none_or(|(number, _)| before(number, segment.number)) {
                        newest = Some((segment.number, segment.stamp));
                    }
                }
                Command::Push => {
                    let (number, stamp) = (segment.number, segment.stamp);
                    match self.receiver.on_push(number, stamp, segment.data) {
                        true => self.counters.came += 1,
                        false => self.counters.repeats_came += 1,
                    }
                }
                Command::Ask => self.tell = true,
                Command::Tell => {}
            }
        }
        if let Some((number, stamp)) = newest {
            self.sender.on_skips(number, stamp);
        }
        if moved && self.config.rules == Rules::Go {
            self.flush(now);
        }
    }

    /// Acknowledgements first, then what is due again or new.
    fn flush(&mut self, now: u32) {
        let room = self.receiver.room();
        self.receiver.closed |= room == 0;
        let mut segment = Segment {
            conv: self.config.conv,
            command: Command::Ack,
            window: room,
            stamp: 0,
            number: 0,
            una: self.receiver.una(),
            data: &[],
        };
        let mut way = Way {
            datagram: core::mem::take(&mut self.datagram),
            most: HEADER + self.config.segment_max(),
            encoder: self.encoder.as_mut(),
            frames: &mut self.frames,
        };
        for (number, stamp) in self.receiver.owed() {
            (segment.number, segment.stamp) = (*number, *stamp);
            way.add(&segment);
        }
        self.receiver.settle();
        (segment.number, segment.stamp) = (0, now);
        if probe(&mut self.probe, self.sender.remote_window, now) {
            segment.command = Command::Ask;
            way.add(&segment);
        }
        if core::mem::take(&mut self.tell) {
            segment.command = Command::Tell;
            way.add(&segment);
        }
        let mut last = None;
        let pass = Flush {
            now,
            early: !self.sender.opens(),
        };
        let counters = &mut self.counters;
        while let Some((number, data)) = self.sender.due(last, pass, &self.config, counters) {
            last = Some(number);
            way.add(&Segment {
                command: Command::Push,
                number,
                data,
                ..segment
            });
        }
        self.datagram = way.finish();
    }
}

/// Whether a closed window is to be asked about now.
fn probe(probe: &mut Option<(u32, u32)>, window: u16, now: u32) -> bool {
    if window > 0 {
        *probe = None;
        return false;
    }
    let (at, wait) = *probe.get_or_insert((now.wrapping_add(PROBE_FIRST), PROBE_FIRST));
    if before(now, at) {
        return false;
    }
    let wait = (wait + wait / 2).min(PROBE_MAX);
    *probe = Some((now.wrapping_add(wait), wait));
    true
}

/// Gathers segments into datagrams.
struct Way<'a> {
    datagram: alloc::vec::Vec<u8>,
    most: usize,
    encoder: Option<&'a mut Encoder>,
    frames: &'a mut Frames,
}

impl Way<'_> {
    fn add(&mut self, segment: &Segment<'_>) {
        if self.datagram.len() + segment.len() > self.most {
            self.close();
        }
        let from = self.datagram.len();
        self.datagram.resize(from + segment.len(), 0);
        if let Some(to) = self.datagram.get_mut(from..) {
            let _ = segment.emit(to);
        }
    }

    fn close(&mut self) {
        if !self.datagram.is_empty() {
            match &mut self.encoder {
                Some(encoder) => encoder.send(&self.datagram, self.frames),
                None => self.frames.push(&[&self.datagram]),
            }
        }
        self.datagram.clear();
    }

    fn finish(mut self) -> alloc::vec::Vec<u8> {
        self.close();
        self.datagram
    }
}

#[cfg(test)]
mod tests;
