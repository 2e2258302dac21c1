//! Encryption and authentication of frames.
//!
//! A frame for one neighbour is sealed by the keys of a session with it ([`Pair`]), so no other node can read or forge it. A
//! broadcast is sealed by the sender's key, random octets that the sender hands to its neighbours under those sessions and
//! renews from time to time ([`Sealer::renew`]). All neighbours of a sender have that key, so one of them could forge a broadcast to
//! another. What must come from one particular node carries a proof for each neighbour (hellos), or is signed above this layer. A
//! forged counter moves the [`Window`] only until the next hello, which proves its own.
//!
//! The nonce is the frame's counter. No nonce is used twice with one key: within a life counters only go up, and another life has
//! other keys. A copy of the running process has both; see [`copy`](crate::copy).

use subtle::ConstantTimeEq;

use crate::frame::{ALL, COUNTER_MAX, HEADER, Header, Kind, STAMP, TAG};
use crate::membership::GroupKey;

/// The BLAKE3 contexts of what is derived from the keys of a session.
const FRAMES: &str = "chappe live 2026-11 frames of a session";
const PROOFS: &str = "chappe live 2026-11 proofs of a session";

/// A cipher of frames.
#[derive(Debug)]
pub struct Cipher(chappe_session::Cipher);

impl Cipher {
    /// The cipher of a key.
    pub fn new(key: &[u8; 32]) -> Cipher {
        Cipher(chappe_session::Cipher::new(key))
    }

    /// Decrypts `frame` in place and returns the sealed octets; `None` if the frame is not authentic or cut short. Then they are
    /// lost: to try several keys, copy the frame.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let frame = frame.get_mut(..header.frame_len())?;
        let (clear, rest) = frame.split_at_mut_checked(header.kind.clear())?;
        let (sealed, trailer) = rest.split_at_mut_checked(usize::from(header.length))?;
        let nonce = nonce(header.kind, header.counter);
        let tag = trailer.get(..TAG)?;
        self.0.open(nonce, clear, sealed, tag).map(|()| &*sealed)
    }

    /// Seals the octets behind the header that stands in `frame`; `None` if they do not fit.
    fn seal(&self, header: &Header, frame: &mut [u8]) -> Option<()> {
        let (clear, rest) = frame.split_at_mut_checked(header.kind.clear())?;
        let (sealed, trailer) = rest.split_at_mut_checked(usize::from(header.length))?;
        let nonce = nonce(header.kind, header.counter);
        let tag = self.0.seal(nonce, clear, sealed)?;
        trailer.get_mut(..TAG)?.copy_from_slice(&tag);
        Some(())
    }
}

/// The keys of a session with one neighbour, one for each direction.
#[derive(Debug)]
pub struct Pair {
    ours: Cipher,
    theirs: Cipher,
    our_proofs: [u8; 32],
    their_proofs: [u8; 32],
}

impl Pair {
    /// The session whose handshake gave the key `ours` for frames that this node sends, and `theirs` for those it gets.
    pub fn new(ours: &[u8; 32], theirs: &[u8; 32]) -> Pair {
        let cipher = |key: &[u8; 32]| Cipher::new(&blake3::derive_key(FRAMES, key));
        Pair {
            ours: cipher(ours),
            theirs: cipher(theirs),
            our_proofs: blake3::derive_key(PROOFS, ours),
            their_proofs: blake3::derive_key(PROOFS, theirs),
        }
    }

    /// Opens a frame that the neighbour sealed for this node.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        self.theirs.open(header, frame)
    }

    /// The proof that this node has put `heard` into its hello with this counter.
    pub fn prove(&self, epoch: u64, counter: u64, heard: u8) -> [u8; 8] {
        proof(&self.our_proofs, epoch, counter, heard)
    }

    /// Whether `given` is the neighbour's proof.
    pub fn has_proved(&self, given: [u8; 8], epoch: u64, counter: u64, heard: u8) -> bool {
        let expected = proof(&self.their_proofs, epoch, counter, heard);
        expected.ct_eq(&given).into()
    }
}

