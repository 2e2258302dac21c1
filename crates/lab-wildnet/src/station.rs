//! A station of a long link: WiLDNet or 2P in slots, or plain 802.11, with traffic on top.

use std::collections::VecDeque;

use chappe_core::{
    Address, Channel, Class, Classes, HostNode, Instant, LinkEvent, LinkNode, LinkSend, OverMac,
    Preamble, RadioEvent, RadioNode, RadioRequest, Wake,
};
use chappe_mac::dot11::Dot11;
use chappe_tcplp::tcp::{Endpoint, Local};
use chappe_wildnet::Radio;

use crate::hosts::PORT;
use crate::rate_control::{RateControl, Rates};
use crate::traffic::{PACKET_MAX, Traffic};

/// The most packets that wait at plain 802.11: a tenth of Linux's usual 1000 (`txqueuelen`), so that TCP's window and not
/// the queue limits how much waits.
const QUEUE: usize = 100;
/// The class of small packets, where they are separate: TCP's acknowledgements then share a frame at the start of the slot
/// instead of standing between data.
const SMALL_SERVICE: usize = 1;
/// The class of all other traffic in slots.
const SERVICE: usize = 2;
/// The class of packets that do not wait behind others: pings.
pub const URGENT_SERVICE: usize = 0;
/// The flow of urgent packets.
const URGENT_FLOW: u8 = 2;
/// The most octets of a small packet: an acknowledgement of TCP over IPv6 has up to 100.
const SMALL: usize = 128;

/// A station that tunes its radio to a channel first.
pub struct TunedStation<'a> {
    /// The station on this radio.
    pub station: Station<'a>,
    /// The channel to tune to, until the radio is polled.
    tune: Option<Channel>,
}

impl<'a> TunedStation<'a> {
    /// A station that tunes to `channel` before anything else.
    pub fn new(station: Station<'a>, channel: Channel) -> TunedStation<'a> {
        TunedStation {
            station,
            tune: Some(channel),
        }
    }
}

impl RadioNode for TunedStation<'_> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.station.handle_radio(now, event);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        let tune = self.tune.take().map(RadioRequest::Tune);
        tune.or_else(|| self.station.poll_radio(now, psdu))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.station.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.station.poll_timeout()
    }
}

/// The node of one radio, at one end of a link.
pub enum Station<'a> {
    /// WiLDNet or 2P in slots.
    Slots(Box<Slots<'a>>),
    /// Plain 802.11 under the DCF.
    Plain(Box<OverMac<Dot11, TxQueue<'a>>>),
}

impl<'a> Station<'a> {
    /// The traffic of this radio.
    pub fn traffic(&self) -> &Traffic<'a> {
        match self {
            Station::Slots(slots) => &slots.traffic,
            Station::Plain(plain) => &plain.link.traffic,
        }
    }

    /// The traffic of this radio, mutable. Call [`nudge`](Self::nudge) afterwards.
    pub fn traffic_mut(&mut self) -> &mut Traffic<'a> {
        match self {
            Station::Slots(slots) => &mut slots.traffic,
            Station::Plain(plain) => &mut plain.link.traffic,
        }
    }

    /// Connects each host to its peer, if it has one, and takes the first packets.
    pub fn start(&mut self, now: Instant, peers: &[Option<&Local>]) {
        for (host, peer) in self.traffic_mut().hosts_mut().into_iter().zip(peers) {
            if let Some(peer) = peer {
                host.connect(now, 50_000, Endpoint::new(peer.address, PORT));
            }
        }
        self.nudge(now);
    }

    /// Takes packets that reached the traffic without an event of the radio.
    pub fn nudge(&mut self, now: Instant) {
        if let Station::Plain(plain) = self {
            plain.link.fill(now);
        }
        self.handle_timeout(now);
    }

    fn node(&mut self) -> &mut dyn RadioNode {
        match self {
            Station::Slots(slots) => slots.as_mut(),
            Station::Plain(plain) => plain.as_mut(),
        }
    }
}

impl RadioNode for Station<'_> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.node().handle_radio(now, event);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.node().poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Station::Slots(slots) => slots.poll_timeout(),
            Station::Plain(plain) => plain.poll_timeout(),
        }
    }
}

/// A radio in slots with traffic on its link.
pub struct Slots<'a> {
    /// The radio with its link and slots.
    pub radio: Radio,
    /// Traffic above the link.
    pub traffic: Traffic<'a>,
    /// Whether small packets have a separate class.
    by_size: bool,
}

