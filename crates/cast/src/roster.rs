//! The roster of the group: one record for each member, flooded from neighbour to neighbour.
//!
//! A record contains its member's role, its progress in each transfer, and the delivery ratios of its incoming links.
//! Each record is signed by its member, so that no other can say anything in its name, such as that it has received the files.
//! Flooding works as in link-state routing. Members forward new records at once and all records from time to time. A
//! higher sequence number replaces a lower one, and a record that is not renewed expires. A restarted member that receives
//! its own former record continues with a higher number (RFC 2328, 13.4).

use chappe_core::{Duration, Instant};
use chappe_pacifier::Links;
use litemap::LiteMap;

use crate::damping::Damping;
pub use crate::group::MEMBER_MAX;
use crate::group::Seat;
use crate::reason::Reason;

/// Lifetime of a record without renewal. Members renew theirs each second.
pub const LIFETIME: Duration = Duration::from_secs(10);
/// Domain separation: a member's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast record v4\0";
/// Octets of a signature.
const SIGNATURE: usize = 64;
/// Largest number of transfers and of links in a record.
pub const TRANSFERS_MAX: usize = 8;
const LINKS_MAX: usize = 255;
/// The smallest usable SDU in octets: records and tickets must fit, and data should not drown in headers.
pub const FRAME_MIN: usize = 400;
/// Links with a lower delivery ratio are ignored.
const SHARE_MIN: f64 = 0.02;

/// The roles of a member. Every member relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Whether it offers files.
    pub sends: bool,
    /// Whether it installs files.
    pub receives: bool,
    /// Whether it has said goodbye.
    pub leaves: bool,
}

/// The state of a member in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It fetches the manifest.
    Preparing,
    /// It has the manifest and receives batches.
    Receiving,
    /// It has all files, and their command runs.
    Working,
    /// It has all files, and their command has ended if there is one.
    Complete,
    /// It cannot receive the files.
    Failed(Reason),
    /// It is the sender and offers the files.
    Offering,
}

/// The record of one member, as the member itself wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The number of the member.
    pub node: u16,
    /// The random number of its life; it changes with each restart.
    pub life: u64,
    /// The sequence number, which rises with every change and renewal.
    pub number: u32,
    /// The name of its host.
    pub name: String,
    /// The roles of the member.
    pub roles: Roles,
    /// The largest SDU that comes to it, in octets.
    pub frame_max: u16,
    /// For each transfer that it takes part in: identifier, state, and number of batches received.
    pub transfers: Vec<(u64, State, u32)>,
    /// Its incoming links: neighbour and delivery ratio.
    pub links: Vec<(u16, f64)>,
}

/// A record that has arrived, not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The record and its signature.
    raw: &'a [u8],
    /// When it was written, before now.
    age: Duration,
}

/// The records of all known members.
pub struct Roster {
    own: Record,
    seat: Seat,
    others: LiteMap<u16, Known>,
    /// The member with which the next round of forwarding starts.
    next: u16,
    /// Records received under this member's number, of another life and with a higher sequence number.
    contested: u32,
    /// Records without a valid signature of their member.
    forged: u64,
}

struct Known {
    record: Record,
    /// The record as it arrived, with its signature.
    raw: Vec<u8>,
    /// When the member wrote it.
    born: Instant,
    /// Whether it has been forwarded.
    told: bool,
    /// How often a change of its neighbours alone is news.
    damping: Damping,
}

/// What a received record has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: the record is old, expired or this member's.
    None,
    /// A renewal, possibly with other delivery ratios.
    Renewed,
    /// A member is new or has restarted, or its roles, states or neighbours have changed.
    Member,
}

impl Roster {
    /// A roster with this member only.
    pub fn new(seat: Seat, roles: Roles, frame_max: usize) -> Roster {
        let own = Record {
            node: seat.node,
            life: 0,
            number: 0,
            name: seat.name(),
            roles,
            frame_max: frame_max.min(u16::MAX.into()) as u16,
            transfers: Vec::new(),
            links: Vec::new(),
        };
        Roster {
            own,
            seat,
            others: LiteMap::new(),
            next: 0,
            contested: 0,
            forged: 0,
        }
    }

