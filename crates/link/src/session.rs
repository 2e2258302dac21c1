//! Sessions: the handshake, session keys and sealed frames.
//!
//! Two hosts share a key. The initiator sends a hello with a fresh random number. The responder answers with a random
//! number of its own and a keyed hash (BLAKE3) over both, which proves that it has the key. The session keys, one for each
//! direction, are derived from the shared key and both numbers.
//!
//! The initiator's first sealed frame is its proof to the responder. Until then the responder continues the older
//! session, so a replayed hello changes nothing, and does not block the proof of another hello. There is no forward
//! secrecy: whoever learns the shared key can decrypt recorded traffic.
//!
//! ```text
//! hello   1, version, 0, 0, index (4), key name (8), number (32), life (8), window (2), proof (16)
//! answer  2, version, 0, 0, index (4), to index (4), number (32), life (8), window (2), proof (16)
//! frame   3, to index (3), frame number (4), sealed rest of the link's frame, tag (16)
//! ```
//!
//! A frame's number is its nonce: the link never repeats a number, and a session ends long before 2^32. A replay window
//! over the numbers drops duplicates.

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Tag};
use std::fmt;

/// The version of the protocol on the wire.
pub const VERSION: u8 = 4;
/// Octets that a session adds to a frame of the link.
pub const OVERHEAD: usize = HEAD + TAG;
/// Octets before the frame number.
pub(crate) const HEAD: usize = 4;
const TAG: usize = 16;
const NUMBER: usize = 4;
/// After this many frames a new session replaces the old one, long before the nonces run out.
pub const FRAMES_MAX: u32 = 1 << 30;

pub(crate) const HELLO: u8 = 1;
pub(crate) const ANSWER: u8 = 2;
pub(crate) const FRAME: u8 = 3;
pub(crate) const HELLO_LEN: usize = 74;
pub(crate) const ANSWER_LEN: usize = 70;

const PROOF_CONTEXT: &str = "chappe link 2026-11 proof of a hello";
const NAME_CONTEXT: &str = "chappe link 2026-11 name of a key";
const SESSION_CONTEXT: &str = "chappe link 2026-11 session key of a direction";

/// The secret key that two hosts share.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// A key of 32 secret random octets.
    pub const fn new(octets: [u8; 32]) -> Key {
        Key(octets)
    }

    /// Parses 64 hexadecimal digits, as written by `chappe link key`.
    pub fn parse(text: &str) -> Option<Key> {
        let text = text.trim();
        let digits = text.as_bytes();
        let mut octets = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16);
            *octet = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Some(Key(octets))
    }

    /// The key as hexadecimal digits, which [`Key::parse`] reads. Keep it secret.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// A public identifier derived from the key, which reveals nothing about it. Hellos carry it, so that the receiver finds
    /// the key.
    pub fn name(&self) -> [u8; 8] {
        first(&blake3::derive_key(NAME_CONTEXT, &self.0))
    }

    fn proof(&self, parts: &[&[u8]]) -> [u8; TAG] {
        let key = blake3::derive_key(PROOF_CONTEXT, &self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        parts.iter().for_each(|part| _ = hasher.update(part));
        first(hasher.finalize().as_bytes())
    }

    /// Derives the key of one direction; `first`: from the initiator.
    fn session(&self, hello: &[u8; 32], answer: &[u8; 32], first: bool) -> ChaCha20Poly1305 {
        let mut hasher = blake3::Hasher::new_derive_key(SESSION_CONTEXT);
        for part in [&self.0, hello, answer] {
            hasher.update(part);
        }
        hasher.update(&[u8::from(first)]);
        ChaCha20Poly1305::new(hasher.finalize().as_bytes().into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The body of a hello or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// The index by which the peer addresses this session.
    pub index: u32,
    /// A random number, fresh for each hello or answer.
    pub number: [u8; 32],
    /// A random number drawn at the start of the process: a change means a restart.
    pub life: u64,
    /// The receive window in bodies.
    pub window: u16,
}

/// A hello that awaits its answer.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub octets: [u8; HELLO_LEN],
    pub own: Introduction,
}

/// Why a hello or answer was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    /// The peer uses this version of the protocol.
    Version(u8),
    /// The keyed hash is wrong: another key, or an answer to another hello.
    Proof,
    /// This host's own hello, received back.
    Echo,
}

