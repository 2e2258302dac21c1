//! What is seen beside the sessions and explains why one does not come up, or why packets are not used.

use std::net::{IpAddr, Ipv4Addr};

use chappe_core::{Duration, Instant};
use chappe_sys::Endpoint;

use crate::peer::{Peer, State};
use crate::session::{HELLO, VERSION};

/// How long what was seen counts.
const FRESH: Duration = Duration::from_secs(10);

/// What was seen lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// This end's own address in the link.
    own: Option<Ipv4Addr>,
    /// A hello that no key here fits: when, from where, in which version.
    caller: Option<(Instant, Endpoint, u8)>,
    /// For each peer: a packet of it whose source is not behind it.
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

    /// A datagram came that belongs to no peer.
    pub fn stranger(&mut self, now: Instant, from: Endpoint, datagram: &[u8]) {
        if let [HELLO, version, ..] = *datagram {
            self.caller = Some((now, from, version));
        }
    }

    /// A packet of a peer had a source that is not behind it.
    pub fn foreign(&mut self, now: Instant, peer: usize, source: IpAddr) {
        if let Some(seen) = self.foreign.get_mut(peer) {
            *seen = Some((now, source));
        }
    }

    /// A sentence that says what to do, if something was seen that has to do with a peer in its present state.
    pub fn of(&self, now: Instant, number: usize, peer: &Peer) -> Option<String> {
        let fresh = |at: Instant| now.saturating_since(at) < FRESH;
        let name = &peer.config().name;
        match peer.state(now) {
            State::Waiting | State::Calling => {
                let (_, from, version) = self.caller.filter(|seen| fresh(seen.0))?;
                let here = peer.endpoint().is_none_or(|at| same_host(at, from));
                here.then(|| match version {
                    VERSION => format!(
                        "{from} calls with a key that is not here: {name} and this end need the same key file"
                    ),
                    other => format!(
                        "{from} calls in version {other} of the link, this program has version {VERSION}, or with another key: install the same release and the same key file on both"
                    ),
                })
            }
            State::Up | State::Silent | State::Deaf => {
                let (_, source) = (*self.foreign.get(number)?).filter(|seen| fresh(seen.0))?;
                Some(if self.own.map(IpAddr::from) == Some(source) {
                    format!(
                        "packets of {name} come from {source}, which is this end's own address, and are thrown away: give the two ends different ones"
                    )
                } else {
                    format!(
                        "packets of {name} come from {source}, which is not in its `networks`, and are thrown away: add it there, or mend the address at the other end"
                    )
                })
            }
        }
    }
}

/// Translators change ports, not hosts.
fn same_host(a: Endpoint, b: Endpoint) -> bool {
    match (a, b) {
        (Endpoint::Udp(a), Endpoint::Udp(b)) => a.ip() == b.ip(),
        (a, b) => a == b,
    }
}
