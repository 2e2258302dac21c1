//! Two hosts in namespaces with a lossy half-duplex medium between them: one rate for both directions, delay, losses.
//!
//! Each host has an Ethernet interface `eth0`; frames of both pass through one program that lets them out in turns at
//! the medium's rate, throws some away, and holds the others for the delay. The kernel's own netem is not needed.
#![allow(dead_code, reason = "each program uses a part")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration as Span, Instant as Watch};

use chappe_core::{Bitrate, Duration, Instant, Purpose, Seed, Stream};
use chappe_sys::namespace::{NetworkNamespace, isolate};
use chappe_sys::{Clock, Endpoint, EventLoop, Interface, Links, Received, Socket, packet};

/// What the medium does. May be changed while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Air {
    pub rate: Bitrate,
    pub delay: Duration,
    /// Share of frames lost, away from host 0 and from host 1.
    pub loss: [f64; 2],
    /// Mean run of losses; 0: independent.
    pub burst: f64,
}

impl Air {
    /// 6 Mbit/s for both directions together and a round trip of 20 ms.
    pub fn usual(loss: f64) -> Air {
        Air {
            rate: Bitrate(6_000_000),
            delay: Duration::from_millis(10),
            loss: [loss; 2],
            burst: 0.0,
        }
    }
}

/// Frames that each direction may have waiting.
const QUEUE: usize = 100;

/// The hosts and the medium. Dropping it removes everything.
pub struct Field {
    pub hosts: [NetworkNamespace; 2],
    /// The medium of the first wire.
    pub air: Arc<Mutex<Air>>,
    pub octets: Arc<AtomicU64>,
    pub wires: Vec<Wire>,
}

/// One wire between the hosts, `eth0`, `eth1` and so on at both of them.
pub struct Wire {
    pub air: Arc<Mutex<Air>>,
    pub octets: Arc<AtomicU64>,
    late: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

/// The address of a host's `eth0`.
pub fn address(host: usize) -> Ipv4Addr {
    address_on(0, host)
}

/// The address of a host on a wire.
pub fn address_on(wire: usize, host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, wire as u8, 1 + host as u8)
}

/// The address of a host's tunnel.
pub fn inner(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, 1 + host as u8)
}

