//! The frames of the improved variant: a view, which checks the octets once and cannot panic afterwards, and a repr that
//! writes them.
//!
//! Numbers are big-endian.
//!
//! ```text
//!  0        version (4 bits), type (4 bits): 4 data, 5 report, 6 plain, 7 narrow
//!  1        source of the group
//!  2..6     object: a checksum of its octets and cut
//!  6        epoch: which offer of the source
//!  7        plan: which list of members
//!  8        flags: 1 = closed, the source has finished; 2 = stamps follow the fixed part; 4 = a slot follows these;
//!           8 = members contend, who sent in turns; 16 = batches of an outer code are among those of the object (`segments.rs`);
//!           32 = what receivers have of the object's segments follows the two sets; 64 = members that have failed follow these
//!  9        urge of the sender, in 1/8 of an innovative reception
//! 10..14    batches of the object, without those of the outer code
//! 14        packets in every batch but the last, 1 to 96
//! 15        packets in the last batch
//! 16        N, octets of each of the two sets; 0 if there is no room for them: both are then unknown
//!   ..+5    only with flag 2: stamp of the sender (2), a neighbour (1), that neighbour's stamp (2)
//!   ..+4    only with flag 4: the slot in which the frame began
//! 17..17+N  members: bit n % 8 of octet n / 8 is node n
//!   ..+N    complete: receivers that are known to have the object
//!   ..+2    only with flag 32: how many segments, from the first on, all receivers have
//!   ..+N    only with flag 32: receivers that are known to have the segment after these
//!   ..+1    only with flag 64: version of the next set, modulo 256
//!   ..+N    only with flag 64: members that their neighbours do not hear any more
//!   ..+4    report: its base
//!   ..+1    S, octets of states, up to 64
//!   ..+S    states
//! ```
//!
//! Stamps are in 1/4 ms of any clock, and wrap. The neighbour's is that of its latest frame, plus the time since that frame
//! arrived; a sender that has none to echo names itself.
//!
//! A data frame goes on with
//!
//! ```text
//!   ..+4    batch
//!   ..      code vector, as long as the batch has packets
//!   ..      payload
//! ```
//!
//! and a plain one, whose payload is an uncoded packet, has one octet in place of the vector: the packet's index in the batch.
//! In a narrow one the vector has two bits for each packet (`narrow.rs`).

mod fields;
mod object;

use chappe_core::Duration;

use fields::{Fields, Room};
pub use object::ObjectId;

use crate::frame::{Malformed, VERSION, octet};
use crate::improved::K_MAX;
use crate::improved::narrow::{self, Vector};
use crate::improved::report::Report;
pub use crate::improved::segments::CODED;
use crate::set::NodeSet;

const DATA: u8 = VERSION << 4 | 4;
const REPORT: u8 = VERSION << 4 | 5;
const PLAIN: u8 = VERSION << 4 | 6;
const NARROW: u8 = VERSION << 4 | 7;
const CLOSED: u8 = 1;
const TIMED: u8 = 2;
const SLOTTED: u8 = 4;
const CONTEND: u8 = 8;
const OUTER: u8 = 16;
const SEGMENTED: u8 = 32;
const GONE: u8 = 64;
/// Octets before the two sets.
const FIXED: usize = 17;
/// Octets of base and number of states.
const REPORT_HEAD: usize = 5;
const BATCH: usize = 4;
/// Octets that stamps add to a frame.
pub const TIMES: usize = 5;
/// Octets that a slot adds to a frame.
pub const SLOT: usize = 4;
/// Octets of the number of segments.
const DONE: usize = 2;
/// Octets of the version of a set.
const VERSIONED: usize = 1;
/// The unit of stamps, which wrap after 2^16 of them, 16 s.
pub const STAMP: Duration = Duration::from_micros(250);

/// The batch of a data frame or a plain one, without further checks; `None` if the octets end before it.
pub(crate) fn batch(sdu: &[u8]) -> Option<u32> {
    let report = report_at(*sdu.get(8)?, usize::from(*sdu.get(16)?));
    let states = usize::from(*sdu.get(report + REPORT_HEAD - 1)?);
    let at = report + REPORT_HEAD + states;
    sdu.get(at..at + BATCH).map(crate::frame::big_endian)
}

