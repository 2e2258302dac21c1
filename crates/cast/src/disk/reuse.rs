//! Batches that need not be fetched because the host has their octets: those of old versions of the files, wherever they
//! are in them, and zeros.
//!
//! The manifest has a [rolling checksum](crate::rolling) of each batch. A window as long as a batch moves over the old version,
//! and where its checksum is that of a lacking batch, the digest decides: the method of rsync and zsync.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::incoming::Incoming;
use super::target::Fate;
use crate::error::Result;
use crate::manifest::{Entry, Kind};
use crate::rolling::Rolling;

/// Bits of the filter in front of the table: with 20,000 batches, one of fifty octets gets past it.
const FILTER: usize = 1 << 20;
/// Octets read at a time, besides a window.
const READ: usize = 1 << 20;

/// The lacking batches by their checksums.
struct Lacking {
    filter: Vec<u64>,
    batches: BTreeMap<u32, Vec<u32>>,
}

impl Lacking {
    fn new(batches: impl Iterator<Item = (u32, u32)>) -> Lacking {
        let mut lacking = Lacking {
            filter: vec![0; FILTER / 64],
            batches: BTreeMap::new(),
        };
        for (sum, batch) in batches {
            let bit = sum as usize % FILTER;
            lacking.filter[bit / 64] |= 1 << (bit % 64);
            lacking.batches.entry(sum).or_default().push(batch);
        }
        lacking
    }

    /// The batches with a checksum.
    fn with(&self, sum: u32) -> &[u32] {
        let bit = sum as usize % FILTER;
        match self.filter[bit / 64] >> (bit % 64) & 1 {
            0 => &[],
            _ => self.batches.get(&sum).map_or(&[], Vec::as_slice),
        }
    }
}

impl Incoming {
    /// Takes over what the host has of the lacking batches.
    pub(super) fn reuse(&mut self) -> Result<()> {
        self.fill_zeros()?;
        let len = self.cut.batch_len() as usize;
        let full = |batch: &u32| {
            let range = self.cut.range(*batch);
            !self.holds(*batch) && range.end - range.start == len as u64
        };
        let batches = (0..self.cut.batches()).filter(full);
        let lacking = Lacking::new(batches.map(|batch| (self.manifest.sum(batch), batch)));
        let wanted = |number: &usize| {
            let file = self.manifest.files()[*number].kind == Kind::File;
            file && self.fates[*number] == Fate::Wanted && !lacking.batches.is_empty()
        };
        let wanted: Vec<usize> = (0..self.manifest.files().len()).filter(wanted).collect();
        for number in wanted {
            let entry: Entry = self.manifest.files()[number].clone();
            // Most often there is no old version.
            let Ok(old) = self.target.read(&entry) else {
                continue;
            };
            let mut failed = None;
            let searched = search(old, len, |sum, octets| {
                let mut found = false;
                for &batch in lacking.with(sum) {
                    match self.put(batch, octets) {
                        Ok(put) => found |= put == super::Put::Kept,
                        Err(error) => failed = Some(error),
                    }
                }
                found
            });
            // What cannot be read is fetched.
            drop(searched);
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Counts lacking batches of zeros as received.
    fn fill_zeros(&mut self) -> Result<()> {
        let zeros = vec![0; self.cut.batch_len() as usize];
        let digest = *blake3::hash(&zeros).as_bytes();
        for batch in 0..self.cut.batches() {
            if !self.holds(batch) && self.manifest.batches()[batch as usize] == digest {
                self.put(batch, &zeros)?;
            }
        }
        Ok(())
    }
}

/// Moves a window of `len` octets over a file and calls `hit` with its checksum and octets. Where that returns true, the
/// window moves on by its length.
fn search(
    mut file: impl Read,
    len: usize,
    mut hit: impl FnMut(u32, &[u8]) -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; len + READ];
    let (mut filled, mut over) = (0, false);
    let mut window = Rolling::new(len);
    while !over {
        while filled < buffer.len() && !over {
            let read = file.read(&mut buffer[filled..])?;
            (filled, over) = (filled + read, read == 0);
        }
        let mut at = 0;
        let mut summed = false;
        while at + len <= filled {
            if !summed {
                window.clear();
                window.extend(&buffer[at..at + len]);
                summed = true;
            }
            if hit(window.value(), &buffer[at..at + len]) {
                (at, summed) = (at + len, false);
                continue;
            }
            if let Some(new) = buffer.get(at + len) {
                window.roll(buffer[at], *new);
            }
            at += 1;
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every window of a file is seen, and those behind a hit follow it directly.
    #[test]
    fn every_window_is_seen() {
        let octets: Vec<u8> = (0..3 * READ as u32 + 77)
            .map(|n| (n.wrapping_mul(7919) >> 3) as u8)
            .collect();
        let mut seen = 0;
        let see = |_: u32, window: &[u8]| {
            assert_eq!(window, &octets[seen..seen + 50]);
            seen += 1;
            false
        };
        search(&octets[..], 50, see).unwrap();
        assert_eq!(seen, octets.len() - 49);
        let mut hits = 0;
        search(&octets[..1000], 50, |_, _| {
            hits += 1;
            true
        })
        .unwrap();
        assert_eq!(hits, 20);
    }
}
