//! The driver on virtual interfaces: broadcasts, confirmed unicasts, forged frames, a dead interface, signals.
//!
//! Goal: the behaviour that the crate page describes. Method: two or three hosts on a bridge, a thread for each, real
//! sockets, losses injected from a seed. Skipped if the kernel forbids namespaces.

mod common;

use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use chappe_core::{Address, Bitrate, DropReason, Duration, Outcome, Purpose, Seed};
use chappe_live::{Carrier, Config, Ending, Group, Live, Loss, Pace, Port, Statistics};
use chappe_sys::{Links, udp};
use common::{Network, Note};

fn main() {
    if std::env::args().any(|argument| argument == "--serve") {
        return serve();
    }
    common::run(&[
        ("broadcasts_and_unicasts_over_udp", || {
            exchange(Carrier::UDP)
        }),
        ("broadcasts_and_unicasts_over_packets", || {
            exchange(Carrier::PACKET)
        }),
        ("over_ipv4_multicast", || {
            exchange(Carrier::Udp {
                port: 1795,
                group: Group::Ipv4([224, 0, 0, 200].into()),
            });
        }),
        ("keys_may_leave_as_broadcasts", keys_may_leave_as_broadcasts),
        (
            "an_acknowledged_unicast_arrived_once",
            an_acknowledged_unicast_arrived_once,
        ),
        (
            "a_unicast_to_an_absent_node_fails",
            a_unicast_to_an_absent_node_fails,
        ),
        (
            "foreign_frames_are_only_counted",
            foreign_frames_are_only_counted,
        ),
        (
            "an_interface_that_goes_down_comes_back",
            an_interface_that_goes_down_comes_back,
        ),
        (
            "a_member_that_always_sends_reads_what_arrives",
            a_member_that_always_sends_reads_what_arrives,
        ),
        (
            "a_slow_receiver_slows_its_sender",
            a_slow_receiver_slows_its_sender,
        ),
        (
            "a_member_that_runs_twice_has_two_lives",
            a_member_that_runs_twice_has_two_lives,
        ),
        ("signals_end_the_run", signals_end_the_run),
    ]);
}

fn config() -> Config {
    Config {
        signals: false,
        observe_every: Duration::from_millis(5),
        ..Config::new(Pace::Rate(Bitrate(50_000_000)), common::member(0))
    }
}

