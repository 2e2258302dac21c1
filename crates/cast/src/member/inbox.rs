//! Received control frames: records, tickets, pieces of manifests, and reports of batches.

use chappe_core::{Address, Duration, Instant};
use litemap::LiteMap;

use super::{Member, TRANSFERS_MAX, Transfer, URGENT};
use crate::fetch::{Fetch, POLITENESS};
use crate::frame::{Frame, Holding, RECEIPT};
use crate::manifest::{TICKET, Ticket};
use crate::reason::Reason;
use crate::receipt::Receipt;
use crate::roster::{self, MEMBER_MAX, News, State};

impl Member {
    /// Handles a control frame.
    pub(super) fn on_control(&mut self, now: Instant, frame: Frame<'_>) {
        match frame {
            Frame::News { tickets, records } => {
                self.on_records(now, records);
                for ticket in tickets.chunks_exact(TICKET) {
                    self.on_ticket(now, ticket);
                }
            }
            Frame::Foreign => self.counts.foreign += 1,
            Frame::Ask { id, first, bits } => {
                let wait = Duration::from_nanos(self.random.below(POLITENESS.nanos()));
                let me = self.node;
                for (&source, transfer) in &mut self.transfers {
                    if transfer.ticket.id() == id {
                        let wait = if source == me {
                            Duration::ZERO
                        } else {
                            POLITENESS + wait
                        };
                        transfer.fetch.on_ask(now, first, bits, wait);
                    }
                }
            }
            Frame::Piece { id, piece, octets } => {
                for (_, transfer) in &mut self.transfers {
                    if transfer.ticket.id() == id {
                        transfer.fetch.put(now, piece, octets);
                    }
                }
            }
            Frame::Holding(holding) => self.pass_on(now, holding),
            Frame::Receipt(receipt) => self.on_receipt(&receipt),
            Frame::Want(want) => self.on_want(now, &want),
            Frame::Part(part) => self.on_part(now, &part),
        }
    }

    /// Forwards a receipt towards the sender of its transfer, or keeps it if this member is the sender.
    fn on_receipt(&mut self, receipt: &Receipt) {
        let transfer = self.transfers.get_mut(&receipt.source);
        let Some(transfer) = transfer.filter(|transfer| transfer.ticket.id() == receipt.transfer)
        else {
            return;
        };
        if receipt.source != self.node {
            let hop = transfer
                .node
                .as_mut()
                .and_then(|node| node.route(receipt.source));
            if let Some(hop) = hop.filter(|&hop| hop != receipt.receiver) {
                let octets = [&[RECEIPT][..], &receipt.encode()].concat();
                self.outbox.push(Address::node(hop), octets);
            }
            return;
        }
        let ours = receipt.manifest == transfer.ticket.manifest;
        if !ours || !receipt.is_genuine(&self.settings.seat.group) {
            self.counts.forged += 1;
            return;
        }
        if let Some(offer) = &mut transfer.offer {
            offer.receipts.insert(receipt.receiver, *receipt);
        }
    }

    /// Forwards a report of batches towards the sender of the transfer.
    fn pass_on(&mut self, now: Instant, holding: Holding<'_>) {
        let found = self
            .transfers
            .iter_mut()
            .find(|(_, transfer)| transfer.ticket.id() == holding.id);
        let Some((&source, transfer)) = found else {
            return;
        };
        if source == self.node {
            return self.on_holding(now, &holding);
        }
        let hop = transfer.node.as_mut().and_then(|node| node.route(source));
        // The receiver repeats its reports, so losing one is harmless. A loop while routes change ends, because the link
        // delivers each frame once per hop.
        let Some(hop) = hop.filter(|&hop| hop != holding.receiver) else {
            return;
        };
        let octets = holding.emit();
        self.outbox.push(Address::node(hop), octets);
    }

    fn on_records(&mut self, now: Instant, mut records: &[u8]) {
        let mut news = News::None;
        while !records.is_empty() {
            let Some((record, rest)) = roster::read(records) else {
                self.counts.malformed += 1;
                break;
            };
            records = rest;
            match self.roster.learn(now, record) {
                Some(News::Member) => news = News::Member,
                Some(News::Renewed) => self.changed = true,
                Some(News::None) => {}
                None => self.counts.malformed += 1,
            }
        }
        if news == News::Member {
            self.changed = true;
            self.urgent = self.urgent.max(1);
            self.news_at = self
                .news_at
                .min(now + Duration::from_nanos(self.random.below(URGENT.nanos())));
        }
    }

