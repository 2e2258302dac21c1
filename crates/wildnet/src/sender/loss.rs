//! Loss detection: the frames that were sent, which of them are settled, and the probes that break a silence.
//!
//! The terms are those of RFC 9002, with these differences:
//!
//! | RFC 9002 | here |
//! |---|---|
//! | a packet is acknowledged, lost or in flight | a *frame* is settled once a report covers it or a later one; what it carried is looked up in the report by body |
//! | kPacketThreshold | [`Config::reordering`](crate::Config::reordering): 3 on the Internet, 0 on one radio link; not used while frames come out of order |
//! | the time threshold, 9/8 of the round trip (6.1.2) | the same, by the smoothed round trip alone; while frames come out of order, the measured window of [`Reordering`] instead |
//! | a loss timer (6.1.2) | only while frames come out of order; otherwise losses are declared when a report arrives |
//! | `loss_delay`, a threshold | [`LossDetection::loss_delay`], a measurement: from sending to the declaration of the loss |
//! | PTO, `pto_count` | in [`Link`](crate::Link), which has the clock of it |

use alloc::vec;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use super::reordering::Reordering;
use super::rtt::Rtt;
use crate::header::{Ack, before};
use crate::paths::{FrameId, Paths};

/// What is known of the frames of one direction.
#[derive(Clone, Debug)]
pub(crate) struct LossDetection {
    /// A ring by frame number.
    sent: Vec<SentFrame>,
    next_number: u32,
    /// The first frame since the peer's latest start.
    first_number: u32,
    /// All frames up to this one are settled.
    settled: u32,
    /// The highest frame of the last report, and how many frames had come by then.
    largest_acked: u32,
    received_count: u16,
    /// Octets of all frames up to that one, lost ones included, and when it arrived, a one-way delay ago.
    passed: (u64, Instant),
    packet_threshold: u32,
    order: Reordering,
    /// When this end went on after it had stood still: what reports say later of earlier frames tells nothing of the path.
    resumed_at: Instant,
    /// Octets of frames that are not settled.
    bytes_in_flight: usize,
    rtt: Rtt,
    loss_delay: Duration,
    /// Frames that are still to be sent as probes, and the first frame that could be one.
    probes: usize,
    probes_from: u32,
    /// In slots: frames before this one may be repeated while no report comes.
    repeat_before: u32,
}

/// Whether a report has settled a frame, on whichever path it left.
pub(super) fn is_settled(loss: &Paths<LossDetection>, frame: FrameId) -> bool {
    loss.of(frame.path.into()).is_settled(frame.number)
}

/// One frame that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFrame {
    number: u32,
    /// The body that it carried uncoded, if any.
    pub seq: Option<u32>,
    /// Whether it carried another one beside it.
    pub shared: bool,
    octets: u16,
    /// Whether it is in flight until it is settled: a note is not, since the peer owes no report for it.
    flies: bool,
    pub at: Instant,
}

impl LossDetection {
    /// Octets of memory for each frame that is remembered.
    pub const OCTETS_OF_FRAME: usize = size_of::<SentFrame>();

    /// Remembers the latest `frames` frames, a power of two.
    pub fn new(frames: usize, packet_threshold: u32) -> LossDetection {
        let frame = SentFrame {
            number: 0,
            seq: None,
            shared: false,
            octets: 0,
            flies: false,
            at: Instant::ZERO,
        };
        LossDetection {
            sent: vec![frame; frames],
            next_number: 0,
            first_number: 0,
            // Numbers wrap: this is the frame before number 0.
            settled: u32::MAX,
            largest_acked: u32::MAX,
            received_count: 0,
            passed: (0, Instant::ZERO),
            packet_threshold,
            order: Reordering::default(),
            resumed_at: Instant::ZERO,
            bytes_in_flight: 0,
            rtt: Rtt::default(),
            loss_delay: Duration::ZERO,
            probes: 0,
            probes_from: 0,
            repeat_before: 0,
        }
    }

    /// Remembers the latest `frames` frames from now on, a power of two.
    pub fn grow(&mut self, frames: usize) {
        let old = self.sent.len();
        let Some(&empty) = self.sent.first() else {
            return;
        };
        self.sent.resize(frames.max(old), empty);
        // Lengths are powers of two: a frame stays, or moves to a place that is still empty, so no two of them meet.
        for place in 0..old {
            let number = self.sent.get(place).map_or(0, |frame| frame.number);
            let to = self.place(number);
            if to != place {
                self.sent.swap(place, to);
            }
        }
    }

    /// Numbers frames from `number` on. Only before the first one.
    pub fn start_at(&mut self, number: u32) {
        (self.next_number, self.repeat_before) = (number, number);
        self.forget_peer();
    }

    /// The peer has started over: it reports only on frames from now on.
    pub fn restart(&mut self) {
        self.forget_peer();
        self.bytes_in_flight = 0;
    }

