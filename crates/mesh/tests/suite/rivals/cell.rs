//! One measurement: routers start, the first ping is answered, TCP runs beside pings, a relay crashes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use chappe_emu::{BridgeCounters, Emulator, Network, Shape};
use chappe_lab_emu::{Capture, Emulation, Options, Station};
use chappe_mesh::answers;
use chappe_scenario::idle::IDLE;
use chappe_scenario::plan::NetworkPlan;
use chappe_sys::namespace::NetworkNamespace;

use super::iperf3::Iperf3;
use super::routers::socket;
use super::traffic::{Ping, Segments, Transfer, VIDEO, Way, processor};
use super::{Place, Router};

/// From the first answer until TCP begins: metrics settle.
const SETTLES: Duration = Duration::from_secs(5);
/// From TCP's beginning until it is counted.
const RISES: Duration = Duration::from_secs(2);
/// How long packets are awaited after a crash.
const AFTER_CRASH: Duration = Duration::from_secs(12);

/// One cell of the matrix: place, router, congestion control and seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub place: Place,
    pub router: Router,
    pub congestion: String,
    pub seed: u64,
    pub seconds: u64,
    /// First answers must come within so many seconds.
    pub patience_s: u64,
    /// Whether the relay in use crashes in the end.
    pub crash: bool,
    pub access: Access,
}

/// How cards access the channel, and as what data contend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    Dcf,
    /// EDCA, where TCP is best effort.
    Edca,
    /// EDCA, where TCP is video: by the router's setting, or by its own traffic class.
    Video,
}

impl Access {
    const ALL: [Access; 3] = [Access::Dcf, Access::Edca, Access::Video];

    pub fn name(self) -> &'static str {
        match self {
            Access::Dcf => "DCF",
            Access::Edca => "EDCA",
            Access::Video => "EDCA, data as video",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Access::Dcf => "dcf",
            Access::Edca | Access::Video => "edca",
        }
    }
}

/// The figures that one run of a cell gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Goodput of each flow in kbit/s.
    pub kbps: Vec<f64>,
    /// 95 % of the pings beside TCP took at most so many seconds.
    pub ping_p95_s: f64,
    /// How long each of those took that were answered, in seconds.
    pub pings_s: Vec<f64>,
    /// From the start of the routers to the first answer, in seconds.
    pub first_s: f64,
    /// The longest time without an answer after the relay's crash, in seconds; 0 if none crashed.
    pub gap_s: f64,
    /// Segments sent, sent again, and sent again without need.
    pub segments: [f64; 3],
    /// Processor time of all routers during TCP, in microseconds for each packet that a router sent or passed on.
    pub processor_us: f64,
    /// 99 % of the emulator's turns were at most so late, in seconds.
    pub late_p99_s: f64,
    /// Unicast frames of all cards, which repeat them.
    pub unicasts: u64,
}

impl Cell {
    pub fn words(&self) -> Vec<String> {
        let crash = if self.crash { "crash" } else { "-" };
        [
            self.place.name(),
            self.router.name(),
            &self.congestion,
            &self.seed.to_string(),
            &self.seconds.to_string(),
            &self.patience_s.to_string(),
            crash,
            self.access.name(),
        ]
        .map(String::from)
        .to_vec()
    }

    pub fn parse(words: &[String]) -> Option<Cell> {
        Some(Cell {
            place: Place::named(words.first()?)?,
            router: Router::named(words.get(1)?)?,
            congestion: words.get(2)?.clone(),
            seed: words.get(3)?.parse().ok()?,
            seconds: words.get(4)?.parse().ok()?,
            patience_s: words.get(5)?.parse().ok()?,
            crash: words.get(6)? == "crash",
            access: {
                let mut all = Access::ALL.into_iter();
                all.find(|access| Some(access.name()) == words.get(7).map(|word| &**word))?
            },
        })
    }

    /// Measures it, in namespaces of this process.
    pub fn run(&self) -> Seen {
        let text = self
            .place
            .text()
            .replace("seed = 1\n", &format!("seed = {}\n", self.seed));
        let text = format!("{text}\n[mac]\naccess = \"{}\"\n", self.access.key());
        let plan = NetworkPlan::parse(&[&IDLE], self.place.name(), &text).expect("a scenario");
        let options = Options {
            routes: self.router == Router::Static,
            ..Options::default()
        };
        let emulation = Emulation::new(&plan, options).expect("a network");
        let shape = Shape {
            prefix: self.router.prefix().unwrap_or(emulation.shape().prefix),
            ..emulation.shape()
        };
        let network = Network::make(&emulation.hosts(), shape).expect("namespaces");
        let hosts: Vec<NetworkNamespace> = (0..emulation.nodes())
            .map(|node| {
                let host = network.host(node).unwrap();
                host.run(NetworkNamespace::current).unwrap().unwrap()
            })
            .collect();
        let simulator = emulation.simulator(Capture::default()).expect("radios");
        let mut emulator = Emulator::new(simulator, network).expect("an emulator");
        let (done, answer) = (AtomicBool::new(false), mpsc::channel());
        thread::scope(|scope| {
            scope.spawn(|| {
                let seen = self.measure(&hosts, &emulation);
                answer.0.send(seen).unwrap();
                done.store(true, Ordering::Relaxed);
            });
            pass(&mut emulator, &done);
        });
        let unicasts = |counters: &BridgeCounters| counters.acknowledged + counters.given_up;
        Seen {
            late_p99_s: emulator.lateness().quantile(0.99).as_secs_f64(),
            unicasts: emulator.bridges().iter().map(unicasts).sum(),
            ..answer.1.recv().expect("the measurement")
        }
    }

