//! The neighbour table: liveness, location, replay windows and delivery ratios. Their keys come from the [`exchange`](crate::exchange).

use std::collections::BTreeMap;
use std::collections::VecDeque;

use chappe_core::{Address, DropReason, Duration, Instant, Stream};

use crate::frame::{Header, Kind, epoch_and_serial};
use crate::hello::{self, Entry};
use crate::membership::Membership;
use crate::queue::Location;
use crate::seal::{Cipher, Novelty, Pair, Window};
use crate::sessions::{Allowance, Order, Sessions};

/// Largest number of neighbours. The one unheard for longest makes room. Only members of the group, or recordings of
/// their frames, get an entry.
const NEIGHBOURS_MAX: usize = 256;

/// A node unheard for this long is no neighbour any more: five hellos at the usual interval.
pub const SILENCE: Duration = Duration::from_secs(5);

/// A session that has brought no key after this time is agreed on anew: the other end may have forgotten it.
const KEYLESS: Duration = Duration::from_secs(3);

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

/// All members that were heard, trusted or not.
#[derive(Debug)]
pub struct Neighbours {
    pub(crate) membership: Membership,
    pub(crate) me: u16,
    /// The life of this node.
    pub(crate) epoch: u64,
    pub(crate) random: Stream,
    pub(crate) known: BTreeMap<u16, Peer>,
    /// Handshakes and keys to be sent.
    pub(crate) orders: VecDeque<Order>,
    /// Handshakes that may still be computed now.
    pub(crate) allowance: Allowance,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub endpoint: Location,
    pub heard: Instant,
    /// The life that has proved itself.
    pub life: Option<Life>,
    pub sessions: Sessions,
}

/// The time between two restarts of a neighbour.
#[derive(Debug)]
pub(crate) struct Life {
    pub epoch: u64,
    /// The keys of the session with it, and since when.
    pub pair: (Pair, Instant),
    /// Those of the session before, for frames under way, and until when.
    pub former: Option<(Pair, Instant)>,
    /// The keys of its broadcasts that it has given to this node, the newest last.
    pub keys: Vec<(u8, Cipher)>,
    /// The newest counter of the frames that brought keys.
    pub newest_key: u64,
    /// The generation of this node's key that it has confirmed.
    pub given: Option<u8>,
    /// When this node's key is given again, and how often it was.
    pub give_at: (Instant, u32),
    broadcasts: Window,
    unicasts: Window,
    /// The largest counter that it has proved by a hello, and the tally then.
    proved: (u64, (u32, u32)),
    /// How often the window was moved back to it.
    rewound: u64,
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
    /// The same, of a node with an older list of members.
    KnownBehind,
    /// A life without proof. If it is its turn to begin a handshake, it needs our hello first.
    Unproved {
        /// Whether it waits for our hello.
        waits: bool,
    },
    /// A node with an older list of members. Nothing of it was checked.
    Behind,
    /// An invalid, forged or repeated hello.
    Dropped(DropReason),
}

impl Neighbours {
    /// An empty table for node `me` in its life `epoch`. `random` must be seeded from the kernel.
    pub fn new(membership: Membership, me: u16, epoch: u64, random: Stream) -> Neighbours {
        Neighbours {
            membership,
            me,
            epoch,
            random,
            known: BTreeMap::new(),
            orders: VecDeque::new(),
            allowance: Allowance::default(),
        }
    }

    /// Takes over a newer list of members: who is not in it, or has another key in it, is forgotten.
    pub fn join(&mut self, membership: Membership) {
        let old = &self.membership.members;
        let stays =
            |node: &u16| old.contains_key(node) && old.get(node) == membership.members.get(node);
        self.known.retain(|node, _| stays(node));
        for peer in self.known.values_mut() {
            // Those that are under way name the old list.
            peer.sessions = Sessions::default();
        }
        self.orders.clear();
        self.membership = membership;
    }

    /// Handles a hello that arrived from `at`.
    pub fn hello(
        &mut self,
        now: Instant,
        at: Location,
        header: &Header,
        frame: &mut [u8],
    ) -> HelloOutcome {
        let from = header.from;
        let Some((epoch, serial)) = epoch_and_serial(frame) else {
            return HelloOutcome::Dropped(DropReason::Malformed);
        };
        let stamped = |membership: &Membership, frame: &[u8]| {
            let frame = frame.get(..header.frame_len());
            frame.is_some_and(|frame| membership.key.has_stamped(frame))
        };
        let peer = self.known.get_mut(&from);
        if let Some(peer) = peer
            && let Some(life) = peer.life.as_ref().filter(|life| life.epoch == epoch)
        {
            if life.key(header.generation()).is_some() {
                return match peer.hello(now, at, self.me, header, frame) {
                    Ok(()) if serial < self.membership.serial => HelloOutcome::KnownBehind,
                    Ok(()) => HelloOutcome::Known,
                    Err(why) => HelloOutcome::Dropped(why),
                };
            }
            // Its key is on the way, or was lost until it gave up.
            let keyless = life.keys.is_empty() && now >= life.pair.1 + KEYLESS;
            if stamped(&self.membership, frame) {
                peer.heard = now;
                if keyless && self.begins(from, epoch) {
                    self.begin(now, at, from);
                }
            }
            return HelloOutcome::Dropped(DropReason::Stale);
        }
        if serial < self.membership.serial {
            return HelloOutcome::Behind;
        }
        let is_member = self.membership.members.contains_key(&from);
        if serial > self.membership.serial || !is_member || !stamped(&self.membership, frame) {
            return HelloOutcome::Dropped(DropReason::Unauthentic);
        }
        let begins = self.begins(from, epoch);
        self.peer(now, at, from);
        if begins {
            self.begin(now, at, from);
        }
        HelloOutcome::Unproved { waits: !begins }
    }

