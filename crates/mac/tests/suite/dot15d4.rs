//! 802.15.4 channel access against arithmetic: times to the microsecond, closed forms, hidden senders, sleepy leaves.

use std::collections::VecDeque;

use chappe_core::{
    Address, Class, Classes, Duration, Expect, Instant, LinkEvent, LinkNode, LinkSend, Mac,
    Outcome, OverMac, Purpose, RadioEvent, RadioNode, RadioRequest, Reception, Seed, Wake,
    contract,
};
use chappe_mac::dot15d4::{Config, Dot15d4, Level, SDU_MAX, Security, Sleep};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_wire::dot15d4::{Frame, Header, Kind, Node};

/// Sends what it is given, keeps what it hears.
#[derive(Default)]
struct Feeder {
    queue: VecDeque<(Address, usize)>,
    /// Refills the queue with this permanently.
    endless: Option<(Address, usize)>,
    sent: Vec<(u32, Outcome)>,
    received: Vec<(Instant, Vec<u8>)>,
    token: u32,
    expect: Expect,
}

impl LinkNode for Feeder {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        match event {
            LinkEvent::Received(arrival) => self.received.push((now, arrival.sdu.to_vec())),
            LinkEvent::Sent { token, outcome } => self.sent.push((token, outcome)),
        }
    }
    fn pending(&self) -> Classes {
        let some = !self.queue.is_empty() || self.endless.is_some();
        Classes::NONE.with_if(Class::Data, some)
    }
    fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let (to, len) = self.queue.pop_front().or(self.endless)?;
        self.token += 1;
        sdu[..len].fill(self.token as u8);
        Some(LinkSend {
            to,
            len,
            class: Class::Data,
            mode: None,
            token: self.token,
        })
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
    fn expects(&self) -> Expect {
        self.expect
    }
}

type Station = OverMac<Dot15d4, Feeder>;

fn station(config: Config, node: u16, seed: u64) -> Station {
    let random = Seed(seed).stream(Purpose::Node(u32::from(node)));
    OverMac::new(
        Dot15d4::new(config, Address::node(node), random),
        Feeder::default(),
    )
}

fn run(matrix: &Matrix, stations: Vec<Station>, seed: u64) -> Simulator<Station> {
    let world = World::new(Medium::matrix(matrix).unwrap());
    let nodes = stations.into_iter().map(Box::new).collect();
    Simulator::new(world, nodes, Seed(seed), ()).unwrap()
}

fn pair() -> Matrix {
    Matrix::silent(2).with_link(0, 1, 1.0)
}

/// Drains a station that stands alone; returns the transmission it asked for, its carrier idle.
fn drain(station: &mut Station, now: Instant, psdu: &mut [u8]) -> Option<(Instant, usize)> {
    let mut found = None;
    while let Some(request) = station.poll_radio(now, psdu) {
        match request {
            RadioRequest::Transmit(transmit) => found = Some((transmit.at, transmit.len)),
            RadioRequest::Sense(true) => {
                let (busy, since) = (false, Instant::ZERO);
                station.handle_radio(now, RadioEvent::Carrier { busy, since });
            }
            _ => {}
        }
    }
    found
}

fn received<'a>(psdu: &'a [u8], now: Instant) -> RadioEvent<'a> {
    RadioEvent::Received(Reception {
        psdu,
        started: now,
        mode: Config::MODE,
        power: None,
    })
}

