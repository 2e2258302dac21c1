//! One run: routers on a medium, streams between them, and what became of these.

use std::sync::Arc;

use chappe_core::{Duration, Instant, OverMac, Purpose, Seed};
use chappe_dpclo::{Counters, Router, Settings};
use chappe_sim::{AirTime, Medium, Recorder, Simulator, World};

use super::access::{Access, Channel};
use super::load::{Pace, STAMP, Sink, Source};
use super::station::Station;
use super::streams::{Behind, Incoming, Lent, Outgoing, Stack, Streams};
use chappe_lab::run::RunError;

/// A node of the mesh on its radio.
pub type Node<'a> = OverMac<Channel, Station<'a>>;

/// Random numbers of routers, apart from those of channel access: node n's stream stands this far up.
const ROUTERS: u32 = 1 << 16;

/// A link of less than this share of frames is not heard of within a window of ten probes, but for one in ten.
const HEARD: f64 = 0.01;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How packets find their way.
    pub settings: Settings,
    /// How nodes share the channel.
    pub access: Access,
    /// What TCP streams are made by.
    pub stack: Stack,
    /// What is sent.
    pub streams: Vec<Stream>,
}

/// Traffic from one node to another; its number is its place.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Where it begins.
    pub source: u16,
    /// Where it ends.
    pub sink: u16,
    /// What it is.
    pub what: What,
    /// When it begins.
    pub begin: Instant,
    /// When its source stops.
    pub end: Instant,
}

/// What a stream is.
#[derive(Clone, Debug)]
pub enum What {
    /// Datagrams of so many octets.
    Datagrams(Pace, usize),
    /// An object over TCP.
    Object(Arc<[u8]>),
    /// Octets without end over TCP.
    Endless,
}

impl What {
    fn is_tcp(&self) -> bool {
        !matches!(self, What::Datagrams(..))
    }
}

impl Setup {
    /// Octets of the longest packet that an application hands to a router.
    pub fn payload(&self) -> u16 {
        let longest = self.streams.iter().map(|stream| match stream.what {
            What::Datagrams(_, octets) => octets as u16,
            What::Object(_) | What::Endless => self.stack.packet(),
        });
        longest.max().unwrap_or(0).max(STAMP as u16)
    }

    /// Octets of that packet on the air, with the headers of router and 802.11 and the check sequence.
    pub fn frame(&self) -> usize {
        frame(usize::from(self.payload()))
    }

