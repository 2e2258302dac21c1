//! Two peers without sockets: what a hostile or unlucky network may do to them, and what they count.

use std::net::SocketAddr;

use chappe_core::{Bitrate, Duration, Instant, Purpose, Seed, Stream};
use chappe_link::{Key, Peer, PeerConfig, State};
use chappe_sys::Endpoint;
use chappe_wildnet::Service;

fn at(text: &str) -> Endpoint {
    Endpoint::Udp(text.parse::<SocketAddr>().unwrap())
}

fn peer(number: usize, life: u64, key: u8, endpoint: Option<&str>) -> Peer {
    let config = PeerConfig {
        name: format!("peer{number}"),
        key: Key::new([key; 32]),
        endpoint: endpoint.map(at),
        networks: Vec::new(),
        datagram_max: 1472,
        below: 42,
        rate: Some(Bitrate(20_000_000)),
        services: [Service::RELIABLE; 4],
        queue: Duration::from_millis(100),
    };
    let mut random = Seed(life).stream(Purpose::Node(number as u32));
    Peer::new(config, number, life, Box::new(move || random.next_u64())).unwrap()
}

/// Both ends, 5 ms apart, with everything that was sent.
struct Net {
    ends: [Peer; 2],
    places: [&'static str; 2],
    now: Instant,
    flying: Vec<(Instant, usize, Endpoint, Vec<u8>)>,
    recorded: Vec<(usize, Vec<u8>)>,
    loss: f64,
    random: Stream,
    heard: Vec<u32>,
}

impl Net {
    fn new(loss: f64) -> Net {
        Net {
            ends: [peer(0, 1, 7, Some("10.0.0.2:1")), peer(0, 2, 7, None)],
            places: ["10.0.0.1:1", "10.0.0.2:1"],
            now: Instant::from_millis(1),
            flying: Vec::new(),
            recorded: Vec::new(),
            loss,
            random: Seed(9).stream(Purpose::Trial(0)),
            heard: Vec::new(),
        }
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        let mut buffer = vec![0; 2048];
        while self.now < end {
            self.now += Duration::from_micros(500);
            for from in 0..2 {
                while let Some((len, to)) = self.ends[from].poll(self.now, &mut buffer) {
                    self.recorded.push((1 - from, buffer[..len].to_vec()));
                    let lost = self.random.chance(self.loss) || to != at(self.places[1 - from]);
                    if !lost {
                        let arrives = self.now + Duration::from_millis(5);
                        self.flying.push((
                            arrives,
                            1 - from,
                            at(self.places[from]),
                            buffer[..len].to_vec(),
                        ));
                    }
                }
            }
            let (due, later) = std::mem::take(&mut self.flying)
                .into_iter()
                .partition(|flight| flight.0 <= self.now);
            self.flying = later;
            let due: Vec<(Instant, usize, Endpoint, Vec<u8>)> = due;
            for (_, to, from, octets) in due {
                self.give(to, from, octets);
            }
        }
    }

    fn give(&mut self, to: usize, from: Endpoint, mut octets: Vec<u8>) {
        self.ends[to].handle(self.now, from, &mut octets);
        let mut packet = [0; 2048];
        while let Some(len) = self.ends[to].deliver(&mut packet) {
            if to == 1 {
                let packet = &packet[..len];
                assert!(
                    packet[4..].iter().all(|octet| *octet == packet[3]),
                    "a wrong packet"
                );
                self.heard
                    .push(u32::from_be_bytes(packet[..4].try_into().unwrap()));
            }
        }
    }

    fn offer(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let mut packet = vec![number as u8; 600];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            while !self.ends[0].has_room(1) {
                self.run(1);
            }
            assert!(self.ends[0].offer(self.now, 1, 3, &packet));
        }
        self.run(400);
    }

    fn in_order_and_once(&self) {
        assert!(self.heard.is_sorted_by(|a, b| a < b), "{:?}", self.heard);
    }
}

/// The end that knows no address waits, is called, and both are up; packets go through losses.
#[test]
fn two_ends_find_each_other() {
    let mut net = Net::new(0.2);
    assert_eq!(net.ends[1].state(net.now), State::Waiting);
    net.run(3_000);
    assert_eq!(
        net.ends.each_ref().map(|end| end.state(net.now)),
        [State::Up; 2]
    );
    net.offer(0..500);
    net.run(2_000);
    assert_eq!(net.heard.len(), 500);
    net.in_order_and_once();
}

