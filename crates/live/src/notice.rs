//! Notices: the pieces of a newer list of members, for nodes whose list is old.
//!
//! ```text
//!  0        4        12      14      16
//!  +--------+--------+-------+-------+- - - -
//!  | serial | digest | piece | of    | octets
//!  +--------+--------+-------+-------+- - - -
//! ```
//!
//! A notice is not sealed, since those who need it have old keys. The application checks the owner's signature. Pieces of at most
//! two lists are kept, so strangers take no memory beyond that.

use std::collections::BTreeMap;

use chappe_core::{DropReason, Duration, Instant};

/// Octets before those of a piece.
const FIXED: usize = 4 + 8 + 2 + 2;
/// Most pieces of a list.
const PIECES_MAX: u16 = 256;
/// Lists of which pieces are kept.
const LISTS_MAX: usize = 2;

/// Writes piece `index` of a list to `body`; returns its length, or `None` behind the last piece.
pub fn emit(serial: u32, list: &[u8], index: u16, body: &mut [u8]) -> Option<usize> {
    let room = body.len().checked_sub(FIXED).filter(|room| *room > 0)?;
    let pieces = list.len().div_ceil(room);
    let octets = list.chunks(room).nth(index.into())?;
    let of = u16::try_from(pieces).ok().filter(|of| *of <= PIECES_MAX)?;
    let (head, rest) = body.split_at_mut_checked(FIXED)?;
    head[..4].copy_from_slice(&serial.to_be_bytes());
    head[4..12].copy_from_slice(&blake3::hash(list).as_bytes()[..8]);
    head[12..14].copy_from_slice(&index.to_be_bytes());
    head[14..].copy_from_slice(&of.to_be_bytes());
    rest.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(FIXED + octets.len())
}

/// Lists reach the application at most this often, because it checks a signature.
const OFTEN: Duration = Duration::from_millis(100);

/// Lists on their way to the application.
#[derive(Debug, Default)]
pub struct Inbox {
    assembly: Assembly,
    /// When the application last got one.
    given: Option<Instant>,
}

impl Inbox {
    /// As [`Assembly::put`]. Shortly after a list was given every piece is dropped.
    pub fn take(
        &mut self,
        now: Instant,
        serial: u32,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>, DropReason> {
        if self.given.is_some_and(|at| now < at + OFTEN) {
            return Err(DropReason::QueueFull);
        }
        let list = self.assembly.put(serial, body);
        if list.is_some() {
            self.given = Some(now);
        }
        Ok(list)
    }
}

/// Pieces that have arrived.
#[derive(Debug, Default)]
pub struct Assembly {
    lists: Vec<List>,
}

#[derive(Debug)]
struct List {
    digest: [u8; 8],
    of: u16,
    pieces: BTreeMap<u16, Vec<u8>>,
}

impl Assembly {
    /// Takes a piece of a list with a higher serial than `serial`. Returns the list if this was its last piece.
    pub fn put(&mut self, serial: u32, body: &[u8]) -> Option<Vec<u8>> {
        let (head, octets) = body.split_first_chunk::<FIXED>()?;
        let [s0, s1, s2, s3, digest @ .., p0, p1, o0, o1] = *head;
        let (index, of) = (u16::from_be_bytes([p0, p1]), u16::from_be_bytes([o0, o1]));
        let newer = u32::from_be_bytes([s0, s1, s2, s3]) > serial;
        if !newer || of == 0 || of > PIECES_MAX || index >= of {
            return None;
        }
        let place = self
            .lists
            .iter()
            .position(|list| list.digest == digest && list.of == of);
        let place = place.unwrap_or_else(|| {
            if self.lists.len() == LISTS_MAX {
                self.lists.remove(0);
            }
            let pieces = BTreeMap::new();
            self.lists.push(List { digest, of, pieces });
            self.lists.len() - 1
        });
        let list = self.lists.get_mut(place)?;
        list.pieces.insert(index, octets.to_vec());
        if list.pieces.len() < usize::from(of) {
            return None;
        }
        let list = self.lists.remove(place);
        let whole: Vec<u8> = list.pieces.into_values().flatten().collect();
        (blake3::hash(&whole).as_bytes()[..8] == digest).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a list arrives whole, whatever arrives between its pieces. Method: pieces in reverse order, noise, and pieces of
    /// older lists; memory stays bounded.
    #[test]
    fn a_list_arrives_in_pieces() {
        let list: Vec<u8> = (0..3000).map(|at| at as u8).collect();
        let mut assembly = Assembly::default();
        let mut body = [0; 1000];
        let mut got = None;
        for index in [3, 2, 1, 0] {
            let len = emit(7, &list, index, &mut body).unwrap();
            assert_eq!(assembly.put(7, &body[..len]), None, "not newer");
            got = got.or(assembly.put(6, &body[..len]));
            for len in 0..16 {
                assert_eq!(assembly.put(6, &body[..len]), None);
            }
        }
        assert_eq!(got, Some(list.clone()));
        assert_eq!(emit(7, &list, 4, &mut body), None);
        for foreign in 0..100u8 {
            body[4] = foreign;
            assembly.put(6, &body);
        }
        assert!(assembly.lists.len() <= LISTS_MAX);
    }
}
