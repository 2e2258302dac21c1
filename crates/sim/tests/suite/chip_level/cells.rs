//! Settings in which the model of synchronous transmissions and the chip-level simulation are compared.
#![allow(dead_code, reason = "the tests and the example use different parts")]

use chappe_core::Stream;

/// How relays are spread in one cell.
#[derive(Clone, Copy, Debug)]
pub enum Spread {
    /// Two, this far apart in microseconds.
    Apart(f64),
    /// Relays after so many hops of jitter: each adds a tick of up to 0.238 us (a processor at 4.19 MHz) and a
    /// sample of up to 0.125 us (a radio at 8 MHz); paths add up to 0.1 us.
    Hops(u32),
}

/// How carriers differ in one cell.
#[derive(Clone, Copy, Debug)]
pub enum Carriers {
    /// Two, this many hertz apart.
    Apart(f64),
    /// Normal with this many ppm of 2.44 GHz.
    Crystals(f64),
}

/// One setting of a joint reception: relays, delays, carriers, powers.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub relays: usize,
    pub spread: Spread,
    pub carriers: Carriers,
    /// How many dB relays after the first are weaker.
    pub weaker: f64,
    /// Whether powers are exponentially distributed (Rayleigh).
    pub faded: bool,
    /// Power of each relay over noise in dB, the mean where faded.
    pub db: f64,
    pub octets: usize,
}

/// One draw of a cell: (power, offset in hertz, arrival in microseconds, phase) of each relay.
pub type Draw = Vec<(f64, f64, f64, f64)>;

impl Cell {
    const TWO: Cell = Cell {
        relays: 2,
        spread: Spread::Apart(0.1),
        carriers: Carriers::Crystals(10.0),
        weaker: 0.0,
        faded: false,
        db: 20.0,
        octets: 127,
    };

    pub fn draw(&self, random: &mut Stream) -> Draw {
        let mut signals: Draw = (0..self.relays)
            .map(|relay| {
                let fade = if self.faded {
                    random.exponential()
                } else {
                    1.0
                };
                let lower = if relay == 0 { 0.0 } else { self.weaker };
                let offset = match self.carriers {
                    Carriers::Apart(hertz) => hertz * (relay as f64 - 0.5),
                    Carriers::Crystals(ppm) => random.normal() * ppm * 2440.0,
                };
                let arrival = match self.spread {
                    Spread::Apart(micros) => micros * relay as f64,
                    Spread::Hops(hops) => {
                        let hop = |_| 0.238 * random.fraction() + 0.125 * random.fraction();
                        (0..hops).map(hop).sum::<f64>() + 0.1 * random.fraction()
                    }
                };
                let phase = 2.0 * std::f64::consts::PI * random.fraction();
                (fade * 10f64.powf(-lower / 10.0), offset, arrival, phase)
            })
            .collect();
        let first = signals.iter().map(|s| s.2).fold(f64::INFINITY, f64::min);
        signals.iter_mut().for_each(|s| s.2 -= first);
        signals
    }

    /// The cells on which constants are fitted.
    pub fn fitted() -> Vec<Cell> {
        let mut cells = Vec::new();
        for octets in [8, 127] {
            for apart in [0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 2.0] {
                let spread = Spread::Apart(apart);
                cells.push(Cell {
                    spread,
                    octets,
                    ..Cell::TWO
                });
            }
            for hertz in [50.0, 200.0, 1000.0, 2000.0, 10_000.0] {
                let carriers = Carriers::Apart(hertz);
                cells.push(Cell {
                    carriers,
                    octets,
                    ..Cell::TWO
                });
            }
            for (relays, hops, ppm) in [
                (2, 1, 1.0),
                (3, 3, 1.0),
                (8, 1, 5.0),
                (8, 3, 1.0),
                (2, 3, 5.0),
                (3, 1, 5.0),
            ] {
                for db in [10.0, 20.0] {
                    let (spread, carriers) = (Spread::Hops(hops), Carriers::Crystals(ppm));
                    cells.push(Cell {
                        relays,
                        spread,
                        carriers,
                        octets,
                        db,
                        ..Cell::TWO
                    });
                }
            }
        }
        for weaker in [1.0, 2.0, 3.0] {
            let (spread, carriers) = (Spread::Apart(0.25), Carriers::Crystals(2.0));
            cells.push(Cell {
                weaker,
                spread,
                carriers,
                ..Cell::TWO
            });
        }
        cells
    }

    /// More of them for the receiver that adds a symbol's chips up, which slow beats hurt: little noise, carriers one and
    /// three kilohertz apart.
    pub fn fitted_slow() -> Vec<Cell> {
        let mut cells = Vec::new();
        for octets in [8, 60] {
            for apart in [0.0, 0.15, 0.3, 0.45, 0.6] {
                for (weaker, hertz) in [(0.0, 3000.0), (1.0, 1000.0), (2.0, 3000.0)] {
                    let (spread, carriers) = (Spread::Apart(apart), Carriers::Apart(hertz));
                    cells.push(Cell {
                        weaker,
                        spread,
                        carriers,
                        octets,
                        db: 30.0,
                        ..Cell::TWO
                    });
                }
            }
        }
        cells
    }

    /// Others, on which the error is measured.
    pub fn held_out() -> Vec<Cell> {
        let mut cells = Vec::new();
        for octets in [8, 40, 127] {
            for hertz in [500.0, 5000.0, 20_000.0] {
                let carriers = Carriers::Apart(hertz);
                cells.push(Cell {
                    carriers,
                    octets,
                    ..Cell::TWO
                });
            }
            for relays in [2, 4, 8] {
                for hops in [1, 3, 6] {
                    let (spread, carriers) = (Spread::Hops(hops), Carriers::Crystals(2.0));
                    let faded = Cell {
                        relays,
                        spread,
                        carriers,
                        octets,
                        faded: true,
                        db: 10.0,
                        ..Cell::TWO
                    };
                    cells.push(faded);
                }
            }
            for hops in [2, 4] {
                let (spread, carriers) = (Spread::Hops(hops), Carriers::Crystals(3.0));
                cells.push(Cell {
                    relays: 5,
                    spread,
                    carriers,
                    octets,
                    db: 12.0,
                    ..Cell::TWO
                });
            }
        }
        for (weaker, apart) in [(0.5, 0.1), (1.5, 0.4), (2.0, 0.6), (3.0, 0.0)] {
            let (spread, carriers) = (Spread::Apart(apart), Carriers::Crystals(2.0));
            cells.push(Cell {
                weaker,
                spread,
                carriers,
                db: 15.0,
                ..Cell::TWO
            });
        }
        cells
    }
}
