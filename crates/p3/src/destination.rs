//! The destination: wakes the network, collects packets, and reports at each CTRL which are missing.
//!
//! | state | event | does |
//! |---|---|---|
//! | waking | frame sent | again two slots later, N_tx times; then listens on the last stage's channel |
//! | collecting | DATA of the last stage | stores it |
//! | collecting | CODED of the last stage | solves for the missing packets when it has enough of them |
//! | collecting, complete | CTRL | sends a NACK after the last copy of the CTRL |
//! | collecting | the second CTRL with tags of blocks that do not fit what came | incomplete: someone forges packets |
//! | waking with a plan that asks | all nodes have had their turn | incomplete; [`told`](Destination::told) has what they heard |
//! | collecting | nothing for its patience ([`Config::idle`]) | incomplete; what arrived stays |
//! | complete | nothing for [`Config::linger`] | idle |

use core::fmt;

use chappe_core::{
    Caps, DropReason, Drops, Head, Instant, RadioEvent, RadioNode, RadioRequest, Reception,
    TraceEvent, Wake,
};

use crate::blocks::{Tag, Tags};
use crate::checkpoint::Checkpoint;
use crate::config::{Config, ConfigError};
use crate::ear::{Ear, first_turn, patience, round_due, silence_end};
use crate::flood::{data_start, same_flood, set_slot};
use crate::frame::Frames;
use crate::groups::PerGroup;
use crate::header::{Ctrl, Header, Kind};
use crate::nack;
use crate::object::Store;
use crate::outbox::{Notes, Outbox};
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::sizes::FRAME_MAX;
use crate::stored::Stored;
use crate::tail::{Gain, Settled, Tail};
use crate::tally::{Question, Tally};
use crate::timing::airtime;
use crate::window::Window;

/// The gateway that fetches objects.
#[derive(Clone, Debug)]
pub struct Destination<S> {
    config: Config,
    frames: Frames,
    number: u16,
    state: State,
    plan: Option<Plan>,
    /// The tag of the plan's frame without its slot.
    plan_tag: Tag,
    stored: Stored<S>,
    object_len: Option<u32>,
    completed: Option<Instant>,
    tail: Tail,
    /// Packets and combinations that came by each group in this transfer.
    heard: PerGroup,
    /// What the nodes told after the last question.
    told: Tally,
    ear: Ear,
    out: Outbox,
    notes: Notes,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one state per node, and no allocator to box it with"
)]
enum State {
    Idle,
    /// Flooding the plan since `reference`, `sent` times so far.
    Waking {
        reference: Instant,
        sent: u8,
    },
    /// The nodes of the plan tell what they heard.
    Asking(Question),
    Collecting {
        until: Instant,
    },
    Complete {
        until: Instant,
    },
    Incomplete,
}

/// What a destination has of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Packets that are stored, those of an earlier part of the transfer included.
    pub packets: u32,
    /// All packets before this one are stored.
    pub first_missing: u32,
    /// The object's length, once a CTRL has reported it.
    pub object_len: Option<u32>,
    /// When the last missing packet came.
    pub completed: Option<Instant>,
}

/// Why a destination does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// A transfer is still going on.
    Busy,
    /// The plan has another destination.
    NotOurs,
    /// The plan is of another variant of P³ than this node, or its packets are longer than this node's frames.
    Variant,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StartError::Busy => "a transfer is still going on",
            StartError::Variant => "the plan is for another variant or for longer frames",
            StartError::NotOurs => "the plan names another node as its destination",
        })
    }
}

impl core::error::Error for StartError {}

impl<S: Store> Destination<S> {
    /// Node `number`, which stores the objects that it fetches in `store`.
    pub fn new(
        config: Config,
        caps: &Caps,
        number: u16,
        store: S,
    ) -> Result<Destination<S>, ConfigError> {
        config.check(caps)?;
        Ok(Destination {
            out: Outbox::new(config.flood_channel),
            frames: Frames::new(&config),
            config,
            number,
            state: State::Idle,
            plan: None,
            plan_tag: Tag::default(),
            stored: Stored::new(store),
            object_len: None,
            completed: None,
            tail: Tail::Plain,
            heard: PerGroup::default(),
            told: Tally::default(),
            ear: Ear::default(),
            notes: Notes::default(),
        })
    }