    fn on_ticket(&mut self, now: Instant, octets: &[u8]) {
        let Some(ticket) = Ticket::decode(octets) else {
            self.counts.malformed += 1;
            return;
        };
        let source = ticket.source;
        if source > MEMBER_MAX || source == self.node {
            return;
        }
        let known = self.transfers.get(&source);
        let is_known = known.is_some();
        if known.is_some_and(|transfer| transfer.ticket == ticket) {
            return;
        }
        if ticket.withdrawn.is_some() {
            return self.on_withdrawal(now, ticket);
        }
        // An old ticket is still validly signed, so the sender's present record decides.
        let offers = self
            .roster
            .get(now, source)
            .and_then(|record| record.transfer(ticket.id()));
        if !matches!(offers, Some((State::Offering, _))) {
            return;
        }
        if !self.is_trusted(&ticket) {
            return self.report_unsigned(now, &ticket);
        }
        let me = self.node;
        let others = self.transfers.keys().filter(|&&of| of != me).count();
        if !is_known && others >= TRANSFERS_MAX {
            self.counts.crowded += 1;
            self.counts.refused += 1;
            return;
        }
        self.enter(now, ticket);
        self.urgent = self.urgent.max(1);
        // A transfer that was forgotten and is offered again may still be in this member's record.
        let told = self.roster.own().transfer(ticket.id()).is_some();
        if self.settings.roles.receives && !told {
            self.report(now, ticket.id(), State::Preparing, 0);
        }
        self.make_nodes(now);
    }

    /// Tells the sender that its ticket is not signed as it must be, unless the record has no room: it is the sender's mistake or this
    /// receiver's.
    fn report_unsigned(&mut self, now: Instant, ticket: &Ticket) {
        let room = self.roster.own().transfers.len() < TRANSFERS_MAX;
        if self.settings.roles.receives && room {
            let state = State::Failed(Reason::Unsigned);
            self.report(now, ticket.id(), state, 0);
        }
    }

    /// Notes the transfer of a ticket.
    fn enter(&mut self, now: Instant, ticket: Ticket) {
        // A restarted sender offers the same files under a new ticket. What this member has of them stays.
        let alike = |known: &&mut Transfer| known.ticket.is_alike(&ticket);
        match self.transfers.get_mut(&ticket.source).filter(alike) {
            Some(known) => {
                let former = known.ticket.id();
                (known.ticket, known.withdrawn) = (ticket, None);
                let own = self.roster.own();
                own.transfers.retain(|transfer| transfer.0 != former);
            }
            None => {
                let transfer = Transfer {
                    fetch: Fetch::new(now, ticket),
                    ticket,
                    node: None,
                    life: None,
                    joined: None,
                    offer: None,
                    receipt: None,
                    withdrawn: None,
                    denials: LiteMap::new(),
                };
                self.transfers.insert(ticket.source, transfer);
            }
        }
    }

    /// Whether a ticket is signed by its sender, and that member may send.
    fn is_trusted(&mut self, ticket: &Ticket) -> bool {
        let entry = self.settings.seat.group.members.get(&ticket.source);
        let signed = entry.is_some_and(|entry| ticket.is_signed_by(&entry.public.sign));
        let may = entry.is_some_and(|entry| entry.sends);
        self.counts.unsigned += u64::from(!signed);
        self.counts.unauthorised += u64::from(signed && !may);
        signed && may
    }

    /// Handles a ticket by which a sender takes its offer back. Only the signer can make it, and it names one offer.
    fn on_withdrawal(&mut self, now: Instant, ticket: Ticket) {
        let Some(transfer) = self.transfers.get_mut(&ticket.source) else {
            return;
        };
        if transfer.ticket.id() != ticket.id() || transfer.withdrawn.is_some() {
            return;
        }
        if !self.is_trusted(&ticket) {
            return;
        }
        let Some(transfer) = self.transfers.get_mut(&ticket.source) else {
            return;
        };
        (transfer.ticket, transfer.withdrawn) = (ticket, Some(now));
        transfer.node = None;
        self.announce_soon(now);
    }
}
