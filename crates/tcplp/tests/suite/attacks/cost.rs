//! What each attack costs the attacker and the mote: the table of docs/tcplp.md, measured here.
//!
//! The test fails if the page says something else. `CHAPPE_BLESS=1 cargo test --release -p chappe-tcplp --test suite attacks::cost` writes the
//! table into the page.

use std::fmt::Write;
use std::path::Path;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed};
use chappe_tcplp::tcp::{Config, Flags, Segment, Seq, State};

use super::support::host::{Host, Sizes};
use super::{at, deliver, drain, established, flood, frames, segment, timestamps};

/// What an attacker does in ten seconds, and what comes of it.
struct Row {
    attack: &'static str,
    /// What the attacker must know or be.
    needs: &'static str,
    /// What the attacker sends.
    sends: String,
    /// What the mote sends in answer.
    answers: String,
    result: String,
    goal: Goal,
}

/// What is to come of an attack, and whether it does.
struct Goal {
    text: &'static str,
    met: bool,
}

impl Goal {
    const fn new(text: &'static str, met: bool) -> Goal {
        Goal { text, met }
    }

    /// What no goal of this project asks for.
    const NONE: Goal = Goal::new("none", true);
}

/// Sends 1000 segments in ten seconds to a connection with 1000 octets in flight. Returns how many segments and octets the host answers
/// with, beyond what it sends without them, and the connection's end state.
fn thousand(config: Config, forge: impl Fn(u32, Seq) -> Segment<'static>) -> (usize, usize, Host) {
    let (mut host, next) = established(config, Sizes::default());
    host.sockets[0].write(&[1; 1000]);
    drain(&mut host, at(2));
    deliver(&mut host, at(3), &segment(Seq::new(1), next + 1000, &[]));
    let (mut answers, mut octets) = (0, 0);
    for n in 0..1000 {
        let now = at(10 + 10 * u64::from(n));
        host.handle_timeout(now);
        deliver(&mut host, now, &forge(n, next + 1000));
        let sent = drain(&mut host, now);
        answers += sent.len();
        octets += sent.iter().map(Vec::len).sum::<usize>();
    }
    (answers, octets, host)
}

fn blind(
    attack: &'static str,
    needs: &'static str,
    forge: impl Fn(u32, Seq) -> Segment<'static>,
) -> Row {
    let (answers, octets, host) = thousand(Config::STANDARD, forge);
    let info = host.sockets[0].info();
    let unchanged = info.state == State::Established && info.unread == 0 && info.gaps == 0;
    Row {
        attack,
        needs,
        sends: "1000 segments in 10 s".into(),
        answers: format!("{answers} segments, {octets} octets"),
        result: changes(unchanged),
        goal: Goal::new(UNCHANGED, unchanged),
    }
}

/// The goal for everyone off the path.
const UNCHANGED: &str = "nothing changes but counters";

fn changes(unchanged: bool) -> String {
    let text = match unchanged {
        true => "nothing changes",
        false => "the connection is harmed",
    };
    text.into()
}

/// Forged segments with numbers in the window, where they are most dangerous, but not the right ones.
fn blind_rows() -> Vec<Row> {
    let four = "the four-tuple";
    let near = |n: u32| Seq::new(2 + n * 7);
    vec![
        blind("blind reset", four, move |n, next| Segment {
            flags: Flags::RST,
            ..segment(near(n), next, &[])
        }),
        blind("blind SYN", four, move |n, next| Segment {
            flags: Flags::SYN,
            ..segment(near(n), next, &[])
        }),
        blind("blind data, wrong ACK", four, move |n, next| {
            segment(near(n), next + 1 + n, b"forged")
        }),
        blind("blind data, no ACK", four, move |n, _| Segment {
            flags: Flags::NONE,
            ..segment(near(n), Seq::default(), b"forged")
        }),
        blind("blind old data, wrong ACK", four, move |n, next| {
            segment(Seq::new(u32::MAX - n * 1000), next + 1 + n, b"forged")
        }),
        blind(
            "ACKs of data never sent",
            "a peer, or both numbers",
            |n, next| segment(Seq::new(1), next + 1 + n, &[]),
        ),
    ]
}

fn timestamps() -> Row {
    let (kinds, answers) = timestamps::forge(timestamps::FAR);
    Row {
        attack: "forged timestamp",
        needs: "the four-tuple",
        sends: format!("1 segment, {kinds} kinds"),
        answers: format!("{answers} segments for all kinds"),
        result: changes(true),
        // `forge` fails if a connection is harmed.
        goal: Goal::new(UNCHANGED, true),
    }
}

fn syn_flood() -> Row {
    let done = flood::long_flood();
    Row {
        attack: "SYN flood",
        needs: "nothing",
        sends: format!("{} SYNs, {} octets in 300 s", done.syns, done.octets_in),
        answers: format!("{} octets", done.octets_out),
        result: format!(
            "{} of {} clients served at once; no memory",
            done.served, done.clients
        ),
        goal: Goal::new("every client is served", done.served == done.clients),
    }
}

