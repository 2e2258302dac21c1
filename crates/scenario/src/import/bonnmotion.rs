//! Traces of BonnMotion in its own format: a line for each node, three numbers for each waypoint, in seconds and metres.
//!
//! `0 10 20 5.5 30 20` is at (10, 20) at the start and at (30, 20) after 5.5 s. Lines that begin with `#` are remarks.

use chappe_sim::{Position, Waypoint};

use super::NODES_MAX;
use super::places::{ORDERS_MAX, Places, amount, coordinate, span_in};
use super::text::FileText;
use super::ways::moment;
use crate::input::InputError;

/// The ways in a file; `None` if it is of another kind.
pub(super) fn parse(file: &FileText) -> Result<Option<Places>, InputError> {
    let lines = || {
        let lines = file.text.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    // One line of at least one waypoint, in blanks, is proof enough: link lists have a header or commas.
    let first = lines().next().unwrap_or("");
    let mut numbers = first.split_whitespace().map(str::parse::<f64>);
    if first.split_whitespace().count() < 3 || numbers.any(|number| number.is_err()) {
        return Ok(None);
    }
    let (mut motion, mut count) = (Vec::new(), 0);
    for line in lines() {
        if motion.len() == NODES_MAX {
            let message = format!("at most {NODES_MAX} nodes can be imported");
            return Err(file.error_at(span_in(file, line), "this node", message));
        }
        let way = way(file, line)?;
        count += way.len();
        if count > ORDERS_MAX {
            let message = format!("more than {ORDERS_MAX} waypoints");
            return Err(file.error_at(span_in(file, line), "this node", message));
        }
        motion.push(way);
    }
    let start = |way: &Vec<Waypoint>| {
        let place = way.first().map(|first| first.place).unwrap_or_default();
        [place.x, place.y]
    };
    let moves = |way: &Vec<Waypoint>| way.windows(2).any(|pair| pair[0].place != pair[1].place);
    Ok(Some(Places {
        names: (0..motion.len()).map(|node| node.to_string()).collect(),
        places: motion.iter().map(start).collect(),
        motion: motion.iter().any(moves).then_some(motion),
        unfollowed: false,
    }))
}

/// The waypoints of a line.
fn way(file: &FileText, line: &str) -> Result<Vec<Waypoint>, InputError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut way: Vec<Waypoint> = Vec::with_capacity(words.len() / 3);
    for triple in words.chunks(3) {
        let &[time, x, y] = triple else {
            let message = format!("{} numbers are no waypoints of three", words.len());
            let error = file.error_at(span_in(file, triple[0]), "from here on", message);
            return Err(error.help(
                "a waypoint is a time in seconds, x and y; traces of three dimensions are not read",
            ));
        };
        let at = moment(amount(file, time, "a time in seconds from 0 to 1e9")?);
        if way.last().is_some_and(|last| last.at > at) {
            let message = format!("the time {time} comes after a later one");
            return Err(file.error_at(span_in(file, time), "goes back", message));
        }
        let place = Position::new(coordinate(file, x)?, coordinate(file, y)?);
        way.push(Waypoint { at, place });
    }
    Ok(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Places>, InputError> {
        parse(&FileText::of(text))
    }

    #[test]
    fn a_line_is_a_node() {
        let text = "# model=RandomWaypoint\n0.0 10 20 5.5 30 20 9 30 20\n\n0 1e2 -5\n";
        let places = read(text).unwrap().unwrap();
        assert_eq!(places.names, ["0", "1"]);
        assert_eq!(places.places, [[10.0, 20.0], [100.0, -5.0]]);
        let motion = places.motion.unwrap();
        let way: Vec<_> = motion[0]
            .iter()
            .map(|point| (point.at.as_secs_f64(), point.place.x, point.place.y))
            .collect();
        assert_eq!(
            way,
            [(0.0, 10.0, 20.0), (5.5, 30.0, 20.0), (9.0, 30.0, 20.0)]
        );
        // Nobody moves in this one.
        assert_eq!(read("0 1 2 9 1 2\n0 5 5\n").unwrap().unwrap().motion, None);
    }

    #[test]
    fn other_files_are_not_taken() {
        for text in ["", "1 2\n", "src dst pdr\n0 1 0.5\n", "0,1,0.5\n", "{}"] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
    }

    /// Each mistake points at its number.
    #[test]
    fn broken_traces_are_pointed_at() {
        let cases = [
            ("0 1 2\n0 1 2 5 6\n", "5", "5 numbers"),
            ("0 1 2\n0 1 north\n", "north", "not a number of metres"),
            ("0 1 2\nnow 1 2\n", "now", "not a time"),
            ("0 1 2\n-1 1 2\n", "-1", "not a time"),
            ("0 1 2 7 1 2 6.5 1 2\n", "6.5", "comes after a later one"),
            ("0 1 inf\n", "inf", "no place on earth"),
        ];
        for (text, part, message) in cases {
            let error = read(text).unwrap_err();
            let place = error.place.clone().unwrap();
            assert_eq!(&place.text[place.span], part, "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
