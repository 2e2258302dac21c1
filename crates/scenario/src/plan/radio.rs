//! `[radio]` applied to its profile.

use chappe_core::{Channel, Db, Dbm, Mode, Preamble, Rate};
use chappe_sim::{Capture, Fading, PathLoss, Profile, Rule, Window};

use crate::check::Check;
use crate::format::{
    CaptureName, FadingName, PathLossName, PreambleName, RadioTable, ReceptionName,
};
use crate::input::InputError;
use crate::system::System;

/// Gain of both dishes of a long link where a scenario says nothing: two of 24 dBi, as in WiLDNet's measurements.
pub const DISHES: Db = Db(48.0);

/// Rate and preamble of data frames; 2 Mbit/s and long if not given.
pub fn mode(radio: &RadioTable, check: &Check<'_>) -> Result<Mode, InputError> {
    let rate = match &radio.rate {
        None => Rate::Dsss2,
        Some(wanted) => rate_of(wanted.value()).ok_or_else(|| {
            let message = format!("802.11 has no rate of {}", **wanted);
            check.at(wanted, "no such rate", message).help(RATES)
        })?,
    };
    let short = radio.preamble == Some(PreambleName::Short);
    let mode = if short {
        Mode::short(rate)
    } else {
        Mode::long(rate)
    };
    match &radio.rate {
        Some(given) if short && mode.preamble == Preamble::Long => {
            let message = format!("{} has no short preamble", **given);
            Err(check
                .at(given, "this rate", message)
                .help("IEEE 802.11-2020, 16.2.2.3 and 17.3.2"))
        }
        _ => Ok(mode),
    }
}

/// The rates that a scenario may give, for an error.
pub const RATES: &str = "802.11b: 1, 2, 5.5 and 11 Mbit/s; 802.11g: 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s; \
     802.11n: 6.5, 13, 19.5, 26, 39, 52, 58.5 and 65 Mbit/s";

/// The rate of 802.11b, g or n with this number of bits per second.
pub fn rate_of(bits_per_second: f64) -> Option<Rate> {
    Rate::DOT11B
        .into_iter()
        .chain(Rate::OFDM)
        .chain(Rate::HT)
        .find(|rate| rate.bitrate().0 as f64 == bits_per_second)
}

/// The physics of the radios: the profile with the changes of `[radio]`.
pub fn profile(
    radio: &RadioTable,
    system: &System,
    check: &Check<'_>,
) -> Result<Profile, InputError> {
    let radios = system.radios;
    let is_ofdm = is_ofdm(radio);
    let name = profile_name(radio, system);
    let mut profile = Profile::named(name).unwrap_or_else(Profile::chappe_physical);
    if let Some(given) = radio
        .profile
        .as_ref()
        .filter(|_| !radios.match_profile(&profile))
    {
        let message = format!(
            "{} sends {} frames, and {name} is another radio",
            system.title,
            radios.name()
        );
        let help = format!(
            "profiles for {}: {}",
            radios.name(),
            radios.profiles().join(", ")
        );
        return Err(check.at(given, "another radio", message).help(help));
    }
    let has_curves = matches!(profile.rule, Rule::ErrorCurves);
    if let (Some(given), true, false) = (&radio.rate, is_ofdm, has_curves) {
        let message = format!("{name} knows no OFDM: its thresholds are those of 802.11b");
        let help = format!("profile = \"{}\"", Profile::NAMES_OFDM[0]);
        return Err(check.at(given, "a rate of OFDM", message).help(help));
    }
    if name == Profile::NAMES_LONG[0] {
        // A link of kilometres needs dishes; `antenna_gains` replaces these.
        profile.antennas = DISHES;
    }
    powers(radio, &mut profile);
    path_loss(radio, &mut profile);
    fading(radio, &mut profile, check)?;
    receiver(radio, &mut profile, check)?;
    if let Some(power) = &radio.tx_power_max {
        profile.power_max = Dbm(power.value());
        if profile.power_max < profile.power {
            let message = format!(
                "the highest power, {}, is below the transmit power, {}",
                **power, profile.power
            );
            return Err(check.at(power, "too low", message));
        }
    }
    if let Some(channel) = &radio.channel {
        let channels = radios.channels();
        if !channels.contains(&**channel) {
            let message = format!("{} has no channel {}", radios.name(), **channel);
            let help = format!("{} to {}", channels.start(), channels.end());
            return Err(check.at(channel, "no such channel", message).help(help));
        }
        profile.channel = Channel(**channel);
    }
    Ok(profile)
}

