//! A page on a leaf, asked for by the server behind the border router (8.1).

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_tcplp::baseline::Fetch;
use chappe_tcplp::coap::{self, Client, Outcome, Standard};
use chappe_tcplp::host::{Page, Visit};

use super::super::lln::Lln;
use super::app::{App, Timer};
use super::{Frames, Protocol, Sleeping, experiment};

/// Everything has settled before a page is asked for.
const SETTLED: Duration = Duration::from_secs(12);
/// Nobody waits longer.
const LIMIT: Duration = Duration::from_secs(600);
/// Within this after the page is there, connections are closed and the radio has gone to its rest.
const REST: Duration = Duration::from_secs(4);

/// How a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// HTTP over TCP: a connection for it.
    Http,
    /// CoAP, in blocks of 512 octets, next to TCP's segments.
    Coap,
}

/// One request, all but the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// How.
    pub by: By,
    /// Octets of the page.
    pub octets: usize,
    /// How the leaf sleeps; `None`: not at all.
    pub sleep: Option<Sleeping>,
    /// Which leaf.
    pub leaf: usize,
    /// Which of several requests that differ in nothing but chance.
    pub repeat: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// From dispatching the request to the page's last octet, s.
    pub latency: f64,
    /// Time for which the leaf's radio was awake on behalf of the request, s: what it was awake beyond its resting share.
    pub awake: f64,
    /// The share of the time for which the leaf's radio is awake at rest.
    pub resting: f64,
}

impl Trial {
    /// Runs it. A page that does not come is an error.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let seed = seed.child(self.repeat);
        let experiment = experiment(Protocol::Tcp, Frames::Five, self.sleep);
        let mut memory = experiment.memory();
        let app = |node| match node == self.leaf {
            true => App::Page(Page::new(self.octets, coap::Config::STANDARD.szx)),
            false => App::Nothing,
        };
        let mut lln = experiment.start(&mut memory, seed, app)?;
        // The request comes at any moment of the leaf's sleep.
        let base = self.sleep.map_or(1, |sleep| sleep.base.nanos());
        let mut random = seed.stream(Purpose::Traffic(self.leaf as u32));
        lln.run(SETTLED + Duration::from_nanos(random.below(base)));
        let (begin, before) = (lln.now(), self.awake(&lln));
        let resting = before.as_secs_f64() / begin.as_secs_f64();
        self.ask(&mut lln, seed);
        // The visitor's own clock says when the page was there.
        lln.run_until(LIMIT, Duration::from_millis(100), |lln| done(lln).is_some());
        let at = done(&lln).ok_or_else(|| {
            RunError::Defect(format!(
                "{self:?}: no page within {} s",
                LIMIT.as_secs_f64()
            ))
        })?;
        lln.run(REST);
        let span = lln.now().saturating_sub(begin).as_secs_f64();
        let awake = self.awake(&lln).saturating_sub(before).as_secs_f64() - resting * span;
        Ok(Measured {
            latency: at.saturating_since(Instant::ZERO + begin).as_secs_f64(),
            awake,
            resting,
        })
    }

    fn ask(&self, lln: &mut Lln<'_, App>, seed: Seed) {
        match self.by {
            By::Http => {
                lln.with_host(0, |host, _| *host.app_mut() = App::Visit(Visit::default()));
                lln.connect(0, self.leaf);
            }
            By::Coap => {
                let leaf = lln.address(self.leaf);
                let random = seed.stream(Purpose::Trial(0));
                let timer = Timer::Standard(Standard);
                let client = Client::new(coap::Config::STANDARD, timer, random);
                lln.with_host(0, |host, _| {
                    *host.app_mut() = App::Fetch(Fetch::new(client, leaf));
                });
            }
        }
    }

    fn awake(&self, lln: &Lln<'_, App>) -> Duration {
        let now = Instant::ZERO + lln.now();
        lln.simulator.node(self.leaf).mac.radio_awake(now)
    }
}

/// When all of the page was there, right.
fn done(lln: &Lln<'_, App>) -> Option<Instant> {
    match lln.app(0) {
        App::Visit(visit) if visit.wrong == 0 => visit.done,
        App::Fetch(fetch) if fetch.wrong == 0 => fetch
            .done
            .filter(|(_, outcome)| *outcome == Outcome::Done)
            .map(|(at, _)| at),
        _ => None,
    }
}