    fn measure(&self, hosts: &[NetworkNamespace], emulation: &Emulation) -> Seen {
        let folder = Folder::new();
        let nodes = hosts.len();
        let video = self.access == Access::Video;
        let start = |node: usize| {
            self.router
                .start(&hosts[node], (node, nodes), &folder.0, video)
        };
        let begun = Instant::now();
        let mut routers = Routers((0..nodes).map(start).collect());
        let flows = self.place.flows();
        let Some(first) = self.answered(hosts, flows[0], begun) else {
            return Seen {
                first_s: f64::INFINITY,
                ..Seen::default()
            };
        };
        // A flow whose ends find no route until then carries nothing.
        for &flow in flows.get(1..).unwrap_or_default() {
            let _ = self.answered(hosts, flow, begun);
        }
        thread::sleep(SETTLES);
        let mut seen = self.transfer(hosts, &routers);
        seen.first_s = first.duration_since(begun).as_secs_f64();
        if self.crash {
            thread::sleep(Duration::from_secs(2));
            seen.gap_s = self.crash(hosts, &mut routers, (&folder, emulation));
        }
        seen
    }

    /// When a ping over this flow's path was first answered; `None` if none was in time. The ping ends then: it would load the path beside
    /// TCP.
    fn answered(
        &self,
        hosts: &[NetworkNamespace],
        (from, to): (usize, usize),
        begun: Instant,
    ) -> Option<Instant> {
        let start = || Ping::start(&hosts[from], &self.router.address(to), 0.1);
        let mut ping = start();
        while begun.elapsed() < Duration::from_secs(self.patience_s) {
            thread::sleep(Duration::from_millis(20));
            if ping.is_over() {
                ping = start();
            }
            if let Some((at, _)) = ping.since(begun).first() {
                return Some(*at);
            }
        }
        None
    }

    /// How TCP goes to a node. The mesh sends all data as video by its own setting.
    fn way(&self, to: usize) -> Way {
        let marked = self.access == Access::Video && self.router != Router::Mesh;
        Way {
            address: self.router.address(to),
            congestion: self.congestion.clone(),
            traffic_class: if marked { VIDEO } else { 0 },
        }
    }

    /// TCP on all flows, with pings beside the first.
    fn transfer(&self, hosts: &[NetworkNamespace], routers: &Routers) -> Seen {
        let flows = self.place.flows();
        let before: Vec<Segments> = flows
            .iter()
            .map(|&(from, _)| Segments::of(&hosts[from]))
            .collect();
        let spent = routers.processor();
        let start = |(number, &(from, to)): (usize, &(usize, usize))| {
            Transfer::start((&hosts[from], &hosts[to]), self.way(to), number as u16)
        };
        let by_iperf3 = self.place == Place::Five;
        let own = flows.iter().enumerate().filter(|_| !by_iperf3);
        let transfers: Vec<Transfer> = own.map(start).collect();
        let programs: Vec<Iperf3> = flows
            .iter()
            .filter(|_| by_iperf3)
            .map(|&(from, to)| {
                let lasts = (RISES, self.seconds);
                Iperf3::start((&hosts[from], &hosts[to]), &self.way(to), lasts)
            })
            .collect();
        thread::sleep(RISES);
        let octets = || -> Vec<u64> {
            transfers
                .iter()
                .map(|transfer| transfer.octets.load(Ordering::Relaxed))
                .collect()
        };
        let (counted, at) = (Instant::now(), octets());
        let ping = Ping::start(&hosts[flows[0].0], &self.router.address(flows[0].1), 0.2);
        thread::sleep(Duration::from_secs(self.seconds));
        let span = counted.elapsed().as_secs_f64();
        let counts = octets().into_iter().zip(at);
        let kbps = counts.map(|(now, then)| (now - then) as f64 * 8e-3 / span);
        let mut kbps: Vec<f64> = kbps.collect();
        let mut times: Vec<f64> = ping
            .since(counted)
            .into_iter()
            .map(|(_, took)| took)
            .collect();
        times.sort_by(f64::total_cmp);
        // A ping that was not answered took longer than all others.
        let sent = (span / 0.2) as usize;
        let p95 = times
            .get(sent * 95 / 100)
            .or(times.last().filter(|_| times.len() + 2 > sent * 95 / 100));
        let spent = routers.processor() - spent;
        kbps.extend(programs.into_iter().map(Iperf3::kbps));
        transfers.into_iter().for_each(Transfer::end);
        let mut segments = [0.0; 3];
        for (&(from, _), before) in flows.iter().zip(before) {
            let count = Segments::of(&hosts[from]).minus(before);
            let of = [count.sent, count.again, count.needless];
            segments
                .iter_mut()
                .zip(of)
                .for_each(|(sum, count)| *sum += count as f64);
        }
        Seen {
            kbps,
            ping_p95_s: p95.copied().unwrap_or(f64::INFINITY),
            pings_s: times,
            segments,
            processor_us: 1e6 * spent / segments[0].max(1.0),
            ..Seen::default()
        }
    }

