//! The time of a handshake as the caller's own clock has it (TAI64N, as in WireGuard, whitepaper 5.4.2).

use core::time::Duration;

/// A time that only ever increases: twelve octets, seconds and nanoseconds, the earlier the smaller. It orders the handshakes of
/// one host. Two hosts' clocks are never compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp([u8; Stamp::LEN]);

/// The label of 1970 (TAI64: 2^62; the ten seconds between TAI and UTC of 1970).
const EPOCH: u64 = (1 << 62) + 10;

impl Stamp {
    /// Octets of a stamp.
    pub const LEN: usize = 12;

    /// The stamp of a time since 1970.
    pub fn at(unix: Duration) -> Stamp {
        let mut octets = [0; Stamp::LEN];
        let seconds = EPOCH.saturating_add(unix.as_secs()).to_be_bytes();
        let parts = seconds.into_iter().chain(unix.subsec_nanos().to_be_bytes());
        octets
            .iter_mut()
            .zip(parts)
            .for_each(|(to, from)| *to = from);
        Stamp(octets)
    }

    /// The next stamp after this one.
    pub fn next(self) -> Stamp {
        let mut octets = self.0;
        for octet in octets.iter_mut().rev() {
            let (sum, carry) = octet.overflowing_add(1);
            *octet = sum;
            if !carry {
                break;
            }
        }
        Stamp(octets)
    }

    pub(crate) fn read(octets: &[u8]) -> Option<Stamp> {
        octets.first_chunk().copied().map(Stamp)
    }

    pub(crate) fn octets(&self) -> &[u8; Stamp::LEN] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_is_greater() {
        let at = |secs, nanos| Stamp::at(Duration::new(secs, nanos));
        let rising = [
            at(0, 0),
            at(0, 0).next(),
            at(0, 255),
            at(0, 255).next(),
            at(1, 0),
            at(1 << 40, 0),
        ];
        assert!(rising.is_sorted_by(|a, b| a < b));
        assert_eq!(at(0, 255).next(), at(0, 256));
        assert_eq!(Stamp::read(rising[4].octets()), Some(rising[4]));
        assert_eq!(Stamp::read(&[0; 11]), None);
    }
}
