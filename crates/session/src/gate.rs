//! The gate of a host: which datagrams are worth more than a hash.
//!
//! A datagram of a stranger costs one keyed hash, however many peers there are. Opening an initiation costs two operations on
//! the curve, so a host opens only so many in a second for callers that have not shown that they receive at their address.
//! Beyond that it answers with a cookie (WireGuard, whitepaper 5.4.7), and callers that have one are limited one by one.

use alloc::boxed::Box;
use alloc::vec;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use chappe_core::{Duration, Instant};
use snow::HandshakeState;

use crate::keys::{Public, Secret};
use crate::message::{
    ANSWER, ANSWER_LEAST, Address, COOKIE, COOKIE_LEN, FIRST_AT, FRAME, HANDSHAKE_MAX, INDEX_AT,
    INITIATION, INITIATION_LEAST, NONCE, PROOF, Protocol, Reason, addressed, cookie_proof, first,
    head, number_at, same, version,
};
use crate::noise::responder;
use crate::random::Drawer;
use crate::session::Said;
use crate::stamp::Stamp;

/// Initiations opened in a second without a cookie. Each takes some 0.2 ms, so a flood takes 4 % of a processor.
const OPENED: u32 = 200;
/// The same for each caller with a cookie, and how many it may save up (both as WireGuard in Linux: ratelimiter.c).
const EACH: u32 = 20;
const EACH_SAVED: u32 = 5;
/// Callers with a cookie that are limited one by one.
const CALLERS: usize = 1024;
/// How long a cookie is valid (WireGuard, 6.1: COOKIE_REFRESH_TIME).
pub(crate) const COOKIE_VALID: Duration = Duration::from_secs(120);

/// What a host does with a datagram before it knows whose it is.
pub struct Gate {
    protocol: Protocol,
    secret: Secret,
    public: Public,
    own: Address,
    random: Drawer,
    /// The secret behind the cookies of this period, that of the period before, and when this one began.
    baker: [[u8; 32]; 2],
    baked_at: Instant,
    opened: Bucket,
    callers: Box<[Bucket]>,
}

/// An authentic initiation: its sender has the secret of `public`. It may still be a repeated one, which
/// [`Sessions::take`](crate::Sessions::take) judges.
pub struct Initiation {
    /// The public key of the caller.
    pub public: Public,
    pub(crate) stamp: Stamp,
    pub(crate) said: Said,
    pub(crate) index: u32,
    pub(crate) state: Box<HandshakeState>,
}

impl Initiation {
    /// What the caller's application says. It counts only once a frame of the session has come: the call may be recorded.
    pub fn said(&self) -> &[u8] {
        self.said.octets()
    }
}

/// What to do with a datagram.
pub enum Verdict {
    /// A host that holds a key calls: pass it to the sessions with that public key, or report an unknown key.
    Initiation(Initiation),
    /// For the sessions with this place: pass it to their `take_answer`, `take_cookie` or `open`.
    Sessions(u32),
    /// Send back this many octets of the reply, a cookie. It is shorter than what it answers.
    Reply(usize),
    /// Drop it, and count the reason.
    Dropped(Reason),
}

impl Gate {
    /// The gate of the host with this key. `seed` is 32 unpredictable octets.
    pub fn new(protocol: Protocol, secret: Secret, seed: [u8; 32]) -> Gate {
        let public = secret.public();
        let mut random = Drawer::new(seed);
        Gate {
            protocol,
            own: Address::of(&public),
            public,
            secret,
            baker: [random.draw(), random.draw()],
            baked_at: Instant::ZERO,
            opened: Bucket::full(OPENED),
            callers: vec![Bucket::full(EACH_SAVED); CALLERS].into(),
            random,
        }
    }

    /// The public key of this host.
    pub fn public(&self) -> &Public {
        &self.public
    }

    /// The secret key of this host.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The protocol of the application behind the gate.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Judges a datagram. `source` is the address it came from, as the octets that a stranger cannot choose at will: IPv4 with
    /// port, the network part of IPv6 with port, an Ethernet address. A cookie is written to `reply`.
    pub fn judge(
        &mut self,
        now: Instant,
        source: &[u8],
        datagram: &[u8],
        reply: &mut [u8],
    ) -> Verdict {
        match datagram.first() {
            Some(&INITIATION) => self
                .open(now, source, datagram, reply)
                .unwrap_or_else(Verdict::Dropped),
            Some(&ANSWER) => match self.check_answer(datagram) {
                Ok(index) => Verdict::Sessions(crate::place_of(index)),
                Err(reason) => Verdict::Dropped(reason),
            },
            Some(&(FRAME | COOKIE)) => match addressed(datagram) {
                Some(index) => Verdict::Sessions(crate::place_of(index)),
                None => Verdict::Dropped(Reason::Strange),
            },
            _ => Verdict::Dropped(Reason::Strange),
        }
    }

    fn check_answer(&self, datagram: &[u8]) -> Result<u32, Reason> {
        version(self.protocol, datagram)?;
        if !(ANSWER_LEAST..=HANDSHAKE_MAX).contains(&datagram.len()) {
            return Err(Reason::Strange);
        }
        let (said, proof) = datagram.split_at(datagram.len() - PROOF);
        match same(&self.own.proof(said), proof) {
            true => addressed(datagram).ok_or(Reason::Strange),
            false => Err(Reason::Proof),
        }
    }

