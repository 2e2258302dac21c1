//! Why a receiver refuses a transfer, as a short code in its record.

use std::fmt;

/// Why a member has given up a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No reason given: a fault without a code, or an older version.
    #[default]
    Unsaid,
    /// The disk has no room for the files.
    NoRoom,
    /// Files or folders with these names exist and may not be replaced.
    NameTaken,
    /// The manifest is unacceptable: a name outside the folder, inconsistent sizes, or another version.
    Manifest,
    /// The sender's frames are longer than the receiver's link carries.
    FrameTooLong,
    /// The disk or folder cannot be read or written.
    Disk,
    /// Stored data changed on the disk before the transfer was complete.
    Changed,
    /// The list of members does not let the sender send.
    Unsigned,
    /// A later version of the files was installed before.
    Older,
    /// The time until which the sender's offer was valid is over.
    Expired,
    /// The sender has taken its offer back.
    Withdrawn,
    /// A code of a later version.
    Unknown(u32),
}

/// Why a sender takes its offer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// A file has other contents than when it was offered.
    Changed,
    /// A file can no longer be read.
    Unreadable,
    /// A code of a later version.
    Other(u8),
}

impl Withdrawal {
    /// The code in a ticket, which is not 0.
    pub(crate) fn code(self) -> u8 {
        match self {
            Withdrawal::Changed => 1,
            Withdrawal::Unreadable => 2,
            Withdrawal::Other(code) => code,
        }
    }

    /// The withdrawal for a code in a ticket; none for 0.
    pub(crate) fn of(code: u8) -> Option<Withdrawal> {
        match code {
            0 => None,
            1 => Some(Withdrawal::Changed),
            2 => Some(Withdrawal::Unreadable),
            code => Some(Withdrawal::Other(code)),
        }
    }
}

impl fmt::Display for Withdrawal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Withdrawal::Changed => f.write_str("a file changed while it was being sent"),
            Withdrawal::Unreadable => f.write_str("a file could no longer be read"),
            Withdrawal::Other(code) => {
                write!(f, "reason {code}, which this version does not know")
            }
        }
    }
}

impl Reason {
    /// The reasons in the order of their codes.
    const KNOWN: [Reason; 11] = [
        Reason::Unsaid,
        Reason::NoRoom,
        Reason::NameTaken,
        Reason::Manifest,
        Reason::FrameTooLong,
        Reason::Disk,
        Reason::Changed,
        Reason::Unsigned,
        Reason::Older,
        Reason::Expired,
        Reason::Withdrawn,
    ];

    /// The code in a record.
    pub(crate) fn code(self) -> u32 {
        match self {
            Reason::Unknown(code) => code,
            known => {
                let place = Reason::KNOWN.iter().position(|reason| *reason == known);
                place.unwrap_or_default() as u32
            }
        }
    }

    /// The reason for a code in a record.
    pub(crate) fn of(code: u32) -> Reason {
        let known = Reason::KNOWN.get(code as usize).copied();
        known.unwrap_or(Reason::Unknown(code))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Unsaid => "it gives no reason",
            Reason::NoRoom => "no room on its disk",
            Reason::NameTaken => {
                "other files with these names exist there; start it with --overwrite to replace them"
            }
            Reason::Manifest => "it rejects the manifest",
            Reason::FrameTooLong => "the sender's frames are too long for its link",
            Reason::Disk => "its disk or folder cannot be read or written",
            Reason::Changed => "another program changed the files while they were received",
            Reason::Unsigned => {
                "its list of members does not let this sender send; the owner allows it by `chappe cast admit --sends`"
            }
            Reason::Older => {
                "a later version was installed there; start it with --allow-rollback to go back"
            }
            Reason::Expired => "the offer has expired by its clock",
            Reason::Withdrawn => "the offer was withdrawn",
            Reason::Unknown(code) => {
                return write!(f, "reason {code}, which this version does not know");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_are_preserved() {
        for code in 0..20 {
            assert_eq!(Reason::of(code).code(), code);
        }
        assert_eq!(Reason::of(u32::MAX), Reason::Unknown(u32::MAX));
        let words = Reason::of(99).to_string();
        assert!(
            words.contains("99") && words.contains("does not know"),
            "{words}"
        );
    }
}