/// Octets before the report in frames with these flags, whose sets have `width` octets.
const fn report_at(flags: u8, width: usize) -> usize {
    const fn of(flags: u8, flag: u8, octets: usize) -> usize {
        if flags & flag == 0 { 0 } else { octets }
    }
    let stamps = of(flags, TIMED, TIMES) + of(flags, SLOTTED, SLOT);
    let more = of(flags, SEGMENTED, DONE + width) + of(flags, GONE, VERSIONED + width);
    FIXED + stamps + 2 * width + more
}

/// The source's decisions, which spread from node to node away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of the source's offer, modulo 256.
    pub epoch: u8,
    /// Number of the list of members within the offer, modulo 256.
    pub number: u8,
    /// Every receiver that the source serves is complete.
    pub closed: bool,
    /// Members do not send in turns any more.
    pub contend: bool,
    /// The receivers and relays that take part, without the source.
    pub members: NodeSet,
}

/// What receivers have of a long object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Segments, from the first on, that all receivers have.
    pub segments: u16,
    /// Receivers that are known to have the segment after these.
    pub next: NodeSet,
}

/// Members that have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Counts the changes of the set, modulo 256. A later one replaces an earlier one.
    pub version: u8,
    /// Members that their neighbours do not hear any more.
    pub nodes: NodeSet,
}

/// When its sender wrote a frame, and which frames of a neighbour it had handled by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// By the sender's clock, in [`STAMP`], modulo 2^16.
    pub stamp: u16,
    /// A neighbour of the sender; the sender itself if it has nothing to echo.
    pub of: u16,
    /// By the neighbour's clock: its latest stamp, plus the time since it arrived.
    pub echo: u16,
}

/// The part that all frames have.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The source of the group.
    pub source: u16,
    /// The object, and how it is cut.
    pub object: ObjectId,
    /// The source's decisions, as far as the sender knows.
    pub plan: Plan,
    /// Receivers that the sender knows to be complete.
    pub complete: NodeSet,
    /// What receivers have of the object's segments, if it has several.
    pub done: Option<Done>,
    /// Members that have failed, as far as the sender knows, if it has heard of any.
    pub gone: Option<Gone>,
    /// Whether the frame had room for members and complete receivers; otherwise both are empty.
    pub told: bool,
    /// Innovative receptions that the sender expects of its next frame, in eighths.
    pub urge: u8,
    /// Stamps for measuring the age of reports, if the network uses them.
    pub times: Option<Times>,
    /// The slot in which the frame began, if members send in turns; only data frames name it.
    pub slot: Option<u32>,
    /// The state of the sender's batches.
    pub report: Report<'a>,
}

/// A frame that has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The part that all frames have.
    pub head: Head<'a>,
    /// Coded data, in a data frame.
    pub data: Option<Coded<'a>>,
}

/// A combination of the packets of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coded<'a> {
    /// Number of the batch in the object.
    pub batch: u32,
    /// The coefficients of the packets.
    pub vector: Vector<'a>,
    /// The combination of the packets with these coefficients.
    pub payload: &'a [u8],
}

/// Octets of a data frame beside its payload, in a network of `nodes` nodes and with at most `states` octets of states,
/// without [`TIMES`], with a vector of `k` octets. [`Config::check`](crate::improved::Config::check) leaves room for them.
pub const fn overhead(nodes: usize, states: usize, k: usize) -> usize {
    FIXED + 2 * nodes.div_ceil(8) + REPORT_HEAD + states + BATCH + k
}

/// Octets that segments add to a frame, in a network of `nodes` nodes.
pub const fn done(nodes: usize) -> usize {
    DONE + nodes.div_ceil(8)
}

/// Whether the first octet is that of a frame of this variant.
pub fn is_ours(sdu: &[u8]) -> bool {
    matches!(sdu.first(), Some(&(DATA | REPORT | PLAIN | NARROW)))
}

