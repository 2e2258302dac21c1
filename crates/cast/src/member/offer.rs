//! The sender's side of a member: its transfer, the receivers that asked for it, and the batches each has.

use std::collections::VecDeque;
use std::sync::Arc;

use chappe_core::Instant;
use chappe_pacifier::{Object, OfferError};
use litemap::LiteMap;

use super::parts::Wanted;
use super::{Member, Transfer};
use crate::error::Error;
use crate::fetch::Fetch;
use crate::frame::Holding;
use crate::manifest::Ticket;
use crate::receipt::Receipt;
use crate::roster::{MEMBER_MAX, State};

/// How often a sender says at the short interval that it takes its offer back. Of 20 frames at least one arrives in all but
/// 0.1 % of cases where 70 % are lost.
const REVOKED_TIMES: u32 = 20;

/// The sender's side of its own transfer.
#[derive(Default)]
pub(super) struct Offer {
    /// The data, once the sender has begun.
    pub object: Option<Arc<dyn Object>>,
    /// Whether Pacifier has accepted the data.
    pub begun: bool,
    /// The receivers that have asked for the transfer.
    pub receivers: LiteMap<u16, Receiver>,
    /// The receivers that the present plan serves.
    pub served: Vec<u16>,
    /// The receipts that have arrived, by receiver.
    pub receipts: LiteMap<u16, Receipt>,
    /// Parts of polluted batches to be sent; one batch of each receiver at most.
    pub wanted: VecDeque<Wanted>,
    /// Why the transfer can never be sent.
    pub obstacle: Option<Error>,
}

/// The sender's knowledge of a receiver.
pub(super) struct Receiver {
    pub life: u64,
    pub held: Vec<bool>,
}

impl Member {
    /// Announces a transfer that this member sends.
    pub fn announce(&mut self, now: Instant, ticket: Ticket, manifest: Vec<u8>) {
        let transfer = Transfer {
            ticket,
            fetch: Fetch::whole(now, ticket, manifest),
            node: None,
            life: None,
            joined: None,
            offer: Some(Offer::default()),
            receipt: None,
            withdrawn: None,
            denials: LiteMap::new(),
        };
        self.transfers.insert(self.node, transfer);
        // If the links settled while the files were read, no further change would trigger this.
        self.make_nodes(now);
        // An offer that was cut otherwise is void.
        let own = self.roster.own();
        own.transfers
            .retain(|transfer| transfer.1 != State::Offering);
        self.report(now, ticket.id(), State::Offering, 0);
    }

    /// Starts sending the data, as soon as a receiver is reachable.
    pub fn begin(&mut self, now: Instant, object: Arc<dyn Object>) {
        let offer = self.own_offer();
        if let Some(offer) = offer {
            offer.object = Some(object);
        }
        self.serve(now);
    }

    /// The receivers that have asked for the transfer, and the number of batches that each has acknowledged.
    pub fn receivers(&self) -> Vec<(u16, u32)> {
        let Some(transfer) = self.transfers.get(&self.node) else {
            return Vec::new();
        };
        let receivers = transfer
            .offer
            .iter()
            .flat_map(|offer| offer.receivers.keys());
        let acknowledged = |&receiver: &u16| {
            let node = transfer.node.as_ref();
            (
                receiver,
                node.map_or(0, |node| node.acknowledged_by(receiver)),
            )
        };
        receivers.map(acknowledged).collect()
    }