    /// The relay in use goes: its process is killed, or its interface goes down. The longest time without an answer.
    fn crash(
        &self,
        hosts: &[NetworkNamespace],
        routers: &mut Routers,
        (folder, emulation): (&Folder, &Emulation),
    ) -> f64 {
        let (from, to) = self.place.flows()[0];
        let ping = Ping::start(&hosts[from], &self.router.address(to), 0.05);
        thread::sleep(Duration::from_secs(3));
        let relay = match self.router {
            Router::Mesh => next_hop(&folder.0, (from, to)),
            Router::Babel | Router::Static => route(&hosts[from], to),
        };
        let relay = relay.unwrap_or_else(|| emulation.routes.next(from, to).unwrap_or(1));
        routers.kill(relay);
        let down = hosts[relay].run(|| chappe_sys::Links::open()?.down("radio0"));
        down.expect("a namespace").expect("an interface");
        let crashed = Instant::now();
        thread::sleep(AFTER_CRASH);
        let mut times: Vec<Instant> = ping.since(crashed).into_iter().map(|(at, _)| at).collect();
        times.insert(0, crashed);
        times.push(Instant::now());
        let gaps = times
            .windows(2)
            .map(|two| two[1].duration_since(two[0]).as_secs_f64());
        gaps.fold(0.0, f64::max)
    }
}

/// The best next hop of the mesh.
fn next_hop(folder: &Path, (from, to): (usize, usize)) -> Option<usize> {
    let why = format!("why {}", Router::Mesh.address(to));
    let answer = answers::ask(&socket(folder, from), &why).ok()?;
    let hops = answer.split(" away, by ").nth(1)?;
    let first = hops.split_whitespace().next()?.parse::<usize>().ok()?;
    first.checked_sub(1)
}

/// The next hop of the kernel.
fn route(host: &NetworkNamespace, to: usize) -> Option<usize> {
    let address = Router::Babel.address(to);
    let ask = || Command::new("ip").args(["route", "get", &address]).output();
    let output = host.run(ask).ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let via = text.split("via 10.17.0.").nth(1)?.split(' ').next()?;
    via.parse::<usize>().ok()?.checked_sub(1)
}

/// Keeps the air in step with the clock until the measurement is done.
fn pass(emulator: &mut Emulator<Station, Capture>, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let end = emulator.clock().now() + chappe_core::Duration::from_millis(50);
        emulator.run(Some(end)).expect("the emulator");
    }
}

/// The processes of the routers, which end with this value.
struct Routers(Vec<Option<Child>>);

impl Routers {
    fn processor(&self) -> f64 {
        self.0
            .iter()
            .flatten()
            .map(|child| processor(child.id()))
            .sum()
    }

    fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.0[node].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Routers {
    fn drop(&mut self) {
        (0..self.0.len()).for_each(|node| self.kill(node));
    }
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("chappe-rivals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = [
            self.ping_p95_s,
            self.first_s,
            self.gap_s,
            self.processor_us,
            self.late_p99_s,
        ];
        let all = single.iter().chain(&self.segments).chain(&self.kbps);
        let words = |values: Vec<&f64>| -> String {
            let words: Vec<String> = values.into_iter().map(f64::to_string).collect();
            words.join(" ")
        };
        write!(
            f,
            "seen {}\nunicasts {}\npings {}",
            words(all.collect()),
            self.unicasts,
            words(self.pings_s.iter().collect())
        )
    }
}

impl Seen {
    pub fn parse(text: &str) -> Option<Seen> {
        let values = |name: &str| -> Option<Vec<f64>> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let words = line.split_whitespace();
            words.map(|word| word.parse().ok()).collect()
        };
        let seen = values("seen")?;
        let (single, rest) = seen.split_first_chunk::<5>()?;
        let (segments, kbps) = rest.split_first_chunk::<3>()?;
        let [ping_p95_s, first_s, gap_s, processor_us, late_p99_s] = *single;
        Some(Seen {
            kbps: kbps.to_vec(),
            ping_p95_s,
            first_s,
            gap_s,
            segments: *segments,
            processor_us,
            late_p99_s,
            unicasts: *values("unicasts")?.first()? as u64,
            pings_s: values("pings")?,
        })
    }

    /// The geometric mean of the flows in kbit/s, at least 0.1 for each.
    pub fn geometric(&self) -> f64 {
        let sum: f64 = self.kbps.iter().map(|kbps| kbps.max(0.1).ln()).sum();
        (sum / self.kbps.len().max(1) as f64).exp()
    }
}
