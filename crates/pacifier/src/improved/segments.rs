//! Segments: how an object that is sent with an outer code is cut, and how its batches are numbered.
//!
//! A receiver solves for all packets that one code is over at once, which takes time with the third power of their number. So a code is over
//! at most [`SEGMENT`] batches, and a longer object has several segments of equal length (the last may be shorter), each with a code of
//! its own. All members work them out from the number of batches. Numbers follow the order in which the source sends:
//!
//! ```text
//! segment 0
//! segment 1, after each GROUP of its batches as many coded ones of segment 0
//! segment 2, after each GROUP of its batches as many coded ones of segment 1
//! ...
//! the last segment, after each GROUP of its batches as many coded ones of the segment before, and then the rest of these
//! CODED coded batches of the last segment, of segment 0, of segment 1, ... of the last but one
//! ```
//!
//! Where all segments but the last have as many coded batches among those of the next one as they have themselves. So coded batches come while
//! the next segment is sent. By then reports tell the source who lacks what: it leaves out coded batches that no receiver lacks, and never waits for
//! the last receiver of a segment.

use core::ops::Range;

use chappe_coding::MAX_SOURCES;

use super::K_MAX;

/// Most batches of the object in a segment: as many as an outer code can be over.
pub const SEGMENT: u32 = (MAX_SOURCES / K_MAX) as u32;

/// Coded batches of each segment of an object that come after all others, at least twice as many as it has batches: receivers may
/// lose two thirds of all before older batches are repaired again.
pub const CODED: u32 = 2 * SEGMENT;
/// Batches of one kind that follow each other. Their states are alike until they are begun, so short groups would need long reports; and long
/// ones that are left out would make many batches old at once.
const GROUP: u64 = 8;

/// Where a batch belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is a batch of the object.
    Own {
        /// The segment that the batch is part of.
        segment: u32,
        /// Its number in the object.
        batch: u32,
    },
    /// It is a batch of a segment's outer code.
    Coded {
        /// The segment that the code is over.
        segment: u32,
        /// Its number among the coded batches of the segment.
        number: u32,
    },
    /// There is no such batch.
    Beyond,
}

/// The segments of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// Batches of the object.
    batches: u64,
    /// Batches of each segment but the last.
    size: u64,
    count: u64,
}

