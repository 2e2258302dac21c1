//! Snoop: an agent in a router that repairs the losses of one link by reading the TCP segments that pass.
//!
//! H. Balakrishnan, S. Seshan, E. Amir, R. Katz, "Improving TCP/IP Performance over Wireless Networks" (MobiCom 1995),
//! the half from the fixed to the mobile host, which WiLDNet's authors put on each outgoing link (section 7). It caches
//! outgoing segments until they are acknowledged, and sends a segment again on a duplicate acknowledgement or on its own
//! timeout. It suppresses such duplicates, on which the sender would slow down.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use chappe_core::{Duration, Instant, Wake};
use chappe_wire::ipv6::{self, next};

use crate::header::before;
use crate::store::Store;

/// The settings of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnoopConfig {
    /// Packets cached, all connections together; more pass without being cached. 100 hold a window of 65,535 octets twice.
    pub cache: usize,
    /// Longest packet that is cached, octets.
    pub packet_max: usize,
    /// Shortest retransmission timeout: the original had 40 ms, since the 200 ms of BSD in 1995 were too long for a link.
    pub timer_min: Duration,
}

impl Default for SnoopConfig {
    fn default() -> SnoopConfig {
        SnoopConfig {
            cache: 100,
            packet_max: 2048,
            timer_min: Duration::from_millis(40),
        }
    }
}

/// Counters of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnoopCounters {
    /// Packets put into the cache.
    pub kept: u64,
    /// Packets sent again because of a duplicate acknowledgement.
    pub repeated: u64,
    /// Packets sent again because the timeout expired.
    pub timeouts: u64,
    /// Duplicate acknowledgements that did not reach the sender.
    pub suppressed: u64,
}

/// The agent of one outgoing link.
#[derive(Clone, Debug)]
pub struct Snoop {
    config: SnoopConfig,
    packets: Store,
    free: Vec<usize>,
    flows: Vec<Flow>,
    counters: SnoopCounters,
}

/// Connections that an agent tracks; the packets of further ones pass unchanged.
const FLOWS: usize = 16;
/// Most doublings of the timeout.
const DOUBLINGS_MAX: u32 = 6;

#[derive(Clone, Debug)]
struct Flow {
    /// Ports as in outgoing packets.
    ports: [u8; 4],
    kept: VecDeque<Kept>,
    /// The highest acknowledgement seen, and its window.
    acked: Option<(u32, u16)>,
    duplicates: u32,
    /// Round trip beyond this router: smoothed, and its variation (RFC 6298).
    rtt: Option<(Duration, Duration)>,
    /// When the oldest packet times out.
    timer: Option<Instant>,
    doublings: u32,
    /// The oldest packet is to be sent again at once.
    again: bool,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    seq: u32,
    end: u32,
    place: usize,
    at: Instant,
    /// Sent again by this agent or by the sender, so it measures no round trip (Karn's algorithm).
    resent: bool,
    /// The sender has sent it again: it knows of the loss, so duplicates must reach it.
    by_sender: bool,
}

/// The fields of a TCP segment that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    ports: [u8; 4],
    seq: u32,
    ack: Option<u32>,
    window: u16,
    /// Octets of payload, which take sequence numbers.
    payload: u32,
    /// SYN, FIN or RST.
    special: bool,
}

impl Segment {
    fn parse(packet: &[u8]) -> Option<Segment> {
        let (_, upper) = ipv6::parse(packet).ok()?;
        let tcp = upper.packet;
        if upper.protocol != next::TCP {
            return None;
        }
        let head: &[u8; 20] = tcp.first_chunk()?;
        let [
            a,
            b,
            c,
            d,
            s0,
            s1,
            s2,
            s3,
            a0,
            a1,
            a2,
            a3,
            offset,
            flags,
            w0,
            w1,
            ..,
        ] = *head;
        let payload = tcp.len().checked_sub(usize::from(offset >> 4) * 4)?;
        Some(Segment {
            ports: [a, b, c, d],
            seq: u32::from_be_bytes([s0, s1, s2, s3]),
            ack: (flags & 0x10 != 0).then(|| u32::from_be_bytes([a0, a1, a2, a3])),
            window: u16::from_be_bytes([w0, w1]),
            payload: payload as u32,
            special: flags & 0x07 != 0,
        })
    }

    /// The ports of the other direction.
    fn reversed(&self) -> [u8; 4] {
        let [a, b, c, d] = self.ports;
        [c, d, a, b]
    }
}

