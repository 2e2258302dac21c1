//! How long a slot is, and how many of them are open.

use chappe_core::Duration;

use crate::improved::header::ObjectId;

/// After so many turns there are [`OPEN`] slots for reports, in which members send at random times: once in 0.6 s at 2 Mbit/s, which loses 1 % of the
/// time. Of 48, 96 and 192 turns 96 carried most indoors (docs/studies/pacifier.md).
const TURNS: u64 = 96;
/// The same for objects of several segments: the source learns from reports which coded batches it may leave out.
const TURNS_LONG: u64 = 48;
pub(super) const OPEN: u64 = 1;

/// What a slot has beside the longest frame: DIFS, which the MAC waits for, and room for clocks that differ.
pub(super) const GUARD: Duration = Duration::from_micros(100);

/// Most and least octets of states in a data frame, so that slots are short.
const STATES: (usize, usize) = (32, 8);

/// Most octets of states in a data frame of an object. A state takes an octet or less, and most transfers need half as many coded batches as the
/// object has, or fewer.
pub(super) fn states(id: &ObjectId) -> usize {
    let named = id.batches.saturating_add(id.batches / 2);
    usize::try_from(named).map_or(STATES.0, |named| named.clamp(STATES.1, STATES.0))
}

/// Turns between two open slots of an object.
pub(super) fn between(id: &ObjectId) -> u64 {
    match id.is_cut() {
        true => TURNS_LONG,
        false => TURNS,
    }
}

/// How long a slot is with its part of the open ones, in seconds, where the longest frame takes `airtime`.
pub(super) fn mean_s(id: &ObjectId, airtime: Duration) -> f64 {
    let between = between(id);
    (airtime + GUARD).as_secs_f64() * (between + OPEN) as f64 / between as f64
}
