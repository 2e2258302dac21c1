//! A node's settings, and the router's that follow from them.

use chappe_core::{Caps, Duration};
use chappe_dpclo::{
    AirtimeLaw, Attempts, Extras, NextHops, Probes, Queues, RateLaw, Room, Routing, Settings,
};

use crate::air::Air;
use crate::pace::{first_probes, pace};
use crate::packet::Net;

/// How lost frames of a hop are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// By this program: frames are broadcast and repeated ([`crate::recovery`]), and all neighbours hear queues and prices. For
    /// media whose broadcasts are as fast as unicasts.
    Broadcast,
    /// By the card, and beyond it by confirmations of the neighbour's program: frames are unicast. For cards that send
    /// broadcasts at a slow basic rate.
    Unicast,
}

/// The configuration of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// The node's number, 1 to 65,534; no other node has it.
    pub number: u16,
    /// The networks of the mesh, IPv4 and IPv6: a node's address is the network's plus its number.
    pub networks: Vec<Net>,
    /// The networks behind this node.
    pub behind: Vec<Net>,
    /// The timing of the slowest interface.
    pub air: Air,
    /// How lost frames are recovered.
    pub hop: Hop,
    /// About how many nodes the mesh has: it sets how much they remember, and the time between hellos. Probes and updates follow
    /// from how many they know.
    pub size: u16,
    /// The longest IP packet in octets, the same on all nodes. 0: what frames carry beside a small packet, and enough for IPv6.
    pub mtu: usize,
    /// Whether packets of the host to groups and to all go to every node that is reachable, to each as a packet of its own.
    pub groups: bool,
    /// Whether data contend as video (802.11e's AC_VI) where cards have access categories. They get more of the channel, at the cost
    /// of stations whose data are best effort.
    pub video: bool,
}

/// The most packets a second at which a flow may start: the router's bound.
const START_MAX: f64 = 1000.0;
/// How fast the ETX of a link follows its data frames, and for how long these count instead of probes. With a few samples, and for
/// 13 s, a second of collisions drove flows off links of 97 %, onto paths three times as long (docs/studies/mesh.md).
const LINK_MEMORY: Duration = Duration::from_secs(5);
/// The airtime of a node and its neighbours above which its price rises. Each frame counts with a whole mean back-off, but those of
/// all that wait pass at once, and not all neighbours of a node hear each other. With 0.95 a mesh of twelve carried 5 % less, and more than
/// 1.25 gave nothing (docs/studies/mesh.md).
const LOAD: f64 = 1.25;
/// Updates without a newer number after which a route is lost. DSDV's 3 suits 15 s; of six, each over three hops that lose a fifth,
/// all are lost once in 70 times.
const LOST_AFTER: u8 = 6;

impl NodeConfig {
    /// The capabilities of the link that the router sees.
    pub(crate) fn caps(&self, frame_max: usize) -> Caps {
        let broadcast = self.hop == Hop::Broadcast;
        Caps {
            frame_max,
            schedules: false,
            start_error: Duration::ZERO,
            reports_power: false,
            overhears: broadcast,
            confirms_broadcast: false,
            hastens: false,
        }
    }

    /// The router's settings: those of DPCLO's improved variant, with intervals for repair within two seconds and prices for
    /// this medium.
    pub(crate) fn router(&self) -> Settings {
        let improved = Settings::improved();
        let full = self.air.exchange(self.mtu);
        let burst = u16::from(self.air.burst_max());
        let mut settings = Settings {
            probes: self.probes(improved.probes),
            routing: self.routing(improved.routing),
            next_hops: NextHops {
                high: 3.0,
                low: 1.0,
                ..improved.next_hops
            },
            // Two bursts: one that leaves and one that arrives. A node that has heard of fewer than eight places of sixteen sends
            // nothing.
            queues: Queues {
                limit: burst.max(8),
                reserve: 8,
                backlog_life: Duration::from_secs(3),
                age_max: Duration::from_secs(3),
                ..improved.queues
            },
            rate: RateLaw::Airtime(self.prices()),
            extras: Extras {
                credits: 8,
                // TCP takes a gap for a loss, and sends again what is only late. A frame that four bursts in a row lost (once in
                // 600 at 80 %) waits for 60 frames at each of up to four hops.
                resequence: Some(Duration::from_millis(30).max(full * 240)),
                ..improved.extras
            },
            room: self.room(),
            ..improved
        };
        // A node that knows of no other. The node changes it as it hears of more.
        settings.set_pace(pace(&self.air, 1));
        settings
    }

