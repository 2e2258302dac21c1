//! The networks that the goals are held against: no constant of the protocol was chosen on them.

use std::path::{Path, PathBuf};

/// The default file of a second measured building's links; `CHAPPE_K7` overrides it.
const K7: &str = "../shared/data/iotlab-grenoble-k7/grenoble.k7.gz";

/// A kind of network.
pub struct Kind {
    /// Its name in tables.
    pub name: String,
    /// The table `[network]` of its scenario, without the number of nodes.
    pub text: String,
    /// The nodes that are drawn, if that is to be said.
    pub nodes: Option<usize>,
    /// The nodes of a corridor from end to end; otherwise source and destination are any two nodes.
    pub corridor: Option<usize>,
}

/// The kinds whose files are there. A look takes the small ones.
pub fn kinds(mercator: Option<&Path>, all: bool) -> Vec<Kind> {
    let sizes: &[usize] = if all { &[60, 139, 340] } else { &[60, 139] };
    let drawn = |name: &str, text: &str, nodes: usize| Kind {
        name: format!("{name}, {nodes} nodes"),
        text: format!("{text}\nbad_links = 0.25"),
        nodes: Some(nodes),
        corridor: None,
    };
    let mut kinds: Vec<Kind> = sizes
        .iter()
        .map(|&nodes| drawn("building", "generator = \"building\"", nodes))
        .collect();
    let file = |path: &Path| format!("file = {:?}", path.display().to_string());
    if let Some(path) = mercator {
        let text = file(path);
        kinds.extend(sizes.iter().map(|&nodes| drawn("Grenoble", &text, nodes)));
    }
    let k7 = std::env::var_os("CHAPPE_K7").map_or_else(|| K7.into(), PathBuf::from);
    if k7.is_file() {
        kinds.push(Kind {
            name: "K7, 50 nodes".into(),
            text: file(&k7),
            nodes: None,
            corridor: None,
        });
    }
    // Planning over many hops takes seconds.
    let corridors: &[(usize, usize)] = if all { &[(12, 48), (24, 30)] } else { &[] };
    kinds.extend(corridors.iter().map(|&(columns, apart)| Kind {
        name: format!("corridor, {columns} columns"),
        text: corridor(columns, apart),
        nodes: None,
        corridor: Some(columns),
    }));
    kinds
}

/// Columns of five nodes, with one node at each end.
fn corridor(columns: usize, apart: usize) -> String {
    let mut positions = vec![["0 m".to_string(), "6 m".to_string()]];
    for column in 1..=columns {
        for row in 0..5 {
            let x = column * apart + 4 * (row % 2);
            positions.push([format!("{x} m"), format!("{} m", 3 * row)]);
        }
    }
    positions.push([format!("{} m", (columns + 1) * apart), "6 m".into()]);
    format!("positions = {positions:?}")
}
