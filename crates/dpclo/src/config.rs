//! Parameters: what each one is, its unit, its default and where that comes from.
//!
//! "Ours" marks a value that neither the paper nor the systems it builds on give.

use core::fmt;

use chappe_core::{Caps, Duration, Missing, Mode};

use crate::header;

/// Most next hops that a node keeps for one destination.
pub const NEXT_HOPS_MAX: usize = 8;

/// Who decides which packet goes where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// The paper's: the largest price among the next hops of the K best routes.
    Dpclo,
    /// One packet after the other over the best route, as long as there is room: what carries plain datagrams or TCP.
    ShortestPath,
    /// The same, but who hears that its next hop is congested stops.
    Fusion(Fusion),
    /// Pairs of nodes by the largest queue differences, in rounds.
    Dclo(Matching),
}

/// Fusion's rules (Hull, Jamieson, Balakrishnan, SenSys 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fusion {
    /// A node is congested while a smaller share of its queue is free. 0.25 (as there).
    pub free_min: f64,
    /// A node that is congested competes in the class above that of data, since it must get rid of packets first. Yes (as
    /// there: a quarter of the contention window; classes come nearest to it).
    pub prioritised: bool,
}

/// DCLO's rounds. None of the values is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// Length of a round: how long pairs stay. 100 ms (ours).
    pub interval: Duration,
    /// At the begin of a round in which queues are told. 20 ms (ours: twelve neighbours take that long).
    pub exchange: Duration,
    /// A request without an answer is repeated after this time. 5 ms (ours).
    pub retry: Duration,
}

/// Everything that decides how a [`Router`](crate::Router) works. All nodes of a mesh use the same values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Who decides which packet goes where. Default [`Scheme::Dpclo`].
    pub scheme: Scheme,
    /// How links are measured.
    pub probes: Probes,
    /// How routes are told.
    pub routing: Routing,
    /// How many next hops are tried.
    pub next_hops: NextHops,
    /// What waits, and how long.
    pub queues: Queues,
    /// How fast a source may send.
    pub rate: RateLaw,
    /// Which price has which class of the MAC.
    pub priorities: Priorities,
    /// What goes beyond the paper; all off by default.
    pub extras: Extras,
    /// How much a node can remember.
    pub room: Room,
    /// How data frames are sent; `None` leaves it to the MAC (the default).
    pub mode: Option<Mode>,
}

/// How links are measured (eq. 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// Mean time between probes. Default 1 s (De Couto and others, MobiCom 2003; the paper: "regular periods").
    pub interval: Duration,
    /// Each interval is drawn up to this share shorter or longer, so that two nodes do not collide for ever. Default 0.1
    /// (as there).
    pub jitter: f64,
    /// Probes in the window over which they are counted, 1 to 63. Default 10 (as there).
    pub window: u8,
    /// Counts over fewer probes than this say nothing yet. Default 3 (ours).
    pub least: u8,
    /// Alpha of eq. 6, the weight of the old value. Default 0.9 (ours; that of Moeller and others' BCP, IPSN 2010).
    pub damping: f64,
    /// Largest ETX, and what a transmission that failed counts. Default 16 (ours). 1 makes every link that is used count the
    /// same: hop counts and plain queue differences, the paper's Fig. 4 "without ETX".
    pub etx_max: f64,
    /// A link whose delivery ratio is below this in either direction is not used. Default 0.1 (ours).
    pub ratio_min: f64,
    /// A probe is filled up to this size. Default 134 octets (that of De Couto and others).
    pub octets: usize,
}

/// How routes are told: DSDV (Perkins and Bhagwat, SIGCOMM 1994) with the constants of ns-2.35's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Time between full updates. Default 15 s (ns-2).
    pub period: Duration,
    /// Least time between two updates. Default 1 s (ns-2).
    pub gap: Duration,
    /// How long the news of a newer sequence number waits, since the better routes often come a little later. Default 1 s
    /// (ours; ns-2 adapts it from 6 s).
    pub settle: Duration,
    /// Updates are delayed by up to this. Default 10 ms (ns-2).
    pub jitter: Duration,
    /// A route without news for so many periods is lost. Default 3 (ns-2).
    pub lost_after: u8,
    /// How often a packet may be forwarded. Default 32 (ns-2).
    pub hop_limit: u8,
}

