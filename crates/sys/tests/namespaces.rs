//! Sockets, devices and interfaces against the kernel, in separate namespaces.
//!
//! Goal: each request to Linux has the documented effect. Method: the test isolates itself, so that it is root over
//! separate interfaces, and creates small networks. Skipped if the kernel forbids namespaces.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use chappe_core::Class;
use chappe_sys::namespace::{NetworkNamespace, isolate};
use chappe_sys::tun::{DATAGRAMS, Given, Joined, Joins, Kind, Tun};
use chappe_sys::{Endpoint, Interface, Links, Received, Run, Socket, packet, udp, wireless};

/// How long a test waits for what the kernel does at once on a computer without other work.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() {
    if let Err(error) = isolate() {
        chappe_testkit::skip(error.to_string());
        return;
    }
    let cases: [(&str, fn()); 10] = [
        ("udp_groups_reach_the_peer", udp_groups_reach_the_peer),
        (
            "packet_sockets_reach_the_peer",
            packet_sockets_reach_the_peer,
        ),
        (
            "segmented_datagrams_arrive_separately",
            segmented_datagrams_arrive_separately,
        ),
        ("a_bridge_joins_three", a_bridge_joins_three),
        ("a_tap_device_carries_frames", a_tap_device_carries_frames),
        (
            "joined_datagrams_pass_a_tun_device",
            joined_datagrams_pass_a_tun_device,
        ),
        ("priorities_travel_in_tags", priorities_travel_in_tags),
        ("errors_carry_a_remedy", errors_carry_a_remedy),
        ("an_alias_makes_a_radio", an_alias_makes_a_radio),
        (
            "interfaces_vanish_with_their_namespace",
            interfaces_vanish_with_their_namespace,
        ),
    ];
    for (name, case) in cases {
        println!("{name}");
        case();
    }
}

/// Two namespaces with `a0` here and `b0` there, up and with addresses.
fn pair() -> (NetworkNamespace, NetworkNamespace) {
    let (a, b) = (
        NetworkNamespace::create().unwrap(),
        NetworkNamespace::create().unwrap(),
    );
    a.run(|| {
        let links = Links::open().unwrap();
        links.veth("a0", "b0", &b).unwrap();
        links
            .add_address("a0", Ipv4Addr::new(10, 0, 0, 1), 24)
            .unwrap();
        links.up("a0").unwrap();
    })
    .unwrap();
    b.run(|| {
        let links = Links::open().unwrap();
        links
            .add_address("b0", Ipv4Addr::new(10, 0, 0, 2), 24)
            .unwrap();
        links.up("b0").unwrap();
    })
    .unwrap();
    a.run(|| await_carrier("a0")).unwrap();
    b.run(|| await_carrier("b0")).unwrap();
    (a, b)
}

/// Waits until the interface can carry frames, which is some milliseconds after both ends are up.
fn await_carrier(name: &str) {
    let end = Instant::now() + PATIENCE;
    while !Interface::find(name).unwrap().running && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The queueing discipline is started right after the flag is set.
    std::thread::sleep(Duration::from_millis(20));
}

/// Receives until `wanted` frames are there or patience is at its end.
fn hear(socket: &Socket, wanted: usize) -> Vec<(Endpoint, Vec<u8>)> {
    let (mut all, mut received) = (Vec::new(), Received::new(1500));
    let end = Instant::now() + PATIENCE;
    while all.len() < wanted && Instant::now() < end {
        socket.receive(&mut received).unwrap();
        all.extend(
            received
                .iter()
                .flatten()
                .map(|(from, frame)| (from, frame.to_vec())),
        );
    }
    all
}

fn udp_groups_reach_the_peer() {
    let (a, b) = pair();
    let groups = [
        udp::Group::Broadcast,
        udp::Group::Ipv4(Ipv4Addr::new(224, 0, 0, 200)),
        udp::Group::Ipv6("ff02::4348".parse().unwrap()),
    ];
    for (i, group) in groups.into_iter().enumerate() {
        let port = 4700 + i as u16;
        let open = |name: &'static str| {
            move || udp::open(&Interface::find(name).unwrap(), port, group).unwrap()
        };
        let (mut sender, to) = a.run(open("a0")).unwrap();
        let (listener, _) = b.run(open("b0")).unwrap();
        let frames: Vec<[u8; 3]> = (0..40).map(|n| [n, 1, 2]).collect();
        // An IPv6 address is tentative at first, and nothing is sent from it for a second or so.
        let end = Instant::now() + PATIENCE;
        let mut sent = 0;
        while sent < frames.len() && Instant::now() < end {
            sender.set_class(Class::BY_URGENCY[sent % 4]).unwrap();
            let rest = frames[sent..].iter().map(|frame| (&frame[..], to));
            sent += sender.send(rest).unwrap_or(0);
        }
        let heard = hear(&listener, frames.len());
        assert!(
            heard
                .iter()
                .map(|(_, frame)| &frame[..])
                .eq(frames.iter().map(|f| &f[..])),
            "{group:?}"
        );
        if group == udp::Group::Broadcast {
            let from: SocketAddr = "10.0.0.1:4700".parse().unwrap();
            assert_eq!(heard[0].0, Endpoint::Udp(from));
            // And back, to that one socket.
            assert_eq!(
                listener
                    .send([(&b"yes"[..], heard[0].0)].into_iter())
                    .unwrap(),
                1
            );
            // The sender may hear its own broadcasts first.
            let next = || hear(&sender, 1).pop().expect("an answer").1;
            while next() != b"yes" {}
        }
    }
}

