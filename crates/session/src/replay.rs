//! The window over frame numbers that drops duplicates (RFC 6479).

use alloc::boxed::Box;

/// Length of the window in frames: more than a window of bodies of `chappe-wildnet`, each sent twice, on most paths.
pub const REPLAY: u32 = 4096;

/// Which numbers have come. Numbers that lie [`REPLAY`] or more behind the newest count as repeated.
pub(crate) struct Replay {
    started: bool,
    newest: u32,
    seen: Box<[u64; REPLAY as usize / 64]>,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            started: false,
            newest: 0,
            seen: Box::new([0; REPLAY as usize / 64]),
        }
    }
}

impl Replay {
    fn cell(&mut self, number: u32) -> (&mut u64, u64) {
        let place = number % REPLAY;
        (&mut self.seen[(place / 64) as usize], 1 << (place % 64))
    }

    /// Whether a number has come, or is too old to tell.
    pub fn has(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.newest);
        if !self.started || (1..=u32::MAX / 2).contains(&ahead) {
            return false;
        }
        if ahead.wrapping_neg() >= REPLAY {
            return true;
        }
        let (cell, bit) = self.cell(number);
        *cell & bit != 0
    }

    /// Notes a number that has come.
    pub fn note(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.newest);
        if !self.started {
            (self.started, self.newest) = (true, number);
        } else if (1..=u32::MAX / 2).contains(&ahead) {
            for passed in 1..=ahead.min(REPLAY) {
                let (cell, bit) =
                    self.cell(number.wrapping_sub(ahead.min(REPLAY)).wrapping_add(passed));
                *cell &= !bit;
            }
            self.newest = number;
        }
        let (cell, bit) = self.cell(number);
        *cell |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_window_agrees_with_a_list() {
        let mut replay = Replay::default();
        for number in [10, 12, 11] {
            assert!(!replay.has(number));
            replay.note(number);
            assert!(replay.has(number));
        }
        // The window holds 4096 numbers: 904 is too old, 905 has not come.
        replay.note(5000);
        assert!(replay.has(12) && replay.has(904) && !replay.has(905));
        replay.note(4999);
        assert!(replay.has(4999) && replay.has(5000));
        assert!(!replay.has(4998) && !replay.has(5001));
        // Half of all numbers lie behind the newest.
        assert!(replay.has(u32::MAX));
    }
}
