//! Two hosts joined by a [`Path`], in real time: each is a namespace with one interface, and one thread carries their packets.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use chappe_core::{Address, Duration, Instant, Seed};
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Clock, EventLoop, Ready, Received, Result, Socket, packet};

use crate::ethernet::HEADER;
use crate::network::{Host, Joint, Network, Shape};
use crate::path::{Fates, Path};
use crate::port::Port;

/// What one direction of a line has carried since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// IPv4 packets that the host sent.
    pub packets: u64,
    /// Of them, those that arrived.
    pub arrived: u64,
    /// Octets of the packets that arrived.
    pub octets: u64,
    /// Packets of which a frame was lost on the air, after all repetitions.
    pub lost: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Frames on the air, repetitions included.
    pub frames: u64,
    /// Of them, those that were lost.
    pub frames_lost: u64,
}

/// Two hosts and the path between them. Dropping it ends the thread and removes the hosts.
#[derive(Debug)]
pub struct Line {
    network: Network,
    carried: Arc<Mutex<[Carried; 2]>>,
    late: Arc<Mutex<Duration>>,
    stop: Arc<AtomicBool>,
    worker: Option<JoinHandle<Result<()>>>,
}

/// The address of each end's interface.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 17, 0, 1), Ipv4Addr::new(10, 17, 0, 2)];
/// The prefix length of the addresses.
const PREFIX: u8 = 24;
/// The longest wait before the thread looks whether it is to end.
const NAP: Duration = Duration::from_millis(50);
/// The longest time that a late thread makes good: programs are stopped for longer, light and radios are not.
const MADE_GOOD: Duration = Duration::from_millis(20);
/// Delays below this are the usual ones of a computer's timers.
const PUNCTUAL: Duration = Duration::from_millis(1);

impl Line {
    /// Creates the hosts and starts to carry packets between them. Needs what
    /// [`isolate`](chappe_sys::namespace::isolate) provides.
    pub fn start(path: Path, seed: Seed) -> Result<Line> {
        let host = |end: usize| Host {
            address: Address::node(end as u16),
            ipv4: ADDRESSES[end],
            routes: Vec::new(),
        };
        let shape = Shape {
            prefix: PREFIX,
            mtu: path.mtu,
            forwards: false,
            joint: Joint::Veth,
        };
        let mut network = Network::make(&[host(0), host(1)], shape)?;
        let ports = network.ports.drain(..).filter_map(|port| match port {
            Port::Veth(socket) => Some(socket),
            Port::Tap(_) => None,
        });
        let carried: Arc<Mutex<[Carried; 2]>> = Arc::default();
        let (late, stop) = (Arc::default(), Arc::<AtomicBool>::default());
        let carrier = Carrier {
            sockets: ports.collect(),
            fates: [0, 1].map(|end| Fates::new(&path, seed, end)),
            path,
            waiting: Default::default(),
            flying: Default::default(),
            free_at: [Instant::ZERO; 2],
            turn: 0,
            carried: carried.clone(),
            late: Arc::clone(&late),
            stop: stop.clone(),
        };
        Ok(Line {
            network,
            carried,
            late,
            stop,
            worker: Some(thread::spawn(move || carrier.run())),
        })
    }

    /// The namespace of an end, 0 or 1.
    pub fn host(&self, end: usize) -> Option<&NetworkNamespace> {
        self.network.host(end)
    }

