//! Two TCP sockets in one program, with a wire between them that loses segments by a script, without an operating
//! system or an allocator. What goes over the wire is reported segment by segment, so that two processors can be compared,
//! and each call can be measured.

#![no_std]

mod wire;

use core::net::{IpAddr, Ipv6Addr};

use chappe_core::{Duration, Instant, Wake};
use chappe_tcplp::tcp::{
    Config, Ecn, Endpoint, Flow, Local, Memory, NewReno, Range, Secret, Segment, Sent, Socket,
    State,
};

use wire::Wire;

/// Octets of the stream: 200 segments of 462, as in five frames of 802.15.4.
pub const OCTETS: usize = 200 * 462;
/// Payload of a full segment beside its timestamps.
const PAYLOAD: usize = 462;
/// Segments that each buffer holds.
const WINDOW: usize = 4;
const CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
/// Nothing takes longer than this.
const LIMIT: Instant = Instant::from_millis(600_000);

/// One end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Opens the connection and sends the stream.
    Client = 0,
    /// Accepts it and reads.
    Server = 1,
}

/// What was done, for what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The application put octets into the send buffer.
    Write,
    /// A segment with data was made: header, checksum, copy to the driver's buffer.
    SendData,
    /// A segment without data was made.
    SendAck,
    /// A segment with data was read, checked and taken in.
    TakeData,
    /// A segment without data was read, checked and taken in.
    TakeAck,
    /// The application took octets out of the receive buffer.
    Read,
    /// A socket was asked for a segment and had none, or its deadlines were looked at.
    Idle,
}

impl Work {
    /// All of it, in the order of its numbers.
    pub const ALL: [Work; 7] = [
        Work::Write,
        Work::SendData,
        Work::SendAck,
        Work::TakeData,
        Work::TakeAck,
        Work::Read,
        Work::Idle,
    ];
}

/// What watches the two.
pub trait Watcher {
    /// A segment was sent, whether or not the wire loses it.
    fn sends(&mut self, at: Instant, end: End, segment: &[u8]);

    /// Something that is measured is about to begin.
    fn begins(&mut self) {}

    /// It has been done.
    fn ends(&mut self, _work: Work) {}
}

/// How the connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Every octet arrived as it was written, and both ends closed in order.
    pub complete: bool,
    /// Segments on the wire.
    pub segments: u32,
    /// When the last of them was sent.
    pub at: Instant,
}

/// The octet at this place of the stream.
fn octet(at: usize) -> u8 {
    (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]
}

/// Plays a transfer in which one segment in `lost` is lost; none if that is zero.
pub fn play(lost: u64, watcher: &mut impl Watcher) -> Option<Outcome> {
    let config = Config {
        mss: (PAYLOAD + 12) as u16,
        time_wait: Duration::from_secs(1),
        ..Config::STANDARD
    };
    let local = |address, secret| Local {
        address,
        secret: Secret::new([secret; 16]),
        config,
    };
    let (here, there) = (local(CLIENT, 1), local(SERVER, 2));
    let mut rings = [[0; WINDOW * PAYLOAD]; 4];
    let mut ranges = [[Range::default(); 4]; 2];
    let mut flights = [[Sent::default(); 8]; 2];
    let ([a, b, c, d], [e, f], [g, h]) = (&mut rings, &mut ranges, &mut flights);
    let client = Memory {
        send: a,
        receive: b,
        ranges: e,
        flight: g,
    };
    let server = Memory {
        send: c,
        receive: d,
        ranges: f,
        flight: h,
    };
    let mut pair = Pair {
        ends: [
            Socket::new(&here, client, NewReno).ok()?,
            Socket::new(&there, server, NewReno).ok()?,
        ],
        wire: Wire::new(lost),
        written: 0,
        read: 0,
        sound: true,
        outcome: Outcome {
            complete: false,
            segments: 0,
            at: Instant::ZERO,
        },
    };
    let start = Instant::from_millis(1);
    let [client, _] = &mut pair.ends;
    client
        .connect(start, 50_000, Endpoint::new(there.address, 80))
        .ok()?;
    pair.run(start, watcher);
    Some(pair.outcome)
}

