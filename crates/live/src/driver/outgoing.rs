//! What the driver sends: frames between the node and the queue, and from there to the kernel.

use chappe_core::{Class, DropReason, Duration, Instant, LinkNode, LinkSend, Mode, Outcome};
use chappe_sys::{Error, Result};

use super::{Live, port_state};
use crate::echo::{ECHO, Echo};
use crate::frame::{HEADER, Kind};
use crate::notice;
use crate::queue::Target;

/// Pauses after the kernel ran out of buffers, and after the interface was down.
const NO_BUFFERS: Duration = Duration::from_millis(1);
const DOWN: Duration = Duration::from_millis(100);

/// A frame whose body stands in the queue's vacant slot.
pub(super) struct Outgoing {
    pub seal: Seal,
    pub to: Target,
    pub class: Class,
    /// The node's token, if the node is notified when the frame has left: of broadcasts only.
    pub token: Option<u32>,
    /// The mode that the node asked for, which a pace by airtime counts.
    pub mode: Option<Mode>,
}

/// Which counter seals a frame.
pub(super) enum Seal {
    Broadcast(Kind),
    Unicast { to: u16, number: u32, attempt: u8 },
    Confirmation { to: u16 },
    Notice,
}

impl Outgoing {
    /// A frame of the driver itself.
    pub fn control(seal: Seal, to: Target) -> Outgoing {
        Outgoing {
            seal,
            to,
            class: Class::Control,
            token: None,
            mode: None,
        }
    }
}

impl<N: LinkNode + ?Sized> Live<N> {
    /// Queues handshakes, keys, and a piece of the list of members if a node needs it.
    pub(super) fn send_keys(&mut self, now: Instant) {
        while let Some(slot) = self.queue.vacant() {
            let written = self
                .neighbours
                .write_next(&mut self.sealer, &mut slot.frame);
            let Some((len, mut at)) = written else {
                break;
            };
            if let Some(state) = self.ports.get(at.port).filter(|_| self.keys_as_broadcasts) {
                at.at = state.broadcast;
            }
            (slot.len, slot.to) = (len, Target::Neighbour(at));
            (slot.class, slot.broadcast) = (Class::Control, None);
            self.queue.push();
            self.spend(now, len, Target::Neighbour(at), None);
        }
        while let (Some(index), true) =
            (self.notice.0, port_state::free_at(&self.ports, now) <= now)
        {
            let Some(slot) = self.queue.vacant() else {
                return;
            };
            let body = slot.frame.get_mut(HEADER..HEADER + self.own_max);
            let of = &self.neighbours.membership;
            let len = body.and_then(|body| notice::emit(of.serial, &of.notice, index, body));
            let frame = Outgoing::control(Seal::Notice, Target::Broadcast);
            self.notice.0 = len.map(|_| index + 1);
            if len.is_some_and(|len| self.seal_and_queue(now, len, frame)) {
                self.statistics.notices_sent += 1;
            }
        }
    }

    /// Repeats the unicast frames whose confirmation is overdue.
    pub(super) fn repeat_unconfirmed(&mut self, now: Instant) {
        // An attempt counts only if there is room to make it.
        while let Some(slot) = self.queue.vacant() {
            let Some(waiting) = self.outstanding.next_retry(now) else {
                return;
            };
            let (to, class, len) = (waiting.to, waiting.class, waiting.sdu.len());
            let (number, attempt) = (waiting.number, waiting.attempts);
            slot.frame[HEADER..HEADER + len].copy_from_slice(&waiting.sdu);
            let frame = Outgoing {
                seal: Seal::Unicast {
                    to,
                    number,
                    attempt,
                },
                to: self.target(to),
                class,
                token: None,
                mode: None,
            };
            // Without a session no node gets it now; a later attempt may.
            if self.seal_and_queue(now, len, frame) {
                self.statistics.retries += 1;
            }
        }
    }

    /// Takes up to `most` frames from the node.
    pub(super) fn poll_node(&mut self, now: Instant, most: usize) {
        if port_state::opens_at(&self.ports, now) > now {
            return;
        }
        for _ in 0..most {
            if port_state::free_at(&self.ports, now) > now {
                return;
            }
            let allowed = self.may_ask();
            let Some(slot) = self.queue.vacant().filter(|_| !allowed.is_empty()) else {
                return;
            };
            let Some(sdu) = slot.frame.get_mut(HEADER..) else {
                return;
            };
            let Some(send) = self.node.poll_link(now, allowed, sdu) else {
                self.declined = true;
                return;
            };
            self.drain_trace(now);
            self.enqueue(now, send);
        }
    }

    /// Charges a frame to the pace of its ports.
    fn spend(&mut self, now: Instant, len: usize, to: Target, mode: Option<Mode>) {
        let newest = self.sealer.next_broadcast().saturating_sub(1);
        for (port, state) in self.ports.iter_mut().enumerate() {
            let there = match to {
                Target::Broadcast => true,
                Target::Neighbour(at) => at.port == port,
            };
            if there {
                let octets = state.pacer.spend(now, len, mode);
                state.throttle.spend(now, octets, newest);
            }
        }
    }

