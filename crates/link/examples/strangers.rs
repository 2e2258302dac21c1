//! What a stranger's datagram costs a link, with one peer and with a thousand: processor time of the whole program, system calls and
//! wake-ups included.
//!
//! `cargo run --release -p chappe-link --example strangers [SECONDS]`. A link runs in a namespace; from another one datagrams come in
//! groups of 64, as fast as they are taken. The time that the link takes without them is subtracted.

#[path = "../tests/suite/medium/mod.rs"]
mod medium;
#[path = "../tests/suite/medium/tunnels.rs"]
mod tunnels;

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration as Span, Instant as Watch};

use chappe_core::{Instant, Purpose, Seed};
use chappe_link::{Gate, PROTOCOL, Peer, PeerConfig, Secret};
use chappe_testkit::Words;
use medium::{Field, address, isolated};
use tunnels::{Ends, Running};

fn main() {
    let mut words = Words::of_process("strangers [SECONDS]");
    let seconds = words.next("number of seconds").unwrap_or(1.0);
    words.end();
    isolated(|| {
        println!("datagram | peers | ns of processor for each | datagrams");
        for kind in KINDS {
            for peers in [1, 1_000] {
                measure(kind, peers, seconds);
            }
        }
    });
}

const KINDS: [&str; 4] = [
    "noise",
    "call without our key",
    "frame to no session",
    "call by an unknown key",
];

/// Datagrams of a kind, all different.
fn datagrams(kind: &str) -> Vec<Vec<u8>> {
    let mut random = Seed(1).stream(Purpose::Trial(0));
    let mut gate = Gate::new(PROTOCOL, Secret::new([99; 32]), [1; 32]);
    (0..=255)
        .map(|number| {
            let mut octets = vec![0; if kind.starts_with("frame") { 1400 } else { 172 }];
            random.fill(&mut octets);
            match kind {
                "noise" => octets[0] = 77,
                "frame to no session" => octets[..2].copy_from_slice(&[3, 0]),
                "call without our key" => {
                    octets[..2].copy_from_slice(&[1, PROTOCOL.version]);
                }
                _ => octets = call(&mut gate, number),
            }
            octets
        })
        .collect()
}

/// A call by a host that knows the public key of host 0, which does not know it.
fn call(gate: &mut Gate, seed: u8) -> Vec<u8> {
    let config = PeerConfig {
        name: "victim".into(),
        public: Ends::usual().keys[0].public(),
        psk: None,
        endpoint: Some(chappe_sys::Endpoint::Udp((address(0), 1795).into())),
        networks: Vec::new(),
        datagram_max: 1472,
        below: 42,
        rate: None,
        services: [chappe_link::BULK; 4],
        queue: chappe_core::Duration::from_millis(100),
        keepalive: chappe_link::IDLE_KEEPALIVE,
        paths: Vec::new(),
    };
    let peer = Peer::new(config, gate, 0, 1, [seed; 32]);
    let mut peer = peer.unwrap_or_else(|error| panic!("{error}"));
    let mut out = [0; 2048];
    let len = peer.poll(Instant::ZERO, &mut out).map_or(0, |call| call.0);
    out[..len].to_vec()
}

fn measure(kind: &str, peers: usize, seconds: f64) {
    let field = Field::direct();
    let ends = Ends {
        more: peers - 1,
        ..Ends::usual()
    };
    let host = Running::start(&field, 0, &ends);
    let datagrams = datagrams(kind);
    let span = Span::from_secs_f64(seconds);
    let count = || {
        let status = host.show();
        let all = status.unmatched.iter();
        let own = ["stranger_datagrams", "held_off_calls"];
        let all: u64 = all
            .filter(|one| own.contains(&one.0))
            .map(|one| one.1)
            .sum();
        let strange =
            |peer: &chappe_link::PeerStatus| peer.counter("strange") + peer.counter("forged");
        all + status.peers.iter().map(strange).sum::<u64>()
    };
    std::thread::sleep(Span::from_millis(700));
    let idle = host.busy.load(Ordering::Relaxed);
    std::thread::sleep(span);
    let idle = host.busy.load(Ordering::Relaxed) - idle;
    let (before, heard) = (host.busy.load(Ordering::Relaxed), count());
    let run = || {
        let Ok(socket) = UdpSocket::bind("10.0.0.2:0") else {
            return;
        };
        let since = Watch::now();
        while since.elapsed() < span {
            for datagram in datagrams.iter().cycle().take(64) {
                let _ = socket.send_to(datagram, (address(0), 1795));
            }
            // What is lost on the way to the link costs it nothing.
            std::thread::sleep(Span::from_micros(300));
        }
    };
    let _ = field.hosts[1].run(run);
    std::thread::sleep(Span::from_millis(200));
    let busy = host.busy.load(Ordering::Relaxed) - before;
    let heard = count() - heard;
    let each = busy.saturating_sub(idle) as f64 / heard.max(1) as f64;
    println!("{kind:<22} | {peers:4} | {each:5.0} | {heard}");
}
