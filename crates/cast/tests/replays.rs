//! Recorded frames, sent again and again, over many transfers.
//!
//! Goal: whoever records all frames of a group, and has no key, can neither bring back an old version of a file, nor make a transfer
//! fail, nor draw the members' frames to its host. Method: a recorder on the bridge's ports hears every frame of the members,
//! unicasts included. A stranger sends them again from its own address, to where they went: half of them frames of the last moments,
//! half of any time. Meanwhile a sender sends version after version of a file over a relay to two receivers; each member has a new
//! life for each version.
//!
//! `CAST_REPLAYS=1000000 cargo test --release -p chappe-cast --test replays` is the long form; `CAST_SEED` selects another course.

mod common;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration as Pause;

use chappe_cast::event::{Event, Summary};
use chappe_cast::{Ending, Options, receive, relay, send};
use chappe_core::{DropReason, Drops, Duration, Purpose, Seed, Stream};
use chappe_live::Group;
use chappe_sys::packet::{self, Framing};
use chappe_sys::{Endpoint, Interface, Received, udp};
use common::{Network, Notes, Place, same};

fn main() {
    common::run(&[("replays_over_many_transfers", replays_over_many_transfers)]);
}

/// The sender, the relay, and the receivers, of which the last hears the relay only.
const MEMBERS: u16 = 4;
const RECEIVERS: [u16; 2] = [2, 3];
/// The host without a key.
const STRANGER: u16 = 4;
/// Octets of the headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;
/// Largest number of frames that the recorder keeps, of all times alike.
const KEPT: usize = 20_000;
/// Frames of the last moments.
const RECENT: usize = 100;
/// The bits of a frame's first octet that are its type, and the type of what a member says to another (`frame.rs` of the link).
const KIND: u8 = 0b111;
const UNICAST: u8 = 1;
/// Frames that the stranger sends in a millisecond, if its queue takes them.
const PER_MS: usize = 10;

fn options(place: &Place, node: u16) -> Options {
    let share = |other: u16| match (node.min(other), node.max(other)) {
        (0, 3) => 1.0,
        _ => 0.1,
    };
    let lose: Vec<(u16, f64)> = (0..MEMBERS).map(|other| (other, share(other))).collect();
    Options {
        measuring: Duration::from_millis(300),
        ..place.options(node, 8_000_000, &lose)
    }
}

/// A recorded frame: its octets behind the headers, and the address that it went to.
type Recorded = (Vec<u8>, Ipv4Addr);

/// What has been recorded: frames of all times, and those of the last moments.
#[derive(Default)]
struct Tape {
    all: Vec<Recorded>,
    recent: Vec<Recorded>,
    heard: u64,
}

impl Tape {
    fn add(&mut self, frame: &Recorded, random: &mut Stream) {
        self.heard += 1;
        self.recent.push(frame.clone());
        self.recent
            .drain(..self.recent.len().saturating_sub(RECENT));
        // Each frame ever heard is kept with the same probability (reservoir sampling).
        let place = random.below(self.heard) as usize;
        if self.all.len() < KEPT {
            self.all.push(frame.clone());
        } else if let Some(kept) = self.all.get_mut(place) {
            *kept = frame.clone();
        }
    }

    fn draw(&self, random: &mut Stream) -> Option<Recorded> {
        let from = match random.chance(0.5) {
            true => &self.all,
            false => &self.recent,
        };
        from.get(random.below(from.len().max(1) as u64) as usize)
            .cloned()
    }
}

fn replays_over_many_transfers() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let wanted: u64 = number("CAST_REPLAYS").unwrap_or(20_000);
    let seed: u64 = number("CAST_SEED").unwrap_or(1);
    let (network, place) = (Network::new(5), Place::new("replays"));
    let campaign = Campaign::default();
    let mut seconds = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| network.hub.run(|| campaign.record(seed)).unwrap());
        let host = &network.hosts[usize::from(STRANGER)];
        scope.spawn(|| host.run(|| campaign.replay(seed)).unwrap());
        scope.spawn(|| host.run(|| campaign.count_drawn()).unwrap());
        let mut versions = 0;
        while campaign.sent.load(Ordering::SeqCst) < wanted || versions < 3 {
            versions += 1;
            // The first transfer is recorded, and nothing is replayed yet.
            campaign.replays.store(versions > 1, Ordering::SeqCst);
            let summary = campaign.transfer(&network, &place, versions);
            seconds.push(summary.seconds);
        }
        campaign.over.store(true, Ordering::SeqCst);
    });
    campaign.report(&mut seconds);
}

