//! Incoming segments: RFC 9293 3.10.7 in its order, with RFC 5961 (blind attacks) and RFC 7323 (PAWS).
//!
//! ```text
//! handle_segment -> PAWS, window  unacceptable: answer with an ACK, drop
//!                -> RST, SYN      exact sequence number or a challenge ACK
//!                -> ACK           `ack`
//!                -> data, FIN     `handle_text`
//! ```

use chappe_core::Instant;

use super::clock::coarse_clock;
use super::congestion::Congestion;
use super::segment::{Flags, Segment};
use super::socket::Socket;
use super::state::{Failure, State};
use super::timers::Timer;
use super::{Range, Seq, bits};

/// The two ECN bits of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// 00, Not-ECT: the transport does not use ECN.
    #[default]
    NotCapable,
    /// 01, ECT(1): ECN-capable, unused by classic senders.
    Capable1,
    /// 10, ECT(0): the code point that senders use.
    Capable0,
    /// 11, CE: a router marked the packet as having met congestion.
    Marked,
}

impl Ecn {
    /// Reads the low two bits of the IPv4 TOS octet or the IPv6 traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// The two bits, to be put into the IP header.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotCapable => 0,
            Ecn::Capable1 => 1,
            Ecn::Capable0 => 2,
            Ecn::Marked => 3,
        }
    }
}

/// What the driver has to do after it handed in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: the socket has processed it.
    Done,
    /// Answer with [`Segment::reset`]: the segment belongs to no connection of this socket.
    Refuse,
    /// The socket was in TIME-WAIT and is closed now. The segment is a SYN for a new connection with the same four-tuple
    /// (RFC 9293 3.6.1, RFC 6191): hand it to a listener.
    Reopen,
}

/// Units of [`coarse_clock`] after which TS.Recent is no longer believed (RFC 7323 5.5): more than 24 days are 59 units of
/// 9.8 hours, and 60 are still less than the 24.8 days in which a clock of 1 ms wraps its sign bit.
const TIMESTAMP_STALE: u16 = 59;

