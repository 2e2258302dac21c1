//! `chappe border`: a border router in front of a simulated low-power network, for real programs.

mod desk;
mod options;

use std::io::Write;
use std::net::SocketAddrV6;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use chappe::systems;
use chappe_border::{Border as Daemon, Ending, NODES_MAX, Network, Status};
use chappe_core::Duration;
use chappe_figures::table::Table;
use chappe_lab_emu::Capture;
use chappe_lab_tcplp::live::LiveNetwork;
use chappe_scenario::InputError;
use chappe_sys::namespace::{self, NetworkNamespace};
use chappe_sys::{Signal, process};
use serde::Serialize;

use crate::command::film::Film;
use crate::door;
use crate::failure::{ENVIRONMENT, Failure, INTERRUPTED};
use crate::terminal::{self, Stream};

use desk::Desk;
pub use options::Border;
use options::{Action, Exec, Report};

type Running = Daemon<Film>;

/// Grace time between the signal to a program and its end by force.
const GRACE: Duration = Duration::from_secs(2);
/// The environment variable that marks the programs of a border router.
const NAME: &str = "CHAPPE_BORDER";
/// The token of the program that runs in the network.
const CHILD: u64 = 0;
/// How often the status line is written.
const EVERY: Duration = Duration::from_millis(500);

/// The document that `--json` prints when the router has ended.
#[derive(Serialize)]
struct Document<'a> {
    chappe: &'static str,
    scenario: &'a str,
    seed: u64,
    device: &'a str,
    host_address: String,
    /// The exit code of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(flatten)]
    status: &'a Status,
}

pub fn run(options: &Border) -> Result<u8, Failure> {
    if let Some(Action::Exec(options)) = &options.action {
        return exec(options);
    }
    let Some(file) = &options.file else {
        return Err(InputError::new("", "no scenario file is given").into());
    };
    let live = LiveNetwork::read(
        &systems::scenarios(),
        file,
        &options.set,
        options.seed,
        NODES_MAX,
    )?;
    let reports = reports(&live, options)?;
    thermometers_are_leaves(&live, options)?;
    let film = Film::new(capture(options, live.parents.len())?);
    let preferred = process::prefer();
    // Before the namespaces: inside there is no right to write where the socket stands. It is no reason to fail.
    let bound = door::bind_usual(&format!("border-{}.sock", std::process::id())).ok();
    if !options.host {
        namespace::isolate_by_any_means()?;
    }
    let mut border = Daemon::open(network(&live, options, reports), &options.device, film)?;
    let desk = Desk::open(&mut border, &live, bound)?;
    if preferred.is_err() {
        terminal::remark(
            options.quiet,
            "no real-time priority (only root can have it): keep the machine idle",
        );
    }
    let name = format!("{:016x}", chappe_sys::random_u64()?);
    let (status, signal) = match options.command.first() {
        None => {
            if !options.json {
                terminal::print(&places(&live, &border, options))?;
                terminal::remark(options.quiet, "Ctrl-C ends it");
            }
            (None, Some(until_signal(&mut border, &desk, options)?))
        }
        Some(program) => {
            let mut command = Command::new(program);
            command
                .args(&options.command[1..])
                .envs(variables(border.network()))
                .env(NAME, &name);
            if options.json {
                command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
            }
            let ended = program_in(&mut border, &desk, &mut command);
            // Its background processes would wait for a network that no longer exists.
            process::kill_in_environment(&format!("{NAME}={name}"));
            let (status, signal) = ended?;
            (Some(code(status)), signal)
        }
    };
    finish(options, &live, border, status, signal)
}

/// The capture that the options ask for, of this many nodes.
fn capture(options: &Border, nodes: usize) -> Result<Capture, Failure> {
    let Some(path) = &options.pcap else {
        return Ok(Capture::default());
    };
    let capture = Capture::create(path, nodes).map_err(|error| {
        let what = format!("cannot write {}: {error}", path.display());
        Failure::Environment(what, "choose another place with --pcap".into())
    })?;
    Ok(match options.pcap_hearers {
        true => capture,
        false => capture.senders_only(),
    })
}

