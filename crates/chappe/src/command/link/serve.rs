//! `chappe link run`: runs the link until a signal ends it.

mod changes;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chappe_core::{Duration, Instant};
use chappe_link::{Ending, State, Status, Tunnel};
use chappe_sys::Signal;

use super::control::{self, UNCHANGED, Wish};
use super::file::{self, Configuration};
use super::hooks::Runner;
use super::names::Names;
use super::options::Run;
use super::screen::Screen;
use crate::door::{self, Door};
use crate::failure::{Failure, INTERRUPTED};

pub fn run(options: &Run) -> Result<u8, Failure> {
    let first = file::read(&options.file)?;
    let mut screen = Screen::new(options.json, first.metrics.clone());
    for warning in &first.warnings {
        screen.say(warning);
    }
    let peers = first.peers.iter().map(|peer| peer.config.clone());
    let mut tunnel = Tunnel::open(&first.tunnel, peers.collect())?;
    screen.say(&format!(
        "{} is up, MTU {}, public key {}; Ctrl-C ends it",
        tunnel.device(),
        tunnel.mtu(),
        tunnel.public()
    ));
    let mut service = Service::new(first, &options.file, tunnel.device(), &mut screen);
    let every = Duration::from_secs_f64(options.every);
    let mut next = Instant::ZERO;
    let mut failed: Option<Failure> = None;
    let ending = tunnel.run(|tunnel, now| {
        service.turn(tunnel, now, &mut screen);
        if now < next {
            return ControlFlow::Continue(());
        }
        next = now + every;
        match screen.show(Status::of(tunnel, now)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    // The device is still there.
    service.end(&mut screen);
    if let Some(failure) = failed {
        return Err(failure);
    }
    match ending? {
        Ending::Signal(Signal::Interrupt) => Ok(INTERRUPTED),
        Ending::Signal(Signal::Terminate | Signal::Reload) | Ending::Asked => Ok(0),
    }
}

/// What happens beside the tunnel: files, names, hooks, clients.
struct Service {
    path: PathBuf,
    device: String,
    now: Configuration,
    changed_at: Option<SystemTime>,
    names: Names,
    hooks: Runner,
    door: Option<Door>,
    /// Whether each peer's hook was last told that it is up.
    up: BTreeMap<String, bool>,
    look_at: Instant,
}

/// How often files, states and clients are looked at.
const LOOK: Duration = Duration::from_millis(200);

impl Service {
    fn new(first: Configuration, path: &Path, device: &str, screen: &mut Screen) -> Service {
        let socket = first.status.clone();
        let socket = socket.unwrap_or_else(|| control::usual(device));
        let door = door::bind(&socket).and_then(door::Bound::open).map_err(|error| {
            screen.say(&format!(
                "`chappe link status` will not work: cannot open {}: {error}; set `status` to a place where this user may write",
                socket.display()
            ));
        });
        let carrier = first.tunnel.carrier.clone();
        let mut names = Names::new(Box::new(move |to| carrier.reaches(to)));
        for peer in &first.peers {
            names.set_all(peer);
        }
        let mut service = Service {
            path: path.to_owned(),
            device: device.to_owned(),
            changed_at: modified(path, &first),
            names,
            hooks: Runner::default(),
            door: door.ok(),
            up: BTreeMap::new(),
            look_at: Instant::ZERO,
            now: first,
        };
        service.hook(true, None, screen);
        service
    }

    fn turn(&mut self, tunnel: &mut Tunnel, now: Instant, screen: &mut Screen) {
        if now < self.look_at {
            return;
        }
        if self.look_at == Instant::ZERO {
            for peer in &self.now.peers {
                tunnel.set_distance(&peer.config.name, peer.distance);
            }
            changes::introduce(tunnel, &self.now);
        }
        self.look_at = now + LOOK;
        let newest = modified(&self.path, &self.now);
        if tunnel.take_reload() || newest.is_some() && newest != self.changed_at {
            let said = self.reload(tunnel);
            screen.say(said.trim_end());
        }
        self.serve(tunnel, now, screen);
        for told in self.names.turn(tunnel, now) {
            screen.say(&told);
        }
        self.notice(tunnel, now, screen);
        if let Some(wrong) = self.hooks.turn() {
            screen.say(&wrong);
        }
    }

    /// Reads the files again. A mistake changes nothing.
    fn reload(&mut self, tunnel: &mut Tunnel) -> String {
        let said = match file::read(&self.path) {
            Ok(read) => {
                let said = changes::apply(tunnel, &self.now, &read);
                for peer in &read.peers {
                    self.names.set_all(peer);
                }
                for gone in &self.now.peers {
                    if !read
                        .peers
                        .iter()
                        .any(|peer| peer.config.name == gone.config.name)
                    {
                        self.names.forget(&gone.config.name);
                        self.up.remove(&gone.config.name);
                    }
                }
                // What needs a restart stays as it is.
                let tunnel = std::mem::replace(&mut self.now, read).tunnel;
                self.now.tunnel = tunnel;
                said
            }
            Err(error) => format!("{error}\n{UNCHANGED}"),
        };
        self.changed_at = modified(&self.path, &self.now);
        said
    }

    /// Answers the clients of the socket.
    fn serve(&mut self, tunnel: &mut Tunnel, now: Instant, screen: &mut Screen) {
        while let Some(request) = self.door.as_ref().and_then(Door::request) {
            let text = match Wish::of(&request.question) {
                Some(Wish::Table) => Status::of(tunnel, now).table(),
                Some(Wish::Json) => Status::of(tunnel, now).json() + "\n",
                Some(Wish::Reload) => {
                    let said = self.reload(tunnel);
                    screen.say(said.trim_end());
                    said
                }
                None => Wish::UNKNOWN.to_owned(),
            };
            // The client may have gone.
            let _ = request.answer.send(text);
        }
    }

    /// Runs the hooks of peers that have come up or were lost.
    fn notice(&mut self, tunnel: &Tunnel, now: Instant, screen: &mut Screen) {
        let changed: Vec<(String, bool, String)> = (tunnel.peers())
            .filter_map(|peer| {
                let up = matches!(peer.state(now), State::Up | State::Deaf);
                let before = self.up.get(peer.name()).copied().unwrap_or(false);
                let at = peer.endpoint().map_or(String::new(), |at| at.to_string());
                (up != before).then(|| (peer.name().to_owned(), up, at))
            })
            .collect();
        for (name, up, at) in changed {
            self.up.insert(name.clone(), up);
            self.hook(up, Some((&name, at)), screen);
        }
    }

    /// Queues a hook: of a peer, or of the device.
    fn hook(&mut self, up: bool, peer: Option<(&str, String)>, screen: &mut Screen) {
        let mut environment = vec![
            ("CHAPPE_DEVICE", self.device.clone()),
            ("CHAPPE_STATE", if up { "up" } else { "down" }.to_owned()),
        ];
        let hooks = match &peer {
            None => Some(&self.now.hooks),
            Some((name, _)) => {
                let mut peers = self.now.peers.iter();
                peers
                    .find(|one| one.config.name == *name)
                    .map(|one| &one.hooks)
            }
        };
        let Some(hooks) = hooks else {
            return;
        };
        if let Some((name, at)) = peer {
            environment.extend([("CHAPPE_PEER", name.to_owned()), ("CHAPPE_ENDPOINT", at)]);
        }
        let words = if up { &hooks.up } else { &hooks.down };
        if let Some(wrong) = self.hooks.add(words, &environment, hooks.limit) {
            screen.say(&wrong);
        }
    }

    /// Runs what is to run before the device goes.
    fn end(&mut self, screen: &mut Screen) {
        let up: Vec<String> = self
            .up
            .iter()
            .filter(|up| *up.1)
            .map(|up| up.0.clone())
            .collect();
        for name in up {
            self.hook(false, Some((&name, String::new())), screen);
        }
        self.hook(false, None, screen);
        for wrong in self.hooks.finish() {
            screen.say(&wrong);
        }
    }
}

/// When the file, or anything in its folder of peers, was last changed.
fn modified(path: &Path, now: &Configuration) -> Option<SystemTime> {
    let at = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|data| data.modified())
            .ok()
    };
    let files = now.folder.iter().flat_map(|folder| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| file.path()).chain([folder.clone()])
    });
    files.filter_map(|file| at(&file)).chain(at(path)).max()
}
