//! Figure 4: what limiting the source's rate adds to the tree.

use super::cells::{Cell, Cells, Scale, Site, System};
use super::figure3::panels;
use super::gain::{better, gain, surely_negative, surely_positive};
use crate::figure::{Claim, Figure};
use crate::statistics::Summary;

const SITE: Site = Site::Outdoor;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::Tree, System::TreeRl])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let all = panels(cells, scale, "4", System::Tree, System::TreeRl, [None, Some(12.15), Some(5.84)]);
    let mut panels: Vec<_> = all.into_iter().filter(|panel| panel.id != "4b").collect();
    for (panel, id) in panels.iter_mut().zip(["4a", "4b", "4c"]) {
        panel.id = id.into();
    }
    let (a, b) = (cells.mean(SITE, System::Tree), cells.mean(SITE, System::TreeRl));
    let n = a.len();
    let throughput = gain(&a, &b);
    let sent = gain(&cells.transmissions(SITE, System::Tree), &cells.transmissions(SITE, System::TreeRl));
    let redundancy = gain(&cells.redundancy(SITE, System::Tree), &cells.redundancy(SITE, System::TreeRl));
    let times = Summary::of(&cells.redundancy(SITE, System::TreeRl));
    let ahead = better(&a, &b);
    Figure {
        id: "figure4",
        title: "limiting the source's rate".into(),
        panels,
        claims: vec![
            Claim::count("TREE+RL is faster than TREE in every scenario", Some(10.0), ahead, n, ahead == n),
            Claim::new("its gain in throughput is positive", Some(20.0), throughput, "%", surely_positive(&throughput)),
            Claim::new("it sends fewer data frames", Some(-28.0), sent, "%", surely_negative(&sent)),
            Claim::new("its source sends less", Some(-52.0), redundancy, "%", surely_negative(&redundancy)),
            Claim::new("its source sends the file 5.84 times: that lies in our interval", Some(5.84), times, "times", holds(&times)),
        ],
        notes: Vec::new(),
    }
}

fn holds(times: &Summary) -> bool {
    times.interval().is_some_and(|(low, high)| low <= 5.84 && 5.84 <= high)
}
