//! What a path loses by itself, as opposed to what a full queue drops.
//!
//! No loss says where it comes from. A queue that overflows drops more while it does, so the least losses of some ten seconds are the
//! path's own. If a pace is cut because more is lost and just as much is lost afterwards, the path itself loses more than before.

use chappe_core::{Duration, Instant};

/// Least frames and time of a stretch whose losses are compared: about as many as the estimate of a channel needs, and half a second.
const FRAMES: f64 = 100.0;
const SPAN: Duration = Duration::from_millis(500);
/// How long the least losses count, at least (BBR's minima: 10 s).
const KEPT: Duration = Duration::from_secs(10);
/// Standard deviations by which more must be lost: by chance they are once in 740 times (normal distribution).
const DEVIATIONS: f64 = 3.0;
/// The least of some twenty stretches lies about so many standard deviations below their mean (normal distribution).
const BELOW: f64 = 1.5;
/// The longest mean run of losses that counts as chance: a queue or an outage makes longer ones.
const RUN_MOST: f64 = 10.0;
/// The largest share that counts as a path's own.
const MOST: f64 = 0.9;

/// Frames, and those of them that are lost.
type Counts = (f64, f64);

#[derive(Clone, Debug)]
pub(super) struct Losses {
    open: Counts,
    /// Whether a burst may have overflowed in it.
    burst: bool,
    open_at: Instant,
    /// The least share in the present stretch of [`KEPT`] and in the one before.
    least: [Option<f64>; 2],
    since: Instant,
}

impl Losses {
    pub fn new() -> Losses {
        Losses {
            open: (0.0, 0.0),
            burst: false,
            open_at: Instant::ZERO,
            least: [None; 2],
            since: Instant::ZERO,
        }
    }

    /// Of `all` frames `lost` are lost, in runs of `run` on average. `burst`: a burst may have overflowed.
    pub fn note(&mut self, now: Instant, (all, lost): Counts, run: f64, burst: bool) {
        self.burst |= burst;
        self.open = (self.open.0 + all, self.open.1 + lost);
        let long = now.saturating_since(self.open_at) >= SPAN;
        if !long || self.open.0 < FRAMES {
            return;
        }
        let (all, lost) = self.open;
        let share = lost / all;
        let usual = share + BELOW * spread(all, share, run) / all;
        if now.saturating_since(self.since) >= KEPT {
            (self.least, self.since) = ([None, self.least[0]], now);
        }
        let least = self.least[0].map_or(usual, |least| least.min(usual));
        self.least[0] = Some(least);
        (self.open, self.open_at, self.burst) = ((0.0, 0.0), now, false);
    }

    /// The share that the path loses by itself.
    pub fn own(&self) -> f64 {
        let least = self.least.into_iter().flatten().reduce(f64::min);
        let first = || self.open.1 / self.open.0.max(1.0);
        least
            .unwrap_or_else(|| if self.burst { 0.0 } else { first() })
            .min(MOST)
    }

    /// Whether more is lost than by chance.
    pub fn exceeds(&self, (all, lost): Counts, run: f64) -> bool {
        let own = self.own();
        lost - all * own > DEVIATIONS * spread(all, own, run) + run.clamp(1.0, RUN_MOST)
    }

    /// The path loses so many now.
    pub fn learn(&mut self, now: Instant, (all, lost): Counts) {
        (self.least, self.since) = ([Some(lost / all.max(1.0)), None], now);
        (self.open, self.open_at) = ((0.0, 0.0), now);
    }
}

/// The standard deviation of how many of `all` frames are lost. Losses in runs vary as fewer independent ones do.
fn spread(all: f64, share: f64, run: f64) -> f64 {
    let runs = 2.0 * run.clamp(1.0, RUN_MOST) - 1.0;
    (all * share * (1.0 - share) * runs).sqrt()
}
