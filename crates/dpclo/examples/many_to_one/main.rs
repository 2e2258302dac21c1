//! The paper's large network: 108 nodes on 1250 m by 1250 m, seven sources, one sink, over 802.11b.
//!
//! ```text
//! cargo run --release -p chappe-dpclo --example many_to_one -- [SEED] [dcf|edca|edca-deaf|zmac|zmac-sparing|zmac-dear|zmac-open|zmac-short|zmac-lossy|bound] [SCHEME,...|all] [SETTING=VALUE]...
//! ```
//!
//! Rates in packets of 200 octets a second and mean delays in seconds, sources ordered by distance, farthest first. Radios
//! are ns-2's: 250 m to be heard, 550 m to be sensed, 2 Mbit/s. Places are drawn until all nodes are connected. Over ZMAC+ the
//! nodes find their time slots by DRAND in the first minute. Settings that can be changed: see `settings.rs`. `bound` instead of a MAC
//! prints what the best routes and schedule carry: when links whose ends are within 550 m cannot be used at the same time, and
//! when only senders that sense each other and data that would be destroyed exclude each other. Over `zmac-sparing` notifications of
//! contention reserve the time slots of the node that suffers alone, and a claim carries up to three frames, as the improved variant wants
//! it; `zmac-dear` has only these notifications; `zmac-open` has no notification of contention; over `zmac-short` nodes wait for 8 to 16 back-off slots in the time slots of others, instead of 8 to 32;
//! over `zmac-lossy` nodes notify of losses, and not of long waits.
//!
//! At the end of the line are rates from 5 s to 10 s of load, the start, whatever is counted otherwise, and for each source the longest
//! time in which none of its counted packets came.
//!
//! With `share=0.8` sources send that share of what the improved variant gives them when they always have something to send, at even
//! intervals, and delays contain the wait at the source.
//!
//! The scheme `planned` is not DPCLO: nodes know the optimum's paths and send at a share of its rates, without any control frame. It
//! prints the largest share of which the MAC loses less than 0.5 %, and with `climb=1` the same after single rates were raised as far
//! as that holds.

#[path = "../../tests/suite/common/loaded.rs"]
mod loaded;
#[path = "../../tests/suite/common/on_air.rs"]
mod on_air;
mod optimum;
mod planned;
mod scene;
mod settings;
#[path = "../../tests/suite/common/slotted.rs"]
mod slotted;

use chappe_core::{Class, Duration, Rate};
use chappe_dpclo::{Counters, Losses, Settings};
use chappe_mac::dot11::Config;
use chappe_mac::zmac::{self, Ecn};
use chappe_testkit::Words;
use on_air::{Access, Mesh, Played};
use scene::{Scene, scene};
use settings::{schemes, set};

/// Over ZMAC+ time slots stand by then, in seconds.
const SLOTS_S: u64 = 60;
/// Sources begin, counting begins, the run ends, in seconds since routing began. The paper: sources from 200 s to 300 s.
const TIMES_S: [u64; 3] = [60, 80, 180];
/// What a broadcast takes from the channel beside its octets, what an octet takes, and a packet of 200 octets with its
/// acknowledgement: see [`chappe_dpclo::AirtimeLaw`].
const BROADCAST_S: f64 = 696e-6;
const OCTET_S: f64 = 4e-6;
const DATA_S: f64 = 1.874e-3;

const USAGE: &str = "many_to_one [SEED] [dcf|edca|edca-deaf|zmac|zmac-sparing|zmac-dear|zmac-open|zmac-short|zmac-lossy] \
    [dpclo,single,improved,fusion,dclo,shortest|all|planned] [SETTING=VALUE]... | many_to_one SEED bound";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = Words::of_process(USAGE);
    let seed: u64 = words.next("SEED").unwrap_or(1);
    let mac: String = words.next("MAC").unwrap_or("dcf".into());
    if mac == "bound" {
        words.end();
        let scene = scene(seed)?;
        print_head(&scene, (seed, &mac), &[]);
        return optimum::print(&scene);
    }
    let wanted: Option<String> = words.next("SCHEME");
    let changes = words.rest();
    let access = access(&mac, &changes, &words);
    if wanted.as_deref() == Some("planned") {
        return plan((seed, &mac), access, &changes, &words);
    }
    let schemes = wanted_schemes(wanted.as_deref().unwrap_or("all"), &words);
    let runs = schemes.map(|(name, settings)| (name, changed(seed, settings, &changes, &words)));
    let runs: Vec<(&str, Run)> = runs.collect();
    let scene = scene(seed)?;
    print_head(&scene, (seed, &mac), &changes);
    let mut shared = None;
    for (name, run) in runs {
        let mut mesh = run.mesh(&scene, &mac);
        if let Some(share) = run.share {
            let rates = || rates(&mesh, access, config(&mac), share);
            mesh.rates = shared.get_or_insert_with(rates).clone();
        }
        let played = mesh.over(access, config(&mac));
        println!("{name:>8}: {}", report(&scene, &played));
    }
    Ok(())
}