    fn open(
        &mut self,
        now: Instant,
        source: &[u8],
        datagram: &[u8],
        reply: &mut [u8],
    ) -> Result<Verdict, Reason> {
        version(self.protocol, datagram)?;
        if !(INITIATION_LEAST..=HANDSHAKE_MAX).contains(&datagram.len()) {
            return Err(Reason::Strange);
        }
        let (proved, cookie) = datagram.split_at(datagram.len() - PROOF);
        let (said, proof) = proved.split_at(proved.len() - PROOF);
        if !same(&self.own.proof(said), proof) {
            return Err(Reason::Proof);
        }
        if self.has_cookie(now, source, proved, cookie) {
            let caller = first::<2>(&blake3::keyed_hash(&self.baker[1], source));
            let caller = usize::from(u16::from_be_bytes(caller)) % CALLERS;
            let bucket = self.callers.get_mut(caller);
            if !bucket.is_some_and(|bucket| bucket.take(now, EACH, EACH_SAVED)) {
                return Err(Reason::Busy);
            }
        } else if !self.opened.take(now, OPENED, OPENED) {
            return match self.give_cookie(now, source, datagram, proof, reply) {
                Some(len) => Ok(Verdict::Reply(len)),
                None => Err(Reason::Busy),
            };
        }
        let index = number_at(datagram, INDEX_AT).ok_or(Reason::Strange)?;
        let first = said.get(FIRST_AT..).unwrap_or_default();
        let own = (&self.secret, &self.public);
        let prologue = self.protocol.name.as_bytes();
        let mut state = responder(own, prologue, self.random.draw()).map_err(|_| Reason::Forged)?;
        let mut payload = [0; HANDSHAKE_MAX];
        let len = state
            .read_message(first, &mut payload)
            .map_err(|_| Reason::Forged)?;
        let public = state.get_remote_static().and_then(|key| key.first_chunk());
        let (stamp, said) = payload
            .get(..len)
            .and_then(|payload| payload.split_at_checked(Stamp::LEN))
            .ok_or(Reason::Strange)?;
        Ok(Verdict::Initiation(Initiation {
            public: Public::new(*public.ok_or(Reason::Forged)?),
            stamp: Stamp::read(stamp).ok_or(Reason::Strange)?,
            said: Said::new(said).ok_or(Reason::Strange)?,
            index,
            state: Box::new(state),
        }))
    }

    fn has_cookie(&mut self, now: Instant, source: &[u8], proved: &[u8], proof: &[u8]) -> bool {
        // Most callers have none, and two hashes are saved.
        if same(proof, &[0; PROOF]) {
            return false;
        }
        self.bake(now);
        let mut bakers = self.baker.iter();
        bakers.any(|baker| same(&cookie_proof(&cookie(baker, source), proved), proof))
    }

    /// Renews the secret behind the cookies.
    fn bake(&mut self, now: Instant) {
        if now.saturating_since(self.baked_at) >= COOKIE_VALID {
            self.baker = [self.random.draw(), self.baker[0]];
            self.baked_at = now;
        }
    }

    fn give_cookie(
        &mut self,
        now: Instant,
        source: &[u8],
        datagram: &[u8],
        proof: &[u8],
        reply: &mut [u8],
    ) -> Option<usize> {
        self.bake(now);
        let index = number_at(datagram, INDEX_AT)?;
        let reply = reply.get_mut(..COOKIE_LEN)?;
        head(COOKIE, self.protocol, index, reply)?;
        let drawn = self.random.draw();
        let nonce: [u8; NONCE] = *drawn.first_chunk()?;
        let mut sealed = cookie(&self.baker[0], source);
        let cipher = XChaCha20Poly1305::new(&self.own.cookie.into());
        let tag = cipher
            .encrypt_inout_detached(&nonce.into(), proof, sealed.as_mut_slice().into())
            .ok()?;
        let parts = nonce.iter().chain(&sealed).chain(&tag);
        let place = reply.iter_mut().skip(FIRST_AT);
        place.zip(parts).for_each(|(to, from)| *to = *from);
        Some(COOKIE_LEN)
    }
}

fn cookie(baker: &[u8; 32], source: &[u8]) -> [u8; PROOF] {
    first(&blake3::keyed_hash(baker, source))
}

/// Lets so many pass in a second, and some more at once.
#[derive(Clone, Copy)]
struct Bucket {
    left: u32,
    at: Instant,
}

impl Bucket {
    const fn full(left: u32) -> Bucket {
        Bucket {
            left,
            at: Instant::ZERO,
        }
    }

    fn take(&mut self, now: Instant, rate: u32, most: u32) -> bool {
        let each = 1_000_000_000 / u64::from(rate);
        let more = now.saturating_since(self.at).nanos() / each;
        if more > 0 {
            self.left = (u64::from(self.left) + more).min(most.into()) as u32;
            self.at = match self.left == most {
                true => now,
                false => self.at + Duration::from_nanos(more * each),
            };
        }
        let some = self.left > 0;
        self.left -= u32::from(some);
        some
    }
}
