//! AES-128 in software, or by a processor's own unit.

use aes::Aes128;
use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, InOut,
    KeyInit, ParBlocksSizeUser,
};
use ccm::consts::{U1, U16};

/// Encrypts a block in place by AES-128 with a key. A unit that fails must leave the block unusable, not clear: a frame that
/// is sealed with it is refused by its receiver.
pub type Aes = fn(key: &[u8; 16], block: &mut [u8; 16]);

/// A key with what encrypts by it.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the key schedule of AES; a node has one cipher, and no allocator to box it with"
)]
pub(crate) enum Cipher {
    Software(Aes128),
    Unit(Unit),
}

/// A key and the unit.
#[derive(Clone)]
pub(crate) struct Unit {
    key: [u8; 16],
    encrypt: Aes,
}

impl core::fmt::Debug for Unit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Unit(..)")
    }
}

impl Cipher {
    pub fn new(key: [u8; 16], unit: Option<Aes>) -> Cipher {
        match unit {
            Some(encrypt) => Cipher::Unit(Unit { key, encrypt }),
            None => Cipher::Software(Aes128::new(&key.into())),
        }
    }
}

impl BlockSizeUser for Cipher {
    type BlockSize = U16;
}

impl BlockCipherEncrypt for Cipher {
    fn encrypt_with_backend(&self, f: impl BlockCipherEncClosure<BlockSize = U16>) {
        match self {
            Cipher::Software(aes) => aes.encrypt_with_backend(f),
            Cipher::Unit(unit) => f.call(unit),
        }
    }
}

impl BlockSizeUser for Unit {
    type BlockSize = U16;
}

impl ParBlocksSizeUser for Unit {
    type ParBlocksSize = U1;
}

impl BlockCipherEncBackend for Unit {
    fn encrypt_block(&self, mut block: InOut<'_, '_, Block<Self>>) {
        let mut octets: [u8; 16] = (*block.get_in()).into();
        (self.encrypt)(&self.key, &mut octets);
        *block.get_out() = octets.into();
    }
}
