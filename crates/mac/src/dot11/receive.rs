//! Received frames: answered, handed up, or honoured as reservations.

use chappe_core::{
    Address, Arrival, DropReason, Instant, Layer, LinkEvent, LinkNode, Mac, Mode, Reception,
    TraceEvent, Transmit,
};
use chappe_wire::dot11::{CTS_LEN, Data, FCS_LEN, Frame, Kind, NavTime, Repr};
use chappe_wire::llc::{self, EtherType};

use super::{Claiming, Dot11, State};

/// An ACK or CTS: scheduled for an instant, then on the air.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Due {
        at: Instant,
        frame: Repr,
        mode: Mode,
    },
    OnAir,
}

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// The radio could not decode a frame, which ends now.
    #[inline(never)] // as `on_carrier`
    pub(super) fn on_failed<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        self.counters.undecodable += 1;
        self.note_end(now);
        if self.config.eifs {
            self.medium.on_undecodable(now, self.timing.eifs);
        }
        self.miss_answer(now, link);
        self.note_undecodable(now);
        self.link_changed(now, link);
        self.reconsider(now);
    }

    /// A good frame ended.
    #[inline(never)] // as `on_carrier`
    pub(super) fn on_received<L: LinkNode>(
        &mut self,
        now: Instant,
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        self.note_end(now);
        let mut changed = self.medium.on_good_frame(now);
        if reception.mode.aggregate {
            changed |= self.on_aggregate(now, reception, link);
            if changed {
                self.reconsider(now);
            }
            return;
        }
        match Frame::new(reception.psdu) {
            Ok(frame) if frame.receiver_octets() == self.address.to_eui48() => {
                if let Some(claims) = self.claims.get_mut() {
                    claims.undecodable = 0;
                }
                self.on_own(now, &frame, reception, link);
            }
            Ok(frame) => {
                self.miss_answer(now, link);
                changed |= self.reserve(now, &frame, reception);
                self.note_near(now, &frame);
                if frame.kind() == Kind::Data {
                    self.on_others_data(now, &frame, reception, link);
                }
            }
            Err(_) => {
                self.miss_answer(now, link);
                self.drop(DropReason::Malformed);
            }
        }
        if changed {
            self.reconsider(now);
        }
    }

    /// A frame for others was heard: its sender is near.
    #[inline]
    fn note_near(&mut self, now: Instant, frame: &Frame<'_>) {
        if let Some(claims) = self.claims.get_mut()
            && claims.config.ecn.is_some_and(|ecn| !ecn.heard_too)
            && let Ok(data) = Data::parse(frame)
        {
            claims.near.note(data.transmitter, now);
        }
    }

    /// A frame for this station.
    fn on_own<L: LinkNode>(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        match (Repr::parse(frame), self.state) {
            (Ok(Repr::Ack { .. }), State::AwaitingAck) => self.on_ack(now, link),
            (Ok(Repr::Cts { .. }), State::AwaitingCts) => self.on_cts(now),
            (Ok(Repr::BlockAck(block)), State::AwaitingBlockAck) => {
                self.on_block_ack(now, block, link);
            }
            (Ok(Repr::BlockAckReq(block)), _) => {
                self.miss_answer(now, link);
                self.answer_block(now, block.transmitter, Some(block.start), reception.mode);
            }
            (Ok(Repr::Ack { .. } | Repr::Cts { .. } | Repr::BlockAck(_)), _) => {
                self.miss_answer(now, link);
                self.drop(DropReason::Stale);
            }
            (
                Ok(Repr::Rts {
                    transmitter,
                    duration,
                    ..
                }),
                _,
            ) => {
                self.miss_answer(now, link);
                self.answer_rts(now, transmitter, duration);
            }
            (Ok(Repr::Data(data)), _) => {
                self.miss_answer(now, link);
                self.on_own_data(now, data, frame.body(), reception, link);
            }
            (Err(_), _) => {
                self.miss_answer(now, link);
                self.drop(DropReason::Malformed);
            }
        }
    }

    /// 10.3.2.11: anything but the expected answer, while it is awaited, means that the attempt failed.
    pub(super) fn miss_answer<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        match self.state {
            State::AwaitingCts => self.on_no_cts(now, link),
            State::AwaitingAck => self.on_no_ack(now, link),
            State::AwaitingBlockAck => self.on_no_block_ack(now, link),
            _ => {}
        }
    }

    /// 10.3.2.9: a CTS after SIFS, unless another station has reserved the medium.
    fn answer_rts(&mut self, now: Instant, receiver: Address, duration: NavTime) {
        if self.config.nav && self.medium.is_reserved(now) {
            self.counters.cts_withheld += 1;
            return;
        }
        // What the RTS reserved, less the SIFS and this CTS (9.3.1.3).
        let left = duration
            .span()
            .saturating_sub(self.timing.sifs + self.timing.cts);
        let duration = NavTime::covering(left);
        let mode = self.config.control;
        self.answer(now, Repr::Cts { receiver, duration }, mode);
    }

    fn on_own_data<L: LinkNode>(
        &mut self,
        now: Instant,
        data: Data,
        body: &[u8],
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        // 10.3.2.11: the ACK leaves after SIFS whatever the state of the medium, duplicates included.
        let receiver = data.transmitter;
        let duration = NavTime::ZERO;
        let mode = self.config.answer_mode(reception.mode);
        self.answer(now, Repr::Ack { receiver, duration }, mode);
        // The sender missed the ACK: it gets another one, the link node gets no second copy.
        if self
            .duplicates
            .is_duplicate(data.transmitter, data.sequence, data.retry)
        {
            self.counters.duplicates += 1;
            self.drop(DropReason::Duplicate);
            return;
        }
        if self.hand_up(now, &data, body, reception, link) {
            self.counters.received += 1;
        }
    }

    /// Data for a group or for another station.
    pub(super) fn on_others_data<L: LinkNode>(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        reception: &Reception<'_>,
        link: &mut L,
    ) {
        let group = frame.to_group();
        if !group && !self.config.overhear {
            return;
        }
        let Ok(data) = Data::parse(frame) else {
            self.drop(DropReason::Malformed);
            return;
        };
        if self.hand_up(now, &data, frame.body(), reception, link) {
            match group {
                true => self.counters.received += 1,
                false => self.counters.overheard += 1,
            }
        }
    }

    /// Hands a payload to the node above if BSSID and EtherType match. True if it did.
    pub(super) fn hand_up<L: LinkNode>(
        &mut self,
        now: Instant,
        data: &Data,
        body: &[u8],
        reception: &Reception<'_>,
        link: &mut L,
    ) -> bool {
        let sdu = match (self.config.llc, llc::parse(body)) {
            (None, _) => body,
            (Some(wanted), Ok((found, sdu))) if found == wanted => sdu,
            // A notification is the MACs' own traffic and never reaches the link node.
            (Some(_), Ok((EtherType::EXPERIMENTAL_2, sdu))) if self.claims.get().is_some() => {
                self.on_notice(now, sdu, link);
                return false;
            }
            (Some(_), Ok(_)) => return self.drop(DropReason::NotForUs),
            (Some(_), Err(_)) => return self.drop(DropReason::Malformed),
        };
        if data.bssid != self.config.bssid {
            return self.drop(DropReason::NotForUs);
        }
        self.trace.push(TraceEvent::Received {
            layer: Layer::Mac,
            from: data.transmitter,
            bytes: reception.psdu.len() as u32,
        });
        let arrival = Arrival {
            from: data.transmitter,
            to: data.receiver,
            sdu,
            power: reception.power,
        };
        link.handle_link(now, LinkEvent::Received(arrival));
        true
    }

    /// 10.3.2.4: frames for others reserve the medium. True if the reservation grew.
    pub(super) fn reserve(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        reception: &Reception<'_>,
    ) -> bool {
        let (true, Some(duration)) = (self.config.nav, frame.duration()) else {
            return false;
        };
        let void = (self.config.nav_reset && frame.kind() == Kind::Rts).then(|| {
            // 10.3.2.4: two SIFS, a CTS at the rate of the RTS, aRxPHYStartDelay, two slots.
            let mode = reception.mode;
            let cts = mode.airtime(CTS_LEN + FCS_LEN);
            self.timing.sifs * 2 + cts + mode.header_time() + self.timing.slot * 2
        });
        self.medium.reserve(now, duration.span(), void)
    }

    /// Schedules an answer and suspends contention until it has left. A station that is sending cannot answer.
    pub(super) fn answer(&mut self, now: Instant, frame: Repr, mode: Mode) {
        let free = matches!(self.state, State::Idle | State::Contending | State::Granted);
        if !free || self.answer.is_some() {
            return;
        }
        let at = now + self.timing.sifs;
        self.answer = Some(Answer::Due { at, frame, mode });
        // The boundary was reached at this same instant and no frame is taken yet: the answer goes first.
        if self.state == State::Granted {
            self.state = State::Contending;
        }
        self.reconsider(now);
    }

    /// The scheduled answer; `None` once it was handed to the radio.
    pub(super) fn poll_answer(&mut self, psdu: &mut [u8]) -> Option<Transmit> {
        let Some(Answer::Due { at, frame, mode }) = self.answer else {
            return None;
        };
        let Ok(len) = frame.emit(psdu) else {
            self.answer = None;
            return None;
        };
        self.answer = Some(Answer::OnAir);
        match frame {
            Repr::Cts { .. } => self.counters.cts_sent += 1,
            Repr::BlockAck(_) => self.counters.block_acks_sent += 1,
            _ => self.counters.acks_sent += 1,
        }
        Some(Transmit {
            at,
            len,
            mode,
            power: None,
        })
    }

    /// Notes that a transmission ended. True if it was an answer.
    pub(super) fn end_answer(&mut self, now: Instant) -> bool {
        if !matches!(self.answer, Some(Answer::OnAir)) {
            return false;
        }
        self.answer = None;
        self.note_end(now);
        self.reconsider(now);
        true
    }

    /// Counts a dropped frame. Always false, the result of [`Self::hand_up`].
    pub(super) fn drop(&mut self, why: DropReason) -> bool {
        self.counters.drops.count(why);
        self.trace.push(TraceEvent::Dropped {
            layer: Layer::Mac,
            why,
        });
        false
    }
}
