//! One seed of a scenario: Pacifier's part of the run loop (stations, offers, progress, counters, bounds).

use std::sync::Arc;

use chappe_core::{Address, Duration, Instant, OverMac, Purpose, SPEED_OF_LIGHT, Seed};
use chappe_lab::carry::{self, Begun, Carry, Limits, Receipt, Report, RunSpec, Running};
use chappe_lab::run::{Meter, Outcome, RunError, WORK};
use chappe_lab::system::Job;
use chappe_mac::dot11::{self, Dot11};
use chappe_pacifier::improved::turns::Turns;
use chappe_pacifier::paper::{self, Variant, more};
use chappe_pacifier::{Config, Links, Node, Offered};
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::plan::REACHABLE_PRR;
use chappe_scenario::{self as scenario, Plan, Settings, System, Transfer};
use chappe_sim::Reading;
use chappe_trace::Labeller;

use super::label::label;
use super::proven::Proven;
use super::turns::turns;
use super::{Depth, Pacifier, Prepared, SYSTEM, prepare};

/// A Pacifier node on 802.11.
type Station = OverMac<Dot11, Node>;

/// Node n draws coding vectors from random stream `CODING + n`; streams 0 to n are those of back-offs.
const CODING: u32 = 1 << 16;

/// A run without a limit ends when no node has decoded a batch for this long, plus up to half an hour on slow
/// networks ([`STALL_FACTOR`]). MORE with a receiver that is cut off stalls permanently.
const STALL_S: f64 = 120.0;

/// Seconds added to [`STALL_S`] for each second that the transfer takes at its bound, of which at most 60 count.
const STALL_FACTOR: f64 = 30.0;

/// Runs one seed: prepares its network, carries its transfers, and compares the result with the bound.
pub(super) fn run(job: Job<'_>, meter: &Meter) -> Result<Outcome, RunError> {
    let with = Pacifier::of(job.plan)?;
    let prepared = prepare(with, job.network, Depth::Slowest, meter)?;
    meter.advance(WORK);
    let spec = RunSpec {
        plan: job.plan,
        network: &prepared.network,
        copies: job.copies,
        pcap: job.pcap,
        traces: job.traces,
    };
    let mut now = PacifierRun::new(with, &prepared);
    if now.turns.is_some() {
        now.proven = Proven::under_interference(with, &prepared.network)?;
    }
    let proven = now.proven.clone();
    let mut outcome = carry::carry(now, spec, meter)?;
    proven.check(with, &outcome.run)?;
    if !outcome.run.all_complete() {
        let seed = outcome.run.seed;
        let late = late_acks(with, &prepared, &outcome.run);
        outcome
            .notes
            .extend(late.map(|note| format!("seed {seed}: {note}")));
    }
    Ok(outcome)
}

/// A source that never pauses sends until it has heard of a batch: MORE's, and those of TREE and TREE+RL whose packets no node forwards. An
/// acknowledgement that begins in the gap after a frame, which is the longest back-off at most, comes after the source's next frame has
/// begun where the way there and back takes longer.
fn late_acks(with: &Pacifier, prepared: &Prepared, run: &Run) -> Option<String> {
    let variant = with.variant();
    let lone = run.counter("forwarders") == 0;
    let all = match variant.name {
        "more" => true,
        "tree" | "tree-rl" if lone => false,
        _ => return None,
    };
    let stretch = match with.mac.stretch_slot {
        true => with.mac.propagation_max,
        false => Duration::ZERO,
    };
    let gap = (with.mac.slot + stretch) * u64::from(with.mac.cw_min);
    let reach = gap.as_secs_f64() / 2.0 * SPEED_OF_LIGHT;
    let longest = match all {
        true => longest_link(prepared),
        false => longest_way(prepared, run),
    };
    (longest > reach).then(|| {
        format!(
            "{}'s source leaves gaps of {gap} at most, and a link of {:.0} km takes longer there and back: acknowledgements come while it \
             sends; `mac.distance_max` lengthens the gaps",
            variant.label,
            longest / 1e3
        )
    })
}

/// Metres between two nodes; zero where the network has no places.
fn metres(prepared: &Prepared, a: usize, b: usize) -> f64 {
    let places = prepared.network.medium.positions();
    let (Some(a), Some(b)) = (places.get(a), places.get(b)) else {
        return 0.0;
    };
    f64::hypot(f64::hypot(a.x - b.x, a.y - b.y), a.z - b.z)
}

/// Metres of the longest link that reaches.
fn longest_link(prepared: &Prepared) -> f64 {
    let delivery = &prepared.network.delivery;
    let nodes = prepared.network.medium.nodes();
    let used = (0..nodes * nodes).filter(|&link| delivery[link] >= REACHABLE_PRR);
    used.map(|link| metres(prepared, link / nodes, link % nodes))
        .fold(0.0, f64::max)
}