impl Wire {
    fn new(hosts: &[NetworkNamespace; 2], number: usize, air: Air, seed: u64) -> Wire {
        let hub = NetworkNamespace::create().unwrap();
        let device = format!("eth{number}");
        let wire = || {
            let links = Links::open().unwrap();
            for (name, host) in ["h0", "h1"].iter().zip(hosts) {
                links.veth(name, &device, host).unwrap();
                Interface::find(name).unwrap().offloads_off().unwrap();
                links.up(name).unwrap();
            }
        };
        hub.run(wire).unwrap();
        for (place, host) in hosts.iter().enumerate() {
            host.run(|| {
                Interface::find(&device).unwrap().offloads_off().unwrap();
                let links = Links::open().unwrap();
                links
                    .add_address(&device, address_on(number, place), 24)
                    .unwrap();
                links.up(&device).unwrap();
                while !Interface::find(&device).unwrap().running {
                    thread::sleep(Span::from_millis(5));
                }
            })
            .unwrap();
        }
        let (air, stop) = (Arc::new(Mutex::new(air)), Arc::new(AtomicBool::new(false)));
        let (octets, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let sockets = hub.run(|| {
            ["h0", "h1"].map(|name| {
                packet::open(
                    &Interface::find(name).unwrap(),
                    packet::ALL,
                    packet::Framing::Whole,
                )
                .unwrap()
            })
        });
        let carry = Carry {
            sockets: sockets.unwrap(),
            air: air.clone(),
            stop: stop.clone(),
            octets: octets.clone(),
            late: late.clone(),
            random: Seed(seed).stream(Purpose::Reception),
            waiting: [VecDeque::new(), VecDeque::new()],
            flying: [VecDeque::new(), VecDeque::new()],
            bad: [false; 2],
            turn: 0,
            free_at: Instant::ZERO,
        };
        let worker = thread::spawn(move || carry.run());
        Wire {
            air,
            octets,
            late,
            stop,
            worker: Some(worker),
        }
    }

    pub fn set(&self, change: impl FnOnce(&mut Air)) {
        change(&mut self.air.lock().unwrap());
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Field {
    pub fn new(air: Air, seed: u64) -> Field {
        Field::wired(&[air], seed)
    }

    /// Hosts with several wires between them.
    pub fn wired(airs: &[Air], seed: u64) -> Field {
        let hosts = [0, 1].map(|_| NetworkNamespace::create().unwrap());
        let wires = airs.iter().enumerate();
        let wires: Vec<Wire> = wires
            .map(|(number, air)| Wire::new(&hosts, number, *air, seed + number as u64 * 1_000))
            .collect();
        Field {
            hosts,
            air: wires[0].air.clone(),
            octets: wires[0].octets.clone(),
            wires,
        }
    }

    /// Two hosts on one wire, with nothing between that loses, delays or limits.
    pub fn direct() -> Field {
        let create = || NetworkNamespace::create().unwrap();
        let hosts = [create(), create()];
        hosts[0]
            .run(|| {
                Links::open()
                    .unwrap()
                    .veth("eth0", "eth0", &hosts[1])
                    .unwrap()
            })
            .unwrap();
        for (number, host) in hosts.iter().enumerate() {
            host.run(|| {
                let links = Links::open().unwrap();
                links.add_address("eth0", address(number), 24).unwrap();
                links.up("eth0").unwrap();
            })
            .unwrap();
        }
        Field {
            hosts,
            air: Arc::new(Mutex::new(Air::usual(0.0))),
            octets: Arc::default(),
            wires: Vec::new(),
        }
    }

    pub fn set(&self, change: impl FnOnce(&mut Air)) {
        change(&mut self.air.lock().unwrap());
    }

    /// Whether a wire stalled for more than 1 % of `secs` because the computer was busy, which invalidates a measurement.
    pub fn stood_still(&self, secs: f64) -> bool {
        let late = self
            .wires
            .iter()
            .map(|wire| wire.late.load(Ordering::Relaxed));
        let late = Duration::from_nanos(late.max().unwrap_or_default());
        late.as_secs_f64() > secs / 100.0
    }
}

struct Carry {
    sockets: [Socket; 2],
    air: Arc<Mutex<Air>>,
    stop: Arc<AtomicBool>,
    octets: Arc<AtomicU64>,
    late: Arc<AtomicU64>,
    random: Stream,
    waiting: [VecDeque<Vec<u8>>; 2],
    flying: [VecDeque<(Instant, Vec<u8>)>; 2],
    bad: [bool; 2],
    turn: usize,
    free_at: Instant,
}

impl Carry {
    fn run(mut self) {
        let clock = Clock::start();
        let mut events = EventLoop::new(clock).unwrap();
        let mut received = Received::new(1 << 14);
        for (token, socket) in self.sockets.iter().enumerate() {
            events.add(socket, token as u64).unwrap();
        }
        let mut ready = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            for from in 0..2 {
                while self.sockets[from].receive(&mut received).unwrap_or(0) > 0 {
                    for (_, frame) in received.iter().flatten() {
                        self.arrive(clock.now(), from, frame);
                    }
                }
            }
            let now = clock.now();
            self.serve(now);
            self.land(now);
            let waits = self
                .waiting
                .iter()
                .any(|queue| !queue.is_empty())
                .then_some(self.free_at);
            let flights = self
                .flying
                .iter()
                .filter_map(|queue| queue.front().map(|next| next.0));
            let next = flights
                .chain(waits)
                .fold(now + Duration::from_millis(50), Instant::min);
            events.set_deadline(Some(next)).unwrap();
            ready.clear();
            events.wait(&mut ready).unwrap();
            let late = clock.now().saturating_since(next);
            let late = late.saturating_sub(Duration::from_millis(1));
            self.late.fetch_add(late.nanos(), Ordering::Relaxed);
        }
    }

    fn arrive(&mut self, now: Instant, from: usize, frame: &[u8]) {
        let kind = frame.get(12..14);
        if kind == Some(&[0x08, 0x06]) {
            // Address resolution is not what is tried here.
            self.flying[from].push_front((now, frame.to_vec()));
        } else if kind != Some(&[0x86, 0xdd]) && self.waiting[from].len() < QUEUE {
            self.waiting[from].push_back(frame.to_vec());
        }
    }

    /// Lets frames out in turns, each for its time on the air; a late wake-up is made good.
    fn serve(&mut self, now: Instant) {
        let air = *self.air.lock().unwrap();
        if self.waiting.iter().all(VecDeque::is_empty) {
            self.free_at = self
                .free_at
                .max(now.saturating_before(Duration::from_millis(1)));
        }
        while self.free_at <= now {
            let from = if self.waiting[self.turn].is_empty() {
                1 - self.turn
            } else {
                self.turn
            };
            let Some(frame) = self.waiting[from].pop_front() else {
                break;
            };
            self.turn = 1 - from;
            self.free_at = self
                .free_at
                .max(now.saturating_before(Duration::from_millis(20)))
                + air.rate.time_of(frame.len() as u64 * 8);
            self.octets.fetch_add(frame.len() as u64, Ordering::Relaxed);
            let loss = air.loss[from];
            let chance = match air.burst {
                0.0 => loss,
                burst if self.bad[from] => 1.0 - 1.0 / burst,
                burst => loss / (burst * (1.0 - loss)),
            };
            self.bad[from] = self.random.chance(chance);
            if !self.bad[from] {
                // A program that wakes late makes good the rate, but light does not travel faster for that.
                let left = self
                    .free_at
                    .max(now.saturating_before(Duration::from_millis(1)));
                self.flying[from].push_back((left + air.delay, frame));
            }
        }
    }

    fn land(&mut self, now: Instant) {
        for from in 0..2 {
            while self.flying[from].front().is_some_and(|next| next.0 <= now) {
                let Some((_, frame)) = self.flying[from].pop_front() else {
                    break;
                };
                let one = [(&frame[..], Endpoint::Ethernet([0; 6]))];
                let _ = self.sockets[1 - from].send(one.into_iter());
            }
        }
    }
}

/// Sends from host 0 to host 1 over the kernel's TCP. Returns the receiver's goodput in Mbit/s without the first second,
/// and whether every octet was right.
pub fn tcp(field: &Field, to: Ipv4Addr, congestion: &str, secs: f64) -> (f64, bool) {
    let port = 5201;
    let stop = AtomicBool::new(false);
    let listener = field.hosts[1]
        .run(|| TcpListener::bind((to, port)).unwrap())
        .unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener, secs));
        let stop = &stop;
        let send = move || {
            let Ok(mut stream) =
                TcpStream::connect_timeout(&SocketAddr::from((to, port)), Span::from_secs(8))
            else {
                return;
            };
            if let Err(error) = chappe_sys::set_congestion(&stream, congestion) {
                println!("{error}");
                return;
            }
            let _ = stream.set_write_timeout(Some(Span::from_millis(200)));
            let mut sent = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let block: Vec<u8> = (0..4096u64).map(|i| pattern(sent + i)).collect();
                match stream.write(&block) {
                    Ok(len) => sent += len as u64,
                    Err(error)
                        if matches!(
                            error.kind(),
                            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                        ) => {}
                    Err(_) => return,
                }
            }
            let _ = stream.shutdown(Shutdown::Both);
        };
        let sender = scope.spawn(move || field.hosts[0].run(send).unwrap());
        let result = receiver.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        drop(sender);
        result
    })
}

fn pattern(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

fn receive(listener: &TcpListener, secs: f64) -> (f64, bool) {
    let begun = Watch::now();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if begun.elapsed() > Span::from_secs(10) => return (0.0, true),
            Err(_) => thread::sleep(Span::from_millis(5)),
        }
    };
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Span::from_millis(100)))
        .unwrap();
    let (begun, mut place, mut counted, mut right) = (Watch::now(), 0u64, 0u64, true);
    let mut block = vec![0; 1 << 16];
    while begun.elapsed().as_secs_f64() < secs + 1.0 {
        let Ok(len) = stream.read(&mut block) else {
            continue;
        };
        if len == 0 {
            break;
        }
        right &= block[..len]
            .iter()
            .enumerate()
            .all(|(i, &octet)| octet == pattern(place + i as u64));
        place += len as u64;
        if begun.elapsed().as_secs_f64() > 1.0 {
            counted += len as u64;
        }
    }
    (counted as f64 * 8.0 / secs / 1e6, right)
}

/// Runs `work` in new namespaces, or skips it.
pub fn isolated(work: impl FnOnce()) {
    match isolate() {
        Ok(()) => work(),
        Err(error) => chappe_testkit::skip(error.to_string()),
    }
}
