//! Two TCP sockets under a sequence of calls, losses, repetitions and forgeries.
//!
//! Each octet of the input is an operation, some with an operand. Whatever the network does, what is read is a
//! prefix of what was written, unless a segment was forged; and a socket never asks to be woken in the past.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant};
use chappe_tcplp::tcp::{
    Config, Ecn, Endpoint, Flow, Heard, Listener, Local, Memory, NewReno, Range, Secret, Segment,
    Sent, Seq, Socket, State,
};

/// Segments that one drain may give: more than the window holds means a loop.
const DRAIN_MAX: usize = 100;
/// Segments in the air on one way; the oldest go when there are more.
const AIR_MAX: usize = 64;

/// Plays a connection as the octets script it.
pub fn feed(bytes: &[u8]) {
    read_by(bytes);
}

/// Plays the octets and says how many each side has read in the end.
pub fn read_by(bytes: &[u8]) -> [u64; 2] {
    let local = [1, 2].map(|n| Local {
        address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n)),
        secret: Secret::new([n as u8; 16]),
        config: Config::STANDARD,
    });
    let mut memory = [Lent::new(), Lent::new()];
    let [first, second] = &mut memory;
    let mut game = Game {
        ends: [
            End::new(&local[0], first.memory()),
            End::new(&local[1], second.memory()),
        ],
        now: Instant::from_millis(1),
        forged: false,
        near: (Seq::new(0), Seq::new(0)),
    };
    let server = Endpoint::new(local[1].address, 80);
    let opened = game.ends[0].socket.connect(game.now, 50_000, server);
    opened.expect("the socket is closed");
    game.drain();
    let mut script = bytes.iter().copied();
    while let Some(operation) = script.next() {
        game.play(operation, &mut script);
        game.drain();
        game.check();
    }
    game.ends.map(|end| end.read)
}

/// What a socket is lent.
struct Lent {
    send: [u8; 2000],
    receive: [u8; 1500],
    ranges: [Range; 4],
    flight: [Sent; 6],
}

impl Lent {
    fn new() -> Lent {
        Lent {
            send: [0; 2000],
            receive: [0; 1500],
            ranges: [Range::default(); 4],
            flight: [Sent::default(); 6],
        }
    }

    fn memory(&mut self) -> Memory<'_> {
        Memory {
            send: &mut self.send,
            receive: &mut self.receive,
            ranges: &mut self.ranges,
            flight: &mut self.flight,
        }
    }
}

/// One socket, and what is on its way to it.
struct End<'a> {
    socket: Socket<'a, NewReno>,
    air: VecDeque<Vec<u8>>,
    written: u64,
    read: u64,
}

impl<'a> End<'a> {
    fn new(local: &'a Local, memory: Memory<'a>) -> End<'a> {
        End {
            socket: Socket::new(local, memory, NewReno).expect("the sizes are sound"),
            air: VecDeque::new(),
            written: 0,
            read: 0,
        }
    }
}

