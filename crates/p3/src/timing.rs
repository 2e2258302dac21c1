//! Airtime, cycle and predicted durations: pure arithmetic, to the nanosecond.

use chappe_core::{Duration, Mode, Rate};

use crate::sizes::{FCS_LEN, HEADER_LEN, PAYLOAD_MAX, SHORT_HEADER_LEN};

/// How every frame is sent: 2.4 GHz O-QPSK, 250 kbit/s.
pub const MODE: Mode = Mode::long(Rate::Oqpsk250);

/// Time on air of a frame of `len` octets without its check sequence: 32 us per octet, and 192 us before the first.
pub const fn airtime(len: usize) -> Duration {
    MODE.airtime(len + FCS_LEN)
}

/// The parts of a cycle. All nodes of a network must have the same profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Time that a node of a plan's flood has beyond the turnaround to check a plan and to make the tag of its slot.
    pub flood_check: Duration,
    /// Between receiving and sending: 12 symbols of 16 us (IEEE 802.15.4-2006, aTurnaroundTime).
    pub turnaround: Duration,
    /// Software and FIFO delay on top of it.
    pub software: Duration,
    /// From the end of a frame of the source to its next one with three groups, which leave the source no turnaround to
    /// wait for.
    pub source_gap: Duration,
    /// Time in a cycle of two groups beyond a hop's: a relay that is late by as much still turns around in time.
    pub relay_slack: Duration,
    /// Octets of header of a DATA frame.
    pub header: usize,
    /// The time that relays need to change their sending channel at a CTRL; the destination waits for it.
    pub turn_relays: Duration,
    /// The source's pause between a NACK and the next round.
    pub turn_source: Duration,
    /// The time of a whole transfer beside its packets. A prediction; no node reads it.
    pub line: Line,
}

/// Ticks of the TelosB's 4.19 MHz oscillator (2^22 Hz).
const fn splash_ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks * 1_000_000_000 / 4_194_304)
}

impl Profile {
    /// The paper's implementation. 89 us of software make a full cycle 4.537 ms, from which its "effective
    /// rate" of 220.4 kbit/s for 125 octets follows. The line is a least-squares fit of its Table III.
    ///
    /// The pauses at a turn are those of the public code of Splash, on which P3 is built: 2 * 40,000 ticks at relays
    /// and 2 * 60,000 at the source, of a 4.19 MHz clock. That P3 kept them is our inference.
    pub const PAPER: Profile = Profile {
        flood_check: Duration::ZERO,
        turnaround: Duration::from_micros(192),
        software: Duration::from_micros(89),
        source_gap: Duration::from_micros(281),
        relay_slack: Duration::ZERO,
        header: HEADER_LEN,
        turn_relays: splash_ticks(80_000),
        turn_source: splash_ticks(120_000),
        line: Line::PAPER,
    };

    /// The standard's turnaround alone; relays and source change their channels within it, so a turn has no pause.
    ///
    /// A source that feeds three groups keeps its transmitter on, and leaves one symbol between two frames, so that the
    /// destination finds the end of the one before the next. Two groups need as much beyond the turnaround: a relay's
    /// start may be off by 0.5 us at each stage, and a radio that is not ready for a preamble misses the frame.
    ///
    /// A flood has another turnaround for its checks: 14 blocks of AES for the longest plan and its slots, 7 us each, and as much
    /// again for reading the plan.
    pub const IMPROVED: Profile = Profile {
        flood_check: Duration::from_micros(192),
        turnaround: Duration::from_micros(192),
        software: Duration::ZERO,
        source_gap: Duration::from_micros(16),
        relay_slack: Duration::from_micros(16),
        header: SHORT_HEADER_LEN,
        turn_relays: Duration::ZERO,
        turn_source: Duration::ZERO,
        line: Line::IMPROVED,
    };

    /// The same for a radio that needs at least `gap` from the end of a frame to the start of its next one.
    pub const fn with_gap(mut self, gap: Duration) -> Profile {
        if gap.nanos() > self.source_gap.nanos() {
            self.source_gap = gap;
        }
        self
    }

    /// From the end of a received frame to the start of its repetition.
    pub const fn gap(&self) -> Duration {
        Duration::from_nanos(self.turnaround.nanos() + self.software.nanos())
    }

    /// From the start of a frame of `len` octets to the start of its repetition one stage on.
    pub const fn slot(&self, len: usize) -> Duration {
        Duration::from_nanos(airtime(len).nanos() + self.gap().nanos())
    }

    /// From the end of a received plan to the start of its repetition.
    pub const fn flood_gap(&self) -> Duration {
        Duration::from_nanos(self.gap().nanos() + self.flood_check.nanos())
    }

    /// A slot of the flood of a plan whose frame has `len` octets.
    pub const fn flood_slot(&self, len: usize) -> Duration {
        Duration::from_nanos(airtime(len).nanos() + self.flood_gap().nanos())
    }

    /// The pipeline's cycle T_c for this payload: 4.537 ms for 118 octets in the paper's profile.
    pub const fn cycle(&self, payload: usize) -> Duration {
        self.slot(self.header + payload)
    }

    /// The time of one hop of a NACK, which may be longer than a DATA frame.
    pub const fn nack_slot(&self) -> Duration {
        self.slot(HEADER_LEN + PAYLOAD_MAX)
    }

    /// Payload bits per second of a source that sends in every cycle; in every second one it is half.
    pub fn ceiling_bps(&self, payload: usize) -> f64 {
        payload as f64 * 8.0 / self.cycle(payload).as_secs_f64()
    }

