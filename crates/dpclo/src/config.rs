//! Parameters: what each one is, its unit, its default and where that comes from.
//!
//! "Ours" marks a value that neither the paper nor the systems it builds on give.

use chappe_core::{Duration, Mode};

mod check;
mod presets;

pub use check::ConfigError;

/// Most next hops that a node keeps for one destination.
pub const NEXT_HOPS_MAX: usize = 8;

/// Who decides which packet goes where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// The paper's: the largest price among the next hops of the K best routes.
    Dpclo,
    /// One packet after the other over the best route, as long as there is room: what carries plain datagrams or TCP.
    ShortestPath,
    /// The same, but who hears that its next hop is congested stops.
    Fusion(Fusion),
    /// Pairs of nodes by the largest queue differences, in rounds.
    Dclo(Matching),
}

/// Fusion's rules (Hull, Jamieson, Balakrishnan, SenSys 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fusion {
    /// A node is congested while a smaller share of its queue is free. 0.25 (as there).
    pub free_min: f64,
    /// A node that is congested competes in the class above that of data, since it must get rid of packets first. Yes (as
    /// there: a quarter of the contention window; classes come nearest to it).
    pub prioritised: bool,
}

/// DCLO's rounds. None of the values is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// Length of a round: how long pairs stay. 100 ms (ours).
    pub interval: Duration,
    /// At the begin of a round in which queues are told. 20 ms (ours: twelve neighbours take that long).
    pub exchange: Duration,
    /// A request without an answer is repeated after this time. 5 ms (ours).
    pub retry: Duration,
}

/// Everything that decides how a [`Router`](crate::Router) works. All nodes of a mesh use the same values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Who decides which packet goes where. Default [`Scheme::Dpclo`].
    pub scheme: Scheme,
    /// How links are measured.
    pub probes: Probes,
    /// How routes are told.
    pub routing: Routing,
    /// How many next hops are tried.
    pub next_hops: NextHops,
    /// What waits, and how long.
    pub queues: Queues,
    /// How fast a source may send.
    pub rate: RateLaw,
    /// Which price has which class of the MAC.
    pub priorities: Priorities,
    /// What goes beyond the paper; all off by default.
    pub extras: Extras,
    /// How much a node can remember.
    pub room: Room,
    /// How data frames are sent; `None` leaves it to the MAC (the default).
    pub mode: Option<Mode>,
}

/// How links are measured (eq. 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// Mean time between probes. Default 1 s (De Couto and others, MobiCom 2003; the paper: "regular periods").
    pub interval: Duration,
    /// Each interval is drawn up to this share shorter or longer, so that two nodes do not collide for ever. Default 0.1
    /// (as there).
    pub jitter: f64,
    /// Probes in the window over which they are counted, 1 to 63. Default 10 (as there).
    pub window: u8,
    /// Counts over fewer probes than this say nothing yet. Default 3 (ours).
    pub least: u8,
    /// Alpha of eq. 6, the weight of the old value. Default 0.9 (ours; that of Moeller and others' BCP, IPSN 2010).
    pub damping: f64,
    /// Largest ETX, and what a transmission that failed counts. Default 16 (ours). 1 makes every link that is used count the
    /// same: hop counts and plain queue differences, the paper's Fig. 4 "without ETX".
    pub etx_max: f64,
    /// A link whose delivery ratio is below this in either direction is not used. Default 0.1 (ours).
    pub ratio_min: f64,
    /// A probe is filled up to this size. Default 134 octets (that of De Couto and others).
    pub octets: usize,
}

/// How routes are told: DSDV (Perkins and Bhagwat, SIGCOMM 1994) with the constants of ns-2.35's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Time between full updates. Default 15 s (ns-2).
    pub period: Duration,
    /// Least time between two updates. Default 1 s (ns-2).
    pub gap: Duration,
    /// How long the news of a newer sequence number waits, since the better routes often come a little later. Default 1 s
    /// (ours; ns-2 adapts it from 6 s).
    pub settle: Duration,
    /// Updates are delayed by up to this. Default 10 ms (ns-2).
    pub jitter: Duration,
    /// A route without news for so many periods is lost. Default 3 (ns-2).
    pub lost_after: u8,
    /// How often a packet may be forwarded. Default 32 (ns-2).
    pub hop_limit: u8,
}