/// 6.7.4.3: the acknowledgement begins exactly 192 us after the frame's end, with the frame's number.
#[test]
fn an_acknowledgement_leaves_after_the_turnaround() {
    let mut station = station(Config::STANDARD, 1, 1);
    let mut psdu = [0; 128];
    let now = Instant::from_micros(12_345);
    drain(&mut station, now, &mut psdu);
    let (to, from) = (Node::Short(1), Node::Short(2));
    let mut frame = [0; 12];
    Header::within(0xcafe, Kind::Data, to, from, 77)
        .emit(&mut frame)
        .unwrap();
    station.handle_radio(now, received(&frame, now));
    let (at, len) = drain(&mut station, now, &mut psdu).expect("an answer");
    assert_eq!(at, now + Duration::from_micros(192));
    assert_eq!(psdu[..len], [2, 0, 77]);
    assert_eq!(station.link.received.len(), 1);
    // The same frame again is acknowledged and not handed up; other networks and nodes are not answered.
    station.handle_radio(at, RadioEvent::Sent);
    station.handle_radio(at, received(&frame, at));
    assert!(drain(&mut station, at, &mut psdu).is_some());
    station.handle_radio(at, RadioEvent::Sent);
    assert_eq!(station.link.received.len(), 1);
    for (place, octet) in [(3, 0xbe), (5, 9)] {
        let mut other = frame;
        other[place] = octet;
        station.handle_radio(at, received(&other, at));
        assert_eq!(drain(&mut station, at, &mut psdu), None);
    }
}

/// Processing a frame takes longer than the turnaround: the radio has the acknowledgement before the frame is handed up. A
/// frame that cannot be acknowledged is handed up at once, and no frame is lost on a driver that does not drain.
#[test]
fn a_frame_is_handed_up_after_its_acknowledgement() {
    let mut station = station(Config::STANDARD, 1, 1);
    let mut psdu = [0; 128];
    let now = Instant::from_micros(12_345);
    drain(&mut station, now, &mut psdu);
    let frame = |to, sequence| {
        let mut frame = [0; 20];
        let header = Header::within(0xcafe, Kind::Data, to, Node::Short(2), sequence);
        let len = header.emit(&mut frame).unwrap();
        (frame, len + 8)
    };
    let handed_up = |station: &Station| station.link.received.len();
    let (mine, len) = frame(Node::Short(1), 7);
    station.handle_radio(now, received(&mine[..len], now));
    assert_eq!(handed_up(&station), 0, "before its acknowledgement");
    let first = station.poll_radio(now, &mut psdu);
    assert!(
        matches!(first, Some(RadioRequest::Transmit(_))),
        "{first:?}"
    );
    assert_eq!(psdu[..3], [2, 0, 7]);
    assert_eq!(
        handed_up(&station),
        0,
        "the radio has no acknowledgement yet"
    );
    drain(&mut station, now, &mut psdu);
    assert_eq!(handed_up(&station), 1);
    assert_eq!(station.link.received[0].1, mine[len - 8..len]);
    // A broadcast, and a second frame while the first acknowledgement waits.
    let (all, len) = frame(Node::Short(0xffff), 8);
    station.handle_radio(now, received(&all[..len], now));
    assert_eq!(handed_up(&station), 2);
    station.handle_radio(now, RadioEvent::Sent);
    for (sequence, known) in [(9, 2), (10, 4)] {
        let (mine, len) = frame(Node::Short(1), sequence);
        station.handle_radio(now, received(&mine[..len], now));
        assert_eq!(handed_up(&station), known);
    }
}

