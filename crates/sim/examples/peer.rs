//! Chappe's side of `cargo xtask peers`: one run of a scenario that ns-3 runs too.
//!
//! ```text
//! cargo run --release -p chappe-sim --example peer -- plan SCENARIO SEED > FILE    the network and its load
//! cargo run --release -p chappe-sim --example peer -- run SCENARIO SEED [KEY=VALUE...]
//! ```
//!
//! | scenario | what it is |
//! |---|---|
//! | `broadcast` | 50 nodes in 1000 x 1000 m, ten saturated broadcasters of 1500 octets at 2 Mbit/s: [`Profile::ns3_rayleigh`] |
//! | `cell` | 20 saturated stations on a circle around one sink, 1000 octets at 2 Mbit/s, acknowledged: [`Profile::ns3_yans`] |
//! | `broadcast-ofdm` | the first with OFDM at 24 Mbit/s |
//! | `cell-ofdm` | the second with OFDM at 24 Mbit/s |
//! | `broadcast-ht`, `cell-ht` | the same with 802.11n at 26 Mbit/s and EDCA's best effort; no aggregation |
//! | `cell-ampdu` | the cell with 802.11n at 26 Mbit/s and A-MPDUs of up to 16 frames |
//! | `dot15d4` | 139 nodes in 465 x 465 m, each broadcasts 100 octets a second with CSMA-CA: [`Profile::ieee_e418`] |
//!
//! A run prints processor seconds, the lengths of frames on the air, and for each node the data frames that it sent and those
//! that it received; in the cell, those of its own that the sink received. `peers/plan.h` prints the same for ns-3.
//! Keys change the scenario, to find out what a difference comes from: `eifs`, `cca_us`, `early_timeout` and `difs_backoff` of our
//! MAC, `profile` (a name), `lock_sinr`, `lock_power` and `fading=none` of our radios; `carrier_sense`, `senders` and `seconds` of
//! both sides, `cca_sensitivity` (a second threshold) of ns-3's.

use chappe_core::{
    Address, Class, Classes, Db, Dbm, Duration, Instant, LinkEvent, LinkNode, LinkSend, Mac,
    OverMac, Purpose, RadioNode, Rate, Seed, Stream, Wake,
};
use chappe_mac::dot11::{Category, Config, Counters, Dot11, Edca};
use chappe_mac::dot15d4;
use chappe_sim::{
    AirTime, Fading, Medium, PathLoss, Position, Profile, Simulator, World, topology,
};
use chappe_testkit::Saturated;
use chappe_testkit::processor::thread_time;

/// Frames in an A-MPDU of `cell-ampdu`.
const AMPDU: usize = 16;
/// Seconds before counting begins.
const WARM: u64 = 1;
/// Octets of an SDU that makes a PSDU of 100 octets: nine of header, two of check sequence.
const SDU_DOT15D4: usize = 89;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Broadcast,
    Cell,
    Dot15d4,
}

/// A scenario: what both sides must agree on.
struct Scenario {
    kind: Kind,
    /// Rate of all data frames of 802.11.
    rate: Rate,
    profile: Profile,
    positions: Vec<Position>,
    senders: usize,
    octets: usize,
    /// Octets that only Chappe's frames need for the same length: ns-3 sends HT in QoS data, whose header has two more.
    qos: usize,
    /// Most frames in an A-MPDU; zero for none.
    ampdu: usize,
    seconds: u64,
    /// ns-3's second threshold of carrier sense; Chappe has one.
    cca_sensitivity: Dbm,
}

