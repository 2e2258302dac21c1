//! The state of a fleet: which member has which version of which files, by the receipts that senders have stored.
//!
//! A sender keeps an [`account`] of each set of files in a folder, by default `NAME.fleet` beside the list of members. [`Fleet::read`]
//! checks each account's signature by its sender, and each receipt's by its receiver, against the list of members. It
//! needs no network. [`Fleet::read_all`] joins the folders of several hosts: a set of files has one newest version, whoever sent it.

pub mod account;
mod keeper;
#[cfg(test)]
mod tests;

use std::path::Path;

use litemap::LiteMap;
use serde::Serialize;

pub use account::Version;
use account::{Account, Seen};
pub(crate) use keeper::Keeper;
pub use keeper::prepare;

use crate::error::{Error, Result};
use crate::event::GONE;
use crate::group::{Group, Seat};
use crate::key::hex;
use crate::manifest::Manifest;
use crate::receipt::Receipt;
use crate::roster::State;

/// The state of a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct Fleet {
    /// The name of the group.
    pub group: String,
    /// The serial of the list of members by which signatures were checked.
    pub serial: u32,
    /// The sets of files, the one that was sent last first.
    pub sets: Vec<Set>,
    /// Files that are no accounts of this group's senders, with the reason.
    pub problems: Vec<String>,
}

/// A set of files that a member sends.
#[derive(Clone, Debug, Serialize)]
pub struct Set {
    /// The names in the receivers' folders; at most 20.
    pub names: Vec<String>,
    /// How many names there are.
    pub names_count: u32,
    /// The number of the sender.
    pub sender: u16,
    /// The name of the sender.
    pub sender_name: String,
    /// The version that was sent last: the first 8 octets of its manifest's digest, as in events.
    pub version: String,
    /// When it was signed, in milliseconds since 1970 by the sender's clock.
    pub signed_ms: u64,
    /// Octets of its files.
    pub bytes: u64,
    /// The number of its files.
    pub files: u32,
    /// All members but the sender.
    pub members: Vec<Member>,
}

/// A member's standing with regard to a set of files.
#[derive(Clone, Debug, Serialize)]
pub struct Member {
    /// The number of the member.
    pub node: u16,
    /// The name of the member.
    pub name: String,
    /// Whether it has the version that was sent last.
    pub standing: Standing,
    /// The version that it has by its receipt, as in [`Set::version`]; none if there is no genuine receipt.
    pub version: Option<String>,
    /// When that version was signed, in milliseconds since 1970; none if it is no longer known.
    pub version_signed_ms: Option<u64>,
    /// When its receipt arrived, in milliseconds since 1970 by the sender's clock.
    pub receipt_ms: Option<u64>,
    /// The number of the sender that got it.
    pub receipt_sender: Option<u16>,
    /// Whether its receipt says that there was no command, or that it succeeded.
    pub command_ok: Option<bool>,
    /// When the sender saw it last, in milliseconds since 1970.
    pub seen_ms: Option<u64>,
    /// Why it has no receipt for the last version, or what is wrong with it; may be empty.
    pub why: String,
}

/// Whether a member has the version that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It has given a receipt for it.
    Current,
    /// Its last receipt is for an earlier version.
    Behind,
    /// It has asked for the files, and has given no receipt.
    Lacking,
    /// There is a receipt, but the member's present key has not signed it.
    Unproven,
    /// It has never asked for the files, such as a relay.
    Unseen,
}

impl Standing {
    /// All standings, the best first.
    pub const ALL: [Standing; 5] = [
        Standing::Current,
        Standing::Behind,
        Standing::Lacking,
        Standing::Unproven,
        Standing::Unseen,
    ];

    /// The standing as one word.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Current => "current",
            Standing::Behind => "behind",
            Standing::Lacking => "lacking",
            Standing::Unproven => "unproven",
            Standing::Unseen => "unseen",
        }
    }
}

impl Fleet {
    /// Reads the state in a folder. Fails only if the folder cannot be read: a damaged account is one of the problems.
    pub fn read(folder: &Path, group: &Group) -> Result<Fleet> {
        Fleet::read_all(&[folder], group)
    }

