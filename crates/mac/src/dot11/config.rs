//! The configuration of a station, each value with its source.

use chappe_core::{Address, Caps, Duration, Mode, Rate};
use chappe_wire::dot11::{ACK_LEN, CTS_LEN, DATA_HEADER_LEN, FCS_LEN, QOS_CONTROL_LEN, ampdu};
use chappe_wire::llc::{self, EtherType};

/// Largest PSDU without its check sequence, in octets: the size of the retransmission buffer.
///
/// It is the standard's largest MSDU and leaves 2,272 octets to an SDU behind the headers.
pub const PSDU_MAX: usize = 2304;

/// How a station chooses the rates of unicast frames whose link node leaves them open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// All at [`Config::data`], answered at [`Config::control`].
    #[default]
    Fixed,
    /// Minstrel: rates of the family of [`Config::data`] up to it, by what was acknowledged before. Answers go at the fastest mandatory
    /// rate that is not above the frame's (10.6.6.5.2), and a frame is given up when its chain of rates is used up, not at
    /// [`Config::retry_short`].
    Minstrel,
}

/// How a station contends for the medium. Clauses are those of IEEE 802.11-2020.
///
/// Published starvation figures depend on `eifs`, `nav`, `nav_reset`, `difs_after_timeout`, `early_timeout`,
/// `rts_threshold`, the retry limits, `cca_time` and the radio's capture. Print them with every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rate and preamble of unicast data, unless the link node chooses.
    pub data: Mode,
    /// Rate and preamble of ACK, CTS and RTS.
    pub control: Mode,
    /// How the rates of unicast frames are chosen.
    pub rate_control: RateControl,
    /// Rate and preamble of broadcasts, unless the link node chooses. `None`: as `data`.
    pub broadcast: Option<Mode>,
    /// Slot time without propagation: 20 us for DSSS (16.3.3), 9 us for OFDM (17.4.4).
    pub slot: Duration,
    /// Short interframe space: 10 us for DSSS (16.3.3), 16 us for OFDM ([`Config::ofdm`]).
    pub sifs: Duration,
    /// How long energy must last to be detected: at most 15 us for DSSS (16.3.3, aCCATime), 4 us for OFDM (17.3.10.6). Energy that begins less than
    /// this before a slot boundary is not detected there: the slot counts as idle, and after the last one the station
    /// transmits. Zero: energy is detected at once.
    pub cca_time: Duration,
    /// Whether that holds for the instant at which a frame becomes ready, too: energy that began less than `cca_time` before is not
    /// detected there. Stations that begin in slots of their own need it, since their clocks differ.
    pub cca_when_ready: bool,
    /// CWmin in slots: 31 for DSSS (16.3.3), 15 for OFDM (17.4.4). A back-off is drawn from 0 to the window, inclusive.
    pub cw_min: u16,
    /// CWmax in slots: 1023 (16.3.3).
    pub cw_max: u16,
    /// Failed attempts after which a frame sent without RTS, or an RTS, is given up: 7 (dot11ShortRetryLimit).
    /// Zero counts as one.
    pub retry_short: u8,
    /// Failed attempts after which a frame sent after an RTS is given up: 4 (dot11LongRetryLimit). Zero counts
    /// as one.
    pub retry_long: u8,
    /// Unicast frames longer than this, in octets with FCS, are preceded by an RTS (dot11RTSThreshold).
    /// `usize::MAX`: never; 0: always.
    pub rts_threshold: usize,
    /// Whether the station waits EIFS instead of DIFS after a frame that it could not decode (10.3.2.3.7).
    pub eifs: bool,
    /// Whether the NAV is set from overheard frames (10.3.2.4).
    pub nav: bool,
    /// Whether a reservation by an RTS is dropped when no frame follows it (10.3.2.4, last paragraphs; a "may"). The
    /// station can know this only while it contends, since it senses the carrier only then.
    pub nav_reset: bool,
    /// Whether a station waits another DIFS after a missing ACK or CTS, as EDCA requires (10.23.2.4) and the DCF clause
    /// leaves open. If not, slots count from the timeout, since the medium was idle for DIFS by then.
    pub difs_after_timeout: bool,
    /// Whether the timeout for an ACK or CTS ends when none can have begun any more (10.3.2.11: SIFS, a slot and the
    /// receiver's delay, which is preamble and header), as in the standard and in ns-3. The carrier is sensed
    /// meanwhile. If not, it ends when none can have ended any more, as in ns-2 and GloMoSim.
    pub early_timeout: bool,
    /// Whether a frame begins with a back-off if the medium has been idle for less than DIFS when it becomes ready. The
    /// standard grants immediate access "when medium is idle >= DIFS" (figure of 10.3.4.2) and does not mention shorter
    /// idle times. Without a back-off, as in GloMoSim, all stations that one received frame makes ready transmit
    /// together when DIFS ends, and all their frames collide.
    pub difs_backoff: bool,
    /// Slots from the end of SIFS to the first back-off slot: 2 give DIFS (10.3.7), 3 the AIFS of EDCA's best effort
    /// (dot11EDCATableAIFSN, table 9-155).
    pub aifsn: u8,
    /// Longest propagation delay to any neighbour, for long links: added once to the slot and twice to the ACK and CTS
    /// timeouts (aAirPropagationTime and coverage classes, 10.3.7 and 10.21.5).
    pub propagation_max: Duration,
    /// Whether `propagation_max` lengthens the slot too. If not, it lengthens only the timeouts, as on cards where an
    /// operator can set the ACK timeout only: two distant stations then often begin in each other's slot.
    pub stretch_slot: bool,
    /// Whether data frames for other stations are handed up too.
    pub overhear: bool,
    /// The EtherType in the LLC/SNAP header before each SDU. `None` omits the header, as analytic models do; real
    /// networks always have it.
    pub llc: Option<EtherType>,
    /// BSSID of the ad hoc network; frames with another one are dropped.
    pub bssid: Address,
}

