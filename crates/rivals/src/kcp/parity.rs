//! Parity below KCP: for each x datagrams y more, which recover any y lost ones.
//!
//! In kcptun it works below the ARQ, and neither layer knows of the other. Datagrams of both kinds share one sequence of
//! numbers. Each x + y of them form a group, however long it takes to fill it (kcp-go's `fec.go`):
//!
//! ```text
//! 0        4      6      8
//! | number | kind | size | KCP segments           data: kind 0xf1, size counts itself
//! | number | kind |  over size and segments       parity: kind 0xf2
//! ```

use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Erasure, Rows, RowsMut, Shape};

use super::frames::Frames;
use super::segment::before;

/// Octets of number and kind, and of size.
const AROUND: usize = 6;
const SIZE: usize = 2;
/// Octets that parity takes of a datagram.
pub(crate) const OVERHEAD: usize = AROUND + SIZE;
const DATA: u16 = 0xf1;
const PARITY: u16 = 0xf2;
/// Groups that a receiver keeps, as in kcp-go: the ARQ has long repeated what is older.
const GROUPS: u32 = 3;

/// x data and y parity datagrams of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    data: usize,
    parity: usize,
}

impl Size {
    fn all(self) -> usize {
        self.data + self.parity
    }
}

/// Parity at the sender.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    code: Erasure,
    size: Size,
    row: usize,
    number: u32,
    /// Datagrams of the open group, and the longest row of them.
    filled: usize,
    longest: usize,
    rows: Vec<u8>,
    parity: Vec<u8>,
}

impl Encoder {
    /// For datagrams of up to `mtu` octets, headers included; `None` if there is no such code.
    pub fn new((data, parity): (u8, u8), mtu: usize) -> Option<Encoder> {
        let (data, parity) = (data.into(), parity.into());
        let row = mtu.checked_sub(AROUND)?;
        Some(Encoder {
            code: Erasure::new(data, parity).ok()?,
            size: Size { data, parity },
            row,
            number: 0,
            filled: 0,
            longest: 0,
            rows: vec![0; row * data],
            parity: vec![0; row * parity],
        })
    }

    /// Sends a datagram, and the group's parity after its last one.
    pub fn send(&mut self, datagram: &[u8], out: &mut Frames) {
        let size = (datagram.len() + SIZE) as u16;
        let row = self
            .rows
            .chunks_exact_mut(self.row)
            .nth(self.filled)
            .unwrap_or_default();
        // Shorter datagrams count as padded with zeros.
        row.fill(0);
        if let Some((head, rest)) = row.split_at_mut_checked(SIZE) {
            head.copy_from_slice(&size.to_le_bytes());
            if let Some(to) = rest.get_mut(..datagram.len()) {
                to.copy_from_slice(datagram);
            }
        }
        let body = row.get(..usize::from(size)).unwrap_or_default();
        out.push(&[&self.number.to_le_bytes(), &DATA.to_le_bytes(), body]);
        self.number = self.number.wrapping_add(1);
        self.filled += 1;
        self.longest = self.longest.max(size.into());
        if self.filled == self.size.data {
            self.close(out);
        }
    }

    fn close(&mut self, out: &mut Frames) {
        let shape = |count| Shape::new(count, self.longest).and_then(|s| s.with_stride(self.row));
        if let (Ok(data), Ok(parity)) = (shape(self.size.data), shape(self.size.parity))
            && let Ok(data) = Rows::new(data, &self.rows)
            && let Ok(parity) = RowsMut::new(parity, &mut self.parity)
        {
            // It cannot fail: the shapes are those of the code.
            let _ = self.code.encode(data, parity);
        }
        for row in self.parity.chunks_exact(self.row) {
            // No longer than the longest datagram of the group: the rest is zeros.
            let body = row.get(..self.longest).unwrap_or_default();
            out.push(&[&self.number.to_le_bytes(), &PARITY.to_le_bytes(), body]);
            self.number = self.number.wrapping_add(1);
        }
        // A group's first number is a multiple of its size, so the last one before the wrap is skipped.
        let all = self.size.all() as u32;
        if self.number > u32::MAX - u32::MAX % all - all {
            self.number = 0;
        }
        (self.filled, self.longest) = (0, 0);
    }
}

