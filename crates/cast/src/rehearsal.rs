//! A dry run: what a sender would send, and to whom. It joins the group and measures the links, but offers nothing.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use chappe_core::Instant;
use chappe_live::Statistics;
use chappe_pacifier::Links;
use litemap::LiteMap;
use serde::Serialize;

use crate::disk::Sent;
use crate::error::Result;
use crate::fleet::{self, Held};
use crate::group::Seat;
use crate::key::hex;
use crate::manifest::Kind;
use crate::member::Member;
use crate::roster::{Record, Roles};
use crate::sender::{LATECOMERS, READS, Sending, check_right, no_receiver, payload};
use crate::session::{Channel, Ending, Options, Role, Session, Watch};
use crate::work::Work;

/// What a sender would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rehearsal {
    /// The identifier that the transfer would have.
    pub transfer: String,
    /// The files, in the order in which they would be sent.
    pub files: Vec<Planned>,
    /// Octets of all files together.
    pub bytes: u64,
    /// Batches that they would be cut into.
    pub batches: u32,
    /// The number of packets per batch.
    pub k: u8,
    /// Octets of file data per packet.
    pub payload_bytes: u16,
    /// Octets of the manifest, which receivers fetch first.
    pub manifest_bytes: usize,
    /// The receivers that are there.
    pub receivers: Vec<Reached>,
    /// Why no receiver is there, and what to do; empty if there is one.
    pub absent: String,
    /// The links that the receivers' paths were chosen from; none if no member was heard.
    #[serde(skip)]
    pub links: Option<Arc<Links>>,
}

/// A file that would be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Its path in the receivers' folders.
    pub name: String,
    /// Octets of the file.
    pub bytes: u64,
    /// The BLAKE3 digest of its contents in hexadecimal digits.
    pub digest: String,
}

/// A receiver that is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// The number of the receiver.
    pub node: u16,
    /// The name of the receiver.
    pub name: String,
    /// The members on the best path, the sender first; empty if no path leads there.
    pub path: Vec<u16>,
    /// Frame times per packet along this path: on a shared channel the transmissions of all hops, on separate ones those of
    /// the worst hop, since hops work at the same time. None without a path.
    pub frame_times: Option<f64>,
    /// What it has of these files, if a receipt is stored.
    pub held: Option<Held>,
}

/// Joins the group as a sender would, and says what it would send to whom. No data leave, and no offer, so receivers
/// neither ask for anything nor reserve room. Waits for receivers as [`send`](crate::send()).
pub fn rehearse(
    options: &Options,
    sending: &Sending,
    watch: &mut dyn Watch,
) -> Result<(Ending, Rehearsal)> {
    for path in &sending.files {
        Sent::check(path)?;
    }
    check_right(&options.seat)?;
    let mut session = Session::open(options, Roles::default())?;
    let payload = payload(session.frame_max(), sending)?;
    watch.event(session.started(options));
    let (files, k) = (sending.files.clone(), sending.k);
    let mut looker = Looker {
        sending,
        seat: options.seat.clone(),
        channel: session.channel(),
        measured: Instant::ZERO + options.measuring,
        opening: Some(
            session
                .rope()
                .spawn(READS, move || Sent::open(&files, k, payload)),
        ),
        opened: None,
        enough: None,
        held: LiteMap::new(),
        found: Rehearsal::default(),
    };
    let ending = session.play(&mut looker, watch)?;
    Ok((ending, looker.found))
}

/// Waits for the files' digests, the receivers and the links.
struct Looker<'a> {
    sending: &'a Sending,
    seat: Seat,
    channel: Channel,
    measured: Instant,
    opening: Option<Work<Result<Sent>>>,
    /// When the digests of the files were known: a sender would announce them then.
    opened: Option<Instant>,
    /// Since when enough receivers are there.
    enough: Option<Instant>,
    held: LiteMap<u16, Held>,
    found: Rehearsal,
}

