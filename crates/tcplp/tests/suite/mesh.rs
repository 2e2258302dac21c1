//! A mesh of routers with a sleepy leaf: TCP between the leaf and the border, in both directions.

use crate::row;

use std::net::IpAddr;

use chappe_core::{Duration, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{Config as MacConfig, Dot15d4, Sleep};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::host::{Bulk, Host};
use chappe_tcplp::lowpan::mesh::{Mesh, address};
use chappe_tcplp::lowpan::{Config, Interface};
use chappe_tcplp::tcp::{self, Endpoint, Local, NewReno, Secret, Socket};

use row::{PREFIX, memory};

const ROUTERS: usize = 4;
/// Routers 0 - 1 - 2 - 3 in a row, and a poor link 0 - 2 that costs more than the detour.
const COSTS: [[u8; ROUTERS]; ROUTERS] = [[0, 1, 4, 0], [1, 0, 1, 0], [4, 1, 0, 1], [0, 0, 1, 0]];

type Stack = Interface<Host<'static, Bulk>, Mesh<ROUTERS, 2>, 2, 4, 16, 1280>;
type Node = OverMac<Dot15d4, Stack>;

/// Router `router`, or its first child.
fn node(router: u8, child: u16, app: Bulk) -> Node {
    let here = address(router, child);
    let number = u32::from(router) * 8 + u32::from(child);
    let stream = |n| Seed(5).stream(Purpose::Node(number * 4 + n));
    // A leaf is no router: whatever is not its own goes to its parent, as if that were the border.
    let mut routes = Mesh::new(router, PREFIX, 0, &COSTS);
    let leaf = child > 0;
    if leaf {
        routes = Mesh::leaf(router, child, PREFIX);
    } else if router == 3 {
        assert!(routes.add_child(address(3, 1)));
    }
    let mac_config = MacConfig {
        retries: 7,
        burst: true,
        sleep: leaf.then(|| Sleep {
            base: Duration::from_millis(400),
            ..Sleep::tcplp(address(router, 0))
        }),
        ..MacConfig::HAMILTON
    };
    let mut mac = Dot15d4::new(mac_config, here, stream(0));
    if !leaf && router == 3 {
        assert!(mac.add_child(address(3, 1)));
    }
    let config = Config::new(here, PREFIX, mac_config.caps(0).frame_max);
    let local: &'static Local = Box::leak(Box::new(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new([number as u8; 16]),
        config: tcp::Config {
            mss: 474,
            ..tcp::Config::STANDARD
        },
    }));
    let socket = Socket::new(local, memory(1848, 4), NewReno).unwrap();
    let mut host = Host::new(local, config.link_local(), [socket], app);
    host.listen(80);
    OverMac::new(mac, Interface::new(config, host, routes, stream(1)))
}

/// The leaf is a child of router 3, four hops from the border, router 0. It sends 5 kB and receives 5 kB.
#[test]
fn a_leaf_reaches_the_border_over_the_routers() {
    let nodes: Vec<Box<Node>> = vec![
        Box::new(node(0, 0, Bulk::default())),
        Box::new(node(1, 0, Bulk::default())),
        Box::new(node(2, 0, Bulk::default())),
        Box::new(node(3, 0, Bulk::default())),
        Box::new(node(3, 1, Bulk::sending(5000))),
    ];
    let matrix = (1..5).fold(Matrix::silent(5), |matrix, i| {
        matrix.with_link(i - 1, i, 1.0)
    });
    let world = World::new(Medium::matrix(&matrix).unwrap());
    let mut simulator = Simulator::new(world, nodes, Seed(5), ()).unwrap();
    simulator.with_node(0, |node, now| {
        node.link
            .with_host(now, |host| host.app_mut().to_send = 5000);
    });
    simulator.with_node(4, |node, now| {
        node.link.with_host(now, |host| {
            let border = Config::new(address(0, 0), PREFIX, 0).global();
            assert!(host.connect(now, 50_000, Endpoint::new(IpAddr::V6(border), 80)));
            host.serve(now);
        });
    });
    simulator.run_until(AirTime::from_secs(60));
    for end in [0, 4] {
        let app = simulator.node(end).link.host().app();
        assert_eq!((app.received, app.wrong), (5000, 0), "node {end}");
    }
    assert!(simulator.node(2).link.counters().frames_forwarded > 100);
    assert!(simulator.node(4).mac.counters().requests_sent > 5);
}
