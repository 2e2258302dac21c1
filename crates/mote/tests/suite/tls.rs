//! TLS with a pre-shared key, against OpenSSL. A task of the neighbour carries the octets between simulated TCP and the kernel's. Time
//! on the air is virtual, OpenSSL's is not: the task waits for it in real time while virtual time stands still.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the other end is a program of this machine"
)]

use std::cell::RefCell;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use chappe_core::{Purpose, Seed};
use chappe_mote::tls::{self, Psk, READ_MIN, TlsError, WRITE_MIN};
use chappe_mote::{TcpListener, TcpSocket};
use embassy_futures::join::join;
use embedded_io_async::{Read as _, Write as _};

use crate::island::{Net, at, island, pause, run};

const PORT: u16 = 8883;
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// Looks for an answer of OpenSSL last this long each.
const LOOK: Duration = Duration::from_millis(20);

/// OpenSSL's server, which sends back each line in reverse.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None` if there is no OpenSSL here.
fn server(more: &[&str]) -> Option<Server> {
    let mut command = Command::new("openssl");
    command
        .args(["s_server", "-accept", "127.0.0.1:0", "-tls1_3", "-rev"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => panic!("openssl: {error}"),
    };
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // `ACCEPT 127.0.0.1:40000`; its stdout stays open in a thread, or it would die of a closed pipe.
    let (found, port) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if let Some(port) = line
                .strip_prefix("ACCEPT ")
                .and_then(|at| at.rsplit(':').next())
            {
                let _ = found.send(port.trim().parse().unwrap());
            }
        }
    });
    let port = port.recv().expect("openssl listens");
    Some(Server { child, port })
}

/// Carries octets between the mote's connection and OpenSSL until both have ended.
async fn bridge(stack: &'static Net, port: u16) {
    let listener = TcpListener::bind(stack, PORT).unwrap();
    let mut socket = listener.accept().await;
    let outside = TcpStream::connect(("127.0.0.1", port)).unwrap();
    outside.set_read_timeout(Some(LOOK)).unwrap();
    let (mut reader, mut writer) = socket.split();
    let out = async {
        let mut octets = [0; 512];
        while let Ok(len @ 1..) = reader.read(&mut octets).await {
            if (&outside).write_all(&octets[..len]).is_err() {
                break;
            }
        }
        let _ = outside.shutdown(Shutdown::Write);
    };
    let back = async {
        let mut octets = [0; 512];
        loop {
            match (&outside).read(&mut octets) {
                Ok(0) => break,
                Ok(len) if writer.write_all(&octets[..len]).await.is_err() => break,
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    pause(stack, 5).await;
                }
                Err(_) => break,
            }
        }
    };
    join(out, back).await;
}

/// What the mote's session came to: the answer to a line, or the error.
async fn session(stack: &'static Net, seed: u64) -> Result<Vec<u8>, TlsError> {
    let socket = TcpSocket::connect(stack, at(1, PORT)).await.unwrap();
    let key: Vec<u8> = (0..16).collect();
    let psk = Psk {
        identity: b"mote",
        key: &key,
    };
    let mut stream = Seed(seed).stream(Purpose::Node(9));
    let (mut read, mut write) = ([0; READ_MIN], [0; WRITE_MIN]);
    let noise = move || stream.next_u64() as u32;
    let mut session = tls::open(socket, &psk, noise, &mut read, &mut write).await?;
    session.write_all(b"thermometer\n").await?;
    session.flush().await?;
    let mut answer = vec![0; 12];
    session
        .read_exact(&mut answer)
        .await
        .map_err(|_| TlsError::ConnectionClosed)?;
    let _ = session.close().await;
    Ok(answer)
}

/// Plays a session with an OpenSSL that was started with these arguments; `None` without OpenSSL.
fn play(arguments: &[&str], delivery: f64, seed: u64) -> Option<Result<Vec<u8>, TlsError>> {
    let server = server(arguments)?;
    let end = Rc::new(RefCell::new(None));
    let (noted, port) = (end.clone(), server.port);
    let client = island(0, 2, |stack| {
        vec![Box::pin(async move {
            let outcome = session(stack, seed).await;
            noted.replace(Some(outcome));
        })]
    });
    let host = island(1, 2, |stack| vec![Box::pin(bridge(stack, port))]);
    run(vec![client, host], delivery, 3600);
    let outcome = end.borrow_mut().take();
    Some(outcome.expect("the session has ended"))
}

/// Goal: a mote and OpenSSL understand each other over air that loses a tenth of the frames.
#[test]
fn openssl_knows_the_key() {
    for seed in 1..=3 {
        let with = ["-nocert", "-psk_identity", "mote", "-psk", KEY];
        match play(&with, 0.9, seed) {
            None => return chappe_testkit::skip("there is no openssl"),
            Some(outcome) => assert_eq!(outcome.unwrap(), b"retemomreht\n", "seed {seed}"),
        }
    }
}

/// Goal: a server without the key learns nothing, whether it has another key or a certificate.
#[test]
fn a_server_without_the_key_is_refused() {
    let other = ["-nocert", "-psk_identity", "mote", "-psk", "ffff0203"];
    match play(&other, 1.0, 1) {
        None => return chappe_testkit::skip("there is no openssl"),
        Some(outcome) => assert!(outcome.is_err(), "another key"),
    }
    let folder = std::env::temp_dir().join(format!("chappe-mote-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (key, cert) = certificate(&folder);
    let outcome = play(&["-key", &key, "-cert", &cert], 1.0, 1);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        outcome.unwrap().is_err(),
        "a certificate in place of the key"
    );
}

/// A key and a self-signed certificate that OpenSSL makes.
fn certificate(folder: &Path) -> (String, String) {
    let place = |name: &str| folder.join(name).display().to_string();
    let (key, cert) = (place("key.pem"), place("cert.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-subj", "/CN=server", "-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    (key, cert)
}
