//! The command line of `chappe border`.

use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The default prefix of the network: a local one (RFC 4193) whose 40 bits spell "chapp".
const PREFIX: &str = "fd63:6861:7070:65::";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The scenario's network runs in real time behind a network interface of this host, in a separate network namespace unless
--host is given. Node 0 is the border router; the others serve HTTP (/, /info, /sensors, /50k), CoAP, iperf3, and
discard or generate data on ports 9 and 19. The program's environment has LLN_HOST, LLN_0, LLN_1, ... (addresses) and LLN_NODES.

Examples:
  chappe border examples/lln-3-hops.toml                         until Ctrl-C
  chappe border exec PID -- curl 'http://[fd63:6861:7070:65::ff:fe00:3]/'       in a second terminal
  chappe border examples/lln-3-hops.toml -- sh -c 'curl -s http://[$LLN_3]/info'
  chappe border examples/lln-3-hops.toml -- sh -c 'iperf3 -c $LLN_3 -t 10'"
)]
pub struct Border {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// The scenario file, with the system tcplp; its transfers are ignored.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Change a key of the scenario; can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the network and the radio losses; default: the scenario's first.
    #[arg(long)]
    pub seed: Option<u64>,
    /// IPv6 prefix of the network, 64 bits.
    #[arg(long, value_name = "PREFIX", default_value = PREFIX, value_parser = prefix)]
    pub prefix: Ipv6Addr,
    /// Create the interface in this host's own namespace, where every program can use it; needs CAP_NET_ADMIN.
    #[arg(long)]
    pub host: bool,
    /// Name of the interface; `%d` is replaced by a free number.
    #[arg(long, value_name = "NAME", default_value = "lln%d")]
    pub device: String,
    /// Write every frame on the air to this file, for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write each frame once more for each node that heard or lost it, with the outcome as a comment.
    #[arg(long, requires = "pcap")]
    pub pcap_hearers: bool,
    /// Do not fail if this machine was too slow or too busy to keep time.
    #[arg(long)]
    pub late_ok: bool,
    /// Print the report as one JSON document on standard output; the program's own output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Print no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
    /// The program to run, with its arguments; `chappe` exits with its exit code.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a program in the namespace of a border router that runs in another terminal.
    Exec(Exec),
}

#[derive(Debug, Args)]
pub struct Exec {
    /// The process number that the border router prints when it starts.
    pub pid: u32,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn prefix(text: &str) -> Result<Ipv6Addr, String> {
    let text = text.strip_suffix("/64").unwrap_or(text);
    let prefix: Ipv6Addr = text
        .parse()
        .map_err(|_| "not an IPv6 prefix; for example fd00:1:2:3::".to_string())?;
    let unfit = prefix.is_multicast() || prefix.is_loopback() || prefix.is_unicast_link_local();
    if unfit || prefix.is_unspecified() || u128::from(prefix) << 64 != 0 {
        return Err(
            "a network prefix needs 64 bits of global or local scope; for example fd00:1:2:3::"
                .into(),
        );
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
