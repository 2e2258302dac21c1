//! The sending half of a link: what is under way, what is lost, what is sent next.
//!
//! A body lives like this:
//!
//! ```text
//!            sent                 not in the peer's report
//!  queued ---------> in flight ------------------------------> lost
//!                     |     ^                                  |  | retries or deadline spent
//!       in the report |     +---------- sent again ------------+  v
//!                     v                                        given up
//!                   done
//! ```
//!
//! Whether a frame is settled follows from frame numbers: a link keeps their order, so once a later one is reported,
//! an earlier one that is not has been lost. There is no timer for each packet.

mod cohorts;
mod copies;
mod doubts;
mod redundancy;
mod states;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::Kernel;
use chappe_core::{Duration, Instant};

use crate::blocks::Blocks;
use crate::config::{Config, FLOWS, Order, Recovery, Redundancy, SERVICES, Service};
use crate::counters::Counters;
use crate::decoder::{add, coefficient};
use crate::estimate::Estimate;
use crate::gilbert::{LOSS_MAX, block_length};
use crate::header::{Ack, BODY, COVER, LENGTH, SPAN, before, put_among, set_bit};
use crate::policies::Policies;
use crate::policy::ROUNDS_MAX;
use crate::receiver::body_head;
use crate::store::Store;

pub(crate) use copies::{COPIES_MOST, ROOM};

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub config: Config,
    bodies: Store,
    entries: Vec<Entry>,
    /// The oldest body that is neither done nor given up, and the number of the next new one.
    pub base: u32,
    pub next: u32,
    /// The base that frames carry: [`base`](Self::base), or before it while a body is in doubt.
    floor: u32,
    /// Most bodies under way, as the peer allows.
    pub window: u32,
    waiting: Waiting,
    flows: [u16; FLOWS],
    lost: VecDeque<u32>,
    few: copies::Few,
    pub blocks: Blocks,
    policies: Policies,
    paces: [cohorts::Pace; SERVICES],
    log: Vec<Logged>,
    /// The number of the next frame, and up to which one all are settled.
    pub number: u32,
    pub first: u32,
    settled: u32,
    /// The highest frame of the last report, and how many had come.
    reported: (u32, u16),
    repair: u8,
    pub estimate: Estimate,
    /// A round: from sending to the report, and on to the next sending.
    pub round: Duration,
    /// How long after a frame has left it is known to be lost, smoothed; zero as long as none was (not in turns).
    pub known_after: Duration,
    /// The smoothed round trip; zero in turns and as long as it is not known.
    pub rtt: Duration,
    /// From sending to arrival.
    pub one_way: Duration,
    /// When the present slot began (only in turns).
    slot_at: Option<Instant>,
    /// Frames sent before this one may be repeated while no report comes.
    pub slot_first: u32,
    pub counters: Counters,
    /// A frame leaves anyway: small packets need not wait for others.
    pub flush: bool,
    /// Octets of frames that are not settled.
    pub in_flight: usize,
    /// Frames that are to break a silence, and the first that could.
    probes: usize,
    probed: u32,
    kernel: Kernel,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    state: State,
    service: u8,
    tries: u8,
    offered: Instant,
    /// The latest frame that carried it.
    frame: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In flight.
    Flight,
    /// Lost, and waits to be sent again (or for its block's repairs).
    Lost,
    Done,
    GivenUp,
    /// Given up when frames up to this one had left that no report had told about.
    Doubtful {
        newest: u32,
    },
}

/// One frame that was sent.
#[derive(Clone, Copy, Debug)]
struct Logged {
    number: u32,
    /// The body it carried as it is, if any.
    seq: Option<u32>,
    octets: u16,
    at: Instant,
}

/// Packets that wait for their first transmission.
#[derive(Clone, Debug)]
struct Waiting {
    packets: Store,
    free: Vec<usize>,
    queues: [VecDeque<Queued>; SERVICES],
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    place: usize,
    flow: u8,
    offered: Instant,
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The body of this number, first or again.
    Body(u32),
    /// A repair: first number and index; its bitmap and octets are in the buffers given.
    Repair {
        first: u32,
        index: u8,
        cover: usize,
        len: usize,
    },
}

/// What a report says about round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub rtt: Option<Duration>,
    pub progress: bool,
}

/// A packet of at most so many octets waits for others: an acknowledgement of TCP has 40 to 80.
const SMALL: usize = 128;
/// So many small packets are enough for a frame.
const SMALL_MOST: usize = 8;

