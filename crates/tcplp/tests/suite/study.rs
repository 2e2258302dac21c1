//! The applications of the study (TCPlp 8) alone: two hosts over a path with delay and loss, without a radio.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use chappe_core::{Address, Duration, Expect, HostNode, Instant, Purpose, Seed, Stream, Wake};
use chappe_tcplp::baseline::{Fetch, Report};
use chappe_tcplp::coap::{self, Client, Code, Outcome, Standard, content, option};
use chappe_tcplp::host::{Application, Collect, Host, Page, Readings, Sense, Visit};
use chappe_tcplp::lowpan::Config;
use chappe_tcplp::tcp::{self, Endpoint, Local, Memory, NewReno, Range, Secret, Sent, Socket};

const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0);

fn address(node: u16) -> Ipv6Addr {
    Config::new(Address::node(node), PREFIX, 0).global()
}

fn host<A: Application<'static>>(node: u16, app: A) -> Host<'static, A> {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(address(node)),
        secret: Secret::new([node as u8; 16]),
        config: tcp::Config {
            mss: 474,
            ..tcp::Config::STANDARD
        },
    }));
    let memory = Memory {
        send: vec![0; 1848].leak(),
        receive: vec![0; 1848].leak(),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 8].leak(),
    };
    let socket = Socket::new(local, memory, NewReno).unwrap();
    let link_local = Config::new(Address::node(node), PREFIX, 0).link_local();
    let mut host = Host::new(local, link_local, [socket], app);
    host.listen(80);
    host
}

/// Two hosts, 50 ms apart, over a path that loses packets.
struct Path<A: Application<'static>, B: Application<'static>> {
    now: Instant,
    a: Host<'static, A>,
    b: Host<'static, B>,
    /// Packets on their way: when, to the second host or not, what.
    flying: VecDeque<(Instant, bool, Vec<u8>)>,
    loss: f64,
    random: Stream,
    /// How long the first host expected an answer or a request.
    expecting: Duration,
}

impl<A: Application<'static>, B: Application<'static>> Path<A, B> {
    fn new(a: A, b: B, loss: f64, seed: u64) -> Self {
        Path {
            now: Instant::from_millis(1),
            a: host(1, a),
            b: host(2, b),
            flying: VecDeque::new(),
            loss,
            random: Seed(seed).stream(Purpose::Trial(1)),
            expecting: Duration::ZERO,
        }
    }

    fn drain(&mut self) {
        let mut packet = [0; 1280];
        let at = self.now + Duration::from_millis(50);
        for to_b in [true, false] {
            loop {
                let len = match to_b {
                    true => self.a.poll_packet(self.now, &mut packet),
                    false => self.b.poll_packet(self.now, &mut packet),
                };
                let Some(len) = len else { break };
                if !self.random.chance(self.loss) {
                    self.flying.push_back((at, to_b, packet[..len].to_vec()));
                }
            }
        }
    }

    /// Runs until `until` or until nothing is left to happen.
    fn run(&mut self, until: Instant) {
        self.drain();
        loop {
            let front = self.flying.front().map(|(at, ..)| *at);
            let hosts = Wake::earlier(self.a.poll_timeout(), self.b.poll_timeout());
            let next = front.into_iter().chain(hosts.map(|wake| wake.at)).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                return;
            };
            let at = at.max(self.now);
            if self.a.expects() != Expect::Nothing {
                self.expecting += at.saturating_since(self.now);
            }
            self.now = at;
            while self
                .flying
                .front()
                .is_some_and(|(due, ..)| *due <= self.now)
            {
                let (_, to_b, packet) = self.flying.pop_front().unwrap();
                match to_b {
                    true => self.b.handle_packet(self.now, &packet),
                    false => self.a.handle_packet(self.now, &packet),
                }
            }
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
            self.drain();
        }
    }
}

fn secs(secs: u64) -> Instant {
    Instant::from_millis(secs * 1000)
}

fn client(seed: u64, config: coap::Config) -> Client<Standard> {
    Client::new(config, Standard, Seed(seed).stream(Purpose::Node(0)))
}

/// Readings in batches and one by one, with a fifth of all packets lost: all of them arrive, in order, and at the end
/// no answer is expected.
//= tcplp 8.2: sense and send over a lossy path
#[test]
fn readings_arrive_by_tcp() {
    for (batch, loss) in [(64, 0.0), (64, 0.21), (1, 0.0), (1, 0.1)] {
        let mut readings = Readings::tcplp(secs(5));
        (readings.batch, readings.limit) = (batch, 640);
        let mut path = Path::new(Sense::new(readings), Collect::<4>::default(), loss, 3);
        assert!(
            path.a
                .connect(path.now, 5000, Endpoint::new(IpAddr::V6(address(2)), 80))
        );
        path.run(secs(1000));
        let tally = path.b.app().tally(address(1));
        assert_eq!(
            (tally.octets, tally.wrong),
            (640 * 82, 0),
            "batch {batch}, loss {loss}"
        );
        let sensed = path.a.app().readings;
        assert_eq!((sensed.made, sensed.lost, sensed.waiting()), (640, 0, 0));
        assert_eq!(path.a.expects(), Expect::Nothing);
        // Between batches nothing is expected for most of the time, and a radio that follows this sleeps.
        let share = path.expecting.as_secs_f64() / 640.0;
        assert!(batch == 1 || share < 0.35, "{share}");
    }
}

