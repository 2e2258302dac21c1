//! How often a node tells of itself: what changes with the size of a mesh while it runs.

use chappe_core::{Duration, Instant};

use super::Router;

/// How often a node tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The mean time between two probes: [`Probes::interval`](crate::Probes::interval). Of neighbours the same is expected: a probe of
    /// theirs that comes later counts as lost.
    pub probe: Duration,
    /// The time between two full updates: [`Routing::period`](crate::Routing::period). Of all nodes the same is expected: their routes are
    /// lost after some periods.
    pub period: Duration,
    /// The least time between two updates: [`Routing::gap`](crate::Routing::gap).
    pub gap: Duration,
    /// How long a newer number waits: [`Routing::settle`](crate::Routing::settle).
    pub settle: Duration,
    /// How long an idle request waits: [`Routing::patience`](crate::Routing::patience).
    pub patience: Duration,
    /// How often news of reachability are repeated: [`Routing::reach_repeats`](crate::Routing::reach_repeats).
    pub reach_repeats: u8,
}

impl Pace {
    /// The shortest time between two probes or two full updates, as in [`Settings::check`](crate::Settings::check).
    const LEAST: Duration = Duration::from_millis(1);
}

impl Router {
    /// The number of destinations that this node has heard of, reachable or not, with itself.
    pub fn known(&self) -> usize {
        self.routes.count()
    }

    /// Changes how often the node tells of itself from now on. What is due later than the new times allow comes sooner, at random, so that
    /// nodes which learn the same at once do not send together.
    pub fn set_pace(&mut self, now: Instant, pace: Pace) {
        let (probe, period) = (pace.probe.max(Pace::LEAST), pace.period.max(Pace::LEAST));
        self.settings.probes.interval = probe;
        let routing = &mut self.settings.routing;
        routing.period = period;
        (routing.gap, routing.settle) = (pace.gap, pace.settle);
        (routing.patience, routing.reach_repeats) = (pace.patience, pace.reach_repeats);
        self.links.set_interval(probe);
        self.routes.set_period(period);
        self.come_sooner(now);
    }
}
