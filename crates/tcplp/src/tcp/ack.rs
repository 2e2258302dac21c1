//! Acknowledgements at the sender: delivery, round-trip time, loss, spurious retransmission, ECN echoes.
//!
//! The order matters: undo is decided before new losses are marked, and the window grows by the phase before recovery ends.

use super::clock::stall_clock;
use super::congestion::{Acked, Congestion};
use super::flight::{LOST, RETRANSMITTED, SACKED};
use super::input::wraps_before;
use super::recovery::Phase;
use super::sack::{DUP_THRESH, Sacks};
use super::segment::{Flags, Segment};
use super::socket::{Socket, count};
use super::state::State;
use super::timers::Timer;
use super::{Seq, bits};

/// What one acknowledgement newly delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// By how much SND.UNA moved.
    advanced: u32,
    /// Octets acknowledged or SACKed for the first time.
    octets: u32,
    /// A round-trip sample of a segment that was sent once, µs (Karn's rule).
    sample: Option<u32>,
    /// If a retransmitted segment is among them: the age of its latest copy, µs.
    resent: Option<u32>,
    /// A segment that was sent once was delivered out of order.
    reordered: bool,
    /// The age of the timestamp that the peer echoes, µs; `None` if there is none or it is implausible.
    echo_age: Option<u32>,
}

