//! The station's own frames: channel access, transmission, acknowledgement, retries (6.2.5.1 and 6.7.4).

use core::fmt;

use chappe_core::{
    Address, Classes, DropReason, Duration, Instant, Layer, LinkNode, Outcome, TraceEvent,
    Transmit, Wake,
};
use chappe_wire::dot15d4::{DATA_REQUEST, FCS_LEN, Header, Kind, PSDU_MAX, Version};

use super::config::SDU_MAX;
use super::leaf::Asked;
use super::{Active, Config, Dot15d4, State};

/// A frame to send, until its outcome is known. The header is written anew for each attempt.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub what: Option<What>,
    pub to: Address,
    pub sequence: u8,
    /// Attempts made so far.
    pub attempts: u8,
    /// The last attempt had the frame-pending bit set.
    pub announced: bool,
    /// NB and BE (6.2.5.1).
    backoffs: u8,
    exponent: u8,
    /// Earliest time of the next attempt.
    not_before: Instant,
    pub len: u8,
    pub sdu: [u8; SDU_MAX],
}

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Data { token: u32 },
    Request,
}

const LOAD: &str = "frame loaded";
const BACKOFF: &str = "back-off";
const ASSESSED: &str = "channel assessed";
const ACK: &str = "ACK timeout";
const SPACING: &str = "interframe space";
const PAUSE: &str = "pause before the next attempt";

/// A frame is held at least this long: with a life of zero it would expire before the child could ask.
const LIFE_MIN: Duration = Duration::from_millis(1);

impl Default for Job {
    fn default() -> Job {
        Job {
            what: None,
            to: Address::BROADCAST,
            sequence: 0,
            attempts: 0,
            announced: false,
            backoffs: 0,
            exponent: 0,
            not_before: Instant::ZERO,
            len: 0,
            sdu: [0; SDU_MAX],
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} to {} x{}", self.what, self.to, self.attempts)
    }
}

impl Job {
    pub fn is_free(&self) -> bool {
        self.what.is_none()
    }

    pub fn sdu(&self) -> &[u8] {
        self.sdu.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl<const INDIRECT: usize, const CHILDREN: usize> Dot15d4<INDIRECT, CHILDREN> {
    /// Begins the next job if the station is idle.
    pub(super) fn advance<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if self.state != State::Idle {
            return;
        }
        // A frame for a child moves to `indirect` and leaves `direct` free: hence a loop.
        while self.pending && !self.stalled && self.direct.is_free() {
            self.take(now, link);
        }
        match self.choose(now) {
            Ok(active) => {
                self.active = Some(active);
                let min_be = self.config.min_be;
                // 6.2.5.1: NB and BE start anew with each attempt.
                if let Some(job) = self.job_mut() {
                    (job.backoffs, job.exponent) = (0, min_be);
                }
                self.enter(State::Loading, now + self.config.load, LOAD);
                if self.config.load == Duration::ZERO {
                    self.back_off(now);
                }
            }
            Err(Some(at)) => self.deadline = Some(Wake { at, why: PAUSE }),
            Err(None) => self.deadline = None,
        }
    }

    /// The job to work on now. If all of them pause: when the first pause ends.
    fn choose(&self, now: Instant) -> Result<Active, Option<Instant>> {
        let held = match self.indirect.next_ready(now) {
            // Without pre-emption the direct frame is finished first, retries included.
            Some(_) if !self.config.preempt && self.direct.attempts > 0 => None,
            held => held,
        };
        if let Some(place) = held {
            return Ok(Active::Indirect(place));
        }
        let mut soonest = None;
        for (job, active) in [
            (&self.request, Active::Request),
            (&self.direct, Active::Direct),
        ] {
            match (job.is_free(), job.not_before) {
                (true, _) => {}
                (false, at) if at <= now => return Ok(active),
                (false, at) => soonest = Some(soonest.map_or(at, |other| at.min(other))),
            }
        }
        Err(soonest)
    }

    /// Takes a frame from the link node, to send it directly or to hold it for a child.
    fn take<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        let max = self.sdu_max();
        let room = self.direct.sdu.get_mut(..max).unwrap_or_default();
        let Some(send) = link.poll_link(now, Classes::ALL, room) else {
            self.stalled = true;
            return;
        };
        self.pending = !link.pending().is_empty();
        if send.len > max {
            // A defect of the node above: `len` exceeds the buffer it was given.
            self.counters.drops.count(DropReason::Malformed);
            self.stalled = true;
            self.report(now, send.token, Outcome::Failed { attempts: 0 }, link);
            return;
        }
        self.direct.what = Some(What::Data { token: send.token });
        self.direct.to = send.to;
        self.direct.len = send.len as u8;
        self.direct.attempts = 0;
        self.direct.not_before = now;
        self.direct.sequence = self.next_sequence();
        if self.indirect.is_child(send.to) {
            let held = self
                .indirect
                .hold(&self.direct, now + self.config.indirect_life.max(LIFE_MIN));
            self.direct.what = None;
            if !held {
                // Stalled until the next event: a link node that offers another frame at once would loop forever.
                self.counters.drops.count(DropReason::QueueFull);
                self.stalled = true;
                self.report(now, send.token, Outcome::Failed { attempts: 0 }, link);
            }
        }
    }

