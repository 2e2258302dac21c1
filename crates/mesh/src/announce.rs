//! Announcements: which networks lie behind a node, told to the whole mesh.
//!
//! Nodes have addresses in the mesh's own networks, by their number, so most have nothing to announce. Those with networks
//! behind them, gateways among them, repeat an announcement. Every node passes each version on once, and all that it knows to
//! a new neighbour.
//!
//! ```text
//!  +------+---------+---- 18 octets each ---------+
//!  | node | version | width, prefix, address (16) |
//!  +------+---------+-----------------------------+
//!    2       4
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chappe_core::{Duration, Instant, Stream};

use crate::packet::Net;

/// Most networks that a node announces.
pub const NETS_MAX: usize = 16;
/// Most nodes whose announcements are kept.
const NODES_MAX: usize = 1024;
/// Time between two versions of an announcement (ours: a new node waits no longer, and it costs a frame in ten seconds).
const REPEAT: Duration = Duration::from_secs(10);
/// An announcement without a new version for this long is forgotten: four were missed.
const LIFE: Duration = Duration::from_secs(45);
/// Pauses before an announcement is passed on are random up to this, so that neighbours do not answer together.
const PAUSE: Duration = Duration::from_millis(100);
/// A version may be ahead of the known one by this much. A larger step, which is a lie or the trace of a long partition, counts
/// only once the known one has expired.
const AHEAD: u32 = 1 << 24;
const HEAD: usize = 6;
const NET: usize = 18;

/// What one node announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The number of the node.
    pub node: u16,
    /// Grows with every repetition.
    pub version: u32,
    /// The networks behind it.
    pub nets: Vec<Net>,
}

/// Why an announcement changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// It is cut short, or names a network that cannot be.
    Malformed,
    /// It is no newer than the known one, or too far ahead of it.
    Stale,
    /// There is no room for another node.
    Full,
}

/// All announcements that a node knows, its own included.
#[derive(Debug)]
pub struct Announcements {
    me: u16,
    own: Vec<Net>,
    version: u32,
    repeat_at: Instant,
    random: Stream,
    known: BTreeMap<u16, Known>,
}

#[derive(Debug)]
struct Known {
    version: u32,
    nets: Vec<Net>,
    heard: Instant,
    /// When it is passed on, if it still must be.
    pass_at: Option<Instant>,
}

impl Announcement {
    /// Reads the body of a frame.
    pub fn parse(body: &[u8]) -> Option<Announcement> {
        let (&[n0, n1, v0, v1, v2, v3], rest) = body.split_first_chunk::<HEAD>()?;
        let (nets, cut) = rest.as_chunks::<NET>();
        if !cut.is_empty() || nets.len() > NETS_MAX {
            return None;
        }
        let net = |net: &[u8; NET]| {
            let [width, prefix, address @ ..] = *net;
            let address: IpAddr = match width {
                4 => Ipv4Addr::from(*address.first_chunk::<4>()?).into(),
                6 => Ipv6Addr::from(*address.first_chunk::<16>()?).into(),
                _ => return None,
            };
            let most = if width == 4 { 32 } else { 128 };
            (prefix <= most).then_some(Net { address, prefix })
        };
        Some(Announcement {
            node: u16::from_be_bytes([n0, n1]),
            version: u32::from_be_bytes([v0, v1, v2, v3]),
            nets: nets.iter().map(net).collect::<Option<_>>()?,
        })
    }

    /// Writes it; the octets written, `None` if there is no room.
    pub fn emit(&self, room: &mut [u8]) -> Option<usize> {
        let (head, rest) = room.split_first_chunk_mut::<HEAD>()?;
        head[..2].copy_from_slice(&self.node.to_be_bytes());
        head[2..].copy_from_slice(&self.version.to_be_bytes());
        let places = rest.as_chunks_mut::<NET>().0.get_mut(..self.nets.len())?;
        for (place, net) in places.iter_mut().zip(&self.nets) {
            *place = [0; NET];
            place[1] = net.prefix;
            match net.address {
                IpAddr::V4(address) => {
                    place[0] = 4;
                    place[2..6].copy_from_slice(&address.octets());
                }
                IpAddr::V6(address) => {
                    place[0] = 6;
                    place[2..].copy_from_slice(&address.octets());
                }
            }
        }
        Some(HEAD + NET * self.nets.len())
    }
}

