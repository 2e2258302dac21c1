//! The station's own frames: taken from the link node, sent, retransmitted, and reported back with their outcome.

use core::fmt;

use chappe_core::{
    Address, Class, DropReason, Duration, Instant, Layer, LinkEvent, LinkNode, LinkSend, Mode,
    Outcome, TraceEvent, Transmit, Wake,
};
use chappe_wire::dot11::{ACK_LEN, DATA_HEADER_LEN, Data, FCS_LEN, NavTime, Repr, Sequence};
use chappe_wire::llc;

use super::minstrel::Chain;
use super::{ACK_TIMEOUT, CTS_TIMEOUT, Claiming, Dot11, PSDU_MAX, State};

/// The own frame that the radio is sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnAir {
    Rts,
    Data,
    Broadcast {
        token: u32,
    },
    /// The frames of the window, in an A-MPDU.
    Aggregate,
    /// A request for its BlockAck.
    BlockAckReq,
    /// A notification of contention.
    Notice,
}

/// The unicast frame that awaits its ACK, and the state of its attempts.
#[derive(Clone)]
pub(super) struct Kept {
    psdu: [u8; PSDU_MAX],
    frame: Option<Frame>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub len: usize,
    pub to: Address,
    rates: Rates,
    pub token: u32,
    class: Class,
    pub sequence: Sequence,
    /// An RTS precedes it.
    announced: bool,
    /// The data frame was on the air before, so the Retry bit is set (9.2.4.1.6).
    sent: bool,
    /// Failed attempts, by the retry limit they count against (10.3.4.4).
    short: u8,
    long: u8,
}

/// The rates of a frame's attempts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rates {
    /// The same for all.
    One(Mode),
    Chain(Chain),
}

impl Rates {
    /// The mode of the attempt after `failed` ones.
    pub fn mode(self, failed: u8) -> Mode {
        match self {
            Rates::One(mode) => mode,
            Rates::Chain(chain) => chain.mode(failed),
        }
    }
}

impl Frame {
    /// How many attempts of both kinds have failed.
    fn failed(&self) -> u8 {
        self.short.saturating_add(self.long)
    }

    /// The mode of the next attempt. An RTS that was not answered is no attempt at a rate.
    fn mode(&self) -> Mode {
        let failed = match self.announced {
            true => self.long,
            false => self.short,
        };
        self.rates.mode(failed)
    }
}

impl Kept {
    pub fn is_held(&self) -> bool {
        self.frame.is_some()
    }

    /// Gives away a unicast frame that was not sent yet, at rates that are the station's to choose, with its PSDU.
    pub fn take_unsent(&mut self, usual: Mode) -> Option<(Frame, &[u8; PSDU_MAX])> {
        let is_free = |frame: &Frame| {
            let own = match frame.rates {
                Rates::One(mode) => mode == usual,
                Rates::Chain(_) => true,
            };
            own && !frame.sent && !frame.announced && !is_group(frame.to)
        };
        self.frame
            .filter(is_free)
            .map(|_| self.frame.take())?
            .map(|frame| (frame, &self.psdu))
    }

    pub fn class(&self) -> Option<Class> {
        self.frame.map(|frame| frame.class)
    }
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            psdu: [0; PSDU_MAX],
            frame: None,
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frame.fmt(f)
    }
}

impl<const N: usize, C: Claiming, const A: usize> Dot11<N, C, A> {
    /// The slot boundary is reached: retransmits the kept frame, or takes a new one from the link node.
    pub(super) fn launch<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<Transmit> {
        self.note_wait(now);
        if let Some(notice) = self.send_notice(now, psdu) {
            return Some(notice);
        }
        if A > 0 && (self.window.is_open() || self.adopt_kept()) {
            self.seize(now);
            return self.send_window(now, psdu, link);
        }
        // A kept frame is retransmitted before a new one is taken.
        if self.kept()?.frame.is_none() {
            let Some(send) = self.take(now, psdu, link) else {
                self.decline(now, link);
                return None;
            };
            // Only with a frame in hand: seizing makes the station's other functions draw back-offs.
            self.seize(now);
            if is_group(send.to) {
                return self.send_broadcast(now, psdu, send);
            }
            if self.may_aggregate(&send) {
                return self.open_window(now, psdu, send, link);
            }
            let rates = self.rates_for(now, send);
            self.keep(psdu, send, rates);
            if !self.kept()?.frame?.announced {
                return self.send_data(now, psdu, true);
            }
        } else {
            self.seize(now);
        }
        let frame = self.kept()?.frame?;
        if is_group(frame.to) {
            return self.send_kept_broadcast(now, psdu);
        }
        match frame.announced {
            true => self.send_rts(now, psdu),
            false => self.send_data(now, psdu, false),
        }
    }

