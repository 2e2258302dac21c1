//! What decides how a link recovers losses, each value with its source.

use chappe_core::Duration;

use crate::header;

/// Classes of traffic on one link. Class 0 is the most urgent.
pub const SERVICES: usize = 4;
/// Flows that keep their own order on one link.
pub const FLOWS: usize = 64;
/// Most octets of copies in a frame ([`Config::copies`]).
pub(crate) const COPIES_MOST: usize = 256;

/// In which order packets leave the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were offered to the link, all flows together.
    Link,
    /// As they were offered within their flow: a missing packet holds up its own flow only.
    Flow,
    /// As they arrive.
    None,
}

//= wildnet 3.4: delay, loss and order are chosen for each kind of traffic
/// What one class of traffic is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// How packets are ordered at the receiver.
    pub order: Order,
    /// How soon a packet should arrive: after its offer if it is dropped when late, else after its first transmission,
    /// since then a full queue is no reason to hurry. `None`: any time will do.
    pub deadline: Option<Duration>,
    /// Share of packets that may miss the deadline. Rules the redundancy of the last round before it.
    pub residual: f64,
    /// Repetitions after the first transmission, after which a packet is given up; `None`: never by count.
    pub retries: Option<u8>,
    /// Whether a packet is given up once it cannot meet its deadline.
    pub drop_late: bool,
}

impl Service {
    /// Everything arrives, in order: what TCP and file transfers want. Linux TCP takes a
    /// packet for lost 200 ms (`TCP_RTO_MIN`) after its usual round trip; losses should not hold one up for longer.
    pub const RELIABLE: Service = Service {
        order: Order::Flow,
        deadline: Some(Duration::from_millis(200)),
        residual: 1e-2,
        retries: None,
        drop_late: false,
    };

    /// The same through a tunnel that is full, where the usual round trip is 100 ms and more: losses hold hardly any packet
    /// up for more than 300 ms.
    pub const BULK: Service = Service {
        deadline: Some(Duration::from_millis(300)),
        ..Service::RELIABLE
    };

    /// For interactive traffic: soon or not at all, without waiting for others.
    pub const PROMPT: Service = Service {
        order: Order::None,
        deadline: Some(Duration::from_millis(100)),
        residual: 1e-2,
        retries: None,
        drop_late: true,
    };

    /// The paper's bulk acknowledgement with a number of retries, in the order of the link.
    pub const fn retries(limit: Option<u8>) -> Service {
        Service {
            order: Order::Link,
            deadline: None,
            residual: 1e-3,
            retries: limit,
            drop_late: false,
        }
    }
}

/// How losses are recovered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recovery {
    /// Nothing is sent twice: slots alone.
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
    /// One controller for both.
    Improved {
        /// Whether room that is left in a slot is filled with repairs.
        fill: bool,
    },
}

/// How many repairs a block of the paper's code gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Redundancy {
    //= wildnet 3.3.2: redundancy follows the measured loss
    /// p / (1 - p) for each packet, p the mean loss of ten slots.
    Mean,
    /// So many that at most this share stays lost, p as before.
    Residual(f64),
    /// `parity` for each `data` packets, whatever the loss: what static tools do.
    Fixed {
        /// Packets.
        data: u8,
        /// Repairs for them.
        parity: u8,
    },
}

/// Everything that decides how one link works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Largest frame in octets.
    pub frame_max: usize,
    /// Packets that may be under way; a power of two. Each end keeps this many bodies.
    ///
    /// Packets per slot times the rounds that the oldest may need: 13 × 8 for 30 % and one in a thousand (specs 4.5).
    pub window: usize,
    /// Packets that wait in each class before [`Link::offer`](crate::Link::offer) refuses.
    pub queue: usize,
    /// How losses are recovered.
    pub recovery: Recovery,
    /// The classes.
    pub services: [Service; SERVICES],
    /// Octets kept free in full data frames for an acknowledgement; 0 sends it apart where it does not fit.
    pub ack_room: usize,
    /// How long an acknowledgement waits for a frame to ride on, half as long while something is missing. Slots have
    /// one in every frame.
    pub ack_delay: Duration,
    /// Frames received after which an acknowledgement is due even so.
    pub ack_every: u16,
    /// How many later frames must be acknowledged before a missing one counts as lost: 0 on a link that cannot
    /// reorder, 3 on the Internet (RFC 9002, 6.1.1, kPacketThreshold).
    pub reordering: u32,
    /// Whether several packets may share a frame.
    pub bundle: bool,
    /// How long small packets wait for others to share a frame with, the most urgent class excepted.
    pub bundle_delay: Duration,
    /// Most octets of copies of small bodies, not reported yet, that ride along with small frames where frames are lost;
    /// 256 at most. 64 hold the acknowledgements of TCP that leave within some 25 ms.
    pub copies: usize,
    /// Whether the two ends speak in turns: all own frames are settled by any report, and the owner says when a slot
    /// begins ([`Link::begin_slot`](crate::Link::begin_slot)).
    pub turns: bool,
}

impl Config {
    /// For slots on a radio, after specs 4.5: the paper's window, frames of 802.11.
    pub const fn slots() -> Config {
        Config {
            frame_max: 1560,
            window: 256,
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
            copies: 0,
            turns: true,
        }
    }

    /// For two hosts with a network between them: frames of up to `frame_max` octets.
    pub const fn tunnel(frame_max: usize) -> Config {
        Config {
            frame_max,
            window: 1024,
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
            copies: 64,
            turns: false,
        }
    }

    /// Largest packet that a frame carries, so that a repair of it fits as well.
    pub const fn packet_max(&self) -> usize {
        self.body_max()
            .saturating_sub(header::BODY + header::LENGTH)
    }

    /// Largest body.
    pub(crate) const fn body_max(&self) -> usize {
        let slot = if self.turns { header::SLOT } else { 0 };
        let around = header::FIXED + slot + 2 + COVER_USUAL + self.ack_room;
        self.frame_max.saturating_sub(around)
    }

    /// Checks that the values fit together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let share = |service: &Service| service.residual > 0.0 && service.residual <= 1.0;
        if self.packet_max() < 64 || self.frame_max > 1 << 16 {
            Err(ConfigError::FrameMax(self.frame_max))
        } else if !self.window.is_power_of_two() || self.window < 16 || self.window > 1 << 13 {
            Err(ConfigError::Window(self.window))
        } else if self.queue == 0 {
            Err(ConfigError::Queue)
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

/// What is wrong with a [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Frames must hold a packet of 64 octets at least, and be at most 65,536 octets long.
    FrameMax(usize),
    /// The window must be a power of two from 16 to 8192.
    Window(usize),
    /// The queue must hold a packet.
    Queue,
    /// Copies may take 256 octets of a frame at most.
    Copies(usize),
    /// A residual must lie above 0 and not above 1.
    Residual,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ConfigError::FrameMax(len) => write!(
                f,
                "frames of {len} octets: they must hold a packet of 64 and be at most 65536 long"
            ),
            ConfigError::Window(packets) => write!(
                f,
                "a window of {packets} packets: it must be a power of two from 16 to 8192"
            ),
            ConfigError::Copies(octets) => {
                write!(
                    f,
                    "{octets} octets of copies: at most {COPIES_MOST} of a frame"
                )
            }
            ConfigError::Queue => f.write_str("a queue must hold at least one packet"),
            ConfigError::Residual => {
                f.write_str("a residual loss must lie above 0 and not above 1")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
