//! The network that TCPlp's experiments run on: motes with 802.15.4 radios, a border router, a host behind it.
//!
//! ```
//! use chappe_core::{Duration, Seed};
//! use chappe_lab_tcplp::scene::{Ground, Scene};
//! use chappe_tcplp::host::Bulk;
//!
//! // Three perfect hops; node 3 sends to node 0 without end.
//! let scene = Scene::row(3);
//! let mut ground = Ground::of(&scene);
//! let apps = |node| Bulk::sending(if node == 3 { u64::MAX } else { 0 });
//! let mut lln = scene.start(&mut ground, Seed(1), apps)?;
//! lln.connect(3, 0);
//! lln.run(Duration::from_secs(2));
//! let before = lln.counts();
//! lln.run(Duration::from_secs(10));
//! let flow = lln.counts().since(&before);
//! assert!(lln.app(0).received > 10_000 && flow.frames() > 200);
//! # Ok::<(), chappe_lab::run::RunError>(())
//! ```
//!
//! A [`Scene`] is data: who hears whom ([`Air`]), the tree of next hops, the link layer, TCP's buffers and options, what
//! sleeps, what is lost on purpose. Its fields are public; change them one by one. [`Scene::start`] makes the nodes
//! ([`station`](super::station)) and puts them into a simulator; a [`Ground`] holds the memory that their sockets borrow.
//! What comes out is an [`Lln`]: applications are of any type `A` (an enum, if they differ), the same one on all nodes.
//!
//! **The cloud.** With a [`Wire`], node 0 is a border router: its host stands behind a cable of so much delay, under the
//! address [`CLOUD`], with buffers and options of its own. Without one, node 0 is a mote like the others.
//!
//! **Injected loss** ([`Scene::lose`]) takes whole packets at a host, after the link has delivered and put them together:
//! the loss of segments in the paper's sense, independent of the radio.
//!
//! Equal scenes with equal seeds run equally. Seeds run side by side with [`seeds::parallel`](chappe_lab::seeds).

use std::net::Ipv6Addr;

use chappe_core::{Address, Dbm, Duration, OverMac, Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_mac::dot15d4::{self, Dot15d4, Sleep};
use chappe_sim::{
    AirTime, Fault, LinkLoss, Matrix, Medium, Position, Profile, Recorder, Simulator, World,
};
use chappe_tcplp::host::{Application, Host};
use chappe_tcplp::lowpan::red::Thresholds;
use chappe_tcplp::lowpan::{Config, Interface, TcpHeaders};
use chappe_tcplp::tcp;
use chappe_wire::sixlowpan::Context;

use super::ground::Lent;
use super::station::{Gate, Node, Paths, QUEUE};

pub use super::ground::Ground;
pub use super::lln::{Counts, Lln, NodeCounts};

/// The mesh's prefix.
pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
/// The host behind the border router.
pub const CLOUD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The port that every host listens on.
pub const PORT: u16 = 80;

const CONTEXTS: [Context; 1] = [Context {
    id: 0,
    prefix: PREFIX,
    len: 64,
}];

/// Who hears whom.
#[derive(Clone, Debug)]
pub enum Air {
    /// Links with their delivery ratios, the same both ways. Who is not linked is not even noticed, so that every
    /// second neighbour is a hidden sender; any overlap kills both frames.
    Links(Vec<(usize, usize, f64)>),
    /// Made elsewhere, for as many nodes as the scene has.
    Given(Box<Medium>),
    /// Places, and a radio ([`Profile::NAMES_DOT15D4`]) at this power. `alike` takes multipath and shadowing away, so that
    /// equal distances are equal links.
    Places {
        /// Where the nodes are.
        at: Vec<Position>,
        /// Which radio.
        profile: &'static str,
        /// How strongly they send.
        power: Dbm,
        /// Whether distance alone decides.
        alike: bool,
    },
}

/// What lies between the border router and the host behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// One way.
    pub delay: Duration,
    /// The host's TCP.
    pub transport: Transport,
}

/// TCP of one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Options, timers, segment size.
    pub config: tcp::Config,
    /// Send buffer of each socket in octets.
    pub send: usize,
    /// Receive buffer of each socket in octets.
    pub receive: usize,
    /// Entries of the flight table; one allows one segment in flight.
    pub flight: usize,
}

