//! The radio's state, and what the processor does at each interrupt.

mod setup;
mod time;

use chappe_core::{
    Caps, Channel, Dbm, Duration, Failure, Instant, Mode, RadioRequest, Rate, Transmit,
};

use crate::registers::{Buffer, PPI_CHENCLR, PPI_CHENSET, Registers, radio, timer};
use radio::{interrupt, short};
use setup::channel;
use time::Time;

/// The parameters of the radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Energy from which on the channel is busy. IEEE 802.15.4-2015, 10.2.7: at most 10 dB above the sensitivity, which
    /// clause 12.3.4 sets at -85 dBm.
    pub busy_from: Dbm,
    /// The channel at the start.
    pub channel: Channel,
    /// The power of frames that ask for none.
    pub power: Dbm,
}

impl Config {
    /// The standard's threshold, channel 26 and 0 dBm.
    pub const STANDARD: Config = Config {
        busy_from: Dbm(-75.0),
        channel: Channel(26),
        power: Dbm(0.0),
    };
}

/// What the driver has seen. Octets of a frame are read by [`Driver::octets`] before the next call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    /// The channel became busy or idle, or the MAC has just asked.
    Carrier {
        /// Whether the channel is busy.
        busy: bool,
    },
    /// The first octets of a frame, as many as were asked for.
    Head {
        /// Octets that have arrived and can be read.
        octets: usize,
        /// Length of the whole frame, without its check sequence.
        len: usize,
        /// When its first preamble bit arrived.
        started: Instant,
    },
    /// A good frame has ended.
    Received {
        /// Its length, without its check sequence.
        len: usize,
        /// When its first preamble bit arrived.
        started: Instant,
        /// Received power, from the radio's RSSI sample.
        power: Dbm,
    },
    /// A frame has ended with a wrong check sequence, or an impossible length.
    Failed(Failure),
    /// Our frame has ended.
    Sent,
}

/// What the radio can do. A frame starts within a tick of 16 MHz.
pub const CAPS: Caps = Caps {
    frame_max: PSDU_MAX - FCS_LEN,
    schedules: true,
    start_error: Duration::from_nanos(63),
    reports_power: true,
    overhears: true,
    confirms_broadcast: true,
    hastens: false,
};

/// Rate and preamble of all frames.
pub(crate) const MODE: Mode = Mode::long(Rate::Oqpsk250);
/// Ramp-up to send or receive, fast (PS, RADIO electrical specification: t_TXEN,FAST and t_RXEN,FAST in 802.15.4 mode).
const RAMP: Duration = Duration::from_micros(40);
/// From off to hearing: the ramp-up, and a microsecond of being switched off before (t_RXDISABLE).
pub const RX_RAMP: Duration = Duration::from_micros(41);
/// Preamble, SFD and length octet: six octets of 32 us, then the event FRAMESTART.
const HEADER: Duration = Duration::from_micros(192);
/// Reception ends this long before an own frame: what arrives later could not end in time. An acknowledgement is due 192 us
/// after a frame, so it is armed at once.
const LEAD: Duration = Duration::from_micros(200);
/// A register is written within this time, so that a compare register set to it has not passed.
pub(crate) const SOON: Duration = Duration::from_micros(3);
/// Between two looks at the energy while the MAC assesses the channel: two symbols.
const LOOK: Duration = Duration::from_micros(32);
/// The check sequence, in octets.
const FCS_LEN: usize = 2;
/// The longest PSDU, and the shortest one that has a check sequence and an octet.
const PSDU_MAX: usize = 127;
const PSDU_MIN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Disabled, or on the way there.
    Off,
    /// Ramping up to receive, or receiving.
    Receiving,
    /// A frame is armed or on the air.
    Sending,
    /// A frame has ended; the transmitter is still up, so that the next frame needs no ramp-up.
    Lingering,
}

