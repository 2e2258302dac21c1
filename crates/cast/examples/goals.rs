//! Measures the goals of `chappe cast` that docs/cast.md names, and prints each beside its figure.
//!
//! ```sh
//! cargo run --release -p chappe-cast --example goals             # all, five runs each
//! cargo run --release -p chappe-cast --example goals -- --short  # smaller files, one run each
//! cargo run --release -p chappe-cast --example goals -- hogs --runs 50
//! ```
//!
//! Hosts are network namespaces on a bridge, without root where the kernel allows that. Each member is a process, so that
//! processor times are those of one host. Losses are drawn by the receivers. The hosts of `air` are on one channel of emulated radios
//! instead, where losses are the air's.

#[path = "goals/air.rs"]
mod air;
#[path = "goals/asked.rs"]
mod asked;
#[path = "../tests/common/mod.rs"]
mod common;

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration as Pause, Instant as Moment, SystemTime, UNIX_EPOCH};

use asked::{Asked, USAGE};
use chappe_cast::event::Event;
use chappe_cast::session::{CEILING, View};
use chappe_cast::{Loss, Watch, receive, relay, send};
use chappe_core::{Address, Duration, Seed};
use chappe_sys::namespace::{NetworkNamespace, isolate};
use common::{Network, Place};

/// A network, what is sent over it, and the goal.
struct Case {
    name: &'static str,
    /// The size of the file, and in the short form.
    bytes: (usize, usize),
    /// The hosts: a sender, relays, receivers.
    relays: u16,
    receivers: u16,
    /// The ceiling of the rate in bit/s; 0 for none.
    rate: u64,
    /// The share of frames from a neighbour that is lost, and whether only hosts next to each other hear each other.
    loss: f64,
    line: bool,
    /// Whether all share the air of emulated radios.
    air: bool,
    /// Processes beside it that do nothing but use the processor.
    hogs: usize,
    goal: Goal,
}

/// What should be reached.
enum Goal {
    /// Seconds from the first data frame to the last receiver, at most, in the worst run.
    Seconds(f64),
    /// The worst run over the median run, at most. One run has no median.
    Spread(f64),
    /// Mbit/s to all, at least; ms of the sender's processor for a megabyte, at most.
    Speed(f64, f64),
}

/// What a run showed.
#[derive(Clone, Debug, Default)]
struct Figures {
    complete: bool,
    seconds: f64,
    /// Data frames of the sender, and of all members, as multiples of the file.
    own: f64,
    all: f64,
    /// The highest pace of the sender in Mbit/s.
    pace: f64,
    /// Seconds of processor time of the sender and of the receiver that used most.
    sender: f64,
    receiver: f64,
}

const STAR: Case = Case {
    name: "",
    bytes: (20_000_000, 2_000_000),
    relays: 0,
    receivers: 10,
    rate: 20_000_000,
    loss: 0.1,
    line: false,
    air: false,
    hogs: 0,
    goal: Goal::Seconds(9.2),
};

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "ten-10",
            ..STAR
        },
        Case {
            name: "ten-30",
            loss: 0.3,
            ..STAR
        },
        Case {
            name: "relays",
            loss: 0.3,
            line: true,
            relays: 2,
            receivers: 1,
            goal: Goal::Seconds(12.5),
            ..STAR
        },
        Case {
            name: "found",
            rate: 0,
            loss: 0.0,
            receivers: 3,
            bytes: (50_000_000, 10_000_000),
            goal: Goal::Speed(0.0, 3.0),
            ..STAR
        },
        Case {
            name: "gigabit",
            rate: 1_000_000_000,
            loss: 0.0,
            receivers: 1,
            bytes: (300_000_000, 30_000_000),
            goal: Goal::Speed(900.0, 3.0),
            ..STAR
        },
        // 12.6 s for 20 MB at 20 Mbit/s, for a quarter of the file at the pace that 802.11b carries.
        Case {
            name: "air",
            loss: 0.3,
            air: true,
            rate: 6_000_000,
            bytes: (5_000_000, 500_000),
            goal: Goal::Seconds(12.6 / 4.0 * 20.0 / 6.0),
            ..STAR
        },
        Case {
            name: "hogs",
            hogs: 8,
            goal: Goal::Spread(1.3),
            ..STAR
        },
    ]
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("member") => return member(&words[1..]),
        Some("hog") => return hog(),
        _ => {}
    }
    let cases = cases();
    let known: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let Asked { names, short, runs } = match Asked::parse(&words, &known) {
        Ok(Some(asked)) => asked,
        Ok(None) => return println!("{USAGE}\nGoals: {}.", known.join(", ")),
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            std::process::exit(2);
        }
    };
    if let Err(error) = isolate() {
        return chappe_testkit::skip(error.to_string());
    }
    println!("load {}", load());
    let chosen = |case: &&Case| names.is_empty() || names.iter().any(|name| name == case.name);
    for case in cases.iter().filter(chosen) {
        let done: Vec<Figures> = (0..runs).map(|run| measure(case, short, run)).collect();
        println!("{}", judge(case, short, done));
    }
}

