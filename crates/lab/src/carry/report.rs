//! The report of a run: the only place that builds a [`Run`] and its flows.

use std::time::Instant as WallClock;

use chappe_core::RadioNode;
use chappe_results::{Bound, Delay, Fairness, Flow, Run};
use chappe_scenario::{System, Transfer, Variant};
use chappe_sim::{AirTime, Counters, Recorder, Simulator};

use super::energy::{self, RADIO_ENERGY};
use super::missed::missed_faults;
use crate::job::RunSpec;
use crate::run::{Outcome, RunError};

/// A run's outcome while it is put together.
#[derive(Debug)]
pub struct Report {
    started: WallClock,
    by: (&'static System, &'static Variant),
    /// The nodes' names, by number; none if the network's file gives none.
    names: Vec<String>,
    outcome: Outcome,
}

/// What a receiver has of an object when the run is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipt<'a> {
    /// Octets that arrived for good.
    pub octets: usize,
    /// Seconds from the start until the last one came; `None` if it never did. In a [`Report`] they are the run's, not those
    /// of the receiver's clock, which may drift ([`Simulator::air_time`]).
    pub completed_s: Option<f64>,
    /// The copy, as far as the receiver hands it out.
    pub copy: Option<&'a [u8]>,
    /// How long parts took, if that is known.
    pub delay: Option<Delay>,
}

/// What was counted for traffic without an end.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name in the results.
    pub name: String,
    /// The node that sends.
    pub source: usize,
    /// The node that receives.
    pub sink: usize,
    /// Octets that the source wanted to send.
    pub offered: u64,
    /// Octets that the sink received.
    pub delivered: u64,
    /// Whether every packet that arrived was what had been sent.
    pub intact: bool,
    /// Seconds for which it was counted.
    pub lasted_s: f64,
    /// How long packets took.
    pub delay: Option<Delay>,
}

impl Report {
    /// Begins the report of a run; its wall time counts from here.
    pub fn begin(by: (&'static System, &'static Variant), seed: u64) -> Report {
        Report {
            started: WallClock::now(),
            by,
            names: Vec::new(),
            outcome: Outcome {
                run: Run::new(seed),
                copies: Vec::new(),
                notes: Vec::new(),
            },
        }
    }

    /// The run's simulated time, its events and digest, and what happened to frames on the air. Notes faults that changed
    /// nothing. Each station is the scenario's node of the same number.
    ///
    /// # Errors
    ///
    /// The simulator's accounts do not balance: a defect of the simulator.
    pub fn air<N: RadioNode, R: Recorder>(
        &mut self,
        spec: RunSpec<'_>,
        simulator: &Simulator<N, R>,
    ) -> Result<(), RunError> {
        self.air_of(spec, simulator, &|node| node..node + 1)
    }

    /// The same for a system whose stations are numbered otherwise: `stations` gives those of a node.
    pub fn air_of<N: RadioNode, R: Recorder, S: IntoIterator<Item = usize>>(
        &mut self,
        spec: RunSpec<'_>,
        simulator: &Simulator<N, R>,
        stations: &dyn Fn(usize) -> S,
    ) -> Result<(), RunError> {
        let accounts = simulator.accounts();
        if !accounts.balance() {
            let message = format!("the simulator's accounts do not balance: {accounts}");
            return Err(RunError::Defect(message));
        }
        let (now, air) = (simulator.now(), simulator.counters());
        self.air_counted(spec, (now, air, simulator.digest()), stations);
        Ok(())
    }

    fn air_counted<S: IntoIterator<Item = usize>>(
        &mut self,
        spec: RunSpec<'_>,
        (now, air, digest): (AirTime, &Counters, u64),
        stations: &dyn Fn(usize) -> S,
    ) {
        let took_part = |node| {
            let mut frames = stations(node).into_iter().map(|station| {
                // A station without a counter may have sent: say nothing that may be wrong.
                air.nodes.get(station).map_or(1, |counters| counters.frames)
            });
            spec.is_end(node) || frames.any(|frames| frames > 0)
        };
        self.names.clone_from(&spec.plan.names);
        let missed = missed_faults(spec.plan, now, &took_part);
        missed.into_iter().for_each(|note| self.note(note));
        let run = &mut self.outcome.run;
        run.simulated_s = now.as_secs_f64();
        run.events = air.events;
        run.digest = format!("{digest:016x}");
        if let Some(joules) = energy::joules(&spec.plan.profile, &air.nodes) {
            self.count(RADIO_ENERGY, (joules * 1e6).round() as u64);
        }
        self.count("frames", air.frames);
        self.count("receptions", air.receptions);
        self.count_each("lost", air.lost.iter());
    }

    /// Adds `n` to a counter.
    pub fn count(&mut self, name: &str, n: u64) {
        let counters = &mut self.outcome.run.counters;
        match counters.get_mut(name) {
            Some(count) => *count += n,
            None => {
                counters.insert(name.into(), n);
            }
        }
    }

