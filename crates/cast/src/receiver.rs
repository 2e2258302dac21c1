//! The receiver: stores what is offered, checks it, and gives it its name.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use chappe_core::{Duration, Instant};
use chappe_live::Statistics;

use crate::disk::{self, Incoming, Put};
use crate::error::{Error, Kind, Result};
use crate::event::{Event, Progress, Summary};
use crate::key::VerifyKey;
use crate::manifest::{Manifest, Ticket};
use crate::member::Member;
use crate::reason::Reason;
use crate::roster::{Roles, State};
use crate::session::{End, Options, Role, Session, Watch};

/// Where to put what is received.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// The folder.
    pub folder: PathBuf,
    /// Whose files are installed.
    pub verify: VerifyKey,
    /// Whether files that are there may be replaced.
    pub overwrite: bool,
    /// Whether to go on after the first transfer.
    pub keep: bool,
}

/// The time between writings to the disk.
const FLUSH: Duration = Duration::from_secs(5);
/// The time between looks at how far we are.
const TELL: Duration = Duration::from_secs(1);

/// Most transfers that are remembered as ended, with `keep`.
const ENDED_MAX: usize = 1000;

/// Receives files until one transfer is complete and its sender has finished, or for ever.
pub fn receive(options: &Options, receiving: &Receiving, watch: &mut dyn Watch) -> Result<End> {
    let about = std::fs::metadata(&receiving.folder);
    if !about.is_ok_and(|about| about.is_dir()) {
        let what = format!("{} is not a folder", receiving.folder.display());
        return Err(Error::input(what, "make it, or name another"));
    }
    let roles = Roles {
        receives: true,
        ..Roles::default()
    };
    let mut session = Session::open(options, roles, Some(receiving.verify.clone()))?;
    watch.event(session.started(options));
    let mut receiver = Receiver {
        receiving,
        node: session.node(),
        frame_max: session.frame_max(),
        opening: BTreeMap::new(),
        active: BTreeMap::new(),
        ended: Vec::new(),
        buffer: Vec::new(),
        failure: None,
    };
    let end = session.play(&mut receiver, watch)?;
    match receiver.failure {
        Some(error) if !receiving.keep => Err(error),
        _ => Ok(end),
    }
}

/// Does nothing but pass on what others send, until it is stopped.
pub fn relay(options: &Options, watch: &mut dyn Watch) -> Result<End> {
    struct Relay;
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
    let mut session = Session::open(options, Roles::default(), None)?;
    watch.event(session.started(options));
    session.play(&mut Relay, watch)
}

struct Receiver<'a> {
    receiving: &'a Receiving,
    node: u16,
    frame_max: usize,
    /// Transfers whose place on the disk is being looked at, by sender.
    opening: BTreeMap<u16, Opening>,
    active: BTreeMap<u16, Active>,
    /// Transfers that are complete or refused, with their senders.
    ended: Vec<(u16, u64)>,
    buffer: Vec<u8>,
    failure: Option<Error>,
}

/// A transfer that is looked at on a thread of its own: what was received before is read again, which takes a while for large
/// files, and a member that says nothing for 10 s is taken for gone.
struct Opening {
    ticket: Ticket,
    opened: JoinHandle<Result<Opened>>,
}

/// What was found.
struct Opened {
    names: Vec<String>,
    sizes: Vec<u64>,
    /// Where the rest goes; `None` if the files are there already.
    incoming: Option<Incoming>,
}

