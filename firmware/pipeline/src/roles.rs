//! The nodes: their numbers, their parts, their key.

use chappe_core::{Instant, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake};
use chappe_nrf52840::{CAPS, RX_RAMP};
use chappe_p3::survey::{Heard, Ledger, Member, Survey, Surveyor};
use chappe_p3::{
    ChannelOrder, Config, Gateway, ImprovedPart, Key, Lent, Place, Plan, Planner, Relay, Source,
    Stages, Tagging, Trial, Wanted,
};

use crate::object::Numbers;

/// The links that a destination has collected, as far as five nodes have them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links {
    links: [Option<(u16, Heard)>; 20],
    len: usize,
}

impl Links {
    /// Each with the node that heard.
    pub fn iter(&self) -> impl Iterator<Item = &(u16, Heard)> {
        self.links.iter().flatten()
    }
}

impl Ledger for Links {
    fn take(&mut self, at: u16, heard: Heard) {
        if let Some(place) = self.links.get_mut(self.len) {
            *place = Some((at, heard));
            self.len += 1;
        }
    }
}

/// The number of the node that wants the object.
pub const DESTINATION: u16 = 0;
/// The number of the node that has it. Relays are 2 to 4, one in each group.
pub const SOURCE: u16 = 1;
/// The number of the first relay.
const FIRST: u16 = 2;
/// Most relays between them.
pub const RELAYS_MAX: u8 = 3;
/// Octets of the object on the boards: the paper's.
pub const OBJECT: u32 = 59_000;
/// Octets of memory for it: whole packets of 122 octets, or of 118 where someone forges packets.
pub const MEMORY: usize = 484 * 122;

/// A number that was given to the build, or its usual value.
pub const fn given(text: Option<&str>, usual: u8, max: u8) -> u8 {
    match text {
        None => usual,
        Some(text) => match text.as_bytes() {
            [digit @ b'1'..=b'9'] if *digit - b'0' <= max => *digit - b'0',
            _ => panic!("P3_NODE and P3_RELAYS are 1, 2 or 3"),
        },
    }
}

/// The roles' parameters. Tags of packets are in the CTRL, four octets more for each packet. The key is a published one: whoever uses the images for more than a trial takes another.
pub fn config(encrypt: chappe_p3::Aes) -> Config {
    let key = Key::new(*b"not a secret key").with_unit(encrypt);
    Config {
        ramp_up: RX_RAMP,
        ..Config::improved(Some(key)).tagged_by(Tagging::Segments)
    }
}

/// Relay number 1, 2 or 3, which also measures its links; `None` if the radio does not suit, as in the functions below.
pub fn relay(config: Config, number: u8) -> Option<Member<Relay>> {
    let number = FIRST + u16::from(number) - 1;
    let survey = Survey::new(config.clone(), &CAPS, number).ok()?;
    let relay = Relay::new(config, &CAPS, number).ok()?;
    Some(Member::new(relay, survey, |relay| {
        relay.state() == "waking"
    }))
}

/// The source of an object, which also measures its links.
pub fn source(config: Config, object: Numbers) -> Option<Member<Source<Numbers>>> {
    let survey = Survey::new(config.clone(), &CAPS, SOURCE).ok()?;
    let source = Source::new(config, &CAPS, SOURCE, object).ok()?;
    Some(Member::new(source, survey, |source| {
        source.state() == "waking"
    }))
}

/// What a source does while its own frame is on the air.
pub fn prepare(source: &mut Member<Source<Numbers>>) -> bool {
    source.node_mut().prepare()
}

/// The destination before a transfer: it measures the links of all nodes, with six beacons on each channel.
pub fn surveyor<L: Ledger>(config: Config, relays: u8, ledger: L) -> Option<Surveyor<L>> {
    let nodes = FIRST + u16::from(relays);
    // Two hops, and two to spare.
    Surveyor::new(config, &CAPS, DESTINATION, (nodes, 4, 6), ledger).ok()
}

/// The destination, which floods the plan again where nothing comes. The memory has room for whole packets.
pub fn gateway(config: Config, memory: &mut [u8], relays: u8) -> Option<Gateway<Lent<'_>, Fixed>> {
    let plan = plan(&config, relays)?;
    Gateway::new(config, &CAPS, DESTINATION, Lent::new(memory), Fixed(plan)).ok()
}

/// A planner that knows one plan: the boards are where their owner put them.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(Plan);

impl Planner for Fixed {
    fn plan(&mut self, _: Option<&Trial>) -> Option<Plan> {
        Some(self.0)
    }
}

/// Two hops and a relay in each group. With one relay the source sends in every second cycle, with three without pause.
fn plan(config: &Config, relays: u8) -> Option<Plan> {
    let wanted = Wanted {
        transfer: 1,
        payload: config.payload_max() as u8,
        source: SOURCE,
        destination: DESTINATION,
        channels: ChannelOrder::default(),
    };
    let part = |group: u8| ImprovedPart {
        place: Place {
            node: FIRST + u16::from(group),
            stage: 1,
            group,
        },
        answers: true,
    };
    let parts = [part(0), part(1), part(2)];
    let stages = Stages {
        hops: 2,
        groups: relays,
        parts: parts.get(..usize::from(relays))?,
        repair: 2,
        session: 1,
    };
    Plan::from_stages(wanted, config, stages).ok()
}

/// Any of the three, for a room that has all of them.
#[allow(
    clippy::large_enum_variant,
    reason = "five of them, and no allocator to box them with"
)]
pub enum Role<'a> {
    /// A node that repeats frames.
    Relay(Member<Relay>),
    /// The node that has the object.
    Source(Member<Source<Numbers>>),
    /// The node that wants the object.
    Destination(Gateway<Lent<'a>, Fixed>),
    /// The same node before the transfer.
    Surveyor(Surveyor<Links>),
}

/// What a node does while its own frame is on the air: a source makes the next one.
pub fn ahead(role: &mut Role<'_>) -> bool {
    match role {
        Role::Source(source) => prepare(source),
        Role::Relay(_) | Role::Destination(_) | Role::Surveyor(_) => false,
    }
}

impl<'a> Role<'a> {
    fn node(&mut self) -> &mut (dyn RadioNode + 'a) {
        match self {
            Role::Relay(node) => node,
            Role::Source(node) => node,
            Role::Destination(node) => node,
            Role::Surveyor(node) => node,
        }
    }
}

impl RadioNode for Role<'_> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.node().handle_radio(now, event);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.node().poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        match self {
            Role::Relay(node) => node.poll_timeout(),
            Role::Source(node) => node.poll_timeout(),
            Role::Destination(node) => node.poll_timeout(),
            Role::Surveyor(node) => node.poll_timeout(),
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.node().poll_trace()
    }
}
