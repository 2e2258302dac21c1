//! Robustness: crashes at any moment, forged frames, and a member that pollutes batches.
//!
//! Goal: every receiver ends with the right files, whatever happens meanwhile. Method: members in namespaces as in
//! `transfers.rs`; members that are killed are separate processes. All choices come from seeds.

mod common;

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as Pause, Instant as Moment};

use chappe_cast::event::Event;
use chappe_cast::member::{Member, Settings};
use chappe_cast::roster::Roles;
use chappe_cast::{Ending, Options, receive, relay, send};
use chappe_core::{
    Address, Bitrate, Classes, DropReason, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Purpose, Seed, Wake,
};
use chappe_live::{Carrier, Config, Group, Live, Pace, Port};
use chappe_sys::{Endpoint, Interface, Received, udp};
use common::{Network, Notes, Place, same};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, role, node, place] = &words[..]
        && flag == "--member"
    {
        return member(role, node.parse().unwrap(), &Place::at(place));
    }
    common::run(&[
        ("twenty_kills", twenty_kills),
        (
            "foreign_frames_are_only_counted",
            foreign_frames_are_only_counted,
        ),
        (
            "a_polluting_relay_only_costs_time",
            a_polluting_relay_only_costs_time,
        ),
    ]);
}

/// Sender 0 and relay 1 hear each other, the receivers 2 and 3 hear the relay only; 10 % lost everywhere.
fn line_options(place: &Place, node: u16) -> Options {
    let share = |other: u16| match (node.min(other), node.max(other)) {
        (0, 2 | 3) => 1.0,
        _ => 0.1,
    };
    let lose: Vec<(u16, f64)> = (0..4).map(|other| (other, share(other))).collect();
    Options {
        measuring: Duration::from_millis(300),
        ..place.options(node, 4_000_000, &lose)
    }
}

/// A process that is going to be killed.
fn member(role: &str, node: u16, place: &Place) {
    let options = line_options(place, node);
    let ended = match role {
        "send" => {
            let sending = place.sending(&[place.path("a.bin")], 2);
            send(&options, &sending, &mut Quiet).map(|(end, _)| end)
        }
        "relay" => relay(&options, &mut Quiet),
        _ => receive(
            &options,
            &place.receiving(&place.folder(&format!("r{node}"))),
            &mut Quiet,
        ),
    };
    ended.unwrap();
}

struct Quiet;

impl chappe_cast::Watch for Quiet {
    fn event(&mut self, event: Event) {
        if std::env::var_os("CAST_LOUD").is_some() {
            eprintln!("{event:?}");
        }
    }
}

/// Twenty `kill -9`, 100 to 400 ms apart, of the sender, the relay or a receiver, each started again at once.
fn twenty_kills() {
    let (network, place) = (Network::new(4), Place::new("kills"));
    let file = place.file("a.bin", 1_200_000);
    let start = |node: u16| -> Child {
        let role = ["send", "relay", "receive", "receive"][usize::from(node)];
        let run = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--member", role, &node.to_string()])
                .arg(place.path(""));
            command.stdin(Stdio::null()).spawn().unwrap()
        };
        network.hosts[usize::from(node)].run(run).unwrap()
    };
    let mut members: Vec<Child> = (0..4).map(start).collect();
    let mut random = Seed(8).stream(Purpose::Fault);
    let mut kills = [0; 4];
    while kills.iter().sum::<i32>() < 20 {
        thread::sleep(Pause::from_millis(100 + random.below(300)));
        let victim = random.below(4) as usize;
        let child = &mut members[victim];
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills[victim] += 1;
        }
        *child = start(victim as u16);
    }
    let begun = Moment::now();
    let there = |node: u16| place.path(&format!("r{node}/a.bin")).exists();
    while !(there(2) && there(3)) {
        assert!(
            begun.elapsed() < Pause::from_secs(60),
            "not there a minute after the last kill"
        );
        thread::sleep(Pause::from_millis(20));
    }
    println!(
        "  killed {kills:?}; all there {:.1} s after the last",
        begun.elapsed().as_secs_f64()
    );
    for mut child in members {
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(same(&file, &place.path("r2/a.bin")) && same(&file, &place.path("r3/a.bin")));
}

/// 10,000 random, 10,000 mutated and 1,000 replayed frames a second during a transfer: they are only counted.
fn foreign_frames_are_only_counted() {
    let (network, place) = (Network::new(4), Place::new("strangers"));
    let file = place.file("a.bin", 400_000);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| network.hosts[3].run(|| flood(&done)).unwrap());
        let receivers: Vec<_> = [1, 2]
            .map(|node| {
                let (network, place) = (&network, &place);
                scope.spawn(move || {
                    let folder = place.folder(&format!("r{node}"));
                    let (options, mut notes) = (
                        place.options(node, 4_000_000, &[(0, 0.1)]),
                        Notes::default(),
                    );
                    let run = || receive(&options, &place.receiving(&folder), &mut notes);
                    assert_eq!(
                        network.hosts[usize::from(node)].run(run).unwrap(),
                        Ok(Ending::Done)
                    );
                    *notes.drops.lock().unwrap()
                })
            })
            .into();
        let (options, sending) = (
            place.options(0, 4_000_000, &[]),
            place.sending(std::slice::from_ref(&file), 2),
        );
        let run = || send(&options, &sending, &mut Notes::default());
        let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
        assert_eq!(summary.complete, [1, 2]);
        done.store(true, Ordering::SeqCst);
        let (sent, seconds) = flood.join().unwrap();
        for receiver in receivers {
            let drops = receiver.join().unwrap();
            let [malformed, forged, repeated] = [
                DropReason::Malformed,
                DropReason::Unauthentic,
                DropReason::Duplicate,
            ]
            .map(|why| drops.of(why));
            println!("  {malformed} malformed, {forged} forged, {repeated} repeated");
            assert!(malformed > 1000 && forged > 1000 && repeated > 100);
        }
        println!(
            "  {sent} frames of the stranger in {seconds:.1} s; {:.1} s for the file",
            summary.seconds
        );
    });
    assert!(same(&file, &place.path("r1/a.bin")) && same(&file, &place.path("r2/a.bin")));
}