impl Scenario {
    fn new(name: &str, seed: Seed) -> Option<Scenario> {
        let ampdu = name.strip_suffix("-ampdu");
        let ht = name.strip_suffix("-ht").or(ampdu);
        if let Some(usual) = name.strip_suffix("-ofdm").or(ht) {
            let mut scenario = Scenario::new(usual, seed)?;
            scenario.rate = match ht {
                Some(_) => Rate::Ht3,
                None => Rate::Ofdm24,
            };
            // A-MPDUs have QoS control of their own.
            scenario.qos = if ht.is_some() && ampdu.is_none() {
                2
            } else {
                0
            };
            scenario.ampdu = if ampdu.is_some() { AMPDU } else { 0 };
            // Ten times the frames in a second.
            scenario.seconds /= 4;
            // kTB of 290 K in 20 MHz, and ns-3's noise figure of 7 dB.
            scenario.profile.noise = Dbm(-93.97);
            return Some(scenario);
        }
        let mut scenario = match name {
            "broadcast" => Scenario {
                kind: Kind::Broadcast,
                rate: Rate::Dsss2,
                profile: Profile::ns3_rayleigh(),
                positions: topology::random(50, 1000.0, 1000.0, seed),
                senders: 10,
                octets: 1500,
                qos: 0,
                ampdu: 0,
                seconds: 20,
                cca_sensitivity: Dbm(0.0),
            },
            "cell" => Scenario {
                kind: Kind::Cell,
                rate: Rate::Dsss2,
                // ns-3's frame capture model is off unless asked for.
                profile: Profile {
                    capture: None,
                    ..Profile::ns3_yans()
                },
                positions: circle(20, 2.0),
                senders: 20,
                octets: 1000,
                qos: 0,
                ampdu: 0,
                seconds: 60,
                cca_sensitivity: Dbm(0.0),
            },
            "dot15d4" => Scenario {
                kind: Kind::Dot15d4,
                rate: Rate::Oqpsk250,
                profile: Profile::ieee_e418(),
                positions: topology::random(139, 465.0, 465.0, seed),
                senders: 139,
                octets: SDU_DOT15D4,
                qos: 0,
                ampdu: 0,
                seconds: 100,
                cca_sensitivity: Dbm(0.0),
            },
            _ => return None,
        };
        scenario.cca_sensitivity = scenario.profile.carrier_sense;
        Some(scenario)
    }
}

impl Scenario {
    /// Octets of a subframe of an A-MPDU: delimiter, header with QoS control, LLC, SDU, check sequence, padding.
    fn subframe(&self) -> usize {
        4 + (26 + 8 + self.octets + 4).next_multiple_of(4)
    }
}

/// `stations` on a circle, and the sink in its middle as the last node. All are as strong at the sink, so no collision has a
/// winner.
fn circle(stations: usize, radius: f64) -> Vec<Position> {
    let place = |i: usize| {
        let angle = std::f64::consts::TAU * i as f64 / stations as f64;
        Position::new(radius * angle.cos(), radius * angle.sin())
    };
    let centre = Position::new(0.0, 0.0);
    (0..stations).map(place).chain([centre]).collect()
}

/// When a node's first periodic frame is due.
fn phase(seed: Seed, node: usize) -> u64 {
    seed.child(1)
        .stream(Purpose::Node(node as u32))
        .below(1_000_000_000)
}

fn print_plan(scenario: &Scenario, seed: Seed) {
    let Scenario { profile, .. } = scenario;
    println!("warm {WARM}\nseconds {}", scenario.seconds);
    println!("senders {}\noctets {}", scenario.senders, scenario.octets);
    println!("power {}\nperiod 1", profile.power.0);
    println!("carrier_sense {}", profile.carrier_sense.0);
    println!("cca_sensitivity {}", scenario.cca_sensitivity.0);
    let mcs = Rate::HT.iter().position(|&rate| rate == scenario.rate);
    if let Some(mcs) = mcs {
        println!("ht {mcs}");
        println!("ampdu {}", scenario.ampdu * scenario.subframe());
    } else if scenario.rate.is_ofdm() {
        println!("ofdm {}", scenario.rate.bitrate().0 / 1_000_000);
    }
    // `-inf` is no number for streams of C++.
    println!("lock_sinr {}", profile.lock.sinr.0.max(-1000.0));
    println!("lock_power {}", profile.lock.power.0.max(-1000.0));
    if let PathLoss::TwoRayGround { hertz, height } = profile.path_loss {
        println!("hertz {hertz}\nheight {height}");
    }
    for place in &scenario.positions {
        println!("place {} {}", place.x, place.y);
    }
    if scenario.kind == Kind::Dot15d4 {
        for node in 0..scenario.positions.len() {
            println!("phase {}", phase(seed, node));
        }
    }
}

/// Broadcasts one SDU a second, and counts what it hears. A frame that finds its predecessor waiting waits behind it.
struct Beacon {
    next: Instant,
    waiting: u32,
    received: u64,
}

