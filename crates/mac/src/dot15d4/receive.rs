//! Received frames: acknowledged, answered, handed up.

use chappe_core::{
    Address, Arrival, DropReason, Duration, Instant, Layer, LinkEvent, LinkNode, Reception,
    TraceEvent, Transmit,
};
use chappe_wire::dot15d4::{ACK_LEN, DATA_REQUEST, FCS_LEN, Frame, Header, Kind, PSDU_MAX};

use super::{Config, Dot15d4, State};

/// An acknowledgement: scheduled for an instant, then on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    at: Instant,
    sequence: u8,
    pending: bool,
    on_air: bool,
}

impl Answer {
    /// When its transmission ends.
    pub fn end(&self) -> Instant {
        self.at + Config::MODE.airtime(ACK_LEN + FCS_LEN)
    }
}

impl<const INDIRECT: usize> Dot15d4<INDIRECT> {
    /// A good frame ended.
    pub(super) fn on_received<L: LinkNode>(
        &mut self,
        now: Instant,
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        let Ok(frame) = Frame::new(reception.psdu) else {
            return self.drop(DropReason::Malformed);
        };
        let header = *frame.header();
        match (header.kind, header.sequence) {
            (Kind::Ack, Some(sequence)) => {
                // An immediate acknowledgement carries no address: only the sequence number identifies it.
                let awaited = self.state == State::AwaitingAck
                    && self.job().is_some_and(|job| job.sequence == sequence);
                match awaited {
                    true => self.on_ack(now, header.pending, link),
                    false => self.drop(DropReason::Stale),
                }
            }
            (Kind::Data | Kind::Command, Some(sequence)) => {
                self.on_frame(now, &frame, sequence, reception, link);
            }
            _ => self.drop(DropReason::Malformed),
        }
    }

    fn on_frame<L: LinkNode>(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        sequence: u8,
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        let header = frame.header();
        let (Some(to), Some(from)) = (header.destination, header.source) else {
            return self.drop(DropReason::Malformed);
        };
        let (to, from) = (to.address(), from.address());
        let ours =
            matches!(header.destination_pan, Some(pan) if pan == self.config.pan || pan == 0xffff);
        if !ours || (to != self.address && !to.is_broadcast()) {
            return self.drop(DropReason::NotForUs);
        }
        // No valid frame has these as its source.
        if from == self.address || from.is_broadcast() {
            return self.drop(DropReason::Malformed);
        }
        // The acknowledgement must leave a turnaround from now, before security is checked: it confirms reception only
        // (a forged frame is acknowledged too).
        if header.ack_request && !to.is_broadcast() {
            let asks = header.kind == Kind::Command && self.indirect.has(from);
            self.acknowledge(now, sequence, asks);
        }
        let mut clear = [0; PSDU_MAX];
        let payload = match &mut self.security {
            None if header.security.is_some() => return self.drop(DropReason::Unauthentic),
            None => frame.payload(),
            Some(security) => match security.open(frame, from, &mut clear) {
                Some(payload) => payload,
                None => return self.drop(DropReason::Unauthentic),
            },
        };
        if self.duplicates.is_duplicate(now, from, sequence) {
            self.counters.duplicates += 1;
            return self.drop(DropReason::Duplicate);
        }
        if header.kind == Kind::Command {
            return self.on_command(now, from, payload);
        }
        if let Some(leaf) = &mut self.leaf
            && !to.is_broadcast()
        {
            let wait = self.config.burst.then_some(self.config.data_wait);
            leaf.received(now, header.pending, wait);
        }
        self.trace.push(TraceEvent::Received {
            layer: Layer::Mac,
            from,
            bytes: reception.psdu.len() as u32,
        });
        self.counters.received += 1;
        let arrival = Arrival {
            from,
            to,
            sdu: payload,
            power: reception.power,
        };
        link.handle_link(now, LinkEvent::Received(arrival));
        self.pending = !link.pending().is_empty();
    }

    /// A data request: the child listens from the acknowledgement's end on.
    fn on_command(&mut self, now: Instant, from: Address, payload: &[u8]) {
        if payload.first() != Some(&DATA_REQUEST) {
            return self.drop(DropReason::NotForUs);
        }
        self.counters.requests_received += 1;
        if self.indirect.asked(from, now + self.config.data_wait) {
            self.preempt();
        }
    }

    /// 6.7.4.3: the acknowledgement leaves a turnaround after the frame's end, without CSMA. A station that has handed a
    /// frame to its radio cannot answer.
    fn acknowledge(&mut self, now: Instant, sequence: u8, pending: bool) {
        if self.state == State::Sending || self.answer_end(now).is_some() {
            return;
        }
        self.answer = Some(Answer {
            at: now + self.config.turnaround,
            sequence,
            pending,
            on_air: false,
        });
    }

    /// When the scheduled acknowledgement's transmission ends; `None` if there is none.
    pub(super) fn answer_end(&mut self, now: Instant) -> Option<Instant> {
        // A radio that never reports the end must not block the station forever. One whose clock drifts reports it a
        // little late, hence the margin.
        let symbol = Duration::from_micros(16);
        self.answer
            .take_if(|answer| answer.end() + symbol * 60 <= now);
        let end = self.answer.map(|answer| answer.end())?;
        Some(end.max(now + symbol))
    }

    /// The scheduled acknowledgement; `None` once it was handed to the radio.
    pub(super) fn poll_answer(&mut self, psdu: &mut [u8]) -> Option<Transmit> {
        let answer = self.answer.as_mut().filter(|answer| !answer.on_air)?;
        answer.on_air = true;
        let header = Header::ack(answer.sequence, answer.pending);
        let Ok(len) = header.emit(psdu) else {
            self.answer = None;
            return None;
        };
        self.counters.acks_sent += 1;
        Some(Transmit {
            at: answer.at,
            len,
            mode: Config::MODE,
            power: None,
        })
    }

    /// Notes that a transmission ended. True if it was an acknowledgement.
    pub(super) fn end_answer(&mut self) -> bool {
        self.answer.take_if(|answer| answer.on_air).is_some()
    }

    pub(super) fn drop(&mut self, why: DropReason) {
        self.counters.drops.count(why);
        let layer = Layer::Mac;
        self.trace.push(TraceEvent::Dropped { layer, why });
    }
}
