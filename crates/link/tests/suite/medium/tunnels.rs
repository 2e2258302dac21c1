//! A tunnel on each host of a field.
#![allow(dead_code, reason = "each program uses a part")]

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use chappe_core::Bitrate;
use chappe_link::classify::Net;
use chappe_link::{
    BULK, Carrier, IDLE_KEEPALIVE, PathConfig, PeerConfig, Secret, Status, Tunnel, TunnelConfig,
};
use chappe_sys::Endpoint;
use chappe_sys::namespace::NetworkNamespace;
use chappe_wildnet::Service;

use super::medium::{Field, address, address_on, inner};

/// A request to a running tunnel.
pub type Change = Box<dyn FnOnce(&mut Tunnel) + Send>;

/// A tunnel that runs on a separate thread in a host's namespace.
pub struct Running {
    stop: Arc<AtomicBool>,
    pub status: Arc<Mutex<Option<Status>>>,
    pub changes: Arc<Mutex<Vec<Change>>>,
    /// Nanoseconds that its thread has had a processor for.
    pub busy: Arc<AtomicU64>,
    worker: Option<JoinHandle<()>>,
}

/// How the two ends are joined.
#[derive(Clone, Debug)]
pub struct Ends {
    pub rate: Option<Bitrate>,
    pub ethernet: bool,
    pub service: Service,
    /// The secret of each host, and the one that the other expects of it.
    pub keys: [Secret; 2],
    pub expected: [Secret; 2],
    pub port: u16,
    /// Another peer, at 10.0.0.9 with 10.9.0.9 behind it, which does not exist.
    pub ghost: bool,
    /// Further peers without an endpoint, which never call.
    pub more: usize,
    pub offloads: bool,
    /// Whether host 0 has a path by each wire, which host 1 learns; and whether what is urgent takes every path.
    pub bonded: bool,
    pub every_path: bool,
}

impl Ends {
    pub fn usual() -> Ends {
        Ends {
            rate: Some(Bitrate(6_000_000)),
            ethernet: false,
            service: BULK,
            keys: [Secret::new([5; 32]), Secret::new([6; 32])],
            expected: [Secret::new([5; 32]), Secret::new([6; 32])],
            port: 1795,
            ghost: false,
            more: 0,
            offloads: true,
            bonded: false,
            every_path: false,
        }
    }
}

impl Running {
    pub fn start(field: &Field, host: usize, ends: &Ends) -> Running {
        let carrier = match ends.ethernet {
            true => Carrier::Ethernet {
                interface: "eth0".into(),
                ether_type: 0x88b5,
            },
            false if ends.bonded => Carrier::Udp((Ipv4Addr::UNSPECIFIED, ends.port).into()),
            false => Carrier::Udp((address(host), ends.port).into()),
        };
        let to = match ends.ethernet {
            true => Endpoint::Ethernet(hardware(field, 1 - host)),
            false => Endpoint::Udp((address(1 - host), ends.port).into()),
        };
        let wires = 0..field.wires.len();
        let paths = wires.map(|wire| PathConfig {
            name: format!("eth{wire}"),
            endpoint: Some(Endpoint::Udp(
                (address_on(wire, 1 - host), ends.port).into(),
            )),
            interface: Some(format!("eth{wire}")),
            below: carrier.below(),
            rate: ends.rate,
            cost: chappe_core::Duration::ZERO,
            reserve: false,
        });
        let urgent = Service {
            every_path: ends.every_path,
            ..Service::PROMPT
        };
        let paths = match ends.bonded && host == 0 {
            true => paths.collect(),
            false => Vec::new(),
        };
        let peer = PeerConfig {
            name: format!("host{}", 1 - host),
            public: ends.expected[1 - host].public(),
            psk: None,
            endpoint: (!ends.bonded || host == 0).then_some(to),
            networks: vec![Net {
                address: inner(1 - host).into(),
                prefix: 32,
            }],
            datagram_max: carrier.datagram_max(1500),
            below: carrier.below(),
            rate: ends.rate,
            services: [urgent, ends.service, ends.service, ends.service],
            queue: chappe_core::Duration::from_millis(100),
            keepalive: IDLE_KEEPALIVE,
            paths,
        };
        let mut peers = vec![peer];
        if ends.ghost
            && let Some(peer) = peers.first()
        {
            peers.push(PeerConfig {
                name: "ghost".into(),
                public: Secret::new([9; 32]).public(),
                endpoint: Some(Endpoint::Udp(
                    (Ipv4Addr::new(10, 0, 0, 9), ends.port).into(),
                )),
                networks: vec![Net {
                    address: Ipv4Addr::new(10, 9, 0, 9).into(),
                    prefix: 32,
                }],
                ..peer.clone()
            });
        }
        let like = peers.first().cloned();
        peers.extend((0..ends.more).filter_map(|number| {
            let mut key = [8; 32];
            key[..2].copy_from_slice(&(number as u16).to_be_bytes());
            Some(PeerConfig {
                name: format!("more{number}"),
                public: Secret::new(key).public(),
                endpoint: None,
                networks: Vec::new(),
                ..like.clone()?
            })
        }));
        let config = TunnelConfig {
            device: "chappe0".into(),
            secret: ends.keys[host].clone(),
            addresses: vec![(inner(host).into(), 24)],
            routes: false,
            carrier,
            device_queue: 1_000,
            mtu: None,
            memory: chappe_link::usual_memory(),
            streams: None,
            offloads: ends.offloads,
            signals: false,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let status = Arc::new(Mutex::new(None));
        let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
        let (stopped, shown, asked) = (stop.clone(), status.clone(), changes.clone());
        let busy: Arc<AtomicU64> = Arc::default();
        let spent = busy.clone();
        let home = field.hosts[host]
            .run(|| NetworkNamespace::current().unwrap())
            .unwrap();
        let worker = thread::spawn(move || {
            home.enter().unwrap();
            let mut tunnel = Tunnel::open(&config, peers).unwrap();
            let mut last: Option<chappe_core::Instant> = None;
            let ending = tunnel.run(|tunnel, now| {
                if last.is_none_or(|last| {
                    now.saturating_since(last) > chappe_core::Duration::from_millis(50)
                }) {
                    last = Some(now);
                    // The first number: time on a processor (Documentation/scheduler/sched-stats.rst).
                    let stat =
                        std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
                    let nanos = stat.split(' ').next().and_then(|text| text.parse().ok());
                    spent.store(nanos.unwrap_or(0), Ordering::Relaxed);
                    *shown.lock().unwrap() = Some(Status::of(tunnel, now));
                    asked
                        .lock()
                        .unwrap()
                        .drain(..)
                        .for_each(|change| change(tunnel));
                }
                match stopped.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            ending.unwrap();
        });
        while status.lock().unwrap().is_none() {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        Running {
            stop,
            status,
            changes,
            busy,
            worker: Some(worker),
        }
    }

    pub fn show(&self) -> Status {
        self.status.lock().unwrap().clone().unwrap()
    }

    /// The value of a counter of its only peer.
    pub fn counter(&self, name: &str) -> u64 {
        let status = self.show();
        status.peers[0]
            .counters
            .iter()
            .find(|counter| counter.0 == name)
            .unwrap()
            .1
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn hardware(field: &Field, host: usize) -> [u8; 6] {
    field.hosts[host]
        .run(|| chappe_sys::Interface::find("eth0").unwrap().hardware)
        .unwrap()
}