/// Parses and checks the frame in `sdu`.
pub fn parse(sdu: &[u8]) -> Result<Frame<'_>, Malformed> {
    let (fixed, rest) = sdu.split_first_chunk::<FIXED>().ok_or(Malformed::Short)?;
    let &[
        kind,
        source,
        t0,
        t1,
        t2,
        t3,
        epoch,
        number,
        flags,
        urge,
        b0,
        b1,
        b2,
        b3,
        k,
        last,
        width,
    ] = fixed;
    if !matches!(kind, DATA | REPORT | PLAIN | NARROW) {
        return Err(Malformed::Type(kind));
    }
    let object = ObjectId {
        tag: u32::from_be_bytes([t0, t1, t2, t3]),
        batches: u32::from_be_bytes([b0, b1, b2, b3]),
        k,
        last,
        outer: flags & OUTER != 0,
    };
    if !object.is_sound() {
        return Err(Malformed::Empty);
    }
    let mut fields = Fields {
        flags,
        width: width.into(),
        rest,
    };
    let times = fields.announced(TIMED)?.map(Times::parse);
    let slot = fields.announced(SLOTTED)?.map(u32::from_be_bytes);
    let (members, complete) = (fields.set()?, fields.set()?);
    let done = fields.numbered_set(SEGMENTED)?.map(Done::of);
    let gone = fields.numbered_set(GONE)?.map(Gone::of);
    let report = parse_report(&mut fields, &object)?;
    let head = Head {
        source: source.into(),
        object,
        plan: Plan {
            epoch,
            number,
            closed: flags & CLOSED != 0,
            contend: flags & CONTEND != 0,
            members,
        },
        complete,
        done,
        gone,
        told: width > 0,
        urge,
        times,
        slot,
        report,
    };
    let data = match kind {
        DATA => Some(Coded::parse(&object, fields.rest)?),
        NARROW => Some(Coded::parse_narrow(&object, fields.rest)?),
        PLAIN => Some(Coded::parse_plain(&object, fields.rest)?),
        _ => None,
    };
    Ok(Frame { head, data })
}

fn parse_report<'a>(fields: &mut Fields<'a>, object: &ObjectId) -> Result<Report<'a>, Malformed> {
    let [r0, r1, r2, r3, states] = fields.octets::<REPORT_HEAD>()?;
    let states = fields.slice(states.into())?;
    let base = u32::from_be_bytes([r0, r1, r2, r3]);
    // A base of `batches` is in range: the sender wants nothing.
    let report = Report::new(base, states).filter(|_| base <= object.all());
    report.ok_or(Malformed::Empty)
}

impl Done {
    fn of((segments, next): ([u8; DONE], NodeSet)) -> Done {
        let segments = u16::from_be_bytes(segments);
        Done { segments, next }
    }

    fn parts(self) -> ([u8; DONE], NodeSet) {
        (self.segments.to_be_bytes(), self.next)
    }
}

impl Gone {
    fn of(([version], nodes): ([u8; VERSIONED], NodeSet)) -> Gone {
        Gone { version, nodes }
    }

    fn parts(self) -> ([u8; VERSIONED], NodeSet) {
        ([self.version], self.nodes)
    }
}

impl Times {
    fn parse([s0, s1, of, e0, e1]: [u8; TIMES]) -> Times {
        Times {
            stamp: u16::from_be_bytes([s0, s1]),
            of: of.into(),
            echo: u16::from_be_bytes([e0, e1]),
        }
    }

    fn octets(self) -> [u8; TIMES] {
        let [s0, s1] = self.stamp.to_be_bytes();
        let [e0, e1] = self.echo.to_be_bytes();
        [s0, s1, octet(self.of), e0, e1]
    }
}