#[derive(Default)]
struct Campaign {
    over: AtomicBool,
    /// Whether the stranger sends.
    replays: AtomicBool,
    sent: AtomicU64,
    /// Frames of members that were addressed to the stranger.
    drawn: AtomicU64,
    /// Of these, what was meant for a member, such as acknowledgements; the others answer what was replayed.
    diverted: AtomicU64,
    tape: Mutex<Tape>,
    /// What members have dropped while frames were replayed.
    dropped: Mutex<Drops>,
}

impl Campaign {
    /// Records what the members send, on the bridge's ports.
    fn record(&self, seed: u64) {
        let port = |number: u16| {
            let interface = Interface::find(&format!("p{number}")).unwrap();
            packet::open(&interface, packet::ALL, Framing::Whole).unwrap()
        };
        let sockets: Vec<_> = (0..MEMBERS).map(port).collect();
        let mut random = Seed(seed).stream(Purpose::Fault);
        let mut received = Received::new(1514);
        while !self.over.load(Ordering::SeqCst) {
            for socket in &sockets {
                while socket.receive(&mut received).unwrap() > 0 {
                    let frames = received.iter().flatten();
                    let frames: Vec<Recorded> =
                        frames.filter_map(|(_, frame)| payload(frame)).collect();
                    let mut tape = self.tape.lock().unwrap();
                    frames.iter().for_each(|frame| tape.add(frame, &mut random));
                }
            }
            thread::sleep(Pause::from_millis(1));
        }
    }

    /// Sends recorded frames again.
    fn replay(&self, seed: u64) {
        let interface = Interface::find("eth0").unwrap();
        let (socket, everybody) = udp::open(&interface, 1794, Group::Broadcast).unwrap();
        let mut random = Seed(seed + 1).stream(Purpose::Fault);
        let mut received = Received::new(1500);
        while !self.over.load(Ordering::SeqCst) {
            thread::sleep(Pause::from_millis(1));
            // What comes is of no use, but a full queue would hide what is drawn here.
            while socket.receive(&mut received).unwrap() > 0 {}
            if !self.replays.load(Ordering::SeqCst) {
                continue;
            }
            let frames: Vec<Recorded> = {
                let tape = self.tape.lock().unwrap();
                (0..PER_MS).filter_map(|_| tape.draw(&mut random)).collect()
            };
            let target = |to: &Ipv4Addr| match to.octets() {
                [10, 0, 0, host] if u16::from(host) < MEMBERS => {
                    Endpoint::Udp(SocketAddr::from((*to, 1794)))
                }
                _ => everybody,
            };
            let frames = frames.iter().map(|(frame, to)| (&frame[..], target(to)));
            let taken = socket.send(frames).unwrap_or(0);
            self.sent.fetch_add(taken as u64, Ordering::SeqCst);
        }
    }

    /// Counts the frames that members send to the stranger's address.
    fn count_drawn(&self) {
        let interface = Interface::find("eth0").unwrap();
        let socket = packet::open(&interface, packet::ALL, Framing::Whole).unwrap();
        let mut received = Received::new(1514);
        let own = Ipv4Addr::new(10, 0, 0, STRANGER as u8);
        while !self.over.load(Ordering::SeqCst) {
            while socket.receive(&mut received).unwrap() > 0 {
                let frames = received
                    .iter()
                    .flatten()
                    .filter_map(|(_, frame)| payload(frame));
                for (frame, _) in frames.filter(|(_, to)| *to == own) {
                    let diverted = frame.first().is_some_and(|kind| kind & KIND == UNICAST);
                    self.diverted
                        .fetch_add(u64::from(diverted), Ordering::SeqCst);
                    self.drawn.fetch_add(1, Ordering::SeqCst);
                }
            }
            thread::sleep(Pause::from_millis(1));
        }
    }

