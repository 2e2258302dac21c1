//! The recorder: a few stores for each event, and bounded memory.

use chappe_core::{Duration, Mode, Rate, Seed};
use chappe_sim::{
    AirTime, Heard, Interference, Loss, Medium, Power, Reading, Receivers, Recorder, Rule, Sent,
    Switched, Value,
};

use crate::bursts::Bursts;
use crate::decibels::Decibels;
use crate::event::{Meeting, Sending};
use crate::label::{Label, Labeller};
use crate::resolve::{Recorded, resolve};
use crate::ring::Ring;
use crate::rows::{About, Link, NodeReading, Reception, Switch, Trace};
use crate::unheard::Unheard;

/// Receptions that a recording keeps unless it is asked for all: at 64 octets, 16 MiB, and worked out and written in about 0.2 s.
pub const RECEPTIONS: usize = 1 << 18;

/// How often nodes are read, in simulated time.
const EVERY: Duration = Duration::from_millis(40);

/// Links of each node that a trace names: the best. More of them would hide one another in a drawing.
const LINKS: usize = 24;

/// Records the events of one run, in bounded memory.
#[derive(Clone, Debug)]
pub struct Recording {
    sent: Ring<Sending>,
    met: Ring<Meeting>,
    bursts: Bursts,
    switches: Ring<Switch>,
    readings: Ring<NodeReading>,
    /// For each node its last readings: only changes are kept.
    last: Vec<Shown>,
    next_read: AirTime,
    noise: Option<Power>,
    /// Whether frames are kept that no radio could have received.
    unheard: bool,
    /// The newest frame, where identical ones add up at a receiver.
    joint: Option<Box<Newest>>,
    end: AirTime,
    /// Octets and mode of the largest frame.
    largest: Option<(usize, Mode)>,
    labeller: Labeller,
    about: About,
}

impl Recording {
    /// Records a run on `medium`. It keeps the newest `limit` receptions, and a quarter as many frames and readings.
    pub fn new(medium: &Medium, limit: usize, labeller: Labeller) -> Recording {
        let profile = medium.profile();
        let powers = profile.rule != Rule::Overlap;
        let noise = powers.then(|| Power::from_dbm(profile.noise));
        let positions = medium.positions().iter();
        Recording {
            sent: Ring::new(limit / 4),
            met: Ring::new(limit),
            bursts: Bursts::new(limit / 4),
            switches: Ring::new(limit / 4),
            readings: Ring::new(limit / 4),
            last: vec![Shown::default(); medium.nodes()],
            next_read: AirTime::ZERO,
            noise,
            unheard: false,
            joint: profile.synchronous().map(|_| Box::default()),
            end: AirTime::ZERO,
            largest: None,
            labeller,
            about: About {
                nodes: medium.nodes(),
                positions: positions.map(|at| (at.x, at.y)).collect(),
                noise_dbm: powers.then_some(profile.noise.0),
                ..About::default()
            },
        }
    }

    /// Also keeps frames that a receiver could not have received: too weak for an idle radio, or while it was off or on another
    /// channel.
    pub fn with_unheard(self, unheard: bool) -> Recording {
        Recording { unheard, ..self }
    }

    /// Keeps a reading that has changed.
    #[inline(never)]
    fn note(&mut self, at: AirTime, node: usize, reading: Reading) {
        let Reading { name, part, value } = reading;
        self.readings.push(NodeReading {
            at,
            node: node as u32,
            name,
            part,
            value,
        });
    }

    /// What stands for the octets of a frame that is sent, and of the one before, if they may add up: they begin nearly together. 0 where no
    /// other frame is near.
    fn content(&mut self, frame: &Sent<'_>) -> u32 {
        let Some(newest) = &self.joint else {
            return 0;
        };
        let near = frame.at.saturating_since(newest.at) <= NEAR;
        if near {
            self.settle();
        }
        if let Some(newest) = &mut self.joint {
            newest.keep(frame.at, frame.psdu, !near);
        }
        if near { content(frame.psdu) } else { 0 }
    }

    /// Notes what stands for the octets of the newest frame, if that is still to be done.
    fn settle(&mut self) {
        if let (Some(newest), Some(sent)) = (&mut self.joint, self.sent.newest_mut())
            && std::mem::take(&mut newest.open)
        {
            sent.content = content(&newest.psdu[..newest.octets]);
        }
    }

