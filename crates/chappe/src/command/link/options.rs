//! What can be typed after `chappe link`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Example, on each of two hosts (with the other's address and the same key):
  chappe link key hill.key
  chappe link new link.toml
  chappe link run link.toml")]
pub struct Link {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a key for two hosts, in a file that must not exist.
    Key(Key),
    /// Write a commented configuration to start from.
    New(New),
    /// Say what a promise costs on a channel, and what it leaves, without applying it.
    Plan(Plan),
    /// Run the link until Ctrl-C. The file is read again when it changes: promises and rates take effect at once.
    Run(Run),
}

#[derive(Debug, Args)]
pub struct Key {
    /// The file to write.
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct New {
    /// The file to write; it must not exist.
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
    /// Mean run of losses in frames; without it, losses are independent.
    #[arg(long)]
    pub burst: Option<f64>,
    /// Round trip of the path.
    #[arg(long, default_value = "20 ms")]
    pub round_trip: String,
    /// How far the ends of an 802.11 link are apart, `60 km`: says which coverage class the cards need as well.
    #[arg(long)]
    pub distance: Option<String>,
    /// How soon a packet should arrive.
    #[arg(long, visible_alias = "delay", default_value = "300 ms")]
    pub deadline: String,
    /// Share of packets that may arrive later, or not at all.
    #[arg(long, visible_alias = "loss-target", value_parser = share, default_value = "1%")]
    pub residual: f64,
    /// How much has to get through, `1 Mbit/s` of packets: says what the path must carry for it.
    #[arg(long)]
    pub bandwidth: Option<String>,
    /// What the path carries, `6 Mbit/s`, all headers counted: says how much gets through.
    #[arg(long)]
    pub rate: Option<String>,
    /// Plan WiLDNet's slots (802.11b at 11 Mbit/s, no acknowledgements) for a distance and a bandwidth, instead of a link over any
    /// path.
    #[arg(long)]
    pub slots: bool,
    /// Octets of a packet, for slots.
    #[arg(long, default_value_t = 1440, value_parser = clap::value_parser!(u16).range(20..=2000))]
    pub packet: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs CAP_NET_ADMIN: run it as root, or once: setcap cap_net_admin+ep $(command -v chappe)
On a terminal it shows how each peer does; else a line for each change. Ends: Ctrl-C with 130, SIGTERM with 0.")]
pub struct Run {
    /// The configuration; `chappe link new` writes one.
    pub file: PathBuf,
    /// Print one JSON document a line instead of the display.
    #[arg(long)]
    pub json: bool,
    /// Seconds between two looks: of the display, of the JSON lines and of the metrics.
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
