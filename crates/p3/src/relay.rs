//! A relay: repeats frames for its stage and group, one turnaround after it heard them.
//!
//! | state | hears | does |
//! |---|---|---|
//! | waking | a plan | repeats it; then forward if it is listed, resting if not |
//! | forward | DATA of the stage before, own group | repeats it on the next stage's channel |
//! | forward | CTRL likewise | repeats it, then reverse |
//! | reverse | NACK of the stage after | repeats it on the channel of the stage before, then forward |
//! | reverse | DATA or CTRL as in forward | the source has gone on: as in forward |
//! | reverse | nothing for T_rev | forward |
//! | waking | a plan that asks | repeats it; then telling if it is listed |
//! | telling | its turn, the end of all turns | sends what it knows of the last transfer ([`Tally`](crate::Tally)); waking |
//!
//! It listens on its own stage's channel in both directions. It keeps no clock of the pipeline: it takes the time from
//! each frame, and a frame that it misses is one that it does not repeat.

use chappe_core::{
    Caps, DropReason, Drops, Duration, Head, Instant, RadioEvent, RadioNode, RadioRequest,
    Reception, TraceEvent, Wake,
};

use crate::config::{Config, ConfigError};
use crate::ear::{
    Ear, answer_due, first_turn, next_turn, patience, reply_time, round_due, silence_end,
};
use crate::flood::Flood;
use crate::frame::Frames;
use crate::header::{Ctrl, Flags, Header, Kind, Nack};
use crate::outbox::{Notes, Outbox};
use crate::part::{Part, Place};
use crate::plan::Plan;
use crate::seal::Nonce;
use crate::tally::{Question, Told};

/// The longest pause of a gateway before its second attempt, and half of it for what it works out then.
const RETRY: Duration = Duration::from_millis(60);

/// A node that relays transfers between other nodes.
#[derive(Clone, Debug)]
pub struct Relay {
    config: Config,
    frames: Frames,
    number: u16,
    state: State,
    /// The latest session that it took part in.
    session: u32,
    out: Outbox,
    ear: Ear,
    notes: Notes,
    forwarded: u64,
    /// The session of its last transfer, and the frames with packets that it took in it.
    took: (u32, u32),
    /// A node without a part that listens for a further plan: until when, and until when it rests afterwards.
    listens: Option<(Instant, Instant)>,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one state per node, and no allocator to box it with"
)]
enum State {
    Waking,
    Flooding(Flood),
    Duty(Duty),
    Telling(Question),
    Resting { until: Instant },
}

/// A transfer in which this relay has a part.
#[derive(Clone, Debug)]
struct Duty {
    plan: Plan,
    part: Part,
    /// Until when a NACK is repeated; `None` in the forward direction.
    reverse: Option<Instant>,
    /// When it leaves the transfer if it hears nothing more.
    leave: Instant,
    /// The group that the last frame said is left out.
    left_out: Option<u8>,
}

impl Relay {
    /// Node `number`, asleep until a plan wakes it.
    pub fn new(config: Config, caps: &Caps, number: u16) -> Result<Relay, ConfigError> {
        config.check(caps)?;
        Ok(Relay {
            out: Outbox::new(config.flood_channel),
            frames: Frames::new(&config),
            config,
            number,
            state: State::Waking,
            session: 0,
            ear: Ear::default(),
            notes: Notes::default(),
            forwarded: 0,
            took: (0, 0),
            listens: None,
        })
    }

    /// The latest session that it took part in. Keep it across restarts, so that plans of older ones are refused.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Restores the session after a restart.
    pub fn with_session(self, session: u32) -> Relay {
        Relay { session, ..self }
    }

    /// Turns the trace on or off.
    pub fn trace(&mut self, on: bool) {
        self.notes.on(on);
    }

    /// DATA, CTRL and NACK frames that it has repeated.
    pub fn forwarded(&self) -> u64 {
        self.forwarded
    }

    /// Frames that it did not use, counted by reason.
    pub fn drops(&self) -> &Drops {
        self.notes.drops()
    }