/// "CHAPPE" in ASCII, the first octet lowered by one: a locally administered individual address.
const BSSID: [u8; 6] = [0x42, 0x48, 0x41, 0x50, 0x50, 0x45];

impl Config {
    /// 802.11b with long preambles, control frames at 1 Mbit/s, RTS off, EIFS and NAV on, LLC/SNAP with the
    /// experimental EtherType.
    pub fn dot11b(data: Rate) -> Config {
        Config {
            data: Mode::long(data),
            control: Mode::long(Rate::Dsss1),
            rate_control: RateControl::Fixed,
            broadcast: None,
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            cca_time: Duration::from_micros(15),
            cca_when_ready: false,
            cw_min: 31,
            cw_max: 1023,
            retry_short: 7,
            retry_long: 4,
            rts_threshold: usize::MAX,
            eifs: true,
            nav: true,
            nav_reset: false,
            difs_after_timeout: true,
            early_timeout: false,
            difs_backoff: true,
            aifsn: 2,
            propagation_max: Duration::ZERO,
            stretch_slot: true,
            overhear: false,
            llc: Some(EtherType::EXPERIMENTAL),
            bssid: Address::from_eui48(BSSID),
        }
    }

    /// OFDM at 2.4 GHz without stations of 802.11b nearby (802.11g): slots of 9 us, windows from 15, control frames at the highest
    /// mandatory rate that the data's is not below (for HT: its reference rate, 10.6.11), no preamble to choose. HT (802.11n) has the same
    /// slots and spaces (table 19-25). SIFS counts the 10 us of 18.4.4 and the 6 us in which
    /// nothing is sent behind each OFDM frame (18.3.2.4); together they are 802.11a's 16 us, so this is 802.11a as well.
    pub fn ofdm(data: Rate) -> Config {
        Config {
            control: Mode::long(mandatory(data)),
            slot: Duration::from_micros(9),
            sifs: Duration::from_micros(16),
            cca_time: Duration::from_micros(4),
            cw_min: 15,
            ..Config::dot11b(data)
        }
    }

    /// The standard's values for stations that send data at this rate.
    pub fn of_rate(data: Rate) -> Config {
        match data.is_ofdm() {
            true => Config::ofdm(data),
            false => Config::dot11b(data),
        }
    }

    /// The same with rates by Minstrel, up to that of `data`. RTS and CTS go at the family's slowest rate, so that whoever can be reached at any
    /// rate hears them.
    pub fn with_minstrel(self) -> Config {
        let slowest = match self.data.rate.is_ofdm() {
            true => Rate::Ofdm6,
            false => Rate::Dsss1,
        };
        Config {
            rate_control: RateControl::Minstrel,
            control: Mode::long(slowest),
            ..self
        }
    }

    /// Rate and preamble of the answer to a unicast frame.
    pub(super) fn answer_mode(&self, data: Mode) -> Mode {
        match self.rate_control {
            RateControl::Fixed => self.control,
            RateControl::Minstrel => Mode::long(mandatory(data.rate)),
        }
    }

    /// Octets of the longest A-MPDU of this many frames.
    pub const fn ampdu_len(frames: usize) -> usize {
        let whole = ampdu::subframe_len(PSDU_MAX + QOS_CONTROL_LEN) * frames;
        if whole < ampdu::AMPDU_MAX {
            whole
        } else {
            ampdu::AMPDU_MAX
        }
    }

