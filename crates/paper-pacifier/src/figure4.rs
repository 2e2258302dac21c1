//! Figure 4: the effect of limiting the source's rate on the tree.

use chappe_results::figure::{Claim, Figure};
use chappe_results::statistics::mean;

use crate::claims::{Sign, better, gain, near, of_ten};
use crate::figure3::Pair;
use crate::runs::{Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(SITE, &[System::Tree, System::TreeRl])
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let pair = Pair {
        runs,
        scale,
        of: [System::Tree, System::TreeRl],
    };
    let both = |values: fn(&Runs, Site, System) -> Vec<f64>| {
        (
            values(runs, SITE, System::Tree),
            values(runs, SITE, System::TreeRl),
        )
    };
    let (tree, limited) = both(Runs::mean);
    let (n, ahead) = (tree.len(), better(&tree, &limited));
    let (sent, redundancy) = (both(Runs::transmissions), both(Runs::redundancy));
    let mut throughput = gain(
        "TREE+RL's throughput compared with TREE's, on average",
        Some(20.0),
        &tree,
        &limited,
        Sign::More,
    );
    if let Some(why) = &mut throughput.why {
        *why += &format!("; {}", waits(runs));
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
                of_ten(10.0, n),
                ahead,
                n,
                ahead == n,
            )
            .because(|| waits(runs)),
            throughput,
            gain(
                "TREE+RL sends fewer data frames than TREE",
                Some(-28.0),
                &sent.0,
                &sent.1,
                Sign::Less,
            ),
            gain(
                "TREE+RL has less source redundancy than TREE",
                Some(-52.0),
                &redundancy.0,
                &redundancy.1,
                Sign::Less,
            ),
            near(
                "TREE+RL's source sends 5.84 times the file's octets",
                5.84,
                &redundancy.1,
                "times",
            ),
        ],
        notes: vec![waits(runs)],
    }
}

/// How the source's waits ended.
fn waits(runs: &Runs) -> String {
    let late = runs.timed_out(SITE, System::TreeRl);
    format!(
        "{:.0} % of the source's waits reached the time limit (3 T_p for each transmission that \
         a packet triggers); the others ended when the source heard a child forward",
        mean(&late)
    )
}
