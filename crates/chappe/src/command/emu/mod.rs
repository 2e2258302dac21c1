//! `chappe emu`: real programs over a scenario's network.

mod exec;
mod record;
mod report;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use chappe_core::Duration;
use chappe_emu::{Emulator, Ending, Joint, Network};
use chappe_lab::emulation::{Emulation, Options, Station};
use chappe_lab::plan::NetworkPlan;
use chappe_sys::{Signal, namespace, process};

use crate::cli::{Emu, EmuAction};
use crate::failure::{ENVIRONMENT, Failure, INTERRUPTED};
use crate::terminal;

use record::{Folder, Kept, Record};
use report::Report;

pub fn run(options: &Emu) -> Result<u8, Failure> {
    if let Some(EmuAction::Exec(options)) = &options.action {
        return exec::run(options);
    }
    let Some(file) = &options.file else {
        let missing = "no scenario file is given";
        return Err(chappe_lab::input::InputError::new("", missing).into());
    };
    let plan = NetworkPlan::read(file, &options.set, options.seed)?;
    let emulation = Emulation::new(&plan, asked(options))?;
    let mut live = Live::start(&emulation, options.quiet)?;
    let node = live.record.node(&options.node)?;
    if options.command.is_empty() {
        if !options.json {
            terminal::print(&report::places(&emulation, live.record.pid))?;
            terminal::remark(options.quiet, "Ctrl-C ends it");
        }
        let signal = live.until_signal()?;
        return finish(options, &emulation, live, None, Some(signal));
    }
    let (status, signal) = live.program(options, node)?;
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

/// Tells what happened, and with which code to end.
fn finish(
    options: &Emu,
    emulation: &Emulation,
    mut live: Live,
    status: Option<u8>,
    signal: Option<Signal>,
) -> Result<u8, Failure> {
    let report = Report::of(emulation, &mut live.emulator, status);
    // Everything goes before the talk, which may fail.
    drop(live);
    if options.json {
        terminal::print(&report.json())?;
    } else {
        terminal::remark(options.quiet, report.text().trim_end());
    }
    let verdict = report.verdict().filter(|_| !options.late_ok);
    if let Some(verdict) = &verdict {
        eprintln!(
            "chappe: {verdict}\n  run it on a machine that does nothing else, as root for a real-time priority, or with fewer nodes; --late-ok takes it as it is"
        );
    }
    Ok(match (status, signal) {
        (None, Some(_)) if verdict.is_none() => 0,
        (Some(code @ 1..), None) => code,
        (Some(_), Some(_)) => INTERRUPTED,
        _ if verdict.is_some() => ENVIRONMENT,
        _ => 0,
    })
}

/// An emulation that runs. Dropping it ends its programs and takes everything away.
struct Live {
    /// Dropped first: what it kills must not outlive the network.
    record: Kept,
    emulator: Emulator<Station>,
}

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

impl Live {
    fn start(emulation: &Emulation, quiet: bool) -> Result<Live, Failure> {
        let folder = Folder::open()?;
        let (programs, records) = folder.clean();
        if records > 0 {
            let what =
                format!("cleaned up after {records} killed emulations: {programs} programs ended");
            terminal::remark(quiet, &what);
        }
        let record = Record::of(emulation)?;
        // Without it the emulation works too, and its lateness says how well.
        let preferred = process::prefer();
        namespace::isolate_by_any_means()?;
        let network = Network::make(&emulation.hosts(), emulation.shape())?;
        let namespaces = (0..network.len()).filter_map(|node| network.host(node));
        let namespaces = namespaces
            .map(|namespace| namespace.as_fd().as_raw_fd())
            .collect();
        let simulator = emulation.simulator()?;
        let emulator = Emulator::new(simulator, network)?;
        let record = folder.keep(record.with_namespaces(namespaces))?;
        if preferred.is_err() {
            terminal::remark(
                quiet,
                "no real-time priority (only root can have it): keep the machine idle",
            );
        }
        Ok(Live { record, emulator })
    }

    /// Runs until somebody asks for the end.
    fn until_signal(&mut self) -> Result<Signal, Failure> {
        loop {
            if let Ending::Signal(signal) = self.emulator.run(None)? {
                return Ok(signal);
            }
        }
    }

    /// Runs a program in `node` to its end; a signal that asks for the end is handed on to it.
    fn program(
        &mut self,
        options: &Emu,
        node: usize,
    ) -> Result<(ExitStatus, Option<Signal>), Failure> {
        let (mut child, end) = self.spawn(options, node)?;
        self.emulator.watch(end.as_fd(), 0)?;
        let (mut asked, mut limit) = (None, None);
        loop {
            match self.emulator.run(limit)? {
                Ending::Watched(_) => break,
                Ending::Signal(signal) if asked.is_none() => {
                    process::tell(&child, signal)?;
                    asked = Some(signal);
                    limit = Some(self.emulator.clock().now() + GRACE);
                }
                Ending::Signal(_) | Ending::Time => {
                    child.kill()?;
                    limit = None;
                }
            }
        }
        Ok((child.wait()?, asked))
    }

    fn spawn(&self, options: &Emu, node: usize) -> Result<(Child, OwnedFd), Failure> {
        let (Some(namespace), Some(program)) = (self.emulator.host(node), options.command.first())
        else {
            return Err(Failure::Defect("a node without a namespace".into()));
        };
        let mut command = Command::new(program);
        command
            .args(&options.command[1..])
            .envs(self.record.variables(node, &self.record.path));
        if options.json {
            command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
        }
        let child = process::spawn_in(namespace, &mut command)?;
        let end = process::watch(&child)?;
        Ok((child, end))
    }
}

/// The exit code of a program; 128 and the signal's number if one ended it, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
