//! An endless byte stream over KCP, as a tunnel carries it that terminates TCP at both ends.

use chappe_core::{Duration, HostNode, Instant, Wake};
use chappe_rivals::{Kcp, KcpConfig, KcpRules};

/// Octets of UDP over IPv4 around each datagram.
const UDP_IP: usize = 28;
/// Period of the octets that are sent: a prime, so that it divides no segment's length and a shifted segment is noticed.
const CYCLE: usize = 251;
/// Segments that are written ahead of the window, as a tunnel reads ahead from its TCP.
const AHEAD: usize = 32;

/// The source and the sink of a stream at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Whether this end sends endless data.
    pub sends: bool,
    written: u64,
    /// Octets received so far.
    pub received: u64,
    /// Received octets that differ from those sent at their offset.
    pub wrong: u64,
}

impl Flow {
    /// A source and sink, or only a sink.
    pub fn new(sends: bool) -> Flow {
        Flow {
            sends,
            ..Flow::default()
        }
    }

    /// Writes data until the window and the read-ahead are full.
    pub fn feed(&mut self, now: Instant, kcp: &mut Kcp) {
        let config = kcp.config();
        let (longest, window) = (config.segment_max(), usize::from(config.send_window));
        while self.sends && kcp.room() + AHEAD.min(window) > window {
            let octets: [u8; 4 * CYCLE] = std::array::from_fn(|i| self.octet(self.written, i));
            let taken = kcp.write(now, &octets[..longest.min(octets.len())]);
            self.written += taken as u64;
            if taken == 0 {
                return;
            }
        }
    }

    /// Reads and checks received data.
    pub fn drain(&mut self, kcp: &mut Kcp) {
        let mut octets = [0; 4096];
        loop {
            let read = kcp.read(&mut octets);
            if read == 0 {
                return;
            }
            let wrong = |(i, octet): &(usize, &u8)| self.octet(self.received, *i) != **octet;
            self.wrong += octets[..read].iter().enumerate().filter(wrong).count() as u64;
            self.received += read as u64;
        }
    }

    fn octet(&self, from: u64, i: usize) -> u8 {
        ((from as usize + i) % CYCLE) as u8
    }
}

/// One end of a KCP conversation behind a radio. Its datagrams are the packets on the link.
pub struct Tunnel {
    /// The byte stream inside the tunnel.
    pub flow: Flow,
    kcp: Kcp,
}

impl Tunnel {
    /// An end that sends endless data, or only receives.
    pub fn new(config: KcpConfig, sends: bool) -> Tunnel {
        let kcp = Kcp::new(config).unwrap_or_else(|why| unreachable!("the lab's own: {why}"));
        Tunnel {
            flow: Flow::new(sends),
            kcp,
        }
    }
}

impl HostNode for Tunnel {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if let Some(datagram) = packet.get(UDP_IP..) {
            self.kcp.handle(now, datagram);
            self.flow.drain(&mut self.kcp);
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        self.flow.feed(now, &mut self.kcp);
        let (header, datagram) = packet.split_at_mut_checked(UDP_IP)?;
        let len = self.kcp.poll(datagram)?;
        // Only the length of the UDP and IP headers matters on the air.
        header.fill(0);
        Some(UDP_IP + len)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.flow.feed(now, &mut self.kcp);
        self.kcp.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Wake> {
        self.kcp.poll_timeout()
    }
}

/// kcptun's mode `fast`, with this window in segments and this code (data and parity shards).
pub fn fast(window: u16, parity: Option<(u8, u8)>) -> KcpConfig {
    KcpConfig {
        rules: KcpRules::Go,
        send_window: window,
        parity,
        ..KcpConfig::fast()
    }
}

/// kcptun's mode `fast3`, with the same parameters as [`fast`].
pub fn fast3(window: u16, parity: Option<(u8, u8)>) -> KcpConfig {
    KcpConfig {
        interval: Duration::from_millis(10),
        nodelay: true,
        ..fast(window, parity)
    }
}
