//! Files that say where nodes stand and how they move: scripts of ns-2, which ns-3 reads too, and ini files of OMNeT++ with INET.
//!
//! ns-2 gives metres and metres per second: `$node_(3) set X_ 120.0`, `$ns_ at 2.5 "$node_(3) setdest 90 40 1.5"`. OMNeT++ gives
//! units: `*.host[3].mobility.initialX = 120m`. Other lines are skipped. Heights must be alike, as the plane has two dimensions.
//! Traces of BonnMotion are in [`bonnmotion`](super::bonnmotion).

use std::collections::BTreeMap;
use std::ops::Range;

use chappe_sim::Waypoint;

use super::text::FileText;
use super::ways::{Order, ways};
use super::{NODES_MAX, Name};
use crate::input::{InputError, telling};
use crate::quantity::Length;

const AXES: [&str; 3] = ["X", "Y", "Z"];

/// Farther from the origin than this, in metres, no radio is.
const FARTHEST: f64 = 1e9;

/// The most orders to move, and the most waypoints, of one file.
pub(super) const ORDERS_MAX: usize = 4_000_000;

/// The places of nodes on the plane, as a file gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The nodes' names in the file: in the order of the file, or of numbers if all names are.
    pub names: Vec<String>,
    /// Each node's place on the plane at the start, in metres.
    pub places: Vec<[f64; 2]>,
    /// The nodes' ways, if any of them moves.
    pub motion: Option<Vec<Vec<Waypoint>>>,
    /// Whether the file also moves nodes in a manner that is not read.
    pub unfollowed: bool,
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
    /// At some time a node goes somewhere at some speed, or to another coordinate at once.
    Move {
        node: &'a str,
        time: &'a str,
        order: [&'a str; 3],
        is_jump: bool,
    },
    /// A node moves by a law of OMNeT++.
    Law,
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
            Some(Line::Move {
                node,
                time,
                order,
                is_jump,
            }) => found.order(file, (node, time), order, is_jump)?,
            Some(Line::Law) => found.unfollowed = true,
            None => {}
        }
    }
    if found.nodes.is_empty() {
        return Ok(None);
    }
    found.finish(file).map(Some)
}

