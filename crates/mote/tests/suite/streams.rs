//! TCP sockets between the tasks of two motes.

use std::net::SocketAddr;

use chappe_mote::{Error, TcpListener, TcpSocket};
use chappe_tcplp::tcp::Failure;
use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embedded_io_async::{Read, ReadReady, Write, WriteReady};
use embedded_nal_async::TcpConnect;

use crate::island::{Net, Task, at, island, pause, run};

fn pattern(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

/// Sends back what it receives on port 7, to the end of the stream.
async fn echo(stack: &'static Net, connections: usize) {
    let listener = TcpListener::bind(stack, 7).unwrap();
    for _ in 0..connections {
        let mut socket = listener.accept().await;
        let mut data = [0; 200];
        loop {
            match socket.read(&mut data).await.unwrap() {
                0 => break,
                len => socket.write_all(&data[..len]).await.unwrap(),
            }
        }
        socket.close().await.unwrap();
    }
}

/// Writes and reads at once through the two halves.
async fn send_and_check(stack: &'static Net, octets: usize) {
    let mut socket = TcpSocket::connect(stack, at(1, 7)).await.unwrap();
    assert_eq!(socket.remote(), SocketAddr::V6(at(1, 7)));
    let (mut reader, mut writer) = socket.split();
    let send = async {
        let data: Vec<u8> = (0..octets).map(pattern).collect();
        writer.write_all(&data).await.unwrap();
        writer.flush().await.unwrap();
    };
    let receive = async {
        let mut data = vec![0; octets];
        reader.read_exact(&mut data).await.unwrap();
        assert!(
            data.iter()
                .enumerate()
                .all(|(at, &octet)| octet == pattern(at))
        );
    };
    join(send, receive).await;
    socket.shutdown();
    assert_eq!(socket.read(&mut [0]).await, Ok(0), "the end of the stream");
    assert_eq!(socket.write(b"x").await, Err(Error::NotConnected));
    socket.close().await.unwrap();
}

fn task(future: impl Future<Output = ()> + 'static) -> Task {
    Box::pin(future)
}

#[test]
fn an_echo_over_lossy_air_is_complete() {
    let client = island(0, 2, |stack| vec![task(send_and_check(stack, 6000))]);
    let server = island(1, 2, |stack| vec![task(echo(stack, 1))]);
    run(vec![client, server], 0.8, 120);
}

/// Each connection is dropped without a word; its socket is used again.
#[test]
fn sockets_are_used_again() {
    async fn visits(stack: &'static Net) {
        for visit in 0..8u8 {
            let mut socket = TcpConnect::connect(stack, SocketAddr::V6(at(1, 7)))
                .await
                .unwrap();
            assert!(!socket.read_ready().unwrap() && socket.write_ready().unwrap());
            socket.write_all(&[visit]).await.unwrap();
            let mut back = [0];
            socket.read_exact(&mut back).await.unwrap();
            assert_eq!(back, [visit]);
        }
    }
    let client = island(0, 2, |stack| vec![task(visits(stack))]);
    let server = island(1, 2, |stack| vec![task(echo(stack, 8))]);
    run(vec![client, server], 1.0, 120);
}

#[test]
fn what_fails_says_why() {
    async fn fails(stack: &'static Net) {
        let refused = TcpSocket::connect(stack, at(1, 9)).await.map(drop);
        assert_eq!(refused, Err(Error::Failed(Failure::Refused)));
        let nobody = TcpSocket::connect(stack, at(5, 9)).await.map(drop);
        assert_eq!(nobody, Err(Error::Failed(Failure::TimedOut)));
        let v4 = TcpConnect::connect(stack, "10.0.0.1:7".parse().unwrap())
            .await
            .map(drop);
        assert_eq!(v4, Err(Error::NotIpv6));

        let [one, two, three] = [(); 3].map(|()| TcpSocket::connect(stack, at(1, 7)));
        let (one, two, three) = (one.await.unwrap(), two.await.unwrap(), three.await.unwrap());
        let fourth = TcpSocket::connect(stack, at(1, 7)).await.map(drop);
        assert_eq!(fourth, Err(Error::NoSocket));
        one.abort();
        drop((two, three));
    }
    async fn accept(stack: &'static Net) {
        let listener = TcpListener::bind(stack, 7).unwrap();
        let mut sockets = [
            listener.accept().await,
            listener.accept().await,
            listener.accept().await,
        ];
        let mut ends = Vec::new();
        for socket in &mut sockets {
            ends.push(socket.read(&mut [0]).await);
        }
        let reset = Err(Error::Failed(Failure::Reset));
        assert_eq!(ends, [reset, Ok(0), Ok(0)]);
    }
    let client = island(0, 2, |stack| vec![task(fails(stack))]);
    let server = island(1, 2, |stack| vec![task(accept(stack))]);
    run(vec![client, server], 1.0, 600);
}

/// A task that gives up waiting loses nothing: the connection it had begun is closed, and its socket free.
#[test]
fn a_cancelled_connection_frees_its_socket() {
    async fn impatient(stack: &'static Net) {
        for _ in 0..5 {
            let connect = TcpSocket::connect(stack, at(5, 9));
            let first = select(connect, pause(stack, 1000)).await;
            assert!(matches!(first, Either::Second(())));
        }
        send_and_check(stack, 100).await;
    }
    let client = island(0, 2, |stack| vec![task(impatient(stack))]);
    let server = island(1, 2, |stack| vec![task(echo(stack, 1))]);
    run(vec![client, server], 1.0, 120);
}

/// A task that never accepts does not keep others from their connections.
#[test]
fn two_listeners_get_their_own_connections() {
    async fn serve(stack: &'static Net, port: u16) {
        let mut socket = TcpListener::bind(stack, port).unwrap().accept().await;
        socket.write_all(&port.to_be_bytes()).await.unwrap();
        socket.close().await.unwrap();
    }
    async fn visit(stack: &'static Net) {
        for port in [90u16, 80] {
            let mut socket = TcpSocket::connect(stack, at(1, port)).await.unwrap();
            let mut said = [0; 2];
            socket.read_exact(&mut said).await.unwrap();
            assert_eq!(u16::from_be_bytes(said), port);
        }
    }
    let client = island(0, 2, |stack| vec![task(visit(stack))]);
    let server = island(1, 2, |stack| {
        vec![task(serve(stack, 80)), task(serve(stack, 90))]
    });
    run(vec![client, server], 1.0, 60);
}
