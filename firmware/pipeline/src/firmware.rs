//! Plays the transfer on a Cortex-M4 under QEMU, and prints every frame, and what each path through a node costs.
//!
//! QEMU with `-icount shift=0` counts one nanosecond per instruction, and the board's timer ticks at 25 MHz, so a
//! tick is 40 instructions.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../../proof/board/board.rs"]
#[allow(dead_code, reason = "the board has more than this program uses")]
mod board;

#[cfg(target_os = "none")]
mod program {
    use core::fmt::{self, Write};

    use pipeline::room::{Cause, Cost, Span, Ticks, Watcher, overhead, play};

    use crate::board::{Console, timer};

    /// Instructions between two ticks.
    const TICK: u64 = 40;
    /// Cycles in a microsecond of the chip.
    const CYCLES: u64 = 64;
    /// From a frame to its repetition: a turnaround of 192 us, less 40 us of ramp-up and 3 us in which a register is set.
    const TURN: u64 = 149 * CYCLES;
    /// Cycles that a flood leaves for checking a plan (`Profile::flood_check`).
    const FLOOD_CHECK: u64 = chappe_p3::Profile::IMPROVED.flood_check.nanos() * 64 / 1000;
    /// A frame of full length on the air, in which a source makes the next one.
    const AIRTIME: u64 = 4256 * CYCLES;
    /// From frame to frame where the source has no pause.
    const CYCLE: u64 = 4272 * CYCLES;
    /// What AES of the chip takes for a block: 7.2 us as we know the product specification, which we could not look up. The report
    /// says how much would still do.
    const BLOCK: u64 = 461;

    struct Timer;

    impl Ticks for Timer {
        fn now() -> u32 {
            timer::now()
        }
    }

    /// One path through a node.
    #[derive(Clone, Copy, Default)]
    struct Path {
        times: u64,
        instructions: u64,
        most: u64,
        /// The cycles of the longest one, and its blocks of AES.
        cycles: u64,
        blocks: u64,
    }

    impl Path {
        fn add(&mut self, span: Span, per_call: u64) {
            let all = u64::from(span.ticks) * TICK;
            // A register is read or written by two instructions.
            let measuring = u64::from(span.calls) * per_call.saturating_sub(2);
            let instructions = all.saturating_sub(measuring);
            self.times += 1;
            self.instructions += instructions;
            self.most = self.most.max(instructions);
            let blocks = u64::from(span.blocks);
            let cycles = instructions + blocks * BLOCK;
            if cycles > self.cycles {
                (self.cycles, self.blocks) = (cycles, blocks);
            }
        }
    }

    impl fmt::Display for Path {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mean = self.instructions / self.times.max(1);
            let (times, most) = (self.times, self.most);
            write!(f, "{times} times, {mean} instructions, {most} at most")?;
            match self.blocks {
                0 => Ok(()),
                blocks => write!(f, " and {blocks} blocks of AES"),
            }
        }
    }

    const CAUSES: [(Cause, &str); 9] = [
        (Cause::Head, "head of a frame"),
        (Cause::Data, "DATA"),
        (Cause::Coded, "CODED"),
        (Cause::Plan, "PLAN"),
        (Cause::Ctrl, "CTRL"),
        (Cause::Nack, "NACK"),
        (Cause::Survey, "CALL, BEACON or REPORT"),
        (Cause::Ahead, "its next frame"),
        (Cause::Other, "end of an own frame, deadline"),
    ];
    const ROLES: [&str; 3] = ["source", "relay", "destination"];

    #[derive(Default)]
    struct Meter {
        /// Instructions that measuring a call of a model costs.
        per_call: u64,
        /// All of a turn, by role and cause.
        whole: [[Path; 9]; 3],
        /// A relay, from a frame to its repetition.
        repeats: [Path; 9],
    }

    impl Watcher for Meter {
        fn sends(&mut self, at: u64, node: usize, channel: u8, psdu: &[u8]) {
            // The console cannot fail: there is nowhere to say so.
            let _ = write!(Console, "{at} {node} {channel} ");
            for octet in psdu {
                let _ = write!(Console, "{octet:02x}");
            }
            let _ = writeln!(Console);
        }

        fn ends(&mut self, node: usize, cost: Cost) {
            let role = match node {
                0 => 0,
                4 => 2,
                _ => 1,
            };
            let cause = CAUSES.iter().position(|(cause, _)| *cause == cost.cause);
            let cause = cause.unwrap_or(0);
            self.whole[role][cause].add(cost.whole, self.per_call);
            if let Some(span) = cost.to_frame.filter(|_| role == 1) {
                self.repeats[cause].add(span, self.per_call);
            }
        }
    }

    pub fn run() {
        timer::start();
        let mut meter = Meter {
            per_call: u64::from(overhead::<Timer>()) * TICK / 1000,
            ..Meter::default()
        };
        let end = play::<Timer>(&mut meter);
        let _ = writeln!(Console, "{end:?}");
        let _ = writeln!(
            Console,
            "# measuring a call of a model: {} instructions, not counted",
            meter.per_call
        );
        for (role, paths) in ROLES.iter().zip(&meter.whole) {
            for ((_, what), path) in CAUSES.iter().zip(paths).filter(|(_, path)| path.times > 0) {
                let _ = writeln!(Console, "# {role}, {what}: {path}");
            }
        }
        let path = |role: usize, cause: Cause| {
            let at = CAUSES.iter().position(|(known, _)| *known == cause);
            &meter.whole[role][at.unwrap_or(0)]
        };
        for ((cause, what), repeat) in CAUSES.iter().zip(&meter.repeats) {
            if matches!(
                cause,
                Cause::Data
                    | Cause::Coded
                    | Cause::Plan
                    | Cause::Ctrl
                    | Cause::Nack
                    | Cause::Survey
            ) {
                // The slots of a plan's flood have time for its checks.
                let limit = match cause {
                    Cause::Plan => TURN + FLOOD_CHECK,
                    _ => TURN,
                };
                judge("relay, until it can repeat a", what, repeat, limit);
            }
        }
        judge(
            "source, while a frame is on the air,",
            "its next one",
            path(0, Cause::Ahead),
            AIRTIME,
        );
        judge(
            "destination, before the next frame has come,",
            "DATA",
            path(2, Cause::Data),
            CYCLE,
        );
    }

    fn judge(who: &str, what: &str, path: &Path, budget: u64) {
        let cycles = path.cycles;
        let _ = write!(
            Console,
            "# {who} {what}: {path}; {cycles} cycles of {budget}"
        );
        let own = cycles - path.blocks * BLOCK;
        if path.blocks > 0 {
            let us = budget.saturating_sub(own) * 10 / path.blocks / CYCLES;
            let _ = write!(Console, ", met up to {}.{} us a block", us / 10, us % 10);
        }
        let _ = writeln!(Console);
        if cycles > budget {
            let _ = writeln!(Console, "# missed: {who} {what}");
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
