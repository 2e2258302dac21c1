//! One peer: sessions, recovery, queues and pace. It does no I/O: datagrams and time go in, datagrams come out.

mod sessions;
mod traffic;

pub use traffic::{BULK, Goodput};

use chappe_core::{Bitrate, Duration, Instant};
use chappe_session::{Gate, OVERHEAD, Psk, Public, Sessions};
use chappe_sys::Endpoint;
use chappe_wildnet::{Config, ConfigError, FLOWS, Link, SERVICES, Service};

use crate::classify::Net;
use crate::pace::{Pace, Sight};
use crate::packing::{JOINED, JOINED_MAX, PACKET_MAX, Packer, Queues, Unpacker, longest};
use crate::path_mtu::PathMtu;

/// The configuration of a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// Its name in messages and metrics.
    pub name: String,
    /// The public key by which it is known.
    pub public: Public,
    /// A secret that both hosts share besides their keys, if any.
    pub psk: Option<Psk>,
    /// Its address. Without one, the peer must call first.
    pub endpoint: Option<Endpoint>,
    /// The networks behind it: packets to them go to this peer, and its packets must come from them.
    pub networks: Vec<Net>,
    /// Largest datagram in octets.
    pub datagram_max: usize,
    /// Octets that the layers below add to a datagram on the medium.
    pub below: usize,
    /// The rate of the medium; `None` to find it from the path's delay.
    pub rate: Option<Bitrate>,
    /// The service of each class.
    pub services: [Service; SERVICES],
    /// Queue length of a class, as the time in which the link carries it. Beyond it the longest flow loses packets.
    pub queue: Duration,
    /// Interval between empty frames on an idle link, which keep the entries of address translators alive.
    pub keepalive: Duration,
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No session and no address: the peer must call first.
    Waiting,
    /// No session: calls go out unanswered.
    Calling,
    /// There is a session, and frames arrive.
    Up,
    /// There is a session, but nothing has arrived although it should have: for 5 s after a packet left, or for two
    /// intervals of the peer's keepalive.
    Silent,
    /// Frames arrive, but the peer reports none of ours: the outgoing direction is dead.
    Deaf,
}

/// Counters of a peer, in addition to those of [`Link`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Sessions established since the start.
    pub sessions: u64,
    /// Frames not sealed with the session's key, and answers not made with the peer's.
    pub forged: u64,
    /// Replayed or duplicate frames and calls.
    pub repeated: u64,
    /// Datagrams of an unknown form, or for a session that has ended.
    pub strange: u64,
    /// Times the peer's address changed.
    pub moved: u64,
    /// Packets from the peer whose source is not in its networks.
    pub foreign: u64,
    /// Packets of the host that were empty or too long.
    pub not_taken: u64,
    /// Packets of the host dropped from a full queue, which is how a full link slows its senders down.
    pub queue_dropped: u64,
    /// Packets from the peer that could not be reassembled, or whose short header follows none.
    pub unreadable: u64,
    /// Packets from the peer for which the host had no room.
    pub host_full: u64,
    /// Datagrams sent, with or without packets.
    pub datagrams_sent: u64,
    /// Octets of datagrams sent, with the headers of the layers below.
    pub octets_sent: u64,
    /// Datagrams received that matched this peer, authentic or not.
    pub datagrams_received: u64,
    /// Octets of packets delivered to the host.
    pub octets_delivered: u64,
}