    fn forget_peer(&mut self) {
        self.first_number = self.next_number;
        self.settled = self.newest();
        (self.largest_acked, self.received_count) = (self.settled, 0);
        self.order.forget_reports();
    }

    pub fn next_number(&self) -> u32 {
        self.next_number
    }

    pub fn first_number(&self) -> u32 {
        self.first_number
    }

    /// The number of the latest frame.
    pub fn newest(&self) -> u32 {
        self.next_number.wrapping_sub(1)
    }

    pub fn bytes_in_flight(&self) -> usize {
        self.bytes_in_flight
    }

    /// Nothing that is in flight is expected to arrive any more: the path is left.
    pub fn abandon(&mut self) {
        self.bytes_in_flight = 0;
        self.probes = 0;
    }

    /// Notes a frame that leaves, with the body that it carries uncoded; whether it counts as in flight.
    pub fn on_sent(&mut self, now: Instant, seq: Option<u32>, octets: usize, flies: bool) {
        let number = self.next_number;
        let place = self.place(number);
        if let Some(frame) = self.sent.get_mut(place) {
            *frame = SentFrame {
                number,
                seq,
                shared: false,
                octets: octets.min(u16::MAX.into()) as u16,
                flies,
                at: now,
            };
        }
        let flying = if flies { octets } else { 0 };
        self.bytes_in_flight = self.bytes_in_flight.saturating_add(flying);
        self.next_number = number.wrapping_add(1);
    }

    /// The latest frame carried another body beside the one that was noted.
    pub fn share_latest(&mut self) {
        let place = self.place(self.newest());
        if let Some(frame) = self.sent.get_mut(place) {
            frame.shared = true;
        }
    }

    /// When a frame left, if it is remembered.
    pub fn sent_at(&self, number: u32) -> Option<Instant> {
        self.frame(number).map(|frame| frame.at)
    }

    fn frame(&self, number: u32) -> Option<&SentFrame> {
        let frame = self.sent.get(self.place(number));
        frame.filter(|frame| frame.number == number)
    }

    fn place(&self, number: u32) -> usize {
        number as usize & self.sent.len().wrapping_sub(1)
    }

    /// Whether a report is about frames that were sent, since the peer's latest start.
    pub fn covers(&self, ack: &Ack<'_>) -> bool {
        let last_of_before = self.first_number.wrapping_sub(1);
        !before(self.newest(), ack.highest) && !before(ack.highest, last_of_before)
    }

    /// The round trip that a report shows: of its highest frame, if that is news (RFC 9002, 5.1).
    pub fn rtt_sample(&self, now: Instant, ack: &Ack<'_>) -> Option<Duration> {
        let frame = self.frame(ack.highest);
        let frame = frame.filter(|_| before(self.settled, ack.highest))?;
        // The report waited for this end, which stood still. That time is no part of the path.
        if frame.at < self.resumed_at {
            return None;
        }
        Some(now.saturating_since(frame.at).saturating_sub(ack.held()))
    }

    /// Up to which frame nothing can arrive any more, given that `highest` has: `packet_threshold` later frames have
    /// arrived, or it was sent more than 9/8 of a round trip ago (RFC 9002, 6.1). Where frames come out of order: a later one
    /// was reported longer ago than any came late.
    pub fn overtaken(&self, now: Instant, highest: u32) -> u32 {
        let window = self.reordering(now);
        if window > Duration::ZERO {
            return self.order.passed(now, window).unwrap_or(self.settled);
        }
        let mut until = highest.wrapping_sub(self.packet_threshold);
        let smoothed = self.rtt.smoothed;
        let time_threshold = smoothed + smoothed / 8;
        while smoothed > Duration::ZERO && before(until, highest) {
            let next = until.wrapping_add(1);
            // Frames settle in order: `highest` waits for older ones that may only be late.
            let old = |frame: &SentFrame| frame.at + time_threshold <= now;
            if next != highest && !self.frame(next).is_some_and(old) {
                break;
            }
            until = next;
        }
        until
    }

    /// How long a frame may be overtaken before it counts as lost; zero while none has been late. At most the longest likely
    /// round trip (RFC 6298, 2). RFC 8985, 6.2, step 4, says the smoothed one, but its samples do not wait for reports.
    pub fn reordering(&self, now: Instant) -> Duration {
        let most = self.rtt.smoothed + self.rtt.variation * 4;
        match self.packet_threshold {
            // A single radio link keeps the order of frames.
            0 => Duration::ZERO,
            _ => self.order.window(now, most),
        }
    }

    /// When frames that were overtaken count as lost, whether a report comes or not.
    pub fn settle_at(&self) -> Option<Instant> {
        // The window can only become shorter with time.
        let (_, at) = (self.packet_threshold > 0).then(|| self.order.latest())??;
        let window = self.reordering(at);
        let at = self.order.next_at(self.settled, window);
        at.filter(|_| window > Duration::ZERO)
    }