impl Hello {
    pub fn new(key: &Key, own: Introduction) -> Hello {
        let mut octets = [0; HELLO_LEN];
        write(&mut octets, HELLO, &own, &key.name());
        let proof = key.proof(&[&octets[..HELLO_LEN - TAG]]);
        octets[HELLO_LEN - TAG..].copy_from_slice(&proof);
        Hello { octets, own }
    }

    /// The key name in a hello; see [`Key::name`].
    pub fn key_name(octets: &[u8]) -> Option<[u8; 8]> {
        octets.get(8..16)?.try_into().ok()
    }

    /// Parses a hello and checks that it was made with this key.
    pub fn read(key: &Key, octets: &[u8]) -> Result<Introduction, Refusal> {
        version(octets)?;
        let octets: &[u8; HELLO_LEN] = octets.try_into().map_err(|_| Refusal::Malformed)?;
        let (said, proof) = octets.split_at(HELLO_LEN - TAG);
        if !same(&key.proof(&[said]), proof) {
            return Err(Refusal::Proof);
        }
        Ok(introduction(&octets[4..8], &octets[16..58]))
    }

    /// Builds the answer to a hello.
    pub fn answer(key: &Key, hello: &[u8], to: u32, own: Introduction) -> [u8; ANSWER_LEN] {
        let mut octets = [0; ANSWER_LEN];
        write(&mut octets, ANSWER, &own, &to.to_be_bytes());
        let proof = key.proof(&[hello, &octets[..ANSWER_LEN - TAG]]);
        octets[ANSWER_LEN - TAG..].copy_from_slice(&proof);
        octets
    }

    /// Parses the answer to this hello and checks its proof.
    pub fn read_answer(&self, key: &Key, octets: &[u8]) -> Result<Introduction, Refusal> {
        version(octets)?;
        let octets: &[u8; ANSWER_LEN] = octets.try_into().map_err(|_| Refusal::Malformed)?;
        let (said, proof) = octets.split_at(ANSWER_LEN - TAG);
        if !same(&key.proof(&[&self.octets, said]), proof) {
            return Err(Refusal::Proof);
        }
        Ok(introduction(&octets[4..8], &octets[12..54]))
    }
}

/// The index to which an answer or frame is addressed.
pub(crate) fn addressed(octets: &[u8]) -> Option<u32> {
    match *octets {
        [ANSWER, _, _, _, _, _, _, _, a, b, c, d, ..] => Some(u32::from_be_bytes([a, b, c, d])),
        [FRAME, a, b, c, ..] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}

fn version(octets: &[u8]) -> Result<(), Refusal> {
    match octets.get(1) {
        Some(&VERSION) => Ok(()),
        Some(&other) => Err(Refusal::Version(other)),
        None => Err(Refusal::Malformed),
    }
}

/// Writes a hello or an answer without its proof. `about` is the key name (hello) or the peer's index (answer).
fn write(octets: &mut [u8], kind: u8, own: &Introduction, about: &[u8]) {
    let parts: [&[u8]; 6] = [
        &[kind, VERSION, 0, 0],
        &own.index.to_be_bytes(),
        about,
        &own.number,
        &own.life.to_be_bytes(),
        &own.window.to_be_bytes(),
    ];
    let said = parts.into_iter().flatten();
    for (place, octet) in octets.iter_mut().zip(said) {
        *place = *octet;
    }
}

/// The first `N` octets of a digest.
pub(crate) fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    const { assert!(N <= 32) };
    std::array::from_fn(|at| digest[at])
}

fn introduction(index: &[u8], rest: &[u8]) -> Introduction {
    let mut number = [0; 32];
    number.copy_from_slice(&rest[..32]);
    let life = rest[32..40].try_into().map_or(0, u64::from_be_bytes);
    let window = rest[40..42].try_into().map_or(0, u16::from_be_bytes);
    let index = index.try_into().map_or(0, u32::from_be_bytes);
    Introduction {
        index,
        number,
        life,
        window,
    }
}

