//! `chappe link`: recovers losses between hosts below the kernel's TCP.

mod file;
mod options;
mod plan;
mod screen;
mod serve;

use std::io::ErrorKind;
use std::path::Path;

use crate::failure::Failure;
use crate::terminal;

use options::Action;
pub use options::Link;

pub fn run(link: &Link) -> Result<u8, Failure> {
    match &link.action {
        Action::Key(options) => key(&options.file),
        Action::New(options) => new(&options.file),
        Action::Plan(options) => plan::run(options),
        Action::Run(options) => serve::run(options),
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
        "{}  for both hosts of one link: it allows reading and sending; copy it over a secure channel\n",
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
    chappe_sys::write_new(path, mode, text.as_bytes()).map_err(|error| {
        let todo = match error.kind() {
            ErrorKind::AlreadyExists => "it exists: choose another name, or remove it first",
            _ => "choose another folder",
        };
        let what = format!("cannot write {}: {error}", path.display());
        Failure::Environment(what, todo.into())
    })
}

fn environment(error: chappe_sys::Error) -> Failure {
    let advice = error
        .advice()
        .unwrap_or("`chappe doctor` lists what this machine allows")
        .to_owned();
    Failure::Environment(error.cause(), advice)
}
