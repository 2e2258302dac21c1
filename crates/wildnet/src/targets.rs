//! From what an application needs to the length of slots and the promise of its class.

use core::fmt;

use chappe_core::Duration;

use crate::config::{Order, Service};
use crate::gilbert::Channel;
use crate::header::{ACK, BODY, FIXED, LENGTH, SLOT};
use crate::policy::{BLOCK_MAX, Goal, Policy, Prediction, ROUNDS_MAX};
use crate::site::SlotConfig;

/// Slot lengths to choose from. The shortest that suffices has the least delay (specs 4.7).
pub const SLOTS: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
];
/// Residual planned for where nothing may be lost: one packet of a thousand is late, and is sent again.
const LATE: f64 = 1e-3;

/// What an application needs of a link in slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Longest delay from the offer of a packet to its arrival; `None`: any.
    pub delay: Option<Duration>,
    /// Payload rate of the application, bit/s.
    pub rate: f64,
    /// Share of packets that may be lost or late, 0 to 1. With 0 every packet is sent until it arrives, and all but one in a
    /// thousand meet `delay`.
    pub loss: f64,
    /// Octets of each packet.
    pub packet: usize,
}

/// The slots and the promise that satisfy a [`Wish`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Length of both ends' slots.
    pub slot: Duration,
    /// The promise to configure for the class.
    pub service: Service,
    /// Rounds after the first that fit before the deadline; `None` without a deadline.
    pub rounds: Option<u8>,
    /// Overhead and residual loss.
    pub prediction: Prediction,
    /// Payload rate that the slots carry with that overhead, bit/s.
    pub capacity: f64,
}

/// Why no slots satisfy a [`Wish`], with the best value that they reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unmet {
    /// The payload rate is too high: slots carry at most this, bit/s.
    Rate(f64),
    /// The delay is too short: even a packet that is not lost may take this long.
    Delay(Duration),
    /// The loss is too low: at least this share stays lost.
    Loss(f64),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Rate(most) => write!(
                f,
                "within that delay and loss, slots carry at most {:.2} Mbit/s",
                most / 1e6
            ),
            Unmet::Delay(least) => write!(
                f,
                "waiting for a slot alone takes up to {:.1} ms",
                least.as_secs_f64() * 1e3
            ),
            Unmet::Loss(least) => write!(
                f,
                "within that delay, at least {:.2} % of packets stay lost",
                least * 100.0
            ),
        }
    }
}

impl core::error::Error for Unmet {}

//= wildnet 3.4: slot, redundancy and repetitions follow from what an application needs
/// Finds the shortest slots of [`SLOTS`] that satisfy a wish, and the promise to make. `slots` says how frames are sent; its
/// length is ignored. `one_way` is the propagation delay.
pub fn choose(
    channel: &Channel,
    one_way: Duration,
    slots: &SlotConfig,
    wish: &Wish,
) -> Result<Choice, Unmet> {
    let mut unmet: Option<Unmet> = None;
    for slot in SLOTS {
        match try_slot(
            channel,
            one_way,
            &SlotConfig {
                length: slot,
                ..*slots
            },
            wish,
        ) {
            Ok(choice) => return Ok(choice),
            Err(why) => unmet = Some(unmet.map_or(why, |before| nearer(before, why))),
        }
    }
    Err(unmet.unwrap_or(Unmet::Rate(0.0)))
}

/// Of two failures the nearer to success: the rate is checked last, after the loss, and that after the delay.
fn nearer(a: Unmet, b: Unmet) -> Unmet {
    match (a, b) {
        (Unmet::Rate(x), Unmet::Rate(y)) => Unmet::Rate(x.max(y)),
        (Unmet::Rate(_), _) => a,
        (_, Unmet::Rate(_)) => b,
        (Unmet::Loss(x), Unmet::Loss(y)) => Unmet::Loss(x.min(y)),
        (Unmet::Loss(_), _) => a,
        (_, Unmet::Loss(_)) => b,
        (Unmet::Delay(x), Unmet::Delay(y)) => Unmet::Delay(x.min(y)),
    }
}