    /// The settings with as much memory as the network and the streams need.
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
        room.neighbours = room.neighbours.max(self.audience(medium));
        room.flows = room.flows.max(most.saturating_mul(2));
        room.sources = room.sources.max(most);
        settings
    }

    /// The largest number of nodes of which one node hears a frame now and then: each takes a place among its neighbours.
    fn audience(&self, medium: &Medium) -> u8 {
        let mut heard = vec![0u8; medium.nodes()];
        for from in 0..medium.nodes() {
            for to in medium.hearers(from) {
                let ratio = medium.prr(from, to, self.access.station.data, self.frame());
                heard[to] = heard[to].saturating_add(u8::from(ratio >= HEARD));
            }
        }
        heard.into_iter().max().unwrap_or(0)
    }

    /// The router of a node in its n-th life, which begins `now`; `settings` are [`fitted`](Self::fitted).
    pub fn router(
        &self,
        settings: Settings,
        (node, life): (usize, u8),
        now: Instant,
        seed: Seed,
    ) -> Result<Router, RunError> {
        let random = seed.stream(Purpose::Node(ROUTERS + node as u32));
        let caps = self.access.station.caps();
        Router::new(settings, node as u16, life, &caps, now, random)
            .map_err(|error| RunError::Defect(format!("router: {error}")))
    }

    /// What the hosts of a run are lent: for each node with an end of a TCP stream.
    pub fn lend(&self, nodes: usize) -> Vec<Option<Lent>> {
        let needs = |node: u16| {
            let mut streams = self.streams.iter();
            streams.any(|s| s.what.is_tcp() && (s.source == node || s.sink == node))
        };
        (0..nodes as u16)
            .map(|node| needs(node).then(|| Lent::new(node, self.stack)))
            .collect()
    }

    /// The simulator with every node at its place.
    pub fn launch<'a, R: Recorder>(
        &self,
        world: World,
        lent: &'a mut [Option<Lent>],
        keep: bool,
        seed: Seed,
        recorder: R,
    ) -> Result<Simulator<Node<'a>, R>, RunError> {
        let settings = self.fitted(&world.medium);
        let channels = self.access.stations(&world.medium, self.frame(), seed);
        let mut stations = Vec::new();
        for ((node, channel), lent) in channels.into_iter().enumerate().zip(lent) {
            let router = self.router(settings, (node, 0), Instant::ZERO, seed)?;
            let mut station = Station::new(router, self.settings.queues.limit);
            self.load(&mut station, node as u16, lent.as_mut(), keep);
            stations.push(Box::new(OverMac::new(channel, station)));
        }
        Simulator::new(world, stations, seed, recorder)
            .map_err(|error| RunError::Defect(error.to_string()))
    }

    fn load<'a>(
        &self,
        station: &mut Station<'a>,
        node: u16,
        lent: Option<&'a mut Lent>,
        keep: bool,
    ) {
        let mut streams = Streams::default();
        for (number, stream) in self.streams.iter().enumerate() {
            let number = number as u16;
            let (begins, ends) = (stream.source == node, stream.sink == node);
            let object = match &stream.what {
                &What::Datagrams(pace, octets) => {
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
                What::Object(object) => Some(object.clone()),
                What::Endless => None,
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
        station.host = lent.map(|lent| Behind::new(node, lent, streams));
    }
}

/// Octets on the air of a packet with so many octets of payload: MAC header 24, LLC 8, router 16, check sequence 4.
pub fn frame(payload: usize) -> usize {
    24 + 8 + chappe_dpclo::header::DATA + payload + 4
}

/// What became of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// When octets came in order, and how many.
    pub came: Vec<(Instant, u32)>,
    /// How long packets took in seconds, by when they came.
    pub delays: Vec<(Instant, f64)>,
    /// Datagrams that the router took, and those for which the source had no place.
    pub accepted: u64,
    /// See `accepted`.
    pub overdue: u64,
    /// Datagrams that were not what had been sent.
    pub wrong: u64,
}

impl Measured {
    /// Octets that came between two moments.
    pub fn octets(&self, (from, until): (Instant, Instant)) -> u64 {
        let within = |&&(at, _): &&(Instant, u32)| from <= at && at < until;
        let came = self.came.iter().filter(within);
        came.map(|&(_, octets)| u64::from(octets)).sum()
    }

    /// Bits a second between two moments.
    pub fn bps(&self, span: (Instant, Instant)) -> f64 {
        let seconds = span.1.saturating_since(span.0).as_secs_f64();
        self.octets(span) as f64 * 8.0 / seconds.max(1e-9)
    }

    /// Delays of what came between two moments, in seconds.
    pub fn delays(&self, (from, until): (Instant, Instant)) -> Vec<f64> {
        let within = |&&(at, _): &&(Instant, f64)| from <= at && at < until;
        let came = self.delays.iter().filter(within);
        came.map(|&(_, delay)| delay).collect()
    }
}

/// What became of the streams of a run.
pub fn measure<R: Recorder>(setup: &Setup, simulator: &Simulator<Node<'_>, R>) -> Vec<Measured> {
    let one = |(number, stream): (usize, &Stream)| {
        let (source, sink) = (usize::from(stream.source), usize::from(stream.sink));
        let ends = [source, sink].map(|node| &simulator.node(node).link);
        match stream.what.is_tcp() {
            true => connection(number as u16, stream, ends),
            false => datagrams(number as u16, stream, ends),
        }
    };
    setup.streams.iter().enumerate().map(one).collect()
}

fn datagrams(number: u16, stream: &Stream, [source, sink]: [&Station<'_>; 2]) -> Measured {
    let from = source.sources.iter().find(|own| own.stream == number);
    let mut sinks = sink.sinks.iter();
    let to = sinks.find(|own| (own.stream, own.from) == (number, stream.source));
    Measured {
        came: to.map_or_else(Vec::new, |sink| {
            sink.came
                .iter()
                .map(|&(at, _, octets)| (at, octets))
                .collect()
        }),
        delays: to.map_or_else(Vec::new, |sink| {
            sink.came
                .iter()
                .map(|&(at, delay, _)| (at, delay))
                .collect()
        }),
        accepted: from.map_or(0, |source| source.accepted),
        overdue: from.map_or(0, |source| source.overdue),
        wrong: to.map_or(0, |sink| sink.wrong),
    }
}

fn connection(number: u16, stream: &Stream, [source, sink]: [&Station<'_>; 2]) -> Measured {
    let left = source.left.iter().find(|(name, _)| *name == number);
    let left = left.map_or(&[][..], |(_, times)| times);
    let came = sink.came.iter();
    let delays = came
        .filter(|(name, from, ..)| (*name, *from) == (number, stream.source))
        .filter_map(|&(_, _, count, at)| {
            let since = left.get(count as usize)?;
            Some((at, at.saturating_since(*since).as_secs_f64()))
        });
    let host = sink.host.as_ref();
    let mut incoming = host.into_iter().flat_map(|host| &host.streams().incoming);
    let received = incoming.find(|own| own.stream == number);
    Measured {
        came: received.map_or_else(Vec::new, |own| own.came.clone()),
        delays: delays.collect(),
        accepted: left.len() as u64,
        ..Measured::default()
    }
}

/// The counters of all routers, added up.
pub fn routers<R: Recorder>(simulator: &Simulator<Node<'_>, R>) -> Vec<Counters> {
    let nodes = simulator.nodes();
    nodes.map(|node| node.link.router.counters()).collect()
}

/// When something is counted, in seconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Streams begin: routes are there by then.
    pub begin: u64,
    /// Counting begins.
    pub counted: u64,
    /// The run ends.
    pub end: u64,
}

impl Times {
    /// So many seconds after the start.
    pub fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// What is counted.
    pub fn span(&self) -> (Instant, Instant) {
        (Times::at(self.counted), Times::at(self.end))
    }
}

/// Runs a setup on a medium until `times` are over: what became of its streams, and the routers' counters.
pub fn run(
    setup: &Setup,
    medium: &Medium,
    times: Times,
    seed: Seed,
) -> Result<(Vec<Measured>, Vec<Counters>), RunError> {
    let mut lent = setup.lend(medium.nodes());
    let world = World::new(medium.clone());
    let mut simulator = setup.launch(world, &mut lent, false, seed, ())?;
    simulator.run_until(AirTime::ZERO + Duration::from_secs(times.end));
    Ok((measure(setup, &simulator), routers(&simulator)))
}
