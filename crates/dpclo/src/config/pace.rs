//! How often a node tells of itself: what changes with the size of a mesh while it runs.

use chappe_core::Duration;

use super::Settings;

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
    /// The shortest time between two probes or two full updates, as in [`Settings::check`](Settings::check).
    const LEAST: Duration = Duration::from_millis(1);
}

impl Settings {
    /// Sets how often the node tells of itself.
    pub fn set_pace(&mut self, pace: Pace) {
        self.probes.interval = pace.probe.max(Pace::LEAST);
        let routing = &mut self.routing;
        routing.period = pace.period.max(Pace::LEAST);
        (routing.gap, routing.settle) = (pace.gap, pace.settle);
        (routing.patience, routing.reach_repeats) = (pace.patience, pace.reach_repeats);
    }
}
