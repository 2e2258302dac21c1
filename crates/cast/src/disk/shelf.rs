//! The files of a transfer, of which a bounded number is open.
//!
//! A transfer may have [many files](crate::manifest::FILES_MAX), and a process often has no more than 1024 descriptors
//! for all purposes.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;

/// Largest number of open files per transfer. A receiver takes part in up to four transfers.
const OPEN_MAX: usize = 128;

/// How a file is opened, by its number.
type Opener = Box<dyn Fn(usize) -> io::Result<File> + Send>;

/// Files by number, opened on demand. The least recently used is closed.
pub(super) struct Shelf {
    /// Open files with their numbers, most recently used last.
    open: VecDeque<(usize, File)>,
    opener: Opener,
}

impl Shelf {
    /// A shelf without an open file.
    pub fn new(opener: impl Fn(usize) -> io::Result<File> + Send + 'static) -> Shelf {
        Shelf {
            open: VecDeque::new(),
            opener: Box::new(opener),
        }
    }

    /// File `number`, opened if necessary.
    pub fn file(&mut self, number: usize) -> io::Result<&File> {
        let place = self.open.iter().rposition(|(open, _)| *open == number);
        let file = match place.and_then(|place| self.open.remove(place)) {
            Some(open) => open,
            None => (number, (self.opener)(number)?),
        };
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back(file);
        let last = self.open.back().map(|(_, file)| file);
        last.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("open", &self.open).finish()
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
        let count = 3 * OPEN_MAX;
        let paths: Vec<_> = (0..count).map(|n| place.path(&n.to_string())).collect();
        for (number, path) in paths.iter().enumerate() {
            fs::write(path, number.to_string()).unwrap();
        }
        let shelved = paths.clone();
        let mut shelf = Shelf::new(move |number| File::open(&shelved[number]));
        for step in 0..2 * count {
            let number = step * 7 % count;
            let mut said = String::new();
            let mut file = shelf.file(number).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            file.read_to_string(&mut said).unwrap();
            assert_eq!(said, number.to_string());
            assert!(shelf.open.len() <= OPEN_MAX);
        }
        let last = shelf.open.back().map(|(number, _)| *number).unwrap();
        fs::remove_file(&paths[last]).unwrap();
        assert!(shelf.file(last).is_ok(), "what is open stays");
        fs::remove_file(&paths[1]).unwrap();
        for number in 2..2 + OPEN_MAX {
            let _ = shelf.file(number);
        }
        assert!(shelf.file(1).is_err());
    }
}
