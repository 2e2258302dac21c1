//! Hosts in namespaces on a bridge, members on them, and their events.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration as Pause, Instant as Moment};

use chappe_cast::event::Event;
use chappe_cast::group::Seat;
use chappe_cast::session::View;
use chappe_cast::{Carrier, Loss, Options, Protocol, Receiving, Sending, Watch};
use chappe_core::{Address, Bitrate, Duration, Purpose, Seed};
use chappe_sys::namespace::{NetworkNamespace, isolate};
use chappe_sys::{Interface, Links};

/// Runs the cases in new namespaces, or skips them. A name on the command line selects one.
pub fn run(cases: &[(&str, fn())]) {
    if let Err(error) = isolate() {
        chappe_testkit::skip(error.to_string());
        return;
    }
    let chosen = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    for (name, case) in cases {
        if chosen
            .as_ref()
            .is_none_or(|chosen| name.contains(chosen.as_str()))
        {
            let begun = Moment::now();
            println!("{name}");
            case();
            println!("  {:.1} s", begun.elapsed().as_secs_f64());
        }
    }
}

/// The protocol under test: `CAST_PROTOCOL=pacifier` selects the other one.
fn protocol() -> Protocol {
    match std::env::var("CAST_PROTOCOL").as_deref() {
        Ok("pacifier") => Protocol::Pacifier,
        _ => Protocol::Improved,
    }
}

/// Hosts on one bridge, each with an interface `eth0` and an address. Dropping the value removes all of them.
pub struct Network {
    pub hosts: Vec<NetworkNamespace>,
    pub hub: NetworkNamespace,
}

impl Network {
    pub fn new(hosts: u8) -> Network {
        let hub = NetworkNamespace::create().unwrap();
        let hosts: Vec<_> = (0..hosts)
            .map(|_| NetworkNamespace::create().unwrap())
            .collect();
        let join = || {
            let links = Links::open().unwrap();
            links.bridge("br0").unwrap();
            links.up("br0").unwrap();
            for (number, host) in hosts.iter().enumerate() {
                let name = format!("p{number}");
                links.veth(&name, "eth0", host).unwrap();
                links.join(&name, "br0").unwrap();
                links.up(&name).unwrap();
            }
        };
        hub.run(join).unwrap();
        for (number, host) in hosts.iter().enumerate() {
            let raise = || {
                let links = Links::open().unwrap();
                let address = Ipv4Addr::new(10, 0, 0, number as u8);
                links.add_address("eth0", address, 8).unwrap();
                links.up("eth0").unwrap();
                until_running("eth0");
            };
            host.run(raise).unwrap();
        }
        // What a host sends is lost as long as its port of the bridge, or the bridge itself, does not run.
        let ports = (0..hosts.len()).map(|number| format!("p{number}"));
        let ports: Vec<String> = ports.chain(["br0".into()]).collect();
        let wait = || ports.iter().for_each(|port| until_running(port));
        hub.run(wait).unwrap();
        // Bridge ports begin to forward shortly after they came up.
        std::thread::sleep(Pause::from_millis(100));
        Network { hosts, hub }
    }

    pub fn switch(&self, host: usize, on: bool) {
        let switch = || {
            let links = Links::open().unwrap();
            match on {
                true => links.up("eth0").unwrap(),
                false => links.down("eth0").unwrap(),
            }
        };
        self.hosts[host].run(switch).unwrap();
    }
}

/// Waits until an interface of this namespace has a carrier. The kernel tells of it by a worker that waits for others, such as those that
/// remove the namespaces of a test before this one.
fn until_running(name: &str) {
    let begun = Moment::now();
    while !Interface::find(name).unwrap().running {
        assert!(
            begun.elapsed() < Pause::from_secs(30),
            "{name} got no carrier"
        );
        std::thread::sleep(Pause::from_millis(5));
    }
}

/// A folder that is removed when the value goes, for the members of a group.
pub struct Place(PathBuf, bool, u8);

impl Place {
    pub fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("chappe-cast-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path, true, 1)
    }

    /// The same place for members of another group.
    pub fn of_group(self, seed: u8) -> Place {
        let place = std::mem::ManuallyDrop::new(self);
        Place(place.0.clone(), place.1, seed)
    }

    /// The place of another process.
    pub fn at(path: &str) -> Place {
        Place(path.into(), false, 1)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A folder to receive into.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// A file of `len` octets that no pattern can hide.
    pub fn file(&self, name: &str, len: usize) -> PathBuf {
        let mut octets = vec![0; len];
        Seed(len as u64)
            .stream(Purpose::Traffic(0))
            .fill(&mut octets);
        fs::write(self.path(name), octets).unwrap();
        self.path(name)
    }

    pub fn sending(&self, files: &[PathBuf], receivers: usize) -> Sending {
        Sending {
            files: files.to_vec(),
            receivers,
            wait: Duration::from_secs(20),
            keep: false,
            protocol: protocol(),
            nodes: 16,
            k: 32,
            expires: None,
            fleet: None,
        }
    }

    pub fn receiving(&self, folder: &Path) -> Receiving {
        Receiving {
            folder: folder.to_owned(),
            then: None,
            overwrite: false,
            keep: false,
            whole: false,
            rollback: false,
            keep_parts: Duration::from_secs(3600),
        }
    }

    /// A member on `eth0`; frames from the members of `lose` are lost in these shares.
    pub fn options(&self, node: u16, rate: u64, lose: &[(u16, f64)]) -> Options {
        let loss = Loss::new(Seed(node.into()), 0.0);
        let loss = lose.iter().fold(loss, |loss, &(from, share)| {
            loss.from(Address::node(from), share)
        });
        Options {
            interfaces: vec!["eth0".into()],
            carrier: Carrier::UDP,
            seat: Seat::example(node, 24, self.2),
            rate: Bitrate(rate),
            mtu: None,
            channel: None,
            memory: 8_000_000,
            measuring: Duration::from_millis(600),
            loss: Some(loss),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.1 {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Records events, and ends a session on request or after a minute.
#[derive(Clone, Default)]
pub struct Notes {
    pub events: Arc<Mutex<Vec<Event>>>,
    pub over: Arc<AtomicBool>,
    /// Frames dropped by reason, at the last look.
    pub drops: Arc<Mutex<chappe_core::Drops>>,
}

impl Watch for Notes {
    fn event(&mut self, event: Event) {
        if std::env::var_os("CAST_LOUD").is_some() {
            eprintln!("{event:?}");
        }
        self.events.lock().unwrap().push(event);
    }

    fn look(&mut self, view: &View<'_>) {
        *self.drops.lock().unwrap() = view.statistics.drops;
        assert!(view.now.as_secs_f64() < 60.0, "not done after a minute");
    }

    fn is_over(&mut self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl Notes {
    pub fn stop(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events
            .lock()
            .unwrap()
            .iter()
            .filter(|event| is(event))
            .count()
    }

    /// Waits up to half a minute for an event.
    pub fn wait_for(&self, what: &str, is: impl Fn(&Event) -> bool) {
        let begun = Moment::now();
        while self.count(&is) == 0 {
            assert!(
                begun.elapsed() < Pause::from_secs(30),
                "waited in vain for {what}"
            );
            std::thread::sleep(Pause::from_millis(10));
        }
    }
}

pub fn same(a: &Path, b: &Path) -> bool {
    fs::read(a).unwrap() == fs::read(b).unwrap()
}