    /// Whether it is this node that begins handshakes with `other`: the one with the lower number, and of two nodes with one number
    /// the one with the lower epoch.
    pub(crate) fn begins(&self, other: u16, epoch: u64) -> bool {
        (self.me, self.epoch) < (other, epoch)
    }

    /// The entry of a member, which is made if there is none.
    pub(crate) fn peer(&mut self, now: Instant, at: Location, from: u16) -> &mut Peer {
        self.make_room(from);
        let peer = self.known.entry(from).or_insert_with(|| Peer {
            endpoint: at,
            heard: now,
            life: None,
            sessions: Sessions::default(),
        });
        if peer.life.is_none() {
            (peer.endpoint, peer.heard) = (at, now);
        }
        peer
    }

    /// Opens a frame of a trusted neighbour, and reports whether its counter is new. Unicast frames pass as new here:
    /// [`note`](Self::note) judges their number, which all attempts share.
    pub fn open<'a>(
        &mut self,
        now: Instant,
        header: &Header,
        frame: &'a mut [u8],
    ) -> Result<(&'a [u8], Novelty), DropReason> {
        let peer = self.known.get_mut(&header.from).ok_or(DropReason::Stale)?;
        let life = peer.life.as_mut().ok_or(DropReason::Stale)?;
        if life.epoch as u16 != header.epoch {
            return Err(DropReason::Stale);
        }
        let sealed = match header.kind {
            Kind::Broadcast => {
                let key = life.key(header.generation()).ok_or(DropReason::Stale)?;
                key.open(header, frame)
            }
            _ => life.open(header, frame),
        };
        let sealed = sealed.ok_or(DropReason::Unauthentic)?;
        let novelty = match header.kind {
            Kind::Broadcast => life.count(header.counter),
            // A replayed confirmation confirms nothing, since its frame waits no longer.
            _ => Novelty::New,
        };
        if header.kind == Kind::Broadcast && life.is_latest(header.counter, novelty) {
            // Another neighbour could have made it, so it does not show where its sender is.
            peer.heard = now;
        }
        Ok((sealed, novelty))
    }

    /// Notes unicast frame `number` of a trusted neighbour. A new one shows where its sender is, since no other node can seal it.
    pub fn note(&mut self, now: Instant, at: Location, from: u16, number: u32) -> Novelty {
        let Some(peer) = self.known.get_mut(&from) else {
            return Novelty::Forgotten;
        };
        let Some(life) = &mut peer.life else {
            return Novelty::Forgotten;
        };
        let latest = u64::from(number) > life.unicasts.newest();
        let novelty = life.unicasts.note(u64::from(number));
        if latest && novelty == Novelty::New {
            (peer.endpoint, peer.heard) = (at, now);
        }
        novelty
    }

    /// The trusted life of `from`.
    pub fn life(&self, from: u16) -> Option<u64> {
        self.known.get(&from)?.life.as_ref().map(|life| life.epoch)
    }

    /// The keys of the session with `to`, and where it was last heard.
    pub fn session(&self, to: u16) -> Option<(&Pair, Location)> {
        let peer = self.known.get(&to)?;
        Some((&peer.life.as_ref()?.pair.0, peer.endpoint))
    }

    /// Writes the body of our hello, which gets this counter; returns its length.
    pub fn write_hello(&self, now: Instant, counter: u64, body: &mut [u8]) -> usize {
        let near = self.known.iter().filter(|(_, peer)| peer.is_near(now));
        let entries = near.filter_map(|(&node, peer)| {
            let life = peer.life.as_ref()?;
            let heard = (life.share() * 255.0).round() as u8;
            Some(Entry {
                node,
                proof: life.pair.0.prove(self.epoch, counter, heard),
                heard,
            })
        });
        hello::emit(entries, body)
    }

    /// The trusted neighbours that are not silent.
    pub fn iter(&self, now: Instant) -> impl Iterator<Item = Neighbour> + '_ {
        self.known.iter().filter_map(move |(&node, peer)| {
            let life = peer.life.as_ref()?;
            (peer.is_near(now) && !life.keys.is_empty()).then(|| Neighbour {
                address: Address::node(node),
                life: life.epoch,
                heard: peer.heard,
                from: life.share(),
                to: life.reported.map(|share| f64::from(share) / 255.0),
                sent: life.broadcasts.newest(),
            })
        })
    }

    /// Whether a trusted neighbour is not silent.
    pub fn is_near(&self, now: Instant, node: u16) -> bool {
        let peer = self.known.get(&node);
        peer.is_some_and(|peer| peer.life.is_some() && peer.is_near(now))
    }

    /// How often a neighbour's hello showed that broadcasts in its name were forged: they had shut out its own.
    pub fn rewound(&self) -> u64 {
        let lives = self.known.values().filter_map(|peer| peer.life.as_ref());
        lives.map(|life| life.rewound).sum()
    }

    /// Begins another life: all neighbours are met anew, under other keys.
    pub fn begin_anew(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.known.clear();
        self.orders.clear();
    }

    /// Whether a hello with this counter proves what only this node can prove: its entries for two neighbours, or for the only one.
    pub fn has_written(&self, counter: u64, entries: impl Iterator<Item = Entry>) -> bool {
        let lives = || self.known.values().filter(|peer| peer.life.is_some());
        let right = entries.filter(|entry| {
            let peer = self.known.get(&entry.node);
            let life = peer.and_then(|peer| peer.life.as_ref());
            life.is_some_and(|life| {
                let proof = life.pair.0.prove(self.epoch, counter, entry.heard);
                proof == entry.proof
            })
        });
        let needed = lives().count().min(2);
        needed > 0 && right.take(needed).count() == needed
    }

    fn make_room(&mut self, newcomer: u16) {
        if self.known.len() < NEIGHBOURS_MAX || self.known.contains_key(&newcomer) {
            return;
        }
        // Nodes without proof go first: recordings must not displace live neighbours.
        let age = |peer: &Peer| (peer.life.is_some(), peer.heard);
        let oldest = self.known.iter().min_by_key(|(_, peer)| age(peer));
        if let Some(node) = oldest.map(|(&node, _)| node) {
            self.known.remove(&node);
        }
    }
}

