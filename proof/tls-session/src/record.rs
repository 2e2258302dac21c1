//! Opens the session with a real server, `openssl s_server -accept 4433 -tls1_3 -psk 000102030405060708090a0b0c0d0e0f -psk_identity mote
//! -nocert -rev`, and writes what it answers to the file given: `cargo run --bin record -- 127.0.0.1:4433 src/server.bin`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use tls_session::{complete, now, session};

/// A connection whose answers are kept.
struct Wire<'r> {
    stream: TcpStream,
    heard: &'r mut Vec<u8>,
}

impl ErrorType for Wire<'_> {
    type Error = ErrorKind;
}

impl Read for Wire<'_> {
    async fn read(&mut self, octets: &mut [u8]) -> Result<usize, Self::Error> {
        let len = self.stream.read(octets).map_err(|_| ErrorKind::Other)?;
        self.heard.extend_from_slice(&octets[..len]);
        Ok(len)
    }
}

impl Write for Wire<'_> {
    async fn write(&mut self, octets: &[u8]) -> Result<usize, Self::Error> {
        self.stream.write(octets).map_err(|_| ErrorKind::Other)
    }

    async fn flush(&mut self) -> Result<(), Self::Error> {
        self.stream.flush().map_err(|_| ErrorKind::Other)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(file)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: record ADDRESS FILE");
        std::process::exit(2);
    };
    let mut heard = Vec::new();
    let stream = TcpStream::connect(&server).expect("the server listens");
    let wire = Wire {
        stream,
        heard: &mut heard,
    };
    let outcome = now(session(wire));
    assert!(complete(&outcome), "{outcome:?}");
    std::fs::write(&file, &heard).expect("the file can be written");
    println!("{} octets in {file}", heard.len());
}
