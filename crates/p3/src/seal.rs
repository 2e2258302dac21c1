//! Authentication: AES-128 in CCM with a tag of four octets (level ENC-MIC-32 of IEEE 802.15.4-2006, annex B; NIST SP
//! 800-38C).
//!
//! Relays of a group must send the same bits, so no hop seals a frame again: source and destination seal their frames,
//! and the tag does not cover the field that relays write (hop). That of a plan has a part of its own for the slot of its flood, which
//! each hop makes anew (`flood.rs`). The payload of DATA and CODED
//! frames is encrypted, other frames are not. The network has one key, which excludes strangers, not captured nodes.
//!
//! The tag of a CTRL covers its header and fields and not the padding behind them, which no node reads: relays check it within a
//! turnaround, by four blocks of AES instead of ten.
//!
//! | frame | who checks it | before |
//! |---|---|---|
//! | PLAN | every node | repeating it |
//! | CTRL, NACK | every node of the transfer | repeating it |
//! | TALLY | every node of the plan | using it |
//! | DATA, CODED | the destination | using it |
//!
//! Relays do not check DATA: software AES is slower than a turnaround. A forged DATA frame costs a slot, as a jammed one
//! would. Where plans ask for it, DATA and CODED frames carry no tag, and the CTRL carries those of blocks of packets
//! (`blocks.rs`, which says what forgers gain).
//!
//! No frame carries its nonce; both ends know it:
//!
//! | octets | field |
//! |---|---|
//! | 2 | destination |
//! | 4 | session: the gateway never uses one twice, and nodes refuse a plan whose session is not a new one |
//! | 1 | kind of frame |
//! | 3 | packet; CODED: first of its segment; CTRL: end; NACK: base, and the group left out whose question came |
//! | 1 | round; TALLY: turn |
//! | 2 | PLAN: 0, for the tag of its slot one more than that; CODED: its number; CTRL: flags and copies to come, and the top bit for the tag of its tags; NACK: missing, who repeats it |

use core::fmt;

use ccm::Ccm;
use ccm::aead::AeadInOut;
use ccm::consts::{U4, U13};

use crate::cipher::{Aes, Cipher};
use crate::header::Kind;
use crate::sizes::{FRAME_MAX, TAG_LEN};

/// A network's key. `Debug` does not print it. Two keys are equal if their octets are.
#[derive(Clone, Copy)]
pub struct Key {
    octets: [u8; 16],
    unit: Option<Aes>,
}

impl Key {
    /// The key with these octets. AES is done in software.
    pub const fn new(octets: [u8; 16]) -> Key {
        Key { octets, unit: None }
    }

