//! One run: routers on a medium, the streams between them, and the results of the streams.

use std::sync::Arc;

use chappe_core::{Duration, Instant, OverMac, Purpose, Seed};
use chappe_dpclo::header::DATA;
use chappe_dpclo::{Counters, RateLaw, Router, Settings};
use chappe_sim::{AirTime, Medium, Recorder, Simulator, World};

use super::access::{Access, Channel};
use super::load::{Pace, STAMP, Sink, Source};
use super::station::Station;
use super::streams::{HostMemory, Incoming, Outgoing, Stack, Streams, TcpHost};
use chappe_lab::carry::Record;
use chappe_lab::run::RunError;

/// A node of the mesh: channel access with a router on it.
pub type Node<'a> = OverMac<Channel, Station<'a>>;

/// The router of node n uses random stream `ROUTERS + n`; stream n belongs to its channel access.
const ROUTERS: u32 = 1 << 16;

/// Links below this delivery ratio do not count: of ten such links, at most one delivers a probe in a window of ten.
const HEARD: f64 = 0.01;

/// The description of a run: everything but medium, times and seed.
#[derive(Clone, Debug)]
pub struct MeshSpec {
    /// The settings of the routers.
    pub settings: Settings,
    /// The method of channel access and its parameters.
    pub access: Access,
    /// The TCP of the streams that use one.
    pub stack: Stack,
    /// The streams; a stream's index is its number.
    pub streams: Vec<Stream>,
}

/// Traffic from one node to another.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The node that sends.
    pub source: u16,
    /// The node that receives.
    pub sink: u16,
    /// Datagrams or TCP, and their contents.
    pub kind: StreamKind,
    /// When the source starts.
    pub begin: Instant,
    /// When the source stops.
    pub end: Instant,
}

/// The kind of a stream.
#[derive(Clone, Debug)]
pub enum StreamKind {
    /// Datagrams with this number of octets.
    Datagrams(Pace, usize),
    /// An object over TCP.
    Object(Arc<[u8]>),
    /// An unlimited number of octets over TCP.
    Endless,
}

impl StreamKind {
    fn is_tcp(&self) -> bool {
        !matches!(self, StreamKind::Datagrams(..))
    }
}

impl MeshSpec {
    /// Octets of the longest packet that an application offers to a router.
    pub fn payload(&self) -> u16 {
        let longest = self.streams.iter().map(|stream| match stream.kind {
            StreamKind::Datagrams(_, octets) => octets as u16,
            StreamKind::Object(_) | StreamKind::Endless => self.stack.packet(),
        });
        longest.max().unwrap_or(0).max(STAMP as u16)
    }

    /// Octets of that packet on the air, with the headers of router and 802.11 and the check sequence.
    pub fn frame(&self) -> usize {
        frame(usize::from(self.payload()))
    }

    /// The routers' settings with enough memory for the network and the streams.
    pub fn fitted(&self, medium: &Medium) -> Settings {
        let nodes = medium.nodes();
        let mut settings = self.settings;
        let ends = |node: u16| {
            let streams = self.streams.iter();
            let here = streams.filter(|stream| stream.source == node || stream.sink == node);
            here.count() as u16
        };
        let most = (0..nodes as u16).map(ends).max().unwrap_or(0);
        let room = &mut settings.room;
        room.payload = self.payload();
        room.destinations = room.destinations.max(nodes as u16);
        room.neighbours = room.neighbours.max(self.most_heard(medium));
        room.flows = room.flows.max(most.saturating_mul(2));
        room.sources = room.sources.max(most);
        if let RateLaw::Airtime(law) = &mut settings.rate {
            (law.around, law.octet) = self.airtime();
        }
        settings
    }

    /// What a transmission takes from the channel beside its octets, and for each octet.
    fn airtime(&self) -> (Duration, Duration) {
        let (mode, frame) = (self.access.station.data, self.frame());
        let longer = mode.airtime(frame + 1000);
        let octet = longer.saturating_sub(mode.airtime(frame)) / 1000;
        let routed = DATA + usize::from(self.payload());
        let whole = self.access.mean_exchange(frame);
        (whole.saturating_sub(octet * routed as u64), octet)
    }

    /// The largest number of nodes that any node hears at least occasionally. Each one occupies a row of the router's
    /// neighbour table.
    fn most_heard(&self, medium: &Medium) -> u8 {
        // On their ways, any node may meet any other.
        if medium.motion().is_some() {
            return u8::try_from(medium.nodes()).unwrap_or(u8::MAX);
        }
        let mut heard = vec![0u8; medium.nodes()];
        for from in 0..medium.nodes() {
            for to in medium.hearers(from) {
                let ratio = medium.prr(from, to, self.access.station.data, self.frame());
                heard[to] = heard[to].saturating_add(u8::from(ratio >= HEARD));
            }
        }
        heard.into_iter().max().unwrap_or(0)
    }

