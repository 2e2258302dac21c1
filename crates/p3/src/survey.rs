//! The measurement of links by the nodes themselves: who hears whom, how often and how strongly, on four channels.
//!
//! The gateway calls one node after the other, by a flood after Glossy. A node that is called sends beacons of full length on each
//! channel, which all others count. When all have sent, the gateway calls each for its report, and the node floods it back. Time
//! is reckoned from the flood, so that all nodes change their channels together.
//!
//! | state | event | does |
//! |---|---|---|
//! | idle | CALL | repeats it; then sends beacons, counts them, or floods its report |
//! | idle | REPORT | repeats it |
//! | called | time | sends the beacons of a channel, then of the next |
//! | counting | BEACON | counts it; changes the channel when the called node does |
//!
//! [`Survey`] is a node's part; [`Surveyor`] is the gateway's. Both are for the time before a transfer: [`Survey::takes`]
//! reports whether a frame is one of theirs.

mod frame;
mod member;
mod surveyor;
mod table;

use chappe_core::{
    Caps, DropReason, Drops, Duration, Instant, RadioEvent, RadioNode, RadioRequest, Reception,
    TraceEvent, Wake,
};

use crate::config::{Config, ConfigError, Variant};
use crate::outbox::{Notes, Outbox};
use crate::seal::Seal;
use crate::sizes::{CHANNELS, FRAME_MAX};
use crate::timing::flood_slots;
pub use frame::Heard;
use frame::{HEAD, Head, Kind, LINKS_MAX, Refused};
pub use member::Member;
pub use surveyor::{Ledger, Surveyor};
use table::Table;

/// Between the end of a flood and what follows, and around the change of a channel: our choice, as [`Config::start_guard`].
const GUARD: Duration = Duration::from_millis(1);
/// Hops that a flood may cross at most.
const HOPS_MAX: u8 = 31;

/// A node's part in a measurement.
#[derive(Clone, Debug)]
pub struct Survey {
    config: Config,
    seal: Seal,
    number: u16,
    session: u32,
    /// The last call that it took part in.
    call: Option<u16>,
    state: State,
    table: Table,
    out: Outbox,
    notes: Notes,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Flooding(Flood),
    /// From the start of the first channel's window on.
    Measuring {
        call: Call,
        start: Instant,
        step: u16,
    },
}

/// A flood that this node repeats.
#[derive(Clone, Copy, Debug)]
struct Flood {
    /// Start of slot 0.
    reference: Instant,
    slot: Duration,
    slots: u64,
    /// Transmissions that are left.
    left: u8,
    /// This node began it, and sends by its own clock.
    root: bool,
    /// What follows, unless it is a report.
    call: Option<Call>,
}

impl Flood {
    fn end(&self) -> Instant {
        self.reference + self.slot * self.slots
    }
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    node: u16,
    number: u16,
    hops: u8,
    errand: Errand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    Beacons(u8),
    Report { part: u8 },
}

impl Survey {
    /// The part of node `number`. Radios must have the abilities that transfers need.
    pub fn new(config: Config, caps: &Caps, number: u16) -> Result<Survey, ConfigError> {
        config.check(caps)?;
        let key = match &config.variant {
            Variant::Improved(improved) => improved.key.as_ref(),
            Variant::Paper => None,
        };
        Ok(Survey {
            seal: Seal::new(key),
            out: Outbox::new(config.flood_channel),
            config,
            number,
            session: 0,
            call: None,
            state: State::Idle,
            table: Table::new(),
            notes: Notes::default(),
        })
    }

    /// Whether a frame is one of a measurement.
    pub fn takes(psdu: &[u8]) -> bool {
        frame::is_ours(psdu)
    }

