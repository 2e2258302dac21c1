//! What a changed file changes in a running link.

use std::fmt::Write;

use chappe_link::{Peer, PeerConfig, Tunnel};
use chappe_wildnet::Service;

use crate::command::link::file::{Configuration, Entry};

/// Applies the differences between two configurations and says what they are. Changed services come with their cost.
pub fn apply(tunnel: &mut Tunnel, before: &Configuration, after: &Configuration) -> String {
    let mut said = String::new();
    if before.tunnel != after.tunnel
        || (&before.metrics, &before.status) != (&after.metrics, &after.status)
    {
        said += "[link], ports, SOCKS and services take effect after a restart of the link\n";
    }
    for gone in &before.peers {
        if !after.peers.iter().any(|peer| same(peer, gone)) {
            remove(tunnel, gone, &mut said);
        }
    }
    for peer in &after.peers {
        match before.peers.iter().find(|old| same(peer, old)) {
            Some(old) => change(tunnel, old, peer, &mut said),
            None => add(tunnel, peer, &mut said),
        }
        tunnel.set_distance(&peer.config.name, peer.distance);
    }
    introduce(tunnel, after);
    match said.is_empty() {
        true => "nothing has changed\n".into(),
        false => said,
    }
}

/// Tells the tunnel who introduces whom.
pub fn introduce(tunnel: &mut Tunnel, now: &Configuration) {
    tunnel.set_introduces(now.introduces);
    for peer in &now.peers {
        tunnel.set_introducer(&peer.config.name, peer.introducer.as_deref());
    }
}

/// Whether a running peer can take the other's settings. With another key or frame size, or paths through other interfaces, it is
/// another peer.
fn same(a: &Entry, b: &Entry) -> bool {
    let identity = |entry: &Entry| {
        let PeerConfig {
            name,
            public,
            psk,
            datagram_max,
            below,
            paths,
            ..
        } = &entry.config;
        let paths: Vec<_> = (paths.iter())
            .map(|path| (path.interface.clone(), path.below))
            .collect();
        (
            name.clone(),
            *public,
            psk.clone(),
            *datagram_max,
            *below,
            paths,
        )
    };
    identity(a) == identity(b)
}

fn remove(tunnel: &mut Tunnel, gone: &Entry, said: &mut String) {
    let name = &gone.config.name;
    let _ = match tunnel.remove_peer(name) {
        Ok(()) => writeln!(said, "{name}: removed"),
        Err(error) => writeln!(said, "{name}: removed, but {error}"),
    };
}

fn add(tunnel: &mut Tunnel, peer: &Entry, said: &mut String) {
    let name = &peer.config.name;
    let _ = match tunnel.add_peer(peer.config.clone()) {
        Ok(()) => writeln!(said, "{name}: added"),
        Err(error) => writeln!(said, "{name}: {error}"),
    };
}

fn change(tunnel: &mut Tunnel, old: &Entry, new: &Entry, said: &mut String) {
    let name = &new.config.name;
    let (old_config, config) = (&old.config, &new.config);
    if config.endpoint != old_config.endpoint {
        tunnel.set_endpoint(name, 0, config.endpoint);
        let _ = match config.endpoint {
            Some(to) => writeln!(said, "{name}: called at {to}"),
            None => writeln!(said, "{name}: no longer called"),
        };
    }
    if old.host != new.host
        && let Some((host, port)) = &new.host
    {
        let _ = writeln!(said, "{name}: called at {host}:{port}");
    }
    if config.networks != old_config.networks {
        let _ = match tunnel.set_networks(name, config.networks.clone()) {
            Ok(()) => writeln!(said, "{name}: other networks"),
            Err(error) => writeln!(said, "{name}: other networks, but {error}"),
        };
    }
    let Some(peer) = tunnel.peer_mut(name) else {
        return;
    };
    if config.keepalive != old_config.keepalive {
        peer.set_keepalive(config.keepalive);
        let seconds = config.keepalive.as_secs_f64();
        let _ = writeln!(said, "{name}: a keepalive every {seconds} s");
    }
    if config.paths != old_config.paths {
        peer.set_paths(config.paths.clone());
        let _ = writeln!(said, "{name}: other paths");
    }
    if config.rate != peer.config().rate {
        peer.set_rate(config.rate);
        let _ = match config.rate {
            Some(rate) => writeln!(said, "{name}: a rate of {:.2} Mbit/s", rate.0 as f64 / 1e6),
            None => writeln!(said, "{name}: the rate is measured from now on"),
        };
    }
    for (class, service) in config.services.into_iter().enumerate() {
        if service != peer.config().services[class] {
            // The classes after the second have the service of the second.
            if class < 2 {
                *said += &announcement(peer, class, &service);
            }
            peer.set_service(class, service);
        }
    }
    if old.introducer != new.introducer {
        let _ = match &new.introducer {
            Some(by) => writeln!(said, "{name}: introduced by {by}"),
            None => writeln!(said, "{name}: no introducer any more"),
        };
    }
    if old.hooks != new.hooks {
        let _ = writeln!(said, "{name}: other hooks");
    }
}

fn announcement(peer: &Peer, class: usize, service: &Service) -> String {
    let predicted = peer.link().predict(service);
    format!(
        "{}, {}: with losses as they are now, overhead {:.1} % (bound {:.1} %), late or lost {:.3} %\n",
        peer.name(),
        if class == 0 { "urgent" } else { "bulk" },
        predicted.overhead * 100.0,
        predicted.bound * 100.0,
        predicted.residual * 100.0
    )
}
