//! Goal: a mesh carries packets completely and once, repairs itself, and finds networks behind its nodes. Method: nodes around
//! one lossy channel in virtual time.

use chappe_core::{Duration, Instant};
use chappe_mesh::node::Whither;
use chappe_mesh::packet::Net;

use crate::field::{Field, secs};

/// Offers a packet every `every`, numbered from 0, and returns how many.
fn stream(
    field: &mut Field,
    (from, to): (usize, usize),
    (begin, end): (f64, f64),
    every: Duration,
) -> u32 {
    field.run(secs(begin), |_| {});
    let (mut next, mut number) = (field.now, 0);
    field.run(secs(end), |field| {
        while field.now >= next {
            field.offer(from, to, number, 200);
            number += 1;
            next += every;
        }
    });
    number
}

fn repeats(numbers: &[u32]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).filter(|two| two[0] == two[1]).count()
}

/// Three hops that lose a fifth of all frames lose no packet, and deliver none twice.
#[test]
fn three_lossy_hops_deliver_every_packet_once() {
    for seed in 1..=5 {
        let mut field = Field::new(Field::line(4, 0.8), seed);
        let sent = stream(&mut field, (0, 3), (4.0, 14.0), Duration::from_millis(25));
        let end = field.now + Duration::from_secs(2);
        field.run(end, |_| {});
        let numbers = field.numbers(3);
        assert_eq!(repeats(&numbers), 0, "seed {seed}");
        assert_eq!(numbers.len() as u32, sent, "seed {seed}");
        let late = numbers.windows(2).filter(|two| two[1] < two[0]).count();
        assert!(
            late * 100 <= numbers.len(),
            "seed {seed}: {late} of {sent} out of order"
        );
    }
}

/// The first packet passes three lossy hops within three seconds of the start on nine networks of ten (the goal is all), and within
/// four on each.
#[test]
fn the_first_packet_arrives_within_seconds() {
    let mut arrived = Vec::new();
    for seed in 1..=10 {
        let mut field = Field::new(Field::line(4, 0.8), seed);
        let every = Duration::from_millis(50);
        stream(&mut field, (0, 3), (0.0, 5.0), every);
        let first = field.received[3]
            .first()
            .map_or(f64::MAX, |(at, _)| at.as_secs_f64());
        arrived.push(first);
    }
    println!("{arrived:?}");
    let soon = arrived.iter().filter(|&&first| first <= 3.0).count();
    assert!(
        soon >= 9 && arrived.iter().all(|&first| first <= 4.0),
        "{arrived:?}"
    );
}

/// Two relays between two ends.
fn diamond() -> Vec<Vec<f64>> {
    let mut ratios = vec![vec![0.0; 4]; 4];
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        (ratios[a][b], ratios[b][a]) = (0.8, 0.8);
    }
    ratios
}

/// The relay in use crashes: the gap at the receiver stays below two seconds. It returns, and packets still arrive once. (On the last two
/// seeds it is 2.4 and 2.1 s if requests for a route are answered once, and the answer is lost.)
#[test]
fn a_crashed_relay_costs_less_than_two_seconds() {
    for seed in (1..=10).chain([852, 650]) {
        let mut field = Field::new(diamond(), seed);
        stream(&mut field, (0, 3), (4.0, 6.0), Duration::from_millis(20));
        let used = field.node(0).router().next_hops(4).next().unwrap();
        field.crash(usize::from(used) - 1);
        let crashed = field.now;
        let number = 100_000;
        let mut next = crashed;
        let mut count = 0;
        field.run(crashed + Duration::from_secs(4), |field| {
            while field.now >= next {
                field.offer(0, 3, number + count, 200);
                count += 1;
                next += Duration::from_millis(20);
            }
        });
        let times: Vec<Instant> = field.received[3].iter().map(|(at, _)| *at).collect();
        let gap = times
            .windows(2)
            .map(|two| two[1].saturating_since(two[0]))
            .max()
            .unwrap();
        println!("seed {seed}: {gap}");
        assert!(gap < Duration::from_secs(2), "seed {seed}: {gap}");
        assert!(
            times.last().unwrap().saturating_since(crashed) > Duration::from_millis(3500),
            "seed {seed}"
        );
        field.revive(usize::from(used) - 1);
        let end = field.now + Duration::from_secs(3);
        field.run(end, |_| {});
        assert_eq!(repeats(&field.numbers(3)), 0);
        assert_eq!(field.node(0).counters().1.losses.hop_limit, 0);
    }
}

