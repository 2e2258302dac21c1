//! Two hosts behind address translators, and a third one that introduces them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_link::introduction::{self, Peers};
use chappe_link::{Gate, IDLE_KEEPALIVE, PROTOCOL, Peer, PeerConfig, Public, Secret, State};
use chappe_sys::Endpoint;
use chappe_wildnet::Service;

/// A host with several peers, as a tunnel keeps them.
struct Host {
    gate: Gate,
    peers: Vec<Peer>,
    introduces: bool,
    own: SocketAddr,
}

impl Peers for Host {
    fn place_of_key(&self, key: &Public) -> Option<usize> {
        self.peers
            .iter()
            .position(|peer| peer.config().public == *key)
    }

    fn peer_at(&mut self, place: usize) -> Option<&mut Peer> {
        self.peers.get_mut(place)
    }
}

fn secret(host: u8) -> Secret {
    Secret::new([20 + host; 32])
}

/// A host with peers: their numbers, and the endpoints that its file has.
fn host(number: u8, own: &str, peers: &[(u8, Option<&str>)]) -> Host {
    let mut random = Seed(5).stream(Purpose::Node(number.into()));
    let mut drawn = || {
        let mut drawn = [0; 32];
        random.fill(&mut drawn);
        drawn
    };
    let gate = Gate::new(PROTOCOL, secret(number), drawn());
    let peer = |(place, (other, endpoint)): (usize, &(u8, Option<&str>))| {
        let config = PeerConfig {
            name: format!("host{other}"),
            public: secret(*other).public(),
            psk: None,
            endpoint: endpoint.map(|at| Endpoint::Udp(at.parse().unwrap())),
            networks: Vec::new(),
            datagram_max: 1472,
            below: 42,
            rate: None,
            services: [Service::RELIABLE; 4],
            queue: Duration::from_millis(100),
            keepalive: IDLE_KEEPALIVE,
            paths: Vec::new(),
        };
        let mut peer = Peer::new(config, &gate, place, number.into(), drawn()).unwrap();
        let wall = std::time::Duration::from_secs(1_800_000_000);
        peer.set_clock(Instant::ZERO, wall);
        peer
    };
    let peers = peers.iter().enumerate().map(peer).collect();
    Host {
        gate,
        peers,
        introduces: false,
        own: own.parse().unwrap(),
    }
}

/// An address translator that gives an inner address one outer port, and lets in only what comes from where something was sent to,
/// address and port (RFC 4787: endpoint-independent mapping, address and port-dependent filtering); for 30 s.
#[derive(Default)]
struct Translator {
    outer: Option<SocketAddr>,
    open: BTreeMap<SocketAddr, Instant>,
}

const OPEN: Duration = Duration::from_secs(30);

/// Hosts 1 and 2 behind translators, host 0 without; 10 ms from each to each other.
struct Net {
    hosts: [Host; 3],
    translators: [Translator; 3],
    now: Instant,
    flying: Vec<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
}

const SERVER: &str = "192.0.2.1:1795";

impl Net {
    fn new(introduces: bool, names: [Option<u8>; 2]) -> Net {
        let mut hosts = [
            host(0, SERVER, &[(1, None), (2, None)]),
            host(1, "10.0.0.2:1795", &[(0, Some(SERVER)), (2, None)]),
            host(2, "10.0.0.2:1795", &[(0, Some(SERVER)), (1, None)]),
        ];
        hosts[0].introduces = introduces;
        for (host, by) in hosts[1..].iter_mut().zip(names) {
            host.peers[1].set_introducer(by.map(|by| secret(by).public()));
        }
        let outer = |at: &str| Translator {
            outer: Some(at.parse().unwrap()),
            ..Translator::default()
        };
        Net {
            hosts,
            translators: [
                Translator::default(),
                outer("198.51.100.1:40001"),
                outer("203.0.113.1:50002"),
            ],
            now: Instant::from_millis(1),
            flying: Vec::new(),
        }
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.now += Duration::from_millis(1);
            for host in 0..3 {
                self.send(host);
            }
            let (due, later) = std::mem::take(&mut self.flying)
                .into_iter()
                .partition(|flight| flight.0 <= self.now);
            self.flying = later;
            let due: Vec<(Instant, SocketAddr, SocketAddr, Vec<u8>)> = due;
            for (_, from, to, octets) in due {
                self.land(from, to, octets);
            }
        }
    }

    fn send(&mut self, host: usize) {
        let own = &mut self.hosts[host];
        for place in 0..own.peers.len() {
            introduction::ask(own, self.now, place);
        }
        let mut datagram = [0; 2048];
        for peer in &mut own.peers {
            while let Some((len, to)) = peer.poll(self.now, &mut datagram) {
                let Endpoint::Udp(to) = to else {
                    panic!("{to:?}");
                };
                let translator = &mut self.translators[host];
                translator.open.insert(to, self.now + OPEN);
                let from = translator.outer.unwrap_or(own.own);
                let arrives = self.now + Duration::from_millis(10);
                self.flying
                    .push((arrives, from, to, datagram[..len].to_vec()));
            }
        }
    }

    fn land(&mut self, from: SocketAddr, to: SocketAddr, mut octets: Vec<u8>) {
        let at = |host: &usize| {
            self.translators[*host]
                .outer
                .unwrap_or(self.hosts[*host].own)
                == to
        };
        let Some(host) = (0..3).find(at) else {
            return;
        };
        let translator = &self.translators[host];
        let open = translator
            .open
            .get(&from)
            .is_some_and(|until| *until > self.now);
        if translator.outer.is_some() && !open {
            return;
        }
        let own = &mut self.hosts[host];
        for place in 0..own.peers.len() {
            let (gate, now) = (&mut own.gate, self.now);
            // A call is opened once; what is for another peer is dropped.
            let mut copy = octets.clone();
            let _ =
                own.peers[place].handle(now, gate, Endpoint::Udp(from), &mut copy, &mut [0; 256]);
            if own.peers[place].has_said() {
                let introduces = own.introduces;
                introduction::act(own, now, place, introduces);
            }
        }
        octets.clear();
    }

    fn states(&self) -> [State; 2] {
        [1, 2].map(|host| self.hosts[host].peers[1].state(self.now))
    }
}

/// Goal: two hosts behind translators meet within five seconds of their sessions with the third one, and stay together over two minutes of
/// silence, and when a translator gives one of them another port. Without an introducer, or one that refuses, or whom only one of them
/// names, they do not, and no host is called where another one says.
#[test]
fn hosts_behind_translators_are_introduced() {
    let mut net = Net::new(true, [Some(0), Some(0)]);
    net.run(7_000);
    assert_eq!(net.states(), [State::Up; 2]);
    net.run(120_000);
    assert_eq!(net.states(), [State::Up; 2]);
    net.translators[1].outer = Some("198.51.100.1:40777".parse().unwrap());
    net.translators[1].open.clear();
    net.run(90_000);
    assert_eq!(net.states(), [State::Up; 2]);
    for (introduces, names) in [
        (false, [Some(0), Some(0)]),
        (true, [None, None]),
        (true, [Some(0), None]),
        (true, [Some(2), Some(1)]),
    ] {
        let mut net = Net::new(introduces, names);
        net.run(20_000);
        assert!(!net.states().contains(&State::Up), "{introduces} {names:?}");
    }
}