fn print_head(scene: &Scene, (seed, mac): (u64, &str), changes: &[String]) {
    let hops: Vec<u16> = scene.sources.iter().map(|&(_, hops)| hops).collect();
    println!("seed {seed}, {mac}, hops {hops:?} {}", changes.join(" "));
}

/// The schemes of these names.
fn wanted_schemes(wanted: &str, words: &Words) -> impl Iterator<Item = (&'static str, Settings)> {
    let names: Vec<String> = wanted.split(',').map(Into::into).collect();
    let all = names == ["all"];
    for name in names.iter().filter(|_| !all) {
        if schemes().iter().all(|(known, _)| known != name) {
            words.refuse(name, "is no scheme");
        }
    }
    let is_wanted = move |name: &str| all || names.iter().any(|wanted| wanted == name);
    schemes()
        .into_iter()
        .filter(move |(name, _)| is_wanted(name))
}

/// What one scheme is run with.
struct Run {
    settings: Settings,
    times_s: [u64; 3],
    /// Seed of the random numbers in nodes and channel.
    random: u64,
    /// The share of the improved variant's rates that sources send at even intervals.
    share: Option<f64>,
}

impl Run {
    fn mesh(&self, scene: &Scene, mac: &str) -> Mesh {
        let flows = scene.sources.iter().map(|&(node, _)| (node, scene.sink));
        Mesh {
            medium: scene.medium.clone(),
            caps: config(mac).caps(),
            settings: self.settings,
            rates: Vec::new(),
            flows: flows.collect(),
            times_s: self.times_s,
            seed: self.random,
        }
    }
}

/// A run with these settings and changes. A change that is none ends the process.
fn changed(seed: u64, settings: Settings, changes: &[String], words: &Words) -> Run {
    let mut run = Run {
        settings,
        times_s: TIMES_S,
        random: seed,
        share: None,
    };
    run.settings.room.payload = 200;
    for change in changes {
        let done = run.change(change);
        done.unwrap_or_else(|why| words.refuse(change, &format!("is no setting here: {why}")));
    }
    run
}

impl Run {
    fn change(&mut self, change: &str) -> Result<(), Box<dyn std::error::Error>> {
        let times_s = &mut self.times_s;
        match change.split_once('=') {
            // Seconds from the sources' begin to counting, and from there to the end.
            Some(("after", seconds)) => {
                times_s[1] = times_s[0] + seconds.parse::<u64>()?;
                times_s[2] = times_s[2].max(times_s[1] + 1);
            }
            // The same network with other random numbers in nodes and channel.
            Some(("random", other)) => self.random = other.parse()?,
            Some(("for", seconds)) => times_s[2] = times_s[1] + seconds.parse::<u64>()?,
            Some(("share", part)) => self.share = Some(part.parse()?),
            Some((name, _)) if name.starts_with("zmac-") => {}
            _ => set(&mut self.settings, change)?,
        }
        Ok(())
    }
}

/// A share of the rates that the improved variant, as it is usually, gives to sources which always have something to send: packets a
/// second from 20 s to 80 s of load.
fn rates(mesh: &Mesh, access: Access, station: Config, share: f64) -> Vec<f64> {
    let mut settings = Settings::improved();
    settings.room.payload = mesh.settings.room.payload;
    let [begin, ..] = mesh.times_s;
    let saturated = Mesh {
        medium: mesh.medium.clone(),
        settings,
        flows: mesh.flows.clone(),
        rates: Vec::new(),
        times_s: [begin, begin + 20, begin + 80],
        ..*mesh
    };
    let flows = saturated.over(access, station).flows;
    flows.iter().map(|flow| share * flow.0.max(0.1)).collect()
}