/// Everything that was ever sent, played again from another address, and bent copies of it: nothing is delivered, the
/// address stays, and all of it is counted.
#[test]
fn replayed_and_bent_datagrams_only_count() {
    let mut net = Net::new(0.0);
    net.run(1_000);
    net.offer(0..100);
    let (recorded, before) = (net.recorded.clone(), net.heard.len());
    for (to, octets) in &recorded {
        net.give(*to, at("6.6.6.6:6"), octets.clone());
        let mut bent = octets.clone();
        let place = net.random.below(bent.len() as u64 - 4) as usize + 4;
        bent[place] ^= 4;
        net.give(*to, at("6.6.6.6:6"), bent);
    }
    net.run(500);
    assert_eq!(net.heard.len(), before);
    let [a, b] = net.ends.each_ref().map(|end| *end.counters());
    // A bent copy is told by its seal, unless its number has come before, which is looked at first.
    assert!(
        a.repeated + b.repeated > 100 && a.forged + b.forged > 0,
        "{a:?} {b:?}"
    );
    assert_eq!((a.moved, b.moved), (0, 0));
    assert_eq!(
        net.ends.each_ref().map(|end| end.state(net.now)),
        [State::Up; 2]
    );
    net.offer(100..200);
    assert_eq!(net.heard.len(), 200);
    net.in_order_and_once();
}

/// The caller's address changes, as behind a translator that was restarted: the other end follows its first frame.
#[test]
fn an_address_that_changes_is_followed() {
    let mut net = Net::new(0.0);
    net.run(1_000);
    net.offer(0..50);
    net.places[0] = "10.7.7.7:99";
    net.offer(50..150);
    net.run(3_000);
    assert_eq!(net.heard.len(), 150);
    net.in_order_and_once();
    assert_eq!(
        (net.ends[1].endpoint(), net.ends[1].counters().moved),
        (Some(at("10.7.7.7:99")), 1)
    );
}

/// An end starts over in the middle: it is found again, nothing comes twice, and new packets go through.
#[test]
fn an_end_that_starts_over_is_found_again() {
    for restarted in 0..2 {
        let mut net = Net::new(0.05);
        net.run(1_500);
        net.offer(0..100);
        net.ends[restarted] = match restarted {
            0 => peer(0, 77, 7, Some("10.0.0.2:1")),
            _ => peer(0, 78, 7, None),
        };
        // An end without an address is found by the other's call after a silence.
        net.run(9_000);
        net.offer(200..300);
        net.run(2_000);
        assert_eq!(
            net.heard.iter().filter(|number| **number >= 200).count(),
            100,
            "{restarted}"
        );
        net.in_order_and_once();
    }
}

/// Another key, another version, and noise: counters and words, no session.
#[test]
fn strangers_are_told_apart() {
    let mut net = Net::new(0.0);
    net.ends[0] = peer(0, 1, 8, Some("10.0.0.2:1"));
    net.run(4_000);
    assert!(net.ends[1].counters().wrong_key > 0);
    assert!(net.ends[1].trouble().unwrap().contains("key"));
    assert!(net.ends[0].trouble().unwrap().contains("no answer"));
    let (_, mut hello) = net.recorded[0].clone();
    hello[1] = 9;
    net.give(1, at("10.0.0.1:1"), hello);
    assert_eq!(net.ends[1].counters().wrong_version, 1);
    assert!(net.ends[1].trouble().unwrap().contains("version 9"));
    for len in 0..200 {
        let mut noise = vec![0; len];
        net.random.fill(&mut noise);
        if len > 0 {
            noise[0] = len as u8 % 5;
        }
        net.give(1, at("10.0.0.1:1"), noise);
    }
    assert!(net.heard.is_empty());
}

/// One direction dies: the sender says so, waits without filling the network, and goes on where it stopped.
#[test]
fn a_dead_direction_is_told_and_survived() {
    let mut net = Net::new(0.0);
    net.run(1_000);
    net.offer(0..50);
    let place = std::mem::replace(&mut net.places[0], "10.9.9.9:9");
    for number in 50..80u32 {
        let mut packet = vec![number as u8; 600];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        assert!(net.ends[0].offer(net.now, 1, 3, &packet));
    }
    // What the sender sends arrives, and comes from the place it always came from; what is sent to it does not.
    let sent = net.ends[0].counters().datagrams_sent;
    for _ in 0..40 {
        net.run(100);
    }
    let more = net.ends[0].counters().datagrams_sent - sent;
    assert!(
        more < 400,
        "{more} datagrams in four seconds without a report"
    );
    net.places[0] = place;
    net.run(12_000);
    assert_eq!(net.heard.len(), 80);
    net.in_order_and_once();
}
