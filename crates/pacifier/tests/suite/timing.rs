//! Goal: the improved variant measures which frames its neighbours' reports cover. Method: single nodes that get frames by
//! hand.

use crate::common;

use std::sync::Arc;

use chappe_core::{Classes, Instant, LinkNode};
use chappe_pacifier::improved;
use chappe_pacifier::improved::header::{self, HeadRepr, Times};
use chappe_pacifier::{Config, Links, Node, NodeSet};
use common::{graph, hear, nodes, object};

const K: usize = 4;
const PAYLOAD: usize = 20;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The frames that a node would send at once.
fn frames(node: &mut Node, now: Instant, most: usize) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    let mut sdu = vec![0; 2304];
    while sent.len() < most
        && let Some(send) = node.poll_link(now, Classes::ALL, &mut sdu)
    {
        sent.push(sdu[..send.len].to_vec());
    }
    sent
}

/// The batches of the data frames among them.
fn batches(frames: &[Vec<u8>]) -> Vec<u32> {
    let data = frames
        .iter()
        .filter_map(|sdu| header::parse(sdu).unwrap().data);
    data.map(|coded| coded.batch).collect()
}

/// A source that measures, and a report on its first batch from a receiver with such stamps.
fn timed(links: &Arc<Links>) -> (Node, impl Fn(Times, u8) -> Vec<u8>) {
    let mut config = improved::Config::default();
    config.settings.timed = true;
    let config = Config::Improved(config).with_batch(K, PAYLOAD);
    let mut source = nodes(&config, links, 1).remove(0);
    source.offer(object(16 * K * PAYLOAD, 1), &[1]).unwrap();
    let first = frames(&mut source, ms(0), 1).remove(0);
    let report = move |times, rank| {
        let head = header::parse(&first).unwrap().head;
        let repr = HeadRepr {
            slot: None,
            times: Some(times),
            source: 0,
            object: head.object,
            plan: &head.plan,
            complete: &NodeSet::EMPTY,
            done: None,
            gone: None,
            urge: 0,
            nodes: 2,
            base: 0,
            states: &[rank],
        };
        let mut sdu = vec![0; 300];
        let len = repr.emit_report(&mut sdu).unwrap();
        sdu.truncate(len);
        sdu
    };
    (source, report)
}

/// A frame echoes the latest stamp of a neighbour, plus the time since; stamps are quarters of a millisecond.
#[test]
fn stamps_are_echoed() {
    let links = graph(2, &[(0, 1, 0.9)]);
    let (mut source, report) = timed(&links);
    let times = |sdu: &[u8]| header::parse(sdu).unwrap().head.times.unwrap();
    let first = times(&frames(&mut source, ms(2), 1)[0]);
    assert_eq!((first.stamp, first.of), (8, 0), "nobody to echo yet");
    let (stamp, of, echo) = (65_530, 0, 0);
    hear(&mut source, ms(7), 1, &report(Times { stamp, of, echo }, 0));
    let then = times(&frames(&mut source, ms(10), 1)[0]);
    let (stamp, of, echo) = (40, 1, 6);
    assert_eq!(then, Times { stamp, of, echo });
}

/// The source ignores a report that a later one has overtaken.
#[test]
fn overtaken_reports_are_ignored() {
    let links = graph(2, &[(0, 1, 1.0)]);
    let (of, echo) = (0, 4000);
    // After a second without frames nothing is in flight.
    let served = |first: (u16, u8), second: (u16, u8)| {
        let (mut source, report) = timed(&links);
        frames(&mut source, ms(0), 1000);
        for (stamp, rank) in [first, second] {
            let words = report(Times { stamp, of, echo }, rank);
            hear(&mut source, ms(1000), 1, &words);
        }
        let sent = frames(&mut source, ms(1000), 1000);
        batches(&sent).iter().filter(|&&batch| batch == 0).count()
    };
    assert_eq!(served((100, 1), (101, 3)), 1);
    assert_eq!(served((101, 3), (100, 1)), 1, "overtaken");
    assert_eq!(served((9000, 3), (100, 1)), 3, "restarted");
}

/// A report does not cover frames younger than those which it echoes: the source does not resend them.
#[test]
fn frames_in_flight_are_not_resent() {
    let links = graph(2, &[(0, 1, 1.0)]);
    for late in [5, 50, 400] {
        let (mut source, report) = timed(&links);
        let at = |millis: u64| (4 * millis) as u16;
        // The age of these reports gives the lag.
        for step in 1..=20 {
            let now = 500 + 10 * step;
            let (stamp, of, echo) = (at(now - late / 2), 0, at(now - late));
            hear(
                &mut source,
                ms(now),
                1,
                &report(Times { stamp, of, echo }, 4),
            );
        }
        let rest = frames(&mut source, ms(1000), 1000).len();
        assert_eq!(rest, 15 * K);
        let mut sent_after = |late_by| {
            let now = 1000 + late_by;
            let (stamp, of, echo) = (at(now - late / 2), 0, at(now - late));
            hear(
                &mut source,
                ms(now),
                1,
                &report(Times { stamp, of, echo }, 4),
            );
            frames(&mut source, ms(now), 1000).len()
        };
        assert_eq!(sent_after(late / 2), 0, "{late} ms: all are under way");
        assert_eq!(sent_after(2 * late), 15 * K, "{late} ms: all are lost");
    }
}
