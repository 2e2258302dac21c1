//! The source: sends packet after packet, one per cycle, asks what is missing, and sends that.
//!
//! | state | event | does |
//! |---|---|---|
//! | waking | a plan that names it | repeats it; sends the first packet at the common start |
//! | sending | frame sent | the next packet of the round a cycle later; combinations; after the last, CTRL |
//! | sending | last CTRL sent | listens on its own channel |
//! | waiting | NACK | done, or the next round: what is missing and the next segment |
//! | waiting | no NACK in time | CTRL again; after [`Config::ctrl_attempts`] gives up |

use chappe_core::{
    Caps, Drop, Drops, Head, Instant, RadioEvent, RadioNode, RadioRequest, Reception, TraceEvent,
    Wake,
};

use crate::config::{Config, ConfigError};
use crate::ear::{Ear, answer_due};
use crate::flood::Flood;
use crate::frame::Form;
use crate::groups::{Groups, PerGroup};
use crate::header::{Ctrl, Flags, Header, Kind, Nack};
use crate::object::Object;
use crate::outbox::{Notes, Outbox};
use crate::plan::{PACKETS_MAX, Plan};
use crate::relay::reply_time;
use crate::repair::{Factors, Sums, UNKNOWN_MAX, combine};
use crate::seal::Nonce;
use crate::window::{WINDOW, Window};

/// A node that has an object and sends it when a plan says so. It takes part in the floods of other transfers, but
/// does not relay them.
#[derive(Clone, Debug)]
pub struct Source<O> {
    config: Config,
    form: Form,
    number: u16,
    /// The latest session that it took part in.
    session: u32,
    sums: Sums,
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
    /// The destination says that it has everything.
    Complete,
    /// No NACK came, however often CTRL was sent.
    NoReply,
    /// NACKs came, but no round brought a packet to the destination any more.
    NoProgress,
    /// The object has more packets than can be numbered.
    TooLong,
}

/// What the source has sent in its present or last transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// DATA frames, retransmissions included.
    pub data: u64,
    /// Combinations of packets; improved variant.
    pub coded: u64,
    /// CTRL frames.
    pub ctrl: u64,
    /// Rounds begun.
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
    Sending(Transfer),
    Waiting { transfer: Transfer, until: Instant },
}

/// A transfer in progress.
#[derive(Clone, Debug)]
struct Transfer {
    plan: Plan,
    packets: u32,
    /// The packets of this round.
    due: Window,
    /// One past the last packet that the destination can have.
    end: u32,
    /// First packet of the present segment.
    segment: u32,
    /// Combinations that the destination lacks, as far as it told. Improved variant.
    deficit: u16,
    round: u16,
    groups: Groups,
    fruitless: u8,
    pass: Pass,
}

/// One way through the frames of a round, or through its CTRL alone.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// When its first frame starts.
    anchor: Instant,
    /// Frames so far.
    frames: u64,
    /// All relays of a stage are one group.
    both: bool,
    /// They were for the packets of this round; a CTRL that is sent again may differ.
    data_both: bool,
    /// The next packet to look at.
    cursor: u32,
    /// Combinations so far, and how many it shall be.
    coded: u8,
    combinations: u8,
    /// CTRL frames so far.
    copies: u8,
    /// How often the CTRL of this round has been tried.
    attempt: u8,
    /// When its last frame started.
    last_start: Instant,
}

impl Transfer {
    fn new(config: &Config, plan: Plan, packets: u32, anchor: Instant) -> Transfer {
        let first = plan.first().min(packets);
        let mut transfer = Transfer {
            plan,
            packets,
            due: Window::new(first),
            end: first,
            segment: first,
            deficit: 0,
            round: 0,
            groups: Groups::new(plan.groups()),
            fruitless: 0,
            pass: Pass {
                anchor,
                frames: 0,
                both: plan.is_single(),
                data_both: plan.is_single(),
                cursor: first,
                coded: 0,
                combinations: 0,
                copies: 0,
                attempt: 1,
                last_start: anchor,
            },
        };
        if plan.is_resumed() {
            // The destination may have any packet of its window: ask before sending.
            let most = match plan.improved() {
                Some(_) => u32::from(config.segment),
                None => WINDOW,
            };
            transfer.end = first.saturating_add(most).min(packets);
        } else {
            transfer.add_segment(config);
            transfer.pass.combinations = plan.improved().map_or(0, |improved| improved.repair);
        }
        transfer
    }

