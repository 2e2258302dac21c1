//! Who destroyed a frame, and at what ratio of signal to interference: worked out from the recorded signals once the run is
//! over, so that the run itself does not pay for it.

use chappe_core::Duration;
use chappe_sim::{AirTime, Loss, Power};

use crate::event::{Burst, Meeting, Sending};
use crate::rows::NO_FRAME;
use crate::unheard::Unheard;

/// Identical frames that begin within this time add up at a receiver: the simulator's window (`chappe_sim`'s `joint`).
const ALLIED: Duration = Duration::from_micros(8);

/// What is known of one meeting beyond what the simulator said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) frame: u32,
    pub(crate) culprit: u32,
    /// NaN where the network has no powers, or where the receiver did not listen.
    pub(crate) sinr_db: f32,
}

/// What is known of a run, in order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) sent: &'a [Sending],
    pub(crate) meetings: &'a [Meeting],
    pub(crate) bursts: &'a [Burst],
    pub(crate) unheard: Option<&'a Unheard<'a>>,
}

/// Findings in the order of `meetings`, which must be that of their starts, at nodes below `nodes`; frames come from `senders`, which are
/// nodes and then interferers. `noise` is in zeptowatts; `None` without powers.
pub(crate) fn resolve(
    (nodes, senders): (usize, usize),
    recorded: &Recorded<'_>,
    noise: Option<f64>,
) -> Vec<Finding> {
    let Recorded {
        sent,
        meetings,
        bursts,
        unheard,
    } = *recorded;
    let places = Places::of(senders, sent);
    let mut by_node: Vec<Signals> = Vec::new();
    by_node.resize_with(nodes, Signals::default);
    for (place, meeting) in meetings.iter().enumerate() {
        let frame = places.find(meeting.from, meeting.number);
        let Some(signals) = by_node.get_mut(meeting.node as usize) else {
            continue;
        };
        signals.heard.push(Signal {
            place,
            frame,
            start: meeting.started,
            end: meeting.started + Duration::from_nanos(meeting.airtime.into()),
            power: meeting.power.zeptowatts() as f64,
            content: sent.get(frame as usize).map_or(0, |frame| frame.content),
        });
    }
    for burst in bursts {
        if let Some(signals) = by_node.get_mut(burst.node as usize) {
            signals.add_burst(Signal {
                place: usize::MAX,
                frame: places.find(burst.from, burst.number),
                start: burst.start,
                end: burst.end,
                power: burst.power.zeptowatts() as f64,
                content: 0,
            });
        }
    }
    for (place, frame) in (0u32..).zip(sent) {
        if let Some(signals) = by_node.get_mut(frame.node as usize) {
            signals
                .own
                .push((place, frame.at, frame.at + frame.airtime));
        }
    }
    let mut findings = vec![Finding::NONE; meetings.len()];
    let mut hostile = Vec::new();
    by_node.iter_mut().for_each(Signals::sort);
    // In the order of time, in which all nodes' signals lie as well: node by node, every step would wait for the memory.
    let mut next = vec![0; nodes];
    for (meeting, finding) in meetings.iter().zip(&mut findings) {
        let node = meeting.node as usize;
        let Some((signals, i)) = by_node.get(node).zip(next.get_mut(node)) else {
            continue;
        };
        *finding = signals.finding(*i, meeting, (noise, unheard), &mut hostile);
        *i += 1;
    }
    findings
}

/// Where each frame stands among those sent. A node numbers its frames one by one, so each node needs a list only.
struct Places(Vec<(u32, Vec<u32>)>);

impl Places {
    fn of(nodes: usize, sent: &[Sending]) -> Places {
        let mut places: Vec<(u32, Vec<u32>)> = vec![(0, Vec::new()); nodes];
        for (place, frame) in (0u32..).zip(sent) {
            let Some((first, own)) = places.get_mut(frame.node as usize) else {
                continue;
            };
            if own.is_empty() {
                *first = frame.number;
            }
            // A number that was never on the air, of a frame that was withdrawn, leaves a gap.
            let ahead = frame.number.wrapping_sub(*first) as usize;
            if ahead >= own.len() && ahead <= own.len() + GAP {
                own.resize(ahead + 1, NO_FRAME);
            }
            if let Some(entry) = own.get_mut(ahead) {
                *entry = place;
            }
        }
        Places(places)
    }

