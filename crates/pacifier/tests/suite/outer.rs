//! Goal: the outer code of members that send in turns. Method: single nodes that get frames by hand, and whole networks on the medium of
//! `common`.

use crate::common;

use std::sync::Arc;

use chappe_core::{Classes, Duration, Instant, LinkNode, Purpose, Seed};
use chappe_pacifier::improved::header::{self, HeadRepr};
use chappe_pacifier::improved::turns::{Channel, Turns};
use chappe_pacifier::{Config, Links, Node, NodeSet, improved};
use common::{Network, graph, hear, nodes, object};

const K: usize = 4;
const PAYLOAD: usize = 20;
/// Six batches, the last of two packets.
const LEN: usize = 22 * PAYLOAD - 7;
/// Seventy batches in segments of 24, 24 and 22, the last batch of three packets.
const LONG: usize = 279 * PAYLOAD - 7;

fn config() -> Config {
    Config::Improved(improved::Config::default()).with_batch(K, PAYLOAD)
}

fn in_turns(links: &Arc<Links>, receivers: &[u16], seed: u64) -> Vec<Node> {
    with_length(LEN, &config(), links, receivers, seed)
}

fn with_length(
    len: usize,
    config: &Config,
    links: &Arc<Links>,
    receivers: &[u16],
    seed: u64,
) -> Vec<Node> {
    let turns = Turns::new(links, 0, receivers, 0.05, Channel::OPEN_LAND);
    let turns = Arc::new(turns);
    let mut nodes = nodes(config, links, seed);
    for node in &mut nodes {
        node.take_turns(0, turns.clone());
    }
    for &receiver in receivers {
        nodes[usize::from(receiver)].expect(0, len).unwrap();
    }
    nodes
}

/// The next data frame of a node, at its next turn.
fn next_frame(node: &mut Node) -> Option<(Instant, Vec<u8>)> {
    let mut sdu = vec![0; 2304];
    for _ in 0..1000 {
        let at = node.poll_timeout()?.at;
        node.handle_timeout(at);
        while let Some(send) = node.poll_link(at, Classes::ALL, &mut sdu) {
            if header::parse(&sdu[..send.len]).unwrap().data.is_some() {
                return Some((at, sdu[..send.len].to_vec()));
            }
        }
    }
    None
}

/// Goal: as much rank in all batches together as the object has packets suffices, and gives the right octets. Method: a receiver that is
/// never heard loses a part of a source's frames, so that it completes few batches; one object in 255 needs a packet more.
#[test]
fn rank_in_all_batches_together_suffices() {
    let packets = LEN.div_ceil(PAYLOAD) as u64;
    let mut more = 0;
    for seed in 0..40 {
        let links = graph(2, &[(0, 1, 0.6)]);
        let mut both = in_turns(&links, &[1], seed);
        let (mut receiver, mut source) = (both.pop().unwrap(), both.pop().unwrap());
        let file = object(LEN, seed);
        source.offer(file.clone(), &[1]).unwrap();
        let mut losses = Seed(seed).stream(Purpose::Reception);
        let mut coded = false;
        while receiver.object().is_none() {
            let (at, sdu) = next_frame(&mut source).expect("the source sends");
            if losses.chance(0.5) {
                coded |= header::parse(&sdu).unwrap().data.unwrap().batch >= 6;
                hear(&mut receiver, at + Duration::from_millis(1), 0, &sdu);
            }
        }
        assert_eq!(receiver.object(), Some(&file[..]), "seed {seed}");
        let progress = receiver.received();
        assert_eq!((progress.bytes, progress.batches_done), (LEN, 6));
        assert!(coded, "seed {seed}: no coded batch was needed");
        more += receiver.counters().receiver_innovative - packets;
    }
    assert!(more <= 3, "{more} packets more than 40 objects have");
}

/// Goal: the source goes on at the pace of the plan, since all others wait for its turns. Method: a receiver that it hardly reaches seems to lack
/// packets of every batch, and a relay is to serve it; the source sends no frame of a batch beyond its share.
#[test]
fn the_source_sends_its_share_of_a_batch() {
    let links = graph(3, &[(0, 1, 0.9), (0, 2, 0.1), (1, 2, 0.9)]);
    let turns = Turns::new(&links, 0, &[1, 2], 0.05, Channel::OPEN_LAND);
    let share = turns.own(0) * K as f32;
    let mut source = in_turns(&links, &[1, 2], 1).swap_remove(0);
    source.offer(object(LEN, 1), &[1, 2]).unwrap();
    let mut sent = [0u8; 5];
    while let Some((_, sdu)) = next_frame(&mut source) {
        let batch = header::parse(&sdu).unwrap().data.unwrap().batch;
        let Some(sent) = sent.get_mut(batch as usize) else {
            break;
        };
        *sent += 1;
    }
    for sent in sent {
        assert!(usize::from(sent) >= K && f32::from(sent) <= share, "{sent}");
    }
}

