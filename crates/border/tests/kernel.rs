//! The border router in front of this kernel: its TCP and UDP talk to motes three hops away, in real time.
//!
//! Goal: the features of the crate's README, with the errors that a router and a host report. Method: a row of perfect links
//! whose nodes hear their neighbours only; the loop runs here, clients with the standard library's sockets in a thread
//! beside it. Where the kernel forbids namespaces or TUN, it says so and passes. The machine may be busy: nothing here
//! depends on speed.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration as Span;

use chappe_border::{Border, Network, Status};
use chappe_core::Duration;
use chappe_mac::dot15d4;
use chappe_sim::{Matrix, Medium};
use chappe_sys::{Interface, namespace, packet};
use chappe_tcplp::host::octet;
use chappe_tcplp::tcp;

const NODES: usize = 5;
/// The last of the row.
const THERMOMETER: usize = 4;

fn main() {
    if let Err(error) = namespace::isolate_by_any_means() {
        return chappe_testkit::skip(error.to_string());
    }
    let mut border = match Border::open(row(), "lln%d", ()) {
        Ok(border) => border,
        Err(error) => return chappe_testkit::skip(error.to_string()),
    };
    invalid_device_names_are_refused();
    motes_connect_to_a_server(&mut border);
    pages_arrive_whole(&mut border);
    invalid_requests_get_an_error(&mut border);
    sinks_and_sources_work(&mut border);
    closed_ports_and_missing_nodes_are_reported(&mut border);
    coap_serves_blocks(&mut border);
    a_boards_program_answers(&mut border);
    garbage_is_counted(&mut border);
    many_connections_find_a_place(&mut border);
    iperf3_measures_both_directions(&mut border);
    println!("{}", Status::of(&border).text());
}

/// A row of perfect links: node 0 is the border.
fn row() -> Network {
    let silent = Matrix::silent(NODES);
    let matrix = (1..NODES).fold(silent, |matrix, node| matrix.with_link(node - 1, node, 1.0));
    Network {
        medium: Medium::matrix(&matrix).unwrap(),
        seed: 1,
        faults: Vec::new(),
        border: 0,
        parents: (0..NODES).map(|node| node.checked_sub(1)).collect(),
        mac: dot15d4::Config {
            retries: 7,
            ..dot15d4::Config::HAMILTON
        },
        leaves: Vec::new(),
        contexts: true,
        short: true,
        pace: [12, 0, 4, 12, 12].map(Duration::from_millis).to_vec(),
        tcp: tcp::Config {
            mss: 498,
            ..tcp::Config::STANDARD
        },
        leaf_ack_delay: tcp::Config::STANDARD.delayed_ack,
        window: 4,
        prefix: "fd00:2:3:4::".parse().unwrap(),
        reports: vec![(2, server())],
        thermometers: vec![THERMOMETER],
    }
}

/// The server of mote 2, on the host.
fn server() -> SocketAddrV6 {
    SocketAddrV6::new("fd00:2:3:4::1".parse().unwrap(), 9001, 0, 0)
}

/// Runs a client in a thread while the network runs here.
fn client<T: Send>(border: &mut Border, client: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let client = scope.spawn(client);
        while !client.is_finished() {
            let end = border.clock().now() + Duration::from_millis(20);
            border.run(Some(end)).unwrap();
        }
        client.join().unwrap()
    })
}

fn mote(border: &Border, node: usize) -> Ipv6Addr {
    border.network().address(node)
}

/// Sends `request` and reads until the mote closes.
fn ask(to: Ipv6Addr, request: &str) -> String {
    let mut stream = TcpStream::connect((to, 80)).unwrap();
    stream.set_read_timeout(Some(Span::from_secs(180))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn invalid_device_names_are_refused() {
    println!("invalid_device_names_are_refused");
    for name in ["a/b", "a-name-that-is-much-too-long"] {
        let error = Border::open(row(), name, ()).err().expect("no such name");
        assert!(error.to_string().contains("TUN"), "{error}");
    }
}

/// A mote is a client of this kernel: refused at first, since no program listens; connected then; and again after the server has closed.
fn motes_connect_to_a_server(border: &mut Border) {
    println!("motes_connect_to_a_server");
    let (from, until) = (
        mote(border, 2),
        border.clock().now() + Duration::from_millis(500),
    );
    border.run(Some(until)).unwrap();
    assert_eq!(border.station(2).host().unwrap().app().served().lines, 0);
    let lines = client(border, || {
        let server = TcpListener::bind(server()).unwrap();
        let serve = |lines: usize| {
            let (stream, peer) = server.accept().unwrap();
            assert_eq!(peer.ip(), from);
            stream.set_read_timeout(Some(Span::from_secs(180))).unwrap();
            let lines = BufReader::new(&stream).lines().take(lines);
            lines.map(|line| line.unwrap()).collect::<Vec<_>>()
        };
        [serve(3), serve(2)].concat()
    });
    let uptimes = lines.iter().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["node"], 2);
        line["uptime_ms"].as_u64().unwrap()
    });
    let uptimes: Vec<u64> = uptimes.collect();
    assert_eq!(uptimes.len(), 5);
    // A line a second: the second does not begin before the first one was written.
    assert!(uptimes.is_sorted_by(|a, b| b - a >= 1000), "{uptimes:?}");
    assert!(border.station(2).host().unwrap().app().served().lines >= 5);
}