    fn find(&self, node: u32, number: u32) -> u32 {
        let own = self.0.get(node as usize);
        let place = own.and_then(|(first, own)| own.get(number.wrapping_sub(*first) as usize));
        place.copied().unwrap_or(NO_FRAME)
    }
}

/// The longest run of numbers without frames; a longer one would be a defect and must not take memory.
const GAP: usize = 1 << 16;

impl Finding {
    const NONE: Finding = Finding {
        frame: NO_FRAME,
        culprit: NO_FRAME,
        sinr_db: f32::NAN,
    };
}

/// A frame as one receiver met it.
#[derive(Clone, Copy, Debug)]
struct Signal {
    place: usize,
    frame: u32,
    start: AirTime,
    end: AirTime,
    power: f64,
    content: u32,
}

/// All signals at one node: those of others, and its own frames.
#[derive(Debug, Default)]
struct Signals {
    heard: Vec<Signal>,
    own: Vec<(u32, AirTime, AirTime)>,
    longest: Duration,
    /// Bursts of interferers, in groups of similar length: one that lasts for minutes must not make the search among short ones long.
    bursts: Vec<(u32, Vec<Signal>)>,
}

impl Signals {
    fn add_burst(&mut self, signal: Signal) {
        let magnitude = signal.lasts().nanos().checked_ilog2().unwrap_or(0);
        match self.bursts.iter_mut().find(|group| group.0 == magnitude) {
            Some((_, group)) => group.push(signal),
            None => self.bursts.push((magnitude, vec![signal])),
        }
    }

    /// Puts own frames and bursts into the order of their starts; frames of others came in it.
    fn sort(&mut self) {
        self.own.sort_by_key(|own| own.1);
        for (_, group) in &mut self.bursts {
            group.sort_by_key(|signal| signal.start);
        }
        let spans = self.heard.iter().map(Signal::lasts);
        self.longest = spans.max().unwrap_or(Duration::ZERO);
    }

    /// The other signals that are present at any time from `start` to `until`, both included.
    fn others(&self, i: usize, until: AirTime) -> impl Iterator<Item = &Signal> {
        let own = &self.heard[i];
        let bursts = self.bursts.iter().flat_map(move |(magnitude, group)| {
            // All of a group are shorter than twice its shortest.
            let longest = Duration::from_nanos(2u64.saturating_pow(*magnitude + 1));
            between(group, own.start, until, longest)
        });
        between(&self.heard, own.start, until, self.longest)
            .chain(bursts)
            .filter(move |signal| signal.place != own.place && signal.end > own.start)
    }

