//! The image of the source for a board with an nRF52840. It has not met a radio yet.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board;

#[cfg(target_os = "none")]
mod program {
    use chappe_nrf52840::Station;
    use chappe_p3::Source;
    use chappe_p3::survey::Member;
    use pipeline::{Numbers, OBJECT, config, prepare, source};
    use static_cell::StaticCell;

    use crate::board::{Chip, aes, radio, turn_until};

    static NODE: StaticCell<Station<Member<Source<Numbers>>, Chip>> = StaticCell::new();

    #[cortex_m_rt::entry]
    fn main() -> ! {
        let radio = radio();
        if let Some(node) = source(config(aes), Numbers::new(OBJECT)) {
            let station = NODE.init(Station::new(node, radio).with_ahead(prepare));
            turn_until(station, |_| false);
        }
        // The radio suits, so this is never reached.
        cortex_m::peripheral::SCB::sys_reset();
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for an nRF52840: build it with --target thumbv7em-none-eabi");
}
