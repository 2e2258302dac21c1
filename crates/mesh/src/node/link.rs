//! Frames of the link: which one leaves next, and what arrives.

use chappe_core::{Address, Arrival, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend};

use chappe_dpclo::header;

use super::{Node, address};
use crate::frame::{self, ALL, AROUND, Frame, Kind};
use crate::settings::Hop;

/// The class of frames that no router's packet is in.
const CONTROL: Class = Class::Control;

impl Node {
    /// Writes the frame that leaves now: a repeated one, the router's, an announcement, or acknowledgements alone.
    pub(super) fn next_frame(
        &mut self,
        now: Instant,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        if self.gate.open_at() > now {
            return None;
        }
        let data = self.gate.data_at() <= now;
        if data && self.recovery.has_lost() {
            return self.write_repeat(now, sdu);
        }
        let allowed = match data && self.recovery.has_room() {
            true => allowed,
            false => allowed.and(Classes::NONE.with(CONTROL)),
        };
        if let Some(send) = self.write_routed(now, allowed, sdu) {
            return Some(send);
        }
        let mut body = [0; 512];
        let announced = match self.announcements.is_due(now) {
            true => self.announcements.write(now, &mut body),
            false => None,
        };
        let (kind, len) = match announced {
            Some(len) => (Kind::Announcement, len),
            None if self.recovery.owes(now) => (Kind::Nothing, 0),
            None => return None,
        };
        if kind == Kind::Nothing {
            self.recovery.acked_alone();
        }
        let at = self.write_head(now, kind, (ALL, 0), sdu)?;
        sdu.get_mut(at..at + len)?.copy_from_slice(body.get(..len)?);
        self.count_control(at + len);
        Some(LinkSend::broadcast(at + len, CONTROL))
    }

    fn count_control(&mut self, octets: usize) {
        self.counters.control_octets += octets as u64;
        self.counters.control_frames += 1;
    }

    fn write_head(
        &mut self,
        now: Instant,
        kind: Kind,
        to: (u16, u16),
        sdu: &mut [u8],
    ) -> Option<usize> {
        let (acks, count) = self.recovery.acks(now);
        frame::emit(kind, self.life, acks.get(..count)?, to, sdu)
    }

    fn write_repeat(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        let (acks, count) = self.recovery.acks(now);
        let repeat = self.recovery.repeat(now)?;
        let acks = acks.get(..count)?;
        let to = (repeat.to, repeat.number);
        let at = frame::emit(Kind::Router, self.life, acks, to, sdu)?;
        let len = at + repeat.body.len();
        sdu.get_mut(at..len)?.copy_from_slice(repeat.body);
        Some(LinkSend::broadcast(len, repeat.class))
    }

    /// A frame of the router: for all, or for a neighbour by recovery or by the card.
    fn write_routed(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        // The acknowledgements stand before the body, so the body is written where the longest head ends, and moved.
        let send = self
            .router
            .poll_link(now, allowed, sdu.get_mut(AROUND..)?)?;
        let body = AROUND..AROUND + send.len;
        let to = send.to.node_number();
        let (kind, control) = (Kind::Router, send.class == CONTROL);
        let head = match (to, self.config.hop) {
            (Some(to), Hop::Broadcast) => {
                let about = (send.token, send.class);
                let number = self.recovery.send(now, to, about, sdu.get(body.clone())?);
                (to, number)
            }
            (Some(to), Hop::Unicast) => (to, 0),
            (None, _) => (ALL, 0),
        };
        let at = self.write_head(now, kind, head, sdu)?;
        sdu.copy_within(body, at);
        let len = at + send.len;
        if control {
            self.count_control(len);
        }
        Some(match self.config.hop {
            Hop::Broadcast => LinkSend::broadcast(len, send.class),
            Hop::Unicast => LinkSend { len, ..send },
        })
    }

    /// A frame arrived.
    pub(super) fn on_arrival(&mut self, now: Instant, arrival: Arrival<'_>) {
        self.gate.heard(now, arrival.sdu.len());
        let from = arrival.from.node_number();
        let Some(from) = from.filter(|&from| from != self.config.number) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(frame) = Frame::parse(arrival.sdu) else {
            self.counters.malformed += 1;
            return;
        };
        self.recovery.heard(now, from);
        for ack in frame.acks() {
            if ack.node == self.config.number {
                let began = self.gate.began(now, arrival.sdu.len());
                self.recovery.on_ack(now, from, ack, began);
            }
        }
        match frame.kind {
            Kind::Nothing => {}
            Kind::Announcement => {
                let taken = self.announcements.on_frame(now, frame.body);
                self.counters.announcements += u64::from(taken.is_err());
            }
            Kind::Router => self.on_routed(now, arrival, from, &frame),
        }
    }

    fn on_routed(&mut self, now: Instant, arrival: Arrival<'_>, from: u16, frame: &Frame<'_>) {
        let mine = frame.to == self.config.number;
        // Frames with number 0 are recovered by the card.
        if mine
            && frame.number != 0
            && !self
                .recovery
                .on_frame(now, from, (frame.life, frame.number))
        {
            return;
        }
        let to = match frame.to {
            ALL => Address::BROADCAST,
            node => address(node),
        };
        if !mine
            && frame.to != ALL
            && let Ok(header::Frame::Data(data, _) | header::Frame::Priced(data, _, _)) =
                header::parse(frame.body)
        {
            let ends = frame.to == data.destination;
            self.gate.passing(now, arrival.sdu.len(), ends);
        }
        let routed = Arrival {
            to,
            sdu: frame.body,
            ..arrival
        };
        self.router.handle_link(now, LinkEvent::Received(routed));
    }
}
