//! A client's TLS session with a pre-shared key, without a network: its random numbers are fixed, so that what a server once answered
//! answers it again. `record` makes such a recording, with OpenSSL as the server.

#![no_std]

use core::pin::pin;
use core::task::{Context, Poll, Waker};

use chappe_mote::tls::{self, Psk, READ_MIN, TlsError, WRITE_MIN};
use embedded_io_async::{ErrorType, Read, Write};

/// What the server answered: `openssl s_server -rev`, which sends each line back in reverse.
pub const RECORDING: &[u8] = include_bytes!("server.bin");
/// What the client says, and what must come back.
pub const SAID: &[u8] = b"21.50\n";
/// What the server answers: `SAID` in reverse.
pub const ANSWER: &[u8] = b"05.12\n";

/// A server that was recorded, and a place for what the client sends.
pub struct Replay<F> {
    left: &'static [u8],
    sent: F,
}

impl<F: FnMut(&[u8])> Replay<F> {
    /// Answers with `recording`, and passes to `sent` what the client sends.
    pub fn new(recording: &'static [u8], sent: F) -> Replay<F> {
        Replay {
            left: recording,
            sent,
        }
    }
}

impl<F> ErrorType for Replay<F> {
    type Error = core::convert::Infallible;
}

impl<F: FnMut(&[u8])> Read for Replay<F> {
    async fn read(&mut self, octets: &mut [u8]) -> Result<usize, Self::Error> {
        let len = octets.len().min(self.left.len());
        let (now, later) = self.left.split_at(len);
        octets[..len].copy_from_slice(now);
        self.left = later;
        Ok(len)
    }
}

impl<F: FnMut(&[u8])> Write for Replay<F> {
    async fn write(&mut self, octets: &[u8]) -> Result<usize, Self::Error> {
        (self.sent)(octets);
        Ok(octets.len())
    }

    async fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Opens a session, says a line, and reads the answer. Its length is returned with it.
pub async fn session(wire: impl Read + Write) -> Result<([u8; 16], usize), TlsError> {
    let key: [u8; 16] = core::array::from_fn(|at| at as u8);
    let psk = Psk {
        identity: b"mote",
        key: &key,
    };
    // Numbers that anyone can foresee: never for a real session.
    let mut state = 1u32;
    let noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 16
    };
    let (mut read, mut write) = ([0; READ_MIN], [0; WRITE_MIN]);
    let mut session = tls::open(wire, &psk, noise, &mut read, &mut write).await?;
    session.write(SAID).await?;
    session.flush().await?;
    let mut answer = [0; 16];
    let mut len = 0;
    while len < SAID.len() {
        len += session.read(&mut answer[len..]).await?;
    }
    Ok((answer, len))
}

/// Runs a future that never waits for something else to happen.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Whether the session came to its end with the right answer.
pub fn complete(outcome: &Result<([u8; 16], usize), TlsError>) -> bool {
    matches!(outcome, Ok((answer, len)) if answer.get(..*len) == Some(ANSWER))
}
