//! One peer: sessions, recovery, queues and pace. It does no I/O: datagrams and time go in, datagrams come out.

mod answered;
mod traffic;

pub use traffic::{BULK, Goodput};

use answered::Answered;
use chappe_core::{Bitrate, Duration, Instant};
use chappe_sys::Endpoint;
use chappe_wildnet::{Config, ConfigError, FLOWS, Link, SERVICES, Service};

use crate::classify::Net;
use crate::pace::{Pace, Sight};
use crate::packing::{JOINED, JOINED_MAX, PACKET_MAX, Packer, Queues, Unpacker, longest};
use crate::path_mtu::{PathMtu, Tail};
use crate::session::{
    ANSWER, FRAME, FRAMES_MAX, HELLO, Hello, Introduction, Key, OVERHEAD, Refusal, Refused,
    Session, first,
};

/// The configuration of a peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its name in messages and metrics.
    pub name: String,
    /// The key shared with it.
    pub key: Key,
    /// Its address. Without one, the peer must send the first hello.
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
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No session and no address: the peer must send the first hello.
    Waiting,
    /// No session: hellos go out unanswered.
    Calling,
    /// There is a session, and frames arrive.
    Up,
    /// There is a session, but nothing has arrived for 5 s.
    Silent,
    /// Frames arrive, but the peer reports none of ours: the outgoing direction is dead.
    Deaf,
}

/// Counters of a peer, in addition to those of [`Link`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Sessions established since the start.
    pub sessions: u64,
    /// Datagrams not sealed with the session's key.
    pub forged: u64,
    /// Replayed or duplicate datagrams.
    pub repeated: u64,
    /// Hellos and answers with a wrong proof, made with another key.
    pub wrong_key: u64,
    /// Hellos and answers of another protocol version.
    pub wrong_version: u64,
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
    number: u32,
    /// Draws unpredictable 64-bit numbers.
    random: Box<dyn FnMut() -> u64 + Send>,
    /// The session of outgoing frames, the session before it, and sessions whose initiator has not proved itself yet.
    current: Option<Session>,
    previous: Option<Session>,
    answered: Answered,
    peer_life: Option<u64>,
    hello: Option<Hello>,
    hello_at: Instant,
    unanswered: u32,
    endpoint: Option<Endpoint>,
    pace: Pace,
    path_mtu: PathMtu,
    heard_at: Instant,
    sent_at: Instant,
    /// When this end wanted its next turn, and when it last went on after it had got none for long.
    due_at: Option<Instant>,
    resumed_at: Instant,
    /// Packets expired by the latest look at them, and when and how many last did.
    expired: (u64, Option<(Instant, u64)>),
    /// When to send a frame that proves the session to the responder; `None` once a frame of it has come.
    prove_at: Option<Instant>,
    counters: PeerCounters,
    /// The last problem, with what to do.
    trouble: Option<String>,
}

/// The interval between unanswered hellos. The first eight keep it, because losses come in bursts and a handshake needs
/// frames in both directions; then it doubles up to the longest.
const HELLO_EVERY: Duration = Duration::from_millis(250);
const HELLO_QUICK: u32 = 8;
const HELLO_MOST: Duration = Duration::from_secs(4);
/// Interval between empty frames when there is nothing to send. They let each side notice the other's silence, and keep
/// the entries of address translators alive (RFC 4787 allows expiry after two minutes).
const KEEPALIVE: Duration = Duration::from_secs(2);
/// Interval between proofs of a session that the responder has not used yet, since proofs can be lost.
const PROVE_EVERY: Duration = Duration::from_millis(100);
/// Lateness of a turn from which on it counts as a pause: twice what a busy machine's scheduler takes, and a tenth of the shortest
/// stops of virtual machines.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a report of expired packets stands.
const EXPIRED_FOR: Duration = Duration::from_secs(10);
/// Silence after which this end sends hellos again.
const SILENT: Duration = Duration::from_secs(5);
/// Random low bits of an index; the bits above are the peer's number.
const INDEX_BITS: u32 = 14;
/// Largest number of peers of one process.
pub const PEERS_MAX: usize = 1 << (24 - INDEX_BITS);

/// The number of the peer that an index belongs to.
pub(crate) fn peer_of(index: u32) -> usize {
    (index >> INDEX_BITS) as usize
}