/// Drives one node per port, each on its own thread, until all are `done` at the same time or 20 s have passed.
fn drive(
    ends: Vec<(Config, Port, Note)>,
    done: impl Fn(Address, &Note) -> bool + Sync,
) -> Vec<(Note, Statistics)> {
    let (count, finished) = (ends.len(), AtomicUsize::new(0));
    thread::scope(|scope| {
        let run = |(config, port, note): (Config, Port, Note)| {
            let (done, finished) = (&done, &finished);
            move || {
                let me = port.address();
                let note = Note { held: true, ..note };
                let node = me.node_number().unwrap();
                let config = Config {
                    membership: common::member(node),
                    ..config
                };
                let mut live = Live::new(config, port, Box::new(note)).unwrap();
                let (mut counted, limit) = (false, Duration::from_secs(20));
                let ending = live.run(|note, now, statistics| {
                    // Frames sent before all nodes trust each other are lost.
                    let believed = statistics.neighbours.iter().filter(|n| n.to.is_some());
                    note.held &= believed.count() + 1 < count;
                    if !counted && done(me, note) {
                        (counted, _) = (true, finished.fetch_add(1, Ordering::SeqCst));
                    }
                    let over = finished.load(Ordering::SeqCst) == count
                        || now.as_secs_f64() > limit.as_secs_f64();
                    if over {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                assert_eq!(ending.unwrap(), Ending::Asked);
                let statistics = live.statistics().clone();
                (*live.into_node(), statistics)
            }
        };
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(run(end))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Goal: a member that may send more than its host can does not starve its own receive queue: it would not hear what its
/// neighbours have, and repeat all of it. Method: one host sends without a pace, another one 20,000 frames at 30 Mbit/s. (The
/// first once sent up to 128 frames for each frame that it read, and its queue lost most of them.)
fn a_member_that_always_sends_reads_what_arrives() {
    const FRAMES: usize = 20_000;
    let network = Network::new(2);
    let frame = |len| (Address::BROADCAST, vec![7; len]);
    let busy = Note {
        to_send: [frame(1300)].into(),
        endless: true,
        ..Note::default()
    };
    let other = Note {
        to_send: std::iter::repeat_n(frame(200), FRAMES).collect(),
        ..Note::default()
    };
    let unpaced = Config {
        pace: Pace::Unlimited,
        ..config()
    };
    let paced = Config {
        pace: Pace::Rate(Bitrate(30_000_000)),
        ..config()
    };
    let ends = vec![
        (unpaced, network.port(0, Carrier::UDP), busy),
        (paced, network.port(1, Carrier::UDP), other),
    ];
    // The busy one is done with the other: what it has not read by then is behind.
    let ends = drive(ends, |me, note| {
        me == Address::node(0) || note.outcomes.len() >= FRAMES
    });
    let heard = ends[0].0.heard.len();
    println!("  {heard} of {FRAMES} heard, {} sent", ends[0].0.sent);
    assert!(heard * 10 > FRAMES * 9, "{heard} of {FRAMES}");
}

/// Goal: a host that cannot read what arrives is not sent several times what it can. Method: it takes a millisecond for each
/// frame, and a sender's ceiling is ten times that; it marks its frames, and the sender slows down. (Without that, its queue of
/// some thousand frames lost nine of ten from then on.)
fn a_slow_receiver_slows_its_sender() {
    const FRAMES: usize = 5000;
    let network = Network::new(2);
    let sender = Note {
        to_send: std::iter::repeat_n((Address::BROADCAST, vec![7; 1200]), FRAMES).collect(),
        ..Note::default()
    };
    let slow = Note {
        handling: std::time::Duration::from_millis(1),
        ..Note::default()
    };
    let fast = Config {
        pace: Pace::Rate(Bitrate(100_000_000)),
        ..config()
    };
    let ends = vec![
        (fast, network.port(0, Carrier::UDP), sender),
        (config(), network.port(1, Carrier::UDP), slow),
    ];
    let ends = drive(ends, |me, note| {
        me == Address::node(1) || note.outcomes.len() >= FRAMES
    });
    let (sent, heard) = (ends[0].0.sent as usize, ends[1].0.heard.len());
    let (slowed, lost) = (ends[0].1.rates.0, ends[1].1.lost_in_queue);
    println!("  {heard} of {sent} heard, {lost} lost in the queue; least rate {slowed} bit/s");
    assert!(slowed < 20_000_000, "{slowed}");
    assert!(lost * 4 < sent as u64, "{lost} of {sent} lost");
}

/// 300 broadcasts and 300 unicasts from host 0: hosts 1 and 2 receive the broadcasts, host 1 alone the unicasts.
fn exchange(carrier: Carrier) {
    let network = Network::new(3);
    let mut sender = Note::default();
    for number in 0..300u16 {
        let payload = |kind: u8| [&[kind][..], &number.to_be_bytes(), &[7; 600]].concat();
        sender.to_send.push_back((Address::BROADCAST, payload(0)));
        sender.to_send.push_back((Address::node(1), payload(1)));
    }
    let expected: Vec<_> = sender.to_send.iter().cloned().collect();
    let ends = vec![
        (config(), network.port(0, carrier), sender),
        (config(), network.port(1, carrier), Note::default()),
        (config(), network.port(2, carrier), Note::default()),
    ];
    let wanted = [0, 600, 300];
    let ends = drive(ends, |me, note| {
        let me = usize::from(me.node_number().unwrap());
        note.to_send.is_empty()
            && note.heard.len() >= wanted[me]
            && (me != 0 || note.outcomes.len() == 600)
    });
    let (sender, statistics) = &ends[0];
    for (token, outcome) in &sender.outcomes {
        match token % 2 {
            1 => assert_eq!(*outcome, Outcome::Unconfirmed),
            _ => assert!(
                matches!(outcome, Outcome::Acknowledged { .. }),
                "{outcome:?}"
            ),
        }
    }
    assert_eq!((statistics.confirmed, sender.outcomes.len()), (300, 600));
    let heard = |end: usize| {
        ends[end].0.heard.iter().map(|(from, to, sdu)| {
            assert_eq!(*from, Address::node(0));
            (*to, sdu.clone())
        })
    };
    assert!(heard(2).eq(expected.iter().filter(|(to, _)| to.is_broadcast()).cloned()));
    let mut at_1: Vec<_> = heard(1).collect();
    // A unicast that had to be sent again is late.
    let by_number = |(to, sdu): &(Address, Vec<u8>)| (sdu[1..3].to_vec(), *to);
    at_1.sort_by_key(by_number);
    let mut expected = expected;
    expected.sort_by_key(by_number);
    assert_eq!(at_1, expected);
}

/// Goal: neighbours trust each other without a unicast of the card, and though frames are lost. Method: 40 % of all frames lost in both
/// directions; a node sends once it is trusted.
fn keys_may_leave_as_broadcasts() {
    let network = Network::new(2);
    let end = |host: u16| {
        let config = Config {
            keys_as_broadcasts: true,
            loss: Some(Loss::new(Seed(host.into()), 0.4)),
            ..config()
        };
        let note = Note {
            to_send: std::iter::repeat_n((Address::BROADCAST, vec![7; 100]), 40).collect(),
            ..Note::default()
        };
        (config, network.port(host, Carrier::PACKET), note)
    };
    let ends = drive(vec![end(0), end(1)], |_, note| !note.heard.is_empty());
    assert!(ends.iter().all(|(note, _)| !note.heard.is_empty()));
}

/// 40 % of frames and confirmations lost in both directions: every acknowledged frame has arrived, none arrives twice, and
/// with seven attempts (loss of frame or confirmation 64 %) few fail.
fn an_acknowledged_unicast_arrived_once() {
    let network = Network::new(2);
    let lossy = |seed| Config {
        loss: Some(Loss::new(Seed(seed), 0.4)),
        ..config()
    };
    let mut sender = Note::default();
    for number in 0..400u32 {
        sender
            .to_send
            .push_back((Address::node(1), number.to_be_bytes().to_vec()));
    }
    let ends = vec![
        (lossy(1), network.port(0, Carrier::UDP), sender),
        (lossy(2), network.port(1, Carrier::UDP), Note::default()),
    ];
    let ends = drive(ends, |me, note| {
        me == Address::node(1) || note.outcomes.len() == 400
    });
    let (sender, receiver) = (&ends[0].0, &ends[1].0);
    let mut heard: Vec<u32> = receiver
        .heard
        .iter()
        .map(|(_, _, sdu)| u32::from_be_bytes(sdu[..].try_into().unwrap()))
        .collect();
    heard.sort();
    assert!(
        heard.windows(2).all(|pair| pair[0] < pair[1]),
        "heard twice"
    );
    let acknowledged: Vec<u32> = sender
        .outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Acknowledged { .. }))
        .map(|(token, _)| token - 1)
        .collect();
    assert!(
        acknowledged
            .iter()
            .all(|number| heard.binary_search(number).is_ok())
    );
    // 0.64^7 = 4.4 %, so 18 of 400 are expected to fail; 45 is more than six standard deviations away.
    assert!(acknowledged.len() > 355, "{}", acknowledged.len());
    println!(
        "  {} of 400 acknowledged, {} heard, {} retries",
        acknowledged.len(),
        heard.len(),
        ends[0].1.retries
    );
}

fn a_unicast_to_an_absent_node_fails() {
    let network = Network::new(1);
    let mut note = Note::default();
    note.to_send.push_back((Address::node(9), vec![1]));
    let ends = drive(
        vec![(config(), network.port(0, Carrier::UDP), note)],
        |_, note| !note.outcomes.is_empty(),
    );
    assert_eq!(ends[0].0.outcomes, [(1, Outcome::Failed { attempts: 7 })]);
    // Nothing can be sealed for it.
    assert_eq!((ends[0].1.retries, ends[0].1.given_up), (0, 1));
}

/// 10,000 random datagrams and as many mutated frames from a third host during a transfer: they are only counted.
fn foreign_frames_are_only_counted() {
    let network = Network::new(3);
    let flood = network.port(2, Carrier::UDP).interface().clone();
    let (stranger, everybody) = network.hosts[2]
        .run(|| udp::open(&flood, 1794, Group::Broadcast).unwrap())
        .unwrap();
    let mut sender = Note::default();
    for number in 0..500u32 {
        sender
            .to_send
            .push_back((Address::node(1), number.to_be_bytes().to_vec()));
    }
    let slow = || Config {
        pace: Pace::Rate(Bitrate(500_000)),
        ..config()
    };
    let ends = vec![
        (slow(), network.port(0, Carrier::UDP), sender),
        (slow(), network.port(1, Carrier::UDP), Note::default()),
    ];
    let flooding = thread::spawn(move || {
        let mut random = Seed(3).stream(Purpose::Trial(0));
        for round in 0..1000 {
            let frames: Vec<Vec<u8>> = (0..20)
                .map(|i| {
                    let mut frame = vec![0; 1 + random.below(200) as usize];
                    random.fill(&mut frame);
                    // Every other one looks like a broadcast or a hello of node 0.
                    if i % 2 == 0 {
                        let length = frame.len() as u8;
                        let kind = if i % 4 == 0 { 0x50 } else { 0x53 };
                        let head = [kind, 0, 0, 255, 255, 1, 2, 0, 0, 0, 0, 9, 0, length];
                        frame.splice(0..0, head);
                        frame.resize(frame.len() + 12 + 32, 0);
                    }
                    frame
                })
                .collect();
            stranger
                .send(frames.iter().map(|frame| (&frame[..], everybody)))
                .unwrap();
            if round % 10 == 0 {
                thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    });
    let ends = drive(ends, |me, note| {
        me == Address::node(1) || note.outcomes.len() == 500
    });
    flooding.join().unwrap();
    let all = ends[0]
        .0
        .outcomes
        .iter()
        .all(|(_, outcome)| matches!(outcome, Outcome::Acknowledged { .. }));
    assert!(all && ends[0].0.outcomes.len() == 500);
    assert_eq!(ends[1].0.heard.len(), 500);
    assert!(
        ends[1]
            .0
            .heard
            .iter()
            .all(|(from, _, _)| *from == Address::node(0))
    );
    let statistics = &ends[1].1;
    let [malformed, forged, stale] = [
        DropReason::Malformed,
        DropReason::Unauthentic,
        DropReason::Stale,
    ]
    .map(|why| statistics.dropped(why));
    assert!(
        malformed > 2000 && forged > 1000 && stale > 1000,
        "{statistics:?}"
    );
    println!(
        "  counted by the receiver: {malformed} strange datagrams, {forged} forged, {stale} of unknown lives"
    );
}

/// The interface goes down and up during a transfer: frames sent meanwhile fail, and later ones succeed.
fn an_interface_that_goes_down_comes_back() {
    let network = Network::new(2);
    for carrier in [Carrier::UDP, Carrier::PACKET] {
        let port = network.port(0, carrier);
        let config = Config {
            pace: Pace::Rate(Bitrate(400_000)),
            ..config()
        };
        let mut live = Live::new(config, port, Box::new(Note::default())).unwrap();
        let switch = |on: bool| {
            let switch = || {
                let links = Links::open().unwrap();
                if on {
                    links.up("eth0").unwrap()
                } else {
                    links.down("eth0").unwrap()
                }
            };
            network.hosts[0].run(switch).unwrap();
        };
        let mut phase = 0;
        let ending = live.run(|note, now, statistics| {
            note.to_send.resize(10, (Address::BROADCAST, vec![0; 100]));
            match phase {
                0 if statistics.frames_sent > 20 => (phase, _) = (1, switch(false)),
                1 if statistics.refused > 0 => (phase, _) = (2, switch(true)),
                2 => (phase, note.outcomes) = (3, Vec::new()),
                3 if note
                    .outcomes
                    .iter()
                    .filter(|(_, outcome)| *outcome == Outcome::Unconfirmed)
                    .count()
                    > 20 =>
                {
                    return ControlFlow::Break(());
                }
                _ => assert!(now.as_secs_f64() < 15.0, "phase {phase}: {statistics:?}"),
            }
            ControlFlow::Continue(())
        });
        assert_eq!(ending.unwrap(), Ending::Asked);
        let why = live.statistics().last_refusal.clone().unwrap();
        println!(
            "  {carrier:?}: {} refused: {why}",
            live.statistics().refused
        );
    }
}

/// SIGTERM and SIGINT to a separate process: it prints the signal and exits with 0.
fn signals_end_the_run() {
    for (signal, ending) in [("TERM", "Terminate"), ("INT", "Interrupt")] {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .arg("--serve")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert_eq!(line, "serving\n");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        line.clear();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert_eq!(line, format!("{:?}\n", ending));
        assert!(child.wait().unwrap().success());
    }
}

/// The child of [`signals_end_the_run`]: drives a node on the loopback interface until a signal arrives.
fn serve() {
    let port = Port::open("lo", Address::node(0), Carrier::UDP).unwrap();
    let mut live = Live::new(
        Config::new(Pace::Unlimited, common::member(0)),
        port,
        Box::new(Note::default()),
    )
    .unwrap();
    println!("serving");
    match live.run(|_, _, _| ControlFlow::Continue(())).unwrap() {
        Ending::Signal(signal) => println!("\"{signal:?}\""),
        Ending::Asked => println!("unexpected end"),
    }
}

/// Goal: two members that start from one copied folder, with one key and one list, never use one nonce with one key. Method: two hosts
/// as member 0; each life is part of the keys of its sessions, and its number tells frames of the two apart.
fn a_member_that_runs_twice_has_two_lives() {
    let network = Network::new(2);
    let port = |host: usize| {
        let open = || Port::open("eth0", Address::node(0), Carrier::UDP).unwrap();
        network.hosts[host].run(open).unwrap()
    };
    let ends = (0..2).map(|host| (config(), port(host), Note::default()));
    let lives: Vec<u64> = drive(ends.collect(), |_, _| true)
        .iter()
        .map(|(_, statistics)| statistics.life)
        .collect();
    assert_ne!(lives[0], lives[1]);
}