    /// The same, with a processor's own AES. A relay without one is late with a CTRL on a processor of 64 MHz.
    pub const fn with_unit(self, unit: Aes) -> Key {
        Key {
            unit: Some(unit),
            ..self
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.octets == other.octets
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Octets of a nonce.
pub(crate) const NONCE_LEN: usize = 13;

/// Which message of which session a frame is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonce {
    pub destination: u16,
    pub session: u32,
    pub kind: Kind,
    pub number: u32,
    pub round: u8,
    pub extra: u16,
}

impl Nonce {
    pub fn octets(&self) -> [u8; NONCE_LEN] {
        let [d0, d1] = self.destination.to_le_bytes();
        let [s0, s1, s2, s3] = self.session.to_le_bytes();
        let [n0, n1, n2, _] = self.number.to_le_bytes();
        let [x0, x1] = self.extra.to_le_bytes();
        let kind = self.kind.code();
        [d0, d1, s0, s1, s2, s3, kind, n0, n1, n2, self.round, x0, x1]
    }
}

/// Seals and opens frames. Without a key it does nothing, and every frame is genuine.
#[derive(Clone, Debug)]
pub(crate) struct Seal(Option<Ccm<Cipher, U4, U13>>);

impl Seal {
    pub fn new(key: Option<&Key>) -> Seal {
        Seal(key.map(|key| Ccm::from(Cipher::new(key.octets, key.unit))))
    }

    /// Octets at the end of each frame.
    pub fn tag_len(&self) -> usize {
        if self.0.is_some() { TAG_LEN } else { 0 }
    }

    /// Writes the tag to the last octets of a frame of which nothing is encrypted. It covers the first `covered` octets.
    pub fn sign(&self, nonce: [u8; NONCE_LEN], covered: usize, frame: &mut [u8]) -> Option<()> {
        let Some(ccm) = &self.0 else { return Some(()) };
        let (message, tag) = frame.split_at_mut_checked(frame.len().checked_sub(TAG_LEN)?)?;
        let mut copy = [0; FRAME_MAX];
        let open = without_hop(message.get(..covered)?, &mut copy)?;
        let nonce = nonce.into();
        let made = ccm.encrypt_inout_detached(&nonce, open, (&mut [][..]).into());
        tag.copy_from_slice(&made.ok()?);
        Some(())
    }

    /// Writes the tag to the last octets of a frame and encrypts what follows its first `open` octets.
    pub fn seal(&self, nonce: &Nonce, open: usize, frame: &mut [u8]) -> Option<()> {
        let Some(ccm) = &self.0 else { return Some(()) };
        let message = frame.len().checked_sub(TAG_LEN)?;
        let (message, tag) = frame.split_at_mut_checked(message)?;
        let (open, secret) = message.split_at_mut_checked(open)?;
        // Associated data, with the hop as zero on both sides.
        let mut copy = [0; FRAME_MAX];
        let open = without_hop(open, &mut copy)?;
        let nonce = nonce.octets().into();
        let made = ccm
            .encrypt_inout_detached(&nonce, open, secret.into())
            .ok()?;
        tag.copy_from_slice(&made);
        Some(())
    }

    /// Checks the tag, and decrypts what follows the first `open` octets.
    pub fn open(&self, nonce: &Nonce, open: usize, frame: &mut [u8]) -> bool {
        self.try_open(nonce, open, frame).is_some()
    }

    fn try_open(&self, nonce: &Nonce, open: usize, frame: &mut [u8]) -> Option<()> {
        let Some(ccm) = &self.0 else { return Some(()) };
        let message = frame.len().checked_sub(TAG_LEN)?;
        let (message, tag) = frame.split_at_mut_checked(message)?;
        let (open, secret) = message.split_at_mut_checked(open)?;
        let mut copy = [0; FRAME_MAX];
        let open = without_hop(open, &mut copy)?;
        let tag: [u8; TAG_LEN] = (&*tag).try_into().ok()?;
        let nonce = nonce.octets().into();
        ccm.decrypt_inout_detached(&nonce, open, secret.into(), &tag.into())
            .ok()
    }

    /// Encrypts or decrypts octets, which is the same, and returns the tag of what they were before. No header is covered.
    ///
    /// Whoever decrypts does not learn whether the octets are genuine: the tag of a packet is in that of its block
    /// (`blocks.rs`), and is that of the *decrypted* octets.
    pub fn mask(&self, nonce: &Nonce, octets: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let Some(ccm) = &self.0 else { return None };
        let nonce = nonce.octets().into();
        let made = ccm.encrypt_inout_detached(&nonce, &[], octets.into());
        Some(made.ok()?.into())
    }

    /// Checks a tag that [`sign`](Self::sign) wrote.
    pub fn verify(&self, nonce: [u8; NONCE_LEN], covered: usize, frame: &[u8]) -> bool {
        self.try_verify(nonce, covered, frame).is_some()
    }

    fn try_verify(&self, nonce: [u8; NONCE_LEN], covered: usize, frame: &[u8]) -> Option<()> {
        let Some(ccm) = &self.0 else { return Some(()) };
        let (message, tag) = frame.split_at_checked(frame.len().checked_sub(TAG_LEN)?)?;
        let mut copy = [0; FRAME_MAX];
        let open = without_hop(message.get(..covered)?, &mut copy)?;
        let tag: [u8; TAG_LEN] = tag.try_into().ok()?;
        let nonce = nonce.into();
        ccm.decrypt_inout_detached(&nonce, open, (&mut [][..]).into(), &tag.into())
            .ok()
    }
}

/// The open octets that the tag covers: all but the hop, which relays write.
fn without_hop<'a>(open: &[u8], copy: &'a mut [u8; FRAME_MAX]) -> Option<&'a [u8]> {
    let copy = copy.get_mut(..open.len())?;
    copy.copy_from_slice(open);
    crate::header::set_hop(copy, 0);
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = Nonce {
        destination: 7,
        session: 9,
        kind: Kind::Data,
        number: 3,
        round: 0,
        extra: 0,
    };

    /// A frame whose payload counts up, sealed.
    fn sealed(seal: &Seal) -> [u8; 40] {
        let mut frame: [u8; 40] = core::array::from_fn(|at| at as u8);
        assert_eq!(seal.seal(&NONCE, 3, &mut frame), Some(()));
        frame
    }

    #[test]
    fn frames_open_whatever_the_hop() {
        let seal = Seal::new(Some(&Key::new([5; 16])));
        let mut frame = sealed(&seal);
        assert_eq!(frame[..3], [0, 1, 2]);
        assert!((3..36).any(|at| frame[usize::from(at)] != at), "not secret");
        crate::header::set_hop(&mut frame, 8);
        assert!(seal.open(&NONCE, 3, &mut frame));
        assert!((3..36).all(|at| frame[usize::from(at)] == at));
    }

