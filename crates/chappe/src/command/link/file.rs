//! The configuration file of `chappe link run`.

mod peer;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_link::{Carrier, PeerConfig, TunnelConfig};
use chappe_scenario::input::{InputError, telling};
use chappe_sys::Endpoint;
use serde::Deserialize;
use toml::Spanned;

use peer::PeerTable;

/// The commented configuration that `chappe link new` writes.
pub const TEMPLATE: &str = include_str!("file/template.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    link: LinkTable,
    peer: Vec<PeerTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkTable {
    #[serde(default = "device")]
    device: Spanned<String>,
    address: Option<Spanned<String>>,
    listen: Option<Spanned<String>>,
    ethernet: Option<String>,
    path_mtu: Option<Spanned<usize>>,
    metrics: Option<PathBuf>,
    #[serde(default = "device_queue")]
    device_queue: u32,
}

fn device() -> Spanned<String> {
    Spanned::new(0..0, "chappe0".into())
}

/// Longest name of an interface (IFNAMSIZ of linux/if.h without the final zero).
const NAME_MAX: usize = 15;

/// Packets that the kernel queues while this process is not scheduled. Packets that wait for the link are in the link's queues.
fn device_queue() -> u32 {
    1_000
}

/// The EtherType that IEEE 802 leaves to experiments.
const ETHER_TYPE: u16 = 0x88b5;

/// A configuration file, checked.
pub struct Configuration {
    pub tunnel: TunnelConfig,
    pub peers: Vec<PeerConfig>,
    pub metrics: Option<PathBuf>,
    /// Each peer's distance in metres, if the file has it.
    pub distances: Vec<(String, Option<f64>)>,
    /// Settings that are valid but probably not intended.
    pub warnings: Vec<String>,
}

impl Configuration {
    /// The differences from `other` that a running link cannot apply.
    pub fn differs_for_good(&self, other: &Configuration) -> Vec<String> {
        let mut differs = Vec::new();
        if self.tunnel != other.tunnel || self.metrics != other.metrics {
            differs.push("[link]".to_owned());
        }
        for peer in &self.peers {
            let before = other.peers.iter().find(|one| one.name == peer.name);
            let same = before.is_some_and(|before| {
                (&before.key, before.endpoint) == (&peer.key, peer.endpoint)
                    && (&before.networks, before.datagram_max)
                        == (&peer.networks, peer.datagram_max)
            });
            match before {
                None => differs.push(format!("new peer {}", peer.name)),
                Some(_) if !same => {
                    differs.push(format!("key, endpoint or networks of {}", peer.name));
                }
                Some(_) => {}
            }
        }
        for gone in &other.peers {
            if !self.peers.iter().any(|peer| peer.name == gone.name) {
                differs.push(format!("removed peer {}", gone.name));
            }
        }
        differs
    }
}

/// Reads a configuration with the keys that it names.
pub fn read(path: &Path) -> Result<Configuration, InputError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
    let source = Source {
        from: path.display().to_string(),
        text: text.into(),
        folder: path.parent().unwrap_or(Path::new(".")),
    };
    let file = source.parse()?;
    let link = &file.link;
    let carrier = link.carrier(&source)?;
    let path_mtu = link.path_mtu(&source)?;
    let address = link.address(&source)?;
    let device = link.device(&source)?;
    let peers = peers(&file.peer, &carrier, path_mtu, &source)?;
    let warnings = warnings(&file, address, &peers, source.folder);
    let metres = |table: &PeerTable| {
        let distance = table.distance.as_ref().map(|distance| distance.value());
        (table.name.get_ref().clone(), distance)
    };
    Ok(Configuration {
        tunnel: TunnelConfig {
            device,
            address,
            carrier,
            device_queue: link.device_queue,
            mtu: None,
            offloads: true,
            signals: true,
        },
        peers,
        metrics: link.metrics.as_ref().map(|path| source.folder.join(path)),
        distances: file.peer.iter().map(metres).collect(),
        warnings,
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
        InputError::new(self.from.clone(), message)
            .at(&self.text, span, "here")
            .help(help)
    }

    fn parse(&self) -> Result<File, InputError> {
        toml::from_str(&self.text).map_err(|error| {
            // A quantity's error has the right form behind a separator.
            let (message, help) = telling(error.message());
            let input = InputError::new(self.from.clone(), message.to_owned());
            let input = match help {
                Some(help) => input.help(help.to_owned()),
                None => input,
            };
            match error.span() {
                Some(span) => input.at(&self.text, span, "here"),
                None => input,
            }
        })
    }
}

impl LinkTable {
    fn carrier(&self, source: &Source<'_>) -> Result<Carrier, InputError> {
        match (&self.listen, &self.ethernet) {
            (Some(listen), None) => {
                let address: Result<SocketAddr, _> = listen.get_ref().parse();
                address.map(Carrier::Udp).map_err(|_| {
                    let message = format!("`{}` is not an address and port", listen.get_ref());
                    source.wrong(listen.span(), message, "write \"0.0.0.0:1795\"")
                })
            }
            (None, Some(interface)) => Ok(Carrier::Ethernet {
                interface: interface.clone(),
                ether_type: ETHER_TYPE,
            }),
            _ => {
                let message = "[link] needs either `listen` or `ethernet`";
                let help =
                    "listen = \"0.0.0.0:1795\" for UDP, ethernet = \"wlan0\" for frames without IP";
                Err(InputError::new(source.from.clone(), message).help(help))
            }
        }
    }

    fn path_mtu(&self, source: &Source<'_>) -> Result<usize, InputError> {
        let Some(given) = &self.path_mtu else {
            return Ok(1500);
        };
        let mtu = *given.get_ref();
        if (576..=9000).contains(&mtu) {
            return Ok(mtu);
        }
        let message = format!("a path MTU of {mtu}");
        Err(source.wrong(given.span(), message, "576 to 9000; most paths have 1500"))
    }

    fn address(&self, source: &Source<'_>) -> Result<Option<(Ipv4Addr, u8)>, InputError> {
        let Some(address) = &self.address else {
            return Ok(None);
        };
        interface_address(address.get_ref())
            .map(Some)
            .ok_or_else(|| {
                let text = address.get_ref();
                let message = format!("`{text}` is not an IPv4 address with its network");
                source.wrong(address.span(), message, "write \"10.9.0.1/24\"")
            })
    }

    fn device(&self, source: &Source<'_>) -> Result<String, InputError> {
        let device = self.device.get_ref();
        let fits = (1..=NAME_MAX).contains(&device.len()) && !device.contains(['/', ' ']);
        fits.then(|| device.clone()).ok_or_else(|| {
            let message = format!("`{device}` cannot be the name of a device");
            let help = "1 to 15 characters without space and slash: device = \"chappe0\"";
            source.wrong(self.device.span(), message, help)
        })
    }
}

/// The peers; names and keys must be unique.
fn peers(
    tables: &[PeerTable],
    carrier: &Carrier,
    path_mtu: usize,
    source: &Source<'_>,
) -> Result<Vec<PeerConfig>, InputError> {
    let mut peers: Vec<PeerConfig> = Vec::new();
    for table in tables {
        let peer = table.read(carrier, path_mtu, source)?;
        if let Some(other) = peers.iter().find(|other| other.name == peer.name) {
            let message = format!("there are two peers `{}`", other.name);
            return Err(source.wrong(table.name.span(), message, "give each a different name"));
        }
        if let Some(other) = peers.iter().find(|other| other.key == peer.key) {
            let message = format!("`{}` has the key of `{}`", peer.name, other.name);
            let help =
                "a key identifies a peer: make one for each link with `chappe link key FILE`";
            return Err(source.wrong(table.key_file.span(), message, help));
        }
        peers.push(peer);
    }
    if peers.is_empty() {
        return Err(InputError::new(source.from.clone(), "there is no [[peer]]")
            .help("`chappe link new FILE` writes an example"));
    }
    Ok(peers)
}

/// The warnings of a valid file.
fn warnings(
    file: &File,
    address: Option<(Ipv4Addr, u8)>,
    peers: &[PeerConfig],
    folder: &Path,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (peer, table) in peers.iter().zip(&file.peer) {
        let name = &peer.name;
        let has = |to: IpAddr| peer.networks.iter().any(|net| net.has(to));
        // A network may contain both ends; a single address belongs to the other end only.
        let only = |to: IpAddr| {
            let mut nets = peer.networks.iter();
            nets.any(|net| net.address == to && net.has(to) && usize::from(net.prefix) >= 32)
        };
        if let Some((own, _)) = address
            && only(own.into())
        {
            warnings.push(format!(
                "{own} is this host's address and also in `networks` of {name}: give the two ends different addresses"
            ));
        }
        if let Some(Endpoint::Udp(to)) = peer.endpoint
            && has(to.ip())
        {
            warnings.push(format!(
                "the endpoint {} of {name} is in its own `networks`: it needs a separate route that avoids the link",
                to.ip()
            ));
        }
        let key = folder.join(table.key_file.get_ref());
        let mode = std::fs::metadata(&key).map_or(0, |data| data.permissions().mode());
        if mode & 0o044 != 0 {
            warnings.push(format!(
                "other users of this machine can read {}: run `chmod 600`",
                key.display()
            ));
        }
    }
    warnings
}

fn interface_address(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
    Some((address.parse().ok()?, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_link::{BULK, Key};
    use chappe_wildnet::Service;

    fn read_text(name: &str, text: &str) -> Result<Configuration, InputError> {
        let folder =
            std::env::temp_dir().join(format!("chappe-link-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("link.key"), Key::new([3; 32]).to_text()).unwrap();
        std::fs::write(folder.join("link.toml"), text).unwrap();
        let read = read(&folder.join("link.toml"));
        std::fs::remove_dir_all(&folder).unwrap();
        read
    }

    #[test]
    fn the_template_can_be_read_whole() {
        let all = TEMPLATE
            .replace("\n# ", "\n")
            .replace("\nThe service of", "\n# The service of");
        for (name, text) in [
            ("as-is", TEMPLATE),
            ("all", &all.replacen("One end", "# One end", 1)),
        ] {
            let read = read_text(name, text).unwrap();
            assert_eq!(read.peers[0].services[1], BULK);
            assert_eq!(read.peers[0].services[0], Service::PROMPT);
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (name, right, mistake, said) in [
            ("address", "\"10.9.0.1/24\"", "\"10.9.0.1\"", "network"),
            ("listen", "\"0.0.0.0:1795\"", "\"1795\"", "port"),
            ("network", "\"10.9.0.2/32\"", "\"ten\"", "ten"),
            ("field", "networks =", "network =", "network"),
            (
                "rate",
                "# rate = \"6 Mbit/s\"",
                "rate = \"0 Mbit/s\"",
                "1 kbit/s",
            ),
            (
                "device",
                "\"chappe0\"",
                "\"a-much-too-long-name\"",
                "name of a device",
            ),
            (
                "family",
                "\"0.0.0.0:1795\"",
                "\"[::]:1795\"",
                "cannot be reached",
            ),
            (
                "carrier",
                "listen = \"0.0.0.0:1795\"",
                "ethernet = \"wlan0\"",
                "Ethernet address",
            ),
            (
                "no-host",
                "\"192.0.2.7:1795\"",
                "\"192.0.2.7:0\"",
                "no host",
            ),
            (
                "distance",
                "# distance = \"20 km\"",
                "distance = \"20\"",
                "unit",
            ),
        ] {
            let error = read_text(name, &TEMPLATE.replacen(right, mistake, 1))
                .err()
                .unwrap();
            assert!(
                error.to_string().contains(said) && error.line_column().is_some(),
                "{error}"
            );
        }
    }

    /// Goal: two peers with one name or one key are refused; a file copied unchanged to the other end causes a warning.
    #[test]
    fn doubtful_settings_are_reported() {
        let peer = TEMPLATE.split_once("[[peer]]").unwrap().1;
        let twice = format!("{TEMPLATE}\n[[peer]]\n{peer}");
        let error = read_text("twice", &twice).err().unwrap();
        assert!(error.to_string().contains("two peers"), "{error}");
        let renamed = twice.replacen("\"other\"", "\"third\"", 1);
        let error = read_text("keys", &renamed).err().unwrap();
        assert!(error.to_string().contains("has the key of"), "{error}");
        let copied = TEMPLATE.replacen("\"10.9.0.2/32\"", "\"10.9.0.1/32\"", 1);
        let read = read_text("copied", &copied).unwrap();
        let warned = |read: &Configuration, what: &str| {
            read.warnings.iter().any(|warning| warning.contains(what))
        };
        assert!(warned(&read, "this host's address"), "{:?}", read.warnings);
        // A network may hold both ends.
        let whole = TEMPLATE.replacen("\"10.9.0.2/32\"", "\"10.9.0.0/24\"", 1);
        assert!(!warned(
            &read_text("whole", &whole).unwrap(),
            "this host's address"
        ));
    }

    /// Goal: only changes that a running link cannot apply are named.
    #[test]
    fn lasting_differences_are_named() {
        let first = read_text("first", TEMPLATE).unwrap();
        let differs = |right: &str, other: &str| {
            let text = TEMPLATE.replacen(right, other, 1);
            read_text("differs", &text)
                .unwrap()
                .differs_for_good(&first)
        };
        assert!(differs("# rate", "rate").is_empty());
        assert!(differs("# distance", "distance").is_empty());
        assert!(differs("# [peer.bulk]", "[peer.bulk]").is_empty());
        assert_eq!(differs(":1795\"           #", ":1796\" #"), ["[link]"]);
        assert_eq!(
            differs("\"192.0.2.7:1795\"", "\"192.0.2.8:1795\""),
            ["key, endpoint or networks of other"]
        );
        let renamed = differs("\"other\"", "\"third\"");
        assert_eq!(renamed, ["new peer third", "removed peer other"]);
    }
}
