//! The ideal schedule with interference: what a central scheduler that knows all powers could carry.

use chappe_bound::{Interference, Rayleigh, Schedule, ScheduleOptions, schedule};
use chappe_lab::run::RunError;
use chappe_scenario::{Network, Transfer};
use chappe_sim::{Fading, Rule};

use super::Pacifier;

/// The best schedule of a transfer under interference, with its proven bound; `None` on networks whose powers or laws the
/// model does not know.
pub fn ideal(
    with: &Pacifier,
    net: &Network,
    transfer: &Transfer,
) -> Result<Option<Schedule>, RunError> {
    let failed = |error: chappe_bound::Error| RunError::Defect(format!("the bound: {error}"));
    let (medium, nodes) = (&net.medium, net.medium.nodes());
    let profile = medium.profile();
    let Rule::SnrThreshold(ratio) = profile.rule else {
        return Ok(None);
    };
    let milliwatt = |dbm: f64| 10f64.powf(dbm / 10.0);
    let power = |pair: usize| milliwatt(medium.mean_power(pair / nodes, pair % nodes).0);
    let power: Vec<f64> = (0..nodes * nodes).map(power).collect();
    if power.iter().any(|power| power.is_nan()) {
        return Ok(None);
    }
    let radio = Rayleigh {
        power: &power,
        noise: milliwatt(profile.noise.0),
        ratio: 10f64.powf(ratio.0 / 10.0),
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
    let options = ScheduleOptions::default();
    let found = schedule(&model, transfer.source, &transfer.receivers, &options);
    found.map(Some).map_err(failed)
}