/// The radio of one node. It never waits: [`request`](Self::request) begins, [`poll`](Self::poll) reports.
#[derive(Debug)]
pub struct Driver<R> {
    registers: R,
    config: Config,
    time: Time,
    state: State,
    listening: bool,
    sensing: bool,
    /// The last state of the channel that was reported.
    busy: Option<bool>,
    /// Octets of each frame to report early.
    peek: usize,
    /// The frame that is arriving: when it began, and whether its head was reported.
    arriving: Option<(Instant, bool)>,
    /// The power of the arriving frame.
    power: Dbm,
    /// A frame that is not armed yet; its octets are in the buffer that is not `armed`.
    waiting: Option<Transmit>,
    /// The buffer of the last frame that was armed, and when that frame begins.
    armed: Buffer,
    begins: Instant,
    /// While a frame is on the air: the next one is armed too, and starts by itself.
    follows: bool,
    /// The value of the register TXPOWER, to see whether it must change.
    level: u32,
    /// The next look at the channel.
    look_at: Option<Instant>,
    /// When a task wants to be woken.
    alarm: Option<Instant>,
    refused: u32,
}

impl<R: Registers> Driver<R> {
    /// Sets the radio up; it listens.
    pub fn new(registers: R, config: Config) -> Driver<R> {
        let mut driver = Driver {
            registers,
            config,
            time: Time::default(),
            state: State::Off,
            listening: true,
            sensing: false,
            busy: None,
            peek: 0,
            arriving: None,
            power: Dbm(0.0),
            waiting: None,
            armed: Buffer::Next,
            begins: Instant::ZERO,
            follows: false,
            level: setup::tx_power(config.power),
            look_at: None,
            alarm: None,
            refused: 0,
        };
        setup::begin(&mut driver.registers, &driver.config);
        driver.listen();
        driver
    }

    /// How it reaches the chip, to use it for something else.
    pub fn registers_mut(&mut self) -> &mut R {
        &mut self.registers
    }

    /// The present time, since [`new`](Self::new).
    pub fn now(&mut self) -> Instant {
        self.registers.write(timer::capture(channel::NOW), 1);
        let ticks = self.registers.read(timer::cc(channel::NOW));
        self.time.advance(ticks)
    }

    /// Bursts of energy, which this radio cannot send, and frames that are too long. They were not sent.
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// When the last frame that was asked for begins, or has begun, while the radio is busy with it: from then on there is room
    /// for the next one.
    pub fn begins(&self) -> Option<Instant> {
        let alone = self.state == State::Sending && !self.follows && self.waiting.is_none();
        alone.then_some(self.begins)
    }

    /// Asks for an interrupt at this time, in place of an earlier wish.
    pub fn set_alarm(&mut self, at: Option<Instant>) {
        self.alarm = at;
        self.set_compare();
    }

    /// Copies octets of the frame that [`poll`](Self::poll) has just reported.
    pub fn octets(&self, to: &mut [u8]) {
        self.registers.load(Buffer::Receive, 1, to);
    }

    /// Begins what the MAC asks for.
    pub fn request(&mut self, request: RadioRequest, psdu: &[u8]) {
        match request {
            RadioRequest::Transmit(transmit) => self.transmit(transmit, psdu),
            RadioRequest::Burst(_) => self.refused = self.refused.wrapping_add(1),
            RadioRequest::Cancel => self.cancel(),
            RadioRequest::Sense(on) => {
                self.sensing = on;
                self.busy = None;
                self.look_at = None;
                if on {
                    self.look_at = Some(self.now());
                }
                self.set_compare();
            }
            RadioRequest::Tune(to) => {
                self.registers.write(radio::FREQUENCY, setup::frequency(to));
                // The frequency is read at ramp-up.
                if self.state == State::Receiving {
                    self.listen();
                }
            }
            RadioRequest::Listen(on) => {
                self.listening = on;
                match (self.state, on) {
                    (State::Off, true) => self.listen(),
                    (State::Receiving, false) => self.turn_off(),
                    _ => {}
                }
            }
            RadioRequest::Peek(octets) => {
                self.peek = octets.min(PSDU_MAX);
                let bits = 8 * self.peek as u32;
                self.registers.write(radio::BCC, bits);
            }
            RadioRequest::Abort => {
                if self.state == State::Receiving {
                    self.listen();
                }
            }
        }
    }