    /// What is known of one signal; `hostile` is room to work in.
    fn finding(
        &self,
        i: usize,
        meeting: &Meeting,
        (noise, unheard): (Option<f64>, Option<&Unheard<'_>>),
        hostile: &mut Vec<Signal>,
    ) -> Finding {
        let own = self.heard[i];
        // A frame that was lost at its beginning is judged by what was there then.
        let until = meeting.at.max(own.start).min(own.end);
        let allied = |other: &&Signal| {
            own.content != 0
                && own.content == other.content
                && other.start.saturating_since(own.start) <= ALLIED
                && own.start.saturating_since(other.start) <= ALLIED
        };
        hostile.clear();
        hostile.extend(self.others(i, until).filter(|other| !allied(other)));
        if let (Err(Loss::Collision), true, Some(unheard)) =
            (meeting.outcome, hostile.is_empty(), unheard)
        {
            let weak = unheard.at((own.frame, meeting.node), own.start, until);
            hostile.extend(weak.map(|(frame, sent, power)| Signal {
                place: usize::MAX,
                frame,
                start: sent.at,
                end: sent.at + sent.airtime,
                power: power.zeptowatts() as f64,
                content: sent.content,
            }));
        }
        let strongest = |signals: &mut dyn Iterator<Item = &Signal>| {
            let best = signals.max_by(|a, b| a.power.total_cmp(&b.power));
            best.map_or(NO_FRAME, |signal| signal.frame)
        };
        let culprit = match meeting.outcome {
            Ok(()) => NO_FRAME,
            Err(Loss::Collision) => strongest(&mut hostile.iter()),
            Err(Loss::Captured) => {
                strongest(&mut hostile.iter().filter(|other| other.start == meeting.at))
            }
            // The frame that the receiver was with began before, or is the one that this one adds to.
            Err(Loss::PreambleMissed) => {
                let before = |other: &&Signal| other.start <= own.start;
                strongest(&mut self.others(i, until).filter(before))
            }
            Err(Loss::Transmitting) => self.sending_at(meeting.at),
            Err(_) => NO_FRAME,
        };
        let silent = matches!(
            meeting.outcome,
            Err(Loss::Transmitting | Loss::Asleep | Loss::Down | Loss::OtherChannel)
        );
        let sinr_db = match noise {
            Some(noise) if !silent => {
                // What was there at the end comes from the simulator and holds signals that are not recorded; what was there
                // before is known from those that are.
                let others = meeting.others.zeptowatts() as f64;
                let ratio = own.power / (noise + peak(hostile, own.start).max(others));
                (10.0 * ratio.log10()) as f32
            }
            _ => f32::NAN,
        };
        Finding {
            frame: own.frame,
            culprit,
            sinr_db,
        }
    }

    /// The node's own frame on the air at `at`, or the last one before: a radio also turns around after sending.
    fn sending_at(&self, at: AirTime) -> u32 {
        let next = self.own.partition_point(|own| own.1 <= at);
        next.checked_sub(1)
            .map_or(NO_FRAME, |last| self.own[last].0)
    }
}

impl Signal {
    fn lasts(&self) -> Duration {
        self.end.saturating_since(self.start)
    }
}

/// Of signals in the order of their starts, none longer than `longest`: those that may be present between two moments.
fn between(
    signals: &[Signal],
    start: AirTime,
    until: AirTime,
    longest: Duration,
) -> impl Iterator<Item = &Signal> {
    let earliest = AirTime::from_nanos(start.nanos().saturating_sub(longest.nanos()));
    let from = signals.partition_point(|signal| signal.start < earliest);
    let later = signals[from..].iter();
    later.take_while(move |signal| signal.start <= until)
}

/// The largest sum of signals present at one moment from `start` on. It changes upwards only where a signal begins.
fn peak(signals: &[Signal], start: AirTime) -> f64 {
    let at = |moment: AirTime| -> f64 {
        let present = signals
            .iter()
            .filter(|signal| signal.start <= moment && signal.end > moment);
        present.map(|signal| signal.power).sum()
    };
    let begins = signals.iter().map(|signal| signal.start.max(start));
    begins.map(at).fold(0.0, f64::max)
}

/// A power as dBm; none at all is minus infinity.
pub(crate) fn dbm(power: Power) -> f32 {
    // One milliwatt is 10^18 zeptowatts.
    (10.0 * (power.zeptowatts() as f64).log10() - 180.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(node: u32, at: u64, content: u32) -> Sending {
        Sending {
            node,
            at: AirTime::from_nanos(at),
            airtime: Duration::from_nanos(100),
            content,
            ..Sending::default()
        }
    }

    fn meeting(from: u32, start: u64, at: u64, power: u64, outcome: Result<(), Loss>) -> Meeting {
        Meeting {
            node: 9,
            from,
            number: 0,
            started: AirTime::from_nanos(start),
            at: AirTime::from_nanos(at),
            airtime: 100,
            power: Power::from_zeptowatts(power),
            others: Power::ZERO,
            outcome,
        }
    }

    fn recorded<'a>(
        sent: &'a [Sending],
        meetings: &'a [Meeting],
        bursts: &'a [Burst],
    ) -> Recorded<'a> {
        Recorded {
            sent,
            meetings,
            bursts,
            unheard: None,
        }
    }

    fn findings(sent: &[Sending], met: &[Meeting]) -> Vec<(u32, u32, i32)> {
        let found = resolve((10, 10), &recorded(sent, met, &[]), Some(10.0));
        let rows = found.iter();
        rows.map(|row| (row.frame, row.culprit, row.sinr_db.round() as i32))
            .collect()
    }

    #[test]
    fn the_strongest_overlap_is_to_blame() {
        let sent = [
            sending(0, 0, 0),
            sending(1, 50, 0),
            sending(2, 60, 0),
            sending(3, 150, 0),
        ];
        let lost = Err(Loss::Collision);
        let met = [
            meeting(0, 0, 100, 1000, lost),
            meeting(1, 50, 50, 90, Err(Loss::PreambleMissed)),
            meeting(2, 60, 60, 400, Err(Loss::PreambleMissed)),
            // Begins when the others are over, except for frames 1 and 2, which end at 150 and 160.
            meeting(3, 170, 270, 1000, Ok(())),
        ];
        // 1000 over 10 + 90 + 400 is 3 dB; 90 over 10 + 1000 is -11 dB; 1000 over 10 is 20 dB.
        assert_eq!(
            findings(&sent, &met),
            [(0, 2, 3), (1, 0, -11), (2, 0, -4), (3, NO_FRAME, 20)]
        );
    }

