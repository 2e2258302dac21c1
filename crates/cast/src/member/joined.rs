//! The receiver's side of a member: joined transfers, decoded batches, and reports of the batches it has.

use std::collections::BTreeSet;

use chappe_core::{Address, Duration, Instant};
use chappe_pacifier::Node;

use super::Member;
use super::parts::{Mending, Watch};
use crate::frame::{HOLDING_BITS, HOLDING_HEAD, Holding, RECEIPT};
use crate::manifest::Ticket;
use crate::receipt::Receipt;

/// The receiver's side of a transfer.
pub(super) struct Joined {
    /// For each batch, whether it has been received.
    pub held: Vec<bool>,
    /// When to send the next report of batches to the sender.
    pub tell_at: Instant,
    /// Largest number of incomplete batches in memory.
    pub partial_max: usize,
    /// Polluted batches that are not fetched yet, and the one that is.
    pub polluted: BTreeSet<u32>,
    pub mending: Option<Mending>,
    pub watch: Watch,
}

/// Interval between reports of a receiver's batches.
const HOLDING: Duration = Duration::from_secs(2);
/// First interval between repetitions of a receipt, and how often it doubles: to a minute.
const RECEIPT_AGAIN: Duration = Duration::from_millis(500);
const RECEIPT_DOUBLINGS: u32 = 7;
/// Interval between attempts while no route to the sender is known.
const REROUTE: Duration = Duration::from_millis(100);

impl Member {
    /// Joins a sender's transfer. `held` says which batches are on the disk already.
    pub fn join(&mut self, now: Instant, source: u16, held: Vec<bool>) {
        let memory = self.settings.memory;
        let Some(transfer) = self.transfers.get_mut(&source) else {
            return;
        };
        let batch = transfer.ticket.cut.batch_len().max(1);
        // One fifth more than the sender's window.
        let partial_max = (memory as u64 / batch * 6 / 5).max(8) as usize;
        let joined = Joined {
            held,
            tell_at: now,
            partial_max,
            polluted: BTreeSet::new(),
            mending: None,
            watch: Watch::new(now),
        };
        if let Some(node) = &mut transfer.node {
            joined.expect(node, &transfer.ticket);
        }
        transfer.joined = Some(joined);
    }

    /// Writes the next decoded batch of a sender's transfer to `into`; returns its index.
    pub fn decoded(&mut self, source: u16, into: &mut Vec<u8>) -> Option<u32> {
        self.node_of(source)?.decoded(source, into)
    }

    /// Acknowledges a batch that was checked and stored.
    pub fn accept(&mut self, now: Instant, source: u16, batch: u32) {
        let Some(transfer) = self.transfers.get_mut(&source) else {
            return;
        };
        let held = transfer.joined.as_mut();
        if let Some(held) = held.and_then(|joined| joined.held.get_mut(batch as usize)) {
            *held = true;
        }
        if let Some(joined) = &mut transfer.joined {
            joined.watch.gained(now, batch);
        }
        if let Some(node) = &mut transfer.node {
            node.accept(now, source, batch);
        }
    }

    /// Forgets a sender's transfer.
    pub fn forget(&mut self, source: u16) {
        self.transfers.remove(&source);
    }

    /// Reports the batches to each sender from time to time, in case it has restarted or missed an acknowledgement.
    pub(super) fn send_holdings(&mut self, now: Instant) {
        let me = self.node;
        let life = self.roster.own().life;
        // With its head and signature it must pass where the shortest frames do.
        let most = HOLDING_BITS.min(self.frame_max(now).saturating_sub(HOLDING_HEAD));
        for (&source, transfer) in &mut self.transfers {
            let (Some(joined), Some(node)) = (&mut transfer.joined, &mut transfer.node) else {
                continue;
            };
            if joined.tell_at > now {
                continue;
            }
            let Some(hop) = node.route(source) else {
                joined.tell_at = now + REROUTE;
                continue;
            };
            joined.tell_at = now + HOLDING;
            let chunks = joined.held.chunks(most * 8);
            for (first, chunk) in (0..).step_by(most * 8).zip(chunks) {
                let mut bits = vec![0u8; chunk.len().div_ceil(8)];
                for (place, _) in chunk.iter().enumerate().filter(|(_, held)| **held) {
                    bits[place / 8] |= 1 << (place % 8);
                }
                // The first frame is sent even if empty, because it announces the receiver.
                if first > 0 && bits.iter().all(|octet| *octet == 0) {
                    continue;
                }
                let mut holding = Holding {
                    id: transfer.ticket.id(),
                    receiver: me,
                    life,
                    first,
                    bits: &bits,
                    signature: &[0; 64],
                };
                let seat = &self.settings.seat;
                let message = holding.message(&seat.group.owner);
                let signature = seat.key.sign().sign(&message);
                holding.signature = &signature;
                self.outbox.push(Address::node(hop), holding.emit());
            }
        }
    }
}

impl Member {
    /// Sends the receipt for a sender's transfer, now and from time to time while it is offered: it may get lost.
    pub fn give_receipt(&mut self, now: Instant, source: u16, receipt: Receipt) {
        if let Some(transfer) = self.transfers.get_mut(&source) {
            transfer.receipt = Some((receipt, now, 0));
        }
    }

    /// Whether a sender gets a receipt for this transfer from time to time.
    pub fn gives_receipt(&self, source: u16, id: u64) -> bool {
        let transfer = self.transfers.get(&source);
        let given = transfer.and_then(|transfer| transfer.receipt.as_ref());
        given.is_some_and(|(receipt, ..)| receipt.transfer == id)
    }

    pub(super) fn send_receipts(&mut self, now: Instant) {
        for (&source, transfer) in &mut self.transfers {
            let Some((receipt, at, times)) = &mut transfer.receipt else {
                continue;
            };
            if *at > now {
                continue;
            }
            let hop = transfer.node.as_mut().and_then(|node| node.route(source));
            let Some(hop) = hop else {
                *at = now + REROUTE;
                continue;
            };
            *at = now + RECEIPT_AGAIN * (1 << *times);
            *times = (*times + 1).min(RECEIPT_DOUBLINGS);
            let octets = [&[RECEIPT][..], &receipt.encode()].concat();
            self.outbox.push(Address::node(hop), octets);
        }
    }
}

impl Joined {
    /// Configures a new Pacifier node to collect the missing batches.
    pub(super) fn expect(&self, node: &mut Node, ticket: &Ticket) {
        let held = |batch: u32| self.held.get(batch as usize) == Some(&true);
        let len = ticket.cut.len as usize;
        // This fails only for the sender itself, which never joins.
        let _ = node.expect_checked(ticket.source, ticket.serial, len, self.partial_max, held);
    }
}
