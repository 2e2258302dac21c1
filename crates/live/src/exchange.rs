//! Sessions with neighbours: when handshakes begin, are repeated and answered, and how keys of broadcasts are handed over.
//!
//! A hello of an unknown life makes the node with the lower number begin a [handshake](crate::handshake). Its answer proves the
//! other's life. The other one trusts the beginner after the first frame under the new keys, so a recorded first message gains
//! nothing. Then each gives the other the key of its broadcasts, and repeats it until it is confirmed.
//!
//! Sessions are renewed after two minutes. Whoever takes a host later finds no key in it that opens older frames.

use chappe_core::{DropReason, Duration, Instant};

use crate::frame::{EPOCH, HEADER, Header};
use crate::handshake::{self, Begun, Message};
use crate::neighbours::{Life, Neighbours};
use crate::queue::Location;
use crate::seal::{Cipher, Pair, Sealer};
use crate::sessions::{Allowance, Order};

/// A session is renewed after this time, and so is the key of broadcasts (WireGuard, section 6: REKEY-AFTER-TIME).
pub(crate) const RENEW: Duration = Duration::from_secs(120);
/// How long the keys of the session before open frames that are under way.
const UNDER_WAY: Duration = Duration::from_secs(10);
/// The first interval between repetitions. It doubles once, and again after each ten repetitions: a neighbour that hardly hears this
/// node must not take the air of all others.
const AGAIN: Duration = Duration::from_millis(50);
const DOUBLINGS: u32 = 1;
const MORE_DOUBLINGS: u32 = 3;
const MORE_AFTER: u32 = 10;
/// How often a message is repeated before the next hello is waited for: to a new neighbour, and while a life of it is trusted,
/// so that the hello may have been a recording.
const REPEATS: u32 = 10;
const REPEATS_DOUBTED: u32 = 2;
/// The same answer is repeated after this time at the earliest.
const REPLY: Duration = Duration::from_millis(40);
/// Most sessions without a frame, and most answers that are remembered, of one neighbour.
const ANSWERED_MAX: usize = 4;
const REPLIES_MAX: usize = 64;
/// Most frames that wait to be sent.
const ORDERS_MAX: usize = 256;
/// The first octet of a frame with a key, and of its confirmation.
const GIVE: u8 = 0;
const GOT: u8 = 1;

/// What a handshake or key has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing that others need to know.
    None,
    /// A life has just proved itself, or has renewed its session.
    Proved {
        /// Whether it is another life than before.
        new: bool,
    },
}

impl Neighbours {
    /// Begins a handshake, unless one is under way or too many have begun.
    pub(crate) fn begin(&mut self, now: Instant, at: Location, with: u16) {
        let Some(peer) = self.known.get_mut(&with) else {
            return;
        };
        if peer.sessions.begun.is_some() {
            return;
        }
        // While the present life is heard, a hello of another one may be a recording.
        let usual = || Allowance::new(4, Duration::from_secs(1));
        let of_peer = peer.sessions.allowance.get_or_insert_with(usual);
        if (peer.life.is_some() && !of_peer.take(now)) || !self.allowance.take(now) {
            return;
        }
        let number = self.random.next_u64() as u32;
        let Some(begun) = Begun::new(&self.membership, (self.me, self.epoch), with, number) else {
            return;
        };
        let first = begun.first;
        peer.sessions.begun = Some((begun, now, now + AGAIN, 0));
        self.order(Order::Handshake(with, at, first));
    }

