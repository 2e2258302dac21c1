//! Finished runs of figures that are not finished: a figure may take minutes, and Ctrl-C shall lose none of its runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use chappe_lab::keeper::Keeper;
use chappe_store::write_whole;

/// The kept runs of one paper: a file for each, which goes when the order that needed it is complete.
#[derive(Debug)]
pub struct KeptRuns {
    folder: PathBuf,
    key: String,
    /// Files that this order found or wrote.
    used: Mutex<BTreeSet<PathBuf>>,
}

impl KeptRuns {
    /// The runs in `folder` that were made with what `key` says.
    pub fn new(folder: PathBuf, key: &str) -> KeptRuns {
        KeptRuns {
            folder,
            key: key.into(),
            used: Mutex::default(),
        }
    }

    /// The number of runs that can be found.
    pub fn count(&self) -> usize {
        let Ok(files) = fs::read_dir(&self.folder) else {
            return 0;
        };
        let own = |name: String| name.starts_with(&self.key) && name.ends_with(".json");
        files
            .flatten()
            .filter(|file| own(file.file_name().to_string_lossy().into_owned()))
            .count()
    }

    /// Removes the runs of a complete order; of a complete paper all runs, also those of other programs. What cannot be removed
    /// does no harm.
    pub fn clear(&self, whole: bool) {
        if whole {
            let _ = fs::remove_dir_all(&self.folder);
        } else {
            for file in &*self.used.lock().unwrap_or_else(PoisonError::into_inner) {
                let _ = fs::remove_file(file);
            }
            // Only if nothing is left in it.
            let _ = fs::remove_dir(&self.folder);
        }
        if let Some(all) = self.folder.parent() {
            let _ = fs::remove_dir(all);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        self.folder
            .join(format!("{}-{}.json", self.key, &hash[..32]))
    }

    fn uses(&self, path: PathBuf) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(path);
    }
}

impl Keeper for KeptRuns {
    fn find(&self, name: &str) -> Option<String> {
        let path = self.path(name);
        let text = fs::read_to_string(&path).ok()?;
        self.uses(path);
        Some(text)
    }

    fn keep(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path(name);
        let written = write_whole(&path, |file| file.write_all(text.as_bytes()));
        written.map_err(|error| io::Error::other(error.to_string()))?;
        self.uses(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: runs are found by name and key only; a complete order removes what it used, a complete paper everything.
    #[test]
    fn runs_are_found_by_name_and_key() {
        let base = std::env::temp_dir().join(format!("chappe-runs-{}", std::process::id()));
        let folder = base.join("runs").join("paper");
        let runs = |key| KeptRuns::new(folder.clone(), key);
        let first = runs("k1");
        assert_eq!((first.count(), first.find("a")), (0, None));
        first.keep("a", "1").unwrap();
        first.keep("b", "2").unwrap();
        first.keep("b", "3").unwrap();
        assert_eq!(first.find("b").as_deref(), Some("3"));
        assert_eq!(first.find("c"), None);
        assert_eq!((first.count(), runs("k2").count()), (2, 0));
        assert_eq!(runs("k2").find("a"), None, "another program's");

        let again = runs("k1");
        assert_eq!(again.find("a").as_deref(), Some("1"));
        again.clear(false);
        assert_eq!((again.find("a"), again.count()), (None, 1));
        again.clear(true);
        assert!(!folder.exists() && !base.join("runs").exists());
        fs::remove_dir_all(&base).unwrap();
    }
}