/// The upper limit of K.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KMax {
    /// `beta * N` rounded up, N the number of neighbours, but never below 2. The default: the paper's own example has
    /// six nodes and two paths.
    AtLeastTwo,
    /// `beta * N` rounded down and at least 1, as the paper's sentence reads: with its beta and fewer than 20 neighbours
    /// there is never a second path.
    Literal,
    /// So many, whatever the neighbourhood. 1 is the paper's single path.
    Fixed(u8),
}

/// How many next hops are tried (IV-E).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextHops {
    /// The upper limit of K. Default [`KMax::AtLeastTwo`].
    pub limit: KMax,
    /// Beta: the share of the neighbours. Default 0.1 (Table I).
    pub beta: f64,
    /// K grows once the queues of all K next hops are longer. Default 7 packets (Table I).
    pub high: f64,
    /// K shrinks once all of them are shorter. Default 3 packets (ours; the value is lost in print).
    pub low: f64,
    /// How often this is looked at. Default 100 ms (ours).
    pub every: Duration,
    /// Only neighbours that are not farther from the destination than the node itself. Default no: the paper's example
    /// needs a detour.
    pub downhill: bool,
}

/// What waits, and how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    /// Packets that wait for one destination; all together in [`Scheme::ShortestPath`]. Default 10 (ours: the value is lost
    /// in print, and must exceed 7).
    pub limit: u16,
    /// Places beyond `limit` for packets that neighbours send: what they decided before they knew that the queue is full still
    /// fits. Default 0 (the paper has one size).
    pub reserve: u16,
    /// What a neighbour told of its queue holds for so long; then the queue counts as empty. Default 3 s (ours: probes tell
    /// the longest queues anew each second, and with a second every queue would count as empty just before that).
    pub told_for: Duration,
    /// A packet that has waited in one node for so long is dropped. Default 60 s (ours: nothing may wait for ever for a
    /// route that never comes).
    pub age_max: Duration,
    /// Times that the link may give a packet up before the router does. Default 2 (ours).
    pub failures_max: u8,
}

/// How fast a source may send (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLaw {
    /// By the growth of the source's own queue: the paper's.
    Queue(QueueLaw),
    /// By the length of the source's own queue: Chen and others' (eq. 2).
    Price(PriceLaw),
    /// By what the next hop is heard to forward: Fusion's.
    Turns(TurnLaw),
    /// As fast as the application offers, as long as there is room.
    Unlimited,
}

/// The rate follows the source's own queue (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLaw {
    /// T: time between two looks at the queue. Default 0.5 s (ours).
    pub interval: Duration,
    /// Delta: packets a second more when the queue has not changed. Default 2 (ours).
    pub step: f64,
    /// The first rate, packets a second. Default 5 (ours).
    pub start: f64,
    /// The smallest rate, packets a second. Default 1 (ours).
    pub floor: f64,
    /// The largest rate, packets a second. Default 10,000 (ours).
    pub ceiling: f64,
    /// Adds the queue's growth to the rate instead of taking it away: the sign is lost in print, and this is the other
    /// reading. Default no: minus makes the rate what the queue was served with.
    pub plus: bool,
    /// Counts packets that found the queue full as growth. Default no; a full queue does not change, so the plain law
    /// goes on raising the rate.
    pub count_refused: bool,
    /// Takes `(queue - target) / time` from the rate too, so that no queue is left standing. Default none.
    pub drain: Option<Drain>,
}

/// The rate is `U'^-1(price)` for `U = gain * log(rate)`: proportionally fair (eq. 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceLaw {
    /// Packets a second at a queue of one packet; half as many at two. 1000 (ours: with less, pairs have little to carry; with
    /// more, sources near the destination fill all queues and far ones starve).
    pub gain: f64,
    /// Time between two looks at the queue. 0.1 s (ours: a round).
    pub interval: Duration,
}