    /// The duration of a whole transfer of full frames by [`Profile::line`].
    pub fn predicted(&self, transmissions: u64, rounds: u64) -> Duration {
        self.line
            .duration(self.cycle(PAYLOAD_MAX), transmissions, rounds)
    }
}

/// The time of a transfer beside its packets: duration = set-up + cycle * transmissions + turn * (rounds - 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Wake-up flood, first packet's way through the pipeline, start-up.
    pub setup: Duration,
    /// From the last packet of a round to the first of the next, beside a cycle.
    pub turn: Duration,
}

impl Line {
    /// Fit of the paper's Table III with the cycle fixed at 4.537 ms; residuals below 34 ms.
    pub const PAPER: Line = Line {
        setup: Duration::from_millis(103),
        turn: Duration::from_micros(103_500),
    };

    /// The goal of the improved variant: the plan in one frame and one flood; turns as the state machines make them.
    pub const IMPROVED: Line = Line {
        setup: Duration::from_millis(60),
        turn: Duration::from_millis(64),
    };

    /// The predicted duration of a transfer; zero rounds count as one.
    pub fn duration(&self, cycle: Duration, transmissions: u64, rounds: u64) -> Duration {
        self.setup + cycle * transmissions + self.turn * rounds.saturating_sub(1)
    }
}

/// Slots of a wake-up flood in which a node `hops` from its root makes `repeats` transmissions, one in two slots:
/// the last one is slot `hops + 2 (repeats - 1)`, counted from 0.
pub const fn flood_slots(hops: u8, repeats: u8) -> u64 {
    let last = hops as u64 + 2 * (repeats as u64).saturating_sub(1);
    last + 1
}

/// Nodes in a transfer over `paths` node-distinct paths of `hops` hops (holds in each row of the paper's Table IV).
pub const fn active_nodes(paths: u64, hops: u64) -> u64 {
    paths
        .saturating_mul(hops.saturating_sub(1))
        .saturating_add(2)
}

/// Bits per second of `octets` per `period`.
pub fn rate_bps(octets: usize, period: Duration) -> f64 {
    octets as f64 * 8.0 / period.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn the_papers_cycle_is_right_to_the_microsecond() {
        assert_eq!(airtime(125), US(4256));
        assert_eq!(Profile::PAPER.gap(), US(281));
        assert_eq!(Profile::PAPER.cycle(118), US(4537));
        assert_eq!(Profile::IMPROVED.cycle(122), US(4448));
        // Wake-up of 35 relays over six hops.
        let slot = Profile::PAPER.slot(125);
        assert_eq!(slot * flood_slots(6, 3), US(11 * 4537));
    }

    /// Each entry of the table of ceilings, in tenths of kbit/s: cycle, octets, rate.
    #[test]
    fn ceilings_are_those_of_the_table() {
        let table = [
            (4256, 127, 2387),
            (4256, 125, 2350),
            (4256, 122, 2293),
            (4256, 118, 2218),
            (4296, 125, 2328),
            (4296, 122, 2272),
            (4296, 118, 2197),
            (4448, 125, 2248),
            (4448, 122, 2194),
            (4448, 118, 2122),
            (4537, 125, 2204),
            (4537, 122, 2151),
            (4537, 118, 2081),
            (2 * 4256, 118, 1109),
            (2 * 4448, 118, 1061),
            (2 * 4537, 118, 1040),
        ];
        for (cycle, octets, tenths) in table {
            let rate = rate_bps(octets, US(cycle)) / 100.0;
            assert!((rate - f64::from(tenths)).abs() < 1.0, "{octets} {rate}");
        }
        let ceiling = Profile::PAPER.ceiling_bps(118);
        assert!((ceiling - 208_067.0).abs() < 1.0, "{ceiling}");
    }

    /// Transmissions, rounds and goodput (bit/s) of the paper's Table III.
    const TABLE_3: [(u64, u64, f64); 10] = [
        (500, 1, 199_740.0),
        (554, 3, 165_320.0),
        (503, 2, 192_180.0),
        (619, 4, 147_130.0),
        (508, 2, 188_420.0),
        (637, 4, 142_940.0),
        (503, 2, 189_400.0),
        (553, 3, 166_960.0),
        (500, 1, 197_400.0),
        (569, 3, 162_980.0),
    ];

    #[test]
    fn the_line_meets_table_3_within_five_percent() {
        for (transmissions, rounds, goodput) in TABLE_3 {
            let measured = 59_000.0 * 8.0 / goodput;
            let ours = Profile::PAPER.predicted(transmissions, rounds);
            let residual = ours.as_secs_f64() - measured;
            assert!(residual.abs() < 0.034, "{residual}");
            assert!(residual.abs() < 0.05 * measured);
        }
    }

    #[test]
    fn active_nodes_are_those_of_table_4() {
        // Hops, paths and P3's active nodes of all 20 routes.
        let rows = "3 6 14, 5 6 26, 2 8 10, 5 7 30, 5 7 30, 4 7 23, 2 6 8, 4 9 29, 3 6 14, 4 6 20, \
                    6 7 37, 6 6 32, 5 6 26, 5 7 30, 5 7 30, 5 8 34, 4 10 32, 5 6 26, 5 7 30, 4 8 26";
        for row in rows.split(',') {
            let mut fields = row.split_whitespace().map(|n| n.parse::<u64>().unwrap());
            let mut next = || fields.next().unwrap();
            let (hops, paths, nodes) = (next(), next(), next());
            assert_eq!(active_nodes(paths, hops), nodes, "{row}");
        }
    }
}