    /// Goal: a processor's AES makes the same frames. Method: software behind the hook; the hook is used, in both directions.
    #[test]
    fn a_unit_for_aes_seals_and_opens_like_software() {
        use core::sync::atomic::{AtomicU32, Ordering};
        static BLOCKS: AtomicU32 = AtomicU32::new(0);
        fn unit(key: &[u8; 16], block: &mut [u8; 16]) {
            use aes::cipher::{BlockCipherEncrypt, KeyInit};
            BLOCKS.fetch_add(1, Ordering::Relaxed);
            let mut inner = (*block).into();
            aes::Aes128::new(&(*key).into()).encrypt_block(&mut inner);
            *block = inner.into();
        }
        let key = Key::new([5; 16]);
        let (soft, hard) = (Seal::new(Some(&key)), Seal::new(Some(&key.with_unit(unit))));
        let mut frame = sealed(&hard);
        assert_eq!(frame, sealed(&soft));
        // Nonce, open octets and three blocks of payload authenticated; tag and payload encrypted.
        assert_eq!(BLOCKS.swap(0, Ordering::Relaxed), 1 + 1 + 3 + 1 + 3);
        assert!(hard.open(&NONCE, 3, &mut frame));
        assert!(BLOCKS.load(Ordering::Relaxed) > 0);
    }

    /// Goal: a tag covers what it says, whatever the hop, and nothing else. Method: every bit flipped.
    #[test]
    fn signed_frames_are_covered_as_far_as_asked() {
        let seal = Seal::new(Some(&Key::new([5; 16])));
        let mut good: [u8; 40] = core::array::from_fn(|at| at as u8 | 0x80);
        assert_eq!(seal.sign(NONCE.octets(), 16, &mut good), Some(()));
        assert!(
            good[16..36]
                .iter()
                .zip(16u8..)
                .all(|(&octet, at)| octet == at | 0x80)
        );
        for bit in 0..40 * 8 {
            let mut bent = good;
            bent[bit / 8] ^= 1 << (bit % 8);
            // The hop's octet, and the first bit, which says where the hop is.
            let hop = (16..24).contains(&bit);
            let covered = (bit < 128 && !hop) || bit >= 36 * 8;
            assert_eq!(
                seal.verify(NONCE.octets(), 16, &bent),
                !covered,
                "bit {bit}"
            );
        }
        assert!(!seal.verify(NONCE.octets(), 15, &good) && !seal.verify(NONCE.octets(), 99, &good));
        assert!(!seal.verify(NONCE.octets(), 16, &good[..3]));
        assert_eq!(seal.sign(NONCE.octets(), 37, &mut good), None);
    }

    #[test]
    fn flipped_bits_and_wrong_nonces_are_detected() {
        let seal = Seal::new(Some(&Key::new([5; 16])));
        let good = sealed(&seal);
        for bit in 0..40 * 8 {
            let hop = bit == 2 || bit == 3;
            let mut bent = good;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(&NONCE, 3, &mut bent), hop, "bit {bit}");
        }
        let others = [
            Nonce {
                destination: 8,
                ..NONCE
            },
            Nonce {
                session: 10,
                ..NONCE
            },
            Nonce {
                kind: Kind::Coded,
                ..NONCE
            },
            Nonce { number: 4, ..NONCE },
            Nonce {
                number: 1 << 23 | 3,
                ..NONCE
            },
            Nonce { round: 1, ..NONCE },
            Nonce {
                extra: 256,
                ..NONCE
            },
        ];
        for other in others {
            assert!(!seal.open(&other, 3, &mut good.clone()), "{other:?}");
        }
        let stranger = Seal::new(Some(&Key::new([6; 16])));
        assert!(!stranger.open(&NONCE, 3, &mut good.clone()));
        let mut short = good;
        assert!(!seal.open(&NONCE, 3, &mut short[..5]));
    }

    /// Goal: a packet without a header is encrypted, and its tag tells it from any other. Method: every bit flipped on the way.
    #[test]
    fn masked_packets_come_back_and_their_tags_cover_every_bit() {
        let seal = Seal::new(Some(&Key::new([5; 16])));
        let good: [u8; 122] = core::array::from_fn(|at| at as u8);
        let mut sent = good;
        let tag = seal.mask(&NONCE, &mut sent).unwrap();
        assert!(sent.iter().zip(&good).filter(|(a, b)| a == b).count() < 10);
        let tag_of = |mut plain: [u8; 122]| seal.mask(&NONCE, &mut plain).unwrap();
        for bit in 0..122 * 8 {
            let mut heard = sent;
            heard[bit / 8] ^= 1 << (bit % 8);
            seal.mask(&NONCE, &mut heard);
            assert!(heard != good && tag_of(heard) != tag, "bit {bit}");
        }
        seal.mask(&NONCE, &mut sent);
        assert_eq!((sent, tag_of(sent)), (good, tag));
        let other = Nonce { number: 4, ..NONCE };
        assert_ne!(seal.mask(&other, &mut sent), Some(tag));
        assert_eq!(Seal::new(None).mask(&NONCE, &mut sent), None);
    }

    #[test]
    fn without_a_key_frames_are_unchanged() {
        let seal = Seal::new(None);
        let frame: [u8; 40] = core::array::from_fn(|at| at as u8);
        assert_eq!((sealed(&seal), seal.tag_len()), (frame, 0));
        assert!(seal.verify(NONCE.octets(), 40, &frame));
    }
}
