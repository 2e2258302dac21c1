//! What can go wrong with a socket.

use chappe_tcplp::tcp::Failure;
use embedded_io_async::ErrorKind;

/// Why an operation on a socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// All sockets, or all mailboxes of UDP, are in use.
    NoSocket,
    /// The port is in use, or every port that was tried is.
    PortInUse,
    /// The address is not one of IPv6: the stack speaks nothing else.
    NotIpv6,
    /// This end has closed the connection, or there is none.
    NotConnected,
    /// The datagram is larger than the mailbox's buffer for sending.
    TooLarge,
    /// The datagram is larger than the caller's buffer. It was dropped.
    Truncated,
    /// The connection failed, for the reason that TCP gives.
    Failed(Failure),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Error::NoSocket => "all sockets are in use",
            Error::PortInUse => "the port is in use",
            Error::NotIpv6 => "the address is not an IPv6 address",
            Error::NotConnected => "the socket is not connected",
            Error::TooLarge => "the datagram is larger than the socket's buffer",
            Error::Truncated => "the datagram is larger than the buffer it was read into",
            Error::Failed(Failure::Refused) => "the peer refused the connection",
            Error::Failed(Failure::Reset) => "the peer reset the connection",
            Error::Failed(Failure::TimedOut) => "the peer did not answer in time",
            Error::Failed(_) => "the connection was aborted",
        })
    }
}

impl core::error::Error for Error {}

impl embedded_io_async::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Error::NoSocket => ErrorKind::OutOfMemory,
            Error::PortInUse => ErrorKind::AddrInUse,
            Error::NotIpv6 | Error::TooLarge | Error::Truncated => ErrorKind::InvalidInput,
            Error::NotConnected => ErrorKind::NotConnected,
            Error::Failed(Failure::Refused) => ErrorKind::ConnectionRefused,
            Error::Failed(Failure::Reset) => ErrorKind::ConnectionReset,
            Error::Failed(Failure::TimedOut) => ErrorKind::TimedOut,
            Error::Failed(_) => ErrorKind::ConnectionAborted,
        }
    }
}
