//! One `[[peer]]` of the file, or one file of the folder of peers.

use std::path::PathBuf;

use chappe_core::{Bitrate, Duration};
use chappe_link::classify::Net;
use chappe_link::{BULK, Carrier, IDLE_KEEPALIVE, PeerConfig, Psk, Public};
use chappe_scenario::InputError;
use chappe_scenario::format::Located;
use chappe_scenario::quantity::{Length, Rate, Time};
use chappe_wildnet::{Order, Service};
use serde::Deserialize;

use super::endpoint::{Place, endpoint, rate};
use super::keys;
use super::paths::{self, PathTable};
use super::{Entry, Hooks, Source};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerTable {
    name: Option<Located<String>>,
    public_key: Option<Located<String>>,
    pub preshared_key_file: Option<Located<PathBuf>>,
    /// The shared key of former releases.
    key_file: Option<Located<PathBuf>>,
    endpoint: Option<Located<String>>,
    networks: Vec<Located<String>>,
    introducer: Option<Located<String>>,
    keepalive: Option<Located<Time>>,
    rate: Option<Located<Rate>>,
    distance: Option<Length>,
    bulk: Option<Promise>,
    urgent: Option<Promise>,
    #[serde(default)]
    on_up: Vec<String>,
    #[serde(default)]
    on_down: Vec<String>,
    hook_limit: Option<Time>,
    #[serde(default)]
    path: Vec<PathTable>,
}

/// How long a hook may take if the file does not say it.
const HOOK_LIMIT: Duration = Duration::from_secs(10);