/// 6.2.5.1: load, a whole number of back-off periods below 2^BE, 128 us of assessment, 192 us of turnaround; after
/// a missing acknowledgement 864 us of patience, and a pause of at most d.
#[test]
fn every_step_of_an_attempt_takes_its_time() {
    let config = Config::HAMILTON;
    let us = Duration::from_micros;
    let mut seen = [0u32; 8];
    for seed in 0..400 {
        let mut station = station(config, 1, seed);
        let mut psdu = [0; 128];
        let begin = Instant::from_micros(777);
        station.link.queue.push_back((Address::node(2), 100));
        station.handle_timeout(begin);
        let mut found = drain(&mut station, begin, &mut psdu);
        let mut ended = begin;
        for attempt in 1..=4 {
            while found.is_none() {
                let at = station.poll_timeout().expect("a deadline").at;
                station.handle_timeout(at);
                found = drain(&mut station, at, &mut psdu);
            }
            let (at, len) = found.take().unwrap();
            let waited = at.saturating_since(ended).nanos();
            let fixed = (config.load + us(128 + 192)).nanos();
            if attempt == 1 {
                let periods = (waited - fixed) / 320_000;
                assert_eq!((waited - fixed) % 320_000, 0);
                seen[periods as usize] += 1;
            } else {
                let patience = us(864).nanos();
                let most = us(40_000 + 7 * 320).nanos();
                assert!((fixed..=fixed + most).contains(&(waited - patience)));
            }
            ended = at + Config::MODE.airtime(len + 2);
            station.handle_radio(ended, RadioEvent::Sent);
            assert_eq!(drain(&mut station, ended, &mut psdu), None);
        }
        let at = station.poll_timeout().expect("patience").at;
        assert_eq!(at, ended + us(864));
        station.handle_timeout(at);
        drain(&mut station, at, &mut psdu);
        assert_eq!(
            station.link.sent,
            [(1, Outcome::Failed { attempts: 4 })],
            "macMaxFrameRetries"
        );
    }
    assert!(seen.iter().all(|&times| times > 20), "{seen:?}");
}

/// One saturated sender: the mean cycle is arithmetic.
#[test]
fn a_lone_sender_is_arithmetic() {
    for (config, cycle) in [
        // 1120 + 128 + 192 + 4256 + 192 + 352 + 640 us; and the paper's 7200 us.
        (Config::STANDARD, 6880.0),
        (Config::HAMILTON, 7200.0),
    ] {
        let mut stations = vec![station(config, 0, 3), station(config, 1, 3)];
        stations[0].link.endless = Some((Address::node(1), SDU_MAX));
        let mut simulator = run(&pair(), stations, 3);
        simulator.run_until(AirTime::from_millis(60_000));
        let frames = simulator.node(1).link.received.len() as f64;
        let found = 60e6 / frames;
        assert!(
            (found / cycle - 1.0).abs() < 0.005,
            "{found} against {cycle} us"
        );
    }
}

/// A channel that is always busy: five assessments, mean back-offs of 3.5, 7.5 and three times 15.5 periods.
#[test]
fn a_busy_channel_is_given_up_after_five_assessments() {
    let (mut spent, trials) = (0.0, 2000);
    for seed in 0..trials {
        let mut station = station(Config::STANDARD, 1, seed);
        let mut psdu = [0; 128];
        let mut now = Instant::from_micros(5);
        station.link.queue.push_back((Address::node(2), 10));
        station.handle_timeout(now);
        while station.link.sent.is_empty() {
            while let Some(request) = station.poll_radio(now, &mut psdu) {
                if request == RadioRequest::Sense(true) {
                    let (busy, since) = (true, Instant::ZERO);
                    station.handle_radio(now, RadioEvent::Carrier { busy, since });
                }
                assert!(!matches!(request, RadioRequest::Transmit(_)));
            }
            if let Some(wake) = station.poll_timeout() {
                now = wake.at;
                station.handle_timeout(now);
            }
        }
        assert_eq!(station.mac.counters().busy, 5);
        assert_eq!(station.mac.counters().access_failures, 1);
        spent += now.as_secs_f64() * 1e6 - 5.0;
    }
    let mean = spent / trials as f64;
    let expected = (3.5 + 7.5 + 3.0 * 15.5) * 320.0 + 5.0 * 128.0;
    assert!(
        (mean / expected - 1.0).abs() < 0.02,
        "{mean} against {expected} us"
    );
}

