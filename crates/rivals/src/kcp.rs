//! KCP as tunnels use it against loss, with the static parity that kcptun adds.
//!
//! It follows skywind3000's KCP (`protocol.txt`, `README`, `ikcp.c`), an ARQ over datagrams. The receiver acknowledges each
//! segment by number and timestamp. The sender sends a segment again when `resend` later ones have been acknowledged, or when
//! its retransmission timeout expires. The timeout starts at the round trip, at least 30 ms in the quick mode and 100 ms
//! otherwise; it grows by half in the quick mode and doubles otherwise. Everything happens at flushes, `interval` apart. There
//! is no congestion control: every mode that tunnels recommend turns it off, and only the window bounds the segments in flight.
//! [`KcpRules::Go`] are the rules of kcp-go, on which kcptun runs.
//!
//! Supported: data, acknowledgements, window probes; a stream without message boundaries, as kcptun runs it; parity x:y with
//! kcp-go's groups. Not supported: congestion control, fragments, kcptun's encryption, compression and multiplexing.

mod config;
mod frames;
mod node;
mod parity;
mod receiver;
mod segment;
mod sender;

use chappe_core::{Duration, Instant, Wake};

use config::millis;
use frames::Frames;
use parity::{Decoder, Encoder};
use receiver::Receiver;
use segment::before;
use segment::{Command, HEADER, Segment};
use sender::{Flush, Sender};

pub use config::{KcpConfig, KcpCounters, KcpError, KcpRules};
pub use node::KcpNode;

/// First and longest pause before a closed window is probed (`IKCP_PROBE_INIT`, `IKCP_PROBE_LIMIT`), ms.
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
    /// The next flush, on a grid of the interval.
    flush_at: Instant,
    /// When the peer's closed window is probed, and the pause that led there.
    probe: Option<(u32, u32)>,
    /// The peer asked for the window, or it has opened again.
    tell: bool,
    counters: KcpCounters,
}

impl Kcp {
    /// Makes an end that has sent nothing; fails if the settings do not fit together.
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

    /// Adds octets to the stream to the peer; returns how many were accepted. They leave at the next flush.
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
        // The peer waits for the window to open (`ikcp_recv`, fast recover).
        if self.receiver.closed && self.receiver.room() > 0 {
            (self.receiver.closed, self.tell) = (false, true);
        }
        read
    }

    /// Processes a datagram from the peer. Call [`read`](Self::read) afterwards.
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

    /// Writes the next datagram to send to the front of `octets`; `None` if there is none, or no room for it.
    pub fn poll(&mut self, octets: &mut [u8]) -> Option<usize> {
        self.frames.pop(octets)
    }

    /// Whether [`poll`](Self::poll) has a datagram.
    pub fn has_datagram(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Flushes if the time of the next flush has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.flush_at {
            self.pass(now);
            self.flush(millis(now.nanos()));
        }
    }

    /// The time of the next flush, if that has something to do.
    pub fn poll_timeout(&self) -> Option<Wake> {
        self.is_busy().then_some(Wake {
            at: self.flush_at,
            why: FLUSH,
        })
    }

    /// Counters since the start.
    pub fn counters(&self) -> KcpCounters {
        KcpCounters {
            datagrams: self.frames.taken,
            octets: self.frames.octets,
            dropped: self.frames.dropped,
            ..self.counters
        }
    }

    /// The settings of this end.
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

    /// Skips the flushes that had nothing to do, for which no timer was set.
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
            // Every header holds the window and the cumulative acknowledgement, whatever its command.
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
                        true => self.counters.received += 1,
                        false => self.counters.duplicates += 1,
                    }
                }
                Command::Ask => self.tell = true,
                Command::Tell => {}
            }
        }
        // Once a datagram, not once an acknowledgement: a skip is a datagram in which a later segment was acknowledged.
        if let Some((number, stamp)) = newest {
            self.sender.on_skips(number, stamp);
        }
        // The original waits for the next flush of its clock.
        if moved && self.config.rules == KcpRules::Go {
            self.flush(now);
        }
    }

    /// Sends acknowledgements first, then window probes, then segments that are due again or new: the order of `ikcp_flush`.
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
        let mut datagrams = Datagrams {
            datagram: core::mem::take(&mut self.datagram),
            most: HEADER + self.config.segment_max(),
            encoder: self.encoder.as_mut(),
            frames: &mut self.frames,
        };
        for (number, stamp) in self.receiver.owed() {
            (segment.number, segment.stamp) = (*number, *stamp);
            datagrams.add(&segment);
        }
        self.receiver.settle();
        (segment.number, segment.stamp) = (0, now);
        if probe(&mut self.probe, self.sender.remote_window, now) {
            segment.command = Command::Ask;
            datagrams.add(&segment);
        }
        if core::mem::take(&mut self.tell) {
            segment.command = Command::Tell;
            datagrams.add(&segment);
        }
        let mut last = None;
        let pass = Flush {
            now,
            early: !self.sender.opens(),
        };
        let counters = &mut self.counters;
        while let Some((number, data)) = self.sender.due(last, pass, &self.config, counters) {
            last = Some(number);
            datagrams.add(&Segment {
                command: Command::Push,
                number,
                data,
                ..segment
            });
        }
        self.datagram = datagrams.finish();
    }
}

/// Whether to probe a closed window now.
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
struct Datagrams<'a> {
    datagram: alloc::vec::Vec<u8>,
    most: usize,
    encoder: Option<&'a mut Encoder>,
    frames: &'a mut Frames,
}

impl Datagrams<'_> {
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
