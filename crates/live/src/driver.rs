//! The driver: one node, one socket, one thread, one wait.

mod hellos;
mod incoming;
mod outgoing;
mod port_state;

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use chappe_core::{
    Address, Bitrate, Duration, Instant, LinkEvent, LinkNode, Outcome, Purpose, Seed, TraceEvent,
};
use chappe_sys::{Clock, Error, EventLoop, Ready, Result};

use crate::config::{Config, Ending};
use crate::confirm::Outstanding;
use crate::echo::{ECHO, Ears};
use crate::exchange::RENEW;
use crate::frame::{HEADER, TAG};
use crate::hello::Schedule;
use crate::loss::Loss;
use crate::membership::Membership;
use crate::neighbours::Neighbours;
use crate::notice;
use crate::pace::Pace;
use crate::port::Port;
use crate::presence::Presence;
use crate::queue::Queue;
use crate::seal::Sealer;
use crate::statistics::Statistics;
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
/// Neighbours that have not confirmed a new key of broadcasts after this time miss some frames.
const SWITCH: Duration = Duration::from_secs(1);
/// Batches received, or sent, before the other direction gets its turn.
const TURN: usize = 4;
/// Frames of the node that leave in a turn which did not empty the receive queue: one for each batch of up to 32 read. So
/// that even a member that hears 32 others at its own pace reads more than it causes.
const BEHIND: usize = TURN;
/// A host whose receive queue stands says so in a hello, if it has sent no broadcast for this long.
const PRESSED: Duration = Duration::from_millis(100);

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
