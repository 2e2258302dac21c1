//! What the tutorial promises: the node keeps the contract, ignores hostile frames, and gives every receiver a right copy,
//! also with losses and a restart; and the page is the code.

mod page;

use chappe_core::{
    Address, Arrival, Class, Classes, DropReason, Instant, LinkEvent, LinkNode, LinkSend, Purpose,
    Seed, contract,
};
use chappe_lab::run::Meter;
use chappe_lab::session::{self, Options};
use chappe_lab::system::scenarios;
use chappe_results::provenance::Program;
use chappe_results::{DATA_TRANSMISSIONS, Run};
use chappe_scenario::Plan;
use trickle::protocol::{Node, OBJECT_MAX, PAYLOAD};
use trickle::system::TRICKLE;

#[test]
fn nodes_keep_the_contract() {
    let random = |seed| Seed(seed).stream(Purpose::Node(0));
    contract::check_link(100, |seed| Node::with_object(&[7; 5000], random(seed)));
    contract::check_link(100, |seed| Node::without_object(5000, random(seed)));
    contract::check_link(20, |seed| Node::without_object(0, random(seed)));
}

fn receive(node: &mut Node, sdu: &[u8]) {
    let (from, to, power) = (Address::node(9), Address::BROADCAST, None);
    let arrival = Arrival {
        from,
        to,
        sdu,
        power,
    };
    node.handle_link(Instant::ZERO, LinkEvent::Received(arrival));
}

#[test]
fn hostile_frames_are_dropped() {
    // Two packets, the second one of 76 octets.
    let mut node = Node::without_object(1100, Seed(1).stream(Purpose::Node(0)));
    let too_far = [&[1, 0, 2], &[0; 76][..]].concat();
    let too_long = [&[1, 0, 1], &[0; 77][..]].concat();
    let far_and_empty = [1, 255, 255];
    let malformed = [&[][..], &[0], &[0, 1, 1], &[1], &[2, 0], &far_and_empty];
    for sdu in malformed.into_iter().chain([&too_far[..], &too_long[..]]) {
        receive(&mut node, sdu);
    }
    assert_eq!(node.drops.of(DropReason::Malformed), 8);
    assert_eq!((node.packets(), node.pending()), (0, Classes::NONE));
}

#[test]
fn a_node_answers_with_what_is_lacking_and_no_more() {
    let mut node = Node::with_object(&[7; 1100], Seed(1).stream(Purpose::Node(0)));
    receive(&mut node, &[0, 0b01]);
    let mut sdu = [0; PAYLOAD + 3];
    let sent = node.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
    assert_eq!(sent, Some(LinkSend::broadcast(79, Class::Data)));
    assert_eq!(sdu[..4], [1, 0, 1, 7]);
    assert_eq!(node.pending(), Classes::NONE);
    // Another node answers first.
    receive(&mut node, &[0, 0b01]);
    receive(&mut node, &sdu[..79]);
    assert_eq!(node.pending(), Classes::NONE);
    assert_eq!(node.sent, [0, 1]);
}

#[test]
fn the_largest_summary_fits_a_packet() {
    let mut node = Node::without_object(OBJECT_MAX, Seed(1).stream(Purpose::Node(0)));
    node.handle_timeout(Instant::from_millis(100));
    let mut sdu = [0; PAYLOAD + 3];
    let sent = node.poll_link(Instant::ZERO, Classes::ALL, &mut sdu);
    assert_eq!(sent, Some(LinkSend::broadcast(1025, Class::Control)));
}

fn complete(text: &str) -> Vec<Run> {
    let systems = [&TRICKLE];
    let plan = Plan::parse(&scenarios(&systems), "test", text).unwrap();
    let (program, meter) = (Program::unknown("test"), Meter::default());
    let session = session::run(&systems, &plan, program, Options::default(), &meter).unwrap();
    assert!(session.document.all_complete(), "{text}");
    session.document.runs
}

#[test]
fn the_example_arrives_at_a_small_part_of_a_flood() {
    let runs = complete(include_str!("../../mesh.toml"));
    assert_eq!(runs.len(), 3);
    for run in runs {
        // Every one of 20 nodes repeats each of 98 packets in a plain flood.
        let packets = run.counter(DATA_TRANSMISSIONS);
        assert!(packets < 20 * 98 / 5, "{packets} packets");
        assert!(run.mean_goodput() > 500e3);
    }
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

#[test]
fn an_object_that_is_too_large_is_refused() {
    let text = "[network]\nlinks = [[0, 1], [1, 0]]\n\
                [[transfer]]\nsource = 0\nreceivers = [1]\nbytes = \"9 MB\"\n";
    let plan = Plan::parse(&scenarios(&[&TRICKLE]), "test", text).unwrap();
    let (program, meter) = (Program::unknown("test"), Meter::default());
    let refused = session::run(&[&TRICKLE], &plan, program, Options::default(), &meter);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("at most 8 MiB"), "{message}");
}
