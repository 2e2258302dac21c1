//! The configuration file of `chappe link run`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_core::{Bitrate, Duration};
use chappe_lab::input::InputError;
use chappe_lab::quantity::{Length, Rate, Time};
use chappe_link::classify::Net;
use chappe_link::{BULK, Carrier, Key, PeerConfig, TunnelConfig};
use chappe_sys::Endpoint;
use chappe_wildnet::{Order, Service};
use serde::Deserialize;
use toml::Spanned;

/// A configuration to start from.
pub const TEMPLATE: &str = r#"# One end of a link. The other end has the same file with addresses swapped, and the same key.

[link]
device = "chappe0"                # the TUN device to make
address = "10.9.0.1/24"           # its address: the other end's is 10.9.0.2
listen = "0.0.0.0:1795"           # UDP; or `ethernet = "wlan0"` for frames without IP (needs CAP_NET_RAW)
# path_mtu = 1500                 # largest packet of the path between the two
# metrics = "chappe-link.prom"    # Prometheus text, written anew at each look (node_exporter's textfile collector)

[[peer]]
name = "other"
key_file = "link.key"             # `chappe link key link.key`, copied to both hosts by a safe way
endpoint = "192.0.2.7:1795"       # where the other end is; leave it away where it calls first (behind NAT)
networks = ["10.9.0.2/32"]        # addresses behind it
# rate = "6 Mbit/s"               # what the medium carries; left away, it is found out
# distance = "20 km"              # to have the coverage class of an 802.11 card judged

# What is promised. `bulk` is everything but ICMP and packets marked urgent (DSCP 40 and above).
# [peer.bulk]
# deadline = "300 ms"             # losses should not delay a packet by more
# residual = 0.01                 # for all but this share
# order = "flow"                  # "flow", "link" or "none"
# drop_late = false               # whether a packet that is too late is given up
# [peer.urgent]
# deadline = "100 ms"
# residual = 0.01
# order = "none"
# drop_late = true
"#;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerTable {
    name: Spanned<String>,
    key_file: Spanned<PathBuf>,
    endpoint: Option<Spanned<String>>,
    networks: Vec<Spanned<String>>,
    rate: Option<Spanned<Rate>>,
    distance: Option<Length>,
    bulk: Option<Promise>,
    urgent: Option<Promise>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    deadline: Option<Time>,
    residual: Option<Spanned<f64>>,
    order: Option<OrderName>,
    retries: Option<u8>,
    drop_late: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderName {
    Flow,
    Link,
    None,
}

fn device() -> Spanned<String> {
    Spanned::new(0..0, "chappe0".into())
}

/// Characters of an interface's name (IFNAMSIZ of linux/if.h, less the end).
const NAME_MAX: usize = 15;

/// What the kernel keeps while this program waits for a processor; packets that wait for the link wait in its own queues.
fn device_queue() -> u32 {
    1_000
}

/// The EtherType that IEEE 802 leaves to experiments.
const ETHER_TYPE: u16 = 0x88b5;

/// What a file says.
pub struct Configuration {
    pub tunnel: TunnelConfig,
    pub peers: Vec<PeerConfig>,
    pub metrics: Option<PathBuf>,
    /// How far each peer is, in metres, where that is said.
    pub distances: Vec<(String, Option<f64>)>,
    /// What is no mistake and will hardly do what was meant.
    pub warnings: Vec<String>,
}

impl Configuration {
    /// What differs from another configuration and cannot be changed while a link runs.
    pub fn differs_for_good(&self, other: &Configuration) -> Vec<String> {
        let mut differs = Vec::new();
        if self.tunnel != other.tunnel || self.metrics != other.metrics {
            differs.push("what [link] says".to_owned());
        }
        for peer in &self.peers {
            let before = other.peers.iter().find(|one| one.name == peer.name);
            let same = before.is_some_and(|before| {
                (&before.key, before.endpoint) == (&peer.key, peer.endpoint)
                    && (&before.networks, before.datagram_max)
                        == (&peer.networks, peer.datagram_max)
            });
            match before {
                None => differs.push(format!("{}, which is new,", peer.name)),
                Some(_) if !same => {
                    differs.push(format!("key, endpoint or networks of {}", peer.name));
                }
                Some(_) => {}
            }
        }
        for gone in &other.peers {
            if !self.peers.iter().any(|peer| peer.name == gone.name) {
                differs.push(format!("the end of {}", gone.name));
            }
        }
        differs
    }
}

