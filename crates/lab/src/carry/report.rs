//! The report of a run: the only place that builds a [`Run`] and its flows.

use std::time::Instant as WallClock;

use chappe_results::{Bound, Delay, Fairness, Flow, Run};
use chappe_scenario::{System, Transfer, Variant};
use chappe_sim::{AirTime, Counters};

use crate::run::Outcome;

/// A run's outcome while it is put together.
#[derive(Debug)]
pub struct Report {
    started: WallClock,
    by: (&'static System, &'static Variant),
    outcome: Outcome,
}

/// What a receiver has of an object when the run is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipt<'a> {
    /// Octets that arrived for good.
    pub octets: usize,
    /// Seconds from the start until the last one came; `None` if it never did.
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
            outcome: Outcome {
                run: Run::new(seed),
                copies: Vec::new(),
                notes: Vec::new(),
            },
        }
    }

    /// The run's simulated time, its events and digest, and what happened to frames on the air.
    pub fn air(&mut self, now: AirTime, air: &Counters, digest: u64) {
        let run = &mut self.outcome.run;
        run.simulated_s = now.as_secs_f64();
        run.events = air.events;
        run.digest = format!("{digest:016x}");
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
        let is_right = |copy: &[u8]| blake3::hash(copy) == blake3::hash(&transfer.object);
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
        let slowest = own.map(|flow| flow.goodput_bps).fold(f64::MAX, f64::min);
        self.add_bound(Bound {
            name: name.into(),
            goodput_bps,
            fraction: slowest / goodput_bps,
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
        self.outcome
    }
}
