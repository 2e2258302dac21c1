//! The account that a sender keeps of one set of files: one file of the fleet's state.
//!
//! ```text
//! chappe-fleet-1
//! group <first 8 octets of the owner's key>
//! sender 1
//! names 3
//! name <name>                          for each of the first names
//! version <manifest's digest> <contents' digest> <signed> <octets> <files>
//! receipt <arrived> <receipt>
//! seen 3 <signed> <at> <state> <batches received> <batches> <why>
//! signature <Ed25519 signature of all lines above, by the sender>
//! ```
//!
//! Times are milliseconds since 1970. The versions are in the order in which they were sent. Each member has one line `receipt`, of
//! the last receipt that arrived, and one line `seen`, of the last version for which it was there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::group::{Group, Seat};
use crate::key::{hex, unhex};
use crate::manifest::{Digest, Entry, Kind, Manifest, NAME_MAX, Ticket};
use crate::receipt::{RECEIPT, Receipt};
use litemap::LiteMap;

/// Largest number of names in an account; further ones are counted.
pub const NAMES_MAX: usize = 20;
/// Largest number of versions in an account. Of older ones nothing but their receipts is kept.
pub const VERSIONS_MAX: usize = 16;
/// Largest number of members in an account: their numbers have one octet.
const MEMBERS_MAX: usize = 256;
/// Longest line of words: a state with its reason.
const WORDS_MAX: usize = 300;
/// Largest size of an account in octets, which bounds what is read from a file.
pub const ACCOUNT_MAX: u64 = (1024
    + NAMES_MAX * (NAME_MAX + 8)
    + VERSIONS_MAX * 256
    + MEMBERS_MAX * (2 * RECEIPT + 32 + WORDS_MAX)) as u64;
/// Domain separation: a member's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast fleet v1\0";
const TAG: &str = "chappe-fleet-1";

/// A version of the files, as the sender has offered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The digest of the manifest, which receipts name.
    pub manifest: Digest,
    /// The digest of names, sizes and contents alone: the same for files that were only cut or dated differently.
    pub contents: Digest,
    /// When its ticket was signed, in milliseconds since 1970.
    pub signed_ms: u64,
    /// Octets of all files.
    pub bytes: u64,
    /// The number of files.
    pub files: u32,
}

/// A receiver as the sender saw it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When the version was signed for which it was there.
    pub signed_ms: u64,
    /// When it was seen, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its state as one word, as in the event `progress`.
    pub state: String,
    /// Batches that it had.
    pub done: u32,
    /// Batches of the version.
    pub batches: u32,
    /// Why it has failed; may be empty.
    pub why: String,
}

/// What a sender knows of one set of files and its receivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The first octets of the key of the group's owner.
    pub group: [u8; 8],
    /// The number of the sender.
    pub sender: u16,
    /// How many names the files and folders have; only the first are in `names`.
    pub count: u32,
    /// The names in the receivers' folders: the first parts of the paths.
    pub names: Vec<String>,
    /// The versions in the order in which they were sent.
    pub versions: Vec<Version>,
    /// By receiver: when the last receipt arrived, and the receipt, whose signature is not checked yet.
    pub receipts: LiteMap<u16, (u64, Receipt)>,
    /// By receiver: how it was seen last.
    pub seen: LiteMap<u16, Seen>,
}

impl Version {
    /// The version that a ticket offers.
    pub fn of(ticket: &Ticket, manifest: &Manifest) -> Version {
        let is_file = |entry: &&Entry| entry.kind == Kind::File;
        let files = manifest.files().iter().filter(is_file).count();
        Version {
            manifest: ticket.manifest,
            contents: contents(manifest),
            signed_ms: ticket.validity.signed,
            bytes: ticket.cut.len,
            files: files as u32,
        }
    }

    /// Its name in other messages: the first 8 octets of the manifest's digest.
    pub fn name(&self) -> String {
        hex(&self.manifest[..8])
    }
}

/// The digest of what is in the files, and of their names and sizes: not of how they are cut, or when they were modified.
pub fn contents(manifest: &Manifest) -> Digest {
    let mut contents = blake3::Hasher::new();
    for entry in manifest.files() {
        contents.update(&(entry.name.len() as u32).to_be_bytes());
        contents.update(entry.name.as_bytes());
        contents.update(&entry.size.to_be_bytes());
        contents.update(&entry.digest);
    }
    *contents.finalize().as_bytes()
}

/// The names that a manifest's files and folders get in a receiver's folder.
fn tops(manifest: &Manifest) -> BTreeSet<&str> {
    manifest.files().iter().map(|entry| entry.top()).collect()
}

/// The name of an account's file: the number of the sender, and the digest of the names.
pub fn file_name(sender: u16, manifest: &Manifest) -> String {
    let mut names = blake3::Hasher::new();
    for name in tops(manifest) {
        names.update(name.as_bytes());
        names.update(b"/");
    }
    format!("{sender}-{}.fleet", hex(&names.finalize().as_bytes()[..8]))
}

impl Account {
    /// An account without versions.
    pub fn new(seat: &Seat, manifest: &Manifest) -> Account {
        let names = tops(manifest);
        Account {
            group: seat.group.owner.mark(),
            sender: seat.node,
            count: names.len() as u32,
            names: names
                .into_iter()
                .take(NAMES_MAX)
                .map(str::to_owned)
                .collect(),
            versions: Vec::new(),
            receipts: LiteMap::new(),
            seen: LiteMap::new(),
        }
    }

