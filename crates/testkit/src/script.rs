//! Folders of packet scripts.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below `folder` whose names end in `.extension`, sorted. Folders named `common` hold files for inclusion and
/// are skipped.
pub fn files(folder: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(folder.as_ref(), extension, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in entries {
        let path = entry.expect("a folder that can be read").path();
        if path.is_dir() && !path.ends_with("common") {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

/// Calls `check` with the name and the text of every `.txt` below `folder`. Panics if there are fewer than `least`, so
/// that scripts which were moved elsewhere do not go unnoticed.
pub fn each(folder: impl AsRef<Path>, least: usize, mut check: impl FnMut(&str, &str)) {
    let files = files(folder, "txt");
    assert!(files.len() >= least, "only {} scripts found", files.len());
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        check(&name, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(folder: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
    }

    #[test]
    #[should_panic(expected = "only 0 scripts found")]
    fn missing_scripts_are_noticed() {
        each(beside("src"), 1, |_, _| {});
    }

    #[test]
    fn folders_are_walked_in_order() {
        let all = files(beside("src"), "rs");
        assert!(all.is_sorted() && all.contains(&beside("src/lib.rs")));
        let within = files(beside(""), "rs");
        assert!(all.iter().all(|path| within.contains(path)));
        let mut names = Vec::new();
        each(beside("../p3/tests/scripts"), 2, |name, text| {
            assert!(!text.is_empty());
            names.push(name.to_owned());
        });
        assert!(names.iter().all(|name| name.ends_with(".txt")));
    }
}
