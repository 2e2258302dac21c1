//! One peer: its sessions, its link, its pace. A value like a protocol: datagrams and time in, datagrams out.

mod answered;
mod traffic;

pub use traffic::{BULK, Goodput};

use answered::Answered;
use chappe_core::{Bitrate, Duration, Instant};
use chappe_sys::Endpoint;
use chappe_wildnet::{Config, ConfigError, FLOWS, Link, SERVICES, Service};

use crate::classify::Net;
use crate::pace::Pace;
use crate::packing::{JOINED, JOINED_MAX, PACKET_MAX, Packer, Queues, Unpacker, longest};
use crate::session::{
    ANSWER, FRAME, FRAMES_MAX, HELLO, Hello, Introduction, Key, OVERHEAD, Refusal, Refused,
    Session, first,
};

/// What is to be known about a peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its name in messages and metrics.
    pub name: String,
    /// The key that both have.
    pub key: Key,
    /// Where it is, if that is known: else it must say hello first.
    pub endpoint: Option<Endpoint>,
    /// Addresses behind it.
    pub networks: Vec<Net>,
    /// Largest datagram, and octets that the layers below add to it on the medium.
    pub datagram_max: usize,
    /// See above.
    pub below: usize,
    /// What the medium carries; `None`: found out.
    pub rate: Option<Bitrate>,
    /// What the classes are promised.
    pub services: [Service; SERVICES],
    /// A class has at most so much waiting as the link carries in this time; then its longest flow loses packets.
    pub queue: Duration,
}

/// How things stand with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No session, and nobody to ask: it must say hello first.
    Waiting,
    /// Hellos go out and are not answered.
    Calling,
    /// A session, and frames come.
    Up,
    /// A session, but nothing has come for a while.
    Silent,
    /// Frames come, but the peer reports none of ours: our direction is dead.
    Deaf,
}

/// Counts besides those of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Sessions made.
    pub sessions: u64,
    /// Datagrams that were not made with the session's key.
    pub forged: u64,
    /// Datagrams that had come before.
    pub repeated: u64,
    /// Hellos and answers whose proof was wrong: another key.
    pub wrong_key: u64,
    /// Hellos and answers of another version.
    pub wrong_version: u64,
    /// Datagrams of no known form, or for a session that is over.
    pub strange: u64,
    /// Times the peer's address changed.
    pub moved: u64,
    /// Packets from the peer whose source is not in its networks.
    pub foreign: u64,
    /// Packets of the host that were too long.
    pub not_taken: u64,
    /// Packets of the host that were thrown away, since too many waited: how a full link slows its senders down.
    pub queue_dropped: u64,
    /// Packets from the peer that could not be put together: a part is missing, or a header follows none.
    pub unreadable: u64,
    /// Packets from the peer that the host had no room for.
    pub host_full: u64,
    /// Datagrams and their octets, the layers below counted.
    pub datagrams_sent: u64,
    /// See above.
    pub octets_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Octets of packets handed to the host.
    pub octets_delivered: u64,
}

/// A peer.
pub struct Peer {
    config: PeerConfig,
    link: Link,
    queues: Queues,
    packer: Packer,
    unpacker: Unpacker,
    spare: traffic::Spare,
    goodput: Goodput,
    /// A container on its way to or from the link.
    container: Vec<u8>,
    life: u64,
    number: u32,
    /// Draws what nobody can guess.
    random: Box<dyn FnMut() -> u64 + Send>,
    /// The session frames go out by, the one before, and those that their makers have not used yet.
    current: Option<Session>,
    previous: Option<Session>,
    answered: Answered,
    peer_life: Option<u64>,
    hello: Option<Hello>,
    hello_at: Instant,
    unanswered: u32,
    endpoint: Option<Endpoint>,
    pace: Pace,
    heard_at: Instant,
    sent_at: Instant,
    /// When to send a frame that proves the session to the peer; until one of its frames has come.
    prove_at: Option<Instant>,
    counters: PeerCounters,
    /// The last thing that went wrong, in words.
    trouble: Option<String>,
}

