//! The latest data frames, sent and heard: a report that arrives now may not cover them.

use chappe_core::Instant;

/// Frames remembered: with ten senders at 20 Mbit/s those of the last 8 ms.
const REMEMBERED: usize = 128;

/// A data frame that some of its listeners may not have handled yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub at: Instant,
    pub from: u16,
    pub batch: u32,
    /// The rank of its sender, above which it raises no listener's rank.
    pub rank: f32,
}

/// The latest frames, the oldest overwritten first.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    frames: [Option<Sent>; REMEMBERED],
    next: usize,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            frames: [None; REMEMBERED],
            next: 0,
        }
    }
}

impl Recent {
    /// Records a frame sent or heard.
    pub fn note(&mut self, at: Instant, from: u16, batch: u32, rank: f32) {
        if let Some(place) = self.frames.get_mut(self.next) {
            *place = Some(Sent {
                at,
                from,
                batch,
                rank,
            });
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// The frames since `since`, the latest first.
    pub fn since(&self, since: Instant) -> impl Iterator<Item = &Sent> {
        let back = (1..=REMEMBERED).map(|back| (self.next + REMEMBERED - back) % REMEMBERED);
        back.map_while(|place| self.frames.get(place)?.as_ref())
            .take_while(move |sent| sent.at >= since)
    }
}
