//! `chappe link`: losses between hosts, recovered below the kernel's own TCP.

mod file;
mod options;

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use chappe_core::{Duration, Instant};
use chappe_lab::input::InputError;
use chappe_lab::quantity::{Length, Time};
use chappe_link::{Ending, Peer, Status, Tunnel};
use chappe_sys::Signal;
use chappe_wildnet::gilbert::Channel;
use chappe_wildnet::{Service, targets};

use crate::failure::{Failure, INTERRUPTED};
use crate::terminal;

pub use options::Link;
use options::{Action, Plan, Run};

pub fn run(link: &Link) -> Result<u8, Failure> {
    match &link.action {
        Action::Key(options) => key(&options.file),
        Action::New(options) => new(&options.file),
        Action::Plan(options) => plan(options),
        Action::Run(options) => serve(options),
    }
}

fn key(path: &Path) -> Result<u8, Failure> {
    let mut octets = [0; 32];
    for part in octets.chunks_exact_mut(8) {
        let drawn = chappe_sys::random_u64().map_err(environment)?;
        part.copy_from_slice(&drawn.to_be_bytes());
    }
    let text = chappe_link::Key::new(octets).to_text() + "\n";
    write_new(path, &text, 0o600)?;
    terminal::print(&format!(
        "{}  for both hosts of one link: whoever has it can read and send; copy it by a safe way\n",
        path.display()
    ))?;
    Ok(0)
}

fn new(path: &Path) -> Result<u8, Failure> {
    write_new(path, file::TEMPLATE, 0o644)?;
    terminal::print(&format!(
        "{}  edit it, then: chappe link run {}\n",
        path.display(),
        path.display()
    ))?;
    Ok(0)
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let made = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Failure::Environment(
            format!("cannot write {}: {error}", path.display()),
            "choose another name".into(),
        )
    })
}

fn environment(error: chappe_sys::Error) -> Failure {
    let advice = error
        .advice()
        .unwrap_or("`chappe doctor` says what this machine can run")
        .to_owned();
    Failure::Environment(error.to_string(), advice)
}

fn plan(options: &Plan) -> Result<u8, Failure> {
    let time = |option: &str, text: &str| {
        let explain = |message: String| InputError::new(option, message.replace('\u{1f}', "; "));
        Time::parse(text)
            .map_err(explain)
            .map(|time| Duration::from_secs_f64(time.value()))
    };
    let (round, deadline) = (
        time("--round-trip", &options.round_trip)?,
        time("--deadline", &options.deadline)?,
    );
    let metres = match &options.distance {
        None => None,
        Some(text) => {
            let explain =
                |message: String| InputError::new("--distance", message.replace('\u{1f}', "; "));
            Some(Length::parse(text).map_err(explain)?.value())
        }
    };
    let channel = match options.burst {
        Some(burst) => Channel::bursty(options.loss, burst),
        None => Channel::independent(options.loss),
    };
    let service = Service {
        deadline: Some(deadline),
        residual: options.residual.max(1e-9),
        ..Service::RELIABLE
    };
    let predicted = targets::predict(&channel, &service, round, round / 2);
    let met = predicted.residual <= service.residual;
    if options.json {
        terminal::print(&format!(
            "{{\"overhead\":{},\"residual\":{},\"overhead_bound\":{},\"met\":{met}}}\n",
            predicted.overhead, predicted.residual, predicted.bound
        ))?;
    } else {
        terminal::print(&format!(
            "overhead {:.1} % (no code can have less than {:.1} %), late or lost {:.3} %{}\n",
            predicted.overhead * 100.0,
            predicted.bound * 100.0,
            predicted.residual * 100.0,
            if met {
                ""
            } else {
                ": more than was asked; allow more time or more loss"
            }
        ))?;
        if let Some(metres) = metres {
            terminal::print(&coverage(metres))?;
        }
    }
    Ok(u8::from(!met))
}

/// What 802.11 cards must be told at a distance. A coverage class is 3 us of air, there and back: 450 m (IEEE 802.11-2020,
/// 9.4.2.8, and Linux's `iw`, which rounds up).
fn coverage(metres: f64) -> String {
    let class = (metres / 450.0).ceil().max(0.0);
    let more = match class {
        ..32.0 => "",
        ..256.0 => {
            "\nthe standard ends at 31 (14 km): not every driver takes more, and one that takes less waits too short and repeats everything"
        }
        _ => {
            "\nLinux ends at 255 (114 km): no driver waits that long; use frames without acknowledgement (slots), or `chappe link` above them"
        }
    };
    format!(
        "{:.1} km: light takes {:.0} us one way; 802.11 cards need coverage class {class:.0} on both ends (`iw phy PHY set distance {metres:.0}`), which makes every slot {:.0} us longer{more}\n",
        metres / 1e3,
        metres / 299.792_458,
        class * 3.0,
    )
}

fn serve(options: &Run) -> Result<u8, Failure> {
    let read = file::read(&options.file)?;
    let mut tunnel = Tunnel::open(&read.tunnel, read.peers).map_err(environment)?;
    eprintln!(
        "{} is up, MTU {}; Ctrl-C ends it",
        tunnel.device(),
        tunnel.mtu()
    );
    let every = Duration::from_secs_f64(options.every.max(0.05));
    let (mut next, mut changed_at) = (Instant::ZERO, modified(&options.file));
    let mut failed: Option<Failure> = None;
    let ending = tunnel.run(|tunnel, now| {
        if now < next {
            return ControlFlow::Continue(());
        }
        next = now + every;
        let newest = modified(&options.file);
        if newest != changed_at {
            changed_at = newest;
            apply(tunnel, &options.file);
        }
        match show(&Status::of(tunnel, now), options, read.metrics.as_deref()) {
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
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Reads the file again: says what the new promises will cost, then makes them. What is wrong changes nothing.
fn apply(tunnel: &mut Tunnel, path: &Path) {
    let read = match file::read(path) {
        Ok(read) => read,
        Err(error) => return eprintln!("{error}\nnothing was changed"),
    };
    for new in read.peers {
        let Some(peer) = tunnel.peer_mut(&new.name) else {
            eprintln!("{} is new: start the link again for it", new.name);
            continue;
        };
        if new.rate != peer.config().rate {
            peer.set_rate(new.rate);
        }
        for (class, service) in new.services.into_iter().enumerate().take(2) {
            if service != peer.config().services[class] {
                announce(peer, class, &service);
                peer.set_service(class, service);
            }
        }
    }
}

fn announce(peer: &Peer, class: usize, service: &Service) {
    let predicted = peer.link().predict(service);
    eprintln!(
        "{}, {}: with losses as they are now, overhead {:.1} % (bound {:.1} %), late or lost {:.3} %",
        peer.config().name,
        if class == 0 { "urgent" } else { "bulk" },
        predicted.overhead * 100.0,
        predicted.bound * 100.0,
        predicted.residual * 100.0
    );
}

fn show(status: &Status, options: &Run, metrics: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = metrics {
        // Whole or not at all: a collector may read at any moment.
        let making = path.with_extension("making");
        let written =
            fs::write(&making, status.prometheus()).and_then(|()| fs::rename(&making, path));
        if let Err(error) = written {
            eprintln!("cannot write {}: {error}", path.display());
        }
    }
    if options.json {
        terminal::print(&(status.json() + "\n"))
    } else if terminal::colour_on(terminal::Stream::Output) {
        // Home and clear: the display stays in one place.
        terminal::print(&format!("\x1b[H\x1b[J{}", status.text()))
    } else {
        terminal::print(&status.text())
    }
}
