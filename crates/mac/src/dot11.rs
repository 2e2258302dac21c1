//! The distributed coordination function (DCF) of IEEE 802.11: listen before you talk, wait a random number
//! of slots, expect an ACK, wait longer next time.
//!
//! ```text
//!            frame waiting                     boundary reached
//!   Idle ------------------> Contending ----------------------> Granted
//!    ^                        |  ^  ^                             | frame taken from the link node
//!    | nothing waits, and     |  |  | done, failed:               v
//!    | the back-off ran out   |  |  | new back-off     Sending RTS, data or broadcast
//!    +------------------------+  |  |                             | sent
//!                                |  +---- Awaiting CTS or ACK <---+   (broadcast: done)
//!     answering (ACK, CTS) stops |             | CTS, after SIFS
//!     the contention meanwhile   +--           +-----> Sending data
//! ```
//!
//! - **Carrier sense** is on only while the station contends. NAV and EIFS follow from the frames heard at all
//!   times.
//! - **Immediate access** when the medium was idle for DIFS (or EIFS) as the frame came and no back-off is
//!   running; otherwise a back-off. After each exchange another back-off is drawn, frame or not
//!   (10.3.4.3).
//! - **Late binding**: [`LinkNode::poll_link`] is called when the first bit is about to leave. A unicast
//!   frame is then kept for its retransmissions; a broadcast is never copied.
//! - **The order of events at one instant does not matter**: whether the radio reports the idle carrier or the
//!   frame that ended first, the next slot boundary is the same.
//!
//! **EDCA** is the same station with four access functions, each with its own interframe space, window, back-off and
//! frame. They count slots beside each other, from each slot's beginning, and meet only inside the station: the most
//! urgent one that reaches its boundary transmits, the others draw anew from a wider window. [`Category`] holds the
//! parameters. A function with a TXOP limit goes on after SIFS while its frames fit.
//!
//! Clauses named in this module are those of IEEE Std 802.11-2020.

mod backoff;
mod category;
mod claim;
mod config;
mod counters;
mod duplicates;
mod function;
mod medium;
mod notice;
mod receive;
mod send;

use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkNode, Mac, RadioEvent, RadioRequest, Stream,
    TraceEvent, TraceRing, Wake,
};
use chappe_wire::dot11::Sequence;

use crate::zmac::{self, Schedule};

pub use category::Category;
pub use claim::{Claiming, Claims, NoClaims};
pub use config::{Config, PSDU_MAX};
pub use counters::Counters;

use config::Timing;
use duplicates::Duplicates;
use function::Function;
use medium::Medium;
use receive::Answer;
use send::OnAir;

/// One station with `N` channel access functions: one makes the DCF, four make EDCA. `C` says whether it claims the
/// channel before it contends ([`ZmacPlus`]).
#[derive(Clone, Debug)]
pub struct Dot11<const N: usize = 1, C = NoClaims> {
    config: Config,
    timing: Timing,
    address: Address,
    random: Stream,
    medium: Medium,
    functions: [Function; N],
    /// Which of them was granted the medium or holds it.
    active: usize,
    /// When its transmission opportunity ends.
    txop_end: Instant,
    claims: C,
    state: State,
    /// An ACK or CTS that is to be sent, or on its way.
    answer: Option<Answer>,
    /// The radio was asked to report the carrier.
    sensing: bool,
    deadline: Option<Wake>,
    /// When an answer that is awaited must have ended.
    patience: Instant,
    sequence: Sequence,
    duplicates: Duplicates,
    counters: Counters,
    trace: TraceRing,
}

/// Where the station stands with its own frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to send and no back-off running.
    Idle,
    /// Waiting for the medium, or counting slots.
    Contending,
    /// A slot boundary is reached: the frame leaves with the next poll.
    Granted,
    /// A CTS came: the data leaves at this instant, with the next poll.
    Cleared(Instant),
    /// The transmission opportunity lasts: another frame may leave at this instant, with the next poll.
    Holding(Instant),
    /// ZMAC+: the moment to burst has come: the burst leaves with the next poll.
    Announcing,
    /// ZMAC+: the burst was handed to the radio.
    Claiming,
    /// A frame was handed to the radio.
    Sending(OnAir),
    /// An RTS was sent.
    AwaitingCts,
    /// A data frame was sent.
    AwaitingAck,
}

const BACKOFF: &str = "back-off";
const CTS_TIMEOUT: &str = "CTS timeout";
const ACK_TIMEOUT: &str = "ACK timeout";

/// A station with the enhanced distributed channel access (EDCA) of 802.11e: four functions that contend beside each
/// other.
pub type Edca = Dot11<4>;