impl Announcements {
    /// Nothing is known but what this node itself announces. `version` must exceed that of its last life: the time of day in
    /// seconds does.
    pub fn new(
        me: u16,
        own: Vec<Net>,
        version: u32,
        now: Instant,
        mut random: Stream,
    ) -> Announcements {
        let repeat_at = now + Duration::from_nanos(random.below(Duration::from_secs(1).nanos()));
        Announcements {
            me,
            own,
            version,
            repeat_at,
            random,
            known: BTreeMap::new(),
        }
    }

    /// Handles an announcement that a neighbour passed on.
    pub fn on_frame(&mut self, now: Instant, body: &[u8]) -> Result<(), Ignored> {
        let heard = Announcement::parse(body).ok_or(Ignored::Malformed)?;
        if heard.node == self.me {
            // This node has restarted with a clock that is behind, or someone lies: the next version exceeds it by one.
            let ahead = heard.version.wrapping_sub(self.version);
            if (1..AHEAD).contains(&ahead) && !self.own.is_empty() {
                self.version = heard.version;
                self.repeat_at = self.repeat_at.min(now + Duration::from_secs(1));
            }
            return Err(Ignored::Stale);
        }
        if let Some(known) = self.known.get(&heard.node) {
            let ahead = heard.version.wrapping_sub(known.version);
            let alive = now.saturating_since(known.heard) < LIFE;
            if alive && !(1..AHEAD).contains(&ahead) {
                return Err(Ignored::Stale);
            }
        } else if self.known.len() >= NODES_MAX {
            self.forget(now);
            if self.known.len() >= NODES_MAX {
                return Err(Ignored::Full);
            }
        }
        let pause = Duration::from_nanos(self.random.below(PAUSE.nanos()));
        self.known.insert(
            heard.node,
            Known {
                version: heard.version,
                nets: heard.nets,
                heard: now,
                pass_at: Some(now + pause),
            },
        );
        Ok(())
    }

    /// A neighbour is new: it gets everything that is known.
    pub fn on_neighbour(&mut self, now: Instant) {
        for known in self.known.values_mut() {
            let pause = Duration::from_nanos(self.random.below(PAUSE.nanos()));
            known.pass_at.get_or_insert(now + pause);
        }
        self.repeat_at = self.repeat_at.min(now + PAUSE);
    }

