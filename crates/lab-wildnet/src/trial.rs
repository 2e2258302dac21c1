//! A trial over one long link: the figures' most frequent case.

use chappe_core::{Duration, Seed};
use chappe_lab::run::RunError;

use crate::experiment::{Experiment, Measured};
use crate::masts::{Hop, Masts};
use crate::scheme::{Load, Scheme};

/// A trial over one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Channel access and recovery.
    pub scheme: Scheme,
    /// Length of the link in km.
    pub km: f64,
    /// Share of frames lost independently, in either direction.
    pub loss: f64,
    /// The traffic of the sending ends.
    pub load: Load,
    /// Whether both ends send.
    pub both: bool,
    /// How long the run is measured, after the warm-up.
    pub time: Duration,
}

impl Experiment for Trial {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        self.masts().run(seed)
    }
}

impl Trial {
    /// The link as a line of one hop, with dishes whose budget adds no losses.
    pub fn masts(&self) -> Masts {
        Masts {
            both: self.both,
            gain: Masts::EMULATED,
            ..Masts::line(
                self.scheme,
                vec![Hop::new(self.km, self.loss)],
                self.load,
                self.time,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Card;

    fn mbps(scheme: Scheme, km: f64, load: Load) -> f64 {
        let trial = Trial {
            scheme,
            km,
            loss: 0.0,
            load,
            both: false,
            time: Duration::from_secs(2),
        };
        trial.run(Seed(1)).expect("a sound world").bps / 1e6
    }

    /// Closed forms of stop and wait: 1440 * 8 bits in the time of gap, mean back-off and frame, and with ACKs also SIFS, ACK
    /// and round trip. 7.65 Mbit/s without ACKs (set C), 6.05 and 5.15 with them at 0 and 50 km (set A).
    #[test]
    fn plain_802_11_agrees_with_the_closed_form() {
        let csma = |retries, card| Scheme::Csma { retries, card };
        let near = |mbps: f64, expected: f64| (mbps / expected - 1.0).abs() < 0.02;
        let free = mbps(csma(None, Card::Wmm), 100.0, Load::Udp);
        let [short, long] = [0.0, 50.0].map(|km| mbps(csma(Some(2), Card::Long), km, Load::Udp));
        assert!(near(free, 7.65), "{free}");
        assert!(near(short, 6.05) && near(long, 5.15), "{short} {long}");
    }

    /// TCP over slots reaches nine tenths of their capacity at any distance. Plain 802.11 collapses where ACKs arrive after
    /// the timeout.
    #[test]
    fn slots_carry_tcp_beyond_the_reach_of_plain_802_11() {
        let plain = Scheme::Csma {
            retries: Some(2),
            card: Card::Short,
        };
        let [near, far] = [8.0, 150.0].map(|km| mbps(plain, km, Load::Tcp));
        let [near_slots, far_slots] = [8.0, 150.0].map(|km| mbps(Scheme::WILDNET, km, Load::Tcp));
        assert!(near > near_slots && far < far_slots / 2.0, "{near} {far}");
        assert!(near_slots > 0.88 * 3.76 && far_slots > 0.96 * near_slots);
    }
}
