//! Files that the commands write once: keys and configurations.

use std::io::ErrorKind;
use std::path::Path;

use crate::failure::Failure;

/// Writes a new file with these permissions; it is whole or absent, and replaces nothing.
pub fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    chappe_sys::write_new(path, mode, text.as_bytes()).map_err(|error| {
        let todo = match error.kind() {
            ErrorKind::AlreadyExists => "it exists: choose another name, or remove it first",
            _ => "choose another folder",
        };
        let what = format!("cannot write {}: {error}", path.display());
        Failure::Environment(what, todo.into())
    })
}
