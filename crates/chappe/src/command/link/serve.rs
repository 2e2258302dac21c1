//! `chappe link run`: runs the link until a signal ends it.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use chappe_core::{Duration, Instant};
use chappe_link::{Ending, Peer, Status, Tunnel};
use chappe_sys::Signal;
use chappe_wildnet::Service;

use super::environment;
use super::file::{self, Configuration};
use super::options::Run;
use super::screen::Screen;
use crate::failure::{Failure, INTERRUPTED};

pub fn run(options: &Run) -> Result<u8, Failure> {
    let first = file::read(&options.file)?;
    let mut screen = Screen::new(options.json, first.metrics.clone());
    for warning in &first.warnings {
        screen.say(warning);
    }
    let mut tunnel = Tunnel::open(&first.tunnel, first.peers.clone()).map_err(environment)?;
    for (peer, metres) in &first.distances {
        tunnel.set_distance(peer, *metres);
    }
    screen.say(&format!(
        "{} is up, MTU {}; Ctrl-C ends it",
        tunnel.device(),
        tunnel.mtu()
    ));
    let every = Duration::from_secs_f64(options.every);
    let (mut next, mut changed_at) = (Instant::ZERO, modified(&options.file));
    let mut failed: Option<Failure> = None;
    let ending = tunnel.run(|tunnel, now| {
        if now < next {
            return ControlFlow::Continue(());
        }
        next = now + every;
        let newest = modified(&options.file);
        if newest.is_some() && newest != changed_at {
            changed_at = newest;
            apply(tunnel, &first, &options.file, &mut screen);
        }
        match screen.show(Status::of(tunnel, now)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    match ending.map_err(environment)? {
        Ending::Signal(Signal::Interrupt) => Ok(INTERRUPTED),
        Ending::Signal(Signal::Terminate) | Ending::Asked => Ok(0),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path)
        .and_then(|data| data.modified())
        .ok()
}

/// Reads the file again; announces the cost of changed services, then applies them. An invalid file changes nothing.
fn apply(tunnel: &mut Tunnel, first: &Configuration, path: &Path, screen: &mut Screen) {
    let read = match file::read(path) {
        Ok(read) => read,
        Err(error) => return screen.say(&format!("{error}\nthe running link is unchanged")),
    };
    for fixed in read.differs_for_good(first) {
        screen.say(&format!(
            "{fixed}: takes effect after a restart of the link"
        ));
    }
    for (peer, metres) in &read.distances {
        tunnel.set_distance(peer, *metres);
    }
    for new in read.peers {
        let Some(peer) = tunnel.peer_mut(&new.name) else {
            continue;
        };
        if new.rate != peer.config().rate {
            peer.set_rate(new.rate);
            screen.say(&match new.rate {
                Some(rate) => format!("{}: a rate of {:.2} Mbit/s", new.name, rate.0 as f64 / 1e6),
                None => format!("{}: the rate is measured from now on", new.name),
            });
        }
        for (class, service) in new.services.into_iter().enumerate() {
            if service != peer.config().services[class] {
                // The classes after the second have the service of the second.
                if class < 2 {
                    screen.say(&announcement(peer, class, &service));
                }
                peer.set_service(class, service);
            }
        }
    }
}

fn announcement(peer: &Peer, class: usize, service: &Service) -> String {
    let predicted = peer.link().predict(service);
    format!(
        "{}, {}: with losses as they are now, overhead {:.1} % (bound {:.1} %), late or lost {:.3} %",
        peer.config().name,
        if class == 0 { "urgent" } else { "bulk" },
        predicted.overhead * 100.0,
        predicted.bound * 100.0,
        predicted.residual * 100.0
    )
}
