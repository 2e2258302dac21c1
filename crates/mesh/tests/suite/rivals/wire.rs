//! Two hosts on a cable: what a packet costs the processor.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Interface, Links};

use super::traffic::{Segments, processor};

/// Octets of a datagram: with its headers a packet of 1300, which fits the mesh's on this cable.
const DATAGRAM: usize = 1272;
const LASTS: Duration = Duration::from_secs(5);
/// How often the sender writes what is due.
const EVERY: Duration = Duration::from_millis(1);

/// What passes packets on between TUN device and cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The daemon of `chappe mesh`.
    Mesh,
    /// A program that only copies them ([`super::forwarder`]), with joined segments and without.
    Joined,
    Single,
}

/// What the sending host puts on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    Datagrams,
    /// One TCP connection of the kernel.
    Stream,
}

impl Between {
    pub const ALL: [Between; 3] = [Between::Mesh, Between::Joined, Between::Single];

    pub fn name(self) -> &'static str {
        match self {
            Between::Mesh => "mesh",
            Between::Joined => "copying",
            Between::Single => "copying-singly",
        }
    }

    pub fn named(name: &str) -> Option<Between> {
        Between::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Traffic {
    pub const ALL: [Traffic; 2] = [Traffic::Datagrams, Traffic::Stream];

    pub fn name(self) -> &'static str {
        match self {
            Traffic::Datagrams => "datagrams",
            Traffic::Stream => "stream",
        }
    }

    pub fn named(name: &str) -> Option<Traffic> {
        Traffic::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// What the traffic cost.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Payload that arrived, in Mbit/s.
    pub mbps: f64,
    /// What was sent and did not arrive, in percent.
    pub lost: f64,
    /// Processor time for each packet, of the sending and of the receiving program, in microseconds.
    pub processor_us: [f64; 2],
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sends, receives] = self.processor_us;
        write!(
            f,
            "{:.1} Mbit/s, {:.2} % lost; {sends:.1} us of processor a packet to send, {receives:.1} us to receive",
            self.mbps, self.lost
        )
    }
}

/// Sends at a rate in Mbit/s from one host to another for some seconds, in namespaces of this process.
pub fn wire(between: Between, traffic: Traffic, rate_mbps: f64) -> Load {
    let hosts = cable();
    let mut programs = [0, 1].map(|node| start(between, node, &hosts[node]));
    thread::sleep(Duration::from_secs(5));
    let spent = || [0, 1].map(|node: usize| processor(programs[node].id()));
    let before = spent();
    let (span, sent, arrived) = match traffic {
        Traffic::Datagrams => datagrams(&hosts, rate_mbps),
        Traffic::Stream => stream(&hosts, rate_mbps),
    };
    let after = spent();
    for program in &mut programs {
        // By SIGTERM, so that a daemon removes its socket.
        let _ = chappe_sys::process::tell(program, chappe_sys::Signal::Terminate);
        let _ = program.wait();
    }
    let [packets, octets] = arrived;
    let of = |node: usize| 1e6 * (after[node] - before[node]) / packets.max(1.0);
    Load {
        mbps: octets * 8e-6 / span,
        lost: 100.0 * (1.0 - octets / sent.max(1.0)),
        processor_us: [of(0), of(1)],
    }
}

/// Two hosts with a cable between their interfaces `radio0`.
fn cable() -> [NetworkNamespace; 2] {
    let hosts = [0, 1].map(|_| NetworkNamespace::create().expect("a namespace"));
    hosts[0]
        .run(|| {
            let links = Links::open()?;
            links.veth("radio0", "radio0", &hosts[1])?;
            links.up("radio0")
        })
        .expect("a namespace")
        .expect("a cable");
    hosts[1]
        .run(|| Links::open()?.up("radio0"))
        .expect("a namespace")
        .expect("a cable");
    thread::sleep(Duration::from_millis(300));
    for host in &hosts {
        host.run(|| Interface::find("radio0")?.offloads_off())
            .expect("a namespace")
            .expect("a cable");
    }
    hosts
}

fn start(between: Between, node: usize, host: &NetworkNamespace) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    match between {
        Between::Mesh => {
            let name = format!("chappe-wire-{}.{node}", std::process::id());
            let socket = std::env::temp_dir().join(name);
            command.args(["--router", &node.to_string(), "2"]);
            command.arg(socket).arg("wired");
        }
        Between::Joined | Between::Single => {
            command.args(["--forwarder", &(node + 1).to_string(), between.name()]);
        }
    }
    command.stdout(Stdio::null());
    host.run(|| command.spawn())
        .expect("a namespace")
        .expect("a program")
}

/// For how long something was sent in seconds, octets of payload sent, and packets and octets that arrived.
type Passed = (f64, f64, [f64; 2]);

fn datagrams(hosts: &[NetworkNamespace; 2], rate_mbps: f64) -> Passed {
    let bind = |node: usize, address: &str| {
        hosts[node]
            .run(|| UdpSocket::bind(address))
            .expect("a namespace")
            .expect("an address")
    };
    let (source, sink) = (bind(0, "10.77.0.1:5000"), bind(1, "10.77.0.2:5000"));
    let _ = sink.set_read_timeout(Some(Duration::from_millis(500)));
    let counts = thread::spawn(move || {
        let (mut count, mut room) = (0u64, [0; 2000]);
        while sink.recv(&mut room).is_ok() {
            count += 1;
        }
        count
    });
    let mut sent = 0.0;
    let span = at_rate(rate_mbps, |octets| {
        for _ in 0..octets / DATAGRAM {
            let done = source.send_to(&[7; DATAGRAM], "10.77.0.2:5000").is_ok();
            sent += f64::from(u8::from(done)) * DATAGRAM as f64;
        }
        octets - octets % DATAGRAM
    });
    let arrived = counts.join().expect("a count") as f64;
    (span, sent, [arrived, arrived * DATAGRAM as f64])
}

fn stream(hosts: &[NetworkNamespace; 2], rate_mbps: f64) -> Passed {
    let listener = hosts[1]
        .run(|| TcpListener::bind("10.77.0.2:5000"))
        .expect("a namespace")
        .expect("an address");
    let sink: JoinHandle<u64> = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let (mut octets, mut room) = (0, vec![0; 1 << 18]);
        while let Ok(len @ 1..) = stream.read(&mut room) {
            octets += len as u64;
        }
        octets
    });
    // A socket stays in the namespace in which it was made.
    let source = hosts[0].run(|| std::net::TcpStream::connect("10.77.0.2:5000"));
    let mut source = source.expect("a namespace").expect("a connection");
    let before = Segments::of(&hosts[0]);
    let (data, mut sent) = (vec![7; 1 << 20], 0.0);
    let span = at_rate(rate_mbps, |octets| {
        let done = source.write(&data[..octets.min(data.len())]).unwrap_or(0);
        sent += done as f64;
        done
    });
    drop(source);
    let octets = sink.join().expect("a count") as f64;
    let segments = Segments::of(&hosts[0]).minus(before);
    (span, sent, [segments.sent as f64, octets])
}

/// Calls `send` with the octets that are due, as often as the machine allows; it says how many it took. How long it lasted in
/// seconds.
fn at_rate(rate_mbps: f64, mut send: impl FnMut(usize) -> usize) -> f64 {
    let begun = Instant::now();
    let mut taken = 0;
    while begun.elapsed() < LASTS {
        let due = (begun.elapsed().as_secs_f64() * rate_mbps * 1e6 / 8.0) as usize;
        taken += send(due.saturating_sub(taken));
        thread::sleep(EVERY);
    }
    begun.elapsed().as_secs_f64()
}
