//! The command that runs after a verified arrival.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::receipt;

/// A command and how long it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Then {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<OsString>,
    /// How long it may run.
    pub limit: Duration,
}

/// The files that have arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// The identifier of the files.
    pub transfer: String,
    /// The name of the sender.
    pub sender: String,
    /// The folder in which the files are.
    pub folder: PathBuf,
    /// The paths of the files.
    pub files: Vec<PathBuf>,
}

/// Longest list of files in the environment in octets: Linux takes 128 KiB (MAX_ARG_STRLEN). Standard input has all of them.
const LIST_MAX: usize = 100_000;
/// Interval between looks at the running command.
const LOOK: Duration = Duration::from_millis(20);
/// How long a command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

impl Then {
    /// Runs the command and waits for its end. It gets `CHAPPE_TRANSFER`, `CHAPPE_SENDER`, `CHAPPE_FOLDER`, `CHAPPE_COUNT` and, up
    /// to 100 kB, `CHAPPE_FILES` (a path on each line) in its environment, and all paths on standard input, each with a zero octet
    /// behind it. Its output goes to standard error.
    pub fn run(&self, arrival: &Arrival) -> receipt::Command {
        let Some((program, words)) = self.command.split_first() else {
            return receipt::Command::NotStarted;
        };
        let paths: Vec<&[u8]> = arrival
            .files
            .iter()
            .map(|path| path.as_os_str().as_bytes())
            .collect();
        let mut command = Command::new(program);
        command
            .args(words)
            .env("CHAPPE_TRANSFER", &arrival.transfer)
            .env("CHAPPE_SENDER", &arrival.sender)
            .env("CHAPPE_FOLDER", &arrival.folder)
            .env("CHAPPE_COUNT", arrival.files.len().to_string())
            .stdin(Stdio::piped())
            // Standard output may carry events as JSON.
            .stdout(std::io::stderr())
            .process_group(0);
        let list = paths.join(&b'\n');
        if list.len() <= LIST_MAX {
            command.env("CHAPPE_FILES", std::ffi::OsStr::from_bytes(&list));
        }
        let Ok(mut child) = command.spawn() else {
            return receipt::Command::NotStarted;
        };
        if let Some(mut input) = child.stdin.take() {
            let all: Vec<u8> = paths
                .iter()
                .flat_map(|path| [path, &[0][..]].concat())
                .collect();
            // A command that does not read its input must not stop this thread.
            std::thread::spawn(move || drop(input.write_all(&all)));
        }
        self.wait(&mut child)
    }

    fn wait(&self, child: &mut Child) -> receipt::Command {
        let begun = Instant::now();
        let mut asked = None;
        loop {
            match child.try_wait() {
                Ok(Some(_)) if asked.is_some() => return receipt::Command::TimedOut,
                Ok(Some(status)) => {
                    let signal = status.signal().map(receipt::Command::Killed);
                    let code = status.code().map(receipt::Command::Ended);
                    return code.or(signal).unwrap_or(receipt::Command::NotStarted);
                }
                Ok(None) => {}
                Err(_) => return receipt::Command::NotStarted,
            }
            match asked {
                None if begun.elapsed() >= self.limit => {
                    asked = Some(Instant::now());
                    chappe_sys::process::end_group(child, false);
                }
                Some(since) if since.elapsed() >= GRACE => {
                    chappe_sys::process::end_group(child, true);
                    let _ = child.wait();
                    return receipt::Command::TimedOut;
                }
                _ => {}
            }
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str], limit: u64) -> receipt::Command {
        let then = Then {
            command: words.iter().map(OsString::from).collect(),
            limit: Duration::from_millis(limit),
        };
        then.run(&Arrival {
            transfer: "12ab".into(),
            sender: "base".into(),
            folder: "/srv".into(),
            files: vec!["/srv/a b".into(), "/srv/$(touch x)".into()],
        })
    }

    /// Goal: the command gets the names as they are, and its end is known. Method: commands that check, fail, die and stay.
    #[test]
    fn commands_get_names_and_end_in_time() {
        let check = r#"test "$CHAPPE_SENDER $CHAPPE_COUNT $CHAPPE_TRANSFER $1" = "base 2 12ab a b" &&
            test "$(printf '%s' "$CHAPPE_FILES" | tail -n 1)" = '/srv/$(touch x)' &&
            test "$(tr '\0' '|')" = '/srv/a b|/srv/$(touch x)|'"#;
        assert_eq!(
            run(&["sh", "-c", check, "sh", "a b"], 5000),
            receipt::Command::Ended(0)
        );
        assert_eq!(
            run(&["sh", "-c", "exit 7"], 5000),
            receipt::Command::Ended(7)
        );
        assert_eq!(
            run(&["sh", "-c", "kill -9 $$"], 5000),
            receipt::Command::Killed(9)
        );
        assert_eq!(
            run(&["/no/such/program"], 5000),
            receipt::Command::NotStarted
        );
        let begun = Instant::now();
        assert_eq!(
            run(&["sh", "-c", "sleep 60 & wait"], 100),
            receipt::Command::TimedOut
        );
        assert_eq!(
            run(&["sh", "-c", "trap '' TERM; sleep 60; sleep 60"], 100),
            receipt::Command::TimedOut
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