/// Compares in constant time, so that timing does not reveal where two differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// The state of a session: keys and indices of both directions.
pub(crate) struct Session {
    /// The indices by which the peer addresses us, and we the peer.
    pub mine: u32,
    pub theirs: u32,
    /// The peer's life and window.
    pub life: u64,
    pub window: u16,
    seals: ChaCha20Poly1305,
    opens: ChaCha20Poly1305,
    replay: Replay,
    /// Number of frames sealed so far.
    pub sealed: u32,
}

impl Session {
    /// Derives the session of two introductions; `said_hello`: this host is the initiator.
    pub fn new(key: &Key, own: &Introduction, peer: &Introduction, said_hello: bool) -> Session {
        let (hello, answer) = match said_hello {
            true => (&own.number, &peer.number),
            false => (&peer.number, &own.number),
        };
        Session {
            mine: own.index,
            theirs: peer.index,
            life: peer.life,
            window: peer.window,
            seals: key.session(hello, answer, said_hello),
            opens: key.session(hello, answer, !said_hello),
            replay: Replay::default(),
            sealed: 0,
        }
    }

    /// Seals the link's frame of `len` octets that stands behind the first [`HEAD`] octets. Returns the datagram's length.
    pub fn seal(&mut self, octets: &mut [u8], len: usize) -> Option<usize> {
        let whole = octets.get_mut(..OVERHEAD + len)?;
        let [_, a, b, c] = self.theirs.to_be_bytes();
        whole[..HEAD].copy_from_slice(&[FRAME, a, b, c]);
        let (clear, rest) = whole.split_at_mut(HEAD + NUMBER);
        let (sealed, tag_place) = rest.split_at_mut(len.checked_sub(NUMBER)?);
        let nonce = nonce(clear);
        let tag = self
            .seals
            .encrypt_inout_detached(&nonce.into(), clear, sealed.into())
            .ok()?;
        tag_place.copy_from_slice(&tag);
        self.sealed = self.sealed.saturating_add(1);
        Some(OVERHEAD + len)
    }

    /// Opens a datagram in place and returns the link's frame.
    pub fn open<'a>(&mut self, octets: &'a mut [u8]) -> Result<&'a [u8], Refused> {
        if octets.len() < OVERHEAD + NUMBER {
            return Err(Refused::Forged);
        }
        let (clear, rest) = octets.split_at_mut(HEAD + NUMBER);
        let number = clear[HEAD..].try_into().map_or(0, u32::from_be_bytes);
        // Checked first, since a replay then costs no decryption; noted only after the frame has proved authentic.
        if self.replay.has(number) {
            return Err(Refused::Repeated);
        }
        let (sealed, tag) = rest.split_at_mut(rest.len() - TAG);
        let tag = Tag::try_from(&*tag).map_err(|_| Refused::Forged)?;
        let nonce = nonce(clear);
        let opened = self
            .opens
            .decrypt_inout_detached(&nonce.into(), clear, sealed.into(), &tag);
        opened.map_err(|_| Refused::Forged)?;
        self.replay.note(number);
        let len = octets.len() - TAG;
        octets.get(HEAD..len).ok_or(Refused::Forged)
    }
}

/// Why a frame was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Not sealed with the session's key, or altered in transit.
    Forged,
    /// A duplicate, or too old for the replay window.
    Repeated,
}

fn nonce(clear: &[u8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[8..].copy_from_slice(&clear[HEAD..HEAD + NUMBER]);
    nonce
}

/// Length of the replay window in frames: more than a window of bodies, each sent twice.
const REPLAY: u32 = 4096;

/// The replay window (RFC 6479).
struct Replay {
    started: bool,
    newest: u32,
    seen: Box<[u64; REPLAY as usize / 64]>,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            started: false,
            newest: 0,
            seen: Box::new([0; REPLAY as usize / 64]),
        }
    }
}

impl Replay {
    fn cell(&mut self, number: u32) -> (&mut u64, u64) {
        let place = number % REPLAY;
        (&mut self.seen[(place / 64) as usize], 1 << (place % 64))
    }