struct Pair<'a> {
    ends: [Socket<'a, NewReno>; 2],
    wire: Wire,
    written: usize,
    read: usize,
    /// What was read is what was written.
    sound: bool,
    outcome: Outcome,
}

impl Pair<'_> {
    fn run(&mut self, start: Instant, watcher: &mut impl Watcher) {
        let mut now = start;
        while now < LIMIT {
            self.serve(now, watcher);
            self.send(now, End::Client, watcher);
            self.send(now, End::Server, watcher);
            let wakes = self.ends.iter().map(Socket::poll_timeout);
            let wake = wakes.fold(None, Wake::earlier).map(|wake| wake.at);
            let Some(next) = [wake, self.wire.next()].into_iter().flatten().min() else {
                break;
            };
            now = now.max(next);
            while let Some((to, len)) = self.wire.take(now) {
                self.hand(now, to, len, watcher);
                self.serve(now, watcher);
            }
            for socket in &mut self.ends {
                watcher.begins();
                socket.handle_timeout(now);
                watcher.ends(Work::Idle);
            }
        }
        let closed = |socket: &Socket<'_, NewReno>| {
            socket.state() == State::Closed && socket.failure().is_none()
        };
        self.outcome.complete = self.sound && self.read == OCTETS && self.ends.iter().all(closed);
    }

    /// Both applications: one writes what fits and closes at the end, one reads what came.
    fn serve(&mut self, now: Instant, watcher: &mut impl Watcher) {
        let [client, server] = &mut self.ends;
        let mut buffer = [0; PAYLOAD];
        while client.writable() >= PAYLOAD && self.written < OCTETS {
            for (n, place) in buffer.iter_mut().enumerate() {
                *place = octet(self.written + n);
            }
            watcher.begins();
            self.written += client.write(&buffer);
            watcher.ends(Work::Write);
        }
        if self.written == OCTETS && client.may_write() && client.state() == State::Established {
            client.shutdown();
        }
        while !server.readable().0.is_empty() {
            watcher.begins();
            let len = server.read(&mut buffer);
            watcher.ends(Work::Read);
            for (n, got) in buffer.iter().take(len).enumerate() {
                self.sound &= *got == octet(self.read + n);
            }
            self.read += len;
        }
        if server.at_end() && server.may_write() {
            server.close(now);
        }
    }

    /// Puts on the wire what an end has to send.
    fn send(&mut self, now: Instant, end: End, watcher: &mut impl Watcher) {
        let mut buffer = [0; wire::LONGEST];
        loop {
            let Some(socket) = self.ends.get_mut(end as usize) else {
                return;
            };
            watcher.begins();
            let Some(sent) = socket.poll_segment(now, &mut buffer) else {
                watcher.ends(Work::Idle);
                return;
            };
            let data = sent.len > PAYLOAD;
            watcher.ends(if data { Work::SendData } else { Work::SendAck });
            let segment = buffer.get(..sent.len).unwrap_or_default();
            watcher.sends(now, end, segment);
            self.outcome.segments += 1;
            self.outcome.at = now;
            self.wire.put(now, 1 - end as usize, segment);
        }
    }

    /// An end hears the segment that the wire has delivered.
    fn hand(&mut self, now: Instant, to: usize, len: usize, watcher: &mut impl Watcher) {
        let bytes = self.wire.delivered(len);
        let Some(socket) = self.ends.get_mut(to) else {
            return;
        };
        watcher.begins();
        // The pseudo header has no ports, and the sum is the same in both directions.
        let flow = Flow::new(Endpoint::new(CLIENT, 0), Endpoint::new(SERVER, 0));
        let Ok(segment) = Segment::parse_checked(bytes, &flow) else {
            self.sound = false;
            return;
        };
        if socket.state() == State::Closed && to == End::Server as usize && self.read == 0 {
            let client = Endpoint::new(CLIENT, segment.source_port);
            self.sound &= socket.accept(now, client, &segment).is_ok();
        } else {
            socket.handle_segment(now, &segment, Ecn::NotCapable);
        }
        let data = !segment.payload.is_empty();
        watcher.ends(if data { Work::TakeData } else { Work::TakeAck });
    }
}
