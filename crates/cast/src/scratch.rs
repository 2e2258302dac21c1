//! A folder for one test.

use std::fs;
use std::path::PathBuf;

/// A folder that is removed when the value goes.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one; `name` tells tests apart.
    pub fn new(name: &str) -> Scratch {
        let unique = format!("chappe-cast-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A place in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
