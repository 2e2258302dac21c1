//! The configuration file of `chappe mesh run`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_cast::group::Seat;
use chappe_core::Bitrate;
use chappe_live::{Carrier, Group};
use chappe_mesh::air::Air;
use chappe_mesh::announce::NETS_MAX;
use chappe_mesh::daemon::{ETHER_TYPE, MeshConfig};
use chappe_mesh::packet::Net;
use chappe_mesh::settings::{Hop, NodeConfig};
use chappe_scenario::InputError;
use chappe_scenario::format::{self, Located};
use chappe_scenario::quantity::Rate;
use serde::Deserialize;

use super::options::SOCKET;

/// The commented configuration that `chappe mesh new` writes.
pub const TEMPLATE: &str = include_str!("file/template.toml");
/// The UDP port of frames; `chappe cast` has 1794, `chappe link` 1795.
const PORT: u16 = 1796;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mesh: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    networks: Located<Vec<String>>,
    key_file: Located<PathBuf>,
    group_file: Located<PathBuf>,
    interfaces: Located<Vec<String>>,
    medium: MediumName,
    rate: Located<Rate>,
    #[serde(default)]
    recovery: RecoveryName,
    #[serde(default)]
    carrier: CarrierName,
    mtu: Option<Located<usize>>,
    #[serde(default = "size")]
    size: Located<u16>,
    behind: Option<Located<Vec<String>>>,
    #[serde(default)]
    gateway: bool,
    #[serde(default)]
    groups: bool,
    #[serde(default)]
    video: bool,
    #[serde(default)]
    export: bool,
    #[serde(default = "device")]
    device: Located<String>,
    socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Deserialize)]
enum MediumName {
    #[serde(rename = "802.11b")]
    Dot11b,
    #[serde(rename = "ethernet")]
    Ethernet,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecoveryName {
    #[default]
    Auto,
    Broadcast,
    Unicast,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CarrierName {
    #[default]
    Ethernet,
    Udp,
}

impl CarrierName {
    /// The longest packet on interfaces of 1500 octets. Over UDP that is what IPv6 needs, as 1365 octets fit and a small packet
    /// shall ride with a full one.
    fn usual_mtu(self) -> usize {
        match self {
            CarrierName::Ethernet => 1400,
            CarrierName::Udp => 1280,
        }
    }
}

fn size() -> Located<u16> {
    Located::nowhere(32)
}

fn device() -> Located<String> {
    Located::nowhere("mesh%d".into())
}

/// A configuration that was checked.
pub struct Configuration {
    pub mesh: MeshConfig,
    /// The list of members, and this member's place in it.
    pub seat: Seat,
    /// The addresses of this node.
    pub addresses: Vec<String>,
}

/// Reads a configuration with the key and the list of members that it names.
pub fn read(path: &Path) -> Result<Configuration, InputError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
    let source = Source {
        from: path.display().to_string(),
        text: text.into(),
        folder: path.parent().unwrap_or(Path::new(".")),
    };
    let table = source.parse()?.mesh;
    let seat = table.seat(&source)?;
    let node = table.node(&source, &seat)?;
    let addresses = node.networks.iter().filter_map(|net| net.nth(node.number));
    let addresses = addresses.map(|address| address.to_string()).collect();
    Ok(Configuration {
        addresses,
        mesh: MeshConfig {
            node,
            membership: seat.membership(),
            device: table.device(&source)?,
            interfaces: table.interfaces(&source)?,
            carrier: table.carrier(),
            export: table.export,
            socket: Some(match &table.socket {
                Some(path) => source.folder.join(path),
                None => SOCKET.into(),
            }),
            signals: true,
        },
        seat,
    })
}

/// A file's text with its origin, for errors with a place.
struct Source<'a> {
    from: String,
    text: Arc<str>,
    /// The folder that paths in the file are relative to.
    folder: &'a Path,
}

impl Source<'_> {
    /// A mistake at a place, and the right form.
    fn wrong(&self, span: Range<usize>, message: String, help: &str) -> InputError {
        let error = InputError::new(self.from.clone(), message).help(help.to_owned());
        // A default has no place.
        match span.is_empty() {
            true => error,
            false => error.at(&self.text, span, "here"),
        }
    }

    fn parse(&self) -> Result<File, InputError> {
        format::read(&self.from, &self.text)
    }
}