    /// Takes note of an interferer: a transmitter beyond the nodes.
    fn meet(&mut self, burst: &Interference) {
        let place = burst.from - self.about.nodes;
        // A number that is not one of a few interferers would be a defect and must not take memory.
        if place < self.about.interferers || place >= INTERFERERS {
            return;
        }
        self.about.interferers = place + 1;
        if let (Some(at), false) = (burst.place, self.about.positions.is_empty()) {
            self.about.positions.resize(burst.from + 1, (at.x, at.y));
        }
    }

    /// Ends the recording and works out who destroyed what. `name` completes what the trace says about itself.
    pub fn finish(mut self, medium: &Medium, name: impl FnOnce(&mut About)) -> Trace {
        name(&mut self.about);
        self.about.end = self.end;
        self.about.dropped = [
            self.sent.dropped(),
            self.met.dropped(),
            self.readings.dropped(),
        ];
        let sent = self.sent.into_rows();
        let (met, order) = (self.met.rows(), self.met.places());
        let noise = self.noise.map(|noise| noise.zeptowatts() as f64);
        let bursts = self.bursts.into_rows();
        let senders = self.about.nodes + self.about.interferers;
        let seed = Seed(self.about.seed);
        let newest = order.iter().rev().map(|&place| &met[place as usize]);
        let unheard = Unheard::new(medium, seed, &sent, newest);
        let recorded = Recorded {
            sent: &sent,
            meetings: met,
            airtimes: &airtimes(met),
            bursts: &bursts,
            unheard: unheard.as_ref(),
        };
        let mut receptions = Vec::with_capacity(met.len());
        let mut decibels = Decibels::new();
        resolve(
            (self.about.nodes, senders),
            &recorded,
            order,
            noise,
            |found| {
                let meeting = &met[found.meeting as usize];
                receptions.push(Reception {
                    frame: found.frame,
                    node: meeting.node,
                    from: meeting.from,
                    start: meeting.started,
                    at: meeting.at,
                    power_dbm: decibels.dbm(meeting.power),
                    sinr_db: found.sinr_db,
                    outcome: meeting.outcome,
                    culprit: found.culprit,
                });
            },
        );
        Trace {
            links: links(medium, self.largest),
            receptions,
            // In the same memory.
            frames: sent.into_iter().map(|frame| frame.row()).collect(),
            switches: self.switches.into_rows(),
            readings: self.readings.into_rows(),
            about: self.about,
        }
    }
}

/// The newest frame, in case that the next one begins with it.
#[derive(Clone, Debug)]
struct Newest {
    at: AirTime,
    psdu: [u8; 128],
    octets: usize,
    /// Whether nothing stands for its octets yet.
    open: bool,
}

/// Frames that begin further apart do not add up anywhere: the simulator's window of 8 us, and the time over 100 km.
const NEAR: Duration = Duration::from_micros(400);

impl Default for Newest {
    fn default() -> Newest {
        Newest {
            at: AirTime::ZERO,
            psdu: [0; 128],
            octets: 0,
            open: false,
        }
    }
}

impl Newest {
    fn keep(&mut self, at: AirTime, psdu: &[u8], open: bool) {
        // Frames of 802.15.4 have 127 octets at most.
        self.octets = psdu.len().min(self.psdu.len());
        self.psdu[..self.octets].copy_from_slice(&psdu[..self.octets]);
        (self.at, self.open) = (at, open);
    }
}

/// The times on the air of frames at their receivers, in nanoseconds: 4 s at most.
fn airtimes(met: &[Meeting]) -> Vec<u32> {
    // Frames have few sizes, so they are mostly found where the last one of such a size is.
    const KEPT: usize = 32;
    let none = (u32::MAX, Mode::long(Rate::Dsss1), 0);
    let mut known = [none; KEPT];
    let each = met.iter().map(|meeting| {
        let known = &mut known[meeting.octets as usize % KEPT];
        if (known.0, known.1) != (meeting.octets, meeting.mode) {
            let airtime = meeting.mode.airtime(meeting.octets as usize);
            *known = (meeting.octets, meeting.mode, airtime.nanos() as u32);
        }
        known.2
    });
    each.collect()
}

