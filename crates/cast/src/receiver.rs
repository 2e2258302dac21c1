//! The receiver: stores offered files, checks them, and installs them. And the relay, which only forwards.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;
use litemap::LiteMap;

use crate::disk::{self, Finished, Incoming, Policy, Put, unix_ms};
use crate::error::{Error, Kind, Result};
use crate::event::{Event, Progress, Summary};
use crate::manifest::{Digest, Kind as EntryKind, Manifest, Ticket};
use crate::member::Member;
use crate::reason::Reason;
use crate::receipt::{Command, Receipt};
use crate::roster::{Roles, State};
use crate::session::{Ending, Options, Role, Session, Watch};
use crate::then::{Arrival, Then};
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

/// Interval between syncs to the disk.
const FLUSH: Duration = Duration::from_secs(5);
/// How long a sender may take to cut its files for a receiver with a smaller MTU, before the receiver refuses them: as long as it waits
/// for those who are not ready.
const RECUT: Duration = Duration::from_secs(3);
/// Interval between progress reports.
const TELL: Duration = Duration::from_secs(1);

/// With `keep`, a sender that has offered nothing for this long loses its place to others. Its data stay on the disk for
/// when it returns.
const GONE: Duration = Duration::from_secs(60);

/// Interval between searches for abandoned data, with `keep`.
const CLEANING: Duration = Duration::from_secs(3600);

/// Largest number of ended transfers that are remembered, with `keep`.
const ENDED_MAX: usize = 1000;

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

/// A transfer that has ended, and what this member reports of it.
struct Ended {
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

    fn offer(&self) -> (u16, u64) {
        (self.source, self.id)
    }