    /// Reads the state in the folders of several senders, or copies of them, as one. Of each member the receipt for the newest version
    /// counts.
    pub fn read_all(folders: &[impl AsRef<Path>], group: &Group) -> Result<Fleet> {
        let mut fleet = Fleet {
            group: group.name.clone(),
            serial: group.serial,
            sets: Vec::new(),
            problems: Vec::new(),
        };
        // By the names, then by the sender.
        let mut accounts: LiteMap<(Vec<String>, u32), LiteMap<u16, Account>> = LiteMap::new();
        for folder in folders {
            let folder = folder.as_ref();
            let files = keeper::files(folder).map_err(|error| unread(folder, &error))?;
            for (_, path) in files {
                let named = path.display();
                match keeper::read(&path).map(|text| Account::parse(&text, group)) {
                    Err(error) => fleet.problems.push(format!("cannot read {named}: {error}")),
                    Ok(None) => fleet.problems.push(format!(
                        "{named} is not signed by a member of this group as the list has it, or was changed"
                    )),
                    Ok(Some(account)) => {
                        let set = (account.names.clone(), account.count);
                        let of = accounts.entry(set).or_default();
                        match of.get_mut(&account.sender) {
                            Some(known) => known.join(account),
                            None => drop(of.insert(account.sender, account)),
                        }
                    }
                }
            }
        }
        let sets = accounts.values();
        fleet.sets.extend(sets.filter_map(|of| Set::of(of, group)));
        fleet.problems.sort();
        let newest_first = |set: &Set| {
            (
                std::cmp::Reverse(set.signed_ms),
                set.names.clone(),
                set.sender,
            )
        };
        fleet.sets.sort_by_key(newest_first);
        Ok(fleet)
    }
}

fn unread(folder: &Path, error: &std::io::Error) -> Error {
    let what = format!(
        "cannot read the fleet's state in {}: {error}",
        folder.display()
    );
    let todo =
        "`chappe cast send` makes it: by default NAME.fleet beside NAME.group, or as --fleet says";
    Error::input(what, todo)
}

/// What a member has of some files, by its last receipt to their sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Whether these are the contents.
    pub same: bool,
    /// The version, as in [`Set::version`].
    pub version: String,
    /// When the receipt arrived, in milliseconds since 1970.
    pub receipt_ms: u64,
}

/// What members have of the files of a manifest, by the receipts that `seat` has stored in a folder.
pub(crate) fn held(folder: &Path, seat: &Seat, manifest: &Manifest) -> LiteMap<u16, Held> {
    let text = keeper::read(&folder.join(account::file_name(seat.node, manifest)));
    let account = text
        .ok()
        .and_then(|text| Account::parse(&text, &seat.group));
    let Some(account) = account else {
        return LiteMap::new();
    };
    let contents = account::contents(manifest);
    let genuine = account.receipts.iter().filter(|(_, (_, receipt))| {
        receipt.source == account.sender && receipt.is_genuine(&seat.group)
    });
    let held = |(&node, (receipt_ms, receipt)): (&u16, &(u64, Receipt))| {
        let version = account.version_of(receipt);
        let held = Held {
            same: version.is_some_and(|version| version.contents == contents),
            version: hex(&receipt.manifest[..8]),
            receipt_ms: *receipt_ms,
        };
        (node, held)
    };
    genuine.map(held).collect()
}

impl Set {
    /// The standing of all members of the group by the accounts of all senders of these files; `None` if none has a version.
    fn of(accounts: &LiteMap<u16, Account>, group: &Group) -> Option<Set> {
        let last = |account: &Account| account.versions.last().copied();
        let newest = accounts.values().filter_map(|of| Some((of, last(of)?)));
        let (account, newest) = newest.max_by_key(|(_, version)| version.signed_ms)?;
        let others = group.members.keys().filter(|&&node| node != account.sender);
        Some(Set {
            names: account.names.clone(),
            names_count: account.count,
            sender: account.sender,
            sender_name: group.name_of(account.sender),
            version: newest.name(),
            signed_ms: newest.signed_ms,
            bytes: newest.bytes,
            files: newest.files,
            members: others
                .map(|&node| Member::of(accounts, &newest, group, node))
                .collect(),
        })
    }

