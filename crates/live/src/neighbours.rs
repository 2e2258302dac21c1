//! The neighbour table: liveness, location, replay windows and delivery ratios.

use std::collections::BTreeMap;

use chappe_core::{Address, DropReason, Duration, Instant, Stream};

use crate::frame::{Header, Kind};
use crate::hello::{self, Entry};
use crate::queue::Location;
use crate::seal::{GroupKey, Novelty, Opener, Window, hello_epoch};

/// Largest number of neighbours. The one unheard for longest makes room. Only members of the group, or recordings of
/// their frames, get an entry.
const NEIGHBOURS_MAX: usize = 256;

/// A node unheard for this long is no neighbour any more: five hellos at the usual interval.
const SILENCE: Duration = Duration::from_secs(5);

/// The delivery ratio is taken over the last one to two times this many broadcasts.
const TALLY: u32 = 256;

/// A neighbour in [`Statistics`](crate::Statistics).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The address of the neighbour.
    pub address: Address,
    /// The random number of its life; it changes with each restart.
    pub life: u64,
    /// When its last frame arrived.
    pub heard: Instant,
    /// The share of its broadcasts that arrive here, 0 to 1, as measured here.
    pub from: f64,
    /// The share of our broadcasts that arrive there, 0 to 1, as it reports; `None` before it trusts us.
    pub to: Option<f64>,
    /// Broadcasts that it has sent in this life, by the counter of the latest that arrived.
    pub sent: u64,
}

/// All nodes that were heard, trusted or not.
#[derive(Debug)]
pub struct Neighbours {
    key: GroupKey,
    me: u16,
    /// The challenge that a life must name to be trusted.
    challenge: u64,
    random: Stream,
    known: BTreeMap<u16, Peer>,
}

#[derive(Debug)]
struct Peer {
    endpoint: Location,
    heard: Instant,
    /// The life that has proved itself.
    current: Option<Life>,
    /// A life that has not proved itself yet.
    candidate: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    opener: Opener,
    challenge: u64,
    /// The counter of its latest hello.
    newest: u64,
}

#[derive(Debug)]
struct Life {
    opener: Opener,
    challenge: u64,
    broadcasts: Window,
    unicasts: Window,
    /// Broadcasts received, and broadcasts sent by the gaps in their counters.
    tally: (u32, u32),
    /// The share of our broadcasts that it receives, in 1/255, as it reports.
    reported: Option<u8>,
}

/// The result of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// A life that was trusted before.
    Known,
    /// A life that has just proved itself.
    Proved {
        /// Whether it replaces an older life of the same node.
        former: bool,
    },
    /// A life without proof. It needs our hello first.
    Unproved,
    /// An invalid, forged or repeated hello.
    Dropped(DropReason),
}

impl Neighbours {
    /// An empty table. `random` must be seeded from the kernel, since the challenge must be unpredictable.
    pub fn new(key: GroupKey, me: u16, mut random: Stream) -> Neighbours {
        Neighbours {
            key,
            me,
            challenge: random.next_u64(),
            random,
            known: BTreeMap::new(),
        }
    }