    /// Handles a message of a handshake, whose stamp is right.
    pub fn handshake(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &[u8],
    ) -> Result<Progress, DropReason> {
        let from = header.from;
        let whole = frame
            .get(..header.frame_len())
            .ok_or(DropReason::Malformed)?;
        if !self.membership.members.contains_key(&from) || !self.membership.key.has_stamped(whole) {
            return Err(DropReason::Unauthentic);
        }
        let start = HEADER + EPOCH;
        let body = whole.get(start..start + usize::from(header.length));
        let body: &[u8; handshake::BODY] = body
            .and_then(|body| body.try_into().ok())
            .ok_or(DropReason::Malformed)?;
        let message = Message::parse(body).ok_or(DropReason::Malformed)?;
        if message.answers {
            let peer = self.known.get_mut(&from).ok_or(DropReason::Stale)?;
            let begun = peer.sessions.begun.as_mut().ok_or(DropReason::Stale)?;
            if begun.0.number != message.number {
                return Err(DropReason::Stale);
            }
            let (pair, epoch) = begun.0.finish(&message).ok_or(DropReason::Unauthentic)?;
            peer.sessions.begun = None;
            return Ok(self.establish(now, at, from, (epoch, pair)));
        }
        if from > self.me {
            return Err(DropReason::Stale);
        }
        let me = (self.me, self.epoch);
        let peer = self.peer(now, at, from);
        let known = peer
            .sessions
            .replies
            .iter_mut()
            .find(|reply| reply.0 == *body);
        if let Some((_, reply, sent)) = known {
            // Repeated because our answer was lost, or a recording.
            if now < *sent + REPLY {
                return Err(DropReason::Duplicate);
            }
            *sent = now;
            let order = Order::Handshake(from, at, *reply);
            self.order(order);
            return Ok(Progress::None);
        }
        if !self.allowance.take(now) {
            return Err(DropReason::QueueFull);
        }
        let answer = handshake::answer(&self.membership, me, from, &message);
        let (reply, pair, epoch) = answer.ok_or(DropReason::Unauthentic)?;
        let sessions = &mut self.peer(now, at, from).sessions;
        if sessions.answered.len() == ANSWERED_MAX {
            sessions.answered.pop_front();
        }
        if sessions.replies.len() == REPLIES_MAX {
            sessions.replies.pop_front();
        }
        sessions.answered.push_back((epoch, pair));
        sessions.replies.push_back((*body, reply, now));
        self.order(Order::Handshake(from, at, reply));
        Ok(Progress::None)
    }

    /// Handles a key of a neighbour's broadcasts, or the confirmation of this node's.
    pub fn key(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &mut [u8],
        newest: u8,
    ) -> Result<Progress, DropReason> {
        let from = header.from;
        let peer = self.known.get_mut(&from).ok_or(DropReason::Stale)?;
        let mut progress = Progress::None;
        let present = peer
            .life
            .as_ref()
            .filter(|life| life.epoch as u16 == header.epoch);
        let opens = present.is_some_and(|life| life.open(header, &mut frame.to_vec()).is_some());
        if !opens {
            // The first frame of a session that this node has answered proves that the other one is there.
            let answered = &mut peer.sessions.answered;
            let fits = |one: &(u64, Pair)| one.1.open(header, &mut frame.to_vec()).is_some();
            let place = answered
                .iter()
                .position(fits)
                .ok_or(DropReason::Unauthentic)?;
            let session = answered.remove(place).ok_or(DropReason::Stale)?;
            answered.clear();
            progress = self.establish(now, at, from, session);
        }
        let peer = self.known.get_mut(&from).ok_or(DropReason::Stale)?;
        let life = peer.life.as_mut().ok_or(DropReason::Stale)?;
        let body = life.open(header, frame).ok_or(DropReason::Unauthentic)?;
        if header.counter <= life.newest_key {
            return Err(DropReason::Duplicate);
        }
        let order = match *body {
            [GIVE, generation, ref key @ ..] => {
                let key: &[u8; 32] = key.try_into().map_err(|_| DropReason::Malformed)?;
                let cipher = Cipher::new(key);
                life.keys.retain(|key| key.0 != generation);
                if life.keys.len() == 2 {
                    life.keys.remove(0);
                }
                life.keys.push((generation, cipher));
                Some(Order::Got(from, at, generation))
            }
            [GOT, generation] => {
                life.given = Some(generation)
                    .filter(|given| *given == newest)
                    .or(life.given);
                None
            }
            _ => return Err(DropReason::Malformed),
        };
        life.newest_key = header.counter;
        (peer.endpoint, peer.heard) = (at, now);
        order.into_iter().for_each(|order| self.order(order));
        Ok(progress)
    }

    /// A life has proved itself by a session.
    fn establish(
        &mut self,
        now: Instant,
        at: Location,
        from: u16,
        (epoch, pair): (u64, Pair),
    ) -> Progress {
        let peer = self.peer(now, at, from);
        (peer.endpoint, peer.heard) = (at, now);
        match peer.life.as_mut().filter(|life| life.epoch == epoch) {
            Some(life) => {
                let (former, _) = std::mem::replace(&mut life.pair, (pair, now));
                life.former = Some((former, now + UNDER_WAY));
                // The first frame under the new keys shows the other that they work.
                (life.given, life.give_at) = (None, (now, 0));
                Progress::Proved { new: false }
            }
            None => {
                peer.life = Some(Life::new(epoch, now, pair));
                Progress::Proved { new: true }
            }
        }
    }