/// Where a part of the file's text stands.
pub(super) fn span_in(file: &FileText, part: &str) -> Range<usize> {
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
    if line.starts_with('#') {
        return None;
    }
    if let Some((time, command)) = line.split_once('"') {
        let (_, time) = time.split_once(" at ")?;
        let mut words = command.split(['"', ';']).next()?.split_whitespace();
        let (variable, verb) = (words.next()?, words.next()?);
        let node = &variable[node(variable)?];
        // A word that is missing stands at the end of the command.
        let end = &command[command.len()..];
        let order = [0; 3].map(|_: i32| words.next().unwrap_or(end));
        let is_jump = verb == "set" && AXES.iter().any(|axis| order[0] == format!("{axis}_"));
        return (is_jump || verb == "setdest").then_some(Line::Move {
            node,
            time: time.trim(),
            order,
            is_jump,
        });
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

/// Laws of OMNeT++ under which nodes stay where they are.
const STILL: [&str; 4] = [
    "StationaryMobility",
    "StaticGridMobility",
    "StaticLinearMobility",
    "StaticConcentricMobility",
];

/// A line of an ini file of OMNeT++.
fn of_omnet(line: &str) -> Option<Line<'_>> {
    let line = line.split('#').next()?;
    let (key, value) = line.split_once('=')?;
    let (node, parameter) = key.trim().rsplit_once(".mobility.")?;
    if parameter == "typename" {
        let law = value.trim().trim_matches('"');
        return (!STILL.contains(&law)).then_some(Line::Law);
    }
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

/// A coordinate in metres at its place in the file.
pub(super) fn coordinate(file: &FileText, text: &str) -> Result<f64, InputError> {
    metres(file, (text, &span_in(file, text)), false)
}

/// A moment or a speed: a number from zero to 10^9.
pub(super) fn amount(file: &FileText, text: &str, what: &str) -> Result<f64, InputError> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| {
        let message = format!("`{text}` is not {what}");
        file.error_at(span_in(file, text), "here", message)
    })
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
    /// The orders to move that nodes get, in the order of the file, with where it stands.
    orders: BTreeMap<Name, Vec<(Order, Range<usize>)>>,
    count: usize,
    unfollowed: bool,
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

    /// Reads an order to move.
    fn order(
        &mut self,
        file: &FileText,
        (node, time): (&str, &str),
        words: [&str; 3],
        is_jump: bool,
    ) -> Result<(), InputError> {
        let at = amount(file, time, "a time in seconds from 0 to 1e9")?;
        let order = match is_jump {
            false => Order::go(
                at,
                [coordinate(file, words[0])?, coordinate(file, words[1])?],
                amount(file, words[2], "a speed in metres per second")?,
            ),
            true if words[0] == "Z_" => {
                let error =
                    file.error_at(span_in(file, words[0]), "here", "a node changes its height");
                return Err(error.help("all nodes must have the same height"));
            }
            true => Order::jump(
                at,
                usize::from(words[0] == "Y_"),
                coordinate(file, words[1])?,
            ),
        };
        self.count += 1;
        if self.count > ORDERS_MAX {
            let message = format!("more than {ORDERS_MAX} movements");
            return Err(file.error_at(span_in(file, time), "here", message));
        }
        let orders = self.orders.entry(Name::new(node)).or_default();
        orders.push((order, span_in(file, node)));
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
        let mut strangers = self.orders.iter();
        let stranger = strangers.find(|(name, _)| !self.numbers.contains_key(name));
        if let Some((name, orders)) = stranger {
            let message = format!("node `{}` moves and has no place to begin at", name.text());
            return Err(file.error_at(orders[0].1.clone(), "this node", message));
        }
        let moves = !self.orders.is_empty();
        let own = self.nodes.iter().zip(&places).map(|(node, &start)| {
            let orders = self.orders.get(&node.name);
            ways(start, orders.map_or(&[][..], Vec::as_slice))
        });
        let motion = moves.then(|| own.collect());
        Ok(Places {
            names,
            places,
            motion,
            unfollowed: self.unfollowed,
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
        // From (-1, 0) it goes to (90.4, 44.8) at 1.37 m/s from 2.5 s on, and half a second later to (1, 1) at 1 m/s.
        let motion = places.motion.unwrap();
        assert_eq!(motion[1].len(), 1);
        let way: Vec<(f64, f64, f64)> = motion[0]
            .iter()
            .map(|point| (point.at.as_secs_f64(), point.place.x, point.place.y))
            .collect();
        let length = f64::hypot(91.4, 44.8);
        let (x, y) = (-1.0 + 0.685 * 91.4 / length, 0.685 * 44.8 / length);
        let arrival = 3.0 + f64::hypot(1.0 - x, 1.0 - y);
        let expected = [
            (0.0, -1.0, 0.0),
            (2.5, -1.0, 0.0),
            (3.0, x, y),
            (arrival, 1.0, 1.0),
        ];
        assert_eq!(way.len(), expected.len(), "{way:?}");
        for (found, expected) in way.iter().zip(expected) {
            let apart = (found.0 - expected.0).abs() + (found.1 - expected.1).abs();
            assert!(apart + (found.2 - expected.2).abs() < 1e-6, "{way:?}");
        }
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
        assert!(!places.unfollowed);
        let moving = format!("{text}*.host[10].mobility.typename = \"LinearMobility\"\n");
        let still = format!("{text}**.mobility.typename = \"StationaryMobility\"\n");
        assert!(read(&moving).unwrap().unwrap().unfollowed);
        assert!(!read(&still).unwrap().unwrap().unfollowed);
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
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at soon \"$node_(0) setdest 1 2 3\"\n",
                "soon",
                "not a time",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1 \"$node_(0) setdest 1 west 3\"\n",
                "west",
                "not a number of metres",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1 \"$node_(0) setdest 1 2 -3\"\n",
                "-3",
                "not a speed",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1 \"$node_(7) setdest 1 2 3\"\n",
                "7",
                "no place to begin at",
            ),
            (
                "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1 \"$node_(0) set Z_ 3\"\n",
                "Z_",
                "changes its height",
            ),
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