/// The window after one segment was acknowledged in `parts`.
fn grown(parts: u32) -> u32 {
    let (mut host, next) = established(Config::STANDARD, Sizes::default());
    host.sockets[0].write(&[1; 8000]);
    drain(&mut host, at(10));
    let before = host.sockets[0].info().cwnd;
    for part in 1..=parts {
        deliver(
            &mut host,
            at(20),
            &segment(Seq::new(1), next + 1000 * part / parts, &[]),
        );
        drain(&mut host, at(20));
    }
    host.sockets[0].info().cwnd - before
}

fn ack_division() -> Row {
    let (one, many) = (grown(1), grown(100));
    Row {
        attack: "ACK division",
        needs: "the peer",
        sends: "100 ACKs of one segment".into(),
        answers: "none".into(),
        result: format!("the window grows by {many} octets, by 1 ACK by {one}"),
        goal: Goal::new("as by 1 ACK", one == many),
    }
}

/// Acknowledges everything at once, although nothing arrived. Returns the window after two seconds, and after the same time with an honest
/// peer 200 ms away.
fn optimistic() -> Row {
    let run = |wait: u64| {
        let (mut host, next) = established(Config::STANDARD, Sizes::default());
        let (mut now, mut acked) = (10, 0);
        while now < 2000 {
            host.sockets[0].write(&[1; 20_000]);
            let octets: usize = drain(&mut host, at(now)).iter().map(|p| p.len() - 60).sum();
            acked += octets as u32;
            now += wait;
            deliver(&mut host, at(now), &segment(Seq::new(1), next + acked, &[]));
        }
        host.sockets[0].info().cwnd
    };
    let (honest, early) = (run(200), run(20));
    assert!(early >= honest);
    Row {
        attack: "ACKs of data sent, not received",
        needs: "the peer",
        sends: "an ACK every 20 ms, path of 200 ms".into(),
        answers: "data at the attacker's pace".into(),
        result: format!(
            "not defended: window {early} octets after 2 s, not {honest}; at most the send buffer a path time"
        ),
        goal: Goal::NONE,
    }
}

/// How long a connection to a peer lasts that answers all, and what the mote sends meanwhile.
fn window_game(
    attack: &'static str,
    sends: &'static str,
    config: Config,
    window: impl Fn(u64) -> u16,
    goal: fn(Option<u64>) -> Goal,
) -> Row {
    let (mut host, next) = established(config, Sizes::default());
    let (mut now, mut acked, mut segments, mut octets) = (10, 0u32, 0, 0);
    deliver(
        &mut host,
        at(now),
        &Segment {
            window: window(0),
            ..segment(Seq::new(1), next, &[])
        },
    );
    while now < 600_000 && host.sockets[0].state() != State::Closed {
        host.sockets[0].write(&[1; 1000]);
        // The answer comes at once, and may allow more.
        for _ in 0..100 {
            let sent = drain(&mut host, at(now));
            if sent.is_empty() {
                break;
            }
            let room = u32::from(window(now));
            let mut taken = 0;
            for packet in &sent {
                segments += 1;
                octets += packet.len();
                taken += packet.len() as u32 - 60;
            }
            acked += taken.min(room);
            let answer = Segment {
                window: window(now),
                ..segment(Seq::new(1), next + acked, &[])
            };
            deliver(&mut host, at(now), &answer);
        }
        let due = host.poll_timeout();
        let due = due.map_or(now + 1000, |wake| wake.at.nanos() / 1_000_000 + 1);
        now = due.max(now + 1);
        host.handle_timeout(at(now));
    }
    let closed = host.sockets[0].state() == State::Closed;
    let ended = closed.then_some(now / 1000);
    let end = ended.map_or("lasts".into(), |seconds| format!("ends after {seconds} s"));
    Row {
        attack,
        needs: "the peer",
        sends: sends.into(),
        answers: format!(
            "{segments} segments, {octets} octets in {} s",
            now.min(600_000) / 1000
        ),
        result: format!("the connection {end}"),
        goal: goal(ended),
    }
}

fn window_games() -> Vec<Row> {
    let strict = Config {
        user_timeout: Duration::from_secs(300),
        ..Config::STANDARD
    };
    vec![
        window_game(
            "shut window, no user timeout",
            "an answer to each probe",
            Config::STANDARD,
            |_| 0,
            |_| Goal::NONE,
        ),
        window_game(
            "shut window, user timeout 300 s",
            "an answer to each probe",
            strict,
            |_| 0,
            |ended| Goal::new("ends after 300 s", ended == Some(300)),
        ),
        window_game(
            "windows of one octet",
            "ACKs with window 1",
            Config::STANDARD,
            |_| 1,
            |_| Goal::NONE,
        ),
        window_game(
            "windows that shrink",
            "windows of 5000 and 0 in turn",
            Config::STANDARD,
            |now| {
                if now / 1000 % 2 == 0 { 5000 } else { 0 }
            },
            |ended| Goal::new("the connection lasts", ended.is_none()),
        ),
    ]
}

