//! The configuration of a station, each value with its source.

use chappe_core::{Address, Caps, Duration, Mode, Rate};
use chappe_wire::dot15d4::{FCS_LEN, PSDU_MAX};

/// Largest SDU in octets: a PSDU of 127 without check sequence and the shortest header, of two 16-bit addresses.
pub const SDU_MAX: usize = PSDU_MAX - FCS_LEN - HEADER_SHORT;

/// Frame control, sequence, PAN, and two addresses of 16 bits.
const HEADER_SHORT: usize = 9;
/// The same with two addresses of 64 bits.
const HEADER_EXTENDED: usize = 21;

/// Symbols of the 2.4 GHz O-QPSK PHY, 16 us each.
const fn symbols(count: u64) -> Duration {
    Duration::from_micros(16 * count)
}

/// How a station contends for the medium. Clauses and constants are those of IEEE 802.15.4-2015 (2.4 GHz O-QPSK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// PAN identifier; frames for another PAN are dropped.
    pub pan: u16,
    /// Whether numbered nodes use 16-bit addresses.
    pub short_addresses: bool,
    /// First back-off exponent, macMinBE: 3. The first back-off is 0 to 2^BE - 1 periods.
    pub min_be: u8,
    /// Largest back-off exponent, macMaxBE: 5.
    pub max_be: u8,
    /// Further back-offs after a busy assessment, macMaxCsmaBackoffs: 4.
    pub max_backoffs: u8,
    /// Further attempts after a missing acknowledgement, macMaxFrameRetries: 3.
    pub retries: u8,
    /// The back-off period, aUnitBackoffPeriod: 20 symbols.
    pub unit_backoff: Duration,
    /// How long the channel is assessed: 8 symbols (10.2.7). Energy at any moment of it makes the channel busy.
    pub cca_time: Duration,
    /// From receiving to sending and back, aTurnaroundTime: 12 symbols. Between assessment and frame, and between
    /// a frame and its acknowledgement (6.7.4.3).
    pub turnaround: Duration,
    /// Timeout for the end of an acknowledgement, macAckWaitDuration: back-off period, turnaround, preamble with SFD
    /// (10 symbols) and 6 octets: 54 symbols (8.4.3.1).
    pub ack_wait: Duration,
    /// Silence after a frame of up to 18 octets, macSifsPeriod (12 symbols), and after a longer one, macLifsPeriod
    /// (40 symbols). Zeros turn it off.
    pub spacing: (Duration, Duration),
    /// Upper limit of a random pause before each further attempt, in addition to the back-off (TCPlp 7.1: 40 ms). The
    /// standard has none.
    pub retry_delay: Duration,
    /// Whether a channel access failure counts as a failed attempt and the frame is tried again. The standard gives the
    /// frame up (6.2.5.1); OpenThread tries again.
    pub retry_busy: bool,
    /// Time to copy a frame into the radio before each attempt: radios with one buffer for both directions lose it
    /// with the acknowledgement.
    pub load: Duration,
    /// The receiver is off during back-off, as in radios with CSMA in hardware (TCPlp 4.2, "deaf listening").
    pub deaf: bool,
    /// A frame for a child that asks goes out before the further attempts of the frame in hand (TCPlp 8.2.3).
    pub preempt: bool,
    /// Further attempts in one answer to a data request (TCPlp 8.2.3; OpenThread had none).
    pub indirect_retries: u8,
    /// Data requests after which a frame for a child is given up.
    pub indirect_polls: u8,
    /// How long a frame is held for a child, macTransactionPersistenceTime.
    pub indirect_life: Duration,
    /// How long a child listens after a data request that was granted, macMaxFrameTotalWaitTime (8.4.2): all
    /// back-offs, 86 periods, and the longest frame, 266 symbols.
    pub data_wait: Duration,
    /// After a frame that announces another, the child keeps listening and the parent goes on, instead of one data
    /// request for each frame (6.7.3). Parent and child must agree.
    pub burst: bool,
    /// Makes the station a sleepy leaf.
    pub sleep: Option<Sleep>,
}

