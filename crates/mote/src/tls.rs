//! TLS 1.3 (RFC 8446) with a key that both ends know beforehand: a client over any socket, by `embedded-tls`.
//!
//! ```
//! use chappe_mote::tls::{self, Psk, READ_MIN, TlsError, WRITE_MIN};
//! use chappe_mote::{Clock, TcpSocket};
//!
//! async fn report<K: Clock>(socket: TcpSocket<'_, '_, K>, noise: fn() -> u32) -> Result<(), TlsError> {
//!     let psk = Psk { identity: b"mote 3", key: &[0x5a; 16] };
//!     let (mut read, mut write) = ([0; READ_MIN], [0; WRITE_MIN]);
//!     let mut tls = tls::open(socket, &psk, noise, &mut read, &mut write).await?;
//!     tls.write(b"21.50\n").await?;
//!     tls.flush().await
//! }
//! ```
//!
//! No certificate is ever looked at. Every key of the session depends on the key that both ends know, so the handshake fails
//! with a server that does not have it, whatever certificate it shows.

use embedded_io_async::{Read, Write};
use embedded_tls::{
    Aes128GcmSha256, MaxFragmentLength, TlsConfig, TlsConnection, TlsContext, UnsecureProvider,
};
use rand_core::{CryptoRng, Error, RngCore};

pub use embedded_tls::TlsError;

/// Octets of the buffer for reading: a record of 512 octets with all that RFC 6066 4 lets a server add. A server that does not
/// support that extension may send records of up to 16,640 octets, and needs a buffer of that size.
pub const READ_MIN: usize = 805;
/// Octets of the buffer for writing: what fits a segment of five frames, and what a record adds.
pub const WRITE_MIN: usize = 474;

/// A key that both ends know, and its name.
#[derive(Clone, Copy)]
pub struct Psk<'a> {
    /// The name by which the server finds the key. Anyone on the way can read it.
    pub identity: &'a [u8],
    /// The secret key, random and of 16 octets or more.
    pub key: &'a [u8],
}

impl core::fmt::Debug for Psk<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Psk")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A session over a socket. It reads and writes like the socket, through the same traits.
pub type Session<'b, S> = TlsConnection<'b, S, Aes128GcmSha256>;

/// Opens a session over a connected socket. `noise` returns random numbers that no one can foresee, for example from the chip's
/// generator. The handshake fails if the server does not know the key; then the socket is dropped.
pub async fn open<'b, S: Read + Write + 'b>(
    socket: S,
    psk: &Psk<'_>,
    noise: impl FnMut() -> u32,
    read: &'b mut [u8],
    write: &'b mut [u8],
) -> Result<Session<'b, S>, TlsError> {
    let config = TlsConfig::new()
        .with_psk(psk.key, &[psk.identity])
        .with_max_fragment_length(MaxFragmentLength::Bits9);
    let mut session = TlsConnection::new(socket, read, write);
    let provider = UnsecureProvider::new::<Aes128GcmSha256>(Noise(noise));
    session.open(TlsContext::new(&config, provider)).await?;
    Ok(session)
}

/// Random numbers from the caller, in the form that `embedded-tls` wants.
struct Noise<F>(F);

impl<F: FnMut() -> u32> RngCore for Noise<F> {
    fn next_u32(&mut self) -> u32 {
        (self.0)()
    }

    fn next_u64(&mut self) -> u64 {
        u64::from((self.0)()) << 32 | u64::from((self.0)())
    }

    fn fill_bytes(&mut self, octets: &mut [u8]) {
        for part in octets.chunks_mut(4) {
            let word = (self.0)().to_le_bytes();
            part.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(octets);
        Ok(())
    }
}

/// The caller of [`open`] vouches for it.
impl<F: FnMut() -> u32> CryptoRng for Noise<F> {}
