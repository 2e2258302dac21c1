//! The gateway: a destination that does not give up at the first silence.
//!
//! | state | event | does |
//! |---|---|---|
//! | idle | [`start`](Gateway::start) | asks its planner for a plan and floods it |
//! | trying | the destination is incomplete | pauses; asks the nodes what they heard, where a group brought too little, but not after the first attempt without a packet |
//! | pausing, asking | time, or all have told | asks its planner for another plan, floods it; resumes from what has arrived |
//! | trying | the destination is complete and idle | done |
//! | trying | [`ATTEMPTS_MAX`] attempts in a row brought nothing, or the planner has no plan | gives up |
//!
//! A flood can be lost, relays can fail, an end can restart, and links can be worse than they were measured. The gateway
//! only hears nothing, or nothing any more. So it asks the nodes of its plan what they heard ([`Tally`]), and leaves it to its [`Planner`]
//! to avoid the links that failed, or the groups that brought nothing where no node tells ([`Trial`]).
//!
//! Where packets are authenticated by blocks and someone forges them, all further attempts have a tag in each frame.

use chappe_core::{
    Caps, Drops, Duration, Instant, RadioEvent, RadioNode, RadioRequest, TraceEvent, Wake,
};

use crate::checkpoint::Checkpoint;
use crate::config::{Config, ConfigError};
use crate::destination::{Destination, Progress, StartError};
use crate::groups::PerGroup;
use crate::object::Store;
use crate::plan::Plan;
use crate::tally::Tally;

/// Attempts in a row without a new packet, after which a gateway gives up. 24 take some twenty seconds, longer than a
/// source takes to restart or a jammer's burst lasts: our choice.
pub const ATTEMPTS_MAX: u8 = 24;
/// The pause before the first repetition; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause before a repetition: doubling stops here.
const PAUSE_MAX: Duration = Duration::from_millis(640);

/// What an attempt brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The plan that was tried.
    pub plan: Plan,
    /// Frames of use that came by each group.
    pub heard: PerGroup,
    /// Packets that the destination gained.
    pub gained: u32,
    /// Answers to the last question that did not reach the source.
    pub unheard: u8,
    /// What the nodes of the plan heard, as they told afterwards; nothing where no group failed.
    pub told: Tally,
}

impl Trial {
    /// Whether a group brought less than half of what the best one brought: some of its links are not what they were
    /// measured as. All groups failed where nothing came.
    pub fn has_failed(&self, group: u8) -> bool {
        let of = |group: u8| self.heard.get(usize::from(group)).copied().unwrap_or(0);
        let best = (0..self.plan.groups()).map(of).max().unwrap_or(0);
        best == 0 || of(group) * 2 < best
    }
}

/// Makes the plans of a gateway's attempts.
pub trait Planner {
    /// The plan of the first attempt, or of the next one after `last`. The gateway numbers transfers and sessions itself.
    /// `None` if there is no way, which ends the transfer.
    fn plan(&mut self, last: Option<&Trial>) -> Option<Plan>;
}

/// What a gateway must keep to go on after a restart, with its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The number of its last transfer.
    pub transfer: u8,
    /// The session of its last plan.
    pub session: u32,
    /// Octets of a packet in its last plan; 0 before the first.
    pub payload: u8,
    /// The packets that have arrived.
    pub checkpoint: Checkpoint,
}

/// A destination with a planner.
#[derive(Clone, Debug)]
pub struct Gateway<S, P> {
    destination: Destination<S>,
    planner: P,
    /// Attempts in a row that brought nothing.
    fruitless: u8,
    attempts: u32,
    transfer: u8,
    session: u32,
    /// The session of the first attempt with the relays of the last plan.
    since: u32,
    /// Octets of a packet in the last plan.
    payload: u8,
    /// Whether someone forged packets, so that every frame shall carry a tag.
    wary: bool,
    /// Packets at the start of the present attempt.
    before: u32,
    /// The attempt of which the nodes are asked.
    asked: Option<Trial>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one state per gateway, and no allocator to box it with"
)]
enum State {
    Idle,
    /// After a restart: begins at once.
    Resuming(Checkpoint),
    Trying,
    Pausing {
        until: Instant,
    },
    GaveUp,
}