impl Table {
    fn node(&self, source: &Source<'_>, seat: &Seat) -> Result<NodeConfig, InputError> {
        let number = seat.node;
        if number == 0 {
            let message = format!("{} has the number 0 in the list", seat.name());
            return Err(source.wrong(
                self.group_file.span(),
                message,
                "the members of a mesh have numbers from 1 on",
            ));
        }
        let rate = self.rate.get_ref().value();
        if !(1e3..=1e11).contains(&rate) {
            let message = "this rate is out of range".to_owned();
            return Err(source.wrong(self.rate.span(), message, "1 kbit/s to 100 Gbit/s"));
        }
        let rate = Bitrate(rate as u64);
        let networks = nets(&self.networks, source)?;
        if networks.is_empty() || networks.iter().any(|net| net.nth(number).is_none()) {
            let message = format!("node {number} has no address in these networks");
            return Err(source.wrong(
                self.networks.span(),
                message,
                "networks = [\"10.77.0.0/16\"]",
            ));
        }
        let mut behind = match &self.behind {
            Some(behind) => nets(behind, source)?,
            None => Vec::new(),
        };
        if self.gateway {
            behind.extend([Net::DEFAULT_V4, Net::DEFAULT_V6]);
        }
        if behind.len() > NETS_MAX {
            let span = self.behind.as_ref().map_or(0..0, Located::span);
            let message = format!("{} networks are behind this node", behind.len());
            return Err(source.wrong(
                span,
                message,
                "a node announces 16 at most, two of them for a gateway",
            ));
        }
        let asked = self.mtu.as_ref();
        let mtu = asked.map_or(self.carrier.usual_mtu(), |mtu| *mtu.get_ref());
        if mtu != 0 && !(1280..=9000).contains(&mtu) {
            let message = format!("an MTU of {mtu} is not possible");
            return Err(source.wrong(
                asked.map_or(0..0, Located::span),
                message,
                "1280 (the least of IPv6) to 9000, or 0",
            ));
        }
        let size = *self.size.get_ref();
        if !(2..=1000).contains(&size) {
            let message = format!("{size} nodes are not possible");
            return Err(source.wrong(self.size.span(), message, "size = 2 to 1000"));
        }
        Ok(NodeConfig {
            number,
            networks,
            behind,
            air: match self.medium {
                MediumName::Dot11b => Air::dot11b(rate),
                MediumName::Ethernet => Air::wired(rate),
            },
            hop: self.hop(),
            size,
            mtu,
            groups: self.groups,
            video: self.video,
        })
    }

    fn hop(&self) -> Hop {
        match self.recovery {
            RecoveryName::Broadcast => Hop::Broadcast,
            RecoveryName::Unicast => Hop::Unicast,
            RecoveryName::Auto => {
                let card = |name: &String| matches!(chappe_sys::wireless::radio(name), Ok(Some(_)));
                match self.interfaces.get_ref().iter().any(card) {
                    true => Hop::Unicast,
                    false => Hop::Broadcast,
                }
            }
        }
    }

    fn carrier(&self) -> Carrier {
        match self.carrier {
            CarrierName::Ethernet => Carrier::Packet {
                ether_type: ETHER_TYPE,
            },
            CarrierName::Udp => Carrier::Udp {
                port: PORT,
                group: Group::Broadcast,
            },
        }
    }

    fn interfaces(&self, source: &Source<'_>) -> Result<Vec<String>, InputError> {
        let names = self.interfaces.get_ref();
        if names.is_empty() || names.len() > 32 {
            let message = format!("{} interfaces", names.len());
            return Err(source.wrong(
                self.interfaces.span(),
                message,
                "interfaces = [\"wlan0\"]: 1 to 32",
            ));
        }
        Ok(names.clone())
    }

    fn device(&self, source: &Source<'_>) -> Result<String, InputError> {
        let name = self.device.get_ref();
        // IFNAMSIZ of linux/if.h without the final zero.
        let fits = (1..=15).contains(&name.len()) && !name.contains(['/', ' ']);
        match fits {
            true => Ok(name.clone()),
            false => Err(source.wrong(
                self.device.span(),
                format!("`{name}` is no name of an interface"),
                "1 to 15 letters",
            )),
        }
    }

    /// This host's place in the list of members.
    fn seat(&self, source: &Source<'_>) -> Result<Seat, InputError> {
        let [group, key] = [&self.group_file, &self.key_file].map(Located::get_ref);
        let (group, key) = (source.folder.join(group), source.folder.join(key));
        Seat::open(&group, &key).map_err(|error| {
            let span = self.key_file.span();
            source.wrong(span, error.what, &error.todo)
        })
    }
}

fn nets(of: &Located<Vec<String>>, source: &Source<'_>) -> Result<Vec<Net>, InputError> {
    let read = |text: &String| {
        Net::parse(text).map(Net::cut).ok_or_else(|| {
            source.wrong(
                of.span(),
                format!("`{text}` is no network"),
                "write \"192.168.5.0/24\" or \"fd05::/64\"",
            )
        })
    };
    of.get_ref().iter().map(read).collect()
}
