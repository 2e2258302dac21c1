//! A server for iperf3's TCP test: one test at a time, up to two streams, either direction.
//!
//! The protocol is that of iperf 3.x, whose source is its only description. Every connection begins with the client's
//! cookie of 37 octets. The first connection is the control connection; those with the same cookie are streams.
//!
//! ```text
//! client                               server
//!   cookie                 ---------->
//!                          <----------  9  exchange parameters
//!   length, JSON           ---------->
//!                          <----------  10 create streams
//!   cookie, on each stream ---------->
//!                          <----------  1, 2  start, running
//!   data ...  or           ---------->  (`-R`: <----------)
//!   4  end                 ---------->
//!                          <----------  13 exchange results
//!   length, JSON           ---------->
//!                          <----------  length, JSON, 14 display them
//!   16 done                ---------->
//! ```
//!
//! Not supported: UDP, `--bidir`, more than two streams (the client gets an error), authentication, `--get-server-output`.

use core::fmt::Write;

use chappe_core::{Duration, Instant};

use super::bulk::feed;
use super::site::Text;
use crate::tcp::{Congestion, Flow, Socket};

const COOKIE: usize = 37;
/// The most streams of a test.
const STREAMS_MAX: usize = 2;
/// Octets of the client's parameters that are read; iperf 3.16 sends some 250.
const PARAMETERS_MAX: usize = 512;
/// A JSON length above this is refused.
const JSON_MAX: u32 = 1 << 16;
const RESULTS_MAX: usize = 448;

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const CLIENT_TERMINATE: u8 = 12;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
const SERVER_ERROR: u8 = 0xfe;
const ACCESS_DENIED: u8 = 0xff;
/// iperf3's number for "an option you are trying to set is not implemented yet".
const NOT_IMPLEMENTED: u32 = 13;

/// The running test, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    control: Option<Flow>,
    cookie: [u8; COOKIE],
    phase: Phase,
    /// What is to be sent on the control connection, and the octets sent of it.
    out: Text<RESULTS_MAX>,
    sent: usize,
    /// The JSON being received in pieces: its length, and the octets received.
    length: Option<u32>,
    taken: u32,
    parameters: [u8; PARAMETERS_MAX],
    wanted: usize,
    reverse: bool,
    streams: [Option<(Flow, u64)>; STREAMS_MAX],
    began: Instant,
    lasted: Duration,
    /// When a stream last moved data. The control connection is silent during the test.
    pub moved: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Parameters,
    Streams,
    Running,
    Results,
    Done,
    Refused,
}

/// One connection to iperf3's port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    cookie: [u8; COOKIE],
    read: usize,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Unknown,
    Control,
    Stream(usize),
    Denied,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            cookie: [0; COOKIE],
            read: 0,
            role: Role::Unknown,
        }
    }
}

impl Test {
    pub const NONE: Test = Test {
        control: None,
        cookie: [0; COOKIE],
        phase: Phase::Done,
        out: Text::EMPTY,
        sent: 0,
        length: None,
        taken: 0,
        parameters: [0; PARAMETERS_MAX],
        wanted: 1,
        reverse: false,
        streams: [None; STREAMS_MAX],
        began: Instant::ZERO,
        lasted: Duration::ZERO,
        moved: Instant::ZERO,
    };

