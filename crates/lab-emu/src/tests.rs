//! Goal: hosts, routes and predictions of a scenario's network are right. Method: small networks, and arithmetic by hand.

use super::*;
use chappe_core::Duration;
use chappe_scenario::idle;

fn line(links: &str) -> Emulation {
    let text = format!("[network]\nlinks = {links}\n[radio]\nrate = \"11 Mbit/s\"\n");
    let plan = idle::network(&text);
    Emulation::new(&plan, Options::default()).unwrap()
}

const THREE_HOPS: &str = "[[0,1,0,0],[1,0,1,0],[0,1,0,1],[0,0,1,0]]\nsenses_above = 0.5";

#[test]
fn hosts_get_routes_to_nodes_that_they_do_not_hear() {
    let emulation = line(THREE_HOPS);
    assert_eq!(emulation.mtu, 2272);
    let hosts = emulation.hosts();
    let ip = |node: usize| emulation.ipv4(node);
    assert_eq!(hosts[0].routes, [(ip(2), ip(1)), (ip(3), ip(1))]);
    assert_eq!(hosts[2].routes, [(ip(0), ip(1))]);
    assert_eq!(ip(3), Ipv4Addr::new(10, 17, 0, 4));
}

/// On one hop without loss, the cycle of a saturated sender is DIFS, a mean back-off of 15.5 slots, the frame, SIFS and
/// the acknowledgement (Bianchi's formula for one station). The predicted rate follows from it.
#[test]
fn the_rate_of_one_saturated_hop_matches_the_standard() {
    let emulation = line("[[0,1],[1,0]]");
    let flow = Flow {
        from: 0,
        to: 1,
        skip: Duration::from_millis(100),
        lasts: Duration::from_secs(5),
    };
    let goodput = emulation.predict(Load::Udp, flow, 1).unwrap();
    // 24 + 8 + 2272 + 4 octets at 11 Mbit/s behind 192 us; an ACK at 1 Mbit/s is 304 us.
    let frame = 192.0 + ((24 + 8 + 2272 + 4) as f64 * 8.0 / 11.0).ceil();
    let cycle = 50.0 + 15.5 * 20.0 + frame + 10.0 + 304.0;
    let wanted = (2272.0 - 28.0) * 8.0 / cycle * 1e6;
    assert!((goodput / wanted - 1.0).abs() < 0.01, "{goodput} {wanted}");
}

/// Three hops share the channel, so a TCP gets between a sixth and a half of its rate on one hop. The same seed gives the
/// same result.
#[test]
fn tcp_over_three_hops_gets_its_share() {
    let emulation = line(THREE_HOPS);
    let flow = Flow {
        from: 0,
        to: 3,
        skip: Duration::from_millis(500),
        lasts: Duration::from_secs(10),
    };
    let tcp = emulation.predict(Load::Tcp, flow, 1).unwrap();
    assert_eq!(tcp, emulation.predict(Load::Tcp, flow, 1).unwrap());
    let one = line("[[0,1],[1,0]]");
    let hop = one.predict(Load::Tcp, Flow { to: 1, ..flow }, 1).unwrap();
    assert!(tcp > hop / 6.0 && tcp < hop / 2.0, "{tcp} of {hop}");
}

#[test]
fn an_mtu_that_the_radio_cannot_carry_is_refused() {
    let text = "[network]\nlinks = [[0,1],[1,0]]\n";
    let plan = idle::network(text);
    let options = Options {
        mtu: Some(9000),
        ..Options::default()
    };
    let error = Emulation::new(&plan, options).unwrap_err();
    assert!(error.message.contains("2272"), "{error}");
}
