//! The source's part: which batch, how many packets of it, and when the next one may go.

use alloc::vec;
use alloc::vec::Vec;

use chappe_coding::{Encoder, Rows};
use chappe_core::{Duration, Instant, Mode, Stream};

use crate::layout::Layout;
use crate::object::Batches;
use crate::paper::config::{Config, Expects, PaceFrom, Pacing};
use crate::paper::header::{AckId, DataRepr};
use crate::paper::plan::{Plan, Planner};
use crate::set::NodeSet;

/// Sends one object to a set of receivers.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    me: u16,
    serial: u8,
    object: Batches,
    layout: Layout,
    batches: u32,
    /// Batches from the first open one on that take turns.
    window: u32,
    receivers: NodeSet,
    /// For each batch, who has acknowledged it.
    acked: Vec<NodeSet>,
    /// Pairs of batch and receiver that are still open.
    open: u64,
    planner: Planner,
    plan: Plan,
    /// The receivers that `plan` serves.
    serves: NodeSet,
    turn: u16,
    batch: u32,
    /// No batch before this one is open.
    first_open: u32,
    /// C_s: packets of this batch that are still to be sent in this round.
    left: u64,
    pace: Pace,
    /// How long the source waits at most after its last packet.
    limit: Duration,
    /// The children that heard of the last frame's plan: any of them ends the wait.
    awaited: NodeSet,
    round_robin: bool,
    paced: bool,
    pacing: Pacing,
    mode: Mode,
    link_overhead: usize,
}

/// Whether the source may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It may send at once.
    Ready,
    /// The link has the last frame and has not reported yet that it is sent.
    InFlight {
        token: u32,
        limit: Duration,
        give_up: Instant,
    },
    /// The last frame is sent; the source waits to overhear a child.
    Waiting { until: Instant },
    /// Paced from the hand-over: so many packets are handed over and not sent yet. The next one follows at the latest at
    /// `until`.
    Queue { due: u32, until: Instant },
}

/// The most packets that are handed over and wait for the channel: GloMoSim's NETWORK-OUTPUT-QUEUE-SIZE-PER-PRIORITY.
const QUEUE_MAX: u32 = 100;

/// What an ACK did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acked {
    /// It names a receiver or batch that this transfer does not have.
    Foreign,
    /// The source had this ACK already.
    Known,
    /// New, for a batch that is not on the air.
    Noted,
    /// New, for the batch on the air: a new plan or another batch follows.
    Moved,
}

impl Source {
    /// Sends `object` to `receivers`, all of which paths reach. The turn continues from the node's former
    /// transfer, so that relays treat the frames as new. `None` if a frame cannot count the batches.
    pub fn new(
        config: &Config,
        me: u16,
        (serial, turn): (u8, u16),
        object: Batches,
        receivers: NodeSet,
        planner: Planner,
    ) -> Option<Source> {
        let layout = *object.layout();
        let batches = layout.batches()?;
        let mut source = Source {
            me,
            serial,
            layout,
            batches,
            window: config.window,
            receivers,
            acked: vec![NodeSet::EMPTY; batches as usize],
            open: u64::from(batches) * receivers.len() as u64,
            planner,
            plan: Plan::default(),
            serves: NodeSet::EMPTY,
            turn,
            batch: 0,
            first_open: 0,
            left: 0,
            pace: Pace::Ready,
            limit: Duration::ZERO,
            awaited: NodeSet::EMPTY,
            round_robin: config.round_robin(),
            paced: config.paced(),
            pacing: config.pacing,
            mode: config.common.mode,
            link_overhead: config.common.link_overhead,
            object,
        };
        if !source.is_done() {
            source.begin(0);
        }
        Some(source)
    }

    /// Whether every receiver has acknowledged every batch.
    pub fn is_done(&self) -> bool {
        self.open == 0
    }

    /// The transfer's number and the turn that it is at.
    pub fn position(&self) -> (u8, u16) {
        (self.serial, self.turn)
    }

    /// Forwarding nodes of the present plan, the source not counted.
    pub fn forwarder_count(&self) -> usize {
        self.plan.forwarder_count()
    }

    /// Whether a frame may go now.
    pub fn ready(&self) -> bool {
        let due = match self.pace {
            Pace::Ready => true,
            Pace::Queue { due, .. } => due > 0,
            Pace::InFlight { .. } | Pace::Waiting { .. } => false,
        };
        due && !self.is_done()
    }

