//! One path to a peer: an uplink of this host, with a session, an address and a pace of its own.

use chappe_core::{Bitrate, Duration, Instant};
use chappe_session::{Gate, Sessions};
use chappe_sys::Endpoint;
use chappe_wildnet::PATHS;

use super::PeerConfig;
use crate::pace::Pace;
use crate::path_mtu::PathMtu;

/// The configuration of one path to a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// Its name in messages and in the status.
    pub name: String,
    /// The peer's address on it. Without one, the peer must call first.
    pub endpoint: Option<Endpoint>,
    /// The interface that its datagrams leave through, whatever the routes say; `None`: as the routes say.
    pub interface: Option<String>,
    /// Octets that the layers below add to a datagram on the medium.
    pub below: usize,
    /// The rate of the medium; `None` to find it from the path's delay.
    pub rate: Option<Bitrate>,
    /// How much later packets may arrive so that this path is spared: it is used for what would wait longer on the others.
    pub cost: Duration,
    /// Whether it is used only while no other path works.
    pub reserve: bool,
}

impl PathConfig {
    /// A path that the peer has called on and that is not configured here.
    pub(super) fn learned(number: usize, below: usize) -> PathConfig {
        PathConfig {
            name: format!("path{number}"),
            endpoint: None,
            interface: None,
            below,
            rate: None,
            cost: Duration::ZERO,
            reserve: false,
        }
    }
}

/// The state of one path.
pub(super) struct Path {
    pub config: PathConfig,
    /// Whether the peer's calls say how it is to be used.
    pub learned: bool,
    /// Keys, calls and sealed frames.
    pub sessions: Sessions<Endpoint>,
    pub endpoint: Option<Endpoint>,
    pub pace: Pace,
    pub path_mtu: PathMtu,
    pub heard_at: Instant,
    pub sent_at: Instant,
    /// When the first frame left that the peer should have reported by now; `None` if nothing waits for a report.
    pub asked_at: Option<Instant>,
    /// When to send a frame that proves a new session to the peer, or confirms it, and how long to wait before the next one;
    /// `None` once a frame has come.
    pub prove_at: Option<(Instant, Duration)>,
    /// Whether its MTU is known well enough to carry bodies; and the body before which longer ones may be open.
    pub sized: bool,
    pub drain: Option<u32>,
    /// Octets sent on it, with the headers of the layers below, and datagrams received.
    pub octets_sent: u64,
    pub datagrams_received: u64,
    /// Octets of them, with the headers of the layers below.
    pub octets_received: u64,
}

impl Path {
    /// Path `path` to peer `number`. `seed` is 32 unpredictable octets.
    pub fn new(
        (peer, config): (&PeerConfig, PathConfig),
        gate: &Gate,
        (number, path): (usize, usize),
        seed: [u8; 32],
    ) -> Path {
        let place = number * PATHS + path;
        Path {
            learned: false,
            sessions: Sessions::new(gate, peer.public, peer.psk.clone(), place as u32, seed),
            endpoint: config.endpoint,
            pace: Pace::new(config.rate, peer.datagram_max + config.below),
            path_mtu: PathMtu::new(peer.datagram_max),
            heard_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            asked_at: None,
            prove_at: None,
            sized: false,
            drain: None,
            octets_sent: 0,
            datagrams_received: 0,
            octets_received: 0,
            config,
        }
    }

    /// How long the peer has owed a sign of life. `keepalive`: how often it promised one.
    pub fn silence(&self, now: Instant, keepalive: Duration) -> Duration {
        let owed = self.asked_at.map(|at| now.saturating_since(at));
        let idle = now.saturating_since(self.heard_at);
        owed.unwrap_or_default()
            .max(idle.saturating_sub(keepalive + keepalive))
    }

    pub fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.asked_at = None;
    }
}

/// The number of the peer and of its path that a session's place stands for.
pub(crate) fn of_place(place: usize) -> (usize, usize) {
    (place / PATHS, place % PATHS)
}
