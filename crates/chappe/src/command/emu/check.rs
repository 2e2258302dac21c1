//! `chappe emu check`: the kernel's UDP and TCP through the emulator, compared with the simulator's prediction.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use chappe::systems;
use chappe_core::Duration;
use chappe_figures::table::{Table, kbit, with_interval};
use chappe_lab_emu::{Capture, Emulation, Flow, Load, Options};
use chappe_results::Range;
use chappe_scenario::InputError;
use chappe_scenario::plan::NetworkPlan;
use serde::Serialize;

use super::live::Live;
use super::report::Report;
use crate::cli::EmuCheck;
use crate::failure::{ENVIRONMENT, FAILED, Failure};
use crate::terminal::{self, Stream};

/// Start of a measurement that does not count: slow start, and the first ARP exchange.
const SKIP: Duration = Duration::from_secs(1);

/// One load, predicted and measured.
#[derive(Clone, Debug, Serialize)]
struct Row {
    load: &'static str,
    predicted_bps: Range,
    measured_bps: f64,
    /// Measured over predicted goodput, minus one.
    difference: f64,
    holds: bool,
}

/// The output of `--json`.
#[derive(Clone, Debug, Serialize)]
struct Document {
    chappe: &'static str,
    scenario: String,
    seed: u64,
    hops: Vec<usize>,
    seconds: u64,
    tolerance: f64,
    rows: Vec<Row>,
    emulation: Report,
}

