//! The scenario's part in a run: faults strike, interferers transmit.

use chappe_core::{Duration, Mode, Purpose, RadioNode, Rate, Seed, Stream};

use crate::engine::Engine;
use crate::event::{Key, Kind};
use crate::id::NodeId;
use crate::nodes::Nodes;
use crate::rules::EVERY_CHANNEL;
use crate::{AirTime, Bursts, Error, Fault, Jammer, Medium, Place, Recorder};

/// The faults of a run, and the interferers among them.
#[derive(Debug)]
pub(crate) struct Scenario {
    faults: Vec<(AirTime, Fault)>,
    interferers: Vec<Interferer>,
    gaps: Stream,
}

/// A jammer with its place in the medium.
#[derive(Clone, Debug)]
struct Interferer {
    /// Which fault began it.
    fault: usize,
    /// Row of its links in the medium.
    row: NodeId,
    jammer: Jammer,
    until: AirTime,
    bursts: u64,
}

/// A scenario key with this bit in its count is an interferer's burst; its node is then the interferer's number.
const BURST: u64 = 1 << 40;

impl Scenario {
    /// Gives each interferer its row in the medium.
    pub(crate) fn new(
        medium: &mut Medium,
        faults: Vec<(AirTime, Fault)>,
        seed: Seed,
    ) -> Result<Scenario, Error> {
        let mut interferers = Vec::new();
        for (number, (at, fault)) in faults.iter().enumerate() {
            let Fault::Jammer(jammer) = fault else {
                continue;
            };
            let row = match &jammer.place {
                Place::At(position) => medium.add_source(*position, jammer.power),
                Place::Over(nodes) => medium.add_measured_source(nodes),
            };
            let mismatch =
                "a jammer has a position in a geometric medium, and nodes in reach in a matrix";
            interferers.push(Interferer {
                fault: number,
                row: row.ok_or(Error::Fault(mismatch))?,
                jammer: jammer.clone(),
                until: *at + jammer.lasts,
                bursts: 0,
            });
        }
        Ok(Scenario {
            faults,
            interferers,
            gaps: seed.stream(Purpose::Interference),
        })
    }

    /// How many faults there are.
    pub(crate) fn len(&self) -> usize {
        self.faults.len()
    }

    /// One key for each fault.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let key = |(number, &(at, _)): (usize, &(AirTime, Fault))| {
            Key::new(at, Kind::Scenario, NodeId(0), number as u64)
        };
        self.faults.iter().enumerate().map(key)
    }

    /// A fault strikes, or an interferer's next burst begins.
    pub(crate) fn strike<N: RadioNode + ?Sized, R: Recorder>(
        &mut self,
        engine: &mut Engine<R>,
        nodes: &mut Nodes<N>,
        key: Key,
    ) {
        if key.count() & BURST != 0 {
            return self.burst(engine, key.node());
        }
        let number = key.count() as usize;
        let Some((_, fault)) = self.faults.get(number) else {
            return;
        };
        match *fault {
            Fault::Crash(node) => nodes.crash(engine, NodeId::of(node)),
            Fault::Restart(node) => nodes.restart(engine, NodeId::of(node)),
            Fault::CutLink(a, b) => engine.air.cut(NodeId::of(a), NodeId::of(b), true),
            Fault::RestoreLink(a, b) => engine.air.cut(NodeId::of(a), NodeId::of(b), false),
            Fault::Drift { node, ppm } => nodes.drift(engine, NodeId::of(node), ppm),
            Fault::CorruptBits {
                node,
                rate,
                detected,
            } => engine.air.corrupt(NodeId::of(node), rate, detected),
            Fault::Forge { node, forgery } => {
                nodes.forge(engine, NodeId::of(node), (number, forgery));
            }
            Fault::Jammer(_) => {
                let mut interferers = self.interferers.iter();
                if let Some(place) = interferers.position(|one| one.fault == number) {
                    self.burst(engine, NodeId::of(place));
                }
            }
        }
    }

    /// One burst of an interferer now, and the next one later.
    fn burst<R: Recorder>(&mut self, engine: &mut Engine<R>, number: NodeId) {
        let interferer = &mut self.interferers[number.index()];
        let left = interferer.until.saturating_since(engine.now);
        if left == Duration::ZERO {
            return;
        }
        // By position: what one interferer does changes no other's gaps.
        let position = number.number() << 40 | interferer.bursts;
        let drawn = |gap: Duration| gap.mul_f64(-libm::log(self.gaps.fraction_at(position)));
        let (on, pause) = match interferer.jammer.bursts {
            Bursts::Frames { gap, mode, octets } => {
                let on = mode.airtime(octets);
                (on, on + drawn(gap))
            }
            Bursts::Constant => (left, Duration::MAX),
            Bursts::Periodic { period, on } => (on, period),
            Bursts::Poisson { gap, on } => (on, on + drawn(gap)),
        };
        let (mode, octets) = match interferer.jammer.bursts {
            Bursts::Frames { mode, octets, .. } => (mode, octets),
            _ => (Mode::long(Rate::Dsss1), 0),
        };
        // Noise can be cut short at the jammer's end; half a frame would not be one.
        if octets > 0 && left < on {
            return;
        }
        let burst = interferer.bursts;
        interferer.bursts += 1;
        let slot = engine.air.take_slot();
        let frame = engine.air.frame_mut(slot);
        frame.source = interferer.row;
        frame.number = burst;
        (frame.noise, frame.foreign) = (octets == 0, true);
        let channel = interferer.jammer.channel;
        frame.channel = channel.map_or(EVERY_CHANNEL, |channel| channel.0);
        frame.airtime = on.min(left);
        frame.mode = mode;
        (frame.len, frame.octets, frame.scale) = (0, octets, 1.0);
        engine.launch(slot);
        let next = engine.now + pause;
        if next < AirTime::MAX {
            let count = BURST | burst & (BURST - 1);
            engine
                .queue
                .push(Key::new(next, Kind::Scenario, number, count));
        }
    }
}
