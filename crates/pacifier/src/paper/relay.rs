//! The forwarding node's part: keep the current batch, earn credit from upstream, spend it on combinations.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use chappe_coding::Shape;
use chappe_core::{Instant, Stream};

use crate::links::Links;
use crate::paper::config::{Config, Variant};
use crate::paper::header::{AckId, CREDIT_ONE, Data, DataRepr, FORWARDER, find_forwarder};
use crate::paper::more::Belt;
use crate::set::NodeSet;
use crate::store::Store;

/// Forwards one group. By default it has the memory of one batch (pacifier III-C).
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    me: u16,
    source: u16,
    links: Arc<Links>,
    variant: Variant,
    k: usize,
    payload: usize,
    /// From the newest frame: the current batch and this node's duty.
    current: Option<Current>,
    store: Option<Store>,
    /// Object and batch of the packets in `store`.
    held: Option<(u8, u32)>,
    /// Packets of earlier batches, the oldest first; at most `kept`. Empty in the paper.
    earlier: VecDeque<((u8, u32), Store)>,
    kept: usize,
    forwarders: Vec<u8>,
    destinations: Vec<u8>,
    /// The credit counter in 1/512 transmissions. Saturates far beyond what a run earns; the paper has no bound.
    counter: i64,
    /// MORE: for each destination seen so far, the nodes upstream of this one. Cached, since a belt costs a shortest-path
    /// search.
    upstream: Vec<(u16, NodeSet)>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    object: u8,
    turn: u16,
    batch: u32,
    /// Place in the list of forwarding nodes, and credit; `None` if the list does not have this node.
    duty: Option<(usize, i64)>,
}

/// What a frame did for the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The frame belongs to a batch of the past.
    pub stale: bool,
    /// It raised the rank of the buffer.
    pub innovative: bool,
    /// It came from upstream and earned credit.
    pub upstream: bool,
    /// It began a new batch and emptied the buffer.
    pub flushed: bool,
}

impl Relay {
    pub fn new(me: u16, source: u16, links: Arc<Links>, config: &Config) -> Relay {
        // The lists never outgrow one octet's count: no allocation later.
        let most = links.nodes().min(255);
        Relay {
            me,
            source,
            links,
            variant: config.variant,
            k: config.common.k,
            payload: config.common.payload,
            current: None,
            store: None,
            held: None,
            earlier: VecDeque::new(),
            kept: config.relay_batches.saturating_sub(1) as usize,
            forwarders: Vec::with_capacity(most * FORWARDER),
            destinations: Vec::with_capacity(most),
            counter: 0,
            upstream: Vec::new(),
        }
    }

    /// Replaces the delivery ratios; MORE's upstream sets follow from them.
    pub fn relink(&mut self, links: Arc<Links>) {
        let most = links.nodes().min(255);
        self.forwarders.reserve(most * FORWARDER);
        self.destinations.reserve(most);
        self.upstream.clear();
        self.links = links;
    }

    /// Takes in a data frame of the group, sent by `from`. With `forgetful`, nothing useful was heard
    /// for so long that any frame counts as new.
    pub fn on_data(&mut self, from: u16, frame: &Data<'_>, forgetful: bool) -> Heard {
        let mut heard = Heard {
            stale: false,
            innovative: false,
            upstream: false,
            flushed: false,
        };
        // Turns wrap: a signed difference says whether the frame is of a later plan.
        let news = match self.current {
            Some(current) if !forgetful => frame.turn().wrapping_sub(current.turn) as i16,
            _ => 1,
        };
        if forgetful {
            // The source may have started over with another object under the same numbers.
            self.held = None;
            self.earlier.clear();
        }
        if news > 0 {
            heard.flushed = self.begin(frame);
        }
        let Some(current) = self.current else {
            return Heard {
                stale: true,
                ..heard
            };
        };
        // A late frame of the current batch is as useful as any; one of another batch is not.
        let at_hand = (current.object, current.batch) == (frame.object(), frame.batch());
        let Some((place, credit)) = current.duty.filter(|_| at_hand) else {
            return Heard {
                stale: !at_hand,
                ..heard
            };
        };
        //= pacifier III-A.1: store all the innovative packets of the batch, opportunistic ones too (III-A.2)
        let buffer = self.store.as_mut();
        heard.innovative =
            buffer.is_some_and(|store| store.insert(frame.vector(), frame.payload()));
        //= pacifier III-A.2: a packet from an upstream node earns TX_credit, innovative or not
        heard.upstream = self.is_upstream(from, place);
        if heard.upstream {
            self.counter = self.counter.saturating_add(credit);
        }
        heard
    }

