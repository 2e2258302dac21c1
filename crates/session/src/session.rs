//! A session: the keys of both directions, and sealed frames.
//!
//! A frame's number is its nonce. The application never repeats a number in one session, and a session ends long before 2^32
//! frames.

use chappe_core::Instant;
use snow::HandshakeState;

use crate::cipher::{Cipher, TAG};
use crate::message::{FRAME, HEAD, OVERHEAD, Reason, SAID_MAX};
use crate::replay::Replay;

const NUMBER: usize = 4;

/// What an application said in a handshake: authentic and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    octets: [u8; SAID_MAX],
    len: usize,
}

impl Said {
    /// Keeps up to [`SAID_MAX`] octets; `None` if there are more.
    pub fn new(octets: &[u8]) -> Option<Said> {
        let mut kept = [0; SAID_MAX];
        kept.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(Said {
            octets: kept,
            len: octets.len(),
        })
    }

    /// The octets that the application said.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

/// The state of a session.
pub(crate) struct Session {
    /// The indices by which the peer addresses this host, and this host the peer.
    pub mine: u32,
    pub theirs: u32,
    /// Whether this host called.
    pub called: bool,
    /// When the handshake ended.
    pub since: Instant,
    /// What the peer said in the handshake.
    pub said: Said,
    /// Number of frames sealed so far.
    pub sealed: u32,
    seals: Cipher,
    opens: Cipher,
    replay: Replay,
}

impl Session {
    /// The session of a finished handshake.
    pub fn new(
        now: Instant,
        state: &mut HandshakeState,
        (mine, theirs): (u32, u32),
        said: Said,
    ) -> Session {
        let called = state.is_initiator();
        let (first, second) = state.dangerously_get_raw_split();
        let [seals, opens] = match called {
            true => [first, second],
            false => [second, first],
        };
        Session {
            mine,
            theirs,
            called,
            since: now,
            said,
            sealed: 0,
            seals: Cipher::new(&seals),
            opens: Cipher::new(&opens),
            replay: Replay::default(),
        }
    }

    /// Seals the frame of `len` octets that stands behind the first [`HEAD`] octets and begins with its number. Returns the
    /// datagram's length.
    pub fn seal(&mut self, octets: &mut [u8], len: usize) -> Option<usize> {
        let whole = octets.get_mut(..OVERHEAD + len)?;
        let [_, a, b, c] = self.theirs.to_be_bytes();
        whole[..HEAD].copy_from_slice(&[FRAME, a, b, c]);
        let (clear, rest) = whole.split_at_mut(HEAD + NUMBER);
        let (sealed, tag_place) = rest.split_at_mut(len.checked_sub(NUMBER)?);
        let tag = self.seals.seal(nonce(clear), clear, sealed)?;
        tag_place.copy_from_slice(&tag);
        self.sealed = self.sealed.saturating_add(1);
        Some(OVERHEAD + len)
    }

    /// Opens a datagram in place; nothing is left of a forged one. Returns the length of the frame, which stands behind the first [`HEAD`] octets.
    pub fn open(&mut self, octets: &mut [u8]) -> Result<usize, Reason> {
        if octets.len() < OVERHEAD + NUMBER {
            return Err(Reason::Forged);
        }
        let (clear, rest) = octets.split_at_mut(HEAD + NUMBER);
        let number = clear
            .last_chunk()
            .map_or(0, |last| u32::from_be_bytes(*last));
        // Checked first, since a replay then costs no decryption; noted only after the frame has proved authentic.
        if self.replay.has(number) {
            return Err(Reason::Repeated);
        }
        let (sealed, tag) = rest.split_at_mut(rest.len() - TAG);
        let opened = self.opens.open(nonce(clear), clear, sealed, tag);
        opened.ok_or(Reason::Forged)?;
        self.replay.note(number);
        Ok(octets.len() - OVERHEAD)
    }
}

fn nonce(clear: &[u8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    if let Some(number) = clear.last_chunk::<NUMBER>() {
        nonce[8..].copy_from_slice(number);
    }
    nonce
}