    /// The receipts for this member's transfer: signed by their receivers.
    pub fn receipts(&self) -> impl Iterator<Item = &Receipt> + '_ {
        let own = self.transfers.get(&self.node);
        let offer = own.and_then(|own| own.offer.as_ref());
        offer.into_iter().flat_map(|offer| offer.receipts.values())
    }

    /// Why this member's transfer can never be sent, if so.
    pub fn obstacle(&self) -> Option<&Error> {
        let own = self.transfers.get(&self.node)?;
        own.offer.as_ref()?.obstacle.as_ref()
    }

    /// Takes this member's offer back, and tells so: `ticket` is that of the offer, [withdrawn](Ticket::withdraw).
    pub fn revoke(&mut self, now: Instant, ticket: Ticket) {
        if let Some(transfer) = self.transfers.get_mut(&self.node) {
            (transfer.ticket, transfer.withdrawn) = (ticket, Some(now));
            (transfer.node, transfer.offer) = (None, None);
        }
        let own = self.roster.own();
        own.transfers
            .retain(|transfer| transfer.1 != State::Offering);
        // Nobody repeats it if all of these are lost.
        self.urgent = REVOKED_TIMES;
        self.announce_soon(now);
    }

    /// Whether this member has taken its offer back, and should stay for a moment to repeat that.
    pub fn has_revoked(&self) -> bool {
        let own = self.transfers.get(&self.node);
        own.is_some_and(|transfer| transfer.withdrawn.is_some())
    }

    /// Ends this member's transfer.
    pub fn withdraw(&mut self, now: Instant) {
        self.transfers.remove(&self.node);
        self.roster
            .own()
            .transfers
            .retain(|transfer| transfer.1 != State::Offering);
        self.announce_soon(now);
    }

    fn own_offer(&mut self) -> Option<&mut Offer> {
        self.transfers.get_mut(&self.node)?.offer.as_mut()
    }

    /// Plans for the live receivers that lack batches.
    pub(super) fn serve(&mut self, now: Instant) {
        let me = self.node;
        let Some(transfer) = self.transfers.get_mut(&me) else {
            return;
        };
        let (Some(offer), Some(node), Some(links)) =
            (&mut transfer.offer, &mut transfer.node, &self.links)
        else {
            return;
        };
        let id = transfer.ticket.id();
        // A new receiver is served as soon as it is among the links.
        let lacking = |receiver: &u16| {
            if !links.has(*receiver) {
                return false;
            }
            let record = self.roster.get(now, *receiver);
            let state = record.and_then(|record| record.transfer(id));
            state.is_some_and(|(state, _)| state == State::Receiving || state == State::Preparing)
        };
        let served: Vec<u16> = offer.receivers.keys().copied().filter(lacking).collect();
        if let (false, Some(object)) = (offer.begun, &offer.object) {
            let begun = node.offer_read(object.clone(), transfer.ticket.serial, &served);
            offer.begun = match begun {
                // With no receiver in reach the transfer does not begin, since Pacifier adds receivers only to a running one.
                Ok(begun) => begun.unreachable.len() < served.len(),
                Err(error) => {
                    offer.obstacle = Some(unsendable(error));
                    return;
                }
            };
            for (&receiver, known) in offer.receivers.iter().filter(|_| offer.begun) {
                let held = (0..).zip(&known.held).filter(|(_, held)| **held);
                for (batch, _) in held {
                    node.held_by(receiver, batch);
                }
            }
            offer.served = served;
        } else if offer.begun && offer.served != served {
            node.serve(&served);
            offer.served = served;
        }
    }

    /// Handles a receiver's report of its batches.
    pub(super) fn on_holding(&mut self, now: Instant, holding: &Holding<'_>) {
        let Some(transfer) = self.transfers.get_mut(&self.node) else {
            return;
        };
        let (Some(offer), true) = (&mut transfer.offer, transfer.ticket.id() == holding.id) else {
            return;
        };
        if holding.receiver > MEMBER_MAX || holding.receiver == self.node {
            return;
        }
        let group = &self.settings.seat.group;
        let message = holding.message(&group.owner);
        if !group.verifies(holding.receiver, &message, holding.signature) {
            self.counts.forged += 1;
            return;
        }
        let batches = transfer.ticket.cut.batches() as usize;
        let fresh = || Receiver {
            life: holding.life,
            held: vec![false; batches],
        };
        let known = offer
            .receivers
            .entry(holding.receiver)
            .or_insert_with(fresh);
        let node = transfer.node.as_mut().filter(|_| offer.begun);
        if known.life != holding.life {
            *known = fresh();
            if let Some(node) = node {
                node.lost_by(holding.receiver);
            }
        }
        let mut node = transfer.node.as_mut().filter(|_| offer.begun);
        for batch in holding.batches() {
            let Some(held) = known.held.get_mut(batch as usize) else {
                break;
            };
            *held = true;
            if let Some(node) = &mut node {
                node.held_by(holding.receiver, batch);
            }
        }
        self.serve(now);
    }
}

/// Turns Pacifier's refusal into an error with a remedy.
fn unsendable(error: OfferError) -> Error {
    let todo = match error {
        OfferError::Header { .. } => {
            "use `--variant improved`, whose frames have no such list, or add relays to shorten the paths"
        }
        OfferError::TooLarge => "send it in several transfers",
        OfferError::Busy | OfferError::Receiver(_) => "",
    };
    Error::failed(format!("the files cannot be sent: {error}"), todo)
}
