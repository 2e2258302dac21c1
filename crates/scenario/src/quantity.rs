//! Numbers with their units, as people write them: `"20 ms"`, `"11 Mbit/s"`, `"65 km"`, `"-91 dBm"`.
//!
//! A bare number is refused, because a reader cannot tell later what it meant. In memory, every quantity is an `f64` in
//! the first unit of its kind.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::input::told;

/// What is measured, and in which units it may be written.
pub trait Kind {
    /// What it is, with its article: `a length`.
    const NAME: &'static str;
    /// A value as an example: `150 m`.
    const EXAMPLE: &'static str;
    /// Units and how much of the first one each of them is.
    const UNITS: &'static [(&'static str, f64)];
    /// Units of which the first one is ten times the decimal logarithm, and how much of the least of them each one is.
    const LINEAR: &'static [(&'static str, f64)];
    /// The least value that is usual, in the first unit: a bare number is hardly meant in a unit that makes it less.
    const USUAL: f64;
}

/// Units that are read, but never written.
const READ_ONLY: [&str; 5] = ["cm", "h", "KiB", "MiB", "µs"];

/// Powers that are not written as a logarithm, in milliwatts.
const MILLIWATTS: [(&str, f64); 2] = [("mW", 1.0), ("W", 1e3)];

/// The words before a bare number in an error's sentence.
pub(crate) const BARE: &str = "found the bare number";

/// A number of a certain kind, kept in the first of its units.
pub struct Quantity<K>(f64, PhantomData<K>);

macro_rules! kinds {
    (@) => { &[] };
    (@ $linear:expr) => { &$linear };
    ($($(#[$doc:meta])* $alias:ident = $kind:ident, $name:literal, $example:literal, $units:expr
        $(, linear $linear:expr)? $(, usual $usual:expr)?;)*) => {$(
        $(#[$doc])*
        pub type $alias = Quantity<$kind>;

        #[doc = concat!("The kind of `", stringify!($alias), "`.")]
        pub enum $kind {}

        impl Kind for $kind {
            const NAME: &'static str = $name;
            const EXAMPLE: &'static str = $example;
            const UNITS: &'static [(&'static str, f64)] = &$units;
            const LINEAR: &'static [(&'static str, f64)] = kinds!(@ $($linear)?);
            const USUAL: f64 = 0.0 $(+ $usual)?;
        }
    )*};
}

kinds! {
    /// A length, kept in metres.
    Length = LengthKind, "a length", "150 m", [("m", 1.0), ("km", 1e3), ("cm", 1e-2), ("mm", 1e-3)];
    /// A time, kept in seconds.
    Time = TimeKind, "a time", "20 ms",
        [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("min", 60.0), ("h", 3600.0)];
    /// A power relative to one milliwatt.
    Power = PowerKind, "a power", "-91 dBm", [("dBm", 1.0)], linear MILLIWATTS;
    /// A ratio of powers in decibels.
    Ratio = RatioKind, "a ratio", "10 dB", [("dB", 1.0)];
    /// A rate, kept in bits per second.
    Rate = RateKind, "a bit rate", "2 Mbit/s",
        [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)], usual 1e5;
    /// A size, kept in octets.
    Size = SizeKind, "a size", "12 MB",
        [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1048576.0)];
    /// A frequency, kept in hertz.
    Frequency = FrequencyKind, "a frequency", "2.4 GHz",
        [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)], usual 1e8;
    /// A relative error of a clock.
    Drift = DriftKind, "a clock error", "40 ppm", [("ppm", 1.0)];
    /// A speed, kept in metres per second.
    Speed = SpeedKind, "a speed", "5 m/s", [("m/s", 1.0), ("km/h", 1.0 / 3.6)];
    /// Degrees above absolute zero.
    Temperature = TemperatureKind, "a temperature", "290 K", [("K", 1.0)];
}

impl<K: Kind> Quantity<K> {
    /// A quantity of `value` in the first unit of its kind.
    pub const fn new(value: f64) -> Self {
        Quantity(value, PhantomData)
    }