/// Metres from a source to the farthest receiver that lacks something.
fn longest_way(prepared: &Prepared, run: &Run) -> f64 {
    let lacking = run.flows.iter().filter(|flow| !flow.complete);
    lacking
        .map(|flow| metres(prepared, flow.source, flow.sink))
        .fold(0.0, f64::max)
}

/// Carries the transfers of a prepared seed on simulated 802.11.
pub fn carry(
    with: &Pacifier,
    prepared: &Prepared,
    spec: RunSpec<'_>,
    meter: &Meter,
) -> Result<Outcome, RunError> {
    carry::carry(PacifierRun::new(with, prepared), spec, meter)
}

/// One run: everything that is known when the transfer starts.
#[derive(Clone)]
struct PacifierRun {
    config: Config,
    mac: dot11::Config,
    variant: &'static scenario::Variant,
    links: Arc<Links>,
    seed: Seed,
    transfers: Arc<[Transfer]>,
    /// The time that the slowest transfer takes at its bound, in seconds.
    least_s: f64,
    proven: Proven,
    forwarders: usize,
    /// The source of the transfer whose members send in turns, and the turns.
    turns: Option<(u16, Arc<Turns>)>,
}

impl PacifierRun {
    fn new(with: &Pacifier, prepared: &Prepared) -> PacifierRun {
        let turns = turns(with, prepared);
        PacifierRun {
            config: match turns {
                Some(_) => in_turns(tuned(with, prepared)),
                None => tuned(with, prepared),
            },
            mac: match turns {
                Some(_) => in_slots(with.mac),
                None => with.mac,
            },
            variant: with.variant(),
            links: prepared.links.clone(),
            seed: Seed(prepared.network.seed),
            transfers: prepared.network.transfers.clone().into(),
            least_s: least_s(prepared),
            proven: match turns {
                Some(_) => Proven::nothing(),
                None => Proven::by_carrier_sense(prepared),
            },
            forwarders: 0,
            turns,
        }
    }

    fn offer(&self, station: &mut Station, transfer: &Transfer) -> Result<Offered, RunError> {
        let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
        let offered = station.link.offer(transfer.object.clone(), &receivers);
        offered.map_err(|error| RunError::Defect(format!("offer: {error:?}")))
    }
}

/// The time that the slowest transfer takes at the bound of carrier sense, in seconds. Where members send in turns it may take less: it
/// says how long to wait for a run, not what a run can do.
fn least_s(prepared: &Prepared) -> f64 {
    let pairs = prepared.network.transfers.iter().zip(&prepared.bounds);
    let each = pairs
        .map(|(transfer, bound)| transfer.object.len() as f64 * 8.0 / bound.worst_bps.max(1.0));
    each.fold(0.0, f64::max)
}

/// Channel access for frames in slots of their own, as FreeBSD's TDMA sets it on Atheros cards: no back-off, and no waiting after
/// frames that could not be decoded. The carrier is sensed still.
fn in_slots(mac: dot11::Config) -> dot11::Config {
    dot11::Config {
        cw_min: 0,
        cca_when_ready: true,
        eifs: false,
        difs_backoff: false,
        ..mac
    }
}

/// The parameters of members that send in turns.
fn in_turns(config: Config) -> Config {
    match config {
        Config::Improved(config) => Config::Improved(config.in_turns()),
        other => other,
    }
}

/// Pacifier's parameters, with MORE's threshold found if it is to be.
fn tuned(with: &Pacifier, prepared: &Prepared) -> Config {
    let mut config = with.protocol.config.clone();
    if let (true, Config::Paper(config)) = (with.protocol.tuned, &mut config) {
        let percents = prepared.network.transfers.iter().map(|transfer| {
            let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
            more::tuned_prune_percent(&prepared.links, transfer.source as u16, &receivers)
        });
        let percent = percents.min().unwrap_or(10);
        config.variant = Variant::More {
            prune: more::prune_share(percent),
        };
    }
    config
}

impl Carry for PacifierRun {
    type Node = Station;

    const LABELLER: Labeller = label;

    fn by(&self) -> (&'static System, &'static scenario::Variant) {
        (&SYSTEM, self.variant)
    }

