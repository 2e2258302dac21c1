//! The command line of `chappe try`.

use std::ffi::OsString;

use chappe_lab_emu::NamedPath;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    override_usage = "chappe try [OPTIONS] [-- COMMAND...]",
    after_help = after_help()
)]
pub struct Try {
    /// The path: a name, and numbers that differ from its usual ones.
    #[arg(long, value_name = "PATH", default_value = "wifi 60 km, 10 % loss")]
    pub over: String,
    /// Size of the file that the other host serves as `http://far/`; default: what the bound carries in 1.5 seconds.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Give the link the rate of the path, as `rate` in its file; default: it finds one.
    #[arg(long, value_name = "RATE", value_parser = crate::argument::rate)]
    pub rate: Option<chappe_core::Bitrate>,
    /// Which frames are lost. Both runs lose the same ones.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Open a shell with the link up: `far` is reached through it, `far-plain` without.
    #[arg(long, conflicts_with_all = ["command", "json"])]
    pub shell: bool,
    /// Print the result as one JSON document on standard output; the command's own output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// The command to run, twice. Without one, `chappe` downloads the file itself.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn after_help() -> String {
    let names: Vec<String> = NamedPath::names()
        .map(|(name, about)| format!("  {name:<10} {about}"))
        .collect();
    format!(
        "\
The command runs on a host of its own, joined to the host `far` by that path: first plainly, then with `chappe link` on both \
hosts. `far` answers pings and serves HTTP: `http://far/` and, for other sizes, `http://far/5MB`. It takes uploads.

Paths:
{}

Examples:
  chappe try
  chappe try --over 'wifi 100 km, 20 % loss' -- curl -so /dev/null http://far/2MB
  chappe try --over 'satellite, 5 % loss' -- ping -c 5 far
  chappe try --over '6 Mbit/s, 20 ms, 30 % loss, bursts of 4' --shell",
        names.join("\n")
    )
}
