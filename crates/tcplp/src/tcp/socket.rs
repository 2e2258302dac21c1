//! A connection: its fields, and the calls of the application.

use chappe_core::{Instant, Wake};

use super::bits::{self, Bits};
use super::clock::{Stamp, stall_clock, timestamp_clock};
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

/// Why a socket cannot be made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// The send buffer, the receive buffer or the flight table has length zero.
    Empty,
    /// A buffer is larger than 2^30 octets, the largest window (RFC 7323 2.3).
    TooLarge,
    /// The socket is in use: close it first.
    Busy,
}

/// The memory of a socket, borrowed from its owner.
#[derive(Debug)]
pub struct Memory<'a> {
    /// Send buffer: a ring of data not yet acknowledged. Three to four segments fill a low-power link.
    pub send: &'a mut [u8],
    /// Receive buffer: a ring of data not yet read and of data out of order. Its free part is the window offered.
    pub receive: &'a mut [u8],
    /// Out-of-order ranges, one for each hole, 8 octets each. Without any, data out of order is dropped.
    pub ranges: &'a mut [Range],
    /// Segments in flight, 12 octets each: as many as the windows and the send buffer allow.
    pub flight: &'a mut [Sent],
}

/// One TCP connection, without I/O.
///
/// Methods are of four kinds: **getters**; **commands** of the application ([`connect`](Self::connect),
/// [`write`](Self::write), [`read`](Self::read), [`close`](Self::close) ..); **`handle_*`** for incoming segments and
/// expired deadlines; **`poll_*`** for output. After each command and each `handle_*`, call
/// [`poll_segment`](Self::poll_segment) until it returns `None`, then read [`poll_timeout`](Self::poll_timeout).
/// Calling [`handle_timeout`](Self::handle_timeout) early changes nothing.
#[derive(Debug)]
#[repr(C)]
pub struct Socket<'a, C: Congestion = NewReno> {
    pub(super) bits: Bits,
    pub(super) state: State,
    /// Consecutive timeouts or probes without an answer.
    pub(super) retries: u8,
    /// Timeouts since the last progress: each doubles the next. Progress ends the back-off. (RFC 6298 5.7 would keep
    /// it until a new sample; on a lossy link that may never come, and the timeout would stay at its maximum.)
    pub(super) backoff: u8,
    pub(super) timers: Timers,
    pub(super) local: &'a Local,
    /// The smaller of the peer's MSS and ours, in octets of payload and options.
    pub(super) mss: u16,
    /// The largest payload received: the estimate of the peer's SMSS, by which delayed ACKs count segments.
    pub(super) rcv_mss: u16,
    /// SND.WND and the largest window ever offered (MAX.SND.WND), as in the header: not scaled.
    pub(super) window_field: u16,
    pub(super) window_field_max: u16,
    pub(super) duplicate_len: u16,
    /// Challenge ACKs: in the upper twelve bits the start of the interval, in units of 2^30 ns; in the low four the count.
    pub(super) challenges: u16,
    /// SND.NXT: the next sequence number to send. Retransmissions do not move it back.
    pub(super) snd_nxt: Seq,
    /// RCV.NXT: the next sequence number expected.
    pub(super) rcv_nxt: Seq,
    /// The right edge of the window offered: RCV.NXT + RCV.WND.
    pub(super) rcv_adv: Seq,
    /// Last.ACK.sent (RFC 7323 4.3).
    pub(super) last_ack: Seq,
    /// SND.WL1: the sequence number of the segment that last set the window. WL2 is not kept: an acknowledgement below SND.UNA never sets
    /// the window (RFC 9293 3.10.7.4), and WL2 never lies above SND.UNA.
    pub(super) snd_wl1: Seq,
    /// The segments in flight; also holds SND.UNA.
    pub(super) flight: Flight<'a>,
    pub(super) send: SendBuffer<'a>,
    pub(super) receive: Reassembly<'a>,
    pub(super) window: Window,
    /// The sequence number of the peer's FIN, while `bits::FIN_KNOWN` is set.
    pub(super) fin: Seq,
    /// Duplicate data not yet reported by a D-SACK (RFC 2883): its first octet and its length.
    pub(super) duplicate: Seq,
    /// TLP.end_seq (RFC 8985 7.1).
    pub(super) probe_end: Seq,
    /// TS.Recent and this connection's offset to the timestamp clock.
    pub(super) ts_recent: u32,
    pub(super) ts_offset: u32,
    pub(super) recovery: Recovery,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) counters: Counters,
    pub(super) congestion: C,
    /// When data was last sent, in units of 2^14 us: an idle time is known modulo 18 minutes.
    pub(super) sent_at: u16,
    /// When TS.Recent was set, in units of 2^45 ns.
    pub(super) ts_recent_at: u16,
    /// The local port; the address is in `local`.
    pub(super) port: u16,
    pub(super) remote: Endpoint,
}

