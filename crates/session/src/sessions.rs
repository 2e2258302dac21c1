//! The sessions with one peer: calls, answers, and the session that frames leave in.
//!
//! Either host may call. The called host keeps the new session aside until a frame of it arrives, which proves that the caller
//! is there now; until then it continues the older session. So a recorded initiation changes nothing. Frames of the three
//! sessions before the present one are still opened, and none is lost by a change.
//!
//! A caller stamps its initiations with its clock, and the called host takes only increasing stamps. A host whose clock was set
//! back over a restart would have to wait. Instead, the called host calls back: its own initiation is new, whatever the clock
//! of the other is.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305};
use chappe_core::{Duration, Instant};
use snow::HandshakeState;

use crate::INDEX_BITS;
use crate::cipher::TAG;
use crate::gate::{COOKIE_VALID, Gate, Initiation};
use crate::keys::{Psk, Public, Secret};
use crate::message::{
    ANSWER, Address, COOKIE_LEN, FIRST_AT, HANDSHAKE_MAX, INITIATION, NONCE, PROOF, Protocol,
    Reason, SECOND_AT, addressed, cookie_proof, head, number_at,
};
use crate::noise::{initiator, set_psk};
use crate::random::Drawer;
use crate::session::{Said, Session};
use crate::stamp::Stamp;

/// How long a session lasts, and how many frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Age from which on the caller replaces it, on its next turn.
    pub renew_after: Duration,
    /// Age from which on nothing is sent or opened in it.
    pub end_after: Duration,
    /// Frames after which it is replaced. Numbers of frames have 32 bits.
    pub frames: u32,
}

impl Limits {
    /// WireGuard's times (whitepaper, 6.1: REKEY_AFTER_TIME, REJECT_AFTER_TIME), and a quarter of the numbers.
    pub const USUAL: Limits = Limits {
        renew_after: Duration::from_secs(120),
        end_after: Duration::from_secs(180),
        frames: 1 << 30,
    };
}

/// The interval between unanswered calls. The first eight keep it, because losses come in bursts and a handshake needs messages
/// in both directions; then it doubles up to the longest.
const CALL_EVERY: Duration = Duration::from_millis(250);
const CALL_QUICK: u32 = 8;
const CALL_MOST: Duration = Duration::from_secs(4);
/// Calls that may still be answered: those of the last second on a path of a second's round trip.
const CALLS: usize = 4;
/// Sessions that wait for their caller's proof. Increasing stamps let no recorded initiation displace a newer one.
const ASIDE: usize = 4;
/// Sessions before the present one whose frames are still opened. Two hosts that call at once make two sessions and may use one
/// each, before a renewal and after it.
const OLDER: usize = 3;
/// How often one initiation is answered: an attacker's copy may arrive first, so that the first answer goes elsewhere.
const ANSWERS: u8 = 3;
/// Shortest interval between calls to hosts whose stamps are old.
const BACK_EVERY: Duration = Duration::from_secs(1);
/// How much later than the caller the called host renews a session: only if the caller does not.
const CALLED_LATER: Duration = Duration::from_secs(20);

/// A session that has become the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Whether this host called. If so, it owes the other a frame as proof.
    pub called: bool,
    /// What the peer said in the handshake.
    pub said: Said,
}

/// A frame that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Length of the frame, which stands behind the first [`HEAD`](crate::HEAD) octets of the datagram.
    pub len: usize,
    /// The session that this frame proved, if it was its first.
    pub begun: Option<Begun>,
}

/// The sessions with one peer. `A` is an address of the peer as the driver writes it.
pub struct Sessions<A> {
    protocol: Protocol,
    own: (Secret, Public),
    peer: Public,
    psk: Psk,
    address: Address,
    place: u32,
    limits: Limits,
    random: Drawer,
    current: Option<Session>,
    older: VecDeque<Session>,
    aside: VecDeque<Aside<A>>,
    calls: VecDeque<Call>,
    call_at: Instant,
    unanswered: u32,
    unproved: u32,
    /// The latest stamp that left, and the latest that came.
    said_at: Stamp,
    heard: Option<Stamp>,
    cookie: Option<([u8; PROOF], Instant)>,
    /// Where to call a host whose stamp was old, and when that may happen again.
    back: Option<A>,
    back_at: Instant,
}

/// A call that awaits its answer.
struct Call {
    index: u32,
    state: Box<HandshakeState>,
    /// The proof in the initiation, which a cookie refers to.
    proof: [u8; PROOF],
}

/// A session that awaits its caller's proof, with the answer to the call.
struct Aside<A> {
    session: Session,
    stamp: Stamp,
    answer: [u8; HANDSHAKE_MAX],
    len: usize,
    answers: u8,
    /// Where the answer goes, until it has left.
    to: Option<A>,
}

