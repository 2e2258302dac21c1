//! The command line of `chappe cast`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use chappe_cast::{Carrier, Channel, Group, Loss, Options, key};
use chappe_core::{Bitrate, Duration, Seed};
use chappe_scenario::quantity::{Rate, Size, Time};
use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "\
Every member needs the group's key: make one with `chappe cast keygen lab` and copy lab.group to all members.

Examples, each on a host of its own:
  chappe cast receive /srv/files --interface wlan0 --key lab.group --verify lab.verify
  chappe cast relay --interface wlan0 --key lab.group
  chappe cast send image.bin --interface wlan0 --key lab.group --sign lab.sign --rate '5 Mbit/s'")]
pub struct Cast {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Send files to every receiver of the group, until all have them.
    Send(Box<Send>),
    /// Receive files into a folder, continuing an earlier transfer if there is one.
    Receive(Box<Receive>),
    /// Forward what other members send.
    Relay(Box<Relay>),
    /// Make the keys of a new group.
    Keygen(Keygen),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:  chappe cast keygen lab   (writes lab.group, lab.sign and lab.verify)"
)]
pub struct Keygen {
    /// First part of the names of the key files. Existing files are not overwritten.
    pub name: String,
}

#[derive(Debug, Args)]
pub struct Send {
    /// The files and folders to send. All arrive in one folder, under their base names.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The key that signs the files (.sign).
    #[arg(long, value_name = "FILE")]
    pub sign: PathBuf,
    /// Begin when this number of receivers has joined, or when --wait is over.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=255))]
    pub receivers: u16,
    /// How long to wait for receivers.
    #[arg(long, value_name = "TIME", default_value = "30 s", value_parser = span)]
    pub wait: Duration,
    /// Continue after all receivers have finished, for receivers that join later, until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
    /// How batches are coded and forwarded: `improved`, or `pacifier` as in the paper.
    #[arg(long, value_name = "NAME", default_value = "improved", value_parser = ["improved", "pacifier"])]
    pub variant: String,
    /// With `improved`: frames have room for node numbers below this; eight numbers take two octets. Larger numbers cost an
    /// occasional short frame. Use the same value each time a file is sent, or receivers start again.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: u16,
    /// Packets in a batch.
    #[arg(long, value_name = "K", default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub k: u8,
    /// How long from now receivers may begin to receive the files, by their clocks; default: without limit.
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub expires: Option<Duration>,
    #[command(flatten)]
    pub link: Link,
}

#[derive(Debug, Args)]
pub struct Receive {
    /// The folder for received files; it must exist.
    pub folder: PathBuf,
    /// The key that checks the signature (.verify).
    #[arg(long, value_name = "FILE")]
    pub verify: PathBuf,
    /// Replace existing files of the same name.
    #[arg(long)]
    pub overwrite: bool,
    /// Continue after the first transfer, until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
    /// Let each folder appear as a whole, when everything in it has arrived; with --overwrite, replace it as a whole, so that
    /// files which the new folder lacks vanish.
    #[arg(long)]
    pub whole: bool,
    /// Accept versions of files that were signed before those that were installed here.
    #[arg(long)]
    pub allow_rollback: bool,
    /// How long the data of an unfinished transfer are kept after the last of them arrived.
    #[arg(long, value_name = "TIME", default_value = "168 h", value_parser = age)]
    pub keep_parts: Duration,
    #[command(flatten)]
    pub link: Link,
}

#[derive(Debug, Args)]
pub struct Relay {
    #[command(flatten)]
    pub link: Link,
}

