//! The choice of packet and next hop, made when the link can take a frame.

use chappe_core::{Class, Duration, Instant};

use super::{Pin, Router};
use crate::baseline::dclo::Edge;
use crate::config::{Pins, Scheme};
use crate::price;
use crate::routes::{Destination, Hop};
use crate::store::Packet;

/// The packet that would be sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// The place of the destination.
    pub destination: u16,
    /// The place of the next hop.
    pub neighbour: u8,
    /// Whether the next hop is not that of the best route.
    pub detour: bool,
    /// The class for the MAC.
    pub class: Class,
    /// Whether its packet goes before those that are not marked so.
    first: bool,
    price: f64,
    /// The order of its packet's arrival.
    order: u64,
}

/// A next hop with its price.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    neighbour: u8,
    detour: bool,
    price: f64,
    /// The price without the bias. The class follows from this one, since the bias does not mean urgency.
    plain: f64,
}

impl Router {
    /// The best packet and next hop by present knowledge.
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
            let head = self.first(place);
            let first = head.is_some_and(|packet| packet.first);
            let offer = match first {
                true => self.shortest(destination),
                false => self.best_offer(now, place, destination),
            };
            let Some(offer) = offer else {
                continue;
            };
            let choice = Choice {
                destination: place,
                neighbour: offer.neighbour,
                detour: offer.detour,
                first,
                class: self.class_of(now, place, &offer, head),
                price: offer.price,
                order: head.map_or(u64::MAX, |packet| packet.order),
            };
            // Of equal prices, the packet that came first.
            let better = best.is_none_or(|best| match choice.first == best.first {
                true if choice.price == best.price => choice.order < best.order,
                true => choice.price > best.price,
                false => choice.first,
            });
            if better {
                best = Some(choice);
            }
        }
        best
    }

    /// The MAC's class of the packet `head`, the next one for the destination at `place`, by an offer. A packet that the link gave up
    /// meets a sender that it does not hear, so it no longer hurries: windows that grow let both through.
    fn class_of(&self, now: Instant, place: u16, offer: &Offer, head: Option<&Packet>) -> Class {
        let (limit, priorities) = (self.settings.queues.limit, &self.settings.priorities);
        let etx = self.links.etx(offer.neighbour);
        let is_good = |most: f64| etx.is_some_and(|etx| etx <= most);
        let failed = head.is_some_and(|packet| packet.failures > 0);
        let hurries = !failed && priorities.hasty.is_some_and(is_good);
        let first = head.is_some_and(|packet| packet.first);
        match priorities.by_queue {
            _ if first || hurries => Class::Urgent,
            true => price::class(self.backlog(now, place), limit, priorities),
            false => price::class(offer.plain, limit, priorities),
        }
    }

    /// The price of the best next hop for a destination: how many more packets wait here than
    /// there, per transmission. `None` if nothing waits or no price is positive.
    pub fn price(&self, now: Instant, destination: u16) -> Option<f64> {
        let place = self.routes.find(destination)?;
        if self.queue(destination) == 0 {
            return None;
        }
        let offer = self.best_offer(now, place, self.routes.get(place)?)?;
        Some(offer.price)
    }

    /// The next hop for the first packet of a queue, if there is one with a price above 0.
    fn best_offer(&self, now: Instant, place: u16, destination: &Destination) -> Option<Offer> {
        let own = self.backlog(now, place);
        let oldest = now.saturating_before(self.settings.queues.backlog_life);
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
        pinned_or_best(pinned, best, &rule)
    }

    /// The best route, for packets that go first: they are few, so that queues and credits do not hold them.
    fn shortest(&self, destination: &Destination) -> Option<Offer> {
        let hop = destination.hops().first()?;
        self.links.etx(hop.place)?;
        Some(Offer {
            neighbour: hop.place,
            detour: false,
            price: 0.0,
            plain: 0.0,
        })
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
        // A destination has no queue for itself.
        let theirs = match node == destination.node {
            true => 0.0,
            false => self.routes.backlog(oldest, place, hop.place).packets(),
        };
        // Positive for neighbours nearer to the destination than this node, by its best route.
        let nearer = destination.metric().etx() - hop.rest.etx();
        let bias = self.settings.extras.bias * nearer;
        // Zero turns credits off: no room is below it.
        let least = self.settings.extras.credits;
        // Credits: a neighbour without room gets nothing. The destination itself always has room.
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

    /// The oldest packet goes to the best next hop, if its destination is reachable and, with Fusion, if the next hop is not
    /// congested.
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
                    first: false,
                    price: 0.0,
                    order: packet.order,
                });
            }
        }
        // It is one queue: a blocked packet holds up those behind it.
        best.filter(|best| fusion.is_none() || self.bits.allows(now, best.neighbour))
    }

    /// The packet with the largest queue difference to the other node of the pair.
    fn choose_for_pair(&self, now: Instant) -> Option<Choice> {
        let target = self.rounds.as_ref()?.target()?;
        let neighbour = self.links.find(target)?;
        let oldest = now.saturating_before(self.settings.queues.backlog_life);
        let mut best: Option<Choice> = None;
        for &place in &self.active {
            let (Some(known), Some(packet)) = (self.routes.get(place), self.first(place)) else {
                continue;
            };
            let theirs = match known.node == target {
                true => 0.0,
                false => self.routes.backlog(oldest, place, neighbour).packets(),
            };
            let price = self.backlog(now, place) - theirs;
            if price > best.map_or(0.0, |best| best.price) {
                best = Some(Choice {
                    destination: place,
                    neighbour,
                    detour: false,
                    class: Class::Data,
                    first: false,
                    price,
                    order: packet.order,
                });
            }
        }
        best
    }

    /// The neighbours as possible pairs, with the differences between their advertised queues and this node's (eqs. 3 and 4).
    pub(super) fn edges(&self, now: Instant) -> impl Iterator<Item = Edge> + Clone {
        let oldest = now.saturating_before(self.settings.queues.backlog_life);
        self.links.iter().map(move |(neighbour, link)| {
            let (mut out, mut back) = (0u16, 0u16);
            for place in self.routes.places() {
                let Some(known) = self.routes.get(place) else {
                    continue;
                };
                let queue = self.queues.get(usize::from(place));
                let own = match known.node == self.me {
                    true => 0,
                    false => queue.map_or(0, |queue| queue.round_backlog.0),
                };
                let theirs = match known.node == link.node {
                    true => 0,
                    false => self.routes.backlog(oldest, place, neighbour).0,
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

    /// The packet at the head of a queue.
    pub(super) fn first(&self, place: u16) -> Option<&Packet> {
        let queue = self.queues.get(usize::from(place))?;
        self.store.packet(queue.list.first()?)
    }

    /// The effective length of a queue in packets: smoothed, plus the age term, where these are on.
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

    /// The oldest packet of a queue, at whichever end it is.
    pub(super) fn oldest(&self, place: u16) -> Option<&Packet> {
        let list = &self.queues.get(usize::from(place))?.list;
        let end = match self.settings.extras.lifo {
            true => list.last(),
            false => list.first(),
        };
        self.store.packet(end?)
    }

    /// The pin of the flow whose packet is at the head of a queue, if it has not expired.
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

/// Decides whether a flow stays on its pinned next hop or moves to the best one. `None`: it waits for a positive price on
/// the pinned one.
fn pinned_or_best(pinned: Offer, best: Offer, rule: &Pins) -> Option<Offer> {
    if pinned.neighbour == best.neighbour {
        return Some(best);
    }
    // At least one whole packet: prices near 0 are noise, and `gain` times such a price would not prevent changes.
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
            let choice = pinned_or_best(offer(1, pinned), offer(2, best), &rule);
            choice.map(|offer| offer.neighbour)
        };
        assert_eq!(decide(2.0, 3.9), Some(1));
        assert_eq!(decide(2.0, 4.0), Some(2));
        assert_eq!(decide(0.2, 0.9), Some(1));
        assert_eq!(decide(0.0, 0.9), None);
        assert_eq!(decide(-3.0, 1.0), Some(2));
    }
}