impl<S: Store, P: Planner> Gateway<S, P> {
    /// The gateway at node `number`, without a transfer.
    pub fn new(
        config: Config,
        caps: &Caps,
        number: u16,
        store: S,
        planner: P,
    ) -> Result<Gateway<S, P>, ConfigError> {
        Ok(Gateway {
            destination: Destination::new(config, caps, number, store)?,
            planner,
            fruitless: 0,
            attempts: 0,
            transfer: 0,
            session: 0,
            since: 0,
            payload: 0,
            wary: false,
            before: 0,
            asked: None,
            state: State::Idle,
        })
    }

    /// The same after a restart in mid-transfer: it goes on by itself at its first deadline. The store must hold the
    /// packets of the checkpoint.
    pub fn resuming(mut self, memory: &Memory) -> Gateway<S, P> {
        (self.transfer, self.session) = (memory.transfer, memory.session);
        self.since = memory.session;
        self.payload = memory.payload;
        self.state = State::Resuming(memory.checkpoint);
        self
    }

    /// Starts a transfer: its first wake-up frame leaves at `at`.
    ///
    /// A planner without a plan leaves the gateway idle, which [`has_given_up`](Self::has_given_up) says.
    pub fn start(&mut self, at: Instant) -> Result<(), StartError> {
        if !matches!(self.state, State::Idle | State::GaveUp) {
            return Err(StartError::Busy);
        }
        (self.fruitless, self.wary, self.asked) = (0, false, None);
        self.begin(None, None, at)
    }

    /// The destination that it drives.
    pub fn destination(&self) -> &Destination<S> {
        &self.destination
    }

    /// The planner that makes its plans.
    pub fn planner(&self) -> &P {
        &self.planner
    }

    /// How much of the object has arrived.
    pub fn progress(&self) -> Progress {
        self.destination.progress()
    }

    /// What [`resuming`](Self::resuming) needs. Keep it with the store.
    pub fn memory(&self) -> Memory {
        Memory {
            transfer: self.transfer,
            session: self.session,
            payload: self.payload,
            checkpoint: match self.state {
                State::Resuming(checkpoint) => checkpoint,
                _ => self.destination.checkpoint(),
            },
        }
    }

    /// Attempts so far, the first one included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether it has stopped without the whole object.
    pub fn has_given_up(&self) -> bool {
        self.state == State::GaveUp
    }

