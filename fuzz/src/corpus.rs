//! Inputs from which mutations start: the files of `corpus/`, frames that nodes send, and scripts that get somewhere.

use std::fs;
use std::path::Path;

use chappe_cast::group::Seat;
use chappe_core::{Purpose, Seed, Stream};

use crate::machines::{self, Frames};

/// Variants of a machine whose frames are taken.
const VARIANTS: u8 = 16;

/// What a target starts from; never empty.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut corpus = files(target);
    if target == "cast" {
        corpus.push(Seat::example(0, 3, 1).group.text().to_vec());
    }
    let machine: Option<fn(&[u8]) -> Frames> = match target {
        "dot11" => Some(machines::dot11),
        "dot15d4" => Some(machines::dot15d4),
        "pacifier" => Some(machines::pacifier),
        "dpclo" => Some(machines::dpclo),
        "wildnet" => Some(|script| {
            let mut frames = machines::wildnet_link(script);
            frames.extend(machines::wildnet_slots(script));
            frames
        }),
        _ => None,
    };
    match machine {
        Some(machine) => {
            for variant in 0..VARIANTS {
                let mut frames = machine(&conversation(variant));
                frames.dedup();
                corpus.extend(frames);
            }
        }
        // The other targets take scripts, or octets of any kind.
        None => corpus.extend((0..VARIANTS).map(conversation)),
    }
    corpus
}

/// The files of a target, sorted by name. `cargo fuzz` reads and extends the same folders.
fn files(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .collect()
}

/// Two nodes that talk without losses: each is asked for a frame, which arrives and ends, and time passes.
fn conversation(variant: u8) -> Vec<u8> {
    let turn = |side: u8| {
        [
            side | 14,
            side | 13,
            0,
            10,
            60,
            (side ^ 0x80),
            side | 14,
            11,
            100,
        ]
    };
    let turns = (0..60).flat_map(|number: u8| turn((number % 2) << 7));
    [variant].into_iter().chain(turns).collect()
}

/// Changes an input at one to eight places: octets and bits change, come and go, stretches are repeated or put in from `other`.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Stream) {
    for _ in 0..1 + random.below(8) {
        let mut place = |len: usize| random.below(len.max(1) as u64) as usize;
        let at = place(bytes.len()).min(bytes.len());
        let span = |from: usize, len: usize| from.min(len)..(from + 16).min(len);
        let piece = match other.is_empty() {
            true => Vec::new(),
            false => other[span(place(other.len()), other.len())].to_vec(),
        };
        match random.below(9) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 => drop(bytes.splice(at..at, piece)),
            3 => {
                let end = (at + piece.len()).min(bytes.len());
                drop(bytes.splice(at..end, piece));
            }
            4 => {
                let again = bytes[span(at, bytes.len())].to_vec();
                drop(bytes.splice(at..at, again));
            }
            5 => drop(bytes.drain(span(at, bytes.len()))),
            // The values at which lengths and counts change their meaning.
            6 => {
                let edge = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize];
                if let Some(octet) = bytes.get_mut(at) {
                    *octet = edge;
                }
            }
            7 => {
                if let Some(octet) = bytes.get_mut(at) {
                    *octet = random.next_u64() as u8;
                }
            }
            _ => {
                if let Some(octet) = bytes.get_mut(at) {
                    *octet ^= 1 << random.below(8);
                }
            }
        }
        bytes.truncate(LONGEST);
    }
}

/// Octets of an input at most.
const LONGEST: usize = 8192;

/// A random input: octets of any kind, or a mutation of one of the corpus.
pub fn input(corpus: &[Vec<u8>], random: &mut Stream) -> Vec<u8> {
    if corpus.is_empty() || random.chance(0.1) {
        let mut bytes = vec![0; random.below(400) as usize];
        random.fill(&mut bytes);
        return bytes;
    }
    let mut one = || &corpus[random.below(corpus.len() as u64) as usize];
    let (mut bytes, other) = (one().clone(), one());
    mutate(&mut bytes, other, random);
    bytes
}

/// The inputs of a target are those of this stream.
pub fn stream(target: &str, seed: u64) -> Stream {
    let name = target.bytes();
    let name = name.fold(0, |sum: u64, octet| {
        sum.wrapping_mul(31).wrapping_add(octet.into())
    });
    Seed(seed).child(name).stream(Purpose::Trial(0))
}
