//! A connection: what it remembers, and what an application does with it.

use chappe_core::{Instant, Wake};

use super::bits::{self, Bits};
use super::clock::{Stamp, timestamp_clock};
use super::congestion::{Congestion, NewReno, Window};
use super::flight::{Flight, Sent};
use super::rack::Rack;
use super::reassembly::Reassembly;
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::segment::{Options, Segment};
use super::send_buffer::SendBuffer;
use super::state::{Failure, State};
use super::timers::{Timer, Timers};
use super::{Endpoint, Flow, Local, Range, Seq};

/// Why memory cannot serve a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The send buffer, the receive buffer or the flight table has no room at all.
    Empty,
    /// A buffer is larger than 2^30 octets, the largest window (RFC 7323 2.3).
    Huge,
    /// The socket is in use: close it first.
    Busy,
}

/// The memory that a socket works in, lent by its owner.
#[derive(Debug)]
pub struct Memory<'a> {
    /// Ring of data not yet acknowledged. Three to four segments fill a low-power link.
    pub send: &'a mut [u8],
    /// Ring of data not yet read, and of data out of order; the window is offered from it.
    pub receive: &'a mut [u8],
    /// Out-of-order ranges: one a hole; 8 octets each. With none, only data in order is kept.
    pub ranges: &'a mut [Range],
    /// Segments in flight: one for each that the window and the send buffer let out; 12 octets each.
    pub flight: &'a mut [Sent],
}

/// One TCP connection, without I/O.
///
/// Methods are of four kinds: **getters**; **commands** of the application ([`connect`](Self::connect),
/// [`write`](Self::write), [`read`](Self::read), [`close`](Self::close) ..); **`handle_*`** for segments and
/// deadlines; **`poll_*`** for what goes out. After each command and each `handle_*`, call
/// [`poll_segment`](Self::poll_segment) until it gives `None`, then read [`poll_timeout`](Self::poll_timeout).
/// Calling [`handle_timeout`](Self::handle_timeout) early changes nothing.
#[derive(Debug)]
pub struct Socket<'a, C: Congestion = NewReno> {
    pub(super) local: &'a Local,
    pub(super) remote: Endpoint,
    pub(super) send: SendBuffer<'a>,
    pub(super) receive: Reassembly<'a>,
    /// Knows SND.UNA.
    pub(super) flight: Flight<'a>,
    pub(super) timers: Timers,
    pub(super) bits: Bits,

    /// SND.NXT: the next sequence number to send; never goes back.
    pub(super) snd_nxt: Seq,
    /// SND.WL1: the segment that last set the window. WL2 is not kept: an acknowledgement below SND.UNA never sets
    /// the window (RFC 9293 3.10.7.4), and WL2 never lies above SND.UNA.
    pub(super) snd_wl1: Seq,
    /// RCV.NXT: the next sequence number expected.
    pub(super) rcv_nxt: Seq,
    /// The right edge of the window offered.
    pub(super) rcv_adv: Seq,
    /// Last.ACK.sent (RFC 7323 4.3).
    pub(super) last_ack: Seq,
    /// The peer's FIN, if its place is known.
    pub(super) fin: Seq,
    /// What arrived twice and is still to be reported (RFC 2883): where, and how many octets.
    pub(super) duplicate: Seq,
    pub(super) duplicate_len: u16,

    pub(super) window: Window,
    pub(super) congestion: C,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) recovery: Recovery,
    /// TLP.end_seq (RFC 8985 7.1).
    pub(super) probe_end: Seq,

    /// TS.Recent and this connection's offset to the timestamp clock.
    pub(super) ts_recent: u32,
    pub(super) ts_offset: u32,
    /// When TS.Recent was set, in units of 2^40 ns.
    pub(super) ts_recent_at: u16,
    /// Our port.
    pub(super) port: u16,
    /// The smaller of the peer's MSS and ours: payload and options.
    pub(super) mss: u16,
    /// The largest payload received: what the peer takes for a full segment.
    pub(super) rcv_mss: u16,
    /// When data was last sent, in units of 2^14 us: an idle time is known modulo 18 minutes.
    pub(super) sent_at: u16,
    /// Since when challenge ACKs are counted, in units of 2^30 ns, modulo 2^12, and in the low four bits how many.
    pub(super) challenges: u16,
    /// SND.WND and the largest ever offered, as in the header: to be scaled.
    pub(super) window_field: u16,
    pub(super) window_field_max: u16,
    /// Timeouts or probes in a row without an answer.
    pub(super) retries: u8,
    /// Timeouts since the last progress: each doubles the next. Progress ends the back-off. (RFC 6298 5.7 would keep
    /// it until a new sample; on a lossy link that may never come, and the timeout would stay at its maximum.)
    pub(super) backoff: u8,
    pub(super) state: State,
    pub(super) counters: Counters,
}

