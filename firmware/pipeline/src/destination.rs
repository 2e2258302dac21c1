//! The image of the destination for a board with an nRF52840. `P3_RELAYS` is the number of relays: 1 (usual), 2 or 3. It fetches
//! the object once and tells whoever holds its debugger what came of it. It has not met a radio yet.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
mod console;

#[cfg(target_os = "none")]
mod program {
    use core::fmt::Write;

    use chappe_core::Duration;
    use chappe_nrf52840::{Driver, Station};
    use chappe_p3::survey::Surveyor;
    use chappe_p3::{Gateway, Lent};
    use pipeline::{
        Fixed, Links, MEMORY, Numbers, OBJECT, RELAYS_MAX, config, gateway, given, surveyor,
    };
    use static_cell::StaticCell;

    use crate::board::{Chip, aes, radio, turn_until};
    use crate::console::Console;

    type Node = Gateway<Lent<'static>, Fixed>;

    static NODE: StaticCell<Station<Node, Chip>> = StaticCell::new();
    static STORE: StaticCell<[u8; MEMORY]> = StaticCell::new();
    const RELAYS: u8 = given(option_env!("P3_RELAYS"), 1, RELAYS_MAX);
    /// The other boards have started by then.
    const PAUSE: Duration = Duration::from_secs(2);

    /// Lets the nodes measure their links, and tells what they heard on channels 15, 20, 25 and 26.
    fn measure(radio: Driver<Chip>) -> Driver<Chip> {
        let Some(node) = surveyor(config(aes), RELAYS, Links::default()) else {
            return radio;
        };
        let mut station = Station::new(node, radio);
        station.with(|node, now| node.start(1, now + PAUSE));
        turn_until(&mut station, Surveyor::is_done);
        for (at, heard) in station.node().ledger().iter() {
            let (from, beacons, powers) = (heard.node, heard.beacons, heard.powers);
            // The console cannot fail: there is nowhere to say so.
            let _ = writeln!(
                Console,
                "{at} heard {from}: {beacons:?} of 6, dBm {powers:?}"
            );
        }
        station.into_driver()
    }

    #[cortex_m_rt::entry]
    fn main() -> ! {
        let radio = measure(radio());
        let memory = STORE.init_with(|| [0; MEMORY]);
        if let Some(node) = gateway(config(aes), memory, RELAYS) {
            let station = NODE.init(Station::new(node, radio));
            let begin = station.with(|node, now| node.start(now + PAUSE).map(|()| now + PAUSE));
            turn_until(station, Gateway::is_idle);
            let node = station.node();
            let right = node.destination().store().object();
            let object = Numbers::new(OBJECT);
            let right = right.is_some_and(|octets| object.are(octets));
            let took = begin.ok().zip(node.progress().completed);
            let took = took.map(|(begin, end)| end.saturating_since(begin));
            let bits = u64::from(OBJECT) * 8;
            let rate = took.map_or(0, |took| bits * 1_000_000 / (took.nanos() / 1000).max(1));
            let (packets, attempts) = (node.progress().packets, node.attempts());
            // The console cannot fail: there is nowhere to say so.
            let _ = writeln!(
                Console,
                "{packets} packets, right: {right}, {rate} bit/s, {attempts} attempts; {:?}",
                node.drops()
            );
        }
        loop {
            cortex_m::asm::wfe();
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for an nRF52840: build it with --target thumbv7em-none-eabi");
}
