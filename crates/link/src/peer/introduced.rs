//! What a peer and this host say to each other about third hosts, and who introduces this peer.

use std::collections::VecDeque;

use chappe_core::{Duration, Instant};
use chappe_session::Public;
use chappe_sys::Endpoint;

use super::{Peer, State};
use crate::introduction::{MOST, Said};

/// Most that wait in each direction; more are dropped, and come again when they are asked for again.
const WAITING: usize = 64;

/// Introductions of one peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Introduced {
    introducer: Option<Public>,
    /// What the peer is to be told, and what it has said.
    owed: VecDeque<Said>,
    heard: VecDeque<Said>,
    /// When the introducer was last asked.
    asked_at: Option<Instant>,
}

impl Peer {
    /// Sets the peer, by its key, that is asked where this one is while it does not answer.
    pub fn set_introducer(&mut self, by: Option<Public>) {
        self.introduced.introducer = by;
    }

    /// The peer that introduces this one, by its key.
    pub fn introducer(&self) -> Option<Public> {
        self.introduced.introducer
    }

    /// Who is to be asked for whom, by their keys, if this peer is not up and was not asked for within `every`.
    pub(crate) fn wants_introduction(
        &mut self,
        now: Instant,
        every: Duration,
    ) -> Option<(Public, Public)> {
        let by = self.introduced.introducer?;
        let asked = self.introduced.asked_at;
        let due = asked.is_none_or(|at| now.saturating_since(at) >= every);
        if !due || self.state(now) == State::Up {
            return None;
        }
        self.introduced.asked_at = Some(now);
        Some((by, self.config.public))
    }

    /// Tells the peer something, once it is up.
    pub(crate) fn say(&mut self, said: Said) {
        let owed = &mut self.introduced.owed;
        if owed.len() < WAITING && !owed.contains(&said) {
            owed.push_back(said);
        }
    }

    pub(super) fn hear(&mut self, said: Said) {
        if self.introduced.heard.len() < WAITING {
            self.introduced.heard.push_back(said);
        }
    }

    /// Whether the peer has said something that [`introduction::act`](crate::introduction::act) has not seen.
    pub fn has_said(&self) -> bool {
        !self.introduced.heard.is_empty()
    }

    pub(crate) fn take_introduction(&mut self) -> Option<Said> {
        self.introduced.heard.pop_front()
    }

    /// Calls the peer there from now on: it has been introduced.
    pub(crate) fn meet(&mut self, at: Endpoint) {
        self.set_endpoint_of(0, Some(at));
    }

    /// Whether something is to be said on a path.
    pub(super) fn says(&self, now: Instant, path: usize) -> bool {
        !self.introduced.owed.is_empty() && self.first_path(now) == path
    }

    /// Writes what is to be said behind a note; the length of both.
    pub(super) fn say_on(
        &mut self,
        now: Instant,
        path: usize,
        datagram: &mut [u8],
    ) -> Option<usize> {
        if !self.says(now, path) {
            return None;
        }
        let said = self.introduced.owed.pop_front()?;
        let limit = self.paths[path].path_mtu.limit();
        let most = limit.saturating_sub(chappe_session::OVERHEAD - chappe_session::HEAD);
        let space = datagram.get_mut(chappe_session::HEAD..most)?;
        let room = space.len().checked_sub(MOST)?;
        let note = self.link.bare_note(now, space.get_mut(..room)?)?;
        Some(note + said.write(space.get_mut(note..)?)?)
    }
}
