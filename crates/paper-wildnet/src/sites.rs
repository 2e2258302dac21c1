//! Sites of several radios: a star and a chain of masts on one channel (3.2).
//!
//! The paper has chains of up to four nodes (Table 2). Its reason for slots holds for any site: of two radios of a mast, one cannot
//! receive while the other sends. A middle with three radios shows it most.

use chappe_lab::context::{line, summary};
use chappe_lab::run::RunError;
use chappe_results::figure::{Claim, Figure};

use crate::context::{FigureContext, Runs};
use crate::panel::{bars, mbps};
use chappe_lab_wildnet::layout::Layout;
use chappe_lab_wildnet::masts::{Hop, Masts, Pair, Path};
use chappe_lab_wildnet::scheme::{Load, Scheme};
use chappe_sim::Position;

const SCHEMES: [(&str, Scheme); 3] = [
    ("802.11", Scheme::CSMA),
    ("WiLDNet", Scheme::WILDNET),
    ("improved", Scheme::IMPROVED),
];

/// Length of all links in km, in directions that differ by more than a dish's main lobe.
const KM: f64 = 30.0;
/// A star of four: the middle, then the ends of its three links.
const STAR: [(f64, f64); 4] = [(0.0, 0.0), (1.0, 0.0), (-0.5, 0.866), (-0.5, -0.866)];
/// A chain of five that turns at each mast.
const CHAIN: [(f64, f64); 5] = [
    (0.0, 0.0),
    (0.866, 0.5),
    (1.732, 0.0),
    (2.598, 0.5),
    (3.464, 0.0),
];

/// Masts with TCP over each link, both ways.
fn masts(
    scheme: Scheme,
    places: &[(f64, f64)],
    links: &[(usize, usize)],
    context: &FigureContext<'_>,
) -> Result<Masts, RunError> {
    let layout = Layout::new(places.len(), links.to_vec());
    let layout = layout.map_err(|unfit| RunError::Defect(format!("{unfit:?}")))?;
    let pair = |&(a, b): &(usize, usize)| Pair {
        masts: [a, b],
        sends: [true, true],
    };
    let at = |&(x, y): &(f64, f64)| Position::new(x * KM * 1e3, y * KM * 1e3);
    let hops = vec![Hop::new(KM, 0.0); links.len()];
    Ok(Masts {
        layout,
        path: Path::Pairs(links.iter().map(pair).collect()),
        sites: Some(places.iter().map(at).collect()),
        ..Masts::line(scheme, hops, Load::Tcp, context.short())
    })
}

pub fn make(context: &FigureContext<'_>) -> Result<Figure, RunError> {
    let over = |&(_, scheme): &(&str, Scheme)| {
        let star = masts(scheme, &STAR, &[(0, 1), (0, 2), (0, 3)], context)?;
        let chain = masts(scheme, &CHAIN, &[(0, 1), (1, 2), (2, 3), (3, 4)], context)?;
        context.measure(&[star, chain])
    };
    let runs: Vec<Vec<Runs>> = SCHEMES.iter().map(over).collect::<Result<_, _>>()?;
    let mean = |scheme: usize, place: usize| summary(&runs[scheme][place], mbps).mean;
    let claims = ["star", "chain"].iter().enumerate().flat_map(|(place, name)| {
        [(1, "WiLDNet", 2.0), (2, "the improved variant", 2.0)].map(|(scheme, who, least)| {
            let ratio = mean(scheme, place) / mean(0, place);
            Claim::value(
                &format!("{name}, all links busy both ways: {who} carries at least {least} times what 802.11 does"),
                None,
                ratio,
                runs[scheme][place].len(),
                "times",
                ratio >= least,
            )
            .as_goal()
        })
    });
    Ok(Figure {
        id: "sites",
        title: "sites of several radios on one channel".into(),
        claims: claims.collect(),
        panels: vec![bars(
            "s1",
            "TCP over each link both ways, all links together",
            "Mbit/s",
            (
                "masts",
                ["a star of 4", "a chain of 5"].map(String::from).to_vec(),
            ),
            SCHEMES
                .iter()
                .zip(&runs)
                .map(|((name, _), runs)| line(name, runs, mbps))
                .collect(),
            Vec::new(),
        )],
        notes: vec![format!(
            "Links of {KM} km between dishes of 24 dBi, 60 dB between the radios of a mast, no losses."
        )],
    })
}