    /// The value in the first unit of its kind.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Reads `"11 Mbit/s"`; the error holds a sentence and its help.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_' | 'e' | 'E')))
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim();
        let value = number.replace('_', "").parse::<f64>();
        // `1e400` is read as infinite.
        let Some(value) = value.ok().filter(|value| value.is_finite()) else {
            return Err(told(
                format!("expected {}, found `{text}`", K::NAME),
                format!("write a number and its unit, such as \"{}\"", K::EXAMPLE),
            ));
        };
        if unit.is_empty() {
            return Err(Self::bare(value));
        }
        if let Some((_, scale)) = K::LINEAR.iter().find(|(name, _)| *name == unit) {
            return match decibels(value * scale) {
                Some(value) => Ok(Quantity::new(value)),
                None => Err(told(
                    format!("{} must be above 0 {unit}", K::NAME),
                    format!("such as \"{}\"", K::EXAMPLE),
                )),
            };
        }
        match K::UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, scale)) => Ok(Quantity::new(value * scale)),
            None => Err(told(
                format!("`{unit}` is not a unit of {}", K::NAME),
                match K::meant(unit) {
                    Some(meant) => format!("one of {}: \"{number} {meant}\"", units::<K>()),
                    None => format!("one of {}", units::<K>()),
                },
            )),
        }
    }

    fn bare(number: f64) -> String {
        let mut usual = K::UNITS.iter();
        let usual = usual.find(|(_, scale)| number.abs() * scale >= K::USUAL);
        let (unit, _) = usual.unwrap_or(&K::UNITS[0]);
        let others = match names::<K>().count() {
            1 => String::new(),
            _ => format!(", or another of the units {}", units::<K>()),
        };
        told(
            format!("expected {} with its unit, {BARE} {number}", K::NAME),
            format!("write \"{number} {unit}\"{others}"),
        )
    }
}

/// Ten times the decimal logarithm of a number above zero.
fn decibels(number: f64) -> Option<f64> {
    // Ten significant digits are enough, and hide that 100 mW are hardly more than 20 dBm.
    (number > 0.0).then(|| round(10.0 * number.log10()))
}

/// A number with a unit of any kind in the first unit of that kind, and the ending of a column's name that says so: 65 km are
/// 65000 and `_m`. `None` for an unknown unit.
pub fn in_first_unit(number: f64, unit: &str) -> Option<(f64, &'static str)> {
    if let Some((_, scale)) = MILLIWATTS.iter().find(|(name, _)| *name == unit) {
        return Some((decibels(number * scale)?, "_dbm"));
    }
    let scale = |units: &[(&str, f64)]| {
        let found = units.iter().find(|(name, _)| *name == unit);
        found.map(|(_, scale)| *scale)
    };
    let kinds: [(&[(&str, f64)], &str); 10] = [
        (LengthKind::UNITS, "_m"),
        (TimeKind::UNITS, "_s"),
        (PowerKind::UNITS, "_dbm"),
        (RatioKind::UNITS, "_db"),
        (RateKind::UNITS, "_bps"),
        (SizeKind::UNITS, "_bytes"),
        (FrequencyKind::UNITS, "_hz"),
        (DriftKind::UNITS, "_ppm"),
        (SpeedKind::UNITS, "_mps"),
        (TemperatureKind::UNITS, "_k"),
    ];
    let found = kinds
        .iter()
        .find_map(|(units, ending)| Some((scale(units)?, *ending)));
    found.map(|(scale, ending)| (round(number * scale), ending))
}

/// The unit that was meant, for the help of an error.
///
/// Only other spellings count. A unit that merely looks alike has another scale, and a copied help would be wrong by it:
/// `TB` is no `kB`.
trait Meant: Kind + Sized {
    fn meant(unit: &str) -> Option<&'static str> {
        let plain = |name: &str| {
            let name = name.to_ascii_lowercase();
            match name
                .strip_suffix("ps")
                .or_else(|| name.strip_suffix("it/s"))
            {
                Some(prefix) => format!("{prefix}it/s"),
                None => name,
            }
        };
        names::<Self>().find(|name| plain(name) == plain(unit))
    }
}

impl<K: Kind> Meant for K {}

fn units<K: Kind>() -> String {
    names::<K>().collect::<Vec<_>>().join(", ")
}

/// All units that may be written.
fn names<K: Kind>() -> impl Iterator<Item = &'static str> {
    K::UNITS.iter().chain(K::LINEAR).map(|(name, _)| *name)
}

impl<K> Clone for Quantity<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Quantity<K> {}

impl<K> PartialEq for Quantity<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: Kind> fmt::Debug for Quantity<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Kind> fmt::Display for Quantity<K> {
    /// In the unit that makes it shortest: `6.3 ms`, `1.2 km`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = K::UNITS
            .iter()
            .filter(|(name, _)| !READ_ONLY.contains(name))
            .map(|&(name, scale)| {
                let value = round(self.0 / scale);
                let text = format!("{value} {name}");
                // Of two texts of one length, `500 kB` reads better than `0.5 MB`, and `1.5 kB` than `1500 B`.
                (text.len(), value.abs() < 1.0, -scale, text)
            })
            .min_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        f.write_str(&written.map_or_else(String::new, |(.., text)| text))
    }
}

