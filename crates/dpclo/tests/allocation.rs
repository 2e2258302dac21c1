//! Goal: nothing is allocated once a node is made. Method: an allocator that counts, around a chain at work.

use chappe_core::{
    Address, Arrival, Caps, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose,
    Seed, Stream,
};
use chappe_dpclo::{Router, Scheme, Settings};
use chappe_testkit::allocation::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CAPS: Caps = Caps {
    frame_max: 2296,
    schedules: false,
    start_error: Duration::ZERO,
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

/// Lets each node of a chain send once; every node hears its neighbours.
fn turn(nodes: &mut [Router], now: Instant, sdu: &mut [u8]) {
    for from in 0..nodes.len() {
        nodes[from].handle_timeout(now);
        let Some(send) = nodes[from].poll_link(now, Classes::ALL, sdu) else {
            continue;
        };
        for to in [from.wrapping_sub(1), from + 1] {
            if let Some(node) = nodes.get_mut(to) {
                let (from, sdu) = (Address::node(from as u16), &sdu[..send.len]);
                let arrival = Arrival {
                    from,
                    to: send.to,
                    sdu,
                    power: None,
                };
                node.handle_link(now, LinkEvent::Received(arrival));
            }
        }
        let outcome = Outcome::Acknowledged { attempts: 1 };
        nodes[from].handle_link(
            now,
            LinkEvent::Sent {
                token: send.token,
                outcome,
            },
        );
    }
}

#[test]
fn a_node_at_work_allocates_nothing() {
    let mut lifo = Settings::improved();
    lifo.extras.lifo = true;
    for settings in [
        Settings::paper(),
        Settings::improved(),
        lifo,
        Settings::shortest_path(),
        Settings::fusion(),
        Settings::dclo(),
    ] {
        let before = allocation::count();
        let mut nodes: Vec<Router> = (0..4)
            .map(|me| {
                let random = Seed(1).stream(Purpose::Node(u32::from(me)));
                Router::new(settings, me, 0, &CAPS, Instant::ZERO, random).unwrap()
            })
            .collect();
        let mut sdu = vec![0; 2304];
        assert!(allocation::count() > before, "the counter counts");
        let before = allocation::count();
        for step in 0..40_000u64 {
            let now = Instant::from_millis(step);
            turn(&mut nodes, now, &mut sdu);
            if step % 4 == 0 {
                let _ = nodes[0].offer(now, 3, 1, &[7; 200]);
                let _ = nodes[2].offer(now, 0, 1, &[7; 200]);
            }
            for node in &mut nodes {
                while node.poll_delivery(&mut sdu).is_some() {}
            }
        }
        assert_eq!(allocation::count(), before);
        assert!(
            nodes[3].counters().delivered > 500,
            "{:?}",
            nodes[3].counters()
        );
        assert!(nodes[1].counters().relayed > 1000);
    }
}

/// A frame of some kind with fields at random, some of its octets changed, some missing.
fn hostile(now: Instant, random: &mut Stream, room: &mut [u8]) -> usize {
    let mut frame = [0; 120];
    random.fill(&mut frame);
    let kind = random.below(6) as u8;
    frame[0] = 0x11 + kind;
    let counted = match kind {
        1 => Some(8),
        3 => Some(4),
        5 => Some(5),
        // Pairing: a request or its answer.
        4 => Some(3),
        _ => None,
    };
    if let Some(size) = counted {
        frame[1] = 1 + random.below(100 / size) as u8;
    }
    // Half of all numbers are small: nodes, flows and destinations that exist.
    for octet in frame.iter_mut().skip(2) {
        if random.chance(0.5) {
            *octet = random.below(4) as u8;
        }
    }
    if kind == 0 && random.chance(0.9) {
        // A probe in its order that says that node 0 is heard well: links come and go.
        let number = (now.nanos() / 1_000_000_000) as u16;
        (frame[1], frame[4], frame[5]) = (0, 1, random.below(9) as u8);
        frame[2..4].copy_from_slice(&number.to_be_bytes());
        frame[6..10].copy_from_slice(&[0, 0, 9, 10]);
    }
    if random.chance(0.1) {
        frame[random.below(120) as usize] ^= 1 << random.below(8);
    }
    let len = match random.chance(0.1) {
        true => random.below(120) as usize,
        false => 120,
    };
    room[..len].copy_from_slice(&frame[..len]);
    len
}

/// Goal: whatever is heard, a node neither panics nor takes more memory. Method: legal and broken frames of all kinds, from
/// nodes that exist and nodes that do not, to it, to all and to others, between its own work; overflow checks are on.
#[test]
fn hostile_frames_cost_no_memory_and_no_panic() {
    for settings in [
        Settings::improved(),
        Settings::paper(),
        Settings::fusion(),
        Settings::dclo(),
    ] {
        for overhears in [true, false] {
            let caps = Caps { overhears, ..CAPS };
            let mut random = Seed(5).stream(Purpose::Trial(2));
            let node = Router::new(settings, 0, 0, &caps, Instant::ZERO, random);
            let mut node = node.unwrap();
            let mut room = vec![0; 2304];
            let before = allocation::count();
            for step in 0..20_000u64 {
                let now = Instant::from_micros(1000 * step);
                let len = hostile(now, &mut random, &mut room);
                let to = match random.below(3) {
                    0 => Address::node(0),
                    1 => Address::BROADCAST,
                    _ => Address::node(random.below(6) as u16),
                };
                let from = Address::node(random.below(if step % 2 == 0 { 6 } else { 600 }) as u16);
                let arrival = Arrival {
                    from,
                    to,
                    sdu: &room[..len],
                    power: None,
                };
                node.handle_link(now, LinkEvent::Received(arrival));
                node.handle_timeout(now);
                let _ = node.offer(now, random.below(8) as u16, 1, b"its own");
                if let Some(send) = node.poll_link(now, Classes::ALL, &mut room) {
                    let outcome = match random.chance(0.3) {
                        true => Outcome::Failed { attempts: 7 },
                        false => Outcome::Acknowledged { attempts: 1 },
                    };
                    let token = send.token;
                    node.handle_link(now, LinkEvent::Sent { token, outcome });
                }
                if step % 3 == 0 {
                    while node.poll_delivery(&mut room).is_some() {}
                }
            }
            assert_eq!(allocation::count(), before);
            let counters = node.counters();
            // Nobody answers DCLO's requests.
            let pairs = matches!(settings.scheme, Scheme::Dclo(_));
            assert!(
                pairs || counters.relayed > 30 && counters.data_sent > 100,
                "{counters:?}"
            );
            assert!(
                counters.drops.iter().map(|(_, count)| count).sum::<u64>() > 1000,
                "{counters:?}"
            );
        }
    }
}
