//! Errors of the operating system, with the action, its object, the cause and a remedy.

use std::fmt;
use std::io;

/// A failed request to the operating system.
///
/// Displayed as one sentence: *cannot open a packet socket on mesh0: Operation not permitted (os error 1); it needs
/// CAP_NET_RAW: ...*
#[derive(Debug)]
pub struct Error {
    what: String,
    on: Option<String>,
    os: io::Error,
    remedy: Option<String>,
}

/// A result with the operating system's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Remedy for a missing CAP_NET_RAW.
pub(crate) const NEEDS_NET_RAW: &str = "it needs CAP_NET_RAW: run as root, give the program the capability \
    (`setcap cap_net_raw+ep PROGRAM`), or run it in a user namespace (`unshare -Urn`)";
/// Remedy for a missing CAP_NET_ADMIN.
pub(crate) const NEEDS_NET_ADMIN: &str = "it needs CAP_NET_ADMIN: run as root, give the program the capability \
    (`setcap cap_net_admin+ep PROGRAM`), or run it in a user namespace (`unshare -Urn`)";
/// Remedy for a missing CAP_SYS_ADMIN.
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

    /// An invalid request, rejected before the operating system was asked. `what` completes the sentence "cannot ...",
    /// `why` is the cause.
    pub fn invalid(what: impl Into<String>, why: &str) -> Error {
        Error::new(what, io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// A configuration that cannot be applied, in the form of a system error.
    pub fn unusable(what: &str, why: &dyn fmt::Display) -> Error {
        Error::new(
            what,
            io::Error::new(io::ErrorKind::InvalidInput, why.to_string()),
        )
    }

    /// Adds the interface, namespace or file concerned.
    pub(crate) fn on(mut self, on: &str) -> Error {
        self.on = Some(on.to_owned());
        self
    }

    /// Adds a remedy that applies if permission was denied.
    pub(crate) fn needs(mut self, remedy: &str) -> Error {
        if self.os.kind() == io::ErrorKind::PermissionDenied {
            self.remedy = Some(remedy.to_owned());
        }
        self
    }

    /// Adds a remedy, whatever the cause.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Error {
        self.remedy = Some(remedy.into());
        self
    }

    /// Whether the interface is down or has no route or address at present; it may come back.
    pub fn is_down(&self) -> bool {
        let number = self.os.raw_os_error();
        [libc::ENETDOWN, libc::ENETUNREACH, libc::EADDRNOTAVAIL]
            .map(Some)
            .contains(&number)
    }

    /// Whether the interface no longer exists, so that sockets bound to it are useless.
    pub fn is_gone(&self) -> bool {
        [libc::ENODEV, libc::ENXIO]
            .map(Some)
            .contains(&self.os.raw_os_error())
    }

    /// Whether the kernel had no buffer for the frame; it may have one soon.
    pub fn is_out_of_buffers(&self) -> bool {
        [libc::ENOBUFS, libc::ENOMEM]
            .map(Some)
            .contains(&self.os.raw_os_error())
    }

    /// The operating system's error.
    pub fn os(&self) -> &io::Error {
        &self.os
    }

    /// The sentence without the remedy.
    pub fn cause(&self) -> String {
        let on = self.on.iter().map(|on| format!(" on {on}"));
        format!(
            "cannot {}{}: {}",
            self.what,
            on.collect::<String>(),
            self.os
        )
    }

    /// The remedy, if one is known.
    pub fn advice(&self) -> Option<&str> {
        self.remedy.as_deref().or_else(|| advice(&self.os))
    }
}

/// The remedy that follows from the error number alone.
fn advice(os: &io::Error) -> Option<&'static str> {
    match os.raw_os_error()? {
        libc::ENODEV | libc::ENXIO => Some("there is no such interface here; `ip link` lists them"),
        libc::ENETDOWN => Some("the interface is down: `ip link set NAME up`"),
        libc::ENETUNREACH => {
            Some("the interface is down or has no address of this kind; `ip address` shows both")
        }
        libc::EADDRINUSE => Some("another program uses this port: stop it, or choose another port"),
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
    fn an_error_names_action_object_cause_and_remedy() {
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