    /// The state's name: `waking`, `flooding`, `forward`, `reverse`, `telling` or `resting`.
    pub fn state(&self) -> &'static str {
        match &self.state {
            State::Waking => "waking",
            State::Flooding(_) => "flooding",
            State::Duty(duty) if duty.reverse.is_some() => "reverse",
            State::Duty(_) => "forward",
            State::Telling(_) => "telling",
            State::Resting { .. } => "resting",
        }
    }

    fn hear(&mut self, now: Instant, heard: &Reception<'_>) -> Result<(), DropReason> {
        match &mut self.state {
            State::Resting { .. } => Err(DropReason::NotForUs),
            // The outbox holds one frame, which must stay as it is until the radio has sent it.
            _ if self.out.is_busy() => Err(DropReason::QueueFull),
            State::Waking => self.wake(now, heard),
            State::Flooding(flood) => {
                flood.hear(&self.config, &self.frames, now, heard, &mut self.out)
            }
            State::Telling(question) => question.hear(&self.frames, heard.psdu),
            State::Duty(duty) => {
                let before = duty.part.place().stage.saturating_sub(1);
                let parsed = self.frames.parse(&duty.plan, before, heard.psdu);
                let (header, body) = parsed.map_err(|_| DropReason::Malformed)?;
                let transfer = duty.plan.transfer();
                match header.kind {
                    // The gateway has given up this transfer and begun another.
                    Kind::Plan if header.transfer != transfer => self.wake(now, heard),
                    _ if header.transfer != transfer => Err(DropReason::NotForUs),
                    Kind::Plan => Err(DropReason::Stale),
                    Kind::Tally => Err(DropReason::NotForUs),
                    Kind::Data | Kind::Coded | Kind::Ctrl => self.forward(now, heard, header, body),
                    Kind::Nack => self.reverse(now, heard, header, body),
                }
            }
        }
    }

    fn wake(&mut self, now: Instant, heard: &Reception<'_>) -> Result<(), DropReason> {
        let (config, frames, known) = (&self.config, &self.frames, (self.number, self.session));
        let opened = Flood::open(config, frames, known, now, heard, &mut self.out);
        let (mut flood, slot) = opened?;
        self.session = flood.session(self.session);
        self.listens = None;
        self.ear.open(&mut self.out);
        flood.repeat(&self.config, &self.frames, now, slot, &mut self.out);
        self.out.tune(self.config.flood_channel);
        self.enter(State::Flooding(flood));
        Ok(())
    }

    /// After the flood: takes its part, or rests if the plan does not name it.
    fn take_part(&mut self, now: Instant) {
        let State::Flooding(flood) = &self.state else {
            return;
        };
        let plan = flood.plan;
        let start = flood.data_start(&self.config);
        if plan.asks() {
            return self.take_turn(plan, start);
        }
        let Some(part) = plan.part_of(self.number) else {
            self.ear.close(&mut self.out);
            let until = now + self.config.rest;
            // Where nothing arrives the gateway tries again at once, and its flood needs this node.
            let flood = start.saturating_since(flood.reference());
            let silence = silence_end(&self.config, &plan, plan.hops(), start);
            let listens = silence + RETRY + flood * 2;
            if listens < until {
                self.listens = Some((listens, until));
                return self.enter(State::Resting { until: silence });
            }
            return self.enter(State::Resting { until });
        };
        self.took = (plan.session().unwrap_or_default(), 0);
        let Place { stage, group, .. } = part.place();
        self.out.tune(plan.channels().of_stage(stage));
        let first = first_turn(&self.config, &plan, stage, group, start);
        self.ear.rest(&self.config, now, first, &mut self.out);
        let leave = silence_end(&self.config, &plan, stage, start);
        self.enter(State::Duty(Duty {
            plan,
            part,
            reverse: None,
            leave,
            left_out: None,
        }));
    }

    /// After the flood of a question: tells what it heard of the transfer before, if the plan names it. The others wait for a plan.
    fn take_turn(&mut self, plan: Plan, start: Instant) {
        let own = |place: &Place| place.node == self.number;
        let Some(at) = plan.relays().iter().position(own) else {
            return self.leave();
        };
        let (session, count) = self.took;
        let told = match plan.asks_of(session) {
            true => Told::Frames(count),
            false => Told::Absent,
        };
        let question = Question::new(&self.config, &self.frames, plan, start);
        self.enter(State::Telling(question.answered(at as u8 + 1, told)));
    }

    //= p3 IV-A: all receivers of a group repeat the packet at once, on the next stage's channel
    fn forward(
        &mut self,
        now: Instant,
        heard: &Reception<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let State::Duty(duty) = &mut self.state else {
            return Err(DropReason::NotForUs);
        };
        let Place { stage, group, .. } = duty.part.place();
        if header.hop.checked_add(1) != Some(stage) {
            return Err(DropReason::NotForUs);
        }
        // A frame for another group is not repeated, but the transfer goes on.
        duty.left_out = header.flags.left_out;
        duty.leave = now + patience(&self.config, &duty.plan);
        let turn = next_turn(&self.config, &duty.plan, group, heard.started, header.flags);
        if !header.flags.takes(group) {
            if duty.reverse.is_none() {
                self.ear.rest(&self.config, now, turn, &mut self.out);
            }
            return Err(DropReason::NotForUs);
        }
        if heard.psdu.len() != self.frames.data_len(&duty.plan) {
            return Err(DropReason::Malformed);
        }
        let mut due = turn;
        let turns = header.kind == Kind::Ctrl;
        if turns {
            let ctrl = Ctrl::parse(body).map_err(|_| DropReason::Malformed)?;
            let nonce = Nonce::of_ctrl(&duty.plan, &header, &ctrl);
            if !self.frames.is_genuine(&nonce, heard.psdu) {
                return Err(DropReason::Unauthentic);
            }
            let (plan, started) = (&duty.plan, heard.started);
            due = answer_due(
                &self.config,
                &self.frames,
                plan,
                stage,
                started,
                ctrl.copies_left,
            );
        }
        if !turns {
            self.took.1 = self.took.1.saturating_add(1);
        }
        // DATA means that the source has gone on, so a relay that missed the NACK goes forward again.
        let slot = self.config.profile.slot(heard.psdu.len());
        let wait = reply_time(&self.config, &duty.plan, stage);
        duty.reverse = turns.then(|| now + slot + wait);
        let channel = duty.plan.channels().of_stage(stage + 1);
        self.ear.rest(&self.config, now, due, &mut self.out);
        if duty.part.sends_on() {
            self.repeat(now, heard.psdu, stage, channel);
        }
        Ok(())
    }

    //= p3 IV-F: NACKs use the same stages backwards; there is one only, so both groups repeat it
    fn reverse(
        &mut self,
        now: Instant,
        heard: &Reception<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let State::Duty(duty) = &mut self.state else {
            return Err(DropReason::NotForUs);
        };
        let stage = duty.part.place().stage;
        if header.hop != stage + 1 {
            return Err(DropReason::NotForUs);
        }
        if !duty.part.takes_nack(duty.reverse.is_some()) {
            return Err(DropReason::Stale);
        }
        let nack = Nack::parse(header.sequence, body).map_err(|_| DropReason::Malformed)?;
        let nonce = Nonce::of_nack(&duty.plan, &header, &nack);
        if !self.frames.is_genuine(&nonce, heard.psdu) {
            return Err(DropReason::Unauthentic);
        }
        duty.reverse = None;
        let stay = if header.flags.complete {
            self.config.linger
        } else {
            patience(&self.config, &duty.plan)
        };
        duty.leave = now + stay;
        let channel = duty.plan.channels().of_stage(stage - 1);
        let (len, complete) = (heard.psdu.len(), header.flags.complete);
        let due = round_due(
            &self.config,
            &duty.plan,
            stage,
            heard.started,
            len,
            complete,
        );
        self.ear.rest(&self.config, now, due, &mut self.out);
        if duty.part.repeats_nack(header.flags) {
            self.repeat(now, heard.psdu, stage, channel);
        }
        Ok(())
    }

    //= p3 IV-B: the other nodes of a stage abort the reception midway
    /// Looks at the front of a frame that is still arriving, and aborts the reception if it is not for this relay.
    fn glance(&mut self, now: Instant, head: &Head<'_>) {
        let State::Duty(duty) = &mut self.state else {
            return;
        };
        let Place { stage, group, .. } = duty.part.place();
        let before = stage.saturating_sub(1);
        let Some(header) = self.frames.glance(&duty.plan, before, head.octets) else {
            return;
        };
        let ours = header.transfer == duty.plan.transfer();
        match header.kind {
            Kind::Plan => {}
            Kind::Data | Kind::Coded | Kind::Ctrl if ours && header.hop == before => {
                if header.flags.takes(group) {
                    return;
                }
                duty.left_out = header.flags.left_out;
                duty.leave = now + patience(&self.config, &duty.plan);
                let turn = next_turn(&self.config, &duty.plan, group, head.started, header.flags);
                // While a NACK is due the receiver must stay on, so only this frame is given up.
                match duty.reverse {
                    Some(_) => self.out.abort(),
                    None => self.ear.rest(&self.config, now, turn, &mut self.out),
                }
            }
            Kind::Nack if ours && header.hop == stage + 1 => {
                if !duty.part.takes_nack(duty.reverse.is_some()) {
                    self.out.abort();
                }
            }
            _ => self.out.abort(),
        }
    }

    /// A frame failed its check: if it was the one that was due, the next one is due a turn later.
    fn miss(&mut self, now: Instant, started: Instant) {
        let State::Duty(duty) = &self.state else {
            return;
        };
        if duty.reverse.is_none() && self.ear.was_due(started) && !self.out.is_busy() {
            // Its flags are unknown. It was due, so it was for this relay's group.
            let (both, group) = (duty.plan.is_single(), duty.part.place().group);
            let flags = Flags {
                both,
                group,
                left_out: duty.left_out,
                ..Flags::default()
            };
            let turn = next_turn(&self.config, &duty.plan, group, started, flags);
            self.ear.rest(&self.config, now, turn, &mut self.out);
        }
    }

    fn repeat(&mut self, now: Instant, psdu: &[u8], stage: u8, channel: chappe_core::Channel) {
        if self.out.copy(psdu) {
            self.out.set_hop(stage);
            self.out.tune(channel);
            self.out.send(now + self.config.profile.gap());
            self.forwarded = self.forwarded.saturating_add(1);
        }
    }

    fn sent(&mut self, now: Instant) {
        self.notes.sent(self.out.frame().len());
        match &mut self.state {
            State::Flooding(flood) if flood.is_spent() => self.take_part(now),
            State::Flooding(flood) => flood.go_on(&self.config, &self.frames, &mut self.out),
            State::Duty(duty) => {
                let channel = duty.plan.channels().of_stage(duty.part.place().stage);
                self.out.tune(channel);
            }
            _ => {}
        }
    }

    fn enter(&mut self, state: State) {
        let from = self.state();
        self.state = state;
        let to = self.state();
        self.notes.push(TraceEvent::State {
            machine: "relay",
            from,
            to,
        });
    }

    fn leave(&mut self) {
        self.out.stop();
        self.ear.open(&mut self.out);
        self.out.tune(self.config.flood_channel);
        self.enter(State::Waking);
    }
}