    /// Call after the requests that follow an event: without a frame to send, the radio listens again, or turns off.
    pub fn settle(&mut self) {
        if self.waiting.is_some() || self.state != State::Lingering {
            return;
        }
        match self.listening {
            true => self.listen(),
            false => self.turn_off(),
        }
    }

    /// The next thing that has happened, and when. Call it after each interrupt, until it returns `None`.
    pub fn poll(&mut self) -> Option<(Instant, Seen)> {
        if self.take(timer::compare(channel::ALARM)) {
            self.set_compare();
        }
        let now = self.now();
        if self.waiting.is_some_and(|one| one.at <= now + LEAD) {
            self.arm(now);
        }
        if self.take(radio::EVENTS_FRAMESTART) && self.state == State::Receiving {
            self.begin_frame();
        }
        if let Some(seen) = self.poll_frame() {
            return Some(seen);
        }
        if self.take(radio::EVENTS_PHYEND) && self.state == State::Sending {
            self.take(radio::EVENTS_END);
            if !core::mem::take(&mut self.follows) {
                // Otherwise the timer would start a frame each time that it wraps.
                self.disarm();
                self.state = State::Lingering;
            }
            return Some((self.captured(channel::SENT), Seen::Sent));
        }
        self.look(now)
    }

    /// The head or the end of a frame that arrives.
    fn poll_frame(&mut self) -> Option<(Instant, Seen)> {
        let matched = self.take(radio::EVENTS_BCMATCH);
        if self.state != State::Receiving {
            return None;
        }
        let ended = self.registers.read(radio::EVENTS_END) != 0;
        let (started, reported) = self.arriving?;
        let len = self.length();
        if !reported && self.peek > 0 && (matched || ended) {
            self.arriving = Some((started, true));
            if let Some(len) = len {
                let octets = self.peek.min(len);
                let at = started + MODE.airtime(octets);
                let head = Seen::Head {
                    octets,
                    len,
                    started,
                };
                return Some((at, head));
            }
        }
        if !ended {
            return None;
        }
        self.take(radio::EVENTS_END);
        self.arriving = None;
        let at = self.captured(channel::ENDED);
        let good = self.registers.read(radio::CRCSTATUS) == 1;
        // The buffer stays as it is until the next frame's first octet, 192 us from now at the earliest.
        self.registers.write(radio::TASKS_START, 1);
        let seen = match len.filter(|_| good) {
            Some(len) => Seen::Received {
                len,
                started,
                power: self.power,
            },
            None => Seen::Failed(Failure {
                started,
                mode: Some(MODE),
            }),
        };
        Some((at, seen))
    }

    fn begin_frame(&mut self) {
        let started = self.captured(channel::BEGAN).saturating_before(HEADER);
        self.arriving = Some((started, false));
        self.power = self.energy();
    }

    /// The length of the arriving frame without its check sequence, if it is possible.
    fn length(&self) -> Option<usize> {
        let mut first = [0];
        self.registers.load(Buffer::Receive, 0, &mut first);
        let len = usize::from(first[0]);
        (PSDU_MIN..=PSDU_MAX).contains(&len).then(|| len - FCS_LEN)
    }

    /// Reports the channel's state if it has changed.
    fn look(&mut self, now: Instant) -> Option<(Instant, Seen)> {
        if !self.sensing || self.look_at.is_none_or(|at| now < at) {
            return None;
        }
        self.look_at = Some(now + LOOK);
        self.set_compare();
        let receives = self.state == State::Receiving;
        // Until it has ramped up, the receiver measures nothing: the next look will tell.
        let ready = receives && self.registers.read(radio::EVENTS_RXREADY) != 0;
        let busy = match self.state {
            State::Sending => true,
            _ if self.arriving.is_some() => true,
            _ if ready => self.energy().0 >= self.config.busy_from.0,
            _ => return None,
        };
        if self.busy == Some(busy) {
            return None;
        }
        self.busy = Some(busy);
        Some((now, Seen::Carrier { busy }))
    }

