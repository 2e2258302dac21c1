//! Frames of the link: which one leaves next, and what arrives.

use chappe_core::{
    Address, Arrival, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend,
};

use super::routed::Routed;
use super::{Node, ROUTED, address};
use crate::frame::{self, ACKS_MAX, ALL, Ack, Burst, Frame, Kind, PART, Part};
use crate::recovery::Weight;
use crate::settings::Hop;

/// The class of frames that no router's packet is in.
const CONTROL: Class = Class::Control;

/// Octets that probes and updates need behind packets.
const CONTROL_ROOM: usize = 600;
/// How long the host may take to answer a packet: some wake-ups of a process.
const TURN: Duration = Duration::from_micros(500);
/// The same on a cable, where an answer alone costs both ends a wake-up, and no collision is to be feared: less than half of the time
/// after which a frame is repeated there (5 ms).
const TURN_WIRED: Duration = Duration::from_millis(2);
/// The same where many contend, in full frames: an acknowledgement alone takes a quarter of one, and TCP's acknowledgement, or the next data,
/// carries it. Half of all frames were such ones before.
const TURN_OF_MANY: u64 = 2;
/// The most frames of a burst while urgent packets on long paths are about: at each hop they wait for one, and for those in the card. Over
/// three hops bursts of four carry 7 % more TCP, and make the median of pings a third longer (docs/studies/mesh.md).
const BURST_HASTE: u8 = 2;
/// A path of a larger ETX is long. Over two hops that lose a fifth each way (3.1) bursts of four carry 5 % more TCP, and 95 % of
/// the pings take 62 instead of 47 ms (docs/studies/mesh.md).
const LONG: f64 = 3.6;
/// With more neighbours than these, turns cost collisions: on twelve nodes with four flows, bursts of four carry 9 % more than of two, and
/// two copies of small packets 9 % more than four, with shorter pings. With 3 a node of the five (`examples/mesh-five.toml`) changed its ways
/// when a link of 10 % came and went; with 5 the twelve carried 5 % less (docs/studies/mesh.md).
const FEW: usize = 4;
/// Urgent packets are about for so long after one: twice the usual interval of pings.
const HASTE: Duration = Duration::from_secs(2);
/// What a node sends that has no more to say than answers, in octets.
const SMALL: usize = 600;
/// Full frames in whose time the next burst to this node should be over.
const QUIET: u64 = 12;

/// A frame that is being written.
struct Draft {
    acks: ([Ack; ACKS_MAX], usize),
    /// Where the next part begins.
    at: usize,
    /// The class of the most urgent part, and whether any is a packet.
    class: Option<Class>,
    data: bool,
}

impl Node {
    /// Writes the frame that leaves now: a repeated one, the router's, an announcement, or acknowledgements alone.
    pub(super) fn next_frame(
        &mut self,
        now: Instant,
        allowed: Classes,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        if self.config.hop == Hop::Unicast {
            return self.next_unicast(now, allowed, sdu);
        }
        self.begin_burst(now);
        if self.burst.rest > 0 {
            let send = self.write_of_burst(now, sdu);
            if send.is_some() {
                return send;
            }
        }
        if self.gate.open_at() > now || self.answer.is_awaited(now) {
            return None;
        }
        let control = allowed.and(Classes::NONE.with(CONTROL));
        self.write_frame(now, control, false, sdu)
            .or_else(|| self.write_announcement(now, sdu))
    }

    /// The router's next frame for the card to recover, or a broadcast.
    fn next_unicast(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if self.gate.open_at() > now {
            return None;
        }
        let at = frame::emit(Kind::Router, (self.life, self.burst), &[], sdu)?;
        let Some(send) = self
            .router
            .poll_link(now, allowed, sdu.get_mut(at + PART..)?)
        else {
            return self.write_announcement(now, sdu);
        };
        let to = send.to.node_number().unwrap_or(ALL);
        let len = frame::emit_part((to, 0), send.len, at, sdu)?;
        if send.class == CONTROL {
            self.count_control(len);
        }
        Some(LinkSend { len, ..send })
    }