    /// Creates the router of a node. `life` counts its restarts, `now` is its start, and `settings` are
    /// [`fitted`](Self::fitted).
    pub fn router(
        &self,
        settings: Settings,
        (node, life): (usize, u8),
        now: Instant,
        seed: Seed,
    ) -> Result<Router, RunError> {
        let random = seed.stream(Purpose::Node(ROUTERS + node as u32));
        let caps = self.access.caps();
        Router::new(settings, node as u16, life, &caps, now, random)
            .map_err(|error| RunError::Defect(format!("router: {error}")))
    }

    /// Allocates the memory of TCP hosts, for each node at an end of a TCP stream.
    pub fn host_memory(&self, nodes: usize) -> Vec<Option<HostMemory>> {
        let needs = |node: u16| {
            let mut streams = self.streams.iter();
            streams.any(|s| s.kind.is_tcp() && (s.source == node || s.sink == node))
        };
        (0..nodes as u16)
            .map(|node| needs(node).then(|| HostMemory::new(node, self.stack)))
            .collect()
    }

    /// Creates the simulator with all nodes. `keep`: whether hosts keep copies of objects.
    pub fn launch<'a, R: Recorder>(
        &self,
        mut world: World,
        memory: &'a mut [Option<HostMemory>],
        keep: bool,
        seed: Seed,
        recorder: R,
    ) -> Result<Simulator<Node<'a>, R>, RunError> {
        let settings = self.fitted(&world.medium);
        let channels = self.access.stations(&world.medium, self.frame(), seed);
        world.frame_max = world.frame_max.max(self.access.frame_max());
        let mut stations = Vec::new();
        for ((node, channel), memory) in channels.into_iter().enumerate().zip(memory) {
            let router = self.router(settings, (node, 0), Instant::ZERO, seed)?;
            let mut station = Station::new(router, self.settings.queues.limit);
            self.load(&mut station, node as u16, memory.as_mut(), keep);
            stations.push(Box::new(OverMac::new(channel, station)));
        }
        Simulator::new(world, stations, seed, recorder)
            .map_err(|error| RunError::Defect(error.to_string()))
    }

    fn load<'a>(
        &self,
        station: &mut Station<'a>,
        node: u16,
        memory: Option<&'a mut HostMemory>,
        keep: bool,
    ) {
        let mut streams = Streams::default();
        for (number, stream) in self.streams.iter().enumerate() {
            let number = number as u16;
            let (begins, ends) = (stream.source == node, stream.sink == node);
            let object = match &stream.kind {
                &StreamKind::Datagrams(pace, octets) => {
                    if begins {
                        let span = (stream.begin, stream.end);
                        let to = (number, stream.sink);
                        station.sources.push(Source::new(to, (pace, octets), span));
                    }
                    if ends {
                        station.sinks.push(Sink {
                            stream: number,
                            from: stream.source,
                            ..Sink::default()
                        });
                    }
                    continue;
                }
                StreamKind::Object(object) => Some(object.clone()),
                StreamKind::Endless => None,
            };
            if ends {
                streams.incoming.push(Incoming {
                    stream: number,
                    keep: keep && object.is_some(),
                    ..Incoming::default()
                });
            }
            if begins {
                let span = (stream.begin, stream.end);
                let outgoing = Outgoing::new((number, stream.sink), object, span);
                streams.outgoing.push(outgoing);
            }
        }
        station.host = memory.map(|memory| TcpHost::new(node, memory, streams));
    }
}

/// Octets on the air of a packet with `payload` octets: MAC header 24, LLC 8, router 16, check sequence 4.
pub fn frame(payload: usize) -> usize {
    24 + 8 + chappe_dpclo::header::DATA + payload + 4
}

/// The result of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// When octets arrived in order, and how many.
    pub arrivals: Vec<(Instant, u32)>,
    /// Time of arrival and delay in seconds of each packet.
    pub delays: Vec<(Instant, f64)>,
    /// Packets that the router accepted.
    pub accepted: u64,
    /// Datagrams dropped because the source's queue was full.
    pub overdue: u64,
    /// Datagrams that arrived with wrong contents.
    pub wrong: u64,
}

impl StreamResult {
    /// Octets that arrived between two instants.
    pub fn octets(&self, (from, until): (Instant, Instant)) -> u64 {
        let within = |&&(at, _): &&(Instant, u32)| from <= at && at < until;
        let arrived = self.arrivals.iter().filter(within);
        arrived.map(|&(_, octets)| u64::from(octets)).sum()
    }

