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

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::Kernel;
use chappe_core::{Duration, Instant};

use crate::blocks::Blocks;
use crate::config::{Config, FLOWS, Recovery, Redundancy, SERVICES, Service};
use crate::counters::Counters;
use crate::decoder::{add, coefficient};
use crate::estimate::Estimate;
use crate::gilbert::{LOSS_MAX, block_length};
use crate::header::{Ack, BODY, COVER, LENGTH, SPAN, before, set_bit};
use crate::policies::Policies;
use crate::policy::ROUNDS_MAX;
use crate::receiver::body_head;
use crate::store::Store;

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub config: Config,
    bodies: Store,
    entries: Vec<Entry>,
    /// The oldest body that is neither done nor given up, and the number of the next new one.
    pub base: u32,
    pub next: u32,
    /// Most bodies under way, as the peer allows.
    pub window: u32,
    waiting: Waiting,
    flows: [u16; FLOWS],
    lost: VecDeque<u32>,
    pub blocks: Blocks,
    policies: Policies,
    log: Vec<Logged>,
    /// The number of the next frame, and up to which one all are settled.
    pub number: u32,
    pub first: u32,
    settled: u32,
    repair: u8,
    pub estimate: Estimate,
    /// A round: from sending to the report, and on to the next sending.
    pub round: Duration,
    /// From sending to arrival.
    pub one_way: Duration,
    /// Frames sent before this one may be repeated while no report comes.
    pub slot_first: u32,
    pub counters: Counters,
    /// Octets of frames that are not settled.
    pub in_flight: usize,
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
    Repair { first: u32, index: u8, cover: usize, len: usize },
}

