//! DRAND: time slots by messages, so that no two nodes within two hops own the same one.
//!
//! After Rhee, Warrier, Min and Xu, "DRAND: distributed randomized TDMA scheduling for wireless ad hoc networks" (2006);
//! written from memory of the paper. A lottery decides which node asks, every neighbour must grant, and a grant locks its
//! giver until the outcome is known.
//!
//! ```text
//!              lottery won                       all neighbours granted
//!   Undecided ------------> Asking (round r) -------------------------> Decided (slot)
//!       ^                      |  a neighbour rejects, or does not answer      |
//!       +----------------------+                                               |
//!       +----------------------------------------------------------------------+
//!                     a node within two hops has the same slot, and a lower address
//! ```
//!
//! Each node periodically broadcasts a *hello* with its round, its slot and its neighbours' slots. Hellos discover
//! neighbours, report how a round ended (in place of DRAND's messages of release and failure), and carry slots over two
//! hops. Answers are broadcast too. A grant lists the slots that its giver knows to be taken; the asker takes the smallest
//! that is free in all grants. The giver grants no other node until it hears the asker's next hello, so two nodes with a
//! common neighbour never decide at once.
//!
//! Limits: a neighbour that was never heard grants nothing and may choose the same slot; its hellos repair that later, by
//! the rule at the bottom of the drawing. A node that dies is still asked, and its lock kept, for [`Timing::lock`]; its
//! slot stays taken among nodes two hops away. Links must be symmetric: a neighbour counts only if it lists this node.

use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Stream, Wake,
};

use super::slots::{Schedule, Slot};

mod message;

use message::{Entry, Message};

/// Neighbours that a node can have.
pub const NEIGHBOURS_MAX: usize = 32;
/// Nodes two hops away whose slots a node can store.
const BEYOND_MAX: usize = super::TWO_HOP_MAX;
/// Slots that can be told apart: the bits of a grant.
const SLOTS_MAX: u8 = 128;

/// Periods of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Mean time between hellos, and between lotteries.
    pub period: Duration,
    /// Listening before the first lottery: long enough to hear every neighbour's hello, and be heard.
    pub discovery: Duration,
    /// How long answers are awaited before a request is repeated.
    pub answer: Duration,
    /// Requests sent before a round is given up.
    pub requests: u8,
    /// After this time without a hello of the asker a lock is released, and a neighbour without hellos is forgotten.
    pub lock: Duration,
}

impl Default for Timing {
    /// Ours: hellos each 250 ms, 2 s of discovery, five requests of 80 ms, locks of 30 s.
    fn default() -> Timing {
        Timing {
            period: Duration::from_millis(250),
            discovery: Duration::from_secs(2),
            answer: Duration::from_millis(80),
            requests: 5,
            lock: Duration::from_secs(30),
        }
    }
}

/// One node of the protocol, a link node that sends broadcasts.
#[derive(Clone, Debug)]
pub struct Drand {
    address: Address,
    random: Stream,
    timing: Timing,
    neighbours: [Option<Neighbour>; NEIGHBOURS_MAX],
    beyond: [Option<Entry>; BEYOND_MAX],
    round: u16,
    state: State,
    /// The neighbour that was granted, its round, and when the lock expires.
    lock: Option<(Address, u16, Instant)>,
    next_hello: Instant,
    next_lottery: Instant,
    hello: bool,
    counters: Counters,
}

/// Counters of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent, of all kinds.
    pub sent: u64,
    /// Rounds begun, one for each lottery won.
    pub rounds: u64,
    /// Rounds that ended without a slot.
    pub failed: u64,
    /// Slots given up because a node within two hops had the same.
    pub repaired: u64,
    /// Frames that were not the protocol's, and neighbours for which there was no room.
    pub dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    address: Address,
    /// When its last hello arrived.
    heard: Instant,
    slot: Option<Slot>,
    /// Undecided nodes that it counts around itself.
    undecided: u8,
    /// It has heard this node.
    mutual: bool,
    /// It has granted the present round.
    granted: bool,
    answer: Option<Answer>,
}

/// An answer that is to be sent to a neighbour.
#[derive(Clone, Copy, Debug)]
struct Answer {
    round: u16,
    grant: bool,
    /// When: the answers to one request are spread over time, as those who answer do not all hear each other.
    at: Instant,
    ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Undecided,
    Asking {
        until: Instant,
        left: u8,
        send: bool,
        taken: u128,
    },
    Decided(u8),
}

