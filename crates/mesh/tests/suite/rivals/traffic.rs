//! Programs on the hosts: kernel TCP, ping, and what the kernel counts.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chappe_sys::namespace::NetworkNamespace;

const PORT: u16 = 5201;

/// CS4: the traffic class of video (AC_VI).
pub const VIDEO: u8 = 0x80;

/// Where a TCP connection leads, and how it goes there.
#[derive(Clone, Debug)]
pub struct Way {
    pub address: String,
    pub congestion: String,
    pub traffic_class: u8,
}

/// A TCP connection that sends without an end; counts what arrives.
pub struct Transfer {
    pub octets: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    pub fn start(
        (from, to): (&NetworkNamespace, &NetworkNamespace),
        way: Way,
        port: u16,
    ) -> Transfer {
        let (octets, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let port = PORT + port;
        let listener = to
            .run(|| TcpListener::bind(("0.0.0.0", port)).unwrap())
            .unwrap();
        let (count, ends) = (octets.clone(), stop.clone());
        let sink = thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            chappe_sys::set_traffic_class(&stream, way.traffic_class).expect("a traffic class");
            let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
            let mut room = vec![0; 1 << 16];
            while !ends.load(Ordering::Relaxed) {
                match stream.read(&mut room) {
                    Ok(0) => return,
                    Ok(len) => drop(count.fetch_add(len as u64, Ordering::Relaxed)),
                    Err(_) => {}
                }
            }
        });
        // A socket stays in the namespace in which it was made.
        let ends = stop.clone();
        let enter = from.run(NetworkNamespace::current).unwrap().unwrap();
        let source = thread::spawn(move || {
            enter.enter().unwrap();
            let address = format!("{}:{port}", way.address).parse().unwrap();
            let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(10))
            else {
                return;
            };
            let set = chappe_sys::set_congestion(&stream, &way.congestion)
                .and_then(|()| chappe_sys::set_traffic_class(&stream, way.traffic_class));
            if let Err(error) = set {
                return eprintln!("{error}");
            }
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let data = vec![7; 1 << 14];
            while !ends.load(Ordering::Relaxed) {
                match stream.write(&data) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        });
        Transfer {
            octets,
            stop,
            threads: vec![sink, source],
        }
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A sender that still connects ends with its program.
        drop(self.threads);
    }
}

/// A `ping` with its answers: when each came, and the round-trip time.
pub struct Ping {
    child: Child,
    pub answers: Arc<Mutex<Vec<(Instant, f64)>>>,
}

impl Ping {
    pub fn start(from: &NetworkNamespace, address: &str, every_s: f64) -> Ping {
        let mut command = Command::new("ping");
        command.args(["-n", "-i", &every_s.to_string(), address]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = from.run(|| command.spawn()).unwrap().expect("ping");
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (lines, noted) = (
            BufReader::new(child.stdout.take().unwrap()),
            answers.clone(),
        );
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let took = line
                    .split("time=")
                    .nth(1)
                    .and_then(|rest| rest.split(' ').next());
                if let Some(took) = took.and_then(|took| took.parse::<f64>().ok()) {
                    noted.lock().unwrap().push((Instant::now(), took / 1e3));
                }
            }
        });
        Ping { child, answers }
    }

    /// Whether it has ended: it does at once where there is no route yet.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }

    pub fn since(&self, begin: Instant) -> Vec<(Instant, f64)> {
        let answers = self.answers.lock().unwrap();
        answers
            .iter()
            .filter(|(at, _)| *at >= begin)
            .copied()
            .collect()
    }
}

impl Drop for Ping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the kernel of a host has counted of TCP: segments sent, sent again, and those of which the other end said that it had
/// them already (duplicate SACK, RFC 2883): sent again without need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segments {
    pub sent: u64,
    pub again: u64,
    pub needless: u64,
}

impl Segments {
    pub fn of(host: &NetworkNamespace) -> Segments {
        let read = |path: &'static str| host.run(|| fs::read_to_string(path)).unwrap().unwrap();
        let (snmp, netstat) = (
            read("/proc/thread-self/net/snmp"),
            read("/proc/thread-self/net/netstat"),
        );
        Segments {
            sent: value(&snmp, "Tcp:", "OutSegs"),
            again: value(&snmp, "Tcp:", "RetransSegs"),
            needless: value(&netstat, "TcpExt:", "TCPDSACKRecv"),
        }
    }

    pub fn minus(self, before: Segments) -> Segments {
        Segments {
            sent: self.sent - before.sent,
            again: self.again - before.again,
            needless: self.needless - before.needless,
        }
    }
}

/// A value of a table with a line of names and a line of values.
fn value(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(table));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let place = names.split(' ').position(|found| found == name);
    place
        .and_then(|place| values.split(' ').nth(place)?.parse().ok())
        .unwrap_or(0)
}

/// Processor time of a process so far, in seconds: fields 14 and 15 of its `stat` (proc(5)), in ticks of 10 ms.
pub fn processor(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or("").split(' ');
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}
