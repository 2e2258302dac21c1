//! The driver: one node, one socket, one thread, one wait.

mod hellos;
mod outgoing;
mod port_state;

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use chappe_core::{
    Address, Arrival, Bitrate, Class, DropReason, Duration, Instant, LinkEvent, LinkNode, LinkSend,
    Mode, Outcome, Purpose, Seed, TraceEvent,
};
use chappe_sys::{BATCH, Clock, Error, EventLoop, Ready, Received, Result};

use crate::config::{Config, Ending};
use crate::confirm::Outstanding;
use crate::echo::{ECHO, Ears, Echo};
use crate::exchange::{Progress, RENEW};
use crate::frame::{HEADER, Header, Kind, TAG, is_former};
use crate::hello::Schedule;
use crate::loss::Loss;
use crate::membership::Membership;
use crate::neighbours::{HelloOutcome, Neighbours};
use crate::notice;
use crate::pace::Pace;
use crate::port::Port;
use crate::presence::Presence;
use crate::queue::{Location, Queue, Target};
use crate::seal::{Novelty, Sealer, is_undamaged};
use crate::statistics::Statistics;
use outgoing::{Outgoing, Seal};
use port_state::PortState;

/// A link node on one or several network interfaces.
///
/// After each input the driver drains the node as far as the pace and the sockets allow, then reads its deadline. A
/// frame that cannot leave stays in the node, which builds it anew when its turn comes.
pub struct Live<N: LinkNode + ?Sized> {
    ports: Vec<PortState>,
    me: u16,
    /// Largest SDU that is sent on all ports, in octets, and that of the driver's own frames.
    frame_max: usize,
    own_max: usize,
    sealer: Sealer,
    schedule: Schedule,
    /// The rate of the channel, if all neighbours share it.
    shared: Option<Bitrate>,
    /// The number of the newest unicast frame.
    number: u32,
    /// When the node last sent a broadcast.
    broadcast_at: Option<Instant>,
    clock: Clock,
    presence: Presence,
    events: EventLoop,
    /// What is heard of the neighbours' broadcasts.
    ears: Ears,
    /// Whether neighbours get echoes of it: the pace is a rate, and theirs follow the echoes.
    echoes: bool,
    neighbours: Neighbours,
    /// When this node's key of broadcasts was last renewed.
    renewed: Instant,
    /// When another life last began because a copy of this process was heard.
    anew: Option<Instant>,
    /// The next piece of the list of members to be sent, if it is being sent, and when it may be sent again.
    notice: (Option<u16>, Instant),
    lists: notice::Inbox,
    outstanding: Outstanding,
    keys_as_broadcasts: bool,
    queue: Queue,
    /// Whether the node announced a frame and then had none: it is asked again only after the next input.
    declined: bool,
    loss: Option<Loss>,
    statistics: Statistics,
    /// Buffer in which received frames are decrypted; no frame is longer.
    scratch: Vec<u8>,
    /// When the neighbours in the statistics were last refreshed.
    observed: Option<Instant>,
    observe_every: Duration,
    trace: Option<TraceSink>,
    node: Box<N>,
}

type TraceSink = Box<dyn FnMut(Instant, TraceEvent) + Send>;

/// Largest number of ports of one node: a slot of the queue has one bit for each.
pub const PORTS_MAX: usize = 32;
/// The token of the application's descriptors in the event loop: no port's.
const WATCHED: u64 = PORTS_MAX as u64;
/// Octets of a confirmation: the frame's number (4) and the epoch of its sender (8).
const CONFIRMATION: usize = 12;
/// The list of members is sent to those who have an older one at most this often, however many ask or pretend to.
const NOTICE: Duration = Duration::from_secs(2);
/// Neighbours that have not confirmed a new key of broadcasts after this time miss some frames.
const SWITCH: Duration = Duration::from_secs(1);
/// Batches received, or sent, before the other direction gets its turn.
const TURN: usize = 4;
/// Frames of the node that leave in a turn which did not empty the receive queue: one for each batch of up to 32 read. So
/// that even a member that hears 32 others at its own pace reads more than it causes.
const BEHIND: usize = TURN;
/// A host whose receive queue stands says so in a hello, if it has sent no broadcast for this long.
const PRESSED: Duration = Duration::from_millis(100);
/// Pauses after the kernel ran out of buffers, and after the interface was down.
const NO_BUFFERS: Duration = Duration::from_millis(1);
const DOWN: Duration = Duration::from_millis(100);

