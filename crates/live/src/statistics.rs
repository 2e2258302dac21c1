//! Counters of the driver.

use chappe_core::{DropReason, Drops, Duration};

use crate::neighbours::Neighbour;

/// Counters of one [`Live`](crate::Live). A frame is one of this driver's: an SDU, a confirmation or a hello.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Frames that the kernel took.
    pub frames_sent: u64,
    /// Octets of these frames, without the headers of the layers below.
    pub octets_sent: u64,
    /// SDUs delivered to the node.
    pub frames_received: u64,
    /// Octets of all frames that arrived and opened.
    pub octets_received: u64,
    /// Confirmations sent for received unicast frames.
    pub confirmations_sent: u64,
    /// Unicast frames that the neighbour confirmed.
    pub confirmed: u64,
    /// Repeated transmissions of unicast frames.
    pub retries: u64,
    /// Unicast frames given up: no attempt was confirmed.
    pub given_up: u64,
    /// Times the kernel's queue was full.
    pub queue_full: u64,
    /// Frames lost because this host's receive queue was full.
    pub lost_in_queue: u64,
    /// Frames of neighbours whose receive queue stood.
    pub pressed: u64,
    /// The present rate in bits per second, if the pace is a rate; that of the slowest port.
    pub rate: u64,
    /// The lowest rate since one first fell, and the highest.
    pub rates: (u64, u64),
    /// The neighbour whose path made the present rate fall, if one did: the worst path decides, as its neighbour tells of it.
    pub decider: Option<u16>,
    /// The rate in bits per second that half of the neighbours have let pass.
    pub carried: u64,
    /// Frames the kernel refused.
    pub refused: u64,
    /// The error message of the last refusal.
    pub last_refusal: Option<String>,
    /// Times receiving failed, for example because the interface went down.
    pub receive_errors: u64,
    /// This node's own broadcasts, received back.
    pub echoes: u64,
    /// Times another live node proved itself under this node's number: two nodes have the same number.
    pub address_conflicts: u64,
    /// Times a copy of this running process was heard, and another life began because of it.
    pub copies: u64,
    /// Times a neighbour's hello showed that another member had sent broadcasts in its name, with counters that shut out its own.
    pub rewound: u64,
    /// Hellos of lives that had not yet proved to be alive: newcomers or recordings.
    pub unproved: u64,
    /// Hellos of such lives that brought no answer forward, because too many came.
    pub unanswered: u64,
    /// Sessions with neighbours that were agreed on, renewed ones included.
    pub sessions: u64,
    /// Frames that were longer than the MTU of their interface; among the malformed ones.
    pub too_long: u64,
    /// Frames of the former version, in which all members shared one key.
    pub former: u64,
    /// Pieces of the list of members sent to nodes that have an older one.
    pub notices_sent: u64,
    /// A newer list of members that has arrived since the last call of the application. Its signature is not checked.
    pub notice: Option<Vec<u8>>,
    /// Whether a descriptor that the application [watches](crate::Live::watch) may be readable: one was at this wake-up, or no wake-up has
    /// been yet. To read it at every frame would cost a call of the system each.
    pub watched: bool,
    /// Hellos this node sent.
    pub hellos_sent: u64,
    /// The neighbours and the delivery ratios, refreshed before each call of the application.
    pub neighbours: Vec<Neighbour>,
    /// The random number of this node's life; it changes with each restart.
    pub life: u64,
    /// Frames dropped by [`Loss`](crate::Loss).
    pub injected_losses: u64,
    /// All other dropped frames, by reason.
    pub drops: Drops,
    /// The longest delay with which the driver fired a timer of its node.
    pub latest: Duration,
    /// How long the process stood still: stopped, or not run by its host. The node's time does not include it.
    pub still: Duration,
}

impl Statistics {
    /// The number of frames dropped for this reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.drops.of(why)
    }
}
