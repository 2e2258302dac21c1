//! What the tutorial promises: the node keeps the contract, and every receiver has a right copy, also with losses, a
//! restart, and garbage on the air.

use chappe_core::{Purpose, Seed, contract};
use chappe_lab::run::Meter;
use chappe_lab::session::{self, Options};
use chappe_lab::system::scenarios;
use chappe_results::provenance::Program;
use chappe_scenario::Plan;
use trickle::protocol::Node;
use trickle::system::TRICKLE;

#[test]
fn nodes_keep_the_contract() {
    let random = |seed| Seed(seed).stream(Purpose::Node(0));
    contract::check_link(100, |seed| Node::with_object(&[7; 5000], random(seed)));
    contract::check_link(100, |seed| Node::without_object(5000, random(seed)));
    contract::check_link(20, |seed| Node::without_object(0, random(seed)));
}

fn complete(text: &str) -> Vec<f64> {
    let systems = [&TRICKLE];
    let plan = Plan::parse(&scenarios(&systems), "test", text).unwrap();
    let (program, meter) = (Program::unknown("test"), Meter::default());
    let session = session::run(&systems, &plan, program, Options::default(), &meter).unwrap();
    assert!(session.document.all_complete(), "{text}");
    let runs = session.document.runs.iter();
    runs.map(|run| run.mean_goodput()).collect()
}

#[test]
fn the_example_arrives() {
    let goodput = complete(include_str!("../../mesh.toml"));
    assert_eq!(goodput.len(), 3);
}

#[test]
fn a_lossy_line_with_a_restart_arrives() {
    let links =
        "[network]\nlinks = [[0, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0.5, 0]]\n";
    let transfer = "[[transfer]]\nsource = 0\nreceivers = [3]\nbytes = \"30 kB\"\n";
    let faults = "[[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = 1\n\
                  [[fault]]\nat = \"2 s\"\nkind = \"restart\"\nnode = 1\n";
    complete(&format!("{links}{transfer}{faults}[run]\nrepeat = 5\n"));
}

#[test]
fn two_objects_are_refused() {
    let transfer = "[[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"1 kB\"\n";
    let text = format!("[network]\nlinks = [[0, 1], [1, 0]]\n{transfer}{transfer}");
    let error = Plan::parse(&scenarios(&[&TRICKLE]), "test", &text).unwrap_err();
    assert_eq!(error.message, "Trickle carries one object");
    assert_eq!(error.line_column().map(|place| place.0), Some(7));
}