/// What a report says about round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub rtt: Option<Duration>,
    pub progress: bool,
}

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
            window: config.window as u32,
            waiting: Waiting {
                packets: Store::new(places, body_max),
                free: (0..places).rev().collect(),
                queues: core::array::from_fn(|_| VecDeque::with_capacity(config.queue)),
            },
            flows: [0; FLOWS],
            lost: VecDeque::with_capacity(config.window),
            blocks: Blocks::new(),
            policies: Policies::new(),
            log: vec![logged; config.window * 4],
            number: 0,
            first: 0,
            settled: u32::MAX,
            repair: 0,
            estimate: Estimate::default(),
            round: Duration::from_millis(50),
            one_way: Duration::from_millis(25),
            slot_first: 0,
            counters: Counters::default(),
            in_flight: 0,
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
    pub fn has_new(&self) -> bool {
        self.all_queued() > 0 && self.next.wrapping_sub(self.base) < self.window
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
        self.blocks.clear();
        self.base = self.next;
        self.first = self.number;
        self.settled = self.number.wrapping_sub(1);
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
            false => ack.highest.wrapping_sub(self.config.reordering),
        };
        for seq in self.open() {
            if ack.has(seq) == Some(true) {
                self.done(now, seq);
            }
        }
        let from = self.settled;
        while before(self.settled, until) {
            self.settled = self.settled.wrapping_add(1);
            self.settle(now, self.settled, ack);
        }
        reported.progress = from != self.settled;
        self.end_rounds(now, ack);
        self.move_base();
        reported
    }

    /// The oldest body in flight is taken for lost, to provoke a report.
    pub fn suspect_oldest(&mut self) {
        let oldest = self.open().find(|&seq| self.state(seq) == Some(State::Flight));
        if let Some(seq) = oldest {
            self.lose(seq);
        }
    }

    /// What to send now, best first; `fits`: frames of full size that still fit, this one included.
    pub fn choose(&mut self, now: Instant, fits: usize, fill: bool, out: &mut Out<'_>) -> Option<Choice> {
        if let Some(seq) = self.next_lost(now) {
            return Some(self.send_again(seq));
        }
        if let Some(choice) = self.block_repair(out) {
            return Some(choice);
        }
        if self.has_new() && fits > self.planned_repairs() {
            let choice = self.send_new(now);
            if choice.is_some() {
                return choice;
            }
        }
        if let Some((service, size)) = self.blocks.open_block() {
            // Nothing more joins it in this slot: its repairs are due.
            let repairs = self.repairs_for(now, service, size);
            self.blocks.close(repairs);
            if let Some(choice) = self.block_repair(out) {
                return Some(choice);
            }
        }
        if fill && self.has_open() {
            return self.fill(out);
        }
        None
    }

    /// Octets of the body that would be sent next, if it is one; `None` if it is a repair or nothing.
    pub fn next_body_len(&self) -> Option<usize> {
        let oldest = self.lost.iter().min_by_key(|seq| seq.wrapping_sub(self.base));
        if let Some(&seq) = oldest {
            return Some(self.body(seq).len());
        }
        if self.blocks.owing().is_some() || !self.has_new() {
            return None;
        }
        let queued = self.waiting.queues.iter().find_map(VecDeque::front)?;
        Some(BODY + LENGTH + self.waiting.packets.get(queued.place).len())
    }

    /// A new slot begins; `heard`: a report came since the last one.
    pub fn begin_slot(&mut self, heard: bool) {
        //= wildnet 3.3.1: without an acknowledgement go on with new packets, then repeat the oldest
        self.slot_first = if heard { self.settled } else { self.number };
        self.blocks.close_all();
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
        self.blocks.sent(seq, number);
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

/// States of bodies.
impl Sender {
    fn place(&self, seq: u32) -> usize {
        seq as usize & self.entries.len().wrapping_sub(1)
    }

    fn open(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, count) = (self.base, self.next.wrapping_sub(self.base));
        (0..count).map(move |i| base.wrapping_add(i))
    }

    fn is_open(&self, seq: u32) -> bool {
        seq.wrapping_sub(self.base) < self.next.wrapping_sub(self.base)
    }

    fn entry(&self, seq: u32) -> Option<&Entry> {
        self.entries.get(self.place(seq)).filter(|_| self.is_open(seq))
    }

    fn entry_mut(&mut self, seq: u32) -> Option<&mut Entry> {
        let (place, open) = (self.place(seq), self.is_open(seq));
        self.entries.get_mut(place).filter(|_| open)
    }

    fn state(&self, seq: u32) -> Option<State> {
        self.entry(seq).map(|entry| entry.state)
    }

    fn is_missing(&self, seq: u32) -> bool {
        matches!(self.state(seq), Some(State::Flight | State::Lost))
    }

    fn service(&self, index: u8) -> Service {
        let services = &self.config.services;
        services.get(usize::from(index)).copied().unwrap_or(Service::RELIABLE)
    }

    fn repeats(&self) -> bool {
        match self.config.recovery {
            Recovery::None => false,
            Recovery::Acks | Recovery::Chappe { .. } => true,
            Recovery::Blocks { repeat, .. } => repeat,
        }
    }

    fn done(&mut self, now: Instant, seq: u32) {
        let Some(entry) = self.entry_mut(seq) else { return };
        if !matches!(entry.state, State::Flight | State::Lost) {
            return;
        }
        let (service, offered) = (entry.service, entry.offered);
        entry.state = State::Done;
        let deadline = self.service(service).deadline;
        // The report is a way back old.
        let took = now.saturating_since(offered).saturating_sub(self.one_way);
        self.counters.delivered += 1;
        self.counters.late += u64::from(deadline.is_some_and(|deadline| took > deadline));
    }

    fn give_up(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::GivenUp;
            self.counters.given_up += 1;
        }
    }

    /// A frame is settled: if its body has not arrived and has not been sent again, it is lost.
    fn settle(&mut self, now: Instant, number: u32, ack: &Ack<'_>) {
        let Some(&Logged { seq, octets, .. }) = self.logged(number) else { return };
        self.in_flight = self.in_flight.saturating_sub(octets.into());
        let Some(seq) = seq else { return };
        let current = self.entry(seq).is_some_and(|entry| {
            entry.state == State::Flight && entry.frame == number
        });
        if !current || ack.has(seq).is_none() {
            return;
        }
        match self.config.recovery {
            Recovery::None => self.give_up(seq),
            // The block's repairs may bring it: decided at the end of the round.
            Recovery::Blocks { .. } => {
                if let Some(entry) = self.entry_mut(seq) {
                    entry.state = State::Lost;
                }
            }
            Recovery::Acks | Recovery::Chappe { .. } => self.lose_or_give_up(now, seq),
        }
    }

    fn lose(&mut self, seq: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Lost;
            self.lost.push_back(seq);
        }
    }

    fn lose_or_give_up(&mut self, now: Instant, seq: u32) {
        let Some(&Entry { service, tries, offered, .. }) = self.entry(seq) else { return };
        let service = self.service(service);
        let spent = service.retries.is_some_and(|limit| tries > limit);
        let late = service.deadline.is_some_and(|deadline| {
            service.drop_late && now + self.one_way > offered + deadline
        });
        if spent || late {
            self.give_up(seq);
        } else {
            self.lose(seq);
        }
    }

    fn move_base(&mut self) {
        while self.has_open() && !self.is_missing(self.base) {
            self.base = self.base.wrapping_add(1);
        }
    }

    /// The next lost body that still matters.
    fn next_lost(&mut self, now: Instant) -> Option<u32> {
        loop {
            // Oldest first, whatever the order in which losses became known.
            let place = (0..self.lost.len()).min_by_key(|&i| {
                self.lost.get(i).map_or(u32::MAX, |seq| seq.wrapping_sub(self.base))
            })?;
            let seq = self.lost.remove(place)?;
            if self.state(seq) != Some(State::Lost) {
                continue;
            }
            let Some(&Entry { service, offered, .. }) = self.entry(seq) else { continue };
            let service = self.service(service);
            let late = service.deadline.is_some_and(|deadline| now + self.one_way > offered + deadline);
            if service.drop_late && late {
                self.give_up(seq);
                self.move_base();
                continue;
            }
            return Some(seq);
        }
    }

    fn send_again(&mut self, seq: u32) -> Choice {
        if let Some(entry) = self.entry_mut(seq) {
            entry.state = State::Flight;
            entry.tries = entry.tries.saturating_add(1);
        }
        self.counters.repeats += 1;
        Choice::Body(seq)
    }

    fn send_new(&mut self, now: Instant) -> Option<Choice> {
        let service = self.waiting.queues.iter().position(|queue| !queue.is_empty())?;
        let order = self.config.services.get(service)?.order;
        let (seq, place) = (self.next, self.place(self.next));
        let mut first: Option<Queued> = None;
        self.drop_late(now, service);
        while let Some(queued) = self.waiting.queues.get(service)?.front().copied() {
            let packet = self.waiting.packets.get(queued.place);
            let length = (packet.len() as u16).to_be_bytes();
            match first {
                None => {
                    let number = self.flows.get_mut(usize::from(queued.flow))?;
                    let head = body_head(order, queued.flow, *number);
                    *number = number.wrapping_add(1);
                    self.bodies.put(place, &[&head, &length, packet]);
                    first = Some(queued);
                }
                Some(first) => {
                    let needed = self.bodies.get(place).len() + LENGTH + packet.len();
                    if !self.config.bundle || first.flow != queued.flow || needed > self.config.body_max() {
                        break;
                    }
                    self.bodies.append(place, &length);
                    self.bodies.append(place, packet);
                }
            }
            self.waiting.queues.get_mut(service)?.pop_front();
            self.waiting.free.push(queued.place);
            self.counters.packets += 1;
        }
        // What is never dropped for being late is not hurried for having waited: others wait behind it.
        let promise = self.service(service as u8);
        let offered = if promise.drop_late { first?.offered } else { now };
        self.next = seq.wrapping_add(1);
        let frame = self.number;
        if let Some(entry) = self.entry_mut(seq) {
            *entry = Entry {
                state: State::Flight,
                service: service as u8,
                tries: 1,
                offered,
                frame,
            };
        }
        if self.blocks.open_service().is_some_and(|open| open != service) {
            self.close_open_block(now);
        }
        let deadline = promise.deadline.map(|deadline| offered + deadline);
        if self.blocks.add(seq, service, deadline) {
            self.close_open_block(now);
        }
        self.counters.bodies += 1;
        Some(Choice::Body(seq))
    }

    /// Throws away what has waited too long to be of use.
    fn drop_late(&mut self, now: Instant, service: usize) {
        let promise = self.service(service as u8);
        let Some(deadline) = promise.deadline.filter(|_| promise.drop_late) else { return };
        let Some(queue) = self.waiting.queues.get_mut(service) else { return };
        while let Some(queued) = queue.pop_front_if(|queued| now + self.one_way > queued.offered + deadline) {
            self.waiting.free.push(queued.place);
            self.counters.expired += 1;
        }
    }

    fn close_open_block(&mut self, now: Instant) {
        if let Some((service, size)) = self.blocks.open_block() {
            let repairs = self.repairs_for(now, service, size);
            self.blocks.close(repairs);
        }
    }
}

