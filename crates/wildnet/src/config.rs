//! The settings of a link, each value with its source.

use chappe_core::Duration;

use crate::header::{self, PARTS_BELOW};

/// Number of traffic classes on one link. Class 0 is the most urgent.
pub const SERVICES: usize = 4;
/// Number of flows on one link that keep their own order.
pub const FLOWS: usize = 64;
/// Most places of a window. The base in a frame is at most 65,535 behind its number, and a handshake says the window in 16 bits.
pub(crate) const WINDOW_MOST: usize = 1 << 16;
/// Most octets of copies in a frame ([`Config::copies`]).
pub(crate) const COPIES_MOST: usize = 256;

/// The order in which packets leave the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order in which they were offered to the link, all flows together.
    Link,
    /// The order in which they were offered within their flow: a missing packet holds up only its own flow.
    Flow,
    /// The order in which they arrive.
    None,
}

//= wildnet 3.4: delay, loss and order are chosen for each kind of traffic
/// What one class of traffic is promised: order, delay and loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// The order in which packets leave the receiver.
    pub order: Order,
    /// Time within which a packet should arrive. It counts from the offer if late packets are dropped, otherwise from the first
    /// transmission: then a full queue is no reason to hurry. In slots it includes the way to the peer. Elsewhere the measured
    /// least one-way delay comes on top: only queues and losses use it up, and a long path does not. `None`: no deadline.
    pub deadline: Option<Duration>,
    /// Where rounds are measured: the deadline is at least this many of them, since with fewer the redundancy that meets it costs
    /// more than repetition. 0 where it is to be met whatever it costs.
    pub rounds: u8,
    /// Share of packets that may miss the deadline. It determines the redundancy.
    pub residual: f64,
    /// Retransmissions after which a packet is given up; `None`: no limit.
    pub retries: Option<u8>,
    /// Whether a packet is given up once it cannot meet its deadline.
    pub drop_late: bool,
    /// Whether each packet leaves on every path, where there are several: it then arrives by the first of them.
    pub every_path: bool,
}

impl Service {
    /// Everything arrives, in order: for TCP and file transfers. Linux TCP declares a packet lost 200 ms (`TCP_RTO_MIN`) after its
    /// usual round trip, so losses should not delay one for longer.
    pub const RELIABLE: Service = Service {
        order: Order::Flow,
        deadline: Some(Duration::from_millis(200)),
        rounds: 0,
        residual: 1e-2,
        retries: None,
        drop_late: false,
        every_path: false,
    };

    /// The same through a full tunnel, where the usual round trip is 100 ms and more: losses delay hardly any packet for more
    /// than 300 ms. On a long path four rounds may take longer; with them the overhead is within a percent of the bound (specs
    /// 2.2: D = 4), and TCP's timeout, which follows its round trip, has long grown with the path.
    pub const BULK: Service = Service {
        deadline: Some(Duration::from_millis(300)),
        rounds: 4,
        ..Service::RELIABLE
    };

    /// For interactive traffic: a packet arrives soon or not at all, and waits for no other.
    pub const PROMPT: Service = Service {
        order: Order::None,
        deadline: Some(Duration::from_millis(100)),
        rounds: 0,
        residual: 1e-2,
        retries: None,
        drop_late: true,
        every_path: false,
    };

    /// The paper's bulk acknowledgement with at most `limit` retries, in the order of the link.
    pub const fn retries(limit: Option<u8>) -> Service {
        Service {
            order: Order::Link,
            deadline: None,
            rounds: 0,
            residual: 1e-3,
            retries: limit,
            drop_late: false,
            every_path: false,
        }
    }
}