impl RadioNode for Relay {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(heard) => {
                let before = self.state();
                match self.hear(now, &heard) {
                    Ok(()) => self.notes.received(heard.psdu.len()),
                    Err(why) => self.notes.dropped(why),
                }
                let (from, to) = (before, self.state());
                if matches!(self.state, State::Duty(_)) && from != to {
                    self.notes.push(TraceEvent::State {
                        machine: "relay",
                        from,
                        to,
                    });
                }
            }
            RadioEvent::Sent => {
                if self.out.sent() {
                    self.sent(now);
                }
            }
            RadioEvent::Head(head) => self.glance(now, &head),
            RadioEvent::Failed(failure) => self.miss(now, failure.started),
            RadioEvent::Carrier { .. } => {}
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
        match &mut self.state {
            State::Flooding(flood) if flood.end <= now => {
                self.out.stop();
                self.take_part(now);
            }
            State::Telling(question) if question.end() <= now => self.leave(),
            State::Telling(question) => {
                question.tell(&self.config, &self.frames, now, &mut self.out);
            }
            State::Resting { until } if *until <= now => self.leave(),
            State::Duty(duty) if duty.leave <= now => self.leave(),
            State::Waking => {
                if let Some((_, until)) = self.listens.take_if(|(until, _)| *until <= now) {
                    self.ear.close(&mut self.out);
                    self.enter(State::Resting { until });
                }
            }
            State::Duty(duty) if duty.reverse.is_some_and(|until| until <= now) => {
                duty.reverse = None;
                self.ear.open(&mut self.out);
            }
            _ => {}
        }
        // A node that is woken much too late has missed the transfer as well.
        if Wake::due(self.poll_timeout(), now) {
            self.leave();
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        let own = match &self.state {
            State::Waking => self
                .listens
                .and_then(|(until, _)| wake(until, "no further plan")),
            State::Flooding(flood) => wake(flood.end, "end of the flood"),
            State::Telling(question) => Some(question.wake(&self.config)),
            State::Resting { until } => wake(*until, "rest is over"),
            State::Duty(duty) => {
                let reverse = duty.reverse.map(|at| Wake { at, why: "no NACK" });
                Wake::earlier(reverse, wake(duty.leave, "nothing heard"))
            }
        };
        Wake::earlier(self.ear.wake(), own)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.notes.pop()
    }
}
