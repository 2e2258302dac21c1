//! The driver: one node, one socket, one thread, one wait.

use std::ops::ControlFlow;

use chappe_core::{
    Address, Arrival, Class, DropReason, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome,
    Purpose, Seed, TraceEvent,
};
use chappe_sys::{Clock, Endpoint, Error, EventLoop, Ready, Received, Result, Signal, Socket};

use crate::confirm::{Outstanding, Retries};
use crate::frame::{EPOCH, HEADER, Header, Kind, TAG};
use crate::hello::{Hellos, Schedule};
use crate::loss::Loss;
use crate::neighbours::{Greeting, Neighbours};
use crate::pace::{Pace, Pacer};
use crate::port::Port;
use crate::queue::{Place, Queue, Target};
use crate::seal::{GroupKey, Novelty, Sealer};
use crate::statistics::Statistics;

/// How to drive a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The key of the group, with which every frame is sealed.
    pub key: GroupKey,
    /// When hellos leave.
    pub hellos: Hellos,
    /// What limits the frames that leave.
    pub pace: Pace,
    /// How often unicast frames are sent again.
    pub retries: Retries,
    /// Frames to lose on purpose. Default none.
    pub loss: Option<Loss>,
    /// Whether SIGINT and SIGTERM end the run in good order. Default yes.
    pub signals: bool,
    /// The application is called at least this often. Default 250 ms.
    pub observe_every: Duration,
}

impl Config {
    /// The defaults, and a pace: there is no good one for all links. There is no mode without a key.
    pub fn new(pace: Pace, key: GroupKey) -> Config {
        Config {
            key,
            hellos: Hellos::default(),
            pace,
            retries: Retries::default(),
            loss: None,
            signals: true,
            observe_every: Duration::from_millis(250),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The application asked for it.
    Asked,
    /// A signal did.
    Signal(Signal),
}

/// A node on a real interface.
///
/// The driver's rule holds: after each input the node is drained as far as the pace and the socket allow, and then
/// its deadline is read. What cannot leave stays in the node, which makes it anew when its turn comes.
pub struct Live<N: LinkNode + ?Sized> {
    ends: Vec<End>,
    me: u16,
    frame_max: usize,
    sealer: Sealer,
    schedule: Schedule,
    /// The number of the latest unicast frame.
    number: u32,
    /// When the node sent its latest broadcast.
    broadcast_at: Option<Instant>,
    clock: Clock,
    events: EventLoop,
    pacer: Pacer,
    neighbours: Neighbours,
    outstanding: Outstanding,
    queue: Queue,
    /// Whether the node, asked last, had no frame although it had said so.
    declined: bool,
    loss: Option<Loss>,
    statistics: Statistics,
    /// Where frames are decrypted.
    scratch: Vec<u8>,
    /// When the neighbours were counted for the application.
    observed: Option<Instant>,
    observe_every: Duration,
    trace: Option<TraceSink>,
    node: Box<N>,
}

/// One interface.
struct End {
    socket: Socket,
    everybody: Endpoint,
    /// No frame goes to the kernel before this: it had no room, or the interface is down.
    held_until: Instant,
    /// Whether the event loop waits for room in the kernel's queue.
    blocked: bool,
}

type TraceSink = Box<dyn FnMut(Instant, TraceEvent) + Send>;

/// Most ports of one node.
pub const PORTS_MAX: usize = 32;
/// Octets of Ethernet's header, which count in a rate.
const ETHERNET: usize = 14;
/// Octets of a confirmation: the frame's number and the epoch of its sender.
const CONFIRMATION: usize = 12;
/// A node that has sent no broadcast for so long is silent.
const SILENT: Duration = Duration::from_secs(1);
/// Batches that are received, or sent, before the other direction has its turn.
const TURN: usize = 4;
/// The pause after the kernel ran out of buffers, and after the interface was down.
const NO_BUFFERS: Duration = Duration::from_millis(1);
const DOWN: Duration = Duration::from_millis(100);

impl<N: LinkNode + ?Sized> Live<N> {
    /// Puts `node` on `port`. The node's clock starts now.
    pub fn new(config: Config, port: Port, node: Box<N>) -> Result<Live<N>> {
        Live::on(config, vec![port], node)
    }

    /// Puts `node` on several ports at once: broadcasts leave on each of them, unicasts where the neighbour was heard.
    /// The pace is that of one port, so each gets as much. All ports must have been opened with one address.
    pub fn on(config: Config, ports: Vec<Port>, node: Box<N>) -> Result<Live<N>> {
        let address = ports.first().map(Port::address);
        let one = |port: &Port| Some(port.address()) == address;
        if ports.is_empty() || ports.len() > PORTS_MAX || !ports.iter().all(one) {
            let why = "1 to 32 ports of one address are needed";
            return Err(Error::invalid("drive a node", why));
        }
        let epoch = chappe_sys::random_u64()?;
        // One seed for challenges and another for times: what is seen of the latter tells nothing of the former.
        let secret = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(0));
        let times = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(0));
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        if config.signals {
            events.watch_signals()?;
        }
        for (token, port) in (0..).zip(&ports) {
            events.add(&port.socket, token)?;
        }
        let frame_max = ports.iter().map(Port::frame_max).min().unwrap_or(0);
        let overhead = ports.iter().map(|port| port.overhead).max().unwrap_or(0);
        let me = address.and_then(Address::node_number).unwrap_or_default();
        let end = |port: Port| End {
            socket: port.socket,
            everybody: port.everybody,
            held_until: Instant::ZERO,
            blocked: false,
        };
        Ok(Live {
            sealer: Sealer::new(&config.key, me, epoch),
            schedule: Schedule::new(config.hellos, times),
            number: 0,
            broadcast_at: None,
            scratch: vec![0; HEADER + EPOCH + frame_max + TAG],
            pacer: Pacer::new(config.pace, overhead + ETHERNET),
            queue: Queue::new(frame_max, ports.len()),
            ends: ports.into_iter().map(end).collect(),
            me,
            frame_max,
            clock,
            events,
            neighbours: Neighbours::new(config.key, me, secret),
            outstanding: Outstanding::new(config.retries),
            declined: false,
            loss: config.loss,
            statistics: Statistics {
                life: epoch,
                ..Statistics::default()
            },
            observed: None,
            observe_every: config.observe_every,
            trace: None,
            node,
        })
    }

