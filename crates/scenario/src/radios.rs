//! The families of radios that systems are made for.

use chappe_sim::Profile;

/// A family of radios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radios {
    /// 802.11b at 2.4 GHz, 1 to 11 Mbit/s.
    Dot11b,
    /// 802.15.4 at 2.4 GHz, O-QPSK with 250 kbit/s.
    Dot15d4,
}

/// Profiles of 802.11b: those of a neighbourhood, and that of long links.
const DOT11B: [&str; 5] = {
    let [a, b, c, d] = Profile::NAMES;
    let [long] = Profile::NAMES_LONG;
    [a, b, c, d, long]
};

impl Radios {
    /// Its name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Radios::Dot11b => "802.11b",
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
            Radios::Dot11b => &DOT11B,
            Radios::Dot15d4 => &Profile::NAMES_DOT15D4,
        }
    }

    /// The channels that a scenario may name.
    pub const fn channels(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Radios::Dot11b => 1..=14,
            Radios::Dot15d4 => 11..=26,
        }
    }
}