/// The protocol state of one peer.
pub struct Peer {
    config: PeerConfig,
    link: Link,
    queues: Queues,
    packer: Packer,
    unpacker: Unpacker,
    spare: traffic::Spare,
    goodput: Goodput,
    /// Buffer for a container on its way to or from the link.
    container: Vec<u8>,
    life: u64,
    /// Keys, calls and sealed frames.
    sessions: Sessions<Endpoint>,
    /// The host's clock at some instant, as time since 1970.
    wall: (Instant, std::time::Duration),
    peer_life: Option<u64>,
    /// The interval between the peer's empty frames, as it said.
    peer_keepalive: Duration,
    endpoint: Option<Endpoint>,
    pace: Pace,
    path_mtu: PathMtu,
    heard_at: Instant,
    sent_at: Instant,
    /// When the first frame left that the peer should have reported by now; `None` if nothing waits for a report.
    asked_at: Option<Instant>,
    /// When the host last sent or got a packet through the link, or a session began after a silence.
    busy_at: Instant,
    /// When this end wanted its next turn, and when it last went on after it had got none for long.
    due_at: Option<Instant>,
    resumed_at: Instant,
    /// Packets expired by the latest look at them, and when and how many last did.
    expired: (u64, Option<(Instant, u64)>),
    /// When to send a frame that proves a new session to the peer, or confirms it, and how long to wait before the next one;
    /// `None` once a frame has come.
    prove_at: Option<(Instant, Duration)>,
    counters: PeerCounters,
    /// The last problem, with what to do.
    trouble: Option<String>,
}

/// Interval between empty frames while packets came lately. They let each side notice the other's silence.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// How long after the latest packet a link counts as idle, and keeps only address translators awake.
const IDLE: Duration = Duration::from_secs(10);
/// The usual interval on an idle link: nearly all address translators keep an entry for 30 s (RFC 4787 asks for two minutes).
pub const IDLE_KEEPALIVE: Duration = Duration::from_secs(25);
/// First interval between proofs of a session that the peer has not used yet, since proofs can be lost. It doubles.
const PROVE_EVERY: Duration = Duration::from_millis(100);
/// Lateness of a turn from which on it counts as a pause: twice what a busy machine's scheduler takes, and a tenth of the shortest
/// stops of virtual machines.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a report of expired packets stands.
const EXPIRED_FOR: Duration = Duration::from_secs(10);
/// How long a peer may owe a report until it is called again, and until it counts as silent.
const OVERDUE: Duration = Duration::from_secs(2);
const SILENT: Duration = Duration::from_secs(5);
/// Largest number of peers of one process.
pub const PEERS_MAX: usize = chappe_session::PLACES as usize;

impl Peer {
    /// Peer `number` of the host behind `gate`. `life` is a random number of the process, and `seed` 32 unpredictable octets.
    /// Fails if a datagram is too short for the recovery, or a service is invalid.
    pub fn new(
        config: PeerConfig,
        gate: &Gate,
        number: usize,
        life: u64,
        seed: [u8; 32],
    ) -> Result<Peer, ConfigError> {
        let frame_max = config.datagram_max.saturating_sub(OVERHEAD);
        let link = Link::new(
            Config {
                services: config.services,
                // The queues here decide what is next at the last moment. Packets are bundled in containers.
                queue: 2,
                bundle: false,
                ..Config::tunnel(frame_max)
            },
            0,
        )?;
        Ok(Peer {
            container: vec![0; link.config().packet_max()],
            link,
            queues: Queues::new(),
            packer: Packer::new(FLOWS),
            unpacker: Unpacker::new(FLOWS),
            spare: traffic::Spare::default(),
            goodput: Goodput::default(),
            life,
            sessions: Sessions::new(gate, config.public, config.psk.clone(), number as u32, seed),
            wall: (Instant::ZERO, std::time::Duration::ZERO),
            peer_life: None,
            peer_keepalive: IDLE_KEEPALIVE,
            endpoint: config.endpoint,
            pace: Pace::new(config.rate, config.datagram_max + config.below),
            path_mtu: PathMtu::new(config.datagram_max),
            heard_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            asked_at: None,
            busy_at: Instant::ZERO,
            due_at: None,
            resumed_at: Instant::ZERO,
            expired: (0, None),
            prove_at: None,
            counters: PeerCounters::default(),
            trouble: None,
            config,
        })
    }

    /// The configuration, with later changes.
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// The recovery, to read its report and counters.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The counters since the start.
    pub fn counters(&self) -> &PeerCounters {
        &self.counters
    }

    /// The counters, for those that the tunnel keeps.
    pub(crate) fn counters_mut(&mut self) -> &mut PeerCounters {
        &mut self.counters
    }