/// A ZMAC+ station (see [`zmac`](crate::zmac)): one function, which bursts before it contends.
pub type ZmacPlus = Dot11<1, Claims>;

impl Dot11<1> {
    /// A station that has not heard anything yet. `random` is its own stream, for back-offs and its first
    /// sequence number.
    pub fn new(config: Config, address: Address, random: Stream) -> Dot11 {
        Dot11::with_functions(config, [only(&config)], NoClaims, false, address, random)
    }
}

impl ZmacPlus {
    /// A ZMAC+ station that has not heard anything yet (see [`zmac`](crate::zmac)).
    pub fn zmac_plus(
        config: zmac::Config,
        schedule: Schedule,
        address: Address,
        random: Stream,
    ) -> ZmacPlus {
        // Interframe spaces are SIFS, and an attempt that failed needs no other wait than that for its ACK.
        let station = Config {
            aifsn: 0,
            difs_after_timeout: false,
            difs_backoff: false,
            ..config.station
        };
        let claims = Claims::new(config, schedule);
        Dot11::with_functions(station, [only(&station)], claims, false, address, random)
    }

    /// Gives a ZMAC+ station its time slots, from the next claim on.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.claims.schedule = schedule;
    }
}

impl Edca {
    /// An EDCA station that has not heard anything yet. Windows and AIFS are those of the `categories`, least urgent
    /// first; `config` gives the rest.
    pub fn edca(
        config: Config,
        categories: [Category; 4],
        address: Address,
        random: Stream,
    ) -> Edca {
        Dot11::with_functions(config, categories, NoClaims, true, address, random)
    }
}

impl<const N: usize, C: Claiming> Dot11<N, C> {
    fn with_functions(
        config: Config,
        categories: [Category; N],
        claims: C,
        eager: bool,
        address: Address,
        mut random: Stream,
    ) -> Dot11<N, C> {
        let shortest = categories.iter().map(|category| category.aifsn).min();
        let aifsn = shortest.unwrap_or(config.aifsn);
        let timing = Timing::new(&Config { aifsn, ..config });
        Dot11 {
            config,
            timing,
            address,
            medium: Medium::new(),
            functions: categories
                .map(|category| Function::new(category, aifsn, timing.slot, eager)),
            active: 0,
            txop_end: Instant::ZERO,
            claims,
            state: State::Idle,
            answer: None,
            sensing: false,
            deadline: None,
            patience: Instant::ZERO,
            sequence: Sequence::new(random.below(4096) as u16),
            duplicates: Duplicates::new(),
            counters: Counters::default(),
            trace: TraceRing::default(),
            random,
        }
    }

    /// What the station has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What decides how it contends.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Turns trace events on or off; off at first.
    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }
}

