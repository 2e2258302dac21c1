//! A network from another file: `file` in `[network]`, and what its author should know about it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chappe_sim::{Motion, Position};

use crate::check::Check;
use crate::format::{Located, NetworkTable};
use crate::import::{self, Channels, Directions, FileText, Places, Reading};
use crate::input::InputError;
use crate::radios::Radios;

/// What a file gives.
pub enum Given {
    /// Delivery ratios from each node (row) to each node.
    Ratios(Vec<Vec<f64>>),
    /// Ratios and powers channel by channel, for 802.15.4.
    Channels(Arc<Channels>),
    /// Where the nodes stand, and where they go.
    Places {
        /// The places at the start.
        places: Vec<Position>,
        /// The ways from there, if nodes move.
        motion: Option<Motion>,
    },
}

/// The network of a file.
pub struct Imported {
    /// The links or places of its nodes.
    pub given: Given,
    /// Its nodes' names, in the order of their numbers.
    pub names: Vec<String>,
    /// What the scenario's author should know, in sentences.
    pub notes: Vec<String>,
}

/// Reads the file that `[network]` names.
pub fn read(
    file: &Located<PathBuf>,
    network: &NetworkTable,
    radios: Radios,
    check: &Check<'_>,
) -> Result<Imported, InputError> {
    let instead = |error| check.instead(file, error);
    let text = FileText::read(&check.source().beside(file)).map_err(instead)?;
    if let Some(places) = import::places(&text).map_err(instead)? {
        return placed(file, places, check);
    }
    let reading = Reading {
        select: network.select.clone(),
        undirected: network.undirected.as_deref() == Some(&true),
    };
    let (given, names, directions) = match radios {
        Radios::Dot15d4 => {
            let channels = LISTS.channels(&text, &reading).map_err(instead)?;
            let (names, directions) = (channels.names.clone(), channels.directions);
            (Given::Channels(channels), names, directions)
        }
        Radios::Dot11 => {
            let map = import::links(&text, &reading).map_err(instead)?;
            let rows = map.delivery.chunks(map.names.len().max(1));
            let rows = rows.map(<[f64]>::to_vec).collect();
            (Given::Ratios(rows), map.names, map.directions)
        }
    };
    let useless = |key: &&Located<bool>| ***key && directions.one == 0;
    if let Some(key) = network.undirected.as_ref().filter(useless) {
        let name = file.display();
        let message = format!(
            "`undirected` changes nothing here: {name} gives every link in both directions"
        );
        return Err(check.at(key, "no use here", message));
    }
    let notes = one_way(file, network, directions).into_iter().collect();
    Ok(Imported {
        given,
        names,
        notes,
    })
}

/// Lists that stay in memory once they are read: a large one takes some 16 MB.
const KEPT_MAX: usize = 2;

/// A list that was read: a digest of its text, how it was read, and what it says.
type Kept = ([u8; 32], Reading, Arc<Channels>);

/// The lists that were read last.
#[derive(Default)]
struct Lists(Mutex<Vec<Kept>>);

/// Those of this process: a lab makes many plans with one list, of which a large one takes seconds to read.
static LISTS: Lists = Lists(Mutex::new(Vec::new()));

impl Lists {
    /// The links of a file channel by channel, which is read again only where its contents have changed.
    fn channels(&self, text: &FileText, reading: &Reading) -> Result<Arc<Channels>, InputError> {
        let digest = *blake3::hash(text.text.as_bytes()).as_bytes();
        // Not held while a list is read, and a thread that panicked left the lists whole.
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Kept| known.0 == digest && known.1 == *reading;
        if let Some((_, _, found)) = kept().iter().find(same) {
            return Ok(found.clone());
        }
        let found = Arc::new(import::channels(text, reading)?);
        let mut kept = kept();
        kept.truncate(KEPT_MAX - 1);
        kept.insert(0, (digest, reading.clone(), found.clone()));
        Ok(found)
    }
}

/// Keys of `[network]` that are about links.
const OF_LINKS: [&str; 6] = [
    "bad_links",
    "connected",
    "nodes",
    "select",
    "senses_above",
    "undirected",
];

