//! One peer: sessions, recovery, queues and pace. It does no I/O: datagrams and time go in, datagrams come out.

mod choice;
mod introduced;
mod path;
mod sessions;
mod traffic;

pub use path::PathConfig;
pub(crate) use path::of_place;
pub use traffic::{BULK, Goodput};

use path::Path;

use chappe_core::{Bitrate, Duration, Instant};
use chappe_session::{Drawer, Gate, OVERHEAD, Psk, Public};
use chappe_sys::Endpoint;
use chappe_wildnet::{Config, ConfigError, FLOWS, Link, Memory, PATHS, Report, SERVICES, Service};

use crate::classify::Net;
use crate::pace::Sight;
use crate::packing::{JOINED, JOINED_MAX, PACKET_MAX, Packer, Queues, Unpacker, longest};

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
    /// Queue length of a class, as the time in which the link carries it. Of it a flow has a share; one with more loses packets.
    pub queue: Duration,
    /// Interval between empty frames on an idle link, which keep the entries of address translators alive.
    pub keepalive: Duration,
    /// Its paths, in an order that both hosts share, if there are several, or if the only one has a property of its own. Then
    /// their endpoints and rates count instead of the peer's. Paths that only the peer has are learned from its calls.
    pub paths: Vec<PathConfig>,
}

