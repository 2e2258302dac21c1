//! Received frames: acknowledged, answered, handed up.

use chappe_core::{
    Address, Arrival, Dbm, DropReason, Duration, Instant, Layer, LinkEvent, LinkNode, Mac,
    Reception, TraceEvent, Transmit,
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

/// A received frame whose acknowledgement comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    len: u8,
    psdu: [u8; PSDU_MAX],
    power: Option<Dbm>,
}

impl Arrived {
    fn new(reception: &Reception<'_>) -> Arrived {
        let mut psdu = [0; PSDU_MAX];
        let len = reception.psdu.len().min(PSDU_MAX);
        if let (Some(to), Some(from)) = (psdu.get_mut(..len), reception.psdu.get(..len)) {
            to.copy_from_slice(from);
        }
        Arrived {
            len: len as u8,
            psdu,
            power: reception.power,
        }
    }

    fn psdu(&self) -> &[u8] {
        self.psdu.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Answer {
    /// When its transmission ends.
    pub fn end(&self) -> Instant {
        self.at + Config::MODE.airtime(ACK_LEN + FCS_LEN)
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
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
        // It confirms reception only: a forged frame is acknowledged too. Processing that frame, its security included, takes
        // longer on a mote than the turnaround, so the frame waits until the radio has its acknowledgement.
        if header.ack_request && !to.is_broadcast() {
            let asks = header.kind == Kind::Command && self.indirect.has(from);
            if self.acknowledge(now, sequence, asks) {
                self.arrived = Some(Arrived::new(reception));
                return;
            }
        }
        self.take_in(now, frame, reception.power, link);
    }

    /// Processes the frame whose acknowledgement was handed to the radio, if there is one.
    pub(super) fn take_in_arrived<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if let Some(arrived) = self.arrived.take()
            && let Ok(frame) = Frame::new(arrived.psdu())
        {
            self.take_in(now, &frame, arrived.power, link);
            self.link_changed(now, link);
        }
    }

    /// Opens a frame for this station, and hands it up.
    fn take_in<L: LinkNode>(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        power: Option<Dbm>,
        link: &mut L,
    ) {
        let header = frame.header();
        let (Some(to), Some(from), Some(sequence)) =
            (header.destination, header.source, header.sequence)
        else {
            return;
        };
        let (to, from) = (to.address(), from.address());
        let mut clear = [0; PSDU_MAX];
        let payload = match &mut self.security {
            None if header.security.is_some() => return self.drop(DropReason::Unauthentic),
            None => frame.payload(),
            Some(security) => match security.open(frame, from, &mut clear) {
                Some(payload) => payload,
                None => return self.drop(DropReason::Unauthentic),
            },
        };
        // After the security check: a forged frame must not make the genuine one with its number a duplicate.
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
            bytes: (frame.header_octets().len() + frame.payload().len()) as u32,
        });
        self.counters.received += 1;
        let arrival = Arrival {
            from,
            to,
            sdu: payload,
            power,
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
    /// frame to its radio cannot answer: false.
    fn acknowledge(&mut self, now: Instant, sequence: u8, pending: bool) -> bool {
        if self.state == State::Sending || self.answer_end(now).is_some() {
            return false;
        }
        self.answer = Some(Answer {
            at: now + self.config.turnaround,
            sequence,
            pending,
            on_air: false,
        });
        true
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