/// What happened on a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent anew, probes included.
    pub retransmits: u16,
    /// Retransmission timeouts.
    pub timeouts: u16,
    /// Fast recoveries.
    pub recoveries: u16,
    /// Reductions that proved spurious and were undone.
    pub undone: u16,
    /// D-SACKs received.
    pub duplicates: u16,
    /// Segments dropped as old, out of window or otherwise unacceptable.
    pub dropped: u16,
}

impl<'a, C: Congestion> Socket<'a, C> {
    /// A socket in CLOSED.
    pub fn new(local: &'a Local, memory: Memory<'a>, congestion: C) -> Result<Self, Unfit> {
        let lens = [memory.send.len(), memory.receive.len()];
        if lens.contains(&0) || memory.flight.is_empty() {
            return Err(Unfit::Empty);
        }
        if lens.iter().any(|&len| len > 1 << 30) || memory.flight.len() > usize::from(u16::MAX) {
            return Err(Unfit::Huge);
        }
        let zero = Seq::default();
        Ok(Socket {
            local,
            remote: Endpoint::new(local.address, 0),
            port: 0,
            send: SendBuffer::new(memory.send),
            receive: Reassembly::new(memory.receive, memory.ranges),
            flight: Flight::new(memory.flight),
            timers: Timers::default(),
            bits: Bits::default(),
            snd_nxt: zero,
            snd_wl1: zero,
            rcv_nxt: zero,
            rcv_adv: zero,
            last_ack: zero,
            fin: zero,
            duplicate: zero,
            duplicate_len: 0,
            window: Window {
                cwnd: 0,
                ssthresh: u32::MAX,
                acked: 0,
            },
            congestion,
            rtt: Rtt::default(),
            rack: Rack::default(),
            recovery: Recovery::default(),
            probe_end: zero,
            ts_recent: 0,
            ts_offset: 0,
            ts_recent_at: 0,
            mss: 0,
            rcv_mss: 0,
            sent_at: 0,
            challenges: 0,
            window_field: 0,
            window_field_max: 0,
            retries: 0,
            backoff: 0,
            state: State::Closed,
            counters: Counters::default(),
        })
    }

