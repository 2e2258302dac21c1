//! 802.11n and ac over distance: a second, smaller model of a radio.
//!
//! The simulator's radios are 802.11b. This model answers one question about later cards: how much of their rate remains over
//! long links, under the DCF and in slots. It has two stations, A-MPDUs and block ACKs, and no errors of the radio, so its
//! figure shows the effect of distance alone.
//!
//! Distance costs time in three ways:
//!
//! - **Propagation.** Each exchange takes a round trip longer. Aggregation divides that cost by the MPDUs of an A-MPDU.
//! - **Slot time.** A coverage class stretches the slot together with the ACK timeout (IEEE 802.11-2020, 17.3.8.6). DIFS and
//!   back-off then grow with distance. With unstretched slots, carrier sense is delayed by propagation, and collisions grow.
//! - **Registers.** A card bounds its ACK timeout. Beyond that distance it never recognises a block ACK.
//!
//! | module | what |
//! |---|---|
//! | [`phy`] | frame durations after IEEE 802.11-2020, clauses 17, 19 and 21 |
//! | [`link`] | two stations: an event model of the DCF, and closed forms |
//!
//! The figure `ampdu` of `chappe-paper-wildnet` shows it.

pub mod link;
pub mod phy;
