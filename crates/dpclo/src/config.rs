//! Parameters: meaning, unit, default and source of each.
//!
//! "Ours" marks a value that is given neither by the paper nor by the systems it builds on.

use chappe_core::{Duration, Mode};

mod check;
mod pace;
mod presets;

pub use check::ConfigError;
pub use pace::Pace;

/// Most next hops that a node keeps for one destination.
pub const NEXT_HOPS_MAX: usize = 8;

/// The rule that chooses packet and next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// DPCLO: the largest price among the next hops of the K best routes.
    Dpclo,
    /// Packets in order of arrival over the best route: plain forwarding for datagrams or TCP.
    ShortestPath,
    /// Plain forwarding, but a node whose next hop is congested stops.
    Fusion(Fusion),
    /// Pairs of nodes by the largest queue differences, in rounds.
    Dclo(Matching),
}

/// Fusion's rules (Hull, Jamieson, Balakrishnan, SenSys 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fusion {
    /// A node is congested while less than this share of its queue is free. 0.25 (as there).
    pub free_min: f64,
    /// A congested node competes in the class above that of data, so that its queue drains first. Yes (there it has a
    /// quarter of the contention window; classes come nearest to that).
    pub prioritised: bool,
}

/// DCLO's rounds. The paper gives none of these values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// Length of a round: how long pairs stay. 100 ms (ours).
    pub interval: Duration,
    /// The part of a round, at its beginning, in which queues are broadcast. 20 ms (ours: twelve neighbours take that long).
    pub exchange: Duration,
    /// Time after which an unanswered request is repeated. 5 ms (ours).
    pub retry: Duration,
}

/// All parameters of a [`Router`](crate::Router). All nodes of a mesh must use the same values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The rule that chooses packet and next hop. Default [`Scheme::Dpclo`].
    pub scheme: Scheme,
    /// How links are measured, by probes.
    pub probes: Probes,
    /// How routes are distributed, by DSDV.
    pub routing: Routing,
    /// The number of next hops.
    pub next_hops: NextHops,
    /// Limits and lifetimes of queues.
    pub queues: Queues,
    /// The rate limit of sources.
    pub rate: RateLaw,
    /// The MAC's class for each price.
    pub priorities: Priorities,
    /// Extensions to the paper; all off by default.
    pub extras: Extras,
    /// Sizes of a node's tables.
    pub room: Room,
    /// Rate and preamble of data frames; `None` leaves them to the MAC (the default).
    pub mode: Option<Mode>,
}

/// Measurement of links (eq. 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// Mean time between probes. Default 1 s (De Couto and others, MobiCom 2003; the paper: "regular periods").
    pub interval: Duration,
    /// More frequent probes after the start: a node measures its links sooner. Default none (as there).
    pub first: Option<FirstProbes>,
    /// Whether the shorter time holds again after this node began to send, when prices of airtime change fastest, while it asks more
    /// than an idle one, and while packets end there. Default no.
    pub first_again: bool,
    /// Each interval is up to this share shorter or longer, at random, so that two nodes do not collide permanently. Default
    /// 0.1 (as there).
    pub jitter: f64,
    /// Probes in the window over which they are counted, 1 to 63. Default 10 (as there).
    pub window: u8,
    /// Counts over fewer probes than this are not used. Default 3 (ours).
    pub least: u8,
    /// Alpha of eq. 6, the weight of the old value. Default 0.9 (ours; that of Moeller and others' BCP, IPSN 2010).
    pub damping: f64,
    /// Largest ETX, and the sample that a failed transmission counts as. Default 16 (ours). With 1 all links count the same:
    /// hop counts and plain queue differences, the paper's Fig. 4 "without ETX".
    pub etx_max: f64,
    /// Links whose delivery ratio is below this in either direction are not used. Default 0.1 (ours).
    pub ratio_min: f64,
    /// Whether transmissions of data frames are samples of ETX, too. Default none: the paper's comes from probes alone.
    pub attempts: Option<Attempts>,
    /// Probes are padded to this size. Default 134 octets (that of De Couto and others).
    pub octets: usize,
}

