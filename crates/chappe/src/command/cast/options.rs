//! The command line of `chappe cast`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use chappe_cast::group::Seat;
use chappe_cast::{Audience, Carrier, Channel, Loss, Options};
use chappe_core::{Bitrate, Duration, Seed};
use chappe_scenario::quantity::{Size, Time};
use clap::{Args, Subcommand};

use crate::argument::one_line;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "\
Every member has a key of its own, and all have the list of members: `chappe cast keygen lab base hill barn` makes them. \
Copy lab.group and one .key file to each member.

Examples, each on a host of its own:
  chappe cast receive /srv/files --group lab.group --key hill.key
  chappe cast relay --interface wlan0 --group lab.group --key barn.key
  chappe cast send image.bin --group lab.group --key base.key --rate '5 Mbit/s'")]
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
    /// Print a systemd unit that receives or forwards.
    Unit(Unit),
    /// Make a new group: the owner's key, the list of members, and a key for each member.
    Keygen(Keygen),
    /// Make a member's key on its own host.
    Key(Key),
    /// Add a member to a group, or change its rights.
    Admit(Admit),
    /// Remove a member from a group. The others get the new list from each other.
    Revoke(Revoke),
    /// Show the members of a group.
    Members(Members),
    /// Show which member has which version of the files that were sent, by the receipts that senders have stored.
    Fleet(Fleet),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:  chappe cast keygen lab base hill barn\n          (writes lab.owner, lab.group, base.key, hill.key and barn.key; base may send)"
)]
pub struct Keygen {
    /// The group, and first part of the names of lab.owner and lab.group. Existing files are not overwritten.
    pub name: PathBuf,
    /// The members' names, or NUMBER=NAME. Numbers begin at 1.
    #[arg(required = true, value_name = "MEMBER", value_parser = member)]
    pub members: Vec<(Option<u16>, String)>,
    /// A member that may send; can be given several times. Default: the first member.
    #[arg(long, value_name = "NAME")]
    pub sender: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:  chappe cast key hill   (writes hill.key and hill.pub; give the owner hill.pub)"
)]
pub struct Key {
    /// The member's name, and first part of the names of the files.
    pub name: PathBuf,
}

#[derive(Debug, Args)]
pub struct Admit {
    /// The list of members (.group).
    pub group: PathBuf,
    /// The member's public key (.pub).
    pub public: PathBuf,
    /// Its number; default: the lowest free one from 1 on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=255))]
    pub node: Option<u16>,
    /// Its name; default: the one in the .pub file.
    #[arg(long)]
    pub name: Option<String>,
    /// Let it send files.
    #[arg(long)]
    pub sends: bool,
    /// The owner's key; default: the .owner file beside the list.
    #[arg(long, value_name = "FILE")]
    pub owner: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// The list of members (.group).
    pub group: PathBuf,
    /// The member's name or number.
    pub member: String,
    /// The owner's key; default: the .owner file beside the list.
    #[arg(long, value_name = "FILE")]
    pub owner: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Members {
    /// The list of members (.group).
    pub group: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:  chappe cast fleet lab.group\n          (reads lab.fleet, where `chappe cast send --group lab.group` stores receipts)"
)]
pub struct Fleet {
    /// The list of members (.group), by which receipts are checked.
    pub group: PathBuf,
    /// A folder with receipts; default: NAME.fleet beside NAME.group. Give it several times to join the folders of several senders.
    #[arg(long, value_name = "DIR")]
    pub fleet: Vec<PathBuf>,
    /// End with exit code 1 if a member that has asked for files lacks their last version, or its command failed.
    #[arg(long)]
    pub check: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Print the text format of Prometheus, as for the node exporter's textfile collector.
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
}

impl Fleet {
    /// The folders with the receipts.
    pub fn folders(&self) -> Vec<PathBuf> {
        match self.fleet.is_empty() {
            true => vec![fleet_of(&self.group, None)],
            false => self.fleet.clone(),
        }
    }
}

