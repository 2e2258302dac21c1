//! Refuses keys of `[radio]` and `[mac]` that change nothing in this scenario.
//!
//! A key that is read and then has no effect misleads: its author believes in a result that does not contain it.

use chappe_sim::{Fading, PathLoss, Profile, Rule, Window};

use super::Topology;
use crate::check::Check;
use crate::format::{MacTable, Scenario};
use crate::input::InputError;
use crate::radios::Radios;
use crate::system::System;

/// Refuses the first key of `[radio]` that changes nothing where nodes sense the carrier, or do not.
pub(super) fn refuse_radio(
    (system, senses_carrier): (&System, bool),
    (profile, topology): (&Profile, &Topology),
    check: &Check<'_>,
) -> Result<(), InputError> {
    let reason = |key: &str| {
        by_network(key, topology)
            .or_else(|| by_system(key, system, senses_carrier))
            .or_else(|| by_law(key, profile))
            .or_else(|| by_receiver(key, profile))
    };
    for (key, span) in check.source().keys_of("radio")? {
        if let Some(reason) = reason(key) {
            let message = format!("`{key}` changes nothing here: {reason}");
            return Err(check.error(span.clone(), "no use here", message));
        }
    }
    Ok(())
}

/// Refuses keys of `[mac]` that change nothing.
pub(super) fn refuse_mac(scenario: &Scenario, check: &Check<'_>) -> Result<(), InputError> {
    let useless = |mac: &&MacTable| mac.retry_long.is_some() && mac.rts_threshold.is_none();
    if scenario.mac.as_deref().filter(useless).is_none() {
        return Ok(());
    }
    let mut keys = check.source().keys_of("mac")?.iter();
    let span = keys.find(|(key, _)| key == "retry_long");
    let message = "`retry_long` changes nothing here: it counts frames that an RTS precedes";
    let span = span.map(|(_, span)| span.clone()).unwrap_or_default();
    let error = check.error(span, "no use here", message);
    Err(error.help("give rts_threshold as well"))
}

/// Measured links already contain what the radio and the air did to them.
fn by_network(key: &str, topology: &Topology) -> Option<&'static str> {
    let is_mode = ["rate", "preamble"].contains(&key);
    match topology {
        Topology::Measured(_) if !is_mode => {
            Some("the network gives delivery ratios, which contain the radio and the air")
        }
        Topology::Channels(_) => [
            "tx_power",
            "antenna_gains",
            "path_loss",
            "frequency",
            "antenna_height",
            "exponent",
            "reference_loss",
            "shadowing",
        ]
        .contains(&key)
        .then_some("the network gives its links, which contain path loss and power"),
        _ => None,
    }
}

fn by_system(key: &str, system: &System, senses_carrier: bool) -> Option<&'static str> {
    match key {
        "rate" | "preamble" if system.radios == Radios::Dot15d4 => {
            Some("802.15.4 has one rate and one preamble")
        }
        "carrier_sense" if !senses_carrier => {
            Some("nodes of this variant send at planned times and do not sense the carrier")
        }
        _ => None,
    }
}

fn by_law(key: &str, profile: &Profile) -> Option<&'static str> {
    let law = &profile.path_loss;
    match key {
        "frequency" if matches!(law, PathLoss::LogDistance { .. }) => {
            Some("it belongs to path_loss = \"friis\" or \"two-ray\"")
        }
        "antenna_height" if !matches!(law, PathLoss::TwoRayGround { .. }) => {
            Some("it belongs to path_loss = \"two-ray\"")
        }
        "exponent" | "reference_loss" if !matches!(law, PathLoss::LogDistance { .. }) => {
            Some("it belongs to path_loss = \"log-distance\"")
        }
        "rician_k" if !matches!(profile.fading, Fading::Rician { .. }) => {
            Some("it belongs to fading = \"rician\"")
        }
        "coherence" if matches!(profile.fading, Fading::None) => Some("there is no fading"),
        _ => None,
    }
}

