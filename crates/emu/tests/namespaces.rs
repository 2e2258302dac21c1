//! Programs in namespaces over emulated radios.
//!
//! Goal: frames of programs cross the simulated air hop by hop and on time, and every lost frame is counted. Method: the
//! test isolates itself and emulates short lines of stations while `ping` and packet sockets use them. If the kernel
//! forbids namespaces, it is skipped with the reason.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use chappe_core::{Address, Class, Duration, OverMac, Rate, Seed};
use chappe_emu::{Bridge, Emulator, Ending, Host, INTERFACE, Joint, Network, Shape, stations};
use chappe_mac::dot11::{Config, Edca};
use chappe_sim::{Matrix, Medium};
use chappe_sys::namespace::isolate_by_any_means;
use chappe_sys::{Endpoint, Interface, Received, Socket, packet, process, wireless};

/// Error numbers of Linux: no such kind of device, not even its file.
const OPNOTSUPP: i32 = 95;
const NODEV: i32 = 19;
const NOENT: i32 = 2;

/// A machine that stands still for a while fails no test.
const PATIENCE: Duration = Duration::from_secs(120);

type Node = OverMac<Edca, Bridge>;

/// The card of each station.
#[derive(Clone, Copy, PartialEq)]
enum Card {
    Dcf,
    Edca,
}

fn main() {
    // These tests judge what is carried, not when; but the better the emulator keeps time, the sooner they end.
    let _ = process::prefer();
    if let Err(error) = isolate_by_any_means() {
        chappe_testkit::skip(error.to_string());
        return;
    }
    let cases: [(&str, fn()); 6] = [
        ("neighbours_ping_each_other", neighbours_ping_each_other),
        ("three_hops_carry_a_ping", three_hops_carry_a_ping),
        ("every_ethertype_crosses", every_ethertype_crosses),
        ("a_tap_device_replaces_veth", a_tap_device_replaces_veth),
        (
            "urgent_frames_overtake_others",
            urgent_frames_overtake_others,
        ),
        (
            "lost_requests_of_arp_are_repeated_soon",
            lost_requests_of_arp_are_repeated_soon,
        ),
    ];
    for (name, case) in cases {
        println!("{name}");
        case();
    }
}

fn address(node: usize) -> Ipv4Addr {
    Host::numbered(node as u16).ipv4
}

/// Stations in a line, each hearing its neighbours with the ratio `prr` and sensing all.
fn line(nodes: usize, prr: f64, (joint, card): (Joint, Card)) -> Option<Emulator<Node>> {
    let mut matrix = Matrix::silent(nodes);
    for node in 1..nodes {
        matrix = matrix.with_link(node - 1, node, prr);
    }
    matrix.senses = vec![vec![true; nodes]; nodes];
    let config = Config {
        llc: None,
        ..Config::dot11b(Rate::Cck11)
    };
    let mtu = Bridge::mtu_of(config.caps().frame_max);
    let medium = Medium::matrix(&matrix).unwrap();
    let simulator = stations(medium, mtu, Seed(1), |own, random| {
        Edca::or_dcf(config, card == Card::Edca, own, random)
    });
    let mut simulator = simulator.unwrap();
    for node in (0..nodes).filter(|_| card == Card::Edca) {
        simulator.with_node(node, |station, _| {
            let address = station.link.address();
            station.link = Bridge::with_categories(address, mtu, 64);
        });
    }
    let host = |node: usize| Host {
        routes: (0..nodes)
            .filter(|&to| to.abs_diff(node) > 1)
            .map(|to| {
                (
                    address(to),
                    address(if to > node { node + 1 } else { node - 1 }),
                )
            })
            .collect(),
        ..Host::numbered(node as u16)
    };
    let hosts: Vec<Host> = (0..nodes).map(host).collect();
    let shape = Shape {
        prefix: 16,
        mtu,
        forwards: true,
        joint,
    };
    match Network::make(&hosts, shape) {
        Ok(network) => Some(Emulator::new(simulator, network).unwrap()),
        // What a kernel or a container may forbid; everything else is a defect.
        Err(error) => {
            let forbidden = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
            let forbidden = forbidden.contains(&error.os().kind());
            let missing = matches!(error.os().raw_os_error(), Some(OPNOTSUPP | NODEV | NOENT));
            assert!(forbidden || missing, "{error}");
            chappe_testkit::skip(error.to_string());
            None
        }
    }
}