/// The folder with the receipts of a group's senders.
fn fleet_of(group: &Path, given: Option<&PathBuf>) -> PathBuf {
    given.map_or_else(|| group.with_extension("fleet"), Clone::clone)
}

#[derive(Debug, Args)]
pub struct Send {
    /// The files and folders to send. All arrive in one folder, under their base names.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
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
    /// Send nothing: say which files would go to which receivers, by which paths, and how long it would take.
    #[arg(long, conflicts_with = "keep")]
    pub dry_run: bool,
    /// The folder for receipts, which is created if it is missing; default: NAME.fleet beside NAME.group. `chappe cast fleet`
    /// shows them.
    #[arg(long, value_name = "DIR")]
    pub fleet: Option<PathBuf>,
    /// Send without storing receipts.
    #[arg(long, conflicts_with = "fleet")]
    pub no_fleet: bool,
    #[command(flatten)]
    pub link: Link,
}

impl Send {
    /// The folder for receipts, unless none are to be stored.
    pub fn folder(&self) -> Option<PathBuf> {
        let folder = fleet_of(&self.link.group, self.fleet.as_ref());
        (!self.no_fleet).then_some(folder)
    }
}

#[derive(Debug, Args)]
pub struct Receive {
    /// The folder for received files; it must exist.
    pub folder: PathBuf,
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
    /// Run this command after each verified arrival, without a shell; CHAPPE_FILES, CHAPPE_FOLDER and others are in its
    /// environment. Its end is reported to the sender. Must be the last option.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    pub then: Vec<std::ffi::OsString>,
    /// How long the command may run.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = span)]
    pub then_limit: Duration,
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

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  chappe cast unit receive /srv/files --keep --quiet --group /etc/chappe/lab.group --key /etc/chappe/hill.key \\
    > /etc/systemd/system/chappe-receive.service")]
pub struct Unit {
    /// What the service runs: `receive` or `relay` with its options. Paths begin at the root.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub arguments: Vec<std::ffi::OsString>,
}

/// How a member reaches the others.
#[derive(Debug, Args)]
pub struct Link {
    /// The network interface; give several for a router between networks. Default: the only one that fits.
    #[arg(long, short, value_name = "NAME")]
    pub interface: Vec<String>,
    /// The list of the group's members (.group).
    #[arg(long, value_name = "FILE")]
    pub group: PathBuf,
    /// This member's own key (.key).
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Ceiling of the sending rate, with all headers. Without it the rate follows what the network carries.
    #[arg(long, value_name = "RATE", value_parser = crate::argument::rate)]
    pub rate: Option<Bitrate>,
    /// Send no longer packets than this, IP and UDP headers included, for members whose interfaces have a smaller MTU than this
    /// one. Default: the interface's MTU. Use the same value each time a file is sent, or receivers start again.
    #[arg(long, value_name = "OCTETS")]
    pub mtu: Option<u16>,
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
    /// How long to measure the links before sending data, at most: where nothing is lost, half a second is enough.
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
                    None => Audience::Broadcast,
                    Some(IpAddr::V4(group)) => Audience::Ipv4(group),
                    Some(IpAddr::V6(group)) => Audience::Ipv6(group),
                },
            },
        };
        Ok(Options {
            seat: Seat::open(&self.group, &self.key)?,
            interfaces: match self.interface.is_empty() {
                true => vec![chappe_cast::session::only_interface(carrier)?],
                false => self.interface.clone(),
            },
            carrier,
            rate: self.rate.unwrap_or(chappe_cast::session::CEILING),
            mtu: self.mtu.map(usize::from),
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

fn member(text: &str) -> Result<(Option<u16>, String), String> {
    let Some((number, name)) = text.split_once('=') else {
        return Ok((None, text.into()));
    };
    let node = number.parse().ok().filter(|node| *node <= 255);
    let wrong = || format!("`{number}` is not a number from 0 to 255");
    Ok((Some(node.ok_or_else(wrong)?), name.into()))
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