/// Networks with losses, relays and receivers behind receivers; objects of one segment and of several.
#[test]
fn any_losses_deliver_in_turns() {
    for (seed, len) in (0..20).zip([LEN, LONG].into_iter().cycle()) {
        let mut draw = Seed(seed).stream(Purpose::Trial(7));
        let mut ratio = || 0.2 + 0.75 * draw.fraction();
        let edges = [
            (0, 1, ratio()),
            (1, 2, ratio()),
            (2, 3, ratio()),
            (1, 4, ratio()),
            (4, 5, ratio()),
        ];
        let links = graph(6, &edges);
        let receivers = [2, 3, 5];
        let members = with_length(len, &config(), &links, &receivers, seed);
        let mut network = Network::new(links.clone(), seed, members);
        let file = object(len, seed);
        network.nodes[0].offer(file.clone(), &receivers).unwrap();
        let done = network.run(Duration::from_secs(2000), |nodes| nodes[0].source_done());
        assert!(done, "seed {seed}: {edges:?}");
        for receiver in receivers {
            let copy = network.nodes[usize::from(receiver)].object();
            assert_eq!(copy, Some(&file[..]), "seed {seed}");
        }
        // Every node learns of the end.
        network.run(Duration::from_secs(200), |_| false);
        let frames = network.frames;
        network.run(Duration::from_secs(500), |_| false);
        assert_eq!(network.frames, frames, "seed {seed}");
    }
}

/// A complete receiver makes packets of batches that it has never met: it serves the one behind it when the source is gone.
#[test]
fn complete_receivers_go_on_without_the_source() {
    let links = graph(3, &[(0, 1, 0.8), (1, 2, 0.5)]);
    let mut network = Network::new(links.clone(), 3, in_turns(&links, &[1, 2], 3));
    let file = object(LEN, 3);
    network.nodes[0].offer(file.clone(), &[1, 2]).unwrap();
    let limit = Duration::from_secs(1000);
    assert!(network.run(limit, |nodes| nodes[1].object().is_some()));
    assert!(network.nodes[2].object().is_none());
    network.nodes[0].withdraw();
    assert!(network.run(limit, |nodes| nodes[2].object().is_some()));
    assert_eq!(network.nodes[2].object(), Some(&file[..]));
}

/// A source and a receiver with batches so long that several reports go by during each; returns the network once the receiver has a long
/// object, and the packets of that.
fn long_to_one(ratio: f64, seed: u64) -> (Network<Node>, u64) {
    let config = Config::Improved(improved::Config::default()).with_batch(32, 1400);
    let len = 70 * 32 * 1400 - 7;
    let links = graph(2, &[(0, 1, ratio)]);
    let members = with_length(len, &config, &links, &[1], seed);
    let mut network = Network::new(links, seed, members);
    let file = object(len, seed);
    network.nodes[0].offer(file.clone(), &[1]).unwrap();
    let done = network.run(Duration::from_secs(200), |nodes| nodes[0].source_done());
    assert!(done, "seed {seed}");
    let receiver = &network.nodes[1];
    assert_eq!(receiver.object(), Some(&file[..]), "seed {seed}");
    let progress = receiver.received();
    assert_eq!((progress.bytes, progress.batches_done), (len, 70));
    (network, 70 * 32)
}

/// Goal: a long object takes hardly more packets than it has. Method: a link that loses two of five frames, and an object of three segments.
#[test]
fn rank_in_each_segment_suffices() {
    for seed in 0..3 {
        let (network, packets) = long_to_one(0.6, seed);
        let counters = network.nodes[1].counters();
        let more = counters.receiver_innovative - packets;
        assert!(more <= 3, "seed {seed}: {more} packets more");
        let heard = counters.data_heard as f64 / packets as f64;
        assert!(heard < 1.1, "seed {seed}: {heard} heard for a packet");
    }
}

/// Goal: the source leaves out coded batches that no receiver lacks. Method: a link that loses nothing, and an object of three segments.
#[test]
fn without_losses_no_coded_batch_is_sent() {
    let (network, packets) = long_to_one(1.0, 1);
    let sent = network.nodes[0].counters().source_sent as f64 / packets as f64;
    assert!(sent < 1.05, "{sent} frames for a packet");
}

/// Goal: however long the source sends coded batches of one segment among those of the next, members go on in turns. Method: the source of an
/// object of three segments pauses for ten times as long as it has sent, after the first frame of such a batch.
#[test]
fn coded_batches_among_others_end_no_turns() {
    let mut settings = improved::Config::default();
    settings.settings.drained = Duration::from_millis(1);
    let config = Config::Improved(settings).with_batch(K, PAYLOAD);
    let links = graph(2, &[(0, 1, 0.5)]);
    let mut source = with_length(LONG, &config, &links, &[1], 1).swap_remove(0);
    source.offer(object(LONG, 1), &[1]).unwrap();
    // The first segment has 24 batches, and eight of the next one go before its coded ones.
    let coded = 24 + 8..24 + 16;
    let said = |sdu: &[u8]| {
        let frame = header::parse(sdu).unwrap();
        (frame.data.unwrap().batch, frame.head.plan.contend)
    };
    let (at, first) = loop {
        let (at, sdu) = next_frame(&mut source).unwrap();
        let (batch, contend) = said(&sdu);
        assert!(!contend && batch < coded.end);
        if coded.contains(&batch) {
            break (at, batch);
        }
    };
    source.handle_timeout(at + at.saturating_since(Instant::ZERO) * 10);
    let (_, sdu) = next_frame(&mut source).unwrap();
    assert_eq!(said(&sdu), (first, false));
}

