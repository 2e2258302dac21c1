//! What the driver receives: which frames it takes, what it does with its own kinds, and what it passes to the node.

use chappe_core::{Address, Arrival, DropReason, Duration, Instant, LinkEvent, LinkNode, Outcome};
use chappe_sys::{BATCH, Received, Result};

use super::outgoing::{Outgoing, Seal};
use super::{Live, TURN};
use crate::echo::Echo;
use crate::exchange::Progress;
use crate::frame::{HEADER, Header, Kind, TAG, is_former};
use crate::neighbours::HelloOutcome;
use crate::queue::{Location, Target};
use crate::seal::{Novelty, is_undamaged};

/// Octets of a confirmation: the frame's number (4) and the epoch of its sender (8).
const CONFIRMATION: usize = 12;
/// The list of members is sent to those who have an older one at most this often, however many ask or pretend to.
const NOTICE: Duration = Duration::from_secs(2);

/// Why a frame was dropped, if it was.
type Taken = std::result::Result<(), DropReason>;

impl<N: LinkNode + ?Sized> Live<N> {
    /// Reads a port until nothing waits there, or until it is the other ports' turn. Nothing of the node is sent meanwhile: a
    /// member that sends before it has read what its neighbours report repeats what they have, and overflows its queue.
    pub(super) fn receive(&mut self, port: usize, received: &mut Received) -> Result<()> {
        let now = self.now();
        for _ in 0..TURN {
            let Some(state) = self.ports.get_mut(port) else {
                return Ok(());
            };
            let asked = self.clock.now();
            match state.socket.receive(received) {
                Ok(count) => {
                    state.behind = count == BATCH;
                    // A queue that overflowed is longer than a batch. What overflowed between two looks is found by the next.
                    let looks = state.behind || state.backlog.is_unknown(now);
                    let lost = looks.then(|| state.socket.lost_in_queue());
                    let lost = state.backlog.read(now, !state.behind, lost);
                    self.statistics.lost_in_queue += u64::from(lost);
                }
                Err(error) if error.is_gone() => return Err(error),
                // The interface went down, or an ICMP error came back. Sending gives the more precise error.
                Err(_) => {
                    self.statistics.receive_errors += 1;
                    return Ok(());
                }
            }
            for frame in received.iter() {
                let frame = frame.filter(|(_, frame)| frame.len() <= self.scratch.len());
                let parsed = frame.and_then(|(at, frame)| Some((at, frame, Header::parse(frame)?)));
                match parsed {
                    Some((at, frame, header)) => {
                        self.on_frame(Location { port, at }, header, frame)?;
                    }
                    None => {
                        self.statistics.drops.count(DropReason::Malformed);
                        let former = frame.is_some_and(|(_, frame)| is_former(frame));
                        self.statistics.former += u64::from(former);
                        self.statistics.too_long += u64::from(frame.is_none());
                    }
                }
                // Confirmations do not wait: there must be room for that of the next frame.
                if self.queue.is_full() {
                    let now = self.now();
                    self.flush(now)?;
                }
            }
            if let Some(state) = self.ports.get_mut(port).filter(|state| !state.behind) {
                state.emptied = asked;
                return Ok(());
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, at: Location, header: Header, frame: &[u8]) -> Result<()> {
        let now = self.now();
        let from = Address::node(header.from);
        // A broadcast socket may receive this host's own frames. They need no decryption.
        if header.from == self.me && header.epoch == self.sealer.epoch() as u16 {
            self.statistics.echoes += 1;
            return self.look_for_copy(now, &header, frame);
        }
        if self.loss.as_mut().is_some_and(|loss| loss.takes(from)) {
            self.statistics.injected_losses += 1;
            return Ok(());
        }
        let len = header.frame_len();
        // Opening decrypts in place, and the receive buffer is borrowed by the caller.
        let mut scratch = std::mem::take(&mut self.scratch);
        if let (Some(place), Some(frame)) = (scratch.get_mut(..len), frame.get(..len)) {
            place.copy_from_slice(frame);
            let taken = self.accept(now, at, &header, place);
            match taken {
                Ok(()) => self.statistics.octets_received += len as u64,
                Err(why) => self.statistics.drops.count(why),
            }
        } else {
            self.statistics.drops.count(DropReason::Malformed);
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Opens a frame and acts on it, or returns why it was dropped.
    fn accept(&mut self, now: Instant, at: Location, header: &Header, frame: &mut [u8]) -> Taken {
        let from = Address::node(header.from);
        let for_all = matches!(header.kind, Kind::Broadcast | Kind::Hello | Kind::Notice);
        if !for_all && header.to != self.me {
            return Err(DropReason::NotForUs);
        }
        match header.kind {
            Kind::Hello => return self.on_hello(now, at, header, frame),
            Kind::Handshake => {
                let progress = self.neighbours.handshake(now, at, header, frame)?;
                return self.on_progress(header.from, progress);
            }
            Kind::Key => {
                let newest = self.sealer.newest().0;
                let progress = self.neighbours.key(now, at, header, frame, newest)?;
                return self.on_progress(header.from, progress);
            }
            Kind::Notice => return self.on_notice(now, header, frame),
            _ if header.from == self.me => return Err(DropReason::Stale),
            _ => {}
        }
        let (mut sdu, novelty) = self.neighbours.open(now, header, frame)?;
        let mut echo = None;
        if header.kind == Kind::Broadcast {
            let (before, last) = sdu.split_last_chunk().ok_or(DropReason::Malformed)?;
            (sdu, echo) = (before, Some(Echo::parse(last)));
        }
        let arrival = |to| Arrival {
            from,
            to,
            sdu,
            power: None,
        };
        match header.kind {
            Kind::Broadcast if novelty == Novelty::New => {
                self.hear(now, at.port, header, echo);
                self.deliver(now, arrival(Address::BROADCAST));
            }
            Kind::Broadcast => return Err(DropReason::Duplicate),
            Kind::Unicast => {
                self.take_unicast(now, at, header)?;
                self.deliver(now, arrival(Address::node(self.me)));
            }
            _ => self.on_confirmation(now, header.from, sdu)?,
        }
        Ok(())
    }

    /// Confirms a unicast frame, or returns why the node does not get it.
    fn take_unicast(&mut self, now: Instant, at: Location, header: &Header) -> Taken {
        let number = (header.counter >> 8) as u32;
        let novelty = self.neighbours.note(now, at, header.from, number);
        // Too old for the window: whether the node has had it is unknown, so it is not confirmed.
        if novelty == Novelty::Forgotten {
            return Err(DropReason::Stale);
        }
        self.confirm(now, at, header.from, number);
        match novelty {
            Novelty::New => Ok(()),
            Novelty::Seen | Novelty::Forgotten => Err(DropReason::Duplicate),
        }
    }

    /// Notes a new broadcast or hello of a neighbour: what it tells of this member's frames, and what its own show.
    fn hear(&mut self, now: Instant, port: usize, header: &Header, echo: Option<Echo>) {
        self.statistics.pressed += u64::from(header.pressed);
        if let Some(state) = self.ports.get_mut(port) {
            state.heard = Some(now);
            state.throttle.hear(header.from, header.pressed);
            if let Some(echo) = echo.filter(|echo| echo.about == Some(self.me)) {
                state.throttle.echo(now, header.from, echo);
            }
        }
        if let Some(echo) = echo {
            let life = (header.from, header.epoch);
            let at = self.clock.now();
            let emptied = self.ports.get(port).map_or(at, |state| state.emptied);
            let frame = (header.counter, echo.stamp, echo.asks);
            self.ears
                .hear(at, life, frame, at.saturating_since(emptied));
        }
    }

    fn on_hello(&mut self, now: Instant, at: Location, header: &Header, frame: &mut [u8]) -> Taken {
        let outcome = self.neighbours.hello(now, at, header, frame);
        match outcome {
            HelloOutcome::Dropped(why) => Err(why),
            HelloOutcome::Known | HelloOutcome::KnownBehind => {
                let sealed = frame.get(..header.kind.clear() + usize::from(header.length));
                let last = sealed.and_then(|sealed| sealed.last_chunk());
                let echo = last.map(Echo::parse);
                self.hear(now, at.port, header, echo);
                if outcome == HelloOutcome::KnownBehind {
                    self.tell_list(now);
                }
                Ok(())
            }
            HelloOutcome::Unproved { waits } => {
                self.statistics.unproved += 1;
                let answers = !waits || self.schedule.answer_stranger(now);
                self.statistics.unanswered += u64::from(!answers);
                Ok(())
            }
            HelloOutcome::Behind => {
                let known = self
                    .neighbours
                    .membership
                    .members
                    .contains_key(&header.from);
                if known {
                    self.tell_list(now);
                }
                Err(DropReason::Stale)
            }
        }
    }

    /// Begins to send the list of members, unless that was done lately.
    fn tell_list(&mut self, now: Instant) {
        let idle = self.notice.0.is_none() && now >= self.notice.1;
        if idle && !self.neighbours.membership.notice.is_empty() {
            self.notice = (Some(0), now + NOTICE);
        }
    }

    fn on_progress(&mut self, from: u16, progress: Progress) -> Taken {
        if let Progress::Proved { new } = progress {
            self.statistics.sessions += 1;
            self.statistics.address_conflicts += u64::from(from == self.me);
            if new {
                self.schedule.answer_soon();
            }
        }
        Ok(())
    }

    /// A piece of a list of members. The application checks its signature.
    fn on_notice(&mut self, now: Instant, header: &Header, frame: &[u8]) -> Taken {
        let whole = frame
            .get(..header.frame_len())
            .ok_or(DropReason::Malformed)?;
        let end = whole.len().saturating_sub(TAG);
        let body = whole.get(HEADER..end).filter(|_| is_undamaged(whole));
        let body = body.ok_or(DropReason::Unauthentic)?;
        let list = self
            .lists
            .take(now, self.neighbours.membership.serial, body)?;
        self.statistics.notice = list.or(self.statistics.notice.take());
        Ok(())
    }

    fn deliver(&mut self, now: Instant, arrival: Arrival<'_>) {
        self.statistics.frames_received += 1;
        self.node.handle_link(now, LinkEvent::Received(arrival));
        self.drain_trace(now);
    }

    fn on_confirmation(&mut self, now: Instant, from: u16, body: &[u8]) -> Taken {
        let number = body.first_chunk().map(|number| u32::from_be_bytes(*number));
        let epoch = body.last_chunk().map(|epoch| u64::from_be_bytes(*epoch));
        if body.len() != CONFIRMATION || epoch != Some(self.sealer.epoch()) {
            return Err(DropReason::Stale);
        }
        let number = number.unwrap_or(0);
        match self.outstanding.confirmed(from, number) {
            Some((token, attempts)) => {
                self.statistics.confirmed += 1;
                self.report_outcome(now, token, Outcome::Acknowledged { attempts });
            }
            None => self.statistics.drops.count(DropReason::Duplicate),
        }
        Ok(())
    }

    /// Confirms a unicast frame at once, ahead of the pace, because its sender's retry timer runs.
    fn confirm(&mut self, now: Instant, at: Location, from: u16, number: u32) {
        let Some(epoch) = self.neighbours.life(from) else {
            return;
        };
        let Some(slot) = self.queue.vacant() else {
            return self.statistics.drops.count(DropReason::QueueFull);
        };
        let body = &mut slot.frame[HEADER..HEADER + CONFIRMATION];
        body[..4].copy_from_slice(&number.to_be_bytes());
        body[4..].copy_from_slice(&epoch.to_be_bytes());
        let seal = Seal::Confirmation { to: from };
        let frame = Outgoing::control(seal, Target::Neighbour(at));
        if self.seal_and_queue(now, CONFIRMATION, frame) {
            self.statistics.confirmations_sent += 1;
        }
    }
}