/// A run of twenty datagrams, the last one shorter, and a single one in the same call arrive as twenty-one, on a socket
/// with and without UDP_GRO.
fn segmented_datagrams_arrive_separately() {
    let (a, b) = pair();
    let at = |host: u8, port: u16| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), port));
    let sender = a.run(|| udp::bind(at(1, 9000)).unwrap()).unwrap();
    let octets: Vec<u8> = (0..20 * 1000 - 300).map(|i| (i / 1000) as u8).collect();
    for (port, joins) in [(9001, true), (9002, false)] {
        let listener = b.run(|| udp::bind(at(2, port)).unwrap()).unwrap();
        let slot = if joins && listener.join_received() {
            1 << 16
        } else {
            1500
        };
        let to = Endpoint::Udp(at(2, port));
        let run = |octets, segment| Run {
            octets,
            segment,
            to,
        };
        let runs = [run(&octets, 1000), run(&[9; 50], 50)];
        match sender.send_runs(runs.into_iter()) {
            Ok(taken) => assert_eq!(taken, 2),
            Err(error) => {
                return chappe_testkit::skip(format!(
                    "the kernel cannot segment datagrams: {error}"
                ));
            }
        }
        let (mut received, mut heard) = (Received::new(slot), Vec::new());
        let begun = Instant::now();
        while heard.len() < 21 && begun.elapsed() < Duration::from_secs(5) {
            if listener.receive(&mut received).unwrap() > 0 {
                heard.extend(received.iter().flatten().map(|(_, one)| one.to_vec()));
            }
        }
        let lengths: Vec<usize> = heard.iter().map(Vec::len).collect();
        assert_eq!((lengths.len(), lengths[0], lengths[19]), (21, 1000, 700));
        assert_eq!(heard.pop(), Some(vec![9; 50]));
        assert_eq!(heard.concat(), octets);
    }
}

fn packet_sockets_reach_the_peer() {
    let (a, b) = pair();
    let open = |name: &'static str, framing| {
        move || {
            let interface = Interface::find(name).unwrap();
            let socket = packet::open(&interface, packet::LOCAL_EXPERIMENTAL, framing).unwrap();
            (socket, Endpoint::Ethernet(interface.hardware))
        }
    };
    let (mut sender, sender_at) = a.run(open("a0", packet::Framing::Payload)).unwrap();
    let (listener, listener_at) = b.run(open("b0", packet::Framing::Payload)).unwrap();
    let (whole, _) = b.run(open("b0", packet::Framing::Whole)).unwrap();
    sender.set_class(Class::Control).unwrap();
    let frame = [7; 100];
    let to = [(&frame[..], packet::BROADCAST), (&frame[..], listener_at)];
    assert_eq!(sender.send(to.into_iter()).unwrap(), 2);
    assert_eq!(
        hear(&listener, 2),
        [(sender_at, frame.to_vec()), (sender_at, frame.to_vec())]
    );
    let seen = hear(&whole, 1).remove(0).1;
    assert_eq!(
        (&seen[..6], &seen[12..14], &seen[14..]),
        (&[0xff; 6][..], &[0x88, 0xb5][..], &frame[..])
    );
    assert!(
        sender.receive(&mut Received::new(1500)).unwrap() == 0,
        "an own frame came back"
    );
    // Longer than the MTU: refused, and the error says so.
    let error = sender
        .send([(&[0; 1600][..], packet::BROADCAST)].into_iter())
        .unwrap_err();
    assert!(error.to_string().contains("MTU"), "{error}");
}

