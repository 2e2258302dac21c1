//! Places fitted to what links tell: each link counts by how well its ratio tells the distance, and nodes that do not hear each other stay apart.
//!
//! Newton's method alone leaves nodes folded over to the wrong side of their neighbours, where every small move is a loss. So each node is also tried
//! where the circles around two of its neighbours cross, and on the circle around each of them.

use alloc::vec::Vec;
use core::f64::consts::TAU;

use super::pairs::Pairs;

/// Rounds in which nodes are tried elsewhere. They end when nothing is gained, mostly after two to six.
const MOVES: usize = 20;
/// Sweeps of Newton's method over all nodes, and the step below which it ends.
const SWEEPS: usize = 200;
const STILL: f64 = 1e-4;
/// The longest step, as nodes may be folded; a judgement.
const STEP_MAX: f64 = 0.3;
/// How far the least distance of silent nodes may be off, as a part of it; a judgement.
const SILENT: f64 = 0.03;
/// Neighbours around which a node is tried, the nearest ones, and places on a circle.
const AROUND: usize = 8;
const TRIED: usize = 24;

/// A place on the plane.
pub(super) type Place = [f64; 2];

/// What links tell of distances.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Distances over links, infinite for pairs that do not hear each other.
    pub far: Pairs,
    /// How far these may be off: standard deviations, above 0.
    pub error: Pairs,
    /// The least distance of nodes that do not hear each other.
    pub silent: f64,
}

/// Places by what is measured.
pub(super) struct Fit<'a> {
    pub measured: &'a Measured,
}

