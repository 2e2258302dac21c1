//! The roster of the group: one record for each member, flooded from neighbour to neighbour.
//!
//! A record contains its member's role, its progress in each transfer, and the delivery ratios of its incoming links.
//! Flooding works as in link-state routing. Members forward new records at once and all records from time to time. A
//! higher sequence number replaces a lower one, and a record that is not renewed expires. A restarted member that receives
//! its own former record continues with a higher number (RFC 2328, 13.4).

use std::collections::BTreeMap;

use chappe_core::{Duration, Instant};
use chappe_pacifier::Links;

use crate::reason::Reason;

/// Largest member number: Pacifier's frames have one octet for it.
pub const MEMBER_MAX: u16 = 255;
/// Lifetime of a record without renewal. Members renew theirs each second.
pub const LIFETIME: Duration = Duration::from_secs(10);
/// Longest name in octets.
const NAME_MAX: usize = 32;
/// Largest number of transfers and of links in a record.
pub const TRANSFERS_MAX: usize = 8;
const LINKS_MAX: usize = 255;
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
    /// It has all files.
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
    /// For each transfer that it takes part in: identifier, state, and number of batches received.
    pub transfers: Vec<(u64, State, u32)>,
    /// Its incoming links: neighbour and delivery ratio.
    pub links: Vec<(u16, f64)>,
}

/// The records of all known members.
#[derive(Debug)]
pub struct Roster {
    own: Record,
    others: BTreeMap<u16, Known>,
    /// The member with which the next round of forwarding starts.
    next: u16,
    /// Records received under this member's number, of another life and with a higher sequence number.
    contested: u32,
}

#[derive(Debug)]
struct Known {
    record: Record,
    /// When the member wrote it.
    born: Instant,
    /// Whether it has been forwarded.
    told: bool,
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
    /// A roster with this member only. Longer names are cut to 32 octets.
    pub fn new(node: u16, name: &str, roles: Roles) -> Roster {
        let mut name = name.to_owned();
        while name.len() > NAME_MAX {
            name.pop();
        }
        Roster {
            own: Record {
                node,
                life: 0,
                number: 1,
                name,
                roles,
                transfers: Vec::new(),
                links: Vec::new(),
            },
            others: BTreeMap::new(),
            next: 0,
            contested: 0,
        }
    }