/// Two stations that begin at one instant and hear each other collide if they draw the same number of periods,
/// and only then: the first's frame begins as the next one's assessment does. 1 in 8.
#[test]
fn simultaneous_starts_collide_one_time_in_eight() {
    let config = Config {
        retries: 0,
        ..Config::STANDARD
    };
    let matrix = Matrix::silent(3)
        .with_link(0, 1, 1.0)
        .with_link(0, 2, 1.0)
        .with_link(1, 2, 1.0);
    let (mut collided, trials) = (0, 1200);
    for seed in 0..trials {
        let mut stations: Vec<_> = (0..3).map(|i| station(config, i, seed)).collect();
        for sender in &mut stations[1..] {
            sender.link.queue.push_back((Address::node(0), 110));
        }
        let mut simulator = run(&matrix, stations, seed);
        simulator.run_until(AirTime::from_millis(100));
        // Both found the channel idle at once: neither heard the other begin.
        let idle = |i: usize| simulator.node(i).mac.counters().busy == 0;
        assert!(idle(1) || idle(2));
        if idle(1) && idle(2) {
            collided += 1;
            let failed =
                |i: usize| matches!(simulator.node(i).link.sent[0].1, Outcome::Failed { .. });
            assert!(failed(1) && failed(2));
        }
    }
    let share = f64::from(collided) / trials as f64;
    assert!((share - 0.125).abs() < 0.025, "{share}");
}

/// TCPlp 7.1: two saturated senders that cannot hear each other. Without a pause between attempts the frames that
/// have collided collide again; a pause of up to 40 ms lets nearly all of them through.
//= tcplp 7.1: a random delay between link retries keeps hidden terminals from colliding again
#[test]
fn a_pause_between_attempts_saves_hidden_senders() {
    let matrix = Matrix::silent(3).with_link(0, 1, 1.0).with_link(0, 2, 1.0);
    let lost = |d: u64| {
        let config = Config {
            retry_delay: Duration::from_millis(d),
            ..Config::HAMILTON
        };
        let mut stations: Vec<_> = (0..3).map(|i| station(config, i, 5)).collect();
        for sender in &mut stations[1..] {
            sender.link.queue.extend([(Address::node(0), 100); 200]);
        }
        let mut simulator = run(&matrix, stations, 5);
        simulator.run_until(AirTime::from_millis(60_000));
        let counters = |i: usize| *simulator.node(i).mac.counters();
        let (failed, acknowledged) = (1..3).fold((0, 0), |(f, a), i| {
            (f + counters(i).failed, a + counters(i).acknowledged)
        });
        assert_eq!(failed + acknowledged, 400);
        failed as f64 / 400.0
    };
    let (without, with) = (lost(0), lost(40));
    println!("hidden senders lose {without} without a pause, {with} with up to 40 ms");
    assert!(without > 0.25, "{without}");
    assert!(with < without / 4.0, "{with} against {without}");
}

fn family(sleep: Sleep, parent: Config, seed: u64) -> Simulator<Station> {
    let leaf = Config {
        sleep: Some(sleep),
        ..parent
    };
    let mut stations = vec![station(parent, 0, seed), station(leaf, 1, seed)];
    assert!(stations[0].mac.add_child(Address::node(1)));
    run(&pair(), stations, seed)
}

/// A sleeping leaf gets its frames when it asks, each with a request of its own, or in a burst after one.
#[test]
fn a_leaf_fetches_what_its_parent_holds() {
    for (burst, requests) in [(false, 2), (true, 1)] {
        let sleep = Sleep {
            base: Duration::from_secs(2),
            ..Sleep::tcplp(Address::node(0))
        };
        let parent = Config {
            burst,
            ..Config::HAMILTON
        };
        let mut simulator = family(sleep, parent, 4);
        simulator.run_until(AirTime::from_millis(500));
        simulator.with_node(0, |node, _| {
            node.link.queue.extend([(Address::node(1), 90); 2])
        });
        simulator.run_until(AirTime::from_millis(1900));
        assert!(simulator.node(1).link.received.is_empty(), "it sleeps");
        assert_eq!(simulator.node(0).link.pending(), Classes::NONE, "held");
        simulator.run_until(AirTime::from_millis(2200));
        assert_eq!(simulator.node(1).link.received.len(), 2);
        assert_eq!(simulator.node(1).mac.counters().requests_sent, requests);
        assert_eq!(simulator.node(0).link.sent.len(), 2);
        // A duty cycle: two or three exchanges of a few milliseconds in 2.2 s.
        let on = simulator.node(1).mac.radio_on(Instant::from_millis(2200));
        assert!(on < Duration::from_millis(40), "{on}");
        assert!(on > Duration::from_millis(8), "{on}");
    }
}