/// More frequent probes for a while. The more neighbours a node has heard, the rarer they are, since these begin as well where a mesh
/// starts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstProbes {
    /// The least mean time between two.
    pub least: Duration,
    /// What the node itself and each neighbour add to that time.
    pub each: Duration,
    /// The longest mean time, however many neighbours there are.
    pub most: Duration,
    /// How long they last.
    pub lasts: Duration,
}

impl FirstProbes {
    /// The mean time between two of a node that has heard so many neighbours.
    pub fn interval(&self, neighbours: usize) -> Duration {
        let shared = self.each * (neighbours as u64 + 1);
        shared.max(self.least).min(self.most)
    }
}

/// ETX from the transmissions of data frames, as in the four-bit link estimator (Fonseca and others, HotNets 2007): a window's
/// transmissions for each acknowledged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Transmissions that make a sample. 5 in [`Settings::improved`] (as there).
    pub window: u8,
    /// For this long after a sample, probes do not count: they are sent once, so that collisions under load would count
    /// squared. 10 s in [`Settings::improved`] (ours: the time that a window of probes takes).
    pub instead_of_probes: Duration,
    /// The estimate follows samples with this time constant at least, however many there are. Collisions that last for a second or two
    /// are everywhere, and a link without samples seems better only because it is not used. 0 in [`Settings::improved`]: each sample counts
    /// by [`Probes::damping`] alone.
    pub time_constant: Duration,
}

/// Distribution of routes: DSDV (Perkins and Bhagwat, SIGCOMM 1994) with the constants of ns-2.35's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Time between full updates. Default 15 s (ns-2).
    pub period: Duration,
    /// Least time between two updates. Default 1 s (ns-2).
    pub gap: Duration,
    /// How long a newer sequence number waits before it is advertised, since better routes often arrive a little later.
    /// Default 1 s (ours; ns-2 adapts it from 6 s).
    pub settle: Duration,
    /// Largest random delay of an update. Default 10 ms (ns-2).
    pub jitter: Duration,
    /// Periods without a newer sequence number after which a route is lost. Default 3 (ns-2).
    pub lost_after: u8,
    /// The most times that a packet is forwarded. Default 32 (ns-2).
    pub hop_limit: u8,
    /// How many updates more tell that a destination became reachable or unreachable, or what a request of waiting packets asked for, since
    /// a neighbour that misses one knows nothing of it until the next full one (RFC 8966, 3.7.2). Default none (DSDV).
    pub reach_repeats: u8,
    /// Whether a node asks for a newer number when that of a destination which it sends packets to has not changed for all periods but one
    /// of `lost_after`, and after that, too (RFC 8966, 3.8.2.3). Default no (DSDV).
    pub renews: bool,
    /// How long a request for a sequence number may wait for a frame to ride in, if no packet waits for its destination. Default 0: none
    /// waits, since RFC 8966 sends all at once.
    pub patience: Duration,
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
    /// A fixed number, whatever the neighbourhood. 1 is the paper's single path.
    Fixed(u8),
}

/// The number of next hops, K (IV-E).
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
    /// Interval between reviews of K. Default 100 ms (ours).
    pub every: Duration,
    /// Whether every next hop must be feasible (RFC 8966, 2.4), not only the best one: then no path returns to where it has
    /// been. Default no: the paper's example needs a detour that is not, and the hop limit ends loops.
    pub feasible_only: bool,
}

