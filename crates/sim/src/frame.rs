//! Frames in flight, kept in a slab whose buffers are used again: nothing is allocated per frame.

use chappe_core::{Duration, Mode, Rate};

use crate::arrival::Arrival;
use crate::error_curve::{ErrorCurve, ErrorCurves};
use crate::id::{NodeId, Slot};
use crate::part::Part;
use crate::spread::SteadyRow;
use crate::{AirTime, Oqpsk, Power};

/// One transmission: waiting for its start, or on its way past the receivers.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Row of the transmitter in the medium.
    pub(crate) source: NodeId,
    /// The transmitter's own count of frames.
    pub(crate) number: u64,
    /// When its first bit leaves the antenna.
    pub(crate) begin: AirTime,
    pub(crate) airtime: Duration,
    pub(crate) mode: Mode,
    pub(crate) channel: u8,
    /// Transmit power over the usual one.
    pub(crate) scale: f64,
    /// Length on the air in octets, check sequence included.
    pub(crate) octets: usize,
    /// A digest of PSDU, mode and channel. Only set under a profile with joint reception.
    pub(crate) content: u64,
    /// Octets of `buffer` that are the PSDU.
    pub(crate) len: usize,
    pub(crate) buffer: Vec<u8>,
    /// The receivers it reaches, nearest first, unless they stand in a row of the medium: ask
    /// [`Air::arrivals`](crate::air::Air::arrivals). The cursors rely on this order: it is that of time.
    pub(crate) own_arrivals: Vec<Arrival>,
    pub(crate) row: Option<SteadyRow>,
    /// No receiver's delay is longer.
    pub(crate) latest: u32,
    /// The subframes of an A-MPDU; empty for any other frame.
    pub(crate) parts: Vec<Part>,
    /// Delivery ratios beside the arrivals, in a measured medium.
    pub(crate) ratios: Vec<f32>,
    /// How many arrivals have begun and ended.
    pub(crate) started: u32,
    pub(crate) ended: u32,
    pub(crate) flying: bool,
    /// Pure noise: an interferer's burst, or a node's.
    pub(crate) noise: bool,
    /// An interferer's, be it noise or a frame of a network that is not in the run.
    pub(crate) foreign: bool,
    /// The transmitter crashed on the way.
    pub(crate) truncated: bool,
    pub(crate) bits: Bits,
}

/// Where a frame's bits lie in time, relative to its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    /// From the frame's start to its header, to the end of that, and to its PSDU.
    pub(crate) header: Duration,
    pub(crate) header_end: Duration,
    pub(crate) payload: Duration,
    /// The error curves of header and PSDU, and how many bits of the header can be wrong.
    pub(crate) header_curve: &'static ErrorCurve,
    pub(crate) payload_curve: &'static ErrorCurve,
    /// Both are the same.
    one_curve: bool,
    header_bits: f64,
    payload_bits: f64,
    /// Bits in a nanosecond. From the frame's airtime and not from the rate: 802.11 rounds TXTIME up to a whole
    /// microsecond, and all stretches together must hold exactly the frame's bits.
    pub(crate) header_density: f64,
    pub(crate) payload_density: f64,
    /// From this ratio up the header survives a draw of [`LIKELY`](crate::error_curve::LIKELY) or less.
    pub(crate) likely_header: f64,
    /// From this ratio up nothing is lost in the header.
    pub(crate) perfect_header: f64,
    /// From this ratio up nothing is lost in either part.
    pub(crate) perfect: f64,
}

impl Bits {
    pub(crate) fn new(mode: Mode, octets: usize, curves: &'static ErrorCurves) -> Bits {
        let header = curves.header(mode);
        let (header_curve, payload_curve) = (curves.of(header.rate), curves.of(mode.rate));
        let (payload, lasts) = (mode.header_time(), mode.airtime(octets));
        let span = lasts.saturating_sub(payload).nanos().max(1);
        Bits {
            header: payload.saturating_sub(Duration::from_nanos(header.nanos + header.training)),
            header_end: payload.saturating_sub(Duration::from_nanos(header.training)),
            payload,
            header_curve,
            payload_curve,
            one_curve: std::ptr::eq(header_curve, payload_curve),
            header_bits: header.bits,
            payload_bits: octets as f64 * 8.0,
            header_density: header.bits / header.nanos as f64,
            payload_density: octets as f64 * 8.0 / span as f64,
            likely_header: header_curve.likely,
            perfect_header: header_curve.perfect,
            perfect: payload_curve.perfect.max(header_curve.perfect),
        }
    }

    /// The logarithm of the probability that the PHY header survives at one ratio throughout.
    #[inline]
    pub(crate) fn ln_header(&self, ratio: f64) -> f64 {
        self.header_bits * self.header_curve.ln_success(ratio)
    }