impl PeerConfig {
    /// The paths, one at least.
    fn all_paths(&self) -> Vec<PathConfig> {
        if !self.paths.is_empty() {
            return self.paths.iter().take(PATHS).cloned().collect();
        }
        vec![PathConfig {
            endpoint: self.endpoint,
            rate: self.rate,
            ..PathConfig::learned(0, self.below)
        }]
    }
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
    number: usize,
    drawer: Drawer,
    paths: Vec<Path>,
    /// The host's clock at some instant, as time since 1970.
    wall: (Instant, std::time::Duration),
    peer_life: Option<u64>,
    /// The interval between the peer's empty frames, as it said.
    peer_keepalive: Duration,
    /// When the host last sent or got a packet through the link, or a session began after a silence.
    busy_at: Instant,
    /// When this end wanted its next turn, and when it last went on after it had got none for long.
    due_at: Option<Instant>,
    resumed_at: Instant,
    /// Packets expired by the latest look at them, and when and how many last did.
    expired: (u64, Option<(Instant, u64)>),
    counters: PeerCounters,
    /// The last problem, with what to do.
    trouble: Option<String>,
    introduced: introduced::Introduced,
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
pub const PEERS_MAX: usize = chappe_session::PLACES as usize / PATHS;

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
        let mut peer = Peer {
            container: vec![0; link.config().packet_max()],
            link,
            queues: Queues::new(),
            packer: Packer::new(FLOWS),
            unpacker: Unpacker::new(FLOWS),
            spare: traffic::Spare::default(),
            goodput: Goodput::default(),
            life,
            number,
            drawer: Drawer::new(seed),
            paths: Vec::new(),
            wall: (Instant::ZERO, std::time::Duration::ZERO),
            peer_life: None,
            peer_keepalive: IDLE_KEEPALIVE,
            busy_at: Instant::ZERO,
            due_at: None,
            resumed_at: Instant::ZERO,
            expired: (0, None),
            counters: PeerCounters::default(),
            trouble: None,
            introduced: introduced::Introduced::default(),
            config,
        };
        for path in peer.config.all_paths() {
            peer.add_path(gate, path);
        }
        Ok(peer)
    }

    /// Adds a path; false if there are [`PATHS`] already.
    fn add_path(&mut self, gate: &Gate, config: PathConfig) -> bool {
        let at = self.paths.len();
        if at > 0 && self.link.add_path().is_none() {
            return false;
        }
        let seed = self.drawer.draw();
        let path = Path::new((&self.config, config), gate, (self.number, at), seed);
        self.paths.push(path);
        if at == 1 {
            // The first path has been used alone, and is sized as it is.
            let first = &mut self.paths[0];
            first.sized |= !first.path_mtu.is_untried();
        }
        true
    }

    /// The number of paths, those that were learned from the peer's calls included.
    pub fn paths(&self) -> usize {
        self.paths.len()
    }

    /// The configuration of a path.
    pub fn path(&self, path: usize) -> Option<&PathConfig> {
        self.paths.get(path).map(|path| &path.config)
    }

    /// Octets sent on a path, with the headers of the layers below, and datagrams received on it.
    pub fn path_traffic(&self, path: usize) -> (u64, u64) {
        let path = self.paths.get(path);
        path.map_or((0, 0), |path| (path.octets_sent, path.datagrams_received))
    }

    /// The configuration, with later changes.
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// The recovery, to read its report and counters.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The recovery's report on the path that packets take first; with several, the octets in flight on all of them.
    pub fn report(&self, now: Instant) -> Report {
        let all = (0..self.paths.len()).map(|path| self.link.report_of(path).in_flight);
        Report {
            in_flight: all.sum(),
            ..self.link.report_of(self.first_path(now))
        }
    }

    /// The counters since the start.
    pub fn counters(&self) -> &PeerCounters {
        &self.counters
    }

    /// The counters, for those that the tunnel keeps.
    pub(crate) fn counters_mut(&mut self) -> &mut PeerCounters {
        &mut self.counters
    }

    /// The address where it was last heard on its first path, or the configured one.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint_of(0)
    }

    /// The same on any path.
    pub fn endpoint_of(&self, path: usize) -> Option<Endpoint> {
        self.paths.get(path)?.endpoint
    }

    /// The present pace of all paths that carry something, with the headers of the layers below.
    pub fn rate(&self) -> Bitrate {
        let reserve = |path: &Path| path.config.reserve;
        let only = self.paths.iter().all(reserve);
        let used = |(number, path): &(usize, &Path)| {
            !self.is_bonded()
                || (only || !reserve(path)) && path.sized && !self.link.is_doubted(*number)
        };
        let paths = self.paths.iter().enumerate().filter(used);
        let rates: u64 = paths.map(|(_, path)| path.pace.rate().0).sum();
        match rates {
            0 => self.rate_of(0),
            rates => Bitrate(rates),
        }
    }

    /// The present pace of a path.
    pub fn rate_of(&self, path: usize) -> Bitrate {
        let path = self.paths.get(path);
        path.map_or(Bitrate(0), |path| path.pace.rate())
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
        let sized = self.paths.iter().filter(|path| path.sized);
        let least = sized.map(|path| path.path_mtu.limit()).min();
        let first = self.paths.first().map(|path| path.path_mtu.limit());
        least.or(first).unwrap_or(self.config.datagram_max)
    }

    /// What to do about a path that carries less than is configured.
    pub fn narrowness(&self) -> Option<String> {
        let mtu = |datagram: usize| datagram + self.config.below.saturating_sub(14);
        let narrow = self.paths.iter().find(|path| path.path_mtu.is_narrow());
        narrow.map(|path| {
            format!(
                "the path to {} carries packets of {} octets and no longer ones, though `path_mtu` is {}; shorter ones are sent: write path_mtu = {} on both hosts to save the search",
                self.config.name,
                mtu(path.path_mtu.limit()),
                mtu(self.config.datagram_max),
                mtu(path.path_mtu.limit())
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

    /// The state of the peer: that of its best path.
    pub fn state(&self, now: Instant) -> State {
        let states = (0..self.paths.len()).map(|path| self.state_of(now, path));
        // The order in which `State` has them is not that of their worth.
        let worth = |state: &State| match state {
            State::Waiting => 0,
            State::Calling => 1,
            State::Silent => 2,
            State::Deaf => 3,
            State::Up => 4,
        };
        states.max_by_key(worth).unwrap_or(State::Waiting)
    }

    /// The state of a path.
    pub fn state_of(&self, now: Instant, path: usize) -> State {
        let Some(own) = self.paths.get(path) else {
            return State::Waiting;
        };
        match (own.sessions.is_up(now), own.endpoint) {
            (false, None) => State::Waiting,
            (false, Some(_)) => State::Calling,
            (true, _) if own.silence(now, self.peer_keepalive) > SILENT => State::Silent,
            (true, _) if self.link.report_of(path).pto_count >= 4 => State::Deaf,
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
        if let Some(path) = self.paths.first_mut() {
            path.pace.give(rate);
        }
    }

    /// Changes the rate, the cost and the use of the paths; their number and their interfaces stay as they are.
    pub fn set_paths(&mut self, paths: Vec<PathConfig>) {
        for (number, config) in paths.iter().enumerate() {
            self.set_endpoint_of(number, config.endpoint);
            let Some(path) = self.paths.get_mut(number) else {
                continue;
            };
            if path.config.rate != config.rate {
                path.pace.give(config.rate);
            }
            path.learned = false;
            path.config = config.clone();
        }
        self.config.paths = paths;
    }

    /// Replaces the networks behind the peer.
    pub fn set_networks(&mut self, networks: Vec<Net>) {
        self.config.networks = networks;
    }

    /// Sets where the peer is called from now on, and calls it there at once if it is another place than before.
    pub fn set_endpoint(&mut self, to: Option<Endpoint>) {
        if self.config.paths.is_empty() {
            self.config.endpoint = to;
        }
        self.set_endpoint_of(0, to);
    }

    /// The same for one path.
    pub fn set_endpoint_of(&mut self, path: usize, to: Option<Endpoint>) {
        let Some(path) = self.paths.get_mut(path) else {
            return;
        };
        if path.config.endpoint != to {
            path.config.endpoint = to;
            path.endpoint = to.or(path.endpoint);
            path.asked_at = path.asked_at.or(Some(Instant::ZERO));
            path.sessions.hurry();
        }
    }

    /// Lets the windows grow only as far as a memory goes that peers may share. What each has from the start is not taken from it.
    pub fn share_memory(&mut self, memory: &Memory) {
        self.link.share_memory(memory);
    }

    /// Sets the interval between empty frames on an idle link.
    pub fn set_keepalive(&mut self, keepalive: Duration) {
        self.config.keepalive = keepalive;
    }

    /// When the latest session of any path began.
    pub fn session_since(&self) -> Option<Instant> {
        let since = self.paths.iter().filter_map(|path| path.sessions.since());
        since.max()
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
        let (len, to, _) = self.poll_path(now, datagram)?;
        Some((len, to))
    }

    /// The same with the path that it is to leave on.
    pub fn poll_path(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
    ) -> Option<(usize, Endpoint, usize)> {
        self.notice_turn(now, now);
        let next = self.poll_next(now, datagram);
        self.due_at = match next {
            Some(_) => Some(now),
            None => {
                let paths = self.paths.iter_mut();
                paths.for_each(|path| path.pace.turn(Instant::MAX));
                self.deadline(now).map(|at| at.max(now))
            }
        };
        next
    }

    fn poll_next(&mut self, now: Instant, datagram: &mut [u8]) -> Option<(usize, Endpoint, usize)> {
        for path in 0..self.paths.len() {
            // Answers and calls need no session and do not wait for the pace.
            if let Some((len, to)) = self.paths[path].sessions.next_answer(datagram) {
                return Some((len, to, path));
            }
            if let Some((len, to)) = self.call(now, path, datagram) {
                return Some((len, to, path));
            }
        }
        self.judge_roles(now);
        let first = self.first_path(now);
        let others = (0..self.paths.len()).filter(|path| *path != first);
        std::iter::once(first).chain(others).find_map(|path| {
            let to = self.paths[path].endpoint?;
            let len = self.frame(now, path, datagram)?;
            Some((len, to, path))
        })
    }

    /// When to call [`poll`](Self::poll) if nothing arrives before.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let paths = 0..self.paths.len();
        paths.filter_map(|path| self.deadline_of(now, path)).min()
    }

    fn deadline_of(&self, now: Instant, path: usize) -> Option<Instant> {
        let own = &self.paths[path];
        if own.sessions.owes() {
            return Some(now);
        }
        let call = self.call_at(now, path);
        own.endpoint?;
        if !own.sessions.is_up(now) {
            return call;
        }
        // Due frames wait for the pace. Frames beyond the window wait for a report.
        let paced = |at: Instant| at.max(own.pace.free_at());
        // A path that carries no bodies at present sends none, whatever waits.
        let room = !self.is_full(path) && self.may_carry(now, path);
        let again = self.link.repeats() && self.repeats_on(now, path);
        let again = again || self.link.probes_of(path) || self.fills(now, path);
        let again = (room && again).then(|| own.pace.free_at());
        let new = self.new_at(now, path).filter(|_| room).map(paced);
        let report = self.link.report_at_of(path).map(paced);
        let kept = Some(paced(own.sent_at + self.keepalive(now, path)));
        let says = self.says(now, path).then(|| own.pace.free_at());
        let twin = self.link.twin_at(path).filter(|_| room && self.is_bonded());
        let others = [
            kept,
            own.prove_at.map(|prove| paced(prove.0)),
            own.path_mtu.due_at().map(paced),
            call,
            own.asked_at.map(|at| at + OVERDUE).filter(|at| *at > now),
            self.link.probe_at_of(path),
            self.link.settle_at_of(path),
            twin.map(paced),
            says,
            again,
            new,
            report,
        ];
        others.into_iter().flatten().min()
    }
}

/// Lost turns of this host, and how they change the pace of paths.
impl Peer {
    /// Notices that this end gets its turn later than it wanted, or than something arrived for it: others use the processor, the host
    /// stood still, or the process did.
    fn notice_turn(&mut self, now: Instant, arrived: Instant) {
        let due = self.due_at.take().map_or(arrived, |at| at.min(arrived));
        let late = now.saturating_since(due);
        for path in &mut self.paths {
            path.pace.turn(due);
        }
        // Seldom, so that a host which is always late measures in most of its round trips. Stamps of what waited here do not tell
        // whether frames of this end were held up as well.
        let seldom = self
            .link
            .report()
            .rtt
            .map_or(Duration::ZERO, |rtt| rtt.0 * 4);
        let seldom = seldom.max(Duration::from_secs(1));
        if late > PAUSE && now.saturating_since(self.resumed_at) > seldom {
            self.resumed_at = now;
            self.link.resume(now);
        }
    }

    fn judge_pace(&mut self, now: Instant, path: usize) {
        let report = self.link.report_of(path);
        let Some(own) = self.paths.get_mut(path) else {
            return;
        };
        let frame = self.config.datagram_max + own.config.below;
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
            heard: own.octets_received,
            // Of twenty round trips that differ by up to this in each direction, the least lies about a quarter of it above the
            // least of thousands.
            jitter: report.reordering / 4,
            host_delay: report.host_delay,
            // A queue much shorter than that cannot be seen.
            right: (own.pace.queued(report.channel.loss, frame)).max(report.reordering / 4),
            bunched: report.channel.burst,
            frame,
            bursts: (Duration::ZERO, Duration::ZERO),
        };
        let measured = report
            .rtt_latest
            .is_some_and(|(_, at)| at > self.resumed_at);
        match measured {
            true => own.pace.judge(now, &sight, report.reordering),
            // Nothing has been measured since this end stood still.
            false => own.pace.skip(now, &sight),
        }
    }

    fn move_to(&mut self, path: usize, from: Endpoint) {
        let own = &mut self.paths[path];
        if own.endpoint != Some(from) {
            self.counters.moved += u64::from(own.endpoint.is_some());
            own.endpoint = Some(from);
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
            paths: Vec::new(),
        };
        Peer::new(config, &gate, 0, 1, [4; 32]).unwrap()
    }
}