    /// Adopts the lists and the batch of the newest frame. Returns whether that emptied the buffer.
    fn begin(&mut self, frame: &Data<'_>) -> bool {
        let duty = find_forwarder(frame.forwarders(), self.me);
        let (object, turn, batch) = (frame.object(), frame.turn(), frame.batch());
        self.current = Some(Current {
            object,
            turn,
            batch,
            duty,
        });
        self.forwarders.clear();
        self.forwarders.extend_from_slice(frame.forwarders());
        self.destinations.clear();
        self.destinations.extend_from_slice(frame.destinations());
        let packets = frame.vector().len();
        let continues = self.held == Some((object, batch))
            && self
                .store
                .as_ref()
                .is_some_and(|store| store.packets() == packets);
        // A node that is off duty keeps its packets: the source may come back to this batch with a plan that lists it.
        if continues || duty.is_none() {
            return false;
        }
        //= pacifier III-C: the first packet from a new batch flushes the buffer
        // The counter restarts too: packets of one batch earn credit for packets of that batch. A backlog that was kept
        // would pay for combinations of the first few packets of the next batch.
        self.counter = 0;
        let before = self.held.replace((object, batch));
        if self.kept > 0 {
            return self.change(before, (object, batch), packets);
        }
        self.flush(packets)
    }

    /// Puts the packets of the batch `before` away and takes out those of `now`. Returns whether packets were dropped.
    fn change(&mut self, before: Option<(u8, u32)>, now: (u8, u32), packets: usize) -> bool {
        if let (Some(before), Some(store)) = (before, self.store.take()) {
            self.earlier.push_back((before, store));
        }
        let known = self.earlier.iter().position(|(batch, _)| *batch == now);
        if let Some((_, store)) = known.and_then(|place| self.earlier.remove(place)) {
            self.store = Some(store).filter(|store| store.packets() == packets);
        }
        if self.store.is_none() {
            // The memory of the oldest batch is reused: a relay never holds more than its share.
            let full = self.earlier.len() > self.kept;
            self.store = full
                .then(|| self.earlier.pop_front())
                .flatten()
                .map(|(_, store)| store);
            return self.flush(packets);
        }
        false
    }

    /// Empties the buffer for a batch of `packets` packets. Returns whether something was in it.
    fn flush(&mut self, packets: usize) -> bool {
        let Ok(shape) = Shape::new(packets, self.payload) else {
            return false;
        };
        let Some(store) = &mut self.store else {
            self.store = Store::new(self.k, self.payload, shape);
            return false;
        };
        let held_something = store.rank() > 0;
        store.reset(shape) && held_something
    }

    //= pacifier III-A.2: upstream nodes have a lower ETX distance from the root; the list is sorted by it
    fn is_upstream(&mut self, from: u16, my_place: usize) -> bool {
        if from == self.source {
            return true;
        }
        let Variant::More { prune } = self.variant else {
            // A sender that is not in the list follows an older plan: its packet is used, but earns nothing.
            return find_forwarder(&self.forwarders, from)
                .is_some_and(|(place, _)| place < my_place);
        };
        //= pacifier II-A: MORE's upstream is farther from a destination whose belt has both nodes
        for &destination in &self.destinations {
            let destination = u16::from(destination);
            let known = self
                .upstream
                .iter()
                .find(|(known, _)| *known == destination);
            let upstream = match known {
                Some((_, upstream)) => *upstream,
                None => {
                    let belt = Belt::new(&self.links, self.source, destination, prune);
                    let upstream = belt.map_or(NodeSet::EMPTY, |belt| belt.upstream_of(self.me));
                    self.upstream.push((destination, upstream));
                    upstream
                }
            };
            if upstream.contains(from) {
                return true;
            }
        }
        false
    }

    //= pacifier III-A.2: when the MAC allows, send if the counter is positive
    /// Whether a frame is waiting. A node on duty without any packet of the batch has nothing to send; its
    /// credit waits for the first one.
    pub fn ready(&self) -> bool {
        self.counter > 0
            && self.current.is_some_and(|current| current.duty.is_some())
            && self.store.as_ref().is_some_and(|store| store.rank() > 0)
    }

    /// Writes a fresh combination of all packets in the buffer and pays one transmission for it.
    pub fn write(
        &mut self,
        sdu: &mut [u8],
        random: &mut Stream,
        last_ack: Option<AckId>,
    ) -> Option<usize> {
        let (current, store) = (self.current?, self.store.as_ref()?);
        let repr = DataRepr {
            source: self.source,
            object: current.object,
            turn: current.turn,
            batch: current.batch,
            packets: store.packets() as u8,
            forwarders: &self.forwarders,
            destinations: &self.destinations,
            last_ack,
        };
        let (vector, payload) = repr.emit(sdu, self.payload)?;
        if !store.recode(|bytes| random.fill(bytes), vector, payload) {
            return None;
        }
        self.counter = self.counter.saturating_sub(CREDIT_ONE);
        Some(repr.frame_len(self.payload))
    }
}

/// When a relay last heard a frame that it could use. After a long gap, any frame may be that of a source that started
/// over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freshness(Option<Instant>);

impl Freshness {
    pub fn renew(&mut self, now: Instant) {
        self.0 = Some(now);
    }

    pub fn lapsed(&self, now: Instant, after: chappe_core::Duration) -> bool {
        self.0
            .is_none_or(|last| now.saturating_since(last) >= after)
    }
}
