//! The cipher of frames: ChaCha20-Poly1305 (RFC 8439).

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

/// Octets of the tag that proves a text authentic.
pub const TAG: usize = 16;

/// The cipher of one key, which is wiped when this is dropped.
pub struct Cipher(Zeroizing<[u8; 32]>);

impl Cipher {
    /// The cipher of a key.
    pub fn new(key: &[u8; 32]) -> Cipher {
        Cipher(Zeroizing::new(*key))
    }

    /// ring's keys are not wiped, so one lives only as long as a call. Making one takes some ten nanoseconds.
    fn key(&self) -> Option<LessSafeKey> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.0[..]);
        key.ok().map(LessSafeKey::new)
    }

    /// Encrypts `text` in place and returns its tag, which proves `clear` authentic as well. No nonce may be used twice. `None` if
    /// the text is longer than 256 GB.
    pub fn seal(&self, nonce: [u8; 12], clear: &[u8], text: &mut [u8]) -> Option<[u8; TAG]> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .key()?
            .seal_in_place_separate_tag(nonce, Aad::from(clear), text);
        sealed.ok()?.as_ref().try_into().ok()
    }

    /// Decrypts `text` in place; `None` if it or `clear` is not authentic. Then nothing is left of the text.
    pub fn open(&self, nonce: [u8; 12], clear: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = Tag::try_from(tag).ok()?;
        let opened =
            self.key()?
                .open_in_place_separate_tag(nonce, Aad::from(clear), tag, text, 0..);
        opened.ok().map(drop)
    }
}

impl core::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Cipher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 8439, 2.8.2.
    #[test]
    fn the_cipher_is_that_of_the_rfc() {
        let key: [u8; 32] = core::array::from_fn(|at| 0x80 + at as u8);
        let cipher = Cipher::new(&key);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let clear = [
            0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
        ];
        let plain = *b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
        let mut text = plain;
        let tag = cipher.seal(nonce, &clear, &mut text).unwrap();
        assert_eq!(text[..4], [0xd3, 0x1a, 0x8d, 0x34]);
        assert_eq!(
            tag,
            [
                0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60,
                0x06, 0x91
            ]
        );
        let sealed = text;
        assert!(cipher.open(nonce, &clear, &mut text, &tag).is_some());
        assert_eq!(text, plain);
        // Each part is authentic.
        for (part, bit) in (0..3).flat_map(|part| (0..8).map(move |bit| (part, bit))) {
            let (mut clear, mut text, mut tag) = (clear, sealed, tag);
            match part {
                0 => clear[3] ^= 1 << bit,
                1 => text[100] ^= 1 << bit,
                _ => tag[15] ^= 1 << bit,
            }
            assert!(cipher.open(nonce, &clear, &mut text, &tag).is_none());
        }
        assert!(cipher.open(nonce, &clear, &mut [], &tag[..15]).is_none());
    }
}