/// What the caller sets and asks: making, configuring, looking.
impl<A: Copy> Sessions<A> {
    /// The sessions of the host behind `gate` with the host `peer`. `place` is below [`PLACES`](crate::PLACES), and no other
    /// peer's; `seed` is 32 unpredictable octets.
    pub fn new(
        gate: &Gate,
        peer: Public,
        psk: Option<Psk>,
        place: u32,
        seed: [u8; 32],
    ) -> Sessions<A> {
        Sessions {
            protocol: gate.protocol(),
            own: (gate.secret().clone(), *gate.public()),
            peer,
            // Noise without a shared secret would be another protocol. All zeros are WireGuard's way to have none.
            psk: psk.unwrap_or(Psk::new([0; 32])),
            address: Address::of(&peer),
            place,
            limits: Limits::USUAL,
            random: Drawer::new(seed),
            current: None,
            older: VecDeque::new(),
            aside: VecDeque::new(),
            calls: VecDeque::new(),
            call_at: Instant::ZERO,
            unanswered: 0,
            unproved: 0,
            said_at: Stamp::default(),
            heard: None,
            cookie: None,
            back: None,
            back_at: Instant::ZERO,
        }
    }

    /// Replaces the usual limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The public key of the peer.
    pub fn peer(&self) -> &Public {
        &self.peer
    }

    /// Whether frames can leave: there is a session, and it has not ended.
    pub fn is_up(&self, now: Instant) -> bool {
        self.current
            .as_ref()
            .is_some_and(|now_| !self.ended(now, now_))
    }

    /// When the present session began.
    pub fn since(&self) -> Option<Instant> {
        self.current.as_ref().map(|session| session.since)
    }

    /// Calls since the last session that were not answered.
    pub fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Initiations of the peer that were answered since the last session, without a proof. Many of them mean that the answers do
    /// not arrive, or that the shared secrets differ, which only the caller can notice.
    pub fn unproved(&self) -> u32 {
        self.unproved
    }

    /// Forgets the sessions before the present one, and those that wait: the peer has restarted.
    pub fn forget_older(&mut self) {
        self.older.clear();
        self.aside.clear();
    }

    /// Ends every session: nothing leaves until a new one begins.
    pub fn end(&mut self) {
        self.current = None;
        self.forget_older();
        self.calls.clear();
        self.call_at = Instant::ZERO;
    }

    /// Calls at the next turn, however many calls were not answered.
    pub fn hurry(&mut self) {
        self.call_at = Instant::ZERO;
        self.unanswered = 0;
    }

    fn ended(&self, now: Instant, session: &Session) -> bool {
        now.saturating_since(session.since) >= self.limits.end_after
    }

    /// When a session is to be replaced: at once, later, or never by this host.
    fn renew_at(&self, session: &Session) -> Instant {
        let later = match session.called {
            true => Duration::ZERO,
            false => CALLED_LATER,
        };
        match session.sealed > self.limits.frames {
            true => session.since,
            false => session.since + self.limits.renew_after + later,
        }
    }

    fn index(&mut self) -> u32 {
        const LOW: u32 = (1 << INDEX_BITS) - 1;
        let mut drawn = self.random.number() as u32;
        loop {
            let index = self.place << INDEX_BITS | drawn & LOW;
            let sessions = self.current.iter().chain(&self.older);
            let sessions = sessions.chain(self.aside.iter().map(|aside| &aside.session));
            let mut taken = sessions
                .map(|session| session.mine)
                .chain(self.calls.iter().map(|call| call.index));
            // Two must not share an index. At most a dozen are taken.
            if !taken.any(|taken| taken == index) {
                return index;
            }
            drawn = drawn.wrapping_add(1);
        }
    }
}

/// The caller's side of a handshake: when to begin one.
impl<A: Copy> Sessions<A> {
    /// When to call [`call`](Self::call); `None` while nothing asks for it. `silent`: the peer should have been heard and was not.
    pub fn call_at(&self, silent: bool) -> Option<Instant> {
        if self.back.is_some() {
            return Some(Instant::ZERO);
        }
        let wanted = match &self.current {
            Some(session) if !silent => self.renew_at(session),
            _ => Instant::ZERO,
        };
        Some(wanted.max(self.call_at))
    }

    /// The address to call instead of the peer's known one, if a genuine host with an old stamp called from there.
    pub fn back(&mut self) -> Option<A> {
        self.back.take()
    }

