//! Five nodes on models of the nRF52840 that hear each other: a source, a relay in each of three groups, a destination. The
//! source sends without pause, so every frame of it is one that a real chip would start without a ramp-up.

mod meter;

use core::cell::RefCell;

use chappe_core::{Instant, Purpose, Seed, Stream};
use chappe_nrf52840::model::{Chip, OnAir};
use chappe_nrf52840::{Config, Driver, Station};

use crate::object::Numbers;
use crate::roles::{self, Links, RELAYS_MAX, Role};
pub use meter::{Cause, Cost, Span, Ticks, overhead};
use meter::{Meter, Metered, unit};

/// Packets of the object here.
const PACKETS: usize = 120;
const OBJECT: u32 = 120 * 118 - 50;
/// Nodes: source, three relays, destination.
const NODES: usize = 5;
/// Power of frames at the other nodes, dBm.
const POWER: f64 = -60.0;
/// One frame of this many is lost, for each receiver alone.
const LOST_OF: u64 = 12;
/// Nothing takes longer, ns.
const LIMIT: u64 = 20_000_000_000;
/// The place of the destination, and of the source.
const LAST: usize = NODES - 1;

/// What watches the room.
pub trait Watcher {
    /// A frame begins: when in ns, of which node (0 is the source, 4 the destination), on which channel, and its octets.
    fn sends(&mut self, at: u64, node: usize, channel: u8, psdu: &[u8]);

    /// A node has done something.
    fn ends(&mut self, _node: usize, _cost: Cost) {}
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The destination has the object, octet by octet.
    pub complete: bool,
    /// When its last packet came.
    pub at: Instant,
    /// Attempts of the destination.
    pub attempts: u32,
    /// Frames on the air.
    pub frames: u32,
    /// Links in the reports that the destination has received.
    pub links: usize,
    /// Beacons heard on them, of 24 each.
    pub beacons: u32,
    /// What the drivers did in the wrong state.
    pub faults: u32,
}

type Node<'a, 'c, T> = Station<Role<'a>, Metered<'c, T>>;

/// Plays a transfer. `None` if a node cannot be made, which would be an error of this program.
pub fn play<T: Ticks>(watcher: &mut impl Watcher) -> Option<End> {
    let chips: [RefCell<Chip>; NODES] = core::array::from_fn(|at| {
        // Their timers tick at different instants.
        let mut chip = Chip::new();
        chip.advance(at as u64 * 13);
        RefCell::new(chip)
    });
    let mut memory = [0; PACKETS * 118];
    let object = Numbers::new(OBJECT);
    let config = roles::config(unit::<T>);
    let mut stations: [Node<'_, '_, T>; NODES] = {
        let relay = |at| roles::relay(config.clone(), at).map(Role::Relay);
        let surveyor = roles::surveyor(config.clone(), RELAYS_MAX, Links::default())?;
        let [first, one, two, three, last] = &chips;
        [
            station(first, Role::Source(roles::source(config.clone(), object)?)),
            station(one, relay(1)?),
            station(two, relay(2)?),
            station(three, relay(3)?),
            station(last, Role::Surveyor(surveyor)),
        ]
    };
    let [.., last] = &mut stations;
    last.with(|role, now| {
        if let Role::Surveyor(surveyor) = role {
            surveyor.start(1, now);
        }
    });
    let mut losses = Seed(1).stream(Purpose::Reception);
    let measuring = run(&chips, &mut stations, &mut losses, watcher);
    let [.., last] = &mut stations;
    let Role::Surveyor(surveyor) = last.node() else {
        return None;
    };
    let links = *surveyor.ledger();
    let gateway = roles::gateway(config, &mut memory, RELAYS_MAX)?;
    last.with(|role, now| {
        *role = Role::Destination(gateway);
        match role {
            Role::Destination(gateway) => gateway.start(now).ok(),
            Role::Relay(_) | Role::Source(_) | Role::Surveyor(_) => None,
        }
    })?;
    let frames = measuring + run(&chips, &mut stations, &mut losses, watcher);
    let [.., last] = &stations;
    let Role::Destination(gateway) = last.node() else {
        return None;
    };
    let got = gateway.destination().store().object();
    Some(End {
        complete: got.is_some_and(|octets| object.are(octets)),
        at: gateway.progress().completed.unwrap_or(Instant::ZERO),
        attempts: gateway.attempts(),
        frames,
        links: links.iter().count(),
        beacons: links
            .iter()
            .flat_map(|(_, heard)| heard.beacons)
            .map(u32::from)
            .sum(),
        faults: chips.iter().map(|chip| chip.borrow().faults()).sum(),
    })
}

fn station<'a, 'c, T: Ticks>(chip: &'c RefCell<Chip>, role: Role<'a>) -> Node<'a, 'c, T> {
    let driver = Driver::new(Metered::new(chip), Config::STANDARD);
    Station::new(role, driver).with_ahead(roles::ahead)
}

/// Runs nodes and chips in turn, from event to event, until the destination has measured the links, or is idle.
fn run<T: Ticks>(
    chips: &[RefCell<Chip>; NODES],
    stations: &mut [Node<'_, '_, T>; NODES],
    losses: &mut Stream,
    watcher: &mut impl Watcher,
) -> u32 {
    let mut frames = 0;
    // All of them have just been started.
    let mut woken = [true; NODES];
    loop {
        for (at, station) in stations.iter_mut().enumerate() {
            // A node sleeps until its chip interrupts it.
            while woken.get(at) == Some(&true) {
                let meter = Meter::<T>::begin();
                if !station.turn() {
                    break;
                }
                watcher.ends(at, meter.end());
            }
        }
        let idle = match stations.last().map(Station::node) {
            Some(Role::Destination(gateway)) => gateway.is_idle(),
            Some(Role::Surveyor(surveyor)) => surveyor.is_done(),
            _ => true,
        };
        let next = chips.iter().filter_map(|chip| chip.borrow().next()).min();
        let Some(at) = next.filter(|&at| at < LIMIT && !idle) else {
            return frames;
        };
        chips.iter().for_each(|chip| chip.borrow_mut().advance(at));
        for (sender, chip) in chips.iter().enumerate() {
            let sent = chip.borrow_mut().take_sent();
            if let Some(frame) = sent {
                frames += 1;
                let psdu = frame.psdu.get(..frame.len).unwrap_or_default();
                watcher.sends(frame.started, sender, frame.channel.0, psdu);
                carry(&frame, sender, chips, losses);
            }
        }
        for (woken, chip) in woken.iter_mut().zip(chips) {
            *woken = chip.borrow_mut().take_interrupt();
        }
    }
}

fn carry(frame: &OnAir, sender: usize, chips: &[RefCell<Chip>; NODES], losses: &mut Stream) {
    // Source and destination do not hear each other.
    let apart = |at: usize| at.abs_diff(sender) == LAST;
    for (at, chip) in chips.iter().enumerate() {
        if at != sender && !apart(at) {
            let good = losses.below(LOST_OF) != 0;
            chip.borrow_mut().arrive(frame, POWER, good);
        }
    }
}
