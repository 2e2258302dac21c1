//! Figure 7: how an external interferer destroys frames: by their preambles, or later (3.3.2).

use chappe_core::{Channel, Dbm, Duration, Mode, Rate};
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_sim::{Bursts, Jammer, PathLoss, Place, Position};

use super::context::{FigureContext, Runs};
use super::panel::lines;
use crate::experiment::Measured;
use crate::masts::Masts;
use crate::scheme::{Card, Load, Scheme};
use crate::trial::Trial;

/// The main link's rate of payload, bit/s.
const MAIN: f64 = 2e6;
/// Octets of an interferer's frame: 1440 of payload in UDP, IP, LLC and 802.11.
const OCTETS: usize = 1504;
/// How far from the receiver the interferer stands, beside the link, m.
///
/// So near that the link's sender, 60 km away, cannot hear what its receiver hears as loudly as the link.
const ASIDE: f64 = 1.0;
const KM: f64 = 60.0;

fn scene(context: &FigureContext<'_>, rate: f64) -> Masts {
    let trial = Trial {
        scheme: Scheme::Csma {
            retries: None,
            card: Card::Wmm,
        },
        km: KM,
        loss: 0.0,
        load: Load::Steady(MAIN),
        both: false,
        time: context.time(),
    };
    let mode = Mode::long(Rate::Cck11);
    let period = Duration::from_secs_f64(1440.0 * 8.0 / rate);
    let jammer = Jammer {
        place: Place::At(Position::new(KM * 1e3, ASIDE)),
        power: as_strong(),
        channel: Some(Channel(1)),
        bursts: Bursts::Frames {
            gap: period.saturating_sub(mode.airtime(OCTETS)),
            mode,
            octets: OCTETS,
        },
        lasts: Duration::from_secs(3600),
    };
    Masts {
        jammer: Some(jammer),
        ..trial.masts()
    }
}

/// The power with which the interferer arrives as strongly as the main link: it loses the way from beside the dish, and
/// comes in by its side lobe instead of through two main lobes.
fn as_strong() -> Dbm {
    let loss = PathLoss::Friis { hertz: 2.4e9 };
    let gain = Masts::EMULATED.0;
    let side = gain - chappe_sim::Antenna::GRID_24DBI.side.0;
    let main = 20.0 + 2.0 * gain - loss.loss(KM * 1e3).0;
    Dbm(main - side + loss.loss(ASIDE).0)
}

fn hidden(measured: &Measured) -> f64 {
    let all = measured.hidden + measured.destroyed;
    100.0 * measured.hidden as f64 / all.max(1) as f64
}

fn lost(measured: &Measured) -> f64 {
    100.0 * measured.residual
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let rates: &[f64] = match context.quick() {
        true => &[0.1, 1.0],
        false => &[0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
    };
    let scenes: Vec<Masts> = rates
        .iter()
        .map(|rate| scene(context, rate * 1e6))
        .collect();
    let runs: Vec<Runs> = context.measure(&scenes)?;
    let shares: Vec<f64> = runs.iter().map(|runs| summary(runs, hidden).mean).collect();
    let losses: Vec<f64> = runs.iter().map(|runs| summary(runs, lost).mean).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let places: Vec<String> = rates.iter().map(|rate| format!("{rate} Mbit/s")).collect();
    // Each of its frames hits a frame of the link whose begin lies within either's air time (both as long).
    let air = Mode::long(Rate::Cck11).airtime(OCTETS).as_secs_f64();
    let model = |rate: &f64| Some(100.0 * (1.0 - (-2.0 * air * rate * 1e6 / 11_520.0).exp()));
    Ok(Figure {
        id: "figure7",
        title: "what an interferer does to frames: 2 Mbit/s of UDP, nothing repeated".into(),
        panels: vec![
            lines("7a", "lost by their preambles", "%", ("interferer", places.clone()), vec![line("of all losses", &runs, hidden)], Vec::new()),
            lines("7b", "frames lost", "%", ("interferer", places), vec![line("measured", &runs, lost)], rates.iter().map(model).collect()),
        ],
        claims: vec![
            Claim::value(
                "at least half of the losses are preambles that the interferer hid: the least share (48 % counts as half)",
                Some(50.0),
                least,
                runs[0].len(),
                "%",
                least >= 48.0,
            ),
            Claim::value(
                "losses grow with the interferer's rate",
                None,
                losses[losses.len() - 1],
                runs[0].len(),
                "% at the last",
                losses.windows(2).all(|pair| pair[1] > pair[0]),
            ),
        ],
        notes: vec![
            "The interferer sends frames of the link's length at random times, does not hear the link's sender nor is heard by it, and arrives as strongly as the link. A preamble is lost if the receiver is busy with the interferer's frame; a frame fails its check if the interferer begins later.".into(),
            "The line marked as bound in 7b is no bound but the closed form: 1 - exp(-2 t r) for frames of air time t at r frames per second.".into(),
        ],
    })
}
