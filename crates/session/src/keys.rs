//! Keys of hosts: a secret one, the public one computed from it, and one that two hosts may share besides.

use alloc::string::String;
use core::fmt;

use curve25519_dalek::MontgomeryPoint;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// The secret key of a host (X25519). Whoever has it is this host.
#[derive(Clone)]
pub struct Secret([u8; 32]);

/// The public key of a host, by which its peers know it. 32 octets, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Public([u8; 32]);

/// A secret that two hosts share besides their keys (PSK). Without it a stolen or broken key is not enough.
#[derive(Clone)]
pub struct Psk([u8; 32]);

impl Secret {
    /// A key of 32 unpredictable octets.
    pub const fn new(octets: [u8; 32]) -> Secret {
        Secret(octets)
    }

    /// Reads 64 hexadecimal digits, as [`to_text`](Self::to_text) writes them.
    pub fn parse(text: &str) -> Option<Secret> {
        digits(text).map(Secret)
    }

    /// The key as 64 hexadecimal digits. Keep them secret.
    pub fn to_text(&self) -> String {
        text(&self.0)
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> Public {
        Public(MontgomeryPoint::mul_base_clamped(self.0).to_bytes())
    }

    pub(crate) fn octets(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Public {
    /// A public key from its octets.
    pub const fn new(octets: [u8; 32]) -> Public {
        Public(octets)
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Public> {
        digits(text).map(Public)
    }

    /// The octets of the key.
    pub fn octets(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Psk {
    /// A shared secret of 32 unpredictable octets.
    pub const fn new(octets: [u8; 32]) -> Psk {
        Psk(octets)
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Psk> {
        digits(text).map(Psk)
    }

    /// The secret as 64 hexadecimal digits. Keep them secret.
    pub fn to_text(&self) -> String {
        text(&self.0)
    }

    pub(crate) fn octets(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl PartialEq for Psk {
    fn eq(&self, other: &Psk) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Psk {}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Drop for Psk {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(..)")
    }
}

impl fmt::Display for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Public({self})")
    }
}

fn text(octets: &[u8; 32]) -> String {
    use core::fmt::Write;
    let mut text = String::with_capacity(64);
    for octet in octets {
        let _ = write!(text, "{octet:02x}");
    }
    text
}

fn digits(text: &str) -> Option<[u8; 32]> {
    let text = text.trim().as_bytes();
    let mut octets = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |at: usize| pair.get(at).and_then(|&c| char::from(c).to_digit(16));
        *octet = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text and octets agree both ways; anything else is no key; a secret never prints itself.
    #[test]
    fn keys_have_one_text() {
        let secret = Secret::new([0xa7; 32]);
        assert_eq!(Secret::parse(&secret.to_text()), Some(secret.clone()));
        let public = secret.public();
        assert_eq!(Public::parse(&alloc::format!(" {public}\n")), Some(public));
        for wrong in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert!(Public::parse(wrong).is_none(), "{wrong}");
        }
        assert!(!alloc::format!("{secret:?}").contains("a7"));
        assert!(!alloc::format!("{:?}", Psk::new([0xa7; 32])).contains("a7"));
    }

    /// A key pair of the published vectors that `noise` is tried against.
    #[test]
    fn the_public_key_is_that_of_the_vector() {
        let secret = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893";
        let public = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";
        let computed = Secret::parse(secret).map(|secret| secret.public());
        assert_eq!(computed, Public::parse(public));
    }
}