fn a_bridge_joins_three() {
    let hosts: Vec<_> = (0..3)
        .map(|_| NetworkNamespace::create().unwrap())
        .collect();
    let hub = NetworkNamespace::create().unwrap();
    hub.run(|| {
        let links = Links::open().unwrap();
        links.bridge("br0").unwrap();
        links.up("br0").unwrap();
        for (i, host) in hosts.iter().enumerate() {
            let port = format!("p{i}");
            links.veth(&port, "eth0", host).unwrap();
            links.join(&port, "br0").unwrap();
            links.up(&port).unwrap();
        }
    })
    .unwrap();
    let open = || {
        Links::open().unwrap().up("eth0").unwrap();
        await_carrier("eth0");
        let interface = Interface::find("eth0").unwrap();
        interface.offloads_off().unwrap();
        packet::open(
            &interface,
            packet::LOCAL_EXPERIMENTAL,
            packet::Framing::Payload,
        )
        .unwrap()
    };
    let sockets: Vec<_> = hosts.iter().map(|host| host.run(open).unwrap()).collect();
    // Ports begin to forward some time after they came up: frames sent before are lost.
    let mut heard = [false; 2];
    let end = Instant::now() + PATIENCE;
    while heard != [true; 2] && Instant::now() < end {
        let frame = (&[1; 60][..], packet::BROADCAST);
        sockets[0].send([frame].into_iter()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        for (heard, socket) in heard.iter_mut().zip(&sockets[1..]) {
            *heard |= socket.receive(&mut Received::new(1500)).unwrap() > 0;
        }
    }
    assert_eq!(heard, [true; 2]);
}

/// Goal: what one program sends as a run of datagrams comes out of the device as one packet, and into another host as the datagrams
/// that they were; a plain device, as on a kernel that refuses, passes them one by one. Method: a packet of the device is given back to it
/// with its ends exchanged.
fn joined_datagrams_pass_a_tun_device() {
    for joining in [true, false] {
        let made = match joining {
            true => Tun::create_joining("tun%d"),
            false => Tun::create("tun%d", Kind::Tun),
        };
        let tun = match made {
            Ok(tun) => tun,
            Err(error) => return chappe_testkit::skip(error.to_string()),
        };
        let joins = tun.join_all();
        assert!(joining || joins == Joins::default());
        let links = Links::open().unwrap();
        let here = Ipv4Addr::new(10, 9, u8::from(joining), 1);
        links.add_address(tun.name(), here, 24).unwrap();
        links.up(tun.name()).unwrap();
        let socket = udp::bind((here, 4000).into()).unwrap();
        let there = SocketAddr::from((Ipv4Addr::new(10, 9, u8::from(joining), 2), 4000));
        let octets = [[1; 900], [2; 900]].concat();
        let run = Run {
            octets: &octets,
            segment: 900,
            to: Endpoint::Udp(there),
        };
        assert_eq!(socket.send_runs([run].into_iter()).unwrap(), 1);
        let mut packets = 0;
        let begun = Instant::now();
        let mut heard = Vec::new();
        while heard.len() < 2 {
            assert!(begun.elapsed() < PATIENCE, "{joins:?}: {packets}");
            let mut buffer = vec![0; (1 << 16) + 10];
            while let Some((len, joined)) = tun.receive_joined(&mut buffer).unwrap() {
                // The kernel sends a few packets of IPv6 by itself on a new interface.
                if buffer[0] != 0x45 {
                    continue;
                }
                packets += 1;
                assert_eq!(joined.is_some(), joins.datagrams);
                let (source, destination) = buffer[12..20].split_at_mut(4);
                source.swap_with_slice(destination);
                let given = tun.give(&buffer[..len], joined).unwrap();
                assert_eq!(given, Given::Taken);
                if !joining {
                    let some = Joined {
                        kind: DATAGRAMS,
                        segment: 900,
                    };
                    let given = tun.give(&buffer[..len], Some(some)).unwrap();
                    assert_eq!(given, Given::Refused);
                }
            }
            let mut received = Received::new(2000);
            socket.receive(&mut received).unwrap();
            heard.extend(received.iter().flatten().map(|(_, octets)| octets.to_vec()));
        }
        assert_eq!(packets, if joins.datagrams { 1 } else { 2 });
        assert_eq!(heard.concat(), octets);
    }
}

fn a_tap_device_carries_frames() {
    let tap = match Tun::create("tap%d", Kind::Tap) {
        Ok(tap) => tap,
        Err(error) => return chappe_testkit::skip(error.to_string()),
    };
    Links::open().unwrap().up(tap.name()).unwrap();
    let interface = Interface::find(tap.name()).unwrap();
    let socket = packet::open(
        &interface,
        packet::LOCAL_EXPERIMENTAL,
        packet::Framing::Payload,
    )
    .unwrap();
    let mut frame = [vec![0xff; 6], vec![2, 0, 0, 0, 0, 9], vec![0x88, 0xb5]].concat();
    frame.extend([5; 50]);
    assert!(tap.send(&frame).unwrap());
    assert_eq!(
        hear(&socket, 1),
        [(Endpoint::Ethernet([2, 0, 0, 0, 0, 9]), vec![5; 50])]
    );
    socket
        .send([(&[6; 50][..], packet::BROADCAST)].into_iter())
        .unwrap();
    let mut buffer = [0; 2000];
    // The kernel sends a few frames by itself on a new interface.
    let ours = (0..100_000).filter_map(|_| {
        tap.receive(&mut buffer)
            .unwrap()
            .map(|len| buffer[..len].to_vec())
    });
    assert!({ ours }.any(|frame| frame[12..] == [&[0x88, 0xb5][..], &[6; 50]].concat()));
    let name = tap.name().to_owned();
    drop(tap);
    assert!(Interface::find(&name).is_err());
}

/// Goal: the priority of a class reaches the other end of a cable, which gets the frame without a tag; the longest frame fits, and best effort
/// needs no tag.
fn priorities_travel_in_tags() {
    let (a, b) = pair();
    let open = |name: &'static str, ether_type, framing| {
        move || packet::open(&Interface::find(name).unwrap(), ether_type, framing).unwrap()
    };
    let local = packet::LOCAL_EXPERIMENTAL;
    let mut sender = a.run(open("a0", local, packet::Framing::Payload)).unwrap();
    let listener = b.run(open("b0", local, packet::Framing::Payload)).unwrap();
    let tagged = b
        .run(open("b0", packet::ALL, packet::Framing::Whole))
        .unwrap();
    assert!(tagged.read_tags());
    sender.tag_priorities();
    let longest = a.run(|| Interface::find("a0").unwrap().mtu).unwrap();
    let frame = vec![9; longest];
    for class in Class::BY_URGENCY {
        sender.set_class(class).unwrap();
        let one = [(&frame[..], packet::BROADCAST)];
        assert_eq!(sender.send(one.into_iter()).unwrap(), 1, "{class:?}");
    }
    let heard = hear(&listener, 4);
    assert!(heard.iter().all(|(_, octets)| *octets == frame));
    let (mut received, mut priorities) = (Received::new(2000), Vec::new());
    let end = Instant::now() + PATIENCE;
    while priorities.len() < 4 && Instant::now() < end {
        tagged.receive(&mut received).unwrap();
        let ours = { received.iter_tagged().flatten() };
        let ours = ours.filter(|(octets, _)| octets[12..] == [&[0x88, 0xb5][..], &frame].concat());
        priorities.extend(ours.map(|(_, priority)| priority));
    }
    assert_eq!(priorities, [Some(6), Some(4), None, Some(2)]);
}