/// Limits and lifetimes of queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    /// Most packets that wait for one destination; for all together under [`Scheme::ShortestPath`]. Default 10 (ours: the
    /// value is lost in print, and must exceed 7).
    pub limit: u16,
    /// Places beyond `limit` for packets of neighbours that did not know yet that the queue is full. Default 0 (the paper has
    /// one size).
    pub reserve: u16,
    /// How long an advertised queue length is valid; then the queue counts as empty. Default 3 s (ours: probes repeat the
    /// longest queues each second, and with 1 s every queue would count as empty just before its repetition).
    pub backlog_life: Duration,
    /// A packet that has waited in one node for this time is dropped. Default 60 s (ours: no packet may wait forever for a
    /// route).
    pub age_max: Duration,
    /// The router gives a packet up when the link has given it up this many times. Default 2 (ours).
    pub failures_max: u8,
}

/// The rate limit of sources (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLaw {
    /// By the growth of the source's own queue: the paper's.
    Queue(QueueLaw),
    /// By the length of the source's own queue: Chen and others' (eq. 2).
    Price(PriceLaw),
    /// By the packets that the next hop is overheard forwarding: Fusion's.
    Overheard(OverhearLaw),
    /// By the cost of the path in airtime: ours.
    Airtime(AirtimeLaw),
    /// No limit: as fast as the application offers and the queue accepts.
    Unlimited,
}

/// The rate follows the source's own queue (IV-C).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLaw {
    /// T: time between two updates of the rate. Default 0.5 s (ours).
    pub interval: Duration,
    /// Delta: packets a second more when the queue has not changed. Default 2 (ours).
    pub step: f64,
    /// The first rate, packets a second. Default 5 (ours).
    pub start: f64,
    /// The smallest rate, packets a second. Default 1 (ours).
    pub floor: f64,
    /// The largest rate, packets a second. Default 10,000 (ours).
    pub ceiling: f64,
    /// Adds the queue's growth to the rate instead of subtracting it: the sign is lost in print, and this is the other
    /// reading. Default no: minus makes the rate the service rate of the queue.
    pub plus: bool,
    /// Counts packets refused by the full queue as growth. Default no; a full queue does not change, so the plain law
    /// continues to raise the rate.
    pub count_refused: bool,
    /// Also subtracts `(queue - target) / time` from the rate, so that no standing queue remains. Default none.
    pub drain: Option<Drain>,
}

/// The rate is `U'^-1(price)` for `U = gain * log(rate)`: proportionally fair (eq. 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceLaw {
    /// Packets a second at a queue of one packet; half as many at two. 1000 (ours: with less, pairs have few packets to
    /// carry; with more, sources near the destination fill all queues and distant ones starve).
    pub gain: f64,
    /// Time between two updates of the rate. 0.1 s (ours: a round).
    pub interval: Duration,
}