    /// Begins a burst, if the channel is this node's as far as it knows, and something waits. While others hold the channel, small
    /// bodies that are urgent leave anyway: they take little of it.
    fn begin_burst(&mut self, now: Instant) {
        if self.burst.rest > 0 || self.gate.open_at() > now {
            return;
        }
        let (mut count, mut octets) = self.recovery.lost();
        let has_room = self.recovery.has_room();
        if has_room {
            let (packets, payload) = self.router.queued();
            count += packets;
            octets += payload + packets * ROUTED;
        }
        let frames = match self.gate.data_at() > now {
            true => {
                let urgent = has_room && self.router.pending().contains(Class::Urgent);
                usize::from(urgent || self.recovery.has_small_lost())
            }
            false => (octets + count * PART).div_ceil(self.room.max(1)),
        };
        let small = octets < SMALL || self.gate.data_at() > now;
        if frames == 0 || small && self.answer.is_awaited(now) && !self.asks_at_once() {
            return;
        }
        self.asked = false;
        if small {
            self.answer.slot.1 = now;
        }
        // Two short frames instead of one: what is lost costs the time of a burst. A cable hardly loses, and where many contend a frame
        // costs more than it saves.
        let twice = small && self.gate.is_shared() && self.has_few_neighbours();
        let least = 1 + usize::from(twice);
        let recent = |at| now.saturating_since(at) < HASTE;
        let haste = self.has_few_neighbours() && self.urgent_at.is_some_and(recent);
        let most = match self.gate.is_shared() && haste {
            true => BURST_HASTE,
            false => self.config.air.burst_max(),
        };
        (self.express, self.longest) = (self.gate.data_at() > now, 0);
        self.burst = Burst {
            number: self.burst.number.wrapping_add(1),
            rest: frames.clamp(least, usize::from(most)) as u8,
            onward: 0,
        };
    }

    /// Whether an urgent packet does not wait until a burst to this node is over: where many contend, most of those around hear both its
    /// ends, and the burst may be long in coming.
    fn asks_at_once(&self) -> bool {
        let asked = self.asked && self.recovery.has_room();
        !self.has_few_neighbours() && (asked || self.recovery.has_hasty_lost())
    }

    /// Whether few neighbours contend, so that another turn is cheap.
    pub(super) fn has_few_neighbours(&self) -> bool {
        self.neighbours.len() <= FEW
    }

    /// How long an acknowledgement of a packet for this host waits for the host's answer.
    fn turn(&self) -> Duration {
        match (self.gate.is_shared(), self.has_few_neighbours()) {
            (false, _) => TURN_WIRED,
            (true, true) => TURN,
            (true, false) => self.config.air.exchange(self.config.mtu) * TURN_OF_MANY,
        }
    }

    /// Whether turns are put off after a burst: on a shared channel where many contend.
    fn puts_off(&self) -> bool {
        self.gate.is_shared() && !self.has_few_neighbours()
    }

    /// By how much this node's next turn is put off after a neighbour's burst, at random, where many wait for its end: cards draw their
    /// back-off from 32 slots only, and of eight that begin at once two collide in one of three cases. It is drawn once for each burst.
    fn spread(&self, from: u16, burst: u8) -> Duration {
        if !self.puts_off() {
            return Duration::ZERO;
        }
        let most =
            self.config.air.exchange(self.config.mtu) * u64::from(self.config.air.burst_max());
        most.mul_f64(
            self.spreads
                .fraction_at(u64::from(from) << 8 | u64::from(burst)),
        )
    }

    /// Notes a body that was sent or heard, if it is an urgent packet on a long path. A path without a route counts as long.
    fn note_urgent(&mut self, now: Instant, body: &Routed<'_>) {
        let Some(ends) = body.urgent() else {
            return;
        };
        let me = self.config.number;
        let others = ends.iter().filter(|&&end| end != me);
        let path: f64 = others
            .map(|&end| self.router.distance(end).unwrap_or(f64::INFINITY))
            .sum();
        if path > LONG {
            self.urgent_at = Some(now);
        }
    }

