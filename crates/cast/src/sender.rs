//! The sender: announces files, waits for receivers and for link measurements, and sends until all receivers are complete.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use chappe_core::{DropReason, Duration, Instant};
use chappe_live::Statistics;
use litemap::LiteMap;

use crate::disk::{Sent, unix_ms};
use crate::error::{Error, Result};
use crate::event::{Event, GONE, Progress, Summary};
use crate::fleet::Keeper;
use crate::group::Seat;
use crate::key::{SignKey, hex};
use crate::manifest::{Kind, Protocol, Ticket, Validity};
use crate::measuring::Measuring;
use crate::member::{Member, TRANSFERS_MAX, eights, headers};
use crate::pace::Deciders;
use crate::receipt::Receipt;
use crate::roster::{Record, Roles, State};
use crate::session::{Ending, FIRST_LINKS, Options, Role, Session, Watch, links_event};
use crate::work::{Rope, Work};

/// The options of a sender.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The files to send.
    pub files: Vec<PathBuf>,
    /// The number of receivers to wait for.
    pub receivers: usize,
    /// The longest wait for receivers.
    pub wait: Duration,
    /// Whether to continue for later receivers when all present ones are complete.
    pub keep: bool,
    /// The protocol that carries the data.
    pub protocol: Protocol,
    /// Every frame of the improved variant has room for member numbers below this, rounded up to a multiple of 8. Larger
    /// numbers are carried by additional reports.
    pub nodes: u16,
    /// Packets per batch, at most [`chappe_pacifier::K_MAX`].
    pub k: u8,
    /// How long after the start receivers may begin to install the files; no limit if there is none.
    pub expires: Option<Duration>,
    /// The folder in which receipts are stored, as [`fleet`](crate::fleet) says. If it cannot be written, a warning says so, and
    /// the files are sent all the same.
    pub fleet: Option<PathBuf>,
}

/// How long the sender waits for receipts when all receivers are complete. They are repeated at short intervals.
const RECEIPTS: Duration = Duration::from_secs(5);
/// What reads the files, in errors.
pub(crate) const READS: &str = "the thread that reads the files";
/// The longest wait for known receivers that have not asked for data yet.
pub(crate) const LATECOMERS: Duration = Duration::from_secs(3);

/// Sends files until every receiver has them or has failed. Returns how the session ended, and a summary.
pub fn send(
    options: &Options,
    sending: &Sending,
    watch: &mut dyn Watch,
) -> Result<(Ending, Summary)> {
    for path in &sending.files {
        // Reports a bad file before joining the group.
        Sent::check(path)?;
    }
    let roles = Roles {
        sends: true,
        ..Roles::default()
    };
    let mut session = Session::open(options, roles)?;
    let seat = &options.seat;
    check_right(seat)?;
    let payload = payload(session.frame_max(), sending)?;
    watch.event(session.started(options));
    let mut sender = Sender::new(sending, seat, options.measuring, payload, session.rope());
    let end = session.play(&mut sender, watch);
    let kept = sender.keeper.take();
    let kept = kept.map(|keeper| keeper.finish(sender.receivers.values()));
    warn(kept.unwrap_or(Ok(())), watch);
    let end = end?;
    sender.summary.octets_sent = session.statistics().octets_sent;
    let summary = sender.summary;
    watch.event(Event::Done(summary.clone()));
    Ok((end, summary))
}

/// Fails if the list of members does not let this one send.
pub(crate) fn check_right(seat: &Seat) -> Result<()> {
    let entry = seat.group.members.get(&seat.node);
    if entry.is_some_and(|entry| entry.sends) {
        return Ok(());
    }
    let (node, name) = (seat.node, seat.name());
    let what = format!("member {node} ({name}) may not send in this group");
    let todo = "the owner allows it: `chappe cast admit GROUP FILE.pub --sends`";
    Err(Error::input(what, todo))
}

/// Octets of file data per packet: what the headers leave. It depends only on the interfaces of the members and the options, so that a
/// restarted sender cuts the files as before.
pub(crate) fn payload(frame_max: usize, sending: &Sending) -> Result<u16> {
    let headers = headers(
        sending.protocol,
        usize::from(sending.k),
        usize::from(sending.nodes),
    );
    let payload = frame_max
        .checked_sub(headers)
        .filter(|&payload| payload >= 128);
    let payload = payload.and_then(|payload| u16::try_from(payload).ok());
    payload.ok_or_else(|| {
        let what = format!(
            "frames of {frame_max} octets have no room for data beside {headers} octets of headers"
        );
        Error::environment(what, "raise the interface's MTU, or lower --nodes or --k")
    })
}

