//! DRAND's messages on the air.
//!
//! ```text
//! hello    1 | round 2 | slot 1 | frame 1 | undecided 1 | n 1 | n x (address 6, slot 1, frame 1)
//! request  2 | round 2
//! grant    3 | round 2 | to 6 | slots taken 16, a bit each
//! reject   4 | round 2 | to 6
//! ```
//!
//! Numbers are big-endian; a slot of 255 is none; a frame is the logarithm of the period.

use chappe_core::Address;

use crate::zmac::Slot;

const HELLO: u8 = 1;
const REQUEST: u8 = 2;
const GRANT: u8 = 3;
const REJECT: u8 = 4;
const NONE: u8 = 255;
const ENTRY: usize = 8;

/// One message of the protocol.
#[derive(Clone, Debug)]
pub(super) enum Message<'a> {
    Hello {
        round: u16,
        slot: Option<Slot>,
        undecided: u8,
        entries: Entries<'a>,
    },
    Request {
        round: u16,
    },
    Grant {
        to: Address,
        round: u16,
        taken: u128,
    },
    Reject {
        to: Address,
        round: u16,
    },
}

/// A node and its slot, as a neighbour's hello lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub address: Address,
    pub slot: Option<Slot>,
}

/// The entries of a hello.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a>(core::slice::Chunks<'a, u8>);

impl Iterator for Entries<'_> {
    type Item = Entry;
    fn next(&mut self) -> Option<Entry> {
        let (&address, rest) = self.0.next()?.split_first_chunk()?;
        let &[number, frame] = rest.first_chunk()?;
        Some(Entry {
            address: Address::from_eui48(address),
            slot: slot(number, frame),
        })
    }
}

impl<'a> Message<'a> {
    /// `None` for anything that is not a message.
    pub fn parse(octets: &'a [u8]) -> Option<Message<'a>> {
        let (&[kind, high, low], rest) = octets.split_first_chunk()?;
        let round = u16::from_be_bytes([high, low]);
        if kind == REQUEST {
            return Some(Message::Request { round });
        }
        if kind == HELLO {
            let (&[number, frame, undecided, entries], rest) = rest.split_first_chunk()?;
            let octets = rest.get(..usize::from(entries) * ENTRY)?;
            return Some(Message::Hello {
                round,
                slot: slot(number, frame),
                undecided,
                entries: Entries(octets.chunks(ENTRY)),
            });
        }
        let (&to, rest) = rest.split_first_chunk()?;
        let to = Address::from_eui48(to);
        match kind {
            GRANT => {
                let (&taken, _) = rest.split_first_chunk()?;
                let taken = u128::from_be_bytes(taken);
                Some(Message::Grant { to, round, taken })
            }
            REJECT => Some(Message::Reject { to, round }),
            _ => None,
        }
    }

    /// Writes a request, grant or reject; [`emit_hello`] writes the other kind.
    pub fn emit(&self, octets: &mut [u8]) -> Option<usize> {
        let mut to = Writer { octets, len: 0 };
        match *self {
            Message::Hello { .. } => return None,
            Message::Request { round } => to.head(REQUEST, round)?,
            Message::Grant {
                to: asker,
                round,
                taken,
            } => {
                to.head(GRANT, round)?;
                to.put(&asker.to_eui48())?;
                to.put(&taken.to_be_bytes())?;
            }
            Message::Reject { to: asker, round } => {
                to.head(REJECT, round)?;
                to.put(&asker.to_eui48())?;
            }
        }
        Some(to.len)
    }
}

/// Writes a hello; entries that find no room in `octets` or in one octet's count are left out.
pub(super) fn emit_hello(
    round: u16,
    own: Option<Slot>,
    undecided: u8,
    entries: impl Iterator<Item = Entry>,
    octets: &mut [u8],
) -> Option<usize> {
    let mut to = Writer { octets, len: 0 };
    to.head(HELLO, round)?;
    let [number, frame] = octets_of(own);
    to.put(&[number, frame, undecided, 0])?;
    let mut count: u8 = 0;
    for entry in entries {
        let [number, frame] = octets_of(entry.slot);
        let [a, b, c, d, e, f] = entry.address.to_eui48();
        if count == u8::MAX || to.put(&[a, b, c, d, e, f, number, frame]).is_none() {
            break;
        }
        count += 1;
    }
    let len = to.len;
    *octets.get_mut(6)? = count;
    Some(len)
}

fn slot(number: u8, frame: u8) -> Option<Slot> {
    let frame = 1_u16.checked_shl(u32::from(frame))?;
    (number != NONE).then_some(Slot {
        number: u16::from(number),
        frame,
    })
}

fn octets_of(slot: Option<Slot>) -> [u8; 2] {
    let number = slot.and_then(|slot| u8::try_from(slot.number).ok());
    let frame = slot.map_or(0, |slot| slot.frame.trailing_zeros() as u8);
    [number.unwrap_or(NONE), frame]
}

struct Writer<'a> {
    octets: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, what: &[u8]) -> Option<()> {
        let end = self.len.checked_add(what.len())?;
        self.octets.get_mut(self.len..end)?.copy_from_slice(what);
        self.len = end;
        Some(())
    }

    fn head(&mut self, kind: u8, round: u16) -> Option<()> {
        let [high, low] = round.to_be_bytes();
        self.put(&[kind, high, low])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn messages_survive_the_air() {
        let mut octets = [0; 300];
        let entries = [
            Entry {
                address: Address::node(7),
                slot: Some(Slot {
                    number: 5,
                    frame: 8,
                }),
            },
            Entry {
                address: Address::node(9),
                slot: None,
            },
        ];
        let own = Some(Slot {
            number: 2,
            frame: 32,
        });
        let len = emit_hello(513, own, 3, entries.into_iter(), &mut octets).unwrap();
        let Some(Message::Hello {
            round,
            slot,
            undecided,
            entries: heard,
        }) = Message::parse(&octets[..len])
        else {
            panic!("a hello");
        };
        assert_eq!((round, slot, undecided), (513, own, 3));
        assert_eq!(heard.collect::<Vec<_>>(), entries);
        // Every shorter piece is refused, and so is every other kind.
        assert!((0..len).all(|cut| Message::parse(&octets[..cut]).is_none()));
        let taken = 1 << 127 | 5;
        let to = Address::node(3);
        let grant = Message::Grant {
            to,
            round: 1,
            taken,
        };
        let len = grant.emit(&mut octets).unwrap();
        let heard = Message::parse(&octets[..len]);
        let Some(Message::Grant { taken: heard, .. }) = heard else {
            panic!("a grant");
        };
        assert_eq!(heard, taken);
        assert!(Message::parse(&[9, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }

    /// What finds no room is left out, and what is left is a whole message.
    #[test]
    fn a_hello_is_cut_to_the_room_there_is() {
        let entry = Entry {
            address: Address::node(1),
            slot: None,
        };
        let mut octets = [0; 7 + 3 * ENTRY + 5];
        let len = emit_hello(1, None, 0, [entry; 9].into_iter(), &mut octets).unwrap();
        assert_eq!(len, 7 + 3 * ENTRY);
        let Some(Message::Hello { entries, .. }) = Message::parse(&octets[..len]) else {
            panic!("a hello");
        };
        assert_eq!(entries.count(), 3);
    }
}
