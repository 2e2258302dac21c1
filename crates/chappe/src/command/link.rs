//! `chappe link`: recovers losses between hosts below the kernel's TCP.

mod control;
mod file;
mod hooks;
mod names;
mod options;
mod plan;
mod screen;
mod serve;
mod unit;

use std::path::Path;

use chappe_link::{Psk, Secret};

use crate::failure::Failure;
use crate::new_file::write_new;
use crate::terminal;

use options::Action;
pub use options::Link;
pub use unit::packaged;

pub fn run(link: &Link) -> Result<u8, Failure> {
    match &link.action {
        Action::Key(options) => key(&options.action),
        Action::New(options) => new(&options.file),
        Action::Plan(options) => plan::run(options),
        Action::Run(options) => serve::run(options),
        Action::Status(options) => control::status(options),
        Action::Reload(options) => control::reload(options),
        Action::Unit(options) => unit::print(&options.file),
    }
}

fn key(action: &options::KeyAction) -> Result<u8, Failure> {
    use options::KeyAction;
    match action {
        KeyAction::New(at) => {
            let secret = Secret::new(chappe_sys::random_key()?);
            write_new(&at.file, &(secret.to_text() + "\n"), 0o600)?;
            terminal::print(&format!(
                "{}  the secret key of this host; keep it here\npublic key: {}\n",
                at.file.display(),
                secret.public()
            ))?;
        }
        KeyAction::Public(at) => {
            let path = &at.file;
            let text = std::fs::read_to_string(path).map_err(|error| {
                let what = format!("cannot read {}: {error}", path.display());
                Failure::Environment(what, "`chappe link key new FILE` makes a key".into())
            })?;
            let secret = Secret::parse(&text).ok_or_else(|| {
                let what = format!("{} is not a key", path.display());
                let todo = "a key is 64 hexadecimal digits: `chappe link key new FILE` makes one";
                Failure::Environment(what, todo.into())
            })?;
            terminal::print(&format!("{}\n", secret.public()))?;
        }
        KeyAction::Shared(at) => {
            write_new(
                &at.file,
                &(Psk::new(chappe_sys::random_key()?).to_text() + "\n"),
                0o600,
            )?;
            terminal::print(&format!(
                "{}  for both hosts, besides their keys: copy it over a secure channel\n",
                at.file.display()
            ))?;
        }
    }
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