/// Twelve significant digits: enough for every quantity, few enough to hide binary fractions.
fn round(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

impl<K: Kind> Serialize for Quantity<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Quantity<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<K>(PhantomData<K>);
        impl<K: Kind> Visitor<'_> for Reader<K> {
            type Value = Quantity<K>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} such as \"{}\"", K::NAME, K::EXAMPLE)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Quantity::parse(text).map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Err(E::custom(Quantity::<K>::bare(number as f64)))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Err(E::custom(Quantity::<K>::bare(number as f64)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Err(E::custom(Quantity::<K>::bare(number)))
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<K: Kind> JsonSchema for Quantity<K> {
    fn schema_name() -> Cow<'static, str> {
        let name = K::NAME.split_once(' ').map_or(K::NAME, |(_, name)| name);
        name.replace(' ', "_").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = names::<K>().map(|name| name.replace('/', "\\/")).collect();
        json_schema!({
            "type": "string",
            "description": format!("{} with its unit: {}", K::NAME, units::<K>()),
            "pattern": format!("^[-+]?[0-9][0-9._eE+-]* *({})$", names.join("|")),
            "examples": [K::EXAMPLE],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::telling;

    #[test]
    fn units_are_read_and_written() {
        for (text, value) in [("150 m", 150.0), ("65km", 65_000.0), ("1.5 cm", 0.015)] {
            assert_eq!(Length::parse(text).unwrap().value(), value, "{text}");
        }
        assert_eq!(Power::parse("-91 dBm").unwrap().value(), -91.0);
        for (text, value) in [("30 mW", 14.77), ("1 W", 30.0), ("100mW", 20.0)] {
            let power = Power::parse(text).unwrap().value();
            assert!((power - value).abs() < 0.002, "{text}: {power}");
        }
        assert!(Power::parse("0 mW").is_err() && Power::parse("-1 W").is_err());
        assert_eq!(Rate::parse("5.5 Mbit/s").unwrap().to_string(), "5.5 Mbit/s");
        assert_eq!(Time::parse("20 us").unwrap().to_string(), "20 us");
        assert_eq!(Time::new(600.0).to_string(), "600 s");
        assert_eq!(Size::new(1500.0).to_string(), "1.5 kB");
        assert_eq!(Size::new(500_000.0).to_string(), "500 kB");
        assert_eq!(Size::new(0.0).to_string(), "0 B");
        assert_eq!(Length::new(1000.0).to_string(), "1 km");
    }

    #[test]
    fn columns_are_in_the_first_unit() {
        assert_eq!(in_first_unit(65.0, "km"), Some((65_000.0, "_m")));
        assert_eq!(in_first_unit(11.0, "Mbit/s"), Some((11e6, "_bps")));
        assert_eq!(in_first_unit(-91.0, "dBm"), Some((-91.0, "_dbm")));
        assert_eq!(in_first_unit(100.0, "mW"), Some((20.0, "_dbm")));
        assert_eq!(in_first_unit(36.0, "km/h"), Some((10.0, "_mps")));
        assert_eq!(in_first_unit(1.0, "furlong"), None);
    }

    #[test]
    fn written_quantities_can_be_read_again() {
        for seconds in [0.0, 1e-9, 20e-6, 0.05, 1.0, 59.0, 61.0, 7200.0] {
            let time = Time::new(seconds);
            let again = Time::parse(&time.to_string()).unwrap().value();
            assert!((again - seconds).abs() <= 1e-11 * seconds, "{time}");
        }
    }

    #[test]
    fn errors_name_the_unit_that_was_meant() {
        let help = |error: String| telling(&error).1.unwrap().to_string();
        assert!(help(Rate::parse("11 mbit/s").unwrap_err()).contains("\"11 Mbit/s\""));
        assert!(help(Rate::parse("11 Mbps").unwrap_err()).contains("\"11 Mbit/s\""));
        assert!(help(Rate::parse("250 kb/s").unwrap_err()).ends_with("Gbit/s"));
        // No unit stands for this one, so nothing is offered for copying.
        assert!(help(Size::parse("1 TB").unwrap_err()).ends_with("MiB"));
        // A bare number is proposed in a unit that makes it usual.
        for (bare, meant) in [
            ("2", "\"2 Mbit/s\""),
            ("250", "\"250 kbit/s\""),
            ("2000000", "\"2000000 bit/s\""),
        ] {
            let said = help(Rate::parse(bare).unwrap_err());
            assert!(said.contains(meant), "{said}");
        }
        assert!(help(Frequency::parse("2.4").unwrap_err()).contains("\"2.4 GHz\""));
        assert_eq!(help(Ratio::parse("3").unwrap_err()), "write \"3 dB\"");
        assert!(help(Length::parse("150").unwrap_err()).contains("\"150 m\""));
        assert!(
            telling(&Length::parse("far").unwrap_err())
                .0
                .contains("found `far`")
        );
    }
}