impl<'a> Coded<'a> {
    fn parse(object: &ObjectId, octets: &'a [u8]) -> Result<Coded<'a>, Malformed> {
        let (batch, rest) = octets.split_first_chunk().ok_or(Malformed::Short)?;
        let batch = u32::from_be_bytes(*batch);
        let packets = object.packets(batch);
        if packets == 0 {
            return Err(Malformed::Empty);
        }
        let (vector, payload) = rest.split_at_checked(packets).ok_or(Malformed::Short)?;
        if payload.is_empty() || vector.iter().all(|&factor| factor == 0) {
            return Err(Malformed::Empty);
        }
        Ok(Coded {
            batch,
            vector: Vector::Wide(vector),
            payload,
        })
    }

    fn parse_narrow(object: &ObjectId, octets: &'a [u8]) -> Result<Coded<'a>, Malformed> {
        let (batch, rest) = octets.split_first_chunk().ok_or(Malformed::Short)?;
        let batch = u32::from_be_bytes(*batch);
        let (vector, payload) = Vector::narrow(rest, object.packets(batch))?;
        if payload.is_empty() || vector.is_zero() {
            return Err(Malformed::Empty);
        }
        Ok(Coded {
            batch,
            vector,
            payload,
        })
    }

    fn parse_plain(object: &ObjectId, octets: &'a [u8]) -> Result<Coded<'a>, Malformed> {
        let (batch, rest) = octets.split_first_chunk().ok_or(Malformed::Short)?;
        let batch = u32::from_be_bytes(*batch);
        let (&index, payload) = rest.split_first().ok_or(Malformed::Short)?;
        let vector = unit(index.into(), object.packets(batch)).ok_or(Malformed::Empty)?;
        if payload.is_empty() {
            return Err(Malformed::Empty);
        }
        Ok(Coded {
            batch,
            vector: Vector::Wide(vector),
            payload,
        })
    }
}

/// The unit vector of packet `index` of `packets`: borrowed, so that a plain frame needs no buffer for its vector.
fn unit(index: usize, packets: usize) -> Option<&'static [u8]> {
    /// A single 1 between zeros: each unit vector is a slice of it.
    static STRIP: [u8; 2 * K_MAX - 1] = {
        let mut strip = [0; 2 * K_MAX - 1];
        strip[K_MAX - 1] = 1;
        strip
    };
    let start = (K_MAX - 1).checked_sub(index)?;
    STRIP
        .get(start..start + packets)
        .filter(|_| index < packets)
}

/// The parts of a data frame that the caller fills in.
pub struct Open<'a> {
    /// Room for the code vector: one octet for each packet, or two bits in a narrow frame.
    pub vector: &'a mut [u8],
    /// Room for the combination, as long as a packet.
    pub payload: &'a mut [u8],
}

/// The head of a frame to be written.
#[derive(Clone, Copy, Debug)]
pub struct HeadRepr<'a> {
    /// The source of the group ([`Head::source`]).
    pub source: u16,
    /// The object and its cut ([`Head::object`]).
    pub object: ObjectId,
    /// The source's decisions ([`Head::plan`]).
    pub plan: &'a Plan,
    /// Receivers known to be complete ([`Head::complete`]).
    pub complete: &'a NodeSet,
    /// What receivers have of the object's segments ([`Head::done`]).
    pub done: Option<Done>,
    /// Members that have failed ([`Head::gone`]).
    pub gone: Option<Gone>,
    /// Expected innovative receptions in eighths ([`Head::urge`]).
    pub urge: u8,
    /// Stamps, if the network uses them ([`Head::times`]).
    pub times: Option<Times>,
    /// The slot in which the frame begins, if members send in turns ([`Head::slot`]).
    pub slot: Option<u32>,
    /// One more than the largest node number in the sets, which gives their width: 0 omits them.
    pub nodes: usize,
    /// The first batch that the report has a state for.
    pub base: u32,
    /// The report's states, at most [`STATES_MAX`](crate::improved::report::STATES_MAX) octets.
    pub states: &'a [u8],
}