    /// Whether the streams have ended.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Results | Phase::Done | Phase::Refused)
    }

    /// A connection ended: if it was the control connection, the test is over.
    pub fn ended(&mut self, flow: &Flow) {
        if self.control == Some(*flow) {
            self.control = None;
        }
    }

    fn octets(&self) -> u64 {
        let each = self.streams.iter().flatten().map(|(_, octets)| *octets);
        each.fold(0, u64::saturating_add)
    }

    fn begin(&mut self, flow: Flow, cookie: [u8; COOKIE]) {
        *self = Test {
            control: Some(flow),
            cookie,
            phase: Phase::Parameters,
            ..Test::NONE
        };
        self.say(PARAM_EXCHANGE);
    }

    fn say(&mut self, state: u8) {
        self.put(&[state]);
    }

    fn put(&mut self, octets: &[u8]) {
        if self.sent == self.out.as_bytes().len() {
            (self.out, self.sent) = (Text::EMPTY, 0);
        }
        // The longest output, results and two states, fits: a test writes it.
        let _ = self.out.push(octets);
    }

    fn join(&mut self, flow: Flow, now: Instant) -> Role {
        let free = self.streams.iter().position(Option::is_none);
        let Some(place) = free.filter(|place| *place < self.wanted) else {
            return Role::Denied;
        };
        if let Some(stream) = self.streams.get_mut(place) {
            *stream = Some((flow, 0));
        }
        if self.streams.iter().flatten().count() == self.wanted {
            self.phase = Phase::Running;
            self.began = now;
            self.say(TEST_START);
            self.say(TEST_RUNNING);
        }
        Role::Stream(place)
    }

    /// Reads a length and that many octets of JSON from the control connection. True when they are complete.
    fn take_json<C: Congestion>(&mut self, socket: &mut Socket<'_, C>) -> bool {
        if self.length.is_none() {
            let mut four = [0; 4];
            let (front, back) = socket.readable();
            if front.len() + back.len() < 4 {
                return false;
            }
            socket.read(&mut four);
            (self.length, self.taken) = (Some(u32::from_be_bytes(four)), 0);
        }
        let length = self.length.unwrap_or(0);
        if length > JSON_MAX {
            self.refuse();
            return false;
        }
        let (front, back) = socket.readable();
        let left = (length - self.taken) as usize;
        let mut now = 0;
        for (&from, at) in front
            .iter()
            .chain(back)
            .zip(self.taken as usize..)
            .take(left)
        {
            if let Some(place) = self.parameters.get_mut(at) {
                *place = from;
            }
            now += 1;
        }
        socket.consume(now);
        self.taken += now as u32;
        if self.taken < length {
            return false;
        }
        self.length = None;
        true
    }

    fn refuse(&mut self) {
        self.phase = Phase::Refused;
        self.say(SERVER_ERROR);
        self.put(&NOT_IMPLEMENTED.to_be_bytes());
        self.put(&[0; 4]);
    }

    fn accept_parameters(&mut self) {
        let len = (self.taken as usize).min(PARAMETERS_MAX);
        let json = self.parameters.get(..len).unwrap_or_default();
        let is = |key: &[u8]| value_of(json, key).is_some_and(|value| value.starts_with(b"true"));
        let streams = value_of(json, b"\"parallel\"")
            .and_then(number)
            .unwrap_or(1);
        let can = !is(b"\"udp\"") && !is(b"\"sctp\"") && !is(b"\"bidirectional\"");
        if !can || !(1..=STREAMS_MAX as u32).contains(&streams) {
            return self.refuse();
        }
        self.wanted = streams as usize;
        self.reverse = is(b"\"reverse\"");
        self.phase = Phase::Streams;
        self.say(CREATE_STREAMS);
    }

    fn results(&self) -> Text<RESULTS_MAX> {
        let mut text = Text::EMPTY;
        let end = self.lasted.nanos() / 1_000_000;
        let written = self.write_results(end, &mut text);
        debug_assert!(written.is_ok(), "results are longer than their room");
        text
    }

    fn write_results(&self, end: u64, text: &mut Text<RESULTS_MAX>) -> core::fmt::Result {
        text.write_str(
            "{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":0,\"streams\":[",
        )?;
        for (place, (_, octets)) in self.streams.iter().flatten().enumerate() {
            // iperf3 numbers its streams 1, 3, 4, ...
            let id = if place == 0 { 1 } else { place + 2 };
            let comma = if place == 0 { "" } else { "," };
            write!(
                text,
                "{comma}{{\"id\":{id},\"bytes\":{octets},\"retransmits\":-1,\"jitter\":0,\"errors\":0,\"packets\":0,\
                 \"start_time\":0,\"end_time\":{}.{:03}}}",
                end / 1000,
                end % 1000
            )?;
        }
        text.write_str("]}")
    }

    fn serve_control<C: Congestion>(&mut self, now: Instant, socket: &mut Socket<'_, C>) {
        match self.phase {
            Phase::Parameters => {
                if self.take_json(socket) {
                    self.accept_parameters();
                }
            }
            Phase::Running => {
                if let Some(state) = one(socket) {
                    self.on_running_state(now, state);
                }
            }
            Phase::Results => {
                if self.take_json(socket) {
                    let results = self.results();
                    let length = results.as_bytes().len() as u32;
                    self.put(&length.to_be_bytes());
                    self.put(results.as_bytes());
                    self.say(DISPLAY_RESULTS);
                    self.phase = Phase::Done;
                }
            }
            Phase::Streams | Phase::Done | Phase::Refused => {
                if one(socket).is_some_and(|state| state == CLIENT_TERMINATE || state == IPERF_DONE)
                {
                    socket.shutdown();
                }
            }
        }
        let rest = self.out.as_bytes().get(self.sent..).unwrap_or_default();
        self.sent += socket.write(rest);
        if self.phase == Phase::Refused && self.sent == self.out.as_bytes().len() {
            socket.shutdown();
        }
    }

    fn on_running_state(&mut self, now: Instant, state: u8) {
        match state {
            TEST_END => {
                self.lasted = now.saturating_since(self.began);
                self.phase = Phase::Results;
                self.say(EXCHANGE_RESULTS);
            }
            CLIENT_TERMINATE => self.phase = Phase::Done,
            _ => {}
        }
    }

    fn serve_stream<C: Congestion>(
        &mut self,
        now: Instant,
        place: usize,
        socket: &mut Socket<'_, C>,
    ) -> u64 {
        let (front, back) = socket.readable();
        let came = front.len() + back.len();
        socket.consume(came);
        let own = self.streams.get_mut(place).and_then(Option::as_mut);
        // A stream of an earlier test is not counted.
        let Some((_, octets)) = own.filter(|(flow, _)| *flow == socket.flow()) else {
            return 0;
        };
        if !self.reverse {
            *octets = octets.saturating_add(came as u64);
            return came as u64;
        }
        if matches!(self.phase, Phase::Results | Phase::Done) {
            // The client reads the stream to its end before it reads the results. Data written but not sent yet would load
            // the air for long after the test.
            socket.close(now);
            return came as u64;
        }
        if self.phase == Phase::Running {
            let written = feed(socket, *octets..u64::MAX);
            *octets = octets.saturating_add(written);
        }
        0
    }
}