impl Role for Looker<'_> {
    fn step(
        &mut self,
        now: Instant,
        member: &mut Member,
        statistics: &Statistics,
        _: &mut dyn Watch,
    ) -> Result<ControlFlow<()>> {
        if let Some(sent) = self.opening.as_mut().and_then(Work::take) {
            self.opening = None;
            self.enter(&sent??)?;
            self.opened = Some(now);
        }
        let Some(opened) = self.opened.filter(|_| now >= self.measured) else {
            return Ok(ControlFlow::Continue(()));
        };
        let receives = |record: &&Record| record.roles.receives;
        let receivers: Vec<&Record> = member.roster().others(now).filter(receives).collect();
        let waited = now.saturating_since(opened) >= self.sending.wait;
        if receivers.len() < self.sending.receivers.max(1) && !waited {
            return Ok(ControlFlow::Continue(()));
        }
        let since = *self.enough.get_or_insert(now);
        let reached: Vec<Reached> = receivers
            .iter()
            .map(|record| self.reached(member, record))
            .collect();
        // Links of members further away come with their records.
        let settled = reached.iter().all(|receiver| !receiver.path.is_empty());
        if !settled && now < since + LATECOMERS.max(self.sending.wait) {
            return Ok(ControlFlow::Continue(()));
        }
        if reached.is_empty() {
            let others: Vec<&Record> = member.roster().others(now).collect();
            self.found.absent = no_receiver(self.sending.wait, statistics, &others).to_string();
        }
        self.found.receivers = reached;
        self.found.links = member.links().cloned();
        Ok(ControlFlow::Break(()))
    }
}

impl Looker<'_> {
    /// Enters the files and what is known of the receivers' copies.
    fn enter(&mut self, sent: &Sent) -> Result<()> {
        let (manifest, cut) = (sent.manifest(), sent.cut());
        let octets = manifest.encode()?;
        let folder: Option<&PathBuf> = self.sending.fleet.as_ref();
        self.held = folder.map_or_else(LiteMap::new, |folder| {
            fleet::held(folder, &self.seat, manifest)
        });
        let files = manifest.files().iter();
        let files = files.filter(|entry| entry.kind == Kind::File);
        let planned = files.map(|entry| Planned {
            name: entry.name.clone(),
            bytes: entry.size,
            digest: hex(&entry.digest),
        });
        self.found = Rehearsal {
            transfer: hex(&blake3::hash(&octets).as_bytes()[..8]),
            files: planned.collect(),
            bytes: cut.len,
            batches: cut.batches(),
            k: cut.k,
            payload_bytes: cut.payload,
            manifest_bytes: octets.len(),
            receivers: Vec::new(),
            absent: String::new(),
            links: None,
        };
        Ok(())
    }

    fn reached(&self, member: &Member, record: &Record) -> Reached {
        let links = member.links();
        let path = links.map_or_else(Vec::new, |links| path(links, self.seat.node, record.node));
        let frame_times = links.and_then(|links| frame_times(links, &path, self.channel));
        Reached {
            node: record.node,
            name: record.name.clone(),
            path,
            frame_times,
            held: self.held.get(&record.node).cloned(),
        }
    }
}

/// The members on the path of least transmissions; empty if there is none.
fn path(links: &Links, from: u16, to: u16) -> Vec<u16> {
    let paths = links.etx_paths(from);
    if !links.has(to) || !paths.reaches(to) {
        return Vec::new();
    }
    let mut path = vec![to];
    while let Some(next) = paths
        .next(path[path.len() - 1])
        .filter(|_| path.len() <= links.nodes())
    {
        path.push(next);
    }
    path.reverse();
    path
}

/// Frame times per packet along a path.
fn frame_times(links: &Links, path: &[u16], channel: Channel) -> Option<f64> {
    let hops = path.windows(2).map(|hop| 1.0 / links.ratio(hop[0], hop[1]));
    let times = match channel {
        Channel::Shared => hops.sum(),
        Channel::Separate => hops.fold(0.0, f64::max),
    };
    (path.len() > 1).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: over two hops of 80 % and 50 %, a packet takes 1.25 and 2 transmissions. The direct link of 25 % takes 4.
    #[test]
    fn a_path_has_its_frame_times() {
        let mut ratios = vec![0.0; 16];
        for (from, to, ratio) in [(0, 1, 0.8), (1, 2, 0.5), (0, 2, 0.25)] {
            (ratios[from * 4 + to], ratios[to * 4 + from]) = (ratio, ratio);
        }
        let links = Links::new(4, ratios).unwrap();
        let far = path(&links, 0, 2);
        assert_eq!(far, [0, 1, 2]);
        assert_eq!(frame_times(&links, &far, Channel::Shared), Some(3.25));
        assert_eq!(frame_times(&links, &far, Channel::Separate), Some(2.0));
        assert_eq!(path(&links, 0, 3), []);
        assert_eq!(frame_times(&links, &[], Channel::Shared), None);
    }
}
