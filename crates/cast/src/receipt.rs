//! Receipts: what a receiver signs when it has the files.
//!
//! ```text
//! receipt   group 8, transfer 8, manifest's digest 32, source 2, receiver 2, time 8, outcome 1, command's end 1, code 4, signature 64
//! ```
//!
//! A receipt proves for all time that this receiver had these files, to everybody who has the list of members.

use crate::group::Group;
use crate::key::{SignKey, hex, unhex};
use crate::manifest::{Digest, Ticket};

/// Octets of a receipt.
pub const RECEIPT: usize = 8 + 8 + 32 + 2 + 2 + 8 + 1 + 1 + 4 + 64;
/// Domain separation: a member's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast receipt v1\0";

/// How the command that runs after an arrival has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// There is no command.
    None,
    /// It has ended with this code.
    Ended(i32),
    /// A signal has ended it.
    Killed(i32),
    /// It ran for longer than it may.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

/// A receiver's signed statement that it has the files of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The first octets of the key of the group's owner.
    pub group: [u8; 8],
    /// The identifier of the offer.
    pub transfer: u64,
    /// The digest of the manifest: which files, octet for octet.
    pub manifest: Digest,
    /// The number of the sender.
    pub source: u16,
    /// The number of the receiver.
    pub receiver: u16,
    /// When it had them, in milliseconds since 1970 by its clock.
    pub at_ms: u64,
    /// Whether it had them before.
    pub present: bool,
    /// How the command has ended.
    pub command: Command,
    /// The signature of the receiver.
    pub signature: [u8; 64],
}

impl Command {
    /// The command's end in words, if there was one.
    pub fn words(self) -> Option<String> {
        Some(match self {
            Command::None => return None,
            Command::Ended(0) => "its command succeeded".into(),
            Command::Ended(code) => format!("its command failed with code {code}"),
            Command::Killed(signal) => format!("signal {signal} ended its command"),
            Command::TimedOut => "its command ran for too long and was ended".into(),
            Command::NotStarted => "its command could not be started".into(),
        })
    }

    /// Whether there was none or it succeeded.
    pub fn is_good(self) -> bool {
        matches!(self, Command::None | Command::Ended(0))
    }

    fn encode(self) -> (u8, i32) {
        match self {
            Command::None => (0, 0),
            Command::Ended(code) => (1, code),
            Command::Killed(signal) => (2, signal),
            Command::TimedOut => (3, 0),
            Command::NotStarted => (4, 0),
        }
    }

    fn decode(end: u8, code: i32) -> Option<Command> {
        Some(match end {
            0 => Command::None,
            1 => Command::Ended(code),
            2 => Command::Killed(code),
            3 => Command::TimedOut,
            4 => Command::NotStarted,
            _ => return None,
        })
    }
}

impl Receipt {
    /// A receipt of member `receiver` for the files of a ticket.
    pub fn sign(
        group: &Group,
        ticket: &Ticket,
        receiver: (u16, &SignKey),
        at_ms: u64,
        (present, command): (bool, Command),
    ) -> Receipt {
        let (receiver, key) = receiver;
        let mut receipt = Receipt {
            group: group.owner.mark(),
            transfer: ticket.id(),
            manifest: ticket.manifest,
            source: ticket.source,
            receiver,
            at_ms,
            present,
            command,
            signature: [0; 64],
        };
        receipt.signature = key.sign(&receipt.message());
        receipt
    }

    /// Whether the receiver that it names has signed it, for this group.
    pub fn is_genuine(&self, group: &Group) -> bool {
        self.group == group.owner.mark()
            && group.verifies(self.receiver, &self.message(), &self.signature)
    }

    fn message(&self) -> Vec<u8> {
        let mut octets = self.encode();
        octets.truncate(RECEIPT - 64);
        [SIGNED, &octets].concat()
    }

    /// Encodes the receipt with its signature.
    pub fn encode(&self) -> Vec<u8> {
        let (end, code) = self.command.encode();
        let mut octets = Vec::with_capacity(RECEIPT);
        octets.extend_from_slice(&self.group);
        octets.extend_from_slice(&self.transfer.to_be_bytes());
        octets.extend_from_slice(&self.manifest);
        octets.extend_from_slice(&self.source.to_be_bytes());
        octets.extend_from_slice(&self.receiver.to_be_bytes());
        octets.extend_from_slice(&self.at_ms.to_be_bytes());
        octets.extend_from_slice(&[self.present.into(), end]);
        octets.extend_from_slice(&code.to_be_bytes());
        octets.extend_from_slice(&self.signature);
        octets
    }

    /// Decodes a receipt without checking its signature.
    pub fn decode(octets: &[u8]) -> Option<Receipt> {
        fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = octets.split_first_chunk::<N>()?;
            *octets = rest;
            Some(*head)
        }
        let mut rest = octets;
        let group = take(&mut rest)?;
        let transfer = u64::from_be_bytes(take(&mut rest)?);
        let manifest = take(&mut rest)?;
        let source = u16::from_be_bytes(take(&mut rest)?);
        let receiver = u16::from_be_bytes(take(&mut rest)?);
        let at_ms = u64::from_be_bytes(take(&mut rest)?);
        let [present, end] = take(&mut rest)?;
        let command = Command::decode(end, i32::from_be_bytes(take(&mut rest)?))?;
        let signature = take(&mut rest)?;
        (rest.is_empty() && present <= 1).then_some(Receipt {
            group,
            transfer,
            manifest,
            source,
            receiver,
            at_ms,
            present: present == 1,
            command,
            signature,
        })
    }

    /// The receipt in hexadecimal digits, for files.
    pub fn text(&self) -> String {
        hex(&self.encode())
    }

    /// Reads a receipt from hexadecimal digits.
    pub fn of_text(text: &str) -> Option<Receipt> {
        Receipt::decode(&unhex::<RECEIPT>(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Seat;
    use crate::manifest::{Cut, Protocol, Validity};

    /// Goal: no member can make or change a receipt of another. Method: every octet is changed, and another member's key signs.
    #[test]
    fn a_receipt_cannot_be_forged() {
        let (ours, other) = (Seat::example(2, 4, 1), Seat::example(3, 4, 1));
        let cut = Cut {
            len: 10,
            k: 1,
            payload: 10,
        };
        let terms = (Protocol::Improved, 8);
        let ticket = Ticket::sign(0, terms, cut, b"m", Validity::default(), ours.key.sign());
        let by = |seat: &Seat| {
            let who = (2, seat.key.sign());
            Receipt::sign(&ours.group, &ticket, who, 77, (false, Command::Ended(3)))
        };
        let receipt = by(&ours);
        assert!(receipt.is_genuine(&ours.group) && !by(&other).is_genuine(&ours.group));
        assert_eq!(Receipt::of_text(&receipt.text()), Some(receipt));
        let octets = receipt.encode();
        assert_eq!(octets.len(), RECEIPT);
        for at in 0..octets.len() {
            let mut bent = octets.clone();
            bent[at] ^= 1;
            let genuine = Receipt::decode(&bent).is_some_and(|bent| bent.is_genuine(&ours.group));
            assert!(!genuine, "octet {at}");
        }
        assert!((0..octets.len()).all(|len| Receipt::decode(&octets[..len]).is_none()));
        let foreign = Seat::example(2, 4, 9);
        assert!(!receipt.is_genuine(&foreign.group));
    }
}
