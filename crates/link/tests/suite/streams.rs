//! Ports, SOCKS and services over a link without a device: two tunnels of this process on the loopback interface, real sockets at both
//! ends, and no privilege.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chappe_link::classify::Net;
use chappe_link::{
    BULK, Carrier, IDLE_KEEPALIVE, PeerConfig, Secret, StreamCounters, StreamsConfig, Tunnel,
    TunnelConfig,
};
use chappe_sys::Endpoint;
use chappe_wildnet::Service;

/// A tunnel that runs in a thread of its own until it is dropped.
struct End {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<StreamCounters>>,
}

/// A free address of this host. Another program could take it before it is used; nothing else here does.
fn free() -> SocketAddr {
    let any = TcpListener::bind("127.0.0.1:0").unwrap();
    any.local_addr().unwrap()
}

fn inner(host: usize) -> IpAddr {
    [10, 9, 0, 1 + host as u8].into()
}

/// Both ends of a link, host 0 and host 1, each with what goes through it.
fn link(streams: [StreamsConfig; 2]) -> [End; 2] {
    let udp = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = udp.each_ref().map(|socket| socket.local_addr().unwrap());
    drop(udp);
    let secrets = [0, 1].map(|host| Secret::new([11 + host; 32]));
    let mut host = 0;
    streams.map(|streams| {
        let (own, other) = (host, 1 - host);
        host += 1;
        let peer = PeerConfig {
            name: format!("host{other}"),
            public: secrets[other].public(),
            psk: None,
            endpoint: Some(Endpoint::Udp(at[other])),
            networks: vec![Net::parse(&format!("{}/32", inner(other))).unwrap()],
            datagram_max: 1472,
            below: 42,
            rate: None,
            services: [Service::PROMPT, BULK, BULK, BULK],
            queue: chappe_core::Duration::from_millis(100),
            keepalive: IDLE_KEEPALIVE,
            paths: Vec::new(),
        };
        let config = TunnelConfig {
            device: "none".into(),
            secret: secrets[own].clone(),
            addresses: vec![(inner(own), 24)],
            routes: true,
            carrier: Carrier::Udp(at[own]),
            device_queue: 1_000,
            mtu: None,
            memory: 64 << 20,
            offloads: true,
            signals: false,
            streams: Some(streams),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let (opened, is_open) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let mut tunnel = Tunnel::open(&config, vec![peer]).unwrap();
            opened.send(()).unwrap();
            let run = tunnel.run(|_, _| match asked.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            run.unwrap();
            tunnel.streams().unwrap()
        });
        is_open.recv().unwrap();
        End {
            stop,
            thread: Some(thread),
        }
    })
}

impl End {
    /// Ends the tunnel: what became of its connections.
    fn end(mut self) -> StreamCounters {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn streams() -> StreamsConfig {
    StreamsConfig {
        connections: 64,
        buffer: 64 << 10,
        ..StreamsConfig::default()
    }
}

/// A service that sends back what it hears, and ends when its client has said all.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    at
}

/// Sends `octets` octets there and back, and reports whether all came, in order and with the end behind them.
fn exchange(mut stream: TcpStream, octets: usize, seed: u8) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_secs(300)))
        .unwrap();
    let sent: Vec<u8> = (0..octets)
        .map(|i| (i * 7 + i / 251) as u8 ^ seed)
        .collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    writing.join().unwrap();
    heard == sent
}

/// A connection through SOCKS, or the reply that refused it.
fn through(socks: SocketAddr, request: &[u8]) -> Result<TcpStream, u8> {
    let mut stream = TcpStream::connect(socks).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(300)))
        .unwrap();
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut greeted = [0; 2];
    stream.read_exact(&mut greeted).unwrap();
    assert_eq!(greeted, [5, 0]);
    stream.write_all(request).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    match reply[1] {
        0 => Ok(stream),
        refused => Err(refused),
    }
}

fn request(to: SocketAddr) -> Vec<u8> {
    let IpAddr::V4(address) = to.ip() else {
        panic!("{to}");
    };
    let mut request = vec![5, 1, 0, 1];
    request.extend(address.octets());
    request.extend(to.port().to_be_bytes());
    request
}

/// Goal: a forwarded port and SOCKS reach a service behind the other end, with every octet in order and both ends of each
/// connection; several at once; a name, an unknown network, a port that is not served, and a service that does not run get their answers.
#[test]
fn ports_and_socks_reach_what_the_other_end_serves() {
    let (service, closed) = (echo(), free());
    let (port, socks) = (free(), free());
    let ends = link([
        StreamsConfig {
            ports: vec![(port, (inner(1), 7).into())],
            socks: Some(socks),
            ..streams()
        },
        StreamsConfig {
            served: vec![(7, service), (8, closed)],
            ..streams()
        },
    ]);
    assert!(exchange(TcpStream::connect(port).unwrap(), 1_000_000, 1));
    let many = (0..10).map(|seed| {
        thread::spawn(move || {
            let stream = match seed % 2 {
                0 => TcpStream::connect(port).unwrap(),
                _ => through(socks, &request((inner(1), 7).into())).unwrap(),
            };
            exchange(stream, 100_000, seed)
        })
    });
    let many: Vec<_> = many.collect();
    assert!(many.into_iter().all(|one| one.join().unwrap()));
    // Port 9 is not served: refused. No peer has the network: unreachable. BIND is not offered.
    assert_eq!(
        through(socks, &request((inner(1), 9).into())).err(),
        Some(5)
    );
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 80));
    assert_eq!(through(socks, &request(elsewhere)).err(), Some(3));
    let mut bind = request((inner(1), 7).into());
    bind[1] = 2;
    assert_eq!(through(socks, &bind).err(), Some(7));
    // A name is looked up beside the loop: this one is known everywhere, and no peer has its network.
    let name = [&[5, 1, 0, 3, 9][..], b"localhost", &[0, 80]].concat();
    assert_eq!(through(socks, &name).err(), Some(3));
    // The service there does not run: refused as by a host without it.
    assert_eq!(
        through(socks, &request((inner(1), 8).into())).err(),
        Some(5)
    );
    let [near, far] = ends.map(End::end);
    assert_eq!((near.failed, far.failed), (5, 1), "{near:?} {far:?}");
    assert_eq!((near.refused, far.refused), (0, 0));
}

/// Goal: no more connections than the limit; what is over it is reset and counted, and places become free again.
#[test]
fn connections_over_the_limit_are_reset() {
    let service = echo();
    let port = free();
    let ends = link([
        StreamsConfig {
            ports: vec![(port, (inner(1), 7).into())],
            connections: 2,
            ..streams()
        },
        StreamsConfig {
            served: vec![(7, service)],
            ..streams()
        },
    ]);
    let says = |stream: &mut TcpStream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(300)))
            .unwrap();
        let said = stream
            .write_all(b"x")
            .and_then(|()| stream.read_exact(&mut [0]));
        said.is_ok()
    };
    let mut two = [(); 2].map(|()| TcpStream::connect(port).unwrap());
    assert!(two.iter_mut().all(says));
    let mut third = TcpStream::connect(port).unwrap();
    assert!(!says(&mut third));
    drop(two);
    // The places are free as soon as both ends have ended.
    let mut again = 0;
    while !says(&mut TcpStream::connect(port).unwrap()) {
        again += 1;
        assert!(again < 10_000);
        thread::sleep(Duration::from_millis(20));
    }
    let [near, _] = ends.map(End::end);
    assert_eq!(near.refused, 1 + again);
}
