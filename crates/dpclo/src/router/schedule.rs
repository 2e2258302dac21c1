//! Which packet goes where: decided when the link can take one.

use chappe_core::{Class, Duration, Instant};

use super::{Pin, Router};
use crate::baseline::dclo::Edge;
use crate::config::{Pins, Scheme};
use crate::price;
use crate::routes::{Destination, Hop};
use crate::store::Packet;

/// The packet that would go out now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// The destination's place.
    pub destination: u16,
    /// The next hop's place.
    pub neighbour: u8,
    /// Whether there is a better route: the next hop is not the first.
    pub detour: bool,
    /// How urgent.
    pub class: Class,
    price: f64,
    /// When its packet came, as a count.
    order: u64,
}

/// A next hop with its price.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    neighbour: u8,
    detour: bool,
    price: f64,
    /// The price without the bias, which is no sign of urgency.
    plain: f64,
}

impl Router {
    /// The best packet and next hop as things stand.
    pub(super) fn choose(&self, now: Instant) -> Option<Choice> {
        match self.settings.scheme {
            Scheme::Dpclo => self.choose_by_price(now),
            Scheme::ShortestPath | Scheme::Fusion(_) => self.choose_in_order(now),
            Scheme::Dclo(_) => self.choose_for_pair(now),
        }
    }

    //= dpclo IV-D: the largest price over all destinations and next hops
    fn choose_by_price(&self, now: Instant) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        for &place in &self.active {
            let Some(destination) = self.routes.get(place) else {
                continue;
            };
            let Some(offer) = self.best_offer(now, place, destination) else {
                continue;
            };
            let (limit, priorities) = (self.settings.queues.limit, &self.settings.priorities);
            let choice = Choice {
                destination: place,
                neighbour: offer.neighbour,
                detour: offer.detour,
                class: price::class(offer.plain, limit, priorities),
                price: offer.price,
                order: self.first(place).map_or(u64::MAX, |packet| packet.order),
            };
            // Of equal prices the one that came first.
            let better = best.is_none_or(|best| {
                choice.price > best.price || choice.price == best.price && choice.order < best.order
            });
            if better {
                best = Some(choice);
            }
        }
        best
    }

    /// The next hop for the first packet of a queue, if there is one with a price above 0.
    fn best_offer(&self, now: Instant, place: u16, destination: &Destination) -> Option<Offer> {
        let own = self.backlog(now, place);
        let oldest = now.saturating_before(self.settings.queues.told_for);
        let mut best: Option<Offer> = None;
        let pin = self.pin_of(now, place);
        let mut pinned: Option<Offer> = None;
        for (rank, hop) in destination.in_use().iter().enumerate() {
            let Some(offer) = self.price_of(own, oldest, place, destination, hop, rank) else {
                continue;
            };
            if best.is_none_or(|best| offer.price > best.price) {
                best = Some(offer);
            }
            if pin.is_some_and(|(pin, _)| pin.neighbour == hop.place) {
                pinned = Some(offer);
            }
        }
        let best = best.filter(|best| best.price > 0.0)?;
        let (Some((_, rule)), Some(pinned)) = (pin, pinned) else {
            return Some(best);
        };
        stay_or_go(pinned, best, &rule)
    }

    fn price_of(
        &self,
        own: f64,
        oldest: Instant,
        place: u16,
        destination: &Destination,
        hop: &Hop,
        rank: usize,
    ) -> Option<Offer> {
        let etx = self.links.etx(hop.place)?;
        let node = self.links.get(hop.place)?.node;
        // The destination itself has no queue for itself.
        let theirs = match node == destination.node {
            true => 0.0,
            false => self.routes.told(oldest, place, hop.place).packets(),
        };
        let nearer = destination.metric().etx() - hop.rest.etx();
        let bias = self.settings.extras.bias * nearer;
        let least = self.settings.extras.credits;
        if node != destination.node && self.routes.room(oldest, place, hop.place) < least {
            return None;
        }
        Some(Offer {
            neighbour: hop.place,
            detour: rank > 0,
            price: price::price(own, theirs, bias, etx),
            plain: price::price(own, theirs, 0.0, etx),
        })
    }

    /// The oldest packet of all goes to the best next hop, if its destination can be reached and, with Fusion, if the next hop
    /// is not congested.
    fn choose_in_order(&self, now: Instant) -> Option<Choice> {
        let fusion = match self.settings.scheme {
            Scheme::Fusion(fusion) => Some(fusion),
            _ => None,
        };
        let class = match fusion.is_some_and(|fusion| fusion.prioritised) && self.is_congested() {
            true => Class::Urgent,
            false => Class::Data,
        };
        let mut best: Option<Choice> = None;
        for &place in &self.active {
            let hop = self
                .routes
                .get(place)
                .and_then(|known| known.hops().first());
            let (Some(hop), Some(packet)) = (hop, self.first(place)) else {
                continue;
            };
            if best.is_none_or(|best| packet.order < best.order) {
                best = Some(Choice {
                    destination: place,
                    neighbour: hop.place,
                    detour: false,
                    class,
                    price: 0.0,
                    order: packet.order,
                });
            }
        }
        // One queue: a packet that may not go holds up those behind it.
        best.filter(|best| fusion.is_none() || self.bits.allows(now, best.neighbour))
    }

    /// The largest queue difference to the other one of the pair.
    fn choose_for_pair(&self, now: Instant) -> Option<Choice> {
        let target = self.rounds.as_ref()?.target()?;
        let neighbour = self.links.find(target)?;
        let oldest = now.saturating_before(self.settings.queues.told_for);
        let mut best: Option<Choice> = None;
        for &place in &self.active {
            let (Some(known), Some(packet)) = (self.routes.get(place), self.first(place)) else {
                continue;
            };
            let theirs = match known.node == target {
                true => 0.0,
                false => self.routes.told(oldest, place, neighbour).packets(),
            };
            let price = self.backlog(now, place) - theirs;
            if price > best.map_or(0.0, |best| best.price) {
                best = Some(Choice {
                    destination: place,
                    neighbour,
                    detour: false,
                    class: Class::Data,
                    price,
                    order: packet.order,
                });
            }
        }
        best
    }

    /// The neighbours as possible pairs, with the differences between what they and this node have told (eqs. 3 and 4).
    pub(super) fn edges(&self, now: Instant) -> impl Iterator<Item = Edge> + Clone {
        let oldest = now.saturating_before(self.settings.queues.told_for);
        self.links.iter().map(move |(neighbour, link)| {
            let (mut out, mut back) = (0u16, 0u16);
            for place in self.routes.places() {
                let Some(known) = self.routes.get(place) else {
                    continue;
                };
                let queue = self.queues.get(usize::from(place));
                let own = match known.node == self.me {
                    true => 0,
                    false => queue.map_or(0, |queue| queue.told.0),
                };
                let theirs = match known.node == link.node {
                    true => 0,
                    false => self.routes.told(oldest, place, neighbour).0,
                };
                out = out.max(own.saturating_sub(theirs));
                back = back.max(theirs.saturating_sub(own));
            }
            Edge {
                node: link.node,
                weight: u32::from(out.max(back)),
                // Equal both ways: the lower number sends.
                outgoing: out > back || out == back && self.me < link.node,
            }
        })
    }

    /// The packet that a queue would give next.
    pub(super) fn first(&self, place: u16) -> Option<&Packet> {
        let queue = self.queues.get(usize::from(place))?;
        self.store.packet(queue.list.first()?)
    }

    /// How long a queue counts as being, in packets.
    pub(super) fn backlog(&self, now: Instant, place: u16) -> f64 {
        let Some(queue) = self.queues.get(usize::from(place)) else {
            return 0.0;
        };
        let extras = &self.settings.extras;
        let len = match extras.smoothing > 0.0 {
            true => queue.smooth,
            false => queue.len(),
        };
        let age = extras.age_weight.map_or(0.0, |unit| {
            let came = self.oldest(place).map_or(now, |packet| packet.came);
            units(now.saturating_since(came), unit).min(f64::from(self.settings.queues.limit))
        });
        len + age
    }

    /// The packet of a queue that came first, whichever end it is at.
    pub(super) fn oldest(&self, place: u16) -> Option<&Packet> {
        let list = &self.queues.get(usize::from(place))?.list;
        let end = match self.settings.extras.lifo {
            true => list.last(),
            false => list.first(),
        };
        self.store.packet(end?)
    }

    /// The pin of the flow whose packet is first in a queue, if it holds now.
    fn pin_of(&self, now: Instant, place: u16) -> Option<(Pin, Pins)> {
        let rule = self.settings.extras.pins?;
        let packet = self.first(place)?;
        let flow = (packet.source, packet.flow);
        let mut pins = self.pins.iter();
        let pin = pins.find(|pin| (pin.source, pin.flow) == flow)?;
        let holds = now.saturating_since(pin.used) <= rule.gap;
        holds.then_some((*pin, rule))
    }
}

