//! Figure 3: tree-based opportunistic routing compared with MORE's belts.

use chappe_results::figure::{Claim, Figure, Panel, Series};

use crate::claims::{Sign, better, gain, gains, near, of_ten};
use crate::runs::{Runs, Scale, Site, System, Trial};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Trial> {
    scale.trials(SITE, &[System::More, System::Tree])
}

pub fn make(runs: &Runs, scale: &Scale) -> Figure {
    let pair = Pair {
        runs,
        scale,
        of: [System::More, System::Tree],
    };
    Figure {
        id: "figure3",
        title: "tree-based opportunistic routing compared with MORE".into(),
        panels: vec![
            pair.throughput("3a"),
            pair.forwarders("3b"),
            pair.transmissions("3c"),
            pair.redundancy("3d", [Some(17.0), Some(12.15)]),
        ],
        claims: claims(runs),
        notes: Vec::new(),
    }
}

/// Two systems side by side in panels.
pub struct Pair<'a> {
    pub runs: &'a Runs,
    pub scale: &'a Scale,
    pub of: [System; 2],
}

impl Pair<'_> {
    pub fn throughput(&self, id: &str) -> Panel {
        let series = self.series(Runs::mean, [None; 2]);
        self.panel(id, "mean throughput", "kbit/s", series)
            .bounded(self.runs.mean_bound(SITE), self.runs.worst_bound(SITE))
    }

    pub fn forwarders(&self, id: &str) -> Panel {
        self.panel(
            id,
            "forwarding nodes",
            "nodes",
            self.series(Runs::forwarders, [None; 2]),
        )
    }

    pub fn transmissions(&self, id: &str) -> Panel {
        let series = self.series(Runs::transmissions, [None; 2]);
        self.panel(
            id,
            "data frames sent by source and forwarders",
            "thousand",
            series,
        )
    }

    pub fn redundancy(&self, id: &str, paper: [Option<f64>; 2]) -> Panel {
        let series = self.series(Runs::redundancy, paper);
        self.panel(
            id,
            "source redundancy: octets sent by the source, as a multiple of the file's",
            "times",
            series,
        )
    }

    fn series(
        &self,
        values: fn(&Runs, Site, System) -> Vec<f64>,
        paper: [Option<f64>; 2],
    ) -> Vec<Series> {
        let both = self.of.into_iter().zip(paper);
        both.map(|(system, paper)| {
            Series::with_mean(&system.label(), &values(self.runs, SITE, system), paper)
        })
        .collect()
    }

    fn panel(&self, id: &str, title: &str, unit: &'static str, series: Vec<Series>) -> Panel {
        Panel::bars(id, title, unit, self.scale.places(), series)
    }
}

fn claims(runs: &Runs) -> Vec<Claim> {
    let both = |values: fn(&Runs, Site, System) -> Vec<f64>| {
        (
            values(runs, SITE, System::More),
            values(runs, SITE, System::Tree),
        )
    };
    let (more, tree) = both(Runs::mean);
    let (n, ahead) = (more.len(), better(&more, &tree));
    let largest = gains(&more, &tree)
        .into_iter()
        .fold(f64::NEG_INFINITY, f64::max);
    let (forwarders, sent, redundancy) = (
        both(Runs::forwarders),
        both(Runs::transmissions),
        both(Runs::redundancy),
    );
    vec![
        Claim::count(
            "TREE is faster than MORE in most scenarios",
            of_ten(8.0, n),
            ahead,
            n,
            2 * ahead > n,
        )
        .because(|| format!("faster in {ahead} of {n}")),
        gain(
            "TREE's throughput compared with MORE's, on average",
            Some(42.0),
            &more,
            &tree,
            Sign::More,
        ),
        Claim::value(
            "TREE's largest gain over MORE exceeds 100 %",
            Some(199.0),
            largest,
            n,
            "%",
            largest > 100.0,
        )
        .because(|| format!("the largest gain in our scenarios is {largest:.0} %")),
        gain(
            "TREE uses fewer forwarding nodes than MORE",
            Some(-36.0),
            &forwarders.0,
            &forwarders.1,
            Sign::Less,
        ),
        gain(
            "TREE sends fewer data frames than MORE",
            Some(-44.0),
            &sent.0,
            &sent.1,
            Sign::Less,
        ),
        gain(
            "TREE has less source redundancy than MORE",
            None,
            &redundancy.0,
            &redundancy.1,
            Sign::Less,
        ),
        near(
            "MORE's source sends 17 times the file's octets",
            17.0,
            &redundancy.0,
            "times",
        ),
        near(
            "TREE's source sends 12.15 times the file's octets",
            12.15,
            &redundancy.1,
            "times",
        ),
    ]
}