    /// Whether no transfer is going on.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::GaveUp)
    }

    /// Turns the trace on or off.
    pub fn trace(&mut self, on: bool) {
        self.destination.trace(on);
    }

    /// Frames that it did not use, counted by reason.
    pub fn drops(&self) -> &Drops {
        self.destination.drops()
    }

    fn begin(
        &mut self,
        last: Option<&Trial>,
        checkpoint: Option<&Checkpoint>,
        at: Instant,
    ) -> Result<(), StartError> {
        let Some(plan) = self.planner.plan(last) else {
            self.state = State::GaveUp;
            return Ok(());
        };
        self.attempts = self.attempts.saturating_add(1);
        let mut plan = self.numbered(plan);
        let known = self.destination.plan();
        let same = known.is_some_and(|known| known.relays() == plan.relays());
        if !same || last.is_none() {
            self.since = self.session;
        }
        if self.wary {
            plan = plan.tagged_by_packet();
        }
        let (from, to) = (usize::from(self.payload), plan.payload());
        let checkpoint = checkpoint.map(|point| match from == to || from == 0 {
            true => *point,
            false => point.in_packets_of(from, to),
        });
        self.payload = to as u8;
        self.before = checkpoint.map_or(0, |checkpoint| checkpoint.received);
        let started = self.destination.start(plan, checkpoint.as_ref(), at);
        self.state = match started {
            Ok(()) => State::Trying,
            Err(_) => State::GaveUp,
        };
        started
    }

    /// The plan under the next numbers of transfer and session, and with the flood that is due.
    fn numbered(&mut self, plan: Plan) -> Plan {
        self.transfer = self.transfer.wrapping_add(1);
        // Sessions do not wrap: 2^32 transfers are more than a node makes, and the last one would be refused.
        self.session = self.session.saturating_add(1);
        // Thin floods reach more, and another one has other silent turns. But one node alone may need all turns of its neighbour, so the
        // third flood is not thin. Nor do floods reach farther than they have turns.
        let (thin, long) = (self.fruitless % 3 != 2, self.fruitless > 0);
        let long = long || plan.is_long();
        let plan = plan.again(self.transfer, self.session);
        plan.thinly(thin).at_length(long)
    }

    /// Looks whether the attempt, or the question after it, is over.
    fn look(&mut self, now: Instant) {
        if self.state != State::Trying || !self.destination.is_idle() {
            return;
        }
        if let Some(mut trial) = self.asked.take() {
            trial.told = *self.destination.told();
            return self.try_again(Some(&trial), now);
        }
        let progress = self.destination.progress();
        self.wary |= self.destination.meets_forgers();
        if progress.completed.is_some() {
            self.state = State::Idle;
            return;
        }
        self.fruitless = match progress.packets > self.before {
            true => 0,
            false => self.fruitless.saturating_add(1),
        };
        self.state = match self.fruitless >= ATTEMPTS_MAX {
            true => State::GaveUp,
            false => {
                let pause = PAUSE * (1 << self.fruitless.min(8));
                let pause = if pause > PAUSE_MAX { PAUSE_MAX } else { pause };
                State::Pausing { until: now + pause }
            }
        };
    }

    /// Asks what the nodes heard of an attempt of which a group failed, or begins the next one.
    fn go_on(&mut self, now: Instant) {
        let trial = self.destination.plan().map(|plan| Trial {
            plan: *plan,
            heard: self.destination.heard(),
            gained: self
                .destination
                .progress()
                .packets
                .saturating_sub(self.before),
            unheard: self.destination.unheard(),
            told: Tally::default(),
        });
        // What is lost most often is the flood alone, so the first attempt that brings nothing is simply repeated.
        let worth = self.fruitless != 1;
        let failed =
            |trial: &&Trial| worth && (0..trial.plan.groups()).any(|group| trial.has_failed(group));
        if let Some(trial) = trial.as_ref().filter(failed)
            && trial.plan.is_improved()
        {
            // Nodes that were still busy with an earlier attempt tell of that.
            let plan = self.numbered(trial.plan);
            let plan = plan.asking(self.session.saturating_sub(self.since));
            if self.destination.ask(plan, now).is_ok() {
                (self.asked, self.state) = (Some(*trial), State::Trying);
                return;
            }
        }
        self.try_again(trial.as_ref(), now);
    }

    /// Plans and begins the next attempt, or gives up.
    fn try_again(&mut self, trial: Option<&Trial>, now: Instant) {
        let checkpoint = self.destination.checkpoint();
        // A source that is asked first shows soon whether the way works. Where the very first flood was lost there is
        // nothing to ask for, and the question would cost a turn.
        let asks = checkpoint.received > 0 || self.fruitless > 1;
        let started = self.begin(trial, asks.then_some(&checkpoint), now);
        // A plan that does not fit this node is its planner's defect; the state says that the transfer is over.
        debug_assert!(started.is_ok(), "{started:?}");
    }
}

impl<S: Store, P: Planner> RadioNode for Gateway<S, P> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        self.destination.handle_radio(now, event);
        self.look(now);
    }

    fn poll_radio(&mut self, now: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.destination.poll_radio(now, psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Resuming(checkpoint) => {
                let _ = self.begin(None, Some(&checkpoint), now);
            }
            State::Pausing { until } if until <= now => self.go_on(now),
            State::Pausing { .. } => {}
            State::Idle | State::Trying | State::GaveUp => self.destination.handle_timeout(now),
        }
        self.look(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        match self.state {
            State::Resuming(_) => wake(Instant::ZERO, "going on after a restart"),
            State::Pausing { until } => wake(until, "next attempt"),
            State::Idle | State::Trying | State::GaveUp => self.destination.poll_timeout(),
        }
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.destination.poll_trace()
    }
}