    /// Starts a transfer: its first wake-up frame leaves at `at`. Then drain the node as after any input.
    ///
    /// A checkpoint resumes an object of an earlier transfer, perhaps after a restart; the store must still hold the
    /// packets of the checkpoint.
    pub fn start(
        &mut self,
        plan: Plan,
        checkpoint: Option<&Checkpoint>,
        at: Instant,
    ) -> Result<(), StartError> {
        self.allows(&plan)?;
        // The source then asks first, and sends only what is missing.
        let plan = match checkpoint {
            Some(checkpoint) => plan.resumed(plan.transfer(), checkpoint.first_missing()),
            None => plan,
        };
        self.stored.have = checkpoint.map_or(Window::new(plan.first()), |point| point.have);
        self.stored.packets = checkpoint.map_or(0, |point| point.received);
        self.object_len = checkpoint.and_then(|point| point.object_len);
        self.completed = None;
        self.tail = Tail::new(&plan);
        self.tail.recall(&mut self.stored, &self.frames, &plan);
        self.heard = PerGroup::default();
        self.wake(plan, at);
        Ok(())
    }

    /// Asks the nodes of the last transfer what they heard of it. The plan must [ask](Plan::asks), and its session follow that of the
    /// transfer. What has arrived stays.
    pub fn ask(&mut self, plan: Plan, at: Instant) -> Result<(), StartError> {
        self.allows(&plan)?;
        self.told = Tally::default();
        self.wake(plan, at);
        Ok(())
    }

    /// What the nodes told after the last question.
    pub fn told(&self) -> &Tally {
        &self.told
    }

    /// Whether this node can flood a plan now.
    fn allows(&self, plan: &Plan) -> Result<(), StartError> {
        if !self.is_idle() {
            return Err(StartError::Busy);
        }
        if plan.destination() != self.number {
            return Err(StartError::NotOurs);
        }
        match self.frames.fit(plan) {
            true => Ok(()),
            false => Err(StartError::Variant),
        }
    }

    /// Begins the flood of a plan.
    fn wake(&mut self, plan: Plan, at: Instant) {
        self.plan = Some(plan);
        let header = Header {
            kind: Kind::Plan,
            transfer: plan.transfer(),
            hop: 0,
            flags: Default::default(),
            sequence: 0,
            round: 0,
        };
        let len = self.frames.len_of(Kind::Plan, plan.encoded_len());
        // A sound plan fits a frame, so there is room.
        let _ = plan.emit(self.frames.begin(&mut self.out, &plan, &header, len));
        self.frames.seal(&mut self.out, &Nonce::of_plan(&plan));
        self.plan_tag = self.frames.tag_in(self.out.frame());
        set_slot(&self.frames, &plan, &self.plan_tag, 0, &mut self.out);
        self.ear.open(&mut self.out);
        self.out.tune(self.config.flood_channel);
        self.out.send(at);
        self.enter(State::Waking {
            reference: at,
            sent: 0,
        });
    }

    /// Turns the trace on or off.
    pub fn trace(&mut self, on: bool) {
        self.notes.on(on);
    }

    /// How much of the object has arrived.
    pub fn progress(&self) -> Progress {
        Progress {
            packets: self.stored.packets,
            first_missing: self.stored.have.base(),
            object_len: self.object_len,
            completed: self.completed,
        }
    }

    /// The plan of the present or last transfer.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Frames of this transfer that were of use, by the group that brought them. A group that is far behind the others is
    /// dead.
    pub fn heard(&self) -> PerGroup {
        self.heard
    }

    /// Whether it gave up the last transfer because blocks of packets were forged, again and again. The next one's frames
    /// should carry tags of their own ([`Plan::tagged_by_packet`]); its packets are shorter, so this object begins anew.
    pub fn meets_forgers(&self) -> bool {
        self.completed.is_none() && self.tail.is_forged()
    }

    /// Answers to the last question that did not reach the source: it asked as often again. Where a transfer ends with some, the way back
    /// does not work.
    pub fn unheard(&self) -> u8 {
        self.tail.unheard()
    }

