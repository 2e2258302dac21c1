//! Files that say where nodes stand: scripts of ns-2, which ns-3 reads too, and ini files of OMNeT++ with INET.
//!
//! ns-2 gives metres: `$node_(3) set X_ 120.0`. OMNeT++ gives units: `*.host[3].mobility.initialX = 120m`. Other lines are
//! skipped. Heights must be alike, as the plane has two dimensions; movements are counted, not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::text::FileText;
use super::{NODES_MAX, Name};
use crate::input::{InputError, telling};
use crate::quantity::Length;

const AXES: [&str; 3] = ["X", "Y", "Z"];

/// Farther from the origin than this, in metres, no radio is.
const FARTHEST: f64 = 1e9;

/// The places of nodes on the plane, as a file gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The nodes' names in the file: in the order of the file, or of numbers if all names are.
    pub names: Vec<String>,
    /// Each node's place on the plane, in metres.
    pub places: Vec<[f64; 2]>,
    /// How many nodes move later.
    pub moving: usize,
}

/// What a line says.
enum Line<'a> {
    /// One coordinate of a node.
    Place {
        node: &'a str,
        axis: usize,
        value: &'a str,
        has_unit: bool,
    },
    /// A node moves at some time.
    Move(&'a str),
}

/// The places in a file; `None` if it is of another kind.
pub fn parse(file: &FileText) -> Result<Option<Places>, InputError> {
    let mut found = Found::default();
    for line in file.text.lines() {
        match of_ns2(line).or_else(|| of_omnet(line)) {
            Some(Line::Place {
                node,
                axis,
                value,
                has_unit,
            }) => {
                let span = span_in(file, value);
                let metres = metres(file, (value, &span), has_unit)?;
                found.take(file, node, (axis, metres), span)?;
            }
            Some(Line::Move(node)) => {
                found.moving.insert(Name::new(node));
            }
            None => {}
        }
    }
    if found.nodes.is_empty() {
        return Ok(None);
    }
    found.finish(file).map(Some)
}

/// Where a part of the file's text stands.
fn span_in(file: &FileText, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - file.text.as_ptr() as usize;
    start..start + part.len()
}

/// A line of a script of ns-2.
fn of_ns2(line: &str) -> Option<Line<'_>> {
    let line = line.trim();
    let node = |variable: &'_ str| -> Option<Range<usize>> {
        let (open, close) = (variable.find('(')?, variable.find(')')?);
        (variable.starts_with('$') && open < close).then_some(open + 1..close)
    };
    if let Some((time, command)) = line.split_once('"') {
        let mut words = command.split_whitespace();
        let (variable, verb) = (words.next()?, words.next()?);
        let moves = ["set", "setdest"].contains(&verb) && time.contains(" at ");
        return moves.then_some(Line::Move(&variable[node(variable)?]));
    }
    let mut words = line.trim_end_matches(';').split_whitespace();
    let (variable, verb, axis) = (words.next()?, words.next()?, words.next()?);
    let axis = axis.strip_suffix('_')?;
    let axis = AXES.iter().position(|known| *known == axis)?;
    (verb == "set").then_some(())?;
    Some(Line::Place {
        node: &variable[node(variable)?],
        axis,
        value: words.next()?,
        has_unit: false,
    })
}

/// A line of an ini file of OMNeT++.
fn of_omnet(line: &str) -> Option<Line<'_>> {
    let line = line.split('#').next()?;
    let (key, value) = line.split_once('=')?;
    let (node, parameter) = key.trim().rsplit_once(".mobility.")?;
    let axis = parameter.strip_prefix("initial")?;
    let axis = AXES.iter().position(|known| *known == axis)?;
    // The first part is the network, mostly `*` or `**`.
    let node = node.split_once('.').map_or(node, |(_, node)| node);
    Some(Line::Place {
        node,
        axis,
        value: value.trim(),
        has_unit: true,
    })
}

fn metres(
    file: &FileText,
    (text, span): (&str, &Range<usize>),
    has_unit: bool,
) -> Result<f64, InputError> {
    let value = match has_unit {
        true => Length::parse(text).map(|length| length.value()),
        false => text
            .parse::<f64>()
            .map_err(|_| format!("`{text}` is not a number of metres")),
    };
    let value = value.map_err(|error| {
        let (message, help) = telling(&error);
        let mut error = file.error_at(span.clone(), "this coordinate", message);
        error.help = help.map(str::to_string);
        error
    })?;
    if value.abs() <= FARTHEST {
        return Ok(value);
    }
    let message = format!("`{text}` is no place on earth");
    Err(file.error_at(span.clone(), "this coordinate", message))
}

/// A node's coordinates so far, and where the first of them stands.
struct Node {
    name: Name,
    axes: [Option<f64>; 3],
    span: Range<usize>,
}

#[derive(Default)]
struct Found {
    nodes: Vec<Node>,
    numbers: BTreeMap<Name, usize>,
    moving: BTreeSet<Name>,
}

