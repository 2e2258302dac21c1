//! The process: a TUN device, interfaces, a node, and a socket that answers questions about it.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::SystemTime;

use chappe_core::{Address, Duration, Instant, Seed};
use chappe_live::{
    Carrier, Config, Ending, Hellos, Live, Membership, Pace, Port, Retries, Statistics,
};
use chappe_sys::tun::{DATAGRAMS, Given, Joins, Tun};
use chappe_sys::{Error, Links};

use crate::answers::Answers;
use crate::exports::Exports;
use crate::node::Node;
use crate::pace::pace;
use crate::packet::Net;
use crate::segments::{self, Joiner};
use crate::settings::{Hop, NodeConfig};

/// The second EtherType that IEEE 802 leaves to local experiments; `chappe cast` has the first.
pub const ETHER_TYPE: u16 = 0x88b6;

/// The configuration of the process.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// The configuration of the node.
    pub node: NodeConfig,
    /// The members of the mesh, and this node's key.
    pub membership: Membership,
    /// The TUN device's name, in which `%d` becomes a free number.
    pub device: String,
    /// The interfaces to neighbours.
    pub interfaces: Vec<String>,
    /// The encapsulation of frames.
    pub carrier: Carrier,
    /// Whether routes to networks behind other nodes are put into the kernel's main table.
    pub export: bool,
    /// Where questions are answered: a Unix datagram socket.
    pub socket: Option<PathBuf>,
    /// Whether SIGINT, SIGTERM and SIGHUP end [`Mesh::run`].
    pub signals: bool,
}

/// A router process with its devices.
pub struct Mesh {
    live: Live<Node>,
    tun: Tun,
    /// What the host takes and gives as one packet.
    joins: Joins,
    answers: Option<Answers>,
    exports: Option<Exports>,
    mtu: usize,
}

/// Packets read from the host before the network gets its turn.
const TURN: usize = 64;
/// While each wake-up finds packets of the host, questions are looked for at one of so many: a tenth of a second at most, where wake-ups
/// follow each other in a millisecond or two.
const QUESTIONS: u32 = 64;
/// Octets of the longest packet that the device gives: joined segments, behind the device's header.
const JOINED_MAX: usize = (1 << 16) + 10;
/// How often exported routes are compared with what is announced.
const EXPORT_EVERY: Duration = Duration::from_secs(1);

