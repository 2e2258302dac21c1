//! The parameters of a connection, each with its default, its unit and its source.

use core::net::IpAddr;

use chappe_core::Duration;

use super::isn::Secret;

/// What all sockets of one local address share. A host with several addresses has one of these for each.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// The local address: IPv6, or IPv4.
    pub address: IpAddr,
    /// The secret behind initial sequence numbers, timestamp offsets and ephemeral ports (RFC 6528).
    pub secret: Secret,
    /// The parameters of its connections.
    pub config: Config,
}

/// The mechanisms and timers of a connection. One value may serve many sockets.
///
/// A mechanism that the crate was built without (see its cargo features) is off whatever its field says.
/// [`Config::STANDARD`] has every mechanism on, with the timers of the standards. With mechanisms turned off it behaves
/// like the simpler stacks that low-power networks commonly run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Largest segment to receive and to send: octets of TCP payload and options together, as in the MSS option
    /// (RFC 6691). Default 1220: IPv6's minimum MTU of 1280 without 60 octets of headers (RFC 9293 3.7.1).
    pub mss: u16,
    /// Lower bound of the retransmission timeout. Default 1 s (RFC 6298 2.4); RFC 8961 allows less where the
    /// path is known.
    pub rto_min: Duration,
    /// Retransmission timeout before the first round-trip sample. Default 1 s (RFC 6298 2.1).
    pub rto_initial: Duration,
    /// Upper bound of the retransmission timeout, back-off included. Default 60 s (RFC 6298 2.5).
    pub rto_max: Duration,
    /// Consecutive timeouts without progress before the connection fails. Default 12 (FreeBSD's
    /// TCP_MAXRXTSHIFT, which TCPlp keeps); with back-off well above the 100 s of RFC 9293 3.8.3.
    pub retries_max: u8,
    /// Retransmissions of a SYN or SYN-ACK before giving up. Default 7: RFC 9293 3.8.3 asks for at least 3 minutes for
    /// a SYN, and the eight intervals 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 s are 183 s.
    pub syn_retries_max: u8,
    /// How long an acknowledgement may be delayed; zero sends each at once. Default 100 ms (TCPlp); RFC
    /// 9293 3.8.6.3 allows less than 500 ms.
    pub delayed_ack: Duration,
    /// Full-sized segments after which an acknowledgement is sent at once. Default 2 (RFC 5681 4.2).
    pub ack_every: u8,
    /// Upper bound of the interval between window probes; the first comes after one retransmission timeout (RFC 9293
    /// 3.8.6.1). Default 60 s.
    pub persist_max: Duration,
    /// The user timeout (RFC 9293 3.8.3 and 3.9.1.1; RFC 5482 without its option): how long data may wait without progress, whether
    /// not acknowledged or held back by the peer's window. Then the connection fails as timed out. Up to 4.8 hours, with a resolution of
    /// half a second. Default zero, none: RFC 9293 3.8.6.1 (MUST-37) wants a connection to last while the peer answers
    /// window probes, and unanswered data ends by `retries_max`. Set it where peers are not trusted: a peer that keeps its window shut
    /// keeps the socket.
    pub user_timeout: Duration,
    /// Keep-alive, off by default (RFC 9293 3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Time in TIME-WAIT, twice the maximum segment lifetime. Default 60 s: the RFC's 4 minutes are for a slower
    /// Internet, and Linux and the BSDs have long used 60 s.
    pub time_wait: Duration,
    /// How long a closed socket waits in FIN-WAIT-2 for the peer's FIN. Default 60 s.
    pub fin_wait_2: Duration,
    /// Initial window in segments; 0 takes RFC 5681 3.1's two to four by segment size. Default 0; TCPlp used 1.
    pub initial_window: u8,
    /// The longest delayed acknowledgement to expect of a peer, for tail loss probes (RFC 8985 7.2). Default
    /// 200 ms.
    pub probe_ack_delay: Duration,
    /// Challenge ACKs, and other answers to unacceptable segments without data, that one socket sends in any 5 s
    /// (RFC 5961 7). Counted per socket, because a shared budget would reveal the state of one connection to the peer of
    /// another. At most 15; default 10.
    pub challenge_acks: u8,
    /// Hold small segments while data is in flight (Nagle; RFC 9293 3.7.4). Default on.
    pub nagle: bool,
    /// Selective acknowledgements, sent and used (RFC 2018, 6675, 2883). Default on.
    pub sack: bool,
    /// Timestamps, RTTM, PAWS (RFC 7323): 12 octets a segment. Default on.
    pub timestamps: bool,
    /// Window scaling (RFC 7323): 4 octets on the SYN, needed for buffers above 64 KiB. Default off.
    pub window_scale: bool,
    /// Explicit congestion notification (RFC 3168). Default on.
    pub ecn: bool,
    /// New data on the first two duplicate acknowledgements (RFC 3042). Default on.
    pub limited_transmit: bool,
    /// Loss detection by time (RFC 8985); needs SACK. Off: by counting duplicates (RFC 6675). Default on.
    pub rack: bool,
    /// Tail loss probes (RFC 8985 7); needs SACK. Default on.
    pub tail_loss_probe: bool,
    /// Proportional rate reduction in recovery (RFC 6937). Off: the window drops at once. Default on.
    pub prr: bool,
    /// Undo of spurious reductions (Eifel, RFC 3522 and 4015; D-SACK, RFC 3708). Default on.
    pub undo: bool,
    /// After an idle time of more than one timeout, restart from the initial window (RFC 5681 4.1). Default on.
    pub idle_restart: bool,
}