    /// Writes an initiation to `out`. `wall` is the host's clock, `said` what the application says. Returns the length.
    pub fn call(
        &mut self,
        now: Instant,
        wall: Stamp,
        said: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        self.said_at = wall.max(self.said_at.next());
        let index = self.index();
        let mut payload = [0; HANDSHAKE_MAX];
        let payload = payload.get_mut(..Stamp::LEN + said.len())?;
        let (stamp, rest) = payload.split_at_mut(Stamp::LEN);
        stamp.copy_from_slice(self.said_at.octets());
        rest.copy_from_slice(said);
        let own = (&self.own.0, &self.own.1);
        let prologue = self.protocol.name.as_bytes();
        let drawn = self.random.draw();
        let mut state = initiator(own, &self.peer, &self.psk, prologue, drawn).ok()?;
        head(INITIATION, self.protocol, index, out)?;
        let first = state
            .write_message(payload, out.get_mut(FIRST_AT..)?)
            .ok()?;
        let proved = FIRST_AT + first;
        let proof = self.address.proof(out.get(..proved)?);
        let cookie = self.cookie.filter(|(_, until)| now < *until);
        out.get_mut(proved..proved + PROOF)?.copy_from_slice(&proof);
        let len = proved + 2 * PROOF;
        let again = cookie
            .map(|(cookie, _)| cookie_proof(&cookie, out.get(..len - PROOF).unwrap_or_default()));
        out.get_mut(len - PROOF..len)?
            .copy_from_slice(&again.unwrap_or([0; PROOF]));
        if self.calls.len() >= CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(Call {
            index,
            state: Box::new(state),
            proof,
        });
        // Random, so that two hosts whose calls cross do not keep crossing.
        let doublings = self.unanswered.saturating_sub(CALL_QUICK - 1).min(8);
        let pause = Duration::from_nanos(CALL_EVERY.nanos() << doublings).min(CALL_MOST);
        self.call_at = now + pause + Duration::from_nanos(self.random.number() % 100_000_000);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(len)
    }

    /// Takes the answer to a call, after the gate has. The session becomes the present one.
    pub fn take_answer(&mut self, now: Instant, datagram: &[u8]) -> Result<Begun, Reason> {
        let to = addressed(datagram).ok_or(Reason::Strange)?;
        let theirs = number_at(datagram, 4).ok_or(Reason::Strange)?;
        let call = self.calls.iter_mut().find(|call| call.index == to);
        let call = call.ok_or(Reason::Strange)?;
        let second = SECOND_AT..datagram.len().saturating_sub(PROOF);
        let second = datagram.get(second).ok_or(Reason::Strange)?;
        let mut payload = [0; HANDSHAKE_MAX];
        // A wrong answer leaves the handshake as it was, and the genuine one may follow.
        let len = call
            .state
            .read_message(second, &mut payload)
            .map_err(|_| Reason::Forged)?;
        let said = Said::new(payload.get(..len).unwrap_or_default()).ok_or(Reason::Strange)?;
        let session = Session::new(now, &mut call.state, (to, theirs), said);
        Ok(self.begin(session))
    }

    /// Takes a cookie, which the next call carries.
    pub fn take_cookie(&mut self, now: Instant, datagram: &[u8]) -> Result<(), Reason> {
        let to = addressed(datagram).ok_or(Reason::Strange)?;
        let call = self.calls.iter().find(|call| call.index == to);
        let call = call.ok_or(Reason::Strange)?;
        let whole: &[u8; COOKIE_LEN] = datagram.try_into().map_err(|_| Reason::Strange)?;
        let (nonce, sealed) = whole[8..].split_at(NONCE);
        let (sealed, tag) = sealed.split_at(sealed.len() - TAG);
        let mut cookie: [u8; PROOF] = sealed.try_into().map_err(|_| Reason::Strange)?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| Reason::Strange)?;
        let tag = Tag::try_from(tag).map_err(|_| Reason::Strange)?;
        XChaCha20Poly1305::new(&self.address.cookie.into())
            .decrypt_inout_detached(
                &nonce.into(),
                &call.proof,
                cookie.as_mut_slice().into(),
                &tag,
            )
            .map_err(|_| Reason::Forged)?;
        self.cookie = Some((cookie, now + COOKIE_VALID));
        // A host under load is asked again as soon as it has said how.
        self.call_at = self.call_at.min(now + CALL_EVERY);
        Ok(())
    }
}

