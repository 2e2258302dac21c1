//! The tunnel between real kernels: TCP through losses, wrong keys, a new address, a restart, changed services.
//!
//! Goal: the behaviour that the crate page describes. Method: two hosts in namespaces with a lossy medium between them.
//! Skipped if the kernel forbids namespaces. The machine may be busy, so rates have a margin and three attempts.

#[path = "suite/medium/mod.rs"]
mod medium;
#[path = "suite/medium/tunnels.rs"]
mod tunnels;

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as Span;

use chappe_core::{Bitrate, Duration};
use chappe_link::{Secret, State};
use chappe_wildnet::Service;
use medium::{Air, Field, address, inner, isolated, tcp};
use tunnels::{Ends, Running};

fn main() {
    isolated(|| {
        tcp_gets_most_of_the_bound();
        a_dead_peer_does_not_stall_the_others();
        joined_segments_arrive_unchanged();
        a_wrong_key_is_reported();
        sessions_survive_restarts_and_rate_changes();
        two_wires_are_one_link();
    });
}

/// Repeats a real-time measurement up to three times: a stall of the computer spoils one attempt, a fault of the link all
/// of them. An attempt returns its goodput in Mbit/s. One over a medium that stalled only has to carry something.
fn in_three_tries(air: Air, what: &str, least: f64, attempt: impl Fn(&Field) -> f64) {
    let (mut judged, mut most) = (0, 0.0f64);
    for seed in 3..6 {
        let field = Field::new(air, seed);
        let goodput = attempt(&field);
        println!("  {what}: {goodput:.2} Mbit/s, at least {least:.2} wanted");
        if goodput >= least {
            return;
        }
        most = most.max(goodput);
        judged += u32::from(!field.stood_still(2.0));
    }
    assert!(judged == 0, "{what}: less than {least:.2} Mbit/s");
    assert!(most > STANDING * least, "{what}: nothing came through");
    chappe_testkit::skip(format!("{what}: this machine is too busy to keep time"));
}

/// The share of the required goodput that a link carries even if the computer stalls for most of the time. At 20 % loss
/// TCP without the link gets a third of that.
const STANDING: f64 = 0.1;

/// Kernel TCP (Reno, which every kernel has) through losses in both directions gets most of (1 - p) C, with every octet
/// right; without the link a fraction. A short form of the table in docs/link.md: the goal is 95 %, and the margin is for
/// busy machines.
fn tcp_gets_most_of_the_bound() {
    println!("tcp_gets_most_of_the_bound");
    // 6 Mbit/s less headers and TCP's acknowledgements: 1448 octets of 1514 and half of 66.
    let capacity = 6.0 * 1448.0 / (1514.0 + 33.0);
    for (loss, burst) in [(0.0, 0.0), (0.2, 0.0), (0.2, 4.0)] {
        let air = Air {
            burst,
            ..Air::usual(loss)
        };
        let through = |field: &Field| {
            let _hosts = [0, 1].map(|host| Running::start(field, host, &Ends::usual()));
            let (through, right) = tcp(field, inner(1), "reno", 3.0);
            assert!(right, "an octet was wrong");
            through
        };
        let kind = if burst > 0.0 {
            "in bursts"
        } else {
            "independently"
        };
        let what = format!("{:.0} % lost {kind}", 100.0 * loss);
        in_three_tries(air, &what, 0.85 * (1.0 - loss) * capacity, through);
    }
    let field = Field::new(Air::usual(0.2), 3);
    let (plain, _) = tcp(&field, address(1), "reno", 2.0);
    println!("  0.2 without the link: {plain:.2} Mbit/s");
    assert!(plain < 0.5 * 0.8 * capacity);
}

/// Two wires of 6 Mbit/s, 20 and 60 ms, that lose 5 % each, carry one flow of kernel TCP together: more than either could. It goes on
/// when one of them is cut, with every octet right.
fn two_wires_are_one_link() {
    println!("two_wires_are_one_link");
    let airs = [10, 30].map(|one_way| Air {
        delay: Duration::from_millis(one_way),
        ..Air::usual(0.05)
    });
    let ends = Ends {
        bonded: true,
        ..Ends::usual()
    };
    let capacity = 2.0 * 6.0 * 0.95 * 1448.0 / (1514.0 + 33.0);
    for attempt in 0..3 {
        let field = Field::wired(&airs, 3 + attempt);
        let hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
        let (both, right) = tcp(&field, inner(1), "cubic", 4.0);
        println!("  both: {both:.2} of {capacity:.2} Mbit/s");
        assert!(right, "an octet was wrong");
        let (cut, right) = thread::scope(|scope| {
            let transfer = scope.spawn(|| tcp(&field, inner(1), "cubic", 5.0));
            thread::sleep(Span::from_millis(2_000));
            field.wires[0].set(|air| air.loss = [1.0; 2]);
            thread::sleep(Span::from_millis(2_000));
            field.wires[0].set(|air| air.loss = [0.05; 2]);
            transfer.join().unwrap()
        });
        println!("  the first cut for 2 of 6 s: {cut:.2} Mbit/s");
        assert!(right, "an octet was wrong");
        let status = hosts[0].show();
        println!("{}", status.table());
        assert_eq!(status.peers[0].paths.len(), 2);
        assert_eq!(hosts[1].show().peers[0].paths.len(), 2, "learned");
        prometheus_is_valid(&status.prometheus());
        if both > 0.8 * capacity && cut > 0.4 * capacity {
            return;
        }
        assert!(attempt < 2 || field.stood_still(2.0), "{both} {cut}");
    }
    chappe_testkit::skip("this machine is too busy to keep time");
}

