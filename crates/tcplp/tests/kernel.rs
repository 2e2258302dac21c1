//! This TCP against Linux's, over a TUN device in a network namespace: each end sends a stream through a network that loses,
//! duplicates, reorders, corrupts and marks packets. The data read must be the data written, and nothing may stall.
//!
//! Every case is a separate connection, and all run at once: the kernel as client or as server, with the named congestion
//! control and separate faults. The short form takes seconds; `cargo test --release -p chappe-tcplp
//! --test kernel -- long` takes minutes and more loss. Where namespaces or TUN devices are forbidden, it says so and
//! passes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test against the kernel, in real time"
)]

#[path = "suite/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed, Wake};
use chappe_sys::namespace::isolate_by_any_means;
use chappe_sys::tun::{Kind, Tun};
use chappe_sys::{Clock, EventLoop, Links, set_congestion};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Endpoint, Local, NewReno, State};

use support::host::{Host, Sizes};
use support::ip;
use support::network::{Air, Faults};

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Case `n` uses this port plus `n` at our end.
const PORT: u16 = 20_000;

/// One connection with the kernel: its options, faults and amounts of data.
#[derive(Clone)]
struct Case {
    /// Whether the kernel opens it, or we do.
    kernel_opens: bool,
    congestion: &'static str,
    faults: Faults,
    config: Config,
    sizes: Sizes,
    /// Octets that we send, and that the kernel sends.
    octets: [usize; 2],
    seed: u64,
}

impl Case {
    fn name(&self) -> String {
        format!(
            "kernel as {} with {}, loss {:>2.0} %, reordering {:>2.0} %, mss {}, window {}",
            if self.kernel_opens {
                "client"
            } else {
                "server"
            },
            self.congestion,
            self.faults.loss * 100.0,
            self.faults.reorder * 100.0,
            self.config.mss,
            self.sizes.send,
        )
    }

    /// What our end sends, or the kernel's.
    fn stream(&self, ours: bool) -> Vec<u8> {
        let mut data = vec![0; self.octets[usize::from(!ours)]];
        let purpose = Purpose::Trial(u32::from(ours));
        Seed(self.seed).stream(purpose).fill(&mut data);
        data
    }
}

fn main() {
    let long = std::env::args().any(|arg| arg == "long");
    if let Err(error) = isolate_by_any_means() {
        chappe_testkit::skip(error.to_string());
        return;
    }
    let tun = match Tun::create("chappe0", Kind::Tun) {
        Ok(tun) => tun,
        Err(error) => {
            chappe_testkit::skip(error.to_string());
            return;
        }
    };
    let links = Links::open().expect("the namespace is ours");
    links
        .add_address("chappe0", KERNEL, 24)
        .expect("an address");
    links.set_queue_len("chappe0", 2_000).expect("a long queue");
    links.up("chappe0").expect("the device goes up");
    // The kernel only asks for ECN if it is configured to.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1");
    let cases = cases(long, &available());
    let limit = Duration::from_secs(if long { 400 } else { 60 });
    let done = play(&tun, &cases, limit);
    println!("{} connections", done.len());
    let failed: Vec<&String> = done
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The congestion controls that this kernel lets us choose, of those that matter.
fn available() -> Vec<&'static str> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let mut names = Vec::new();
    for name in ["reno", "cubic", "bbr"] {
        match set_congestion(&listener, name) {
            Ok(()) => names.push(name),
            Err(error) => chappe_testkit::skip(format!("{name}: {error}")),
        }
    }
    names
}