/// A parent can be set to know more children than it has places for frames: none of them gets a frame while it sleeps.
#[test]
fn a_parent_knows_more_children_than_it_holds_frames() {
    let random = || Seed(3).stream(Purpose::Node(0));
    let mut usual: Dot15d4<2> = Dot15d4::new(Config::HAMILTON, Address::node(0), random());
    let known = (1..=3).map(|child| usual.add_child(Address::node(child)));
    assert_eq!(known.collect::<Vec<_>>(), [true, true, false]);
    let mut large: Dot15d4<2, 3> = Dot15d4::new(Config::HAMILTON, Address::node(0), random());
    let known = (1..=4).map(|child| large.add_child(Address::node(child)));
    assert_eq!(known.collect::<Vec<_>>(), [true, true, true, false]);
}

/// TCPlp 8.1.1: while the transport expects something the leaf asks every 100 ms; then it falls asleep again.
//= tcplp 8.1.1: the transport's state shortens the sleep interval
#[test]
fn what_is_expected_decides_how_often_a_leaf_asks() {
    let mut simulator = family(Sleep::tcplp(Address::node(0)), Config::HAMILTON, 6);
    let requests = |simulator: &Simulator<Station>| simulator.node(1).mac.counters().requests_sent;
    simulator.run_until(AirTime::from_millis(200_000));
    assert_eq!(requests(&simulator), 0, "four minutes are not over");
    simulator.with_node(1, |node, _| node.link.expect = Expect::Answer);
    simulator.run_until(AirTime::from_millis(210_000));
    let expecting = requests(&simulator);
    assert!((90..=100).contains(&expecting), "{expecting}");
    simulator.with_node(1, |node, _| node.link.expect = Expect::Nothing);
    simulator.run_until(AirTime::from_millis(440_000));
    assert_eq!(requests(&simulator), expecting, "idle again");
    simulator.run_until(AirTime::from_millis(452_000));
    assert_eq!(requests(&simulator), expecting + 1, "four minutes later");
}

/// The interval doubles with each request in vain if `growth` says so, and is short again after a frame.
#[test]
fn requests_in_vain_back_off() {
    let sleep = Sleep {
        growth: 2,
        ..Sleep::tcplp(Address::node(0))
    };
    let mut simulator = family(sleep, Config::HAMILTON, 6);
    simulator.with_node(1, |node, _| node.link.expect = Expect::Answer);
    simulator.run_until(AirTime::from_millis(13_000));
    // 0.1 + 0.2 + .. + 6.4 s = 12.7 s.
    assert_eq!(simulator.node(1).mac.counters().requests_sent, 7);
    // What is sent now expects an answer of its own: 0.1, 0.2, 0.4, 0.8 s.
    simulator.with_node(1, |node, _| {
        node.link.queue.push_back((Address::node(0), 50))
    });
    simulator.run_until(AirTime::from_millis(14_700));
    assert_eq!(simulator.node(1).mac.counters().requests_sent, 11);
}

/// A request that is not acknowledged is repeated after a second, up to four times; then the leaf sleeps as usual.
#[test]
fn lost_requests_are_repeated_soon() {
    let sleep = Sleep {
        base: Duration::from_secs(60),
        ..Sleep::tcplp(Address::node(0))
    };
    let parent = Config {
        retries: 0,
        ..Config::HAMILTON
    };
    let leaf = Config {
        sleep: Some(sleep),
        ..parent
    };
    let deaf = Matrix::silent(2);
    let stations = vec![station(parent, 0, 6), station(leaf, 1, 6)];
    let mut simulator = run(&deaf, stations, 6);
    let mut asked = |seconds: u64| {
        simulator.run_until(AirTime::from_secs(seconds));
        simulator.node(1).mac.counters().requests_sent
    };
    assert_eq!([59, 61, 63, 70, 120].map(&mut asked), [0, 1, 3, 5, 5]);
    assert_eq!(asked(126), 6, "a minute after the last one");
}

