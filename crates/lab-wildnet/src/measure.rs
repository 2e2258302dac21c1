//! Runs a trial over a line of masts, and reads its measurements at the end.

use chappe_core::{Duration, SPEED_OF_LIGHT, Seed};
use chappe_lab::carry::Record;
use chappe_lab::run::RunError;
use chappe_results::statistics::{mean, quantile};
use chappe_sim::{AirTime, Loss, Recorder};

use crate::experiment::{Experiment, Measured, WARM_UP};
use crate::hosts::{BulkApp, HostMemory};
use crate::masts::Masts;
use crate::pings::Pings;
use crate::running_masts::RunningMasts;
use crate::scheme::{Load, Scheme};
use crate::station::Station;
use crate::traffic::Traffic;

/// The time after a steady source's measured interval, in which packets under way arrive.
const WIND_DOWN: Duration = Duration::from_secs(1);

impl Masts {
    fn read(&self, run: &mut RunningMasts<'_, Record<Errors>>, octets: f64) -> Measured {
        let errors = run.simulator.recorder_mut().trial_mut().copied();
        let errors = errors.unwrap_or_default();
        let mut measured = Measured {
            bps: octets * 8.0 / self.time.as_secs_f64(),
            idle: run.idle,
            hidden: errors.hidden,
            destroyed: errors.destroyed,
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
            // TCP and KCP deliver everything, so only UDP has delays and residual loss.
            let Traffic::Udp(udp) = run.simulator.node(radio).station.traffic() else {
                continue;
            };
            offered += udp.offered;
            received += udp.received;
            // A datagram that waits in the queue was not taken by the MAC, so it is not lost.
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
        let way: f64 = self
            .hops
            .iter()
            .map(|hop| hop.km * 1e3 / SPEED_OF_LIGHT)
            .sum();
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
        let mut memory = HostMemory::new(&self.numbers(), self.tcp);
        let seats = self.seats();
        let endless = |seat: usize| BulkApp {
            to_send: if seats[seat].sends { u64::MAX } else { 0 },
            ..BulkApp::default()
        };
        let mut run =
            RunningMasts::launch(self, &mut memory, seed, endless, Record::Trial(errors))?;
        let begin = AirTime::from_nanos(WARM_UP.nanos());
        run.advance_to(begin);
        let before = run.received();
        run.idle = 0.0;
        // The warm-up must not count, in `idle` and in lost frames as in octets.
        if let Some(errors) = run.simulator.recorder_mut().trial_mut() {
            (errors.hidden, errors.destroyed) = (0, 0);
        }
        run.advance_to(begin + self.time);
        let octets = run.received() - before;
        if let Load::Steady(_) | Load::Ping { .. } = self.load {
            run.advance_to(begin + self.time + WIND_DOWN);
        }
        Ok(self.read(&mut run, octets))
    }
}

/// Counts frames of one link that an interferer hid or destroyed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Errors {
    from: usize,
    to: usize,
    hidden: u64,
    destroyed: u64,
}

impl Recorder for Errors {
    fn heard(&mut self, frame: &chappe_sim::Heard<'_>) {
        if (frame.from, frame.node) != (self.from, self.to) {
            return;
        }
        match frame.outcome {
            Err(Loss::PreambleMissed) => self.hidden += 1,
            // A collision reported at the start of the frame: the receiver could not lock on. Later, its check sequence failed.
            Err(Loss::Collision) if frame.at == frame.started => self.hidden += 1,
            Err(Loss::Collision | Loss::Captured) => self.destroyed += 1,
            _ => {}
        }
    }
}
