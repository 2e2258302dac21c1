//! The distributed coordination function (DCF) of IEEE 802.11, and its extension EDCA.
//!
//! A station senses the carrier before it sends, waits a random number of slots, expects an ACK, and doubles its
//! contention window when none comes.
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
//! - **Carrier sense** is on only while the station contends. NAV and EIFS are derived from received frames at all
//!   times.
//! - **Immediate access** is granted if the medium was idle for DIFS (or EIFS) when the frame became ready and no
//!   back-off is running. Otherwise a back-off is drawn. Each exchange is followed by another back-off, whether or
//!   not a frame waits (10.3.4.3).
//! - **Late binding**: [`LinkNode::poll_link`] is called when the first bit is about to leave. A unicast frame is
//!   then kept for its retransmissions. A broadcast is copied only if it does not fit into its TXOP.
//! - **The order of events at one instant does not matter**: the next slot boundary is the same whether the radio
//!   first reports the idle carrier or the frame that ended.
//!
//! **EDCA** is the same station with four access functions. Each has its own interframe space, window, back-off and
//! frame. They count slots concurrently and meet only inside the station: if several reach their boundary together,
//! the most urgent one transmits and the others draw anew from a wider window. [`Category`] holds the parameters. A
//! function with a TXOP limit continues after SIFS while its frames fit.
//!
//! Clauses cited in this module are those of IEEE Std 802.11-2020.

mod aggregate;
mod backoff;
mod category;
mod claim;
mod config;
mod contention;
mod counters;
mod duplicates;
mod function;
mod medium;
mod minstrel;
mod near;
mod notice;
mod notification;
mod receive;
mod reserved;
mod scoreboard;
mod send;

use chappe_core::{
    Address, Classes, Duration, Instant, LinkNode, Mac, RadioEvent, RadioRequest, Stream,
    TraceEvent, TraceRing, Wake,
};
use chappe_wire::dot11::Sequence;

pub use category::Category;
pub use claim::{Claiming, Claims, NoClaims, ZmacPlus};
pub use config::{Config, PSDU_MAX, RateControl};
pub use counters::Counters;

use aggregate::Window;
use config::Timing;
use duplicates::Duplicates;
use function::Function;
use medium::Medium;
use minstrel::Minstrel;
use receive::Answer;
use scoreboard::Scoreboard;
use send::OnAir;

/// One station with `N` channel access functions: one is the DCF, four are EDCA. `C` decides whether it claims the
/// channel before it contends ([`ZmacPlus`]). With `A` above zero it sends up to so many frames, 64 at most, to one neighbour in an A-MPDU of
/// 802.11n ([`Dot11::aggregating`]); every station can receive these.
#[derive(Clone, Debug)]
pub struct Dot11<const N: usize = 1, C = NoClaims, const A: usize = 0> {
    config: Config,
    timing: Timing,
    address: Address,
    random: Stream,
    medium: Medium,
    functions: [Function; N],
    /// Index of the function that was granted the medium or holds it.
    active: usize,
    /// When its transmission opportunity ends.
    txop_end: Instant,
    claims: C,
    state: State,
    /// An ACK or CTS that is scheduled, or on the air.
    answer: Option<Answer>,
    /// The radio was asked to report the carrier.
    sensing: bool,
    deadline: Option<Wake>,
    /// When an awaited CTS or ACK must have ended.
    answer_deadline: Instant,
    sequence: Sequence,
    duplicates: Duplicates,
    /// The frames of the A-MPDU that is to be acknowledged.
    window: Window<A>,
    /// What arrived in A-MPDUs.
    scoreboard: Scoreboard,
    /// Rate control; `None` with fixed rates.
    minstrel: Option<Minstrel>,
    counters: Counters,
    trace: TraceRing,
}

/// The state of the station's own transmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to send and no back-off running.
    Idle,
    /// Waiting for the medium, or counting slots.
    Contending,
    /// The slot boundary is reached: the frame leaves with the next poll.
    Granted,
    /// A CTS was received: the data leaves at this instant, with the next poll.
    CtsReceived(Instant),
    /// Within a transmission opportunity: another frame may leave at this instant, with the next poll.
    Holding(Instant),
    /// ZMAC+: the burst leaves with the next poll.
    Announcing,
    /// ZMAC+: the burst was handed to the radio.
    Claiming,
    /// A frame was handed to the radio.
    Sending(OnAir),
    /// An RTS was sent.
    AwaitingCts,
    /// A data frame was sent.
    AwaitingAck,
    /// An A-MPDU was sent, or a request for its BlockAck.
    AwaitingBlockAck,
}

const BACKOFF: &str = "back-off";
const CTS_TIMEOUT: &str = "CTS timeout";
const ACK_TIMEOUT: &str = "ACK timeout";
const BLOCK_ACK_TIMEOUT: &str = "BlockAck timeout";

/// A station with the enhanced distributed channel access (EDCA) of 802.11e: four functions that contend
/// concurrently.
pub type Edca = Dot11<4>;

impl Dot11<1> {
    /// A DCF station that has received nothing yet. It draws back-offs and its first sequence number from `random`.
    pub fn new(config: Config, address: Address, random: Stream) -> Dot11 {
        Dot11::with_functions(config, [only(&config)], NoClaims, false, address, random)
    }
}