impl Snoop {
    /// Makes an agent that has seen no packet.
    pub fn new(config: SnoopConfig) -> Snoop {
        Snoop {
            packets: Store::new(config.cache, config.packet_max),
            free: (0..config.cache).rev().collect(),
            flows: Vec::with_capacity(FLOWS),
            counters: SnoopCounters::default(),
            config,
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> &SnoopCounters {
        &self.counters
    }

    /// Processes a packet on its way to the link.
    pub fn from_host(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = Segment::parse(packet).filter(|segment| segment.payload > 0) else {
            return;
        };
        let Some(flow) = known(&mut self.flows, segment.ports) else {
            return;
        };
        if let Some(kept) = flow.kept.iter_mut().find(|kept| kept.seq == segment.seq) {
            (kept.resent, kept.by_sender) = (true, true);
            return;
        }
        // The cache stays in order of the sequence, so that its front is the oldest.
        let in_order = flow
            .kept
            .back()
            .is_none_or(|last| !before(segment.seq, last.end));
        if !in_order || packet.len() > self.config.packet_max {
            return;
        }
        let Some(place) = self.free.pop() else { return };
        self.packets.put(place, &[packet]);
        flow.kept.push_back(Kept {
            seq: segment.seq,
            end: segment.seq.wrapping_add(segment.payload),
            place,
            at: now,
            resent: false,
            by_sender: false,
        });
        self.counters.kept += 1;
        let wait = flow.wait(self.config.timer_min);
        flow.timer.get_or_insert(now + wait);
    }

    /// Processes a packet from the link; returns whether it may pass to the sender.
    pub fn from_link(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some(segment) = Segment::parse(packet).filter(|segment| !segment.special) else {
            return true;
        };
        let (Some(ack), Some(flow)) = (segment.ack, known(&mut self.flows, segment.reversed()))
        else {
            return true;
        };
        let Some((acked, window)) = flow.acked.filter(|(acked, _)| !before(*acked, ack)) else {
            flow.advance(now, ack, &mut self.free);
            flow.acked = Some((ack, segment.window));
            let wait = flow.wait(self.config.timer_min);
            flow.timer = flow.kept.front().map(|_| now + wait);
            return true;
        };
        // A duplicate carries no data (RFC 5681, 2).
        if segment.payload > 0 || before(ack, acked) {
            return true;
        }
        if window != segment.window {
            // A window update is no duplicate (RFC 5681, 2), so no sign of a loss.
            flow.acked = Some((ack, segment.window));
            return true;
        }
        flow.duplicates = flow.duplicates.saturating_add(1);
        let Some(oldest) = flow.kept.front().filter(|kept| kept.seq == ack) else {
            return true;
        };
        if oldest.by_sender {
            return true;
        }
        // One repair for each loss; if that is lost too, the timeout sends the next.
        if flow.duplicates == 1 {
            flow.again = true;
            self.counters.repeated += 1;
        }
        self.counters.suppressed += 1;
        false
    }

    /// Writes the next packet to send again, before anything new; `None` if there is none.
    pub fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        let flow = self.flows.iter_mut().find(|flow| flow.again)?;
        flow.again = false;
        let wait = flow.wait(self.config.timer_min);
        let oldest = flow.kept.front_mut()?;
        oldest.resent = true;
        flow.timer = Some(now + wait);
        let octets = self.packets.get(oldest.place);
        packet.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(octets.len())
    }

    /// Processes the timeouts that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for flow in &mut self.flows {
            if flow.timer.is_none_or(|at| at > now) {
                continue;
            }
            flow.again = !flow.kept.is_empty();
            self.counters.timeouts += u64::from(flow.again);
            flow.doublings = (flow.doublings + 1).min(DOUBLINGS_MAX);
            let wait = flow.wait(self.config.timer_min);
            flow.timer = flow.again.then(|| now + wait);
        }
    }

    /// The next timeout, if any packet is cached.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let at = self.flows.iter().filter_map(|flow| flow.timer).min()?;
        Some(Wake {
            at,
            why: "Snoop's timer",
        })
    }
}

/// The connection with these ports, added if there is room for it.
fn known(flows: &mut Vec<Flow>, ports: [u8; 4]) -> Option<&mut Flow> {
    if let Some(place) = flows.iter().position(|flow| flow.ports == ports) {
        return flows.get_mut(place);
    }
    if flows.len() >= FLOWS {
        return None;
    }
    flows.push(Flow {
        ports,
        kept: VecDeque::new(),
        acked: None,
        duplicates: 0,
        rtt: None,
        timer: None,
        doublings: 0,
        again: false,
    });
    flows.last_mut()
}

impl Flow {
    /// Everything before `ack` has arrived.
    fn advance(&mut self, now: Instant, ack: u32, free: &mut Vec<usize>) {
        let mut latest = None;
        while let Some(kept) = self.kept.pop_front_if(|kept| !before(ack, kept.end)) {
            free.push(kept.place);
            latest = Some(kept);
        }
        if let Some(kept) = latest.filter(|kept| !kept.resent) {
            self.measure(now.saturating_since(kept.at));
        }
        (self.duplicates, self.doublings, self.again) = (0, 0, false);
    }

