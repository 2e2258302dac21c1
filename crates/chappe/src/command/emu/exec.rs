//! `chappe emu exec`: runs a program in a node of an emulation of another process.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use chappe_sys::namespace::{NetworkNamespace, join_user_of};

use super::record::{Folder, Record};
use crate::cli::EmuExec;
use crate::failure::Failure;

/// Replaces this process by the program; returns only on failure.
pub fn run(options: &EmuExec) -> Result<u8, Failure> {
    let (record, path) = match Record::around().filter(|_| options.run.is_none()) {
        Some(around) => around,
        None => choose(Folder::open()?.running(), options.run)?,
    };
    let node = super::node_of(&options.node, record.addresses.len())?;
    let (Some(program), Some(&namespace)) = (options.command.first(), record.namespaces.get(node))
    else {
        return Err(Failure::Defect("an emulation without namespaces".into()));
    };
    join_user_of(record.pid)?;
    NetworkNamespace::of_process(record.pid, namespace)?.enter()?;
    let error = Command::new(program)
        .args(&options.command[1..])
        .envs(record.variables(node, &path))
        .exec();
    let program = program.to_string_lossy();
    Err(Failure::Environment(
        format!("cannot start `{program}`: {error}"),
        "is it installed, and in PATH?".into(),
    ))
}

type Found = (Record, PathBuf);

fn choose(running: Vec<Found>, wanted: Option<u32>) -> Result<Found, Failure> {
    let list = |records: &[Found]| {
        let lines = records
            .iter()
            .map(|(record, _)| format!("--run {}  {}", record.pid, record.title));
        lines.collect::<Vec<_>>().join("\n  ")
    };
    let mut found = running.clone();
    found.retain(|(record, _)| wanted.is_none_or(|pid| pid == record.pid));
    match (found.len(), running.len()) {
        (1, _) => Ok(found.remove(0)),
        (_, 0) => Err(Failure::Environment(
            "no emulation of this user is running".into(),
            "start one in another terminal:  chappe emu FILE.toml".into(),
        )),
        (0, _) => Err(Failure::Environment(
            format!("no emulation has process {}", wanted.unwrap_or(0)),
            format!("these are running:\n  {}", list(&running)),
        )),
        _ => Err(Failure::Environment(
            "several emulations are running".into(),
            format!("name one of them:\n  {}", list(&running)),
        )),
    }
}
