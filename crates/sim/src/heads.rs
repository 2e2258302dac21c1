//! Nodes that look at a frame while it still arrives.
//!
//! When a radio whose node peeks begins to receive, an event is put down for the moment at which the wanted octets
//! will have arrived. What it finds then is judged with the die that decides over the whole frame: the frame's head is
//! good if the die stays within the probability that its bits so far survived, and the frame is good if it stays within
//! that of all its bits. So a whole frame always had a good head, and a good head is followed by a whole frame with
//! just the probability that the rest survives.

use chappe_core::{Head, RadioEvent, RadioNode, Stream};

use crate::air::Air;
use crate::link_loss::Fate;
use crate::queue::{Key, Kind};
use crate::radio::flag::DOOMED;
use crate::reception::{draw_position, survives};
use crate::rules::Judge;
use crate::simulator::{SLOT_BITS, slot_of};
use crate::{AirTime, Recorder, Simulator};

/// More octets than any frame has, and few enough to stand in a key beside the slot.
const MOST: usize = 1 << 20;

/// A good head: when its frame began, and where the stream of faults says how its bits are bent.
pub(crate) struct Seen {
    started: u64,
    falsified: Option<u64>,
}

impl<N: RadioNode + ?Sized, R: Recorder> Simulator<N, R> {
    /// The node wants to see so many octets of frames whose reception begins from now on.
    pub(crate) fn peek(&mut self, node: u32, octets: usize) {
        self.desks[node as usize].peek = octets.min(MOST) as u32;
        self.air.radios[node as usize].peeks = octets > 0;
    }

    /// A radio began to receive at `at`: its node will see the front.
    pub(crate) fn await_head(&mut self, slot: u32, node: u32, at: u64) {
        let frame = self.air.frames.get(slot);
        let octets = (self.desks[node as usize].peek as usize).min(frame.len);
        let arrived = at.saturating_add(frame.mode.airtime(octets).nanos());
        let count = (octets as u64) << SLOT_BITS | u64::from(slot);
        self.queue.push(Key::new(arrived, Kind::Head, node, count));
    }

    /// The front of a frame has arrived, if the radio is still with it.
    pub(crate) fn head(&mut self, key: Key) {
        let (slot, node) = (slot_of(key), key.node());
        let octets = (key.count() >> SLOT_BITS) as usize;
        if !self.air.radios[node as usize].peeks {
            return;
        }
        let Some(seen) = self.air.see(slot, node, octets, key.at()) else {
            return;
        };
        self.air.counters.calls += 1;
        let clock = self.desks[node as usize].clock;
        let frame = self.air.frames.get(slot);
        let psdu = self
            .air
            .heard_bytes(slot, node, seen.falsified, &mut self.falsified);
        let head = Head {
            octets: psdu.get(..octets).unwrap_or(psdu),
            len: frame.len,
            started: clock.local(AirTime(seen.started)),
            mode: frame.mode,
        };
        self.nodes[node as usize].handle_radio(clock.local(self.now), RadioEvent::Head(head));
        self.drain(node);
    }
}

impl Air {
    /// Whether a radio has the first `octets` of a frame at `at`, and without error.
    fn see(&mut self, slot: u32, node: u32, octets: usize, at: u64) -> Option<Seen> {
        let radio = self.radios[node as usize];
        let lasts = |air: &Air| air.frames.get(slot).mode.airtime(octets).nanos();
        // A radio that left the frame may have taken up another one in the same slot since.
        if radio.lock != slot || radio.lock_started.saturating_add(lasts(self)) != at {
            return None;
        }
        if self.rules.judge == Judge::Curves {
            self.close_node(node, at);
        }
        let broken = match self.fate(slot, node) {
            Fate::Broken(place) => place * self.frames.get(slot).octets as f64 <= octets as f64,
            _ => false,
        };
        let radio = self.radios[node as usize];
        let frame = self.frames.get(slot);
        if broken
            || frame.foreign
            || frame.truncated
            || radio.is(DOOMED)
            || radio.lock_power < self.rules.decode_power
        {
            return None;
        }
        let draw = || self.reception.fraction_at(draw_position(frame, node));
        let good = match self.rules.judge {
            Judge::Curves => radio.ln_success == 0.0 || survives(draw(), radio.ln_success),
            // A measured ratio says nothing of where the bits were lost: evenly, then.
            Judge::Overlap => {
                let place = frame
                    .arrivals
                    .iter()
                    .position(|arrival| arrival.receiver == node)?;
                let ratio = f64::from(*frame.ratios.get(place)?);
                let share = octets as f64 / frame.octets as f64;
                ratio > 0.0 && draw() <= libm::exp(share * libm::log(ratio))
            }
            Judge::Threshold(_) | Judge::Pairwise(_) => true,
        };
        let falsified = match good {
            true if self.corruption.is_empty() => None,
            true => self.corrupt_head(slot, node, octets)?,
            false => return None,
        };
        let started = radio.lock_started;
        Some(Seen { started, falsified })
    }

    /// A fault's bit errors in a frame's head: `None` if it is lost by them, and else where to read which bits of the
    /// frame are wrong, if any are.
    #[cold]
    fn corrupt_head(&self, slot: u32, node: u32, octets: usize) -> Option<Option<u64>> {
        match self.corrupt(slot, node, self.frames.get(slot).octets) {
            (Ok(()), falsified) => Some(falsified),
            // The check sequence will show it; the head may still be clean.
            (Err(_), _) => self.corrupt(slot, node, octets).0.ok().map(|()| None),
        }
    }

    /// A frame's PSDU as a node hears it: as it was sent, or in `space` with the bits bent that a fault bends.
    pub(crate) fn heard_bytes<'a>(
        &'a self,
        slot: u32,
        node: u32,
        falsified: Option<u64>,
        space: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let psdu = self.frames.get(slot).psdu();
        let Some(position) = falsified else {
            return psdu;
        };
        space.clear();
        space.extend_from_slice(psdu);
        let rate = self.corruption[node as usize].0;
        falsify(space, self.bit_errors(position), rate);
        space
    }
}

/// Flips each bit with probability `rate`, by geometric gaps, and at least one: the frame is known to be wrong.
fn falsify(psdu: &mut [u8], mut random: Stream, rate: f64) {
    let bits = psdu.len() as u64 * 8;
    if bits == 0 {
        return;
    }
    let flip = |psdu: &mut [u8], place: u64| psdu[(place / 8) as usize] ^= 1 << (place % 8);
    let first = random.below(bits);
    flip(psdu, first);
    let ln_keep = libm::log1p(-rate.min(1.0 - 1e-12));
    let mut place = 0u64;
    loop {
        let gap = (libm::log(random.fraction()) / ln_keep) as u64;
        place = place.saturating_add(gap);
        if place >= bits {
            return;
        }
        if place != first {
            flip(psdu, place);
        }
        place += 1;
    }
}