    /// Whether it waits for a call. Its radio is then on the channel of floods, and listens.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && !self.out.is_busy()
    }

    /// What it has heard in this session, a row for each neighbour.
    pub fn heard(&self) -> impl Iterator<Item = Heard> + '_ {
        self.table.from(0)
    }

    /// Frames that it did not use, counted by reason.
    pub fn drops(&self) -> &Drops {
        self.notes.drops()
    }

    /// Time from one beacon to the next: a frame, a turnaround, and 16 us in which its receivers note it.
    fn interval(&self) -> Duration {
        self.config.profile.slot(FRAME_MAX) + Duration::from_micros(16)
    }

    /// The window of a channel.
    fn window(&self, beacons: u8) -> Duration {
        self.interval() * u64::from(beacons) + GUARD * 2
    }

    /// Begins a call by a flood from this node, at `at`.
    fn begin(&mut self, session: u32, call: Call, at: Instant) {
        self.open(session);
        self.call = Some(call.number);
        let (first, second) = match call.errand {
            Errand::Beacons(count) => (0, count),
            Errand::Report { part } => (part.saturating_add(1), 0),
        };
        let head = Head {
            kind: Kind::Call,
            slot: 0,
            session,
            number: call.number,
            node: call.node,
            first,
            second,
            third: call.hops,
        };
        let len = HEAD + self.seal.tag_len();
        head.write(&self.seal, core::iter::empty(), self.out.write(len));
        self.flood(len, call.hops, at, Some(call));
    }

    /// Floods the frame in the outbox from this node.
    fn flood(&mut self, len: usize, hops: u8, at: Instant, call: Option<Call>) {
        self.out.listen(true);
        self.out.tune(self.config.flood_channel);
        self.out.send(at);
        self.state = State::Flooding(Flood {
            reference: at,
            slot: self.config.profile.slot(len),
            slots: flood_slots(hops, self.config.flood_repeats),
            left: self.config.flood_repeats.saturating_sub(1),
            root: true,
            call,
        });
    }

    /// Forgets what was heard in an older session.
    fn open(&mut self, session: u32) {
        if session > self.session {
            self.session = session;
            self.call = None;
            self.table.clear();
        }
    }

    /// Takes in a frame, and returns the head of a report.
    fn receive(&mut self, now: Instant, heard: &Reception<'_>) -> Option<Head> {
        match self.hear(now, heard) {
            Ok(report) => {
                self.notes.received(heard.psdu.len());
                report
            }
            Err(why) => {
                self.notes.dropped(why);
                None
            }
        }
    }

    fn hear(&mut self, now: Instant, heard: &Reception<'_>) -> Result<Option<Head>, DropReason> {
        let opened = Head::open(&self.seal, heard.psdu);
        let (head, _) = opened.map_err(|why| match why {
            Refused::Malformed => DropReason::Malformed,
            Refused::Unauthentic => DropReason::Unauthentic,
        })?;
        if head.session < self.session {
            return Err(DropReason::Stale);
        }
        match head.kind {
            Kind::Beacon => {
                let State::Measuring { call, .. } = &self.state else {
                    return Err(DropReason::NotForUs);
                };
                if head.number != call.number || head.node != call.node {
                    return Err(DropReason::Stale);
                }
                let power = heard.power;
                self.table
                    .count(head.node, usize::from(head.first & 3), power);
                Ok(None)
            }
            Kind::Call | Kind::Report => {
                self.join(now, heard, head)?;
                Ok((head.kind == Kind::Report).then_some(head))
            }
        }
    }

    /// Takes part in a flood: the first frame of it begins it, each further one is a reason to repeat it.
    fn join(&mut self, now: Instant, heard: &Reception<'_>, head: Head) -> Result<(), DropReason> {
        if self.out.is_busy() {
            return Err(DropReason::QueueFull);
        }
        if let State::Idle = self.state {
            let old = head.session == self.session && self.call >= Some(head.number);
            if head.kind == Kind::Call && old {
                return Err(DropReason::Stale);
            }
            let hops = head.third.min(HOPS_MAX);
            let slot = self.config.profile.slot(heard.psdu.len());
            let before = slot * u64::from(head.slot);
            let flood = Flood {
                reference: heard.started.saturating_before(before),
                slot,
                slots: flood_slots(hops, self.config.flood_repeats),
                left: self.config.flood_repeats,
                root: false,
                call: Call::of(&head),
            };
            if flood.end() <= now || !self.out.copy(heard.psdu) {
                return Err(DropReason::Stale);
            }
            self.open(head.session);
            if head.kind == Kind::Call {
                self.call = Some(head.number);
            }
            self.state = State::Flooding(flood);
        }
        let State::Flooding(flood) = &mut self.state else {
            return Err(DropReason::NotForUs);
        };
        if !same(heard.psdu, self.out.frame()) {
            return Err(DropReason::Stale);
        }
        let in_time = u64::from(head.slot) + 1 < flood.slots;
        if flood.left > 0 && in_time && !flood.root {
            flood.left -= 1;
            self.out.set_hop(head.slot + 1);
            self.out.send(now + self.config.profile.gap());
        }
        Ok(())
    }

    /// The flood is over.
    fn follow(&mut self, flood: Flood) {
        self.out.stop();
        self.state = State::Idle;
        let Some(call) = flood.call else { return };
        let start = flood.end() + GUARD;
        match call.errand {
            Errand::Beacons(_) => {
                let step = 0;
                self.state = State::Measuring { call, start, step };
                self.out.listen(true);
            }
            Errand::Report { part } if call.node == self.number => self.report(&call, part, start),
            Errand::Report { .. } => {}
        }
    }

    /// Floods a part of what this node has heard.
    fn report(&mut self, call: &Call, part: u8, at: Instant) {
        let first = usize::from(part) * LINKS_MAX;
        let links = self.table.from(first).take(LINKS_MAX);
        let count = self.table.len().saturating_sub(first).min(LINKS_MAX);
        let parts = self.table.len().div_ceil(LINKS_MAX).max(1);
        let head = Head {
            kind: Kind::Report,
            slot: 0,
            session: self.session,
            number: call.number,
            node: self.number,
            first: parts as u8,
            second: count as u8,
            third: call.hops,
        };
        let len = HEAD + count * 8 + self.seal.tag_len();
        let body = links.flat_map(|heard| heard.octets());
        head.write(&self.seal, body, self.out.write(len));
        self.flood(len, call.hops, at, None);
    }

    /// The next step of a measurement, at its time: a channel, and its beacons.
    fn step(&mut self) {
        let State::Measuring { call, start, step } = self.state else {
            return;
        };
        let Errand::Beacons(beacons) = call.errand else {
            return;
        };
        let Some(&channel) = CHANNELS.get(usize::from(step)) else {
            self.out.tune(self.config.flood_channel);
            self.state = State::Idle;
            return;
        };
        self.out.tune(channel);
        if call.node == self.number && beacons > 0 {
            self.beacon(&call, step as u8, 0);
            self.out
                .send(start + self.window(beacons) * u64::from(step) + GUARD);
        }
        let step = step + 1;
        self.state = State::Measuring { call, start, step };
    }

    fn beacon(&mut self, call: &Call, channel: u8, number: u8) {
        let head = Head {
            kind: Kind::Beacon,
            slot: 0,
            session: self.session,
            number: call.number,
            node: self.number,
            first: channel,
            second: number,
            third: 0,
        };
        head.write(&self.seal, core::iter::empty(), self.out.write(FRAME_MAX));
    }

    fn sent(&mut self) {
        self.notes.sent(self.out.frame().len());
        match &mut self.state {
            State::Flooding(flood) if flood.root && flood.left > 0 => {
                flood.left -= 1;
                let count = self.config.flood_repeats - flood.left - 1;
                let slot = count.saturating_mul(2);
                let at = flood.reference + flood.slot * u64::from(slot);
                self.out.set_hop(slot);
                self.out.send(at);
            }
            State::Measuring { call, start, step } => {
                let (call, start, channel) = (*call, *start, step.saturating_sub(1));
                let Errand::Beacons(beacons) = call.errand else {
                    return;
                };
                // The number of the beacon that has just been sent stands in it.
                let next = self.out.frame().get(11).map_or(0, |number| number + 1);
                if next < beacons {
                    let window = start + self.window(beacons) * u64::from(channel) + GUARD;
                    let at = window + self.interval() * u64::from(next);
                    self.beacon(&call, channel as u8, next);
                    self.out.send(at);
                }
            }
            _ => {}
        }
    }

    fn due(&self) -> Option<Instant> {
        match &self.state {
            State::Idle => None,
            State::Flooding(flood) => Some(flood.end()),
            State::Measuring { call, start, step } => match call.errand {
                Errand::Beacons(beacons) => Some(*start + self.window(beacons) * u64::from(*step)),
                Errand::Report { .. } => Some(*start),
            },
        }
    }
}

