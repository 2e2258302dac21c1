//! Plays the scripts of this project's TCP to smoltcp, as an example of another stack under test. A script that fails
//! here is not a defect of smoltcp by itself: many test mechanisms that smoltcp does not claim.

use std::collections::VecDeque;
use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;

use chappe_core::Instant;
use chappe_packet_script::{
    Answer, Call, LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT, Stack, run, span,
};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant as Time};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Scripts use segments of 1000 octets, plus IPv6 and TCP headers.
const MTU: usize = 1060;
/// Octets of both buffers of this project's TCP in the scripts, by default.
const BUFFER: usize = 20_000;

/// One host: an interface, one socket, and a wire that is two queues.
struct Smoltcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// Octets of its buffers for receiving and sending.
    sizes: (usize, usize),
    wire: Wire,
    /// The next deadline, kept because `poll_at` needs the interface mutably.
    wake: Option<Instant>,
}

#[derive(Default)]
struct Wire {
    arriving: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

struct Arriving(Vec<u8>);

impl RxToken for Arriving {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Leaving<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Arriving;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _now: Time) -> Option<(Arriving, Leaving<'_>)> {
        let packet = self.arriving.pop_front()?;
        Some((Arriving(packet), Leaving(&mut self.leaving)))
    }

    fn transmit(&mut self, _now: Time) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

fn ip(address: Ipv6Addr) -> IpAddress {
    IpAddress::Ipv6(address)
}

fn socket((receive, send): (usize, usize)) -> Socket<'static> {
    let buffer = |octets| SocketBuffer::new(vec![0; octets]);
    let mut socket = Socket::new(buffer(receive), buffer(send));
    socket.set_congestion_control(CongestionControl::Reno);
    socket.set_ack_delay(Some(Duration::from_millis(100)));
    socket
}

fn time(now: Instant) -> Time {
    Time::from_micros((now.nanos() / 1000) as i64)
}

impl Smoltcp {
    fn new() -> Smoltcp {
        let mut wire = Wire::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut wire, Time::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses
                .push(IpCidr::new(ip(LOCAL), 64))
                .expect("there is room for one");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let sizes = (BUFFER, BUFFER);
        let socket = sockets.add(socket(sizes));
        Smoltcp {
            interface,
            sockets,
            socket,
            sizes,
            wire,
            wake: None,
        }
    }

    /// Replaces the socket by one with other buffers, since smoltcp's cannot be resized.
    fn resize(&mut self, sizes: (usize, usize)) {
        self.sockets.remove(self.socket);
        self.socket = self.sockets.add(socket(sizes));
        self.sizes = sizes;
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn poll(&mut self, now: Instant) {
        let at = time(now);
        self.interface.poll(at, &mut self.wire, &mut self.sockets);
        let next = self.interface.poll_at(at, &self.sockets);
        // "Now" right after a poll means that nothing is left to do at this instant.
        let soon = now + chappe_core::Duration::from_micros(1);
        let instant = |at: Time| Instant::from_nanos(at.total_micros().unsigned_abs() * 1000);
        self.wake = next.map(|at| instant(at).max(soon));
    }
}

impl Stack for Smoltcp {
    fn configure(&mut self, key: &str, value: &str) -> Result<(), String> {
        let octets = || value.parse().map_err(|_| format!("{key}: no number"));
        match (key, value) {
            ("send_buffer", _) => self.resize((self.sizes.0, octets()?)),
            ("receive_buffer", _) => self.resize((octets()?, self.sizes.1)),
            ("nagle", value) => self.socket().set_nagle_enabled(value == "on"),
            ("delayed_ack", value) => {
                let micros = span(value)?.nanos() / 1000;
                let delay = (micros > 0).then_some(Duration::from_micros(micros));
                self.socket().set_ack_delay(delay);
            }
            ("rack" | "tail_loss_probe" | "prr" | "undo" | "limited_transmit" | "ecn", "off") => {}
            ("congestion", "newreno") | ("mss", "1000") => {}
            _ => return Err(format!("smoltcp has no {key}={value}")),
        }
        Ok(())
    }

    fn call(&mut self, _now: Instant, call: &Call) -> Result<Answer, String> {
        let said = |why: &dyn std::fmt::Debug| format!("{why:?}");
        match call {
            Call::Listen => self.socket().listen(LOCAL_PORT).map_err(|why| said(&why))?,
            Call::Connect => {
                let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
                let remote = (ip(REMOTE), REMOTE_PORT);
                socket
                    .connect(self.interface.context(), remote, LOCAL_PORT)
                    .map_err(|why| said(&why))?;
            }
            Call::Accept if self.socket().may_recv() || self.socket().may_send() => {}
            Call::Accept => return Err("no connection was accepted".into()),
            Call::Write(data) => {
                let taken = self.socket().send_slice(data).map_err(|why| said(&why))?;
                return Ok(Answer::Written(taken));
            }
            Call::Read(max) => {
                let mut data = vec![0; *max];
                let len = self.socket().recv_slice(&mut data).unwrap_or(0);
                data.truncate(len);
                return Ok(Answer::Read(data));
            }
            Call::Shutdown | Call::Close => self.socket().close(),
            Call::Abort => self.socket().abort(),
        }
        Ok(Answer::Done)
    }

    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.wire.arriving.push_back(packet.to_vec());
        self.poll(now);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut [u8]) -> Option<usize> {
        if self.wire.leaving.is_empty() {
            self.poll(now);
        }
        let ready = self.wire.leaving.pop_front()?;
        packet[..ready.len()].copy_from_slice(&ready);
        Some(ready.len())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.poll(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }

    fn observe(&self, key: &str) -> Option<String> {
        let socket = self.sockets.get::<Socket<'_>>(self.socket);
        Some(match key {
            "state" => name(socket.state()).into(),
            "unread" => socket.recv_queue().to_string(),
            "eof" => match !socket.may_recv() && socket.recv_queue() == 0 {
                true => "yes".into(),
                false => "no".into(),
            },
            _ => return None,
        })
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Closed => "CLOSED",
        State::Listen => "LISTEN",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
    }
}

/// Goal: the runner judges another stack rightly. Method: every script, with known outcomes for six: smoltcp exchanges
/// data, and it has neither D-SACK nor PAWS.
#[test]
fn known_properties_of_smoltcp_are_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tcplp/tests/scripts");
    let include = |name: &str| {
        let path = folder.join("common").join(name).with_extension("pkt");
        fs::read_to_string(path).ok()
    };
    let paths = chappe_testkit::script::files(&folder, "pkt");
    let mut passed = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("a script can be read");
        let name = path
            .strip_prefix(&folder)
            .unwrap_or(path)
            .display()
            .to_string();
        match run(&text, &mut Smoltcp::new(), &include) {
            Ok(()) => passed.push(name),
            Err(why) => println!("{name}: {why}"),
        }
    }
    println!(
        "smoltcp passes {} of {} scripts:",
        passed.len(),
        paths.len()
    );
    for name in &passed {
        println!("  {name}");
    }
    let passes = |name: &str| passed.iter().any(|passed| passed == name);
    let known = [
        ("rfc2018/one-block.pkt", true),
        ("rfc9293/3.7.4-nagle.pkt", true),
        ("rfc9293/3.6-simultaneous-close.pkt", true),
        ("rfc2018/most-recent-first.pkt", false),
        ("rfc2883/4.1-whole-duplicate.pkt", false),
        ("rfc5961/4.2-syn-in-window.pkt", false),
    ];
    for (name, passes_it) in known {
        assert_eq!(passes(name), passes_it, "{name}");
    }
}