fn holes() -> Row {
    let (mut host, next) = established(Config::STANDARD, Sizes::default());
    let mut octets = 0;
    for n in 0..1000u32 {
        let now = at(10 + u64::from(n));
        deliver(&mut host, now, &segment(Seq::new(3 + n * 2), next, &[9]));
        octets += drain(&mut host, now).iter().map(Vec::len).sum::<usize>();
    }
    let gaps = host.sockets[0].info().gaps;
    Row {
        attack: "data with 1000 holes",
        needs: "the peer, or both numbers",
        sends: "1000 segments of 1 octet".into(),
        answers: format!("1000 segments, {octets} octets"),
        result: format!("{gaps} ranges kept, further data dropped until the first hole is filled"),
        goal: Goal::new("at most 8 ranges", gaps <= 8),
    }
}

fn fragments() -> Vec<Row> {
    let done = frames::exhaust();
    let (lost, reached) = (frames::overlap(), frames::confuse());
    vec![
        Row {
            attack: "reassembly slots taken",
            needs: "radio range, no link key in use",
            sends: format!(
                "{} frames, then {:.0} a second",
                done.frames, done.sustained
            ),
            answers: "none".into(),
            result: format!(
                "no datagram of several frames gets in meanwhile, and {} ms longer; single frames do",
                done.locked_ms
            ),
            goal: Goal::new(
                "datagrams get in 250 ms after the last frame",
                done.locked_ms <= 250,
            ),
        },
        Row {
            attack: "overlapping fragment",
            needs: "radio range, no link key, size and tag",
            sends: "1 frame".into(),
            answers: "none".into(),
            result: format!("{lost} datagram is lost; TCP sends it again"),
            goal: Goal::new("at most this datagram is lost", lost <= 1),
        },
        Row {
            attack: "confused IPHC and NHC headers",
            needs: "radio range, no link key in use",
            sends: format!("{} frames", frames::CONFUSED),
            answers: "none".into(),
            result: format!("{reached} reach a socket; each is counted"),
            goal: Goal::new("none reaches a socket", reached == 0),
        },
    ]
}

/// The table, and the attacks that miss their goal.
fn table() -> (String, Vec<&'static str>) {
    let mut rows = blind_rows();
    rows.extend([timestamps(), syn_flood(), ack_division(), optimistic()]);
    rows.extend(window_games());
    rows.push(holes());
    rows.extend(fragments());
    let mut text = String::from(
        "| attack | the attacker needs | the attacker sends | the mote sends | result | goal |\n|---|---|---|---|---|---|\n",
    );
    let mut missed = Vec::new();
    for row in rows {
        let Row {
            attack,
            needs,
            sends,
            answers,
            result,
            goal,
        } = row;
        let mark = match (goal.text, goal.met) {
            ("none", _) => "",
            (_, true) => ": met",
            (_, false) => ": missed",
        };
        writeln!(
            text,
            "| {attack} | {needs} | {sends} | {answers} | {result} | {}{mark} |",
            goal.text
        )
        .expect("a string");
        if !goal.met {
            missed.push(attack);
        }
    }
    (text, missed)
}

const BEGIN: &str = "<!-- begin of the table of attacks, made by attacks::cost -->\n";
const END: &str = "<!-- end of the table of attacks -->\n";

#[test]
#[allow(clippy::disallowed_methods)] // Reads from the environment whether to write the page.
fn the_page_says_what_attacks_cost() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tcplp.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the table");
    let (old, after) = rest.split_once(END).expect("the table has an end");
    let (new, missed) = table();
    print!("{new}");
    assert_eq!(missed, [""; 0], "these miss their goals");
    if std::env::var_os("CHAPPE_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{new}{END}{after}"))
            .expect("the page can be written");
        return;
    }
    assert_eq!(old, new, "CHAPPE_BLESS=1 writes the table into the page");
}

/// The chances that the table rests on: how many random segments of each kind a blind attacker needs for one that is acceptable, with a window
/// of 2 KB and a peer's window of 60 KB. By count over random numbers of a smaller space, scaled.
#[test]
fn guesses_succeed_as_often_as_the_windows_say() {
    let mut random = Seed(6).stream(Purpose::Trial(0));
    let (mut host, next) = established(
        Config::STANDARD,
        Sizes {
            receive: 2000,
            ..Sizes::default()
        },
    );
    let (mut in_window, rounds) = (0, 400_000u32);
    for n in 0..rounds {
        // 2^20 numbers around RCV.NXT instead of 2^32, and a right acknowledgement.
        let seq = Seq::new(1).back(1 << 19) + random.below(1 << 20) as u32;
        let before = host.sockets[0].info().counters.dropped;
        let now = Instant::from_micros(3000 + u64::from(n));
        deliver(&mut host, now, &segment(seq, next, &[]));
        drain(&mut host, now);
        in_window += u32::from(host.sockets[0].info().counters.dropped == before);
        if host.sockets[0].info().counters.dropped > 60_000 {
            (host, _) = established(
                Config::STANDARD,
                Sizes {
                    receive: 2000,
                    ..Sizes::default()
                },
            );
        }
    }
    let share = f64::from(in_window) / f64::from(rounds);
    let wanted = 2000.0 / f64::from(1 << 20);
    assert!((share / wanted - 1.0).abs() < 0.15, "{share} {wanted}");
}