impl Fit<'_> {
    /// The places that fit better, from these on. With `moves` nodes are tried elsewhere too.
    pub fn fitted(&self, mut places: Vec<Place>, moves: bool) -> Vec<Place> {
        self.settle(&mut places);
        let rounds = if moves { MOVES } else { 0 };
        for _ in 0..rounds {
            let mut tried = places.clone();
            let moved = (0..places.len()).filter(|&node| self.try_elsewhere(node, &mut tried));
            if moved.count() == 0 {
                break;
            }
            self.settle(&mut tried);
            if self.misfit(&tried) >= self.misfit(&places) {
                break;
            }
            places = tried;
        }
        places
    }

    /// The distance that a pair should have if it is `now` apart, and its weight.
    fn wanted(&self, a: usize, b: usize, now: f64) -> Option<(f64, f64)> {
        let (link, silent) = (self.measured.far.at(a, b), self.measured.silent);
        let (far, error) = match link.is_finite() {
            true => (link, self.measured.error.at(a, b)),
            false if now < silent => (silent, SILENT * silent),
            false => return None,
        };
        Some((far, 1.0 / (error * error)))
    }

    /// The squared misfits of a node's distances, if it stood `here`.
    fn misfit_at(&self, node: usize, here: &Place, places: &[Place]) -> f64 {
        let others = places
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != node);
        let each = others.filter_map(|(other, there)| {
            let now = apart(here, there);
            let (far, weight) = self.wanted(node, other, now)?;
            Some(weight * (now - far) * (now - far))
        });
        each.sum()
    }

    fn misfit(&self, places: &[Place]) -> f64 {
        let each = places.iter().enumerate();
        each.map(|(node, here)| self.misfit_at(node, here, places))
            .sum()
    }

    /// Moves the nodes by Newton's method, one after the other, until none moves any more.
    fn settle(&self, places: &mut [Place]) {
        for _ in 0..SWEEPS {
            let mut longest = 0.0_f64;
            for node in 0..places.len() {
                let [dx, dy] = self.step(node, places);
                if let Some([x, y]) = places.get_mut(node) {
                    (*x, *y) = (*x + dx, *y + dy);
                }
                longest = longest.max(libm::hypot(dx, dy));
            }
            if longest < STILL {
                break;
            }
        }
    }

    /// A step of Newton's method, without the curvature of distances that are too short, which would lead uphill.
    fn step(&self, node: usize, places: &[Place]) -> Place {
        let (mut gx, mut gy, mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let here = places.get(node).copied().unwrap_or_default();
        let others = places
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != node);
        for (other, there) in others {
            let now = apart(&here, there).max(1e-9);
            let Some((far, weight)) = self.wanted(node, other, now) else {
                continue;
            };
            let ([hx, hy], [tx, ty]) = (here, *there);
            let (ux, uy) = ((hx - tx) / now, (hy - ty) / now);
            let across = (1.0 - far / now).max(0.0);
            gx += weight * (now - far) * ux;
            gy += weight * (now - far) * uy;
            xx += weight * (ux * ux + across * uy * uy);
            yy += weight * (uy * uy + across * ux * ux);
            xy += weight * (1.0 - across) * ux * uy;
        }
        // Nodes on a line have no curvature across it.
        let damp = 1e-2 * (xx + yy) + 1e-9;
        let (xx, yy) = (xx + damp, yy + damp);
        let det = xx * yy - xy * xy;
        let (dx, dy) = ((xy * gy - yy * gx) / det, (xy * gx - xx * gy) / det);
        let scale = (STEP_MAX / libm::hypot(dx, dy).max(STEP_MAX)).min(1.0);
        [dx * scale, dy * scale]
    }

    /// Moves a node to where it fits better by a tenth, among the places that its links allow. True if it has moved.
    fn try_elsewhere(&self, node: usize, places: &mut [Place]) -> bool {
        let Some(here) = places.get(node) else {
            return false;
        };
        let mut best = (0.9 * self.misfit_at(node, here, places) - 1e-3, None);
        for place in self.elsewhere(node, places) {
            let misfit = self.misfit_at(node, &place, places);
            if misfit < best.0 {
                best = (misfit, Some(place));
            }
        }
        if let (Some(place), Some(better)) = (places.get_mut(node), best.1) {
            *place = better;
        }
        best.1.is_some()
    }

    /// Where a node may stand by its links: on the circles around its nearest neighbours, and where two of these cross.
    fn elsewhere(&self, node: usize, places: &[Place]) -> Vec<Place> {
        let far = &self.measured.far;
        let each = places.iter().enumerate();
        let circles = each.map(|(other, there)| (*there, far.at(node, other)));
        let mut circles: Vec<(Place, f64)> = circles
            .filter(|(_, radius)| radius.is_finite() && *radius > 0.0)
            .collect();
        circles.sort_by(|a, b| a.1.total_cmp(&b.1));
        circles.truncate(AROUND);
        let mut tried = Vec::new();
        for (place, &([x, y], radius)) in circles.iter().enumerate() {
            tried.extend((0..TRIED).map(|turn| {
                let angle = TAU * turn as f64 / TRIED as f64;
                [x + radius * libm::cos(angle), y + radius * libm::sin(angle)]
            }));
            let others = circles.iter().skip(place + 1);
            tried.extend(others.flat_map(|other| crossings(&([x, y], radius), other)));
        }
        tried
    }
}

/// Where two circles cross, or come nearest to it.
fn crossings(one: &(Place, f64), other: &(Place, f64)) -> [Place; 2] {
    let (&(a, near), &(b, far)) = (one, other);
    let span = apart(&a, &b).max(1e-9);
    let along = (near * near - far * far + span * span) / (2.0 * span);
    let off = libm::sqrt((near * near - along * along).max(0.0));
    let ([ax, ay], [bx, by]) = (a, b);
    let (ux, uy) = ((bx - ax) / span, (by - ay) / span);
    [-off, off].map(|off| [ax + along * ux - off * uy, ay + along * uy + off * ux])
}

/// How far two places are apart.
pub(super) fn apart([ax, ay]: &Place, [bx, by]: &Place) -> f64 {
    libm::hypot(ax - bx, ay - by)
}
