//! `chappe try`: runs a command twice over the same lossy path, plainly and through `chappe link`.

mod ends;
mod far;
pub mod options;
mod report;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

use chappe_core::Seed;
use chappe_emu::{ADDRESSES, INTERFACE, Line};
use chappe_lab_emu::NamedPath;
use chappe_scenario::InputError;
use chappe_sys::{namespace, process, tun};

use crate::command::emu::code;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::terminal;

use ends::{DEVICE, Ends, INSIDE};
pub use options::Try;
use report::{Report, Ride, Way};

/// What the bound carries in this time is downloaded, so that both runs take some seconds.
const SECONDS: f64 = 1.5;
/// The least and the most of a download without `--size`, in octets.
const SIZES: (f64, f64) = (2e3, 8e6);

pub fn run(options: &Try) -> Result<u8, Failure> {
    let path = NamedPath::parse(&options.over)?;
    let size = match &options.size {
        Some(text) => far::size(text).ok_or_else(|| not_a_size(text))?,
        None => usual_size(path.plain.bound_bps()),
    };
    let names = Names::make()?;
    // The line also works without it; its lateness is reported.
    let _ = process::prefer();
    namespace::isolate_by_any_means()?;
    // What the second run needs is tried before the first one takes its time.
    drop(tun::Tun::create("chappe%d", tun::Kind::Tun)?);
    // A download of our own goes by addresses, also where there is no /etc.
    if options.shell || !options.command.is_empty() {
        names.show()?;
    }
    let interrupted = terminal::interrupt();
    let trial = Trial {
        options,
        path: &path,
        size,
        names: &names,
    };
    if options.shell {
        return trial.shell();
    }
    let mut report = Report::new(options, &path, size);
    for way in [Way::Plain, Way::Link] {
        let ride = trial.ride(way)?;
        let interrupted = interrupted.load(Ordering::Relaxed);
        report.add(ride);
        if interrupted {
            break;
        }
    }
    report.show(options)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED);
    }
    Ok(report.code())
}

fn not_a_size(text: &str) -> Failure {
    let message = format!("`{text}` is no size");
    InputError::new("--size", message)
        .help("write a number with a unit: 300 kB, 5 MB, 1 MiB")
        .into()
}

fn usual_size(bound_bps: f64) -> u64 {
    (bound_bps * SECONDS / 8.0).clamp(SIZES.0, SIZES.1) as u64
}

/// The file that the command sees as `/etc/hosts`. Dropping it removes it.
struct Names {
    file: PathBuf,
    /// Where there is no `/etc/hosts`: a folder with an empty one.
    layer: PathBuf,
}

/// The file by which programs find hosts.
const HOSTS: &str = "/etc/hosts";

impl Names {
    fn make() -> Result<Names, Failure> {
        let folder = process::private_folder("chappe-try")?;
        let own = std::process::id();
        let names = Names {
            file: folder.join(format!("hosts-{own}")),
            layer: folder.join(format!("etc-{own}")),
        };
        names.write(&[])?;
        Ok(names)
    }

    /// Puts the file in the place of `/etc/hosts`, for this program and those that it starts.
    fn show(&self) -> Result<(), Failure> {
        let hosts = Path::new(HOSTS);
        if !hosts.exists() {
            let empty = self.layer.join("hosts");
            fs::create_dir_all(&self.layer)
                .and_then(|()| fs::write(&empty, ""))
                .map_err(|error| unwritten(&empty, &error))?;
        }
        Ok(namespace::cover(hosts, &self.file, &self.layer)?)
    }

    /// The file is written in place: a new one would not be seen under the mount.
    fn write(&self, hosts: &[(Ipv4Addr, &str)]) -> Result<(), Failure> {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for (address, name) in hosts {
            text += &format!("{address} {name}\n");
        }
        fs::write(&self.file, text).map_err(|error| unwritten(&self.file, &error))
    }
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Environment(
        format!("cannot write {}: {error}", file.display()),
        "make room there, or set XDG_RUNTIME_DIR to another folder".into(),
    )
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_dir_all(&self.layer);
    }
}

struct Trial<'a> {
    options: &'a Try,
    path: &'a NamedPath,
    size: u64,
    names: &'a Names,
}

