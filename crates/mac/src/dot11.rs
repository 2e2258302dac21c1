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
mod contention;
mod counters;
mod duplicates;
mod function;
mod medium;
mod notice;
mod receive;
mod send;

use chappe_core::{
    Address, Classes, Duration, Instant, LinkNode, Mac, RadioEvent, RadioRequest, Stream,
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

/// A ZMAC+ station (see [`zmac`]): one function, which bursts before it contends.
pub type ZmacPlus = Dot11<1, Claims>;

impl Dot11<1> {
    /// A station that has not heard anything yet. `random` is its own stream, for back-offs and its first
    /// sequence number.
    pub fn new(config: Config, address: Address, random: Stream) -> Dot11 {
        Dot11::with_functions(config, [only(&config)], NoClaims, false, address, random)
    }
}

impl ZmacPlus {
    /// A ZMAC+ station that has not heard anything yet (see [`zmac`]).
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
        // Most polls find nothing to send.
        let ready = match self.state {
            State::Granted | State::Cleared(_) | State::Holding(_) | State::Announcing => true,
            _ => self.answer.is_some() || N > 1,
        };
        if ready && let Some(request) = self.transmit(now, psdu, link) {
            return Some(request);
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
    fn link_changed<L: LinkNode>(&mut self, now: Instant, link: &L) {
        let waiting = self.waiting(link);
        // `OverMac` calls this after every event, and most events change nothing.
        let mut functions = self.functions.iter();
        if self.claims.get().is_some() || functions.any(|f| f.pending != f.is_for(waiting)) {
            self.note_waiting(now, waiting);
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}

impl<const N: usize, C: Claiming> Dot11<N, C> {
    /// What is to be sent now: an answer, a burst or an own frame.
    #[inline(never)] // else every poll pays for the registers that this saves
    fn transmit<L: LinkNode>(
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
            self.link_changed(now, link);
        }
        transmit.map(RadioRequest::Transmit)
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
