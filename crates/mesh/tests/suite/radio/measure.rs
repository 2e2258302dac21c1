//! One measurement in virtual time.

use chappe_core::{Bitrate, Duration};
use chappe_mesh::air::Air;
use chappe_mesh::node::mtu_of;
use chappe_mesh::settings::Hop;

use super::{FRAME_MAX, Host, Places, Plain, Radios, quantile};

/// When TCP begins, and how long it lasts.
const BEGINS: Duration = Duration::from_secs(5);
const LASTS: Duration = Duration::from_secs(10);
/// How often routes are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// What one seed gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Goodput of TCP in kbit/s, from its beginning on.
    pub tcp_kbps: f64,
    /// Goodput of packets that always wait, in kbit/s.
    pub flood_kbps: f64,
    /// Pings beside TCP, in seconds: the median, and 95 % of them.
    pub ping_s: (f64, f64),
    /// The longest time beside TCP for which a node had no next hop to an end that packets waited for, in seconds.
    pub stood_s: f64,
    /// The first answer to a ping, in seconds.
    pub first_s: f64,
    /// The share of TCP segments that were sent again.
    pub again: f64,
}

impl Measured {
    /// From the first node to the last.
    pub fn of(places: &Places, seed: u64) -> Measured {
        let mut radios = Radios::new(places, Hop::Broadcast, seed);
        let last = places.medium.nodes() - 1;
        radios.ping(0, last, Duration::from_millis(200));
        radios.run(BEGINS);
        let first = radios.card(0).programs.pings.first;
        radios.connect(0, last);
        radios.with(0, |card, _| card.programs.pings.round_trips.clear());
        let stood_s = longest_stand(&mut radios, last, BEGINS + LASTS);
        let card = radios.card(0);
        let mut times = card.programs.pings.round_trips.clone();
        let (flow, end) = (
            &card.programs.flows[0],
            &radios.card(last).programs.flows[0],
        );
        Measured {
            tcp_kbps: end.octets() as f64 * 8e-3 / LASTS.as_secs_f64(),
            flood_kbps: flood(places, seed),
            ping_s: (quantile(&mut times, 0.5), quantile(&mut times, 0.95)),
            stood_s,
            first_s: first.map_or(f64::INFINITY, |at| at.as_secs_f64()),
            again: flow.again as f64 / flow.sent.max(1) as f64,
        }
    }
}

/// Runs until then; the longest time for which a node had no next hop to an end, the first node or the last, that packets waited for
/// there. Packets from one end to the other always do.
fn longest_stand(radios: &mut Radios, last: usize, until: Duration) -> f64 {
    let mut stands = vec![Duration::ZERO; 2 * (last + 1)];
    let mut longest = Duration::ZERO;
    let mut at = BEGINS;
    while at < until {
        at += LOOK;
        radios.run(at);
        for (place, stand) in stands.iter_mut().enumerate() {
            let (node, end) = (place / 2, [0, last][place % 2]);
            let router = radios.card(node).node.router();
            let number = end as u16 + 1;
            let waits = node != end && (node == last - end || router.queue(number) > 0);
            *stand = match waits && router.next_hops(number).next().is_none() {
                true => *stand + LOOK,
                false => Duration::ZERO,
            };
            longest = longest.max(*stand);
        }
    }
    longest.as_secs_f64()
}

fn flood(places: &Places, seed: u64) -> f64 {
    let mut radios = Radios::new(places, Hop::Broadcast, seed);
    radios.run(BEGINS);
    let last = places.medium.nodes() - 1;
    let packets = radios.flood(0, last, BEGINS + LASTS);
    packets as f64 * mtu_of(FRAME_MAX) as f64 * 8e-3 / LASTS.as_secs_f64()
}

/// The mean back-off of a broadcast: 15.5 slots of 20 us.
pub const BACKOFF_S: f64 = 310e-6;
/// What an ACK adds to a frame: SIFS of 10 us, a long preamble and 14 octets at 1 Mbit/s.
pub const ACK_S: f64 = 10e-6 + 192e-6 + 112e-6;

/// What `hops` links of one collision domain carry at most, in kbit/s, if each takes 1 / `ratio` transmissions and nothing else is
/// on the air: no acknowledgement, no collision, no routing. First by broadcasts with the mean back-off, then without any back-off,
/// then by unicasts that the card repeats until it hears an ACK of 1 Mbit/s.
pub fn ceilings(hops: f64, ratio: f64) -> [f64; 3] {
    let air = Air::dot11b(Bitrate(11_000_000));
    let (frame, mtu) = (air.exchange(FRAME_MAX).as_secs_f64(), mtu_of(FRAME_MAX));
    let rate = |octets: usize, takes: f64| octets as f64 * 8e-3 / (hops * takes);
    [
        rate(mtu, frame / ratio),
        rate(mtu, (frame - BACKOFF_S) / ratio),
        rate(Plain::mtu(), (frame + ACK_S) / (ratio * ratio)),
    ]
}
