//! Quantities that no network can have are refused where they stand.

use chappe_core::{Duration, Mode, Rate};
use chappe_sim::Bursts;

use super::NetworkPlan;
use crate::idle;

/// Goal: an end that is drawn is none that a later transfer names. Method: among three nodes only one is left to draw.
#[test]
fn drawn_ends_are_not_those_of_later_transfers() {
    let links = "links = [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]";
    let drawn = "[[transfer]]\nsource = 0\nreceivers = 1\nbytes = \"1 kB\"\n";
    let named = "[[transfer]]\nsource = 1\nreceivers = [2]\nbytes = \"1 kB\"\n";
    let plan = idle::plan(&format!("[network]\n{links}\n{drawn}{named}"));
    for seed in 0..40 {
        let network = plan.network(seed).unwrap();
        assert_eq!(network.transfers[0].receivers, [3], "seed {seed}");
    }
}

#[test]
fn negative_quantities_are_refused() {
    for (table, key, value, message) in [
        ("mac", "slot", "-20 us", "-20 us is not a span of time"),
        ("mac", "sifs", "-10 us", "-10 us is not a span of time"),
        ("mac", "rts_threshold", "-3 B", "-3 B is not a size"),
        ("mac", "distance_max", "-5 km", "-5 km is not a distance"),
        ("radio", "coherence", "-1 s", "-1 s is not a span of time"),
        (
            "radio",
            "turnaround",
            "-3 us",
            "-3 us is not a span of time",
        ),
        (
            "radio",
            "capture_window",
            "-3 us",
            "-3 us is not a span of time",
        ),
        (
            "radio",
            "tx_power",
            "1e400 dBm",
            "expected a power, found `1e400 dBm`",
        ),
    ] {
        // Without this law `capture_window` would be refused as useless.
        let with = ["", "capture = \"first\""][usize::from(table == "radio")];
        let places = "positions = [[\"0 m\", \"0 m\"], [\"9 m\", \"0 m\"]]";
        let text = format!("[network]\n{places}\n[{table}]\n{key} = \"{value}\"\n{with}\n");
        let error = NetworkPlan::parse(&[&idle::IDLE], "test", &text).unwrap_err();
        assert_eq!(error.message, message, "{key}");
        assert_eq!(error.line_column().map(|place| place.0), Some(4), "{key}");
        let right = text.replace('-', "").replace("e400", "");
        assert!(
            NetworkPlan::parse(&[&idle::IDLE], "test", &right).is_ok(),
            "{right}"
        );
    }
}

