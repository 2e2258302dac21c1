//! Rate control of 802.11b cards: at which of the four rates a packet leaves.
//!
//! None of these algorithms can tell a collision from a weak signal: on a link where frames collide because carrier sense comes late,
//! they go down although a slower and longer frame collides no less. The paper's cards were set to 11 Mbit/s (4.2); the figures use
//! these to show what would follow if the setting did not act on one of its links.

use chappe_core::{Duration, Instant, Mode, Outcome, Preamble, Rate};

/// The rule by which a card chooses the rate of its next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// 11 Mbit/s, whatever happens.
    #[default]
    Fixed,
    /// A. Kamerman, L. Monteban, "WaveLAN-II", Bell Labs Technical Journal 1997: down after two lost transmissions in a row, up
    /// after ten acknowledged packets, and down again if the first packet after that fails.
    Arf,
    /// MadWiFi's choice until 2006 (`ath_rate/onoe`): each second, down if packets need more than one retry on average, and up
    /// after ten seconds in which hardly any does.
    Onoe,
    /// M. Lacage, M. H. Manshaei, T. Turletti, "IEEE 802.11 rate adaptation", MSWiM 2004, as in MadWiFi (`ath_rate/amrr`): each
    /// second, down if a third of the packets needs a retry, and up if fewer than a tenth do, later each time that it fails.
    /// Retries keep the rate of the first transmission here.
    Amrr,
}

/// Interval of the decisions of Onoe and AMRR (MadWiFi: `ath_rateinterval`).
const INTERVAL: Duration = Duration::from_millis(1000);
/// Packets that an interval needs to count (both: `is_enough`).
const ENOUGH: u32 = 10;
/// Good intervals before Onoe goes up (`ath_rate_raise_threshold`).
const CREDITS: u32 = 10;
/// Acknowledged packets before ARF goes up.
const ARF_UP: u32 = 10;
/// Lost transmissions in a row before ARF goes down.
const ARF_DOWN: u32 = 2;
/// Most good intervals before AMRR goes up (`max_success_threshold`).
const PATIENCE_MAX: u32 = 10;

/// The state of a card's rate control.
#[derive(Clone, Debug)]
pub struct Rates {
    control: RateControl,
    preamble: Preamble,
    /// The place of the present rate in [`Rate::DOT11B`].
    place: usize,
    /// The end of the present interval.
    until: Instant,
    counts: Counts,
    /// Good intervals or packets since the last change.
    credit: u32,
    /// The rate was raised, and nothing has succeeded at it yet.
    tries: bool,
    /// Good intervals that AMRR asks for now.
    patience: u32,
}

/// Packets of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: u32,
    failed: u32,
    /// Packets that needed a retry, and all retries.
    retried: u32,
    retries: u32,
}

impl Rates {
    /// A card that begins at 11 Mbit/s.
    pub fn new(control: RateControl, preamble: Preamble) -> Rates {
        Rates {
            control,
            preamble,
            place: Rate::DOT11B.len() - 1,
            until: Instant::ZERO + INTERVAL,
            counts: Counts::default(),
            credit: 0,
            tries: false,
            patience: 1,
        }
    }

    /// The mode of the next packet; `None` leaves it to the MAC.
    pub fn mode(&self) -> Option<Mode> {
        let rate = Rate::DOT11B.get(self.place)?;
        // A frame at 1 Mbit/s has a long preamble, since only the header of a short one is sent at 2 (802.11, 16.2.2.3).
        let preamble = match rate {
            Rate::Dsss1 => Preamble::Long,
            _ => self.preamble,
        };
        (self.control != RateControl::Fixed).then_some(Mode {
            rate: *rate,
            preamble,
            aggregate: false,
        })
    }

    /// Takes the outcome of a packet.
    pub fn note(&mut self, now: Instant, outcome: Outcome) {
        let (attempts, failed) = match outcome {
            Outcome::Unconfirmed => return,
            Outcome::Acknowledged { attempts } => (u32::from(attempts), false),
            Outcome::Failed { attempts } => (u32::from(attempts), true),
        };
        let retries = attempts.saturating_sub(1);
        self.counts.packets += 1;
        self.counts.failed += u32::from(failed);
        self.counts.retried += u32::from(retries > 0);
        self.counts.retries += retries;
        match self.control {
            RateControl::Fixed => {}
            RateControl::Arf => self.arf(retries, failed),
            RateControl::Onoe | RateControl::Amrr if now < self.until => {}
            RateControl::Onoe => self.onoe(),
            RateControl::Amrr => self.amrr(),
        }
        if now >= self.until {
            self.until = now + INTERVAL;
        }
    }