/// A leaf that sends one frame is awake for loading, back-off, assessment, turnaround, the frame, and the wait for the
/// acknowledgement; it hears and sends for all but the first two.
#[test]
fn a_leaf_is_awake_longer_than_it_listens() {
    let mut simulator = family(Sleep::tcplp(Address::node(0)), Config::HAMILTON, 8);
    simulator.with_node(1, |node, _| {
        node.link.queue.push_back((Address::node(0), 116))
    });
    simulator.run_until(AirTime::from_millis(100));
    let (mac, now) = (&simulator.node(1).mac, Instant::from_millis(100));
    assert_eq!(simulator.node(1).link.sent.len(), 1);
    let (on, awake) = (mac.radio_on(now), mac.radio_awake(now));
    let us = Duration::from_micros;
    // 128 + 192 + 4256 + 192 + 352.
    assert_eq!(on, us(5120));
    let more = awake.saturating_sub(on);
    assert!(more >= us(960) && more <= us(960 + 7 * 320), "{more}");
    assert_eq!(
        (more.nanos() / 1000 - 960) % 320,
        0,
        "whole back-off periods"
    );
}

/// TCPlp 8.2.3: a parent whose frame in hand is being tried again and again answers a child in between.
//= tcplp 8.2.3: an indirect message goes before the further attempts of the frame in hand
#[test]
fn a_child_that_asks_comes_before_further_attempts() {
    let waited = |preempt: bool| {
        let parent = Config {
            preempt,
            retries: 60,
            ..Config::HAMILTON
        };
        let sleep = Sleep {
            base: Duration::from_millis(700),
            ..Sleep::tcplp(Address::node(0))
        };
        let mut simulator = family(sleep, parent, 8);
        simulator.with_node(0, |node, _| {
            // For the child, then for a node that does not exist.
            node.link.queue.push_back((Address::node(1), 60));
            node.link.queue.push_back((Address::node(9), 60));
        });
        simulator.run_until(AirTime::from_millis(900));
        simulator.node(1).link.received.len()
    };
    assert_eq!(waited(true), 1);
    assert_eq!(waited(false), 0);
}

/// What a child never asks for is given up, and said so.
#[test]
fn what_is_not_fetched_expires() {
    let sleep = Sleep::tcplp(Address::node(0));
    let mut simulator = family(sleep, Config::STANDARD, 2);
    simulator.with_node(0, |node, _| {
        node.link.queue.extend([(Address::node(1), 60); 5])
    });
    simulator.run_until(AirTime::from_millis(9_000));
    let parent = simulator.node(0);
    assert_eq!(
        parent.link.sent.len(),
        5,
        "four places, the fifth refused at once"
    );
    assert_eq!(parent.mac.counters().expired, 4);
}

/// Secured stations talk, and a stranger without the key is not heard; nothing of the payload is in the clear.
#[test]
fn secured_stations_refuse_strangers() {
    let key = |first| Security::new([first; 16], 1, Level::EncMic32, 0);
    let mut stations: Vec<_> = (0..3).map(|i| station(Config::STANDARD, i, 1)).collect();
    stations[0].mac.secure(key(1));
    stations[1].mac.secure(key(1));
    stations[2].mac.secure(key(2));
    for sender in &mut stations[1..] {
        sender.link.queue.extend([(Address::node(0), 80); 10]);
    }
    let matrix = Matrix::silent(3)
        .with_link(0, 1, 1.0)
        .with_link(0, 2, 1.0)
        .with_link(1, 2, 1.0);
    let mut simulator = run(&matrix, stations, 1);
    simulator.run_until(AirTime::from_millis(3_000));
    let hearer = simulator.node(0);
    assert_eq!(hearer.link.received.len(), 10);
    assert!(hearer.link.received.iter().all(|(_, sdu)| sdu.len() == 80));
    let refused = hearer
        .mac
        .counters()
        .drops
        .of(chappe_core::DropReason::Unauthentic);
    assert_eq!(refused, simulator.node(2).mac.counters().acknowledged);
    assert!(refused > 5);
}

