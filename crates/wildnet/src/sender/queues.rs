//! Packets that wait for their first transmission: a queue for each class, and how packets become bodies.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use super::window::SendWindow;
use crate::body::{Part, body_head};
use crate::config::{Config, FLOWS, Order, SERVICES};
use crate::header::{BODY, LENGTH};
use crate::store::Store;

/// Octets of a packet that waits for others to share its frame: acknowledgements of TCP have 40 to 80.
pub(super) const SMALL_PACKET: usize = 128;
/// Fewest octets of a packet's front for which it is cut. Each part has a length of two octets, and a packet in two bodies waits for
/// both. Beside a packet of 1500 octets a frame of 1560 has 12 left.
const FRONT_LEAST: usize = 32;
/// Small packets that are enough for a frame.
const SMALL_ENOUGH: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Queues {
    packets: Store,
    /// Places of `packets` that are free.
    free: Vec<usize>,
    /// By class, most urgent first.
    queues: [VecDeque<Queued>; SERVICES],
    /// The next number in each flow.
    flows: [u16; FLOWS],
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    place: usize,
    flow: u8,
    offered: Instant,
    /// Octets of its front that have left. Only the first packet of a queue has any.
    sent: usize,
}

/// The room of a body, and whether the last packet may be cut to fill it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub octets: usize,
    pub cuts: bool,
}

impl Space {
    /// How much of what is `left` of a packet joins a body of `used` octets.
    fn takes(self, used: usize, left: usize) -> Option<usize> {
        let room = self.octets.checked_sub(used + LENGTH)?;
        match left <= room {
            true => Some(left),
            false => Some(room).filter(|&room| self.cuts && room >= FRONT_LEAST),
        }
    }
}

/// Packets that became a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    /// When the first of them was offered.
    pub offered: Instant,
    pub packets: u64,
}

impl Queues {
    pub fn new(config: &Config) -> Queues {
        let places = config.queue * SERVICES;
        Queues {
            packets: Store::new(places, config.body_max()),
            free: (0..places).rev().collect(),
            queues: core::array::from_fn(|_| VecDeque::with_capacity(config.queue)),
            flows: [0; FLOWS],
        }
    }

    /// Queues a packet; false if there is no room, or no frame can carry it.
    pub fn offer(
        &mut self,
        config: &Config,
        now: Instant,
        (service, flow): (usize, u8),
        packet: &[u8],
    ) -> bool {
        let Some(queue) = self.queues.get_mut(service) else {
            return false;
        };
        let fits = !packet.is_empty() && packet.len() <= config.packet_max();
        if queue.len() >= config.queue || !fits {
            return false;
        }
        let Some(place) = self.free.pop() else {
            return false;
        };
        self.packets.put(place, &[packet]);
        queue.push_back(Queued {
            place,
            // Six bits are all that a body's head has for the flow.
            flow: flow & 0x3f,
            offered: now,
            sent: 0,
        });
        true
    }

    /// Packets that wait in a class.
    pub fn len(&self, service: usize) -> usize {
        self.queues.get(service).map_or(0, VecDeque::len)
    }

