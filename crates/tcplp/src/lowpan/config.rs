//! Parameters of an interface.

use core::net::Ipv6Addr;

use chappe_core::{Address, Duration};
use chappe_wire::dot15d4::Node;
use chappe_wire::sixlowpan::{Context, iphc};

use super::red::Thresholds;

/// The parameters of an interface. Times without a source are this project's choice.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The node's link-layer address.
    pub address: Address,
    /// The mesh's prefix of 64 bits.
    pub prefix: Ipv6Addr,
    /// Compression contexts that all nodes of the mesh share (RFC 6282 3.1.2). Without any, addresses other than link-local
    /// ones are carried in line: 32 octets of a frame.
    pub contexts: &'static [Context],
    /// Largest SDU of the link, octets.
    pub frame_max: usize,
    /// Reassembly timeout: a datagram is given up when no fragment of it arrived for this long. 2 s as in OpenThread; RFC
    /// 4944, 5.3, allows up to 60 s, which lets one lost frame block a slot for a hundred datagrams.
    pub reassembly_idle: Duration,
    /// When all slots are in use, a datagram that has made progress is evicted for a new one only after this idle time.
    pub slot_idle: Duration,
    /// Pause after each confirmed frame of the host's own that has relays ahead of it. Fragments that follow each other
    /// closely collide with each other two hops on (RFC 8930, 5). Zero: no pause. See [`Config::pace_over`].
    pub pace: Duration,
    /// Whether the node forwards packets of other nodes.
    pub forward: bool,
    /// RED for forwarded packets; `None` drops packets only when the queue is full.
    pub red: Option<Thresholds>,
}

impl Config {
    /// The defaults for a node at `address` of the mesh `prefix`, on a link whose SDUs have at most `frame_max` octets.
    pub const fn new(address: Address, prefix: Ipv6Addr, frame_max: usize) -> Config {
        Config {
            address,
            prefix,
            contexts: &[],
            frame_max,
            reassembly_idle: Duration::from_secs(2),
            slot_idle: Duration::from_millis(250),
            pace: Duration::ZERO,
            forward: true,
            red: None,
        }
    }

    /// The [`pace`](Config::pace) for a path of `hops`: a frame keeps the air around its sender busy for up to three hops,
    /// each taking `frame`; the next frame is on the air `lead` after the pause (load, mean back-off, assessment,
    /// turnaround).
    pub const fn pace_over(hops: u8, frame: Duration, lead: Duration) -> Duration {
        let behind = match hops {
            0 | 1 => return Duration::ZERO,
            2 => 1,
            _ => 2,
        };
        Duration::from_nanos(frame.nanos().saturating_mul(behind)).saturating_sub(lead)
    }

    /// The interface identifier of a link-layer address.
    pub(super) fn interface_id(address: Address) -> [u8; 8] {
        Node::extended(address).interface_id()
    }

    /// The node's address under the mesh's prefix.
    pub fn global(&self) -> Ipv6Addr {
        iphc::address_under(self.prefix, Config::interface_id(self.address))
    }

    /// The node's link-local address.
    pub fn link_local(&self) -> Ipv6Addr {
        let prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        iphc::address_under(prefix, Config::interface_id(self.address))
    }
}
