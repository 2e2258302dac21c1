//! Hellos that were answered, with the sessions that follow from them, until a frame proves one.
//!
//! Whoever has recorded a hello can play it again, and nothing in it tells when it was said. So each hello that comes
//! has a place of its own here and takes none from the others: the same one again finds its place and makes nothing
//! new. When all places are taken the oldest hello goes; one whose answer and proof take a round trip is pushed out
//! only by so many other hellos in that time, and one that has had its place gets none again. A hello of a host that
//! wants a session is always a new one, so it is never among these.
//!
//! The number in an answer is drawn when a hello gets its place, never computed from it: else a hello and the frames
//! that followed it could be played again together.

use std::collections::VecDeque;

use chappe_sys::Endpoint;

use crate::session::{ANSWER_LEN, Session};

/// Hellos at once: a host that is not answered says four a second at most, so old ones that are played again must come
/// at some hundred a second to push it out within a round trip.
const PLACES: usize = 32;
/// Hellos remembered that have had their place.
const REMEMBERED: usize = 1024;
/// How often a hello is answered, if it comes again: somebody may have been faster with a copy of it, so that the
/// first answer went elsewhere.
const ANSWERS: u8 = 3;

/// The hellos, the oldest first.
#[derive(Default)]
pub(super) struct Answered {
    places: VecDeque<Place>,
    /// Names of hellos that have had their place, the oldest first.
    past: VecDeque<Name>,
}

/// The first octets of the number drawn for a hello. The number is authentic: nobody makes two of one name on purpose
/// who has not the key.
pub(super) type Name = [u8; 8];

struct Place {
    name: Name,
    session: Session,
    answer: [u8; ANSWER_LEN],
    answers: u8,
    /// Where the answer is to go, as long as it has not left.
    to: Option<Endpoint>,
}

impl Answered {
    /// Whether a hello has come before; then it may be answered once more, but nothing else follows from it.
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

    /// A new hello, the session that it may become, and the answer to it.
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

    /// Whether an answer waits to leave.
    pub fn owes(&self) -> bool {
        self.places.iter().any(|place| place.to.is_some())
    }

    /// The next answer to send and where it goes.
    pub fn next_answer(&mut self) -> Option<([u8; ANSWER_LEN], Endpoint)> {
        let mut owed = self.places.iter_mut();
        owed.find_map(|place| Some((place.answer, place.to.take()?)))
    }

    /// The session that the peer addresses by an index.
    pub fn session(&mut self, index: u32) -> Option<&mut Session> {
        let mut sessions = self.places.iter_mut().map(|place| &mut place.session);
        sessions.find(|session| session.mine == index)
    }

    /// Whether an index is taken.
    pub fn has(&self, index: u32) -> bool {
        self.places.iter().any(|place| place.session.mine == index)
    }

    /// A frame has proved the session of this index. Hellos from before it are over, whoever said them: a proof of one
    /// that comes later was held back.
    pub fn proved(&mut self, index: u32) -> Option<Session> {
        let mut places = self.places.iter();
        let at = places.position(|place| place.session.mine == index)?;
        self.forget_first(at);
        let proved = self.places.pop_front()?;
        self.remember(proved.name);
        Some(proved.session)
    }

    /// The peer is in this life: no hello of another one is proved any more.
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
