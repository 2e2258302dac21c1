//! The `[link]` table of the file: this host.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use chappe_link::{Carrier, Secret};
use chappe_scenario::InputError;
use chappe_scenario::format::Located;
use chappe_scenario::quantity::{Size, Time};
use serde::Deserialize;

use super::keys;
use super::peer::limit;
use super::{Hooks, Source};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkTable {
    #[serde(default = "device")]
    device: Located<String>,
    pub key_file: Option<Located<PathBuf>>,
    address: Option<Located<Addresses>>,
    listen: Option<Located<String>>,
    ethernet: Option<String>,
    path_mtu: Option<Located<usize>>,
    #[serde(default = "yes")]
    pub routes: bool,
    #[serde(default)]
    pub introduce: bool,
    pub peers: Option<Located<PathBuf>>,
    memory: Option<Located<Size>>,
    pub connections: Option<Located<usize>>,
    pub buffer: Option<Located<Size>>,
    pub metrics: Option<PathBuf>,
    pub status: Option<PathBuf>,
    #[serde(default = "device_queue")]
    pub device_queue: u32,
    #[serde(default)]
    on_up: Vec<String>,
    #[serde(default)]
    on_down: Vec<String>,
    hook_limit: Option<Time>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Addresses {
    One(String),
    Several(Vec<String>),
}

fn device() -> Located<String> {
    Located::nowhere("chappe0".into())
}

fn yes() -> bool {
    true
}

/// Longest name of an interface (IFNAMSIZ of linux/if.h without the final zero).
const NAME_MAX: usize = 15;

/// Packets that the kernel queues while this process is not scheduled. Packets that wait for the link are in the link's queues.
fn device_queue() -> u32 {
    1_000
}

/// Octets for windows: what one peer's two windows have from the start, and more than 300 peers can use.
const MEMORY_LEAST: f64 = 4e6;
const MEMORY_MOST: f64 = 64e9;

/// The EtherType that IEEE 802 leaves to experiments.
const ETHER_TYPE: u16 = 0x88b5;

impl LinkTable {
    pub fn carrier(&self, source: &Source) -> Result<Carrier, InputError> {
        match (&self.listen, &self.ethernet) {
            (Some(listen), None) => {
                let address: Result<SocketAddr, _> = listen.get_ref().parse();
                address.map(Carrier::Udp).map_err(|_| {
                    let message = format!("`{}` is not an address and port", listen.get_ref());
                    let help = "write \"[::]:1795\" for IPv4 and IPv6, or \"0.0.0.0:1795\"";
                    source.wrong(listen.span(), message, help)
                })
            }
            (None, Some(interface)) => Ok(Carrier::Ethernet {
                interface: interface.clone(),
                ether_type: ETHER_TYPE,
            }),
            _ => {
                let message = "[link] needs either `listen` or `ethernet`";
                let help =
                    "listen = \"[::]:1795\" for UDP, ethernet = \"wlan0\" for frames without IP";
                Err(InputError::new(source.from.clone(), message).help(help))
            }
        }
    }

    pub fn path_mtu(&self, source: &Source) -> Result<usize, InputError> {
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

    /// Octets that the windows of all peers may take.
    pub fn memory(&self, source: &Source) -> Result<usize, InputError> {
        let Some(given) = &self.memory else {
            return Ok(chappe_link::usual_memory());
        };
        let octets = given.get_ref().value();
        if (MEMORY_LEAST..=MEMORY_MOST).contains(&octets) {
            return Ok(octets as usize);
        }
        let message = format!("a memory of {octets:.0} octets for windows");
        let help = "4 MB to 64 GB; each of two ends takes some 190 MB for 100 Mbit/s over a satellite with losses";
        Err(source.wrong(given.span(), message, help))
    }

    pub fn addresses(&self, source: &Source) -> Result<Vec<(IpAddr, u8)>, InputError> {
        let Some(address) = &self.address else {
            return Ok(Vec::new());
        };
        let given = match address.get_ref() {
            Addresses::One(one) => std::slice::from_ref(one),
            Addresses::Several(several) => several.as_slice(),
        };
        let read = |text: &String| {
            interface_address(text).ok_or_else(|| {
                let message = format!("`{text}` is not an address with its network");
                let help = "write \"10.9.0.1/24\", or [\"10.9.0.1/24\", \"fd09::1/64\"]";
                source.wrong(address.span(), message, help)
            })
        };
        given.iter().map(read).collect()
    }

    /// Whether there is no device: only ports, SOCKS and services.
    pub fn is_without_device(&self) -> bool {
        self.device.get_ref() == "none"
    }

    pub fn device(&self, source: &Source) -> Result<String, InputError> {
        let device = self.device.get_ref();
        let fits = (1..=NAME_MAX).contains(&device.len()) && !device.contains(['/', ' ']);
        fits.then(|| device.clone()).ok_or_else(|| {
            let message = format!("`{device}` cannot be the name of a device");
            let help = "1 to 15 characters without space and slash: device = \"chappe0\"";
            source.wrong(self.device.span(), message, help)
        })
    }

    /// The secret key of this host.
    pub fn secret(&self, source: &Source) -> Result<Secret, InputError> {
        let Some(file) = &self.key_file else {
            let message = "[link] has no `key_file`, the secret key of this host";
            let help =
                "make one with `chappe link key new host.key`, and write key_file = \"host.key\"";
            return Err(InputError::new(source.from.clone(), message).help(help));
        };
        keys::read(
            source,
            file,
            "`chappe link key new FILE` makes one",
            Secret::parse,
        )
    }

    pub fn hooks(&self) -> Hooks {
        Hooks {
            up: self.on_up.clone(),
            down: self.on_down.clone(),
            limit: limit(&self.hook_limit),
        }
    }
}

fn interface_address(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv6() { 128 } else { 32 };
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= most)?;
    Some((address, prefix))
}