    /// Finishes the frame whose SDU the node has just written to the vacant slot.
    fn enqueue(&mut self, now: Instant, send: LinkSend) {
        let Some(slot) = self.queue.vacant() else {
            return;
        };
        let frame = |seal, to, token| Outgoing {
            seal,
            to,
            class: send.class,
            token,
            mode: send.mode,
        };
        let frame = match send.to.node_number() {
            _ if send.len > self.frame_max => None,
            _ if send.to.is_broadcast() => {
                self.broadcast_at = Some(now);
                let seal = Seal::Broadcast(Kind::Broadcast);
                Some(frame(seal, Target::Broadcast, Some(send.token)))
            }
            // The number is part of the nonce, so it must not wrap.
            Some(to) if self.number < u32::MAX => {
                self.number += 1;
                let (number, attempt) = (self.number, 1);
                let sdu = &slot.frame[HEADER..HEADER + send.len];
                self.outstanding
                    .add(now, number, to, (send.token, send.class), sdu);
                let seal = Seal::Unicast {
                    to,
                    number,
                    attempt,
                };
                Some(frame(seal, self.target(to), None))
            }
            _ => None,
        };
        // A unicast to a node without a session yet waits for one, and is repeated like a lost frame.
        if let Some(Outgoing {
            seal: Seal::Unicast { to, .. },
            ..
        }) = frame
            && self.neighbours.session(to).is_none()
        {
            return;
        }
        let queued = frame.is_some_and(|frame| self.seal_and_queue(now, send.len, frame));
        if !queued {
            // More octets than there was room for, or an address that is no node's.
            self.statistics.drops.count(DropReason::Malformed);
            self.report_outcome(now, send.token, Outcome::Failed { attempts: 0 });
        }
    }

    /// Where a unicast goes.
    fn target(&self, to: u16) -> Target {
        let session = self.neighbours.session(to);
        session.map_or(Target::Broadcast, |(_, at)| Target::Neighbour(at))
    }

    /// Seals the frame whose body of `len` octets stands in the vacant slot, queues it, and charges it to the pace.
    /// Returns false if it cannot be sealed (no room, or all counters used) or the queue is full.
    pub(super) fn seal_and_queue(&mut self, now: Instant, len: usize, frame: Outgoing) -> bool {
        let Some(slot) = self.queue.vacant() else {
            return false;
        };
        let octets = &mut slot.frame;
        let sealed = match frame.seal {
            Seal::Broadcast(kind) => {
                let asks = self.ports.iter().any(|state| state.throttle.asks(now));
                let end = kind.clear() + len;
                let Some(place) = octets.get_mut(end..end + ECHO) else {
                    return false;
                };
                // By the clock and not the node's time, which stops when the process does.
                let echo = self.ears.next(self.clock.now());
                place.copy_from_slice(&Echo { asks, ..echo }.emit());
                self.sealer.seal(kind, len + ECHO, octets)
            }
            Seal::Notice => self.sealer.finish_notice(len, octets),
            Seal::Confirmation { to } => self
                .neighbours
                .session(to)
                .and_then(|(pair, _)| self.sealer.seal_confirmation((to, pair), len, octets)),
            Seal::Unicast {
                to,
                number,
                attempt,
            } => self.neighbours.session(to).and_then(|(pair, _)| {
                self.sealer
                    .seal_unicast((to, pair), (number, attempt), len, octets)
            }),
        };
        let Some(len) = sealed else {
            return false;
        };
        (slot.len, slot.to) = (len, frame.to);
        (slot.class, slot.broadcast) = (frame.class, frame.token);
        self.queue.push();
        self.spend(now, len, frame.to, frame.mode);
        true
    }

    /// Hands the queued frames of each port to the kernel, then reports the broadcasts that all ports are done with.
    pub(super) fn flush(&mut self, now: Instant) -> Result<()> {
        for port in 0..self.ports.len() {
            let Some(state) = self.ports.get_mut(port).filter(|state| !state.is_shut(now)) else {
                continue;
            };
            if !self.queue.waits_for(port) {
                continue;
            }
            let (socket, cuts) = (&mut state.socket, &mut state.cuts);
            match self.queue.flush(port, socket, state.broadcast, cuts) {
                Ok(0) => {
                    self.statistics.queue_full += 1;
                    state.throttle.block();
                    state.blocked = true;
                    self.events.want_write(&state.socket, port as u64, true)?;
                }
                Ok(_) => {}
                Err(error) => self.on_refusal(now, port, error)?,
            }
        }
        // In order: a frame stays until every port has taken it or given it up.
        while let Some(slot) = self.queue.first().filter(|slot| slot.waits == 0) {
            let (token, octets, taken) = (slot.broadcast, slot.len as u64, slot.taken);
            self.queue.pop();
            let outcome = match taken {
                true => {
                    self.statistics.frames_sent += 1;
                    self.statistics.octets_sent += octets;
                    Outcome::Unconfirmed
                }
                false => Outcome::Failed { attempts: 1 },
            };
            if let Some(token) = token {
                self.report_outcome(now, token, outcome);
            }
        }
        Ok(())
    }

    /// The kernel refused the first frame of a port.
    fn on_refusal(&mut self, now: Instant, port: usize, error: Error) -> Result<()> {
        let Some(state) = self.ports.get_mut(port) else {
            return Ok(());
        };
        if error.is_out_of_buffers() {
            self.statistics.queue_full += 1;
            state.held_until = now + NO_BUFFERS;
            return Ok(());
        }
        if error.is_gone() {
            return Err(error);
        }
        self.statistics.refused += 1;
        self.statistics.last_refusal = Some(error.to_string());
        if error.is_down() {
            state.held_until = now + DOWN;
        }
        // Frames of an interface that is down would keep their slots, so that the other ports would starve.
        self.queue
            .give_up(port, error.is_down() && self.ports.len() > 1);
        Ok(())
    }

    pub(super) fn on_writable(&mut self, port: usize) -> Result<()> {
        if let Some(state) = self.ports.get_mut(port).filter(|state| state.blocked) {
            state.blocked = false;
            self.events.want_write(&state.socket, port as u64, false)?;
        }
        Ok(())
    }
}
