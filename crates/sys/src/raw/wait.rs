//! Waiting for descriptors with a timeout in nanoseconds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::event::epoll;

/// The kernel's `struct __kernel_timespec`: 64 bits each on every machine.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanos: i64,
}

/// epoll_pwait2(2): waits for at most `nanos`, or without limit, and fills the spare room of `events`. rustix calls it only in
/// programs that require Linux 5.11, and otherwise rounds timeouts to milliseconds.
pub(crate) fn wait_events(
    epoll: BorrowedFd<'_>,
    events: &mut Vec<epoll::Event>,
    nanos: Option<u64>,
) -> io::Result<()> {
    const { assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>()) };
    let timeout = nanos.map(|nanos| Timespec {
        seconds: (nanos / 1_000_000_000) as i64,
        nanos: (nanos % 1_000_000_000) as i64,
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let used = events.len();
    let room = events.spare_capacity_mut();
    let most = room.len().min(libc::c_int::MAX as usize) as libc::c_int;
    // SAFETY: the kernel writes at most `most` events of its own layout, which `epoll::Event` has (rustix hands it to the same
    // family of calls), to room that long and borrowed mutably; it reads a timeout that outlives the call; there is no signal mask.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            room.as_mut_ptr(),
            most,
            timeout,
            ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    let Ok(count) = usize::try_from(result) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the kernel has filled the first `count` places behind those that were used, and says no more than `most`.
    unsafe { events.set_len(used + count) };
    Ok(())
}