    /// The kept frame of the function that holds the medium.
    pub(super) fn kept(&mut self) -> Option<&mut Kept> {
        self.holder().map(|function| &mut function.kept)
    }

    /// Sends another frame a SIFS after the last exchange, if it and its ACK end within the transmission opportunity
    /// (10.23.2.8). A frame that does not fit is kept and contends.
    pub(super) fn continue_txop<L: LinkNode>(
        &mut self,
        now: Instant,
        at: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<Transmit> {
        let Some(send) = self.take(now, psdu, link) else {
            self.holder_pending(link);
            self.contend_again(now, Duration::ZERO);
            return None;
        };
        let group = is_group(send.to);
        // No station acknowledges a group frame, so nothing has to fit behind it.
        let rates = match group {
            true => Rates::One(self.group_mode(send)),
            false => self.rates_for(now, send),
        };
        let mode = rates.mode(0);
        let answer = match group {
            true => Duration::ZERO,
            false => self.timing.sifs + self.ack_time(mode),
        };
        let end = at + mode.airtime(self.sdu_at() + send.len + FCS_LEN) + answer;
        if end > self.txop_end {
            self.keep(psdu, send, rates);
            self.contend_again(now, Duration::ZERO);
            return None;
        }
        self.counters.txop_frames += 1;
        if group {
            return self.send_broadcast(at, psdu, send);
        }
        self.keep(psdu, send, rates);
        // The first exchange of the TXOP has already silenced its hearers: no RTS.
        self.kept()?.frame.as_mut()?.announced = false;
        self.send_data(at, psdu, true)
    }

    /// Asks the link node for a frame. It is written behind the space for the headers, which come later.
    pub(super) fn take<L: LinkNode>(
        &mut self,
        now: Instant,
        psdu: &mut [u8],
        link: &mut L,
    ) -> Option<LinkSend> {
        let room = psdu.len().min(PSDU_MAX);
        let sdu = psdu.get_mut(self.sdu_at()..room)?;
        let classes = match self.claims.get() {
            Some(claims) => claims.classes(),
            None => self.functions.get(self.active())?.classes,
        };
        let send = link.poll_link(now, classes, sdu)?;
        if send.len <= sdu.len() {
            return Some(send);
        }
        // A defect of the node above: `len` exceeds the buffer it was given.
        self.counters.drops.count(DropReason::Malformed);
        let token = send.token;
        let outcome = Outcome::Failed { attempts: 0 };
        link.handle_link(now, LinkEvent::Sent { token, outcome });
        None
    }

    /// The link node had no frame when its turn came. It gets another turn if it still reports one as pending.
    fn decline<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        self.counters.declined += 1;
        if self.holder_pending(link) {
            self.contend_again(now, Duration::ZERO);
        } else {
            self.rest(now);
        }
    }

    /// The rates of a unicast frame: what its link node says, or what rate control chooses.
    pub(super) fn rates_for(&mut self, now: Instant, send: LinkSend) -> Rates {
        match (send.mode, &mut self.minstrel) {
            (Some(mode), _) => Rates::One(mode),
            (None, Some(minstrel)) => Rates::Chain(minstrel.chain(now, send.to, &mut self.random)),
            (None, None) => Rates::One(self.config.data),
        }
    }

    /// The duration of the ACK to a frame of this mode.
    fn ack_time(&self, data: Mode) -> Duration {
        match self.minstrel {
            None => self.timing.ack,
            Some(_) => self.config.answer_mode(data).airtime(ACK_LEN + FCS_LEN),
        }
    }

    pub(super) fn group_mode(&self, send: LinkSend) -> Mode {
        let usual = self.config.broadcast.unwrap_or(self.config.data);
        send.mode.unwrap_or(usual)
    }

