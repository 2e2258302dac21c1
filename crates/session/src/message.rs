//! The messages on the wire, and the proof that their sender knows whom it calls.
//!
//! ```text
//! initiation  1, version, 0, 0, index (4), Noise's first message, proof (16), cookie's proof (16)
//! answer      2, version, 0, 0, index (4), to index (4), Noise's second message, proof (16)
//! frame       3, to index (3), frame number (4), sealed rest, tag (16)
//! cookie      4, version, 0, 0, to index (4), nonce (24), sealed cookie (16 + 16)
//! ```
//!
//! Noise's first message is the caller's ephemeral key (32), its sealed public key (48), and a sealed stamp (12 + 16) with the
//! application's octets. The second is an ephemeral key and the application's octets (+ 16).

use subtle::ConstantTimeEq;

use crate::cipher::TAG;
use crate::keys::Public;
use crate::stamp::Stamp;

pub(crate) const INITIATION: u8 = 1;
pub(crate) const ANSWER: u8 = 2;
pub(crate) const FRAME: u8 = 3;
pub(crate) const COOKIE: u8 = 4;

/// Octets of a frame before its number.
pub const HEAD: usize = 4;
/// Octets that a session adds to a frame, whose first four octets are its number.
pub const OVERHEAD: usize = HEAD + TAG;
/// Most octets that an application may say in a handshake.
pub const SAID_MAX: usize = 64;

pub(crate) const INDEX_AT: usize = 4;
/// Where Noise's part of an initiation and of an answer begins.
pub(crate) const FIRST_AT: usize = 8;
pub(crate) const SECOND_AT: usize = 12;
pub(crate) const PROOF: usize = 16;
/// Octets of Noise's parts beside what the application says.
const FIRST_LEAST: usize = 32 + 48 + Stamp::LEN + TAG;
const SECOND_LEAST: usize = 32 + TAG;
/// Octets of the longest initiation or answer.
pub const HANDSHAKE_MAX: usize = FIRST_AT + FIRST_LEAST + SAID_MAX + 2 * PROOF;
pub(crate) const INITIATION_LEAST: usize = FIRST_AT + FIRST_LEAST + 2 * PROOF;
pub(crate) const ANSWER_LEAST: usize = SECOND_AT + SECOND_LEAST + PROOF;
pub(crate) const NONCE: usize = 24;
pub(crate) const COOKIE_LEN: usize = 8 + NONCE + 16 + TAG;

/// The application's protocol: its name is part of each handshake, its version stands in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name. Two hosts whose protocols have different names make no session.
    pub name: &'static str,
    /// Its version on the wire. Datagrams of other versions are dropped and counted.
    pub version: u8,
}

/// Why a datagram was dropped. None of them says who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No message of this protocol, or one for a session that has ended.
    Strange,
    /// A handshake of this other version.
    Version(u8),
    /// The sender does not know the public key of this host.
    Proof,
    /// Not made with the right keys, or altered.
    Forged,
    /// A frame that has come before, or an initiation not newer than one that has come.
    Repeated,
    /// More handshakes than this host opens in a second.
    Busy,
}

const PROOF_CONTEXT: &str = "chappe session 2026-11 proof of knowing a public key";
const COOKIE_CONTEXT: &str = "chappe session 2026-11 key of cookies";
const COOKIE_PROOF_CONTEXT: &str = "chappe session 2026-11 proof of having a cookie";

/// The keys that everybody can compute who knows the public key of the host that a message is for.
#[derive(Clone)]
pub(crate) struct Address {
    proof: [u8; 32],
    /// Seals the cookies that this host gives out.
    pub cookie: [u8; 32],
}

impl Address {
    pub fn of(host: &Public) -> Address {
        Address {
            proof: blake3::derive_key(PROOF_CONTEXT, host.octets()),
            cookie: blake3::derive_key(COOKIE_CONTEXT, host.octets()),
        }
    }

    pub fn proof(&self, said: &[u8]) -> [u8; PROOF] {
        first(&blake3::keyed_hash(&self.proof, said))
    }
}

/// The proof of having a cookie, over a message up to and with its first proof.
pub(crate) fn cookie_proof(cookie: &[u8; PROOF], said: &[u8]) -> [u8; PROOF] {
    let key = blake3::derive_key(COOKIE_PROOF_CONTEXT, cookie);
    first(&blake3::keyed_hash(&key, said))
}

/// The first octets of a hash.
pub(crate) fn first<const N: usize>(hash: &blake3::Hash) -> [u8; N] {
    const { assert!(N <= 32) };
    let octets = hash.as_bytes();
    core::array::from_fn(|at| octets[at])
}

/// Compares in constant time.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

pub(crate) fn version(protocol: Protocol, octets: &[u8]) -> Result<(), Reason> {
    match octets.get(1) {
        Some(&said) if said == protocol.version => Ok(()),
        Some(&other) => Err(Reason::Version(other)),
        None => Err(Reason::Strange),
    }
}

/// Writes the clear head of a message.
pub(crate) fn head(kind: u8, protocol: Protocol, index: u32, out: &mut [u8]) -> Option<()> {
    let head = out.first_chunk_mut::<FIRST_AT>()?;
    let [a, b, c, d] = index.to_be_bytes();
    *head = [kind, protocol.version, 0, 0, a, b, c, d];
    Some(())
}

pub(crate) fn number_at(octets: &[u8], at: usize) -> Option<u32> {
    let four = octets.get(at..at + 4)?.first_chunk()?;
    Some(u32::from_be_bytes(*four))
}

/// The index of the session or call that an answer, a cookie or a frame is addressed to.
pub fn addressed(octets: &[u8]) -> Option<u32> {
    match *octets {
        [ANSWER, ..] => number_at(octets, 8),
        [COOKIE, ..] => number_at(octets, INDEX_AT),
        [FRAME, a, b, c, ..] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}