/// Reads a configuration with the keys that it names.
pub fn read(path: &Path) -> Result<Configuration, InputError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
    let text: Arc<str> = text.into();
    let from = path.display().to_string();
    let wrong = |span: std::ops::Range<usize>, message: String, help: &str| {
        InputError::new(from.clone(), message)
            .at(&text, span, "here")
            .help(help)
    };
    let file: File = toml::from_str(&text).map_err(|error| {
        // A quantity says what would be right behind a separator.
        let said = error.message().to_owned();
        let (message, help) = said.split_once('\u{1f}').unwrap_or((&said, ""));
        let input = InputError::new(from.clone(), message);
        let input = if help.is_empty() {
            input
        } else {
            input.help(help)
        };
        match error.span() {
            Some(span) => input.at(&text, span, "here"),
            None => input,
        }
    })?;
    let carrier = match (&file.link.listen, &file.link.ethernet) {
        (Some(listen), None) => {
            let address: Result<SocketAddr, _> = listen.get_ref().parse();
            let explain = |_| {
                wrong(
                    listen.span(),
                    format!("`{}` is not an address and port", listen.get_ref()),
                    "write \"0.0.0.0:1795\"",
                )
            };
            Carrier::Udp(address.map_err(explain)?)
        }
        (None, Some(interface)) => Carrier::Ethernet {
            interface: interface.clone(),
            ether_type: ETHER_TYPE,
        },
        _ => {
            return Err(InputError::new(
                from.clone(),
                "[link] needs either `listen` or `ethernet`",
            )
            .help(
                "listen = \"0.0.0.0:1795\" for UDP, ethernet = \"wlan0\" for frames without IP",
            ));
        }
    };
    let path_mtu = file
        .link
        .path_mtu
        .as_ref()
        .map_or(1500, |mtu| *mtu.get_ref());
    if !(576..=9000).contains(&path_mtu) {
        let span = file.link.path_mtu.as_ref().map_or(0..0, Spanned::span);
        return Err(wrong(
            span,
            format!("a path MTU of {path_mtu}"),
            "576 to 9000; most paths have 1500",
        ));
    }
    let address = match &file.link.address {
        None => None,
        Some(address) => Some(interface_address(address.get_ref()).ok_or_else(|| {
            wrong(
                address.span(),
                format!(
                    "`{}` is not an IPv4 address with its network",
                    address.get_ref()
                ),
                "write \"10.9.0.1/24\"",
            )
        })?),
    };
    let device = file.link.device.get_ref();
    if device.is_empty() || device.len() > NAME_MAX || device.contains(['/', ' ']) {
        return Err(wrong(
            file.link.device.span(),
            format!("`{device}` cannot be the name of a device"),
            "1 to 15 characters without space and slash: device = \"chappe0\"",
        ));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut peers: Vec<PeerConfig> = Vec::new();
    for table in &file.peer {
        let peer = peer(table, &carrier, path_mtu, folder, &wrong)?;
        if let Some(other) = peers.iter().find(|other| other.name == peer.name) {
            let message = format!("there are two peers `{}`", other.name);
            return Err(wrong(table.name.span(), message, "give each another name"));
        }
        if let Some(other) = peers.iter().find(|other| other.key == peer.key) {
            let message = format!("`{}` has the key of `{}`", peer.name, other.name);
            let help =
                "a peer is known by its key: make one for each link with `chappe link key FILE`";
            return Err(wrong(table.key_file.span(), message, help));
        }
        peers.push(peer);
    }
    let warnings = warnings(&file, address, &peers, folder);
    let metres = |table: &PeerTable| {
        let distance = table.distance.as_ref().map(|distance| distance.value());
        (table.name.get_ref().clone(), distance)
    };
    let distances = file.peer.iter().map(metres).collect();
    if peers.is_empty() {
        return Err(InputError::new(from, "there is no [[peer]]")
            .help("`chappe link new FILE` writes an example"));
    }
    Ok(Configuration {
        tunnel: TunnelConfig {
            device: file.link.device.into_inner(),
            address,
            carrier,
            device_queue: file.link.device_queue,
            mtu: None,
            offloads: true,
            signals: true,
        },
        peers,
        metrics: file.link.metrics.map(|metrics| folder.join(metrics)),
        distances,
        warnings,
    })
}

