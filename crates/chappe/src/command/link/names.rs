//! Endpoints that are names: looked up beside the loop, again while the peer does not answer, one address after the other.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use chappe_core::{Duration, Instant};
use chappe_link::{State, Tunnel};
use chappe_sys::Endpoint;

use super::file::Entry;

/// How long an address is tried before the next one is.
const TRY: Duration = Duration::from_secs(4);
/// How often a name is looked up while its peer does not answer.
const AGAIN: Duration = Duration::from_secs(20);

/// A peer and the number of its path.
type Place = (String, usize);

type Answer = (Place, String, Result<Vec<SocketAddr>, String>);

/// The names of peers and what is known of them.
pub struct Names {
    hosts: BTreeMap<Place, Name>,
    /// What a peer had before its names are set anew.
    before: BTreeMap<Place, Name>,
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
            before: BTreeMap::new(),
            answers,
            answer,
            reaches,
        }
    }

    /// Sets the names of all endpoints of a peer.
    pub fn set_all(&mut self, peer: &Entry) {
        self.forget(&peer.config.name);
        let mut paths = peer.path_hosts.clone();
        if paths.is_empty() {
            paths.push(peer.host.clone());
        }
        for (path, host) in paths.into_iter().enumerate() {
            if let Some(host) = host {
                self.set((peer.config.name.clone(), path), host);
            }
        }
        self.before.clear();
    }

    /// Forgets a peer, but for what is known of names that come again.
    pub fn forget(&mut self, peer: &str) {
        let kept = self.hosts.extract_if(.., |place, _| place.0 == peer);
        self.before = kept.collect();
    }

    fn set(&mut self, place: Place, host: (String, u16)) {
        if let Some(known) = self
            .before
            .remove(&place)
            .filter(|known| known.host == host)
        {
            self.hosts.insert(place, known);
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
        self.hosts.insert(place, fresh);
    }

    /// Asks, and passes on what was answered. Returns what to tell the user.
    pub fn turn(&mut self, tunnel: &mut Tunnel, now: Instant) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok((place, host, answer)) = self.answers.try_recv() {
            let peer = &place.0;
            let Some(name) = self
                .hosts
                .get_mut(&place)
                .filter(|name| name.host.0 == host)
            else {
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
        let states: BTreeMap<Place, State> = (tunnel.peers())
            .flat_map(|peer| (0..peer.paths()).map(move |path| (peer, path)))
            .map(|(peer, path)| ((peer.name().to_owned(), path), peer.state_of(now, path)))
            .collect();
        for (place, name) in &mut self.hosts {
            if states.get(place).is_none_or(|state| *state == State::Up) {
                // It works: a later silence begins with a look-up, since the name may have moved.
                name.ask_at = name.ask_at.min(now);
                continue;
            }
            if !name.asked && now >= name.ask_at {
                name.asked = true;
                ask(place.clone(), name.host.clone(), self.answer.clone());
            }
            if now >= name.try_at && !name.addresses.is_empty() {
                let address = name.addresses[name.next % name.addresses.len()];
                (name.next, name.try_at) = (name.next + 1, now + TRY);
                tunnel.set_endpoint(&place.0, place.1, Some(Endpoint::Udp(address)));
            }
        }
        told
    }
}

/// Looks a name up on a thread of its own, since that may take long.
fn ask(place: Place, (host, port): (String, u16), answer: Sender<Answer>) {
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        let found = found
            .map(Iterator::collect)
            .map_err(|error| error.to_string());
        // Nobody listens any more if the link has ended.
        let _ = answer.send((place, host, found));
    });
}
