//! Signals that were too weak to be recorded: on the air they still add up, and destroy frames.
//!
//! A medium's powers follow from the run's seed, so they are worked out again where a collision has no culprit among the recorded
//! signals.

use chappe_core::{Duration, Seed};
use chappe_sim::{AirTime, Medium, Power, Powers};

use crate::event::{Meeting, Sending};

/// Recorded powers that are compared before any is worked out.
const CHECKED: usize = 64;

/// The frames of a run, by which signals at any node are found again.
#[derive(Debug)]
pub(crate) struct Unheard<'a> {
    powers: Powers<'a>,
    nodes: usize,
    sent: &'a [Sending],
    longest: Duration,
}

impl<'a> Unheard<'a> {
    /// `None` for media without powers, and where the powers that were recorded are not those of this medium and seed. `newest` are
    /// meetings, the newest first.
    pub(crate) fn new<'m>(
        medium: &'a Medium,
        seed: Seed,
        sent: &'a [Sending],
        newest: impl Iterator<Item = &'m Meeting>,
    ) -> Option<Unheard<'a>> {
        let nodes = medium.nodes();
        let own = sent.iter().filter(|frame| (frame.node as usize) < nodes);
        let unheard = Unheard {
            powers: medium.powers(seed)?,
            nodes,
            sent,
            longest: own.map(|frame| frame.airtime).max()?,
        };
        unheard.agrees(newest).then_some(unheard)
    }

    /// Whether recorded powers are found again, bit by bit. The newest frames are all there; the oldest the ring may have dropped.
    fn agrees<'m>(&self, newest: impl Iterator<Item = &'m Meeting>) -> bool {
        let found = newest.filter_map(|meeting| {
            let frames = self.sent.iter().rev().take(1 << 12);
            let mut same =
                frames.filter(|frame| (frame.node, frame.number) == (meeting.from, meeting.number));
            let frame = same.next()?;
            Some(self.power(frame, meeting.node) == Some(meeting.power))
        });
        let (mut all, mut equal) = (0, 0);
        for same in found.take(CHECKED) {
            all += 1;
            equal += usize::from(same);
        }
        all > 0 && equal == all
    }

    fn power(&self, frame: &Sending, node: u32) -> Option<Power> {
        let (from, to) = (frame.node as usize, node as usize);
        self.powers.of(from, to, frame.channel, frame.at)
    }

    /// The frames of other nodes on the channel of frame `own` that were on the air between `start` and `until`: their places among
    /// those sent, and their power at `node`.
    pub(crate) fn at(
        &self,
        (own, node): (u32, u32),
        start: AirTime,
        until: AirTime,
    ) -> impl Iterator<Item = (u32, &'a Sending, Power)> {
        let known = self.sent.get(own as usize);
        let earliest = AirTime::from_nanos(start.nanos().saturating_sub(self.longest.nanos()));
        let from = self.sent.partition_point(|frame| frame.at < earliest);
        let later = (from as u32..).zip(&self.sent[from..]);
        later
            .take_while(move |(_, frame)| frame.at <= until)
            .filter(move |(place, frame)| {
                let other =
                    (frame.node as usize) < self.nodes && frame.node != node && *place != own;
                let there = frame.at + frame.airtime > start;
                other && there && known.is_some_and(|known| known.channel == frame.channel)
            })
            .filter_map(move |(place, frame)| Some((place, frame, self.power(frame, node)?)))
    }
}
