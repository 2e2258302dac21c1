//! Goal: the gateway learns how every node hears every other one. Method: an ideal synchronous air whose links differ by channel;
//! what is collected is compared with those links.

use crate::common;

use chappe_core::{Channel, Duration, RadioEvent, RadioNode, Reception};
use chappe_p3::survey::{Heard, Member, Survey, Surveyor};
use chappe_p3::timing::MODE;
use chappe_p3::{Config, Key, Relay};
use common::{CAPS, Links, Net, Node};

const KEY: Key = Key::new(*b"not a secret key");
const BEACONS: u8 = 6;

/// Node 0 is the gateway. All nodes have numbers as their places.
fn net(nodes: u16, hops: u8, prr: common::Prr, seed: u64) -> Net {
    let config = Config::improved(Some(KEY));
    let whole = (nodes, hops, BEACONS);
    let gateway = Surveyor::new(config.clone(), &CAPS, 0, whole, Links::default()).unwrap();
    let member = |number| {
        let relay = Relay::new(config.clone(), &CAPS, number).unwrap();
        let survey = Survey::new(config.clone(), &CAPS, number).unwrap();
        Node::Member(Member::new(relay, survey, |relay| {
            relay.state() == "waking"
        }))
    };
    let mut all = vec![Node::Surveyor(gateway)];
    all.extend((1..nodes).map(member));
    Net::new(all, prr, seed)
}

fn measure(net: &mut Net, session: u32) -> Vec<(u16, Heard)> {
    let now = net.clock(0);
    net.surveyor(0).start(session, now);
    net.drain(0);
    net.run(Duration::from_secs(120), |net| net.surveyor(0).is_done());
    assert!(net.surveyor(0).is_done());
    net.surveyor(0).ledger().0.clone()
}

/// A line of five nodes. The link between 1 and 2 works on channels 15 and 26 only, that from 3 to 4 one way on channel 20.
fn line(channel: Channel, from: usize, to: usize) -> f64 {
    let good = match (from.min(to), from.max(to)) {
        (1, 2) => matches!(channel.0, 15 | 26),
        (3, 4) if channel.0 == 20 => from < to,
        (low, high) => high - low == 1,
    };
    f64::from(u8::from(good))
}

#[test]
fn every_link_is_counted_on_every_channel() {
    let mut net = net(5, 4, Box::new(line), 1);
    let collected = measure(&mut net, 1);
    let channels = [15, 20, 25, 26].map(Channel);
    for from in 0..5 {
        for to in (0..5).filter(|&to| to != from) {
            let expected = channels.map(|channel| BEACONS * line(channel, from, to) as u8);
            let mut rows = collected
                .iter()
                .filter(|(at, heard)| usize::from(*at) == to && usize::from(heard.node) == from);
            let told = rows.next().map_or([0; 4], |(_, heard)| heard.beacons);
            assert_eq!(told, expected, "{from} at {to}");
            assert_eq!(rows.next(), None, "told once");
        }
    }
    assert_eq!(net.surveyor(0).silent(), 0);
    // The formula of the planner: 10 ms for a call, six beacons on four channels, a report by another flood.
    let took = net.now as f64 / 1e9 / 5.0;
    assert!(took < 0.16, "{took} s a node");
}

/// Twenty nodes in one room have more neighbours than a report has room for. Links lose a third of all frames; beacons and powers
/// are binomial, and hardly a report is missing.
#[test]
fn lossy_links_are_estimated_and_long_reports_come_in_parts() {
    let mut net = net(20, 2, Box::new(|_, _, _| 0.66), 2);
    let collected = measure(&mut net, 1);
    let (rows, counts) = collected
        .iter()
        .fold((0u32, 0u32), |(rows, sum), (_, heard)| {
            (
                rows + 1,
                sum + heard
                    .beacons
                    .iter()
                    .map(|&count| u32::from(count))
                    .sum::<u32>(),
            )
        });
    assert!(
        net.surveyor(0).silent() <= 1,
        "{} silent",
        net.surveyor(0).silent()
    );
    assert!(rows >= 18 * 19, "{rows}");
    // A node that missed a call hears none of its beacons; synchronous copies make that rare.
    let mean = f64::from(counts) / f64::from(rows) / 24.0;
    assert!((0.63..0.69).contains(&mean), "{mean}");
}

/// A second measurement forgets the first one, and a session that is over cannot be replayed.
#[test]
fn sessions_follow_each_other() {
    let mut net = net(3, 2, Box::new(line), 3);
    let first = measure(&mut net, 1).len();
    let log = net.log.borrow().clone();
    let both = measure(&mut net, 2);
    assert_eq!(both.len(), first * 2);
    assert!(
        both.iter()
            .all(|(_, heard)| heard.beacons.iter().all(|&count| count <= BEACONS))
    );
    // Every frame of both sessions again, at a node that has seen them.
    let config = Config::improved(Some(KEY));
    let mut survey = Survey::new(config, &CAPS, 1).unwrap();
    // The first call of the second session.
    let newer = net.log.borrow()[log.len()].psdu.clone();
    let hear = |survey: &mut Survey, psdu: &[u8], at: Duration| {
        let started = chappe_core::Instant::ZERO + at;
        let heard = Reception {
            psdu,
            started,
            mode: MODE,
            power: None,
        };
        survey.handle_radio(
            started + Duration::from_millis(5),
            RadioEvent::Received(heard),
        );
        let mut room = [0; 127];
        while survey.poll_radio(started, &mut room).is_some() {}
        // What it asked to send has left.
        survey.handle_radio(started + Duration::from_millis(10), RadioEvent::Sent);
    };
    hear(&mut survey, &newer, Duration::from_secs(1));
    assert!(!survey.is_idle());
    survey.handle_timeout(chappe_core::Instant::from_millis(9_000));
    for (at, flight) in log.iter().enumerate() {
        hear(
            &mut survey,
            &flight.psdu,
            Duration::from_secs(10 + at as u64),
        );
        assert!(survey.is_idle(), "{:02x?}", flight.psdu);
    }
}

/// Bent, cut and random frames do nothing, at any time.
#[test]
fn hostile_frames_change_nothing() {
    let mut net = net(4, 3, Box::new(line), 4);
    let mut random = chappe_core::Seed(5).stream(chappe_core::Purpose::Traffic(0));
    let now = net.clock(0);
    net.surveyor(0).start(1, now);
    net.drain(0);
    for round in 0..400u64 {
        let log = net.log.clone();
        let known = log
            .borrow()
            .last()
            .map(|flight| flight.psdu.clone())
            .unwrap_or_default();
        let psdu = match round % 3 {
            0 => known[..known.len().min(random.below(126) as usize)].to_vec(),
            1 => (0..random.below(126))
                .map(|_| random.below(256) as u8)
                .collect(),
            _ => {
                let mut bent = known.clone();
                if let Some(octet) = bent.get_mut(random.below(125) as usize % known.len().max(1)) {
                    *octet ^= 1 << random.below(8);
                }
                bent
            }
        };
        let started = chappe_core::Instant::ZERO + Duration::from_nanos(net.now);
        if let Some(Node::Member(member)) = net.node(2) {
            let heard = Reception {
                psdu: &psdu,
                started,
                mode: MODE,
                power: None,
            };
            let before = member.survey().heard().count();
            member.handle_radio(started, RadioEvent::Received(heard));
            assert_eq!(member.survey().heard().count(), before);
        }
        net.drain(2);
        net.run(Duration::from_millis(3), |_| false);
    }
    net.run(Duration::from_secs(20), |net| net.surveyor(0).is_done());
    assert!(net.surveyor(0).is_done());
}