/// Counts one event more; stays at the largest number.
#[inline(never)]
pub(super) fn count(counter: &mut u16) {
    *counter = counter.saturating_add(1);
}

/// Events on a connection so far. Counters saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Retransmitted segments, tail loss probes included.
    pub retransmits: u16,
    /// Expired retransmission timeouts, those of the SYN included.
    pub timeouts: u16,
    /// Times that fast recovery began.
    pub recoveries: u16,
    /// Window reductions that proved spurious and were undone.
    pub undone: u16,
    /// Acknowledgements that carried a D-SACK.
    pub duplicates: u16,
    /// Segments dropped as old, out of window or otherwise unacceptable.
    pub dropped: u16,
}

impl<'a, C: Congestion> Socket<'a, C> {
    /// A socket in CLOSED. Allocates nothing: `memory` stays borrowed until [`release`](Self::release).
    pub fn new(local: &'a Local, memory: Memory<'a>, congestion: C) -> Result<Self, SocketError> {
        let lens = [memory.send.len(), memory.receive.len()];
        if lens.contains(&0) || memory.flight.is_empty() {
            return Err(SocketError::Empty);
        }
        if lens.iter().any(|&len| len > 1 << 30) || memory.flight.len() > usize::from(u16::MAX) {
            return Err(SocketError::TooLarge);
        }
        Ok(Socket::closed(local, memory, congestion))
    }

    /// Everything as before a connection.
    #[inline(never)]
    fn closed(local: &'a Local, memory: Memory<'a>, congestion: C) -> Self {
        let zero = Seq::default();
        Socket {
            local,
            remote: Endpoint::NONE,
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
        }
    }

