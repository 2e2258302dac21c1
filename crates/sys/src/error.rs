//! What went wrong with the operating system: what was tried, on what, what it said, what to do.

use std::fmt;
use std::io;

/// A failed request to the operating system.
///
/// Prints as one sentence: *cannot open a packet socket on mesh0: Operation not permitted (os error 1); it needs
/// CAP_NET_RAW: ...*
#[derive(Debug)]
pub struct Error {
    what: String,
    on: Option<String>,
    os: io::Error,
    remedy: Option<String>,
}

/// Either a value or what the operating system said.
pub type Result<T> = std::result::Result<T, Error>;

/// What to do about a missing CAP_NET_RAW.
pub(crate) const NEEDS_NET_RAW: &str = "it needs CAP_NET_RAW: run as root, give the program the capability \
    (`setcap cap_net_raw+ep PROGRAM`), or run it in a user namespace (`unshare -Urn`)";
/// What to do about a missing CAP_NET_ADMIN.
pub(crate) const NEEDS_NET_ADMIN: &str = "it needs CAP_NET_ADMIN: run as root, give the program the capability \
    (`setcap cap_net_admin+ep PROGRAM`), or run it in a user namespace (`unshare -Urn`)";
/// What to do about a missing CAP_SYS_ADMIN.
pub(crate) const NEEDS_SYS_ADMIN: &str =
    "it needs CAP_SYS_ADMIN: run as root, or in a user namespace (`unshare -Ur`)";

impl Error {
    /// `what` completes the sentence "cannot ...".
    pub(crate) fn new(what: impl Into<String>, os: impl Into<io::Error>) -> Error {
        Error {
            what: what.into(),
            on: None,
            os: os.into(),
            remedy: None,
        }
    }

    /// A request that makes no sense, refused before the operating system was asked: `what` completes the sentence
    /// "cannot ...", `why` says what is wrong.
    pub fn invalid(what: impl Into<String>, why: &str) -> Error {
        Error::new(what, io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// A configuration that cannot be carried out, told like an error of the system.
    pub fn unusable(what: &str, why: &dyn fmt::Display) -> Error {
        Error::new(
            what,
            io::Error::new(io::ErrorKind::InvalidInput, why.to_string()),
        )
    }

    /// The interface, namespace or file that it was tried on.
    pub(crate) fn on(mut self, on: &str) -> Error {
        self.on = Some(on.to_owned());
        self
    }

    /// What to do, if permission was refused.
    pub(crate) fn needs(mut self, remedy: &str) -> Error {
        if self.os.kind() == io::ErrorKind::PermissionDenied {
            self.remedy = Some(remedy.to_owned());
        }
        self
    }

    /// What to do, whatever the cause.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Error {
        self.remedy = Some(remedy.into());
        self
    }

    /// Whether the interface is down or leads nowhere for now; it may come back.
    pub fn is_down(&self) -> bool {
        let number = self.os.raw_os_error();
        [libc::ENETDOWN, libc::ENETUNREACH, libc::EADDRNOTAVAIL]
            .map(Some)
            .contains(&number)
    }

    /// Whether the interface does not exist any more: sockets that are bound to it are of no further use.
    pub fn is_gone(&self) -> bool {
        [libc::ENODEV, libc::ENXIO]
            .map(Some)
            .contains(&self.os.raw_os_error())
    }

    /// Whether the kernel had no memory for the frame just now.
    pub fn is_out_of_buffers(&self) -> bool {
        [libc::ENOBUFS, libc::ENOMEM]
            .map(Some)
            .contains(&self.os.raw_os_error())
    }

    /// What the operating system said.
    pub fn os(&self) -> &io::Error {
        &self.os
    }

    /// The sentence without the advice.
    pub fn cause(&self) -> String {
        let on = self.on.iter().map(|on| format!(" on {on}"));
        format!(
            "cannot {}{}: {}",
            self.what,
            on.collect::<String>(),
            self.os
        )
    }

    /// What to do about it, where that is known.
    pub fn advice(&self) -> Option<&str> {
        self.remedy.as_deref().or_else(|| advice(&self.os))
    }
}

/// Advice that follows from the error number alone.
fn advice(os: &io::Error) -> Option<&'static str> {
    match os.raw_os_error()? {
        libc::ENODEV | libc::ENXIO => Some("there is no such interface here; `ip link` lists them"),
        libc::ENETDOWN => Some("the interface is down: `ip link set NAME up`"),
        libc::ENETUNREACH => {
            Some("the interface is down or has no address of this kind; `ip address` shows both")
        }
        libc::EADDRINUSE => Some("another program has this port; stop it or choose another"),
        libc::EADDRNOTAVAIL => Some("the interface has no such address; `ip address` lists them"),
        libc::EMSGSIZE => Some("the frame is larger than the interface's MTU; see `ip link`"),
        _ => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause())?;
        match self.advice() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.os)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_why_and_what_to_do() {
        let refused = || io::Error::from_raw_os_error(libc::EPERM);
        let error = Error::new("open a packet socket", refused())
            .on("mesh0")
            .needs("ask root");
        assert_eq!(
            error.to_string(),
            "cannot open a packet socket on mesh0: Operation not permitted (os error 1); ask root"
        );
        let down =
            Error::new("send", io::Error::from_raw_os_error(libc::ENETDOWN)).needs("ask root");
        assert!(
            down.to_string().ends_with("`ip link set NAME up`"),
            "{down}"
        );
    }
}