fn cases(long: bool, congestion: &[&'static str]) -> Vec<Case> {
    let losses: &[f64] = match long {
        true => &[0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.21],
        false => &[0.0, 0.06],
    };
    let mut cases = Vec::new();
    for (n, &loss) in losses.iter().enumerate() {
        for &congestion in congestion {
            for kernel_opens in [false, true] {
                for rough in [false, true] {
                    let seed = cases.len() as u64;
                    let mss = if (n + cases.len() / 2).is_multiple_of(2) {
                        462
                    } else {
                        1220
                    };
                    cases.push(Case {
                        kernel_opens,
                        congestion,
                        faults: faults(loss, rough),
                        config: Config {
                            mss,
                            retries_max: 30,
                            syn_retries_max: 30,
                            rto_min: Duration::from_millis(200),
                            time_wait: Duration::from_millis(500),
                            window_scale: seed.is_multiple_of(3),
                            ..Config::STANDARD
                        },
                        sizes: Sizes {
                            send: usize::from(mss) * [4, 16][seed as usize / 2 % 2],
                            receive: usize::from(mss) * [4, 16][seed as usize / 3 % 2],
                            ..Sizes::default()
                        },
                        octets: match (long, loss > 0.1) {
                            (false, _) => [60_000; 2],
                            (true, false) => [300_000; 2],
                            // Linux takes the age of what was SACKed late for a round trip; once every second packet
                            // or acknowledgement is lost its timeout grows to half a minute.
                            (true, true) => [300_000, 15_000],
                        },
                        seed,
                    });
                }
            }
        }
    }
    cases
}

fn faults(loss: f64, rough: bool) -> Faults {
    let some = |probability| if rough { probability } else { 0.0 };
    Faults {
        loss,
        duplicate: some(0.02),
        reorder: some(0.05),
        corrupt: some(0.01),
        mark: some(0.02),
        delay: Duration::from_millis(5),
        jitter: Duration::from_millis(8),
        octet: Duration::from_micros(1),
    }
}

/// The kernel's end of a case, on a separate thread: an error message, or nothing.
fn kernel_end(
    case: &Case,
    listener: Option<TcpListener>,
    number: u16,
) -> JoinHandle<Result<(), String>> {
    let case = case.clone();
    std::thread::spawn(move || {
        let said = |what: &str, why: std::io::Error| format!("the kernel's end: {what}: {why}");
        let stream = match listener {
            Some(listener) => listener.accept().map_err(|why| said("accept", why))?.0,
            None => {
                TcpStream::connect((OURS, PORT + number)).map_err(|why| said("connect", why))?
            }
        };
        set_congestion(&stream, case.congestion).map_err(|why| why.to_string())?;
        let mut writer = stream.try_clone().map_err(|why| said("copy", why))?;
        let data = case.stream(false);
        let sending = std::thread::spawn(move || {
            writer.write_all(&data)?;
            writer.shutdown(Shutdown::Write)
        });
        let mut got = Vec::new();
        (&stream)
            .read_to_end(&mut got)
            .map_err(|why| said("read", why))?;
        let sent = sending.join().map_err(|_| "a panic".to_owned())?;
        sent.map_err(|why| said("write", why))?;
        match got == case.stream(true) {
            true => Ok(()),
            false => Err("the kernel read something else than we wrote".to_owned()),
        }
    })
}

/// Our end of a case.
struct End {
    host: Host,
    air: Air,
    /// What we send, and how far that is written.
    data: Vec<u8>,
    written: usize,
    /// The octets received so far, in order.
    got: Vec<u8>,
    finished: Option<Instant>,
    kernel: Option<JoinHandle<Result<(), String>>>,
}

impl End {
    fn new(case: &Case, number: u16, now: Instant) -> End {
        let mut host = Host::new(number, case.config, case.sizes, Any::NewReno(NewReno));
        host.local = Box::leak(Box::new(Local {
            address: IpAddr::V4(OURS),
            ..*host.local
        }));
        let kernel = match case.kernel_opens {
            true => {
                host.listen(PORT + number, 1);
                kernel_end(case, None, number)
            }
            false => {
                let listener = TcpListener::bind((KERNEL, 0)).expect("a free port");
                let to: SocketAddr = listener.local_addr().expect("it is bound");
                let kernel = kernel_end(case, Some(listener), number);
                host.connect(now, PORT + number, Endpoint::new(to.ip(), to.port()));
                kernel
            }
        };
        End {
            host,
            air: Air::new(case.faults, case.seed),
            data: case.stream(true),
            written: 0,
            got: Vec::new(),
            finished: None,
            kernel: Some(kernel),
        }
    }

    /// Reads what has come, writes what fits, closes when all is said.
    fn serve(&mut self, now: Instant) {
        let Some(socket) = self.host.sockets.first_mut() else {
            return;
        };
        let mut buffer = [0; 4096];
        loop {
            let len = socket.read(&mut buffer);
            if len == 0 {
                break;
            }
            self.got.extend_from_slice(&buffer[..len]);
        }
        self.written += socket.write(&self.data[self.written..]);
        if self.written == self.data.len() && socket.state() == State::Established {
            socket.shutdown();
        }
        if socket.at_end() && socket.may_write() && self.written == self.data.len() {
            socket.shutdown();
        }
        if socket.state() == State::Closed && self.finished.is_none() {
            self.finished = Some(now);
        }
    }

    /// Gives the air what the host has to send, and each end what has landed.
    fn turn(&mut self, now: Instant, tun: &Tun) {
        self.host.handle_timeout(now);
        self.serve(now);
        loop {
            let mut packet = [0; 2048];
            while let Some(len) = self.host.poll_packet(now, &mut packet) {
                self.air.fly(now, 1, packet[..len].to_vec());
            }
            let Some((to, packet)) = self.air.land(now) else {
                return;
            };
            match to {
                0 => self.host.handle_packet(now, &packet),
                // A packet that the kernel has no room for is lost like any other.
                _ => drop(tun.send(&packet)),
            }
            self.serve(now);
        }
    }

    fn next(&self) -> Option<Instant> {
        let wake = self.host.poll_timeout().map(|wake: Wake| wake.at);
        [wake, self.air.next()].into_iter().flatten().min()
    }
}

/// Plays all cases to their ends, or to the limit.
fn play(tun: &Tun, cases: &[Case], limit: Duration) -> Vec<Result<(), String>> {
    let clock = Clock::start();
    let mut waiting = EventLoop::new(clock).expect("an event loop");
    waiting.add(tun, 0).expect("the device can be waited for");
    let mut ends: BTreeMap<u16, End> = (0..)
        .zip(cases)
        .map(|(number, case)| (number, End::new(case, number, clock.now())))
        .collect();
    let mut ready = Vec::new();
    while clock.now() < Instant::ZERO + limit && ends.values().any(|end| end.finished.is_none()) {
        let mut packet = [0; 2048];
        while let Some(len) = tun.receive(&mut packet).expect("the device is up") {
            let now = clock.now();
            let to = ip::parse(&packet[..len]).and_then(|packet| {
                Some(u16::from_be_bytes([
                    *packet.segment.get(2)?,
                    *packet.segment.get(3)?,
                ]))
            });
            if let Some(end) = to.and_then(|port| ends.get_mut(&port.checked_sub(PORT)?)) {
                end.air.fly(now, 0, packet[..len].to_vec());
            }
        }
        let now = clock.now();
        ends.values_mut().for_each(|end| end.turn(now, tun));
        let next = ends.values().filter_map(End::next).min();
        let soon = next.unwrap_or(now + Duration::from_millis(100));
        waiting.set_deadline(Some(soon)).expect("a deadline");
        waiting.wait(&mut ready).expect("the loop waits");
    }
    ends.values_mut()
        .zip(cases)
        .map(|(end, case)| judge(end, case))
        .collect()
}

fn judge(end: &mut End, case: &Case) -> Result<(), String> {
    let info = end
        .host
        .sockets
        .first()
        .map(|socket| (socket.state(), socket.failure(), socket.info()));
    let Some(finished) = end.finished else {
        let (read, written) = (end.got.len(), end.written);
        return Err(format!(
            "{}: stalled, {written} written, {read} read: {info:#?}",
            case.name()
        ));
    };
    println!("{}: {:.1} s", case.name(), finished.as_secs_f64());
    let failure = info.and_then(|(_, failure, _)| failure);
    if failure.is_some() || end.got != case.stream(false) {
        let (read, wanted) = (end.got.len(), case.octets[1]);
        return Err(format!(
            "{}: {failure:?}, {read} octets of {wanted}",
            case.name()
        ));
    }
    let kernel = end.kernel.take().map(JoinHandle::join);
    match kernel {
        Some(Ok(result)) => result.map_err(|why| format!("{}: {why}", case.name())),
        _ => Err(format!("{}: the kernel's end is gone", case.name())),
    }
}
