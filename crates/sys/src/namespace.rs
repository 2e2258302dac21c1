//! User and network namespaces.
//!
//! A network namespace is kept by its descriptor alone: nothing is mounted, so nothing is left behind when the
//! program ends, however it ends. [`isolate`] makes them without being root.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Error, NEEDS_SYS_ADMIN, Result};
use crate::links::Links;
use crate::raw;

/// A network namespace. It lives as long as a descriptor, a thread or an interface's peer refers to it.
#[derive(Debug)]
pub struct NetworkNamespace {
    fd: OwnedFd,
}

impl NetworkNamespace {
    /// A new one with a loopback interface that is up. Needs CAP_SYS_ADMIN; see [`isolate`].
    pub fn create() -> Result<NetworkNamespace> {
        // A thread of its own goes there and comes back with the descriptor: leaving is not for everyone.
        let made = thread::scope(|scope| {
            let make = || {
                raw::unshare(false, true).map_err(|error| {
                    Error::new("create a network namespace", error).needs(NEEDS_SYS_ADMIN)
                })?;
                Links::open()?.up("lo")?;
                NetworkNamespace::current()
            };
            scope.spawn(make).join()
        });
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// That of the calling thread.
    pub fn current() -> Result<NetworkNamespace> {
        let path = "/proc/thread-self/ns/net";
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::new("open the network namespace", error).on(path))?;
        Ok(NetworkNamespace { fd })
    }

    /// Moves the calling thread into it, for good. Sockets that are open stay where they were made.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::new("enter a network namespace", error).needs(NEEDS_SYS_ADMIN))
    }

    /// Runs `work` in it, on a thread of its own, and waits for its end. A panic in `work` goes on here.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let done = thread::scope(|scope| {
            let entered = || self.enter().map(|()| work());
            scope.spawn(entered).join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The namespace that process `pid` holds open as descriptor `fd`.
    pub fn of_process(pid: u32, fd: i32) -> Result<NetworkNamespace> {
        let path = format!("/proc/{pid}/fd/{fd}");
        let fd = rustix::fs::open(&*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::new("open the network namespace", error).on(&path))?;
        Ok(NetworkNamespace { fd })
    }

    /// The namespace in which process `pid` runs.
    pub fn of(pid: u32) -> Result<NetworkNamespace> {
        let path = format!("/proc/{pid}/ns/net");
        let fd = rustix::fs::open(&*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::new("open the network namespace", error).on(&path))?;
        Ok(NetworkNamespace { fd })
    }

    /// Sets a kernel parameter of this namespace, such as `net/ipv4/ip_forward`.
    pub fn set_parameter(&self, name: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/{name}");
        self.run(|| {
            fs::write(&path, value).map_err(|error| {
                Error::new("set a kernel parameter", error)
                    .on(&path)
                    .needs("/proc/sys must be writable; containers often mount it read-only")
            })
        })?
    }

    /// A path by which other programs of this user (`nsenter --net=`) find it while this value lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Moves the whole program into new user and network namespaces, where it is root over interfaces and namespaces
/// but has no rights over the host. Works without privilege where the kernel allows user namespaces.
///
/// Call it first thing in `main`: the kernel refuses a program that already has several threads.
pub fn isolate() -> Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    raw::unshare(true, true).map_err(|error| {
        let error = Error::new("create user and network namespaces", error);
        match user_namespace_obstacle() {
            Some((_, remedy)) => error.remedy(remedy),
            None if error.os().raw_os_error() == Some(libc::EINVAL) => {
                error.remedy("it must be done before any thread is started")
            }
            None => error,
        }
    })?;
    let map = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| Error::new("map the user", error).on(file))
    };
    // Without this, an unprivileged gid map is refused (user_namespaces(7)).
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("0 {user} 1"))?;
    map("/proc/self/gid_map", format!("0 {group} 1"))?;
    Links::open()?.up("lo")
}

/// What [`isolate_by_any_means`] found to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A user namespace: no rights over the host, and none were needed.
    User,
    /// A network namespace alone: the program was root and still is.
    Root,
}

/// Moves the whole program into a new network namespace: inside a user namespace ([`isolate`]) where the kernel
/// allows that, or as the root that it is. The error is that of the user namespace.
pub fn isolate_by_any_means() -> Result<Isolation> {
    let refused = match isolate() {
        Ok(()) => return Ok(Isolation::User),
        Err(error) => error,
    };
    if raw::unshare(false, true).is_err() {
        return Err(refused);
    }
    Links::open()?.up("lo")?;
    Ok(Isolation::Root)
}

/// Moves the program into the user namespace of process `pid`, where it becomes what it is there. Nothing happens
/// if that is its own. The kernel refuses it to a program that has several threads, or that is another user's.
pub fn join_user_of(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/ns/user");
    let same =
        |a: &str, b: &str| matches!((fs::read_link(a), fs::read_link(b)), (Ok(a), Ok(b)) if a == b);
    if same(&path, "/proc/self/ns/user") {
        return Ok(());
    }
    let failed = |error: rustix::io::Errno| {
        Error::new("enter a user namespace", error)
            .on(&path)
            .needs("it belongs to the user who made it: run this as the same user")
    };
    let fd = rustix::fs::open(&*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed)?;
    move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::User)).map_err(failed)
}

/// The system setting that forbids user namespaces, if one does: what it is and what to do.
pub(crate) fn user_namespace_obstacle() -> Option<(&'static str, &'static str)> {
    let has =
        |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    if has("/proc/sys/user/max_user_namespaces", "0") {
        return Some((
            "user.max_user_namespaces is 0",
            "allow user namespaces: `sysctl user.max_user_namespaces=10000` as root",
        ));
    }
    if has("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Some((
            "kernel.unprivileged_userns_clone is 0",
            "allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1` as root",
        ));
    }
    if has(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        return Some((
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "allow user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root",
        ));
    }
    None
}