impl Call {
    fn of(head: &Head) -> Option<Call> {
        (head.kind == Kind::Call).then(|| Call {
            node: head.node,
            number: head.number,
            hops: head.third.min(HOPS_MAX),
            errand: match head.first.checked_sub(1) {
                None => Errand::Beacons(head.second.min(15)),
                Some(part) => Errand::Report { part },
            },
        })
    }
}

/// Whether two frames differ in their slot at most.
fn same(one: &[u8], other: &[u8]) -> bool {
    let mut pairs = one.iter().zip(other).enumerate();
    one.len() == other.len() && pairs.all(|(at, (one, other))| at == 2 || one == other)
}

impl RadioNode for Survey {
    fn handle_radio(&mut self, now: Instant, event: RadioEvent<'_>) {
        match event {
            RadioEvent::Received(heard) => {
                self.receive(now, &heard);
            }
            RadioEvent::Sent => {
                if self.out.sent() {
                    self.sent();
                }
            }
            RadioEvent::Head(_) | RadioEvent::Failed(_) | RadioEvent::Carrier { .. } => {}
        }
    }

    fn poll_radio(&mut self, _: Instant, psdu: &mut [u8]) -> Option<RadioRequest> {
        self.out.poll(psdu)
    }

    fn handle_timeout(&mut self, now: Instant) {
        // A node that is woken late catches up.
        while self.due().is_some_and(|at| at <= now) {
            match self.state {
                State::Idle => return,
                State::Flooding(flood) => self.follow(flood),
                State::Measuring { .. } => self.step(),
            }
        }
    }

    fn poll_timeout(&self) -> Option<Wake> {
        let why = match self.state {
            State::Flooding(_) => "end of the flood",
            State::Idle | State::Measuring { .. } => "next channel",
        };
        self.due().map(|at| Wake { at, why })
    }

    fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.notes.pop()
    }
}
