//! What is written once.

use chappe_core::{Channel, Dbm};

use super::{Config, INTERRUPTS};
use crate::registers::{PPI_CHENSET, Registers, ppi_event, ppi_task, radio, timer};

/// Compare and capture registers of the timer, and channels of PPI.
pub(super) mod channel {
    /// Compare: the start of an own frame.
    pub const START: u32 = 0;
    /// Capture: a frame's length octet has arrived.
    pub const BEGAN: u32 = 1;
    /// Compare: the processor is wanted.
    pub const ALARM: u32 = 2;
    /// Capture: the present time.
    pub const NOW: u32 = 3;
    /// Capture: a received frame has ended.
    pub const ENDED: u32 = 4;
    /// Capture: an own frame has ended.
    pub const SENT: u32 = 5;

    /// PPI: at [`START`], ramp up to send.
    pub const ENABLE_BY_TIMER: u32 = 0;
    /// PPI: at [`START`], send from a transmitter that is still up.
    pub const START_BY_TIMER: u32 = 4;
}

/// IEEE 802.15.4, 250 kbit/s.
const MODE_IEEE802154: u32 = 15;
/// The length octet has 8 bits and counts the check sequence; the preamble has 32 zero bits.
const PCNF0: u32 = 8 | 2 << 24 | 1 << 26;
const PCNF1: u32 = 127;
/// Two octets of check sequence, as 802.15.4 computes it.
const CRCCNF: u32 = 2 | 2 << 8;
/// x^16 + x^12 + x^5 + 1.
const CRCPOLY: u32 = 0x1_1021;
/// Fast ramp-up of the radio: the bit RU of MODECNF0.
const MODECNF0_FAST: u32 = 1;
/// 32 bits, and 16 MHz / 2^0: relays of a group start within half a microsecond of each other.
const BITMODE_32: u32 = 3;
const PRESCALER: u32 = 0;

/// Sets up radio, timer and PPI. The timer starts at zero.
pub(super) fn begin(registers: &mut impl Registers, config: &Config) {
    let settings = [
        (radio::POWER, 1),
        (radio::MODE, MODE_IEEE802154),
        (radio::MODECNF0, MODECNF0_FAST),
        (radio::PCNF0, PCNF0),
        (radio::PCNF1, PCNF1),
        (radio::CRCCNF, CRCCNF),
        (radio::CRCPOLY, CRCPOLY),
        (radio::CRCINIT, 0),
        (radio::FREQUENCY, frequency(config.channel)),
        (radio::TXPOWER, tx_power(config.power)),
        (radio::INTENSET, INTERRUPTS),
        (timer::MODE, 0),
        (timer::BITMODE, BITMODE_32),
        (timer::PRESCALER, PRESCALER),
        (timer::INTENSET, 1 << (16 + channel::ALARM)),
        (timer::TASKS_CLEAR, 1),
        (timer::TASKS_START, 1),
    ];
    for (register, value) in settings {
        registers.write(register, value);
    }
    let start = timer::compare(channel::START);
    let joined = [
        (channel::ENABLE_BY_TIMER, start, radio::TASKS_TXEN),
        (1, radio::EVENTS_FRAMESTART, timer::capture(channel::BEGAN)),
        (2, radio::EVENTS_END, timer::capture(channel::ENDED)),
        (3, radio::EVENTS_PHYEND, timer::capture(channel::SENT)),
        (channel::START_BY_TIMER, start, radio::TASKS_START),
    ];
    for (at, event, task) in joined {
        registers.write(ppi_event(at), event);
        registers.write(ppi_task(at), task);
    }
    // Channels 0 and 4 are enabled for each frame.
    registers.write(PPI_CHENSET, 0b01110);
}

/// FREQUENCY of a channel: megahertz above 2400 (IEEE 802.15.4-2015, 10.1.3.3). Channels outside 11 to 26 take the nearest.
pub(super) fn frequency(Channel(channel): Channel) -> u32 {
    5 * (u32::from(channel.clamp(11, 26)) - 10)
}

/// TXPOWER: the most that the chip has and that is not above `power`, as a signed octet.
pub(super) fn tx_power(power: Dbm) -> u32 {
    const LEVELS: [i8; 14] = [8, 7, 6, 5, 4, 3, 2, 0, -4, -8, -12, -16, -20, -40];
    let fits = |level: &i8| f64::from(*level) <= power.0;
    u32::from(LEVELS.into_iter().find(fits).unwrap_or(-40) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_chip() {
        for (asked, set) in [
            (20.0, 8),
            (8.0, 8),
            (1.9, 0),
            (0.0, 0),
            (-1.0, -4),
            (-99.0, -40),
        ] {
            assert_eq!(tx_power(Dbm(asked)) as u8 as i8, set, "{asked}");
        }
    }

    #[test]
    fn channels_are_5_mhz_apart() {
        assert_eq!(
            [11, 26, 0, 200].map(|at| frequency(Channel(at))),
            [5, 80, 5, 80]
        );
    }
}
