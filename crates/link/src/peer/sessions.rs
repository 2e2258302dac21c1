//! Calls, answers and incoming frames of a peer, and what their course says about it.

use chappe_core::{Duration, Instant};
use chappe_session::{Begun, Gate, HEAD, Initiation, Reason, Stamp, Verdict};
use chappe_sys::Endpoint;

use super::{IDLE, KEEPALIVE, OVERDUE, PROVE_EVERY, PathConfig, Peer, State, of_place};
use crate::introduction::Said;
use crate::path_mtu::Tail;

/// Unanswered calls from which on a message says what to check.
const UNANSWERED: u32 = 8;
/// Octets of what a host says in a handshake: its life (8), its receive window in bodies (2), its keepalive in seconds (2), the
/// number of the path (1), whether that is a reserve (1), and the path's cost in milliseconds (2).
const SAID: usize = 16;

impl Peer {
    /// Tells the host's clock, as time since 1970, which stamps calls.
    pub fn set_clock(&mut self, now: Instant, since_1970: std::time::Duration) {
        self.wall = (now, since_1970);
    }

    /// Handles a datagram on a host that has only this peer. Returns the length of a reply in `reply`, to send back. Drain
    /// [`deliver`](Self::deliver) and [`poll`](Self::poll) afterwards.
    pub fn handle(
        &mut self,
        now: Instant,
        gate: &mut Gate,
        from: Endpoint,
        datagram: &mut [u8],
        reply: &mut [u8],
    ) -> Result<Option<usize>, Reason> {
        self.handle_late((now, now), gate, from, datagram, reply)
    }

    /// The same for a datagram that is read `now` and `arrived` earlier, since the host was busy.
    pub fn handle_late(
        &mut self,
        (now, arrived): (Instant, Instant),
        gate: &mut Gate,
        from: Endpoint,
        datagram: &mut [u8],
        reply: &mut [u8],
    ) -> Result<Option<usize>, Reason> {
        let (source, len) = crate::carrier::source(from);
        match gate.judge(now, source.get(..len).unwrap_or_default(), datagram, reply) {
            Verdict::Initiation(call) if call.public == self.config.public => {
                self.take_call(now, gate, from, call);
            }
            Verdict::Initiation(_) => return Err(Reason::Forged),
            Verdict::Sessions(_) => {
                self.take_datagram((now, arrived), from, datagram);
            }
            Verdict::Reply(len) => return Ok(Some(len)),
            Verdict::Dropped(reason) => return Err(reason),
        }
        Ok(None)
    }

    /// Takes a call of this peer that the host's gate has opened.
    pub fn take_call(&mut self, now: Instant, gate: &Gate, from: Endpoint, call: Initiation) {
        self.notice_turn(now, now);
        self.counters.datagrams_received += 1;
        let path = usize::from(call.said().get(12).copied().unwrap_or_default());
        while self.paths.len() <= path {
            let config = PathConfig::learned(self.paths.len(), self.config.below);
            if !self.add_path(gate, config) {
                return self.count(Some(Reason::Strange));
            }
            if let Some(path) = self.paths.last_mut() {
                path.learned = true;
            }
        }
        let (said, keepalive) = (self.said(path), self.peer_keepalive);
        let own = &mut self.paths[path];
        own.datagrams_received += 1;
        let quiet = own.silence(now, keepalive) >= OVERDUE || !own.sessions.is_up(now);
        let taken = own.sessions.take(now, from, call, &said, quiet);
        self.count(taken.err());
    }

    /// Handles a datagram that is addressed to one of this peer's sessions or calls, and `arrived` before it was read, `now`. Returns
    /// whether it was authentic and new: then drain [`deliver`](Self::deliver) and [`poll`](Self::poll).
    pub fn take_datagram(
        &mut self,
        (now, arrived): (Instant, Instant),
        from: Endpoint,
        datagram: &mut [u8],
    ) -> bool {
        let arrived = arrived.min(now);
        self.notice_turn(now, arrived);
        self.counters.datagrams_received += 1;
        let place = chappe_session::addressed(datagram).map(chappe_session::place_of);
        let (_, path) = of_place(place.unwrap_or_default() as usize);
        let Some(own) = self.paths.get_mut(path) else {
            self.count(Some(Reason::Strange));
            return false;
        };
        own.datagrams_received += 1;
        own.octets_received += (datagram.len() + own.config.below) as u64;
        let taken = match datagram.first() {
            Some(2) => own.sessions.take_answer(now, datagram).map(|begun| {
                self.begin(now, path, begun);
                self.move_to(path, from);
            }),
            Some(4) => own.sessions.take_cookie(now, datagram),
            _ => self.take_frame((now, arrived), (path, from), datagram),
        };
        self.count(taken.err());
        taken.is_ok()
    }

    fn count(&mut self, dropped: Option<Reason>) {
        match dropped {
            Some(Reason::Forged | Reason::Proof) => self.counters.forged += 1,
            Some(Reason::Repeated) => self.counters.repeated += 1,
            Some(Reason::Strange | Reason::Version(_) | Reason::Busy) => self.counters.strange += 1,
            None => {}
        }
    }

    fn said(&self, path: usize) -> [u8; SAID] {
        let window = self.link.receive_window().min(u16::MAX.into()) as u16;
        let keepalive = self.config.keepalive.as_secs_f64().ceil().min(65_535.0) as u16;
        let config = &self.paths[path].config;
        let cost = (config.cost.as_secs_f64() * 1e3).min(65_535.0) as u16;
        let mut said = [0; SAID];
        let parts = (self.life.to_be_bytes().into_iter())
            .chain(window.to_be_bytes())
            .chain(keepalive.to_be_bytes())
            .chain([path as u8, u8::from(config.reserve)])
            .chain(cost.to_be_bytes());
        said.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        said
    }

