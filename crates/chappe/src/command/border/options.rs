//! What can be typed after `chappe border`.

use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The network's prefix unless another is given: a local one (RFC 4193) whose 40 bits spell "chapp".
const PREFIX: &str = "fd63:6861:7070:65::";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The scenario's network runs in real time behind a network interface of this host, in a network namespace of its own unless
--host is given. Node 0 is the border router; the others serve HTTP (/, /info, /sensors, /50k), CoAP, iperf3, and take or
send data without end on ports 9 and 19. The program sees LLN_HOST, LLN_0, LLN_1, ... (addresses) and LLN_NODES.

Examples:
  chappe border examples/lln-3-hops.toml                         until Ctrl-C
  chappe border exec PID -- curl 'http://[fd63:6861:7070:65::ff:fe00:3]/'       in a second terminal
  chappe border examples/lln-3-hops.toml -- sh -c 'curl -s http://[$LLN_3]/info'
  chappe border examples/lln-3-hops.toml -- sh -c 'iperf3 -c $LLN_3 -t 10'"
)]
pub struct Border {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// The scenario file, of the system tcplp; transfers are left out.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Change any key of the scenario; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The number that decides the network and the air, instead of the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The network's prefix of 64 bits.
    #[arg(long, value_name = "PREFIX", default_value = PREFIX, value_parser = prefix)]
    pub prefix: Ipv6Addr,
    /// Make the interface in this host's own network, where every program can use it; needs CAP_NET_ADMIN.
    #[arg(long)]
    pub host: bool,
    /// The interface's name; `%d` becomes a free number.
    #[arg(long, value_name = "NAME", default_value = "lln%d")]
    pub device: String,
    /// Write every frame on the air to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Do not fail because this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print the report as one JSON document on standard output; the program's own output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// No remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// The program to run, and its arguments; its exit code is ours.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a program beside a border router that is running in another terminal.
    Exec(Exec),
}

#[derive(Debug, Args)]
pub struct Exec {
    /// The border router's process, which it prints when it starts.
    pub pid: u32,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn prefix(text: &str) -> Result<Ipv6Addr, String> {
    let text = text.strip_suffix("/64").unwrap_or(text);
    let prefix: Ipv6Addr = text
        .parse()
        .map_err(|_| "no IPv6 prefix; for example fd00:1:2:3::".to_string())?;
    let unfit = prefix.is_multicast() || prefix.is_loopback() || prefix.is_unicast_link_local();
    if unfit || prefix.is_unspecified() || u128::from(prefix) << 64 != 0 {
        return Err("the prefix of a network has 64 bits; for example fd00:1:2:3::".into());
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_64_bits() {
        assert!(prefix(PREFIX).is_ok() && prefix("2001:db8:1:2::/64").is_ok());
        for wrong in ["fd00::1", "fe80::", "ff02::", "::", "::1", "x", "10.0.0.0"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }
}
