//! The driver: one node, one socket, one thread, one wait.

use std::ops::ControlFlow;

use chappe_core::{
    Address, Arrival, Class, Drop, Duration, Instant, LinkEvent, LinkNode, LinkSend, Outcome,
    TraceEvent,
};
use chappe_sys::{Clock, Endpoint, EventLoop, Ready, Received, Result, Signal, Socket};

use crate::confirm::{Outstanding, Retries};
use crate::frame::{HEADER, Header, Kind};
use crate::loss::Loss;
use crate::neighbours::{Neighbours, Novelty};
use crate::pace::{Pace, Pacer};
use crate::port::Port;
use crate::queue::Queue;
use crate::statistics::Statistics;

/// How to drive a node.
#[derive(Clone, Debug)]
pub struct Config {
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
    /// The defaults, and a pace: there is no good one for all links.
    pub fn new(pace: Pace) -> Config {
        Config {
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
    socket: Socket,
    everybody: Endpoint,
    me: Address,
    frame_max: usize,
    epoch: u32,
    /// The number of the next unicast frame.
    number: u32,
    clock: Clock,
    events: EventLoop,
    pacer: Pacer,
    neighbours: Neighbours,
    outstanding: Outstanding,
    queue: Queue,
    /// No frame goes to the kernel before this: it had no room, or the interface is down.
    held_until: Instant,
    /// Whether the node, asked last, had no frame although it had said so.
    declined: bool,
    /// Whether the event loop waits for room in the kernel's queue.
    blocked: bool,
    loss: Option<Loss>,
    statistics: Statistics,
    observe_every: Duration,
    trace: Option<TraceSink>,
    node: Box<N>,
}

type TraceSink = Box<dyn FnMut(Instant, TraceEvent) + Send>;

/// The socket's token in the event loop.
const SOCKET: u64 = 0;
/// Batches that are received, or sent, before the other direction has its turn.
const TURN: usize = 4;
/// The pause after the kernel ran out of buffers, and after the interface was down.
const NO_BUFFERS: Duration = Duration::from_millis(1);
const DOWN: Duration = Duration::from_millis(100);

impl<N: LinkNode + ?Sized> Live<N> {
    /// Puts `node` on `port`. The node's clock starts now.
    pub fn new(config: Config, port: Port, node: Box<N>) -> Result<Live<N>> {
        let random = chappe_sys::random_u64()?;
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        if config.signals {
            events.watch_signals()?;
        }
        events.add(&port.socket, SOCKET)?;
        let (frame_max, me) = (port.frame_max(), port.address());
        Ok(Live {
            epoch: random as u32,
            number: (random >> 32) as u32,
            pacer: Pacer::new(config.pace, port.overhead),
            queue: Queue::new(frame_max, port.everybody),
            socket: port.socket,
            everybody: port.everybody,
            me,
            frame_max,
            clock,
            events,
            neighbours: Neighbours::default(),
            outstanding: Outstanding::new(config.retries),
            held_until: Instant::ZERO,
            declined: false,
            blocked: false,
            loss: config.loss,
            statistics: Statistics::default(),
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

    /// The neighbours that have been heard, and when each was heard last.
    pub fn neighbours(&self) -> impl Iterator<Item = (Address, Instant)> + '_ {
        self.neighbours.iter()
    }

    /// Drives the node until `observe` breaks or a signal comes. `observe` is called after each wake-up, before the
    /// node is drained, so it may offer it data.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut N, Instant, &Statistics) -> ControlFlow<()>,
    ) -> Result<Ending> {
        let mut received = Received::new(HEADER + self.frame_max);
        let mut ready = Vec::new();
        loop {
            let now = self.clock.now();
            if observe(&mut self.node, now, &self.statistics).is_break() {
                return Ok(Ending::Asked);
            }
            self.meet_deadlines();
            self.serve()?;
            self.wait(now, &mut ready)?;
            for event in ready.drain(..) {
                match event {
                    Ready::Readable(_) => self.receive(&mut received)?,
                    Ready::Writable(_) => self.unblock()?,
                    Ready::Deadline => {}
                    Ready::Signal(signal) => return Ok(Ending::Signal(signal)),
                }
            }
        }
    }

    /// Waits for the next event, the next deadline, or the application's turn.
    fn wait(&mut self, now: Instant, ready: &mut Vec<Ready>) -> Result<()> {
        let node = self.node.poll_timeout().map(|wake| wake.at);
        let asks = !self.declined && !self.may_ask().is_empty();
        let wants = asks || !self.queue.is_empty();
        // While the kernel's queue is full, the event loop tells when that ends.
        let send = (wants && !self.blocked).then(|| match self.queue.is_empty() {
            true => self.pacer.free_at().max(self.held_until),
            false => self.held_until,
        });
        let observe = now + self.observe_every;
        let times = [node, send, self.outstanding.deadline()];
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
            let len = waiting.frame.len();
            slot.frame[..len].copy_from_slice(&waiting.frame);
            slot.len = len;
            slot.to = self
                .neighbours
                .endpoint(waiting.to)
                .unwrap_or(self.everybody);
            (slot.class, slot.broadcast) = (waiting.class, None);
            self.queue.push();
            self.pacer.spend(now, len, None);
            self.statistics.retries += 1;
        }
    }

    /// Asks the node for frames and gives them to the kernel, as long as pace and kernel allow.
    fn serve(&mut self) -> Result<()> {
        self.declined = false;
        for _ in 0..TURN {
            let now = self.clock.now();
            if self.blocked || now < self.held_until {
                return Ok(());
            }
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
        let broadcast = send.to.is_broadcast();
        let (kind, number) = match broadcast {
            true => (Kind::Broadcast, 0),
            false => (Kind::Unicast, self.number),
        };
        let (from, to, epoch) = (self.me, send.to, self.epoch);
        let header = Header {
            kind,
            from,
            to,
            epoch,
            number,
        };
        if !header.emit(send.len, &mut slot.frame) {
            // A node that claims more octets than it was given room for.
            self.statistics.drops.count(Drop::Malformed);
            return self.tell(now, send.token, Outcome::Failed { attempts: 0 });
        }
        slot.len = HEADER + send.len;
        slot.class = send.class;
        slot.broadcast = broadcast.then_some(send.token);
        slot.to = match broadcast {
            true => self.everybody,
            // Never heard: everybody gets it, and all but one drop it.
            false => self.neighbours.endpoint(to).unwrap_or(self.everybody),
        };
        self.pacer.spend(now, slot.len, send.mode);
        if !broadcast {
            let frame = slot.frame.get(..slot.len).unwrap_or(&[]);
            self.outstanding
                .add(now, number, to, (send.token, send.class), frame);
            self.number = self.number.wrapping_add(1);
        }
        self.queue.push();
    }

    fn flush(&mut self, now: Instant) -> Result<()> {
        match self.queue.flush(&mut self.socket) {
            Ok(0) => {
                self.statistics.queue_full += 1;
                self.blocked = true;
                self.events.want_write(&self.socket, SOCKET, true)
            }
            Ok(taken) => {
                for _ in 0..taken {
                    self.left(now, Outcome::Unconfirmed);
                }
                Ok(())
            }
            Err(error) => self.refused(now, error),
        }
    }

    /// The first frame of the queue has left, or never will.
    fn left(&mut self, now: Instant, outcome: Outcome) {
        let Some(slot) = self.queue.first() else {
            return;
        };
        let (token, octets) = (slot.broadcast, slot.len as u64);
        self.queue.pop();
        if outcome == Outcome::Unconfirmed {
            self.statistics.frames_sent += 1;
            self.statistics.octets_sent += octets;
        }
        if let Some(token) = token {
            self.tell(now, token, outcome);
        }
    }

    /// The kernel will not have the first frame.
    fn refused(&mut self, now: Instant, error: chappe_sys::Error) -> Result<()> {
        if error.is_out_of_buffers() {
            self.statistics.queue_full += 1;
            self.held_until = now + NO_BUFFERS;
            return Ok(());
        }
        if error.is_gone() {
            return Err(error);
        }
        self.statistics.refused += 1;
        self.statistics.last_refusal = Some(error.to_string());
        if error.is_down() {
            self.held_until = now + DOWN;
        }
        self.left(now, Outcome::Failed { attempts: 1 });
        Ok(())
    }

    fn unblock(&mut self) -> Result<()> {
        if self.blocked {
            self.blocked = false;
            self.events.want_write(&self.socket, SOCKET, false)?;
        }
        Ok(())
    }

    fn receive(&mut self, received: &mut Received) -> Result<()> {
        for _ in 0..TURN {
            match self.socket.receive(received) {
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
                match frame.and_then(|(at, frame)| Some((at, Header::parse(frame)?))) {
                    Some((at, (header, sdu))) => self.on_frame(at, header, sdu),
                    None => self.statistics.drops.count(Drop::Malformed),
                }
                self.serve()?;
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, at: Endpoint, header: Header, sdu: &[u8]) {
        let now = self.clock.now();
        let Header {
            kind,
            from,
            to,
            epoch,
            number,
        } = header;
        if from == self.me {
            match epoch == self.epoch {
                true => self.statistics.echoes += 1,
                false => self.statistics.address_conflicts += 1,
            }
            return;
        }
        if self.loss.as_mut().is_some_and(|loss| loss.takes(from)) {
            self.statistics.injected_losses += 1;
            return;
        }
        self.statistics.octets_received += (HEADER + sdu.len()) as u64;
        self.neighbours.heard(now, from, at);
        match kind {
            _ if to != self.me && kind != Kind::Broadcast => {
                self.statistics.drops.count(Drop::NotForUs);
            }
            Kind::Confirmation if epoch == self.epoch => self.on_confirmation(now, from, number),
            Kind::Confirmation => self.statistics.drops.count(Drop::Stale),
            Kind::Broadcast => self.hand_up(
                now,
                Arrival {
                    from,
                    to,
                    sdu,
                    power: None,
                },
            ),
            Kind::Unicast => match self.neighbours.note(from, epoch, number) {
                Novelty::New => {
                    self.confirm(now, at, header);
                    self.hand_up(
                        now,
                        Arrival {
                            from,
                            to,
                            sdu,
                            power: None,
                        },
                    );
                }
                Novelty::Seen => {
                    self.statistics.drops.count(Drop::Duplicate);
                    self.confirm(now, at, header);
                }
                // Not confirmed: nobody knows whether the node has had it.
                Novelty::Forgotten => self.statistics.drops.count(Drop::Stale),
            },
        }
    }

    fn hand_up(&mut self, now: Instant, arrival: Arrival<'_>) {
        self.statistics.frames_received += 1;
        self.node.handle_link(now, LinkEvent::Received(arrival));
        self.drain_trace(now);
    }

    fn on_confirmation(&mut self, now: Instant, from: Address, number: u32) {
        match self.outstanding.confirmed(from, number) {
            Some((token, attempts)) => {
                self.statistics.confirmed += 1;
                self.tell(now, token, Outcome::Acknowledged { attempts });
            }
            None => self.statistics.drops.count(Drop::Duplicate),
        }
    }

    /// Confirms a unicast frame at once, without waiting for the pace: its sender waits.
    fn confirm(&mut self, now: Instant, at: Endpoint, header: Header) {
        let Some(slot) = self.queue.vacant() else {
            return self.statistics.drops.count(Drop::QueueFull);
        };
        let (from, to, kind) = (self.me, header.from, Kind::Confirmation);
        let reply = Header {
            kind,
            from,
            to,
            ..header
        };
        if reply.emit(0, &mut slot.frame) {
            (slot.len, slot.to) = (HEADER, at);
            (slot.class, slot.broadcast) = (Class::Control, None);
            self.queue.push();
            self.pacer.spend(now, HEADER, None);
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