impl Sender {
    pub fn new(config: Config) -> Sender {
        let body_max = config.body_max();
        let entry = Entry {
            state: State::Done,
            service: 0,
            tries: 0,
            offered: Instant::ZERO,
            frame: 0,
        };
        let logged = Logged {
            number: 0,
            seq: None,
            octets: 0,
            at: Instant::ZERO,
        };
        let places = config.queue * SERVICES;
        Sender {
            bodies: Store::new(config.window, body_max),
            entries: vec![entry; config.window],
            base: 0,
            next: 0,
            floor: 0,
            window: config.window as u32,
            waiting: Waiting {
                packets: Store::new(places, body_max),
                free: (0..places).rev().collect(),
                queues: core::array::from_fn(|_| VecDeque::with_capacity(config.queue)),
            },
            flows: [0; FLOWS],
            lost: VecDeque::with_capacity(config.window),
            few: copies::Few::new(),
            blocks: Blocks::new(),
            policies: Policies::new(),
            paces: [cohorts::Pace::default(); SERVICES],
            log: vec![logged; config.window * 4],
            number: 0,
            first: 0,
            settled: u32::MAX,
            reported: (u32::MAX, 0),
            repair: 0,
            estimate: Estimate::default(),
            round: Duration::from_millis(50),
            known_after: Duration::ZERO,
            rtt: Duration::ZERO,
            one_way: Duration::from_millis(25),
            slot_at: None,
            slot_first: 0,
            counters: Counters::default(),
            flush: false,
            in_flight: 0,
            probes: 0,
            probed: 0,
            kernel: Kernel::best(),
            config,
        }
    }

    /// Queues a packet; false if there is no room.
    pub fn offer(&mut self, now: Instant, service: usize, flow: u8, packet: &[u8]) -> bool {
        let limit = self.config.queue;
        let Some(queue) = self.waiting.queues.get_mut(service) else {
            return false;
        };
        let fits = !packet.is_empty() && packet.len() <= self.config.packet_max();
        if queue.len() >= limit || !fits {
            return false;
        }
        let Some(place) = self.waiting.free.pop() else {
            return false;
        };
        self.waiting.packets.put(place, &[packet]);
        queue.push_back(Queued {
            place,
            flow: flow & 0x3f,
            offered: now,
        });
        self.counters.offered += 1;
        true
    }

    /// Packets that wait for their first transmission in a class.
    pub fn queued(&self, service: usize) -> usize {
        self.waiting.queues.get(service).map_or(0, VecDeque::len)
    }

    pub fn all_queued(&self) -> usize {
        self.waiting.queues.iter().map(VecDeque::len).sum()
    }

    /// Whether a new body may go out.
    pub fn has_new(&self, now: Instant) -> bool {
        self.new_at().is_some_and(|at| at <= now)
    }

