//! Whether a frame's bits survive: the probability that they do, and the one random draw that it is compared with.
//!
//! A frame has one draw at each receiver. Its header, its head seen early and the whole frame are judged by the same draw
//! against probabilities that only fall, so the verdicts agree: a frame that survives also had a good header.

use chappe_core::Stream;

use crate::frame::Frame;
use crate::id::NodeId;
use crate::level::NEVER;
use crate::radio::{Radio, flag::INTERFERED};
use crate::receiver::Receiver;
use crate::rules::Rules;
use crate::{AirTime, Loss};

/// Below this logarithm a frame is lost without a draw: the chance is less than one in 10^17.
pub(crate) const HOPELESS: f64 = -40.0;

/// The draws that decide over receptions.
#[derive(Debug)]
pub(crate) struct Draws(pub(crate) Stream);

impl Draws {
    /// The draw of one frame at one receiver, in (0, 1].
    #[inline]
    pub(crate) fn of(&self, frame: &Frame, node: NodeId) -> f64 {
        self.0.fraction_at(position(frame, node))
    }

    /// That of one subframe of an A-MPDU.
    pub(crate) fn of_part(&self, frame: &Frame, node: NodeId, part: usize) -> f64 {
        let number = frame.number + 1 + part as u64;
        self.0.fraction_at(position_of(frame.source, number, node))
    }
}

/// Where a random stream is read for one frame at one receiver. By position and not in sequence: another frame more
/// or less elsewhere does not change this one's fate.
pub(crate) fn position(frame: &Frame, node: NodeId) -> u64 {
    position_of(frame.source, frame.number, node)
}

fn position_of(source: NodeId, number: u64, node: NodeId) -> u64 {
    (source.number() & 0xffff) << 48 | (node.number() & 0xffff) << 32 | number & 0xffff_ffff
}

/// More than the rounding errors of the two polynomials below and of the exponential together.
const ROUNDING: f64 = 1e-12;

/// Whether a uniform draw in (0, 1] stays within `exp(ln)`. The exponential's series settles most draws without it: for a
/// negative `x` four terms are less than `exp(x)`, and four terms of `exp(-x)` less than its inverse.
#[inline]
pub(crate) fn survives(draw: f64, ln: f64) -> bool {
    if ln <= HOPELESS {
        return false;
    }
    let four = |x: f64| 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0)));
    let settled = ln < 0.0;
    if settled && draw <= four(ln) - ROUNDING {
        return true;
    }
    if settled && draw * four(-ln) > 1.0 + ROUNDING {
        return false;
    }
    draw <= libm::exp(ln)
}

/// Closes a stretch of constant interference of the frame being received.
#[inline]
pub(crate) fn close_stretch(
    (rules, draws): (&Rules, &Draws),
    radio: &mut Receiver<'_>,
    (frame, node): (&Frame, NodeId),
    at: AirTime,
) {
    let others = rules.noise.plus(radio.interference()).as_f64();
    let signal = radio.lock_power.as_f64();
    // Most stretches are perfect; this multiplication saves them the division and the curves. What is hopeless stays so.
    if signal < frame.bits.perfect * others && radio.ln_success > HOPELESS {
        harm((rules, draws), radio, (frame, node), at, signal / others);
    }
    radio.segment = at;
}

/// The bits since the last stretch arrived at a ratio at which some may be lost.
#[inline(never)]
fn harm(
    (rules, draws): (&Rules, &Draws),
    radio: &mut Radio,
    (frame, node): (&Frame, NodeId),
    at: AirTime,
    ratio: f64,
) {
    radio.ln_success += ln_stretch(radio, frame, at, ratio);
    if radio.ln_success < DOUBTFUL {
        if radio.draw == 0.0 {
            radio.draw = draws.of(frame, node);
        }
        if !survives(radio.draw, radio.ln_success) {
            abandon(rules, radio);
        }
    }
}

/// From this logarithm down it is worth asking whether a frame is lost already.
const DOUBTFUL: f64 = -0.05;

/// The frame being received is lost for certain: weak signals pass the radio unseen until it ends.
#[inline]
pub(crate) fn abandon(rules: &Rules, radio: &mut Radio) {
    radio.ln_success = f64::NEG_INFINITY;
    if !rules.vigilant {
        radio.harmless = NEVER;
    }
}

/// The logarithm of the probability that the bits between the stretch's start and `at` survive.
#[inline]
fn ln_stretch(radio: &Radio, frame: &Frame, at: AirTime, ratio: f64) -> f64 {
    let bits = &frame.bits;
    let from = radio.segment.saturating_since(radio.lock_started);
    let to = at.saturating_since(radio.lock_started);
    let payload = to
        .min(frame.airtime)
        .saturating_sub(from.max(bits.payload))
        .nanos();
    let header = bits.header_between(from, to);
    // Less than 2^63: machines convert signed numbers faster.
    let payload = payload as i64 as f64 * bits.payload_density;
    if header == 0 {
        return payload * bits.payload_curve.ln_success(ratio);
    }
    let (ln_payload, ln_header) = bits.ln_bits(ratio);
    payload * ln_payload + header as i64 as f64 * bits.header_density * ln_header
}

/// Whether a whole frame's bits survived at a radio that was locked on to it, by the error curves.
#[inline]
pub(crate) fn judge_bits(
    rules: &Rules,
    draws: &Draws,
    radio: &Radio,
    (frame, node): (&Frame, NodeId),
) -> Result<(), Loss> {
    if radio.ln_success == 0.0 {
        return Ok(());
    }
    // Without anything that overlapped, only noise is left.
    if radio.ln_success <= HOPELESS && !radio.is(INTERFERED) {
        return Err(Loss::Noise);
    }
    judge_doubtful(rules, draws, radio, (frame, node))
}

/// The same where the draw decides.
#[inline(never)]
fn judge_doubtful(
    rules: &Rules,
    draws: &Draws,
    radio: &Radio,
    (frame, node): (&Frame, NodeId),
) -> Result<(), Loss> {
    let draw = match radio.draw {
        0.0 => draws.of(frame, node),
        draw => draw,
    };
    if survives(draw, radio.ln_success) {
        return Ok(());
    }
    // The same draw against noise alone says whether the interference is to blame.
    let ratio = radio.lock_power.as_f64() / rules.noise.as_f64();
    let alone = || frame.ln_alone(ratio);
    Err(match radio.is(INTERFERED) && survives(draw, alone()) {
        true => Loss::Collision,
        false => Loss::Noise,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    /// The short cuts never change a verdict: random draws and logarithms, and draws next to the exponential.
    #[test]
    fn short_cuts_agree_with_the_exponential() {
        let mut random = Seed(5).stream(Purpose::Trial(0));
        let (mut lived, mut died) = (0, 0);
        for _ in 0..200_000 {
            let ln = -f64::powi(2.0, -(random.below(50) as i32)) * 45.0 * random.fraction();
            let exact = libm::exp(ln);
            let near = [-1e-9, -1e-12, -1e-15, 0.0, 1e-15, 1e-12, 1e-9];
            let near = near.map(|apart| exact * (1.0 + apart));
            for draw in near.into_iter().chain([random.fraction()]) {
                if !(draw > 0.0 && draw <= 1.0) {
                    continue;
                }
                let expected = ln > HOPELESS && draw <= exact;
                assert_eq!(survives(draw, ln), expected, "{draw:e} {ln:e}");
                *(if expected { &mut lived } else { &mut died }) += 1;
            }
        }
        assert!(lived > 100_000 && died > 100_000, "{lived} {died}");
        assert!(survives(1.0, 0.0));
    }
}