    /// The list of members and this member's key.
    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Takes over a newer list of members: records of those who are not in it are forgotten.
    pub fn join(&mut self, seat: Seat) {
        self.others
            .retain(|node, _| seat.group.members.contains_key(node));
        self.own.name = seat.name();
        self.seat = seat;
        self.renew();
    }

    /// Received records that their members have not signed.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// This member's record. After a change, call [`renew`](Self::renew).
    pub fn own(&mut self) -> &mut Record {
        &mut self.own
    }

    /// The largest SDU that comes to all live members, in octets: at least [`FRAME_MIN`], whatever a record says.
    pub fn frame_max(&self, now: Instant) -> usize {
        let all = self.others(now).chain([&self.own]);
        let least = all.map(|record| usize::from(record.frame_max)).min();
        least.unwrap_or(0).max(FRAME_MIN)
    }

    /// Raises the sequence number of this member's record.
    pub fn renew(&mut self) {
        self.own.number = self.own.number.saturating_add(1);
    }

    /// The records of the other live members.
    pub fn others(&self, now: Instant) -> impl Iterator<Item = &Record> + '_ {
        self.all(now).filter(|record| !record.roles.leaves)
    }

    /// Like [`others`](Self::others), including members that have said goodbye.
    pub fn all(&self, now: Instant) -> impl Iterator<Item = &Record> + '_ {
        let alive = move |known: &&Known| now.saturating_since(known.born) < LIFETIME;
        self.others
            .values()
            .filter(alive)
            .map(|known| &known.record)
    }

    /// The record of another live member.
    pub fn get(&self, now: Instant, node: u16) -> Option<&Record> {
        self.others(now).find(|record| record.node == node)
    }

    /// How often a record under this member's number came from another life. A rising count means that two members have the
    /// same number.
    pub fn contested(&self) -> u32 {
        self.contested
    }

    /// Handles a received record; `None` if it is malformed. Its signature is checked if it says anything new.
    pub fn learn(&mut self, now: Instant, received: Received<'_>) -> Option<News> {
        let (raw, age) = (received.raw, received.age);
        let (body, signature) = raw.split_last_chunk::<SIGNATURE>()?;
        let record = Record::decode(body)?;
        let message = self.message(body);
        let group = self.seat.group.clone();
        let signed = || group.verifies(record.node, &message, signature);
        if record.node == self.own.node {
            if record.life != self.own.life && record.number >= self.own.number {
                if !signed() {
                    self.forged = self.forged.saturating_add(1);
                    return Some(News::None);
                }
                // Most likely a record of a former life. Two members with one number would contradict each other forever.
                self.own.number = record.number.saturating_add(1);
                self.contested = self.contested.saturating_add(1);
                return Some(News::Member);
            }
            return Some(News::None);
        }
        if record.node > MEMBER_MAX || age >= LIFETIME {
            return Some(News::None);
        }
        let born = now.saturating_before(age);
        let known = self.others.get(&record.node);
        let old = |known: &Known| {
            // An expired record no longer blocks lower numbers: a restarted member begins at 1.
            let dead = now.saturating_since(known.born) >= LIFETIME;
            record.number <= known.record.number && !dead
        };
        if known.is_some_and(old) {
            return Some(News::None);
        }
        if !signed() {
            self.forged = self.forged.saturating_add(1);
            return Some(News::None);
        }
        let (news, damping) = match self.others.get_mut(&record.node) {
            Some(known) => (known.news(now, &record), known.damping),
            None => (News::Member, Damping::default()),
        };
        let node = record.node;
        let known = Known {
            record,
            raw: raw.to_vec(),
            born,
            told: false,
            damping,
        };
        self.others.insert(node, known);
        Some(news)
    }

    /// The octets that a member signs.
    fn message(&self, body: &[u8]) -> Vec<u8> {
        [SIGNED, self.seat.group.owner.octets(), body].concat()
    }

    /// This member's record with its signature.
    fn sign_own(&self) -> Vec<u8> {
        let mut raw = self.own.encode();
        let signature = self.seat.key.sign().sign(&self.message(&raw));
        raw.extend_from_slice(&signature);
        raw
    }

    /// Writes records to `to`: this member's, then those not forwarded yet, then the others in turn. Returns the length.
    pub fn write(&mut self, now: Instant, to: &mut [u8]) -> usize {
        let mut len = put(&self.sign_own(), Duration::ZERO, to).unwrap_or(0);
        self.others
            .retain(|_, known| now.saturating_since(known.born) < LIFETIME);
        let all = self.others.iter();
        let mut order: Vec<(bool, bool, u16)> = all
            .map(|(&node, known)| (known.told, node < self.next, node))
            .collect();
        order.sort_unstable();
        for (_, _, node) in order {
            let Some(known) = self.others.get_mut(&node) else {
                continue;
            };
            let age = now.saturating_since(known.born);
            let Some(written) = to
                .get_mut(len..)
                .and_then(|rest| put(&known.raw, age, rest))
            else {
                break;
            };
            len += written;
            known.told = true;
            self.next = node.saturating_add(1);
        }
        len
    }

    /// Notes that a frame of a neighbour arrived at `heard`: where many frames are lost, a member whose record is late is
    /// alive nevertheless. Another life than the record's says nothing.
    pub fn hear(&mut self, node: u16, life: u64, heard: Instant) {
        if let Some(known) = self.others.get_mut(&node)
            && known.record.life == life
        {
            known.born = known.born.max(heard);
        }
    }

    /// The delivery ratios of all links, as their receivers report them.
    pub fn links(&self, now: Instant) -> Option<Links> {
        let mut table = Vec::new();
        let mut last = self.own.node;
        for record in self.others(now).chain([&self.own]) {
            last = last.max(record.node);
            for &(from, share) in &record.links {
                if from <= MEMBER_MAX && share >= SHARE_MIN {
                    table.push(((from, record.node), share));
                }
            }
        }
        // Sorted once: a record's links come in no order of this table.
        let table: LiteMap<(u16, u16), f64> = table.into_iter().collect();
        // A member may report a neighbour whose own record has not arrived yet. It has no incoming links then.
        let ratio = |from, to| table.get(&(from, to)).copied().unwrap_or(0.0);
        Links::measured(usize::from(last) + 1, ratio).ok()
    }
}