    /// When a new body may go out: small packets wait a little for others.
    pub fn new_at(&self) -> Option<Instant> {
        if self.next.wrapping_sub(self.base) >= self.window {
            return None;
        }
        let place = self
            .waiting
            .queues
            .iter()
            .position(|queue| !queue.is_empty())?;
        let queue = self.waiting.queues.get(place)?;
        let front = queue.front()?;
        let small = |queued: &Queued| self.waiting.packets.get(queued.place).len() <= SMALL;
        let alone =
            self.config.bundle && place > 0 && queue.len() < SMALL_MOST && queue.iter().all(small);
        let wait = if alone && !self.flush {
            self.config.bundle_delay
        } else {
            Duration::ZERO
        };
        Some(front.offered + wait)
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether anything is neither done nor given up.
    pub fn has_open(&self) -> bool {
        self.base != self.next
    }

    /// How many lost bodies wait to be sent again.
    pub fn lost_count(&self) -> usize {
        self.lost.len()
    }

    /// The peer has started over: what it may have had is not sent a second time.
    pub fn restart(&mut self) {
        for seq in self.open() {
            if let Some(entry) = self.entry_mut(seq) {
                entry.state = State::GivenUp;
                self.counters.lost_by_restart += 1;
            }
        }
        self.lost.clear();
        self.few.clear();
        self.blocks.clear();
        self.base = self.next;
        self.floor = self.next;
        self.first = self.number;
        self.settled = self.number.wrapping_sub(1);
        self.reported = (self.settled, 0);
        self.in_flight = 0;
        self.flows = [0; FLOWS];
        self.estimate = Estimate::default();
    }

    /// Notes that a frame has been sent.
    pub fn log(&mut self, now: Instant, seq: Option<u32>, octets: usize) {
        let number = self.number;
        let place = number as usize & self.log.len().wrapping_sub(1);
        if let Some(logged) = self.log.get_mut(place) {
            *logged = Logged {
                number,
                seq,
                octets: octets.min(u16::MAX.into()) as u16,
                at: now,
            };
        }
        self.in_flight = self.in_flight.saturating_add(octets);
        self.number = number.wrapping_add(1);
    }

    fn logged(&self, number: u32) -> Option<&Logged> {
        let place = number as usize & self.log.len().wrapping_sub(1);
        self.log.get(place).filter(|logged| logged.number == number)
    }

    /// Counts frames from `number` on; before the first one.
    pub fn count_from(&mut self, number: u32) {
        (self.number, self.first, self.slot_first) = (number, number, number);
        self.settled = number.wrapping_sub(1);
        self.reported = (self.settled, 0);
    }

    /// Takes a report. `turns`: the peer speaks only when we have ended, so all frames are settled by it.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, turns: bool) -> Reported {
        let newest = self.number.wrapping_sub(1);
        let mut reported = Reported {
            rtt: None,
            progress: false,
        };
        // A report about frames that were never sent, or were before the peer started over.
        if before(newest, ack.highest) || before(ack.highest, self.first.wrapping_sub(1)) {
            self.counters.strange_reports += 1;
            return reported;
        }
        if let Some(logged) = self.logged(ack.highest)
            && before(self.settled, ack.highest)
        {
            let since = now.saturating_since(logged.at);
            reported.rtt = Some(since.saturating_sub(ack.held()));
        }
        self.estimate.on_ack(ack, self.first);
        let until = match turns {
            true => newest,
            false => self.overtaken(now, ack.highest),
        };
        self.resolve_doubts(now, ack);
        for seq in self.open() {
            if ack.has(seq) == Some(true) && self.is_missing(seq) {
                self.arrived(now, seq, ack);
            }
        }
        if !before(ack.highest, self.reported.0) {
            self.reported = (ack.highest, ack.received);
        }
        let (from, lost) = (self.settled, self.lost.len());
        while before(self.settled, until) {
            self.settled = self.settled.wrapping_add(1);
            self.settle(now, self.settled, ack);
        }
        reported.progress = from != self.settled;
        if reported.progress {
            self.probes = 0;
        }
        match self.has_cohorts() {
            true => {
                self.forget_cohorts();
                self.gather_cohorts(now, lost);
            }
            false => self.end_rounds(now, ack),
        }
        self.move_base();
        reported
    }

    /// Up to which frame nothing can come any more, given that `highest` has: so many later ones have come, or it was
    /// sent more than 9/8 of a round trip ago (RFC 9002, 6.1).
    fn overtaken(&self, now: Instant, highest: u32) -> u32 {
        let mut until = highest.wrapping_sub(self.config.reordering);
        let patience = self.rtt + self.rtt / 8;
        while self.rtt > Duration::ZERO && before(until, highest) {
            let next = until.wrapping_add(1);
            let old = |logged: &Logged| logged.at + patience <= now;
            if next != highest && !self.logged(next).is_some_and(old) {
                break;
            }
            until = next;
        }
        until
    }

    /// Nothing has been reported for too long: `frames` are to leave, to provoke a report, and nothing is counted as under way any
    /// more.
    pub fn probe(&mut self, frames: usize) {
        self.in_flight = 0;
        (self.probes, self.probed) = (frames, self.number);
    }

    /// Whether a frame is due only to provoke a report.
    pub fn probes(&self) -> bool {
        self.probes > 0 && self.has_open()
    }

    /// The oldest body in flight that left before the silence and still matters, once more.
    fn probe_again(&mut self, now: Instant) -> Option<Choice> {
        while self.probes > 0 {
            let silent = |seq: &u32| {
                self.entry(*seq).is_some_and(|entry| {
                    entry.state == State::Flight && before(entry.frame, self.probed)
                })
            };
            let Some(oldest) = self.open().find(silent) else {
                self.probes = 0;
                break;
            };
            self.lose(oldest);
            if let Some(seq) = self.next_lost(now) {
                return Some(self.send_again(seq));
            }
        }
        None
    }

    /// What to send now, best first; `fits`: frames of full size that still fit, this one included. Whatever goes serves as a
    /// probe, new data best (RFC 9002, 6.2.4).
    pub fn choose(
        &mut self,
        now: Instant,
        fits: usize,
        fill: bool,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        let choice = self
            .choose_useful(now, fits, fill, out)
            .or_else(|| self.probe_again(now));
        self.probes = self.probes.saturating_sub(usize::from(choice.is_some()));
        choice
    }

