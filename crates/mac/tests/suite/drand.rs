//! DRAND over the DCF on simulated air with losses: no two nodes within two hops own the same slot, whatever frames are lost.

use chappe_core::{
    Address, Arrival, Classes, Instant, LinkEvent, LinkNode, OverMac, Purpose, Rate, Seed, Stream,
};
use chappe_mac::dot11::{Config, Dot11};
use chappe_mac::zmac::drand::{Drand, Timing};
use chappe_mac::zmac::{Schedule, colour};
use chappe_sim::{AirTime, Matrix, Medium, Position, Simulator, World, topology};

type Node = OverMac<Dot11, Drand>;

struct Field {
    places: Vec<Position>,
    range_m: f64,
}

impl Field {
    fn adjacent(&self, a: usize, b: usize) -> bool {
        let (p, q) = (self.places[a], self.places[b]);
        a != b && (p.x - q.x).hypot(p.y - q.y) <= self.range_m
    }

    fn within_two(&self, a: usize, b: usize) -> bool {
        let via = |c: usize| self.adjacent(a, c) && self.adjacent(c, b);
        a != b && (self.adjacent(a, b) || (0..self.places.len()).any(via))
    }

    fn simulator(&self, prr: f64, seed: Seed) -> Simulator<Node> {
        let nodes = self.places.len();
        let mut matrix = Matrix::silent(nodes);
        for a in 0..nodes {
            for b in (0..a).filter(|&b| self.adjacent(a, b)) {
                matrix = matrix.with_link(a, b, prr);
            }
        }
        let node = |n: usize| {
            let address = Address::node(n as u16);
            let random = seed.stream(Purpose::Node(n as u32));
            let link = Drand::new(
                address,
                seed.stream(Purpose::Traffic(n as u32)),
                Timing::default(),
                Instant::ZERO,
            );
            let mac = Dot11::new(Config::dot11b(Rate::Dsss2), address, random);
            Box::new(OverMac::new(mac, link))
        };
        let medium = Medium::matrix(&matrix).unwrap();
        let nodes = (0..nodes).map(node).collect();
        Simulator::new(World::new(medium), nodes, seed, ()).unwrap()
    }

