//! The same random segments and calls for this TCP and for smoltcp, in virtual time: both must acknowledge, send and deliver
//! the same, and be in the same state, after every step.
//!
//! The random peer respects the windows that it is offered, and avoids the known differences. Each of these has a separate
//! test, which states which stack follows the standard. Any other difference fails, with the seed and the steps that led
//! there.

use crate::support;

use crate::rival;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed, Stream};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{
    Config, Ecn, Endpoint, Flags, Flow, Options, Segment, Seq, State, Unlimited,
};
use smoltcp::socket::tcp::State as RivalState;

use rival::Rival;
use support::host::{Host, Sizes, address};
use support::ip;

const PORT: u16 = 80;
const PEER: u16 = 50_000;
/// The peer's initial sequence number, shortly before the wrap.
const ISS: u32 = u32::MAX - 2_000;
/// The receive window that the peer announces, in octets.
const WINDOW: u16 = 60_000;
const MSS: usize = 500;
/// Both receive buffers, and both send buffers.
const BUFFER: usize = 4_000;

/// A step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The peer sends `len` octets of its stream from `at` on.
    Data {
        at: usize,
        len: usize,
        fin: bool,
    },
    /// The peer acknowledges up to this octet of the stack's stream.
    Ack {
        to: u32,
    },
    /// A segment without data, with these flags, `ahead` octets from the next number expected.
    Bare {
        flags: Flags,
        ahead: u32,
    },
    Write {
        len: usize,
    },
    Read {
        len: usize,
    },
    Shutdown,
    Wait {
        millis: u64,
    },
}

/// The observable state of a stack, with sequence numbers relative to the initial ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The next number expected of the peer, as last acknowledged.
    acknowledged: u32,
    /// What was sent, in order, each octet once.
    sent: Vec<u8>,
    fin_sent: bool,
    reset: bool,
    /// What the application read.
    read: Vec<u8>,
    state: &'static str,
}

enum Stack {
    Ours(Box<Host>),
    Rival(Box<Rival>),
}

/// A stack, and its peer's knowledge of it.
struct Subject {
    stack: Stack,
    iss: Option<Seq>,
    /// The right edge of the window offered, relative to the peer's first octet.
    edge: u32,
    seen: Seen,
}

impl Subject {
    fn both() -> [Subject; 2] {
        let config = Config {
            mss: MSS as u16,
            delayed_ack: Duration::ZERO,
            nagle: false,
            sack: false,
            timestamps: false,
            ecn: false,
            ..Config::STANDARD
        };
        let sizes = Sizes {
            send: BUFFER,
            receive: BUFFER,
            ranges: 32,
            flight: 64,
        };
        let mut ours = Host::new(1, config, sizes, Any::Unlimited(Unlimited));
        ours.listen(PORT, 1);
        let mut rival = Rival::new(address(1), address(2), [BUFFER; 2], MSS);
        rival.unhurried();
        rival.listen(PORT);
        [Stack::Ours(Box::new(ours)), Stack::Rival(Box::new(rival))].map(|stack| Subject {
            stack,
            iss: None,
            edge: 0,
            seen: Seen::default(),
        })
    }

    fn hand(&mut self, now: Instant, segment: &Segment<'_>) {
        let flow = Flow::new(
            Endpoint::new(address(2), PEER),
            Endpoint::new(address(1), PORT),
        );
        let mut packet = vec![0; 2048];
        let len = segment
            .emit(&flow, &mut packet[ip::HEADER..])
            .expect("it fits");
        ip::emit(&mut packet, address(2), address(1), Ecn::NotCapable, len);
        packet.truncate(ip::HEADER + len);
        match &mut self.stack {
            Stack::Ours(host) => host.handle_packet(now, &packet),
            Stack::Rival(rival) => rival.hand(now, &packet),
        }
        self.listen(now);
    }