/// The member numbers that data frames have room for, divided by 8.
fn room(sending: &Sending) -> u8 {
    match sending.protocol {
        // The paper's frames list the forwarders, whatever their numbers.
        Protocol::Pacifier => 32,
        Protocol::Improved => eights(sending.nodes.into()),
    }
}

/// What a sender does with its member.
pub(crate) struct Sender<'a> {
    sending: &'a Sending,
    key: SignKey,
    seat: Seat,
    /// Stores the receipts, if that is wanted and possible.
    keeper: Option<Keeper>,
    /// The receipts that have arrived.
    receipts: LiteMap<u16, Receipt>,
    node: u16,
    measuring: Measuring,
    /// Octets of file data per packet.
    payload: u16,
    opening: Option<Work<Result<Sent>>>,
    rope: Rope,
    sent: Option<(Arc<Sent>, Ticket)>,
    /// When the files were announced, which may be late because reading large files takes a while.
    announced: Instant,
    first_asked: Option<Instant>,
    begun: Option<Instant>,
    finished: Option<Instant>,
    told: Instant,
    receivers: LiteMap<u16, Progress>,
    /// Batches that each receiver had when it was ready for data.
    held: LiteMap<u16, u32>,
    /// Of each other member and its life: how many broadcasts it had sent when this one began, and by now.
    others: LiteMap<(u16, u64), (u64, u64)>,
    deciders: Deciders,
    /// Whether a member of another version was reported.
    foreign: bool,
    /// The result so far.
    pub(crate) summary: Summary,
}

