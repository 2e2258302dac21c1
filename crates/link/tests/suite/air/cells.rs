//! Paths on which a transfer is judged, and what plain TCP would get there.
//!
//! Plain cubic is simulated over the same medium with the same seed (`plain.rs`). BBR is computed, generously: whatever is not lost, up
//! to the loss at which its gain of 1.25 is used up (20 %), less the 2 % that probing the round trip costs; and a fifth of it beyond that
//! loss. Neither is known where frames overtake each other: what reordering costs plain TCP depends on too much.
//!
//! Other tunnels are compared by a formula of cubic as well, which is more generous: the mean window of RFC 9438, 5.1, under independent
//! losses, or that of Reno where it is larger (RFC 9438, 4.3), at most the rate.

use std::fmt;

use chappe_core::{Bitrate, Duration};

use super::{Air, Books, PAYLOAD, plain, run_after};

/// A path with a name.
#[derive(Clone, Debug)]
pub struct Cell {
    pub name: String,
    pub air: Air,
    pub secs: u64,
    /// Mean of (1 - p) C over the measured time.
    pub bound: f64,
}

/// What a transfer got on it.
#[derive(Clone, Debug)]
pub struct Row {
    pub cell: Cell,
    pub books: Books,
    /// What plain cubic got, bit/s.
    pub cubic: f64,
}

/// Bits of a ping with Ethernet's header. Both classes are pinged.
const PING: f64 = (84.0 + 14.0) * 8.0;
/// Octets of the frame of a ping: 84 of its own, and 78 of the link, IP, UDP and Ethernet.
const PING_FRAME: u64 = 162;
/// What a ping may take beyond 1.5 round trips.
const PING_EXTRA: Duration = Duration::from_millis(20);
/// Full frames at least in the time that is measured: a run of 800 loses by chance some per cent more at its end than at its begin.
const FRAMES: u64 = 4_000;
/// Share of (1 - p) C that a transfer must get.
const SHARE: f64 = 0.95;
/// Share of the better plain TCP.
const OF_PLAIN: f64 = 0.97;

impl Cell {
    pub fn new(rate: u64, round_trip: u64, loss: u64) -> Cell {
        // As often as ping does; more often where that is no burden, to have more of them.
        let ping_every = Duration::from_millis(if rate > 1 { 500 } else { 1_000 });
        let air = Air {
            ping_every,
            ..Air::path(
                Bitrate(rate * 1_000_000),
                Duration::from_millis(round_trip),
                loss as f64 / 100.0,
            )
        };
        Cell {
            name: format!("{rate}Mbit/s {round_trip}ms {loss}%"),
            secs: (8 + round_trip / 25).max(FRAMES * 1514 * 8 / (rate * 1_000_000)),
            // Beside the pings, which plain TCP has to share the path with as well.
            bound: (1.0 - air.loss) * (air.capacity() - 2.0 * PING / ping_every.as_secs_f64()),
            air,
        }
    }

    fn with(mut self, name: &str, change: impl FnOnce(&mut Air)) -> Cell {
        self.name += " ";
        self.name += name;
        change(&mut self.air);
        self
    }

    pub fn bursts(self) -> Cell {
        self.with("bursts", |air| air.burst = 4.0)
    }

    fn jitter(self, millis: u64) -> Cell {
        self.with(&format!("jitter {millis}ms"), |air| {
            air.jitter = Duration::from_millis(millis);
        })
    }

    pub fn found(self) -> Cell {
        self.with("found", |air| air.told = false)
    }

    fn hogs(self) -> Cell {
        self.with("hogs", |air| {
            air.late = Some((Duration::from_millis(10), Duration::from_millis(50)));
        })
    }

    fn stalling(self) -> Cell {
        self.with("stalling", |air| {
            air.stall = Some((Duration::from_millis(2_500), Duration::from_millis(700)));
        })
    }

    pub fn measure(&self, seed: u64) -> Row {
        let settled = 2_000 + self.air.delay.nanos() / 1_000_000 * 20;
        Row {
            cell: self.clone(),
            books: run_after(self.air, seed, settled, self.secs),
            cubic: self.cubic(seed, settled),
        }
    }

    /// What plain cubic gets of the same path, beside the pings and between the pauses of the hosts. Late turns cost it nothing here.
    fn cubic(&self, seed: u64, settled: u64) -> f64 {
        if self.air.jitter > Duration::ZERO {
            return 0.0;
        }
        let pings = 2.0 * PING / self.air.ping_every.as_secs_f64();
        let beside = 1.0 - pings / self.air.capacity();
        let awake = self.air.stall.map_or(1.0, |(every, length)| {
            every.as_secs_f64() / (every + length).as_secs_f64()
        });
        plain::cubic(self.air, seed, settled, self.secs) * beside * awake
    }

