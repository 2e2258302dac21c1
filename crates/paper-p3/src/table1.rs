//! Table I: the delivery ratio on all sixteen channels of links that are good on channel 26. The table is an input: bad links
//! of our networks take their ratios from it. The figure compares it with the model's links of both kinds.

use chappe_core::Channel;
use chappe_lab::run::RunError;
use chappe_p3::config::{FCS_LEN, FRAME_MAX, LINK_THRESHOLD};
use chappe_p3::timing::MODE;
use chappe_results::figure::{Claim, Figure, Panel, Series};
use chappe_results::statistics::Summary;
use chappe_scenario::plan::channels::{CHANNELS, ChannelGround, INTER_FLOOR, Origin};
use chappe_sim::{Medium, Profile};

use crate::campaign::{Measured, NODES, Scale, Trial};

pub fn needs(_: &Scale) -> Vec<Trial> {
    Vec::new()
}

pub fn make(_: &Measured, scale: &Scale) -> Result<Figure, RunError> {
    let bad = ratios(1.0, scale.seed)?;
    let usual = ratios(0.0, scale.seed)?;
    let column = |channel: usize| INTER_FLOOR.map(|row| row[channel]);
    let means = |all: &[Vec<f64>]| all.iter().map(|of| Summary::of(&percent(of))).collect();
    let table: Vec<Summary> = (0..CHANNELS)
        .map(|channel| Summary::of(&percent(&column(channel))))
        .collect();
    let mut model = Series::new("model, bad links", means(&bad));
    model.paper = table.iter().map(|column| Some(column.mean)).collect();
    let series = vec![
        Series::new("the table's ten links", table.clone()),
        model,
        Series::new("model, other good links", means(&usual)),
    ];
    let dead = |all: &[Vec<f64>]| -> Vec<Summary> {
        all.iter()
            .map(|of| {
                Summary::of(
                    &of.iter()
                        .map(|&prr| 100.0 * f64::from(prr < 0.1))
                        .collect::<Vec<f64>>(),
                )
            })
            .collect()
    };
    let of_table: Vec<Vec<f64>> = (0..CHANNELS)
        .map(|channel| column(channel).to_vec())
        .collect();
    let below = vec![
        Series::new("the table's ten links", dead(&of_table)),
        Series::new("model, bad links", dead(&bad)),
        Series::new("model, other good links", dead(&usual)),
    ];
    let places: Vec<String> = (11..=26).map(|channel| channel.to_string()).collect();
    let off = (0..CHANNELS)
        .map(|channel| {
            (100.0 * chappe_results::statistics::mean(&bad[channel]) - table[channel].mean).abs()
        })
        .fold(0.0, f64::max);
    let panel =
        |id, title, series| Panel::bars(id, title, "%", places.clone(), series).on("channel");
    Ok(Figure {
        id: "table1",
        title: "delivery ratio of links that are good on channel 26".into(),
        panels: vec![panel("I", "mean delivery ratio", series), panel("I % < 0.1", "links with a delivery ratio below 0.1", below)],
        claims: vec![
            Claim::value("the model's bad links have the table's means, to within 6 points", None, off, bad[0].len(), "points", off <= 6.0)
                .because(|| format!("up to {off:.1} points off")),
        ],
        notes: vec!["each bad link takes a random row of the table; below 0.1 a channel carries nothing, not even interference".into()],
    })
}

fn percent(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| 100.0 * ratio).collect()
}

/// The delivery ratios, by channel, of those links of one network that are good on channel 26.
fn ratios(bad_links: f64, seed: u64) -> Result<Vec<Vec<f64>>, RunError> {
    let ground = ChannelGround {
        origin: Origin::Building,
        nodes: NODES,
        bad_links,
        seed: Some(seed),
        connected: LINK_THRESHOLD,
    };
    let defect = |why: String| RunError::Defect(why);
    let profile = Profile::named("cc2420-indoor").ok_or_else(|| defect("no profile".into()))?;
    let powers = ground
        .powers(seed, &profile)
        .ok_or_else(|| defect("no connected building".into()))?;
    let medium = Medium::given(&powers, &profile, chappe_core::Seed(seed));
    let mut medium = medium.map_err(|error| defect(error.to_string()))?;
    let mut prr =
        |channel: u8, a, b| medium.prr_on(Channel(channel), a, b, MODE, FRAME_MAX + FCS_LEN);
    let mut all = vec![Vec::new(); CHANNELS];
    for a in 0..NODES {
        for b in a + 1..NODES {
            if prr(26, a, b) < LINK_THRESHOLD || prr(26, b, a) < LINK_THRESHOLD {
                continue;
            }
            for (channel, of) in (11..=26).zip(&mut all) {
                of.extend([prr(channel, a, b), prr(channel, b, a)]);
            }
        }
    }
    Ok(all)
}
