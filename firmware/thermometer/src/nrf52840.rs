//! The image for a board with an nRF52840: the thermometer is node 1 of PAN 0xcafe on channel 26, and node 0 is its parent,
//! which routes. It has not met a radio yet.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../board/chip.rs"]
mod chip;
#[cfg(target_os = "none")]
mod element;
#[cfg(target_os = "none")]
mod wake;

#[cfg(target_os = "none")]
mod program {
    use core::panic::PanicInfo;

    use chappe_mote::{Runner, Stack};
    use chappe_nrf52840::{Board, Config, Driver};
    use chappe_thermometer::{Memory, Node, Setup, node, serve};
    use embassy_executor::Spawner;
    use static_cell::StaticCell;

    use crate::chip::{Chip, start_clock};
    use crate::element::{Element, random};

    type Radio = &'static Board<Chip>;
    type Net = Stack<'static, Radio>;

    static MEMORY: StaticCell<Memory<'static>> = StaticCell::new();
    static NODE: StaticCell<Node<'static>> = StaticCell::new();
    static BOARD: StaticCell<Board<Chip>> = StaticCell::new();
    static STACK: StaticCell<Net> = StaticCell::new();

    /// The node's own number and its parent's.
    const HERE: u16 = 1;
    const PARENT: u16 = 0;

    #[embassy_executor::task]
    async fn network(runner: Runner<'static, 'static, Radio, Radio>) {
        runner.run().await;
    }

    #[embassy_executor::task]
    async fn thermometer(stack: &'static Net) {
        serve(stack, &Element).await;
    }

    #[embassy_executor::main]
    async fn main(spawner: Spawner) {
        start_clock();
        let setup = Setup::new(HERE, PARENT, random());
        let (mote, local) = node::<_, 0>(MEMORY.init_with(Memory::new), &setup, ());
        let board: Radio = BOARD.init(Board::new(Driver::new(Chip::take(), Config::STANDARD)));
        let stack: &'static Net = STACK.init(Stack::new(NODE.init(mote), local, board));
        // A task is started once, so there is room for it.
        spawner.spawn(network(Runner::new(stack, board)).unwrap());
        spawner.spawn(thermometer(stack).unwrap());
    }

    /// Starts again: a mote has no one who would read a message.
    #[panic_handler]
    fn panic(_: &PanicInfo<'_>) -> ! {
        cortex_m::peripheral::SCB::sys_reset();
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for an nRF52840: build it with --target thumbv7em-none-eabi");
}
