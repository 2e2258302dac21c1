//! One channel of emulated radios that all hosts share: 802.11b at 11 Mbit/s, the fastest that the emulator has.

use std::os::fd::AsFd;
use std::process::Child;

use chappe_core::{Duration, OverMac, Rate, Seed};
use chappe_emu::{Bridge, Emulator, Ending, Host, Joint, Network, Shape, stations};
use chappe_mac::dot11::{Config, Dot11};
use chappe_sim::{Matrix, Medium};
use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::process;

/// Hosts that all hear each other, with losses.
pub struct Air(Emulator<OverMac<Dot11, Bridge>>);

impl Air {
    /// This many hosts; each frame is lost at each listener with this probability.
    pub fn new(hosts: u16, loss: f64) -> Air {
        let nodes = usize::from(hosts);
        let mut matrix = Matrix::silent(nodes);
        for node in 0..nodes {
            for other in 0..node {
                matrix = matrix.with_link(node, other, 1.0 - loss);
            }
        }
        let config = Config {
            llc: None,
            ..Config::dot11b(Rate::Cck11)
        };
        let mtu = Bridge::mtu_of(config.caps().frame_max);
        let medium = Medium::matrix(&matrix).unwrap();
        let simulator = stations(medium, mtu, Seed(1), |own, random| {
            Dot11::new(config, own, random)
        });
        let hosts: Vec<Host> = (0..hosts).map(Host::numbered).collect();
        let shape = Shape {
            prefix: 16,
            mtu,
            forwards: false,
            joint: Joint::Veth,
        };
        let network = Network::make(&hosts, shape).unwrap();
        Air(Emulator::new(simulator.unwrap(), network).unwrap())
    }

    /// The namespace of a host.
    pub fn host(&self, number: usize) -> &NetworkNamespace {
        self.0.host(number).unwrap()
    }

    /// Keeps the air going until these programs have ended, two minutes at most. Prints how late it was and what it carried.
    pub fn carry(&mut self, receivers: &[Child], sender: &Child) {
        let begun = self.0.clock().now();
        let limit = begun + Duration::from_secs(120);
        for child in receivers.iter().chain([sender]) {
            let end = process::watch(child).unwrap();
            self.0.watch(end.as_fd(), 1).unwrap();
            let ending = self.0.run(Some(limit)).unwrap();
            self.0.forget(end.as_fd()).unwrap();
            if ending != Ending::Watched(1) {
                break;
            }
        }
        let run = self.0.clock().now().saturating_since(begun);
        let (late, air) = (self.0.lateness(), self.0.air());
        let airtime: f64 = air
            .nodes
            .iter()
            .map(|node| node.airtime.as_secs_f64())
            .sum();
        println!(
            "  the emulator was late by {:.1} ms in 99 % of its turns{}; {} frames on the air, {:.0} % of the time, {:.0} % of it the sender's",
            late.quantile(0.99).as_secs_f64() * 1e3,
            match late.is_valid(run) {
                true => "",
                false => ", TOO LATE: the run is invalid",
            },
            air.frames,
            100.0 * airtime / run.as_secs_f64(),
            100.0 * air.nodes[0].airtime.as_secs_f64() / airtime,
        );
    }
}