/// Being called, and frames.
impl<A: Copy> Sessions<A> {
    /// Takes an initiation of the peer, which the gate has opened, and prepares the answer. `said` is what the application
    /// says. `quiet`: nothing has been heard of the peer for a while, so that it may have restarted.
    pub fn take(
        &mut self,
        now: Instant,
        from: A,
        mut initiation: Initiation,
        said: &[u8],
        quiet: bool,
    ) -> Result<(), Reason> {
        if self.heard.is_some_and(|heard| initiation.stamp <= heard) {
            self.take_again(now, from, initiation.stamp, quiet);
            return Err(Reason::Repeated);
        }
        let index = self.index();
        let mut answer = [0; HANDSHAKE_MAX];
        head(ANSWER, self.protocol, index, &mut answer).ok_or(Reason::Strange)?;
        answer[8..SECOND_AT].copy_from_slice(&initiation.index.to_be_bytes());
        let state = &mut initiation.state;
        set_psk(state, &self.psk).map_err(|_| Reason::Forged)?;
        let second = answer.get_mut(SECOND_AT..).unwrap_or_default();
        let second = state.write_message(said, second);
        let proved = SECOND_AT + second.map_err(|_| Reason::Forged)?;
        let proof = self.address.proof(answer.get(..proved).unwrap_or_default());
        let place = answer.get_mut(proved..proved + PROOF);
        place.ok_or(Reason::Strange)?.copy_from_slice(&proof);
        self.heard = Some(initiation.stamp);
        self.unproved = self.unproved.saturating_add(1);
        let indices = (index, initiation.index);
        if self.aside.len() >= ASIDE {
            self.aside.pop_front();
        }
        self.aside.push_back(Aside {
            session: Session::new(now, &mut initiation.state, indices, initiation.said),
            stamp: initiation.stamp,
            answer,
            len: proved + PROOF,
            answers: 1,
            to: Some(from),
        });
        Ok(())
    }

    /// An initiation that is not new: a copy, a recorded one, or of a host whose clock was set back.
    fn take_again(&mut self, now: Instant, from: A, stamp: Stamp, quiet: bool) {
        let mut waiting = self.aside.iter_mut();
        if let Some(aside) = waiting.find(|aside| aside.stamp == stamp) {
            if aside.to.is_none() && aside.answers < ANSWERS {
                aside.answers += 1;
                aside.to = Some(from);
            }
        } else if quiet && now >= self.back_at {
            self.back_at = now + BACK_EVERY;
            self.back = Some(from);
        }
    }

    /// Whether an answer is to be sent, or a host with an old stamp to be called.
    pub fn owes(&self) -> bool {
        self.back.is_some() || self.aside.iter().any(|aside| aside.to.is_some())
    }

    /// Writes the next answer to `out`. Returns its length and destination.
    pub fn next_answer(&mut self, out: &mut [u8]) -> Option<(usize, A)> {
        let aside = self.aside.iter_mut().find(|aside| aside.to.is_some())?;
        let to = aside.to.take()?;
        let answer = aside.answer.get(..aside.len)?;
        out.get_mut(..aside.len)?.copy_from_slice(answer);
        Some((aside.len, to))
    }

    /// Opens a frame in place. A frame that proves a session makes it the present one.
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, Reason> {
        let index = addressed(datagram).ok_or(Reason::Strange)?;
        let end_after = self.limits.end_after;
        let lives = |session: &Session| now.saturating_since(session.since) < end_after;
        let known = self.current.iter_mut().chain(&mut self.older);
        let mut known = known.filter(|session| lives(session));
        if let Some(session) = known.find(|session| session.mine == index) {
            let len = session.open(datagram)?;
            return Ok(Opened { len, begun: None });
        }
        let mut waiting = self.aside.iter();
        let at = waiting.position(|aside| aside.session.mine == index && lives(&aside.session));
        let at = at.ok_or(Reason::Strange)?;
        let aside = self.aside.get_mut(at).ok_or(Reason::Strange)?;
        let len = aside.session.open(datagram)?;
        // Earlier calls are forgotten with it: if one of them were proved later, its proof would have been delayed on purpose.
        self.aside.drain(..at);
        let proved = self.aside.pop_front().ok_or(Reason::Strange)?;
        let begun = Some(self.begin(proved.session));
        Ok(Opened { len, begun })
    }

    /// Seals the frame of `len` octets that stands behind the first [`HEAD`](crate::HEAD) octets and begins with its number,
    /// which must be new in this session. Returns the datagram's length; `None` without a session.
    pub fn seal(&mut self, now: Instant, octets: &mut [u8], len: usize) -> Option<usize> {
        if !self.is_up(now) {
            return None;
        }
        self.current.as_mut()?.seal(octets, len)
    }

    fn begin(&mut self, session: Session) -> Begun {
        let begun = Begun {
            called: session.called,
            said: session.said,
        };
        if let Some(before) = self.current.replace(session) {
            self.older.push_front(before);
            self.older.truncate(OLDER);
        }
        self.calls.clear();
        self.call_at = Instant::ZERO;
        (self.unanswered, self.unproved) = (0, 0);
        begun
    }
}
