//! The source: sends one packet per cycle, asks which are missing, and repairs these.
//!
//! | state | event | does |
//! |---|---|---|
//! | waking | a plan that names it | repeats it; sends the first packet at the common start |
//! | sending | frame sent | the next packet of the round a cycle later; combinations; after the last, CTRL |
//! | sending | last CTRL sent | listens on its own channel |
//! | waiting | NACK | done, or the next round: what is missing and the next segment |
//! | waking | a plan that asks and names it | repeats it; tells what it sent in the last transfer ([`Tally`](crate::Tally)) |
//! | waiting | no NACK in time | CTRL again; after [`Config::ctrl_attempts`] gives up |

use chappe_core::{
    Caps, DropReason, Drops, Head, Instant, RadioEvent, RadioNode, RadioRequest, Reception,
    TraceEvent, Wake,
};

use crate::blocks::Tags;
use crate::config::{Config, ConfigError};
use crate::ear::{Ear, answer_due, reply_time};
use crate::flood::Flood;
use crate::frame::Frames;
use crate::header::{Ctrl, Flags, Kind, Nack};
use crate::object::Object;
use crate::outbox::{Notes, Outbox};
use crate::plan::Plan;
use crate::repair::{Sums, combine};
use crate::round::{Next, Transfer};
use crate::seal::Nonce;
use crate::sizes::{IMPROVED_PAYLOAD_MAX, PACKETS_MAX};
use crate::tally::{Question, Told};

/// A node that has an object and sends it when a plan names it as the source. It takes part in the floods of other
/// transfers, but does not relay their packets.
#[derive(Clone, Debug)]
pub struct Source<O> {
    config: Config,
    frames: Frames,
    number: u16,
    /// The latest session that it took part in.
    session: u32,
    /// The session of its last transfer.
    began: u32,
    sums: Sums,
    /// Tags of the present segment's blocks.
    tags: Tags,
    object: O,
    state: State,
    ended: Option<Ended>,
    counts: Counts,
    ear: Ear,
    out: Outbox,
    notes: Notes,
}

/// How a transfer ended for its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The destination reported that it has the whole object.
    Complete,
    /// No NACK came, however often CTRL was sent.
    NoReply,
    /// NACKs came, but the last rounds brought no packet to the destination.
    NoProgress,
    /// The object has more packets than can be numbered.
    TooLong,
}

/// What the source has sent in its present or last transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// DATA frames sent, retransmissions included.
    pub data: u64,
    /// CODED frames sent, which only the improved variant has.
    pub coded: u64,
    /// CTRL frames sent, repetitions included.
    pub ctrl: u64,
    /// Rounds begun, the first one included.
    pub rounds: u64,
    /// Rounds in which all relays were one group.
    pub single_rounds: u64,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one state per node, and no allocator to box it with"
)]
enum State {
    Waking,
    Flooding(Flood),
    Telling(Question),
    Sending(Transfer),
    Waiting { transfer: Transfer, until: Instant },
}

impl<O: Object> Source<O> {
    /// Node `number` with an object, asleep until a plan wakes it.
    pub fn new(
        config: Config,
        caps: &Caps,
        number: u16,
        object: O,
    ) -> Result<Source<O>, ConfigError> {
        config.check(caps)?;
        Ok(Source {
            out: Outbox::new(config.flood_channel),
            frames: Frames::new(&config),
            config,
            number,
            session: 0,
            began: 0,
            sums: Sums::new(),
            tags: Tags::new(0, 0),
            object,
            state: State::Waking,
            ended: None,
            counts: Counts::default(),
            ear: Ear::default(),
            notes: Notes::default(),
        })
    }

    /// The latest session that it took part in. Keep it across restarts: a source that sends another object in an old
    /// session reuses nonces, which reveals both objects.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Restores the session after a restart.
    pub fn with_session(self, session: u32) -> Source<O> {
        Source { session, ..self }
    }

