//! Waiting until many files are on the disk.

use std::io;
use std::thread;

/// How many files are synced at a time. A file system with a journal writes one commit for all that wait, so a disk that
/// takes 3 ms for a commit syncs 3000 files in 0.25 s instead of 9.5 s (ext4, measured; with 32 no faster). A sync of the
/// whole file system is as fast, but waits for the data of all other programs as well.
const AT_A_TIME: usize = 8;

/// Calls `sync` for all items, several at a time; returns the first error.
pub(super) fn all<T: Sync>(
    items: &[T],
    sync: impl Fn(&T) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let sync = &sync;
    if items.len() < AT_A_TIME {
        return items.iter().try_for_each(sync);
    }
    let share = |first: usize| items.iter().skip(first).step_by(AT_A_TIME);
    thread::scope(|scope| {
        let begin = |first| scope.spawn(move || share(first).try_for_each(sync));
        let threads: Vec<_> = (0..AT_A_TIME).map(begin).collect();
        let crashed = || io::Error::other("the thread that syncs files has crashed");
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err(crashed())))
    })
}