    /// Hands each trace event of the node to `sink`.
    pub fn on_trace(&mut self, sink: impl FnMut(Instant, TraceEvent) + Send + 'static) {
        self.trace = Some(Box::new(sink));
    }

    /// The node.
    pub fn node(&mut self) -> &mut N {
        &mut self.node
    }

    /// The node, when all is over.
    pub fn into_node(self) -> Box<N> {
        self.node
    }

    /// What the driver has done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Drives the node until `observe` breaks or a signal comes. `observe` is called after each wake-up, before the
    /// node is drained, so it may offer it data.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut N, Instant, &Statistics) -> ControlFlow<()>,
    ) -> Result<Ending> {
        let mut received = Received::new(HEADER + EPOCH + self.frame_max + TAG);
        let mut ready = Vec::new();
        loop {
            let now = self.clock.now();
            self.count_neighbours(now);
            if observe(&mut self.node, now, &self.statistics).is_break() {
                return Ok(Ending::Asked);
            }
            self.meet_deadlines();
            self.serve()?;
            self.wait(now, &mut ready)?;
            for event in ready.drain(..) {
                match event {
                    Ready::Readable(end) => self.receive(end as usize, &mut received)?,
                    Ready::Writable(end) => self.unblock(end as usize)?,
                    Ready::Deadline => {}
                    Ready::Signal(signal) => return Ok(Ending::Signal(signal)),
                }
            }
        }
    }

    fn count_neighbours(&mut self, now: Instant) {
        let due = |last: Instant| now >= last + self.observe_every;
        if self.observed.is_none_or(due) {
            self.observed = Some(now);
            let seen = &mut self.statistics.neighbours;
            seen.clear();
            seen.extend(self.neighbours.iter(now));
        }
    }

    /// Waits for the next event, the next deadline, or the application's turn.
    fn wait(&mut self, now: Instant, ready: &mut Vec<Ready>) -> Result<()> {
        let node = self.node.poll_timeout().map(|wake| wake.at);
        let asks = !self.declined && !self.queue.is_full() && !self.may_ask().is_empty();
        // While the kernel's queue is full, the event loop tells when that ends.
        let open = || self.ends.iter().enumerate().filter(|(_, end)| !end.blocked);
        let held = open().map(|(_, end)| end.held_until).min();
        let ask = held
            .filter(|_| asks)
            .map(|held| held.max(self.pacer.free_at()));
        let waiting = open().filter(|(port, _)| self.queue.waits_for(*port));
        let send = waiting.map(|(_, end)| end.held_until).min();
        let hello = held.map(|held| held.max(self.schedule.next()));
        let observe = now + self.observe_every;
        let times = [node, ask, send, hello, self.outstanding.deadline()];
        let at = times.into_iter().flatten().fold(observe, Instant::min);
        self.events.set_deadline(Some(at))?;
        self.events.wait(ready)
    }

    /// The node's deadline, and those of unicast frames.
    fn meet_deadlines(&mut self) {
        let now = self.clock.now();
        if let Some(wake) = self.node.poll_timeout().filter(|wake| wake.at <= now) {
            let late = now.saturating_since(wake.at);
            self.statistics.latest = self.statistics.latest.max(late);
        }
        // Also when nothing is due: the application may have changed the node.
        self.node.handle_timeout(now);
        self.drain_trace(now);
        while let Some((token, attempts)) = self.outstanding.given_up(now) {
            self.statistics.given_up += 1;
            self.tell(now, token, Outcome::Failed { attempts });
        }
        self.send_again(now);
    }

    fn send_again(&mut self, now: Instant) {
        // Counts an attempt only if there is room to make it.
        while let Some(slot) = self.queue.vacant() {
            let Some(waiting) = self.outstanding.again(now) else {
                return;
            };
            let len = waiting.sdu.len();
            let attempt = (waiting.number, waiting.attempts);
            slot.frame[HEADER..HEADER + len].copy_from_slice(&waiting.sdu);
            let sealed = self
                .sealer
                .seal_unicast(waiting.to, attempt, len, &mut slot.frame);
            let Some(len) = sealed else { return };
            slot.len = len;
            let place = self.neighbours.endpoint(waiting.to);
            slot.to = place.map_or(Target::Everybody, Target::One);
            (slot.class, slot.broadcast) = (waiting.class, None);
            self.queue.push();
            self.pacer.spend(now, len, None);
            self.statistics.retries += 1;
        }
    }

    /// Says hello, if it is time. While the node is silent a hello is as long as its data would be, since neighbours
    /// measure by it how well they hear.
    fn greet(&mut self, now: Instant) {
        if self.schedule.next() > now {
            return;
        }
        let Some(slot) = self.queue.vacant() else {
            return;
        };
        let clear = Kind::Hello.clear();
        let room = self.frame_max.saturating_sub(EPOCH);
        let Some(body) = slot.frame.get_mut(clear..clear + room) else {
            return;
        };
        let len = self.neighbours.write_hello(now, body);
        let silent = |last: Instant| now.saturating_since(last) > SILENT;
        let len = match self.broadcast_at.is_none_or(silent) {
            true => {
                body[len..].fill(0);
                room
            }
            false => len,
        };
        if let Some(len) = self.sealer.seal(Kind::Hello, len, &mut slot.frame) {
            (slot.len, slot.to) = (len, Target::Everybody);
            (slot.class, slot.broadcast) = (Class::Control, None);
            self.queue.push();
            self.pacer.spend(now, len, None);
            self.statistics.hellos_sent += 1;
        }
        self.schedule.left(now);
    }

    /// Asks the node for frames and gives them to the kernel, as long as pace and kernel allow.
    fn serve(&mut self) -> Result<()> {
        self.declined = false;
        for _ in 0..TURN {
            let now = self.clock.now();
            if self.ends.iter().all(|end| end.is_shut(now)) {
                return Ok(());
            }
            self.greet(now);
            self.fill(now);
            if self.queue.is_empty() {
                return Ok(());
            }
            self.flush(now)?;
        }
        Ok(())
    }

    /// The classes in which the node has a frame that may be asked for.
    fn may_ask(&self) -> chappe_core::Classes {
        self.node.pending().and(self.outstanding.allowed())
    }

    fn fill(&mut self, now: Instant) {
        while self.pacer.free_at() <= now {
            let allowed = self.may_ask();
            let Some(slot) = self.queue.vacant().filter(|_| !allowed.is_empty()) else {
                return;
            };
            let Some(sdu) = slot.frame.get_mut(HEADER..) else {
                return;
            };
            let Some(send) = self.node.poll_link(now, allowed, sdu) else {
                self.declined = true;
                return;
            };
            self.drain_trace(now);
            self.enqueue(now, send);
        }
    }

    /// Finishes the frame whose SDU the node has just written.
    fn enqueue(&mut self, now: Instant, send: LinkSend) {
        let Some(slot) = self.queue.vacant() else {
            return;
        };
        let sealed = match send.to.node_number() {
            _ if send.len > self.frame_max => None,
            _ if send.to.is_broadcast() => {
                let sealed = self.sealer.seal(Kind::Broadcast, send.len, &mut slot.frame);
                (slot.to, slot.broadcast) = (Target::Everybody, Some(send.token));
                self.broadcast_at = Some(now);
                sealed
            }
            Some(to) if self.number < u32::MAX => {
                self.number += 1;
                let (number, attempt) = (self.number, 1);
                let sdu = &slot.frame[HEADER..HEADER + send.len];
                self.outstanding
                    .add(now, number, to, (send.token, send.class), sdu);
                slot.broadcast = None;
                // Never heard: everybody gets it, and all but one drop it.
                let place = self.neighbours.endpoint(to);
                slot.to = place.map_or(Target::Everybody, Target::One);
                self.sealer
                    .seal_unicast(to, (number, attempt), send.len, &mut slot.frame)
            }
            _ => None,
        };
        let Some(len) = sealed else {
            // More octets than there was room for, or an address that is no node's.
            self.statistics.drops.count(DropReason::Malformed);
            return self.tell(now, send.token, Outcome::Failed { attempts: 0 });
        };
        (slot.len, slot.class) = (len, send.class);
        self.pacer.spend(now, len, send.mode);
        self.queue.push();
    }

    /// Hands to the kernel what waits, on each port.
    fn flush(&mut self, now: Instant) -> Result<()> {
        for port in 0..self.ends.len() {
            let Some(end) = self.ends.get_mut(port).filter(|end| !end.is_shut(now)) else {
                continue;
            };
            if !self.queue.waits_for(port) {
                continue;
            }
            match self.queue.flush(port, &mut end.socket, end.everybody) {
                Ok(0) => {
                    self.statistics.queue_full += 1;
                    end.blocked = true;
                    self.events.want_write(&end.socket, port as u64, true)?;
                }
                Ok(_) => {}
                Err(error) => self.refused(now, port, error)?,
            }
        }
        while let Some(slot) = self.queue.first().filter(|slot| slot.waits == 0) {
            let (token, octets, taken) = (slot.broadcast, slot.len as u64, slot.taken);
            self.queue.pop();
            let outcome = match taken {
                true => {
                    self.statistics.frames_sent += 1;
                    self.statistics.octets_sent += octets;
                    Outcome::Unconfirmed
                }
                false => Outcome::Failed { attempts: 1 },
            };
            if let Some(token) = token {
                self.tell(now, token, outcome);
            }
        }
        Ok(())
    }

    /// The kernel will not have the first frame for a port.
    fn refused(&mut self, now: Instant, port: usize, error: Error) -> Result<()> {
        let Some(end) = self.ends.get_mut(port) else {
            return Ok(());
        };
        if error.is_out_of_buffers() {
            self.statistics.queue_full += 1;
            end.held_until = now + NO_BUFFERS;
            return Ok(());
        }
        if error.is_gone() {
            return Err(error);
        }
        self.statistics.refused += 1;
        self.statistics.last_refusal = Some(error.to_string());
        if error.is_down() {
            end.held_until = now + DOWN;
        }
        // What waits for an interface that is down must not hold up the others.
        self.queue
            .give_up(port, error.is_down() && self.ends.len() > 1);
        Ok(())
    }

    fn unblock(&mut self, port: usize) -> Result<()> {
        if let Some(end) = self.ends.get_mut(port).filter(|end| end.blocked) {
            end.blocked = false;
            self.events.want_write(&end.socket, port as u64, false)?;
        }
        Ok(())
    }

    fn receive(&mut self, port: usize, received: &mut Received) -> Result<()> {
        for _ in 0..TURN {
            let Some(end) = self.ends.get(port) else {
                return Ok(());
            };
            match end.socket.receive(received) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.is_gone() => return Err(error),
                // The interface went down, or an ICMP message came back. The loop goes on; sending tells more.
                Err(_) => {
                    self.statistics.receive_errors += 1;
                    return Ok(());
                }
            }
            for frame in received.iter() {
                match frame.and_then(|(at, frame)| Some((at, frame, Header::parse(frame)?))) {
                    Some((at, frame, header)) => {
                        self.on_frame(Place { port, at }, header, frame);
                    }
                    None => self.statistics.drops.count(DropReason::Malformed),
                }
                self.serve()?;
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, at: Place, header: Header, frame: &[u8]) {
        let now = self.clock.now();
        let from = Address::node(header.from);
        if header.from == self.me && header.epoch == self.sealer.epoch() as u16 {
            self.statistics.echoes += 1;
            return;
        }
        if self.loss.as_mut().is_some_and(|loss| loss.takes(from)) {
            self.statistics.injected_losses += 1;
            return;
        }
        let len = header.frame_len();
        let mut scratch = std::mem::take(&mut self.scratch);
        if let (Some(place), Some(frame)) = (scratch.get_mut(..len), frame.get(..len)) {
            place.copy_from_slice(frame);
            let taken = self.take(now, at, &header, place);
            match taken {
                Ok(()) => self.statistics.octets_received += len as u64,
                Err(why) => self.statistics.drops.count(why),
            }
        } else {
            self.statistics.drops.count(DropReason::Malformed);
        }
        self.scratch = scratch;
    }

    /// Opens a frame and does what it asks for, or says why not.
    fn take(
        &mut self,
        now: Instant,
        at: Place,
        header: &Header,
        frame: &mut [u8],
    ) -> std::result::Result<(), DropReason> {
        let from = Address::node(header.from);
        if header.kind == Kind::Hello {
            return self.on_hello(now, at, header, frame);
        }
        let for_all = header.kind == Kind::Broadcast;
        if !for_all && header.to != self.me {
            return Err(DropReason::NotForUs);
        }
        if header.from == self.me {
            return Err(DropReason::Stale);
        }
        let (sdu, novelty) = self.neighbours.open(now, at, header, frame)?;
        let arrival = |to| Arrival {
            from,
            to,
            sdu,
            power: None,
        };
        match header.kind {
            Kind::Broadcast if novelty == Novelty::New => {
                self.hand_up(now, arrival(Address::BROADCAST));
            }
            Kind::Broadcast => return Err(DropReason::Duplicate),
            Kind::Unicast => {
                let number = (header.counter >> 8) as u32;
                match self.neighbours.note(header.from, number) {
                    Novelty::New => {
                        self.confirm(now, at, header.from, number);
                        self.hand_up(now, arrival(Address::node(self.me)));
                    }
                    Novelty::Seen => {
                        self.confirm(now, at, header.from, number);
                        return Err(DropReason::Duplicate);
                    }
                    // Not confirmed: nobody knows whether the node has had it.
                    Novelty::Forgotten => return Err(DropReason::Stale),
                }
            }
            Kind::Confirmation | Kind::Hello => {
                let number = sdu.first_chunk().map(|number| u32::from_be_bytes(*number));
                let epoch = sdu.last_chunk().map(|epoch| u64::from_be_bytes(*epoch));
                if sdu.len() != CONFIRMATION || epoch != Some(self.sealer.epoch()) {
                    return Err(DropReason::Stale);
                }
                self.on_confirmation(now, header.from, number.unwrap_or(0));
            }
        }
        Ok(())
    }

    fn on_hello(
        &mut self,
        now: Instant,
        at: Place,
        header: &Header,
        frame: &mut [u8],
    ) -> std::result::Result<(), DropReason> {
        match self.neighbours.hello(now, at, header, frame) {
            Greeting::Dropped(why) => Err(why),
            Greeting::Known => Ok(()),
            Greeting::Unproved => {
                self.statistics.unproved += 1;
                self.schedule.hurry();
                Ok(())
            }
            Greeting::Proved { .. } => {
                self.statistics.address_conflicts += u64::from(header.from == self.me);
                // It does not know yet that we are alive.
                self.schedule.hurry();
                Ok(())
            }
        }
    }

    fn hand_up(&mut self, now: Instant, arrival: Arrival<'_>) {
        self.statistics.frames_received += 1;
        self.node.handle_link(now, LinkEvent::Received(arrival));
        self.drain_trace(now);
    }

    fn on_confirmation(&mut self, now: Instant, from: u16, number: u32) {
        match self.outstanding.confirmed(from, number) {
            Some((token, attempts)) => {
                self.statistics.confirmed += 1;
                self.tell(now, token, Outcome::Acknowledged { attempts });
            }
            None => self.statistics.drops.count(DropReason::Duplicate),
        }
    }

    /// Confirms a unicast frame at once, without waiting for the pace: its sender waits.
    fn confirm(&mut self, now: Instant, at: Place, from: u16, number: u32) {
        let Some(epoch) = self.neighbours.life(from) else {
            return;
        };
        let Some(slot) = self.queue.vacant() else {
            return self.statistics.drops.count(DropReason::QueueFull);
        };
        let body = &mut slot.frame[HEADER..HEADER + CONFIRMATION];
        body[..4].copy_from_slice(&number.to_be_bytes());
        body[4..].copy_from_slice(&epoch.to_be_bytes());
        let sealed = self
            .sealer
            .seal_confirmation(from, CONFIRMATION, &mut slot.frame);
        if let Some(len) = sealed {
            (slot.len, slot.to) = (len, Target::One(at));
            (slot.class, slot.broadcast) = (Class::Control, None);
            self.queue.push();
            self.pacer.spend(now, len, None);
            self.statistics.confirmations_sent += 1;
        }
    }

    fn tell(&mut self, now: Instant, token: u32, outcome: Outcome) {
        self.node
            .handle_link(now, LinkEvent::Sent { token, outcome });
        self.drain_trace(now);
    }

    fn drain_trace(&mut self, now: Instant) {
        while let Some(event) = self.node.poll_trace() {
            if let Some(sink) = &mut self.trace {
                sink(now, event);
            }
        }
    }
}

impl End {
    /// Whether it takes no frame now.
    fn is_shut(&self, now: Instant) -> bool {
        self.blocked || now < self.held_until
    }
}