/// The servers of the motes that report, by mote.
fn reports(live: &LiveNetwork, options: &Border) -> Result<Vec<(usize, SocketAddrV6)>, Failure> {
    let host = chappe_border::host_address(options.prefix);
    let server = |report: &Report| {
        let address = report.address.unwrap_or(host);
        match (1..live.parents.len()).contains(&report.node) {
            true => Ok((report.node, SocketAddrV6::new(address, report.port, 0, 0))),
            false => {
                let what = format!("no mote has the number {}", report.node);
                let help = format!(
                    "the motes are 1 to {}; node 0 is the border router",
                    live.parents.len() - 1
                );
                Err(
                    InputError::new(format!("--report {}=...", report.node), what)
                        .help(help)
                        .into(),
                )
            }
        }
    };
    options.report.iter().map(server).collect()
}

fn network(live: &LiveNetwork, options: &Border, reports: Vec<(usize, SocketAddrV6)>) -> Network {
    Network {
        medium: live.medium.clone(),
        seed: live.seed,
        faults: live.faults.clone(),
        border: 0,
        parents: live.parents.clone(),
        mac: live.mac,
        leaves: live.leaves.clone(),
        contexts: live.contexts,
        short: live.short,
        pace: live.pace.clone(),
        tcp: live.tcp,
        leaf_ack_delay: live.leaf_ack_delay,
        window: live.window,
        prefix: options.prefix,
        reports,
        thermometers: options.thermometer.clone(),
    }
}

/// A thermometer forwards nothing and serves no other port, so it must be a leaf that does not report.
fn thermometers_are_leaves(live: &LiveNetwork, options: &Border) -> Result<(), Failure> {
    for &node in &options.thermometer {
        let why = if !(1..live.parents.len()).contains(&node) {
            format!(
                "no mote has the number {node}; the motes are 1 to {}",
                live.parents.len() - 1
            )
        } else if live.parents[node].is_none() {
            format!("mote {node} has no way to the border")
        } else if let Some(child) = live.parents.iter().position(|&up| up == Some(node)) {
            format!("mote {node} forwards for mote {child}, and a thermometer forwards nothing")
        } else if options.report.iter().any(|report| report.node == node) {
            format!("mote {node} reports, which is a service of the other motes")
        } else {
            continue;
        };
        return Err(InputError::new(format!("--thermometer {node}"), why).into());
    }
    Ok(())
}

/// Runs until SIGINT or SIGTERM, with a status line on the terminal.
fn until_signal(border: &mut Running, desk: &Desk, options: &Border) -> Result<Signal, Failure> {
    let shown = !options.quiet && terminal::colour_on(Stream::Error);
    loop {
        let next = border.clock().now() + EVERY;
        let ending = border.run(shown.then_some(next))?;
        desk.answer(border);
        if shown {
            let line = Status::of(border).line();
            let line: String = line
                .chars()
                .take(terminal::width(Stream::Error) - 1)
                .collect();
            let mut error = std::io::stderr().lock();
            // A closed terminal cannot be reported.
            let _ = write!(error, "\r\x1b[K{line}").and_then(|()| error.flush());
        }
        if let Ending::Signal(signal) = ending {
            if shown {
                terminal::tell("");
            }
            return Ok(signal);
        }
    }
}

/// Runs a program to its end; forwards SIGINT and SIGTERM to it.
fn program_in(
    border: &mut Running,
    desk: &Desk,
    command: &mut Command,
) -> Result<(ExitStatus, Option<Signal>), Failure> {
    let mut child = process::spawn_in(&NetworkNamespace::current()?, command)?;
    let end = process::watch(&child)?;
    border.watch(end.as_fd(), CHILD as u32)?;
    let (mut asked, mut limit) = (None, None);
    loop {
        match border.run(limit)? {
            Ending::Watched(CHILD) => break,
            Ending::Watched(_) => desk.answer(border),
            Ending::Signal(signal) if asked.is_none() => {
                process::tell(&child, signal)?;
                asked = Some(signal);
                limit = Some(border.clock().now() + GRACE);
            }
            Ending::Signal(_) | Ending::Time => {
                child.kill()?;
                limit = None;
            }
        }
    }
    border.forget(end.as_fd())?;
    Ok((child.wait()?, asked))
}

/// The environment variables that describe the network to a program.
fn variables(network: &Network) -> Vec<(String, String)> {
    let mut all = vec![
        ("LLN_NODES".to_string(), network.nodes().to_string()),
        ("LLN_HOST".to_string(), network.kernel().to_string()),
    ];
    let nodes = 0..network.nodes();
    all.extend(nodes.map(|node| (format!("LLN_{node}"), network.address(node).to_string())));
    all
}

