//! Goal: the frame path does not allocate. Method: a counting allocator, around nodes that have warmed up.

#[path = "suite/common/mod.rs"]
mod common;

use chappe_core::{Address, Arrival, Classes, Instant, LinkEvent, LinkNode, Outcome};
use chappe_pacifier::{Config, Node, improved, paper};
use chappe_testkit::allocation::{self, Counting};
use common::{graph, nodes, object};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Carries one frame of `from` to all others; ACKs are lost, so that the source continues forever.
fn carry(nodes: &mut [Node], from: usize, sdu: &mut [u8]) {
    let now = Instant::ZERO;
    let Some(send) = nodes[from].poll_link(now, Classes::ALL, sdu) else {
        return;
    };
    let outcome = match send.to.is_broadcast() {
        true => Outcome::Unconfirmed,
        false => Outcome::Acknowledged { attempts: 1 },
    };
    nodes[from].handle_link(
        now,
        LinkEvent::Sent {
            token: send.token,
            outcome,
        },
    );
    if !send.to.is_broadcast() {
        return;
    }
    for to in (0..nodes.len()).filter(|&to| to != from) {
        let (from, sdu) = (Address::node(from as u16), &sdu[..send.len]);
        let arrival = Arrival {
            from,
            to: send.to,
            sdu,
            power: None,
        };
        nodes[to].handle_link(now, LinkEvent::Received(arrival));
    }
}

#[test]
fn the_frame_path_does_not_allocate() {
    // Chain 0 -> 1 -> 2, z = 2 each, batches in turns: the receiver gets far more frames than it needs.
    let links = graph(3, &[(0, 1, 0.5), (1, 2, 0.5)]);
    let config = Config::Paper(paper::Config {
        ack_repeat: 1 << 30,
        ..paper::Config::default()
    });
    let config = config.with_batch(8, 100);
    let mut nodes = nodes(&config, &links, 1);
    let len = 8 * 100 * 40;
    nodes[0].offer(object(len, 1), &[2]).unwrap();
    nodes[2].expect(0, len).unwrap();
    let mut sdu = vec![0; 2304];
    let mut allocations = |nodes: &mut [Node], rounds: usize| {
        let before = allocation::count();
        for _ in 0..rounds {
            (0..3).for_each(|from| carry(nodes, from, &mut sdu));
        }
        allocation::count() - before
    };
    let warm_up = allocations(&mut nodes, 40);
    assert!(warm_up > 0, "the counter counts");
    let (turns, decoded) = (nodes[0].counters().turns, nodes[2].received().batches_done);
    assert_eq!(allocations(&mut nodes, 200), 0);
    let (after, done) = (nodes[0].counters().turns, nodes[2].received().batches_done);
    assert!(
        after >= turns + 10,
        "{turns} to {after}: batches were changed meanwhile"
    );
    assert!(done >= decoded + 10, "{decoded} to {done}: and decoded");
    assert!(nodes[1].counters().relay_sent > 200);
}

/// The same for the improved variant, at a source and a receiver with all places taken: a place is allocated when its batch
/// is first heard of, and kept.
#[test]
fn the_improved_variants_frame_path_does_not_allocate() {
    let links = graph(2, &[(0, 1, 0.5)]);
    let config = Config::Improved(improved::Config::default()).with_batch(8, 100);
    let mut nodes = nodes(&config, &links, 1);
    let len = 8 * 100 * 20;
    nodes[0].offer(object(len, 1), &[1]).unwrap();
    nodes[1].expect(0, len).unwrap();
    let mut sdu = vec![0; 2304];
    // One packet of each batch reaches the receiver.
    let mut hear = |nodes: &mut [Node], round: usize| {
        let before = allocation::count();
        let send = nodes[0].poll_link(Instant::ZERO, Classes::ALL, &mut sdu)?;
        if !round.is_multiple_of(3) {
            let arrival = Arrival {
                from: Address::node(0),
                to: send.to,
                sdu: &sdu[..send.len],
                power: None,
            };
            nodes[1].handle_link(Instant::ZERO, LinkEvent::Received(arrival));
        }
        Some(allocation::count() - before)
    };
    let (mut costly, mut frames) = (0, 0);
    while let Some(allocations) = hear(&mut nodes, frames) {
        costly += usize::from(allocations > 0);
        frames += 1;
    }
    // The first frame makes the group; each batch takes a store, unless one was given back before.
    assert!(frames >= 16 * 20, "{frames}");
    assert!(costly <= 21, "{costly} of {frames} frames allocated");
}