impl<C: Congestion> Socket<'_, C> {
    /// Processes a segment of this connection, which arrived in a packet with these ECN bits.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> Verdict {
        self.timers.turn(now);
        match self.state {
            State::Closed => return Verdict::Refuse,
            State::SynSent => return self.in_syn_sent(segment),
            _ => {}
        }
        if self.answers_simultaneous_open(segment) && self.timestamp_acceptable(segment) {
            return self.handle_acknowledged(segment, segment.seq + 1, ecn);
        }
        if self.state == State::TimeWait && self.is_new_incarnation(segment) {
            self.end(None);
            return Verdict::Reopen;
        }
        // PAWS goes before the window test (RFC 7323 5.3 R1): an old duplicate may lie in the present window.
        let fresh = self.timestamp_acceptable(segment);
        if !fresh || !self.in_window(segment) {
            if fresh {
                self.echo_duplicate(segment);
            }
            return self.unacceptable(segment);
        }
        if segment.flags.has(Flags::RST) {
            self.handle_reset(segment);
            return Verdict::Done;
        }
        if segment.flags.has(Flags::SYN) {
            // RFC 5961 4.2: never a reset, whatever the sequence number.
            self.drop_segment();
            self.challenge();
            return Verdict::Done;
        }
        if !segment.flags.has(Flags::ACK) {
            self.drop_segment();
            return Verdict::Done;
        }
        self.handle_acknowledged(segment, segment.seq, ecn)
    }

    /// A segment that passed all tests but that of its acknowledgement; its text begins at `seq`.
    fn handle_acknowledged(&mut self, segment: &Segment<'_>, seq: Seq, ecn: Ecn) -> Verdict {
        if self.state == State::SynReceived {
            if !segment.ack.after(self.flight.una()) || segment.ack.after(self.snd_nxt) {
                return Verdict::Refuse;
            }
            self.take_timestamp(segment);
            self.restart_keep_alive();
            self.note_window(segment.window);
            self.snd_wl1 = seq;
            self.syn_acknowledged(segment);
            self.establish();
        } else if !self.ack_acceptable(segment.ack) {
            self.challenge();
            self.drop_segment();
            return Verdict::Done;
        } else {
            self.take_timestamp(segment);
            self.restart_keep_alive();
            self.handle_ack(segment);
            if self.state == State::Closed {
                return Verdict::Done;
            }
        }
        self.note_marks(segment, ecn);
        self.handle_text(segment, seq);
        Verdict::Done
    }

    /// A segment in SYN-SENT (RFC 9293 3.10.7.3): ACK first, then RST, then SYN.
    fn in_syn_sent(&mut self, segment: &Segment<'_>) -> Verdict {
        let flags = segment.flags;
        let acks = flags.has(Flags::ACK);
        let ours = segment.ack.after(self.flight.una()) && segment.ack.at_or_before(self.snd_nxt);
        if acks && !ours {
            return match flags.has(Flags::RST) {
                true => Verdict::Done,
                false => Verdict::Refuse,
            };
        }
        if flags.has(Flags::RST) {
            if acks {
                self.end(Some(Failure::Refused));
            }
            return Verdict::Done;
        }
        if !flags.has(Flags::SYN) {
            self.drop_segment();
            return Verdict::Done;
        }
        self.synchronise(segment);
        self.restart_keep_alive();
        if !acks {
            // Simultaneous open: both ends have sent a SYN. The peer will retransmit whatever else this segment holds.
            self.state = State::SynReceived;
            self.bits.set(bits::SYN_NOW);
            return Verdict::Done;
        }
        self.syn_acknowledged(segment);
        self.establish();
        self.bits.set(bits::ACK_NOW);
        self.handle_text(segment, segment.seq + 1);
        Verdict::Done
    }

    /// In SYN-RECEIVED after a simultaneous open, the peer's SYN-ACK repeats its SYN: it counts as an ACK.
    fn answers_simultaneous_open(&self, segment: &Segment<'_>) -> bool {
        self.state == State::SynReceived
            && segment.flags.has(Flags::SYN | Flags::ACK)
            && !segment.flags.has(Flags::RST)
            && segment.seq + 1 == self.rcv_nxt
            && segment.ack == self.snd_nxt
    }

    /// A SYN in TIME-WAIT that must belong to a new connection: its sequence number lies beyond RCV.NXT, or its timestamp
    /// is newer (RFC 6191 2).
    fn is_new_incarnation(&self, segment: &Segment<'_>) -> bool {
        let newer = match (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps) {
            (true, Some(timestamps)) => wraps_before(self.ts_recent, timestamps.value),
            _ => false,
        };
        segment.flags.without(Flags::ECE | Flags::CWR) == Flags::SYN
            && (newer || segment.seq.after(self.rcv_nxt))
    }

    /// PAWS (RFC 7323 5.3): a timestamp older than TS.Recent marks an old duplicate, unless the connection was idle for so
    /// long that the peer's clock may have wrapped (5.5). A segment without the option is dropped (3.2); resets are exempt.
    fn timestamp_acceptable(&self, segment: &Segment<'_>) -> bool {
        if !self.bits.has(bits::TIMESTAMPS) || segment.flags.has(Flags::RST) {
            return true;
        }
        let idle = coarse_clock(self.now()).wrapping_sub(self.ts_recent_at);
        match segment.options.timestamps {
            Some(timestamps) => {
                !wraps_before(timestamps.value, self.ts_recent) || idle > TIMESTAMP_STALE
            }
            None => false,
        }
    }

    /// TS.Recent takes the timestamp of a segment that is not beyond the last acknowledgement (RFC 7323 4.3 (2)): with delayed
    /// ACKs the oldest unacknowledged segment sets it.
    ///
    /// The caller has judged RST, SYN and the ACK. RFC 7323 5.3 has this step (R3) before those of RFC 9293 3.10.7.4, but a
    /// segment that they discard changes nothing then but TS.Recent, and PAWS would drop all further ones of the peer.
    /// RFC 7323 5.2 forbids it for resets; RFC 5961 5.2 discards a segment with an unacceptable ACK as a whole.
    fn take_timestamp(&mut self, segment: &Segment<'_>) {
        if let (true, Some(timestamps)) =
            (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps)
            && segment.seq.at_or_before(self.last_ack)
        {
            self.note_timestamp(timestamps.value);
        }
    }

    /// The acceptability test of RFC 9293 3.10.7.4. With a zero window a segment at RCV.NXT is still accepted, for its ACK,
    /// RST or FIN; `cut_to_window` drops its data.
    fn in_window(&self, segment: &Segment<'_>) -> bool {
        let (len, window) = (segment.sequence_len(), self.receive_window());
        let edge = self.rcv_nxt + window;
        if segment.seq == self.rcv_nxt {
            return true;
        }
        let starts = segment.seq.after(self.rcv_nxt) && segment.seq.before(edge);
        let last = segment.seq + len.wrapping_sub(1);
        let ends = len > 0 && last.at_or_after(self.rcv_nxt) && segment.seq.before(self.rcv_nxt);
        starts || ends && window > 0
    }

    /// RCV.WND: the free part of the buffer, and never less than what was offered.
    pub(super) fn receive_window(&self) -> u32 {
        let offered = self.rcv_adv.saturating_since(self.rcv_nxt);
        self.receive.free().max(offered)
    }

    /// Whether a segment out of the window has at least an acceptable acknowledgement, so that it is likely the peer's.
    fn genuine(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.flags;
        flags.has(Flags::ACK)
            && !flags.has(Flags::SYN)
            && !flags.has(Flags::RST)
            && self.state != State::SynReceived
            && self.ack_acceptable(segment.ack)
    }

    /// Duplicate data arrived: the acknowledgement that answers it echoes the duplicate's timestamp, not that of the first
    /// copy. RFC 7323 4.3 asks for this, although 5.3 would drop the segment first (R2 before R3).
    ///
    /// It matters when acknowledgements are lost. Each echo of the first copy gives the sender a round-trip sample as long
    /// as its timeout: at one loss in five, the timeout of Linux on a path of 10 ms grows to 20 s. An attacker must still
    /// hit a window of sequence numbers and one of acknowledgement numbers, as for any segment.
    fn echo_duplicate(&mut self, segment: &Segment<'_>) {
        let old = self.rcv_nxt.saturating_since(segment.seq);
        if self.genuine(segment)
            && !segment.payload.is_empty()
            && (1..=self.receive.capacity()).contains(&old)
        {
            self.take_timestamp(segment);
        }
    }

    /// A segment that is old, out of the window, or has an old timestamp is dropped, and answered by an acknowledgement of
    /// RCV.NXT (RFC 9293 3.10.7.4, first).
    fn unacceptable(&mut self, segment: &Segment<'_>) -> Verdict {
        self.drop_segment();
        if segment.flags.has(Flags::RST) {
            return Verdict::Done;
        }
        if self.bits.has(bits::TIMESTAMPS) && segment.options.timestamps.is_none() {
            return Verdict::Done;
        }
        let syn_again = segment.flags.has(Flags::SYN) && segment.seq == self.snd_wl1;
        if self.state == State::SynReceived && syn_again {
            // Our SYN-ACK was lost or late: the peer retransmitted its SYN.
            if self.spend_challenge() {
                self.bits.set(bits::SYN_NOW | bits::SYN_RETRANSMITTED);
            }
            return Verdict::Done;
        }
        // A retransmission must be answered each time, or the peer retransmits until it gives up. An empty segment may be
        // part of an ACK storm, so its answers are rate-limited. So are those to segments that a blind attacker can make:
        // a quarter of all sequence numbers count as old data.
        let genuine = self.genuine(segment);
        if genuine {
            self.note_duplicate(segment);
        }
        if genuine && segment.sequence_len() > 0 {
            self.bits.set(bits::ACK_NOW);
        } else {
            self.challenge();
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.timers
                .start(Timer::TimeWait, self.local.config.time_wait);
        }
        Verdict::Done
    }

    /// Records duplicate data for a D-SACK (RFC 2883 4).
    fn note_duplicate(&mut self, segment: &Segment<'_>) {
        let end = segment.seq + segment.payload.len() as u32;
        let old = Range::new(segment.seq, end.earlier(self.rcv_nxt));
        // Sequence numbers wrap: only within the largest window below RCV.NXT is data certain to be old.
        let sure = self.rcv_nxt.since(old.start) <= WINDOW_MAX;
        if cfg!(feature = "sack") && !old.is_empty() && sure {
            self.report_duplicate(old);
        }
    }

    /// RFC 5961 3.2: only a reset at exactly RCV.NXT is accepted; others in the window get a challenge ACK.
    fn handle_reset(&mut self, segment: &Segment<'_>) {
        if segment.seq != self.rcv_nxt {
            self.drop_segment();
            self.challenge();
            return;
        }
        match self.state {
            // RFC 1337: a reset must not end TIME-WAIT early.
            State::TimeWait => self.drop_segment(),
            State::SynReceived => self.end(Some(Failure::Refused)),
            State::Closing | State::LastAck => self.end(None),
            _ => self.end(Some(Failure::Reset)),
        }
    }

    /// RFC 5961 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
    fn ack_acceptable(&self, ack: Seq) -> bool {
        // The octet of a window probe lies beyond SND.NXT and may be acknowledged.
        let probed = u32::from(self.bits.has(bits::PROBED_WINDOW));
        let oldest = self.flight.una().back(self.snd_wnd_max());
        ack.at_or_before(self.snd_nxt + probed) && ack.at_or_after(oldest)
    }

    /// Sends a challenge ACK, unless the limit of this interval is reached (RFC 5961 7).
    pub(super) fn challenge(&mut self) {
        if self.spend_challenge() {
            self.bits.set(bits::ACK_NOW);
        }
    }

    fn spend_challenge(&mut self) -> bool {
        // Units of 2^30 ns, modulo 2^12: an interval of five units is 5.4 s.
        let tick = (self.now().nanos() >> 30) as u16 & 0xfff;
        let since = self.challenges >> 4;
        if tick.wrapping_sub(since) & 0xfff >= 5 {
            self.challenges = tick << 4;
        }
        let left = self.challenges & 0xf < u16::from(self.local.config.challenge_acks.min(15));
        self.challenges = self.challenges.wrapping_add(u16::from(left));
        left
    }

    #[inline(never)]
    pub(super) fn drop_segment(&mut self) {
        super::socket::count(&mut self.counters.dropped);
    }

    /// The peer is alive: restarts the keep-alive timer.
    fn restart_keep_alive(&mut self) {
        if let Some(keep_alive) = self.local.config.uses_keep_alive()
            && !self.timers.runs(Timer::TimeWait)
        {
            self.timers.start(Timer::KeepAlive, keep_alive.idle);
        }
    }

    /// Decides from the SYN or SYN-ACK received whether both ends use ECN (RFC 3168 6.1.1).
    pub(super) fn negotiate_ecn(&mut self, syn: &Segment<'_>) {
        let both = Flags::ECE | Flags::CWR;
        let agreed = match syn.flags.has(Flags::ACK) {
            true => {
                syn.flags.has(Flags::ECE)
                    && !syn.flags.has(Flags::CWR)
                    && self.bits.has(bits::ECN_OFFERED)
            }
            false => syn.flags.has(both),
        };
        self.bits
            .put(bits::ECN, self.local.config.uses_ecn() && agreed);
    }

    /// A CE mark is echoed on every acknowledgement until the peer reports by CWR that it has reduced (RFC 3168 6.1.3).
    fn note_marks(&mut self, segment: &Segment<'_>, ecn: Ecn) {
        if !self.bits.has(bits::ECN) {
            return;
        }
        // CWR first: a mark on the same packet is a new one.
        if segment.flags.has(Flags::CWR) && !segment.payload.is_empty() {
            self.bits.clear(bits::SEND_ECE);
        }
        if ecn == Ecn::Marked {
            self.bits.set(bits::SEND_ECE);
        }
    }

    /// The segment's data and FIN (RFC 9293 3.10.7.4, seventh and eighth), which begin at `seq`.
    fn handle_text(&mut self, segment: &Segment<'_>, seq: Seq) {
        if !self.state.can_receive() {
            return;
        }
        let (payload, start, fin) = self.cut_to_window(segment, seq);
        if !payload.is_empty() && self.bits.has(bits::READ_CLOSED) {
            self.abort();
            return;
        }
        if fin {
            self.note_fin(start + payload.len() as u32);
        }
        if !payload.is_empty() {
            let inserted = self.receive.insert(self.rcv_nxt, start, payload);
            self.rcv_nxt = self.rcv_nxt + inserted.advanced;
            // RFC 2883 4: the first duplicate part is reported. What lies below RCV.NXT precedes what is held above it.
            if cfg!(feature = "sack") && !inserted.duplicate.is_empty() && start == seq {
                self.report_duplicate(inserted.duplicate);
            }
            // RFC 5681 4.2: at once for a gap, for data that fills one, and for duplicates.
            let repeated = start != seq || !inserted.duplicate.is_empty();
            if inserted.gap || inserted.advanced == 0 || repeated {
                self.bits.set(bits::ACK_NOW);
            }
            self.delay_ack(payload.len() as u32);
        } else if segment.flags.has(Flags::FIN) || !segment.payload.is_empty() {
            self.bits.set(bits::ACK_NOW);
        }
        if self.bits.has(bits::FIN_KNOWN) && self.rcv_nxt == self.fin {
            self.take_fin();
        }
    }

    /// The part of a segment that lies in the window: its data, where that starts, and whether its FIN is in the window.
    fn cut_to_window<'s>(&mut self, segment: &Segment<'s>, seq: Seq) -> (&'s [u8], Seq, bool) {
        let old = self.rcv_nxt.saturating_since(seq);
        if old > 0 {
            self.note_duplicate(segment);
        }
        let start = seq.later(self.rcv_nxt);
        let payload = segment.payload.get(old as usize..).unwrap_or_default();
        let mut room = (self.rcv_nxt + self.receive.free()).saturating_since(start);
        if self.bits.has(bits::FIN_KNOWN) {
            room = room.min(self.fin.saturating_since(start));
        }
        let fits = payload.len().min(room as usize);
        let fin = segment.flags.has(Flags::FIN) && fits == payload.len();
        if fits < payload.len() {
            // The peer exceeded the window: it needs to learn what was accepted.
            self.bits.set(bits::ACK_NOW);
        }
        (payload.get(..fits).unwrap_or_default(), start, fin)
    }

    /// Records the sequence number of the peer's FIN, even if data before it is missing. A FIN that contradicts data already
    /// received is ignored.
    fn note_fin(&mut self, fin: Seq) {
        let beyond = |range: &Range| range.end.after(fin);
        let contradicts = fin.before(self.rcv_nxt) || self.receive.ranges().iter().any(beyond);
        if !contradicts && !self.bits.has(bits::FIN_KNOWN) {
            self.bits.set(bits::FIN_KNOWN);
            self.fin = fin;
        }
        self.bits.set(bits::ACK_NOW);
    }

    /// All data before the peer's FIN has arrived.
    fn take_fin(&mut self) {
        self.bits.clear(bits::FIN_KNOWN);
        self.rcv_nxt = self.rcv_nxt + 1;
        self.bits.set(bits::ACK_NOW);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(),
            _ => {}
        }
    }

    pub(super) fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        let ack = self.bits.has(bits::ACK_NOW);
        self.timers.stop_all();
        self.bits.clear(bits::PENDING);
        self.bits.put(bits::ACK_NOW, ack);
        self.timers
            .start(Timer::TimeWait, self.local.config.time_wait);
    }

    /// Data arrived: acknowledges at once if enough is unacknowledged, or starts the delayed-ACK timer (RFC 5681 4.2).
    fn delay_ack(&mut self, len: u32) {
        let size = u32::from(self.rcv_mss).max(len.min(u32::from(u16::MAX)));
        self.rcv_mss = size as u16;
        let due = self.rcv_nxt.since(self.last_ack);
        let enough = due >= size.saturating_mul(u32::from(self.local.config.ack_every));
        if enough || self.local.config.delayed_ack == chappe_core::Duration::ZERO {
            self.bits.set(bits::ACK_NOW);
        } else if due > 0 && !self.timers.runs(Timer::DelayedAck) {
            self.timers
                .start(Timer::DelayedAck, self.local.config.delayed_ack);
        }
    }
}

/// The largest window (RFC 7323 2.3): data further below RCV.NXT cannot be distinguished from data above it.
const WINDOW_MAX: u32 = 1 << 30;

/// Whether timestamp `a` is older than `b`, modulo 2^32.
pub(super) fn wraps_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
