//! From which distance on WiLDNet is ahead of 802.11 one way, by what the paper leaves open of its cards (4.2).
//!
//! The paper's WiLDNet is ahead from about 50 km on (Figure 9a), or from between 45 and 65 km (Table 1); ours from where ACKs come
//! too late, 110 km. Of its 802.11 only the rate, two retries and the ACK timeout are known. So each of the other settings is
//! changed here, alone and together.

use chappe_core::{Duration, Mode, Rate};
use chappe_lab::context::{beside, line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure, Series};
use chappe_results::statistics::Summary;

use crate::context::{FigureContext, Runs};
use crate::outdoor_links::{LINKS, PAPER};
use crate::panel::{bars, lines, mbps};
use chappe_lab_wildnet::hosts::Stack;
use chappe_lab_wildnet::masts::Masts;
use chappe_lab_wildnet::rate_control::RateControl;
use chappe_lab_wildnet::scheme::{Card, Load, Scheme};
use chappe_lab_wildnet::trial::Trial;

/// Where the paper's WiLDNet gets ahead: "longer links (> 50 km)", and between two links of Table 1.
const PAPER_KM: [f64; 2] = [45.0, 65.0];

/// A name, and the change of a trial.
type Change = (&'static str, fn(&mut Masts));

const CHANGES: [Change; 13] = [
    ("short preambles", |_| ()),
    ("long preambles", |masts| masts.scheme = Scheme::CSMA_LONG),
    ("802.11e's best effort, long", |masts| {
        masts.scheme = with_retries(2, Card::Wmm);
    }),
    ("ACKs at 1 Mbit/s, long", |masts| {
        masts.scheme = Scheme::CSMA_LONG;
        masts.adjust_card = |_, card| card.control = Mode::long(Rate::Dsss1);
    }),
    ("TCP acknowledges each segment", |masts| {
        masts.tcp.ack_every = 1;
    }),
    ("no retries", |masts| {
        masts.scheme = with_retries(0, Card::Short);
    }),
    ("four retries", |masts| {
        masts.scheme = with_retries(4, Card::Short);
    }),
    ("ACK timeout for 50 km", |masts| {
        masts.adjust_card = |_, card| card.propagation_max = card.propagation_max.min(light(50.0));
    }),
    ("slot stretched", |masts| {
        masts.adjust_card = |_, card| card.stretch_slot = true;
    }),
    ("ARF", |masts| masts.rate_control = RateControl::Arf),
    ("Onoe", |masts| masts.rate_control = RateControl::Onoe),
    (AMRR, |masts| masts.rate_control = RateControl::Amrr),
    ("AMRR, long", |masts| {
        (masts.scheme, masts.rate_control) = (Scheme::CSMA_LONG, RateControl::Amrr);
    }),
];

const AMRR: &str = "AMRR";
/// The place of the link of 65 km in Table 1.
const FAR: usize = 2;

const fn with_retries(retries: u8, card: Card) -> Scheme {
    Scheme::Csma {
        retries: Some(retries),
        card,
    }
}

/// The propagation delay over `km` kilometres: 3.3356 us each.
fn light(km: f64) -> Duration {
    Duration::from_nanos((km * 3335.6) as u64)
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let kms: &[f64] = match context.quick() {
        true => &[20.0, 60.0, 100.0, 112.0],
        false => &[
            10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 109.0, 112.0,
        ],
    };
    let at = |change: fn(&mut Masts), (km, loss): (f64, f64), both| {
        let trial = Trial {
            scheme: Scheme::CSMA,
            km,
            loss,
            load: Load::Tcp,
            both,
            time: context.short(),
        };
        let mut masts = trial.masts();
        change(&mut masts);
        masts
    };
    let along = |change, scheme: Option<Scheme>| {
        let masts = kms.iter().map(|&km| {
            let masts = at(change, (km, 0.0), false);
            Masts {
                scheme: scheme.unwrap_or(masts.scheme),
                ..masts
            }
        });
        context.measure(&masts.collect::<Vec<_>>())
    };
    let wild = along(|_| (), Some(Scheme::WILDNET))?;
    let (mut cards, mut crossings) = (Vec::new(), Vec::new());
    for (_, change) in CHANGES {
        let runs = along(change, None)?;
        // Hosts acknowledge alike over both.
        let ours = match at(change, (0.0, 0.0), false).tcp == Stack::USUAL {
            true => means(&wild),
            false => means(&along(change, Some(Scheme::WILDNET))?),
        };
        crossings.push(Summary::of(&[crossing(kms, &means(&runs), &ours)]));
        cards.push(runs);
    }
    let outdoors = |both| {
        let of = |&(_, change): &Change| {
            let masts = LINKS.map(|link| at(change, link, both));
            context.measure(&masts)
        };
        CHANGES.iter().map(of).collect::<Result<Vec<_>, _>>()
    };
    let links = [outdoors(false)?, outdoors(true)?];
    let mut series: Vec<Series> = vec![line("WiLDNet", &wild, mbps)];
    let named = CHANGES.iter().zip(&cards);
    series.extend(named.map(|((name, _), runs)| line(name, runs, mbps)));
    let names = || CHANGES.iter().map(|(name, _)| (*name).into()).collect();
    let mut panels = vec![
        lines(
            "x1",
            "TCP one way, 802.11 by what the paper leaves open",
            "Mbit/s",
            (
                "distance",
                kms.iter().map(|km| format!("{km} km")).collect(),
            ),
            series,
            Vec::new(),
        ),
        bars(
            "x2",
            "the distance from which WiLDNet is ahead one way",
            "km",
            ("802.11", names()),
            vec![Series::new("WiLDNet is ahead from", crossings.clone())],
            Vec::new(),
        ),
    ];
    for (id, title, both) in [("x3", "one way", 0), ("x4", "both ways", 1)] {
        let series = LINKS.iter().enumerate().map(|(link, (km, _))| {
            let means = links[both].iter().map(|runs| summary(&runs[link], mbps));
            let paper = vec![Some(PAPER[0][both][link]); CHANGES.len()];
            beside(
                Series::new(&format!("{km} km"), means.collect()),
                &paper[..1],
            )
        });
        panels.push(bars(
            id,
            &format!("the same on the links of Table 1, {title}"),
            "Mbit/s",
            ("802.11", names()),
            series.collect(),
            Vec::new(),
        ));
    }
    Ok(Figure {
        id: "crossover",
        title: "from where WiLDNet is ahead of 802.11, by the cards' settings".into(),
        claims: claims(&crossings, &links),
        panels,
        notes: vec![
            "Card `short preambles` is the one of all other figures, with two retries and an ACK timeout that follows the distance. Each row changes what it names.".into(),
            "Rate control takes collisions for a weak signal: carrier sense comes late by the propagation delay, so more frames collide the longer the link, at any rate.".into(),
        ],
    })
}

fn means(runs: &[Runs]) -> Vec<f64> {
    runs.iter().map(|runs| summary(runs, mbps).mean).collect()
}

/// Where the first curve falls below the second, between two measured distances in proportion; the largest distance if it does not.
fn crossing(kms: &[f64], falls: &[f64], stays: &[f64]) -> f64 {
    let ahead: Vec<f64> = falls.iter().zip(stays).map(|(a, b)| a - b).collect();
    let Some(behind) = ahead.iter().position(|ahead| *ahead < 0.0) else {
        return kms[kms.len() - 1];
    };
    let Some(last) = behind.checked_sub(1) else {
        return kms[0];
    };
    let share = ahead[last] / (ahead[last] - ahead[behind]);
    kms[last] + share * (kms[behind] - kms[last])
}

fn claims(crossings: &[Summary], links: &[Vec<Vec<Runs>>; 2]) -> Vec<Claim> {
    let between = |summary: &&Summary| (PAPER_KM[0]..=PAPER_KM[1]).contains(&summary.mean);
    let within = crossings.iter().filter(between).count();
    let amrr = CHANGES.iter().position(|(name, _)| *name == AMRR);
    let amrr = amrr.unwrap_or(0);
    let both = |link: usize| summary(&links[1][amrr][link], mbps);
    let (near, far) = (both(FAR - 1), both(FAR));
    vec![
        Claim::count(
            "one way, WiLDNet is ahead from between 45 and 65 km on: settings of 802.11 with which it is, at least one",
            None,
            within,
            crossings.len(),
            within > 0,
        ),
        Claim::new(
            "65 km, both ways: 802.11 falls to the paper's rate if rate control takes collisions for a weak signal",
            Some(PAPER[0][1][FAR]),
            far,
            "Mbit/s",
            far.mean < 1.0,
        ),
        Claim::new(
            "45 km, both ways: with the same rate control 802.11 keeps at least three quarters of the paper's rate",
            Some(PAPER[0][1][FAR - 1]),
            near,
            "Mbit/s",
            near.mean >= 0.75 * PAPER[0][1][FAR - 1],
        )
        .because(|| {
            "a card that lowers its rate at 65 km would do so at 45 km too; so it explains the one link, if that alone was not set to a \
             fixed rate, and not the crossover"
                .into()
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::crossing;

    #[test]
    fn curves_cross_between_two_distances() {
        let kms = [10.0, 20.0, 40.0];
        assert_eq!(crossing(&kms, &[4.0, 3.5, 2.5], &[3.0; 3]), 30.0);
        assert_eq!(crossing(&kms, &[2.0; 3], &[3.0; 3]), 10.0);
        assert_eq!(crossing(&kms, &[4.0; 3], &[3.0; 3]), 40.0);
    }
}
