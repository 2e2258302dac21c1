//! One `[[peer]]` of the file.

use std::path::PathBuf;

use chappe_core::{Bitrate, Duration};
use chappe_link::classify::Net;
use chappe_link::{BULK, Carrier, Key, PeerConfig};
use chappe_scenario::InputError;
use chappe_scenario::quantity::{Length, Rate, Time};
use chappe_sys::Endpoint;
use chappe_wildnet::{Order, Service};
use serde::Deserialize;
use toml::Spanned;

use super::Source;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerTable {
    pub name: Spanned<String>,
    pub key_file: Spanned<PathBuf>,
    endpoint: Option<Spanned<String>>,
    networks: Vec<Spanned<String>>,
    rate: Option<Spanned<Rate>>,
    pub distance: Option<Length>,
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

impl PeerTable {
    /// The peer's configuration, with the key from its file.
    pub fn read(
        &self,
        carrier: &Carrier,
        path_mtu: usize,
        source: &Source<'_>,
    ) -> Result<PeerConfig, InputError> {
        let bulk = service(&self.bulk, BULK, source)?;
        Ok(PeerConfig {
            name: self.name.get_ref().clone(),
            key: self.key(source)?,
            endpoint: self.endpoint(carrier, source)?,
            networks: self.networks(source)?,
            datagram_max: carrier.datagram_max(path_mtu),
            below: carrier.below(),
            rate: self.rate(source)?,
            services: [
                service(&self.urgent, Service::PROMPT, source)?,
                bulk,
                bulk,
                bulk,
            ],
            queue: Duration::from_millis(100),
        })
    }

    fn key(&self, source: &Source<'_>) -> Result<Key, InputError> {
        let path = source.folder.join(self.key_file.get_ref());
        let wrong = |message, help| source.wrong(self.key_file.span(), message, help);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let help = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "`chappe link key FILE` makes one; both ends need the same"
                }
                _ => "run the link as root or as the owner of the key",
            };
            wrong(format!("cannot read {}: {error}", path.display()), help)
        })?;
        Key::parse(&text).ok_or_else(|| {
            wrong(
                format!("{} is not a key", path.display()),
                "a key is 64 hexadecimal digits, as `chappe link key` writes them",
            )
        })
    }

    fn endpoint(
        &self,
        carrier: &Carrier,
        source: &Source<'_>,
    ) -> Result<Option<Endpoint>, InputError> {
        let Some(text) = &self.endpoint else {
            return Ok(None);
        };
        let wrong = |message, help| Err(source.wrong(text.span(), message, help));
        let Some(endpoint) = carrier.endpoint(text.get_ref()) else {
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
            return wrong(format!("`{}` is not {what}", text.get_ref()), right);
        };
        if let (Carrier::Udp(own), Endpoint::Udp(to)) = (carrier, endpoint) {
            if own.is_ipv4() != to.is_ipv4() {
                return wrong(
                    format!("`{to}` cannot be reached from `listen = \"{own}\"`"),
                    "both IPv4, or both IPv6: listen = \"0.0.0.0:1795\" or \"[::]:1795\"",
                );
            }
            if to.port() == 0 || to.ip().is_unspecified() {
                return wrong(
                    format!("no host can have the address `{to}`"),
                    "write \"192.0.2.7:1795\", or omit `endpoint` if the other end sends first",
                );
            }
        }
        Ok(Some(endpoint))
    }

    fn rate(&self, source: &Source<'_>) -> Result<Option<Bitrate>, InputError> {
        let Some(rate) = &self.rate else {
            return Ok(None);
        };
        let value = rate.get_ref().value();
        if value < LEAST_BPS {
            let message = "a link needs a rate of at least 1 kbit/s".to_owned();
            let help =
                "write what the medium carries, \"6 Mbit/s\", or omit `rate` to have it measured";
            return Err(source.wrong(rate.span(), message, help));
        }
        Ok(Some(Bitrate(value as u64)))
    }

    fn networks(&self, source: &Source<'_>) -> Result<Vec<Net>, InputError> {
        let read = |text: &Spanned<String>| {
            Net::parse(text.get_ref()).ok_or_else(|| {
                let message = format!("`{}` is not a network", text.get_ref());
                source.wrong(text.span(), message, "write \"10.9.0.2/32\"")
            })
        };
        self.networks.iter().map(read).collect()
    }
}

/// Below this rate, a full frame takes more than twelve seconds.
const LEAST_BPS: f64 = 1_000.0;

fn service(
    promise: &Option<Promise>,
    usual: Service,
    source: &Source<'_>,
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
        return Err(source.wrong(
            span,
            format!("a residual of {residual}"),
            "a share above 0 and at most 1: 0.01 is one packet in a hundred",
        ));
    }
    let seconds = |time: &Time| Duration::from_secs_f64(time.value());
    let deadline = promise.deadline.as_ref().map(seconds).or(usual.deadline);
    Ok(Service {
        order: match promise.order {
            None => usual.order,
            Some(OrderName::Flow) => Order::Flow,
            Some(OrderName::Link) => Order::Link,
            Some(OrderName::None) => Order::None,
        },
        deadline,
        // Another deadline than the usual one is met, whatever it costs on this path.
        rounds: match deadline == usual.deadline {
            true => usual.rounds,
            false => 0,
        },
        residual,
        retries: promise.retries.or(usual.retries),
        drop_late: promise.drop_late.unwrap_or(usual.drop_late),
    })
}