    /// Adds each count above zero to the counter `WHAT_REASON`.
    pub fn count_each(
        &mut self,
        what: &str,
        reasons: impl Iterator<Item = (impl std::fmt::Display, u64)>,
    ) {
        for (reason, n) in reasons.filter(|(_, n)| *n > 0) {
            self.count(&format!("{what}_{reason}"), n);
        }
    }

    /// Adds what one receiver of a transfer has. A complete copy is compared with the object, and kept if `keep` is set.
    pub fn receipt(
        &mut self,
        index: usize,
        transfer: &Transfer,
        sink: usize,
        receipt: Receipt<'_>,
        keep: bool,
    ) {
        let octets = transfer.object.len();
        let complete = receipt.completed_s.is_some();
        let is_right = |copy: &[u8]| *copy == *transfer.object;
        let (system, variant) = self.by;
        self.outcome.run.flows.push(Flow {
            transfer: index,
            source: transfer.source,
            sink,
            protocol: system.name.into(),
            variant: variant.name.into(),
            offered_bytes: octets as u64,
            delivered_bytes: receipt.octets.min(octets) as u64,
            complete,
            digest_ok: complete && receipt.copy.is_some_and(is_right),
            completion_s: receipt.completed_s,
            goodput_bps: receipt
                .completed_s
                .map_or(0.0, |seconds| octets as f64 * 8.0 / seconds),
            delay_s: receipt.delay,
            ..Flow::named(format!("r{sink}"))
        });
        let copy = receipt.copy.filter(|_| keep && complete);
        self.outcome.copies.push(copy.map(<[u8]>::to_vec));
    }

    /// Adds the result of traffic without an end; `index` counts on after the transfers.
    pub fn stream(&mut self, index: usize, stream: Stream) {
        let (system, variant) = self.by;
        self.outcome.run.flows.push(Flow {
            transfer: index,
            source: stream.source,
            sink: stream.sink,
            protocol: system.name.into(),
            variant: variant.name.into(),
            offered_bytes: stream.offered,
            delivered_bytes: stream.delivered,
            complete: true,
            digest_ok: stream.intact,
            completion_s: Some(stream.lasted_s),
            goodput_bps: stream.delivered as f64 * 8.0 / stream.lasted_s.max(1e-9),
            delay_s: stream.delay,
            ..Flow::named(stream.name)
        });
        self.outcome.copies.push(None);
    }

    /// The receivers so far, in the order in which they were reported.
    pub fn flows(&self) -> &[Flow] {
        &self.outcome.run.flows
    }

    /// Adds the bound of a transfer, with the slowest receiver's share of it. Call it once for each transfer, in their order.
    pub fn bound(&mut self, name: impl Into<String>, goodput_bps: f64, transfer: usize) {
        let own = self.flows().iter().filter(|flow| flow.transfer == transfer);
        let slowest = own.map(|flow| flow.goodput_bps).reduce(f64::min);
        // A transfer without receivers has no share, nor has any of a bound of zero: JSON knows no infinite numbers.
        let share = slowest.map(|slowest| slowest / goodput_bps);
        self.add_bound(Bound {
            name: name.into(),
            goodput_bps,
            fraction: share.filter(|share| share.is_finite()).unwrap_or(0.0),
        });
    }

    /// Adds a bound as it is. The run's first bound is its main one.
    pub fn add_bound(&mut self, bound: Bound) {
        let run = &mut self.outcome.run;
        run.bounds.push(bound);
        run.bound = run.bounds.first().cloned();
    }

    /// Sets how fairly flows share the channel.
    pub fn fairness(&mut self, fairness: Option<Fairness>) {
        self.outcome.run.fairness = fairness;
    }

    /// Adds a sentence for the user; the report puts the seed in front.
    pub fn note(&mut self, sentence: impl std::fmt::Display) {
        let seed = self.outcome.run.seed;
        self.outcome.notes.push(format!("seed {seed}: {sentence}"));
    }

    /// Adds a note for each receiver that has not finished.
    pub fn note_unfinished(&mut self) {
        let flows = self.outcome.run.flows.iter().filter(|flow| !flow.complete);
        let sentence = |flow: &Flow| {
            let (got, of) = (flow.delivered_bytes, flow.offered_bytes);
            format!("not finished: {} got {got} of {of} octets", flow.name)
        };
        let sentences: Vec<String> = flows.map(sentence).collect();
        for sentence in sentences {
            self.note(sentence);
        }
    }

