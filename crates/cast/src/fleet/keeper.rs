//! What a sender writes: the account of the files that it sends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::SystemTime;

use chappe_core::{Duration, Instant};

use super::account::{ACCOUNT_MAX, Account, Seen, Version, file_name};
use crate::disk::unix_ms;
use crate::error::{Error, Result};
use crate::event::Progress;
use crate::group::Seat;
use crate::manifest::{Manifest, Ticket};
use crate::receipt::Receipt;

/// Largest number of accounts in a folder. The one that was written first goes first.
const ACCOUNTS_MAX: usize = 200;
/// Least interval between writes, so that many receipts are written together.
const WRITES: Duration = Duration::from_secs(1);

/// Keeps the account of one transfer on the disk.
pub(crate) struct Keeper {
    seat: Seat,
    path: PathBuf,
    account: Account,
    /// When the version was signed that is being sent.
    signed_ms: u64,
    /// Whether the account has changed since it was written.
    changed: bool,
    written: Option<Instant>,
    /// A disk may take a second to write. Meanwhile frames have to be sent, so a thread writes.
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl Keeper {
    /// Opens the account of these files in `folder`, which is created if it is missing, and adds the version. A file that is no
    /// account of this sender and group is left alone, and is an error.
    pub fn open(
        folder: &Path,
        seat: &Seat,
        ticket: &Ticket,
        manifest: &Manifest,
    ) -> Result<Keeper> {
        prepare(folder)?;
        let path = folder.join(file_name(seat.node, manifest));
        let account = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_room(folder);
                Some(Account::new(seat, manifest))
            }
            Err(error) => return Err(unstored(&path, &error)),
            Ok(text) => Account::parse(&text, &seat.group),
        };
        let mut account = account.ok_or_else(|| {
            let what = format!(
                "{} is not signed by this member as the list has it, so its receipts are not continued",
                path.display()
            );
            Error::input(what, "move it away")
        })?;
        account.add(Version::of(ticket, manifest));
        Ok(Keeper {
            seat: seat.clone(),
            path,
            account,
            signed_ms: ticket.validity.signed,
            changed: true,
            written: None,
            writing: None,
        })
    }

    /// Notes a genuine receipt.
    pub fn receipt(&mut self, receipt: Receipt) {
        self.changed = true;
        self.account
            .receipts
            .insert(receipt.receiver, (unix_ms(), receipt));
    }

    /// Notes how the receivers are, and writes what has changed; at most once a second. An error of the disk is returned once.
    pub fn note<'a>(
        &mut self,
        now: Instant,
        receivers: impl Iterator<Item = &'a Progress>,
    ) -> Result<()> {
        for receiver in receivers {
            self.see(receiver);
        }
        let early = self.written.is_some_and(|at| now < at + WRITES);
        let busy = self
            .writing
            .as_ref()
            .is_some_and(|thread| !thread.is_finished());
        if early || busy || !self.changed {
            return Ok(());
        }
        self.end_writing()?;
        (self.written, self.changed) = (Some(now), false);
        let (path, text) = (self.path.clone(), self.account.text(&self.seat));
        self.writing = Some(std::thread::spawn(move || write(&path, &text)));
        Ok(())
    }

    /// Writes the account as it is at the end.
    pub fn finish<'a>(mut self, receivers: impl Iterator<Item = &'a Progress>) -> Result<()> {
        for receiver in receivers {
            self.see(receiver);
        }
        // If this write failed, the next one may not.
        let _ = self.end_writing();
        write(&self.path, &self.account.text(&self.seat))
            .map_err(|error| unstored(&self.path, &error))
    }

    fn end_writing(&mut self) -> Result<()> {
        let ended = self.writing.take().map(JoinHandle::join);
        match ended {
            Some(Ok(Err(error))) => Err(unstored(&self.path, &error)),
            _ => Ok(()),
        }
    }

    fn see(&mut self, receiver: &Progress) {
        let seen = Seen {
            signed_ms: self.signed_ms,
            at_ms: unix_ms(),
            state: receiver.state.to_owned(),
            done: receiver.batches_done,
            batches: receiver.batches,
            why: receiver.why.clone().unwrap_or_default(),
        };
        let before = self.account.seen.insert(receiver.node, seen);
        // Mere progress is not worth a write: the last one is at the end.
        let same = before.is_some_and(|before| {
            let why = receiver.why.as_deref().unwrap_or_default();
            before.signed_ms == self.signed_ms
                && before.state == receiver.state
                && before.why == why
        });
        self.changed |= !same;
    }
}

/// Creates the folder of a fleet's state if it is missing. Fails if it cannot be created, or is not a folder.
pub fn prepare(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unstored(folder, &error)),
        _ if !folder.is_dir() => {
            let what = format!("{} is not a folder", folder.display());
            Err(Error::input(
                what,
                "choose another one for the receipts: --fleet DIR",
            ))
        }
        _ => Ok(()),
    }
}

/// The text of an account's file.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(ACCOUNT_MAX + 1)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// The files of accounts in a folder, with the times at which they were written.
pub(super) fn files(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let is_account = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "fleet");
    let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let with_time = |path: PathBuf| {
        Some((
            fs::metadata(&path)
                .and_then(|about| about.modified())
                .ok()?,
            path,
        ))
    };
    Ok(entries.filter(is_account).filter_map(with_time).collect())
}

/// Removes the accounts written first, until there is room for one more.
fn make_room(folder: &Path) {
    let mut files = files(folder).unwrap_or_default();
    files.sort();
    let spare = (files.len() + 1).saturating_sub(ACCOUNTS_MAX);
    for (_, path) in files.into_iter().take(spare) {
        // What cannot be removed is tried again with the next account.
        let _ = fs::remove_file(path);
    }
}

/// Replaces the file in one step.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = File::create_new(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn unstored(path: &Path, error: &io::Error) -> Error {
    let what = format!("receipts cannot be stored in {}: {error}", path.display());
    Error::environment(what, "name a writable folder: --fleet DIR")
}