/// How a leaf sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Whom it asks for its frames.
    pub parent: Address,
    /// Between data requests while nothing is expected (TCPlp 8.2: 4 min).
    pub base: Duration,
    /// Between data requests while an answer is expected (TCPlp 8.2: 100 ms).
    pub short: Duration,
    /// Each request in vain multiplies the interval by this, up to `base`. TCPlp keeps it fixed: 1. Doubling (2) is
    /// what its authors suggest (8.2.2).
    pub growth: u8,
}

impl Config {
    /// The standard's default values.
    pub const STANDARD: Config = Config {
        pan: 0xcafe,
        short_addresses: true,
        min_be: 3,
        max_be: 5,
        max_backoffs: 4,
        retries: 3,
        unit_backoff: symbols(20),
        cca_time: symbols(8),
        turnaround: symbols(12),
        ack_wait: symbols(54),
        spacing: (symbols(12), symbols(40)),
        retry_delay: Duration::ZERO,
        retry_busy: false,
        load: Duration::ZERO,
        deaf: false,
        preempt: false,
        indirect_retries: 3,
        indirect_polls: 4,
        // 500 periods of aBaseSuperframeDuration (960 symbols), the default of table 8-94.
        indirect_life: symbols(500 * 960),
        data_wait: symbols(86 * 20 + 266),
        burst: false,
        sleep: None,
    };

    /// TCPlp's platform: Hamilton with an AT86RF233 over SPI, CSMA and retries in software, pauses between attempts.
    ///
    /// A frame of 127 octets takes 7.2 ms from load to acknowledgement (paper, figure 4a). The standard's CSMA-CA
    /// with its mean back-off takes 6.24 ms without interframe space; the remaining 0.96 ms are the load.
    pub const HAMILTON: Config = Config {
        spacing: (Duration::ZERO, Duration::ZERO),
        retry_delay: Duration::from_millis(40),
        retry_busy: true,
        load: Duration::from_micros(960),
        preempt: true,
        indirect_life: Duration::from_secs(240),
        ..Config::STANDARD
    };

    /// Rate and preamble of every frame.
    pub const MODE: Mode = Mode::long(Rate::Oqpsk250);

    /// Octets of header before the SDU.
    pub(super) const fn header_len(&self) -> usize {
        match self.short_addresses {
            true => HEADER_SHORT,
            false => HEADER_EXTENDED,
        }
    }

    /// What a link node on this MAC can rely on, with `overhead` octets of frame security
    /// ([`Security::overhead`](super::Security::overhead)). Power is reported if the radio does.
    pub const fn caps(&self, overhead: usize) -> Caps {
        Caps {
            frame_max: (PSDU_MAX - FCS_LEN).saturating_sub(self.header_len() + overhead),
            schedules: false,
            start_error: Duration::ZERO,
            reports_power: true,
            overhears: false,
            confirms_broadcast: true,
            hastens: false,
        }
    }

    /// Interframe space after a frame of `octets` (check sequence included).
    pub(super) fn spacing_after(&self, octets: usize) -> Duration {
        // aMaxSifsFrameSize.
        match octets <= 18 {
            true => self.spacing.0,
            false => self.spacing.1,
        }
    }
}

impl Sleep {
    /// A leaf of TCPlp's evaluation (8.2): 4 minutes, and 100 ms while an answer is due.
    pub const fn tcplp(parent: Address) -> Sleep {
        Sleep {
            parent,
            base: Duration::from_secs(240),
            short: Duration::from_millis(100),
            growth: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's figure 4a: 7.2 ms for a full frame, with the mean back-off of 3.5 periods.
    #[test]
    fn a_full_frame_takes_what_the_paper_measured() {
        let config = Config::HAMILTON;
        let backoff = Duration::from_micros(320 * 7 / 2);
        let frame = Config::MODE.airtime(PSDU_MAX);
        let ack = Config::MODE.airtime(5);
        let all = config.load
            + backoff
            + config.cca_time
            + config.turnaround
            + frame
            + config.turnaround
            + ack;
        assert_eq!(all, Duration::from_micros(7200));
        assert_eq!(config.ack_wait, Duration::from_micros(864));
        assert_eq!(symbols(12), config.turnaround);
        assert_eq!(Config::STANDARD.caps(0).frame_max, SDU_MAX);
        assert_eq!(SDU_MAX, 116);
    }
}
