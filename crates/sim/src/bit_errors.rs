//! Bit errors of a fault: which frames they hit, and which bits of a frame that its check sequence lets through.

use chappe_core::{Purpose, Seed, Stream};

use crate::Loss;
use crate::frame::Frame;
use crate::id::NodeId;
use crate::survival::{position, survives};

/// The bit errors that faults cause at receivers.
#[derive(Debug)]
pub(crate) struct BitErrors {
    stream: Stream,
    /// Bit error rate at each node and whether the check sequence shows it. Empty until a fault asks for one.
    rates: Vec<(f64, bool)>,
}

/// Where a stream says which bits of a frame are wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Falsified(u64);

/// What a node hears of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) falsified: Option<Falsified>,
    /// The subframes of an A-MPDU that are lost: bit n for the n-th.
    pub(crate) lost: u64,
}

impl BitErrors {
    pub(crate) fn new(seed: Seed) -> BitErrors {
        BitErrors {
            stream: seed.stream(Purpose::Fault),
            rates: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }

    /// From now on each bit at a node, one of `nodes`, is wrong with probability `rate`.
    pub(crate) fn set(&mut self, node: NodeId, nodes: usize, rate: f64, detected: bool) {
        self.rates.resize(nodes, (0.0, false));
        self.rates[node.index()] = (rate, detected);
    }

    /// The fate of the first `octets` of a frame: lost if an error is detected.
    #[cold]
    pub(crate) fn strike(
        &self,
        frame: &Frame,
        node: NodeId,
        octets: usize,
    ) -> Result<Option<Falsified>, Loss> {
        let Some(&(rate, detected)) = self.rates.get(node.index()) else {
            return Ok(None);
        };
        let position = position(frame, node);
        let ln_clean = octets as f64 * 8.0 * libm::log1p(-rate);
        if rate <= 0.0 || survives(self.stream.fraction_at(position), ln_clean) {
            return Ok(None);
        }
        match detected {
            true => Err(Loss::Corrupted),
            false => Ok(Some(Falsified(position))),
        }
    }

    /// The fate of a head of `octets`.
    #[cold]
    pub(crate) fn strike_head(
        &self,
        frame: &Frame,
        node: NodeId,
        octets: usize,
    ) -> Result<Option<Falsified>, Loss> {
        match self.strike(frame, node, frame.octets) {
            Ok(falsified) => Ok(falsified),
            // The whole frame will fail its check sequence; its head may still be clean.
            Err(_) => self.strike(frame, node, octets).map(|_| None),
        }
    }

    /// A PSDU as a node hears it: as it was sent, or a copy in `space` with wrong bits and without lost subframes.
    #[inline]
    pub(crate) fn apply<'a>(
        &self,
        frame: &'a Frame,
        node: NodeId,
        heard: Heard,
        space: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match heard.falsified.is_none() && heard.lost == 0 {
            true => frame.psdu(),
            false => self.bend(frame, node, heard, space),
        }
    }

    /// A copy in `space` with wrong bits and without lost subframes.
    #[cold]
    fn bend<'a>(
        &self,
        frame: &Frame,
        node: NodeId,
        heard: Heard,
        space: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let psdu = frame.psdu();
        space.clear();
        space.extend_from_slice(psdu);
        if let Some(Falsified(position)) = heard.falsified {
            let bits = Seed(self.stream.at(position)).stream(Purpose::Fault);
            falsify(space, bits, self.rates[node.index()].0);
        }
        for (place, part) in frame.parts.iter().enumerate() {
            if heard.lost >> place & 1 != 0 {
                space[part.from..part.to].fill(0);
            }
        }
        space
    }
}

/// Flips each bit with probability `rate`, by geometric gaps, and at least one: the frame is known to be wrong.
fn falsify(psdu: &mut [u8], mut random: Stream, rate: f64) {
    let bits = psdu.len() as u64 * 8;
    if bits == 0 {
        return;
    }
    let flip = |psdu: &mut [u8], place: u64| psdu[(place / 8) as usize] ^= 1 << (place % 8);
    // Without a first wrong bit a frame counted as falsified could come out clean.
    let first = random.below(bits);
    flip(psdu, first);
    let ln_keep = libm::log1p(-rate.min(1.0 - 1e-12));
    let mut place = 0u64;
    loop {
        // One draw for each wrong bit instead of one for each bit.
        let gap = (libm::log(random.fraction()) / ln_keep) as u64;
        place = place.saturating_add(gap);
        if place >= bits {
            return;
        }
        if place != first {
            flip(psdu, place);
        }
        place += 1;
    }
}
