//! Plays the transfer on a Cortex-M and prints, over semihosting, what every node sends and what it cost.
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
    use p3_relay::{Role, Watcher, play};

    use crate::board::{Console, timer};

    /// Instructions between two ticks.
    const TICK: u64 = 40;

    /// What is counted: who did something on hearing which frame, by its first octet; none for the end of an own one.
    #[derive(Clone, Copy, Default)]
    struct Cost {
        frames: u64,
        ticks: u64,
        most: u64,
    }

    impl Cost {
        fn add(&mut self, ticks: u64) {
            self.frames += 1;
            self.ticks += ticks;
            self.most = self.most.max(ticks);
        }
    }

    #[derive(Default)]
    struct Meter {
        began: u32,
        relay_data: Cost,
        relay_control: Cost,
        destination_data: Cost,
        source_next: Cost,
    }

    impl Watcher for Meter {
        fn sends(&mut self, at: Instant, role: Role, channel: u8, psdu: &[u8]) {
            // The console cannot fail: there is nowhere to say so.
            let _ = write!(Console, "{} {role:?} {channel} ", at.nanos());
            for octet in psdu {
                let _ = write!(Console, "{octet:02x}");
            }
            let _ = writeln!(Console);
        }

        fn begins(&mut self) {
            self.began = timer::now();
        }

        fn ends(&mut self, role: Role, heard: Option<&[u8]>) {
            let ticks = timer::since(self.began);
            let data = heard
                .and_then(|psdu| psdu.first())
                .map(|first| first & 0x80 == 0);
            match (role, data) {
                (Role::Even | Role::Odd, Some(true)) => self.relay_data.add(ticks),
                (Role::Even | Role::Odd, Some(false)) => self.relay_control.add(ticks),
                (Role::Destination, Some(true)) => self.destination_data.add(ticks),
                (Role::Source, None) => self.source_next.add(ticks),
                _ => {}
            }
        }
    }

    pub fn run() {
        timer::start();
        let mut meter = Meter::default();
        let end = play(1, &mut meter);
        let _ = writeln!(Console, "{end:?}");
        let costs = [
            ("relay, DATA or CODED", meter.relay_data),
            ("relay, PLAN, CTRL or NACK", meter.relay_control),
            ("destination, DATA or CODED", meter.destination_data),
            ("source, next frame", meter.source_next),
        ];
        for (what, cost) in costs {
            let mean = cost.ticks * TICK / cost.frames.max(1);
            let (frames, most) = (cost.frames, cost.most * TICK);
            let _ = writeln!(
                Console,
                "# {what}: {frames} times, {mean} instructions, {most} at most"
            );
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