/// Pause between hellos that nobody answers: so many in a row, since losses come in bursts and some frames must get
/// through in both directions; then it doubles up to the longest.
const HELLO_EVERY: Duration = Duration::from_millis(250);
const HELLO_QUICK: u32 = 8;
const HELLO_MOST: Duration = Duration::from_secs(4);
/// With nothing to send, a frame without body goes out this often, so that either side notices the other's silence
/// and address translators keep their entries (RFC 4787 allows them to forget after two minutes).
const KEEPALIVE: Duration = Duration::from_secs(2);
/// Pause between proofs of a session that the peer has not used yet: they are lost like anything.
const PROVE_EVERY: Duration = Duration::from_millis(100);
/// Silence after which the peer is called again.
const SILENT: Duration = Duration::from_secs(5);
/// Bits of an index that are the peer's number; the rest is drawn.
const INDEX_BITS: u32 = 14;
/// Most peers of one process.
pub const PEERS_MAX: usize = 1 << (24 - INDEX_BITS);

/// The peer that an index belongs to.
pub(crate) fn peer_of(index: u32) -> usize {
    (index >> INDEX_BITS) as usize
}

impl Peer {
    /// Peer `number` of a process. `life` is drawn when the process starts; `random` draws 64 bits that nobody guesses.
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
                // What is next is decided when it leaves, and several packets share a container, not a frame.
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
            heard_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            prove_at: None,
            counters: PeerCounters::default(),
            trouble: None,
            config,
        })
    }

    /// What was configured, as changed since.
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// Its link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Counts besides those of the link.
    pub fn counters(&self) -> &PeerCounters {
        &self.counters
    }

    /// The driver's own counts.
    pub(crate) fn counters_mut(&mut self) -> &mut PeerCounters {
        &mut self.counters
    }

    /// Where it was heard last, or is expected.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint
    }

    /// The pace of frames, headers below included.
    pub fn rate(&self) -> Bitrate {
        self.pace.rate()
    }

    /// The last thing that went wrong, in words that say what to do.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// How things stand.
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

    /// Changes what a class is promised. No packet is lost by it.
    pub fn set_service(&mut self, class: usize, service: Service) {
        if let Some(own) = self.config.services.get_mut(class) {
            *own = service;
            self.link.set_service(class, service);
            // What the new promise lets go may be what short headers refer to.
            self.packer.forget();
        }
    }

    /// Changes the rate of the medium; `None`: found out from now on.
    pub fn set_rate(&mut self, rate: Option<Bitrate>) {
        self.config.rate = rate;
        self.pace.give(rate);
    }

    /// Largest packet: 9000 octets, or less where frames are so short that it would need too many.
    pub fn packet_max(&self) -> usize {
        PACKET_MAX.min(longest(self.container_least()))
    }

    /// Largest packet of joined segments: 65,535 octets, or less where frames are short.
    pub fn joined_max(&self) -> usize {
        let carried = longest(self.container_least());
        JOINED_MAX.min(carried.saturating_sub(JOINED))
    }

    /// A datagram came that is a hello of this peer's key, or is addressed to it. Drain [`deliver`](Self::deliver) and
    /// [`poll`](Self::poll) afterwards.
    pub fn handle(&mut self, now: Instant, from: Endpoint, datagram: &mut [u8]) {
        self.counters.datagrams_received += 1;
        match datagram.first() {
            Some(&HELLO) => self.on_hello(from, datagram),
            Some(&ANSWER) => self.on_answer(now, from, datagram),
            Some(&FRAME) => self.on_frame(now, from, datagram),
            _ => self.counters.strange += 1,
        }
    }

    /// The next datagram to send, written to the front of `datagram`: its length and where it goes.
    pub fn poll(&mut self, now: Instant, datagram: &mut [u8]) -> Option<(usize, Endpoint)> {
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

    /// When [`poll`](Self::poll) should be called although nothing came.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.answered.owes() {
            return Some(now);
        }
        self.endpoint?;
        if self.current.is_none() {
            return Some(self.hello_at);
        }
        // What is due waits for the pace; what the path has no room for waits for a report.
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
            Some(silence),
            self.link.probe_at(),
            again,
            new,
            report,
        ];
        others.into_iter().flatten().min()
    }
}