/// The same by CoAP: messages without an acknowledgement after five attempts are lost, all others arrive once.
//= tcplp 8.2: sense and send by CoAP
#[test]
fn readings_arrive_by_coap() {
    for (confirmable, batch, loss) in [(true, 64, 0.1), (true, 1, 0.1), (false, 64, 0.1)] {
        let config = coap::Config {
            confirmable,
            ..coap::Config::STANDARD
        };
        let mut readings = Readings::tcplp(secs(5));
        (readings.batch, readings.limit) = (batch, 640);
        let per_message = if batch == 1 { 1 } else { 6 };
        let report = Report::new(readings, client(4, config), address(2), per_message);
        let mut path = Path::new(report, Collect::<4>::default(), loss, 4);
        path.run(secs(1500));
        let report = path.a.app();
        let arrived = path.b.app().tally(address(1)).octets / 82;
        assert_eq!(
            report.done + report.given_up + report.readings.lost,
            640,
            "{batch}"
        );
        match confirmable {
            true => assert!(
                arrived >= u64::from(report.done) && arrived >= 630,
                "{arrived}"
            ),
            // Each message once: what is lost stays lost.
            false => assert!((500..=620).contains(&arrived), "{arrived}"),
        }
    }
}

/// Pages of all sizes around the boundaries of header and segments, by HTTP, on a good and a bad path.
//= tcplp 8.1: a web server on a mote
#[test]
fn a_page_is_visited_by_http() {
    for (octets, loss) in [
        (0, 0.0),
        (1, 0.0),
        (82, 0.0),
        (461, 0.1),
        (462, 0.1),
        (51_200, 0.02),
    ] {
        let mut path = Path::new(Page::new(octets, 5), Visit::default(), loss, 5);
        let page = Endpoint::new(IpAddr::V6(address(1)), 80);
        assert!(path.b.connect(path.now, 6000, page));
        path.run(secs(900));
        let visit = *path.b.app();
        assert_eq!(
            (visit.received, visit.wrong),
            (octets, 0),
            "{octets} {loss}"
        );
        assert!(visit.done.is_some());
        assert_eq!(path.a.app().served, 1);
        // The visitor closed: the mote's socket is free again and expects nothing.
        assert_eq!(path.a.sockets()[0].state(), tcp::State::Closed);
        assert_eq!(path.a.expects(), Expect::Nothing);
        if loss == 0.0 {
            // SYN, SYN+ACK, request, response: four times 50 ms.
            assert_eq!(visit.done, Some(Instant::from_millis(201)));
        }
    }
}

/// The same by CoAP: one round trip for each block.
//= tcplp 8.1: the same page by CoAP
#[test]
fn a_page_is_fetched_by_coap() {
    for (octets, loss) in [(0, 0.0), (82, 0.0), (512, 0.0), (513, 0.1), (5000, 0.1)] {
        let fetch = Fetch::new(client(6, coap::Config::STANDARD), address(1));
        let mut path = Path::new(Page::new(octets, 5), fetch, loss, 6);
        path.run(secs(900));
        let fetch = path.b.app();
        assert_eq!((fetch.received, fetch.wrong), (octets, 0));
        let (at, outcome) = fetch.done.unwrap();
        assert_eq!(outcome, Outcome::Done);
        let blocks = octets.div_ceil(512).max(1) as u64;
        if loss == 0.0 {
            assert_eq!(at, Instant::from_millis(1 + 100 * blocks));
        } else {
            assert!(fetch.client().counters().confirmed == blocks as u32);
        }
        assert_eq!(path.a.expects(), Expect::Nothing);
    }
}

/// A server may answer with smaller blocks than requested (RFC 7959, 2.4); the client continues with these.
#[test]
fn a_server_may_have_smaller_blocks() {
    let mut client = client(7, coap::Config::STANDARD);
    assert!(client.get());
    let (mut now, mut got) = (Instant::from_millis(1), 0);
    while client.is_busy() {
        let (mut request, mut answer) = ([0; 64], [0; 128]);
        let len = client.poll(now, |_, _| false, &mut request).unwrap();
        let read = |start: usize, part: &mut [u8]| {
            part.iter_mut()
                .enumerate()
                .for_each(|(i, place)| *place = (start + i) as u8);
        };
        let (len, more) = content(&request[..len], 200, 2, read, &mut answer).unwrap();
        now += Duration::from_millis(10);
        let part = client.handle(now, &answer[..len]).unwrap();
        assert_eq!((part.start, part.last), (got, !more));
        assert!(
            part.payload
                .iter()
                .enumerate()
                .all(|(i, octet)| *octet == (got + i) as u8)
        );
        got += part.payload.len();
    }
    assert_eq!(
        (got, client.outcome(), client.counters().sent),
        (200, Some(Outcome::Done), 4)
    );
}

/// Requests beyond the end, by another method, or with an unknown critical option get no content.
#[test]
fn a_server_refuses_invalid_requests() {
    let mut answer = [0; 128];
    let none = |_: usize, _: &mut [u8]| unreachable!("nothing is read");
    let header = |code| [0x40, code, 0, 1];
    // Block 9 of 64 octets; 200 octets end in block 3.
    let mut late = header(1).to_vec();
    late.extend([0xd1, (option::BLOCK2 - 13) as u8, 0x92]);
    let (len, _) = content(&late, 200, 2, none, &mut answer).unwrap();
    assert_eq!(
        coap::Message::parse(&answer[..len]).unwrap().code,
        Code::BAD_OPTION
    );
    // Option 9 is odd and unknown.
    let mut strange = header(1).to_vec();
    strange.push(0x90);
    let (len, _) = content(&strange, 200, 2, none, &mut answer).unwrap();
    assert_eq!(
        coap::Message::parse(&answer[..len]).unwrap().code,
        Code::BAD_OPTION
    );
    assert_eq!(content(&header(2), 200, 2, none, &mut answer), None);
    assert_eq!(content(&[0x40], 200, 2, none, &mut answer), None);
}