    /// Takes a round-trip sample (RFC 6298, 2).
    fn measure(&mut self, sample: Duration) {
        let (smoothed, variation) = self.rtt.unwrap_or((sample, sample / 2));
        let off = sample.max(smoothed).saturating_sub(sample.min(smoothed));
        self.rtt = Some(((smoothed * 7 + sample) / 8, (variation * 3 + off) / 4));
    }

    fn wait(&self, least: Duration) -> Duration {
        let base = match self.rtt {
            Some((smoothed, variation)) => (smoothed + variation * 4).max(least),
            None => least * 5,
        };
        base * (1 << self.doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: [u8; 4] = [0xc3, 0x50, 0x13, 0x89];

    /// An IPv6 packet with a TCP segment of this payload.
    fn packet(ports: [u8; 4], seq: u32, ack: u32, window: u16, payload: usize) -> Vec<u8> {
        let mut packet = alloc::vec![0; 60 + payload];
        let header = ipv6::Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: (20 + payload) as u16,
            next_header: next::TCP,
            hop_limit: 64,
            source: "fd00::1".parse().unwrap(),
            destination: "fd00::2".parse().unwrap(),
        };
        header.emit(&mut packet).unwrap();
        packet[40..44].copy_from_slice(&ports);
        packet[44..48].copy_from_slice(&seq.to_be_bytes());
        packet[48..52].copy_from_slice(&ack.to_be_bytes());
        (packet[52], packet[53]) = (0x50, 0x10);
        packet[54..56].copy_from_slice(&window.to_be_bytes());
        packet
    }

    fn data(seq: u32) -> Vec<u8> {
        packet(OUT, seq, 0, 1000, 100)
    }

    fn ack(ack: u32) -> Vec<u8> {
        packet([0x13, 0x89, 0xc3, 0x50], 0, ack, 1000, 0)
    }

    /// The first duplicate acknowledgement triggers a retransmission. No duplicate reaches the sender, but the new
    /// acknowledgement that follows does.
    #[test]
    fn a_loss_is_hidden_from_the_sender() {
        let mut snoop = Snoop::new(SnoopConfig::default());
        let (now, mut out) = (Instant::from_millis(1), [0; 2048]);
        for seq in [0, 100, 200, 300] {
            snoop.from_host(now, &data(seq));
        }
        let later = Instant::from_millis(20);
        assert!(snoop.from_link(later, &ack(100)));
        assert_eq!(snoop.poll_packet(later, &mut out), None);
        assert!(!snoop.from_link(later, &ack(100)));
        let len = snoop.poll_packet(later, &mut out).unwrap();
        assert_eq!(out[..len], data(100)[..]);
        assert!(!snoop.from_link(later, &ack(100)));
        assert_eq!(snoop.poll_packet(later, &mut out), None);
        assert!(snoop.from_link(later, &ack(400)));
        assert_eq!(
            (snoop.counters().suppressed, snoop.poll_timeout()),
            (2, None)
        );
    }

    /// Duplicates for a segment that the sender itself sent again pass, and so do unknown packets.
    #[test]
    fn duplicates_for_the_senders_own_retransmissions_pass() {
        let mut snoop = Snoop::new(SnoopConfig::default());
        let now = Instant::from_millis(1);
        snoop.from_host(now, &data(0));
        snoop.from_host(now, &data(0));
        assert!(snoop.from_link(now, &ack(0)));
        assert!(snoop.from_link(now, &ack(0)));
        assert!(snoop.from_link(now, b"no packet"));
        assert!(snoop.from_link(now, &packet(OUT, 5, 5, 5, 0)));
    }

    /// Without any acknowledgement the timeout sends the oldest packet again, and doubles each time.
    #[test]
    fn timeouts_repeat_the_oldest_packet_and_double() {
        let mut snoop = Snoop::new(SnoopConfig::default());
        let mut out = [0; 2048];
        snoop.from_host(Instant::ZERO, &data(0));
        let mut waits = Vec::new();
        let mut before = Instant::ZERO;
        for _ in 0..3 {
            let at = snoop.poll_timeout().unwrap().at;
            snoop.handle_timeout(at);
            assert!(snoop.poll_packet(at, &mut out).is_some());
            waits.push(at.saturating_since(before).nanos() / 1_000_000);
            before = at;
        }
        assert_eq!(waits, [200, 400, 800]);
    }

    /// A full cache lets further packets pass; acknowledged packets free their places.
    #[test]
    fn the_cache_is_bounded() {
        let mut snoop = Snoop::new(SnoopConfig {
            cache: 2,
            ..SnoopConfig::default()
        });
        for seq in [0, 100, 200] {
            snoop.from_host(Instant::ZERO, &data(seq));
        }
        assert_eq!(snoop.counters().kept, 2);
        assert!(snoop.from_link(Instant::ZERO, &ack(200)));
        snoop.from_host(Instant::ZERO, &data(300));
        assert_eq!(snoop.counters().kept, 3);
    }
}