/// The rate falls with the path's cost, which nodes charge by airtime. See `airtime.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirtimeLaw {
    /// What a transmission takes from the channel beside its octets. 1010 us (802.11b at 2 Mbit/s: long preamble 192 us, 36
    /// octets of MAC, LLC and check sequence 144 us, SIFS 10 us, ACK 304 us, DIFS 50 us, mean back-off 310 us).
    pub around: Duration,
    /// What an octet takes. 4 us (2 Mbit/s).
    pub octet: Duration,
    /// The airtime of a node and its neighbours, in shares of the channel, above which its price rises.
    /// 0.95 (ours: they sense each other, so that 1 is all there is; at 1 queues stand, at 0.85 a single cell lost a
    /// twelfth of its total).
    pub load: f64,
    /// Fall of rates' logarithm in a second for each unit of excess load; prices rise by this times `fairness`, since rates follow a
    /// root of them. 0.25 (ours: shares arrive within two seconds, and a loop with this delay is stable below a gain of 0.8).
    pub gain: f64,
    /// Packets that may wait in a node before its price rises. 4 (ours: between the low watermark and half of the limit).
    pub queue: f64,
    /// Fall of rates' logarithm in a second for each packet more. 0.05 (ours: a queue of 10 lowers them by a quarter in a second).
    pub queue_gain: f64,
    /// The fastest fall of rates' logarithm in a second. 1 (ours: a start that floods ends within two seconds).
    pub rise: f64,
    /// The fastest rise of rates' logarithm in a second. 0.25 (ours: that of an idle channel).
    pub fall: f64,
    /// The root of the least price, which a node charges for its own transmissions only. It must allow a lone flow a link's whole rate.
    /// 0.1 (ours: a hop of 1.9 ms allows some 740 packets a second, and eight hops 320, where a link carries 534).
    pub floor: f64,
    /// The root of the largest price. 4 (ours: one node that asks as much leaves a path of eight hops some 7 packets a second, a third of what
    /// 108 nodes have for each of seven sources; without a bound the prices of starved nodes take too long to fall).
    pub ceiling: f64,
    /// Time constant of a node's own airtime. 500 ms (ours: a dozen packets at 25 a second).
    pub smoothing: Duration,
    /// Time between two updates of price and rate. 100 ms (ours: between the moments when a queue changes and when
    /// neighbours hear of it).
    pub interval: Duration,
    /// How long a node's airtime and price are valid. 3 s (ours: as queue lengths).
    pub life: Duration,
    /// The first rate of a source, packets a second. 20 (ours: in the middle of what meshes carry at 2 Mbit/s, see `UNIT` in `rate.rs`;
    /// with 5 packets at a steady rate waited for seconds until it had grown to theirs).
    pub start: f64,
    /// Time in which a rate at most doubles. 2 s (ours: within which shares and prices arrive).
    pub double: Duration,
    /// Packets that may be sent at once after a pause. 2 (the paper's variant, ours).
    pub bucket: f64,
    /// Alpha of the utility whose sum the rates maximise (Mo, Walrand, 2000): 1 is proportional fairness; 2 makes the sum of the times
    /// between two packets of each flow least (Massoulie, Roberts, 1999). 2.5 (ours: prices count every hop within three of a bottleneck,
    /// where schedules have room for two at once, so that far sources pay too much; found on networks 401 to 408, `docs/studies/dpclo.md`).
    pub fairness: f64,
    /// The root of the price that each packet more asks at once, for as long as it waits. 1/15 (ours: a queue at its limit of 10 asks
    /// 0.4, which six nodes that hear each other ask at full load: with more they carry less, `docs/studies/dpclo.md`).
    pub at_once: f64,
    /// For how long after a node was idle its queue asks at once. 10 s (ours: prices have risen by then; for good, small networks lose a
    /// fifth).
    pub early: Duration,
    /// A queue asks at once as much more as its price would rise by in this time if it stood: prices then follow both what waits and its
    /// sum over time, as a controller with a proportional and an integral part does. 2 s (ours: within which shares and prices arrive, so
    /// that a sum alone is always late by as much).
    pub ahead: Duration,
    /// Whether probes of a node where packets end repeat prices of nodes three hops away, too. Paths to it meet there, and its neighbours
    /// sense nodes that are four hops away by the path around it: a source beside it paid nothing for the branch that it held up
    /// (`docs/studies/dpclo.md`). Ours.
    pub repeats: bool,
}

/// Tokens earned by overhearing the next hop (Fusion).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverhearLaw {
    /// Most tokens that a source can hold. 5 (ours).
    pub most: f64,
    /// Tokens a second that come without overhearing, so that lost packets cannot silence a source permanently. 1 (ours).
    pub floor: f64,
}

/// The term of the rate law that drains a standing queue at a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    /// The queue that may remain, in packets. 3 (ours).
    pub target: f64,
    /// The time in which the rest drains. 5 s (ours: ten updates).
    pub time: Duration,
}