    /// Turns the trace on or off.
    pub fn trace(&mut self, on: bool) {
        self.notes.on(on);
    }

    /// How the last transfer ended; `None` before its end.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Frames and rounds of the present or last transfer.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Frames that it did not use, counted by reason.
    pub fn drops(&self) -> &Drops {
        self.notes.drops()
    }

    /// The state's name: `waking`, `flooding`, `telling`, `sending` or `waiting`.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Waking => "waking",
            State::Flooding(_) => "flooding",
            State::Telling(_) => "telling",
            State::Sending(_) => "sending",
            State::Waiting { .. } => "waiting",
        }
    }

    fn hear(&mut self, now: Instant, heard: &Reception<'_>) -> Result<(), DropReason> {
        match &mut self.state {
            // The outbox holds one frame, which must stay as it is until the radio has sent it.
            _ if self.out.is_busy() => Err(DropReason::QueueFull),
            State::Waking => {
                let (config, frames) = (&self.config, &self.frames);
                let known = (self.number, self.session);
                let opened = Flood::open(config, frames, known, now, heard, &mut self.out);
                let (mut flood, slot) = opened?;
                self.session = flood.session(self.session);
                flood.repeat(&self.config, &self.frames, now, slot, &mut self.out);
                self.enter(State::Flooding(flood));
                Ok(())
            }
            State::Flooding(flood) => {
                flood.hear(&self.config, &self.frames, now, heard, &mut self.out)
            }
            State::Telling(question) => question.hear(&self.frames, heard.psdu),
            State::Sending(_) => Err(DropReason::NotForUs),
            State::Waiting { transfer, .. } => {
                let parsed = self.frames.parse(&transfer.plan, 1, heard.psdu);
                let (header, body) = parsed.map_err(|_| DropReason::Malformed)?;
                let ours = header.transfer == transfer.plan.transfer();
                if !ours || header.kind != Kind::Nack || header.hop != 1 {
                    return Err(DropReason::NotForUs);
                }
                if header.round != transfer.round as u8 {
                    return Err(DropReason::Stale);
                }
                let nack = Nack::parse(header.sequence, body).map_err(|_| DropReason::Malformed)?;
                let nonce = Nonce::of_nack(&transfer.plan, &header, &nack);
                if !self.frames.is_genuine(&nonce, heard.psdu) {
                    return Err(DropReason::Unauthentic);
                }
                self.answer(now, header.flags, &nack)
            }
        }
    }

    /// Looks at the front of a frame that is still arriving, and aborts the reception unless it is a NACK for this
    /// source.
    fn glance(&mut self, head: &Head<'_>) {
        let State::Waiting { transfer, .. } = &self.state else {
            return;
        };
        let plan = &transfer.plan;
        if let Some(header) = self.frames.glance(plan, 1, head.octets) {
            let ours = header.transfer == plan.transfer() && header.hop == 1;
            if !ours || header.kind != Kind::Nack {
                self.out.abort();
            }
        }
    }

    /// Takes in a NACK of this round, and ends the transfer or begins the next round.
    fn answer(&mut self, now: Instant, flags: Flags, nack: &Nack<'_>) -> Result<(), DropReason> {
        let State::Waiting { transfer, .. } = &mut self.state else {
            return Err(DropReason::Stale);
        };
        if flags.complete {
            self.end(Ended::Complete);
            return Ok(());
        }
        // A resumed transfer begins with a question, so its first round can bring nothing.
        let asked_only = transfer.plan.is_resumed() && transfer.round == 0;
        let progress = transfer.account(nack).ok_or(DropReason::Stale)?;
        transfer.groups.hear(flags.left_out);
        transfer.fruitless = match progress || asked_only {
            true => 0,
            false => transfer.fruitless.saturating_add(1),
        };
        if transfer.fruitless >= self.config.fruitless_rounds {
            self.end(Ended::NoProgress);
            return Ok(());
        }
        // A NACK too short for the window covers the front of it. The next segment waits until all of it is known.
        let told = transfer.due.base().saturating_add(u32::from(nack.covered));
        let mut transfer = transfer.clone();
        let anchor = now + self.config.profile.gap() + self.config.profile.turn_source;
        let told = told >= transfer.end;
        transfer.next_round(&self.config, anchor, told);
        self.begin_round(now, transfer);
        Ok(())
    }

    /// The flood is over: starts if the plan names this node as its source.
    fn take_part(&mut self, now: Instant) {
        let State::Flooding(flood) = &self.state else {
            return;
        };
        let plan = flood.plan;
        if plan.source() != self.number {
            return self.enter(State::Waking);
        }
        if plan.asks() {
            let start = flood.data_start(&self.config);
            return self.take_turn(plan, start);
        }
        let packets = self.object.len().div_ceil(plan.payload() as u32);
        self.began = plan.session().unwrap_or_default();
        self.counts = Counts::default();
        self.ended = None;
        // Plans and nonces number packets by 24 bits.
        if packets >= PACKETS_MAX {
            return self.end(Ended::TooLong);
        }
        let start = flood.data_start(&self.config);
        let transfer = Transfer::new(&self.config, plan, packets, start);
        if plan.is_resumed() {
            self.tag_all(&transfer);
        }
        self.begin_round(now, transfer);
    }

    /// After the flood of a question: tells how many frames it sent in the transfer before, all groups together.
    fn take_turn(&mut self, plan: Plan, start: Instant) {
        let sent = self.counts.data.saturating_add(self.counts.coded);
        let told = match plan.asks_of(self.began) {
            true => Told::Frames(u32::try_from(sent).unwrap_or(u32::MAX)),
            false => Told::Absent,
        };
        let question = Question::new(&self.config, &self.frames, plan, start);
        self.enter(State::Telling(question.answered(0, told)));
    }

    /// Makes the tags of a segment of which an earlier transfer may have sent any packet. This takes a processor of 64 MHz with
    /// AES at 7 us a block 0.2 s for 880 packets, by which the first question is late.
    fn tag_all(&mut self, transfer: &Transfer) {
        let (plan, object) = (&transfer.plan, &self.object);
        self.tags = Tags::new(plan.blocks(), transfer.segment);
        if self.tags.is_empty() {
            return;
        }
        for packet in transfer.segment..transfer.end {
            let mut octets = [0; IMPROVED_PAYLOAD_MAX];
            let payload = octets.get_mut(..plan.payload()).unwrap_or_default();
            object.read(packet.saturating_mul(plan.payload() as u32), payload);
            let tag = self.frames.tag_of_packet(plan, packet, payload);
            self.tags.toggle(packet, tag);
        }
    }

    fn begin_round(&mut self, now: Instant, transfer: Transfer) {
        if transfer.pass.fresh {
            self.tags = Tags::new(transfer.plan.blocks(), transfer.segment);
        }
        self.counts.rounds = self.counts.rounds.saturating_add(1);
        let single = u64::from(transfer.pass.both);
        self.counts.single_rounds = self.counts.single_rounds.saturating_add(single);
        // Sums are of one round: its factors depend on the round's number.
        self.sums.reset(transfer.pass.combinations);
        self.enter(State::Sending(transfer));
        self.send_next(now);
    }

    fn send_next(&mut self, now: Instant) {
        let State::Sending(transfer) = &mut self.state else {
            return;
        };
        let groups = transfer.plan.groups();
        let next = transfer.pass.pick(&transfer.due, transfer.end, groups);
        if next == Next::Nothing {
            return self.wait(now);
        }
        let Some(start) = self.make(next) else { return };
        // A source that is late sends at once: relays take their time from the frame, not from the cycle.
        let start = if start < now { now } else { start };
        if let State::Sending(transfer) = &mut self.state {
            transfer.pass.last_start = start;
            self.out.tune(transfer.plan.channels().of_stage(1));
        }
        self.ear.close(&mut self.out);
        self.out.send(start);
    }

    /// Makes the round's next frame while the one before is on the air, and returns whether it has. Then drain the node as
    /// after any input.
    ///
    /// A frame takes a small processor longer than the gap before it. Call this when the radio has begun to send and nothing
    /// else is to be done, and not before: a radio keeps one frame that waits, and this would be a second one. A driver that
    /// never calls it leaves the work to the end of each frame. The frames are the same.
    pub fn prepare(&mut self) -> bool {
        let State::Sending(transfer) = &mut self.state else {
            return false;
        };
        if !self.out.has_room() {
            return false;
        }
        let mut pass = transfer.pass;
        let next = pass.pick(&transfer.due, transfer.end, transfer.plan.groups());
        // The round is over only when its last frame is: then the source changes its channel.
        if next == Next::Nothing {
            return false;
        }
        transfer.pass = pass;
        let Some(start) = self.make(next) else {
            return false;
        };
        if let State::Sending(transfer) = &mut self.state {
            transfer.pass.last_start = start;
        }
        self.out.follow(start);
        true
    }

    /// Writes a frame to the outbox and returns when it starts.
    fn make(&mut self, next: Next) -> Option<Instant> {
        let State::Sending(transfer) = &mut self.state else {
            return None;
        };
        let groups = transfer.plan.groups();
        match next {
            Next::Nothing => return None,
            Next::Data(packet) => {
                self.counts.data = self.counts.data.saturating_add(1);
                let last = transfer.due.next(packet + 1, transfer.end).is_none();
                let flags = Flags {
                    last,
                    ..transfer.pass.flags(groups)
                };
                let body = transfer.begin(
                    &self.frames,
                    &mut self.out,
                    Kind::Data,
                    flags,
                    packet as u16,
                );
                let offset = packet.saturating_mul(transfer.plan.payload() as u32);
                // The body is zeroed, so the last packet is padded with zeros.
                self.object.read(offset, body);
                // Before the seal, which encrypts the body in place.
                if self.sums.count() > 0 {
                    self.sums.add(&transfer.factors(), packet, body);
                }
                let nonce = Nonce::of_data(&transfer.plan, packet);
                if self.tags.is_empty() {
                    self.frames.seal(&mut self.out, &nonce);
                } else {
                    let tag = self.frames.mask(&mut self.out, &nonce);
                    // A packet is in the tag of its block once, however often it is sent.
                    if transfer.pass.fresh {
                        self.tags.toggle(packet, tag);
                    }
                }
            }
            Next::Coded(number) => {
                self.counts.coded = self.counts.coded.saturating_add(1);
                let (flags, round) = (transfer.pass.flags(groups), transfer.round as u8);
                let sequence = u16::from_be_bytes([round, number]);
                let body =
                    transfer.begin(&self.frames, &mut self.out, Kind::Coded, flags, sequence);
                // A round of combinations alone reads its few packets again; after plain packets the sums have them all.
                if transfer.is_coded() {
                    let payload = transfer.plan.payload() as u32;
                    let read = |packet: u32, to: &mut [u8]| {
                        self.object.read(packet.saturating_mul(payload), to);
                    };
                    let packets = transfer.missing();
                    combine(&transfer.factors(), number, packets, read, body);
                } else {
                    body.copy_from_slice(self.sums.row(number, body.len()));
                }
                let nonce = Nonce::of_coded(&transfer.plan, transfer.segment, round, number);
                if self.tags.is_empty() {
                    self.frames.seal(&mut self.out, &nonce);
                } else {
                    self.frames.mask(&mut self.out, &nonce);
                }
            }
            Next::Ctrl { left } => {
                self.counts.ctrl = self.counts.ctrl.saturating_add(1);
                let (flags, end) = (transfer.pass.flags(groups), transfer.end);
                let body =
                    transfer.begin(&self.frames, &mut self.out, Kind::Ctrl, flags, end as u16);
                let ctrl = Ctrl {
                    object_len: self.object.len(),
                    end,
                    copies_left: left,
                };
                // A plan's payload has room for it.
                let _ = ctrl.emit(body);
                let header = transfer.header(Kind::Ctrl, flags, end as u16);
                let nonce = Nonce::of_ctrl(&transfer.plan, &header, &ctrl);
                self.frames.write_tags(&mut self.out, &nonce, &self.tags);
                self.frames.seal(&mut self.out, &nonce);
            }
        }
        let start = transfer.next_start(&self.config);
        transfer.pass.frames += 1;
        Some(start)
    }

    /// Waits for the NACK.
    fn wait(&mut self, now: Instant) {
        let State::Sending(transfer) = &mut self.state else {
            return;
        };
        // `due` is the earliest start of the NACK, when the receiver opens; `until` is when it counts as lost.
        let wait = reply_time(&self.config, &transfer.plan, 0) + self.config.reply_slack;
        let began = transfer.pass.last_start;
        let due = answer_due(&self.config, &self.frames, &transfer.plan, 0, began, 0);
        self.ear.rest(&self.config, now, due, &mut self.out);
        self.out.tune(transfer.plan.channels().of_stage(0));
        let transfer = transfer.clone();
        let until = now + wait;
        self.enter(State::Waiting { transfer, until });
    }

    /// No NACK came: sends the CTRL again, alternating between the groups and all relays as one.
    fn ask_again(&mut self, now: Instant) {
        let State::Waiting { transfer, .. } = &mut self.state else {
            return;
        };
        if transfer.pass.attempt >= self.config.ctrl_attempts {
            return self.end(Ended::NoReply);
        }
        let pass = &mut transfer.pass;
        pass.attempt += 1;
        pass.both = transfer.plan.is_single() || !pass.both;
        (pass.anchor, pass.frames, pass.copies) = (now + self.config.profile.gap(), 0, 0);
        let transfer = transfer.clone();
        self.enter(State::Sending(transfer));
        self.send_next(now);
    }

    fn end(&mut self, ended: Ended) {
        self.ended = Some(ended);
        self.rest();
    }

    /// Waits for a plan.
    fn rest(&mut self) {
        self.out.stop();
        self.ear.open(&mut self.out);
        self.out.tune(self.config.flood_channel);
        self.enter(State::Waking);
    }

    fn enter(&mut self, state: State) {
        let from = self.state();
        self.state = state;
        let to = self.state();
        self.notes.push(TraceEvent::State {
            machine: "source",
            from,
            to,
        });
    }
}

