//! Plays the visit on a Cortex-M4 under QEMU, and prints every frame, what the tasks cost, and how much stack they took.
//!
//! QEMU with `-icount shift=0` counts one nanosecond per instruction, and the board's timer ticks at 25 MHz, so a
//! tick is 40 instructions.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../../proof/board/board.rs"]
#[allow(dead_code, reason = "the board has more than this program uses")]
mod board;

#[cfg(target_os = "none")]
#[path = "../../../proof/board/stack.rs"]
mod stack;

#[cfg(target_os = "none")]
mod program {
    use core::fmt::{self, Write};

    use thermometer::room::{Cost, Watcher, play};

    use crate::board::{Console, timer};
    use crate::stack;

    /// Instructions between two ticks.
    const TICK: u64 = 40;
    /// 192 us less 40, at one instruction a cycle.
    const BUDGET: u64 = 152 * 64;

    /// Runs of the tasks up to a point.
    #[derive(Clone, Copy, Default)]
    struct Spans {
        times: u64,
        ticks: u64,
        most: u32,
    }

    impl Spans {
        fn add(&mut self, ticks: u32) {
            self.times += 1;
            self.ticks += u64::from(ticks);
            self.most = self.most.max(ticks);
        }

        fn most(&self) -> u64 {
            u64::from(self.most) * TICK
        }
    }

    impl fmt::Display for Spans {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mean = self.ticks * TICK / self.times.max(1);
            let (times, most) = (self.times, self.most());
            write!(f, "{times} times, {mean} instructions, {most} at most")
        }
    }

    #[derive(Default)]
    struct Meter {
        all: Spans,
        /// From an event to the acknowledgement that answers it.
        acknowledgements: Spans,
        /// From an event to another frame.
        frames: Spans,
    }

    impl Watcher for Meter {
        fn sends(&mut self, at: u64, node: usize, psdu: &[u8]) {
            // The console cannot fail: there is nowhere to say so.
            let _ = write!(Console, "{at} {node} ");
            for octet in psdu {
                let _ = write!(Console, "{octet:02x}");
            }
            let _ = writeln!(Console);
        }

        fn ends(&mut self, cost: Cost) {
            self.all.add(cost.all);
            let spans = match cost.acknowledges {
                true => &mut self.acknowledgements,
                false => &mut self.frames,
            };
            if let Some(ticks) = cost.to_frame {
                spans.add(ticks);
            }
        }
    }

    pub fn run() {
        timer::start();
        stack::paint();
        let mut meter = Meter::default();
        let end = play(&mut meter, timer::now);
        let _ = writeln!(Console, "{end:?}");
        let Meter {
            all,
            acknowledgements,
            frames,
        } = meter;
        let _ = writeln!(Console, "# both nodes' tasks: {all}");
        let _ = writeln!(
            Console,
            "# from a frame to its acknowledgement: {acknowledgements} (goal {BUDGET}: a turnaround without its ramp-up)"
        );
        let _ = writeln!(
            Console,
            "# from an event to another frame: {frames} (goal {BUDGET})"
        );
        if acknowledgements.most() > BUDGET || frames.most() > BUDGET {
            let _ = writeln!(Console, "# missed: a frame would be late on the chip");
        }
        let used = stack::used();
        let _ = writeln!(
            Console,
            "# stack of two nodes with all their memory: {used} octets"
        );
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