    /// The address where it was last heard, or the configured one.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint
    }

    /// The present pace, with the headers of the layers below.
    pub fn rate(&self) -> Bitrate {
        self.pace.rate()
    }

    /// The last problem, with what to do about it.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The name of the peer in the configuration.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The largest datagram that is sent to it, in octets: what is configured, or less if the path carries less.
    pub fn datagram_max(&self) -> usize {
        self.path_mtu.limit()
    }

    /// What to do about a path that carries less than is configured.
    pub fn narrowness(&self) -> Option<String> {
        let mtu = |datagram: usize| datagram + self.config.below.saturating_sub(14);
        self.path_mtu.is_narrow().then(|| {
            format!(
                "the path to {} carries packets of {} octets and no longer ones, though `path_mtu` is {}; shorter ones are sent: write path_mtu = {} on both hosts to save the search",
                self.config.name,
                mtu(self.path_mtu.limit()),
                mtu(self.config.datagram_max),
                mtu(self.path_mtu.limit())
            )
        })
    }

    /// What to do about packets that were dropped within the latest ten seconds because they came too late to be sent.
    pub fn expiry(&self, now: Instant) -> Option<String> {
        let (at, count) = self.expired.1?;
        let fresh = now.saturating_since(at) < EXPIRED_FOR;
        fresh.then(|| {
            format!(
                "{count} packets for {} waited past the deadline of their class and were dropped: raise `deadline` in [peer.urgent] (or set `drop_late = false`), or send less of that class",
                self.config.name
            )
        })
    }

    /// The state of the peer.
    pub fn state(&self, now: Instant) -> State {
        match (self.sessions.is_up(now), self.endpoint) {
            (false, None) => State::Waiting,
            (false, Some(_)) => State::Calling,
            (true, _) if self.silence(now) > SILENT => State::Silent,
            (true, _) if self.link.report().pto_count >= 4 => State::Deaf,
            (true, _) => State::Up,
        }
    }

    /// Changes the service of a class. It loses no packet.
    pub fn set_service(&mut self, class: usize, service: Service) {
        if let Some(own) = self.config.services.get_mut(class) {
            *own = service;
            self.link.set_service(class, service);
            // Under the new service, packets that short headers refer to may be given up.
            self.packer.forget();
        }
    }

    /// Changes the rate of the medium; `None` to find it from now on.
    pub fn set_rate(&mut self, rate: Option<Bitrate>) {
        self.config.rate = rate;
        self.pace.give(rate);
    }

    /// Replaces the networks behind the peer.
    pub fn set_networks(&mut self, networks: Vec<Net>) {
        self.config.networks = networks;
    }

    /// Sets where the peer is called from now on, and calls it there at once if it is another place than before.
    pub fn set_endpoint(&mut self, to: Option<Endpoint>) {
        if self.config.endpoint != to {
            self.config.endpoint = to;
            self.endpoint = to.or(self.endpoint);
            self.asked_at = self.asked_at.or(Some(Instant::ZERO));
            self.sessions.hurry();
        }
    }

    /// Sets the interval between empty frames on an idle link.
    pub fn set_keepalive(&mut self, keepalive: Duration) {
        self.config.keepalive = keepalive;
    }

    /// When the present session began.
    pub fn session_since(&self) -> Option<Instant> {
        self.sessions.since()
    }

    /// Largest packet in octets: 9000, or less if frames are so short that it would need too many.
    pub fn packet_max(&self) -> usize {
        PACKET_MAX.min(longest(self.container_least()))
    }

    /// Largest packet of coalesced segments in octets: 65,535, or less if frames are short.
    pub fn joined_max(&self) -> usize {
        let carried = longest(self.container_least());
        JOINED_MAX.min(carried.saturating_sub(JOINED))
    }

    /// Writes the next datagram to the front of `datagram`. Returns its length and destination.
    pub fn poll(&mut self, now: Instant, datagram: &mut [u8]) -> Option<(usize, Endpoint)> {
        self.notice_pause(now);
        let next = self.poll_next(now, datagram);
        self.due_at = match next {
            Some(_) => Some(now),
            None => self.deadline(now).map(|at| at.max(now)),
        };
        next
    }

    fn poll_next(&mut self, now: Instant, datagram: &mut [u8]) -> Option<(usize, Endpoint)> {
        // Answers and calls need no session and do not wait for the pace.
        if let Some(answer) = self.sessions.next_answer(datagram) {
            return Some(answer);
        }
        if let Some(call) = self.call(now, datagram) {
            return Some(call);
        }
        let to = self.endpoint?;
        let len = self.frame(now, datagram)?;
        Some((len, to))
    }

    /// When to call [`poll`](Self::poll) if nothing arrives before.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.sessions.owes() {
            return Some(now);
        }
        let call = self.call_at(now);
        self.endpoint?;
        if !self.sessions.is_up(now) {
            return call;
        }
        // Due frames wait for the pace. Frames beyond the window wait for a report.
        let paced = |at: Instant| at.max(self.pace.free_at());
        let room = !self.is_full();
        let again = self.link.repeats() || self.link.probes() || self.fills();
        let again = (room && again).then(|| self.pace.free_at());
        let new = self.new_at().filter(|_| room).map(paced);
        let report = self.link.report_at().map(paced);
        let kept = Some(paced(self.sent_at + self.keepalive(now)));
        let others = [
            kept,
            self.prove_at.map(|prove| paced(prove.0)),
            self.path_mtu.due_at().map(paced),
            call,
            self.asked_at.map(|at| at + OVERDUE).filter(|at| *at > now),
            self.link.probe_at(),
            self.link.settle_at(),
            again,
            new,
            report,
        ];
        others.into_iter().flatten().min()
    }
}