    //= pacifier III-A.1: random linear combinations of the packets of the current batch
    /// Writes the next coded packet.
    pub fn write(
        &mut self,
        now: Instant,
        token: u32,
        sdu: &mut [u8],
        random: &mut Stream,
        last_ack: Option<AckId>,
    ) -> Option<usize> {
        let shape = self.layout.shape(self.batch)?;
        let data = self.object.batch(self.batch)?;
        let encoder = Encoder::new(Rows::new(shape, data).ok()?).ok()?;
        let repr = DataRepr {
            source: self.me,
            object: self.serial,
            turn: self.turn,
            batch: self.batch,
            packets: shape.count() as u8,
            forwarders: &self.plan.forwarders,
            destinations: &self.plan.destinations,
            last_ack,
        };
        let len = repr.frame_len(self.layout.payload);
        let (vector, payload) = repr.emit(sdu, self.layout.payload)?;
        encoder
            .encode_random(|bytes| random.fill(bytes), vector, payload)
            .ok()?;
        self.wait(now, token, len);
        self.count_down();
        Some(len)
    }

    //= pacifier III-C: send from batch i until its counter is spent (or, see on_ack, a receiver has it)
    fn count_down(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.round_robin && self.left == 0 {
            self.next_batch();
        }
    }

    /// An ACK arrived at the source.
    pub fn on_ack(&mut self, object: u8, id: AckId) -> Acked {
        let ours = object == self.serial && self.receivers.contains(id.receiver);
        let (Some(acked), true) = (self.acked.get_mut(id.batch as usize), ours) else {
            return Acked::Foreign;
        };
        if !acked.insert(id.receiver) {
            return Acked::Known;
        }
        self.open = self.open.saturating_sub(1);
        if self.is_done() {
            return Acked::Moved;
        }
        // A late ACK for an earlier batch only shortens that batch's next round.
        if id.batch != self.batch {
            return Acked::Noted;
        }
        if self.round_robin || self.missing(self.batch).is_empty() {
            //= pacifier III-C: one receiver's ACK for the batch on the air ends its round
            //= pacifier II-A: MORE, TREE and TREE+RL leave a batch when all receivers have it
            self.next_batch();
        } else {
            //= pacifier III-A: the tree is rebuilt whenever the number of active receivers changes
            self.begin(self.batch);
        }
        Acked::Moved
    }

    /// Begins the next batch in the round that a receiver lacks, within the window of batches that take turns.
    fn next_batch(&mut self) {
        while self.first_open < self.batches && self.missing(self.first_open).is_empty() {
            self.first_open += 1;
        }
        let first = self.first_open;
        let end = first.saturating_add(self.window).min(self.batches);
        let after = self.batch.saturating_add(1).clamp(first, end);
        let next = (after..end)
            .chain(first..after)
            .find(|&batch| !self.missing(batch).is_empty());
        if let Some(batch) = next {
            self.begin(batch);
        }
    }

    /// The receivers that it serves at present.
    pub fn receivers(&self) -> NodeSet {
        self.receivers
    }

    /// Serves other receivers from now on; ACKs of those who stay still count.
    pub fn serve(&mut self, receivers: NodeSet, planner: Planner) {
        (self.receivers, self.planner) = (receivers, planner);
        self.start_over();
    }

    /// Forgets the ACKs of a receiver that has lost its batches.
    pub fn forget(&mut self, receiver: u16) {
        for acked in &mut self.acked {
            acked.remove(receiver);
        }
        self.start_over();
    }

    /// Notes that a receiver has a batch, without an ACK of this transfer. Returns whether that is new.
    pub fn known(&mut self, id: AckId) -> bool {
        let there = self.acked.get_mut(id.batch as usize);
        let new = there.is_some_and(|acked| acked.insert(id.receiver));
        if new && self.receivers.contains(id.receiver) {
            self.open = self.open.saturating_sub(1);
            if !self.is_done() && self.missing(self.batch).is_empty() {
                self.next_batch();
            }
        }
        new
    }

    /// Batches that a receiver has acknowledged.
    pub fn acked_by(&self, receiver: u16) -> u32 {
        let has = |acked: &&NodeSet| acked.contains(receiver);
        self.acked.iter().filter(has).count() as u32
    }