fn is_ofdm(radio: &RadioTable) -> bool {
    let rate = radio.rate.as_ref().and_then(|rate| rate_of(rate.value()));
    rate.is_some_and(Rate::is_ofdm)
}

/// The profile that a scenario names, or the system's usual one.
fn profile_name(radio: &RadioTable, system: &System) -> &'static str {
    let usual = match system.profile == Profile::NAMES[0] && is_ofdm(radio) {
        true => Profile::NAMES_OFDM[0],
        false => system.profile,
    };
    radio.profile.as_ref().map_or(usual, |given| given.name())
}

/// The highest power of a profile's radio, what has it, and where that is said.
fn highest_power(profile: &str) -> Option<(Dbm, &'static str)> {
    match profile {
        // TI SWRS041c, table "RF Transmit".
        name if name.starts_with("cc2420") => Some((Dbm(0.0), "a CC2420 can")),
        // Nordic nRF52840 Product Specification, "Radio: transmitter specification".
        name if name.starts_with("nrf52840") => Some((Dbm(8.0), "an nRF52840 can")),
        // Atmel-8351, "Transmitter characteristics".
        name if name.starts_with("at86rf233") => Some((Dbm(4.0), "an AT86RF233 can")),
        // ns-3's lr-wpan is no radio that can be bought.
        name if name.starts_with("ieee-") => None,
        // 1 W: 47 CFR 15.247 (b) (3).
        _ => Some((Dbm(30.0), "a card of 802.11 may")),
    }
}

/// What the author should know of a power that the profile's radio does not have.
pub fn note(radio: &RadioTable, system: &System) -> Option<String> {
    let highest = radio.tx_power_max.as_ref().map(|power| **power);
    let (most, what) = highest_power(profile_name(radio, system))?;
    let mut given = [("tx_power", radio.tx_power), ("tx_power_max", highest)]
        .into_iter()
        .filter_map(|(key, power)| Some((key, power?)));
    let (key, power) = given.find(|(_, power)| power.value() > most.0)?;
    let profile = profile_name(radio, system);
    Some(format!(
        "{key} = \"{power}\" is more than {what} send, {most} at most (profile {profile})"
    ))
}

fn powers(radio: &RadioTable, profile: &mut Profile) {
    let set = |target: &mut Dbm, given: Option<crate::quantity::Power>| {
        if let Some(given) = given {
            *target = Dbm(given.value());
        }
    };
    set(&mut profile.power, radio.tx_power);
    profile.power_max = profile.power;
    set(&mut profile.noise, radio.noise);
    set(&mut profile.lock.power, radio.lock_power);
    set(&mut profile.decode_power, radio.decode_power);
    set(&mut profile.carrier_sense, radio.carrier_sense);
    if let Some(power) = radio.vanish_below {
        profile.vanish_below = Some(Dbm(power.value()));
    }
    let ratio = |target: &mut Db, given: Option<crate::quantity::Ratio>| {
        if let Some(given) = given {
            *target = Db(given.value());
        }
    };
    ratio(&mut profile.antennas, radio.antenna_gains);
    ratio(&mut profile.shadowing, radio.shadowing);
    ratio(&mut profile.floor, radio.floor);
    ratio(&mut profile.lock.sinr, radio.lock_sinr);
    if let Some(rejection) = &radio.rejection {
        profile.rejection = rejection.iter().map(|ratio| Db(ratio.value())).collect();
    }
}

