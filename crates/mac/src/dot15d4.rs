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
//! - A **job** is a frame to be sent: the one in hand for a neighbour that listens, those held for sleepy children
//!   until they ask (indirect), or a data request of the station's own. One job is worked on at a time; between two
//!   of its attempts another may come first.
//! - **The pause between attempts** (TCPlp, section 7.1) keeps two hidden senders, whose frames have collided, from
//!   colliding again: each waits a random time of up to `retry_delay` besides the back-off.
//! - **A leaf** sleeps. It wakes to send, and for the answer to a data request; how often it asks follows from
//!   what the layers above [expect](chappe_core::Expect).
//! - **Security** is CCM\* per frame ([`Security`]); a frame's replay is checked only after its authenticity.
//!
//! Clauses named in this module are those of IEEE Std 802.15.4-2015.

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
use receive::Answer;

/// One station. `INDIRECT` frames can be held for sleepy children, two for each child so that the first can say
/// that there is another.
#[derive(Debug)]
pub struct Dot15d4<const INDIRECT: usize = 4> {
    config: Config,
    address: Address,
    random: Stream,
    state: State,
    deadline: Option<Wake>,
    /// What is being worked on.
    active: Option<Active>,
    direct: Job,
    request: Job,
    indirect: Indirect<INDIRECT>,
    leaf: Option<Leaf>,
    answer: Option<Answer>,
    /// The link node has something to send, as far as was last seen.
    pending: bool,
    /// The link node had no frame although it had said so, or one that could not be held: it is asked again when
    /// something has happened.
    stalled: bool,
    /// What the radio was last asked for.
    sensing: bool,
    listening: bool,
    /// Energy was seen during this assessment.
    busy: bool,
    /// Energy is present, as far as the radio was asked.
    carrier: bool,
    sequence: u8,
    duplicates: Duplicates,
    security: Option<Security>,
    counters: Counters,
    listening_since: Instant,
    /// Since when a radio that does not listen has been loaded or has backed off.
    contending_since: Option<Instant>,
    trace: TraceRing,
}

/// Where the station stands with the job it works on.
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

impl<const INDIRECT: usize> Dot15d4<INDIRECT> {
    /// A station that has not heard anything yet. `random` is its own stream, for back-offs, pauses and its first
    /// sequence number.
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

    /// Protects every data frame and command from now on, and refuses unprotected ones.
    pub fn secure(&mut self, security: Security) {
        self.security = Some(security);
    }

    /// Frames to `child` are held until it asks for them. False if there is no room for one more child.
    pub fn add_child(&mut self, child: Address) -> bool {
        self.indirect.add_child(child)
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

    /// How long the radio has been on, receiving or sending, until `now`: over the time passed, the radio's duty
    /// cycle.
    pub fn radio_on(&self, now: Instant) -> chappe_core::Duration {
        let present = match self.listening {
            true => now.saturating_since(self.listening_since),
            false => chappe_core::Duration::ZERO,
        };
        self.counters.radio_on + present
    }

    /// How long the radio has been out of its deepest sleep until `now`: what [`radio_on`](Self::radio_on) counts, and while
    /// a frame is loaded and the back-off runs. A leaf's receiver is off then, but a radio that sleeps takes no frame.
    pub fn radio_awake(&self, now: Instant) -> chappe_core::Duration {
        let present = match self.contending_since {
            Some(since) => now.saturating_since(since),
            None => chappe_core::Duration::ZERO,
        };
        self.radio_on(now) + self.counters.contending + present
    }

    /// Books the time in which a radio contends without listening.
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

    /// How an address stands on the air in this network.
    fn node(&self, address: Address) -> Node {
        match Node::short(address) {
            Some(short) if self.config.short_addresses => short,
            _ => Node::extended(address),
        }
    }
}

impl<const INDIRECT: usize> Mac for Dot15d4<INDIRECT> {
    fn handle_radio<L: LinkNode>(&mut self, now: Instant, event: RadioEvent<'_>, link: &mut L) {
        self.stalled = false;
        match event {
            RadioEvent::Carrier { busy, .. } => {
                self.carrier = busy;
                self.busy |= busy;
            }
            RadioEvent::Head(_) => {}
            RadioEvent::Received(ref reception) => self.on_received(now, reception, link),
            RadioEvent::Failed(_) => Counters::add(&mut self.counters.undecodable),
            RadioEvent::Sent => self.on_sent(now, link),
        }
    }

    fn poll_radio<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<RadioRequest> {
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
        if let Some(transmit) = self.poll_answer(psdu) {
            return Some(RadioRequest::Transmit(transmit));
        }
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

impl<const INDIRECT: usize> Dot15d4<INDIRECT> {
    /// Whether the receiver is needed.
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
