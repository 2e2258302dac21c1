//! `[mac]` applied to 802.11.

use chappe_core::{Duration, Mode, SPEED_OF_LIGHT};
use chappe_mac::dot11;

use super::radio;
use crate::check::Check;
use crate::format::{AccessName, Located, MacTable, RateControlName};
use crate::input::InputError;
use crate::system::System;

/// Refuses keys that choose among channel access methods: for traffic whose packets are all equal.
pub(super) fn refuse_priorities(
    mac: &MacTable,
    systems: &[&'static System],
    check: &Check<'_>,
) -> Result<(), InputError> {
    let other = |access: &&Located<AccessName>| ***access != AccessName::Dcf;
    if let Some(access) = mac.access.as_ref().filter(other) {
        let message = "priorities mean nothing for a system whose packets are all equal";
        let owner = systems.iter().find(|other| other.has_priorities);
        let owner = owner.map(|owner| format!("it belongs to system = \"{}\"; ", owner.name));
        let help = format!("{}here access = \"dcf\"", owner.unwrap_or_default());
        return Err(check.at(access, "no use here", message).help(help));
    }
    refuse_others(mac, check)
}

/// Whether cards behind interfaces have EDCA's access categories; refuses what such cards do not have.
pub(super) fn has_categories(mac: &MacTable, check: &Check<'_>) -> Result<bool, InputError> {
    let access = mac.access.as_ref();
    let edca = access.is_some_and(|access| **access == AccessName::Edca);
    if let Some(access) = access.filter(|access| ***access == AccessName::ZmacPlus) {
        let message = "no card has ZMAC+: packets of programs do not say who may send next";
        let help = "access = \"dcf\" or \"edca\"";
        return Err(check.at(access, "not emulated", message).help(help));
    }
    let window = mac.cw_min.as_ref().or(mac.cw_max.as_ref());
    if let Some(window) = window.filter(|_| edca) {
        let message = "EDCA's windows are the standard's, one pair for each access category";
        return Err(check.at(window, "no use here", message));
    }
    refuse_others(mac, check)?;
    Ok(edca)
}

/// Refuses keys of methods that share nothing with the DCF.
fn refuse_others(mac: &MacTable, check: &Check<'_>) -> Result<(), InputError> {
    if let Some(aggregate) = mac.aggregate.as_ref().filter(|given| ***given) {
        let message = "A-MPDUs hold unicast frames, of which this system sends no stream";
        return Err(check.at(aggregate, "no use here", message));
    }
    if let Some(time) = mac.burst.as_ref().or(mac.time_slot.as_ref()) {
        let message = "bursts and time slots belong to access = \"zmac+\"";
        return Err(check.at(time, "no use here", message));
    }
    Ok(())
}

/// What `[mac]` says of a station, on top of the standard's values, whatever the method of access.
pub fn station(mac: &MacTable, mode: Mode, check: &Check<'_>) -> Result<dot11::Config, InputError> {
    let mut config = dot11::Config::of_rate(mode.rate);
    config.data = mode;
    let control = mac.rate_control.as_ref().map(|given| **given);
    if control == Some(RateControlName::Minstrel) {
        config = config.with_minstrel();
    }
    for (target, given) in [(&mut config.slot, &mac.slot), (&mut config.sifs, &mac.sifs)] {
        if let Some(given) = given {
            *target = check.time(given)?;
        }
    }
    config.cw_min = mac.cw_min.as_ref().map_or(config.cw_min, |given| **given);
    // A smallest window above the standard's largest raises that one too.
    config.cw_max = mac
        .cw_max
        .as_ref()
        .map_or(config.cw_max.max(config.cw_min), |given| **given);
    if let Some(most) = mac.cw_max.as_ref().filter(|most| ***most < config.cw_min) {
        let message = format!(
            "the largest contention window {} is below the smallest, {}",
            **most, config.cw_min
        );
        return Err(check.at(most, "too small", message));
    }
    config.retry_short = mac.retry_short.unwrap_or(config.retry_short);
    config.retry_long = mac.retry_long.unwrap_or(config.retry_long);
    if let Some(size) = &mac.rts_threshold {
        if size.value() < 0.0 {
            return Err(check.at(size, "here", format!("{} is not a size", **size)));
        }
        config.rts_threshold = size.value() as usize;
    }
    config.eifs = mac.eifs.unwrap_or(config.eifs);
    config.difs_backoff = mac.difs_backoff.unwrap_or(config.difs_backoff);
    if let Some(rate) = &mac.control_rate {
        let found = radio::rate_of(rate.value()).ok_or_else(|| {
            let message = format!("802.11 has no rate of {}", **rate);
            check.at(rate, "no such rate", message).help(radio::RATES)
        })?;
        if found.is_ofdm() != mode.rate.is_ofdm() {
            let message = format!("data go at {}, and control frames at {found}", mode.rate);
            let help = "both by DSSS and CCK (1 to 11 Mbit/s), or both by OFDM (6 to 65 Mbit/s)";
            return Err(check.at(rate, "another modulation", message).help(help));
        }
        config.control = Mode::long(found);
    }
    if let Some(distance) = &mac.distance_max {
        if distance.value() < 0.0 {
            return Err(check.at(
                distance,
                "here",
                format!("{} is not a distance", **distance),
            ));
        }
        config.propagation_max = Duration::from_secs_f64(distance.value() / SPEED_OF_LIGHT);
    }
    Ok(config)
}
