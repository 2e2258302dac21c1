//! Two daemons on a cable: what a packet costs the processor.

use std::fmt;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chappe_sys::namespace::NetworkNamespace;
use chappe_sys::{Interface, Links};

use super::traffic::processor;

/// Octets of a datagram: with its headers a packet of 1300, which fits the mesh's on this cable.
const DATAGRAM: usize = 1272;
const LASTS: Duration = Duration::from_secs(5);

/// What a stream of datagrams cost.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Payload that arrived, in Mbit/s.
    pub mbps: f64,
    /// Datagrams that did not arrive, in percent.
    pub lost: f64,
    /// Processor time for each packet, of the sending and of the receiving daemon, in microseconds.
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

/// Sends datagrams at a rate in Mbit/s from one daemon to another for some seconds, in namespaces of this process.
pub fn wire(rate_mbps: f64) -> Load {
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
    let program = std::env::current_exe().expect("this program");
    let mut daemons = [0, 1].map(|node: usize| {
        let mut command = Command::new(&program);
        let socket =
            std::env::temp_dir().join(format!("chappe-wire-{}.{node}", std::process::id()));
        command
            .args(["--router", &node.to_string(), "2"])
            .arg(socket)
            .arg("wired");
        command.stdout(Stdio::null());
        hosts[node]
            .run(|| command.spawn())
            .expect("a namespace")
            .expect("a daemon")
    });
    thread::sleep(Duration::from_secs(5));
    let bind = |node: usize, address: &str| {
        hosts[node]
            .run(|| UdpSocket::bind(address))
            .expect("a namespace")
            .expect("an address")
    };
    let (source, sink) = (bind(0, "10.77.0.1:5000"), bind(1, "10.77.0.2:5000"));
    let _ = sink.set_read_timeout(Some(Duration::from_millis(500)));
    let spent = || [0, 1].map(|node: usize| processor(daemons[node].id()));
    let before = spent();
    let begun = Instant::now();
    let counts = thread::spawn(move || {
        let (mut count, mut room) = (0u64, [0; 2000]);
        while sink.recv(&mut room).is_ok() {
            count += 1;
        }
        count
    });
    let each = DATAGRAM as f64 * 8e-6 / rate_mbps;
    let mut sent = 0u64;
    while begun.elapsed() < LASTS {
        while (sent as f64) * each <= begun.elapsed().as_secs_f64() {
            sent += u64::from(source.send_to(&[7; DATAGRAM], "10.77.0.2:5000").is_ok());
        }
        thread::sleep(Duration::from_micros(300));
    }
    let span = begun.elapsed().as_secs_f64();
    let arrived = counts.join().expect("a count");
    let after = spent();
    for daemon in &mut daemons {
        // By SIGTERM, so that it removes its socket.
        let _ = chappe_sys::process::tell(daemon, chappe_sys::Signal::Terminate);
        let _ = daemon.wait();
    }
    let of = |node: usize| 1e6 * (after[node] - before[node]) / arrived.max(1) as f64;
    Load {
        mbps: arrived as f64 * DATAGRAM as f64 * 8e-6 / span,
        lost: 100.0 * (1.0 - arrived as f64 / sent.max(1) as f64),
        processor_us: [of(0), of(1)],
    }
}