/// Redundancy.
impl Sender {
    /// Repairs that the open block will need if one more body joins it: room that must be kept in the slot.
    fn planned_repairs(&mut self) -> usize {
        match self.config.recovery {
            Recovery::Blocks { rule, .. } => {
                let size = self.blocks.open_block().map_or(0, |(_, size)| size);
                self.rule_repairs(rule, size + 1)
            }
            _ => 0,
        }
    }

    /// Repairs that go with a block of `size` bodies in its first round.
    fn repairs_for(&mut self, now: Instant, service: usize, size: usize) -> (usize, u8) {
        match self.config.recovery {
            Recovery::None | Recovery::Acks => (0, 0),
            Recovery::Blocks { rule, .. } => (self.rule_repairs(rule, size), 0),
            Recovery::Chappe { .. } => {
                let deadline = self.blocks.open_deadline();
                let left = self.rounds_left(now, deadline);
                (self.planned(service, (size, left), left), left)
            }
        }
    }

    /// What the policy of a block with so many `rounds` says for `missing` bodies and `left` rounds.
    fn planned(&mut self, service: usize, (missing, left): (usize, u8), rounds: u8) -> usize {
        let service = self.service(service as u8);
        if left > ROUNDS_MAX {
            return 0;
        }
        let policy = self.policies.get(&self.estimate, &service, rounds);
        policy.map_or(0, |policy| policy.extra(missing, left))
    }

