use super::*;
use chappe_tcplp::tcp::{Endpoint, Flow as Tuple, Options, Range, Timestamps};
use std::net::IpAddr;

const MOTE: &str = "fd00::2";
const KERNEL: &str = "fd00::1";
const PORT: u16 = 40000;

/// A packet from `from` to `to`, whose IPv6 header is the first value.
pub(crate) fn packet(
    from: (&str, u16),
    to: (&str, u16),
    segment: &Segment<'_>,
) -> (Header, Vec<u8>) {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    let segment = Segment {
        source_port: from.1,
        destination_port: to.1,
        ..*segment
    };
    let end = |(text, port)| Endpoint::new(IpAddr::V6(address(text)), port);
    let mut octets = vec![0; HEADER_LEN + 60];
    let parts = [segment.payload, &[]];
    let len = segment.emit_header(
        &Tuple::new(end(from), end(to)),
        parts,
        &mut octets[HEADER_LEN..],
    );
    octets.truncate(HEADER_LEN + len);
    octets.extend_from_slice(segment.payload);
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: (octets.len() - HEADER_LEN) as u16,
        next_header: next::TCP,
        hop_limit: 64,
        source: address(from.0),
        destination: address(to.0),
    };
    header.emit(&mut octets).unwrap();
    (header, octets)
}

pub(crate) fn blank() -> Segment<'static> {
    Segment {
        source_port: 0,
        destination_port: 0,
        seq: Seq::new(77),
        ack: Seq::new(0),
        flags: Flags::ACK,
        window: 500,
        urgent: 0,
        options: Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..Options::default()
        },
        payload: &[],
    }
}

/// The gateway's view of one flow.
#[derive(Default)]
struct Trial {
    thinning: Thinning,
    now: Instant,
    port: u16,
}

impl Trial {
    /// A segment of 100 octets that begins at `seq` passes to the kernel, `after` ms after the last call.
    fn data(&mut self, after: u64, seq: u32) {
        self.segment_of_mote(after, seq, Flags::ACK);
    }

    fn segment_of_mote(&mut self, after: u64, seq: u32, flags: Flags) {
        self.now += Duration::from_millis(after);
        let segment = Segment {
            seq: Seq::new(seq),
            flags,
            payload: &[1; 100],
            ..blank()
        };
        let (header, octets) = packet((MOTE, 80), (KERNEL, PORT + self.port), &segment);
        self.thinning.arrived(self.now, &header, &octets);
    }

    /// What becomes of this segment from the kernel: the acknowledgement numbers that pass.
    fn kernel(&mut self, after: u64, segment: Segment<'_>) -> Vec<u32> {
        self.now += Duration::from_millis(after);
        let (header, octets) = packet((KERNEL, PORT + self.port), (MOTE, 80), &segment);
        match self.thinning.judge(self.now, &header, &octets) {
            Ruling::Hold => Vec::new(),
            Ruling::Pass(held) => {
                let held = held.map(|held| number(&held));
                held.into_iter().chain([segment.ack.bits()]).collect()
            }
        }
    }

    fn ack(&mut self, after: u64, number: u32) -> Vec<u32> {
        let ack = Seq::new(number);
        self.kernel(after, Segment { ack, ..blank() })
    }

    /// Three segments 145 ms apart, each acknowledged after 40 ms: the flow's spacing is known, and all of them are covered.
    fn started() -> Trial {
        let mut trial = Trial::default();
        trial.data(105, 0_u32.wrapping_sub(100));
        assert_eq!(trial.ack(40, 0), [0]);
        trial.data(105, 0);
        assert_eq!(trial.ack(40, 100), []);
        trial.data(105, 100);
        assert_eq!(trial.ack(40, 200), [200]);
        trial
    }

    /// As [`started`](Self::started), with the acknowledgement 300 held.
    fn holding() -> Trial {
        let mut trial = Trial::started();
        trial.data(105, 200);
        assert_eq!(trial.ack(40, 300), []);
        trial
    }
}

fn number(held: &Held) -> u32 {
    let (_, upper) = held.packet().split_at(HEADER_LEN);
    Segment::parse(upper).unwrap().ack.bits()
}

/// Linux acknowledges each segment when they come 145 ms apart; every second acknowledgement crosses the mesh.
#[test]
fn every_second_acknowledgement_passes() {
    let mut trial = Trial::started();
    let mut passed = Vec::new();
    for segment in 2..42 {
        trial.data(105, segment * 100);
        passed.extend(trial.ack(40, (segment + 1) * 100));
    }
    let expected: Vec<u32> = (2..42).step_by(2).map(|n| (n + 2) * 100).collect();
    assert_eq!(passed, expected);
    assert_eq!((trial.thinning.thinned(), trial.thinning.due()), (21, None));
}

