//! Networks that a generator places, and the keys that each generator needs.

use chappe_sim::RandomWaypoint;

use super::{Placing, Topology, channels, channels_only};
use crate::check::Check;
use crate::format::{Generator, Located, NetworkTable, span_of};
use crate::input::InputError;
use crate::plan::channels::Origin;
use crate::quantity::{Length, Speed, Time};
use crate::radios::Radios;

/// The greatest speed in metres per second: that of a satellite in a low orbit, with room to spare.
const SPEED_MAX: f64 = 10_000.0;

/// The keys of a network whose places are generated.
struct Keys<'a> {
    network: &'a Located<NetworkTable>,
    check: &'a Check<'a>,
}

pub(super) fn generated(
    network: &Located<NetworkTable>,
    generator: Generator,
    radios: Radios,
    check: &Check<'_>,
) -> Result<Topology, InputError> {
    let keys = Keys { network, check };
    let nodes = *keys.needed(network.nodes.as_deref(), "nodes", "50")?;
    if generator == Generator::Building && radios == Radios::Dot15d4 {
        return channels(network, Origin::Building, nodes, check);
    }
    let rule = keys.rule(generator)?;
    if let Some(unused) = unused(network, generator) {
        let message = "this generator does not use this key";
        return Err(check.error(unused, "no use here", message));
    }
    let connected = network.connected.as_ref();
    if let Some(share) = connected.filter(|share| !(0.0..=1.0).contains(&***share)) {
        return Err(check.at(
            share,
            "out of range",
            "a delivery ratio lies between 0 and 1",
        ));
    }
    Ok(Topology::Generated {
        nodes,
        rule,
        seed: network.seed,
        connected: connected.map(|share| **share),
    })
}

impl Keys<'_> {
    /// What a key says that the generator cannot do without.
    fn needed<T>(&self, given: Option<T>, key: &str, example: &str) -> Result<T, InputError> {
        given.ok_or_else(|| {
            let message = format!("this generator needs `{key}`");
            (self.check.at(self.network, "in this table", message))
                .help(format!("for example {key} = {example}"))
        })
    }

    fn rule(&self, generator: Generator) -> Result<Placing, InputError> {
        let network = self.network;
        Ok(match generator {
            Generator::Building => {
                let span = span_of(&network.generator).unwrap_or(network.span());
                return Err(channels_only(span, self.check));
            }
            Generator::Random => Placing::Random { area: self.area()? },
            Generator::RandomWaypoint => Placing::RandomWaypoint(self.waypoints()?),
            Generator::Grid => Placing::Grid {
                spacing: self.length(network.spacing.as_ref(), "spacing", "\"100 m\"")?,
            },
            Generator::Line => Placing::Line {
                spacing: self.length(network.spacing.as_ref(), "spacing", "\"100 m\"")?,
            },
            Generator::Clustered => Placing::Clustered {
                area: self.area()?,
                clusters: *self.needed(network.clusters.as_deref(), "clusters", "5")?,
                spread: self.length(network.spread.as_ref(), "spread", "\"60 m\"")?,
            },
        })
    }

    fn area(&self) -> Result<[f64; 2], InputError> {
        let area = self.network.area.as_ref();
        let area = self.needed(area, "area", "[\"1000 m\", \"1000 m\"]")?;
        Ok([
            positive(&area.replaced(area[0]), self.check)?,
            positive(&area.replaced(area[1]), self.check)?,
        ])
    }

    fn length(
        &self,
        given: Option<&Located<Length>>,
        key: &str,
        example: &str,
    ) -> Result<f64, InputError> {
        positive(self.needed(given, key, example)?, self.check)
    }

    fn waypoints(&self) -> Result<RandomWaypoint, InputError> {
        let speed = self.network.speed.as_ref();
        let speed = self.needed(speed, "speed", "[\"1 m/s\", \"5 m/s\"]")?;
        Ok(RandomWaypoint {
            area: self.area()?,
            speed: speeds(speed, self.check)?,
            pause: pauses(self.network.pause.as_ref(), self.check)?,
        })
    }
}

/// Least and greatest speed in metres per second.
fn speeds(speed: &Located<[Speed; 2]>, check: &Check<'_>) -> Result<[f64; 2], InputError> {
    let [least, greatest] = speed.map(|speed| speed.value());
    if least.is_nan() || least <= 0.0 {
        let message = "the least speed must be above zero";
        let error = check.at(speed, "too slow", message);
        return Err(
            error.help("a node that hardly moves never arrives; give `pause` for nodes that stay")
        );
    }
    // Faster than light, delays would make no sense; nothing that carries a radio comes near this.
    if greatest > SPEED_MAX {
        let message = format!("{} is too fast", speed[1]);
        return Err(check.at(speed, "too fast", message));
    }
    in_order(speed, [least, greatest], check)
}

/// Shortest and longest stay in seconds.
fn pauses(pause: Option<&Located<[Time; 2]>>, check: &Check<'_>) -> Result<[f64; 2], InputError> {
    let Some(pause) = pause else {
        return Ok([0.0; 2]);
    };
    for one in **pause {
        check.time(&pause.replaced(one))?;
    }
    in_order(pause, pause.map(|pause| pause.value()), check)
}

fn in_order<T>(
    place: &Located<T>,
    [from, to]: [f64; 2],
    check: &Check<'_>,
) -> Result<[f64; 2], InputError> {
    match from <= to {
        true => Ok([from, to]),
        false => Err(check.at(
            place,
            "the wrong way round",
            "the smaller value stands first",
        )),
    }
}

/// A key that belongs to another generator.
pub(super) fn unused(
    network: &NetworkTable,
    generator: Generator,
) -> Option<std::ops::Range<usize>> {
    let bad_links = span_of(&network.bad_links);
    if let Some(span) = bad_links.filter(|_| generator != Generator::Building) {
        return Some(span);
    }
    let area = span_of(&network.area);
    let spacing = span_of(&network.spacing);
    let clusters = span_of(&network.clusters);
    let spread = span_of(&network.spread);
    let moving = span_of(&network.speed).or(span_of(&network.pause));
    match generator {
        Generator::Random => spacing.or(clusters).or(spread).or(moving),
        Generator::RandomWaypoint => spacing.or(clusters).or(spread),
        Generator::Grid | Generator::Line => area.or(clusters).or(spread).or(moving),
        Generator::Clustered => spacing.or(moving),
        Generator::Building => area.or(spacing).or(clusters).or(spread).or(moving),
    }
}

fn positive(length: &Located<Length>, check: &Check<'_>) -> Result<f64, InputError> {
    if length.value() > 0.0 {
        return Ok(length.value());
    }
    Err(check.at(
        length,
        "not above zero",
        format!("{} is not a distance between nodes", **length),
    ))
}