    /// Pairs within two hops with the same slot.
    fn clashes(&self, slots: &[u8]) -> usize {
        let pairs = (0..slots.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs
            .filter(|&(a, b)| slots[a] == slots[b] && self.within_two(a, b))
            .count()
    }
}

fn random(nodes: usize, seed: Seed) -> Field {
    Field {
        places: topology::random(nodes, 500.0, 500.0, seed),
        range_m: 150.0,
    }
}

/// Runs until all have a slot, and a little on; the seconds that took, and the slots.
fn settle(simulator: &mut Simulator<Node>, nodes: usize) -> (f64, Vec<u8>) {
    let done =
        |simulator: &Simulator<Node>| (0..nodes).all(|node| simulator.node(node).link.is_settled());
    simulator.run_while(AirTime::from_secs(300), |simulator| !done(simulator));
    assert!(done(simulator), "not settled after 300 s");
    let took = simulator
        .now()
        .saturating_since(AirTime::ZERO)
        .as_secs_f64();
    let until = simulator.now() + chappe_core::Duration::from_secs(5);
    simulator.run_until(until);
    let slot = |node: usize| simulator.node(node).link.slot();
    (took, (0..nodes).filter_map(slot).collect())
}

/// Thirty nodes, every link losing none, a tenth or three tenths of its frames: slots for all, none shared within two hops,
/// and not more of them than the greedy colouring in a random order needs by a half.
#[test]
fn nodes_within_two_hops_share_no_slot() {
    const NODES: usize = 30;
    for (seed, prr) in [(1, 1.0), (2, 1.0), (3, 0.9), (4, 0.9), (5, 0.7), (6, 0.7)] {
        let seed = Seed(seed);
        let field = random(NODES, seed);
        let mut simulator = field.simulator(prr, seed);
        let (took, slots) = settle(&mut simulator, NODES);
        assert_eq!(slots.len(), NODES);
        assert_eq!(field.clashes(&slots), 0, "{slots:?}");
        let mut greedy = [0; NODES];
        let order: Vec<usize> = (0..NODES).collect();
        colour(&order, &mut greedy, |a, b| field.adjacent(a, b));
        let most = slots.iter().max().copied().unwrap_or(0);
        let least = greedy.iter().max().copied().unwrap_or(0);
        let total = |of: fn(&Drand) -> u64| -> u64 {
            (0..NODES).map(|node| of(&simulator.node(node).link)).sum()
        };
        println!(
            "prr {prr}: {took:.1} s, largest slot {most}, greedy {least}, {} rounds, {} failed, {} repaired, {} messages",
            total(|drand| drand.counters().rounds),
            total(|drand| drand.counters().failed),
            total(|drand| drand.counters().repaired),
            total(|drand| drand.counters().sent),
        );
        assert!(f64::from(most) <= 1.5 * f64::from(least));
    }
}

/// Where nothing is lost the schedules are those of the network in full view: own slot, period, and who is two hops away.
#[test]
fn schedules_follow_from_what_was_heard() {
    const NODES: usize = 20;
    let seed = Seed(7);
    let field = random(NODES, seed);
    let mut simulator = field.simulator(1.0, seed);
    let (_, slots) = settle(&mut simulator, NODES);
    let slots: Vec<u16> = slots.into_iter().map(u16::from).collect();
    for node in 0..NODES {
        let full = Schedule::of(node, &slots, |a, b| field.adjacent(a, b));
        let heard = simulator.node(node).link.schedule().unwrap();
        assert_eq!(heard.own, full.own, "node {node}");
        let slot = chappe_core::Duration::from_millis(10);
        for index in 0..128 {
            let at = chappe_core::Instant::from_millis(10 * index);
            assert_eq!(
                heard.is_barred(at, slot),
                full.is_barred(at, slot),
                "node {node}, slot {index}"
            );
        }
    }
}

/// A node that joins late learns its neighbours before it asks; no other node changes its slot.
#[test]
fn a_latecomer_fits_in() {
    const NODES: usize = 12;
    let seed = Seed(8);
    let field = random(NODES, seed);
    let mut simulator = field.simulator(0.9, seed);
    let (_, before) = settle(&mut simulator, NODES);
    let random = seed.stream(Purpose::Trial(5));
    simulator.with_node(5, |node, now| {
        node.link = Drand::new(Address::node(5), random, Timing::default(), now);
    });
    let (_, after) = settle(&mut simulator, NODES);
    assert_eq!(field.clashes(&after), 0);
    let changed = (0..NODES).filter(|&node| before[node] != after[node]);
    assert!(changed.eq(std::iter::once(5).filter(|&five| before[five] != after[five])));
}

/// A hello of `from` that lists `listed`, both without a slot.
fn hello(from: u16, listed: u16) -> (Address, Vec<u8>) {
    let mut octets = vec![1, 0, 0, 255, 0, 1, 1];
    octets.extend(Address::node(listed).to_eui48());
    octets.extend([255, 0]);
    (Address::node(from), octets)
}

fn hear(drand: &mut Drand, now: Instant, (from, sdu): (Address, &[u8])) {
    let to = Address::BROADCAST;
    let arrival = Arrival {
        from,
        to,
        sdu,
        power: None,
    };
    drand.handle_link(now, LinkEvent::Received(arrival));
}

/// Goal: a neighbour that died does not keep a node from its slot forever. Method: one hello that lists the node, then
/// silence: without the neighbour's grant there is no slot, until it is forgotten after half a minute.
#[test]
fn a_neighbour_that_died_is_forgotten() {
    let random = Seed(3).stream(Purpose::Trial(1));
    let mut drand = Drand::new(Address::node(0), random, Timing::default(), Instant::ZERO);
    let (from, octets) = hello(1, 0);
    hear(&mut drand, Instant::from_millis(10), (from, &octets));
    let mut sdu = [0; 300];
    let mut decided = None;
    while let Some(wake) = drand
        .poll_timeout()
        .filter(|wake| wake.at < Instant::from_millis(60_000))
    {
        drand.handle_timeout(wake.at);
        while drand.poll_link(wake.at, Classes::ALL, &mut sdu).is_some() {}
        decided = decided.or(drand.slot().map(|_| wake.at));
    }
    let decided = decided.expect("a slot in the end");
    assert!(decided > Instant::from_millis(30_000) && drand.counters().failed > 10);
}

/// Goal: no message can make a node panic, own a slot that cannot be told, or set a deadline in the past. Method: messages of
/// all kinds with fields at random, some cut, from many addresses, some of them from neighbours; overflow checks are on.
#[test]
fn hostile_messages_do_no_harm() {
    let mut random = Seed(4).stream(Purpose::Trial(2));
    let (mut sdu, mut slots, mut failed, mut dropped) = ([0; 400], 0, 0, 0);
    for life in 0..20 {
        let stream = Seed(4).stream(Purpose::Node(life));
        let mut drand = Drand::new(Address::node(0), stream, Timing::default(), Instant::ZERO);
        for step in 0..5000 {
            let now = Instant::from_millis(2 * step);
            let (from, octets) = hostile(&mut random, life % 2 == 0);
            hear(&mut drand, now, (from, &octets));
            drand.handle_timeout(now);
            assert!(drand.poll_timeout().is_some_and(|wake| wake.at > now));
            while drand.poll_link(now, Classes::ALL, &mut sdu).is_some() {}
            let slot = drand.slot();
            assert!(slot.is_none_or(|slot| slot < 128));
            assert_eq!(drand.schedule().is_some(), slot.is_some());
            slots += u64::from(slot.is_some());
        }
        failed += drand.counters().failed;
        dropped += drand.counters().dropped;
    }
    assert!(
        slots > 100 && failed > 20 && dropped > 1000,
        "{slots} {failed} {dropped}"
    );
}

/// A message of some kind with fields at random; from a `few` neighbours, or from any node.
fn hostile(random: &mut Stream, few: bool) -> (Address, Vec<u8>) {
    let mut octets = vec![0; 120];
    random.fill(&mut octets);
    // Few requests: each one that is granted stops the node for half a minute. Mostly hellos and answers.
    octets[0] = match random.below(4) {
        1 if random.chance(0.999) => 1,
        kind => 1 + kind as u8,
    };
    (octets[1], octets[2]) = (0, random.below(8) as u8);
    (octets[5], octets[6]) = (random.below(3) as u8, random.below(14) as u8);
    if random.chance(0.5) {
        // A hello that lists node 0, or an answer to it.
        let at = if octets[0] == 1 { 7 } else { 3 };
        octets[at..at + 6].copy_from_slice(&Address::node(0).to_eui48());
    }
    if random.chance(0.1) {
        octets.truncate(random.below(120) as usize);
    }
    let nodes = if few { 3 } else { 500 };
    (Address::node(1 + random.below(nodes) as u16), octets)
}
