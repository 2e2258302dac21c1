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
#[command(
    after_help = "Example:  chappe link plan --loss 30% --round-trip '20 ms' --deadline '100 ms' --residual 1%"
)]
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
    #[arg(long, default_value = "300 ms")]
    pub deadline: String,
    /// Share of packets that may arrive later, or not at all.
    #[arg(long, value_parser = share, default_value = "1%")]
    pub residual: f64,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The configuration; `chappe link new` writes one.
    pub file: PathBuf,
    /// Print one JSON document a line instead of the display.
    #[arg(long)]
    pub json: bool,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1.0)]
    pub every: f64,
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
