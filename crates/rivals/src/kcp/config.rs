//! Settings of one end, what can be wrong with them, and what an end counts.

use chappe_core::Duration;

use super::parity;
use super::segment::HEADER;

/// Which implementation's rules for retransmission apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KcpRules {
    /// Those of the original (`ikcp.c`).
    Original,
    /// Those of kcp-go (`kcp.go`). In a flush that has nothing new to send, one skip is enough. Skips are checked before
    /// timeouts, restart the timeout and have no limit. Timeouts grow by steps. A flush follows at once when the window moves.
    Go,
}

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KcpConfig {
    /// The rules for retransmission.
    pub rules: KcpRules,
    /// Number of the conversation; the same at both ends.
    pub conv: u32,
    /// The quick mode: timeouts of at least 30 ms that grow by half, instead of at least 100 ms that double.
    pub nodelay: bool,
    /// Time between two flushes.
    pub interval: Duration,
    /// Number of later segments that must be acknowledged before one is sent again; 0: only its timeout does.
    pub resend: u32,
    /// Most segments in flight.
    pub send_window: u16,
    /// Most segments that the receiver accepts ahead of its reader.
    pub receive_window: u16,
    /// Longest datagram, parity header included, octets.
    pub mtu: usize,
    /// Parity `(x, y)`: y parity datagrams for each x data datagrams.
    pub parity: Option<(u8, u8)>,
    /// Most datagrams that wait to be sent; more are dropped.
    pub queue: usize,
}

impl KcpConfig {
    /// kcptun's mode `fast3` with its windows and datagrams (128 and 512 segments, 1350 octets), without parity. KCP's own
    /// turbo mode has the same numbers. The queue is a tenth of Linux's default of 1000 (`txqueuelen`).
    pub const fn fast3() -> KcpConfig {
        KcpConfig {
            rules: KcpRules::Original,
            conv: 1,
            nodelay: true,
            interval: Duration::from_millis(10),
            resend: 2,
            send_window: 128,
            receive_window: 512,
            mtu: 1350,
            parity: None,
            queue: 100,
        }
    }

    /// kcptun's default mode `fast`: the longer timeouts, and 30 ms between flushes.
    pub const fn fast() -> KcpConfig {
        KcpConfig {
            nodelay: false,
            interval: Duration::from_millis(30),
            ..KcpConfig::fast3()
        }
    }

    /// Most octets of data in a segment.
    pub const fn segment_max(&self) -> usize {
        let parity = if self.parity.is_some() {
            parity::OVERHEAD
        } else {
            0
        };
        self.mtu.saturating_sub(HEADER + parity)
    }

    pub(super) fn interval_ms(&self) -> u32 {
        millis(self.interval.nanos())
    }

    /// `IKCP_RTO_NDL` and `IKCP_RTO_MIN`, ms.
    pub(super) fn rto_min(&self) -> u32 {
        if self.nodelay { 30 } else { 100 }
    }
}

/// What is wrong with a [`KcpConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KcpError {
    /// Datagrams must hold a segment of 64 octets at least, and be at most 65,536 octets long.
    Mtu(usize),
    /// Windows and queue must hold at least one segment, and the interval be 1 ms to 5 s.
    Empty,
    /// No code has this many data and parity datagrams: at least one of each, at most 255 together.
    Parity(u8, u8),
}

impl core::fmt::Display for KcpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            KcpError::Mtu(len) => write!(
                f,
                "datagrams of {len} octets: a datagram must hold a segment of 64 and be at most 65536 long"
            ),
            KcpError::Empty => {
                f.write_str("windows and queue must hold at least one segment, and flushes be 1 ms to 5 s apart")
            }
            KcpError::Parity(data, parity) => write!(
                f,
                "no code has {data} data and {parity} parity datagrams: at least one of each, at most 255 together"
            ),
        }
    }
}

impl core::error::Error for KcpError {}

/// What an end has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KcpCounters {
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again because their timeout expired.
    pub timeouts: u64,
    /// Segments sent again because later ones had been acknowledged.
    pub skipped: u64,
    /// Segments received that were new.
    pub received: u64,
    /// Segments received before, or outside the window.
    pub duplicates: u64,
    /// Datagrams recovered by parity.
    pub recovered: u64,
    /// Datagrams sent, parity included.
    pub datagrams: u64,
    /// Octets of the datagrams sent.
    pub octets: u64,
    /// Datagrams dropped because the queue was full.
    pub dropped: u64,
    /// Datagrams received that do not belong to this conversation.
    pub malformed: u64,
}

/// The clock of KCP: milliseconds modulo 2^32.
pub(super) fn millis(nanos: u64) -> u32 {
    (nanos / 1_000_000) as u32
}