pub fn run(options: &EmuCheck) -> Result<u8, Failure> {
    let plan = NetworkPlan::read(
        &systems::scenarios(),
        &options.file,
        &options.set,
        options.seed,
    )?;
    let emulation = Emulation::new(
        &plan,
        Options {
            queue: usize::from(options.queue),
            mtu: options.mtu,
            ..Options::default()
        },
    )?;
    let (flow, hops) = flow(options, &emulation)?;
    terminal::remark(options.quiet, "simulating");
    let predictions = Load::ALL.map(|load| predict(options, &emulation, load, flow));
    let mut live = Live::start(&emulation, Capture::default(), options.quiet)?;
    let mut rows = Vec::new();
    for (load, predicted) in Load::ALL.into_iter().zip(predictions) {
        let what = format!("{}: {} s in real time", load.name(), options.seconds + 1);
        terminal::remark(options.quiet, &what);
        let measured = measure(&mut live, load, flow, &emulation)?;
        rows.push(row(load, predicted?, measured, options.tolerance));
    }
    let report = Report::of(&emulation, &mut live.emulator, None);
    drop(live);
    let verdict = report.verdict().filter(|_| !options.late_ok);
    let document = Document {
        chappe: env!("CARGO_PKG_VERSION"),
        scenario: emulation.title.clone(),
        seed: emulation.seed,
        hops,
        seconds: options.seconds,
        tolerance: options.tolerance / 100.0,
        rows,
        emulation: report,
    };
    match options.json {
        true => {
            terminal::print(&(serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"))?;
        }
        false => terminal::print(&text(&document, options))?,
    }
    if let Some(verdict) = verdict {
        terminal::tell(&format!("chappe: {verdict}"));
        return Ok(ENVIRONMENT);
    }
    Ok(match document.rows.iter().all(|row| row.holds) {
        true => 0,
        false => FAILED,
    })
}

/// The requested flow, and the nodes on its path.
fn flow(options: &EmuCheck, emulation: &Emulation) -> Result<(Flow, Vec<usize>), Failure> {
    let last = (emulation.nodes() - 1).to_string();
    let from = super::node_of(&options.from, emulation.nodes())?;
    let to = super::node_of(options.to.as_deref().unwrap_or(&last), emulation.nodes())?;
    let path = emulation
        .routes
        .path(from, to)
        .filter(|path| path.len() > 1);
    let path = path.ok_or_else(|| {
        InputError::new(
            "--to",
            format!("there is no path from node {from} to node {to}"),
        )
    })?;
    let lasts = Duration::from_secs(options.seconds);
    let flow = Flow {
        from,
        to,
        skip: SKIP,
        lasts,
    };
    Ok((flow, path))
}

fn predict(
    options: &EmuCheck,
    emulation: &Emulation,
    load: Load,
    flow: Flow,
) -> Result<Range, Failure> {
    let seeds = emulation.seed..emulation.seed + options.repeat;
    let rates = seeds.map(|seed| emulation.predict(load, flow, seed));
    let rates = rates.collect::<Result<Vec<f64>, _>>()?;
    Ok(Range::of(rates.into_iter()))
}

fn row(load: Load, predicted_bps: Range, measured_bps: f64, tolerance: f64) -> Row {
    let difference = measured_bps / predicted_bps.mean.max(1.0) - 1.0;
    Row {
        load: load.name(),
        predicted_bps,
        measured_bps,
        difference,
        holds: difference.abs() * 100.0 <= tolerance,
    }
}

/// The goodput that iperf3's receiver reports, in bit/s.
fn measure(live: &mut Live, load: Load, flow: Flow, emulation: &Emulation) -> Result<f64, Failure> {
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1"]).stdout(Stdio::null());
    let server = Server(live.spawn(&mut server, flow.to)?);
    // The server opens its socket within milliseconds; a client that is refused tries again.
    let mut said = String::new();
    for _ in 0..20 {
        if live.pass(Duration::from_millis(100))? {
            return Err(Failure::Interrupted);
        }
        let mut client = Command::new("iperf3");
        client.args(["-c", &emulation.ipv4(flow.to).to_string(), "-J", "-i", "0"]);
        client.args(["-O", &seconds(flow.skip), "-t", &seconds(flow.lasts)]);
        match load {
            // Twice the fastest rate of 802.11b, so that the first queue is always full.
            Load::Udp => {
                let payload = load.payload(emulation.mtu).to_string();
                client.args(["-u", "-b", "22M", "-l", &payload]);
            }
            // The model implements CUBIC; a system's default may differ.
            Load::Tcp => {
                client.args(["-C", "cubic"]);
            }
        }
        let (read, write) = std::io::pipe()?;
        client.stdout(Stdio::from(write)).stderr(Stdio::null());
        let (status, signal) = live.program(&mut client, flow.from)?;
        if signal.is_some() {
            return Err(Failure::Interrupted);
        }
        // The command holds the writing end too.
        drop(client);
        said.clear();
        let mut read = read;
        read.read_to_string(&mut said)?;
        if status.success() {
            break;
        }
    }
    drop(server);
    goodput(&said).ok_or_else(|| {
        let error = serde_json::from_str::<serde_json::Value>(&said).ok();
        let error = error
            .as_ref()
            .and_then(|said| said["error"].as_str())
            .unwrap_or("no result");
        Failure::Environment(
            format!("iperf3 failed: {error}"),
            "it must be version 3.9 or later, and the kernel must have CUBIC: `modprobe tcp_cubic`"
                .into(),
        )
    })
}

fn goodput(said: &str) -> Option<f64> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let rate = said["end"]["sum_received"]["bits_per_second"].as_f64()?;
    (rate > 0.0).then_some(rate)
}

fn seconds(span: Duration) -> String {
    format!("{:.0}", span.as_secs_f64())
}

/// A server that does not outlive its measurement. It is killed: asked to end, it would talk to a client that the
/// emulator no longer serves.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(document: &Document, options: &EmuCheck) -> String {
    let path: Vec<String> = document
        .hops
        .iter()
        .map(|node| format!("n{node}"))
        .collect();
    let mut table = Table::new()
        .words("")
        .numbers("simulator kbit/s", 0)
        .numbers("kernel, emulated", 0)
        .numbers("difference", 1)
        .words("");
    for row in &document.rows {
        let half = row.predicted_bps.ci95.map(|half| half / 1e3);
        table.row([
            row.load.to_string(),
            with_interval(row.predicted_bps.mean / 1e3, half),
            kbit(row.measured_bps),
            format!("{:+.1} %", row.difference * 100.0),
            if row.holds { "holds" } else { "TOO FAR" }.to_string(),
        ]);
    }
    let table = table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    format!(
        "{}: {}, {} s each, seed {}\n\n{table}\n95 % intervals over {} airs; the kernel ran once. Within {} % is as predicted.\n{}",
        document.scenario,
        path.join(" - "),
        document.seconds,
        document.seed,
        options.repeat,
        options.tolerance,
        document.emulation.text(),
    )
}
