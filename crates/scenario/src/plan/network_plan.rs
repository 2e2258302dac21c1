//! The network of a scenario alone, for callers that bring their own traffic: `[[transfer]]` and `[protocol]` are
//! ignored, except for the system's radios.

use std::path::Path;

use chappe_core::{Duration, Mode};
use chappe_mac::dot11;
use chappe_sim::{Medium, Profile};

use super::topology::Planned;
use super::{FaultPlan, Topology, fault, mac, network, radio, seeds, topology, unused};
use crate::check::Check;
use crate::format::Source;
use crate::input::InputError;
use crate::radios::Radios;
use crate::system::System;

/// Places or links, radios, channel access and faults.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// The scenario's title, or the name of its file.
    pub title: String,
    /// Where the nodes stand, or their links.
    pub topology: Topology,
    /// The physics of the radios: the profile with the changes of `[radio]`.
    pub profile: Profile,
    /// How data frames are sent.
    pub mode: Mode,
    /// Channel access: the standard's values for the rate, with the changes of `[mac]`.
    pub mac: dot11::Config,
    /// Whether stations have the access categories of EDCA, instead of the DCF.
    pub categories: bool,
    /// What goes wrong, from the start on.
    pub faults: Vec<(Duration, FaultPlan)>,
    /// The first of the scenario's seeds.
    pub seed: u64,
    /// What the scenario's author should know, in sentences.
    pub notes: Vec<String>,
    source: Source,
}

impl NetworkPlan {
    /// Reads and checks a scenario file that may name these systems; `seed` replaces the scenario's own.
    pub fn read(
        systems: &[&'static System],
        path: &Path,
        set: &[String],
        seed: Option<u64>,
    ) -> Result<NetworkPlan, InputError> {
        NetworkPlan::new(systems, Source::read(path, set)?, seed)
    }

    /// Reads and checks a scenario's text.
    pub fn parse(
        systems: &[&'static System],
        name: &str,
        text: &str,
    ) -> Result<NetworkPlan, InputError> {
        NetworkPlan::new(systems, Source::new(name, text, &[]), None)
    }

    fn new(
        systems: &[&'static System],
        source: Source,
        seed: Option<u64>,
    ) -> Result<NetworkPlan, InputError> {
        let check = Check::new(&source);
        let scenario = source.scenario()?;
        let title = scenario.title.clone();
        let title = title.unwrap_or_else(|| source.name().to_string());
        let system = System::of(&scenario.protocol, systems, &source)?;
        if system.radios != Radios::Dot11 {
            let message = format!(
                "this network is of {} radios, and only 802.11 has an interface for packets",
                system.radios.name()
            );
            return Err(check.at(&scenario.protocol, "this system's radios", message));
        }
        let profile = radio::profile(&scenario.radio, system, &check)?;
        let mode = radio::mode(&scenario.radio, &check)?;
        let given = scenario.mac.as_deref().cloned().unwrap_or_default();
        let categories = mac::has_categories(&given, &check)?;
        let mac = mac::station(&given, mode, &check)?;
        let Planned {
            topology,
            mut notes,
            ..
        } = topology::plan(&scenario.network, system.radios, &check)?;
        if topology.moves() {
            let note = "nodes move here, and routes that are set are those of the start; a routing daemon follows \
                        the nodes (--no-routes)";
            notes.push(note.into());
        }
        unused::refuse_radio((system, true), (&profile, &topology), &check)?;
        unused::refuse_mac(&scenario, &check)?;
        let faults = fault::plan(&scenario.fault, &topology, &check)?;
        let own = seeds::plan(&scenario.run, &check)?;
        let seed = seed.or(own.first().copied()).unwrap_or(1);
        Ok(NetworkPlan {
            title,
            topology,
            profile,
            mode,
            mac,
            categories,
            faults,
            seed,
            notes,
            source,
        })
    }

    /// What lies between the antennas, where frames of `octets` (check sequence included) matter.
    pub fn medium(&self, octets: usize) -> Result<Medium, InputError> {
        let check = Check::new(&self.source);
        let ask = (self.mode, octets);
        network::medium_of((&self.topology, &self.profile), ask, self.seed, &check)
    }

    /// An error about the scenario as a whole.
    pub fn error(&self, message: impl Into<String>) -> InputError {
        self.source.error(0..0, "", message)
    }
}