/// Tokens by listening to the next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnLaw {
    /// Tokens that can be saved up. 5 (ours).
    pub most: f64,
    /// Tokens a second that come without listening, so that lost packets cannot silence a source for good. 1 (ours).
    pub floor: f64,
}

/// What empties a standing queue at a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    /// The queue that may stand, packets. 3 (ours).
    pub target: f64,
    /// The time in which the rest is to go. 5 s (ours: ten looks).
    pub time: Duration,
}

/// Which price has which class of the MAC (IV-D): thresholds as shares of the queue limit. Routing has the class above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priorities {
    /// From here on [`Class::Urgent`](chappe_core::Class::Urgent). Default 0.5 (ours).
    pub high: f64,
    /// From here on [`Class::Data`](chappe_core::Class::Data), below it `Background`. Default 0.2 (ours).
    pub medium: f64,
}

/// What goes beyond the paper, each switchable by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extras {
    /// V: a neighbour that is nearer by so much ETX is worth V packets of queue for each. Gives a direction when queues are
    /// equal. 0 is off; 2 in [`Extras::ALL`] (BCP).
    pub bias: f64,
    /// The newest packet first, and packets that a full queue pushes out still count (BCP's floating queue).
    pub lifo: bool,
    /// A queue counts one packet more for each such time that its oldest packet has waited.
    pub age_weight: Option<Duration>,
    /// Weight of the old value in the queue length that is told and compared. 0 is off; 0.65 in [`Extras::ALL`] (IRON).
    pub smoothing: f64,
    /// Packets of one flow stay on one next hop.
    pub pins: Option<Pins>,
    /// How long a packet that overtook another waits at the destination. 30 ms in [`Extras::ALL`] (ours).
    pub resequence: Option<Duration>,
    /// A packet that a neighbour confirmed, or that was overheard on its way to it, counts in its queue until it tells
    /// otherwise. Off where the link does not overhear.
    pub count_sent: bool,
    /// A neighbour that said that it has room for fewer packets to a destination gets none until it says otherwise, or for as
    /// long as what it said holds; what it gets meanwhile takes from that room (credit-based flow control). 0 is off; 15 in
    /// [`Extras::ALL`] (ours: several neighbours may send before one of them hears of it). Off where the link does not
    /// overhear.
    pub credits: u8,
    /// Queues that have changed are told to all neighbours, where the link does not overhear.
    pub reports: Option<Reports>,
}

/// How often changed queues are told to neighbours that do not overhear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reports {
    /// Octets of reports for each octet of the frames that the node sends or receives, both with what is around them. 0.01
    /// (IRON's overhead ratio).
    pub share: f64,
    /// Packets by which a queue must differ from what was told. 2 (ours; IRON has 5000 octets).
    pub change: f64,
    /// Octets that each frame takes of the air besides its own. 84 (802.11b at 2 Mbit/s: 192 us of preamble and PLCP header, 36
    /// octets of MAC, LLC and FCS).
    pub around: usize,
}

/// When a flow may change its next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pins {
    /// After a pause of this length. 50 ms (ours).
    pub gap: Duration,
    /// Or when another next hop's price is so many times as high. 2 (ours).
    pub gain: f64,
}

/// How much a node can remember. All of it is taken when the router is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Destinations. Default 128.
    pub destinations: u16,
    /// Neighbours. Default 32.
    pub neighbours: u8,
    /// Packets, waiting, in flight and delivered but not yet taken. Default 256.
    pub packets: u16,
    /// Octets of payload in a packet. Default 1500.
    pub payload: u16,
    /// Flows that end here, and flows that are kept on one next hop. Default 64.
    pub flows: u16,
    /// Destinations to which this node is a source at the same time. Default 16.
    pub sources: u16,
    /// Recently forwarded packets, by which copies are recognised. Default 512.
    pub seen: u16,
}