    /// The next frame of the burst.
    fn write_of_burst(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        self.burst.rest -= 1;
        let send = match self.express {
            true => {
                let most = sdu.len().min(SMALL);
                let few = Classes::NONE.with(CONTROL).with(Class::Urgent);
                self.write_frame(now, few, true, sdu.get_mut(..most)?)
            }
            false => self.write_frame(now, Classes::ALL, true, sdu),
        };
        let len = send.map_or(0, |send| send.len);
        self.longest = self.longest.max(len);
        if send.is_none() || self.burst.rest == 0 {
            self.end_burst(now, len);
        }
        send
    }

    /// The last frame of a burst, of `last` octets, is handed down: the neighbours go on with it. Where many wait for its end, its sender
    /// waits for as long as they do, and does not begin before them: that takes an eighth to a quarter from the time of pings, and nothing
    /// from TCP (docs/studies/mesh.md).
    fn end_burst(&mut self, now: Instant, last: usize) {
        let (end, spread) = match self.longest >= SMALL && self.puts_off() {
            true => {
                let takes = match last {
                    0 => Duration::ZERO,
                    octets => self.config.air.exchange(octets),
                };
                let spread = self.spread(self.config.number, self.burst.number);
                (self.gate.open_at().max(now) + takes, spread)
            }
            false => (self.gate.open_at(), Duration::ZERO),
        };
        let onward = Burst {
            rest: 0,
            ..self.burst
        };
        self.gate.follow(end, self.longest, onward, spread);
        self.burst.rest = 0;
    }

    fn count_control(&mut self, octets: usize) {
        self.counters.control_octets += octets as u64;
        self.counters.control_frames += 1;
    }

    /// Writes bodies that must be repeated, if `repeats`, and those of the router, as many as fit. `None` if there is nothing.
    fn write_frame(
        &mut self,
        now: Instant,
        allowed: Classes,
        repeats: bool,
        sdu: &mut [u8],
    ) -> Option<LinkSend> {
        let acks = self.recovery.acks(now);
        let about = (self.life, self.burst);
        let mut draft = Draft {
            at: frame::emit(Kind::Router, about, acks.0.get(..acks.1)?, sdu)?,
            acks,
            class: None,
            data: false,
        };
        let order = self.recovery.order();
        while draft.at + PART < sdu.len() {
            let written = repeats && self.write_repeat(now, &mut draft, sdu).is_some()
                || self.write_routed(now, allowed, &mut draft, sdu).is_some()
                || (repeats || draft.class.is_some())
                    && self.write_copy(order, &mut draft, sdu).is_some();
            if !written {
                break;
            }
        }
        if draft.class.is_none() && !self.recovery.owes(now) {
            return None;
        }
        if draft.class.is_none() {
            self.recovery.acked_alone();
        }
        // What the first part says of the burst was not known before.
        frame::emit(
            Kind::Router,
            (self.life, self.burst),
            draft.acks.0.get(..draft.acks.1)?,
            sdu,
        )?;
        self.recovery.told(draft.acks.0.get(..draft.acks.1)?);
        if !draft.data {
            self.count_control(draft.at);
        }
        Some(LinkSend::broadcast(
            draft.at,
            draft.class.unwrap_or(CONTROL),
        ))
    }

    /// Announcements alone in a frame.
    fn write_announcement(&mut self, now: Instant, sdu: &mut [u8]) -> Option<LinkSend> {
        if !self.announcements.is_due(now) {
            return None;
        }
        let (acks, count) = self.recovery.acks(now);
        let acks = acks.get(..count)?;
        let at = frame::emit(Kind::Announcement, (self.life, self.burst), acks, sdu)?;
        let mut body = [0; 512];
        let len = self.announcements.write(now, &mut body)?;
        sdu.get_mut(at + PART..at + PART + len)?
            .copy_from_slice(body.get(..len)?);
        let end = frame::emit_part((ALL, 0), len, at, sdu)?;
        self.recovery.told(acks);
        self.count_control(end);
        Some(LinkSend::broadcast(end, CONTROL))
    }

