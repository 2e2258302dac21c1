//! Probes of what this machine allows, for `chappe doctor` and for tests that skip.
//!
//! A probe tries the real operation, on the loopback interface if it needs one, and leaves nothing behind.

use std::net::Ipv4Addr;

use crate::error::Error;
use crate::namespace::user_namespace_obstacle;
use crate::tun::{Kind, Tun};
use crate::udp::Group;
use crate::{Interface, packet, raw, udp};

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// Its name, such as "packet sockets".
    pub name: &'static str,
    /// What Chappe needs it for.
    pub purpose: &'static str,
    /// Whether this machine and user have it.
    pub there: bool,
    /// What was tried, or the error if it failed.
    pub reason: String,
    /// How to enable it, if known.
    pub remedy: Option<String>,
}

/// Runs all probes of this module.
pub fn all() -> Vec<Ability> {
    vec![
        udp_broadcast(),
        packet_sockets(),
        tun(),
        network_namespaces(),
        user_namespaces(),
    ]
}

/// Whether this user can send and receive UDP broadcasts on one interface.
pub fn udp_broadcast() -> Ability {
    let tried = Interface::find("lo")
        .and_then(|lo| udp::open(&lo, 0, Group::Ipv4(Ipv4Addr::new(224, 0, 0, 251))));
    told(
        "UDP broadcast",
        "protocols on real interfaces",
        "bound a socket to the loopback interface and joined a group",
        tried.map(drop),
    )
}

/// Whether this user can open packet sockets.
pub fn packet_sockets() -> Ability {
    let open =
        |lo: Interface| packet::open(&lo, packet::LOCAL_EXPERIMENTAL, packet::Framing::Payload);
    told(
        "packet sockets",
        "protocols on interfaces without IP; the emulator",
        "opened one on the loopback interface",
        Interface::find("lo").and_then(open).map(drop),
    )
}

/// Whether this user can create TUN and TAP devices.
pub fn tun() -> Ability {
    told(
        "TUN and TAP devices",
        "carrying the host's own packets",
        "created and removed a TUN device",
        Tun::create("chappe%d", Kind::Tun).map(drop),
    )
}

/// Whether this user can create network namespaces without a user namespace.
pub fn network_namespaces() -> Ability {
    let tried = raw::unshare_in_child(false, true).map_err(|error| {
        Error::new("create a network namespace", error)
            .remedy("run as root, or rely on user namespaces")
    });
    told(
        "network namespaces",
        "the emulator, without user namespaces",
        "created one in a child process",
        tried,
    )
}

/// Whether this user can create a network namespace inside a user namespace, which needs no privilege.
pub fn user_namespaces() -> Ability {
    let tried = raw::unshare_in_child(true, true).map_err(|error| {
        let error = Error::new("create user and network namespaces", error);
        match user_namespace_obstacle() {
            Some((_, remedy)) => error.remedy(remedy),
            None => error,
        }
    });
    let mut ability = told(
        "user namespaces",
        "the emulator without root",
        "created one with a network namespace in a child process",
        tried,
    );
    if let (false, Some((setting, _))) = (ability.there, user_namespace_obstacle()) {
        ability.reason = format!("{} ({setting})", ability.reason);
    }
    ability
}

fn told(
    name: &'static str,
    purpose: &'static str,
    success: &str,
    tried: Result<(), Error>,
) -> Ability {
    let (there, reason, remedy) = match tried {
        Ok(()) => (true, success.to_owned(), None),
        Err(error) => (false, error.cause(), error.advice().map(str::to_owned)),
    };
    Ability {
        name,
        purpose,
        there,
        reason,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no probe panics, contradicts itself or leaves anything behind, whatever this machine allows.
    #[test]
    fn every_missing_ability_has_a_reason() {
        for ability in all() {
            println!("{ability:?}");
            assert!(!ability.reason.is_empty());
            assert!(!(ability.there && ability.remedy.is_some()));
        }
        assert!(Interface::find("chappe0").is_err());
    }
}
