//! Segments that arrive: RFC 9293 3.10.7, in its order, with RFC 5961 and RFC 7323.

use chappe_core::Instant;

use super::clock::coarse_clock;
use super::congestion::Congestion;
use super::recovery::Phase;
use super::sack::Sorted;
use super::segment::{Flags, Segment};
use super::socket::Socket;
use super::state::{Failure, State};
use super::timers::Timer;
use super::{Range, Seq, bits};

/// The two ECN bits of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// 00: the transport does not understand ECN.
    #[default]
    NotCapable,
    /// 01: capable, the second code point.
    Capable1,
    /// 10: capable; the one that senders use.
    Capable0,
    /// 11: congestion experienced.
    Marked,
}

impl Ecn {
    /// From the low two bits of the IPv4 TOS octet or the IPv6 traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotCapable => 0,
            Ecn::Capable1 => 1,
            Ecn::Capable0 => 2,
            Ecn::Marked => 3,
        }
    }
}

/// What the driver has to do about a segment it handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: the socket dealt with it.
    Done,
    /// Answer with [`Segment::reset`]: it belongs to no connection that this socket knows.
    Refuse,
    /// The socket was in TIME-WAIT and is closed now; the segment is a SYN for a new connection between the same
    /// ends (RFC 9293 3.6.1, RFC 6191): offer it to a listener.
    Reopen,
}

/// Units of 2^40 ns after which TS.Recent is no longer believed: 24 days (RFC 7323 5.5).
const TIMESTAMP_STALE: u16 = 1886;