    /// The share of pings that could be in time at most, whatever a tunnel does that neither interrupts a frame nor leaves the path
    /// idle: a ping waits for the frame that is leaving, then as many copies of it leave as still come in time. Where turns are late,
    /// it waits for the rest of one at the receiver, whose turns follow each other.
    pub fn pings_possible(&self) -> f64 {
        const STEPS: u64 = 200;
        let air = &self.air;
        let time = |octets: u64| air.rate.time_of(octets * 8).as_secs_f64();
        let left = (air.delay + PING_EXTRA).as_secs_f64();
        let chance = |turn: f64| {
            let per_start = (0..STEPS).map(|step| {
                let leaving = time(1514) * (step as f64 + 0.5) / STEPS as f64;
                let copies = ((left - turn - leaving) / time(PING_FRAME)).floor();
                let again = match air.burst {
                    0.0 => air.loss,
                    burst => 1.0 - 1.0 / burst,
                };
                match copies < 1.0 {
                    true => 0.0,
                    false => 1.0 - air.loss * again.powf(copies - 1.0),
                }
            });
            per_start.sum::<f64>() / STEPS as f64
        };
        let Some((least, most)) = air.late else {
            return chance(0.0);
        };
        // The rest of a turn of uniform length, found at a random moment: its density falls as longer turns become fewer.
        let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
        let weigh = |rest: f64| ((most - rest) / (most - least)).min(1.0);
        let rests = (0..STEPS).map(|step| most * (step as f64 + 0.5) / STEPS as f64);
        let (sum, all) = rests.fold((0.0, 0.0), |(sum, all), rest| {
            (sum + weigh(rest) * chance(rest), all + weigh(rest))
        });
        sum / all
    }

    /// What plain cubic and plain BBR would get at most, by the formulas.
    pub fn plain(&self) -> (f64, f64) {
        if self.air.jitter > Duration::ZERO {
            return (0.0, 0.0);
        }
        plain_at(self.bound, self.air.delay * 2, self.air.loss)
    }
}

/// What cubic and BBR get of a path with this bound, round trip and loss.
pub fn plain_at(bound: f64, round_trip: Duration, loss: f64) -> (f64, f64) {
    let round_trip = round_trip.as_secs_f64();
    let per_segment = PAYLOAD as f64 * 8.0 / round_trip;
    let some = loss.max(1e-9);
    let cubic = (0.4 * (3.0 + 0.7) / (4.0 * (1.0 - 0.7))) * (round_trip / some).powi(3);
    let reno = (1.5 / some).sqrt();
    let window = cubic.powf(0.25).max(reno);
    let cubic = (window * per_segment).min(bound);
    let bbr = match loss > 0.2 {
        true => bound * 0.2,
        // 200 ms of each 10 s with four segments under way (BBR's ProbeRTT).
        false => bound * 0.98,
    };
    (cubic, bbr)
}

impl Row {
    /// How many pings beside the transfer took at most 1.5 round trips and 20 ms, and how many there were, those that were lost included;
    /// `None` where frames are late by chance. The way back, which is nearly idle, counts as half a round trip.
    pub fn pings_in_time(&self) -> Option<(usize, usize)> {
        let none = self.cell.air.jitter == Duration::ZERO;
        none.then_some(self.books.probes[0].in_time)
    }

    /// The bound with the share of frames that the medium did lose: a run of ten seconds at 1 Mbit/s has 800 frames, of which chance
    /// loses some per cent more or fewer than it should.
    fn bound(&self) -> f64 {
        let air = &self.cell.air;
        match air.steps.is_empty() {
            true => self.cell.bound * (1.0 - self.books.lost) / (1.0 - air.loss),
            false => self.cell.bound,
        }
    }

    pub fn share(&self) -> f64 {
        self.books.goodput / self.bound()
    }

    /// What plain TCP would get with these losses.
    fn plain(&self) -> (f64, f64) {
        let luck = self.bound() / self.cell.bound;
        (self.cubic.min(self.bound()), self.cell.plain().1 * luck)
    }

    /// What the transfer got, as a share of what the cell demands.
    pub fn of_goal(&self) -> f64 {
        let (cubic, bbr) = self.plain();
        let of_plain = self.books.goodput / (OF_PLAIN * cubic.max(bbr));
        (self.share() / SHARE).min(of_plain)
    }

    /// Whether the transfer got what the cell demands.
    pub fn is_met(&self) -> bool {
        self.of_goal() >= 1.0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cubic, bbr) = self.plain();
        let books = &self.books;
        let ping = books.probes[0];
        write!(
            f,
            "{:36} | {:7.3} {:6.1} % | {:6.2} {:6.2} | {:5.3} ({:5.3}): {:5.3} {:5.3} {:5.3} | {:6.2} | {:5.0} {:5.0} {:3.0} % | {}",
            self.cell.name,
            books.goodput / 1e6,
            self.share() * 100.0,
            cubic / 1e6,
            bbr / 1e6,
            1.0 / books.first.max(1e-9),
            1.0 / (1.0 - self.cell.air.loss),
            books.again / books.first.max(1e-9),
            books.repairs / books.first.max(1e-9),
            books.fills / books.first.max(1e-9),
            books.pace / 1e6,
            ping.mean.as_secs_f64() * 1e3,
            ping.most.as_secs_f64() * 1e3,
            100.0 - 100.0 * ping.arrived as f64 / ping.sent.max(1) as f64,
            if self.is_met() { "met" } else { "NOT MET" },
        )
    }
}

