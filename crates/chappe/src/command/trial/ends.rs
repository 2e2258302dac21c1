//! `chappe link` on both hosts of a line, in threads of their own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use chappe_core::{Bitrate, Duration};
use chappe_emu::{ADDRESSES, Line};
use chappe_link::classify::Net;
use chappe_link::{BULK, Carrier, IDLE_KEEPALIVE, PeerConfig, Secret, State, Tunnel, TunnelConfig};
use chappe_sys::Endpoint;
use chappe_wildnet::Service;

use crate::failure::Failure;

/// The addresses inside the tunnel.
pub const INSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 18, 0, 1), Ipv4Addr::new(10, 18, 0, 2)];
/// The TUN device on each host.
pub const DEVICE: &str = "chappe0";
/// The link's port (`chappe link new` writes the same).
const PORT: u16 = 1795;
/// How long the ends may take to find each other.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
/// Ethernet, IP and UDP.
const BELOW: usize = 14 + 28;

/// The running ends. Dropping it ends them.
pub struct Ends {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Ends {
    /// Starts both and waits until they are up. `mtu` is that of the line, and `rate`
    /// what its users know of its rate.
    pub fn start(line: &Line, mtu: usize, rate: Option<Bitrate>) -> Result<Ends, Failure> {
        let secrets = [
            Secret::new(chappe_sys::random_key()?),
            Secret::new(chappe_sys::random_key()?),
        ];
        let (stop, up) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (told, failures) = mpsc::channel();
        let mut ends = Ends {
            stop: Arc::clone(&stop),
            threads: Vec::new(),
        };
        for end in 0..2 {
            let Some(host) = line.host(end) else {
                return Err(Failure::Defect("a line without hosts".into()));
            };
            let (config, peer) = configs(end, &secrets, mtu, rate);
            let (stop, up, told) = (Arc::clone(&stop), Arc::clone(&up), told.clone());
            // A thread inherits the namespace of the one that starts it.
            let thread = host.run(|| {
                thread::spawn(move || {
                    if let Err(error) = run(&config, peer, &stop, &up) {
                        let _ = told.send(error);
                    }
                })
            })?;
            ends.threads.push(thread);
        }
        let begun = std::time::Instant::now();
        while up.load(Ordering::Relaxed) < 2 {
            if let Ok(error) = failures.recv_timeout(std::time::Duration::from_millis(10)) {
                return Err(error.into());
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure::Environment(
                    "`chappe link` found no session over this path in 20 s".into(),
                    "choose a path with fewer losses, or a larger MTU".into(),
                ));
            }
        }
        Ok(ends)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(
    config: &TunnelConfig,
    peer: PeerConfig,
    stop: &AtomicBool,
    up: &AtomicUsize,
) -> chappe_sys::Result<()> {
    let mut tunnel = Tunnel::open(config, vec![peer])?;
    let mut counted = false;
    tunnel.run(|tunnel, now| {
        if !counted && tunnel.peers().all(|peer| peer.state(now) == State::Up) {
            counted = true;
            up.fetch_add(1, Ordering::Relaxed);
        }
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(())
}

/// What `chappe link new` proposes. Without a rate, the link finds one.
fn configs(
    end: usize,
    secrets: &[Secret; 2],
    mtu: usize,
    rate: Option<Bitrate>,
) -> (TunnelConfig, PeerConfig) {
    let other = 1 - end;
    let at = |end: usize| SocketAddr::new(IpAddr::V4(ADDRESSES[end]), PORT);
    let config = TunnelConfig {
        device: DEVICE.into(),
        secret: secrets[end].clone(),
        addresses: vec![(IpAddr::V4(INSIDE[end]), 24)],
        routes: true,
        carrier: Carrier::Udp(at(end)),
        device_queue: 1_000,
        mtu: None,
        memory: chappe_link::usual_memory(),
        streams: None,
        offloads: true,
        signals: false,
    };
    let peer = PeerConfig {
        name: if other == 1 { "far" } else { "near" }.into(),
        public: secrets[other].public(),
        psk: None,
        endpoint: Some(Endpoint::Udp(at(other))),
        networks: vec![Net {
            address: INSIDE[other].into(),
            prefix: 32,
        }],
        datagram_max: mtu.saturating_sub(BELOW - 14),
        below: BELOW,
        rate,
        services: [Service::PROMPT, BULK, BULK, BULK],
        queue: Duration::from_millis(100),
        keepalive: IDLE_KEEPALIVE,
        paths: Vec::new(),
    };
    (config, peer)
}
