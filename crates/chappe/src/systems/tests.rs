//! Consistency of the table of systems, and scenarios that concern several systems.

use chappe_scenario::format::Source;
use chappe_scenario::plan::Changes;
use chappe_scenario::{InputError, Plan};
use chappe_sim::Profile;

use super::{SYSTEMS, papers, scenarios};

#[test]
fn the_systems_are_consistent() {
    let systems = scenarios();
    for (place, system) in systems.iter().enumerate() {
        let before = &systems[..place];
        assert!(before.iter().all(|other| other.name != system.name));
        assert!(!system.variants.is_empty());
        assert!(system.radios.profiles().contains(&system.profile));
        let profile = Profile::named(system.profile).unwrap();
        assert!(system.radios.match_profile(&profile));
        // A key of this name would hide one of the two that all systems have.
        let keys = system.keys.names();
        let common = ["system", "variant", "name"];
        assert!(keys.iter().all(|key| !common.contains(key)));
    }
}

/// Names are unique: no paper has the name of a figure, and no name is used twice.
#[test]
fn the_papers_are_consistent() {
    let papers: Vec<_> = papers().collect();
    for (place, paper) in papers.iter().enumerate() {
        assert!(papers[..place].iter().all(|other| other.name != paper.name));
        for (at, item) in paper.figures.iter().enumerate() {
            let before = &paper.figures[..at];
            assert!(before.iter().all(|other| other.name != item.name));
            assert!(papers.iter().all(|other| other.name != item.name));
        }
    }
}

const PAIR: &str = "[network]\npositions = [[\"0 m\", \"0 m\"], [\"50 m\", \"0 m\"]]\n\
    [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n";

/// The first system is the default. A wrong name is reported with the nearest right one, and a key of another system with
/// its owner, each with its place.
#[test]
fn a_scenario_names_its_system() {
    let plan = Plan::parse(&scenarios(), "pair.toml", PAIR).unwrap();
    assert_eq!(plan.system.name, SYSTEMS[0].scenario.name);
    let told = |protocol: &str, message: &str, help: &str, at: &str| {
        let text = format!("{PAIR}[protocol]\n{protocol}\n");
        let error = Plan::parse(&scenarios(), "pair.toml", &text).unwrap_err();
        assert_eq!(error.message, message);
        assert_eq!(error.help.as_deref(), Some(help));
        let place = error.place.as_ref().unwrap();
        assert_eq!(&place.text[place.span.clone()], at);
    };
    told(
        "system = \"pacifer\"",
        "unknown name `pacifer`",
        "did you mean `pacifier`?",
        "\"pacifer\"",
    );
    let names: Vec<&str> = scenarios().iter().map(|system| system.name).collect();
    let names = names.join(", ");
    told(
        "system = \"x\"",
        "unknown name `x`",
        &format!("known here: {names}"),
        "\"x\"",
    );
    told(
        "beacons = 3",
        "`beacons` means nothing for the system pacifier",
        "it belongs to system = \"p3\"",
        "beacons",
    );
}

/// The schema that the program prints is the one of the types. `CHAPPE_BLESS=1` writes it.
#[test]
fn the_schema_is_that_of_the_types() {
    let made = serde_json::to_string_pretty(&chappe_scenario::schema(&scenarios())).unwrap() + "\n";
    if std::env::var_os("CHAPPE_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/scenario.schema.json");
        return std::fs::write(path, made).unwrap();
    }
    assert!(
        made == crate::packed::schema(),
        "`CHAPPE_BLESS=1 cargo test --release -p chappe --lib systems` writes the schema of the types"
    );
}

/// docs/scenario.md has every key, made of the same types. `CHAPPE_BLESS=1` writes it.
#[test]
fn the_page_of_keys_is_that_of_the_types() {
    let made = chappe_scenario::reference(&scenarios());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    if std::env::var_os("CHAPPE_BLESS").is_some() {
        return std::fs::write(path, made).unwrap();
    }
    assert!(
        made == std::fs::read_to_string(path).unwrap(),
        "`CHAPPE_BLESS=1 cargo test --release -p chappe --lib systems` writes docs/scenario.md"
    );
}