fn proof(key: &[u8; 32], epoch: u64, counter: u64, heard: u8) -> [u8; 8] {
    let said = [&epoch.to_be_bytes()[..], &counter.to_be_bytes(), &[heard]].concat();
    let mut proof = [0; 8];
    proof.copy_from_slice(&blake3::keyed_hash(key, &said).as_bytes()[..8]);
    proof
}

/// Seals the frames of this node in this life.
pub struct Sealer {
    from: u16,
    epoch: u64,
    serial: u32,
    key: GroupKey,
    /// The generation of the key of broadcasts, the key, and its cipher.
    current: (u8, [u8; 32], Cipher),
    /// The next key, which neighbours get before it is used.
    next: Option<(u8, [u8; 32], Cipher)>,
    broadcasts: u64,
    confirmations: u64,
    others: u64,
    pressed: bool,
}

impl Sealer {
    /// A sealer for node `from` in a life that begins now. `epoch` and `first`, the first key of its broadcasts, must be drawn
    /// anew: with old ones, nonces repeat.
    pub fn new((key, serial): (&GroupKey, u32), from: u16, epoch: u64, first: [u8; 32]) -> Sealer {
        Sealer {
            from,
            epoch,
            serial,
            key: key.clone(),
            current: (0, first, Cipher::new(&first)),
            next: None,
            broadcasts: 0,
            confirmations: 0,
            others: 0,
            pressed: false,
        }
    }

    /// The random number of this life.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Begins another life: other keys, and no frame of the former one is sealed again. Counters go on, since what counts losses by them
    /// does.
    pub fn begin_anew(&mut self, epoch: u64, first: [u8; 32]) {
        self.epoch = epoch;
        (self.current, self.next) = ((0, first, Cipher::new(&first)), None);
    }

