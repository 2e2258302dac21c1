//! The configuration of a driver, and how its runs end.

use chappe_core::{Bitrate, Duration};
use chappe_sys::Signal;

use crate::confirm::Retries;
use crate::hello::Hellos;
use crate::loss::Loss;
use crate::membership::Membership;
use crate::pace::Pace;

/// How to drive a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The members of the group, and this node's key.
    pub membership: Membership,
    /// The intervals between hellos.
    pub hellos: Hellos,
    /// The limit on the rate of outgoing frames.
    pub pace: Pace,
    /// The rate of the channel, if all neighbours share one, as radios do. Hellos that answer or echo then keep to a twentieth of it.
    /// Default: each host has a channel of its own.
    pub shared: Option<Bitrate>,
    /// How often the driver repeats an unconfirmed unicast frame.
    pub retries: Retries,
    /// Whether handshakes and keys leave as broadcasts, which a card sends once. The driver repeats them in either case. A card that
    /// recovers unicasts doubles its back-off for a neighbour that hardly hears it, and all other frames wait behind. Default: no.
    pub keys_as_broadcasts: bool,
    /// Received frames to drop at random, for tests. Default: none.
    pub loss: Option<Loss>,
    /// Whether SIGINT and SIGTERM end [`Live::run`](crate::Live::run). Default: yes.
    pub signals: bool,
    /// Whether SIGHUP does, too. Default: no.
    pub reload: bool,
    /// The longest time between two calls of the application. Default 250 ms.
    pub observe_every: Duration,
}

impl Config {
    /// The defaults. Pace and membership have none: no pace suits all links, and no frame leaves unsealed.
    pub fn new(pace: Pace, membership: Membership) -> Config {
        Config {
            membership,
            hellos: Hellos::default(),
            pace,
            shared: None,
            retries: Retries::default(),
            keys_as_broadcasts: false,
            loss: None,
            signals: true,
            reload: false,
            observe_every: Duration::from_millis(250),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The application's closure broke the loop.
    Asked,
    /// SIGINT or SIGTERM arrived, or SIGHUP where it is asked for.
    Signal(Signal),
}
