//! The peers of a tunnel, which may change while it runs.

use chappe_session::{Gate, Public};
use chappe_sys::{Endpoint, Error, Links};
use chappe_wildnet::Memory;

use super::host::Host;
use super::{Coverage, Place, Routes, Tunnel};
use crate::classify::Net;
use crate::peer::{Peer, PeerConfig};

impl Place {
    pub(super) fn new(
        config: PeerConfig,
        (gate, memory): (&Gate, &Memory),
        number: usize,
    ) -> chappe_sys::Result<Place> {
        let name = config.name.clone();
        // A peer that is removed and added again has lost its memory, as after a restart.
        let life = chappe_sys::random_u64()?;
        let peer = Peer::new(config, gate, number, life, chappe_sys::random_key()?);
        let failed = |error| Error::unusable(&format!("set up the peer {name}"), &error);
        let mut peer = peer.map_err(failed)?;
        peer.share_memory(memory);
        Ok(Place {
            peer,
            coverage: Coverage::default(),
            sockets: Vec::new(),
        })
    }
}

impl crate::introduction::Peers for Tunnel {
    fn place_of_key(&self, key: &Public) -> Option<usize> {
        self.keys.get(key).copied()
    }

    fn peer_at(&mut self, place: usize) -> Option<&mut Peer> {
        let peer = &mut self.places.get_mut(place)?.as_mut()?.peer;
        self.turns.touch(place);
        Some(peer)
    }
}

impl Tunnel {
    /// The peers, in the order of their places.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.places.iter().flatten().map(|place| &place.peer)
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        let named = |place: &Option<Place>| {
            place
                .as_ref()
                .is_some_and(|place| place.peer.config().name == name)
        };
        self.places.iter().position(named)
    }

    /// The peer `name`, to change its services or its rate.
    pub fn peer_mut(&mut self, name: &str) -> Option<&mut Peer> {
        let number = self.place_of(name)?;
        self.turns.touch(number);
        let place = self.places.get_mut(number)?.as_mut()?;
        Some(&mut place.peer)
    }

    /// Adds a peer while the tunnel runs, with a route to its networks. Fails if it cannot be set up, or if there are too many.
    pub fn add_peer(&mut self, config: PeerConfig) -> chappe_sys::Result<()> {
        let free = self.places.iter().position(Option::is_none);
        let number = free.unwrap_or(self.places.len());
        if number >= crate::PEERS_MAX {
            let why = format!("a process has at most {} peers", crate::PEERS_MAX);
            return Err(Error::invalid(
                format!("add the peer {}", config.name),
                &why,
            ));
        }
        let place = Place::new(config, (&self.gate, &self.memory), number)?;
        match self.places.get_mut(number) {
            Some(free) => *free = Some(place),
            None => self.places.push(Some(place)),
        }
        self.note_peers()
    }

    /// Removes a peer with what is queued for it, and the routes to its networks.
    pub fn remove_peer(&mut self, name: &str) -> chappe_sys::Result<()> {
        if let Some(number) = self.place_of(name) {
            if let Some(place) = self.places.get_mut(number) {
                *place = None;
            }
            self.turns.set(number, None);
            if let Host::Streams(streams) = &mut self.host {
                streams.forget(number, &self.events);
            }
        }
        self.note_peers()
    }

    /// Replaces the networks of a peer, and their routes.
    pub fn set_networks(&mut self, name: &str, networks: Vec<Net>) -> chappe_sys::Result<()> {
        if let Some(peer) = self.peer_mut(name) {
            peer.set_networks(networks);
        }
        self.note_peers()
    }

    /// Sets where a peer is called on a path from now on. A peer that is up moves there with its next call.
    pub fn set_endpoint(&mut self, name: &str, path: usize, to: Option<Endpoint>) {
        if let Some(peer) = self.peer_mut(name) {
            match path {
                0 => peer.set_endpoint(to),
                _ => peer.set_endpoint_of(path, to),
            }
        }
    }

    /// Sets the distance of a peer in metres, by which its radio is judged.
    pub fn set_distance(&mut self, name: &str, metres: Option<f64>) {
        let place = self
            .place_of(name)
            .and_then(|number| self.places.get_mut(number));
        if let Some(Some(place)) = place {
            place.coverage.distance = metres;
        }
    }

    /// Whether this host tells its peers of each other when they ask.
    pub fn set_introduces(&mut self, on: bool) {
        self.introduces = on;
    }

    /// Sets the peer `by` that is asked where the peer `name` is, while that does not answer.
    pub fn set_introducer(&mut self, name: &str, by: Option<&str>) {
        let by = by.and_then(|by| Some(self.peer_mut(by)?.config().public));
        if let Some(peer) = self.peer_mut(name) {
            peer.set_introducer(by);
        }
    }

    /// Whether SIGHUP has arrived since the last call.
    pub fn take_reload(&mut self) -> bool {
        std::mem::take(&mut self.asked_to_reload)
    }

    /// Brings keys, routes and turns up to date with the peers.
    pub(super) fn note_peers(&mut self) -> chappe_sys::Result<()> {
        let places = || {
            let places = self.places.iter().enumerate();
            places.filter_map(|(number, place)| Some((number, &place.as_ref()?.peer)))
        };
        self.keys = places()
            .map(|(number, peer)| (peer.config().public, number))
            .collect();
        let nets = places()
            .flat_map(|(number, peer)| peer.config().networks.iter().map(move |net| (net, number)));
        self.routes = Routes::new(nets);
        let wanted: Vec<Net> = places()
            .flat_map(|(_, peer)| peer.config().networks.clone())
            .collect();
        let numbers: Vec<usize> = places().map(|(number, _)| number).collect();
        for number in numbers {
            self.turns.touch(number);
            if let Some(Some(place)) = self.places.get_mut(number) {
                let paths = &place.peer.config().paths;
                let through = paths.iter().map(|path| path.interface.as_deref());
                place.sockets = through.map(|name| self.sockets.through(name)).collect();
            }
        }
        self.sockets.refresh(&self.carrier, &self.events)?;
        self.install(wanted)
    }

    /// Installs the routes to these networks through the device, and removes those to others.
    fn install(&mut self, wanted: Vec<Net>) -> chappe_sys::Result<()> {
        if !self.installs {
            return Ok(());
        }
        let links = Links::open()?;
        let device = self.host.name();
        for gone in self.installed.iter().filter(|net| !wanted.contains(net)) {
            // Somebody may have removed it by hand.
            let _ = links.remove_route_to(device, gone.address, gone.prefix);
        }
        let mut installed: Vec<Net> = Vec::new();
        for net in wanted {
            if !installed.contains(&net) {
                links.add_route_to(device, net.address, net.prefix)?;
                installed.push(net);
            }
        }
        self.installed = installed;
        Ok(())
    }
}