    /// Takes the memory out; what was in the buffers is lost.
    fn take_memory(&mut self) -> Memory<'a> {
        let (receive, ranges) = self.receive.take();
        Memory {
            send: self.send.take(),
            receive,
            ranges,
            flight: self.flight.take(),
        }
    }

    /// Returns the memory; what was in the buffers is lost.
    pub fn release(mut self) -> Memory<'a> {
        self.take_memory()
    }

    /// Opens a connection from `port` to `remote`: sends a SYN.
    pub fn connect(
        &mut self,
        now: Instant,
        port: u16,
        remote: Endpoint,
    ) -> Result<(), SocketError> {
        self.timers.turn(now);
        self.begin(port, remote, None)?;
        self.state = State::SynSent;
        self.bits.set(bits::SYN_NOW);
        // Offered; `synchronise` takes back what the peer does not want.
        let config = &self.local.config;
        self.bits.put(bits::SACK, config.uses_sack());
        self.bits.put(bits::TIMESTAMPS, config.uses_timestamps());
        self.bits
            .put(bits::WINDOW_SCALE, config.uses_window_scale());
        Ok(())
    }

    /// Answers a SYN of `remote` that a [`Listener`](super::Listener) accepted.
    pub fn accept(
        &mut self,
        now: Instant,
        remote: Endpoint,
        syn: &Segment<'_>,
    ) -> Result<(), SocketError> {
        self.timers.turn(now);
        self.begin(syn.destination_port, remote, None)?;
        self.state = State::SynReceived;
        self.bits.set(bits::SYN_NOW | bits::PASSIVE);
        self.synchronise(syn);
        Ok(())
    }

    /// Resets everything for a new connection, with this initial sequence number or one by the clock (RFC 6528).
    pub(super) fn begin(
        &mut self,
        port: u16,
        remote: Endpoint,
        iss: Option<Seq>,
    ) -> Result<(), SocketError> {
        if self.state != State::Closed {
            return Err(SocketError::Busy);
        }
        let now = self.now();
        let (memory, congestion) = (self.take_memory(), core::mem::take(&mut self.congestion));
        *self = Socket::closed(self.local, memory, congestion);
        self.timers.turn(now);
        (self.port, self.remote) = (port, remote);
        let flow = self.flow();
        let secret = &self.local.secret;
        self.ts_offset = secret.timestamp_offset(&flow);
        let iss = iss.unwrap_or_else(|| secret.initial_sequence_number(now, &flow));
        self.flight.restart(iss);
        // The SYN is the first entry of the flight: it occupies one sequence number and is retransmitted like data.
        self.flight.push(iss + 1, self.stamp());
        self.snd_nxt = iss + 1;
        self.recovery = Recovery::new(iss);
        self.sent_at = self.stamp().coarse();
        // Ours, until the peer's option is known.
        self.mss = self.local.config.mss.max(MSS_MIN);
        self.rcv_mss = 1;
        self.flight.stalled_at = stall_clock(now);
        self.congestion.started();
        self.window.cwnd = u32::from(self.mss);
        Ok(())
    }

    /// The smallest shift with which the whole receive buffer can be offered (RFC 7323 2.3).
    pub(super) fn scale_wanted(&self) -> u8 {
        let fits = |shift: &u8| self.receive.capacity() >> shift <= u32::from(u16::MAX);
        (0..=14).find(fits).unwrap_or(14)
    }

    /// Processes the peer's SYN: its sequence number (IRS), and the options it offers.
    pub(super) fn synchronise(&mut self, syn: &Segment<'_>) {
        let options: &Options = &syn.options;
        self.rcv_nxt = syn.seq + 1;
        self.rcv_adv = self.rcv_nxt;
        self.last_ack = self.rcv_nxt;
        self.snd_wl1 = syn.seq;
        let peer = options.mss.unwrap_or(default_mss(&self.remote));
        self.mss = peer.min(self.local.config.mss).max(MSS_MIN);
        let config = &self.local.config;
        let sack = config.uses_sack() && options.sack_permitted;
        self.bits.put(bits::SACK, sack);
        let timestamps = options.timestamps.filter(|_| config.uses_timestamps());
        self.bits.put(bits::TIMESTAMPS, timestamps.is_some());
        let shift = options.window_scale.filter(|_| config.uses_window_scale());
        self.bits.put(bits::WINDOW_SCALE, shift.is_some());
        self.bits.set_number(bits::SCALE, shift.unwrap_or(0));
        if let Some(timestamps) = timestamps {
            self.note_timestamp(timestamps.value);
        }
        // The window of a SYN is not scaled (RFC 7323 2.2).
        self.note_window(syn.window >> self.bits.number(bits::SCALE));
        self.negotiate_ecn(syn);
    }

    /// Rcv.Wind.Shift (RFC 7323 2.3): the shift of the windows we send, 0 unless both ends agreed.
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

    /// MAX.SND.WND (RFC 5961 5.2): the largest window the peer ever offered, octets.
    pub(super) fn snd_wnd_max(&self) -> u32 {
        u32::from(self.window_field_max) << self.bits.number(bits::SCALE)
    }

    /// The duplicate data not yet reported; empty if there is none.
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

    pub(super) fn note_timestamp(&mut self, value: u32) {
        self.ts_recent = value;
        self.ts_recent_at = super::clock::coarse_clock(self.now());
    }

    /// Enters ESTABLISHED with the initial window of RFC 5681 3.1: one segment if the SYN was retransmitted.
    pub(super) fn establish(&mut self) {
        self.state = State::Established;
        // The application closed in SYN-RECEIVED (RFC 9293 3.10.4).
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
        self.flight.stalled_at = 0;
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
    #[inline(never)]
    pub(super) fn segment_size(&self) -> u32 {
        let timestamps = if self.bits.has(bits::TIMESTAMPS) {
            12
        } else {
            0
        };
        u32::from(self.mss).saturating_sub(timestamps)
    }

    /// The time of the call that is being processed.
    pub(super) fn now(&self) -> Instant {
        self.timers.now()
    }

    /// The same in microseconds.
    #[inline(never)]
    pub(super) fn stamp(&self) -> Stamp {
        Stamp::of(self.now())
    }

    /// TSval of a segment sent now.
    pub(super) fn timestamp(&self) -> u32 {
        timestamp_clock(self.now()).wrapping_add(self.ts_offset)
    }

    /// Copies as much of `data` into the send buffer as fits and returns the number of octets: 0 after a close.
    pub fn write(&mut self, data: &[u8]) -> usize {
        match self.may_write() {
            true => self.send.write(data),
            false => 0,
        }
    }

    /// The free part of the send buffer, to be filled in place and then passed on by [`commit`](Self::commit).
    pub fn vacant(&mut self) -> (&mut [u8], &mut [u8]) {
        match self.may_write() {
            true => self.send.vacant(),
            false => (&mut [], &mut []),
        }
    }

    /// Declares the first `octets` of [`vacant`](Self::vacant) as written.
    pub fn commit(&mut self, octets: usize) {
        if self.may_write() {
            self.send.commit(octets.min(1 << 30) as u32);
        }
    }

    /// Whether the application may still write: the connection is open or opening, and this end has not closed.
    pub fn may_write(&self) -> bool {
        self.state.can_send() && !self.bits.has(bits::FIN_QUEUED)
    }

    /// Octets that [`write`](Self::write) would take now.
    pub fn writable(&self) -> usize {
        match self.may_write() {
            true => self.send.free() as usize,
            false => 0,
        }
    }

    /// Octets written and not yet acknowledged by the peer, sent or not.
    pub fn unacknowledged(&self) -> usize {
        self.send.len() as usize
    }

    /// Reads data that arrived in order and returns the number of octets. May cause a window update: poll afterwards.
    pub fn read(&mut self, data: &mut [u8]) -> usize {
        let len = self.receive.read(data);
        self.offer_window();
        len
    }

    /// The data that can be read, in place, in two parts; [`consume`](Self::consume) it when done.
    pub fn readable(&self) -> (&[u8], &[u8]) {
        self.receive.readable()
    }

    /// Frees the first `octets` of [`readable`](Self::readable). May cause a window update: poll afterwards.
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

    /// Half-close: sends what was written, then a FIN. Reading goes on.
    pub fn shutdown(&mut self) {
        match self.state {
            State::SynSent => self.end(None),
            State::SynReceived => self.bits.set(bits::FIN_QUEUED),
            State::Established => self.queue_fin(State::FinWait1),
            State::CloseWait => self.queue_fin(State::LastAck),
            _ => {}
        }
    }

    /// Closes both directions: sends what was written, then a FIN; nothing more is read. With data unread, or if more data
    /// arrives, the peer gets a reset, so that it learns of the loss (RFC 9293 3.6.1).
    pub fn close(&mut self, now: Instant) {
        self.timers.turn(now);
        // RFC 2525 2.17: a FIN would pretend that all data was read.
        if self.receive.ready() > 0 && self.state != State::Closed {
            self.abort();
            return;
        }
        self.shutdown();
        self.bits.set(bits::READ_CLOSED);
        // Without a reader, FIN-WAIT-2 must not last forever.
        if self.state == State::FinWait2 && !self.timers.runs(Timer::TimeWait) {
            self.timers
                .start(Timer::TimeWait, self.local.config.fin_wait_2);
        }
    }

    fn queue_fin(&mut self, state: State) {
        self.bits.set(bits::FIN_QUEUED);
        self.state = state;
    }

    /// ABORT (RFC 9293 3.10.5): ends the connection at once; the peer gets a reset.
    pub fn abort(&mut self) {
        // RFC 9293 3.10.5: in these states the peer gets no reset.
        let silent = matches!(self.state, State::Closed | State::SynSent | State::TimeWait);
        if self.state != State::Closed {
            self.end(Some(Failure::Aborted));
        }
        if !silent {
            self.bits.set(bits::RST_NOW);
        }
    }

    /// Enters CLOSED. Data that arrived can still be read.
    pub(super) fn end(&mut self, failure: Option<Failure>) {
        self.state = State::Closed;
        let code = failure.map_or(0, |failure| failure as u8);
        self.bits.set_number(bits::FAILURE, code);
        self.timers.stop_all();
        self.bits.clear(bits::PENDING);
        self.send.clear();
    }

    /// The state of RFC 9293 3.3.2.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended; `None` if both ends closed it.
    pub fn failure(&self) -> Option<Failure> {
        // Codes begin at 1.
        let code = usize::from(self.bits.number(bits::FAILURE));
        Failure::ALL.get(code.wrapping_sub(1)).copied()
    }

    /// The four-tuple of the connection, or of the last one.
    pub fn flow(&self) -> Flow {
        Flow::new(Endpoint::new(self.local.address, self.port), self.remote)
    }

    /// Whether the peer owes an answer: a SYN, data or a FIN is not acknowledged, or the window is being probed. A sleepy
    /// radio should poll its parent more often meanwhile.
    pub fn awaits_answer(&self) -> bool {
        self.state != State::Closed && (!self.flight.is_empty() || self.timers.runs(Timer::Persist))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and for which timer.
    pub fn poll_timeout(&self) -> Option<Wake> {
        self.timers.next()
    }
}

/// The MSS of a peer that sent no MSS option (RFC 9293 3.7.1).
pub(super) fn default_mss(remote: &Endpoint) -> u16 {
    if remote.is_v4() { 536 } else { 1220 }
}

/// The smallest MSS that is accepted from a peer: with a smaller one we would send mostly headers (CVE-2019-11479), and 40
/// octets of options must leave room for data. 48 as in Linux (`TCP_MIN_SND_MSS`), so that a segment may be one frame of
/// 802.15.4 with IPv6 addresses in line.
pub const MSS_MIN: u16 = 48;

/// The goal for microcontrollers: 256 octets a connection, without the lent memory.
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<Socket<'static, NewReno>>() <= 256);
