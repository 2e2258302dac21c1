//! Figure 4: what limiting the source's rate adds to the tree.

use chappe_results::figure::{Claim, Figure};
use chappe_results::statistics::mean;

use super::claims::{Sign, better, gain, near};
use super::figure3::Pair;
use super::runs::{Cell, Cells, Scale, Site, System};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::Tree, System::TreeRl])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let pair = Pair {
        cells,
        scale,
        of: [System::Tree, System::TreeRl],
    };
    let both = |values: fn(&Cells, Site, System) -> Vec<f64>| {
        (
            values(cells, SITE, System::Tree),
            values(cells, SITE, System::TreeRl),
        )
    };
    let (tree, limited) = both(Cells::mean);
    let (n, ahead) = (tree.len(), better(&tree, &limited));
    let (sent, redundancy) = (both(Cells::transmissions), both(Cells::redundancy));
    let mut throughput = gain(
        "TREE+RL's throughput over TREE's, on average",
        Some(20.0),
        &tree,
        &limited,
        Sign::More,
    );
    if let Some(why) = &mut throughput.why {
        *why += &format!("; {}", waits(cells));
    }
    Figure {
        id: "figure4",
        title: "limiting the source's rate".into(),
        panels: vec![
            pair.throughput("4a"),
            pair.transmissions("4b"),
            pair.redundancy("4c", [Some(12.15), Some(5.84)]),
        ],
        claims: vec![
            Claim::count(
                "TREE+RL is faster than TREE in every scenario",
                Some(10.0),
                ahead,
                n,
                ahead == n,
            )
            .because(|| waits(cells)),
            throughput,
            gain(
                "TREE+RL's data frames over TREE's: fewer",
                Some(-28.0),
                &sent.0,
                &sent.1,
                Sign::Less,
            ),
            gain(
                "TREE+RL's source redundancy over TREE's: less",
                Some(-52.0),
                &redundancy.0,
                &redundancy.1,
                Sign::Less,
            ),
            near(
                "TREE+RL's source sends the file 5.84 times over",
                5.84,
                &redundancy.1,
                "times",
            ),
        ],
        notes: vec![waits(cells)],
    }
}

/// How the source's waits ended.
fn waits(cells: &Cells) -> String {
    let late = cells.timed_out(SITE, System::TreeRl);
    format!(
        "{:.0} % of the source's waits ended by the time limit (8 T_p for each transmission expected of its \
         children), not by hearing a child forward",
        mean(&late)
    )
}
