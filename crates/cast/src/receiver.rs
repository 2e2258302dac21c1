//! The receiver: stores offered files, checks them, and installs them. And the relay, which only forwards.

mod active;
mod ended;
mod opening;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread::JoinHandle;

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;
use litemap::LiteMap;

use active::Active;
use ended::Ended;
use opening::Opening;

use crate::disk;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::manifest::{Digest, Ticket};
use crate::member::Member;
use crate::reason::Reason;
use crate::receipt::Command;
use crate::roster::{Roles, State};
use crate::session::{Ending, Options, Role, Session, Watch};
use crate::then::Then;
use crate::work::{Rope, Work};

/// The options of a receiver.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// The folder for received files.
    pub folder: PathBuf,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether to continue after the first transfer.
    pub keep: bool,
    /// Whether each folder of a transfer appears, or is replaced, as a whole.
    pub whole: bool,
    /// Whether to accept versions that were signed before those that are installed.
    pub rollback: bool,
    /// The command that runs after each verified arrival.
    pub then: Option<Then>,
    /// How long the data of an unfinished transfer stay on the disk after the last of them arrived.
    pub keep_parts: Duration,
}

/// Interval between searches for abandoned data, with `keep`.
const CLEANING: Duration = Duration::from_secs(3600);

/// Receives files until one transfer is complete and its sender has finished, or, with `keep`, until stopped.
pub fn receive(options: &Options, receiving: &Receiving, watch: &mut dyn Watch) -> Result<Ending> {
    let about = std::fs::metadata(&receiving.folder);
    if !about.is_ok_and(|about| about.is_dir()) {
        let what = format!("{} is not a folder", receiving.folder.display());
        return Err(Error::input(what, "create the folder, or name another"));
    }
    let roles = Roles {
        receives: true,
        ..Roles::default()
    };
    let mut session = Session::open(options, roles)?;
    watch.event(session.started(options));
    let link = (session.frame_max(), session.mtu());
    let mut receiver = Receiver::new(receiving, session.node(), link, session.rope());
    let end = session.play(&mut receiver, watch)?;
    match receiver.failure() {
        Some(error) if !receiving.keep => Err(error.clone()),
        _ => Ok(end),
    }
}

/// Forwards other members' data until stopped.
pub fn relay(options: &Options, watch: &mut dyn Watch) -> Result<Ending> {
    let mut session = Session::open(options, Roles::default())?;
    watch.event(session.started(options));
    session.play(&mut Relay, watch)
}

/// What a relay does with its member, which forwards by itself.
pub(crate) struct Relay;