    /// The power at the antenna now. The measurement takes 0.25 us (PS: t_RSSI,SETTLE).
    fn energy(&mut self) -> Dbm {
        self.registers.write(radio::TASKS_RSSISTART, 1);
        let sample = self.registers.read(radio::RSSISAMPLE);
        Dbm(-f64::from(sample))
    }

    fn transmit(&mut self, transmit: Transmit, psdu: &[u8]) {
        let len = transmit.len + FCS_LEN;
        let Some(octets) = psdu.get(..transmit.len).filter(|_| len <= PSDU_MAX) else {
            self.refused = self.refused.wrapping_add(1);
            return;
        };
        self.cancel();
        // What the radio may be reading is the other one's.
        let free = self.free();
        self.registers.store(free, 0, &[len as u8]);
        self.registers.store(free, 1, octets);
        self.waiting = Some(transmit);
        let now = self.now();
        match transmit.at <= now + LEAD {
            true => self.arm(now),
            false => self.set_compare(),
        }
    }

    /// The buffer for the next frame.
    fn free(&self) -> Buffer {
        match self.armed {
            Buffer::Transmit => Buffer::Next,
            _ => Buffer::Transmit,
        }
    }

    /// Gives the start of the waiting frame to the hardware.
    fn arm(&mut self, now: Instant) {
        let Some(transmit) = self.waiting else { return };
        let power = transmit.power.unwrap_or(self.config.power);
        let level = setup::tx_power(power);
        if self.state == State::Sending {
            return self.follow(now, transmit, level);
        }
        let at = transmit.at;
        self.waiting = None;
        let lingers = self.state == State::Lingering;
        self.arriving = None;
        self.write_shorts(short::TXREADY_START);
        self.clear_events();
        self.set_level(level);
        self.point();
        let (ahead, by) = match lingers {
            true => (Duration::ZERO, channel::START_BY_TIMER),
            false => (RAMP, channel::ENABLE_BY_TIMER),
        };
        let start = at.saturating_before(ahead);
        if start > now + SOON {
            if self.state == State::Receiving {
                self.registers.write(radio::TASKS_DISABLE, 1);
            }
            self.start_by_timer(start, by);
            self.begins = at;
        } else {
            match self.state {
                State::Receiving => {
                    self.write_shorts(short::TXREADY_START | short::DISABLED_TXEN);
                    self.registers.write(radio::TASKS_DISABLE, 1);
                }
                State::Lingering => self.registers.write(radio::TASKS_START, 1),
                State::Off | State::Sending => self.registers.write(radio::TASKS_TXEN, 1),
            }
            self.begins = now + ahead;
        }
        self.state = State::Sending;
        self.set_compare();
    }

    /// Arms the waiting frame while another one is on the air: the timer starts it, whenever the processor hears of the end
    /// of the other one. If that is not possible it waits for that end.
    fn follow(&mut self, now: Instant, transmit: Transmit, level: u32) {
        let begun = now >= self.begins + SOON;
        let in_time = transmit.at > now + SOON;
        // The power would change in the middle of the other frame.
        if self.follows || !begun || !in_time || level != self.level {
            return;
        }
        self.waiting = None;
        self.follows = true;
        // The radio has read the address of the present frame's buffer at its start.
        self.point();
        self.start_by_timer(transmit.at, channel::START_BY_TIMER);
        self.begins = transmit.at;
        self.set_compare();
    }

    /// Takes the free buffer for the frame that is armed now.
    fn point(&mut self) {
        self.armed = self.free();
        let pointer = self.registers.address(self.armed);
        self.registers.write(radio::PACKETPTR, pointer);
    }