/// A relay that fails for good in the middle of a long object: a receiver whose links are worse carries the rest.
#[test]
fn a_long_object_arrives_after_a_relay_has_failed() {
    let links = graph(4, &[(0, 1, 0.9), (1, 3, 0.9), (0, 2, 0.4), (2, 3, 0.4)]);
    let members = with_length(LONG, &config(), &links, &[2, 3], 4);
    let mut network = Network::new(links.clone(), 4, members);
    let file = object(LONG, 4);
    network.nodes[0].offer(file.clone(), &[2, 3]).unwrap();
    network.run(Duration::from_millis(150), |_| false);
    assert!(network.nodes[3].object().is_none());
    // Nodes without links take no part in anything.
    network.nodes[1] = nodes(&config(), &graph(4, &[]), 9).swap_remove(1);
    let limit = Duration::from_secs(1000);
    assert!(network.run(limit, |nodes| nodes[3].object().is_some()));
    assert_eq!(network.nodes[3].object(), Some(&file[..]));
}

/// A receiver that restarts begins again, in the middle of a transfer or after most of it.
#[test]
fn receivers_that_restart_in_turns_get_the_object() {
    let short = [(1, 30), (2, 100), (3, 300)].map(|(seed, after)| (seed, after, LEN));
    let long = [(4, 100), (5, 500), (6, 1000)].map(|(seed, after)| (seed, after, LONG));
    for (seed, after, len) in short.into_iter().chain(long) {
        let links = graph(3, &[(0, 1, 0.7), (1, 2, 0.6)]);
        let members = with_length(len, &config(), &links, &[2], seed);
        let mut network = Network::new(links.clone(), seed, members);
        let file = object(len, seed);
        network.nodes[0].offer(file.clone(), &[2]).unwrap();
        network.run(Duration::from_millis(after), |nodes| {
            nodes[2].object().is_some()
        });
        let fresh = with_length(len, &config(), &links, &[2], seed + 100);
        let fresh = fresh.into_iter().next_back().unwrap();
        network.nodes[2] = fresh;
        // What the application learns from a receiver that begins again.
        network.nodes[0].lost_by(2);
        let limit = Duration::from_secs(2000);
        assert!(
            network.run(limit, |nodes| nodes[2].object().is_some()),
            "seed {seed}"
        );
        assert_eq!(network.nodes[2].object(), Some(&file[..]));
    }
}

/// Goal: frames from outside neither panic nor spoil the count. Method: a receiver gets frames of batches beyond the last, of the last and
/// of others, with the outer code's flag and without, with random vectors and no content; and then a true transfer of the same object.
#[test]
fn hostile_batches_are_refused() {
    let links = graph(2, &[(0, 1, 0.9)]);
    let mut both = in_turns(&links, &[1], 5);
    let (mut receiver, mut source) = (both.pop().unwrap(), both.pop().unwrap());
    source.offer(object(LEN, 5), &[1]).unwrap();
    let (_, first) = next_frame(&mut source).unwrap();
    let head = header::parse(&first).unwrap().head;
    assert!(head.object.outer && head.object.all() == 6 + header::CODED);
    let mut random = Seed(5).stream(Purpose::Trial(3));
    for (outer, batches) in [
        (true, 6),
        (false, 6),
        (true, u32::MAX),
        (true, 1),
        (true, 70),
    ] {
        let mut object = head.object;
        (object.outer, object.batches) = (outer, batches);
        for batch in [0, 5, 6, 69, 70, 71, u32::MAX - 1, u32::MAX] {
            let repr = HeadRepr {
                slot: Some(u32::MAX),
                times: None,
                source: 0,
                object,
                plan: &head.plan,
                complete: &NodeSet::EMPTY,
                done: None,
                gone: None,
                urge: 0,
                nodes: 2,
                base: batch.min(object.all()),
                states: &[],
            };
            let mut sdu = vec![0; 300];
            let Some(open) = repr.emit_data(batch, PAYLOAD, &mut sdu) else {
                continue;
            };
            random.fill(open.vector);
            let len = repr.data_len(batch, PAYLOAD);
            hear(&mut receiver, Instant::from_millis(1), 0, &sdu[..len]);
            // Whatever it does next, it lives.
            next_frame(&mut receiver);
        }
    }
    assert!(receiver.object().is_none());
    let mut fed = 0;
    while receiver.object().is_none() {
        fed += 1;
        assert!(fed < 2000, "the receiver never completes");
        let (at, sdu) = next_frame(&mut source).expect("the source sends");
        hear(&mut receiver, at + Duration::from_millis(1), 0, &sdu);
    }
}
