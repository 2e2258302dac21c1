//! The command line of `chappe mesh`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where a router listens unless its file says otherwise.
pub const SOCKET: &str = "/run/chappe/mesh.sock";

#[derive(Debug, Args)]
#[command(after_help = "\
Example: once, on one host, and then on each node with its own key and the list:
  chappe cast keygen mesh base hill mill
  chappe mesh new mesh.toml --member base
  chappe mesh run mesh.toml
  chappe mesh status
  chappe mesh why 10.77.0.4")]
pub struct Mesh {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Write a commented configuration to start from.
    New(New),
    /// Print a systemd unit that runs a configuration.
    Unit(Unit),
    /// Run the router until Ctrl-C.
    Run(Run),
    /// Show a running router's neighbours, routes, queues, prices and flows.
    Status(Status),
    /// Explain the path to an address: next hop, distance, price, and why not by other neighbours.
    Why(Why),
}

#[derive(Debug, Args)]
pub struct Unit {
    /// The configuration file that the unit runs.
    #[arg(default_value = "/etc/chappe/mesh.toml")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct New {
    /// The file to write; it must not exist yet.
    pub file: PathBuf,
    /// The name of this member: its key is NAME.key.
    #[arg(long, value_name = "NAME", default_value = "NAME")]
    pub member: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Needs CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or once: setcap cap_net_admin,cap_net_raw+ep $(command -v chappe)
A newer list of members comes from neighbours that have it, or from the file after SIGHUP.
Exit codes: 130 after Ctrl-C, 0 after SIGTERM.")]
pub struct Run {
    /// The configuration file; `chappe mesh new` writes one.
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Status {
    /// The socket of the router.
    #[arg(long, default_value = SOCKET)]
    pub socket: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Print metrics in Prometheus' text format.
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
    /// Print a NetworkGraph of NetJSON.
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    pub netjson: bool,
    /// Show it each second, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
}

impl Status {
    /// The question to the router.
    pub fn question(&self) -> &'static str {
        match (self.json, self.prometheus, self.netjson) {
            (true, _, _) => "status json",
            (_, true, _) => "status prometheus",
            (_, _, true) => "status netjson",
            _ => "status",
        }
    }
}

#[derive(Debug, Args)]
pub struct Why {
    /// The address to explain.
    pub address: IpAddr,
    /// The socket of the router.
    #[arg(long, default_value = SOCKET)]
    pub socket: PathBuf,
}
