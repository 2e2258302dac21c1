//! The energy that radios take, for chips whose data sheets give their currents.
//!
//! It is the radio's own: no processor, no sensor. A radio that is off takes nothing here; the CC2420 takes 20 uA then.

use chappe_core::Dbm;
use chappe_sim::{NodeCounters, Profile};

/// Counter of the energy of all nodes' radios over the whole run, in microjoules.
pub const RADIO_ENERGY: &str = "radio_energy_uj";

/// The currents of a chip.
struct Currents {
    /// The chip, as names of profiles begin.
    chip: &'static str,
    /// Supply voltage, which makes power of the currents.
    volts: f64,
    /// Listening or receiving, in milliamperes.
    listening: f64,
    /// Transmitting at this power and less, in milliamperes, from the least power on.
    transmitting: &'static [(Dbm, f64)],
}

const KNOWN: [Currents; 3] = [
    // TI SWRS041: 18.8 and 17.4 mA; 3.0 V as in the P³ paper's comparison.
    Currents {
        chip: "cc2420",
        volts: 3.0,
        listening: 18.8,
        transmitting: &[(Dbm(0.0), 17.4)],
    },
    // Nordic, nRF52840 Product Specification, "Radio transmitting/receiving", 250 kbit/s by DC/DC at 3 V: IRADIO_RX2,
    // IRADIO_TX5; 8 dBm is IRADIO_TX0 (1 Mbit/s), the only figure above 0 dBm.
    Currents {
        chip: "nrf52840",
        volts: 3.0,
        listening: 6.53,
        transmitting: &[(Dbm(0.0), 6.40), (Dbm(8.0), 16.40)],
    },
    // Microchip, AT86RF233 data sheet, summary of features, from memory: RX_ON 11.8 mA, BUSY_TX 13.8 mA at 4 dBm, 3 V.
    Currents {
        chip: "at86rf233",
        volts: 3.0,
        listening: 11.8,
        transmitting: &[(Dbm(4.0), 13.8)],
    },
];

/// The energy of these radios in joules; `None` if the profile's radio has no figures, or none for its power.
pub fn joules(profile: &Profile, nodes: &[NodeCounters]) -> Option<f64> {
    let is = |currents: &&Currents| profile.name.starts_with(currents.chip);
    let own = KNOWN.iter().find(is)?;
    let mut powers = own.transmitting.iter();
    // Of a power between two figures the greater one counts.
    let (_, transmitting) = powers.find(|(power, _)| profile.power.0 <= power.0)?;
    let each = nodes.iter().map(|node| {
        let [listens, sends] = [node.listening, node.transmitting].map(|span| span.as_secs_f64());
        listens * own.listening + sends * transmitting
    });
    Some(each.sum::<f64>() * 1e-3 * own.volts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_core::Duration;

    fn spent(name: &str, power: Dbm) -> Option<f64> {
        let profile = Profile {
            power,
            ..Profile::named(name).unwrap()
        };
        let node = NodeCounters {
            listening: Duration::from_secs(10),
            transmitting: Duration::from_secs(2),
            off: Duration::from_secs(100),
            ..NodeCounters::default()
        };
        joules(&profile, &[node, NodeCounters::default()])
    }

    #[test]
    fn energy_is_time_by_current_by_voltage() {
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        // 10 s of 18.8 mA and 2 s of 17.4 mA at 3 V.
        assert!(near(spent("cc2420-indoor", Dbm(0.0)), 0.6684));
        assert!(near(spent("cc2420-chips", Dbm(-10.0)), 0.6684));
        assert!(near(spent("nrf52840-indoor", Dbm(0.0)), 0.2343));
        assert!(near(spent("nrf52840-chips", Dbm(4.0)), 0.2943));
        assert!(near(spent("at86rf233-indoor", Dbm(4.0)), 0.4368));
        assert_eq!(spent("cc2420-indoor", Dbm(20.0)), None);
        assert_eq!(spent("chappe-physical", Dbm(0.0)), None);
    }
}
