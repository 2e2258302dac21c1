//! A source's transfer: which packets a round sends, in which order and when, and what a NACK changes.

use chappe_core::Instant;

use crate::config::Config;
use crate::frame::Frames;
use crate::groups::{Groups, PerGroup, Turns};
use crate::header::{Flags, Header, Kind, Nack};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::recovery::{Recovery, Schedule};
use crate::repair::{Factors, UNKNOWN_MAX};
use crate::window::{WINDOW, Window};

/// A transfer in progress at its source.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub plan: Plan,
    pub packets: u32,
    /// The packets of this round.
    pub due: Window,
    /// One past the last packet that the destination can have.
    pub end: u32,
    /// First packet of the present segment.
    pub segment: u32,
    recovery: Recovery,
    pub round: u16,
    pub groups: Groups,
    pub fruitless: u8,
    /// The group that lost the first missing packet of the last round.
    lost_by: Option<u8>,
    pub pass: Pass,
}

/// One pass over the frames of a round, or over its CTRL alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// When its first frame starts.
    pub anchor: Instant,
    /// Frames sent so far in this pass.
    pub frames: u64,
    /// The group that takes the first frame of this pass.
    pub first_group: u8,
    /// The group of three that gets no packets in this pass.
    pub left_out: Option<u8>,
    /// All relays of a stage are one group.
    pub both: bool,
    /// Whether they were so for the packets of this round; a repeated CTRL may differ.
    pub data_both: bool,
    /// The next packet to look at; `None` where the round has combinations only.
    pub cursor: Option<u32>,
    /// Its packets are a segment that is sent for the first time.
    pub fresh: bool,
    /// Combinations sent so far.
    pub coded: u8,
    /// Combinations that the round has.
    pub combinations: u8,
    /// CTRL frames sent so far in this pass.
    pub copies: u8,
    /// How often the CTRL of this round has been tried.
    pub attempt: u8,
    /// When its last frame started.
    pub last_start: Instant,
}

impl Transfer {
    pub fn new(config: &Config, plan: Plan, packets: u32, anchor: Instant) -> Transfer {
        let first = plan.first().min(packets);
        let recovery = Recovery::new(config, &plan);
        let both = plan.is_single();
        let mut transfer = Transfer {
            plan,
            packets,
            due: Window::new(first),
            end: first,
            segment: first,
            recovery,
            round: 0,
            groups: Groups::new(plan.groups(), plan.cycle(), plan.pair_period(config)),
            fruitless: 0,
            lost_by: None,
            pass: Pass::new(anchor, both, Some(first), 0),
        };
        if plan.is_resumed() {
            // The destination may have any packet of its window: ask before sending.
            transfer.end = first.saturating_add(recovery.span(config)).min(packets);
        } else {
            transfer.add_segment(config);
            transfer.pass.combinations = recovery.first().combinations;
            transfer.pass.fresh = true;
        }
        transfer
    }

    /// Adds new packets to the next round, within the window.
    fn add_segment(&mut self, config: &Config) {
        // The destination's window holds no more.
        let span = self.due.base().saturating_add(WINDOW).min(self.packets);
        let end = self
            .end
            .saturating_add(u32::from(config.segment))
            .min(span)
            .max(self.end);
        (self.end..end).for_each(|packet| self.due.set(packet, true));
        self.segment = self.end;
        self.end = end;
    }

    /// When the next frame of the pass starts: one per cycle, or one in two cycles for one group.
    pub fn next_start(&self, config: &Config) -> Instant {
        let flags = self.pass.flags(self.plan.groups());
        self.pass.anchor + self.plan.period(config, flags) * self.pass.frames
    }

    /// Whether this round has combinations only, of the few packets that are missing.
    pub fn is_coded(&self) -> bool {
        self.pass.cursor.is_none()
    }

    pub fn factors(&self) -> Factors {
        Factors::new(&self.plan, self.segment, self.round as u8)
    }