    /// What [`start`](Self::start) needs to resume this object later. Keep it with the store.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            have: self.stored.have,
            received: self.stored.packets,
            object_len: self.object_len,
        }
    }

    /// The store with the packets of the object.
    pub fn store(&self) -> &S {
        &self.stored.store
    }

    /// Whether no transfer is going on, complete or not. After a complete one this takes [`Config::linger`].
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Incomplete)
    }

    /// Frames that it did not use, counted by reason.
    pub fn drops(&self) -> &Drops {
        self.notes.drops()
    }

    /// The state's name: `idle`, `waking`, `asking`, `collecting`, `complete` or `incomplete`.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Idle => "idle",
            State::Waking { .. } => "waking",
            State::Asking(_) => "asking",
            State::Collecting { .. } => "collecting",
            State::Complete { .. } => "complete",
            State::Incomplete => "incomplete",
        }
    }

    fn hear(&mut self, now: Instant, heard: &Reception<'_>) -> Result<(), DropReason> {
        let Some(plan) = self.plan else {
            return Err(DropReason::NotForUs);
        };
        match &mut self.state {
            State::Idle | State::Incomplete => Err(DropReason::NotForUs),
            State::Asking(question) => question.hear(&self.frames, heard.psdu),
            State::Waking { .. } => {
                let (frames, tag) = (&self.frames, &self.plan_tag);
                let slot = same_flood(frames, &plan, tag, heard.psdu, self.out.frame())?;
                // Only a repetition in the slot before this node's next transmission sets its time.
                let next = Header::parse(self.out.frame()).map_or(0, |(header, _)| header.hop);
                if slot.checked_add(1) != Some(next) || !self.out.is_busy() {
                    return Err(DropReason::Stale);
                }
                self.out.send(now + self.config.profile.flood_gap());
                Ok(())
            }
            State::Collecting { .. } | State::Complete { .. } => {
                if self.out.is_busy() {
                    return Err(DropReason::QueueFull);
                }
                let parsed = self
                    .frames
                    .parse(&plan, plan.hops().saturating_sub(1), heard.psdu);
                let (header, body) = parsed.map_err(|_| DropReason::Malformed)?;
                let before = header.hop.checked_add(1) == Some(plan.hops());
                if header.transfer != plan.transfer() || !before {
                    return Err(DropReason::NotForUs);
                }
                let result = match header.kind {
                    Kind::Plan | Kind::Nack | Kind::Tally => Err(DropReason::NotForUs),
                    _ if heard.psdu.len() != self.frames.data_len(&plan) => {
                        Err(DropReason::Malformed)
                    }
                    Kind::Data => self.collect(now, &plan, header.sequence, heard.psdu),
                    Kind::Coded => self.collect_coded(now, &plan, header, heard.psdu),
                    Kind::Ctrl => {
                        let ctrl = Ctrl::parse(body).map_err(|_| DropReason::Malformed)?;
                        let nonce = Nonce::of_ctrl(&plan, &header, &ctrl);
                        if !self.frames.is_genuine(&nonce, heard.psdu) {
                            return Err(DropReason::Unauthentic);
                        }
                        let tags = match self.tail.blocks() {
                            Some(blocks) => {
                                let tags = self.frames.read_tags(&nonce, heard.psdu, blocks);
                                Some(tags.ok_or(DropReason::Unauthentic)?)
                            }
                            None => None,
                        };
                        self.reply(now, &plan, header, ctrl, tags)
                    }
                };
                // Only frames that were of use: a forged one must not hide that a group is dead.
                if let (Ok(()), Some(count)) =
                    (result, self.heard.get_mut(usize::from(header.flags.group)))
                {
                    *count = count.saturating_add(1);
                }
                result
            }
        }
    }

    /// Looks at the front of a frame that is still arriving, and aborts the reception if it is not from the last stage.
    fn glance(&mut self, head: &Head<'_>) {
        let busy = matches!(
            self.state,
            State::Collecting { .. } | State::Complete { .. }
        );
        let Some(plan) = self.plan.filter(|_| busy) else {
            return;
        };
        let before = plan.hops().saturating_sub(1);
        if let Some(header) = self.frames.glance(&plan, before, head.octets) {
            let ours = header.transfer == plan.transfer() && header.hop == before;
            if !ours || matches!(header.kind, Kind::Plan | Kind::Nack | Kind::Tally) {
                self.out.abort();
            }
        }
    }

    fn collect(
        &mut self,
        now: Instant,
        plan: &Plan,
        sequence: u16,
        psdu: &[u8],
    ) -> Result<(), DropReason> {
        let packet = match plan.is_improved() {
            true => self.stored.have.resolve_short(sequence),
            false => self.stored.have.resolve(sequence),
        };
        let packet = packet.ok_or(DropReason::Stale)?;
        if self.stored.have.contains(packet) {
            return Err(DropReason::Duplicate);
        }
        // The window may reach past the end of the object.
        let beyond = |len: u32| packet >= packets_of(len, plan);
        if self.object_len.is_some_and(beyond) {
            return Err(DropReason::Malformed);
        }
        if !self.tail.takes_packet(packet) {
            return Err(DropReason::Stale);
        }
        // Opening decrypts in place, and the frame that was heard is the radio's.
        let mut frame = [0; FRAME_MAX];
        let frame = frame.get_mut(..psdu.len()).ok_or(DropReason::Malformed)?;
        frame.copy_from_slice(psdu);
        let nonce = Nonce::of_data(plan, packet);
        let payload = self.frames.open(plan, &nonce, frame);
        let payload = payload.ok_or(DropReason::Unauthentic)?;
        if !self.stored.put(plan, packet, payload) {
            return Err(DropReason::QueueFull);
        }
        let (stored, frames) = (&mut self.stored, &self.frames);
        self.tail.add(stored, frames, plan, packet, payload);
        self.stay(now);
        self.check_complete(now, plan);
        Ok(())
    }

    fn collect_coded(
        &mut self,
        now: Instant,
        plan: &Plan,
        header: Header,
        psdu: &[u8],
    ) -> Result<(), DropReason> {
        let (stored, frames) = (&mut self.stored, &self.frames);
        let gain = self.tail.take(stored, frames, plan, header, psdu)?;
        self.stay(now);
        match gain {
            Gain::Kept => Ok(()),
            Gain::Equation => {
                self.check_complete(now, plan);
                Ok(())
            }
            Gain::Nothing => Err(DropReason::NotInnovative),
        }
    }

    /// A CTRL: reports what is missing, when the last copy of the CTRL has passed.
    fn reply(
        &mut self,
        now: Instant,
        plan: &Plan,
        header: Header,
        ctrl: Ctrl,
        tags: Option<Tags>,
    ) -> Result<(), DropReason> {
        let packets = packets_of(ctrl.object_len, plan);
        // The object does not change during a transfer, nor between a transfer and its resumption.
        if self.object_len.is_some_and(|len| len != ctrl.object_len) {
            return Err(DropReason::Stale);
        }
        let have = &self.stored.have;
        let base = have.base();
        let in_window = ctrl.end == base || have.spans(ctrl.end.saturating_sub(1));
        // A source never ends before what it was told is complete, nor beyond the window.
        if ctrl.end > packets || base > ctrl.end || !in_window {
            return Err(DropReason::Malformed);
        }
        if !self.tail.expects(header.round) {
            return Err(DropReason::Stale);
        }
        self.object_len = Some(ctrl.object_len);
        self.stay(now);
        // Before the answer: what the combinations bring need not be asked for.
        let (stored, frames) = (&mut self.stored, &self.frames);
        let settled = Settled {
            round: header.round,
            end: ctrl.end,
            tags,
        };
        self.tail.settle(stored, frames, plan, settled);
        self.check_complete(now, plan);
        if self.completed.is_none() && self.tail.is_forged() {
            self.retire(State::Incomplete);
            return Ok(());
        }
        let round = nack::Round {
            number: header.round,
            complete: self.completed.is_some(),
        };
        let shape = self.tail.nack(&self.frames, plan, &header);
        let (have, frames) = (&self.stored.have, &self.frames);
        nack::write(have, ctrl.end, round, shape, frames, plan, &mut self.out);
        // Relays still carry the other groups' copies of the CTRL, and then change their channel.
        let period = plan.period(&self.config, header.flags);
        let wait = period * u64::from(ctrl.copies_left) + self.config.profile.turn_relays;
        self.out.tune(plan.channels().of_stage(plan.hops() - 1));
        self.out.send(now + self.config.profile.gap() + wait);
        self.ear.close(&mut self.out);
        Ok(())
    }

    fn check_complete(&mut self, now: Instant, plan: &Plan) {
        let Some(len) = self.object_len.filter(|_| self.completed.is_none()) else {
            return;
        };
        if self.stored.have.base() != packets_of(len, plan) {
            return;
        }
        self.completed = Some(now);
        self.stored.store.finish(len);
        self.notes.push(TraceEvent::Delivered {
            flow: u32::from(plan.transfer()),
            bytes: len,
        });
        // Patience and not yet linger: the source asks only at the end of its round.
        let until = now + patience(&self.config, plan);
        self.enter(State::Complete { until });
    }

    /// Restarts the deadline of the state, after a frame of the transfer.
    fn stay(&mut self, now: Instant) {
        let Some(plan) = &self.plan else { return };
        match &mut self.state {
            State::Collecting { until } => *until = now + patience(&self.config, plan),
            State::Complete { until } => *until = now + self.config.linger,
            _ => {}
        }
    }

    fn sent(&mut self, now: Instant) {
        self.notes.sent(self.out.frame().len());
        let Some(plan) = self.plan else { return };
        match &mut self.state {
            State::Waking { reference, sent } => {
                *sent += 1;
                let (reference, sent) = (*reference, *sent);
                if sent < plan.flood_repeats(&self.config) {
                    // Two slots later by its own clock, unless it hears a repetition before.
                    let slot = self.config.profile.flood_slot(self.out.frame().len());
                    let (frames, tag) = (&self.frames, &self.plan_tag);
                    set_slot(frames, &plan, tag, sent * 2, &mut self.out);
                    self.out.send(reference + slot * (u64::from(sent) * 2));
                    return;
                }
                let start = data_start(&self.config, &plan, reference);
                let start = if start < now { now } else { start };
                if plan.asks() {
                    let question = Question::new(&self.config, &self.frames, plan, start);
                    self.out.tune(self.config.flood_channel);
                    return self.enter(State::Asking(question));
                }
                let until = silence_end(&self.config, &plan, plan.hops(), start);
                self.enter(State::Collecting { until });
                let first = first_turn(&self.config, &plan, plan.hops(), 0, start);
                self.ear.rest(&self.config, now, first, &mut self.out);
            }
            _ => {
                self.stay(now);
                let len = self.out.frame().len();
                let began = now.saturating_before(airtime(len));
                let complete = self.completed.is_some();
                let due = round_due(&self.config, &plan, plan.hops(), began, len, complete);
                self.ear.rest(&self.config, now, due, &mut self.out);
            }
        }
        self.out.tune(plan.channels().of_stage(plan.hops()));
    }

    fn enter(&mut self, state: State) {
        let from = self.state();
        self.state = state;
        let to = self.state();
        self.notes.push(TraceEvent::State {
            machine: "destination",
            from,
            to,
        });
    }
}

