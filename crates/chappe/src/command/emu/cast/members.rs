//! One seed: a `chappe cast` process in every node, and their events.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chappe::systems;
use chappe_core::Duration;
use chappe_lab_emu::{Capture, Emulation, Options};
use chappe_lab_pacifier::{Pacifier, Variant};
use chappe_scenario::plan::NetworkPlan;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EmuCast, Setting};
use crate::command::emu::live::Live;
use crate::command::emu::report::Report;
use crate::failure::Failure;

/// Octets around a member's frame in a packet: Chappe's header and tag, UDP and IPv4.
pub const AROUND_IP: usize = chappe_lab_pacifier::cast::AROUND;

/// The observations of one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub seed: u64,
    pub bytes: usize,
    /// Each receiver with the seconds from the first data frame until it had the file; none if it is incomplete.
    pub receivers: Vec<(usize, Option<f64>)>,
    /// The links as the members measured them during the transfer.
    pub links: Vec<(u16, u16, f64)>,
    pub data_frames: u64,
    /// Background traffic: interval and size of the frames of the member that sent least during the transfer.
    pub chatter_every_s: f64,
    pub chatter_octets: usize,
    pub queue_full: u64,
    pub late_p99_s: f64,
    pub valid: bool,
}

impl Seen {
    /// Goodput of each receiver in bit/s; 0 for an incomplete one.
    pub fn goodputs(&self) -> Vec<f64> {
        let bits = self.bytes as f64 * 8.0;
        let rate = |(_, seconds): &(usize, Option<f64>)| {
            seconds.map_or(0.0, |seconds| bits / seconds.max(1e-3))
        };
        self.receivers.iter().map(rate).collect()
    }
}

/// Node numbers that frames of the improved variant have room for: the default of `--nodes`.
const NODES: usize = 64;

/// Octets of a member's frame besides those of the file.
pub fn headers(with: &Pacifier) -> usize {
    let way = match with.protocol.variant {
        Variant::Improved => chappe_cast::Protocol::Improved,
        _ => chappe_cast::Protocol::Pacifier,
    };
    chappe_cast::headers(way, with.protocol.config.common().k, NODES)
}

/// Longest wait for a transfer.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often the processes are polled.
const LOOK: Duration = Duration::from_millis(50);

pub fn emulate(options: &EmuCast, setting: &Setting) -> Result<Seen, Failure> {
    let network = NetworkPlan::read(
        &systems::scenarios(),
        &options.file,
        &options.set,
        options.seed,
    )?;
    let asked = Options {
        queue: usize::from(options.queue),
        mtu: Some(setting.mtu),
        ..Options::default()
    };
    let emulation = Emulation::new(&network, asked)?;
    let stage = setting.plan.network(network.seed)?;
    let transfer = stage
        .transfers
        .first()
        .ok_or_else(|| Failure::Defect("a plan without a transfer".into()))?;
    let place = Place::new()?;
    fs::write(place.0.join("file"), &transfer.object)?;
    let named = (0..emulation.nodes() as u16).map(|node| (node, format!("n{node}"), true));
    let named: Vec<(u16, String, bool)> = named.collect();
    chappe_cast::group::create(&place.0.join("lab"), &named)?;
    let mut live = Live::start(&emulation, Capture::default(), true)?;
    let nodes = emulation.nodes();
    let mut members = Vec::new();
    for node in (0..nodes).filter(|&node| node != transfer.source) {
        let receives = transfer.receivers.contains(&node);
        let role = if receives { "receive" } else { "relay" };
        members.push(place.start(&live, setting, node, role, 0)?);
    }
    let wanted = transfer.receivers.len();
    let mut sender = place.start(&live, setting, transfer.source, "send", wanted)?;
    let begun = wait(&mut live, &mut sender, || {
        place.when(transfer.source, "begun")
    })?;
    let before = quiet(&mut live);
    let ended = |place: &Place| place.when(transfer.source, "done");
    wait(&mut live, &mut sender, || ended(&place))?;
    // A receiver reports completion to the sender shortly before it prints the event.
    live.pass(Duration::from_millis(400))?;
    let after = quiet(&mut live);
    let report = Report::of(&emulation, &mut live.emulator, None);
    sender.end();
    members.iter_mut().for_each(Member::end);
    drop(live);
    let seconds = |node: &usize| {
        let at = place.when(*node, "installed")? - begun?;
        (at > 0.0).then_some(at)
    };
    let (chatter_every_s, chatter_octets) = chatter(&network, &before, &after);
    let done = place.event(transfer.source, "done");
    let (late_p99_s, valid) = report.lateness();
    Ok(Seen {
        seed: network.seed,
        bytes: transfer.object.len(),
        receivers: transfer
            .receivers
            .iter()
            .map(|node| (*node, seconds(node)))
            .collect(),
        links: place.links(transfer.source),
        data_frames: done.map_or(0, |done| done["data_frames"].as_u64().unwrap_or(0)),
        chatter_every_s,
        chatter_octets,
        queue_full: report.queue_full(),
        late_p99_s,
        valid,
    })
}

/// Emulates until `what` returns a value, the sender ends, or `PATIENCE` is over.
fn wait<T>(
    live: &mut Live,
    sender: &mut Member,
    mut what: impl FnMut() -> Option<T>,
) -> Result<Option<T>, Failure> {
    let end = live.emulator.clock().now() + PATIENCE;
    loop {
        if let Some(found) = what() {
            return Ok(Some(found));
        }
        if sender.child.try_wait()?.is_some() || live.emulator.clock().now() >= end {
            return Ok(what());
        }
        if live.pass(LOOK)? {
            return Err(Failure::Interrupted);
        }
    }
}

