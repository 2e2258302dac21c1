//! A temporary folder for a test.

use std::fs;
use std::path::PathBuf;

/// A folder that is removed when the value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder. `name` must be unique among the tests.
    pub fn new(name: &str) -> Scratch {
        let unique = format!("chappe-cast-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