impl Peer {
    /// Whether it was heard lately.
    pub fn is_near(&self, now: Instant) -> bool {
        now.saturating_since(self.heard) < SILENCE
    }

    /// Handles a hello of the present life.
    fn hello(
        &mut self,
        now: Instant,
        at: Location,
        me: u16,
        header: &Header,
        frame: &mut [u8],
    ) -> Result<(), DropReason> {
        let life = self.life.as_mut().ok_or(DropReason::Stale)?;
        let key = life.key(header.generation()).ok_or(DropReason::Stale)?;
        let body = key.open(header, frame).ok_or(DropReason::Unauthentic)?;
        let mut entries = hello::parse(body).ok_or(DropReason::Malformed)?;
        let ours = entries.find(|entry| entry.node == me);
        // Any neighbour of its sender can seal a hello. Who wrote it shows in the entry for this node.
        let proved = ours.is_some_and(|entry| {
            let under =
                |pair: &Pair| pair.has_proved(entry.proof, life.epoch, header.counter, entry.heard);
            let former = life.former.as_ref().is_some_and(|(pair, _)| under(pair));
            under(&life.pair.0) || former || self.sessions.answered(life.epoch).any(under)
        });
        if ours.is_some() && !proved {
            return Err(DropReason::Unauthentic);
        }
        // No other node can prove a counter, so a larger one than before shows that those beyond it were forged.
        let advances = proved && header.counter > life.proved.0;
        if advances && life.broadcasts.rewind(header.counter - 1) {
            life.rewound += 1;
            life.tally = life.proved.1;
        }
        let novelty = life.count(header.counter);
        if novelty != Novelty::New {
            return Err(DropReason::Duplicate);
        }
        if advances {
            life.proved = (header.counter, life.tally);
        }
        let is_latest = life.is_latest(header.counter, novelty);
        if advances || is_latest {
            self.heard = now;
        }
        if proved && (advances || is_latest) {
            let reported = ours.map(|entry| entry.heard);
            life.reported = reported.filter(|&heard| heard > 0).or(life.reported);
        }
        // An older one may be a recording of a hello that was lost here.
        if proved && is_latest {
            self.endpoint = at;
        }
        Ok(())
    }
}

impl Life {
    pub fn new(epoch: u64, now: Instant, pair: Pair) -> Life {
        Life {
            epoch,
            pair: (pair, now),
            former: None,
            keys: Vec::new(),
            newest_key: 0,
            given: None,
            give_at: (now, 0),
            broadcasts: Window::default(),
            unicasts: Window::default(),
            proved: (0, (0, 0)),
            rewound: 0,
            tally: (0, 0),
            reported: None,
        }
    }

    /// The key of its broadcasts of a generation, if it has given that to this node.
    fn key(&self, generation: u8) -> Option<&Cipher> {
        let mut keys = self.keys.iter();
        keys.find(|key| key.0 == generation).map(|key| &key.1)
    }

    /// Opens a frame that the neighbour sealed for this node.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let former = self.former.as_ref().map(|(pair, _)| pair);
        // On a copy: a key that does not fit destroys the frame.
        let fits = |pair: &&Pair| pair.open(header, &mut frame.to_vec()).is_some();
        let pair = match former {
            None => Some(&self.pair.0),
            Some(former) => [&self.pair.0, former].into_iter().find(fits),
        };
        pair?.open(header, frame)
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