/// Prints the report; returns the exit code.
fn finish(
    options: &Border,
    live: &LiveNetwork,
    mut border: Running,
    exit_code: Option<u8>,
    signal: Option<Signal>,
) -> Result<u8, Failure> {
    let status = Status::of(&border);
    let device = border.device().to_string();
    let host_address = border.network().kernel().to_string();
    let filmed = border.recorder_mut().capture.finish();
    // Remove the device before printing, which may fail.
    drop(border);
    if options.json {
        let document = Document {
            chappe: env!("CARGO_PKG_VERSION"),
            scenario: &live.title,
            seed: live.seed,
            device: &device,
            host_address,
            exit_code,
            status: &status,
        };
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        terminal::print(&(text + "\n"))?;
    } else {
        terminal::remark(options.quiet, status.text().trim_end());
    }
    filmed?;
    if let Some(path) = &options.pcap {
        let what = format!("frames are in {}; Wireshark opens it", path.display());
        terminal::remark(options.quiet, &what);
    }
    let verdict = status.verdict().filter(|_| !options.late_ok);
    if let Some(verdict) = &verdict {
        terminal::tell(&format!(
            "chappe: {verdict}\n  use an idle machine, as root for a real-time priority, or with fewer nodes; --late-ok accepts the result nevertheless"
        ));
    }
    Ok(match (exit_code, signal) {
        (Some(code @ 1..), None) => code,
        (Some(_), Some(_)) => INTERRUPTED,
        _ if verdict.is_some() => ENVIRONMENT,
        _ => 0,
    })
}

/// The table of nodes with their addresses, and commands to try.
fn places(live: &LiveNetwork, border: &Running, options: &Border) -> String {
    let network = border.network();
    let mut table = Table::new()
        .words("node")
        .words("address")
        .words("path to the border")
        .words("neighbours (delivery ratio)");
    table.row([
        "host".into(),
        network.kernel().to_string(),
        border.device().to_string(),
        String::new(),
    ]);
    for node in 0..network.nodes() {
        let neighbours = live.neighbours(node);
        let neighbours = neighbours.map(|(to, prr)| format!("n{to} {prr:.2}"));
        let sleeps = live.leaves.iter().any(|(leaf, _)| *leaf == node);
        table.row([
            format!("n{node}{}", if sleeps { " (sleeps)" } else { "" }),
            network.address(node).to_string(),
            way(network, node),
            neighbours.collect::<Vec<_>>().join("  "),
        ]);
    }
    let table = table.render(
        terminal::width(Stream::Output),
        terminal::colour_on(Stream::Output),
    );
    let prefix = match options.host {
        true => String::new(),
        false => format!("chappe border exec {} -- ", std::process::id()),
    };
    let far = (0..network.nodes()).max_by_key(|&node| network.path(node).map(|path| path.len()));
    let address = network.address(far.unwrap_or(0));
    format!(
        "{}\n{} nodes, seed {}, process {}; interface {}, MTU {}\n\n{table}\nin another terminal:\n  {prefix}curl 'http://[{address}]/info'\n  {prefix}ping -c 3 {address}\n  {prefix}iperf3 -c {address} -t 10\n",
        live.title,
        network.nodes(),
        live.seed,
        std::process::id(),
        border.device(),
        chappe_border::MTU,
    )
}

fn way(network: &Network, node: usize) -> String {
    match network.path(node) {
        None => "none: unreachable".into(),
        Some(path) if path.len() == 1 => "the border router".into(),
        Some(path) => {
            let nodes: Vec<String> = path.iter().map(|node| format!("n{node}")).collect();
            nodes.join(" - ")
        }
    }
}

/// Replaces this process by a program in the border router's namespace; returns only on failure.
fn exec(options: &Exec) -> Result<u8, Failure> {
    let Some(program) = options.command.first() else {
        return Err(InputError::new("", "no program is given").into());
    };
    let is_border = std::fs::read(format!("/proc/{}/cmdline", options.pid)).is_ok_and(|line| {
        line.split(|&octet| octet == 0)
            .any(|word| word == b"border")
    });
    if !is_border {
        return Err(Failure::Environment(
            format!("process {} is not a border router", options.pid),
            "`chappe border FILE.toml` prints its process number when it starts".into(),
        ));
    }
    namespace::join_user_of(options.pid)?;
    NetworkNamespace::of(options.pid)?.enter()?;
    let error = Command::new(program).args(&options.command[1..]).exec();
    let program = program.to_string_lossy();
    Err(Failure::Environment(
        format!("cannot start `{program}`: {error}"),
        "is it installed, and in PATH?".into(),
    ))
}

/// The exit code of a program; 128 plus the signal's number if a signal ended it, as in shells.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