/// A partition of ten seconds that heals is crossed again within six.
#[test]
fn a_partition_heals() {
    let mut field = Field::new(Field::line(4, 0.9), 3);
    stream(&mut field, (0, 3), (4.0, 6.0), Duration::from_millis(50));
    let whole = std::mem::replace(&mut field.ratios, vec![vec![0.0; 4]; 4]);
    for (a, b) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        field.ratios[a][b] = 0.9;
    }
    let end = field.now + Duration::from_secs(10);
    field.run(end, |_| {});
    field.ratios = whole;
    let (healed, before) = (field.now, field.received[3].len());
    let mut next = healed;
    field.run(healed + Duration::from_secs(8), |field| {
        while field.now >= next {
            field.offer(0, 3, 1_000_000, 200);
            next += Duration::from_millis(50);
        }
    });
    let first = field.received[3]
        .get(before)
        .map(|(at, _)| at.saturating_since(healed));
    assert!(
        first.is_some_and(|first| first < Duration::from_secs(6)),
        "{first:?}"
    );
}

/// Networks behind nodes, the nearest gateway, and what is behind no node.
#[test]
fn networks_behind_nodes_are_found() {
    let net = |text| Net::parse(text).unwrap();
    let behind = vec![
        (3, net("192.168.5.0/24")),
        (3, Net::DEFAULT_V4),
        (1, net("192.168.0.0/16")),
    ];
    let mut field = Field::with_behind(Field::line(4, 0.9), 1, behind);
    field.run(secs(6.0), |_| {});
    let now = field.now;
    let mut whither = |to: &str| field.node(0).whither(now, to.parse().unwrap());
    assert_eq!(whither("192.168.5.9"), Whither::Node(4));
    assert_eq!(whither("192.168.6.9"), Whither::Node(2));
    assert_eq!(whither("8.8.8.8"), Whither::Node(4));
    assert_eq!(whither("10.77.0.3"), Whither::Node(3));
    assert_eq!(whither("10.77.0.1"), Whither::Here);
    assert_eq!(whither("224.0.0.5"), Whither::Group);
    assert_eq!(whither("fd00::1"), Whither::Unknown);
    field.offer_to(0, "192.168.5.9".parse().unwrap(), 7, 100);
    let end = field.now + Duration::from_secs(1);
    field.run(end, |_| {});
    assert_eq!(field.numbers(3), [7]);
    field.crash(3);
    let end = field.now + Duration::from_secs(10);
    field.run(end, |_| {});
    let now = field.now;
    assert_eq!(
        field.node(0).whither(now, "192.168.5.9".parse().unwrap()),
        Whither::Node(2),
        "the shorter prefix remains"
    );
}

/// Goal: what a host sends to a group or to all reaches every node once, over lossy hops, too. Method: `groups` is on; a third node
/// crashes, and the others get theirs nevertheless.
#[test]
fn packets_to_groups_reach_every_node_once() {
    let mut field = Field::new(Field::line(5, 0.8), 3);
    field.run(secs(5.0), |_| {});
    for (number, group) in [
        (1, "224.0.0.200"),
        (2, "10.77.255.255"),
        (3, "255.255.255.255"),
    ] {
        field.offer_to(1, group.parse().unwrap(), number, 500);
    }
    field.run(secs(8.0), |_| {});
    for place in [0, 2, 3, 4] {
        let mut numbers = field.numbers(place);
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3], "{place}");
    }
    assert!(field.received[1].is_empty());
    field.crash(4);
    field.offer_to(1, "224.0.0.200".parse().unwrap(), 4, 500);
    field.run(secs(12.0), |_| {});
    assert!(
        [0, 2, 3]
            .iter()
            .all(|&place| field.numbers(place).contains(&4))
    );
    let counters = field.node(1).counters().0;
    assert_eq!((counters.not_unicast, counters.unknown), (0, 0));
}

/// A flow that fills its queue does not hold up one that sends little: 95 % of small packets within 100 ms.
#[test]
fn small_flows_pass_a_bulk_transfer() {
    let mut field = Field::new(Field::line(4, 0.8), 2);
    field.run(secs(4.0), |_| {});
    let (mut next, mut sent, mut bulk) = (field.now, Vec::new(), 0);
    field.run(secs(14.0), |field| {
        if field.node(0).host().waiting() < 20_000 {
            bulk += 1;
            field.offer(0, 3, 1 << 30 | bulk, 1400);
        }
        while field.now >= next {
            // Another destination port: another flow.
            let mut packet = vec![0; 84];
            (packet[0], packet[9], packet[23]) = (0x45, 17, 5);
            packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 4]);
            packet[28..32].copy_from_slice(&(sent.len() as u32).to_be_bytes());
            let now = field.now;
            field.node(0).offer(now, &packet);
            sent.push(now);
            next += Duration::from_millis(100);
        }
    });
    let mut waits: Vec<f64> = field.received[3]
        .iter()
        .filter(|(_, packet)| packet.len() == 84)
        .map(|(at, packet)| {
            at.saturating_since(
                sent[u32::from_be_bytes(packet[28..32].try_into().unwrap()) as usize],
            )
            .as_secs_f64()
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    let p95 = waits[waits.len() * 95 / 100];
    println!(
        "{} of {}: p95 {p95:.3} s; bulk {bulk}",
        waits.len(),
        sent.len()
    );
    assert!(waits.len() + 3 >= sent.len() && p95 < 0.1, "{p95}");
    assert!(bulk > 500, "{bulk}");
}
