//! Who destroyed a frame, and at what ratio of signal to interference: worked out from the recorded signals once the run is
//! over, so that the run itself does not pay for it.

use chappe_core::Duration;
use chappe_sim::{AirTime, Loss, Power};

use crate::decibels::Decibels;
use crate::event::{Burst, Meeting, Sending};
use crate::rows::NO_FRAME;
use crate::unheard::Unheard;

/// Identical frames that begin within this time add up at a receiver: the simulator's window (`chappe_sim`'s `joint`).
const ALLIED: Duration = Duration::from_micros(8);

/// What is known of one meeting beyond what the simulator said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finding {
    /// The meeting's place among those recorded.
    pub(crate) meeting: u32,
    pub(crate) frame: u32,
    pub(crate) culprit: u32,
    /// NaN where the network has no powers, or where the receiver did not listen.
    pub(crate) sinr_db: f32,
}

/// What is known of a run. Frames are in order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) sent: &'a [Sending],
    /// Frames at their receivers, as they lie in the ring.
    pub(crate) meetings: &'a [Meeting],
    /// Their times on the air in nanoseconds.
    pub(crate) airtimes: &'a [u32],
    pub(crate) bursts: &'a [Burst],
    pub(crate) unheard: Option<&'a Unheard<'a>>,
}

/// Gives `take` the findings in the order of the meetings' starts, at nodes below `nodes`; frames come from `senders`, which are nodes and then interferers.
/// `order` has the places of the meetings in the order in which they were reported, which those that start together keep. `noise` is in
/// zeptowatts; `None` without powers.
pub(crate) fn resolve(
    (nodes, senders): (usize, usize),
    recorded: &Recorded<'_>,
    mut order: Vec<u32>,
    noise: Option<f64>,
    mut take: impl FnMut(Finding),
) {
    let meetings = recorded.meetings;
    // Outcomes are reported when they are known, so frames that are lost at once come first.
    sort(&mut order, |&place| meetings[place as usize].started);
    let places = Places::of(senders, recorded.sent);
    let mut by_node: Vec<Signals> = Vec::new();
    by_node.resize_with(nodes, Signals::default);
    // From the last to the first, so that each knows which one comes after it.
    let mut after = vec![NONE; meetings.len()];
    for &place in order.iter().rev() {
        let meeting = &meetings[place as usize];
        if let Some(signals) = by_node.get_mut(meeting.node as usize) {
            after[place as usize] = std::mem::replace(&mut signals.heard, place);
        }
    }
    for burst in recorded.bursts {
        if let Some(signals) = by_node.get_mut(burst.node as usize) {
            signals.bursts.push(Signal {
                from: Origin::Frame(places.find(burst.from, burst.number)),
                start: burst.start,
                end: burst.end,
                power: burst.power.zeptowatts() as f64,
            });
        }
    }
    for (place, frame) in (0u32..).zip(recorded.sent) {
        if let Some(signals) = by_node.get_mut(frame.node as usize) {
            signals
                .own
                .push((place, frame.at, frame.at + frame.airtime));
        }
    }
    by_node.iter_mut().for_each(Signals::sort);
    let air = Air {
        recorded,
        after: &after,
        places: &places,
        noise,
    };
    let mut desk = Desk {
        hostile: Vec::new(),
        decibels: Decibels::new(),
    };
    // In the order of time, in which all nodes' signals lie as well: node by node, every step would wait for the memory.
    for place in order {
        take(
            match by_node.get_mut(meetings[place as usize].node as usize) {
                Some(signals) => signals.finding(place, &air, &mut desk),
                None => Finding::none(place),
            },
        );
    }
}

/// The place of no meeting: none follows.
const NONE: u32 = u32::MAX;

/// Room to work in.
struct Desk {
    hostile: Vec<Signal>,
    decibels: Decibels,
}

/// What all nodes share.
#[derive(Clone, Copy)]
struct Air<'a> {
    recorded: &'a Recorded<'a>,
    /// For each meeting the next one at the same node, in the order of their starts; [`NONE`] after the last.
    after: &'a [u32],
    places: &'a Places,
    noise: Option<f64>,
}

impl Air<'_> {
    /// Where the frame of a signal stands among those sent.
    fn frame(&self, signal: &Signal) -> u32 {
        match signal.from {
            Origin::Frame(frame) => frame,
            Origin::Meeting(place) => {
                let meeting = &self.recorded.meetings[place as usize];
                self.places.find(meeting.from, meeting.number)
            }
        }
    }

    /// The signal of the meeting at a place.
    #[inline(always)]
    fn signal(&self, place: u32) -> Signal {
        let Recorded {
            meetings, airtimes, ..
        } = *self.recorded;
        let meeting = &meetings[place as usize];
        let lasts = Duration::from_nanos(airtimes[place as usize].into());
        Signal {
            from: Origin::Meeting(place),
            start: meeting.started,
            end: meeting.started + lasts,
            power: meeting.power.zeptowatts() as f64,
        }
    }

    /// What stands for the octets of a frame.
    fn content(&self, frame: u32) -> u32 {
        let frame = self.recorded.sent.get(frame as usize);
        frame.map_or(0, |frame| frame.content)
    }
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
    fn none(meeting: u32) -> Finding {
        Finding {
            meeting,
            frame: NO_FRAME,
            culprit: NO_FRAME,
            sinr_db: f32::NAN,
        }
    }
}