/// All cells: every rate, round trip and loss, with their variants.
pub fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate in [1, 6, 100] {
        for round_trip in [2, 20, 100, 300, 600] {
            for loss in [0, 1, 5, 15, 30] {
                let cell = Cell::new(rate, round_trip, loss);
                cells.push(cell.clone());
                if loss > 0 {
                    cells.push(cell.clone().bursts());
                }
                if loss <= 5 && round_trip <= 300 {
                    cells.extend([10, 30].map(|millis| cell.clone().jitter(millis)));
                }
                cells.push(cell.found());
            }
        }
    }
    cells.extend(others());
    cells
}

/// Paths that differ back and forth, change, or end at hosts that stand still now and then.
fn others() -> Vec<Cell> {
    let uneven = |loss| {
        Cell::new(20, 40, loss).with("back 2Mbit/s", |air| air.back = Some(Bitrate(2_000_000)))
    };
    let mut cells: Vec<Cell> = [0, 5, 30].map(uneven).into();
    cells.push(uneven(1).found());
    cells.push(stepped(6, 1, 0.0));
    cells.push(stepped(6, 1, 0.05));
    cells.push(Cell::new(6, 20, 0).with("loss 0-30-0%", |air| {
        air.steps = const {
            &[
                (Duration::from_secs(4), Bitrate(6_000_000), 0.3),
                (Duration::from_secs(7), Bitrate(6_000_000), 0.0),
            ]
        };
    }));
    if let Some(last) = cells.last_mut() {
        // From the third second to the eleventh.
        let clean = last.air.capacity();
        (last.secs, last.bound) = (8, clean * (5.0 + 3.0 * 0.7) / 8.0);
    }
    for round_trip in [20, 300] {
        cells.push(Cell::new(6, round_trip, 5).stalling());
        cells.push(Cell::new(6, round_trip, 5).stalling().found());
    }
    for rate in [1, 6] {
        for round_trip in [20, 100, 300] {
            for loss in [0, 5] {
                cells.push(Cell::new(rate, round_trip, loss).hogs());
                cells.push(Cell::new(rate, round_trip, loss).hogs().found());
            }
        }
    }
    for cell in cells.iter_mut().filter(|cell| cell.air.stall.is_some()) {
        // 2.5 s of each 3.2.
        cell.bound *= 2.5 / 3.2;
        cell.secs = 16;
    }
    cells
}

/// A rate that falls and comes back, without being told.
fn stepped(high: u64, low: u64, loss: f64) -> Cell {
    let mut cell = Cell::new(high, 20, 0)
        .found()
        .with("rate 6-1-6Mbit/s", |air| {
            air.loss = loss;
            air.steps = match loss > 0.0 {
                false => {
                    const {
                        &[
                            (Duration::from_secs(6), Bitrate(1_000_000), 0.0),
                            (Duration::from_secs(14), Bitrate(6_000_000), 0.0),
                        ]
                    }
                }
                true => {
                    const {
                        &[
                            (Duration::from_secs(6), Bitrate(1_000_000), 0.05),
                            (Duration::from_secs(14), Bitrate(6_000_000), 0.05),
                        ]
                    }
                }
            };
        });
    cell.name += &format!(" {:.0}%", loss * 100.0);
    let share = (12.0 + low as f64 / high as f64 * 8.0) / 20.0;
    (cell.secs, cell.bound) = (20, (1.0 - loss) * cell.air.capacity() * share);
    cell
}

/// The cells that the tests run.
pub fn short() -> Vec<Cell> {
    vec![
        Cell::new(6, 2, 5),
        Cell::new(6, 20, 0).found(),
        Cell::new(6, 20, 30).bursts(),
        Cell::new(6, 20, 0).jitter(30),
        Cell::new(6, 100, 5).found(),
        Cell::new(6, 300, 1),
        Cell::new(6, 600, 5),
        Cell::new(6, 600, 30),
        Cell::new(1, 100, 15),
        Cell::new(100, 20, 0).jitter(10),
        Cell::new(100, 100, 1),
        Cell::new(6, 20, 5).stalling(),
    ]
    .into_iter()
    .map(|mut cell| {
        if cell.air.stall.is_some() {
            (cell.secs, cell.bound) = (16, cell.bound * 2.5 / 3.2);
        }
        cell
    })
    .collect()
}