    /// Whether one must be sent now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
    }

    /// When the next one must be sent.
    pub fn deadline(&self) -> Option<Instant> {
        let own = Some(self.repeat_at).filter(|_| !self.own.is_empty());
        let passed = self.known.values().filter_map(|known| known.pass_at);
        passed.chain(own).min()
    }

    /// Writes the one that is due.
    pub fn write(&mut self, now: Instant, room: &mut [u8]) -> Option<usize> {
        if !self.own.is_empty() && self.repeat_at <= now {
            self.version = self.version.wrapping_add(1);
            let jitter = 0.8 + 0.4 * self.random.fraction();
            self.repeat_at = now + REPEAT.mul_f64(jitter);
            let own = Announcement {
                node: self.me,
                version: self.version,
                nets: self.own.clone(),
            };
            return own.emit(room);
        }
        let due = |known: &Known| known.pass_at.is_some_and(|at| at <= now);
        let (&node, known) = self.known.iter_mut().find(|(_, known)| due(known))?;
        known.pass_at = None;
        let passed = Announcement {
            node,
            version: known.version,
            nets: known.nets.clone(),
        };
        passed.emit(room)
    }

    /// The nodes behind which an address lies, with the length of the prefix; other nodes' only.
    pub fn behind(&self, now: Instant, address: IpAddr) -> impl Iterator<Item = (u16, u8)> + '_ {
        let alive = self.all(now);
        alive.flat_map(move |(node, nets)| {
            let has = nets.iter().filter(move |net| net.has(address));
            has.map(move |net| (node, net.prefix))
        })
    }

    /// What other nodes announce.
    pub fn all(&self, now: Instant) -> impl Iterator<Item = (u16, &[Net])> {
        let alive = move |known: &&Known| now.saturating_since(known.heard) < LIFE;
        let known = self.known.iter().filter(move |(_, known)| alive(known));
        known.map(|(&node, known)| (node, &known.nets[..]))
    }

    /// What this node announces.
    pub fn own(&self) -> &[Net] {
        &self.own
    }

    fn forget(&mut self, now: Instant) {
        self.known
            .retain(|_, known| now.saturating_since(known.heard) < LIFE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn node(me: u16, nets: &[&str], version: u32) -> Announcements {
        let nets = nets.iter().map(|net| Net::parse(net).unwrap()).collect();
        Announcements::new(
            me,
            nets,
            version,
            Instant::ZERO,
            Seed(1).stream(Purpose::Node(me.into())),
        )
    }

    fn at(secs: u64) -> Instant {
        Instant::from_millis(1000 * secs)
    }

    fn write(from: &mut Announcements, now: Instant) -> Option<Vec<u8>> {
        let mut room = [0; 400];
        let len = from.write(now, &mut room)?;
        Some(room[..len].to_vec())
    }

    #[test]
    fn announcements_are_passed_on_once_and_expire() {
        let mut gateway = node(1, &["0.0.0.0/0", "10.1.0.0/16", "fd01::/32"], 100);
        let mut relay = node(2, &[], 0);
        let first = write(&mut gateway, at(1)).unwrap();
        assert_eq!(write(&mut gateway, at(1)), None);
        assert_eq!(relay.on_frame(at(1), &first), Ok(()));
        let passed = write(&mut relay, at(2)).unwrap();
        assert_eq!((passed == first, write(&mut relay, at(2))), (true, None));
        assert_eq!(relay.on_frame(at(2), &passed), Err(Ignored::Stale));
        let behind = |now, to: &str| relay.behind(now, to.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(behind(at(2), "10.1.2.3"), [(1, 0), (1, 16)]);
        assert_eq!(behind(at(2), "fd01::7"), [(1, 32)]);
        assert_eq!(behind(at(50), "10.1.2.3"), []);
        relay.on_neighbour(at(3));
        assert!(write(&mut relay, at(4)).is_some());
    }

    /// A version from the future neither stays nor silences its owner.
    #[test]
    fn a_version_from_the_future_is_overcome() {
        let mut relay = node(2, &[], 0);
        let mut lie = Announcement {
            node: 1,
            version: 5,
            nets: vec![Net::DEFAULT_V4],
        };
        let mut room = [0; 99];
        let mut heard = |now, lie: &Announcement| {
            let len = lie.emit(&mut room).unwrap();
            relay.on_frame(now, &room[..len])
        };
        assert_eq!(heard(at(0), &lie), Ok(()));
        lie.version = u32::MAX / 2;
        assert_eq!(heard(at(1), &lie), Err(Ignored::Stale), "too far ahead");
        assert_eq!(heard(at(60), &lie), Ok(()));
        lie.version = 6;
        assert_eq!(heard(at(61), &lie), Err(Ignored::Stale));
        assert_eq!(
            heard(at(61) + LIFE, &lie),
            Ok(()),
            "after the lie has expired"
        );
        let mut owner = node(1, &["10.0.0.0/8"], 6);
        lie.version = 1000;
        let len = lie.emit(&mut room).unwrap();
        assert_eq!(owner.on_frame(at(0), &room[..len]), Err(Ignored::Stale));
        let next = Announcement::parse(&write(&mut owner, at(2)).unwrap()).unwrap();
        assert_eq!(next.version, 1001);
    }

    #[test]
    fn noise_is_rejected_and_memory_bounded() {
        let mut relay = node(2, &[], 0);
        let mut stream = Seed(5).stream(Purpose::Trial(0));
        for len in (0..300).cycle().take(20_000) {
            let mut noise = vec![0; len];
            stream.fill(&mut noise);
            let _ = relay.on_frame(at(0), &noise);
        }
        for node in 3..5000u16 {
            let one = Announcement {
                node,
                version: 1,
                nets: vec![],
            };
            let len = one.emit(&mut [0; 99]).unwrap();
            let mut room = vec![0; len];
            one.emit(&mut room);
            let _ = relay.on_frame(at(0), &room);
        }
        assert_eq!(relay.known.len(), NODES_MAX);
    }
}
