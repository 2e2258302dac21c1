//! User and network namespaces.
//!
//! Only its descriptor keeps a network namespace alive. Nothing is mounted outside of the program's own mount
//! namespace, so nothing stays behind when it ends, however it ends. [`isolate`] creates namespaces without root.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Error, NEEDS_SYS_ADMIN, Result};
use crate::links::Links;
use crate::raw;

/// A network namespace. It lives as long as a descriptor, a thread or a socket refers to it.
#[derive(Debug)]
pub struct NetworkNamespace {
    fd: OwnedFd,
}

impl NetworkNamespace {
    /// Creates a namespace whose loopback interface is up. Needs CAP_SYS_ADMIN; see [`isolate`].
    pub fn create() -> Result<NetworkNamespace> {
        // A separate thread enters the namespace and ends there, since returning may not be permitted.
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

    /// The namespace of the calling thread.
    pub fn current() -> Result<NetworkNamespace> {
        let path = "/proc/thread-self/ns/net";
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::new("open the network namespace", error).on(path))?;
        Ok(NetworkNamespace { fd })
    }

    /// Moves the calling thread into the namespace, permanently. Open sockets stay in the namespace of their creation.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::new("enter a network namespace", error).needs(NEEDS_SYS_ADMIN))
    }

    /// Runs `work` in the namespace on a separate thread and waits for its end. A panic in `work` resumes here.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let done = thread::scope(|scope| {
            let entered = || self.enter().map(|()| work());
            scope.spawn(entered).join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Opens the namespace that process `pid` holds as descriptor `fd`.
    pub fn of_process(pid: u32, fd: i32) -> Result<NetworkNamespace> {
        let path = format!("/proc/{pid}/fd/{fd}");
        let fd = rustix::fs::open(&*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::new("open the network namespace", error).on(&path))?;
        Ok(NetworkNamespace { fd })
    }

    /// Opens the namespace in which process `pid` runs.
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

    /// A path for other programs of this user (`nsenter --net=`), valid while this value lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Moves the whole program into new user and network namespaces. There it is root over interfaces and namespaces, but
/// has no rights over the host. Needs no privilege if the kernel allows user namespaces.
///
/// Call it first in `main`: the kernel refuses a program that already has several threads.
pub fn isolate() -> Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    raw::unshare(true, true).map_err(|error| {
        let error = Error::new("create user and network namespaces", error);
        match user_namespace_obstacle() {
            Some((_, remedy)) => error.remedy(remedy),
            None if error.os().raw_os_error() == Some(libc::EINVAL) => {
                error.remedy("call it before any thread is started")
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

/// The kind of isolation that [`isolate_by_any_means`] achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A user namespace: the program has no rights over the host, and needed none.
    User,
    /// A network namespace alone: the program was root and still is.
    Root,
}

/// Moves the whole program into a new network namespace, inside a user namespace ([`isolate`]) if the kernel allows
/// that, or else as root. The error is that of the user namespace.
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

/// Shows `shown` in the place of `file` to this program and to those that it starts. Other programs do not see it, and it ends with this one and its children.
/// A file that is missing appears in its folder, which they then cannot write; `empty` is a folder of this program's own for that, with one
/// empty file of that name in it.
///
/// Call it after [`isolate`] and before any thread is started.
pub fn cover(file: &Path, shown: &Path, empty: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new("show other contents", error)
            .on(&file.to_string_lossy())
            .needs(NEEDS_SYS_ADMIN)
    };
    raw::unshare_mounts().map_err(failed)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| failed(error.into()))?;
    if !file.exists() {
        add_to_folder(file, empty)?;
    }
    mount_bind(shown, file).map_err(|error| failed(error.into()))
}

/// Makes a missing file appear, empty, by showing its folder below the folder `empty`, which has it.
fn add_to_folder(file: &Path, empty: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let failed = |error: std::io::Error| {
        let remedy = format!(
            "make an empty file {0}: `mkdir -p {1} && touch {0}`",
            file.display(),
            folder.display()
        );
        Error::new("add a file to a folder", error)
            .on(&file.to_string_lossy())
            .remedy(remedy)
    };
    // Such a path cannot stand in the list of layers.
    let octets = empty.as_os_str().as_encoded_bytes();
    if octets.iter().any(|octet| b":,\\".contains(octet)) {
        return Err(failed(std::io::ErrorKind::InvalidFilename.into()));
    }
    let layers = format!("lowerdir={}:{}", empty.display(), folder.display());
    let layers = CString::new(layers).map_err(|error| failed(error.into()))?;
    mount(
        "overlay",
        folder,
        "overlay",
        MountFlags::RDONLY,
        Some(&*layers),
    )
    .map_err(|error| failed(error.into()))
}

/// Moves the program into the user namespace of process `pid`, with the rights that it has there. Does nothing if the
/// program is already in it. The kernel refuses programs with several threads and programs of another user.
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

/// The system setting that forbids user namespaces, if any, and how to change it.
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
