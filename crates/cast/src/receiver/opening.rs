//! Transfers that are offered: what is stored of them is checked before they are joined.

use std::path::{Path, PathBuf};

use chappe_core::{Duration, Instant};
use litemap::LiteMap;

use super::Receiver;
use super::active::Active;
use crate::disk::{Incoming, Policy};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::manifest::{Kind, Manifest, Ticket};
use crate::member::Member;
use crate::reason::Reason;
use crate::receipt::Command;
use crate::session::Watch;
use crate::work::Work;

/// How long a sender may take to cut its files for a receiver with a smaller MTU, before the receiver refuses them: as long as it waits
/// for those who are not ready.
const RECUT: Duration = Duration::from_secs(3);

/// A transfer whose stored data are checked on a separate thread. Reading large files takes a while, and a member that is
/// silent for 10 s counts as gone.
pub(super) struct Opening {
    pub(super) ticket: Ticket,
    opened: Work<Result<Opened>>,
}

/// The result of that check.
struct Opened {
    names: Vec<String>,
    sizes: LiteMap<PathBuf, u64>,
    incoming: Incoming,
}

impl Receiver<'_> {
    /// Starts the check of stored data for an offered transfer, once its manifest has arrived.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        member: &mut Member,
        ticket: Ticket,
        watch: &mut dyn Watch,
    ) {
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
    pub(super) fn take_opened(&mut self, now: Instant, member: &mut Member, watch: &mut dyn Watch) {
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
}

/// Checks which data of a transfer are stored, and that there is room for the rest.
fn open(folder: &Path, ticket: &Ticket, manifest: &[u8], policy: &Policy) -> Result<Opened> {
    let decoded = Manifest::decode(manifest, &ticket.cut);
    let manifest = decoded.map_err(|error| error.because(Reason::Manifest))?;
    let files = manifest.files().iter();
    let files = files.filter(|entry| entry.kind == Kind::File);
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
