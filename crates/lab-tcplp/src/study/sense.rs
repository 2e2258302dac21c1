//! Sense and send (8.2): every leaf makes a reading each second, and sends readings one by one or in batches of 64.

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_tcplp::baseline::Report;
use chappe_tcplp::host::{Collect, Readings, Sense};

use super::super::addresses::CLOUD;
use super::super::app::App;
use super::super::lln::{Counts, Lln};
use super::super::transport::WINDOW;
use super::{
    Frames, Interference, LEAVES, Protocol, READING, Sleeping, cost, disturb, experiment, improve,
};

/// Readings in a batch (8.2.1).
pub const BATCH: u32 = 64;
/// Readings that a mote has room for, send buffer included: about 8 KiB of Hamilton's 32 KiB. The paper says "most of the
/// remaining RAM" (8.2).
const ROOM: u32 = 104;
/// The time from which leaves are switched on.
const BEGIN: Duration = Duration::from_secs(16);
/// How long readings may still be delivered after the last one is made.
const PATIENCE: Duration = Duration::from_secs(900);

/// The description of one run, without the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The protocol that carries the readings.
    pub protocol: Protocol,
    /// The size of its segments or messages.
    pub frames: Frames,
    /// Readings in a batch; 1 sends each reading at once.
    pub batch: u32,
    /// Share of packets lost at the border router, each way.
    pub loss: f64,
    /// The interference on all links.
    pub interference: Interference,
    /// The number of measured batches, of 64 s each.
    pub rounds: u32,
    /// The pause of a leaf between its frames, if it differs from the protocol's.
    pub pace: Option<Duration>,
    /// The longest pause before a link retry of any node, if it differs from the protocol's.
    pub retry_delay: Option<Duration>,
    /// The number of the improved variant's [`STEPS`](super::STEPS) to add to a protocol that has none.
    pub steps: usize,
}

/// The result of one trial: means over the leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Share of the readings made that reached the server.
    pub reliability: f64,
    /// Radio duty cycle: the share of time awake, which is receiving, sending, loading a frame or backing off.
    pub radio: f64,
    /// The part of it for receiving and sending only.
    pub on_air: f64,
    /// Processor duty cycle ([`cost::cpu`]).
    pub cpu: f64,
    /// Retransmissions of the transport per ten minutes.
    pub retransmissions: f64,
    /// The number of these that followed a timeout.
    pub timeouts: f64,
    /// Data requests per minute.
    pub requests: f64,
    /// Data frames per minute, link retries included.
    pub frames: f64,
    /// Share of the leaves' frames that were link retries.
    pub link_retries: f64,
    /// Share of the leaves' packets that did not reach the border router.
    pub packet_loss: f64,
    /// Share of the readings dropped at a full queue.
    pub overflow: f64,
    /// Mean number of frames of the leaves' packets, which include acknowledgements of the server's data.
    pub frames_per_packet: f64,
}

impl Trial {
    /// The paper's workload (8.2.2): batches of 64, segments of five frames.
    pub fn paper(protocol: Protocol, rounds: u32) -> Trial {
        Trial {
            protocol,
            frames: Frames::Five,
            batch: BATCH,
            loss: 0.0,
            interference: Interference::NONE,
            rounds,
            pace: None,
            retry_delay: None,
            steps: 0,
        }
    }

    /// The same with segments of another size.
    pub fn with(self, frames: Frames) -> Trial {
        Trial { frames, ..self }
    }

    /// The number of readings that every leaf makes.
    fn readings(&self) -> u32 {
        // Two batches before the measured ones, and one after them.
        (self.rounds + 3) * BATCH
    }

    fn counted(&self) -> Duration {
        Duration::from_secs(u64::from(self.rounds * BATCH))
    }

