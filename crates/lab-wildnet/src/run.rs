//! A run over a line of masts on its way, and what is read from it at its end.

use chappe_core::{Duration, Instant, Seed};
use chappe_lab::run::RunError;
use chappe_results::statistics::{mean, quantile};
use chappe_sim::{AirTime, Loss, Recorder, Simulator};

use super::hosts::{Mail, nudge};
use super::masts::Masts;
use super::mounting::Ground;
use super::pings::Pings;
use super::station::{Mounted, Station};
use super::traffic::{Relay, Traffic, UDP_PAYLOAD};
use super::trial::{Experiment, LIGHT, Load, Measured, Scheme};

/// Before anything is counted: slots settle, TCP leaves slow start.
pub const WARM_UP: Duration = Duration::from_secs(2);
/// After a steady source's time: what is still under way arrives.
const WIND_DOWN: Duration = Duration::from_secs(1);

/// A run on its way.
pub struct Run<'a, R: Recorder> {
    /// The radios and the air.
    pub simulator: Simulator<Mounted<'a>, R>,
    pub(super) passages: Vec<Relay>,
    /// The latest slot of the first mast: its number and when it ends.
    turn: (u64, Instant),
    /// The longest time from one end of its slots to the next begin, less the length of a slot, s.
    idle: f64,
    pub(super) masts: Masts,
    pub(super) seed: Seed,
    /// The masts that have started again, one after the other.
    pub restarted: Vec<usize>,
    /// Stations that ended with their masts, for what they had counted.
    pub ended: Vec<Station<'a>>,
}

impl<'a, R: Recorder> Run<'a, R> {
    /// At its beginning.
    pub(super) fn new(
        simulator: Simulator<Mounted<'a>, R>,
        passages: Vec<Relay>,
        masts: Masts,
        seed: Seed,
    ) -> Run<'a, R> {
        Run {
            simulator,
            passages,
            turn: (0, Instant::ZERO),
            idle: 0.0,
            masts,
            seed,
            restarted: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Goes on to `end`; masts start again when it is time.
    pub fn until(&mut self, end: AirTime) {
        while let Some(&(at, mast)) = self.masts.mishaps.restarts.get(self.restarted.len())
            && at <= end
        {
            self.go_on(at);
            self.restart(mast);
        }
        self.go_on(end);
    }

    /// Goes on to `end`; at each event packets are handed on within masts.
    fn go_on(&mut self, end: AirTime) {
        if self.passages.len() == 2 {
            return self.simulator.run_until(end);
        }
        while self.simulator.next_at() <= end {
            let at = self.simulator.next_at();
            self.simulator.run_until(at);
            for (radio, relay) in self.passages.iter().enumerate() {
                if relay.take.borrow_mut().take_fresh() {
                    let wake = |node: &mut Mounted<'_>, now| nudge(&mut node.station, now);
                    self.simulator.with_node(radio, wake);
                }
            }
            self.watch_turns();
        }
        self.simulator.run_until(end);
    }

    fn watch_turns(&mut self) {
        let Station::Slots(slots) = &self.simulator.node(0).station else {
            return;
        };
        let turn = slots.radio.turn();
        if turn.index == self.turn.0 {
            return;
        }
        if self.turn.0 > 0 {
            let gap = turn.start.saturating_since(self.turn.1).as_secs_f64();
            self.idle = self.idle.max(gap - turn.length.as_secs_f64());
        }
        self.turn = (turn.index, turn.start + turn.length);
    }

    /// Octets of payload that all ends have received so far.
    fn received(&self) -> f64 {
        let of = |node: &Mounted<'_>| match node.station.traffic() {
            Traffic::Udp(udp) => udp.received as f64 * UDP_PAYLOAD as f64,
            Traffic::Kcp(tunnel) => tunnel.flow.received as f64,
            Traffic::Pinged(pings) => pings.bulk.received as f64 * UDP_PAYLOAD as f64,
            traffic => traffic
                .host()
                .map_or(0.0, |host| host.app().received as f64),
        };
        self.simulator.nodes().map(of).sum()
    }
}

