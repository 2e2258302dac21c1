//! Answered hellos with their tentative sessions, until a frame proves one.
//!
//! Anyone can replay a recorded hello, and a hello does not say when it was sent. So each new hello gets a separate place
//! here, and a repeated one finds its old place and creates nothing. When all places are taken, the oldest hello is
//! forgotten. A genuine hello needs its place for one round trip, so only a flood of other hellos within that time can
//! displace it. A hello that has had a place never gets one again, which stops replays: a host that wants a session always
//! sends a new hello.
//!
//! The number in an answer is random and not computed from the hello. Otherwise a hello could be replayed together with
//! the frames that followed it.

use std::collections::VecDeque;

use chappe_sys::Endpoint;

use crate::session::{ANSWER_LEN, Session};

/// Number of places. A genuine host sends at most four hellos a second, so replayed ones must come at some hundred a
/// second to displace it within a round trip.
const PLACES: usize = 32;
/// Number of past hellos that are remembered.
const REMEMBERED: usize = 1024;
/// How often a repeated hello is answered: an attacker's copy may arrive first, so that the first answer goes elsewhere.
const ANSWERS: u8 = 3;

/// Answered hellos, oldest first.
#[derive(Default)]
pub(super) struct Answered {
    places: VecDeque<Place>,
    /// Names of hellos that have had a place, oldest first.
    past: VecDeque<Name>,
}

/// The first octets of a hello's random number. The number is authenticated, so only a holder of the key could make two
/// hellos with the same name.
pub(super) type Name = [u8; 8];

struct Place {
    name: Name,
    session: Session,
    answer: [u8; ANSWER_LEN],
    answers: u8,
    /// The destination of the answer until it has left.
    to: Option<Endpoint>,
}

impl Answered {
    /// Whether a hello has come before. If so it may be answered again, but creates no session.
    pub fn knows(&mut self, name: Name, from: Endpoint) -> bool {
        let known = self.places.iter_mut().find(|place| place.name == name);
        let Some(place) = known else {
            return self.past.contains(&name);
        };
        if place.to.is_none() && place.answers < ANSWERS {
            place.answers += 1;
            place.to = Some(from);
        }
        true
    }

    /// Adds a new hello with its answer and its tentative session.
    pub fn add(&mut self, name: Name, session: Session, answer: [u8; ANSWER_LEN], from: Endpoint) {
        if self.places.len() >= PLACES {
            self.forget_first(1);
        }
        self.places.push_back(Place {
            name,
            session,
            answer,
            answers: 1,
            to: Some(from),
        });
    }

    /// Whether an answer is to be sent.
    pub fn owes(&self) -> bool {
        self.places.iter().any(|place| place.to.is_some())
    }

    /// The next answer to send, and its destination.
    pub fn next_answer(&mut self) -> Option<([u8; ANSWER_LEN], Endpoint)> {
        let mut owed = self.places.iter_mut();
        owed.find_map(|place| Some((place.answer, place.to.take()?)))
    }

    /// The tentative session with this index.
    pub fn session(&mut self, index: u32) -> Option<&mut Session> {
        let mut sessions = self.places.iter_mut().map(|place| &mut place.session);
        sessions.find(|session| session.mine == index)
    }

    /// Whether a tentative session has this index.
    pub fn has(&self, index: u32) -> bool {
        self.places.iter().any(|place| place.session.mine == index)
    }

    /// Removes the session that a frame has proved. Earlier hellos are forgotten with it, whoever sent them: if one of them
    /// were proved later, its proof would have been delayed on purpose.
    pub fn proved(&mut self, index: u32) -> Option<Session> {
        let mut places = self.places.iter();
        let at = places.position(|place| place.session.mine == index)?;
        self.forget_first(at);
        let proved = self.places.pop_front()?;
        self.remember(proved.name);
        Some(proved.session)
    }

    /// Forgets the hellos of all lives of the peer but this one.
    pub fn forget_others(&mut self, life: u64) {
        for place in std::mem::take(&mut self.places) {
            match place.session.life == life {
                true => self.places.push_back(place),
                false => self.remember(place.name),
            }
        }
    }

    fn forget_first(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(place) = self.places.pop_front() {
                self.remember(place.name);
            }
        }
    }

    fn remember(&mut self, name: Name) {
        if self.past.len() >= REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back(name);
    }
}