/// Sessions.
impl Peer {
    fn introduce(&mut self) -> Introduction {
        let mut number = [0; 32];
        for part in number.chunks_exact_mut(8) {
            part.copy_from_slice(&(self.random)().to_be_bytes());
        }
        // No two sessions have one index.
        let mut drawn = (self.random)() as u32;
        while self.is_taken(self.index(drawn)) {
            drawn = drawn.wrapping_add(1);
        }
        Introduction {
            index: self.index(drawn),
            number,
            life: self.life,
            window: self.link.config().window.min(u16::MAX.into()) as u16,
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
        // What was told already says more.
        if self.unanswered == HELLO_QUICK && self.trouble.is_none() {
            self.trouble = Some(format!(
                "no answer from {}: is it running, is the address right, has it the same key, and does a firewall let it through?",
                self.config.name
            ));
        }
        // Two that call each other at one moment should not do so again.
        let doublings = self.unanswered.saturating_sub(HELLO_QUICK - 1).min(8);
        let pause = (HELLO_EVERY * (1 << doublings)).min(HELLO_MOST);
        self.hello_at = now + pause + Duration::from_nanos((self.random)() % 100_000_000);
        self.unanswered = self.unanswered.saturating_add(1);
        self.hello = Some(hello);
        Some(len)
    }

    fn on_hello(&mut self, from: Endpoint, datagram: &[u8]) {
        let peer = match Hello::read(&self.config.key, datagram) {
            Ok(peer) => peer,
            Err(refusal) => return self.refuse(refusal, from),
        };
        if peer.life == self.life {
            return self.refuse(Refusal::Echo, from);
        }
        let name = first(&peer.number);
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
            Err(refusal) => self.refuse(refusal, from),
        }
    }

    fn refuse(&mut self, refusal: Refusal, from: Endpoint) {
        let name = &self.config.name;
        match refusal {
            Refusal::Malformed | Refusal::Echo => self.counters.strange += 1,
            Refusal::Version(version) => {
                self.counters.wrong_version += 1;
                self.trouble = Some(format!(
                    "{name} speaks version {version} of the link, this program version {}: install the same release on both",
                    crate::session::VERSION
                ));
            }
            Refusal::Proof => {
                self.counters.wrong_key += 1;
                self.trouble = Some(format!(
                    "a hello in the name of {name}'s key came from {from} and was not made with it: somebody else's, or the key was copied wrong"
                ));
            }
        }
    }

    /// The session becomes the one that frames go out by.
    fn adopt(&mut self, now: Instant, session: Session) {
        let other_life = self.peer_life.is_some_and(|life| life != session.life);
        if other_life {
            // The peer has started over: it knows nothing of what was under way, and its old frames are history.
            self.link.peer_restarted();
            self.forget_packets();
            self.previous = None;
            self.answered.forget_others(session.life);
        } else {
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

    /// The session that the peer addresses by an index, and whether a frame of it proves it.
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
                self.heard_at = now;
                if self.unanswered > 3 {
                    // It was said to give no answer, and does.
                    self.trouble = None;
                }
                self.unanswered = 0;
                self.prove_at = None;
                self.move_to(from);
                let from = crate::session::HEAD;
                if let Some(frame) = datagram.get(from..from + frame) {
                    // What is not a frame of the link is counted there.
                    let _ = self.link.handle(now, frame);
                }
                let report = self.link.report();
                let frame = self.config.datagram_max + self.config.below;
                let queued = self.pace.queued(report.channel.loss, frame);
                let standing = report.rtt.zip(report.rtt_lately);
                let standing = standing.map(|((_, least), lately)| lately.saturating_sub(least));
                self.pace.judge(now, report.rtt, (standing, queued));
            }
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
