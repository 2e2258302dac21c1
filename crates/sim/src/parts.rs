//! A-MPDUs: one preamble and header before several subframes, each of which is lost by itself.
//!
//! The header is judged as that of any frame. Behind it each subframe has the bits of its own time on the air, and a draw of its
//! own: an aggregate uses up one frame number and another for each subframe. A radio that received some of them hands up a copy in
//! which the others, delimiters included, are zero. Bit errors of a fault and the losses of a link's own strike the aggregate as a whole.

use chappe_core::Duration;

use crate::AirTime;
use crate::frame::Frame;
use crate::id::{NodeId, Slot};
use crate::part::PARTS_MAX;
use crate::radio::Radio;
use crate::receiver::Receiver;
use crate::rules::Rules;
use crate::survival::{Draws, HOPELESS, survives};

/// What each radio has received of an aggregate. Empty in runs without any.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Progress>);

/// How likely the subframes of one reception have survived so far.
#[derive(Clone, Debug)]
struct Progress {
    /// The frame and the begin of the reception that it is about.
    slot: Slot,
    started: AirTime,
    /// Logarithms of the probabilities.
    ln: Vec<f64>,
}

impl Parts {
    /// Closes a stretch of constant interference of the aggregate being received.
    #[cold]
    pub(crate) fn close_stretch(
        &mut self,
        rules: &Rules,
        radio: &mut Receiver<'_>,
        (frame, node): (&Frame, NodeId),
        at: AirTime,
    ) {
        let others = rules.noise.plus(radio.interference()).as_f64();
        let signal = radio.lock_power.as_f64();
        if signal < frame.bits.perfect * others {
            let ratio = signal / others;
            let since = |moment: AirTime| moment.saturating_since(radio.lock_started);
            let (from, to) = (since(radio.segment), since(at));
            radio.ln_success += frame.bits.ln_header_between(from, to, ratio);
            let ln_bit = frame.bits.payload_curve.ln_success(ratio);
            let (from, to) = (octet(frame, radio, radio.segment), octet(frame, radio, at));
            let progress = self.of(node, radio, frame.parts.len());
            for (part, ln) in frame.parts.iter().zip(&mut progress.ln) {
                let octets = to.min(part.to as f64) - from.max(part.from as f64);
                if octets > 0.0 && *ln > HOPELESS {
                    *ln += octets * 8.0 * ln_bit;
                }
            }
        }
        radio.segment = at;
    }

    /// Which subframes are lost: bit n for the n-th.
    pub(crate) fn lost(
        &self,
        draws: &Draws,
        radio: &Radio,
        (frame, node): (&Frame, NodeId),
        slot: Slot,
    ) -> u64 {
        let progress = self.0.get(node.index());
        let is_it =
            |progress: &&Progress| progress.slot == slot && progress.started == radio.lock_started;
        let Some(progress) = progress.filter(is_it) else {
            return 0;
        };
        let lost = progress.ln.iter().enumerate().map(|(part, &ln)| {
            let lives = ln == 0.0 || survives(draws.of_part(frame, node, part), ln);
            u64::from(!lives) << part
        });
        lost.sum()
    }

    /// The progress of the present reception, begun anew if it is another one.
    fn of(&mut self, node: NodeId, radio: &Radio, parts: usize) -> &mut Progress {
        let none = Progress {
            slot: Slot::NONE,
            started: AirTime::ZERO,
            ln: Vec::new(),
        };
        if self.0.len() <= node.index() {
            self.0.resize(node.index() + 1, none);
        }
        let progress = &mut self.0[node.index()];
        if progress.slot != radio.lock || progress.started != radio.lock_started {
            (progress.slot, progress.started) = (radio.lock, radio.lock_started);
            progress.ln.clear();
            progress.ln.resize(parts, 0.0);
        }
        progress
    }
}

/// Which octet of the PSDU is on the air at `at` at a radio that receives the frame; negative before the first.
fn octet(frame: &Frame, radio: &Radio, at: AirTime) -> f64 {
    let since = at.saturating_since(radio.lock_started).min(frame.airtime);
    let inside = |span: Duration| span.nanos() as f64 * frame.bits.payload_density / 8.0;
    inside(since) - inside(frame.bits.payload)
}

/// All subframes of a frame with this many.
pub(crate) const fn all(parts: usize) -> u64 {
    match parts >= PARTS_MAX {
        true => u64::MAX,
        false => (1 << parts) - 1,
    }
}