/// Starts `words` in host `node`, emulates until it has ended, and returns what it printed.
fn run(emulator: &mut Emulator<Node>, node: usize, words: &[&str]) -> Option<String> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::piped());
    let started = process::spawn_in(emulator.host(node).unwrap(), &mut command);
    let child: Child = match started {
        Ok(child) => child,
        Err(error) => {
            chappe_testkit::skip(error.to_string());
            return None;
        }
    };
    let end = process::watch(&child).unwrap();
    emulator.watch(std::os::fd::AsFd::as_fd(&end), 1).unwrap();
    let limit = emulator.clock().now() + PATIENCE;
    let ending = emulator.run(Some(limit)).unwrap();
    assert_eq!(ending, Ending::Watched(1));
    emulator.forget(std::os::fd::AsFd::as_fd(&end)).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ping(emulator: &mut Emulator<Node>, from: usize, to: usize) -> Option<String> {
    let to = address(to).to_string();
    run(
        emulator,
        from,
        &["ping", "-n", "-c", "3", "-i", "0.1", "-W", "30", &to],
    )
}

fn neighbours_ping_each_other() {
    let Some(mut emulator) = line(2, 1.0, (Joint::Veth, Card::Dcf)) else {
        return;
    };
    let Some(said) = ping(&mut emulator, 0, 1) else {
        return;
    };
    assert!(said.contains("3 received"), "{said}");
    let host = emulator.host(0).unwrap();
    assert!(host.run(|| wireless::is_radio(INTERFACE)).unwrap());
    let (bridges, air) = (emulator.bridges(), emulator.air().clone());
    // At least three requests, three answers and two ARP messages; each of the unicasts was acknowledged.
    assert!(
        bridges[0].to_host >= 4 && bridges[1].to_host >= 4,
        "{bridges:?}"
    );
    assert!(air.frames >= 8 + 6, "{air:?}");
    assert!(emulator.lateness().samples() > 0);
}

/// Three hops that each lose a fifth of their frames: the MAC's retries recover them, and everything takes air time.
fn three_hops_carry_a_ping() {
    let Some(mut emulator) = line(4, 0.8, (Joint::Veth, Card::Dcf)) else {
        return;
    };
    let Some(said) = ping(&mut emulator, 0, 3) else {
        return;
    };
    assert!(
        said.contains(" received") && !said.contains(" 0 received"),
        "{said}"
    );
    assert!(said.contains("ttl=62"), "two relays: {said}");
    let least = said
        .rsplit_once("= ")
        .and_then(|(_, times)| times.split('/').next()?.parse::<f64>().ok());
    // Six frames of 84 + 28 + 8 octets and six ACKs at 1 Mbit/s: 6 * (192 + 91 + 10 + 304) us at the very least.
    assert!(least.unwrap() >= 3.5, "{said}");
    assert!(
        emulator
            .air()
            .lost
            .iter()
            .map(|(_, lost)| lost)
            .sum::<u64>()
            > 0
    );
}

/// Broadcasts of every EtherType reach all neighbours, unicasts one; frames with a foreign source are counted.
fn every_ethertype_crosses() {
    let Some(mut emulator) = line(3, 1.0, (Joint::Veth, Card::Dcf)) else {
        return;
    };
    let mtu = 2272;
    let open = || {
        let interface = Interface::find(INTERFACE).unwrap();
        assert_eq!(interface.mtu, mtu);
        packet::open(&interface, packet::ALL, packet::Framing::Whole).unwrap()
    };
    let sockets: Vec<_> = (0..3)
        .map(|node| emulator.host(node).unwrap().run(open).unwrap())
        .collect();
    let frame = |to: Address, from: u16, kind: u16, len: usize| {
        let addresses = [to.to_eui48(), Address::node(from).to_eui48()].concat();
        [&addresses[..], &kind.to_be_bytes(), &vec![0x5a; len]].concat()
    };
    let frames = [
        frame(Address::BROADCAST, 1, 0x88b5, mtu),
        frame(Address::BROADCAST, 1, 0x88b6, 1),
        frame(Address::node(2), 1, 0x1794, 700),
        frame(Address::BROADCAST, 7, 0x88b5, 60),
    ];
    let begun = emulator.clock().now();
    let mut rounds = 0;
    // The kernel sends frames of its own on new interfaces. A broadcast that collides with one of them is not repeated.
    loop {
        rounds += 1;
        let to = packet::BROADCAST;
        let batch = frames.iter().map(|frame| (&frame[..], to));
        sockets[1].send(batch).unwrap();
        let end = emulator.clock().now() + Duration::from_millis(300);
        assert_eq!(emulator.run(Some(end)).unwrap(), Ending::Time);
        let heard = [&sockets[0], &sockets[2]].map(heard);
        if heard[0] == frames[..2] && heard[1] == frames[..3] {
            break;
        }
        // Nothing arrives at the wrong host, or changed.
        for (heard, expected) in heard.iter().zip([&frames[..2], &frames[..3]]) {
            assert!(heard.iter().all(|frame| expected.contains(frame)));
        }
        let now = emulator.clock().now();
        assert!(now < begun + PATIENCE, "round {rounds}: {heard:?}");
    }
    let bridges = emulator.bridges();
    assert_eq!(bridges[1].lost.strange, rounds, "{bridges:?}");
    assert!(bridges[1].acknowledged >= 1);
}