    fn choose_useful(
        &mut self,
        now: Instant,
        fits: usize,
        fill: bool,
        out: &mut Out<'_>,
    ) -> Option<Choice> {
        if let Some(seq) = self.next_lost(now) {
            return Some(self.send_again(seq));
        }
        if let Some(choice) = self.block_repair(out) {
            return Some(choice);
        }
        if self.has_new(now) && fits > self.planned_repairs(now) {
            let choice = self.send_new(now);
            if choice.is_some() {
                return choice;
            }
        }
        //= wildnet 3.3.2: the packets of a slot are one block, and its repairs follow them
        if let Some((service, size)) = self.blocks.open_block() {
            let repairs = self.repairs_for(now, service, size);
            // Until the slot has room for them and one frame more, further packets may join.
            if !self.blocks_are_slots() || fits <= repairs.0 + 1 {
                self.close_block(repairs);
                if let Some(choice) = self.block_repair(out) {
                    return Some(choice);
                }
            }
        }
        if fill && self.has_open() {
            return self.fill(out);
        }
        None
    }

    /// Octets of the body or repair that would be sent next, or a little more; `None` if there is nothing.
    pub fn next_body_len(&self) -> Option<usize> {
        let oldest = self
            .lost
            .iter()
            .min_by_key(|seq| seq.wrapping_sub(self.base));
        if let Some(&seq) = oldest {
            return Some(self.body(seq).len());
        }
        let owing = self.blocks.owing().and_then(|i| self.blocks.get(i));
        if let Some(block) = owing {
            let missing = block.members().filter(|&seq| self.is_missing(seq));
            let longest = missing.map(|seq| self.body(seq).len()).max();
            // A repair has a bitmap besides.
            return longest.map(|longest| (longest + COVER).min(self.config.body_max()));
        }
        self.new_at()?;
        let queue = self.waiting.queues.iter().find(|queue| !queue.is_empty())?;
        self.queued_bodies(queue).next()
    }

    /// Octets of the bodies that wait: lost ones, and those that queued packets will make.
    pub fn waiting_bodies(&self) -> impl Iterator<Item = usize> + '_ {
        let lost = self.lost.iter().map(|&seq| self.body(seq).len());
        let queues = self.waiting.queues.iter();
        lost.chain(queues.flat_map(|queue| self.queued_bodies(queue)))
    }

    /// Octets of the bodies that a class's packets will make.
    fn queued_bodies<'a>(
        &'a self,
        queue: &'a VecDeque<Queued>,
    ) -> impl Iterator<Item = usize> + 'a {
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = queue.get(at)?;
            let len = |queued: &Queued| LENGTH + self.waiting.packets.get(queued.place).len();
            let mut body = BODY + len(first);
            at += 1;
            while let Some(next) = queue.get(at) {
                let joins = self.config.bundle
                    && next.flow == first.flow
                    && body + len(next) <= self.config.body_max();
                if !joins {
                    break;
                }
                body += len(next);
                at += 1;
            }
            Some(body)
        })
    }

    /// A new slot begins; `heard`: a report came since the last one.
    pub fn begin_slot(&mut self, now: Instant, heard: bool) {
        self.close_cut_block(now);
        self.slot_at = Some(now);
        //= wildnet 3.1: without an acknowledgement go on with new packets, then repeat the oldest
        self.slot_first = if heard { self.settled } else { self.number };
        self.blocks.close_all();
        self.give_up_late(now);
        self.begin_rounds(now);
    }

    /// No report came and nothing else is to be sent: the oldest body of an earlier slot again.
    pub fn repeat_doubtful(&mut self) -> Option<Choice> {
        let (first, repeats) = (self.slot_first, self.repeats());
        let seq = self.open().find(|&seq| {
            self.entry(seq)
                .is_some_and(|entry| entry.state == State::Flight && before(entry.frame, first))
        });
        seq.filter(|_| repeats).map(|seq| self.send_again(seq))
    }

    /// The body of a number that is under way.
    pub fn body(&self, seq: u32) -> &[u8] {
        self.bodies.get(self.place(seq))
    }

    /// Notes in which frame a body leaves.
    pub fn sent_in(&mut self, seq: u32, number: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.frame = number;
        }
        if !self.has_cohorts() {
            self.blocks.sent(seq, number);
        }
    }

    /// Changes what a class is promised, from the next decision on.
    pub fn set_service(&mut self, service: usize, to: Service) {
        if let Some(own) = self.config.services.get_mut(service) {
            *own = to;
        }
    }
}

/// Where repairs are made.
pub(crate) struct Out<'a> {
    /// Room for the bitmap.
    pub cover: &'a mut [u8; COVER],
    /// Room for the combination.
    pub coded: &'a mut [u8],
}