    /// The packets that are still to come.
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let next = |at: u32| self.due.next(at, self.end);
        core::iter::successors(next(self.due.base()), move |&packet| next(packet + 1))
    }

    /// Takes in a NACK and returns whether anything of this round had arrived. `None` if it is not of this window.
    pub fn account(&mut self, nack: &Nack<'_>) -> Option<bool> {
        let base = self
            .due
            .resolve(nack.base)
            .filter(|base| *base <= self.end)?;
        let is_missing = |packet: u32| {
            let offset = packet.checked_sub(base)?;
            let offset = u16::try_from(offset).ok().filter(|&n| n < nack.covered)?;
            Some(nack.is_missing(offset))
        };
        let (mut sent, mut missing) = (PerGroup::default(), PerGroup::default());
        let (mut rank, mut at) = (0u64, self.due.base());
        let turns = Turns::new(self.plan.groups(), self.pass.left_out);
        let mut lost_by = None;
        // Groups took the frames of a round in turn, so a packet's rank tells its group.
        while let Some(packet) = self.due.next(at, self.end) {
            let lost = if packet < base {
                Some(false)
            } else {
                is_missing(packet)
            };
            let group = if self.pass.data_both {
                0
            } else {
                turns.group(self.pass.first_group, rank)
            };
            if lost == Some(true) && lost_by.is_none() {
                lost_by = Some(group);
            }
            if let (Some(lost), Some(sent), Some(missing)) = (
                lost,
                sent.get_mut(usize::from(group)),
                missing.get_mut(usize::from(group)),
            ) {
                *sent += 1;
                *missing += u32::from(lost);
            }
            rank += 1;
            at = packet + 1;
        }
        self.lost_by = lost_by.filter(|_| !self.is_coded());
        let less = self.recovery.note(nack.missing) && self.is_coded();
        // Combinations are of all missing packets, whichever group they take: nothing is learnt of the groups.
        if !self.is_coded() {
            self.groups.observe(self.pass.data_both, sent, missing);
        }
        // All packets before the NACK's base are stored at the destination.
        self.due.advance(base);
        (base..self.end).for_each(|packet| {
            self.due.set(packet, is_missing(packet) == Some(true));
        });
        Some(sent != missing || less)
    }

    /// Begins the next round at `anchor`. `told` is whether the NACK covered all packets sent so far.
    pub fn next_round(&mut self, config: &Config, anchor: Instant, told: bool) {
        let few = self.missing().take(UNKNOWN_MAX + 1).count();
        let Schedule {
            new_segment,
            packets,
            combinations,
        } = self.recovery.next(told, few);
        if new_segment {
            self.add_segment(config);
        }
        self.round = self.round.wrapping_add(1);
        // What the last rounds measured decides which groups take part in this one, and whether all relays are one.
        let both = self.plan.is_single() || self.groups.single();
        let left_out = self.groups.decide().filter(|_| !both);
        let cursor = packets.then_some(self.due.base());
        // What one group lost travels by another in the next round, or a single packet would never pass a dead group: the
        // first missing packet goes by the group after the one that lost it. Combinations go on in turn.
        let turns = Turns::new(self.plan.groups(), left_out);
        let first_group = turns.after(self.lost_by.unwrap_or(self.pass.first_group));
        self.pass = Pass {
            first_group,
            left_out,
            fresh: new_segment,
            ..Pass::new(anchor, both, cursor, combinations)
        };
    }
}

impl Transfer {
    pub fn header(&self, kind: Kind, flags: Flags, sequence: u16) -> Header {
        Header {
            kind,
            transfer: self.plan.transfer(),
            hop: 0,
            flags,
            sequence,
            round: self.round as u8,
        }
    }

    /// Begins a frame of full length; returns its body, zeroed.
    pub fn begin<'a>(
        &self,
        frames: &Frames,
        out: &'a mut Outbox,
        kind: Kind,
        flags: Flags,
        sequence: u16,
    ) -> &'a mut [u8] {
        let header = self.header(kind, flags, sequence);
        frames.begin(out, &self.plan, &header, frames.data_len(&self.plan))
    }
}

/// What the source sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Data(u32),
    Coded(u8),
    Ctrl { left: u8 },
    Nothing,
}

impl Pass {
    fn new(anchor: Instant, both: bool, cursor: Option<u32>, combinations: u8) -> Pass {
        Pass {
            anchor,
            frames: 0,
            first_group: 0,
            left_out: None,
            both,
            data_both: both,
            cursor,
            fresh: false,
            coded: 0,
            combinations,
            copies: 0,
            attempt: 1,
            last_start: anchor,
        }
    }

    /// The next frame of the pass: its packets in order, its combinations, then one CTRL per group.
    pub fn pick(&mut self, due: &Window, end: u32, groups: u8) -> Next {
        let packet = self.cursor.and_then(|cursor| due.next(cursor, end));
        if let Some(packet) = packet {
            self.cursor = Some(packet + 1);
            return Next::Data(packet);
        }
        if self.coded < self.combinations {
            self.coded += 1;
            return Next::Coded(self.coded - 1);
        }
        let copies = if self.both { 1 } else { groups };
        if self.copies < copies {
            self.copies += 1;
            let left = copies - self.copies;
            return Next::Ctrl { left };
        }
        Next::Nothing
    }

    pub fn flags(&self, groups: u8) -> Flags {
        let turns = Turns::new(groups, self.left_out);
        let left_out = self.left_out.filter(|_| !self.both);
        // The question comes first by the group that is left out: an answer then says that it works again.
        let asks = left_out.filter(|_| self.copies == 1);
        Flags {
            group: match asks {
                _ if self.both => 0,
                Some(out) => out,
                None => turns.group(self.first_group, self.frames),
            },
            both: self.both,
            left_out,
            ..Flags::default()
        }
    }
}
