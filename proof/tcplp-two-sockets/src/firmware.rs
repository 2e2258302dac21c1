//! Plays both transfers on a Cortex-M and prints, over semihosting, every segment and what each kind of work cost.
//!
//! QEMU with `-icount shift=0` counts one nanosecond per instruction, and the board's timer ticks at 25 MHz, so a
//! tick is 40 instructions.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../board/board.rs"]
mod board;

#[cfg(target_os = "none")]
mod program {
    use core::fmt::Write;

    use chappe_core::Instant;
    use tcplp_two_sockets::{End, Watcher, Work, play};

    use crate::board::{Console, timer};

    /// Instructions between two ticks.
    const TICK: u64 = 40;

    #[derive(Clone, Copy, Default)]
    struct Cost {
        times: u64,
        ticks: u64,
        most: u64,
    }

    #[derive(Default)]
    struct Meter {
        began: u32,
        costs: [Cost; Work::ALL.len()],
    }

    impl Watcher for Meter {
        fn sends(&mut self, at: Instant, end: End, segment: &[u8]) {
            // The console cannot fail: there is nowhere to say so.
            let _ = write!(Console, "{} {end:?} ", at.nanos());
            for octet in segment {
                let _ = write!(Console, "{octet:02x}");
            }
            let _ = writeln!(Console);
        }

        fn begins(&mut self) {
            self.began = timer::now();
        }

        fn ends(&mut self, work: Work) {
            let ticks = timer::since(self.began);
            if let Some(cost) = self.costs.get_mut(work as usize) {
                cost.times += 1;
                cost.ticks += ticks;
                cost.most = cost.most.max(ticks);
            }
        }
    }

    pub fn run() {
        timer::start();
        for lost in [17, 0] {
            let mut meter = Meter::default();
            let outcome = play(lost, &mut meter);
            let _ = writeln!(Console, "{outcome:?}");
            let total: u64 = meter.costs.iter().map(|cost| cost.ticks * TICK).sum();
            let segments = outcome.map_or(1, |outcome| u64::from(outcome.segments).max(1));
            let mean = total / segments;
            let _ = writeln!(
                Console,
                "# lost 1/{lost} all, both ends, a segment: times {segments} mean {mean}"
            );
            for (work, cost) in Work::ALL.into_iter().zip(meter.costs) {
                let mean = cost.ticks * TICK / cost.times.max(1);
                let (times, most) = (cost.times, cost.most * TICK);
                let _ = writeln!(
                    Console,
                    "# lost 1/{lost} {work:?} times {times} mean {mean} most {most}"
                );
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