    /// What a link node on this MAC can rely on. Power is reported if the radio does.
    pub fn caps(&self) -> Caps {
        Caps {
            frame_max: PSDU_MAX - DATA_HEADER_LEN - self.llc_len(),
            schedules: false,
            start_error: Duration::ZERO,
            reports_power: true,
            overhears: self.overhear,
            confirms_broadcast: true,
            hastens: false,
        }
    }

    /// Octets between the data header and the SDU.
    pub(super) fn llc_len(&self) -> usize {
        if self.llc.is_some() { llc::LEN } else { 0 }
    }
}

/// The fastest mandatory rate that is not above `data` (10.6.6.5.2; for HT not above its reference rate, 10.6.11).
fn mandatory(data: Rate) -> Rate {
    match data {
        Rate::Ofdm6 | Rate::Ofdm9 | Rate::Ht0 => Rate::Ofdm6,
        Rate::Ofdm12 | Rate::Ofdm18 | Rate::Ht1 | Rate::Ht2 => Rate::Ofdm12,
        rate if rate.is_ofdm() => Rate::Ofdm24,
        Rate::Dsss1 => Rate::Dsss1,
        _ => Rate::Dsss2,
    }
}

/// Spans that follow from the configuration, computed once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub slot: Duration,
    pub sifs: Duration,
    pub difs: Duration,
    /// From the end of an undecodable frame to slot zero.
    pub eifs: Duration,
    pub cca: Duration,
    pub ack: Duration,
    pub cts: Duration,
    /// From the end of the own frame to the latest start of an answer, its preamble not included.
    pub response_start: Duration,
    pub cts_wait: Duration,
    /// From the end of the own frame to the latest start of an ACK or CTS.
    pub start_wait: Duration,
}

impl Timing {
    pub fn new(config: &Config) -> Timing {
        let sifs = config.sifs;
        let stretch = match config.stretch_slot {
            true => config.propagation_max,
            false => Duration::ZERO,
        };
        let slot = config.slot + stretch;
        let difs = sifs + slot * u64::from(config.aifsn);
        let ack = config.control.airtime(ACK_LEN + FCS_LEN);
        let cts = config.control.airtime(CTS_LEN + FCS_LEN);
        // 10.3.7: EIFS = SIFS + DIFS + an ACK at the lowest mandatory rate, which is 1 Mbit/s, long preamble, or 6 Mbit/s.
        let slowest = match config.control.rate.is_ofdm() {
            true => Rate::Ofdm6,
            false => Rate::Dsss1,
        };
        let slowest_ack = Mode::long(slowest).airtime(ACK_LEN + FCS_LEN);
        // 10.3.2.11: a response must begin within SIFS + slot (+ the receiver's delay) and ends an airtime later. The
        // configured slot is used: the round trip is added here, not the stretched slot's share of it.
        let response_start = sifs + config.slot + config.propagation_max * 2;
        Timing {
            slot,
            sifs,
            difs,
            eifs: sifs + slowest_ack + difs,
            cca: config.cca_time,
            ack,
            cts,
            response_start,
            cts_wait: response_start + cts,
            start_wait: response_start + config.control.header_time(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usual values of 802.11b: DIFS 50 us, EIFS 364 us.
    #[test]
    fn interframe_spaces_of_dot11b() {
        let timing = Timing::new(&Config::dot11b(Rate::Cck11));
        let us = Duration::from_micros;
        assert_eq!(
            (timing.difs, timing.eifs, timing.ack),
            (us(50), us(364), us(304))
        );
        assert_eq!(timing.response_start, us(10 + 20));
    }

    /// The usual values of 802.11a: DIFS 34 us, EIFS 94 us, an ACK of 28 us at 24 Mbit/s.
    #[test]
    fn interframe_spaces_of_ofdm() {
        let timing = Timing::new(&Config::of_rate(Rate::Ofdm54));
        let us = Duration::from_micros;
        assert_eq!(
            (timing.difs, timing.eifs, timing.ack),
            (us(34), us(94), us(28))
        );
        assert_eq!(timing.response_start, us(16 + 9));
    }

    /// 10 km: 33.4 us one way. The slot takes it once, the wait for an ACK twice.
    #[test]
    fn long_links_wait_longer() {
        let config = Config {
            propagation_max: Duration::from_nanos(33_360),
            ..Config::dot11b(Rate::Cck11)
        };
        let timing = Timing::new(&config);
        assert_eq!(timing.slot, Duration::from_nanos(53_360));
        assert_eq!(timing.response_start, Duration::from_nanos(30_000 + 66_720));
        let fixed = Timing::new(&Config {
            stretch_slot: false,
            aifsn: 3,
            ..config
        });
        assert_eq!(fixed.slot, Duration::from_micros(20));
        assert_eq!(fixed.difs, Duration::from_micros(70));
        assert_eq!(fixed.response_start, timing.response_start);
    }
}