fn try_slot(
    channel: &Channel,
    one_way: Duration,
    slots: &SlotConfig,
    wish: &Wish,
) -> Result<Choice, Unmet> {
    let cycle = (slots.length + one_way) * 2;
    let frame = FIXED + SLOT + ACK + BODY + LENGTH + wish.packet;
    let each = slots.airtime(frame) + slots.mean_gap();
    let fits = slots.length.saturating_sub(slots.guard).steps(each);
    let bits = wish.packet as f64 * 8.0;
    // At most, a packet waits for the peer's whole slot; on average it arrives in the middle of its own (specs 4.6).
    let first = slots.length + one_way * 2 + slots.length / 2 + one_way;
    let rounds = match wish.delay {
        Some(delay) if delay < first => return Err(Unmet::Delay(first)),
        Some(delay) => Some(delay.saturating_sub(first).steps(cycle).min(255) as u8),
        None => None,
    };
    let block = libm::ceil(wish.rate * cycle.as_secs_f64() / bits.max(1.0)) as usize;
    let residual = if wish.loss > 0.0 { wish.loss } else { LATE };
    let prediction = planned(
        channel,
        rounds.map_or(u64::MAX, u64::from),
        (block, residual),
    );
    if prediction.residual > residual {
        return Err(Unmet::Loss(prediction.residual));
    }
    let capacity = fits as f64 * bits / cycle.as_secs_f64() / (1.0 + prediction.overhead);
    if capacity < wish.rate {
        return Err(Unmet::Rate(capacity));
    }
    Ok(Choice {
        slot: slots.length,
        service: Service {
            order: Order::Flow,
            deadline: wish.delay,
            rounds: 0,
            residual,
            retries: None,
            drop_late: wish.delay.is_some() && wish.loss > 0.0,
            every_path: false,
        },
        rounds,
        prediction,
        capacity,
    })
}

/// Block size for which predictions are made.
const BLOCK: usize = 12;

/// Predicts overhead and residual loss of a class on a channel whose rounds take `round` and whose frames take `one_way`.
///
/// A class without a deadline, or with time for many rounds, costs what the losses cost and loses nothing.
pub fn predict(
    channel: &Channel,
    service: &Service,
    round: Duration,
    one_way: Duration,
) -> Prediction {
    let rounds = service.deadline.map_or(u64::MAX, |deadline| {
        deadline.saturating_sub(one_way).steps(round)
    });
    planned(channel, rounds, (BLOCK, service.residual))
}

fn planned(channel: &Channel, rounds: u64, (block, residual): (usize, f64)) -> Prediction {
    if rounds > ROUNDS_MAX.into() {
        let left = libm::pow(channel.loss, rounds.min(1000) as f64 + 1.0);
        return Prediction {
            overhead: channel.overhead_bound(0.0),
            residual: left,
            bound: channel.overhead_bound(0.0),
        };
    }
    let goal = Goal {
        block: block.clamp(1, BLOCK_MAX),
        rounds: rounds as u8,
        residual,
    };
    Policy::solve(channel, &goal).prediction()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn choice(
        delay_ms: Option<u64>,
        mbps: f64,
        loss: f64,
        channel_loss: f64,
    ) -> Result<Choice, Unmet> {
        let wish = Wish {
            delay: delay_ms.map(Duration::from_millis),
            rate: mbps * 1e6,
            loss,
            packet: 1468,
        };
        let slots = SlotConfig::dot11b(Duration::from_millis(20));
        let one_way = Duration::from_micros(200);
        choose(&Channel::independent(channel_loss), one_way, &slots, &wish)
    }

    /// Low rates get the shortest slots and higher ones longer slots; an impossible rate is refused with the best possible one
    /// (60 km, set C: slots hold 3, 6, 12 and 25 packets of 1468 octets).
    #[test]
    fn slots_follow_the_rate() {
        let slot = |mbps| choice(None, mbps, 0.0, 0.0).map(|choice| choice.slot);
        assert_eq!(slot(1.0), Ok(SLOTS[0]));
        assert_eq!(slot(3.42), Ok(SLOTS[1]));
        assert_eq!(slot(3.47), Ok(SLOTS[2]));
        assert_eq!(slot(3.6), Ok(SLOTS[3]));
        assert!(matches!(slot(5.0), Err(Unmet::Rate(most)) if (3.5e6..3.8e6).contains(&most)));
        assert!(matches!(choice(None, 3.0, 0.0, 0.3), Err(Unmet::Rate(most)) if most < 2.7e6));
    }

    /// A longer delay allows more rounds, which save redundancy. A delay below the wait for a slot is refused.
    #[test]
    fn rounds_follow_the_delay() {
        let [short, long] = [15, 60].map(|ms| choice(Some(ms), 0.5, 0.01, 0.3).unwrap());
        assert!(short.rounds < long.rounds && short.slot == SLOTS[0]);
        assert!(short.prediction.overhead > long.prediction.overhead);
        assert!(long.prediction.residual <= 0.01 && long.service.drop_late);
        let refused = choice(Some(5), 1.0, 0.01, 0.3).unwrap_err();
        assert!(matches!(refused, Unmet::Delay(least) if least > Duration::from_millis(5)));
        assert_eq!(
            refused.to_string(),
            "waiting for a slot alone takes up to 8.1 ms"
        );
        let lost = choice(Some(9), 0.1, 1e-9, 0.9).unwrap_err();
        assert!(matches!(lost, Unmet::Loss(least) if least > 1e-9), "{lost}");
    }
}