    fn write_repeat(&mut self, now: Instant, draft: &mut Draft, sdu: &mut [u8]) -> Option<()> {
        let room = sdu.len().checked_sub(draft.at + PART)?;
        let repeat = self.recovery.repeat(now, self.burst.number, room)?;
        let body = draft.at + PART..draft.at + PART + repeat.body.len();
        let len = body.len();
        sdu.get_mut(body)?.copy_from_slice(repeat.body);
        let goes = Routed::of(repeat.body).goes_on(repeat.to);
        let (to, class) = ((repeat.to, repeat.number), repeat.class);
        self.finish_part(draft, to, (class, len, goes), sdu)
    }

    fn write_copy(&mut self, order: u64, draft: &mut Draft, sdu: &mut [u8]) -> Option<()> {
        let room = sdu.len().checked_sub(draft.at + PART)?;
        let copy = self.recovery.copy(self.burst.number, room, order)?;
        let body = draft.at + PART..draft.at + PART + copy.body.len();
        let len = body.len();
        sdu.get_mut(body)?.copy_from_slice(copy.body);
        let (to, copy_class) = ((copy.to, copy.number), copy.class);
        draft.at = frame::emit_part(to, len, draft.at, sdu)?;
        draft.class = draft.class.max(Some(copy_class));
        draft.data = true;
        Some(())
    }

    /// A frame of the router: for all, or for a neighbour.
    fn write_routed(
        &mut self,
        now: Instant,
        allowed: Classes,
        draft: &mut Draft,
        sdu: &mut [u8],
    ) -> Option<()> {
        let begin = draft.at + PART;
        let room = sdu.get_mut(begin..)?;
        // Probes and updates need more room than is left behind a packet.
        let mut allowed = match draft.class {
            Some(_) if room.len() < CONTROL_ROOM => Class::BY_URGENCY
                .into_iter()
                .filter(|&class| class != CONTROL && allowed.contains(class))
                .fold(Classes::NONE, Classes::with),
            _ => allowed,
        };
        if !self.recovery.has_room() {
            allowed = allowed.and(Classes::NONE.with(CONTROL));
        }
        let send = self.router.poll_link(now, allowed, room)?;
        let body = sdu.get(begin..begin + send.len)?;
        let routed = Routed::of(body);
        self.note_urgent(now, &routed);
        let (to, goes) = match send.to.node_number() {
            // Number 0: the neighbour does not acknowledge it. It is not repeated, since the router asks again.
            Some(to) if matches!(routed, Routed::IdleRequest) => ((to, 0), false),
            Some(to) => {
                // On a cable nothing depends on it.
                let weight = match self.gate.is_shared() {
                    true => routed.weight(),
                    false => Weight::Usual,
                };
                let about = (send.token, send.class, weight);
                let burst = self.burst.number;
                let number = self.recovery.send(now, to, about, burst, body);
                ((to, number), routed.goes_on(to))
            }
            None => ((ALL, 0), false),
        };
        self.finish_part(draft, to, (send.class, send.len, goes), sdu)
    }

    fn finish_part(
        &mut self,
        draft: &mut Draft,
        to: (u16, u16),
        (class, len, goes): (Class, usize, bool),
        sdu: &mut [u8],
    ) -> Option<()> {
        // A small body rides in the next node's frames, too.
        let weighs = draft.class.is_none() || len >= SMALL;
        self.burst.onward += u8::from(goes && weighs);
        draft.at = frame::emit_part(to, len, draft.at, sdu)?;
        draft.data |= class != CONTROL;
        draft.class = draft.class.max(Some(class));
        Some(())
    }