impl Mesh {
    /// Opens interfaces and device and brings the device up. Needs CAP_NET_ADMIN, and CAP_NET_RAW for Ethernet frames.
    pub fn open(mut config: MeshConfig) -> chappe_sys::Result<Mesh> {
        let number = Address::node(config.node.number);
        let open = |name: &String| Port::open(name, number, config.carrier);
        let ports = config
            .interfaces
            .iter()
            .map(open)
            .collect::<Result<Vec<_>, _>>()?;
        let frame_max = ports.iter().map(|port| port.caps().frame_max).min();
        let frame_max =
            frame_max.ok_or_else(|| Error::invalid("open the mesh", "no interface is given"))?;
        let seed = Seed(chappe_sys::random_u64()?);
        let seconds = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_secs() as u32);
        let networks = config.node.networks.clone();
        let mut node = Node::new(config.node.clone(), frame_max, Instant::ZERO, seed, seconds)
            .map_err(|why| Error::invalid("set up the node", &why))?;
        node.join(config.membership.clone());
        let mtu = node.mtu();
        config.node.mtu = mtu;
        let tun = Tun::create_joining(&config.device)?;
        let joins = tun.join_all();
        let links = Links::open()?;
        links.set_mtu(tun.name(), mtu as u32)?;
        set_addresses(&links, tun.name(), &networks, config.node.number)?;
        links.up(tun.name())?;
        let live = Live::with_ports(driver(&config), ports, Box::new(node))?;
        live.watch(&tun)?;
        let answers = match &config.socket {
            Some(path) => Some(Answers::listen(path)?),
            None => None,
        };
        if let Some(answers) = &answers {
            live.watch(answers.as_fd())?;
        }
        let exports = config.export.then(|| Exports::new(tun.name(), links));
        Ok(Mesh {
            live,
            tun,
            joins,
            answers,
            exports,
            mtu,
        })
    }

    /// The name of the TUN device.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// The MTU of the device in octets.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Takes over a newer list of members, between two runs. Neighbours that have an older one get it; those who are not in it are no
    /// neighbours any more. [`Statistics::notice`] has a list that a neighbour sent, which `observe` sees.
    pub fn join(&mut self, membership: Membership) -> chappe_sys::Result<()> {
        self.live.node().join(membership.clone());
        self.live.join(membership)
    }

    /// Runs until `observe` breaks or a signal arrives. Errors are those of the device and of an interface that has gone.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut Node, Instant, &Statistics) -> ControlFlow<()>,
    ) -> chappe_sys::Result<Ending> {
        let Mesh {
            live,
            tun,
            joins,
            answers,
            exports,
            ..
        } = self;
        let mut host = HostSide {
            tun,
            packet: vec![0; JOINED_MAX],
            room: Vec::new(),
            joiner: Joiner::new(*joins),
            reads: Reads::default(),
        };
        let mut busy: u32 = 0;
        let (mut failed, mut export_at) = (None, Instant::ZERO);
        let ending = live.run(|node, now, statistics| {
            let taken = match host.exchange(node, now, statistics.watched) {
                Ok(taken) => taken,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            // Most wake-ups are the device's, and each look at the socket is a call of the system.
            busy = if taken { busy + 1 } else { 0 };
            let asks = statistics.watched && busy.is_multiple_of(QUESTIONS);
            if let Some(answers) = answers.as_ref().filter(|_| asks) {
                answers.answer(node, now, statistics);
            }
            if let Some(exports) = exports.as_mut().filter(|_| now >= export_at) {
                export_at = now + EXPORT_EVERY;
                exports.follow(node, now);
            }
            observe(node, now, statistics)
        })?;
        if let Some(exports) = exports {
            exports.withdraw();
        }
        failed.map_or(Ok(ending), Err)
    }
}

/// How frames leave. The node itself decides when.
fn driver(config: &MeshConfig) -> Config {
    Config {
        hellos: Hellos {
            first: Duration::from_millis(200),
            measuring: Duration::from_secs(1),
            later: (pace(&config.node.air, usize::from(config.node.size)).probe * 8)
                .max(Duration::from_secs(1)),
            // The router's probes do.
            measures: false,
        },
        // A unicast waits for the frames of two neighbours and for the confirmation.
        retries: Retries {
            wait: (config.node.air.exchange(config.node.mtu) * 6).max(Duration::from_millis(5)),
            ..Retries::default()
        },
        // Where frames are broadcast, cards recover nothing else either.
        keys_as_broadcasts: config.node.hop == Hop::Broadcast,
        signals: config.signals,
        reload: config.signals,
        ..Config::new(Pace::Unlimited, config.membership.clone())
    }
}

fn set_addresses(
    links: &Links,
    device: &str,
    networks: &[Net],
    number: u16,
) -> chappe_sys::Result<()> {
    for net in networks {
        let address = net.nth(number).ok_or_else(|| {
            let why = format!("{net} has no address for node {number}");
            Error::invalid("set the address", &why)
        })?;
        match address {
            IpAddr::V4(address) => links.add_address(device, address, net.prefix)?,
            IpAddr::V6(address) => links.add_address_v6(device, address, net.prefix)?,
        }
    }
    Ok(())
}

/// The host's side of a running node.
struct HostSide<'a> {
    tun: &'a Tun,
    /// Room for a packet of the device.
    packet: Vec<u8>,
    /// Room for a segment of it.
    room: Vec<u8>,
    joiner: Joiner,
    reads: Reads,
}

/// How many reads of the device a turn makes: a read that finds it empty is a call of the system in vain. What is left there ends the
/// next wait at once.
#[derive(Debug)]
struct Reads {
    most: usize,
    /// When the last turn ended that did not find the device empty.
    left_at: Option<Instant>,
}