    /// New packets join the next round, as far as the window goes.
    fn add_segment(&mut self, config: &Config) {
        let span = self.due.base().saturating_add(WINDOW).min(self.packets);
        let end = self
            .end
            .saturating_add(u32::from(config.segment))
            .min(span)
            .max(self.end);
        (self.end..end).for_each(|packet| self.due.set(packet, true));
        self.segment = self.end;
        self.end = end;
    }

    /// When the next frame of the pass starts: one per cycle, or one in two cycles for one group.
    fn next_start(&self, config: &Config) -> Instant {
        let period = match self.pass.both {
            true => config.single_period(&self.plan),
            false => self.plan.cycle(),
        };
        self.pass.anchor + period * self.pass.frames
    }

    /// Whether this round has combinations only, of the few packets that are missing.
    fn is_coded(&self) -> bool {
        self.plan.improved().is_some() && self.pass.cursor == u32::MAX
    }

    fn factors(&self) -> Factors {
        Factors::new(&self.plan, self.segment, self.round as u8)
    }

    /// The packets that are still to come.
    fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let next = |at: u32| self.due.next(at, self.end);
        core::iter::successors(next(self.due.base()), move |&packet| next(packet + 1))
    }

    /// Takes in a NACK; whether anything of this round had arrived. `None` if it is not of this window.
    fn account(&mut self, nack: &Nack<'_>) -> Option<bool> {
        let base = self
            .due
            .resolve(nack.base)
            .filter(|base| *base <= self.end)?;
        let is_missing = |packet: u32| {
            let offset = packet.checked_sub(base)?;
            let offset = u16::try_from(offset).ok().filter(|&n| n < nack.covered)?;
            Some(nack.is_missing(offset))
        };
        let (mut sent, mut missing) = (PerGroup::default(), PerGroup::default());
        let (mut rank, mut at) = (0usize, self.due.base());
        let groups = usize::from(self.plan.groups().max(1));
        while let Some(packet) = self.due.next(at, self.end) {
            let lost = if packet < base {
                Some(false)
            } else {
                is_missing(packet)
            };
            let group = if self.pass.data_both {
                0
            } else {
                rank % groups
            };
            if let (Some(lost), Some(sent), Some(missing)) =
                (lost, sent.get_mut(group), missing.get_mut(group))
            {
                *sent += 1;
                *missing += u32::from(lost);
            }
            rank += 1;
            at = packet + 1;
        }
        let less = self.is_coded() && nack.missing < self.deficit;
        if !self.is_coded() {
            self.groups.observe(self.pass.data_both, sent, missing);
        }
        self.deficit = nack.missing;
        self.due.advance(base);
        (base..self.end).for_each(|packet| {
            self.due.set(packet, is_missing(packet) == Some(true));
        });
        Some(sent != missing || less)
    }

    /// Begins the next round at `anchor`. `told` is whether the NACK told of all packets sent so far.
    fn next_round(&mut self, config: &Config, anchor: Instant, told: bool) {
        let improved = self.plan.improved();
        let few = self.missing().take(UNKNOWN_MAX + 1).count();
        // The improved variant finishes a segment before the next: its sums are of one segment.
        if told && (improved.is_none() || few == 0) {
            self.add_segment(config);
        }
        let coded = improved.is_some() && (1..=UNKNOWN_MAX).contains(&few);
        let margin = u16::from(config.repair_margin);
        let combinations = match improved {
            Some(_) if coded => self.deficit.saturating_add(margin).min(255) as u8,
            Some(improved) => improved.repair,
            None => 0,
        };
        self.round = self.round.wrapping_add(1);
        let both = self.plan.is_single() || self.groups.single();
        self.pass = Pass {
            anchor,
            frames: 0,
            both,
            data_both: both,
            cursor: if coded { u32::MAX } else { self.due.base() },
            coded: 0,
            combinations,
            copies: 0,
            attempt: 1,
            last_start: anchor,
        };
    }
}

impl Transfer {
    fn header(&self, kind: Kind, flags: Flags, sequence: u16) -> Header {
        Header {
            kind,
            transfer: self.plan.transfer(),
            hop: 0,
            flags,
            sequence,
            round: self.round as u8,
        }
    }

    /// Begins a frame of full length; returns its body, zeroed.
    fn begin<'a>(
        &self,
        form: &Form,
        out: &'a mut Outbox,
        kind: Kind,
        flags: Flags,
        sequence: u16,
    ) -> &'a mut [u8] {
        let header = self.header(kind, flags, sequence);
        form.begin(out, &header, form.data_len(&self.plan))
    }
}