/// What the MAC carries of the optimum by a plan: for how many seconds packets count, and their class, can be changed.
fn plan(
    (seed, mac): (u64, &str),
    access: Access,
    changes: &[String],
    words: &Words,
) -> Result<(), Box<dyn std::error::Error>> {
    let scene = scene(seed)?;
    let mut trial = planned::Trial {
        scene: &scene,
        access,
        station: config(mac),
        slots_s: match access {
            Access::Zmac { slots_s, .. } => slots_s,
            Access::Dcf | Access::Edca => 0,
        },
        for_s: 20,
        class: Class::Data,
        control: None,
        climbs: false,
        seed,
    };
    for change in changes {
        let done = set_trial(&mut trial, change);
        done.unwrap_or_else(|why| words.refuse(change, &format!("is no setting of plans: {why}")));
    }
    print_head(&scene, (seed, mac), changes);
    trial.print()
}

fn set_trial(
    trial: &mut planned::Trial<'_>,
    change: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    match change.split_once('=') {
        Some(("for", seconds)) => trial.for_s = seconds.parse()?,
        Some(("climb", raise)) => trial.climbs = raise == "1",
        // Octets of a broadcast that each node sends every second, as much control as DPCLO's.
        Some(("control", octets)) => trial.control = Some(octets.parse()?),
        Some(("class", "urgent")) => trial.class = Class::Urgent,
        Some(("class", "data")) => trial.class = Class::Data,
        Some(("random", other)) => trial.seed = other.parse()?,
        Some((name, _)) if name.starts_with("zmac-") => {}
        // Octets from which an RTS goes first.
        Some(("rts", octets)) => trial.station.rts_threshold = octets.parse()?,
        _ => return Err("class, climb, control, for, random, rts are".into()),
    }
    Ok(())
}

/// "Deaf" stations do not hand up frames to others.
fn config(mac: &str) -> Config {
    Config {
        overhear: !mac.ends_with("-deaf"),
        ..Config::dot11b(Rate::Dsss2)
    }
}

/// The channel access of this name, with the changes that are its own.
fn access(name: &str, changes: &[String], words: &Words) -> Access {
    let mut contention = zmac::Config::of_rate(Rate::Dsss2);
    match name {
        "zmac-sparing" => contention = contention.sparing(),
        // Only the notifications.
        "zmac-dear" => contention.ecn = Some(Ecn::SPARING),
        "zmac-open" => contention.ecn = None,
        "zmac-short" => contention.window = 16,
        "zmac-lossy" => {
            if let Some(ecn) = &mut contention.ecn {
                ecn.wait = Duration::from_secs(3600);
            }
        }
        "dcf" | "edca" | "edca-deaf" | "zmac" => {}
        _ => words.refuse(name, "is no MAC"),
    }
    let slotted = name.starts_with("zmac");
    for change in changes.iter().filter(|change| change.starts_with("zmac-")) {
        let done = match slotted {
            true => set_contention(&mut contention, change),
            false => Err("this MAC is not ZMAC+".into()),
        };
        done.unwrap_or_else(|why| words.refuse(change, &format!("is no setting here: {why}")));
    }
    match name {
        "dcf" => Access::Dcf,
        "edca" | "edca-deaf" => Access::Edca,
        _ => Access::Zmac {
            slots_s: SLOTS_S,
            contention,
        },
    }
}