    /// Largest SDU in octets, less the overhead of frame security.
    fn sdu_max(&self) -> usize {
        let overhead = self.security.as_ref().map_or(0, |s| s.overhead());
        self.config.caps(overhead).frame_max.min(SDU_MAX)
    }

    /// Creates the job of a data request to `parent`.
    pub(super) fn ask(&mut self, now: Instant, parent: Address) {
        let sequence = self.next_sequence();
        self.request = Job {
            what: Some(What::Request),
            to: parent,
            sequence,
            not_before: now,
            len: 1,
            ..Job::default()
        };
        if let Some(first) = self.request.sdu.first_mut() {
            *first = DATA_REQUEST;
        }
    }

    fn next_sequence(&mut self) -> u8 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }

    pub(super) fn job(&self) -> Option<&Job> {
        match self.active? {
            Active::Direct => Some(&self.direct),
            Active::Request => Some(&self.request),
            Active::Indirect(place) => self.indirect.job(place),
        }
    }

    pub(super) fn job_mut(&mut self) -> Option<&mut Job> {
        match self.active? {
            Active::Direct => Some(&mut self.direct),
            Active::Request => Some(&mut self.request),
            Active::Indirect(place) => self.indirect.job_mut(place),
        }
    }

    pub(super) fn enter(&mut self, state: State, at: Instant, why: &'static str) {
        self.state = state;
        self.deadline = Some(Wake { at, why });
    }

    /// Stops working on the present job without changing it; the next poll chooses again.
    fn put_aside(&mut self) {
        self.active = None;
        self.state = State::Idle;
        self.deadline = None;
    }

    /// A child asked: an active frame that is not on the air yet yields to the child's.
    pub(super) fn preempt(&mut self) {
        let contending = matches!(
            self.state,
            State::Loading | State::BackingOff | State::Assessing
        );
        if self.config.preempt && contending && self.active == Some(Active::Direct) {
            self.counters.preempted += 1;
            self.put_aside();
        }
    }

    /// 6.2.5.1: a random number of back-off periods, then the assessment.
    fn back_off(&mut self, now: Instant) {
        let exponent = self.job().map_or(0, |job| job.exponent);
        let periods = 1u64.checked_shl(u32::from(exponent)).unwrap_or(u64::MAX);
        let span = self.config.unit_backoff * self.random.below(periods);
        match span {
            Duration::ZERO => self.assess(now),
            span => self.enter(State::BackingOff, now + span, BACKOFF),
        }
    }

    /// The back-off is over. The own acknowledgement comes first.
    fn assess(&mut self, now: Instant) {
        if let Some(end) = self.answer_end(now) {
            return self.enter(State::BackingOff, end, BACKOFF);
        }
        // Energy that is present already counts; later energy is added by carrier events.
        self.busy = self.sensing && self.carrier;
        // With no time at all the deadline would be due as soon as it is set, which the contract of a node forbids.
        let span = self.config.cca_time.max(Duration::from_nanos(1));
        self.enter(State::Assessing, now + span, ASSESSED);
    }

    pub(super) fn on_deadline<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        match self.state {
            State::Loading => self.back_off(now),
            State::BackingOff => self.assess(now),
            State::Assessing => self.assessed(now, link),
            State::AwaitingAck => {
                self.counters.ack_timeouts += 1;
                self.attempt_failed(now, link);
            }
            State::Spacing => self.put_aside(),
            // The radio never reported the end of the transmission.
            State::Sending => self.attempt_failed(now, link),
            State::Idle => {}
        }
    }

    fn assessed<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        // An acknowledgement that is due counts as a busy channel: the frame would overlap it.
        if !self.busy && self.answer_end(now).is_none() {
            self.state = State::Sending;
            return;
        }
        self.counters.busy += 1;
        let (max_backoffs, max_be) = (self.config.max_backoffs, self.config.max_be);
        let Some(job) = self.job_mut() else {
            return self.put_aside();
        };
        // 6.2.5.1: access fails once NB exceeds macMaxCsmaBackoffs.
        job.backoffs = job.backoffs.saturating_add(1);
        job.exponent = job.exponent.saturating_add(1).min(max_be);
        if job.backoffs <= max_backoffs {
            return self.back_off(now);
        }
        self.counters.access_failures += 1;
        match self.config.retry_busy {
            true => self.attempt_failed(now, link),
            false => self.give_up(now, link),
        }
    }

    /// The transmission after an idle assessment, once: it leaves a turnaround after the assessment's end.
    pub(super) fn poll_job(&mut self, now: Instant, psdu: &mut [u8]) -> Option<Transmit> {
        if self.state != State::Sending || self.deadline.is_some() {
            return None;
        }
        let job = *self.job()?;
        let kind = match job.what? {
            What::Data { .. } => Kind::Data,
            What::Request => Kind::Command,
        };
        let mut header = Header::within(
            self.config.pan,
            kind,
            self.node(job.to),
            self.node(self.address),
            job.sequence,
        );
        if let Some(Active::Indirect(place)) = self.active {
            // 6.7.3: the frame-pending bit makes the child listen on or ask again.
            header.pending = self.indirect.has_another(place);
            if let Some(job) = self.indirect.job_mut(place) {
                job.announced = header.pending;
            }
        }
        let room = psdu.get_mut(..PSDU_MAX - FCS_LEN)?;
        let len = match &mut self.security {
            None => {
                let at = header.emit(room).ok()?;
                room.get_mut(at..at + job.sdu().len())?
                    .copy_from_slice(job.sdu());
                at + job.sdu().len()
            }
            Some(security) => {
                // The auxiliary security header came with the 2006 edition.
                header.version = Version::V2006;
                security.protect(header, self.address, job.sdu(), room)?
            }
        };
        self.count_sent(&job, len);
        let at = now + self.config.turnaround;
        // The radio reports the end of the transmission. The deadline guards against a radio that never does.
        let airtime = Config::MODE.airtime(PSDU_MAX);
        let guard = at + airtime * 4;
        self.deadline = Some(Wake {
            at: guard,
            why: "radio silent",
        });
        Some(Transmit {
            at,
            len,
            mode: Config::MODE,
            power: None,
        })
    }

    fn count_sent(&mut self, job: &Job, len: usize) {
        let counters = &mut self.counters;
        match job.what {
            Some(What::Request) => counters.requests_sent += 1,
            _ if job.to.is_broadcast() => counters.broadcast_sent += 1,
            _ => {
                counters.data_sent += 1;
                counters.retries += u64::from(job.attempts > 0);
            }
        }
        self.trace.push(TraceEvent::Sent {
            layer: Layer::Mac,
            to: job.to,
            bytes: len as u32,
        });
    }

    /// The own transmission ended.
    pub(super) fn on_sent<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if self.end_answer() || self.state != State::Sending {
            return;
        }
        let Some(job) = self.job_mut() else {
            return self.put_aside();
        };
        job.attempts = job.attempts.saturating_add(1);
        if job.to.is_broadcast() {
            return self.finish(now, Outcome::Unconfirmed, false, link);
        }
        self.enter(State::AwaitingAck, now + self.config.ack_wait, ACK);
    }

    /// The acknowledgement was received; `pending` is its frame-pending bit.
    pub(super) fn on_ack<L: LinkNode>(&mut self, now: Instant, pending: bool, link: &mut L) {
        let attempts = self.job().map_or(1, |job| job.attempts);
        self.finish(now, Outcome::Acknowledged { attempts }, pending, link);
    }

    /// No acknowledgement, or no channel access: pauses and tries again, or gives up.
    fn attempt_failed<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        let retries = match self.active {
            Some(Active::Indirect(_)) => self.config.indirect_retries,
            _ => self.config.retries,
        };
        // A channel access failure counts as an attempt, although nothing was sent.
        let unsent = self.state != State::AwaitingAck;
        // Random: senders that do not hear each other would otherwise collide again at each attempt (TCPlp 7.1).
        let pause = self.config.retry_delay.nanos();
        let pause = Duration::from_nanos(match pause {
            0 => 0,
            some => self.random.below(some.saturating_add(1)),
        });
        let indirect = matches!(self.active, Some(Active::Indirect(_)));
        let Some(job) = self.job_mut() else {
            return self.put_aside();
        };
        job.attempts = job.attempts.saturating_add(u8::from(unsent));
        if job.attempts > retries {
            return self.give_up(now, link);
        }
        // The child listens only for a short time: no pause (TCPlp 8.2.3, "link-layer retries more rapidly").
        job.not_before = if indirect { now } else { now + pause };
        self.put_aside();
    }

    fn give_up<L: LinkNode>(&mut self, now: Instant, link: &mut L) {
        if let Some(Active::Indirect(place)) = self.active
            && self
                .indirect
                .wait_for_poll(place, self.config.indirect_polls)
        {
            return self.put_aside();
        }
        self.counters.drops.count(DropReason::RetryLimit);
        self.trace.push(TraceEvent::Dropped {
            layer: Layer::Mac,
            why: DropReason::RetryLimit,
        });
        let attempts = self.job().map_or(0, |job| job.attempts);
        self.finish(now, Outcome::Failed { attempts }, false, link);
    }

    /// The job is finished: reports its outcome and keeps the interframe space.
    fn finish<L: LinkNode>(&mut self, now: Instant, outcome: Outcome, pending: bool, link: &mut L) {
        let Some(job) = self.job_mut() else {
            return self.put_aside();
        };
        let (what, octets) = (job.what.take(), usize::from(job.len));
        let (to, announced) = (job.to, job.announced);
        job.attempts = 0;
        let active = self.active.take();
        match what {
            Some(What::Data { token }) => {
                match outcome {
                    Outcome::Acknowledged { .. } => {
                        self.counters.acknowledged += 1;
                        if let Some(leaf) = &mut self.leaf {
                            leaf.sent(now);
                        }
                    }
                    Outcome::Failed { .. } => self.counters.failed += 1,
                    Outcome::Unconfirmed => {}
                }
                if let Some(Active::Indirect(place)) = active {
                    self.indirect.done(place);
                    // A child that saw the frame-pending bit still listens: no new request is needed.
                    let heard = matches!(outcome, Outcome::Acknowledged { .. });
                    if heard && announced && self.config.burst {
                        self.indirect.asked(to, now + self.config.data_wait);
                    }
                }
                self.report(now, token, outcome, link);
            }
            Some(What::Request) => {
                let asked = match (outcome, pending) {
                    (Outcome::Acknowledged { .. }, true) => Asked::Granted,
                    (Outcome::Acknowledged { .. }, false) => Asked::Empty,
                    _ => Asked::Lost,
                };
                let wait = self.config.data_wait;
                if let Some(leaf) = &mut self.leaf {
                    leaf.asked(now, asked, wait);
                }
            }
            None => {}
        }
        let spacing = self
            .config
            .spacing_after(octets + self.config.header_len() + FCS_LEN);
        match spacing {
            Duration::ZERO => self.put_aside(),
            spacing => self.enter(State::Spacing, now + spacing, SPACING),
        }
    }
}