    /// Packets that wait in all classes.
    pub fn total(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// The class that is served next: the most urgent one in which a packet waits. But the rest of a packet goes before anything
    /// else of its flow, whatever the class.
    pub fn front_service(&self) -> Option<usize> {
        let first = self.queues.iter().position(|queue| !queue.is_empty())?;
        let flow = self.queues.get(first)?.front()?.flow;
        let is_rest = |packet: &Queued| packet.sent > 0 && packet.flow == flow;
        let open = |queue: &VecDeque<Queued>| queue.front().is_some_and(is_rest);
        self.queues.iter().position(open).or(Some(first))
    }

    /// When a body may be made of the first packets: small ones wait a little for others.
    pub fn ready_at(&self, config: &Config, flush: bool) -> Option<Instant> {
        let service = self.front_service()?;
        let queue = self.queues.get(service)?;
        let front = queue.front()?;
        let small = |queued: &Queued| self.packets.get(queued.place).len() <= SMALL_PACKET;
        // The length first: a long queue need not be looked through.
        let alone =
            config.bundle && service > 0 && queue.len() < SMALL_ENOUGH && queue.iter().all(small);
        let wait = match alone && !flush {
            true => config.bundle_delay,
            false => Duration::ZERO,
        };
        Some(front.offered + wait)
    }

    /// Begins the window's next body with the first packets of a class; `None` if none waits, or none fits.
    pub fn pack(
        &mut self,
        config: &Config,
        (service, order): (usize, Order),
        space: Space,
        window: &mut SendWindow,
    ) -> Option<Packed> {
        let queue = self.queues.get_mut(service)?;
        let mut first: Option<Queued> = None;
        let mut packets = 0;
        while let Some(queued) = queue.front_mut() {
            let used = match first {
                None => BODY,
                // A body's head names one flow for all its packets.
                Some(first) if config.bundle && first.flow == queued.flow => window.begun_len(),
                Some(_) => break,
            };
            let packet = self.packets.get(queued.place);
            let left = packet.get(queued.sent..).unwrap_or_default();
            let Some(taken) = space.takes(used, left.len()) else {
                break;
            };
            let part = Part {
                octets: left.get(..taken).unwrap_or_default(),
                is_rest: queued.sent > 0,
                goes_on: taken < left.len(),
            };
            let length = part.length().to_be_bytes();
            match first {
                None => {
                    // Counts bodies: the packets of one body keep their order anyway.
                    let number = self.flows.get_mut(usize::from(queued.flow))?;
                    let head = body_head(order, queued.flow, *number);
                    *number = number.wrapping_add(1);
                    window.begin_body(&[&head, &length, part.octets]);
                    first = Some(*queued);
                }
                Some(_) => {
                    window.extend_body(&length);
                    window.extend_body(part.octets);
                }
            }
            if part.goes_on {
                queued.sent += taken;
                break;
            }
            self.free.push(queued.place);
            queue.pop_front();
            packets += 1;
        }
        first.map(|first| Packed {
            offered: first.offered,
            packets,
        })
    }

    /// Drops the packets at the front of a class that were offered more than `most` before `arrival`: how many.
    pub fn drop_late(&mut self, service: usize, arrival: Instant, most: Duration) -> u64 {
        let Some(queue) = self.queues.get_mut(service) else {
            return 0;
        };
        let mut dropped = 0;
        // Packets stand in the order of their offers: behind the first that is in time, all are.
        while let Some(queued) = queue.pop_front_if(|queued| arrival > queued.offered + most) {
            self.free.push(queued.place);
            dropped += 1;
        }
        dropped
    }

    /// Drops the packets that do not fit a body of `most` octets: how many.
    pub fn drop_long(&mut self, most: usize) -> u64 {
        let mut dropped = 0;
        for queue in &mut self.queues {
            queue.retain(|queued| {
                let keeps = BODY + LENGTH + self.packets.get(queued.place).len() <= most;
                if !keeps {
                    self.free.push(queued.place);
                    dropped += 1;
                }
                keeps
            });
        }
        dropped
    }

    /// Numbers the packets of all flows from zero again. A peer that has started over lacks the fronts of those that were cut.
    pub fn restart_flows(&mut self) {
        self.flows = [0; FLOWS];
        let fronts = self.queues.iter_mut().filter_map(VecDeque::front_mut);
        fronts.for_each(|queued| queued.sent = 0);
    }

    /// Octets of the next body. `cuts`: whether the packets of a class may be cut.
    pub fn next_body_len(&self, config: &Config, cuts: impl Fn(usize) -> bool) -> Option<usize> {
        let service = self.front_service()?;
        let queue = self.queues.get(service)?;
        self.body_lens_of(config, queue, cuts(service)).next()
    }

    /// Octets of each of the bodies that the packets will make.
    pub fn body_lens<'a>(
        &'a self,
        config: &'a Config,
        cuts: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(move |(service, queue)| self.body_lens_of(config, queue, cuts(service)))
    }

    fn body_lens_of<'a>(
        &'a self,
        config: &'a Config,
        queue: &'a VecDeque<Queued>,
        cuts: bool,
    ) -> impl Iterator<Item = usize> + 'a {
        let space = Space {
            octets: config.body_max(),
            cuts,
        };
        let (mut at, mut sent) = (0, queue.front().map_or(0, |front| front.sent));
        core::iter::from_fn(move || {
            let first = queue.get(at)?;
            let mut body = BODY;
            while let Some(next) = queue.get(at) {
                let joins = body == BODY || config.bundle && next.flow == first.flow;
                let left = self.packets.get(next.place).len().saturating_sub(sent);
                let Some(taken) = space.takes(body, left).filter(|_| joins) else {
                    break;
                };
                body += LENGTH + taken;
                if taken < left {
                    sent += taken;
                    break;
                }
                (at, sent) = (at + 1, 0);
            }
            (body > BODY).then_some(body)
        })
    }
}