impl Drand {
    /// A node that knows no neighbour yet and begins to listen at `start`.
    pub fn new(address: Address, mut random: Stream, timing: Timing, start: Instant) -> Drand {
        let first = Duration::from_nanos(random.below(timing.period.nanos()));
        Drand {
            address,
            random,
            timing,
            neighbours: [None; NEIGHBOURS_MAX],
            beyond: [None; BEYOND_MAX],
            round: 0,
            state: State::Undecided,
            lock: None,
            next_hello: start + first,
            next_lottery: start + timing.discovery,
            hello: false,
            counters: Counters::default(),
        }
    }

    /// The number of the own slot, once decided.
    pub fn slot(&self) -> Option<u8> {
        match self.state {
            State::Decided(slot) => Some(slot),
            _ => None,
        }
    }

    /// Whether this node and all its neighbours have slots.
    pub fn is_settled(&self) -> bool {
        let mut known = self.mutual();
        self.slot().is_some() && known.all(|neighbour| neighbour.slot.is_some())
    }

    /// The schedule for a ZMAC+ station, once the own slot is decided.
    pub fn schedule(&self) -> Option<Schedule> {
        let mut schedule = Schedule::new(Some(self.own()?));
        for entry in self.beyond.iter().flatten() {
            if let Some(slot) = entry.slot {
                schedule.bar(slot);
            }
        }
        Some(schedule)
    }

    /// Counters since the node was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The own slot with its period by the time frame rule.
    fn own(&self) -> Option<Slot> {
        let near = self.neighbours.iter().flatten().filter_map(|n| n.slot);
        let far = self.beyond.iter().flatten().filter_map(|entry| entry.slot);
        let largest = near.chain(far).map(|slot| slot.number).max();
        let own = u16::from(self.slot()?);
        Some(Slot::by_rule(own, largest.unwrap_or(0)))
    }

    fn mutual(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.iter().flatten().filter(|n| n.mutual)
    }

    fn neighbour(&mut self, address: Address) -> Option<&mut Neighbour> {
        let mut known = self.neighbours.iter_mut().flatten();
        known.find(|neighbour| neighbour.address == address)
    }

    /// Undecided nodes among the neighbours and this one.
    fn undecided(&self) -> u8 {
        let around = self.mutual().filter(|n| n.slot.is_none()).count() as u8;
        around.saturating_add(u8::from(self.slot().is_none()))
    }

    fn hear(&mut self, now: Instant, from: Address, message: Message<'_>) {
        match message {
            Message::Hello {
                round,
                slot,
                undecided,
                entries,
            } => {
                self.meet(now, from, slot, undecided, entries.clone());
                let over = |(asker, asked, _): (Address, u16, Instant)| {
                    asker == from && (round != asked || slot.is_some())
                };
                self.lock = self.lock.filter(|&lock| !over(lock));
                self.look_beyond(entries.clone());
                self.repair(now, from, slot, entries);
            }
            Message::Request { round } => self.answer(now, from, round),
            Message::Grant { to, round, taken } => self.on_grant(from, to, round, taken),
            Message::Reject { to, round } => {
                if to == self.address && round == self.round && self.is_asking() {
                    self.give_up(now);
                }
            }
        }
    }

    fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking { .. })
    }

    /// Records a neighbour and its state.
    fn meet(
        &mut self,
        now: Instant,
        from: Address,
        slot: Option<Slot>,
        undecided: u8,
        mut entries: impl Iterator<Item = Entry>,
    ) {
        let own = self.address;
        let mutual = entries.any(|entry| entry.address == own);
        if self.neighbour(from).is_none() {
            let Some(free) = self.neighbours.iter_mut().find(|place| place.is_none()) else {
                self.counters.dropped = self.counters.dropped.saturating_add(1);
                return;
            };
            *free = Some(Neighbour {
                address: from,
                heard: now,
                slot: None,
                undecided: 0,
                mutual: false,
                granted: false,
                answer: None,
            });
        }
        if let Some(neighbour) = self.neighbour(from) {
            neighbour.heard = now;
            neighbour.slot = slot;
            neighbour.undecided = undecided;
            neighbour.mutual |= mutual;
        }
    }

    /// Forgets neighbours that have gone: they grant nothing and would block this node forever.
    fn forget_silent(&mut self, now: Instant) {
        let gone = |n: &Neighbour| now.saturating_since(n.heard) > self.timing.lock;
        for place in &mut self.neighbours {
            place.take_if(|neighbour| gone(neighbour));
        }
    }

    /// Records the slots of a neighbour's neighbours.
    fn look_beyond(&mut self, entries: impl Iterator<Item = Entry>) {
        for entry in entries {
            let near = entry.address == self.address || self.neighbour(entry.address).is_some();
            if near {
                self.beyond
                    .iter_mut()
                    .filter(|place| place.is_some_and(|e| e.address == entry.address))
                    .for_each(|place| *place = None);
                continue;
            }
            let known = self
                .beyond
                .iter()
                .position(|place| place.is_some_and(|e| e.address == entry.address));
            let free = || self.beyond.iter().position(Option::is_none);
            match known.or_else(free).and_then(|at| self.beyond.get_mut(at)) {
                Some(place) => *place = Some(entry),
                None => self.counters.dropped = self.counters.dropped.saturating_add(1),
            }
        }
    }

    /// If a node within two hops owns the same slot, the one with the higher address begins again.
    fn repair(
        &mut self,
        now: Instant,
        from: Address,
        slot: Option<Slot>,
        entries: impl Iterator<Item = Entry>,
    ) {
        let Some(own) = self.slot() else { return };
        let same = |slot: Option<Slot>| slot.is_some_and(|slot| slot.number == u16::from(own));
        let mut others = entries.filter(|entry| same(entry.slot));
        let address = self.address;
        let lost = same(slot) && from < address || others.any(|entry| entry.address < address);
        if lost {
            self.counters.repaired = self.counters.repaired.saturating_add(1);
            self.give_up(now);
        }
    }

    /// A neighbour asks for a slot.
    fn answer(&mut self, now: Instant, from: Address, round: u16) {
        let free = match self.lock {
            None => true,
            Some((asker, _, until)) => asker == from || now >= until,
        };
        let grant = free && !self.is_asking();
        if self.neighbour(from).is_none() {
            return;
        }
        if grant {
            self.lock = Some((from, round, now + self.timing.lock));
        }
        // Spread answers do not collide, and the latest still arrives before the request is repeated.
        let spread = self.timing.answer.nanos() / 4 * 3;
        let at = now + Duration::from_nanos(self.random.below(spread));
        if let Some(neighbour) = self.neighbour(from) {
            neighbour.answer = Some(Answer {
                round,
                grant,
                at,
                ready: false,
            });
        }
    }

    fn on_grant(&mut self, from: Address, to: Address, round: u16, more: u128) {
        if to != self.address || round != self.round {
            return;
        }
        let State::Asking { taken, .. } = &mut self.state else {
            return;
        };
        *taken |= more;
        let taken = *taken;
        if let Some(neighbour) = self.neighbour(from) {
            neighbour.granted = true;
        }
        if self.mutual().all(|neighbour| neighbour.granted) {
            self.decide(taken);
        }
    }

    /// All neighbours have granted: the smallest slot that none of them sees taken.
    fn decide(&mut self, taken: u128) {
        let own = self.taken(None);
        let free = (0..SLOTS_MAX).find(|&slot| (taken | own) >> slot & 1 == 0);
        self.state = free.map_or(State::Undecided, State::Decided);
        self.hello = true;
    }

    /// The round is over without a slot, or a slot is given up: hellos of a new round say so.
    fn give_up(&mut self, now: Instant) {
        self.counters.failed += u64::from(self.is_asking());
        self.state = State::Undecided;
        self.round = self.round.wrapping_add(1);
        self.hello = true;
        self.next_lottery = now + self.jittered();
    }

    /// Slots of this node and of its neighbours, but not of `except`.
    fn taken(&self, except: Option<Address>) -> u128 {
        let near = self.neighbours.iter().flatten();
        let others = near.filter(|n| Some(n.address) != except);
        let numbers = others.filter_map(|n| n.slot.map(|slot| slot.number));
        let own = self.slot().map(u16::from);
        numbers
            .chain(own)
            .filter(|&number| number < u16::from(SLOTS_MAX))
            .fold(0, |taken, number| taken | 1 << number)
    }

    /// A random time of half a period to one and a half.
    fn jittered(&mut self) -> Duration {
        let period = self.timing.period;
        period / 2 + Duration::from_nanos(self.random.below(period.nanos()))
    }

    /// The lottery: won with probability one over the largest number of undecided nodes that this node or a neighbour sees
    /// around itself.
    fn draw(&mut self, now: Instant) {
        self.next_lottery = now + self.jittered();
        // A node that has granted a neighbour waits for the outcome before it asks.
        if self.state != State::Undecided || self.lock.is_some_and(|(.., until)| now < until) {
            return;
        }
        let around = self.mutual().map(|neighbour| neighbour.undecided).max();
        let rivals = around.unwrap_or(0).max(self.undecided()).max(1);
        if self.random.below(u64::from(rivals)) != 0 {
            return;
        }
        self.round = self.round.wrapping_add(1);
        self.counters.rounds = self.counters.rounds.saturating_add(1);
        for neighbour in self.neighbours.iter_mut().flatten() {
            neighbour.granted = false;
        }
        // No neighbour to ask.
        if self.mutual().next().is_none() {
            return self.decide(0);
        }
        self.state = State::Asking {
            until: now + self.timing.answer,
            left: self.timing.requests.saturating_sub(1),
            send: true,
            taken: 0,
        };
    }

    /// The answers are overdue: asks again, or gives up.
    fn ask_again(&mut self, now: Instant) {
        let wait = self.timing.answer;
        match &mut self.state {
            State::Asking { left: 0, .. } => self.give_up(now),
            State::Asking {
                until, left, send, ..
            } => {
                *left -= 1;
                *until = now + wait;
                *send = true;
            }
            _ => {}
        }
    }

    /// The next message: answers first, then the own request, then a hello.
    fn compose(&mut self, sdu: &mut [u8]) -> Option<usize> {
        let mut known = self.neighbours.iter_mut().flatten();
        let due = known.find_map(|n| {
            let answer = n.answer.take_if(|answer| answer.ready)?;
            Some((n.address, answer))
        });
        if let Some((to, Answer { round, grant, .. })) = due {
            let taken = self.taken(Some(to));
            return match grant {
                true => Message::Grant { to, round, taken }.emit(sdu),
                false => Message::Reject { to, round }.emit(sdu),
            };
        }
        let round = self.round;
        if let State::Asking { send, .. } = &mut self.state
            && core::mem::take(send)
        {
            return Message::Request { round }.emit(sdu);
        }
        if !core::mem::take(&mut self.hello) {
            return None;
        }
        let entries = self.neighbours.iter().flatten().map(|n| Entry {
            address: n.address,
            slot: n.slot,
        });
        message::emit_hello(round, self.own(), self.undecided(), entries, sdu)
    }
}

