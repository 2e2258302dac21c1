//! What Pacifier gives the carrying engine: stations, offers, progress, counters, its bounds.

use std::sync::Arc;

use chappe_core::{Address, Instant, OverMac, Purpose, Seed};
use chappe_lab::carry::{self, Begun, Carry, Limits, Receipt, Report, RunSpec, Running};
use chappe_lab::run::{Meter, Outcome, RunError};
use chappe_mac::dot11::{self, Dot11};
use chappe_pacifier::paper::{self, Variant, more};
use chappe_pacifier::{Config, Links, Node, Offered};
use chappe_results::DATA_TRANSMISSIONS;
use chappe_scenario::{self as scenario, Plan, Settings, System, Transfer};

use super::{Pacifier, Prepared, SYSTEM, StageBound};

/// A Pacifier node on 802.11.
type Station = OverMac<Dot11, Node>;

/// Streams of coding vectors, apart from those of back-offs: node n's stands this far up.
const CODING: u32 = 1 << 16;

/// A run whose scenario sets no limit ends when nobody has decoded a batch for this long, and half an hour longer on
/// networks that need a minute or more. MORE with a receiver cut off stalls permanently.
const STALL_S: f64 = 120.0;

/// How much longer a stall is for each second that the bound asks for, of which a minute counts.
const STALL_FACTOR: f64 = 30.0;

/// Carries the transfers of a prepared seed.
pub fn carry(
    with: &Pacifier,
    prepared: &Prepared,
    spec: RunSpec<'_>,
    meter: &Meter,
) -> Result<Outcome, RunError> {
    carry::carry(PacifierRun::new(with, prepared), spec, meter)
}

/// One run: everything about the nodes' jobs that is known when the transfer starts.
#[derive(Clone)]
struct PacifierRun {
    config: Config,
    mac: dot11::Config,
    variant: &'static scenario::Variant,
    links: Arc<Links>,
    seed: Seed,
    transfers: Arc<[Transfer]>,
    bounds: Arc<[StageBound]>,
    forwarders: usize,
}

impl PacifierRun {
    fn new(with: &Pacifier, prepared: &Prepared) -> PacifierRun {
        PacifierRun {
            config: tuned(with, prepared),
            mac: with.mac,
            variant: with.variant(),
            links: prepared.links.clone(),
            seed: Seed(prepared.network.seed),
            transfers: prepared.network.transfers.clone().into(),
            bounds: prepared.bounds.clone().into(),
            forwarders: 0,
        }
    }

    fn offer(&self, station: &mut Station, transfer: &Transfer) -> Result<Offered, RunError> {
        let receivers: Vec<u16> = transfer.receivers.iter().map(|&node| node as u16).collect();
        let offered = station.link.offer(transfer.object.clone(), &receivers);
        offered.map_err(|error| RunError::Defect(format!("offer: {error:?}")))
    }

    /// The time that the slowest transfer must take, in seconds.
    fn least_s(&self) -> f64 {
        let pairs = self.transfers.iter().zip(self.bounds.iter());
        let each = pairs
            .map(|(transfer, bound)| transfer.object.len() as f64 * 8.0 / bound.worst_bps.max(1.0));
        each.fold(0.0, f64::max)
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

    fn by(&self) -> (&'static System, &'static scenario::Variant) {
        (&SYSTEM, self.variant)
    }

    /// A node that starts again has what its disk holds: the object that it sends, and what it shall receive.
    fn station(&self, node: usize, life: u32) -> Result<Box<Station>, RunError> {
        let seed = match life {
            0 => self.seed,
            life => self.seed.child(u64::from(life)),
        };
        let coding = seed.stream(Purpose::Node(CODING + node as u32));
        let mut link = Node::new(self.config.clone(), node as u16, self.links.clone(), coding)
            .map_err(|error| RunError::Defect(error.to_string()))?;
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
                "the probes found no path from {} to receiver {lost} and back, so it is not waited for",
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
        let least = self.least_s();
        Limits::of(plan, least).stalling(plan, STALL_S + STALL_FACTOR * least.min(60.0))
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
        for (transfer, bound) in self.bounds.iter().enumerate() {
            report.bound(StageBound::NAME, bound.worst_bps, transfer);
        }
    }
}

/// What a node has received.
pub(super) fn receipt(link: &Node) -> Receipt<'_> {
    let received = link.received();
    Receipt {
        octets: received.bytes,
        completed_s: received.complete_at.map(|at| at.as_secs_f64()),
        copy: link.object(),
        delay: None,
    }
}
