//! Copies of a running process: a virtual machine that was saved and runs twice, or a restored checkpoint.
//!
//! A copy has the keys and counters of the original, so both seal other octets under one nonce. No process can know that it was
//! copied. But each hears the other's frames, if both are on one network: a hello in its own name, under its own key, with a counter
//! that it has not reached itself. Only the one that is behind sees that. It begins another life with other keys, at most as late as
//! the other's next hello. Then the two are what any two hosts with one key are, and both report it.
//!
//! Every neighbour has the key of broadcasts and could write such a hello. So it counts only if it proves its entry for two
//! neighbours, or for the only one: a neighbour has the keys for one proof.
//!
//! What is left: the frames until that hello, and copies that do not hear each other. No other node can tell them apart: a neighbour takes the
//! frames of both for one node's, and drops those whose counters it has seen.

use std::time::SystemTime;

use chappe_core::Duration;

use crate::frame::{Header, Kind};
use crate::hello;
use crate::neighbours::Neighbours;
use crate::seal::Sealer;

/// The shortest time between two lives that begin because of a copy: whoever can cause it may do so again.
pub const AGAIN: Duration = Duration::from_secs(10);

/// The BLAKE3 context of what begins another life.
const LIFE: &str = "chappe live 2026-11 another life of a copied process";

/// Whether a frame in this node's name and life is a copy's, which is ahead of this node.
pub fn is_ahead(sealer: &Sealer, neighbours: &Neighbours, header: &Header, frame: &[u8]) -> bool {
    if header.kind != Kind::Hello || header.counter < sealer.next_broadcast() {
        return false;
    }
    let mut frame = frame.to_vec();
    let entries = sealer.open(header, &mut frame).and_then(hello::parse);
    entries.is_some_and(|entries| neighbours.has_written(header.counter, entries))
}

/// The number and the first key of another life. The kernel's `random` octets may be the same in the copy of a whole machine, so what
/// differs between the two is mixed in: the time of each, and the frame that showed the copy.
pub fn another_life(random: [u8; 32], frame: &[u8]) -> (u64, [u8; 32]) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = now.unwrap_or_default().as_nanos().to_be_bytes();
    let mut hash = blake3::Hasher::new_derive_key(LIFE);
    hash.update(&random).update(&nanos);
    let mut octets = [0; 40];
    hash.update(frame).finalize_xof().fill(&mut octets);
    let (life, key) = octets.split_at(8);
    let mut fixed = ([0; 8], [0; 32]);
    fixed.0.copy_from_slice(life);
    fixed.1.copy_from_slice(key);
    (u64::from_be_bytes(fixed.0), fixed.1)
}