impl LinkNode for Beacon {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        if let LinkEvent::Received(_) = event {
            self.received += 1;
        }
    }

    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.waiting > 0)
    }

    fn poll_link(&mut self, _: Instant, _: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        self.waiting = self.waiting.checked_sub(1)?;
        sdu.get_mut(..SDU_DOT15D4)?.fill(0xa5);
        Some(LinkSend {
            to: Address::BROADCAST,
            len: SDU_DOT15D4,
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.next += Duration::from_secs(1);
            self.waiting += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Some(Wake {
            at: self.next,
            why: "beacon",
        })
    }
}

/// Runs a network: after the warm-up `(frames sent, frames received)` of each node over the scenario's seconds, as `counts`
/// reads them off a node and its radio, and the processor seconds of those.
fn run<N: RadioNode>(
    scenario: &Scenario,
    nodes: Vec<Box<N>>,
    seed: Seed,
    counts: impl Fn(&Simulator<N>) -> Vec<(u64, u64)>,
) {
    let medium = Medium::geometric(&scenario.positions, &scenario.profile, seed).unwrap();
    let world = World {
        frame_max: Config::ampdu_len(scenario.ampdu.max(1)),
        ..World::new(medium)
    };
    let mut simulator = Simulator::new(world, nodes, seed, ()).unwrap();
    simulator.run_until(AirTime::from_secs(WARM));
    let before = counts(&simulator);
    let cpu = thread_time();
    simulator.run_until(AirTime::from_secs(WARM + scenario.seconds));
    let cpu = thread_time().zip(cpu).map(|(now, then)| now - then);
    println!("cpu {}", cpu.map_or(f64::NAN, |spent| spent.as_secs_f64()));
    for (then, now) in before.into_iter().zip(counts(&simulator)) {
        println!("node {} {}", now.0 - then.0, now.1 - then.1);
    }
}

/// The station of each kind: DCF, EDCA's best effort alone, or A-MPDUs.
fn run_dot11(scenario: &Scenario, config: Config, seed: Seed) {
    // Best effort of OFDM (dot11EDCATable, table 9-155); the station's other categories have nothing to send.
    let best_effort = |class| Category::of(class, 3, (15, 1023), 0);
    let categories = [
        Class::Background,
        Class::Data,
        Class::Urgent,
        Class::Control,
    ];
    let categories = categories.map(best_effort);
    match (scenario.ampdu, scenario.qos) {
        (0, 0) => run_stations(
            scenario,
            config,
            seed,
            |address, random| Dot11::new(config, address, random),
            Dot11::counters,
        ),
        (0, _) => run_stations(
            scenario,
            config,
            seed,
            |address, random| Edca::edca(config, categories, address, random),
            Edca::counters,
        ),
        (_, _) => run_stations(
            scenario,
            config,
            seed,
            |address, random| Dot11::<1, _, AMPDU>::aggregating(config, address, random),
            Dot11::counters,
        ),
    }
}

fn run_stations<M: Mac>(
    scenario: &Scenario,
    config: Config,
    seed: Seed,
    station: impl Fn(Address, Stream) -> M,
    counters: impl Fn(&M) -> &Counters,
) {
    let count = scenario.positions.len();
    let cell = scenario.kind == Kind::Cell;
    let to = match cell {
        true => Address::node(count as u16 - 1),
        false => Address::BROADCAST,
    };
    let node = |i: usize| {
        let link = match i < scenario.senders {
            true => Saturated::towards(to, scenario.octets + scenario.qos),
            false => Saturated::idle(),
        };
        let random = seed.stream(Purpose::Node(i as u32));
        let mac = station(Address::node(i as u16), random);
        Box::new(OverMac::new(mac, link))
    };
    let longest = match scenario.ampdu {
        0 => config
            .data
            .airtime(24 + 8 + scenario.octets + scenario.qos + 4),
        // The last subframe has no padding.
        _ => {
            let last = 4 + 26 + 8 + scenario.octets + 4;
            config
                .data
                .airtime((scenario.ampdu - 1) * scenario.subframe() + last)
        }
    };
    println!("data_us {}", longest.nanos() as f64 / 1e3);
    let ack = config.control.airtime(14).nanos() as f64 / 1e3;
    println!("ack_us {}", if cell { ack } else { 0.0 });
    let nodes = (0..count).map(node).collect();
    run(scenario, nodes, seed, |simulator| {
        let radios = &simulator.counters().nodes;
        let nodes = simulator.nodes().zip(radios).enumerate();
        nodes
            .map(|(i, (node, radio))| match (cell, i < scenario.senders) {
                (true, true) => (counters(&node.mac).data_sent, node.link.acknowledged()),
                (true, false) => (0, 0),
                (false, _) => (radio.frames, node.link.received),
            })
            .collect()
    });
}

fn run_dot15d4(scenario: &Scenario, seed: Seed) {
    let config = dot15d4::Config::STANDARD;
    let node = |i: usize| {
        let random = seed.stream(Purpose::Node(i as u32));
        let link = Beacon {
            next: Instant::from_nanos(phase(seed, i)),
            waiting: 0,
            received: 0,
        };
        let mac: dot15d4::Dot15d4 = dot15d4::Dot15d4::new(config, Address::node(i as u16), random);
        Box::new(OverMac::new(mac, link))
    };
    let us = dot15d4::Config::MODE.airtime(100).nanos() as f64 / 1e3;
    println!("data_us {us}\nack_us 0");
    let nodes = (0..scenario.positions.len()).map(node).collect();
    run(scenario, nodes, seed, |simulator| {
        let radios = &simulator.counters().nodes;
        let nodes = simulator.nodes().zip(radios);
        nodes
            .map(|(node, radio)| (radio.frames, node.link.received))
            .collect()
    });
}

/// A scenario with the keys applied.
fn change(scenario: &mut Scenario, config: &mut Config, argument: &str) -> Option<()> {
    let (key, value) = argument.split_once('=')?;
    match key {
        "eifs" => config.eifs = value.parse().ok()?,
        "cca_us" => config.cca_time = Duration::from_micros(value.parse().ok()?),
        "early_timeout" => config.early_timeout = value.parse().ok()?,
        "difs_backoff" => config.difs_backoff = value.parse().ok()?,
        "profile" => scenario.profile = Profile::named(value)?,
        "lock_sinr" => scenario.profile.lock.sinr = Db(value.parse().ok()?),
        "seconds" => scenario.seconds = value.parse().ok()?,
        "cca_sensitivity" => scenario.cca_sensitivity = Dbm(value.parse().ok()?),
        "senders" => scenario.senders = value.parse().ok()?,
        "fading" if value == "none" => scenario.profile.fading = Fading::None,
        "carrier_sense" => scenario.profile.carrier_sense = Dbm(value.parse().ok()?),
        "lock_power" => scenario.profile.lock.power = Dbm(value.parse().ok()?),
        _ => return None,
    }
    Some(())
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [what @ ("plan" | "run"), name, seed, keys @ ..] => start(what, name, seed, keys),
        _ => None,
    };
    match done {
        Some(()) => std::process::ExitCode::SUCCESS,
        None => {
            eprintln!(
                "usage: peer plan|run broadcast|cell|broadcast-ofdm|cell-ofdm|broadcast-ht|cell-ht|cell-ampdu|dot15d4 SEED [KEY=VALUE...]"
            );
            std::process::ExitCode::from(2)
        }
    }
}

fn start(what: &str, name: &str, seed: &str, keys: &[&str]) -> Option<()> {
    let seed = Seed(seed.parse().ok()?);
    let mut scenario = Scenario::new(name, seed)?;
    // As ns-3: the wait for an acknowledgement ends when none can begin any more, and acknowledgements go at the data's rate.
    let mut config = Config {
        early_timeout: true,
        ..Config::of_rate(scenario.rate)
    };
    config.control = match scenario.rate.is_ht() {
        true => chappe_core::Mode::long(Rate::Ofdm24),
        false => config.data,
    };
    if scenario.rate.is_ht() {
        config.aifsn = 3;
    }
    for key in keys {
        change(&mut scenario, &mut config, key)?;
    }
    match (what, scenario.kind) {
        ("plan", _) => print_plan(&scenario, seed),
        (_, Kind::Dot15d4) => run_dot15d4(&scenario, seed),
        (_, _) => run_dot11(&scenario, config, seed),
    }
    Some(())
}
