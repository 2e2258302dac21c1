//! A running emulation with its programs.

use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, ExitStatus};

use chappe_core::Duration;
use chappe_emu::{Emulator, Ending, Network};
use chappe_lab_emu::{Capture, Emulation};
use chappe_sys::{Signal, namespace, process};

use super::desk::Desk;
use super::record::{Folder, Kept, Record};
use super::running::Running;
use crate::command::film::Film;
use crate::door;
use crate::failure::Failure;
use crate::terminal;

/// A running emulation. Dropping it ends its programs and removes its network.
pub struct Live {
    /// Dropped first: its programs must not outlive the network.
    pub record: Kept,
    pub emulator: Running,
    desk: Desk,
}

/// The token of the program that ends an emulation.
const CHILD: u64 = 0;

/// Grace time between the signal to a program and its end by force.
const GRACE: Duration = Duration::from_secs(2);

impl Live {
    pub fn start(emulation: &Emulation, capture: Capture, quiet: bool) -> Result<Live, Failure> {
        let folder = Folder::open()?;
        let (programs, records) = folder.clean();
        if records > 0 {
            let what =
                format!("cleaned up after {records} killed emulations: {programs} programs ended");
            terminal::remark(quiet, &what);
        }
        let record = Record::of(emulation)?;
        // The emulation also works without it; its lateness shows how well.
        let preferred = process::prefer();
        // Before the namespaces: inside there is no right to write where the socket stands. It is no reason to fail.
        let bound = door::bind_usual(&format!("emu-{}.sock", std::process::id())).ok();
        namespace::isolate_by_any_means()?;
        let network = Network::make(&emulation.hosts(), emulation.shape())?;
        let namespaces = (0..network.len()).filter_map(|node| network.host(node));
        let namespaces = namespaces
            .map(|namespace| namespace.as_fd().as_raw_fd())
            .collect();
        let simulator = emulation.simulator(Film::new(capture))?;
        let mut emulator = Emulator::new(simulator, network)?;
        let desk = Desk::open(&mut emulator, emulation, bound)?;
        let record = folder.keep(record.with_namespaces(namespaces))?;
        if preferred.is_err() {
            terminal::remark(
                quiet,
                "no real-time priority (only root can have it): keep the machine idle",
            );
        }
        Ok(Live {
            record,
            emulator,
            desk,
        })
    }

    /// Runs until SIGINT or SIGTERM.
    pub fn until_signal(&mut self) -> Result<Signal, Failure> {
        loop {
            if let Ending::Signal(signal) = self.emulator.run(None)? {
                return Ok(signal);
            }
            self.desk.answer(&mut self.emulator);
        }
    }

    /// Runs a program in `node` to its end; forwards SIGINT and SIGTERM to it.
    pub fn program(
        &mut self,
        command: &mut Command,
        node: usize,
    ) -> Result<(ExitStatus, Option<Signal>), Failure> {
        let mut child = self.spawn(command, node)?;
        let end = process::watch(&child)?;
        self.emulator.watch(end.as_fd(), CHILD as u32)?;
        let (mut asked, mut limit) = (None, None);
        loop {
            match self.emulator.run(limit)? {
                Ending::Watched(CHILD) => break,
                Ending::Watched(_) => self.desk.answer(&mut self.emulator),
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
        self.emulator.forget(end.as_fd())?;
        Ok((child.wait()?, asked))
    }

    /// Emulates for `time`; true if SIGINT or SIGTERM arrives meanwhile.
    pub fn pass(&mut self, time: Duration) -> Result<bool, Failure> {
        let end = self.emulator.clock().now() + time;
        loop {
            match self.emulator.run(Some(end))? {
                Ending::Signal(_) => return Ok(true),
                Ending::Time => return Ok(false),
                Ending::Watched(_) => self.desk.answer(&mut self.emulator),
            }
        }
    }

    /// Starts a program in `node`. It ends with this process at the latest.
    pub fn spawn(&self, command: &mut Command, node: usize) -> Result<Child, Failure> {
        let Some(namespace) = self.emulator.host(node) else {
            return Err(Failure::Defect("a node without a namespace".into()));
        };
        command.envs(self.record.variables(node, &self.record.path));
        Ok(process::spawn_in(namespace, command)?)
    }
}
