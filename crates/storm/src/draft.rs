//! A scenario in parts that can be left out or made smaller one by one, and its text.

use std::fmt::Write;

/// A key with its value as TOML text.
pub type Line = (String, String);

/// A scenario, before it is text.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The name of the system that carries the data.
    pub system: &'static str,
    /// The name of the system's variant.
    pub variant: &'static str,
    /// Where the nodes stand.
    pub network: Network,
    /// The keys of `[radio]` with their values.
    pub radio: Vec<Line>,
    /// The keys of `[mac]` with their values.
    pub mac: Vec<Line>,
    /// The system's own keys of `[protocol]`.
    pub protocol: Vec<Line>,
    /// What is to be carried.
    pub transfers: Vec<Transfer>,
    /// Traffic without an end: the keys of each `[[flow]]`.
    pub flows: Vec<Vec<Line>>,
    /// What goes wrong during the run.
    pub troubles: Vec<Trouble>,
    /// Keys of `[run]` but the seed.
    pub run: Vec<Line>,
    /// The seed of the run.
    pub seed: u64,
}

/// Where the nodes stand, or their links.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// The place of each node in metres.
    Places(Vec<[f64; 2]>),
    /// Delivery ratios from each node to each.
    Links(Vec<Vec<f64>>),
    /// A generator with its keys, and the number of nodes.
    Generated(Vec<Line>, usize),
}

/// One object from one source to its receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// The node that has it; drawn from the seed if `None`.
    pub source: Option<usize>,
    /// The nodes that want it.
    pub receivers: Receivers,
    /// How many octets it has.
    pub octets: u64,
}

/// Who wants an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Receivers {
    /// As many as this, drawn from the seed.
    Count(usize),
    /// The nodes with these numbers.
    Nodes(Vec<usize>),
}

/// Something that goes wrong, with what ends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// The keys of each `[[fault]]`.
    pub strikes: Vec<Vec<Line>>,
    /// Whether all is as before when the last strike is over.
    pub heals: bool,
    /// Whether nodes may get frames that no node of the network sent as they are.
    pub falsifies: bool,
}

impl Network {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        match self {
            Network::Places(places) => places.len(),
            Network::Links(links) => links.len(),
            Network::Generated(_, nodes) => *nodes,
        }
    }
}

impl Draft {
    /// A transfer of so many octets from the first node to the last one, among nodes at these places, and nothing else.
    pub fn transfer(
        system: &'static str,
        variant: &'static str,
        places: Vec<[f64; 2]>,
        octets: u64,
    ) -> Draft {
        let last = places.len().saturating_sub(1);
        Draft {
            system,
            variant,
            network: Network::Places(places),
            radio: Vec::new(),
            mac: Vec::new(),
            protocol: Vec::new(),
            transfers: vec![Transfer {
                source: Some(0),
                receivers: Receivers::Nodes(vec![last]),
                octets,
            }],
            flows: Vec::new(),
            troubles: Vec::new(),
            run: Vec::new(),
            seed: 1,
        }
    }

    /// The number of faults.
    pub fn faults(&self) -> usize {
        let troubles = self.troubles.iter();
        troubles.map(|trouble| trouble.strikes.len()).sum()
    }

    /// The scenario as a file that `chappe sim` reads.
    pub fn text(&self) -> String {
        let mut text = String::from("[network]\n");
        match &self.network {
            Network::Places(places) => {
                let places = places.iter();
                let places = places.map(|[x, y]| format!("  [\"{x} m\", \"{y} m\"],\n"));
                text += &format!("positions = [\n{}]\n", places.collect::<String>());
            }
            Network::Links(links) => {
                let links = links.iter().map(|row| format!("  {row:?},\n"));
                text += &format!("links = [\n{}]\n", links.collect::<String>());
            }
            Network::Generated(lines, nodes) => {
                write_lines(&mut text, lines);
                text += &format!("nodes = {nodes}\n");
            }
        }
        table(&mut text, "[radio]", &self.radio);
        table(&mut text, "[mac]", &self.mac);
        text += &format!(
            "\n[protocol]\nsystem = \"{}\"\nvariant = \"{}\"\n",
            self.system, self.variant
        );
        write_lines(&mut text, &self.protocol);
        for transfer in &self.transfers {
            text += &transfer.text();
        }
        for flow in &self.flows {
            table(&mut text, "[[flow]]", flow);
        }
        for trouble in &self.troubles {
            for strike in &trouble.strikes {
                table(&mut text, "[[fault]]", strike);
            }
        }
        text += &format!("\n[run]\nseed = {}\n", self.seed);
        write_lines(&mut text, &self.run);
        text
    }
}

impl Transfer {
    fn text(&self) -> String {
        let source = self.source.map(|node| format!("source = {node}\n"));
        let receivers = match &self.receivers {
            Receivers::Count(count) => count.to_string(),
            Receivers::Nodes(nodes) => format!("{nodes:?}"),
        };
        let octets = self.octets;
        let source = source.unwrap_or_default();
        format!("\n[[transfer]]\n{source}receivers = {receivers}\nbytes = \"{octets} B\"\n")
    }
}

/// A table with its keys; nothing if it has none.
fn table(text: &mut String, head: &str, lines: &[Line]) {
    if !lines.is_empty() {
        *text += &format!("\n{head}\n");
        write_lines(text, lines);
    }
}

fn write_lines(text: &mut String, lines: &[Line]) {
    for (key, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// A key with a value as text in quotes.
pub fn quoted(key: &str, value: impl std::fmt::Display) -> Line {
    (key.to_owned(), format!("\"{value}\""))
}

/// A key with a value as it is.
pub fn plain(key: &str, value: impl std::fmt::Display) -> Line {
    (key.to_owned(), value.to_string())
}