/// What will hardly do what was meant.
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
        // A network may well hold both ends; a single address is the other end's alone.
        let only = |to: IpAddr| {
            let mut nets = peer.networks.iter();
            nets.any(|net| net.address == to && net.has(to) && usize::from(net.prefix) >= 32)
        };
        if let Some((own, _)) = address
            && only(own.into())
        {
            warnings.push(format!(
                "{own} is this end's own address and is said to be behind {name} as well: give the two ends different ones"
            ));
        }
        if let Some(Endpoint::Udp(to)) = peer.endpoint
            && has(to.ip())
        {
            warnings.push(format!(
                "the endpoint {} of {name} is in its own `networks`: it needs a route of its own, beside the link",
                to.ip()
            ));
        }
        let key = folder.join(table.key_file.get_ref());
        let mode = std::fs::metadata(&key).map_or(0, |data| data.permissions().mode());
        if mode & 0o044 != 0 {
            warnings.push(format!(
                "others on this machine can read {}: `chmod 600` it",
                key.display()
            ));
        }
    }
    warnings
}

type Wrong<'a> = &'a dyn Fn(std::ops::Range<usize>, String, &str) -> InputError;

fn peer(
    table: &PeerTable,
    carrier: &Carrier,
    path_mtu: usize,
    folder: &Path,
    wrong: Wrong<'_>,
) -> Result<PeerConfig, InputError> {
    let key_path = folder.join(table.key_file.get_ref());
    let key = std::fs::read_to_string(&key_path).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "`chappe link key FILE` makes one; both ends need the same"
            }
            _ => "run the link as root or as the one to whom the key belongs",
        };
        let message = format!("cannot read {}: {error}", key_path.display());
        wrong(table.key_file.span(), message, help)
    })?;
    let key = Key::parse(&key).ok_or_else(|| {
        wrong(
            table.key_file.span(),
            format!("{} is not a key", key_path.display()),
            "a key is 64 hexadecimal digits, as `chappe link key` writes them",
        )
    })?;
    let endpoint = match &table.endpoint {
        None => None,
        Some(text) => Some(carrier.endpoint(text.get_ref()).ok_or_else(|| {
            let (what, right) = match carrier {
                Carrier::Udp(_) => (
                    "an address and a port",
                    "write \"192.0.2.7:1795\", or \"[2001:db8::7]:1795\" with `listen = \"[::]:1795\"`; names are not looked up",
                ),
                Carrier::Ethernet { .. } => (
                    "an Ethernet address",
                    "with `ethernet`, write \"02:00:00:00:00:07\": `ip link` at the other end shows it",
                ),
            };
            wrong(text.span(), format!("`{}` is not {what}", text.get_ref()), right)
        })?),
    };
    if let (Carrier::Udp(own), Some(Endpoint::Udp(to)), Some(text)) =
        (carrier, endpoint, &table.endpoint)
    {
        if own.is_ipv4() != to.is_ipv4() {
            return Err(wrong(
                text.span(),
                format!("`{to}` cannot be reached from `listen = \"{own}\"`"),
                "both IPv4, or both IPv6: listen = \"0.0.0.0:1795\" or \"[::]:1795\"",
            ));
        }
        if to.port() == 0 || to.ip().is_unspecified() {
            return Err(wrong(
                text.span(),
                format!("nobody can be at `{to}`"),
                "write \"192.0.2.7:1795\", or leave `endpoint` away where the other end calls first",
            ));
        }
    }
    let rate = table.rate.as_ref().map(|rate| rate.get_ref().value());
    if let (Some(value), Some(rate)) = (rate, &table.rate)
        && value < 1_000.0
    {
        return Err(wrong(
            rate.span(),
            "a link needs a rate of 1 kbit/s at least".to_owned(),
            "write what the medium carries, \"6 Mbit/s\", or leave `rate` away to have it found out",
        ));
    }
    let mut networks = Vec::new();
    for text in &table.networks {
        let net = Net::parse(text.get_ref());
        networks.push(net.ok_or_else(|| {
            wrong(
                text.span(),
                format!("`{}` is not a network", text.get_ref()),
                "write \"10.9.0.2/32\"",
            )
        })?);
    }
    let bulk = service(&table.bulk, BULK, wrong)?;
    let urgent = service(&table.urgent, Service::PROMPT, wrong)?;
    Ok(PeerConfig {
        name: table.name.get_ref().clone(),
        key,
        endpoint,
        networks,
        datagram_max: carrier.datagram_max(path_mtu),
        below: carrier.below(),
        rate: rate.map(|rate| Bitrate(rate as u64)),
        services: [urgent, bulk, bulk, bulk],
        queue: Duration::from_millis(100),
    })
}

