//! Goal: nothing is allocated once a node is made. Method: an allocator that counts, around a chain at work.

use chappe_core::{
    Address, Arrival, Caps, Classes, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed,
};
use chappe_dpclo::{Router, Settings};
use chappe_trial::allocation::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CAPS: Caps = Caps {
    frame_max: 2296,
    schedules: false,
    start_error: Duration::ZERO,
    reports_power: false,
    overhears: true,
    confirms_broadcast: true,
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
    let mut lifo = Settings::chappe();
    lifo.extras.lifo = true;
    for settings in [
        Settings::paper(),
        Settings::chappe(),
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