/// A network and what its nodes do, all but the applications and the seed.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Who hears whom.
    pub air: Air,
    /// The next hop of each node towards node 0; node 0's own entry means nothing.
    pub parents: Vec<usize>,
    /// Whether node 0 is a border router with a host behind it.
    pub wire: Option<Wire>,
    /// Link layer of all nodes.
    pub mac: dot15d4::Config,
    /// Who sleeps, and how. The parent holds their frames.
    pub leaves: Vec<(usize, Sleep)>,
    /// Whether the nodes share a context for [`PREFIX`]; otherwise addresses go in line.
    pub contexts: bool,
    /// Whether all ends compress TCP headers.
    pub headers: bool,
    /// Silence after an own frame that has relays before it; see [`Config::pace_over`].
    pub pace: Duration,
    /// Whether relays mark and drop early.
    pub red: bool,
    /// TCP of the motes.
    pub transport: Transport,
    /// TCP of single motes, instead of that.
    pub transports: Vec<(usize, Transport)>,
    /// Share of the packets for, and of those from, the host of node 0 that are lost: `(for, from)`.
    pub lose: (f64, f64),
    /// Losses of links beside those of the radio.
    pub link_losses: Vec<LinkLoss>,
    /// What goes wrong.
    pub faults: Vec<(AirTime, Fault)>,
}

impl Transport {
    /// TCPlp's: segments of `frames` frames with addresses in line, `window` segments of buffer each way.
    ///
    /// Its retransmission timeout is at least 230 ms (FreeBSD's `TCPTV_MIN` of `hz/33` and a slop of `hz/5`, both
    /// kept in TCPlp's `tcp_timer.h`), acknowledgements wait up to 100 ms, for a second segment at most.
    pub fn tcplp(mss: u16, window: usize) -> Transport {
        let config = tcp::Config {
            mss,
            rto_min: Duration::from_millis(230),
            ..tcp::Config::STANDARD
        };
        Transport::new(config, window)
    }

    /// With buffers of so many segments of payload.
    pub fn new(config: tcp::Config, window: usize) -> Transport {
        // Timestamps take 12 octets of what the option calls a segment.
        let payload = usize::from(config.mss) - if config.timestamps { 12 } else { 0 };
        Transport {
            config,
            send: payload * window,
            receive: payload * window,
            // Twice the window, since pieces that were sent again in parts take entries too.
            flight: if window <= 1 { 1 } else { window * 2 },
        }
    }

    /// A server: the buffers of a window without scaling, Linux's timers (`TCP_RTO_MIN` 200 ms, delayed acknowledgements
    /// of 40 ms), NewReno.
    pub fn server(mss: u16) -> Transport {
        let config = tcp::Config {
            mss,
            rto_min: Duration::from_millis(200),
            delayed_ack: Duration::from_millis(40),
            ..tcp::Config::STANDARD
        };
        Transport {
            config,
            send: 65_535,
            receive: 65_535,
            flight: 128,
        }
    }
}

impl Wire {
    /// The paper's server (8): 12 ms there and back.
    pub fn paper(mss: u16) -> Wire {
        Wire {
            delay: Duration::from_millis(6),
            transport: Transport::server(mss),
        }
    }
}

/// TCPlp's segments: five frames with addresses in line; 462 octets of payload beside timestamps (specified: 5 frames of
/// 122 octets with 16 of headers, less 36 of compressed headers, 20 of TCP).
pub const MSS: u16 = 474;
/// Its buffers, in segments (6.2, 7.3).
pub const WINDOW: usize = 4;

impl Scene {
    /// A row of perfect links, `hops` of them, all else out of hearing: node 0 at one end, TCPlp's radio timing and
    /// pauses, its segments and windows, no border router.
    pub fn row(hops: usize) -> Scene {
        let links = (0..hops).map(|node| (node, node + 1, 1.0)).collect();
        let parents = (0..=hops).map(|node: usize| node.saturating_sub(1));
        Scene::new(Air::Links(links), parents.collect())
    }

    /// A row of motes `metres` apart with TCPlp's radio at its -8 dBm: neighbours have some decibels to spare at 30 m, and
    /// those behind them are noticed more often than understood.
    pub fn corridor(hops: usize, metres: f64) -> Scene {
        let air = Air::Places {
            at: chappe_sim::topology::line(hops + 1, metres),
            profile: "at86rf233-indoor",
            power: Dbm(-8.0),
            alike: true,
        };
        let parents = (0..=hops).map(|node: usize| node.saturating_sub(1));
        Scene::new(air, parents.collect())
    }

