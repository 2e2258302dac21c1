//! Packets that wait for their first transmission: a queue for each class, and how packets become bodies.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant};

use super::window::SendWindow;
use crate::body::body_head;
use crate::config::{Config, FLOWS, Order, SERVICES};
use crate::header::{BODY, LENGTH};
use crate::store::Store;

/// Octets of a packet that waits for others to share its frame: acknowledgements of TCP have 40 to 80.
pub(super) const SMALL_PACKET: usize = 128;
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

    /// The most urgent class in which a packet waits.
    pub fn front_service(&self) -> Option<usize> {
        self.queues.iter().position(|queue| !queue.is_empty())
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

    /// Begins the window's next body with the first packets of a class; `None` if none waits.
    pub fn pack(
        &mut self,
        config: &Config,
        (service, order): (usize, Order),
        window: &mut SendWindow,
    ) -> Option<Packed> {
        let queue = self.queues.get_mut(service)?;
        let mut first: Option<Queued> = None;
        let mut packets = 0;
        while let Some(queued) = queue.front().copied() {
            let packet = self.packets.get(queued.place);
            let length = (packet.len() as u16).to_be_bytes();
            match first {
                None => {
                    // Counts bodies: the packets of one body keep their order anyway.
                    let number = self.flows.get_mut(usize::from(queued.flow))?;
                    let head = body_head(order, queued.flow, *number);
                    *number = number.wrapping_add(1);
                    window.begin_body(&[&head, &length, packet]);
                    first = Some(queued);
                }
                Some(first) => {
                    let needed = window.begun_len() + LENGTH + packet.len();
                    // A body's head names one flow for all its packets.
                    if !config.bundle || first.flow != queued.flow || needed > config.body_max() {
                        break;
                    }
                    window.extend_body(&length);
                    window.extend_body(packet);
                }
            }
            queue.pop_front();
            self.free.push(queued.place);
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

    /// Numbers the packets of all flows from zero again.
    pub fn restart_flows(&mut self) {
        self.flows = [0; FLOWS];
    }

    /// Octets of the next body.
    pub fn next_body_len(&self, config: &Config) -> Option<usize> {
        let queue = self.queues.iter().find(|queue| !queue.is_empty())?;
        self.body_lens_of(config, queue).next()
    }

    /// Octets of each of the bodies that the packets will make.
    pub fn body_lens<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = usize> + 'a {
        let queues = self.queues.iter();
        queues.flat_map(|queue| self.body_lens_of(config, queue))
    }

    fn body_lens_of<'a>(
        &'a self,
        config: &'a Config,
        queue: &'a VecDeque<Queued>,
    ) -> impl Iterator<Item = usize> + 'a {
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = queue.get(at)?;
            let len = |queued: &Queued| LENGTH + self.packets.get(queued.place).len();
            let mut body = BODY + len(first);
            at += 1;
            while let Some(next) = queue.get(at) {
                let joins = config.bundle
                    && next.flow == first.flow
                    && body + len(next) <= config.body_max();
                if !joins {
                    break;
                }
                body += len(next);
                at += 1;
            }
            Some(body)
        })
    }
}
