//! The ideal schedule with interference: what a central scheduler that knows all powers could carry.

use chappe_bound::{Interference, Rayleigh, Schedule, ScheduleOptions, schedule};
use chappe_lab::run::RunError;
use chappe_scenario::{Network, Transfer};
use chappe_sim::{Fading, Rule};

use super::Pacifier;

/// Nodes of the largest network that the program is asked about: its tables grow with the third power of their number.
pub(super) const NODES_MAX: usize = 100;
/// Enough for a gap of 2 % on the indoor networks, a second each.
const ROUNDS_MAX: usize = 400;
const SETS_MAX: usize = 2_000_000;

/// The best schedule of a transfer under interference, with its bound proven to a gap of `gap`; `None` on networks whose powers or laws the
/// model does not know. Error curves are taken as a threshold, so the bound is approximate there.
pub fn ideal(
    with: &Pacifier,
    net: &Network,
    transfer: &Transfer,
    gap: f64,
) -> Result<Option<Schedule>, RunError> {
    let failed = |error: chappe_bound::Error| RunError::Defect(format!("the bound: {error}"));
    let (medium, nodes) = (&net.medium, net.medium.nodes());
    let profile = medium.profile();
    let milliwatt = |dbm: f64| 10f64.powf(dbm / 10.0);
    let power = |pair: usize| milliwatt(medium.mean_power(pair / nodes, pair % nodes).0);
    let power: Vec<f64> = (0..nodes * nodes).map(power).collect();
    if power.iter().any(|power| power.is_nan()) {
        return Ok(None);
    }
    let noise = milliwatt(profile.noise.0);
    let ratio = match profile.rule {
        Rule::SnrThreshold(ratio) => Some(10f64.powf(ratio.0 / 10.0)),
        Rule::ErrorCurves => threshold(&net.delivery, &power, noise),
        Rule::Pairwise(_) | Rule::Overlap => None,
    };
    let Some(ratio) = ratio else {
        return Ok(None);
    };
    let radio = Rayleigh {
        power: &power,
        noise,
        ratio,
        least: milliwatt(profile.lock.power.0),
    };
    let airtime = with
        .mode
        .airtime(with.protocol.frame_octets())
        .as_secs_f64();
    let payload = with.protocol.config.common().payload as u32;
    let model = match profile.fading {
        Fading::GlomosimRayleigh => Interference::glomosim(nodes, &radio, airtime, payload),
        Fading::Rayleigh => Interference::rayleigh(nodes, &radio, airtime, payload),
        _ => return Ok(None),
    };
    let model = model.map_err(failed)?;
    let options = ScheduleOptions {
        gap,
        rounds_max: ROUNDS_MAX,
        sets_max: SETS_MAX,
    };
    let found = schedule(&model, transfer.source, &transfer.receivers, &options);
    found.map(Some).map_err(failed)
}

/// The threshold, as a linear ratio of signal to noise, that stands for an error curve under Rayleigh's fading: a frame of mean power
/// P is then received with exp(-threshold * noise / P). It is the median over the links that lose some frames and get some through;
/// `None` without such links.
fn threshold(delivery: &[f64], power: &[f64], noise: f64) -> Option<f64> {
    let uncertain = |prr: f64| (0.1..=0.9).contains(&prr);
    let links = delivery
        .iter()
        .zip(power)
        .filter(|(prr, _)| uncertain(**prr));
    let mut ratios: Vec<f64> = links
        .map(|(prr, power)| -prr.ln() * power / noise)
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links that follow the law give back its threshold, and hopeless and certain ones do not count.
    #[test]
    fn the_threshold_of_an_error_curve_is_that_of_its_links() {
        let (noise, ratio): (f64, f64) = (2.0, 5.0);
        let power = [10.0, 20.0, 40.0, 0.1, 1e6, 0.0];
        let mut delivery = power.map(|power| f64::exp(-ratio * noise / power));
        assert!((threshold(&delivery, &power, noise).unwrap() - ratio).abs() < 1e-9);
        delivery[3] = 1.0;
        assert!((threshold(&delivery, &power, noise).unwrap() - ratio).abs() < 1e-9);
        assert_eq!(threshold(&[0.0, 1.0], &[1.0, 1.0], noise), None);
    }
}