/// A peer that does not answer, and a flood of packets to it, do not slow another peer down.
fn a_dead_peer_does_not_stall_the_others() {
    println!("a_dead_peer_does_not_stall_the_others");
    in_three_tries(Air::usual(0.0), "beside a flood", 4.0, beside_a_flood);
}

fn beside_a_flood(field: &Field) -> f64 {
    let ends = Ends {
        ghost: true,
        ..Ends::usual()
    };
    let hosts = [0, 1].map(|host| Running::start(field, host, &ends));
    let (stop, flooder) = (AtomicBool::new(false), &field.hosts[0]);
    let (goodput, right) = thread::scope(|scope| {
        scope.spawn(|| {
            flooder.run(|| {
                let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&[7; 1000], "10.9.0.9:9");
                    thread::sleep(Span::from_micros(500));
                }
            })
        });
        let result = tcp(field, inner(1), "reno", 2.0);
        stop.store(true, Ordering::Relaxed);
        result
    });
    assert!(right, "an octet was wrong");
    let status = hosts[0].show();
    assert_eq!(status.peers[1].state, State::Calling);
    let dropped = status.peers[1]
        .counters
        .iter()
        .find(|one| one.0 == "queue_dropped");
    assert!(dropped.is_some_and(|one| one.1 > 100), "{dropped:?}");
    prometheus_is_valid(&status.prometheus());
    goodput
}

/// On a fast path host and kernel coalesce segments and datagrams. Every octet is right with offloads and without.
fn joined_segments_arrive_unchanged() {
    println!("joined_segments_arrive_unchanged");
    for offloads in [true, false] {
        let field = Field::direct();
        let ends = Ends {
            rate: Some(Bitrate(2_000_000_000)),
            offloads,
            ..Ends::usual()
        };
        let _hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
        let (goodput, right) = tcp(&field, inner(1), "reno", 0.5);
        println!("  {goodput:.0} Mbit/s, offloads {offloads}");
        assert!(right && goodput > 10.0, "{goodput}");
    }
}

/// Every sample has a type that was declared once before it, a name and labels of the format, and a number.
fn prometheus_is_valid(text: &str) {
    let mut declared: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(!declared.contains(&name), "{name} is declared twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            declared.push(name);
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(
                name.chars().all(plain) && declared.contains(&name),
                "{line}"
            );
            assert!(series == name || series.ends_with("\"}"), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(declared.len() > 30);
}

/// Two hosts that expect other keys of each other never get a session, count the cause, and report what to do.
fn a_wrong_key_is_reported() {
    println!("a_wrong_key_is_reported");
    let field = Field::new(Air::usual(0.0), 4);
    let ends = Ends {
        keys: [Secret::new([1; 32]), Secret::new([2; 32])],
        ..Ends::usual()
    };
    let hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
    thread::sleep(Span::from_millis(5_000));
    for host in &hosts {
        let status = host.show();
        assert_eq!(status.peers[0].state, State::Calling);
        assert!(status.unmatched[0].1 > 0, "the other's calls are counted");
        assert!(
            status.peers[0]
                .trouble
                .as_ref()
                .unwrap()
                .contains("public key"),
            "{status:?}"
        );
    }
}

/// TCP survives changes of services and losses, a dead direction, and the restart of one end.
fn sessions_survive_restarts_and_rate_changes() {
    println!("sessions_survive_restarts_and_rate_changes");
    let field = Field::new(Air::usual(0.0), 5);
    let ends = Ends::usual();
    let mut hosts = [0, 1].map(|host| Some(Running::start(&field, host, &ends)));
    let (goodput, right) = thread::scope(|scope| {
        let transfer = scope.spawn(|| tcp(&field, inner(1), "reno", 7.0));
        thread::sleep(Span::from_millis(1_500));
        field.set(|air| air.loss = [0.6; 2]);
        let slower = Service {
            deadline: Some(Duration::from_millis(400)),
            ..Service::RELIABLE
        };
        hosts[0]
            .as_ref()
            .unwrap()
            .changes
            .lock()
            .unwrap()
            .push(Box::new(move |tunnel| {
                tunnel.peer_mut("host1").unwrap().set_service(1, slower);
            }));
        thread::sleep(Span::from_millis(1_000));
        field.set(|air| air.loss = [0.0, 1.0]);
        thread::sleep(Span::from_millis(700));
        field.set(|air| air.loss = [0.0; 2]);
        thread::sleep(Span::from_millis(1_000));
        // The receiver's end starts over: what was under way is lost, as on any path, and TCP sends it again.
        hosts[1] = None;
        hosts[1] = Some(Running::start(&field, 1, &ends));
        transfer.join().unwrap()
    });
    println!("  {goodput:.2} Mbit/s");
    assert!(right, "an octet was wrong");
    assert!(goodput > 0.3, "{goodput}");
    let host = hosts[0].as_ref().unwrap();
    assert_eq!(host.counter("peer_restarts"), 1);
    assert_eq!(host.counter("forged"), 0);
}
