//! The command line of `chappe border`.

use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The default prefix of the network: a local one (RFC 4193) whose 40 bits spell "chapp".
const PREFIX: &str = "fd63:6861:7070:65::";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The scenario's network runs in real time behind a network interface of this host, in a separate network namespace unless \
--host is given. Node 0 is the border router; the others serve HTTP (/, /info, /sensors, /50k), CoAP, iperf3, and \
discard or generate data on ports 9 and 19. The program's environment has LLN_HOST, LLN_0, LLN_1, ... (addresses) and LLN_NODES.

Examples:
  chappe border examples/lln-3-hops.toml                         until Ctrl-C
  chappe border exec PID -- curl 'http://[fd63:6861:7070:65::ff:fe00:3]/'       in a second terminal
  chappe border examples/lln-3-hops.toml -- sh -c 'curl -s http://[$LLN_3]/info'
  chappe border examples/lln-3-hops.toml -- sh -c 'iperf3 -c $LLN_3 -t 10'
  chappe border examples/lln-3-hops.toml --report 3=9000                   mote 3 connects to port 9000
  chappe border examples/lln-3-hops.toml --thermometer 3 -- sh -c 'curl http://[$LLN_3]/temperature'"
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
    /// Make a mote a TCP client: it connects to this port of the host, or to this address, writes what it measures as a line of JSON each
    /// second, and connects again after failures; can be given for several motes.
    #[arg(long, value_name = "NODE=[ADDRESS:]PORT", value_parser = report)]
    pub report: Vec<Report>,
    /// Mote NODE, a leaf, runs the program of firmware/thermometer: a temperature by HTTP and CoAP. May be repeated.
    #[arg(long, value_name = "NODE")]
    pub thermometer: Vec<usize>,
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

/// A mote, and the server to which it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub node: usize,
    /// `None` is the host of the network.
    pub address: Option<Ipv6Addr>,
    pub port: u16,
}

fn report(text: &str) -> Result<Report, String> {
    let wrong = || {
        "not a mote and a server; for example 3=9000, or 3=[fd00::7]:9000 for another host"
            .to_string()
    };
    let (node, server) = text.split_once('=').ok_or_else(wrong)?;
    let node = node.parse().map_err(|_| wrong())?;
    let (address, port) = match server.parse::<SocketAddrV6>() {
        Ok(server) => (Some(*server.ip()), server.port()),
        Err(_) => (None, server.parse().map_err(|_| wrong())?),
    };
    let unfit = |address: Ipv6Addr| {
        address.is_multicast() || address.is_loopback() || address.is_unspecified()
    };
    if address.is_some_and(unfit) {
        return Err(
            "a mote can only connect to the address of one host; ::1 would be itself".into(),
        );
    }
    match port {
        0 => Err("port 0 is no server's".into()),
        _ => Ok(Report {
            node,
            address,
            port,
        }),
    }
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
    fn reports_name_a_mote_and_a_server() {
        let address = "fd00::7".parse().ok();
        let all = [
            ("3=9000", 3, None, 9000),
            ("12=[fd00::7]:80", 12, address, 80),
        ];
        for (text, node, address, port) in all {
            assert_eq!(
                report(text),
                Ok(Report {
                    node,
                    address,
                    port
                })
            );
        }
        for wrong in [
            "",
            "3",
            "3=",
            "=9000",
            "x=1",
            "3=0",
            "3=70000",
            "3=[::1]:9",
            "3=[ff02::1]:9",
            "3=fd00::7:9",
        ] {
            assert!(report(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn prefixes_have_64_bits() {
        assert!(prefix(PREFIX).is_ok() && prefix("2001:db8:1:2::/64").is_ok());
        for wrong in ["fd00::1", "fe80::", "ff02::", "::", "::1", "x", "10.0.0.0"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }
}
