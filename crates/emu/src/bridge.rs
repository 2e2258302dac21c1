//! The host's interface as a link node, on a station's MAC in place of a protocol.

use std::fmt;

use chappe_core::{
    Address, Arrival, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Mac, Outcome,
    OverMac, RadioNode, Wake,
};

use crate::ethernet::{self, Frame, HEADER, ON_AIR};
use crate::ring::Ring;

/// A radio node that carries a host's frames.
///
/// Any MAC with a [`Bridge`] on top is one. A protocol that carries a host's packets itself can be one too.
pub trait Station: RadioNode {
    /// The host's interface, to read its counters and received frames.
    fn bridge(&self) -> &Bridge;
    /// The host's interface, to offer frames and to remove received ones.
    fn bridge_mut(&mut self) -> &mut Bridge;
}

impl<M: Mac> Station for OverMac<M, Bridge> {
    fn bridge(&self) -> &Bridge {
        &self.link
    }

    fn bridge_mut(&mut self) -> &mut Bridge {
        &mut self.link
    }
}

/// Carries whole Ethernet frames between a host's interface and the MAC below.
///
/// A unicast frame goes to the neighbour with its destination address, with the MAC's ACKs and retries; a group frame
/// goes to all neighbours. Frames from the host wait in a queue of fixed length, as in a card's driver. If the queue is
/// full, the frame is lost and counted. A card with the access categories of EDCA has one queue for each
/// ([`Bridge::with_categories`]).
///
/// An 802.11 ad hoc frame has no room for a third address. So the bridge drops frames whose source is not the station
/// itself, and counts them as strange.
#[derive(Clone, Debug)]
pub struct Bridge {
    address: Address,
    mtu: usize,
    /// One queue for all frames, or one for each class in the order of [`Class`].
    to_air: Vec<Ring>,
    to_host: Ring,
    counters: BridgeCounters,
}

/// Counters of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames received from the host.
    pub from_host: u64,
    /// Frames delivered to the host.
    pub to_host: u64,
    /// Octets of payload delivered to the host.
    pub octets_to_host: u64,
    /// Unicast frames that the neighbour acknowledged.
    pub acknowledged: u64,
    /// Unicast frames that the MAC gave up.
    pub given_up: u64,
    /// Group frames sent, which nothing acknowledges.
    pub unconfirmed: u64,
    /// Frames lost, by reason.
    pub lost: Lost,
}

/// Frames lost above the MAC, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// From the host: the queue was full.
    pub queue_full: u64,
    /// From the host: the source is not the station's own address, or it is no Ethernet frame.
    pub strange: u64,
    /// From the host: longer than the interface's MTU.
    pub too_long: u64,
    /// From the air: cannot be written as an Ethernet frame.
    pub malformed: u64,
    /// From the air: the queue to the host was full, or the host's interface refused the frame.
    pub host_full: u64,
}

/// Length of the queue to the host. The emulator empties it every 100 us of air time, in which no radio delivers more
/// than a few frames.
const TO_HOST: usize = 32;

impl Bridge {
    /// A bridge for the station `address`. Frames have up to `mtu` octets of payload, and `queue` of them may wait for the
    /// air. They leave in the order in which they came, as [`Class::Data`].
    pub fn new(address: Address, mtu: usize, queue: usize) -> Bridge {
        Bridge {
            address,
            mtu,
            to_air: vec![Ring::new(queue, HEADER + mtu)],
            to_host: Ring::new(TO_HOST, HEADER + mtu),
            counters: BridgeCounters::default(),
        }
    }

    /// The same with a queue of that length for each access category. A frame's category follows from its priority tag or from IP's
    /// traffic class, as in Linux' 802.11.
    pub fn with_categories(address: Address, mtu: usize, queue: usize) -> Bridge {
        let ring = Ring::new(queue, HEADER + mtu);
        Bridge {
            to_air: vec![ring; Class::BY_URGENCY.len()],
            ..Bridge::new(address, mtu, 0)
        }
    }