    fn rule_repairs(&self, rule: Redundancy, size: usize) -> usize {
        //= wildnet 3.3.2: redundancy for the slot from the mean loss of the last ten
        let loss = self.estimate.loss();
        match rule {
            Redundancy::Mean => {
                libm::ceil(size as f64 * loss / (1.0 - loss.min(LOSS_MAX)) - 1e-9) as usize
            }
            Redundancy::Residual(residual) => {
                let most = size * 4 + 8;
                block_length(loss, size, residual, most).unwrap_or(most) - size
            }
            Redundancy::Fixed { data, parity } => {
                (size * usize::from(parity)).div_ceil(usize::from(data.max(1)))
            }
        }
    }

    /// Rounds that fit between now and the deadline, after one that begins now; without a deadline, very many.
    fn rounds_left(&self, now: Instant, deadline: Option<Instant>) -> u8 {
        let Some(deadline) = deadline else { return u8::MAX };
        let left = deadline.saturating_since(now).saturating_sub(self.one_way);
        left.steps(self.round).min(254) as u8
    }

    /// Looks which blocks' rounds have ended with this report, and what they need in the next.
    fn end_rounds(&mut self, now: Instant, ack: &Ack<'_>) {
        let coded = matches!(self.config.recovery, Recovery::Chappe { .. });
        let repeats = self.repeats();
        let mut i = 0;
        while let Some(block) = self.blocks.get(i) {
            let missing: usize = block.members().filter(|&seq| self.is_missing(seq)).count();
            if missing == 0 {
                self.blocks.remove(i);
                continue;
            }
            let waits = block.members().any(|seq| self.state(seq) == Some(State::Lost));
            let blocks_mode = matches!(self.config.recovery, Recovery::Blocks { .. });
            if block.is_open() || block.owed > 0 || before(self.settled, block.last) || (block.extended && waits && !blocks_mode) {
                i += 1;
                continue;
            }
            if blocks_mode {
                let members: ([u32; 64], usize) = block.list();
                for &seq in members.0.iter().take(members.1) {
                    if self.is_missing(seq) && ack.has(seq) == Some(false) {
                        if repeats { self.lose_or_give_up(now, seq) } else { self.give_up(seq) }
                    }
                }
                self.blocks.remove(i);
                continue;
            }
            let extra = if coded { self.extra_for(now, i, missing) } else { 0 };
            self.blocks.next_round(i, extra, self.number);
            i += 1;
        }
    }

