//! Frame security: CCM\* with AES-128 (IEEE 802.15.4-2015, 9.3 and annex B).
//!
//! The whole network shares one key and one level. Levels without an integrity code are not offered: with encryption
//! alone an attacker can flip bits. A frame's counter must be larger than the sender's last one, and is checked only
//! after the integrity code, so that a forged frame changes nothing.
//!
//! The nonce is the sender's EUI-64, its counter and the level (9.3.3.1). **A counter must never repeat under one
//! key**, not even after a power failure: whenever [`Security::to_store`] rises, store it before the next frame is
//! sent, and restart from the stored value.

use core::fmt;

use aes::Aes128;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U4, U8, U13, U16};
use ccm::{Ccm, Nonce, Tag};
use chappe_core::Address;
use chappe_wire::dot15d4::{self, Frame, Header, KeyId, Node};

/// Neighbours whose counters are remembered. Frames of further neighbours are dropped, since a replay of theirs could
/// not be detected.
const NEIGHBOURS: usize = 32;

/// The security level: what is protected, and the octets of integrity code (table 9-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Level 1: integrity, 4 octets.
    Mic32 = 1,
    /// Level 2: integrity, 8 octets.
    Mic64 = 2,
    /// Level 3: integrity, 16 octets.
    Mic128 = 3,
    /// Level 5: encryption and integrity, 4 octets.
    EncMic32 = 5,
    /// Level 6: encryption and integrity, 8 octets.
    EncMic64 = 6,
    /// Level 7: encryption and integrity, 16 octets.
    EncMic128 = 7,
}

/// The network's key and its counters.
#[derive(Clone)]
pub struct Security {
    cipher: Cipher,
    level: Level,
    key_index: u8,
    counter: u32,
    seen: [Option<(Address, u32)>; NEIGHBOURS],
}

#[derive(Clone)]
enum Cipher {
    Four(Ccm<Aes128, U4, U13>),
    Eight(Ccm<Aes128, U8, U13>),
    Sixteen(Ccm<Aes128, U16, U13>),
}

/// Octets of the auxiliary header with a key index: control, counter, index.
const AUXILIARY: usize = 6;

impl Security {
    /// Takes the network's key and the first counter that was not used with it.
    pub fn new(key: [u8; 16], key_index: u8, level: Level, counter: u32) -> Security {
        let key = key.into();
        let cipher = match level {
            Level::Mic32 | Level::EncMic32 => Cipher::Four(Ccm::new(&key)),
            Level::Mic64 | Level::EncMic64 => Cipher::Eight(Ccm::new(&key)),
            Level::Mic128 | Level::EncMic128 => Cipher::Sixteen(Ccm::new(&key)),
        };
        Security {
            cipher,
            level,
            key_index,
            counter,
            seen: [None; NEIGHBOURS],
        }
    }

    /// The frame counter of the next frame.
    pub fn counter(&self) -> u32 {
        self.counter
    }

    /// The counter that must be in non-volatile memory before the next frame is sent, so that a restart from it repeats
    /// none. It rises by `block` every `block` frames. Zero counts as one.
    pub const fn to_store(&self, block: u32) -> u32 {
        let block = if block == 0 { 1 } else { block };
        (self.counter / block)
            .saturating_add(1)
            .saturating_mul(block)
    }

    /// Octets that security adds to a frame.
    pub const fn overhead(&self) -> usize {
        AUXILIARY + self.level.mic_len()
    }

    /// Writes a protected frame to `psdu` and returns its length. `None` if it does not fit, or if the counters of
    /// this key are used up.
    pub(super) fn protect(
        &mut self,
        header: Header,
        from: Address,
        payload: &[u8],
        psdu: &mut [u8],
    ) -> Option<usize> {
        // 9.2.2: 0xffffffff is never used.
        if self.counter == u32::MAX {
            return None;
        }
        let header = Header {
            security: Some(dot15d4::Security {
                level: self.level as u8,
                frame_counter: self.counter,
                key: KeyId::Index(self.key_index),
            }),
            ..header
        };
        let at = header.emit(psdu).ok()?;
        let end = at + payload.len();
        psdu.get_mut(at..end)?.copy_from_slice(payload);
        let split = if self.level.encrypts() { at } else { end };
        let len = end + self.level.mic_len();
        let (open, rest) = psdu.get_mut(..len)?.split_at_mut_checked(split)?;
        let (secret, mic) = rest.split_at_mut_checked(end - split)?;
        let nonce = nonce(from, self.counter, self.level as u8);
        self.cipher.seal(&nonce, open, secret, mic)?;
        self.counter += 1;
        Some(len)
    }

