//! The outline of a manifest: what lets a receiver check a part of it before it has all.
//!
//! A manifest's BLAKE3 digest is the root of a tree. The outline has the values of its subtrees of 64 kB (BLAKE3 specification, 2.1). With
//! them, the root follows, so the outline is checked by the digest in the ticket, and each part by its value in the outline.

use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};

use crate::manifest::Digest;

/// Octets of a part, a power of two of BLAKE3's chunks of 1024 octets. The outline of the largest manifest has 8 kB.
pub const PART: usize = 64 * 1024;
/// Octets of a value.
pub const VALUE: usize = 32;

/// The number of parts of a manifest of `len` octets.
pub fn parts(len: usize) -> usize {
    len.div_ceil(PART)
}

/// The octets of a part.
pub fn range(part: usize, len: usize) -> Range<usize> {
    (part * PART).min(len)..((part + 1) * PART).min(len)
}

/// The outline of a manifest; empty if it has one part only, whose value is the digest itself.
pub fn of(octets: &[u8]) -> Vec<u8> {
    match parts(octets.len()) {
        0 | 1 => Vec::new(),
        count => (0..count).flat_map(|part| value(part, octets)).collect(),
    }
}

/// Whether the outline belongs to a manifest of `len` octets with this digest.
pub fn is_of(outline: &[u8], len: usize, digest: &Digest) -> bool {
    let (values, rest) = outline.as_chunks::<VALUE>();
    if values.len() < 2 || values.len() != parts(len) || !rest.is_empty() {
        return false;
    }
    let (left, right) = branches(values, len as u64);
    merge_subtrees_root(&left, &right, Mode::Hash) == *digest
}

/// Whether a part of the manifest has the value in the outline.
pub fn has(outline: &[u8], part: usize, octets: &[u8]) -> bool {
    let (values, _) = outline.as_chunks::<VALUE>();
    values.get(part) == Some(&value(part, octets))
}

fn value(part: usize, octets: &[u8]) -> ChainingValue {
    let range = range(part, octets.len());
    let mut hasher = Hasher::new();
    hasher.set_input_offset(range.start as u64);
    hasher.update(&octets[range]);
    hasher.finalize_non_root()
}

/// The values of both halves of a tree of at least two parts.
fn branches(values: &[ChainingValue], len: u64) -> (ChainingValue, ChainingValue) {
    let left = left_subtree_len(len);
    let (first, second) = values.split_at((left / PART as u64) as usize);
    (merged(first, left), merged(second, len - left))
}

fn merged(values: &[ChainingValue], len: u64) -> ChainingValue {
    match values {
        [only] => *only,
        _ => {
            let (left, right) = branches(values, len);
            merge_subtrees_non_root(&left, &right, Mode::Hash)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: outlines of all shapes of trees belong to their manifests only. Method: lengths around the borders of parts.
    #[test]
    fn outlines_lead_to_the_digest() {
        for parts in [2, 3, 4, 5, 7, 8, 9, 255, 256] {
            for less in [0, 1, PART - 1] {
                let len = parts * PART - less;
                let octets: Vec<u8> = (0..len as u32)
                    .map(|at| (at.wrapping_mul(2_654_435_769) >> 24) as u8)
                    .collect();
                let digest = *blake3::hash(&octets).as_bytes();
                let outline = of(&octets);
                assert_eq!(outline.len(), parts * VALUE);
                assert!(is_of(&outline, len, &digest), "{len}");
                assert!((0..parts).all(|part| has(&outline, part, &octets)), "{len}");
                let mut bent = outline.clone();
                bent[len % outline.len()] ^= 1;
                assert!(!is_of(&bent, len, &digest), "{len}");
                assert!(!is_of(&outline[VALUE..], len, &digest));
                let mut wrong = octets;
                wrong[len - 1] ^= 1;
                assert!(!has(&outline, parts - 1, &wrong) && has(&outline, 0, &wrong));
            }
        }
        assert!(
            of(&[7; PART]).is_empty() && !is_of(&[], PART, blake3::hash(&[7; PART]).as_bytes())
        );
    }
}