/// How a member reaches the others.
#[derive(Debug, Args)]
pub struct Link {
    /// The network interface; give several for a router between networks.
    #[arg(long, short, value_name = "NAME", required = true)]
    pub interface: Vec<String>,
    /// The key of the group (.group).
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// This member's node number, 0 to 255; default: the last octet of the interface's address.
    #[arg(long, value_name = "N")]
    pub node: Option<u16>,
    /// The name shown to other members; default: the host's name.
    #[arg(long)]
    pub name: Option<String>,
    /// Sending rate with all headers. On a radio, the share of its broadcast rate that is free.
    #[arg(long, value_name = "RATE", default_value = "10 Mbit/s", value_parser = rate)]
    pub rate: Bitrate,
    /// Whether members share airtime (`shared`: radios) or each has its full rate (`separate`: a switch). Default: shared
    /// if an interface is a radio: a wireless card, or one whose alias begins with `radio`.
    #[arg(long, value_name = "KIND", value_parser = ["shared", "separate"])]
    pub channel: Option<String>,
    /// UDP port of the group.
    #[arg(long, value_name = "PORT", default_value_t = 1794)]
    pub port: u16,
    /// Send to this multicast group instead of broadcasting: 224.0.0.x or ff02::x.
    #[arg(long, value_name = "ADDRESS")]
    pub multicast: Option<IpAddr>,
    /// Send Ethernet frames without IP: less overhead, no address needed; needs CAP_NET_RAW.
    #[arg(long, conflicts_with_all = ["port", "multicast"])]
    pub ethernet: bool,
    /// Memory for incomplete batches.
    #[arg(long, value_name = "SIZE", default_value = "48 MB", value_parser = size)]
    pub memory: usize,
    /// How long to measure the links before sending data.
    #[arg(long, value_name = "TIME", default_value = "2 s", value_parser = span)]
    pub measure: Duration,
    /// Serve counters for Prometheus at this address, such as 127.0.0.1:9794.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// For tests: drop this share of received frames, 0 to 1; NODE=SHARE for one sender. Can be given several times.
    #[arg(long, value_name = "SHARE", value_parser = lost)]
    pub lose: Vec<Lost>,
    /// Print events as JSON, one object on each line of standard output, and nothing else there.
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no remarks on standard error.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Frames to drop: the sender, or all of them; and the share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost(Option<u16>, f64);

impl Link {
    /// The options of the library.
    pub fn open(&self) -> Result<Options, Failure> {
        let carrier = match self.multicast {
            _ if self.ethernet => Carrier::PACKET,
            multicast => Carrier::Udp {
                port: self.port,
                group: match multicast {
                    None => Group::Broadcast,
                    Some(IpAddr::V4(group)) => Group::Ipv4(group),
                    Some(IpAddr::V6(group)) => Group::Ipv6(group),
                },
            },
        };
        Ok(Options {
            interfaces: self.interface.clone(),
            carrier,
            key: key::group(&self.key)?,
            node: self.node,
            name: self.name.clone(),
            rate: self.rate,
            channel: self.channel.as_deref().map(|kind| match kind {
                "shared" => Channel::Shared,
                _ => Channel::Separate,
            }),
            memory: self.memory,
            measuring: self.measure,
            loss: self.loss(),
        })
    }

    fn loss(&self) -> Option<Loss> {
        let all = self.lose.iter().find(|lost| lost.0.is_none());
        let ratio = all.map_or(0.0, |lost| lost.1);
        let seed = Seed(std::process::id().into());
        let lose = |loss: Loss, &Lost(node, share): &Lost| match node {
            Some(node) => loss.from(chappe_core::Address::node(node), share),
            None => loss,
        };
        let loss = self.lose.iter().fold(Loss::new(seed, ratio), lose);
        (!self.lose.is_empty()).then_some(loss)
    }
}

/// Joins the mistake and the right form, which `chappe-scenario` separates by a control character.
fn one_line(message: String) -> String {
    message.replace('\u{1f}', "; ")
}

fn span(text: &str) -> Result<Duration, String> {
    let seconds = Time::parse(text).map_err(one_line)?.value();
    match (0.0..=1e6).contains(&seconds) {
        true => Ok(Duration::from_nanos((seconds * 1e9) as u64)),
        false => Err("0 to 1,000,000 seconds".into()),
    }
}

/// Parses a time of up to a hundred years.
fn age(text: &str) -> Result<Duration, String> {
    let seconds = Time::parse(text).map_err(one_line)?.value();
    match (0.0..=3.2e9).contains(&seconds) {
        true => Ok(Duration::from_nanos((seconds * 1e9) as u64)),
        false => Err("0 to 800,000 hours".into()),
    }
}

/// Parses a rate, 10 kbit/s to 100 Gbit/s.
pub fn rate(text: &str) -> Result<Bitrate, String> {
    let rate = Rate::parse(text).map_err(one_line)?.value();
    match (1e4..=1e11).contains(&rate) {
        true => Ok(Bitrate(rate as u64)),
        false => Err("10 kbit/s to 100 Gbit/s".into()),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size = Size::parse(text).map_err(one_line)?.value();
    match (1e6..=1e12).contains(&size) {
        true => Ok(size as usize),
        false => Err("1 MB to 1000 GB".into()),
    }
}

fn lost(text: &str) -> Result<Lost, String> {
    let (node, share) = match text.split_once('=') {
        Some((node, share)) => {
            let node = node
                .parse()
                .map_err(|_| format!("`{node}` is not a node number"))?;
            (Some(node), share)
        }
        None => (None, text),
    };
    let share: f64 = share
        .parse()
        .map_err(|_| format!("`{share}` is not a share from 0 to 1"))?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(Lost(node, share)),
        false => Err("a share is 0 to 1".into()),
    }
}