    /// Takes note of everything that it sends now.
    fn listen(&mut self, now: Instant) {
        loop {
            let packet = match &mut self.stack {
                Stack::Ours(host) => {
                    host.handle_timeout(now);
                    let mut buffer = vec![0; 2048];
                    host.poll_packet(now, &mut buffer).map(|len| {
                        buffer.truncate(len);
                        buffer
                    })
                }
                Stack::Rival(rival) => {
                    rival.work(now);
                    rival.packet()
                }
            };
            let Some(packet) = packet else {
                break;
            };
            let packet = ip::parse(&packet).expect("IPv6");
            let segment = Segment::parse(packet.segment).expect("TCP");
            self.note(&segment);
        }
        self.seen.state = match &self.stack {
            Stack::Ours(host) => host.sockets.first().map_or("CLOSED", |s| s.state().name()),
            Stack::Rival(rival) => name(rival.state()),
        };
    }

    fn note(&mut self, segment: &Segment<'_>) {
        if segment.flags.has(Flags::RST) {
            self.seen.reset = true;
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.iss = Some(segment.seq);
        }
        let Some(iss) = self.iss else {
            return;
        };
        if segment.flags.has(Flags::ACK) {
            self.seen.acknowledged = segment.ack.since(Seq::new(ISS));
            let edge = (segment.ack + u32::from(segment.window)).since(Seq::new(ISS) + 1);
            self.edge = self.edge.max(edge);
        }
        let start = segment.seq.since(iss + 1) as usize;
        if segment.flags.has(Flags::SYN) || start > self.seen.sent.len() {
            return;
        }
        let known = self.seen.sent.len() - start;
        let new = segment.payload.get(known..).unwrap_or_default();
        let again = &segment.payload[..known.min(segment.payload.len())];
        let before = &self.seen.sent[start..start + again.len()];
        assert_eq!(again, before, "a retransmission with other contents");
        self.seen.sent.extend_from_slice(new);
        self.seen.fin_sent |= segment.flags.has(Flags::FIN);
    }

    fn write(&mut self, data: &[u8]) -> usize {
        match &mut self.stack {
            Stack::Ours(host) => host.sockets.first_mut().map_or(0, |s| s.write(data)),
            Stack::Rival(rival) => rival.write(data),
        }
    }

    fn read(&mut self, len: usize) {
        let mut buffer = vec![0; len];
        let len = match &mut self.stack {
            Stack::Ours(host) => host.sockets.first_mut().map_or(0, |s| s.read(&mut buffer)),
            Stack::Rival(rival) => rival.read(&mut buffer),
        };
        self.seen.read.extend_from_slice(&buffer[..len]);
    }

    fn shutdown(&mut self) {
        match &mut self.stack {
            Stack::Ours(host) => host.sockets.iter_mut().for_each(|s| s.shutdown()),
            Stack::Rival(rival) => rival.socket().close(),
        }
    }
}

fn name(state: RivalState) -> &'static str {
    match state {
        RivalState::Closed => State::Closed.name(),
        RivalState::Listen => "LISTEN",
        RivalState::SynSent => State::SynSent.name(),
        RivalState::SynReceived => State::SynReceived.name(),
        RivalState::Established => State::Established.name(),
        RivalState::FinWait1 => State::FinWait1.name(),
        RivalState::FinWait2 => State::FinWait2.name(),
        RivalState::CloseWait => State::CloseWait.name(),
        RivalState::Closing => State::Closing.name(),
        RivalState::LastAck => State::LastAck.name(),
        RivalState::TimeWait => State::TimeWait.name(),
    }
}

/// Both stacks under one script.
struct Pair {
    subjects: [Subject; 2],
    now: Instant,
    /// The peer's stream, and the stacks'.
    theirs: Vec<u8>,
    own: Vec<u8>,
    written: usize,
    /// What the peer has acknowledged of the stacks' streams.
    acked: u32,
}

impl Pair {
    /// Connected: the peer has sent a SYN and the ACK of the answer.
    fn connected(random: &mut Stream) -> Pair {
        let mut octets = |len| {
            let mut data = vec![0; len];
            random.fill(&mut data);
            data
        };
        let mut pair = Pair {
            subjects: Subject::both(),
            now: Instant::from_millis(10),
            theirs: octets(200_000),
            own: octets(200_000),
            written: 0,
            acked: 0,
        };
        let options = Options {
            mss: Some(MSS as u16),
            ..Options::default()
        };
        pair.peer(Flags::SYN, 0, &[], options);
        pair.peer(Flags::ACK, 1, &[], Options::default());
        pair
    }