/// The law, then its numbers: those that the profile's own law has are kept unless given.
fn path_loss(radio: &RadioTable, profile: &mut Profile) {
    // 2.4 GHz, antennas at 1.5 m, exponent 3 and 46.68 dB at one metre: ns-3's and GloMoSim's defaults.
    let (mut hertz, mut height, mut exponent, mut reference) = (2.4e9, 1.5, 3.0, Db(46.6777));
    let own = match profile.path_loss {
        PathLoss::Friis { hertz: h } => {
            hertz = h;
            PathLossName::Friis
        }
        PathLoss::TwoRayGround {
            hertz: h,
            height: up,
        } => {
            (hertz, height) = (h, up);
            PathLossName::TwoRay
        }
        PathLoss::LogDistance {
            exponent: e,
            reference: r,
        } => {
            (exponent, reference) = (e, r);
            PathLossName::LogDistance
        }
    };
    hertz = radio.frequency.map_or(hertz, |given| given.value());
    height = radio.antenna_height.map_or(height, |given| given.value());
    exponent = radio.exponent.unwrap_or(exponent);
    reference = radio
        .reference_loss
        .map_or(reference, |given| Db(given.value()));
    profile.path_loss = match radio.path_loss.unwrap_or(own) {
        PathLossName::Friis => PathLoss::Friis { hertz },
        PathLossName::TwoRay => PathLoss::TwoRayGround { hertz, height },
        PathLossName::LogDistance => PathLoss::LogDistance {
            exponent,
            reference,
        },
    };
}

fn fading(radio: &RadioTable, profile: &mut Profile, check: &Check<'_>) -> Result<(), InputError> {
    if let Some(law) = radio.fading {
        profile.fading = match law {
            FadingName::None => Fading::None,
            FadingName::Rayleigh => Fading::Rayleigh,
            // 6 dB: a direct path that is there, but not alone.
            FadingName::Rician => Fading::Rician {
                k: Db(6.0).to_linear(),
            },
            FadingName::Glomosim => Fading::GlomosimRayleigh,
        };
    }
    if let (Fading::Rician { k }, Some(given)) = (&mut profile.fading, radio.rician_k) {
        *k = Db(given.value()).to_linear();
    }
    if let Some(coherence) = &radio.coherence {
        profile.coherence = check.time(coherence)?;
    }
    Ok(())
}

fn receiver(
    radio: &RadioTable,
    profile: &mut Profile,
    check: &Check<'_>,
) -> Result<(), InputError> {
    let own = profile.capture;
    let margin = radio.capture_margin.map(|margin| Db(margin.value()));
    let margin = margin
        .or(own.map(|capture| capture.margin))
        .unwrap_or(Db(5.0));
    let own_window = own.map_or(Window::Preamble, |capture| capture.window);
    let first = match &radio.capture_window {
        Some(window) => Some(Window::First(check.time(window)?)),
        None => None,
    };
    let window = match radio.capture {
        None => first.unwrap_or(own_window),
        Some(CaptureName::Frame) => Window::Frame,
        Some(CaptureName::First) => first.unwrap_or(own_window),
        Some(CaptureName::Never | CaptureName::Preamble) => Window::Preamble,
    };
    let never = match radio.capture {
        Some(name) => name == CaptureName::Never,
        None => own.is_none(),
    };
    profile.capture = (!never).then_some(Capture { margin, window });
    let own_ratio = match profile.rule {
        Rule::SnrThreshold(ratio) | Rule::Pairwise(ratio) => ratio,
        Rule::ErrorCurves | Rule::Overlap => Db(10.0),
    };
    let ratio = radio
        .reception_ratio
        .map_or(own_ratio, |ratio| Db(ratio.value()));
    profile.rule = match (radio.reception, profile.rule) {
        (Some(ReceptionName::ErrorCurves), _) | (None, Rule::ErrorCurves) => Rule::ErrorCurves,
        (Some(ReceptionName::Overlap), _) | (None, Rule::Overlap) => Rule::Overlap,
        (Some(ReceptionName::SnrThreshold), _) | (None, Rule::SnrThreshold(_)) => {
            Rule::SnrThreshold(ratio)
        }
        (Some(ReceptionName::Pairwise), _) | (None, Rule::Pairwise(_)) => Rule::Pairwise(ratio),
    };
    if let Some(turnaround) = &radio.turnaround {
        profile.turnaround = check.time(turnaround)?;
    }
    Ok(())
}
