//! `chappe mesh`: a router of a wireless mesh.

mod file;
mod options;
mod unit;

use std::io::{ErrorKind, IsTerminal};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use chappe_live::Ending;
use chappe_mesh::answers;
use chappe_mesh::daemon::Mesh;
use chappe_sys::Signal;

use crate::failure::{Failure, INTERRUPTED};
use crate::new_file::write_new;
use crate::terminal;

use options::Action;
pub use options::Mesh as Options;
pub use unit::packaged;

pub fn run(options: &Options) -> Result<u8, Failure> {
    match &options.action {
        Action::New(options) => new(&options.file, &options.member),
        Action::Unit(options) => unit::print(&options.file),
        Action::Run(options) => serve(&options.file),
        Action::Status(options) if options.watch => watch(options),
        Action::Status(options) => question(&options.socket, options.question()),
        Action::Why(options) => question(&options.socket, &format!("why {}", options.address)),
    }
}

fn new(path: &Path, member: &str) -> Result<u8, Failure> {
    let text = file::TEMPLATE.replace("NAME.key", &format!("{member}.key"));
    write_new(path, &text, 0o644)?;
    terminal::print(&format!(
        "{}  edit it, then: chappe mesh run {}\n",
        path.display(),
        path.display()
    ))?;
    Ok(0)
}

fn serve(path: &Path) -> Result<u8, Failure> {
    let configuration = file::read(path)?;
    let mut seat = configuration.seat;
    let mut mesh = Mesh::open(configuration.mesh)?;
    terminal::tell(&format!(
        "chappe: {} is up, MTU {}, {}; Ctrl-C ends it",
        mesh.device(),
        mesh.mtu(),
        configuration.addresses.join(", ")
    ));
    loop {
        let mut renewed = None;
        let ending = mesh.run(|_, _, statistics| {
            // A neighbour has a newer list, which its owner signed.
            renewed = statistics.notice.as_ref().and_then(|text| seat.renew(text));
            match renewed {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        })?;
        match ending {
            Ending::Signal(Signal::Interrupt) => return Ok(INTERRUPTED),
            Ending::Signal(Signal::Terminate) => return Ok(0),
            Ending::Signal(Signal::Reload) => match file::read(path) {
                Ok(again) if again.seat.group.serial > seat.group.serial => seat = again.seat,
                Ok(_) => continue,
                Err(error) => {
                    terminal::tell(&format!("chappe: nothing is changed: {error}"));
                    continue;
                }
            },
            Ending::Asked => renewed.unwrap_or(Ok(()))?,
        }
        mesh.join(seat.membership())?;
        terminal::tell(&format!(
            "chappe: list {} of {} members is in force",
            seat.group.serial,
            seat.group.members.len()
        ));
    }
}

/// Shows the state again and again, until Ctrl-C or the router ends.
fn watch(options: &options::Status) -> Result<u8, Failure> {
    // Clears the screen and goes to its top (ECMA-48: ED, CUP).
    let clear = if std::io::stdout().is_terminal() {
        "\x1b[2J\x1b[H"
    } else {
        ""
    };
    loop {
        let answer = ask(&options.socket, options.question())?;
        terminal::print(&format!("{clear}{answer}"))?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn question(socket: &Path, question: &str) -> Result<u8, Failure> {
    terminal::print(&ask(socket, question)?)?;
    Ok(0)
}

fn ask(socket: &Path, question: &str) -> Result<String, Failure> {
    let answer = answers::ask(socket, question).map_err(|error| {
        let what = format!("no router answers at {}: {error}", socket.display());
        let todo = match error.kind() {
            ErrorKind::PermissionDenied => "run it as the user of the router, usually root",
            _ => "start one by `chappe mesh run FILE`, or name its socket with --socket",
        };
        Failure::Environment(what, todo.into())
    })?;
    if let Some(wrong) = answer.strip_prefix("error: ") {
        return Err(chappe_scenario::InputError::new("", wrong.trim_end()).into());
    }
    Ok(answer)
}
