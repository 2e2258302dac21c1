//! The result of `chappe try`, as a table and as JSON.

use chappe::message::wrap;
use chappe_emu::Carried;
use chappe_figures::table::Table;
use chappe_lab_emu::NamedPath;
use serde::Serialize;

use super::options::Try;
use crate::failure::Failure;
use crate::terminal::{self, Stream};

/// One of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The command alone, over the path as it is.
    Plain,
    /// With `chappe link` on both hosts.
    Link,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Link => "chappe link",
        }
    }
}

/// What was counted of one run.
#[derive(Debug)]
pub struct Ride {
    pub way: Way,
    /// The command's exit code.
    pub code: u8,
    pub seconds: f64,
    /// Octets of IP packets that the command's host received.
    pub received: u64,
    /// Octets of IP packets that it sent.
    pub sent: u64,
    /// What the line carried, from the near host and from the far one.
    pub carried: [Carried; 2],
    /// For how long this computer was too busy to carry packets in time.
    pub late_s: f64,
}

#[derive(Debug, Serialize)]
pub struct Report {
    chappe: &'static str,
    path: String,
    seed: u64,
    served_bytes: u64,
    /// Of IP packets, both directions together where they share a channel.
    bound_bps: f64,
    runs: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    way: Way,
    exit_code: u8,
    seconds: f64,
    received_bytes: u64,
    sent_bytes: u64,
    /// Octets of both directions together over the duration, in bit/s.
    throughput_bps: f64,
    share_of_bound: f64,
    air: [Air; 2],
    late_s: f64,
}

/// What one direction of the line carried, in this order: from the near host, from the far one.
#[derive(Debug, Serialize)]
struct Air {
    packets: u64,
    packets_lost: u64,
    queue_full: u64,
    frames: u64,
    frames_lost: u64,
}

/// A command that carried less than this share of the bound, and fewer octets than these, does not measure the path's rate.
const BULK: (f64, u64) = (0.05, 100_000);
/// What the last column counts.
const LOST: &str = "\n\"lost on the path\" counts packets that the path lost: plainly the command's own, which its TCP has to repair; under \
                    chappe link packets of the link, which repairs them before the command sees a loss.\n";

/// More than this share of a run in which the computer was late makes it doubtful.
const LATE: f64 = 0.02;

impl Report {
    pub fn new(options: &Try, path: &NamedPath, size: u64) -> Report {
        Report {
            chappe: env!("CARGO_PKG_VERSION"),
            path: title(path),
            seed: options.seed,
            served_bytes: size,
            bound_bps: path.plain.bound_bps(),
            runs: Vec::new(),
        }
    }

    pub fn add(&mut self, ride: Ride) {
        let octets = ride.received + ride.sent;
        let throughput_bps = octets as f64 * 8.0 / ride.seconds.max(1e-9);
        let air = |one: Carried| Air {
            packets: one.packets,
            packets_lost: one.lost,
            queue_full: one.queue_full,
            frames: one.frames,
            frames_lost: one.frames_lost,
        };
        self.runs.push(Entry {
            way: ride.way,
            exit_code: ride.code,
            seconds: ride.seconds,
            received_bytes: ride.received,
            sent_bytes: ride.sent,
            throughput_bps,
            share_of_bound: throughput_bps / self.bound_bps,
            air: ride.carried.map(air),
            late_s: ride.late_s,
        });
    }

    /// That of the last run that failed, or 0.
    pub fn code(&self) -> u8 {
        let codes = self.runs.iter().rev().map(|run| run.exit_code);
        codes.into_iter().find(|&code| code != 0).unwrap_or(0)
    }

    pub fn show(&self, options: &Try) -> Result<(), Failure> {
        if options.json {
            let text = serde_json::to_string_pretty(self)
                .map_err(|error| Failure::Defect(error.to_string()))?;
            return terminal::print(&(text + "\n"));
        }
        terminal::print(&self.text())?;
        for run in self
            .runs
            .iter()
            .filter(|run| run.late_s > LATE * run.seconds)
        {
            let what = format!(
                "{}: this machine was late by {:.2} s in {:.2} s; the result counts more of it than of the path",
                run.way.name(),
                run.late_s,
                run.seconds
            );
            terminal::remark(options.quiet, &what);
        }
        Ok(())
    }

    /// Whether the command carried so much that its rate says something.
    fn is_bulk(&self) -> bool {
        let (share, least) = BULK;
        let mut runs = self.runs.iter();
        runs.any(|run| run.share_of_bound >= share || run.octets() >= least)
    }

