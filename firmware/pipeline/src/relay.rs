//! The image of a relay for a board with an nRF52840. `P3_NODE` is its number: 1 (usual), 2 or 3. It has not met a radio yet.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board;

#[cfg(target_os = "none")]
mod program {
    use chappe_nrf52840::Station;
    use chappe_p3::survey::Member;
    use pipeline::{RELAYS_MAX, config, given, relay};
    use static_cell::StaticCell;

    use crate::board::{Chip, aes, radio, turn_until};

    static NODE: StaticCell<Station<Member<chappe_p3::Relay>, Chip>> = StaticCell::new();
    const NUMBER: u8 = given(option_env!("P3_NODE"), 1, RELAYS_MAX);

    #[cortex_m_rt::entry]
    fn main() -> ! {
        let radio = radio();
        if let Some(node) = relay(config(aes), NUMBER) {
            turn_until(NODE.init(Station::new(node, radio)), |_| false);
        }
        // The radio suits, so this is never reached.
        cortex_m::peripheral::SCB::sys_reset();
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for an nRF52840: build it with --target thumbv7em-none-eabi");
}