fn pages_arrive_whole(border: &mut Border) {
    println!("pages_arrive_whole");
    let to = mote(border, 3);
    let answer = client(border, || {
        ask(
            to,
            "GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
    });
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let info: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(info["node"], 3);
    assert_eq!(info["tcp"]["state"], "Established");
    assert_eq!(info["tcp"]["mss_bytes"], 486);
    let length = format!("Content-Length: {}\r\n", body.len());
    assert!(head.contains(&length), "{head}");
    // Two requests on one connection, the second one for the head only.
    let both = "GET / HTTP/1.1\r\nHost: x\r\n\r\nHEAD /50k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = client(border, || ask(to, both));
    assert!(answer.contains("<h1>node 3</h1>") && answer.contains("Content-Length: 50000"));
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

fn invalid_requests_get_an_error(border: &mut Border) {
    println!("invalid_requests_get_an_error");
    let to = mote(border, 1);
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1100));
    for (request, status) in [
        ("GET /nothing HTTP/1.0\r\n\r\n", "404"),
        // RFC 9112 3.2.
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("what is this\r\n\r\n", "400"),
        ("DELETE / HTTP/1.0\r\n\r\n", "405"),
        (&long[..], "431"),
    ] {
        let answer = client(border, || ask(to, request));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

fn sinks_and_sources_work(border: &mut Border) {
    println!("sinks_and_sources_work");
    let to = mote(border, 2);
    client(border, || {
        let mut stream = TcpStream::connect((to, 9)).unwrap();
        stream.write_all(&[7; 3000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // The mote closes when it has read all.
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    });
    let served = border.station(2).host().unwrap().app().served();
    assert_eq!(served.sunk, 3000);
    let came = client(border, || {
        let mut stream = TcpStream::connect((to, 19)).unwrap();
        let mut came = vec![0; 3000];
        stream.read_exact(&mut came).unwrap();
        came
    });
    assert!(came.iter().zip(0..).all(|(&here, at)| here == octet(at)));
}

fn closed_ports_and_missing_nodes_are_reported(border: &mut Border) {
    println!("closed_ports_and_missing_nodes_are_reported");
    let (far, own) = (mote(border, 3), mote(border, 0));
    let missing = border.network().address(77);
    let refused = |to: Ipv6Addr| TcpStream::connect((to, 7)).err().map(|e| e.kind());
    assert_eq!(
        client(border, || refused(far)),
        Some(ErrorKind::ConnectionRefused)
    );
    let gone = client(border, || refused(missing));
    assert_eq!(gone, Some(ErrorKind::HostUnreachable));
    // The border router itself has no ports.
    assert_eq!(
        client(border, || refused(own)),
        Some(ErrorKind::ConnectionRefused)
    );
    let udp = client(border, || {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        socket.set_read_timeout(Some(Span::from_secs(180))).unwrap();
        socket.connect((far, 4000)).unwrap();
        socket.send(b"hello").unwrap();
        socket.recv(&mut [0; 64]).err().map(|error| error.kind())
    });
    assert_eq!(udp, Some(ErrorKind::ConnectionRefused));
}

/// Sends one CoAP message and gives the answer.
fn coap(to: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("[::]:0").unwrap();
    socket.set_read_timeout(Some(Span::from_secs(6))).unwrap();
    socket.connect((to, 5683)).unwrap();
    socket.send(message).unwrap();
    let mut answer = [0; 1500];
    let len = socket.recv(&mut answer).ok()?;
    Some(answer[..len].to_vec())
}

fn coap_serves_blocks(border: &mut Border) {
    println!("coap_serves_blocks");
    let to = mote(border, 3);
    let (id, token) = ([0x12, 0x34], 0x77);
    // CON GET with a token of one octet; Uri-Path, then Block2 6/0/512 in two octets or one.
    let get = |path: &[u8], rest: &[u8]| {
        let head = [
            &[0x41, 1, id[0], id[1], token, 0xb0 | path.len() as u8],
            path,
        ]
        .concat();
        [&head[..], rest].concat()
    };
    let sensors = client(border, || coap(to, &get(b"sensors", &[]))).unwrap();
    assert_eq!(sensors[..5], [0x61, 0x45, id[0], id[1], token]);
    let body = sensors.split(|&octet| octet == 0xff).nth(1).unwrap();
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!(body["node"], 3);
    // Block 97 of 98 of the large page, the last one: 50,000 - 97 * 512 octets.
    let last = client(border, || coap(to, &get(b"50k", &[0xc2, 0x06, 0x15]))).unwrap();
    let payload = &last[last.len() - 336..];
    assert_eq!(last[last.len() - 337], 0xff);
    assert!(
        payload
            .iter()
            .zip(97 * 512..)
            .all(|(&here, at)| here == octet(at))
    );
    let beyond = client(border, || coap(to, &get(b"50k", &[0xc2, 0x06, 0x25]))).unwrap();
    assert_eq!(beyond[1], 0x80, "4.00");
    let missing = client(border, || coap(to, &get(b"x", &[]))).unwrap();
    assert_eq!(missing[1], 0x84, "4.04");
    // More than a block can hold, in one message.
    let post = [
        &[0x41, 2, 9, 9, token, 0xb4][..],
        b"sink",
        &[0xff],
        &[1; 1100],
    ]
    .concat();
    let large = client(border, || coap(to, &post)).unwrap();
    assert_eq!(large[1], 0x8d, "4.13");
    let ping = client(border, || coap(to, &[0x40, 0, 5, 5])).unwrap();
    assert_eq!(ping, [0x70, 0, 5, 5]);
}

/// Octets that are no packets, straight into the device, and no CoAP, to its port: counted, and the network goes on.
/// Goal: the program of the nRF52840's image answers this kernel. Method: mote 4 runs its tasks; each request of its own
/// visitor, and CoAP.
fn a_boards_program_answers(border: &mut Border) {
    println!("a_boards_program_answers");
    let to = mote(border, THERMOMETER);
    let get = "GET /temperature HTTP/1.1\r\nHost: mote\r\n\r\n";
    let answer = client(border, || ask(to, get));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let degrees: f64 = body.trim().parse().expect("a temperature");
    // 21.50 and a hundredth for each second since the network began.
    assert!((21.5..100.0).contains(&degrees), "{body}");
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\nHost: mote\r\n\r\n", "404"),
        ("POST /temperature HTTP/1.1\r\nHost: mote\r\n\r\n", "405"),
        ("GET /temperature HTTP/1.1\r\n\r\n", "400"),
    ] {
        let answer = client(border, || ask(to, request));
        assert_eq!(answer.get(9..12), Some(status), "{answer}");
    }
    // GET /temperature, confirmable, with message number 7 (RFC 7252 3).
    let message = b"\x40\x01\x00\x07\xbbtemperature";
    let answer = client(border, || {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        socket.set_read_timeout(Some(Span::from_secs(120))).unwrap();
        socket.send_to(message, (to, 5683)).unwrap();
        let mut answer = [0; 100];
        let len = socket.recv(&mut answer).unwrap();
        answer[..len].to_vec()
    });
    assert_eq!(
        answer.get(..4),
        Some(&[0x60, 0x45, 0, 7][..]),
        "{answer:02x?}"
    );
    let counted = border.station(THERMOMETER);
    assert!(counted.mac().data_sent > 0 && counted.host().is_none());
}

fn garbage_is_counted(border: &mut Border) {
    println!("garbage_is_counted");
    let before = Status::of(border).gateway.malformed;
    let device = Interface::find(border.device()).unwrap();
    let socket = packet::open(&device, 0x86dd, packet::Framing::Payload).unwrap();
    let own = border.network().kernel().octets();
    let mut cut = [0x60; 60];
    cut[8..24].copy_from_slice(&own);
    for octets in [&[0x60; 3][..], &[0xff; 1000], &cut] {
        socket
            .send([(octets, packet::BROADCAST)].into_iter())
            .unwrap();
    }
    let to = mote(border, 1);
    client(border, || {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        for garbage in [&[][..], &[0xff; 3], &[0x4f; 50], &[0; 1000]] {
            socket.send_to(garbage, (to, 5683)).unwrap();
        }
        thread::sleep(Span::from_millis(300));
    });
    let malformed = Status::of(border).gateway.malformed - before;
    assert_eq!(malformed, 3);
    pages_arrive_whole(border);
}

/// iperf3 to a mote and from it, one test after the other: each ends well, and the second one has the air for itself.
fn iperf3_measures_both_directions(border: &mut Border) {
    println!("iperf3_measures_both_directions");
    let to = mote(border, 1).to_string();
    for direction in [&[][..], &["-R"]] {
        let run = || {
            let mut command = Command::new("iperf3");
            command.args(["-J", "-t", "2", "-c", &to]).args(direction);
            command.output()
        };
        let Ok(output) = client(border, run) else {
            return chappe_testkit::skip("there is no iperf3");
        };
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let octets = said["end"]["sum_received"]["bytes"].as_u64();
        println!("  {direction:?} {octets:?}");
        assert!(output.status.success(), "{said}");
        // A fifth of what an idle machine carries in two seconds.
        assert!(octets.is_some_and(|octets| octets > 4000), "{said}");
    }
}

/// One connection after the other, twice as many as there are sockets, each closed by the mote first, which then waits
/// for a minute: the places of those that wait are given away.
fn many_connections_find_a_place(border: &mut Border) {
    println!("many_connections_find_a_place");
    let to = mote(border, 1);
    for _ in 0..2 * chappe_border::SOCKETS {
        let answer = client(border, || ask(to, "GET / HTTP/1.0\r\n\r\n"));
        assert!(answer.contains("node 1"), "{answer}");
    }
}