    /// A restarted node keeps what its disk holds: the object that it sends, and which objects it expects.
    fn station(&self, node: usize, life: u32) -> Result<Box<Station>, RunError> {
        let seed = match life {
            0 => self.seed,
            life => self.seed.child(u64::from(life)),
        };
        let coding = seed.stream(Purpose::Node(CODING + node as u32));
        let mut link = Node::new(self.config.clone(), node as u16, self.links.clone(), coding)
            .map_err(|error| RunError::Defect(error.to_string()))?;
        if let Some((source, turns)) = &self.turns {
            link.take_turns(*source, turns.clone());
        }
        for transfer in self.transfers.iter() {
            if transfer.receivers.contains(&node) {
                link.expect(transfer.source as u16, transfer.object.len())
                    .map_err(|error| RunError::Defect(format!("expect: {error:?}")))?;
                link.trace(true);
            }
        }
        let back_off = seed.stream(Purpose::Node(node as u32));
        let mac = Dot11::new(self.mac, Address::node(node as u16), back_off);
        let mut station = Box::new(OverMac::new(mac, link));
        if life > 0 {
            for transfer in self
                .transfers
                .iter()
                .filter(|transfer| transfer.source == node)
            {
                self.offer(&mut station, transfer)?;
            }
        }
        Ok(station)
    }

    fn begin(
        &mut self,
        station: &mut Station,
        transfer: &Transfer,
        _: Instant,
    ) -> Result<Begun, RunError> {
        let offered = self.offer(station, transfer)?;
        self.forwarders += offered.forwarders;
        let mut notes = Vec::new();
        for lost in &offered.unreachable {
            notes.push(format!(
                "the probes found no path from {} to receiver {lost} and back, so the source does not wait for it",
                transfer.source
            ));
        }
        for lost in &offered.cut_off {
            notes.push(format!(
                "MORE's pruning leaves receiver {lost} without forwarders"
            ));
        }
        Ok(Begun {
            unreachable: offered.unreachable.into_iter().map(usize::from).collect(),
            notes,
        })
    }

    fn observe(&self, station: &Station, show: &mut dyn FnMut(Reading)) {
        let received = station.link.received();
        if received.batches > 0 {
            let done = f64::from(received.batches_done);
            show(Reading::number("batches_done", 0, done));
        }
        station
            .link
            .ranks(|batch, rank| show(Reading::number("rank", batch, rank as f64)));
    }

    fn completed(&self, station: &Station) -> Option<Instant> {
        station.link.received().complete_at
    }

    fn parts(&self, station: &Station, _: &Transfer) -> (u64, u64) {
        let received = station.link.received();
        (received.batches_done.into(), received.batches.into())
    }

    fn receipt<'n>(&self, station: &'n Station, _: &Transfer) -> Receipt<'n> {
        receipt(&station.link)
    }

    fn is_over(&mut self, running: &dyn Running<Station>, all_there: bool) -> bool {
        let mut sources = self.transfers.iter().map(|transfer| transfer.source);
        all_there && sources.all(|source| running.node(source).link.source_done())
    }

    fn limits(&self, plan: &Plan) -> Limits {
        Limits::of(plan, self.least_s)
            .stalling(plan, STALL_S + STALL_FACTOR * self.least_s.min(60.0))
    }

    fn count(&self, running: &dyn Running<Station>, report: &mut Report) {
        for node in 0..running.nodes() {
            let station = running.node(node);
            let (link, mac) = (station.link.counters(), station.mac.counters());
            report.count(DATA_TRANSMISSIONS, link.data_sent);
            report.count("source_transmissions", link.source_sent);
            report.count("relay_transmissions", link.relay_sent);
            report.count("innovative", link.innovative);
            report.count("non_innovative", link.non_innovative);
            report.count("acks_sent", link.acks_sent);
            if link.reports_sent > 0 {
                report.count("reports_sent", link.reports_sent);
            }
            report.count("acks_forwarded", link.acks_forwarded);
            report.count("ack_resends", link.ack_resends);
            report.count("pace_timeouts", link.pace_timeouts);
            report.count("children_heard", link.children_heard);
            report.count("mac_retries", mac.retries);
            report.count("mac_failures", mac.failed);
            report.count_each("dropped", link.drops.iter());
        }
        report.count("forwarders", self.forwarders as u64);
        if let Config::Paper(paper::Config {
            variant: Variant::More { prune },
            ..
        }) = self.config
        {
            report.count("prune_percent", (prune * 100.0).round() as u64);
        }
    }

    fn bound(&self, report: &mut Report) {
        for (transfer, bound) in self.proven.bounds.iter().enumerate() {
            report.bound(self.proven.name, bound.worst_bps, transfer);
        }
    }
}

/// What a node has received: octets, time of completion, and the copy.
pub(super) fn receipt(link: &Node) -> Receipt<'_> {
    let received = link.received();
    Receipt {
        octets: received.bytes,
        completed_s: received.complete_at.map(|at| at.as_secs_f64()),
        copy: link.object(),
        delay: None,
    }
}
