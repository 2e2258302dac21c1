//! The two cursors of a frame in flight, as tight loops over its receivers.
//!
//! Most signals meet an idle radio that they are too weak for, and only change its energy. These loops handle that case
//! and stop at the first receiver that needs more.

use crate::frame::{Edge, Frame};
use crate::id::{NodeId, Slot};
use crate::ledger::{Ledger, Meeting};
use crate::level::{NEVER, Passage};
use crate::radio::flag::*;
use crate::receiver::Receivers;
use crate::rules::{Rejection, Rules};
use crate::{AirTime, Loss, Power, Recorder};

/// Why a loop over receivers stopped.
pub(crate) enum Stop {
    /// It is past the last receiver.
    End,
    /// The next receiver is later than allowed: at this moment.
    Later(AirTime),
    /// This receiver needs a closer look; the cursor has passed it.
    Examine(Edge),
    /// This receiver's carrier changed and its node asked for carrier events.
    Carrier { at: AirTime, node: NodeId },
}

/// How far a cursor may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The last moment before the next other event.
    pub(crate) last: AirTime,
    /// The same without the events that cannot switch or tune a radio. What passes a radio that is off or on another
    /// channel only counts, so a cursor need not stop there for the other frames that begin or end at the same time.
    pub(crate) far: AirTime,
}

/// Moves a frame's first cursor: signals begin.
#[inline]
pub(crate) fn scan_starts<R: Recorder>(
    (slot, frame): (Slot, &mut Frame),
    receivers: &mut Receivers,
    (rules, rejection): (&Rules, &Rejection),
    ledger: &mut Ledger<R>,
    limits: Limits,
) -> Stop {
    let reach = rejection.reach();
    // Noise bursts cannot be received, but they decide what else is: every signal is examined.
    let examined = if frame.noise {
        Power::ZERO
    } else {
        rules.examined
    };
    let reports = frame.counts() && ledger.reports_unheard();
    // A recorder hears of more than the nodes do, so nothing passes it unseen.
    let unseen = frame.channel == rules.home && !ledger.reports_frames();
    let carrier_sense = rules.carrier_sense;
    let passage = Passage {
        sent: frame.begin,
        last: limits.last,
        weaker: if unseen { examined } else { Power::ZERO },
        carrier_sense,
    };
    let first = frame.started as usize;
    let (mut place, mut away) = (first, 0);
    let mut stop = Stop::End;
    loop {
        place += passage.rise(&mut receivers.levels, &frame.arrivals[place..]);
        let Some(arrival) = frame.arrivals.get(place) else {
            break;
        };
        let (at, node) = (arrival.time(frame.begin), arrival.receiver);
        let radio = receivers.radio(node);
        let is_away = radio.is_away(frame.channel, reach);
        if at > limits.last && !(is_away && at <= limits.far && !radio.reports_carrier()) {
            stop = Stop::Later(at);
            break;
        }
        place += 1;
        if is_away {
            away += 1;
            let why = radio.away_why();
            // The radio may be switched on while the signal lasts, so its energy must be right all the time.
            if radio.is(ASLEEP | DOWN) {
                let mut radio = receivers.look(node, carrier_sense);
                let power = rejection.across(arrival.power, frame.channel, radio.channel);
                radio.level.energy = radio.level.energy.plus(power);
                radio.refresh(at, carrier_sense);
            }
            let meeting = Meeting {
                node,
                at,
                started: at,
                power: arrival.power,
                others: Power::ZERO,
            };
            ledger.pass(frame, meeting, why);
            continue;
        }
        if arrival.power >= examined || !radio.is_idle(frame.channel, at) {
            stop = Stop::Examine(Edge {
                slot,
                place: place as u32 - 1,
                node,
                power: arrival.power,
                at,
            });
            break;
        }
        if reports {
            let meeting = Meeting {
                node,
                at,
                started: at,
                power: arrival.power,
                others: Power::ZERO,
            };
            ledger.report_weak(frame, meeting);
        }
        // Too weak to lock on to: only the carrier can change.
        let mut radio = receivers.look(node, carrier_sense);
        radio.level.energy = radio.level.energy.plus(arrival.power);
        if radio.refresh_free(at, carrier_sense) {
            stop = Stop::Carrier { at, node };
            break;
        }
        radio.look_away(at, rules);
    }
    if frame.counts() {
        // Losses are counted once for the whole stretch. The receiver to examine is not among them.
        let examine = usize::from(matches!(stop, Stop::Examine(_)));
        let weak = place - examine - first - away;
        ledger.counters.lost.add(Loss::TooWeak, weak as u64);
    }
    frame.started = place as u32;
    stop
}

/// Moves a frame's second cursor, after the transmitter's own end: signals leave radios that receive nothing.
#[inline]
pub(crate) fn scan_ends(
    (slot, frame): (Slot, &mut Frame),
    receivers: &mut Receivers,
    (rules, rejection): (&Rules, &Rejection),
    limits: Limits,
) -> Stop {
    let (end, reach) = (frame.end(), rejection.reach());
    let first = frame.ended as usize;
    // What a radio may have locked on to is examined, since its reception ends with it; unless radios that receive examine
    // everything anyway.
    let weaker = match rules.adds_up {
        true => NEVER,
        false => rules.examined,
    };
    let unseen = frame.channel == rules.home;
    let carrier_sense = rules.carrier_sense;
    let passage = Passage {
        sent: end,
        last: limits.last,
        weaker: if unseen { weaker } else { Power::ZERO },
        carrier_sense,
    };
    let mut place = first;
    let mut stop = Stop::End;
    loop {
        place += passage.fall(&mut receivers.levels, &frame.arrivals[place..]);
        let Some(arrival) = frame.arrivals.get(place) else {
            break;
        };
        let (at, node) = (arrival.time(end), arrival.receiver);
        let radio = receivers.radio(node);
        let is_away = radio.is_away(frame.channel, reach);
        // A signal ends nowhere before it has begun there. On links longer than a frame, the first cursor may still be on
        // its way to a radio that is off, where this one would not wait for it.
        let has_begun = place < frame.started as usize;
        let passes = has_begun && is_away && radio.lock.is_none() && !radio.reports_carrier();
        if at > limits.last && !(passes && at <= limits.far) {
            stop = Stop::Later(at);
            break;
        }
        place += 1;
        if is_away {
            if radio.is(ASLEEP | DOWN) {
                let mut radio = receivers.look(node, carrier_sense);
                let power = rejection.across(arrival.power, frame.channel, radio.channel);
                radio.level.energy = radio.level.energy.minus(power);
                radio.refresh(at, carrier_sense);
            }
            continue;
        }
        // A radio that receives or transmits must close a stretch first; another channel needs the rejection.
        if !radio.is_free() || radio.channel != frame.channel {
            stop = Stop::Examine(Edge {
                slot,
                place: place as u32 - 1,
                node,
                power: arrival.power,
                at,
            });
            break;
        }
        let mut radio = receivers.look(node, carrier_sense);
        radio.level.energy = radio.level.energy.minus(arrival.power);
        if radio.refresh_free(at, carrier_sense) {
            stop = Stop::Carrier { at, node };
            break;
        }
        radio.look_away(at, rules);
    }
    frame.ended = place as u32;
    stop
}