/// Interferers that a recording tells apart.
const INTERFERERS: usize = 1 << 12;

/// The best links of each node, for the largest frame that was sent.
fn links(medium: &Medium, largest: Option<(usize, Mode)>) -> Vec<Link> {
    let Some((octets, mode)) = largest else {
        return Vec::new();
    };
    let mut links = Vec::new();
    // A medium may have interferers beyond the nodes, which send to no one.
    for from in 0..medium.nodes() {
        let to = medium.hearers(from).map(|to| Link {
            from: from as u32,
            to: to as u32,
            delivery: medium.prr_about(from, to, mode, octets) as f32,
        });
        let mut own: Vec<Link> = to.filter(|link| link.delivery >= 0.01).collect();
        own.sort_by(|a, b| b.delivery.total_cmp(&a.delivery));
        own.truncate(LINKS);
        links.append(&mut own);
    }
    links
}

/// Octets on the air of a PSDU without check sequence: 4 more in 802.11, 2 in 802.15.4.
fn octets(psdu: &[u8], mode: Mode) -> usize {
    psdu.len() + if mode.rate == Rate::Oqpsk250 { 2 } else { 4 }
}

/// A number other than zero that stands for a frame's octets.
fn content(psdu: &[u8]) -> u32 {
    let (words, rest) = psdu.as_chunks::<8>();
    let mix =
        |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let sum = words.iter().fold(psdu.len() as u64, |sum, word| {
        mix(sum, u64::from_le_bytes(*word))
    });
    let sum = rest.iter().fold(sum, |sum, &octet| mix(sum, octet.into()));
    (sum >> 32) as u32 | 1
}

/// The last readings of one node. A node shows the same ones in the same order most of the time, so the next one is usually
/// one of two that came next before: a queue's price, or the next queue if nothing waits in this one.
#[derive(Clone, Debug, Default)]
struct Shown {
    rows: Vec<Known>,
    /// The row of the reading that came last, and that of the one which should come now.
    last: usize,
    next: usize,
}

#[derive(Clone, Debug)]
struct Known {
    reading: Reading,
    /// Rows of readings that came after this one, the newer first.
    then: [usize; 2],
}

impl Shown {
    /// Whether a reading is new or has changed. Most are neither, so the place where it is expected is looked at in the caller's own code.
    #[inline(always)]
    fn changes(&mut self, reading: &Reading) -> bool {
        match self.rows.get(self.next) {
            // The same name is nearly always the same word in memory, and so is that of a state.
            Some(row)
                if row.reading.part == reading.part
                    && std::ptr::eq(row.reading.name, reading.name)
                    && match (row.reading.value, reading.value) {
                        (Value::Number(known), Value::Number(new)) => known == new,
                        (Value::Word(known), Value::Word(new)) => std::ptr::eq(known, new),
                        _ => false,
                    } =>
            {
                (self.last, self.next) = (self.next, row.then[0]);
                false
            }
            _ => {
                let changed = self.seek(*reading);
                self.next = self.rows[self.last].then[0];
                changed
            }
        }
    }

    /// The same where the reading is not what was expected.
    #[inline(never)]
    fn seek(&mut self, reading: Reading) -> bool {
        let newer = self.next;
        let same = |row: &Known| {
            let (known, new) = (row.reading.name, reading.name);
            row.reading.part == reading.part && (std::ptr::eq(known, new) || known == new)
        };
        let is = |place: usize| self.rows.get(place).is_some_and(same);
        let older = self.rows.get(self.last).map_or(0, |row| row.then[1]);
        let at = if is(newer) {
            newer
        } else if is(older) {
            older
        } else {
            let place = self.rows.iter().position(same);
            let at = place.unwrap_or(self.rows.len());
            if let Some(last) = self.rows.get_mut(self.last) {
                last.then = [at, newer];
            }
            at
        };
        self.last = at;
        let Some(known) = self.rows.get_mut(at) else {
            let then = [0; 2];
            self.rows.push(Known { reading, then });
            return true;
        };
        let changed = known.reading.value != reading.value;
        known.reading.value = reading.value;
        changed
    }
}

impl Recorder for Recording {
    fn wants_unheard(&self) -> bool {
        self.unheard
    }