impl Role for Sender<'_> {
    fn step(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
        watch: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        if let Some(sent) = self.opening.as_mut().and_then(Work::take) {
            self.opening = None;
            self.announce(now, sent??, member, watch)?;
        }
        self.fit(member.frame_max(now))?;
        let Some((sent, ticket)) = self.sent.clone() else {
            return Ok(ControlFlow::Continue(()));
        };
        if let Some(error) = member.obstacle() {
            return Err(error.clone());
        }
        if let Some(fault) = sent.fault() {
            // The receivers would wait for the rest.
            member.revoke(now, ticket.withdraw(fault.why, &self.key));
            let todo = "send the files again while no program writes to them";
            return Err(Error::failed(fault.what, todo));
        }
        if !self.foreign && member.counts().foreign > 0 {
            self.foreign = true;
            watch.event(Event::foreign());
        }
        self.count(now, member, &ticket);
        self.first_asked = self
            .first_asked
            .or((!self.receivers.is_empty()).then_some(now));
        if self.begun.is_none() && self.opening.is_none() {
            self.begin(now, member, statistics, sent, watch)?;
        }
        self.report_progress(now, &ticket, watch);
        self.count_others(now, statistics);
        // The time on the clock, which also runs while this member stands still.
        self.sum_up(now + statistics.still, member, &ticket);
        self.take_receipts(member, watch);
        if let Some(keeper) = &mut self.keeper {
            warn(keeper.note(now, self.receivers.values()), watch);
        }
        let waits = self.lacks_receipts()
            && self
                .finished
                .is_none_or(|at| now + statistics.still < at + RECEIPTS);
        let over = self.begun.is_some() && self.is_over() && !waits && !self.sending.keep;
        if over {
            member.withdraw(now);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<'a> Sender<'a> {
    /// A sender that begins to read its files, and cuts them into packets of `payload` octets.
    pub(crate) fn new(
        sending: &'a Sending,
        seat: &Seat,
        measuring: Duration,
        payload: u16,
        rope: Rope,
    ) -> Sender<'a> {
        let (files, k) = (sending.files.clone(), sending.k);
        Sender {
            sending,
            key: seat.key.sign().clone(),
            seat: seat.clone(),
            keeper: None,
            receipts: LiteMap::new(),
            node: seat.node,
            measuring: Measuring::new(measuring),
            payload,
            opening: Some(rope.spawn(READS, move || Sent::open(&files, k, payload))),
            rope,
            sent: None,
            announced: Instant::ZERO,
            first_asked: None,
            begun: None,
            finished: None,
            told: Instant::ZERO,
            receivers: LiteMap::new(),
            held: LiteMap::new(),
            others: LiteMap::new(),
            deciders: Deciders::default(),
            foreign: false,
            summary: Summary::default(),
        }
    }

    /// Cuts the files anew if a member has come to whom frames as long as the present ones do not come. Once data are sent, it is too
    /// late.
    fn fit(&mut self, frame_max: usize) -> Result<()> {
        let payload = payload(frame_max, self.sending)?;
        if self.begun.is_none() && self.opening.is_none() && payload < self.payload {
            self.payload = payload;
            let (files, k) = (self.sending.files.clone(), self.sending.k);
            let open = move || Sent::open(&files, k, payload);
            self.opening = Some(self.rope.spawn(READS, open));
        }
        Ok(())
    }

    fn announce(
        &mut self,
        now: Instant,
        sent: Sent,
        member: &mut Member,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let manifest = sent.manifest().encode()?;
        let terms = (self.sending.protocol, room(self.sending));
        let key = &self.key;
        let signed = unix_ms();
        let until = self.sending.expires.map_or(0, |span| {
            signed.saturating_add(span.nanos() / 1_000_000).max(1)
        });
        let validity = Validity { signed, until };
        let ticket = Ticket::sign(self.node, terms, sent.cut(), &manifest, validity, key);
        let files = sent.manifest().files().iter();
        let files = files.filter(|entry| entry.kind == Kind::File);
        let files = files.map(|file| file.name.clone());
        self.summary.transfer = ticket.name();
        self.summary.bytes = ticket.cut.len;
        watch.event(Event::Offered {
            transfer: ticket.name(),
            source: self.node,
            files: files.collect(),
            bytes: ticket.cut.len,
            batches: ticket.cut.batches(),
            held: 0,
        });
        member.announce(now, ticket, manifest);
        // What receivers have said of files that were cut otherwise says nothing of these.
        (self.receivers, self.held) = (LiteMap::new(), LiteMap::new());
        self.first_asked = None;
        if let Some(folder) = &self.sending.fleet {
            let opened = Keeper::open(folder, &self.seat, &ticket, sent.manifest());
            self.keeper = opened.map_err(|error| warn(Err(error), watch)).ok();
        }
        (self.sent, self.announced) = (Some((Arc::new(sent), ticket)), now);
        Ok(())
    }

    /// Keeps and reports the receipts that are new or have changed.
    fn take_receipts(&mut self, member: &Member, watch: &mut dyn Watch) {
        for receipt in member.receipts() {
            if self.receipts.get(&receipt.receiver) == Some(receipt) {
                continue;
            }
            self.receipts.insert(receipt.receiver, *receipt);
            if let Some(keeper) = &mut self.keeper {
                keeper.receipt(*receipt);
            }
            watch.event(Event::Receipt {
                transfer: hex(&receipt.manifest[..8]),
                node: receipt.receiver,
                name: member.roster().seat().group.name_of(receipt.receiver),
                at_ms: receipt.at_ms,
                present: receipt.present,
                command: receipt.command.words(),
                ok: receipt.command.is_good(),
                receipt: receipt.text(),
            });
        }
        self.summary.receipts = self.receipts.keys().copied().collect();
        let failed = self
            .receipts
            .values()
            .filter(|receipt| !receipt.command.is_good());
        self.summary.commands_failed = failed.map(|receipt| receipt.receiver).collect();
    }

    /// Whether a receiver that says it is complete has given no receipt yet.
    fn lacks_receipts(&self) -> bool {
        let complete = |receiver: &&Progress| receiver.state == State::Complete.word();
        let mut complete = self.receivers.values().filter(complete);
        complete.any(|receiver| !self.receipts.contains_key(&receiver.node))
    }

    /// Updates the receivers' progress from their records and acknowledgements.
    fn count(&mut self, now: Instant, member: &Member, ticket: &Ticket) {
        let (id, batches) = (ticket.id(), ticket.cut.batches());
        let acknowledged: LiteMap<u16, u32> = member.receivers().into_iter().collect();
        for record in member.roster().all(now) {
            let Some((state, done)) = record
                .transfer(id)
                .filter(|(state, _)| *state != State::Offering)
            else {
                continue;
            };
            let asked = acknowledged.get(&record.node).copied();
            let known = self
                .receivers
                .entry(record.node)
                .or_insert_with(|| Progress {
                    node: record.node,
                    name: record.name.clone(),
                    state: State::Preparing.word(),
                    why: None,
                    batches_done: 0,
                    batches,
                });
            known.state = state.word();
            known.why = match state {
                State::Failed(reason) => Some(reason.to_string()),
                _ => None,
            };
            known.batches_done = match state {
                State::Complete | State::Working => batches,
                // What a late receiver acknowledges does not tell how much it has: it begins in the middle.
                _ if ticket.protocol == Protocol::Improved => done,
                _ => done.max(asked.unwrap_or(0)),
            };
            if state != State::Preparing {
                self.held.entry(record.node).or_insert(known.batches_done);
            }
        }
        for (_, known) in &mut self.receivers {
            let gone = member.roster().get(now, known.node).is_none();
            if gone && !ENDED.contains(&known.state) {
                known.state = GONE;
            }
        }
    }

    fn begin(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
        sent: Arc<Sent>,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let here = self
            .receivers
            .values()
            .filter(|receiver| receiver.state != GONE)
            .count();
        let enough = here >= self.sending.receivers.max(1);
        let waited = now.saturating_since(self.announced) >= self.sending.wait;
        if waited && here == 0 && !self.sending.keep {
            let records: Vec<&Record> = member.roster().others(now).collect();
            return Err(no_receiver(self.sending.wait, statistics, &records));
        }
        let asked = member.receivers().len();
        // Receivers in `Preparing` still fetch the manifest.
        let ready = |receiver: &&Progress| receiver.state != State::Preparing.word();
        let all_ready = self.receivers.values().filter(ready).count() >= here;
        let patient = self
            .first_asked
            .is_none_or(|first| now >= first + LATECOMERS);
        let members = member.roster().others(now).count();
        let (node, receivers) = (self.node, &self.receivers);
        let reached = || here > 0 && unreachable(member, node, receivers.keys()).is_empty();
        let measured = self.measuring.is_enough(now, statistics, members, reached);
        let begin = measured && (enough || waited) && (all_ready || patient);
        let done = here > 0 && self.is_over();
        if !(begin && (asked > 0 || done)) {
            return Ok(());
        }
        if now < FIRST_LINKS {
            let links = member.links().and_then(|links| links_event(links));
            links.into_iter().for_each(|event| watch.event(event));
        }
        let unreachable = unreachable(member, self.node, self.receivers.keys());
        member.begin(now, sent);
        self.begun = Some(now + statistics.still);
        watch.event(Event::Begun {
            receivers: self.receivers.keys().copied().collect(),
            unreachable,
        });
        Ok(())
    }

    /// Counts what the other members have sent since this one began, and who decides the pace until all have the files.
    fn count_others(&mut self, now: Instant, statistics: &Statistics) {
        if self.begun.is_none() {
            return;
        }
        for near in &statistics.neighbours {
            let node = near.address.node_number().unwrap_or_default();
            let counts = self.others.entry((node, near.life));
            counts.or_insert((near.sent, near.sent)).1 = near.sent;
        }
        let counts = self.others.values();
        let sent = counts.map(|(from, to)| to.saturating_sub(*from));
        self.summary.frames_of_others = sent.sum();
        (self.summary.pace_min_bps, self.summary.pace_max_bps) = statistics.rates;
        if self.finished.is_none() {
            self.deciders.note(now, statistics);
        }
        if let Some((node, time)) = self.deciders.longest() {
            self.summary.pace_decided_by = Some(node);
            self.summary.pace_decided_seconds = time.as_secs_f64();
        }
    }

    fn report_progress(&mut self, now: Instant, ticket: &Ticket, watch: &mut dyn Watch) {
        let over = self.is_over() && self.begun.is_some();
        let last = over && self.finished.is_none();
        if now < self.told + Duration::from_secs(1) && !last {
            return;
        }
        self.told = now;
        if !self.receivers.is_empty() {
            watch.event(Event::Progress {
                transfer: ticket.name(),
                receivers: self.receivers.values().cloned().collect(),
            });
        }
    }

    fn is_over(&self) -> bool {
        let ended = |receiver: &Progress| ENDED.contains(&receiver.state) || receiver.state == GONE;
        !self.receivers.is_empty() && self.receivers.values().all(ended)
    }

    fn sum_up(&mut self, now: Instant, member: &Member, ticket: &Ticket) {
        let Some(begun) = self.begun else { return };
        if !self.is_over() {
            self.finished = None;
        } else if self.finished.is_none() {
            self.finished = Some(now);
        }
        let end = self.finished.unwrap_or(now);
        let seconds = end.saturating_since(begun).as_secs_f64();
        let summary = &mut self.summary;
        summary.seconds = seconds;
        summary.wall_seconds = end.saturating_since(Instant::ZERO).as_secs_f64();
        let batches = ticket.cut.batches();
        let lacked = |node: &u16| {
            let held = self.held.get(node).copied().unwrap_or(batches);
            let share = f64::from(batches.saturating_sub(held)) / f64::from(batches.max(1));
            (ticket.cut.len as f64 * share) as u64
        };
        let lacked = self
            .receivers
            .keys()
            .map(lacked)
            .filter(|lacked| *lacked > 0);
        summary.lacked_max = lacked.clone().max().unwrap_or(0);
        summary.lacked_min = lacked.min().unwrap_or(0);
        summary.goodput_bps = summary.lacked_max as f64 * 8.0 / seconds.max(1e-9);
        if let Some(counters) = member.counters(self.node) {
            summary.data_frames = counters.data_sent;
            let octets = counters.data_sent as f64 * f64::from(ticket.cut.payload);
            summary.redundancy = octets / (ticket.cut.len.max(1) as f64);
        }
        let complete = |receiver: &&Progress| receiver.state == State::Complete.word();
        let nodes = |complete_ones: bool| {
            let chosen = self
                .receivers
                .values()
                .filter(|receiver| complete(receiver) == complete_ones);
            chosen.map(|receiver| receiver.node).collect::<Vec<_>>()
        };
        let (all, rest) = (nodes(true), nodes(false));
        if all.is_empty() {
            self.summary.goodput_bps = 0.0;
        }
        (self.summary.complete, self.summary.incomplete) = (all, rest);
    }
}

/// The receivers to which no path leads.
fn unreachable<'r>(
    member: &Member,
    from: u16,
    receivers: impl Iterator<Item = &'r u16>,
) -> Vec<u16> {
    let paths = member.links().map(|links| links.etx_paths(from));
    let reaches = |node: &u16| paths.as_ref().is_some_and(|paths| paths.reaches(*node));
    receivers.copied().filter(|node| !reaches(node)).collect()
}