/// Goal: a jammer may pause, as Wi-Fi does. Method: a plan's jammers; and half of what a pause needs, or a burst that is none.
#[test]
fn jammers_send_without_a_pause_or_in_bursts() {
    let places = "positions = [[\"0 m\", \"0 m\"], [\"9 m\", \"0 m\"]]";
    let of = |more: &str| {
        let jammer =
            "at = \"1 s\"\nkind = \"jammer\"\nnode = 1\npower = \"10 dBm\"\nlasts = \"9 s\"";
        let text = format!("[network]\n{places}\n[[fault]]\n{jammer}\n{more}\n");
        let plan = NetworkPlan::parse(&[&idle::IDLE], "test", &text);
        plan.map(|plan| match plan.faults[0].1.strike(None) {
            chappe_sim::Fault::Jammer(jammer) => jammer.bursts,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(of("").unwrap(), Bursts::Constant);
    let bursts = Bursts::Poisson {
        gap: Duration::from_millis(45),
        on: Duration::from_millis(5),
    };
    let both = "burst = \"5 ms\"\npause = \"45 ms\"";
    assert_eq!(of(both).unwrap(), bursts);
    for (more, message) in [
        ("burst = \"5 ms\"", "this fault needs `pause`"),
        ("pause = \"5 ms\"", "this fault needs `burst`"),
        (
            "burst = \"0 ms\"\npause = \"45 ms\"",
            "a burst of no length disturbs nothing",
        ),
    ] {
        assert_eq!(of(more).unwrap_err().message, message);
    }
    let crash = format!(
        "[network]\n{places}\n[[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = 1\n{both}\n"
    );
    let error = NetworkPlan::parse(&[&idle::IDLE], "test", &crash).unwrap_err();
    assert_eq!(error.message, "this kind of fault does not use `burst`");
}

/// Cards behind interfaces have the DCF or EDCA; what they do not have is refused.
#[test]
fn emulated_cards_have_the_dcf_or_edca() {
    let read = |mac: &str| {
        let text = format!("[network]\nlinks = [[0, 1], [1, 0]]\n[mac]\n{mac}\n");
        NetworkPlan::parse(&[&idle::IDLE], "test", &text)
    };
    let categories = |mac: &str| read(mac).unwrap().categories;
    assert!(categories("access = \"edca\""));
    assert!(!categories("access = \"dcf\"") && !categories("cw_min = 15"));
    for (mac, message) in [
        (
            "access = \"zmac+\"",
            "no card has ZMAC+: packets of programs do not say who may send next",
        ),
        (
            "access = \"edca\"\ncw_min = 15",
            "EDCA's windows are the standard's, one pair for each access category",
        ),
        (
            "access = \"edca\"\naggregate = true",
            "A-MPDUs hold unicast frames, of which this system sends no stream",
        ),
    ] {
        assert_eq!(read(mac).unwrap_err().message, message);
    }
}

/// A rate of OFDM brings the standard's values of 802.11g and a profile with its noise. Thresholds of 802.11b say nothing about it, and
/// control frames of the other modulation are not understood.
#[test]
fn ofdm_has_values_of_its_own() {
    let places = "positions = [[\"0 m\", \"0 m\"], [\"9 m\", \"0 m\"]]";
    let read = |radio: &str, mac: &str| {
        let text = format!("[network]\n{places}\n[radio]\n{radio}\n[mac]\n{mac}\n");
        NetworkPlan::parse(&[&idle::IDLE], "test", &text)
    };
    let plan = read("rate = \"54 Mbit/s\"", "").unwrap();
    assert_eq!(plan.profile.name, "dot11g-physical");
    assert_eq!(plan.mac.slot, Duration::from_micros(9));
    assert_eq!(plan.mac.control, Mode::long(Rate::Ofdm24));
    let usual = read("rate = \"11 Mbit/s\"", "").unwrap();
    assert_eq!(usual.profile.name, "chappe-physical");
    for (radio, mac, message) in [
        (
            "rate = \"6 Mbit/s\"\nprofile = \"glomosim\"",
            "",
            "glomosim knows no OFDM: its thresholds are those of 802.11b",
        ),
        (
            "rate = \"6 Mbit/s\"\npreamble = \"short\"",
            "",
            "6 Mbit/s has no short preamble",
        ),
        (
            "rate = \"6 Mbit/s\"",
            "control_rate = \"1 Mbit/s\"",
            "data go at 6 Mbit/s, and control frames at 1 Mbit/s",
        ),
        ("rate = \"7 Mbit/s\"", "", "802.11 has no rate of 7 Mbit/s"),
    ] {
        assert_eq!(read(radio, mac).unwrap_err().message, message);
    }
}

/// A power beyond what the profile's radio sends is allowed, with a note.
#[test]
fn powers_that_no_radio_has_are_noted() {
    let notes = |power: &str| {
        let text = format!(
            "[network]\npositions = [[\"0 m\", \"0 m\"], [\"50 m\", \"0 m\"]]\n[radio]\ntx_power = \"{power}\"\n\
             [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n"
        );
        idle::plan(&text).notes
    };
    for usual in ["15 dBm", "30 dBm", "1 W", "30 mW"] {
        assert!(notes(usual).is_empty(), "{usual}");
    }
    assert_eq!(notes("90 dBm").len(), 1);
    assert!(notes("2 W")[0].contains("30"), "{:?}", notes("2 W"));
}
