//! The files of a transfer, of which a bounded number is open.
//!
//! A transfer may have [ten thousand files](crate::manifest::FILES_MAX), and a process often has no more than 1024
//! descriptors for all purposes.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Largest number of open files per transfer. A receiver takes part in up to four transfers.
const OPEN_MAX: usize = 128;

/// Files by number. The least recently used is closed, and reopened on demand.
#[derive(Debug)]
pub(super) struct Shelf {
    paths: Vec<PathBuf>,
    /// Open files with their numbers, most recently used last.
    open: VecDeque<(usize, File)>,
    /// How a file is reopened.
    reopen: fn(&Path) -> io::Result<File>,
}

impl Shelf {
    /// An empty shelf; `reopen` opens a file that was closed to save descriptors.
    pub fn new(reopen: fn(&Path) -> io::Result<File>) -> Shelf {
        Shelf {
            paths: Vec::new(),
            open: VecDeque::new(),
            reopen,
        }
    }

    /// Appends a file that is already open.
    pub fn push(&mut self, path: PathBuf, file: File) {
        self.keep(self.paths.len(), file);
        self.paths.push(path);
    }

    /// The path of file `number`.
    pub fn path(&self, number: usize) -> &Path {
        &self.paths[number]
    }

    /// File `number`, reopened if necessary.
    pub fn file(&mut self, number: usize) -> io::Result<&File> {
        match self.open.iter().rposition(|(open, _)| *open == number) {
            Some(place) => {
                if let Some(used) = self.open.remove(place) {
                    self.open.push_back(used);
                }
            }
            None => {
                let file = (self.reopen)(&self.paths[number])?;
                self.keep(number, file);
            }
        }
        let last = self.open.back().map(|(_, file)| file);
        last.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn keep(&mut self, number: usize, file: File) {
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back((number, file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;
    use std::io::Read;

    /// Goal: every file of many is read, in any order, and few are open. Method: each holds its own number.
    #[test]
    fn many_files_need_few_descriptors() {
        let place = Scratch::new("shelf");
        let mut shelf = Shelf::new(|path| File::open(path));
        let count = 3 * OPEN_MAX;
        for number in 0..count {
            let path = place.path(&number.to_string());
            fs::write(&path, number.to_string()).unwrap();
            shelf.push(path.clone(), File::open(path).unwrap());
            assert!(shelf.open.len() <= OPEN_MAX);
        }
        for step in 0..2 * count {
            let number = step * 7 % count;
            let mut said = String::new();
            let mut file = shelf.file(number).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            file.read_to_string(&mut said).unwrap();
            assert_eq!(said, number.to_string());
            assert!(shelf.open.len() <= OPEN_MAX);
        }
        let last = shelf.open.back().map(|(number, _)| *number);
        fs::remove_file(shelf.path(last.unwrap())).unwrap();
        assert!(shelf.file(last.unwrap()).is_ok(), "what is open stays");
        fs::remove_file(shelf.path(1)).unwrap();
        for number in 2..2 + OPEN_MAX {
            let _ = shelf.file(number);
        }
        assert!(shelf.file(1).is_err());
    }
}