    /// Handles a hello that arrived from `at`.
    pub fn hello(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &mut [u8],
    ) -> HelloOutcome {
        let (from, me, challenge) = (header.from, self.me, self.challenge);
        let Some(epoch) = hello_epoch(frame) else {
            return HelloOutcome::Dropped(DropReason::Malformed);
        };
        let peer = self.known.get_mut(&from);
        let current = peer.and_then(|peer| peer.current.as_mut());
        if let Some(life) = current.filter(|life| life.opener.epoch() == epoch) {
            let Some(body) = life.opener.open(header, frame) else {
                return HelloOutcome::Dropped(DropReason::Unauthentic);
            };
            let Some((theirs, mut entries)) = hello::parse(body) else {
                return HelloOutcome::Dropped(DropReason::Malformed);
            };
            let ours = |entry: &Entry| (entry.node, entry.challenge) == (me, challenge);
            let reported = entries.find(ours).map(|entry| entry.heard);
            let novelty = life.count(header.counter);
            if novelty != Novelty::New {
                return HelloOutcome::Dropped(DropReason::Duplicate);
            }
            // An older one may be a recording of a hello that was lost here.
            if life.is_latest(header.counter, novelty) {
                life.challenge = theirs;
                life.reported = reported.filter(|&heard| heard > 0).or(life.reported);
                self.touch(now, from, at);
            }
            return HelloOutcome::Known;
        }
        let opener = Opener::new(&self.key, from, epoch);
        let Some(body) = opener.open(header, frame) else {
            return HelloOutcome::Dropped(DropReason::Unauthentic);
        };
        let Some((theirs, mut entries)) = hello::parse(body) else {
            return HelloOutcome::Dropped(DropReason::Malformed);
        };
        let ours = |entry: &Entry| (entry.node, entry.challenge) == (me, challenge);
        let proof = entries.find(ours).map(|entry| entry.heard);
        let known = self.known.get(&from);
        let candidate = known.and_then(|peer| peer.candidate.as_ref());
        let old = |of: &&Candidate| of.opener.epoch() == epoch && header.counter <= of.newest;
        if candidate.filter(old).is_some() {
            return HelloOutcome::Dropped(DropReason::Duplicate);
        }
        self.make_room(from);
        let peer = self.known.entry(from).or_insert_with(|| Peer {
            endpoint: at,
            heard: now,
            current: None,
            candidate: None,
        });
        if proof.is_none() {
            peer.candidate = Some(Candidate {
                opener,
                challenge: theirs,
                newest: header.counter,
            });
            if peer.current.is_none() {
                (peer.endpoint, peer.heard) = (at, now);
            }
            return HelloOutcome::Unproved;
        }
        let former = peer.current.is_some();
        let mut life = Life::new(opener, theirs);
        life.count(header.counter);
        // It names our challenge. It trusts us only once it reports how well it hears us.
        life.reported = proof.filter(|&heard| heard > 0);
        (peer.current, peer.candidate) = (Some(life), None);
        (peer.endpoint, peer.heard) = (at, now);
        if former {
            // Recordings of the former life name the old challenge and would replace the new life.
            self.challenge = self.random.next_u64();
        }
        HelloOutcome::Proved { former }
    }