impl<C: Congestion> Socket<'_, C> {
    /// A segment of this connection's flow arrived, with these ECN bits on its packet.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> Verdict {
        match self.state {
            State::Closed => return Verdict::Refuse,
            State::SynSent => return self.in_syn_sent(now, segment),
            _ => {}
        }
        if self.answers_simultaneous_open(segment) {
            let stripped = Segment {
                seq: segment.seq + 1,
                flags: segment.flags.without(Flags::SYN),
                ..*segment
            };
            return self.handle_synchronised(now, &stripped, ecn);
        }
        self.handle_synchronised(now, segment, ecn)
    }

    fn handle_synchronised(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> Verdict {
        if self.local.config.header_prediction && self.predicted(now, segment, ecn) {
            return Verdict::Done;
        }
        if self.state == State::TimeWait && self.is_new_incarnation(segment) {
            self.end(None);
            return Verdict::Reopen;
        }
        let fresh = self.timestamp_acceptable(now, segment);
        if !fresh || !self.in_window(segment) {
            if fresh {
                self.echo_repetition(now, segment);
            }
            return self.unacceptable(now, segment);
        }
        if let (true, Some(timestamps)) =
            (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps)
            && segment.seq.at_or_before(self.last_ack)
        {
            self.note_timestamp(now, timestamps.value);
        }
        if segment.flags.has(Flags::RST) {
            self.handle_reset(now, segment);
            return Verdict::Done;
        }
        if segment.flags.has(Flags::SYN) {
            self.challenge(now);
            return Verdict::Done;
        }
        if !segment.flags.has(Flags::ACK) {
            self.drop_segment();
            return Verdict::Done;
        }
        self.touch(now);
        self.handle_acknowledged(now, segment, ecn)
    }

    fn handle_acknowledged(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> Verdict {
        if self.state == State::SynReceived {
            if !segment.ack.after(self.flight.una()) || segment.ack.after(self.snd_nxt) {
                return Verdict::Refuse;
            }
            self.note_window(segment.window);
            self.snd_wl1 = segment.seq;
            self.syn_acknowledged(now, segment);
            self.establish();
        } else if !self.ack_acceptable(segment.ack) {
            self.challenge(now);
            self.drop_segment();
            return Verdict::Done;
        } else {
            self.handle_ack(now, segment);
            if self.state == State::Closed {
                return Verdict::Done;
            }
        }
        self.note_marks(segment, ecn);
        self.handle_text(now, segment);
        Verdict::Done
    }

    /// The short path: data flows one way, nothing is lost, nothing changes but the numbers. True if it was that.
    fn predicted(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) -> bool {
        let plain = segment.flags.without(Flags::PSH) == Flags::ACK
            && self.state == State::Established
            && segment.seq == self.rcv_nxt
            && segment.window == self.window_field
            && segment.window > 0
            && ecn != Ecn::Marked
            && segment.options.sack.as_slice().is_empty()
            && !self.timers.runs(Timer::Persist)
            && !self
                .bits
                .has(bits::FIN_KNOWN | bits::DEAF | bits::PROBED_WINDOW);
        let fresh = match (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps) {
            (true, Some(timestamps)) => !wraps_before(timestamps.value, self.ts_recent),
            (timestamps, _) => !timestamps,
        };
        if !plain || !fresh {
            return false;
        }
        let una = self.flight.una();
        let len = segment.payload.len() as u32;
        let advances = segment.ack.after(una) && segment.ack.at_or_before(self.snd_nxt);
        let only_ack = len == 0 && advances && self.recovery.phase == Phase::Open;
        let only_data = len > 0
            && segment.ack == una
            && !self.bits.has(bits::PROBED_TAIL)
            && self.receive.ranges().is_empty()
            && len <= self.receive.free();
        if !only_ack && !only_data {
            return false;
        }
        if let (true, Some(timestamps)) =
            (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps)
            && segment.seq.at_or_before(self.last_ack)
        {
            self.note_timestamp(now, timestamps.value);
        }
        self.touch(now);
        self.snd_wl1 = self.snd_wl1.later(segment.seq);
        if only_ack {
            self.digest(now, segment, segment.ack, &Sorted::default(), false);
        } else {
            self.retries = if self.flight.is_empty() {
                0
            } else {
                self.retries
            };
            let inserted = self
                .receive
                .insert(self.rcv_nxt, segment.seq, segment.payload);
            self.rcv_nxt = self.rcv_nxt + inserted.advanced;
            self.delay_ack(now, len);
        }
        true
    }

    /// RFC 9293 3.10.7.3.
    fn in_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
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
        self.synchronise(now, segment);
        self.touch(now);
        if !acks {
            // Simultaneous open: both have sent a SYN. What else the segment holds will be sent again.
            self.state = State::SynReceived;
            self.bits.set(bits::SYN_NOW);
            return Verdict::Done;
        }
        self.syn_acknowledged(now, segment);
        self.establish();
        self.bits.set(bits::ACK_NOW);
        let text = Segment {
            seq: segment.seq + 1,
            flags: flags.without(Flags::SYN),
            ..*segment
        };
        self.handle_text(now, &text);
        Verdict::Done
    }

    /// In SYN-RECEIVED after a simultaneous open, the peer's SYN-ACK repeats its SYN: it counts as an ACK.
    fn answers_simultaneous_open(&self, segment: &Segment<'_>) -> bool {
        self.state == State::SynReceived
            && segment.flags.has(Flags::SYN | Flags::ACK)
            && segment.seq + 1 == self.rcv_nxt
            && segment.ack == self.snd_nxt
    }

    /// A SYN in TIME-WAIT that must be of a new connection: beyond all that was received, or later by its timestamp.
    fn is_new_incarnation(&self, segment: &Segment<'_>) -> bool {
        let newer = match (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps) {
            (true, Some(timestamps)) => wraps_before(self.ts_recent, timestamps.value),
            _ => false,
        };
        segment.flags.without(Flags::ECE | Flags::CWR) == Flags::SYN
            && (newer || segment.seq.after(self.rcv_nxt))
    }

    /// PAWS (RFC 7323 5.3): an older timestamp than the newest one seen means an old duplicate, unless the connection
    /// was idle for so long that the peer's clock may have wrapped. A segment without the option does not belong to
    /// the connection (RFC 7323 3.2); resets are exempt.
    fn timestamp_acceptable(&self, now: Instant, segment: &Segment<'_>) -> bool {
        if !self.bits.has(bits::TIMESTAMPS) || segment.flags.has(Flags::RST) {
            return true;
        }
        let idle = coarse_clock(now).wrapping_sub(self.ts_recent_at);
        match segment.options.timestamps {
            Some(timestamps) => {
                !wraps_before(timestamps.value, self.ts_recent) || idle > TIMESTAMP_STALE
            }
            None => false,
        }
    }

    /// The acceptability test of RFC 9293 3.10.7.4. A shut window still lets in a segment that starts where it
    /// should, for the sake of its ACK, RST or FIN.
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

    /// What there is room for, which is never less than what was offered.
    pub(super) fn receive_window(&self) -> u32 {
        let offered = self.rcv_adv.saturating_since(self.rcv_nxt);
        self.receive.free().max(offered)
    }

    /// Data that is here already came once more: the acknowledgement that answers it echoes its timestamp, not that of
    /// the copy that came first. So RFC 7323 4.3 has it, where 5.3 would drop the segment before that (R2 before R3). It
    /// matters when acknowledgements are lost: each echo of the first copy tells the sender that a round trip takes as
    /// long as its timeout took, and at one loss in five the timeout of Linux, whose path takes 10 ms, grows to 20 s. A
    /// forger must hit one window's worth of numbers, as for any segment.
    fn echo_repetition(&mut self, now: Instant, segment: &Segment<'_>) {
        let old = self.rcv_nxt.saturating_since(segment.seq);
        if let (true, Some(timestamps)) =
            (self.bits.has(bits::TIMESTAMPS), segment.options.timestamps)
            && !segment.payload.is_empty()
            && (1..=self.receive.capacity()).contains(&old)
        {
            self.note_timestamp(now, timestamps.value);
        }
    }

    /// Old, out of the window, or with an old timestamp: the peer is told where we are, and what came is dropped.
    fn unacceptable(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        self.drop_segment();
        if segment.flags.has(Flags::RST) {
            return Verdict::Done;
        }
        if self.bits.has(bits::TIMESTAMPS) && segment.options.timestamps.is_none() {
            return Verdict::Done;
        }
        let syn_again = segment.flags.has(Flags::SYN) && segment.seq == self.snd_wl1;
        if self.state == State::SynReceived && syn_again {
            // The peer did not hear our SYN-ACK (or heard it late).
            if self.spend_challenge(now) {
                self.bits.set(bits::SYN_NOW | bits::SYN_RETRANSMITTED);
            }
            return Verdict::Done;
        }
        self.note_duplicate(segment);
        // A retransmission must be answered each time, or the peer repeats itself for ever; an empty segment may be
        // part of a war of acknowledgements, and is answered only so often.
        if segment.sequence_len() > 0 && !segment.flags.has(Flags::SYN) {
            self.bits.set(bits::ACK_NOW);
        } else {
            self.challenge(now);
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.timers
                .start(Timer::Linger, now + self.local.config.time_wait);
        }
        Verdict::Done
    }

    /// Remembers old data for a D-SACK.
    fn note_duplicate(&mut self, segment: &Segment<'_>) {
        let end = segment.seq + segment.payload.len() as u32;
        let old = Range::new(segment.seq, end.earlier(self.rcv_nxt));
        // Only what lies within a window's reach was really received before.
        if !old.is_empty() && self.rcv_nxt.since(old.start) <= WINDOW_MAX {
            self.report_duplicate(old);
        }
    }

    /// RFC 5961 3.2: only a reset with exactly the next sequence number counts; others in the window are challenged.
    fn handle_reset(&mut self, now: Instant, segment: &Segment<'_>) {
        if segment.seq != self.rcv_nxt {
            self.challenge(now);
            return;
        }
        match self.state {
            // RFC 1337: a reset must not cut TIME-WAIT short.
            State::TimeWait => self.drop_segment(),
            State::SynReceived => self.end(Some(Failure::Refused)),
            State::Closing | State::LastAck => self.end(None),
            _ => self.end(Some(Failure::Reset)),
        }
    }

    /// RFC 5961 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
    fn ack_acceptable(&self, ack: Seq) -> bool {
        let probed = u32::from(self.bits.has(bits::PROBED_WINDOW));
        let oldest = self.flight.una().back(self.snd_wnd_max());
        ack.at_or_before(self.snd_nxt + probed) && ack.at_or_after(oldest)
    }

    /// Sends a challenge ACK if this connection has one left.
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.spend_challenge(now) {
            self.bits.set(bits::ACK_NOW);
        }
    }

    fn spend_challenge(&mut self, now: Instant) -> bool {
        let tick = (now.nanos() >> 30) as u16 & 0xfff;
        let since = self.challenges >> 4;
        if tick.wrapping_sub(since) & 0xfff >= 5 {
            self.challenges = tick << 4;
        }
        let left = self.challenges & 0xf < u16::from(self.local.config.challenge_acks.min(15));
        self.challenges += u16::from(left);
        left
    }

    pub(super) fn drop_segment(&mut self) {
        self.counters.dropped = self.counters.dropped.saturating_add(1);
    }

    /// The peer lives: keep-alive starts anew.
    fn touch(&mut self, now: Instant) {
        if let Some(keep_alive) = self.local.config.keep_alive
            && !self.timers.runs(Timer::Linger)
        {
            self.timers.start(Timer::KeepAlive, now + keep_alive.idle);
        }
    }

    /// Whether both ends use ECN, from the SYN or SYN-ACK received (RFC 3168 6.1.1).
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
        self.bits.put(bits::ECN, self.local.config.ecn && agreed);
    }

    /// A mark is echoed on every acknowledgement until the peer says that it has reduced (RFC 3168 6.1.3).
    fn note_marks(&mut self, segment: &Segment<'_>, ecn: Ecn) {
        if !self.bits.has(bits::ECN) {
            return;
        }
        if segment.flags.has(Flags::CWR) && !segment.payload.is_empty() {
            self.bits.clear(bits::ECHO_MARK);
        }
        if ecn == Ecn::Marked {
            self.bits.set(bits::ECHO_MARK);
        }
    }

    /// Data and FIN (RFC 9293 3.10.7.4, seventh and eighth).
    fn handle_text(&mut self, now: Instant, segment: &Segment<'_>) {
        if !self.state.can_receive() {
            return;
        }
        let (payload, start, fin) = self.cut_to_window(segment);
        if !payload.is_empty() && self.bits.has(bits::DEAF) {
            self.abort();
            return;
        }
        if fin {
            self.note_fin(start + payload.len() as u32);
        }
        if !payload.is_empty() {
            let inserted = self.receive.insert(self.rcv_nxt, start, payload);
            self.rcv_nxt = self.rcv_nxt + inserted.advanced;
            if !inserted.duplicate.is_empty() {
                self.report_duplicate(inserted.duplicate);
            }
            if inserted.gap || inserted.advanced == 0 || self.duplicate_len > 0 {
                self.bits.set(bits::ACK_NOW);
            }
            self.delay_ack(now, payload.len() as u32);
        } else if segment.sequence_len() > 0 {
            self.bits.set(bits::ACK_NOW);
        }
        if self.bits.has(bits::FIN_KNOWN) && self.rcv_nxt == self.fin {
            self.take_fin(now);
        }
    }

    /// What of a segment lies in the window: its data, where that starts, and whether its FIN counts.
    fn cut_to_window<'s>(&mut self, segment: &Segment<'s>) -> (&'s [u8], Seq, bool) {
        let old = self.rcv_nxt.saturating_since(segment.seq);
        if old > 0 {
            self.note_duplicate(segment);
        }
        let start = segment.seq.later(self.rcv_nxt);
        let payload = segment.payload.get(old as usize..).unwrap_or_default();
        let mut room = (self.rcv_nxt + self.receive.free()).saturating_since(start);
        if self.bits.has(bits::FIN_KNOWN) {
            room = room.min(self.fin.saturating_since(start));
        }
        let fits = payload.len().min(room as usize);
        let fin = segment.flags.has(Flags::FIN) && fits == payload.len();
        if fits < payload.len() {
            // The peer sent more than it may: it should hear what was taken.
            self.bits.set(bits::ACK_NOW);
        }
        (payload.get(..fits).unwrap_or_default(), start, fin)
    }

    /// Remembers where the peer's data ends, even if some of it is still missing.
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
    fn take_fin(&mut self, now: Instant) {
        self.bits.clear(bits::FIN_KNOWN);
        self.rcv_nxt = self.rcv_nxt + 1;
        self.bits.set(bits::ACK_NOW);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        let ack = self.bits.has(bits::ACK_NOW);
        self.timers.stop_all();
        self.bits.clear(bits::PENDING);
        self.bits.put(bits::ACK_NOW, ack);
        self.timers
            .start(Timer::Linger, now + self.local.config.time_wait);
    }

    /// New data came in order or not: acknowledges at once if enough is due, or starts the wait for company.
    fn delay_ack(&mut self, now: Instant, len: u32) {
        let size = u32::from(self.rcv_mss).max(len.min(u32::from(u16::MAX)));
        self.rcv_mss = size as u16;
        let due = self.rcv_nxt.since(self.last_ack);
        let enough = due >= size.saturating_mul(u32::from(self.local.config.ack_every));
        if enough || self.local.config.delayed_ack == chappe_core::Duration::ZERO {
            self.bits.set(bits::ACK_NOW);
        } else if due > 0 && !self.timers.runs(Timer::Acknowledge) {
            self.timers
                .start(Timer::Acknowledge, now + self.local.config.delayed_ack);
        }
    }
}

/// The largest window: data further below RCV.NXT than this cannot be told from data above it.
const WINDOW_MAX: u32 = 1 << 30;

/// Whether timestamp `a` is older than `b`, modulo 2^32.
pub(super) fn wraps_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
