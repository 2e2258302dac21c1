//! The scenario's hand in a run: faults strike, interferers burst.

use chappe_core::{Duration, Mode, RadioNode, Rate};

use crate::frame::EVERY_CHANNEL;
use crate::queue::{Key, Kind};
use crate::radio::flag::*;
use crate::{AirTime, Bursts, Error, Fault, Jammer, Loss, Medium, Place, Recorder, Simulator};

/// A jammer with its place in the medium.
#[derive(Clone, Debug)]
pub(crate) struct Interferer {
    /// Which fault began it.
    fault: usize,
    /// Row of its links in the medium.
    row: u32,
    jammer: Jammer,
    until: AirTime,
    bursts: u64,
}

/// A scenario key with this bit in its count is an interferer's burst; its node is the interferer's number.
const BURST: u64 = 1 << 40;

impl Interferer {
    pub(crate) fn place_all(
        medium: &mut Medium,
        faults: &[(AirTime, Fault)],
    ) -> Result<Vec<Interferer>, Error> {
        let mut placed = Vec::new();
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
            placed.push(Interferer {
                fault: number,
                row: row.ok_or(Error::Fault(mismatch))?,
                jammer: jammer.clone(),
                until: *at + jammer.lasts,
                bursts: 0,
            });
        }
        Ok(placed)
    }
}

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    pub(crate) fn scenario(&mut self, key: Key) {
        if key.count() & BURST != 0 {
            return self.burst(key.node());
        }
        let number = key.count() as usize;
        let Some((_, fault)) = self.faults.get(number).cloned() else {
            return;
        };
        match fault {
            Fault::Crash(node) => self.crash(node as u32),
            Fault::Restart(node) => self.restart(node),
            Fault::CutLink(a, b) => {
                let pair = (a.min(b) as u32, a.max(b) as u32);
                if let Err(place) = self.air.cuts.binary_search(&pair) {
                    self.air.cuts.insert(place, pair);
                }
            }
            Fault::RestoreLink(a, b) => {
                let pair = (a.min(b) as u32, a.max(b) as u32);
                self.air.cuts.retain(|&cut| cut != pair);
            }
            Fault::Drift { node, ppm } => {
                self.desks[node].clock.set_drift(self.now, ppm);
                self.rewind(node as u32);
            }
            Fault::CorruptBits {
                node,
                rate,
                detected,
            } => {
                let nodes = self.nodes.len();
                self.air.corruption.resize(nodes, (0.0, false));
                self.air.corruption[node] = (rate, detected);
            }
            Fault::Jammer(_) => {
                let started = self
                    .interferers
                    .iter()
                    .position(|interferer| interferer.fault == number);
                if let Some(interferer) = started {
                    self.burst(interferer as u32);
                }
            }
        }
    }

    fn crash(&mut self, node: u32) {
        if self.air.radios[node as usize].is(DOWN) {
            return;
        }
        self.air
            .give_up(&mut self.recorder, node, self.now.0, Loss::Down);
        self.shut(node);
        let radio = &mut self.air.radios[node as usize];
        radio.flags = radio.flags & BUSY | DOWN;
        (radio.peeks, self.desks[node as usize].peek) = (false, 0);
        radio.refresh(self.now.0, self.air.rules.carrier_sense);
        self.air.change_duty(node, self.now.0);
    }

    fn restart(&mut self, node: usize) {
        if !self.air.radios[node].is(DOWN) {
            return;
        }
        let Some(reviver) = &mut self.reviver else {
            return;
        };
        self.nodes[node] = reviver(node);
        self.rise(node);
    }

    /// A crashed node starts again now, as what `renew` makes of it: for a driver that keeps its nodes' parts itself.
    /// False, and nothing happens, if the node is not down. Panics if there is no such node.
    pub fn revive(&mut self, node: usize, renew: impl FnOnce(&mut Box<N>)) -> bool {
        let down = self.air.radios[node].is(DOWN);
        if down {
            renew(&mut self.nodes[node]);
            self.rise(node);
        }
        down
    }

    fn rise(&mut self, node: usize) {
        self.air.radios[node].set(DOWN, false);
        self.air.change_duty(node as u32, self.now.0);
        let channel = self.air.medium.profile().channel.0;
        self.air
            .tune(&mut self.recorder, node as u32, self.now.0, channel);
        self.update_carrier(node as u32);
        let now = self.desks[node].clock.local(self.now);
        self.nodes[node].handle_timeout(now);
        self.drain(node as u32);
    }

    /// One burst now, and the next one later.
    fn burst(&mut self, number: u32) {
        let interferer = &mut self.interferers[number as usize];
        let left = interferer.until.saturating_since(self.now);
        if left == Duration::ZERO {
            return;
        }
        let position = u64::from(number) << 40 | interferer.bursts;
        let drawn =
            |gap: Duration| gap.mul_f64(-libm::log(self.interference.fraction_at(position)));
        let (on, pause) = match interferer.jammer.bursts {
            Bursts::Frames { gap, mode, octets } => {
                let on = mode.airtime(octets);
                (on, on + drawn(gap))
            }
            Bursts::Constant => (left, Duration::MAX),
            Bursts::Periodic { period, on } => (on, period),
            Bursts::Poisson { gap, on } => (on, on + drawn(gap)),
        };
        let (source, channel, burst) =
            (interferer.row, interferer.jammer.channel, interferer.bursts);
        let (mode, octets) = match interferer.jammer.bursts {
            Bursts::Frames { mode, octets, .. } => (mode, octets),
            _ => (Mode::long(Rate::Dsss1), 0),
        };
        if octets > 0 && left < on {
            return;
        }
        interferer.bursts += 1;
        let slot = self.air.frames.take();
        let frame = self.air.frames.get_mut(slot);
        frame.source = source;
        frame.number = burst;
        (frame.noise, frame.foreign) = (octets == 0, true);
        frame.channel = channel.map_or(EVERY_CHANNEL, |channel| channel.0);
        frame.airtime = on.nanos().min(left.nanos());
        frame.mode = mode;
        (frame.len, frame.octets, frame.scale) = (0, octets, 1.0);
        self.launch(slot);
        let next = self.now + pause;
        if next < AirTime::MAX {
            self.queue.push(Key::new(
                next.0,
                Kind::Scenario,
                number,
                BURST | burst & (BURST - 1),
            ));
        }
    }
}