impl<const A: usize> Dot11<1, NoClaims, A> {
    /// A station of 802.11n with one access category that sends its unicast frames in A-MPDUs of up to `A`, if [`Config::data`] is a rate
    /// of HT. The driver's buffer limits them too: [`Config::ampdu_len`] says what `A` frames need. Block acknowledgements need QoS, so it
    /// counts slots as EDCA does.
    pub fn aggregating(config: Config, address: Address, random: Stream) -> Dot11<1, NoClaims, A> {
        Dot11::with_functions(config, [only(&config)], NoClaims, A > 0, address, random)
    }
}

impl Edca {
    /// An EDCA station that has received nothing yet. Windows and AIFS come from `categories`, least urgent first; the
    /// rest comes from `config`.
    pub fn edca(
        config: Config,
        categories: [Category; 4],
        address: Address,
        random: Stream,
    ) -> Edca {
        Dot11::with_functions(config, categories, NoClaims, true, address, random)
    }

    /// A station with the default categories of its rate, if it has categories; else one that does what one of the DCF
    /// ([`Dot11::new`]) does, by one of the four functions. For programs that choose at run time.
    pub fn or_dcf(config: Config, has_categories: bool, address: Address, random: Stream) -> Edca {
        if has_categories {
            let categories = Category::of_rate(config.data.rate);
            return Edca::edca(config, categories, address, random);
        }
        let unused = Category {
            classes: Classes::NONE,
            ..only(&config)
        };
        let categories = [unused, unused, unused, only(&config)];
        Dot11::with_functions(config, categories, NoClaims, false, address, random)
    }
}

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    fn with_functions(
        config: Config,
        categories: [Category; N],
        claims: C,
        eager: bool,
        address: Address,
        mut random: Stream,
    ) -> Dot11<N, C, A> {
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
            answer_deadline: Instant::ZERO,
            sequence: Sequence::new(random.below(4096) as u16),
            duplicates: Duplicates::new(),
            window: Window::new(),
            scoreboard: Scoreboard::new(),
            minstrel: (config.rate_control == RateControl::Minstrel)
                .then(|| Minstrel::new(&config)),
            counters: Counters::default(),
            trace: TraceRing::default(),
            random,
        }
    }

    /// Counters since the station was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The configuration it was created with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The station's own address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Turns trace events on or off. They are off initially.
    pub fn trace(&mut self, on: bool) {
        self.trace.on(on);
    }
}

impl<const N: usize, C: Claiming, const A: usize> Mac for Dot11<N, C, A> {
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L) {
        match event {
            RadioEvent::Carrier { busy, since } => self.on_carrier(now, busy, since),
            RadioEvent::Received(ref reception) => self.on_received(now, reception, link),
            RadioEvent::Failed(_) => self.on_failed(now, link),
            RadioEvent::Sent => self.on_sent(now, link),
            // This MAC never sends `RadioRequest::Peek`.
            RadioEvent::Head(_) => {}
        }
    }

    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest> {
        // The quick test first: most polls find nothing to send.
        let ready = match self.state {
            State::Granted | State::CtsReceived(_) | State::Holding(_) | State::Announcing => true,
            _ => self.answer.is_some() || N > 1,
        };
        if ready && let Some(request) = self.transmit(now, psdu, link) {
            return Some(request);
        }
        let wanted = match self.state {
            State::Contending | State::Claiming => true,
            State::AwaitingCts | State::AwaitingAck | State::AwaitingBlockAck => {
                self.config.early_timeout
            }
            _ => false,
        };
        if wanted == self.sensing {
            return None;
        }
        // Carrier reports cost the driver work on every frame of the neighbourhood, so sensing is off unless it decides
        // something. What was known of the carrier is void once reports stop.
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
                // Asked again: the link node may have changed its mind since, and a function without a frame must not win.
                let waiting = self.waiting(link);
                for function in self.functions.iter_mut().filter(|f| f.is_due(now)) {
                    function.pending = function.is_for(waiting);
                }
                self.grant(now);
            }
            // 10.3.2.11: a frame whose preamble began in time is received to its end before the attempt has failed.
            State::AwaitingCts | State::AwaitingAck | State::AwaitingBlockAck
                if self.answer_may_come(now) =>
            {
                let at = self.answer_deadline;
                self.deadline = Some(Wake { at, why: wake.why });
            }
            State::AwaitingCts => self.on_no_cts(now, link),
            State::AwaitingAck => self.on_no_ack(now, link),
            State::AwaitingBlockAck => self.on_no_block_ack(now, link),
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

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// The transmission that is due: an answer, a burst or an own frame.
    #[inline(never)] // Inlined, it would make every poll save the registers that this needs.
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
            State::CtsReceived(at) => self.send_data(at, psdu, false),
            State::Holding(at) => self.continue_txop(now, at, psdu, link),
            _ => None,
        };
        if N > 1 {
            // The link node gave a frame away, so other classes may be pending for the other functions.
            self.link_changed(now, link);
        }
        transmit.map(RadioRequest::Transmit)
    }
}

/// The single category of a DCF station: all classes.
fn only(config: &Config) -> Category {
    Category {
        classes: Classes::ALL,
        aifsn: config.aifsn,
        cw_min: config.cw_min,
        cw_max: config.cw_max,
        txop: Duration::ZERO,
    }
}