/// What the source sends next.
enum Next {
    Data(u32),
    Coded(u8),
    Ctrl { left: u8 },
    Nothing,
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
            form: Form::new(&config),
            config,
            number,
            session: 0,
            sums: Sums::new(),
            object,
            state: State::Waking,
            ended: None,
            counts: Counts::default(),
            ear: Ear::default(),
            notes: Notes::default(),
        })
    }

    /// The latest session that it took part in. Keep it where it survives a restart: a source that sends another object
    /// in an old session gives its secrets away.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The same source after a restart, which has heard of this session before.
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

    /// What it has sent.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What it did not use, and why.
    pub fn drops(&self) -> &Drops {
        self.notes.drops()
    }

    /// The state's name: `waking`, `flooding`, `sending` or `waiting`.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Waking => "waking",
            State::Flooding(_) => "flooding",
            State::Sending(_) => "sending",
            State::Waiting { .. } => "waiting",
        }
    }

    fn hear(&mut self, now: Instant, heard: &Reception<'_>) -> Result<(), Drop> {
        match &mut self.state {
            _ if self.out.is_busy() => Err(Drop::QueueFull),
            State::Waking => {
                let (config, form) = (&self.config, &self.form);
                let mut flood = Flood::open(config, form, self.session, now, heard, &mut self.out)?;
                self.session = flood.plan.session();
                let repeated = flood.hear(&self.config, now, heard, &mut self.out);
                self.enter(State::Flooding(flood));
                repeated
            }
            State::Flooding(flood) => flood.hear(&self.config, now, heard, &mut self.out),
            State::Sending(_) => Err(Drop::NotForUs),
            State::Waiting { transfer, .. } => {
                let parsed = self.form.parse(&transfer.plan, 1, heard.psdu);
                let (header, body) = parsed.map_err(|_| Drop::Malformed)?;
                let ours = header.transfer == transfer.plan.transfer();
                if !ours || header.kind != Kind::Nack || header.hop != 1 {
                    return Err(Drop::NotForUs);
                }
                if header.round != transfer.round as u8 {
                    return Err(Drop::Stale);
                }
                let nack = Nack::parse(header.sequence, body).map_err(|_| Drop::Malformed)?;
                let nonce = Nonce::of_nack(&transfer.plan, &header, &nack);
                if !self.form.is_genuine(&nonce, heard.psdu) {
                    return Err(Drop::Unauthentic);
                }
                self.answer(now, header.flags.complete, &nack)
            }
        }
    }

    /// The front of a frame that is still arriving: only an answer is heard out.
    fn glance(&mut self, head: &Head<'_>) {
        let State::Waiting { transfer, .. } = &self.state else {
            return;
        };
        let plan = &transfer.plan;
        if let Some(header) = self.form.glance(plan, 1, head.octets) {
            let ours = header.transfer == plan.transfer() && header.hop == 1;
            if !ours || header.kind != Kind::Nack {
                self.out.abort();
            }
        }
    }

    /// A NACK of this round has come.
    fn answer(&mut self, now: Instant, complete: bool, nack: &Nack<'_>) -> Result<(), Drop> {
        let State::Waiting { transfer, .. } = &mut self.state else {
            return Err(Drop::Stale);
        };
        if complete {
            self.end(Ended::Complete);
            return Ok(());
        }
        let asked_only = transfer.plan.is_resumed() && transfer.round == 0;
        let progress = transfer.account(nack).ok_or(Drop::Stale)?;
        transfer.fruitless = match progress || asked_only {
            true => 0,
            false => transfer.fruitless.saturating_add(1),
        };
        if transfer.fruitless >= self.config.fruitless_rounds {
            self.end(Ended::NoProgress);
            return Ok(());
        }
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
        let packets = self.object.len().div_ceil(plan.payload() as u32);
        self.counts = Counts::default();
        self.ended = None;
        if packets >= PACKETS_MAX {
            return self.end(Ended::TooLong);
        }
        let start = flood.data_start(&self.config);
        let transfer = Transfer::new(&self.config, plan, packets, start);
        self.begin_round(now, transfer);
    }

    fn begin_round(&mut self, now: Instant, transfer: Transfer) {
        self.counts.rounds = self.counts.rounds.saturating_add(1);
        let single = u64::from(transfer.pass.both);
        self.counts.single_rounds = self.counts.single_rounds.saturating_add(single);
        self.sums.reset(transfer.pass.combinations);
        self.enter(State::Sending(transfer));
        self.send_next(now);
    }

    fn send_next(&mut self, now: Instant) {
        let State::Sending(transfer) = &mut self.state else {
            return;
        };
        let groups = transfer.plan.groups();
        match transfer.pass.pick(&transfer.due, transfer.end, groups) {
            Next::Nothing => {
                let wait = reply_time(&self.config, &transfer.plan, 0) + self.config.reply_slack;
                let began = transfer.pass.last_start;
                let due = answer_due(&self.config, &self.form, &transfer.plan, 0, began, 0);
                self.ear.rest(&self.config, now, due, &mut self.out);
                self.out.tune(transfer.plan.channels().of_stage(0));
                let transfer = transfer.clone();
                let until = now + wait;
                return self.enter(State::Waiting { transfer, until });
            }
            Next::Data(packet) => {
                self.counts.data = self.counts.data.saturating_add(1);
                let last = transfer.due.next(packet + 1, transfer.end).is_none();
                let flags = Flags {
                    last,
                    ..transfer.pass.flags(groups)
                };
                let body =
                    transfer.begin(&self.form, &mut self.out, Kind::Data, flags, packet as u16);
                let offset = packet.saturating_mul(transfer.plan.payload() as u32);
                self.object.read(offset, body);
                if self.sums.count() > 0 {
                    self.sums.add(&transfer.factors(), packet, body);
                }
                self.form
                    .seal(&mut self.out, &Nonce::of_data(&transfer.plan, packet));
            }
            Next::Coded(number) => {
                self.counts.coded = self.counts.coded.saturating_add(1);
                let (flags, round) = (transfer.pass.flags(groups), transfer.round as u8);
                let sequence = u16::from_be_bytes([round, number]);
                let body = transfer.begin(&self.form, &mut self.out, Kind::Coded, flags, sequence);
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
                self.form.seal(&mut self.out, &nonce);
            }
            Next::Ctrl { left } => {
                self.counts.ctrl = self.counts.ctrl.saturating_add(1);
                let (flags, end) = (transfer.pass.flags(groups), transfer.end);
                let body = transfer.begin(&self.form, &mut self.out, Kind::Ctrl, flags, end as u16);
                let ctrl = Ctrl {
                    object_len: self.object.len(),
                    end,
                    copies_left: left,
                };
                // A plan's payload has room for it.
                let _ = ctrl.emit(body);
                let header = transfer.header(Kind::Ctrl, flags, end as u16);
                self.form.seal(
                    &mut self.out,
                    &Nonce::of_ctrl(&transfer.plan, &header, &ctrl),
                );
            }
        }
        let start = transfer.next_start(&self.config);
        let start = if start < now { now } else { start };
        transfer.pass.frames += 1;
        transfer.pass.last_start = start;
        self.ear.close(&mut self.out);
        self.out.tune(transfer.plan.channels().of_stage(1));
        self.out.send(start);
    }

    /// No NACK: CTRL again, in turns for two groups and for all relays as one.
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