    fn start_over(&mut self) {
        let all = 0..self.batches;
        self.open = all.map(|batch| self.missing(batch).len() as u64).sum();
        // No plan serves an empty set, so `begin` makes a new one even for the same receivers.
        (self.serves, self.first_open) = (NodeSet::EMPTY, 0);
        if self.is_done() {
            return;
        }
        if self.missing(self.batch).is_empty() {
            self.next_batch();
        } else {
            self.begin(self.batch);
        }
    }

    //= pacifier III-C: for each batch recalculate the tree and the credits for those who lack it, and reset
    //= the counter to z_s * k
    fn begin(&mut self, batch: u32) {
        let missing = self.missing(batch);
        if missing != self.serves {
            self.plan = self.planner.plan(&missing);
            self.serves = missing;
        }
        self.batch = batch;
        self.turn = self.turn.wrapping_add(1);
        // z_s * k is not whole: the packet that brings the counter to zero or below is the last one.
        let packets = self.layout.packets(batch) as f64;
        self.left = (libm::ceil(self.plan.transmissions * packets) as u64).max(1);
    }

    fn missing(&self, batch: u32) -> NodeSet {
        let acked = self.acked.get(batch as usize).copied().unwrap_or_default();
        self.receivers.without(&acked)
    }

    //= pacifier III-B: wait for a child's transmission, but at most for so many T_p for each that is expected
    fn wait(&mut self, now: Instant, token: u32, len: usize) {
        let expected = match self.pacing.expects {
            Expects::Credits => self.plan.children_credit,
            Expects::Triggered => self.plan.triggered,
        };
        if !self.paced || self.plan.children.is_empty() || expected <= 0.0 {
            // Children that only receive never transmit: nothing to wait for.
            self.pace = Pace::Ready;
            return;
        }
        let airtime = self.mode.airtime(len.saturating_add(self.link_overhead));
        let factor = f64::from(self.pacing.factor);
        let limit = airtime.mul_f64(expected * factor);
        self.awaited = self.plan.children;
        self.limit = limit;
        self.pace = match (self.pacing.from, self.pace) {
            (PaceFrom::HandOver, Pace::Queue { due, until }) => Pace::Queue {
                due: due.saturating_sub(1),
                until,
            },
            (PaceFrom::HandOver, _) => Pace::Queue {
                due: 0,
                until: now + limit,
            },
            (PaceFrom::Sent, _) => Pace::InFlight {
                token,
                limit,
                // A link that never reports the end of a broadcast must not stop the source.
                give_up: now + limit + airtime.mul_f64(factor),
            },
        };
    }

    /// Starts the wait, since the link has sent the frame with this token. Counted from here and not from `write`, since
    /// the frame may have waited for the channel.
    pub fn sent(&mut self, now: Instant, token: u32) {
        match self.pace {
            Pace::InFlight {
                token: flying,
                limit,
                ..
            } if flying == token => {
                self.pace = Pace::Waiting { until: now + limit };
            }
            _ => {}
        }
    }

    /// A data frame of this group was overheard. Returns whether it ended a wait.
    pub fn overheard(&mut self, now: Instant, from: u16) -> bool {
        let ends = self.awaited.contains(from)
            && matches!(self.pace, Pace::Waiting { .. } | Pace::Queue { .. });
        if ends {
            self.pass(now);
        }
        ends
    }

    /// When the wait ends without a child.
    pub fn deadline(&self) -> Option<Instant> {
        match self.pace {
            _ if self.is_done() => None,
            Pace::Ready => None,
            Pace::InFlight { give_up, .. } => Some(give_up),
            Pace::Waiting { until } => Some(until),
            Pace::Queue { due, until } => Some(until).filter(|_| due < QUEUE_MAX),
        }
    }

    /// Ends a wait whose limit has passed; returns whether there was one.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let over = self.deadline().is_some_and(|deadline| deadline <= now);
        if over {
            self.pass(now);
        }
        over
    }

    /// Lets the next packet go.
    fn pass(&mut self, now: Instant) {
        self.pace = match self.pace {
            Pace::Queue { due, .. } => Pace::Queue {
                due: due.saturating_add(1).min(QUEUE_MAX),
                until: now + self.limit,
            },
            _ => Pace::Ready,
        };
    }
}
