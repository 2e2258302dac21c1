//! The Noise handshake: `snow` with the primitives that this workspace has already.

use alloc::boxed::Box;

use curve25519_dalek::MontgomeryPoint;
use sha2::{Digest, Sha256};
use snow::error::{Error, InitStage};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::cipher::{self, TAG};
use crate::keys::{Psk, Public, Secret};

/// The protocol by its name in the Noise specification: the initiator knows the responder's key and sends its own encrypted;
/// a shared secret is mixed in at the end of the second message.
pub const NOISE: &str = "Noise_IKpsk2_25519_ChaChaPoly_SHA256";
/// Where the shared secret is mixed in.
const PSK_AT: u8 = 2;

/// The handshake of the host that calls.
pub(crate) fn initiator(
    own: (&Secret, &Public),
    peer: &Public,
    psk: &Psk,
    prologue: &[u8],
    ephemeral: [u8; 32],
) -> Result<HandshakeState, Error> {
    builder(own, prologue, ephemeral)?
        .remote_public_key(peer.octets())?
        .psk(PSK_AT, psk.octets())?
        .build_initiator()
}

/// The handshake of the host that is called. The caller's secret follows by [`set_psk`] once its key is known.
pub(crate) fn responder(
    own: (&Secret, &Public),
    prologue: &[u8],
    ephemeral: [u8; 32],
) -> Result<HandshakeState, Error> {
    builder(own, prologue, ephemeral)?.build_responder()
}

/// Gives the responder the secret that it shares with the caller.
pub(crate) fn set_psk(state: &mut HandshakeState, psk: &Psk) -> Result<(), Error> {
    state.set_psk(PSK_AT.into(), psk.octets())
}

fn builder<'a>(
    (secret, public): (&'a Secret, &Public),
    prologue: &'a [u8],
    ephemeral: [u8; 32],
) -> Result<Builder<'a>, Error> {
    let primitives = Primitives {
        known: Some(*public.octets()),
        ..Primitives::new(ephemeral)
    };
    Builder::with_resolver(NOISE.parse()?, Box::new(primitives))
        .prologue(prologue)?
        .local_private_key(secret.octets())
}

/// X25519, ChaCha20-Poly1305 and SHA-256 for one handshake of `snow`, whatever its pattern.
pub struct Primitives {
    /// The public key of the secret that is set, so that it is not computed again in each handshake.
    known: Option<[u8; 32]>,
    /// The only random octets of the handshake.
    ephemeral: [u8; 32],
}

impl Primitives {
    /// For a handshake whose own ephemeral secret is `ephemeral`. The caller draws it from the operating system for each
    /// handshake anew: forward secrecy rests on it.
    pub fn new(ephemeral: [u8; 32]) -> Primitives {
        Primitives {
            known: None,
            ephemeral,
        }
    }
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(X25519 {
            known: self.known,
            ..X25519::default()
        }))
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        Some(Box::new(Sha(Sha256::new())))
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        Some(Box::new(ChaCha(None)))
    }
}

/// Octets that are given out once: a second draw is a mistake, and fails.
struct Once(Option<[u8; 32]>);

impl Random for Once {
    fn try_fill_bytes(&mut self, place: &mut [u8]) -> Result<(), Error> {
        let drawn = self.0.take().ok_or(InitStage::GetRngImpl)?;
        let drawn = drawn.get(..place.len()).ok_or(InitStage::GetRngImpl)?;
        place.copy_from_slice(drawn);
        Ok(())
    }
}

#[derive(Default)]
struct X25519 {
    known: Option<[u8; 32]>,
    secret: [u8; 32],
    public: [u8; 32],
}

impl Drop for X25519 {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, secret: &[u8]) {
        if let Some(secret) = secret.first_chunk() {
            self.secret = *secret;
            let computed = || MontgomeryPoint::mul_base_clamped(*secret).to_bytes();
            self.public = self.known.unwrap_or_else(computed);
        }
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        random.try_fill_bytes(&mut self.secret)?;
        self.public = MontgomeryPoint::mul_base_clamped(self.secret).to_bytes();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let point = MontgomeryPoint(*public.first_chunk().ok_or(Error::Dh)?);
        let shared = point.mul_clamped(self.secret).to_bytes();
        // A point of small order gives zeros with every secret (RFC 7748, 6.1).
        if bool::from(shared.ct_eq(&[0; 32])) {
            return Err(Error::Dh);
        }
        let place = out.first_chunk_mut().ok_or(Error::Dh)?;
        *place = shared;
        Ok(())
    }
}

struct Sha(Sha256);

impl Hash for Sha {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Sha256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let digest = core::mem::take(&mut self.0).finalize();
        out.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    }
}

struct ChaCha(Option<cipher::Cipher>);

