//! Endpoints that are names: looked up beside the loop, again while the peer does not answer, one address after the other.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use chappe_core::{Duration, Instant};
use chappe_link::{State, Tunnel};
use chappe_sys::Endpoint;

/// How long an address is tried before the next one is.
const TRY: Duration = Duration::from_secs(4);
/// How often a name is looked up while its peer does not answer.
const AGAIN: Duration = Duration::from_secs(20);

type Answer = (String, String, Result<Vec<SocketAddr>, String>);

/// The names of peers and what is known of them.
pub struct Names {
    hosts: BTreeMap<String, Name>,
    answers: Receiver<Answer>,
    answer: Sender<Answer>,
    reaches: Box<dyn Fn(std::net::IpAddr) -> bool>,
}

struct Name {
    host: (String, u16),
    addresses: Vec<SocketAddr>,
    next: usize,
    try_at: Instant,
    ask_at: Instant,
    asked: bool,
    failed: bool,
}

impl Names {
    /// No names; `reaches` says which addresses the link's socket can reach.
    pub fn new(reaches: Box<dyn Fn(std::net::IpAddr) -> bool>) -> Names {
        let (answer, answers) = channel();
        Names {
            hosts: BTreeMap::new(),
            answers,
            answer,
            reaches,
        }
    }

    /// Sets or removes the name of a peer's endpoint.
    pub fn set(&mut self, peer: &str, host: Option<(String, u16)>) {
        let Some(host) = host else {
            self.hosts.remove(peer);
            return;
        };
        if self.hosts.get(peer).is_some_and(|known| known.host == host) {
            return;
        }
        let fresh = Name {
            host,
            addresses: Vec::new(),
            next: 0,
            try_at: Instant::ZERO,
            ask_at: Instant::ZERO,
            asked: false,
            failed: false,
        };
        self.hosts.insert(peer.to_owned(), fresh);
    }

    /// Asks, and passes on what was answered. Returns what to tell the user.
    pub fn turn(&mut self, tunnel: &mut Tunnel, now: Instant) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok((peer, host, answer)) = self.answers.try_recv() {
            let Some(name) = self.hosts.get_mut(&peer).filter(|name| name.host.0 == host) else {
                continue;
            };
            (name.asked, name.ask_at) = (false, now + AGAIN);
            match answer {
                Ok(mut found) => {
                    found.retain(|address| (self.reaches)(address.ip()));
                    name.failed = false;
                    if name.addresses != found {
                        let shown: Vec<_> = found.iter().map(|one| one.ip().to_string()).collect();
                        told.push(format!("{peer}: {host} is {}", shown.join(" and ")));
                        (name.addresses, name.next, name.try_at) = (found, 0, Instant::ZERO);
                    }
                }
                Err(error) if !name.failed => {
                    name.failed = true;
                    told.push(format!(
                        "{peer}: cannot look up {host}: {error}; trying again"
                    ));
                }
                Err(_) => {}
            }
        }
        let states: BTreeMap<String, State> = (tunnel.peers())
            .map(|peer| (peer.name().to_owned(), peer.state(now)))
            .collect();
        for (peer, name) in &mut self.hosts {
            if states.get(peer).is_none_or(|state| *state == State::Up) {
                // It works: a later silence begins with a look-up, since the name may have moved.
                name.ask_at = name.ask_at.min(now);
                continue;
            }
            if !name.asked && now >= name.ask_at {
                name.asked = true;
                ask(peer.clone(), name.host.clone(), self.answer.clone());
            }
            if now >= name.try_at && !name.addresses.is_empty() {
                let address = name.addresses[name.next % name.addresses.len()];
                (name.next, name.try_at) = (name.next + 1, now + TRY);
                tunnel.set_endpoint(peer, Some(Endpoint::Udp(address)));
            }
        }
        told
    }
}

/// Looks a name up on a thread of its own, since that may take long.
fn ask(peer: String, (host, port): (String, u16), answer: Sender<Answer>) {
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        let found = found
            .map(Iterator::collect)
            .map_err(|error| error.to_string());
        // Nobody listens any more if the link has ended.
        let _ = answer.send((peer, host, found));
    });
}