    fn arf(&mut self, retries: u32, failed: bool) {
        let lost = retries + u32::from(failed);
        if lost >= ARF_DOWN || (self.tries && lost > 0) {
            self.step_down();
            self.tries = false;
            return;
        }
        self.tries = false;
        self.credit = match lost {
            0 => self.credit + 1,
            _ => 0,
        };
        if self.credit >= ARF_UP {
            self.tries = self.step_up();
        }
    }

    fn onoe(&mut self) {
        let Counts {
            packets,
            failed,
            retries,
            ..
        } = self.counts;
        let arrived = packets - failed;
        let enough = packets >= ENOUGH;
        if (failed > 0 && arrived == 0) || (enough && arrived < retries) {
            self.step_down();
        } else if enough && failed == 0 && retries * 10 < arrived {
            self.credit += 1;
            if self.credit >= CREDITS {
                self.step_up();
            }
        } else if enough {
            self.credit = self.credit.saturating_sub(1);
        }
        if enough {
            self.counts = Counts::default();
        }
    }

    fn amrr(&mut self) {
        let Counts {
            packets, retried, ..
        } = self.counts;
        if packets <= ENOUGH {
            return;
        }
        if retried * 10 < packets {
            self.credit += 1;
            self.tries = false;
            if self.credit >= self.patience {
                self.tries = self.step_up();
            }
        } else if retried * 3 > packets {
            self.patience = match self.tries {
                true => (self.patience * 2).min(PATIENCE_MAX),
                false => 1,
            };
            self.tries = false;
            self.step_down();
        }
        self.counts = Counts::default();
    }

    fn step_down(&mut self) {
        self.place = self.place.saturating_sub(1);
        (self.credit, self.counts) = (0, Counts::default());
    }

    /// Goes to the next rate; false at the highest.
    fn step_up(&mut self) -> bool {
        self.credit = 0;
        let up = self.place + 1 < Rate::DOT11B.len();
        if up {
            self.place += 1;
            self.counts = Counts::default();
        }
        up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Outcome = Outcome::Acknowledged { attempts: 1 };
    const SECOND: Outcome = Outcome::Acknowledged { attempts: 2 };
    const THIRD: Outcome = Outcome::Acknowledged { attempts: 3 };

    fn rate(rates: &Rates) -> Option<Rate> {
        rates.mode().map(|mode| mode.rate)
    }

    #[test]
    fn fixed_cards_leave_the_rate_to_the_mac() {
        let mut rates = Rates::new(RateControl::Fixed, Preamble::Short);
        rates.note(Instant::ZERO, Outcome::Failed { attempts: 3 });
        assert_eq!(rates.mode(), None);
    }

    #[test]
    fn arf_goes_down_after_two_losses_and_up_after_ten_packets() {
        let mut rates = Rates::new(RateControl::Arf, Preamble::Short);
        let mut note = |outcome, count: u32| {
            (0..count).for_each(|_| rates.note(Instant::ZERO, outcome));
            rate(&rates)
        };
        assert_eq!(note(SECOND, 5), Some(Rate::Cck11));
        assert_eq!(note(THIRD, 1), Some(Rate::Cck5));
        assert_eq!(note(FIRST, 9), Some(Rate::Cck5));
        assert_eq!(note(FIRST, 1), Some(Rate::Cck11));
        // The packet that tries the higher rate needs a retry.
        assert_eq!(note(SECOND, 1), Some(Rate::Cck5));
        let failed = Outcome::Failed { attempts: 3 };
        assert_eq!(note(failed, 5), Some(Rate::Dsss1));
        assert_eq!(rates.mode().map(|mode| mode.preamble), Some(Preamble::Long));
    }

    /// A packet each 20 ms over some seconds, of which each n-th needs a retry.
    fn after(control: RateControl, seconds: u64, nth: u64) -> Option<Rate> {
        let mut rates = Rates::new(control, Preamble::Short);
        for packet in 1..=seconds * 50 {
            let outcome = match packet % nth {
                0 => SECOND,
                _ => FIRST,
            };
            rates.note(Instant::from_millis(packet * 20), outcome);
        }
        rate(&rates)
    }

    #[test]
    fn amrr_goes_down_where_a_third_of_the_packets_needs_a_retry_and_onoe_does_not() {
        assert_eq!(after(RateControl::Amrr, 10, 2), Some(Rate::Dsss1));
        assert_eq!(after(RateControl::Amrr, 10, 5), Some(Rate::Cck11));
        assert_eq!(after(RateControl::Onoe, 30, 2), Some(Rate::Cck11));
        let mut rates = Rates::new(RateControl::Onoe, Preamble::Short);
        (1..=400).for_each(|packet| rates.note(Instant::from_millis(packet * 10), THIRD));
        assert_eq!(rate(&rates), Some(Rate::Dsss1));
    }
}