    /// The largest payload on a link that carries SDUs of `frame_max` octets
    /// ([`Caps::frame_max`](chappe_core::Caps::frame_max)): LLC and SNAP take the rest.
    pub fn mtu_of(frame_max: usize) -> usize {
        frame_max.saturating_sub(ON_AIR)
    }

    /// Octets of the SDU on the air for a payload of `octets`.
    pub fn on_air(octets: usize) -> usize {
        octets + ON_AIR
    }

    /// The address of the station and of the interface.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Largest payload in octets.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The counters since the start.
    pub fn counters(&self) -> &BridgeCounters {
        &self.counters
    }

    /// Frames that wait for the air.
    pub fn waiting(&self) -> usize {
        self.to_air.iter().map(Ring::len).sum()
    }

    /// Queues an Ethernet frame from the host. Returns false if it was lost, and counts why.
    pub fn offer(&mut self, frame: &[u8]) -> bool {
        self.offer_with(frame, None)
    }

    /// The same for a frame whose priority tag, if it had one, has been removed before.
    pub(crate) fn offer_with(&mut self, frame: &[u8], priority: Option<u8>) -> bool {
        let counters = &mut self.counters;
        counters.from_host += 1;
        let parsed = Frame::parse(frame).filter(|parsed| parsed.from == self.address);
        let Some(frame) = parsed else {
            counters.lost.strange += 1;
            return false;
        };
        if frame.len() > HEADER + self.mtu {
            counters.lost.too_long += 1;
            return false;
        }
        let place = match self.to_air.len() {
            1 => 0,
            _ => frame.class(priority) as usize,
        };
        let ring = self.to_air.get_mut(place);
        let taken = ring.is_some_and(|ring| ring.push(|room| frame.emit(room)));
        counters.lost.queue_full += u64::from(!taken);
        taken
    }

    /// The queues with the class of their frames, most urgent first.
    fn queues(&self) -> impl Iterator<Item = (Class, usize)> + use<> {
        let one = self.to_air.len() == 1;
        let only = one.then_some((Class::Data, 0));
        let each = Class::BY_URGENCY.map(|class| (class, class as usize));
        only.into_iter()
            .chain(each.into_iter().filter(move |_| !one))
    }

    /// Ethernet frames that wait for the host, oldest first.
    pub fn arrived(&self) -> impl Iterator<Item = &[u8]> {
        self.to_host.iter()
    }

    /// Whether a frame waits for the host.
    pub fn has_arrived(&self) -> bool {
        !self.to_host.is_empty()
    }

    /// Removes the `count` oldest frames that wait for the host and counts them as delivered.
    pub fn taken(&mut self, count: usize) {
        for frame in self.to_host.iter().take(count) {
            self.counters.to_host += 1;
            self.counters.octets_to_host += frame.len().saturating_sub(HEADER) as u64;
        }
        self.to_host.forget(count);
    }

    /// Removes the oldest frame that waits for the host and counts it as lost.
    pub fn refused(&mut self) {
        self.counters.lost.host_full += u64::from(self.has_arrived());
        self.to_host.forget(1);
    }

    /// Counts frames that the host's interface lost on the way to the bridge.
    pub(crate) fn overflowed(&mut self, frames: u64) {
        self.counters.from_host += frames;
        self.counters.lost.queue_full += frames;
    }

    /// Writes the oldest frame of a queue to the front of `sdu`.
    fn poll_queue(&mut self, class: Class, place: usize, sdu: &mut [u8]) -> Option<LinkSend> {
        let queue = self.to_air.get_mut(place)?;
        while let Some(frame) = queue.front() {
            let parsed = Frame::parse(frame);
            let sent = parsed.and_then(|frame| Some((frame.to, frame.to_air(sdu)?)));
            queue.forget(1);
            match sent {
                Some((to, len)) => {
                    return Some(LinkSend {
                        to,
                        len,
                        class,
                        mode: None,
                        token: 0,
                    });
                }
                // The MTU was chosen larger than what the MAC carries.
                None => self.counters.lost.too_long += 1,
            }
        }
        None
    }