impl ChaCha {
    fn nonce(nonce: u64) -> [u8; 12] {
        let mut octets = [0; 12];
        // Noise, 12.3: four zeros, then the counter with the least octet first.
        octets[4..].copy_from_slice(&nonce.to_le_bytes());
        octets
    }
}

impl Cipher for ChaCha {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0 = Some(cipher::Cipher::new(key));
    }

    fn encrypt(&self, nonce: u64, authentic: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let whole = plain.len() + TAG;
        let (Some(cipher), Some(out)) = (&self.0, out.get_mut(..whole)) else {
            return 0;
        };
        let (text, tag_place) = out.split_at_mut(plain.len());
        text.copy_from_slice(plain);
        match cipher.seal(Self::nonce(nonce), authentic, text) {
            Some(tag) => tag_place.copy_from_slice(&tag),
            None => return 0,
        }
        whole
    }

    fn decrypt(
        &self,
        nonce: u64,
        authentic: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let cipher = self.0.as_ref().ok_or(Error::Decrypt)?;
        let plain = sealed.len().checked_sub(TAG).ok_or(Error::Decrypt)?;
        let (sealed, tag) = sealed.split_at(plain);
        let out = out.get_mut(..plain).ok_or(Error::Decrypt)?;
        out.copy_from_slice(sealed);
        let opened = cipher.open(Self::nonce(nonce), authentic, out, tag);
        opened.map(|()| plain).ok_or(Error::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        let digits: Vec<u8> = text
            .bytes()
            .map(|c| char::from(c).to_digit(16).unwrap() as u8)
            .collect();
        let octets: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        octets.try_into().unwrap()
    }

    /// The vector of this handshake among those of cacophony (github.com/haskell-cryptography/cacophony), which `snow` ships as
    /// well: both messages, and the first sealed text in each direction.
    #[test]
    fn the_handshake_is_that_of_the_published_vector() {
        let prologue = hex::<9>("4a6f686e2047616c74");
        let prologue = &prologue[..];
        let (secret_i, secret_r) = (
            Secret::new(hex(
                "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
            )),
            Secret::new(hex(
                "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
            )),
        );
        let (public_i, public_r) = (secret_i.public(), secret_r.public());
        let psk = Psk::new(hex(
            "54686973206973206d7920417573747269616e20706572737065637469766521",
        ));
        let mut caller = initiator(
            (&secret_i, &public_i),
            &public_r,
            &psk,
            prologue,
            hex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"),
        )
        .unwrap();
        let mut called = responder(
            (&secret_r, &public_r),
            prologue,
            hex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"),
        )
        .unwrap();
        let (mut message, mut payload) = ([0; 200], [0; 200]);
        let len = caller
            .write_message(b"Ludwig von Mises", &mut message)
            .unwrap();
        assert_eq!(
            message[..len],
            hex::<112>(
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79442ec9b09893d0f510791784c10cbc959f25b1766e0def6e301d14fbca1c7790ac829b8b3674f5f649a5f0e98479662cbfbf2b2c47cd4b09fcd266cd29d7cb675f1808849707847840f6d178ec4d3733aa"
            )
        );
        assert_eq!(
            called.read_message(&message[..len], &mut payload).unwrap(),
            16
        );
        assert_eq!(called.get_remote_static(), Some(&public_i.octets()[..]));
        set_psk(&mut called, &psk).unwrap();
        let len = called
            .write_message(b"Murray Rothbard", &mut message)
            .unwrap();
        assert_eq!(
            message[..len],
            hex::<63>(
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088439a1b3cebf680b2c74217fcb5eba4ff58a9468cd90c4aca6194f57479b379a7"
            )
        );
        caller.read_message(&message[..len], &mut payload).unwrap();
        let keys = caller.dangerously_get_raw_split();
        assert_eq!(keys, called.dangerously_get_raw_split());
        for (key, said, sealed) in [
            (
                keys.0,
                &b"F. A. Hayek"[..],
                hex::<27>("a8fde7a0accec190cd306c5950d4fd8e04a205ec288aa747d8b347"),
            ),
            (
                keys.1,
                b"Carl Menger",
                hex("59caddd9984a3bbe24c4fb31a2bd455b7eba3fa0980674b1a3a5f9"),
            ),
        ] {
            let mut cipher = ChaCha(None);
            cipher.set(&key);
            let mut out = [0; 27];
            assert_eq!(cipher.encrypt(0, &[], said, &mut out), 27);
            assert_eq!(out, sealed);
        }
    }

    /// Goal: a public key of small order makes no session, since everybody would know its secret.
    #[test]
    fn points_of_small_order_are_refused() {
        let own = Secret::new([7; 32]);
        let zero = Public::new([0; 32]);
        let mut caller = initiator(
            (&own, &own.public()),
            &zero,
            &Psk::new([0; 32]),
            &[],
            [9; 32],
        )
        .unwrap();
        assert!(caller.write_message(&[], &mut [0; 200]).is_err());
    }
}