impl Masts {
    fn read(&self, run: &mut Run<'_, Errors>, octets: f64) -> Measured {
        let mut measured = Measured {
            bps: octets * 8.0 / self.time.as_secs_f64(),
            idle: run.idle,
            hidden: run.simulator.recorder_mut().hidden,
            destroyed: run.simulator.recorder_mut().destroyed,
            ..Measured::default()
        };
        let deadline = match self.scheme {
            Scheme::Slots { service, .. } => service.deadline,
            Scheme::Csma { .. } => None,
        };
        let deadline = deadline.map_or(f64::INFINITY, |deadline| deadline.as_secs_f64());
        let (mut offered, mut came, mut in_time) = (0, 0, 0);
        let (mut taken, mut received) = (0, 0);
        for radio in 0..self.radios() {
            let Traffic::Udp(udp) = run.simulator.node(radio).station.traffic() else {
                continue;
            };
            offered += udp.offered;
            received += udp.received;
            if let Station::Plain(plain) = &run.simulator.node(radio).station {
                taken += plain.link.sent;
            }
            came += udp.delays.len();
            in_time += udp
                .delays
                .iter()
                .filter(|delay| **delay <= deadline)
                .count();
            if udp.delays.len() > 1 {
                measured.delay = mean(&udp.delays);
                measured.p99 = quantile(&udp.delays, 0.99).unwrap_or(0.0);
                let steps = udp.delays.windows(2).map(|pair| (pair[1] - pair[0]).abs());
                measured.jitter = steps.sum::<f64>() / (udp.delays.len() - 1) as f64;
            }
        }
        measured.undelivered = (1.0 - received as f64 / taken.max(1) as f64).max(0.0);
        let missing = |came: usize| (1.0 - came as f64 / offered.max(1) as f64).max(0.0);
        (measured.residual, measured.late) = (missing(came), missing(in_time));
        if let Traffic::Pinged(pings) = run.simulator.node(0).station.traffic() {
            self.read_pings(pings, &mut measured);
        }
        if let Station::Slots(slots) = &run.simulator.node(0).station {
            let counters = slots.radio.link.counters();
            measured.overhead = counters.overhead();
            let settled = counters.delivered + counters.given_up;
            measured.given_up = counters.given_up as f64 / settled.max(1) as f64;
        }
        measured
    }

    fn read_pings(&self, pings: &Pings, measured: &mut Measured) {
        let Scheme::Slots { slot, .. } = self.scheme else {
            return;
        };
        let way: f64 = self.hops.iter().map(|hop| hop.km * 1e3 / LIGHT).sum();
        let cycle = 2.0 * (slot.as_secs_f64() + way);
        if let Some((took, late)) = pings.counted(2.0 * cycle) {
            measured.delay = mean(took);
            measured.p99 = quantile(took, 0.99).unwrap_or(0.0);
            measured.late = late;
        }
    }
}

impl Experiment for Masts {
    fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let errors = Errors {
            from: 0,
            to: 1,
            ..Errors::default()
        };
        let mut ground = Ground::of(self);
        let endless = |radio| Mail {
            to_send: if self.sends(radio) { u64::MAX } else { 0 },
            ..Mail::default()
        };
        let mut run = self.launch(&mut ground, seed, endless, errors)?;
        let begin = AirTime::from_nanos(WARM_UP.nanos());
        run.until(begin);
        let before = run.received();
        run.idle = 0.0;
        let recorder = run.simulator.recorder_mut();
        (recorder.hidden, recorder.destroyed) = (0, 0);
        run.until(begin + self.time);
        let octets = run.received() - before;
        if let Load::Steady(_) | Load::Ping { .. } = self.load {
            run.until(begin + self.time + WIND_DOWN);
        }
        Ok(self.read(&mut run, octets))
    }
}

/// How one link's frames were lost to an interferer.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    from: usize,
    to: usize,
    hidden: u64,
    destroyed: u64,
}

impl Recorder for Errors {
    const NODES: bool = false;

    fn heard(&mut self, frame: &chappe_sim::Heard<'_>) {
        if (frame.from, frame.node) != (self.from, self.to) {
            return;
        }
        match frame.outcome {
            Err(Loss::PreambleMissed) => self.hidden += 1,
            // Known when its first bit came: there was nothing to lock on to. Otherwise its check sequence failed.
            Err(Loss::Collision) if frame.at == frame.started => self.hidden += 1,
            Err(Loss::Collision | Loss::Captured) => self.destroyed += 1,
            _ => {}
        }
    }
}