    /// The number of members with this standing.
    pub fn count(&self, standing: Standing) -> usize {
        let alike = self
            .members
            .iter()
            .filter(|member| member.standing == standing);
        alike.count()
    }

    /// The names of the files in one line.
    pub fn title(&self) -> String {
        let more = (self.names_count as usize).saturating_sub(self.names.len());
        match more {
            0 => self.names.join(", "),
            more => format!("{} and {more} more", self.names.join(", ")),
        }
    }
}

/// A genuine receipt of a member, with the version that it is for, if that is still known.
struct Given<'a> {
    arrived: u64,
    receipt: &'a Receipt,
    version: Option<&'a Version>,
}

impl<'a> Given<'a> {
    /// The receipt in an account, if the member's present key has signed it.
    fn of(account: &'a Account, group: &Group, node: u16) -> Option<Given<'a>> {
        let (arrived, receipt) = account.receipts.get(&node)?;
        let genuine = receipt.source == account.sender && receipt.is_genuine(group);
        genuine.then_some(Given {
            arrived: *arrived,
            receipt,
            version: account.version_of(receipt),
        })
    }
}

impl Member {
    fn of(accounts: &LiteMap<u16, Account>, newest: &Version, group: &Group, node: u16) -> Member {
        let stored = accounts.values().find(|of| of.receipts.contains_key(&node));
        let is_newest = |given: &Given<'_>| {
            let version = given.version;
            version.is_some_and(|has| has.contents == newest.contents)
        };
        let given = accounts.values();
        let given = given.filter_map(|account| Given::of(account, group, node));
        let genuine = given.max_by_key(|given| {
            let signed = given.version.map(|version| version.signed_ms);
            (is_newest(given), signed, given.arrived)
        });
        let version = genuine.as_ref().and_then(|given| given.version);
        let seen = accounts.values().filter_map(|of| of.seen.get(&node));
        let seen = seen.max_by_key(|seen| (seen.signed_ms, seen.at_ms));
        let genuine = genuine.map(|given| (given.arrived, given.receipt));
        let standing = match (genuine, stored) {
            (Some(_), _) if version.is_some_and(|has| has.contents == newest.contents) => {
                Standing::Current
            }
            (Some(_), _) => Standing::Behind,
            (None, Some(_)) => Standing::Unproven,
            (None, None) if seen.is_some() => Standing::Lacking,
            (None, None) => Standing::Unseen,
        };
        let why = match (standing, genuine) {
            (Standing::Current, Some((_, receipt))) if receipt.command.is_good() => String::new(),
            (Standing::Current, Some((_, receipt))) => receipt.command.words().unwrap_or_default(),
            (Standing::Unproven, _) => {
                "its receipt is not signed by the key that it has in the list".into()
            }
            (Standing::Unseen, _) => String::new(),
            _ => why(seen, newest),
        };
        Member {
            node,
            name: group.name_of(node),
            standing,
            version: genuine.map(|(_, receipt)| hex(&receipt.manifest[..8])),
            version_signed_ms: version.map(|version| version.signed_ms),
            receipt_ms: genuine.map(|(arrived, _)| arrived),
            receipt_sender: genuine.map(|(_, receipt)| receipt.source),
            command_ok: genuine.map(|(_, receipt)| receipt.command.is_good()),
            seen_ms: seen.map(|seen| seen.at_ms),
            why,
        }
    }
}

/// Why a member has not the newest version, by how it was seen last.
fn why(seen: Option<&Seen>, newest: &Version) -> String {
    let Some(seen) = seen.filter(|seen| seen.signed_ms == newest.signed_ms) else {
        return "it was not there when the last version was sent".into();
    };
    let share = f64::from(seen.done) / f64::from(seen.batches.max(1)) * 100.0;
    let complete = State::Complete.word();
    match seen.state.as_str() {
        _ if !seen.why.is_empty() => seen.why.clone(),
        GONE => format!("it left with {share:.0} %"),
        state if state == complete => "it said that it has all, but no receipt has arrived".into(),
        state if state == State::Working.word() => "it has all, and its command was running".into(),
        _ => format!("it had {share:.0} % when it was last seen"),
    }
}
