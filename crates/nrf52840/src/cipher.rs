//! AES-128 by the chip's own unit.

use crate::registers::{Buffer, Registers, ecb};

/// Looks at the unit's event before the processor gives up. The unit needs a few microseconds (PS, ECB: t_ECB), a look some
/// ten cycles.
const LOOKS: u32 = 10_000;

/// Encrypts a block in place; false if the unit did not answer, and the block is as it was.
///
/// The processor waits for the unit. CCM needs no more than this of AES, in both directions. Nothing else may use ECB, nor CCM
/// and AAR, which share the unit.
pub fn encrypt(registers: &mut impl Registers, key: &[u8; 16], block: &mut [u8; 16]) -> bool {
    registers.store(Buffer::Cipher, 0, key);
    registers.store(Buffer::Cipher, 16, block);
    let pointer = registers.address(Buffer::Cipher);
    registers.write(ecb::ECBDATAPTR, pointer);
    registers.write(ecb::EVENTS_ENDECB, 0);
    registers.write(ecb::TASKS_STARTECB, 1);
    let ended = (0..LOOKS).any(|_| registers.read(ecb::EVENTS_ENDECB) != 0);
    if ended {
        registers.load(Buffer::Cipher, 32, block);
    }
    ended
}
