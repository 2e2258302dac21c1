//! Which path carries what, where there are several.
//!
//! The rule is earliest arrival. The *first* path is the one on which a packet that is sent now arrives first: its one-way
//! delay, the wait for its pace, and its cost count. Another path takes a packet only if the packets before it would keep the
//! first one busy for so long that it arrives earlier here. So a flow that the first path carries alone stays there, with its
//! delay, and one that fills it spreads by rates. What was lost is repeated by the same rule. The one-way delay is half of the
//! round trip: more is not known of it.

use chappe_core::{Duration, Instant};
use chappe_wildnet::{Role, SERVICES};

use super::{Peer, SILENT, State};

impl Peer {
    /// Whether there are several paths.
    pub(super) fn is_bonded(&self) -> bool {
        self.paths.len() > 1
    }

    /// Brings what each path may carry up to date with its state.
    pub(super) fn judge_roles(&mut self, now: Instant) {
        if !self.is_bonded() {
            return;
        }
        for path in 0..self.paths.len() {
            self.judge_size(path);
            let own = &self.paths[path];
            let alive = own.sessions.is_up(now) && own.silence(now, self.peer_keepalive) < SILENT;
            let role = match own.config.reserve {
                _ if !alive || !own.sized || own.drain.is_some() => Role::Closed,
                true => Role::Reserve,
                false => Role::Open,
            };
            self.link.select(path);
            self.link.set_role(now, role);
        }
    }

    /// Whether datagrams of the bodies' size pass a path, as far as is known. One that carries less than the others is used
    /// once no longer body is open.
    fn judge_size(&mut self, path: usize) {
        let (oldest, next) = self.link.open_bodies();
        let own = &mut self.paths[path];
        let was = own.sized;
        own.sized |= !own.path_mtu.is_untried();
        if own.sized && !was {
            own.drain = Some(next);
        }
        let drained = |until: u32| oldest.wrapping_sub(until) <= u32::MAX / 2;
        own.drain = own.drain.filter(|until| !drained(*until));
    }

    /// Whether a path carries bodies at present, reserve or not.
    pub(super) fn carries(&self, now: Instant, path: usize) -> bool {
        let own = &self.paths[path];
        let up = own.sessions.is_up(now) && self.state_of(now, path) != State::Silent;
        up && own.sized && own.drain.is_none() && !self.link.is_doubted(path)
    }

    /// Whether bodies may leave on a path: it carries some, or is probed with them.
    pub(super) fn may_carry(&self, now: Instant, path: usize) -> bool {
        !self.is_bonded() || self.carries(now, path) || self.link.is_doubted(path)
    }

    /// How long something that is sent on a path now takes to arrive, as far as is known, its cost included.
    fn arrival(&self, now: Instant, path: usize) -> Duration {
        let own = &self.paths[path];
        let report = self.link.report_of(path);
        // One that has not been measured is tried.
        let one_way = report
            .rtt
            .map_or(Duration::ZERO, |(smoothed, _)| smoothed / 2);
        let wait = match self.is_full(path) {
            // Until a report makes room.
            true => one_way,
            false => own.pace.free_at().saturating_since(now),
        };
        one_way + wait + own.config.cost
    }

    /// The path on which something that is sent now arrives first. A reserve counts only if nothing else works.
    pub(super) fn first_path(&self, now: Instant) -> usize {
        if !self.is_bonded() {
            return 0;
        }
        let usable = (0..self.paths.len()).filter(|&path| self.carries(now, path));
        let first = usable.min_by_key(|&path| {
            let reserve = self.paths[path].config.reserve;
            (reserve, self.arrival(now, path))
        });
        first.unwrap_or(0)
    }

    /// Whether what waits behind `ahead` octets arrives earlier on `path` than on the first one.
    fn is_earlier(&self, now: Instant, path: usize, ahead: usize) -> bool {
        let first = self.first_path(now);
        if path == first {
            return true;
        }
        let spared = self.paths[path].config.reserve && !self.paths[first].config.reserve;
        if spared || !self.carries(now, path) {
            return false;
        }
        let busy = self.paths[first].pace.rate().time_of(ahead as u64 * 8);
        self.arrival(now, first) + busy > self.arrival(now, path)
    }

    /// Whether a path carries packets at present: it works, and is no reserve beside a path that works.
    pub fn is_used(&self, now: Instant, path: usize) -> bool {
        if !self.is_bonded() {
            return path == 0;
        }
        let first = self.first_path(now);
        let reserve = |path: usize| self.paths.get(path).is_some_and(|own| own.config.reserve);
        let carries = path < self.paths.len() && self.carries(now, path);
        carries && (reserve(first) || !reserve(path))
    }

    /// Whether a path takes new packets of a class now.
    pub(super) fn takes(&self, now: Instant, path: usize, class: usize) -> bool {
        if !self.is_bonded() {
            return true;
        }
        let ahead = (0..=class.min(SERVICES - 1)).map(|class| self.queues.octets(class));
        self.is_earlier(now, path, ahead.sum())
    }

    /// Whether a path repeats what was lost.
    pub(super) fn repeats_on(&self, now: Instant, path: usize) -> bool {
        if !self.is_bonded() {
            return true;
        }
        let lost = self.link.lost_count() * self.config.datagram_max;
        self.is_earlier(now, path, lost)
    }
}