    /// This member's record. After a change, call [`renew`](Self::renew).
    pub fn own(&mut self) -> &mut Record {
        &mut self.own
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

    /// Handles a received record that was written `age` ago.
    pub fn learn(&mut self, now: Instant, record: Record, age: Duration) -> News {
        if record.node == self.own.node {
            if record.life != self.own.life && record.number >= self.own.number {
                // Most likely a record of a former life. Two members with one number would contradict each other forever.
                self.own.number = record.number.saturating_add(1);
                self.contested = self.contested.saturating_add(1);
                return News::Member;
            }
            return News::None;
        }
        if record.node > MEMBER_MAX || age >= LIFETIME {
            return News::None;
        }
        let born = now.saturating_before(age);
        let news = match self.others.get(&record.node) {
            Some(known) => {
                // An expired record no longer blocks lower numbers: a restarted member begins at 1.
                let dead = now.saturating_since(known.born) >= LIFETIME;
                if record.number <= known.record.number && !dead {
                    return News::None;
                }
                let known = &known.record;
                let states = |record: &Record| -> Vec<(u64, State)> {
                    record
                        .transfers
                        .iter()
                        .map(|(id, state, _)| (*id, *state))
                        .collect()
                };
                let same = (known.life, known.roles) == (record.life, record.roles)
                    && states(known) == states(&record)
                    && known.links.len() == record.links.len();
                if same && !dead {
                    News::Renewed
                } else {
                    News::Member
                }
            }
            None => News::Member,
        };
        let node = record.node;
        let told = false;
        self.others.insert(node, Known { record, born, told });
        news
    }

    /// Writes records to `to`: this member's, then those not forwarded yet, then the others in turn. Returns the length.
    pub fn write(&mut self, now: Instant, to: &mut [u8]) -> usize {
        let mut len = self.own.write(Duration::ZERO, to).unwrap_or(0);
        self.others
            .retain(|_, known| now.saturating_since(known.born) < LIFETIME);
        let after = self
            .others
            .range(self.next..)
            .chain(self.others.range(..self.next));
        let mut order: Vec<(bool, u16)> = after.map(|(&node, known)| (known.told, node)).collect();
        order.sort_by_key(|(told, _)| *told);
        for (_, node) in order {
            let Some(known) = self.others.get_mut(&node) else {
                continue;
            };
            let age = now.saturating_since(known.born);
            let Some(written) = to
                .get_mut(len..)
                .and_then(|rest| known.record.write(age, rest))
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
        let mut table = BTreeMap::new();
        let mut last = self.own.node;
        for record in self.others(now).chain([&self.own]) {
            last = last.max(record.node);
            for &(from, share) in &record.links {
                if from <= MEMBER_MAX && share >= SHARE_MIN {
                    table.insert((from, record.node), share);
                }
            }
        }
        // A member may report a neighbour whose own record has not arrived yet. It has no incoming links then.
        let ratio = |from, to| table.get(&(from, to)).copied().unwrap_or(0.0);
        Links::measured(usize::from(last) + 1, ratio).ok()
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

    /// `node 2, life 8, number 4, age 1 (tenths of a second), roles 1`, then name, transfers (`transfer 8, state 1, batches 4`; of
    /// one that has failed, why in place of the batches) and links (`from 2, share 1`), each with its count before it. `None` if
    /// there is no room.
    fn write(&self, age: Duration, to: &mut [u8]) -> Option<usize> {
        let mut octets = Vec::with_capacity(128);
        octets.extend_from_slice(&self.node.to_be_bytes());
        octets.extend_from_slice(&self.life.to_be_bytes());
        octets.extend_from_slice(&self.number.to_be_bytes());
        let tenths = age.nanos() / 100_000_000;
        octets.push(tenths.min(255) as u8);
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
        to.get_mut(..octets.len())?.copy_from_slice(&octets);
        Some(octets.len())
    }

    /// The record at the front of `octets`, its age, and the rest.
    pub fn read(octets: &[u8]) -> Option<(Record, Duration, &[u8])> {
        fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = octets.split_first_chunk::<N>()?;
            *octets = rest;
            Some(*head)
        }
        let mut rest = octets;
        let node = u16::from_be_bytes(take(&mut rest)?);
        let life = u64::from_be_bytes(take(&mut rest)?);
        let number = u32::from_be_bytes(take(&mut rest)?);
        let [tenths, roles, name] = take(&mut rest)?;
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
            transfers,
            links,
        };
        Some((record, Duration::from_millis(u64::from(tenths) * 100), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::{Purpose, Seed};

    fn record(node: u16, number: u32) -> Record {
        Record {
            node,
            life: 5,
            number,
            name: "router".into(),
            roles: Roles {
                receives: true,
                ..Roles::default()
            },
            transfers: vec![
                (9, State::Receiving, 100),
                (10, State::Failed(Reason::NameTaken), 0),
            ],
            links: vec![(0, 1.0), (7, 0.2)],
        }
    }

    #[test]
    fn records_round_trip_and_noise_never_panics() {
        let mut octets = [0; 300];
        let age = Duration::from_millis(1200);
        let len = record(3, 4).write(age, &mut octets).unwrap();
        let (read, read_age, rest) = Record::read(&octets[..len]).unwrap();
        assert_eq!((read, read_age, rest.len()), (record(3, 4), age, 0));
        assert!((0..len).all(|len| Record::read(&octets[..len]).is_none()));
        let mut random = Seed(1).stream(Purpose::Trial(0));
        for _ in 0..5000 {
            let mut noise = [0; 100];
            random.fill(&mut noise);
            Record::read(&noise);
        }
    }

    /// Records travel along a line of members, the newest wins, and a record that is not renewed expires.
    #[test]
    fn records_spread_and_expire() {
        let members = 6;
        let mut line: Vec<Roster> = (0..members)
            .map(|node| Roster::new(node, "x", Roles::default()))
            .collect();
        let at = |millis| Instant::from_millis(1000 + millis);
        let mut frame = [0; 1400];
        for round in 0..members {
            for member in 0..usize::from(members) {
                line[member].renew();
                let now = at(u64::from(round) * 100);
                let len = line[member].write(now, &mut frame);
                for near in [member.wrapping_sub(1), member + 1] {
                    let mut rest = &frame[..len];
                    while let (Some(listener), Some((record, age, after))) =
                        (line.get_mut(near), Record::read(rest))
                    {
                        listener.learn(now, record, age);
                        rest = after;
                    }
                }
            }
        }
        for (node, roster) in (0..).zip(&line) {
            assert_eq!(roster.others(at(600)).count(), 5);
            assert!(roster.get(at(600), node).is_none());
            assert_eq!(roster.others(at(11_500)).count(), 0);
        }
    }

    /// Goal: a neighbour whose frames arrive is not declared gone because its records got lost. One that is only heard of
    /// expires, and so does one of which only another life is heard.
    #[test]
    fn a_neighbour_that_is_heard_lives() {
        for (life, there) in [(5, true), (6, false)] {
            let mut roster = Roster::new(1, "x", Roles::default());
            roster.learn(Instant::ZERO, record(3, 1), Duration::ZERO);
            roster.learn(Instant::ZERO, record(4, 1), Duration::ZERO);
            roster.hear(3, life, Instant::from_millis(9000));
            let now = Instant::from_millis(12_000);
            assert_eq!(roster.get(now, 3).is_some(), there);
            assert!(roster.get(now, 4).is_none());
        }
    }

    #[test]
    fn a_restarted_member_supersedes_its_former_record() {
        let mut roster = Roster::new(3, "x", Roles::default());
        roster.own().life = 6;
        assert_eq!(
            roster.learn(Instant::ZERO, record(3, 50), Duration::ZERO),
            News::Member
        );
        assert_eq!((roster.own().number, roster.contested()), (51, 1));
        assert_eq!(
            roster.learn(Instant::ZERO, record(3, 50), Duration::ZERO),
            News::None
        );
    }

    #[test]
    fn links_are_what_receivers_report() {
        let mut roster = Roster::new(1, "x", Roles::default());
        roster.own().links = vec![(3, 0.5), (9, 0.9)];
        roster.learn(Instant::ZERO, record(3, 1), Duration::ZERO);
        let links = roster.links(Instant::ZERO).unwrap();
        assert_eq!(links.nodes(), 4);
        assert_eq!(
            (links.ratio(3, 1), links.ratio(0, 3), links.ratio(1, 3)),
            (0.5, 1.0, 0.0)
        );
    }
}