/// Parity at the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    code: Erasure,
    size: Size,
    row: usize,
    groups: Vec<Group>,
    /// Datagrams recovered so far.
    pub recovered: u64,
}

#[derive(Clone, Debug)]
struct Group {
    /// The number of its first datagram; `None` while it is not in use.
    first: Option<u32>,
    here: Vec<bool>,
    longest: usize,
    done: bool,
    data: Vec<u8>,
    parity: Vec<u8>,
}

impl Decoder {
    /// For the same code and datagrams as [`Encoder::new`].
    pub fn new((data, parity): (u8, u8), mtu: usize) -> Option<Decoder> {
        let (data, parity) = (usize::from(data), usize::from(parity));
        let row = mtu.checked_sub(AROUND)?;
        let group = Group {
            first: None,
            here: vec![false; data + parity],
            longest: 0,
            done: false,
            data: vec![0; row * data],
            parity: vec![0; row * parity],
        };
        Some(Decoder {
            code: Erasure::new(data, parity).ok()?,
            size: Size { data, parity },
            row,
            groups: vec![group; GROUPS as usize],
            recovered: 0,
        })
    }

    /// Passes `input` what a datagram carries and what it helps to recover; false if it is malformed.
    pub fn take(&mut self, datagram: &[u8], mut input: impl FnMut(&[u8])) -> bool {
        let Some((number, kind, body)) = split(datagram) else {
            return false;
        };
        let all = self.size.all() as u32;
        let place = (number % all) as usize;
        if (kind == DATA) != (place < self.size.data) || body.len() > self.row {
            return false;
        }
        if kind == DATA {
            let Some(carried) = carried(body) else {
                return false;
            };
            input(carried);
        }
        let first = number - number % all;
        let (size, row, code) = (self.size, self.row, self.code);
        let Some(group) = self.group(first) else {
            return true;
        };
        if !group.put(place, body, size, row) {
            return true;
        }
        self.recovered += group.solve(code, size, row, input);
        true
    }

    /// The group that begins with this number, in place of an old one; `None` if a newer group has its place.
    fn group(&mut self, first: u32) -> Option<&mut Group> {
        let all = self.size.all() as u32;
        let place = (first / all % GROUPS) as usize;
        let group = self.groups.get_mut(place)?;
        match group.first {
            Some(known) if known == first => {}
            Some(known) if before(first, known) => return None,
            _ => group.open(first),
        }
        Some(group)
    }
}

impl Group {
    fn open(&mut self, first: u32) {
        self.first = Some(first);
        self.here.fill(false);
        (self.longest, self.done) = (0, false);
        self.data.fill(0);
        self.parity.fill(0);
    }

    /// Stores a datagram; false if it came before, or the group is solved.
    fn put(&mut self, place: usize, body: &[u8], size: Size, row: usize) -> bool {
        let Some(here) = self.here.get_mut(place).filter(|here| !**here) else {
            return false;
        };
        *here = true;
        let rows = match place.checked_sub(size.data) {
            None => self.data.chunks_exact_mut(row).nth(place),
            Some(place) => self.parity.chunks_exact_mut(row).nth(place),
        };
        if let Some(to) = rows.and_then(|row| row.get_mut(..body.len())) {
            to.copy_from_slice(body);
        }
        self.longest = self.longest.max(body.len());
        !self.done
    }