impl Connection {
    /// Serves one connection; returns the octets that a stream brought.
    pub fn serve<C: Congestion>(
        &mut self,
        now: Instant,
        socket: &mut Socket<'_, C>,
        test: &mut Test,
    ) -> u64 {
        if self.role == Role::Unknown {
            let room = self.cookie.get_mut(self.read..).unwrap_or_default();
            self.read += socket.read(room);
            if self.read < COOKIE {
                return 0;
            }
            let flow = socket.flow();
            // A test that has sent its results makes room for a new one, even if its control connection is still open.
            let free = test.control.is_none() || matches!(test.phase, Phase::Done | Phase::Refused);
            self.role = if free {
                test.begin(flow, self.cookie);
                Role::Control
            } else if test.cookie == self.cookie && test.phase == Phase::Streams {
                test.join(flow, now)
            } else {
                Role::Denied
            };
            if self.role == Role::Denied {
                socket.write(&[ACCESS_DENIED]);
                socket.shutdown();
            }
        }
        match self.role {
            Role::Control if test.control == Some(socket.flow()) => {
                test.serve_control(now, socket);
                0
            }
            // Another test has begun since: discard.
            Role::Control => {
                let (front, back) = socket.readable();
                let rest = front.len() + back.len();
                socket.consume(rest);
                0
            }
            Role::Stream(place) => {
                let before = test.octets();
                let came = test.serve_stream(now, place, socket);
                if test.octets() != before {
                    test.moved = now;
                }
                came
            }
            Role::Unknown | Role::Denied => 0,
        }
    }
}

fn one<C: Congestion>(socket: &mut Socket<'_, C>) -> Option<u8> {
    let mut octet = [0];
    (socket.read(&mut octet) == 1).then_some(octet[0])
}

/// The text behind a key of flat JSON; `key` includes its quotes.
fn value_of<'j>(json: &'j [u8], key: &[u8]) -> Option<&'j [u8]> {
    let at = json.windows(key.len()).position(|here| here == key)?;
    let rest = json.get(at + key.len()..)?.trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii_start())
}

fn number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|octet| octet.is_ascii_digit());
    digits.take(9).fold(None, |so_far, digit| {
        Some(so_far.unwrap_or(0) * 10 + u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Endpoint;
    use core::net::{IpAddr, Ipv6Addr};

    #[test]
    fn values_of_flat_json_are_found() {
        let json = br#"{"tcp":true,"omit":0,"parallel": 12 ,"reverse":true}"#;
        assert_eq!(value_of(json, b"\"parallel\"").and_then(number), Some(12));
        assert!(value_of(json, b"\"reverse\"").unwrap().starts_with(b"true"));
        assert_eq!(value_of(json, b"\"udp\""), None);
        assert_eq!(value_of(b"{\"udp\"", b"\"udp\""), None);
        assert_eq!(number(b"x"), None);
    }

    #[test]
    fn the_longest_results_fit() {
        let end = Endpoint::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 1);
        let mut test = Test::NONE;
        test.streams = [Some((Flow::new(end, end), u64::MAX)); STREAMS_MAX];
        let mut text = Text::EMPTY;
        assert_eq!(test.write_results(u64::MAX, &mut text), Ok(()));
        // Length, results and the state after them go out together.
        assert!(text.as_bytes().len() + 5 <= RESULTS_MAX);
    }
}
