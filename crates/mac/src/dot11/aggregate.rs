//! A-MPDUs: many frames to one neighbour behind one preamble, acknowledged together (10.12, 10.25).
//!
//! ```text
//! sender     A-MPDU: 1 2 3 4 5                        A-MPDU: 2 5 6 7 8
//! receiver                     SIFS  BlockAck: 1 3 4                    SIFS  BlockAck: 2 5 6 7 8
//! ```
//!
//! - The station takes frames from its link node until one is for another neighbour, which begins the next A-MPDU, the window is full, or the
//!   PSDU reaches its size or 5.484 ms. What was not acknowledged goes first next time, and new frames follow while no two numbers lie 64 apart.
//! - After a missing BlockAck the sender asks for it (BlockAckReq), as ns-3 does: the A-MPDU may have arrived. The request is short, and is
//!   repeated up to [`Config::retry_short`](super::Config::retry_short) times; ns-3 knows no limit. If none is answered, all of the
//!   A-MPDU counts as failed and goes again.
//! - An MPDU is given up after [`Config::retry_short`](super::Config::retry_short) transmissions.
//! - Agreements (ADDBA) are taken as made. Receivers hand up MSDUs as they arrive, without a buffer that puts them in order: a lost one is overtaken by
//!   those behind it in the same A-MPDU.
//! - No RTS precedes an A-MPDU.

use chappe_core::{
    Address, DropReason, Duration, Instant, Layer, LinkNode, LinkSend, Mode, Outcome, Reception,
    TraceEvent, Transmit,
};
use chappe_wire::dot11::ampdu::{AMPDU_MAX, DELIMITER_LEN, Subframes, delimiter, subframe_len};
use chappe_wire::dot11::{
    BLOCK_ACK_LEN, Block, DATA_HEADER_LEN, Data, FCS_LEN, Frame, Kind, NavTime, QOS_CONTROL_LEN,
    Repr, Sequence,
};
use chappe_wire::llc;

use super::scoreboard::SPAN;
use super::send::{OnAir, Rates, is_group};
use super::{BLOCK_ACK_TIMEOUT, Claiming, Dot11, PSDU_MAX, State};

/// aPPDUMaxTime of HT in the mixed format (table 19-25).
const LONGEST: Duration = Duration::from_micros(5_484);
/// Octets before the body of an MPDU.
const HEADER_LEN: usize = DATA_HEADER_LEN + QOS_CONTROL_LEN;

/// The frames of one A-MPDU, kept until they are acknowledged. Room for `A`, at most 64.
#[derive(Clone, Debug)]
pub(super) struct Window<const A: usize> {
    mpdus: [Mpdu; A],
    to: Address,
    /// The rates, kept while nothing at all is acknowledged, and how often that happened.
    rates: Option<Rates>,
    failed: u8,
    /// A BlockAck is missing and will be asked for.
    asks: bool,
    /// How often it was asked for in vain.
    asked: u8,
}

#[derive(Clone)]
struct Mpdu {
    /// LLC header and SDU.
    body: [u8; PSDU_MAX],
    held: Option<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    len: usize,
    token: u32,
    sequence: Sequence,
    /// Transmissions that were not acknowledged.
    failed: u8,
}

impl core::fmt::Debug for Mpdu {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.held.fmt(f)
    }
}

impl<const A: usize> Window<A> {
    pub fn new() -> Window<A> {
        let mpdu = || Mpdu {
            body: [0; PSDU_MAX],
            held: None,
        };
        Window {
            mpdus: core::array::from_fn(|_| mpdu()),
            to: Address::BROADCAST,
            rates: None,
            failed: 0,
            asks: false,
            asked: 0,
        }
    }

    /// Whether it has frames.
    pub fn is_open(&self) -> bool {
        A > 0 && self.mpdus.iter().any(|mpdu| mpdu.held.is_some())
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.mpdus.iter().filter_map(|mpdu| mpdu.held.as_ref())
    }

    /// The lowest sequence number in it: all lie within 64.
    fn first(&self) -> Option<Sequence> {
        let mut held = self.held();
        let any = held.next()?.sequence;
        let before = |sequence: &Sequence| distance(any, *sequence);
        // Relative to any one of them, in -63..=63.
        self.held().map(|held| held.sequence).min_by_key(before)
    }

    /// Octets of the A-MPDU.
    fn octets(&self) -> usize {
        self.held()
            .map(|held| subframe_len(HEADER_LEN + held.len))
            .sum()
    }
}