/// Positions instead of links.
fn placed(
    file: &Located<PathBuf>,
    found: Places,
    check: &Check<'_>,
) -> Result<Imported, InputError> {
    let name = file.display();
    let mut keys = check.source().keys_of("network")?.iter();
    if let Some((key, span)) = keys.find(|(key, _)| OF_LINKS.contains(&key.as_str())) {
        let message = format!("`{key}` changes nothing here: {name} says where the nodes stand");
        return Err(check.error(span.clone(), "no use here", message));
    }
    let unfollowed = found.unfollowed.then(|| {
        format!(
            "{name} gives nodes a mobility of OMNeT++, and here all nodes stay where they begin"
        )
    });
    let motion = found.motion.map(Motion::given).transpose();
    let motion = motion.map_err(|error| check.at(file, "this file", error.to_string()))?;
    let places = match &motion {
        Some(motion) => motion.start(),
        None => {
            let places = found.places.iter();
            places.map(|&[x, y]| Position::new(x, y)).collect()
        }
    };
    Ok(Imported {
        given: Given::Places { places, motion },
        names: found.names,
        notes: unfollowed.into_iter().collect(),
    })
}

/// A list with one direction for every link was probably meant for both. That is said, not guessed: `undirected` decides.
fn one_way(
    file: &Located<PathBuf>,
    network: &NetworkTable,
    directions: Directions,
) -> Option<String> {
    if network.undirected.is_some() || directions.both > 0 || directions.one == 0 {
        return None;
    }
    let name = file.display();
    let links = match directions.one {
        1 => "its only link".to_string(),
        links => format!("all {links} links"),
    };
    Some(format!(
        "{name} gives {links} in one direction only, and no frame comes back; if links are alike in both directions, \
         write undirected = true in [network], else undirected = false"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Source;

    /// The notes of a network whose link list is this text, kept under this name.
    fn notes(name: &str, list: &str, keys: &str) -> Result<Vec<String>, InputError> {
        let name = format!("chappe-links-{name}-{}.csv", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, list).unwrap();
        let text = format!("[network]\nfile = {path:?}\n{keys}\n");
        let source = Source::new("test", &text, &[]);
        let network = source.scenario()?.network;
        let file = network.file.clone().unwrap();
        let said = [Radios::Dot11, Radios::Dot15d4].map(|radios| {
            let imported = read(&file, &network, radios, &Check::new(&source))?;
            Ok(imported.notes)
        });
        std::fs::remove_file(&path).unwrap();
        let [notes, again] = said;
        assert_eq!(notes, again);
        notes
    }

    /// Goal: a list is read once, and again if it has changed or is understood in another way.
    #[test]
    fn lists_are_read_once() {
        let lists = Lists::default();
        let of = |text: &str, undirected| {
            let reading = Reading {
                undirected,
                ..Reading::default()
            };
            lists.channels(&FileText::of(text), &reading).unwrap()
        };
        let list = "src,dst,channel,pdr\nonce-a,once-b,15,0.5\n";
        let first = of(list, false);
        assert!(Arc::ptr_eq(&first, &of(list, false)));
        let (mirrored, other) = (of(list, true), of(&list.replace("0.5", "0.25"), false));
        assert_eq!(mirrored.link(15, 1, 0), Some((0.5, None)));
        assert_eq!(first.link(15, 1, 0), None);
        assert_eq!(other.link(15, 0, 1), Some((0.25, None)));
        assert_eq!(lists.0.lock().unwrap().len(), KEPT_MAX);
        let broken = FileText::of("src,dst,channel,pdr\nonce-a,once-b,99,0.5\n");
        assert!(lists.channels(&broken, &Reading::default()).is_err());
    }

    /// Only a list in which no link has two directions is warned of, and only while the scenario does not say what it means.
    #[test]
    fn a_list_of_one_direction_is_warned_of() {
        let one = "src,dst,pdr\na,b,0.5\nb,c,0.5\n";
        let both = "src,dst,pdr\na,b,0.5\nb,a,0.5\nb,c,0.5\n";
        let note = &notes("one", one, "").unwrap()[0];
        assert!(note.contains("all 2 links in one direction only"), "{note}");
        let single = &notes("one", "src,dst,pdr\na,b,0.5\n", "").unwrap()[0];
        assert!(single.contains("its only link"), "{single}");
        for (list, keys) in [
            (both, ""),
            (one, "undirected = true"),
            (one, "undirected = false"),
        ] {
            assert_eq!(notes("one", list, keys).unwrap(), [""; 0], "{keys}");
        }
    }

    #[test]
    fn undirected_is_refused_where_it_changes_nothing() {
        let list = "src,dst,pdr\na,b,0.5\nb,a,0.25\n";
        let error = notes("useless", list, "undirected = true").unwrap_err();
        assert!(error.message.contains("changes nothing"), "{error}");
        assert_eq!(
            notes("useless", list, "undirected = false").unwrap(),
            [""; 0]
        );
    }
}