/// One transfer.
struct Active {
    ticket: Ticket,
    incoming: Option<Incoming>,
    finishing: Option<JoinHandle<Result<Vec<PathBuf>>>>,
    sizes: Vec<u64>,
    begun: Instant,
    flushed: Instant,
    told: Instant,
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
        let tickets: Vec<Ticket> = member.tickets().copied().collect();
        for ticket in tickets {
            let (source, id) = (ticket.source, ticket.id());
            // If the sender has turned to something else, what is here stays on the disk.
            self.active
                .retain(|of, active| *of != source || active.ticket.id() == id);
            self.opening
                .retain(|of, opening| *of != source || opening.ticket.id() == id);
            let known = self.active.contains_key(&source) || self.opening.contains_key(&source);
            if !known && !self.ended.contains(&(source, id)) {
                self.begin(now, member, ticket, watch);
            }
        }
        self.take_opened(now, member, watch);
        let sources: Vec<u16> = self.active.keys().copied().collect();
        for source in sources {
            if let Err(error) = self.go_on(now, member, source, watch) {
                self.refuse(now, member, source, error, watch);
            }
        }
        // Who has the files still passes them on to others, until the sender has finished.
        let offering = |member: &Member, (source, id): (u16, u64)| {
            let record = member.roster().get(now, source);
            record.is_some_and(|record| matches!(record.transfer(id), Some((State::Offering, _))))
        };
        let idle = self.active.is_empty() && self.opening.is_empty();
        let lasts = |of: &(u16, u64)| offering(member, *of);
        let over = idle && !self.ended.is_empty() && !self.ended.iter().any(lasts);
        // A member takes part in few transfers at a time: those of the past make room.
        let known = member.tickets().map(|ticket| (ticket.source, ticket.id()));
        let past = |of: &(u16, u64)| self.ended.contains(of) && !offering(member, *of);
        let past: Vec<(u16, u64)> = known.filter(past).collect();
        past.iter().for_each(|(source, _)| member.forget(*source));
        match (over || self.failure.is_some()) && !self.receiving.keep {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}

impl Receiver<'_> {
    /// A transfer is offered: as soon as its manifest is there, its place on the disk is looked at.
    fn begin(&mut self, now: Instant, member: &mut Member, ticket: Ticket, watch: &mut dyn Watch) {
        let Some(manifest) = member.manifest(ticket.source).map(<[u8]>::to_vec) else {
            return;
        };
        if let Err(error) = self.check_frames(&ticket) {
            return self.refuse_ticket(now, member, &ticket, error, watch);
        }
        let (folder, overwrite) = (self.receiving.folder.clone(), self.receiving.overwrite);
        let open = move || open(&folder, &ticket, &manifest, overwrite);
        let opened = std::thread::spawn(open);
        self.opening
            .insert(ticket.source, Opening { ticket, opened });
    }

    /// Takes part in the transfers whose place has been looked at.
    fn take_opened(&mut self, now: Instant, member: &mut Member, watch: &mut dyn Watch) {
        let done = |(_, opening): &(&u16, &Opening)| opening.opened.is_finished();
        let done: Vec<u16> = self
            .opening
            .iter()
            .filter(done)
            .map(|(of, _)| *of)
            .collect();
        for source in done {
            let Some(Opening { ticket, opened }) = self.opening.remove(&source) else {
                continue;
            };
            // One that is offered no more is looked at again if it ever is.
            if !member.tickets().any(|known| *known == ticket) {
                continue;
            }
            let ended = Error::failed("looking at what is there ended early", "");
            match opened.join().unwrap_or(Err(ended)) {
                Ok(opened) => self.join(now, member, ticket, opened, watch),
                Err(error) => self.refuse_ticket(now, member, &ticket, error, watch),
            }
        }
    }