    /// Gives the memory back; what was in the buffers is lost.
    pub fn release(self) -> Memory<'a> {
        let (receive, ranges) = self.receive.release();
        Memory {
            send: self.send.release(),
            receive,
            ranges,
            flight: self.flight.release(),
        }
    }

    /// Opens a connection from `port` to `remote`: sends a SYN.
    pub fn connect(&mut self, now: Instant, port: u16, remote: Endpoint) -> Result<(), Unfit> {
        self.begin(now, port, remote)?;
        self.state = State::SynSent;
        self.bits.set(bits::SYN_NOW);
        Ok(())
    }

    /// Answers a SYN of `remote` that a [`Listener`](super::Listener) accepted.
    pub fn accept(
        &mut self,
        now: Instant,
        remote: Endpoint,
        syn: &Segment<'_>,
    ) -> Result<(), Unfit> {
        self.begin(now, syn.destination_port, remote)?;
        self.state = State::SynReceived;
        self.bits.set(bits::SYN_NOW);
        self.synchronise(now, syn);
        Ok(())
    }

    /// Puts everything to the start of a new connection.
    fn begin(&mut self, now: Instant, port: u16, remote: Endpoint) -> Result<(), Unfit> {
        if self.state != State::Closed {
            return Err(Unfit::Busy);
        }
        (self.port, self.remote) = (port, remote);
        let flow = self.flow();
        let iss = self.local.secret.initial_sequence_number(now, &flow);
        self.send.clear();
        self.receive.clear();
        self.flight.restart(iss);
        self.flight.push(iss + 1, Stamp::of(now));
        self.timers.stop_all();
        self.bits = Bits::default();
        self.snd_nxt = iss + 1;
        (self.window_field, self.window_field_max) = (0, 0);
        self.duplicate_len = 0;
        self.rtt = Rtt::default();
        self.rack = Rack::default();
        self.recovery = Recovery::new(iss);
        self.sent_at = Stamp::of(now).coarse();
        self.ts_recent = 0;
        self.ts_offset = self.local.secret.timestamp_offset(&flow);
        self.mss = self.local.config.mss.max(MSS_MIN);
        self.rcv_mss = 1;
        (self.challenges, self.retries, self.backoff) = (0, 0, 0);
        self.counters = Counters::default();
        self.congestion.started();
        self.window = Window {
            cwnd: u32::from(self.mss),
            ssthresh: u32::MAX,
            acked: 0,
        };
        Ok(())
    }

    /// What a peer takes that has not said otherwise (RFC 9293 3.7.1).
    pub(super) fn default_mss(&self) -> u32 {
        match self.remote.address() {
            core::net::IpAddr::V4(_) => 536,
            core::net::IpAddr::V6(_) => 1220,
        }
    }

    /// The smallest shift with which the whole receive buffer can be offered (RFC 7323 2.3).
    pub(super) fn scale_wanted(&self) -> u8 {
        let fits = |shift: &u8| self.receive.capacity() >> shift <= u32::from(u16::MAX);
        (0..=14).find(fits).unwrap_or(14)
    }

    /// Takes in the peer's SYN: its sequence number, and what its options offer.
    pub(super) fn synchronise(&mut self, now: Instant, syn: &Segment<'_>) {
        let options: &Options = &syn.options;
        self.rcv_nxt = syn.seq + 1;
        self.rcv_adv = self.rcv_nxt;
        self.last_ack = self.rcv_nxt;
        self.snd_wl1 = syn.seq;
        let peer = options.mss.unwrap_or(self.default_mss() as u16);
        self.mss = peer.min(self.local.config.mss).max(MSS_MIN);
        if self.local.config.sack && options.sack_permitted {
            self.bits.set(bits::SACK);
        }
        if let (true, Some(timestamps)) = (self.local.config.timestamps, options.timestamps) {
            self.bits.set(bits::TIMESTAMPS);
            self.note_timestamp(now, timestamps.value);
        }
        if let (true, Some(shift)) = (self.local.config.window_scale, options.window_scale) {
            self.bits.set(bits::WINDOW_SCALE);
            self.bits.set_number(bits::SCALE, shift);
        }
        // The window of a SYN is not scaled (RFC 7323 2.2).
        self.note_window(syn.window >> self.bits.number(bits::SCALE));
        self.negotiate_ecn(syn);
    }

    /// The shift of the windows we send, once agreed.
    pub(super) fn rcv_scale(&self) -> u8 {
        match self.bits.has(bits::WINDOW_SCALE) {
            true => self.scale_wanted(),
            false => 0,
        }
    }

    pub(super) fn note_window(&mut self, field: u16) {
        self.window_field = field;
        self.window_field_max = self.window_field_max.max(field);
    }

    /// SND.WND: the peer's window, octets.
    pub(super) fn snd_wnd(&self) -> u32 {
        u32::from(self.window_field) << self.bits.number(bits::SCALE)
    }

    /// The largest window the peer ever offered, octets.
    pub(super) fn snd_wnd_max(&self) -> u32 {
        u32::from(self.window_field_max) << self.bits.number(bits::SCALE)
    }

    /// What arrived twice and is still to be reported; empty if nothing.
    pub(super) fn duplicate(&self) -> Range {
        Range::new(
            self.duplicate,
            self.duplicate + u32::from(self.duplicate_len),
        )
    }

    pub(super) fn report_duplicate(&mut self, range: Range) {
        self.duplicate = range.start;
        self.duplicate_len = range.len().min(u32::from(u16::MAX)) as u16;
    }

    pub(super) fn note_timestamp(&mut self, now: Instant, value: u32) {
        self.ts_recent = value;
        self.ts_recent_at = super::clock::coarse_clock(now);
    }

    /// The connection stands: the window of RFC 5681 3.1, one segment if the SYN was lost.
    pub(super) fn establish(&mut self) {
        self.state = State::Established;
        if self.bits.has(bits::FIN_QUEUED) {
            self.state = State::FinWait1;
        }
        let lost = self.bits.has(bits::SYN_RETRANSMITTED);
        let mss = self.segment_size();
        self.window.cwnd = if lost { mss } else { self.initial_window() };
        if let Some(window) = self.congestion.initial_window() {
            self.window.cwnd = window;
        }
        self.backoff = 0;
        self.retries = 0;
    }

    /// The initial window: what the configuration says, or two to four segments (RFC 5681 3.1).
    pub(super) fn initial_window(&self) -> u32 {
        let mss = self.segment_size();
        match (self.local.config.initial_window, mss) {
            (0, 2191..) => mss * 2,
            (0, 1096..) => mss * 3,
            (0, _) => mss * 4,
            (segments, _) => mss * u32::from(segments),
        }
    }

    /// SMSS: the payload of a full segment without SACK blocks, octets.
    pub(super) fn segment_size(&self) -> u32 {
        let timestamps = if self.bits.has(bits::TIMESTAMPS) {
            12
        } else {
            0
        };
        u32::from(self.mss).saturating_sub(timestamps)
    }

    /// The timestamp to put on a segment sent now.
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        timestamp_clock(now).wrapping_add(self.ts_offset)
    }

    /// Writes as much of `data` into the send buffer as fits and returns how much: 0 after a close.
    pub fn write(&mut self, data: &[u8]) -> usize {
        match self.may_write() {
            true => self.send.write(data),
            false => 0,
        }
    }

    /// The free part of the send buffer, to be filled in place and then [`commit`](Self::commit)ted.
    pub fn vacant(&mut self) -> (&mut [u8], &mut [u8]) {
        match self.may_write() {
            true => self.send.vacant(),
            false => (&mut [], &mut []),
        }
    }

    /// Hands over the first `octets` of [`vacant`](Self::vacant).
    pub fn commit(&mut self, octets: usize) {
        if self.may_write() {
            self.send.commit(octets.min(1 << 30) as u32);
        }
    }

    /// Whether the application may still write: the connection is open, or opening, and was not closed here.
    pub fn may_write(&self) -> bool {
        self.state.can_send() && !self.bits.has(bits::FIN_QUEUED)
    }

    /// Octets that can be written now.
    pub fn writable(&self) -> usize {
        match self.may_write() {
            true => self.send.free() as usize,
            false => 0,
        }
    }

    /// Octets written and not yet acknowledged by the peer.
    pub fn unacknowledged(&self) -> usize {
        self.send.len() as usize
    }

    /// Reads what has arrived in order and returns how much. May cause a window update: poll afterwards.
    pub fn read(&mut self, data: &mut [u8]) -> usize {
        let len = self.receive.read(data);
        self.offer_window();
        len
    }

    /// What can be read, in place, in two parts; [`consume`](Self::consume) it when done.
    pub fn readable(&self) -> (&[u8], &[u8]) {
        self.receive.readable()
    }

    /// Gives back the first `octets` of [`readable`](Self::readable).
    pub fn consume(&mut self, octets: usize) {
        self.receive.consume(octets.min(1 << 30) as u32);
        self.offer_window();
    }

    /// Whether the peer has closed and all its data has been read.
    pub fn at_end(&self) -> bool {
        let closed =
            !matches!(self.state, State::SynSent | State::SynReceived) && !self.state.can_receive();
        closed && self.receive.ready() == 0
    }

    /// Closes this end's direction only: what was written is sent, then a FIN. Reading goes on.
    pub fn shutdown(&mut self) {
        match self.state {
            State::SynSent => self.end(None),
            State::SynReceived => self.bits.set(bits::FIN_QUEUED),
            State::Established => self.queue_fin(State::FinWait1),
            State::CloseWait => self.queue_fin(State::LastAck),
            _ => {}
        }
    }

    /// Closes the connection for good: what was written is sent, then a FIN; nothing more is read. With data unread,
    /// or if more data comes, the peer gets a reset, so that it knows of the loss (RFC 9293 3.6.1).
    pub fn close(&mut self, now: Instant) {
        if self.receive.ready() > 0 && self.state != State::Closed {
            self.abort();
            return;
        }
        self.shutdown();
        self.bits.set(bits::DEAF);
        if self.state == State::FinWait2 && !self.timers.runs(Timer::Linger) {
            self.timers
                .start(Timer::Linger, now + self.local.config.fin_wait_2);
        }
    }

    fn queue_fin(&mut self, state: State) {
        self.bits.set(bits::FIN_QUEUED);
        self.state = state;
    }

    /// Ends the connection at once; the peer gets a reset.
    pub fn abort(&mut self) {
        let silent = matches!(self.state, State::Closed | State::SynSent | State::TimeWait);
        if self.state != State::Closed {
            self.end(Some(Failure::Aborted));
        }
        if !silent {
            self.bits.set(bits::RST_NOW);
        }
    }

    /// Enters CLOSED. What has arrived can still be read.
    pub(super) fn end(&mut self, failure: Option<Failure>) {
        self.state = State::Closed;
        let code = failure.map_or(0, |failure| failure as u8);
        self.bits.set_number(bits::FAILURE, code);
        self.timers.stop_all();
        self.bits.clear(bits::PENDING);
        self.send.clear();
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if not by both ends closing it.
    pub fn failure(&self) -> Option<Failure> {
        let code = self.bits.number(bits::FAILURE);
        Failure::ALL
            .into_iter()
            .find(|failure| *failure as u8 == code)
    }

    /// The connection's four-tuple.
    pub fn flow(&self) -> Flow {
        Flow::new(Endpoint::new(self.local.address, self.port), self.remote)
    }

    /// Whether an answer of the peer is due: a SYN, data or a FIN is not acknowledged, or a window probe is out.
    /// A radio that sleeps should ask for frames more often while this holds.
    pub fn awaits_answer(&self) -> bool {
        self.state != State::Closed && (!self.flight.is_empty() || self.timers.runs(Timer::Persist))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and why.
    pub fn poll_timeout(&self) -> Option<Wake> {
        self.timers.next()
    }
}

/// The smallest segment size that is believed: a peer that asks for less makes us send headers (CVE-2019-11479);
/// 40 octets of options must leave room for data. 48 as in Linux (`TCP_MIN_SND_MSS`), so that a segment may be one frame
/// of 802.15.4 with IPv6 addresses in line.
pub const MSS_MIN: u16 = 48;

/// The goal for microcontrollers: 256 octets a connection, without the lent memory.
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<Socket<'static, NewReno>>() <= 256);