fn service(
    promise: &Option<Promise>,
    usual: Service,
    wrong: Wrong<'_>,
) -> Result<Service, InputError> {
    let Some(promise) = promise else {
        return Ok(usual);
    };
    let residual = promise
        .residual
        .as_ref()
        .map_or(usual.residual, |residual| *residual.get_ref());
    if !(residual > 0.0 && residual <= 1.0) {
        let span = promise.residual.as_ref().map_or(0..0, Spanned::span);
        return Err(wrong(
            span,
            format!("a residual of {residual}"),
            "a share above 0 and not above 1: 0.01 is one packet in a hundred",
        ));
    }
    let seconds = |time: &Time| Duration::from_secs_f64(time.value());
    Ok(Service {
        order: match promise.order {
            None => usual.order,
            Some(OrderName::Flow) => Order::Flow,
            Some(OrderName::Link) => Order::Link,
            Some(OrderName::None) => Order::None,
        },
        deadline: promise.deadline.as_ref().map(seconds).or(usual.deadline),
        residual,
        retries: promise.retries.or(usual.retries),
        drop_late: promise.drop_late.unwrap_or(usual.drop_late),
    })
}

fn interface_address(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
    Some((address.parse().ok()?, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            .replace("\nWhat is promised", "\n# What is promised");
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
    fn mistakes_are_told_with_their_place() {
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
            ("nobody", "\"192.0.2.7:1795\"", "\"192.0.2.7:0\"", "nobody"),
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

    /// Goal: peers are told apart by name and key; a file that was copied as it is, and a key that all can read, are warned of.
    #[test]
    fn what_will_hardly_do_is_told() {
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
        assert!(warned(&read, "own address"), "{:?}", read.warnings);
        // A network may hold both ends.
        let whole = TEMPLATE.replacen("\"10.9.0.2/32\"", "\"10.9.0.0/24\"", 1);
        assert!(!warned(&read_text("whole", &whole).unwrap(), "own address"));
    }

    /// Goal: what a running link cannot take over is named, and what it can is not.
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
        assert_eq!(
            differs(":1795\"           #", ":1796\" #"),
            ["what [link] says"]
        );
        assert_eq!(
            differs("\"192.0.2.7:1795\"", "\"192.0.2.8:1795\""),
            ["key, endpoint or networks of other"]
        );
        let renamed = differs("\"other\"", "\"third\"");
        assert_eq!(renamed, ["third, which is new,", "the end of other"]);
    }
}