    /// Opens a frame of a trusted neighbour, and reports whether its counter is new. Unicast frames pass as new here:
    /// [`note`](Self::note) judges their number, which all attempts share.
    pub fn open<'a>(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &'a mut [u8],
    ) -> Result<(&'a [u8], Novelty), DropReason> {
        let peer = self.known.get_mut(&header.from);
        let peer = peer.ok_or(DropReason::Stale)?;
        let life = peer.current.as_mut().ok_or(DropReason::Stale)?;
        if life.opener.epoch() as u16 != header.epoch {
            return Err(DropReason::Stale);
        }
        let sealed = life.opener.open(header, frame);
        let sealed = sealed.ok_or(DropReason::Unauthentic)?;
        let novelty = match header.kind {
            Kind::Broadcast | Kind::Hello => life.count(header.counter),
            Kind::Unicast => Novelty::New,
            // A replayed confirmation confirms nothing, since its frame waits no longer.
            Kind::Confirmation => Novelty::New,
        };
        if header.kind == Kind::Broadcast && life.is_latest(header.counter, novelty) {
            (peer.endpoint, peer.heard) = (at, now);
        }
        Ok((sealed, novelty))
    }

    /// Notes unicast frame `number` of a trusted neighbour.
    pub fn note(&mut self, from: u16, number: u32) -> Novelty {
        let peer = self.known.get_mut(&from);
        let life = peer.and_then(|peer| peer.current.as_mut());
        life.map_or(Novelty::Forgotten, |life| {
            life.unicasts.note(u64::from(number))
        })
    }

    /// The trusted life of `from`.
    pub fn life(&self, from: u16) -> Option<u64> {
        let peer = self.known.get(&from)?;
        peer.current.as_ref().map(|life| life.opener.epoch())
    }

    /// Where `to` was last heard.
    pub fn endpoint(&self, to: u16) -> Option<Location> {
        Some(self.known.get(&to)?.endpoint)
    }

    /// Writes the body of our hello; returns its length.
    pub fn write_hello(&self, now: Instant, body: &mut [u8]) -> usize {
        let near = |peer: &Peer| now.saturating_since(peer.heard) < SILENCE;
        let near = self.known.iter().filter(|(_, peer)| near(peer));
        let entries = near.flat_map(|(&node, peer)| {
            let current = peer.current.as_ref().map(|life| Entry {
                node,
                challenge: life.challenge,
                heard: (life.share() * 255.0).round() as u8,
            });
            let candidate = peer.candidate.as_ref().map(|candidate| Entry {
                node,
                challenge: candidate.challenge,
                heard: 0,
            });
            [current, candidate].into_iter().flatten()
        });
        hello::emit(self.challenge, entries, body)
    }

    /// The trusted neighbours that are not silent.
    pub fn iter(&self, now: Instant) -> impl Iterator<Item = Neighbour> + '_ {
        self.known.iter().filter_map(move |(&node, peer)| {
            let life = peer.current.as_ref()?;
            let near = now.saturating_since(peer.heard) < SILENCE;
            near.then(|| Neighbour {
                address: Address::node(node),
                life: life.opener.epoch(),
                heard: peer.heard,
                from: life.share(),
                to: life.reported.map(|share| f64::from(share) / 255.0),
                sent: life.broadcasts.newest(),
            })
        })
    }

    fn touch(&mut self, now: Instant, from: u16, at: Location) {
        if let Some(peer) = self.known.get_mut(&from) {
            (peer.endpoint, peer.heard) = (at, now);
        }
    }

    fn make_room(&mut self, newcomer: u16) {
        if self.known.len() < NEIGHBOURS_MAX || self.known.contains_key(&newcomer) {
            return;
        }
        // Nodes without proof go first: recordings must not displace live neighbours.
        let age = |peer: &Peer| (peer.current.is_some(), peer.heard);
        let oldest = self.known.iter().min_by_key(|(_, peer)| age(peer));
        if let Some(node) = oldest.map(|(&node, _)| node) {
            self.known.remove(&node);
        }
    }
}

impl Life {
    fn new(opener: Opener, challenge: u64) -> Life {
        Life {
            opener,
            challenge,
            broadcasts: Window::default(),
            unicasts: Window::default(),
            tally: (0, 0),
            reported: None,
        }
    }

    /// Notes a broadcast. A gap in the counters means broadcasts that were lost, or are late.
    fn count(&mut self, counter: u64) -> Novelty {
        let newest = self.broadcasts.newest();
        let novelty = self.broadcasts.note(counter);
        if novelty == Novelty::New {
            let passed = match newest {
                0 => 1,
                newest => counter.saturating_sub(newest).min(u64::from(TALLY)) as u32,
            };
            let (heard, all) = self.tally;
            self.tally = (heard + 1, all + passed);
            if self.tally.1 >= 2 * TALLY {
                self.tally = (self.tally.0 / 2, self.tally.1 / 2);
            }
        }
        novelty
    }

    /// Whether a broadcast with this counter is new, and the latest of all. Only such a frame shows where its sender is: an
    /// older one may be the recording of a frame that was lost here.
    fn is_latest(&self, counter: u64, novelty: Novelty) -> bool {
        novelty == Novelty::New && counter == self.broadcasts.newest()
    }

