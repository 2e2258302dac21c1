//! Transfers in progress: what arrives is stored, and installed when all is there.

use std::path::PathBuf;

use chappe_core::{Duration, Instant};
use litemap::LiteMap;

use super::Receiver;
use crate::disk::{Finished, Incoming, Put};
use crate::error::Result;
use crate::event::{Event, Progress, Summary};
use crate::manifest::Ticket;
use crate::member::Member;
use crate::roster::State;
use crate::session::Watch;
use crate::work::Work;

/// Interval between syncs to the disk.
const FLUSH: Duration = Duration::from_secs(5);
/// Interval between progress reports.
const TELL: Duration = Duration::from_secs(1);
/// With `keep`, a sender that has offered nothing for this long loses its place to others. Its data stay on the disk for
/// when it returns.
const GONE: Duration = Duration::from_secs(60);

/// A transfer in progress.
pub(super) struct Active {
    pub(super) ticket: Ticket,
    pub(super) incoming: Option<Incoming>,
    pub(super) finishing: Option<Work<Result<Finished>>>,
    /// Octets of each file, by its final path.
    pub(super) sizes: LiteMap<PathBuf, u64>,
    pub(super) begun: Instant,
    pub(super) flushed: Instant,
    pub(super) told: Instant,
    /// When its sender last offered it.
    pub(super) offered: Instant,
    pub(super) held_before: u64,
}

impl Receiver<'_> {
    /// Stores decoded batches of a transfer, and installs the files when all have arrived.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        member: &mut Member,
        source: u16,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let Some(active) = self.active.get_mut(&source) else {
            return Ok(());
        };
        active.store(now, member, &mut self.buffer, watch)?;
        active.report_progress(now, self.node, member, watch);
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
}

impl Active {
    /// Whether its sender has been gone for a minute. Complete transfers are installed nevertheless.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.finishing.is_none() && now > self.offered + GONE
    }

    /// Stores the batches that have been decoded.
    fn store(
        &mut self,
        now: Instant,
        member: &mut Member,
        buffer: &mut Vec<u8>,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let Some(incoming) = &mut self.incoming else {
            return Ok(());
        };
        let source = self.ticket.source;
        while let Some(batch) = member
            .decoded(source, buffer)
            .or_else(|| member.mended(source, buffer))
        {
            match incoming.put(batch, buffer)? {
                Put::Kept => member.accept(now, source, batch),
                Put::Polluted => {
                    member.reject(now, source, batch);
                    let transfer = self.ticket.name();
                    watch.event(Event::Polluted { transfer, batch });
                }
            }
        }
        if now >= self.flushed + FLUSH {
            self.flushed = now;
            incoming.flush();
        }
        Ok(())
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