/// Whether a flow stays on its next hop or goes to the best one. `None`: it waits for a better price on its own.
fn stay_or_go(pinned: Offer, best: Offer, rule: &Pins) -> Option<Offer> {
    if pinned.neighbour == best.neighbour {
        return Some(best);
    }
    // A pinned hop that is full is left only for one that is worth a whole packet: prices near 0 are noise.
    let enough = (rule.gain * pinned.price).max(1.0);
    match best.price >= enough {
        true => Some(best),
        false => Some(pinned).filter(|pinned| pinned.price > 0.0),
    }
}

fn units(span: Duration, unit: Duration) -> f64 {
    span.as_secs_f64() / unit.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extras;

    #[test]
    fn a_flow_leaves_its_next_hop_for_twice_the_price() {
        let rule = Extras::ALL.pins.unwrap();
        let offer = |neighbour, price| Offer {
            neighbour,
            detour: false,
            price,
            plain: price,
        };
        let decide = |pinned, best| {
            let choice = stay_or_go(offer(1, pinned), offer(2, best), &rule);
            choice.map(|offer| offer.neighbour)
        };
        assert_eq!(decide(2.0, 3.9), Some(1));
        assert_eq!(decide(2.0, 4.0), Some(2));
        assert_eq!(decide(0.2, 0.9), Some(1));
        assert_eq!(decide(0.0, 0.9), None);
        assert_eq!(decide(-3.0, 1.0), Some(2));
    }
}
