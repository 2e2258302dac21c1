//! Every state with every kind of event, in one table: `tests/snapshots/states.txt`.
//!
//! A change of behaviour shows as a changed line. `CHAPPE_BLESS=1 cargo test --release -p chappe-tcplp --test suite states::` writes the table;
//! read the difference before you commit it.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use chappe_core::Instant;
use chappe_tcplp::tcp::{
    Config, Counters, Ecn, Endpoint, Flags, Local, Memory, NewReno, Options, Range, Secret,
    Segment, Sent, Seq, Socket, State, Timestamps, Verdict,
};

/// The peer's initial sequence number.
const IRS: u32 = 1000;
/// The window that the socket offers, octets.
const WINDOW: u32 = 2000;
const START: u64 = 10;

/// A socket in a state, at a time; the peer's sequence number is RCV.NXT wherever there is one.
struct Scene {
    socket: Socket<'static>,
    now: Instant,
    /// Our initial sequence number.
    iss: Seq,
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn address(last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
}

fn closed() -> Socket<'static> {
    let local: &'static Local = Box::leak(Box::new(Local {
        address: address(1),
        secret: Secret::new([3; 16]),
        config: Config {
            mss: 500,
            ..Config::STANDARD
        },
    }));
    let memory = Memory {
        send: vec![0; 2000].leak(),
        receive: vec![0; WINDOW as usize].leak(),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 8].leak(),
    };
    Socket::new(local, memory, NewReno).expect("the sizes are sound")
}

fn stamped(value: u32) -> Options {
    Options {
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Options::default()
    }
}

/// A segment of the peer: `seq` and `ack` relative to the initial sequence numbers, so that a SYN has 0 and the first octet 1.
fn segment(iss: Seq, flags: Flags, seq: u32, ack: u32, payload: &[u8]) -> Segment<'_> {
    Segment {
        source_port: 5000,
        destination_port: 80,
        seq: Seq::new(IRS.wrapping_add(seq)),
        ack: iss + ack,
        flags,
        window: 4000,
        urgent: 0,
        options: stamped(100),
        payload,
    }
}

fn syn() -> Segment<'static> {
    let options = Options {
        mss: Some(500),
        sack_permitted: true,
        ..stamped(100)
    };
    Segment {
        options,
        ..segment(Seq::default(), Flags::SYN, 0, 0, &[])
    }
}

const ACK: Flags = Flags::ACK;

impl Scene {
    fn drain(&mut self) -> Vec<String> {
        let (mut all, mut wire) = (Vec::new(), [0; 700]);
        while let Some(sent) = self.socket.poll_segment(self.now, &mut wire) {
            let segment = Segment::parse(&wire[..sent.len]).expect("TCP");
            if segment.flags.has(Flags::SYN) {
                self.iss = segment.seq;
            }
            all.push(self.say(&segment));
        }
        all
    }

    /// A sent segment with relative numbers.
    fn say(&self, segment: &Segment<'_>) -> String {
        let mut text = format!("{}", segment.flags);
        if !segment.flags.has(Flags::RST) || segment.seq != Seq::default() {
            let seq = segment.seq.bits().wrapping_sub(self.iss.bits()) as i32;
            let _ = write!(text, " {seq}+{}", segment.payload.len());
        }
        if segment.flags.has(ACK) {
            let ack = segment.ack.bits().wrapping_sub(IRS) as i32;
            let _ = write!(text, " ack {ack}");
        }
        for block in segment.options.sack.as_slice() {
            let [start, end] =
                [block.start, block.end].map(|edge| edge.bits().wrapping_sub(IRS) as i32);
            let _ = write!(text, " sack {start}:{end}");
        }
        text
    }

    fn hear(&mut self, flags: Flags, seq: u32, ack: u32, payload: &[u8]) -> Verdict {
        let heard = segment(self.iss, flags, seq, ack, payload);
        self.socket
            .handle_segment(self.now, &heard, Ecn::NotCapable)
    }

    fn in_state(state: State) -> Scene {
        let mut scene = Scene {
            socket: closed(),
            now: at(START),
            iss: Seq::default(),
        };
        let remote = Endpoint::new(address(2), 5000);
        let socket = &mut scene.socket;
        match state {
            State::Closed => return scene,
            State::SynSent => socket.connect(scene.now, 80, remote),
            _ => socket.accept(scene.now, remote, &syn()),
        }
        .expect("the socket is closed");
        scene.drain();
        if matches!(state, State::SynSent | State::SynReceived) {
            return scene;
        }
        scene.hear(ACK, 1, 1, &[]);
        let now = scene.now;
        // Our FIN has number 1, the peer's too.
        match state {
            State::FinWait1 => scene.socket.shutdown(),
            State::FinWait2 | State::TimeWait => {
                scene.socket.shutdown();
                scene.drain();
                scene.hear(ACK, 1, 2, &[]);
                if state == State::TimeWait {
                    scene.hear(ACK | Flags::FIN, 1, 2, &[]);
                }
            }
            State::Closing => {
                scene.socket.shutdown();
                scene.drain();
                scene.hear(ACK | Flags::FIN, 1, 1, &[]);
            }
            State::CloseWait | State::LastAck => {
                scene.hear(ACK | Flags::FIN, 1, 1, &[]);
                if state == State::LastAck {
                    scene.socket.close(now);
                }
            }
            _ => {}
        }
        scene.drain();
        assert_eq!(scene.socket.state(), state);
        scene.now = at(START + 20);
        scene
    }

