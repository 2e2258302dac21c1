//! `[[port]]`, `[socks]` and `[[serve]]`: connections through the link without a device.

use std::net::SocketAddr;

use chappe_link::{ADDRESSES_MAX, StreamsConfig};
use chappe_scenario::InputError;
use chappe_scenario::format::Located;
use chappe_scenario::quantity::Size;
use serde::Deserialize;

use super::Source;

/// `[[port]]`: an address of this host whose connections go through the link.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortTable {
    listen: Located<String>,
    to: Located<String>,
}

/// `[socks]`: where programs may ask for connections to any address behind the link.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SocksTable {
    listen: Located<String>,
}

/// `[[serve]]`: a port of this host's address in the link, and what peers reach there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServeTable {
    port: Located<u16>,
    to: Located<String>,
}

/// The tables, and the settings in `[link]` that belong to them.
pub(super) struct Tables<'a> {
    pub ports: &'a [PortTable],
    pub socks: &'a Option<SocksTable>,
    pub served: &'a [ServeTable],
    pub connections: &'a Option<Located<usize>>,
    pub buffer: &'a Option<Located<Size>>,
}

/// Connections at once where the file does not say it: with full buffers they take 256 MiB.
const CONNECTIONS: usize = 128;
/// Octets of a buffer: 84 Mbit/s over 100 ms, 14 over 600.
const BUFFER: usize = 1 << 20;
/// The most of both: 16 bits of errands and descriptors, and the window that TCP can name (RFC 7323, 2.3: 2^30) less what hosts have.
const CONNECTIONS_MOST: usize = 10_000;
const BUFFER_RANGE: std::ops::RangeInclusive<f64> = 16e3..=64e6;

impl Tables<'_> {
    /// What goes through the link without a device; `None` with one. `addresses`: how many this host has in the link.
    pub fn read(
        &self,
        without_device: bool,
        addresses: usize,
        source: &Source,
    ) -> Result<Option<StreamsConfig>, InputError> {
        if !without_device {
            return self.refuse(source).map(|()| None);
        }
        let config = StreamsConfig {
            ports: (self.ports.iter())
                .map(|port| Ok((address(&port.listen, source)?, address(&port.to, source)?)))
                .collect::<Result<_, InputError>>()?,
            socks: (self.socks.as_ref())
                .map(|socks| address(&socks.listen, source))
                .transpose()?,
            served: (self.served.iter())
                .map(|served| Ok((served.port(source)?, address(&served.to, source)?)))
                .collect::<Result<_, InputError>>()?,
            connections: self.connections(source)?,
            buffer: self.buffer(source)?,
        };
        for (at, served) in self.served.iter().enumerate() {
            if self.served[..at]
                .iter()
                .any(|one| one.port.get_ref() == served.port.get_ref())
            {
                let message = format!("port {} is served twice", served.port.get_ref());
                return Err(source.wrong(served.port.span(), message, "leave one of them out"));
            }
        }
        if !(1..=ADDRESSES_MAX).contains(&addresses) {
            let message = format!("device = \"none\" with {addresses} addresses");
            let help = format!(
                "address = \"10.9.0.1/24\": without a device this host has 1 to {ADDRESSES_MAX} of them in the link"
            );
            return Err(InputError::new(source.from.clone(), message).help(help));
        }
        Ok(Some(config))
    }

    /// With a device the kernel does all this.
    fn refuse(&self, source: &Source) -> Result<(), InputError> {
        let first = (self.ports.first().map(|port| port.listen.span()))
            .or(self.socks.as_ref().map(|socks| socks.listen.span()))
            .or(self.served.first().map(|served| served.port.span()))
            .or(self.connections.as_ref().map(Located::span))
            .or(self.buffer.as_ref().map(Located::span));
        match first {
            None => Ok(()),
            Some(span) => {
                let message = "this is for a link without a device".to_owned();
                let help = "write device = \"none\" in [link]; with a device programs use the peers' addresses themselves";
                Err(source.wrong(span, message, help))
            }
        }
    }

    fn connections(&self, source: &Source) -> Result<usize, InputError> {
        let Some(given) = self.connections else {
            return Ok(CONNECTIONS);
        };
        let count = *given.get_ref();
        if (1..=CONNECTIONS_MOST).contains(&count) {
            return Ok(count);
        }
        let message = format!("{count} connections at once");
        Err(source.wrong(given.span(), message, "1 to 10000; each takes two buffers"))
    }

    fn buffer(&self, source: &Source) -> Result<usize, InputError> {
        let Some(given) = self.buffer else {
            return Ok(BUFFER);
        };
        let octets = given.get_ref().value();
        if BUFFER_RANGE.contains(&octets) {
            return Ok(octets as usize);
        }
        let message = format!("a buffer of {octets:.0} octets");
        let help =
            "\"16 kB\" to \"64 MB\"; a connection carries at most a buffer in each round trip";
        Err(source.wrong(given.span(), message, help))
    }
}

impl ServeTable {
    fn port(&self, source: &Source) -> Result<u16, InputError> {
        match *self.port.get_ref() {
            0 => {
                let message = "port 0 cannot be served".to_owned();
                Err(source.wrong(self.port.span(), message, "1 to 65535"))
            }
            port => Ok(port),
        }
    }
}

/// An address with its port.
fn address(text: &Located<String>, source: &Source) -> Result<SocketAddr, InputError> {
    text.get_ref().parse().map_err(|_| {
        let message = format!("`{}` is not an address and port", text.get_ref());
        let help = "write \"127.0.0.1:8022\" or \"[fd09::2]:22\"";
        source.wrong(text.span(), message, help)
    })
}

/// Settings that let other hosts in.
pub(super) fn warnings(config: &StreamsConfig) -> impl Iterator<Item = String> + '_ {
    let open = config.ports.iter().map(|port| port.0).chain(config.socks);
    let open = open.filter(|at| !at.ip().is_loopback());
    open.map(|at| {
        format!("whoever reaches {at} reaches through it what is behind the link: listen on 127.0.0.1 for this host alone")
    })
}
