//! A temporary folder of one test.

use std::fs;
use std::path::PathBuf;

/// A folder that is removed when the test ends. No two tests of this program may give it the same name.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the folder below the system's temporary one.
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("chappe-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A path in it, as an argument.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