impl Known {
    /// What a newer record of this member changes. A weak link comes and goes, so changed neighbours are not news each time.
    fn news(&mut self, now: Instant, record: &Record) -> News {
        let known = &self.record;
        let states = |record: &Record| -> Vec<(u64, State)> {
            let transfers = record.transfers.iter();
            transfers.map(|(id, state, _)| (*id, *state)).collect()
        };
        let same = (known.life, known.roles) == (record.life, record.roles)
            && states(known) == states(record);
        let dead = now.saturating_since(self.born) >= LIFETIME;
        let moved = known.links.len() != record.links.len();
        match !same || dead || moved && self.damping.allows(now) {
            true => News::Member,
            false => News::Renewed,
        }
    }
}

impl Roles {
    fn encode(self) -> u8 {
        u8::from(self.sends) | u8::from(self.receives) << 1 | u8::from(self.leaves) << 2
    }

    fn decode(octet: u8) -> Roles {
        Roles {
            sends: octet & 1 != 0,
            receives: octet & 2 != 0,
            leaves: octet & 4 != 0,
        }
    }
}

impl State {
    /// The state's octet in a record and the number behind it: batches, or the reason of a failed member.
    fn encode(self, batches: u32) -> (u8, u32) {
        match self {
            State::Preparing => (0, batches),
            State::Receiving => (1, batches),
            State::Complete => (2, batches),
            State::Failed(reason) => (3, reason.code()),
            State::Offering => (4, batches),
            State::Working => (5, batches),
        }
    }

    /// Decodes a state and its batches; `None` for a state of a later version.
    fn decode(octet: u8, number: u32) -> Option<(State, u32)> {
        let state = match octet {
            0 => State::Preparing,
            1 => State::Receiving,
            2 => State::Complete,
            3 => return Some((State::Failed(Reason::of(number)), 0)),
            4 => State::Offering,
            5 => State::Working,
            _ => return None,
        };
        Some((state, number))
    }
}