    fn sdu_at(&self) -> usize {
        DATA_HEADER_LEN + self.config.llc_len()
    }

    fn send_broadcast(&mut self, at: Instant, psdu: &mut [u8], send: LinkSend) -> Option<Transmit> {
        let mode = self.group_mode(send);
        let sequence = self.next_sequence();
        self.write_headers(psdu, send.to, sequence, false, NavTime::ZERO);
        self.state = State::Sending(OnAir::Broadcast { token: send.token });
        self.counters.broadcast_sent += 1;
        let len = self.sdu_at() + send.len;
        self.note_sent(send.to, len);
        Some(Transmit {
            at,
            len,
            mode,
            power: None,
        })
    }

    /// A broadcast that did not fit into the transmission opportunity in which it was taken, and was kept.
    fn send_kept_broadcast(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        let kept = self.kept()?;
        let frame = kept.frame.take()?;
        let (len, to, token) = (frame.len, frame.to, frame.token);
        psdu.get_mut(..len)?.copy_from_slice(kept.psdu.get(..len)?);
        self.state = State::Sending(OnAir::Broadcast { token });
        self.counters.broadcast_sent += 1;
        self.note_sent(to, len);
        Some(Transmit {
            at: now,
            len,
            mode: frame.mode(),
            power: None,
        })
    }

    /// Completes a new frame's headers and copies the frame: it may be retransmitted from the copy.
    pub(super) fn keep(&mut self, psdu: &mut [u8], send: LinkSend, rates: Rates) {
        let len = self.sdu_at() + send.len;
        let sequence = self.next_sequence();
        let group = is_group(send.to);
        let (nav, rates) = match (group, rates) {
            (true, _) => (NavTime::ZERO, Rates::One(self.group_mode(send))),
            (false, Rates::One(mode)) => (self.ack_nav(mode), rates),
            (false, Rates::Chain(chain)) => (self.ack_nav(chain.mode(0)), rates),
        };
        self.write_headers(psdu, send.to, sequence, false, nav);
        // dot11RTSThreshold counts the FCS. A group has no single station that could answer an RTS.
        let announced = !group && len + FCS_LEN > self.config.rts_threshold;
        let Some(kept) = self.kept() else { return };
        if let (Some(kept), Some(frame)) = (kept.psdu.get_mut(..len), psdu.get(..len)) {
            kept.copy_from_slice(frame);
        }
        kept.frame = Some(Frame {
            len,
            to: send.to,
            rates,
            token: send.token,
            class: send.class,
            sequence,
            announced,
            sent: false,
            short: 0,
            long: 0,
        });
    }

    /// Sends the kept data frame at `at`. With `fresh` it still stands in `psdu` and need not be copied.
    pub(super) fn send_data(
        &mut self,
        at: Instant,
        psdu: &mut [u8],
        fresh: bool,
    ) -> Option<Transmit> {
        let kept = self.kept()?;
        let frame = kept.frame.as_mut()?;
        let (len, retry) = (frame.len, frame.sent);
        let (to, mode, sequence) = (frame.to, frame.mode(), frame.sequence);
        frame.sent = true;
        if !fresh && let (Some(from), Some(to)) = (kept.psdu.get(..len), psdu.get_mut(..len)) {
            to.copy_from_slice(from);
        }
        // The kept copy has the headers of the first attempt; a retransmission differs by the Retry bit, and by its reservation where
        // its rate does.
        if retry {
            self.write_headers(psdu, to, sequence, true, self.ack_nav(mode));
            self.counters.retries += 1;
        }
        self.counters.data_sent += 1;
        self.state = State::Sending(OnAir::Data);
        self.note_sent(to, len);
        Some(Transmit {
            at,
            len,
            mode,
            power: None,
        })
    }

    fn send_rts(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        let frame = self.kept()?.frame?;
        let mode = frame.mode();
        let data = mode.airtime(frame.len + FCS_LEN);
        let timing = self.timing;
        // 9.3.1.2: an RTS reserves the time of CTS, data and ACK with a SIFS before each.
        let rest = timing.sifs * 3 + timing.cts + data + self.ack_time(mode);
        let rts = Repr::Rts {
            receiver: frame.to,
            transmitter: self.address,
            duration: NavTime::covering(rest),
        };
        let len = rts.emit(psdu).ok()?;
        self.state = State::Sending(OnAir::Rts);
        self.counters.rts_sent += 1;
        self.note_sent(frame.to, len);
        Some(Transmit {
            at: now,
            len,
            mode: self.config.control,
            power: None,
        })
    }