/// Keep-alive: when to probe an idle peer (RFC 9293 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe, up to 9.7 hours. The RFC's default is 2 hours.
    pub idle: Duration,
    /// Time between probes that stay unanswered.
    pub interval: Duration,
    /// Unanswered probes before the connection fails.
    pub probes: u8,
}

/// What is configured and built: without its cargo feature a mechanism is off whatever the field says.
impl Config {
    pub(super) const fn uses_sack(&self) -> bool {
        cfg!(feature = "sack") && self.sack
    }

    pub(super) const fn uses_keep_alive(&self) -> Option<KeepAlive> {
        if cfg!(feature = "keep-alive") {
            self.keep_alive
        } else {
            None
        }
    }

    pub(super) const fn uses_user_timeout(&self) -> Duration {
        if cfg!(feature = "user-timeout") {
            self.user_timeout
        } else {
            Duration::ZERO
        }
    }

    pub(super) const fn uses_idle_restart(&self) -> bool {
        cfg!(feature = "idle-restart") && self.idle_restart
    }

    pub(super) const fn uses_timestamps(&self) -> bool {
        cfg!(feature = "timestamps") && self.timestamps
    }

    pub(super) const fn uses_window_scale(&self) -> bool {
        cfg!(feature = "window-scale") && self.window_scale
    }

    pub(super) const fn uses_ecn(&self) -> bool {
        cfg!(feature = "ecn") && self.ecn
    }

    pub(super) const fn uses_rack(&self) -> bool {
        cfg!(feature = "rack") && self.rack
    }

    pub(super) const fn uses_tail_loss_probe(&self) -> bool {
        cfg!(feature = "rack") && self.tail_loss_probe
    }

    pub(super) const fn uses_prr(&self) -> bool {
        cfg!(feature = "prr") && self.prr
    }

    pub(super) const fn uses_undo(&self) -> bool {
        cfg!(feature = "undo") && self.undo
    }
}

impl Config {
    /// Every mechanism on except keep-alive and window scaling, with the timers of the standards.
    pub const STANDARD: Config = Config {
        mss: 1220,
        rto_min: Duration::from_secs(1),
        rto_initial: Duration::from_secs(1),
        rto_max: Duration::from_secs(60),
        retries_max: 12,
        syn_retries_max: 7,
        delayed_ack: Duration::from_millis(100),
        ack_every: 2,
        persist_max: Duration::from_secs(60),
        user_timeout: Duration::ZERO,
        keep_alive: None,
        time_wait: Duration::from_secs(60),
        fin_wait_2: Duration::from_secs(60),
        initial_window: 0,
        probe_ack_delay: Duration::from_millis(200),
        challenge_acks: 10,
        nagle: true,
        sack: true,
        timestamps: true,
        window_scale: false,
        ecn: true,
        limited_transmit: true,
        rack: true,
        tail_loss_probe: true,
        prr: true,
        undo: true,
        idle_restart: true,
    };
}

impl Default for Config {
    fn default() -> Config {
        Config::STANDARD
    }
}
