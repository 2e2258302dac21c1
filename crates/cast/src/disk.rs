//! Files on disk: files being sent, and files being received.
//!
//! A receiver keeps a transfer in `DIR/.chappe-cast/NAME/`: the files under temporary names, with holes where data are
//! lacking, and a map of the batches written. After a crash it reads every batch in the map again and compares its digest.
//! Batches that the disk has lost, or never had, are fetched again. So the order in which data reach the disk does not
//! matter. A file gets its final name, by an atomic rename that replaces nothing unasked, after its digest has been checked
//! and it is on the disk. A file that has its name already, with the right digest, counts as received: so a crash while
//! names are given is nothing special.
//!
//! | file | holds |
//! |---|---|
//! | `sent.rs` `tree.rs` | files that are sent, and the folders they are in |
//! | `incoming.rs` `finish.rs` | files that are received, and how they get their names |
//! | `part.rs` `digests.rs` | their parts; digests of long ones, computed while they arrive |
//! | `reuse.rs` | batches that old versions of the files have |
//! | `target.rs` | the receiver's folder, in which no link is followed |
//! | `place.rs` | places of unfinished transfers, and their removal |
//! | `versions.rs` | when the installed versions were signed |
//! | `shelf.rs` `sync.rs` | few open files of many; waiting until they are on the disk |

mod digests;
mod finish;
mod incoming;
mod part;
mod place;
mod reuse;
mod sent;
mod shelf;
mod sync;
mod target;
#[cfg(test)]
mod tests;
mod tree;
mod versions;

use std::io;

pub use finish::Finished;
pub use incoming::{Incoming, Put};
pub use place::remove_abandoned;
pub use sent::{Fault, Sent};
pub(crate) use versions::unix_ms;

use crate::error::Error;
use crate::key::VerifyKey;
use crate::reason::Reason;

/// What a receiver allows.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether each folder of a transfer appears, or is replaced, as a whole. Then files that the new folder lacks vanish.
    pub whole: bool,
    /// Whether to replace a version by one that was signed earlier.
    pub rollback: bool,
    /// The key of the signer. Data of its unfinished transfers go when a later version comes.
    pub key: Option<VerifyKey>,
    /// The key of the group's owner. Versions of all senders of one group are compared, so that no sender's old version replaces a
    /// newer one of another. Without it, those of the signer.
    pub owner: Option<VerifyKey>,
}

fn failure(what: String, error: &io::Error) -> Error {
    let (todo, reason) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "free some space and start again; received data are kept",
            Reason::NoRoom,
        ),
        io::ErrorKind::PermissionDenied => ("give this user write permission there", Reason::Disk),
        io::ErrorKind::ReadOnlyFilesystem => ("choose a writable folder", Reason::Disk),
        _ => ("", Reason::Disk),
    };
    Error::environment(format!("{what}: {error}"), todo).because(reason)
}