/// What a change says of ZMAC+, if it says anything: `zmac-slot`, `zmac-guard` and `zmac-txop` in microseconds, `zmac-owner` and `zmac-window` in
/// back-off slots, `zmac-lasts`, `zmac-wait` and `zmac-again` in milliseconds, `zmac-failures`,
/// `zmac-undecodable`, `zmac-attentive`, `zmac-burstless`, `zmac-heard-too`.
fn set_contention(
    contention: &mut zmac::Config,
    change: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some((name, value)) = change.split_once('=') else {
        return Ok(());
    };
    let Some(name) = name.strip_prefix("zmac-") else {
        return Ok(());
    };
    let value: u64 = value.parse()?;
    match (name, &mut contention.ecn) {
        ("slot", _) => contention.slot = Duration::from_micros(value),
        ("owner", _) => contention.owner_window = value as u16,
        ("window", _) => contention.window = value as u16,
        ("txop", _) => contention.savings.txop = Duration::from_micros(value),
        ("attentive", _) => contention.savings.attentive = value > 0,
        ("burstless", _) => contention.savings.burstless = value > 0,
        ("guard", Some(ecn)) => ecn.guard = Duration::from_micros(value),
        ("heard-too", Some(ecn)) => ecn.heard_too = value > 0,
        ("lasts", Some(ecn)) => ecn.lasts = Duration::from_millis(value),
        ("wait", Some(ecn)) => ecn.wait = Duration::from_millis(value),
        ("again", Some(ecn)) => ecn.again = Duration::from_millis(value),
        ("failures", Some(ecn)) => ecn.failures = value as u8,
        ("undecodable", Some(ecn)) => ecn.undecodable = value as u8,
        _ => return Err(format!("ZMAC+ has no '{name}'").into()),
    }
    Ok(())
}

fn report(scene: &Scene, played: &Played) -> String {
    let (flows, routers) = (&played.flows, &played.routers);
    let total: f64 = flows.iter().map(|flow| flow.0).sum();
    let squares: f64 = flows.iter().map(|flow| flow.0 * flow.0).sum();
    let jain = total * total / (flows.len() as f64 * squares.max(1e-9));
    let rates: Vec<f64> = flows.iter().map(|flow| flow.0.max(1e-3)).collect();
    let starts: Vec<f64> = played.starts.iter().map(|rate| rate.max(1e-3)).collect();
    let (geometric, start) = (optimum::geometric(&rates), optimum::geometric(&starts));
    let each: Vec<String> = flows
        .iter()
        .map(|(rate, delay)| format!("{rate:.1}/{delay:.2}"))
        .collect();
    let sum = |of: fn(&Losses) -> u64| -> u64 {
        let losses = routers.iter().map(|router| router.counters().losses);
        losses.map(|losses| of(&losses)).sum()
    };
    let count =
        |of: fn(&Counters) -> u64| -> u64 { routers.iter().map(|node| of(&node.counters())).sum() };
    let accepted = count(|counters| counters.accepted);
    let full = sum(|losses| losses.queue_full);
    let reports = count(|counters| counters.reports_sent);
    let out_of_reach = routers
        .iter()
        .filter(|router| router.number() != scene.sink && router.distance(scene.sink).is_none());
    let frames =
        count(|counters| counters.probes_sent + counters.updates_sent + counters.requests_sent);
    let split = [
        count(|counters| counters.probes_sent),
        count(|counters| counters.updates_sent),
        count(|counters| counters.requests_sent),
    ];
    let control =
        frames as f64 * BROADCAST_S + count(|counters| counters.control_octets) as f64 * OCTET_S;
    let data = count(|counters| counters.attempts) as f64 * DATA_S;
    let octets = count(|counters| counters.control_octets) as f64 / frames.max(1) as f64;
    let share = 100.0 * control / (control + data);
    format!(
        "control, from the start, {share:.1} % of the air in use ({frames} frames of {octets:.0} octets), total {total:.1}, Jain {jain:.3}, geometric {geometric:.2}, {}; accepted {accepted}, lost {} (link {}, queue full \
         {full}: {:.2} %, hop limit {}, age {}), {:.2} transmissions a delivered packet, without a route {}, {reports} reports, {split:?} probes, updates and requests, from 5 s to 10 s of load: geometric {start:.2}, {starts:.1?}, longest seconds without a packet {:.1?}",
        each.join(" "),
        sum(Losses::total) - sum(|losses| losses.copies),
        sum(|losses| losses.link),
        100.0 * full as f64 / accepted.max(1) as f64,
        sum(|losses| losses.hop_limit),
        sum(|losses| losses.age),
        count(|counters| counters.attempts) as f64
            / count(|counters| counters.delivered).max(1) as f64,
        out_of_reach.count(),
        played.gaps
    )
}
