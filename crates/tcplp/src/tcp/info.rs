//! A snapshot of a connection, like Linux's `TCP_INFO`: for tests, tools and radios that adapt to the transport.

use chappe_core::Duration;

use super::bits;
use super::congestion::Congestion;
use super::flight::{LOST, RETRANSMITTED, SACKED};
use super::recovery::Phase;
use super::socket::{Counters, Socket};
use super::state::State;

/// A snapshot of a connection. Sizes are in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The state, as RFC 9293 names it.
    pub state: State,
    /// The phase of loss recovery.
    pub phase: Phase,
    /// The congestion window, cwnd.
    pub cwnd: u32,
    /// Slow-start threshold; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// Sent and not acknowledged, SYN and FIN included: FlightSize.
    pub in_flight: u32,
    /// The estimate of what is in the network: RFC 6675's pipe.
    pub pipe: u32,
    /// In flight and SACKed.
    pub sacked: u32,
    /// In flight and marked lost.
    pub lost: u32,
    /// In flight and sent more than once.
    pub retransmitted: u32,
    /// The peer's receive window: SND.WND.
    pub send_window: u32,
    /// The unused part of the window offered to the peer: RCV.WND.
    pub receive_window: u32,
    /// Written by the application and not acknowledged.
    pub unacknowledged: u32,
    /// SMSS: the payload of a full segment sent.
    pub send_mss: u32,
    /// The largest payload received so far: the estimate of the peer's SMSS.
    pub receive_mss: u32,
    /// Received in order and not read by the application.
    pub unread: u32,
    /// Ranges received out of order (a count).
    pub gaps: u32,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Smoothed round-trip time; zero if not measured.
    pub srtt: Duration,
    /// Its mean deviation: RTTVAR (RFC 6298 2).
    pub rttvar: Duration,
    /// The smallest round-trip time of the connection; zero if not measured.
    pub min_rtt: Duration,
    /// Doublings of the timeout in force.
    pub backoff: u8,
    /// Whether RACK has seen reordering.
    pub reordering: bool,
    /// SACK is in use.
    pub sack: bool,
    /// Timestamps are in use.
    pub timestamps: bool,
    /// ECN is in use.
    pub ecn: bool,
    /// Window scaling is in use.
    pub window_scale: bool,
    /// The next sequence number to be sent.
    pub sequence: u32,
    /// Retransmissions, timeouts and other events so far.
    pub counters: Counters,
}

/// What changes from moment to moment, in few steps: for readings at short intervals. As in [`TcpInfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// The state, as RFC 9293 names it.
    pub state: State,
    /// The next sequence number to be sent.
    pub sequence: u32,
    /// Sent and not acknowledged: FlightSize.
    pub in_flight: u32,
    /// The congestion window, cwnd.
    pub cwnd: u32,
    /// The peer's receive window: SND.WND.
    pub send_window: u32,
    /// Smoothed round-trip time; zero if not measured.
    pub srtt: Duration,
    /// The mean deviation of round-trip times.
    pub rttvar: Duration,
    /// Doublings of the timeout in force.
    pub backoff: u8,
}

impl<C: Congestion> Socket<'_, C> {
    /// The values of [`info`](Self::info) that need no walk over what is in flight.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            state: self.state,
            sequence: self.snd_nxt.bits(),
            in_flight: self.snd_nxt.since(self.flight.una()),
            cwnd: self.window.cwnd,
            send_window: self.snd_wnd(),
            srtt: Duration::from_micros(self.rtt.smoothed().into()),
            rttvar: Duration::from_micros(self.rtt.deviation().into()),
            backoff: self.backoff,
        }
    }

    /// The retransmission timeout, back-off included. It follows from the values of [`gauges`](Self::gauges).
    pub fn rto(&self) -> Duration {
        self.timeout()
    }

    /// Takes a snapshot. Walks the flight table four times: for tools, not for hot paths.
    pub fn info(&self) -> TcpInfo {
        let span = |micros: u32| Duration::from_micros(u64::from(micros));
        TcpInfo {
            state: self.state,
            phase: self.recovery.phase,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            in_flight: self.snd_nxt.since(self.flight.una()),
            pipe: self.pipe(),
            sacked: self.flight.sum(|piece| piece.is(SACKED)),
            lost: self.flight.sum(|piece| piece.is(LOST)),
            retransmitted: self.flight.sum(|piece| piece.is(RETRANSMITTED)),
            send_window: self.snd_wnd(),
            receive_window: self.rcv_adv.saturating_since(self.rcv_nxt),
            unacknowledged: self.send.len(),
            send_mss: self.segment_size(),
            receive_mss: u32::from(self.rcv_mss),
            unread: self.receive.ready(),
            gaps: self.receive.ranges().len() as u32,
            rto: self.timeout(),
            srtt: span(self.rtt.smoothed()),
            rttvar: span(self.rtt.deviation()),
            min_rtt: span(self.rtt.min()),
            backoff: self.backoff,
            reordering: self.rack.reordering(),
            sack: self.bits.has(bits::SACK),
            timestamps: self.bits.has(bits::TIMESTAMPS),
            ecn: self.bits.has(bits::ECN),
            window_scale: self.bits.has(bits::WINDOW_SCALE),
            sequence: self.snd_nxt.bits(),
            counters: self.counters,
        }
    }
}
