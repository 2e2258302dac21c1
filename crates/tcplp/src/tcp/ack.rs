//! What an acknowledgement means to the sender: delivery, round-trip time, loss, spurious retransmission, marks.

use chappe_core::Instant;

use super::clock::Stamp;
use super::congestion::{Acked, Congestion};
use super::flight::{LOST, RETRANSMITTED, SACKED};
use super::input::wraps_before;
use super::recovery::Phase;
use super::sack::{DUP_THRESH, Sorted};
use super::segment::{Flags, Segment};
use super::socket::Socket;
use super::state::State;
use super::timers::Timer;
use super::{Seq, bits};

/// What one acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// By how much SND.UNA moved.
    advanced: u32,
    /// Octets acknowledged or SACKed for the first time.
    octets: u32,
    /// A round-trip time that no retransmission blurs, µs.
    sample: Option<u32>,
    /// Something that was sent twice is among them: how long ago the last such copy left, µs.
    resent: Option<u32>,
    /// Something arrived out of order without having been sent twice.
    reordered: bool,
}

impl<C: Congestion> Socket<'_, C> {
    /// An acceptable acknowledgement, new or not, in a synchronised state.
    pub(super) fn handle_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        let una = self.flight.una();
        let window_moved = self.update_window(segment);
        if self.bits.has(bits::PROBED_WINDOW) && segment.ack == self.snd_nxt + 1 {
            // The window probe's octet was taken after all.
            self.snd_nxt = segment.ack;
            self.bits.clear(bits::PROBED_WINDOW);
        }
        let ack = segment.ack.later(una);
        let duplicate = segment.ack == una
            && !self.flight.is_empty()
            && segment.payload.is_empty()
            && !segment.flags.has(Flags::FIN)
            && !window_moved;
        let sorted = match self.bits.has(bits::SACK) {
            true => Sorted::new(&segment.options.sack, ack, self.snd_nxt),
            false => Sorted::default(),
        };
        self.digest(now, segment, ack, &sorted, duplicate);
        self.move_closing_states(now);
    }

    /// The common part of the long and the short path: what the numbers of an acknowledgement change.
    pub(super) fn digest(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ack: Seq,
        sorted: &Sorted,
        duplicate: bool,
    ) {
        let before = self.flight_size();
        let delivery = self.deliver(now, segment, ack, sorted);
        if delivery.advanced > 0 {
            self.take_progress(now, segment, &delivery);
        } else if self.flight.is_empty() || self.snd_wnd() == 0 {
            // The peer answers, though it takes nothing: that is no reason to give up.
            self.retries = 0;
        }
        if delivery.reordered {
            self.rack.reordering_seen();
        }
        self.detect_spurious(segment, &delivery, sorted);
        self.judge_probe(segment, duplicate, sorted, before);
        self.obey_mark(segment, before);
        let delivered = match self.bits.has(bits::SACK) {
            true => delivery.octets,
            false => self.count_duplicates(duplicate, &delivery),
        };
        if delivery.octets > 0 || duplicate {
            self.detect_losses(now);
            self.enter_recovery();
            self.reduce_in_proportion(delivered);
        }
        let phase = self.recovery.phase;
        self.leave_recovery();
        self.grow(&delivery, before, phase);
        self.after_ack(now, &delivery);
    }

    /// Our SYN is acknowledged. It takes one sequence number and no octet of the send buffer.
    pub(super) fn syn_acknowledged(&mut self, now: Instant, segment: &Segment<'_>) {
        let delivery = self.deliver(now, segment, segment.ack, &Sorted::default());
        self.sample(now, segment, &delivery);
        self.timers.stop(Timer::Retransmit);
        self.recovery = super::recovery::Recovery::new(self.flight.una().back(1));
    }

    /// Takes what is acknowledged out of the score board, marks what is SACKed, and tells RACK of both.
    fn deliver(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ack: Seq,
        sorted: &Sorted,
    ) -> Delivery {
        let mut delivery = Delivery {
            advanced: ack.since(self.flight.una()),
            ..Delivery::default()
        };
        let stamp = Stamp::of(now);
        let echo_age = self.echo_age(now, segment);
        let min_rtt = self.rtt.min();
        let (flight, rack) = (&mut self.flight, &mut self.rack);
        let mut high = flight.highest_sacked();
        let mut take = |piece: super::flight::Piece, cumulative: bool| {
            if piece.is(SACKED) {
                return;
            }
            delivery.octets = delivery.octets.saturating_add(piece.range.len());
            let rtt = rack.delivered(piece, stamp, echo_age, min_rtt);
            if piece.is(RETRANSMITTED) {
                let age = stamp.since(piece.at);
                delivery.resent = Some(delivery.resent.map_or(age, |other| other.min(age)));
            } else {
                delivery.reordered |= piece.range.end.before(high);
                if cumulative && delivery.sample.is_none() {
                    delivery.sample = rtt;
                }
            }
            high = high.later(piece.range.end);
        };
        let cut = flight.acknowledge(ack, |piece| take(piece, true));
        for block in sorted.blocks.as_slice() {
            flight.sack(*block, |piece| take(piece, false));
        }
        if cut && matches!(self.recovery.phase, Phase::Fast | Phase::Loss) {
            // Of a merged entry only the first segment was sent again; this is its rest.
            self.mark_first_lost();
        }
        delivery
    }

    /// How long ago, µs, the timestamp was made that the peer echoes; `None` if it echoes none, or nonsense.
    fn echo_age(&self, now: Instant, segment: &Segment<'_>) -> Option<u32> {
        let timestamps = segment.options.timestamps?;
        let age = self.timestamp(now).wrapping_sub(timestamps.echo);
        (self.bits.has(bits::TIMESTAMPS) && age < ECHO_AGE_MAX).then(|| age * 1000)
    }

    /// SND.UNA moved: the buffer, the timers and the round-trip time.
    fn take_progress(&mut self, now: Instant, segment: &Segment<'_>, delivery: &Delivery) {
        self.send.consume(delivery.advanced);
        self.retries = 0;
        self.backoff = 0;
        self.sample(now, segment, delivery);
        let past = self.flight.una().saturating_since(self.recovery.recover);
        if self.recovery.phase == Phase::Open && past > self.snd_wnd_max() {
            // A D-SACK this late is about something else.
            self.bits.clear(bits::UNDO);
        }
    }

    /// Takes a round-trip sample: from our own clock if nothing was sent twice (Karn's rule), else from the echoed
    /// timestamp (RFC 7323 4).
    ///
    /// An echo older than the retransmission means one of two things. The original was only late: then the
    /// acknowledgement comes less than a round trip after the retransmission, and its age is the path's. Or the first
    /// acknowledgement was lost: then the retransmission, old data to the peer, caused this one without setting the
    /// peer's TS.Recent (RFC 7323 5.3), and the age of the echo is that of the acknowledgement that was lost.
    fn sample(&mut self, now: Instant, segment: &Segment<'_>, delivery: &Delivery) {
        let echo_age = self.echo_age(now, segment);
        let sample = match (delivery.resent, delivery.sample, echo_age) {
            (None, Some(sample), _) => Some(sample),
            (Some(resent), _, Some(age))
                if age > resent.saturating_add(999) && resent >= self.rtt.min() =>
            {
                None
            }
            // A timestamp within one tick tells half a millisecond, give or take.
            (_, _, age) => age.map(|age| age.max(500)),
        };
        if let Some(sample) = sample {
            self.rtt.sample(sample);
        }
    }

    /// RFC 9293 3.10.7.4: a segment that is not older than the last one to do so sets the window. Returns whether the
    /// window changed.
    fn update_window(&mut self, segment: &Segment<'_>) -> bool {
        let newer = self.snd_wl1.at_or_before(segment.seq);
        if !newer || segment.ack.before(self.flight.una()) {
            return false;
        }
        let moved = segment.window != self.window_field;
        self.note_window(segment.window);
        self.snd_wl1 = segment.seq;
        moved
    }

    /// Eifel (RFC 3522): an acknowledgement that advances and echoes a timestamp from before the first
    /// retransmission was caused by the original. D-SACK (RFC 3708): every retransmission arrived twice.
    fn detect_spurious(&mut self, segment: &Segment<'_>, delivery: &Delivery, sorted: &Sorted) {
        let duplicate = !sorted.duplicate.is_empty();
        self.rack.adapt(self.flight.una(), self.snd_nxt, duplicate);
        if duplicate {
            self.counters.duplicates = self.counters.duplicates.saturating_add(1);
        }
        if !self.bits.has(bits::UNDO) {
            return;
        }
        let stamp = self.recovery.stamp;
        let stamped = self.bits.has(bits::STAMPED) && self.bits.has(bits::TIMESTAMPS);
        let original = match segment.options.timestamps {
            Some(timestamps) => stamped && wraps_before(timestamps.echo, stamp),
            None => false,
        };
        let left = &mut self.recovery.undo_left;
        let all_twice = duplicate && *left > 0 && {
            *left -= 1;
            *left == 0
        };
        let recovering = matches!(self.recovery.phase, Phase::Fast | Phase::Loss);
        if recovering && delivery.advanced > 0 && original || all_twice {
            self.undo();
        }
    }

    /// What became of a tail loss probe (RFC 8985 7.4).
    fn judge_probe(
        &mut self,
        segment: &Segment<'_>,
        duplicate: bool,
        sorted: &Sorted,
        before: u32,
    ) {
        if !self.bits.has(bits::PROBED_TAIL) || segment.ack.before(self.probe_end) {
            return;
        }
        let reported = !sorted.duplicate.is_empty() && sorted.duplicate.end == self.probe_end;
        let blocks = !sorted.blocks.as_slice().is_empty();
        if !self.bits.has(bits::PROBE_RETRANSMITTED) || reported || duplicate && !blocks {
            self.bits.clear(bits::PROBED_TAIL);
        } else if segment.ack.after(self.probe_end) {
            // Only one copy arrived: the probe repaired a loss, which asks for a reduction all the same.
            self.bits.clear(bits::PROBED_TAIL);
            if self.recovery.phase == Phase::Open {
                self.reduce_once(before);
            }
        }
    }

    /// The peer echoes a mark: at most one reduction a round trip (RFC 3168 6.1.2).
    fn obey_mark(&mut self, segment: &Segment<'_>, before: u32) {
        let marked = segment.flags.has(Flags::ECE) && self.bits.has(bits::ECN);
        let again = self.flight.una().before(self.recovery.recover);
        if marked && self.recovery.phase == Phase::Open && !again {
            self.reduce_once(before);
        }
    }

    /// Without SACK, each duplicate acknowledgement stands for one segment that has left the network, and the third
    /// for a loss (RFC 5681 3.2, RFC 6582). Returns the octets that this acknowledgement delivered.
    fn count_duplicates(&mut self, duplicate: bool, delivery: &Delivery) -> u32 {
        let mss = self.segment_size();
        let una = self.flight.una();
        let recovering = self.recovery.phase == Phase::Fast;
        if duplicate {
            self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
            // RFC 6582 3.2 step 1: not if these duplicates belong to what a timeout sent again.
            let fresh = una.after(self.recovery.recover);
            let third = u32::from(self.recovery.duplicates) == DUP_THRESH;
            if self.recovery.phase == Phase::Open && third && fresh && !self.bits.has(bits::SACK) {
                self.mark_first_lost();
            }
            return mss;
        }
        if delivery.advanced == 0 {
            return 0;
        }
        let counted = self.recovery.duplicates;
        if !recovering {
            self.recovery.duplicates = 0;
            return delivery.octets;
        }
        // A partial acknowledgement: the first segment was sent again, the others had been counted one by one.
        let segments = delivery.advanced.div_ceil(mss.max(1)).saturating_sub(1);
        let again = u32::from(counted).min(segments);
        self.recovery.duplicates = counted.saturating_sub(again as u8);
        if una.before(self.recovery.recover) && !self.bits.has(bits::SACK) {
            self.mark_first_lost();
            self.bits.set(bits::FORCE);
        }
        delivery.octets.saturating_sub(again.saturating_mul(mss))
    }

    fn mark_first_lost(&mut self) {
        let una = self.flight.una();
        self.flight.each(|piece, marks| {
            if piece.range.start == una {
                *marks |= LOST;
            }
        });
    }

    /// Grows the window, if it is what holds the sender back.
    fn grow(&mut self, delivery: &Delivery, before: u32, phase: Phase) {
        if delivery.advanced == 0 {
            return;
        }
        let mss = self.segment_size();
        let cwnd = self.window.cwnd;
        let limited = match (phase, cwnd < self.window.ssthresh) {
            (Phase::Loss, _) => true,
            (Phase::Open, true) => cwnd < before.saturating_mul(2),
            (Phase::Open, false) => before.saturating_add(mss) > cwnd,
            (Phase::Fast | Phase::Reduced, _) => false,
        };
        if !limited {
            return;
        }
        let acked = Acked {
            octets: delivery.advanced,
            mss,
            after_timeout: phase == Phase::Loss,
        };
        self.congestion.acked(&mut self.window, &acked);
    }

    /// Timers after an acknowledgement (RFC 6298 5.2 and 5.3, RFC 8985 7.2).
    fn after_ack(&mut self, now: Instant, delivery: &Delivery) {
        if self.flight.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Probe);
            self.timers.stop(Timer::Reorder);
        } else if delivery.advanced > 0 {
            self.timers.start(Timer::Retransmit, now + self.timeout());
            self.schedule_probe(now);
        }
        if self.timers.runs(Timer::Persist) && self.snd_wnd() > 0 {
            // The window may be open: the next poll tries, and waits anew if it must.
            self.timers.stop(Timer::Persist);
            self.backoff = 0;
        }
        if self.recovery.phase == Phase::Open && self.flight.any(SACKED) {
            self.timers.stop(Timer::Probe);
        }
    }

    /// Our FIN, if sent, is acknowledged when everything is (RFC 9293 3.10.7.4, fifth).
    fn move_closing_states(&mut self, now: Instant) {
        if !self.bits.has(bits::FIN_SENT) || self.flight.una() != self.snd_nxt {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.bits.has(bits::DEAF) {
                    self.timers
                        .start(Timer::Linger, now + self.local.config.fin_wait_2);
                }
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(None),
            _ => {}
        }
    }
}

/// An echo older than this, ms, is nonsense: the retransmission timeout is never that long.
const ECHO_AGE_MAX: u32 = 600_000;