impl<N: LinkNode + ?Sized> Live<N> {
    /// Runs `node` on `port`. The node's clock starts now.
    pub fn new(config: Config, port: Port, node: Box<N>) -> Result<Live<N>> {
        Live::with_ports(config, vec![port], node)
    }

    /// Runs `node` on 1 to 32 ports, all opened with the same address. A broadcast leaves on every port, a unicast on
    /// the port where its neighbour was last heard. Each port has a pace of its own, and a frame of the node leaves when all ports with
    /// neighbours can take one.
    pub fn with_ports(config: Config, ports: Vec<Port>, node: Box<N>) -> Result<Live<N>> {
        let address = ports.first().map(Port::address);
        let one = |port: &Port| Some(port.address()) == address;
        if ports.is_empty() || ports.len() > PORTS_MAX || !ports.iter().all(one) {
            let why = "1 to 32 ports of one address are needed";
            return Err(Error::invalid("drive a node", why));
        }
        // The epoch is part of the key: if it repeated, so would the nonces.
        let epoch = chappe_sys::random_u64()?;
        // Separate seeds: an observer of the hello times must learn nothing about other choices.
        let secret = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(0));
        let times = Seed(chappe_sys::random_u64()?).stream(Purpose::Node(0));
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        match (config.signals, config.reload) {
            (true, true) => events.watch_signals_and_reload()?,
            (true, false) => events.watch_signals()?,
            (false, _) => {}
        }
        for (token, port) in (0..).zip(&ports) {
            events.add(&port.socket, token)?;
        }
        let membership = config.membership;
        let first = chappe_sys::random_key()?;
        let frame_max = ports.iter().map(Port::frame_max).min().unwrap_or(0);
        let received_max = ports.iter().map(Port::received_max).max().unwrap_or(0);
        let me = address.and_then(Address::node_number).unwrap_or_default();
        let echoes = matches!(config.pace, Pace::Rate(_));
        let state = |port: Port| PortState::new(port, config.pace, config.shared);
        Ok(Live {
            sealer: Sealer::new((&membership.key, membership.serial), me, epoch, first),
            schedule: Schedule::new(config.hellos, times),
            shared: config.shared,
            number: 0,
            broadcast_at: None,
            scratch: vec![0; HEADER + received_max + ECHO + TAG],
            ears: Ears::default(),
            echoes,
            queue: Queue::new(frame_max + ECHO, ports.len()),
            ports: ports.into_iter().map(state).collect(),
            me,
            frame_max,
            own_max: frame_max,
            clock,
            // The driver waits for `observe_every` by itself. A busy host may take half the time between two hellos.
            presence: Presence::new(config.observe_every + config.hellos.later / 2),
            events,
            neighbours: Neighbours::new(membership, me, epoch, secret),
            renewed: Instant::ZERO,
            anew: None,
            notice: (None, Instant::ZERO),
            lists: notice::Inbox::default(),
            outstanding: Outstanding::new(config.retries),
            keys_as_broadcasts: config.keys_as_broadcasts,
            declined: false,
            loss: config.loss,
            statistics: Statistics {
                life: epoch,
                watched: true,
                ..Statistics::default()
            },
            observed: None,
            observe_every: config.observe_every,
            trace: None,
            node,
        })
    }

    /// Passes each trace event of the node to `sink`.
    pub fn on_trace(&mut self, sink: impl FnMut(Instant, TraceEvent) + Send + 'static) {
        self.trace = Some(Box::new(sink));
    }

    /// Wakes [`run`](Self::run), and so the application, when `fd` is readable too: a TUN device, a listening socket. The
    /// application reads it when [`Statistics::watched`] says so; what it leaves there wakes it again. Tell the driver when a descriptor is closed by [`unwatch`](Self::unwatch).
    pub fn watch(&self, fd: impl AsFd) -> Result<()> {
        self.events.add(fd, WATCHED)
    }

    /// Ends what [`watch`](Self::watch) began.
    pub fn unwatch(&self, fd: impl AsFd) -> Result<()> {
        self.events.remove(fd)
    }

    /// Access to the node between two runs.
    pub fn node(&mut self) -> &mut N {
        &mut self.node
    }

    /// Gives the node back.
    pub fn into_node(self) -> Box<N> {
        self.node
    }

    /// Takes over a newer list of members, between two runs. Those who are not in it are no neighbours any more, and get no key
    /// from now on.
    pub fn join(&mut self, membership: Membership) -> Result<()> {
        let now = self.now();
        self.sealer.join(
            (&membership.key, membership.serial),
            chappe_sys::random_key()?,
        );
        self.neighbours.join(membership);
        self.neighbours.give_anew(now);
        (self.renewed, self.statistics.notice) = (now, None);
        // Others may have the old list: a hello shows them that there is a newer one.
        self.schedule.answer_soon();
        Ok(())
    }

    /// The counters since the start.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Drives the node until `observe` breaks or a signal arrives. `observe` runs after each wake-up and before the node
    /// is drained, so it may offer the node data. Errors are those of the event loop and of an interface that has gone.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&mut N, Instant, &Statistics) -> ControlFlow<()>,
    ) -> Result<Ending> {
        let mut received = port_state::room(&self.ports, self.scratch.len());
        let mut ready = Vec::new();
        loop {
            let now = self.now();
            self.count_neighbours(now);
            if observe(&mut self.node, now, &self.statistics).is_break() {
                return Ok(Ending::Asked);
            }
            (self.statistics.notice, self.statistics.watched) = (None, false);
            self.run_timers();
            self.renew_keys()?;
            self.transmit()?;
            self.wait(now, &mut ready)?;
            for event in ready.drain(..) {
                match event {
                    Ready::Readable(WATCHED) | Ready::Writable(WATCHED) => {
                        self.statistics.watched = true;
                    }
                    Ready::Readable(port) => self.receive(port as usize, &mut received)?,
                    Ready::Writable(port) => self.on_writable(port as usize)?,
                    Ready::Deadline => {}
                    Ready::Signal(signal) => return Ok(Ending::Signal(signal)),
                }
            }
        }
    }

    /// The node's time. It stops while the process stands still, so that neighbours do not age unheard.
    fn now(&mut self) -> Instant {
        let now = self.presence.at(self.clock.now());
        self.statistics.still = self.presence.still();
        now
    }

    fn count_neighbours(&mut self, now: Instant) {
        let due = |last: Instant| now >= last + self.observe_every;
        if self.observed.is_none_or(due) {
            self.observed = Some(now);
            let seen = &mut self.statistics.neighbours;
            seen.clear();
            seen.extend(self.neighbours.iter(now));
            let near = |node: u16| self.neighbours.is_near(now, node);
            self.ears.keep(near);
            self.statistics.rewound = self.neighbours.rewound();
            for state in &mut self.ports {
                state.throttle.keep(near);
            }
        }
    }

    /// Waits for the next event, the next deadline, or the application's turn.
    fn wait(&mut self, now: Instant, ready: &mut Vec<Ready>) -> Result<()> {
        let node = self.node.poll_timeout().map(|wake| wake.at);
        let asks = !self.declined && !self.queue.is_full() && !self.may_ask().is_empty();
        // While the kernel's queue is full, the event loop reports when there is room again.
        let open = || {
            self.ports
                .iter()
                .enumerate()
                .filter(|(_, state)| !state.blocked)
        };
        let held = open().map(|(_, state)| state.held_until).min();
        let ask = held
            .filter(|_| asks)
            .map(|held| held.max(port_state::opens_at(&self.ports, now)));
        let waiting = open().filter(|(port, _)| self.queue.waits_for(*port));
        let send = waiting.map(|(_, state)| state.held_until).min();
        let hello = held.map(|held| held.max(self.schedule.next()));
        let keys = self.neighbours.deadline(now, self.sealer.newest().0);
        let keys = held.zip(keys).map(|(held, due)| held.max(due));
        let piece = held.filter(|_| self.notice.0.is_some());
        let piece = piece.map(|held| held.max(port_state::free_at(&self.ports, now)));
        let observe = now + self.observe_every;
        let times = [
            node,
            ask,
            send,
            hello,
            keys,
            piece,
            self.outstanding.deadline(),
        ];
        let at = times.into_iter().flatten().fold(observe, Instant::min);
        self.events.set_deadline(Some(self.presence.on_clock(at)))?;
        self.events.wait(ready)
    }

    /// Fires the node's timer and those of unconfirmed unicast frames.
    fn run_timers(&mut self) {
        let now = self.now();
        if let Some(wake) = self.node.poll_timeout().filter(|wake| wake.at <= now) {
            let late = now.saturating_since(wake.at);
            self.statistics.latest = self.statistics.latest.max(late);
        }
        // Even if nothing is due: the application may have changed the node.
        self.node.handle_timeout(now);
        self.drain_trace(now);
        while let Some((token, attempts)) = self.outstanding.next_expired(now) {
            self.statistics.given_up += 1;
            self.report_outcome(now, token, Outcome::Failed { attempts });
        }
        self.repeat_unconfirmed(now);
    }

    /// Renews this node's key of broadcasts, and uses it when the neighbours have it.
    fn renew_keys(&mut self) -> Result<()> {
        let now = self.now();
        let newest = self.sealer.newest().0;
        self.neighbours.tick(now, newest);
        if self.sealer.is_renewing() {
            if self.neighbours.all_have(now, newest) || now >= self.renewed + SWITCH {
                self.sealer.switch();
            }
        } else if now >= self.renewed + RENEW {
            self.renewed = now;
            self.sealer.renew(chappe_sys::random_key()?);
            self.neighbours.give_anew(now);
        }
        Ok(())
    }

    /// Queues handshakes, keys, and a piece of the list of members if a node needs it.
    fn send_keys(&mut self, now: Instant) {
        while let Some(slot) = self.queue.vacant() {
            let written = self
                .neighbours
                .write_next(&mut self.sealer, &mut slot.frame);
            let Some((len, mut at)) = written else {
                break;
            };
            if let Some(state) = self.ports.get(at.port).filter(|_| self.keys_as_broadcasts) {
                at.at = state.broadcast;
            }
            (slot.len, slot.to) = (len, Target::Neighbour(at));
            (slot.class, slot.broadcast) = (Class::Control, None);
            self.queue.push();
            self.spend(now, len, Target::Neighbour(at), None);
        }
        while let (Some(index), true) =
            (self.notice.0, port_state::free_at(&self.ports, now) <= now)
        {
            let Some(slot) = self.queue.vacant() else {
                return;
            };
            let body = slot.frame.get_mut(HEADER..HEADER + self.own_max);
            let of = &self.neighbours.membership;
            let len = body.and_then(|body| notice::emit(of.serial, &of.notice, index, body));
            let frame = Outgoing::control(Seal::Notice, Target::Broadcast);
            self.notice.0 = len.map(|_| index + 1);
            if len.is_some_and(|len| self.seal_and_queue(now, len, frame)) {
                self.statistics.notices_sent += 1;
            }
        }
    }

    /// Repeats the unicast frames whose confirmation is overdue.
    fn repeat_unconfirmed(&mut self, now: Instant) {
        // An attempt counts only if there is room to make it.
        while let Some(slot) = self.queue.vacant() {
            let Some(waiting) = self.outstanding.next_retry(now) else {
                return;
            };
            let (to, class, len) = (waiting.to, waiting.class, waiting.sdu.len());
            let (number, attempt) = (waiting.number, waiting.attempts);
            slot.frame[HEADER..HEADER + len].copy_from_slice(&waiting.sdu);
            let frame = Outgoing {
                seal: Seal::Unicast {
                    to,
                    number,
                    attempt,
                },
                to: self.target(to),
                class,
                token: None,
                mode: None,
            };
            // Without a session no node gets it now; a later attempt may.
            if self.seal_and_queue(now, len, frame) {
                self.statistics.retries += 1;
            }
        }
    }

    /// Polls the node for frames and hands them to the kernel, as long as pace and kernel allow. While frames wait to be
    /// read, few are sent.
    fn transmit(&mut self) -> Result<()> {
        self.declined = false;
        self.adapt();
        let behind = self.ports.iter().any(|state| state.behind);
        let (rounds, most) = match behind {
            true => (1, BEHIND),
            false => (TURN, usize::MAX),
        };
        for _ in 0..rounds {
            let now = self.now();
            if self.ports.iter().all(|state| state.is_shut(now)) {
                return Ok(());
            }
            self.send_hello(now);
            self.send_keys(now);
            self.poll_node(now, most);
            if self.queue.is_empty() {
                return Ok(());
            }
            self.flush(now)?;
        }
        Ok(())
    }

    /// Follows what the neighbours can take, and tells them what this host can.
    fn adapt(&mut self) {
        let now = self.now();
        port_state::adapt(&mut self.ports, now, &mut self.statistics);
        let pressed = self.ports.iter().any(|state| state.backlog.stands(now));
        if pressed && self.broadcast_at.is_none_or(|at| now > at + PRESSED) {
            // Nobody would learn of it otherwise.
            self.schedule.answer_soon();
        }
        if self.echoes && self.ears.are_due(now) {
            self.schedule.answer_soon();
        }
        if self.echoes && self.ears.are_asked(now) {
            self.schedule.echo_soon();
        }
        self.sealer.press(pressed);
    }

    /// The classes in which the node has a frame that it may send now.
    fn may_ask(&self) -> chappe_core::Classes {
        self.node.pending().and(self.outstanding.allowed())
    }

    /// Takes up to `most` frames from the node.
    fn poll_node(&mut self, now: Instant, most: usize) {
        if port_state::opens_at(&self.ports, now) > now {
            return;
        }
        for _ in 0..most {
            if port_state::free_at(&self.ports, now) > now {
                return;
            }
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

    /// Charges a frame to the pace of its ports.
    fn spend(&mut self, now: Instant, len: usize, to: Target, mode: Option<Mode>) {
        let newest = self.sealer.next_broadcast().saturating_sub(1);
        for (port, state) in self.ports.iter_mut().enumerate() {
            let there = match to {
                Target::Broadcast => true,
                Target::Neighbour(at) => at.port == port,
            };
            if there {
                let octets = state.pacer.spend(now, len, mode);
                state.throttle.spend(now, octets, newest);
            }
        }
    }

    /// Finishes the frame whose SDU the node has just written to the vacant slot.
    fn enqueue(&mut self, now: Instant, send: LinkSend) {
        let Some(slot) = self.queue.vacant() else {
            return;
        };
        let frame = |seal, to, token| Outgoing {
            seal,
            to,
            class: send.class,
            token,
            mode: send.mode,
        };
        let frame = match send.to.node_number() {
            _ if send.len > self.frame_max => None,
            _ if send.to.is_broadcast() => {
                self.broadcast_at = Some(now);
                let seal = Seal::Broadcast(Kind::Broadcast);
                Some(frame(seal, Target::Broadcast, Some(send.token)))
            }
            // The number is part of the nonce, so it must not wrap.
            Some(to) if self.number < u32::MAX => {
                self.number += 1;
                let (number, attempt) = (self.number, 1);
                let sdu = &slot.frame[HEADER..HEADER + send.len];
                self.outstanding
                    .add(now, number, to, (send.token, send.class), sdu);
                let seal = Seal::Unicast {
                    to,
                    number,
                    attempt,
                };
                Some(frame(seal, self.target(to), None))
            }
            _ => None,
        };
        // A unicast to a node without a session yet waits for one, and is repeated like a lost frame.
        if let Some(Outgoing {
            seal: Seal::Unicast { to, .. },
            ..
        }) = frame
            && self.neighbours.session(to).is_none()
        {
            return;
        }
        let queued = frame.is_some_and(|frame| self.seal_and_queue(now, send.len, frame));
        if !queued {
            // More octets than there was room for, or an address that is no node's.
            self.statistics.drops.count(DropReason::Malformed);
            self.report_outcome(now, send.token, Outcome::Failed { attempts: 0 });
        }
    }

    /// Where a unicast goes.
    fn target(&self, to: u16) -> Target {
        let session = self.neighbours.session(to);
        session.map_or(Target::Broadcast, |(_, at)| Target::Neighbour(at))
    }

    /// Seals the frame whose body of `len` octets stands in the vacant slot, queues it, and charges it to the pace.
    /// Returns false if it cannot be sealed (no room, or all counters used) or the queue is full.
    fn seal_and_queue(&mut self, now: Instant, len: usize, frame: Outgoing) -> bool {
        let Some(slot) = self.queue.vacant() else {
            return false;
        };
        let octets = &mut slot.frame;
        let sealed = match frame.seal {
            Seal::Broadcast(kind) => {
                let asks = self.ports.iter().any(|state| state.throttle.asks(now));
                let end = kind.clear() + len;
                let Some(place) = octets.get_mut(end..end + ECHO) else {
                    return false;
                };
                // By the clock and not the node's time, which stops when the process does.
                let echo = self.ears.next(self.clock.now());
                place.copy_from_slice(&Echo { asks, ..echo }.emit());
                self.sealer.seal(kind, len + ECHO, octets)
            }
            Seal::Notice => self.sealer.finish_notice(len, octets),
            Seal::Confirmation { to } => self
                .neighbours
                .session(to)
                .and_then(|(pair, _)| self.sealer.seal_confirmation((to, pair), len, octets)),
            Seal::Unicast {
                to,
                number,
                attempt,
            } => self.neighbours.session(to).and_then(|(pair, _)| {
                self.sealer
                    .seal_unicast((to, pair), (number, attempt), len, octets)
            }),
        };
        let Some(len) = sealed else {
            return false;
        };
        (slot.len, slot.to) = (len, frame.to);
        (slot.class, slot.broadcast) = (frame.class, frame.token);
        self.queue.push();
        self.spend(now, len, frame.to, frame.mode);
        true
    }

    /// Hands the queued frames of each port to the kernel, then reports the broadcasts that all ports are done with.
    fn flush(&mut self, now: Instant) -> Result<()> {
        for port in 0..self.ports.len() {
            let Some(state) = self.ports.get_mut(port).filter(|state| !state.is_shut(now)) else {
                continue;
            };
            if !self.queue.waits_for(port) {
                continue;
            }
            let (socket, cuts) = (&mut state.socket, &mut state.cuts);
            match self.queue.flush(port, socket, state.broadcast, cuts) {
                Ok(0) => {
                    self.statistics.queue_full += 1;
                    state.throttle.block();
                    state.blocked = true;
                    self.events.want_write(&state.socket, port as u64, true)?;
                }
                Ok(_) => {}
                Err(error) => self.on_refusal(now, port, error)?,
            }
        }
        // In order: a frame stays until every port has taken it or given it up.
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
                self.report_outcome(now, token, outcome);
            }
        }
        Ok(())
    }

    /// The kernel refused the first frame of a port.
    fn on_refusal(&mut self, now: Instant, port: usize, error: Error) -> Result<()> {
        let Some(state) = self.ports.get_mut(port) else {
            return Ok(());
        };
        if error.is_out_of_buffers() {
            self.statistics.queue_full += 1;
            state.held_until = now + NO_BUFFERS;
            return Ok(());
        }
        if error.is_gone() {
            return Err(error);
        }
        self.statistics.refused += 1;
        self.statistics.last_refusal = Some(error.to_string());
        if error.is_down() {
            state.held_until = now + DOWN;
        }
        // Frames of an interface that is down would keep their slots, so that the other ports would starve.
        self.queue
            .give_up(port, error.is_down() && self.ports.len() > 1);
        Ok(())
    }

    fn on_writable(&mut self, port: usize) -> Result<()> {
        if let Some(state) = self.ports.get_mut(port).filter(|state| state.blocked) {
            state.blocked = false;
            self.events.want_write(&state.socket, port as u64, false)?;
        }
        Ok(())
    }

    /// Reads a port until nothing waits there, or until it is the other ports' turn. Nothing of the node is sent meanwhile: a
    /// member that sends before it has read what its neighbours report repeats what they have, and overflows its queue.
    fn receive(&mut self, port: usize, received: &mut Received) -> Result<()> {
        let now = self.now();
        for _ in 0..TURN {
            let Some(state) = self.ports.get_mut(port) else {
                return Ok(());
            };
            let asked = self.clock.now();
            match state.socket.receive(received) {
                Ok(count) => {
                    state.behind = count == BATCH;
                    // A queue that overflowed is longer than a batch. What overflowed between two looks is found by the next.
                    let looks = state.behind || state.backlog.is_unknown(now);
                    let lost = looks.then(|| state.socket.lost_in_queue());
                    let lost = state.backlog.read(now, !state.behind, lost);
                    self.statistics.lost_in_queue += u64::from(lost);
                }
                Err(error) if error.is_gone() => return Err(error),
                // The interface went down, or an ICMP error came back. Sending gives the more precise error.
                Err(_) => {
                    self.statistics.receive_errors += 1;
                    return Ok(());
                }
            }
            for frame in received.iter() {
                let frame = frame.filter(|(_, frame)| frame.len() <= self.scratch.len());
                let parsed = frame.and_then(|(at, frame)| Some((at, frame, Header::parse(frame)?)));
                match parsed {
                    Some((at, frame, header)) => {
                        self.on_frame(Location { port, at }, header, frame)?;
                    }
                    None => {
                        self.statistics.drops.count(DropReason::Malformed);
                        let former = frame.is_some_and(|(_, frame)| is_former(frame));
                        self.statistics.former += u64::from(former);
                        self.statistics.too_long += u64::from(frame.is_none());
                    }
                }
                // Confirmations do not wait: there must be room for that of the next frame.
                if self.queue.is_full() {
                    let now = self.now();
                    self.flush(now)?;
                }
            }
            if let Some(state) = self.ports.get_mut(port).filter(|state| !state.behind) {
                state.emptied = asked;
                return Ok(());
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, at: Location, header: Header, frame: &[u8]) -> Result<()> {
        let now = self.now();
        let from = Address::node(header.from);
        // A broadcast socket may receive this host's own frames. They need no decryption.
        if header.from == self.me && header.epoch == self.sealer.epoch() as u16 {
            self.statistics.echoes += 1;
            return self.look_for_copy(now, &header, frame);
        }
        if self.loss.as_mut().is_some_and(|loss| loss.takes(from)) {
            self.statistics.injected_losses += 1;
            return Ok(());
        }
        let len = header.frame_len();
        // Opening decrypts in place, and the receive buffer is borrowed by the caller.
        let mut scratch = std::mem::take(&mut self.scratch);
        if let (Some(place), Some(frame)) = (scratch.get_mut(..len), frame.get(..len)) {
            place.copy_from_slice(frame);
            let taken = self.accept(now, at, &header, place);
            match taken {
                Ok(()) => self.statistics.octets_received += len as u64,
                Err(why) => self.statistics.drops.count(why),
            }
        } else {
            self.statistics.drops.count(DropReason::Malformed);
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Opens a frame and acts on it, or returns why it was dropped.
    fn accept(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &mut [u8],
    ) -> std::result::Result<(), DropReason> {
        let from = Address::node(header.from);
        let for_all = matches!(header.kind, Kind::Broadcast | Kind::Hello | Kind::Notice);
        if !for_all && header.to != self.me {
            return Err(DropReason::NotForUs);
        }
        match header.kind {
            Kind::Hello => return self.on_hello(now, at, header, frame),
            Kind::Handshake => {
                let progress = self.neighbours.handshake(now, at, header, frame)?;
                return self.on_progress(header.from, progress);
            }
            Kind::Key => {
                let newest = self.sealer.newest().0;
                let progress = self.neighbours.key(now, at, header, frame, newest)?;
                return self.on_progress(header.from, progress);
            }
            Kind::Notice => return self.on_notice(now, header, frame),
            _ if header.from == self.me => return Err(DropReason::Stale),
            _ => {}
        }
        let (mut sdu, novelty) = self.neighbours.open(now, header, frame)?;
        let mut echo = None;
        if header.kind == Kind::Broadcast {
            let (before, last) = sdu.split_last_chunk().ok_or(DropReason::Malformed)?;
            (sdu, echo) = (before, Some(Echo::parse(last)));
        }
        let arrival = |to| Arrival {
            from,
            to,
            sdu,
            power: None,
        };
        match header.kind {
            Kind::Broadcast if novelty == Novelty::New => {
                self.hear(now, at.port, header, echo);
                self.deliver(now, arrival(Address::BROADCAST));
            }
            Kind::Broadcast => return Err(DropReason::Duplicate),
            Kind::Unicast => {
                let number = (header.counter >> 8) as u32;
                match self.neighbours.note(now, at, header.from, number) {
                    Novelty::New => {
                        self.confirm(now, at, header.from, number);
                        self.deliver(now, arrival(Address::node(self.me)));
                    }
                    Novelty::Seen => {
                        self.confirm(now, at, header.from, number);
                        return Err(DropReason::Duplicate);
                    }
                    // Too old for the window: whether the node has had it is unknown, so it is not confirmed.
                    Novelty::Forgotten => return Err(DropReason::Stale),
                }
            }
            _ => {
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

    /// Notes a new broadcast or hello of a neighbour: what it tells of this member's frames, and what its own show.
    fn hear(&mut self, now: Instant, port: usize, header: &Header, echo: Option<Echo>) {
        self.statistics.pressed += u64::from(header.pressed);
        if let Some(state) = self.ports.get_mut(port) {
            state.heard = Some(now);
            state.throttle.hear(header.from, header.pressed);
            if let Some(echo) = echo.filter(|echo| echo.about == Some(self.me)) {
                state.throttle.echo(now, header.from, echo);
            }
        }
        if let Some(echo) = echo {
            let life = (header.from, header.epoch);
            let at = self.clock.now();
            let emptied = self.ports.get(port).map_or(at, |state| state.emptied);
            let frame = (header.counter, echo.stamp, echo.asks);
            self.ears
                .hear(at, life, frame, at.saturating_since(emptied));
        }
    }

    fn on_hello(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &mut [u8],
    ) -> std::result::Result<(), DropReason> {
        let outcome = self.neighbours.hello(now, at, header, frame);
        match outcome {
            HelloOutcome::Dropped(why) => Err(why),
            HelloOutcome::Known | HelloOutcome::KnownBehind => {
                let sealed = frame.get(..header.kind.clear() + usize::from(header.length));
                let last = sealed.and_then(|sealed| sealed.last_chunk());
                let echo = last.map(Echo::parse);
                self.hear(now, at.port, header, echo);
                if outcome == HelloOutcome::KnownBehind {
                    self.tell_list(now);
                }
                Ok(())
            }
            HelloOutcome::Unproved { waits } => {
                self.statistics.unproved += 1;
                let answers = !waits || self.schedule.answer_stranger(now);
                self.statistics.unanswered += u64::from(!answers);
                Ok(())
            }
            HelloOutcome::Behind => {
                let known = self
                    .neighbours
                    .membership
                    .members
                    .contains_key(&header.from);
                if known {
                    self.tell_list(now);
                }
                Err(DropReason::Stale)
            }
        }
    }

    /// Begins to send the list of members, unless that was done lately.
    fn tell_list(&mut self, now: Instant) {
        let idle = self.notice.0.is_none() && now >= self.notice.1;
        if idle && !self.neighbours.membership.notice.is_empty() {
            self.notice = (Some(0), now + NOTICE);
        }
    }

    fn on_progress(
        &mut self,
        from: u16,
        progress: Progress,
    ) -> std::result::Result<(), DropReason> {
        if let Progress::Proved { new } = progress {
            self.statistics.sessions += 1;
            self.statistics.address_conflicts += u64::from(from == self.me);
            if new {
                self.schedule.answer_soon();
            }
        }
        Ok(())
    }

    /// A piece of a list of members. The application checks its signature.
    fn on_notice(
        &mut self,
        now: Instant,
        header: &Header,
        frame: &[u8],
    ) -> std::result::Result<(), DropReason> {
        let whole = frame
            .get(..header.frame_len())
            .ok_or(DropReason::Malformed)?;
        let end = whole.len().saturating_sub(TAG);
        let body = whole.get(HEADER..end).filter(|_| is_undamaged(whole));
        let body = body.ok_or(DropReason::Unauthentic)?;
        let list = self
            .lists
            .take(now, self.neighbours.membership.serial, body)?;
        self.statistics.notice = list.or(self.statistics.notice.take());
        Ok(())
    }

    fn deliver(&mut self, now: Instant, arrival: Arrival<'_>) {
        self.statistics.frames_received += 1;
        self.node.handle_link(now, LinkEvent::Received(arrival));
        self.drain_trace(now);
    }

    fn on_confirmation(&mut self, now: Instant, from: u16, number: u32) {
        match self.outstanding.confirmed(from, number) {
            Some((token, attempts)) => {
                self.statistics.confirmed += 1;
                self.report_outcome(now, token, Outcome::Acknowledged { attempts });
            }
            None => self.statistics.drops.count(DropReason::Duplicate),
        }
    }

    /// Confirms a unicast frame at once, ahead of the pace, because its sender's retry timer runs.
    fn confirm(&mut self, now: Instant, at: Location, from: u16, number: u32) {
        let Some(epoch) = self.neighbours.life(from) else {
            return;
        };
        let Some(slot) = self.queue.vacant() else {
            return self.statistics.drops.count(DropReason::QueueFull);
        };
        let body = &mut slot.frame[HEADER..HEADER + CONFIRMATION];
        body[..4].copy_from_slice(&number.to_be_bytes());
        body[4..].copy_from_slice(&epoch.to_be_bytes());
        let seal = Seal::Confirmation { to: from };
        let frame = Outgoing::control(seal, Target::Neighbour(at));
        if self.seal_and_queue(now, CONFIRMATION, frame) {
            self.statistics.confirmations_sent += 1;
        }
    }

    fn report_outcome(&mut self, now: Instant, token: u32, outcome: Outcome) {
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