/// The EtherTypes of the test's frames; the kernel's own frames have others.
const KINDS: [u16; 3] = [0x88b5, 0x88b6, 0x1794];

/// The test's frames that have arrived at a socket.
fn heard(socket: &Socket) -> Vec<Vec<u8>> {
    let mut received = Received::new(2400);
    let mut all = Vec::new();
    while socket.receive(&mut received).unwrap() > 0 {
        all.extend(received.iter().flatten().map(|(_, frame)| frame.to_vec()));
    }
    let kind = |frame: &[u8]| Some(u16::from_be_bytes(frame.get(12..14)?.try_into().ok()?));
    all.retain(|frame| kind(frame).is_some_and(|kind| KINDS.contains(&kind)));
    all
}

fn a_tap_device_replaces_veth() {
    let Some(mut emulator) = line(2, 1.0, (Joint::Tap, Card::Dcf)) else {
        return;
    };
    if let Some(said) = ping(&mut emulator, 1, 0) {
        assert!(said.contains("3 received"), "{said}");
    }
}

/// Goal: the class of a packet socket decides the access category of its frames, over both kinds of interface. Method: a frame for control
/// leaves behind thirty of best effort, which take some 70 ms of air.
fn urgent_frames_overtake_others() {
    for joint in [Joint::Veth, Joint::Tap] {
        let places = [Card::Dcf, Card::Edca].map(|card| place_of_the_last((joint, card)));
        let [Some(dcf), Some(edca)] = places else {
            return;
        };
        println!("  {joint:?}: place {dcf} without categories, {edca} with them");
        assert!(dcf == 30 && edca < 15, "{joint:?}: {dcf} {edca}");
    }
}

/// Among the frames that arrived: the place of the one that left last.
fn place_of_the_last(how: (Joint, Card)) -> Option<usize> {
    let mut emulator = line(2, 1.0, how)?;
    let open = || {
        let interface = Interface::find(INTERFACE).unwrap();
        let mut socket = packet::open(&interface, KINDS[0], packet::Framing::Payload).unwrap();
        assert!(wireless::leads_to_radio(INTERFACE));
        socket.tag_priorities();
        socket
    };
    let [mut sender, receiver] = [0, 1].map(|node| emulator.host(node).unwrap().run(open).unwrap());
    let to = Endpoint::Ethernet(Address::node(1).to_eui48());
    let mut send = |class, octets: &[u8], count| {
        sender.set_class(class).unwrap();
        let frames = std::iter::repeat_n((octets, to), count);
        assert_eq!(sender.send(frames).unwrap(), count);
    };
    send(Class::Data, &[1; 2272], 30);
    send(Class::Control, &[2; 100], 1);
    let (mut received, mut seen) = (Received::new(2400), Vec::new());
    let limit = emulator.clock().now() + PATIENCE;
    while seen.len() < 31 && emulator.clock().now() < limit {
        let soon = emulator.clock().now() + Duration::from_millis(20);
        emulator.run(Some(soon)).unwrap();
        while receiver.receive(&mut received).unwrap() > 0 {
            seen.extend(received.iter().flatten().map(|(_, octets)| octets[0]));
        }
    }
    assert_eq!(seen.len(), 31);
    seen.iter().position(|&first| first == 2)
}

/// Goal: the first packets over a lossy hop do not wait for the kernel's second between two requests of ARP. Method: a ping to an address
/// that no host has, and a neighbour that counts the requests. (The kernel sends three in three seconds, and then gives up.)
fn lost_requests_of_arp_are_repeated_soon() {
    let Some(mut emulator) = line(2, 1.0, (Joint::Veth, Card::Dcf)) else {
        return;
    };
    let open = || {
        let interface = Interface::find(INTERFACE).unwrap();
        packet::open(&interface, packet::ALL, packet::Framing::Whole).unwrap()
    };
    let socket = emulator.host(1).unwrap().run(open).unwrap();
    let absent = address(7).to_string();
    // ping ends with the kernel's report that the address is unreachable.
    let words = ["ping", "-n", "-c", "1", "-W", "30", &absent];
    if run(&mut emulator, 0, &words).is_none() {
        return;
    }
    let (mut received, mut requests) = (Received::new(2400), 0);
    while socket.receive(&mut received).unwrap() > 0 {
        let frames = received.iter().flatten().map(|(_, frame)| frame);
        // The EtherType of ARP, and the operation: a request.
        let asks =
            |frame: &[u8]| frame.get(12..14) == Some(&[8, 6]) && frame.get(20..22) == Some(&[0, 1]);
        requests += frames.filter(|frame| asks(frame)).count();
    }
    println!("  {requests} requests");
    assert!((10..=30).contains(&requests), "{requests}");
}