impl<const N: usize, C: Claiming> Mac for Dot11<N, C> {
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L) {
        match event {
            RadioEvent::Carrier { busy, since } => self.on_carrier(now, busy, since),
            RadioEvent::Received(ref reception) => self.on_received(now, reception, link),
            RadioEvent::Failed(_) => self.on_failed(now, link),
            RadioEvent::Sent => self.on_sent(now, link),
            // This MAC asks for no heads.
            RadioEvent::Head(_) => {}
        }
    }

    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest> {
        if self.answer.is_some()
            && let Some(transmit) = self.poll_answer(psdu)
        {
            return Some(RadioRequest::Transmit(transmit));
        }
        if let Some(burst) = self.poll_burst(now) {
            return Some(burst);
        }
        let transmit = match self.state {
            State::Granted => self.launch(now, psdu, link),
            State::Cleared(at) => self.send_data(at, psdu, false),
            State::Holding(at) => self.hold_on(now, at, psdu, link),
            _ => None,
        };
        if N > 1 {
            // A link node that gave one frame away may wish to send others sooner or later than before.
            self.look_up(now, link);
        }
        if let Some(transmit) = transmit {
            return Some(RadioRequest::Transmit(transmit));
        }
        let wanted = match self.state {
            State::Contending | State::Claiming => true,
            State::AwaitingCts | State::AwaitingAck => self.config.early_timeout,
            _ => false,
        };
        if wanted == self.sensing {
            return None;
        }
        self.sensing = wanted;
        self.medium.forget_carrier();
        Some(RadioRequest::Sense(wanted))
    }

    fn handle_timeout<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        let Some(wake) = self.deadline.take_if(|wake| wake.at <= now) else {
            return;
        };
        self.trace.push(TraceEvent::Timer { why: wake.why });
        match self.state {
            State::Contending => {
                let waiting = self.waiting(link);
                for function in self.functions.iter_mut().filter(|f| f.is_due(now)) {
                    function.pending = function.is_for(waiting);
                }
                self.grant(now);
            }
            State::AwaitingCts | State::AwaitingAck if self.answer_may_come(now) => {
                let at = self.patience;
                self.deadline = Some(Wake { at, why: wake.why });
            }
            State::AwaitingCts => self.on_no_cts(now, link),
            State::AwaitingAck => self.on_no_ack(now, link),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.deadline
    }

    #[inline]
    fn look_up<L: LinkNode>(&mut self, now: Instant, link: &L) {
        let waiting = self.waiting(link);
        // Drivers look up after every event, and most change nothing.
        let mut functions = self.functions.iter();
        if self.claims.get().is_some() || functions.any(|f| f.pending != f.is_for(waiting)) {
            self.note_waiting(now, waiting);
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}

/// The category of a station that has one: all classes.
fn only(config: &Config) -> Category {
    Category {
        classes: Classes::ALL,
        aifsn: config.aifsn,
        cw_min: config.cw_min,
        cw_max: config.cw_max,
        txop: Duration::ZERO,
    }
}

/// Contention.
impl<const N: usize, C: Claiming> Dot11<N, C> {
    fn on_carrier(&mut self, now: Instant, busy: bool, since: Instant) {
        if !self.sensing {
            return;
        }
        self.medium.on_carrier(busy, since, self.timing.eifs);
        if self.state != State::Contending {
            return;
        }
        if let Some(claims) = self.claims.get_mut() {
            claims.on_carrier(busy, since, self.timing.slot, self.timing.cca);
        }
        if busy && self.freeze(since) {
            return;
        }
        self.contend(now);
    }

    /// Energy came at `since`. True if it came too late for a function that transmits nevertheless.
    fn freeze(&mut self, since: Instant) -> bool {
        let (slot, cca) = (self.timing.slot, self.timing.cca);
        let mut committed = false;
        for function in self.functions.iter_mut().filter(|f| f.contending) {
            let before = function.backoff.is_committed();
            function.backoff.freeze(since, slot, cca);
            if function.backoff.is_committed() {
                self.counters.committed += u64::from(!before);
                committed = true;
            }
        }
        committed
    }

    /// Finds the next slot boundary at which the station may send, as far as is known now. To be called in
    /// state `Contending` whenever something that decides it has changed.
    fn contend(&mut self, now: Instant) {
        if self.claims.get().is_some() {
            return self.contend_by_claim(now);
        }
        if self.functions.iter().any(|f| f.backoff.is_committed()) {
            return self.settle();
        }
        // 10.3.4.2: whoever finds the medium busy with a frame in hand starts a back-off. The own answer to a
        // frame keeps it busy as well, from the end of that frame on.
        let reserved = self.sensing && self.medium.is_reserved(now);
        let answering = self.answer.is_some();
        let busy = self.medium.is_busy() || reserved || answering;
        let start = self.medium.slots_from(self.timing.difs);
        let (mut contending, mut earliest) = (false, None);
        for function in self.functions.iter_mut().filter(|f| f.contending) {
            contending = true;
            function.at = None;
            if busy && !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
            let Some(idle) = start.filter(|_| !answering) else {
                continue;
            };
            let idle = idle + function.extra;
            // The same for whoever finds it idle, but not for long enough: others may have waited for this moment too.
            let early = core::mem::take(&mut function.fresh) && idle > now;
            if early && self.config.difs_backoff && !function.backoff.is_drawn() {
                function.draw(now, &mut self.random);
            }
            let from = idle.max(function.floor);
            let at = function.backoff.resume(from, self.timing.slot);
            function.at = Some(at);
            earliest = Some(earliest.map_or(at, |earliest: Instant| earliest.min(at)));
        }
        match earliest {
            Some(at) if at <= now => self.grant(now),
            Some(at) => self.deadline = Some(Wake { at, why: BACKOFF }),
            None => {
                self.deadline = None;
                if !contending {
                    self.state = State::Idle;
                }
            }
        }
    }

    /// Waits for the earliest boundary, or rests if no function contends.
    fn settle(&mut self) {
        let contending = || self.functions.iter().filter(|f| f.contending);
        let earliest = contending().filter_map(|f| f.at).min();
        self.state = match contending().next() {
            Some(_) => State::Contending,
            None => State::Idle,
        };
        self.deadline = earliest.map(|at| Wake { at, why: BACKOFF });
    }

    /// Something other than the carrier changed when slots begin: count what has passed and start over.
    fn reconsider(&mut self, now: Instant) {
        if self.state != State::Contending {
            return;
        }
        let by_claim = self.claims.get().is_some();
        for function in self.functions.iter_mut().filter(|f| f.contending) {
            if by_claim {
                function.backoff.hold();
                continue;
            }
            function.backoff.pause(now, self.timing.slot);
            function.floor = function.floor.max(now);
        }
        self.contend(now);
    }

    /// A boundary is reached: the most urgent function that has a frame gets the medium.
    fn grant(&mut self, now: Instant) {
        for (at, function) in self.functions.iter_mut().enumerate().rev() {
            if !function.is_due(now) {
                continue;
            }
            if function.has_frame() {
                function.backoff.finish();
                self.active = at;
                self.state = match self.claims.get() {
                    Some(claims) if claims.is_waiting() => State::Announcing,
                    _ => State::Granted,
                };
                self.deadline = None;
                return;
            }
            function.rest();
        }
        self.settle();
    }

    /// Back to contention after an exchange or an attempt: the back-off that follows each of them. Slots count
    /// from `wait` later on, and for a less urgent function later still.
    fn contend_again(&mut self, now: Instant, wait: Duration) {
        if self.claims.get().is_some() {
            return self.claim_again(now, wait);
        }
        self.state = State::Contending;
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            let floor = match wait {
                Duration::ZERO => now,
                _ => now + wait + function.extra,
            };
            if at == active {
                function.contending = true;
                function.draw(floor, &mut self.random);
            } else {
                function.floor = function.floor.max(floor);
            }
        }
        self.contend(now);
    }

    /// Which function was granted the medium or holds it.
    fn active(&self) -> usize {
        // A constant for a single one: the compiler drops the loops and the checks of bounds.
        if N == 1 { 0 } else { self.active }
    }

    /// The function that was granted the medium or holds it.
    fn holder(&mut self) -> Option<&mut Function> {
        let active = self.active();
        self.functions.get_mut(active)
    }

    /// The holder has nothing to send and no back-off to finish.
    fn rest(&mut self, now: Instant) {
        if let Some(function) = self.holder() {
            function.rest();
        }
        self.state = State::Contending;
        self.contend(now);
    }

    /// What waits at the link node is not what it was, or a claim is to be weighed anew.
    fn note_waiting(&mut self, now: Instant, waiting: Classes) {
        let (mut came, mut went) = (false, false);
        let waits = matches!(self.state, State::Idle | State::Contending);
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            let pending = function.is_for(waiting);
            if pending == function.pending {
                continue;
            }
            function.pending = pending;
            if pending && !function.contending && (waits || at != active) {
                function.contending = true;
                function.fresh = true;
                came |= waits;
                // The station's own exchange keeps the medium busy.
                if !waits && !function.backoff.is_drawn() {
                    function.draw(now, &mut self.random);
                }
            } else if !pending && waits && function.contending && !function.must_contend() {
                // Nothing to send after all, and no back-off to finish.
                function.rest();
                went = true;
            }
        }
        let weighed = self.weigh(waiting) && self.state == State::Contending;
        if came || weighed {
            self.state = State::Contending;
            self.contend(now);
        } else if went {
            self.settle();
        }
    }

    /// The classes in which a frame waits, an own notification among them.
    fn waiting<L: LinkNode>(&self, link: &L) -> Classes {
        match self.claims.get() {
            Some(claims) if claims.notice.is_some() => link.pending().with(Class::Control),
            _ => link.pending(),
        }
    }

    /// Notes the most urgent class for the next claim. True if it changed.
    fn weigh(&mut self, waiting: Classes) -> bool {
        let Some(claims) = self.claims.get_mut() else {
            return false;
        };
        let kept = self.functions.first().and_then(|f| f.kept.class());
        let class = kept.into_iter().chain(waiting.most_urgent()).max();
        class.is_some_and(|class| claims.weigh(class))
    }

    /// Whether the link node has something for the holder.
    fn holder_pending<L: LinkNode>(&mut self, link: &L) -> bool {
        let waiting = self.waiting(link);
        self.weigh(waiting);
        self.holder().is_some_and(|function| {
            function.pending = function.is_for(waiting);
            function.pending
        })
    }

    /// The holder begins to transmit: the other functions find the medium busy.
    fn seize(&mut self, now: Instant) {
        let mut collisions = 0;
        let active = self.active();
        for (at, function) in self.functions.iter_mut().enumerate() {
            if at == active {
                function.contending = false;
                function.at = None;
                self.txop_end = now + function.txop;
            } else if function.give_way(now, self.timing.slot, &mut self.random) {
                collisions += 1;
            }
        }
        self.counters.internal_collisions =
            self.counters.internal_collisions.saturating_add(collisions);
    }
}