    /// The peer sends a segment to both: `at` is relative to its initial number.
    fn peer(&mut self, flags: Flags, at: u32, payload: &[u8], options: Options) {
        for subject in &mut self.subjects {
            let ack = subject
                .iss
                .map_or(Seq::default(), |iss| iss + 1 + self.acked);
            let segment = Segment {
                source_port: PEER,
                destination_port: PORT,
                seq: Seq::new(ISS) + at,
                ack,
                flags,
                window: WINDOW,
                urgent: 0,
                options,
                payload,
            };
            subject.hand(self.now, &segment);
        }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Data { at, len, fin } => {
                let payload = self.theirs[at..at + len].to_vec();
                let flags = match fin {
                    true => Flags::ACK | Flags::FIN,
                    false => Flags::ACK,
                };
                self.peer(flags, 1 + at as u32, &payload, Options::default());
            }
            Step::Ack { to } => {
                self.acked = self.acked.max(to);
                let at = self.subjects[0].seen.acknowledged;
                self.peer(Flags::ACK, at, &[], Options::default());
            }
            Step::Bare { flags, ahead } => {
                let at = self.subjects[0].seen.acknowledged + ahead;
                self.peer(flags, at, &[], Options::default());
            }
            Step::Write { len } => {
                let data = &self.own[self.written..self.written + len];
                let taken = self.subjects.each_mut().map(|subject| subject.write(data));
                assert_eq!(taken[0], taken[1], "writable");
                self.written += taken[0];
            }
            Step::Read { len } => self
                .subjects
                .each_mut()
                .map(|subject| subject.read(len))
                .into_iter()
                .collect(),
            Step::Shutdown => self
                .subjects
                .each_mut()
                .map(Subject::shutdown)
                .into_iter()
                .collect(),
            Step::Wait { millis } => self.now += Duration::from_millis(millis),
        }
        for subject in &mut self.subjects {
            subject.listen(self.now);
        }
    }

    fn seen(&self) -> [&Seen; 2] {
        self.subjects.each_ref().map(|subject| &subject.seen)
    }
}

/// A step that a peer might take next.
fn step(random: &mut Stream, pair: &Pair, end: usize) -> Step {
    let [seen, _] = pair.seen();
    let next = (seen.acknowledged as usize).saturating_sub(1);
    match random.below(20) {
        0..8 => {
            let near = match random.below(5) {
                0 | 1 => next,
                2 => next.saturating_sub(random.below(1_500) as usize),
                _ => next + random.below(BUFFER as u64 + 1_000) as usize,
            };
            // Within both windows, and the end of the stream only in order.
            let edges = pair
                .subjects
                .each_ref()
                .map(|subject| subject.edge as usize);
            let at = near.min(end).min(edges[0]).min(edges[1]);
            let len = random.below(MSS as u64 + 1) as usize;
            let len = len.min(end - at).min(edges[0] - at).min(edges[1] - at);
            Step::Data {
                at,
                len,
                fin: at + len == end && at == next,
            }
        }
        8..11 => {
            let sent = seen.sent.len() as u64;
            let most = sent + u64::from(seen.fin_sent);
            Step::Ack {
                to: random.below(most + 1) as u32,
            }
        }
        11..14 => Step::Write {
            len: 1 + random.below(1_200) as usize,
        },
        14..18 => Step::Read {
            len: 1 + random.below(2_000) as usize,
        },
        18 if random.chance(0.1) => Step::Shutdown,
        _ => Step::Wait {
            millis: random.below(30),
        },
    }
}

#[test]
fn both_do_the_same_on_random_segments_and_calls() {
    let (mut closed, mut octets) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Seed(seed).stream(Purpose::Trial(5));
        let mut pair = Pair::connected(&mut random);
        let end = 1 + random.below(12_000) as usize;
        let mut steps = Vec::new();
        for _ in 0..80 {
            let step = step(&mut random, &pair, end);
            steps.push(step);
            pair.play(step);
            let [ours, theirs] = pair.seen();
            assert!(
                ours == theirs,
                "seed {seed}: {:#?}",
                Report::of(&steps, ours, theirs)
            );
        }
        let [ours, _] = pair.seen();
        let read = ours.read.len();
        assert_eq!(ours.read, pair.theirs[..read], "seed {seed}");
        closed += u32::from(ours.state != "ESTABLISHED");
        octets += read;
    }
    // The peer does get somewhere.
    assert!(closed > 300 && octets > 1_000_000, "{closed} {octets}");
}

