//! Programs: starting them in a network namespace, watching, ending, and finding leftovers by their environment.
//!
//! A program started here ends with its parent, even if the parent is killed. The programs that *it* starts may live on.
//! [`in_environment`] finds these by a variable that all of them inherit, so no foreign program is ever matched.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::error::{Error, Result};
use crate::event_loop::Signal;
use crate::namespace::NetworkNamespace;
use crate::raw;

/// Identifies a process uniquely until the next boot: PIDs are reused, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The PID in the current PID namespace.
    pub pid: u32,
    /// Its start time in clock ticks since boot (proc_pid_stat(5), field 22).
    pub started: u64,
}

impl Identity {
    /// The identity of this program.
    pub fn own() -> Option<Identity> {
        Identity::of(std::process::id())
    }

    /// The identity of the process that has `pid` now; `None` if there is none, or only a zombie.
    pub fn of(pid: u32) -> Option<Identity> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name in brackets may itself contain brackets and blanks.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let dead = matches!(fields.next()?, "Z" | "X");
        let started = fields.nth(18)?.parse().ok()?;
        (!dead).then_some(Identity { pid, started })
    }

    /// Whether the process still runs.
    pub fn runs(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }
}

/// Starts `command` in `namespace`. The kernel kills it when the calling *thread* ends (PR_SET_PDEATHSIG).
pub fn spawn_in(namespace: &NetworkNamespace, command: &mut Command) -> Result<Child> {
    raw::enter_before_exec(command, namespace.as_fd());
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let error = Error::new(format!("start `{program}`"), error);
        if missing {
            error.remedy("install the program, or add its folder to PATH")
        } else {
            error
        }
    })
}

/// A descriptor that becomes readable when `child` ends.
pub fn watch(child: &Child) -> Result<OwnedFd> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .map_err(|error| Error::new("watch a program", error))
}

/// Sends `signal` to `child`. Does nothing if it has already ended.
pub fn tell(child: &Child, signal: Signal) -> Result<()> {
    let number = match signal {
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Reload => rustix::process::Signal::HUP,
    };
    // The kernel does not reuse a child's PID before the parent has waited for it, so this hits no other process.
    match rustix::process::kill_process(Pid::from_child(child), number) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(Error::new("send a signal to a program", error)),
    }
}

/// The PIDs of processes that were started with the environment variable `variable`, such as `CHAPPE_EMU=7f3a`. This
/// program itself is excluded, and so are processes that this user may not inspect.
pub fn in_environment(variable: &str) -> Vec<u32> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|&pid: &u32| pid != std::process::id() && has_variable(pid, variable))
        .collect()
}

/// Ends the processes of the group that `child` leads (`CommandExt::process_group(0)`), while it has not been waited for: by
/// SIGTERM, or with `kill` by SIGKILL.
pub fn end_group(child: &Child, kill: bool) {
    let signal = match kill {
        true => rustix::process::Signal::KILL,
        false => rustix::process::Signal::TERM,
    };
    // It fails only if all of them have ended.
    let _ = rustix::process::kill_process_group(Pid::from_child(child), signal);
}

/// Kills all processes whose environment holds `variable`; returns the number killed.
pub fn kill_in_environment(variable: &str) -> usize {
    let mut killed = 0;
    // Bounded: a process that forks faster than it is killed would keep the loop running.
    for _ in 0..10 {
        let found = in_environment(variable);
        if found.is_empty() {
            break;
        }
        killed += found.iter().filter(|&&pid| kill(pid, variable)).count();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    killed
}

/// Creates a folder that only this user can read, for files shared between running programs, in XDG_RUNTIME_DIR or
/// the folder for temporary files. It outlives the program. Call it before
/// [`namespace::isolate`](crate::namespace::isolate), after which the user has another UID.
pub fn private_folder(name: &str) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let path = match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        Some(runtime) => Path::new(&runtime).join(name),
        None => std::env::temp_dir().join(format!("{name}-{user}")),
    };
    let failed = |error| Error::new("make a folder", error).on(&path.to_string_lossy());
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(failed(error));
        }
        _ => {}
    }
    // In a world-writable folder another user may have created it first.
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(path);
    }
    let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    Err(failed(error)
        .remedy("the folder is readable or owned by others: remove it, or set XDG_RUNTIME_DIR"))
}

/// Gives this thread the lowest real-time priority (SCHED_FIFO), ahead of all ordinary threads. Programs that it starts
/// do not inherit it. Needs CAP_SYS_NICE on the host, so call it before
/// [`namespace::isolate`](crate::namespace::isolate).
pub fn prefer() -> Result<()> {
    raw::schedule_first().map_err(|error| {
        Error::new("get a real-time priority", error)
            .needs("run as root, or give the user a limit: `rtprio 1` in /etc/security/limits.conf")
    })
}

/// Kills a process through a pidfd. The pidfd pins the process while its environment is checked again, so a reused PID
/// is never hit.
fn kill(pid: u32, variable: &str) -> bool {
    let open = || pidfd_open(Pid::from_raw(pid.try_into().ok()?)?, PidfdFlags::empty()).ok();
    let Some(process) = open() else {
        return false;
    };
    has_variable(pid, variable)
        && pidfd_send_signal(process.as_fd(), rustix::process::Signal::KILL).is_ok()
}

fn has_variable(pid: u32, variable: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mut lines = environment.split(|&octet| octet == 0);
    lines.any(|line| OsStr::from_bytes(line) == OsStr::new(variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_number_and_start() {
        let own = Identity::own().unwrap();
        assert!(own.runs());
        let older = Identity {
            started: own.started.wrapping_sub(1),
            ..own
        };
        assert!(!older.runs());
        assert!(Identity::of(u32::MAX).is_none());
    }

    /// Goal: only processes with the variable are killed. Method: two programs sleep, one of them with the variable.
    #[test]
    fn leftover_processes_are_found_by_their_environment() {
        let name = format!("CHAPPE_TEST_{}=yes", std::process::id());
        let (key, value) = name.split_once('=').unwrap();
        let sleep = |marked: bool| {
            let mut command = Command::new("sleep");
            command.arg("20");
            if marked {
                command.env(key, value);
            }
            command.spawn().unwrap()
        };
        let (mut ours, mut other) = (sleep(true), sleep(false));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        // Between fork and exec it has the environment of this program.
        while in_environment(&name) != [ours.id()] && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(in_environment(&name), [ours.id()]);
        assert!(kill_in_environment(&name) >= 1);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