impl Trial<'_> {
    /// Makes the two hosts, joined by the path as `way` uses it, and starts the server.
    fn line(&self, way: Way) -> Result<(Line, Option<Ends>), Failure> {
        let path = match way {
            Way::Plain => self.path.plain,
            Way::Link => self.path.bare,
        };
        let line = Line::start(path, Seed(self.options.seed))?;
        let size = self.size;
        let served = host(&line, 1)?.run(|| far::serve(size))?;
        served.map_err(|error| {
            Failure::Environment(
                format!("the host `far` cannot serve HTTP: {error}"),
                "the kernel must allow port 80 in a namespace of the user's own".into(),
            )
        })?;
        let ends = match way {
            Way::Plain => None,
            Way::Link => Some(Ends::start(&line, path.mtu, self.options.rate)?),
        };
        Ok((line, ends))
    }

    /// Runs the command over the path.
    fn ride(&self, way: Way) -> Result<Ride, Failure> {
        let (line, ends) = self.line(way)?;
        let (far, device) = match way {
            Way::Plain => (ADDRESSES[1], INTERFACE),
            Way::Link => (INSIDE[1], DEVICE),
        };
        self.names.write(&[(far, "far")])?;
        if !self.options.command.is_empty() {
            let heading = format!("--- {}:", way.name());
            terminal::remark(self.options.quiet, &heading);
        }
        let (before, late) = (octets(&line, device)?, line.late());
        let begun = Instant::now();
        let code = self.go(&line, far)?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = octets(&line, device)?;
        let late_s = line.late().saturating_sub(late).as_secs_f64();
        let carried = line.carried();
        drop(ends);
        line.finish()?;
        Ok(Ride {
            way,
            code,
            seconds,
            received: after[0].saturating_sub(before[0]),
            sent: after[1].saturating_sub(before[1]),
            carried,
            late_s,
        })
    }

    /// The command's exit code, or that of the download.
    fn go(&self, line: &Line, far: Ipv4Addr) -> Result<u8, Failure> {
        let near = host(line, 0)?;
        let Some(program) = self.options.command.first() else {
            return Ok(match near.run(|| far::download(far))? {
                Ok(_) => 0,
                Err(error) => {
                    terminal::tell(&format!("the download failed: {error}"));
                    FAILED
                }
            });
        };
        let mut command = Command::new(program);
        command.args(&self.options.command[1..]);
        if self.options.json {
            use std::os::fd::AsFd;
            command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
        }
        let mut child = process::spawn_in(near, &mut command)?;
        Ok(code(child.wait()?))
    }

    fn shell(&self) -> Result<u8, Failure> {
        let (line, ends) = self.line(Way::Link)?;
        self.names
            .write(&[(INSIDE[1], "far"), (ADDRESSES[1], "far-plain")])?;
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let what = format!(
            "{}\n`far` is reached through chappe link, `far-plain` without; exit ends it",
            report::title(self.path)
        );
        terminal::remark(self.options.quiet, &what);
        let mut child = process::spawn_in(host(&line, 0)?, &mut Command::new(shell))?;
        let status = child.wait()?;
        drop(ends);
        line.finish()?;
        Ok(code(status))
    }
}

fn host(line: &Line, end: usize) -> Result<&namespace::NetworkNamespace, Failure> {
    line.host(end)
        .ok_or_else(|| Failure::Defect("a line without hosts".into()))
}

/// Octets of IP packets that the near host has received and sent on `device`.
fn octets(line: &Line, device: &str) -> Result<[u64; 2], Failure> {
    let table = host(line, 0)?.run(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
    let counted = table.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let mut numbers = numbers
            .split_ascii_whitespace()
            .map(|n| n.parse::<u64>().ok());
        let received = [numbers.next()??, numbers.next()??];
        let sent = [numbers.nth(6)??, numbers.next()??];
        // Interfaces with a hardware address count their headers of 14 octets.
        let header = if device == DEVICE { 0 } else { 14 };
        let net = |[octets, packets]: [u64; 2]| octets.saturating_sub(packets * header);
        (name.trim() == device).then(|| [net(received), net(sent)])
    });
    counted.ok_or_else(|| Failure::Defect(format!("no counters of {device}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_download_takes_a_second_and_a_half_at_the_bound() {
        assert_eq!(usual_size(8e6), 1_500_000);
        assert_eq!(usual_size(1e3), 2_000);
        assert_eq!(usual_size(1e9), 8_000_000);
    }
}
