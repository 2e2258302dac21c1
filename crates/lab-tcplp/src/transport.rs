//! TCP of one host: its configuration, and the buffers of each of its sockets.

use chappe_core::Duration;
use chappe_tcplp::tcp;

/// TCPlp's segments: five frames with addresses in line; 462 octets of payload besides timestamps (specified: 5 frames of
/// 122 octets with 16 of headers, less 36 of compressed headers, 20 of TCP).
pub const MSS: u16 = 474;
/// TCPlp's buffers, in segments (6.2, 7.3).
pub const WINDOW: usize = 4;

/// TCP of one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Options, timers and segment size.
    pub config: tcp::Config,
    /// Send buffer of each socket in octets.
    pub send: usize,
    /// Receive buffer of each socket in octets.
    pub receive: usize,
    /// Entries of the flight table; one allows one segment in flight.
    pub flight: usize,
}

impl Transport {
    /// TCPlp's: segments of at most `mss` octets, `window` segments of buffer each way.
    ///
    /// Its retransmission timeout is at least 230 ms (FreeBSD's `TCPTV_MIN` of `hz/33` and a slop of `hz/5`, both
    /// kept in TCPlp's `tcp_timer.h`). Acknowledgements wait up to 100 ms, for a second segment at most.
    pub fn tcplp(mss: u16, window: usize) -> Transport {
        let config = tcp::Config {
            mss,
            rto_min: Duration::from_millis(230),
            ..tcp::Config::STANDARD
        };
        Transport::new(config, window)
    }

    /// A host with buffers of `window` segments of payload.
    pub fn new(config: tcp::Config, window: usize) -> Transport {
        // Timestamps take 12 octets of the segment size that the MSS option announces.
        let payload = usize::from(config.mss) - if config.timestamps { 12 } else { 0 };
        Transport {
            config,
            send: payload * window,
            receive: payload * window,
            // Twice the window, since parts of a segment that are retransmitted take entries too.
            flight: if window <= 1 { 1 } else { window * 2 },
        }
    }

    /// A server: the buffers of a window without scaling, Linux's timers (`TCP_RTO_MIN` 200 ms, delayed acknowledgements
    /// of 40 ms), NewReno.
    pub fn server(mss: u16) -> Transport {
        let config = tcp::Config {
            mss,
            rto_min: Duration::from_millis(200),
            delayed_ack: Duration::from_millis(40),
            ..tcp::Config::STANDARD
        };
        Transport {
            config,
            send: 65_535,
            receive: 65_535,
            flight: 128,
        }
    }
}