/// What a signal is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// The meeting at this place.
    Meeting(u32),
    /// The frame or burst at this place among those sent.
    Frame(u32),
}

/// A signal as one receiver met it.
#[derive(Clone, Copy, Debug)]
struct Signal {
    from: Origin,
    start: AirTime,
    end: AirTime,
    power: f64,
}

impl Signal {
    /// A frame that was too weak to be recorded.
    fn of((frame, sent, power): (u32, &Sending, Power)) -> Signal {
        Signal {
            from: Origin::Frame(frame),
            start: sent.at,
            end: sent.at + sent.airtime,
            power: power.zeptowatts() as f64,
        }
    }
}

/// Sorts rows by a time that most of them are already in the order of; those of equal times keep their order. A few steps back for
/// each row are less work than a sort that knows nothing of the order, and more are not done.
fn sort<T: Copy>(rows: &mut [T], time: impl Fn(&T) -> AirTime) {
    let mut left = STEPS.saturating_mul(rows.len());
    for next in 1..rows.len() {
        let row = rows[next];
        let at = time(&row);
        let mut free = next;
        while free > 0 && time(&rows[free - 1]) > at {
            rows[free] = rows[free - 1];
            free -= 1;
        }
        rows[free] = row;
        left = left.saturating_sub(next - free);
        if left == 0 {
            rows.sort_by_key(time);
            return;
        }
    }
}

/// Steps back for each row, on average, that [`sort`] does before it gives up.
const STEPS: usize = 32;

/// A meeting that other signals may have disturbed.
struct Case<'a> {
    place: u32,
    meeting: &'a Meeting,
    frame: u32,
    own: Signal,
    /// Until when it can have been disturbed.
    until: AirTime,
    content: u32,
}

impl Case<'_> {
    /// Whether another signal has the same octets at the same time, and so adds to this one.
    #[inline(always)]
    fn is_allied(&self, other: &Signal, air: &Air<'_>) -> bool {
        self.content != 0
            && other.start.saturating_since(self.own.start) <= ALLIED
            && self.own.start.saturating_since(other.start) <= ALLIED
            && self.content == air.content(air.frame(other))
    }
}

/// All signals at one node: those of others, and its own frames. Meetings are asked for in the order of their starts, so a signal that ends
/// before one of them matters to none that follows.
#[derive(Debug)]
struct Signals {
    /// The first meeting that has not begun; [`NONE`] after the last.
    heard: u32,
    /// Bursts of interferers, in the order of their starts once they are sorted.
    bursts: Vec<Signal>,
    /// The meetings and the bursts that have begun but not ended, each in the order of their starts.
    present: [Vec<Signal>; 2],
    /// The first burst that has not begun.
    next: usize,
    /// No present signal ends before, and none ends after.
    soonest: AirTime,
    latest: AirTime,
    own: Vec<(u32, AirTime, AirTime)>,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals {
            heard: NONE,
            bursts: Vec::new(),
            present: [Vec::new(), Vec::new()],
            next: 0,
            soonest: NEVER,
            latest: AirTime::ZERO,
            own: Vec::new(),
        }
    }
}

/// A moment after the end of every signal.
const NEVER: AirTime = AirTime::from_nanos(u64::MAX);

impl Signals {
    /// Puts own frames and bursts into the order of their starts; frames of others came in it.
    fn sort(&mut self) {
        sort(&mut self.own, |own| own.1);
        sort(&mut self.bursts, |signal| signal.start);
    }

    /// Meets what begins up to `until`, and leaves behind what has ended at `start`.
    fn pass(&mut self, (start, until): (AirTime, AirTime), air: &Air<'_>) {
        // Mostly nothing has ended, or the only signal.
        if self.soonest <= start {
            self.soonest = NEVER;
            for present in &mut self.present {
                present.retain(|signal| {
                    let stays = signal.end > start;
                    if stays {
                        self.soonest = self.soonest.min(signal.end);
                    }
                    stays
                });
            }
        }
        let [heard, bursts] = &mut self.present;
        let mut begin = |present: &mut Vec<Signal>, signal: Signal| {
            if signal.end > start {
                self.soonest = self.soonest.min(signal.end);
                self.latest = self.latest.max(signal.end);
                present.push(signal);
            }
        };
        while let Some(meeting) = air.recorded.meetings.get(self.heard as usize)
            && meeting.started <= until
        {
            begin(heard, air.signal(self.heard));
            self.heard = air.after[self.heard as usize];
        }
        while let Some(signal) = self.bursts.get(self.next)
            && signal.start <= until
        {
            begin(bursts, *signal);
            self.next += 1;
        }
    }

