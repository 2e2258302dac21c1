extern crate std;

use std::vec;
use std::vec::Vec;

use super::super::observe::Observers;
use super::super::server::content;
use super::super::timeout::Standard;
use super::*;
use chappe_core::{Purpose, Seed};
use core::net::Ipv6Addr;

const PEER: (Ipv6Addr, u16) = (Ipv6Addr::LOCALHOST, 5);
/// Blocks of 32 octets.
const SZX: u8 = 1;

fn observation() -> Observation<Standard> {
    let random = Seed(1).stream(Purpose::Node(0));
    Observation::new("a/temperature", Standard, random)
}

/// The next message of the client.
fn sent(client: &mut Observation<Standard>, now: Instant) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 128];
    let len = client.poll(now, &mut buffer)?;
    buffer.truncate(len);
    Some(buffer)
}

/// A message of the server.
fn message(
    (kind, code): (Kind, Code),
    (id, token): (u16, Token),
    options: &[(u16, u32)],
    payload: &[u8],
) -> Vec<u8> {
    let mut buffer = vec![0; 128];
    let mut writer = Writer::new(&mut buffer, kind, code, id, token).unwrap();
    for &(number, value) in options {
        writer.number(number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    let len = writer.len();
    buffer.truncate(len);
    buffer
}

/// A registered client, its token, and the time.
fn registered() -> (Observation<Standard>, Token) {
    let mut client = observation();
    client.register();
    let request = sent(&mut client, Instant::ZERO).unwrap();
    let request = Message::parse(&request).unwrap();
    let ends = (request.id, request.token);
    let answer = message(
        (Kind::Ack, Code::CONTENT),
        ends,
        &[(option::OBSERVE, 10)],
        b"20",
    );
    let told = client.handle(Instant::ZERO, &answer).unwrap();
    assert_eq!(
        (told.payload, told.last, told.unasked),
        (&b"20"[..], true, false)
    );
    (client, request.token)
}

fn notification(token: Token, id: u16, number: u32) -> Vec<u8> {
    let options = [(option::OBSERVE, number)];
    message(
        (Kind::Confirmable, Code::CONTENT),
        (id, token),
        &options,
        b"21",
    )
}

/// The request has Observe 0 and the path in segments; it is repeated four times, in 2 to 3 s doubled, and then given up.
#[test]
fn registration_is_repeated_and_given_up() {
    let mut client = observation();
    client.register();
    let (mut now, mut sent_at) = (Instant::ZERO, Vec::new());
    while let Some(request) = sent(&mut client, now) {
        let request = Message::parse(&request).unwrap();
        let options: Vec<_> = request.options().collect();
        let path = option::URI_PATH;
        let expected = [
            (option::OBSERVE, &b""[..]),
            (path, b"a"),
            (path, b"temperature"),
        ];
        assert_eq!(options, expected);
        sent_at.push(now);
        now = client.poll_timeout().unwrap().at;
        client.handle_timeout(now);
    }
    assert_eq!(sent_at.len(), 5);
    assert!((62..=93).contains(&(now.nanos() / 1_000_000_000)), "{now}");
    assert_eq!(client.outcome(), Some(Outcome::GaveUp));
    assert!(!client.is_active() && client.poll_timeout().is_none());
}

/// RFC 7641 3.4: what is older than the last one is acknowledged and dropped, also around the wrap, but not after 128 s.
#[test]
fn old_notifications_are_dropped() {
    let (mut client, token) = registered();
    let second = Instant::from_millis(1000);
    let long = Instant::from_millis(130_000);
    let most = (1 << 24) - 1;
    for (now, number, newer) in [
        (second, 12, true),
        (second, 11, false),
        (second, 12, false),
        (second, 12 + HALF - 1, true),
        (second, most, true),
        (second, 3, true),
        (second, most, false),
        (long, 2, true),
    ] {
        let id = number as u16;
        let told = client
            .handle(now, &notification(token, id, number))
            .is_some();
        assert_eq!(told, newer, "{number}");
        let ack = sent(&mut client, now).unwrap();
        let ack = Message::parse(&ack).unwrap();
        assert_eq!((ack.kind, ack.code, ack.id), (Kind::Ack, Code::EMPTY, id));
        assert_eq!(sent(&mut client, now), None);
    }
}

/// What belongs to no registration is reset, which makes the server forget it.
#[test]
fn strange_notifications_are_reset() {
    let (mut client, token) = registered();
    let reset = |client: &mut Observation<Standard>, bytes: &[u8]| {
        assert_eq!(client.handle(Instant::ZERO, bytes), None);
        let reply = sent(client, Instant::ZERO).expect("a reset");
        Message::parse(&reply).unwrap().kind == Kind::Reset
    };
    assert!(reset(&mut client, &notification(Token::new(1), 5, 11)));
    let ping = message(
        (Kind::Confirmable, Code::EMPTY),
        (6, Token::default()),
        &[],
        &[],
    );
    assert!(reset(&mut client, &ping));
    client.cancel();
    let request = sent(&mut client, Instant::ZERO).unwrap();
    let request = Message::parse(&request).unwrap();
    let observe = request
        .options()
        .find(|(number, _)| *number == option::OBSERVE);
    assert_eq!(
        (observe, request.token),
        (Some((option::OBSERVE, &[1][..])), token)
    );
    let answer = message((Kind::Ack, Code::CONTENT), (request.id, token), &[], b"22");
    assert_eq!(client.handle(Instant::ZERO, &answer), None);
    assert_eq!(client.outcome(), Some(Outcome::Done));
    assert!(reset(&mut client, &notification(token, 7, 12)));
}

/// An error ends the observation, in an answer and in a notification.
#[test]
fn errors_end_it() {
    let (mut client, token) = registered();
    let gone = message(
        (Kind::NonConfirmable, Code::NOT_FOUND),
        (9, token),
        &[],
        &[],
    );
    assert_eq!(client.handle(Instant::ZERO, &gone), None);
    assert_eq!(client.outcome(), Some(Outcome::Refused(Code::NOT_FOUND)));
    assert!(!client.is_active());
}

/// RFC 7252 5.2.2: an empty acknowledgement stops the repetitions, and the response comes later.
#[test]
fn a_separate_response_is_awaited() {
    let mut client = observation();
    client.register();
    let request = sent(&mut client, Instant::ZERO).unwrap();
    let request = Message::parse(&request).unwrap();
    let empty = message(
        (Kind::Ack, Code::EMPTY),
        (request.id, Token::default()),
        &[],
        &[],
    );
    assert_eq!(client.handle(Instant::ZERO, &empty), None);
    assert!(client.poll_timeout().unwrap().at >= Instant::ZERO + SEPARATE);
    let told = notification(request.token, 4, 7);
    assert!(client.handle(Instant::from_millis(9000), &told).is_some());
    assert!(
        sent(&mut client, Instant::from_millis(9000)).is_some(),
        "its acknowledgement"
    );
    assert_eq!(client.poll_timeout().unwrap().why, "observed state is old");
}

/// After Max-Age and 5 to 15 s without news the client registers again with the same token; a server that has started anew and counts
/// from 0 is heard.
#[test]
fn an_old_state_renews_the_registration() {
    let (mut client, token) = registered();
    let now = client.poll_timeout().unwrap().at;
    assert!((65..=75).contains(&(now.nanos() / 1_000_000_000)), "{now}");
    client.handle_timeout(now);
    let request = sent(&mut client, now).unwrap();
    let request = Message::parse(&request).unwrap();
    assert_eq!(request.token, token);
    let options = [(option::OBSERVE, 0), (option::MAX_AGE, 5)];
    let answer = message(
        (Kind::Ack, Code::CONTENT),
        (request.id, token),
        &options,
        b"1",
    );
    assert!(client.handle(now, &answer).is_some());
    let next = client.poll_timeout().unwrap().at.saturating_since(now);
    assert!(next >= Duration::from_secs(10) && next <= Duration::from_secs(20));
}

/// A server whose content changes each second, with blocks, and an air that loses a message in four each way.
struct Air {
    observers: Observers<1>,
    version: u8,
    now: Instant,
    random: Stream,
}

impl Air {
    fn content(&self) -> [u8; 80] {
        [self.version; 80]
    }

    fn loses(&mut self) -> bool {
        self.random.below(4) == 0
    }

    /// The server's answer to a message.
    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let message = Message::parse(request).unwrap();
        if matches!(message.kind, Kind::Ack | Kind::Reset) {
            self.observers.answer(PEER, &message);
            return None;
        }
        let body = self.content();
        let mut answer = vec![0; 128];
        let read =
            |start: usize, room: &mut [u8]| room.copy_from_slice(&body[start..][..room.len()]);
        let observe = self.observers.request(PEER, &message);
        let len = match observe {
            None => content(request, body.len(), SZX, read, &mut answer)?.0,
            Some(number) => {
                let ends = (message.id, message.token);
                let block = u32::from(8 | SZX);
                let options = [(option::OBSERVE, number), (option::BLOCK2, block)];
                answer =
                    super::tests::message((Kind::Ack, Code::CONTENT), ends, &options, &body[..32]);
                answer.len()
            }
        };
        answer.truncate(len);
        Some(answer)
    }
}

/// Every state that the client has whole is one of the server's, in order, and most arrive; three blocks each.
#[test]
fn blocks_of_notifications_are_fetched_over_a_lossy_air() {
    let mut whole_states = 0;
    for seed in 0..20 {
        let mut air = Air {
            observers: Observers::new(7),
            version: 0,
            now: Instant::ZERO,
            random: Seed(seed).stream(Purpose::Node(1)),
        };
        let mut client = observation();
        client.register();
        let (mut body, mut versions) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            air.now += Duration::from_millis(500);
            client.handle_timeout(air.now);
            let mut to_client = Vec::new();
            if air.random.below(20) == 0 {
                air.version += 1;
                air.observers.changed();
                let mut buffer = [0; 128];
                let (body, szx) = (air.content(), SZX);
                if let Some((_, len)) = air.observers.poll_block(&body, szx, &mut buffer) {
                    to_client.push(buffer[..len].to_vec());
                }
            }
            loop {
                for datagram in core::mem::take(&mut to_client) {
                    if air.loses() {
                        continue;
                    }
                    if let Some(part) = client.handle(air.now, &datagram) {
                        body.truncate(part.start);
                        assert_eq!(body.len(), part.start, "seed {seed}");
                        body.extend_from_slice(part.payload);
                        if part.last {
                            versions.push(body[79]);
                            assert_eq!(body.len(), 80);
                        }
                    }
                }
                let Some(request) = sent(&mut client, air.now) else {
                    break;
                };
                if !air.loses() {
                    to_client.extend(air.answer(&request));
                }
            }
            if !client.is_active() {
                client.register();
            }
        }
        assert!(versions.is_sorted(), "seed {seed}: {versions:?}");
        versions.dedup();
        whole_states += versions.len();
    }
    assert!(whole_states > 200, "{whole_states}");
}

/// Octets of anyone never panic, and leave at most one reply.
#[test]
fn any_octets_are_accepted() {
    let mut random = Seed(3).stream(Purpose::Node(0));
    let (client, token) = registered();
    let good = notification(token, 3, 44);
    for _ in 0..20_000 {
        let mut client = client.clone();
        let mut bytes = good.clone();
        for _ in 0..random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        client.handle(Instant::ZERO, &bytes);
        let replies = core::iter::from_fn(|| sent(&mut client, Instant::ZERO)).count();
        assert!(replies <= 2, "{bytes:?}");
    }
}
