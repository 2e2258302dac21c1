//! Combinations of packets over GF(2^8), by which a destination gets missing packets without naming them.
//!
//! Combination j of a round is the sum over the packets i of that round of c(j, i) * packet i. The factors are drawn
//! from the session, the first packet of the segment and the round, so that no frame carries them.
//!
//! After the *plain* packets of a segment the source sends a few combinations of all of them. It adds each packet to its
//! [`Sums`] when it sends it, and the destination does the same with each packet that arrives. The difference of the two
//! is a combination of the missing packets alone, so neither end reads the object again. If few packets are missing, the
//! next round consists of combinations only.

use chappe_coding::{Batch, Kernel, Shape};
use chappe_core::{Purpose, Seed, Stream};

use crate::plan::Plan;
use crate::sizes::{IMPROVED_PAYLOAD_MAX, SUMS_MAX};

/// Most packets that a round of combinations is for; if more are missing they are sent again. It sets the destination's
/// memory: 4 kB of packets and 2 kB of factors.
pub const UNKNOWN_MAX: usize = 32;

/// The factors of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors(Stream);

impl Factors {
    /// The factors of a round for the segment that begins with packet `first`.
    pub fn new(plan: &Plan, first: u32, round: u8) -> Factors {
        // Only plans of the improved variant lead to combinations, and these have a session.
        let session = plan.session().unwrap_or_default();
        let seed = Seed(u64::from(session) << 8 | u64::from(plan.transfer()));
        let round = u64::from(first) << 8 | u64::from(round);
        Factors(seed.child(round).stream(Purpose::Trial(0)))
    }

    /// The factor of packet `packet` in combination `number`.
    pub fn of(&self, number: u8, packet: u32) -> u8 {
        let eight = self.eight(packet, number / 8);
        eight.get(usize::from(number % 8)).copied().unwrap_or(0)
    }

    /// The same for eight combinations at once, from number 8 `block` on: one draw gives all of them.
    fn eight(&self, packet: u32, block: u8) -> [u8; 8] {
        // 255 combinations are 32 blocks of eight.
        let place = u64::from(packet) << 5 | u64::from(block);
        self.0.at(place).to_le_bytes()
    }
}

/// Sums of packets, each multiplied by its factor: one per combination.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    rows: [[u8; IMPROVED_PAYLOAD_MAX]; SUMS_MAX],
    count: u8,
    kernel: Kernel,
}

impl Sums {
    pub fn new() -> Sums {
        Sums {
            rows: [[0; IMPROVED_PAYLOAD_MAX]; SUMS_MAX],
            count: 0,
            kernel: Kernel::best(),
        }
    }

    /// Clears the sums and sets their number to `count`.
    pub fn reset(&mut self, count: u8) {
        self.rows = [[0; IMPROVED_PAYLOAD_MAX]; SUMS_MAX];
        self.count = count.min(SUMS_MAX as u8);
    }

    /// Adds a packet to all sums.
    pub fn add(&mut self, factors: &Factors, packet: u32, payload: &[u8]) {
        let eight = factors.eight(packet, 0);
        for (factor, row) in eight
            .into_iter()
            .zip(&mut self.rows)
            .take(self.count.into())
        {
            if let Some(row) = row.get_mut(..payload.len()) {
                // Both are as long as the payload.
                let _ = self.kernel.axpy(factor, payload, row);
            }
        }
    }

    /// Adds a combination of all packets to its sum. In GF(2^8) this cancels the packets that were added before and
    /// leaves a combination of the others.
    pub fn cancel(&mut self, number: u8, payload: &[u8]) {
        let row = self.rows.get_mut(usize::from(number));
        if let Some(row) = row.and_then(|row| row.get_mut(..payload.len())) {
            let _ = self.kernel.axpy(1, payload, row);
        }
    }

    /// The sum of this number.
    pub fn row(&self, number: u8, len: usize) -> &[u8] {
        let row = self.rows.get(usize::from(number));
        row.and_then(|row| row.get(..len)).unwrap_or_default()
    }

    pub fn count(&self) -> u8 {
        self.count
    }
}

/// Makes a combination of packets that `read` gives, in place of the zeros in `to`.
pub(crate) fn combine(
    factors: &Factors,
    number: u8,
    packets: impl Iterator<Item = u32>,
    mut read: impl FnMut(u32, &mut [u8]),
    to: &mut [u8],
) {
    let (kernel, mut packet_octets) = (Kernel::best(), [0; IMPROVED_PAYLOAD_MAX]);
    for packet in packets {
        let Some(octets) = packet_octets.get_mut(..to.len()) else {
            return;
        };
        octets.fill(0);
        read(packet, octets);
        let _ = kernel.axpy(factors.of(number, packet), octets, to);
    }
}

/// The equations for a few missing packets.
#[derive(Clone, Debug)]
pub(crate) struct Unknowns {
    packets: [u32; UNKNOWN_MAX],
    len: usize,
    batch: Option<Batch<UNKNOWN_MAX, [u8; UNKNOWN_MAX * IMPROVED_PAYLOAD_MAX]>>,
}

impl Unknowns {
    pub const fn new() -> Unknowns {
        Unknowns {
            packets: [0; UNKNOWN_MAX],
            len: 0,
            batch: None,
        }
    }

    /// Starts over for these packets of `payload` octets. Too many of them, or none, leave it empty.
    pub fn begin(&mut self, missing: impl Iterator<Item = u32>, payload: usize) {
        let mut count = 0;
        for packet in missing.take(UNKNOWN_MAX + 1) {
            if let Some(place) = self.packets.get_mut(count) {
                *place = packet;
            }
            count += 1;
        }
        // Too many to solve for: the source sees so in the NACK, and sends packets.
        self.len = if count <= UNKNOWN_MAX { count } else { 0 };
        let Ok(shape) = Shape::new(self.len, payload) else {
            self.len = 0;
            return;
        };
        let ready = match &mut self.batch {
            Some(batch) => batch.reset(shape).is_ok(),
            None => {
                self.batch = Batch::new(shape, [0; UNKNOWN_MAX * IMPROVED_PAYLOAD_MAX]).ok();
                self.batch.is_some()
            }
        };
        if !ready {
            self.len = 0;
        }
    }

    /// Whether there are no unknown packets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more independent combinations it needs.
    pub fn deficit(&self) -> usize {
        match &self.batch {
            Some(batch) if self.len > 0 => batch.missing(),
            _ => 0,
        }
    }

    /// Takes a combination of the missing packets and returns whether it was independent of those before.
    pub fn insert(&mut self, factors: &Factors, number: u8, combination: &[u8]) -> bool {
        let mut row = [0; UNKNOWN_MAX];
        for (factor, &packet) in row.iter_mut().zip(self.packets.iter().take(self.len)) {
            *factor = factors.of(number, packet);
        }
        match (&mut self.batch, row.get(..self.len)) {
            (Some(batch), Some(row)) if self.len > 0 => {
                batch.insert(row, combination).is_innovative()
            }
            _ => false,
        }
    }

    /// Solves the equations if there are enough, and gives every packet to `take`.
    pub fn solve(&mut self, mut take: impl FnMut(u32, &[u8])) {
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.is_full()) else {
            return;
        };
        if self.len == 0 || batch.decode().is_err() {
            return;
        }
        for (index, &packet) in self.packets.iter().take(self.len).enumerate() {
            if let Some(payload) = batch.source(index) {
                take(packet, payload);
            }
        }
        self.len = 0;
    }
}