    fn has(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.newest);
        if !self.started || (1..=u32::MAX / 2).contains(&ahead) {
            return false;
        }
        if ahead.wrapping_neg() >= REPLAY {
            return true;
        }
        let (cell, bit) = self.cell(number);
        *cell & bit != 0
    }

    fn note(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.newest);
        if !self.started {
            (self.started, self.newest) = (true, number);
        } else if (1..=u32::MAX / 2).contains(&ahead) {
            for passed in 1..=ahead.min(REPLAY) {
                let (cell, bit) =
                    self.cell(number.wrapping_sub(ahead.min(REPLAY)).wrapping_add(passed));
                *cell &= !bit;
            }
            self.newest = number;
        }
        let (cell, bit) = self.cell(number);
        *cell |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Session, Session) {
        let key = Key::new([7; 32]);
        let introduce = |index, fill| Introduction {
            index,
            number: [fill; 32],
            life: 1,
            window: 64,
        };
        let (a, b) = (introduce(0x10203, 1), introduce(0x40506, 2));
        let hello = Hello::new(&key, a);
        assert_eq!(Hello::read(&key, &hello.octets), Ok(a));
        let answer = Hello::answer(&key, &hello.octets, a.index, b);
        assert_eq!(addressed(&answer), Some(a.index));
        assert_eq!(hello.read_answer(&key, &answer), Ok(b));
        (
            Session::new(&key, &a, &b, true),
            Session::new(&key, &b, &a, false),
        )
    }

    fn frame(number: u32) -> Vec<u8> {
        let mut octets = vec![0; 100];
        octets[HEAD..HEAD + 4].copy_from_slice(&number.to_be_bytes());
        octets[HEAD + 4..HEAD + 24].fill(9);
        octets
    }

    #[test]
    fn frames_open_once_and_unchanged() {
        let (mut a, mut b) = pair();
        let mut sealed = frame(5);
        let len = a.seal(&mut sealed, 24).unwrap();
        sealed.truncate(len);
        assert_eq!(addressed(&sealed), Some(0x40506));
        for place in 0..len {
            let mut bent = sealed.clone();
            bent[place] ^= 1;
            let opened = b.open(&mut bent).map(<[u8]>::to_vec);
            assert!(opened == Err(Refused::Forged) || place < HEAD, "{place}");
        }
        assert_eq!(b.open(&mut sealed.clone()).unwrap()[4..], [9; 20]);
        assert_eq!(b.open(&mut sealed.clone()), Err(Refused::Repeated));
        // Not even to its own sender.
        assert_eq!(a.open(&mut sealed), Err(Refused::Forged));
    }

    #[test]
    fn the_replay_window_agrees_with_a_list() {
        let mut replay = Replay::default();
        for number in [10, 12, 11] {
            assert!(!replay.has(number));
            replay.note(number);
            assert!(replay.has(number));
        }
        // The window holds 4096 numbers: 904 is too old, 905 has not come.
        replay.note(5000);
        assert!(replay.has(12) && replay.has(904) && !replay.has(905));
        replay.note(4999);
        assert!(replay.has(4999) && replay.has(5000));
        assert!(!replay.has(4998) && !replay.has(5001));
        // Half of all numbers lie behind the newest.
        assert!(replay.has(u32::MAX));
    }

    #[test]
    fn wrong_keys_and_versions_are_told_apart() {
        let own = Introduction {
            index: 1,
            number: [1; 32],
            life: 1,
            window: 64,
        };
        let mut hello = Hello::new(&Key::new([1; 32]), own);
        assert_eq!(
            Hello::read(&Key::new([2; 32]), &hello.octets),
            Err(Refusal::Proof)
        );
        hello.octets[1] = 9;
        assert_eq!(
            Hello::read(&Key::new([1; 32]), &hello.octets),
            Err(Refusal::Version(9))
        );
        assert_eq!(
            Key::parse(&Key::new([9; 32]).to_text()),
            Some(Key::new([9; 32]))
        );
        assert_eq!(Key::parse("abc"), None);
    }
}
