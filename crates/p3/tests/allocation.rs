//! Goal: the machines do not allocate. Method: an allocator that counts, while nodes are created, hear all frames of a
//! transfer, and answer.

#[path = "suite/common/mod.rs"]
mod common;

use chappe_core::{Duration, Instant, RadioEvent, RadioNode, RadioRequest, Reception};
use chappe_p3::timing::{MODE, airtime};
use chappe_p3::{Config, Destination, Lent, Relay, Source};
use chappe_testkit::allocation::{self, Counting};
use common::{CAPS, DESTINATION, SOURCE, Setting, object};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Plays frames at the times of the air; what the node sends is over after its airtime. Returns what it sent.
fn play(node: &mut impl RadioNode, frames: &[(u64, Vec<u8>)]) -> usize {
    let (mut psdu, mut sent) = ([0; 127], 0);
    let mut over: Option<Instant> = None;
    let mut drain = |node: &mut dyn RadioNode, now, over: &mut Option<Instant>| {
        while let Some(request) = node.poll_radio(now, &mut psdu) {
            if let RadioRequest::Transmit(transmit) = request {
                *over = Some(transmit.at + airtime(transmit.len));
                sent += 1;
            }
        }
    };
    drain(node, Instant::ZERO, &mut over);
    for (at, frame) in frames {
        let at = Instant::from_nanos(*at);
        while let Some(now) = over.take_if(|end| *end <= at) {
            node.handle_radio(now, RadioEvent::Sent);
            drain(node, now, &mut over);
        }
        if node.poll_timeout().is_some_and(|wake| wake.at <= at) {
            node.handle_timeout(at);
            drain(node, at, &mut over);
        }
        let started = at.saturating_before(airtime(frame.len()));
        let (mode, power) = (MODE, None);
        let heard = Reception {
            psdu: frame,
            started,
            mode,
            power,
        };
        node.handle_radio(at, RadioEvent::Received(heard));
        drain(node, at, &mut over);
    }
    sent
}

#[test]
fn nodes_do_not_allocate() {
    let setting = Setting {
        prr: |_, _, _| 0.9,
        ..Setting::default()
    };
    let object = object(20_000, 1);
    let mut net = setting.net(object);
    common::start(&mut net, setting.plan(1), None);
    net.run(Duration::from_secs(2), |_| false);
    let log = net.log.borrow().clone();
    let heard_by = |node: usize| -> Vec<(u64, Vec<u8>)> {
        let near = |from| setting.stage_of(from).abs_diff(setting.stage_of(node)) == 1;
        let heard = log.iter().filter(|flight| near(flight.from));
        heard
            .map(|flight| (flight.end, flight.psdu.clone()))
            .collect()
    };
    let (source, relay, destination) = (heard_by(SOURCE), heard_by(2), heard_by(DESTINATION));
    let plan = setting.plan(1);
    let mut memory = vec![0; 20_060];
    let before = allocation::count();
    assert!(before > 0, "the counter counts");

    let config = Config::default;
    let mut node = Relay::new(config(), &CAPS, 2).unwrap();
    let relayed = play(&mut node, &relay);
    let mut node = Source::new(config(), &CAPS, SOURCE as u16, object).unwrap();
    let offered = play(&mut node, &source);
    let mut node = Destination::new(config(), &CAPS, 0, Lent::new(&mut memory)).unwrap();
    node.start(plan, None, Instant::ZERO).unwrap();
    let answered = play(&mut node, &destination);
    let complete = node.store().object() == Some(object);

    assert_eq!(allocation::count(), before);
    assert!(
        relayed > 50 && offered > 100 && answered >= 4,
        "{relayed} {offered} {answered}"
    );
    assert!(complete, "{:?}", node.progress());
    println!(
        "octets of memory: relay {}, source {}, destination {}",
        size_of::<Relay>(),
        size_of::<Source<&[u8]>>(),
        size_of::<Destination<Lent<'_>>>()
    );
}