/// How losses are recovered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recovery {
    /// No recovery: nothing is sent twice.
    None,
    /// The paper's bulk acknowledgements alone.
    Acks,
    /// The paper's block code in each slot, alone or with acknowledgements.
    Blocks {
        /// How many repairs a block gets.
        rule: Redundancy,
        /// Whether missing packets are repeated as well.
        repeat: bool,
    },
    /// One controller for redundancy and retransmission ([`policy`](crate::policy)).
    Improved {
        /// Whether repairs fill the time left in a slot.
        fill: bool,
    },
}

/// How many repairs a block of the paper's code gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Redundancy {
    //= wildnet 3.3.2: redundancy follows the measured loss
    /// p / (1 - p) for each packet, p the mean loss of ten slots.
    Mean,
    /// As many as leave at most this share lost, p as before.
    Residual(f64),
    /// `parity` for each `data` packets, whatever the loss, as static tools have it.
    Fixed {
        /// Packets of a group.
        data: u8,
        /// Repairs for each group.
        parity: u8,
    },
}

/// The settings of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Largest frame in octets.
    pub frame_max: usize,
    /// Open bodies for which each end has memory from the start; a power of two.
    ///
    /// Packets per slot times the rounds that the oldest may need: 13 × 8 for 30 % loss and one in a thousand late (specs 4.5).
    pub window: usize,
    /// Open bodies for which there are places at most; a power of two. They double when a long and fast path needs them: a window
    /// must hold what the path holds, once more for each round that the oldest body may need. A shared [`Memory`](crate::Memory) may
    /// allow fewer.
    pub window_max: usize,
    /// Packets that may wait in each class before [`Link::offer`](crate::Link::offer) refuses.
    pub queue: usize,
    /// The method of loss recovery.
    pub recovery: Recovery,
    /// What each class is promised, the most urgent first.
    pub services: [Service; SERVICES],
    /// Octets reserved in full data frames for an acknowledgement; with 0 it gets its own frame where it does not fit.
    pub ack_room: usize,
    /// Longest wait of an acknowledgement for a frame that carries it, half as long while something is missing (RFC 9002 calls
    /// it max_ack_delay). Not used in slots, where every frame carries one.
    pub ack_delay: Duration,
    /// Number of received frames after which an acknowledgement is due without that wait.
    pub ack_every: u16,
    /// Number of later frames that must be acknowledged before a missing one counts as lost (RFC 9002, 6.1.1,
    /// kPacketThreshold): 0 on a link that cannot reorder, 3 on the Internet.
    pub reordering: u32,
    /// Whether several packets of a flow may share a frame.
    pub bundle: bool,
    /// Longest wait of small packets for others to share their frame, except in the most urgent class.
    pub bundle_delay: Duration,
    /// Whether packets of classes in which everything arrives in order are cut where a body is full or a slot ends, and whether a short
    /// body shares its frame with a new one. Only where frames have at most 16384 octets, and those of both ends have the same limit.
    pub fragments: bool,
    /// Most octets of copies of unreported small bodies that a small frame carries where frames are lost; at most 256. 64 hold
    /// the acknowledgements of TCP that leave within some 25 ms.
    pub copies: usize,
    /// Whether the two ends take turns. Then any report settles all frames of this end, and the owner says when a slot
    /// begins ([`Link::begin_slot`](crate::Link::begin_slot)).
    pub turns: bool,
}

impl Config {
    /// For slots on a radio, after specs 4.5: the paper's window, frames of 802.11.
    pub const fn slots() -> Config {
        Config {
            frame_max: 1560,
            window: 256,
            window_max: 256,
            queue: 64,
            recovery: Recovery::Improved { fill: true },
            services: [
                Service::PROMPT,
                Service::RELIABLE,
                Service::RELIABLE,
                Service::RELIABLE,
            ],
            ack_room: 24,
            ack_delay: Duration::ZERO,
            ack_every: 1,
            reordering: 0,
            bundle: false,
            bundle_delay: Duration::ZERO,
            fragments: false,
            copies: 0,
            turns: true,
        }
    }