    /// Goodput between two instants in bit/s.
    pub fn bps(&self, span: (Instant, Instant)) -> f64 {
        let seconds = span.1.saturating_since(span.0).as_secs_f64();
        self.octets(span) as f64 * 8.0 / seconds.max(1e-9)
    }

    /// Delays in seconds of the packets that arrived between two instants.
    pub fn delays(&self, (from, until): (Instant, Instant)) -> Vec<f64> {
        let within = |&&(at, _): &&(Instant, f64)| from <= at && at < until;
        let arrived = self.delays.iter().filter(within);
        arrived.map(|&(_, delay)| delay).collect()
    }
}

/// Collects the results of all streams, in the order of the streams.
pub fn measure<R: Recorder>(
    spec: &MeshSpec,
    simulator: &Simulator<Node<'_>, R>,
) -> Vec<StreamResult> {
    let one = |(number, stream): (usize, &Stream)| {
        let (source, sink) = (usize::from(stream.source), usize::from(stream.sink));
        let ends = [source, sink].map(|node| &simulator.node(node).link);
        let mut result = match stream.kind.is_tcp() {
            true => connection(number as u16, stream, ends),
            false => datagrams(number as u16, stream, ends),
        };
        // The sink noted them by its own clock, which may drift.
        let arrivals = result.arrivals.iter_mut().map(|(at, _)| at);
        for at in arrivals.chain(result.delays.iter_mut().map(|(at, _)| at)) {
            *at = Instant::from_nanos(simulator.air_time(sink, *at).nanos());
        }
        result
    };
    spec.streams.iter().enumerate().map(one).collect()
}

fn datagrams(number: u16, stream: &Stream, [source, sink]: [&Station<'_>; 2]) -> StreamResult {
    let from = source.sources.iter().find(|own| own.stream == number);
    let mut sinks = sink.sinks.iter();
    let to = sinks.find(|own| (own.stream, own.from) == (number, stream.source));
    StreamResult {
        arrivals: to.map_or_else(Vec::new, |sink| {
            sink.arrivals
                .iter()
                .map(|&(at, _, octets)| (at, octets))
                .collect()
        }),
        delays: to.map_or_else(Vec::new, |sink| {
            sink.arrivals
                .iter()
                .map(|&(at, delay, _)| (at, delay))
                .collect()
        }),
        accepted: from.map_or(0, |source| source.accepted),
        overdue: from.map_or(0, |source| source.overdue),
        wrong: to.map_or(0, |sink| sink.wrong),
    }
}

fn connection(number: u16, stream: &Stream, [source, sink]: [&Station<'_>; 2]) -> StreamResult {
    let left = source.left.iter().find(|(name, _)| *name == number);
    let left = left.map_or(&[][..], |(_, times)| times);
    let arrived = sink.arrivals.iter();
    let delays = arrived
        .filter(|(name, from, ..)| (*name, *from) == (number, stream.source))
        .filter_map(|&(_, _, count, at)| {
            let since = left.get(count as usize)?;
            Some((at, at.saturating_since(*since).as_secs_f64()))
        });
    let host = sink.host.as_ref();
    let mut incoming = host.into_iter().flat_map(|host| &host.streams().incoming);
    let received = incoming.find(|own| own.stream == number);
    StreamResult {
        arrivals: received.map_or_else(Vec::new, |own| own.arrivals.clone()),
        delays: delays.collect(),
        accepted: left.len() as u64,
        ..StreamResult::default()
    }
}

/// The counters of each router.
pub fn router_counters<R: Recorder>(simulator: &Simulator<Node<'_>, R>) -> Vec<Counters> {
    let nodes = simulator.nodes();
    nodes.map(|node| node.link.router.counters()).collect()
}

/// The phases of a run, in seconds from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When streams begin. Routes exist by then.
    pub begin: u64,
    /// The time at which counting begins.
    pub counted: u64,
    /// When the run ends.
    pub end: u64,
}

impl Times {
    /// The instant `seconds` after the start.
    pub fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// The interval that is counted.
    pub fn span(&self) -> (Instant, Instant) {
        (Times::at(self.counted), Times::at(self.end))
    }
}

/// Runs a spec on a medium until `times.end`. Returns the results of the streams and the routers' counters.
pub fn run(
    spec: &MeshSpec,
    medium: &Medium,
    times: Times,
    seed: Seed,
) -> Result<(Vec<StreamResult>, Vec<Counters>), RunError> {
    let mut memory = spec.host_memory(medium.nodes());
    let world = World::new(medium.clone());
    let mut simulator = spec.launch(world, &mut memory, false, seed, Record::Trial(()))?;
    simulator.run_until(AirTime::ZERO + Duration::from_secs(times.end));
    Ok((measure(spec, &simulator), router_counters(&simulator)))
}
