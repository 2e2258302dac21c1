//! The events of a session, for terminals, programs and monitors.

use std::path::PathBuf;

use serde::Serialize;

use crate::roster::State;

/// An event. In JSON it is one object with the field `event` and the fields below; units are in the names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The link is open.
    Started {
        /// The number of this member.
        node: u16,
        /// The name that other members show for it.
        name: String,
        /// The interfaces, separated by commas.
        interface: String,
        /// The largest SDU of the link in octets.
        frame_max_bytes: usize,
        /// Whether members share airtime: `shared` or `separate`.
        channel: &'static str,
    },
    /// A member has joined.
    Joined {
        /// The number of the member.
        node: u16,
        /// The name of its host.
        name: String,
        /// `sender`, `receiver` or `relay`.
        role: &'static str,
    },
    /// A member has left, or was silent for 10 s.
    Left {
        /// The number of the member.
        node: u16,
        /// The name of its host.
        name: String,
    },
    /// The measured links, every 5 s.
    Links {
        /// All links with a delivery ratio above zero.
        links: Vec<Link>,
    },
    /// A transfer is announced, by this sender or to this receiver.
    Offered {
        /// The identifier of the transfer.
        transfer: String,
        /// The number of the sender.
        source: u16,
        /// The names of the files.
        files: Vec<String>,
        /// Octets of all files together.
        bytes: u64,
        /// Number of batches that the files are cut into.
        batches: u32,
        /// Batches that a receiver has from before; 0 for the sender.
        held: u32,
    },
    /// The sender starts sending data.
    Begun {
        /// The numbers of all receivers.
        receivers: Vec<u16>,
        /// The receivers that no path leads to.
        unreachable: Vec<u16>,
    },
    /// The progress of the receivers, once a second while data flow.
    Progress {
        /// The identifier of the transfer.
        transfer: String,
        /// All known receivers, those that failed or left included.
        receivers: Vec<Progress>,
    },
    /// A batch had a wrong digest and is collected again.
    Polluted {
        /// The identifier of the transfer.
        transfer: String,
        /// The index of the batch.
        batch: u32,
    },
    /// A file has its final name.
    Installed {
        /// The path of the installed file.
        path: PathBuf,
        /// The file's size in octets.
        bytes: u64,
    },
    /// The receiver already has the files.
    Present {
        /// The identifier of the transfer.
        transfer: String,
    },
    /// This receiver cannot receive a transfer.
    Refused {
        /// The identifier of the transfer.
        transfer: String,
        /// The problem, as a sentence.
        why: String,
        /// The remedy; may be empty.
        todo: String,
    },
    /// A newer list of members has arrived.
    List {
        /// Its serial number; a list with a higher one replaces it.
        serial: u32,
        /// How many members it has.
        members: usize,
    },
    /// A receiver's receipt has arrived and is genuine.
    Receipt {
        /// The identifier of the transfer.
        transfer: String,
        /// The number of the receiver.
        node: u16,
        /// The receiver's name in the list of members.
        name: String,
        /// When it had the files, in milliseconds since 1970 by its clock.
        at_ms: u64,
        /// Whether it had them before.
        present: bool,
        /// How its command has ended, if there was one.
        command: Option<String>,
        /// Whether there was no command, or it succeeded.
        ok: bool,
        /// The receipt itself, with its signature, in hexadecimal digits.
        receipt: String,
    },
    /// A problem that does not stop the session.
    Warning {
        /// The problem and its remedy.
        what: String,
    },
    /// The transfer has ended.
    Done(Summary),
}

/// A measured link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Number of the sending member.
    pub from: u16,
    /// Number of the receiving member.
    pub to: u16,
    /// The delivery ratio, 0 to 1.
    pub delivery: f64,
}

/// The progress of one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// The number of the receiver.
    pub node: u16,
    /// The name of its host.
    pub name: String,
    /// `preparing`, `receiving`, `complete`, `failed` or `gone`.
    pub state: &'static str,
    /// The reason that a failed receiver gave.
    pub why: Option<String>,
    /// Batches that the receiver has.
    pub batches_done: u32,
    /// Batches of the transfer.
    pub batches: u32,
}

/// The result of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The identifier of the transfer.
    pub transfer: String,
    /// Octets of all files together.
    pub bytes: u64,
    /// Time from the first data frame until the last receiver reported completion.
    pub seconds: f64,
    /// Time since the start of the command.
    pub wall_seconds: f64,
    /// Octets that the receiver with the most missing data lacked at the start.
    pub lacked_max: u64,
    /// Octets that the receiver with the least missing data lacked at the start, complete ones excluded.
    pub lacked_min: u64,
    /// `lacked_max` in bits, divided by `seconds`.
    pub goodput_bps: f64,
    /// Data frames sent by this member.
    pub data_frames: u64,
    /// Frames broadcast meanwhile by the other members that this one hears: repairs, reports and records.
    pub frames_of_others: u64,
    /// The lowest pace of this member in bits per second since it first slowed down; the highest if it never did.
    pub pace_min_bps: u64,
    /// The highest pace of this member in bits per second.
    pub pace_max_bps: u64,
    /// The neighbour whose path, as it told of it, decided this member's pace for the longest time; none if nothing slowed it down.
    pub pace_decided_by: Option<u16>,
    /// For how long it did.
    pub pace_decided_seconds: f64,
    /// Payload sent by this member, divided by the size of the files.
    pub redundancy: f64,
    /// Octets of all frames sent by this member.
    pub octets_sent: u64,
    /// Receivers that have the files.
    pub complete: Vec<u16>,
    /// Receivers that joined and do not have the files.
    pub incomplete: Vec<u16>,
    /// Receivers whose receipts have arrived.
    pub receipts: Vec<u16>,
    /// Receivers whose command failed.
    pub commands_failed: Vec<u16>,
}

impl Event {
    /// The warning about a member of another version, of which nothing else is understood.
    pub(crate) fn foreign() -> Event {
        let what = "a member runs another version of chappe cast, and neither understands the other; \
                    install the same version on all members";
        Event::Warning { what: what.into() }
    }
}

/// The state of a receiver whose record has expired or that has left.
pub(crate) const GONE: &str = "gone";

impl State {
    /// The state as one word, as in events.
    pub fn word(self) -> &'static str {
        match self {
            State::Preparing => "preparing",
            State::Receiving => "receiving",
            State::Working => "working",
            State::Complete => "complete",
            State::Failed(_) => "failed",
            State::Offering => "offering",
        }
    }
}