impl Segments {
    /// The segments of an object of so many batches, at least 1.
    pub fn of(batches: u32) -> Segments {
        let batches = u64::from(batches.max(1));
        let count = batches.div_ceil(SEGMENT.into());
        let size = batches.div_ceil(count);
        Segments {
            batches,
            size,
            count,
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        narrow(self.count)
    }

    /// All batches, with the coded ones.
    pub fn all(&self) -> u32 {
        let coded = u64::from(CODED);
        narrow(self.late() + self.count * coded)
    }

    /// Where a batch belongs.
    pub fn place(&self, batch: u32) -> Place {
        let batch = u64::from(batch);
        let Some(rest) = batch.checked_sub(self.size) else {
            return own(0, batch);
        };
        let rest = match self.count {
            1 => rest,
            _ => {
                let before = (rest / (2 * self.size)).min(self.count - 2);
                let within = rest - before * 2 * self.size;
                let len = self.len(before + 1);
                if within < len + self.size {
                    return self.among(before, within, len);
                }
                within - len - self.size
            }
        };
        let (row, number) = (rest / u64::from(CODED), rest % u64::from(CODED));
        match row {
            0 => coded(self.count - 1, number),
            row if row < self.count => coded(row - 1, self.size + number),
            _ => Place::Beyond,
        }
    }

    /// Where the batch belongs that is `within` the coded ones of `segment` and the `len` of the segment after it.
    fn among(&self, segment: u64, within: u64, len: u64) -> Place {
        let next = |number: u64| own(segment + 1, (segment + 1) * self.size + number);
        let whole = len / GROUP * GROUP;
        if within < 2 * whole {
            let (before, rest) = (within / (2 * GROUP) * GROUP, within % (2 * GROUP));
            return match rest < GROUP {
                true => next(before + rest),
                false => coded(segment, before + rest - GROUP),
            };
        }
        match within - whole < len {
            true => next(within - whole),
            false => coded(segment, within - len),
        }
    }

    /// The batches of a segment by their numbers in the object.
    pub fn own(&self, segment: u32) -> Range<u32> {
        let start = u64::from(segment) * self.size;
        let end = (start + self.size).min(self.batches);
        narrow(start)..narrow(end)
    }

    /// The number of a batch of the object.
    pub fn number(&self, own: u32) -> u32 {
        let own = u64::from(own);
        let (segment, number) = (own / self.size, own % self.size);
        // From the second segment on as many coded batches come before each group, and the segment before has as many as it is long.
        narrow(match segment {
            0 => own,
            _ => own + (segment - 1) * self.size + number / GROUP * GROUP,
        })
    }

    /// The numbers of all batches of a segment, the coded ones after the others.
    pub fn numbers(&self, segment: u32) -> impl Iterator<Item = u32> + use<> {
        let segments = *self;
        let own = self.own(segment).map(move |own| segments.number(own));
        let next = u64::from(segment) + 1;
        let early = match next < self.count {
            true => 0..self.size,
            false => 0..0,
        };
        let (start, len) = ((2 * next - 1) * self.size, self.len(next));
        let early = early.map(move |number| {
            let before = (number / GROUP + 1) * GROUP;
            narrow(start + number + before.min(len))
        });
        own.chain(early).chain(self.late_of(segment))
    }

    /// The numbers of the coded batches of a segment that come after all others.
    pub fn late_of(&self, segment: u32) -> Range<u32> {
        let next = u64::from(segment) + 1;
        let row = if next < self.count { next } else { 0 };
        let first = self.late() + row * u64::from(CODED);
        narrow(first)..narrow(first + u64::from(CODED))
    }

    /// The first batch after this one that another neighbour may lack: of those after all others the first of another segment.
    pub fn next(&self, batch: u32) -> u32 {
        let next = batch.saturating_add(1);
        match self.place(batch) {
            Place::Coded { segment, .. } if self.is_late(batch) => {
                self.late_of(segment).end.max(next)
            }
            _ => next,
        }
    }

    /// Whether a batch is one of the coded ones that come after all others.
    pub fn is_late(&self, batch: u32) -> bool {
        u64::from(batch) >= self.late()
    }

    /// The number of the first coded batch that comes after all others.
    fn late(&self) -> u64 {
        self.batches + (self.count - 1) * self.size
    }

    fn len(&self, segment: u64) -> u64 {
        let before = segment * self.size;
        self.batches.saturating_sub(before).min(self.size)
    }
}

fn own(segment: u64, batch: u64) -> Place {
    let (segment, batch) = (narrow(segment), narrow(batch));
    Place::Own { segment, batch }
}

fn coded(segment: u64, number: u64) -> Place {
    let (segment, number) = (narrow(segment), narrow(number));
    Place::Coded { segment, number }
}

/// Numbers beyond those that a frame can name belong to objects that no frame can carry to the end.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Goal: every number is one batch, and every batch has one number. Method: all numbers of objects of many lengths, against the lists of
    /// their segments.
    #[test]
    fn numbers_and_places_agree() {
        for batches in (1..140).chain([991, 1024, 1025, 3000]) {
            let segments = Segments::of(batches);
            let mut seen = vec![false; batches as usize];
            let mut coded = vec![0; segments.count() as usize];
            for number in 0..segments.all() {
                let segment = match segments.place(number) {
                    Place::Own { segment, batch } => {
                        assert!(segments.own(segment).contains(&batch));
                        assert_eq!(segments.number(batch), number);
                        assert!(!core::mem::replace(&mut seen[batch as usize], true));
                        segment
                    }
                    Place::Coded { segment, number } => {
                        assert_eq!(number, coded[segment as usize], "{batches}");
                        coded[segment as usize] += 1;
                        segment
                    }
                    Place::Beyond => panic!("{batches}: {number}"),
                };
                let same = segments.numbers(segment).filter(|&other| other == number);
                assert_eq!(same.count(), 1, "{batches}: {number}");
                assert!(segments.next(number) > number);
            }
            let each = (0..segments.count()).map(|segment| segments.numbers(segment).count());
            assert_eq!(each.sum::<usize>(), segments.all() as usize);
            assert!(seen.into_iter().all(|seen| seen), "{batches}");
            assert!(coded.into_iter().all(|coded| coded >= CODED));
            assert_eq!(segments.place(segments.all()), Place::Beyond);
        }
    }

    /// Goal: the last segment is never empty, and all have at most as many batches as a code can be over. Method: all lengths up to 40,000
    /// batches, and the longest that a frame can name.
    #[test]
    fn segments_fit_a_code() {
        for batches in (1..40_000).chain([u32::MAX]) {
            let segments = Segments::of(batches);
            let last = segments.own(segments.count() - 1);
            assert!(last.start < last.end && last.end == batches, "{batches}");
            assert!(segments.own(0).end <= SEGMENT);
        }
    }

    /// Goal: a short object has its coded batches after its own, as before there were segments.
    #[test]
    fn a_short_object_is_one_segment() {
        for batches in [1, 16, SEGMENT] {
            let segments = Segments::of(batches);
            assert_eq!((segments.count(), segments.all()), (1, batches + CODED));
            let first = Place::Coded {
                segment: 0,
                number: 0,
            };
            assert_eq!(segments.place(batches), first);
        }
        assert_eq!(Segments::of(SEGMENT + 1).count(), 2);
    }

    #[test]
    fn numbers_of_hostile_objects_do_not_overflow() {
        let segments = Segments::of(u32::MAX);
        assert_eq!(segments.all(), u32::MAX);
        for batch in [0, 31, 32, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
            let Some(segment) = (match segments.place(batch) {
                Place::Own { segment, .. } | Place::Coded { segment, .. } => Some(segment),
                Place::Beyond => None,
            }) else {
                continue;
            };
            segments.numbers(segment).take(3).for_each(drop);
            assert!(segments.late_of(segment).len() <= CODED as usize);
            segments.next(batch);
        }
    }
}