    fn on_arrival(&mut self, arrival: &Arrival<'_>) {
        // A MAC may overhear unicasts to others; an interface must not show them.
        let [first, ..] = arrival.to.to_eui48();
        if arrival.to != self.address && first & 1 == 0 {
            return;
        }
        let mut shown = true;
        let full = self.to_host.len() == TO_HOST;
        self.to_host.push(|room| {
            let len = ethernet::from_air(arrival.to, arrival.from, arrival.sdu, room);
            shown = len.is_some();
            len
        });
        self.counters.lost.host_full += u64::from(full);
        self.counters.lost.malformed += u64::from(!shown);
    }
}

impl LinkNode for Bridge {
    fn handle_link(&mut self, _now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.on_arrival(&arrival),
            LinkEvent::Sent { outcome, .. } => match outcome {
                Outcome::Acknowledged { .. } => self.counters.acknowledged += 1,
                Outcome::Failed { .. } => self.counters.given_up += 1,
                Outcome::Unconfirmed => self.counters.unconfirmed += 1,
            },
        }
    }

    fn pending(&self) -> Classes {
        let waits = |place: usize| self.to_air.get(place).is_some_and(|ring| !ring.is_empty());
        self.queues().fold(Classes::NONE, |all, (class, place)| {
            all.with_if(class, waits(place))
        })
    }

    fn poll_link(&mut self, _now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let mut queues = self.queues().filter(|(class, _)| allowed.contains(*class));
        queues.find_map(|(class, place)| self.poll_queue(class, place, sdu))
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

impl BridgeCounters {
    /// The sum of two sets of counters.
    pub fn plus(self, other: BridgeCounters) -> BridgeCounters {
        BridgeCounters {
            from_host: self.from_host + other.from_host,
            to_host: self.to_host + other.to_host,
            octets_to_host: self.octets_to_host + other.octets_to_host,
            acknowledged: self.acknowledged + other.acknowledged,
            given_up: self.given_up + other.given_up,
            unconfirmed: self.unconfirmed + other.unconfirmed,
            lost: Lost {
                queue_full: self.lost.queue_full + other.lost.queue_full,
                strange: self.lost.strange + other.lost.strange,
                too_long: self.lost.too_long + other.lost.too_long,
                malformed: self.lost.malformed + other.lost.malformed,
                host_full: self.lost.host_full + other.lost.host_full,
            },
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("queue full", self.queue_full),
            ("strange", self.strange),
            ("too long", self.too_long),
            ("malformed", self.malformed),
            ("host full", self.host_full),
        ];
        let mut some = all.into_iter().filter(|(_, count)| *count > 0);
        let Some((why, count)) = some.next() else {
            return f.write_str("none");
        };
        write!(f, "{count} {why}")?;
        some.try_for_each(|(why, count)| write!(f, ", {count} {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::contract;

    fn frame(from: u16, to: Address, len: usize) -> Vec<u8> {
        let mut frame = [to.to_eui48(), Address::node(from).to_eui48()].concat();
        frame.extend([0x88, 0xb5]);
        frame.resize(HEADER + len, 7);
        frame
    }

    #[test]
    fn every_lost_frame_is_counted() {
        let mut bridge = Bridge::new(Address::node(1), 100, 2);
        assert!(bridge.offer(&frame(1, Address::node(2), 100)));
        assert!(
            !bridge.offer(&frame(3, Address::node(2), 100)),
            "a stranger's"
        );
        assert!(!bridge.offer(&[0; 13]), "no frame");
        assert!(!bridge.offer(&frame(1, Address::node(2), 101)));
        assert!(bridge.offer(&frame(1, Address::BROADCAST, 0)));
        assert!(!bridge.offer(&frame(1, Address::node(2), 1)), "a third one");
        let lost = Lost {
            queue_full: 1,
            strange: 2,
            too_long: 1,
            ..Lost::default()
        };
        assert_eq!(
            (bridge.counters().lost, bridge.counters().from_host),
            (lost, 6)
        );
        assert_eq!(lost.to_string(), "1 queue full, 2 strange, 1 too long");
        let mut sdu = [0; 200];
        let send = bridge.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
        assert_eq!(
            send.map(|send| (send.to, send.len)),
            Some((Address::node(2), 108))
        );
        let send = bridge.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
        assert_eq!(
            send.map(|send| (send.to, send.len)),
            Some((Address::BROADCAST, 8))
        );
        assert!(bridge.pending().is_empty());
    }

    /// Unicasts to other stations stay on the air; group frames and unicasts to this one reach the host.
    #[test]
    fn the_host_receives_only_its_frames() {
        let mut bridge = Bridge::new(Address::node(1), 100, 2);
        let group = Address::from_eui48([0x33, 0x33, 0, 0, 0, 1]);
        let sdu = [&[0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd][..], &[5; 40]].concat();
        for to in [
            Address::node(1),
            Address::node(2),
            group,
            Address::BROADCAST,
        ] {
            let from = Address::node(9);
            let (sdu, power) = (&sdu[..], None);
            let arrival = Arrival {
                from,
                to,
                sdu,
                power,
            };
            bridge.handle_link(Instant::ZERO, LinkEvent::Received(arrival));
        }
        let shown: Vec<_> = bridge.arrived().map(|frame| frame[..6].to_vec()).collect();
        let wanted = [Address::node(1), group, Address::BROADCAST].map(Address::to_eui48);
        assert_eq!(shown, wanted);
        bridge.taken(2);
        bridge.refused();
        let counters = bridge.counters();
        assert_eq!((counters.to_host, counters.octets_to_host), (2, 80));
        assert_eq!(counters.lost.host_full, 1);
    }

    /// A priority tag decides the category and does not go over the air; else IP's traffic class does, else it is best effort.
    #[test]
    fn each_category_has_a_queue() {
        let mut bridge = Bridge::with_categories(Address::node(1), 100, 2);
        let typed = |kind: [u8; 2], payload: &[u8]| {
            let mut frame = frame(1, Address::node(2), 0);
            frame.truncate(12);
            [&frame, &kind[..], payload].concat()
        };
        let tagged = |up: u8| typed([0x81, 0], &[[up << 5, 0, 0x88, 0xb5], [up; 4]].concat());
        let ipv6 = typed([0x86, 0xdd], &[0x6c, 0, 0, 0]);
        let ipv4 = typed([8, 0], &[0x45, 0x20, 0, 0]);
        let vlan = typed([0x81, 0], &[0xe0, 7, 0x88, 0xb5]);
        let frames = [ipv4, vlan, tagged(5), ipv6, tagged(1), tagged(0)];
        let taken = frames.map(|frame| bridge.offer(&frame));
        assert_eq!(taken, [true; 6]);
        assert!(!bridge.offer(&tagged(2)), "a third one in the background");
        assert_eq!(bridge.waiting(), 6);
        let mut sdu = [0; 200];
        let mut sent = Vec::new();
        while let Some(send) = bridge.poll_link(Instant::ZERO, bridge.pending(), &mut sdu) {
            sent.push((send.class, sdu[8..send.len].to_vec()));
        }
        let wanted = [
            (Class::Control, vec![0x6c, 0, 0, 0]),
            (Class::Urgent, vec![5; 4]),
            (Class::Data, vec![0xe0, 7, 0x88, 0xb5]),
            (Class::Data, vec![0; 4]),
            (Class::Background, vec![0x45, 0x20, 0, 0]),
            (Class::Background, vec![1; 4]),
        ];
        assert_eq!(sent, wanted);
        assert_eq!(bridge.counters().lost.queue_full, 1);
    }

    #[test]
    fn the_bridge_keeps_the_link_contract() {
        contract::check_link(40, |_| {
            let mut bridge = Bridge::new(Address::node(1), 1500, 8);
            bridge.offer(&frame(1, Address::node(2), 60));
            bridge.offer(&frame(1, Address::BROADCAST, 600));
            bridge
        });
    }
}
