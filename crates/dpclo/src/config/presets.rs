//! Complete sets of parameters.

use chappe_core::Duration;

use super::*;

impl Default for Settings {
    fn default() -> Settings {
        Settings::paper()
    }
}

impl Settings {
    /// DPCLO as in the paper, as far as it can be read.
    pub fn paper() -> Settings {
        Settings {
            scheme: Scheme::Dpclo,
            probes: Probes {
                interval: Duration::from_secs(1),
                first: None,
                first_again: false,
                jitter: 0.1,
                window: 10,
                least: 3,
                damping: 0.9,
                etx_max: 16.0,
                ratio_min: 0.1,
                attempts: None,
                octets: 134,
            },
            routing: Routing {
                period: Duration::from_secs(15),
                gap: Duration::from_secs(1),
                settle: Duration::from_secs(1),
                jitter: Duration::from_millis(10),
                lost_after: 3,
                hop_limit: 32,
                reach_repeats: 0,
                renews: false,
                patience: Duration::ZERO,
            },
            next_hops: NextHops {
                limit: KMax::AtLeastTwo,
                beta: 0.1,
                high: 7.0,
                low: 3.0,
                every: Duration::from_millis(100),
                feasible_only: false,
            },
            queues: Queues {
                limit: 10,
                reserve: 0,
                backlog_life: Duration::from_secs(3),
                age_max: Duration::from_secs(60),
                failures_max: 2,
            },
            rate: RateLaw::Queue(QueueLaw::PAPER),
            priorities: Priorities {
                by_queue: false,
                high: 0.5,
                medium: 0.2,
                hasty: None,
            },
            extras: Extras::NONE,
            room: Room {
                destinations: 128,
                neighbours: 32,
                packets: 256,
                payload: 1500,
                flows: 64,
                sources: 16,
                seen: 512,
            },
            mode: None,
        }
    }

    /// The improved variant: all of [`Extras::ALL`], feasible next hops, ETX from data frames, rates by the price of airtime, and 20
    /// places in reserve (found, with the credits, by sweeps over five seeds of 108 nodes: `docs/studies/dpclo.md`).
    pub fn improved() -> Settings {
        let paper = Settings::paper();
        Settings {
            probes: Probes {
                // A third of the probes carries 2 to 4 % more (docs/studies/dpclo.md). Prices change fastest after a node began to send.
                interval: Duration::from_secs(3),
                first: Some(FirstProbes {
                    least: Duration::from_secs(1),
                    each: Duration::ZERO,
                    most: Duration::from_secs(1),
                    lasts: Duration::from_secs(10),
                }),
                first_again: true,
                attempts: Some(Attempts {
                    window: 5,
                    instead_of_probes: Duration::from_secs(10),
                    time_constant: Duration::ZERO,
                }),
                ..paper.probes
            },
            routing: Routing {
                renews: true,
                ..paper.routing
            },
            next_hops: NextHops {
                feasible_only: true,
                ..paper.next_hops
            },
            rate: RateLaw::Airtime(AirtimeLaw::DOT11B),
            priorities: Priorities {
                by_queue: true,
                // A queue at its limit goes first. From half of it on, 802.11e's short windows starved a hidden node.
                high: 1.0,
                medium: 0.0,
                hasty: Some(4.0),
            },
            extras: Extras::ALL,
            queues: Queues {
                reserve: 20,
                // A neighbour with packets sends one more often. One that was full and is not heard any more has sent its last ones
                // unheard: with 3 s all who wait for its room stand for as long (docs/studies/dpclo.md).
                backlog_life: Duration::from_millis(500),
                // A link that collides is still the best one: rates follow, and the packet waits.
                failures_max: 4,
                ..paper.queues
            },
            ..paper
        }
    }

    /// Plain forwarding over the best route: a queue of 50 packets (ns-2's) and no rate limit.
    pub fn shortest_path() -> Settings {
        let mut settings = Settings::paper();
        settings.scheme = Scheme::ShortestPath;
        settings.queues.limit = 50;
        settings.next_hops.limit = KMax::Fixed(1);
        settings.rate = RateLaw::Unlimited;
        settings
    }

