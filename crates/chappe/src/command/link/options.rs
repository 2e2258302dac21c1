//! The command line of `chappe link`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Example, on each of two hosts:
  chappe link key new host.key          # prints the public key, which the other host needs
  chappe link new link.toml             # then write the other's address and public key
  chappe link run link.toml")]
pub struct Link {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Generate the secret key of this host, print its public key, or generate a further secret for two hosts.
    Key(Key),
    /// Write a commented configuration to start from.
    New(New),
    /// Predict the overhead and the remaining loss of a service on a channel, without running a link.
    Plan(Plan),
    /// Run the link until Ctrl-C. The files are read again when they change; peers, services and rates take effect at once.
    Run(Run),
    /// Show the peers of a running link.
    Status(Status),
    /// Let a running link read its files again, as SIGHUP does; report what changes or what is wrong.
    Reload(Control),
    /// Print a systemd unit that runs a configuration.
    Unit(Unit),
}

#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    pub action: KeyAction,
}

#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Generate the secret key of this host in a new file, and print its public key.
    New(KeyFile),
    /// Print the public key that belongs to a secret key.
    Public(KeyFile),
    /// Generate a secret that two hosts share besides their keys, in a new file.
    Shared(KeyFile),
}

#[derive(Debug, Args)]
pub struct KeyFile {
    /// The file of the key. A new one must not exist yet.
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Control {
    /// The TUN device of the link.
    #[arg(default_value = "chappe0")]
    pub device: String,
    /// The link's socket, if its file sets `status`.
    #[arg(long)]
    pub socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub control: Control,
    /// Print one JSON document, as `run --json` does.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Unit {
    /// The configuration file that the unit runs.
    #[arg(default_value = "/etc/chappe/link.toml")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct New {
    /// The file to write; it must not exist yet.
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe link plan --loss 30% --round-trip '20 ms' --delay '100 ms' --loss-target 1%
  chappe link plan --loss 30% --rate '6 Mbit/s' --bandwidth '2 Mbit/s'      # does it fit?
  chappe link plan --loss 10% --distance '60 km'                            # which coverage class?
  chappe link plan --loss 30% --slots --distance '60 km' --bandwidth '1 Mbit/s' --delay '60 ms'")]
pub struct Plan {
    /// Share of frames that the channel loses: `30%` or `0.3`.
    #[arg(long, value_parser = share)]
    pub loss: f64,
    /// Mean length of loss bursts in frames; default: independent losses.
    #[arg(long)]
    pub burst: Option<f64>,
    /// Round-trip time of the path.
    #[arg(long, default_value = "20 ms")]
    pub round_trip: String,
    /// Distance of an 802.11 link, `60 km`; also reports the coverage class that the cards need.
    #[arg(long)]
    pub distance: Option<String>,
    /// Deadline of a packet.
    #[arg(long, visible_alias = "delay", default_value = "300 ms")]
    pub deadline: String,
    /// Accepted share of late and lost packets.
    #[arg(long, visible_alias = "loss-target", value_parser = share, default_value = "1%")]
    pub residual: f64,
    /// Required goodput, `1 Mbit/s` of packets; reports the rate that the path needs.
    #[arg(long)]
    pub bandwidth: Option<String>,
    /// Rate of the path with all headers, `6 Mbit/s`; reports the goodput.
    #[arg(long)]
    pub rate: Option<String>,
    /// Plan WiLDNet's slots (802.11b at 11 Mbit/s, no acknowledgements) for a distance and a bandwidth, instead of a link
    /// over any path.
    #[arg(long)]
    pub slots: bool,
    /// Packet size in octets, for slots.
    #[arg(long, default_value_t = 1440, value_parser = clap::value_parser!(u16).range(20..=2000))]
    pub packet: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs CAP_NET_ADMIN: run it as root, or once: setcap cap_net_admin+ep $(command -v chappe)
On a terminal it shows the state of each peer; otherwise it prints a line for each change.
Exit codes: 130 after Ctrl-C, 0 after SIGTERM.")]
pub struct Run {
    /// The configuration file; `chappe link new` writes one.
    pub file: PathBuf,
    /// Print one JSON document per line instead of the display.
    #[arg(long)]
    pub json: bool,
    /// Interval of the display, the JSON lines and the metrics, in seconds.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub every: f64,
}

/// Reads seconds, 0.05 to a day.
fn seconds(text: &str) -> Result<f64, String> {
    let value = text.trim().trim_end_matches('s').trim_end().parse::<f64>();
    value
        .ok()
        .filter(|value| (0.05..=86_400.0).contains(value))
        .ok_or_else(|| format!("`{text}` is not a number of seconds from 0.05 to 86400"))
}

/// Reads `30%` or `0.3`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    let value = number.parse::<f64>().map(|number| number * scale);
    value
        .ok()
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| format!("`{text}` is not a share; write 30% or 0.3"))
}
