//! Observations outside of sessions that explain why a session does not come up or packets are dropped.

use std::net::IpAddr;

use chappe_core::{Duration, Instant};
use chappe_session::Public;
use chappe_sys::Endpoint;

use crate::peer::{Peer, State};

/// How long an observation stays valid.
const FRESH: Duration = Duration::from_secs(10);

/// The latest observations of a tunnel. Each comes from a host that has shown that it holds a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// This host's own addresses on the TUN device.
    own: Vec<IpAddr>,
    /// A call by a key that is no peer's here: when, from where, which.
    caller: Option<(Instant, Endpoint, Public)>,
    /// A packet whose source is not in its peer's networks: when, which peer, which source.
    foreign: Option<(Instant, String, IpAddr)>,
}

impl Hints {
    pub fn new(own: Vec<IpAddr>) -> Hints {
        Hints {
            own,
            ..Hints::default()
        }
    }

    /// Notes a call by a key that is no peer's.
    pub fn unknown_caller(&mut self, now: Instant, from: Endpoint, key: Public) {
        self.caller = Some((now, from, key));
    }

    /// Notes a packet of a peer whose source is not in the peer's networks.
    pub fn foreign(&mut self, now: Instant, peer: &str, source: IpAddr) {
        self.foreign = Some((now, peer.to_owned(), source));
    }

    /// A hint on what to do, if an observation explains the peer's present state.
    pub fn of(&self, now: Instant, peer: &Peer) -> Option<String> {
        let fresh = |at: Instant| now.saturating_since(at) < FRESH;
        let name = peer.name();
        match peer.state(now) {
            State::Waiting | State::Calling => {
                let (_, from, key) = self.caller.filter(|seen| fresh(seen.0))?;
                let here = peer.endpoint().is_none_or(|at| same_host(at, from));
                here.then(|| {
                    format!(
                        "{from} calls with the public key {key}, which is no peer's here: if it is {name}, write it as its `public_key`"
                    )
                })
            }
            State::Up | State::Silent | State::Deaf => {
                let (_, _, source) = self
                    .foreign
                    .as_ref()
                    .filter(|seen| fresh(seen.0) && seen.1 == name)?;
                Some(if self.own.contains(source) {
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
    use crate::peer::tests::lone;
    use std::net::Ipv4Addr;

    fn endpoint(text: &str) -> Endpoint {
        Endpoint::Udp(text.parse().unwrap())
    }

    /// Goal: a call by an unknown key is reported with that key at the peer that it seems to come from, for ten seconds: the
    /// peer with its address, whatever the port, or one without an address; and at no other peer.
    #[test]
    fn a_call_by_an_unknown_key_is_reported() {
        let mut hints = Hints::new(Vec::new());
        let now = Instant::ZERO + Duration::from_secs(20);
        let key = Public::new([7; 32]);
        let peer = |at: Option<&str>| lone(at.map(endpoint));
        let (here, there) = (peer(Some("192.0.2.7:1795")), peer(Some("192.0.2.8:1795")));
        assert_eq!(hints.of(now, &here), None);
        hints.unknown_caller(now, endpoint("192.0.2.7:9"), key);
        assert!(hints.of(now, &here).unwrap().contains(&key.to_string()));
        assert!(hints.of(now, &peer(None)).is_some());
        assert_eq!(hints.of(now, &there), None);
        let later = now + FRESH;
        assert_eq!(hints.of(later, &here), None);
        // A session is needed before packets can be foreign.
        hints.foreign(later, "hill", Ipv4Addr::LOCALHOST.into());
        assert_eq!(hints.of(later, &here), None);
    }
}