/// Packets of an object of `len` octets.
fn packets_of(len: u32, plan: &Plan) -> u32 {
    len.div_ceil(plan.payload().max(1) as u32)
}

impl<S: Store> RadioNode for Destination<S> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(heard) => match self.hear(now, &heard) {
                Ok(()) => self.notes.received(heard.psdu.len()),
                Err(why) => self.notes.dropped(why),
            },
            RadioEvent::Sent => {
                if self.out.sent() {
                    self.sent(now);
                }
            }
            RadioEvent::Head(head) => self.glance(&head),
            RadioEvent::Failed(_) | RadioEvent::Carrier { .. } => {}
        }
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.out.poll(psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        let Some(wake) = self.poll_timeout().filter(|wake| wake.at <= now) else {
            return;
        };
        self.notes.push(TraceEvent::Timer { why: wake.why });
        self.ear.on_time(now, &mut self.out);
        if !Wake::due(self.own_timeout(), now) {
            return;
        }
        let ended = match &self.state {
            State::Asking(question) => {
                self.told = *question.tally();
                State::Incomplete
            }
            State::Complete { .. } => State::Idle,
            _ => State::Incomplete,
        };
        self.retire(ended);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        Wake::earlier(self.ear.wake(), self.own_timeout())
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.notes.pop()
    }
}

impl<S: Store> Destination<S> {
    /// Leaves the transfer in the state `ended`, and listens for floods again.
    fn retire(&mut self, ended: State) {
        self.out.stop();
        self.ear.open(&mut self.out);
        self.out.tune(self.config.flood_channel);
        self.enter(ended);
    }

    /// The deadline of the state.
    fn own_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        match &self.state {
            State::Idle | State::Incomplete => None,
            State::Asking(question) => Some(question.wake(&self.config)),
            State::Waking { reference, .. } => {
                let repeats = self.plan.as_ref();
                let repeats = repeats.map_or(0, |plan| plan.flood_repeats(&self.config));
                let slots = repeats.saturating_mul(2);
                let flood = self.config.profile.nack_slot() * u64::from(slots);
                wake(*reference + flood + self.config.idle, "no end of the flood")
            }
            State::Collecting { until } => wake(*until, "nothing heard"),
            State::Complete { until } => wake(*until, "no more questions"),
        }
    }
}
