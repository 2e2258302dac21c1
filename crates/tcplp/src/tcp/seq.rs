//! Sequence numbers: arithmetic modulo 2^32, on which "less than" has no meaning.
//!
//! [`Seq`] has no `Ord`, so that an ordinary comparison, which breaks at the wrap, does not compile:
//!
//! ```compile_fail
//! use chappe_tcplp::tcp::Seq;
//! let wrong = Seq::new(1) < Seq::new(2);
//! ```
//!
//! Comparisons are by signed distance (RFC 9293 3.4): right as long as two numbers lie within 2^31 of each
//! other, which windows of at most 2^30 octets (RFC 7323 2.3) guarantee.

use core::fmt;
use core::ops::Add;

/// A TCP sequence or acknowledgement number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

impl Seq {
    /// The sequence number with these bits.
    pub const fn new(bits: u32) -> Seq {
        Seq(bits)
    }

    /// The bits as they stand in a header.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Octets from `earlier` to `self`, modulo 2^32. Meaningful when `earlier` is known not to be later.
    pub const fn since(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Octets from `earlier` to `self`, or 0 if `earlier` is later.
    pub const fn saturating_since(self, earlier: Seq) -> u32 {
        if self.after(earlier) {
            self.since(earlier)
        } else {
            0
        }
    }

    /// Whether `self` comes before `other`: by signed distance modulo 2^32.
    pub const fn before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes after `other`.
    pub const fn after(self, other: Seq) -> bool {
        other.before(self)
    }

    /// Whether `self` is `other` or comes before it.
    pub const fn at_or_before(self, other: Seq) -> bool {
        !other.before(self)
    }

    /// Whether `self` is `other` or comes after it.
    pub const fn at_or_after(self, other: Seq) -> bool {
        !self.before(other)
    }

    /// The later of two.
    pub const fn later(self, other: Seq) -> Seq {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two.
    pub const fn earlier(self, other: Seq) -> Seq {
        if self.before(other) { self } else { other }
    }

    /// The number `octets` before this one.
    pub const fn back(self, octets: u32) -> Seq {
        Seq(self.0.wrapping_sub(octets))
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    /// Wraps at 2^32, as the standard asks.
    fn add(self, octets: u32) -> Seq {
        Seq(self.0.wrapping_add(octets))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A range of sequence numbers, `start` included and `end` not. Equal ends: empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first number in the range: the left edge of a SACK block.
    pub start: Seq,
    /// The first number past the range: the right edge of a SACK block.
    pub end: Seq,
}

impl Range {
    /// The range from `start` up to, not including, `end`.
    pub const fn new(start: Seq, end: Seq) -> Range {
        Range { start, end }
    }

    /// Its length; 0 if the ends are reversed.
    pub const fn len(self) -> u32 {
        self.end.saturating_since(self.start)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether all of `other` lies in this range.
    pub const fn contains(self, other: Range) -> bool {
        self.start.at_or_before(other.start) && self.end.at_or_after(other.end)
    }

    /// Whether the two overlap or touch end to end, so that their union has no hole.
    pub const fn joins(self, other: Range) -> bool {
        self.start.at_or_before(other.end) && self.end.at_or_after(other.start)
    }

    /// The intersection; empty if there is none.
    pub const fn and(self, other: Range) -> Range {
        let start = self.start.later(other.start);
        let end = self.end.earlier(other.end);
        if start.before(end) {
            Range { start, end }
        } else {
            Range { start, end: start }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let (old, new) = (Seq::new(u32::MAX - 3), Seq::new(6));
        assert!(old.before(new) && new.after(old) && !new.before(old));
        assert_eq!(new.since(old), 10);
        assert_eq!(old.saturating_since(new), 0);
        assert_eq!(old.later(new), new);
        assert_eq!(old.earlier(new), old);
        assert_eq!(new.back(10), old);
    }

    #[test]
    fn ranges_meet_across_the_wrap() {
        let left = Range::new(Seq::new(u32::MAX - 9), Seq::new(0));
        let right = Range::new(Seq::new(0), Seq::new(10));
        assert!(left.joins(right) && right.joins(left));
        assert!(left.and(right).is_empty());
        let across = Range::new(Seq::new(u32::MAX - 4), Seq::new(5));
        assert_eq!(left.and(across).len(), 5);
        assert_eq!(right.and(across).len(), 5);
        assert!(Range::new(right.start, left.start).is_empty());
    }
}