/// The upper limit of K.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KMax {
    /// `beta * N` rounded up, N the number of neighbours, but never below 2. The default: the paper's own example has
    /// six nodes and two paths.
    AtLeastTwo,
    /// `beta * N` rounded down and at least 1, as the paper's sentence reads: with its beta and fewer than 20 neighbours
    /// there is never a second path.
    Literal,
    /// So many, whatever the neighbourhood. 1 is the paper's single path.
    Fixed(u8),
}

/// How many next hops are tried (IV-E).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextHops {
    /// The upper limit of K. Default [`KMax::AtLeastTwo`].
    pub limit: KMax,
    /// Beta: the share of the neighbours. Default 0.1 (Table I).
    pub beta: f64,
    /// K grows once the queues of all K next hops are longer. Default 7 packets (Table I).
    pub high: f64,
    /// K shrinks once all of them are shorter. Default 3 packets (ours; the value is lost in print).
    pub low: f64,
    /// How often this is looked at. Default 100 ms (ours).
    pub every: Duration,
    /// Only neighbours that are not farther from the destination than the node itself. Default no: the paper's example
    /// needs a detour.
    pub downhill: bool,
}

/// What waits, and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    /// Packets that wait for one destination; all together in [`Scheme::ShortestPath`]. Default 10 (ours: the value is lost
    /// in print, and must exceed 7).
    pub limit: u16,
    /// What a neighbour told of its queue holds for so long; then the queue counts as empty. Default 3 s (ours: probes tell
    /// the longest queues anew each second, and with a second every queue would count as empty just before that).
    pub told_for: Duration,
    /// A packet that has waited in one node for so long is dropped. Default 60 s (ours: nothing may wait for ever for a
    /// route that never comes).
    pub age_max: Duration,
    /// Times that the link may give a packet up before the router does. Default 2 (ours).
    pub failures_max: u8,
}

/// How fast a source may send (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLaw {
    /// By the growth of the source's own queue: the paper's.
    Queue(QueueLaw),
    /// By the length of the source's own queue: Chen and others' (eq. 2).
    Price(PriceLaw),
    /// By what the next hop is heard to forward: Fusion's.
    Turns(TurnLaw),
    /// As fast as the application offers, as long as there is room.
    Unlimited,
}

/// The rate follows the source's own queue (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLaw {
    /// T: time between two looks at the queue. Default 0.5 s (ours).
    pub interval: Duration,
    /// Delta: packets a second more when the queue has not changed. Default 2 (ours).
    pub step: f64,
    /// The first rate, packets a second. Default 5 (ours).
    pub start: f64,
    /// The smallest rate, packets a second. Default 1 (ours).
    pub floor: f64,
    /// The largest rate, packets a second. Default 10,000 (ours).
    pub ceiling: f64,
    /// Adds the queue's growth to the rate instead of taking it away: the sign is lost in print, and this is the other
    /// reading. Default no: minus makes the rate what the queue was served with.
    pub plus: bool,
    /// Counts packets that found the queue full as growth. Default no; a full queue does not change, so the plain law
    /// goes on raising the rate.
    pub count_refused: bool,
    /// Takes `(queue - target) / time` from the rate too, so that no queue is left standing. Default none.
    pub drain: Option<Drain>,
}

/// The rate is `U'^-1(price)` for `U = gain * log(rate)`: proportionally fair (eq. 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceLaw {
    /// Packets a second at a queue of one packet; half as many at two. 1000 (ours: with less, pairs have little to carry; with
    /// more, sources near the destination fill all queues and far ones starve).
    pub gain: f64,
    /// Time between two looks at the queue. 0.1 s (ours: a round).
    pub interval: Duration,
}

