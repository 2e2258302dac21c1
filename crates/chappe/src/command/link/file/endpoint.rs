//! Endpoints and rates as the file has them.

use chappe_core::Bitrate;
use chappe_link::Carrier;
use chappe_scenario::InputError;
use chappe_scenario::format::Located;
use chappe_scenario::quantity::Rate;
use chappe_sys::Endpoint;

use super::Source;

/// An endpoint as the file has it.
pub(super) enum Place {
    At(Endpoint),
    Named(String, u16),
}

/// Reads an endpoint: an address, or a name that is looked up later.
pub(super) fn endpoint(
    text: &Located<String>,
    carrier: &Carrier,
    source: &Source,
) -> Result<Place, InputError> {
    let wrong = |message, help| Err(source.wrong(text.span(), message, help));
    let Some(endpoint) = carrier.endpoint(text.get_ref()) else {
        if let (Carrier::Udp(_), Some(named)) = (carrier, named(text.get_ref())) {
            return Ok(named);
        }
        let (what, right) = match carrier {
            Carrier::Udp(_) => (
                "a host and a port",
                "write \"192.0.2.7:1795\", \"[2001:db8::7]:1795\" or \"hill.example.net:1795\"",
            ),
            Carrier::Ethernet { .. } => (
                "an Ethernet address",
                "with `ethernet`, write \"02:00:00:00:00:07\": `ip link` at the other end shows it",
            ),
        };
        return wrong(format!("`{}` is not {what}", text.get_ref()), right);
    };
    if let (Carrier::Udp(own), Endpoint::Udp(to)) = (carrier, endpoint) {
        if !carrier.reaches(to.ip()) {
            return wrong(
                format!("`{to}` cannot be reached from `listen = \"{own}\"`"),
                "listen = \"[::]:1795\" serves IPv4 and IPv6",
            );
        }
        if to.port() == 0 || to.ip().is_unspecified() {
            return wrong(
                format!("no host can have the address `{to}`"),
                "write \"192.0.2.7:1795\", or omit `endpoint` if the other end calls first",
            );
        }
    }
    Ok(Place::At(endpoint))
}

/// Reads a rate in bit/s. A rate below 1 kbit/s is a mistake of the file.
pub(super) fn rate(rate: &Located<Rate>, source: &Source) -> Result<Bitrate, InputError> {
    let value = rate.get_ref().value();
    if value < LEAST_BPS {
        let message = "a link needs a rate of at least 1 kbit/s".to_owned();
        let help =
            "write what the medium carries, \"6 Mbit/s\", or omit `rate` to have it measured";
        return Err(source.wrong(rate.span(), message, help));
    }
    Ok(Bitrate(value as u64))
}

/// A name of the domain name system and a port.
fn named(text: &str) -> Option<Place> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let fits = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&part.len()) && part.chars().all(plain)
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    // Digits and dots alone are an address that was not written right.
    let address = name.chars().all(|c| c.is_ascii_digit() || c == '.');
    let right = name.len() <= 253 && !address && name.split('.').all(fits);
    right.then(|| Place::Named(name.to_owned(), port))
}

/// Below this rate, a full frame takes more than twelve seconds.
const LEAST_BPS: f64 = 1_000.0;