/// The load of the machine over the last minute: figures of a busy one say little.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").into()
}

/// Runs a case once.
fn measure(case: &Case, short: bool, run: usize) -> Figures {
    let hosts = 1 + case.relays + case.receivers;
    let mut network = match case.air {
        true => Medium::Air(Box::new(air::Air::new(hosts, case.loss))),
        false => Medium::Wires(Network::new(hosts as u8)),
    };
    let place = Place::new(&format!("goals-{run}"));
    let bytes = if short { case.bytes.1 } else { case.bytes.0 };
    let file = place.file("image.bin", bytes);
    let mut hogs: Vec<Child> = (0..case.hogs)
        .map(|_| this().arg("hog").spawn().unwrap())
        .collect();
    let start = |node: u16| {
        let (role, of) = match node {
            0 => ("send", file.clone()),
            _ if node <= case.relays => ("relay", file.clone()),
            _ => ("receive", place.folder(&format!("r{node}"))),
        };
        let mut command = this();
        command.args(["member", role, &node.to_string(), &case.rate.to_string()]);
        command.args([&lose(case, hosts, node), &of.display().to_string()]);
        command.arg(case.receivers.to_string());
        command.arg(network.interface());
        command.stdout(Stdio::piped());
        let host = network.host(usize::from(node));
        chappe_sys::process::spawn_in(host, &mut command).unwrap()
    };
    let mut members: Vec<Child> = (1..hosts).map(start).collect();
    let mut sender = start(0);
    if let Medium::Air(air) = &mut network {
        air.carry(&members[usize::from(case.relays)..], &sender);
    }
    let mut figures = Figures::default();
    read(&mut sender, &mut figures);
    let relays = usize::from(case.relays);
    for child in members.iter_mut().skip(relays) {
        let complete = figures.complete;
        read(child, &mut figures);
        figures.complete &= complete;
    }
    for child in members.iter_mut().take(relays).chain(&mut hogs) {
        let _ = child.kill();
        let _ = child.wait();
    }
    let folders = (1 + case.relays..hosts).map(|node| place.path(&format!("r{node}/image.bin")));
    figures.complete &= folders.into_iter().all(|copy| common::same(&copy, &file));
    println!("  {} {}: {figures:?}, load {}", case.name, run + 1, load());
    figures
}

/// What the hosts of a case are connected by.
enum Medium {
    Wires(Network),
    Air(Box<air::Air>),
}

impl Medium {
    fn host(&self, number: usize) -> &NetworkNamespace {
        match self {
            Medium::Wires(network) => &network.hosts[number],
            Medium::Air(air) => air.host(number),
        }
    }

    /// The interface of each host.
    fn interface(&self) -> &'static str {
        match self {
            Medium::Wires(_) => "eth0",
            Medium::Air(_) => chappe_emu::INTERFACE,
        }
    }
}

fn this() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// What a host loses of each neighbour, as words.
fn lose(case: &Case, hosts: u16, node: u16) -> String {
    let mut text = String::new();
    for from in (0..hosts).filter(|from| *from != node) {
        let far = case.line && from.abs_diff(node) > 1;
        let near = if case.air { 0.0 } else { case.loss };
        let _ = write!(text, "{from}={},", if far { 1.0 } else { near });
    }
    text
}

/// Waits for a member to end and takes its figures.
fn read(child: &mut Child, figures: &mut Figures) {
    let mut text = String::new();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_to_string(&mut text).unwrap();
    figures.complete = child.wait().unwrap().success();
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let value: f64 = value.parse().unwrap();
        match key {
            "seconds" => figures.seconds = value,
            "own" => figures.own = value,
            "all" => figures.all = value,
            "pace" => figures.pace = value,
            "sender" => figures.sender = value,
            _ => figures.receiver = figures.receiver.max(value),
        }
    }
}