    /// What each direction has carried, from end 0 and from end 1.
    pub fn carried(&self) -> [Carried; 2] {
        *self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long the computer was too busy to carry a packet when it was due, beyond a millisecond each time.
    pub fn late(&self) -> Duration {
        *self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread; an error is the one that stopped it early.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.worker.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// What the thread holds.
struct Carrier {
    sockets: Vec<Socket>,
    path: Path,
    fates: [Fates; 2],
    /// Packets of each host, with the time at which they came.
    waiting: [VecDeque<(Instant, Vec<u8>)>; 2],
    /// Packets on their way, with the time of their arrival.
    flying: [VecDeque<(Instant, Vec<u8>)>; 2],
    /// When each direction's channel is free. Without duplex both are the same.
    free_at: [Instant; 2],
    turn: usize,
    carried: Arc<Mutex<[Carried; 2]>>,
    late: Arc<Mutex<Duration>>,
    stop: Arc<AtomicBool>,
}

impl Carrier {
    fn run(mut self) -> Result<()> {
        let clock = Clock::start();
        let mut events = EventLoop::new(clock)?;
        for (token, socket) in self.sockets.iter().enumerate() {
            events.add(socket, token as u64)?;
        }
        let mut received = Received::new(HEADER + self.path.mtu + 1);
        let mut ready: Vec<Ready> = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            for end in 0..self.sockets.len() {
                while self.sockets[end].receive(&mut received)? > 0 {
                    for (_, frame) in received.iter().flatten() {
                        self.take(clock.now(), end, frame);
                    }
                }
            }
            self.serve(clock.now());
            self.deliver(clock.now())?;
            let now = clock.now();
            let next = self.next(now);
            events.set_deadline(Some(next))?;
            ready.clear();
            events.wait(&mut ready)?;
            let late = clock.now().saturating_since(next.max(now));
            let late = late.saturating_sub(PUNCTUAL);
            if late > Duration::ZERO {
                let mut sum = self.late.lock().unwrap_or_else(PoisonError::into_inner);
                *sum += late;
            }
        }
        Ok(())
    }

    /// When there is something to do without a packet from a host.
    fn next(&self, now: Instant) -> Instant {
        let frees = (0..2).filter(|&end| !self.waiting[end].is_empty());
        let frees = frees.map(|end| self.free_at[end]);
        let flights = self
            .flying
            .iter()
            .filter_map(|queue| Some(queue.front()?.0));
        flights.chain(frees).fold(now + NAP, Instant::min)
    }

    fn take(&mut self, now: Instant, end: usize, frame: &[u8]) {
        match frame.get(12..14) {
            // Addresses are resolved at once: what is tried is the path.
            Some([0x08, 0x06]) => self.flying[end].push_front((now, frame.to_vec())),
            Some([0x08, 0x00]) => {
                let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
                carried[end].packets += 1;
                match self.waiting[end].len() < self.path.queue {
                    true => self.waiting[end].push_back((now, frame.to_vec())),
                    false => carried[end].queue_full += 1,
                }
            }
            // IPv6 would add its own multicasts, and so change which frames are lost.
            _ => {}
        }
    }

    /// Puts packets on the channel, in turns.
    fn serve(&mut self, now: Instant) {
        while let Some(end) = self.sender(now) {
            let Some((came, frame)) = self.waiting[end].pop_front() else {
                return;
            };
            self.turn = 1 - end;
            let octets = frame.len().saturating_sub(HEADER);
            let crossing = self.path.cross(octets, &mut self.fates[end]);
            // A thread that wakes late may use the time that it has missed, and a packet cannot begin before it was there.
            let begins = self.free_at[end].max(came);
            let begins = begins.max(now.saturating_before(MADE_GOOD));
            let done = begins + crossing.takes;
            match self.path.duplex {
                true => self.free_at[end] = done,
                false => self.free_at = [done; 2],
            }
            let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
            let carried = &mut carried[end];
            carried.frames += u64::from(crossing.frames);
            carried.frames_lost += u64::from(crossing.lost);
            match crossing.arrives {
                true => self.flying[end].push_back((done + self.path.delay, frame)),
                false => carried.lost += 1,
            }
        }
    }

    /// The end whose packet may begin now, if any.
    fn sender(&mut self, now: Instant) -> Option<usize> {
        let may = |end: &usize| !self.waiting[*end].is_empty() && self.free_at[*end] <= now;
        [self.turn, 1 - self.turn].into_iter().find(may)
    }

    /// Hands over what has arrived.
    fn deliver(&mut self, now: Instant) -> Result<()> {
        for end in 0..2 {
            while let Some((_, frame)) = self.flying[end].pop_front_if(|next| next.0 <= now) {
                let one = [(&frame[..], packet::BROADCAST)];
                let Some(socket) = self.sockets.get(1 - end) else {
                    continue;
                };
                // A host whose interface goes down loses the packet, as with any card.
                let sent = socket.send(one.into_iter()).unwrap_or(0);
                if sent > 0 && frame.get(12..14) == Some(&[0x08, 0x00]) {
                    let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
                    carried[end].arrived += 1;
                    carried[end].octets += frame.len().saturating_sub(HEADER) as u64;
                }
            }
        }
        Ok(())
    }
}
