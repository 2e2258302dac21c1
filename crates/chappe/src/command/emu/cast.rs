//! `chappe emu cast`: a scenario's transfer by `chappe cast` processes, compared with the simulator.

mod members;
mod show;

use std::process::{Command, Stdio};

use chappe::systems;
use chappe_core::{Bitrate, Duration};
use chappe_lab_pacifier::cast::{Chatter, Facts, Ladder, Step};
use chappe_lab_pacifier::{Pacifier, Variant};
use chappe_results::Range;
use chappe_scenario::InputError;
use chappe_scenario::plan::{Changes, NetworkPlan, Plan};
use serde::Serialize;

use crate::cli::EmuCast;
use crate::failure::{ENVIRONMENT, FAILED, Failure};
use crate::terminal;

use members::Seen;

/// One receiver over all seeds.
#[derive(Clone, Debug, Serialize)]
struct Receiver {
    /// Node number; none for the mean of all receivers.
    node: Option<usize>,
    simulated_bps: Range,
    emulated_bps: Range,
    /// Emulated over simulated goodput, minus one.
    difference: f64,
}

/// Goodput of the simulator with one more task of the processes: the slowest receiver, and the mean of all.
#[derive(Clone, Debug, Serialize)]
struct Cause {
    step: &'static str,
    slowest_bps: Range,
    mean_bps: Range,
}

/// The output of `--json`.
#[derive(Clone, Debug, Serialize)]
struct Document {
    chappe: &'static str,
    scenario: String,
    seeds: Vec<u64>,
    rate_bps: u64,
    mtu: usize,
    bytes: usize,
    tolerance: f64,
    holds: bool,
    bound_bps: Option<f64>,
    receivers: Vec<Receiver>,
    /// Mean over the receivers.
    mean: Receiver,
    causes: Vec<Cause>,
    runs: Vec<Seen>,
}

/// What all seeds share.
struct Setting {
    plan: Plan,
    rate: Bitrate,
    mtu: usize,
}

