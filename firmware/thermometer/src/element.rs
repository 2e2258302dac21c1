//! The chip's thermometer, and its source of noise.

use chappe_thermometer::{Reading, Sensor};
use nrf_pac::{RNG, TEMP};

/// The chip's own thermometer.
pub struct Element;

impl Sensor for Element {
    fn read(&self) -> Reading {
        TEMP.events_datardy().write_value(0);
        TEMP.tasks_start().write_value(1);
        // 36 us (PS, TEMP).
        while TEMP.events_datardy().read() == 0 {}
        // Quarters of a degree.
        Reading(TEMP.temp().read() as i32 * 25)
    }
}

/// 16 octets of noise from the chip's generator, with its bias correction.
pub fn random() -> [u8; 16] {
    RNG.config().write(|config| config.set_dercen(true));
    RNG.tasks_start().write_value(1);
    let octets = core::array::from_fn(|_| {
        RNG.events_valrdy().write_value(0);
        while RNG.events_valrdy().read() == 0 {}
        RNG.value().read().value()
    });
    RNG.tasks_stop().write_value(1);
    octets
}