    /// Recovers what is missing once enough has arrived; returns the number of datagrams.
    fn solve(
        &mut self,
        code: Erasure,
        size: Size,
        row: usize,
        mut input: impl FnMut(&[u8]),
    ) -> u64 {
        let come = self.here.iter().filter(|here| **here).count();
        if come < size.data {
            return 0;
        }
        self.done = true;
        let (data, parity) = self.here.split_at_checked(size.data).unwrap_or_default();
        let (mut missing, mut received) = ([0; 256], [0; 256]);
        let missing = places(data, false, &mut missing);
        let received = places(parity, true, &mut received);
        let shape = |count| Shape::new(count, self.longest).and_then(|s| s.with_stride(row));
        let (Ok(of_data), Ok(of_parity)) = (shape(size.data), shape(size.parity)) else {
            return 0;
        };
        let (Ok(rows), Ok(parity)) = (
            RowsMut::new(of_data, &mut self.data),
            RowsMut::new(of_parity, &mut self.parity),
        ) else {
            return 0;
        };
        if code.reconstruct(rows, missing, parity, received).is_err() {
            return 0;
        }
        let mut made = 0;
        for place in missing {
            let row = self.data.chunks_exact(row).nth(usize::from(*place));
            if let Some(carried) = row.and_then(carried) {
                input(carried);
                made += 1;
            }
        }
        made
    }
}

/// Writes the places at which `of` equals `there` to the front of `to`.
fn places<'a>(of: &[bool], there: bool, to: &'a mut [u8; 256]) -> &'a [u8] {
    let places = (0..=u8::MAX).zip(of).filter(|(_, here)| **here == there);
    let mut count = 0;
    for (slot, (place, _)) in to.iter_mut().zip(places) {
        *slot = place;
        count += 1;
    }
    to.get(..count).unwrap_or_default()
}

/// Number, kind and the rest.
fn split(datagram: &[u8]) -> Option<(u32, u16, &[u8])> {
    let (number, rest) = datagram.split_first_chunk()?;
    let (kind, body) = rest.split_first_chunk()?;
    let kind = u16::from_le_bytes(*kind);
    (kind == DATA || kind == PARITY).then_some((u32::from_le_bytes(*number), kind, body))
}

/// The datagram in a data row, after its size.
fn carried(row: &[u8]) -> Option<&[u8]> {
    let size = u16::from_le_bytes(*row.first_chunk()?);
    row.get(SIZE..usize::from(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any three datagrams of each group of 10 + 3 are recovered, although they differ in length.
    #[test]
    fn any_three_of_thirteen_may_be_lost() {
        let mtu = 100;
        let mut encoder = Encoder::new((10, 3), mtu).unwrap();
        let mut frames = Frames::new(64, mtu);
        let datagram = |i: u8| vec![i; 20 + usize::from(i % 70)];
        for i in 0..30 {
            encoder.send(&datagram(i), &mut frames);
        }
        let mut all = Vec::new();
        let mut frame = [0; 100];
        while let Some(len) = frames.pop(&mut frame) {
            all.push(frame[..len].to_vec());
        }
        assert_eq!(all.len(), 39);
        for lost in [[0, 1, 2], [0, 9, 10], [4, 11, 12], [7, 8, 9]] {
            let mut decoder = Decoder::new((10, 3), mtu).unwrap();
            let mut came = Vec::new();
            for (place, frame) in all.iter().enumerate() {
                if !lost.contains(&(place % 13)) {
                    assert!(decoder.take(frame, |carried| came.push(carried.to_vec())));
                }
            }
            came.sort();
            let expected: Vec<Vec<u8>> = (0..30).map(datagram).collect();
            assert_eq!(came, expected, "{lost:?}");
            let data = lost.iter().filter(|place| **place < 10).count();
            assert_eq!(decoder.recovered, 3 * data as u64);
        }
    }

    /// Malformed datagrams are refused.
    #[test]
    fn malformed_datagrams_are_refused() {
        let mut decoder = Decoder::new((2, 1), 60).unwrap();
        for octets in [
            &[][..],
            &[1, 2, 3],
            &[0, 0, 0, 0, 0xf1, 0],
            &[0, 0, 0, 0, 0xf1, 0, 1, 0],
            &[0, 0, 0, 0, 0xf1, 0, 9, 0, 1],
            &[2, 0, 0, 0, 0xf1, 0, 3, 0, 1],
            &[0, 0, 0, 0, 0xf2, 0, 3, 0, 1],
            &[0; 80],
        ] {
            assert!(!decoder.take(octets, |_| unreachable!()), "{octets:?}");
        }
    }
}