    /// The sealed octets of a frame in this node's name, if its present key of broadcasts opens it.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let fits = header.generation() == self.current.0;
        self.current.2.open(header, frame).filter(|_| fits)
    }

    /// Takes over a newer list of members. Broadcasts from now on are sealed by `first`, which those who left the list do not get.
    pub fn join(&mut self, (key, serial): (&GroupKey, u32), first: [u8; 32]) {
        (self.key, self.serial) = (key.clone(), serial);
        self.renew(first);
        self.switch();
    }

    /// Makes the next key of broadcasts, `fresh` random octets.
    pub fn renew(&mut self, fresh: [u8; 32]) {
        let newest = self.next.as_ref().unwrap_or(&self.current).0;
        self.next = Some((newest.wrapping_add(1), fresh, Cipher::new(&fresh)));
    }

    /// Seals by the next key from now on, and forgets the present one.
    pub fn switch(&mut self) {
        if let Some(next) = self.next.take() {
            self.current = next;
        }
    }

    /// Whether there is a key that is not used yet.
    pub fn is_renewing(&self) -> bool {
        self.next.is_some()
    }

    /// The newest key of broadcasts with its generation, which neighbours must get.
    pub fn newest(&self) -> (u8, &[u8; 32]) {
        let (generation, key, _) = self.next.as_ref().unwrap_or(&self.current);
        (*generation, key)
    }

    /// The counter of the next broadcast or hello.
    pub fn next_broadcast(&self) -> u64 {
        self.broadcasts + 1
    }

    /// Goes on with a later counter, as one who forges broadcasts may.
    #[cfg(test)]
    pub fn skip_to(&mut self, counter: u64) {
        self.broadcasts = counter;
    }

    /// Sets whether later frames carry the mark of a receive queue that stands.
    pub fn press(&mut self, pressed: bool) {
        self.pressed = pressed;
    }

    /// Seals the `length` octets that stand in `frame` behind the room for the header of a broadcast or hello. Returns the length
    /// of the whole frame; `None` if it does not fit or all counters are used up.
    pub fn seal(&mut self, kind: Kind, length: usize, frame: &mut [u8]) -> Option<usize> {
        self.broadcasts += 1;
        let to = ALL | u16::from(self.current.0);
        let header = self.head(kind, to, self.broadcasts, length, frame)?;
        self.current.2.seal(&header, frame)?;
        if kind == Kind::Hello {
            self.stamp(&header, frame)?;
        }
        Some(header.frame_len())
    }

    /// Like [`seal`](Self::seal), for a confirmation to node `to`.
    pub fn seal_confirmation(
        &mut self,
        to: (u16, &Pair),
        length: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        self.confirmations += 1;
        self.seal_for(Kind::Confirmation, to, self.confirmations, length, frame)
    }

    /// Like [`seal`](Self::seal), for a key to node `to`.
    pub fn seal_key(&mut self, to: (u16, &Pair), length: usize, frame: &mut [u8]) -> Option<usize> {
        self.others += 1;
        self.seal_for(Kind::Key, to, self.others, length, frame)
    }

    /// Like [`seal`](Self::seal), for a unicast to node `to`. The pair of number and attempt is the nonce: the caller must
    /// never pass the same pair twice.
    pub fn seal_unicast(
        &self,
        to: (u16, &Pair),
        (number, attempt): (u32, u8),
        length: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        let counter = u64::from(number) << 8 | u64::from(attempt);
        self.seal_for(Kind::Unicast, to, counter, length, frame)
    }

    /// Stamps a message of a handshake to node `to`, which stands in `frame` behind the room for the header.
    pub fn stamp_handshake(&mut self, to: u16, length: usize, frame: &mut [u8]) -> Option<usize> {
        self.others += 1;
        let header = self.head(Kind::Handshake, to, self.others, length, frame)?;
        self.stamp(&header, frame)?;
        Some(header.frame_len())
    }

    /// Finishes a notice, which stands in `frame` behind the room for the header.
    pub fn finish_notice(&mut self, length: usize, frame: &mut [u8]) -> Option<usize> {
        self.others += 1;
        let header = self.head(Kind::Notice, u16::MAX, self.others, length, frame)?;
        let (octets, digest) = frame
            .get_mut(..header.frame_len())?
            .split_last_chunk_mut::<TAG>()?;
        digest.copy_from_slice(&blake3::hash(octets).as_bytes()[..TAG]);
        Some(header.frame_len())
    }

    fn seal_for(
        &self,
        kind: Kind,
        (to, pair): (u16, &Pair),
        counter: u64,
        length: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        let header = self.head(kind, to, counter, length, frame)?;
        pair.ours.seal(&header, frame)?;
        Some(header.frame_len())
    }

    /// Writes the header at the front of `frame`; `None` if there is no room, or the counter is used up.
    fn head(
        &self,
        kind: Kind,
        to: u16,
        counter: u64,
        length: usize,
        frame: &mut [u8],
    ) -> Option<Header> {
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
        if kind.clear() > HEADER {
            let place = frame.get_mut(HEADER..kind.clear())?;
            place[..8].copy_from_slice(&self.epoch.to_be_bytes());
            place[8..].copy_from_slice(&self.serial.to_be_bytes());
        }
        Some(header)
    }

    fn stamp(&self, header: &Header, frame: &mut [u8]) -> Option<()> {
        let frame = frame.get_mut(..header.frame_len())?;
        let (octets, place) = frame.split_last_chunk_mut::<STAMP>()?;
        *place = self.key.stamp(octets);
        Some(())
    }
}