/// How far `to` lies behind `from`, in -2048..2048.
fn distance(from: Sequence, to: Sequence) -> i16 {
    let ahead = to.number().wrapping_sub(from.number()) & 0x0fff;
    match ahead < 2048 {
        true => ahead as i16,
        false => ahead as i16 - 4096,
    }
}

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// Whether a frame may begin an A-MPDU: to one neighbour, at rates that are the station's to choose.
    pub(super) fn may_aggregate(&self, send: &LinkSend) -> bool {
        A > 0 && self.config.data.rate.is_ht() && send.mode.is_none() && !is_group(send.to)
    }

    /// Begins an A-MPDU with a frame whose SDU stands in `psdu`, and sends it.
    pub(super) fn open_window<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        send: LinkSend,
        link: &mut L,
    ) -> Option<Transmit> {
        self.window.to = send.to;
        (self.window.rates, self.window.failed) = (None, 0);
        self.add(psdu, send);
        self.send_window(now, psdu, link)
    }

    /// Begins an A-MPDU with the kept frame, which was taken for another neighbour than the last A-MPDU's and was not sent yet.
    pub(super) fn adopt_kept(&mut self) -> bool {
        let usual = self.config.data;
        if A == 0 || !usual.rate.is_ht() {
            return false;
        }
        let active = self.active();
        let kept = self
            .functions
            .get_mut(active)
            .map(|function| &mut function.kept);
        let Some((frame, psdu)) = kept.and_then(|kept| kept.take_unsent(usual)) else {
            return false;
        };
        let len = frame.len.saturating_sub(DATA_HEADER_LEN);
        let Some(mpdu) = self.window.mpdus.first_mut() else {
            return false;
        };
        let from = psdu.get(DATA_HEADER_LEN..frame.len);
        if let (Some(from), Some(to)) = (from, mpdu.body.get_mut(..len)) {
            to.copy_from_slice(from);
        }
        mpdu.held = Some(Held {
            len,
            token: frame.token,
            sequence: frame.sequence,
            failed: 0,
        });
        self.window.to = frame.to;
        (self.window.rates, self.window.failed) = (None, 0);
        true
    }

    /// Sends what is kept, or asks for the BlockAck that is missing.
    pub(super) fn send_window<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<Transmit> {
        if let Some(function) = self.holder() {
            function.holds = true;
        }
        if self.window.asks {
            return self.ask(now, psdu);
        }
        let to = self.window.to;
        let rates = match self.window.rates {
            Some(rates) => rates,
            None => self.rates_for(now, LinkSend::unicast(to, 0, chappe_core::Class::Data)),
        };
        self.window.rates = Some(rates);
        let mode = rates.mode(self.window.failed).aggregated();
        self.fill(now, psdu, mode, link);
        let len = self.assemble(psdu, mode)?;
        let count = self.window.held().count() as u64;
        let again = self.window.held().filter(|held| held.failed > 0).count() as u64;
        self.counters.data_sent += count;
        self.counters.retries += again;
        self.counters.aggregates_sent += 1;
        self.state = State::Sending(OnAir::Aggregate);
        self.note_sent(to, len);
        Some(Transmit {
            at: now,
            len,
            mode,
            power: None,
        })
    }

    /// Takes frames for the same neighbour while they fit. One for another neighbour is kept for later.
    fn fill<L: LinkNode>(&mut self, now: Instant, psdu: &mut [u8], mode: Mode, link: &mut L) {
        let largest = psdu.len().min(AMPDU_MAX);
        loop {
            let waits = self.kept().is_none_or(|kept| kept.is_held());
            let room = self.window.mpdus.iter().any(|mpdu| mpdu.held.is_none());
            // What was taken cannot be given back, so the next frame is expected to be as long as the longest here.
            let expected = self.window.held().map(|held| held.len).max();
            let fits = |len: usize, octets: usize| {
                let octets = octets + subframe_len(HEADER_LEN + len);
                octets <= largest && mode.airtime(octets) <= LONGEST
            };
            let octets = self.window.octets();
            let spans = match self.window.first() {
                Some(first) => distance(first, self.sequence) < SPAN as i16,
                None => true,
            };
            let is_full = !fits(expected.unwrap_or(0), octets);
            if waits || !room || !spans || is_full || link.pending().is_empty() {
                return;
            }
            let Some(send) = self.take(now, psdu, link) else {
                return;
            };
            let len = self.config.llc_len() + send.len;
            if send.to == self.window.to && self.may_aggregate(&send) && fits(len, octets) {
                self.add(psdu, send);
            } else {
                let rates = match is_group(send.to) {
                    true => Rates::One(self.group_mode(send)),
                    false => self.rates_for(now, send),
                };
                self.keep(psdu, send, rates);
            }
        }
    }

    /// Adds a frame whose SDU stands in `psdu`.
    fn add(&mut self, psdu: &mut [u8], send: LinkSend) {
        if let (Some(ether_type), Some(body)) = (self.config.llc, psdu.get_mut(DATA_HEADER_LEN..)) {
            let _fits = llc::emit(ether_type, body);
        }
        let sequence = self.next_sequence();
        let len = self.config.llc_len() + send.len;
        let mut free = self.window.mpdus.iter_mut();
        let Some(mpdu) = free.find(|mpdu| mpdu.held.is_none()) else {
            return;
        };
        let from = psdu.get(DATA_HEADER_LEN..DATA_HEADER_LEN + len);
        if let (Some(from), Some(to)) = (from, mpdu.body.get_mut(..len)) {
            to.copy_from_slice(from);
        }
        mpdu.held = Some(Held {
            len,
            token: send.token,
            sequence,
            failed: 0,
        });
    }

    /// Writes the A-MPDU and returns its length. `None` if it does not fit, which `fill` has seen to.
    fn assemble(&self, psdu: &mut [u8], mode: Mode) -> Option<usize> {
        let duration = NavTime::covering(self.timing.sifs + self.block_ack_time(mode));
        let (mut at, mut end) = (0, 0);
        for mpdu in &self.window.mpdus {
            let Some(held) = mpdu.held else { continue };
            let whole = psdu.get_mut(at..at + subframe_len(HEADER_LEN + held.len))?;
            whole.fill(0);
            *whole.first_chunk_mut()? = delimiter(HEADER_LEN + held.len)?;
            let header = Repr::Data(Data {
                receiver: self.window.to,
                transmitter: self.address,
                bssid: self.config.bssid,
                sequence: held.sequence,
                qos: true,
                retry: held.failed > 0,
                duration,
            });
            let inside = whole.get_mut(DELIMITER_LEN..)?;
            let header = header.emit(inside).ok()?;
            let body = inside.get_mut(header..header + held.len)?;
            body.copy_from_slice(mpdu.body.get(..held.len)?);
            // The last subframe has no padding (9.7.1).
            end = at + DELIMITER_LEN + HEADER_LEN + held.len + FCS_LEN;
            at += whole.len();
        }
        (end > 0).then_some(end)
    }

    /// The duration of the BlockAck to an A-MPDU.
    pub(super) fn block_ack_time(&self, mode: Mode) -> Duration {
        let answer = self.config.answer_mode(mode);
        answer.airtime(BLOCK_ACK_LEN + FCS_LEN)
    }

    fn ask(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        let mode = self.config.control;
        let answer = self.timing.sifs + self.block_ack_time(mode);
        let request = Repr::BlockAckReq(Block {
            receiver: self.window.to,
            transmitter: self.address,
            duration: NavTime::covering(answer),
            start: self.window.first()?,
            bitmap: 0,
        });
        let len = request.emit(psdu).ok()?;
        self.state = State::Sending(OnAir::BlockAckReq);
        self.counters.block_ack_requests += 1;
        self.note_sent(self.window.to, len);
        Some(Transmit {
            at: now,
            len,
            mode,
            power: None,
        })
    }

    /// An A-MPDU, or the request for its BlockAck, has left.
    pub(super) fn await_block_ack(&mut self, now: Instant) {
        let mode = match (self.window.asks, self.window.rates) {
            (false, Some(rates)) => rates.mode(self.window.failed),
            _ => self.config.control,
        };
        self.state = State::AwaitingBlockAck;
        let span = self.timing.response_start + self.block_ack_time(mode);
        self.wait(now, span, BLOCK_ACK_TIMEOUT);
    }

    /// The BlockAck came: what it names is done, the rest goes again.
    pub(super) fn on_block_ack<L: LinkNode>(&mut self, now: Instant, block: Block, link: &mut L) {
        self.deadline = None;
        if let Some(function) = self.holder() {
            function.backoff.reset(function.cw_min);
        }
        let received = |sequence: Sequence| {
            let place = distance(block.start, sequence);
            (0..SPAN as i16).contains(&place) && block.bitmap >> place & 1 != 0
        };
        self.settle_window(now, received, link);
        (self.window.rates, self.window.failed) = (None, 0);
        self.contend_again(now, Duration::ZERO);
    }

    /// No BlockAck came: it is asked for; without an answer to any request the whole A-MPDU has failed.
    pub(super) fn on_no_block_ack<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        self.counters.block_ack_timeouts += 1;
        if let Some(function) = self.holder() {
            function.backoff.widen(function.cw_max);
        }
        match self.window.asks {
            false => (self.window.asks, self.window.asked) = (true, 0),
            true if self.window.asked.saturating_add(1) < self.config.retry_short => {
                self.window.asked += 1;
            }
            true => {
                self.settle_window(now, |_| false, link);
                self.window.failed = self.window.failed.saturating_add(1);
            }
        }
        self.contend_again(now, self.timeout_pause());
    }

    /// Reports what was received and what is given up, and tells rate control.
    fn settle_window<L: LinkNode>(
        &mut self,
        now: Instant,
        received: impl Fn(Sequence) -> bool,
        link: &mut L,
    ) {
        let most = self.config.retry_short.max(1);
        let (mut attempts, mut successes) = (0, 0);
        self.window.asks = false;
        for place in 0..A {
            let Some(mpdu) = self.window.mpdus.get_mut(place) else {
                break;
            };
            let Some(held) = &mut mpdu.held else { continue };
            attempts += 1;
            let tried = held.failed.saturating_add(1);
            let outcome = match received(held.sequence) {
                true => Outcome::Acknowledged { attempts: tried },
                false if tried >= most => Outcome::Failed { attempts: tried },
                false => {
                    held.failed = tried;
                    continue;
                }
            };
            let token = held.token;
            mpdu.held = None;
            match outcome {
                Outcome::Acknowledged { .. } => {
                    successes += 1;
                    self.counters.acknowledged += 1;
                }
                _ => {
                    self.counters.failed += 1;
                    self.counters.drops.count(DropReason::RetryLimit);
                    self.trace.push(TraceEvent::Dropped {
                        layer: Layer::Mac,
                        why: DropReason::RetryLimit,
                    });
                }
            }
            self.report(now, token, outcome, link);
        }
        let holds = self.window.is_open();
        if let Some(function) = self.holder() {
            function.holds = holds;
        }
        let rates = (&mut self.minstrel, self.window.rates);
        if let (Some(minstrel), Some(rates)) = rates {
            let rate = rates.mode(self.window.failed).rate;
            minstrel.note(self.window.to, rate, attempts, successes);
        }
        self.holder_pending(link);
    }

    /// Some subframes of an A-MPDU arrived, which ends now. True if the reservation grew.
    pub(super) fn on_aggregate<L: LinkNode>(
        &mut self,
        now: Instant,
        reception: &Reception<'_>,
        link: &mut L,
    ) -> bool {
        self.miss_answer(now, link);
        let (mut sender, mut changed, mut first) = (None, false, true);
        for (_, mpdu) in Subframes::new(reception.psdu) {
            let Ok(frame) = Frame::new(mpdu) else {
                self.drop(DropReason::Malformed);
                continue;
            };
            if frame.receiver_octets() != self.address.to_eui48() {
                // All subframes are for the same receiver, with the same reservation (10.12.3).
                if core::mem::take(&mut first) {
                    changed |= self.reserve(now, &frame, reception);
                }
                self.on_others_data(now, &frame, reception, link);
                continue;
            }
            let data = match Data::parse(&frame) {
                Ok(data) if frame.kind() == Kind::QosData => data,
                _ => {
                    self.drop(DropReason::Malformed);
                    continue;
                }
            };
            sender = Some(data.transmitter);
            if !self.scoreboard.is_new(data.transmitter, data.sequence) {
                self.counters.duplicates += 1;
                self.drop(DropReason::Duplicate);
            } else if self.hand_up(now, &data, frame.body(), reception, link) {
                self.counters.received += 1;
            }
        }
        if let Some(sender) = sender {
            self.answer_block(now, sender, None, reception.mode);
        }
        changed
    }

    /// Schedules a BlockAck to a neighbour's A-MPDU, or to its request about MSDUs from `asked` on.
    pub(super) fn answer_block(
        &mut self,
        now: Instant,
        receiver: Address,
        asked: Option<Sequence>,
        mode: Mode,
    ) {
        let known = self.scoreboard.block(receiver);
        let Some((start, bitmap)) = known.or(asked.map(|start| (start, 0))) else {
            return;
        };
        let answer = Repr::BlockAck(Block {
            receiver,
            transmitter: self.address,
            duration: NavTime::ZERO,
            start,
            bitmap,
        });
        let mode = self.config.answer_mode(mode);
        self.answer(now, answer, mode);
    }
}