/// Reports a fault that does not stop the transfer.
fn warn(result: Result<()>, watch: &mut dyn Watch) {
    if let Err(error) = result {
        let what = error.to_string();
        watch.event(Event::Warning { what });
    }
}

/// The states in which a receiver needs no more data.
const ENDED: [&str; 2] = ["complete", "failed"];

/// The error if no receiver came, with the most likely remedy.
pub(crate) fn no_receiver(wait: Duration, statistics: &Statistics, others: &[&Record]) -> Error {
    let forged = statistics.dropped(DropReason::Unauthentic);
    let what = format!("no receiver has asked for the files within {wait}");
    let receivers = others.iter().filter(|record| record.roles.receives);
    let busy = |record: &&&Record| {
        let states = record.transfers.iter().map(|(_, state, _)| *state);
        let active = |state: &State| matches!(state, State::Preparing | State::Receiving);
        states.filter(active).count() >= TRANSFERS_MAX
    };
    let todo = if forged > 0 {
        format!(
            "{forged} frames were of another group or sealed with another key: give all members the same .group file"
        )
    } else if receivers.clone().any(|record| busy(&record)) {
        format!(
            "a receiver takes part in at most {TRANSFERS_MAX} transfers at a time: send when another sender has finished"
        )
    } else if receivers.count() > 0 {
        "receivers are there, but none has asked: they may be starting; try again with a longer --wait".into()
    } else if !statistics.neighbours.is_empty() {
        "other members are there, but none is a receiver: start `chappe cast receive DIR`".into()
    } else {
        "start `chappe cast receive DIR` on another host of this network; check that --port is the same and no firewall blocks it".into()
    };
    Error::failed(what, todo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Seat;
    use crate::roster::Roster;

    /// Goal: a sender that no receiver asks says why. Method: what it may have heard of the others.
    #[test]
    fn a_sender_without_receivers_says_why() {
        let record = |receives, active: u64| {
            let roles = Roles {
                receives,
                ..Roles::default()
            };
            let mut roster = Roster::new(Seat::example(7, 8, 1), roles, 1400);
            let transfers = (0..active).map(|id| (id, State::Receiving, 0));
            roster.own().transfers.extend(transfers);
            roster.own().clone()
        };
        let check = |others: &[Record], expected: &str| {
            let others: Vec<&Record> = others.iter().collect();
            let error = no_receiver(Duration::from_secs(1), &Statistics::default(), &others);
            assert!(error.todo.contains(expected), "{error}");
        };
        check(&[], "on another host");
        check(&[record(true, 4)], "at most 4 transfers");
        check(&[record(true, 3)], "longer --wait");
    }
}
