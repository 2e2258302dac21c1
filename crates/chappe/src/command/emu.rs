//! `chappe emu`: real programs over a scenario's network.

mod cast;
mod check;
mod desk;
mod exec;
mod live;
mod record;
mod report;
mod running;

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use chappe::systems;
use chappe_emu::Joint;
use chappe_lab_emu::{Capture, Emulation, Options};
use chappe_scenario::InputError;
use chappe_scenario::plan::NetworkPlan;
use chappe_sys::Signal;

use crate::cli::{Emu, EmuAction};
use crate::failure::{ENVIRONMENT, Failure, INTERRUPTED};
use crate::terminal;

use live::Live;
use report::Report;

pub fn run(options: &Emu) -> Result<u8, Failure> {
    match &options.action {
        Some(EmuAction::Exec(options)) => return exec::run(options),
        Some(EmuAction::Check(options)) => return check::run(options),
        Some(EmuAction::Cast(options)) => return cast::run(options),
        None => {}
    }
    let Some(file) = &options.file else {
        let missing = "no scenario file is given";
        return Err(InputError::new("", missing).into());
    };
    let plan = NetworkPlan::read(&systems::scenarios(), file, &options.set, options.seed)?;
    for note in &plan.notes {
        terminal::remark(options.quiet, &format!("note: {note}"));
    }
    let emulation = Emulation::new(&plan, asked(options))?;
    let node = node_of(&options.node, emulation.nodes())?;
    let capture = match &options.pcap {
        Some(path) => {
            Capture::create(path, emulation.nodes()).map_err(|error| unwritable(path, &error))?
        }
        None => Capture::default(),
    };
    let mut live = Live::start(&emulation, capture, options.quiet)?;
    if options.command.is_empty() {
        if !options.json {
            terminal::print(&report::places(&emulation, live.record.pid))?;
            terminal::remark(options.quiet, "Ctrl-C ends it");
        }
        let signal = live.until_signal()?;
        return finish(options, &emulation, live, None, Some(signal));
    }
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]);
    if options.json {
        command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    }
    let (status, signal) = live.program(&mut command, node)?;
    finish(options, &emulation, live, Some(code(status)), signal)
}

fn asked(options: &Emu) -> Options {
    Options {
        queue: usize::from(options.queue),
        mtu: options.mtu,
        routes: !options.no_routes,
        joint: if options.tap { Joint::Tap } else { Joint::Veth },
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("cannot write {}: {error}", path.display());
    Failure::Environment(
        what,
        "choose another place with --pcap, or make room".into(),
    )
}

/// Prints the report; returns the exit code.
fn finish(
    options: &Emu,
    emulation: &Emulation,
    mut live: Live,
    status: Option<u8>,
    signal: Option<Signal>,
) -> Result<u8, Failure> {
    let report = Report::of(emulation, &mut live.emulator, status);
    let filmed = live.emulator.recorder_mut().capture.finish();
    // Remove the network before printing, which may fail.
    drop(live);
    if options.json {
        terminal::print(&report.json())?;
    } else {
        terminal::remark(options.quiet, report.text().trim_end());
    }
    if let Some(path) = &options.pcap {
        filmed.map_err(|error| unwritable(path, &error))?;
        let what = format!("frames are in {}; Wireshark opens it", path.display());
        terminal::remark(options.quiet, &what);
    }
    let verdict = report.verdict().filter(|_| !options.late_ok);
    if let Some(verdict) = &verdict {
        terminal::tell(&format!(
            "chappe: {verdict}\n  use an idle machine, as root for a real-time priority, or with fewer nodes; --late-ok accepts the result nevertheless"
        ));
    }
    Ok(match (status, signal) {
        (None, Some(_)) if verdict.is_none() => 0,
        (Some(code @ 1..), None) => code,
        (Some(_), Some(_)) => INTERRUPTED,
        _ if verdict.is_some() => ENVIRONMENT,
        _ => 0,
    })
}

/// The node that `text` names, `2` or `n2`, among `nodes` of them.
fn node_of(text: &str, nodes: usize) -> Result<usize, Failure> {
    let digits = text.strip_prefix('n').unwrap_or(text);
    let found = digits.parse().ok().filter(|&node: &usize| node < nodes);
    found.ok_or_else(|| {
        let message = format!(
            "there is no node {text}; the nodes are n0 to n{}",
            nodes - 1
        );
        InputError::new("NODE", message).into()
    })
}

/// The exit code of a program; 128 plus the signal's number if a signal ended it, as in shells.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
