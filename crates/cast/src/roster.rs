//! Who is in the group: one record for each member, spread from neighbour to neighbour.
//!
//! A record says what its member does, how far it is with each transfer, and whom it hears how well. Members pass on
//! what they have not passed on yet, and everything again from time to time, as link-state routing does: a newer
//! number replaces an older one, a record that nobody renews dies, and a member that was restarted and hears its own
//! former record goes on with a higher number (RFC 2328, 13.4).

use std::collections::BTreeMap;

use chappe_core::{Duration, Instant};
use chappe_pacifier::Links;

use crate::reason::Reason;

/// Numbers of members go up to this: Pacifier's frames name a node by one octet.
pub const MEMBER_MAX: u16 = 255;
/// A record that was not renewed for so long is dead. Members renew theirs each second.
pub const LIFETIME: Duration = Duration::from_secs(10);
/// Octets of a name.
const NAME_MAX: usize = 32;
/// Most transfers and links in a record.
const TRANSFERS_MAX: usize = 8;
const LINKS_MAX: usize = 255;
/// Links that are heard less often than this carry nothing.
const SHARE_MIN: f64 = 0.02;

/// What a member does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// It offers files.
    pub sends: bool,
    /// It installs files.
    pub receives: bool,
    /// It is about to go.
    pub leaves: bool,
}

/// How far a member is with a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It collects the manifest.
    Preparing,
    /// It collects batches.
    Receiving,
    /// The files are there.
    Complete,
    /// It cannot have the files.
    Failed(Reason),
    /// It is the sender, and offers the files.
    Offering,
}

/// One member's word.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The member's number.
    pub node: u16,
    /// Its life: another number after a restart.
    pub life: u64,
    /// Goes up with every change.
    pub number: u32,
    /// The host's name.
    pub name: String,
    /// What it does.
    pub roles: Roles,
    /// For each transfer that it takes part in: its name, how far it is, and batches that it has.
    pub transfers: Vec<(u64, State, u32)>,
    /// Whom it hears, and the share of their broadcasts that it hears.
    pub links: Vec<(u16, f64)>,
}

/// The members that are known.
#[derive(Debug)]
pub struct Roster {
    own: Record,
    others: BTreeMap<u16, Known>,
    /// Where passing on goes on.
    next: u16,
    /// Own records of another life with a higher number.
    contested: u32,
}

#[derive(Debug)]
struct Known {
    record: Record,
    /// When its member wrote it.
    born: Instant,
    /// Whether it was passed on.
    told: bool,
}

/// What a record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing.
    None,
    /// It only renews.
    Renewed,
    /// A member is new, lives anew, or has another role or state.
    Member,
}

impl Roster {
    /// Only this member.
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

    /// This member's record, to be changed; [`renew`](Self::renew) makes the change known.
    pub fn own(&mut self) -> &mut Record {
        &mut self.own
    }

    /// This member's record has changed, or is renewed.
    pub fn renew(&mut self) {
        self.own.number = self.own.number.saturating_add(1);
    }

    /// The records of the other members that are alive.
    pub fn others(&self, now: Instant) -> impl Iterator<Item = &Record> + '_ {
        self.all(now).filter(|record| !record.roles.leaves)
    }

    /// As [`others`](Self::others), with those who have said goodbye.
    pub fn all(&self, now: Instant) -> impl Iterator<Item = &Record> + '_ {
        let alive = move |known: &&Known| now.saturating_since(known.born) < LIFETIME;
        self.others
            .values()
            .filter(alive)
            .map(|known| &known.record)
    }

    /// The record of a member that is alive.
    pub fn get(&self, now: Instant, node: u16) -> Option<&Record> {
        self.others(now).find(|record| record.node == node)
    }

    /// How often a member of this number but of another life has contradicted: two have one number.
    pub fn contested(&self) -> u32 {
        self.contested
    }

    /// Takes in a record that was written `age` ago.
    pub fn learn(&mut self, now: Instant, record: Record, age: Duration) -> News {
        if record.node == self.own.node {
            if record.life != self.own.life && record.number >= self.own.number {
                // Of a former life, most likely; two members with one number do this for ever.
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

    /// Writes records to `to`: the own one, those that were not passed on yet, then others in turn. Gives the length.
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

    /// The delivery ratio of every link, by the word of those who hear.
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
        // Somebody may hear a member whose own record has not come yet: it is not part of the network.
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
    /// The state's octet in a record, and the four behind it: batches, or why a member has failed, which has no batches to tell of.
    fn encode(self, batches: u32) -> (u8, u32) {
        match self {
            State::Preparing => (0, batches),
            State::Receiving => (1, batches),
            State::Complete => (2, batches),
            State::Failed(reason) => (3, reason.code()),
            State::Offering => (4, batches),
        }
    }

    /// The state and the batches of a record; `None` for a state of a later version.
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
    /// How far it is with a transfer.
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
        // What is shown on terminals has no control characters.
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

    /// News goes down a line of members, the newest wins, and what nobody renews dies.
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