/// The time, and each station's number of broadcasts and airtime in seconds so far.
fn quiet(live: &mut Live) -> (f64, Vec<(u64, f64)>) {
    let bridges = live.emulator.bridges();
    let air = live.emulator.air();
    let one = |(node, bridge): (usize, &chappe_emu::BridgeCounters)| {
        let airtime = air.nodes.get(node).copied().unwrap_or_default().airtime;
        (bridge.unconfirmed, airtime.as_secs_f64())
    };
    let all = bridges.iter().enumerate().map(one).collect();
    (live.emulator.clock().now().as_secs_f64(), all)
}

/// Interval and size above IP of the frames of the station with the least airtime.
fn chatter(
    network: &NetworkPlan,
    (from, before): &(f64, Vec<(u64, f64)>),
    (to, after): &(f64, Vec<(u64, f64)>),
) -> (f64, usize) {
    let spent = before.iter().zip(after).map(|(before, after)| {
        let frames = after.0.saturating_sub(before.0);
        (frames.max(1), after.1 - before.1)
    });
    let least = spent.min_by(|a, b| a.1.total_cmp(&b.1));
    let (frames, airtime) = least.unwrap_or((1, 0.0));
    let preamble = network.mode.airtime(0).as_secs_f64();
    let octets = (airtime / frames as f64 - preamble)
        / (network.mode.airtime(1000).as_secs_f64() - preamble);
    // Octets that the MAC adds to a packet: header, LLC and SNAP, check sequence.
    let packet = (octets * 1000.0 - 36.0).max(1.0) as usize;
    ((to - from) / frames as f64, packet)
}

/// A process that ends when it is dropped.
struct Member {
    child: Child,
}

impl Member {
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

/// The folder of one run: keys, the file, and the events of each member. Dropping it removes the folder.
struct Place(PathBuf);

impl Place {
    fn new() -> io::Result<Place> {
        let name = format!("chappe-emu-cast-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Place(path))
    }

    fn start(
        &self,
        live: &Live,
        setting: &Setting,
        node: usize,
        role: &str,
        receivers: usize,
    ) -> Result<Member, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["cast", role]);
        let key = |name: &str| self.0.join(name);
        match role {
            "send" => {
                let variant = match setting.with()?.protocol.variant {
                    Variant::Improved => "improved",
                    _ => "pacifier",
                };
                let k = setting.with()?.protocol.config.common().k;
                command.arg(self.0.join("file"));
                command.args(["--receivers", &receivers.to_string()]);
                command.args(["--variant", variant, "--k", &k.to_string()]);
            }
            "receive" => {
                let folder = self.0.join(format!("r{node}"));
                fs::create_dir_all(&folder)?;
                command.arg(folder);
            }
            _ => {}
        }
        command.arg("--group").arg(key("lab.group"));
        command.arg("--key").arg(key(&format!("n{node}.key")));
        command.args(["--interface", chappe_emu::INTERFACE, "--json"]);
        command.args(["--rate", &format!("{} bit/s", setting.rate.0)]);
        // The emulated radios share airtime, whatever their interfaces look like.
        command.args(["--channel", "shared"]);
        command
            .stdin(Stdio::null())
            .stdout(File::create(self.said(node))?);
        command.stderr(Stdio::inherit());
        let child = live.spawn(&mut command, node)?;
        Ok(Member { child })
    }

    fn said(&self, node: usize) -> PathBuf {
        self.0.join(format!("{node}.json"))
    }

    /// The events of a member so far.
    fn events(&self, node: usize) -> Vec<Value> {
        let said = fs::read_to_string(self.said(node)).unwrap_or_default();
        let events = said
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        events.collect()
    }

    /// The first event of this name from a member.
    fn event(&self, node: usize, name: &str) -> Option<Value> {
        self.events(node)
            .into_iter()
            .find(|event| event["event"] == name)
    }

    /// The time of that event, in seconds of the host's clock.
    fn when(&self, node: usize, name: &str) -> Option<f64> {
        self.event(node, name)?["unix_s"].as_f64()
    }

    /// The mean delivery ratios that a member reported from its first data frame on.
    fn links(&self, node: usize) -> Vec<(u16, u16, f64)> {
        let events = self.events(node);
        let begun = events.iter().position(|event| event["event"] == "begun");
        let told = events.get(begun.unwrap_or(0)..).unwrap_or(&[]);
        let mut seen: BTreeMap<(u16, u16), (f64, u32)> = BTreeMap::new();
        for event in told.iter().filter(|event| event["event"] == "links") {
            for link in event["links"].as_array().into_iter().flatten() {
                let end = |name: &str| {
                    link[name]
                        .as_u64()
                        .and_then(|node| u16::try_from(node).ok())
                };
                if let (Some(from), Some(to), Some(ratio)) =
                    (end("from"), end("to"), link["delivery"].as_f64())
                {
                    let (sum, times) = seen.entry((from, to)).or_default();
                    (*sum, *times) = (*sum + ratio, *times + 1);
                }
            }
        }
        let mean = |((from, to), (sum, times)): ((u16, u16), (f64, u32))| {
            (from, to, sum / f64::from(times))
        };
        seen.into_iter().map(mean).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(path: &Path) {
    // Files that cannot be removed stay in the folder for temporary files.
    let _ = fs::remove_dir_all(path);
}
