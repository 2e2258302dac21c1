//! Signals as a file descriptor, namespaces, the start of programs in them, and priority.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::check;

/// An open signalfd, and the thread's signal mask as it was before.
pub(crate) struct Signals {
    fd: OwnedFd,
    former: libc::sigset_t,
}

/// Blocks `signals` for the calling thread and reads them from a descriptor instead.
pub(crate) fn open_signals(signals: &[libc::c_int]) -> io::Result<Signals> {
    // SAFETY: sigset_t is a plain set of bits; the calls below initialise and only touch the two local sets.
    unsafe {
        let (mut set, mut former): (libc::sigset_t, libc::sigset_t) = mem::zeroed();
        check(libc::sigemptyset(&raw mut set))?;
        for &signal in signals {
            check(libc::sigaddset(&raw mut set, signal))?;
        }
        let result = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut former);
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        let fd = check(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        // The descriptor is new, so nothing else owns it.
        let fd = OwnedFd::from_raw_fd(fd);
        Ok(Signals { fd, former })
    }
}

impl Signals {
    /// The next signal that has arrived, if any.
    pub(crate) fn next(&self) -> io::Result<Option<libc::c_int>> {
        // SAFETY: all-zero octets are a valid signalfd_siginfo, a struct of plain numbers.
        let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
        let size = mem::size_of_val(&info);
        // SAFETY: the kernel writes at most `size` octets to `info`, which is that large.
        let result = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        match result {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
            _ => Ok(Some(info.ssi_signo as libc::c_int)),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // `timeout` sends SIGTERM twice: to the program and to its group. The second one would end the program as soon as it is let
        // through, while it still reports what it did.
        while let Ok(Some(_)) = self.next() {}
        // SAFETY: `former` was filled by the kernel when the signals were blocked. On another thread this restores
        // a mask that is not that thread's, which is no matter of memory.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.former, ptr::null_mut());
        }
    }
}

/// Leaves namespaces for new ones. User and network namespaces only.
pub(crate) fn unshare(user: bool, network: bool) -> io::Result<()> {
    let flags = flags(user, network);
    // SAFETY: the call is dangerous with FILES only, since another thread could lose its descriptors; these flags
    // leave the table shared.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Leaves the shared mount namespace for a copy of it.
pub(crate) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: as in `unshare`.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// Whether a child of this process could do that. Leaves nothing behind.
pub(crate) fn unshare_in_child(user: bool, network: bool) -> io::Result<()> {
    let flags = flags(user, network);
    // A program that cannot exist: the start fails in any case, and says at which of the two steps.
    let mut command = Command::new("/proc/self/no such program");
    // SAFETY: between fork and exec only one system call is made: no allocation and no lock. FILES is not among
    // the flags.
    unsafe {
        command.pre_exec(move || Ok(unshare_unsafe(flags)?));
    }
    match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => child.wait().map(drop),
    }
}

/// Makes the program that `command` will start enter `namespace` first, and die with the thread that starts it.
pub(crate) fn enter_before_exec(command: &mut Command, namespace: BorrowedFd<'_>) {
    let (namespace, parent) = (namespace.as_raw_fd(), std::process::id());
    let enter = move || {
        // SAFETY: plain system calls with numbers only. The descriptor is a copy of the parent's, which is open
        // until exec, since the caller borrows it for as long as the start takes; a stale one is only refused.
        unsafe {
            check(libc::setns(namespace, libc::CLONE_NEWNET))?;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The parent may have died before the prctl, which then never fires.
            if libc::getppid() != parent as libc::pid_t {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made: no allocation and no lock.
    unsafe {
        command.pre_exec(enter);
    }
}

/// Puts the calling thread into SCHED_FIFO at the lowest priority. Its children get the ordinary class.
pub(crate) fn schedule_first() -> io::Result<()> {
    // The kernel's sched_param. That of musl is longer, and its sched_setscheduler always fails.
    let priority: libc::c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let this_thread = 0;
    // SAFETY: the kernel reads one integer that outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            this_thread,
            policy,
            &raw const priority,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn flags(user: bool, network: bool) -> UnshareFlags {
    let mut flags = UnshareFlags::empty();
    flags.set(UnshareFlags::NEWUSER, user);
    flags.set(UnshareFlags::NEWNET, network);
    flags
}