impl Peer {
    /// Peer `number` of a process. `life` is a random number of the process, and `random` draws unpredictable 64-bit
    /// numbers. Fails if a datagram is too short for the recovery, or a service is invalid.
    pub fn new(
        config: PeerConfig,
        number: usize,
        life: u64,
        random: Box<dyn FnMut() -> u64 + Send>,
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
            number: number as u32,
            random,
            current: None,
            previous: None,
            answered: Answered::default(),
            peer_life: None,
            hello: None,
            hello_at: Instant::ZERO,
            unanswered: 0,
            endpoint: config.endpoint,
            pace: Pace::new(config.rate, config.datagram_max + config.below),
            path_mtu: PathMtu::new(config.datagram_max),
            heard_at: Instant::ZERO,
            sent_at: Instant::ZERO,
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
        let silent = now.saturating_since(self.heard_at) > SILENT;
        match (&self.current, self.endpoint) {
            (None, None) => State::Waiting,
            (None, Some(_)) => State::Calling,
            (Some(_), _) if silent => State::Silent,
            (Some(_), _) if self.link.report().pto_count >= 4 => State::Deaf,
            (Some(_), _) => State::Up,
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

    /// Largest packet in octets: 9000, or less if frames are so short that it would need too many.
    pub fn packet_max(&self) -> usize {
        PACKET_MAX.min(longest(self.container_least()))
    }

    /// Largest packet of coalesced segments in octets: 65,535, or less if frames are short.
    pub fn joined_max(&self) -> usize {
        let carried = longest(self.container_least());
        JOINED_MAX.min(carried.saturating_sub(JOINED))
    }

    /// Handles a datagram that is a hello with this peer's key, or is addressed to one of its sessions. Drain
    /// [`deliver`](Self::deliver) and [`poll`](Self::poll) afterwards.
    pub fn handle(&mut self, now: Instant, from: Endpoint, datagram: &mut [u8]) {
        self.notice_pause(now);
        self.counters.datagrams_received += 1;
        match datagram.first() {
            Some(&HELLO) => self.on_hello(now, from, datagram),
            Some(&ANSWER) => self.on_answer(now, from, datagram),
            Some(&FRAME) => self.on_frame(now, from, datagram),
            _ => self.counters.strange += 1,
        }
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
        // Answers need no session and do not wait for the pace.
        if let Some((answer, to)) = self.answered.next_answer() {
            return Some((put(datagram, &answer)?, to));
        }
        let to = self.endpoint?;
        if self.hello_due(now) {
            return Some((self.say_hello(now, datagram)?, to));
        }
        let len = self.frame(now, datagram)?;
        Some((len, to))
    }

    /// When to call [`poll`](Self::poll) if nothing arrives before.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.answered.owes() {
            return Some(now);
        }
        self.endpoint?;
        if self.current.is_none() {
            return Some(self.hello_at);
        }
        // Due frames wait for the pace. Frames beyond the window wait for a report.
        let paced = |at: Instant| at.max(self.pace.free_at());
        let room = !self.is_full();
        let again = self.link.repeats() || self.link.probes() || self.fills();
        let again = (room && again).then(|| self.pace.free_at());
        let new = self.new_at().filter(|_| room).map(paced);
        let report = self.link.report_at().map(paced);
        let silence = if self.hello.is_some() {
            self.hello_at
        } else {
            self.heard_at + SILENT
        };
        let kept = Some(paced(self.sent_at + KEEPALIVE));
        let others = [
            kept,
            self.prove_at.map(paced),
            self.path_mtu.due_at().map(paced),
            Some(silence),
            self.link.probe_at(),
            self.link.settle_at(),
            again,
            new,
            report,
        ];
        others.into_iter().flatten().min()
    }
}

/// The handshake and incoming frames.
impl Peer {
    fn introduce(&mut self) -> Introduction {
        let mut number = [0; 32];
        for part in number.chunks_exact_mut(8) {
            part.copy_from_slice(&(self.random)().to_be_bytes());
        }
        // Two sessions must not share an index.
        let mut drawn = (self.random)() as u32;
        while self.is_taken(self.index(drawn)) {
            drawn = drawn.wrapping_add(1);
        }
        Introduction {
            index: self.index(drawn),
            number,
            life: self.life,
            window: self.link.config().window_max.min(u16::MAX.into()) as u16,
        }
    }

    fn index(&self, drawn: u32) -> u32 {
        self.number << INDEX_BITS | drawn & ((1 << INDEX_BITS) - 1)
    }

    fn is_taken(&self, index: u32) -> bool {
        let sessions = [&self.current, &self.previous].into_iter().flatten();
        let hello = self.hello.iter().map(|hello| hello.own.index);
        let mut own = sessions.map(|session| session.mine).chain(hello);
        own.any(|own| own == index) || self.answered.has(index)
    }

    fn hello_due(&self, now: Instant) -> bool {
        let worn = self
            .current
            .as_ref()
            .is_some_and(|session| session.sealed > FRAMES_MAX);
        let silent = now.saturating_since(self.heard_at) > SILENT;
        (self.current.is_none() || worn || silent) && now >= self.hello_at
    }

    fn say_hello(&mut self, now: Instant, datagram: &mut [u8]) -> Option<usize> {
        let own = self.introduce();
        let hello = Hello::new(&self.config.key, own);
        let len = put(datagram, &hello.octets)?;
        // An earlier problem explains more.
        if self.unanswered == HELLO_QUICK && self.trouble.is_none() {
            self.trouble = Some(format!(
                "no answer from {}: check that it runs, that the address is right, that both hosts have the same key, and that no firewall blocks it",
                self.config.name
            ));
        }
        // Random, so that two hosts whose hellos cross do not keep crossing.
        let doublings = self.unanswered.saturating_sub(HELLO_QUICK - 1).min(8);
        let pause = (HELLO_EVERY * (1 << doublings)).min(HELLO_MOST);
        self.hello_at = now + pause + Duration::from_nanos((self.random)() % 100_000_000);
        self.unanswered = self.unanswered.saturating_add(1);
        self.hello = Some(hello);
        Some(len)
    }