    fn share(&self) -> f64 {
        let (heard, all) = self.tally;
        (f64::from(heard) / f64::from(all.max(1))).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Sealer;
    use chappe_core::{Purpose, Seed};
    use chappe_sys::Endpoint;

    const AT: Location = Location {
        port: 0,
        at: Endpoint::Ethernet([2; 6]),
    };
    const KEY: [u8; 32] = [5; 32];

    /// A node with its sealer.
    struct Node {
        sealer: Sealer,
        neighbours: Neighbours,
    }

    impl Node {
        fn new(me: u16, life: u64) -> Node {
            let random = Seed(life).stream(Purpose::Node(me.into()));
            let key = GroupKey::new(KEY);
            Node {
                sealer: Sealer::new(&key, me, life),
                neighbours: Neighbours::new(key, me, random),
            }
        }

        fn hello(&mut self) -> Vec<u8> {
            let mut frame = vec![0; 200];
            let clear = Kind::Hello.clear();
            let len = self
                .neighbours
                .write_hello(Instant::ZERO, &mut frame[clear..180]);
            let len = self.sealer.seal(Kind::Hello, len, &mut frame).unwrap();
            frame.truncate(len);
            frame
        }

        fn broadcast(&mut self) -> Vec<u8> {
            let mut frame = vec![0; 100];
            let len = self.sealer.seal(Kind::Broadcast, 9, &mut frame).unwrap();
            frame.truncate(len);
            frame
        }

        fn hear(&mut self, frame: &[u8]) -> HelloOutcome {
            let (mut frame, header) = (frame.to_vec(), Header::parse(frame).unwrap());
            self.neighbours
                .hello(Instant::ZERO, AT, &header, &mut frame)
        }

        fn take(&mut self, frame: &[u8]) -> Result<Novelty, DropReason> {
            let (mut frame, header) = (frame.to_vec(), Header::parse(frame).unwrap());
            let opened = self.neighbours.open(Instant::ZERO, AT, &header, &mut frame);
            opened.map(|(_, novelty)| novelty)
        }
    }

    /// Three hellos make two nodes trust each other. They accept no data before.
    #[test]
    fn a_life_proves_itself_by_naming_the_challenge() {
        let (mut a, mut b) = (Node::new(1, 10), Node::new(2, 20));
        let (first, data) = (a.hello(), a.broadcast());
        assert_eq!(b.take(&data), Err(DropReason::Stale));
        assert_eq!(b.hear(&first), HelloOutcome::Unproved);
        assert_eq!(b.take(&data), Err(DropReason::Stale));
        assert_eq!(a.hear(&b.hello()), HelloOutcome::Proved { former: false });
        assert_eq!(b.hear(&a.hello()), HelloOutcome::Proved { former: false });
        assert_eq!(b.take(&data), Ok(Novelty::New));
        assert_eq!(b.take(&data), Ok(Novelty::Seen));
        assert_eq!(
            (b.neighbours.life(1), a.neighbours.life(2)),
            (Some(10), Some(20))
        );
    }

    /// A replayed recording of a former life gains no trust and does not displace the present life.
    #[test]
    fn replayed_hellos_gain_no_trust() {
        let (mut a, mut b) = (Node::new(1, 10), Node::new(2, 20));
        let mut recorded = Vec::new();
        for _ in 0..3 {
            recorded.extend([a.hello(), b.hello()]);
            let [.., from_a, from_b] = &recorded[..] else {
                unreachable!()
            };
            let (from_a, from_b) = (from_a.clone(), from_b.clone());
            b.hear(&from_a);
            a.hear(&from_b);
        }
        assert_eq!(
            b.hear(&recorded[4]),
            HelloOutcome::Dropped(DropReason::Duplicate)
        );
        let mut again = Node::new(1, 11);
        assert_eq!(b.hear(&again.hello()), HelloOutcome::Unproved);
        again.hear(&b.hello());
        assert_eq!(
            b.hear(&again.hello()),
            HelloOutcome::Proved { former: true }
        );
        for frame in recorded.iter().filter(|frame| frame[2] == 1) {
            assert_eq!(b.hear(frame), HelloOutcome::Unproved);
        }
        assert_eq!(b.take(&a.broadcast()), Err(DropReason::Stale));
        assert_eq!(b.take(&again.broadcast()), Ok(Novelty::New));
        assert_eq!(b.hear(&again.hello()), HelloOutcome::Known);
    }

    /// Goal: a host without the key cannot draw a member's unicasts to itself. Method: it replays a frame that was heard, one
    /// that was lost, and a hello, from another endpoint.
    #[test]
    fn a_replayed_frame_moves_no_endpoint() {
        let (mut a, mut b) = (Node::new(1, 10), Node::new(2, 20));
        let early = a.hello();
        b.hear(&early);
        a.hear(&b.hello());
        b.hear(&a.hello());
        let (heard, lost, last) = (a.broadcast(), a.broadcast(), a.broadcast());
        b.take(&heard).unwrap();
        b.take(&last).unwrap();
        let stranger = Location {
            at: Endpoint::Ethernet([9; 6]),
            ..AT
        };
        for frame in [heard, lost] {
            let (mut octets, header) = (frame.clone(), Header::parse(&frame).unwrap());
            let opened = b
                .neighbours
                .open(Instant::ZERO, stranger, &header, &mut octets);
            assert!(opened.is_ok());
            assert_eq!(b.neighbours.endpoint(1), Some(AT));
        }
        let (mut octets, header) = (early.clone(), Header::parse(&early).unwrap());
        b.neighbours
            .hello(Instant::ZERO, stranger, &header, &mut octets);
        assert_eq!(b.neighbours.endpoint(1), Some(AT));
    }

    /// Goal: a recorded hello of a former life is answered once, not each time that it is sent.
    #[test]
    fn a_replayed_hello_of_a_stranger_is_a_duplicate() {
        let (mut a, mut b) = (Node::new(1, 10), Node::new(2, 20));
        let (first, second) = (a.hello(), a.hello());
        assert_eq!(b.hear(&first), HelloOutcome::Unproved);
        assert_eq!(b.hear(&second), HelloOutcome::Unproved);
        for again in [first, second] {
            let outcome = b.hear(&again);
            assert_eq!(outcome, HelloOutcome::Dropped(DropReason::Duplicate));
        }
        // The life that a recording belongs to still gets in.
        a.hear(&b.hello());
        assert_eq!(b.hear(&a.hello()), HelloOutcome::Proved { former: false });
    }

    #[test]
    fn lost_broadcasts_lower_the_delivery_ratio() {
        let (mut a, mut b) = (Node::new(1, 10), Node::new(2, 20));
        b.hear(&a.hello());
        a.hear(&b.hello());
        b.hear(&a.hello());
        for number in 0..4000 {
            let frame = a.broadcast();
            if number % 4 != 0 {
                b.take(&frame).unwrap();
            }
        }
        let seen: Vec<Neighbour> = b.neighbours.iter(Instant::ZERO).collect();
        assert_eq!(seen.len(), 1);
        assert!((seen[0].from - 0.75).abs() < 0.02, "{seen:?}");
        a.hear(&b.hello());
        let seen: Vec<Neighbour> = a.neighbours.iter(Instant::ZERO).collect();
        assert!((seen[0].to.unwrap() - 0.75).abs() < 0.02, "{seen:?}");
        assert_eq!(b.neighbours.iter(Instant::from_millis(6000)).count(), 0);
    }

    #[test]
    fn unauthentic_hellos_take_no_memory() {
        let mut node = Node::new(1, 10);
        for other in 0..1000 {
            let mut stranger = Node::new(other, 3);
            stranger.sealer = Sealer::new(&GroupKey::new([6; 32]), other, 3);
            let greeting = node.hear(&stranger.hello());
            assert_eq!(greeting, HelloOutcome::Dropped(DropReason::Unauthentic));
        }
        assert!(node.neighbours.known.is_empty());
        // Members take memory, up to a limit.
        for other in 2..1000 {
            node.hear(&Node::new(other, 3).hello());
        }
        assert_eq!(node.neighbours.known.len(), NEIGHBOURS_MAX);
    }
}