    /// Runs the trial with one seed.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let mut experiment = experiment(self.protocol, self.frames, Some(Sleeping::PAPER));
        experiment.lose = (self.loss, self.loss);
        improve(&mut experiment, self.steps);
        experiment.pace = self.pace.unwrap_or(experiment.pace);
        let mac = &mut experiment.mac;
        mac.retry_delay = self.retry_delay.unwrap_or(mac.retry_delay);
        disturb(&mut experiment, self.interference);
        let mut memory = experiment.memory();
        let mut lln = experiment.start(&mut memory, seed, |node| self.app(node, seed))?;
        self.open(&mut lln, seed);
        let begin = BEGIN + Duration::from_secs(u64::from(2 * BATCH));
        lln.run(begin.saturating_sub(lln.now()));
        let (counts, before) = (lln.counts(), awake(&lln));
        lln.run(self.counted());
        let (counts, after) = (lln.counts().since(&counts), awake(&lln));
        let spans = after.iter().zip(&before);
        let spans: Vec<f64> = spans.map(|(now, then)| now - then).collect();
        self.finish(&mut lln);
        Ok(self.measure(&lln, &counts, &spans))
    }

    /// Each leaf opens its connection when its first batch is due. A connection that opens long before may fail: if the
    /// handshake's last ACK is lost, the server retransmits its SYN-ACK for two minutes, which a sleeping leaf does not hear.
    fn open(&self, lln: &mut Lln<'_>, seed: Seed) {
        let wait = Duration::from_secs(u64::from(self.batch));
        let mut due = LEAVES.map(|leaf| (first(leaf, seed) + wait, leaf));
        due.sort();
        for (at, leaf) in due.into_iter().filter(|_| self.protocol.is_tcp()) {
            lln.run(at.saturating_sub(lln.now()));
            lln.connect(leaf, 0);
        }
    }

    fn app(&self, node: usize, seed: Seed) -> App {
        if node == 0 {
            return App::Collect(Collect::default());
        }
        if !LEAVES.contains(&node) {
            return App::Nothing;
        }
        let mut readings = Readings::tcplp(Instant::ZERO + first(node, seed));
        readings.batch = self.batch;
        readings.limit = self.readings();
        let (mss, per_message) = self.protocol.sizes(self.frames);
        if self.protocol.is_tcp() {
            let buffer = (u32::from(mss) - 12) * WINDOW as u32;
            // A mote's room is the same for all protocols, so TCP's send buffer is taken from the queue.
            readings.queue_max = ROOM - buffer / READING;
            return App::Sense(Sense::new(readings));
        }
        readings.queue_max = ROOM;
        let client = self.protocol.client(node, seed);
        App::Report(Report::new(
            readings,
            client,
            CLOUD,
            per_message.min(self.batch),
        ))
    }

    /// Runs until all readings are delivered or lost.
    fn finish(&self, lln: &mut Lln<'_>) {
        let phase = Duration::from_secs(u64::from(4 * BATCH));
        let limit = PATIENCE + phase;
        let done = |lln: &mut Lln<'_>| LEAVES.iter().all(|&leaf| self.is_done(lln, leaf));
        lln.run_until(limit, Duration::from_secs(1), done);
    }

    fn is_done(&self, lln: &Lln<'_>, leaf: usize) -> bool {
        match lln.app(leaf) {
            App::Sense(sense) => {
                let waits = sense.readings.waiting() > 0 || lln.info(leaf, 0).unacknowledged > 0;
                sense.readings.made == self.readings() && !waits
            }
            App::Report(report) => {
                let ended = report.done + report.given_up + report.readings.lost;
                ended == self.readings()
            }
            _ => true,
        }
    }

    fn measure(&self, lln: &Lln<'_>, counts: &Counts, awake: &[f64]) -> Measured {
        let time = counts.time;
        let minutes = time.as_secs_f64() / 60.0;
        let mut sum = Measured::default();
        let (mut sent, mut again, mut made_of) = (0, 0, 0);
        for (&leaf, awake) in LEAVES.iter().zip(awake) {
            let node = &counts.nodes[leaf];
            let (made, lost) = match lln.app(leaf) {
                App::Sense(sense) => (sense.readings.made, sense.readings.lost),
                App::Report(report) => (report.readings.made, report.readings.lost),
                _ => (0, 0),
            };
            let delivered = match lln.app(0) {
                App::Collect(server) => server.tally(lln.address(leaf)).octets,
                _ => 0,
            };
            let made = f64::from(made.max(1));
            sum.reliability += delivered as f64 / f64::from(READING) / made;
            sum.overflow += f64::from(lost) / made;
            sum.radio += awake / time.as_secs_f64();
            sum.on_air += counts.radio_duty(leaf);
            sum.cpu += cost::cpu(node, time);
            let (all, late) = match lln.app(leaf) {
                App::Report(report) => {
                    let again = f64::from(report.client().counters().retransmitted);
                    // The client counts over the whole run, which is three batches longer than the measurement.
                    let share = f64::from(self.rounds) / f64::from(self.rounds + 3);
                    (again * share, again * share)
                }
                _ => (node.retransmits as f64, node.timeouts as f64),
            };
            sum.retransmissions += all * 10.0 / minutes;
            sum.timeouts += late * 10.0 / minutes;
            sum.requests += node.requests_sent as f64 / minutes;
            sum.frames += node.data_sent as f64 / minutes;
            (sent, again) = (sent + node.data_sent, again + node.retries);
            made_of += node.frames_sent;
        }
        let leaves = LEAVES.len() as f64;
        let packets: u64 = LEAVES
            .iter()
            .map(|&leaf| counts.nodes[leaf].packets_sent)
            .sum();
        let came = counts.nodes[0].packets_received;
        Measured {
            reliability: sum.reliability / leaves,
            radio: sum.radio / leaves,
            on_air: sum.on_air / leaves,
            cpu: sum.cpu / leaves,
            retransmissions: sum.retransmissions / leaves,
            timeouts: sum.timeouts / leaves,
            requests: sum.requests / leaves,
            frames: sum.frames / leaves,
            link_retries: again as f64 / (sent.max(1)) as f64,
            packet_loss: 1.0 - came.min(packets) as f64 / packets.max(1) as f64,
            overflow: sum.overflow / leaves,
            frames_per_packet: made_of as f64 / packets.max(1) as f64,
        }
    }
}

/// When a leaf makes its first reading: at a random time of the first batch.
fn first(leaf: usize, seed: Seed) -> Duration {
    let mut random = seed.stream(Purpose::Traffic(leaf as u32));
    BEGIN + Duration::from_millis(random.below(u64::from(BATCH) * 1000))
}

/// How long each leaf's radio has been awake, in seconds.
fn awake(lln: &Lln<'_>) -> [f64; LEAVES.len()] {
    let now = Instant::ZERO + lln.now();
    LEAVES.map(|leaf| lln.simulator.node(leaf).mac.radio_awake(now).as_secs_f64())
}