/// Tokens by listening to the next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnLaw {
    /// Tokens that can be saved up. 5 (ours).
    pub most: f64,
    /// Tokens a second that come without listening, so that lost packets cannot silence a source for good. 1 (ours).
    pub floor: f64,
}

/// What empties a standing queue at a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    /// The queue that may stand, packets. 3 (ours).
    pub target: f64,
    /// The time in which the rest is to go. 5 s (ours: ten looks).
    pub time: Duration,
}

/// Which price has which class of the MAC (IV-D): thresholds as shares of the queue limit. Routing has the class above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priorities {
    /// From here on [`Class::Urgent`](chappe_core::Class::Urgent). Default 0.5 (ours).
    pub high: f64,
    /// From here on [`Class::Data`](chappe_core::Class::Data), below it `Background`. Default 0.2 (ours).
    pub medium: f64,
}

/// What goes beyond the paper, each switchable by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extras {
    /// V: a neighbour that is nearer by so much ETX is worth V packets of queue for each. Gives a direction when queues are
    /// equal. 0 is off; 2 in [`Extras::ALL`] (BCP).
    pub bias: f64,
    /// The newest packet first, and packets that a full queue pushes out still count (BCP's floating queue).
    pub lifo: bool,
    /// A queue counts one packet more for each such time that its oldest packet has waited.
    pub age_weight: Option<Duration>,
    /// Weight of the old value in the queue length that is told and compared. 0 is off; 0.65 in [`Extras::ALL`] (IRON).
    pub smoothing: f64,
    /// Packets of one flow stay on one next hop.
    pub pins: Option<Pins>,
    /// How long a packet that overtook another waits at the destination. 30 ms in [`Extras::ALL`] (ours).
    pub resequence: Option<Duration>,
    /// A packet that a neighbour confirmed, or that was overheard on its way to it, counts in its queue until it tells
    /// otherwise.
    pub count_sent: bool,
}

/// When a flow may change its next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pins {
    /// After a pause of this length. 50 ms (ours).
    pub gap: Duration,
    /// Or when another next hop's price is so many times as high. 2 (ours).
    pub gain: f64,
}

/// How much a node can remember. All of it is taken when the router is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Destinations. Default 128.
    pub destinations: u16,
    /// Neighbours. Default 32.
    pub neighbours: u8,
    /// Packets, waiting, in flight and delivered but not yet taken. Default 256.
    pub packets: u16,
    /// Octets of payload in a packet. Default 1500.
    pub payload: u16,
    /// Flows that end here, and flows that are kept on one next hop. Default 64.
    pub flows: u16,
    /// Destinations to which this node is a source at the same time. Default 16.
    pub sources: u16,
    /// Recently forwarded packets, by which copies are recognised. Default 512.
    pub seen: u16,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::paper()
    }
}