impl Record {
    /// Its state and number of batches in a transfer, if it takes part.
    pub fn transfer(&self, id: u64) -> Option<(State, u32)> {
        let found = self
            .transfers
            .iter()
            .find(|(transfer, _, _)| *transfer == id);
        found.map(|(_, state, batches)| (*state, *batches))
    }

    /// `node 2, life 8, number 4, largest SDU 2, roles 1`, then name, transfers (`transfer 8, state 1, batches 4`; of one that has failed, why in
    /// place of the batches) and links (`from 2, share 1`), each with its count before it.
    fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(128);
        octets.extend_from_slice(&self.node.to_be_bytes());
        octets.extend_from_slice(&self.life.to_be_bytes());
        octets.extend_from_slice(&self.number.to_be_bytes());
        octets.extend_from_slice(&self.frame_max.to_be_bytes());
        octets.push(self.roles.encode());
        octets.push(self.name.len() as u8);
        octets.extend_from_slice(self.name.as_bytes());
        let transfers = self.transfers.iter().take(TRANSFERS_MAX);
        octets.push(transfers.len() as u8);
        for (id, state, batches) in transfers {
            let (state, number) = state.encode(*batches);
            octets.extend_from_slice(&id.to_be_bytes());
            octets.push(state);
            octets.extend_from_slice(&number.to_be_bytes());
        }
        let links = self.links.iter().take(LINKS_MAX);
        octets.push(links.len() as u8);
        for (from, share) in links {
            octets.extend_from_slice(&from.to_be_bytes());
            octets.push((share * 255.0).round().clamp(0.0, 255.0) as u8);
        }
        octets
    }

    /// The record in these octets; `None` if they are malformed or too many.
    fn decode(octets: &[u8]) -> Option<Record> {
        fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = octets.split_first_chunk::<N>()?;
            *octets = rest;
            Some(*head)
        }
        let mut rest = octets;
        let node = u16::from_be_bytes(take(&mut rest)?);
        let life = u64::from_be_bytes(take(&mut rest)?);
        let number = u32::from_be_bytes(take(&mut rest)?);
        let frame_max = u16::from_be_bytes(take(&mut rest)?);
        let [roles, name] = take(&mut rest)?;
        let (name, after) = rest.split_at_checked(usize::from(name))?;
        rest = after;
        // Names appear on terminals, so control characters are removed.
        let name = String::from_utf8_lossy(name).replace(char::is_control, "?");
        let [count] = take(&mut rest)?;
        let mut transfers = Vec::new();
        for _ in 0..count {
            let id = u64::from_be_bytes(take(&mut rest)?);
            let [state] = take(&mut rest)?;
            let number = u32::from_be_bytes(take(&mut rest)?);
            if let Some((state, batches)) = State::decode(state, number) {
                transfers.push((id, state, batches));
            }
        }
        let [count] = take(&mut rest)?;
        let mut links = Vec::new();
        for _ in 0..count {
            let from = u16::from_be_bytes(take(&mut rest)?);
            let [share] = take(&mut rest)?;
            links.push((from, f64::from(share) / 255.0));
        }
        let record = Record {
            node,
            life,
            number,
            name,
            roles: Roles::decode(roles),
            frame_max,
            transfers,
            links,
        };
        rest.is_empty().then_some(record)
    }
}

/// Writes `age 1 (tenths of a second), length 2`, and a record with its signature. `None` if there is no room.
fn put(raw: &[u8], age: Duration, to: &mut [u8]) -> Option<usize> {
    let tenths = (age.nanos() / 100_000_000).min(255) as u8;
    let length = u16::try_from(raw.len()).ok()?.to_be_bytes();
    let whole = [&[tenths][..], &length, raw].concat();
    to.get_mut(..whole.len())?.copy_from_slice(&whole);
    Some(whole.len())
}

/// The record at the front of `octets`, and the rest.
pub fn read(octets: &[u8]) -> Option<(Received<'_>, &[u8])> {
    let (&[tenths, l0, l1], rest) = octets.split_first_chunk()?;
    let (raw, rest) = rest.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
    let age = Duration::from_millis(u64::from(tenths) * 100);
    Some((Received { raw, age }, rest))
}

#[cfg(test)]
mod tests;