impl Found {
    fn take(
        &mut self,
        file: &FileText,
        node: &str,
        (axis, metres): (usize, f64),
        span: Range<usize>,
    ) -> Result<(), InputError> {
        let here = |message: String| file.error_at(span.clone(), "this coordinate", message);
        if node.contains(['*', '?', '{']) || node.contains("..") {
            let error = here(format!("`{node}` stands for several nodes"));
            return Err(error.help("each node needs a place of its own"));
        }
        let name = Name::new(node);
        let number = *self.numbers.entry(name.clone()).or_insert(self.nodes.len());
        if number == NODES_MAX {
            return Err(here(format!("at most {NODES_MAX} nodes can be imported")));
        }
        if number == self.nodes.len() {
            self.nodes.push(Node {
                name,
                axes: [None; 3],
                span: span.clone(),
            });
        }
        if self.nodes[number].axes[axis].replace(metres).is_some() {
            let error = here(format!("node `{node}` has its {} twice", AXES[axis]));
            return Err(error.help("keep the places of one configuration only"));
        }
        Ok(())
    }

    fn finish(mut self, file: &FileText) -> Result<Places, InputError> {
        let number = |node: &Node| matches!(node.name, Name::Number(_));
        if self.nodes.iter().all(number) {
            self.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let height = |node: &Node| node.axes[2].unwrap_or(0.0);
        let level = self.nodes.first().map_or(0.0, height);
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for node in &self.nodes {
            let name = node.name.text();
            let here = |message: String| file.error_at(node.span.clone(), "this node", message);
            let [Some(x), Some(y), _] = node.axes else {
                let lacking = if node.axes[0].is_none() { "X" } else { "Y" };
                return Err(here(format!("node `{name}` has no {lacking}")));
            };
            if height(node) != level {
                let message = format!("node `{name}` stands {} m high", height(node));
                return Err(here(message).help("all nodes must have the same height"));
            }
            names.push(name);
            places.push([x, y]);
        }
        let moving = self.moving.iter();
        let moving = moving.filter(|name| self.numbers.contains_key(name));
        Ok(Places {
            names,
            places,
            moving: moving.count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Places>, InputError> {
        parse(&FileText::of(text))
    }

    /// As `setdest` of ns-2 and BonnMotion write it.
    #[test]
    fn scripts_of_ns2() {
        let text = "# nodes: 2\nset val(x) 500\n$node_(10) set X_ 12.5\n$node_(10) set Y_ 3e1\n\
                    $node_(10) set Z_ 0.0\n$node_(2) set X_ -1;\n$node_(2) set Y_ 0\n\
                    $god_ set-dist 2 10 1\n$ns_ at 2.5 \"$node_(2) setdest 90.4 44.8 1.37\"\n\
                    $ns_ at 3 \"$node_(2) setdest 1 1 1\"\n";
        let places = read(text).unwrap().unwrap();
        assert_eq!(places.names, ["2", "10"]);
        assert_eq!(places.places, [[-1.0, 0.0], [12.5, 30.0]]);
        assert_eq!(places.moving, 1);
    }

    #[test]
    fn ini_files_of_omnet() {
        let text = "[General]\nnetwork = Hall\n**.constraintAreaMaxX = 600m\n\
                    *.host[10].mobility.initialX = 1.5 km # far\n*.host[10].mobility.initialY = 50cm\n\
                    *.host[10].mobility.initialZ = 2m\n**.gateway.mobility.initialX=0m\n\
                    **.gateway.mobility.initialY=20m\n**.gateway.mobility.initialZ=2m\n";
        let places = read(text).unwrap().unwrap();
        // The order of the file: in that of words, host[10] would stand before host[2].
        assert_eq!(places.names, ["host[10]", "gateway"]);
        assert_eq!(places.places, [[1500.0, 0.5], [0.0, 20.0]]);
    }

    #[test]
    fn other_files_are_not_taken() {
        for text in [
            "",
            "src,dst,pdr\n0,1,0.5\n",
            "{\"type\": \"NetworkGraph\"}",
            "[General]\n",
        ] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
    }

    /// Each mistake points at the coordinate.
    #[test]
    fn broken_places_are_pointed_at() {
        let cases = [
            ("$node_(0) set X_ far\n", "far", "not a number of metres"),
            ("$node_(0) set X_ inf\n", "inf", "no place on earth"),
            ("$node_(0) set X_ 1\n", "1", "has no Y"),
            ("$node_(0) set Y_ 1\n", "1", "has no X"),
            (
                "$node_(0) set X_ 1\n$node_(0) set X_ 2\n",
                "2",
                "has its X twice",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$node_(1) set X_ 2\n$node_(1) set Y_ 2\n\
                 $node_(1) set Z_ 9\n",
                "2",
                "stands 9 m high",
            ),
            ("**.a.mobility.initialX = 12\n", "12", "unit"),
            (
                "**.a.mobility.initialX = uniform(0m, 9m)\n",
                "uniform(0m, 9m)",
                "uniform",
            ),
            ("**.a[*].mobility.initialX = 12m\n", "12m", "several nodes"),
            (
                "**.a[0..3].mobility.initialX = 12m\n",
                "12m",
                "several nodes",
            ),
        ];
        for (text, part, message) in cases {
            let error = read(text).unwrap_err();
            let place = error.place.clone().unwrap();
            assert_eq!(&place.text[place.span], part, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