impl Settings {
    /// The paper's, as far as it can be read.
    pub fn paper() -> Settings {
        Settings {
            scheme: Scheme::Dpclo,
            probes: Probes {
                interval: Duration::from_secs(1),
                jitter: 0.1,
                window: 10,
                least: 3,
                damping: 0.9,
                etx_max: 16.0,
                ratio_min: 0.1,
                octets: 134,
            },
            routing: Routing {
                period: Duration::from_secs(15),
                gap: Duration::from_secs(1),
                settle: Duration::from_secs(1),
                jitter: Duration::from_millis(10),
                lost_after: 3,
                hop_limit: 32,
            },
            next_hops: NextHops {
                limit: KMax::AtLeastTwo,
                beta: 0.1,
                high: 7.0,
                low: 3.0,
                every: Duration::from_millis(100),
                downhill: false,
            },
            queues: Queues {
                limit: 10,
                told_for: Duration::from_secs(3),
                age_max: Duration::from_secs(60),
                failures_max: 2,
            },
            rate: RateLaw::Queue(QueueLaw::PAPER),
            priorities: Priorities {
                high: 0.5,
                medium: 0.2,
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

    /// Our variant: all of [`Extras::ALL`], and a rate law that counts what it had to refuse and drains the queue.
    pub fn chappe() -> Settings {
        let law = QueueLaw {
            count_refused: true,
            drain: Some(Drain {
                target: 3.0,
                time: Duration::from_secs(5),
            }),
            ..QueueLaw::PAPER
        };
        Settings {
            rate: RateLaw::Queue(law),
            extras: Extras::ALL,
            ..Settings::paper()
        }
    }

    /// Plain forwarding over the best route: a queue of 50 packets (ns-2's), and the application decides how fast.
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
        settings.rate = RateLaw::Turns(TurnLaw {
            most: 5.0,
            floor: 1.0,
        });
        settings
    }

    /// DCLO: pairs in rounds, rates by price; queues of 50 packets, since the original has no limit at all.
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

    /// Checks the values that have limits, and that the link can carry the frames.
    pub fn check(&self, caps: &Caps) -> Result<(), ConfigError> {
        let (room, probes) = (&self.room, &self.probes);
        let matching = |of: fn(Matching) -> Duration| match self.scheme {
            Scheme::Dclo(law) => of(law).nanos() / 1_000_000,
            _ => 1,
        };
        let counts = [
            ("room.destinations", u64::from(room.destinations)),
            ("room.neighbours", u64::from(room.neighbours)),
            ("room.packets", u64::from(room.packets)),
            ("room.payload", u64::from(room.payload)),
            ("room.flows", u64::from(room.flows)),
            ("room.sources", u64::from(room.sources)),
            ("room.seen", u64::from(room.seen)),
            ("probes.interval", probes.interval.nanos() / 1_000_000),
            ("probes.window", u64::from(probes.window)),
            ("probes.least", u64::from(probes.least)),
            ("routing.period", self.routing.period.nanos() / 1_000_000),
            ("routing.lost_after", u64::from(self.routing.lost_after)),
            ("routing.hop_limit", u64::from(self.routing.hop_limit)),
            ("next_hops.every", self.next_hops.every.nanos() / 1_000_000),
            ("queues.limit", u64::from(self.queues.limit)),
            ("queues.failures_max", u64::from(self.queues.failures_max)),
            ("matching.interval", matching(|law| law.interval)),
            ("matching.exchange", matching(|law| law.exchange)),
            ("matching.retry", matching(|law| law.retry)),
        ];
        if let Some(&(name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero { name });
        }
        let large = [
            ("probes.window", u64::from(probes.window), 63),
            ("room.packets", u64::from(room.packets), 0xfffe),
            ("room.destinations", u64::from(room.destinations), 0xfffe),
            ("queues.limit", u64::from(self.queues.limit), 4000),
        ];
        if let Some(&(name, given, most)) = large.iter().find(|(_, given, most)| given > most) {
            return Err(ConfigError::TooLarge { name, given, most });
        }
        self.check_shares()?;
        let probe = header::PROBE
            + header::COUNT * usize::from(room.neighbours)
            + header::QUEUE * header::QUEUES_TOLD;
        let data = header::DATA + usize::from(room.payload);
        caps.need_frame(probe.max(probes.octets).max(data))
            .map_err(ConfigError::Link)
    }

    fn check_shares(&self) -> Result<(), ConfigError> {
        let (law, any) = (self.rate, f64::MAX);
        let free_min = match self.scheme {
            Scheme::Fusion(fusion) => fusion.free_min,
            _ => 0.0,
        };
        let mut ranges = [
            ("probes.jitter", self.probes.jitter, 0.0, 0.9),
            ("probes.damping", self.probes.damping, 0.0, 1.0),
            ("probes.etx_max", self.probes.etx_max, 1.0, 100.0),
            ("probes.ratio_min", self.probes.ratio_min, 0.001, 1.0),
            ("next_hops.beta", self.next_hops.beta, 0.0, 1.0),
            ("next_hops.high", self.next_hops.high, 0.0, any),
            ("next_hops.low", self.next_hops.low, 0.0, any),
            ("priorities.high", self.priorities.high, 0.0, any),
            ("priorities.medium", self.priorities.medium, 0.0, any),
            ("extras.bias", self.extras.bias, 0.0, 1000.0),
            ("extras.smoothing", self.extras.smoothing, 0.0, 0.99),
            ("fusion.free_min", free_min, 0.0, 1.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
            ("", 0.0, 0.0, 0.0),
        ];
        let [.., first, second, third] = &mut ranges;
        match law {
            RateLaw::Queue(law) => {
                *first = ("rate.step", law.step, 0.0, any);
                *second = ("rate.start", law.start, law.floor, law.ceiling);
                *third = ("rate.floor", law.floor, 0.001, law.ceiling);
            }
            RateLaw::Price(law) => *first = ("rate.gain", law.gain, 0.001, any),
            RateLaw::Turns(law) => {
                *first = ("rate.most", law.most, 1.0, 1000.0);
                *second = ("rate.floor", law.floor, 0.001, any);
            }
            RateLaw::Unlimited => {}
        }
        let outside =
            |&&(_, given, least, most): &&(&str, f64, f64, f64)| !(least..=most).contains(&given);
        match ranges.iter().find(outside) {
            Some(&(name, given, least, most)) => Err(ConfigError::Range {
                name,
                given,
                least,
                most,
            }),
            None => Ok(()),
        }
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

impl Extras {
    /// The paper's protocol.
    pub const NONE: Extras = Extras {
        bias: 0.0,
        lifo: false,
        age_weight: None,
        smoothing: 0.0,
        pins: None,
        resequence: None,
        count_sent: false,
    };

    /// Everything but LIFO, which turns a flow's order round: switch it on for datagrams.
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
    };
}

/// What is wrong with a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigError {
    /// A number or time that must be at least 1 (1 ms) is not.
    Zero {
        /// Which.
        name: &'static str,
    },
    /// More than there can be.
    TooLarge {
        /// Which.
        name: &'static str,
        /// The value given.
        given: u64,
        /// The largest possible.
        most: u64,
    },
    /// Outside its range.
    Range {
        /// Which.
        name: &'static str,
        /// The value given.
        given: f64,
        /// The smallest possible.
        least: f64,
        /// The largest possible.
        most: f64,
    },
    /// The link cannot do what is needed.
    Link(Missing),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Zero { name } => write!(f, "{name} must be at least 1 (times: 1 ms)"),
            ConfigError::TooLarge { name, given, most } => {
                write!(f, "{name} = {given} is more than {most}")
            }
            ConfigError::Range {
                name,
                given,
                least,
                most,
            } => write!(f, "{name} = {given} is not between {least} and {most}"),
            ConfigError::Link(missing) => missing.fmt(f),
        }
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps {
        frame_max: 2296,
        schedules: false,
        start_error: Duration::ZERO,
        reports_power: false,
        overhears: true,
        confirms_broadcast: true,
    };

    #[test]
    fn the_named_settings_are_valid() {
        for settings in [
            Settings::paper(),
            Settings::chappe(),
            Settings::shortest_path(),
            Settings::fusion(),
            Settings::dclo(),
        ] {
            assert_eq!(settings.check(&CAPS), Ok(()));
        }
    }

    #[test]
    fn values_out_of_range_are_named() {
        let check = |change: fn(&mut Settings)| {
            let mut settings = Settings::paper();
            change(&mut settings);
            settings.check(&CAPS).unwrap_err()
        };
        assert_eq!(
            check(|s| s.room.flows = 0),
            ConfigError::Zero { name: "room.flows" }
        );
        assert!(matches!(
            check(|s| s.probes.window = 64),
            ConfigError::TooLarge {
                name: "probes.window",
                ..
            }
        ));
        assert!(matches!(
            check(|s| s.next_hops.beta = f64::NAN),
            ConfigError::Range {
                name: "next_hops.beta",
                ..
            }
        ));
        assert!(matches!(
            check(|s| s.room.payload = 2290),
            ConfigError::Link(Missing::FrameSize { needed: 2306, .. })
        ));
    }
}