/// Plays the steps and returns the observable state of both.
fn after(steps: &[Step]) -> [Seen; 2] {
    let mut random = Seed(1).stream(Purpose::Trial(6));
    let mut pair = Pair::connected(&mut random);
    steps.iter().for_each(|&step| pair.play(step));
    pair.seen().map(Seen::clone)
}

const fn data(at: usize, len: usize) -> Step {
    Step::Data {
        at,
        len,
        fin: false,
    }
}

/// Known difference: a FIN before a hole is filled. We remember it (RFC 9293 3.10.7.4, "segments with higher beginning
/// sequence numbers SHOULD be held for later processing"); smoltcp waits for a retransmission.
#[test]
fn a_fin_out_of_order_is_remembered_here() {
    let early = Step::Data {
        at: 100,
        len: 100,
        fin: true,
    };
    let [ours, theirs] = after(&[early, data(0, 100)]);
    assert_eq!((ours.state, ours.acknowledged), ("CLOSE-WAIT", 202));
    assert_eq!((theirs.state, theirs.acknowledged), ("ESTABLISHED", 201));
}

/// Known difference: a FIN behind data that has all arrived before. The old part is cut off and the rest processed (RFC 9293
/// 3.10.7.4: "trimming off any portions that lie outside the window (including SYN and FIN)", and this FIN lies inside);
/// smoltcp answers and ignores the FIN.
#[test]
fn a_fin_behind_old_data_counts_here() {
    let old = Step::Data {
        at: 57,
        len: 483,
        fin: true,
    };
    let [ours, theirs] = after(&[data(104, 436), data(0, 402), old]);
    assert_eq!((ours.state, ours.acknowledged), ("CLOSE-WAIT", 542));
    assert_eq!((theirs.state, theirs.acknowledged), ("ESTABLISHED", 541));
}

/// Known difference: data out of order beyond the window last offered, for which reading has made room since. We keep what
/// fits, since RCV.WND is the free room; smoltcp drops it.
#[test]
fn data_for_which_there_is_room_is_kept_here() {
    let mut steps: Vec<Step> = (0..7).map(|n| data(n * 500, 500)).collect();
    steps.extend([Step::Read { len: 400 }, data(3_950, 300), data(3_500, 450)]);
    let [ours, theirs] = after(&steps);
    assert_eq!((ours.acknowledged, theirs.acknowledged), (4_251, 4_001));
}

/// Known difference: a reset in the window, but not at its left edge. We send a challenge ACK (RFC 5961 3.2);
/// smoltcp accepts it.
#[test]
fn a_reset_inside_the_window_is_challenged_here() {
    let reset = Step::Bare {
        flags: Flags::RST,
        ahead: 5,
    };
    let [ours, theirs] = after(&[data(0, 100), reset]);
    assert_eq!((ours.state, theirs.state), ("ESTABLISHED", "CLOSED"));
}

/// The text that describes a difference.
#[derive(Debug)]
#[allow(dead_code)] // printed
struct Report<'a> {
    last: &'a [Step],
    acknowledged: [u32; 2],
    sent: [usize; 2],
    fin_sent: [bool; 2],
    reset: [bool; 2],
    read: [usize; 2],
    state: [&'static str; 2],
}

impl<'a> Report<'a> {
    fn of(steps: &'a [Step], ours: &Seen, theirs: &Seen) -> Report<'a> {
        let both = [ours, theirs];
        Report {
            last: &steps[steps.len().saturating_sub(12)..],
            acknowledged: both.map(|seen| seen.acknowledged),
            sent: both.map(|seen| seen.sent.len()),
            fin_sent: both.map(|seen| seen.fin_sent),
            reset: both.map(|seen| seen.reset),
            read: both.map(|seen| seen.read.len()),
            state: both.map(|seen| seen.state),
        }
    }
}
