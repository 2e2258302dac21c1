//! Octets between a socket of the kernel and one of the stack, both ways, with their ends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use smoltcp::socket::tcp::{Socket, State};

/// A connection of which both halves stand.
pub(super) struct Pipe {
    pub stream: TcpStream,
    /// The program at the kernel's end has said all.
    read_all: bool,
    /// The program there has been told that the other end has said all.
    told_end: bool,
}

/// What has become of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Goes,
    /// Both ends have said all.
    Done,
    /// The stack's end was reset, or answers no more.
    Lost,
    /// The kernel's end was reset.
    Broken,
}

impl Pipe {
    pub fn new(stream: TcpStream) -> Pipe {
        Pipe {
            stream,
            read_all: false,
            told_end: false,
        }
    }

    /// Moves what can be moved.
    pub fn turn(&mut self, socket: &mut Socket<'static>) -> Outcome {
        let forth = self.read_into(socket);
        let back = self.write_from(socket);
        if forth.is_err() || back.is_err() {
            return Outcome::Broken;
        }
        let ended = matches!(socket.state(), State::Closed | State::TimeWait);
        match (self.read_all && self.told_end, ended) {
            (true, true) => Outcome::Done,
            (false, true) => Outcome::Lost,
            (_, false) => Outcome::Goes,
        }
    }

    fn read_into(&mut self, socket: &mut Socket<'static>) -> std::io::Result<()> {
        while !self.read_all && socket.can_send() {
            let read = socket.send(|room| match self.stream.read(room) {
                Ok(count) => (count, Ok(count)),
                Err(error) => (0, Err(error)),
            });
            match read {
                Ok(Ok(0)) => {
                    self.read_all = true;
                    socket.close();
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return waits(error),
                // The state above allows it.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn write_from(&mut self, socket: &mut Socket<'static>) -> std::io::Result<()> {
        while socket.can_recv() {
            let written = socket.recv(|octets| match self.stream.write(octets) {
                Ok(count) => (count, Ok(count)),
                Err(error) => (0, Err(error)),
            });
            match written {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return waits(error),
                Err(_) => return Ok(()),
            }
        }
        // The other end has sent its FIN, and all before it is written. A reset shows as closed without that.
        let said_all = matches!(
            socket.state(),
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        if said_all && !self.told_end {
            self.told_end = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    /// Whether to wait until the kernel's end can be read, and written.
    pub fn interest(&self, socket: &Socket<'static>) -> (bool, bool) {
        (!self.read_all && socket.can_send(), socket.can_recv())
    }
}

/// No mistake if the kernel's end only is not ready.
fn waits(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