    /// This end has stood still until now.
    pub fn resume(&mut self, now: Instant) {
        self.resumed_at = now;
    }

    /// A report arrives, before what it says is used.
    pub fn hear(&mut self, now: Instant, ack: &Ack<'_>) {
        self.order.on_report(now, ack.highest, ack.cut_at());
    }

    /// Body `seq` is reported that can only have come with `frame`.
    pub fn came_with(&mut self, now: Instant, frame: u32, seq: u32) {
        let known = self.sent_at(frame).is_some_and(|at| at >= self.resumed_at);
        if known && before(frame, self.largest_acked) {
            self.order.on_late(now, frame, seq);
        }
    }

    /// Takes the counts of a report.
    pub fn on_report(&mut self, now: Instant, ack: &Ack<'_>) {
        // Reports may be reordered as well.
        if !before(ack.highest, self.largest_acked) {
            self.count_passed(ack.highest);
            self.passed.1 = now.saturating_before(ack.held());
            (self.largest_acked, self.received_count) = (ack.highest, ack.received);
        }
    }

    fn count_passed(&mut self, highest: u32) {
        let new = highest
            .wrapping_sub(self.largest_acked)
            .min(self.sent.len() as u32);
        let octets = (0..new).filter_map(|back| self.frame(highest.wrapping_sub(back)));
        let octets: u64 = octets.map(|frame| u64::from(frame.octets)).sum();
        self.passed.0 = self.passed.0.wrapping_add(octets);
    }

    /// Octets of all frames up to the highest reported one, lost ones included, and when it arrived, a one-way delay ago. The
    /// difference of two is the rate of the path, whatever it loses.
    pub fn passed(&self) -> (u64, Instant) {
        self.passed
    }

    /// Settles the next frame up to `until`: its number, and what is remembered of it.
    pub fn settle_next(&mut self, until: u32) -> Option<(u32, Option<SentFrame>)> {
        if !before(self.settled, until) {
            return None;
        }
        self.settled = self.settled.wrapping_add(1);
        // Whatever this report settles answers the probes.
        self.probes = 0;
        let frame = self.frame(self.settled).copied();
        let flew = frame.filter(|frame| frame.flies);
        let octets = flew.map_or(0, |frame| frame.octets.into());
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(octets);
        Some((self.settled, frame))
    }

    pub fn is_settled(&self, number: u32) -> bool {
        !before(self.settled, number)
    }

    /// The latest frame with which a body can have arrived that `ack` reports and whose latest frame is `frame`. If no
    /// frame was lost since the report before, it came with that one; otherwise repairs may have brought it later.
    pub fn latest_carrier(&self, frame: u32, ack: &Ack<'_>) -> u32 {
        let sent = ack.highest.wrapping_sub(self.largest_acked);
        let received = u32::from(ack.received.wrapping_sub(self.received_count));
        let new = before(self.largest_acked, frame) && !before(ack.highest, frame);
        match received == sent && new {
            true => frame,
            false => ack.highest,
        }
    }

    /// How long after a frame has left its loss is declared, smoothed as by RFC 6298, 2; zero before the first loss. Reports are
    /// lost as well, and wait for frames to ride on, so this is longer than a round trip.
    pub fn loss_delay(&self) -> Duration {
        self.loss_delay
    }

    /// The loss of a frame is declared, `after` it was sent.
    ///
    /// The mean deviation is left out: with two of them 1.1 instead of 2.0 % came late at half of all frames lost, but a queue
    /// made rounds seem longer, that called forth repairs, and these made the queue longer.
    pub fn on_loss(&mut self, after: Duration) {
        self.loss_delay = match self.loss_delay > Duration::ZERO {
            true => (self.loss_delay * 7 + after) / 8,
            false => after,
        };
    }

    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    pub fn rtt_mut(&mut self) -> &mut Rtt {
        &mut self.rtt
    }

    /// Nothing was reported for too long: asks for `frames` probes, and counts nothing as in flight any more.
    pub fn probe(&mut self, frames: usize) {
        self.bytes_in_flight = 0;
        (self.probes, self.probes_from) = (frames, self.next_number);
    }

    pub fn has_probes(&self) -> bool {
        self.probes > 0
    }

    /// The first frame that could be a probe: older ones left before the silence was noticed.
    pub fn probes_from(&self) -> u32 {
        self.probes_from
    }

    /// A frame leaves, and whatever it carries serves as a probe (RFC 9002, 6.2.4).
    pub fn count_probe(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    pub fn end_probes(&mut self) {
        self.probes = 0;
    }

    /// In slots: a slot begins; `heard`: a report came since the slot before.
    pub fn begin_slot(&mut self, heard: bool) {
        //= wildnet 3.1: without an acknowledgement go on with new packets, then repeat the oldest
        self.repeat_before = if heard {
            self.settled
        } else {
            self.next_number
        };
    }

    pub fn repeat_before(&self) -> u32 {
        self.repeat_before
    }
}
