//! Unslotted CSMA-CA of IEEE 802.15.4, with acknowledgements, sleepy leaves and their parents.
//!
//! ```text
//!            a job waits      loaded          back-off over         idle
//!   Idle ------------> Loading ----> Backing off ----------> Assessing ----> Sending ----> Awaiting ACK
//!    ^                                   ^                      |  busy: NB + 1, BE + 1        |
//!    |                                   +----------------------+                              |
//!    +---- Spacing (IFS) <---- done, or a pause of up to d before the next attempt <-----------+
//! ```
//!
//! - A **job** is a frame to send: the direct one for a neighbour that listens, those held for sleepy children until
//!   they ask (indirect), or a data request of the station's own. The station works on one job at a time; between two
//!   of its attempts another job may go first.
//! - **The pause between attempts** (TCPlp, section 7.1) keeps two hidden senders whose frames have collided from
//!   colliding again: each waits a random time of up to `retry_delay` in addition to the back-off.
//! - **A leaf** sleeps. It wakes to send, and to receive the answer to a data request. How often it asks depends on
//!   what the layers above [expect](chappe_core::Expect).
//! - **An acknowledgement comes before the frame is processed**: the MAC hands a frame up when the radio has its
//!   acknowledgement, which is due 192 us after the frame.
//! - **Security** is CCM\* per frame ([`Security`]). A frame is checked for replay only after it proved authentic.
//!
//! Clauses cited in this module are those of IEEE Std 802.15.4-2015.

mod config;
mod counters;
mod csma;
mod duplicates;
mod indirect;
mod leaf;
mod receive;
mod security;

use chappe_core::{
    Address, Instant, LinkEvent, LinkNode, Mac, Outcome, RadioEvent, RadioRequest, Stream,
    TraceEvent, TraceRing, Wake,
};
use chappe_wire::dot15d4::Node;

pub use config::{Config, SDU_MAX, Sleep};
pub use counters::Counters;
pub use security::{Level, Security};

use csma::Job;
use duplicates::Duplicates;
use indirect::Indirect;
use leaf::Leaf;
use receive::{Answer, Arrived};

/// One station. It can hold `INDIRECT` frames for sleepy children, and knows `CHILDREN` of them. Two frames for each child let
/// the first one announce the second.
#[derive(Debug)]
pub struct Dot15d4<const INDIRECT: usize = 4, const CHILDREN: usize = INDIRECT> {
    config: Config,
    address: Address,
    random: Stream,
    state: State,
    deadline: Option<Wake>,
    /// The job being worked on.
    active: Option<Active>,
    direct: Job,
    request: Job,
    indirect: Indirect<INDIRECT, CHILDREN>,
    leaf: Option<Leaf>,
    answer: Option<Answer>,
    /// A frame that waits until the radio has its acknowledgement.
    arrived: Option<Arrived>,
    /// The link node had a frame to send when last asked.
    pending: bool,
    /// The link node returned no frame although one was pending, or one that could not be held. It is asked again
    /// after the next event.
    stalled: bool,
    /// The last request to the radio: carrier reports, receiver on.
    sensing: bool,
    listening: bool,
    /// Energy was seen during this assessment.
    busy: bool,
    /// Energy is present, as last reported.
    carrier: bool,
    sequence: u8,
    duplicates: Duplicates,
    security: Option<Security>,
    counters: Counters,
    listening_since: Instant,
    /// Since when a frame is loaded or a back-off runs with the receiver off.
    contending_since: Option<Instant>,
    trace: TraceRing,
}

/// The progress of the active job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Loading,
    BackingOff,
    Assessing,
    Sending,
    AwaitingAck,
    Spacing,
}