fn by_receiver(key: &str, profile: &Profile) -> Option<&'static str> {
    let window = profile.capture.map(|capture| capture.window);
    match (key, profile.rule) {
        ("capture" | "capture_margin" | "capture_window", Rule::Pairwise(_)) => {
            Some("reception = \"pairwise\" compares each two frames by reception_ratio")
        }
        ("capture" | "capture_margin" | "capture_window", Rule::Overlap) => {
            Some("with reception = \"overlap\" frames that overlap are all lost")
        }
        ("capture_margin", _) if profile.capture.is_none() => {
            Some("with capture = \"never\" a receiver keeps its first frame")
        }
        ("capture_window", _) if !matches!(window, Some(Window::First(_))) => {
            Some("it belongs to capture = \"first\"")
        }
        ("reception_ratio", Rule::ErrorCurves | Rule::Overlap) => {
            Some("it belongs to reception = \"snr-threshold\" or \"pairwise\"")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::idle;

    const PLACES: &str = "positions = [[\"0 m\", \"0 m\"], [\"50 m\", \"0 m\"]]";
    const LINKS: &str = "links = [[0, 0.9], [0.9, 0]]";

    fn refusal(network: &str, tables: &str) -> Option<String> {
        let text = format!(
            "[network]\n{network}\n{tables}\n[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n"
        );
        idle::plan_or_error(&text)
            .err()
            .map(|error| error.message.clone())
    }

    /// Goal: each key that cannot act is refused with its reason, and acts where its law is chosen.
    #[test]
    fn keys_that_change_nothing_are_refused() {
        let log = "path_loss = \"log-distance\"";
        let refused = [
            (LINKS, "tx_power = \"10 dBm\"", "delivery ratios"),
            (LINKS, "shadowing = \"4 dB\"", "delivery ratios"),
            (LINKS, "profile = \"ns3-yans\"", "delivery ratios"),
            (
                PLACES,
                "path_loss = \"friis\"\nexponent = 2.0",
                "log-distance",
            ),
            (
                PLACES,
                "path_loss = \"friis\"\nreference_loss = \"40 dB\"",
                "log-distance",
            ),
            (
                PLACES,
                "path_loss = \"friis\"\nantenna_height = \"2 m\"",
                "two-ray",
            ),
            (PLACES, &format!("{log}\nfrequency = \"5 GHz\""), "friis"),
            (
                PLACES,
                "fading = \"rayleigh\"\nrician_k = \"3 dB\"",
                "rician",
            ),
            (
                PLACES,
                "fading = \"none\"\ncoherence = \"1 ms\"",
                "no fading",
            ),
            (
                PLACES,
                "capture = \"never\"\ncapture_margin = \"3 dB\"",
                "never",
            ),
            (
                PLACES,
                "capture = \"frame\"\ncapture_window = \"3 us\"",
                "first",
            ),
            (
                PLACES,
                "reception = \"overlap\"\ncapture = \"frame\"",
                "overlap",
            ),
            (
                PLACES,
                "reception = \"pairwise\"\ncapture = \"frame\"",
                "pairwise",
            ),
            (
                PLACES,
                "reception = \"error-curves\"\nreception_ratio = \"3 dB\"",
                "snr-threshold",
            ),
        ];
        for (network, keys, reason) in refused {
            let message = refusal(network, &format!("[radio]\n{keys}"));
            let message = message.unwrap_or_else(|| panic!("accepted: {network} {keys}"));
            assert!(
                message.contains("changes nothing here"),
                "{keys}: {message}"
            );
            assert!(message.contains(reason), "{keys}: {message}");
        }
        let accepted = [
            (LINKS, "rate = \"11 Mbit/s\"\npreamble = \"short\""),
            (
                PLACES,
                &format!("{log}\nexponent = 2.5\nreference_loss = \"40 dB\""),
            ),
            (
                PLACES,
                "path_loss = \"two-ray\"\nantenna_height = \"2 m\"\nfrequency = \"5 GHz\"",
            ),
            (
                PLACES,
                "fading = \"rician\"\nrician_k = \"3 dB\"\ncoherence = \"1 ms\"",
            ),
            (
                PLACES,
                "capture = \"first\"\ncapture_window = \"3 us\"\ncapture_margin = \"3 dB\"",
            ),
            (
                PLACES,
                "reception = \"snr-threshold\"\nreception_ratio = \"8 dB\"",
            ),
            (
                PLACES,
                "tx_power = \"10 dBm\"\nshadowing = \"4 dB\"\ncarrier_sense = \"-90 dBm\"",
            ),
        ];
        for (network, keys) in accepted {
            assert_eq!(
                refusal(network, &format!("[radio]\n{keys}")),
                None,
                "{keys}"
            );
        }
    }

    #[test]
    fn retries_of_long_frames_need_a_threshold() {
        let message = refusal(PLACES, "[mac]\nretry_long = 3");
        assert!(message.is_some_and(|message| message.contains("RTS")));
        let with = "[mac]\nretry_long = 3\nrts_threshold = \"500 B\"";
        assert_eq!(refusal(PLACES, with), None);
    }
}
