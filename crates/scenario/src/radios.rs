//! The families of radios that systems are made for.

use chappe_sim::Profile;

/// A family of radios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radios {
    /// 802.11b, g and n at 2.4 GHz, 1 to 65 Mbit/s.
    Dot11,
    /// 802.15.4 at 2.4 GHz, O-QPSK with 250 kbit/s.
    Dot15d4,
}

/// Profiles of 802.11: those of a neighbourhood, that of OFDM, and that of long links.
const DOT11: [&str; 6] = {
    let [a, b, c, d] = Profile::NAMES;
    let [ofdm] = Profile::NAMES_OFDM;
    let [long] = Profile::NAMES_LONG;
    [a, ofdm, b, c, d, long]
};

impl Radios {
    /// Its name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Radios::Dot11 => "802.11",
            Radios::Dot15d4 => "802.15.4",
        }
    }

    /// Whether a profile is of this family.
    pub fn match_profile(self, profile: &Profile) -> bool {
        profile.dot15d4.is_some() == (self == Radios::Dot15d4)
    }

    /// The names of its profiles.
    pub const fn profiles(self) -> &'static [&'static str] {
        match self {
            Radios::Dot11 => &DOT11,
            Radios::Dot15d4 => &Profile::NAMES_DOT15D4,
        }
    }

    /// The channels that a scenario may name.
    pub const fn channels(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Radios::Dot11 => 1..=14,
            Radios::Dot15d4 => 11..=26,
        }
    }
}