/// The octet at a place of either stream.
fn octet(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

struct Game<'a> {
    ends: [End<'a>; 2],
    now: Instant,
    forged: bool,
    /// Sequence and acknowledgement number of the segment that was delivered last.
    near: (Seq, Seq),
}

impl Game<'_> {
    fn play(&mut self, operation: u8, script: &mut impl Iterator<Item = u8>) {
        let side = usize::from(operation >> 7);
        let mut operand = || usize::from(script.next().unwrap_or(0));
        match operation & 15 {
            0 => self.write(side, operand() * 8),
            1 => self.read(side, operand() * 8),
            2..=4 => self.deliver(side, Ecn::NotCapable),
            5 => self.deliver(side, Ecn::Marked),
            6 => drop(self.ends[side].air.pop_front()),
            7 => {
                let first = self.ends[side].air.front().cloned();
                self.ends[side].air.extend(first);
            }
            8 => {
                let air = &mut self.ends[side].air;
                let by = operand() % air.len().max(1);
                air.rotate_left(by);
            }
            9 => self.bend(side, operand(), operand()),
            10 => self.pass(Duration::from_millis(operand() as u64)),
            11 => self.pass(Duration::from_millis(operand() as u64 * 300)),
            // Rarely, or most scripts would be over before they have begun.
            12..=14 => match operand() {
                0..4 => self.ends[side].socket.shutdown(),
                4..8 => self.ends[side].socket.close(self.now),
                8 => self.ends[side].socket.abort(),
                _ => self.deliver(side, Ecn::NotCapable),
            },
            _ => {
                let len = operand() % 64;
                let forged: Vec<u8> = (0..len).map(|_| operand() as u8).collect();
                self.forge(side, &forged);
            }
        }
    }

    fn write(&mut self, side: usize, len: usize) {
        let end = &mut self.ends[side];
        let data: Vec<u8> = (end.written..end.written + len as u64).map(octet).collect();
        end.written += end.socket.write(&data) as u64;
    }

    fn read(&mut self, side: usize, len: usize) {
        let mut data = vec![0; len];
        let end = &mut self.ends[side];
        let got = end.socket.read(&mut data);
        if !self.forged {
            for (place, &value) in (end.read..).zip(&data[..got]) {
                assert_eq!(value, octet(place), "octet {place} of side {side}");
            }
        }
        end.read += got as u64;
    }

    fn deliver(&mut self, side: usize, ecn: Ecn) {
        let Some(bytes) = self.ends[side].air.pop_front() else {
            return;
        };
        let flow = self.flow(side);
        if let Ok(segment) = Segment::parse_checked(&bytes, &flow) {
            self.near = (segment.seq, segment.ack);
            self.arrive(side, &segment, ecn);
        }
    }

    /// A segment that only an attacker on the path can make: right addresses and checksum, any contents.
    fn forge(&mut self, side: usize, bytes: &[u8]) {
        let Ok(segment) = Segment::parse(bytes) else {
            return;
        };
        let flow = self.flow(side);
        // Near the numbers that are in use, or nothing would ever come of it.
        let (seq, ack) = self.near;
        let segment = Segment {
            source_port: flow.remote.port,
            destination_port: flow.local.port,
            seq: Seq::new(seq.bits().wrapping_add(segment.seq.bits() % 4096)),
            ack: Seq::new(ack.bits().wrapping_add(segment.ack.bits() % 4096)),
            ..segment
        };
        self.forged = true;
        self.arrive(side, &segment, Ecn::NotCapable);
    }

    fn arrive(&mut self, side: usize, segment: &Segment<'_>, ecn: Ecn) {
        let end = &mut self.ends[side];
        let listens = side == 1 && end.socket.state() == State::Closed && end.written == 0;
        if listens && Listener::new(80, 1).hear(segment) == Heard::Syn {
            let flow = self.ends[0].socket.flow();
            // Refused if the socket is in use, which it is not.
            let _ = self.ends[1].socket.accept(self.now, flow.local, segment);
            return;
        }
        let _ = end.socket.handle_segment(self.now, segment, ecn);
    }

    fn flow(&self, side: usize) -> Flow {
        let flow = self.ends[0].socket.flow();
        match side {
            0 => flow,
            _ => Flow::new(flow.remote, flow.local),
        }
    }

    fn bend(&mut self, side: usize, place: usize, mask: usize) {
        let Some(bytes) = self.ends[side].air.front_mut() else {
            return;
        };
        let flow = Flow::new(
            Endpoint::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)), 0),
            Endpoint::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)), 0),
        );
        let len = bytes.len().max(1);
        let sound = Segment::parse_checked(bytes, &flow).is_ok();
        if let Some(octet) = bytes.get_mut(place % len) {
            *octet ^= mask as u8;
        }
        // Two bends may cancel each other in the checksum: that is a forgery.
        self.forged |= !sound && Segment::parse_checked(bytes, &flow).is_ok();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for end in &mut self.ends {
            end.socket.handle_timeout(self.now);
        }
    }

    fn drain(&mut self) {
        for side in 0..2 {
            let mut buffer = [0; 2048];
            for sent in 0.. {
                assert!(sent < DRAIN_MAX, "side {side} does not stop sending");
                let Some(sent) = self.ends[side].socket.poll_segment(self.now, &mut buffer) else {
                    break;
                };
                let air = &mut self.ends[1 - side].air;
                air.push_back(buffer[..sent.len].to_vec());
                if air.len() > AIR_MAX {
                    air.pop_front();
                }
            }
        }
    }

    fn check(&self) {
        for (side, end) in self.ends.iter().enumerate() {
            if let Some(wake) = end.socket.poll_timeout() {
                assert!(wake.at > self.now, "side {side}: {wake:?} at {}", self.now);
            }
            assert!(self.forged || end.read <= self.ends[1 - side].written);
        }
    }
}
