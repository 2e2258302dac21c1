//! The spreading of one transmission over a row of links: who it arrives at, how strongly, how late.

use std::ops::Range;

use crate::arrival::Arrival;
use crate::fading::{Block, FEW, Fader, Pair};
use crate::id::NodeId;
use crate::links::Links;
use crate::{AirTime, Fading, Power};

/// A transmission, as far as the medium must know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) source: NodeId,
    pub(crate) channel: u8,
    pub(crate) begin: AirTime,
    /// Power over the source's usual power.
    pub(crate) scale: f64,
    /// The source's own count of frames.
    pub(crate) number: u64,
    pub(crate) octets: usize,
}

/// What became of a transmission.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    /// Its signals are those of a row of a table.
    pub(crate) row: Option<SteadyRow>,
    /// Delay at the last receiver.
    pub(crate) latest: u32,
    /// How many signals that a link exists for vanished.
    pub(crate) vanished: u64,
}

/// A row of [`Links::steady`], and which table it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyRow {
    pub(crate) table: u8,
    pub(crate) first: u32,
    pub(crate) end: u32,
}

/// The ratio of a link that is sensed and never delivers.
pub(crate) const NEVER: f32 = -1.0;
/// Links of one transmitter under one vanishing point.
pub(crate) struct Row<'a> {
    pub(crate) table: &'a Links,
    pub(crate) from: NodeId,
    pub(crate) vanish: Power,
}

impl Row<'_> {
    /// Appends the links whose power does not vanish under a law of fading: those near, and those far, whose signals mostly vanish.
    #[inline]
    pub(crate) fn fill_by(
        &self,
        law: Fading,
        (near, far): (Range<usize>, Range<usize>),
        arrivals: &mut Vec<Arrival>,
        (fader, block): (&Fader, Block),
        scale: f64,
    ) {
        match law {
            Fading::None if self.table.is_steady() => {
                self.fill_steady(near.start..far.end, arrivals, scale);
            }
            Fading::None => self.fill(near.start..far.end, arrivals, |_, mean| mean * scale),
            Fading::Rayleigh => {
                let gain = |bits| fader.rayleigh(bits) * scale;
                self.fill_fading((near, far), arrivals, (fader, block), gain);
            }
            Fading::GlomosimRayleigh | Fading::Rician { .. } => {
                let gain = |bits| fader.gain_of(bits) * scale;
                self.fill_fading((near, far), arrivals, (fader, block), gain);
            }
        }
    }

    #[inline]
    fn fill_fading(
        &self,
        (near, far): (Range<usize>, Range<usize>),
        arrivals: &mut Vec<Arrival>,
        (fader, block): (&Fader, Block),
        gain: impl Fn(u64) -> f64,
    ) {
        self.fill(near, arrivals, |pair, mean| {
            mean * gain(fader.bits(block, pair))
        });
        self.fill_far(far, arrivals, (fader, block), gain);
    }

    /// Appends the links whose power does not vanish. No branch depends on the fade: which signals vanish is random, and a
    /// misprediction costs more than a store.
    #[inline]
    fn fill(
        &self,
        links: Range<usize>,
        arrivals: &mut Vec<Arrival>,
        power: impl Fn(Pair, f64) -> f64,
    ) {
        let (table, mut room) = (self.table, [Arrival::default(); FEW]);
        for first in links.clone().step_by(FEW) {
            let few = first..links.end.min(first + FEW);
            let columns = table.pair[few.clone()]
                .iter()
                .zip(&table.delay[few.clone()])
                .zip(&table.mean[few]);
            let mut count = 0;
            for ((&pair, &delay), &mean) in columns {
                let power = Power::rounded_down(power(pair, mean));
                // Every link is stored; one that vanishes is overwritten by the next.
                room[count % FEW] = Arrival {
                    receiver: pair.other(self.from),
                    delay,
                    power,
                };
                count = count.wrapping_add(usize::from(power >= self.vanish));
            }
            arrivals.extend_from_slice(&room[..count.min(FEW)]);
        }
    }

    /// The same for a table whose links do not fade.
    fn fill_steady(&self, links: Range<usize>, arrivals: &mut Vec<Arrival>, scale: f64) {
        let table = self.table;
        let steady = table.steady[links.clone()].iter();
        let scaled = steady
            .zip(&table.mean[links])
            .map(|(arrival, mean)| Arrival {
                power: Power::rounded_down(mean * scale),
                ..*arrival
            });
        arrivals.extend(scaled.filter(|arrival| arrival.power >= self.vanish));
    }

    /// The same for links whose signals mostly vanish: their random bits show it, before any logarithm. The bits of the few
    /// others are worked out again.
    #[inline]
    fn fill_far(
        &self,
        links: Range<usize>,
        arrivals: &mut Vec<Arrival>,
        (fader, block): (&Fader, Block),
        gain: impl Fn(u64) -> f64,
    ) {
        let (table, mut places) = (self.table, [0; FEW]);
        for first in links.clone().step_by(FEW) {
            let few = first..links.end.min(first + FEW);
            let (pairs, least) = (&table.pair[few.clone()], &table.least[few]);
            let count = fader.reached(block, pairs, least, &mut places);
            for &place in &places[..count] {
                let link = first + usize::from(place);
                let pair = table.pair[link];
                let bits = fader.bits(block, pair);
                // `least` errs on the low side, so the power is still compared.
                let power = Power::rounded_down(table.mean[link] * gain(bits));
                if power >= self.vanish {
                    arrivals.push(Arrival {
                        receiver: pair.other(self.from),
                        delay: table.delay[link],
                        power,
                    });
                }
            }
        }
    }
}
