//! The memory of a receiver's folder: when the installed version of each name was signed, so that an old
//! ticket, which is still validly signed, does not bring back an older one.
//!
//! `DIR/.chappe-cast/versions` has a line for each signer and name: the first 8 octets of the signer's key in hexadecimal
//! digits, milliseconds since 1970, the first 8 octets of the manifest's digest, and the name. The file is replaced as a
//! whole.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Policy, failure};
use crate::error::{Error, Result};
use crate::key::{VerifyKey, hex};
use crate::manifest::{FOLDER, Manifest, Ticket};
use crate::reason::Reason;
use litemap::LiteMap;

/// The name of the file in our folder.
const VERSIONS: &str = "versions";
/// Largest number of names that are remembered; those signed first are forgotten first. A line has a hundred octets.
const NAMES_MAX: usize = 100_000;

/// The versions of a folder. While the value lives, no other process and no other transfer gives names in this folder.
#[derive(Debug)]
pub(super) struct Versions {
    folder: PathBuf,
    /// The lock lasts as long as this handle.
    _lock: File,
    /// The installed version of each name, by signer and name.
    known: LiteMap<(String, String), Version>,
}

/// An installed version of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Version {
    /// When the transfer was signed, in milliseconds since 1970.
    signed: u64,
    /// Which contents, as the beginning of the digest of the whole manifest.
    manifest: String,
}

impl Version {
    fn of(ticket: &Ticket) -> Version {
        Version {
            signed: ticket.validity.signed,
            manifest: hex(&ticket.manifest[..8]),
        }
    }
}

/// The present time in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl Versions {
    /// Locks and reads the versions of the receiver's folder at `folder`, in which ours must exist.
    pub fn lock(folder: &Path) -> Result<Versions> {
        let ours = folder.join(FOLDER);
        let failed = |error: io::Error| failure(format!("cannot read {}", ours.display()), &error);
        let lock = File::open(&ours).map_err(failed)?;
        // Some network file systems have no locks. Then two processes must not receive into one folder.
        drop(lock.lock());
        let text = match fs::read(ours.join(VERSIONS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(failed)?,
        };
        let text = String::from_utf8_lossy(&text);
        Ok(Versions {
            known: text.lines().filter_map(parse).collect(),
            folder: ours,
            _lock: lock,
        })
    }

    /// Rejects a ticket that has expired, or that was signed before the version that is installed.
    pub fn check(&self, ticket: &Ticket, manifest: &Manifest, policy: &Policy) -> Result<()> {
        let offered = Version::of(ticket);
        let signed = offered.signed;
        for name in tops(manifest) {
            let Some(known) = self.known.get(&key(policy, name)) else {
                continue;
            };
            // The same files signed twice are one version: a relay may still have the first ticket.
            let is_older = signed < known.signed && offered.manifest != known.manifest;
            let known = known.signed;
            if is_older && !policy.rollback {
                let what = format!(
                    "this version of {name:?} was signed {} before the one that was installed",
                    span(known - signed)
                );
                let todo = "use --allow-rollback to go back; if the sender's clock was wrong, set it and send again";
                return Err(Error::failed(what, todo).because(Reason::Older));
            }
        }
        Ok(())
    }

    /// Remembers the versions of a transfer, on the disk.
    pub fn record(&mut self, ticket: &Ticket, manifest: &Manifest, policy: &Policy) -> Result<()> {
        let offered = Version::of(ticket);
        let mut changed = false;
        for name in tops(manifest) {
            let known = self.known.entry(key(policy, name)).or_default();
            // With `rollback`, the older version is now the right one.
            if known.signed < offered.signed || (policy.rollback && *known != offered) {
                (*known, changed) = (offered.clone(), true);
            }
        }
        if !changed {
            return Ok(());
        }
        while self.known.len() > NAMES_MAX {
            let first = self.known.iter().min_by_key(|(_, version)| version.signed);
            let Some(first) = first.map(|(key, _)| key.clone()) else {
                break;
            };
            self.known.remove(&first);
        }
        let failed = |error: io::Error| {
            failure(
                format!("cannot write {}", self.folder.join(VERSIONS).display()),
                &error,
            )
        };
        self.write().map_err(failed)
    }

    fn write(&self) -> io::Result<()> {
        let new = self.folder.join("versions.new");
        let _ = fs::remove_file(&new);
        let mut file = io::BufWriter::new(File::create_new(&new)?);
        for ((signer, name), Version { signed, manifest }) in &self.known {
            writeln!(file, "{signer} {signed} {manifest} {name}")?;
        }
        file.into_inner()
            .map_err(|error| error.into_error())?
            .sync_all()?;
        fs::rename(new, self.folder.join(VERSIONS))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// Rejects an offer that is no longer valid. A clock that is behind the time of signing is wrong, and says nothing.
pub(super) fn check_expiry(ticket: &Ticket, now: u64) -> Result<()> {
    let validity = ticket.validity;
    if validity.until == 0 || now <= validity.until || now < validity.signed {
        return Ok(());
    }
    let what = format!(
        "the offer expired {} ago by this host's clock",
        span(now - validity.until)
    );
    let todo = "send the files again; if the clock is wrong, set it";
    Err(Error::failed(what, todo).because(Reason::Expired))
}

fn tops(manifest: &Manifest) -> BTreeSet<&str> {
    manifest.files().iter().map(|entry| entry.top()).collect()
}

fn key(policy: &Policy, name: &str) -> (String, String) {
    let signer = policy
        .owner
        .as_ref()
        .or(policy.key.as_ref())
        .map(VerifyKey::mark);
    (hex(&signer.unwrap_or_default()), name.into())
}

/// A line of the file; lines that are none are left out, as after damage to the disk.
fn parse(line: &str) -> Option<((String, String), Version)> {
    let mut words = line.splitn(4, ' ');
    let (signer, signed) = (words.next()?, words.next()?.parse().ok()?);
    let (manifest, name) = (words.next()?.into(), words.next()?);
    Some(((signer.into(), name.into()), Version { signed, manifest }))
}

/// A time in milliseconds in its largest unit.
fn span(ms: u64) -> String {
    let seconds = Duration::from_millis(ms).as_secs();
    match seconds {
        0 => format!("{ms} ms"),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
