//! The local socket of a running link: `chappe link status` and `chappe link reload`, and what answers them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::options::{Control, Status};
use crate::door;
use crate::failure::{FAILED, Failure};
use crate::terminal;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The table of peers.
    Table,
    /// The status as JSON.
    Json,
    /// To read the files again.
    Reload,
}

impl Wish {
    /// The answer to an unknown question.
    pub const UNKNOWN: &str = "unknown request: write status, status json or reload\n";

    pub fn of(question: &str) -> Option<Wish> {
        match question {
            "status" => Some(Wish::Table),
            "status json" => Some(Wish::Json),
            "reload" => Some(Wish::Reload),
            _ => None,
        }
    }
}

/// The usual socket of the link with a device.
pub fn usual(device: &str) -> PathBuf {
    Path::new("/run/chappe").join(format!("{device}.sock"))
}

/// Runs `chappe link status`: prints what the link answers.
pub fn status(options: &Status) -> Result<u8, Failure> {
    let wish = if options.json {
        "status json"
    } else {
        "status"
    };
    terminal::print(&talk(&options.control, wish)?)?;
    Ok(0)
}

/// Runs `chappe link reload`: prints what changed, or the mistake.
pub fn reload(options: &Control) -> Result<u8, Failure> {
    let said = talk(options, "reload")?;
    terminal::print(&said)?;
    Ok(if said.ends_with(UNCHANGED) { FAILED } else { 0 })
}

/// How the answer to a reload ends that changed nothing because of a mistake.
pub const UNCHANGED: &str = "the running link is unchanged\n";

fn talk(control: &Control, wish: &str) -> Result<String, Failure> {
    let path = control
        .socket
        .clone()
        .unwrap_or_else(|| usual(&control.device));
    let failed = |error: std::io::Error| {
        let what = format!("cannot ask the link at {}: {error}", path.display());
        let todo = match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                "start it with `chappe link run FILE`, or name its socket: --socket PATH"
            }
            ErrorKind::PermissionDenied => "ask as the user who runs the link, usually root",
            _ => "is it a link's socket?",
        };
        Failure::Environment(what, todo.into())
    };
    door::ask(&path, wish).map_err(failed)
}