    fn order(&mut self, order: Order) {
        if self.orders.len() < ORDERS_MAX {
            self.orders.push_back(order);
        }
    }

    /// Repeats what has not been answered, and renews old sessions.
    pub fn tick(&mut self, now: Instant, newest: u8) {
        let mut orders = Vec::new();
        let mut old = Vec::new();
        for (&node, peer) in &mut self.known {
            let at = peer.endpoint;
            if let Some((begun, _, due, times)) =
                peer.sessions.begun.as_mut().filter(|begun| begun.2 <= now)
            {
                *times += 1;
                *due = now + again(*times);
                let most = match peer.life.is_some() {
                    true => REPEATS_DOUBTED,
                    false => REPEATS,
                };
                match *times > most {
                    true => peer.sessions.begun = None,
                    false => orders.push(Order::Handshake(node, at, begun.first)),
                }
            }
            let near = peer.is_near(now);
            let Some(life) = &mut peer.life else {
                continue;
            };
            life.former.take_if(|(_, until)| *until <= now);
            if near && life.given != Some(newest) && life.give_at.0 <= now {
                let (_, times) = life.give_at;
                life.give_at = (now + again(times), times.saturating_add(1));
                orders.push(Order::Give(node, at));
            }
            if near && (self.me, self.epoch) < (node, life.epoch) && now >= life.pair.1 + RENEW {
                old.push((node, at));
            }
        }
        orders.into_iter().for_each(|order| self.order(order));
        for (node, at) in old {
            self.begin(now, at, node);
        }
    }

    /// A newer key of this node's broadcasts must be given to everybody.
    pub fn give_anew(&mut self, now: Instant) {
        let lives = self
            .known
            .values_mut()
            .filter_map(|peer| peer.life.as_mut());
        lives.for_each(|life| life.give_at = (now, 0));
    }

    /// Whether all present neighbours have confirmed the newest key.
    pub fn all_have(&self, now: Instant, newest: u8) -> bool {
        let near = self.known.values().filter(|peer| peer.is_near(now));
        let mut lives = near.filter_map(|peer| peer.life.as_ref());
        lives.all(|life| life.given == Some(newest))
    }

    /// When [`tick`](Self::tick) has something to do.
    pub fn deadline(&self, now: Instant, newest: u8) -> Option<Instant> {
        let peers = self.known.values();
        let due = peers.flat_map(|peer| {
            let begun = peer.sessions.begun.as_ref().map(|begun| begun.2);
            let life = peer.life.as_ref().filter(|_| peer.is_near(now));
            let give = life.filter(|life| life.given != Some(newest));
            [begun, give.map(|life| life.give_at.0)]
        });
        let due = due.flatten().min();
        match self.orders.is_empty() {
            true => due,
            false => Some(now),
        }
    }

    /// Writes the next waiting frame; returns its length and where it goes.
    pub fn write_next(
        &mut self,
        sealer: &mut Sealer,
        frame: &mut [u8],
    ) -> Option<(usize, Location)> {
        while let Some(order) = self.orders.pop_front() {
            let written = match order {
                Order::Handshake(to, at, body) => {
                    put(frame, HEADER + EPOCH, &body);
                    sealer
                        .stamp_handshake(to, body.len(), frame)
                        .map(|len| (len, at))
                }
                Order::Got(to, at, generation) => self.session(to).and_then(|(pair, _)| {
                    put(frame, HEADER, &[GOT, generation]);
                    sealer.seal_key((to, pair), 2, frame).map(|len| (len, at))
                }),
                Order::Give(to, at) => self.session(to).and_then(|(pair, _)| {
                    let (generation, key) = sealer.newest();
                    let body = [&[GIVE, generation][..], key].concat();
                    put(frame, HEADER, &body);
                    sealer
                        .seal_key((to, pair), body.len(), frame)
                        .map(|len| (len, at))
                }),
            };
            if written.is_some() {
                return written;
            }
        }
        None
    }
}

/// The time after so many repetitions until the next one.
fn again(times: u32) -> Duration {
    AGAIN * (1 << (times.min(DOUBLINGS) + (times / MORE_AFTER).min(MORE_DOUBLINGS)))
}

fn put(frame: &mut [u8], start: usize, octets: &[u8]) {
    if let Some(place) = frame.get_mut(start..start + octets.len()) {
        place.copy_from_slice(octets);
    }
}

#[cfg(test)]
mod tests;
