//! Figure 7: how an external interferer destroys frames, by hiding their preambles or later (3.3.2).

use chappe_core::{Channel, Dbm, Duration, Mode, Rate};
use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};
use chappe_sim::{Bursts, Jammer, PathLoss, Place, Position};

use crate::context::{FigureContext, Runs};
use crate::panel::lines;
use chappe_lab_wildnet::experiment::Measured;
use chappe_lab_wildnet::masts::Masts;
use chappe_lab_wildnet::scheme::{Card, Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

/// Rate of payload on the main link, in bit/s.
const MAIN: f64 = 2e6;
/// Octets of an interferer's frame: 1440 of payload, with UDP, IP, LLC and 802.11.
const OCTETS: usize = 1504;
/// Distance of the interferer from the receiver, perpendicular to the link, in m.
///
/// It is so near that the link's sender, 60 km away, does not hear it, although the receiver hears both equally.
const ASIDE: f64 = 1.0;
const KM: f64 = 60.0;

fn trial(context: &FigureContext<'_>, rate: f64) -> Masts {
    let link = Trial {
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
        power: equal_power(),
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
        ..link.masts()
    }
}

/// The transmit power with which the interferer arrives as strongly as the main link. Its path is short, but enters by the
/// side lobe of one dish instead of the main lobes of two.
fn equal_power() -> Dbm {
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
    let trials: Vec<Masts> = rates
        .iter()
        .map(|rate| trial(context, rate * 1e6))
        .collect();
    let runs: Vec<Runs> = context.measure(&trials)?;
    let shares: Vec<f64> = runs.iter().map(|runs| summary(runs, hidden).mean).collect();
    let losses: Vec<f64> = runs.iter().map(|runs| summary(runs, lost).mean).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let places: Vec<String> = rates.iter().map(|rate| format!("{rate} Mbit/s")).collect();
    // Two frames of equal air time t collide if they start within t of each other: a window of 2 t.
    let air = Mode::long(Rate::Cck11).airtime(OCTETS).as_secs_f64();
    let model = |rate: &f64| Some(100.0 * (1.0 - (-2.0 * air * rate * 1e6 / 11_520.0).exp()));
    Ok(Figure {
        id: "figure7",
        title: "frames lost to an interferer: 2 Mbit/s of UDP, no retransmissions".into(),
        panels: vec![
            lines("7a", "losses by hidden preambles", "%", ("interferer", places.clone()), vec![line("of all losses", &runs, hidden)], Vec::new()),
            lines("7b", "frames lost", "%", ("interferer", places), vec![line("measured", &runs, lost)], rates.iter().map(model).collect()),
        ],
        claims: vec![
            Claim::value(
                "the interferer hides the preamble in at least half of the losses: the least share (48 % counts as half)",
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
                "% at the highest rate",
                losses.windows(2).all(|pair| pair[1] > pair[0]),
            ),
        ],
        notes: vec![
            "The interferer sends frames of the same length at random times. It and the link's sender do not hear each other, and both reach the receiver with equal power. A preamble is missed if the receiver is busy with the interferer's frame; a frame fails its check sequence if the interferer starts later.".into(),
            "The line marked as bound in 7b is the closed form, not a bound: 1 - exp(-2 t r) for frames of air time t at r frames per second.".into(),
        ],
    })
}