    /// Whether the meeting at `place` has the air to itself from its start to its end, as most have: then it is passed as well.
    #[inline(always)]
    fn passes_alone(&mut self, place: u32, own: &Signal, air: &Air<'_>) -> bool {
        if self.heard != place || self.latest > own.start {
            return false;
        }
        let after = air.after[place as usize];
        let next = air.recorded.meetings.get(after as usize);
        let burst = self.bursts.get(self.next);
        if next.is_some_and(|next| next.started <= own.end)
            || burst.is_some_and(|burst| burst.start <= own.end)
        {
            return false;
        }
        self.heard = after;
        self.present.iter_mut().for_each(Vec::clear);
        self.soonest = NEVER;
        true
    }

    /// Gives `take` the signals that were met and are present up to `until`, but the meeting `own`.
    #[inline]
    fn others(&self, (own, until): (u32, AirTime), mut take: impl FnMut(&Signal)) {
        for present in &self.present {
            for signal in present {
                if signal.start <= until && signal.from != Origin::Meeting(own) {
                    take(signal);
                }
            }
        }
    }

    /// What is known of the meeting at `place`. It stands in the loop over all of them, its only caller.
    #[inline(always)]
    fn finding(&mut self, place: u32, air: &Air<'_>, desk: &mut Desk) -> Finding {
        let meetings = air.recorded.meetings;
        let meeting = &meetings[place as usize];
        let frame = air.places.find(meeting.from, meeting.number);
        let found = |culprit, sinr_db| Finding {
            meeting: place,
            frame,
            culprit,
            sinr_db,
        };
        // Without a need for other signals they are not looked at.
        match (meeting.outcome, air.noise) {
            (Err(Loss::Transmitting), _) => return found(self.sending_at(meeting.at), f32::NAN),
            (Err(Loss::Asleep | Loss::Down | Loss::OtherChannel), _) | (Ok(()), None) => {
                return found(NO_FRAME, f32::NAN);
            }
            _ => {}
        }
        let own = air.signal(place);
        // What was there at the end comes from the simulator and holds signals that are not recorded; what was there
        // before is known from those that are.
        let others = meeting.others.zeptowatts() as f64;
        let blames = matches!(
            meeting.outcome,
            Err(Loss::Collision | Loss::Captured | Loss::PreambleMissed)
        );
        if !blames && self.passes_alone(place, &own, air) {
            let ratio = air.noise.map(|noise| own.power / (noise + others));
            let sinr_db = ratio.map_or(f32::NAN, |ratio| desk.decibels.of(ratio) as f32);
            return found(NO_FRAME, sinr_db);
        }
        // A frame that was lost at its beginning is judged by what was there then.
        let until = meeting.at.max(own.start).min(own.end);
        self.pass((own.start, until), air);
        let case = Case {
            place,
            meeting,
            frame,
            own,
            until,
            content: air.content(frame),
        };
        let mut sum = Sum::new(own.start);
        self.others((place, until), |other| {
            if !case.is_allied(other, air) {
                sum.add(other);
            }
        });
        let mut most = sum.power;
        let mut culprit = NO_FRAME;
        // One by one only where it matters which they are, or when.
        if blames || (sum.power > others && !sum.at_once()) {
            self.gather(&case, air, &mut desk.hostile);
            culprit = self.culprit(&case, air, &desk.hostile);
            most = peak(&desk.hostile, own.start);
        }
        let sinr_db = air.noise.map_or(f32::NAN, |noise| {
            let ratio = own.power / (noise + most.max(others));
            desk.decibels.of(ratio) as f32
        });
        found(culprit, sinr_db)
    }

    /// Collects the signals that a meeting had against it.
    #[inline(always)]
    fn gather(&self, case: &Case<'_>, air: &Air<'_>, hostile: &mut Vec<Signal>) {
        hostile.clear();
        self.others((case.place, case.until), |other| {
            if !case.is_allied(other, air) {
                hostile.push(*other);
            }
        });
        if let (Err(Loss::Collision), true, Some(unheard)) = (
            case.meeting.outcome,
            hostile.is_empty(),
            air.recorded.unheard,
        ) {
            let pair = (case.frame, case.meeting.node);
            hostile.extend(unheard.at(pair, case.own.start, case.until).map(Signal::of));
        }
    }