    /// The outcome, with the wall time since [`Report::begin`].
    pub fn finish(mut self) -> Outcome {
        self.outcome.run.wall_s = self.started.elapsed().as_secs_f64();
        for flow in &mut self.outcome.run.flows {
            flow.source_name = self.names.get(flow.source).cloned();
            flow.sink_name = self.names.get(flow.sink).cloned();
        }
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use chappe_scenario::idle::IDLE;

    use super::*;

    fn report() -> Report {
        Report::begin((&IDLE, &IDLE.variants[0]), 7)
    }

    fn transfer(object: &[u8]) -> Transfer {
        Transfer {
            name: "t0".into(),
            source: 0,
            receivers: vec![1],
            object: object.into(),
        }
    }

    /// What is reported of a receiver that has `copy` since `completed_s`, where copies are kept.
    fn received(copy: &[u8], completed_s: Option<f64>) -> (Flow, Option<Vec<u8>>) {
        let mut report = report();
        let receipt = Receipt {
            octets: copy.len(),
            completed_s,
            copy: Some(copy),
            delay: None,
        };
        report.receipt(0, &transfer(b"object"), 1, receipt, true);
        let mut outcome = report.finish();
        (outcome.run.flows.remove(0), outcome.copies.remove(0))
    }

    #[test]
    fn a_right_copy_is_complete_and_kept() {
        let (flow, copy) = received(b"object", Some(2.0));
        assert!(flow.complete && flow.digest_ok);
        assert_eq!((flow.offered_bytes, flow.delivered_bytes), (6, 6));
        assert_eq!((flow.completion_s, flow.goodput_bps), (Some(2.0), 24.0));
        assert_eq!(copy.as_deref(), Some(&b"object"[..]));
        assert_eq!((flow.name.as_str(), flow.protocol.as_str()), ("r1", "idle"));
    }

    /// A wrong copy is kept, so that the user can look at it.
    #[test]
    fn a_wrong_copy_fails_the_digest() {
        let (flow, copy) = received(b"0bject", Some(2.0));
        assert!(flow.complete && !flow.digest_ok);
        assert_eq!(copy.as_deref(), Some(&b"0bject"[..]));
    }

    /// Even if its octets are right: the receiver does not know it yet.
    #[test]
    fn an_unfinished_copy_is_not_kept() {
        for copy in [&b"obj"[..], b"object"] {
            let (flow, kept) = received(copy, None);
            assert!(!flow.complete && !flow.digest_ok);
            assert_eq!((flow.goodput_bps, flow.completion_s), (0.0, None));
            assert_eq!((flow.delivered_bytes, kept), (copy.len() as u64, None));
        }
    }

    #[test]
    fn copies_are_kept_only_on_request() {
        let mut report = report();
        let receipt = Receipt {
            completed_s: Some(1.0),
            copy: Some(b"object"),
            ..Receipt::default()
        };
        report.receipt(0, &transfer(b"object"), 1, receipt, false);
        let outcome = report.finish();
        assert!(outcome.run.flows[0].digest_ok);
        assert_eq!(outcome.copies, [None]);
    }

    #[test]
    fn counters_add_up() {
        let mut report = report();
        report.count("frames", 2);
        report.count("frames", 3);
        report.count("none", 0);
        report.count_each("lost", [("busy", 4), ("weak", 0)].into_iter());
        report.count_each("lost", [("busy", 1)].into_iter());
        let run = report.finish().run;
        assert_eq!((run.counter("frames"), run.counter("lost_busy")), (5, 5));
        // A counter may be zero; a reason that never occurred is omitted.
        assert_eq!(run.counters.get("none"), Some(&0));
        assert_eq!(run.counters.get("lost_weak"), None);
    }

    #[test]
    fn bounds_are_compared_with_the_slowest_receiver() {
        let mut report = report();
        for (index, seconds) in [(0, Some(2.0)), (0, Some(3.0)), (1, None)] {
            let receipt = Receipt {
                completed_s: seconds,
                ..Receipt::default()
            };
            report.receipt(index, &transfer(b"object"), 1, receipt, false);
        }
        for transfer in 0..3 {
            report.bound("b", 32.0, transfer);
        }
        report.bound("zero", 0.0, 1);
        let run = report.finish().run;
        let fractions: Vec<f64> = run.bounds.iter().map(|bound| bound.fraction).collect();
        assert_eq!(fractions, [0.5, 0.0, 0.0, 0.0]);
        assert_eq!(run.bound, run.bounds.first().cloned());
    }

    #[test]
    fn streams_are_counted_over_their_time() {
        let mut report = report();
        report.stream(
            3,
            Stream {
                name: "f0".into(),
                source: 0,
                sink: 2,
                offered: 500,
                delivered: 250,
                intact: false,
                lasted_s: 4.0,
                delay: None,
            },
        );
        let fairness = Fairness {
            total_bps: 500.0,
            jain: 1.0,
            max_min_bps: 500.0,
            max_min_fraction: 1.0,
            sum_log_mean_bps: 500.0,
            sum_log_fraction: 1.0,
            sum_log_bps: vec![Some(500.0)],
        };
        report.fairness(Some(fairness.clone()));
        let outcome = report.finish();
        let flow = &outcome.run.flows[0];
        assert_eq!((flow.transfer, flow.goodput_bps), (3, 500.0));
        assert!(flow.complete && !flow.digest_ok);
        // Flows and copies stand side by side.
        assert_eq!(outcome.copies, [None]);
        assert_eq!(outcome.run.fairness, Some(fairness));
    }

    #[test]
    fn unfinished_receivers_are_noted_with_the_seed() {
        let mut report = report();
        let receipt = Receipt {
            octets: 4,
            ..Receipt::default()
        };
        report.receipt(0, &transfer(b"object"), 1, receipt, false);
        report.note_unfinished();
        assert_eq!(
            report.finish().notes,
            ["seed 7: not finished: r1 got 4 of 6 octets"]
        );
    }
}
