//! Hosts on a network in virtual time.

use chappe_core::{Duration, Instant, Purpose, Seed, Stream};
use chappe_session::{
    Gate, HEAD, Limits, Protocol, Psk, Public, Reason, Secret, Sessions, Stamp, Verdict,
};

pub const PROTOCOL: Protocol = Protocol {
    name: "a trial",
    version: 7,
};
/// Silence after which a host calls again.
const SILENT: Duration = Duration::from_secs(5);

/// A host with one peer. It sends a frame now and then, and counts what arrives.
pub struct Host {
    pub gate: Gate,
    pub sessions: Sessions<usize>,
    /// Where the peer was heard last.
    pub to: Option<usize>,
    pub heard_at: Instant,
    pub wall: core::time::Duration,
    pub number: u32,
    pub begun: u32,
    pub heard: Vec<u32>,
    pub dropped: Vec<Reason>,
    pub strangers: Vec<Public>,
    pub replies: Vec<(usize, Vec<u8>)>,
    /// The interval between frames.
    pub every: Duration,
    pub frame_at: Instant,
}

impl Host {
    pub fn new(key: u8, peer: u8, psk: Option<u8>, life: u64) -> Host {
        let mut random = Seed(life).stream(Purpose::Node(key.into()));
        let mut seed = || {
            let mut seed = [0; 32];
            random.fill(&mut seed);
            seed
        };
        let gate = Gate::new(PROTOCOL, Secret::new([key; 32]), seed());
        let peer = Secret::new([peer; 32]).public();
        let psk = psk.map(|fill| Psk::new([fill; 32]));
        Host {
            sessions: Sessions::new(&gate, peer, psk, 0, seed()),
            gate,
            to: None,
            heard_at: Instant::ZERO,
            wall: core::time::Duration::from_secs(1_800_000_000),
            number: 0,
            begun: 0,
            heard: Vec::new(),
            dropped: Vec::new(),
            strangers: Vec::new(),
            replies: Vec::new(),
            every: Duration::from_millis(500),
            frame_at: Instant::ZERO,
        }
    }

    /// A host that knows where its peer is.
    pub fn calling(mut self, to: usize) -> Host {
        self.to = Some(to);
        self
    }

    pub fn limits(mut self, limits: Limits) -> Host {
        self.sessions.set_limits(limits);
        self
    }

    pub fn is_up(&self, now: Instant) -> bool {
        self.sessions.is_up(now) && now.saturating_since(self.heard_at) < SILENT
    }

    fn quiet(&self, now: Instant) -> bool {
        now.saturating_since(self.heard_at) >= SILENT
    }

    pub fn handle(&mut self, now: Instant, from: usize, mut datagram: Vec<u8>) {
        let mut reply = [0; 256];
        let source = from.to_be_bytes();
        let result = match self.gate.judge(now, &source, &datagram, &mut reply) {
            Verdict::Dropped(reason) => Err(reason),
            Verdict::Reply(len) => {
                self.replies.push((from, reply[..len].to_vec()));
                Ok(())
            }
            Verdict::Initiation(call) if call.public != *self.sessions.peer() => {
                self.strangers.push(call.public);
                Ok(())
            }
            Verdict::Initiation(call) => {
                let quiet = self.quiet(now);
                self.sessions.take(now, from, call, b"welcome", quiet)
            }
            Verdict::Sessions(0) => match datagram[0] {
                2 => self.sessions.take_answer(now, &datagram).map(|begun| {
                    assert_eq!(begun.said.octets(), b"welcome");
                    self.begun += 1;
                    self.frame_at = now;
                    (self.heard_at, self.to) = (now, Some(from));
                }),
                4 => self.sessions.take_cookie(now, &datagram),
                _ => self.sessions.open(now, &mut datagram).map(|opened| {
                    self.begun += u32::from(opened.begun.is_some());
                    let number = datagram[HEAD..].first_chunk().unwrap();
                    assert_eq!(datagram[HEAD + 4..HEAD + opened.len], [b'x'; 20]);
                    self.heard.push(u32::from_be_bytes(*number));
                    (self.heard_at, self.to) = (now, Some(from));
                }),
            },
            Verdict::Sessions(_) => Err(Reason::Strange),
        };
        self.dropped.extend(result.err());
    }

    /// What leaves now, and where to.
    pub fn poll(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        let mut out = [0; 256];
        if let Some((to, reply)) = self.replies.pop() {
            return Some((to, reply));
        }
        if let Some((len, to)) = self.sessions.next_answer(&mut out) {
            return Some((to, out[..len].to_vec()));
        }
        let silent = self.quiet(now);
        let back = self.sessions.back();
        let due = self.sessions.call_at(silent).is_some_and(|at| at <= now);
        if let Some(to) = back.or(self.to.filter(|_| due)) {
            let since_start = core::time::Duration::from_nanos(now.nanos());
            let wall = Stamp::at(self.wall + since_start);
            let len = self.sessions.call(now, wall, b"hello", &mut out)?;
            return Some((to, out[..len].to_vec()));
        }
        if now < self.frame_at || !self.sessions.is_up(now) {
            return None;
        }
        self.frame_at = now + self.every;
        self.number += 1;
        out[HEAD..HEAD + 4].copy_from_slice(&self.number.to_be_bytes());
        out[HEAD + 4..HEAD + 24].fill(b'x');
        let len = self.sessions.seal(now, &mut out, 24)?;
        Some((self.to?, out[..len].to_vec()))
    }
}

/// Two hosts at the addresses 0 and 1, and everything that was sent.
pub struct Net {
    pub hosts: [Host; 2],
    pub now: Instant,
    pub loss: f64,
    /// Shortest and longest delay in milliseconds.
    pub delay: (u64, u64),
    pub random: Stream,
    pub sent: Vec<(usize, usize, Vec<u8>)>,
    flying: Vec<(Instant, usize, usize, Vec<u8>)>,
}

impl Net {
    pub fn new(hosts: [Host; 2], seed: u64) -> Net {
        Net {
            hosts,
            now: Instant::ZERO,
            loss: 0.0,
            delay: (10, 10),
            random: Seed(seed).stream(Purpose::Trial(0)),
            sent: Vec::new(),
            flying: Vec::new(),
        }
    }

    pub fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.flying)
                .into_iter()
                .partition(|flight| flight.0 <= self.now);
            self.flying = later;
            for (_, from, to, datagram) in due {
                if let Some(host) = self.hosts.get_mut(to) {
                    host.handle(self.now, from, datagram);
                }
            }
            for from in 0..2 {
                while let Some((to, datagram)) = self.hosts[from].poll(self.now) {
                    self.sent.push((from, to, datagram.clone()));
                    if !self.random.chance(self.loss) {
                        let (least, most) = self.delay;
                        let delay = least + self.random.below(most - least + 1);
                        let at = self.now + Duration::from_millis(delay);
                        self.flying.push((at, from, to, datagram));
                    }
                }
            }
        }
    }

    pub fn up(&self) -> [bool; 2] {
        [0, 1].map(|host| self.hosts[host].is_up(self.now))
    }

    /// How many datagrams of a kind were sent to an address.
    pub fn count(&self, to: usize, kind: u8) -> usize {
        let all = self.sent.iter();
        all.filter(|(_, at, datagram)| *at == to && datagram[0] == kind)
            .count()
    }
}