    /// The present interval between empty frames on a path. A reserve keeps only address translators awake.
    pub(super) fn keepalive(&self, now: Instant, path: usize) -> Duration {
        let busy = now.saturating_since(self.busy_at) < IDLE;
        match busy && !self.paths[path].config.reserve {
            true => KEEPALIVE.min(self.config.keepalive),
            false => self.config.keepalive,
        }
    }

    pub(super) fn call_at(&self, now: Instant, path: usize) -> Option<Instant> {
        let own = &self.paths[path];
        let silent = own.silence(now, self.peer_keepalive) >= OVERDUE;
        own.sessions.call_at(silent)
    }

    /// Calls the peer if it is time, or a host that called with an old stamp.
    pub(super) fn call(
        &mut self,
        now: Instant,
        path: usize,
        datagram: &mut [u8],
    ) -> Option<(usize, Endpoint)> {
        if self.call_at(now, path).is_none_or(|at| at > now) {
            return None;
        }
        let own = &mut self.paths[path];
        let to = own.sessions.back().or(own.endpoint)?;
        let (at, since_1970) = self.wall;
        let passed = std::time::Duration::from_nanos(now.saturating_since(at).nanos());
        let said = self.said(path);
        let stamp = Stamp::at(since_1970 + passed);
        let own = &mut self.paths[path];
        let len = own.sessions.call(now, stamp, &said, datagram)?;
        let unanswered = own.sessions.unanswered();
        let name = &self.config.name;
        if unanswered == UNANSWERED && self.state(now) != State::Up {
            self.trouble = Some(format!(
                "no answer from {name}: check that it runs this release, that the address is right, that each host has the other's public key and both the same `preshared_key_file` or none, and that no firewall blocks it"
            ));
        }
        Some((len, to))
    }

    /// A session has become the present one.
    fn begin(&mut self, now: Instant, path: usize, begun: Begun) {
        let said = begun.said.octets();
        let (life, rest) = said.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        let (window, rest) = rest.split_first_chunk().unwrap_or((&[0; 2], &[]));
        let (keepalive, rest) = rest.split_first_chunk().unwrap_or((&[0; 2], &[]));
        let keepalive = u16::from_be_bytes(*keepalive);
        let life = u64::from_be_bytes(*life);
        if self.peer_life.is_some_and(|before| before != life) {
            // The peer has restarted: it knows nothing of the frames in flight, and frames of its former life are void.
            self.link.peer_restarted();
            self.forget_packets();
            for (number, own) in self.paths.iter_mut().enumerate() {
                match number == path {
                    true => own.sessions.forget_older(),
                    // Of its former life.
                    false => own.sessions.end(),
                }
            }
        }
        let own = &mut self.paths[path];
        if let (true, &[_, reserve, high, low, ..]) = (own.learned, rest) {
            own.config.reserve = reserve != 0;
            own.config.cost = Duration::from_millis(u16::from_be_bytes([high, low]).into());
        }
        if self.state(now) != State::Up || self.counters.sessions == 0 {
            self.busy_at = now;
        }
        self.peer_life = Some(life);
        self.peer_keepalive = Duration::from_secs(keepalive.max(1).into());
        self.link.set_window(u16::from_be_bytes(*window).into());
        self.trouble = None;
        self.counters.sessions += 1;
        let own = &mut self.paths[path];
        own.heard(now);
        // The caller proves that it is there; the other end confirms, so that the proofs end.
        own.prove_at = Some((now, PROVE_EVERY));
    }

    fn take_frame(
        &mut self,
        (now, arrived): (Instant, Instant),
        (path, from): (usize, Endpoint),
        datagram: &mut [u8],
    ) -> Result<(), Reason> {
        let opened = self.paths[path].sessions.open(now, datagram)?;
        if self.state(now) != State::Up {
            // What explained why nothing came is over.
            self.trouble = None;
        }
        self.paths[path].heard(now);
        match opened.begun {
            Some(begun) => self.begin(now, path, begun),
            None => self.paths[path].prove_at = None,
        }
        self.move_to(path, from);
        if let Some(frame) = datagram.get(HEAD..HEAD + opened.len) {
            // The link counts malformed frames itself.
            self.link.select(path);
            let _ = self.link.handle_late(now, arrived, frame);
            let tail = chappe_wildnet::header::note_tail(frame);
            if let Some(said) = tail.and_then(Said::read) {
                self.hear(said);
            } else if let Some(tail) = tail.and_then(Tail::read) {
                self.paths[path].path_mtu.take(now, tail);
            }
            // A frame with a body or a repair: the link is in use.
            if tail.is_none() {
                self.busy_at = now;
            }
        }
        self.judge_pace(now, path);
        Ok(())
    }

    /// A frame has left: whether it waits for a report.
    pub(super) fn asked(&mut self, now: Instant, path: usize) {
        // Beside other paths it is asked for nothing unless something of it is under way.
        let asks = !self.is_bonded() || self.link.report_of(path).in_flight > 0;
        if asks && self.link.has_open() {
            let own = &mut self.paths[path];
            own.asked_at = own.asked_at.or(Some(now));
        }
    }

    /// What a peer's calls say that lead to no session.
    pub fn unproved(&self, now: Instant) -> Option<String> {
        let up = self.paths.iter().any(|path| path.sessions.is_up(now));
        let unproved = self.paths.iter().map(|path| path.sessions.unproved()).max();
        (!up && unproved >= Some(UNANSWERED)).then(|| {
            format!(
                "{name} calls and is answered, but its session does not begin: give both hosts the same `preshared_key_file` or none, and check that datagrams from here reach it",
                name = self.config.name
            )
        })
    }
}
