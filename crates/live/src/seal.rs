//! Encryption and authentication of frames: without the group's key a host can neither read nor forge them.
//!
//! Each sender has a separate key, derived from the group's key, its node number and its epoch, a 64-bit number that it
//! draws from the kernel at its start. The nonce is the frame's counter. So no nonce is used twice with one key: within
//! a life the counter only goes up, and another life has another key. (Two lives of one node draw the same epoch once
//! in about 2^32 restarts.)
//!
//! All members share the group's key, so each can send in another's name. Data that must come from one particular
//! member is signed by it, above this layer.

use std::fmt;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Tag};

use crate::frame::{BROADCAST, COUNTER_MAX, EPOCH, Header, Kind, TAG};

/// The BLAKE3 context: keys derived from the group's key for other purposes differ.
const CONTEXT: &str = "chappe live 2026-11 frame key of a sender and epoch";

/// The secret key of a group. Every host that has it is a member.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey([u8; 32]);

impl GroupKey {
    /// A key of 32 secret random octets.
    pub fn new(octets: [u8; 32]) -> GroupKey {
        GroupKey(octets)
    }

    /// Derives the cipher of one sender in one life.
    fn of(&self, from: u16, epoch: u64) -> ChaCha20Poly1305 {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.0);
        hasher.update(&from.to_be_bytes());
        hasher.update(&epoch.to_be_bytes());
        ChaCha20Poly1305::new(hasher.finalize().as_bytes().into())
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(..)")
    }
}

/// Opens the frames of one sender in one life.
pub struct Opener {
    epoch: u64,
    cipher: ChaCha20Poly1305,
}

impl Opener {
    /// An opener for the frames of node `from` in its life `epoch`.
    pub fn new(key: &GroupKey, from: u16, epoch: u64) -> Opener {
        let cipher = key.of(from, epoch);
        Opener { epoch, cipher }
    }

    /// The epoch of the sender's life.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Decrypts `frame` in place and returns the sealed octets; `None` if the frame is not authentic or cut short.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let frame = frame.get_mut(..header.frame_len())?;
        let (clear, rest) = frame.split_at_mut_checked(header.kind.clear())?;
        let (sealed, tag) = rest.split_at_mut_checked(usize::from(header.length))?;
        let tag = Tag::try_from(&*tag).ok()?;
        let nonce = nonce(header.kind, header.counter);
        let opened =
            self.cipher
                .decrypt_inout_detached(&nonce.into(), clear, (&mut *sealed).into(), &tag);
        opened.ok().map(|()| &*sealed)
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opener({:016x})", self.epoch)
    }
}

/// Seals the frames of this node in this life.
pub struct Sealer {
    from: u16,
    epoch: u64,
    cipher: ChaCha20Poly1305,
    broadcasts: u64,
    confirmations: u64,
    pressed: bool,
}

impl Sealer {
    /// A sealer for node `from` in a life that begins now. `epoch` must be drawn anew: with an old one, nonces repeat.
    pub fn new(key: &GroupKey, from: u16, epoch: u64) -> Sealer {
        Sealer {
            from,
            epoch,
            cipher: key.of(from, epoch),
            broadcasts: 0,
            confirmations: 0,
            pressed: false,
        }
    }

    /// The random number of this life.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Sets whether later frames carry the mark of a receive queue that stands.
    pub fn press(&mut self, pressed: bool) {
        self.pressed = pressed;
    }

    /// Seals the `length` octets that stand in `frame` behind the room for the header of `kind`. Returns the length of the
    /// whole frame; `None` if it does not fit or all counters are used up.
    pub fn seal(&mut self, kind: Kind, length: usize, frame: &mut [u8]) -> Option<usize> {
        let counter = match kind {
            Kind::Broadcast | Kind::Hello => &mut self.broadcasts,
            Kind::Confirmation => &mut self.confirmations,
            Kind::Unicast => return None,
        };
        *counter += 1;
        let counter = *counter;
        self.seal_as(kind, BROADCAST, counter, length, frame)
    }

    /// Like [`seal`](Self::seal), for a confirmation to node `to`.
    pub fn seal_confirmation(&mut self, to: u16, length: usize, frame: &mut [u8]) -> Option<usize> {
        self.confirmations += 1;
        self.seal_as(Kind::Confirmation, to, self.confirmations, length, frame)
    }

    /// Like [`seal`](Self::seal), for a unicast to node `to`. The pair of number and attempt is the nonce: the caller must
    /// never pass the same pair twice.
    pub fn seal_unicast(
        &self,
        to: u16,
        (number, attempt): (u32, u8),
        length: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        let counter = u64::from(number) << 8 | u64::from(attempt);
        self.seal_as(Kind::Unicast, to, counter, length, frame)
    }

    fn seal_as(
        &self,
        kind: Kind,
        to: u16,
        counter: u64,
        length: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        if counter > COUNTER_MAX {
            return None;
        }
        let header = Header {
            pressed: self.pressed,
            kind,
            from: self.from,
            to,
            epoch: self.epoch as u16,
            counter,
            length: length.try_into().ok()?,
        };
        let frame = frame.get_mut(..header.frame_len())?;
        header.emit(frame);
        let (clear, rest) = frame.split_at_mut_checked(kind.clear())?;
        if kind == Kind::Hello {
            let place = clear.len() - EPOCH;
            clear[place..].copy_from_slice(&self.epoch.to_be_bytes());
        }
        let (sealed, tag_place) = rest.split_at_mut_checked(length)?;
        let nonce = nonce(kind, counter);
        let tag = self
            .cipher
            .encrypt_inout_detached(&nonce.into(), clear, sealed.into())
            .ok()?;
        tag_place[..TAG].copy_from_slice(&tag);
        Some(header.frame_len())
    }
}