fn errors_carry_a_remedy() {
    let error = Interface::find("mesh0").unwrap_err().to_string();
    assert!(
        error.contains("mesh0") && error.contains("ip link"),
        "{error}"
    );
    let (a, _b) = pair();
    let down = a.run(|| {
        let links = Links::open().unwrap();
        links.down("a0").unwrap();
        let interface = Interface::find("a0").unwrap();
        assert!(!interface.up);
        let socket = packet::open(
            &interface,
            packet::LOCAL_EXPERIMENTAL,
            packet::Framing::Payload,
        )
        .unwrap();
        socket
            .send([(&[0; 60][..], packet::BROADCAST)].into_iter())
            .unwrap_err()
            .to_string()
    });
    let down = down.unwrap();
    assert!(down.contains("on a0") && down.contains("up"), "{down}");
}

/// An interface counts as a radio once its alias begins with `radio`, whatever follows.
fn an_alias_makes_a_radio() {
    let (a, _b) = pair();
    let seen = a.run(|| {
        let links = Links::open().unwrap();
        let mut seen = vec![(links.alias("a0").unwrap(), wireless::is_radio("a0"))];
        for alias in ["cable to the roof", "radio: the mast"] {
            links.set_alias("a0", alias).unwrap();
            seen.push((links.alias("a0").unwrap(), wireless::is_radio("a0")));
        }
        assert!(links.alias("mesh0").is_err() && !wireless::is_radio("mesh0"));
        seen
    });
    let said = |word: &str| Some(word.to_owned());
    assert_eq!(
        seen.unwrap(),
        [
            (None, false),
            (said("cable to the roof"), false),
            (said("radio: the mast"), true)
        ]
    );
}

fn interfaces_vanish_with_their_namespace() {
    let (a, b) = pair();
    a.run(|| Links::open().unwrap().set_mtu("a0", 1280).unwrap())
        .unwrap();
    assert_eq!(a.run(|| Interface::find("a0").unwrap().mtu).unwrap(), 1280);
    let c = NetworkNamespace::create().unwrap();
    a.run(|| Links::open().unwrap().move_to("a0", &c).unwrap())
        .unwrap();
    assert!(a.run(|| Interface::find("a0").is_err()).unwrap());
    assert!(c.run(|| Interface::find("a0").is_ok()).unwrap());
    drop((a, c));
    // The kernel takes a namespace down in its own time.
    let gone = || b.run(|| Interface::find("b0").is_err()).unwrap();
    let end = Instant::now() + PATIENCE;
    while !gone() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone());
}