    fn text(&self) -> String {
        let is_bulk = self.is_bulk();
        let of_bulk = |text: String| if is_bulk { text } else { String::new() };
        let mut table = Table::new()
            .words("")
            .numbers("time", 3)
            .numbers("received", 2)
            .numbers("sent", 0)
            .numbers("throughput", 3)
            .numbers("of the bound", 2)
            .numbers("lost on the path", 1);
        for run in &self.runs {
            let failed = match run.exit_code {
                0 => String::new(),
                code => format!(" (exit code {code})"),
            };
            table.row([
                run.way.name().to_owned() + &failed,
                format!("{:.2} s", run.seconds),
                octets(run.received_bytes),
                octets(run.sent_bytes),
                of_bulk(rate(run.throughput_bps)),
                of_bulk(format!("{:.0} %", 100.0 * run.share_of_bound)),
                run.lost().to_string(),
            ]);
        }
        if is_bulk {
            let empty = String::new;
            table.row([
                "bound".to_owned(),
                empty(),
                empty(),
                empty(),
                rate(self.bound_bps),
                "100 %".to_owned(),
                empty(),
            ]);
        }
        let width = terminal::width(Stream::Output);
        let table = table.render(width, terminal::colour_on(Stream::Output));
        let mut text = format!("{}\n\n{table}", self.path);
        if self.runs.iter().any(|run| run.lost() > 0) {
            let lines = wrap(LOST, width);
            text += &(lines.join("\n") + "\n");
        }
        if let [plain, link] = &self.runs[..]
            && plain.exit_code == 0
            && link.exit_code == 0
        {
            text += &match is_bulk || link.octets() == 0 {
                true => verdict(plain.seconds, link.seconds, link.octets()),
                false => SMALL.to_owned(),
            };
        }
        text
    }
}

impl Entry {
    /// What the command sent and received.
    fn octets(&self) -> u64 {
        self.received_bytes + self.sent_bytes
    }

    /// Packets that the path lost, both directions together.
    fn lost(&self) -> u64 {
        self.air.iter().map(|air| air.packets_lost).sum()
    }
}

/// What is said of a command that carried little.
const SMALL: &str = "\nThe command carried too little to compare rates with the bound.\n";

/// What the link did for a command that took so many seconds without and with it, and then sent and received these octets.
fn verdict(plain: f64, link: f64, octets: u64) -> String {
    if octets == 0 {
        return "\nThe command sent and received nothing, so its times say nothing about the path.\n"
            .to_owned();
    }
    let ratio = plain / link.max(1e-9);
    match ratio >= 1.0 {
        true => format!("\nThrough chappe link {ratio:.1} times as fast.\n"),
        false => format!(
            "\nThrough chappe link {:.1} times as long: this command gains nothing on this path.\n",
            1.0 / ratio
        ),
    }
}

/// The path in one line, with what changes for the link.
pub fn title(path: &NamedPath) -> String {
    let mut text = format!("{}; {}", path.radios, path.numbers);
    if let Some(setting) = path.setting {
        text += &format!(
            "\nplain: the radios confirm and repeat frames; chappe link: they do not (`{setting}`)"
        );
    }
    text
}

fn octets(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.2} MB", count as f64 / 1e6),
    }
}

fn rate(bps: f64) -> String {
    match bps < 1e6 {
        true => format!("{:.1} kbit/s", bps / 1e3),
        false => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ping has no rate, and a download of the same time has.
    #[test]
    fn a_command_that_carries_little_has_no_rate() {
        let said = |octets: u64| {
            let run = |way| Entry {
                way,
                exit_code: 0,
                seconds: 4.0,
                received_bytes: octets,
                sent_bytes: 0,
                throughput_bps: octets as f64 * 2.0,
                share_of_bound: octets as f64 * 2.0 / 1e7,
                air: [0, 3].map(|packets_lost| Air {
                    packets: 9,
                    packets_lost,
                    queue_full: 0,
                    frames: 9,
                    frames_lost: 0,
                }),
                late_s: 0.0,
            };
            let report = Report {
                chappe: "",
                path: "a path".into(),
                seed: 1,
                served_bytes: 0,
                bound_bps: 1e7,
                runs: [Way::Plain, Way::Link].map(run).into(),
            };
            report.text()
        };
        let (ping, download) = (said(840), said(2_000_000));
        for bulk in ["throughput", "bound  ", "times as"] {
            assert!(
                !ping.contains(bulk) && download.contains(bulk),
                "{ping}{download}"
            );
        }
        assert!(
            ping.contains("too little") && ping.contains("lost on the path"),
            "{ping}"
        );
    }

    #[test]
    fn a_command_that_uses_no_network_is_not_faster() {
        assert!(verdict(0.002, 0.001, 0).contains("sent and received nothing"));
        assert!(verdict(4.0, 2.0, 1000).contains("2.0 times as fast"));
        assert!(verdict(2.0, 3.0, 1000).contains("1.5 times as long"));
    }
}
