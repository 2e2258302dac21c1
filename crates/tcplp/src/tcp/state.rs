//! The states of a connection, and the reasons for which it fails.

/// The states of RFC 9293 3.3.2 except LISTEN, which is a [`Listener`](super::Listener).
///
/// ```text
///                 connect                        accept
///                    v                              v
///               SYN-SENT ------ SYN -------> SYN-RECEIVED
///                    | SYN+ACK                      | ACK
///                    +--------> ESTABLISHED <-------+
///              close |               | FIN
///              FIN-WAIT-1            CLOSE-WAIT
///         ACK /      | FIN               | close
///     FIN-WAIT-2   CLOSING           LAST-ACK
///          FIN \     | ACK               | ACK
///               TIME-WAIT -- 2 MSL --> CLOSED
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection: before the first one, and after each.
    Closed,
    /// Our SYN was sent; the peer has not answered.
    SynSent,
    /// A SYN was received and answered; our SYN is not acknowledged.
    SynReceived,
    /// Open: data flows both ways.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed, and our FIN is acknowledged; the peer has not closed.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both closed; waits until old segments of the connection have left the network.
    TimeWait,
}

impl State {
    /// The name in RFC 9293.
    pub const fn name(self) -> &'static str {
        match self {
            State::Closed => "CLOSED",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
        }
    }

    /// Whether the peer may still send data.
    pub const fn can_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Whether the application may still write.
    pub const fn can_send(self) -> bool {
        matches!(
            self,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        )
    }
}

/// Why a connection ended other than by both ends closing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer answered our SYN with a reset: the port is closed.
    Refused = 1,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer within the configured number of retries.
    TimedOut,
    /// The application aborted it, or closed it with data unread.
    Aborted,
}

impl Failure {
    /// Every failure, in the order of their codes from 1.
    pub const ALL: [Failure; 4] = [
        Failure::Refused,
        Failure::Reset,
        Failure::TimedOut,
        Failure::Aborted,
    ];
}
