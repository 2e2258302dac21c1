//! What all decisions of a sender depend on: its configuration, the channel as estimated, and how long a round takes.

use chappe_core::{Duration, Instant};

use crate::config::{Config, Order, Recovery, Service};
use crate::estimate::Estimate;
use crate::gilbert::Channel;
use crate::paths::Paths;

#[derive(Clone, Debug)]
pub(super) struct Conditions {
    config: Config,
    paths: Paths<Path>,
    /// When the present slot began; `None` where there are no slots, and before the first one.
    slot_at: Option<Instant>,
}

/// The channel and the times of one path.
#[derive(Clone, Debug)]
struct Path {
    estimate: Estimate,
    /// From sending a frame to the report on it, and on to the next sending.
    round: Duration,
    /// From sending to arrival.
    one_way: Duration,
    /// The same without queues, where it is measured.
    free: Duration,
}

impl Default for Path {
    /// Guesses until the first measurement, or until the owner of the slots sets both.
    fn default() -> Path {
        Path {
            estimate: Estimate::default(),
            round: Duration::from_millis(50),
            one_way: Duration::from_millis(25),
            free: Duration::from_millis(25),
        }
    }
}

impl Conditions {
    pub fn new(config: Config) -> Conditions {
        Conditions {
            config,
            paths: Paths::one(Path::default()),
            slot_at: None,
        }
    }

    pub fn add_path(&mut self) {
        self.paths.push(Path::default());
    }

    /// Decides for this path from now on.
    pub fn select(&mut self, path: usize) {
        self.paths.select(path);
    }

    /// Forgets what was measured of the channels.
    pub fn forget_channels(&mut self) {
        for path in self.paths.iter_mut() {
            path.estimate = Estimate::default();
        }
    }

    /// What is known of the losses of a path.
    pub fn estimate_of(&self, path: usize) -> &Estimate {
        &self.paths.of(path).estimate
    }

    /// The channel of a path.
    pub fn channel_of(&self, path: usize) -> Channel {
        self.paths.of(path).estimate.channel()
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What a class is promised.
    pub fn service(&self, index: usize) -> Service {
        let services = &self.config.services;
        services.get(index).copied().unwrap_or(Service::RELIABLE)
    }

    pub fn set_service(&mut self, index: usize, to: Service) {
        if let Some(service) = self.config.services.get_mut(index) {
            *service = to;
        }
    }

    pub fn estimate(&self) -> &Estimate {
        &self.paths.estimate
    }

    pub fn estimate_mut(&mut self) -> &mut Estimate {
        &mut self.paths.estimate
    }

    pub fn round(&self) -> Duration {
        self.paths.round
    }

    pub fn one_way(&self) -> Duration {
        self.paths.one_way
    }

    pub fn set_round(&mut self, round: Duration, one_way: Duration) {
        (self.paths.round, self.paths.one_way) = (round, one_way);
    }

    /// Sets the one-way delay of the path without queues, where it is measured.
    pub fn set_path(&mut self, path: Duration) {
        self.paths.free = path;
    }

    /// Time from a packet's offer, or its first transmission, within which it should arrive.
    pub fn allowed(&self, service: &Service) -> Option<Duration> {
        let deadline = service.deadline?;
        if self.config.turns {
            return Some(deadline);
        }
        // The deadline of the class limits what queues and losses add. What the path takes is nobody's to give.
        Some(self.paths.free + deadline.max(self.paths.round * u64::from(service.rounds)))
    }

    pub fn begin_slot(&mut self, now: Instant) {
        self.slot_at = Some(now);
    }

    pub fn in_slots(&self) -> bool {
        self.slot_at.is_some()
    }

    /// Whether the controller plans the redundancy.
    pub fn is_planned(&self) -> bool {
        matches!(self.config.recovery, Recovery::Improved { .. })
    }

    /// Whether plans leave of a class what is promised and hardly less: only in slots, since elsewhere blocks are so large that they do so
    /// anyway; and not where packets wait for others in their order. Behind one that is lost, they are late as well.
    pub fn plans_exactly(&self, service: usize) -> bool {
        self.in_slots() && self.is_planned() && self.service(service).order == Order::None
    }

    /// Whether repairs are planned for cohorts: reports come all the time, and no slot divides them.
    pub fn has_cohorts(&self) -> bool {
        self.is_planned() && !self.in_slots()
    }

    /// Whether blocks are the paper's.
    pub fn has_fixed_blocks(&self) -> bool {
        matches!(self.config.recovery, Recovery::Blocks { .. })
    }

    /// Whether a block is a slot, as in the paper. The controller's blocks are rather what came together: a later packet
    /// has a later deadline.
    pub fn blocks_are_slots(&self) -> bool {
        self.in_slots() && self.has_fixed_blocks()
    }

    /// Whether lost bodies are sent again.
    pub fn repeats(&self) -> bool {
        match self.config.recovery {
            Recovery::None => false,
            Recovery::Acks | Recovery::Improved { .. } => true,
            Recovery::Blocks { repeat, .. } => repeat,
        }
    }

    /// Whether packets of a class may be cut: all of them arrive, in order, so that no part is sent in vain.
    pub fn cuts(&self, service: usize) -> bool {
        let promise = self.service(service);
        let whole = promise.drop_late || promise.retries.is_some();
        self.config.fragments && promise.order != Order::None && !whole
    }

    /// Whether the wire base may wait for reports on bodies of this class that were given up: only where that holds up
    /// nothing, since the packets need no order.
    pub fn allows_doubt(&self, service: usize) -> bool {
        self.has_cohorts() && self.service(service).order == Order::None
    }

    /// When the present round began. In slots that is one moment for all of the slot, since its frames share a report.
    fn round_began(&self, now: Instant) -> Instant {
        self.slot_at.unwrap_or(now)
    }

    /// Whether what is sent in the present round arrives too late anyway. It is repeated until it arrives, and repairs would
    /// hurry it for nothing.
    pub fn is_past(&self, now: Instant, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.round_began(now) + self.paths.one_way > deadline)
    }

    /// Whether sending a body again is of no use any more.
    pub fn is_late(&self, now: Instant, service: &Service, offered: Instant) -> bool {
        let deadline = self.allowed(service).filter(|_| service.drop_late);
        self.is_past(now, deadline.map(|deadline| offered + deadline))
    }

    /// Rounds that fit between the present one and the deadline; `u8::MAX` without a deadline. In slots rounds begin with
    /// slots: what is sent late in one has its next round as soon as what was sent first.
    pub fn rounds_left(&self, now: Instant, deadline: Option<Instant>) -> u8 {
        let Some(deadline) = deadline else {
            return u8::MAX;
        };
        let begin = self.round_began(now);
        let left = deadline
            .saturating_since(begin)
            .saturating_sub(self.paths.one_way);
        left.steps(self.paths.round).min(254) as u8
    }
}
