//! The links of nodes that move: those of one frame's transmitter, at the moment at which the frame begins.
//!
//! A link is worked out from both places at that moment, so there is no step of time and nothing is approximated. Receivers
//! are looked for in a grid of older places whose cells are wider than the reach by as much as nodes can have moved since: what
//! the grid leaves out is out of reach.

use crate::links::{Grid, Law, Links, Search, Source};
use crate::position::distance;
use crate::{AirTime, Fading, Motion};

/// Nodes on their ways, and the row of links that was worked out last.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    motion: Motion,
    search: Search,
    /// The longest link there can be, in metres; not known until the first frame, and after a new source.
    reach: Option<f64>,
    grid: Grid,
    /// When the places in the grid were taken.
    gridded: AirTime,
    row: Links,
    found: Vec<(u32, u32, f64)>,
}

/// Cells are wider than the reach by this share of it: more of it makes new grids rarer and each search longer. It changes no
/// result.
const SLACK: f64 = 0.25;

impl Moving {
    pub(crate) fn new(motion: Motion, search: Search, fading: Fading) -> Moving {
        Moving {
            grid: Grid::single(motion.nodes()),
            motion,
            search,
            reach: None,
            gridded: AirTime::ZERO,
            row: Links::with_rows(1, fading),
            found: Vec::new(),
        }
    }

    pub(crate) fn motion(&self) -> &Motion {
        &self.motion
    }

    /// The strongest source may be another one now.
    pub(crate) fn sources_changed(&mut self) {
        self.reach = None;
    }

    /// The links of source `number` at a moment, as the only row of a table. Moments must not go back.
    pub(crate) fn row(
        &mut self,
        law: &Law<'_>,
        sources: &[Source],
        number: usize,
        at: AirTime,
    ) -> &Links {
        let reach = self.gridded(law, sources, at);
        let Moving {
            motion, found, row, ..
        } = self;
        let mut source = sources[number];
        if number < motion.nodes() {
            source.position = motion.place(number, at);
        }
        found.clear();
        self.grid.around(source.position, |receiver| {
            if receiver as usize == number {
                return;
            }
            let position = motion.place(receiver as usize, at);
            if distance(source.position, position) <= reach {
                found.extend(law.link((number, &source), (receiver, position)));
            }
        });
        row.clear();
        row.push_row(number, found, |mean| law.least(mean));
        row
    }

    /// Makes the grid again if nodes may have left their cells by too much, and returns the reach.
    fn gridded(&mut self, law: &Law<'_>, sources: &[Source], at: AirTime) -> f64 {
        if self.search == Search::Brute {
            return f64::INFINITY;
        }
        let known = self.reach;
        let reach = *self.reach.get_or_insert_with(|| law.reach(sources));
        // A node that jumps may be anywhere, so all are looked at.
        if self.motion.fastest().is_infinite() {
            return reach;
        }
        let passed = at.saturating_since(self.gridded).as_secs_f64();
        if known.is_none() || passed * self.motion.fastest() > reach * SLACK {
            let nodes = 0..self.motion.nodes();
            let places: Vec<_> = nodes.map(|node| self.motion.place(node, at)).collect();
            self.grid = Grid::new(&places, reach * (1.0 + SLACK));
            self.gridded = at;
        }
        reach
    }
}