fn nonce(kind: Kind, counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[0] = kind.space();
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

/// Whether the digest of a notice is right: it protects from damage, not from forgery.
pub fn is_undamaged(frame: &[u8]) -> bool {
    let split = frame.split_last_chunk::<TAG>();
    split.is_some_and(|(octets, digest)| blake3::hash(octets).as_bytes()[..TAG] == digest[..])
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

    /// Goes back to `counter`, which the sender has proved to be its latest, if frames of others in its name have moved the window
    /// past all that it can have sent. Returns whether it did. Older counters then count as seen.
    pub fn rewind(&mut self, counter: u64) -> bool {
        let is_past = self.newest >= counter.saturating_add(WINDOW);
        if is_past {
            self.newest = counter;
            self.seen = [u64::MAX; (WINDOW / 64) as usize];
        }
        is_past
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

    fn sealer(epoch: u64) -> Sealer {
        Sealer::new((&GroupKey::new([7; 32]), 1), 3, epoch, [epoch as u8; 32])
    }

    fn sealed(epoch: u64) -> ([u8; 64], usize) {
        let mut frame = [0; 64];
        frame[14..19].copy_from_slice(b"hello");
        let len = sealer(epoch).seal(Kind::Broadcast, 5, &mut frame).unwrap();
        (frame, len)
    }

    #[test]
    fn only_the_senders_key_opens_a_broadcast() {
        let (frame, len) = sealed(9);
        assert_eq!(len, 14 + 5 + 16);
        assert_ne!(frame[14..19], *b"hello");
        let header = Header::parse(&frame).unwrap();
        let open = |key| {
            Cipher::new(&[key; 32])
                .open(&header, &mut frame.clone())
                .map(<[u8]>::to_vec)
        };
        assert_eq!((open(9), open(8)), (Some(b"hello".to_vec()), None));
    }

    /// A new life has a new key: the same counter and plaintext give another ciphertext.
    #[test]
    fn a_restart_reuses_no_nonce() {
        let ((first, len), (second, _)) = (sealed(1), sealed(2));
        assert_ne!(first[14..len], second[14..len]);
    }

    /// Goal: a frame for one neighbour opens there and nowhere else, in one direction. Method: two sessions.
    #[test]
    fn a_session_opens_only_frames_of_the_other_end() {
        let (a, b) = (Pair::new(&[1; 32], &[2; 32]), Pair::new(&[2; 32], &[1; 32]));
        let stranger = Pair::new(&[3; 32], &[4; 32]);
        let mut frame = [0; 64];
        frame[14..19].copy_from_slice(b"hello");
        sealer(9)
            .seal_unicast((2, &a), (5, 1), 5, &mut frame)
            .unwrap();
        let header = Header::parse(&frame).unwrap();
        let open = |pair: &Pair| pair.open(&header, &mut frame.clone()).map(<[u8]>::to_vec);
        assert_eq!(
            (open(&b), open(&a), open(&stranger)),
            (Some(b"hello".to_vec()), None, None)
        );
        let proof = a.prove(9, 4, 200);
        assert!(b.has_proved(proof, 9, 4, 200) && !a.has_proved(proof, 9, 4, 200));
        for (epoch, counter, heard) in [(8, 4, 200), (9, 5, 200), (9, 4, 201)] {
            assert!(!b.has_proved(proof, epoch, counter, heard));
        }
    }

    /// Every bit of a frame is authenticated.
    #[test]
    fn a_flipped_bit_is_rejected() {
        let (frame, len) = sealed(9);
        for bit in 0..len * 8 {
            let mut bent = frame;
            bent[bit / 8] ^= 1 << (bit % 8);
            let opened = Header::parse(&bent).is_some_and(|header| {
                // The generation says which key it is; here there is one.
                header.to == ALL && Cipher::new(&[9; 32]).open(&header, &mut bent).is_some()
            });
            assert!(!opened, "bit {bit}");
        }
        let mut hello = [1; 100];
        let len = sealer(9).seal(Kind::Hello, 10, &mut hello).unwrap();
        let key = GroupKey::new([7; 32]);
        assert!(key.has_stamped(&hello[..len]));
        for bit in 0..len * 8 {
            let mut bent = hello;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.has_stamped(&bent[..len]), "bit {bit}");
        }
    }

    #[test]
    fn a_renewed_key_is_used_after_the_switch() {
        let mut sealer = sealer(9);
        sealer.renew([5; 32]);
        assert_eq!(sealer.newest(), (1, &[5; 32]));
        let generation = |sealer: &mut Sealer| {
            let mut frame = [0; 64];
            sealer.seal(Kind::Broadcast, 5, &mut frame).unwrap();
            Header::parse(&frame).unwrap().generation()
        };
        assert_eq!(generation(&mut sealer), 0);
        sealer.switch();
        assert_eq!((generation(&mut sealer), sealer.is_renewing()), (1, false));
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