    /// How a node measures its links.
    fn probes(&self, usual: Probes) -> Probes {
        Probes {
            first: Some(first_probes(&self.air)),
            first_again: false,
            jitter: 0.2,
            window: 16,
            octets: 0,
            attempts: usual.attempts.map(|law| Attempts {
                instead_of_probes: LINK_MEMORY,
                time_constant: LINK_MEMORY,
                ..law
            }),
            ..usual
        }
    }

    /// How nodes tell each other of routes.
    fn routing(&self, usual: Routing) -> Routing {
        Routing {
            lost_after: LOST_AFTER,
            // Gains too little here (docs/studies/mesh.md).
            renews: false,
            ..usual
        }
    }

    /// The law of prices and rates.
    fn prices(&self) -> AirtimeLaw {
        let full = self.air.exchange(self.mtu);
        let burst = self.air.burst_max();
        AirtimeLaw {
            around: self.air.exchange(0),
            octet: self.air.octet(),
            // A fifth of a link at once: TCP's own start is slower (RFC 6928), and queues bound what is too much.
            start: (0.2 / full.as_secs_f64()).min(START_MAX),
            double: Duration::from_millis(200),
            fairness: 1.0,
            gain: 0.5,
            queue_gain: 0.1,
            rise: 2.0,
            fall: 0.5,
            load: LOAD,
            floor: 0.1,
            ceiling: 16.0,
            // None gains anything here that shows (docs/studies/mesh.md).
            at_once: 0.0,
            ahead: Duration::ZERO,
            repeats: false,
            // Probes are more frequent here than in the simulator.
            life: Duration::from_secs(3),
            bucket: if self.air.is_shared() {
                2.0
            } else {
                f64::from(burst)
            },
            ..AirtimeLaw::DOT11B
        }
    }

    /// What a node can remember.
    fn room(&self) -> Room {
        let size = self.size.max(8);
        Room {
            destinations: size.saturating_mul(2).max(64),
            neighbours: size.min(64) as u8,
            packets: 1024,
            payload: self.mtu as u16,
            flows: 512,
            sources: size.min(256),
            seen: 4096,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use chappe_core::{Bitrate, Instant, Seed};

    /// A node that asks for no MTU over UDP on an interface of 1500 octets, whose frames carry 1433.
    fn unasked(networks: &[&str]) -> NodeConfig {
        let networks = networks.iter().map(|net| Net::parse(net).unwrap());
        NodeConfig {
            number: 1,
            networks: networks.collect(),
            behind: Vec::new(),
            air: Air::wired(Bitrate(100_000_000)),
            hop: Hop::Unicast,
            size: 32,
            mtu: 0,
            groups: false,
            video: false,
        }
    }

    /// An MTU that is found carries IPv6, or is refused with a reason. The device of such a node could not be given its address.
    #[test]
    fn a_found_mtu_serves_the_networks() {
        let mtu = |config: NodeConfig, frame_max| {
            Node::new(config, frame_max, Instant::ZERO, Seed(1), 0).map(|node| node.mtu())
        };
        let both = ["10.77.0.0/16", "fd77::/64"];
        assert!(mtu(unasked(&both[..1]), 1433).unwrap() < 1280);
        assert_eq!(mtu(unasked(&both), 1433), Ok(1280));
        assert_eq!(
            mtu(unasked(&both), 1300).unwrap_err(),
            "an MTU of 1280 does not fit: frames carry 1232"
        );
        let asked = |mtu| NodeConfig {
            mtu,
            ..unasked(&both)
        };
        let short = mtu(asked(1200), 1433).unwrap_err();
        assert!(short.contains("too short for a network of IPv6"), "{short}");
    }

    /// Every medium, rate and size gives a router. Ethernet of 1 Gbit/s did not.
    #[test]
    fn a_router_runs_at_every_rate() {
        for rate in (5..=10).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power))) {
            for air in [Air::dot11b(Bitrate(rate)), Air::wired(Bitrate(rate))] {
                for (size, hop) in [(2, Hop::Broadcast), (5000, Hop::Unicast)] {
                    let config = NodeConfig {
                        number: 1,
                        networks: vec![Net::parse("10.77.0.0/16").unwrap()],
                        behind: Vec::new(),
                        air,
                        hop,
                        size,
                        // The default of `chappe mesh`, on an interface of 1500 octets.
                        mtu: 1400,
                        groups: false,
                        video: false,
                    };
                    let node = Node::new(config, 1470, Instant::ZERO, Seed(1), 0);
                    assert!(node.is_ok(), "{rate} {air:?} {size}: {:?}", node.err());
                }
            }
        }
    }
}
