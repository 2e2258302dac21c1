//! What this machine can run, examined without changing it.

use chappe_coding::Kernel;
use chappe_sys::{ability, wireless};
use serde::Serialize;

use chappe_results::provenance::processor;
use chappe_scenario::quantity::Length;

/// One ability or program that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the ability or program.
    pub what: &'static str,
    /// Whether the machine has it.
    pub ok: bool,
    /// What was found, in a few words.
    pub found: String,
    /// How to get it if it is missing; else empty.
    pub todo: String,
}

/// Returns the findings about this machine.
pub fn examine() -> Vec<Finding> {
    let mut all = vec![cores(), kernel()];
    all.extend(abilities());
    all.push(radios());
    all.push(program("iperf3", "loads emulated networks", IPERF3));
    all.push(program("tshark", "shows captures", TSHARK));
    all
}

const IPERF3: &str = "install iperf3 for `chappe emu check`: apt-get install iperf3";
const TSHARK: &str =
    "install tshark or Wireshark to read captures (--pcap): apt-get install tshark";

fn cores() -> Finding {
    let cores = chappe_lab::seeds::cores();
    let found = format!("{cores} ({})", processor());
    Finding {
        what: "cores",
        ok: true,
        found,
        todo: String::new(),
    }
}

/// The instructions that multiply in GF(2^8), fastest first, as the coding crate chooses them.
fn kernel() -> Finding {
    let kernel = Kernel::best();
    let (name, portable) = (kernel.name(), kernel == Kernel::PORTABLE);
    let found = if portable {
        "none: tables are used".to_string()
    } else {
        name.to_string()
    };
    let todo = "coding works without vector instructions, about twenty times slower; radio speeds do not need them";
    Finding {
        what: "vector instructions for coding",
        ok: !portable,
        found,
        todo: todo.to_string(),
    }
}

/// The permissions of this user: tried out, not guessed from settings.
fn abilities() -> impl Iterator<Item = Finding> {
    ability::all().into_iter().map(|ability| {
        let purpose = ability.purpose;
        let found = match ability.there {
            true => ability.reason,
            false => format!("{} (for {purpose})", ability.reason),
        };
        let unknown = || format!("{purpose} is not available here");
        Finding {
            what: ability.name,
            ok: ability.there,
            found,
            todo: match ability.there {
                true => String::new(),
                false => ability.remedy.unwrap_or_else(unknown),
            },
        }
    })
}

/// The coverage class of each 802.11 card: a too short ACK timeout is the usual reason why a long link fails.
fn radios() -> Finding {
    let (ok, found) = match wireless::radios() {
        Err(error) => (false, error.cause()),
        Ok(radios) if radios.is_empty() => (
            true,
            "no 802.11 card here (a radio connected by cable has its own settings)".to_owned(),
        ),
        Ok(radios) => {
            let each = radios.iter().map(|radio| {
                let (class, reach) = (radio.coverage_class, Length::new(radio.reach()));
                format!(
                    "{} ({}): class {class} reaches {reach}",
                    radio.interface, radio.phy
                )
            });
            (true, each.collect::<Vec<_>>().join(", "))
        }
    };
    Finding {
        what: "802.11 coverage class",
        ok,
        found,
        todo: "`chappe link plan --loss 0 --distance '20 km'` reports the class for a distance"
            .to_owned(),
    }
}

fn program(name: &'static str, does: &str, todo: &'static str) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    Finding {
        what: name,
        ok: found.is_some(),
        found: found.map_or_else(
            || format!("not installed ({does})"),
            |path| path.display().to_string(),
        ),
        todo: todo.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_abilities_have_advice() {
        for finding in examine() {
            assert!(finding.ok || !finding.todo.is_empty(), "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}
