//! Why a receiver cannot have a transfer, in so few octets that its record can say it to the sender.

use std::fmt;

/// Why a member has given a transfer up, as its record says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It does not say: a fault that has no code, or an older version.
    #[default]
    Unsaid,
    /// The disk has no room for the files.
    NoRoom,
    /// Files or folders of these names are there, and may not be replaced.
    NameTaken,
    /// The manifest cannot be accepted: a name that leads elsewhere, sizes that do not add up, another version.
    Manifest,
    /// The sender's frames are longer than what its link carries.
    FrameTooLong,
    /// The disk or folder cannot be read or written.
    Disk,
    /// What it had stored was changed before it was complete.
    Changed,
    /// A code that this version does not know.
    Unknown(u32),
}

impl Reason {
    /// All that have a code; the code is the place.
    const KNOWN: [Reason; 7] = [
        Reason::Unsaid,
        Reason::NoRoom,
        Reason::NameTaken,
        Reason::Manifest,
        Reason::FrameTooLong,
        Reason::Disk,
        Reason::Changed,
    ];

    /// What stands for it in a record.
    pub(crate) fn code(self) -> u32 {
        match self {
            Reason::Unknown(code) => code,
            known => {
                let place = Reason::KNOWN.iter().position(|reason| *reason == known);
                place.unwrap_or_default() as u32
            }
        }
    }

    /// What a code in a record stands for.
    pub(crate) fn of(code: u32) -> Reason {
        let known = Reason::KNOWN.get(code as usize).copied();
        known.unwrap_or(Reason::Unknown(code))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Unsaid => "it does not say why",
            Reason::NoRoom => "no room on its disk",
            Reason::NameTaken => {
                "other files of these names are there; its --overwrite replaces them"
            }
            Reason::Manifest => "it does not accept the manifest",
            Reason::FrameTooLong => "its link does not carry frames as long as the sender's",
            Reason::Disk => "its disk or folder cannot be read or written",
            Reason::Changed => "what it had stored was changed by something else",
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