    /// Fusion: one queue of 50 packets.
    pub fn fusion() -> Settings {
        let mut settings = Settings::shortest_path();
        settings.scheme = Scheme::Fusion(Fusion {
            free_min: 0.25,
            prioritised: true,
        });
        settings.rate = RateLaw::Overheard(OverhearLaw {
            most: 5.0,
            floor: 1.0,
        });
        settings
    }

    /// DCLO: pairs in rounds, rates by price; queues of 50 packets, since the original has no limit.
    pub fn dclo() -> Settings {
        let mut settings = Settings::paper();
        settings.scheme = Scheme::Dclo(Matching {
            interval: Duration::from_millis(100),
            exchange: Duration::from_millis(20),
            retry: Duration::from_millis(5),
        });
        settings.rate = RateLaw::Price(PriceLaw {
            gain: 1000.0,
            interval: Duration::from_millis(100),
        });
        settings.queues.limit = 50;
        settings
    }
}

impl QueueLaw {
    /// The paper's law with our reading of its sign.
    pub const PAPER: QueueLaw = QueueLaw {
        interval: Duration::from_millis(500),
        step: 2.0,
        start: 5.0,
        floor: 1.0,
        ceiling: 10_000.0,
        plus: false,
        count_refused: false,
        drain: None,
    };
}

impl AirtimeLaw {
    /// 802.11b at 2 Mbit/s.
    pub const DOT11B: AirtimeLaw = AirtimeLaw {
        around: Duration::from_micros(1010),
        octet: Duration::from_micros(4),
        load: 0.95,
        gain: 0.25,
        queue: 4.0,
        queue_gain: 0.05,
        rise: 1.0,
        fall: 0.25,
        floor: 0.1,
        ceiling: 4.0,
        smoothing: Duration::from_millis(500),
        interval: Duration::from_millis(100),
        // Three probes of the improved variant.
        life: Duration::from_secs(9),
        start: 20.0,
        double: Duration::from_secs(2),
        bucket: 2.0,
        fairness: 2.5,
        at_once: 1.0 / 15.0,
        early: Duration::from_secs(10),
        ahead: Duration::from_secs(2),
        repeats: true,
    };

    /// The least price of a node.
    pub(crate) fn least(&self) -> f64 {
        libm::pow(self.floor, self.fairness)
    }

    /// What a queue of so many packets asks at once.
    pub(crate) fn asked_at_once(&self, queue: f64) -> f64 {
        libm::pow(self.at_once * (queue - self.queue).max(0.0), self.fairness)
    }

    /// By how much a queue of so many packets raises its price at once: as much as it would within `ahead`.
    pub(crate) fn ahead_of(&self, queue: f64) -> f64 {
        let excess = self.queue_gain * (queue - self.queue).max(0.0);
        libm::exp(self.fairness * excess * self.ahead.as_secs_f64())
    }

    /// The largest price of a node.
    pub(crate) fn most(&self) -> f64 {
        libm::pow(self.ceiling, self.fairness)
    }
}

impl Extras {
    /// No extension: the paper's protocol.
    pub const NONE: Extras = Extras {
        bias: 0.0,
        lifo: false,
        age_weight: None,
        smoothing: 0.0,
        pins: None,
        resequence: None,
        count_sent: false,
        credits: 0,
        reports: None,
    };

    /// Every extension but LIFO, which reverses a flow's order and suits datagrams only.
    pub const ALL: Extras = Extras {
        bias: 2.0,
        lifo: false,
        age_weight: Some(Duration::from_millis(200)),
        smoothing: 0.65,
        pins: Some(Pins {
            gap: Duration::from_millis(50),
            gain: 2.0,
        }),
        resequence: Some(Duration::from_millis(30)),
        count_sent: true,
        credits: 15,
        reports: Some(Reports {
            share: 0.01,
            change: 2.0,
            around: 84,
        }),
    };
}