    /// How long the header lasts between two moments of a reception, counted from its beginning, in nanoseconds.
    #[inline]
    pub(crate) fn header_between(&self, from: Duration, to: Duration) -> u64 {
        let last = to.min(self.header_end);
        last.saturating_sub(from.max(self.header)).nanos()
    }

    /// That of those bits that lie between two moments of a reception, counted from its beginning.
    #[inline]
    pub(crate) fn ln_header_between(&self, from: Duration, to: Duration, ratio: f64) -> f64 {
        let header = self.header_between(from, to);
        if header == 0 {
            return 0.0;
        }
        header as i64 as f64 * self.header_density * self.header_curve.ln_success(ratio)
    }

    /// The logarithm of the probability that a bit of the PSDU survives at a ratio, and that for a bit of the header.
    #[inline]
    pub(crate) fn ln_bits(&self, ratio: f64) -> (f64, f64) {
        let payload = self.payload_curve.ln_success(ratio);
        let header = match self.one_curve {
            true => payload,
            false => self.header_curve.ln_success(ratio),
        };
        (payload, header)
    }
}

impl Frame {
    /// Whether it is a frame of a node in the run, whose receptions and losses count.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        !self.foreign && !self.noise
    }

    /// How many numbers it uses up: its own and one for each subframe.
    pub(crate) fn numbers(&self) -> u64 {
        1 + self.parts.len() as u64
    }

    /// The logarithm of the probability that header and payload survive at one ratio throughout.
    #[inline]
    pub(crate) fn ln_alone(&self, ratio: f64) -> f64 {
        let bits = &self.bits;
        let (payload, header) = bits.ln_bits(ratio);
        bits.payload_bits * payload + bits.header_bits * header
    }

    /// The delivery ratio to one of its receivers, in a measured medium.
    #[inline]
    pub(crate) fn ratio(&self, place: u32) -> Option<f32> {
        self.ratios.get(place as usize).copied()
    }

    /// When its last bit leaves the antenna.
    #[inline]
    pub(crate) fn end(&self) -> AirTime {
        self.begin + self.airtime
    }

    fn new(buffer: usize) -> Frame {
        let mode = Mode::long(Rate::Dsss1);
        Frame {
            source: NodeId(0),
            number: 0,
            begin: AirTime::ZERO,
            airtime: Duration::ZERO,
            mode,
            channel: 0,
            scale: 1.0,
            octets: 0,
            content: 0,
            len: 0,
            buffer: vec![0; buffer],
            own_arrivals: Vec::new(),
            row: None,
            latest: 0,
            parts: Vec::new(),
            ratios: Vec::new(),
            started: 0,
            ended: 0,
            flying: false,
            noise: false,
            foreign: false,
            truncated: false,
            bits: Bits::new(mode, 0, ErrorCurves::get(Oqpsk::IeeeE418)),
        }
    }

    pub(crate) fn psdu(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

/// A frame's first or last bit at one receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) slot: Slot,
    /// Which of the frame's arrivals this is.
    pub(crate) place: u32,
    pub(crate) node: NodeId,
    /// Power of the frame there.
    pub(crate) power: Power,
    pub(crate) at: AirTime,
}

/// All frames, in slots that are used again.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<Slot>,
    buffer: usize,
}

impl Frames {
    /// Frames whose buffers hold `buffer` octets.
    pub(crate) fn new(buffer: usize) -> Frames {
        Frames {
            slots: Vec::new(),
            free: Vec::new(),
            buffer,
        }
    }

    /// A slot for a new frame. The run alone decides which one, so it may stand in an event's key.
    pub(crate) fn take(&mut self) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Frame::new(self.buffer));
            // Room for all slots to be free at once: releasing a frame never allocates.
            self.free.reserve(self.slots.len());
            Slot(self.slots.len() as u32 - 1)
        });
        let frame = self.get_mut(slot);
        // `own_arrivals` and `buffer` keep their memory: both are overwritten before they are read.
        (frame.started, frame.ended) = (0, 0);
        (frame.flying, frame.noise, frame.truncated) = (false, false, false);
        frame.foreign = false;
        frame.parts.clear();
        slot
    }

    pub(crate) fn release(&mut self, slot: Slot) {
        self.get_mut(slot).flying = false;
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Frame {
        &self.slots[slot.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Frame {
        &mut self.slots[slot.index()]
    }

    pub(crate) fn flying(&self) -> impl Iterator<Item = &Frame> {
        self.slots.iter().filter(|frame| frame.flying)
    }

    /// Octets of memory in slots and their buffers, and the number of slots.
    pub(crate) fn octets(&self) -> (usize, usize) {
        let of = |frame: &Frame| {
            size_of::<Frame>()
                + frame.buffer.capacity()
                + frame.own_arrivals.capacity() * size_of::<Arrival>()
                + frame.ratios.capacity() * 4
                + frame.parts.capacity() * size_of::<Part>()
        };
        (self.slots.iter().map(of).sum(), self.slots.len())
    }
}