fn check(config: Config, secured: bool) {
    contract::check_radio(150, |seed| {
        let mut station = station(config, 1, seed);
        station.mac.trace(true);
        station.mac.add_child(Address::node(2));
        station.link.endless = Some((Address::node(2 + (seed % 3) as u16), 40));
        station.link.expect = if seed % 2 == 0 {
            Expect::Answer
        } else {
            Expect::Nothing
        };
        if secured {
            station
                .mac
                .secure(Security::new([1; 16], 1, Level::EncMic64, 0));
        }
        // A driver lets the layers look at each other first.
        station.handle_timeout(Instant::from_millis(1));
        station
    });
}

#[test]
fn stations_keep_the_promises_of_a_node() {
    check(Config::STANDARD, false);
    check(Config::HAMILTON, true);
    check(
        Config {
            sleep: Some(Sleep::tcplp(Address::node(2))),
            burst: true,
            ..Config::HAMILTON
        },
        false,
    );
}

/// Configurations that make no sense must still not panic.
#[test]
fn absurd_configurations_keep_the_promises() {
    let zero = Duration::ZERO;
    check(
        Config {
            min_be: 200,
            max_be: 0,
            max_backoffs: 0,
            retries: 0,
            unit_backoff: zero,
            cca_time: zero,
            turnaround: zero,
            ack_wait: Duration::MAX,
            retry_delay: Duration::MAX,
            load: zero,
            indirect_life: zero,
            data_wait: zero,
            sleep: Some(Sleep {
                parent: Address::BROADCAST,
                base: Duration::MAX,
                short: Duration::from_nanos(1),
                growth: 0,
            }),
            ..Config::STANDARD
        },
        true,
    );
}

/// Frames carry what the caps promise, in both address forms.
#[test]
fn the_largest_frame_has_127_octets() {
    for (short_addresses, largest) in [(true, 116), (false, 104)] {
        let config = Config {
            short_addresses,
            ..Config::STANDARD
        };
        assert_eq!(config.caps(0).frame_max, largest);
        let mut stations = vec![station(config, 0, 3), station(config, 1, 3)];
        stations[0]
            .link
            .queue
            .push_back((Address::node(1), largest));
        let mut simulator = run(&pair(), stations, 3);
        simulator.run_until(AirTime::from_millis(100));
        assert_eq!(simulator.node(1).link.received[0].1.len(), largest);
    }
    let mut psdu = [0; 12];
    Header::within(1, Kind::Data, Node::Extended(1), Node::Extended(2), 1)
        .emit(&mut psdu)
        .unwrap_err();
    assert!(Frame::new(&psdu).is_ok() || psdu[0] == 0x61);
}

/// The contract with `OverMac`: `link_changed` follows every event, so a station at rest begins at once.
#[test]
fn a_station_at_rest_begins_at_once() {
    let mut station = station(Config::STANDARD, 1, 1);
    let mut psdu = [0; 128];
    drain(&mut station, Instant::ZERO, &mut psdu);
    assert_eq!(station.poll_timeout(), None);
    station.link.queue.push_back((Address::BROADCAST, 5));
    let now = Instant::from_micros(9);
    station.mac.link_changed(now, &station.link);
    drain(&mut station, now, &mut psdu);
    let wake = station.poll_timeout().expect("contention");
    assert!(["back-off", "channel assessed"].contains(&wake.why));
}
