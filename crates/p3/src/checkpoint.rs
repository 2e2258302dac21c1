//! What a destination must keep to resume an object after a restart.

use crate::header::u32_at;
use crate::window::{WINDOW, Window};

/// Which packets of an object are stored. Small enough for a page of flash: [`Checkpoint::LEN`] octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub(crate) have: Window,
    pub(crate) received: u32,
    pub(crate) object_len: Option<u32>,
}

impl Checkpoint {
    /// Octets of a checkpoint: first missing packet, count, whether the length is known, length, bits of the window.
    pub const LEN: usize = 13 + WINDOW as usize / 8;

    /// All packets before this one are stored.
    pub fn first_missing(&self) -> u32 {
        self.have.base()
    }

    /// The same for packets of another length, of which those count that lie before the first missing one. What came behind it
    /// is asked for again, and perhaps was never checked.
    pub(crate) fn in_packets_of(&self, from: usize, to: usize) -> Checkpoint {
        let octets = u64::from(self.have.base()) * from as u64;
        let whole = octets / to.max(1) as u64;
        let whole = u32::try_from(whole).unwrap_or(u32::MAX);
        Checkpoint {
            have: Window::new(whole),
            received: whole,
            object_len: self.object_len,
        }
    }

    /// The checkpoint as octets, to be kept in flash.
    pub fn to_octets(&self) -> [u8; Self::LEN] {
        let fixed = self
            .have
            .base()
            .to_le_bytes()
            .into_iter()
            .chain(self.received.to_le_bytes())
            .chain([u8::from(self.object_len.is_some())])
            .chain(self.object_len.unwrap_or(0).to_le_bytes());
        let mut octets = [0; Self::LEN];
        for (place, octet) in octets.iter_mut().zip(fixed.chain(self.have.octets())) {
            *place = octet;
        }
        octets
    }

    /// Reads a checkpoint that [`to_octets`](Self::to_octets) wrote; `None` if these octets cannot be one.
    pub fn from_octets(octets: &[u8; Self::LEN]) -> Option<Checkpoint> {
        let mut have = Window::new(u32_at(octets, 0)?);
        let known = octets.get(8).copied().filter(|known| *known < 2)?;
        let bits = octets.get(13..)?;
        for at in 0..WINDOW {
            let packet = have.base().checked_add(at)?;
            let octet = bits.get(at as usize / 8)?;
            have.set(packet, octet >> (at % 8) & 1 == 1);
        }
        Some(Checkpoint {
            have,
            received: u32_at(octets, 4)?,
            object_len: if known == 1 {
                Some(u32_at(octets, 9)?)
            } else {
                None
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_round_trip() {
        let mut have = Window::new(70_000);
        for packet in [70_003, 70_100, 72_047] {
            have.set(packet, true);
        }
        for object_len in [None, Some(9_000_000)] {
            let point = Checkpoint {
                have,
                received: 70_003,
                object_len,
            };
            let mut octets = point.to_octets();
            assert_eq!(Checkpoint::from_octets(&octets), Some(point));
            octets[8] = 7;
            assert_eq!(Checkpoint::from_octets(&octets), None);
            // A window that would reach beyond the last number.
            octets[8] = 0;
            octets[..4].fill(0xff);
            assert_eq!(Checkpoint::from_octets(&octets), None);
        }
    }
}