/// Sends random, mutated and replayed frames until `done`. Returns their number and the duration.
fn flood(done: &AtomicBool) -> (u64, f64) {
    let interface = Interface::find("eth0").unwrap();
    let (socket, everybody) = udp::open(&interface, 1794, Group::Broadcast).unwrap();
    let mut received = Received::new(1500);
    let mut random = Seed(9).stream(Purpose::Fault);
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let (begun, mut sent) = (Moment::now(), 0u64);
    while !done.load(Ordering::SeqCst) {
        while socket.receive(&mut received).unwrap() > 0 {
            // Its own broadcasts come back as well: only those of members are of use to it.
            let ours = Ipv4Addr::new(10, 0, 0, 3);
            let of_members = |(at, _): &(Endpoint, &[u8])| match at {
                Endpoint::Udp(address) => address.ip() != ours,
                Endpoint::Ethernet(_) => false,
            };
            let frames = received.iter().flatten().filter(of_members);
            let frames = frames.map(|(_, frame)| frame.to_vec());
            heard.extend(frames);
            heard.drain(..heard.len().saturating_sub(50));
        }
        // As many as are due: 21 in a millisecond.
        let due = (begun.elapsed().as_secs_f64() * 21_000.0) as u64;
        while sent < due {
            let mut frames = Vec::new();
            for number in 0..21 {
                let known = heard
                    .get(random.below(heard.len() as u64) as usize)
                    .filter(|_| number % 2 == 1);
                let mut frame = known.cloned().unwrap_or_else(|| {
                    let mut noise = vec![0; 1 + random.below(300) as usize];
                    random.fill(&mut noise);
                    noise
                });
                if number != 19 {
                    let bit = random.below(frame.len() as u64 * 8) as usize;
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
                frames.push(frame);
            }
            // A queue that is full takes fewer.
            sent += socket
                .send(frames.iter().map(|frame| (&frame[..], everybody)))
                .unwrap()
                .max(1) as u64;
        }
        thread::sleep(Pause::from_millis(1));
    }
    (sent, begun.elapsed().as_secs_f64())
}

/// A member of the group that relays and alters an octet of many frames that it forwards.
struct Liar {
    member: Member,
    bent: u32,
}

impl LinkNode for Liar {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        self.member.handle_link(now, event);
    }

    fn pending(&self) -> Classes {
        self.member.pending()
    }

    fn poll_link(&mut self, now: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        let send = self.member.poll_link(now, allowed, sdu)?;
        // Data frames are the long ones; each fifth of the first hundred and fifty is bent.
        if send.len > 1000 && self.bent < 150 {
            self.bent += 1;
            if self.bent.is_multiple_of(5) {
                sdu[send.len - 1] ^= 0x55;
            }
        }
        Some(send)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.member.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.member.poll_timeout()
    }
}

/// Everything that the receiver hears comes through the polluting relay.
fn a_polluting_relay_only_costs_time() {
    let (network, place) = (Network::new(3), Place::new("liar"));
    let file = place.file("a.bin", 600_000);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| network.hosts[1].run(|| lie(&place, &done)).unwrap());
        let (notes, folder) = (Notes::default(), place.folder("r2"));
        let (options, receiving) = (
            place.options(2, 8_000_000, &[(0, 1.0)]),
            place.receiving(&folder),
        );
        let (at, mut watch) = (&network.hosts[2], notes.clone());
        let receiver = scope.spawn(move || {
            at.run(|| receive(&options, &receiving, &mut watch))
                .unwrap()
        });
        let options = place.options(0, 8_000_000, &[(2, 1.0)]);
        let sending = place.sending(std::slice::from_ref(&file), 1);
        let (_, summary) = network.hosts[0]
            .run(|| send(&options, &sending, &mut Notes::default()))
            .unwrap()
            .unwrap();
        assert_eq!(summary.complete, [2]);
        assert_eq!(receiver.join().unwrap(), Ok(Ending::Done));
        done.store(true, Ordering::SeqCst);
        let polluted = notes.count(|event| matches!(event, Event::Polluted { .. }));
        println!(
            "  {polluted} batches were wrong and fetched again, {:.1} s",
            summary.seconds
        );
        assert!(polluted > 0);
    });
    assert!(same(&file, &place.path("r2/a.bin")));
}

fn lie(place: &Place, done: &AtomicBool) {
    let port = Port::open("eth0", Address::node(1), Carrier::UDP).unwrap();
    let settings = Settings {
        seat: place.options(1, 1_000_000, &[]).seat,
        roles: Roles::default(),
        frame_max: port.caps().frame_max,
        memory: 8_000_000,
        rate: Bitrate(8_000_000),
        shared: false,
    };
    let member = Member::new(settings, Seed(3).stream(Purpose::Node(1)));
    let config = Config {
        signals: false,
        observe_every: Duration::from_millis(50),
        ..Config::new(
            Pace::Rate(Bitrate(8_000_000)),
            place.options(1, 1_000_000, &[]).seat.membership(),
        )
    };
    let mut live = Live::new(config, port, Box::new(Liar { member, bent: 0 })).unwrap();
    let ending = live.run(|liar, now, statistics| {
        liar.member.observe(now, statistics);
        match done.load(Ordering::SeqCst) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    ending.unwrap();
}