impl<O: Object> RadioNode for Source<O> {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(heard) => match self.hear(now, &heard) {
                Ok(()) => self.notes.received(heard.psdu.len()),
                Err(why) => self.notes.dropped(why),
            },
            RadioEvent::Sent => {
                if !self.out.sent() {
                    return;
                }
                self.notes.sent(self.out.frame().len());
                match &mut self.state {
                    State::Flooding(flood) if flood.is_spent() => self.take_part(now),
                    State::Flooding(flood) => {
                        flood.go_on(&self.config, &self.frames, &mut self.out);
                    }
                    // The next frame is with the driver already.
                    _ if self.out.is_busy() => {}
                    _ => self.send_next(now),
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
        match &mut self.state {
            State::Flooding(flood) if flood.end <= now => {
                self.out.stop();
                self.take_part(now);
            }
            State::Telling(question) if question.end() <= now => self.rest(),
            State::Telling(question) => {
                question.tell(&self.config, &self.frames, now, &mut self.out);
            }
            State::Waiting { until, .. } if *until <= now => self.ask_again(now),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        let own = match &self.state {
            State::Flooding(flood) => wake(flood.end, "end of the flood"),
            State::Telling(question) => Some(question.wake(&self.config)),
            State::Waiting { until, .. } => wake(*until, "no NACK"),
            State::Waking | State::Sending(_) => None,
        };
        Wake::earlier(self.ear.wake(), own)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.notes.pop()
    }
}