    /// The next sequence numbers of the peer and of us, relative.
    fn next(&self) -> (u32, u32) {
        let state = self.socket.state();
        let theirs = match state {
            State::Closed | State::SynSent => 0,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait => 2,
            _ => 1,
        };
        let ours = match state {
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => 2,
            _ => 1,
        };
        (theirs, ours)
    }
}

/// What the peer or the application does.
type Event = (&'static str, fn(&mut Scene) -> Option<Verdict>);

/// A segment with numbers relative to RCV.NXT and SND.NXT.
fn come(scene: &mut Scene, flags: Flags, seq: i32, ack: i32, payload: &[u8]) -> Option<Verdict> {
    let (theirs, ours) = scene.next();
    Some(scene.hear(
        flags,
        theirs.wrapping_add_signed(seq),
        ours.wrapping_add_signed(ack),
        payload,
    ))
}

const TEN: &[u8] = b"0123456789";
const FAR: i32 = 100_000;

const EVENTS: [Event; 40] = [
    ("SYN at RCV.NXT", |s| come(s, Flags::SYN, 0, 0, &[])),
    ("SYN in the window", |s| come(s, Flags::SYN, 9, 0, &[])),
    ("SYN beyond the window", |s| {
        come(s, Flags::SYN, FAR, 0, &[])
    }),
    ("the first SYN again", |s| {
        Some(s.hear(Flags::SYN, 0, 0, &[]))
    }),
    ("SYN+ACK at RCV.NXT", |s| {
        come(s, Flags::SYN | ACK, 0, 0, &[])
    }),
    ("SYN+ACK that repeats the SYN", |s| {
        Some(s.hear(Flags::SYN | ACK, 0, 1, &[]))
    }),
    ("SYN+ACK, wrong ACK", |s| {
        come(s, Flags::SYN | ACK, 0, 7, &[])
    }),
    ("SYN+FIN at RCV.NXT", |s| {
        come(s, Flags::SYN | Flags::FIN, 0, 0, &[])
    }),
    ("RST at RCV.NXT", |s| come(s, Flags::RST, 0, 0, &[])),
    ("RST+ACK at RCV.NXT", |s| {
        come(s, Flags::RST | ACK, 0, 0, &[])
    }),
    ("RST+ACK, wrong ACK", |s| {
        come(s, Flags::RST | ACK, 0, 7, &[])
    }),
    ("RST in the window", |s| come(s, Flags::RST, 9, 0, &[])),
    ("RST below the window", |s| come(s, Flags::RST, -9, 0, &[])),
    ("RST beyond the window", |s| {
        come(s, Flags::RST, FAR, 0, &[])
    }),
    ("no flags", |s| come(s, Flags::NONE, 0, 0, &[])),
    ("data without ACK", |s| come(s, Flags::NONE, 0, 0, TEN)),
    ("ACK of everything", |s| come(s, ACK, 0, 0, &[])),
    ("ACK of all but the last", |s| come(s, ACK, 0, -1, &[])),
    ("ACK of the future", |s| come(s, ACK, 0, 1, &[])),
    ("ACK of the past", |s| come(s, ACK, 0, -FAR, &[])),
    ("ACK below the window", |s| come(s, ACK, -1, 0, &[])),
    ("ACK beyond the window", |s| come(s, ACK, FAR, 0, &[])),
    ("data", |s| come(s, ACK, 0, 0, TEN)),
    ("data and ACK of the future", |s| come(s, ACK, 0, 1, TEN)),
    ("data with urgent pointer", |s| {
        come(s, ACK | Flags::URG, 0, 0, TEN)
    }),
    ("data after a hole", |s| come(s, ACK, 100, 0, TEN)),
    ("data partly old", |s| come(s, ACK, -5, 0, TEN)),
    ("old data", |s| come(s, ACK, -10, 0, TEN)),
    ("old data, ACK of the past", |s| {
        come(s, ACK, -10, -FAR, TEN)
    }),
    ("data over the window's end", |s| {
        come(s, ACK, WINDOW as i32 - 5, 0, TEN)
    }),
    ("data beyond the window", |s| come(s, ACK, FAR, 0, TEN)),
    ("data, timestamp older", |s| timestamped(s, Some(99))),
    ("data, no timestamp", |s| timestamped(s, None)),
    ("FIN", |s| come(s, ACK | Flags::FIN, 0, 0, &[])),
    ("FIN again", |s| come(s, ACK | Flags::FIN, -1, 0, &[])),
    ("data and FIN", |s| come(s, ACK | Flags::FIN, 0, 0, TEN)),
    ("shutdown", |s| call(s, |socket, _| socket.shutdown())),
    ("close", |s| call(s, |socket, now| socket.close(now))),
    ("abort", |s| call(s, |socket, _| socket.abort())),
    ("the next deadline", |s| {
        s.now = s.socket.poll_timeout().map_or(s.now, |wake| wake.at);
        call(s, |socket, now| socket.handle_timeout(now))
    }),
];

fn call(scene: &mut Scene, what: impl FnOnce(&mut Socket<'static>, Instant)) -> Option<Verdict> {
    what(&mut scene.socket, scene.now);
    None
}

fn timestamped(scene: &mut Scene, value: Option<u32>) -> Option<Verdict> {
    let (theirs, ours) = scene.next();
    let heard = Segment {
        options: value.map_or(Options::default(), stamped),
        ..segment(scene.iss, ACK, theirs, ours, TEN)
    };
    Some(
        scene
            .socket
            .handle_segment(scene.now, &heard, Ecn::NotCapable),
    )
}

const STATES: [State; 10] = [
    State::Closed,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

fn changed(before: &Counters, after: &Counters) -> String {
    let mut text = String::new();
    for (name, before, after) in [
        ("retransmits", before.retransmits, after.retransmits),
        ("timeouts", before.timeouts, after.timeouts),
        ("recoveries", before.recoveries, after.recoveries),
        ("undone", before.undone, after.undone),
        ("duplicates", before.duplicates, after.duplicates),
        ("dropped", before.dropped, after.dropped),
    ] {
        if before != after {
            let _ = write!(text, " {name}+{}", after - before);
        }
    }
    text
}

/// One event in one state: the state after it, what is sent, what the driver has to do, what is counted.
fn line(state: State, (name, act): Event) -> String {
    let mut scene = Scene::in_state(state);
    let counters = scene.socket.info().counters;
    let unread = scene.socket.info().unread;
    let verdict = act(&mut scene);
    let mut sent = scene.drain();
    if verdict == Some(Verdict::Refuse) {
        sent.push("(refuse)".into());
    }
    if verdict == Some(Verdict::Reopen) {
        sent.push("(reopen)".into());
    }
    let after = scene.socket.state();
    let end = match (after == state, scene.socket.failure()) {
        (true, _) => String::new(),
        (false, Some(why)) if after == State::Closed => format!(" {why:?}"),
        _ => String::new(),
    };
    let info = scene.socket.info();
    let read = match info.unread - unread {
        0 => String::new(),
        octets => format!(" read+{octets}"),
    };
    let after = if after == state {
        "-".into()
    } else {
        format!("{}{end}", after.name())
    };
    let wake = scene.socket.poll_timeout().map_or("", |wake| wake.why);
    let counted = changed(&counters, &info.counters);
    let sent = sent.join("; ");
    let counts = format!("{read}{counted}");
    let line = format!("{name:29}| {after:20}| {sent:36}|{counts:24}| {wake}");
    line.trim_end().into()
}

fn table() -> String {
    let mut text = String::from(
        "Every state with every event. Columns: event; new state, and why a connection ended; segments sent with relative numbers, and\nwhat the driver has to do; octets read and counters; the next deadline. In all states with a window it has 2000 octets. Numbers in events\nare relative to RCV.NXT and SND.NXT.\n",
    );
    for state in STATES {
        let _ = write!(text, "\n{}\n", state.name());
        for event in EVENTS {
            text.push_str(&line(state, event));
            text.push('\n');
        }
    }
    text
}

#[test]
#[allow(clippy::disallowed_methods)] // Reads from the environment whether to write the table.
fn every_state_with_every_event() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/states.txt");
    let new = table();
    if std::env::var_os("CHAPPE_BLESS").is_some() {
        std::fs::write(&path, &new).expect("the table can be written");
        return;
    }
    let old = std::fs::read_to_string(&path).expect("the table can be read");
    let differences: Vec<String> = old
        .lines()
        .zip(new.lines())
        .filter(|(old, new)| old != new)
        .map(|(old, new)| format!("- {old}\n+ {new}"))
        .collect();
    assert!(
        old == new,
        "{}\nCHAPPE_BLESS=1 accepts it",
        differences.join("\n")
    );
}