/// Which job is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Active {
    Direct,
    Request,
    /// The job held at this place.
    Indirect(usize),
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
    /// A station that has received nothing yet. It draws back-offs, pauses and its first sequence number from `random`.
    pub fn new(config: Config, address: Address, mut random: Stream) -> Self {
        Dot15d4 {
            config,
            address,
            state: State::Idle,
            deadline: None,
            active: None,
            direct: Job::default(),
            request: Job::default(),
            indirect: Indirect::default(),
            leaf: config.sleep.map(Leaf::new),
            answer: None,
            arrived: None,
            pending: false,
            stalled: false,
            sensing: false,
            // A radio starts listening.
            listening: true,
            busy: false,
            carrier: false,
            sequence: random.below(256) as u8,
            duplicates: Duplicates::default(),
            security: None,
            counters: Counters::default(),
            listening_since: Instant::ZERO,
            contending_since: None,
            trace: TraceRing::default(),
            random,
        }
    }

    /// Protects every data frame and command from now on, and drops unprotected ones.
    pub fn secure(&mut self, security: Security) {
        self.security = Some(security);
    }

    /// Holds frames to `child` until it asks for them. False if there is no room for another child.
    pub fn add_child(&mut self, child: Address) -> bool {
        self.indirect.add_child(child)
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

    /// How long the radio has been on until `now`, receiving or sending. Divided by the elapsed time it is the radio's
    /// duty cycle.
    pub fn radio_on(&self, now: Instant) -> chappe_core::Duration {
        let present = match self.listening {
            true => now.saturating_since(self.listening_since),
            false => chappe_core::Duration::ZERO,
        };
        self.counters.radio_on + present
    }

    /// How long the radio has been out of its deepest sleep until `now`: [`radio_on`](Self::radio_on), and the time in
    /// which a frame is loaded or the back-off runs. A leaf's receiver is off then, but a sleeping radio could not take
    /// the frame.
    pub fn radio_awake(&self, now: Instant) -> chappe_core::Duration {
        let present = match self.contending_since {
            Some(since) => now.saturating_since(since),
            None => chappe_core::Duration::ZERO,
        };
        self.radio_on(now) + self.counters.contending + present
    }

    /// Counts the time in which the station contends with the receiver off.
    fn note_contention(&mut self, now: Instant, listens: bool) {
        let contends = !listens && matches!(self.state, State::Loading | State::BackingOff);
        match (contends, self.contending_since) {
            (true, None) => self.contending_since = Some(now),
            (false, Some(since)) => {
                self.counters.contending += now.saturating_since(since);
                self.contending_since = None;
            }
            _ => {}
        }
    }

    /// The form of an address in this network's frames: short or extended.
    fn node(&self, address: Address) -> Node {
        match Node::short(address) {
            Some(short) if self.config.short_addresses => short,
            _ => Node::extended(address),
        }
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Mac for Dot15d4<INDIRECT, CHILDREN> {
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L) {
        // A driver that drains takes a frame's acknowledgement before it brings the next event.
        self.take_in_arrived(now, link);
        self.stalled = false;
        match event {
            RadioEvent::Carrier { busy, .. } => {
                self.carrier = busy;
                self.busy |= busy;
            }
            RadioEvent::Head(_) => {}
            RadioEvent::Received(ref reception) => self.on_received(now, reception, link),
            RadioEvent::Failed(_) => self.counters.undecodable += 1,
            RadioEvent::Sent => self.on_sent(now, link),
        }
    }

    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest> {
        // Before all else: an acknowledgement must leave a turnaround after the frame, while own frames can wait.
        if let Some(transmit) = self.poll_answer(psdu) {
            return Some(RadioRequest::Transmit(transmit));
        }
        self.take_in_arrived(now, link);
        self.advance(now, link);
        let listen = self.wants_to_listen();
        self.note_contention(now, listen);
        if listen != self.listening {
            self.listening = listen;
            match listen {
                true => self.listening_since = now,
                false => {
                    let span = now.saturating_since(self.listening_since);
                    self.counters.radio_on += span;
                }
            }
            return Some(RadioRequest::Listen(listen));
        }
        // After the receiver was switched on: a radio that is off senses nothing.
        let sense = self.state == State::Assessing;
        if sense != self.sensing {
            self.sensing = sense;
            return Some(RadioRequest::Sense(sense));
        }
        self.poll_job(now, psdu).map(RadioRequest::Transmit)
    }

    fn handle_timeout<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if let Some(wake) = self.deadline.take_if(|wake| wake.at <= now) {
            self.stalled = false;
            self.trace.push(TraceEvent::Timer { why: wake.why });
            self.on_deadline(now, link);
        }
        self.leaf_timeout(now, link);
        self.expire(now, link);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let held = self.indirect.next_expiry();
        let leaf = self.leaf.as_ref().and_then(Leaf::next);
        Wake::earlier(self.deadline, Wake::earlier(leaf, held))
    }

    fn link_changed<L: LinkNode>(&mut self, now: Instant, link: &L) {
        let pending = !link.pending().is_empty();
        self.stalled &= pending;
        self.pending = pending;
        if let Some(leaf) = &mut self.leaf {
            leaf.expect(now, link.expects());
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop()
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
    /// Whether the receiver must be on.
    fn wants_to_listen(&self) -> bool {
        let exchanging = matches!(
            self.state,
            State::Assessing | State::Sending | State::AwaitingAck
        );
        let contending = matches!(self.state, State::Loading | State::BackingOff);
        match &self.leaf {
            Some(leaf) => exchanging || self.answer.is_some() || leaf.is_awaiting(),
            None => !(self.config.deaf && contending) || self.answer.is_some(),
        }
    }

    fn report<L: LinkNode>(&mut self, now: Instant, token: u32, outcome: Outcome, link: &mut L) {
        link.handle_link(now, LinkEvent::Sent { token, outcome });
        self.pending = !link.pending().is_empty();
    }
}
