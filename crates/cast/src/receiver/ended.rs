//! Transfers that have ended: the command for what has arrived, and what this member reports to the sender.

use std::path::PathBuf;

use chappe_core::Instant;

use super::Receiver;
use crate::disk::unix_ms;
use crate::error::{Error, Kind};
use crate::event::Event;
use crate::manifest::Ticket;
use crate::member::Member;
use crate::receipt::{Command, Receipt};
use crate::roster::State;
use crate::session::Watch;
use crate::then::Arrival;

/// Largest number of ended transfers that are remembered, with `keep`.
const ENDED_MAX: usize = 1000;

/// A transfer that has ended, and what this member reports of it.
pub(super) struct Ended {
    source: u16,
    id: u64,
    state: State,
    batches: u32,
    receipt: Option<Receipt>,
}

impl Ended {
    /// The transfer of this ticket, whose files are there.
    fn working(ticket: &Ticket) -> Ended {
        Ended {
            source: ticket.source,
            id: ticket.id(),
            state: State::Working,
            batches: ticket.cut.batches(),
            receipt: None,
        }
    }

    pub(super) fn offer(&self) -> (u16, u64) {
        (self.source, self.id)
    }

    /// Tells the sender, unless this member does so already.
    pub(super) fn tell(&self, now: Instant, member: &mut Member) {
        if member.state(self.id) != Some(self.state) {
            member.report(now, self.id, self.state, self.batches);
        }
        if let Some(receipt) = self.receipt
            && !member.gives_receipt(self.source, self.id)
        {
            member.give_receipt(now, self.source, receipt);
        }
    }
}

impl Receiver<'_> {
    /// Runs the command for what has arrived on a separate thread; without one, the transfer is complete.
    pub(super) fn work(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: Ticket,
        files: Vec<PathBuf>,
    ) {
        let Some(then) = self.receiving.then.clone() else {
            return self.complete(now, member, &ticket, (false, Command::None));
        };
        let arrival = Arrival {
            transfer: ticket.name(),
            sender: member.roster().seat().group.name_of(ticket.source),
            folder: self.receiving.folder.clone(),
            files,
        };
        self.end(now, member, Ended::working(&ticket));
        let run = move || then.run(&arrival);
        let run = self.rope.spawn("the thread that runs the command", run);
        self.working.push((ticket, run));
    }

    /// Reports the commands that have ended.
    pub(super) fn take_worked(&mut self, now: Instant, member: &mut Member, watch: &mut dyn Watch) {
        let mut done = Vec::new();
        self.working.retain_mut(|(ticket, run)| {
            let end = run.take();
            let over = end.is_some();
            done.extend(end.map(|end| (*ticket, end.unwrap_or(Command::NotStarted))));
            !over
        });
        for (ticket, end) in done {
            let words = end.words().unwrap_or_default();
            let what = format!("transfer {}: {words}", ticket.name());
            if !end.is_good() {
                let todo = "the files are there; run the command by hand to see why";
                self.command_failure = Some(Error::failed(what.clone(), todo));
            }
            watch.event(Event::Warning { what });
            self.complete(now, member, &ticket, (false, end));
        }
    }

    /// Announces that this member has the files of a transfer, and gives the sender a receipt.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: &Ticket,
        end: (bool, Command),
    ) {
        let seat = member.roster().seat();
        let who = (seat.node, seat.key.sign());
        let receipt = Receipt::sign(&seat.group, ticket, who, unix_ms(), end);
        let ended = Ended {
            state: State::Complete,
            receipt: Some(receipt),
            ..Ended::working(ticket)
        };
        // The same files of another sender, who may have taken them back.
        self.failure.take_if(|failed| failed.0 == ticket.manifest);
        self.end(now, member, ended);
    }

    /// Tells the sender that a transfer has ended, and remembers it. If it drops out of the memory and is offered again, it is checked
    /// again.
    fn end(&mut self, now: Instant, member: &mut Member, ended: Ended) {
        ended.tell(now, member);
        self.ended.retain(|known| known.offer() != ended.offer());
        if self.ended.len() >= ENDED_MAX {
            self.ended.remove(0);
        }
        self.ended.push(ended);
    }

    pub(super) fn refuse(
        &mut self,
        now: Instant,
        member: &mut Member,
        source: u16,
        error: Error,
        watch: &mut dyn Watch,
    ) {
        if let Some(active) = self.active.remove(&source) {
            self.refuse_ticket(now, member, &active.ticket, error, watch);
        }
    }

    /// Refuses a transfer and reports why. A fault in the input becomes a failed transfer: the command line was right.
    pub(super) fn refuse_ticket(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: &Ticket,
        error: Error,
        watch: &mut dyn Watch,
    ) {
        watch.event(Event::Refused {
            transfer: ticket.name(),
            why: error.what.clone(),
            todo: error.todo.clone(),
        });
        let ended = Ended {
            state: State::Failed(error.reason),
            batches: 0,
            ..Ended::working(ticket)
        };
        self.end(now, member, ended);
        let kind = match error.kind {
            Kind::Input => Kind::Failed,
            kind => kind,
        };
        self.failure = Some((ticket.manifest, Error { kind, ..error }));
    }
}
