//! A host that forwards as the kernel does: static routes of least ETX, unicasts that the card confirms and repeats, and one queue.
//! What `chappe mesh` is compared with where nothing depends on the machine; babeld's routes, once it has found them, carry no more.

use chappe_core::{
    Address, Class, Classes, Instant, LinkEvent, LinkNode, LinkSend, Mode, Rate, Wake,
};
use chappe_lab_emu::Routes;

use super::card::Queue;
use super::ends::Programs;
use super::{FRAME_MAX, Places};

/// Octets of LLC and SNAP before a packet.
const BEFORE: usize = 8;
/// The longest packet: its frame is as long as the longest of the mesh.
pub const MTU: usize = FRAME_MAX + chappe_live::HEADER + chappe_live::TAG;

/// The host of one node.
#[derive(Debug)]
pub struct Plain {
    pub programs: Programs,
    me: usize,
    next: Vec<Option<usize>>,
    queue: Queue,
    video: bool,
}

impl Plain {
    /// The host of node `me`, with routes by the true delivery ratios of full frames.
    pub fn new(places: &Places, me: usize) -> Plain {
        let nodes = places.medium.nodes();
        let (mode, octets) = (Mode::long(Rate::Cck11), BEFORE + MTU + 28);
        let pairs = (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes));
        let delivery = pairs.map(|(from, to)| places.medium.prr(from, to, mode, octets));
        let routes = Routes::by_etx(nodes, &delivery.collect::<Vec<_>>());
        Plain {
            programs: Programs::default(),
            me,
            next: (0..nodes).map(|to| routes.next(me, to)).collect(),
            queue: Queue::new(places.categories),
            video: places.video,
        }
    }

    /// Queues a packet for its next hop; the full queue drops it.
    fn send(&mut self, packet: &[u8]) {
        let to = usize::from(packet[19]) - 1;
        let via = self.next.get(to).copied().flatten();
        if let Some(via) = via {
            let mut frame = vec![0; BEFORE];
            frame.extend_from_slice(packet);
            // The kernel's packets are best effort, if their sender asks for nothing else.
            let class = if self.video {
                Class::Urgent
            } else {
                Class::Data
            };
            self.queue.push(class, Address::node(via as u16 + 1), frame);
        }
    }

    pub fn work(&mut self, now: Instant) {
        while let Some(packet) = self.programs.poll(now) {
            self.send(&packet);
        }
    }
}

impl LinkNode for Plain {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(arrival) = event {
            let packet = arrival.sdu.get(BEFORE..).unwrap_or_default();
            let answer = match packet.get(19) {
                Some(&to) if usize::from(to) == self.me + 1 => self.programs.handle(now, packet),
                Some(_) => Some(packet.to_vec()),
                None => None,
            };
            if let Some(packet) = answer {
                self.send(&packet);
            }
        }
        self.work(now);
    }

    fn pending(&self) -> Classes {
        self.queue.pending()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let send = self.queue.poll(allowed, sdu)?;
        self.work(now);
        Some(send)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.programs.poll_timeout()
    }
}