/// The limit of hooks.
pub(super) fn limit(given: &Option<Time>) -> Duration {
    let given = given
        .as_ref()
        .map(|time| Duration::from_secs_f64(time.value()));
    given.unwrap_or(HOOK_LIMIT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    deadline: Option<Time>,
    residual: Option<Located<f64>>,
    order: Option<OrderName>,
    retries: Option<u8>,
    drop_late: Option<bool>,
    every_path: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderName {
    Flow,
    Link,
    None,
}

impl PeerTable {
    /// Refuses the shared key of former releases, and says what to do.
    pub fn refuse_old(&self, source: &Source) -> Result<(), InputError> {
        let Some(old) = &self.key_file else {
            return Ok(());
        };
        let message =
            "a peer has no `key_file` any more: hosts have keys of their own, no shared one";
        let help = "on each host: `chappe link key new host.key`, then key_file = \"host.key\" in [link], and here public_key = \"...\", which `chappe link key public host.key` prints on the other host; the old key may stay as preshared_key_file";
        Err(source.wrong(old.span(), message.to_owned(), help))
    }

    /// Gives a peer the name of its file, unless it has one.
    pub fn name_after(&mut self, file: String) {
        self.name.get_or_insert_with(|| Located::nowhere(file));
    }

    pub fn name_span(&self) -> std::ops::Range<usize> {
        self.name.as_ref().map_or(0..0, Located::span)
    }

    pub fn key_span(&self) -> std::ops::Range<usize> {
        self.public_key.as_ref().map_or(0..0, Located::span)
    }

    /// The peer's configuration, with the shared secret from its file.
    pub fn read(
        &self,
        carrier: &Carrier,
        path_mtu: usize,
        source: &Source,
    ) -> Result<Entry, InputError> {
        let bulk = service(&self.bulk, BULK, source)?;
        let Some(name) = &self.name else {
            let message = "a [[peer]] has no `name`";
            return Err(InputError::new(source.from.clone(), message).help("name = \"hill\""));
        };
        let (endpoint, host) = match self.endpoint(carrier, source)? {
            None => (None, None),
            Some(Place::At(endpoint)) => (Some(endpoint), None),
            Some(Place::Named(host, port)) => (None, Some((host, port))),
        };
        let below = carrier.below_to(endpoint);
        let paths = paths::read(&self.path, self.of_one_path(), carrier, source)?;
        let psk = self.preshared_key_file.as_ref().map(|file| {
            keys::read(
                source,
                file,
                "`chappe link key shared FILE` makes one",
                Psk::parse,
            )
        });
        let config = PeerConfig {
            name: name.get_ref().clone(),
            public: self.public(source)?,
            psk: psk.transpose()?,
            endpoint,
            networks: self.networks(source)?,
            datagram_max: path_mtu.saturating_sub(below - 14),
            below,
            rate: self.rate(source)?,
            services: [
                service(&self.urgent, Service::PROMPT, source)?,
                bulk,
                bulk,
                bulk,
            ],
            queue: Duration::from_millis(100),
            keepalive: self.keepalive(source)?,
            paths: paths.configs,
        };
        Ok(Entry {
            config,
            host,
            path_hosts: paths.hosts,
            distance: self.distance.as_ref().map(|distance| distance.value()),
            introducer: self.introducer.as_ref().map(|by| by.get_ref().clone()),
            hooks: Hooks {
                up: self.on_up.clone(),
                down: self.on_down.clone(),
                limit: limit(&self.hook_limit),
            },
        })
    }

    /// Refuses an introducer that is no other peer, or where there is none: on Ethernet.
    pub fn check_introducer(
        &self,
        peers: &[Entry],
        carrier: &Carrier,
        source: &Source,
    ) -> Result<(), InputError> {
        let Some(by) = &self.introducer else {
            return Ok(());
        };
        let own = self.name.as_ref().map(|name| name.get_ref());
        let known = |peer: &Entry| peer.config.name == *by.get_ref();
        if own == Some(by.get_ref()) || !peers.iter().any(known) {
            let message = format!("the introducer `{}` is no other peer", by.get_ref());
            let help = "the name of a peer that both hosts have, and whose file has `introduce = true` in [link]";
            return Err(source.wrong(by.span(), message, help));
        }
        if !matches!(carrier, Carrier::Udp(_)) {
            let message = "an introducer for a link without addresses".to_owned();
            return Err(source.wrong(by.span(), message, "leave it out, or `listen` on UDP"));
        }
        Ok(())
    }

    fn public(&self, source: &Source) -> Result<Public, InputError> {
        let help = "64 hexadecimal digits, which `chappe link key public host.key` prints on the other host";
        let Some(text) = &self.public_key else {
            let name = self.name.as_ref().map_or("a peer", |name| name.get_ref());
            let message = format!("{name} has no `public_key`");
            return Err(InputError::new(source.from.clone(), message).help(help));
        };
        Public::parse(text.get_ref()).ok_or_else(|| {
            let message = format!("`{}` is not a public key", text.get_ref());
            source.wrong(text.span(), message, help)
        })
    }

    fn keepalive(&self, source: &Source) -> Result<Duration, InputError> {
        let Some(given) = &self.keepalive else {
            return Ok(IDLE_KEEPALIVE);
        };
        let seconds = given.get_ref().value();
        if (1.0..=3600.0).contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
        let message = format!("a keepalive every {seconds} s");
        let help = "1 s to 1 h; \"25 s\" suits nearly all address translators";
        Err(source.wrong(given.span(), message, help))
    }

    fn endpoint(&self, carrier: &Carrier, source: &Source) -> Result<Option<Place>, InputError> {
        let read = |text| endpoint(text, carrier, source);
        self.endpoint.as_ref().map(read).transpose()
    }

    /// The span of the peer's own endpoint or rate, which paths of their own leave no meaning to.
    fn of_one_path(&self) -> Option<(std::ops::Range<usize>, &'static str)> {
        let endpoint = self.endpoint.as_ref().map(|text| (text.span(), "endpoint"));
        endpoint.or_else(|| self.rate.as_ref().map(|rate| (rate.span(), "rate")))
    }

    fn rate(&self, source: &Source) -> Result<Option<Bitrate>, InputError> {
        let read = |given| rate(given, source);
        self.rate.as_ref().map(read).transpose()
    }

    fn networks(&self, source: &Source) -> Result<Vec<Net>, InputError> {
        let read = |text: &Located<String>| {
            Net::parse(text.get_ref()).ok_or_else(|| {
                let message = format!("`{}` is not a network", text.get_ref());
                source.wrong(text.span(), message, "write \"10.9.0.2/32\"")
            })
        };
        self.networks.iter().map(read).collect()
    }
}

fn service(
    promise: &Option<Promise>,
    usual: Service,
    source: &Source,
) -> Result<Service, InputError> {
    let Some(promise) = promise else {
        return Ok(usual);
    };
    let residual = promise
        .residual
        .as_ref()
        .map_or(usual.residual, |residual| *residual.get_ref());
    if !(residual > 0.0 && residual <= 1.0) {
        let span = promise.residual.as_ref().map_or(0..0, Located::span);
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
        every_path: promise.every_path.unwrap_or(usual.every_path),
    })
}