/// Pauses and pace.
impl Peer {
    /// Notices that this end got its turn far later than it wanted: the host stood still, or the process did.
    fn notice_pause(&mut self, now: Instant) {
        let due = self.due_at.take();
        let late = due.map_or(Duration::ZERO, |at| now.saturating_since(at));
        // At most one a second, so that a host which is always late still measures something.
        if late > PAUSE && now.saturating_since(self.resumed_at) > Duration::from_secs(1) {
            self.resumed_at = now;
            self.link.resume(now);
        }
    }

    fn judge_pace(&mut self, now: Instant) {
        let report = self.link.report();
        let frame = self.config.datagram_max + self.config.below;
        let (Some((smoothed, least)), Some(lately), Some((latest, _))) =
            (report.rtt, report.rtt_lately, report.rtt_latest)
        else {
            return;
        };
        let sight = Sight {
            smoothed,
            least,
            latest,
            lately,
            passed: report.passed,
            frames: (report.totals.received, report.totals.lost),
            // Of twenty round trips that differ by up to this in each direction, the least lies about a quarter of it above the
            // least of thousands.
            jitter: report.reordering / 4,
            // A queue much shorter than that cannot be seen.
            right: (self.pace.queued(report.channel.loss, frame)).max(report.reordering / 4),
        };
        let measured = report
            .rtt_latest
            .is_some_and(|(_, at)| at > self.resumed_at);
        match measured {
            true => self.pace.judge(now, &sight, report.reordering),
            // Nothing has been measured since this end stood still.
            false => self.pace.skip(now, &sight),
        }
    }

    fn move_to(&mut self, from: Endpoint) {
        if self.endpoint != Some(from) {
            self.counters.moved += u64::from(self.endpoint.is_some());
            self.endpoint = Some(from);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use chappe_session::Secret;

    /// A peer called hill that never answers.
    pub(crate) fn lone(endpoint: Option<Endpoint>) -> Peer {
        let gate = Gate::new(crate::PROTOCOL, Secret::new([1; 32]), [2; 32]);
        let config = PeerConfig {
            name: "hill".into(),
            public: Secret::new([3; 32]).public(),
            psk: None,
            endpoint,
            networks: Vec::new(),
            datagram_max: 1472,
            below: 42,
            rate: None,
            services: [Service::RELIABLE; 4],
            queue: Duration::from_millis(100),
            keepalive: IDLE_KEEPALIVE,
        };
        Peer::new(config, &gate, 0, 1, [4; 32]).unwrap()
    }
}