    /// Any tree.
    pub fn new(air: Air, parents: Vec<usize>) -> Scene {
        Scene {
            air,
            parents,
            wire: None,
            mac: dot15d4::Config::HAMILTON,
            leaves: Vec::new(),
            contexts: false,
            headers: false,
            pace: Duration::ZERO,
            red: true,
            transport: Transport::tcplp(MSS, WINDOW),
            transports: Vec::new(),
            lose: (0.0, 0.0),
            link_losses: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// How many nodes.
    pub fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// Hops from a node to node 0. A tree that leads in circles has as many as nodes.
    pub fn hops(&self, node: usize) -> usize {
        let (mut at, mut hops) = (node, 0);
        while at != 0 && hops < self.nodes() {
            (at, hops) = (self.parents.get(at).copied().unwrap_or(0), hops + 1);
        }
        hops
    }

    /// The address of a node's host.
    pub fn address(&self, node: usize) -> Ipv6Addr {
        match (node, self.wire) {
            (0, Some(_)) => CLOUD,
            _ => Config::new(Address::node(node as u16), PREFIX, 0).global(),
        }
    }

    /// TCP of a node's host.
    pub fn transport_of(&self, node: usize) -> Transport {
        match (node, self.wire) {
            (0, Some(wire)) => wire.transport,
            _ => self
                .transports
                .iter()
                .find(|(of, _)| *of == node)
                .map_or(self.transport, |(_, transport)| *transport),
        }
    }

    /// Makes the nodes, each with the application that `app` gives it, and lets them stand at time zero.
    pub fn start<'a, A: Application<'a>>(
        &self,
        ground: &'a mut Ground,
        seed: Seed,
        app: impl FnMut(usize) -> A,
    ) -> Result<Lln<'a, A>, RunError> {
        self.record(ground, seed, app, ())
    }

    /// The same, with somebody who writes down what is on the air.
    pub fn record<'a, A: Application<'a>, R: Recorder>(
        &self,
        ground: &'a mut Ground,
        seed: Seed,
        mut app: impl FnMut(usize) -> A,
        recorder: R,
    ) -> Result<Lln<'a, A, R>, RunError> {
        let nodes = ground.each().enumerate();
        let nodes = nodes.map(|(node, lent)| Box::new(self.node(node, lent, seed, app(node))));
        let nodes = nodes.collect();
        let defect = |error: chappe_sim::Error| RunError::Defect(error.to_string());
        let mut world = World::new(self.medium(seed).map_err(defect)?);
        world.link_losses = self.link_losses.clone();
        world.faults = self.faults.clone();
        world.frame_max = chappe_wire::dot15d4::PSDU_MAX;
        let simulator = Simulator::new(world, nodes, seed, recorder).map_err(defect)?;
        let addresses = (0..self.nodes()).map(|node| self.address(node)).collect();
        Ok(Lln::new(simulator, addresses))
    }

    /// What lies between the antennas.
    pub fn medium(&self, seed: Seed) -> Result<Medium, chappe_sim::Error> {
        match &self.air {
            Air::Given(medium) => Ok((**medium).clone()),
            Air::Links(links) => {
                let silent = Matrix::silent(self.nodes());
                let matrix = links
                    .iter()
                    .fold(silent, |matrix, &(a, b, prr)| matrix.with_link(a, b, prr));
                Medium::matrix(&matrix)
            }
            Air::Places {
                at,
                profile,
                power,
                alike,
            } => {
                let named = Profile::named(profile);
                let mut profile = named.unwrap_or_else(|| unreachable!("no radio {profile}"));
                profile.power = *power;
                if *alike {
                    profile.shadowing = chappe_core::Db(0.0);
                    if let Some(radio) = &mut profile.dot15d4 {
                        radio.selectivity = None;
                    }
                }
                Medium::geometric(at, &profile, seed)
            }
        }
    }

    /// One node.
    pub fn node<'a, A: Application<'a>>(
        &self,
        number: usize,
        lent: &'a mut Lent,
        seed: Seed,
        app: A,
    ) -> Node<'a, A> {
        let here = Address::node(number as u16);
        let stream = |of: u32| seed.stream(Purpose::Node(number as u32 * 4 + of));
        let mut mac_config = self.mac;
        mac_config.sleep = self.sleep(number);
        let config = Config {
            contexts: if self.contexts { &CONTEXTS } else { &[] },
            pace: self.pace,
            red: self.red.then_some(Thresholds::of(QUEUE as u16)),
            ..Config::new(here, PREFIX, self.mac.caps(0).frame_max)
        };
        let (local, sockets) = lent.sockets();
        let mut host = Host::new(local, config.link_local(), sockets, app);
        host.listen(PORT);
        let delay = self
            .wire
            .filter(|_| number == 0)
            .map_or(Duration::ZERO, |wire| wire.delay);
        let lose = if number == 0 { self.lose } else { (0.0, 0.0) };
        let gate = Gate::new(host, delay, lose, stream(2));
        let mut mac = Dot15d4::new(mac_config, here, stream(0));
        let paths = Paths::new(number, &self.parents, &self.children(number));
        for child in self.children(number) {
            mac.add_child(Address::node(child as u16));
        }
        let headers = self.headers.then(TcpHeaders::default);
        let stack = Interface::with_headers(config, gate, paths, stream(1), headers);
        OverMac::new(mac, stack)
    }

    /// How a node sleeps, if it does.
    pub fn sleep(&self, node: usize) -> Option<Sleep> {
        let found = self.leaves.iter().find(|(leaf, _)| *leaf == node);
        found.map(|(_, sleep)| *sleep)
    }

    /// The leaves that a node holds frames for.
    fn children(&self, node: usize) -> Vec<usize> {
        let leaves = self.leaves.iter().map(|(leaf, _)| *leaf);
        leaves
            .filter(|&leaf| self.parents.get(leaf) == Some(&node))
            .collect()
    }
}
