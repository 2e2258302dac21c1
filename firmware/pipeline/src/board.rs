//! What the three images share: the chip, its AES, the end of a program.

#[path = "../../board/chip.rs"]
mod chip;
mod wake;

use core::panic::PanicInfo;

use chappe_nrf52840::{Config, Driver, encrypt};
pub use chip::Chip;
pub use wake::turn_until;

/// Starts the chip and takes its radio.
pub fn radio() -> Driver<Chip> {
    chip::start_clock();
    Driver::new(Chip::take(), Config::STANDARD)
}

/// AES by the chip. A block that it did not encrypt is wiped: a frame that is sealed with it is refused.
pub fn aes(key: &[u8; 16], block: &mut [u8; 16]) {
    if !encrypt(&mut Chip::take(), key, block) {
        *block = [0; 16];
    }
}

/// Starts again: a mote has no one who would read a message.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset();
}