/// The line of a case: its goal beside the figures.
fn judge(case: &Case, short: bool, mut runs: Vec<Figures>) -> String {
    let whole = runs.iter().filter(|run| run.complete).count();
    if whole < runs.len() {
        return format!(
            "{}: MISSED, {whole} of {} runs complete",
            case.name,
            runs.len()
        );
    }
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (median, worst) = (&runs[runs.len() / 2], &runs[runs.len() - 1]);
    let bytes = if short { case.bytes.1 } else { case.bytes.0 };
    let speed = |run: &Figures| bytes as f64 * 8.0 / 1e6 / run.seconds;
    let cost = runs.iter().map(|run| run.sender).fold(0.0, f64::max) * 1e9 / bytes as f64;
    let taken = runs.iter().map(|run| run.receiver).fold(0.0, f64::max) * 1e9 / bytes as f64;
    let (met, goal) = match case.goal {
        // A short transfer has the same speed at most.
        Goal::Seconds(most) => {
            let most = most * bytes as f64 / case.bytes.0 as f64;
            (worst.seconds <= most, format!("at most {most:.2} s"))
        }
        Goal::Spread(most) => {
            let spread = worst.seconds / median.seconds;
            let goal = format!(
                "worst of three runs or more at most {most} times the median, is {spread:.2} times"
            );
            (spread <= most && runs.len() > 2, goal)
        }
        Goal::Speed(least, most) => (
            speed(worst) >= least && cost.max(taken) <= most,
            format!("at least {least} Mbit/s, at most {most} ms of processor for a MB"),
        ),
    };
    let nine = runs[(runs.len() * 9).div_ceil(10) - 1].seconds;
    format!(
        "{}: {}, {goal}; n = {}, median {:.2} s, {:.2} to {nine:.2} s in nine of ten runs, worst {:.2} s ({:.0} Mbit/s), frames of the sender {:.2} and of all {:.2} times the \
         file, pace up to {:.0} Mbit/s, processor {cost:.1} ms/MB at the sender and {taken:.1} at a receiver",
        case.name,
        if met { "met" } else { "MISSED" },
        runs.len(),
        median.seconds,
        runs[0].seconds,
        worst.seconds,
        speed(worst),
        worst.own,
        worst.all,
        worst.pace,
    )
}

/// Uses the processor for two minutes at most, or until it is killed.
fn hog() {
    let begun = Moment::now();
    while begun.elapsed() < Pause::from_secs(120) {
        std::hint::black_box((0..100_000u64).fold(0u64, |sum, n| sum.wrapping_mul(31) ^ n));
    }
}

/// The process of a member: its role, number, rate, losses, file or folder, how many receivers there are, and its interface.
fn member(words: &[String]) {
    let [role, node, rate, lose, of, receivers, interface] = words else {
        panic!("a member has seven words");
    };
    let (node, rate): (u16, u64) = (node.parse().unwrap(), rate.parse().unwrap());
    let pairs = lose
        .split_terminator(',')
        .filter_map(|pair| pair.split_once('='));
    let loss = pairs.fold(Loss::new(Seed(node.into()), 0.0), |loss, (from, share)| {
        loss.from(Address::node(from.parse().unwrap()), share.parse().unwrap())
    });
    let of = Path::new(of);
    let place = Place::at(&of.parent().unwrap().display().to_string());
    let mut options = place.options(node, rate, &[]);
    options.loss = Some(loss);
    options.interfaces = vec![interface.clone()];
    options.memory = 48_000_000;
    options.measuring = Duration::from_secs(2);
    if rate == 0 {
        options.rate = CEILING;
    }
    let (mut watch, base) = (Patient(Moment::now()), processor());
    match role.as_str() {
        "send" => {
            let sending = place.sending(&[of.to_owned()], receivers.parse().unwrap());
            let (_, summary) = send(&options, &sending, &mut watch).unwrap();
            assert!(summary.incomplete.is_empty());
            let share = summary.frames_of_others as f64 / summary.data_frames as f64;
            println!("seconds={}", summary.seconds);
            println!("own={}", summary.redundancy);
            println!("all={}", summary.redundancy * (1.0 + share));
            println!("pace={}", summary.pace_max_bps as f64 / 1e6);
            println!("sender={}", processor() - base);
        }
        "receive" => {
            receive(&options, &place.receiving(of), &mut watch).unwrap();
            println!("receiver={}", processor() - base);
        }
        _ => {
            relay(&options, &mut watch).unwrap();
        }
    }
}

/// Seconds of processor time of this process, in steps of 10 ms (proc_pid_stat(5): fields 14 and 15).
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = text.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}

/// Ends a session after two minutes.
struct Patient(Moment);

impl Watch for Patient {
    fn event(&mut self, event: Event) {
        if std::env::var_os("CAST_LOUD").is_some() {
            let unix = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let (seconds, member) = (unix.as_secs_f64() % 1e3, std::process::id());
            eprintln!("{seconds:.4} member {member} {event:?}");
        }
    }

    fn look(&mut self, view: &View<'_>) {
        if std::env::var_os("CAST_RATES").is_some() {
            let (node, rate) = (std::process::id(), view.statistics.rate);
            let seconds = view.now.as_secs_f64();
            eprintln!(
                "member {node} at {seconds:.1} s: {:.2} Mbit/s",
                rate as f64 / 1e6
            );
        }
    }

    fn is_over(&mut self) -> bool {
        self.0.elapsed() > Pause::from_secs(120)
    }
}