impl Pass {
    /// The next frame of the pass: its packets in order, its combinations, then one CTRL per group.
    fn pick(&mut self, due: &Window, end: u32, groups: u8) -> Next {
        if let Some(packet) = due.next(self.cursor, end) {
            self.cursor = packet + 1;
            return Next::Data(packet);
        }
        if self.coded < self.combinations {
            self.coded += 1;
            return Next::Coded(self.coded - 1);
        }
        let copies = if self.both { 1 } else { groups };
        if self.copies < copies {
            self.copies += 1;
            let left = copies - self.copies;
            return Next::Ctrl { left };
        }
        Next::Nothing
    }

    fn flags(&self, groups: u8) -> Flags {
        Flags {
            group: if self.both {
                0
            } else {
                (self.frames % u64::from(groups.max(1))) as u8
            },
            both: self.both,
            ..Flags::default()
        }
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
                match &self.state {
                    State::Flooding(flood) if flood.is_spent() => self.take_part(now),
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
        match &self.state {
            State::Flooding(flood) if flood.end <= now => {
                self.out.stop();
                self.take_part(now);
            }
            State::Waiting { until, .. } if *until <= now => self.ask_again(now),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let wake = |at, why| Some(Wake { at, why });
        let own = match &self.state {
            State::Flooding(flood) => wake(flood.end, "end of the flood"),
            State::Waiting { until, .. } => wake(*until, "no NACK"),
            State::Waking | State::Sending(_) => None,
        };
        Wake::earlier(self.ear.wake(), own)
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.notes.pop()
    }
}