    /// Adds a version that is sent now. The same manifest sent again moves to the end.
    pub fn add(&mut self, version: Version) {
        self.versions
            .retain(|known| known.manifest != version.manifest);
        self.versions.push(version);
        let spare = self.versions.len().saturating_sub(VERSIONS_MAX);
        self.versions.drain(..spare);
    }

    /// Takes over what another copy of this account knows that is newer.
    pub fn join(&mut self, other: Account) {
        let mut versions = std::mem::take(&mut self.versions);
        versions.extend(other.versions);
        versions.sort_by_key(|version| version.signed_ms);
        versions.into_iter().for_each(|version| self.add(version));
        for (node, theirs) in other.receipts {
            let ours = self.receipts.entry(node).or_insert(theirs);
            if ours.0 < theirs.0 {
                *ours = theirs;
            }
        }
        for (node, theirs) in other.seen {
            let newer = |ours: &Seen| ours.at_ms >= theirs.at_ms;
            if !self.seen.get(&node).is_some_and(newer) {
                self.seen.insert(node, theirs);
            }
        }
    }

    /// The version of a receipt, if it is still known.
    pub fn version_of(&self, receipt: &Receipt) -> Option<&Version> {
        let mut known = self.versions.iter().rev();
        known.find(|version| version.manifest == receipt.manifest)
    }

    /// The account as the text of its file, signed by the sender.
    pub fn text(&self, seat: &Seat) -> String {
        let mut text = format!(
            "{TAG}\ngroup {}\nsender {}\nnames {}\n",
            hex(&self.group),
            self.sender,
            self.count
        );
        for name in &self.names {
            let _ = writeln!(text, "name {name}");
        }
        for version in &self.versions {
            let Version {
                signed_ms,
                bytes,
                files,
                ..
            } = version;
            let (manifest, contents) = (hex(&version.manifest), hex(&version.contents));
            let _ = writeln!(
                text,
                "version {manifest} {contents} {signed_ms} {bytes} {files}"
            );
        }
        for (arrived, receipt) in self.receipts.values() {
            let _ = writeln!(text, "receipt {arrived} {}", receipt.text());
        }
        for (node, seen) in &self.seen {
            let Seen {
                signed_ms,
                at_ms,
                state,
                done,
                batches,
                why,
            } = seen;
            let _ = writeln!(
                text,
                "seen {node} {signed_ms} {at_ms} {state} {done} {batches} {why}"
            );
        }
        let signature = seat.key.sign().sign(&[SIGNED, text.as_bytes()].concat());
        let _ = writeln!(text, "signature {}", hex(&signature));
        text
    }

    /// Reads an account; `None` if it is malformed, of another group, or not signed by its sender.
    pub fn parse(text: &str, group: &Group) -> Option<Account> {
        if text.len() as u64 > ACCOUNT_MAX {
            return None;
        }
        let (body, signature) = text.split_at_checked(text.rfind("signature ")?)?;
        let signature = unhex(signature.strip_prefix("signature ")?.trim_end())?;
        let mut lines = body.split_terminator('\n');
        (lines.next()? == TAG).then_some(())?;
        let mut field = |tag: &str| lines.next()?.strip_prefix(tag)?.strip_prefix(' ');
        let mut account = Account {
            group: unhex(field("group")?)?,
            sender: field("sender")?.parse().ok()?,
            count: field("names")?.parse().ok()?,
            names: Vec::new(),
            versions: Vec::new(),
            receipts: LiteMap::new(),
            seen: LiteMap::new(),
        };
        let signed = group.verifies(
            account.sender,
            &[SIGNED, body.as_bytes()].concat(),
            &signature,
        );
        if account.group != group.owner.mark() || !signed {
            return None;
        }
        for line in lines {
            account.take(line)?;
        }
        Some(account)
    }

    /// Takes over one of the lines that may be repeated.
    fn take(&mut self, line: &str) -> Option<()> {
        let (tag, rest) = line.split_once(' ')?;
        let mut words = rest.splitn(7, ' ');
        let mut word = || words.next();
        match tag {
            "name" => self.names.push(rest.to_owned()),
            "version" => self.versions.push(Version {
                manifest: unhex(word()?)?,
                contents: unhex(word()?)?,
                signed_ms: word()?.parse().ok()?,
                bytes: word()?.parse().ok()?,
                files: word()?.parse().ok()?,
            }),
            "receipt" => {
                let arrived = word()?.parse().ok()?;
                let receipt = Receipt::of_text(word()?)?;
                self.receipts.insert(receipt.receiver, (arrived, receipt));
            }
            "seen" => {
                let node = word()?.parse().ok()?;
                let seen = Seen {
                    signed_ms: word()?.parse().ok()?,
                    at_ms: word()?.parse().ok()?,
                    state: word()?.to_owned(),
                    done: word()?.parse().ok()?,
                    batches: word()?.parse().ok()?,
                    why: word()?.to_owned(),
                };
                self.seen.insert(node, seen);
            }
            _ => return None,
        }
        Some(())
    }
}