    #[inline]
    fn sent(&mut self, frame: &Sent<'_>) {
        let octets = octets(frame.psdu, frame.mode);
        let content = self.content(frame);
        self.end = self.end.max(frame.at);
        if self.largest.is_none_or(|(most, _)| octets > most) {
            self.largest = Some((octets, frame.mode));
        }
        self.sent.push(Sending {
            node: frame.node as u32,
            number: frame.number as u32,
            at: frame.at,
            airtime: frame.mode.airtime(octets),
            content,
            octets: octets as u32,
            channel: frame.channel,
            label: (self.labeller)(frame.mode.rate, frame.psdu),
        });
    }

    fn interfered(&mut self, burst: &Interference, receivers: Receivers<'_>) {
        let (from, number) = (burst.from as u32, burst.number as u32);
        self.settle();
        self.end = self.end.max(burst.at);
        if burst.from >= self.about.nodes {
            self.meet(burst);
        }
        self.sent.push(Sending {
            node: from,
            number,
            at: burst.at,
            airtime: burst.airtime,
            content: 0,
            octets: burst.octets as u32,
            channel: burst.channel,
            label: Label {
                kind: match (burst.octets, burst.from < self.about.nodes) {
                    (0, true) => "energy",
                    (0, false) => "noise",
                    _ => "foreign",
                },
                ..Label::default()
            },
        });
        self.bursts.push(burst, receivers.as_slice());
    }

    #[inline]
    fn heard(&mut self, frame: &Heard<'_>) {
        if frame.outcome == Err(Loss::TooWeak) && !self.unheard {
            return;
        }
        self.end = self.end.max(frame.at);
        self.met.push(Meeting {
            node: frame.node as u32,
            from: frame.from as u32,
            number: frame.number as u32,
            started: frame.started,
            at: frame.at,
            octets: octets(frame.psdu, frame.mode) as u32,
            mode: frame.mode,
            power: frame.power,
            others: frame.interference,
            outcome: frame.outcome,
        });
    }

    fn switched(&mut self, at: AirTime, node: usize, to: Switched) {
        let node = node as u32;
        self.switches.push(Switch { at, node, to });
    }

    fn wants_readings(&mut self, at: AirTime) -> bool {
        let due = at >= self.next_read;
        if due {
            self.next_read = at + EVERY;
        }
        due
    }

    #[inline(always)]
    fn read(&mut self, at: AirTime, node: usize, reading: Reading) {
        let shown = self.last.get_mut(node);
        if shown.is_some_and(|shown| shown.changes(&reading)) {
            self.note(at, node, reading);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &'static str, part: u32, value: f64) -> Reading {
        let value = Value::Number(value);
        Reading { name, part, value }
    }

    /// Only what is new or has another value changes, in whatever order readings come. Each round but the first finds every reading where
    /// it is expected, also after one that was new in between: method, the place that is expected.
    #[test]
    fn readings_are_found_where_they_came_before() {
        let mut shown = Shown::default();
        let changes = |shown: &mut Shown, round: &[(u32, f64)]| -> Vec<u32> {
            let changed = round
                .iter()
                .filter(|(part, value)| shown.changes(&reading("queue", *part, *value)));
            changed.map(|(part, _)| *part).collect()
        };
        assert_eq!(changes(&mut shown, &[(0, 1.0), (2, 1.0)]), [0, 2]);
        assert_eq!(changes(&mut shown, &[(0, 1.0), (1, 1.0), (2, 1.5)]), [1, 2]);
        assert_eq!(changes(&mut shown, &[(0, 1.0), (1, 1.0), (2, 1.5)]), []);
        for part in [0, 1, 2, 0, 1, 2] {
            let expected = shown.rows[shown.last].then;
            let mut parts = expected.iter().map(|&row| shown.rows[row].reading.part);
            assert!(parts.any(|expected| expected == part), "{part}");
            assert!(!shown.changes(&reading("queue", part, [1.0, 1.0, 1.5][part as usize])));
        }
        assert_eq!(changes(&mut shown, &[(2, 2.0), (0, 3.0), (1, 1.0)]), [2, 0]);
        assert!(shown.changes(&reading("price", 0, 3.0)));
    }
}
