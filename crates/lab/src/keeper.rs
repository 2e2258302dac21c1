//! Results of pieces of work that are kept as they are finished, so that an interrupted order goes on where it was.

use std::io;

use serde::{Deserialize, Serialize};

/// Keeps texts by name.
///
/// A name says everything that the text depends on, except for what the keeper knows itself: the program, and the size and
/// first seed of the order. Threads ask at the same time.
pub trait Keeper: Send + Sync {
    /// The text that was kept under this name, if one was.
    fn find(&self, name: &str) -> Option<String>;

    /// Keeps a text in place of an older one of this name.
    fn keep(&self, name: &str, text: &str) -> io::Result<()>;
}

/// What is kept of a piece of work.
#[derive(Serialize, Deserialize)]
pub(crate) struct Piece<U> {
    /// The processor time that it took.
    pub nanos: u64,
    pub result: U,
}
