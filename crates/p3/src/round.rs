//! A source's transfer: which packets a round sends, in which order and when, and what an answer changes.

use chappe_core::Instant;

use crate::config::Config;
use crate::frame::Form;
use crate::groups::{Groups, PerGroup};
use crate::header::{Flags, Header, Kind, Nack};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::repair::{Factors, UNKNOWN_MAX};
use crate::window::{WINDOW, Window};

/// A transfer in progress.
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
    /// Combinations that the destination lacks, as far as it told. Improved variant.
    pub deficit: u16,
    pub round: u16,
    pub groups: Groups,
    pub fruitless: u8,
    pub pass: Pass,
}

/// One way through the frames of a round, or through its CTRL alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// When its first frame starts.
    pub anchor: Instant,
    /// Frames so far.
    pub frames: u64,
    /// All relays of a stage are one group.
    pub both: bool,
    /// They were for the packets of this round; a CTRL that is sent again may differ.
    pub data_both: bool,
    /// The next packet to look at.
    pub cursor: u32,
    /// Combinations so far, and how many it shall be.
    pub coded: u8,
    pub combinations: u8,
    /// CTRL frames so far.
    pub copies: u8,
    /// How often the CTRL of this round has been tried.
    pub attempt: u8,
    /// When its last frame started.
    pub last_start: Instant,
}

impl Transfer {
    pub fn new(config: &Config, plan: Plan, packets: u32, anchor: Instant) -> Transfer {
        let first = plan.first().min(packets);
        let mut transfer = Transfer {
            plan,
            packets,
            due: Window::new(first),
            end: first,
            segment: first,
            deficit: 0,
            round: 0,
            groups: Groups::new(plan.groups()),
            fruitless: 0,
            pass: Pass {
                anchor,
                frames: 0,
                both: plan.is_single(),
                data_both: plan.is_single(),
                cursor: first,
                coded: 0,
                combinations: 0,
                copies: 0,
                attempt: 1,
                last_start: anchor,
            },
        };
        if plan.is_resumed() {
            // The destination may have any packet of its window: ask before sending.
            let most = match plan.improved() {
                Some(_) => u32::from(config.segment),
                None => WINDOW,
            };
            transfer.end = first.saturating_add(most).min(packets);
        } else {
            transfer.add_segment(config);
            transfer.pass.combinations = plan.improved().map_or(0, |improved| improved.repair);
        }
        transfer
    }

    /// New packets join the next round, as far as the window goes.
    fn add_segment(&mut self, config: &Config) {
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
        let period = match self.pass.both {
            true => config.single_period(&self.plan),
            false => self.plan.cycle(),
        };
        self.pass.anchor + period * self.pass.frames
    }

    /// Whether this round has combinations only, of the few packets that are missing.
    pub fn is_coded(&self) -> bool {
        self.plan.improved().is_some() && self.pass.cursor == u32::MAX
    }

    pub fn factors(&self) -> Factors {
        Factors::new(&self.plan, self.segment, self.round as u8)
    }

    /// The packets that are still to come.
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let next = |at: u32| self.due.next(at, self.end);
        core::iter::successors(next(self.due.base()), move |&packet| next(packet + 1))
    }

    /// Takes in a NACK; whether anything of this round had arrived. `None` if it is not of this window.
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
        let (mut rank, mut at) = (0usize, self.due.base());
        let groups = usize::from(self.plan.groups().max(1));
        while let Some(packet) = self.due.next(at, self.end) {
            let lost = if packet < base {
                Some(false)
            } else {
                is_missing(packet)
            };
            let group = if self.pass.data_both {
                0
            } else {
                rank % groups
            };
            if let (Some(lost), Some(sent), Some(missing)) =
                (lost, sent.get_mut(group), missing.get_mut(group))
            {
                *sent += 1;
                *missing += u32::from(lost);
            }
            rank += 1;
            at = packet + 1;
        }
        let less = self.is_coded() && nack.missing < self.deficit;
        if !self.is_coded() {
            self.groups.observe(self.pass.data_both, sent, missing);
        }
        self.deficit = nack.missing;
        self.due.advance(base);
        (base..self.end).for_each(|packet| {
            self.due.set(packet, is_missing(packet) == Some(true));
        });
        Some(sent != missing || less)
    }

    /// Begins the next round at `anchor`. `told` is whether the NACK told of all packets sent so far.
    pub fn next_round(&mut self, config: &Config, anchor: Instant, told: bool) {
        let improved = self.plan.improved();
        let few = self.missing().take(UNKNOWN_MAX + 1).count();
        // The improved variant finishes a segment before the next: its sums are of one segment.
        if told && (improved.is_none() || few == 0) {
            self.add_segment(config);
        }
        let coded = improved.is_some() && (1..=UNKNOWN_MAX).contains(&few);
        let margin = u16::from(config.repair_margin);
        let combinations = match improved {
            Some(_) if coded => self.deficit.saturating_add(margin).min(255) as u8,
            Some(improved) => improved.repair,
            None => 0,
        };
        self.round = self.round.wrapping_add(1);
        let both = self.plan.is_single() || self.groups.single();
        self.pass = Pass {
            anchor,
            frames: 0,
            both,
            data_both: both,
            cursor: if coded { u32::MAX } else { self.due.base() },
            coded: 0,
            combinations,
            copies: 0,
            attempt: 1,
            last_start: anchor,
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
        form: &Form,
        out: &'a mut Outbox,
        kind: Kind,
        flags: Flags,
        sequence: u16,
    ) -> &'a mut [u8] {
        let header = self.header(kind, flags, sequence);
        form.begin(out, &header, form.data_len(&self.plan))
    }
}

/// What the source sends next.
pub(crate) enum Next {
    Data(u32),
    Coded(u8),
    Ctrl { left: u8 },
    Nothing,
}

impl Pass {
    /// The next frame of the pass: its packets in order, its combinations, then one CTRL per group.
    pub fn pick(&mut self, due: &Window, end: u32, groups: u8) -> Next {
        if let Some(packet) = due.next(self.cursor, end) {
            self.cursor = packet + 1;
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
        Flags {
            group: if self.both {
                0
            } else {
                (self.frames % u64::from(groups.max(1))) as u8
            },
            both: self.both,
            ..Flags::default()
        }
    }
}