    /// Tells the sender, unless this member does so already.
    fn tell(&self, now: Instant, member: &mut Member) {
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

/// A transfer whose stored data are checked on a separate thread. Reading large files takes a while, and a member that is
/// silent for 10 s counts as gone.
struct Opening {
    ticket: Ticket,
    opened: Work<Result<Opened>>,
}

/// The result of that check.
struct Opened {
    names: Vec<String>,
    sizes: LiteMap<PathBuf, u64>,
    incoming: Incoming,
}

/// A transfer in progress.
struct Active {
    ticket: Ticket,
    incoming: Option<Incoming>,
    finishing: Option<Work<Result<Finished>>>,
    /// Octets of each file, by its final path.
    sizes: LiteMap<PathBuf, u64>,
    begun: Instant,
    flushed: Instant,
    told: Instant,
    /// When its sender last offered it.
    offered: Instant,
    held_before: u64,
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

    /// Starts the check of stored data for an offered transfer, once its manifest has arrived.
    fn begin(&mut self, now: Instant, member: &mut Member, ticket: Ticket, watch: &mut dyn Watch) {
        let Some(manifest) = member.manifest(ticket.source).map(<[u8]>::to_vec) else {
            return;
        };
        if self.may_be_shortened(now, &ticket) {
            return;
        }
        if let Err(error) = self.check_frames(&ticket) {
            return self.refuse_ticket(now, member, &ticket, error, watch);
        }
        let folder = self.receiving.folder.clone();
        let group = member.roster().seat().group.clone();
        let entry = group.members.get(&ticket.source);
        let policy = Policy {
            overwrite: self.receiving.overwrite,
            whole: self.receiving.whole,
            rollback: self.receiving.rollback,
            key: entry.map(|entry| entry.public.sign.clone()),
            owner: Some(group.owner.clone()),
        };
        let open = move || open(&folder, &ticket, &manifest, &policy);
        let opened = self.rope.spawn("the thread that checks stored data", open);
        self.opening
            .insert(ticket.source, Opening { ticket, opened });
    }

    /// Joins the transfers whose stored data have been checked.
    fn take_opened(&mut self, now: Instant, member: &mut Member, watch: &mut dyn Watch) {
        let taken = |(of, opening): (&u16, &mut Opening)| Some((*of, opening.opened.take()?));
        let done: Vec<_> = self.opening.iter_mut().filter_map(taken).collect();
        for (source, opened) in done {
            let Some(Opening { ticket, .. }) = self.opening.remove(&source) else {
                continue;
            };
            // If the transfer is no longer offered, the check is repeated when it is offered again.
            if !member.tickets().any(|known| known.id() == ticket.id()) {
                continue;
            }
            match opened.and_then(|opened| opened) {
                Ok(opened) => self.join(now, member, ticket, opened, watch),
                Err(error) => self.refuse_ticket(now, member, &ticket, error, watch),
            }
        }
    }

    /// Joins a transfer, unless the files are complete.
    fn join(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: Ticket,
        opened: Opened,
        watch: &mut dyn Watch,
    ) {
        let incoming = opened.incoming;
        let held = incoming.held().iter();
        watch.event(Event::Offered {
            transfer: ticket.name(),
            source: ticket.source,
            files: opened.names,
            bytes: ticket.cut.len,
            batches: ticket.cut.batches(),
            held: held.filter(|held| **held).count() as u32,
        });
        if incoming.was_present() {
            let transfer = ticket.name();
            watch.event(Event::Present { transfer });
            return self.complete(now, member, &ticket, (true, Command::None));
        }
        if let Some(error) = incoming.refused() {
            let what = format!("{}; the other files are received", error.what);
            watch.event(Event::Warning { what });
        }
        member.join(now, ticket.source, incoming.held().to_vec());
        let active = Active {
            ticket,
            held_before: incoming.octets(),
            incoming: Some(incoming),
            finishing: None,
            sizes: opened.sizes,
            begun: now,
            flushed: now,
            told: Instant::ZERO,
            offered: now,
        };
        self.active.insert(ticket.source, active);
    }

    /// Whether a transfer's frames are too long, and its sender may still cut the files anew: it does so before it begins, when it has
    /// this member's record.
    fn may_be_shortened(&mut self, now: Instant, ticket: &Ticket) -> bool {
        if self.check_frames(ticket).is_ok() {
            self.long.remove(&ticket.source);
            return false;
        }
        let first = self.long.entry(ticket.source).or_insert((ticket.id(), now));
        if first.0 != ticket.id() {
            *first = (ticket.id(), now);
        }
        now < first.1 + RECUT
    }

    /// Rejects a transfer whose data frames are too long for this link, since they would never arrive.
    fn check_frames(&self, ticket: &Ticket) -> Result<()> {
        let needed = usize::from(ticket.cut.payload) + usize::from(ticket.cut.k) + 17;
        if needed <= self.frame_max {
            return Ok(());
        }
        let what = format!(
            "the sender's frames have {needed} octets, more than this link carries ({})",
            self.frame_max
        );
        let todo = format!(
            "a receiver that is there before the sender begins gets shorter frames: send again, or start the sender with `--mtu {}`",
            self.mtu
        );
        let error = Error::environment(what, todo);
        Err(error.because(Reason::FrameTooLong))
    }

    /// Stores decoded batches of a transfer, and installs the files when all have arrived.
    fn go_on(
        &mut self,
        now: Instant,
        member: &mut Member,
        source: u16,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let Some(active) = self.active.get_mut(&source) else {
            return Ok(());
        };
        if let Some(incoming) = &mut active.incoming {
            while let Some(batch) = member
                .decoded(source, &mut self.buffer)
                .or_else(|| member.mended(source, &mut self.buffer))
            {
                match incoming.put(batch, &self.buffer)? {
                    Put::Kept => member.accept(now, source, batch),
                    Put::Polluted => {
                        member.reject(now, source, batch);
                        let transfer = active.ticket.name();
                        watch.event(Event::Polluted { transfer, batch });
                    }
                }
            }
            if now >= active.flushed + FLUSH {
                active.flushed = now;
                incoming.flush();
            }
            active.report_progress(now, self.node, member, watch);
        }
        let whole = |incoming: &mut Incoming| incoming.is_whole();
        if let Some(incoming) = active.incoming.take_if(whole) {
            // Otherwise it would seem to deny that it is complete while the files are installed.
            let (id, batches) = (active.ticket.id(), active.ticket.cut.batches());
            member.report(now, id, State::Receiving, batches);
            watch.event(active.progress(self.node, State::Receiving, batches));
            let finish = move || incoming.finish();
            let finish = self
                .rope
                .spawn("the thread that installs the files", finish);
            active.finishing = Some(finish);
        }
        let Some(finished) = active.finishing.as_mut().and_then(Work::take) else {
            return Ok(());
        };
        active.finishing = None;
        let finished = finished??;
        let Some(active) = self.active.remove(&source) else {
            return Ok(());
        };
        for path in &finished.installed {
            let bytes = active.sizes.get(path).copied().unwrap_or(0);
            let path = path.clone();
            watch.event(Event::Installed { path, bytes });
        }
        match finished.refused {
            Some(error) => self.refuse_ticket(now, member, &active.ticket, error, watch),
            None => {
                active.installed(now, self.node, watch);
                self.work(now, member, active.ticket, finished.installed);
            }
        }
        Ok(())
    }

    /// Runs the command for what has arrived on a separate thread; without one, the transfer is complete.
    fn work(&mut self, now: Instant, member: &mut Member, ticket: Ticket, files: Vec<PathBuf>) {
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
    fn take_worked(&mut self, now: Instant, member: &mut Member, watch: &mut dyn Watch) {
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
    fn complete(
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

    fn refuse(
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
    fn refuse_ticket(
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

impl Active {
    /// Whether its sender has been gone for a minute. Complete transfers are installed nevertheless.
    fn is_gone(&self, now: Instant) -> bool {
        self.finishing.is_none() && now > self.offered + GONE
    }

    /// Reports that the files are installed.
    fn installed(&self, now: Instant, node: u16, watch: &mut dyn Watch) {
        let batches = self.ticket.cut.batches();
        watch.event(self.progress(node, State::Complete, batches));
        let seconds = now.saturating_since(self.begun).as_secs_f64();
        let bytes = self.ticket.cut.len;
        let lacked = bytes.saturating_sub(self.held_before);
        watch.event(Event::Done(Summary {
            transfer: self.ticket.name(),
            bytes,
            seconds,
            wall_seconds: now.as_secs_f64(),
            lacked_max: lacked,
            lacked_min: lacked,
            goodput_bps: lacked as f64 * 8.0 / seconds.max(1e-9),
            complete: vec![node],
            ..Summary::default()
        }));
    }

    fn report_progress(
        &mut self,
        now: Instant,
        node: u16,
        member: &mut Member,
        watch: &mut dyn Watch,
    ) {
        let Some(incoming) = &self.incoming else {
            return;
        };
        if now < self.told + TELL && self.told != Instant::ZERO {
            return;
        }
        self.told = now;
        let done = incoming.held().iter().filter(|held| **held).count() as u32;
        member.report(now, self.ticket.id(), State::Receiving, done);
        watch.event(self.progress(node, State::Receiving, done));
    }

    fn progress(&self, node: u16, state: State, batches_done: u32) -> Event {
        Event::Progress {
            transfer: self.ticket.name(),
            receivers: vec![Progress {
                node,
                name: "here".into(),
                state: state.word(),
                why: None,
                batches_done,
                batches: self.ticket.cut.batches(),
            }],
        }
    }
}

/// Whether a sender's record offers a transfer.
fn is_offered(now: Instant, member: &Member, (source, id): (u16, u64)) -> bool {
    let record = member.roster().get(now, source);
    record.is_some_and(|record| matches!(record.transfer(id), Some((State::Offering, _))))
}

/// Checks which data of a transfer are stored, and that there is room for the rest.
fn open(folder: &Path, ticket: &Ticket, manifest: &[u8], policy: &Policy) -> Result<Opened> {
    let decoded = Manifest::decode(manifest, &ticket.cut);
    let manifest = decoded.map_err(|error| error.because(Reason::Manifest))?;
    let files = manifest.files().iter();
    let files = files.filter(|entry| entry.kind == EntryKind::File);
    let names = files.clone().map(|file| file.name.clone()).collect();
    let sizes = files
        .map(|file| (folder.join(&file.name), file.size))
        .collect();
    Ok(Opened {
        names,
        sizes,
        incoming: Incoming::open(folder, ticket, manifest, policy)?,
    })
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