fn nonce(kind: Kind, counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[0] = kind.space();
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

/// The epoch in a hello, not yet authenticated; `None` if the frame is too short.
pub fn hello_epoch(frame: &[u8]) -> Option<u64> {
    let clear = frame.get(..Kind::Hello.clear())?;
    clear.last_chunk().map(|epoch| u64::from_be_bytes(*epoch))
}

/// Counters that the window remembers. Frames that overtake each other are a few counters apart.
pub const WINDOW: u64 = 1024;

/// The replay window: which counters have been seen (RFC 4303, appendix A2, for a longer window).
#[derive(Clone, Debug)]
pub struct Window {
    /// The largest counter seen; 0 before the first.
    newest: u64,
    /// Bit `counter % WINDOW` of the newest `WINDOW` counters.
    seen: [u64; (WINDOW / 64) as usize],
}

/// What a [`Window`] knows about a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It has not been seen before.
    New,
    /// It has been seen: a duplicate or a replay.
    Seen,
    /// It is older than the window, so whether it was seen is unknown.
    Forgotten,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            newest: 0,
            seen: [0; (WINDOW / 64) as usize],
        }
    }
}

impl Window {
    /// The largest counter seen; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Notes `counter`. Call it only after a frame has opened: a forged counter would shut out all genuine ones.
    pub fn note(&mut self, counter: u64) -> Novelty {
        let place = |counter: u64| ((counter % WINDOW / 64) as usize, 1u64 << (counter % 64));
        if counter > self.newest {
            let ahead = counter - self.newest;
            // The bits of skipped counters still hold what was seen one window ago.
            if ahead >= WINDOW {
                self.seen = [0; (WINDOW / 64) as usize];
            } else {
                for skipped in self.newest + 1..=counter {
                    let (word, bit) = place(skipped);
                    self.seen[word] &= !bit;
                }
            }
            self.newest = counter;
        } else if self.newest - counter >= WINDOW {
            return Novelty::Forgotten;
        }
        let (word, bit) = place(counter);
        if self.seen[word] & bit != 0 {
            return Novelty::Seen;
        }
        self.seen[word] |= bit;
        Novelty::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn sealed(epoch: u64) -> ([u8; 64], usize) {
        let mut sealer = Sealer::new(&GroupKey::new([7; 32]), 3, epoch);
        let mut frame = [0; 64];
        frame[14..19].copy_from_slice(b"hello");
        let len = sealer.seal(Kind::Broadcast, 5, &mut frame).unwrap();
        (frame, len)
    }

    #[test]
    fn only_the_sealing_key_opens_a_frame() {
        let (frame, len) = sealed(9);
        assert_eq!(len, 14 + 5 + 16);
        assert_ne!(frame[14..19], *b"hello");
        let header = Header::parse(&frame).unwrap();
        let open = |key: [u8; 32], from, epoch| {
            let opener = Opener::new(&GroupKey::new(key), from, epoch);
            opener.open(&header, &mut frame.clone()).map(<[u8]>::to_vec)
        };
        assert_eq!(open([7; 32], 3, 9), Some(b"hello".to_vec()));
        assert_eq!(open([6; 32], 3, 9), None);
        assert_eq!(open([7; 32], 4, 9), None);
        assert_eq!(open([7; 32], 3, 8), None);
    }

    /// A new life has a new key: the same counter and plaintext give another ciphertext.
    #[test]
    fn a_restart_reuses_no_nonce() {
        let ((first, len), (second, _)) = (sealed(1), sealed(2));
        assert_ne!(first[14..len], second[14..len]);
    }

    /// Every bit of a frame is authenticated.
    #[test]
    fn a_flipped_bit_is_rejected() {
        let (frame, len) = sealed(9);
        let opener = Opener::new(&GroupKey::new([7; 32]), 3, 9);
        for bit in 0..len * 8 {
            let mut bent = frame;
            bent[bit / 8] ^= 1 << (bit % 8);
            let opened = Header::parse(&bent)
                .is_some_and(|header| opener.open(&header, &mut bent).is_some());
            assert!(!opened, "bit {bit}");
        }
    }

    #[test]
    fn a_hello_carries_its_epoch() {
        let mut sealer = Sealer::new(&GroupKey::new([7; 32]), 3, 0x0102_0304_0506_0708);
        let mut frame = [1; 80];
        sealer.seal(Kind::Hello, 10, &mut frame).unwrap();
        assert_eq!(hello_epoch(&frame), Some(0x0102_0304_0506_0708));
        let header = Header::parse(&frame).unwrap();
        let opener = Opener::new(&GroupKey::new([7; 32]), 3, 0x0102_0304_0506_0708);
        assert_eq!(opener.open(&header, &mut frame), Some(&[1; 10][..]));
    }

    /// The window agrees with a list of everything seen.
    #[test]
    fn the_replay_window_agrees_with_a_list() {
        let mut random = Seed(4).stream(Purpose::Trial(0));
        let (mut window, mut seen, mut newest) = (Window::default(), Vec::new(), 0);
        for _ in 0..20_000 {
            let counter = match random.chance(0.5) {
                true => newest + 1 + random.below(3),
                false => newest.saturating_sub(random.below(1100)).max(1),
            };
            let expected = match seen.contains(&counter) {
                _ if newest >= WINDOW + counter => Novelty::Forgotten,
                true => Novelty::Seen,
                false => Novelty::New,
            };
            assert_eq!(window.note(counter), expected, "{counter} after {newest}");
            newest = newest.max(counter);
            seen.push(counter);
            seen.retain(|&seen| seen + 2 * WINDOW > newest);
        }
        assert!(newest > 10_000);
        assert_eq!(window.note(newest + 5000), Novelty::New);
        assert_eq!(window.note(newest), Novelty::Forgotten);
    }
}