impl<'a> Slots<'a> {
    /// A radio with traffic. With `by_size`, small packets have a separate class.
    pub fn new(radio: Radio, traffic: Traffic<'a>, by_size: bool) -> Slots<'a> {
        Slots {
            radio,
            traffic,
            by_size,
        }
    }

    fn has_room(&self) -> bool {
        let link = &self.radio.link;
        link.room(SERVICE) > 0 && (!self.by_size || link.room(SMALL_SERVICE) > 0)
    }

    fn has_urgent_room(&self) -> bool {
        self.radio.link.room(URGENT_SERVICE) > 0
    }

    /// Moves packets between link and traffic until none can move.
    fn pump(&mut self, now: Instant) {
        let mut packet = [0; PACKET_MAX];
        let mut moved = false;
        // Answers to one packet leave before the next is delivered, as from a kernel. A host that received a whole burst first
        // would acknowledge it once, where TCP acknowledges every second segment.
        while let Some(delivery) = self.radio.link.deliver(&mut packet) {
            self.traffic.handle_packet(now, &packet[..delivery.len]);
            moved |= self.offer(now);
        }
        if self.offer(now) || moved {
            self.radio.handle_timeout(now);
        }
    }

    /// Takes packets from the traffic while the link has room. Returns whether there were any.
    fn offer(&mut self, now: Instant) -> bool {
        let mut packet = [0; PACKET_MAX];
        let mut moved = false;
        while self.has_urgent_room()
            && let Some(len) = self.traffic.poll_urgent(now, &mut packet)
        {
            let link = &mut self.radio.link;
            link.offer(now, URGENT_SERVICE, URGENT_FLOW, &packet[..len]);
            moved = true;
        }
        while self.has_room() {
            let Some(len) = self.traffic.poll_packet(now, &mut packet) else {
                break;
            };
            let small = self.by_size && len <= SMALL;
            let (service, flow) = if small {
                (SMALL_SERVICE, 1)
            } else {
                (SERVICE, 0)
            };
            self.radio.link.offer(now, service, flow, &packet[..len]);
            moved = true;
        }
        moved
    }
}

impl RadioNode for Slots<'_> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.radio.handle_radio(now, event);
        self.pump(now);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.radio.poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if Wake::due(self.traffic.poll_timeout(), now) {
            self.traffic.handle_timeout(now);
        }
        self.radio.handle_timeout(now);
        self.pump(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        // Traffic that finds no room would wake the station in vain. `pump` polls it again after each event of the radio.
        let apart = matches!(&self.traffic, Traffic::Pinged(pings) if pings.apart);
        let room = match apart {
            true => self.has_urgent_room(),
            false => self.has_room(),
        };
        let traffic = self.traffic.poll_timeout().filter(|_| room);
        Wake::earlier(self.radio.poll_timeout(), traffic)
    }
}

/// The transmit queue between traffic and a DCF, all of it to one peer.
pub struct TxQueue<'a> {
    /// Traffic above the queue.
    pub traffic: Traffic<'a>,
    to: Address,
    rates: Rates,
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Packets that the MAC has taken so far.
    pub sent: u64,
}

impl<'a> TxQueue<'a> {
    /// A queue to `to`: a station, whose MAC acknowledges each frame, or broadcast.
    pub fn new(traffic: Traffic<'a>, to: Address) -> TxQueue<'a> {
        TxQueue {
            traffic,
            to,
            rates: Rates::new(RateControl::Fixed, Preamble::Long),
            queue: VecDeque::new(),
            spare: Vec::new(),
            sent: 0,
        }
    }

    /// The same on a card that chooses the rate of each packet.
    pub fn with_rates(self, rates: Rates) -> TxQueue<'a> {
        TxQueue { rates, ..self }
    }

    /// Takes packets from the traffic until the queue is full.
    pub fn fill(&mut self, now: Instant) {
        while self.queue.len() < QUEUE {
            let mut packet = self.spare.pop().unwrap_or_default();
            packet.resize(PACKET_MAX, 0);
            let Some(len) = self.traffic.poll_packet(now, &mut packet) else {
                self.spare.push(packet);
                return;
            };
            packet.truncate(len);
            self.queue.push_back(packet);
        }
    }
}

impl LinkNode for TxQueue<'_> {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.traffic.handle_packet(now, arrival.sdu),
            LinkEvent::Sent { outcome, .. } => self.rates.note(now, outcome),
        }
        self.fill(now);
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, !self.queue.is_empty())
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Data) {
            return None;
        }
        let packet = self.queue.pop_front()?;
        self.sent += 1;
        let len = packet.len();
        sdu.get_mut(..len)?.copy_from_slice(&packet);
        self.spare.push(packet);
        self.fill(now);
        Some(LinkSend {
            to: self.to,
            len,
            class: Class::Data,
            mode: self.rates.mode(),
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if Wake::due(self.traffic.poll_timeout(), now) {
            self.traffic.handle_timeout(now);
        }
        self.fill(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let full = self.queue.len() >= QUEUE;
        self.traffic.poll_timeout().filter(|_| !full)
    }
}