    /// The frame that destroyed another, if one did.
    #[inline(always)]
    fn culprit(&self, case: &Case<'_>, air: &Air<'_>, hostile: &[Signal]) -> u32 {
        let strongest = |signals: &mut dyn Iterator<Item = &Signal>| {
            let best = signals.max_by(|a, b| a.power.total_cmp(&b.power));
            best.map_or(NO_FRAME, |signal| air.frame(signal))
        };
        match case.meeting.outcome {
            Err(Loss::Collision) => strongest(&mut hostile.iter()),
            Err(Loss::Captured) => {
                let at = case.meeting.at;
                strongest(&mut hostile.iter().filter(|other| other.start == at))
            }
            // The frame that the receiver was with began before, or is the one that this one adds to.
            Err(Loss::PreambleMissed) => {
                let all = self.present.iter().flatten();
                strongest(&mut all.filter(|other| {
                    other.from != Origin::Meeting(case.place) && other.start <= case.own.start
                }))
            }
            _ => NO_FRAME,
        }
    }

    /// The node's own frame on the air at `at`, or the last one before: a radio also turns around after sending.
    fn sending_at(&self, at: AirTime) -> u32 {
        let next = self.own.partition_point(|own| own.1 <= at);
        next.checked_sub(1)
            .map_or(NO_FRAME, |last| self.own[last].0)
    }
}

/// The sum of signals, and whether all of them are on the air at one moment from a start on.
struct Sum {
    power: f64,
    /// The last beginning and the first end.
    latest: AirTime,
    soonest: AirTime,
}

impl Sum {
    fn new(start: AirTime) -> Sum {
        Sum {
            power: 0.0,
            latest: start,
            soonest: NEVER,
        }
    }

    fn add(&mut self, signal: &Signal) {
        self.power += signal.power;
        self.latest = self.latest.max(signal.start);
        self.soonest = self.soonest.min(signal.end);
    }

    /// Then the sum is the largest at any moment; elsewhere it is no less than that.
    fn at_once(&self) -> bool {
        self.latest < self.soonest
    }
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

#[cfg(test)]
mod tests {
    use chappe_core::{Mode, Rate};

    use super::*;

    /// A time on the air for each frame at its receiver.
    const AIRTIMES: [u32; 4] = [100; 4];

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
            octets: 0,
            mode: Mode::long(Rate::Dsss1),
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
            airtimes: &AIRTIMES[..meetings.len()],
            bursts,
            unheard: None,
        }
    }

    fn found(nodes: (usize, usize), recorded: &Recorded<'_>, noise: Option<f64>) -> Vec<Finding> {
        let order = (0..recorded.meetings.len() as u32).collect();
        let mut findings = Vec::new();
        resolve(nodes, recorded, order, noise, |finding| {
            findings.push(finding);
        });
        findings
    }

    fn findings(sent: &[Sending], met: &[Meeting]) -> Vec<(u32, u32, i32)> {
        let found = found((10, 10), &recorded(sent, met, &[]), Some(10.0));
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

    /// Goal: the moments at which a signal begins are enough. Method: the sum at each multiple of 10 ns, for 2000 drawn sets of none to five
    /// signals whose times are such multiples, of which some are all on the air at once and some not.
    #[test]
    fn the_peak_is_the_largest_sum_at_any_moment() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut together = 0;
        for _ in 0..2000 {
            let start = AirTime::from_nanos(100);
            let signals: Vec<Signal> = (0..draw(6))
                .map(|place| {
                    let begin = 10 * draw(15);
                    Signal {
                        from: Origin::Frame(place as u32),
                        start: AirTime::from_nanos(begin),
                        end: AirTime::from_nanos(begin.max(100) + 10 * (1 + draw(12))),
                        power: draw(1000) as f64,
                    }
                })
                .collect();
            let sum_at = |moment: u64| -> f64 {
                let moment = AirTime::from_nanos(moment);
                let present = signals
                    .iter()
                    .filter(|signal| signal.start <= moment && signal.end > moment);
                present.fold(0.0, |sum, signal| sum + signal.power)
            };
            let largest = (100..400).step_by(10).map(sum_at).fold(0.0, f64::max);
            assert_eq!(peak(&signals, start), largest);
            together +=
                usize::from(largest == signals.iter().map(|signal| signal.power).sum::<f64>());
        }
        assert!((300..1700).contains(&together), "{together}");
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
        let found = found((10, 10), &recorded(&sent, &met, &[]), Some(10.0));
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
            |bursts: &[Burst]| found((10, 12), &recorded(&sent, &met, bursts), Some(10.0))[0];
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
        let found = found((10, 10), &recorded(&[], &met, &[]), None)[0];
        assert_eq!((found.frame, found.sinr_db.is_nan()), (NO_FRAME, true));
    }
}