    /// The timer starts a frame, by one channel of PPI alone.
    fn start_by_timer(&mut self, start: Instant, by: u32) {
        self.disarm();
        let ticks = self.time.timer_at(start);
        self.registers.write(timer::cc(channel::START), ticks);
        self.registers.write(PPI_CHENSET, 1 << by);
    }

    /// The timer starts nothing.
    fn disarm(&mut self) {
        let armed = 1 << channel::ENABLE_BY_TIMER | 1 << channel::START_BY_TIMER;
        self.registers.write(PPI_CHENCLR, armed);
    }

    fn set_level(&mut self, level: u32) {
        if level != self.level {
            self.level = level;
            self.registers.write(radio::TXPOWER, level);
        }
    }

    /// Takes back a frame that has not started.
    fn cancel(&mut self) {
        self.waiting = None;
        if self.state != State::Sending {
            return self.disarm();
        }
        // A frame that is on the air, or will be before a register is written, goes on.
        if self.now() + SOON >= self.begins {
            return;
        }
        self.disarm();
        match core::mem::take(&mut self.follows) {
            // The buffer of the frame on the air stays its own.
            true => self.armed = self.free(),
            false => {
                self.state = State::Lingering;
                self.settle();
            }
        }
    }

    /// Receives, from any state.
    fn listen(&mut self) {
        let was_off = self.state == State::Off;
        self.state = State::Receiving;
        self.arriving = None;
        let pointer = self.registers.address(Buffer::Receive);
        self.registers.write(radio::PACKETPTR, pointer);
        self.clear_events();
        match was_off {
            true => {
                self.write_shorts(RECEIVE);
                self.registers.write(radio::TASKS_RXEN, 1);
            }
            false => {
                self.write_shorts(RECEIVE | short::DISABLED_RXEN);
                self.registers.write(radio::TASKS_DISABLE, 1);
            }
        }
    }

    fn turn_off(&mut self) {
        self.state = State::Off;
        self.arriving = None;
        self.write_shorts(0);
        self.registers.write(radio::TASKS_DISABLE, 1);
    }

    fn write_shorts(&mut self, shorts: u32) {
        self.registers.write(radio::SHORTS, shorts);
    }

    /// Forgets events of what the radio did before.
    fn clear_events(&mut self) {
        let events = [
            radio::EVENTS_END,
            radio::EVENTS_BCMATCH,
            radio::EVENTS_FRAMESTART,
            radio::EVENTS_TXREADY,
            radio::EVENTS_RXREADY,
            radio::EVENTS_PHYEND,
        ];
        for event in events {
            self.registers.write(event, 0);
        }
    }

    /// Reads an event and clears it.
    fn take(&mut self, event: u32) -> bool {
        let happened = self.registers.read(event) != 0;
        if happened {
            self.registers.write(event, 0);
        }
        happened
    }

    fn captured(&mut self, channel: u32) -> Instant {
        let ticks = self.registers.read(timer::cc(channel));
        self.time.at(ticks)
    }

    /// Sets the alarm to the earliest of what is due.
    fn set_compare(&mut self) {
        let prepare = self.waiting.map(|one| one.at.saturating_before(LEAD));
        let due = [prepare, self.look_at, self.alarm];
        let now = self.now();
        // At least one interrupt in a hundred seconds, so that the timer's wrap is seen.
        let latest = now + Time::SPAN;
        let earliest = due.into_iter().flatten().min().unwrap_or(latest);
        let at = earliest.min(latest).max(now + SOON);
        let ticks = self.time.timer_at(at);
        self.registers.write(timer::cc(channel::ALARM), ticks);
    }
}

/// While receiving: begin as soon as ramped up, and count a frame's bits from its length octet on.
const RECEIVE: u32 = short::RXREADY_START | short::FRAMESTART_BCSTART;
/// What interrupts the processor.
const INTERRUPTS: u32 = interrupt::END
    | interrupt::BCMATCH
    | interrupt::FRAMESTART
    | interrupt::RXREADY
    | interrupt::PHYEND;
