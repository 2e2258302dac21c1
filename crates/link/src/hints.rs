//! Observations outside of sessions that explain why a session does not come up or packets are dropped.

use std::net::{IpAddr, Ipv4Addr};

use chappe_core::{Duration, Instant};
use chappe_sys::Endpoint;

use crate::peer::{Peer, State};
use crate::session::{HELLO, VERSION};

/// How long an observation stays valid.
const FRESH: Duration = Duration::from_secs(10);

/// The latest observations of a tunnel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// This host's own address on the TUN device.
    own: Option<Ipv4Addr>,
    /// A hello that matches no key here: when, from where, in which version.
    caller: Option<(Instant, Endpoint, u8)>,
    /// For each peer, the source of a packet that is not in the peer's networks.
    foreign: Vec<Option<(Instant, IpAddr)>>,
}

impl Hints {
    pub fn new(own: Option<Ipv4Addr>, peers: usize) -> Hints {
        Hints {
            own,
            caller: None,
            foreign: vec![None; peers],
        }
    }

    /// Notes a datagram that belongs to no peer, if it is a hello.
    pub fn unknown_caller(&mut self, now: Instant, from: Endpoint, datagram: &[u8]) {
        if let [HELLO, version, ..] = *datagram {
            self.caller = Some((now, from, version));
        }
    }

    /// Notes a packet of a peer whose source is not in the peer's networks.
    pub fn foreign(&mut self, now: Instant, peer: usize, source: IpAddr) {
        if let Some(seen) = self.foreign.get_mut(peer) {
            *seen = Some((now, source));
        }
    }

    /// A hint on what to do, if an observation explains the peer's present state.
    pub fn of(&self, now: Instant, number: usize, peer: &Peer) -> Option<String> {
        let fresh = |at: Instant| now.saturating_since(at) < FRESH;
        let name = &peer.config().name;
        match peer.state(now) {
            State::Waiting | State::Calling => {
                let (_, from, version) = self.caller.filter(|seen| fresh(seen.0))?;
                let here = peer.endpoint().is_none_or(|at| same_host(at, from));
                here.then(|| match version {
                    VERSION => format!(
                        "{from} sends hellos with an unknown key: give {name} and this host the same key file"
                    ),
                    other => format!(
                        "{from} sends hellos of protocol version {other} (this program has version {VERSION}), or with another key: install the same release and the same key file on both hosts"
                    ),
                })
            }
            State::Up | State::Silent | State::Deaf => {
                let (_, source) = (*self.foreign.get(number)?).filter(|seen| fresh(seen.0))?;
                Some(if self.own.map(IpAddr::from) == Some(source) {
                    format!(
                        "packets of {name} have this host's own address {source} as their source and are dropped: give the two hosts different addresses"
                    )
                } else {
                    format!(
                        "packets of {name} have the source {source}, which is not in its `networks`, and are dropped: add it to `networks`, or correct the address on the other host"
                    )
                })
            }
        }
    }
}

/// Address translators may change the port, so only the host is compared.
fn same_host(a: Endpoint, b: Endpoint) -> bool {
    match (a, b) {
        (Endpoint::Udp(a), Endpoint::Udp(b)) => a.ip() == b.ip(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerConfig;
    use crate::session::Key;
    use chappe_wildnet::Service;

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::Udp(text.parse().unwrap())
    }

    fn peer(at: Option<&str>) -> Peer {
        let config = PeerConfig {
            name: "hill".into(),
            key: Key::new([1; 32]),
            endpoint: at.map(endpoint),
            networks: Vec::new(),
            datagram_max: 1472,
            below: 42,
            rate: None,
            services: [Service::RELIABLE; 4],
            queue: Duration::from_millis(100),
        };
        Peer::new(config, 0, 1, Box::new(|| 4)).unwrap()
    }

    /// Goal: a hello with an unknown key is reported at the peer that it seems to come from, for ten seconds: the peer with
    /// its address, whatever the port, or one without an address; and at no other peer.
    #[test]
    fn a_hello_with_an_unknown_key_is_reported() {
        let mut hints = Hints::new(None, 1);
        let now = Instant::ZERO + Duration::from_secs(20);
        hints.unknown_caller(now, endpoint("192.0.2.7:9"), &[7, VERSION]);
        let (here, there) = (peer(Some("192.0.2.7:1795")), peer(Some("192.0.2.8:1795")));
        assert_eq!(hints.of(now, 0, &here), None, "not a hello");
        hints.unknown_caller(now, endpoint("192.0.2.7:9"), &[HELLO, VERSION]);
        assert!(hints.of(now, 0, &here).unwrap().contains("the same key"));
        assert!(hints.of(now, 0, &peer(None)).is_some());
        assert_eq!(hints.of(now, 0, &there), None);
        let later = now + FRESH;
        assert_eq!(hints.of(later, 0, &here), None);
        hints.unknown_caller(later, endpoint("192.0.2.7:9"), &[HELLO, VERSION + 1]);
        assert!(hints.of(later, 0, &here).unwrap().contains("version 4"));
        // A session is needed before packets can be foreign.
        hints.foreign(later, 0, Ipv4Addr::LOCALHOST.into());
        assert!(hints.of(later, 0, &here).unwrap().contains("version"));
    }
}