/// What says more than "the next segment arrived" passes at once; what was held goes ahead of it, unless it is covered.
#[test]
fn whatever_says_more_passes_at_once() {
    let ack = |number| Segment {
        ack: Seq::new(number),
        ..blank()
    };
    let mut sack = ack(300);
    sack.options
        .sack
        .push(Range::new(Seq::new(400), Seq::new(500)));
    let with = |flags, number| Segment {
        flags: Flags::ACK | flags,
        ..ack(number)
    };
    let mut unknown = ack(350);
    unknown.options.window_scale = Some(7);
    for (what, segment, passed) in [
        ("duplicate", ack(300), vec![300, 300]),
        ("SACK", sack, vec![300, 300]),
        ("older", ack(250), vec![300, 250]),
        (
            "window",
            Segment {
                window: 400,
                ..ack(350)
            },
            vec![350],
        ),
        ("ECE", with(Flags::ECE, 350), vec![350]),
        ("FIN", with(Flags::FIN, 350), vec![350]),
        ("RST", with(Flags::RST, 350), vec![350]),
        ("option", unknown, vec![350]),
        (
            "data",
            Segment {
                payload: b"GET",
                ..ack(350)
            },
            vec![350],
        ),
    ] {
        assert_eq!(Trial::holding().kernel(10, segment), passed, "{what}");
    }
}

/// Without a further segment, the held one goes after the flow's spacing, at the latest after 300 ms; and a sender that waits
/// for acknowledgements, as one with a window of one segment does, is delayed ever more rarely.
#[test]
fn a_hold_in_vain_ends_and_becomes_rare() {
    let mut trial = Trial::holding();
    let due = trial.thinning.due().unwrap();
    assert!(due > trial.now && due <= trial.now + HOLD_MAX, "{due}");
    assert_eq!(trial.thinning.release(trial.now), None);
    trial.now = due;
    assert_eq!(
        trial.thinning.release(due).map(|held| number(&held)),
        Some(300)
    );
    let mut delayed = 0;
    for segment in 3..200 {
        trial.data(105, segment * 100);
        if trial.ack(40, (segment + 1) * 100).is_empty() {
            delayed += 1;
            trial.now = trial.thinning.due().unwrap();
            assert!(trial.thinning.release(trial.now).is_some());
        }
    }
    assert!((1..9).contains(&delayed), "{delayed}");
    // The same if the mote sends again before the hold has ended.
    let mut trial = Trial::holding();
    let mut again = 0;
    for segment in 3..200 {
        if trial.thinning.due().is_some() {
            again += 1;
            trial.data(60, (segment - 1) * 100);
            assert!(trial.thinning.release(trial.now).is_some());
        }
        trial.data(105, segment * 100);
        trial.ack(40, (segment + 1) * 100);
    }
    assert!((1..9).contains(&again), "{again}");
}

/// A flow whose segments come 400 ms apart, or which has just begun, is not thinned: there is no telling when the next will come.
#[test]
fn a_slow_or_new_flow_is_left_alone() {
    let mut trial = Trial::default();
    for segment in 0..20 {
        trial.data(360, segment * 100);
        assert_eq!(trial.ack(40, (segment + 1) * 100), [(segment + 1) * 100]);
    }
    assert_eq!(trial.thinning.due(), None);
}

/// When the mote ends the connection, what is held goes at once, and the flow is forgotten.
#[test]
fn the_end_of_a_flow_releases_what_is_held() {
    let mut trial = Trial::holding();
    trial.segment_of_mote(5, 300, Flags::ACK | Flags::FIN);
    assert!(trial.thinning.due().unwrap() <= trial.now);
    let held = trial.thinning.release(trial.now).unwrap();
    assert_eq!(number(&held), 300);
    assert!(trial.thinning.flows.is_empty());
}

/// Memory is bounded: 200 flows leave as many entries as there is room for, and none that holds a packet is lost.
#[test]
fn memory_is_bounded() {
    let mut trial = Trial::holding();
    for port in 1..200 {
        trial.port = port;
        trial.data(1, 0);
    }
    assert_eq!(trial.thinning.flows.len(), FLOWS);
    let held = trial.thinning.release(trial.now + HOLD_MAX).unwrap();
    assert_eq!(number(&held), 300);
}

/// Octets from outside never panic.
#[test]
fn any_octets_are_accepted() {
    let mut thinning = Thinning::default();
    let (header, whole) = packet((KERNEL, PORT), (MOTE, 80), &blank());
    for len in 0..whole.len() {
        let cut = &whole[..len];
        thinning.arrived(Instant::ZERO, &header, cut);
        assert_eq!(
            thinning.judge(Instant::ZERO, &header, cut),
            Ruling::Pass(None)
        );
    }
}
