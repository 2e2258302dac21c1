//! Programs of tasks on simulated air.

use std::net::{IpAddr, Ipv6Addr, SocketAddrV6};

use chappe_core::{Address, Duration, OverMac, Purpose, Seed};
use chappe_mac::dot15d4::{self, Dot15d4};
use chappe_mote::{Air, Clock, Island, Mailbox, Place, Runner, Sockets, Stack, Virtual};
use chappe_sim::{AirTime, Matrix, Medium, Simulator, World};
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::{Config, Interface, Route, Table};
use chappe_tcplp::tcp::{self, Local, Memory, NewReno, Range, Secret, Sent, Socket};

pub use chappe_mote::Task;

pub type Net = Stack<'static, Virtual>;

pub const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0, 1, 0, 0, 0, 0);
const SOCKETS: usize = 3;

pub fn address(node: u16) -> Ipv6Addr {
    Config::new(Address::node(node), PREFIX, 0).global()
}

pub fn at(node: u16, port: u16) -> SocketAddrV6 {
    SocketAddrV6::new(address(node), port, 0, 0)
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn octets(len: usize) -> &'static mut [u8] {
    vec![0; len].leak()
}

fn socket(local: &'static Local) -> Socket<'static> {
    let memory = Memory {
        send: octets(1848),
        receive: octets(1848),
        ranges: vec![Range::default(); 4].leak(),
        flight: vec![Sent::default(); 8].leak(),
    };
    Socket::new(local, memory, NewReno).unwrap()
}

/// Node `number`, whose program is `tasks`. All nodes hear each other.
pub fn island(number: u16, nodes: u16, tasks: impl FnOnce(&'static Net) -> Vec<Task>) -> Island {
    let here = Address::node(number);
    let stream = |n| Seed(1).stream(Purpose::Node(u32::from(number) * 4 + n));
    let mac = dot15d4::Config::STANDARD;
    let config = Config::new(here, PREFIX, mac.caps(0).frame_max);
    let local: &Local = leak(Local {
        address: IpAddr::V6(config.global()),
        secret: Secret::new([number as u8 + 1; 16]),
        config: tcp::Config {
            mss: 474,
            ..tcp::Config::STANDARD
        },
    });
    let places: Vec<Place> = (0..SOCKETS).map(|_| Place::FREE).collect();
    let mailbox = |_| Mailbox::new(octets(256), octets(200));
    let mailboxes: Vec<Mailbox<'static>> = (0..2).map(mailbox).collect();
    let app = Sockets::new(places.leak(), mailboxes.leak());
    let sockets: [Socket<'static>; SOCKETS] = std::array::from_fn(|_| socket(local));
    let host = Host::new(local, config.link_local(), sockets, app);
    let mut table: Table<8> = Table::new(here, PREFIX, Route::Nowhere);
    for other in (0..nodes).filter(|&other| other != number) {
        table.add(Address::node(other), Address::node(other));
    }
    let link: Interface<_, _, 2, 2, 4, 536> = Interface::new(config, host, table, stream(1));
    let mac: Dot15d4 = Dot15d4::new(mac, here, stream(0));
    let node = leak(OverMac::new(mac, link));
    let air = Air::leak();
    let stack: &Net = leak(Stack::new(node, local, air.clock()));
    let runner = Runner::new(stack, air.antenna());
    let mut all = tasks(stack);
    all.push(Box::pin(async move { runner.run().await }));
    Island::new(air, all)
}

/// Runs programs whose nodes receive each other's frames with this probability, until all tasks have ended.
pub fn run(programs: Vec<Island>, delivery: f64, seconds: u64) {
    let nodes = programs.len();
    let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b)));
    let matrix = pairs.fold(Matrix::silent(nodes), |matrix, (a, b)| {
        matrix.with_link(a, b, delivery)
    });
    let medium = Medium::matrix(&matrix).unwrap();
    let programs = programs.into_iter().map(Box::new).collect();
    let mut simulator = Simulator::new(World::new(medium), programs, Seed(7), ()).unwrap();
    for second in 1..=seconds {
        simulator.run_until(AirTime::from_millis(1000 * second));
        if (0..nodes).all(|node| simulator.node(node).is_done()) {
            return;
        }
    }
    panic!("some tasks have not ended after {seconds} s");
}

pub async fn pause(stack: &Net, millis: u64) {
    let until = stack.clock().now() + Duration::from_millis(millis);
    stack.clock().sleep_until(until).await;
}
