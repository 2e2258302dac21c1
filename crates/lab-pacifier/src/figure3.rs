//! Figure 3: tree-based opportunistic routing against MORE's belts.

use chappe_results::figure::{Claim, Figure, Panel, Series};

use super::claims::{Sign, better, gain, gains, near};
use super::runs::{Cell, Cells, Scale, Site, System};

const SITE: Site = Site::OUTDOOR;

pub fn needs(scale: &Scale) -> Vec<Cell> {
    scale.cells(SITE, &[System::More, System::Tree])
}

pub fn make(cells: &Cells, scale: &Scale) -> Figure {
    let pair = Pair {
        cells,
        scale,
        of: [System::More, System::Tree],
    };
    Figure {
        id: "figure3",
        title: "tree-based opportunistic routing against MORE".into(),
        panels: vec![
            pair.throughput("3a"),
            pair.forwarders("3b"),
            pair.transmissions("3c"),
            pair.redundancy("3d", [Some(17.0), Some(12.15)]),
        ],
        claims: claims(cells),
        notes: Vec::new(),
    }
}

/// Two systems side by side in panels.
pub struct Pair<'a> {
    pub cells: &'a Cells,
    pub scale: &'a Scale,
    pub of: [System; 2],
}

impl Pair<'_> {
    pub fn throughput(&self, id: &str) -> Panel {
        let series = self.series(Cells::mean, [None; 2]);
        self.panel(id, "mean throughput", "kbit/s", series)
            .bounded(self.cells.mean_bound(SITE), self.cells.worst_bound(SITE))
    }

    pub fn forwarders(&self, id: &str) -> Panel {
        self.panel(
            id,
            "forwarding nodes",
            "nodes",
            self.series(Cells::forwarders, [None; 2]),
        )
    }

    pub fn transmissions(&self, id: &str) -> Panel {
        let series = self.series(Cells::transmissions, [None; 2]);
        self.panel(
            id,
            "data frames sent by source and forwarders",
            "thousand",
            series,
        )
    }

    pub fn redundancy(&self, id: &str, paper: [Option<f64>; 2]) -> Panel {
        let series = self.series(Cells::redundancy, paper);
        self.panel(
            id,
            "source redundancy: octets sent by the source over the file's",
            "times",
            series,
        )
    }

    fn series(
        &self,
        values: fn(&Cells, Site, System) -> Vec<f64>,
        paper: [Option<f64>; 2],
    ) -> Vec<Series> {
        let both = self.of.into_iter().zip(paper);
        both.map(|(system, paper)| {
            Series::with_mean(&system.label(), &values(self.cells, SITE, system), paper)
        })
        .collect()
    }

    fn panel(&self, id: &str, title: &str, unit: &'static str, series: Vec<Series>) -> Panel {
        Panel::bars(id, title, unit, self.scale.places(), series)
    }
}

fn claims(cells: &Cells) -> Vec<Claim> {
    let both = |values: fn(&Cells, Site, System) -> Vec<f64>| {
        (
            values(cells, SITE, System::More),
            values(cells, SITE, System::Tree),
        )
    };
    let (more, tree) = both(Cells::mean);
    let (n, ahead) = (more.len(), better(&more, &tree));
    let largest = gains(&more, &tree)
        .into_iter()
        .fold(f64::NEG_INFINITY, f64::max);
    let (forwarders, sent, redundancy) = (
        both(Cells::forwarders),
        both(Cells::transmissions),
        both(Cells::redundancy),
    );
    vec![
        Claim::count(
            "TREE is faster than MORE in most scenarios",
            Some(8.0),
            ahead,
            n,
            2 * ahead > n,
        )
        .because(|| format!("faster in {ahead} of {n}")),
        gain(
            "TREE's throughput over MORE's, on average",
            Some(42.0),
            &more,
            &tree,
            Sign::More,
        ),
        Claim::value(
            "TREE's largest gain over MORE: above 100 %",
            Some(199.0),
            largest,
            n,
            "%",
            largest > 100.0,
        )
        .because(|| format!("the largest of our scenarios' gains is {largest:.0} %")),
        gain(
            "TREE's forwarding nodes over MORE's: fewer",
            Some(-36.0),
            &forwarders.0,
            &forwarders.1,
            Sign::Less,
        ),
        gain(
            "TREE's data frames over MORE's: fewer",
            Some(-44.0),
            &sent.0,
            &sent.1,
            Sign::Less,
        ),
        gain(
            "TREE's source redundancy over MORE's: less",
            None,
            &redundancy.0,
            &redundancy.1,
            Sign::Less,
        ),
        near(
            "MORE's source sends the file 17 times over",
            17.0,
            &redundancy.0,
            "times",
        ),
        near(
            "TREE's source sends the file 12.15 times over",
            12.15,
            &redundancy.1,
            "times",
        ),
    ]
}
