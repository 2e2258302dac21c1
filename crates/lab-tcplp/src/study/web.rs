//! A page on a leaf, requested by the server behind the border router (8.1).

use chappe_core::{Duration, Instant, Purpose, Seed};
use chappe_lab::run::RunError;
use chappe_tcplp::baseline::Fetch;
use chappe_tcplp::coap::{self, Client, Outcome, Standard};
use chappe_tcplp::host::{Page, Visit};

use super::super::app::{App, Timer};
use super::super::lln::Lln;
use super::{Frames, Protocol, Sleeping, experiment};

/// Time before the request, in which the network settles.
const SETTLED: Duration = Duration::from_secs(12);
/// The longest time that the client waits for a page.
const LIMIT: Duration = Duration::from_secs(600);
/// Time after the page has arrived, in which connections close and the radio returns to its sleep schedule.
const REST: Duration = Duration::from_secs(4);

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// HTTP over a new TCP connection.
    Http,
    /// CoAP in blocks of 512 octets, the power of two next to the size of TCP's segments.
    Coap,
}

/// The description of one request, without the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The protocol of the request.
    pub by: By,
    /// The size of the page in octets.
    pub octets: usize,
    /// The leaf's data requests; `None` if its radio is always on.
    pub sleep: Option<Sleeping>,
    /// The leaf that has the page.
    pub leaf: usize,
    /// The number of the repetition, which decides the random numbers.
    pub repeat: u64,
}

/// The result of one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Time from the request to the page's last octet, in seconds.
    pub latency: f64,
    /// Time that the request kept the leaf's radio awake, in seconds: the time awake beyond the resting share.
    pub awake: f64,
    /// Share of time that the leaf's radio is awake without a request.
    pub resting: f64,
}

impl Trial {
    /// Runs the trial with one seed. A page that does not arrive is an error.
    pub fn run(&self, seed: Seed) -> Result<Measured, RunError> {
        let seed = seed.child(self.repeat);
        let experiment = experiment(Protocol::Tcp, Frames::Five, self.sleep);
        let mut memory = experiment.memory();
        let app = |node| match node == self.leaf {
            true => App::Page(Page::new(self.octets, coap::Config::STANDARD.szx)),
            false => App::Nothing,
        };
        let mut lln = experiment.start(&mut memory, seed, app)?;
        // The request starts at a random time of the leaf's sleep.
        let base = self.sleep.map_or(1, |sleep| sleep.base.nanos());
        let mut random = seed.stream(Purpose::Traffic(self.leaf as u32));
        lln.run(SETTLED + Duration::from_nanos(random.below(base)));
        let (begin, before) = (lln.now(), self.awake(&lln));
        let resting = before.as_secs_f64() / begin.as_secs_f64();
        self.ask(&mut lln, seed);
        // The step does not round the latency: the client records when the page was complete.
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

    fn ask(&self, lln: &mut Lln<'_>, seed: Seed) {
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

    fn awake(&self, lln: &Lln<'_>) -> Duration {
        let now = Instant::ZERO + lln.now();
        lln.simulator.node(self.leaf).mac.radio_awake(now)
    }
}

/// When the page was complete and correct.
fn done(lln: &Lln<'_>) -> Option<Instant> {
    match lln.app(0) {
        App::Visit(visit) if visit.wrong == 0 => visit.done,
        App::Fetch(fetch) if fetch.wrong == 0 => fetch
            .done
            .filter(|(_, outcome)| *outcome == Outcome::Done)
            .map(|(at, _)| at),
        _ => None,
    }
}
