//! `chappe mesh`: a router of a wireless mesh.

mod file;
mod options;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

use chappe_live::Ending;
use chappe_mesh::answers;
use chappe_mesh::daemon::Mesh;
use chappe_sys::Signal;

use crate::failure::{Failure, INTERRUPTED};
use crate::new_file::write_new;
use crate::terminal;

use options::Action;
pub use options::Mesh as Options;

/// The unit that `chappe mesh unit` prints.
const UNIT: &str = include_str!("mesh/file/chappe-mesh.service");

pub fn run(options: &Options) -> Result<u8, Failure> {
    match &options.action {
        Action::New(options) => new(&options.file, &options.member),
        Action::Unit => terminal::print(UNIT).map(|()| 0),
        Action::Run(options) => serve(&options.file),
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
    let mut mesh = Mesh::open(configuration.mesh)?;
    terminal::tell(&format!(
        "chappe: {} is up, MTU {}, {}; Ctrl-C ends it",
        mesh.device(),
        mesh.mtu(),
        configuration.addresses.join(", ")
    ));
    match mesh.run(|_, _, _| ControlFlow::Continue(()))? {
        Ending::Signal(Signal::Interrupt) => Ok(INTERRUPTED),
        Ending::Signal(Signal::Terminate | Signal::Reload) | Ending::Asked => Ok(0),
    }
}

fn question(socket: &Path, question: &str) -> Result<u8, Failure> {
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
    terminal::print(&answer)?;
    Ok(0)
}
