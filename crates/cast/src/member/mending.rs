//! What a member of the group may forge in another's name, and how it is made good.
//!
//! All neighbours of a member have the key of its broadcasts, so one of them can send data and claims in its name. A packet cannot be
//! checked before its batch is decoded. Therefore a receiver gets a batch with a wrong digest in *parts* from the sender: half packets,
//! uncoded, each signed, in unicasts over the relays. No member can pollute it again, and a forged part costs one verification.
//!
//! Others can also say in a receiver's name that it wants nothing, so that no node serves it. A receiver that gets no batch for long, or
//! much fewer than a trial with one batch in parts promises, therefore fetches what it lacks in parts as well.
//!
//! Whether a receiver is complete spreads as gossip, too. A receiver's record is signed and numbered. If two records in a row deny what
//! the gossip says, the gossip about this receiver does not count any more.

use chappe_core::{Address, Duration, Instant};
use chappe_pacifier::Node;

use super::Member;
use super::joined::Joined;
use super::offer::Offer;
use super::parts::{GIVE_UP, Mending, Wanted, batch_len, part_range};
use crate::frame::{Part, WANT_BITS, Want};
use crate::roster::State;

/// Interval between requests for parts, which may get lost: ten times the first wait of a unicast.
const AGAIN: Duration = Duration::from_millis(250);
/// Records that must deny a claim after it was heard. One may have been under way.
const DENIALS: u32 = 2;

impl Joined {
    /// Takes one of the batches that this receiver lacks out of coding, if it has not been served for long.
    fn look(&mut self, now: Instant, node: &mut Node, source: u16) {
        if now < self.watch.look_at {
            return;
        }
        let Some(batch) = self.held.iter().position(|held| !held) else {
            self.watch.look_at = Instant::MAX;
            return;
        };
        // The transfer may have begun just now, so the first look does not count.
        let runs = node.takes_part(source);
        if !std::mem::replace(&mut self.watch.runs, runs) || !runs {
            return self.watch.count_anew(now);
        }
        let batch = batch as u32;
        if node.set_aside(source, batch) {
            self.watch.fetch(now, batch);
            self.polluted.insert(batch);
        } else {
            self.watch.count_anew(now);
        }
    }

    /// Leaves all batches to coding: Pacifier has begun anew.
    pub(super) fn collect_all(&mut self) {
        self.polluted.clear();
        self.mending = None;
    }

    /// When the next request for parts is due.
    pub(super) fn want_at(&self) -> Option<Instant> {
        match &self.mending {
            Some(mending) => (!mending.is_whole()).then_some(mending.ask_at),
            None if self.polluted.is_empty() => Some(self.watch.look_at),
            None => Some(Instant::ZERO),
        }
    }
}

impl Offer {
    /// When the next part is due: now, if there is one.
    pub(super) fn part_at(&self) -> Option<Instant> {
        self.wanted.front().map(|wanted| wanted.since)
    }
}

/// The receiver's side: it discards wrong batches and asks for their parts.
impl Member {
    /// Discards a batch with a wrong digest, and fetches it from the sender in signed parts.
    pub fn reject(&mut self, now: Instant, source: u16, batch: u32) {
        let Some(transfer) = self.transfers.get_mut(&source) else {
            return;
        };
        let aside = transfer
            .node
            .as_mut()
            .map(|node| node.set_aside(source, batch));
        if let (Some(true), Some(joined)) = (aside, &mut transfer.joined) {
            joined.polluted.insert(batch);
        }
        self.send_wants(now);
    }

    /// Writes the batch that was fetched in parts to `into`; returns its index. It is to be accepted or rejected as a decoded one.
    pub fn mended(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        let joined = self.transfers.get_mut(&source)?.joined.as_mut()?;
        let mending = joined.mending.take_if(|mending| mending.is_whole())?;
        *into = mending.octets;
        Some(mending.batch)
    }

    /// Requests the missing parts of one polluted batch of each transfer, again and again.
    pub(super) fn send_wants(&mut self, now: Instant) {
        let me = self.node;
        for (&source, transfer) in &mut self.transfers {
            let (Some(joined), Some(node)) = (&mut transfer.joined, &mut transfer.node) else {
                continue;
            };
            if joined.mending.is_none() {
                if joined.polluted.is_empty() {
                    joined.look(now, node, source);
                }
                let next = joined.polluted.pop_first();
                joined.mending = next.map(|batch| Mending::new(now, &transfer.ticket.cut, batch));
            }
            let Some(mending) = joined
                .mending
                .as_mut()
                .filter(|mending| !mending.is_whole())
            else {
                continue;
            };
            if now >= mending.until {
                node.reject(source, mending.batch);
                joined.mending = None;
                continue;
            }
            if now < mending.ask_at {
                continue;
            }
            mending.ask_at = now + AGAIN;
            let Some(hop) = node.route(source) else {
                continue;
            };
            let bits = mending.missing();
            let mut want = Want {
                id: transfer.ticket.id(),
                receiver: me,
                batch: mending.batch,
                bits: &bits,
                signature: &[0; 64],
            };
            let seat = &self.settings.seat;
            let signature = seat.key.sign().sign(&want.message(&seat.group.owner));
            want.signature = &signature;
            self.outbox.push(Address::node(hop), want.emit());
        }
    }