/// Two turns closer than this follow each other without a wait.
const AT_ONCE: Duration = Duration::from_micros(50);

impl Default for Reads {
    fn default() -> Reads {
        Reads {
            most: 1,
            left_at: None,
        }
    }
}

impl Reads {
    /// The most reads of a turn that begins now: twice as many as in the last one, if that left something.
    fn begin(&mut self, now: Instant) -> usize {
        let left = self.left_at.take();
        if left.is_some_and(|left| now.saturating_since(left) < AT_ONCE) {
            self.most = (self.most * 2).min(TURN);
        }
        self.most
    }

    /// A turn ends after so many packets; `empty`: nothing was left.
    fn end(&mut self, now: Instant, packets: usize, empty: bool) {
        match empty {
            true => self.most = packets.clamp(1, TURN),
            false => self.left_at = Some(now),
        }
    }
}

impl HostSide<'_> {
    /// Packets from the host to the node, if some may wait, and back. Whether there were any of the host.
    fn exchange(
        &mut self,
        node: &mut Node,
        now: Instant,
        waiting: bool,
    ) -> chappe_sys::Result<bool> {
        let answered = self.deliver(node)?;
        let most = match waiting {
            true => self.reads.begin(now).max(answered),
            false => answered,
        };
        let (mut count, mut reads, mut empty) = (0, 0, false);
        while count < TURN && reads < most {
            let Some((len, joined)) = self.tun.receive_joined(&mut self.packet)? else {
                empty = true;
                break;
            };
            let packet = self.packet.get(..len).unwrap_or_default();
            let cut = joined.map_or(0, |joined| {
                segments::cut(packet, joined, &mut self.room, |one| node.offer(now, one))
            });
            if cut == 0 {
                // One packet; or what no rule cuts, which the node drops and counts, since it is too long.
                node.offer(now, packet);
            }
            count += cut.max(1);
            reads += 1;
        }
        if waiting {
            self.reads.end(now, reads, empty);
        }
        Ok(count > 0)
    }

    /// Packets for the host. How many answers it has given by now: Linux acknowledges joined segments while it takes them.
    fn deliver(&mut self, node: &mut Node) -> chappe_sys::Result<usize> {
        let mut answers = 0;
        while let Some(len) = node.deliver(&mut self.packet) {
            let packet = self.packet.get(..len).unwrap_or_default();
            if !self.joiner.push(packet) {
                answers += usize::from(give(self.tun, &mut self.joiner, &mut self.room)?);
                self.joiner.push(packet);
            }
        }
        Ok(answers + usize::from(give(self.tun, &mut self.joiner, &mut self.room)?))
    }
}

/// Gives the host what has been joined; one by one, from now on, if it refuses that. A host without room drops, as any interface
/// does. Whether it were joined segments.
fn give(tun: &Tun, joiner: &mut Joiner, room: &mut Vec<u8>) -> chappe_sys::Result<bool> {
    let Some((packet, joined)) = joiner.take() else {
        return Ok(false);
    };
    let given = tun.give(packet, joined)?;
    let Some(joined) = joined else {
        return Ok(false);
    };
    if given == Given::Refused {
        let mut failed = None;
        segments::cut(packet, joined, room, |one| {
            failed = tun.give(one, None).err().or(failed.take());
        });
        joiner.without(joined);
        return failed.map_or(Ok(true), Err);
    }
    Ok(joined.kind != DATAGRAMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: where the device has one packet at each wake-up, turns end without a read in vain; where it has many, the turns grow.
    #[test]
    fn reads_follow_what_the_device_has() {
        let at = Instant::from_micros;
        let mut reads = Reads::default();
        for turn in 0..10 {
            let now = at(1000 * turn);
            assert_eq!(reads.begin(now), 1);
            reads.end(now, 1, false);
        }
        let mut now = 20_000;
        for most in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(reads.begin(at(now)), most);
            reads.end(at(now), most, false);
            now += 20;
        }
        assert_eq!(reads.begin(at(now)), 64);
        reads.end(at(now), 3, true);
        assert_eq!(reads.begin(at(now + 20)), 3);
    }
}