impl LinkNode for Drand {
    fn handle_link(&mut self, now: Instant, event: LinkEvent<'_>) {
        let LinkEvent::Received(arrival) = event else {
            return;
        };
        match Message::parse(arrival.sdu) {
            Some(message) => self.hear(now, arrival.from, message),
            None => self.counters.dropped = self.counters.dropped.saturating_add(1),
        }
    }

    fn pending(&self) -> Classes {
        let ready = |n: &Neighbour| n.answer.is_some_and(|answer| answer.ready);
        let answers = self.neighbours.iter().flatten().any(ready);
        let request = matches!(self.state, State::Asking { send: true, .. });
        Classes::NONE.with_if(Class::Control, answers || request || self.hello)
    }

    fn poll_link(&mut self, _: Instant, allowed: Classes, sdu: &mut [u8]) -> Option<LinkSend> {
        if !allowed.contains(Class::Control) {
            return None;
        }
        let len = self.compose(sdu)?;
        self.counters.sent = self.counters.sent.saturating_add(1);
        Some(LinkSend {
            to: Address::BROADCAST,
            len,
            class: Class::Control,
            mode: None,
            token: 0,
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.next_hello <= now {
            self.next_hello = now + self.jittered();
            self.hello = true;
            self.forget_silent(now);
        }
        let answers = self.neighbours.iter_mut().flatten();
        for answer in answers.filter_map(|n| n.answer.as_mut()) {
            answer.ready |= answer.at <= now;
        }
        if matches!(self.state, State::Asking { until, .. } if until <= now) {
            self.ask_again(now);
        }
        if self.next_lottery <= now {
            self.draw(now);
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        let waits = match self.state {
            State::Asking { until, .. } => wake(until, "answers"),
            _ => None,
        };
        let own = self.neighbours.iter().flatten().filter_map(|n| n.answer);
        let next = own
            .filter(|answer| !answer.ready)
            .map(|answer| answer.at)
            .min();
        let answer = next.map(|at| Wake { at, why: "answer" });
        let regular = Wake::earlier(
            wake(self.next_hello, "hello"),
            wake(self.next_lottery, "lottery"),
        );
        Wake::earlier(regular, Wake::earlier(waits, answer))
    }
}
