//! Routers side by side on the same emulated radios: the mesh daemon, babeld, static routes. The kernel's TCP above.
//!
//! Each cell runs in a process of its own, since namespaces belong to a process: the program calls itself with the cell's words.
#![allow(dead_code, reason = "each program uses a part")]

mod cell;
#[path = "../flows.rs"]
mod flows;
mod forwarder;
mod iperf3;
mod routers;
mod traffic;
mod wire;

use std::process::{Command, Stdio};

pub use cell::{Access, Cell, Seen};
pub use routers::Router;
pub use wire::{Between, Traffic, wire};

/// A network, and the flows that are measured on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Three hops of 80 %.
    Line,
    /// Two relays between two ends, 80 % each.
    Diamond,
    /// Five nodes: the diamond and a hop, with iperf3 from one end to the other.
    Five,
    /// Twelve nodes, four flows.
    Twelve,
}

impl Place {
    pub const ALL: [Place; 4] = [Place::Line, Place::Diamond, Place::Five, Place::Twelve];

    pub fn name(self) -> &'static str {
        match self {
            Place::Line => "line",
            Place::Diamond => "diamond",
            Place::Five => "five",
            Place::Twelve => "twelve",
        }
    }

    pub fn named(name: &str) -> Option<Place> {
        Place::ALL.into_iter().find(|place| place.name() == name)
    }

    /// The text of the place's scenario, one of the shipped examples.
    pub fn text(self) -> &'static str {
        match self {
            Place::Line => include_str!("../../../../../examples/mesh-line.toml"),
            Place::Diamond => include_str!("../../../../../examples/mesh-diamond.toml"),
            Place::Five => include_str!("../../../../../examples/mesh-five.toml"),
            Place::Twelve => include_str!("../../../../../examples/mesh-12-flows.toml"),
        }
    }

    /// From which node to which.
    pub fn flows(self) -> &'static [(usize, usize)] {
        match self {
            Place::Line | Place::Diamond => &[(0, 3)],
            Place::Five => &[(0, 4)],
            Place::Twelve => &flows::TWELVE,
        }
    }
}

/// What the program was called for.
pub enum Called {
    /// By a user, so that the words of the command line are an order.
    User,
    /// By itself, and it has done what it was called for.
    Done,
}

/// Does what this program has called itself for, if it has. Call it first in `main`.
pub fn called() -> Called {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == "--cell" => {
            chappe_sys::namespace::isolate().expect("network namespaces");
            println!("{}", Cell::parse(rest).expect("a cell").run());
            Called::Done
        }
        Some((first, rest)) if first == "--wire" => {
            chappe_sys::namespace::isolate().expect("network namespaces");
            let [between, traffic, rate] = rest else {
                panic!("what is between, the traffic, Mbit/s");
            };
            let between = Between::named(between).expect("what is between");
            let traffic = Traffic::named(traffic).expect("the traffic");
            println!("{}", wire(between, traffic, rate.parse().expect("Mbit/s")));
            Called::Done
        }
        Some((first, rest)) if first == "--router" => {
            routers::serve(rest);
            Called::Done
        }
        Some((first, rest)) if first == "--forwarder" => {
            let node = rest.first().and_then(|node| node.parse().ok());
            let joined = rest.get(1).and_then(|name| Between::named(name));
            forwarder::serve(node.expect("a node"), joined == Some(Between::Joined))
                .expect("devices");
            Called::Done
        }
        _ => Called::User,
    }
}

/// Measures a cell in a process of its own; `None` if that failed, which stderr explains.
pub fn apart(cell: &Cell) -> Option<Seen> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.arg("--cell").args(cell.words());
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    Seen::parse(&String::from_utf8_lossy(&output.stdout))
}
