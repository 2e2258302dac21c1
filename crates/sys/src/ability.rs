//! What this machine can do, tried out: for `chappe doctor`, and for tests that skip.
//!
//! Nothing is left behind by trying. What needs an interface is tried on the loopback interface.

use std::net::Ipv4Addr;

use crate::error::Error;
use crate::namespace::user_namespace_obstacle;
use crate::tun::{Kind, Tun};
use crate::udp::Group;
use crate::{Interface, packet, raw, udp};

/// One ability: whether this machine and user have it, why, and what to do if not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// What it is: "packet sockets".
    pub name: &'static str,
    /// What Chappe needs it for.
    pub purpose: &'static str,
    /// Whether it is there.
    pub there: bool,
    /// What was tried, and what the operating system said.
    pub reason: String,
    /// What to do, where it is not there and that is known.
    pub remedy: Option<String>,
}

/// All abilities.
pub fn all() -> Vec<Ability> {
    vec![
        udp_broadcast(),
        packet_sockets(),
        tun(),
        network_namespaces(),
        user_namespaces(),
    ]
}

/// Whether this user can send and hear UDP broadcasts on one interface.
pub fn udp_broadcast() -> Ability {
    let tried = Interface::find("lo")
        .and_then(|lo| udp::open(&lo, 0, Group::Ipv4(Ipv4Addr::new(224, 0, 0, 251))));
    told(
        "UDP broadcast",
        "protocols on real interfaces",
        "a socket was bound to the loopback interface and joined a group",
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
        "one was opened on the loopback interface",
        Interface::find("lo").and_then(open).map(drop),
    )
}

/// Whether this user can create TUN and TAP devices.
pub fn tun() -> Ability {
    told(
        "TUN and TAP devices",
        "carrying the host's own packets",
        "a TUN device was created and removed",
        Tun::create("chappe%d", Kind::Tun).map(drop),
    )
}

/// Whether this user can create network namespaces as it is.
pub fn network_namespaces() -> Ability {
    let tried = raw::unshare_in_child(false, true).map_err(|error| {
        Error::new("create a network namespace", error)
            .remedy("run as root, or rely on user namespaces")
    });
    told(
        "network namespaces",
        "the emulator, without user namespaces",
        "a child process created one",
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
        "a child process created one with a network namespace in it",
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

    /// Goal: no probe panics or contradicts itself, whatever this machine allows; nothing stays behind.
    #[test]
    fn every_ability_has_a_reason() {
        for ability in all() {
            println!("{ability:?}");
            assert!(!ability.reason.is_empty());
            assert!(!(ability.there && ability.remedy.is_some()));
        }
        assert!(Interface::find("chappe0").is_err());
    }
}