    /// Checks a frame and returns its payload, deciphered into `clear`. `None` if it is not authentic, not of this
    /// key and level, or not newer than the sender's last.
    pub(super) fn open<'c>(
        &mut self,
        frame: &Frame<'_>,
        from: Address,
        clear: &'c mut [u8],
    ) -> Option<&'c [u8]> {
        let security = frame.header().security?;
        if security.level != self.level as u8 || security.key != KeyId::Index(self.key_index) {
            return None;
        }
        let (header, payload) = (frame.header_octets(), frame.payload());
        let end = header.len() + payload.len();
        let clear = clear.get_mut(..end)?;
        let (head, body) = clear.split_at_mut_checked(header.len())?;
        head.copy_from_slice(header);
        body.copy_from_slice(payload);
        let mic_at = end.checked_sub(self.level.mic_len())?;
        if mic_at < header.len() {
            return None;
        }
        let split = match self.level.encrypts() {
            true => header.len(),
            false => mic_at,
        };
        let (open, rest) = clear.split_at_mut_checked(split)?;
        let (secret, mic) = rest.split_at_mut_checked(mic_at - split)?;
        let nonce = nonce(from, security.frame_counter, security.level);
        self.cipher.unseal(&nonce, open, secret, mic)?;
        self.advance(from, security.frame_counter)?;
        clear.get(header.len()..mic_at)
    }

    /// Remembers the counter of an authentic frame; `None` if it is not newer.
    fn advance(&mut self, from: Address, counter: u32) -> Option<()> {
        let known = self
            .seen
            .iter_mut()
            .flatten()
            .find(|(neighbour, _)| *neighbour == from);
        if let Some((_, last)) = known {
            if counter <= *last {
                return None;
            }
            *last = counter;
            return Some(());
        }
        let place = self.seen.iter_mut().find(|place| place.is_none())?;
        *place = Some((from, counter));
        Some(())
    }
}

impl Level {
    const fn mic_len(self) -> usize {
        match self {
            Level::Mic32 | Level::EncMic32 => 4,
            Level::Mic64 | Level::EncMic64 => 8,
            Level::Mic128 | Level::EncMic128 => 16,
        }
    }

    const fn encrypts(self) -> bool {
        self as u8 & 4 != 0
    }
}

/// 9.3.3.1: source address, frame counter, security level; big-endian.
fn nonce(from: Address, counter: u32, level: u8) -> [u8; 13] {
    let extended = match Node::extended(from) {
        Node::Extended(value) => value,
        Node::Short(short) => u64::from(short),
    };
    let [a, b, c, d, e, f, g, h] = extended.to_be_bytes();
    let [i, j, k, l] = counter.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, level]
}

impl Cipher {
    fn seal(&self, nonce: &[u8; 13], open: &[u8], secret: &mut [u8], mic: &mut [u8]) -> Option<()> {
        let nonce: &Nonce<U13> = nonce.into();
        let secret = secret.into();
        match self {
            Cipher::Four(c) => {
                mic.copy_from_slice(&c.encrypt_inout_detached(nonce, open, secret).ok()?);
            }
            Cipher::Eight(c) => {
                mic.copy_from_slice(&c.encrypt_inout_detached(nonce, open, secret).ok()?);
            }
            Cipher::Sixteen(c) => {
                mic.copy_from_slice(&c.encrypt_inout_detached(nonce, open, secret).ok()?);
            }
        }
        Some(())
    }

    fn unseal(&self, nonce: &[u8; 13], open: &[u8], secret: &mut [u8], mic: &[u8]) -> Option<()> {
        let nonce: &Nonce<U13> = nonce.into();
        let secret = secret.into();
        match self {
            Cipher::Four(c) => {
                let tag: &Tag<U4> = mic.try_into().ok()?;
                c.decrypt_inout_detached(nonce, open, secret, tag).ok()
            }
            Cipher::Eight(c) => {
                let tag: &Tag<U8> = mic.try_into().ok()?;
                c.decrypt_inout_detached(nonce, open, secret, tag).ok()
            }
            Cipher::Sixteen(c) => {
                let tag: &Tag<U16> = mic.try_into().ok()?;
                c.decrypt_inout_detached(nonce, open, secret, tag).ok()
            }
        }
    }
}

impl fmt::Debug for Security {
    /// Level and counter; the key is never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, counter {}", self.level, self.counter)
    }
}

#[cfg(test)]
mod tests;