impl Role for Relay {
    fn step(
        &mut self,
        _: Instant,
        _: &mut Member,
        _: &Statistics,
        _: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// What a receiver does with its member.
pub(crate) struct Receiver<'a> {
    receiving: &'a Receiving,
    node: u16,
    frame_max: usize,
    /// The largest packet of the link in octets.
    mtu: usize,
    /// Since when a sender has offered frames that are too long, by sender: the transfer, and the time.
    long: LiteMap<u16, (u64, Instant)>,
    /// Transfers whose stored data are being checked, by sender.
    opening: LiteMap<u16, Opening>,
    active: LiteMap<u16, Active>,
    /// Complete transfers whose command runs.
    working: Vec<(Ticket, Work<Command>)>,
    /// Complete and refused transfers.
    ended: Vec<Ended>,
    /// When abandoned data were last searched for.
    cleaned: Option<Instant>,
    cleaning: Option<JoinHandle<usize>>,
    /// Whether a member of another version was reported.
    foreign: bool,
    buffer: Vec<u8>,
    rope: Rope,
    /// Why a transfer has failed, and its contents: another member may send them as well.
    failure: Option<(Digest, Error)>,
    /// How a command has failed. It does not end the session before the sender has the receipt.
    command_failure: Option<Error>,
}

impl Role for Receiver<'_> {
    fn step(
        &mut self,
        now: Instant,
        member: &mut Member,
        _: &Statistics,
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        self.clean(now, watch);
        if !self.foreign && member.counts().foreign > 0 {
            self.foreign = true;
            watch.event(Event::foreign());
        }
        let tickets: Vec<Ticket> = member.tickets().copied().collect();
        for ticket in tickets {
            self.look_at(now, member, ticket, watch);
        }
        self.take_opened(now, member, watch);
        if self.receiving.keep {
            self.let_go(now, member);
        }
        let sources: Vec<u16> = self.active.keys().copied().collect();
        for source in sources {
            if let Err(error) = self.go_on(now, member, source, watch) {
                self.refuse(now, member, source, error, watch);
            }
        }
        self.take_worked(now, member, watch);
        // A complete receiver keeps forwarding until the sender has finished.
        let idle = self.active.is_empty() && self.opening.is_empty() && self.working.is_empty();
        let lasts = |ended: &Ended| is_offered(now, member, ended.offer());
        let over = idle && !self.ended.is_empty() && !self.ended.iter().any(lasts);
        // A member takes part in few transfers at a time, so past ones are forgotten.
        // A withdrawn one is passed on for a while.
        let known = member.tickets().filter(|ticket| ticket.withdrawn.is_none());
        let known = known.map(|ticket| (ticket.source, ticket.id()));
        let past = |of: &(u16, u64)| self.has_ended(*of) && !is_offered(now, member, *of);
        let past: Vec<(u16, u64)> = known.filter(past).collect();
        past.iter().for_each(|(source, _)| member.forget(*source));
        // What others send is still received.
        let failed = idle && self.failure.is_some();
        match (over || failed) && !self.receiving.keep {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}

impl<'a> Receiver<'a> {
    /// A receiver that has heard of no transfer. The link has its largest SDU and its largest packet in octets.
    pub(crate) fn new(
        receiving: &'a Receiving,
        node: u16,
        (frame_max, mtu): (usize, usize),
        rope: Rope,
    ) -> Receiver<'a> {
        Receiver {
            receiving,
            node,
            frame_max,
            mtu,
            long: LiteMap::new(),
            opening: LiteMap::new(),
            active: LiteMap::new(),
            working: Vec::new(),
            ended: Vec::new(),
            cleaned: None,
            cleaning: None,
            foreign: false,
            buffer: Vec::new(),
            rope,
            failure: None,
            command_failure: None,
        }
    }

    /// What has failed, if anything: a transfer, or else the command behind one.
    pub(crate) fn failure(&self) -> Option<&Error> {
        let failure = self.failure.as_ref().map(|(_, error)| error);
        failure.or(self.command_failure.as_ref())
    }

    /// Removes abandoned data on a separate thread, at the start and once an hour.
    fn clean(&mut self, now: Instant, watch: &mut dyn Watch) {
        let age = self.receiving.keep_parts;
        if let Some(cleaning) = self.cleaning.take_if(|cleaning| cleaning.is_finished()) {
            let removed = cleaning.join().unwrap_or(0);
            if removed > 0 {
                let what = format!(
                    "removed the data of {removed} unfinished transfers that got nothing for {age}"
                );
                watch.event(Event::Warning { what });
            }
        }
        if self.cleaned.is_some_and(|last| now < last + CLEANING) {
            return;
        }
        self.cleaned = Some(now);
        let folder = self.receiving.folder.clone();
        let age = std::time::Duration::from_nanos(age.nanos());
        let clean = move || disk::remove_abandoned(&folder, age);
        self.cleaning = Some(std::thread::spawn(clean));
    }

    /// Takes part in a transfer that is offered, and ends one that is withdrawn.
    fn look_at(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: Ticket,
        watch: &mut dyn Watch,
    ) {
        let (source, id) = (ticket.source, ticket.id());
        if let Some(why) = ticket.withdrawn {
            self.opening.remove(&source);
            let busy = |active: &mut Active| active.finishing.is_none();
            if !self.has_ended((source, id)) && self.active.get_mut(&source).is_none_or(busy) {
                self.active.remove(&source);
                let what = format!("the sender has withdrawn the files: {why}");
                let error = Error::failed(what, "they must be sent again");
                let error = error.because(Reason::Withdrawn);
                self.refuse_ticket(now, member, &ticket, error, watch);
            }
            return;
        }
        // The sender may now offer other files. The data of the old transfer stay on the disk.
        self.active
            .retain(|of, active| *of != source || active.ticket.is_alike(&ticket));
        self.opening
            .retain(|of, opening| *of != source || opening.ticket.is_alike(&ticket));
        if let Some(opening) = self.opening.get_mut(&source) {
            opening.ticket = ticket;
        }
        if let Some(active) = self.active.get_mut(&source)
            && active.ticket != ticket
        {
            // It has restarted.
            (active.ticket, active.told) = (ticket, Instant::ZERO);
        }
        if let Some(ended) = self.ended.iter().find(|one| one.offer() == (source, id)) {
            // A sender that was away for long is told again: its transfer may have been forgotten meanwhile.
            return ended.tell(now, member);
        }
        let known = self.active.contains_key(&source) || self.opening.contains_key(&source);
        if known {
            return;
        }
        self.turn_to(now, member, &ticket);
        // If two senders have the same files, one is enough; then the files are there.
        if !self.is_receiving(&ticket.manifest) {
            self.begin(now, member, ticket, watch);
        }
    }

    /// Lets go of a sender that is gone, if this ticket's sender offers the same files. What has arrived stays on the disk.
    fn turn_to(&mut self, now: Instant, member: &mut Member, ticket: &Ticket) {
        let ready = member.manifest(ticket.source).is_some();
        if !ready || !is_offered(now, member, (ticket.source, ticket.id())) {
            return;
        }
        let gone = |(of, active): (&u16, &Active)| {
            let alike = active.ticket.manifest == ticket.manifest && active.finishing.is_none();
            (alike && !is_offered(now, member, (*of, active.ticket.id()))).then_some(*of)
        };
        let Some(of) = self.active.iter().find_map(gone) else {
            return;
        };
        if let Some(active) = self.active.remove(&of) {
            // If it comes back, it has to wait as the other one did.
            member.report(now, active.ticket.id(), State::Preparing, 0);
            member.forget(of);
        }
    }

    /// Whether this transfer is complete or was refused.
    fn has_ended(&self, offer: (u16, u64)) -> bool {
        self.ended.iter().any(|ended| ended.offer() == offer)
    }

    /// Whether the files of this manifest are being received.
    fn is_receiving(&self, manifest: &Digest) -> bool {
        let mut tickets = (self.active.values().map(|active| &active.ticket))
            .chain(self.opening.values().map(|opening| &opening.ticket));
        tickets.any(|ticket| ticket.manifest == *manifest)
    }

    /// Frees the places of senders that have left.
    fn let_go(&mut self, now: Instant, member: &mut Member) {
        for (&source, active) in &mut self.active {
            if is_offered(now, member, (source, active.ticket.id())) {
                active.offered = now;
            }
        }
        self.active.retain(|&source, active| {
            let gone = active.is_gone(now);
            if gone {
                member.forget(source);
            }
            !gone
        });
    }
}

/// Whether a sender's record offers a transfer.
fn is_offered(now: Instant, member: &Member, (source, id): (u16, u64)) -> bool {
    let record = member.roster().get(now, source);
    record.is_some_and(|record| matches!(record.transfer(id), Some((State::Offering, _))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::group::Seat;
    use crate::key::SignKey;
    use crate::manifest::{Cut, Protocol, Validity};
    use crate::member::Settings;
    use crate::roster::Roster;
    use crate::work::Bell;
    use chappe_core::{Address, Arrival, Bitrate, LinkEvent, LinkNode, Purpose, Seed};

    const SENDER: u16 = 5;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    fn active() -> Active {
        let cut = Cut {
            len: 1000,
            k: 4,
            payload: 100,
        };
        let key = SignKey::new(&[1; 32]);
        Active {
            ticket: Ticket::sign(
                SENDER,
                (Protocol::Improved, 8),
                cut,
                b"manifest",
                Validity::default(),
                &key,
            ),
            incoming: None,
            finishing: None,
            sizes: LiteMap::new(),
            begun: at(0),
            flushed: at(0),
            told: at(0),
            offered: at(0),
            held_before: 0,
        }
    }

    fn member() -> Member {
        let settings = Settings {
            seat: Seat::example(1, 9, 1),
            roles: Roles::default(),
            frame_max: 1400,
            memory: 1_000_000,
            rate: Bitrate(1_000_000),
            shared: false,
        };
        Member::new(settings, Seed(1).stream(Purpose::Node(1)))
    }

    /// The sender's record, which offers a transfer.
    fn offer(member: &mut Member, now: Instant, id: u64) {
        let mut theirs = Roster::new(Seat::example(SENDER, 9, 1), Roles::default(), 1400);
        theirs.own().number = (now.nanos() / 1_000_000_000) as u32;
        theirs.own().transfers.push((id, State::Offering, 0));
        let mut sdu = vec![0; 400];
        sdu[..2].copy_from_slice(&[frame::NEWS, frame::VERSION]);
        let len = 3 + theirs.write(now, &mut sdu[3..]);
        let arrival = Arrival {
            from: Address::node(SENDER),
            to: Address::BROADCAST,
            sdu: &sdu[..len],
            power: None,
        };
        member.handle_link(now, LinkEvent::Received(arrival));
    }

    /// A sender keeps its place for a minute after its last record, and no longer.
    #[test]
    fn a_gone_sender_frees_its_place() {
        let receiving = Receiving {
            folder: PathBuf::new(),
            then: None,
            overwrite: false,
            keep: true,
            whole: false,
            rollback: false,
            keep_parts: Duration::from_secs(3600),
        };
        let rope = Bell::new().unwrap().rope();
        let mut receiver = Receiver::new(&receiving, 1, (1400, 1500), rope);
        receiver.active.insert(SENDER, active());
        let mut member = member();
        let id = active().ticket.id();
        offer(&mut member, at(30), id);
        // A record itself lives for 10 s.
        for (seconds, there) in [(31, true), (90, true), (93, false)] {
            receiver.let_go(at(seconds), &mut member);
            assert_eq!(receiver.active.len() == 1, there, "after {seconds} s");
        }
    }
}
