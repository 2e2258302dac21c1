//! A temperature, and where it comes from.

use core::fmt;

use chappe_mote::Clock;

/// What measures the temperature: a chip, or a test.
pub trait Sensor {
    /// Measures the temperature once.
    fn read(&self) -> Reading;
}

/// A temperature in hundredths of a degree Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading(pub i32);

/// In place of a chip's sensor: 21.50 degrees when the clock is zero, and a hundredth of a degree more each second.
#[derive(Clone, Copy, Debug)]
pub struct Rising<K>(pub K);

impl<K: Clock> Sensor for Rising<K> {
    fn read(&self) -> Reading {
        let seconds = self.0.now().nanos() / 1_000_000_000;
        Reading(i32::try_from(seconds).map_or(i32::MAX, |seconds| seconds.saturating_add(2150)))
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", size / 100, size % 100)
    }
}

/// Text in memory of its own.
pub struct Text<const N: usize> {
    octets: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// Writes what fits; the rest is cut off.
    pub fn of(arguments: fmt::Arguments<'_>) -> Text<N> {
        let mut text = Text {
            octets: [0; N],
            len: 0,
        };
        // It fails when it is full: what fits has been written.
        let _ = fmt::write(&mut text, arguments);
        text
    }

    /// The text so far, in UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.octets[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        match len == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}
