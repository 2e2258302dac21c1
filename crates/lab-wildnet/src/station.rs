//! A station of a long link: its traffic on slots, or on plain 802.11.

use std::collections::VecDeque;

use chappe_core::{
    Address, Channel, Class, Classes, HostNode, Instant, LinkEvent, LinkNode, LinkSend, OverMac,
    RadioEvent, RadioNode, RadioRequest, Wake,
};
use chappe_mac::dot11::Dot11;
use chappe_wildnet::Radio;

use super::traffic::{PACKET_MAX, Traffic};

/// Packets that wait at plain 802.11: a tenth of Linux's usual 1000 (`txqueuelen`), so that TCP's window and not the
/// queue decides how much waits.
const QUEUE: usize = 100;
/// The class of all traffic in slots, and of small packets where they are told apart: TCP's acknowledgements then share
/// a frame at the slot's begin instead of standing between data.
const SMALL_SERVICE: usize = 1;
const SERVICE: usize = 2;
/// The class of what does not wait behind others, and its flow.
pub const URGENT_SERVICE: usize = 0;
const URGENT_FLOW: u8 = 2;
/// Octets of a small packet: an acknowledgement of TCP over IPv6 has up to 100.
const SMALL: usize = 128;

/// A station on its channel.
pub struct Mounted<'a> {
    /// The station.
    pub station: Station<'a>,
    /// The channel to tune to, until it is asked for.
    tune: Option<Channel>,
}

impl<'a> Mounted<'a> {
    /// A station that tunes to `channel` first.
    pub fn new(station: Station<'a>, channel: Channel) -> Mounted<'a> {
        Mounted {
            station,
            tune: Some(channel),
        }
    }
}

impl RadioNode for Mounted<'_> {
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

/// One end.
pub enum Station<'a> {
    /// WiLDNet or 2P.
    Slots(Box<Slots<'a>>),
    /// Plain 802.11.
    Plain(Box<OverMac<Dot11, Wire<'a>>>),
}

impl<'a> Station<'a> {
    /// What runs on it.
    pub fn traffic(&self) -> &Traffic<'a> {
        match self {
            Station::Slots(slots) => &slots.traffic,
            Station::Plain(plain) => &plain.link.traffic,
        }
    }

    /// What runs on it, to start it. Call [`RadioNode::handle_timeout`] afterwards.
    pub fn traffic_mut(&mut self) -> &mut Traffic<'a> {
        match self {
            Station::Slots(slots) => &mut slots.traffic,
            Station::Plain(plain) => &mut plain.link.traffic,
        }
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
    /// The radio.
    pub radio: Radio,
    /// What runs on it.
    pub traffic: Traffic<'a>,
    /// Whether small packets have a class of their own.
    by_size: bool,
}

impl<'a> Slots<'a> {
    /// `by_size`: whether small packets have a class of their own.
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

    /// Packets go up and down until nothing moves.
    fn pump(&mut self, now: Instant) {
        let mut packet = [0; PACKET_MAX];
        let mut moved = false;
        // What a packet calls forth leaves before the next one is looked at, as from a kernel: a host that saw a whole
        // burst first would acknowledge it once, where TCP has one acknowledgement for two segments.
        while let Some(delivery) = self.radio.link.deliver(&mut packet) {
            self.traffic.handle_packet(now, &packet[..delivery.len]);
            moved |= self.offer(now);
        }
        if self.offer(now) || moved {
            self.radio.handle_timeout(now);
        }
    }

    /// Takes packets from the traffic as long as the link has room; whether there were any.
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
        // Traffic that finds no room asks again when the radio next does something.
        let apart = matches!(&self.traffic, Traffic::Pinged(pings) if pings.apart);
        let room = match apart {
            true => self.has_urgent_room(),
            false => self.has_room(),
        };
        let traffic = self.traffic.poll_timeout().filter(|_| room);
        Wake::earlier(self.radio.poll_timeout(), traffic)
    }
}

/// A queue between traffic and a MAC, all of it to one peer.
pub struct Wire<'a> {
    /// What runs on it.
    pub traffic: Traffic<'a>,
    to: Address,
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Packets that the MAC has taken.
    pub sent: u64,
}

impl<'a> Wire<'a> {
    /// To `to`: a station, whose MAC confirms each frame, or everybody.
    pub fn new(traffic: Traffic<'a>, to: Address) -> Wire<'a> {
        Wire {
            traffic,
            to,
            queue: VecDeque::new(),
            spare: Vec::new(),
            sent: 0,
        }
    }

    /// Takes packets until the queue is full.
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

impl LinkNode for Wire<'_> {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            self.traffic.handle_packet(now, arrival.sdu);
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
            mode: None,
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
