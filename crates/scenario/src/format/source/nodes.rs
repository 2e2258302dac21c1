//! Names of nodes in a scenario: where a table names a node, the name that `network.file` gives it may stand instead of its
//! number.
//!
//! Names become numbers before the tables are read, so all that comes later, results too, is the same as with numbers.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Source;
use crate::format::NetworkTable;
use crate::import;
use crate::input::InputError;
use crate::nearest::nearest;

/// A node as a scenario may write it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NodeName {
    /// Its number, from 0.
    Number(usize),
    /// Its name in `network.file`.
    Name(String),
}

/// Where tables name nodes.
const PLACES: [(&str, &[&str]); 3] = [
    ("transfer", &["source", "receivers"]),
    ("flow", &["source", "sink"]),
    ("fault", &["node", "link"]),
];

/// How many names an error lists.
const LISTED: usize = 8;

/// Replaces every name of a node by its number, which `digits` holds as text at the same place.
pub fn number<'i>(
    root: &mut DeTable<'i>,
    names: &[String],
    digits: &'i [String],
    source: &Source,
) -> Result<(), InputError> {
    each_name(root, |value| {
        let span = value.span();
        let name = value.get_ref().as_str().unwrap_or_default();
        let place = names.iter().position(|known| known == name);
        let Some(digits) = place.and_then(|place| digits.get(place)) else {
            let message = format!("there is no node `{name}`");
            let error = source.error(span, "no such node", message);
            return Err(error.help(known(name, names)));
        };
        let number = DeValue::parse(digits).map_err(|error| {
            let message = error.to_string();
            source.error(span.clone(), "no such node", message)
        })?;
        *value = Spanned::new(span, number.into_inner());
        Ok(())
    })
}

/// The help for an unknown name.
fn known(wrong: &str, names: &[String]) -> String {
    if let Some(right) = nearest(wrong, names.iter().map(String::as_str)) {
        return format!("did you mean `{right}`?");
    }
    let listed = names[..names.len().min(LISTED)].join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => format!("the nodes are {listed}"),
        more => format!("the nodes are {listed} and {more} more"),
    }
}

/// Where the first name of a node stands, if a table has one.
pub fn first(root: &mut DeTable<'_>) -> Option<Range<usize>> {
    let mut found = None;
    let _ = each_name(root, |value| {
        found.get_or_insert(value.span());
        Ok(())
    });
    found
}

/// The names that the file of `[network]` gives its nodes; `at` is where the first one stands in the scenario.
pub fn names(
    network: &NetworkTable,
    source: &Source,
    at: Range<usize>,
) -> Result<Vec<String>, InputError> {
    let nameless = |message: &str, help: &str| {
        let error = source.error(at.clone(), "a name", message);
        Err(error.help(help))
    };
    let Some(file) = &network.file else {
        let message = "the nodes of this network have no names";
        return nameless(
            message,
            "write the node's number, from 0; only `file` gives names",
        );
    };
    if network.nodes.is_some() {
        let message = "names have no meaning here: every seed draws other nodes from the file";
        return nameless(message, "leave out network.nodes, or write numbers");
    }
    import::names(&source.beside(file), &network.select).map_err(|error| {
        // An error without a place is about the file as a whole; it is shown where the scenario names the file.
        match error.place {
            Some(_) => error,
            None => {
                let mut here = source.error(file.span(), "this file", error.message.clone());
                here.help = error.help.clone();
                here
            }
        }
    })
}

/// Calls `take` with every name of a node.
fn each_name<'i>(
    root: &mut DeTable<'i>,
    mut take: impl FnMut(&mut Spanned<DeValue<'i>>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    for (table, keys) in PLACES {
        let Some(DeValue::Array(tables)) = root.get_mut(table).map(Spanned::get_mut) else {
            continue;
        };
        for table in tables.iter_mut() {
            let DeValue::Table(table) = table.get_mut() else {
                continue;
            };
            for key in keys {
                let Some(value) = table.get_mut(*key) else {
                    continue;
                };
                match value.get_mut() {
                    DeValue::String(_) if *key != "receivers" && *key != "link" => take(value)?,
                    DeValue::Array(list) => {
                        let mut named = list.iter_mut().filter(|node| node.get_ref().is_str());
                        named.try_for_each(&mut take)?;
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::idle;

    /// The plan of a scenario whose link list gives the nodes `attic`, `gateway` and `7` names; the list is kept under `name`.
    fn with_list<T>(name: &str, check: impl FnOnce(&str) -> T) -> T {
        let name = format!("chappe-nodes-{name}-{}.csv", std::process::id());
        let path = std::env::temp_dir().join(name);
        let list = "src,dst,pdr\nattic,gateway,0.9\ngateway,attic,0.9\n7,attic,0.8\nattic,7,0.8\n";
        std::fs::write(&path, list).unwrap();
        let done = check(&format!("[network]\nfile = {path:?}\n"));
        std::fs::remove_file(&path).unwrap();
        done
    }

    /// A name is the number of the node that has it, in every table and in an option.
    #[test]
    fn names_are_numbers() {
        with_list("numbers", |network| {
            let text = |source: &str, receivers: &str, node: &str| {
                format!(
                    "{network}[[transfer]]\nsource = {source}\nreceivers = {receivers}\nbytes = \"1 kB\"\n\
                     [[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = {node}\n"
                )
            };
            // Numbers stand before words.
            let named = idle::plan(&text("\"gateway\"", "[\"7\", 1]", "\"attic\""));
            let numbered = idle::plan(&text("2", "[0, 1]", "1"));
            assert_eq!(named.canonical, numbered.canonical);
            assert_eq!(named.transfers[0].from, Some(2));
            assert_eq!(named.names, ["7", "attic", "gateway"]);
            assert_eq!(named.name_of(2), "gateway");
            // A name that could be taken for a number is shown with the number.
            assert_eq!(named.name_of(0), "0 \"7\"");
        });
    }

    #[test]
    fn an_unknown_name_is_pointed_at() {
        with_list("unknown", |network| {
            let refused = |source: &str| {
                let text = format!(
                    "{network}[[transfer]]\nsource = {source}\nreceivers = [1]\nbytes = \"1 kB\"\n"
                );
                let error = idle::plan_or_error(&text).unwrap_err();
                let place = error.place.clone().unwrap();
                assert_eq!(&place.text[place.span], source, "{error}");
                error.help.clone().unwrap()
            };
            assert_eq!(refused("\"gatway\""), "did you mean `gateway`?");
            assert_eq!(refused("\"roof\""), "the nodes are 7, attic, gateway");
        });
    }

    #[test]
    fn a_network_without_names_has_none() {
        let text = "[network]\nlinks = [[0, 1], [1, 0]]\n[[transfer]]\nsource = \"a\"\n\
                    receivers = [1]\nbytes = \"1 kB\"\n";
        let error = idle::plan_or_error(text).unwrap_err();
        assert!(error.message.contains("have no names"), "{error}");
    }
}