pub fn run(options: &EmuCast) -> Result<u8, Failure> {
    let setting = Setting::read(options)?;
    if options.alone {
        let seen = members::emulate(options, &setting)?;
        terminal::print(&(serde_json::to_string(&seen).unwrap_or_default() + "\n"))?;
        return Ok(0);
    }
    let mut runs = Vec::new();
    for seed in &setting.plan.seeds {
        terminal::remark(options.quiet, &format!("seed {seed}: in real time"));
        runs.push(apart(options, *seed)?);
    }
    terminal::remark(options.quiet, "simulating");
    let document = compare(options, &setting, runs)?;
    match options.json {
        true => {
            terminal::print(&(serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"))?;
        }
        false => terminal::print(&show::text(&document))?,
    }
    if let (Some(late), false) = (document.runs.iter().find(|run| !run.valid), options.late_ok) {
        terminal::tell(&format!(
            "chappe: the emulator was late on seed {}: 99 % of its turns took up to {:.2} ms, so these results are not valid\n  use an idle machine; --late-ok accepts the result nevertheless",
            late.seed,
            late.late_p99_s * 1e3
        ));
        return Ok(ENVIRONMENT);
    }
    Ok(if document.holds { 0 } else { FAILED })
}

impl Setting {
    fn read(options: &EmuCast) -> Result<Setting, Failure> {
        let network = NetworkPlan::read(
            &systems::scenarios(),
            &options.file,
            &options.set,
            options.seed,
        )?;
        let first = network.seed;
        let seeds = Some((first..first + options.repeat).collect());
        let changes = Changes {
            seeds,
            ..Changes::default()
        };
        let plan = Plan::read(&systems::scenarios(), &options.file, &options.set, &changes)?;
        let wrong = |what: &str| Err(InputError::new("", what).into());
        let Ok(with) = Pacifier::of(&plan) else {
            return wrong(
                "the scenario's system is not Pacifier, which is what `chappe cast` runs",
            );
        };
        if !matches!(with.protocol.variant, Variant::Paper | Variant::Improved) {
            return wrong("`chappe cast` has only the variants paper and improved");
        }
        if plan.transfers.len() != 1 {
            return wrong("the scenario needs exactly one [[transfer]]");
        }
        // A frame of `chappe cast` carries as many octets of the file as one of the scenario.
        let mtu =
            with.protocol.config.common().payload + members::headers(with) + members::AROUND_IP;
        Ok(Setting {
            rate: options.rate.unwrap_or_else(|| alone_rate(&network, mtu)),
            plan,
            mtu,
        })
    }

    fn with(&self) -> Result<&Pacifier, Failure> {
        Ok(Pacifier::of(&self.plan)?)
    }
}

/// Rate of a station with the channel to itself: each frame takes DIFS, half the first contention window, and its airtime.
fn alone_rate(network: &NetworkPlan, mtu: usize) -> Bitrate {
    let mac = &network.mac;
    let difs = mac.sifs + mac.slot * 2;
    let backoff = mac.slot * u64::from(mac.cw_min) / 2;
    // 802.11 header, LLC and SNAP, check sequence.
    let frame = network.mode.airtime(mtu + 24 + 8 + 4);
    let seconds = (difs + backoff + frame).as_secs_f64();
    Bitrate((mtu as f64 * 8.0 / seconds) as u64)
}

/// Emulates one seed in a child process, which has separate namespaces.
fn apart(options: &EmuCast, seed: u64) -> Result<Seen, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["emu", "cast"]).arg(&options.file);
    command.args(["--alone", "--quiet", "--seed", &seed.to_string()]);
    command.args(["--queue", &options.queue.to_string()]);
    for set in &options.set {
        command.args(["--set", set]);
    }
    if let Some(rate) = options.rate {
        command.args(["--rate", &format!("{} bit/s", rate.0)]);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    match output.status.code() {
        Some(0) => {}
        Some(code) => return Err(Failure::Reported(u8::try_from(code).unwrap_or(FAILED))),
        None => return Err(Failure::Interrupted),
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Defect(format!("the emulation's answer: {error}")))
}

fn compare(options: &EmuCast, setting: &Setting, runs: Vec<Seen>) -> Result<Document, Failure> {
    let mut rates: Vec<Vec<Vec<f64>>> = vec![Vec::new(); Step::ALL.len()];
    let (mut bound_bps, mut nodes, mut bytes) = (None, Vec::new(), 0);
    for run in &runs {
        let ladder = Ladder::new(&setting.plan, run.seed)?;
        bound_bps = bound_bps.or(ladder.bound_bps());
        let facts = Facts {
            links: run.links.clone(),
            chatter: Chatter {
                every: Duration::from_secs_f64(run.chatter_every_s),
                octets: run.chatter_octets,
            },
            pace: (setting.rate, usize::from(options.queue)),
        };
        let steps = match options.no_causes {
            true => 1,
            false => Step::ALL.len(),
        };
        for (place, step) in Step::ALL.into_iter().enumerate().take(steps) {
            rates[place].push(ladder.goodput(step, &facts)?);
        }
        nodes = run.receivers.iter().map(|receiver| receiver.0).collect();
        bytes = run.bytes;
    }
    let emulated: Vec<Vec<f64>> = runs.iter().map(Seen::goodputs).collect();
    let receivers = (0..nodes.len()).map(|place| {
        let of = |runs: &[Vec<f64>]| Range::of(runs.iter().map(|run| run[place]));
        receiver(Some(nodes[place]), of(&rates[0]), of(&emulated))
    });
    let receivers: Vec<Receiver> = receivers.collect();
    let means = |runs: &[Vec<f64>]| Range::of(runs.iter().map(|run| mean(run)));
    let least = |runs: &[Vec<f64>]| {
        Range::of(
            runs.iter()
                .map(|run| run.iter().copied().fold(f64::INFINITY, f64::min)),
        )
    };
    let mean = receiver(None, means(&rates[0]), means(&emulated));
    let cause = |step: &'static str, runs: &[Vec<f64>]| Cause {
        step,
        slowest_bps: least(runs),
        mean_bps: means(runs),
    };
    let simulated = Step::ALL
        .iter()
        .zip(&rates)
        .filter(|(_, runs)| !runs.is_empty());
    let mut causes: Vec<Cause> = simulated
        .map(|(step, runs)| cause(step.name(), runs))
        .collect();
    causes.push(cause("processes, emulated", &emulated));
    let tolerance = options.tolerance / 100.0;
    let near = |receiver: &Receiver| receiver.difference.abs() <= tolerance;
    Ok(Document {
        chappe: env!("CARGO_PKG_VERSION"),
        scenario: setting.plan.title.clone(),
        seeds: setting.plan.seeds.clone(),
        rate_bps: setting.rate.0,
        mtu: setting.mtu,
        bytes,
        tolerance,
        holds: receivers.iter().all(near) && near(&mean),
        bound_bps,
        receivers,
        mean,
        causes,
        runs,
    })
}

fn receiver(node: Option<usize>, simulated_bps: Range, emulated_bps: Range) -> Receiver {
    let difference = emulated_bps.mean / simulated_bps.mean.max(1.0) - 1.0;
    Receiver {
        node,
        simulated_bps,
        emulated_bps,
        difference,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
