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
//! Clauses named in this module are those of IEEE Std 802.11-2020.

mod backoff;
mod config;
mod counters;
mod duplicates;
mod medium;
mod receive;
mod send;

use chappe_core::{
    Address, Duration, Instant, LinkNode, Mac, RadioEvent, RadioRequest, Stream, TraceEvent,
    TraceRing, Wake,
};
use chappe_wire::dot11::Sequence;

pub use config::{Config, PSDU_MAX};
pub use counters::Counters;

use backoff::Backoff;
use config::Timing;
use duplicates::Duplicates;
use medium::Medium;
use receive::Answer;
use send::{Kept, OnAir};

/// One station.
#[derive(Clone, Debug)]
pub struct Dot11 {
    config: Config,
    timing: Timing,
    address: Address,
    random: Stream,
    medium: Medium,
    backoff: Backoff,
    state: State,
    /// An ACK or CTS that is to be sent, or on its way.
    answer: Option<Answer>,
    /// The link node has something to send, as far as was last seen.
    pending: bool,
    /// It became so just now, and the carrier has not been looked at yet.
    fresh: bool,
    /// The radio was asked to report the carrier.
    sensing: bool,
    /// When the running back-off was drawn: slots before that do not count.
    drawn_at: Instant,
    deadline: Option<Wake>,
    /// When an answer that is awaited must have ended.
    patience: Instant,
    kept: Kept,
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

impl Dot11 {
    /// A station that has not heard anything yet. `random` is its own stream, for back-offs and its first
    /// sequence number.
    pub fn new(config: Config, address: Address, mut random: Stream) -> Dot11 {
        Dot11 {
            config,
            timing: Timing::new(&config),
            address,
            medium: Medium::new(),
            backoff: Backoff::new(config.cw_min),
            state: State::Idle,
            answer: None,
            pending: false,
            fresh: false,
            sensing: false,
            drawn_at: Instant::ZERO,
            deadline: None,
            patience: Instant::ZERO,
            kept: Kept::default(),
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

impl Mac for Dot11 {
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
        let transmit = match self.state {
            State::Granted => self.launch(now, psdu, link),
            State::Cleared(at) => self.send_data(at, psdu, false),
            _ => None,
        };
        if let Some(transmit) = transmit {
            return Some(RadioRequest::Transmit(transmit));
        }
        let wanted = match self.state {
            State::Contending => true,
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
                self.pending = !link.pending().is_empty();
                self.grant();
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
        let pending = !link.pending().is_empty();
        if pending == self.pending {
            return;
        }
        self.pending = pending;
        match self.state {
            State::Idle if pending => {
                self.state = State::Contending;
                self.fresh = true;
                self.contend(now);
            }
            // Nothing to send after all, and no back-off to finish.
            State::Contending if !pending && !self.must_contend() => self.rest(),
            _ => {}
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}

/// Contention.
impl Dot11 {
    fn on_carrier(&mut self, now: Instant, busy: bool, since: Instant) {
        if !self.sensing {
            return;
        }
        self.medium.on_carrier(busy, since, self.timing.eifs);
        if self.state != State::Contending {
            return;
        }
        if busy {
            let before = self.backoff.is_committed();
            self.backoff
                .freeze(since, self.timing.slot, self.timing.cca);
            if self.backoff.is_committed() {
                self.counters.committed += u64::from(!before);
                return;
            }
        }
        self.contend(now);
    }

    /// Finds the next slot boundary at which the station may send, as far as is known now. To be called in
    /// state `Contending` whenever something that decides it has changed.
    fn contend(&mut self, now: Instant) {
        if self.backoff.is_committed() {
            return;
        }
        self.deadline = None;
        // 10.3.4.2: whoever finds the medium busy with a frame in hand starts a back-off. The own answer to a
        // frame keeps it busy as well, from the end of that frame on.
        let reserved = self.sensing && self.medium.is_reserved(now);
        let busy = self.medium.is_busy() || reserved || self.answer.is_some();
        if busy && !self.backoff.is_drawn() {
            self.draw(now);
        }
        if self.answer.is_some() {
            return;
        }
        let Some(idle) = self.medium.slots_from(self.timing.difs) else {
            return;
        };
        // The same for whoever finds it idle, but not for long enough: others may have waited for this moment too.
        let early = core::mem::take(&mut self.fresh) && idle > now;
        if early && self.config.difs_backoff && !self.backoff.is_drawn() {
            self.draw(now);
        }
        let from = idle.max(self.drawn_at);
        let at = self.backoff.resume(from, self.timing.slot);
        if at <= now {
            self.grant();
        } else {
            self.deadline = Some(Wake { at, why: BACKOFF });
        }
    }

    /// Something other than the carrier changed when slots begin: count what has passed and start over.
    fn reconsider(&mut self, now: Instant) {
        if self.state != State::Contending {
            return;
        }
        self.backoff.pause(now, self.timing.slot);
        self.drawn_at = self.drawn_at.max(now);
        self.contend(now);
    }

    /// The last boundary is reached.
    fn grant(&mut self) {
        self.backoff.finish();
        self.deadline = None;
        if self.pending || self.kept.is_held() {
            self.state = State::Granted;
        } else {
            self.state = State::Idle;
        }
    }

    /// Draws a back-off whose slots do not begin before `at`.
    fn draw(&mut self, at: Instant) {
        self.backoff.draw(&mut self.random);
        self.drawn_at = at;
    }

    /// Back to contention after an exchange or an attempt: the back-off that follows each of them.
    fn contend_again(&mut self, now: Instant, wait: Duration) {
        self.deadline = None;
        self.state = State::Contending;
        self.draw(now + wait);
        self.contend(now);
    }

    fn must_contend(&self) -> bool {
        self.kept.is_held() || self.backoff.is_drawn()
    }

    fn rest(&mut self) {
        self.backoff.finish();
        self.deadline = None;
        self.state = State::Idle;
    }
}