/// The MAC's class for each price (IV-F): thresholds as shares of the queue limit. Routing frames have the class above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priorities {
    /// Whether the length of the node's own queue counts, not its difference to the neighbour's: the last hop's difference is
    /// the largest, so that traffic near the destination would go first. Default no (the paper: "the largest price").
    pub by_queue: bool,
    /// At this share and above [`Class::Urgent`](chappe_core::Class::Urgent). Default 0.5 (ours).
    pub high: f64,
    /// At this share and above [`Class::Data`](chappe_core::Class::Data), below it `Background`. Default 0.2 (ours).
    pub medium: f64,
    /// Data over links up to this ETX has [`Class::Urgent`](chappe_core::Class::Urgent) whatever its price, where that class has shorter
    /// windows ([`Caps::hastens`](chappe_core::Caps::hastens)). Default none; 4 in the improved variant (ours: a link that takes more
    /// transmissions has hidden senders about, who need windows that grow). Packets that go first still do, in their node.
    pub hasty: Option<f64>,
}

/// Extensions to the paper, each switchable separately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extras {
    /// V: each ETX by which a neighbour is nearer to the destination counts as V packets of queue difference. It gives a
    /// direction when queues are equal. 0 is off; 2 in [`Extras::ALL`] (BCP).
    pub bias: f64,
    /// The newest packet is sent first, and packets that a full queue pushes out still count in its length (BCP's floating
    /// queue).
    pub lifo: bool,
    /// A queue counts one packet more for each multiple of this time that its oldest packet has waited.
    pub age_weight: Option<Duration>,
    /// Weight of the old value in the queue length that is advertised and compared. 0 is off; 0.65 in [`Extras::ALL`]
    /// (IRON).
    pub smoothing: f64,
    /// Packets of one flow stay on one next hop.
    pub pins: Option<Pins>,
    /// How long an early packet waits at the destination for those before it. 30 ms in [`Extras::ALL`] (ours).
    pub resequence: Option<Duration>,
    /// A packet that a neighbour acknowledged, or that was overheard on its way to it, counts in that neighbour's queue until
    /// it advertises anew. Off where the link does not overhear.
    pub count_sent: bool,
    /// Credit-based flow control: a neighbour that advertised room for fewer packets than this gets none until it advertises
    /// more, or the advertisement expires. Packets sent meanwhile reduce the room. 0 is off; 15 in [`Extras::ALL`] (ours:
    /// several neighbours may send before one of them hears of it). Off where the link does not overhear.
    pub credits: u8,
    /// Changed queues are broadcast, where the link does not overhear.
    pub reports: Option<Reports>,
}

/// Reports of changed queues to neighbours that do not overhear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reports {
    /// Octets of reports for each octet of frames that the node sends or receives, both with `around`. 0.01 (IRON's overhead
    /// ratio).
    pub share: f64,
    /// Packets by which a queue must differ from its last reported length. 2 (ours; IRON has 5000 octets).
    pub change: f64,
    /// Overhead of a frame on the air, in octets. 84 (802.11b at 2 Mbit/s: 192 us of preamble and PLCP header, 36
    /// octets of MAC, LLC and FCS).
    pub around: usize,
}

/// When a pinned flow may change its next hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pins {
    /// After a pause of this length. 50 ms (ours).
    pub gap: Duration,
    /// Or when another next hop's price is this many times as high. 2 (ours).
    pub gain: f64,
}

/// Sizes of a node's tables. All memory is allocated when the router is created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Most destinations in the routing table. Default 128.
    pub destinations: u16,
    /// Most neighbours in the link table. Default 32.
    pub neighbours: u8,
    /// Most packets that wait, are in flight, or are delivered and not yet taken. Default 256.
    pub packets: u16,
    /// Largest payload of a packet in octets. Default 1500.
    pub payload: u16,
    /// Most flows that end here, and most flows that are pinned to a next hop. Default 64.
    pub flows: u16,
    /// Most destinations to which this node is a source at the same time. Default 16.
    pub sources: u16,
    /// Recently forwarded packets by which copies are recognised. Default 512.
    pub seen: u16,
}