    /// Writes the data header and LLC/SNAP. `take` has refused buffers that are too small for them.
    fn write_headers(
        &self,
        psdu: &mut [u8],
        to: Address,
        sequence: Sequence,
        retry: bool,
        duration: NavTime,
    ) {
        let header = Repr::Data(Data {
            receiver: to,
            transmitter: self.address,
            bssid: self.config.bssid,
            sequence,
            qos: false,
            retry,
            duration,
        });
        let (Ok(len), Some(ether_type)) = (header.emit(psdu), self.config.llc) else {
            return;
        };
        if let Some(body) = psdu.get_mut(len..) {
            let _fits = llc::emit(ether_type, body);
        }
    }

    /// The reservation in a data frame: SIFS and ACK (9.3.2.1).
    fn ack_nav(&self, mode: Mode) -> NavTime {
        NavTime::covering(self.timing.sifs + self.ack_time(mode))
    }

    pub(super) fn next_sequence(&mut self) -> Sequence {
        let sequence = self.sequence;
        self.sequence = sequence.next();
        sequence
    }

    pub(super) fn note_sent(&mut self, to: Address, len: usize) {
        self.trace.push(TraceEvent::Sent {
            layer: Layer::Mac,
            to,
            bytes: len as u32,
        });
    }

    /// The own transmission ended.
    #[inline(never)] // as `on_carrier`
    pub(super) fn on_sent<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if self.end_answer(now) {
            return;
        }
        match self.state {
            State::Sending(OnAir::Rts) => {
                self.state = State::AwaitingCts;
                self.wait(now, self.timing.cts_wait, CTS_TIMEOUT);
            }
            State::Sending(OnAir::Data) => {
                self.state = State::AwaitingAck;
                let frame = self.kept().and_then(|kept| kept.frame);
                let ack = frame.map_or(self.timing.ack, |frame| self.ack_time(frame.mode()));
                self.wait(now, self.timing.response_start + ack, ACK_TIMEOUT);
            }
            State::Sending(OnAir::Aggregate | OnAir::BlockAckReq) => self.await_block_ack(now),
            State::Sending(OnAir::Broadcast { token }) => {
                self.finish(now, token, Outcome::Unconfirmed, link);
            }
            // A broadcast of the MAC's own: no ACK follows, and there is no outcome to report to the link node.
            State::Sending(OnAir::Notice) => {
                self.holder_pending(link);
                self.contend_again(now, Duration::ZERO);
            }
            State::Claiming => self.end_burst(now),
            _ => {}
        }
    }

    /// Waits for an answer that must have ended `span` from now.
    pub(super) fn wait(&mut self, now: Instant, span: Duration, why: &'static str) {
        self.answer_deadline = now + span;
        // The early timeout looks at the carrier once an answer must have begun, and goes on waiting if one has.
        let at = if self.config.early_timeout {
            now + self.timing.start_wait
        } else {
            self.answer_deadline
        };
        self.deadline = Some(Wake { at, why });
    }

    /// Whether a frame began in time that may still turn out to be the answer.
    pub(super) fn answer_may_come(&self, now: Instant) -> bool {
        self.medium.is_busy() && now < self.answer_deadline
    }

    /// The CTS to our RTS: the data follows after SIFS (10.3.2.9).
    pub(super) fn on_cts(&mut self, now: Instant) {
        self.deadline = None;
        self.state = State::CtsReceived(now + self.timing.sifs);
    }

    /// The ACK to our data.
    pub(super) fn on_ack<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        let Some(frame) = self.kept().and_then(|kept| kept.frame.take()) else {
            return;
        };
        self.counters.acknowledged += 1;
        self.note_success();
        self.note_attempt(&frame, true);
        // The failed attempts and this one.
        let attempts = frame.failed().saturating_add(1);
        self.finish(now, frame.token, Outcome::Acknowledged { attempts }, link);
    }

    /// No CTS came: the attempt counts against the short limit (10.3.4.4).
    pub(super) fn on_no_cts<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        self.counters.cts_timeouts += 1;
        if let Some(frame) = self.kept().and_then(|kept| kept.frame.as_mut()) {
            frame.short = frame.short.saturating_add(1);
        }
        self.fail(now, link);
    }

    /// No ACK came: the attempt counts against the long limit if an RTS preceded the frame (10.3.4.4).
    pub(super) fn on_no_ack<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        self.counters.ack_timeouts += 1;
        if let Some(frame) = self.kept().and_then(|kept| kept.frame) {
            self.note_attempt(&frame, false);
        }
        if let Some(frame) = self.kept().and_then(|kept| kept.frame.as_mut()) {
            let count = if frame.announced {
                &mut frame.long
            } else {
                &mut frame.short
            };
            *count = count.saturating_add(1);
        }
        self.fail(now, link);
    }

    /// Tells rate control how an attempt ended, before it is counted.
    fn note_attempt(&mut self, frame: &Frame, succeeded: bool) {
        if let (Some(minstrel), Rates::Chain(_)) = (&mut self.minstrel, frame.rates) {
            minstrel.note(frame.to, frame.mode().rate, 1, u16::from(succeeded));
        }
    }

    /// An attempt failed: tries again with a wider window, or gives up.
    fn fail<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        let (short, long) = (self.config.retry_short, self.config.retry_long);
        let Some(function) = self.holder() else {
            return;
        };
        let Some(frame) = function.kept.frame else {
            return self.rest(now);
        };
        let (short, long) = match (frame.rates, frame.announced) {
            (Rates::One(_), _) => (short, long),
            (Rates::Chain(chain), true) => (short, chain.tries()),
            (Rates::Chain(chain), false) => (chain.tries(), long),
        };
        if frame.short < short.max(1) && frame.long < long.max(1) {
            function.backoff.widen(function.cw_max);
            if self.claims.get().is_some() {
                self.note_failure(now, frame.to, frame.failed());
                self.holder_pending(link);
            }
            return self.contend_again(now, self.timeout_pause());
        }
        // 10.3.3: giving up resets the window as success does.
        function.kept.frame = None;
        function.backoff.reset(function.cw_min);
        self.counters.failed += 1;
        self.counters.drops.count(DropReason::RetryLimit);
        self.trace.push(TraceEvent::Dropped {
            layer: Layer::Mac,
            why: DropReason::RetryLimit,
        });
        let attempts = frame.failed();
        self.report(now, frame.token, Outcome::Failed { attempts }, link);
        self.contend_again(now, self.timeout_pause());
    }

    pub(super) fn timeout_pause(&self) -> Duration {
        if self.config.difs_after_timeout {
            self.timing.difs
        } else {
            Duration::ZERO
        }
    }

    /// The exchange succeeded: the window is reset. The function continues if its transmission opportunity lasts;
    /// otherwise a back-off follows (10.3.4.3).
    fn finish<L: LinkNode>(&mut self, now: Instant, token: u32, outcome: Outcome, link: &mut L) {
        if let Some(function) = self.holder() {
            function.backoff.reset(function.cw_min);
        }
        let more = self.report(now, token, outcome, link);
        let next = now + self.timing.sifs;
        // Without a TXOP limit the opportunity ended as it began, so this is false.
        let lasts = more && next < self.txop_end;
        let claims = self.claims.get();
        if lasts && claims.is_none_or(|claims| claims.may_go_on(next)) {
            self.deadline = None;
            self.state = State::Holding(next);
        } else {
            self.contend_again(now, Duration::ZERO);
        }
    }

    /// Reports a frame's outcome to the link node. True if that has another one for the same function.
    pub(super) fn report<L: LinkNode>(
        &mut self,
        now: Instant,
        token: u32,
        outcome: Outcome,
        link: &mut L,
    ) -> bool {
        link.handle_link(now, LinkEvent::Sent { token, outcome });
        self.holder_pending(link)
    }
}

/// Whether `to` is a group address, whose frames no station acknowledges: bit 0 of the first octet.
pub(super) fn is_group(to: Address) -> bool {
    let [first, ..] = to.to_eui48();
    first & 1 != 0
}