impl<C: Congestion> Socket<'_, C> {
    /// An acceptable acknowledgement, advancing or not, in a synchronised state (RFC 9293 3.10.7.4, fifth).
    pub(super) fn handle_ack(&mut self, segment: &Segment<'_>) {
        let una = self.flight.una();
        let window_moved = self.update_window(segment);
        if self.bits.has(bits::PROBED_WINDOW) && segment.ack == self.snd_nxt + 1 {
            // The peer accepted the octet of the window probe.
            self.snd_nxt = segment.ack;
            self.bits.clear(bits::PROBED_WINDOW);
        }
        let ack = segment.ack.later(una);
        let duplicate = segment.ack == una
            && !self.flight.is_empty()
            && segment.payload.is_empty()
            && !segment.flags.has(Flags::FIN)
            && !window_moved;
        let sacks = match self.bits.has(bits::SACK) {
            true => Sacks::new(&segment.options.sack, ack, self.snd_nxt),
            false => Sacks::default(),
        };
        let before = self.flight_size();
        let delivery = self.deliver(segment, ack, &sacks);
        if delivery.advanced > 0 {
            self.on_progress(&delivery);
        } else if self.flight.is_empty() || self.snd_wnd() == 0 {
            // The peer answers although it accepts nothing: the connection is alive (RFC 9293 3.8.6.1).
            self.retries = 0;
        }
        if cfg!(feature = "rack") && delivery.reordered {
            self.rack.reordering_seen();
        }
        self.detect_spurious(segment, &delivery, &sacks);
        self.process_probe_ack(segment, duplicate, &sacks, before);
        self.handle_ece(segment, before);
        let delivered = match self.bits.has(bits::SACK) {
            true => delivery.octets,
            false => self.count_duplicates(duplicate, &delivery),
        };
        if delivery.octets > 0 || duplicate {
            self.detect_losses();
            self.enter_recovery();
            self.reduce_in_proportion(delivered);
        }
        let phase = self.recovery.phase;
        self.leave_recovery();
        self.grow(&delivery, before, phase);
        self.after_ack(&delivery);
        self.move_closing_states();
    }

    /// Our SYN is acknowledged. It takes one sequence number and no octet of the send buffer.
    pub(super) fn syn_acknowledged(&mut self, segment: &Segment<'_>) {
        let delivery = self.deliver(segment, segment.ack, &Sacks::default());
        self.sample(&delivery);
        self.timers.stop(Timer::Retransmit);
        self.recovery = super::recovery::Recovery::new(self.flight.una().back(1));
    }

    /// Removes acknowledged segments from the flight table, marks SACKed ones, and passes both to RACK.
    fn deliver(&mut self, segment: &Segment<'_>, ack: Seq, sacks: &Sacks) -> Delivery {
        let echo_age = self.echo_age(segment);
        let mut delivery = Delivery {
            advanced: ack.since(self.flight.una()),
            echo_age,
            ..Delivery::default()
        };
        let stamp = self.stamp();
        let min_rtt = self.rtt.min();
        let sack = self.bits.has(bits::SACK);
        let (flight, rack) = (&mut self.flight, &mut self.rack);
        // Only RACK asks for order.
        let rack_used = cfg!(feature = "rack");
        let mut high = match rack_used {
            true => flight.highest_sacked(),
            false => flight.una(),
        };
        let mut take = |piece: super::flight::Piece, cumulative: bool| {
            if piece.is(SACKED) {
                return;
            }
            delivery.octets = delivery.octets.saturating_add(piece.range.len());
            let rtt = match rack_used {
                true => rack.delivered(piece, stamp, echo_age, min_rtt),
                false => Some(stamp.since(piece.at)),
            };
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
        if sack {
            flight.sack(sacks.blocks.as_slice(), |piece| take(piece, false));
        }
        if cut && matches!(self.recovery.phase, Phase::Fast | Phase::Loss) {
            // Only the first segment of a merged entry was retransmitted; this is the rest.
            self.flight.mark_first(LOST);
        }
        delivery
    }

    /// The age of the timestamp that the peer echoes, µs; `None` if there is none or it is implausible.
    fn echo_age(&self, segment: &Segment<'_>) -> Option<u32> {
        let timestamps = segment.options.timestamps?;
        let age = self.timestamp().wrapping_sub(timestamps.echo);
        (self.bits.has(bits::TIMESTAMPS) && age < ECHO_AGE_MAX).then(|| age * 1000)
    }

    /// SND.UNA advanced: frees the send buffer, ends the back-off, takes a round-trip sample.
    fn on_progress(&mut self, delivery: &Delivery) {
        self.send.consume(delivery.advanced);
        if cfg!(feature = "user-timeout") {
            let waits = !self.flight.is_empty() || self.send.len() > 0;
            self.flight.stalled_at = if waits { stall_clock(self.now()) } else { 0 };
        }
        self.retries = 0;
        self.backoff = 0;
        self.sample(delivery);
        let past = self.flight.una().saturating_since(self.recovery.recover);
        if self.recovery.phase == Phase::Open && past > self.snd_wnd_max() {
            // A D-SACK this late cannot belong to the last recovery.
            self.bits.clear(bits::UNDO);
        }
    }

    /// Takes a round-trip sample: from our own clock if nothing was retransmitted (Karn's rule), else from the echoed
    /// timestamp (RFC 7323 4).
    ///
    /// An echo older than the retransmission has one of two causes. The original was late: then the acknowledgement
    /// arrives less than a round trip after the retransmission, and the age of the echo is a valid sample. Or the first
    /// acknowledgement was lost: then the retransmission was old data to the peer and did not set TS.Recent (RFC 7323
    /// 5.3), and the age of the echo is that of the lost acknowledgement; no sample is taken.
    fn sample(&mut self, delivery: &Delivery) {
        let echo_age = delivery.echo_age;
        let sample = match (delivery.resent, delivery.sample, echo_age) {
            (None, Some(sample), _) => Some(sample),
            (Some(resent), _, Some(age))
                if age > resent.saturating_add(999) && resent >= self.rtt.min() =>
            {
                None
            }
            // An echo within the same tick of 1 ms counts as half a tick.
            (_, _, age) => age.map(|age| age.max(500)),
        };
        if let Some(sample) = sample {
            self.rtt.sample(sample);
        }
    }

    /// RFC 9293 3.10.7.4, fifth: a segment not older than SND.WL1 sets SND.WND. Returns whether the window changed.
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

    /// Detects a spurious recovery. Eifel (RFC 3522): an advancing acknowledgement that echoes a timestamp older than the
    /// first retransmission was caused by the original. D-SACK (RFC 3708): every retransmission proved a duplicate.
    fn detect_spurious(&mut self, segment: &Segment<'_>, delivery: &Delivery, sacks: &Sacks) {
        let duplicate = !sacks.duplicate.is_empty();
        if cfg!(feature = "rack") {
            self.rack.adapt(self.flight.una(), self.snd_nxt, duplicate);
        }
        if duplicate {
            count(&mut self.counters.duplicates);
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

    /// The outcome of a tail loss probe (TLP_process_ack, RFC 8985 7.4.2).
    fn process_probe_ack(
        &mut self,
        segment: &Segment<'_>,
        duplicate: bool,
        sacks: &Sacks,
        before: u32,
    ) {
        if !self.bits.has(bits::PROBED_TAIL) || segment.ack.before(self.probe_end) {
            return;
        }
        let reported = !sacks.duplicate.is_empty() && sacks.duplicate.end == self.probe_end;
        let blocks = !sacks.blocks.as_slice().is_empty();
        if !self.bits.has(bits::PROBE_RETRANSMITTED) || reported || duplicate && !blocks {
            self.bits.clear(bits::PROBED_TAIL);
        } else if segment.ack.after(self.probe_end) {
            // Only one copy arrived: the probe repaired a loss, which calls for a congestion response like any other.
            self.bits.clear(bits::PROBED_TAIL);
            if self.recovery.phase == Phase::Open {
                self.reduce_once(before);
            }
        }
    }

    /// The peer echoes a CE mark: reduces the window at most once per round trip (RFC 3168 6.1.2).
    fn handle_ece(&mut self, segment: &Segment<'_>, before: u32) {
        let marked = segment.flags.has(Flags::ECE) && self.bits.has(bits::ECN);
        let again = self.flight.una().before(self.recovery.recover);
        if marked && self.recovery.phase == Phase::Open && !again {
            self.reduce_once(before);
        }
    }

    /// Without SACK, each duplicate acknowledgement means that one segment has left the network, and the third one signals a
    /// loss (RFC 5681 3.2, RFC 6582). Returns the octets that this acknowledgement delivered.
    fn count_duplicates(&mut self, duplicate: bool, delivery: &Delivery) -> u32 {
        let mss = self.segment_size();
        let una = self.flight.una();
        let recovering = self.recovery.phase == Phase::Fast;
        if duplicate {
            self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
            // RFC 6582 3.2 step 1: duplicates of what a timeout retransmitted do not start fast recovery.
            let fresh = una.after(self.recovery.recover);
            let third = u32::from(self.recovery.duplicates) == DUP_THRESH;
            if self.recovery.phase == Phase::Open && third && fresh && !self.bits.has(bits::SACK) {
                self.flight.mark_first(LOST);
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
        // A partial acknowledgement: its first segment was retransmitted; the others were counted as duplicates before.
        let segments = delivery.advanced.div_ceil(mss.max(1)).saturating_sub(1);
        let again = u32::from(counted).min(segments);
        self.recovery.duplicates = counted.saturating_sub(again as u8);
        if una.before(self.recovery.recover) && !self.bits.has(bits::SACK) {
            self.flight.mark_first(LOST);
            self.bits.set(bits::FORCE);
        }
        delivery.octets.saturating_sub(again.saturating_mul(mss))
    }

    /// Grows the congestion window, if it is what limits the sender (RFC 7661, RFC 9743 3).
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

    /// Restarts or stops the timers after an acknowledgement (RFC 6298 5.2 and 5.3, RFC 8985 7.2).
    fn after_ack(&mut self, delivery: &Delivery) {
        if self.flight.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::TailLossProbe);
            self.timers.stop(Timer::Reordering);
        } else if delivery.advanced > 0 {
            self.start_retransmit();
            self.schedule_probe();
        }
        if self.timers.runs(Timer::Persist) && (self.snd_wnd() > 0 || self.send.len() == 0) {
            // The window may be open now: the next poll tries, and restarts the timer if it is still too small. Or the
            // probe carried the last octet, and nothing waits.
            self.timers.stop(Timer::Persist);
            self.backoff = 0;
        }
        // RFC 8985 7.2: no probe while SACKs are present; RACK's reordering timer is in charge.
        if cfg!(feature = "sack") && self.recovery.phase == Phase::Open && self.flight.any(SACKED) {
            self.timers.stop(Timer::TailLossProbe);
        }
    }

    /// State changes once our FIN is acknowledged, which it is when nothing is in flight (RFC 9293 3.10.7.4, fifth).
    fn move_closing_states(&mut self) {
        if !self.bits.has(bits::FIN_SENT) || self.flight.una() != self.snd_nxt {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.bits.has(bits::READ_CLOSED) {
                    self.timers
                        .start(Timer::TimeWait, self.local.config.fin_wait_2);
                }
            }
            State::Closing => self.enter_time_wait(),
            State::LastAck => self.end(None),
            _ => {}
        }
    }
}

/// An echo older than this, ms, is ignored as implausible.
const ECHO_AGE_MAX: u32 = 600_000;