    fn on_hello(&mut self, now: Instant, from: Endpoint, datagram: &[u8]) {
        let peer = match Hello::read(&self.config.key, datagram) {
            Ok(peer) => peer,
            Err(refusal) => return self.refuse(now, refusal, from),
        };
        // A reflected hello: the session would be one of this host with itself.
        if peer.life == self.life {
            return self.refuse(now, Refusal::Echo, from);
        }
        let name = first(&peer.number);
        // A repeated hello may only get its answer again.
        if self.answered.knows(name, from) {
            return self.counters.repeated += 1;
        }
        let own = self.introduce();
        let answer = Hello::answer(&self.config.key, datagram, peer.index, own);
        let session = Session::new(&self.config.key, &own, &peer, false);
        self.answered.add(name, session, answer, from);
    }

    fn on_answer(&mut self, now: Instant, from: Endpoint, datagram: &[u8]) {
        let Some(hello) = &self.hello else {
            return self.counters.strange += 1;
        };
        match hello.read_answer(&self.config.key, datagram) {
            Ok(peer) => {
                let session = Session::new(&self.config.key, &hello.own, &peer, true);
                self.hello = None;
                self.adopt(now, session);
                self.move_to(from);
                self.prove_at = Some(now);
            }
            Err(refusal) => self.refuse(now, refusal, from),
        }
    }

    fn refuse(&mut self, now: Instant, refusal: Refusal, from: Endpoint) {
        // Anybody can send such a datagram. It explains why there is no session, but says nothing of one that is up.
        let explains = self.state(now) != State::Up;
        let name = &self.config.name;
        match refusal {
            Refusal::Malformed | Refusal::Echo => self.counters.strange += 1,
            Refusal::Version(version) => {
                self.counters.wrong_version += 1;
                let said = format!(
                    "{name} uses protocol version {version}, this program version {}: install the same release on both hosts",
                    crate::session::VERSION
                );
                self.trouble = explains.then_some(said).or(self.trouble.take());
            }
            Refusal::Proof => {
                self.counters.wrong_key += 1;
                let said = format!(
                    "a hello from {from} carries the name of {name}'s key but was not made with it: it is forged, or the key was copied wrong"
                );
                self.trouble = explains.then_some(said).or(self.trouble.take());
            }
        }
    }

    /// Makes a session the one of outgoing frames.
    fn adopt(&mut self, now: Instant, session: Session) {
        let other_life = self.peer_life.is_some_and(|life| life != session.life);
        if other_life {
            // The peer has restarted: it knows nothing of the frames in flight, and frames of its former life are void.
            self.link.peer_restarted();
            self.forget_packets();
            self.previous = None;
            self.answered.forget_others(session.life);
        } else {
            // Frames of the old session may still be in flight.
            self.previous = self.current.take();
        }
        self.peer_life = Some(session.life);
        self.link.set_window(session.window.into());
        self.current = Some(session);
        self.heard_at = now;
        self.unanswered = 0;
        self.trouble = None;
        self.counters.sessions += 1;
    }

    /// The session with an index, and whether a frame of it is the proof that its initiator still owes.
    fn session(&mut self, index: u32) -> Option<(&mut Session, bool)> {
        let own = [&mut self.current, &mut self.previous];
        let mut own = own.into_iter().flatten();
        if let Some(session) = own.find(|session| session.mine == index) {
            return Some((session, false));
        }
        Some((self.answered.session(index)?, true))
    }

    fn on_frame(&mut self, now: Instant, from: Endpoint, datagram: &mut [u8]) {
        let Some(index) = crate::session::addressed(datagram) else {
            return self.counters.strange += 1;
        };
        let Some((session, proves)) = self.session(index) else {
            return self.counters.strange += 1;
        };
        match session.open(datagram) {
            Err(Refused::Forged) => self.counters.forged += 1,
            Err(Refused::Repeated) => self.counters.repeated += 1,
            Ok(frame) => {
                let frame = frame.len();
                if proves && let Some(session) = self.answered.proved(index) {
                    self.adopt(now, session);
                    self.hello = None;
                }
                if self.unanswered > 3 || self.state(now) != State::Up {
                    // What explained why nothing came is over.
                    self.trouble = None;
                }
                self.heard_at = now;
                self.unanswered = 0;
                self.prove_at = None;
                self.move_to(from);
                let from = crate::session::HEAD;
                if let Some(frame) = datagram.get(from..from + frame) {
                    // The link counts malformed frames itself.
                    let _ = self.link.handle(now, frame);
                    let tail = chappe_wildnet::header::note_tail(frame).and_then(Tail::read);
                    if let Some(tail) = tail {
                        self.path_mtu.take(now, tail);
                    }
                }
                self.judge_pace(now);
            }
        }
    }

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

fn put(to: &mut [u8], octets: &[u8]) -> Option<usize> {
    to.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(octets.len())
}
