//! What a member sends: the offer, who has asked for it, and what each of them is known to have.

use std::collections::BTreeMap;
use std::sync::Arc;

use chappe_core::Instant;
use chappe_pacifier::{Object, OfferError};

use super::{Member, Transfer};
use crate::error::Error;
use crate::fetch::Fetch;
use crate::frame::Holding;
use crate::manifest::Ticket;
use crate::roster::{MEMBER_MAX, State};

/// The sender's side of its own transfer.
#[derive(Default)]
pub(super) struct Offer {
    /// What is sent, once the sender has begun.
    pub object: Option<Arc<dyn Object>>,
    /// Whether Pacifier has taken it on.
    pub begun: bool,
    /// Those who have asked for it.
    pub receivers: BTreeMap<u16, Receiver>,
    /// Those whom the present plan serves.
    pub served: Vec<u16>,
    /// Why it can never be sent.
    pub obstacle: Option<Error>,
}

/// What the sender knows of a receiver.
pub(super) struct Receiver {
    pub life: u64,
    pub held: Vec<bool>,
}

impl Member {
    /// Announces a transfer.
    pub fn announce(&mut self, now: Instant, ticket: Ticket, manifest: Vec<u8>) {
        let transfer = Transfer {
            ticket,
            fetch: Fetch::whole(now, ticket, manifest),
            node: None,
            life: None,
            joined: None,
            offer: Some(Offer::default()),
        };
        self.transfers.insert(self.settings.node, transfer);
        // Links that have settled while the files were read change no more.
        self.make_nodes();
        self.report(now, ticket.id(), State::Offering, 0);
    }

    /// Begins to send the data.
    pub fn begin(&mut self, now: Instant, object: Arc<dyn Object>) {
        let offer = self.own_offer();
        if let Some(offer) = offer {
            offer.object = Some(object);
        }
        self.serve(now);
    }

    /// Receivers that have asked for the transfer, and what the sender knows that each has.
    pub fn receivers(&self) -> Vec<(u16, u32)> {
        let Some(transfer) = self.transfers.get(&self.settings.node) else {
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

    /// Why the own transfer can never be sent, if that is so.
    pub fn obstacle(&self) -> Option<&Error> {
        let own = self.transfers.get(&self.settings.node)?;
        own.offer.as_ref()?.obstacle.as_ref()
    }

    /// Ends the own transfer.
    pub fn withdraw(&mut self, now: Instant) {
        self.transfers.remove(&self.settings.node);
        self.roster
            .own()
            .transfers
            .retain(|transfer| transfer.1 != State::Offering);
        self.announce_soon(now);
    }

    fn own_offer(&mut self) -> Option<&mut Offer> {
        self.transfers.get_mut(&self.settings.node)?.offer.as_mut()
    }

    /// Serves those who are there and lack something.
    pub(super) fn serve(&mut self, now: Instant) {
        let me = self.settings.node;
        let Some(transfer) = self.transfers.get_mut(&me) else {
            return;
        };
        let (Some(offer), Some(node), Some(links)) =
            (&mut transfer.offer, &mut transfer.node, &self.links)
        else {
            return;
        };
        let id = transfer.ticket.id();
        // One that has just come is not among the links yet, and is served as soon as it is.
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
                // With nobody within reach nothing is begun: those who come later would be added to nothing.
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

    /// A receiver says what it has.
    pub(super) fn on_holding(&mut self, now: Instant, holding: &Holding<'_>) {
        let Some(transfer) = self.transfers.get_mut(&self.settings.node) else {
            return;
        };
        let (Some(offer), true) = (&mut transfer.offer, transfer.ticket.id() == holding.id) else {
            return;
        };
        if holding.receiver > MEMBER_MAX || holding.receiver == self.settings.node {
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

/// What Pacifier says of an object that it cannot send, and what helps.
fn unsendable(error: OfferError) -> Error {
    let todo = match error {
        OfferError::Header { .. } => {
            "frames of `--variant improved` have no such list; more relays make the paths shorter"
        }
        OfferError::TooLarge => "send it in several transfers",
        OfferError::Busy | OfferError::Receiver(_) => "",
    };
    Error::failed(format!("the files cannot be sent: {error}"), todo)
}
