//! Running other programs: no terminal to ask, output shown or taken, a time limit where one can hang.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::terminal;

/// What has cargo build as quickly as it can, in the profile that the package has.
pub const UNOPTIMISED: [&str; 6] = [
    "--config",
    "profile.release.opt-level=0",
    "--config",
    "profile.release.lto=\"off\"",
    "--config",
    "profile.release.codegen-units=16",
];

/// `cargo` of the toolchain that runs us, in folder `root`, without standard input.
pub fn cargo(root: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).args(args);
    forget_package(&mut command);
    command
}

/// Keeps from a command that may build something what the cargo that runs us says of this package. Build scripts such as `ring`'s would
/// read it, and all that stands on them would be built anew after each `cargo build` of the reader's.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let of_package = |start: &&str| name.as_encoded_bytes().starts_with(start.as_bytes());
        if OF_A_PACKAGE.iter().any(of_package) {
            command.env_remove(name);
        }
    }
}

/// How the variables begin that cargo sets for a program that it runs.
const OF_A_PACKAGE: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// Runs a command to its end with its output shown.
pub fn show(command: &mut Command) -> Result<(), String> {
    verdict(status(command)?)
}

/// The same for a command whose exit code says more than success; an error only if it does not start.
pub fn status(command: &mut Command) -> Result<ExitStatus, String> {
    command.stdin(Stdio::null());
    if terminal::is_held() {
        return hold(command);
    }
    command.status().map_err(|e| cannot_start(command, &e))
}

/// Runs a command to its end and holds back what it prints, standard output and standard error in their order.
fn hold(command: &mut Command) -> Result<ExitStatus, String> {
    let (mut reader, writer) = io::pipe().map_err(|e| e.to_string())?;
    let second = writer.try_clone().map_err(|e| e.to_string())?;
    let mut child = command
        .stdout(writer)
        .stderr(second)
        .spawn()
        .map_err(|e| cannot_start(command, &e))?;
    // The command keeps the writing ends until they are replaced, and the pipe would not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut octets = Vec::new();
    let read = reader.read_to_end(&mut octets);
    terminal::keep(&octets);
    read.map_err(|e| e.to_string())?;
    child.wait().map_err(|e| e.to_string())
}

/// Runs a command, shows its standard output line by line and gives each line to `see` as well.
pub fn show_and_see(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| cannot_start(command, &e))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|e| e.to_string())?;
            let line = String::from_utf8_lossy(&line);
            terminal::say(&format!("{line}\n"));
            see(&line);
        }
    }
    verdict(child.wait().map_err(|e| e.to_string())?)
}

/// Standard output of a command that must succeed within `limit`. Its standard error is shown.
pub fn take(command: &mut Command, limit: Duration) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| cannot_start(command, &e))?;
    let reader = child.stdout.take().map(|mut stdout| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        })
    });
    let status = wait(&mut child, limit)?;
    let bytes = match reader.map(thread::JoinHandle::join) {
        Some(Ok(Ok(bytes))) => bytes,
        _ => return Err("its output could not be read".to_owned()),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    verdict(status).map_err(|why| format!("{why}\n{text}"))?;
    Ok(text)
}

/// The trimmed first line of a small tool's output (`git`, `uname`, `id`), if the tool is there and succeeds.
pub fn first_line(program: &str, args: &[&str], root: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(|line| line.trim().to_owned())
}

/// Whether a program of this name is on the search path.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if started.elapsed() > limit {
            // It may have ended between the two calls; then there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "stopped after {} s: it took too long",
                limit.as_secs()
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn verdict(status: ExitStatus) -> Result<(), String> {
    if status.success() {
        Ok(())
    } else {
        Err(status.to_string())
    }
}

fn cannot_start(command: &Command, why: &std::io::Error) -> String {
    format!(
        "{} does not start: {why}",
        command.get_program().to_string_lossy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let started = Instant::now();
        let why = take(Command::new("sleep").arg("30"), Duration::from_millis(200));
        assert!(why.unwrap_err().contains("stopped after"));
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failure_keeps_what_was_printed() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo half; exit 3"]);
        let why = take(&mut command, Duration::from_secs(10)).unwrap_err();
        assert!(why.contains('3') && why.contains("half"), "{why}");
    }
}
