//! What a station costs the simulator: nanoseconds per call of its hottest paths, the fastest of many batches, as other
//! work on the machine only ever adds to one.
//!
//! `cargo bench -p chappe-mac`

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // it measures: it needs the clock

use std::hint::black_box;
use std::time::Instant as Wall;

use chappe_core::{
    Address, Class, Classes, Duration, Instant, LinkEvent, LinkNode, LinkSend, Mac, Mode, OverMac,
    Purpose, RadioEvent, RadioNode, RadioRequest, Rate, Reception, Seed, Stream, Wake,
};
use chappe_mac::dot11::{Category, Config, Dot11, Edca, PSDU_MAX, ZmacPlus};
use chappe_mac::zmac::{self, Schedule};
use chappe_wire::dot11::{ACK_LEN, Data, FCS_LEN, NavTime, Repr, Sequence};
use chappe_wire::llc::{self, EtherType};

const BATCHES: u64 = 200;
const BATCH: u64 = 25_000;

/// Always has a frame, or never.
struct Source {
    to: Option<Address>,
}

impl LinkNode for Source {
    fn handle_link(&mut self, _: Instant, event: LinkEvent<'_>) {
        black_box(event);
    }
    fn pending(&self) -> Classes {
        Classes::NONE.with_if(Class::Data, self.to.is_some())
    }
    fn poll_link(&mut self, _: Instant, _: Classes, _: &mut [u8]) -> Option<LinkSend> {
        Some(LinkSend {
            to: self.to?,
            len: 1500,
            class: Class::Data,
            mode: None,
            token: 0,
        })
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Wake> {
        None
    }
}

fn station(to: Option<Address>, overhear: bool) -> Box<OverMac<Dot11, Source>> {
    let config = Config {
        overhear,
        ..Config::dot11b(Rate::Dsss2)
    };
    let mac = Dot11::new(config, Address::node(1), random());
    Box::new(OverMac::new(mac, Source { to }))
}

fn report(what: &str, calls: u64, mut call: impl FnMut()) {
    let mut fastest = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Wall::now();
        (0..calls).for_each(|_| call());
        fastest = fastest.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    println!("{fastest:7.1} ns  {what}");
}

fn main() {
    let (dcf, edca, zmac) = (size_of::<Dot11>(), size_of::<Edca>(), size_of::<ZmacPlus>());
    println!("{dcf} octets of state (EDCA {edca}, ZMAC+ {zmac})");
    carrier();
    overheard(true);
    overheard(false);
    let dcf = || Dot11::new(Config::dot11b(Rate::Dsss2), Address::node(1), random());
    cycle(
        "DCF: a broadcast, from back-off to back-off",
        dcf(),
        Address::BROADCAST,
    );
    cycle("DCF: an acknowledged frame", dcf(), Address::node(2));
    let edca = Edca::edca(
        Config::dot11b(Rate::Dsss2),
        Category::DSSS,
        Address::node(1),
        random(),
    );
    cycle("EDCA: an acknowledged frame", edca, Address::node(2));
    let config = zmac::Config::of_rate(Rate::Dsss2);
    let alone = Schedule::of(0, &[0], |_, _| false);
    let zmac = Dot11::zmac_plus(config, alone, Address::node(1), random());
    cycle(
        "ZMAC+: an acknowledged frame, with its burst",
        zmac,
        Address::node(2),
    );
}

fn random() -> Stream {
    Seed(1).stream(Purpose::Node(1))
}

/// Energy comes and goes while the station contends and never gets its turn.
fn carrier() {
    let mut node = station(Some(Address::BROADCAST), true);
    let mut psdu = vec![0; PSDU_MAX];
    let (mut now, mut busy) = (Instant::ZERO, true);
    node.handle_timeout(now);
    while let Some(request) = node.poll_radio(now, &mut psdu) {
        if request == RadioRequest::Sense(true) {
            node.handle_radio(now, RadioEvent::Carrier { busy, since: now });
        }
    }
    report("carrier event while contending, drained", BATCH, || {
        now += Duration::from_micros(30);
        busy = !busy;
        node.handle_radio(now, black_box(RadioEvent::Carrier { busy, since: now }));
        black_box(node.poll_radio(now, &mut psdu));
        black_box(node.poll_timeout());
    });
}

/// Frames for others, handed up or not, at a station with nothing to send.
fn overheard(overhear: bool) {
    let mut node = station(None, overhear);
    let mut psdu = vec![0; PSDU_MAX];
    let data = Data {
        receiver: Address::node(3),
        transmitter: Address::node(2),
        bssid: node.mac.config().bssid,
        sequence: Sequence::new(7),
        qos: false,
        retry: false,
        duration: NavTime::covering(Duration::from_micros(314)),
    };
    let mut frame = vec![0; 1532];
    let header = Repr::Data(data).emit(&mut frame).expect("fits");
    llc::emit(EtherType::EXPERIMENTAL, &mut frame[header..]).expect("fits");
    let mut now = Instant::ZERO;
    let what = if overhear {
        "handed up"
    } else {
        "not handed up"
    };
    let what = format!("data frame for somebody else, {what}, drained");
    report(&what, BATCH, || {
        now += Duration::from_micros(7000);
        let reception = Reception {
            psdu: &frame,
            started: now,
            mode: Mode::long(Rate::Dsss2),
            power: None,
        };
        node.handle_radio(now, black_box(RadioEvent::Received(reception)));
        black_box(node.poll_radio(now, &mut psdu));
        black_box(node.poll_timeout());
    });
}

/// A saturated sender alone, one frame: back-off, burst if there is one, frame taken and sent, ACK heard if there is one.
fn cycle<M: Mac>(what: &str, mac: M, to: Address) {
    let mut node = OverMac::new(mac, Source { to: Some(to) });
    let mut psdu = vec![0; PSDU_MAX];
    let mut ack = [0; ACK_LEN];
    let receiver = Address::node(1);
    let duration = NavTime::ZERO;
    Repr::Ack { receiver, duration }
        .emit(&mut ack)
        .expect("fits");
    let mut now = Instant::from_millis(1);
    report(what, BATCH / 5, || {
        let mut sent = false;
        while !sent {
            node.handle_timeout(now);
            while let Some(request) = node.poll_radio(now, &mut psdu) {
                match request {
                    RadioRequest::Sense(true) => {
                        let since = now.saturating_before(Duration::from_micros(1));
                        node.handle_radio(now, RadioEvent::Carrier { busy: false, since });
                    }
                    RadioRequest::Burst(burst) => {
                        // The station listens meanwhile, and its own energy is energy.
                        now = burst.at + burst.lasts;
                        for (busy, since) in [(true, burst.at), (false, now)] {
                            node.handle_radio(since, RadioEvent::Carrier { busy, since });
                        }
                        node.handle_radio(now, RadioEvent::Sent);
                    }
                    RadioRequest::Transmit(transmit) => {
                        now = transmit.at + Duration::from_micros(6336);
                        node.handle_radio(now, RadioEvent::Sent);
                        sent = true;
                        if to.is_broadcast() {
                            continue;
                        }
                        let (psdu, power) = (&ack[..], None);
                        let mode = Mode::long(Rate::Dsss1);
                        let started = now + Duration::from_micros(10);
                        now = started + mode.airtime(ACK_LEN + FCS_LEN);
                        let ack = Reception {
                            psdu,
                            started,
                            mode,
                            power,
                        };
                        node.handle_radio(now, RadioEvent::Received(ack));
                    }
                    _ => {}
                }
            }
            now = node.poll_timeout().map_or(now, |wake| wake.at);
        }
    });
}