    /// For two hosts with a network between them: frames of up to `frame_max` octets.
    pub const fn tunnel(frame_max: usize) -> Config {
        Config {
            frame_max,
            window: 1024,
            window_max: WINDOW_MOST,
            queue: 256,
            recovery: Recovery::Improved { fill: false },
            services: [
                Service::PROMPT,
                Service::RELIABLE,
                Service::RELIABLE,
                Service::RELIABLE,
            ],
            ack_room: 0,
            ack_delay: Duration::from_millis(10),
            ack_every: 16,
            reordering: 3,
            bundle: true,
            bundle_delay: Duration::from_millis(8),
            fragments: false,
            copies: 64,
            turns: false,
        }
    }

    /// Largest packet that fits into a frame, with room for a repair of it.
    pub const fn packet_max(&self) -> usize {
        self.body_max()
            .saturating_sub(header::BODY + header::LENGTH)
    }

    /// Octets of the largest body.
    pub(crate) const fn body_max(&self) -> usize {
        let slot = if self.turns { header::SLOT } else { 0 };
        let around = header::FIXED + slot + 2 + COVER_USUAL + self.ack_room;
        self.frame_max.saturating_sub(around)
    }

    /// Checks that the values fit together. [`Link::new`](crate::Link::new) does so too.
    pub fn check(&self) -> Result<(), ConfigError> {
        let share = |service: &Service| service.residual > 0.0 && service.residual <= 1.0;
        if self.packet_max() < 64 || self.frame_max > 1 << 16 {
            Err(ConfigError::FrameMax(self.frame_max))
        } else if !self.window.is_power_of_two() || self.window < 16 {
            Err(ConfigError::Window(self.window))
        } else if !self.window_max.is_power_of_two()
            || self.window_max < self.window
            || self.window_max > WINDOW_MOST
        {
            Err(ConfigError::WindowMax(self.window_max))
        } else if self.queue == 0 {
            Err(ConfigError::Queue)
        } else if self.fragments && self.frame_max > PARTS_BELOW {
            Err(ConfigError::Fragments(self.frame_max))
        } else if self.copies > COPIES_MOST {
            Err(ConfigError::Copies(self.copies))
        } else if !self.services.iter().all(share) {
            Err(ConfigError::Residual)
        } else {
            Ok(())
        }
    }
}

/// Octets of bitmap that a full-sized repair has room for: packets up to 32 numbers apart.
pub(crate) const COVER_USUAL: usize = 4;

/// Why a [`Config`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Frames must hold a packet of 64 octets at least, and be at most 65,536 octets long.
    FrameMax(usize),
    /// The window must be a power of two of at least 16.
    Window(usize),
    /// The largest window must be a power of two from the window to 65,536.
    WindowMax(usize),
    /// The queue must hold at least one packet.
    Queue,
    /// Packets can be cut only where frames have at most 16,384 octets.
    Fragments(usize),
    /// Copies may take 256 octets of a frame at most.
    Copies(usize),
    /// A residual loss must be greater than 0 and at most 1.
    Residual,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ConfigError::FrameMax(len) => write!(
                f,
                "frames of {len} octets: a frame must hold a packet of 64 and be at most 65536 long"
            ),
            ConfigError::Window(packets) => write!(
                f,
                "a window of {packets} packets: it must be a power of two of at least 16"
            ),
            ConfigError::WindowMax(packets) => write!(
                f,
                "a largest window of {packets} packets: it must be a power of two from the window to {WINDOW_MOST}"
            ),
            ConfigError::Fragments(len) => write!(
                f,
                "fragments with frames of {len} octets: at most {PARTS_BELOW}"
            ),
            ConfigError::Copies(octets) => {
                write!(
                    f,
                    "{octets} octets of copies: at most {COPIES_MOST} of a frame"
                )
            }
            ConfigError::Queue => f.write_str("a queue must hold at least one packet"),
            ConfigError::Residual => {
                f.write_str("a residual loss must be greater than 0 and at most 1")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