    /// Takes a frame of the link; one that is malformed is counted and dropped.
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
        let exchange = self.config.air.exchange(arrival.sdu.len());
        let until = match frame.burst.rest {
            0 => now,
            // A frame more than there are: others may send in between.
            rest => now + exchange * (u64::from(rest.min(self.config.air.burst_max())) + 1),
        };
        self.recovery.heard(now, from, frame.burst.number, until);
        for ack in frame.acks() {
            if ack.node == self.config.number {
                self.recovery.on_ack(now, from, ack);
            }
        }
        match frame.kind {
            Kind::Announcement => {
                for part in frame.parts() {
                    let taken = self.announcements.on_frame(now, part.body);
                    self.counters.announcements += u64::from(taken.is_err());
                }
            }
            Kind::Router => self.on_routed(now, arrival, from, &frame),
        }
    }

    fn on_routed(&mut self, now: Instant, arrival: Arrival<'_>, from: u16, frame: &Frame<'_>) {
        let octets = arrival.sdu.len();
        let rest = self.config.air.exchange(octets)
            * u64::from(frame.burst.rest.min(self.config.air.burst_max()));
        match frame.parts().next() {
            // What goes on from here leaves when the burst is over.
            Some(first) if first.to == self.config.number => {
                self.gate.hold(now + rest);
                if !self.gate.is_shared() {
                    self.over = now + rest.min(TURN);
                } else if !Routed::of(first.body).goes_on(first.to) {
                    let over = now + rest;
                    self.answer.slot = (over, over + self.config.air.exchange(SMALL));
                    let full = self.config.air.exchange(self.config.mtu);
                    self.answer.until = over + full * QUIET;
                }
            }
            Some(first) if first.to != ALL => {
                let spread = self.spread(from, frame.burst.number);
                self.gate.follow(now, octets, frame.burst, spread);
            }
            _ => {}
        }
        for part in frame.parts() {
            self.on_part(now, arrival, (from, frame.life, rest), &part);
        }
    }

    fn on_part(
        &mut self,
        now: Instant,
        arrival: Arrival<'_>,
        (from, life, rest): (u16, u8, Duration),
        part: &Part<'_>,
    ) {
        let routed = Routed::of(part.body);
        self.note_urgent(now, &routed);
        let mine = part.to == self.config.number;
        // Bodies with number 0 are recovered by the card.
        if mine && part.number != 0 {
            let full = self.config.air.exchange(self.config.mtu);
            // What goes on carries the acknowledgement.
            let wait = match routed.goes_on(part.to) {
                true => rest + full * u64::from(self.config.air.burst_max()),
                false => rest + self.turn(),
            };
            if !self.recovery.on_frame(now, from, (life, part.number), wait) {
                return;
            }
        }
        let routed = Arrival {
            to: match part.to {
                ALL => Address::BROADCAST,
                node => address(node),
            },
            sdu: part.body,
            ..arrival
        };
        self.router.handle_link(now, LinkEvent::Received(routed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::Air;
    use crate::packet::Net;
    use crate::settings::NodeConfig;
    use chappe_core::{Bitrate, Seed};

    /// Goal: where many wait for the end of a burst, its sender does not begin before they may; few neighbours change nothing.
    #[test]
    fn a_sender_waits_as_those_around_do() {
        let air = Air::dot11b(Bitrate(11_000_000));
        let config = NodeConfig {
            number: 1,
            networks: vec![Net::parse("10.77.0.0/16").unwrap()],
            behind: Vec::new(),
            air,
            hop: Hop::Broadcast,
            size: 12,
            mtu: 1300,
            groups: false,
            video: false,
        };
        let mut node = Node::new(config, 1470, Instant::ZERO, Seed(1), 0).unwrap();
        let now = Instant::from_millis(1000);
        let mut held = |neighbours: u16| {
            node.neighbours = (2..2 + neighbours).collect();
            node.longest = 1400;
            node.end_burst(now, 1400);
            node.gate.data_at().saturating_since(now)
        };
        assert_eq!(held(4), Duration::ZERO);
        let least = air.exchange(1400);
        let most = least + air.exchange(1300) * u64::from(air.burst_max()) + least;
        assert!((least..most).contains(&held(5)));
    }
}
