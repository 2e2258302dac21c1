//! Bulk transfers over simulated 802.15.4: complete, as fast as arithmetic allows, and readable by others.

#[path = "air/mod.rs"]
mod row;



use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};

use row::{Node, Setup, connect};

/// Neighbours hear each other perfectly, and nobody else: every second neighbour is a hidden sender.
fn chain(nodes: usize) -> Matrix {
    (1..nodes).fold(Matrix::silent(nodes), |matrix, i| {
        matrix.with_link(i - 1, i, 1.0)
    })
}

fn simulate(setup: &Setup, nodes: u16, seed: u64, octets: u64, seconds: u64) -> Simulator<Node> {
    let world = World::new(Medium::matrix(&chain(usize::from(nodes))).unwrap());
    let stations = row::row(setup, nodes, seed, octets);
    let mut simulator = Simulator::new(world, stations, chappe_core::Seed(seed), ()).unwrap();
    connect(&mut simulator, nodes - 1);
    simulator.run_until(AirTime::from_millis(seconds * 1000));
    simulator
}

fn goodput(simulator: &Simulator<Node>, nodes: u16) -> f64 {
    let app = simulator.node(usize::from(nodes) - 1).link.host().app();
    app.received as f64 * 8.0 / app.last.as_secs_f64()
}

#[test]
fn measure() {
    for nodes in [2, 3, 4, 5] {
        let simulator = simulate(&Setup::TCPLP, nodes, 1, u64::MAX, 60);
        println!(
            "{} hops: {:.1} kb/s",
            nodes - 1,
            goodput(&simulator, nodes) / 1e3
        );
        if std::env::var("VERBOSE").is_err() { continue; }
        for (i, node) in simulator.nodes().enumerate() {
            println!(
                "  {i} {:?}\n    {:?} {:?}\n    {:?}",
                node.link.counters(),
                node.link.losses(),
                node.link.host().counters(),
                node.mac.counters()
            );
            println!("    {:?}", node.link.host().sockets()[0].info());
        }
    }
}