    /// A signal that has ended before another begins never adds to it.
    #[test]
    fn interference_is_the_largest_sum_at_one_moment() {
        let sent = [sending(0, 100, 0), sending(1, 10, 0), sending(2, 150, 0)];
        let met = [
            meeting(1, 10, 110, 90, Err(Loss::TooWeak)),
            meeting(0, 100, 200, 1000, Err(Loss::Collision)),
            meeting(2, 150, 150, 90, Err(Loss::PreambleMissed)),
        ];
        assert_eq!(findings(&sent, &met)[1].2, 10);
    }

    #[test]
    fn own_frames_and_stronger_ones_are_named() {
        let sent = [sending(0, 0, 0), sending(9, 40, 0), sending(2, 60, 0)];
        let met = [
            meeting(0, 0, 40, 1000, Err(Loss::Transmitting)),
            meeting(2, 60, 60, 90, Err(Loss::Transmitting)),
        ];
        let found = resolve((10, 10), &recorded(&sent, &met, &[]), Some(10.0));
        assert_eq!((found[0].culprit, found[1].culprit), (1, 1));
        assert!(found[0].sinr_db.is_nan());
        let met = [
            meeting(0, 0, 60, 100, Err(Loss::Captured)),
            meeting(2, 60, 160, 90_000, Ok(())),
        ];
        assert_eq!(findings(&sent, &met)[0].1, 2);
    }

    /// Goal: a jammer is found among its bursts, short and long ones. Method: 1000 short bursts before, one that lasts, one that hits.
    #[test]
    fn interferers_are_to_blame() {
        let burst = |from, number, start: u64, lasts: u64, power| Burst {
            node: 9,
            from,
            number,
            start: AirTime::from_nanos(start),
            end: AirTime::from_nanos(start + lasts),
            power: Power::from_zeptowatts(power),
        };
        let mut sent = vec![sending(0, 5000, 0)];
        let mut bursts = Vec::new();
        for number in 0..1001 {
            let at = 5 * u64::from(number) + 30;
            sent.push(Sending {
                number,
                ..sending(10, at, 0)
            });
            bursts.push(burst(10, number, at, 4, 500));
        }
        sent.push(sending(11, 0, 0));
        bursts.push(burst(11, 0, 0, 1 << 40, 40));
        let met = [meeting(0, 5000, 5100, 1000, Err(Loss::Collision))];
        let found =
            |bursts: &[Burst]| resolve((10, 12), &recorded(&sent, &met, bursts), Some(10.0))[0];
        // Bursts 994 to 1000 begin between 5000 and 5030: never two at a time.
        let both = found(&bursts);
        assert_eq!(sent[both.culprit as usize].node, 10);
        assert!((995..=1001).contains(&both.culprit));
        // 1000 over 10 + 500 + 40.
        assert_eq!((both.sinr_db * 10.0).round(), 26.0);
        let lasting = found(&bursts[1001..]);
        assert_eq!(sent[lasting.culprit as usize].node, 11);
        assert_eq!(lasting.sinr_db.round(), 13.0);
    }

    /// Identical frames at the same moment help each other.
    #[test]
    fn identical_frames_are_no_interference() {
        let sent = [sending(0, 0, 7), sending(1, 0, 7)];
        let met = [
            meeting(0, 0, 100, 1000, Ok(())),
            meeting(1, 1, 1, 900, Err(Loss::PreambleMissed)),
        ];
        assert_eq!(findings(&sent, &met), [(0, NO_FRAME, 20), (1, 0, 20)]);
    }

    #[test]
    fn without_powers_there_is_no_ratio() {
        let met = [meeting(0, 0, 100, 1000, Ok(()))];
        let found = resolve((10, 10), &recorded(&[], &met, &[]), None)[0];
        assert_eq!((found.frame, found.sinr_db.is_nan()), (NO_FRAME, true));
    }
}