    fn extra_for(&mut self, now: Instant, block: usize, missing: usize) -> usize {
        let Some(block) = self.blocks.get(block) else { return 0 };
        let left = self.rounds_left(now, block.deadline);
        self.planned(block.service, (missing, left), block.rounds)
    }

    /// A repair that a block is owed.
    fn block_repair(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        loop {
            let i = self.blocks.owing()?;
            let (members, count) = self.blocks.get(i)?.list();
            let mut missing = [0; 64];
            let mut len = 0;
            for &seq in members.iter().take(count).filter(|&&seq| self.is_missing(seq)) {
                if let Some(cell) = missing.get_mut(len) {
                    *cell = seq;
                    len += 1;
                }
            }
            if len == 0 {
                self.blocks.remove(i);
                continue;
            }
            self.blocks.pay(i, self.number);
            let choice = self.combine(missing.iter().copied().take(len), out);
            self.counters.repairs += u64::from(choice.is_some());
            return choice;
        }
    }

    //= wildnet 4.6: time left in a slot is spent on repairs of all that is open
    fn fill(&mut self, out: &mut Out<'_>) -> Option<Choice> {
        let open: Vec<u32> = self.open().take(SPAN as usize).filter(|&seq| self.is_missing(seq)).collect();
        let choice = self.combine(open.into_iter(), out);
        self.counters.fills += u64::from(choice.is_some());
        choice
    }

    /// Writes a combination of the bodies of `seqs`, which ascend.
    fn combine(&mut self, seqs: impl Iterator<Item = u32>, out: &mut Out<'_>) -> Option<Choice> {
        let index = self.repair;
        self.repair = self.repair.wrapping_add(1);
        out.cover.fill(0);
        let (mut first, mut len, mut last) = (None, 0, 0);
        for seq in seqs {
            let from = *first.get_or_insert(seq);
            let body = self.bodies.get(self.place(seq));
            let place = seq.wrapping_sub(from);
            // What does not fit, the longest body with a wide bitmap, is left to the next repair.
            let cover = place as usize / 8 + 1;
            if place >= SPAN || body.len().max(len) + cover > out.coded.len() {
                break;
            }
            if let Some(more) = out.coded.get_mut(len..body.len().max(len)) {
                more.fill(0);
            }
            add(self.kernel, coefficient(index, seq), body, out.coded);
            len = len.max(body.len());
            set_bit(out.cover, place);
            last = place;
        }
        let first = first.filter(|_| len > BODY)?;
        Some(Choice::Repair {
            first,
            index,
            cover: last as usize / 8 + 1,
            len,
        })
    }
}
