//! The `[[peer.path]]` tables: several paths to one peer.

use chappe_core::{Bitrate, Duration};
use chappe_link::{Carrier, PathConfig};
use chappe_scenario::InputError;
use chappe_scenario::format::Located;
use chappe_scenario::quantity::{Rate, Time};
use chappe_sys::Endpoint;
use chappe_wildnet::PATHS;
use serde::Deserialize;

use super::Source;
use super::endpoint::{Place, endpoint, rate};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathTable {
    name: Located<String>,
    endpoint: Option<Located<String>>,
    interface: Option<Located<String>>,
    rate: Option<Located<Rate>>,
    cost: Option<Located<Time>>,
    #[serde(default)]
    reserve: bool,
}

/// The paths of a peer, and the names of those whose endpoints are to be looked up.
pub(super) struct Paths {
    pub configs: Vec<PathConfig>,
    pub hosts: Vec<Option<(String, u16)>>,
}

/// Largest cost that has a meaning: with it a path takes nothing that any other can carry within a minute.
const COST_MOST: f64 = 60.0;

/// Reads the paths of a peer; none if it has no such table.
pub(super) fn read(
    tables: &[PathTable],
    of_one: Option<(std::ops::Range<usize>, &'static str)>,
    carrier: &Carrier,
    source: &Source,
) -> Result<Paths, InputError> {
    let mut paths = Paths {
        configs: Vec::new(),
        hosts: Vec::new(),
    };
    if let (Some(first), Some((span, key))) = (tables.first(), of_one) {
        let message = format!(
            "a peer with the path `{}` has no `{key}` of its own",
            first.name.get_ref()
        );
        let help = format!("move `{key}` into each [[peer.path]]");
        return Err(source.wrong(span, message, &help));
    }
    for table in tables {
        let name = table.name.get_ref();
        let wrong = |message: String, help: &str| source.wrong(table.name.span(), message, help);
        if paths.configs.len() >= PATHS {
            return Err(wrong(
                format!("`{name}` is path {} of a peer", PATHS + 1),
                "a peer has at most eight paths",
            ));
        }
        if paths.configs.iter().any(|other| other.name == *name) {
            let message = format!("there are two paths `{name}`");
            return Err(wrong(message, "give each a different name"));
        }
        let (path, host) = table.read(carrier, source)?;
        paths.configs.push(path);
        paths.hosts.push(host);
    }
    Ok(paths)
}

impl PathTable {
    fn read(
        &self,
        carrier: &Carrier,
        source: &Source,
    ) -> Result<(PathConfig, Option<(String, u16)>), InputError> {
        let place = self.endpoint.as_ref();
        let place = place
            .map(|text| endpoint(text, carrier, source))
            .transpose()?;
        let (endpoint, host) = match place {
            None => (None, None),
            Some(Place::At(endpoint)) => (Some(endpoint), None),
            Some(Place::Named(host, port)) => (None, Some((host, port))),
        };
        let path = PathConfig {
            name: self.name.get_ref().clone(),
            endpoint,
            interface: self.interface(carrier, source)?,
            below: self.below(endpoint, carrier),
            rate: self.rate(source)?,
            cost: self.cost(source)?,
            reserve: self.reserve,
        };
        Ok((path, host))
    }

    fn below(&self, endpoint: Option<Endpoint>, carrier: &Carrier) -> usize {
        carrier.below_to(endpoint)
    }

    fn rate(&self, source: &Source) -> Result<Option<Bitrate>, InputError> {
        let read = |given| rate(given, source);
        self.rate.as_ref().map(read).transpose()
    }

    fn interface(&self, carrier: &Carrier, source: &Source) -> Result<Option<String>, InputError> {
        let Some(given) = &self.interface else {
            return Ok(None);
        };
        if let Carrier::Ethernet { .. } = carrier {
            let message = "a path cannot choose an interface beside `ethernet`".to_owned();
            let help = "with `listen` in [link], paths of UDP can";
            return Err(source.wrong(given.span(), message, help));
        }
        Ok(Some(given.get_ref().clone()))
    }

    fn cost(&self, source: &Source) -> Result<Duration, InputError> {
        let Some(given) = &self.cost else {
            return Ok(Duration::ZERO);
        };
        let seconds = given.get_ref().value();
        if (0.0..=COST_MOST).contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
        let message = format!("a cost of {seconds} s");
        let help = "how much longer packets may wait so that this path is spared: \"50 ms\", at most 60 s; reserve = true if it is for outages only";
        Err(source.wrong(given.span(), message, help))
    }
}
