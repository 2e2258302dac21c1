//! What happens in a session, for people, programs and monitors.

use std::path::PathBuf;

use serde::Serialize;

use crate::roster::State;

/// Something has happened. As JSON: one object with `event` and these fields; SI units, in the name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The link is open.
    Started {
        /// Our number.
        node: u16,
        /// Our name.
        name: String,
        /// The interface, or several.
        interface: String,
        /// Octets of the largest frame that it carries, headers of ours not counted.
        frame_max_bytes: usize,
        /// Whether members take each other's airtime: `shared` or `separate`.
        channel: &'static str,
    },
    /// A member has come.
    Joined {
        /// Who.
        node: u16,
        /// Its host's name.
        name: String,
        /// `sender`, `receiver` or `relay`.
        role: &'static str,
    },
    /// A member has gone.
    Left {
        /// Who.
        node: u16,
        /// Its host's name.
        name: String,
    },
    /// The links, measured.
    Links {
        /// Each of them.
        links: Vec<Link>,
    },
    /// A transfer is announced: by us, or to us.
    Offered {
        /// The transfer.
        transfer: String,
        /// Who sends.
        source: u16,
        /// The files' names.
        files: Vec<String>,
        /// Octets of all files.
        bytes: u64,
        /// Batches that they are cut into.
        batches: u32,
        /// As a receiver: batches that are there from before.
        held: u32,
    },
    /// The sender begins with the data.
    Begun {
        /// To whom.
        receivers: Vec<u16>,
        /// Of these, those that no path leads to.
        unreachable: Vec<u16>,
    },
    /// A receiver has got further; also told once a second while data flow.
    Progress {
        /// The transfer.
        transfer: String,
        /// Each receiver that is known.
        receivers: Vec<Progress>,
    },
    /// A batch was wrong and is fetched again.
    Polluted {
        /// The transfer.
        transfer: String,
        /// The batch.
        batch: u32,
    },
    /// A file has its final name.
    Installed {
        /// Where.
        path: PathBuf,
        /// Octets.
        bytes: u64,
    },
    /// The files were there already.
    Present {
        /// The transfer.
        transfer: String,
    },
    /// A transfer cannot be received.
    Refused {
        /// The transfer.
        transfer: String,
        /// Why.
        why: String,
        /// What to do about it.
        todo: String,
    },
    /// Something that should be looked at.
    Warning {
        /// What.
        what: String,
    },
    /// The end.
    Done(Summary),
}

/// One link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Who sends.
    pub from: u16,
    /// Who hears.
    pub to: u16,
    /// The share of frames that arrive, 0 to 1.
    pub delivery: f64,
}

/// How far one receiver is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Who.
    pub node: u16,
    /// Its host's name.
    pub name: String,
    /// `preparing`, `receiving`, `complete`, `failed` or `gone`.
    pub state: &'static str,
    /// Of one that has failed: why, by its own word.
    pub why: Option<String>,
    /// Batches that it has.
    pub batches_done: u32,
    /// Batches of the transfer.
    pub batches: u32,
}

/// What it came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The transfer.
    pub transfer: String,
    /// Octets of all files.
    pub bytes: u64,
    /// From the first data frame to the last receiver's word that it has all.
    pub seconds: f64,
    /// From the start of the command.
    pub wall_seconds: f64,
    /// Octets that the receiver lacked at the beginning that lacked most, or, of those that lacked some, least.
    pub lacked_max: u64,
    /// See `lacked_max`.
    pub lacked_min: u64,
    /// Octets that were lacking, at most, per second of `seconds`, in bits.
    pub goodput_bps: f64,
    /// Data frames that this node sent.
    pub data_frames: u64,
    /// Payload that this node sent, over the octets of the files.
    pub redundancy: f64,
    /// Octets of all frames that this node sent.
    pub octets_sent: u64,
    /// Receivers that have the files.
    pub complete: Vec<u16>,
    /// Receivers that were there and do not have them.
    pub incomplete: Vec<u16>,
}

impl State {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Preparing => "preparing",
            State::Receiving => "receiving",
            State::Complete => "complete",
            State::Failed(_) => "failed",
            State::Offering => "offering",
        }
    }
}