impl HeadRepr<'_> {
    /// Octets of a report frame.
    pub fn report_len(&self) -> usize {
        report_at(self.flags(), self.nodes.div_ceil(8)) + REPORT_HEAD + self.states.len()
    }

    fn flags(&self) -> u8 {
        let of = |there: bool, flag: u8| if there { flag } else { 0 };
        of(self.plan.closed, CLOSED)
            | of(self.plan.contend, CONTEND)
            | of(self.object.outer, OUTER)
            | of(self.done.is_some(), SEGMENTED)
            | of(self.gone.is_some(), GONE)
            | of(self.times.is_some(), TIMED)
            | of(self.slot.is_some(), SLOTTED)
    }

    /// Octets of a data frame of `batch`.
    pub fn data_len(&self, batch: u32, payload: usize) -> usize {
        self.report_len() + BATCH + self.object.packets(batch) + payload
    }

    /// Writes a report frame; `None` if it does not fit.
    pub fn emit_report(&self, sdu: &mut [u8]) -> Option<usize> {
        self.emit(REPORT, sdu)?;
        Some(self.report_len())
    }

    /// Writes a data frame without its vector and payload; `None` if it does not fit.
    pub fn emit_data<'b>(&self, batch: u32, payload: usize, sdu: &'b mut [u8]) -> Option<Open<'b>> {
        let frame = sdu.get_mut(..self.data_len(batch, payload))?;
        self.emit_open(DATA, (batch, self.object.packets(batch)), frame)
    }

    fn emit_open<'b>(
        &self,
        kind: u8,
        (batch, width): (u32, usize),
        frame: &'b mut [u8],
    ) -> Option<Open<'b>> {
        let rest = self.emit(kind, frame)?;
        let (number, rest) = rest.split_first_chunk_mut()?;
        *number = batch.to_be_bytes();
        let (vector, payload) = rest.split_at_mut_checked(width)?;
        Some(Open { vector, payload })
    }

    /// Octets of a narrow data frame of `batch`.
    pub fn narrow_len(&self, batch: u32, payload: usize) -> usize {
        self.report_len() + BATCH + narrow::octets(self.object.packets(batch)) + payload
    }

    /// Writes a narrow data frame without its vector and payload; `None` if it does not fit.
    pub fn emit_narrow<'b>(
        &self,
        batch: u32,
        payload: usize,
        sdu: &'b mut [u8],
    ) -> Option<Open<'b>> {
        let frame = sdu.get_mut(..self.narrow_len(batch, payload))?;
        let width = narrow::octets(self.object.packets(batch));
        self.emit_open(NARROW, (batch, width), frame)
    }

    /// Octets of a plain frame.
    pub fn plain_len(&self, payload: usize) -> usize {
        self.report_len() + BATCH + 1 + payload
    }

    /// Writes the plain frame of packet `index` of `batch` without its payload; `None` if it does not fit.
    pub fn emit_plain<'b>(
        &self,
        batch: u32,
        index: u8,
        payload: usize,
        sdu: &'b mut [u8],
    ) -> Option<&'b mut [u8]> {
        let frame = sdu.get_mut(..self.plain_len(payload))?;
        let rest = self.emit(PLAIN, frame)?;
        let (number, rest) = rest.split_first_chunk_mut()?;
        *number = batch.to_be_bytes();
        let (place, payload) = rest.split_first_mut()?;
        *place = index;
        Some(payload)
    }

    fn emit<'b>(&self, kind: u8, sdu: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let width = self.nodes.div_ceil(8);
        let (fixed, rest) = sdu.split_first_chunk_mut::<FIXED>()?;
        let [t0, t1, t2, t3] = self.object.tag.to_be_bytes();
        let [b0, b1, b2, b3] = self.object.batches.to_be_bytes();
        *fixed = [
            kind,
            octet(self.source),
            t0,
            t1,
            t2,
            t3,
            self.plan.epoch,
            self.plan.number,
            self.flags(),
            self.urge,
            b0,
            b1,
            b2,
            b3,
            self.object.k,
            self.object.last,
            u8::try_from(width).ok()?,
        ];
        let mut room = Room { width, rest };
        room.announced(self.times.map(Times::octets))?;
        room.announced(self.slot.map(u32::to_be_bytes))?;
        room.put_set(&self.plan.members)?;
        room.put_set(self.complete)?;
        room.numbered_set(self.done.map(Done::parts))?;
        room.numbered_set(self.gone.map(Gone::parts))?;
        room.put(&self.base.to_be_bytes())?;
        room.put(&[u8::try_from(self.states.len()).ok()?])?;
        room.put(self.states)?;
        Some(room.rest)
    }
}