    /// Handles a part, or forwards it towards its receiver.
    pub(super) fn on_part(&mut self, now: Instant, part: &Part<'_>) {
        let mut transfers = self.transfers.iter_mut();
        let Some((&source, transfer)) = transfers.find(|(_, one)| one.ticket.id() == part.id)
        else {
            return;
        };
        if part.receiver != self.node {
            if let Some(hop) = transfer.hop(part.receiver, source) {
                self.outbox.push(Address::node(hop), part.emit());
            }
            return;
        }
        let mending = transfer
            .joined
            .as_mut()
            .and_then(|joined| joined.mending.as_mut());
        let Some(mending) = mending.filter(|mending| mending.batch == part.batch) else {
            return;
        };
        let place = part_range(&transfer.ticket.cut, part.batch, part.part.into());
        let Some(have) = mending
            .have
            .get_mut(usize::from(part.part))
            .filter(|have| !**have)
        else {
            return;
        };
        let group = &self.settings.seat.group;
        let genuine = group.verifies(source, &part.message(&group.owner), part.signature);
        let room = mending.octets.get_mut(place);
        let Some(room) = room.filter(|room| genuine && room.len() == part.octets.len()) else {
            self.counts.forged += 1;
            return;
        };
        room.copy_from_slice(part.octets);
        *have = true;
        (mending.ask_at, mending.until) = (now + AGAIN, now + GIVE_UP);
        self.counts.mended += 1;
    }
}

/// The sender's side, and that of members which forward requests to it.
impl Member {
    /// Notes which parts a receiver wants, or forwards the request towards the sender.
    pub(super) fn on_want(&mut self, now: Instant, want: &Want<'_>) {
        let mut transfers = self.transfers.iter_mut();
        let Some((&source, transfer)) = transfers.find(|(_, one)| one.ticket.id() == want.id)
        else {
            return;
        };
        if source != self.node {
            if let Some(hop) = transfer.hop(source, want.receiver) {
                self.outbox.push(Address::node(hop), want.emit());
            }
            return;
        }
        let Some(offer) = &mut transfer.offer else {
            return;
        };
        let group = &self.settings.seat.group;
        let known = offer.receivers.contains_key(&want.receiver);
        if !known || !group.verifies(want.receiver, &want.message(&group.owner), want.signature) {
            self.counts.forged += 1;
            return;
        }
        // Others could repeat a request: the parts that wait are sent first.
        let waits = offer.wanted.iter().any(|one| one.receiver == want.receiver);
        if waits || want.batch >= transfer.ticket.cut.batches() {
            return;
        }
        let mut bits = [0; WANT_BITS];
        for (place, octet) in bits.iter_mut().zip(want.bits) {
            *place = *octet;
        }
        offer.wanted.push_back(Wanted {
            receiver: want.receiver,
            batch: want.batch,
            bits,
            since: now,
            octets: Vec::new(),
        });
    }

    /// Sends wanted parts while the queue is short.
    pub(super) fn send_parts(&mut self) {
        let Some(transfer) = self.transfers.get_mut(&self.node) else {
            return;
        };
        let (Some(offer), Some(node)) = (&mut transfer.offer, &mut transfer.node) else {
            return;
        };
        let cut = transfer.ticket.cut;
        while self.outbox.takes_pieces() {
            let Some(wanted) = offer.wanted.front_mut() else {
                return;
            };
            let hop = node.route(wanted.receiver);
            let part = (0..WANT_BITS * 8).find(|part| wanted.bits[part / 8] >> (part % 8) & 1 == 1);
            let part = part.filter(|&part| !part_range(&cut, wanted.batch, part).is_empty());
            let (Some(hop), Some(part), Some(object)) = (hop, part, &offer.object) else {
                offer.wanted.pop_front();
                continue;
            };
            wanted.bits[part / 8] &= !(1 << (part % 8));
            if wanted.octets.is_empty() {
                wanted.octets.resize(batch_len(&cut, wanted.batch), 0);
                let start = cut.range(wanted.batch).start as usize;
                if !object.read(start, &mut wanted.octets) {
                    offer.wanted.pop_front();
                    continue;
                }
            }
            let place = part_range(&cut, wanted.batch, part);
            let mut frame = Part {
                id: transfer.ticket.id(),
                receiver: wanted.receiver,
                batch: wanted.batch,
                part: part as u16,
                octets: wanted.octets.get(place).unwrap_or_default(),
                signature: &[0; 64],
            };
            let seat = &self.settings.seat;
            let signature = seat.key.sign().sign(&frame.message(&seat.group.owner));
            frame.signature = &signature;
            self.outbox.push(Address::node(hop), frame.emit());
        }
    }
}

/// The check of the gossip against the records of members.
impl Member {
    /// Compares what the gossip says of receivers with what they say themselves.
    pub(super) fn check_claims(&mut self, now: Instant) {
        for (&source, transfer) in &mut self.transfers {
            let Some(node) = &mut transfer.node else {
                continue;
            };
            let (id, batches) = (transfer.ticket.id(), transfer.ticket.cut.batches());
            for record in self.roster.others(now) {
                let denies =
                    matches!(record.transfer(id), Some((State::Receiving, done)) if done < batches);
                if !denies || !node.counts_complete(source, record.node) {
                    transfer.denials.remove(&record.node);
                    continue;
                }
                let first = *transfer.denials.entry(record.node).or_insert(record.number);
                if record.number.wrapping_sub(first) >= DENIALS {
                    node.dispute(source, record.node);
                    transfer.denials.remove(&record.node);
                    self.counts.disputed += 1;
                }
            }
        }
    }
}
