//! How long a download takes from its first packet on a link that was idle: what the start of the pace and of TCP cost.

use chappe_core::{Bitrate, Duration, Instant};

use super::{Air, Run};

/// A download over a path of full duplex, 10 Mbit/s, with a round trip and a loss ratio.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub round_trip: u64,
    pub loss: f64,
    /// Whether the link knows the rate.
    pub told: bool,
    /// Whether TCP's window and pace are BBR's from its start; else the window never runs out.
    pub bbr: bool,
}

/// Octets of the download.
pub const OCTETS: u32 = 8_000_000;
/// Time before it begins: sessions, the path's MTU and its least round trip are known.
const IDLE: Duration = Duration::from_secs(5);

impl Start {
    fn air(&self) -> Air {
        let path = Air::path(
            Bitrate(10_000_000),
            Duration::from_millis(self.round_trip),
            self.loss,
        );
        Air {
            told: self.told,
            bbr: self.bbr,
            paced: self.bbr,
            source_from: IDLE,
            ping_every: Duration::from_millis(500),
            ..path
        }
    }

    /// Seconds until all octets have arrived, beside pings.
    pub fn takes(&self, seed: u64) -> f64 {
        let mut run = Run::new(self.air(), seed);
        let begun = Instant::ZERO + IDLE;
        run.until(begun);
        while run.received() < OCTETS && run.now < begun + Duration::from_secs(600) {
            run.until(run.now + Duration::from_millis(5));
        }
        run.now.saturating_since(begun).as_secs_f64()
    }

    /// The mean of so many seeds, and the most.
    pub fn mean(&self, seeds: u64) -> (f64, f64) {
        let times = (1..=seeds).map(|seed| self.takes(seed));
        let (sum, most) = times.fold((0.0, 0.0f64), |(sum, most), time| {
            (sum + time, most.max(time))
        });
        (sum / seeds as f64, most)
    }

    /// Seconds at the rate (1 - p) C from the first octet on, and half a round trip.
    pub fn least(&self) -> f64 {
        let air = self.air();
        let rate = (1.0 - air.loss) * air.capacity();
        f64::from(OCTETS) * 8.0 / rate + air.delay.as_secs_f64()
    }
}