    /// Sends a version of the file to both receivers, and checks that they have this one.
    fn transfer(&self, network: &Network, place: &Place, version: u32) -> Summary {
        let file = place.file("a.bin", 200_000 + version as usize);
        let summary = thread::scope(|scope| {
            let notes = Notes::default();
            let mut watch = notes.clone();
            let relaying = options(place, 1);
            let relay = scope.spawn(move || {
                network.hosts[1]
                    .run(|| relay(&relaying, &mut watch))
                    .unwrap()
            });
            let receivers = RECEIVERS.map(|node| {
                let (options, folder) = (options(place, node), place.folder(&format!("r{node}")));
                scope.spawn(move || self.receive(network, place, &options, folder))
            });
            let sending = place.sending(std::slice::from_ref(&file), RECEIVERS.len());
            let mut watch = Notes::default();
            let run = || send(&options(place, 0), &sending, &mut watch);
            let (_, summary) = network.hosts[0].run(run).unwrap().unwrap();
            for receiver in receivers {
                receiver.join().unwrap();
            }
            notes.stop();
            assert_eq!(relay.join().unwrap(), Ok(Ending::Stopped));
            summary
        });
        assert_eq!(summary.complete, RECEIVERS, "version {version}");
        assert_eq!(summary.receipts, RECEIVERS, "version {version}");
        for node in RECEIVERS {
            let path = place.path(&format!("r{node}/a.bin"));
            assert!(same(&file, &path), "version {version} of {node}");
        }
        summary
    }

    fn receive(&self, network: &Network, place: &Place, options: &Options, folder: PathBuf) {
        let mut receiving = place.receiving(&folder);
        receiving.overwrite = true;
        let mut notes = Notes::default();
        let host = &network.hosts[usize::from(options.seat.node)];
        let ended = host
            .run(|| receive(options, &receiving, &mut notes))
            .unwrap();
        assert_eq!(ended, Ok(Ending::Done));
        let is_install = |event: &Event| matches!(event, Event::Installed { .. });
        assert_eq!(notes.count(is_install), 1, "one version is installed");
        let drops = *notes.drops.lock().unwrap();
        if self.replays.load(Ordering::SeqCst) {
            let mut sum = self.dropped.lock().unwrap();
            for why in DropReason::ALL {
                for _ in 0..drops.of(why) {
                    sum.count(why);
                }
            }
        }
        assert!(
            fs::read_dir(folder).unwrap().count() <= 2,
            "the file, and our folder"
        );
    }

    fn report(&self, seconds: &mut [f64]) {
        let (sent, drawn) = (
            self.sent.load(Ordering::SeqCst),
            self.drawn.load(Ordering::SeqCst),
        );
        let (first, rest) = seconds.split_first_mut().unwrap();
        rest.sort_by(f64::total_cmp);
        let (median, worst) = (rest[rest.len() / 2], rest[rest.len() - 1]);
        println!(
            "  {sent} frames replayed in {} transfers, all versions right",
            rest.len()
        );
        println!(
            "  {first:.2} s without replays; with them {median:.2} s in the median, {worst:.2} s at most"
        );
        let dropped = self.dropped.lock().unwrap();
        let counts = DropReason::ALL.iter().filter(|why| dropped.of(**why) > 0);
        let counts: Vec<String> = counts
            .map(|why| format!("{} {}", dropped.of(*why), why.name()))
            .collect();
        println!("  dropped by the receivers: {}", counts.join(", "));
        let diverted = self.diverted.load(Ordering::SeqCst);
        println!("  {drawn} frames went to the stranger, {diverted} of them meant for a member");
        let all: u64 = DropReason::ALL.iter().map(|why| dropped.of(*why)).sum();
        assert!(all > sent / 4, "the replays have arrived: {all} of {sent}");
        // A frame that got lost, and is replayed before the next one, shows the wrong place until then.
        assert!(
            drawn < sent / 10,
            "members answer the stranger: {drawn} of {sent}"
        );
        assert!(
            diverted < sent / 200,
            "unicasts go to the stranger: {diverted} of {sent}"
        );
    }
}

/// The octets behind the headers of a UDP packet to the group's port, and the address that it goes to.
fn payload(frame: &[u8]) -> Option<Recorded> {
    let (header, octets) = frame.split_at_checked(HEADERS)?;
    let is_ours = header[12..15] == [8, 0, 0x45]
        && header[23] == 17
        && header[36..38] == 1794u16.to_be_bytes();
    let to = Ipv4Addr::new(header[30], header[31], header[32], header[33]);
    is_ours.then(|| (octets.to_vec(), to))
}
