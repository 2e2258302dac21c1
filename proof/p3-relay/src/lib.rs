//! A whole transfer of the improved P³ without an operating system or an allocator: a source, a relay in each of two
//! groups, and a destination, in an air that loses frames by a script. What the nodes transmit is reported frame by frame,
//! so that two processors can be compared.

#![no_std]

mod air;

use chappe_core::{Caps, Duration, Instant, Seed};
use chappe_core::{Purpose, RadioNode};
use chappe_p3::{
    ChannelOrder, Config, Destination, ImprovedPart, Key, Lent, Place, Plan, Relay, Source, Stages,
    Wanted,
};

use air::Air;

/// Octets of the object: 60 packets.
pub const OBJECT: usize = 60 * 118 - 50;
/// The object's packets, the last one padded.
const MEMORY: usize = 60 * 118;

/// Who does something, for what is reported and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The node that wants the object.
    Destination = 0,
    /// The node that has the object.
    Source = 1,
    /// The relay of group 0.
    Even = 2,
    /// The relay of group 1.
    Odd = 3,
}

impl Role {
    /// All of them, in the order of their numbers.
    pub const ALL: [Role; 4] = [Role::Destination, Role::Source, Role::Even, Role::Odd];
}

/// What watches a transfer.
pub trait Watcher {
    /// A node has begun to send: when, who, on which channel, which octets.
    fn sends(&mut self, at: Instant, role: Role, channel: u8, psdu: &[u8]);

    /// A node is about to work on a frame that it heard, or on the end of one that it sent.
    fn begins(&mut self) {}

    /// It has done so.
    fn ends(&mut self, _role: Role, _heard: Option<&[u8]>) {}
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The destination has the object, octet by octet.
    pub complete: bool,
    /// When its last packet came.
    pub at: Instant,
}

/// Plays the transfer. `None` if a node cannot be made, which would be an error of this program.
pub fn play(seed: u64, watcher: &mut impl Watcher) -> Option<End> {
    let radio = Caps {
        frame_max: 125,
        schedules: true,
        start_error: Duration::ZERO,
        reports_power: false,
        overhears: true,
        confirms_broadcast: true,
        hastens: false,
    };
    let config = Config::improved(Some(Key::new(*b"not a secret key")));
    let mut object = [0; OBJECT];
    Seed(seed).stream(Purpose::Traffic(0)).fill(&mut object);
    let mut memory = [0; MEMORY];
    let number = |role: Role| role as u16;
    let store = Lent::new(&mut memory);
    let mut destination =
        Destination::new(config.clone(), &radio, number(Role::Destination), store).ok()?;
    let mut source = Source::new(config.clone(), &radio, number(Role::Source), &object[..]).ok()?;
    let mut even = Relay::new(config.clone(), &radio, number(Role::Even)).ok()?;
    let mut odd = Relay::new(config.clone(), &radio, number(Role::Odd)).ok()?;
    let begin = Instant::from_millis(1);
    destination.start(plan(&config)?, None, begin).ok()?;
    {
        let nodes: [&mut dyn RadioNode; 4] = [&mut destination, &mut source, &mut even, &mut odd];
        Air::new(nodes, seed).run(begin, watcher);
    }
    let at = destination.progress().completed.unwrap_or(begin);
    let complete = destination.store().object() == Some(&object[..]);
    Some(End { complete, at })
}

/// Two hops, a relay in each group, two combinations after the packets.
fn plan(config: &Config) -> Option<Plan> {
    let wanted = Wanted {
        transfer: 1,
        payload: config.payload_max() as u8,
        source: Role::Source as u16,
        destination: Role::Destination as u16,
        channels: ChannelOrder::default(),
    };
    let part = |role: Role, group| ImprovedPart {
        place: Place {
            node: role as u16,
            stage: 1,
            group,
        },
        answers: true,
    };
    let stages = Stages {
        hops: 2,
        groups: 2,
        parts: &[part(Role::Even, 0), part(Role::Odd, 1)],
        repair: 2,
        session: 1,
    };
    Plan::from_stages(wanted, config, stages).ok()
}