/// The schema names every system and every variant.
#[test]
fn the_schema_has_every_name() {
    let schema = chappe_scenario::schema(&scenarios());
    let named = |definition: &str, name: &str| {
        let names = schema["$defs"][definition]["enum"].as_array().unwrap();
        names.iter().any(|known| known == name)
    };
    let of_system = |name: &str| -> Vec<serde_json::Value> {
        let all = schema["$defs"]["ProtocolTable"]["allOf"]
            .as_array()
            .unwrap();
        let properties = all.iter().map(|own| &own["then"]["properties"]);
        let own = properties
            .clone()
            .find(|own| own["system"]["const"] == name);
        own.unwrap()["variant"]["enum"].as_array().unwrap().clone()
    };
    for system in scenarios() {
        assert!(named("SystemName", system.name));
        for variant in system.variants {
            assert!(
                of_system(system.name).contains(&variant.name.into()),
                "{}",
                variant.name
            );
        }
    }
}

/// Only WiLDNet has a loss per link; other systems refuse to change it.
#[test]
fn link_loss_is_refused_by_other_systems() {
    let fault = "[[fault]]\nat = \"1 s\"\nkind = \"link-loss\"\nlink = [0, 1]\nframe_loss = 0.5\n";
    let error = Plan::parse(&scenarios(), "test", &format!("{PAIR}{fault}")).unwrap_err();
    assert!(error.message.contains("no loss of their own"), "{error}");
}

/// Continuous flows and priorities are refused by systems that have none.
#[test]
fn flows_and_priorities_are_refused_by_other_systems() {
    let places = "[network]\npositions = [[\"0 m\", \"0 m\"], [\"50 m\", \"0 m\"]]\n";
    let flow = format!("{places}[[flow]]\nsource = 0\nsink = 1\n");
    let error = Plan::parse(&scenarios(), "flow.toml", &flow).unwrap_err();
    assert_eq!(error.message, "Pacifier carries no flows without an end");
    let access = format!("{PAIR}[mac]\naccess = \"edca\"\n");
    let error = Plan::parse(&scenarios(), "pair.toml", &access).unwrap_err();
    assert!(error.message.contains("packets are all equal"), "{error}");
    let mesh = format!("{flow}[protocol]\nsystem = \"dpclo\"\n");
    let plan = Plan::parse(&scenarios(), "mesh.toml", &mesh).unwrap();
    assert_eq!(plan.flows.len(), 1);
}

fn plan_of(text: &str) -> Result<Plan, InputError> {
    let source = Source::new("new.toml", text, &[]);
    Plan::new(&scenarios(), source, &Changes::default())
}

/// `chappe new --system NAME` writes a scenario of that system.
#[test]
fn every_template_is_a_scenario_of_its_system() {
    for system in SYSTEMS {
        let name = system.scenario.name;
        let plan = plan_of(system.template).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(plan.system.name, name);
        assert!(plan.network(1).is_ok(), "{name}");
    }
}

/// A commented key is right too: without the `# ` in front the file still parses. Tables are uncommented whole; other ways to give the
/// network, and a seed beside positions, exclude what is there.
#[test]
fn what_a_template_has_commented_out_is_valid() {
    let is_key = |line: &&str| line.starts_with("# ") && line.contains(" = ");
    for system in SYSTEMS {
        for line in system.template.lines().filter(is_key) {
            let text = line.trim_start_matches("# ");
            let key = text.split(' ').next().unwrap_or_default();
            if ["links", "file", "seed"].contains(&key) || in_a_table(system.template, line) {
                continue;
            }
            let whole = system.template.replace(line, text);
            assert!(
                plan_of(&whole).is_ok(),
                "{text}: {:?}",
                plan_of(&whole).err()
            );
        }
        let tables = with_tables(system.template);
        assert!(
            plan_of(&tables).is_ok(),
            "{tables}: {:?}",
            plan_of(&tables).err()
        );
    }
}

/// Whether the comment `line` belongs to a table that is a comment as well.
fn in_a_table(template: &str, line: &str) -> bool {
    let before = template.split(line).next().unwrap_or_default();
    let paragraph = before.rsplit("\n\n").next().unwrap_or_default();
    paragraph.starts_with("# [[")
}

/// The template with every commented table in it.
fn with_tables(template: &str) -> String {
    let paragraphs = template
        .split("\n\n")
        .map(|paragraph| match paragraph.strip_prefix("# [[") {
            Some(rest) => format!("[[{}", rest.replace("\n# ", "\n")),
            None => paragraph.to_owned(),
        });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