    /// Takes part in a transfer, unless the files are there.
    fn join(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: Ticket,
        opened: Opened,
        watch: &mut dyn Watch,
    ) {
        let incoming = opened.incoming;
        let held = incoming.iter().flat_map(|incoming| incoming.held());
        watch.event(Event::Offered {
            transfer: ticket.name(),
            source: ticket.source,
            files: opened.names,
            bytes: ticket.cut.len,
            batches: ticket.cut.batches(),
            held: held.filter(|held| **held).count() as u32,
        });
        let Some(incoming) = incoming else {
            let transfer = ticket.name();
            watch.event(Event::Present { transfer });
            self.end(ticket.source, ticket.id());
            return member.report(now, ticket.id(), State::Complete, ticket.cut.batches());
        };
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
        };
        self.active.insert(ticket.source, active);
    }

    /// Frames of the sender that our link cannot carry would never arrive.
    fn check_frames(&self, ticket: &Ticket) -> Result<()> {
        let needed = usize::from(ticket.cut.payload) + usize::from(ticket.cut.k) + 17;
        if needed <= self.frame_max {
            return Ok(());
        }
        let what = format!(
            "the sender's frames of {needed} octets are too long for this link, which carries {}",
            self.frame_max
        );
        let error = Error::environment(what, "give all interfaces of the group one MTU");
        Err(error.because(Reason::FrameTooLong))
    }

    /// Stores what has come of a transfer, and ends it when all is there.
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
            while let Some(batch) = member.decoded(source, &mut self.buffer) {
                match incoming.put(batch, &self.buffer)? {
                    Put::Kept => member.accept(now, source, batch),
                    Put::Polluted => {
                        member.reject(source, batch);
                        let transfer = active.ticket.name();
                        watch.event(Event::Polluted { transfer, batch });
                    }
                }
            }
            if now >= active.flushed + FLUSH {
                active.flushed = now;
                incoming.flush();
            }
            active.tell(now, self.node, member, watch);
        }
        let whole = |incoming: &mut Incoming| incoming.is_whole();
        if let Some(incoming) = active.incoming.take_if(whole) {
            active.finishing = Some(std::thread::spawn(move || incoming.finish()));
        }
        let finished = active
            .finishing
            .take_if(|finishing| finishing.is_finished());
        let Some(finished) = finished else {
            return Ok(());
        };
        let ended = Error::failed("storing the files ended early", "");
        let paths = finished.join().map_err(|_| ended)??;
        if let Some(active) = self.active.remove(&source) {
            active.installed(now, self.node, paths, member, watch);
            self.end(source, active.ticket.id());
        }
        Ok(())
    }

    /// There is no more to do for a transfer. One that was forgotten and is offered again is looked at again.
    fn end(&mut self, source: u16, id: u64) {
        if self.ended.len() >= ENDED_MAX {
            self.ended.remove(0);
        }
        self.ended.push((source, id));
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

    /// A transfer cannot be received. One that is merely a nuisance to us is not a failure of ours.
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
        member.report(now, ticket.id(), State::Failed(error.reason), 0);
        self.end(ticket.source, ticket.id());
        let kind = match error.kind {
            Kind::Input => Kind::Failed,
            kind => kind,
        };
        self.failure = Some(Error { kind, ..error });
    }
}

impl Active {
    /// Tells that the files have their names.
    fn installed(
        &self,
        now: Instant,
        node: u16,
        paths: Vec<PathBuf>,
        member: &mut Member,
        watch: &mut dyn Watch,
    ) {
        let batches = self.ticket.cut.batches();
        watch.event(self.progress(node, State::Complete, batches));
        for (path, &bytes) in paths.into_iter().zip(&self.sizes) {
            watch.event(Event::Installed { path, bytes });
        }
        member.report(now, self.ticket.id(), State::Complete, batches);
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

    fn tell(&mut self, now: Instant, node: u16, member: &mut Member, watch: &mut dyn Watch) {
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

/// Finds out what of a transfer is there, and makes room for the rest.
fn open(folder: &Path, ticket: &Ticket, manifest: &[u8], overwrite: bool) -> Result<Opened> {
    let decoded = Manifest::decode(manifest, &ticket.cut);
    let manifest = decoded.map_err(|error| error.because(Reason::Manifest))?;
    let files = &manifest.files;
    let names = files.iter().map(|file| file.name.clone()).collect();
    let sizes = files.iter().map(|file| file.size).collect();
    let incoming = match disk::is_there(folder, &manifest) {
        true => None,
        false => Some(Incoming::open(folder, ticket, manifest, overwrite)?),
    };
    Ok(Opened {
        names,
        sizes,
        incoming,
    })
}
